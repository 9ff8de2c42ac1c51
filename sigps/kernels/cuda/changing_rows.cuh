// Rows of edges that change in place: edges are deleted, inserted and moved.
//
// A row lies in one piece from its begin on, in any order, with room of its own
// behind it. An edge that is deleted leaves a hole, which the row's last fills;
// one that is inserted goes behind the row's last. Where SIGPS_ORDERED, rows of
// in-edges ascend by `order`, and where it is 2 those of out-edges, too: edges
// behind a hole move up, and new ones are brought to their places. A batch
// either lists the very edges that it deletes, with their numbers, or their
// ends: then all edges between these go, and where repeats are dropped an edge
// to insert that is there already is left out.
//
// Schedule: each function is a phase of a cooperative launch, with a barrier
// behind it. Rows of many edges are read by a block each, others by a warp.
//
// Macros: SIGPS_WEIGHT, a type; SIGPS_COLUMNS, 1: edges have a number, else
// nobody reads `weights`; SIGPS_ORDERED, 0, 1, or 2: rows of
// out-edges, too.

#pragma once

#include "edges.cuh"
#include "grid.cuh"

namespace sigps {
namespace {

using Weight = SIGPS_WEIGHT;

constexpr uint32_t THREADS = 256; // of a block, at most
constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t HOLE = ~0u;
constexpr uint32_t NOT_FOUND = ~0u;
constexpr uint64_t STAYS = ~0ull;
constexpr uint32_t MANY = 1024; // edges of a row that takes a block
constexpr uint32_t AT_ONCE = 8; // edges that a thread of such a block looks at
constexpr uint32_t PARTS = 16;  // blocks that share such a row, of few deletes
constexpr uint32_t MOST_RANKS = 16;
constexpr uint32_t FEW = 1 << 13;                   // these
constexpr uint32_t MOVED_SLACK = 8, MOVED_ROOM = 4; // room of a row that moves

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
  uint32_t num_grown[2];
  uint32_t more_hubs, fewer_hubs;
  uint32_t num_queued[2];    // by round
  uint32_t num_expanding[2]; // by round
  uint32_t num_listed, num_rounds, is_given_up;
  // Of first arrivals (arrivals.cu), of a step by its number: lowered vertices,
  // their out-edges, and the complement of the least level that waits. Of
  // measures (changed_links.cu) num_begun is how many pairs changed.
  uint32_t num_begun, num_again, num_steps;
  uint32_t of_step[3], next_level[3];
  unsigned long long step_edges[3];
  uint32_t num_told[MOST_RANKS]; // trimmed vertices, by rank that has ghosts
  Barrier barrier;
};

// Rows, and how a batch changes them. Between launches `pending` and `taken`
// are zeros.
struct ChangingRows {
  uint64_t *begins;  // [rows] where each begins in `ends`
  uint32_t *degrees; // [rows]
  uint32_t *ends;
  Weight *weights;
  uint32_t *room;         // [rows] places of each
  uint32_t *pending;      // [rows] edges to insert, then holes
  uint32_t *taken;        // [rows] of its last edges, by holes; in order: 1
                          // where its holes are being closed, then its size
                          // before inserts
  uint64_t size;          // places of all
  uint32_t *deleted_rows; // [deletes]
  uint32_t *deleted_ends; // [deletes]
  uint32_t *holes;        // [removed] where each edge taken out was in its row
  uint32_t *hole_rows;    // [removed]
  uint32_t *hole_ends;    // [removed]
  uint32_t *new_rows;     // [inserts]
  uint32_t *new_ends;     // [inserts]
  uint32_t *grown;        // [inserts] the rows that get edges
  uint64_t *places;       // [inserts] where each of these moves
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
  uint32_t *slots;       // [num_slots] a hash table of edges to insert
  uint32_t num_slots;    // a power of two, more than the inserts
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

__device__ inline uint64_t room_for(uint32_t degree) {
  return uint64_t(degree) + degree / MOVED_SLACK + MOVED_ROOM;
}

__device__ inline unsigned long long sum_of_warp(unsigned long long value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

__device__ inline bool is_left_out(const Batch &batch, uint32_t i) {
  return batch.by_ends && batch.left_out[i];
}

// Writes the edges of a batch as rows have them, by local ids.
__device__ void take_given(const Batch &batch) {
  const ChangingRows &rows = batch.sides[0];
  auto lid_of = [&](uint32_t id) {
    return batch.lids == nullptr ? id : batch.lids[id];
  };
  for (uint32_t i = first_thread(); i < batch.num_deletes; i += num_threads()) {
    uint32_t k = i >> batch.mirrors;
    bool is_turned = batch.mirrors && i % 2 == 1;
    uint32_t s = lid_of(batch.deleted_sources[k]);
    uint32_t t = lid_of(batch.deleted_targets[k]);
    rows.deleted_rows[i] = is_turned ? t : s;
    rows.deleted_ends[i] = is_turned ? s : t;
  }
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t k = i >> batch.mirrors;
    bool is_turned = batch.mirrors && i % 2 == 1;
    uint32_t s = lid_of(batch.new_sources[k]);
    uint32_t t = lid_of(batch.new_targets[k]);
    rows.new_rows[i] = is_turned ? t : s;
    rows.new_ends[i] = is_turned ? s : t;
    batch.left_out[i] = s == t && (is_turned || batch.drops_loops);
    if (SIGPS_COLUMNS)
      batch.new_weights[i] = batch.given_weights[k];
  }
  for (uint32_t k = first_thread(); k < batch.num_slots; k += num_threads())
    batch.slots[k] = NOT_FOUND;
}

__device__ inline uint32_t slot_of(const Batch &batch, uint32_t i) {
  const ChangingRows &rows = batch.sides[0];
  uint64_t key = uint64_t(rows.new_rows[i]) << 32 | rows.new_ends[i];
  key *= 0x9E3779B97F4A7C15ull;
  return uint32_t(key >> 32) & (batch.num_slots - 1);
}

__device__ inline bool are_same(const Batch &batch, uint32_t i, uint32_t j) {
  const ChangingRows &rows = batch.sides[0];
  return rows.new_rows[i] == rows.new_rows[j] &&
         rows.new_ends[i] == rows.new_ends[j];
}

// Enters edges to insert in the table: of those that are the same the first.
__device__ void enter_inserts(const Batch &batch) {
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t at = slot_of(batch, i);
    if (batch.left_out[i])
      continue;
    for (;; at = (at + 1) & (batch.num_slots - 1)) {
      uint32_t there = atomicCAS(&batch.slots[at], NOT_FOUND, i);
      if (there == NOT_FOUND)
        break;
      if (are_same(batch, there, i)) {
        atomicMin(&batch.slots[at], i);
        break;
      }
    }
  }
}

// The first of the edges to insert that are the same as one in the table.
__device__ inline uint32_t first_same(const Batch &batch, uint32_t i) {
  uint32_t at = slot_of(batch, i);
  while (!are_same(batch, batch.slots[at], i))
    at = (at + 1) & (batch.num_slots - 1);
  return batch.slots[at];
}

// Tells which edges to insert are there already, or come twice. Each is looked
// for at that of its ends which has fewer.
__device__ void find_repeats(const Batch &batch) {
  const ChangingRows &outgoing = batch.sides[0];
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  auto at_source = [&](uint32_t i) {
    return outgoing.degrees[outgoing.new_rows[i]] <=
           incoming.degrees[outgoing.new_ends[i]];
  };
  auto is_there = [&](uint32_t i, uint32_t first, uint32_t step) {
    uint32_t s = outgoing.new_rows[i], t = outgoing.new_ends[i];
    const ChangingRows &rows = at_source(i) ? outgoing : incoming;
    uint32_t row = at_source(i) ? s : t, wanted = at_source(i) ? t : s;
    uint64_t begin = rows.begins[row];
    bool found = false;
    for (uint32_t k = first; k < rows.degrees[row] && !found; k += step)
      found = rows.ends[begin + k] == wanted;
    return found;
  };
  auto degree_of = [&](uint32_t i) {
    return min(outgoing.degrees[outgoing.new_rows[i]],
               incoming.degrees[outgoing.new_ends[i]]);
  };
  for (uint32_t i = first_warp(); i < batch.num_inserts; i += num_warps()) {
    if (degree_of(i) > MANY)
      continue;
    uint32_t those = __ballot_sync(ALL_LANES, is_there(i, lane(), 32));
    if (lane() == 0 && !batch.left_out[i])
      batch.left_out[i] = those != 0 || first_same(batch, i) != i;
  }
  for (uint32_t i = blockIdx.x; i < batch.num_inserts; i += gridDim.x) {
    if (degree_of(i) <= MANY)
      continue;
    bool found = __syncthreads_or(is_there(i, threadIdx.x, blockDim.x));
    if (threadIdx.x == 0 && !batch.left_out[i])
      batch.left_out[i] = found || first_same(batch, i) != i;
  }
}

// Counts what each row gets, and lists these rows.
__device__ void count_inserts(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t row = rows.new_rows[i];
    if (!is_left_out(batch, i) && atomicAdd(&rows.pending[row], 1u) == 0)
      rows.grown[atomicAdd(&batch.counts->num_grown[side], 1u)] = row;
  }
}

