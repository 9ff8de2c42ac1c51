// Phases in which the rows that a batch touches change (changing_rows.cuh):
// edges are deleted, inserted and moved.
//
// An edge that is deleted leaves a hole, which the row's last fills; one that
// is inserted goes behind the row's last. Rows that ascend are closed up
// instead, and new edges brought to their places (ascending_rows.cuh).
//
// The rows that a batch touches are listed, each once, with its edges of the
// batch. These stand in a hash table of the row's own, so that each edge of a
// touched row is looked at once, however many of them the batch changes: tables
// of rows that a warp reads are near each other. Of parallel edges to insert
// that are the same the first goes in.
//
// Schedule: each function is a phase of a cooperative launch, with a barrier
// behind it. A warp takes up to 32 short rows at a time, as if they were one,
// or a part of a long one.
//
// Macros: those of `changing_rows.cuh`.

#pragma once

#include "changing_rows.cuh"

namespace sigps {
namespace {

constexpr uint32_t HOLE = ~0u;
constexpr uint32_t MOVES = 1u << 31;       // beside the edges that a row gets
constexpr uint32_t PER_LANE = 4;           // edges that a lane reads at once
constexpr unsigned long long FREE = ~0ull; // of a table
constexpr uint32_t MOVED_SLACK = 8, MOVED_ROOM = 4; // room of a row that moves
constexpr uint32_t LONG = 1u << 31; // beside a row that is taken in parts
constexpr uint32_t DELETES = 0, INSERTS = 2; // of counters of touched rows

__device__ inline uint64_t room_for(uint32_t degree) {
  return uint64_t(degree) + degree / MOVED_SLACK + MOVED_ROOM;
}

// Edges that a batch deletes from a side, or inserts there.
struct SideEdges {
  const uint32_t *rows, *ends;
  uint32_t count;
};

__device__ inline SideEdges edges_of(const Batch &batch, uint32_t kind,
                                     uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  return kind == INSERTS
             ? SideEdges{rows.new_rows, rows.new_ends, batch.num_inserts}
             : SideEdges{rows.deleted_rows, rows.deleted_ends,
                         batch.num_deletes};
}

// Does what a phase does on all sides, and waits for all blocks.
template <class Phase>
__device__ inline void on_all_sides(const Batch &batch, uint32_t &generation,
                                    Phase phase) {
  for (uint32_t side = 0; side < batch.num_sides; side++)
    phase(side);
  wait_for_all(&batch.counts->barrier, generation);
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
}

// Lists the rows that a batch deletes from, or inserts into, and counts these
// edges of each. Empties tables for them.
__device__ void list_rows(const Batch &batch, uint32_t kind, uint32_t side,
                          bool has_tables) {
  const ChangingRows &rows = batch.sides[side];
  SideEdges edges = edges_of(batch, kind, side);
  for (uint64_t base = first_thread() - lane(); base < edges.count;
       base += num_threads()) {
    uint32_t i = uint32_t(base) + lane(), row = 0;
    bool is_first = false;
    if (i < edges.count && !(kind == INSERTS && is_left_out(batch, i))) {
      row = edges.rows[i];
      is_first = atomicAdd(&rows.pending[row], 1u) == 0;
    }
    uint32_t at =
        take_places(&batch.counts->num_touched[kind + side], is_first);
    if (is_first) {
      rows.touched[at] = row;
      rows.taken[row] = at;
    }
  }
  for (uint64_t k = first_thread(); has_tables && k < 2 * uint64_t(edges.count);
       k += num_threads())
    rows.slots[k] = FREE;
  for (uint32_t j = first_thread();
       kind == DELETES && !batch.by_ends && j < edges.count; j += num_threads())
    rows.wanted[j] = 0;
}

// Finds places for the tables of touched rows, and divides long rows.
__device__ void divide_rows(const Batch &batch, uint32_t kind, uint32_t side,
                            bool has_tables) {
  const ChangingRows &rows = batch.sides[side];
  LiveCounts *counts = batch.counts;
  uint32_t count = counts->num_touched[kind + side];
  for (uint64_t base = first_thread() - lane(); base < count;
       base += num_threads()) {
    uint32_t k = uint32_t(base) + lane(), row = 0, num_edges = 0, length = 0;
    if (k < count) {
      row = rows.touched[k];
      num_edges = rows.counts[k] = rows.pending[row];
      length = rows.degrees[row] + (kind == INSERTS ? num_edges : 0);
      if (kind == DELETES)
        rows.pending[row] = 0;
    }
    if (has_tables) {
      uint64_t begin =
          take_places(&counts->num_slots[kind + side], 2 * num_edges);
      if (k < count)
        rows.places[k] = begin;
    }
    uint32_t num_parts = length > PART ? (length - 1) / PART + 1 : 0;
    uint32_t at = take_places(&counts->num_parts[kind + side], num_parts);
    for (uint32_t p = 0; p < num_parts; p++)
      rows.parts[at + p] = uint64_t(k) << 32 | p * PART;
    if (num_parts != 0)
      rows.touched[k] = row | LONG;
  }
}

// Where the search for an end begins in a table.
__device__ inline uint32_t slot_of(uint32_t end, uint32_t size) {
  return uint32_t(uint64_t(end * 0x9E3779B9u) * size >> 32);
}

__device__ void leave_out(const Batch &batch, uint32_t i) {
  if (atomicExch(&batch.left_out[i], 1u) != 0)
    return;
  for (uint32_t side = 0; side < batch.num_sides; side++)
    atomicAdd(&batch.sides[side].pending[batch.sides[side].new_rows[i]], ~0u);
}

// Enters edges of a batch in the tables of their rows: of those to insert that
// are the same the first.
__device__ void enter_edges(const Batch &batch, uint32_t kind, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  SideEdges edges = edges_of(batch, kind, side);
  bool by_weight = SIGPS_COLUMNS && kind == DELETES && !batch.by_ends;
  for (uint32_t i = first_thread(); i < edges.count; i += num_threads()) {
    if (kind == INSERTS && batch.left_out[i])
      continue;
    uint32_t k = rows.taken[edges.rows[i]], end = edges.ends[i];
    uint32_t size = 2 * rows.counts[k], at = slot_of(end, size);
    unsigned long long *table = rows.slots + rows.places[k];
    unsigned long long edge = uint64_t(end) << 32 | i, there;
    for (;; at = at + 1 < size ? at + 1 : 0) {
      there = atomicCAS(&table[at], FREE, edge);
      if (there == FREE ||
          (uint32_t(there >> 32) == end &&
           (!by_weight || batch.deleted_weights[uint32_t(there)] ==
                              batch.deleted_weights[i])))
        break;
    }
    if (kind == INSERTS && there != FREE)
      leave_out(batch, max(i, uint32_t(atomicMin(&table[at], edge))));
    if (kind == DELETES && !batch.by_ends)
      atomicAdd(&rows.wanted[there == FREE ? i : uint32_t(there)], 1u);
  }
}

// The edge of the batch in the table of a touched row that an edge at a place
// of the row is the same as; FREE if there is none.
__device__ inline unsigned long long
find_edge(const Batch &batch, uint32_t kind, const ChangingRows &rows,
          uint32_t k, uint32_t end, uint64_t place) {
  uint32_t size = 2 * rows.counts[k], at = slot_of(end, size);
  const unsigned long long *table = rows.slots + rows.places[k];
  for (;; at = at + 1 < size ? at + 1 : 0) {
    unsigned long long there = table[at];
    if (there == FREE ||
        (uint32_t(there >> 32) == end &&
         (kind == INSERTS || batch.by_ends || !SIGPS_COLUMNS ||
          rows.weights[place] == batch.deleted_weights[uint32_t(there)])))
      return there;
  }
}

// A touched row whose edges are visited: where it lies, and what `visit` is
// told of it.
template <class Told> struct OpenRow {
  uint64_t begin;
  uint32_t degree;
  Told told;
};

// Row k of the touched as it is; `visit` is told k.
__device__ inline OpenRow<uint32_t> row_as_it_is(const ChangingRows &rows,
                                                 uint32_t k) {
  uint32_t row = rows.touched[k] & ~LONG;
  return {rows.begins[row], rows.degrees[row], k};
}

// How many short rows a warp takes at a time, a power of two: as few as make no
// more than so many tasks for each warp, since a row has up to PART edges.
constexpr uint32_t TASKS_OF_WARP = 4;

__device__ inline uint32_t rows_of_warp(uint32_t count) {
  uint32_t width = 1;
  while (width < 32 && TASKS_OF_WARP * width * num_warps() < count)
    width *= 2;
  return width;
}

// Calls `open(k)`, which returns an OpenRow, for touched rows, and then
// `visit(is_one, told, i, place, end)` for their edges: for edge i of a row,
// which stands at a place. A short row is opened once, by the warp that visits
// its edges, a long one by all lanes for each part. All lanes of a warp call
// `visit` together; `is_one` is false where there is no edge for a lane.
template <class Open, class Visit>
__device__ void visit_edges(const Batch &batch, uint32_t kind, uint32_t side,
                            Open open, Visit visit) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[kind + side];
  uint32_t num_parts = batch.counts->num_parts[kind + side];
  for (uint32_t p = first_warp(); p < num_parts; p += num_warps()) {
    uint32_t skipped = uint32_t(rows.parts[p]);
    auto row = open(uint32_t(rows.parts[p] >> 32));
    uint32_t stop = min(row.degree, skipped + PART);
    for (uint32_t first = skipped; first < stop; first += 32 * PER_LANE) {
      uint32_t ends[PER_LANE];
#pragma unroll
      for (uint32_t n = 0; n < PER_LANE; n++) {
        uint32_t i = first + 32 * n + lane();
        ends[n] = i < stop ? rows.ends[row.begin + i] : HOLE;
      }
#pragma unroll
      for (uint32_t n = 0; n < PER_LANE; n++) {
        uint32_t i = first + 32 * n + lane();
        visit(i < stop, row.told, i, row.begin + i, ends[n]);
      }
    }
  }
  uint32_t width = rows_of_warp(count);
  for (uint64_t base = uint64_t(first_warp()) * width; base < count;
       base += uint64_t(num_warps()) * width) {
    uint64_t k = base + lane();
    decltype(open(0u)) row{};
    if (lane() < width && k < count && !(rows.touched[k] & LONG))
      row = open(uint32_t(k));
    uint32_t stop = sum_up_to(row.degree);
    uint32_t total = __shfl_sync(ALL_LANES, stop, 31);
    uint32_t shift = row.degree - stop; // from the warp's edges to the row's
    for (uint32_t first = 0; first < total; first += 32 * PER_LANE) {
      decltype(row.told) told[PER_LANE];
      uint32_t of_row[PER_LANE], ends[PER_LANE];
      uint64_t places[PER_LANE];
#pragma unroll
      for (uint32_t n = 0; n < PER_LANE; n++) {
        uint32_t e = first + 32 * n + lane(), owner = 0;
#pragma unroll
        for (uint32_t step = 16; step > 0; step /= 2)
          if (__shfl_sync(ALL_LANES, stop, owner + step - 1) <= e)
            owner += step;
        told[n] = __shfl_sync(ALL_LANES, row.told, owner);
        of_row[n] = e + __shfl_sync(ALL_LANES, shift, owner);
        places[n] = __shfl_sync(ALL_LANES, row.begin, owner) + of_row[n];
        ends[n] = e < total ? rows.ends[places[n]] : HOLE;
      }
#pragma unroll
      for (uint32_t n = 0; n < PER_LANE; n++)
        visit(first + 32 * n + lane() < total, told[n], of_row[n], places[n],
              ends[n]);
    }
  }
}

// Leaves out edges to insert that are there already.
__device__ void find_repeats(const Batch &batch) {
  const ChangingRows &rows = batch.sides[0];
  visit_edges(
      batch, INSERTS, 0, [&](uint32_t k) { return row_as_it_is(rows, k); },
      [&](bool is_one, uint32_t k, uint32_t, uint64_t place, uint32_t end) {
        if (!is_one)
          return;
        unsigned long long found =
            find_edge(batch, INSERTS, rows, k, end, place);
        if (found != FREE)
          leave_out(batch, uint32_t(found));
      });
}

// Finds places for rows that outgrow their room, and so for new edges: behind
// the row's last.
__device__ void find_places(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[INSERTS + side];
  for (uint64_t base = first_thread() - lane(); base < count;
       base += num_threads()) {
    uint32_t k = uint32_t(base) + lane(), row = 0, added = 0, before = 0;
    uint64_t wanted = 0;
    if (k < count) {
      row = rows.touched[k] & ~LONG;
      added = rows.pending[row];
      before = rows.degrees[row];
      uint32_t size = before + added;
      wanted = size > rows.room[row] ? room_for(size) : 0;
    }
    uint64_t place = take_places(&batch.counts->num_used[side], wanted);
    if (k < count) {
      rows.counts[k] = wanted != 0 ? added | MOVES : added;
      rows.places[k] = (wanted != 0 ? place : rows.begins[row]) + before;
    }
  }
}

// Lets go of the rows that inserts touch.
__device__ void forget_rows(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[INSERTS + side];
  for (uint32_t k = first_thread(); k < count; k += num_threads())
    rows.pending[rows.touched[k] & ~LONG] = 0;
}

// Notes where row k of the touched is from now on, and how many edges it has
// with its new ones.
__device__ inline void settle_row(const Batch &batch, uint32_t side, uint32_t k,
                                  uint32_t before) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t row = rows.touched[k] & ~LONG, added = rows.counts[k];
  uint32_t degree = before + (added & ~MOVES);
  if (added & MOVES) {
    rows.begins[row] = rows.places[k] - before;
    rows.room[row] = uint32_t(room_for(degree));
  }
  rows.degrees[row] = degree;
  if (side == 0 && before <= batch.hub_degree && degree > batch.hub_degree)
    atomicAdd(&batch.counts->more_hubs, 1u);
}

