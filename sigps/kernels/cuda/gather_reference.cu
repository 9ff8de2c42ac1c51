// One superstep the plain way: every owned vertex visits its in-edges one after
// another and computes. The judge of the fast kernels that pull.
//
// Schedule: one thread a vertex, any grid. No thread writes what another one
// reads or writes: no atomics but those of compute(), which adds to the buffer
// of direct messages. With SIGPS_BY_WARP the lanes of a warp take the place of
// a thread, and all do the same.
//
//   offsets: [num_owned + 1], sources: [in-edges]   in-edges by target
//   sent, records: [owned + ghosts]                 the last superstep's
//   outcome:                                        see reference.cuh
//
// Of programs that list, arguments.lists have room for a message an in-edge. Of
// programs that send direct messages, offsets are those of `messages`, sorted
// by target.

#include "reference.cuh"
#if SIGPS_GROUPED
#include "key_table.cuh"
#endif

using namespace sigps;

extern "C" __global__ void
gather_reference(const __grid_constant__ Arguments arguments, int64_t superstep,
                 uint32_t num_owned, const uint64_t *offsets,
                 const uint32_t *sources, const Message *messages,
                 const uint8_t *sent, const Record *records,
                 const __grid_constant__ ReferenceOutcome outcome) {
  constexpr uint32_t LANES = SIGPS_BY_WARP ? 32 : 1; // of a vertex
  uint32_t stride = gridDim.x * blockDim.x / LANES;
  for (uint32_t v = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
       v < num_owned; v += stride) {
    if (!begins(outcome, v))
      continue;
    uint64_t first = offsets[v], last = offsets[v + 1];
#if SIGPS_LISTED
    uint64_t end = first;
#else
    Slots inbox;
    uint32_t has = 0;
#endif
    for (uint64_t e = first; e < last; e++) {
#if SIGPS_GROUPED
      // Adds up the messages from e on that have the key of that of e.
      Slots all, value;
      auto brings = [&](uint64_t edge) {
        uint32_t s = sources[edge];
        return sent[s] && sigps_deliver(&arguments, superstep - 1, &records[s],
                                        s, v, edge, &value) &
                              PASSES;
      };
      if (!brings(e))
        continue;
      all = value;
      for (uint64_t other = e + 1; other < last; other++)
        if (brings(other) && keyed(value).key == keyed(all).key)
          sigps_merge(&all, 1, &value);
      if (!has || is_more(keyed(all), keyed(inbox)))
        inbox = all;
      has = 1;
#elif SIGPS_LISTED && SIGPS_DIRECT
      sigps_list(&arguments, end++, &messages[e]);
#elif SIGPS_LISTED
      Message message;
      uint32_t s = sources[e];
      if (sent[s] && sigps_deliver(&arguments, superstep - 1, &records[s], s, v,
                                   e, &message) &
                         PASSES)
        sigps_list(&arguments, end++, &message);
#elif SIGPS_DIRECT
      Slots value;
      sigps_lift(&arguments, superstep, &messages[e], &value);
      sigps_merge(&inbox, has, &value);
      has = 1;
#else
      Slots value;
      uint32_t s = sources[e];
      if (sent[s] && sigps_deliver(&arguments, superstep - 1, &records[s], s, v,
                                   e, &value) &
                         PASSES) {
        sigps_merge(&inbox, has, &value);
        has = 1;
      }
#endif
    }
#if SIGPS_LISTED
    run_plainly(outcome, v, end > first, [&](Record *record, Totals *given) {
      return sigps_compute_listed(&arguments, superstep, v, first, end, 0,
                                  record, given);
    });
#else
    run_plainly(outcome, v, has, [&](Record *record, Totals *given) {
      return sigps_compute(&arguments, superstep, v, &inbox, has, 0, record,
                           given);
    });
#endif
  }
}
