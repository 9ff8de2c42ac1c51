// The bucket of values that wait in a run in priority order, and the release of
// the best of them (engine/gpu/priority.py).
//
// Schedule: a warp has WORDS words of bits, a lane a vertex of each; any number
// of blocks. A vertex that does not wait costs its bit.
//
//   waiting: [num_owned / 32 rounded up to whole WORDS] bits
//   status:  [num_owned]
//   values:  [num_owned]  what each vertex would send
//   degrees: [num_owned]  out-edges
//   found:   counts from 0 on, and from the worst value
//
// Macros: SIGPS_VALUE, an integer; SIGPS_BEST, that of 64 bits and its sign;
// SIGPS_TAKES_MIN; SIGPS_RETIRED, the status of vertices that leave the bucket.

#include "integers.cuh"

namespace {

using Value = SIGPS_VALUE;
using Best = SIGPS_BEST;

struct Found {
  unsigned long long waiting_edges; // out-edges of vertices that wait
  Best best;
  unsigned long long senders, sent_edges; // of released vertices
};

constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t WORDS = 4;

__device__ inline Best better(Best a, Best b) {
  return (SIGPS_TAKES_MIN ? a < b : b < a) ? a : b;
}

__device__ inline unsigned long long sum_of_warp(unsigned long long value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

__device__ inline Best best_of_warp(Best value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value = better(value, __shfl_xor_sync(ALL_LANES, value, step));
  return value;
}

// Calls visit(word, bits) for groups of words, and the bits of this lane's
// vertices, by all lanes.
template <class Visit>
__device__ inline void for_words(const uint32_t *waiting, uint32_t num_words,
                                 Visit visit) {
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  uint32_t warps = gridDim.x * blockDim.x / 32;
  for (uint32_t word = warp * WORDS; word < num_words; word += warps * WORDS) {
    uint4 four = *reinterpret_cast<const uint4 *>(waiting + word);
    uint32_t bits[WORDS] = {four.x, four.y, four.z, four.w};
    visit(word, bits);
  }
}

} // namespace

// Adds up the out-edges of the vertices that wait, and finds the best of their
// values.
extern "C" __global__ void __launch_bounds__(256)
    find_best_warp_mapped(uint32_t *waiting, const uint8_t *status,
                          const Value *values, const uint32_t *degrees,
                          uint32_t num_owned, Found *found) {
  uint32_t lane = threadIdx.x % 32;
  unsigned long long edges = 0;
  Best best = found->best;
  for_words(waiting, (num_owned + 31) / 32,
            [&](uint32_t first, const uint32_t *bits) {
              bool waits[WORDS];
              uint32_t degree[WORDS];
              Value value[WORDS];
#pragma unroll
              for (uint32_t k = 0; k < WORDS;
                   k++) { // all loads are issued at once
                uint32_t v = (first + k) * 32 + lane;
                waits[k] = bits[k] >> lane & 1 && v < num_owned;
                if (waits[k]) {
                  waits[k] = status[v] != SIGPS_RETIRED;
                  degree[k] = degrees[v];
                  value[k] = values[v];
                }
              }
#pragma unroll
              for (uint32_t k = 0; k < WORDS; k++) {
                if (waits[k]) {
                  edges += degree[k];
                  best = better(best, value[k]);
                }
                uint32_t rest = __ballot_sync(ALL_LANES, waits[k]);
                if (lane == 0 && rest != bits[k])
                  waiting[first + k] = rest;
              }
            });
  edges = sum_of_warp(edges);
  best = best_of_warp(best);
  if (lane == 0 && edges != 0) {
    atomicAdd(&found->waiting_edges, edges);
    SIGPS_TAKES_MIN ? atomicMin(&found->best, best)
                    : atomicMax(&found->best, best);
  }
}

// Releases the vertices that have the best value, or all that wait: they send
// their values, and no others do.
//
//   records: [num_owned]
//   sent:    [num_sent_words] bits, of ghosts too
extern "C" __global__ void __launch_bounds__(256)
    release_warp_mapped(uint32_t *waiting, const Value *values,
                        const uint32_t *degrees, uint32_t num_owned,
                        uint32_t takes_all, Best best, Value *records,
                        uint32_t *sent, uint32_t num_sent_words, Found *found) {
  uint32_t lane = threadIdx.x % 32;
  uint32_t num_words = (num_owned + 31) / 32;
  uint32_t senders = 0;
  unsigned long long edges = 0;
  for_words(waiting, num_words, [&](uint32_t first, const uint32_t *bits) {
    Value value[WORDS];
    uint32_t degree[WORDS];
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++) {
      uint32_t v = (first + k) * 32 + lane;
      if (bits[k] >> lane & 1) {
        value[k] = values[v];
        degree[k] = degrees[v];
      }
    }
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++) {
      bool goes = bits[k] >> lane & 1 && (takes_all || Best(value[k]) == best);
      if (goes) {
        records[(first + k) * 32 + lane] = value[k];
        senders += degree[k] != 0;
        edges += degree[k];
      }
      uint32_t those = __ballot_sync(ALL_LANES, goes);
      if (lane == 0 && first + k < num_words) {
        sent[first + k] = those;
        if (those != 0)
          waiting[first + k] = bits[k] & ~those;
      }
    }
  });
  for (uint32_t word = num_words + blockIdx.x * blockDim.x + threadIdx.x;
       word < num_sent_words; word += gridDim.x * blockDim.x)
    sent[word] = 0;
  senders = __reduce_add_sync(ALL_LANES, senders);
  edges = sum_of_warp(edges);
  if (lane == 0 && senders != 0) {
    atomicAdd(&found->senders, static_cast<unsigned long long>(senders));
    atomicAdd(&found->sent_edges, edges);
  }
}
