// Counts, for each vertex, the arcs among its neighbours: a triangle gives each
// of its corners the arcs of the side that faces it.
//
// Vertices are numbered in descending order of their degree. A triangle of
// w < v < u is counted once, at v: the lower neighbours of v are kept as a set,
// and for every higher neighbour u the row of u is read from its beginning up
// to v and each w is looked up in the set. What is read so is the pairs
// of lower neighbours (u; w < v), a third of what it is where all rows of the
// neighbours of one vertex are read to their ends, and every row is read in
// order.
//
// Schedule: `count_block_mapped` gives a block some of the edges of a vertex
// with SIGPS_BLOCK_MAPPED higher neighbours or more. Its set is a bitmap of the
// first SIGPS_BITMAP numbers, which are nearly all that is looked up, with the
// rank of each word's first bit, so that a bit that is found has a counter;
// what lies beyond is searched for in the row. `count_warp_mapped` gives the
// other vertices a warp each, which searches. SIGPS_LANES lanes share a row,
// and each has SIGPS_LOADS reads under way.
//
// `links` is written by atomics: once an edge for u, once a task for v and each
// of its lower neighbours; by `count_warp_mapped` once a triangle for w.
//
// Macros: SIGPS_DIRECTED (0: all edges are one arc here, and the host doubles
// what it gets), SIGPS_THREADS and SIGPS_BLOCKS of `count_block_mapped`,
// SIGPS_LANES, SIGPS_LOADS, SIGPS_BITMAP, SIGPS_KEYS (lower neighbours of a
// task, at most 65,536), SIGPS_CHUNK (higher neighbours of a task),
// SIGPS_BLOCK_MAPPED.

#include "edges.cuh"

using namespace sigps;

