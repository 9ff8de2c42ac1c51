// Direct messages: those that compute() sent in the last superstep are sorted
// by target, by counting; every vertex that has any, or is active, computes and
// sends. With other GPUs, each reads all their buffers and takes the messages
// to its own vertices; an inter-GPU barrier stands between the reading and the
// next sending.
//
// Schedule: a thread a message, then a thread a vertex, or with SIGPS_BY_WARP a
// warp; any grid. Where messages combine, those of a vertex with more than
// ALONE are combined by its warp, and of one with more than BY_WARP_AT_MOST by
// a block, after all others; with SIGPS_BY_TEAM vertices of so many messages or
// edges run so. The order of one target's
// messages is unspecified. A vertex that finds the buffer full keeps its state;
// the host drops its messages and makes the buffer larger.

#pragma once

#include "sorted_lists.cuh"
#include "walk_packed.cuh"
#if SIGPS_PEERS
#include "halo.cuh"
#endif

namespace sigps {

// The lid of a user's id, or NO_VERTEX: by bisection where ids are any numbers.
__device__ inline uint32_t lid_of_id(const Lease &lease, int64_t id) {
  const DirectMessages &direct = lease.direct;
  if (direct.sorted_ids == nullptr)
    return id >= 0 && id < lease.num_owned ? direct.lids_of_gids[id]
                                           : NO_VERTEX;
  uint32_t low = 0, high = lease.num_owned;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (direct.sorted_ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < lease.num_owned && direct.sorted_ids[low] == id
             ? direct.lids_of_ids[low]
             : NO_VERTEX;
}

#if SIGPS_PEERS
// Calls visit(peer, i, lid) for all direct messages to this GPU's vertices,
// from all GPUs. Returns how many from other GPUs this thread visited.
template <class Visit>
__device__ inline uint32_t for_received(const Lease &lease, Visit visit) {
  const Halo &halo = lease.halo;
  uint32_t count = 0;
  for (uint32_t k = 0; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    const Peer &peer = halo.peers[rank];
    uint64_t num_direct = __ldcg(peer.num_direct);
    for (uint64_t i = thread_of_grid(); i < num_direct;
         i += threads_of_grid()) {
      long long target =
          __ldcg(reinterpret_cast<const long long *>(peer.direct_targets) + i);
      uint32_t lid = __ldcg(&peer.direct_kinds[i]) == 0
                         ? lease.direct.lids_of_gids[target]
                         : lid_of_id(lease, target);
      if (lid == NO_VERTEX)
        continue;
      visit(peer, i, lid);
      count += k > 0;
    }
  }
  return count;
}

// Waits until all GPUs have read their messages, `num_read` of them here.
// Returns whether all that were sent have been read; otherwise the lease has
// ended. By one whole block.
__device__ inline bool is_all_read(const Lease &lease, uint64_t num_read) {
  constexpr uint32_t AT_ONCE = 8;
  __shared__ RankReport mine, received[AT_ONCE];
  __shared__ int32_t lost;
  __shared__ uint32_t is_all;
  const Halo &halo = lease.halo;
  uint32_t number = uint32_t(*halo.num_barriers);
  uint32_t warp = threadIdx.x / 32, num_warps = blockDim.x / 32;
  if (threadIdx.x == 0) {
    mine = RankReport{};
    mine.done.ran = num_read;
    mine.done.sent_edges = *lease.in.num_direct;
    lost = -1;
  }
  __syncthreads();
  fence_for_all();
  for (uint32_t rank = warp; rank < halo.num_ranks; rank += num_warps) {
    Receiver to = receiver_of(lease, number, rank);
    send_report({to.halves, 0}, number, mine);
  }
  uint64_t posted = 0, read = 0;
  for (uint32_t first = 0; first < halo.num_ranks; first += AT_ONCE) {
    uint32_t end = min(first + AT_ONCE, halo.num_ranks);
    for (uint32_t rank = first + warp; rank < end; rank += num_warps)
      if (!receive_report(lease, number, rank, received[rank - first]))
        lost = rank;
    __syncthreads();
    for (uint32_t rank = first; rank < end; rank++) {
      posted += received[rank - first].done.sent_edges;
      read += received[rank - first].done.ran;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    *halo.num_barriers = number + 1;
    is_all = lost < 0 && posted == read;
    if (lost >= 0)
      lease.control->lost_id = lost;
    if (!is_all)
      lease.control->next.ending = lost >= 0 ? PEER_LOST : UNKNOWN_TARGET;
  }
  __syncthreads();
  return is_all;
}
#endif

// Counts the messages of every vertex. Targets become lids; the sender is
// replaced by the number of the message among those of its target.
__device__ inline void count_messages(const Lease &lease, uint64_t num_direct) {
  const Arguments &arguments = lease.in;
  for (uint64_t first = thread_of_grid() / 32 * 32; first < num_direct;
       first += threads_of_grid()) {
    uint64_t i = first + lane_id();
    uint32_t lid = NO_VERTEX;
    if (i < num_direct) {
      int64_t target = arguments.direct_targets[i];
      lid = arguments.direct_kinds[i] == 0 ? lease.direct.lids_of_gids[target]
                                           : lid_of_id(lease, target);
      arguments.direct_targets[i] = lid;
      if (lid == NO_VERTEX) {
        lease.control->lost_id = target;
        lease.control->is_lost = 1;
      }
    }
    // Lanes with one target add together: a million atomics on one address take
    // a millisecond.
    uint32_t those = __match_any_sync(ALL_LANES, lid);
    uint32_t giver = __ffs(those) - 1, number = 0;
    if (lid != NO_VERTEX && lane_id() == giver)
      number = atomicAdd(&lease.direct.counts[lid], __popc(those));
    number = __shfl_sync(ALL_LANES, number, giver) +
             __popc(those & ((1u << lane_id()) - 1));
    if (lid != NO_VERTEX)
      arguments.direct_senders[i] = number;
  }
}

// The sum of the values of this thread and of those before it in the block, and
// of all of the block's.
__device__ inline uint64_t scan_block(uint64_t value, uint64_t &total) {
  __shared__ uint64_t of_warp[32];
  value = scan_warp(value);
  if (lane_id() == 31)
    of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  total = 0;
  for (uint32_t warp = 0; warp < blockDim.x / 32; warp++) {
    value += warp < threadIdx.x / 32 ? of_warp[warp] : 0;
    total += of_warp[warp];
  }
  __syncthreads();
  return value;
}

__device__ inline uint64_t sum_block(uint64_t value) {
  uint64_t total;
  scan_block(value, total);
  return total;
}

// Makes counts of messages into offsets in the order of targets, and sets the
// counts to 0 where there are no other GPUs. Every block has vertices of its
// own.
__device__ inline void place_messages(const Lease &lease,
                                      uint32_t &generation) {
  const DirectMessages &direct = lease.direct;
  uint32_t n = lease.num_owned;
  constexpr uint32_t AT_ONCE = 4; // successive vertices of a thread
  uint32_t share = (n + gridDim.x - 1) / gridDim.x;
  uint32_t begin = min(uint64_t(n), uint64_t(share) * blockIdx.x);
  uint32_t end = min(n, begin + share);
  uint64_t sum = 0;
  for (uint32_t v = begin + threadIdx.x; v < end; v += blockDim.x)
    sum += direct.counts[v];
  sum = sum_block(sum);
  if (threadIdx.x == 0)
    direct.block_sums[blockIdx.x] = sum;
  wait_for_all(&lease.control->barrier, generation);
  uint64_t base = 0;
  for (uint32_t block = threadIdx.x; block < blockIdx.x; block += blockDim.x)
    base += direct.block_sums[block];
  base = sum_block(base);
  for (uint32_t first = begin; first < end; first += AT_ONCE * blockDim.x) {
    uint32_t mine = first + AT_ONCE * threadIdx.x;
    uint32_t counts[AT_ONCE];
    uint64_t count = 0;
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; k++) {
      counts[k] = mine + k < end ? direct.counts[mine + k] : 0;
      count += counts[k];
    }
    uint64_t total, at = base + scan_block(count, total) - count;
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; k++)
      if (mine + k < end) {
        lease.offsets[mine + k] = at;
        at += counts[k];
        if (!SIGPS_PEERS && counts[k] != 0)
          direct.counts[mine + k] = 0;
      }
    base += total;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
    lease.offsets[n] = base;
  wait_for_all(&lease.control->barrier, generation);
}

__device__ inline void put_in_order(const Lease &lease, uint64_t position,
                                    const Message *message) {
#if SIGPS_LISTED
  sigps_list(&lease.in, position, message);
#else
  lease.direct.messages[position] = *message;
#endif
}

#if SIGPS_PEERS
__device__ inline void sort_messages(const Lease &lease, uint32_t &generation) {
  uint32_t *counts = lease.direct.counts;
  for_received(lease, [&](const Peer &, uint64_t, uint32_t lid) {
    atomicAdd(&counts[lid], 1);
  });
  wait_for_all(&lease.control->barrier, generation);
  place_messages(lease, generation);
  uint32_t crossed =
      for_received(lease, [&](const Peer &peer, uint64_t i, uint32_t lid) {
        uint32_t before = atomicSub(&counts[lid], 1);
        Message message = peer.direct_messages[i];
        put_in_order(lease, lease.offsets[lid] + before - 1, &message);
      });
  __syncwarp();
  add_where_any(&lease.halo.num_published[lease.halo.rank], crossed);
  wait_for_all(&lease.control->barrier, generation, [&] {
    bool goes_on = is_all_read(lease, lease.offsets[lease.num_owned]);
    if (threadIdx.x == 0 && goes_on)
      *lease.in.num_direct = 0;
  });
}
#else
__device__ inline void sort_messages(const Lease &lease, uint32_t &generation) {
  const Arguments &arguments = lease.in;
  uint64_t num_direct = *arguments.num_direct;
  count_messages(lease, num_direct);
  wait_for_all(&lease.control->barrier, generation);
  place_messages(lease, generation);
  const Message *posted =
      static_cast<const Message *>(arguments.direct_messages);
  for (uint64_t i = thread_of_grid(); i < num_direct; i += threads_of_grid()) {
    uint32_t lid = arguments.direct_targets[i];
    if (lid == NO_VERTEX)
      continue;
    put_in_order(lease, lease.offsets[lid] + arguments.direct_senders[i],
                 &posted[i]);
  }
  wait_for_all(&lease.control->barrier, generation,
               [&] { *arguments.num_direct = 0; });
}
#endif

__device__ inline uint64_t num_received(const Lease &lease, uint32_t v) {
  return lease.offsets[v + 1] - lease.offsets[v];
}

constexpr uint64_t ALONE = 32, BY_WARP_AT_MOST = 4096;

#if SIGPS_LISTED
constexpr bool SHARES_VERTICES = SIGPS_BY_TEAM;

__device__ inline Inbox read_inbox(const Lease &lease, const NextSuperstep &,
                                   uint32_t v) {
  Inbox inbox = listed(lease.offsets[v], lease.offsets[v + 1]);
#if SIGPS_SORTED
  inbox = sorted(lease, inbox);
#endif
  return inbox;
}
#else
constexpr bool SHARES_VERTICES = !SIGPS_BY_WARP;

// Every `stride`th of a vertex's messages from one on, combined.
__device__ SIGPS_ONCE Inbox read_inbox(const Lease &lease,
                                       const NextSuperstep &now, uint32_t v,
                                       uint32_t first = 0,
                                       uint32_t stride = 1) {
  Inbox inbox = empty_inbox();
  Occasion when{lease.in, now.superstep, v};
  uint64_t end = lease.offsets[v + 1];
  for (uint64_t i = lease.offsets[v] + first; i < end; i += stride) {
    Slots value;
    when.keep(sigps_lift(&lease.in, now.superstep, &lease.direct.messages[i],
                         &value));
    put(inbox, value, when);
  }
  return inbox;
}

// The same of the vertices of a warp's lanes, where each has one or NO_VERTEX,
// with no more than BY_WARP_AT_MOST messages.
__device__ inline Inbox read_inboxes(const Lease &lease,
                                     const NextSuperstep &now, uint32_t v) {
  uint64_t count = v == NO_VERTEX ? 0 : num_received(lease, v);
  Inbox mine = empty_inbox();
  if (count > 0 && count <= ALONE)
    mine = read_inbox(lease, now, v);
  uint32_t those = __ballot_sync(ALL_LANES, count > ALONE);
  for (; those != 0; those &= those - 1) {
    uint32_t lane = __ffs(those) - 1;
    uint32_t other = __shfl_sync(ALL_LANES, v, lane);
    Inbox inbox = combine_warp(read_inbox(lease, now, other, lane_id(), 32),
                               {lease.in, now.superstep, other});
    Inbox found = inbox_of(inbox, 0);
    if (lane_id() == lane)
      mine = found;
  }
  return mine;
}
#endif

// Whether a vertex found the buffer full; clears its bit.
__device__ inline bool takes_overflowed(const Lease &lease, uint32_t v) {
  uint32_t bit = 1u << v % 32;
  if (!SIGPS_BY_WARP)
    return atomicAnd(&lease.direct.overflowed[v / 32], ~bit) & bit;
  uint32_t before = 0;
  if (lane_id() == 0)
    before = atomicAnd(&lease.direct.overflowed[v / 32], ~bit);
  return __shfl_sync(ALL_LANES, before, 0) & bit;
}

// Whether a vertex runs in this pass of the superstep.
__device__ inline bool takes_part(const Lease &lease, const NextSuperstep &now,
                                  uint32_t v) {
  return (now.remaining != OVERFLOWED || takes_overflowed(lease, v)) &&
         lease.status[v] != RETIRED;
}

// The same for a whole block.
__device__ inline bool
takes_part_by_block(const Lease &lease, const NextSuperstep &now, uint32_t v) {
  __shared__ uint32_t runs;
  if (threadIdx.x == 0)
    runs = takes_part(lease, now, v);
  __syncthreads();
  bool is_one = runs;
  __syncthreads();
  return is_one;
}

#if SIGPS_LISTED
// Runs a vertex that has messages or is active, by so many threads.
__device__ inline void run_received(const Lease &lease,
                                    const NextSuperstep &now, uint32_t v,
                                    ThreadCounters &counted, uint32_t threads) {
  uint8_t status = lease.status[v];
  Inbox inbox = read_inbox(lease, now, v);
  if (inbox.has || status == ACTIVE)
    run_vertex(lease, now, v, status, inbox, counted, threads);
}
#endif

// Computes all vertices, a thread each. As many as there are messages for
// combine them, or run compute() as a team, which shares edges, too.
__device__ inline void compute_received(const Lease &lease,
                                        const NextSuperstep &now,
                                        ThreadCounters &counted) {
#if SIGPS_LISTED && SIGPS_BY_TEAM
  // Of a vertex that does not run none: most do not, and their edges are not
  // counted.
  auto work_of = [&](uint32_t v) {
    uint64_t received = num_received(lease, v);
    if (received == 0 && lease.status[v] != ACTIVE)
      return uint64_t(0);
    uint64_t edges = SIGPS_WALKS ? lease.in.out_degrees[v] : 0;
    return max(max(received, edges), uint64_t(1));
  };
  for (uint32_t v = thread_of_grid(); v < lease.num_owned;
       v += threads_of_grid()) {
    uint64_t work = work_of(v);
    if (work > 0 && work <= ALONE && takes_part(lease, now, v))
      run_received(lease, now, v, counted, 1);
  }
  // Hubs are next to each other: a warp looks at eights of vertices far apart.
  uint32_t warps = threads_of_grid() / 32;
  for (uint32_t first = spread_warp() * 8; first < lease.num_owned;
       first += threads_of_grid()) {
    auto of_lane = [&](uint32_t lane) {
      return first + lane / 8 * (warps * 8) + lane % 8;
    };
    uint32_t v = of_lane(lane_id());
    uint64_t work = v < lease.num_owned ? work_of(v) : 0;
    bool is_mine =
        work > ALONE && work <= BY_WARP_AT_MOST && takes_part(lease, now, v);
    uint32_t those = __ballot_sync(ALL_LANES, is_mine);
    for (; those != 0; those &= those - 1)
      run_received(lease, now, of_lane(__ffs(those) - 1), counted, 32);
  }
  for_long_ones(lease, work_of, BY_WARP_AT_MOST, [&](uint32_t v) {
    if (takes_part_by_block(lease, now, v))
      run_received(lease, now, v, counted, blockDim.x);
  });
#elif !SIGPS_LISTED
  constexpr bool IS_SHARED = SIGPS_BY_TEAM && !SIGPS_BY_WARP;
  auto work_of = [&](uint32_t v) {
    uint64_t edges = IS_SHARED ? lease.in.out_degrees[v] : 0;
    return max(num_received(lease, v), edges);
  };
  for (uint32_t first = (thread_of_grid() / 32) * 32; first < lease.num_owned;
       first += threads_of_grid()) {
    uint32_t v = first + lane_id();
    bool is_mine = v < lease.num_owned && work_of(v) <= BY_WARP_AT_MOST;
    if (is_mine)
      is_mine = takes_part(lease, now, v);
    Inbox inbox = read_inboxes(lease, now, is_mine ? v : NO_VERTEX);
    uint8_t status = is_mine ? lease.status[v] : RETIRED;
    bool runs = is_mine && (inbox.has || status == ACTIVE);
    run_vertices(lease, now, runs, v, status, inbox, counted);
  }
  for_long_ones(lease, work_of, BY_WARP_AT_MOST, [&](uint32_t v) {
    if (!takes_part_by_block(lease, now, v))
      return;
    Inbox inbox =
        combine_block(read_inbox(lease, now, v, threadIdx.x, blockDim.x),
                      {lease.in, now.superstep, v});
    if (IS_SHARED) {
      __shared__ Inbox of_team;
      if (threadIdx.x == 0)
        of_team = inbox;
      __syncthreads();
      inbox = of_team;
    }
    uint8_t status = lease.status[v];
    __syncthreads(); // before one of them writes it
    if ((IS_SHARED || threadIdx.x == 0) && (inbox.has || status == ACTIVE))
      run_vertex(lease, now, v, status, inbox, counted,
                 IS_SHARED ? blockDim.x : LANES_OF_VERTEX);
  });
#endif
}

#if SIGPS_PACKED && SIGPS_WALKS
// Whether a vertex runs in this pass; leaves its bit.
__device__ inline bool will_run(const Lease &lease, const NextSuperstep &now,
                                uint32_t v) {
  uint8_t status = lease.status[v];
  return (now.remaining != OVERFLOWED || is_set(lease.direct.overflowed, v)) &&
         status != RETIRED && (status == ACTIVE || num_received(lease, v) > 0);
}

// Computes vertices first..end, 32 by a warp, of so many warps. One of many
// edges or messages is a team's, of its warp.
__device__ inline void compute_walking(const Lease &lease,
                                       const NextSuperstep &now, uint32_t first,
                                       uint32_t end, uint32_t warp,
                                       uint32_t warps,
                                       ThreadCounters &counted) {
  for (uint32_t begin = first + warp * 32; begin < end; begin += warps * 32) {
    uint32_t v = begin + lane_id();
    bool runs = v < end && will_run(lease, now, v) && takes_part(lease, now, v);
#if SIGPS_LISTED
    bool is_team = false;
    if (SIGPS_BY_TEAM && runs)
      is_team = max(num_received(lease, v), uint64_t(lease.in.out_degrees[v])) >
                ALONE;
    if (runs && !is_team)
      run_received(lease, now, v, counted, 1);
    uint32_t those = __ballot_sync(ALL_LANES, is_team);
    for (; those != 0; those &= those - 1)
      run_received(lease, now, begin + __ffs(those) - 1, counted, 32);
#else
    Inbox inbox = read_inboxes(lease, now, runs ? v : NO_VERTEX);
    run_vertices(lease, now, runs, v, runs ? lease.status[v] : RETIRED, inbox,
                 counted);
#endif
  }
}
#endif

__device__ inline void advance(const Lease &lease, const NextSuperstep &now,
                               uint32_t &generation, ThreadCounters &counted) {
  if (now.superstep > 0 && now.remaining != OVERFLOWED)
    sort_messages(lease, generation);
  if (SIGPS_PEERS && lease.control->next.ending)
    return; // some messages did not arrive
#if SIGPS_SORTED
  if (now.superstep > 0) { // where lists have grown, they are sorted once more
    sort_lists(lease, now, [&](uint32_t v) {
      return v < lease.num_owned
                 ? listed(lease.offsets[v], lease.offsets[v + 1])
                 : listed(0, 0);
    });
    wait_for_all(&lease.control->barrier, generation);
  }
#endif
#if SIGPS_PACKED && SIGPS_WALKS
  walk_pages(
      lease, now, [&](uint32_t v) { return will_run(lease, now, v); },
      [&](uint32_t first, uint32_t end, uint32_t warp, uint32_t warps) {
        compute_walking(lease_of_block(), now, first, end, warp, warps,
                        counted);
      });
  return;
#endif
  if constexpr (SHARES_VERTICES) {
    compute_received(lease, now, counted);
    return;
  }
  for (uint32_t v = thread_of_grid() / LANES_OF_VERTEX; v < lease.num_owned;
       v += threads_of_grid() / LANES_OF_VERTEX) {
    if (now.remaining == OVERFLOWED && !takes_overflowed(lease, v))
      continue;
    uint8_t status = lease.status[v];
    if (status == RETIRED)
      continue;
    Inbox inbox = read_inbox(lease, now, v);
    if (inbox.has || status == ACTIVE)
      run_vertex(lease, now, v, status, inbox, counted);
  }
}

} // namespace sigps
