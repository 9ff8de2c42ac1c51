// Lets listed vertices of a program of first arrivals compute again, in the
// superstep of their levels, from in-neighbours of the level before: what they
// keep besides is then that of a full run. Linked with the program's functions.
//
// Schedule: rows of many edges are read by a block each, others by a warp; any
// grid. A vertex's states have one writer, and levels are read apart from them,
// so vertices may compute in any order. Where the first message decides, it is
// that of the first in-edge whose source has the level before.

#include "combine.cuh"

using namespace sigps;

// What `arrivals.cu` left.
struct Again {
  const uint32_t *count;       // of `vertices`
  const uint32_t *is_given_up; // 1: nobody computes
  const uint32_t *vertices;
  const uint32_t *levels;  // [rows]; NO_LEVEL: back to the states of before
  const uint64_t *begins;  // [rows] in-edges, as `ChangingRows` has them
  const uint32_t *degrees; // [rows]
  const uint32_t *ends;
  void *states[8];      // [rows] each
  const void *first[8]; // after superstep 0
  uint32_t bytes[8];    // of a value
  uint32_t num_states;
};

namespace {

constexpr uint32_t MANY = 1024; // in-edges of a vertex that takes a block
constexpr uint32_t NO_LEVEL = ~0u, NO_EDGE = ~0u;
constexpr uint32_t AT_ONCE = 8; // edges that a thread of such a block looks at

__device__ inline void copy_value(void *to, const void *from, uint32_t v,
                                  uint32_t bytes) {
  memcpy(static_cast<char *>(to) + uint64_t(v) * bytes,
         static_cast<const char *>(from) + uint64_t(v) * bytes, bytes);
}

// Whether an in-edge of v brings a message.
__device__ inline bool brings(const Again &again, uint32_t v, uint32_t i) {
  return again.levels[again.ends[again.begins[v] + i]] == again.levels[v] - 1;
}

// Puts the message of an in-edge into an inbox.
__device__ inline void take(const Arguments &arguments, const Again &again,
                            uint32_t v, uint32_t i, Inbox &inbox) {
  uint64_t edge = again.begins[v] + i;
  int64_t superstep = again.levels[v];
  Occasion when{arguments, superstep, v};
  Record none{};
  Slots value;
  uint32_t s = again.ends[edge];
  if (when.passes(
          sigps_deliver(&arguments, superstep - 1, &none, s, v, edge, &value),
          s))
    put(inbox, value, when);
}

// By one thread.
__device__ inline void run_again(const Arguments &arguments, const Again &again,
                                 uint32_t v, const Inbox &inbox) {
  for (uint32_t k = 0; k < again.num_states; k++)
    copy_value(again.states[k], again.first[k], v, again.bytes[k]);
  if (again.levels[v] == NO_LEVEL)
    return;
  Record record;
  Totals given;
  compute(arguments, again.levels[v], v, inbox, 0, &record, &given);
}

__device__ inline void run_by_warp(const Arguments &arguments,
                                   const Again &again, uint32_t v) {
  Inbox inbox = empty_inbox();
  uint32_t degree = again.levels[v] == NO_LEVEL ? 0 : again.degrees[v];
  for (uint32_t base = 0; base < degree; base += 32) {
    uint32_t i = base + lane_id();
    bool is_one = i < degree && brings(again, v, i);
    if (!SIGPS_EARLY_EXIT) {
      if (is_one)
        take(arguments, again, v, i, inbox);
      continue;
    }
    uint32_t those = __ballot_sync(ALL_LANES, is_one);
    if (those == 0)
      continue;
    if (lane_id() == 0)
      take(arguments, again, v, base + __ffs(int(those)) - 1, inbox);
    break;
  }
  if (!SIGPS_EARLY_EXIT)
    inbox = combine_warp(inbox, Occasion{arguments, again.levels[v], v});
  if (lane_id() == 0)
    run_again(arguments, again, v, inbox);
}

// The first in-edge that brings a message. By a whole block.
__device__ inline uint32_t find_first(const Again &again, uint32_t v) {
  __shared__ uint32_t least;
  uint32_t degree = again.degrees[v];
  for (uint32_t base = 0; base < degree; base += AT_ONCE * blockDim.x) {
    uint32_t mine = NO_EDGE;
    for (uint32_t k = 0; k < AT_ONCE; k++) {
      uint32_t i = base + k * blockDim.x + threadIdx.x;
      if (i < degree && brings(again, v, i))
        mine = min(mine, i);
    }
    if (threadIdx.x == 0)
      least = NO_EDGE;
    if (__syncthreads_or(mine != NO_EDGE)) {
      if (mine != NO_EDGE)
        atomicMin(&least, mine);
      __syncthreads();
      uint32_t found = least;
      __syncthreads(); // before it is written again
      return found;
    }
  }
  return NO_EDGE;
}

__device__ inline void run_by_block(const Arguments &arguments,
                                    const Again &again, uint32_t v) {
  __shared__ Inbox of_warps[32];
  Occasion when{arguments, again.levels[v], v};
  Inbox inbox = empty_inbox();
  if (SIGPS_EARLY_EXIT) {
    uint32_t i = find_first(again, v);
    if (threadIdx.x == 0 && i != NO_EDGE)
      take(arguments, again, v, i, inbox);
  } else {
    for (uint32_t i = threadIdx.x; i < again.degrees[v]; i += blockDim.x)
      if (brings(again, v, i))
        take(arguments, again, v, i, inbox);
    inbox = combine_warp(inbox, when);
    if (lane_id() == 0)
      of_warps[threadIdx.x / 32] = inbox;
    __syncthreads();
    if (threadIdx.x == 0)
      for (uint32_t w = 1; w < blockDim.x / 32; w++)
        put(inbox, of_warps[w], when);
  }
  if (threadIdx.x == 0)
    run_again(arguments, again, v, inbox);
  __syncthreads(); // before of_warps is written again
}

} // namespace

extern "C" __global__ void __launch_bounds__(256)
    compute_again_warp_mapped(const __grid_constant__ Arguments arguments,
                              const __grid_constant__ Again again) {
  if (*again.is_given_up)
    return;
  uint32_t count = *again.count;
  auto takes_block = [&](uint32_t v) {
    return again.levels[v] != NO_LEVEL && again.degrees[v] > MANY;
  };
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (uint32_t k = warp; k < count; k += gridDim.x * blockDim.x / 32)
    if (!takes_block(again.vertices[k]))
      run_by_warp(arguments, again, again.vertices[k]);
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x)
    if (takes_block(again.vertices[k]))
      run_by_block(arguments, again, again.vertices[k]);
}
