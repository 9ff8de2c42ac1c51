// The messages of one vertex by key: a table of open addressing into which all
// lanes of a warp, or threads of a block, put messages at once.
//
//   keys: [capacity + 1] EMPTY_KEY, or a key    sums: [capacity + 1]
//
// The last place is that of the key that looks empty: there any other word than
// EMPTY_KEY stands for it. A place never changes its key, so a key that was not
// found in the places that it may take, all of them taken, is never put there.
//
//   SIGPS_KEY, SIGPS_KEY_OFFSET    the slots row's key: its type and byte
//   SIGPS_SUM, SIGPS_SUM_OFFSET    what is added up of a key
//   SIGPS_COUNTS                   1: every message adds 1
//   SIGPS_CHECKS_SUMS              1: what is added up may leave its type

#pragma once

#include "arithmetic.cuh"
#include "combine.cuh"

namespace sigps {

template <int BYTES> struct KeyWordOf {
  using type = uint32_t;
};
template <> struct KeyWordOf<8> {
  using type = unsigned long long;
};
// Of the types that atomics add.
template <class T> struct SumOf {
  using type = unsigned long long;
};
template <> struct SumOf<float> {
  using type = float;
};
template <> struct SumOf<double> {
  using type = double;
};
template <bool COUNTS, class T> struct KeptSumOf {
  using type = typename SumOf<T>::type;
};
template <class T> struct KeptSumOf<true, T> {
  using type = uint32_t;
};

using Key = SIGPS_KEY;
using Sum = SIGPS_SUM;
using KeyWord = KeyWordOf<sizeof(Key)>::type;
using KeptSum = KeptSumOf<SIGPS_COUNTS, Sum>::type;

constexpr KeyWord EMPTY_KEY = KeyWord(1) << (8 * sizeof(KeyWord) - 1);
constexpr uint32_t REACH = 8;      // places that a key may take, if not all
constexpr uint32_t ALL_PLACES = 0; // it may take all of them

struct KeyTable {
  KeyWord *keys;
  KeptSum *sums;
  uint32_t capacity;
};

// A message, or all messages of a key.
struct Keyed {
  KeyWord key;
  KeptSum sum;
  uint32_t has;
};

constexpr Keyed NO_KEY = {0, 0, 0};

__device__ inline Keyed keyed(const Slots &value) {
  Key key;
  Sum sum;
  const char *row = reinterpret_cast<const char *>(&value);
  memcpy(&key, row + SIGPS_KEY_OFFSET, sizeof(Key));
  memcpy(&sum, row + SIGPS_SUM_OFFSET, sizeof(Sum));
  return {KeyWord(key), KeptSum(sum), 1};
}

__device__ inline Inbox inbox_of(const Keyed &found) {
  Inbox inbox = empty_inbox();
  Key key = Key(found.key);
  Sum sum = Sum(found.sum);
  char *row = reinterpret_cast<char *>(&inbox.slots);
  memcpy(row + SIGPS_KEY_OFFSET, &key, sizeof(Key));
  memcpy(row + SIGPS_SUM_OFFSET, &sum, sizeof(Sum));
  inbox.has = found.has;
  return inbox;
}

__device__ inline bool is_more(const Keyed &one, const Keyed &other) {
  if (!one.has || !other.has)
    return one.has;
  Sum mine = Sum(one.sum), theirs = Sum(other.sum);
  if (mine != mine) // NaN: the smallest
    mine = Sum(-infinity());
  if (theirs != theirs)
    theirs = Sum(-infinity());
  return mine > theirs || (mine == theirs && Key(one.key) < Key(other.key));
}

__device__ inline uint32_t place_of(KeyWord key, uint32_t capacity) {
  uint32_t hash = sizeof(KeyWord) == 8
                      ? uint32_t(uint64_t(key) * 0x9e3779b97f4a7c15ull >> 32)
                      : uint32_t(key) * 0x9e3779b1u;
  return uint32_t(uint64_t(hash) * capacity >> 32);
}

__device__ inline void clear(const KeyTable &table, uint32_t first,
                             uint32_t stride) {
  for (uint32_t at = first; at <= table.capacity; at += stride) {
    table.keys[at] = EMPTY_KEY;
    table.sums[at] = 0;
  }
}

// Keeps the fault of a sum that left its type: `before` and `sum` are added.
__device__ inline void check_sum(const Keyed &message, KeptSum before,
                                 const Occasion &when) {
  if constexpr (SIGPS_CHECKS_SUMS) {
    int64_t one = int64_t(before), other = int64_t(message.sum);
    if (overflows_add(one, other, int64_t(before + message.sum))) {
      Slots into = inbox_of(Keyed{message.key, before, 1}).slots;
      Slots value = inbox_of(message).slots;
      when.keep(sigps_merge(&into, 1, &value));
    }
  }
}

__device__ inline void add(const KeyTable &table, uint32_t at,
                           const Keyed &message, const Occasion &when) {
  check_sum(message, atomicAdd(&table.sums[at], message.sum), when);
}

// Adds a message to what its key has. Returns false where other keys have all
// of the places that it may take; where it may take ALL_PLACES, the table has
// room.
template <uint32_t MOST>
__device__ inline bool put(const KeyTable &table, const Keyed &message,
                           const Occasion &when) {
  if (message.key == EMPTY_KEY) {
    table.keys[table.capacity] = 0;
    add(table, table.capacity, message, when);
    return true;
  }
  uint32_t at = place_of(message.key, table.capacity);
  for (uint32_t i = 0; MOST == ALL_PLACES || i < MOST; i++) {
    KeyWord found = *const_cast<volatile KeyWord *>(&table.keys[at]);
    if (found == EMPTY_KEY)
      found = atomicCAS(&table.keys[at], EMPTY_KEY, message.key);
    if (found == EMPTY_KEY || found == message.key) {
      add(table, at, message, when);
      return true;
    }
    at = at + 1 == table.capacity ? 0 : at + 1;
  }
  return false;
}

// Whether put<REACH>() found a place for a key. No key is put meanwhile.
__device__ inline bool has_place(const KeyTable &table, KeyWord key) {
  if (key == EMPTY_KEY)
    return true;
  uint32_t at = place_of(key, table.capacity);
  for (uint32_t i = 0; i < REACH; i++) {
    if (table.keys[at] == key)
      return true;
    at = at + 1 == table.capacity ? 0 : at + 1;
  }
  return false;
}

// The key of most weight at the places first, first + stride, ...
__device__ inline Keyed choose(const KeyTable &table, uint32_t first,
                               uint32_t stride, Keyed best = NO_KEY) {
  for (uint32_t at = first; at <= table.capacity; at += stride) {
    KeyWord key = table.keys[at];
    Keyed found = {at == table.capacity ? EMPTY_KEY : key, table.sums[at],
                   key != EMPTY_KEY};
    if (is_more(found, best))
      best = found;
  }
  return best;
}

// All lanes get the key of most weight among those that lanes have.
__device__ inline Keyed choose_in_warp(Keyed best) {
#pragma unroll
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    Keyed other = {__shfl_xor_sync(ALL_LANES, best.key, distance),
                   __shfl_xor_sync(ALL_LANES, best.sum, distance),
                   __shfl_xor_sync(ALL_LANES, best.has, distance)};
    if (is_more(other, best))
      best = other;
  }
  return best;
}

// The same for thread 0 of a block. Ends with a barrier of the block.
__device__ inline Keyed choose_in_block(Keyed best) {
  __shared__ Keyed of_warp[32];
  best = choose_in_warp(best);
  if (lane_id() == 0)
    of_warp[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x < 32)
    best = choose_in_warp(threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x]
                                                        : NO_KEY);
  __syncthreads();
  return best;
}

} // namespace sigps
