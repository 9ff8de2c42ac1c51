// Pull over rows that stay packed (packed_rows.cuh): every owned vertex
// combines its in-neighbours' records and computes. Writes the senders as bits.
//
// Schedule: a block takes a chain of pages after the other, so some copy pages
// while others unpack and compute. In a page warps draw tasks: the chunks of
// rows of over 1024 edges, and some rows of over 32. What is left is
// thread-mapped; every vertex has one thread that computes it. Words of bits
// have one writer, except those at the ends of chains, which are zero before
// and set by atomics. Pages all of whose vertices have retired stay where they
// are. With SIGPS_PAGE_TURNS a page that is open is computed up to so many
// times, of a contraction whose records are written where they are read (one
// outbox for both parities). Where a pull stops early, gather_heads.cuh says
// which rows are wanted; where messages are listed, lists_packed.cuh reads the
// rows, and where they are grouped by key, grouped_packed.cuh.

#pragma once

#include "grouped_packed.cuh"
#include "lists_packed.cuh"
#include "walk_packed.cuh"

#if SIGPS_PACKED
namespace sigps {

static_assert(!SIGPS_EARLY_EXIT && !SIGPS_BY_WARP && !SIGPS_BY_TEAM,
              "what is read of a row is all of it");
static_assert(sizeof(Slots) <= 64, "packed_places.py: MOST_SLOTS_BYTES");

#ifndef SIGPS_PAGE_TURNS
#define SIGPS_PAGE_TURNS 1
#endif

constexpr uint32_t LONG_ROW = SIGPS_SORTED    ? 1 << 11
                              : SIGPS_LISTED  ? 1 << 14
                              : SIGPS_GROUPED ? 1 << 12
                                              : 1024;
constexpr uint32_t SHORT_ROW = 32;
#if SIGPS_GROUPED
constexpr uint32_t MOST_OF_THREAD = LANE_DEGREE;
#else
constexpr uint32_t MOST_OF_THREAD = SHORT_ROW;
#endif
constexpr uint32_t MOST_LONG_ROWS = (1 << 18) / LONG_ROW; // of a page

// What the row that spans pages brought; that and other long rows of a page,
// whose chunks are tasks; and how many tasks warps have drawn.
struct LongRows {
  Inbox of_span;
  uint32_t rows[MOST_LONG_ROWS + 1];
  uint32_t first_tasks[MOST_LONG_ROWS + 2];
  uint32_t count;
  uint32_t has_medium;
  uint32_t next_chunk, next_task;
};

// Which rows of a pull are read: those of vertices that have not retired, or of
// these the ones that heads left open.
enum Rows : uint32_t { ALL_ROWS, WANTED_ROWS };

template <Rows ROWS>
__device__ inline bool is_read(const Lease &lease, uint32_t v) {
  return ROWS == WANTED_ROWS ? is_set(lease.packed.wanted, v)
                             : lease.status[v] != RETIRED;
}

// What a superstep stamps chains with.
__device__ inline uint32_t stamp_of(const NextSuperstep &now) {
  return uint32_t(now.superstep) + 1;
}

// Room for the groups of rows that a warp reads where they lie.
__device__ inline uint2 *groups_of_warp() {
  __shared__ uint2 groups[SIGPS_THREADS / 32][packed::GROUPS_IN_PLACE];
  return groups[threadIdx.x / 32];
}

#if !SIGPS_LISTED && !SIGPS_GROUPED
template <SenderFilter FILTER>
__device__ inline void
bring(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
      uint32_t v, const packed::Targets<AT_ONCE> &sources, Inbox &inbox) {
  for_brought<FILTER>(lease, now, outbox, v, sources, [&](const Slots &value) {
    put(inbox, value, {lease.in, now.superstep, v});
  });
}
#endif

// Sets the bits of a word of vertices; by a warp.
__device__ inline void set_sent(const Lease &lease, const NextSuperstep &now,
                                uint32_t word, bool sends, bool is_shared) {
  uint32_t bits = __ballot_sync(ALL_LANES, sends);
  uint32_t *sent = &lease.sent[(now.superstep + 1) & 1][word];
  if (lane_id() != 0)
    return;
  if (!is_shared)
    *sent = bits;
  else if (bits != 0)
    atomicOr(sent, bits);
}

// Where the inboxes of a page's rows are that are not thread-mapped, and of
// each chunk of the long ones: rows have 32 gaps at least, and far more than 32
// for each chunk.
__device__ inline Inbox &inbox_of_gap(const PackedRows &rows,
                                      uint32_t first_gap) {
  uint32_t *scratch = rows.scratch + blockIdx.x * rows.scratch_words +
                      rows.page_words + rows.group_words;
  return reinterpret_cast<Inbox *>(scratch)[first_gap / 32];
}

#if SIGPS_LISTED
// Where the list of a row begins, of the last page of a chain.
__device__ inline int64_t begin_of_list(const PackedRows &rows,
                                        const packed::Part &part,
                                        uint32_t before) {
  return int64_t(blockIdx.x * rows.list_places) + before + part.part +
         part.first_gap;
}

// What a row of a page brings. `before`: edges of the chain before the page.
template <SenderFilter FILTER>
__device__ inline Inbox read_row(const Lease &lease, const NextSuperstep &now,
                                 const Outbox &outbox, const packed::Page &page,
                                 const packed::Part &part, uint32_t before) {
  int64_t begin = begin_of_list(lease.packed, part, before);
  int64_t end = list_row<FILTER>(lease, now, outbox, page, part, begin);
  return list_of(lease, now, part.row, begin, end, Thread{});
}

template <SenderFilter FILTER>
__device__ inline Inbox
read_row_by_warp(const Lease &lease, const NextSuperstep &now,
                 const Outbox &outbox, const packed::Page &page,
                 const packed::Part &part, uint32_t before) {
  int64_t begin = begin_of_list(lease.packed, part, before);
  int64_t end = list_row_by_warp<FILTER>(lease, now, outbox, page, part, begin);
  return list_of(lease, now, part.row, begin, end, Warp{});
}

// Lists what a page has of the row that spans pages behind what those before
// had. By a block.
template <SenderFilter FILTER>
__device__ inline void
read_part_by_block(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, const packed::Page &page,
                   const packed::Part &part, Inbox &inbox) {
  int64_t begin = int64_t(blockIdx.x * lease.packed.list_places);
  int64_t end = inbox.has ? inbox.end : begin;
  __syncthreads(); // all have read where it ends
  end = list_part_by_block<FILTER>(lease, now, outbox, page, part, end);
  if (threadIdx.x == 0)
    inbox = listed(begin, end);
}

#if SIGPS_SORTED
// Sorts the list of the row that spans pages. By a block.
__device__ inline void sort_span(const Lease &lease, const NextSuperstep &now,
                                 uint32_t v, Inbox &inbox) {
  __syncthreads();
  Inbox all = list_of(lease, now, v, inbox.begin, inbox.end, Block{});
  __syncthreads(); // all have read where it lies
  if (threadIdx.x == 0)
    inbox = all;
}
#endif

// Lists the long rows of a page from number `first` on. By a block.
template <SenderFilter FILTER>
__device__ inline void
read_long_rows(const Lease &lease, const NextSuperstep &now,
               const Outbox &outbox, const packed::Page &page, uint32_t first,
               uint32_t before, LongRows &long_rows) {
  for (uint32_t i = first; i < long_rows.count; i++) {
    uint32_t v = long_rows.rows[i];
    packed::Part part = part_of(lease.packed, v, lease.in.in_degrees[v]);
    int64_t begin = begin_of_list(lease.packed, part, before);
    int64_t end =
        list_part_by_block<FILTER>(lease, now, outbox, page, part, begin);
    Inbox inbox = list_of(lease, now, v, begin, end, Block{});
    if (threadIdx.x == 0)
      inbox_of_gap(lease.packed, part.first_gap) = inbox;
  }
}
#elif SIGPS_GROUPED
// What a row of a page brings. By a thread, that of up to LANE_DEGREE edges.
template <SenderFilter FILTER>
__device__ inline Inbox read_row(const Lease &lease, const NextSuperstep &now,
                                 const Outbox &outbox, const packed::Page &page,
                                 const packed::Part &part, uint32_t) {
  return inbox_of(count_row_by_lane<FILTER>(lease, now, outbox, page, part));
}

template <SenderFilter FILTER>
__device__ inline Inbox
read_row_by_warp(const Lease &lease, const NextSuperstep &now,
                 const Outbox &outbox, const packed::Page &page,
                 const packed::Part &part, uint32_t) {
  return inbox_of(
      count_row<FILTER, CountingWarp>(lease, now, outbox, page, part));
}

// Counts the long rows of a page from number `first` on. By a block.
template <SenderFilter FILTER>
__device__ inline void
read_long_rows(const Lease &lease, const NextSuperstep &now,
               const Outbox &outbox, const packed::Page &page, uint32_t first,
               uint32_t, LongRows &long_rows) {
  for (uint32_t i = first; i < long_rows.count; i++) {
    uint32_t v = long_rows.rows[i];
    packed::Part part = part_of(lease.packed, v, lease.in.in_degrees[v]);
    Keyed best =
        count_row<FILTER, CountingBlock>(lease, now, outbox, page, part);
    if (threadIdx.x == 0)
      inbox_of_gap(lease.packed, part.first_gap) = inbox_of(best);
  }
}
#else
template <SenderFilter FILTER>
__device__ inline Inbox read_row(const Lease &lease, const NextSuperstep &now,
                                 const Outbox &outbox, const packed::Page &page,
                                 const packed::Part &part, uint32_t) {
  Inbox inbox = empty_inbox();
  packed::for_targets<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        bring<FILTER>(lease, now, outbox, part.row, sources, inbox);
      });
  return inbox;
}

