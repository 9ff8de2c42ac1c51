// Levels of a program whose vertices act once, in the superstep that they keep
// (compiler/proofs/arrival.py), on rows of edges that changed
// (`changing_rows.cuh`): what one GPU (arrivals.cu) and several
// (arrivals_ranks.cu) share. A level is the least of those of in-neighbours,
// and one more; of no program's functions.
//
//   1. What lost its level is trimmed (`trimming.cuh`), and takes one from
//      in-neighbours that were not.
//   2. Targets of new edges are lowered.
//   3. These go out in ascending order of levels, a step each, so that each
//      vertex is lowered once, and edges are passed once.
//   4. Those whose level is another one compute again (`recompute.cu`), and
//      those that get other messages: of changed edges, and of such vertices.
//
// `keys` are the levels; the state that keeps them is as it was until its
// vertex computes.
//
// Schedule: functions are phases of a cooperative launch. Rows of many edges
// are read by a block each, others by a warp.
//
// Macros: those of `trimming.cuh`: SIGPS_STEPS and SIGPS_ADDS are 1, SIGPS_KEY
// is uint32_t.

#pragma once

#include "trimming.cuh"

namespace sigps {
namespace {

constexpr uint32_t NO_LEVEL = NOT_FOUND;

// What the lists of a batch hold here. `queues` and `expanding` are read by
// trimming before.
__device__ inline uint32_t *lowered_of(const Live &live) {
  return live.queues[0]; // in the order of levels
}
__device__ inline uint32_t *again_of(const Live &live) {
  return live.queues[1]; // who computes again
}
__device__ inline uint32_t *begun_of(const Live &live) {
  return live.expanding[0]; // whose level is known before the first step
}
__device__ inline uint32_t *begun_levels_of(const Live &live) {
  return live.expanding[1];
}

// The level that a vertex of this rank keeps.
__device__ inline uint32_t kept_level(const Live &live, uint32_t v) {
  int64_t level = static_cast<const int64_t *>(live.states[live.key])[v];
  return level < 0 ? NO_LEVEL : uint32_t(level);
}

// Of several ranks `numbers` have levels of before, those of ghosts too.
__device__ inline uint32_t level_before(const Live &live, uint32_t v) {
  return live.num_ranks != 0 ? live.numbers[v] : kept_level(live, v);
}

__device__ inline bool comes_next(uint32_t level, uint32_t next) {
  return level != NO_LEVEL && level + 1 == next;
}

__device__ inline uint32_t least_of_warp(uint32_t value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value = min(value, __shfl_xor_sync(ALL_LANES, value, step));
  return value;
}

// Puts the vertices that lanes have behind a list. By whole warps.
__device__ inline void append(uint32_t *list, uint32_t *count, bool has_one,
                              uint32_t v) {
  uint32_t those = __ballot_sync(ALL_LANES, has_one), at = 0;
  if (those == 0)
    return;
  if (lane() == 0)
    at = atomicAdd(count, uint32_t(__popc(those)));
  at = __shfl_sync(ALL_LANES, at, 0) + __popc(those & ((1u << lane()) - 1));
  if (has_one)
    list[at] = v;
}

// Gives trimmed vertices the levels that follow from those of others.
__device__ void pull_levels(const Live &live, const ChangingRows &incoming,
                            uint32_t count, uint32_t stamp) {
  __shared__ uint32_t best;
  LiveCounts *counts = live.batch.counts;
  auto look = [&](uint32_t v, uint32_t first, uint32_t step) {
    uint64_t begin = incoming.begins[v];
    uint32_t least = NO_LEVEL;
    for (uint32_t i = first; i < incoming.degrees[v]; i += step) {
      uint32_t s = incoming.ends[begin + i];
      if (live.fates[s] != TRIMMED)
        least = min(least, live.keys[s]);
    }
    return least;
  };
  auto take = [&](uint32_t v, uint32_t least) {
    live.keys[v] = least == NO_LEVEL ? NO_LEVEL : least + 1;
    if (least == NO_LEVEL)
      return;
    live.stamps[v] = stamp;
    begun_of(live)[atomicAdd(&counts->num_begun, 1u)] = v;
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = live.listed[k];
    if (incoming.degrees[v] > MANY)
      continue;
    uint32_t least = least_of_warp(look(v, lane(), 32));
    if (lane() == 0)
      take(v, least);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = live.listed[k];
    if (incoming.degrees[v] <= MANY)
      continue;
    if (threadIdx.x == 0)
      best = NO_LEVEL;
    __syncthreads();
    uint32_t least = least_of_warp(look(v, threadIdx.x, blockDim.x));
    if (lane() == 0 && least != NO_LEVEL)
      atomicMin(&best, least);
    __syncthreads();
    if (threadIdx.x == 0)
      take(v, best);
    __syncthreads(); // before it is written again
  }
}

// Lowers the targets of new edges to what the levels of before make them. Those
// of trimmed vertices follow in a step.
__device__ void lower_targets(const Live &live, uint32_t stamp) {
  const Batch &batch = live.batch;
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads()) {
    uint32_t s = batch.sides[0].new_rows[i], t = batch.sides[0].new_ends[i];
    if (is_left_out(batch, i) || live.fates[s] == TRIMMED)
      continue;
    uint32_t level = level_before(live, s);
    if (level != NO_LEVEL && atomicMin(&live.keys[t], level + 1) > level + 1 &&
        atomicExch(&live.stamps[t], stamp) != stamp)
      begun_of(live)[atomicAdd(&batch.counts->num_begun, 1u)] = t;
  }
}

// Notes the levels of those that begin, and the least; forgets who was trimmed.
__device__ void note_begun(const Live &live, uint32_t num_listed) {
  LiveCounts *counts = live.batch.counts;
  uint32_t least = NO_LEVEL;
  for (uint32_t k = first_thread(); k < counts->num_begun; k += num_threads()) {
    uint32_t level = live.keys[begun_of(live)[k]];
    begun_levels_of(live)[k] = level;
    least = min(least, level);
  }
  for (uint32_t k = first_thread(); k < num_listed; k += num_threads())
    live.fates[live.listed[k]] = UNSEEN;
  least = least_of_warp(least);
  if (lane() == 0 && least != NO_LEVEL)
    atomicMax(&counts->next_level[0], ~least);
}

// Puts vertices that get a level behind a list, and tells the ranks that have
// them as ghosts. By whole warps.
__device__ inline void pass_on(const Live &live, uint32_t *list,
                               uint32_t *count, bool has_one, uint32_t v) {
  append(list, count, has_one, v);
  if (has_one)
    for_ghosts_of(live, v,
                  [&](uint32_t rank, const GhostsThere &there, uint32_t lid) {
                    uint32_t *told = &live.batch.counts->num_passed[rank];
                    there.told_numbers[atomicAdd(told, 1u)] = lid;
                  });
}

// Lowers the targets of some edges of a vertex. By whole warps.
__device__ inline void lower_row(const Live &live, uint32_t v, uint32_t first,
                                 uint32_t step, uint32_t next, uint32_t *list,
                                 uint32_t *count) {
  const ChangingRows &outgoing = live.batch.sides[0];
  uint64_t begin = outgoing.begins[v];
  uint32_t degree = outgoing.degrees[v];
  for (uint32_t base = first; base < degree; base += step) {
    uint32_t i = base + lane(), t = 0;
    bool is_lowered = false;
    if (i < degree) {
      t = outgoing.ends[begin + i];
      is_lowered = live.keys[t] > next && atomicMin(&live.keys[t], next) > next;
    }
    pass_on(live, list, count, is_lowered, t);
  }
}

// Passes the out-edges of vertices of one level; returns how many.
__device__ unsigned long long lower_rows(const Live &live, const uint32_t *of,
                                         uint32_t size, uint32_t now,
                                         uint32_t *list, uint32_t *count) {
  const ChangingRows &outgoing = live.batch.sides[0];
  unsigned long long edges = 0;
  for (uint32_t k = first_warp(); k < size; k += num_warps()) {
    uint32_t v = of[k];
    if (lane() == 0)
      edges += outgoing.degrees[v];
    if (outgoing.degrees[v] <= MANY)
      lower_row(live, v, 0, 32, now + 1, list, count);
  }
  for (uint32_t k = blockIdx.x; k < size; k += gridDim.x) {
    uint32_t v = of[k];
    if (outgoing.degrees[v] > MANY)
      lower_row(live, v, threadIdx.x - lane(), blockDim.x, now + 1, list,
                count);
  }
  return edges;
}

// Passes the out-edges of the vertices of one level, which were lowered before,
// and of such ghosts, and lists those of the next: lowered ones, and ones that
// begin there and are not lowered before. These cannot be lowered further.
__device__ void take_step(const Live &live, uint32_t first, uint32_t last,
                          uint32_t now, uint32_t num_begun, uint32_t place) {
  LiveCounts *counts = live.batch.counts;
  uint32_t *list = lowered_of(live) + last, *count = &counts->of_step[place];
  unsigned long long edges = lower_rows(live, lowered_of(live) + first,
                                        last - first, now, list, count);
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    const uint32_t *told = live.told_numbers + live.meetings->told_first[rank];
    uint32_t size =
        live.meetings->told_last[rank] - live.meetings->told_first[rank];
    for (uint32_t k = first_thread(); k < size; k += num_threads())
      live.keys[told[k]] = now;
    edges += lower_rows(live, told, size, now, list, count);
  }
  uint32_t least = NO_LEVEL;
  for (uint64_t base = first_thread() - lane(); base < num_begun;
       base += num_threads()) {
    uint32_t k = uint32_t(base) + lane(), v = 0;
    bool is_next = false;
    if (k < num_begun) {
      uint32_t level = begun_levels_of(live)[k];
      v = begun_of(live)[k];
      is_next = level == now + 1 && live.keys[v] == level;
      if (level > now + 1)
        least = min(least, level);
    }
    pass_on(live, list, count, is_next, v);
  }
  edges = sum_of_warp(edges);
  least = least_of_warp(least);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->step_edges[place], edges);
  if (lane() == 0 && least != NO_LEVEL)
    atomicMax(&counts->next_level[place], ~least);
}

