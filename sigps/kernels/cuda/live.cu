// Rows of edges that change in place, and what a monotone program needs to go
// on from there (engine/gpu/live.py): edges are deleted, inserted and moved;
// vertices that lost what their keys came from are found; those that send again
// are marked. Of no program's functions: a message is its sender's key, and the
// edge's number added to it where SIGPS_ADDS.
//
// A row lies in one piece from its begin on, in any order, with room of its own
// behind it. An edge that is deleted leaves a hole, which an inserted one or
// the row's last fills.
//
//   begins:  [rows]      where each row begins in `ends`
//   degrees: [rows]
//   keys, first: [rows]  now, and after superstep 0
//   sent:    [rows]      1: sent in superstep 0
//   fates:   [rows]      0, or what became of a vertex that was looked at
//   stamps:  [rows]      the last round in which a vertex was queued
//
// Schedule: any number of blocks; by name a thread, a warp or a block a work
// item.
//
// Macros: SIGPS_KEY, SIGPS_WEIGHT, types; SIGPS_TAKES_MIN; SIGPS_ADDS;
// SIGPS_COLUMNS, 1: edges have a number, else nobody reads `weights`.

#include "edges.cuh"

using namespace sigps;

namespace {

using Key = SIGPS_KEY;
using Weight = SIGPS_WEIGHT;

constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t HOLE = ~0u;

// TRIMMED: nothing holds its key up. HELD: something does, but its other states
// may have come from elsewhere.
enum Fate : uint8_t { UNSEEN = 0, TRIMMED = 1, HELD = 2 };

// Lists that kernels append to, and the edges that they read to judge.
struct LiveCounts {
  uint32_t queued, listed, expanding, missing;
  unsigned long long edges;
};

__device__ inline bool is_better(Key a, Key b) {
  return SIGPS_TAKES_MIN ? a < b : b < a;
}

__device__ inline Key message_of(Key key, const Weight *weights,
                                 uint64_t edge) {
  return SIGPS_ADDS ? Key(key + Key(weights[edge])) : key;
}

// Whether a vertex has sent its key.
__device__ inline bool has_sent(const uint8_t *sent, const Key *keys,
                                const Key *first, uint32_t v) {
  return sent[v] || keys[v] != first[v];
}

__device__ inline uint32_t lane() { return threadIdx.x % 32; }
__device__ inline uint32_t first_warp() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}
__device__ inline uint32_t num_warps() { return gridDim.x * blockDim.x / 32; }
__device__ inline uint32_t first_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline uint32_t num_threads() { return gridDim.x * blockDim.x; }

} // namespace

// Copies all rows to other places, in other arrays.
extern "C" __global__ void __launch_bounds__(256)
    copy_rows_warp_mapped(uint32_t num_rows, const uint64_t *begins,
                          const uint32_t *degrees, const uint32_t *ends,
                          const Weight *weights, const uint64_t *new_begins,
                          uint32_t *new_ends, Weight *new_weights) {
  for (uint32_t v = first_warp(); v < num_rows; v += num_warps()) {
    uint64_t from = begins[v], to = new_begins[v];
    for (uint32_t i = lane(); i < degrees[v]; i += 32) {
      new_ends[to + i] = ends[from + i];
      if (SIGPS_COLUMNS)
        new_weights[to + i] = weights[from + i];
    }
  }
}

// Moves some rows to unused places of the same arrays.
extern "C" __global__ void __launch_bounds__(256)
    move_rows_block_mapped(const uint32_t *rows, const uint64_t *places,
                           uint32_t num_moved, uint64_t *begins,
                           const uint32_t *degrees, uint32_t *ends,
                           Weight *weights) {
  for (uint32_t k = blockIdx.x; k < num_moved; k += gridDim.x) {
    uint64_t from = begins[rows[k]], to = places[k];
    uint32_t degree = degrees[rows[k]];
    for (uint32_t i = threadIdx.x; i < degree; i += blockDim.x) {
      ends[to + i] = ends[from + i];
      if (SIGPS_COLUMNS)
        weights[to + i] = weights[from + i];
    }
    __syncthreads(); // all have read where it was
    if (threadIdx.x == 0)
      begins[rows[k]] = to;
  }
}