namespace {

constexpr uint32_t NONE = ~0u;
constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t ROWS_OF_WARP = 32 / SIGPS_LANES;
constexpr uint32_t WARP_MAPPED_THREADS = 256;

// The simple graph, whatever the direction of its edges. Rows are ascending;
// an entry is a number, and in the lowest bit whether there are arcs both ways.
//
//   offsets: [num_vertices + 1]
//   ends: [offsets[num_vertices]]
//   num_lower: [num_vertices]    neighbours of a lower number than the row's
struct SimpleRows {
  const uint64_t *offsets;
  const uint32_t *ends;
  const uint32_t *num_lower;
  uint32_t num_vertices;
};

__device__ inline uint32_t number_of(uint32_t entry) { return entry >> 1; }

__device__ inline uint32_t arcs_of(uint32_t entry) {
  return SIGPS_DIRECTED ? 1 + (entry & 1) : 1;
}

__device__ inline void add(uint64_t *links, uint32_t v, uint64_t count) {
  if (count)
    atomicAdd(reinterpret_cast<unsigned long long *>(&links[v]), count);
}

// The first index from `first` on whose number is not below w.
__device__ inline uint32_t lower_bound(const uint32_t *row, uint32_t first,
                                       uint32_t last, uint32_t w) {
  while (first < last) {
    uint32_t middle = first + (last - first) / 2;
    if (number_of(row[middle]) < w)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// The index of w, or NONE.
__device__ inline uint32_t search(const uint32_t *row, uint32_t first,
                                  uint32_t last, uint32_t w) {
  uint32_t at = lower_bound(row, first, last, w);
  return at < last && number_of(row[at]) == w ? at : NONE;
}

__device__ inline uint32_t sum_of_row(uint32_t value) {
  for (uint32_t step = SIGPS_LANES / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

__device__ inline uint64_t sum_of_warp(uint64_t value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

// Looks through the rows of neighbours first, first + stride, ... of a vertex,
// and those beside them that other lanes of the warp have; returns what this
// lane has counted for v. `find(w)` gives the index of w among `keys`, the
// lower neighbours of v; `hit(index, w, arcs)` counts for w.
template <class Find, class Hit>
__device__ uint64_t look_through(const SimpleRows &graph, uint32_t v,
                                 const uint32_t *keys, const uint32_t *uppers,
                                 uint32_t first, uint32_t last, uint32_t stride,
                                 uint64_t *links, Find find, Hit hit) {
  uint32_t lane = threadIdx.x % SIGPS_LANES;
  uint32_t beside = threadIdx.x % 32 / SIGPS_LANES;
  uint64_t of_v = 0;
  for (uint32_t base = first; base < last; base += stride) {
    uint32_t of_u = 0, u = 0;
    if (base + beside < last) {
      uint32_t entry = uppers[base + beside];
      u = number_of(entry);
      uint64_t begin = graph.offsets[u];
      uint32_t degree = graph.offsets[u + 1] - begin;
      const uint32_t *row = graph.ends + begin;
      for (uint32_t i = lane; i < degree; i += SIGPS_LANES * SIGPS_LOADS) {
        uint32_t read[SIGPS_LOADS];
#pragma unroll
        for (uint32_t k = 0; k < SIGPS_LOADS; k++)
          read[k] =
              i + k * SIGPS_LANES < degree ? row[i + k * SIGPS_LANES] : NONE;
#pragma unroll
        for (uint32_t k = 0; k < SIGPS_LOADS; k++) {
          uint32_t w = number_of(read[k]);
          uint32_t index = w < v ? find(w) : NONE;
          if (index != NONE) {
            hit(index, w, arcs_of(entry));
            of_u += SIGPS_DIRECTED ? arcs_of(keys[index]) : 1;
            of_v += arcs_of(read[k]);
          }
        }
        if (number_of(read[SIGPS_LOADS - 1]) >= v)
          break;
      }
    }
    __syncwarp();
    of_u = sum_of_row(of_u);
    if (lane == 0)
      add(links, u, of_u);
  }
  return of_v;
}

// A set of lower neighbours, and how often each was found. `bits` are zeros
// between two tasks.
struct Set {
  uint32_t bits[SIGPS_BITMAP / 32];
  uint16_t ranks[SIGPS_BITMAP / 32];
  uint32_t counts[SIGPS_KEYS];
};

__device__ inline void fill(Set &set, const uint32_t *keys, uint32_t num_keys) {
  for (uint32_t i = threadIdx.x; i < num_keys; i += SIGPS_THREADS) {
    uint32_t w = number_of(keys[i]);
    set.counts[i] = 0;
    if (w >= SIGPS_BITMAP)
      continue;
    atomicOr(&set.bits[w / 32], 1u << w % 32);
    if (i == 0 || number_of(keys[i - 1]) / 32 != w / 32)
      set.ranks[w / 32] = i;
  }
}

__device__ inline void flush(Set &set, const uint32_t *keys, uint32_t num_keys,
                             uint64_t *links) {
  for (uint32_t i = threadIdx.x; i < num_keys; i += SIGPS_THREADS) {
    uint32_t w = number_of(keys[i]);
    add(links, w, set.counts[i]);
    if (w < SIGPS_BITMAP)
      set.bits[w / 32] = 0;
  }
}

__device__ inline uint32_t find(const Set &set, uint32_t w) {
  uint32_t word = set.bits[w / 32];
  if (!(word >> w % 32 & 1))
    return NONE;
  return set.ranks[w / 32] + __popc(word & ((1u << w % 32) - 1));
}

} // namespace

// Lists every edge as numbers: the row's in the upper half, the other end's
// below it, and in the lowest bit the direction. Of a directed graph it is
// listed at both ends. A warp a row, any grid.
//
//   offsets: [num_rows + 1]      rows before, in the order of `edges`
//   numbers: [num_rows]
//   keys: [edges], of a directed graph [2 * edges]
extern "C" __global__ void
list_arcs_warp_mapped(const __grid_constant__ Edges edges,
                      const uint64_t *offsets, const uint32_t *numbers,
                      uint64_t *keys) {
  uint64_t num_edges = offsets[edges.num_rows];
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (uint32_t v = warp; v < edges.num_rows;
       v += gridDim.x * blockDim.x / 32) {
    RowOfEdges row = row_of(edges, v);
    uint64_t to = numbers[v];
    for (uint32_t i = threadIdx.x % 32; i < row.degree; i += 32) {
      uint64_t from =
          numbers[end_at(edges, row.first + uint64_t(i) * row.step)];
      uint64_t at = offsets[v] + i;
      keys[at] = to << 32 | from << 1;
      if (SIGPS_DIRECTED)
        keys[num_edges + at] = from << 32 | to << 1 | 1;
    }
  }
}

// Copies the rows of edges that are ascending and listed at both ends: then
// they are the simple graph, unless an end is its row's own number or not above
// the end before, which is wrong. A warp a row, any grid.
//
//   offsets: [num_rows + 1]      rows before, in the order of `edges`
//   ends: [edges]                entries, as those of `SimpleRows`
//   num_lower: [num_rows]
//   num_wrong: [1]               adds up the rows that have such an end
extern "C" __global__ void
copy_rows_warp_mapped(const __grid_constant__ Edges edges,
                      const uint64_t *offsets, uint32_t *ends,
                      uint32_t *num_lower, unsigned long long *num_wrong) {
  uint32_t lane = threadIdx.x % 32;
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (uint32_t v = warp; v < edges.num_rows;
       v += gridDim.x * blockDim.x / 32) {
    RowOfEdges row = row_of(edges, v);
    uint64_t to = offsets[v];
    uint32_t lower = 0;
    bool is_wrong = false;
    for (uint32_t i = lane; i < row.degree; i += 32) {
      uint64_t from = row.first + uint64_t(i) * row.step;
      uint32_t end = end_at(edges, from);
      is_wrong |= end == v || (i > 0 && end_at(edges, from - row.step) >= end);
      lower += end < v;
      ends[to + i] = end << 1;
    }
    uint64_t all_lower = sum_of_warp(lower);
    bool any_wrong = __any_sync(ALL_LANES, is_wrong);
    if (lane == 0) {
      num_lower[v] = all_lower;
      if (any_wrong)
        atomicAdd(num_wrong, 1ull);
    }
  }
}

//   vertices, parts: [num_tasks]     of which vertex, and the how manieth part
//   next_task: [1]                   0 when a count begins
//   links: [num_vertices]
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    count_block_mapped(const __grid_constant__ SimpleRows graph,
                       const uint32_t *vertices, const uint32_t *parts,
                       uint32_t num_tasks, uint32_t *next_task,
                       uint64_t *links) {
  __shared__ Set set;
  __shared__ uint32_t drawn;
  for (uint32_t i = threadIdx.x; i < SIGPS_BITMAP / 32; i += SIGPS_THREADS)
    set.bits[i] = 0;
  for (;;) {
    if (threadIdx.x == 0)
      drawn = atomicAdd(next_task, 1);
    __syncthreads(); // and the set of the task before is flushed
    uint32_t task = drawn;
    if (task >= num_tasks)
      break;
    uint32_t v = vertices[task], part = parts[task];
    const uint32_t *row = graph.ends + graph.offsets[v];
    uint32_t num_lower = graph.num_lower[v];
    uint32_t num_upper = graph.offsets[v + 1] - graph.offsets[v] - num_lower;
    uint32_t num_chunks = (num_upper + SIGPS_CHUNK - 1) / SIGPS_CHUNK;
    uint32_t first_key = part / num_chunks * SIGPS_KEYS;
    uint32_t num_keys = min(num_lower - first_key, uint32_t(SIGPS_KEYS));
    uint32_t first = part % num_chunks * SIGPS_CHUNK;
    uint32_t last = min(first + SIGPS_CHUNK, num_upper);
    const uint32_t *keys = row + first_key;

    fill(set, keys, num_keys);
    uint32_t num_in_bitmap = num_keys;
    if (number_of(keys[num_keys - 1]) >= SIGPS_BITMAP)
      num_in_bitmap = lower_bound(keys, 0, num_keys, SIGPS_BITMAP);
    __syncthreads();
    uint64_t of_v = look_through(
        graph, v, keys, row + num_lower,
        first + threadIdx.x / 32 * ROWS_OF_WARP, last,
        SIGPS_THREADS / SIGPS_LANES, links,
        [&](uint32_t w) {
          return w < SIGPS_BITMAP ? find(set, w)
                                  : search(keys, num_in_bitmap, num_keys, w);
        },
        [&](uint32_t index, uint32_t, uint32_t arcs) {
          atomicAdd(&set.counts[index], arcs);
        });
    of_v = sum_of_warp(of_v);
    if (threadIdx.x % 32 == 0)
      add(links, v, of_v);
    __syncthreads();
    flush(set, keys, num_keys, links);
  }
}

// The vertices that no block has: of every num_shares, the share-th.
extern "C" __global__ void __launch_bounds__(WARP_MAPPED_THREADS)
    count_warp_mapped(const __grid_constant__ SimpleRows graph, uint32_t share,
                      uint32_t num_shares, uint64_t *links) {
  uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  uint32_t num_warps = gridDim.x * blockDim.x / 32;
  for (uint64_t v = uint64_t(warp) * num_shares + share; v < graph.num_vertices;
       v += uint64_t(num_warps) * num_shares) {
    const uint32_t *row = graph.ends + graph.offsets[v];
    uint32_t num_lower = graph.num_lower[v];
    uint32_t num_upper = graph.offsets[v + 1] - graph.offsets[v] - num_lower;
    if (num_lower == 0 || num_upper == 0 || num_upper >= SIGPS_BLOCK_MAPPED)
      continue;
    uint64_t of_v = look_through(
        graph, v, row, row + num_lower, 0, num_upper, ROWS_OF_WARP, links,
        [&](uint32_t w) { return search(row, 0, num_lower, w); },
        [&](uint32_t, uint32_t w, uint32_t arcs) { add(links, w, arcs); });
    of_v = sum_of_warp(of_v);
    if (threadIdx.x % 32 == 0)
      add(links, v, of_v);
  }
}
