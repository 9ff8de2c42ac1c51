// What a program whose vertices act once, in the superstep that they keep
// (compiler/proofs/arrival.py), needs to go on from rows of edges that changed
// (`changing_rows.cuh`; engine/gpu/arrivals.py): the levels, and who computes
// again. A level is the least of those of in-neighbours, and one more; of no
// program's functions.
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
// Schedule: `settle_arrivals` is a cooperative launch, of phases with a barrier
// between. Rows of many edges are read by a block each, others by a warp. A
// step has one barrier: what it counts stands in three places by turns, of
// which one is read, one written and one cleared.
//
// Macros: those of `trimming.cuh`: SIGPS_STEPS and SIGPS_ADDS are 1, SIGPS_KEY
// is uint32_t.

#include "trimming.cuh"

using namespace sigps;

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

__device__ inline uint32_t level_before(const Live &live, uint32_t v) {
  int64_t level = static_cast<const int64_t *>(live.states[live.key])[v];
  return level < 0 ? NO_LEVEL : uint32_t(level);
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
    append(list, count, is_lowered, t);
  }
}

// Passes the out-edges of the vertices of one level, which were lowered before,
// and lists those of the next: lowered ones, and ones that begin there and are
// not lowered before. These cannot be lowered further.
__device__ void take_step(const Live &live, uint32_t first, uint32_t last,
                          uint32_t now, uint32_t num_begun, uint32_t place) {
  LiveCounts *counts = live.batch.counts;
  const ChangingRows &outgoing = live.batch.sides[0];
  const uint32_t *lowered = lowered_of(live);
  uint32_t *list = lowered_of(live) + last, *count = &counts->of_step[place];
  unsigned long long edges = 0;
  for (uint32_t k = first + first_warp(); k < last; k += num_warps()) {
    uint32_t v = lowered[k];
    if (lane() == 0)
      edges += outgoing.degrees[v];
    if (outgoing.degrees[v] <= MANY)
      lower_row(live, v, 0, 32, now + 1, list, count);
  }
  for (uint32_t k = first + blockIdx.x; k < last; k += gridDim.x) {
    uint32_t v = lowered[k];
    if (outgoing.degrees[v] > MANY)
      lower_row(live, v, threadIdx.x - lane(), blockDim.x, now + 1, list,
                count);
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
    append(list, count, is_next, v);
  }
  edges = sum_of_warp(edges);
  least = least_of_warp(least);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->step_edges[place], edges);
  if (lane() == 0 && least != NO_LEVEL)
    atomicMax(&counts->next_level[place], ~least);
}

// Takes all steps; returns how many vertices are in `lowered_of`, or NOT_FOUND
// where it cost too much. `cost`: so far, in and out.
__device__ uint32_t take_steps(const Live &live, uint32_t &generation,
                               unsigned long long &cost) {
  LiveCounts *counts = live.batch.counts;
  uint32_t first = 0, last = 0, num_begun = counts->num_begun, step = 0;
  uint32_t now = ~counts->next_level[0] - 1; // nobody is listed at it
  unsigned long long edges = 0;
  for (; num_begun != 0; step++) {
    uint32_t place = (step + 1) % 3, other = (step + 2) % 3;
    if (first_thread() == 0) {
      counts->of_step[other] = counts->next_level[other] = 0;
      counts->step_edges[other] = 0;
    }
    take_step(live, first, last, now, num_begun, place);
    wait_for_all(&counts->barrier, generation);
    uint32_t count = counts->of_step[place];
    uint32_t waits = counts->next_level[place];
    edges += counts->step_edges[place];
    cost += live.cost_of_round + counts->step_edges[place];
    first = last;
    last += count;
    now = count != 0 ? now + 1 : ~waits - 1;
    bool is_over = count == 0 && waits == 0, is_spent = cost > live.most_cost;
    if (is_over || is_spent) {
      if (first_thread() == 0) {
        counts->num_steps = step + 1;
        counts->num_sent_edges = edges;
        counts->is_given_up = is_spent;
      }
      return is_spent ? NOT_FOUND : last;
    }
  }
  return 0;
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
  // Vertices of other levels, each once: lowered, or left without one.
  auto moved = [&](uint32_t k) {
    uint32_t v =
        k < num_lowered ? lowered_of(live)[k] : live.listed[k - num_lowered];
    bool is_listed = k < num_lowered || live.keys[v] == NO_LEVEL;
    return is_listed && level_before(live, v) != live.keys[v] ? v : NOT_FOUND;
  };
  auto pass = [&](uint32_t v, uint32_t begin, uint32_t step) {
    uint32_t before = level_before(live, v), after = live.keys[v];
    if (begin == 0)
      edges += compute_again(live, incoming, v, stamp);
    for (uint32_t i = begin; i < outgoing.degrees[v]; i += step)
      reach(before, after, outgoing.ends[outgoing.begins[v] + i]);
  };
  uint32_t count = num_lowered + num_listed;
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    uint32_t v = moved(k);
    if (v != NOT_FOUND && outgoing.degrees[v] <= MANY)
      pass(v, lane(), 32);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    uint32_t v = moved(k);
    if (v != NOT_FOUND && outgoing.degrees[v] > MANY)
      pass(v, threadIdx.x, blockDim.x);
  }
  return edges;
}

} // namespace

// Settles levels, and lists who computes again: of each batch once, after
// `edit_rows`. Stamps from `live.stamp` on are used: one a round of trimming,
// and three.
extern "C" __global__ void __launch_bounds__(256, 4)
    settle_arrivals(const __grid_constant__ Live live) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  if (counts->missing || counts->is_full)
    return;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  uint32_t num_listed = 0;
  if (batch.num_deletes > 0) {
    num_listed = trim(live, incoming, generation);
    if (num_listed == NOT_FOUND)
      return;
  }
  uint32_t stamp = live.stamp + counts->num_rounds + 1;
  unsigned long long reads = counts->num_read / live.edges_of_message;
  unsigned long long cost = counts->num_rounds * live.cost_of_round + reads;
  pull_levels(live, incoming, num_listed, stamp);
  wait_for_all(&counts->barrier, generation);
  lower_targets(live, stamp);
  wait_for_all(&counts->barrier, generation);
  note_begun(live, num_listed);
  wait_for_all(&counts->barrier, generation);
  uint32_t num_lowered = take_steps(live, generation, cost);
  if (num_lowered == NOT_FOUND)
    return;
  unsigned long long edges =
      list_again(live, incoming, num_lowered, num_listed, stamp + 1);
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->num_read, edges);
  wait_for_all(&counts->barrier, generation);
  if (first_thread() == 0)
    counts->is_given_up =
        cost - reads + counts->num_read / live.edges_of_message >
        live.most_cost;
}

// Takes the levels of a full run.
extern "C" __global__ void __launch_bounds__(256)
    copy_levels_thread_mapped(const __grid_constant__ Live live) {
  for (uint32_t v = first_thread(); v < live.num_rows; v += num_threads()) {
    live.keys[v] = level_before(live, v);
    live.fates[v] = UNSEEN;
  }
}
