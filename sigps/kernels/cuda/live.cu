// What a monotone program needs to go on from rows of edges that changed
// (`changing_rows.cuh`; engine/gpu/live.py): vertices that lost what their keys
// came from are found; those that send again are marked. Of no program's
// functions: a message is its sender's key, and the edge's number added to it
// where SIGPS_ADDS.
//
// Schedule: `edit_rows` and `begin_again` are cooperative launches, of phases
// with a barrier between; how many blocks there are does not matter, if they
// fit (four on a multiprocessor do). Rows of many edges are read by a block
// each, others by a warp.
//
// Macros: SIGPS_KEY, a type; SIGPS_TAKES_MIN; SIGPS_ADDS; those of
// `changing_rows.cuh`.

#include "ascending_rows.cuh"
#include "given_edges.cuh"
#include "live.cuh"

using namespace sigps;

// Finds places for all rows, one after another by 32, with room for one part in
// so many more edges; `begins` have `count` numbers, of which those of no row
// are any.
extern "C" __global__ void __launch_bounds__(256)
    make_room_thread_mapped(uint32_t num_rows, uint32_t count,
                            const uint32_t *degrees, uint32_t slack,
                            uint64_t *begins, uint32_t *room,
                            unsigned long long *used) {
  for (uint64_t base = first_thread() - lane(); base < count;
       base += num_threads()) {
    uint32_t v = uint32_t(base) + lane();
    uint32_t places = v < num_rows ? degrees[v] + degrees[v] / slack : 0;
    uint64_t begin = take_places(used, places);
    if (v < count)
      begins[v] = begin;
    if (v < num_rows)
      room[v] = places;
  }
}

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

// Takes the edges of a batch that lies in the memory of the GPU.
extern "C" __global__ void __launch_bounds__(256)
    take_edges_thread_mapped(const __grid_constant__ GivenEdges given) {
  take_edges(given);
}

// Changes rows as a batch says: deletes, then inserts. Where there is no room
// for either, `is_full` says so, and what there was no room for is not done;
// where a listed edge is missing, rows are of no use any more.
extern "C" __global__ void __launch_bounds__(256, 4)
    edit_rows(const __grid_constant__ Batch batch) {
  LiveCounts *counts = batch.counts;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  bool is_full = false;
  if (batch.by_ends)
    take_given(batch);
  if (batch.num_deletes > 0 && !counts->are_deleted) {
    on_all_sides(batch, generation,
                 [&](uint32_t side) { list_rows(batch, DELETES, side, true); });
    on_all_sides(batch, generation, [&](uint32_t side) {
      divide_rows(batch, DELETES, side, true);
    });
    on_all_sides(batch, generation,
                 [&](uint32_t side) { enter_edges(batch, DELETES, side); });
    on_all_sides(batch, generation,
                 [&](uint32_t side) { find_deleted(batch, side); });
    if (!batch.by_ends) {
      on_all_sides(batch, generation,
                   [&](uint32_t side) { count_missing(batch, side); });
      if (counts->missing)
        return;
    }
    for (uint32_t side = 0; side < batch.num_sides; side++)
      is_full |= counts->num_removed[side] > batch.most_removed;
    on_all_sides(batch, generation, [&](uint32_t side) {
      if (is_full)
        fill_holes(batch, side);
      else if (are_ordered(batch, side))
        close_up_rows(batch, side);
      else
        close_holes(batch, side);
    });
    if (is_full) {
      if (first_thread() == 0)
        counts->is_full = 1;
      return;
    }
    on_all_sides(batch, generation,
                 [&](uint32_t side) { shorten_rows(batch, side); });
  }
  if (batch.num_inserts == 0)
    return;
  bool may_repeat = batch.by_ends && batch.drops_repeats;
  on_all_sides(batch, generation, [&](uint32_t side) {
    list_rows(batch, INSERTS, side, may_repeat && side == 0);
  });
  for (uint32_t side = 0; side < batch.num_sides; side++)
    divide_rows(batch, INSERTS, side, may_repeat && side == 0);
  if (may_repeat) {
    wait_for_all(&counts->barrier, generation);
    enter_edges(batch, INSERTS, 0);
    wait_for_all(&counts->barrier, generation);
    find_repeats(batch);
    wait_for_all(&counts->barrier, generation);
  }
  on_all_sides(batch, generation,
               [&](uint32_t side) { find_places(batch, side); });
  for (uint32_t side = 0; side < batch.num_sides; side++)
    is_full |= counts->num_used[side] > batch.sides[side].size;
  on_all_sides(batch, generation, [&](uint32_t side) {
    if (is_full)
      forget_rows(batch, side);
    else
      put_edges(batch, side);
  });
  if (is_full) {
    if (first_thread() == 0)
      counts->is_full = 1;
    return;
  }
  for (uint32_t side = 0; side < batch.num_sides; side++)
    settle_long_rows(batch, side);
  if (SIGPS_ORDERED) {
    wait_for_all(&counts->barrier, generation);
    for (uint32_t side = 0; side < batch.num_sides; side++)
      if (are_ordered(batch, side))
        merge_tails(batch, side);
  }
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
  next = number_on(live, 0, next, generation);
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