template <SenderFilter FILTER>
__device__ inline Inbox
read_row_by_warp(const Lease &lease, const NextSuperstep &now,
                 const Outbox &outbox, const packed::Page &page,
                 const packed::Part &part, uint32_t) {
  Inbox inbox = empty_inbox();
  packed::for_targets_by_warp<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        bring<FILTER>(lease, now, outbox, part.row, sources, inbox);
      });
  return combine_warp(inbox, {lease.in, now.superstep, part.row});
}

// Combines what a page has of the row that spans pages with what those before
// had. By a block.
template <SenderFilter FILTER>
__device__ inline void
read_part_by_block(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, const packed::Page &page,
                   const packed::Part &part, Inbox &all) {
  Occasion when{lease.in, now.superstep, part.row};
  Inbox inbox = empty_inbox();
  packed::for_targets_by_block<AT_ONCE>(
      lease.packed, page, part, [&](const packed::Targets<AT_ONCE> &sources) {
        bring<FILTER>(lease, now, outbox, part.row, sources, inbox);
      });
  inbox = combine_block(inbox, when);
  if (threadIdx.x == 0)
    put(all, inbox, when);
}

// Combines the long rows of a page from number `first` on. By a block.
template <SenderFilter FILTER>
__device__ inline void
read_long_rows(const Lease &lease, const NextSuperstep &now,
               const Outbox &outbox, const packed::Page &page, uint32_t first,
               uint32_t, LongRows &long_rows) {
  const PackedRows &rows = lease.packed;
  uint32_t count = long_rows.count;
  if (threadIdx.x < 32) {
    uint32_t before = 0;
    for (uint32_t i = first + lane_id(); i - lane_id() < count; i += 32) {
      uint32_t chunks = 0;
      if (i < count) {
        uint32_t v = long_rows.rows[i];
        chunks = packed::chunks_of(part_of(rows, v, lease.in.in_degrees[v]));
      }
      uint32_t end = before + scan_warp(chunks);
      if (i < count)
        long_rows.first_tasks[i] = end - chunks;
      before = __shfl_sync(ALL_LANES, end, 31);
    }
    if (lane_id() == 0)
      long_rows.first_tasks[count] = before;
  }
  __syncthreads();
  for (;;) {
    uint32_t task = take(&long_rows.next_chunk);
    if (task >= long_rows.first_tasks[count])
      break;
    uint32_t i = first; // the last that begins at the task or before
    for (uint32_t end = count; end - i > 1;) {
      uint32_t middle = i + (end - i) / 2;
      if (long_rows.first_tasks[middle] <= task)
        i = middle;
      else
        end = middle;
    }
    uint32_t v = long_rows.rows[i], number = task - long_rows.first_tasks[i];
    packed::Part part = part_of(rows, v, lease.in.in_degrees[v]);
    Inbox inbox = empty_inbox();
    packed::for_chunk_by_warp<AT_ONCE>(
        rows, page, part, number, [&](const packed::Targets<AT_ONCE> &sources) {
          bring<FILTER>(lease, now, outbox, v, sources, inbox);
        });
    inbox = combine_warp(inbox, {lease.in, now.superstep, v});
    if (lane_id() == 0)
      inbox_of_gap(rows, part.first_gap + 32 * number) = inbox;
  }
  __syncthreads();
  for (uint32_t i = first + threadIdx.x / 32; i < count; i += blockDim.x / 32) {
    uint32_t v = long_rows.rows[i];
    Occasion when{lease.in, now.superstep, v};
    uint32_t chunks = long_rows.first_tasks[i + 1] - long_rows.first_tasks[i];
    Inbox inbox = empty_inbox();
    for (uint32_t number = lane_id(); number < chunks; number += 32)
      put(inbox, inbox_of_gap(rows, rows.first_gaps[v] + 32 * number), when);
    inbox = combine_warp(inbox, when);
    __syncwarp(); // the first chunk's was there
    if (lane_id() == 0)
      inbox_of_gap(rows, rows.first_gaps[v]) = inbox;
  }
}
#endif

