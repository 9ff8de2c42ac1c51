// The first half of a pull over tiles (Tiles, edges.cuh): the edges of pairs
// are combined to partials from records in shared memory. gather.cuh follows,
// behind a barrier, and reads each partial as one more edge of its row.
//
// Schedule: blocks of 1024 threads. A block takes shares, copies the records of
// a task's segment to shared memory, and each warp goes through its run, whose
// slices lie end to end: it has eight lines under way whatever slice they are
// of. Every partial has one writer, and its edges are combined in a fixed
// order; there are no atomics.

#pragma once

#include "gather.cuh"
#include "publish.cuh"

#if SIGPS_TILES
namespace sigps {

static_assert(!SIGPS_EARLY_EXIT && !SIGPS_BY_WARP,
              "programs whose pulls read all in-edges");
static_assert(SIGPS_THREADS == 1024, "a run for each of 32 warps");
static_assert(sizeof(Record) % 4 == 0 && sizeof(Record) <= 16 &&
                  sizeof(Record) == sizeof(Slots),
              "records of 1 to 4 words, and inboxes of as many");

constexpr uint32_t LINES_AHEAD = 8;

// Whether bits tell which partials hold something; else all do. Those that are
// combined early are before it is known whether all of other GPUs sent.
template <SenderFilter FILTER>
constexpr bool KEEPS_BITS = SIGPS_PEERS || !ALL_BRING<FILTER>;

// What a task reads: records and bits lie in shared memory.
struct SegmentOfTask {
  uint32_t first; // local id
  const Record *records;
  const uint32_t *sent;
};

// By whole blocks.
template <SenderFilter FILTER>
__device__ inline SegmentOfTask
load_segment(const Lease &lease, const NextSuperstep &now, uint32_t segment) {
  uint32_t size = lease.tiles.segment_size, first = segment * size;
  uint32_t parity = now.superstep & 1;
  uint32_t count = min(size, lease.num_lids - first);
  uint32_t quads = (count * sizeof(Record) + 15) / 16;
  const uint4 *records =
      reinterpret_cast<const uint4 *>(lease.records[parity] + first);
  uint32_t *bits =
      reinterpret_cast<uint32_t *>(shared_cache) + size * (sizeof(Record) / 4);
  __syncthreads(); // all are done with the segment before
  uint32_t i = threadIdx.x;
  for (; i + 7 * SIGPS_THREADS < quads; i += 8 * SIGPS_THREADS) {
    uint4 taken[8];
#pragma unroll
    for (int k = 0; k < 8; k++)
      taken[k] = records[i + k * SIGPS_THREADS];
#pragma unroll
    for (int k = 0; k < 8; k++)
      shared_cache[i + k * SIGPS_THREADS] = taken[k];
  }
  for (; i < quads; i += SIGPS_THREADS)
    shared_cache[i] = records[i];
  if (FILTER == SENDERS_BITMAP)
    for (i = threadIdx.x; i * 32 < count; i += SIGPS_THREADS)
      bits[i] = lease.sent[parity][first / 32 + i];
  __syncthreads();
  return {first, reinterpret_cast<const Record *>(shared_cache), bits};
}

// How many lines are received at once: the records of all their edges are read
// before the first is used.
constexpr int LINES_AT_ONCE = sizeof(Record) == 4   ? 4
                              : sizeof(Record) == 8 ? 2
                                                    : 1;

// Whether the words of all lanes have two places in a line and in those before
// it of the same slice. So it is where lane 31's has: lanes have no more edges
// than those before them.
__device__ inline bool are_full(uint32_t word) {
  return __shfl_sync(ALL_LANES, word, 31) < NO_PLACE << 16;
}

// What some lines bring to a row, two edges a word: their records are read
// before the first is used. In lines that are not full a lane without an edge
// reads the first record, which is not used.
template <SenderFilter FILTER, bool ARE_FULL, int COUNT> struct ReceivedLines {
  Record records[COUNT][2];

  __device__ ReceivedLines(const SegmentOfTask &segment,
                           const uint32_t *words) {
#pragma unroll
    for (int k = 0; k < COUNT; k++)
#pragma unroll
      for (int half = 0; half < 2; half++) {
        uint32_t place = place_of(words[k], half);
        bool is_edge = ARE_FULL || place != NO_PLACE;
        records[k][half] = segment.records[is_edge ? place : 0];
      }
  }

  __device__ static uint32_t place_of(uint32_t word, int half) {
    return half ? word >> 16 : word & 0xffff;
  }

  // The two edges of a word of line `k`, of which it is number `at` of all.
  __device__ void put_line(const Lease &lease, const NextSuperstep &now,
                           const SegmentOfTask &segment, uint32_t row,
                           uint32_t word, int k, uint64_t at,
                           Inbox &inbox) const {
    Occasion when{lease.in, now.superstep, row};
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t place = place_of(word, half);
      bool sent = ARE_FULL || place != NO_PLACE;
      if (FILTER == SENDERS_BITMAP && sent)
        sent = segment.sent[place / 32] >> (place % 32) & 1;
      Slots value;
      if (sent && when.passes(sigps_deliver(
                                  &lease.in, now.superstep - 1,
                                  &records[k][half], segment.first + place, row,
                                  in_columns(lease.tiles.first_position +
                                             2 * at + half),
                                  &value),
                              segment.first + place))
        put(inbox, value, when);
    }
  }
};

