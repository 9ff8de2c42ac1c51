// What a lease of supersteps works on, and what its blocks agree on.

#pragma once

#ifndef SIGPS_PEERS // 1: other GPUs have partitions (halo.cuh)
#define SIGPS_PEERS 0
#endif

#include "combine.cuh"
#include "direction.cuh"
#include "edges.cuh"
#include "grid.cuh"
#include "packed_rows.cuh"

namespace sigps {

// Which of a vertex's in-neighbours sent: none, those with their bit set, or
// all with an out-edge. Loops on CPU cores also test each bit when its edge is
// reached; the numbers are the same there (kernels/cpu/arguments.py).
enum SenderFilter : uint32_t {
  SENDERS_NONE = 0,
  SENDERS_BITMAP = 1,
  SENDERS_TEST_EACH = 2,
  SENDERS_ALL = 3
};

// How a superstep finds the vertices that sent to it. What the superstep before
// was decides:
//
//   before                                      leaves
//   nothing, or the host (a run or lease begins) FRONTIER_BITS
//   a pull                                      FRONTIER_BITS
//   a push without a full scan, by run_lease    FRONTIER_LISTS
//   a push with one, where there are ghosts     FRONTIER_BITS
//   a push with one, where there are none       FRONTIER_BOTH
//   a push by run_small_frontier                FRONTIER_DELIVERED
//
// A pull or a push reads bits or lists; only a push reads what is delivered.
// After a full scan a pull finds bits, and a push lists, without another pass.
// check_transition() (next_superstep.cuh) asserts this with SIGPS_DEBUG.
enum Frontier : uint32_t {
  FRONTIER_BITS = 0,      // lease.sent: a bit a vertex
  FRONTIER_LISTS = 1,     // lease.senders and lease.hubs
  FRONTIER_DELIVERED = 2, // lease.targets: messages are in their inboxes
  FRONTIER_BOTH = 3,      // lease.sent, and lease.senders and lease.hubs
};

// What is left of a superstep. OVERFLOWED: to run again the vertices whose
// direct messages found the buffer full. PUBLISHING: to send other GPUs the
// bits and records that the host has written; only after FRONTIER_BITS.
// SENDING: a push along packed rows up to what crosses to other ranks, which
// hosts bring; ARRIVED: what follows it (crossing.cuh).
enum Remaining : uint32_t {
  WHOLE = 0,
  OVERFLOWED = 1,
  PUBLISHING = 2,
  SENDING = 3,
  ARRIVED = 4
};

#ifndef SIGPS_DEBUG // 1: the kernels check their invariants, and trap
#define SIGPS_DEBUG 0
#endif
#if SIGPS_DEBUG
#define SIGPS_CHECK(claim) ((claim) ? void() : __trap())
#else
#define SIGPS_CHECK(claim) void()
#endif

enum Status : uint8_t { ACTIVE = 0, HALTED = 1, RETIRED = 2 };

// FINISHED: nothing is active or in flight. NO_CAPACITY: the buffer of direct
// messages is full; the superstep continues when it has more capacity.
// UNKNOWN_TARGET: control.lost_id got a message, and is no vertex. PEER_LOST:
// rank control.lost_id did not reach the barrier in time. FAULTED: arithmetic
// of compute() had no result in superstep next.superstep, here or on another
// GPU. STOPPED: by master() or next_phase(). MASTER_FAULTED: arithmetic of
// these had no result after the superstep before next.superstep;
// control.lost_id is the fault.
enum Ending : uint32_t {
  RUNNING,
  FINISHED,
  NO_CAPACITY,
  UNKNOWN_TARGET,
  PEER_LOST,
  FAULTED,
  STOPPED,
  MASTER_FAULTED
};

// What all threads did in a superstep. A vertex that retired counts with its
// out-edges, one at least; run_small_frontier only counts whether any retired.
struct Counters {
  unsigned long long ran, active, senders, sent_edges, retired_edges;
};

// What the next superstep, or the one that runs, is to do. Every thread reads
// the same.
struct NextSuperstep {
  int64_t superstep;
  uint64_t retired_edges; // out-edges of retired vertices, without those that
                          // retired in run_small_frontier
  Direction direction;
  SenderFilter sender_filter;
  Frontier frontier;
  Remaining remaining;
  uint32_t full_scan;   // 1: a push that also computes active vertices, of
                        // which there is no list
  uint32_t any_retired; // whether a push has to read its targets' status
  uint32_t ending;      // why the lease ended before lease.end: an Ending
  uint32_t num_listed;  // senders in lease.senders, or targets if delivered
  uint32_t num_hubs;    // senders with over HUB_DEGREE out-edges
  uint32_t mean_degree; // of the senders
  uint32_t inbox_at;    // which inboxes this superstep reads
  uint32_t num_small;   // successive supersteps, this one too, that
                        // run_small_frontier could run
  uint32_t is_time_up;  // whether the lease has no time for another one
  uint32_t counts_idle; // whether it counts where no vertex runs: messages are
                        // in flight, and sigps_master is to hear of it
  uint32_t has_woken;   // whether all vertices were woken before it
};

struct Stats {
  int64_t superstep;
  uint64_t direction, ran, messages, nanoseconds;
  uint64_t num_bytes;   // that crossed between GPUs
  double imbalance;     // the slowest one's time over the mean
  uint64_t num_skipped; // chains of packed pages that were not read
  uint64_t num_read;    // bytes of packed pages that crossed from the host
};

// What several GPUs add to a superstep's statistics.
struct AllGpus {
  uint64_t num_bytes;
  double imbalance;
  Counters done; // by all of them
  bool has_fault;
  uint64_t num_skipped, num_read;
};

constexpr AllGpus ONE_GPU = {0, 1.0, {}, false, 0, 0};

// Counters that many warps increment at once lie in cache lines of their own.
struct Counter {
  alignas(128) uint32_t value;
};

// Warps draw their tasks from up to so many counters, each of which numbers its
// own share of the tasks: atomics on a single address are too slow.
constexpr uint32_t NUM_TASK_COUNTERS = 16;

struct Control {
  Barrier barrier;
  alignas(128) NextSuperstep next;
  alignas(
      128) Counters counters; // of this superstep; the last block empties them
  uint64_t began;             // the launch
  uint64_t last_time;
  uint64_t looked_at; // lease.awaited
  uint64_t num_stats;
  uint64_t is_lost;
  int64_t lost_id;
  unsigned long long faults[2];  // arguments.faults points to them
  Counter num_senders, num_hubs; // listed from bits
  Counter num_targets, num_new, num_new_hubs;
  Counter next_block_row; // what a pull has not begun yet
  Counter next_task[NUM_TASK_COUNTERS];
};

// Of senders with more out-edges than this, each is pushed by whole blocks.
constexpr uint32_t HUB_DEGREE = 2048;

// After so many successive supersteps with a small frontier, this one too,
// run_small_frontier continues (cluster.cuh). By then run_lease has lost as
// much time as two launches cost.
constexpr uint32_t SMALL_BEFORE_SWITCH = 8;

// Direct messages, which go to a vertex by its id and not along an edge. They
// are sorted by target, into the lists or into `messages`.
struct DirectMessages {
  const uint32_t *lids_of_gids; // [num_vertices] lid or NO_VERTEX of a global
                                // id; on one GPU [n] of every vertex
  const int64_t *sorted_ids;    // [n] user ids, ascending; null: they are gids
  const uint32_t *lids_of_ids;  // [n] the lid of each of sorted_ids
  Message *messages;            // [capacity] by target, unless they are listed
  uint32_t *counts;             // [n] 0, but while messages are sorted
  unsigned long long *block_sums; // [blocks] messages to a block's vertices
  uint32_t *overflowed; // [n / 32 rounded up] bits: run again, the buffer was
                        // full
};

// What a rank sends another at the end of a superstep.
struct RankReport {
  uint64_t num_listed; // of the receiver's ghosts, after a push; comes first
  Counters done;
  uint64_t num_bytes, nanoseconds;
  uint64_t fault; // not 0: there is one
#if SIGPS_PACKED
  uint64_t num_skipped, num_read; // as of Stats
#endif
  Totals totals;
};

constexpr uint32_t REPORT_HALVES = sizeof(RankReport) / 4;

// A report as it crosses: each half of a word beside the number of the inter-
// GPU barrier that it belongs to, counted from 1. So the halves may arrive in
// any order.
struct alignas(128) RankReportInHalves {
  uint64_t halves[REPORT_HALVES];

