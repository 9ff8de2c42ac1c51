// Rows of edges that change in place, and what a monotone program needs to go
// on from there (engine/gpu/live.py): edges are deleted, inserted and moved;
// vertices that lost what their keys came from are found; those that send again
// are marked. Of no program's functions: a message is its sender's key, and the
// edge's number added to it where SIGPS_ADDS.
//
// A row lies in one piece from its begin on, in any order, with room of its own
// behind it. An edge that is deleted leaves a hole, which the row's last fills;
// one that is inserted goes behind the row's last. A batch either lists the
// very edges that it deletes, with their numbers, or their ends: then all edges
// between these go, and where repeats are dropped an edge to insert that is
// there already is left out.
//
// Schedule: `edit_rows` and `begin_again` are cooperative launches, of phases
// with a barrier between; how many blocks there are does not matter, if they
// fit (four on a multiprocessor do). Rows of many edges are read by a block
// each, others by a warp.
//
// Macros: SIGPS_KEY, SIGPS_WEIGHT, types; SIGPS_TAKES_MIN; SIGPS_ADDS;
// SIGPS_COLUMNS, 1: edges have a number, else nobody reads `weights`.

#include "edges.cuh"
#include "grid.cuh"

using namespace sigps;

namespace {

using Key = SIGPS_KEY;
using Weight = SIGPS_WEIGHT;

constexpr uint32_t THREADS = 256; // of a block, at most
constexpr uint32_t ALL_LANES = ~0u;
constexpr uint32_t HOLE = ~0u;
constexpr uint32_t NOT_FOUND = ~0u;
constexpr uint32_t NO_NUMBER = ~0u, MOST_NUMBER = 1u << 31;
constexpr uint64_t STAYS = ~0ull;
constexpr uint32_t MANY = 1024; // edges of a row that takes a block
constexpr uint32_t AT_ONCE = 8; // edges that a thread of such a block looks at
constexpr uint32_t PARTS = 16;  // blocks that share such a row, of few deletes
constexpr uint32_t FEW = 1 << 13;                   // these
constexpr uint32_t MOVED_SLACK = 8, MOVED_ROOM = 4; // room of a row that moves

// TRIMMED: nothing holds its key up. HELD: something does, but its other states
// may have come from elsewhere.
enum Fate : uint8_t { UNSEEN = 0, TRIMMED = 1, HELD = 2 };

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
  uint32_t *taken;        // [rows] of its last edges, by holes
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
  const uint32_t *lids; // [rows] by gid
  uint32_t *left_out;   // [inserts] 1: not to be inserted
  uint32_t *slots;      // [num_slots] a hash table of edges to insert
  uint32_t num_slots;   // a power of two, more than the inserts
  uint32_t mirrors, drops_loops, drops_repeats;
  LiveCounts *counts;
};

// The order of vertices where edges add nothing to keys, and these hold each
// other up in circles: unless its key is its own, a vertex has an in-neighbour
// of the same key with a smaller number.
struct Orders {
  uint32_t next;       // above all numbers
  uint32_t num_listed; // zeros between launches, as the next is
  uint32_t num_queued;
  Barrier barrier;
};

// States, and what a program goes on with. keys, first: now, and after
// superstep 0.
struct Live {
  Batch batch;
  void *states[8];   // [rows] each
  void *first[8];    // after superstep 0
  void *before[8];   // of the fixed point before
  uint32_t bytes[8]; // of a value
  uint32_t num_states, num_rows, num_words;
  uint32_t stamp;      // above all in `stamps`
  uint32_t lists_held; // whether states beside the key come with it
  uint32_t key;        // which state it is
  unsigned long long most_cost, cost_of_round, edges_of_message;
  const uint8_t *sent;    // [rows] 1: sent in superstep 0
  uint8_t *fates;         // [rows] zeros between batches
  uint32_t *stamps;       // [rows] when a vertex was queued last
  uint32_t *queues[2];    // [rows] by round
  uint32_t *expanding[2]; // [rows] by round: trimmed in it
  uint32_t *listed;       // [rows] trimmed, or HELD
  uint32_t *numbers;      // [rows] in the order; NO_NUMBER: not found
  Orders *orders;
  uint32_t numbers_anew; // whether all are to be found
  uint32_t *senders;     // [num_words] bits of the marked
  Key *records;          // [rows] what they send
  uint32_t *changed;     // [1 + rows] how many have other states than before,
                         // and which, in any order
};