// Makes holes of edges: of each of the `num_kinds` kinds, equal in row, end and
// number, as many as it has places in `holes`, which get their numbers in the
// row.
//
//   first_holes: [num_kinds + 1]
//   num_found:   [num_kinds] zero
extern "C" __global__ void __launch_bounds__(256) find_deleted_block_mapped(
    const uint32_t *rows, const uint32_t *gone, const Weight *gone_weights,
    const uint32_t *first_holes, uint32_t num_kinds, const uint64_t *begins,
    const uint32_t *degrees, uint32_t *ends, const Weight *weights,
    uint32_t *num_found, uint32_t *holes, LiveCounts *counts) {
  for (uint32_t k = blockIdx.x; k < num_kinds; k += gridDim.x) {
    uint64_t begin = begins[rows[k]];
    uint32_t degree = degrees[rows[k]], end = gone[k];
    uint32_t first = first_holes[k], count = first_holes[k + 1] - first;
    for (uint32_t i = threadIdx.x; i < degree; i += blockDim.x) {
      if (ends[begin + i] != end ||
          (SIGPS_COLUMNS && weights[begin + i] != gone_weights[k]))
        continue;
      uint32_t number = atomicAdd(&num_found[k], 1u);
      if (number < count) {
        holes[first + number] = i;
        ends[begin + i] = HOLE;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0 && num_found[k] < count)
      atomicAdd(&counts->missing, 1u);
  }
}

// Writes the inserted edges of rows that have room for them, closes the holes,
// and sets degrees. Does nothing if an edge was missing.
//
//   first_holes, first_inserts: [num_rows + 1]
extern "C" __global__ void __launch_bounds__(256)
    edit_rows_thread_mapped(const uint32_t *rows, const uint32_t *first_holes,
                            const uint32_t *first_inserts, uint32_t num_rows,
                            const uint32_t *holes, const uint32_t *new_ends,
                            const Weight *new_weights, const uint64_t *begins,
                            uint32_t *degrees, uint32_t *ends, Weight *weights,
                            const LiveCounts *counts) {
  if (counts->missing)
    return;
  for (uint32_t k = first_thread(); k < num_rows; k += num_threads()) {
    uint32_t row = rows[k], degree = degrees[row];
    uint32_t hole = first_holes[k], last_hole = first_holes[k + 1];
    uint64_t begin = begins[row];
    for (uint32_t i = first_inserts[k]; i < first_inserts[k + 1]; i++) {
      uint64_t at = begin + (hole < last_hole ? holes[hole++] : degree++);
      ends[at] = new_ends[i];
      if (SIGPS_COLUMNS)
        weights[at] = new_weights[i];
    }
    uint32_t size = degree - (last_hole - hole);
    for (; hole < last_hole; hole++) {
      if (holes[hole] >= size)
        continue;
      do
        degree--;
      while (ends[begin + degree] == HOLE);
      ends[begin + holes[hole]] = ends[begin + degree];
      if (SIGPS_COLUMNS)
        weights[begin + holes[hole]] = weights[begin + degree];
    }
    degrees[row] = size;
  }
}

// Queues the targets of deleted edges that made their very keys.
extern "C" __global__ void __launch_bounds__(256) find_tight_thread_mapped(
    const uint32_t *sources, const uint32_t *targets, const Weight *weights,
    uint32_t num_edges, const Key *keys, const Key *first, const uint8_t *sent,
    uint32_t round, uint32_t *stamps, uint32_t *queue, LiveCounts *counts) {
  for (uint32_t e = first_thread(); e < num_edges; e += num_threads()) {
    uint32_t s = sources[e], t = targets[e];
    if (has_sent(sent, keys, first, s) &&
        message_of(keys[s], weights, e) == keys[t] &&
        atomicExch(&stamps[t], round) != round)
      queue[atomicAdd(&counts->queued, 1u)] = t;
  }
}

// Judges queued vertices: whether an in-edge from one with a smaller key, which
// was not trimmed before, makes the very key. If that one is trimmed in the
// same round, it queues this vertex again.
extern "C" __global__ void __launch_bounds__(256) judge_queued_warp_mapped(
    const uint32_t *queue, uint32_t num_queued, const uint64_t *begins,
    const uint32_t *degrees, const uint32_t *ends, const Weight *weights,
    const Key *keys, const Key *first, const uint8_t *sent, uint32_t lists_held,
    uint8_t *fates, uint32_t *listed, uint32_t *expanding, LiveCounts *counts) {
  for (uint32_t k = first_warp(); k < num_queued; k += num_warps()) {
    uint32_t v = queue[k], degree = degrees[v];
    Key key = keys[v];
    uint8_t fate = fates[v];
    if (fate == TRIMMED || !is_better(key, first[v]))
      continue;
    bool is_held = false;
    uint32_t num_read = 0;
    for (uint32_t base = 0; base < degree && !is_held; base += 32) {
      num_read = min(degree, base + 32);
      uint64_t e = begins[v] + base + lane();
      bool holds = false;
      if (base + lane() < degree) {
        uint32_t s = ends[e];
        holds = is_better(keys[s], key) && fates[s] != TRIMMED &&
                has_sent(sent, keys, first, s) &&
                message_of(keys[s], weights, e) == key;
      }
      is_held = __ballot_sync(ALL_LANES, holds) != 0;
    }
    __syncwarp();
    if (lane() != 0)
      continue;
    atomicAdd(&counts->edges, static_cast<unsigned long long>(num_read));
    if (is_held && !lists_held)
      continue;
    fates[v] = HELD; // or TRIMMED, when all have been judged
    if (fate == UNSEEN)
      listed[atomicAdd(&counts->listed, 1u)] = v;
    if (!is_held)
      expanding[atomicAdd(&counts->expanding, 1u)] = v;
  }
}

// Trims vertices, and queues what they may have held up.
extern "C" __global__ void __launch_bounds__(256)
    queue_dependent_warp_mapped(const uint32_t *expanding, uint32_t count,
                                const uint64_t *begins, const uint32_t *degrees,
                                const uint32_t *ends, const Weight *weights,
                                const Key *keys, uint8_t *fates, uint32_t round,
                                uint32_t *stamps, uint32_t *queue,
                                LiveCounts *counts) {
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = expanding[k];
    if (lane() == 0)
      fates[v] = TRIMMED;
    for (uint32_t i = lane(); i < degrees[v]; i += 32) {
      uint64_t e = begins[v] + i;
      uint32_t t = ends[e];
      if (fates[t] != TRIMMED && message_of(keys[v], weights, e) == keys[t] &&
          atomicExch(&stamps[t], round) != round)
        queue[atomicAdd(&counts->queued, 1u)] = t;
    }
  }
}

