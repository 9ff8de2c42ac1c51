// Moves edges and their columns to their positions in a degree-sorted layout
// (edges.cuh), at graph load; writes what a run's memory begins with; and takes
// the answer in the order of gids.
//
// Schedule: a warp a row, any grid; every position has one writer. Reads run
// along rows, writes of sliced rows are scattered over 128-byte lines.
//
//   new_lids: [num_lids]            the degree-order index of a lid
//   offsets: [num_rows + 1]         rows before, by lid
//   ends, column: [edges]           in that order
//   keys, order: [edges]            sorted by row and other end: the keys, and
//                                   the edge that each comes from

#include "edges.cuh"

using namespace sigps;

namespace {

// Of so many of the host's rows, which lie one after another there.
//
//   new_lids, offsets: [num_rows], [num_rows + 1]   of these rows
template <class Place>
__device__ void for_each_edge(const Edges &edges, const uint32_t *new_lids,
                              const uint64_t *offsets, uint64_t num_rows,
                              Place place) {
  uint64_t warp = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  for (uint64_t lid = warp; lid < num_rows;
       lid += gridDim.x * blockDim.x / 32) {
    RowOfEdges row = row_of(edges, new_lids[lid]);
    uint64_t before = offsets[lid];
    for (uint32_t i = threadIdx.x % 32; i < row.degree; i += 32)
      place(before + i, row.first + uint64_t(i) * row.step);
  }
}

template <class T>
__device__ void place_column(const Edges &edges, const uint32_t *new_lids,
                             const uint64_t *offsets, const T *column,
                             T *placed) {
  for_each_edge(edges, new_lids, offsets, edges.num_rows,
                [&](uint64_t from, uint64_t to) { placed[to] = column[from]; });
}

} // namespace

extern "C" __global__ void
place_ends_warp_mapped(const __grid_constant__ Edges edges,
                       const uint32_t *new_lids, const uint64_t *offsets,
                       const uint32_t *ends, uint32_t *placed) {
  for_each_edge(
      edges, new_lids, offsets, edges.num_rows,
      [&](uint64_t from, uint64_t to) { placed[to] = new_lids[ends[from]]; });
}

// Makes what the edges of some rows are sorted by: rows by their number among
// these, ends by their new lids.
extern "C" __global__ void make_piece_keys_warp_mapped(const uint64_t *offsets,
                                                       uint64_t num_rows,
                                                       const uint32_t *new_lids,
                                                       const uint32_t *ends,
                                                       uint64_t *keys) {
  uint64_t warp = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  for (uint64_t row = warp; row < num_rows; row += gridDim.x * blockDim.x / 32)
    for (uint64_t e = offsets[row] + threadIdx.x % 32; e < offsets[row + 1];
         e += 32)
      keys[e] = row << 32 | new_lids[ends[e]];
}

// Makes what edges are sorted by, so that each row is in ascending order of
// the new lids.
extern "C" __global__ void
make_keys_warp_mapped(const __grid_constant__ Edges edges,
                      const uint32_t *new_lids, const uint64_t *offsets,
                      const uint32_t *ends, uint64_t *keys) {
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (uint32_t lid = warp; lid < edges.num_rows;
       lid += gridDim.x * blockDim.x / 32)
    for (uint64_t e = offsets[lid] + threadIdx.x % 32; e < offsets[lid + 1];
         e += 32)
      keys[e] = uint64_t(new_lids[lid]) << 32 | new_lids[ends[e]];
}

// Memory that repeats a pattern of words.
struct Fill {
  uint64_t *target; // [count]
  uint64_t count;
  uint32_t first, period; // where the pattern is in Beginning.words
};

constexpr uint32_t MOST_FILLS = 16;
constexpr uint32_t MOST_WORDS = 256;

struct Beginning {
  uint32_t num_fills;
  Fill fills[MOST_FILLS];
  uint64_t words[MOST_WORDS];
};

// Writes what a run's memory begins with: every word once, a word a thread at a
// time.
extern "C" __global__ void __launch_bounds__(256)
    begin_run_thread_mapped(const __grid_constant__ Beginning beginning) {
  uint64_t thread = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
  for (uint32_t k = 0; k < beginning.num_fills; k++) {
    const Fill &fill = beginning.fills[k];
    uint64_t word = beginning.words[fill.first];
    for (uint64_t i = thread; i < fill.count; i += threads)
      fill.target[i] = fill.period == 1
                           ? word
                           : beginning.words[fill.first + i % fill.period];
  }
}

