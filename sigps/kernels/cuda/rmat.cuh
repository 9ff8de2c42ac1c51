// Edges of recursive matrices and their weights, by number: what
// graph/generators/edge_streams.py draws.

#pragma once

#include "integers.cuh"

namespace {

__device__ uint64_t first_index() {
  return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ uint64_t num_threads() { return uint64_t(gridDim.x) * blockDim.x; }

__device__ uint64_t splitmix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

// random_bits.permute of 2^num_bits values
__device__ uint64_t permuted(uint64_t word, uint32_t num_bits,
                             const uint64_t *round_keys, uint32_t num_rounds) {
  uint32_t shift = num_bits / 2;
  uint64_t low_mask = (1ull << shift) - 1;
  uint64_t high_mask = (1ull << (num_bits - shift)) - 1;
  for (uint32_t round = 0; round < num_rounds; ++round)
    word ^=
        round % 2 == 0
            ? (splitmix64((word & low_mask) + round_keys[round]) & high_mask)
                  << shift
            : splitmix64((word >> shift) + round_keys[round]) & low_mask;
  return word;
}

// The key of an edge of a recursive matrix, as of edge_streams.draw_rmat.
__device__ uint64_t drawn(uint64_t edge, uint32_t scale, uint64_t to_b,
                          uint64_t to_c, uint64_t to_d, uint64_t seed_key,
                          const uint64_t *round_keys, uint32_t num_rounds) {
  uint64_t source = 0, target = 0;
  for (uint32_t level = 0; level < scale; ++level) {
    uint64_t draw = splitmix64(seed_key + edge * 64 + level) >> 11;
    uint64_t in_b = draw >= to_b, in_c = draw >= to_c, in_d = draw >= to_d;
    source = source << 1 | in_c;
    target = target << 1 | (in_b ^ in_c ^ in_d);
  }
  return permuted(source, scale, round_keys, num_rounds) << 32 |
         permuted(target, scale, round_keys, num_rounds);
}

// The weight of an edge, as of edge_streams.weigh.
__device__ float weight_of(uint64_t source, uint64_t target,
                           uint64_t seed_key) {
  uint64_t low = source < target ? source : target;
  uint64_t bits =
      splitmix64(splitmix64(low + seed_key) + (source ^ target ^ low));
  return float(((bits >> 32) * 255 >> 32) + 1);
}

} // namespace