__device__ inline bool is_better(Key a, Key b) {
  return SIGPS_TAKES_MIN ? a < b : b < a;
}

__device__ inline Key message_of(Key key, const Weight *weights,
                                 uint64_t edge) {
  return SIGPS_ADDS ? Key(key + Key(weights[edge])) : key;
}

__device__ inline Key key_of(const Live &live, uint32_t v) {
  return static_cast<const Key *>(live.states[live.key])[v];
}

__device__ inline Key first_key_of(const Live &live, uint32_t v) {
  return static_cast<const Key *>(live.first[live.key])[v];
}

// Whether a vertex has sent its key.
__device__ inline bool has_sent(const Live &live, uint32_t v) {
  return live.sent[v] || key_of(live, v) != first_key_of(live, v);
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
  for (uint32_t i = first_thread(); i < batch.num_deletes; i += num_threads()) {
    uint32_t k = i >> batch.mirrors;
    bool is_turned = batch.mirrors && i % 2 == 1;
    uint32_t s = batch.lids[batch.deleted_sources[k]];
    uint32_t t = batch.lids[batch.deleted_targets[k]];
    rows.deleted_rows[i] = is_turned ? t : s;
    rows.deleted_ends[i] = is_turned ? s : t;
  }
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t k = i >> batch.mirrors;
    bool is_turned = batch.mirrors && i % 2 == 1;
    uint32_t s = batch.lids[batch.new_sources[k]];
    uint32_t t = batch.lids[batch.new_targets[k]];
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

__device__ inline void settle(const ChangingRows &rows, uint32_t row,
                              uint64_t to) {
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
      settle(rows, row, to);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t row = rows.grown[k], degree = rows.degrees[row];
    uint64_t to = rows.places[k];
    if (to == STAYS || degree <= MANY)
      continue;
    copy_row(rows, rows.begins[row], to, degree, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
      settle(rows, row, to);
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

// Whether a vertex may hold up another that has its message for a key.
__device__ inline bool comes_before(const Live &live, uint32_t s, uint32_t t) {
  return SIGPS_ADDS || live.numbers[s] < live.numbers[t];
}

// Queues the targets of deleted edges that made their very keys.
__device__ void find_tight(const Live &live) {
  const Batch &batch = live.batch;
  uint32_t count = batch.counts->num_removed[0];
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t s = batch.sides[0].hole_rows[k];
    uint32_t t = batch.sides[0].hole_ends[k];
    if (has_sent(live, s) &&
        message_of(key_of(live, s), batch.hole_weights, k) == key_of(live, t) &&
        comes_before(live, s, t) &&
        atomicExch(&live.stamps[t], live.stamp) != live.stamp)
      live.queues[0][atomicAdd(&batch.counts->num_queued[0], 1u)] = t;
  }
}

// Whether an in-edge of v, which has key `key`, is from one with a smaller key
// or number that was not trimmed, and makes the very key.
__device__ inline bool holds_up(const Live &live, const ChangingRows &incoming,
                                uint64_t edge, uint32_t v, Key key) {
  uint32_t s = incoming.ends[edge];
  Key theirs = key_of(live, s);
  return (SIGPS_ADDS ? is_better(theirs, key) : comes_before(live, s, v)) &&
         live.fates[s] != TRIMMED && has_sent(live, s) &&
         message_of(theirs, incoming.weights, edge) == key;
}

// Whether a queued vertex is to be judged.
__device__ inline bool is_open(const Live &live, uint32_t v) {
  return live.fates[v] != TRIMMED &&
         is_better(key_of(live, v), first_key_of(live, v));
}

// By one thread.
__device__ void give_verdict(const Live &live, uint32_t round, uint32_t v,
                             bool is_held, uint32_t num_read) {
  LiveCounts *counts = live.batch.counts;
  atomicAdd(&counts->num_read, static_cast<unsigned long long>(num_read));
  if (is_held && !live.lists_held)
    return;
  if (live.fates[v] == UNSEEN)
    live.listed[atomicAdd(&counts->num_listed, 1u)] = v;
  live.fates[v] = HELD; // or TRIMMED, when all have been judged
  if (!is_held)
    live.expanding[round & 1]
                  [atomicAdd(&counts->num_expanding[round & 1], 1u)] = v;
}

// Judges queued vertices: whether something that was not trimmed in rounds
// before holds them up. If that is trimmed in this round, it queues them again.
__device__ void judge(const Live &live, const ChangingRows &incoming,
                      uint32_t round, uint32_t count) {
  const uint32_t *queue = live.queues[round & 1];
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = queue[k], degree = incoming.degrees[v], num_read = 0;
    if (degree > MANY || !is_open(live, v))
      continue;
    Key key = key_of(live, v);
    bool is_held = false;
    for (uint32_t base = 0; base < degree && !is_held; base += 32) {
      uint32_t i = base + lane();
      bool holds = i < degree &&
                   holds_up(live, incoming, incoming.begins[v] + i, v, key);
      is_held = __ballot_sync(ALL_LANES, holds) != 0;
      num_read = min(degree, base + 32);
    }
    __syncwarp();
    if (lane() == 0)
      give_verdict(live, round, v, is_held, num_read);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = queue[k], degree = incoming.degrees[v], num_read = 0;
    if (degree <= MANY || !is_open(live, v))
      continue;
    Key key = key_of(live, v);
    bool is_held = false;
    for (uint32_t base = 0; base < degree && !is_held;
         base += AT_ONCE * blockDim.x) {
      bool holds = false;
      for (uint32_t n = 0; n < AT_ONCE; n++) {
        uint32_t i = base + n * blockDim.x + threadIdx.x;
        holds |= i < degree &&
                 holds_up(live, incoming, incoming.begins[v] + i, v, key);
      }
      is_held = __syncthreads_or(holds);
      num_read = min(degree, base + AT_ONCE * blockDim.x);
    }
    if (threadIdx.x == 0)
      give_verdict(live, round, v, is_held, num_read);
  }
}

__device__ inline void queue_dependent(const Live &live,
                                       const ChangingRows &outgoing,
                                       uint32_t round, uint64_t edge,
                                       uint32_t v) {
  uint32_t t = outgoing.ends[edge], stamp = live.stamp + round + 1;
  Key key = key_of(live, v);
  if (live.fates[t] != TRIMMED && comes_before(live, v, t) &&
      message_of(key, outgoing.weights, edge) == key_of(live, t) &&
      atomicExch(&live.stamps[t], stamp) != stamp)
    live.queues[(round + 1) & 1][atomicAdd(
        &live.batch.counts->num_queued[(round + 1) & 1], 1u)] = t;
}

// Trims vertices, and queues what they may have held up.
__device__ void expand(const Live &live, const ChangingRows &outgoing,
                       uint32_t round, uint32_t count) {
  const uint32_t *expanding = live.expanding[round & 1];
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = expanding[k], degree = outgoing.degrees[v];
    if (degree > MANY)
      continue;
    if (lane() == 0)
      live.fates[v] = TRIMMED;
    for (uint32_t i = lane(); i < degree; i += 32)
      queue_dependent(live, outgoing, round, outgoing.begins[v] + i, v);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = expanding[k], degree = outgoing.degrees[v];
    if (degree <= MANY)
      continue;
    if (threadIdx.x == 0)
      live.fates[v] = TRIMMED;
    for (uint32_t i = threadIdx.x; i < degree; i += blockDim.x)
      queue_dependent(live, outgoing, round, outgoing.begins[v] + i, v);
  }
}

