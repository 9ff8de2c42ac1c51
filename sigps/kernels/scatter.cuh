// Push: the listed senders combine into their targets' inboxes; then whoever
// got a message computes.
//
// Schedule: a sender with many edges by one or more blocks; of the others up to
// 32 by a warp, whose lanes divide all their edges evenly. Inboxes are combined
// by atomics; the first message of a vertex lists it, once.

#pragma once

#include "gather.cuh"

namespace sigps {

// Appends the lanes' vertices to a list.
__device__ inline void append(uint32_t *list, uint32_t *count, bool appends,
                              uint32_t v) {
  uint32_t those = __ballot_sync(ALL_LANES, appends);
  if (those == 0)
    return;
  uint32_t first = 0;
  if (lane_id() == 0)
    first = atomicAdd(count, __popc(those));
  first = __shfl_sync(ALL_LANES, first, 0);
  if (appends)
    list[first + __popc(those & ((1u << lane_id()) - 1))] = v;
}

// Lists the lanes' senders for the superstep that reads them.
__device__ inline void append_senders(const Lease &lease, uint32_t *num_senders,
                                      uint32_t *num_hubs, bool sends,
                                      uint32_t v) {
  bool is_hub = sends && lease.in.out_degrees[v] > HUB_DEGREE;
  append(lease.senders, num_senders, sends && !is_hub, v);
  append(lease.hubs, num_hubs, is_hub, v);
}

#if SIGPS_NEUTRAL
// Sends along one edge. Returns whether its target heard for the first time.
// What is far away is asked for at once, before it is known to be needed.
__device__ inline bool send(const Lease &lease, const Plan &plan,
                            uint32_t source, uint64_t position,
                            uint32_t target) {
  uint32_t bit = 1u << target % 32;
  uint32_t *word = &lease.touched_in[target / 32];
  uint32_t heard = *reinterpret_cast<volatile uint32_t *>(word) & bit;
  bool has_retired = plan.any_retired && lease.status[target] == RETIRED;
  Slots value;
  bool passes = sigps_deliver(
      &lease.out, plan.superstep - 1,
      HAS_RECORD ? &lease.records[plan.superstep & 1][source] : nullptr, source,
      target, position, &value);
  if (has_retired || !passes)
    return false;
  combine_in_memory(&lease.inboxes[target], value);
  return !heard && !(atomicOr(word, bit) & bit);
}

__device__ inline void scatter_hubs(const Lease &lease, const Plan &plan,
                                    uint32_t count) {
  if (count == 0)
    return;
  uint32_t teams = max(1u, gridDim.x / count); // blocks that share a hub
  for (uint32_t k = blockIdx.x; k < count * teams; k += gridDim.x) {
    uint32_t source = lease.hubs[k % count];
    RowOfEdges row = row_of(lease.out_edges, source);
    uint32_t stride = teams * blockDim.x;
    for (uint32_t base = 0; base < row.degree; base += stride) {
      uint32_t i = base + k / count * blockDim.x + threadIdx.x;
      bool is_first = false;
      uint32_t target = 0;
      if (i < row.degree) {
        uint64_t position = row.first + uint64_t(i) * row.step;
        target = lease.out_edges.ends[position];
        is_first = send(lease, plan, source, position, target);
      }
      append(lease.touched, &lease.control->num_touched.value, is_first,
             target);
    }
  }
}

// A warp takes `width` senders, a power of two, and its lanes divide their
// edges.
__device__ inline void scatter_tile(const Lease &lease, const Plan &plan,
                                    uint32_t begin, uint32_t width,
                                    uint32_t count) {
  uint32_t at = begin + lane_id();
  bool is_mine = lane_id() < width && at < count;
  uint32_t mine = is_mine ? lease.senders[at] : 0;
  RowOfEdges row =
      is_mine ? row_of(lease.out_edges, mine) : RowOfEdges{0, 0, 0};
  uint32_t upto = row.degree; // edges of this lane's sender and those before
#pragma unroll
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    uint32_t before = __shfl_up_sync(ALL_LANES, upto, distance);
    upto += lane_id() >= distance ? before : 0;
  }
  uint32_t total = __shfl_sync(ALL_LANES, upto, 31);
  for (uint32_t base = 0; base < total; base += 32) {
    uint32_t i = base + lane_id();
    uint32_t owner = 0; // the first lane whose edges reach beyond i
#pragma unroll
    for (uint32_t step = 16; step > 0; step /= 2)
      owner += __shfl_sync(ALL_LANES, upto, owner + step - 1) <= i ? step : 0;
    owner = owner < 31 ? owner : 31;
    uint32_t source = __shfl_sync(ALL_LANES, mine, owner);
    uint64_t first = __shfl_sync(ALL_LANES, row.first, owner);
    uint32_t step = __shfl_sync(ALL_LANES, row.step, owner);
    uint32_t of_earlier = __shfl_sync(ALL_LANES, upto - row.degree, owner);
    bool is_first = false;
    uint32_t target = 0;
    if (i < total) {
      uint64_t position = first + uint64_t(i - of_earlier) * step;
      target = lease.out_edges.ends[position];
      is_first = send(lease, plan, source, position, target);
    }
    append(lease.touched, &lease.control->num_touched.value, is_first, target);
  }
}