// Combines the warp-mapped rows of a page. By a block, whose warps draw tasks.
template <SenderFilter FILTER, Rows ROWS>
__device__ inline void
gather_medium_rows(const Lease &lease, const NextSuperstep &now,
                   const Outbox &outbox, const packed::Page &page,
                   uint32_t first, uint32_t end, uint32_t before,
                   uint32_t *next_task) {
  uint32_t of_task = 1;
  while (of_task < 32 && (end - first) / of_task > blockDim.x / 4)
    of_task *= 2;
  for (;;) {
    uint32_t begin = first + take(next_task) * of_task, v = begin + lane_id();
    if (begin >= end)
      break;
    uint32_t degree = 0;
    if (lane_id() < of_task && v < end && is_read<ROWS>(lease, v))
      degree = lease.in.in_degrees[v];
    uint32_t waiting =
        __ballot_sync(ALL_LANES, degree > SHORT_ROW && degree <= LONG_ROW);
    for (; waiting != 0; waiting &= waiting - 1) {
      uint32_t turn = __ffs(waiting) - 1, row = begin + turn;
      uint32_t count = __shfl_sync(ALL_LANES, degree, turn);
      Inbox inbox = read_row_by_warp<FILTER>(
          lease, now, outbox, page, part_of(lease.packed, row, count), before);
      if (lane_id() == 0)
        inbox_of_gap(lease.packed, lease.packed.first_gaps[row]) = inbox;
    }
  }
}

