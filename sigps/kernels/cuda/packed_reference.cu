// Unpacks rows one after another, to be compared with what CPU cores unpack.
//
// Schedule: one block; `way` 0: a row a thread, 1: a row a warp, 2: all rows by
// the block.

#include "packed_rows.cuh"

using namespace sigps;

// targets: [arcs], at offsets[row] each; degrees as those of `offsets`.
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS)
    unpack_rows_block_mapped(const __grid_constant__ PackedRows rows,
                             const uint64_t *offsets, uint32_t way,
                             uint32_t *targets) {
  for (uint32_t chain = 0; chain < rows.num_chains; chain++) {
    uint32_t page = rows.chains[chain], end = rows.chains[chain + 1];
    uint32_t first = rows.first_rows[page];
    bool spans = end - page > 1;
    uint64_t done = 0;
    for (; page < end; page++) {
      packed::Page open = packed::open_page(rows, page);
      auto unpack = [&](uint32_t row, uint64_t begin, uint32_t count,
                        uint32_t by) {
        packed::Part part = {row, rows.parts[row], rows.first_gaps[row], count};
        auto take = [&](const packed::Targets<4> &found) {
          for (uint32_t k = 0; k < 4; k++)
            if (found.is_there[k])
              targets[begin + found.i + k * found.step] = found.targets[k];
        };
        if (by == 0)
          packed::for_targets<4>(rows, open, part, take);
        else if (by == 1)
          packed::for_targets_by_warp<4>(rows, open, part, take);
        else
          packed::for_targets_by_block<4>(rows, open, part, take);
      };
      if (spans) {
        uint64_t left = offsets[first + 1] - offsets[first] - done;
        uint32_t count = left < open.num_arcs ? uint32_t(left) : open.num_arcs;
        unpack(first, offsets[first] + done, count, 2);
        done += count;
      }
      if (page + 1 < end)
        continue;
      uint32_t stride = way == 0 ? blockDim.x : way == 1 ? blockDim.x / 32 : 1;
      uint32_t mine = way == 0 ? threadIdx.x : way == 1 ? threadIdx.x / 32 : 0;
      for (uint32_t row = first + spans + mine; row < rows.first_rows[end];
           row += stride)
        if (offsets[row + 1] > offsets[row])
          unpack(row, offsets[row], uint32_t(offsets[row + 1] - offsets[row]),
                 way);
    }
  }
}