// Copies rows that move to their places, and puts new edges behind the last of
// all rows. Who opens a short row settles it, since nobody else reads what that
// writes; long ones stay as they were before.
__device__ void put_edges(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  visit_edges(
      batch, INSERTS, side,
      [&](uint32_t k) {
        OpenRow<uint64_t> opened{}; // no edges, if it does not move
        uint32_t row = rows.touched[k] & ~LONG;
        bool is_short = rows.touched[k] == row, moves = rows.counts[k] & MOVES;
        if (!is_short && !moves)
          return opened;
        uint32_t before = rows.degrees[row];
        if (moves)
          opened = {rows.begins[row], before, rows.places[k] - before};
        if (is_short)
          settle_row(batch, side, k, before);
        return opened;
      },
      [&](bool is_one, uint64_t to, uint32_t i, uint64_t place, uint32_t end) {
        if (!is_one)
          return;
        rows.ends[to + i] = end;
        if (SIGPS_COLUMNS)
          rows.weights[to + i] = rows.weights[place];
      });
  uint32_t added = 0;
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    if (is_left_out(batch, i))
      continue;
    uint32_t row = rows.new_rows[i];
    uint64_t at =
        rows.places[rows.taken[row]] + atomicAdd(&rows.pending[row], ~0u) - 1;
    rows.ends[at] = rows.new_ends[i];
    if (SIGPS_COLUMNS)
      rows.weights[at] = batch.new_weights[i];
    added++;
  }
  added = uint32_t(sum_of_warp(added));
  if (side == 0 && lane() == 0 && added != 0)
    atomicAdd(&batch.counts->num_added, added);
}