// Copies a value of a state from one array to another.
__device__ inline void copy_value(void *to, const void *from, uint32_t v,
                                  uint32_t bytes) {
  if (bytes == 8)
    static_cast<uint64_t *>(to)[v] = static_cast<const uint64_t *>(from)[v];
  else if (bytes == 4)
    static_cast<uint32_t *>(to)[v] = static_cast<const uint32_t *>(from)[v];
  else if (bytes == 2)
    static_cast<uint16_t *>(to)[v] = static_cast<const uint16_t *>(from)[v];
  else
    static_cast<uint8_t *>(to)[v] = static_cast<const uint8_t *>(from)[v];
}

__device__ inline bool are_equal(const void *a, const void *b, uint32_t v,
                                 uint32_t bytes) {
  if (bytes == 8)
    return static_cast<const uint64_t *>(a)[v] ==
           static_cast<const uint64_t *>(b)[v];
  if (bytes == 4)
    return static_cast<const uint32_t *>(a)[v] ==
           static_cast<const uint32_t *>(b)[v];
  if (bytes == 2)
    return static_cast<const uint16_t *>(a)[v] ==
           static_cast<const uint16_t *>(b)[v];
  return static_cast<const uint8_t *>(a)[v] ==
         static_cast<const uint8_t *>(b)[v];
}

