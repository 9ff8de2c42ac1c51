// Slots combined: in registers, across a warp, across a block, and in memory by
// atomics, which follow from the combiner.

#pragma once

#ifndef SIGPS_TURNS // 1: the GPU is shared by turns (lease.cu)
#define SIGPS_TURNS 0
#endif
#ifndef SIGPS_TILES // 1: in-edges lie in tiles and rows (tiles.cuh)
#define SIGPS_TILES 0
#endif
#ifndef SIGPS_TILE_COLUMNS // 1: edges there have columns whose values differ
#define SIGPS_TILE_COLUMNS 0
#endif
#ifndef SIGPS_PACKED // 1: in-edges stay packed (gather_packed.cuh); 2: and are
#define SIGPS_PACKED 0 // out-edges, too (scatter_packed.cuh); 3, 4: the same of
#endif                 // one of several ranks (crossing.cuh)
#ifndef SIGPS_HEADS    // 1: rows that stay packed have heads (gather_heads.cuh)
#define SIGPS_HEADS 0
#endif

#include "arithmetic.cuh"
#include "faults.cuh"

namespace sigps {

constexpr uint32_t ALL_LANES = 0xffffffff;

__device__ inline uint32_t lane_id() { return threadIdx.x % 32; }

// What reads long rows is called, and stands once: inlined everywhere, a row of
// 256 numbers took 81 s to link, and takes 5.
#if SIGPS_LONG_ROWS
#define SIGPS_ONCE __noinline__
#else
#define SIGPS_ONCE inline
#endif
#if SIGPS_NUM_AGGREGATES > 8
#define SIGPS_TOTALS_ONCE __noinline__
#else
#define SIGPS_TOTALS_ONCE inline
#endif
constexpr int WORDS_AT_ONCE = SIGPS_LONG_ROWS ? 4 : 8;

// The sum of the values of this lane and of those before it.
template <uint32_t LANES = 32, class T> __device__ inline T scan_warp(T value) {
#pragma unroll
  for (uint32_t distance = 1; distance < LANES; distance *= 2) {
    T before = __shfl_up_sync(ALL_LANES, value, distance);
    value += lane_id() >= distance ? before : 0;
  }
  return value;
}

#if SIGPS_LISTED
// The messages of a vertex: positions begin..end of the arguments's lists.
struct Inbox {
  int64_t begin, end;
  uint32_t has;
};

__device__ inline Inbox listed(int64_t begin, int64_t end) {
  return {begin, end, end > begin};
}

__device__ inline Inbox empty_inbox() { return listed(0, 0); }

__device__ inline uint32_t compute(const Arguments &arguments,
                                   int64_t superstep, uint32_t v,
                                   const Inbox &inbox, uint32_t members,
                                   Record *record, Totals *given) {
  return sigps_compute_listed(&arguments, superstep, v, inbox.begin, inbox.end,
                              members, record, given);
}
#else
// The messages of a vertex, combined so far.
struct Inbox {
  Slots slots;
  uint32_t has;
};

__device__ inline uint32_t compute(const Arguments &arguments,
                                   int64_t superstep, uint32_t v,
                                   const Inbox &inbox, uint32_t members,
                                   Record *record, Totals *given) {
  return sigps_compute(&arguments, superstep, v, &inbox.slots, inbox.has,
                       members, record, given);
}

__device__ SIGPS_ONCE Inbox empty_inbox() {
#if SIGPS_NEUTRAL
  return {neutral_slots(), 0};
#else
  return {Slots{}, 0};
#endif
}

// With neutral slots `has` is not read.
__device__ inline void put(Inbox &inbox, const Slots &value,
                           const Occasion &when) {
  when.keep(sigps_merge(&inbox.slots, SIGPS_NEUTRAL ? 1 : inbox.has, &value));
  inbox.has = 1;
}

__device__ inline Inbox shuffle_down(const Inbox &inbox, uint32_t distance) {
  Inbox other;
  other.has = __shfl_down_sync(ALL_LANES, inbox.has, distance);
#pragma unroll WORDS_AT_ONCE
  for (int i = 0; i < Slots::NUM_WORDS; i++)
    other.slots.words[i] = typename Slots::Word(
        __shfl_down_sync(ALL_LANES, inbox.slots.words[i], distance));
  return other;
}

__device__ inline void put(Inbox &inbox, const Inbox &other,
                           const Occasion &when) {
  if (other.has)
    put(inbox, other.slots, when);
}

// Lane 0 gets all lanes' messages.
__device__ SIGPS_ONCE Inbox combine_warp(Inbox inbox, const Occasion &when) {
#pragma unroll(SIGPS_SLOTS_BYTES > 64 ? 1 : 5)
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    put(inbox, shuffle_down(inbox, distance), when);
  return inbox;
}
#endif

__device__ SIGPS_TOTALS_ONCE Totals fold_warp(Totals totals,
                                              const Occasion &when) {
#pragma unroll(SIGPS_NUM_AGGREGATES > 8 ? 1 : 5)
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    Totals other;
#pragma unroll 8
    for (int i = 0; i < SIGPS_NUM_AGGREGATES; i++)
      other.cells[i] = __shfl_down_sync(ALL_LANES, totals.cells[i], distance);
    when.keep(sigps_fold(&totals, &other));
  }
  return totals;
}