// Settles long rows, of which no part is read any more.
__device__ void settle_long_rows(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t num_parts = batch.counts->num_parts[INSERTS + side];
  for (uint32_t p = first_thread(); p < num_parts; p += num_threads()) {
    uint32_t k = uint32_t(rows.parts[p] >> 32);
    if (uint32_t(rows.parts[p]) == 0)
      settle_row(batch, side, k, rows.degrees[rows.touched[k] & ~LONG]);
  }
}

// Makes holes of edges between the ends of deleted ones; of listed ones as many
// as are listed. Where there is no room to note one it stays, and is counted.
// Each lane keeps one until some lane finds another.
__device__ void find_deleted(const Batch &batch, uint32_t side) {
  const ChangingRows &rows = batch.sides[side];
  uint32_t count = batch.counts->num_touched[DELETES + side];
  for (uint32_t k = first_thread(); k < count; k += num_threads())
    rows.taken[rows.touched[k] & ~LONG] = 0;
  bool is_kept = false;
  uint32_t row = 0, at_row = 0, gone = 0;
  uint64_t kept_place = 0;
  auto note_kept = [&] {
    uint32_t at = take_places(&batch.counts->num_removed[side], is_kept);
    if (is_kept && at < batch.most_removed) {
      rows.ends[kept_place] = HOLE;
      rows.holes[at] = at_row;
      rows.hole_rows[at] = row;
      rows.hole_ends[at] = gone;
      if (SIGPS_COLUMNS && side == 0)
        batch.hole_weights[at] = rows.weights[kept_place];
      atomicAdd(&rows.pending[row], 1u);
    }
    is_kept = false;
  };
  visit_edges(
      batch, DELETES, side, [&](uint32_t k) { return row_as_it_is(rows, k); },
      [&](bool is_one, uint32_t k, uint32_t i, uint64_t place, uint32_t end) {
        unsigned long long found = FREE;
        if (is_one)
          found = find_edge(batch, DELETES, rows, k, end, place);
        bool goes = found != FREE;
        if (goes && !batch.by_ends)
          goes = int32_t(atomicAdd(&rows.wanted[uint32_t(found)], ~0u)) > 0;
        if (__ballot_sync(ALL_LANES, goes && is_kept) != 0)
          note_kept();
        if (goes) {
          is_kept = true;
          row = rows.touched[k] & ~LONG;
          at_row = i, gone = end, kept_place = place;
        }
      });
  note_kept();
}

// Counts listed edges that are not there.
__device__ void count_missing(const Batch &batch, uint32_t side) {
  for (uint32_t j = first_thread(); j < batch.num_deletes; j += num_threads())
    if (int32_t(batch.sides[side].wanted[j]) > 0)
      atomicAdd(&batch.counts->missing, 1u);
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
  uint32_t count = batch.counts->num_touched[DELETES + side];
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t row = rows.touched[k] & ~LONG, before = rows.degrees[row];
    uint32_t degree = before - rows.pending[row];
    rows.degrees[row] = degree;
    rows.pending[row] = 0;
    if (side == 0 && before > batch.hub_degree && degree <= batch.hub_degree)
      atomicAdd(&batch.counts->fewer_hubs, 1u);
  }
}

} // namespace
} // namespace sigps