  __device__ uint32_t num_listed() const { return uint32_t(halves[0]); }
};

// The memory of another GPU, as this one addresses it, and what of it this one
// writes: its ghosts of this rank's vertices, of which the first num_hot lie
// apart. Two of a kind: by the parity of the superstep that reads it; report
// buffers by that of the barrier.
struct Peer {
  // Its direct messages, which only it writes.
  const uint8_t *direct_kinds;
  const int64_t *direct_targets;
  const Message *direct_messages;
  const unsigned long long *num_direct;
  Record *records[2];  // by lid
  uint32_t *sent[2];   // bits, by lid
  uint32_t *listed[2]; // [slots] lids of those that sent, in any order
  RankReportInHalves *reports[2]; // [ranks]
  // Where this rank's messages arrive (crossing.cuh).
  uint64_t *num_arrived;   // [ranks]
  uint32_t *arrived_slots; // [slots]
  Slots *arrived_messages; // [slots]
  uint32_t num_hot, first_hot, first_cold;
  // The same of this rank's ghosts of its vertices, and how many these are.
  uint32_t own_hot, first_own_hot, first_own_cold, num_own;
};

// Where this rank's vertices are ghosts of others, and others' here.
struct Halo {
  const Peer *peers;            // [ranks]; of this rank: report buffers
  const uint32_t *bounds;       // [ranks + 1] of slots; multiples of 32
  const uint32_t *vertices;     // [slots] lids of owned ones, or NO_VERTEX
  const uint32_t *copy_offsets; // [n + 1]
  const uint32_t *copies;       // the slots of each owned vertex; where rows
                                // change one for each other rank, or NO_VERTEX
  const uint32_t *list_begins;  // [ranks + 1] where each rank's list begins
  const uint32_t *listed[2];    // ghosts that sent
  const RankReportInHalves *reports[2]; // [ranks]
  uint32_t *num_published;              // [ranks] since the last barrier
  uint64_t *num_barriers;               // of this run
  // Of messages to vertices here, those of each rank from its bound on.
  uint32_t *num_crossed;         // [ranks] that this rank sent in a superstep
  const uint64_t *num_arrived;   // [ranks] how many, behind the superstep's
                                 // inter-GPU barrier in the upper half
  const uint32_t *arrived_slots; // [slots] whose they are
  const Slots *arrived_messages; // [slots]
  uint64_t timeout;              // nanoseconds to wait for a rank
  uint64_t could_send;           // owned vertices with an out-edge
  uint32_t rank, num_ranks;      // 0 ranks: there are no others
};

// n: owned vertices; p: lids, of these and of ghosts. The graph's arrays are
// read only; all others belong to the engine. Two of a kind: one is read, the
// other written, by the superstep's parity.
struct Lease {
  Arguments in;  // columns in the order of in_edges
  Arguments out; // columns in the order of out_edges
  Edges in_edges;
  Edges out_edges;
  Tiles tiles;       // of in_edges, with SIGPS_TILES
  PackedRows packed; // in_edges, with SIGPS_PACKED
  uint32_t num_owned;
  uint32_t num_lids;       // where there are ghosts, each rank's begin at a
                           // multiple of 32
  uint32_t num_block_rows; // rows of in_edges that take a block; those up to
                           // num_csr_rows take a warp. Where warps
                           // compute: those of which bits are set one by one
  uint32_t num_team_rows;  // with SIGPS_BY_TEAM, or messages grouped by key:
                           // rows that take a block
  uint32_t could_send;     // vertices with an out-edge, on all GPUs
  uint32_t num_hubs;       // lids with over HUB_DEGREE out-edges
  uint32_t forced;         // a value of Forced
  uint32_t small_frontier_messages; // the most in a small superstep; 0:
                                    // there is no cluster
  uint32_t small_frontier_places;   // of a block's list of targets
  uint32_t pull_gain;          // in-edges that a pull passes during one message
  uint32_t row_cost;           // with SIGPS_PACKED: messages in whose time a
                               // sender's row is read that lies on the host
  uint32_t carries_on;         // whether persistent aggregators do; else what
                               // ends a superstep are the hosts of all ranks
  uint32_t counts_idle;        // the same as of NextSuperstep, where the host
                               // runs master() after the one superstep
  uint32_t asks_master;        // whether sigps_master runs here, not the host
  uint32_t counts_messages;    // whether sent_edges are messages: else nobody
                               // knows how many of them were sent
  uint32_t num_cached_records; // of the first vertices: copied to shared memory
  uint32_t num_cached_bits;    // the same; both are multiples of 32
  uint32_t num_cached_ghosts;  // as many from first_hot on are copied: num_hot,
                               // or none
  uint32_t first_hot;          // the first lid of ghosts that are read often
  uint32_t num_hot;
  uint32_t num_key_rows;   // rows that may have more keys than a block's table
  int64_t end;             // the first superstep not to run
  uint64_t most_time;      // nanoseconds, with SIGPS_TURNS: a superstep begins
                           // where one that takes as long as the last one fits
  const uint32_t *awaited; // the host's, with SIGPS_TURNS: not 0 where no other
                           // superstep is to begin
  uint64_t num_in_edges;
  uint64_t pull_cost; // in-edges and vertices, on all GPUs: what a pull passes
  uint64_t num_positions;       // of in_edges, by the edge schedule
  const uint32_t *edge_targets; // [num_positions] local ids, or NO_VERTEX
  uint8_t *status;              // [n]
  uint32_t *sent[2];            // [p / 32 rounded up] bits
  Record *records[2];           // [p]
  Slots *partials;              // [slices, 32] what tiles are combined to
  uint32_t *partial_bits;       // [slices] whose partials hold something
  Slots *inboxes[2];            // [n] neutral, but for messages on their way
  uint32_t *touched[2];         // [n / 32 rounded up] bits: whose inbox is not
  uint32_t *wrote;      // [n / 32 rounded up] bits: wrote to some of its
                        // edge states; null where the host commits all.
                        // Not committed unless this carries on
  uint32_t *targets;    // [n] lids with a touched inbox, in any order
  uint32_t *senders;    // [p] lids that send along few edges
  uint32_t *hubs;       // [num_hubs] lids that send along many
  uint64_t *offsets;    // [n + 1] where a vertex's messages begin
  uint64_t *list_ends;  // [n] and end, where lists of edges are sorted
  uint64_t *list_keys;  // [num_listed] keys, and positions in a vertex's list,
  uint32_t *list_order; // while lists are sorted (sorted_lists.cuh)
  uint64_t num_listed;  // messages of which the lists have room for twice
  DirectMessages direct;
  Halo halo;
  void *key_words;  // tables of the first num_key_rows rows of in_edges, where
  void *key_sums;   // messages are grouped by key (grouped.cuh)
  Totals *totals;   // [blocks]
  Totals *carried;  // contributions of a superstep that overflowed
  void *aggregates; // what arguments.aggregates points to
  Stats *stats;     // [end - first superstep]
  Control *control;
  void *answers[8];         // [n] each: states by gid, when the run is over
  const uint32_t *by_gid;   // [n] the lid of each
  uint32_t answer_bytes[8]; // of a value: 1, 2, 4 or 8
  uint32_t num_answers;     // the first so many states; 0: none are asked for
  uint32_t num_warp_rows;   // with SIGPS_IN_PIECES: rows of in_edges up to here
                            // take a warp or a block, others a thread each
};

// Whether a full scan lists the senders, too. Ghosts that send are not its own.
__device__ inline bool scan_lists(const Lease &lease) {
  return !SIGPS_PEERS && lease.num_lids == lease.num_owned;
}

// Whether a superstep counts in which no vertex runs.
__device__ inline bool counts_idle(const Lease &lease,
                                   const NextSuperstep &now) {
  return lease.counts_idle || now.counts_idle;
}

// What a thread did.
struct ThreadCounters {
  uint32_t ran, active, senders;
  uint32_t retired_edges; // too few where 32 bits do not hold them
  unsigned long long sent_edges;
  Totals totals;
};

__device__ inline ThreadCounters zero_counters() {
  return {0, 0, 0, 0, 0, identity_totals()};
}

// Adds what a thread did in a further turn over vertices that it has counted
// (gather_packed.cuh), or in the first. Returns whether one changed: by the
// first aggregator, which counts them.
__device__ inline bool add_turn(const Lease &lease, const NextSuperstep &now,
                                ThreadCounters &counted,
                                const ThreadCounters &turn, bool is_first) {
  counted.ran += turn.ran;
  counted.active += turn.active;
  if (is_first) {
    counted.senders += turn.senders;
    counted.retired_edges += turn.retired_edges;
    counted.sent_edges += turn.sent_edges;
  }
  if (HAS_AGGREGATES)
    keep_fault(lease.in, now.superstep, NO_VERTEX,
               sigps_fold(&counted.totals, &turn.totals));
  return turn.totals.cells[0] != identity_totals().cells[0];
}

__device__ inline uint32_t thread_of_grid() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ inline uint32_t threads_of_grid() { return gridDim.x * blockDim.x; }

// A number for each warp. Warps with successive numbers are on different
// multiprocessors, so that little work is spread over all of them.
__device__ inline uint32_t spread_warp() {
  return threadIdx.x / 32 * gridDim.x + blockIdx.x;
}

__device__ inline bool is_set(const uint32_t *bits, uint32_t v) {
  return bits[v / 32] >> (v % 32) & 1;
}

// How many lanes run compute() of a vertex together.
constexpr uint32_t LANES_OF_VERTEX = SIGPS_BY_WARP ? 32 : 1;

// Out-edges of a vertex that a thread goes through alone.
#ifndef SIGPS_ALONE_AT_MOST
#define SIGPS_ALONE_AT_MOST 256
#endif
constexpr uint32_t ALONE_AT_MOST = SIGPS_ALONE_AT_MOST;
// Runs compute() of a vertex, and writes what it decided. Returns whether it
// has a message to send along an edge. So many threads call, with the same
// vertex, and the first one counts: with SIGPS_BY_WARP a warp, or a block that
// is a team; else one thread, or a team of a warp or block (team.cuh).
__device__ inline bool run_vertex(const Lease &lease, const NextSuperstep &now,
                                  uint32_t v, uint8_t status,
                                  const Inbox &inbox, ThreadCounters &counted,
                                  uint32_t threads = LANES_OF_VERTEX) {
  Record *records = lease.records[(now.superstep + 1) & 1];
  Totals given;
  uint32_t flags =
      compute(lease.in, now.superstep, v, inbox,
              threads > LANES_OF_VERTEX ? threads / LANES_OF_VERTEX : 0,
              HAS_RECORD ? &records[v] : nullptr, &given);
  keep_fault(lease.in, now.superstep, v, flags >> FAULT_SHIFT);
  if (SIGPS_DIRECT && (flags & OVERFLOW)) {
    atomicOr(&lease.direct.overflowed[v / 32], 1u << v % 32);
    return false;
  }
  bool counts = (threads > 32 ? threadIdx.x : threads > 1 ? lane_id() : 0) == 0;
  if (SIGPS_NUM_EDGE_STATES > 0 && (flags & WROTE) && lease.wrote != nullptr)
    atomicOr(&lease.wrote[v / 32], 1u << v % 32);
  uint8_t next = flags & RETIRE ? RETIRED : flags & HALT;
  if (next != status)
    lease.status[v] = next;
  uint32_t degree = lease.in.out_degrees[v];
  bool sends = !SIGPS_DIRECT && (flags & SENT) && degree > 0;
  if (!counts)
    return sends;
  counted.ran++;
  counted.active += next == ACTIVE;
  if (next == RETIRED)
    counted.retired_edges =
        max(counted.retired_edges, counted.retired_edges + max(degree, 1u));
  if (sends) {
    counted.senders++;
    counted.sent_edges += degree;
  }
  if (HAS_AGGREGATES)
    keep_fault(lease.in, now.superstep, v, sigps_fold(&counted.totals, &given));
  return sends;
}

__device__ inline Inbox inbox_of(const Inbox &inbox, uint32_t lane) {
  Inbox found = inbox;
#if SIGPS_LISTED
  found.begin = __shfl_sync(ALL_LANES, inbox.begin, lane);
  found.end = __shfl_sync(ALL_LANES, inbox.end, lane);
#else
#pragma unroll WORDS_AT_ONCE
  for (int i = 0; i < Slots::NUM_WORDS; i++)
    found.slots.words[i] = typename Slots::Word(
        __shfl_sync(ALL_LANES, inbox.slots.words[i], lane));
#endif
  found.has = __shfl_sync(ALL_LANES, inbox.has, lane);
  return found;
}

// The same for the vertices of those lanes that have one to run: at once, or
// one after another, each by all lanes. All lanes call; each gets the result of
// its own vertex.
__device__ inline bool run_vertices(const Lease &lease,
                                    const NextSuperstep &now, bool runs,
                                    uint32_t v, uint8_t status,
                                    const Inbox &inbox,
                                    ThreadCounters &counted) {
#if SIGPS_BY_TEAM && !SIGPS_BY_WARP && !SIGPS_LISTED
  // A vertex of many edges is a team's, of all lanes. The one call stands for
  // both: first of lanes alone, then of the team, vertex by vertex.
  uint32_t those =
      __ballot_sync(ALL_LANES, runs && lease.in.out_degrees[v] > ALONE_AT_MOST);
  bool sends = false, is_alone = true;
  while (is_alone || those != 0) {
    uint32_t lane = is_alone ? lane_id() : __ffs(those) - 1;
    bool is_mine = is_alone ? runs && !(those >> lane & 1) : true;
    uint32_t of = __shfl_sync(ALL_LANES, v, lane);
    uint32_t had = __shfl_sync(ALL_LANES, uint32_t(status), lane);
    Inbox got = inbox_of(inbox, lane);
    bool one = is_mine && run_vertex(lease, now, of, uint8_t(had), got, counted,
                                     is_alone ? 1 : 32);
    if (lane_id() == lane)
      sends = one;
    those &= is_alone ? those : those - 1;
    is_alone = false;
  }
  return sends;
#else
  if (!SIGPS_BY_WARP)
    return runs && run_vertex(lease, now, v, status, inbox, counted);
  bool sends = false;
  __syncwarp(); // what a lane has listed for its vertex, all of them read
  uint32_t those = __ballot_sync(ALL_LANES, runs);
  for (; those != 0; those &= those - 1) {
    uint32_t lane = __ffs(those) - 1;
    bool one = run_vertex(lease, now, __shfl_sync(ALL_LANES, v, lane),
                          __shfl_sync(ALL_LANES, uint32_t(status), lane),
                          inbox_of(inbox, lane), counted);
    if (lane_id() == lane)
      sends = one;
  }
  return sends;
#endif
}

} // namespace sigps
