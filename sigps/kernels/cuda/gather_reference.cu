// One superstep the plain way: every owned vertex visits its in-edges one after
// another and computes. The judge of the kernels that are fast.
//
// Schedule: one thread a vertex, any grid. No thread writes what another one
// reads or writes: no atomics but compute()'s own, into the mailbox. With
// SIGPS_BY_WARP the lanes of a warp take the place of a thread, and all do the
// same.
//
//   offsets: [num_owned + 1], sources: [in-edges]   in-edges by target
//   status: [num_owned]                             0 active, 1 halted, 2
//   retired sent, records: [owned + ghosts]                 what was sent last
//   superstep next_sent, next_records: the same               what is sent now
//   given: [num_owned]                              contributions, kept apart
//   ran: [num_owned]                                compute()'s flags, or 255
//
// Of programs that list, arguments.lists have room for a message an in-edge. Of
// programs with a mailbox, offsets are those of `mail`, sorted by target.

#include "abi.cuh"

using namespace sigps;

extern "C" __global__ void
gather_reference(const __grid_constant__ Arguments arguments, int64_t superstep,
                 uint32_t num_owned, const uint64_t *offsets,
                 const uint32_t *sources, const Message *mail, uint8_t *status,
                 const uint8_t *sent, const Record *records, uint8_t *next_sent,
                 Record *next_records, Totals *given, uint8_t *ran) {
  constexpr uint32_t LANES = SIGPS_BY_WARP ? 32 : 1; // of a vertex
  uint32_t stride = gridDim.x * blockDim.x / LANES;
  for (uint32_t v = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
       v < num_owned; v += stride) {
    next_sent[v] = 0;
    ran[v] = 255;
    if (status[v] == 2)
      continue;
    uint64_t first = offsets[v], last = offsets[v + 1];
#if SIGPS_LISTED
    uint64_t end = first;
#else
    Slots inbox;
    uint32_t has = 0;
#endif
    for (uint64_t e = first; e < last; e++) {
#if SIGPS_LISTED && SIGPS_DIRECT
      sigps_list(&arguments, end++, &mail[e]);
#elif SIGPS_LISTED
      Message message;
      uint32_t s = sources[e];
      if (sent[s] && sigps_deliver(&arguments, superstep - 1, &records[s], s, v,
                                   e, &message))
        sigps_list(&arguments, end++, &message);
#elif SIGPS_DIRECT
      Slots value;
      sigps_lift(&arguments, superstep, &mail[e], &value);
      sigps_merge(&inbox, has, &value);
      has = 1;
#else
      Slots value;
      uint32_t s = sources[e];
      if (sent[s] && sigps_deliver(&arguments, superstep - 1, &records[s], s, v,
                                   e, &value)) {
        sigps_merge(&inbox, has, &value);
        has = 1;
      }
#endif
    }
    Record record;
    Totals mine;
#if SIGPS_LISTED
    if (end == first && status[v] != 0)
      continue;
    uint32_t flags = sigps_compute_listed(&arguments, superstep, v, first, end,
                                          &record, &mine);
#else
    if (!has && status[v] != 0)
      continue;
    uint32_t flags =
        sigps_compute(&arguments, superstep, v, &inbox, has, &record, &mine);
#endif
    if (SIGPS_BY_WARP) // who is behind still reads the status
      __syncwarp();
    ran[v] = flags;
    if (flags & OVERFLOW)
      continue;
    status[v] = flags & RETIRE ? 2 : flags & HALT;
    if (HAS_AGGREGATES)
      given[v] = mine;
    if (flags & SENT) {
      next_sent[v] = 1;
      next_records[v] = record;
    }
  }
}
