// Where one GPU's partition touches those of others: records of vertices that
// sent are written into the memory of every GPU that has ghosts of them, and at
// the end of a superstep all GPUs tell each other what they did. No host takes
// part.
//
// A rank's slots for another are that one's ghosts of its vertices, in order.
// After a pull, all slots are passed: bits tell who sent, and records that did
// are written in the order of slots. After a push, senders are few: each writes
// to its own slots, which are listed at the receiver.
//
// What a rank writes is read one superstep later, by the parity of which it is
// kept apart; no rank is more than one superstep ahead of another, since all
// wait for all. In a push a vertex is published by the thread that computes it.

#pragma once

#include "plan.cuh"

namespace sigps {

__device__ inline void store_release_to_all(uint64_t *at, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value)
               : "memory");
}

__device__ inline uint64_t load_acquire_from_all(const uint64_t *at) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(at)
               : "memory");
  return value;
}

// The rank that a slot is for.
__device__ inline uint32_t rank_of(const Halo &halo, uint32_t slot) {
  uint32_t rank = 0;
  while (halo.bounds[rank + 1] <= slot)
    rank++;
  return rank;
}

// Where a slot is at its receiver; slots of one word lie together there.
__device__ inline uint32_t place_of_slot(const Peer &peer, uint32_t slot) {
  return slot < peer.num_hot ? peer.first_hot + slot
                             : peer.first_cold + slot - peer.num_hot;
}

// After a pull. By all threads; ranks begin with different others.
__device__ inline void publish_bits(const Lease &lease, const Plan &plan) {
  const Halo &halo = lease.halo;
  int parity = (plan.superstep + 1) & 1;
  uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
  uint32_t count = 0;
  for (uint32_t k = 1; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    const Peer peer = halo.peers[rank];
    Record *records = peer.records[parity];
    uint32_t *sent = peer.sent[parity];
    uint32_t first = halo.bounds[rank];
    uint32_t words = (halo.bounds[rank + 1] - first) / 32;
    for (uint32_t word = warp; word < words; word += warps) {
      uint32_t v = halo.places[first + word * 32 + lane_id()];
      bool sends = v != NO_VERTEX && is_set(lease.sent[parity], v);
      uint32_t place = place_of_slot(peer, word * 32);
      if (HAS_RECORD && sends)
        records[place + lane_id()] = lease.records[parity][v];
      uint32_t those = __ballot_sync(ALL_LANES, sends);
      if (lane_id() == 0)
        sent[place / 32] = those;
      count += __popc(those);
    }
  }
  if (lane_id() == 0 && count != 0)
    atomicAdd(&halo.num_published[halo.rank], count);
}

// In a push, what one vertex sends. By any thread.
__device__ inline void publish_one(const Lease &lease, const Plan &plan,
                                   uint32_t v) {
  const Halo &halo = lease.halo;
  int parity = (plan.superstep + 1) & 1;
  uint32_t end = halo.copy_offsets[v + 1];
  for (uint32_t c = halo.copy_offsets[v]; c < end; c++) {
    uint32_t slot = halo.copies[c];
    uint32_t rank = rank_of(halo, slot);
    const Peer &peer = halo.peers[rank];
    uint32_t place = place_of_slot(peer, slot - halo.bounds[rank]);
    if (HAS_RECORD)
      peer.records[parity][place] = lease.records[parity][v];
    uint32_t at = atomicAdd(&halo.num_published[rank], 1);
    peer.listed[parity][at] = place;
  }
}

// Lets other GPUs see what this block has written there, once all blocks have
// met after this.
__device__ inline void release_to_peers() {
  __syncthreads();
  if (threadIdx.x == 0)
    __threadfence_system();
}

// Calls visit(ghosts, count) for each rank's list of those that sent to this
// superstep.
template <class Visit>
__device__ inline void for_lists_of_ghosts(const Lease &lease, const Plan &plan,
                                           Visit visit) {
  const Halo &halo = lease.halo;
  const RankReport *board = halo.board[(*halo.num_meetings + 1) & 1];
  for (uint32_t rank = 0; rank < halo.num_ranks; rank++) {
    if (rank == halo.rank)
      continue;
    visit(halo.listed[plan.superstep & 1] + halo.list_begins[rank],
          uint32_t(board[rank].num_listed));
  }
}

