// Pull over rows that stay packed, where the first message decides: every
// vertex looks at the heads of its row, which are on the device, and only where
// these say nothing the row itself is read.
//
// Schedule: heads are thread-mapped. Then a block takes a chain of pages after
// the other: it leaves it where it is, if no row of it is wanted; warps read
// the rows where they lie, if these are few; else the block copies the pages
// (gather_packed.cuh). Words of bits have one writer in the first half, and are
// set by atomics in the second.

#pragma once

#include "gather_packed.cuh"

#if SIGPS_HEADS
namespace sigps {

constexpr uint32_t HEADS_AT_ONCE = 4;

// What it costs to read a row where it lies, beside its arcs: as much as to
// copy so many arcs, by an estimate.
constexpr uint32_t COST_OF_ROW = 256;

// The message of the first head that brings one. By one thread.
template <SenderFilter FILTER>
__device__ inline Inbox look_at_heads(const Lease &lease,
                                      const NextSuperstep &now,
                                      const Outbox &outbox, uint32_t v) {
  Occasion when{lease.in, now.superstep, v};
  const PackedRows &rows = lease.packed;
  const uint32_t *heads = rows.heads + packed::first_head(rows, v);
  uint32_t count = packed::num_heads(rows, v);
  Inbox inbox = empty_inbox();
  for (uint32_t first = 0; first < count && !inbox.has;
       first += HEADS_AT_ONCE) {
    uint32_t sources[HEADS_AT_ONCE];
    bool sent[HEADS_AT_ONCE];
#pragma unroll
    for (uint32_t k = 0; k < HEADS_AT_ONCE; k++)
      sources[k] = first + k < count ? heads[first + k] : packed::NO_TARGET;
#pragma unroll
    for (uint32_t k = 0; k < HEADS_AT_ONCE; k++)
      sent[k] = sources[k] != packed::NO_TARGET &&
                (FILTER == SENDERS_ALL || has_sent(outbox, sources[k]));
#pragma unroll
    for (uint32_t k = 0; k < HEADS_AT_ONCE; k++) {
      if (inbox.has || !sent[k])
        continue;
      Record record;
      if (HAS_RECORD)
        record = record_of(outbox, sources[k]);
      Slots value;
      if (when.passes(sigps_deliver(&lease.in, now.superstep - 1, &record,
                                    sources[k], v, 0, &value),
                      sources[k]))
        put(inbox, value, when);
    }
  }
  return inbox;
}

// Computes the vertices of which heads tell enough, and notes which other rows
// are wanted.
template <SenderFilter FILTER>
__device__ inline void
gather_heads(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
             ThreadCounters &counted) {
  const PackedRows &rows = lease.packed;
  uint32_t words = (rows.num_rows + 31) / 32;
  for (uint32_t word = spread_warp(); word < words;
       word += threads_of_grid() / 32) {
    uint32_t v = word * 32 + lane_id();
    bool is_mine = v < rows.num_rows;
    uint8_t status = is_mine ? lease.status[v] : uint8_t(RETIRED);
    uint32_t degree = status != RETIRED ? lease.in.in_degrees[v] : 0;
    Inbox inbox = empty_inbox();
    if (degree > 0)
      inbox = look_at_heads<FILTER>(lease, now, outbox, v);
    bool wants = !inbox.has && degree > packed::num_heads(rows, v);
    bool runs =
        !wants && (inbox.has ? status != RETIRED : is_mine && status == ACTIVE);
    bool sends = run_vertices(lease, now, runs, v, status, inbox, counted);
    set_sent(lease, now, word, sends,
             word * 32 + 32 > rows.num_rows); // with those behind the last row
    uint32_t those = __ballot_sync(ALL_LANES, wants);
    if (lane_id() == 0)
      rows.wanted[word] = those;
    if (wants) {
      uint32_t chain = rows.chains_of[word];
      while (chain + 1 < rows.num_chains &&
             rows.first_rows[rows.chains[chain + 1]] <= v)
        chain++;
      atomicAdd(&rows.wanted_arcs[chain], COST_OF_ROW + degree);
    }
  }
}

// Reads the wanted rows of a page where they lie. By a block.
template <SenderFilter FILTER>
__device__ inline void
gather_wanted_rows(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, uint32_t page, uint32_t first,
                   uint32_t end, ThreadCounters &counted) {
  const PackedRows &rows = lease.packed;
  uint32_t num_read = 0;
  for (uint32_t word = first / 32 + threadIdx.x / 32; word * 32 < end;
       word += blockDim.x / 32) {
    uint32_t v = word * 32 + lane_id();
    bool is_mine = v >= first && v < end && is_set(rows.wanted, v);
    uint32_t degree = is_mine ? lease.in.in_degrees[v] : 0;
    Inbox mine = empty_inbox();
    uint32_t waiting = __ballot_sync(ALL_LANES, is_mine);
    if (waiting == 0)
      continue;
    for (; waiting != 0; waiting &= waiting - 1) {
      uint32_t turn = __ffs(waiting) - 1, row = word * 32 + turn;
      uint32_t count = __shfl_sync(ALL_LANES, degree, turn);
      Inbox inbox = empty_inbox();
      num_read += packed::for_part_in_place<AT_ONCE>(
          rows, page, part_of(rows, row, count), 0, 1, groups_of_warp(),
          [&](const packed::Targets<AT_ONCE> &sources) {
            bring<FILTER>(lease, now, outbox, row, sources, inbox);
          });
      inbox = combine_warp(inbox, {lease.in, now.superstep, row});
      inbox = inbox_of(inbox, 0);
      if (lane_id() == turn)
        mine = inbox;
    }
    uint8_t status = is_mine ? lease.status[v] : uint8_t(RETIRED);
    bool runs = is_mine && (mine.has || status == ACTIVE);
    bool sends = run_vertices(lease, now, runs, v, status, mine, counted);
    set_sent(lease, now, word, sends, true);
  }
  if (lane_id() == 0 && num_read != 0)
    atomicAdd(rows.num_read, static_cast<unsigned long long>(num_read));
}

template <SenderFilter FILTER>
__device__ inline void
gather_by_heads(const Lease &lease, const NextSuperstep &now,
                uint32_t &generation, ThreadCounters &counted) {
  if constexpr (FILTER == SENDERS_NONE) {
    compute_active(lease, now, counted);
    return;
  }
  const PackedRows &rows = lease.packed;
  Outbox outbox = outbox_of(lease, now);
  fill_shared_cache<FILTER>(outbox);
  gather_heads<FILTER>(lease, now, outbox, counted);
  wait_for_all(&lease.control->barrier, generation);
  __shared__ uint32_t next_chain, cost;
  for (;;) {
    if (threadIdx.x == 0) {
      next_chain = atomicAdd(&lease.control->next_block_row.value, 1);
      if (next_chain < rows.num_chains) {
        next_chain = rows.order[next_chain];
        cost = rows.wanted_arcs[next_chain];
        rows.wanted_arcs[next_chain] = 0;
      }
    }
    __syncthreads();
    uint32_t chain = next_chain, arcs = cost;
    __syncthreads();
    if (chain >= rows.num_chains)
      break;
    uint32_t page = rows.chains[chain + 1] - 1;
    if (arcs == 0) {
      packed::leave_out(rows, rows.chains[chain], page + 1);
      continue;
    }
    uint32_t first = rows.first_rows[rows.chains[chain]];
    bool spans = page != rows.chains[chain];
    uint32_t num_arcs = rows.fronts[rows.first_fronts[page] + 2];
    bool is_whole = arcs > num_arcs || (spans && is_set(rows.wanted, first));
#if SIGPS_FED
    is_whole |= packed::is_fed(rows, page);
#endif
    if (is_whole) {
      gather_chain<FILTER, WANTED_ROWS>(lease, now, outbox, chain, counted);
      continue;
    }
    if (threadIdx.x == 0)
      packed::stamp_chain(rows, chain, stamp_of(now));
    gather_wanted_rows<FILTER>(lease, now, outbox, page, first + spans,
                               rows.first_rows[page + 1], counted);
  }
  compute_without_rows(lease, now, counted);
}

} // namespace sigps
#endif
