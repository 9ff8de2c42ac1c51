// Tables of keys in the dynamic shared memory: a warp has one of its own, whose
// lanes may have parts of it, and a block has all of them as one.

#pragma once

#include "gather.cuh"
#include "key_table.cuh"

namespace sigps {

// Keys of a warp's table. A block's, made of them, has 4096 at least, which is
// BLOCK_DEGREE (engine/gpu/layout.py).
constexpr uint32_t WARP_PLACES =
    sizeof(KeyWord) + sizeof(KeptSum) <= 8 ? 512 : 256;
constexpr uint32_t BLOCK_PLACES = WARP_PLACES * (SIGPS_THREADS / 32);
constexpr uint32_t LANE_DEGREE = WARP_PLACES / 32;
constexpr uint32_t WARP_TABLE_BYTES =
    (WARP_PLACES + 2) * (sizeof(KeyWord) + sizeof(KeptSum));

// A table of so many places in the dynamic shared memory, from a byte on.
__device__ inline KeyTable shared_table(uint32_t first_byte, uint32_t places) {
  char *memory = reinterpret_cast<char *>(shared_cache) + first_byte;
  KeyWord *keys = reinterpret_cast<KeyWord *>(memory);
  return {keys, reinterpret_cast<KeptSum *>(keys + places + 2), places};
}

// Half of the places stay empty where there are so many.
__device__ inline uint32_t places_for(uint32_t degree, uint32_t most) {
  return min(2 * degree, most);
}

__device__ inline KeyTable table_of_warp(uint32_t places = WARP_PLACES) {
  return shared_table(threadIdx.x / 32 * WARP_TABLE_BYTES, places);
}

// Up to LANE_DEGREE keys of a lane: every 32nd place of its warp's table.
struct LaneTable {
  KeyTable of_warp;
  uint32_t count;
};

__device__ inline LaneTable table_of_lane() { return {table_of_warp(), 0}; }

__device__ inline void put_by_lane(LaneTable &table, const Keyed &message,
                                   const Occasion &when) {
  KeyTable &all = table.of_warp;
  uint32_t at = lane_id(), end = table.count * 32;
  while (at < end && all.keys[at] != message.key)
    at += 32;
  if (at < end) {
    check_sum(message, all.sums[at], when);
    all.sums[at] += message.sum;
  } else {
    all.keys[at] = message.key;
    all.sums[at] = message.sum;
    table.count++;
  }
}

__device__ inline Keyed choose_by_lane(const LaneTable &table) {
  Keyed best = NO_KEY;
  for (uint32_t at = lane_id(); at < table.count * 32; at += 32) {
    Keyed found = {table.of_warp.keys[at], table.of_warp.sums[at], 1};
    if (is_more(found, best))
      best = found;
  }
  return best;
}

} // namespace sigps
