// Sorted lists: each vertex's list of messages in ascending order of
// sigps_key(), those of one key in the order in which they were listed. What is
// sorted goes into a second half of the lists, lease.num_listed positions on.
//
// Schedule: lists of up to SORTED_BY_WARP messages a warp each, longer ones a
// block each. Positions are sorted by their keys in a network (bitonic, its
// first step of each width mirrored, so that every pair is sorted the same way
// and a list of any length is one whose rest is larger), then messages copied.

#pragma once

#include "by_block.cuh"

namespace sigps {

#if SIGPS_SORTED

constexpr uint64_t SORTED_BY_WARP = 2048;

// Who sorts a list together.
struct Warp {
  __device__ uint32_t rank() const { return lane_id(); }
  __device__ uint32_t size() const { return 32; }
  __device__ void wait() const { __syncwarp(); }
};

struct Block {
  __device__ uint32_t rank() const { return threadIdx.x; }
  __device__ uint32_t size() const { return blockDim.x; }
  __device__ void wait() const { __syncthreads(); }
};

__device__ inline void sort_pair(uint64_t *keys, uint32_t *order, uint64_t low,
                                 uint64_t high) {
  uint64_t key = keys[low], other = keys[high];
  uint32_t at = order[low], other_at = order[high];
  if (key < other || (key == other && at < other_at))
    return;
  keys[low] = other, keys[high] = key;
  order[low] = other_at, order[high] = at;
}

// Sorts the list of v, positions begin..end. By all of a group.
template <class Group>
__device__ inline void sort_list(const Lease &lease, const NextSuperstep &now,
                                 uint32_t v, uint64_t begin, uint64_t end,
                                 Group group) {
  uint64_t *keys = lease.list_keys + begin;
  uint32_t *order = lease.list_order + begin;
  uint64_t count = end - begin;
  for (uint64_t i = group.rank(); i < count; i += group.size()) {
    keep_fault(lease.in, now.superstep, v,
               sigps_key(&lease.in, now.superstep, begin + i, &keys[i]));
    order[i] = i;
  }
  group.wait();
  for (uint64_t width = 2; width < 2 * count; width *= 2) {
    uint64_t half = width / 2;
    uint64_t pairs = (count + width - 1) / width * half;
    for (uint64_t i = group.rank(); i < pairs; i += group.size()) {
      uint64_t first = i / half * width, step = i % half;
      if (first + width - 1 - step < count)
        sort_pair(keys, order, first + step, first + width - 1 - step);
    }
    group.wait();
    for (uint64_t step = half / 2; step > 0; step /= 2) {
      for (uint64_t i = group.rank(); i < pairs; i += group.size()) {
        uint64_t low = i / step * 2 * step + i % step;
        if (low + step < count)
          sort_pair(keys, order, low, low + step);
      }
      group.wait();
    }
  }
  for (uint64_t i = group.rank(); i < count; i += group.size())
    sigps_copy_listed(&lease.in, begin + order[i],
                      lease.num_listed + begin + i);
}

// Sorts the lists of all vertices; span(v) is where one's is, and has none of a
// vertex that is not owned. All threads of the grid call; a barrier must stand
// before what reads the lists.
template <class Span>
__device__ inline void sort_lists(const Lease &lease, const NextSuperstep &now,
                                  Span span) {
  uint32_t groups = threads_of_grid() / 32;
  uint32_t slices = (lease.num_owned + 31) / 32;
  for (uint32_t slice = spread_warp(); slice < slices; slice += groups) {
    uint32_t v = slice * 32 + lane_id();
    Inbox mine = span(v);
    uint64_t count = mine.end - mine.begin;
    uint32_t those =
        __ballot_sync(ALL_LANES, count > 0 && count <= SORTED_BY_WARP);
    for (; those != 0; those &= those - 1) {
      uint32_t lane = __ffs(those) - 1;
      sort_list(lease, now, slice * 32 + lane,
                __shfl_sync(ALL_LANES, mine.begin, lane),
                __shfl_sync(ALL_LANES, mine.end, lane), Warp{});
    }
  }
  for_long_ones(
      lease,
      [&](uint32_t v) {
        Inbox one = span(v);
        return uint64_t(one.end - one.begin);
      },
      SORTED_BY_WARP,
      [&](uint32_t v) {
        Inbox one = span(v);
        sort_list(lease, now, v, one.begin, one.end, Block{});
      });
}

// Where the list of a vertex lies once it is sorted.
__device__ inline Inbox sorted(const Lease &lease, const Inbox &inbox) {
  return listed(lease.num_listed + inbox.begin, lease.num_listed + inbox.end);
}

#endif

} // namespace sigps
