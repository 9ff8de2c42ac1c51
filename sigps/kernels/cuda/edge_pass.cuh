// The edge schedule: every in-edge whose source sent brings its message into
// its target's inbox; then the vertices that got a message, or are active,
// compute, and the senders are written as bits (scan_all).
//
// Schedule: an in-edge position a lane, four at a time. Inboxes are combined by
// atomics, one an edge; a warp whose edges all have one target combines them
// first, so that a row of many edges takes one atomic for 32. Bits of touched
// inboxes are set by atomics too.

#pragma once

#include "scatter.cuh"

namespace sigps {

static_assert(HAS_PUSH || !HAS_SLOTS,
              "no atomic combines this row: find_edge_obstacle() says so");

constexpr int EDGES_OF_LANE = 4;

#if SIGPS_NEUTRAL
__device__ inline void put_in_memory(const Lease &lease,
                                     const NextSuperstep &now, uint32_t target,
                                     const Slots &value) {
  combine_in_memory(&lease.inboxes[now.inbox_at][target], value,
                    {lease.in, now.superstep, target});
  uint32_t bit = 1u << target % 32;
  uint32_t *word = &lease.touched[now.inbox_at][target / 32];
  if (!(*reinterpret_cast<volatile uint32_t *>(word) & bit))
    atomicOr(word, bit);
}

// What the lanes' edges bring. By whole warps.
__device__ inline void put_warp(const Lease &lease, const NextSuperstep &now,
                                uint32_t target, Inbox mine) {
  if (!__any_sync(ALL_LANES, mine.has))
    return;
  if (__all_sync(ALL_LANES, target == __shfl_sync(ALL_LANES, target, 0))) {
    mine = combine_warp(mine, {lease.in, now.superstep, target});
    mine.has &= lane_id() == 0;
  }
  if (mine.has)
    put_in_memory(lease, now, target, mine.slots);
}

__device__ inline void pass_edges(const Lease &lease,
                                  const NextSuperstep &now) {
  const uint32_t *bits = lease.sent[now.superstep & 1];
  const Record *all = lease.records[now.superstep & 1];
  uint64_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
  for (uint64_t begin = warp * 32 * EDGES_OF_LANE; begin < lease.num_positions;
       begin += warps * 32 * EDGES_OF_LANE) {
    uint32_t targets[EDGES_OF_LANE], sources[EDGES_OF_LANE];
    bool sent[EDGES_OF_LANE];
    Record records[EDGES_OF_LANE];
    uint64_t first = begin + lane_id();
#pragma unroll
    for (int k = 0; k < EDGES_OF_LANE; k++) {
      uint64_t position = first + 32 * k;
      bool is_there = position < lease.num_positions;
      targets[k] = is_there ? __ldcs(&lease.edge_targets[position]) : NO_VERTEX;
      sources[k] = is_there ? end_at(lease.in_edges, position) : 0;
    }
#pragma unroll
    for (int k = 0; k < EDGES_OF_LANE; k++)
      sent[k] = targets[k] != NO_VERTEX && is_set(bits, sources[k]);
    if (HAS_RECORD) {
#pragma unroll
      for (int k = 0; k < EDGES_OF_LANE; k++)
        if (sent[k])
          records[k] = all[sources[k]];
    }
#pragma unroll
    for (int k = 0; k < EDGES_OF_LANE; k++) {
      Inbox mine = empty_inbox();
      Slots value;
      bool arrives =
          sent[k] && !(now.any_retired && lease.status[targets[k]] == RETIRED);
      Occasion when{lease.in, now.superstep, targets[k]};
      if (arrives &&
          when.passes(sigps_deliver(&lease.in, now.superstep - 1, &records[k],
                                    sources[k], targets[k], first + 32 * k,
                                    &value),
                      sources[k]))
        put(mine, value, when);
      put_warp(lease, now, targets[k], mine);
    }
  }
}

__device__ inline void advance(const Lease &lease, const NextSuperstep &now,
                               uint32_t &generation, ThreadCounters &counted) {
  if (now.sender_filter != SENDERS_NONE) {
    pass_edges(lease, now);
    wait_for_all(&lease.control->barrier, generation);
  }
  scan_all(lease, now, counted);
}
#endif

} // namespace sigps