// Lets a vertex compute again; returns its in-edges where it is the first time.
__device__ inline uint32_t compute_again(const Live &live,
                                         const ChangingRows &incoming,
                                         uint32_t v, uint32_t stamp) {
  if (atomicExch(&live.stamps[v], stamp) == stamp)
    return 0;
  again_of(live)[atomicAdd(&live.batch.counts->num_again, 1u)] = v;
  return incoming.degrees[v];
}

// Whether a vertex that was lowered, or trimmed and left without a level, has
// another one than before: each is one of these once.
__device__ inline bool has_moved(const Live &live, uint32_t v,
                                 bool is_lowered) {
  return (is_lowered || live.keys[v] == NO_LEVEL) &&
         level_before(live, v) != live.keys[v];
}

// Lists who computes again; returns in-edges of theirs.
__device__ unsigned long long list_again(const Live &live,
                                         const ChangingRows &incoming,
                                         uint32_t num_lowered,
                                         uint32_t num_listed, uint32_t stamp) {
  const Batch &batch = live.batch;
  const ChangingRows &outgoing = batch.sides[0];
  unsigned long long edges = 0;
  uint32_t num_removed = batch.num_deletes ? batch.counts->num_removed[0] : 0;
  auto reach = [&](uint32_t before, uint32_t after, uint32_t t) {
    uint32_t level = live.keys[t];
    if (level != 0 && level != NO_LEVEL &&
        (comes_next(before, level) || comes_next(after, level)))
      edges += compute_again(live, incoming, t, stamp);
  };
  for (uint32_t k = first_thread(); k < num_removed; k += num_threads())
    reach(level_before(live, outgoing.hole_rows[k]), NO_LEVEL,
          outgoing.hole_ends[k]);
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads())
    if (!is_left_out(batch, i))
      reach(NO_LEVEL, live.keys[outgoing.new_rows[i]], outgoing.new_ends[i]);
  auto pass = [&](uint32_t v, uint32_t begin, uint32_t step) {
    uint32_t before = level_before(live, v), after = live.keys[v];
    if (begin == 0 && v < live.num_rows)
      edges += compute_again(live, incoming, v, stamp);
    for (uint32_t i = begin; i < outgoing.degrees[v]; i += step)
      reach(before, after, outgoing.ends[outgoing.begins[v] + i]);
  };
  auto pass_all = [&](const uint32_t *of, uint32_t count, bool are_lowered) {
    for (uint32_t k = first_warp(); k < count; k += num_warps())
      if (has_moved(live, of[k], are_lowered) &&
          outgoing.degrees[of[k]] <= MANY)
        pass(of[k], lane(), 32);
    for (uint32_t k = blockIdx.x; k < count; k += gridDim.x)
      if (has_moved(live, of[k], are_lowered) && outgoing.degrees[of[k]] > MANY)
        pass(of[k], threadIdx.x, blockDim.x);
  };
  pass_all(lowered_of(live), num_lowered, true);
  pass_all(live.listed, num_listed, false);
  for (uint32_t rank = 0; rank < live.num_ranks; rank++) {
    const Meetings &meetings = *live.meetings;
    uint32_t begin = meetings.told_begins[rank];
    pass_all(live.told_numbers + begin, meetings.told_last[rank] - begin, true);
    pass_all(live.told + begin, meetings.trimmed_last[rank] - begin, false);
  }
  return edges;
}

} // namespace
} // namespace sigps
