// Fused supersteps with small frontiers, of which meshes have thousands: one
// cluster of blocks runs them, since its barrier takes a fraction of the time
// of a barrier of all blocks. The thread that computes a vertex pushes at once,
// into inboxes of the next superstep, so there is one barrier a superstep.
//
// Where a program has phases, next_phase() is asked here, too (master.cuh).
//
// Schedule: a cluster of up to 16 blocks, each on a multiprocessor of its own.
// A warp takes some vertices that got a message, computes them, and its lanes
// divide the edges of those that send. That is for graphs without vertices of
// many edges, since a warp takes its vertices before it is known how much they
// send. A block lists the targets that it sent the first message in its shared
// memory, where all blocks read it. At the end every block sends its report to
// every other, and each warp derives the next superstep for itself. Blocks also
// exchange the totals of aggregators and each adds them up, in the same order:
// so all write the same values, and need no other barrier to agree on them.

#pragma once

#include "next_superstep.cuh"
#include "scatter.cuh"

namespace sigps {

constexpr uint32_t MOST_BLOCKS = 16;

// What a warp, a block or all did in a superstep. Messages are few, so two
// numbers share a word.
struct alignas(16) Report {
  uint32_t num_targets; // of the next superstep
  uint32_t ran, active; // low 16 bits; above: senders, and whether any retired
  uint32_t sent_edges;
};

// In `active` of a block's report: how many of its threads saw one retire is
// made a bit, and another says that a fault is kept.
constexpr uint32_t ANY_RETIRED = 1 << 16, HAS_FAULT = 1 << 24;

// Whether blocks send each other their totals; more of them lie in memory.
constexpr bool ARE_TOTALS_SENT = HAS_AGGREGATES && SIGPS_NUM_AGGREGATES <= 8;

// A block's shared memory; two lists of targets follow. Two of a kind: one for
// supersteps of each parity.
struct ClusterMemory {
  uint32_t num_targets[2];
  uint32_t has_fault; // the superstep's totals have one
  Report of_warps[32];
  Report of_blocks[2][MOST_BLOCKS]; // zeros from gridDim.x on
  Totals totals;                    // of this block
  Totals totals_of_blocks[2][ARE_TOTALS_SENT ? MOST_BLOCKS : 1];
  Totals aggregates; // what compute() reads
};

extern __shared__ uint4 cluster_lists[];

// The vertices that got a message, [small_frontier_places], by the parity of
// the superstep.
__device__ inline uint32_t *listed_targets(const Lease &lease,
                                           int64_t superstep) {
  return reinterpret_cast<uint32_t *>(cluster_lists) +
         (superstep & 1) * lease.small_frontier_places;
}

// The address in another block's shared memory of what this block has at
// `mine`.
template <class T> __device__ inline T *of_block(T *mine, uint32_t block) {
  T *there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(mine), "r"(block));
  return there;
}

__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.release;\n\t"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

// Sums over the lanes, except num_targets, which the block counts.
__device__ inline Report sum_over_warp(Report report) {
  return {0, __reduce_add_sync(ALL_LANES, report.ran),
          __reduce_add_sync(ALL_LANES, report.active),
          __reduce_add_sync(ALL_LANES, report.sent_edges)};
}

// Sends all blocks this one's report for superstep `next`, and waits for all
// threads of the cluster. All threads read afterwards what any of them wrote
// before; one warp fences for its block.
__device__ inline void report_and_wait(const Lease &lease,
                                       ClusterMemory &memory,
                                       const ThreadCounters &counted,
                                       int64_t next) {
  Report mine =
      sum_over_warp({0, counted.ran | counted.senders << 16,
                     counted.active | (counted.retired_edges != 0) << 16,
                     uint32_t(counted.sent_edges)});
  if (lane_id() == 0)
    memory.of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x < 32) {
    mine = Report{};
    if (threadIdx.x < blockDim.x / 32)
      mine = memory.of_warps[threadIdx.x];
    mine = sum_over_warp(mine);
    if (SIGPS_FAULTS) {
      uint32_t any = mine.active >> 16 ? ANY_RETIRED : 0;
      any |= kept_fault(lease.control->faults, next - 1) ? HAS_FAULT : 0;
      mine.active = (mine.active & 0xffff) | any;
    }
    mine.num_targets = memory.num_targets[next & 1];
    if (threadIdx.x < gridDim.x) {
      *of_block(&memory.of_blocks[next & 1][blockIdx.x], threadIdx.x) = mine;
      if (ARE_TOTALS_SENT)
        *of_block(&memory.totals_of_blocks[next & 1][blockIdx.x], threadIdx.x) =
            memory.totals;
    }
    __threadfence();
  }
  asm volatile("barrier.cluster.arrive.relaxed;\n\t"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}

