// What rows that stay packed bring where messages are listed: their lists, in
// the order of in-edges, as lists.cuh has them of rows in memory.
//
// A block has room for the lists of one chain of pages, `list_places`
// positions: a row's begins where its edges do in the chain. So lists take
// memory by blocks, not by edges. Lists that are sorted are so when a row's
// messages are all there, by who listed them (sorted_lists.cuh).
//
// Schedule: a row of up to 32 edges by a thread, those of over LONG_ROW and
// those that span pages by a block, others by a warp; one thread computes.

#pragma once

#include "packed_messages.cuh"
#include "sorted_lists.cuh"

#if SIGPS_PACKED
namespace sigps {

#if SIGPS_LISTED

#if SIGPS_SORTED
// One who sorts alone.
struct Thread {
  __device__ uint32_t rank() const { return 0; }
  __device__ uint32_t size() const { return 1; }
  __device__ void wait() const {}
};
#else
struct Thread {};
struct Warp {};
struct Block {};
#endif

// The list of v as compute() reads it, positions begin..end. By all of a group.
template <class Group>
__device__ inline Inbox list_of(const Lease &lease, const NextSuperstep &now,
                                uint32_t v, int64_t begin, int64_t end,
                                Group group) {
#if SIGPS_SORTED
  group.wait(); // all is listed
  sort_list(lease, now, v, begin, end, group);
  return sorted(lease, listed(begin, end));
#else
  return listed(begin, end);
#endif
}

// The message that one of some sources sends, if it does.
template <SenderFilter FILTER, int COUNT>
__device__ inline bool brings(const Lease &lease, const NextSuperstep &now,
                              const Outbox &outbox, uint32_t v,
                              const packed::Targets<COUNT> &sources, int k,
                              Message &message) {
  uint32_t source = sources.targets[k];
  if (!sources.is_there[k] ||
      (FILTER != SENDERS_ALL && !has_sent(outbox, source)))
    return false;
  Record record;
  if (HAS_RECORD)
    record = record_of(outbox, source);
  const Arguments &given = SIGPS_ARGUMENTS_OF(lease.in, sources, k);
  Occasion when{lease.in, now.superstep, v};
  return when.passes(
      sigps_deliver(&given, now.superstep - 1, &record, source, v, 0, &message),
      source);
}

// Lists what a row brings from a position on, and returns where it ends. By one
// thread.
template <SenderFilter FILTER>
__device__ inline int64_t
list_row(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
         const packed::Page &page, const packed::Part &part, int64_t end) {
  packed::for_targets<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
          Message message;
          if (brings<FILTER>(lease, now, outbox, part.row, sources, k, message))
            sigps_list(&lease.in, end++, &message);
        }
      });
  return end;
}

// Lists what some targets of a row bring, those of lower lanes first. By a
// warp.
template <SenderFilter FILTER>
__device__ inline void
list_of_warp(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
             uint32_t v, const packed::Targets<AT_ONCE> &sources,
             int64_t &end) {
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    Message message;
    bool passes = brings<FILTER>(lease, now, outbox, v, sources, k, message);
    uint32_t those = __ballot_sync(ALL_LANES, passes);
    if (passes)
      sigps_list(&lease.in, end + __popc(those & ((1u << lane_id()) - 1)),
                 &message);
    end += __popc(those);
  }
}

template <SenderFilter FILTER>
__device__ inline int64_t
list_row_by_warp(const Lease &lease, const NextSuperstep &now,
                 const Outbox &outbox, const packed::Page &page,
                 const packed::Part &part, int64_t end) {
  packed::for_targets_by_warp<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        list_of_warp<FILTER>(lease, now, outbox, part.row, sources, end);
      });
  return end;
}

// The same by a block: warps count what their chunks bring, and then list it.
template <SenderFilter FILTER>
__device__ inline int64_t
list_part_by_block(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, const packed::Page &page,
                   const packed::Part &part, int64_t end) {
  __shared__ uint32_t of_warp[SIGPS_THREADS / 32];
  uint32_t chunks = packed::chunks_of(part), warps = blockDim.x / 32;
  uint32_t warp = threadIdx.x / 32;
  for (uint32_t first = 0; first < chunks; first += warps) {
    uint32_t number = first + warp, count = 0;
    if (number < chunks)
      packed::for_chunk_by_warp<AT_ONCE>(
          lease.packed, page, part, number,
          [&](const packed::Targets<AT_ONCE> &sources) {
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
              Message message;
              count += __popc(__ballot_sync(
                  ALL_LANES, brings<FILTER>(lease, now, outbox, part.row,
                                            sources, k, message)));
            }
          });
    if (lane_id() == 0)
      of_warp[warp] = count;
    __syncthreads();
    int64_t own = end;
    for (uint32_t i = 0; i < warps; i++) {
      own += i < warp ? of_warp[i] : 0;
      end += of_warp[i];
    }
    if (number < chunks)
      packed::for_chunk_by_warp<AT_ONCE>(
          lease.packed, page, part, number,
          [&](const packed::Targets<AT_ONCE> &sources) {
            list_of_warp<FILTER>(lease, now, outbox, part.row, sources, own);
          });
    __syncthreads();
  }
  return end;
}
#endif

} // namespace sigps
#endif
