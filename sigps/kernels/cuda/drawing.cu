// Draws recursive matrices piece by piece: what is stored of all edges in some
// rows. The caller is graph/generators/drawing.py.
//
// Schedule: a thread an edge, all threads of a warp together, any grid; blocks
// of 32 n threads.

#include "rmat.cuh"

namespace {

constexpr uint32_t ALL_LANES = 0xffffffff;

// A key with its ends' numbers; numbers: null, they are gids.
__device__ uint64_t numbered(uint64_t key, const uint32_t *numbers) {
  if (!numbers)
    return key;
  return uint64_t(numbers[key >> 32]) << 32 | numbers[key & 0xFFFFFFFF];
}

} // namespace

// Draws the edges of a recursive matrix, and counts by ranges of rows what is
// stored of them in both directions, repeats among it. Self-loops are not
// stored.
//
//   numbers: [num_vertices]         of each gid that is an end; null: itself
//   bounds: [num_ranges]            the first row of each range, ascending from
//                                   0; 1024 at most
//   counts: [num_ranges]            is added to, as is
//   num_loops: [1]                  the self-loops
extern "C" __global__ void count_stored_rmat_thread_mapped(
    uint64_t count, uint32_t scale, uint64_t to_b, uint64_t to_c, uint64_t to_d,
    uint64_t seed_key, const uint64_t *round_keys, uint32_t num_rounds,
    const uint32_t *numbers, const uint32_t *bounds, uint32_t num_ranges,
    unsigned long long *counts, unsigned long long *num_loops) {
  __shared__ uint32_t of_block[1024], first_rows[1024];
  for (uint32_t r = threadIdx.x; r < num_ranges; r += blockDim.x) {
    of_block[r] = 0;
    first_rows[r] = bounds[r];
  }
  __syncthreads();
  uint32_t loops = 0;
  for (uint64_t i = first_index(); i < count; i += num_threads()) {
    uint64_t key = numbered(
        drawn(i, scale, to_b, to_c, to_d, seed_key, round_keys, num_rounds),
        numbers);
    uint32_t ends[2] = {uint32_t(key >> 32), uint32_t(key)};
    if (ends[0] == ends[1]) {
      loops++;
      continue;
    }
    for (uint32_t k = 0; k < 2; ++k) {
      uint32_t low = 0, high = num_ranges;
      while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        (first_rows[middle] <= ends[k] ? low : high) = middle;
      }
      atomicAdd(&of_block[low], 1u);
    }
  }
  __syncthreads();
  for (uint32_t r = threadIdx.x; r < num_ranges; r += blockDim.x)
    atomicAdd(&counts[r], (unsigned long long)of_block[r]);
  loops = __reduce_add_sync(ALL_LANES, loops);
  if (threadIdx.x % 32 == 0)
    atomicAdd(num_loops, (unsigned long long)loops);
}

// Draws the edges begin .. begin + count - 1, and counts their ends by bins of
// 2^shift gids: sources, and where `both_ways` targets, too; self-loops alike.
//
//   counts: [bins]                  is added to, as is
//   num_loops: [1]                  the self-loops
extern "C" __global__ void count_ends_rmat_thread_mapped(
    uint64_t begin, uint64_t count, uint32_t scale, uint64_t to_b,
    uint64_t to_c, uint64_t to_d, uint64_t seed_key, const uint64_t *round_keys,
    uint32_t num_rounds, uint8_t both_ways, uint32_t shift,
    unsigned long long *counts, unsigned long long *num_loops) {
  uint32_t loops = 0;
  for (uint64_t i = first_index(); i < count; i += num_threads()) {
    uint64_t key = drawn(begin + i, scale, to_b, to_c, to_d, seed_key,
                         round_keys, num_rounds);
    uint32_t source = uint32_t(key >> 32), target = uint32_t(key);
    loops += source == target;
    atomicAdd(&counts[source >> shift], 1ull);
    if (both_ways)
      atomicAdd(&counts[target >> shift], 1ull);
  }
  loops = __reduce_add_sync(ALL_LANES, loops);
  if (threadIdx.x % 32 == 0)
    atomicAdd(num_loops, (unsigned long long)loops);
}

// Draws all edges, and writes what is stored of them in the rows first_row ..
// end_row - 1 as keys, rows counted from the first one. The order is another
// each time.
//
//   both_ways: whether an edge is in both its ends' rows, a self-loop once
//   numbers: [num_vertices]         as above
//   keys: [capacity]
//   num_keys: [1]                   how many there are; more than fit are lost
extern "C" __global__ void store_rmat_thread_mapped(
    uint64_t count, uint32_t scale, uint64_t to_b, uint64_t to_c, uint64_t to_d,
    uint64_t seed_key, const uint64_t *round_keys, uint32_t num_rounds,
    uint8_t both_ways, uint8_t keeps_loops, const uint32_t *numbers,
    uint32_t first_row, uint32_t end_row, uint64_t *keys, uint64_t capacity,
    unsigned long long *num_keys) {
  uint32_t lane = threadIdx.x % 32;
  for (uint64_t i = first_index(); i - lane < count; i += num_threads()) {
    uint64_t key = 0;
    if (i < count)
      key = numbered(
          drawn(i, scale, to_b, to_c, to_d, seed_key, round_keys, num_rounds),
          numbers);
    uint32_t ends[2] = {uint32_t(key >> 32), uint32_t(key)};
    bool is_loop = ends[0] == ends[1];
    for (uint32_t k = 0; k < 1 + both_ways; ++k) {
      bool is_kept = i < count && ends[k] >= first_row && ends[k] < end_row &&
                     (!is_loop || (keeps_loops && k == 0));
      uint32_t those = __ballot_sync(ALL_LANES, is_kept);
      if (those == 0)
        continue;
      unsigned long long at = 0;
      if (lane == 0)
        at = atomicAdd(num_keys, (unsigned long long)__popc(those));
      at = __shfl_sync(ALL_LANES, at, 0) + __popc(those & ((1u << lane) - 1));
      if (is_kept && at < capacity)
        keys[at] = uint64_t(ends[k] - first_row) << 32 | ends[1 - k];
    }
  }
}

// Gives vertices the numbers of their places: numbers[order[i]] = i.
extern "C" __global__ void
number_thread_mapped(const uint32_t *order, uint64_t count, uint32_t *numbers) {
  for (uint64_t i = first_index(); i < count; i += num_threads())
    numbers[order[i]] = uint32_t(i);
}

// Weighs the edges of rows from `first_row` on, a warp a row.
//
//   offsets: [num_rows + 1]
//   order: the vertex of each number; null: they are gids
extern "C" __global__ void
weigh_rows_warp_mapped(const uint64_t *offsets, const uint32_t *targets,
                       uint32_t num_rows, uint32_t first_row,
                       const uint32_t *order, uint64_t seed_key,
                       float *weights) {
  for (uint64_t row = first_index() / 32; row < num_rows;
       row += num_threads() / 32) {
    uint32_t source = first_row + uint32_t(row);
    source = order ? order[source] : source;
    for (uint64_t e = offsets[row] + threadIdx.x % 32; e < offsets[row + 1];
         e += 32)
      weights[e] =
          weight_of(source, order ? order[targets[e]] : targets[e], seed_key);
  }
}
