// Push: the listed senders combine into their targets' inboxes; then the
// vertices that got a message compute.
//
// Schedule: a sender with many edges by pieces, a warp each; of the others up
// to 32 by a warp, whose lanes divide all their edges evenly. Inboxes are
// combined by atomics; the first message of a vertex lists it, once.

#pragma once

#include "gather.cuh"

namespace sigps {

// Appends what the lanes have to a list.
template <class T>
__device__ inline void append(T *list, uint32_t *count, bool appends,
                              const T &value) {
  uint32_t those = __ballot_sync(ALL_LANES, appends);
  if (those == 0)
    return;
  uint32_t first = 0;
  if (lane_id() == 0)
    first = atomicAdd(count, __popc(those));
  first = __shfl_sync(ALL_LANES, first, 0);
  if (appends)
    list[first + __popc(those & ((1u << lane_id()) - 1))] = value;
}

// Lists the lanes' senders for the superstep that reads them.
__device__ inline void append_senders(const Lease &lease, uint32_t *num_senders,
                                      uint32_t *num_hubs, bool sends,
                                      uint32_t v) {
  bool is_hub = sends && lease.out_edges.degrees[v] > HUB_DEGREE;
  append(lease.senders, num_senders, sends && !is_hub, v);
  append(lease.hubs, num_hubs, is_hub, v);
}

#if SIGPS_NEUTRAL
__device__ inline void prefetch(const void *at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Where messages go: the superstep that reads them, and its inboxes.
struct Route {
  int64_t arrival;
  uint32_t inbox;
};

// Whether a target is one of this rank's. Only along packed rows it may be a
// ghost (crossing.cuh).
__device__ inline bool is_owned(const Lease &lease, uint32_t target) {
  return SIGPS_PACKED != 4 || target < lease.num_owned;
}

// Sends along one edge. Returns whether it is its target's first message. Loads
// are issued before it is known whether they are needed. LOOKS: reads a bit
// that may be set before setting it, which pays where there are many messages.
template <bool LOOKS>
__device__ inline bool send_with(const Arguments &arguments, const Lease &lease,
                                 const NextSuperstep &now, const Route &route,
                                 uint32_t source, uint64_t position,
                                 uint32_t target) {
  uint32_t bit = 1u << target % 32;
  uint32_t *word = &lease.touched[route.inbox][target / 32];
  uint32_t was_touched =
      LOOKS ? *reinterpret_cast<volatile uint32_t *>(word) & bit : 0;
  bool has_retired = now.any_retired && is_owned(lease, target) &&
                     lease.status[target] == RETIRED;
  Slots value;
  uint32_t brought = sigps_deliver(
      &arguments, route.arrival - 1,
      HAS_RECORD ? &lease.records[route.arrival & 1][source] : nullptr, source,
      target, position, &value);
  Occasion when{lease.out, route.arrival, target};
  if (has_retired || !when.passes(brought, source))
    return false;
  combine_in_memory(&lease.inboxes[route.inbox][target], value, when);
  if (was_touched)
    return false;
  if (is_owned(lease, target))
    prefetch(&lease.in.out_degrees[target]); // it will compute
  return !(atomicOr(word, bit) & bit);
}

template <bool LOOKS>
__device__ inline bool send(const Lease &lease, const NextSuperstep &now,
                            const Route &route, uint32_t source,
                            uint64_t position, uint32_t target) {
  return send_with<LOOKS>(lease.out, lease, now, route, source, position,
                          target);
}

// Lists a target that got its first message. A full scan finds them by their
// bits: many warps would wait for one counter in vain.
__device__ inline void list_target(const Lease &lease, const NextSuperstep &now,
                                   uint32_t *num_targets, bool is_first,
                                   uint32_t target) {
  if (!now.full_scan)
    append(lease.targets, num_targets, is_first && is_owned(lease, target),
           target);
}

// Edges of a hub that a warp takes at a time.
constexpr uint32_t HUB_PIECE = 128;

// Pieces of all hubs go around among all warps, so that one of a million edges
// is not a block's: a warp looks at the degrees of 32 hubs at once, to see
// which have a piece for it.
__device__ inline void scatter_hubs(const Lease &lease,
                                    const NextSuperstep &now,
                                    uint32_t *num_targets, uint32_t count) {
  Route route{now.superstep, now.inbox_at};
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  for (uint32_t begin = 0; begin < count; begin += 32) {
    uint32_t k = begin + lane_id();
    uint32_t hub = k < count ? lease.hubs[k] : 0;
    uint32_t degree = k < count ? lease.out_edges.degrees[hub] : 0;
    // Where a hub's pieces begin among warps, and which is this warp's first.
    uint32_t at = uint32_t(uint64_t(k) * (HUB_DEGREE / HUB_PIECE + 1) % warps);
    uint32_t mine = warp >= at ? warp - at : warp + warps - at;
    uint32_t those =
        __ballot_sync(ALL_LANES, uint64_t(mine) * HUB_PIECE < uint64_t(degree));
    for (; those != 0; those &= those - 1) {
      uint32_t lane = __ffs(those) - 1;
      uint32_t source = __shfl_sync(ALL_LANES, hub, lane);
      uint64_t piece = __shfl_sync(ALL_LANES, mine, lane);
      RowOfEdges row = row_of(lease.out_edges, source);
      for (; piece * HUB_PIECE < row.degree; piece += warps)
        for (uint32_t base = 0; base < HUB_PIECE; base += 32) {
          uint64_t i = piece * HUB_PIECE + base + lane_id();
          bool is_first = false;
          uint32_t target = 0;
          if (i < row.degree) {
            uint64_t position = row.first + i * row.step;
            target = lease.out_edges.ends[position];
            is_first = send<true>(lease, now, route, source, position, target);
          }
          list_target(lease, now, num_targets, is_first, target);
        }
    }
  }
}

// Lanes of a warp have a sender each, or an empty row; all of them divide the
// edges. Calls list(is_first, target) with all lanes.
template <bool LOOKS, class List>
__device__ inline void
scatter_tile(const Lease &lease, const NextSuperstep &now, const Route &route,
             uint32_t mine, const RowOfEdges &row, List list) {
  uint32_t upto = scan_warp(row.degree); // edges of this sender, those before
  uint32_t total = __shfl_sync(ALL_LANES, upto, 31);
  for (uint32_t base = 0; base < total; base += 32) {
    uint32_t i = base + lane_id();
    uint32_t owner = 0; // the first lane whose edges reach beyond i
#pragma unroll
    for (uint32_t step = 16; step > 0; step /= 2)
      owner += __shfl_sync(ALL_LANES, upto, owner + step - 1) <= i ? step : 0;
    owner = owner < 31 ? owner : 31;
    uint32_t source = __shfl_sync(ALL_LANES, mine, owner);
    uint64_t first = __shfl_sync(ALL_LANES, row.first, owner);
    uint32_t step = __shfl_sync(ALL_LANES, row.step, owner);
    uint32_t of_earlier = __shfl_sync(ALL_LANES, upto - row.degree, owner);
    bool is_first = false;
    uint32_t target = 0;
    if (i < total) {
      uint64_t position = first + uint64_t(i - of_earlier) * step;
      target = lease.out_edges.ends[position];
      is_first = send<LOOKS>(lease, now, route, source, position, target);
    }
    list(is_first, target);
  }
}

// How many vertices a warp takes, a power of two: few with many edges get a
// warp each, and others so many that a warp has `least` edges.
__device__ inline uint32_t width_of_tiles(const NextSuperstep &now,
                                          uint32_t count, uint32_t least) {
  uint32_t warps = threads_of_grid() / 32, width = 1;
  while (width < 32 &&
         (width * warps < count || width * now.mean_degree < least))
    width *= 2;
  return width;
}

// What the listed senders send. Calls list(is_first, target) with all lanes.
template <bool LOOKS, class List>
__device__ inline void
scatter_listed(const Lease &lease, const NextSuperstep &now,
               const uint32_t *senders, uint32_t count, List list) {
  Route route{now.superstep, now.inbox_at};
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  uint32_t width = width_of_tiles(now, count, 8);
  for (uint64_t begin = uint64_t(warp) * width; begin < count;
       begin += uint64_t(warps) * width) {
    uint64_t at = begin + lane_id();
    bool is_mine = lane_id() < width && at < count;
    uint32_t mine = is_mine ? senders[at] : 0;
    scatter_tile<LOOKS>(lease, now, route, mine,
                        is_mine ? row_of(lease.out_edges, mine) : EMPTY_ROW,
                        list);
  }
}

__device__ inline void scatter(const Lease &lease, const NextSuperstep &now,
                               uint32_t *num_targets, uint32_t count,
                               uint32_t num_hubs) {
  scatter_hubs(lease, now, num_targets, num_hubs);
  auto list = [&](bool is_first, uint32_t target) {
    list_target(lease, now, num_targets, is_first, target);
  };
  scatter_listed<true>(lease, now, lease.senders, count, list);
}

// Takes a vertex's message out of its inbox, which is left as it was before.
__device__ inline Inbox open(const Lease &lease, const NextSuperstep &now,
                             uint32_t v) {
  Slots *at = &lease.inboxes[now.inbox_at][v];
  Inbox inbox{*at, 1};
  *at = neutral_slots();
  lease.touched[now.inbox_at][v / 32] = 0; // all that are set in it end here
  return inbox;
}

// The same, and computes.
__device__ inline bool open_and_run(const Lease &lease,
                                    const NextSuperstep &now, uint32_t v,
                                    ThreadCounters &counted) {
  uint8_t status = lease.status[v];
  Inbox inbox = open(lease, now, v);
  return status != RETIRED && run_vertex(lease, now, v, status, inbox, counted);
}

#if SIGPS_BY_TEAM
// The same where vertices of many edges are the warp's: all its lanes call,
// with a vertex each, that got a message, is active without one, or neither.
__device__ inline bool open_and_run_all(const Lease &lease,
                                        const NextSuperstep &now, uint32_t v,
                                        bool has_message, bool is_active,
                                        ThreadCounters &counted) {
  uint8_t status = has_message ? lease.status[v] : uint8_t(ACTIVE);
  Inbox inbox = has_message ? open(lease, now, v) : empty_inbox();
  bool runs = has_message ? status != RETIRED : is_active;
  return run_vertices(lease, now, runs, v, status, inbox, counted);
}
#endif

// Computes the vertices that got a message, and lists those that send. Calls
// visit(v) for these.
template <class Visit>
__device__ inline void
compute_targets(const Lease &lease, const NextSuperstep &now, uint32_t count,
                uint32_t *num_senders, uint32_t *num_hubs,
                ThreadCounters &counted, Visit visit) {
  uint32_t rounds = (count + threads_of_grid() - 1) / threads_of_grid();
  for (uint32_t round = 0; round < rounds; round++) {
    uint32_t i = round * threads_of_grid() + spread_warp() * 32 + lane_id();
    bool sends = false;
    uint32_t v = 0;
#if SIGPS_BY_TEAM
    v = i < count ? lease.targets[i] : 0;
    sends = open_and_run_all(lease, now, v, i < count, false, counted);
    if (sends) {
      uint64_t first = SIGPS_PACKED ? 0 : row_of(lease.out_edges, v).first;
#else
    if (i < count) {
      v = lease.targets[i];
      uint64_t first = SIGPS_PACKED ? 0 : row_of(lease.out_edges, v).first;
      sends = open_and_run(lease, now, v, counted);
#endif
      if (sends) { // the next superstep walks them, if it is a push
        if (!SIGPS_PACKED)
          prefetch(&lease.out_edges.ends[first]);
        visit(v);
      }
    }
    append_senders(lease, num_senders, num_hubs, sends, v);
  }
}

// Full scan: computes the vertices that got a message or are active, all in
// turn; writes the senders as bits, and lists them, too, where all are owned.
// Mostly few compute, so several words are loaded at once.
__device__ inline void scan_all(const Lease &lease, const NextSuperstep &now,
                                ThreadCounters &counted) {
  uint32_t words = (lease.num_owned + 31) / 32;
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  for (uint32_t first = warp; first < words; first += SLICES_AT_ONCE * warps) {
    uint32_t has_message = 0, is_active = 0; // bits of this lane's vertices
#pragma unroll
    for (uint32_t k = 0; k < SLICES_AT_ONCE; k++) {
      uint32_t word = first + k * warps, v = word * 32 + lane_id();
      if (word < words && v < lease.num_owned) {
        uint32_t touched = lease.touched[now.inbox_at][word];
        has_message |= (touched >> lane_id() & 1) << k;
        is_active |= uint32_t(lease.status[v] == ACTIVE) << k;
      }
    }
    __syncwarp(); // a lane that computes zeroes its word
#pragma unroll 1
    for (uint32_t k = 0; k < SLICES_AT_ONCE; k++) {
      uint32_t word = first + k * warps, v = word * 32 + lane_id();
      if (word >= words)
        break;
      bool sends = false;
#if SIGPS_BY_TEAM
      sends =
          open_and_run_all(lease, now, v < lease.num_owned ? v : 0,
                           has_message >> k & 1, is_active >> k & 1, counted);
#else
      if (has_message >> k & 1)
        sends = open_and_run(lease, now, v, counted);
      else if (is_active >> k & 1)
        sends = run_vertex(lease, now, v, ACTIVE, empty_inbox(), counted);
#endif
      uint32_t bits = __ballot_sync(ALL_LANES, sends);
      if (lane_id() == 0)
        lease.sent[(now.superstep + 1) & 1][word] = bits;
      if (now.full_scan && bits != 0 && scan_lists(lease))
        append_senders(lease, &lease.control->num_new.value,
                       &lease.control->num_new_hubs.value, sends, v);
    }
  }
}
#endif

// Makes lists of bits: the superstep before was a pull or a full scan, this one
// is a push. A lane reads every 32nd of its warp's words, all of them at once.
// Packed rows of ghosts are with their owners, who push along them.
__device__ inline void list_senders(const Lease &lease,
                                    const NextSuperstep &now) {
  const uint32_t *bits = lease.sent[now.superstep & 1];
  uint32_t words =
      ((SIGPS_PACKED == 4 ? lease.num_owned : lease.num_lids) + 31) / 32;
  uint32_t warp = thread_of_grid() / 32, warps = threads_of_grid() / 32;
  for (uint64_t first = warp; first < words; first += 32ull * warps) {
    uint64_t mine = first + uint64_t(lane_id()) * warps;
    uint32_t read = mine < words ? bits[mine] : 0;
    uint32_t those = __ballot_sync(ALL_LANES, read != 0);
    for (; those != 0; those &= those - 1) {
      uint32_t lane = __ffs(those) - 1;
      uint32_t word = __shfl_sync(ALL_LANES, uint32_t(mine), lane);
      bool sends = __shfl_sync(ALL_LANES, read, lane) >> lane_id() & 1;
      append_senders(lease, &lease.control->num_senders.value,
                     &lease.control->num_hubs.value, sends,
                     word * 32 + lane_id());
    }
  }
}

// Makes bits of a list; all bits are empty before.
__device__ inline void mark_senders(const Lease &lease,
                                    const NextSuperstep &now) {
  int parity = now.superstep & 1;
  const uint32_t *lists[2] = {lease.senders, lease.hubs};
  uint32_t counts[2] = {now.num_listed, now.num_hubs};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = thread_of_grid(); i < counts[list];
         i += threads_of_grid()) {
      uint32_t v = lists[list][i];
      atomicOr(&lease.sent[parity][v / 32], 1u << v % 32);
    }
}

__device__ inline void clear_bits(uint32_t *bits, uint32_t num_owned) {
  for (uint32_t i = thread_of_grid(); i < (num_owned + 31) / 32;
       i += threads_of_grid())
    bits[i] = 0;
}

} // namespace sigps