// Gives listed vertices back their states of superstep 0.
__device__ void reset_listed(const Live &live, uint32_t count) {
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t v = live.listed[k];
    for (uint32_t i = 0; i < live.num_states; i++)
      copy_value(live.states[i], live.first[i], v, live.bytes[i]);
    live.fates[v] = UNSEEN;
    if (!SIGPS_ADDS)
      live.numbers[v] = NO_NUMBER;
  }
}

// Lets a vertex send its key; returns its out-edges where no other thread did.
__device__ inline uint32_t mark(const Live &live, uint32_t v) {
  uint32_t bit = 1u << v % 32;
  if (atomicOr(&live.senders[v / 32], bit) & bit)
    return 0;
  live.records[v] = key_of(live, v);
  return live.batch.sides[0].degrees[v];
}

// The better of two keys that lanes may have, by all lanes.
__device__ inline void take_better(Key &best, bool &has_one, Key other,
                                   bool has_other) {
  if (has_other && (!has_one || is_better(other, best)))
    best = other;
  has_one |= has_other;
}

__device__ inline void best_of_warp(Key &best, bool &has_one) {
  for (uint32_t step = 16; step > 0; step /= 2) {
    Key other = __shfl_xor_sync(ALL_LANES, best, step);
    bool has_other = __shfl_xor_sync(ALL_LANES, uint32_t(has_one), step);
    take_better(best, has_one, other, has_other);
  }
}

// Marks those in-neighbours of listed vertices that send them the best message;
// returns out-edges of theirs. Others would send to all theirs in vain.
__device__ unsigned long long
mark_sources(const Live &live, const ChangingRows &incoming, uint32_t count) {
  __shared__ Key bests[THREADS / 32];
  __shared__ bool have_one[THREADS / 32];
  unsigned long long edges = 0;
  auto look = [&](uint32_t v, uint32_t first, uint32_t step, Key &best,
                  bool &has_one) {
    uint64_t begin = incoming.begins[v];
    for (uint32_t i = first; i < incoming.degrees[v]; i += step) {
      uint32_t s = incoming.ends[begin + i];
      if (has_sent(live, s))
        take_better(best, has_one,
                    message_of(key_of(live, s), incoming.weights, begin + i),
                    true);
    }
  };
  auto mark_best = [&](uint32_t v, uint32_t first, uint32_t step, Key best) {
    uint64_t begin = incoming.begins[v];
    for (uint32_t i = first; i < incoming.degrees[v]; i += step) {
      uint32_t s = incoming.ends[begin + i];
      if (has_sent(live, s) &&
          message_of(key_of(live, s), incoming.weights, begin + i) == best)
        edges += mark(live, s);
    }
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = live.listed[k];
    if (incoming.degrees[v] > MANY)
      continue;
    Key best = key_of(live, v);
    bool has_one = false;
    look(v, lane(), 32, best, has_one);
    best_of_warp(best, has_one);
    if (has_one && is_better(best, key_of(live, v)))
      mark_best(v, lane(), 32, best);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = live.listed[k];
    if (incoming.degrees[v] <= MANY)
      continue;
    Key best = key_of(live, v);
    bool has_one = false;
    look(v, threadIdx.x, blockDim.x, best, has_one);
    best_of_warp(best, has_one);
    __syncthreads(); // all have read those of the row before
    if (lane() == 0) {
      bests[threadIdx.x / 32] = best;
      have_one[threadIdx.x / 32] = has_one;
    }
    __syncthreads();
    for (uint32_t w = 0; w < blockDim.x / 32; w++)
      take_better(best, has_one, bests[w], have_one[w]);
    if (has_one && is_better(best, key_of(live, v)))
      mark_best(v, threadIdx.x, blockDim.x, best);
  }
  return edges;
}

