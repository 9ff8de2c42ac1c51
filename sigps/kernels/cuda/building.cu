// Builds the rows of a graph from its edges. An edge is a key, its source in
// the high half and its target in the low one; gids are below 2^32 - 1.
//
// Schedule: a thread an edge, any grid. Between the kernels CuPy sorts keys;
// the callers are graph/building/on_gpu.py and graph/generators/on_gpu.py, and
// the references graph/building/rows.py and graph/generators/edge_streams.py.

#include "rmat.cuh"

namespace {

constexpr uint64_t NO_EDGE = ~0ull; // is sorted behind all edges

// Adds to a count, once a warp.
__device__ void add_up(bool is_one, unsigned long long *count) {
  uint32_t active = __activemask();
  uint32_t ones = __ballot_sync(active, is_one);
  if (ones && threadIdx.x % 32 == __ffs(active) - 1)
    atomicAdd(count, (unsigned long long)__popc(ones));
}

} // namespace

// Draws the edges begin .. begin + count - 1 of a recursive matrix: the ends of
// edge_streams.draw_rmat. `scale` is at most 31.
extern "C" __global__ void
draw_rmat_thread_mapped(uint64_t begin, uint64_t count, uint32_t scale,
                        uint64_t to_b, uint64_t to_c, uint64_t to_d,
                        uint64_t seed_key, const uint64_t *round_keys,
                        uint32_t num_rounds, uint64_t *keys) {
  for (uint64_t i = first_index(); i < count; i += num_threads())
    keys[i] = drawn(begin + i, scale, to_b, to_c, to_d, seed_key, round_keys,
                    num_rounds);
}

// Weighs edges as edge_streams.weigh.
extern "C" __global__ void weigh_thread_mapped(const uint64_t *keys,
                                               uint64_t count,
                                               uint64_t seed_key,
                                               float *weights) {
  for (uint64_t i = first_index(); i < count; i += num_threads())
    weights[i] = weight_of(keys[i] >> 32, keys[i] & 0xFFFFFFFF, seed_key);
}

#define SIGPS_OF_IDS(name, Id)                                                 \
  /* bounds: the least and the greatest id so far */                           \
  extern "C" __global__ void find_bounds_##name##_thread_mapped(               \
      const Id *ids, uint64_t count, long long *bounds) {                      \
    long long least = 0x7FFFFFFFFFFFFFFFll,                                    \
              most = (-0x7FFFFFFFFFFFFFFFll - 1);                              \
    for (uint64_t i = first_index(); i < count; i += num_threads()) {          \
      long long id = (long long)ids[i];                                        \
      least = id < least ? id : least;                                         \
      most = id > most ? id : most;                                            \
    }                                                                          \
    for (int step = 16; step; step /= 2) {                                     \
      long long l = __shfl_down_sync(~0u, least, step);                        \
      long long m = __shfl_down_sync(~0u, most, step);                         \
      least = l < least ? l : least;                                           \
      most = m > most ? m : most;                                              \
    }                                                                          \
    if (threadIdx.x % 32 == 0) {                                               \
      atomicMin(&bounds[0], least);                                            \
      atomicMax(&bounds[1], most);                                             \
    }                                                                          \
  }                                                                            \
  extern "C" __global__ void mark_ids_##name##_thread_mapped(                  \
      const Id *ids, uint64_t count, long long least, uint8_t *is_there) {     \
    for (uint64_t i = first_index(); i < count; i += num_threads())            \
      is_there[(long long)ids[i] - least] = 1;                                 \
  }                                                                            \
  /* gids: of each id from the least one on; null: they are consecutive */     \
  extern "C" __global__ void make_keys_##name##_thread_mapped(                 \
      const Id *sources, const Id *targets, uint64_t count, long long least,   \
      const uint32_t *gids, uint64_t *keys) {                                  \
    for (uint64_t i = first_index(); i < count; i += num_threads()) {          \
      uint64_t source = (uint64_t)((long long)sources[i] - least);             \
      uint64_t target = (uint64_t)((long long)targets[i] - least);             \
      if (gids) {                                                              \
        source = gids[source];                                                 \
        target = gids[target];                                                 \
      }                                                                        \
      keys[i] = source << 32 | target;                                         \
    }                                                                          \
  }
