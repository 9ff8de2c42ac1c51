// One superstep the plain way, pushed: every sender visits its out-edges one
// after another and combines into its targets' inboxes; then every owned vertex
// computes. The judge of the fast kernels that push, for programs that combine
// along edges.
//
// Schedule: `scatter_reference` works in one thread of any grid, so that it
// needs no atomics, which are part of what is judged; `compute_reference` has a
// thread a vertex, any grid.
//
//   offsets: [num_owned + 1], targets: [out-edges]   out-edges by source
//   sent, records: [num_owned]                       the last superstep's
//   inboxes, has: [num_owned]                        0 for no message
//   outcome:                                         see reference.cuh
//
// The columns of `arguments` have the order of out-edges.

#include "reference.cuh"

using namespace sigps;

static_assert(!SIGPS_LISTED && !SIGPS_DIRECT && !SIGPS_BY_WARP,
              "only what combines along edges is pushed");

extern "C" __global__ void
scatter_reference(const __grid_constant__ Arguments arguments,
                  int64_t superstep, uint32_t num_owned,
                  const uint64_t *offsets, const uint32_t *targets,
                  const uint8_t *status, const uint8_t *sent,
                  const Record *records, Slots *inboxes, uint32_t *has) {
  if (blockIdx.x * blockDim.x + threadIdx.x > 0)
    return;
  for (uint32_t s = 0; s < num_owned; s++) {
    for (uint64_t e = offsets[s]; sent[s] && e < offsets[s + 1]; e++) {
      uint32_t target = targets[e];
      Slots value;
      if (status[target] != 2 &&
          sigps_deliver(&arguments, superstep - 1, &records[s], s, target, e,
                        &value) &
              PASSES) {
        sigps_merge(&inboxes[target], has[target], &value);
        has[target] = 1;
      }
    }
  }
}

extern "C" __global__ void
compute_reference(const __grid_constant__ Arguments arguments,
                  int64_t superstep, uint32_t num_owned, const Slots *inboxes,
                  const uint32_t *has,
                  const __grid_constant__ ReferenceOutcome outcome) {
  for (uint32_t v = blockIdx.x * blockDim.x + threadIdx.x; v < num_owned;
       v += gridDim.x * blockDim.x)
    if (begins(outcome, v))
      run_plainly(outcome, v, has[v], [&](Record *record, Totals *given) {
        return sigps_compute(&arguments, superstep, v, &inboxes[v], has[v], 0,
                             record, given);
      });
}
