// What `arrivals.cu` has for one GPU, for several that write into each other's
// memory (engine/gpu/arrivals_ranks.py): each has the rows of its own vertices,
// and the levels of others as ghosts. Ranks meet within the launch
// (meeting.cuh) once a step, in which each passes the edges that end in its
// vertices, of ghosts too, whose owners told that they got a level.
//
// Schedule: `settle_among_ranks` is a cooperative launch, of phases with a
// barrier between, of all ranks at once.
//
// Macros: those of `arrivals.cuh`.

#include "arrivals.cuh"
#include "meeting.cuh"

using namespace sigps;

namespace {

// Lets ghosts that their owners trimmed be without a level.
__device__ void forget_trimmed(const Live &live) {
  const Meetings &meetings = *live.meetings;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    for (uint32_t k = meetings.told_begins[rank] + first_thread();
         k < meetings.told_last[rank]; k += num_threads()) {
      live.keys[live.told[k]] = NO_LEVEL;
      live.fates[live.told[k]] = UNSEEN;
    }
}

// Lets the next meeting be about who got a level. By one thread.
__device__ void tell_of_levels(const Live &live) {
  Meetings &meetings = *live.meetings;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    meetings.trimmed_last[rank] = meetings.told_last[rank];
    meetings.told_last[rank] = meetings.told_begins[rank];
  }
  meetings.num_told = 0;
}

// What a rank tells in a step: how many have the next level, what waits, edges.
__device__ RankFacts facts_of_step(const Live &live, uint32_t place) {
  const LiveCounts &counts = *live.batch.counts;
  RankFacts facts{};
  facts.num_listed = counts.of_step[place];
  facts.next = counts.next_level[place];
  facts.num_sent_edges = counts.step_edges[place];
  facts.num_rounds = counts.num_rounds;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    facts.num_told[rank] = counts.num_passed[rank];
  return facts;
}

// Takes all steps; returns how many vertices are in `lowered_of`, or NOT_FOUND
// where it cost too much, or a rank did not come. `cost`: so far, in and out.
__device__ uint32_t take_steps(const Live &live, uint32_t &generation,
                               unsigned long long &cost,
                               unsigned long long &edges, uint32_t &steps) {
  LiveCounts *counts = live.batch.counts;
  Everywhere &all = counts->everywhere;
  uint32_t first = 0, last = 0, num_begun = counts->num_begun, place = 0;
  uint32_t now = 0;
  for (uint32_t step = 0;; step++) {
    auto facts = [&] { return facts_of_step(live, place); };
    if (!meet(live, counts->barrier, generation, all, facts))
      return NOT_FOUND;
    uint32_t count = counts->of_step[place];
    edges += all.num_sent_edges;
    cost += step == 0 ? 0 : live.cost_of_round + all.num_sent_edges;
    first = last;
    last += count;
    now = all.num_listed != 0 ? now + 1 : ~all.next - 1;
    bool is_over = all.num_listed == 0 && all.next == 0;
    steps = step;
    if (is_over || cost > live.most_cost)
      return is_over ? last : NOT_FOUND;
    place = (step + 1) % 3;
    if (first_thread() == 0) {
      uint32_t other = (step + 2) % 3;
      counts->of_step[other] = counts->next_level[other] = 0;
      counts->step_edges[other] = 0;
    }
    take_step(live, first, last, now, num_begun, place);
  }
}

// Takes the levels that vertices have now for those of before.
__device__ void note_levels(const Live &live, const uint32_t *of,
                            uint32_t count) {
  for (uint32_t k = first_thread(); k < count; k += num_threads())
    live.numbers[of[k]] = live.keys[of[k]];
}

} // namespace

