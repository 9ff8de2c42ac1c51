// What a monotone program goes on with (live.cu, live_ranks.cu) when vertices
// that lost what their keys came from are known (trimming.cuh): who is to send,
// and the order of vertices. Of no program's functions: a message is its
// sender's key, and the edge's number added to it where SIGPS_ADDS.
//
// Schedule: functions are phases of a cooperative launch. Rows of many edges
// are read by a block each, others by a warp.
//
// Macros: those of `trimming.cuh`.

#pragma once

#include "trimming.cuh"

namespace sigps {
namespace {

// Gives listed vertices back their states of superstep 0. Those that are HELD
// keep their numbers, which are below those of what they hold up.
__device__ void reset_listed(const Live &live, uint32_t count) {
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t v = live.listed[k];
    for (uint32_t i = 0; i < live.num_states; i++)
      copy_value(live.states[i], live.first[i], v, live.bytes[i]);
    live.keys[v] = first_key_of(live, v); // which may lie by themselves
    if (!SIGPS_ADDS && live.fates[v] == TRIMMED)
      live.numbers[v] = NO_NUMBER;
    live.fates[v] = UNSEEN;
  }
}

// The same of ghosts that their owners gave theirs back.
__device__ void reset_told(const Live &live) {
  const Meetings &meetings = *live.meetings;
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    for (uint32_t k = meetings.told_begins[rank] + first_thread();
         k < meetings.told_last[rank]; k += num_threads()) {
      uint32_t ghost = live.told[k];
      live.keys[ghost] = first_key_of(live, ghost);
      live.fates[ghost] = UNSEEN;
      if (!SIGPS_ADDS)
        live.numbers[ghost] = NO_NUMBER;
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

// Tells the ranks that have a vertex as a ghost its number. By one thread.
__device__ inline void tell_number(const Live &live, uint32_t v,
                                   uint32_t number) {
  for_ghosts_of(live, v,
                [&](uint32_t rank, const GhostsThere &there, uint32_t lid) {
                  uint32_t at = atomicAdd(&live.orders->num_told[rank], 1u);
                  there.told[at] = lid;
                  there.told_numbers[at] = number;
                });
}

// Numbers listed vertices whose key is their own, and those beside one that has
// a number and their key; queues them.
__device__ void begin_numbers(const Live &live, const ChangingRows &incoming,
                              uint32_t next) {
  uint32_t count = live.orders->num_listed;
  auto number = [&](uint32_t v, uint32_t found) {
    live.numbers[v] = found;
    live.queues[0][atomicAdd(&live.orders->num_queued, 1u)] = v;
    tell_number(live, v, found);
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
                                  const ChangingRows &outgoing,
                                  const uint32_t *numbered, uint32_t count,
                                  uint32_t next) {
  auto number = [&](uint32_t v, uint32_t i) {
    uint32_t t = outgoing.ends[outgoing.begins[v] + i];
    if (live.numbers[t] == NO_NUMBER && key_of(live, t) == key_of(live, v) &&
        atomicCAS(&live.numbers[t], NO_NUMBER, next) == NO_NUMBER) {
      live.queues[0][atomicAdd(&live.orders->num_queued, 1u)] = t;
      tell_number(live, t, next);
    }
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = numbered[k], degree = outgoing.degrees[v];
    if (degree > MANY || !has_sent(live, v))
      continue;
    for (uint32_t i = lane(); i < degree; i += 32)
      number(v, i);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = numbered[k], degree = outgoing.degrees[v];
    if (degree <= MANY || !has_sent(live, v))
      continue;
    for (uint32_t i = threadIdx.x; i < degree; i += blockDim.x)
      number(v, i);
  }
}

// Numbers on from those that are queued from `first` on; returns what is above
// all numbers then.
__device__ uint32_t number_on(const Live &live, uint32_t first, uint32_t next,
                              uint32_t &generation) {
  Orders *orders = live.orders;
  for (;;) {
    wait_for_all(&orders->barrier, generation);
    uint32_t last = orders->num_queued;
    wait_for_all(&orders->barrier, generation);
    next++;
    if (first == last)
      return next;
    number_neighbours(live, live.batch.sides[0], live.queues[0] + first,
                      last - first, next);
    first = last;
  }
}

} // namespace
} // namespace sigps