// Lines of one slice, all of which are full or none has to be.
//
//   at: the number of the first word among all
template <SenderFilter FILTER, bool ARE_FULL>
__device__ inline void
receive_lines(const Lease &lease, const NextSuperstep &now,
              const SegmentOfTask &segment, uint32_t row, const uint32_t *words,
              uint64_t at, Inbox &inbox) {
#pragma unroll
  for (int first = 0; first < int(LINES_AHEAD); first += LINES_AT_ONCE) {
    ReceivedLines<FILTER, ARE_FULL, LINES_AT_ONCE> read(segment, &words[first]);
#pragma unroll
    for (int k = 0; k < LINES_AT_ONCE; k++)
      read.put_line(lease, now, segment, row, words[first + k], k,
                    at + (first + k) * 32, inbox);
  }
}

// The next lines of a warp, `left` of which there are: ahead of their use, past
// the caches.
__device__ inline void read_lines(const uint32_t *words, int32_t left,
                                  uint32_t *taken) {
  if (left >= int32_t(LINES_AHEAD)) {
#pragma unroll
    for (int k = 0; k < int(LINES_AHEAD); k++)
      taken[k] = __ldcs(words + k * 32);
    return;
  }
#pragma unroll
  for (int k = 0; k < int(LINES_AHEAD); k++)
    taken[k] = k < left ? __ldcs(words + k * 32) : ~0u;
}

// By a warp: `inbox` is a lane's, or with `is_one` that of lane 0 is all.
template <SenderFilter FILTER>
__device__ inline void keep_partial(const Lease &lease, uint32_t slice,
                                    bool is_one, const Inbox &inbox) {
  if (!is_one || lane_id() == 0)
    lease.partials[slice * 32 + lane_id()] = inbox.slots;
  if (KEEPS_BITS<FILTER>) {
    uint32_t bits = __ballot_sync(ALL_LANES, inbox.has);
    if (lane_id() == 0)
      lease.partial_bits[slice] = is_one ? bits & 1 : bits;
  }
}

// A piece of a pair, by a warp.
template <SenderFilter FILTER>
__device__ inline void
combine_piece(const Lease &lease, const NextSuperstep &now,
              const SegmentOfTask &segment, uint32_t slice) {
  const Tiles &tiles = lease.tiles;
  uint32_t line = tiles.lines[slice], end = tiles.lines[slice + 1];
  uint32_t row = tiles.rows[slice * 32];
  Inbox inbox = empty_inbox();
  for (; line < end; line += LINES_AHEAD) {
    uint64_t at = line * 32ull + lane_id();
    uint32_t taken[LINES_AHEAD];
    read_lines(tiles.words + at, end - line, taken);
    if (are_full(taken[LINES_AHEAD - 1]))
      receive_lines<FILTER, true>(lease, now, segment, row, taken, at, inbox);
    else
      receive_lines<FILTER, false>(lease, now, segment, row, taken, at, inbox);
  }
  inbox = combine_warp(inbox, {lease.in, now.superstep, row});
  keep_partial<FILTER>(lease, slice, true, inbox);
}