// Finds places for rows that outgrow their room.
__device__ void find_places(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_grown[side];
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t row = rows.grown[k], size = rows.degrees[row] + rows.pending[row];
    rows.places[k] = STAYS;
    if (size > rows.room[row])
      rows.places[k] =
          atomicAdd(&batch.counts->num_used[side],
                    static_cast<unsigned long long>(room_for(size)));
  }
}

__device__ inline void copy_row(const ChangingRows &rows, uint64_t from,
                                uint64_t to, uint32_t degree, uint32_t first,
                                uint32_t step) {
  for (uint32_t i = first; i < degree; i += step) {
    rows.ends[to + i] = rows.ends[from + i];
    if (SIGPS_COLUMNS)
      rows.weights[to + i] = rows.weights[from + i];
  }
}

// Whether the rows of a side ascend.
__device__ inline bool are_ordered(const Batch &batch, uint32_t side) {
  return SIGPS_ORDERED == 2 || (SIGPS_ORDERED && side == batch.num_sides - 1);
}

__device__ inline void settle(const Batch &batch, uint32_t side, uint32_t row,
                              uint64_t to) {
  const ChangingRows &rows = batch.sides[side];
  if (are_ordered(batch, side))
    rows.taken[row] = rows.degrees[row];
  if (to != STAYS) {
    rows.begins[row] = to;
    rows.room[row] = room_for(rows.degrees[row] + rows.pending[row]);
  }
  rows.pending[row] = 0;
}

