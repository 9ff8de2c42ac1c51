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

// In-edges whose sources share a segment: the local ids from s * segment_size
// on, whose records fit the shared memory of a block. A pair is a row and a
// segment that at least two edges lead from to it, or more (SHORTEST_PAIRS,
// engine/gpu/tiling.py). What these bring is combined from shared memory to the
// pair's partial, one number of 16 bits an edge; the row itself has one end for
// each pair (first_partial + the partial), and the other edges.
//
// A slice has 32 pairs of one segment, a lane each, in columns ("lines") of 32
// words, two edges a word; or a piece of one pair of many edges, of which each
// lane has some. The edges of a lane have no order of their own, but one in
// which few lanes that read at once read from one bank. The pieces of a segment
// come first. The shares of the blocks take about the same time each, and so do
// the runs of a block's warps in a segment.
//
//   first_tasks: [num_shares + 1]   a share's tasks
//   segments:    [tasks]            a task has slices of one segment
//   runs:        [tasks, 33]        where the slices of each warp begin
//   first_lanes: [segments]         the first slice that is no piece
//   lines:       [slices + 1]       a slice's first line
//   words:       [lines, 32]        places in the segment; NO_PLACE: none
//   rows:        [slices, 32]       the row of each lane; a piece's in lane 0
struct Tiles {
  const uint32_t *first_tasks;
  const uint32_t *segments;
  const uint32_t *runs;
  const uint32_t *first_lanes;
  const uint32_t *lines;
  const uint32_t *words;
  const uint32_t *rows;
  uint32_t num_shares;
  uint32_t num_early; // the first shares, whose segments have no ghosts; 0:
                      // shares are not divided so
  uint32_t segment_size;
  uint64_t first_position; // of an edge in tiles, among those of columns: two
                           // a word; behind the positions of rows
  uint32_t first_free;     // no row from here on has a partial
  uint32_t first_partial;  // among ends
};

constexpr uint32_t NO_PLACE = 0xffff;

// The other end of an edge, read past the caches: edges are read once, and
// would displace the records, which are read again and again.
__device__ inline uint32_t end_at(const Edges &edges, uint64_t position) {
  return __ldcs(&edges.ends[position]);
}

} // namespace sigps
