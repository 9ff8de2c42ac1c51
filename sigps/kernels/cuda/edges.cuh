// Where the edges of a partition lie: the first rows, of many edges, one after
// another (CSR), the others in slices of 32 rows, column by column, so that a
// warp whose lanes each walk a row reads 128 bytes at a time (SELL-32; Kreutzer
// et al., SIAM J. Sci. Comput. 36, 2014).
//
// Rows are in descending order of their degree; num_csr_rows is a multiple of
// 32. Within a row edges keep their order. A slice is as wide as its longest
// row, and what lies beyond the end of a shorter one is never read.
//
//   offsets: [num_csr_rows + 1]         position of each CSR row's first edge
//   slices:  [num_rows / 32 rounded up, less num_csr_rows / 32, + 1]
//   ends:    [slices[last]]             local id of each edge's other end
//   degrees: [num_rows]

#pragma once

#include "integers.cuh"

namespace sigps {

struct Edges {
  const uint64_t *offsets;
  const uint64_t *slices;
  const uint32_t *ends;
  const uint32_t *degrees;
  uint32_t num_csr_rows;
  uint32_t num_rows;
};

// A row's edges: position first + i * step for i < degree.
struct RowOfEdges {
  uint64_t first;
  uint32_t step;
  uint32_t degree;
};

constexpr RowOfEdges EMPTY_ROW = {0, 0, 0};

__device__ inline RowOfEdges row_of(const Edges &edges, uint32_t v) {
  if (v < edges.num_csr_rows)
    return {edges.offsets[v], 1, edges.degrees[v]};
  uint32_t slice = (v - edges.num_csr_rows) / 32;
  return {edges.slices[slice] + v % 32, 32, edges.degrees[v]};
}

// The other end of an edge, read past the caches: edges are read once, and
// would displace the records, which are read again and again.
__device__ inline uint32_t end_at(const Edges &edges, uint64_t position) {
  return __ldcs(&edges.ends[position]);
}

} // namespace sigps
