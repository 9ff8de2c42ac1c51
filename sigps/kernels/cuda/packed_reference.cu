// Unpacks rows one after another, to be compared with what CPU cores unpack.
//
// Schedule: one block; `way` 0: a row a thread, 1: a row a warp, 2: all rows by
// the block, 3: a row a warp where it lies, chunks of one that spans pages by
// all warps.

#include "packed_rows.cuh"

using namespace sigps;

// targets: [arcs], at offsets[row] each; degrees as those of `offsets`.
// values:  [arcs], what a column has (SIGPS_COLUMN_TYPES, one)
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS)
    unpack_rows_block_mapped(const __grid_constant__ PackedRows rows,
                             const uint64_t *offsets, uint32_t way,
                             uint32_t *targets, double *values) {
  __shared__ uint2 groups[SIGPS_THREADS / 32][packed::GROUPS_IN_PLACE];
  uint32_t warp = threadIdx.x / 32, warps = blockDim.x / 32, num_read = 0;
  for (uint32_t chain = 0; chain < rows.num_chains; chain++) {
    uint32_t page = rows.chains[chain], end = rows.chains[chain + 1];
    uint32_t first = rows.first_rows[page];
    bool spans = end - page > 1;
    uint64_t done = 0;
    for (; page < end; page++) {
      packed::Page open = packed::Page{};
      if (way < 3)
        open = packed::open_page(rows, page);
      auto unpack = [&](uint32_t row, uint64_t begin, uint32_t count,
                        uint32_t by, bool is_whole) {
        packed::Part part = {row, rows.parts[row], rows.first_gaps[row], count};
        auto take = [&](const packed::Targets<4> &found) {
          for (uint32_t k = 0; k < 4; k++)
            if (found.is_there[k]) {
              targets[begin + found.i + k * found.step] = found.targets[k];
#ifdef SIGPS_COLUMN_TYPES
              values[begin + found.i + k * found.step] = found.values[k].first;
#endif
            }
        };
        if (by == 0)
          packed::for_targets<4>(rows, open, part, take);
        else if (by == 1)
          packed::for_targets_by_warp<4>(rows, open, part, take);
        else if (by == 2)
          packed::for_targets_by_block<4>(rows, open, part, take);
        else
          num_read += packed::for_part_in_place<4>(
              rows, page, part, is_whole ? 0 : warp, is_whole ? 1 : warps,
              groups[warp], take);
      };
      if (spans) {
        uint64_t left = offsets[first + 1] - offsets[first] - done;
        uint32_t arcs = rows.fronts[rows.first_fronts[page] + 2];
        uint32_t count = left < arcs ? uint32_t(left) : arcs;
        unpack(first, offsets[first] + done, count, way < 3 ? 2 : 3, false);
        done += count;
      }
      if (page + 1 < end)
        continue;
      uint32_t stride = way == 0 ? blockDim.x : way == 2 ? 1 : warps;
      uint32_t mine = way == 0 ? threadIdx.x : way == 2 ? 0 : warp;
      for (uint32_t row = first + spans + mine; row < rows.first_rows[end];
           row += stride) {
        if (way == 3 && packed::chain_of(rows, row) != chain)
          continue;
        if (offsets[row + 1] > offsets[row])
          unpack(row, offsets[row], uint32_t(offsets[row + 1] - offsets[row]),
                 way, true);
      }
    }
  }
  if (way == 3 && packed::lane() == 0)
    atomicAdd(rows.num_read, static_cast<unsigned long long>(num_read));
}
