// What arithmetic of compute() needs besides C++'s own operators. Also compiled
// for the host, by tests.

#pragma once

#include "integers.cuh"

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstring>
#endif

#if defined(__CUDACC_RTC__)
#define SIGPS_PRAGMA(text) _Pragma(#text)
// A loop over a vector's numbers: short ones stay in registers.
#define SIGPS_UNROLL(count) SIGPS_PRAGMA(unroll(count <= 32 ? count : 8))
#else
#define SIGPS_UNROLL(count)
#endif

#if defined(__CUDACC_RTC__)
// Defined beside programs with such loops (compiler/cuda/adapters.py); the host
// sets it when it has loaded the module.
extern "C" __device__ const volatile unsigned char *sigps_interrupted;
#endif

namespace sigps {

constexpr uint32_t TURNS_BETWEEN = 1 << 16;

#if !defined(__CUDACC_RTC__)
inline volatile unsigned char interrupted_on_host = 0;
#endif

// A vector, as it lies in a row of an array. It moves in accesses of 16 bytes
// where its size allows that.
template <typename T, int N>
struct alignas(sizeof(T) * N % 16 == 0 ? 16 : sizeof(T)) Vec {
  T v[N];
};

// The same numbers in another type.
template <typename To, typename T, int N>
__device__ __forceinline__ Vec<To, N> converted(const Vec<T, N> &given) {
  Vec<To, N> made;
  SIGPS_UNROLL(N) for (int i = 0; i < N; ++i) made.v[i] = To(given.v[i]);
  return made;
}

__device__ __forceinline__ double of_bits(uint64_t bits) {
#if defined(__CUDACC_RTC__)
  return __longlong_as_double(int64_t(bits));
#else
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

__device__ __forceinline__ int64_t bits_of(double value) {
#if defined(__CUDACC_RTC__)
  return __double_as_longlong(value);
#else
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

__device__ __forceinline__ double infinity() {
  return of_bits(0x7ff0000000000000ull);
}

__device__ __forceinline__ double not_a_number() {
  return of_bits(0x7ff8000000000000ull);
}

// A product. In a deterministic run it is rounded before anything is added to
// it, as on CPU cores; else the compiler may fuse the two.
#if defined(__CUDACC_RTC__) && defined(SIGPS_FUSES) && !SIGPS_FUSES
__device__ __forceinline__ double times(double a, double b) {
  return __dmul_rn(a, b);
}
__device__ __forceinline__ float times(float a, float b) {
  return __fmul_rn(a, b);
}
#else
__device__ __forceinline__ double times(double a, double b) { return a * b; }
__device__ __forceinline__ float times(float a, float b) { return a * b; }
#endif

// The integer of a float, without its fraction; the nearest there is where it
// does not fit, and 0 for NaN.
__device__ __forceinline__ int64_t to_int(double value) {
  if (!(value == value))
    return 0;
#if defined(__CUDACC_RTC__)
  return __double2ll_rz(value);
#else
  if (value >= 9223372036854775808.0)
    return 9223372036854775807ll;
  if (value < -9223372036854775808.0)
    return -9223372036854775807ll - 1;
  return int64_t(value);
#endif
}

__device__ __forceinline__ int64_t to_int(float value) {
#if defined(__CUDACC_RTC__)
  return value == value ? __float2ll_rz(value) : 0;
#else
  return to_int(double(value));
#endif
}

// Whether the true result of an operation is another than the one that wrapped
// around.
__device__ __forceinline__ bool overflows_add(int64_t a, int64_t b,
                                              int64_t result) {
  return ((a ^ result) & (b ^ result)) < 0;
}

__device__ __forceinline__ bool overflows_subtract(int64_t a, int64_t b,
                                                   int64_t result) {
  return ((a ^ b) & (a ^ result)) < 0;
}

__device__ __forceinline__ bool overflows_multiply(int64_t a, int64_t b,
                                                   int64_t result) {
#if defined(__CUDACC_RTC__)
  return __mul64hi(a, b) != result >> 63;
#else
  int64_t wrapped;
  return __builtin_mul_overflow(a, b, &wrapped) || wrapped != result;
#endif
}

// Whether the user wants the run to end, at one of very many turns of loops
// that may never end: the byte lies in the host's memory. The lanes of a warp
// that runs compute() together go the same way.
__device__ __forceinline__ bool is_interrupted(uint32_t &turns) {
  if (++turns < TURNS_BETWEEN)
    return false;
  turns = 0;
#if !defined(__CUDACC_RTC__)
  return interrupted_on_host != 0;
#elif defined(SIGPS_BY_WARP) && SIGPS_BY_WARP
  return __any_sync(0xffffffffu, *sigps_interrupted != 0);
#else
  return *sigps_interrupted != 0;
#endif
}

__device__ __forceinline__ void sync_warp() {
#if defined(__CUDACC_RTC__)
  __syncwarp();
#endif
}

} // namespace sigps
