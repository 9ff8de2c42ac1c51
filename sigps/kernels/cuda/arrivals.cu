// What a program whose vertices act once, in the superstep that they keep,
// needs to go on from rows of edges that changed, on one GPU (arrivals.cuh;
// engine/gpu/arrivals.py): the levels, and who computes again.
//
// Schedule: `settle_arrivals` is a cooperative launch, of phases with a barrier
// between. A step has one barrier: what it counts stands in three places by
// turns, of which one is read, one written and one cleared.
//
// Macros: those of `arrivals.cuh`.

#include "arrivals.cuh"

using namespace sigps;

namespace {

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
    live.keys[v] = kept_level(live, v);
    live.fates[v] = UNSEEN;
  }
}
