// Where ranks meet within a launch, each in a cooperative one of its own GPU:
// what any of them wrote before, into the memory of others too, is there when
// it is over, and each knows some numbers of all. The host takes no part.
//
// A number crosses as halves of 32 bits, beside which stands the number of the
// meeting, so none needs a flag. They have two places by turns: nobody comes to
// the meeting after next before all have left this one.

#pragma once

#include "all_gpus.cuh"
#include "trimming.cuh"

namespace sigps {
namespace {

constexpr uint32_t FACT_HALVES = sizeof(RankFacts) / 4;

// Adds up what ranks told. By one thread.
__device__ void add_up(const Live &live, Everywhere &all) {
  Meetings &meetings = *live.meetings;
  uint32_t num_told = 0;
  all.states = all.num_rounds = all.num_listed = all.next = 0;
  all.num_added = all.num_removed = 0;
  all.num_read = all.num_sent_edges = 0;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    const RankFacts &facts = meetings.of_ranks[rank];
    all.states |= facts.states;
    all.num_rounds =
        max(all.num_rounds, facts.num_rounds - meetings.num_rounds[rank]);
    meetings.num_rounds[rank] = facts.num_rounds;
    all.num_listed += facts.num_listed;
    all.next = max(all.next, facts.next);
    all.num_added += facts.num_added;
    all.num_removed += facts.num_removed;
    all.num_read += facts.num_read;
    all.num_sent_edges += facts.num_sent_edges;
    for (uint32_t to = 0; to < live.num_ranks; to++)
      num_told += facts.num_told[to];
    meetings.told_first[rank] = meetings.told_last[rank];
    meetings.told_last[rank] =
        meetings.told_begins[rank] + facts.num_told[live.rank];
  }
  all.has_told = num_told != meetings.num_told;
  meetings.num_told = num_told;
}

// Waits for all blocks of all ranks. `all`: in the memory of this GPU; its
// `num_rounds` are those since they met last, of the rank that had most.
// `facts()` is what this rank tells, by one thread. Returns whether all came in
// time. Where one did not, this rank meets nobody ever after: that one may come
// to the same meeting late, and would take the next for the one that follows.
template <class Facts>
__device__ bool meet(const Live &live, Barrier &barrier, uint32_t &generation,
                     Everywhere &all, Facts facts) {
  __shared__ RankFacts mine;
  Meetings &meetings = *live.meetings;
  __syncthreads();
  if (threadIdx.x == 0)
    fence_for_all(); // what this block wrote into the memory of others
  wait_for_all(&barrier, generation, [&] {
    uint32_t count = live.num_ranks * FACT_HALVES, number = meetings.number;
    uint32_t place = (number & 1) * count;
    if (threadIdx.x == 0) {
      mine = facts();
      all.lost = meetings.lost;
    }
    __syncthreads();
    if (all.lost != 0)
      return;
    fence_for_all();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint32_t rank = i / FACT_HALVES, half = i % FACT_HALVES;
      uint32_t value = reinterpret_cast<const uint32_t *>(&mine)[half];
      store_relaxed_to_all(meetings.there[rank] + place +
                               live.rank * FACT_HALVES + half,
                           uint64_t(number + 1) << 32 | value);
    }
    uint64_t began = nanoseconds();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint32_t rank = i / FACT_HALVES, half = i % FACT_HALVES;
      const uint64_t *at = meetings.there[live.rank] + place + i;
      uint64_t found;
      while (found = load_acquire_from_all(at), found >> 32 != number + 1)
        if (nanoseconds() - began > meetings.timeout) {
          all.lost = 1 + rank;
          break;
        }
      reinterpret_cast<uint32_t *>(&meetings.of_ranks[rank])[half] =
          uint32_t(found);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      add_up(live, all);
      meetings.number = number + 1;
      meetings.lost = all.lost;
    }
  });
  return all.lost == 0;
}

// What this rank tells when ranks meet; `states`: those that the host gives.
__device__ RankFacts facts_of(const Live &live, uint32_t states) {
  const LiveCounts &counts = *live.batch.counts;
  RankFacts facts{};
  facts.states = states;
  if (counts.is_full)
    facts.states |= FULL;
  if (counts.missing)
    facts.states |= MISSING;
  if (counts.is_given_up)
    facts.states |= GIVEN_UP;
  if (counts.more_hubs > live.hubs_left + counts.fewer_hubs)
    facts.states |= HUBS;
  facts.num_rounds = counts.num_rounds;
  facts.num_listed = counts.num_listed;
  facts.num_added = counts.num_added;
  facts.num_removed = counts.num_removed[0];
  facts.num_read = counts.num_read;
  facts.num_sent_edges = counts.num_sent_edges;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    facts.num_told[rank] = counts.num_told[rank];
  return facts;
}

// Trims vertices of all ranks: each until it finds nothing more, first what
// deleted edges held up, then what ghosts held up that their owners trimmed,
// until nobody has any. Returns whether all may go on; `num_rounds` are added
// to.
template <class Facts>
__device__ bool trim_together(const Live &live, const ChangingRows &incoming,
                              uint32_t &generation, uint32_t &num_rounds,
                              Facts facts) {
  LiveCounts *counts = live.batch.counts;
  Everywhere &all = counts->everywhere;
  trim(live, incoming, generation);
  for (;;) {
    if (!meet(live, counts->barrier, generation, all, facts) || all.states)
      return false;
    num_rounds += 1 + all.num_rounds;
    if (!all.has_told)
      return true;
    trim_on(live, incoming, generation);
  }
}

// Gives vertices slots for ranks that have them as ghosts from now on, and
// tells these their keys; and new ghosts here the ids that compute() sees.
__device__ void take_slots(const Live &live) {
  for (uint32_t k = first_thread(); k < live.num_taken; k += num_threads()) {
    uint32_t slot = live.slots_taken[k], v = live.vertices[k], rank = 0;
    while (live.slot_bounds[rank + 1] <= slot)
      rank++;
    uint32_t place = rank < live.rank ? rank : rank - 1;
    live.slots[slot] = v;
    live.copies[uint64_t(v) * (live.num_ranks - 1) + place] = slot;
    const GhostsThere &there = live.ghosts_there[rank];
    uint32_t lid = lid_there(there, slot - live.slot_bounds[rank]);
    there.keys[lid] = key_of(live, v);
    there.first_keys[lid] = first_key_of(live, v);
    there.sent[lid] = live.sent[v];
    if (SIGPS_STEPS || !SIGPS_ADDS)
      there.numbers[lid] = live.numbers[v];
  }
  for (uint32_t k = first_thread(); k < live.num_new_ghosts;
       k += num_threads()) {
    uint32_t ghost = live.new_ghosts[k];
    if (live.narrow_ids != nullptr)
      live.narrow_ids[ghost] = int32_t(live.new_ids[k]);
    else
      live.wide_ids[ghost] = live.new_ids[k];
    if (SIGPS_ORDERED)
      live.order[ghost] = live.new_order[k];
  }
}

} // namespace
} // namespace sigps
