// One barrier for all blocks of a cooperative launch. The block that arrives
// last may decide for all before it lets them go.

#pragma once

#include "abi.cuh"

namespace sigps {

struct Barrier {
  uint32_t arrived;
  uint32_t generation;
};

__device__ inline uint32_t load_acquire(const uint32_t *at) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(at)
               : "memory");
  return value;
}

__device__ inline void store_release(uint32_t *at, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value)
               : "memory");
}

__device__ inline uint32_t add_acquire_release(uint32_t *at, uint32_t value) {
  uint32_t old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(at), "r"(value)
               : "memory");
  return old;
}

// Waits for all blocks. What any thread wrote before is read by all after it.
// `decide` is run by the whole block that arrived last, while the others wait.
template <class Decide>
__device__ inline void wait_for_all(Barrier *barrier, Decide decide) {
  __shared__ uint32_t generation;
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    generation = load_acquire(&barrier->generation);
    is_last = add_acquire_release(&barrier->arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    decide();
    __syncthreads();
    if (threadIdx.x == 0) {
      barrier->arrived = 0;
      store_release(&barrier->generation, generation + 1);
    }
  } else if (threadIdx.x == 0) {
    while (load_acquire(&barrier->generation) == generation)
      ;
  }
  __syncthreads();
}

__device__ inline void wait_for_all(Barrier *barrier) {
  wait_for_all(barrier, [] {});
}

} // namespace sigps
