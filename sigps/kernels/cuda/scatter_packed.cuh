// Push over rows that stay packed: what scatter.cuh does of rows in memory. Of
// a row only its own lines are read, where they lie.
//
// Schedule: a sender by a warp, those of over 4096 edges by as many as have
// 1024 each, which take its chunks in turn.

#pragma once

#include "gather_packed.cuh"
#include "scatter.cuh"

#if (SIGPS_PACKED == 2 || SIGPS_PACKED == 4) && SIGPS_NEUTRAL
namespace sigps {

// Up to so many edges are one warp's; of more, so many at least for each warp.
constexpr uint32_t ROW_OF_WARP = 4096;
constexpr uint32_t EDGES_OF_SHARE = 1024;
constexpr uint32_t SHARES_OF_HUB = ROW_OF_WARP / EDGES_OF_SHARE + 1;

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
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32, num_read = 0;
  for (uint32_t begin = 0; begin < num_hubs;
       begin += 32) { // a lane looks at one
    uint32_t k = begin + lane_id();
    uint32_t hub = k < num_hubs ? lease.hubs[k] : 0;
    uint32_t degree = k < num_hubs ? lease.in.out_degrees[hub] : 0;
    uint32_t sharing = // warps, those of other hubs next to them
        degree <= ROW_OF_WARP ? 0 : min(warps, degree / EDGES_OF_SHARE);
    uint32_t at = uint32_t(uint64_t(k) * SHARES_OF_HUB % warps);
    uint32_t mine = warp >= at ? warp - at : warp + warps - at;
    uint32_t those = __ballot_sync(ALL_LANES, mine < sharing);
    for (; those != 0; those &= those - 1) {
      uint32_t lane = __ffs(those) - 1;
      num_read += scatter_row(lease, now, num_targets,
                              __shfl_sync(ALL_LANES, hub, lane),
                              __shfl_sync(ALL_LANES, mine, lane),
                              __shfl_sync(ALL_LANES, sharing, lane));
    }
  }
  for (uint64_t i = warp; i < uint64_t(num_hubs) + count; i += warps) {
    uint32_t source =
        i < num_hubs ? lease.hubs[i] : lease.senders[i - num_hubs];
    if (i >= num_hubs || lease.in.out_degrees[source] <= ROW_OF_WARP)
      num_read += scatter_row(lease, now, num_targets, source, 0, 1);
  }
  if (lane_id() == 0 && num_read != 0)
    atomicAdd(lease.packed.num_read, static_cast<unsigned long long>(num_read));
}

} // namespace sigps
#endif
