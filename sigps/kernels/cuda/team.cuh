// A team: all warps of a block, with SIGPS_BY_WARP, or all threads of a block
// or of a warp, which run compute() of one vertex together. They take the turns
// of its divided loops one after the other, and join what each folded
// (`compiler/cuda/teams.py`); all else every member does, with the same values.
// A vertex of few edges has a team of one: a warp, or a thread. Also compiled
// for the host, by tests.
//
// `team` is what compute() gets; the number of members is a power of two.

#pragma once

#include "arithmetic.cuh"
#include "integers.cuh"

#ifndef SIGPS_WARP_SIZE
#define SIGPS_WARP_SIZE 32
#endif

namespace sigps {

struct Team {
  uint32_t members;
  uint32_t rank; // which of them this is
};

#if defined(__CUDACC_RTC__)
__device__ __forceinline__ uint64_t lane_number() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

__device__ __forceinline__ uint32_t member_of_block() {
  return SIGPS_BY_WARP ? threadIdx.x / 32 : threadIdx.x;
}

__device__ __forceinline__ uint32_t member_of_warp() { return lane_number(); }

__device__ __forceinline__ void sync_block() { __syncthreads(); }

// What the warp whose number differs in these bits has.
template <class T>
__device__ __forceinline__ T of_other_warp(T value, uint32_t bits) {
  __shared__ T of_warp[32];
  if (lane_number() == 0)
    of_warp[threadIdx.x / 32] = value;
  sync_block();
  value = of_warp[threadIdx.x / 32 ^ bits];
  sync_block();
  return value;
}

// What the member whose rank differs in one bit has. All of a warp have the
// same where they ask for another warp's.
template <class T>
__device__ __forceinline__ T of_other(const Team &, T value, uint32_t bit) {
  if (SIGPS_BY_WARP)
    return of_other_warp(value, bit);
  if (bit >= 32)
    return of_other_warp(value, bit / 32);
  if constexpr (sizeof(T) < 4)
    return T(__shfl_xor_sync(0xffffffffu, int(value), bit));
  else
    return __shfl_xor_sync(0xffffffffu, value, bit);
}
#endif

__device__ __forceinline__ bool is_of_block(uint32_t members) {
  return members > (SIGPS_BY_WARP ? 1 : SIGPS_WARP_SIZE);
}

// The team of this member and the others of its block or warp, so many; 0 or 1:
// it alone.
__device__ __forceinline__ Team team_of(uint32_t members) {
  if (is_of_block(members))
    return {members, member_of_block()};
  return members > 1 ? Team{members, member_of_warp()} : Team{1, 0};
}

__device__ __forceinline__ void sync_team(const Team &team) {
  if (is_of_block(team.members))
    sync_block();
  else if (SIGPS_BY_WARP || team.members > 1)
    sync_warp();
}

__device__ __forceinline__ const Team &known_team(uint32_t *team) {
  return *reinterpret_cast<const Team *>(team);
}

// What others of the team read before may be written from here on; what they
// wrote may be read.
__device__ __forceinline__ int64_t meet_team(uint32_t *team) {
  sync_team(known_team(team));
  return 0;
}

// Whether this member does what only one of them is to do.
__device__ __forceinline__ int64_t leads_team(uint32_t *team, bool &leads) {
  leads = known_team(team).rank == 0;
  return 0;
}

// How many of the positions begin..end this member takes, every so manieth.
template <class Position>
__device__ __forceinline__ int64_t turns_of_team(uint32_t *team, Position begin,
                                                 Position end, int64_t &turns) {
  const Team &of = known_team(team);
  const uint64_t all = end > begin ? uint64_t(end) - uint64_t(begin) : 0;
  if (of.members == 1) // without a division
    turns = int64_t(all);
  else
    turns = all > of.rank ? (all - of.rank + of.members - 1) / of.members : 0;
  return 0;
}

template <class Position>
__device__ __forceinline__ int64_t turn_of_team(uint32_t *team, int64_t turn,
                                                Position begin, Position &at) {
  const Team &of = known_team(team);
  at = begin + Position(uint64_t(turn) * of.members + of.rank);
  return 0;
}

// In so many steps, each with another member, all get what all have.
__device__ __forceinline__ int64_t steps_of_team(uint32_t *team,
                                                 int64_t &steps) {
  steps = 0;
  while (1u << steps < known_team(team).members)
    ++steps;
  return 0;
}

// What the other member of a step has.
template <class T>
__device__ __forceinline__ int64_t step_of_team(uint32_t *team, int64_t step,
                                                T value, T &other) {
  other = of_other(known_team(team), value, 1u << step);
  return 0;
}

// What the members have, joined, for each of them. `join` is symmetric.
template <class T, class Join>
__device__ __forceinline__ T join_team(uint32_t *team, T value, Join join) {
  for (uint32_t bit = 1; bit < known_team(team).members; bit *= 2)
    value = join(value, of_other(known_team(team), value, bit));
  return value;
}

__device__ __forceinline__ uint32_t any_of_team(const Team &team,
                                                uint32_t value) {
  uint32_t any = value;
  for (uint32_t bit = 1; bit < team.members; bit *= 2)
    any |= of_other(team, any, bit);
  return any;
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
__device__ __forceinline__ int64_t join_sum(uint32_t *team, T value, T &all) {
  bool is_lost = false;
  all = join_team(team, value, [&](T a, T b) { return add(a, b, is_lost); });
  return is_lost;
}

} // namespace sigps