// Marks the sources of inserted edges that improve their targets.
__device__ unsigned long long mark_improving(const Live &live) {
  const Batch &batch = live.batch;
  unsigned long long edges = 0;
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t s = batch.sides[0].new_rows[i], t = batch.sides[0].new_ends[i];
    if (!is_left_out(batch, i) && has_sent(live, s) &&
        is_better(message_of(key_of(live, s), batch.new_weights, i),
                  key_of(live, t)))
      edges += mark(live, s);
  }
  return edges;
}

// Lists vertices that have no number, or another key than at the fixed point
// before.
__device__ void list_unnumbered(const Live &live, bool anew) {
  const Key *before = static_cast<const Key *>(live.before[live.key]);
  for (uint64_t first = first_thread() - lane(); first < live.num_rows;
       first += num_threads()) {
    uint32_t v = uint32_t(first) + lane();
    bool is_one = v < live.num_rows && (anew || live.numbers[v] == NO_NUMBER ||
                                        key_of(live, v) != before[v]);
    uint32_t those = __ballot_sync(ALL_LANES, is_one);
    if (those == 0)
      continue;
    uint32_t at = 0;
    if (lane() == 0)
      at = atomicAdd(&live.orders->num_listed, uint32_t(__popc(those)));
    at = __shfl_sync(ALL_LANES, at, 0) + __popc(those & ((1u << lane()) - 1));
    if (is_one) {
      live.listed[at] = v;
      live.numbers[v] = NO_NUMBER;
    }
  }
}

// Numbers listed vertices whose key is their own, and those beside one that has
// a number and their key; queues them.
__device__ void begin_numbers(const Live &live, const ChangingRows &incoming,
                              uint32_t next) {
  uint32_t count = live.orders->num_listed;
  auto number = [&](uint32_t v, uint32_t found) {
    live.numbers[v] = found;
    live.queues[0][atomicAdd(&live.orders->num_queued, 1u)] = v;
  };
  auto is_own = [&](uint32_t v) {
    return !is_better(key_of(live, v), first_key_of(live, v));
  };
  auto is_beside_one = [&](uint32_t v, uint32_t i) {
    if (i >= incoming.degrees[v])
      return false;
    uint32_t s = incoming.ends[incoming.begins[v] + i];
    return live.numbers[s] < next && key_of(live, s) == key_of(live, v) &&
           has_sent(live, s);
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = live.listed[k], degree = incoming.degrees[v];
    bool is_one = false;
    if (is_own(v)) {
      if (lane() == 0)
        number(v, 0);
      continue;
    }
    if (degree > MANY)
      continue;
    for (uint32_t base = 0; base < degree && !is_one; base += 32)
      is_one = __ballot_sync(ALL_LANES, is_beside_one(v, base + lane())) != 0;
    if (is_one && lane() == 0)
      number(v, next);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = live.listed[k], degree = incoming.degrees[v];
    if (degree <= MANY || is_own(v))
      continue;
    bool is_one = false;
    for (uint32_t base = 0; base < degree && !is_one; base += blockDim.x)
      is_one = __syncthreads_or(is_beside_one(v, base + threadIdx.x));
    if (is_one && threadIdx.x == 0)
      number(v, next);
  }
}

