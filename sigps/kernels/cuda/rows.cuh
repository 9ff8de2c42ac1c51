// What adapters need to read and write rows and cells, and to send messages.

#pragma once

#include "arithmetic.cuh"

#if defined(__CUDACC_RTC__)
#if SIGPS_LONG_ROWS
#define SIGPS_INLINE __attribute__((noinline))
#else
#define SIGPS_INLINE __attribute__((always_inline))
#endif
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

// An id that may be None, kept in 32 bits; None is the smallest number.
constexpr int64_t NO_ID = int64_t(1ull << 63);
constexpr int32_t NO_NARROW_ID = int32_t(1u << 31);

__device__ __forceinline__ int32_t narrowed_id(int64_t id) {
  return id == NO_ID ? NO_NARROW_ID : int32_t(id);
}
__device__ __forceinline__ int64_t widened_id(int32_t kept) {
  return kept == NO_NARROW_ID ? NO_ID : int64_t(kept);
}

// A number or a vector in cells of 8 bytes, a number each; the bytes above a
// narrow number are zero: a cell may be compared or copied as a word.
template <typename T> struct Cells {
  static __device__ __forceinline__ T load(const void *cells, int64_t first) {
    return sigps::load<T>(cells, 8 * first);
  }
  static __device__ __forceinline__ void store(void *cells, int64_t first,
                                               T value) {
    if (sizeof(T) < 8)
      sigps::store<int64_t>(cells, 8 * first, 0);
    sigps::store<T>(cells, 8 * first, value);
  }
};

template <typename T, int N> struct Cells<Vec<T, N>> {
  static __device__ __forceinline__ Vec<T, N> load(const void *cells,
                                                   int64_t first) {
    Vec<T, N> made;
    SIGPS_UNROLL(N)
    for (int i = 0; i < N; ++i)
      made.v[i] = Cells<T>::load(cells, first + i);
    return made;
  }
  static __device__ __forceinline__ void store(void *cells, int64_t first,
                                               const Vec<T, N> &value) {
    SIGPS_UNROLL(N)
    for (int i = 0; i < N; ++i)
      Cells<T>::store(cells, first + i, value.v[i]);
  }
};

// Adds 1 to a count, and returns what it was.
__device__ __forceinline__ uint64_t next_of(unsigned long long *count) {
#if defined(__CUDACC_RTC__)
  return atomicAdd(count, 1ull);
#else
  return __atomic_fetch_add(count, 1ull, __ATOMIC_RELAXED);
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
