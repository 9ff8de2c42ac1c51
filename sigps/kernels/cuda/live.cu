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

#include "trimming.cuh"

using namespace sigps;

namespace {

// Gives listed vertices back their states of superstep 0.
__device__ void reset_listed(const Live &live, uint32_t count) {
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t v = live.listed[k];
    for (uint32_t i = 0; i < live.num_states; i++)
      copy_value(live.states[i], live.first[i], v, live.bytes[i]);
    live.keys[v] = first_key_of(live, v); // which may lie by themselves
    live.fates[v] = UNSEEN;
    if (!SIGPS_ADDS)
      live.numbers[v] = NO_NUMBER;
  }
}

// The same of ghosts that their owners gave theirs back.
__device__ void reset_told(const Live &live) {
  for (uint32_t rank = 0; rank < live.num_ranks; rank++)
    for (uint32_t k = live.told_first[rank] + first_thread();
         k < live.told_last[rank]; k += num_threads()) {
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
      else if (are_ordered(batch, side))
        close_up_rows(batch, side);
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

// On several ranks, in the place of `begin_again`: trims until this rank finds
// nothing more, first what deleted edges held up, then, as long as any rank
// trimmed vertices that others have as ghosts, what such ghosts held up. `told`
// is those of the launch before.
extern "C" __global__ void __launch_bounds__(256, 4)
    trim_among_ranks(const __grid_constant__ Live live, uint32_t goes_on) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  if (counts->missing || counts->is_full)
    return;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  const ChangingRows &incoming = batch.sides[batch.num_sides - 1];
  if (goes_on)
    trim_on(live, incoming, generation);
  else
    trim(live, incoming, generation);
}

// Then gives states back, and marks who is to send to vertices of this rank,
// ghosts among them: these need not be told, since others have read what they
// send. `told` is all of the batch.
extern "C" __global__ void __launch_bounds__(256, 4)
    mark_among_ranks(const __grid_constant__ Live live) {
  const Batch &batch = live.batch;
  LiveCounts *counts = batch.counts;
  if (counts->missing || counts->is_full)
    return;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  for (uint32_t i = first_thread(); i < live.num_words; i += num_threads())
    live.senders[i] = 0;
  reset_listed(live, counts->num_listed);
  reset_told(live);
  wait_for_all(&counts->barrier, generation);
  unsigned long long edges =
      mark_sources(live, batch.sides[batch.num_sides - 1], counts->num_listed);
  edges += mark_improving(live);
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(&counts->num_sent_edges, edges);
}

// On several ranks, in the place of `find_numbers`: lists vertices that have no
// number (step 0), numbers what it can of them (1), and numbers on from ghosts
// that their owners numbered in the launch before (2), as long as there are
// any. `next` is above all numbers of all ranks, and then in `orders`.
extern "C" __global__ void __launch_bounds__(256, 4)
    number_among_ranks(const __grid_constant__ Live live, uint32_t step,
                       uint32_t next) {
  if (SIGPS_ADDS)
    return;
  Orders *orders = live.orders;
  const Batch &batch = live.batch;
  uint32_t generation = load_acquire(&orders->barrier.generation);
  if (step == 0) {
    for (uint32_t v = first_thread(); v < live.num_rows; v += num_threads()) {
      if (live.numbers[v] != NO_NUMBER)
        continue;
      live.listed[atomicAdd(&orders->num_listed, 1u)] = v;
      for_ghosts_of(live, v,
                    [&](uint32_t, const GhostsThere &there, uint32_t lid) {
                      there.numbers[lid] = NO_NUMBER;
                    });
    }
    return;
  }
  uint32_t first = step == 1 ? 0 : orders->num_queued;
  if (step == 1) {
    begin_numbers(live, batch.sides[batch.num_sides - 1], next);
  } else {
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      for (uint32_t k = live.told_first[rank] + first_thread();
           k < live.told_last[rank]; k += num_threads())
        live.numbers[live.told[k]] = live.told_numbers[k];
    wait_for_all(&orders->barrier, generation); // all know where it begins
    for (uint32_t rank = 0; rank < live.num_ranks; rank++)
      number_neighbours(live, batch.sides[0], live.told + live.told_first[rank],
                        live.told_last[rank] - live.told_first[rank], next);
  }
  next = number_on(live, first, next, generation);
  if (first_thread() == 0)
    orders->next = next;
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

// Gives vertices slots for ranks that have them as ghosts from now on, and
// tells these their keys.
//
//   taken, vertices: [count]
extern "C" __global__ void __launch_bounds__(256)
    take_slots_thread_mapped(const __grid_constant__ Live live, uint32_t count,
                             const uint32_t *taken, const uint32_t *vertices) {
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    uint32_t slot = taken[k], v = vertices[k], rank = 0;
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
    if (!SIGPS_ADDS)
      there.numbers[lid] = live.numbers[v];
  }
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