SIGPS_OF_IDS(i4, int32_t)
SIGPS_OF_IDS(u4, uint32_t)
SIGPS_OF_IDS(i8, int64_t)

// Counts self-loops, and writes what is stored of each edge: itself, and where
// rows are symmetric its reverse behind it.
//
//   stored: [count], or [2 * count] where symmetric; may be `keys` otherwise
extern "C" __global__ void
store_edges_thread_mapped(const uint64_t *keys, uint64_t count,
                          uint8_t symmetric, uint8_t drops_loops,
                          uint64_t *stored, unsigned long long *num_loops) {
  for (uint64_t i = first_index(); i < count; i += num_threads()) {
    uint64_t key = keys[i], reverse = key << 32 | key >> 32;
    bool is_loop = key == reverse;
    uint64_t kept = is_loop && drops_loops ? NO_EDGE : key;
    if (symmetric) {
      stored[2 * i] = kept;
      stored[2 * i + 1] = is_loop ? NO_EDGE : reverse;
    } else {
      stored[i] = kept;
    }
    add_up(is_loop, num_loops);
  }
}

extern "C" __global__ void reverse_thread_mapped(uint64_t *keys,
                                                 uint64_t count) {
  for (uint64_t i = first_index(); i < count; i += num_threads())
    keys[i] = keys[i] << 32 | keys[i] >> 32;
}

// keys: of rows that begin at `offsets`, a warp a row
extern "C" __global__ void keys_of_rows_warp_mapped(const uint64_t *offsets,
                                                    const uint32_t *targets,
                                                    uint32_t num_rows,
                                                    uint64_t *keys) {
  for (uint64_t row = first_index() / 32; row < num_rows;
       row += num_threads() / 32)
    for (uint64_t e = offsets[row] + threadIdx.x % 32; e < offsets[row + 1];
         e += 32)
      keys[e] = row << 32 | targets[e];
}

namespace {

constexpr uint32_t TILE = 2048; // keys of a block of 256 threads
constexpr uint32_t KEYS_EACH = 8;

__device__ bool is_repeat(const uint64_t *keys, uint64_t i) {
  return i && keys[i] == keys[i - 1];
}

// The kept edges of a thread's keys of a tile, as bits.
__device__ uint32_t find_kept(const uint64_t *keys, uint64_t count,
                              uint64_t first, bool drops_repeats) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < KEYS_EACH; ++k) {
    uint64_t i = first + k;
    if (i < count && keys[i] != NO_EDGE &&
        !(drops_repeats && is_repeat(keys, i)))
      kept |= 1u << k;
  }
  return kept;
}

} // namespace

// Counts what is kept of sorted keys, a block a tile.
//
//   first_row: the gid of row 0 of the keys
//   counts: [tiles]; repeats: edges equal to the one before, and loops of them
extern "C" __global__ void
count_kept_block_mapped(const uint64_t *keys, uint64_t count,
                        uint8_t drops_repeats, uint64_t first_row,
                        uint64_t *counts, unsigned long long *repeats) {
  __shared__ uint32_t num_kept;
  for (uint64_t tile = blockIdx.x; tile * TILE < count; tile += gridDim.x) {
    if (threadIdx.x == 0)
      num_kept = 0;
    __syncthreads();
    uint64_t first = tile * TILE + threadIdx.x * KEYS_EACH;
    uint32_t mine = __popc(find_kept(keys, count, first, drops_repeats));
    uint32_t repeated = 0, loops = 0;
    for (uint32_t k = 0; k < KEYS_EACH && first + k < count; ++k) {
      uint64_t key = keys[first + k];
      if (key != NO_EDGE && is_repeat(keys, first + k)) {
        ++repeated;
        loops += (key >> 32) + first_row == (key & 0xFFFFFFFF);
      }
    }
    mine = __reduce_add_sync(~0u, mine);
    repeated = __reduce_add_sync(~0u, repeated);
    loops = __reduce_add_sync(~0u, loops);
    if (threadIdx.x % 32 == 0) {
      atomicAdd(&num_kept, mine);
      if (repeated)
        atomicAdd(&repeats[0], (unsigned long long)repeated);
      if (loops)
        atomicAdd(&repeats[1], (unsigned long long)loops);
    }
    __syncthreads();
    if (threadIdx.x == 0)
      counts[tile] = num_kept;
    __syncthreads();
  }
}

