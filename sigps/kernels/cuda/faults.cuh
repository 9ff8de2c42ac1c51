// Faults: arithmetic of compute() that had no result, and loops that the user
// has interrupted. One of a superstep is kept, that of the smallest local id;
// the lease ends with the superstep, and the host raises the error.
//
// A word holds the complement of the local id above 24 bits of the fault, so
// that the greatest word is kept. A fault of the edge function is its sender's,
// in the superstep before, and goes before all others: bit 56. Where
// run_small_frontier delivers messages ahead of their superstep, their faults
// are kept for that one, by its parity.

#pragma once

#include "abi.cuh"

namespace sigps {

constexpr uint32_t NO_VERTEX = 0xffffffff;
constexpr uint32_t FAULT_BITS = 24;
constexpr unsigned long long OF_SENDER = 1ull << 56;

// Keeps a fault of a superstep, if it is one.
__device__ inline void keep_fault(const Arguments &arguments, int64_t superstep,
                                  uint32_t vertex, uint32_t fault) {
  if (SIGPS_FAULTS && fault != 0)
    atomicMax(&arguments.faults[superstep & 1],
              static_cast<unsigned long long>(~vertex) << FAULT_BITS | fault);
}

// The same of what sigps_deliver returned; `superstep` is the target's.
__device__ inline void keep_fault_of_edge(const Arguments &arguments,
                                          int64_t superstep, uint32_t source,
                                          uint32_t target, uint32_t brought) {
  uint32_t fault = brought >> FAULT_SHIFT;
  if (!SIGPS_FAULTS || fault == 0)
    return;
  bool is_senders = brought & FAULT_OF_EDGE;
  unsigned long long word =
      static_cast<unsigned long long>(~(is_senders ? source : target))
          << FAULT_BITS |
      fault;
  atomicMax(&arguments.faults[superstep & 1],
            is_senders ? word | OF_SENDER : word);
}

// What is kept so far. Other threads may keep faults until all have met.
__device__ inline unsigned long long
kept_fault(const unsigned long long *faults, int64_t superstep) {
  return SIGPS_FAULTS ? *static_cast<const volatile unsigned long long *>(
                            &faults[superstep & 1])
                      : 0;
}

// For which vertex, and when, a function of the program runs. NO_VERTEX: for
// several.
struct Occasion {
  const Arguments &arguments;
  int64_t superstep;
  uint32_t vertex;

  __device__ void keep(uint32_t fault) const {
    keep_fault(arguments, superstep, vertex, fault);
  }

  // Whether sigps_deliver, which returned `brought`, brings something.
  __device__ bool passes(uint32_t brought, uint32_t source) const {
    keep_fault_of_edge(arguments, superstep, source, vertex, brought);
    return brought & PASSES;
  }
};

} // namespace sigps
