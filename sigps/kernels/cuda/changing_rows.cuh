// Rows of edges that change in place, and what a batch does to them.
//
// A row lies in one piece from its begin on, in any order, with room of its own
// behind it. Where SIGPS_ORDERED, rows of in-edges ascend by `order`, and where
// it is 2 those of out-edges, too. A batch either lists the very edges that it
// deletes, with their numbers, or their ends: then all edges between these go,
// and where repeats are dropped an edge to insert that is there already is left
// out. `edit_rows` changes rows (editing_rows.cuh); launches behind it read
// what it came to.
//
// Macros: SIGPS_WEIGHT, a type; SIGPS_COLUMNS, 1: edges have a number, else
// nobody reads `weights`; SIGPS_ORDERED, 0, 1, or 2: rows of
// out-edges, too; SIGPS_PART: edges of a long row that a warp takes.

#pragma once

#include "edges.cuh"
#include "grid.cuh"

namespace sigps {
namespace {

using Weight = SIGPS_WEIGHT;

constexpr uint32_t THREADS = 256; // of a block, at most
constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t NOT_FOUND = ~0u;
constexpr uint32_t MANY = 1024; // edges of a row that takes a block
constexpr uint32_t AT_ONCE = 8; // edges that a thread of such a block looks at
constexpr uint32_t MOST_RANKS = 16;
constexpr uint32_t PART = SIGPS_PART;

// What ranks told each other when they met last, of all of them together.
struct Everywhere {
  uint32_t states; // bits of State that some rank has
  uint32_t lost;   // 1 + a rank that did not come in time; 0: all came
  uint32_t num_rounds;
  uint32_t num_listed;
  uint32_t num_added, num_removed; // edges
  uint32_t next;                   // above all numbers
  uint32_t has_told;               // whether ghosts were told of since they met
  unsigned long long num_read, num_sent_edges;
};

// What a batch came to. It begins with zeros, but for num_used, and a barrier
// that is not in use.
struct LiveCounts {
  unsigned long long num_used[2];    // places that rows of a side take
  unsigned long long num_read;       // edges, to judge
  unsigned long long num_sent_edges; // out-edges of the marked
  uint32_t missing;                  // listed edges that are not there
  uint32_t is_full; // num_used or num_removed is more than there is room for:
                    // no edge was inserted, or none changed
  uint32_t are_deleted;    // edges to delete are gone already
  uint32_t num_removed[2]; // edges that were taken out
  uint32_t num_added;      // edges that were put in
  uint32_t num_touched[4]; // rows, of deletes and then of inserts, by side
  uint32_t num_parts[4];
  unsigned long long num_slots[4];
  uint32_t more_hubs, fewer_hubs;
  uint32_t num_queued[2];    // by round
  uint32_t num_expanding[2]; // by round
  uint32_t num_listed, num_rounds, is_given_up;
  // Of first arrivals (arrivals.cu), of a step by its number: lowered vertices,
  // their out-edges, and the complement of the least level that waits. Of
  // measures (changed_links.cu) num_begun is how many pairs changed, num_again
  // of how many parts long ones are.
  uint32_t num_begun, num_again, num_steps;
  uint32_t of_step[3], next_level[3];
  unsigned long long step_edges[3];
  uint32_t num_told[MOST_RANKS];   // trimmed vertices, by rank that has ghosts
  uint32_t num_passed[MOST_RANKS]; // those that got a level, likewise
  Everywhere everywhere;
  Barrier barrier;
};

// Rows, and how a batch changes them. Between launches `pending` is zeros.
struct ChangingRows {
  uint64_t *begins;  // [rows] where each begins in `ends`
  uint32_t *degrees; // [rows]
  uint32_t *ends;
  Weight *weights;
  uint32_t *room;         // [rows] places of each
  uint32_t *pending;      // [rows] edges of the batch, of new ones those that
                          // are not put yet; then holes
  uint32_t *taken;        // [rows] of touched ones: the number among these,
                          // then how many of the last edges, by holes
  uint64_t size;          // places of all
  uint32_t *deleted_rows; // [deletes]
  uint32_t *deleted_ends; // [deletes]
  uint32_t *holes;        // [removed] where each edge taken out was in its row
  uint32_t *hole_rows;    // [removed]
  uint32_t *hole_ends;    // [removed]
  uint32_t *new_rows;     // [inserts]
  uint32_t *new_ends;     // [inserts]
  // Of touched rows, [deletes] or [inserts] if these are more.
  uint32_t *touched; // rows
  uint32_t *counts;  // edges of the batch
  uint64_t *places;  // where the table of each begins, then: where the first
                     // new edge goes
  uint64_t *parts;   // whose parts, and the edge that each begins with
  unsigned long long *slots; // tables, of two for each edge: its end and number
  uint32_t *wanted; // [deletes] where they are listed: edges to be found yet
};

struct Batch {
  ChangingRows sides[2]; // out-edges, and in-edges where they are others
  const Weight *deleted_weights; // [deletes] where they are not by ends
  Weight *new_weights;           // [inserts]
  Weight *hole_weights;          // [removed] of out-edges
  uint32_t num_sides, num_deletes, num_inserts, hub_degree;
  uint32_t most_removed; // room for edges taken out
  uint32_t by_ends;      // what follows is of such batches
  // As it was given, by gid; where rows of both ends have an edge, `deletes`
  // and `inserts` have it twice.
  const uint32_t *deleted_sources, *deleted_targets;
  const uint32_t *new_sources, *new_targets;
  const Weight *given_weights;
  const uint32_t *lids;  // [rows] by gid; null: it was given by lid
  const uint32_t *order; // [rows] by lid, where SIGPS_ORDERED
  uint32_t *left_out;    // [inserts] 1: not to be inserted
  uint32_t mirrors, drops_loops, drops_repeats;
  LiveCounts *counts;
};

__device__ inline uint32_t lane() { return threadIdx.x % 32; }
__device__ inline uint32_t first_warp() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}
__device__ inline uint32_t num_warps() { return gridDim.x * blockDim.x / 32; }
__device__ inline uint32_t first_thread() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline uint32_t num_threads() { return gridDim.x * blockDim.x; }

__device__ inline unsigned long long sum_of_warp(unsigned long long value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

__device__ inline bool is_left_out(const Batch &batch, uint32_t i) {
  return batch.by_ends && batch.left_out[i];
}

// The sum of the values of all lanes up to this one. By a whole warp.
template <class T> __device__ inline T sum_up_to(T sum) {
  for (uint32_t step = 1; step < 32; step *= 2) {
    T before = __shfl_up_sync(ALL_LANES, sum, step);
    sum += lane() >= step ? before : 0;
  }
  return sum;
}

// How many `count` of all lanes before this one come to, behind what `next` was
// before: places for each. By a whole warp.
template <class T> __device__ inline T take_places(T *next, uint64_t count) {
  T sum = sum_up_to(T(count)), begin = 0;
  if (lane() == 31 && sum != 0)
    begin = atomicAdd(next, sum);
  return __shfl_sync(ALL_LANES, begin, 31) + sum - T(count);
}

} // namespace
} // namespace sigps
