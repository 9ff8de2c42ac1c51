// A lease of supersteps: a cooperative launch that runs until nothing is active
// and nothing in flight, until lease.end, until its time is up, or until
// frontiers are so small that run_small_frontier continues (cluster.cuh). The
// host takes no part between supersteps.
//
// A superstep is a pull (gather.cuh) or a push (scatter.cuh) where messages
// combine along edges, a pull of lists (lists.cuh) where compute() reads them
// one by one, one by key (grouped.cuh), or a reading of direct messages
// (direct_messages.cuh). It ends
// with a barrier at which the last block reduces the counters, records
// statistics and derives the next superstep (next_superstep.cuh). direction.cuh
// has the rule of push or pull. By the edge schedule a superstep is a pass over
// all edges (edge_pass.cuh), recorded as a pull.
//
// Schedule: any number of blocks that are resident at once, of a multiple of 32
// threads.
//
//   SIGPS_THREADS, SIGPS_BLOCKS  threads of a block, and how many of these a
//                                multiprocessor must be able to hold
//   SIGPS_CLUSTER_THREADS        threads of a block of run_small_frontier, or
//                                0 without a cluster
//   SIGPS_PEERS                  1: other GPUs have partitions (halo.cuh)
//   SIGPS_BY_EDGE                1: the edge schedule
//   SIGPS_TILES                  1: in-edges lie in tiles and rows
//   SIGPS_TILE_COLUMNS           1: with columns whose values differ
//   SIGPS_TURNS                  1: the run has the GPU by turns: leases end by
//                                the clock, and leave states by gid
//   SIGPS_PACKED                 1: in-edges stay packed; 2: they are the
//                                out-edges, too, which may be pushed; 3, 4:
//                                the same of one rank of several
//   SIGPS_FED                    1: some of their pages are on disk
//   SIGPS_HEADS                  1: pulls of these look at heads of rows first
//   SIGPS_DEBUG                  1: traps where an invariant does not hold

#ifndef SIGPS_BY_EDGE
#define SIGPS_BY_EDGE 0
#endif

#include "next_superstep.cuh"

#if SIGPS_MASTER
#include "master.cuh"
#endif
#if SIGPS_PEERS
#include "halo.cuh"
#endif
// Each has advance(), which runs what a superstep is; below for pull and push.
#if SIGPS_DIRECT
#include "direct_messages.cuh"
#elif (SIGPS_LISTED || SIGPS_GROUPED) && SIGPS_PACKED
#include "gather_packed.cuh"
#elif SIGPS_LISTED
#include "lists.cuh"
#elif SIGPS_GROUPED
#include "grouped.cuh"
#elif SIGPS_BY_EDGE
#include "edge_pass.cuh"
#else
#include "gather_heads.cuh"
#include "gather_packed.cuh"
#include "scatter.cuh"
#include "scatter_packed.cuh"
#include "tiles.cuh"
#if SIGPS_PACKED == 4
#include "crossing.cuh"
#endif
#endif
#if SIGPS_CLUSTER_THREADS
#include "cluster.cuh"
#endif
#if SIGPS_NUM_EDGE_STATES
#include "edge_states.cuh"
#endif

using namespace sigps;