__device__ inline void scatter(const Lease &lease, const Plan &plan,
                               uint32_t count, uint32_t num_hubs) {
  scatter_hubs(lease, plan, num_hubs);
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  uint32_t width = 1; // few senders with many edges: a warp each
  while (width < 32 && (width * warps < count || width * plan.mean_degree < 8))
    width *= 2;
  for (uint64_t begin = uint64_t(warp) * width; begin < count;
       begin += uint64_t(warps) * width)
    scatter_tile(lease, plan, uint32_t(begin), width, count);
}

__device__ inline void prefetch(const void *at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Computes whoever got a message, and leaves the inboxes as they were before.
__device__ inline void compute_touched(const Lease &lease, const Plan &plan,
                                       Tally &tally) {
  uint32_t count = lease.control->num_touched.value;
  uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t i = round * threads_of_grid() + spread_warp() * 32 + lane_id();
    bool sends = false;
    uint32_t v = 0;
    if (i < count) {
      v = lease.touched[i];
      prefetch(&lease.in.out_degrees[v]);
      RowOfEdges row = row_of(lease.out_edges, v);
      Inbox inbox{lease.inboxes[v], 1};
      lease.inboxes[v] = neutral_slots();
      lease.touched_in[v / 32] = 0; // all that are set in it end here
      sends = run_vertex(lease, plan, v, lease.status[v], inbox, tally);
      if (sends) // the next superstep walks them, if it is a push
        prefetch(&lease.out_edges.ends[row.first]);
    }
    append_senders(lease, &lease.control->num_new_senders.value,
                   &lease.control->num_new_hubs.value, sends, v);
  }
}
#endif

// Makes lists of bits: the superstep before was a pull, this one is a push.
__device__ inline void list_senders(const Lease &lease, const Plan &plan) {
  const uint32_t *bits = lease.sent[plan.superstep & 1];
  uint32_t words = (lease.num_owned + 31) / 32;
  uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
  for (uint32_t word = warp; word < words; word += warps) {
    bool sends = bits[word] >> lane_id() & 1;
    append_senders(lease, &lease.control->num_senders.value,
                   &lease.control->num_hubs.value, sends,
                   word * 32 + lane_id());
  }
}

// Makes bits of lists; all bits are empty before.
__device__ inline void mark_senders(const Lease &lease, const Plan &plan) {
  int parity = plan.superstep & 1;
  const uint32_t *lists[2] = {lease.senders, lease.hubs};
  uint32_t counts[2] = {plan.num_senders, plan.num_hubs};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = thread_of_grid(); i < counts[list];
         i += threads_of_grid()) {
      uint32_t v = lists[list][i];
      atomicOr(&lease.sent[parity][v / 32], 1u << v % 32);
    }
}

__device__ inline void clear_bits(uint32_t *bits, uint32_t num_owned) {
  for (uint32_t i = thread_of_grid(); i < (num_owned + 31) / 32;
       i += threads_of_grid())
    bits[i] = 0;
}

} // namespace sigps
