// Rows of edges that ascend, and stay so when a batch changes them: edges
// behind a hole move up, and those that were put behind a row's last are
// brought to their places.
//
// Schedule: each function is a phase of a cooperative launch, with a barrier
// behind it. A long row takes a block, others a warp.
//
// Macros: those of `changing_rows.cuh`.

#pragma once

#include "editing_rows.cuh"

namespace sigps {
namespace {

// Whether the rows of a side ascend.
__device__ inline bool are_ordered(const Batch &batch, uint32_t side) {
  return SIGPS_ORDERED == 2 || (SIGPS_ORDERED && side == batch.num_sides - 1);
}

// Closes the holes of a row by moving up what is behind them: by some warps of
// a block from the first on, which wait for each other in `meet`. A thread
// reads PER edges at once.
template <int PER, class Meet>
__device__ void close_up(const ChangingRows &rows, uint32_t row,
                         uint32_t first_of_them, uint32_t warps,
                         uint32_t (*counts)[THREADS / 32], Meet meet) {
  uint64_t begin = rows.begins[row];
  uint32_t degree = rows.degrees[row], to = 0, warp = threadIdx.x / 32;
  for (uint32_t base = 0; base < degree; base += 32 * warps * PER) {
    uint32_t ends[PER], those[PER];
    Weight weights[PER];
#pragma unroll
    for (int n = 0; n < PER; n++) {
      uint32_t i = base + 32 * (n * warps + warp - first_of_them) + lane();
      ends[n] = i < degree ? rows.ends[begin + i] : HOLE;
      if (SIGPS_COLUMNS && ends[n] != HOLE)
        weights[n] = rows.weights[begin + i];
    }
#pragma unroll
    for (int n = 0; n < PER; n++) {
      those[n] = __ballot_sync(ALL_LANES, ends[n] != HOLE);
      if (lane() == 0)
        counts[n][warp] = __popc(those[n]);
    }
    meet(); // all have read
#pragma unroll
    for (int n = 0; n < PER; n++) {
      uint32_t at = to + __popc(those[n] & ((1u << lane()) - 1));
      for (uint32_t w = first_of_them; w < first_of_them + warps; w++) {
        at += w < warp ? counts[n][w] : 0;
        to += counts[n][w];
      }
      uint32_t i = base + 32 * (n * warps + warp - first_of_them) + lane();
      if (ends[n] == HOLE || at == i)
        continue;
      rows.ends[begin + at] = ends[n];
      if (SIGPS_COLUMNS)
        rows.weights[begin + at] = weights[n];
    }
    meet(); // before counts are written again
  }
}

// Closes the holes of rows that ascend.
__device__ void close_up_rows(const Batch &batch, uint32_t side) {
  __shared__ uint32_t counts[AT_ONCE][THREADS / 32];
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[DELETES + side];
  uint32_t num_parts = batch.counts->num_parts[DELETES + side];
  for (uint32_t k = first_warp(); k < count; k += num_warps())
    if (!(rows.touched[k] & LONG) && rows.pending[rows.touched[k]] != 0)
      close_up<1>(rows, rows.touched[k], threadIdx.x / 32, 1, counts,
                  [] { __syncwarp(); });
  __syncthreads(); // no warp reads its count any more
  for (uint32_t p = blockIdx.x; p < num_parts; p += gridDim.x) {
    uint32_t row = rows.touched[rows.parts[p] >> 32] & ~LONG;
    if (uint32_t(rows.parts[p]) == 0 && rows.pending[row] != 0)
      close_up<AT_ONCE>(rows, row, 0, blockDim.x / 32, counts,
                        [] { __syncthreads(); });
  }
}

// How many of a row's first `size` edges may stand before one of this order.
__device__ inline uint32_t place_in(const Batch &batch,
                                    const ChangingRows &rows, uint64_t begin,
                                    uint32_t size, uint32_t order) {
  uint32_t first = 0;
  while (first < size) {
    uint32_t middle = first + (size - first) / 2;
    if (batch.order[rows.ends[begin + middle]] <= order)
      first = middle + 1;
    else
      size = middle;
  }
  return first;
}

// Edges that are put into rows at a time, in order: by a block into one, or by
// each warp into one of its own. places: where the row of before is cut for
// each; their orders, until those are known.
struct Arrivals {
  uint32_t ends[THREADS];
  uint32_t places[THREADS];
  Weight weights[THREADS];
};

// How many of `count` places, which ascend, are not behind i.
__device__ inline uint32_t num_up_to(const uint32_t *places, uint32_t count,
                                     uint32_t i) {
  uint32_t first = 0;
  while (first < count) {
    uint32_t middle = first + (count - first) / 2;
    if (places[middle] <= i)
      first = middle + 1;
    else
      count = middle;
  }
  return first;
}

// Brings the edges that were put behind row k of the touched, which ascended,
// to their places in it: as many at a time as there are threads. These are
// numbered by `mine`, and wait for each other in `meet`; theirs of `arrivals`
// begin at `own`. A thread moves PER edges at once.
template <int PER, class Meet>
__device__ void merge_tail(const Batch &batch, const ChangingRows &rows,
                           uint32_t k, uint32_t mine, uint32_t threads,
                           Arrivals &arrivals, uint32_t own, Meet meet) {
  uint32_t row = rows.touched[k] & ~LONG;
  uint64_t begin = rows.begins[row];
  uint32_t degree = rows.degrees[row];
  uint32_t size = degree - (rows.counts[k] & ~MOVES); // of what ascends
  uint32_t *places = arrivals.places + own, *ends = arrivals.ends + own;
  Weight *weights = arrivals.weights + own;
  while (size < degree) {
    uint32_t count = min(threads, degree - size);
    uint32_t end = 0, order = 0, rank = 0;
    Weight weight{};
    if (mine < count) {
      end = rows.ends[begin + size + mine];
      if (SIGPS_COLUMNS)
        weight = rows.weights[begin + size + mine];
      places[mine] = order = batch.order[end];
    }
    meet();
    for (uint32_t i = 0; i < count; i++)
      rank += places[i] < order || (places[i] == order && i < mine);
    meet(); // all have read the orders
    if (mine < count) {
      ends[rank] = end;
      places[rank] = place_in(batch, rows, begin, size, order);
      if (SIGPS_COLUMNS)
        weights[rank] = weight;
    }
    meet();
    uint32_t least = places[0];
    for (uint32_t stop = size; stop > least;) { // what is behind, last first
      uint32_t first = stop - min(threads * PER, stop - least);
      uint32_t moved[PER];
      Weight numbers[PER];
#pragma unroll
      for (int n = 0; n < PER; n++)
        if (uint32_t i = first + n * threads + mine; i < stop) {
          moved[n] = rows.ends[begin + i];
          if (SIGPS_COLUMNS)
            numbers[n] = rows.weights[begin + i];
        }
      meet(); // all have read
#pragma unroll
      for (int n = 0; n < PER; n++)
        if (uint32_t i = first + n * threads + mine; i < stop) {
          uint64_t to = begin + i + num_up_to(places, count, i);
          rows.ends[to] = moved[n];
          if (SIGPS_COLUMNS)
            rows.weights[to] = numbers[n];
        }
      meet(); // before others read what was written over
      stop = first;
    }
    if (mine < count) {
      uint64_t to = begin + places[mine] + mine;
      rows.ends[to] = ends[mine];
      if (SIGPS_COLUMNS)
        rows.weights[to] = weights[mine];
    }
    meet();
    size += count;
  }
}

// Brings what was inserted into rows that ascend to its places.
__device__ void merge_tails(const Batch &batch, uint32_t side) {
  __shared__ Arrivals arrivals;
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[INSERTS + side];
  uint32_t num_parts = batch.counts->num_parts[INSERTS + side];
  for (uint32_t k = first_warp(); k < count; k += num_warps())
    if (!(rows.touched[k] & LONG))
      merge_tail<1>(batch, rows, k, lane(), 32, arrivals, threadIdx.x - lane(),
                    [] { __syncwarp(); });
  __syncthreads(); // no warp reads its arrivals any more
  for (uint32_t p = blockIdx.x; p < num_parts; p += gridDim.x) {
    uint32_t k = uint32_t(rows.parts[p] >> 32);
    if (uint32_t(rows.parts[p]) == 0)
      merge_tail<AT_ONCE>(batch, rows, k, threadIdx.x, blockDim.x, arrivals, 0,
                          [] { __syncthreads(); });
  }
}

} // namespace
} // namespace sigps
