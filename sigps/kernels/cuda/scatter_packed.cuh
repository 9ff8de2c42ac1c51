// Push over rows that stay packed: what scatter.cuh does of rows in memory. Of
// a row only its own lines are read, where they lie.
//
// Schedule: a sender by a warp, those of over 4096 edges by one or more blocks,
// whose warps take its chunks in turn.

#pragma once

#include "gather_packed.cuh"
#include "scatter.cuh"

#if SIGPS_PACKED == 2 && SIGPS_NEUTRAL
namespace sigps {

constexpr uint32_t ROW_OF_BLOCK = 4096;

// Sends along those chunks of a sender's row that a warp has: every `step`th
// from `begin` on. Returns how many words crossed.
__device__ inline uint32_t scatter_row(const Lease &lease,
                                       const NextSuperstep &now,
                                       uint32_t *num_targets, uint32_t source,
                                       uint32_t begin, uint32_t step) {
  const PackedRows &rows = lease.packed;
  uint2 *groups = groups_of_warp();
  Route route{now.superstep, now.inbox_at};
  auto push = [&](const packed::Targets<AT_ONCE> &found) {
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
      const Arguments &given = SIGPS_ARGUMENTS_OF(lease.out, found, k);
      bool is_first =
          found.is_there[k] && send_with<true>(given, lease, now, route, source,
                                               0, found.targets[k]);
      list_target(lease, now, num_targets, is_first, found.targets[k]);
    }
  };
  uint32_t chain = packed::chain_of(rows, source);
  uint32_t page = rows.chains[chain], end = rows.chains[chain + 1];
  uint32_t left = lease.in.out_degrees[source], num_read = 0;
  bool spans = end - page > 1 && source == rows.first_rows[page];
  if (lane_id() == 0)
    packed::stamp_chain(rows, chain, stamp_of(now));
  if (!spans)
    return packed::for_part_in_place<AT_ONCE>(
        rows, end - 1, part_of(rows, source, left), begin, step, groups, push);
  for (; page < end; page++) {
    uint32_t arcs = min(left, rows.fronts[rows.first_fronts[page] + 2]);
    left -= arcs;
    num_read += packed::for_part_in_place<AT_ONCE>(
        rows, page, {source, 0, 0, arcs}, begin, step, groups, push);
  }
  return num_read;
}

__device__ inline void scatter_packed(const Lease &lease,
                                      const NextSuperstep &now,
                                      uint32_t *num_targets, uint32_t count,
                                      uint32_t num_hubs) {
  uint32_t warps = threads_of_grid() / 32, num_read = 0;
  uint32_t teams = num_hubs ? max(1u, gridDim.x / num_hubs) : 0;
  for (uint32_t k = blockIdx.x; k < num_hubs * teams; k += gridDim.x) {
    uint32_t source = lease.hubs[k % num_hubs];
    if (lease.in.out_degrees[source] > ROW_OF_BLOCK)
      num_read +=
          scatter_row(lease, now, num_targets, source,
                      k / num_hubs * (blockDim.x / 32) + threadIdx.x / 32,
                      teams * (blockDim.x / 32));
  }
  for (uint64_t i = spread_warp(); i < uint64_t(num_hubs) + count; i += warps) {
    uint32_t source =
        i < num_hubs ? lease.hubs[i] : lease.senders[i - num_hubs];
    if (i >= num_hubs || lease.in.out_degrees[source] <= ROW_OF_BLOCK)
      num_read += scatter_row(lease, now, num_targets, source, 0, 1);
  }
  if (lane_id() == 0 && num_read != 0)
    atomicAdd(lease.packed.num_read, static_cast<unsigned long long>(num_read));
}

} // namespace sigps
#endif
