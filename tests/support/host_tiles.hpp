// The parts of a lease that tiles.cuh, gather.cuh and publish.cuh read, where
// threads are those of host_threads.hpp. Records are whole numbers, and so are
// their sums, which have no order. The text of edges.cuh stands before this,
// that of gather.cuh and tiles.cuh follows, without what they include.

#ifndef SIGPS_EARLY_EXIT
#define SIGPS_EARLY_EXIT 0
#endif
#ifndef SIGPS_PEERS
#define SIGPS_PEERS 1
#endif
#define SIGPS_BY_WARP 0
#define SIGPS_BY_TEAM 0
#define SIGPS_WALKS 1 // vertices without senders are no other path then
#ifndef SIGPS_TILES
#define SIGPS_TILES 1
#endif
#define SIGPS_ONCE
#define WORDS_AT_ONCE

namespace sigps {

constexpr uint32_t ALL_LANES = 0xffffffff, NO_VERTEX = ALL_LANES;
constexpr uint32_t LANES_OF_VERTEX = 1;
template <class T> static T __ldcg(const T *at) { return *at; }
static uint32_t __reduce_add_sync(uint32_t lanes, uint32_t value) {
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(lanes, value, distance);
  return value;
}
static uint32_t lane_id() { return threadIdx.x % 32; }
enum Status : uint8_t { ACTIVE, HALTED, RETIRED };
enum SenderFilter : uint32_t { SENDERS_NONE, SENDERS_BITMAP, SENDERS_ALL = 3 };
constexpr uint32_t NUM_TASK_COUNTERS = 16;
constexpr bool HAS_RECORD = true;

struct Slots {
  using Word = uint32_t;
  static constexpr int NUM_WORDS = SIGPS_WORDS;
  Word words[NUM_WORDS];
};
struct Record {
  uint32_t words[SIGPS_WORDS];
};
struct Inbox {
  Slots slots;
  uint32_t has;
};
static Inbox empty_inbox() { return {}; }
struct Arguments {
  const uint32_t *column;
};
struct Occasion {
  const Arguments &arguments;
  int64_t superstep;
  uint32_t vertex;
  bool passes(uint32_t brought, uint32_t) const { return brought & 1; }
};
static void put(Inbox &inbox, const Slots &value, const Occasion &) {
  for (int i = 0; i < SIGPS_WORDS; i++)
    inbox.slots.words[i] += value.words[i];
  inbox.has = 1;
}
static Inbox combine_warp(Inbox inbox, const Occasion &when) {
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    Inbox other;
    for (int i = 0; i < SIGPS_WORDS; i++)
      other.slots.words[i] =
          __shfl_xor_sync(ALL_LANES, inbox.slots.words[i], distance);
    if (__shfl_xor_sync(ALL_LANES, inbox.has, distance))
      put(inbox, other.slots, when);
  }
  return inbox;
}
static Inbox combine_block(Inbox inbox, const Occasion &when) {
  static Inbox all;
  if (threadIdx.x == 0)
    all = empty_inbox();
  __syncthreads();
  if (inbox.has)
    put(all, inbox.slots, when);
  __syncthreads();
  inbox = all;
  __syncthreads();
  return inbox;
}

struct Counter {
  uint32_t value;
};
struct Counters {
  unsigned long long senders;
};
struct Control {
  Counter next_block_row, next_task[NUM_TASK_COUNTERS];
  Counters counters;
};
enum Remaining : uint32_t { WHOLE, PUBLISHING = 2 };
struct Peer {
  Record *records[2];
  uint32_t *sent[2], *listed[2];
  uint32_t num_hot, first_hot, first_cold;
};
struct Halo {
  const Peer *peers;
  const uint32_t *bounds, *vertices, *copy_offsets, *copies;
  uint32_t *num_published;
  uint64_t could_send;
  uint32_t rank, num_ranks;
};
struct Lease {
  Arguments in;
  Edges in_edges;
  Tiles tiles;
  uint32_t num_owned, num_lids, num_block_rows, num_team_rows;
  uint32_t num_cached_records, num_cached_bits, num_cached_ghosts, first_hot;
  uint8_t *status;
  uint32_t *sent[2];
  Record *records[2];
  Slots *partials;
  uint32_t *partial_bits;
  Control *control;
  Inbox *found; // what vertices compute with
  Halo halo;
  int64_t end;
  uint32_t num_warp_rows;
};
struct NextSuperstep {
  int64_t superstep;
  SenderFilter sender_filter;
  Remaining remaining;
};
struct ThreadCounters {};
static bool is_set(const uint32_t *bits, uint32_t v) {
  return bits[v / 32] >> (v % 32) & 1;
}
static bool run_vertex(const Lease &lease, const NextSuperstep &, uint32_t v,
                       uint8_t, const Inbox &inbox, ThreadCounters &,
                       uint32_t = 1) {
  lease.found[v] = inbox;
  lease.found[v].has |= 2; // it ran
  return v % 3 == 0;
}
static bool run_vertices(const Lease &lease, const NextSuperstep &now,
                         bool runs, uint32_t v, uint8_t status,
                         const Inbox &inbox, ThreadCounters &counted) {
  return runs && run_vertex(lease, now, v, status, inbox, counted);
}
static uint32_t thread_of_grid() { return threadIdx.x; }
static uint32_t threads_of_grid() { return SIGPS_THREADS; }
static uint32_t spread_warp() { return threadIdx.x / 32; }
alignas(16) static uint4 shared_cache[1 << 14];

} // namespace sigps

// A record, both ends of its edge and the edge's value, with a filter of the
// user's.
static uint32_t sigps_deliver(const sigps::Arguments *arguments, int64_t,
                              const sigps::Record *record, uint32_t source,
                              uint32_t target, uint64_t edge, void *value) {
  sigps::Slots slots;
  for (int i = 0; i < SIGPS_WORDS; i++)
    slots.words[i] = record->words[i] + 7 * source + target + i +
                     (arguments->column ? arguments->column[edge] : 0);
  memcpy(value, &slots, sizeof slots);
  return SIGPS_ALL_PASS || source % 5 != target % 5;
}