// Moves rows to their places.
__device__ void move_rows(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_grown[side];
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t row = rows.grown[k], degree = rows.degrees[row];
    uint64_t to = rows.places[k];
    if (to != STAYS && degree > MANY)
      continue;
    if (to != STAYS)
      copy_row(rows, rows.begins[row], to, degree, lane(), 32);
    __syncwarp(); // all have read where it was
    if (lane() == 0)
      settle(batch, side, row, to);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t row = rows.grown[k], degree = rows.degrees[row];
    uint64_t to = rows.places[k];
    if (to == STAYS || degree <= MANY)
      continue;
    copy_row(rows, rows.begins[row], to, degree, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
      settle(batch, side, row, to);
  }
}

__device__ inline bool matches(const Batch &batch, const ChangingRows &rows,
                               uint32_t j, uint64_t at) {
  return rows.ends[at] == rows.deleted_ends[j] &&
         (!SIGPS_COLUMNS || rows.weights[at] == batch.deleted_weights[j]);
}

// Makes a hole of an edge, unless another thread was first. Where there is no
// room to note it, it stays, and is counted.
__device__ inline bool takes_out(const Batch &batch, uint32_t side, uint32_t j,
                                 uint32_t row, uint64_t begin, uint32_t i) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t end = rows.deleted_ends[j];
  if (atomicCAS(&rows.ends[begin + i], end, HOLE) != end)
    return false;
  uint32_t at = atomicAdd(&batch.counts->num_removed[side], 1u);
  if (at >= batch.most_removed) {
    rows.ends[begin + i] = end;
    return true;
  }
  rows.holes[at] = i;
  rows.hole_rows[at] = row;
  rows.hole_ends[at] = end;
  if (SIGPS_COLUMNS && side == 0)
    batch.hole_weights[at] = rows.weights[begin + i];
  atomicAdd(&rows.pending[row], 1u);
  return true;
}