namespace {

// Of edges that were sorted: rows by local id, which begin at `offsets`.
template <class Place>
__device__ void for_each_sorted(const Edges &edges, const uint64_t *offsets,
                                Place place) {
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (uint32_t v = warp; v < edges.num_rows;
       v += gridDim.x * blockDim.x / 32) {
    RowOfEdges row = row_of(edges, v);
    for (uint32_t i = threadIdx.x % 32; i < row.degree; i += 32)
      place(offsets[v] + i, row.first + uint64_t(i) * row.step);
  }
}

// Grid-stride over the numbers of all rows.
template <class T>
__device__ void take_rows(const T *values, const uint32_t *order,
                          uint64_t num_rows, uint64_t length, T *taken) {
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t i = first; i < num_rows * length;
       i += uint64_t(gridDim.x) * blockDim.x)
    taken[i] = length == 1 ? values[order[i]]
                           : values[order[i / length] * length + i % length];
}

// Takes rows of ids, and finds which are None, the least number; without an
// order all rows.
template <class T>
__device__ void take_ids(const T *values, const uint32_t *order,
                         uint64_t num_rows, uint64_t length, int64_t *taken,
                         bool *is_none) {
  constexpr T NONE = T(1) << (8 * sizeof(T) - 1);
  constexpr int64_t WIDE_NONE = int64_t(1) << 63;
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t i = first; i < num_rows * length;
       i += uint64_t(gridDim.x) * blockDim.x) {
    uint64_t from =
        order == nullptr ? i : order[i / length] * length + i % length;
    T id = values[from];
    taken[i] = id == NONE ? WIDE_NONE : int64_t(id);
    if (is_none != nullptr)
      is_none[i] = id == NONE;
  }
}

// The other way: every row to its place, one writer each.
template <class T>
__device__ void put_rows(const T *values, const uint32_t *order,
                         uint64_t num_rows, uint64_t length, T *target) {
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t i = first; i < num_rows * length;
       i += uint64_t(gridDim.x) * blockDim.x)
    target[length == 1 ? order[i] : order[i / length] * length + i % length] =
        values[i];
}

} // namespace

#define SIGPS_TAKE_IDS(bits)                                                   \
  extern "C" __global__ void take_ids_##bits##_thread_mapped(                  \
      const int##bits##_t *values, const uint32_t *order, uint64_t num_rows,   \
      uint64_t length, int64_t *taken, bool *is_none) {                        \
    take_ids(values, order, num_rows, length, taken, is_none);                 \
  }

SIGPS_TAKE_IDS(32)
SIGPS_TAKE_IDS(64)

extern "C" __global__ void widen_thread_mapped(const uint32_t *values,
                                               uint64_t count, int64_t *wide) {
  uint64_t first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t i = first; i < count; i += uint64_t(gridDim.x) * blockDim.x)
    wide[i] = values[i];
}

// Finds the first edge back of each edge of the first rows, whose vertices are
// `gids`, by search: targets ascend in every row.
//
//   rows: [edges]                   the row of each edge's target
//   missing: [1]                    edges that have none
extern "C" __global__ void
find_reverse_warp_mapped(const uint64_t *offsets, const uint32_t *targets,
                         const uint32_t *rows, const int64_t *gids,
                         uint64_t num_rows, int64_t *reverse,
                         unsigned long long *missing) {
  uint64_t warp = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  for (uint64_t v = warp; v < num_rows; v += gridDim.x * blockDim.x / 32) {
    uint32_t gid = uint32_t(gids[v]);
    for (uint64_t e = offsets[v] + threadIdx.x % 32; e < offsets[v + 1];
         e += 32) {
      uint64_t begin = offsets[rows[e]], end = offsets[rows[e] + 1];
      uint64_t last = end;
      while (begin < end) {
        uint64_t middle = begin + (end - begin) / 2;
        if (targets[middle] < gid)
          begin = middle + 1;
        else
          end = middle;
      }
      if (begin == last || targets[begin] != gid)
        atomicAdd(missing, 1ull);
      reverse[e] = int64_t(begin);
    }
  }
}