// Slices of pairs, a lane a pair, by a warp; there is one at least.
template <SenderFilter FILTER>
__device__ inline void
combine_slices(const Lease &lease, const NextSuperstep &now,
               const SegmentOfTask &segment, uint32_t slice, uint32_t end) {
  const Tiles &tiles = lease.tiles;
  uint32_t line = tiles.lines[slice];
  int32_t left = tiles.lines[end] - line;
  uint64_t at = line * 32ull + lane_id();
  uint32_t taken[LINES_AHEAD];
  read_lines(tiles.words + at, left, taken);
  // Ends of the next slices, a lane each.
  uint32_t described = slice + lane_id(), slot = 0;
  uint32_t ends = described < end ? tiles.lines[described + 1] : 0;
  uint32_t end_of_slice = __shfl_sync(ALL_LANES, ends, 0);
  uint32_t row = tiles.rows[slice * 32 + lane_id()];
  Inbox inbox = empty_inbox();
  while (left > 0) {
    uint32_t next[LINES_AHEAD];
    read_lines(tiles.words + at + LINES_AHEAD * 32, left - LINES_AHEAD, next);
    if (line + LINES_AHEAD < end_of_slice) {
      if (are_full(taken[LINES_AHEAD - 1]))
        receive_lines<FILTER, true>(lease, now, segment, row, taken, at, inbox);
      else
        receive_lines<FILTER, false>(lease, now, segment, row, taken, at,
                                     inbox);
      line += LINES_AHEAD;
    } else {
      // Lines behind the last have no edges, and no slice ends there.
#pragma unroll
      for (int first = 0; first < int(LINES_AHEAD); first += LINES_AT_ONCE) {
        ReceivedLines<FILTER, false, LINES_AT_ONCE> read(segment,
                                                         &taken[first]);
#pragma unroll
        for (int k = 0; k < LINES_AT_ONCE; k++) {
          read.put_line(lease, now, segment, row, taken[first + k], k,
                        at + (first + k) * 32, inbox);
          if (++line == end_of_slice) {
            keep_partial<FILTER>(lease, slice, false, inbox);
            inbox = empty_inbox();
            slice++;
            if (++slot == 32) {
              slot = 0;
              described += 32;
              ends = described < end ? tiles.lines[described + 1] : 0;
            }
            end_of_slice = __shfl_sync(ALL_LANES, ends, slot);
            if (slice < end)
              row = tiles.rows[slice * 32 + lane_id()];
          }
        }
      }
    }
    at += LINES_AHEAD * 32;
    left -= LINES_AHEAD;
#pragma unroll
    for (int k = 0; k < int(LINES_AHEAD); k++)
      taken[k] = next[k];
  }
}

// A share of the edges, by a whole block; each warp calls act() once a task,
// one half of them before its run and one behind it.
template <SenderFilter FILTER, class Act>
__device__ inline void combine_share(const Lease &lease,
                                     const NextSuperstep &now, uint32_t share,
                                     Act act) {
  const Tiles &tiles = lease.tiles;
  bool acts_first = threadIdx.x / 32 % 2 != 0;
  for (uint32_t task = tiles.first_tasks[share];
       task < tiles.first_tasks[share + 1]; task++) {
    uint32_t number = tiles.segments[task];
    SegmentOfTask segment = load_segment<FILTER>(lease, now, number);
    const uint32_t *run = &tiles.runs[task * 33 + threadIdx.x / 32];
    uint32_t slice = run[0], end = run[1];
    uint32_t first_lanes = tiles.first_lanes[number];
    if (acts_first)
      act();
    for (; slice < end && slice < first_lanes; slice++)
      combine_piece<FILTER>(lease, now, segment, slice);
    if (slice < end)
      combine_slices<FILTER>(lease, now, segment, slice, end);
    if (!acts_first)
      act();
  }
}

// How many shares of the superstep at hand are combined already.
__device__ inline uint32_t &num_combined() {
  __shared__ uint32_t count;
  return count;
}

template <SenderFilter FILTER>
__device__ inline void combine_tiles(const Lease &lease,
                                     const NextSuperstep &now) {
  for (uint32_t share = num_combined() + blockIdx.x;
       share < lease.tiles.num_shares; share += gridDim.x)
    combine_share<FILTER>(lease, now, share, [] {});
}

#if SIGPS_PEERS
// Whether the first shares of the next superstep, of segments that are all this
// GPU's own, are combined while its records go to others; behind a barrier.
__device__ inline bool goes_early(const Lease &lease,
                                  const NextSuperstep &now) {
  return lease.tiles.num_early != 0 && now.remaining != PUBLISHING &&
         now.superstep + 1 < lease.end &&
         __ldcg(&lease.control->counters.senders) != 0;
}

template <SenderFilter FILTER>
__device__ inline void combine_early(const Lease &lease,
                                     const NextSuperstep &now,
                                     Publication &publication) {
  const Tiles &tiles = lease.tiles;
  NextSuperstep next{};
  next.superstep = now.superstep + 1; // no more of it is read
  uint32_t warps = threads_of_grid() / 32;
  uint32_t slots = lease.halo.bounds[lease.halo.num_ranks];
  for (uint32_t share = blockIdx.x; share < tiles.num_early;
       share += gridDim.x) {
    // About as many slots in each task.
    uint32_t tasks = tiles.first_tasks[share + 1] - tiles.first_tasks[share];
    uint32_t count = slots / (warps * 128) / max(tasks, 1u) + 1;
    combine_share<FILTER>(lease, next, share, [&] {
      for (uint32_t i = 0; i < count && publication.publish_some(lease); i++)
        continue;
    });
  }
}

// Both at once. What this GPU's vertices sent is known here, and not whether
// all others' did.
__device__ inline void publish_and_combine(const Lease &lease,
                                           const NextSuperstep &now) {
  Publication publication(now);
  if (__ldcg(&lease.control->counters.senders) == lease.halo.could_send)
    combine_early<SENDERS_ALL>(lease, now, publication);
  else
    combine_early<SENDERS_BITMAP>(lease, now, publication);
  publication.publish_rest(lease);
}
#endif

} // namespace sigps
#endif