// The concatenated lists of all blocks, as a warp keeps them.
struct Joined {
  uint32_t total;
  uint32_t upto; // how long the list of block lane_id() is, and those before
};

__device__ inline Joined join(uint32_t length) {
  uint32_t upto = scan_warp<MOST_BLOCKS>(length);
  return {__shfl_sync(ALL_LANES, upto, MOST_BLOCKS - 1), upto};
}

// The address of entry i. By whole warps; beyond the end it is undefined.
template <class T>
__device__ inline T *entry(const Joined &lists, T *mine, uint32_t i) {
  uint32_t block = 0;
#pragma unroll
  for (uint32_t step = MOST_BLOCKS / 2; step > 0; step /= 2)
    block +=
        __shfl_sync(ALL_LANES, lists.upto, block + step - 1) <= i ? step : 0;
  uint32_t before = __shfl_sync(ALL_LANES, lists.upto, block - 1);
  return of_block(&mine[i - (block > 0 ? before : 0)],
                  min(block, gridDim.x - 1));
}

// Lists the lanes' targets. Those beyond small_frontier_places go to
// lease.targets, with which run_lease continues.
__device__ inline void list_targets(const Lease &lease, ClusterMemory &memory,
                                    int64_t superstep, bool is_first,
                                    uint32_t target) {
  uint32_t those = __ballot_sync(ALL_LANES, is_first);
  if (those == 0)
    return;
  uint32_t at = 0;
  if (lane_id() == 0)
    at = atomicAdd(&memory.num_targets[superstep & 1], __popc(those));
  at = __shfl_sync(ALL_LANES, at, 0) + __popc(those & ((1u << lane_id()) - 1));
  if (is_first && at < lease.small_frontier_places)
    listed_targets(lease, superstep)[at] = target;
  else if (is_first)
    lease.targets[atomicAdd(&lease.control->num_targets.value, 1)] = target;
}

// Continues after run_lease: from lists of senders, or from delivered messages.
__device__ inline void take_over(const Lease &lease, const NextSuperstep &now,
                                 ClusterMemory &memory) {
  auto list = [&](bool is_first, uint32_t target) {
    list_targets(lease, memory, now.superstep, is_first, target);
  };
  if (now.frontier != FRONTIER_DELIVERED) {
    scatter_listed<false>(lease, now, lease.senders, now.num_listed, list);
    return;
  }
  uint32_t count = now.num_listed;
  uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t i = round * threads_of_grid() + thread_of_grid();
    list(i < count, i < count ? lease.targets[i] : 0);
  }
}

// Hands back to run_lease: messages are delivered. Each block appends its list
// of the superstep to lease.targets.
__device__ inline void hand_back(const Lease &lease, const NextSuperstep &now,
                                 ClusterMemory &memory) {
  const uint32_t *targets = listed_targets(lease, now.superstep);
  uint32_t count =
      min(memory.num_targets[now.superstep & 1], lease.small_frontier_places);
  uint32_t rounds = (count + blockDim.x - 1) / blockDim.x;
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t i = round * blockDim.x + threadIdx.x;
    append(lease.targets, &lease.control->num_targets.value, i < count,
           i < count ? targets[i] : 0);
  }
}

// Computes the vertices that got a message, and pushes what they send.
__device__ inline void compute_and_push(const Lease &lease,
                                        const NextSuperstep &now,
                                        ClusterMemory &memory,
                                        ThreadCounters &counted) {
  const Report *reports = memory.of_blocks[now.superstep & 1];
  Joined lists = join(reports[lane_id() % MOST_BLOCKS].num_targets);
  Route route{now.superstep + 1, 1 - now.inbox_at};
  uint32_t *mine = listed_targets(lease, now.superstep);
  auto list = [&](bool is_first, uint32_t target) {
    list_targets(lease, memory, now.superstep + 1, is_first, target);
  };
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  uint32_t width = width_of_tiles(now, lists.total, 8);
  for (uint32_t begin = warp * width; begin < lists.total;
       begin += warps * width) {
    uint32_t i = begin + lane_id();
    const uint32_t *at = entry(lists, mine, i);
    bool sends = false;
    uint32_t v = 0;
    RowOfEdges row = EMPTY_ROW;
    if (lane_id() < width && i < lists.total) {
      v = *at;
      row = row_of(lease.out_edges, v); // on its way while the vertex computes
      sends = open_and_run(lease, now, v, counted);
    }
    __syncwarp(); // records that other lanes read
    scatter_tile<false>(lease, now, route, v, sends ? row : EMPTY_ROW, list);
  }
}

