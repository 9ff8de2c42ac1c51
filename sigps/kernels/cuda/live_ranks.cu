// What `live.cu` has for a monotone program on one GPU, for several that write
// into each other's memory (engine/gpu/live_ranks.py): each has the rows of its
// own vertices, and the keys of others as ghosts. Hosts meet between launches;
// what is written into another rank's memory is read there after that.
//
// Schedule: kernels `..._among_ranks` are cooperative launches, of phases with
// a barrier between.
//
// Macros: those of `trimming.cuh`.

#include "live.cuh"

using namespace sigps;

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
