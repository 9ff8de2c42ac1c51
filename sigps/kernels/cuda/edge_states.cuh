// Commits edge states: arguments.pending is copied to arguments.committed, the
// rows of the vertices that wrote to them.
//
// Schedule: 32 vertices of most in-edges the grid, of many a block, of fewer a
// warp. Rows of
// successive vertices lie together and are copied as one. Every row and every
// word of bits has one writer; a barrier stands before and after. Where other
// ranks have mirrors, the hosts commit instead, or crossing_values.cu does.

#pragma once

#include "lease.cuh"

namespace sigps {

template <class T>
__device__ inline void copy_span(const void *pending, void *committed,
                                 uint64_t begin, uint64_t end, uint32_t i,
                                 uint32_t stride) {
  const T *from = static_cast<const T *>(pending);
  T *to = static_cast<T *>(committed);
  for (uint64_t at = begin + i; at < end; at += stride)
    to[at] = from[at];
}

// Commits the rows of a word's vertices, by threads i of `stride`.
__device__ inline void commit_rows(const Lease &lease, uint32_t word,
                                   uint32_t i, uint32_t stride) {
  const Arguments &arguments = lease.in;
  uint32_t bits = lease.wrote[word];
  while (bits != 0) {
    uint32_t first = __ffs(bits) - 1;
    uint32_t others = ~(bits >> first);
    uint32_t count = others == 0 ? 32 : __ffs(others) - 1;
    uint64_t begin = arguments.out_offsets[word * 32 + first];
    uint64_t end = arguments.out_offsets[word * 32 + first + count];
#define SIGPS_COMMIT(k, type)                                                  \
  copy_span<type>(arguments.pending[k], arguments.committed[k], begin, end, i, \
                  stride);
    SIGPS_EACH_EDGE_STATE(SIGPS_COMMIT)
    bits = count == 32 ? 0 : bits & ~(((1u << count) - 1) << first);
  }
}

// So many words of vertices of most edges are committed by the whole grid;
// their bits are cleared when it is done.
constexpr uint32_t WORDS_OF_GRID = 32;

__device__ inline void commit_edge_states(const Lease &lease) {
  uint32_t words = (lease.num_owned + 31) / 32;
  uint32_t block_words = min(words, lease.in_edges.num_csr_rows / 32);
  uint32_t grid_words = min(block_words, WORDS_OF_GRID);
  for (uint32_t word = 0; word < grid_words; word++)
    commit_rows(lease, word, thread_of_grid(), threads_of_grid());
  for (uint32_t word = grid_words + blockIdx.x; word < block_words;
       word += gridDim.x) {
    commit_rows(lease, word, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
      lease.wrote[word] = 0;
  }
  for (uint32_t word = block_words + spread_warp(); word < words;
       word += threads_of_grid() / 32) {
    commit_rows(lease, word, lane_id(), 32);
    __syncwarp();
    if (lane_id() == 0)
      lease.wrote[word] = 0;
  }
}

} // namespace sigps
