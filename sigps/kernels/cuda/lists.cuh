// Lists: every owned vertex lists its in-neighbours' messages, in the order of
// its in-edges, and computes. Writes the senders as bits.
//
// Schedule: CSR rows a warp each, of which one lane computes; sliced ones a row
// a lane; with SIGPS_BY_TEAM a vertex of many edges is a block's, after all
// others. Every vertex has its own part of the lists, and one thread that
// computes it; words of bits have one writer, except those of CSR rows, which
// are zero before and set by atomics. Where lists are sorted (sorted_lists.cuh)
// that is a pass of its own, between listing and computing.

#pragma once

#include "by_block.cuh"
#include "sorted_lists.cuh"

namespace sigps {

// Puts the message of one edge at a position of the lists, if there is one.
__device__ inline bool receive_listed(const Lease &lease,
                                      const NextSuperstep &now, uint32_t v,
                                      uint64_t edge, Message &message) {
  int parity = now.superstep & 1;
  uint32_t source = lease.in_edges.ends[edge];
  if (now.sender_filter != SENDERS_ALL && !is_set(lease.sent[parity], source))
    return false;
  uint32_t brought =
      sigps_deliver(&lease.in, now.superstep - 1,
                    HAS_RECORD ? &lease.records[parity][source] : nullptr,
                    source, v, edge, &message);
  keep_fault_of_edge(lease.in, now.superstep, source, v, brought);
  return brought & PASSES;
}

__device__ inline Inbox list_by_warp(const Lease &lease,
                                     const NextSuperstep &now, uint32_t v) {
  RowOfEdges row = row_of(lease.in_edges, v);
  int64_t begin = lease.offsets[v], end = begin;
  for (uint32_t base = 0; base < row.degree; base += 32) {
    uint32_t i = base + lane_id();
    Message message;
    bool passes = i < row.degree &&
                  receive_listed(lease, now, v,
                                 row.first + uint64_t(i) * row.step, message);
    uint32_t those = __ballot_sync(ALL_LANES, passes);
    if (passes)
      sigps_list(&lease.in, end + __popc(those & ((1u << lane_id()) - 1)),
                 &message);
    end += __popc(those);
  }
  __syncwarp();
  return listed(begin, end);
}

__device__ inline Inbox list_by_lane(const Lease &lease,
                                     const NextSuperstep &now, uint32_t v) {
  RowOfEdges row = row_of(lease.in_edges, v);
  int64_t begin = lease.offsets[v], end = begin;
  for (uint32_t i = 0; i < row.degree; i++) {
    Message message;
    if (receive_listed(lease, now, v, row.first + uint64_t(i) * row.step,
                       message))
      sigps_list(&lease.in, end++, &message);
  }
  return listed(begin, end);
}

#if SIGPS_BY_TEAM && !SIGPS_SORTED
// The same by a whole block. Ends with a barrier of it.
__device__ inline Inbox list_by_block(const Lease &lease,
                                      const NextSuperstep &now, uint32_t v) {
  __shared__ uint32_t of_warp[SIGPS_THREADS / 32];
  RowOfEdges row = row_of(lease.in_edges, v);
  int64_t begin = lease.offsets[v], end = begin;
  for (uint32_t base = 0; base < row.degree; base += SIGPS_THREADS) {
    uint32_t i = base + threadIdx.x;
    Message message;
    bool passes = i < row.degree &&
                  receive_listed(lease, now, v,
                                 row.first + uint64_t(i) * row.step, message);
    uint32_t those = __ballot_sync(ALL_LANES, passes);
    if (lane_id() == 0)
      of_warp[threadIdx.x / 32] = __popc(those);
    __syncthreads();
    uint32_t before = __popc(those & ((1u << lane_id()) - 1)), all = 0;
    for (uint32_t warp = 0; warp < SIGPS_THREADS / 32; warp++) {
      before += warp < threadIdx.x / 32 ? of_warp[warp] : 0;
      all += of_warp[warp];
    }
    if (passes)
      sigps_list(&lease.in, end + before, &message);
    end += all;
    __syncthreads();
  }
  return listed(begin, end);
}
#endif

#if SIGPS_SORTED
// The list of v, before it is sorted; none of a vertex that has retired.
__device__ inline Inbox unsorted_list(const Lease &lease, uint32_t v) {
  if (v >= lease.num_owned || lease.status[v] == RETIRED)
    return listed(0, 0);
  return listed(lease.offsets[v], lease.list_ends[v]);
}

// Lists and sorts the messages of all vertices.
__device__ inline void list_all(const Lease &lease, const NextSuperstep &now,
                                uint32_t &generation) {
  uint32_t warps = threads_of_grid() / 32;
  uint32_t num_warp_rows = min(lease.in_edges.num_csr_rows, lease.num_owned);
  for (uint32_t v = spread_warp(); v < num_warp_rows; v += warps) {
    if (lease.status[v] == RETIRED)
      continue;
    Inbox inbox = list_by_warp(lease, now, v);
    if (lane_id() == 0)
      lease.list_ends[v] = inbox.end;
  }
  for (uint32_t v = num_warp_rows + thread_of_grid(); v < lease.num_owned;
       v += threads_of_grid())
    if (lease.status[v] != RETIRED)
      lease.list_ends[v] = list_by_lane(lease, now, v).end;
  wait_for_all(&lease.control->barrier, generation);
  sort_lists(lease, now, [&](uint32_t v) { return unsorted_list(lease, v); });
  wait_for_all(&lease.control->barrier, generation);
}
#endif

// Whether a vertex has so many edges that it is a block's.
__device__ inline bool is_by_block(const Lease &lease, uint32_t v) {
#if SIGPS_BY_TEAM
  constexpr uint32_t OF_WARP_AT_MOST = 512;
  uint32_t edges = lease.in.in_degrees[v];
  if (SIGPS_WALKS)
    edges = max(edges, lease.in.out_degrees[v]);
  return v < lease.in_edges.num_csr_rows && edges > OF_WARP_AT_MOST;
#else
  return false;
#endif
}

__device__ inline void advance(const Lease &lease, const NextSuperstep &now,
                               uint32_t &generation, ThreadCounters &counted) {
#if SIGPS_SORTED
  if (now.sender_filter != SENDERS_NONE)
    list_all(lease, now, generation);
  auto list_of = [&](uint32_t v, bool) {
    return sorted(lease, unsorted_list(lease, v));
  };
#else
  auto list_of = [&](uint32_t v, bool is_by_warp) {
    return is_by_warp ? list_by_warp(lease, now, v)
                      : list_by_lane(lease, now, v);
  };
#endif
  uint32_t *sent = lease.sent[(now.superstep + 1) & 1];
  uint32_t warps = threads_of_grid() / 32;
  uint32_t num_warp_rows = min(lease.in_edges.num_csr_rows, lease.num_owned);
  for (uint32_t v = spread_warp(); v < num_warp_rows; v += warps) {
    uint8_t status = lease.status[v];
    if (status == RETIRED || is_by_block(lease, v))
      continue;
    Inbox inbox = listed(0, 0);
    if (now.sender_filter != SENDERS_NONE)
      inbox = list_of(v, true);
    bool runs = inbox.has || status == ACTIVE;
#if SIGPS_BY_TEAM
    bool sends = runs && run_vertex(lease, now, v, status, inbox, counted, 32);
    if (sends && lane_id() == 0)
#else
    if (run_vertices(lease, now, runs && lane_id() == 0, v, status, inbox,
                     counted))
#endif
      atomicOr(&sent[v / 32], 1u << v % 32);
  }
  uint32_t slices = (lease.num_owned - num_warp_rows + 31) / 32;
  for (uint32_t slice = spread_warp(); slice < slices; slice += warps) {
    uint32_t v = num_warp_rows + slice * 32 + lane_id();
    uint8_t status = v < lease.num_owned ? lease.status[v] : uint8_t(RETIRED);
    Inbox inbox = listed(0, 0);
    if (now.sender_filter != SENDERS_NONE && status != RETIRED)
      inbox = list_of(v, false);
    bool runs = inbox.has || status == ACTIVE;
    bool sends = run_vertices(lease, now, runs, v, status, inbox, counted);
    uint32_t bits = __ballot_sync(ALL_LANES, sends);
    if (lane_id() == 0)
      sent[(num_warp_rows + slice * 32) / 32] = bits;
  }
#if SIGPS_BY_TEAM
  for_long_ones(
      lease, [&](uint32_t v) { return is_by_block(lease, v); }, 0,
      [&](uint32_t v) {
        uint8_t status = lease.status[v];
        if (status == RETIRED)
          return;
        Inbox inbox = listed(0, 0);
        if (now.sender_filter != SENDERS_NONE)
#if SIGPS_SORTED
          inbox = list_of(v, false);
#else
          inbox = list_by_block(lease, now, v);
#endif
        bool runs = inbox.has || status == ACTIVE;
        bool sends = runs && run_vertex(lease, now, v, status, inbox, counted,
                                        blockDim.x);
        if (sends && threadIdx.x == 0)
          atomicOr(&sent[v / 32], 1u << v % 32);
      });
#endif
}

} // namespace sigps
