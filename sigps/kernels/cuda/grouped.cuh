// Grouped: every owned vertex adds its in-neighbours' messages up by key, and
// computes with the key of most weight. Writes the senders as bits.
//
// Schedule: CSR rows a block each, with one table in shared memory. Of sliced
// rows those of up to LANE_DEGREE edges a lane each, which looks through its
// keys one after another, and longer ones a warp each, with a table of its own;
// then a lane computes a vertex. Blocks and warps take the next task when they
// are done, those of most edges first.
//
// Rows that may have more keys than a block's table has places put what finds
// none there into a table in device memory, in a second pass: lease.key_words
// and lease.key_sums, of which row v has the 2 degree + 1 places that begin at
// 2 offsets[v] + v.

#pragma once

#include "shared_tables.cuh"

namespace sigps {

#ifndef SIGPS_LEAST_PLACES
#define SIGPS_LEAST_PLACES 4096
#endif
static_assert(WARP_TABLE_BYTES == SIGPS_WARP_TABLE_BYTES &&
                  BLOCK_PLACES >= SIGPS_LEAST_PLACES,
              "as kernels/cuda/lease.py and engine/gpu/launch.py have it");

// Calls with the messages of every `stride`th edge of a row from edge i on. All
// loads of some edges are issued before the first message is made.
template <class Use>
__device__ inline void
for_messages(const Lease &lease, const NextSuperstep &now, uint32_t v,
             const RowOfEdges &row, uint32_t i, uint32_t stride, Use use) {
  constexpr uint32_t COUNT = 4;
  Occasion when{lease.in, now.superstep, v};
  int parity = now.superstep & 1;
  for (; i < row.degree; i += COUNT * stride) {
    uint32_t sources[COUNT];
    Record records[COUNT];
    bool sent[COUNT];
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      uint32_t edge = i + k * stride;
      sent[k] = edge < row.degree;
      sources[k] =
          sent[k] ? lease.in_edges.ends[row.first + uint64_t(edge) * row.step]
                  : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      if (sent[k] && now.sender_filter != SENDERS_ALL)
        sent[k] = is_set(lease.sent[parity], sources[k]);
      if (HAS_RECORD && sent[k])
        records[k] = lease.records[parity][sources[k]];
    }
#pragma unroll
    for (uint32_t k = 0; k < COUNT; k++) {
      Slots value;
      uint64_t edge = i + k * stride;
      if (sent[k] &&
          when.passes(sigps_deliver(&lease.in, now.superstep - 1, &records[k],
                                    sources[k], v, row.first + edge * row.step,
                                    &value),
                      sources[k]))
        use(keyed(value));
    }
  }
}

__device__ inline Keyed group_by_block(const Lease &lease,
                                       const NextSuperstep &now, uint32_t v,
                                       const RowOfEdges &row) {
  Occasion when{lease.in, now.superstep, v};
  KeyTable table = shared_table(0, places_for(row.degree, BLOCK_PLACES));
  clear(table, threadIdx.x, blockDim.x);
  __syncthreads();
  if (v >= lease.num_key_rows) {
    for_messages(
        lease, now, v, row, threadIdx.x, blockDim.x,
        [&](const Keyed &message) { put<ALL_PLACES>(table, message, when); });
    __syncthreads();
    return choose_in_block(choose(table, threadIdx.x, blockDim.x));
  }
  bool has_all = true;
  for_messages(lease, now, v, row, threadIdx.x, blockDim.x,
               [&](const Keyed &message) {
                 has_all = put<REACH>(table, message, when) && has_all;
               });
  bool lacks_some = __syncthreads_or(!has_all);
  Keyed best = choose(table, threadIdx.x, blockDim.x);
  if (lacks_some) {
    uint64_t begin = 2 * lease.in_edges.offsets[v] + v;
    KeyTable more = {static_cast<KeyWord *>(lease.key_words) + begin,
                     static_cast<KeptSum *>(lease.key_sums) + begin,
                     2 * row.degree};
    clear(more, threadIdx.x, blockDim.x);
    __syncthreads();
    for_messages(lease, now, v, row, threadIdx.x, blockDim.x,
                 [&](const Keyed &message) {
                   if (!has_place(table, message.key))
                     put<ALL_PLACES>(more, message, when);
                 });
    __syncthreads();
    best = choose(more, threadIdx.x, blockDim.x, best);
  }
  return choose_in_block(best);
}