// What all blocks did; `most` is the length of the longest list. By whole
// warps.
__device__ inline Counters add_up(const ClusterMemory &memory, int64_t next,
                                  uint32_t &num_targets, uint32_t &most,
                                  bool &has_fault) {
  Report all{};
  if (lane_id() < MOST_BLOCKS)
    all = memory.of_blocks[next & 1][lane_id()];
  num_targets = __reduce_add_sync(ALL_LANES, all.num_targets);
  most = __reduce_max_sync(ALL_LANES, all.num_targets);
  all = sum_over_warp(all);
  has_fault = SIGPS_FAULTS && all.active >= HAS_FAULT;
  return {all.ran & 0xffff, all.active & 0xffff, all.ran >> 16, all.sent_edges,
          all.active >> 16};
}

// Whether no list of what was taken over is too long; else it is handed back.
__device__ inline bool fits(const Lease &lease, const ClusterMemory &memory,
                            NextSuperstep &now) {
  uint32_t num_targets, most;
  bool has_fault;
  add_up(memory, now.superstep, num_targets, most, has_fault);
  if (most <= lease.small_frontier_places)
    return true;
  now.frontier = FRONTIER_DELIVERED;
  now.num_listed = num_targets;
  now.num_small = 0;
  return false;
}

// Derives the next superstep, whose messages are delivered. Returns whether it
// is for the cluster: then only what changes is written.
__device__ inline bool goes_on(const Lease &lease, const Counters &done,
                               uint32_t num_targets, uint32_t most,
                               bool has_fault, NextSuperstep &now) {
  if (has_fault) {
    now.ending = FAULTED;
    return false;
  }
  uint32_t inbox_at = 1 - now.inbox_at;
  if (done.ran > 0 && done.active == 0 && done.sent_edges > 0 &&
      done.sent_edges <= lease.small_frontier_messages &&
      most <= lease.small_frontier_places && now.superstep + 1 < lease.end) {
    now.superstep++;
    now.inbox_at = inbox_at;
    now.any_retired |= done.retired_edges > 0;
    now.mean_degree = __fdividef(done.sent_edges, done.senders);
    now.num_small++;
    return true;
  }
  uint32_t num_small = now.num_small;
  NextSuperstep before = now;
  now = planned(lease, now, done, num_targets, 0);
  now.inbox_at = inbox_at;
  now.frontier = FRONTIER_DELIVERED;
  now.direction = PUSH;
  now.full_scan = done.active > 0;
  now.num_small = done.active == 0 &&
                          done.sent_edges <= lease.small_frontier_messages &&
                          most <= lease.small_frontier_places
                      ? num_small + 1
                      : 0;
  check_transition(lease, before, now, FRONTIER_DELIVERED);
  return false;
}

// Gives the aggregators their next values, where each block has the totals of
// all. Returns whether their sum has a fault. By whole blocks.
__device__ inline bool take_aggregates(const Lease &lease,
                                       ClusterMemory &memory, int64_t superstep,
                                       bool is_superstep) {
  if (is_superstep && threadIdx.x < 32) {
    Totals totals = identity_totals();
    if (lane_id() < gridDim.x)
      totals = memory.totals_of_blocks[(superstep + 1) & 1][lane_id()];
    uint32_t fault = 0;
    for (uint32_t distance = MOST_BLOCKS / 2; distance > 0; distance /= 2) {
      Totals other;
      for (int i = 0; i < SIGPS_NUM_AGGREGATES; i++)
        other.cells[i] = __shfl_down_sync(ALL_LANES, totals.cells[i], distance);
      if (lane_id() < distance)
        fault = max(fault, sigps_fold(&totals, &other));
    }
    uint32_t of_sum = 0;
    if (lane_id() == 0) {
      memory.aggregates =
          next_aggregates(lease, memory.aggregates, totals, of_sum);
      *static_cast<Totals *>(lease.aggregates) = memory.aggregates;
    }
    fault = max(fault, of_sum);
    keep_fault(lease.in, superstep, NO_VERTEX, fault);
    if (SIGPS_FAULTS && __any_sync(ALL_LANES, fault != 0) && lane_id() == 0)
      memory.has_fault = 1;
  }
  __syncthreads();
  return SIGPS_FAULTS && memory.has_fault != 0;
}