// Calls visit(is_one, ghost) with all lanes for each of them.
template <class Visit>
__device__ inline void for_listed_ghosts(const Lease &lease, const Plan &plan,
                                         Visit visit) {
  for_lists_of_ghosts(lease, plan, [&](const uint32_t *ghosts, uint32_t count) {
    uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
    for (uint32_t round = 0; round < rounds; round++) {
      uint32_t i = round * threads_of_grid() + thread_of_grid();
      visit(i < count, i < count ? ghosts[i] : 0);
    }
  });
}

// Tells every rank what this one did, by a thread for each.
__device__ inline void tell(const Lease &lease, const Plan &plan,
                            uint64_t meeting, const Totals &totals,
                            uint64_t nanoseconds) {
  const Halo &halo = lease.halo;
  uint32_t rank = threadIdx.x;
  if (rank >= halo.num_ranks)
    return;
  uint32_t to_others = 0;
  for (uint32_t r = 0; r < halo.num_ranks; r++)
    to_others += halo.num_published[r];
  RankReport &report = halo.peers[rank].board[meeting & 1][halo.rank];
  report.done = lease.control->counters;
  report.num_listed = rank == halo.rank ? 0 : halo.num_published[rank];
  report.num_bytes =
      uint64_t(to_others) * (sizeof(Record) * HAS_RECORD) +
      (plan.direction == PUSH ? uint64_t(to_others) * sizeof(uint32_t)
                              : halo.bounds[halo.num_ranks] / 8);
  report.nanoseconds = nanoseconds;
  report.totals = totals;
  store_release_to_all(&report.meeting, meeting + 1);
}

// Waits until every rank has told, by a thread for each. Returns whether this
// thread's did before patience ended.
__device__ inline bool listen(const Lease &lease, uint64_t meeting) {
  const Halo &halo = lease.halo;
  if (threadIdx.x >= halo.num_ranks)
    return true;
  const RankReport &report = halo.board[meeting & 1][threadIdx.x];
  uint64_t began = nanoseconds();
  while (load_acquire_from_all(&report.meeting) != meeting + 1)
    if (nanoseconds() - began > halo.patience)
      return false;
  return true;
}

// Makes what this rank did into what all did, of which the counters and the
// aggregators tell then; returns whether all are there. By one whole block,
// once all have published.
__device__ inline bool meet(const Lease &lease, const Plan &plan,
                            Together &together) {
  __shared__ Totals mine;
  __shared__ int32_t lost;
  Control *control = lease.control;
  if (HAS_AGGREGATES) {
    Totals totals =
        control->counters.ran > 0 ? fold_blocks(lease) : identity_totals();
    if (threadIdx.x == 0)
      mine = totals;
  }
  if (threadIdx.x == 0)
    lost = -1;
  __syncthreads();
  uint64_t meeting = *lease.halo.num_meetings;
  tell(lease, plan, meeting, mine, nanoseconds() - control->last_time);
  if (!listen(lease, meeting))
    lost = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    Counters all{};
    Totals totals = identity_totals();
    uint64_t slowest = 0, sum = 0;
    together = ALONE;
    for (uint32_t rank = 0; rank < lease.halo.num_ranks; rank++) {
      const RankReport &report = lease.halo.board[meeting & 1][rank];
      all.ran += report.done.ran;
      all.active += report.done.active;
      all.senders += report.done.senders;
      all.sent_edges += report.done.sent_edges;
      all.retired += report.done.retired;
      together.num_bytes += report.num_bytes;
      slowest = max(slowest, report.nanoseconds);
      sum += report.nanoseconds;
      if (HAS_AGGREGATES)
        sigps_fold(&totals, &report.totals);
      lease.halo.num_published[rank] = 0;
    }
    together.imbalance =
        double(slowest) * lease.halo.num_ranks / max(sum, 1ull);
    *lease.halo.num_meetings = meeting + 1;
    control->counters = all;
    if (HAS_AGGREGATES && all.ran > 0 && !plan.publishes && lost < 0)
      set_aggregates(lease, totals);
    if (lost >= 0) {
      control->lost_id = lost;
      control->plan.ended = PEER_LOST;
    }
  }
  __syncthreads();
  return lost < 0;
}

} // namespace sigps