namespace {

// Brings values of edges into another order of their rows, or back.
//
//   before, after: [num_rows + 1]   where rows begin
//   order: [num_rows]               the earlier number of each row
//   length                          numbers an edge
template <class T>
__device__ void move_rows(const uint64_t *before, const uint64_t *after,
                          const int64_t *order, uint64_t num_rows,
                          uint64_t length, bool backwards, const T *values,
                          T *moved) {
  uint64_t warp = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  for (uint64_t v = warp; v < num_rows; v += gridDim.x * blockDim.x / 32) {
    uint64_t earlier = before[order[v]] * length, later = after[v] * length;
    uint64_t size = after[v + 1] * length - later;
    uint64_t from = backwards ? later : earlier;
    uint64_t to = backwards ? earlier : later;
    for (uint64_t i = threadIdx.x % 32; i < size; i += 32)
      moved[to + i] = values[from + i];
  }
}

} // namespace

// Keys hold the local id of the other end in their low half.
extern "C" __global__ void
place_sorted_ends_warp_mapped(const __grid_constant__ Edges edges,
                              const uint64_t *offsets, const uint64_t *keys,
                              uint32_t *placed) {
  for_each_sorted(edges, offsets, [&](uint64_t from, uint64_t to) {
    placed[to] = uint32_t(keys[from]);
  });
}

extern "C" __global__ void
place_piece_ends_warp_mapped(const __grid_constant__ Edges edges,
                             const uint32_t *lids, const uint64_t *offsets,
                             uint64_t num_rows, const uint64_t *keys,
                             uint32_t *placed) {
  for_each_edge(
      edges, lids, offsets, num_rows,
      [&](uint64_t from, uint64_t to) { placed[to] = uint32_t(keys[from]); });
}

#define SIGPS_PLACE_COLUMN(bits)                                               \
  extern "C" __global__ void place_column_##bits##_warp_mapped(                \
      const __grid_constant__ Edges edges, const uint32_t *new_lids,           \
      const uint64_t *offsets, const uint##bits##_t *column,                   \
      uint##bits##_t *placed) {                                                \
    place_column(edges, new_lids, offsets, column, placed);                    \
  }                                                                            \
  extern "C" __global__ void place_sorted_column_##bits##_warp_mapped(         \
      const __grid_constant__ Edges edges, const uint64_t *offsets,            \
      const int64_t *order, const uint##bits##_t *column,                      \
      uint##bits##_t *placed) {                                                \
    for_each_sorted(edges, offsets, [&](uint64_t from, uint64_t to) {          \
      placed[to] = column[order[from]];                                        \
    });                                                                        \
  }                                                                            \
  extern "C" __global__ void place_piece_column_##bits##_warp_mapped(          \
      const __grid_constant__ Edges edges, const uint32_t *lids,               \
      const uint64_t *offsets, uint64_t num_rows, const int64_t *order,        \
      const uint##bits##_t *column, uint##bits##_t *placed) {                  \
    for_each_edge(edges, lids, offsets, num_rows,                              \
                  [&](uint64_t from, uint64_t to) {                            \
                    placed[to] = column[order[from]];                          \
                  });                                                          \
  }                                                                            \
  extern "C" __global__ void take_rows_##bits##_thread_mapped(                 \
      const uint##bits##_t *values, const uint32_t *order, uint64_t num_rows,  \
      uint64_t length, uint##bits##_t *taken) {                                \
    take_rows(values, order, num_rows, length, taken);                         \
  }                                                                            \
  extern "C" __global__ void put_rows_##bits##_thread_mapped(                  \
      const uint##bits##_t *values, const uint32_t *order, uint64_t num_rows,  \
      uint64_t length, uint##bits##_t *target) {                               \
    put_rows(values, order, num_rows, length, target);                         \
  }                                                                            \
  extern "C" __global__ void move_rows_##bits##_warp_mapped(                   \
      const uint64_t *before, const uint64_t *after, const int64_t *order,     \
      uint64_t num_rows, uint64_t length, uint8_t backwards,                   \
      const uint##bits##_t *values, uint##bits##_t *moved) {                   \
    move_rows(before, after, order, num_rows, length, backwards, values,       \
              moved);                                                          \
  }
SIGPS_PLACE_COLUMN(8)
SIGPS_PLACE_COLUMN(16)
SIGPS_PLACE_COLUMN(32)
SIGPS_PLACE_COLUMN(64)
