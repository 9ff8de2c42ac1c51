// What a rank sends to ghosts: records of vertices that sent are written into
// the memory of every GPU that has ghosts of them.
//
// A rank's slots for another are that one's ghosts of its vertices, in order.
// After a pull or a full scan all slots are written: a bit for each says
// whether its vertex sent, and the records of those that did are stored in the
// order of slots. After any other push there are few senders: each writes its
// own slots only, and lists them at the receiver; the thread that computes a
// vertex publishes it.
//
// What a rank writes is read one superstep later, and is kept apart by that
// superstep's parity.

#pragma once

#include "next_superstep.cuh"

namespace sigps {

// The rank that a slot is for.
__device__ inline uint32_t rank_of(const Halo &halo, uint32_t slot) {
  uint32_t rank = 0;
  while (halo.bounds[rank + 1] <= slot)
    rank++;
  return rank;
}

// The lid of a slot at its receiver; slots of one word lie together there, from
// a multiple of 32 on.
__device__ inline uint32_t lid_of_slot(const Peer &peer, uint32_t slot) {
  return slot < peer.num_hot ? peer.first_hot + slot
                             : peer.first_cold + slot - peer.num_hot;
}

// Whether a thread of this block has written to other GPUs.
__device__ inline uint32_t &has_published() {
  __shared__ uint32_t flag;
  return flag;
}

// Records of four successive slots, as a lane stores them: few large stores
// into another GPU's memory are faster than many small ones.
constexpr uint32_t FOUR_BYTES = 4 * sizeof(Record);
constexpr uint32_t FOUR_ALIGN = FOUR_BYTES & -FOUR_BYTES;
struct alignas(FOUR_ALIGN < 16 ? FOUR_ALIGN : 16) FourRecords {
  Record of[4];
};

// Stores those of four records whose bit is set.
__device__ inline void store_four(Record *to, const FourRecords &found,
                                  uint32_t bits) {
  if (bits == 15) {
    *reinterpret_cast<FourRecords *>(to) = found;
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (bits >> i & 1)
      to[i] = found.of[i];
}

// Writes 128 slots for a rank, by a warp: a lane has four slots, a warp four
// words of bits. Returns how many of them a lane's word says were sent.
//
//   begin, end: the rank's slots
__device__ inline uint32_t publish_slots(const Lease &lease, const Peer &peer,
                                         int parity, uint32_t first,
                                         uint32_t begin, uint32_t end) {
  uint32_t slot = first + lane_id() * 4;
  uint4 these{NO_VERTEX, NO_VERTEX, NO_VERTEX, NO_VERTEX};
  if (slot < end)
    these = __ldcs(reinterpret_cast<const uint4 *>(lease.halo.vertices + slot));
  uint32_t vertices[] = {these.x, these.y, these.z, these.w};
  FourRecords found;
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t v = vertices[i] == NO_VERTEX ? 0 : vertices[i];
    if (HAS_RECORD) // whether it was sent or not
      found.of[i] = lease.records[parity][v];
    if (vertices[i] != NO_VERTEX && is_set(lease.sent[parity], v))
      bits |= 1u << i;
  }
  uint32_t lid = lid_of_slot(peer, slot - begin);
  if (HAS_RECORD)
    store_four(peer.records[parity] + lid, found, bits);
  uint32_t word = bits << lane_id() % 8 * 4;
  for (int lanes = 1; lanes < 8; lanes *= 2)
    word |= __shfl_xor_sync(ALL_LANES, word, lanes);
  has_published() = 1;
  if (lane_id() % 8 != 0 || slot >= end)
    return 0;
  peer.sent[parity][lid / 32] = word;
  return __popc(word);
}

// Adds up what the lanes of a warp have published.
__device__ inline void count_published(const Lease &lease, uint32_t count) {
  count = __reduce_add_sync(ALL_LANES, count);
  if (lane_id() == 0 && count != 0)
    atomicAdd(&lease.halo.num_published[lease.halo.rank], count);
}

// After a pull or a full scan, by all threads; each rank begins with the one
// after itself.
__device__ inline void publish_bits(const Lease &lease,
                                    const NextSuperstep &now) {
  const Halo &halo = lease.halo;
  uint32_t count = 0;
  for (uint32_t k = 1; k < halo.num_ranks; k++) {
    uint32_t rank = (halo.rank + k) % halo.num_ranks;
    const Peer peer = halo.peers[rank];
    uint32_t begin = halo.bounds[rank], end = halo.bounds[rank + 1];
    uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
    for (uint32_t first = begin + warp * 128; first < end; first += warps * 128)
      count += publish_slots(lease, peer, (now.superstep + 1) & 1, first, begin,
                             end);
  }
  count_published(lease, count);
}

#if SIGPS_TILES
// The same a few slots at a time, beside other work (combine_early, tiles.cuh).
class Publication {
public:
  __device__ Publication(const NextSuperstep &now)
      : parity_((now.superstep + 1) & 1) {}

  // The next 128 slots of a warp; returns whether there were any.
  __device__ bool publish_some(const Lease &lease) {
    const Halo &halo = lease.halo;
    uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
    for (; k_ < halo.num_ranks; k_++, round_ = 0) {
      uint32_t rank = (halo.rank + k_) % halo.num_ranks;
      uint32_t begin = halo.bounds[rank], end = halo.bounds[rank + 1];
      uint32_t first = begin + (round_ * warps + warp) * 128;
      if (first < end) {
        round_++;
        count_ +=
            publish_slots(lease, halo.peers[rank], parity_, first, begin, end);
        return true;
      }
    }
    return false;
  }

  // All that is left.
  __device__ void publish_rest(const Lease &lease) {
    while (publish_some(lease))
      continue;
    count_published(lease, count_);
  }

private:
  int parity_;
  uint32_t k_ = 1, round_ = 0, count_ = 0;
};
#endif

// In a push, what one vertex sends. By any thread.
__device__ inline void publish_one(const Lease &lease, const NextSuperstep &now,
                                   uint32_t v) {
  const Halo &halo = lease.halo;
  int parity = (now.superstep + 1) & 1;
  uint32_t end = halo.copy_offsets[v + 1];
  for (uint32_t c = halo.copy_offsets[v]; c < end; c++) {
    uint32_t slot = halo.copies[c];
#ifdef SIGPS_IN_PIECES
    if (slot == NO_VERTEX) // a place for a rank that may come to have it
      continue;
#endif
    uint32_t rank = rank_of(halo, slot);
    const Peer &peer = halo.peers[rank];
    uint32_t lid = lid_of_slot(peer, slot - halo.bounds[rank]);
    if (HAS_RECORD)
      peer.records[parity][lid] = lease.records[parity][v];
    uint32_t at = atomicAdd(&halo.num_published[rank], 1);
    peer.listed[parity][at] = lid;
    has_published() = 1;
  }
}

} // namespace sigps