// Marks the in-neighbours of listed vertices that have sent their keys.
extern "C" __global__ void __launch_bounds__(256)
    mark_sources_warp_mapped(const uint32_t *listed, uint32_t count,
                             const uint64_t *begins, const uint32_t *degrees,
                             const uint32_t *ends, const Key *keys,
                             const Key *first, const uint8_t *sent,
                             uint8_t *marks) {
  for (uint32_t k = first_warp(); k < count; k += num_warps())
    for (uint32_t i = lane(); i < degrees[listed[k]]; i += 32) {
      uint32_t s = ends[begins[listed[k]] + i];
      if (has_sent(sent, keys, first, s))
        marks[s] = 1;
    }
}

// Marks the sources of inserted edges that improve their targets.
extern "C" __global__ void __launch_bounds__(256)
    mark_improving_thread_mapped(const uint32_t *sources,
                                 const uint32_t *targets, const Weight *weights,
                                 uint32_t num_edges, const Key *keys,
                                 const Key *first, const uint8_t *sent,
                                 uint8_t *marks, LiveCounts *counts) {
  for (uint32_t e = first_thread(); e < num_edges; e += num_threads()) {
    uint32_t s = sources[e];
    if (has_sent(sent, keys, first, s) &&
        is_better(message_of(keys[s], weights, e), keys[targets[e]])) {
      marks[s] = 1;
      counts->queued = 1;
    }
  }
}
