// What all threads of a block do for one vertex, where others have a warp or a
// lane: they combine its messages, or use it.

#pragma once

#include "lease.cuh"

namespace sigps {

#if !SIGPS_LISTED
// Thread 0 gets all threads' messages. Ends with a barrier of the block.
__device__ SIGPS_ONCE Inbox combine_block(Inbox inbox, const Occasion &when) {
  __shared__ Inbox of_warp[SIGPS_THREADS / 32];
  inbox = combine_warp(inbox, when);
  if (lane_id() == 0)
    of_warp[threadIdx.x / 32] = inbox;
  __syncthreads();
  if (threadIdx.x < 32) {
    inbox =
        threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : empty_inbox();
    inbox = combine_warp(inbox, when);
  }
  __syncthreads();
  return inbox;
}
#endif

// Calls use(v) with a whole block for each owned vertex whose count(v) is over
// a limit. All threads of the grid call.
template <class Count, class Use>
__device__ inline void for_long_ones(const Lease &lease, Count count,
                                     uint64_t limit, Use use) {
  __shared__ uint32_t long_ones[SIGPS_THREADS], num_long;
  constexpr uint32_t TOGETHER = 8; // of a sector; hubs are next to each other
  for (uint32_t first = 0; first < lease.num_owned;
       first += threads_of_grid()) {
    if (threadIdx.x == 0)
      num_long = 0;
    __syncthreads();
    uint32_t group = threadIdx.x / TOGETHER * gridDim.x + blockIdx.x;
    uint32_t v = first + group * TOGETHER + threadIdx.x % TOGETHER;
    if (v < lease.num_owned && count(v) > limit)
      long_ones[atomicAdd(&num_long, 1)] = v;
    __syncthreads();
    for (uint32_t i = 0; i < num_long; i++)
      use(long_ones[i]);
    __syncthreads();
  }
}

} // namespace sigps
