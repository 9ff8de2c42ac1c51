// What one GPU writes and others read while their kernels run.

#pragma once

#include "integers.cuh"

namespace sigps {

__device__ inline void store_relaxed_to_all(uint64_t *at, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value)
               : "memory");
}

__device__ inline void fence_for_all() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}

__device__ inline uint64_t load_acquire_from_all(const uint64_t *at) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(at)
               : "memory");
  return value;
}

} // namespace sigps
