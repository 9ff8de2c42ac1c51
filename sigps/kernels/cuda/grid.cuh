// One barrier for all blocks of a cooperative launch. The block that arrives
// last may run a function before it releases the others.

#pragma once

#include "integers.cuh"

namespace sigps {

__device__ inline uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Waiting threads poll one cache line; arriving ones write another.
struct Barrier {
  alignas(128) uint32_t arrived;
  alignas(128) uint32_t generation;
};

__device__ inline uint32_t load_acquire(const uint32_t *at) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(at)
               : "memory");
  return value;
}

__device__ inline uint32_t load_relaxed(const uint32_t *at) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
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

__device__ inline bool arrives_last(Barrier *barrier) {
  return add_acquire_release(&barrier->arrived, 1) == gridDim.x - 1;
}

__device__ inline void release_all(Barrier *barrier, uint32_t generation) {
  barrier->arrived = 0;
  store_release(&barrier->generation, generation + 1);
}

// Polls with relaxed loads: each acquire empties the multiprocessor's cache,
// from which other blocks may still be reading.
__device__ inline void wait_for_release(Barrier *barrier, uint32_t generation) {
  while (load_relaxed(&barrier->generation) == generation)
    ;
  load_acquire(&barrier->generation);
}

// Waits for all blocks. What any thread wrote before is read by all after it.
// `generation` counts the barriers; every thread keeps it.
__device__ inline void wait_for_all(Barrier *barrier, uint32_t &generation) {
  __syncthreads();
  if (threadIdx.x == 0) {
    if (arrives_last(barrier))
      release_all(barrier, generation);
    else
      wait_for_release(barrier, generation);
  }
  generation++;
  __syncthreads();
}

// The same; `decide` is run by the whole block that arrived last, while the
// others wait.
template <class Decide>
__device__ inline void wait_for_all(Barrier *barrier, uint32_t &generation,
                                    Decide decide) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = arrives_last(barrier);
  __syncthreads();
  if (is_last) {
    decide();
    __syncthreads();
    if (threadIdx.x == 0)
      release_all(barrier, generation);
  } else if (threadIdx.x == 0) {
    wait_for_release(barrier, generation);
  }
  generation++;
  __syncthreads();
}

} // namespace sigps