// Numbers those that have none beside vertices of their key, and queues them.
__device__ void number_neighbours(const Live &live,
                                  const ChangingRows &outgoing, uint32_t first,
                                  uint32_t last, uint32_t next) {
  auto number = [&](uint32_t v, uint32_t i) {
    uint32_t t = outgoing.ends[outgoing.begins[v] + i];
    if (live.numbers[t] == NO_NUMBER && key_of(live, t) == key_of(live, v) &&
        atomicCAS(&live.numbers[t], NO_NUMBER, next) == NO_NUMBER)
      live.queues[0][atomicAdd(&live.orders->num_queued, 1u)] = t;
  };
  for (uint32_t k = first + first_warp(); k < last; k += num_warps()) {
    uint32_t v = live.queues[0][k], degree = outgoing.degrees[v];
    if (degree > MANY || !has_sent(live, v))
      continue;
    for (uint32_t i = lane(); i < degree; i += 32)
      number(v, i);
  }
  for (uint32_t k = first + blockIdx.x; k < last; k += gridDim.x) {
    uint32_t v = live.queues[0][k], degree = outgoing.degrees[v];
    if (degree <= MANY || !has_sent(live, v))
      continue;
    for (uint32_t i = threadIdx.x; i < degree; i += blockDim.x)
      number(v, i);
  }
}

// Finds what deleted edges held up, and what these held up, and so on; returns
// how many vertices are listed, or NOT_FOUND where it cost too much.
__device__ uint32_t trim(const Live &live, const ChangingRows &incoming,
                         uint32_t &generation) {
  LiveCounts *counts = live.batch.counts;
  bool clears = first_thread() == 0;
  find_tight(live);
  wait_for_all(&counts->barrier, generation);
  for (uint32_t round = 0;; round++) {
    uint32_t num_queued = counts->num_queued[round & 1];
    if (num_queued == 0)
      return counts->num_listed;
    judge(live, incoming, round, num_queued);
    wait_for_all(&counts->barrier, generation);
    bool is_spent = (round + 1) * live.cost_of_round +
                        counts->num_read / live.edges_of_message >
                    live.most_cost;
    uint32_t num_expanding = counts->num_expanding[round & 1];
    if (clears) {
      counts->num_rounds = round + 1;
      counts->is_given_up = is_spent;
      counts->num_queued[round & 1] = 0;
      counts->num_expanding[(round + 1) & 1] = 0;
    }
    if (is_spent)
      return NOT_FOUND;
    expand(live, live.batch.sides[0], round, num_expanding);
    wait_for_all(&counts->barrier, generation);
  }
}

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

// Changes rows as a batch says: deletes, then inserts. Where there is no room
// for either, `is_full` says so, and what there was no room for is not done;
// where a listed edge is missing, rows are of no use any more.
extern "C" __global__ void __launch_bounds__(256, 4)
    edit_rows(const __grid_constant__ Batch batch) {
  LiveCounts *counts = batch.counts;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  bool is_full = false;
  bool may_repeat = batch.by_ends && batch.drops_repeats && batch.num_inserts;
  if (batch.by_ends) {
    take_given(batch);
    wait_for_all(&counts->barrier, generation);
  }
  if (may_repeat) {
    enter_inserts(batch);
    wait_for_all(&counts->barrier, generation);
  }
  if (batch.num_deletes > 0 && !counts->are_deleted) {
    for (uint32_t side = 0; side < batch.num_sides; side++)
      find_deleted(batch, side);
    wait_for_all(&counts->barrier, generation);
    if (counts->missing)
      return;
    for (uint32_t side = 0; side < batch.num_sides; side++)
      is_full |= counts->num_removed[side] > batch.most_removed;
    for (uint32_t side = 0; side < batch.num_sides; side++)
      if (is_full)
        fill_holes(batch, side);
      else
        close_holes(batch, side);
    if (is_full) {
      if (first_thread() == 0)
        counts->is_full = 1;
      return;
    }
    wait_for_all(&counts->barrier, generation);
    for (uint32_t side = 0; side < batch.num_sides; side++)
      shorten_rows(batch, side);
    wait_for_all(&counts->barrier, generation);
  }
  if (batch.num_inserts == 0)
    return;
  if (may_repeat) {
    find_repeats(batch);
    wait_for_all(&counts->barrier, generation);
  }
  for (uint32_t side = 0; side < batch.num_sides; side++)
    count_inserts(batch, side);
  wait_for_all(&counts->barrier, generation);
  for (uint32_t side = 0; side < batch.num_sides; side++)
    find_places(batch, side);
  wait_for_all(&counts->barrier, generation);
  for (uint32_t side = 0; side < batch.num_sides; side++)
    is_full |= counts->num_used[side] > batch.sides[side].size;
  for (uint32_t side = 0; side < batch.num_sides; side++) {
    const ChangingRows &rows = batch.sides[side];
    if (!is_full)
      move_rows(batch, side);
    for (uint32_t k = first_thread(); is_full && k < counts->num_grown[side];
         k += num_threads())
      rows.pending[rows.grown[k]] = 0;
  }
  if (is_full) {
    if (first_thread() == 0)
      counts->is_full = 1;
    return;
  }
  wait_for_all(&counts->barrier, generation);
  for (uint32_t side = 0; side < batch.num_sides; side++)
    write_inserts(batch, side);
}