// Thread 0 gets all threads' totals. Ends with a barrier of the block.
__device__ SIGPS_TOTALS_ONCE Totals fold_block(Totals totals,
                                               const Occasion &when) {
  __shared__ Totals of_warp[32];
  totals = fold_warp(totals, when);
  if (lane_id() == 0)
    of_warp[threadIdx.x / 32] = totals;
  __syncthreads();
  if (threadIdx.x < 32) {
    totals = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x]
                                           : identity_totals();
    totals = fold_warp(totals, when);
  }
  __syncthreads();
  return totals;
}

// --- in memory -------------------------------------------------------------

template <class A, class B> constexpr bool is_same = false;
template <class A> constexpr bool is_same<A, A> = true;

template <class T>
constexpr bool is_float = is_same<T, float> || is_same<T, double>;

// Whether the hardware combines this way.
template <int OP, class T>
constexpr bool is_native =
    OP == ANY || OP == ALL ? is_same<T, bool>
                           : OP != USER && OP != PROD && sizeof(T) >= 4;

template <int BYTES> struct BitsOf {
  using Signed = int32_t;
  using Unsigned = uint32_t;
};
template <> struct BitsOf<8> {
  using Signed = long long;
  using Unsigned = unsigned long long;
};

// Combines in memory. A sum that is CHECKED returns whether it has left its
// type, and what was there before: such an atomic takes longer.
template <int OP, class T, bool CHECKED>
__device__ inline bool combine_native(void *address, const void *given,
                                      void *before) {
  using Signed = typename BitsOf<sizeof(T)>::Signed;
  using Unsigned = typename BitsOf<sizeof(T)>::Unsigned;
  T *at = static_cast<T *>(address);
  T value;
  memcpy(&value, __builtin_assume_aligned(given, sizeof(T)), sizeof(T));
  if constexpr (OP == ANY) {
    if (value)
      *at = true; // other threads write the same
  } else if constexpr (OP == ALL) {
    if (!value)
      *at = false;
  } else if constexpr (OP == SUM && is_float<T>) {
    atomicAdd(at, value);
  } else if constexpr (OP == SUM && CHECKED) {
    T old = T(atomicAdd(reinterpret_cast<Unsigned *>(at), Unsigned(value)));
    memcpy(before, &old, sizeof(T));
    return overflows_add(old, value, T(Unsigned(old) + Unsigned(value)));
  } else if constexpr (OP == SUM) {
    atomicAdd(reinterpret_cast<Unsigned *>(at), Unsigned(value));
  } else if constexpr (OP == OR) {
    atomicOr(reinterpret_cast<Unsigned *>(at), Unsigned(value));
  } else if constexpr (OP == AND) {
    atomicAnd(reinterpret_cast<Unsigned *>(at), Unsigned(value));
  } else if constexpr (OP == XOR) {
    atomicXor(reinterpret_cast<Unsigned *>(at), Unsigned(value));
  } else if constexpr (is_float<T>) {
    Signed bits;
    memcpy(&bits, &value, sizeof(T));
    // As integers, floats are in order, but the negative ones backwards.
    if ((OP == MIN) == (bits >= 0))
      OP == MIN ? atomicMin(reinterpret_cast<Signed *>(at), bits)
                : atomicMin(reinterpret_cast<Unsigned *>(at), Unsigned(bits));
    else
      OP == MIN ? atomicMax(reinterpret_cast<Unsigned *>(at), Unsigned(bits))
                : atomicMax(reinterpret_cast<Signed *>(at), bits);
  } else {
    constexpr bool IS_SIGNED = T(-1) < T(0);
    if constexpr (IS_SIGNED)
      OP == MIN ? atomicMin(reinterpret_cast<Signed *>(at), Signed(value))
                : atomicMax(reinterpret_cast<Signed *>(at), Signed(value));
    else
      OP == MIN ? atomicMin(reinterpret_cast<Unsigned *>(at), Unsigned(value))
                : atomicMax(reinterpret_cast<Unsigned *>(at), Unsigned(value));
  }
  return false;
}