// In the place of `settle_arrivals`. Where one rank has a reason not to go on,
// `everywhere` has it, and nobody computes.
extern "C" __global__ void __launch_bounds__(256, 4)
    settle_among_ranks(const __grid_constant__ Live live, uint32_t states) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  Everywhere &all = counts->everywhere;
  Meetings &meetings = *live.meetings;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  auto facts = [&] { return facts_of(live, states); };
  auto give_up = [&] {
    if (first_thread() == 0) {
      counts->is_given_up = 1;
      all.states |= GIVEN_UP;
    }
  };
  // Then others' levels and those of new ghosts are here.
  if (!meet(live, counts->barrier, generation, all, facts) || all.states)
    return;
  uint32_t num_rounds = 0, num_steps = 0;
  unsigned long long reads = 0;
  if (live.has_deletes) {
    if (!trim_together(live, incoming, generation, num_rounds, facts))
      return;
    reads = all.num_read / live.edges_of_message;
  }
  uint32_t num_listed = counts->num_listed;
  uint32_t stamp = live.stamp + counts->num_rounds + 1;
  unsigned long long cost = num_rounds * live.cost_of_round + reads, edges = 0;
  pull_levels(live, incoming, num_listed, stamp);
  wait_for_all(&counts->barrier, generation);
  lower_targets(live, stamp);
  wait_for_all(&counts->barrier, generation);
  note_begun(live, num_listed);
  forget_trimmed(live);
  wait_for_all(&counts->barrier, generation);
  if (first_thread() == 0)
    tell_of_levels(live); // before the last block comes to the next meeting
  uint32_t num_lowered = take_steps(live, generation, cost, edges, num_steps);
  if (num_lowered == NOT_FOUND) {
    give_up();
    return;
  }
  unsigned long long read =
      list_again(live, incoming, num_lowered, num_listed, stamp + 1);
  read = sum_of_warp(read);
  if (lane() == 0 && read != 0)
    atomicAdd(&counts->num_read, read);
  auto last_facts = [&] {
    RankFacts facts{};
    facts.num_listed = counts->num_again;
    facts.num_added = counts->num_added;
    facts.num_removed = counts->num_removed[0];
    facts.num_read = counts->num_read;
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      facts.num_told[rank] = counts->num_passed[rank];
    return facts;
  };
  if (!meet(live, counts->barrier, generation, all, last_facts))
    return;
  if (cost - reads + all.num_read / live.edges_of_message > live.most_cost) {
    give_up();
    return;
  }
  note_levels(live, lowered_of(live), num_lowered);
  note_levels(live, live.listed, num_listed);
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    uint32_t begin = meetings.told_begins[rank];
    note_levels(live, live.told_numbers + begin,
                meetings.told_last[rank] - begin);
    note_levels(live, live.told + begin, meetings.trimmed_last[rank] - begin);
  }
  if (first_thread() == 0) {
    all.num_rounds = num_rounds + num_steps;
    all.num_sent_edges = edges;
  }
}

// Takes the levels of a full run, and tells them the ranks that have ghosts.
extern "C" __global__ void __launch_bounds__(256)
    tell_levels_thread_mapped(const __grid_constant__ Live live) {
  for (uint32_t v = first_thread(); v < live.num_lids; v += num_threads()) {
    live.fates[v] = UNSEEN;
    if (v < live.num_rows)
      live.keys[v] = live.numbers[v] = kept_level(live, v);
  }
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    const GhostsThere there = live.ghosts_there[rank];
    uint32_t begin = live.slot_bounds[rank];
    for (uint32_t slot = begin + first_thread();
         slot < live.slot_bounds[rank + 1]; slot += num_threads()) {
      uint32_t v = live.slots[slot];
      if (v == NOT_FOUND)
        continue;
      uint32_t lid = lid_there(there, slot - begin);
      there.keys[lid] = there.numbers[lid] = kept_level(live, v);
      there.sent[lid] = live.sent[v];
    }
  }
}

// Before rows change: see `take_slots`.
extern "C" __global__ void __launch_bounds__(256)
    take_slots_thread_mapped(const __grid_constant__ Live live) {
  take_slots(live);
}
