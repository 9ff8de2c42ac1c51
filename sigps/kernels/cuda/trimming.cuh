// Vertices that lost what their keys came from, when edges were deleted: what a
// monotone program (live.cu) and one of first arrivals (arrivals.cu) share. Of
// no program's functions: a message is its sender's key, and the edge's number
// added to it where SIGPS_ADDS, or 1 where SIGPS_STEPS.
//
// Schedule: phases of a cooperative launch, with a barrier between; how many
// blocks there are does not matter, if they fit. Rows of many edges are read by
// a block each, others by a warp.
//
// Macros: SIGPS_KEY, a type; SIGPS_TAKES_MIN; SIGPS_ADDS; SIGPS_STEPS: keys are
// levels, NOT_FOUND where there is none; those of `changing_rows.cuh`.

#pragma once

#include "changing_rows.cuh"

#ifndef SIGPS_STEPS
#define SIGPS_STEPS 0
#endif

namespace sigps {
namespace {

using Key = SIGPS_KEY;

constexpr uint32_t NO_NUMBER = ~0u, MOST_NUMBER = 1u << 31;

// TRIMMED: nothing holds its key up. HELD: something does, but its other states
// may have come from elsewhere.
enum Fate : uint8_t { UNSEEN = 0, TRIMMED = 1, HELD = 2 };

// The order of vertices where edges add nothing to keys, and these hold each
// other up in circles: unless its key is its own, a vertex has an in-neighbour
// of the same key with a smaller number.
struct Orders {
  uint32_t next;       // above all numbers
  uint32_t num_listed; // zeros between launches, as the next is
  uint32_t num_queued;
  uint32_t num_told[MOST_RANKS]; // numbered vertices, by rank with ghosts
  Barrier barrier;
};

// This rank's vertices as another has them, in its memory: by its local ids.
struct GhostsThere {
  Key *keys, *first_keys; // as of Live
  uint8_t *sent;
  uint32_t *numbers; // where edges add nothing to keys
  uint32_t *told;    // [slots for it] those that were trimmed, in any order, or
  uint32_t *told_numbers;                  // got these numbers
  uint32_t num_hot, first_hot, first_cold; // as of Peer
};

// Why ranks do not go on from where they met: none may, if one has a reason.
enum State : uint32_t {
  FULL = 1,     // rows are to be made room for
  MISSING = 2,  // an edge that was deleted is not there
  HUBS = 4,     // more vertices are hubs than there is room for
  REFUSED = 8,  // the host has an obstacle
  GIVEN_UP = 16 // it costs too much
};

// What a rank tells all when they meet.
struct RankFacts {
  uint32_t states, num_rounds, num_listed, num_added, num_removed, next;
  unsigned long long num_read, num_sent_edges;
  uint32_t num_told[MOST_RANKS];
};

// Where ranks meet within launches (meeting.cuh).
struct Meetings {
  uint64_t *there[MOST_RANKS]; // [2, ranks, halves of facts] in each rank's
                               // memory: by turns, who told, and what
  unsigned long long timeout;  // nanoseconds
  uint32_t number;             // of meetings
  uint32_t lost;               // not 0: 1 + a rank that did not come in time
  uint32_t num_told;           // by all ranks
  uint32_t told_begins[MOST_RANKS];                       // in `told` of Live
  uint32_t told_first[MOST_RANKS], told_last[MOST_RANKS]; // since they met
  uint32_t trimmed_last[MOST_RANKS]; // of those that were trimmed, the last
  uint32_t num_rounds[MOST_RANKS];
  Everywhere everywhere; // where there is no batch
  RankFacts of_ranks[MOST_RANKS];
};

// States, and what a program goes on with. keys, first: now, and after
// superstep 0. Where there are other ranks, rows of out-edges, keys, those of
// superstep 0, sent and fates are of ghosts, too.
struct Live {
  Batch batch;
  void *states[8];   // [rows] each
  void *first[8];    // after superstep 0
  void *before[8];   // of the fixed point before
  uint32_t bytes[8]; // of a value
  uint32_t num_states, num_rows, num_words;
  uint32_t stamp;      // above all in `stamps`
  uint32_t lists_held; // whether states beside the key come with it
  uint32_t key;        // which state it is; where SIGPS_STEPS, the level
  Key *keys;           // [rows] that state; where SIGPS_STEPS, levels by
                       // themselves, as they are being settled
  unsigned long long most_cost, cost_of_round, edges_of_message;
  const uint8_t *sent;    // [rows] 1: sent in superstep 0
  uint8_t *fates;         // [rows] zeros between batches
  uint32_t *stamps;       // [rows] when a vertex was queued last
  uint32_t *queues[2];    // [rows] by round
  uint32_t *expanding[2]; // [rows] by round: trimmed in it
  uint32_t *listed;       // [rows] trimmed, or HELD
  uint32_t *numbers;      // [rows] in the order; NO_NUMBER: not found; where
                          // SIGPS_STEPS, of several ranks, levels of before
  Orders *orders;
  uint32_t numbers_anew; // whether all are to be found
  uint32_t *senders;     // [num_words] bits of the marked
  Key *records;          // [rows] what they send
  uint32_t *changed;     // [1 + rows] how many have other states than before,
                         // and which, in any order
  // Of several ranks; slots as of Halo.
  const GhostsThere *ghosts_there; // [ranks]
  const uint32_t *slot_bounds;     // [ranks + 1]
  uint32_t *slots;                 // vertices, or NOT_FOUND
  uint32_t *copies;                // [rows, ranks - 1] slots, or NOT_FOUND
  const uint32_t *told;            // ghosts that their owners trimmed, or gave
  const uint32_t *told_numbers;    // these numbers; where, `meetings` has
  Meetings *meetings;
  uint32_t num_ranks, rank; // 0: there are no others
  uint32_t num_lids;        // vertices and places for ghosts
  uint32_t has_deletes;     // whether some rank has
  uint32_t hubs_left;       // so many more vertices may become hubs
  // Vertices that become ghosts: `vertices` of this rank take `slots_taken`;
  // `new_ghosts` here get ids that compute() sees.
  uint32_t num_taken, num_new_ghosts;
  const uint32_t *slots_taken, *vertices; // [taken]
  const uint32_t *new_ghosts;             // [new ghosts]
  const int64_t *new_ids;
  int32_t *narrow_ids; // [lids] one of the two
  int64_t *wide_ids;
  uint32_t *order;           // [lids] that of Batch, where SIGPS_ORDERED
  const uint32_t *new_order; // [new ghosts]
};

__device__ inline bool is_better(Key a, Key b) {
  return SIGPS_TAKES_MIN ? a < b : b < a;
}

__device__ inline Key message_of(Key key, const Weight *weights,
                                 uint64_t edge) {
  if (SIGPS_STEPS)
    return Key(key + 1);
  return SIGPS_ADDS ? Key(key + Key(weights[edge])) : key;
}

__device__ inline Key key_of(const Live &live, uint32_t v) {
  return live.keys[v];
}

__device__ inline Key first_key_of(const Live &live, uint32_t v) {
  if (SIGPS_STEPS)
    return live.sent[v] ? Key(0) : Key(NOT_FOUND);
  return static_cast<const Key *>(live.first[live.key])[v];
}

// Whether a vertex has sent its key.
__device__ inline bool has_sent(const Live &live, uint32_t v) {
  return live.sent[v] || key_of(live, v) != first_key_of(live, v);
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

// The lid of a slot of another rank's at its owner of ghosts.
__device__ inline uint32_t lid_there(const GhostsThere &there, uint32_t slot) {
  return slot < there.num_hot ? there.first_hot + slot
                              : there.first_cold + slot - there.num_hot;
}

// Calls visit(rank, there, lid) for each rank that has a vertex as a ghost.
template <class Visit>
__device__ inline void for_ghosts_of(const Live &live, uint32_t v,
                                     Visit visit) {
  for (uint32_t i = 0; i + 1 < live.num_ranks; i++) {
    uint32_t slot = live.copies[uint64_t(v) * (live.num_ranks - 1) + i];
    if (slot == NOT_FOUND)
      continue;
    uint32_t rank = i < live.rank ? i : i + 1;
    const GhostsThere &there = live.ghosts_there[rank];
    visit(rank, there, lid_there(there, slot - live.slot_bounds[rank]));
  }
}

// Tells them that it was trimmed. By one thread.
__device__ inline void tell_trimmed(const Live &live, uint32_t v) {
  for_ghosts_of(live, v,
                [&](uint32_t rank, const GhostsThere &there, uint32_t lid) {
                  uint32_t *count = &live.batch.counts->num_told[rank];
                  there.told[atomicAdd(count, 1u)] = lid;
                });
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

// Trims vertices, or ghosts that their owners trimmed, and queues what they may
// have held up, for the round that follows.
__device__ void expand(const Live &live, const ChangingRows &outgoing,
                       uint32_t round, const uint32_t *expanding,
                       uint32_t count, bool are_ghosts = false) {
  auto begin = [&](uint32_t v) {
    live.fates[v] = TRIMMED;
    if (!are_ghosts)
      tell_trimmed(live, v);
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = expanding[k], degree = outgoing.degrees[v];
    if (degree > MANY)
      continue;
    if (lane() == 0)
      begin(v);
    for (uint32_t i = lane(); i < degree; i += 32)
      queue_dependent(live, outgoing, round, outgoing.begins[v] + i, v);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = expanding[k], degree = outgoing.degrees[v];
    if (degree <= MANY)
      continue;
    if (threadIdx.x == 0)
      begin(v);
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

// Finds what those that `begin` queues held up, and what these held up, and so
// on; returns how many vertices are listed, or NOT_FOUND where it cost too
// much.
template <class Begin>
__device__ uint32_t trim_from(const Live &live, const ChangingRows &incoming,
                              uint32_t &generation, Begin begin) {
  LiveCounts *counts = live.batch.counts;
  bool clears = first_thread() == 0;
  uint32_t round = counts->num_rounds; // those of before ranks met
  begin(round);
  wait_for_all(&counts->barrier, generation);
  for (;; round++) {
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
    expand(live, live.batch.sides[0], round, live.expanding[round & 1],
           num_expanding);
    wait_for_all(&counts->barrier, generation);
  }
}

// The same of what deleted edges held up.
__device__ uint32_t trim(const Live &live, const ChangingRows &incoming,
                         uint32_t &generation) {
  return trim_from(live, incoming, generation,
                   [&](uint32_t) { find_tight(live); });
}

// The same of what ghosts held up that their owners trimmed before ranks met.
__device__ uint32_t trim_on(const Live &live, const ChangingRows &incoming,
                            uint32_t &generation) {
  const Meetings &meetings = *live.meetings;
  return trim_from(live, incoming, generation, [&](uint32_t round) {
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      expand(live, live.batch.sides[0], round - 1,
             live.told + meetings.told_first[rank],
             meetings.told_last[rank] - meetings.told_first[rank], true);
  });
}

} // namespace
} // namespace sigps