// Computes the rows of a page, and combines those that are thread-mapped. By a
// block.
template <SenderFilter FILTER, Rows ROWS>
__device__ inline void
compute_page(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
             const packed::Page &page, uint32_t first, uint32_t end,
             uint32_t before, const LongRows &long_rows, bool spans,
             ThreadCounters &counted) {
  const PackedRows &rows = lease.packed;
  for (uint32_t word = first / 32 + threadIdx.x / 32; word * 32 < end;
       word += blockDim.x / 32) {
    uint32_t v = word * 32 + lane_id();
    bool is_mine =
        v >= first && v < end && (ROWS == ALL_ROWS || is_set(rows.wanted, v));
    uint8_t status = is_mine ? lease.status[v] : uint8_t(RETIRED);
    uint32_t degree = status != RETIRED ? lease.in.in_degrees[v] : 0;
    Inbox mine = empty_inbox();
    if (spans && v == first) {
      mine = long_rows.of_span;
    } else if (degree > SHORT_ROW) {
      mine = inbox_of_gap(rows, rows.first_gaps[v]);
    } else if (degree > 0 && degree <= MOST_OF_THREAD) {
      mine = read_row<FILTER>(lease, now, outbox, page,
                              part_of(rows, v, degree), before);
    }
    if constexpr (MOST_OF_THREAD < SHORT_ROW) { // those between are the warp's
      bool waits = degree > MOST_OF_THREAD && degree <= SHORT_ROW &&
                   !(spans && v == first);
      uint32_t waiting = __ballot_sync(ALL_LANES, waits);
      for (; waiting != 0; waiting &= waiting - 1) {
        uint32_t turn = __ffs(waiting) - 1, row = word * 32 + turn;
        uint32_t count = __shfl_sync(ALL_LANES, degree, turn);
        Inbox found = read_row_by_warp<FILTER>(
            lease, now, outbox, page, part_of(rows, row, count), before);
        if (lane_id() == turn)
          mine = found;
      }
    }
    bool runs = is_mine && (mine.has ? status != RETIRED : status == ACTIVE);
#if SIGPS_WALKS
    bool sends = run_walkers(now, runs, v, status, mine, counted);
#else
    bool sends = run_vertices(lease, now, runs, v, status, mine, counted);
#endif
    set_sent(lease, now, word, sends,
             ROWS == WANTED_ROWS || word * 32 < first || word * 32 + 32 > end);
  }
}

