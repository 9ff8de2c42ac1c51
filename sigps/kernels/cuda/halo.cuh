// Where one GPU's partition borders those of others: at the end of a superstep,
// when records are on their way (publish.cuh), an inter-GPU barrier exchanges
// reports. The host takes no part. No rank is more than one superstep ahead of
// another, since each barrier waits for all.

#pragma once

#include "all_gpus.cuh"
#include "publish.cuh"

namespace sigps {

// Makes this block's writes visible to other GPUs, after the next barrier of
// all blocks.
__device__ inline void release_to_peers() {
  __syncthreads();
  if (threadIdx.x == 0 && has_published()) {
    fence_for_all();
    has_published() = 0;
  }
}

// Calls visit(ghosts, count) for each rank's list of those that sent to this
// superstep.
template <class Visit>
__device__ inline void
for_lists_of_ghosts(const Lease &lease, const NextSuperstep &now, Visit visit) {
  const Halo &halo = lease.halo;
  const RankReportInHalves *reports =
      halo.reports[(*halo.num_barriers + 1) & 1];
  for (uint32_t rank = 0; rank < halo.num_ranks; rank++) {
    if (rank == halo.rank)
      continue;
    visit(halo.listed[now.superstep & 1] + halo.list_begins[rank],
          reports[rank].num_listed());
  }
}

// Calls visit(is_one, ghost) with all lanes for each of them.
template <class Visit>
__device__ inline void
for_listed_ghosts(const Lease &lease, const NextSuperstep &now, Visit visit) {
  for_lists_of_ghosts(lease, now, [&](const uint32_t *ghosts, uint32_t count) {
    uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
    for (uint32_t round = 0; round < rounds; round++) {
      uint32_t i = round * threads_of_grid() + thread_of_grid();
      visit(i < count, i < count ? ghosts[i] : 0);
    }
  });
}

// Where a rank receives this one's reports, and how many of its ghosts this one
// has listed.
struct Receiver {
  uint64_t *halves;
  uint32_t num_listed;
};

__device__ inline Receiver receiver_of(const Lease &lease, uint32_t number,
                                       uint32_t rank) {
  const Halo &halo = lease.halo;
  if (rank >= halo.num_ranks)
    return {};
  const Peer &peer = halo.peers[rank];
  RankReportInHalves *even = peer.reports[0], *odd = peer.reports[1];
  return {(number & 1 ? odd : even)[halo.rank].halves,
          rank == halo.rank ? 0 : halo.num_published[rank]};
}

// Sends a rank this one's report, by a warp. The receiver reads all earlier
// writes to it if each lane has fenced.
__device__ inline void send_report(const Receiver &to, uint32_t number,
                                   const RankReport &mine) {
  for (uint32_t i = lane_id(); i < REPORT_HALVES; i += 32) {
    uint32_t half =
        i == 0 ? to.num_listed : reinterpret_cast<const uint32_t *>(&mine)[i];
    store_relaxed_to_all(to.halves + i, uint64_t(number + 1) << 32 | half);
  }
}

// Waits for a rank's report, by a warp. Returns whether this lane's halves
// arrived in time.
__device__ inline bool receive_report(const Lease &lease, uint32_t number,
                                      uint32_t rank, RankReport &received) {
  const uint64_t *at = lease.halo.reports[number & 1][rank].halves;
  uint64_t began = nanoseconds();
  for (uint32_t i = lane_id(); i < REPORT_HALVES; i += 32) {
    uint64_t half;
    while (half = load_acquire_from_all(at + i), half >> 32 != number + 1)
      if (nanoseconds() - began > lease.halo.timeout)
        return false;
    reinterpret_cast<uint32_t *>(&received)[i] = uint32_t(half);
  }
  return true;
}

// Fills in this rank's report, once all blocks have arrived. By one whole
// block.
__device__ inline void
write_report(const Lease &lease, const NextSuperstep &now, RankReport &mine) {
  const Halo &halo = lease.halo;
  const Control *control = lease.control;
  constexpr uint32_t NUM_COUNTED = sizeof(Counters) / 8;
  if (threadIdx.x < NUM_COUNTED)
    reinterpret_cast<uint64_t *>(&mine.done)[threadIdx.x] =
        reinterpret_cast<const uint64_t *>(&control->counters)[threadIdx.x];
  if (threadIdx.x / 32 == 0) {
    __syncwarp();
    if (SIGPS_DIRECT && lane_id() == 0) {
      mine.done.senders = lacks_capacity(lease);
      mine.done.sent_edges = *lease.in.num_direct;
    }
    uint32_t to_others = 0;
    for (uint32_t rank = lane_id(); rank < halo.num_ranks; rank += 32)
      to_others += halo.num_published[rank];
    to_others = __reduce_add_sync(ALL_LANES, to_others);
    uint64_t sender_bytes = SIGPS_DIRECT ? 0
                            : now.direction == PUSH && !now.full_scan
                                ? uint64_t(to_others) * sizeof(uint32_t)
                                : halo.bounds[halo.num_ranks] / 8;
    if (lane_id() == 0) {
      mine.num_listed = 0; // send_report() writes it
      mine.num_bytes =
          uint64_t(to_others) *
              (SIGPS_DIRECT ? sizeof(Message) : sizeof(Record) * HAS_RECORD) +
          sender_bytes;
      if (SIGPS_PACKED == 4 && HAS_PUSH)
        for (uint32_t rank = 0; rank < halo.num_ranks; rank++)
          mine.num_bytes += uint64_t(halo.num_crossed[rank]) *
                            (sizeof(uint32_t) + sizeof(Slots));
      mine.nanoseconds = nanoseconds() - control->last_time;
      mine.fault = kept_fault(control->faults, now.superstep);
#if SIGPS_PACKED
      mine.num_read = 4 * lease.packed.num_read[0];
      mine.num_skipped = lease.packed.num_chains - lease.packed.num_read[1];
#endif
    }
  }
  if (HAS_AGGREGATES) {
    Totals totals = control->counters.ran > 0
                        ? fold_blocks(lease, now.superstep)
                        : identity_totals();
    if (threadIdx.x == 0) {
      if (SIGPS_DIRECT)
        keep_fault(lease.in, now.superstep, NO_VERTEX,
                   sigps_fold(&totals, lease.carried));
      mine.totals = totals;
      mine.fault = kept_fault(control->faults, now.superstep);
    }
  }
}

// The inter-GPU barrier: sends this rank's report to all, reduces theirs into
// `all_gpus`, and sets the aggregators. Returns whether all arrived in time. By
// one whole block, once all have published.
__device__ inline bool wait_for_all_gpus(const Lease &lease,
                                         const NextSuperstep &now,
                                         AllGpus &all_gpus) {
  constexpr uint32_t AT_ONCE = 8;
  __shared__ RankReport mine, received[AT_ONCE];
  __shared__ int32_t lost;
  const Halo &halo = lease.halo;
  uint32_t number = uint32_t(*halo.num_barriers);
  uint32_t num_warps = blockDim.x / 32;
  uint32_t own_warp = num_warps - 1 - threadIdx.x / 32; // from the last on
  Receiver to = receiver_of(lease, number, own_warp);
  if (own_warp < halo.num_ranks)
    fence_for_all(); // while the first warp adds up
  write_report(lease, now, mine);
  if (threadIdx.x == 0)
    lost = -1;
  __syncthreads();
  for (uint32_t rank = own_warp; rank < halo.num_ranks; rank += num_warps) {
    send_report(to, number, mine);
    to = receiver_of(lease, number, rank + num_warps);
  }
  Counters all{};
  Totals totals = identity_totals();
  uint64_t slowest = 0, sum = 0, num_bytes = 0, num_skipped = 0, num_read = 0;
  bool has_fault = false;
  for (uint32_t first = 0; first < halo.num_ranks; first += AT_ONCE) {
    uint32_t end = min(first + AT_ONCE, halo.num_ranks);
    for (uint32_t rank = first + own_warp; rank < end; rank += num_warps)
      if (!receive_report(lease, number, rank, received[rank - first]))
        lost = rank;
    __syncthreads();
    if (threadIdx.x == 0) // in the order of ranks, as floats have to be
      for (uint32_t rank = first; rank < end; rank++) {
        const RankReport &report = received[rank - first];
        all.ran += report.done.ran;
        all.active += report.done.active;
        all.senders += report.done.senders;
        all.sent_edges += report.done.sent_edges;
        all.retired_edges += report.done.retired_edges;
        num_bytes += report.num_bytes;
#if SIGPS_PACKED
        num_skipped += report.num_skipped;
        num_read += report.num_read;
#endif
        slowest = max(slowest, report.nanoseconds);
        sum += report.nanoseconds;
        has_fault |= SIGPS_FAULTS && report.fault != 0;
        if (HAS_AGGREGATES) // where it is a fault, it is one on every GPU
          keep_fault(lease.in, now.superstep, NO_VERTEX,
                     sigps_fold(&totals, &report.totals));
        halo.num_published[rank] = 0;
        if (SIGPS_PACKED == 4 && HAS_PUSH)
          halo.num_crossed[rank] = 0;
      }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    double imbalance = double(slowest) * halo.num_ranks / max(sum, uint64_t(1));
    *halo.num_barriers = number + 1;
    if (HAS_AGGREGATES && (all.ran > 0 || counts_idle(lease, now)) &&
        now.remaining != PUBLISHING && !some_gpu_lacks_capacity(all) &&
        lost < 0)
      set_aggregates(lease, now.superstep, totals);
    has_fault |= kept_fault(lease.control->faults, now.superstep) != 0;
    all_gpus = {num_bytes, imbalance, all, has_fault, num_skipped, num_read};
    if (HAS_AGGREGATES && SIGPS_DIRECT)
      *lease.carried =
          some_gpu_lacks_capacity(all) ? mine.totals : identity_totals();
    if (lost >= 0) {
      lease.control->lost_id = lost;
      lease.control->next.ending = PEER_LOST;
    }
  }
  __syncthreads();
  return lost < 0;
}

} // namespace sigps
