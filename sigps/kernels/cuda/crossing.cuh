// Messages that a push along packed rows has for vertices of other ranks.
//
// The row of a sender is with its owner, and has its edges to all ranks, those
// by which it would be pulled there. So the owner combines what goes to ghosts,
// too, in inboxes behind those of its vertices. Then each ghost's message
// crosses once, to its owner, at any place of a list: with the ghost's number
// among this rank's of that owner, which is the slot that it is passed by
// (publish.cuh). An inter-GPU barrier in the middle of the superstep says how
// many have arrived, and these are combined as if their senders were here.
//
// One list is enough: it is read before the superstep ends, and written again
// after that.
//
// Without peers (SIGPS_PEERS 0) the lists of messages to other ranks are here,
// `halo.peers` points to them, and hosts bring them to their owners between two
// launches: one that ends when they are written, and one that goes on.

#pragma once

#include "halo.cuh"
#include "scatter_packed.cuh"

#if SIGPS_PACKED == 4 && SIGPS_NEUTRAL
namespace sigps {

// This rank's ghost of a peer's vertex, by its number.
__device__ inline uint32_t lid_of_ghost(const Peer &peer, uint32_t number) {
  return number < peer.own_hot ? peer.first_own_hot + number
                               : peer.first_own_cold + number - peer.own_hot;
}

// Passes the messages of a word of ghosts, by a warp, and leaves their inboxes
// as they were before.
//
//   first: the number of the first ghost
//   mine:  whether the one of this lane has a message
__device__ inline void pass_word(const Lease &lease, const NextSuperstep &now,
                                 const Peer &peer, uint32_t *num_crossed,
                                 uint32_t first, bool mine) {
  uint32_t those = __ballot_sync(ALL_LANES, mine), at = 0;
  if (lane_id() == 0)
    at = atomicAdd(num_crossed, __popc(those));
  at = __shfl_sync(ALL_LANES, at, 0);
  if (!mine)
    return;
  at += __popc(those & ((1u << lane_id()) - 1));
  Slots *inbox =
      &lease.inboxes[now.inbox_at][lid_of_ghost(peer, first + lane_id())];
  peer.arrived_slots[at] = first + lane_id();
  peer.arrived_messages[at] = *inbox;
  *inbox = neutral_slots();
  has_published() = 1;
}

// Passes all messages of ghosts; each rank begins with the one after itself. A
// lane reads every 32nd of its warp's words of bits, all of them at once.
__device__ inline void pass_messages(const Lease &lease,
                                     const NextSuperstep &now) {
  const Halo &halo = lease.halo;
  uint32_t *touched = lease.touched[now.inbox_at];
  uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
  for (uint32_t k = 1; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    const Peer peer = halo.peers[rank];
    uint32_t words = (peer.num_own + 31) / 32;
    for (uint64_t first = warp; first < words; first += 32ull * warps) {
      uint64_t mine = first + uint64_t(lane_id()) * warps;
      uint32_t bits = 0;
      if (mine < words) {
        uint32_t *word = &touched[lid_of_ghost(peer, uint32_t(mine) * 32) / 32];
        bits = *word;
        if (bits != 0)
          *word = 0;
      }
      uint32_t those = __ballot_sync(ALL_LANES, bits != 0);
      for (; those != 0; those &= those - 1) {
        uint32_t lane = __ffs(those) - 1;
        uint32_t number = __shfl_sync(ALL_LANES, uint32_t(mine), lane) * 32;
        bool has = __shfl_sync(ALL_LANES, bits, lane) >> lane_id() & 1;
        pass_word(lease, now, peer, &halo.num_crossed[rank], number, has);
      }
    }
  }
}

// The inter-GPU barrier: tells all ranks how many messages they have, and waits
// until all have told this one. By one whole block, once all have passed.
__device__ inline void wait_for_messages(const Lease &lease) {
  __shared__ int32_t lost;
  const Halo &halo = lease.halo;
  uint64_t number = uint32_t(*halo.num_barriers) + 1;
  if (threadIdx.x == 0)
    lost = -1;
  fence_for_all();
  __syncthreads();
  for (uint32_t rank = threadIdx.x; rank < halo.num_ranks; rank += blockDim.x)
    if (rank != halo.rank)
      store_relaxed_to_all(halo.peers[rank].num_arrived + halo.rank,
                           number << 32 | halo.num_crossed[rank]);
  uint64_t began = nanoseconds();
  for (uint32_t rank = threadIdx.x; rank < halo.num_ranks; rank += blockDim.x)
    while (rank != halo.rank &&
           load_acquire_from_all(halo.num_arrived + rank) >> 32 != number)
      if (nanoseconds() - began > halo.timeout) {
        lost = rank;
        break;
      }
  __syncthreads();
  if (threadIdx.x == 0 && lost >= 0) {
    lease.control->lost_id = lost;
    lease.control->next.ending = PEER_LOST;
  }
}

// Combines what has arrived, and lists whom it is the first message of.
__device__ inline void take_messages(const Lease &lease,
                                     const NextSuperstep &now,
                                     uint32_t *num_targets) {
  const Halo &halo = lease.halo;
  for (uint32_t k = 1; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    uint32_t begin = halo.bounds[rank];
    uint32_t count = uint32_t(halo.num_arrived[rank]);
    uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
    for (uint32_t round = 0; round < rounds; round++) {
      uint32_t i = round * threads_of_grid() + thread_of_grid(), v = 0;
      bool is_first = false;
      if (i < count) {
        v = halo.vertices[begin + halo.arrived_slots[begin + i]];
        uint32_t bit = 1u << v % 32;
        if (!now.any_retired || lease.status[v] != RETIRED) {
          combine_in_memory(&lease.inboxes[now.inbox_at][v],
                            halo.arrived_messages[begin + i],
                            {lease.out, now.superstep, v});
          uint32_t *word = &lease.touched[now.inbox_at][v / 32];
          is_first = !(atomicOr(word, bit) & bit);
        }
      }
      list_target(lease, now, num_targets, is_first, v);
    }
  }
}

// Between a push and what it computes. Returns whether that follows: all ranks
// were there, or hosts have brought what they sent.
__device__ inline bool cross_messages(const Lease &lease,
                                      const NextSuperstep &now,
                                      uint32_t &generation) {
  Control *control = lease.control;
  if (now.remaining != ARRIVED)
    pass_messages(lease, now);
#if SIGPS_PEERS
  release_to_peers();
  wait_for_all(&control->barrier, generation,
               [&] { wait_for_messages(lease); });
  if (control->next.ending)
    return false;
#else
  if (now.remaining != ARRIVED)
    return false;
#endif
  take_messages(lease, now, &control->num_targets.value);
  wait_for_all(&control->barrier, generation);
  return true;
}

} // namespace sigps
#endif