__device__ inline void give_aggregates(const Lease &lease,
                                       ClusterMemory &memory, int64_t superstep,
                                       bool is_superstep) {
  if (blockIdx.x == 0 && is_superstep) {
    Totals totals = fold_blocks(lease, superstep);
    if (threadIdx.x == 0) {
      set_aggregates(lease, superstep, totals);
      if (kept_fault(lease.control->faults, superstep) != 0)
        for (uint32_t block = 0; block < gridDim.x; block++)
          *of_block(&memory.has_fault, block) = 1;
    }
  }
  wait_for_cluster();
}

#if SIGPS_MASTER
// Asks next_phase() where nothing is left to do. By one thread.
__device__ inline void ask_for_phase(const Lease &lease, NextSuperstep &next) {
  SIGPS_CHECK(HAS_PHASES); // master() would be asked after each superstep
  NextSuperstep now = next;
  now.has_woken = 0;
  run_master(lease, now, true, true, next);
  if (next.has_woken) { // all messages are read
    next.frontier = FRONTIER_BITS;
    next.sender_filter = SENDERS_NONE;
    next.num_listed = next.num_hubs = 0;
  }
}
#endif

// Runs supersteps until lease.end, or until they are over, or no longer small.
__device__ inline void run_cluster(const Lease &lease) {
  __shared__ ClusterMemory memory;
  bool records = thread_of_grid() == blockDim.x - 1;
  uint64_t last_time = nanoseconds(), num_stats = 0;
  for (uint32_t i = threadIdx.x; i < sizeof(memory) / 4; i += blockDim.x)
    reinterpret_cast<uint32_t *>(&memory)[i] = 0;
  NextSuperstep now = lease.control->next;
  __syncthreads();
  wait_for_cluster(); // all blocks have zeroed their memory
  if (records)
    lease.control->num_stats = 0;
  if (ARE_TOTALS_SENT && threadIdx.x == 0)
    memory.aggregates = *static_cast<const Totals *>(lease.aggregates);
  if (now.ending || now.superstep >= lease.end || now.num_small == 0)
    return;
  take_over(lease, now, memory);
  report_and_wait(lease, memory, zero_counters(), now.superstep);
  bool is_mine = fits(lease, memory, now);
  while (is_mine) {
    if (threadIdx.x == 0) // reported; counted up again in the next superstep
      memory.num_targets[now.superstep & 1] = 0;
    ThreadCounters counted = zero_counters();
    compute_and_push(lease, now, memory, counted);
    if (HAS_AGGREGATES) {
      Totals totals =
          fold_block(counted.totals, {lease.in, now.superstep, NO_VERTEX});
      if (threadIdx.x == 0)
        (ARE_TOTALS_SENT ? memory.totals : lease.totals[blockIdx.x]) = totals;
    }
    int64_t superstep = now.superstep;
    report_and_wait(lease, memory, counted, superstep + 1);
    uint32_t num_targets, most;
    bool has_fault;
    Counters done = add_up(memory, superstep + 1, num_targets, most, has_fault);
    if (ARE_TOTALS_SENT)
      has_fault |= take_aggregates(lease, memory, superstep, done.ran > 0);
    else if (HAS_AGGREGATES) {
      give_aggregates(lease, memory, superstep, done.ran > 0);
      has_fault |= SIGPS_FAULTS && memory.has_fault != 0;
    }
    is_mine = goes_on(lease, done, num_targets, most, has_fault, now);
    if (records && done.ran > 0 && !has_fault)
      lease.stats[num_stats++] = stats_of(superstep, PUSH, done, last_time);
  }
  hand_back(lease, now, memory);
  wait_for_cluster(); // all have listed what they hand back
  if (records) {
    lease.control->num_stats = num_stats;
#if SIGPS_MASTER
    ask_for_phase(lease, now);
#endif
    lease.control->next = now;
    lease.control->num_targets.value = 0;
  }
#if SIGPS_MASTER
  wait_for_cluster();
  if (lease.control->next.has_woken)
    wake_all(lease);
#endif
}

} // namespace sigps
