// Heads of rows that stay packed: of each row the targets with the smallest
// gids, those ascending.
//
// Schedule: a block takes a chain of pages after the other, and its warps the
// rows of a page; of a row that spans pages the first warp takes all.

#include "packed_rows.cuh"

using namespace sigps;

namespace {

using packed::MOST_HEADS;

constexpr uint32_t NO_HEAD = 0xffffffff;
constexpr uint64_t NOTHING = ~0ull; // comes behind all

// The smallest so far of those that a lane saw, ascending: a gid, and a target.
struct Smallest {
  uint64_t keys[MOST_HEADS];

  __device__ void clear() {
    for (uint32_t k = 0; k < MOST_HEADS; k++)
      keys[k] = NOTHING;
  }

  __device__ void take(uint64_t key) {
    for (uint32_t k = 0; k < MOST_HEADS; k++)
      if (key < keys[k]) {
        uint64_t larger = keys[k];
        keys[k] = key;
        key = larger;
      }
  }

  __device__ uint64_t take_first() {
    uint64_t first = keys[0];
    for (uint32_t k = 0; k + 1 < MOST_HEADS; k++)
      keys[k] = keys[k + 1];
    keys[MOST_HEADS - 1] = NOTHING;
    return first;
  }
};

__device__ inline void take_all(const PackedRows &rows,
                                const packed::Page &page,
                                const packed::Part &part, const uint32_t *gids,
                                Smallest &smallest) {
  packed::for_targets_by_warp<4>(
      rows, page, part, [&](const packed::Targets<4> &found) {
        for (uint32_t k = 0; k < 4; k++)
          if (found.is_there[k])
            smallest.take(uint64_t(gids[found.targets[k]]) << 32 |
                          found.targets[k]);
      });
}

// Writes a row's heads; by a warp, each lane of which saw some.
__device__ inline void write_heads(const PackedRows &rows, uint32_t row,
                                   Smallest &smallest, uint32_t *heads) {
  uint32_t count = packed::num_heads(rows, row);
  heads += packed::first_head(rows, row);
  for (uint32_t k = 0; k < count; k++) {
    uint64_t least = smallest.keys[0];
    for (uint32_t step = 16; step > 0; step /= 2) {
      uint64_t other = __shfl_xor_sync(packed::WHOLE_WARP, least, step);
      least = other < least ? other : least;
    }
    // Parallel edges: the lanes that have it drop one each, and one is written.
    if (least != NOTHING && smallest.keys[0] == least)
      smallest.take_first();
    if (packed::lane() == 0)
      heads[k] = least == NOTHING ? NO_HEAD : uint32_t(least);
  }
}

} // namespace

//   degrees: [num_rows or more]
//   gids:    [num_targets]
//   next:    [1]                0: what chain comes next
//   heads:   [heads of all rows]
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS)
    find_heads_block_mapped(const __grid_constant__ PackedRows rows,
                            const uint32_t *degrees, const uint32_t *gids,
                            uint32_t *next, uint32_t *heads) {
  __shared__ uint32_t drawn;
  for (;;) {
    if (threadIdx.x == 0)
      drawn = atomicAdd(next, 1u);
    __syncthreads();
    uint32_t chain = drawn;
    __syncthreads();
    if (chain >= rows.num_chains)
      break;
    uint32_t page = rows.chains[chain], end_page = rows.chains[chain + 1];
    uint32_t first = rows.first_rows[page], left = degrees[first];
    bool spans = end_page - page > 1;
    Smallest smallest;
    smallest.clear();
    for (; page < end_page; page++) {
      packed::Page open = packed::open_page(rows, page);
      if (spans && threadIdx.x < 32) {
        uint32_t arcs = left < open.num_arcs ? left : open.num_arcs;
        left -= arcs;
        take_all(rows, open, {first, 0, 0, arcs}, gids, smallest);
      }
      if (page + 1 < end_page)
        continue;
      if (spans && threadIdx.x < 32)
        write_heads(rows, first, smallest, heads);
      for (uint32_t v = first + spans + threadIdx.x / 32;
           v < rows.first_rows[end_page]; v += blockDim.x / 32) {
        packed::Part part = {v, rows.parts[v], rows.first_gaps[v], degrees[v]};
        smallest.clear();
        take_all(rows, open, part, gids, smallest);
        write_heads(rows, v, smallest, heads);
      }
    }
    __syncthreads(); // all are done with the page, and with `drawn`
  }
}
