// A team: all warps of a block, which run compute() of one vertex together.
// They take the edges of its divided loops in turn, and join what each folded
// (`compiler/cuda/teams.py`); all else every warp does, with the same values. A
// warp alone is a team of one.
//
// `cells` is what compute() gets as marks: a lane's `Found`
// (warp_neighbors.cuh), which begins with its team. Also compiled for the host,
// by tests.

#pragma once

#include "arithmetic.cuh"
#include "integers.cuh"

namespace sigps {

struct Team {
  uint32_t warps; // of the team
  uint32_t rank;  // which of them this is
};

#if defined(__CUDACC_RTC__)
__device__ __forceinline__ uint64_t lane_number() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ __forceinline__ uint32_t warp_of_block() { return threadIdx.x / 32; }

__device__ __forceinline__ void sync_block() { __syncthreads(); }

// A cell for each warp of the block.
template <class T> __device__ __forceinline__ T *cells_of_block() {
  __shared__ T of_warp[32];
  return of_warp;
}
#endif

// The team of this warp and those of its block, so many; 0: this one alone.
__device__ __forceinline__ Team team_of(uint32_t warps) {
  return warps > 1 ? Team{warps, warp_of_block()} : Team{1, 0};
}

__device__ __forceinline__ void sync_team(const Team &team) {
  if (team.warps > 1)
    sync_block();
  else
    sync_warp();
}

// What others of the team read before may be written from here on.
__device__ __forceinline__ int64_t begin_team(uint32_t *cells) {
  sync_team(*reinterpret_cast<Team *>(cells));
  return 0;
}

// What the team wrote may be read from here on.
__device__ __forceinline__ int64_t end_team(uint32_t *cells) {
  return begin_team(cells);
}

// How many of the edges begin..end this warp takes, every so manieth.
__device__ __forceinline__ int64_t turns_of_team(uint32_t *cells,
                                                 uint64_t begin, uint64_t end,
                                                 int64_t &turns) {
  const Team &of = *reinterpret_cast<Team *>(cells);
  const uint64_t edges = end - begin;
  turns = edges > of.rank ? (edges - of.rank + of.warps - 1) / of.warps : 0;
  return 0;
}

__device__ __forceinline__ int64_t edge_of_team(uint32_t *cells, uint64_t begin,
                                                int64_t turn, uint64_t &edge) {
  const Team &of = *reinterpret_cast<Team *>(cells);
  edge = begin + uint64_t(turn) * of.warps + of.rank;
  return 0;
}

// What the warps of a team have, joined, for each of them.
template <class T, class Join>
__device__ __forceinline__ T join_team(uint32_t *cells, T value, Join join) {
  const Team &of = *reinterpret_cast<Team *>(cells);
  if (of.warps == 1)
    return value;
  T *of_warp = cells_of_block<T>();
  if (lane_number() == 0)
    of_warp[of.rank] = value;
  sync_block();
  T all = of_warp[0];
  for (uint32_t warp = 1; warp < of.warps; warp++)
    all = join(all, of_warp[warp]);
  sync_block();
  return all;
}

template <class T> __device__ __forceinline__ T add(T a, T b, bool &) {
  return T(a + b);
}
__device__ __forceinline__ int64_t add(int64_t a, int64_t b, bool &is_lost) {
  const int64_t sum = int64_t(uint64_t(a) + uint64_t(b));
  is_lost |= overflows_add(a, b, sum);
  return sum;
}

// Returns whether the sum does not fit.
template <class T>
__device__ __forceinline__ int64_t join_sum(uint32_t *cells, T value, T &all) {
  bool is_lost = false;
  all = join_team(cells, value, [&](T a, T b) { return add(a, b, is_lost); });
  return is_lost;
}

template <class T>
__device__ __forceinline__ int64_t join_min(uint32_t *cells, T value, T &all) {
  all = join_team(cells, value, [](T a, T b) { return b < a ? b : a; });
  return 0;
}

template <class T>
__device__ __forceinline__ int64_t join_max(uint32_t *cells, T value, T &all) {
  all = join_team(cells, value, [](T a, T b) { return b > a ? b : a; });
  return 0;
}

} // namespace sigps
