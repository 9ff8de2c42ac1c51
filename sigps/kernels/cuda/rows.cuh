// What adapters need to read and write rows and cells, and to send messages.

#pragma once

#include "integers.cuh"

#if defined(__CUDACC_RTC__)
#define SIGPS_INLINE __attribute__((always_inline))
#else
#define SIGPS_INLINE
#endif

namespace sigps {

template <typename T>
__device__ __forceinline__ T load(const void *row, int64_t offset) {
  return *reinterpret_cast<const T *>(static_cast<const char *>(row) + offset);
}

template <typename T>
__device__ __forceinline__ void store(void *row, int64_t offset, T value) {
  *reinterpret_cast<T *>(static_cast<char *>(row) + offset) = value;
}

// Adds 1 to a count, and returns what it was.
__device__ __forceinline__ uint64_t next_of(unsigned long long *count) {
#if defined(__CUDACC_RTC__)
  return atomicAdd(count, 1ull);
#else
  return (*count)++;
#endif
}

#if defined(__CUDACC_RTC__)
// The same once for a warp, whose lanes all get it.
__device__ __forceinline__ uint64_t next_for_warp(unsigned long long *count) {
  unsigned long long position = 0;
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane == 0)
    position = atomicAdd(count, 1ull);
  return __shfl_sync(0xffffffffu, position, 0);
}
#endif

} // namespace sigps
