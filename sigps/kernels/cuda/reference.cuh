// What the reference kernels share: how a vertex computes and what becomes of
// that. The fast kernels use none of it.
//
//   status: [num_owned]                   0 active, 1 halted, 2 retired
//   next_sent, next_records: [num_owned]  what is sent now
//   given: [num_owned]                    contributions, kept apart
//   ran: [num_owned]                      compute()'s flags, or 255

#pragma once

#include "abi.cuh"

namespace sigps {

struct ReferenceOutcome {
  uint8_t *status, *next_sent;
  Record *next_records;
  Totals *given;
  uint8_t *ran;
};

// Marks a vertex as one that has not run. Returns whether it may run.
__device__ inline bool begins(const ReferenceOutcome &outcome, uint32_t v) {
  outcome.next_sent[v] = 0;
  outcome.ran[v] = 255;
  return outcome.status[v] != 2;
}

// Runs `compute(record, given)` if the vertex is active or has messages.
template <class Compute>
__device__ inline void run_plainly(const ReferenceOutcome &outcome, uint32_t v,
                                   bool has_messages, Compute compute) {
  if (!has_messages && outcome.status[v] != 0)
    return;
  Record record;
  Totals given;
  uint32_t flags = compute(&record, &given);
  if (SIGPS_BY_WARP) // other lanes may still read the status
    __syncwarp();
  outcome.ran[v] = flags;
  if (flags & OVERFLOW)
    return;
  outcome.status[v] = flags & RETIRE ? 2 : flags & HALT;
  if (HAS_AGGREGATES)
    outcome.given[v] = given;
  if (flags & SENT) {
    outcome.next_sent[v] = 1;
    outcome.next_records[v] = record;
  }
}

} // namespace sigps
