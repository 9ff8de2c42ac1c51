// Common neighbours of a vertex and the targets of its edges, found by all
// lanes of a warp together.
//
// Each lane searches for one target of the shorter row in the longer one, by
// bisection; a ballot collects those in both, and calls return these one after
// another before the next 32 are searched for. The lanes of a warp run the same
// compute() of the same vertex: control flow is the same in all, and only here
// each lane reads another value.

#pragma once

#include "integers.cuh"
#include "team.cuh"

namespace sigps {

constexpr uint64_t NO_POSITION = ~0ull;

// What a lane keeps of what was found and is not yet returned.
struct Found {
  uint64_t next = NO_POSITION; // where the caller continues in the first row,
                               // if it continues with what was found
  uint64_t begin;              // where the second row begins
  uint64_t walk;               // where the 32 targets begin
  uint64_t place; // where this lane's target stands in the longer row, or what
                  // stands there in its place
  uint32_t lanes; // of which the hit is not yet returned
};

// The first of the positions low..end whose target is not below the goal, or
// `end`.
__device__ __forceinline__ uint64_t first_not_below(const uint32_t *targets,
                                                    uint64_t low, uint64_t end,
                                                    uint32_t goal) {
  while (low < end) {
    const uint64_t middle = (low + end) >> 1;
    if (targets[middle] < goal)
      low = middle + 1;
    else
      end = middle;
  }
  return low;
}

// Nothing found before is given any more. Stands in the place of `mark_row` of
// kernels/cpu/neighbors.py.
__device__ __forceinline__ int64_t forget_found(uint32_t *, uint32_t *cells,
                                                uint64_t, uint64_t) {
  reinterpret_cast<Found *>(cells)->next = NO_POSITION;
  return 0;
}

// Positions of the next common target, with a lane's `Found` in the place of
// marks. Stands in the place of `next_common` of kernels/cpu/neighbors.py.
// O(the shorter row / 32, times the logarithm of the longer one) for all calls
// together.
__device__ __forceinline__ int64_t
find_by_warp(uint32_t *targets, uint32_t *cells, uint64_t first, uint64_t at,
             uint64_t end, uint64_t begin, uint64_t other, uint64_t stop,
             uint64_t &next_at, uint64_t &next_other) {
  constexpr uint32_t ALL = 0xffffffffu;
  Found &kept = *reinterpret_cast<Found *>(cells);
  const bool walks_first = end - first <= stop - begin;
  uint64_t walk = walks_first ? at : other, search = walks_first ? other : at;
  const uint64_t row = walks_first ? first : begin;
  const uint64_t last = walks_first ? end : stop;
  const uint64_t limit = walks_first ? stop : end;
  uint64_t found = limit;
  uint32_t lanes = 0;
  if (kept.next == at && kept.begin == begin) {
    walk = kept.walk;
    found = kept.place;
    lanes = kept.lanes;
    if (lanes == 0) {
      walk += 32;
      search = __shfl_sync(ALL, found, 31);
    }
  }
  while (lanes == 0 && walk < last && search < limit) {
    const uint64_t mine = walk + lane_number();
    bool is_common = false;
    found = limit;
    if (mine < last) {
      const uint32_t target = targets[mine];
      found = first_not_below(targets, search, limit, target);
      const bool is_again = mine > row && targets[mine - 1] == target;
      is_common = found < limit && targets[found] == target && !is_again;
    }
    lanes = __ballot_sync(ALL, is_common);
    if (lanes == 0) {
      walk += 32;
      search = __shfl_sync(ALL, found, 31);
    }
  }
  if (lanes == 0) {
    next_at = end;
    next_other = other;
    return 0;
  }
  const int giver = __ffs(int(lanes)) - 1;
  const uint64_t here = walk + uint64_t(giver);
  const uint64_t there = __shfl_sync(ALL, found, giver);
  next_at = walks_first ? here : there;
  next_other = walks_first ? there : here;
  kept.next = next_at + 1;
  kept.begin = begin;
  kept.walk = walk;
  kept.place = found;
  kept.lanes = lanes & (lanes - 1);
  return 0;
}

// The same for lanes that each take a common target by themselves, of the next
// 32 targets of the shorter row of which one is common: its positions, or
// NO_POSITION twice. `end`, for all lanes, where there is none any more.
// `at` and `other` are read by the first call after forget_found.
__device__ __forceinline__ int64_t
find_for_lanes(uint32_t *targets, uint32_t *cells, uint64_t first, uint64_t at,
               uint64_t end, uint64_t begin, uint64_t other, uint64_t stop,
               uint64_t &next_at, uint64_t &next_other) {
  constexpr uint32_t ALL = 0xffffffffu;
  Found &kept = *reinterpret_cast<Found *>(cells);
  const bool walks_first = end - first <= stop - begin;
  uint64_t walk = walks_first ? at : other, search = walks_first ? other : at;
  if (kept.next != NO_POSITION) {
    walk = kept.walk;
    search = kept.place;
  }
  const uint64_t row = walks_first ? first : begin;
  const uint64_t last = walks_first ? end : stop;
  const uint64_t limit = walks_first ? stop : end;
  kept.next = 0;
  while (walk < last && search < limit) {
    const uint64_t mine = walk + lane_number();
    bool is_common = false;
    uint64_t found = limit;
    if (mine < last) {
      const uint32_t target = targets[mine];
      found = first_not_below(targets, search, limit, target);
      const bool is_again = mine > row && targets[mine - 1] == target;
      is_common = found < limit && targets[found] == target && !is_again;
    }
    walk += 32;
    search = __shfl_sync(ALL, found, 31);
    if (__ballot_sync(ALL, is_common) != 0) {
      kept.walk = walk;
      kept.place = search;
      next_at = is_common ? (walks_first ? mine : found) : NO_POSITION;
      next_other = is_common ? (walks_first ? found : mine) : NO_POSITION;
      return 0;
    }
  }
  next_at = end;
  next_other = other;
  return 0;
}

// In how many lanes something holds. All lanes call, as they do the others.
__device__ __forceinline__ int64_t count_lanes(bool holds, int64_t &count) {
  count = __popc(__ballot_sync(0xffffffffu, holds));
  return 0;
}

// What the lane whose number differs in one bit has, of which a step is one.
template <class T>
__device__ __forceinline__ int64_t step_of_lanes(int64_t step, T value,
                                                 T &other) {
  const int lane = int(uint32_t(lane_number()) ^ 1u << step);
  if constexpr (sizeof(T) < 4)
    other = T(__shfl_sync(0xffffffffu, int(value), lane));
  else
    other = __shfl_sync(0xffffffffu, value, lane);
  return 0;
}

} // namespace sigps
