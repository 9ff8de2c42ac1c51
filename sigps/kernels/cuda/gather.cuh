// Pull: every owned vertex combines its in-neighbours' records and computes, in
// one pass. Writes the senders as bits.
//
// Schedule: rows of over 4096 edges block-mapped, other CSR rows warp-mapped,
// eight to a warp one after another, sliced rows thread-mapped, four slices to
// a warp; those of most edges first, and a block or warp that is done takes the
// next task. Where that makes few tasks a warp, it takes two rows, or a slice,
// at a time: else all wait for the tasks of most edges. Every vertex has one
// thread that computes it; words and bytes of bits have one writer, except
// those of block-mapped rows, and of rows that a warp takes two at a time,
// which are zero before and set by atomics. With SIGPS_BY_WARP every vertex has
// a warp that computes it, all CSR rows are warp-mapped, one at a time, and
// their bits set by atomics. With SIGPS_BY_TEAM the first of them are
// block-mapped, and computed by all warps.
//
// Lids are in descending order of in-degree, and where edges go both ways that
// is how often a record is read: the first ones are copied to a cache in shared
// memory, with as many of the senders' bits.

#pragma once

#include "by_block.cuh"

namespace sigps {

extern __shared__ uint4 shared_cache[]; // records, then bits

// Whether records are so long that they are read where they lie.
constexpr bool IN_PLACE = sizeof(Record) > 64;

// What a pull reads; the same for every edge of a superstep.
struct Outbox {
  const uint32_t *sent;
  const Record *records;
  uint32_t num_cached_records; // of the first vertices, in shared_cache
  uint32_t num_cached_bits;
  uint32_t num_cached_ghosts; // behind them
  uint32_t first_hot;
};

__device__ inline Outbox outbox_of(const Lease &lease,
                                   const NextSuperstep &now) {
  int parity = now.superstep & 1;
  return {lease.sent[parity],
          lease.records[parity],
          HAS_RECORD && !IN_PLACE ? lease.num_cached_records : 0,
          lease.num_cached_bits,
          SIGPS_PEERS && HAS_RECORD && !IN_PLACE ? lease.num_cached_ghosts : 0,
          lease.first_hot};
}

__device__ inline const uint32_t *cached_bits(const Outbox &outbox) {
  return reinterpret_cast<const uint32_t *>(shared_cache) +
         (outbox.num_cached_records + outbox.num_cached_ghosts) *
             (sizeof(Record) / 4);
}

__device__ inline bool has_sent(const Outbox &outbox, uint32_t v) {
  uint32_t word;
  if (v < outbox.num_cached_bits)
    word = cached_bits(outbox)[v / 32];
  else
    word = outbox.sent[v / 32];
  return word >> (v % 32) & 1;
}

__device__ inline Record record_of(const Outbox &outbox, uint32_t v) {
  if (sizeof(Record) % 4 == 0 && v < outbox.num_cached_records)
    return reinterpret_cast<const Record *>(shared_cache)[v];
  if (SIGPS_PEERS && sizeof(Record) % 4 == 0 &&
      v - outbox.first_hot < outbox.num_cached_ghosts)
    return reinterpret_cast<const Record *>(
        shared_cache)[outbox.num_cached_records + v - outbox.first_hot];
  return outbox.records[v];
}

// Copies the first records and bits to shared memory, once a superstep. By
// whole blocks.
template <SenderFilter FILTER>
__device__ inline void fill_shared_cache(const Outbox &outbox) {
  uint32_t words = outbox.num_cached_records * (sizeof(Record) / 4);
  const uint4 *records = reinterpret_cast<const uint4 *>(outbox.records);
  for (uint32_t i = threadIdx.x; i < words / 4; i += blockDim.x)
    shared_cache[i] = records[i];
  if (SIGPS_PEERS) {
    const uint4 *ghosts =
        reinterpret_cast<const uint4 *>(outbox.records + outbox.first_hot);
    uint32_t more = outbox.num_cached_ghosts * (sizeof(Record) / 4);
    for (uint32_t i = threadIdx.x; i < more / 4; i += blockDim.x)
      shared_cache[words / 4 + i] = ghosts[i];
    words += more;
  }
  uint32_t *bits = reinterpret_cast<uint32_t *>(shared_cache) + words;
  if (FILTER == SENDERS_BITMAP)
    for (uint32_t i = threadIdx.x; i < outbox.num_cached_bits / 32;
         i += blockDim.x)
      bits[i] = outbox.sent[i];
  __syncthreads();
}

#if !SIGPS_LISTED
#if SIGPS_TILES
// Whether every edge brings something.
template <SenderFilter FILTER>
constexpr bool ALL_BRING = FILTER == SENDERS_ALL && SIGPS_ALL_PASS;

// What an end of a row brings: the record of its source, or a partial, which is
// read as if it were one and has its size. `sent` is whether there is an end.
template <SenderFilter FILTER>
__device__ inline void read_end(const Lease &lease, const Outbox &outbox,
                                uint32_t source, bool &is_partial, bool &sent,
                                Record &record) {
  uint32_t partial = source - lease.tiles.first_partial;
  is_partial = source >= lease.tiles.first_partial;
  if (sent)
    sent = is_partial ? ALL_BRING<FILTER> || is_set(lease.partial_bits, partial)
                      : FILTER == SENDERS_ALL || has_sent(outbox, source);
  const Record *at =
      is_partial ? reinterpret_cast<const Record *>(lease.partials) + partial
                 : outbox.records + source;
  if (sent)
    record = *at;
}

// Where columns have an edge's values. Without SIGPS_TILE_COLUMNS each has one
// value, for all edges.
__device__ inline uint64_t in_columns(uint64_t position) {
  return SIGPS_TILE_COLUMNS ? position : 0;
}

// Puts what an end brings into the inbox of vertex v.
__device__ inline void put_end(const Lease &lease, const NextSuperstep &now,
                               uint32_t source, bool is_partial,
                               const Record &record, uint32_t v,
                               uint64_t position, Inbox &inbox) {
  Occasion when{lease.in, now.superstep, v};
  Slots value;
  if (is_partial) {
    memcpy(&value, &record, sizeof(Slots));
    put(inbox, value, when);
  } else if (when.passes(sigps_deliver(&lease.in, now.superstep - 1, &record,
                                       source, v, in_columns(position), &value),
                         source))
    put(inbox, value, when);
}
#endif

// What COUNT edges of a row bring into an inbox, `step` positions apart. All
// loads are issued before the first value is used.
template <SenderFilter FILTER, int COUNT>
__device__ inline void receive(const Lease &lease, const NextSuperstep &now,
                               const Outbox &outbox, uint32_t v,
                               uint64_t position, uint32_t step, Inbox &inbox) {
  Occasion when{lease.in, now.superstep, v};
  uint32_t sources[COUNT];
  Record records[IN_PLACE ? 1 : COUNT];
  bool sent[COUNT];
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    sources[k] = end_at(lease.in_edges, position + uint64_t(k) * step);
#if SIGPS_TILES
  bool is_partial[COUNT];
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    sent[k] = true;
    read_end<FILTER>(lease, outbox, sources[k], is_partial[k], sent[k],
                     records[k]);
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    if (sent[k])
      put_end(lease, now, sources[k], is_partial[k], records[k], v,
              position + uint64_t(k) * step, inbox);
  return;
#else
#pragma unroll
  for (int k = 0; k < COUNT; k++)
    sent[k] = FILTER == SENDERS_ALL || has_sent(outbox, sources[k]);
#endif
  if (HAS_RECORD && !IN_PLACE) {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
      if (sent[k])
        records[k] = record_of(outbox, sources[k]);
  }
#pragma unroll
  for (int k = 0; k < COUNT; k++) {
    if (SIGPS_EARLY_EXIT && inbox.has)
      return;
    Slots value;
    const Record *record = IN_PLACE ? &outbox.records[sources[k]] : &records[k];
    if (sent[k] &&
        when.passes(sigps_deliver(&lease.in, now.superstep - 1, record,
                                  sources[k], v, position + uint64_t(k) * step,
                                  &value),
                    sources[k]))
      put(inbox, value, when);
  }
}

// The same for a whole row, or for the part of it that begins at `i` and goes
// on every `stride` edges.
template <SenderFilter FILTER>
__device__ SIGPS_ONCE Inbox receive_all(const Lease &lease,
                                        const NextSuperstep &now,
                                        const RowOfEdges &row, uint32_t v,
                                        uint32_t i, uint32_t stride) {
  Outbox outbox = outbox_of(lease, now);
  Inbox inbox = empty_inbox();
  constexpr int COUNT = sizeof(Record) > 64 ? 1 : sizeof(Record) > 32 ? 2 : 4;
  uint32_t step = stride * row.step;
  for (; i + (COUNT - 1) * stride < row.degree; i += COUNT * stride) {
    receive<FILTER, COUNT>(lease, now, outbox, v,
                           row.first + uint64_t(i) * row.step, step, inbox);
    if (SIGPS_EARLY_EXIT && inbox.has)
      return inbox;
  }
  for (; i < row.degree; i += stride) {
    receive<FILTER, 1>(lease, now, outbox, v,
                       row.first + uint64_t(i) * row.step, step, inbox);
    if (SIGPS_EARLY_EXIT && inbox.has)
      return inbox;
  }
  return inbox;
}

// Computes the vertices of a slice, a lane each, with what they received.
__device__ inline void
compute_rows(const Lease &lease, const NextSuperstep &now, uint32_t first_row,
             uint8_t status, const Inbox &inbox, ThreadCounters &counted) {
  bool runs = inbox.has ? status != RETIRED : status == ACTIVE;
  bool sends = run_vertices(lease, now, runs, first_row + lane_id(), status,
                            inbox, counted);
  uint32_t bits = __ballot_sync(ALL_LANES, sends);
  if (lane_id() == 0)
    lease.sent[(now.superstep + 1) & 1][first_row / 32] = bits;
}

// A lane for each row of a slice, whose vertex has this status.
template <SenderFilter FILTER>
__device__ inline void
gather_slice(const Lease &lease, const NextSuperstep &now, uint32_t first_row,
             uint8_t status, ThreadCounters &counted) {
  uint32_t v = first_row + lane_id();
  Inbox inbox = empty_inbox();
  if (FILTER != SENDERS_NONE && status != RETIRED)
    inbox = receive_all<FILTER>(lease, now, row_of(lease.in_edges, v), v, 0, 1);
  compute_rows(lease, now, first_row, status, inbox, counted);
}

// The message of the first lane that has one.
__device__ inline Inbox first_of_warp(Inbox inbox) {
  uint32_t those = __ballot_sync(ALL_LANES, inbox.has);
  Inbox first;
  first.has = those != 0;
#pragma unroll WORDS_AT_ONCE
  for (int i = 0; i < Slots::NUM_WORDS; i++)
    first.slots.words[i] = typename Slots::Word(__shfl_sync(
        ALL_LANES, inbox.slots.words[i], those ? __ffs(those) - 1 : 0));
  return first;
}

template <SenderFilter FILTER>
__device__ inline Inbox
gather_row_by_warp(const Lease &lease, const NextSuperstep &now, uint32_t v) {
  RowOfEdges row = row_of(lease.in_edges, v);
  if (SIGPS_EARLY_EXIT) {
    Outbox outbox = outbox_of(lease, now);
    Inbox inbox = empty_inbox();
    for (uint32_t i = 0; i < row.degree && !inbox.has; i += 32) {
      if (i + lane_id() < row.degree)
        receive<FILTER, 1>(lease, now, outbox, v, row.first + i + lane_id(), 1,
                           inbox);
      inbox = first_of_warp(inbox);
    }
    return inbox;
  }
  return combine_warp(receive_all<FILTER>(lease, now, row, v, lane_id(), 32),
                      {lease.in, now.superstep, v});
}

constexpr uint32_t ROWS_OF_WARP = SIGPS_BY_WARP ? 1 : 8;

// Over tiles two, which are gathered together (DESIGN.md).
constexpr uint32_t SLICES_OF_TASK = SIGPS_BY_WARP ? 1 : SIGPS_TILES ? 2 : 4;

// Tasks for each warp up to which they are of so many rows, or one slice.
constexpr uint32_t FEW_TASKS = 4, FINE_ROWS = 2;

// Rows from here on take a thread each, which are those that lie in slices, but
// where all lie in one piece.
__device__ inline uint32_t first_slice(const Lease &lease) {
#ifdef SIGPS_IN_PIECES
  return lease.num_warp_rows;
#else
  return lease.in_edges.num_csr_rows;
#endif
}

// Whether a pull has few tasks for its warps. Every thread finds the same.
__device__ inline bool has_few_tasks(const Lease &lease,
                                     uint32_t num_block_rows) {
  uint32_t first_sliced = max(first_slice(lease), num_block_rows);
  uint32_t groups = (first_sliced - num_block_rows) / ROWS_OF_WARP;
  uint32_t slices = (max(lease.num_owned, first_sliced) - first_sliced) / 32;
  return !SIGPS_BY_WARP && !SIGPS_TILES &&
         groups + slices / SLICES_OF_TASK <=
             FEW_TASKS * (threads_of_grid() / 32);
}

// Some rows one after another, eight at most; then as many lanes compute. One
// row, where all lanes compute together.
template <SenderFilter FILTER>
__device__ inline void
gather_rows_by_warp(const Lease &lease, const NextSuperstep &now,
                    uint32_t first_row, uint32_t num_rows,
                    ThreadCounters &counted) {
  uint32_t v = first_row + lane_id();
  bool is_mine = lane_id() < num_rows && v < lease.num_owned;
  uint8_t status = is_mine ? lease.status[v] : uint8_t(RETIRED);
  Inbox mine = empty_inbox();
  uint32_t waiting = __ballot_sync(ALL_LANES, is_mine && status != RETIRED);
  if (FILTER != SENDERS_NONE)
    for (; waiting != 0; waiting &= waiting - 1) {
      uint32_t row = __ffs(waiting) - 1;
      Inbox inbox = gather_row_by_warp<FILTER>(lease, now, first_row + row);
#pragma unroll WORDS_AT_ONCE
      for (int i = 0; i < Slots::NUM_WORDS; i++) {
        auto word = __shfl_sync(ALL_LANES, inbox.slots.words[i], 0);
        if (lane_id() == row)
          mine.slots.words[i] = typename Slots::Word(word);
      }
      uint32_t has = __shfl_sync(ALL_LANES, inbox.has, 0);
      if (lane_id() == row)
        mine.has = has;
    }
  bool runs = is_mine && (mine.has ? status != RETIRED : status == ACTIVE);
  bool sends = run_vertices(lease, now, runs, v, status, mine, counted);
  uint32_t *sent = lease.sent[(now.superstep + 1) & 1];
  uint32_t bits = __ballot_sync(ALL_LANES, sends);
  if (num_rows < 8 && sends)
    atomicOr(&sent[v / 32], 1u << v % 32);
  if (num_rows == 8 && lane_id() == 0)
    reinterpret_cast<uint8_t *>(sent)[first_row / 8] = uint8_t(bits);
}

template <SenderFilter FILTER>
__device__ inline void gather_row_by_block(const Lease &lease,
                                           const NextSuperstep &now, uint32_t v,
                                           ThreadCounters &counted) {
  uint8_t status = lease.status[v];
  Inbox inbox = empty_inbox();
  if (FILTER != SENDERS_NONE && status != RETIRED) {
    RowOfEdges row = row_of(lease.in_edges, v);
    if (SIGPS_EARLY_EXIT) {
      Outbox outbox = outbox_of(lease, now);
      __shared__ uint32_t hit;
      __shared__ Inbox found;
      for (uint32_t i = 0; i < row.degree; i += blockDim.x) {
        if (threadIdx.x == 0)
          hit = blockDim.x;
        __syncthreads();
        if (i + threadIdx.x < row.degree)
          receive<FILTER, 1>(lease, now, outbox, v, row.first + i + threadIdx.x,
                             1, inbox);
        if (inbox.has)
          atomicMin(&hit, threadIdx.x);
        __syncthreads();
        if (threadIdx.x == hit)
          found = inbox;
        bool is_found = hit < blockDim.x;
        __syncthreads();
        if (is_found) {
          inbox = found;
          break;
        }
      }
    } else {
      inbox = combine_block(
          receive_all<FILTER>(lease, now, row, v, threadIdx.x, blockDim.x),
          {lease.in, now.superstep, v});
    }
  }
  if (SIGPS_BY_TEAM) {
    __shared__ Inbox of_team;
    if (threadIdx.x == 0)
      of_team = inbox;
    __syncthreads();
    inbox = of_team;
  }
  bool runs = inbox.has ? status != RETIRED : status == ACTIVE;
  if (runs && (SIGPS_BY_TEAM || threadIdx.x == 0)) {
    bool sends = run_vertex(lease, now, v, status, inbox, counted,
                            SIGPS_BY_TEAM ? blockDim.x : LANES_OF_VERTEX);
    if (sends && threadIdx.x == 0)
      atomicOr(&lease.sent[(now.superstep + 1) & 1][v / 32], 1u << v % 32);
  }
  __syncthreads();
}

#if !SIGPS_TILES
// The same for the slices of a task, whose statuses are loaded at once.
template <SenderFilter FILTER>
__device__ inline void
gather_slices(const Lease &lease, const NextSuperstep &now, uint32_t first_row,
              uint32_t num_slices, ThreadCounters &counted) {
  uint32_t statuses = 0; // a byte each
#pragma unroll
  for (uint32_t k = 0; k < SLICES_OF_TASK; k++) {
    uint32_t v = first_row + k * 32 + lane_id();
    bool is_one = k < num_slices && v < lease.num_owned;
    uint8_t status = is_one ? lease.status[v] : uint8_t(RETIRED);
    statuses |= uint32_t(status) << 8 * k;
  }
#pragma unroll 1
  for (uint32_t k = 0; k < num_slices; k++) {
    uint32_t row = first_row + k * 32;
    if (row < lease.num_owned)
      gather_slice<FILTER>(lease, now, row, statuses >> 8 * k & 255, counted);
  }
}

#else
// The same for the slices of a task together, an end of a lane's row in each at
// a time: most rows have few ends, and a lane waits for those of two at once.
template <SenderFilter FILTER>
__device__ inline void
gather_slices(const Lease &lease, const NextSuperstep &now, uint32_t first_row,
              uint32_t, ThreadCounters &counted) {
  constexpr int K = SLICES_OF_TASK;
  Outbox outbox = outbox_of(lease, now);
  uint32_t statuses = 0, degrees[K], widest = 0;
  uint64_t positions[K];
  Inbox inboxes[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    uint32_t v = first_row + k * 32 + lane_id();
    bool is_one = v < lease.num_owned;
    uint8_t status = is_one ? lease.status[v] : uint8_t(RETIRED);
    statuses |= uint32_t(status) << 8 * k;
    degrees[k] = is_one ? lease.in_edges.degrees[v] : 0;
    positions[k] =
        first_row + k * 32 < lease.num_owned
            ? lease.in_edges
                  .slices[(first_row - lease.in_edges.num_csr_rows) / 32 + k]
            : 0;
    inboxes[k] = empty_inbox();
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    positions[k] += lane_id();
    if (FILTER == SENDERS_NONE || (statuses >> 8 * k & 255) == RETIRED)
      degrees[k] = 0;
    widest = max(widest, degrees[k]);
  }
  for (uint32_t i = 0; i < widest; i++) {
    uint32_t sources[K];
    // Set: else what is not read is what was read before, and is kept for it,
    // of 16 bytes in memory.
    Record records[K] = {};
    bool sent[K], is_partial[K];
#pragma unroll
    for (int k = 0; k < K; k++)
      sources[k] = i < degrees[k]
                       ? end_at(lease.in_edges, positions[k] + uint64_t(i) * 32)
                       : NO_VERTEX;
#pragma unroll
    for (int k = 0; k < K; k++) {
      sent[k] = i < degrees[k];
      read_end<FILTER>(lease, outbox, sources[k], is_partial[k], sent[k],
                       records[k]);
    }
#pragma unroll
    for (int k = 0; k < K; k++)
      if (sent[k])
        put_end(lease, now, sources[k], is_partial[k], records[k],
                first_row + k * 32 + lane_id(), positions[k] + uint64_t(i) * 32,
                inboxes[k]);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    uint32_t row = first_row + k * 32;
    if (row < lease.num_owned)
      compute_rows(lease, now, row, statuses >> 8 * k & 255, inboxes[k],
                   counted);
  }
}
#endif

#endif

// Takes the next task number, for a warp. Taking one ahead would hide the wait,
// and make the first warps hold two of the largest tasks each: it is slower.
__device__ inline uint32_t take(uint32_t *numbers) {
  uint32_t number = 0;
  if (lane_id() == 0)
    number = atomicAdd(numbers, 1);
  return __shfl_sync(ALL_LANES, number, 0);
}

constexpr uint32_t SLICES_AT_ONCE = 4;

// Without senders there are no edges to pass, and vertices differ little: each
// warp has its slices, and loads the statuses of several at once.
__device__ inline void compute_active(const Lease &lease,
                                      const NextSuperstep &now,
                                      ThreadCounters &counted) {
  uint32_t slices = (lease.num_owned + 31) / 32;
  uint32_t warp = spread_warp(), warps = threads_of_grid() / 32;
  for (uint32_t first = warp; first < slices; first += SLICES_AT_ONCE * warps) {
    uint32_t is_active = 0; // bits of this lane's vertices
#pragma unroll
    for (uint32_t k = 0; k < SLICES_AT_ONCE; k++) {
      uint32_t slice = first + k * warps, v = slice * 32 + lane_id();
      if (slice < slices && v < lease.num_owned)
        is_active |= uint32_t(lease.status[v] == ACTIVE) << k;
    }
#pragma unroll 1
    for (uint32_t k = 0; k < SLICES_AT_ONCE; k++) {
      uint32_t slice = first + k * warps, v = slice * 32 + lane_id();
      if (slice >= slices)
        break;
      bool sends = is_active >> k & 1 &&
                   run_vertex(lease, now, v, ACTIVE, empty_inbox(), counted);
      uint32_t bits = __ballot_sync(ALL_LANES, sends);
      if (lane_id() == 0)
        lease.sent[(now.superstep + 1) & 1][slice] = bits;
    }
  }
}

#if !SIGPS_LISTED
// The tasks of warps: warp-mapped rows, then slices. Over tiles those come
// first of which no row has a partial, for they can go before the barrier.
struct RowTasks {
  uint32_t num_block_rows, first_sliced, rows_of_warp, slices_of_task;
  uint32_t groups, count, num_free, counters, mine;
  uint32_t *numbers;