// Writes the targets of kept edges one after another, and where rows begin, up
// to the last one that has an edge.
//
//   before: [tiles]                 edges kept of earlier tiles
//   targets: [kept]
//   kept: [kept]                    positions of kept keys; null: not wanted
//   offsets: [num_rows + 1]
extern "C" __global__ void
place_kept_block_mapped(const uint64_t *keys, uint64_t count,
                        uint8_t drops_repeats, const uint64_t *before,
                        uint32_t *targets, uint64_t *kept, uint64_t *offsets) {
  __shared__ uint32_t of_warps[8];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint64_t tile = blockIdx.x; tile * TILE < count; tile += gridDim.x) {
    uint64_t first = tile * TILE + threadIdx.x * KEYS_EACH;
    uint32_t mine = find_kept(keys, count, first, drops_repeats);
    uint32_t sum = __popc(mine);
    for (uint32_t step = 1; step < 32; step *= 2) {
      uint32_t other = __shfl_up_sync(~0u, sum, step);
      sum += lane >= step ? other : 0;
    }
    if (lane == 31)
      of_warps[warp] = sum;
    __syncthreads();
    uint64_t to = before[tile] + sum - __popc(mine);
    for (uint32_t w = 0; w < warp; ++w)
      to += of_warps[w];
    for (uint32_t k = 0; k < KEYS_EACH; ++k) {
      if (!(mine >> k & 1))
        continue;
      uint64_t i = first + k, key = keys[i], row = key >> 32;
      targets[to] = uint32_t(key);
      if (kept)
        kept[to] = i;
      // The first edge of a row is kept; rows without edges begin there too.
      uint64_t rows_before = i ? (keys[i - 1] >> 32) + 1 : 0;
      for (uint64_t r = rows_before; r <= row; ++r)
        offsets[r] = to;
      ++to;
    }
    __syncthreads();
  }
}

extern "C" __global__ void mark_targets_thread_mapped(const uint32_t *targets,
                                                      uint64_t count,
                                                      uint8_t *is_target) {
  for (uint64_t i = first_index(); i < count; i += num_threads())
    is_target[targets[i]] = 1;
}

// Counts vertices without an edge.
//
//   offsets: [num_rows + 1]         those behind row `last_row` are not read
//   is_target: [num_rows]           null where rows are symmetric
extern "C" __global__ void count_isolated_thread_mapped(
    const uint64_t *offsets, int64_t last_row, uint64_t num_edges,
    uint32_t num_rows, const uint8_t *is_target, unsigned long long *count) {
  for (uint64_t row = first_index(); row < num_rows; row += num_threads()) {
    bool has_edge = is_target && is_target[row];
    if (int64_t(row) <= last_row) {
      uint64_t end = int64_t(row) == last_row ? num_edges : offsets[row + 1];
      has_edge |= offsets[row] != end;
    }
    add_up(!has_edge, count);
  }
}

// Takes what lies at some places: taken[i] = values[places[i] >> shift].
#define SIGPS_TAKE(bits)                                                       \
  extern "C" __global__ void take_##bits##_thread_mapped(                      \
      const uint##bits##_t *values, const uint64_t *places, uint64_t count,    \
      uint32_t shift, uint##bits##_t *taken) {                                 \
    for (uint64_t i = first_index(); i < count; i += num_threads())            \
      taken[i] = values[places[i] >> shift];                                   \
  }
SIGPS_TAKE(8)
SIGPS_TAKE(16)
SIGPS_TAKE(32)
SIGPS_TAKE(64)
