// Halos between GPUs that do not reach each other's memory: what one rank reads
// of another is written side by side, whether or not it was sent, so that its
// size is known before.
//
// Schedule: a thread a vertex of the halo, any grid; words of bits have one
// writer, but for those of ghosts, which are zero before and set by atomics.
//
//   lids: [count]             vertices of a halo, or the ghosts of one rank
//   bits: [count / 32]        whether each sent
//   packed: [count]           their records, those that did not send undefined

#include "integers.cuh"

namespace {

__device__ void copy_record(const uint8_t *from, uint8_t *to, uint32_t bytes) {
  if (bytes % 4 == 0)
    for (uint32_t i = 0; i < bytes / 4; i++)
      reinterpret_cast<uint32_t *>(to)[i] =
          reinterpret_cast<const uint32_t *>(from)[i];
  else
    for (uint32_t i = 0; i < bytes; i++)
      to[i] = from[i];
}

} // namespace

extern "C" __global__ void
pack_halo_thread_mapped(const uint32_t *lids, uint32_t count,
                        uint32_t record_bytes, const uint32_t *sent,
                        const uint8_t *records, uint32_t *bits,
                        uint8_t *packed) {
  uint32_t stride = gridDim.x * blockDim.x;
  for (uint32_t base = 0; base < count; base += stride) {
    uint32_t i = base + blockIdx.x * blockDim.x + threadIdx.x;
    bool has = false;
    if (i < count) {
      uint32_t lid = lids[i];
      has = sent[lid / 32] >> lid % 32 & 1;
      if (has)
        copy_record(records + uint64_t(lid) * record_bytes,
                    packed + uint64_t(i) * record_bytes, record_bytes);
    }
    uint32_t word = __ballot_sync(0xffffffffu, has);
    if (threadIdx.x % 32 == 0 && i < count)
      bits[i / 32] = word;
  }
}

extern "C" __global__ void
unpack_halo_thread_mapped(const uint32_t *lids, uint32_t count,
                          uint32_t record_bytes, const uint32_t *bits,
                          const uint8_t *packed, uint32_t *sent,
                          uint8_t *records) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    if (bits[i / 32] >> i % 32 & 1) {
      uint32_t lid = lids[i];
      atomicOr(&sent[lid / 32], 1u << lid % 32);
      copy_record(packed + uint64_t(i) * record_bytes,
                  records + uint64_t(lid) * record_bytes, record_bytes);
    }
}

// Adds up the out-edges of those that sent.
extern "C" __global__ void
add_sent_edges_thread_mapped(const uint32_t *sent, uint32_t num_lids,
                             const uint32_t *degrees,
                             unsigned long long *total) {
  unsigned long long mine = 0;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < num_lids;
       i += gridDim.x * blockDim.x)
    if (sent[i / 32] >> i % 32 & 1)
      mine += degrees[i];
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    mine += __shfl_down_sync(0xffffffffu, mine, distance);
  if (threadIdx.x % 32 == 0 && mine != 0)
    atomicAdd(total, mine);
}

// Counts the vertices of a status.
extern "C" __global__ void
count_status_thread_mapped(const uint8_t *statuses, uint32_t count,
                           uint8_t status, unsigned long long *total) {
  uint32_t mine = 0;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    mine += statuses[i] == status;
  mine = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0 && mine != 0)
    atomicAdd(total, (unsigned long long)mine);
}