// Whether no vertex of a chain is left that could get a message: then none of
// them sends. By a block.
__device__ inline bool has_retired(const Lease &lease, const NextSuperstep &now,
                                   uint32_t first, uint32_t end) {
  bool is_left = false;
  for (uint32_t v = first + threadIdx.x; v < end; v += blockDim.x)
    is_left |= lease.status[v] != RETIRED;
  if (__syncthreads_or(is_left))
    return false;
  for (uint32_t word = first / 32 + threadIdx.x / 32; word * 32 < end;
       word += blockDim.x / 32)
    set_sent(lease, now, word, false,
             word * 32 < first || word * 32 + 32 > end);
  return true;
}

__device__ inline LongRows &long_rows_of_block() {
  __shared__ LongRows long_rows;
  return long_rows;
}

#if SIGPS_WALKS
// Whether a vertex may have a message; one type, so that what unpacks stands
// once.
struct MayRun {
  const uint8_t *status;
  __device__ bool operator()(uint32_t v) const { return status[v] != RETIRED; }
};
#endif

// Combines and computes the rows of an open page, the last one of its chain.
// `before`: edges of the chain before it. By a block.
template <SenderFilter FILTER, Rows ROWS>
__device__ inline void
gather_page(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
            const packed::Page &open, uint32_t first, uint32_t end,
            uint32_t before, LongRows &long_rows, bool spans,
            ThreadCounters &counted) {
  if (threadIdx.x == 0)
    long_rows.has_medium = long_rows.next_chunk = long_rows.next_task = 0;
  __syncthreads();
  for (uint32_t v = first + spans + threadIdx.x; v < end; v += blockDim.x) {
    uint32_t degree = lease.in.in_degrees[v];
    if (degree > LONG_ROW && is_read<ROWS>(lease, v))
      long_rows.rows[atomicAdd(&long_rows.count, 1)] = v;
    else if (degree > SHORT_ROW)
      long_rows.has_medium = 1;
  }
  __syncthreads();
  if (long_rows.count > spans)
    read_long_rows<FILTER>(lease, now, outbox, open, spans, before, long_rows);
  if (long_rows.has_medium)
    gather_medium_rows<FILTER, ROWS>(lease, now, outbox, open, first + spans,
                                     end, before, &long_rows.next_task);
#if SIGPS_WALKS
  unpack_rows(lease, open, first + spans, end, MayRun{lease.status});
#endif
  __syncthreads();
  compute_page<FILTER, ROWS>(lease, now, outbox, open, first, end, before,
                             long_rows, spans, counted);
  __syncthreads();
}

