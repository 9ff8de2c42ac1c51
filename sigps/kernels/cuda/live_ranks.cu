// What `live.cu` has for a monotone program on one GPU, for several that write
// into each other's memory (engine/gpu/live_ranks.py): each has the rows of its
// own vertices, and the keys of others as ghosts. Ranks meet within launches
// (meeting.cuh); what is written into another's memory is read there after
// that.
//
// Schedule: kernels `..._among_ranks` are cooperative launches, of phases with
// a barrier between, of all ranks at once.
//
// Macros: those of `trimming.cuh`.

#include "live.cuh"
#include "meeting.cuh"

using namespace sigps;

// In the place of `begin_again`: each rank trims until it finds nothing more,
// first what deleted edges held up, then what ghosts held up that their owners
// trimmed, until nobody has any. Then states are given back, and who is to send
// to vertices of this rank is marked, ghosts among them: these need not be
// told, since others have read what they send. Where one rank has a reason not
// to go on, `everywhere` has it, and nothing is marked.
extern "C" __global__ void __launch_bounds__(256, 4)
    go_on_among_ranks(const __grid_constant__ Live live, uint32_t states) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  Everywhere &all = counts->everywhere;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  auto facts = [&] { return facts_of(live, states); };
  // Then others' keys and those of new ghosts are here.
  if (!meet(live, counts->barrier, generation, all, facts) || all.states)
    return;
  uint32_t num_rounds = 0;
  if (live.has_deletes &&
      !trim_together(live, incoming, generation, num_rounds, facts))
    return;
  for (uint32_t i = first_thread(); i < live.num_words; i += num_threads())
    live.senders[i] = 0;
  reset_listed(live, counts->num_listed);
  reset_told(live);
  wait_for_all(&counts->barrier, generation);
  unsigned long long edges = mark_sources(live, incoming, counts->num_listed);
  edges += mark_improving(live);
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->num_sent_edges, edges);
  meet(live, counts->barrier, generation, all, facts);
  if (first_thread() == 0)
    all.num_rounds = num_rounds;
}

// In the place of `find_numbers`, before rows change: lists vertices that have
// no number, numbers what it can of them, and numbers on from ghosts that their
// owners numbered, until nobody has any.
extern "C" __global__ void __launch_bounds__(256, 4)
    number_among_ranks(const __grid_constant__ Live live) {
  if (SIGPS_ADDS)
    return;
  Orders *orders = live.orders;
  Meetings &meetings = *live.meetings;
  Everywhere &all = meetings.everywhere;
  const Batch &batch = live.batch;
  uint32_t generation = load_acquire(&orders->barrier.generation);
  bool anew = live.numbers_anew || orders->next > MOST_NUMBER;
  uint32_t next = anew ? 1 : orders->next;
  auto facts = [&] {
    RankFacts facts{};
    facts.next = next;
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      facts.num_told[rank] = orders->num_told[rank];
    return facts;
  };
  if (!meet(live, orders->barrier, generation, all, facts))
    return; // nobody reads numbers any more
  for (uint32_t v = first_thread(); v < live.num_lids; v += num_threads()) {
    if (anew)
      live.numbers[v] = NO_NUMBER;
    else if (v >= live.num_rows || live.numbers[v] != NO_NUMBER)
      continue;
    if (v >= live.num_rows)
      continue;
    live.listed[atomicAdd(&orders->num_listed, 1u)] = v;
    for_ghosts_of(live, v,
                  [&](uint32_t, const GhostsThere &there, uint32_t lid) {
                    there.numbers[lid] = NO_NUMBER;
                  });
  }
  if (!meet(live, orders->barrier, generation, all, facts))
    return;
  begin_numbers(live, batch.sides[batch.num_sides - 1], next);
  next = number_on(live, 0, next, generation);
  for (;;) {
    if (!meet(live, orders->barrier, generation, all, facts))
      return;
    next = all.next;
    if (!all.has_told)
      break;
    uint32_t first = orders->num_queued;
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      for (uint32_t k = meetings.told_first[rank] + first_thread();
           k < meetings.told_last[rank]; k += num_threads())
        live.numbers[live.told[k]] = live.told_numbers[k];
    wait_for_all(&orders->barrier, generation); // all know where it begins
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      number_neighbours(
          live, batch.sides[0], live.told + meetings.told_first[rank],
          meetings.told_last[rank] - meetings.told_first[rank], next);
    next = number_on(live, first, next, generation);
  }
  if (first_thread() != 0)
    return;
  orders->next = next;
  orders->num_listed = orders->num_queued = 0;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    orders->num_told[rank] = 0;
}

// Tells the other ranks the keys of vertices that they have as ghosts, where
// these are others than at the fixed point before; `tells_all`: of all, and
// what superstep 0 left.
extern "C" __global__ void __launch_bounds__(256)
    tell_keys_thread_mapped(const __grid_constant__ Live live,
                            uint32_t tells_all) {
  const Key *now = static_cast<const Key *>(live.states[live.key]);
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    const GhostsThere there = live.ghosts_there[rank];
    uint32_t begin = live.slot_bounds[rank];
    for (uint32_t slot = begin + first_thread();
         slot < live.slot_bounds[rank + 1]; slot += num_threads()) {
      uint32_t v = live.slots[slot];
      if (v == NOT_FOUND || (!tells_all && now[v] == live.keys[v]))
        continue;
      uint32_t lid = lid_there(there, slot - begin);
      there.keys[lid] = now[v];
      if (!tells_all)
        continue;
      there.first_keys[lid] = first_key_of(live, v);
      there.sent[lid] = live.sent[v];
    }
  }
}

// Before rows change: see `take_slots`.
extern "C" __global__ void __launch_bounds__(256)
    take_slots_thread_mapped(const __grid_constant__ Live live) {
  take_slots(live);
}

// Takes the keys of a fixed point; those that are others lose their numbers.
extern "C" __global__ void __launch_bounds__(256)
    take_keys_thread_mapped(const __grid_constant__ Live live) {
  const Key *now = static_cast<const Key *>(live.states[live.key]);
  for (uint32_t v = first_thread(); v < live.num_rows; v += num_threads()) {
    if (now[v] == live.keys[v])
      continue;
    live.keys[v] = now[v];
    if (!SIGPS_ADDS)
      live.numbers[v] = NO_NUMBER;
  }
}