__device__ inline Keyed group_by_warp(const Lease &lease,
                                      const NextSuperstep &now, uint32_t v,
                                      const RowOfEdges &row) {
  Occasion when{lease.in, now.superstep, v};
  KeyTable table = table_of_warp(places_for(row.degree, WARP_PLACES));
  clear(table, lane_id(), 32);
  __syncwarp();
  for_messages(lease, now, v, row, lane_id(), 32, [&](const Keyed &message) {
    put<ALL_PLACES>(table, message, when);
  });
  __syncwarp();
  Keyed best = choose_in_warp(choose(table, lane_id(), 32));
  __syncwarp(); // before the table is another row's
  return best;
}

__device__ inline Keyed group_by_lane(const Lease &lease,
                                      const NextSuperstep &now, uint32_t v,
                                      const RowOfEdges &row) {
  Occasion when{lease.in, now.superstep, v};
  LaneTable table = table_of_lane();
  for_messages(lease, now, v, row, 0, 1, [&](const Keyed &message) {
    put_by_lane(table, message, when);
  });
  return choose_by_lane(table);
}

__device__ inline void compute_row(const Lease &lease, const NextSuperstep &now,
                                   uint32_t v, ThreadCounters &counted) {
  uint8_t status = lease.status[v];
  if (status == RETIRED)
    return;
  Keyed best = group_by_block(lease, now, v, row_of(lease.in_edges, v));
  if (threadIdx.x == 0 && (best.has || status == ACTIVE) &&
      run_vertex(lease, now, v, status, inbox_of(best), counted))
    atomicOr(&lease.sent[(now.superstep + 1) & 1][v / 32], 1u << v % 32);
}

__device__ inline void compute_slice(const Lease &lease,
                                     const NextSuperstep &now,
                                     uint32_t first_row,
                                     ThreadCounters &counted) {
  uint32_t v = first_row + lane_id();
  uint8_t status = v < lease.num_owned ? lease.status[v] : uint8_t(RETIRED);
  RowOfEdges row = status == RETIRED ? EMPTY_ROW : row_of(lease.in_edges, v);
  Keyed best = NO_KEY;
  if (row.degree <= LANE_DEGREE)
    best = group_by_lane(lease, now, v, row);
  __syncwarp();
  uint32_t waiting = __ballot_sync(ALL_LANES, row.degree > LANE_DEGREE);
  for (; waiting != 0; waiting &= waiting - 1) {
    uint32_t lane = __ffs(waiting) - 1;
    RowOfEdges one = {__shfl_sync(ALL_LANES, row.first, lane),
                      __shfl_sync(ALL_LANES, row.step, lane),
                      __shfl_sync(ALL_LANES, row.degree, lane)};
    Keyed found = group_by_warp(lease, now, first_row + lane, one);
    if (lane_id() == lane)
      best = found;
  }
  bool runs = status != RETIRED && (best.has || status == ACTIVE);
  bool sends =
      runs && run_vertex(lease, now, v, status, inbox_of(best), counted);
  uint32_t bits = __ballot_sync(ALL_LANES, sends);
  if (lane_id() == 0)
    lease.sent[(now.superstep + 1) & 1][first_row / 32] = bits;
}

__device__ inline void advance(const Lease &lease, const NextSuperstep &now,
                               uint32_t &, ThreadCounters &counted) {
  if (now.sender_filter == SENDERS_NONE) {
    compute_active(lease, now, counted);
    return;
  }
  __shared__ uint32_t next_row;
  uint32_t num_block_rows = lease.num_team_rows;
  while (true) {
    if (threadIdx.x == 0)
      next_row = atomicAdd(&lease.control->next_block_row.value, 1);
    __syncthreads();
    uint32_t v = next_row;
    __syncthreads();
    if (v >= num_block_rows || v >= lease.num_owned)
      break;
    compute_row(lease, now, v, counted);
  }
  uint32_t slices = lease.num_owned <= num_block_rows
                        ? 0
                        : (lease.num_owned - num_block_rows + 31) / 32;
  uint32_t counters = min(NUM_TASK_COUNTERS, threads_of_grid() / 32);
  uint32_t mine = spread_warp() % counters;
  uint32_t *numbers = &lease.control->next_task[mine].value;
  uint32_t slice = take(numbers) * counters + mine;
  while (slice < slices) {
    compute_slice(lease, now, num_block_rows + slice * 32, counted);
    slice = take(numbers) * counters + mine;
  }
}

} // namespace sigps