#if SIGPS_PAGE_TURNS > 1
// The same, and again and again without a row that spans pages, from records
// that lie where they are read, until no vertex of the page changes. What is
// counted of senders is of the first turn: they are the same in all.
template <SenderFilter FILTER, Rows ROWS>
__device__ inline void
settle_page(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
            const packed::Page &open, uint32_t first, uint32_t end,
            uint32_t before, LongRows &long_rows, bool spans,
            ThreadCounters &counted) {
  for (uint32_t turn = 0; turn < SIGPS_PAGE_TURNS; turn++) {
    ThreadCounters of_turn = zero_counters();
    gather_page<FILTER, ROWS>(lease, now, outbox, open, first, end, before,
                              long_rows, spans, of_turn);
    bool has_changed = add_turn(lease, now, counted, of_turn, turn == 0);
    if (!__syncthreads_or(has_changed))
      break;
    first += spans;
    spans = false;
    if (threadIdx.x == 0)
      long_rows.count = 0;
  }
}
#endif

template <SenderFilter FILTER, Rows ROWS>
__device__ inline void
gather_chain(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
             uint32_t chain, ThreadCounters &counted) {
  LongRows &long_rows = long_rows_of_block();
  const PackedRows &rows = lease.packed;
  uint32_t page = rows.chains[chain], end_page = rows.chains[chain + 1];
  uint32_t first = rows.first_rows[page], end = rows.first_rows[end_page];
  bool spans = end_page - page > 1;
  if (ROWS == ALL_ROWS && now.retired_edges > 0 &&
      has_retired(lease, now, first, end)) {
    packed::leave_out(rows, page, end_page);
#if SIGPS_GROUPED
    if (spans)
      leave_out_span(rows, chain, stamp_of(now));
#endif
    return;
  }
  if (spans && !is_read<ROWS>(lease, first)) {
    packed::leave_out(rows, page, end_page - 1);
    page = end_page - 1;
#if SIGPS_GROUPED
    leave_out_span(rows, chain, stamp_of(now));
#endif
  }
  uint32_t degree = lease.in.in_degrees[first];
  uint32_t before = 0; // edges of the chain in pages before
  if (threadIdx.x == 0) {
    packed::stamp_chain(rows, chain, stamp_of(now));
    long_rows.count = spans;
    long_rows.rows[0] = first;
    long_rows.of_span = empty_inbox();
#if SIGPS_WALKS
    begin_chain(lease, first);
#endif
  }
  for (; page < end_page; page++) {
    packed::Page open = packed::open_page(rows, page);
    if (spans && is_read<ROWS>(lease, first)) {
      uint32_t arcs = min(degree - before, open.num_arcs);
#if SIGPS_WALKS
      unpack_part(lease, open, {first, 0, 0, arcs},
                  lease.in.out_offsets[first] + before);
#endif
#if SIGPS_GROUPED
      if (before == 0)
        begin_span(rows, chain, degree, stamp_of(now));
      count_part_of_span<FILTER>(lease, now, outbox, open, {first, 0, 0, arcs},
                                 chain, degree);
      if (page + 1 == end_page) {
        Keyed best = end_span(rows, chain, degree, stamp_of(now));
        if (threadIdx.x == 0)
          long_rows.of_span = inbox_of(best);
      }
#else
      read_part_by_block<FILTER>(lease, now, outbox, open, {first, 0, 0, arcs},
                                 long_rows.of_span);
#if SIGPS_SORTED
      if (page + 1 == end_page)
        sort_span(lease, now, first, long_rows.of_span);
#endif
#endif
      before += page + 1 < end_page ? arcs : 0;
    }
    if (page + 1 < end_page)
      continue;
#if SIGPS_PAGE_TURNS > 1
    settle_page<FILTER, ROWS>(lease, now, outbox, open, first, end, before,
                              long_rows, spans, counted);
#else
    gather_page<FILTER, ROWS>(lease, now, outbox, open, first, end, before,
                              long_rows, spans, counted);
#endif
  }
}