// The least place of a row from `from` on that matches a deleted edge. By a
// whole block.
__device__ uint32_t find_from(const Batch &batch, const ChangingRows &rows,
                              uint32_t j, uint32_t from) {
  __shared__ uint32_t least;
  uint32_t row = rows.deleted_rows[j], degree = rows.degrees[row];
  uint64_t begin = rows.begins[row];
  for (uint32_t base = from; base < degree; base += AT_ONCE * blockDim.x) {
    uint32_t mine = NOT_FOUND;
    for (uint32_t k = 0; k < AT_ONCE; k++) {
      uint32_t i = base + k * blockDim.x + threadIdx.x;
      if (i < degree && matches(batch, rows, j, begin + i))
        mine = min(mine, i);
    }
    if (threadIdx.x == 0)
      least = NOT_FOUND;
    if (__syncthreads_or(mine != NOT_FOUND)) {
      if (mine != NOT_FOUND)
        atomicMin(&least, mine);
      __syncthreads();
      uint32_t found = least;
      __syncthreads();
      return found;
    }
  }
  return NOT_FOUND;
}

// Makes a hole of each listed edge: of parallel ones that are equal, another
// one for each.
__device__ void find_listed(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  for (uint32_t j = first_warp(); j < batch.num_deletes; j += num_warps()) {
    uint32_t row = rows.deleted_rows[j], degree = rows.degrees[row];
    uint64_t begin = rows.begins[row];
    if (degree > MANY)
      continue;
    bool is_found = false;
    for (uint32_t base = 0; base < degree && !is_found; base += 32) {
      uint32_t i = base + lane();
      bool is_one = i < degree && matches(batch, rows, j, begin + i);
      uint32_t those = __ballot_sync(ALL_LANES, is_one);
      for (; those != 0 && !is_found; those &= those - 1) {
        bool is_mine = lane() == uint32_t(__ffs(those)) - 1 &&
                       takes_out(batch, side, j, row, begin, i);
        is_found = __ballot_sync(ALL_LANES, is_mine) != 0;
      }
    }
    if (lane() == 0 && !is_found)
      atomicAdd(&batch.counts->missing, 1u);
  }
  for (uint32_t j = blockIdx.x; j < batch.num_deletes; j += gridDim.x) {
    uint32_t row = rows.deleted_rows[j];
    if (rows.degrees[row] <= MANY)
      continue;
    bool is_found = false;
    for (uint32_t from = 0; !is_found;) {
      uint32_t i = find_from(batch, rows, j, from);
      if (i == NOT_FOUND)
        break;
      bool is_mine = threadIdx.x == 0 &&
                     takes_out(batch, side, j, row, rows.begins[row], i);
      is_found = __syncthreads_or(is_mine);
      from = i + 1;
    }
    if (threadIdx.x == 0 && !is_found)
      atomicAdd(&batch.counts->missing, 1u);
  }
}

// Makes holes of some edges of a row that lead to a deleted edge's end.
__device__ inline void take_all(const Batch &batch, uint32_t side, uint32_t j,
                                uint32_t row, uint32_t first, uint32_t step,
                                uint32_t stop) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t end = rows.deleted_ends[j];
  uint64_t begin = rows.begins[row];