namespace {

__device__ void add_counters(const Lease &lease, const NextSuperstep &now,
                             const ThreadCounters &counted) {
  // In the order of Counters. A block's counts fit 32 bits, except edges, and
  // there are native atomics for 32 bits.
  constexpr uint32_t NUM_COUNTED = 5, FIRST_EDGES = 3;
  __shared__ uint32_t block_sums[FIRST_EDGES];
  __shared__ unsigned long long edges_of_block[NUM_COUNTED - FIRST_EDGES];
  if (threadIdx.x < FIRST_EDGES)
    block_sums[threadIdx.x] = 0;
  else if (threadIdx.x < NUM_COUNTED)
    edges_of_block[threadIdx.x - FIRST_EDGES] = 0;
  if (!__syncthreads_or(counted.ran)) { // in a small superstep, most blocks
    if (HAS_AGGREGATES && threadIdx.x == 0)
      lease.totals[blockIdx.x] = identity_totals();
    return;
  }
  add_where_any(&block_sums[0], counted.ran);
  add_where_any(&block_sums[1], counted.active);
  add_where_any(&block_sums[2], counted.senders);
  add_where_any(&edges_of_block[0], counted.sent_edges);
  add_where_any(&edges_of_block[1],
                static_cast<unsigned long long>(counted.retired_edges));
  __syncthreads();
  if (threadIdx.x < NUM_COUNTED) { // all of them are on their way at once
    unsigned long long mine = threadIdx.x < FIRST_EDGES
                                  ? block_sums[threadIdx.x]
                                  : edges_of_block[threadIdx.x - FIRST_EDGES];
    auto *all =
        reinterpret_cast<unsigned long long *>(&lease.control->counters);
    if (mine != 0)
      atomicAdd(&all[threadIdx.x], mine);
  }
  if (HAS_AGGREGATES) {
    Totals totals =
        fold_block(counted.totals, {lease.in, now.superstep, NO_VERTEX});
    if (threadIdx.x == 0)
      lease.totals[blockIdx.x] = totals;
  }
}

// Gives the aggregators their next values, or keeps what they would be of for
// the rest of the superstep. By one whole block.
__device__ void fold_totals(const Lease &lease, int64_t superstep,
                            bool is_complete) {
  Totals totals = fold_blocks(lease, superstep);
  if (threadIdx.x != 0)
    return;
  if (SIGPS_DIRECT) {
    keep_fault(lease.in, superstep, NO_VERTEX,
               sigps_fold(&totals, lease.carried));
    *lease.carried = is_complete ? identity_totals() : totals;
  }
  if (is_complete)
    set_aggregates(lease, superstep, totals);
}

#if SIGPS_TURNS
// Whether the host wants the lease to end. It takes about a microsecond to look
// into its memory, so not every short superstep does. By one thread.
__device__ bool is_awaited(const Lease &lease, uint64_t now) {
  constexpr uint64_t EVERY = 100000; // nanoseconds
  if (now - lease.control->looked_at < EVERY)
    return false;
  lease.control->looked_at = now;
  return *static_cast<const volatile uint32_t *>(lease.awaited) != 0;
}
#endif

// Derives the next superstep from what this one did. By one thread.
__device__ void plan_next(const Lease &lease, const NextSuperstep &now,
                          const AllGpus &all_gpus) {
  // All blocks wait for this thread, and memory takes long to answer: what it
  // needs is asked for at once.
  Control *control = lease.control;
  unsigned long long fault = SIGPS_PEERS
                                 ? all_gpus.has_fault
                                 : kept_fault(control->faults, now.superstep);
  Counters done = SIGPS_PEERS ? all_gpus.done : control->counters;
  uint32_t num_listed = control->num_new.value;
  uint32_t num_hubs = control->num_new_hubs.value;
  uint64_t num_stats = control->num_stats, last_time = control->last_time;
  control->next_block_row.value = 0; // for the rest of a superstep, too
  if (fault != 0) {
    control->next.ending = FAULTED;
    return;
  }
  if (SIGPS_PEERS ? some_gpu_lacks_capacity(all_gpus.done)
                  : lacks_capacity(lease)) {
    control->next.ending = NO_CAPACITY;
    return;
  }
#if SIGPS_FED && !SIGPS_PEERS
  if (*lease.packed.damaged != 0xffffffff) { // the host has the error
    control->next.ending = FINISHED;
    return;
  }
#endif
  if (SIGPS_DIRECT && !SIGPS_PEERS)
    done.sent_edges = *lease.in.num_direct;
  control->counters = Counters{};
  for (uint32_t i = 0; i < NUM_TASK_COUNTERS; i++)
    control->next_task[i].value = 0;
  if (SIGPS_DIRECT && control->is_lost) {
    control->next.ending = UNKNOWN_TARGET;
    return;
  }
#if SIGPS_TURNS
  uint64_t began = last_time;
#endif
  bool counts =
      (done.ran > 0 || counts_idle(lease, now)) && now.remaining != PUBLISHING;
  if (counts) {
    lease.stats[num_stats] =
        stats_of(now.superstep, now.direction, done, last_time, all_gpus);
    control->num_stats = num_stats + 1;
    control->last_time = last_time;
  }
  control->next = planned(lease, now, done, num_listed, num_hubs);
#if SIGPS_TURNS
  uint64_t ended = nanoseconds();
  control->next.is_time_up =
      ended - control->began + (ended - began) > lease.most_time ||
      is_awaited(lease, ended);
#endif
#if SIGPS_MASTER
  run_master(lease, now, done.ran > 0, counts, control->next);
#endif
  for (Counter *counter :
       {&control->num_senders, &control->num_hubs, &control->num_targets,
        &control->num_new, &control->num_new_hubs})
    counter->value = 0;
#if SIGPS_PEERS
  if (control->next.frontier ==
      FRONTIER_LISTS) { // ghosts are listed behind them
    control->num_senders.value = control->next.num_listed;
    control->num_hubs.value = control->next.num_hubs;
  }
#endif
}

#if !SIGPS_DIRECT && !SIGPS_LISTED && !SIGPS_GROUPED && !SIGPS_BY_EDGE
#if SIGPS_TILES
template <SenderFilter FILTER>
__device__ void gather_tiles(const Lease &lease, const NextSuperstep &now,
                             uint32_t &generation, ThreadCounters &counted) {
  combine_tiles<FILTER>(lease, now);
  uint32_t number = gather_free<FILTER>(lease, now, counted);
  wait_for_all(&lease.control->barrier, generation);
  gather<FILTER>(lease, now, counted, true, number);
}
#endif

__device__ void pull(const Lease &lease, const NextSuperstep &now,
                     uint32_t &generation, ThreadCounters &counted) {
  if (now.frontier == FRONTIER_LISTS) {
    clear_bits(lease.sent[now.superstep & 1], lease.num_lids);
    wait_for_all(&lease.control->barrier, generation);
    mark_senders(lease, now);
#if SIGPS_PEERS
    uint32_t *bits = lease.sent[now.superstep & 1];
    for_listed_ghosts(lease, now, [&](bool is_one, uint32_t ghost) {
      if (is_one)
        atomicOr(&bits[ghost / 32], 1u << ghost % 32);
    });
#endif
    wait_for_all(&lease.control->barrier, generation);
  }
#if SIGPS_TILES
  if (now.sender_filter == SENDERS_NONE)
    gather<SENDERS_NONE>(lease, now, counted);
  else if (now.sender_filter == SENDERS_BITMAP)
    gather_tiles<SENDERS_BITMAP>(lease, now, generation, counted);
  else
    gather_tiles<SENDERS_ALL>(lease, now, generation, counted);
#elif SIGPS_HEADS
  if (now.sender_filter == SENDERS_NONE)
    gather_by_heads<SENDERS_NONE>(lease, now, generation, counted);
  else if (now.sender_filter == SENDERS_BITMAP)
    gather_by_heads<SENDERS_BITMAP>(lease, now, generation, counted);
  else
    gather_by_heads<SENDERS_ALL>(lease, now, generation, counted);
#elif SIGPS_PACKED
  pull_pages(lease, now, counted);
#else
  if (now.sender_filter == SENDERS_NONE)
    gather<SENDERS_NONE>(lease, now, counted);
  else if (now.sender_filter == SENDERS_BITMAP)
    gather<SENDERS_BITMAP>(lease, now, counted);
  else
    gather<SENDERS_ALL>(lease, now, counted);
#endif
}

__device__ void push(const Lease &lease, const NextSuperstep &now,
                     uint32_t &generation, ThreadCounters &counted) {
#if SIGPS_NEUTRAL
  if constexpr (HAS_PUSH) {
    Control *control = lease.control;
    uint32_t num_targets = now.num_listed;
    bool is_silent = now.full_scan && now.sender_filter == SENDERS_NONE;
    bool has_arrived = SIGPS_PACKED == 4 && now.remaining == ARRIVED;
    if (has_arrived) {
#if SIGPS_PACKED == 4
      cross_messages(lease, now, generation);
      num_targets = control->num_targets.value;
#endif
    } else if (now.frontier != FRONTIER_DELIVERED && !is_silent) {
      uint32_t count = now.num_listed, num_hubs = now.num_hubs;
      // Without hubs, listed ghosts are pushed from their lists as they are.
      bool has_lists = now.frontier != FRONTIER_BITS;
      bool has_ghosts = SIGPS_PEERS && SIGPS_PACKED != 4 && has_lists;
      bool are_light = has_ghosts && lease.num_hubs == 0;
      if (!has_lists || (has_ghosts && !are_light)) {
        if (!has_lists)
          list_senders(lease, now);
#if SIGPS_PEERS
        else
          for_listed_ghosts(lease, now, [&](bool is_one, uint32_t ghost) {
            append_senders(lease, &control->num_senders.value,
                           &control->num_hubs.value, is_one, ghost);
          });
#endif
        wait_for_all(&control->barrier, generation);
        count = control->num_senders.value;
        num_hubs = control->num_hubs.value;
      }
#if SIGPS_PACKED == 2 || SIGPS_PACKED == 4
      scatter_packed(lease, now, &control->num_targets.value, count, num_hubs);
#else
      scatter(lease, now, &control->num_targets.value, count, num_hubs);
#endif
#if SIGPS_PEERS && !SIGPS_PACKED
      if (are_light)
        for_lists_of_ghosts(
            lease, now, [&](const uint32_t *ghosts, uint32_t num_ghosts) {
              scatter_listed<true>(lease, now, ghosts, num_ghosts,
                                   [&](bool is_first, uint32_t target) {
                                     list_target(lease, now,
                                                 &control->num_targets.value,
                                                 is_first, target);
                                   });
            });
#endif
      wait_for_all(&control->barrier, generation);
#if SIGPS_PACKED == 4
      if (!cross_messages(lease, now, generation))
        return;
#endif
      num_targets = control->num_targets.value;
    }
    if (now.full_scan)
      scan_all(lease, now, counted);
    else
      compute_targets(lease, now, num_targets, &control->num_new.value,
                      &control->num_new_hubs.value, counted, [&](uint32_t v) {
#if SIGPS_PEERS
                        publish_one(lease, now, v);
#endif
                      });
  }
#endif
}

__device__ void advance(const Lease &lease, const NextSuperstep &now,
                        uint32_t &generation, ThreadCounters &counted) {
  if (now.direction == PUSH)
    push(lease, now, generation, counted);
  else
    pull(lease, now, generation, counted);
}
#endif

#if (SIGPS_LISTED || SIGPS_GROUPED) && SIGPS_PACKED && !SIGPS_DIRECT
__device__ void advance(const Lease &lease, const NextSuperstep &now,
                        uint32_t &generation, ThreadCounters &counted) {
  pull_pages(lease, now, counted);
}
#endif

// Ends a superstep: the last block that arrives reduces the counters, records
// statistics and derives the next superstep.
__device__ void end_superstep(const Lease &lease, const NextSuperstep &now,
                              uint32_t &generation) {
  Control *control = lease.control;
#if SIGPS_PEERS && !SIGPS_DIRECT
  if (now.direction == PULL || now.full_scan) {
    wait_for_all(&control->barrier, generation);
#if SIGPS_TILES
    bool early = goes_early(lease, now);
    if (threadIdx.x == 0)
      num_combined() = early ? lease.tiles.num_early : 0;
    if (early)
      publish_and_combine(lease, now);
    else
#endif
      publish_bits(lease, now);
  }
  release_to_peers();
#endif
#if SIGPS_NUM_EDGE_STATES
  if (lease.wrote != nullptr && lease.carries_on) { // else the hosts commit
    wait_for_all(&control->barrier, generation);
    if (!lacks_capacity(lease))
      commit_edge_states(lease);
  }
#endif
  wait_for_all(&control->barrier, generation, [&] {
    __shared__ AllGpus all_gpus;
    if (threadIdx.x == 0)
      all_gpus = ONE_GPU;
    bool all_there = true;
#if SIGPS_PEERS
    all_there = wait_for_all_gpus(lease, now, all_gpus);
#else
    if (HAS_AGGREGATES && (control->counters.ran > 0 || counts_idle(lease, now)))
      fold_totals(lease, now.superstep, !lacks_capacity(lease));
#endif
    __syncthreads();
#if SIGPS_NUM_EDGE_STATES
    if (lease.wrote != nullptr && lease.carries_on && !lacks_capacity(lease))
      for (uint32_t word = threadIdx.x;
           word < WORDS_OF_GRID && word * 32 < lease.num_owned;
           word += blockDim.x)
        lease.wrote[word] = 0;
#endif
    uint32_t *old = lease.sent[now.superstep & 1];
#if SIGPS_DIRECT || SIGPS_LISTED || SIGPS_GROUPED || SIGPS_BY_EDGE
    uint32_t num_rows = lease.num_block_rows;
#else
    uint32_t num_rows = rows_with_atomic_bits(lease);
#endif
    for (uint32_t i = threadIdx.x; i * 32 < num_rows; i += blockDim.x)
      old[i] = 0; // bits that the next pull sets one by one
#if SIGPS_PACKED
#if !SIGPS_DIRECT
    clear_ends_of_chains(lease, old);
#endif
    if (threadIdx.x == 0) {
      unsigned long long *num_read = lease.packed.num_read;
#if !SIGPS_PEERS
      all_gpus.num_read = 4 * num_read[0];
      all_gpus.num_skipped = lease.packed.num_chains - num_read[1];
#endif
#if SIGPS_FED
      if (SIGPS_WALKS ||
          (now.direction == PULL && now.sender_filter != SENDERS_NONE))
        ++*lease.packed.num_sweeps;
#endif
    }
#endif
    if (threadIdx.x == 0 && all_there)
      plan_next(lease, now, all_gpus);
#if SIGPS_PACKED // what the rest of a superstep reads is added
    if (threadIdx.x == 0 && control->next.ending != NO_CAPACITY)
      lease.packed.num_read[0] = lease.packed.num_read[1] = 0;
#endif
  });
}

#if SIGPS_TURNS
template <class T>
__device__ void copy_by_gid(const Lease &lease, const void *from, void *to) {
  for (uint32_t i = thread_of_grid(); i < lease.num_owned;
       i += gridDim.x * blockDim.x)
    static_cast<T *>(to)[i] = static_cast<const T *>(from)[lease.by_gid[i]];
}

// Writes the states in the order of gids. Who shares the GPU then brings them
// without another kernel, which would wait for leases of other runs.
__device__ void write_answers(const Lease &lease) {
  for (uint32_t k = 0; k < lease.num_answers; k++) {
    const void *from = lease.in.states[k];
    void *to = lease.answers[k];
    switch (lease.answer_bytes[k]) {
    case 1:
      copy_by_gid<uint8_t>(lease, from, to);
      break;
    case 2:
      copy_by_gid<uint16_t>(lease, from, to);
      break;
    case 4:
      copy_by_gid<uint32_t>(lease, from, to);
      break;
    case 8:
      copy_by_gid<uint64_t>(lease, from, to);
      break;
    }
  }
}
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    run_lease(const __grid_constant__ Lease lease) {
  __shared__ NextSuperstep now;
  uint32_t generation = load_acquire(&lease.control->barrier.generation);
  if (threadIdx.x == 0) {
    now = lease.control->next;
    now.is_time_up = 0;
    if (!HAS_PUSH) // the host's table may say push
      now.direction = PULL;
    check_begin(now);
#if SIGPS_PEERS
    has_published() = 0;
#endif
#if SIGPS_TILES
    num_combined() = 0;
#endif
  }
  if (thread_of_grid() == 0) { // no other thread reads these before a barrier
    lease.control->began = lease.control->last_time = nanoseconds();
    lease.control->looked_at = lease.control->began;
    lease.control->num_stats = 0;
  }
  __syncthreads();
  while (!now.ending && !(SIGPS_TURNS && now.is_time_up) &&
         now.superstep < lease.end && now.num_small < SMALL_BEFORE_SWITCH) {
    if (!SIGPS_PEERS || now.remaining != PUBLISHING) {
      ThreadCounters counted = zero_counters();
      advance(lease, now, generation, counted);
      if (SIGPS_PEERS && (SIGPS_DIRECT || SIGPS_PACKED == 4) &&
          lease.control->next.ending)
        return; // messages did not arrive
      if (now.remaining == SENDING)
        return; // they have yet to be brought
      add_counters(lease, now, counted);
    }
    end_superstep(lease, now, generation);
    if (threadIdx.x == 0)
      now = lease.control->next;
    __syncthreads();
#if SIGPS_MASTER
    if (now.has_woken) {
      wake_all(lease);
      wait_for_all(&lease.control->barrier, generation);
    }
#endif
  }
#if SIGPS_TURNS
  if (now.ending == FINISHED || now.ending == STOPPED)
    write_answers(lease);
#endif
}

#if SIGPS_CLUSTER_THREADS
// Continues where run_lease stopped at a small frontier, and stops at a larger
// one.
extern "C" __global__ void __launch_bounds__(SIGPS_CLUSTER_THREADS, 1)
    run_small_frontier(const __grid_constant__ Lease lease) {
  if constexpr (HAS_PUSH)
    run_cluster(lease);
}
#endif
