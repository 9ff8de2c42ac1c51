// master() or next_phase() between two supersteps, which a program's function
// computes: shared values, and whether the run ends or all vertices wake. The
// host takes no part. Where it runs them itself, leases have one superstep, or
// end where nothing is left to do.

#pragma once

#include "lease.cuh"

namespace sigps {

constexpr bool HAS_PHASES = SIGPS_MASTER == 2;

// Whether a vertex has not retired, on any GPU. Each that has counts with its
// out-edges, one at least.
__device__ inline bool is_any_left(const Lease &lease,
                                   const NextSuperstep &next) {
  uint64_t all = lease.in.num_edges + lease.in.num_vertices - lease.could_send;
  return next.retired_edges < all;
}

// Runs master() after a superstep that counts, or next_phase() where nothing is
// left to do, and changes `next` as it says. By one thread, when the
// aggregators are set; several GPUs have the same values, so all come to the
// same. `has_run`: whether a vertex did in superstep `now`; `counts`: whether
// that is in the statistics.
__device__ inline void run_master(const Lease &lease, const NextSuperstep &now,
                                  bool has_run, bool counts,
                                  NextSuperstep &next) {
  // A phase for which all were woken, and in which none ran, ends the run.
  bool is_asked = HAS_PHASES
                      ? next.ending == FINISHED && (has_run || !now.has_woken)
                      : counts;
  if (!lease.asks_master || !is_asked)
    return;
  uint32_t said = sigps_master(&lease.in, next.superstep - 1, lease.aggregates);
  if (said >> FAULT_SHIFT) {
    lease.control->lost_id = said >> FAULT_SHIFT;
    next.ending = MASTER_FAULTED;
    return;
  }
  next.has_woken = (said & WAKE) && (!HAS_PHASES || is_any_left(lease, next));
  if (next.has_woken) {
    next.ending = RUNNING;
    next.direction = PULL;
    next.full_scan = 0;
    next.num_small = 0;
  }
  if (said & STOP)
    next.ending = STOPPED;
}

// Makes halted vertices active. By all threads.
__device__ inline void wake_all(const Lease &lease) {
  for (uint32_t v = thread_of_grid(); v < lease.num_owned;
       v += threads_of_grid())
    if (lease.status[v] == HALTED)
      lease.status[v] = ACTIVE;
}

} // namespace sigps