#pragma unroll 4
  for (uint32_t i = first; i < stop; i += step)
    if (rows.ends[begin + i] == end)
      takes_out(batch, side, j, row, begin, i);
}

// Makes holes of all edges between the ends of deleted ones.
__device__ void find_by_ends(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  for (uint32_t j = first_warp(); j < batch.num_deletes; j += num_warps()) {
    uint32_t row = rows.deleted_rows[j], degree = rows.degrees[row];
    if (degree <= MANY)
      take_all(batch, side, j, row, lane(), 32, degree);
  }
  uint32_t parts = batch.num_deletes <= FEW ? PARTS : 1;
  for (uint64_t k = blockIdx.x; k < uint64_t(batch.num_deletes) * parts;
       k += gridDim.x) {
    uint32_t j = k / parts, row = rows.deleted_rows[j];
    uint32_t degree = rows.degrees[row], size = degree / parts + 1;
    uint32_t first = uint32_t(k % parts) * size;
    if (degree > MANY)
      take_all(batch, side, j, row, first + threadIdx.x, blockDim.x,
               min(degree, first + size));
  }
}

__device__ void find_deleted(const Batch &batch, uint32_t side) {
  if (batch.by_ends)
    find_by_ends(batch, side);
  else
    find_listed(batch, side);
}

// Puts edges back that were taken out.
__device__ void fill_holes(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = min(batch.counts->num_removed[side], batch.most_removed);
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t row = rows.hole_rows[k];
    rows.ends[rows.begins[row] + rows.holes[k]] = rows.hole_ends[k];
    rows.pending[row] = 0;
  }
}

// Fills the holes in front of where rows are to end with their last edges.
__device__ void close_holes(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_removed[side];
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t row = rows.hole_rows[k];
    uint32_t size = rows.degrees[row] - rows.pending[row];
    if (rows.holes[k] >= size)
      continue;
    uint64_t begin = rows.begins[row], to = begin + rows.holes[k], from;
    do
      from = begin + size + atomicAdd(&rows.taken[row], 1u);
    while (rows.ends[from] == HOLE);
    rows.ends[to] = rows.ends[from];
    if (SIGPS_COLUMNS)
      rows.weights[to] = rows.weights[from];
  }
}

// Closes the holes of a row by moving up what is behind them. By a warp.
__device__ void close_up_by_warp(const ChangingRows &rows, uint32_t row) {
  uint64_t begin = rows.begins[row];
  uint32_t degree = rows.degrees[row], to = 0;
  for (uint32_t base = 0; base < degree; base += 32) {
    uint32_t i = base + lane();
    uint32_t end = i < degree ? rows.ends[begin + i] : HOLE;
    Weight weight{};
    if (SIGPS_COLUMNS && end != HOLE)
      weight = rows.weights[begin + i];
    uint32_t those = __ballot_sync(ALL_LANES, end != HOLE); // all have read
    uint32_t at = to + __popc(those & ((1u << lane()) - 1));
    if (end != HOLE && at != i) {
      rows.ends[begin + at] = end;
      if (SIGPS_COLUMNS)
        rows.weights[begin + at] = weight;
    }
    __syncwarp();
    to += __popc(those);
  }
}

// The same by a block.
__device__ void close_up_by_block(const ChangingRows &rows, uint32_t row) {
  __shared__ uint32_t counts[THREADS / 32];
  uint64_t begin = rows.begins[row];
  uint32_t degree = rows.degrees[row], to = 0, warp = threadIdx.x / 32;
  for (uint32_t base = 0; base < degree; base += blockDim.x) {
    uint32_t i = base + threadIdx.x;
    uint32_t end = i < degree ? rows.ends[begin + i] : HOLE;
    Weight weight{};
    if (SIGPS_COLUMNS && end != HOLE)
      weight = rows.weights[begin + i];
    uint32_t those = __ballot_sync(ALL_LANES, end != HOLE);
    if (lane() == 0)
      counts[warp] = __popc(those);
    __syncthreads(); // all have read
    uint32_t at = to + __popc(those & ((1u << lane()) - 1));
    for (uint32_t w = 0; w < blockDim.x / 32; w++) {
      at += w < warp ? counts[w] : 0;
      to += counts[w];
    }
    if (end != HOLE && at != i) {
      rows.ends[begin + at] = end;
      if (SIGPS_COLUMNS)
        rows.weights[begin + at] = weight;
    }
    __syncthreads(); // before counts are written again
  }
}

