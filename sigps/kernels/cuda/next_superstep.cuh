// The next superstep, as it follows from the counters of the last one.

#pragma once

#include "lease.cuh"

namespace sigps {

__device__ inline bool lacks_capacity(const Lease &lease) {
  return SIGPS_DIRECT && *lease.in.num_direct > lease.in.direct_capacity;
}

// With direct messages no vertex sends along edges; among GPUs `senders` counts
// the GPUs whose buffer was full.
__device__ inline bool some_gpu_lacks_capacity(const Counters &done) {
  return SIGPS_DIRECT && done.senders > 0;
}

// What a superstep leaves. `pushed`: a push without a full scan, in the kernel
// that runs.
__device__ inline Frontier left_by(const Lease &lease, const NextSuperstep &now,
                                   Frontier pushed) {
  if (now.direction == PULL)
    return FRONTIER_BITS;
  if (!now.full_scan)
    return pushed;
  return scan_lists(lease) ? FRONTIER_BOTH : FRONTIER_BITS;
}

// Asserts what stands at Frontier and Remaining. `pushed` as above.
__device__ inline void check_transition(const Lease &lease,
                                        const NextSuperstep &now,
                                        const NextSuperstep &next,
                                        Frontier pushed) {
  Frontier left = left_by(lease, now, pushed);
  SIGPS_CHECK(next.ending || next.frontier == left);
  SIGPS_CHECK(next.direction == PUSH ||
              (!next.full_scan && next.frontier != FRONTIER_DELIVERED));
  SIGPS_CHECK(next.num_small == 0 ||
              (next.direction == PUSH && !next.full_scan &&
               next.frontier != FRONTIER_BITS));
  SIGPS_CHECK(next.remaining == WHOLE);
}

// Asserts what the host may write, or a lease that ended may have left.
__device__ inline void check_begin(const NextSuperstep &now) {
  SIGPS_CHECK(now.remaining != OVERFLOWED || SIGPS_DIRECT);
  SIGPS_CHECK(now.remaining != PUBLISHING ||
              (SIGPS_PEERS && !SIGPS_DIRECT && now.direction == PULL &&
               now.frontier == FRONTIER_BITS));
  SIGPS_CHECK((now.remaining != SENDING && now.remaining != ARRIVED) ||
              (SIGPS_PACKED == 4 && !SIGPS_PEERS && now.direction == PUSH));
  SIGPS_CHECK(now.direction == PUSH ||
              (!now.full_scan && now.frontier != FRONTIER_DELIVERED));
}

// `num_listed` and `num_hubs`: those who send next, where this was a push.
__device__ inline NextSuperstep
planned(const Lease &lease, const NextSuperstep &now, const Counters &done,
        uint32_t num_listed, uint32_t num_hubs) {
  NextSuperstep next = now;
  next.remaining = WHOLE;
#if SIGPS_MASTER
  next.has_woken = 0;
  next.counts_idle =
      lease.asks_master && lease.counts_messages && done.sent_edges > 0;
#endif
  if (done.ran == 0 && !counts_idle(lease, now)) {
    next.ending = FINISHED;
    return next;
  }
  next.superstep++;
  next.frontier = left_by(lease, now, FRONTIER_LISTS);
  next.num_listed = num_listed;
  next.num_hubs = num_hubs;
  next.mean_degree = float(done.sent_edges) / float(max(done.senders, 1ull));
  next.any_retired |= done.retired_edges > 0;
  next.ending = done.active == 0 && done.sent_edges == 0 ? FINISHED : RUNNING;
  next.retired_edges += done.retired_edges;
  uint64_t push_cost = done.sent_edges;
  if (SIGPS_PACKED)
    push_cost += lease.row_cost * done.senders;
  next.direction = choose_direction(push_cost, next.retired_edges,
                                    lease.pull_cost, lease.pull_gain,
                                    lease.forced, !SIGPS_DIRECT && HAS_PUSH);
  next.full_scan = next.direction == PUSH && done.active > 0;
  next.sender_filter = done.senders == 0                  ? SENDERS_NONE
                       : done.senders == lease.could_send ? SENDERS_ALL
                                                          : SENDERS_BITMAP;
  bool is_few = next.direction == PUSH && !next.full_scan &&
                next.frontier != FRONTIER_BITS &&
                done.sent_edges <= lease.small_frontier_messages;
  next.num_small = is_few ? now.num_small + 1 : 0;
  check_transition(lease, now, next, FRONTIER_LISTS);
  return next;
}

// What a superstep did, which began when the one before was over.
__device__ inline Stats stats_of(int64_t superstep, Direction direction,
                                 const Counters &done, uint64_t &last_time,
                                 const AllGpus &all_gpus = ONE_GPU) {
  uint64_t began = last_time;
  last_time = nanoseconds();
  return {superstep,          direction,
          done.ran,           done.sent_edges,
          last_time - began,  all_gpus.num_bytes,
          all_gpus.imbalance, all_gpus.num_skipped,
          all_gpus.num_read};
}

// The aggregators' next values, of what these had and the totals of a
// superstep; and the fault of their sum.
__device__ inline Totals next_aggregates(const Lease &lease, const Totals &had,
                                         const Totals &totals,
                                         uint32_t &fault) {
  Totals next = identity_totals();
  constexpr bool persistent[] = {SIGPS_PERSISTENT};
  for (int i = 0; i < SIGPS_NUM_AGGREGATES; i++)
    if (persistent[i] && lease.carries_on)
      next.cells[i] = had.cells[i];
  fault = sigps_fold(&next, &totals);
  return next;
}

// Gives the aggregators these values. By one thread of all.
__device__ inline void set_aggregates(const Lease &lease, int64_t superstep,
                                      const Totals &totals) {
  Totals *now = static_cast<Totals *>(lease.aggregates);
  uint32_t fault;
  *now = next_aggregates(lease, *now, totals, fault);
  keep_fault(lease.in, superstep, NO_VERTEX, fault);
}

// Thread 0 gets what all blocks gave. By one whole block.
__device__ inline Totals fold_blocks(const Lease &lease, int64_t superstep) {
  Occasion when{lease.in, superstep, NO_VERTEX};
  Totals totals = identity_totals();
  for (uint32_t block = threadIdx.x; block < gridDim.x; block += blockDim.x)
    when.keep(sigps_fold(&totals, &lease.totals[block]));
  return fold_block(totals, when);
}

// Adds up over a warp; lane 0 adds it to what is counted.
template <class Number>
__device__ inline void add_where_any(Number *at, Number value) {
  if constexpr (sizeof(Number) == 4)
    value = __reduce_add_sync(ALL_LANES, value);
  else
    value = __reduce_add_sync(ALL_LANES, unsigned(value & 0xffffff)) +
            (Number(__reduce_add_sync(ALL_LANES, unsigned(value >> 24))) << 24);
  if (lane_id() == 0 && value != 0)
    atomicAdd(at, value);
}

} // namespace sigps
