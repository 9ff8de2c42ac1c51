// The parts of a lease that kernels over packed rows read, where threads are
// those of host_threads.hpp. Messages are whole numbers, and so are their sums,
// which have no order; pushes add to sums of their own. The text of edges.cuh
// and packed_rows.cuh stands before this, that of gather.cuh and the kernels
// follows, without what they include.

#define SIGPS_EARLY_EXIT 0
#define SIGPS_PEERS 0
#define SIGPS_BY_WARP 0
#define SIGPS_BY_TEAM 0
#define SIGPS_WALKS 0
#define SIGPS_TILES 0
#ifndef SIGPS_LISTED
#define SIGPS_LISTED 0
#endif
#ifndef SIGPS_WORDS
#define SIGPS_WORDS 1 // of combined messages; the others are zeros
#endif
#ifndef SIGPS_SORTED
#define SIGPS_SORTED 0
#endif
#ifndef SIGPS_GROUPED
#define SIGPS_GROUPED 0
#endif
#ifndef SIGPS_PACKED
#define SIGPS_PACKED 2
#endif
#define SIGPS_NEUTRAL 1
#define SIGPS_ONCE
#define WORDS_AT_ONCE

namespace sigps {

constexpr uint32_t ALL_LANES = 0xffffffff, NO_VERTEX = ALL_LANES;
static uint32_t lane_id() { return threadIdx.x % 32; }
enum Status : uint8_t { ACTIVE, HALTED, RETIRED };
enum SenderFilter : uint32_t { SENDERS_NONE, SENDERS_BITMAP, SENDERS_ALL = 3 };
constexpr uint32_t NUM_TASK_COUNTERS = 16, LANES_OF_VERTEX = 1;
constexpr bool HAS_RECORD = true;

struct Slots {
  using Word = uint64_t;
  static constexpr int NUM_WORDS = SIGPS_GROUPED ? 2 : SIGPS_WORDS;
  Word words[NUM_WORDS]; // where messages are grouped, a key and what it adds
};
struct Record {
  uint64_t word;
};
struct Found {
  Slots slots;
  uint32_t has;
};
#if SIGPS_LISTED
struct Inbox {
  int64_t begin, end;
  uint32_t has;
};
static Inbox listed(int64_t begin, int64_t end) {
  return {begin, end, end > begin};
}
static Inbox empty_inbox() { return listed(0, 0); }
using Message = Slots;
#else
using Inbox = Found;
static Inbox empty_inbox() { return {}; }
#endif
struct Arguments {
  int64_t num_vertices, num_edges;
  const void *params, *aggregates, *ids;
  const uint32_t *out_degrees, *in_degrees;
  const void *columns[8];
  uint64_t *lists; // of the one block
  uint64_t num_places;
};
struct Occasion {
  const Arguments &arguments;
  int64_t superstep;
  uint32_t vertex;
  bool passes(uint32_t brought, uint32_t) const { return brought & 1; }
  void keep(uint32_t) const {}
};
static double infinity() { return HUGE_VAL; }
static bool overflows_add(int64_t, int64_t, int64_t) { return false; }
#if !SIGPS_LISTED
static void put(Inbox &inbox, const Slots &value, const Occasion &) {
  inbox.slots.words[0] += value.words[0];
  inbox.has = 1;
}
static void put(Inbox &inbox, const Inbox &other, const Occasion &when) {
  if (other.has)
    put(inbox, other.slots, when);
}
static Inbox inbox_of(const Inbox &inbox, uint32_t lane) {
  Inbox found;
  found.slots.words[0] = __shfl_sync(ALL_LANES, inbox.slots.words[0], lane);
  found.has = __shfl_sync(ALL_LANES, inbox.has, lane);
  return found;
}
static Inbox combine_warp(Inbox inbox, const Occasion &when) {
  Inbox all = empty_inbox();
  for (uint32_t lane = 0; lane < 32; lane++)
    put(all, inbox_of(inbox, lane), when);
  return all;
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
#endif
template <class T> static T scan_warp(T value) {
  for (uint32_t step = 1; step < 32; step *= 2) {
    T before = __shfl_sync(ALL_LANES, value, (lane_id() - step) % 32);
    value += lane_id() >= step ? before : 0;
  }
  return value;
}

struct Counter {
  uint32_t value;
};
struct Control {
  uint32_t barrier;
  Counter next_block_row, next_task[NUM_TASK_COUNTERS];
};
struct Lease {
  Arguments in, out;
  Edges in_edges;
  PackedRows packed;
  uint32_t num_owned, num_lids, num_block_rows, num_team_rows;
  uint32_t num_cached_records, num_cached_bits, num_cached_ghosts, first_hot;
  uint8_t *status;
  uint32_t *sent[2];
  Record *records[2];
  uint32_t *targets, *senders, *hubs;
  Control *control;
  uint64_t *list_keys;
  uint32_t *list_order;
  uint64_t num_listed;
  Found *found; // what vertices compute with, or what was pushed to them
};
struct NextSuperstep {
  int64_t superstep;
  uint64_t retired_edges;
  SenderFilter sender_filter;
  uint32_t inbox_at;
};
struct ThreadCounters { // of a turn over a page
  uint32_t changed;
};
static ThreadCounters zero_counters() { return {0}; }
static void keep_fault(const Arguments &, int64_t, uint32_t, uint32_t) {}
static bool is_set(const uint32_t *bits, uint32_t v) {
  return bits[v / 32] >> (v % 32) & 1;
}
static bool run_vertex(const Lease &lease, const NextSuperstep &, uint32_t v,
                       uint8_t, const Inbox &inbox, ThreadCounters &counted,
                       uint32_t = 1) {
#if SIGPS_LISTED // a number that tells lists in another order apart
  Slots all = {inbox.has};
  for (int64_t at = inbox.begin; at < inbox.end; at++)
    all.words[0] = all.words[0] * 31 + lease.in.lists[at];
  lease.found[v] = {all, inbox.has};
#else
  uint32_t had = lease.found[v].has;
  counted.changed += had == 0; // what it computes with stays the same
  lease.found[v] = {inbox.slots, (had & ~1u) | inbox.has};
#endif
  lease.found[v].has += 2; // each time that it ran
  return v % 3 == 0;
}
static bool run_vertices(const Lease &lease, const NextSuperstep &now,
                         bool runs, uint32_t v, uint8_t status,
                         const Inbox &inbox, ThreadCounters &counted) {
  return runs && run_vertex(lease, now, v, status, inbox, counted);
}
static bool add_turn(const Lease &, const NextSuperstep &, ThreadCounters &,
                     const ThreadCounters &turn, bool) {
  return turn.changed != 0;
}
static uint32_t threads_of_grid() { return SIGPS_THREADS; }
static uint32_t spread_warp() { return threadIdx.x / 32; }
static void wait_for_all(uint32_t *, uint32_t &) { __syncthreads(); }
static uint32_t load_relaxed(const uint32_t *at) { // nobody else is there
  if (*at == 0)
    __builtin_trap();
  return *at;
}
static uint32_t load_acquire(const uint32_t *at) { return *at; }
static void store_release(uint32_t *at, uint32_t value) { *at = value; }
alignas(16) static uint4 shared_cache[1 << 10];

} // namespace sigps

static uint32_t sigps_merge(void *, uint32_t, const void *) { return 7; }

// Twice the record, and what the edge has; grouped, that for the record.
static uint32_t sigps_deliver(const sigps::Arguments *arguments, int64_t,
                              const sigps::Record *record, uint32_t source,
                              uint32_t, uint64_t edge, void *value) {
#if SIGPS_GROUPED
  sigps::Slots slots = {record->word, 1};
#else
  sigps::Slots slots = {2 * record->word};
#endif
#ifdef SIGPS_COLUMN_TYPES
  slots.words[SIGPS_GROUPED] +=
      uint64_t(((const SIGPS_COLUMN_TYPES *)arguments->columns[0])[edge]);
#endif
  memcpy(value, &slots, sizeof slots);
  return 1;
}

#if SIGPS_LISTED
static void sigps_list(const sigps::Arguments *arguments, int64_t position,
                       const void *message) {
  if (position < 0 || uint64_t(position) >= arguments->num_places)
    __builtin_trap();
  memcpy(arguments->lists + position, message, sizeof(uint64_t));
}

// Few keys, so that many are equal.
static uint32_t sigps_key(const sigps::Arguments *arguments, int64_t,
                          int64_t position, void *key) {
  uint64_t word = arguments->lists[position] % 5;
  memcpy(key, &word, sizeof word);
  return 0;
}

static void sigps_copy_listed(const sigps::Arguments *arguments, int64_t from,
                              int64_t to) {
  if (uint64_t(to) >= 2 * arguments->num_places)
    __builtin_trap();
  arguments->lists[to] = arguments->lists[from];
}
#endif

namespace sigps {

#if !SIGPS_LISTED
// Of scatter.cuh: lists, and what sends along one edge.
struct Route {
  int64_t arrival;
  uint32_t inbox;
};
template <bool LOOKS>
static bool send_with(const Arguments &arguments, const Lease &lease,
                      const NextSuperstep &, const Route &route,
                      uint32_t source, uint64_t position, uint32_t target) {
  Slots value;
  sigps_deliver(&arguments, route.arrival - 1,
                &lease.records[route.arrival & 1][source], source, target,
                position, &value);
  bool is_first = lease.found[target].has == 0;
  put(lease.found[target], value, {lease.in, route.arrival, target});
  return is_first;
}
template <class T>
static void append(T *list, uint32_t *count, bool appends, const T &value) {
  if (appends)
    list[atomicAdd(count, 1u)] = value;
}
static void list_target(const Lease &lease, const NextSuperstep &,
                        uint32_t *num_targets, bool is_first, uint32_t target) {
  append(lease.targets, num_targets, is_first, target);
}
#endif

} // namespace sigps