// Gives vertices that nothing holds up any more their states of superstep 0,
// and marks who is to send: what reaches these, and sources of new edges that
// improve their targets.
extern "C" __global__ void __launch_bounds__(256, 4)
    begin_again(const __grid_constant__ Live live) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  if (counts->missing || counts->is_full)
    return;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  for (uint32_t i = first_thread(); i < live.num_words; i += num_threads())
    live.senders[i] = 0;
  unsigned long long edges = 0;
  if (batch.num_deletes > 0) {
    uint32_t num_listed = trim(live, incoming, generation);
    if (num_listed == NOT_FOUND)
      return;
    reset_listed(live, num_listed);
    wait_for_all(&counts->barrier, generation);
    edges += mark_sources(live, incoming, num_listed);
  } else {
    wait_for_all(&counts->barrier, generation);
  }
  edges += mark_improving(live);
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->num_sent_edges, edges);
}

// Brings the order to a fixed point, where those whose keys changed or were
// given back come behind all others; or finds all of it.
extern "C" __global__ void __launch_bounds__(256, 4)
    find_numbers(const __grid_constant__ Live live) {
  if (SIGPS_ADDS)
    return;
  Orders *orders = live.orders;
  const Batch &batch = live.batch;
  uint32_t generation = load_acquire(&orders->barrier.generation);
  bool anew = live.numbers_anew || orders->next > MOST_NUMBER;
  uint32_t next = anew ? 1 : orders->next;
  list_unnumbered(live, anew);
  wait_for_all(&orders->barrier, generation);
  begin_numbers(live, batch.sides[batch.num_sides - 1], next);
  uint32_t first = 0;
  for (;;) {
    wait_for_all(&orders->barrier, generation);
    uint32_t last = orders->num_queued;
    wait_for_all(&orders->barrier, generation);
    next++;
    if (first == last)
      break;
    number_neighbours(live, batch.sides[0], first, last, next);
    first = last;
  }
  if (first_thread() == 0) {
    orders->next = next;
    orders->num_listed = orders->num_queued = 0;
  }
}

// Lists the vertices that have other states than at the fixed point before, and
// takes these for the next time.
extern "C" __global__ void __launch_bounds__(256)
    compare_states_thread_mapped(const __grid_constant__ Live live) {
  for (uint64_t first = first_thread() - lane(); first < live.num_rows;
       first += num_threads()) {
    uint32_t v = uint32_t(first) + lane();
    bool differs = false;
    for (uint32_t i = 0; i < live.num_states && v < live.num_rows; i++)
      if (!are_equal(live.states[i], live.before[i], v, live.bytes[i])) {
        differs = true;
        copy_value(live.before[i], live.states[i], v, live.bytes[i]);
      }
    uint32_t those = __ballot_sync(ALL_LANES, differs);
    if (those == 0)
      continue;
    uint32_t at = 0;
    if (lane() == 0)
      at = atomicAdd(&live.changed[0], uint32_t(__popc(those)));
    at = __shfl_sync(ALL_LANES, at, 0) + __popc(those & ((1u << lane()) - 1));
    if (differs)
      live.changed[1 + at] = v;
  }
}