  __device__ RowTasks(const Lease &lease, uint32_t num_block_rows)
      : num_block_rows(num_block_rows) {
    first_sliced = max(first_slice(lease), num_block_rows);
    bool are_few = has_few_tasks(lease, num_block_rows);
    rows_of_warp = are_few ? FINE_ROWS : ROWS_OF_WARP;
    slices_of_task = are_few ? 1 : SLICES_OF_TASK;
    groups = (first_sliced - num_block_rows) / rows_of_warp;
    uint32_t slices = (lease.num_owned - first_sliced + 31) / 32;
    if (lease.num_owned < first_sliced)
      slices = 0;
    count = groups + (slices + slices_of_task - 1) / slices_of_task;
    num_free = 0;
#if SIGPS_TILES
    uint32_t others = max(lease.tiles.first_free, first_sliced) - first_sliced;
    constexpr uint32_t ROWS = SLICES_OF_TASK * 32;
    others = groups + others / ROWS + (others % ROWS != 0);
    num_free = count - min(count, others);
#endif
    counters = min(NUM_TASK_COUNTERS, threads_of_grid() / 32);
    mine = spread_warp() % counters;
    numbers = &lease.control->next_task[mine].value;
  }

  // The next task's number, for a warp.
  __device__ uint32_t take() const {
    return sigps::take(numbers) * counters + mine;
  }
};

template <SenderFilter FILTER>
__device__ inline void gather_task(const Lease &lease, const NextSuperstep &now,
                                   const RowTasks &tasks, uint32_t number,
                                   ThreadCounters &counted) {
  uint32_t task = number < tasks.num_free
                      ? number + tasks.count - tasks.num_free
                      : number - tasks.num_free;
  if (task < tasks.groups)
    gather_rows_by_warp<FILTER>(
        lease, now, tasks.num_block_rows + task * tasks.rows_of_warp,
        tasks.rows_of_warp, counted);
  else
    gather_slices<FILTER>(lease, now,
                          tasks.first_sliced +
                              (task - tasks.groups) * tasks.slices_of_task * 32,
                          tasks.slices_of_task, counted);
}

#if SIGPS_TILES
// The tasks that need no partials, by each warp that has no tiles left. Returns
// the number that it took last, which is that of another task.
template <SenderFilter FILTER>
__device__ inline uint32_t gather_free(const Lease &lease,
                                       const NextSuperstep &now,
                                       ThreadCounters &counted) {
  RowTasks tasks(lease, lease.num_block_rows);
  uint32_t number = tasks.take();
  for (; number < tasks.num_free; number = tasks.take())
    gather_task<FILTER>(lease, now, tasks, number, counted);
  return number;
}
#endif

// Rows that a block takes. With SIGPS_BY_WARP only one warp of a block would
// compute, or all. Over tiles hubs have few ends; teams take them where nothing
// is to be read.
__device__ inline uint32_t rows_of_blocks(const Lease &lease,
                                          SenderFilter filter) {
  bool by_team = SIGPS_BY_TEAM && (!SIGPS_TILES || filter == SENDERS_NONE);
  return by_team         ? lease.num_team_rows
         : SIGPS_BY_WARP ? 0
                         : lease.num_block_rows;
}

// The first so many rows set their bits one by one.
__device__ inline uint32_t rows_with_atomic_bits(const Lease &lease) {
  if (SIGPS_TILES && SIGPS_BY_TEAM)
    return max(lease.num_block_rows, lease.num_team_rows);
  return has_few_tasks(lease, rows_of_blocks(lease, SENDERS_ALL))
             ? max(lease.num_block_rows, first_slice(lease))
             : lease.num_block_rows;
}

//   number: with has_number a task's that this warp has taken
template <SenderFilter FILTER>
__device__ inline void gather(const Lease &lease, const NextSuperstep &now,
                              ThreadCounters &counted, bool has_number = false,
                              uint32_t number = 0) {
  if constexpr (FILTER == SENDERS_NONE && !SIGPS_BY_WARP && !SIGPS_WALKS) {
    compute_active(lease, now, counted);
    return;
  }
  if (FILTER != SENDERS_NONE)
    fill_shared_cache<FILTER>(outbox_of(lease, now));
  __shared__ uint32_t next_row;
  uint32_t num_block_rows = rows_of_blocks(lease, FILTER);
  while (num_block_rows > 0) {
    if (threadIdx.x == 0)
      next_row = atomicAdd(&lease.control->next_block_row.value, 1);
    __syncthreads();
    uint32_t v = next_row;
    __syncthreads();
    if (v >= num_block_rows || v >= lease.num_owned)
      break;
    gather_row_by_block<FILTER>(lease, now, v, counted);
  }
  // Then warp-mapped rows and slices, those of most edges first: a warp that is
  // done takes the next task.
  RowTasks tasks(lease, num_block_rows);
  if (!has_number)
    number = tasks.take();
  for (; number < tasks.count; number = tasks.take())
    gather_task<FILTER>(lease, now, tasks, number, counted);
}
#endif

} // namespace sigps