#define SIGPS_AND_NATIVE(op, type, offset, checked) &&is_native<op, type>
constexpr bool ALL_NATIVE = SIGPS_NUM_SLOTS >
                            0 SIGPS_EACH_SLOT(SIGPS_AND_NATIVE);

// Whether one compare-and-swap takes a whole row.
constexpr bool IS_SWAPPED = SIGPS_SLOTS_BYTES == 4 || SIGPS_SLOTS_BYTES == 8
#if __CUDA_ARCH__ >= 900
                            || SIGPS_SLOTS_BYTES == 16
#endif
    ;

// Whether messages can be combined in memory at all; where warps run
// compute(), it takes so long that the direction does not matter.
constexpr bool HAS_PUSH = !SIGPS_TILES && SIGPS_PACKED % 2 == 0 &&
                          SIGPS_NEUTRAL && !SIGPS_BY_WARP &&
                          (ALL_NATIVE || IS_SWAPPED);

#if SIGPS_NEUTRAL && !SIGPS_LISTED
template <class Bits>
__device__ inline Bits swap(Bits *at, Bits old, Bits next) {
  return atomicCAS(at, old, next);
}

#if __CUDA_ARCH__ >= 900
struct alignas(16) Pair {
  uint64_t low, high;
  __device__ bool operator!=(const Pair &other) const {
    return low != other.low || high != other.high;
  }
};

__device__ inline Pair swap(Pair *at, Pair old, Pair next) {
  Pair found;
  asm volatile("{\n.reg .b128 o, n, f;\nmov.b128 o, {%2, %3};\n"
               "mov.b128 n, {%4, %5};\n"
               "atom.global.cas.b128 f, [%6], o, n;\n"
               "mov.b128 {%0, %1}, f;\n}"
               : "=l"(found.low), "=l"(found.high)
               : "l"(old.low), "l"(old.high), "l"(next.low), "l"(next.high),
                 "l"(at)
               : "memory");
  return found;
}
#endif

template <class Bits>
__device__ inline void combine_swapping(Slots *at, const Slots &value,
                                        const Occasion &when) {
  Bits old = *reinterpret_cast<volatile const Bits *>(at);
  while (true) {
    Slots merged;
    memcpy(&merged, &old, sizeof(Slots));
    uint32_t fault = sigps_merge(&merged, 1, &value);
    Bits next;
    memcpy(&next, &merged, sizeof(Slots));
    if (!(next != old))
      return when.keep(fault);
    Bits found = swap(reinterpret_cast<Bits *>(at), old, next);
    if (!(found != old))
      return when.keep(fault);
    old = found;
  }
}

// Combines a value into a row that other threads combine into as well.
__device__ SIGPS_ONCE void combine_in_memory(Slots *at, const Slots &value,
                                             const Occasion &when) {
  if constexpr (ALL_NATIVE) {
    bool overflows = false;
    Slots before = neutral_slots(); // but for the sum that has left its type
#define SIGPS_COMBINE(op, type, offset, checked)                               \
  overflows |= combine_native<op, type, (checked)>(                            \
      reinterpret_cast<char *>(at) + offset,                                   \
      reinterpret_cast<const char *>(&value) + offset,                         \
      reinterpret_cast<char *>(&before) + offset);
    SIGPS_EACH_SLOT(SIGPS_COMBINE)
    if (overflows)
      when.keep(sigps_merge(&before, 1, &value));
  } else if constexpr (sizeof(Slots) == 4) {
    combine_swapping<unsigned int>(at, value, when);
  } else if constexpr (sizeof(Slots) == 8) {
    combine_swapping<unsigned long long>(at, value, when);
  }
#if __CUDA_ARCH__ >= 900
  else if constexpr (sizeof(Slots) == 16) {
    Pair *pair = reinterpret_cast<Pair *>(at);
    Pair old{*reinterpret_cast<volatile uint64_t *>(&pair->low),
             *reinterpret_cast<volatile uint64_t *>(&pair->high)};
    while (true) { // a torn first read only costs a round
      Slots merged;
      memcpy(&merged, &old, sizeof(Slots));
      uint32_t fault = sigps_merge(&merged, 1, &value);
      Pair next;
      memcpy(&next, &merged, sizeof(Slots));
      Pair found = swap(pair, old, next);
      if (!(found != old))
        return when.keep(fault);
      old = found;
    }
  }
#endif
}
#endif

} // namespace sigps