// Closes the holes of rows that ascend: each row once, by whom first takes it.
__device__ void close_up_rows(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_removed[side];
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t row = rows.hole_rows[k];
    if (rows.degrees[row] > MANY)
      continue;
    bool is_first = lane() == 0 && atomicExch(&rows.taken[row], 1u) == 0;
    if (__ballot_sync(ALL_LANES, is_first) != 0)
      close_up_by_warp(rows, row);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t row = rows.hole_rows[k];
    if (rows.degrees[row] <= MANY)
      continue;
    bool is_first = threadIdx.x == 0 && atomicExch(&rows.taken[row], 1u) == 0;
    if (__syncthreads_or(is_first))
      close_up_by_block(rows, row);
  }
}

__device__ void shorten_rows(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_removed[side];
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t row = rows.hole_rows[k];
    uint32_t num_holes = atomicExch(&rows.pending[row], 0u);
    if (num_holes == 0)
      continue;
    uint32_t degree = rows.degrees[row];
    rows.degrees[row] = degree - num_holes;
    rows.taken[row] = 0;
    if (side == 0 && degree > batch.hub_degree &&
        degree - num_holes <= batch.hub_degree)
      atomicAdd(&batch.counts->fewer_hubs, 1u);
  }
}

__device__ void write_inserts(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t added = 0;
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    if (is_left_out(batch, i))
      continue;
    added++;
    uint32_t row = rows.new_rows[i];
    uint32_t degree = atomicAdd(&rows.degrees[row], 1u);
    uint64_t at = rows.begins[row] + degree;
    rows.ends[at] = rows.new_ends[i];
    if (SIGPS_COLUMNS)
      rows.weights[at] = batch.new_weights[i];
    if (side == 0 && degree == batch.hub_degree)
      atomicAdd(&batch.counts->more_hubs, 1u);
  }
  added = uint32_t(sum_of_warp(added));
  if (side == 0 && lane() == 0 && added != 0)
    atomicAdd(&batch.counts->num_added, added);
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

// Brings the edges that were put behind a row of `size` edges, which ascends,
// to their places in it: as many at a time as there are threads. These are
// numbered by `mine`, and wait for each other in `meet`; theirs of `arrivals`
// begin at `own`. A thread moves PER edges at once.
template <int PER, class Meet>
__device__ void merge_tail(const Batch &batch, const ChangingRows &rows,
                           uint32_t row, uint32_t size, uint32_t mine,
                           uint32_t threads, Arrivals &arrivals, uint32_t own,
                           Meet meet) {
  uint64_t begin = rows.begins[row];
  uint32_t degree = rows.degrees[row];
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
    for (uint32_t k = 0; k < count; k++)
      rank += places[k] < order || (places[k] == order && k < mine);
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
  uint32_t count = batch.counts->num_grown[side];
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t row = rows.grown[k], size = rows.taken[row];
    if (rows.degrees[row] > MANY)
      continue;
    merge_tail<1>(batch, rows, row, size, lane(), 32, arrivals,
                  threadIdx.x - lane(), [] { __syncwarp(); });
    if (lane() == 0)
      rows.taken[row] = 0;
  }
  __syncthreads(); // no warp reads its arrivals any more
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t row = rows.grown[k], size = rows.taken[row];
    if (rows.degrees[row] <= MANY)
      continue;
    merge_tail<AT_ONCE>(batch, rows, row, size, threadIdx.x, blockDim.x,
                        arrivals, 0, [] { __syncthreads(); });
    if (threadIdx.x == 0)
      rows.taken[row] = 0;
  }
}

} // namespace
} // namespace sigps