// Computes the vertices behind the last row.
__device__ inline void compute_without_rows(const Lease &lease,
                                            const NextSuperstep &now,
                                            ThreadCounters &counted) {
  uint32_t first = lease.packed.num_rows;
  for (uint32_t word = first / 32 + spread_warp(); word * 32 < lease.num_owned;
       word += threads_of_grid() / 32) {
    uint32_t v = word * 32 + lane_id();
    bool runs = v >= first && v < lease.num_owned && lease.status[v] == ACTIVE;
#if SIGPS_WALKS
    bool sends = run_walkers(now, runs, v, ACTIVE, empty_inbox(), counted);
#else
    bool sends =
        run_vertices(lease, now, runs, v, ACTIVE, empty_inbox(), counted);
#endif
    set_sent(lease, now, word, sends, word * 32 < first);
  }
}

#if SIGPS_WALKS
// Computes the vertices that are active, where nobody sent.
__device__ inline void walk_active(const Lease &lease, const NextSuperstep &now,
                                   ThreadCounters &counted) {
  auto runs = [&](uint32_t v) { return lease.status[v] == ACTIVE; };
  walk_pages(
      lease, now, runs,
      [&](uint32_t first, uint32_t end, uint32_t warp, uint32_t warps) {
        for (uint32_t word = first / 32 + warp; word * 32 < end;
             word += warps) {
          uint32_t v = word * 32 + lane_id();
          bool is_one = v >= first && v < end && runs(v);
          bool sends =
              run_walkers(now, is_one, v, ACTIVE, empty_inbox(), counted);
          bool ends_within = word * 32 + 32 > end && end < lease.num_owned;
          set_sent(lease, now, word, sends, word * 32 < first || ends_within);
        }
      });
}
#endif

template <SenderFilter FILTER>
__device__ inline void gather_packed(const Lease &lease,
                                     const NextSuperstep &now,
                                     ThreadCounters &counted) {
  if constexpr (FILTER == SENDERS_NONE) {
#if SIGPS_WALKS
    walk_active(lease, now, counted);
#else
    compute_active(lease, now, counted);
#endif
    return;
  }
#if SIGPS_WALKS
  begin_walks(lease);
#endif
  Outbox outbox = outbox_of(lease, now);
  fill_shared_cache<FILTER>(outbox);
  __shared__ uint32_t next_chain;
  for (;;) {
    if (threadIdx.x == 0)
      next_chain = atomicAdd(&lease.control->next_block_row.value, 1);
    __syncthreads();
    uint32_t chain = next_chain;
    __syncthreads();
    if (chain >= lease.packed.num_chains)
      break;
    gather_chain<FILTER, ALL_ROWS>(lease, now, outbox,
                                   lease.packed.order[chain], counted);
  }
  compute_without_rows(lease, now, counted);
}

// Computes all vertices.
__device__ inline void pull_pages(const Lease &lease, const NextSuperstep &now,
                                  ThreadCounters &counted) {
  if (now.sender_filter == SENDERS_NONE)
    gather_packed<SENDERS_NONE>(lease, now, counted);
  else if (now.sender_filter == SENDERS_BITMAP)
    gather_packed<SENDERS_BITMAP>(lease, now, counted);
  else
    gather_packed<SENDERS_ALL>(lease, now, counted);
}

// Zeroes the bits that the next pull sets by atomics. By a block.
__device__ inline void clear_ends_of_chains(const Lease &lease,
                                            uint32_t *sent) {
  const PackedRows &rows = lease.packed;
  for (uint32_t i = threadIdx.x; i <= rows.num_chains; i += blockDim.x) {
    uint32_t row = rows.first_rows[rows.chains[i]];
    if (row / 32 * 32 < lease.num_owned)
      sent[row / 32] = 0;
  }
}

} // namespace sigps
#endif
