// The parts of a lease that grouped.cuh reads, where threads are those of
// host_threads.hpp. The text of key_table.cuh and grouped.cuh follows, without
// what they include.

namespace sigps {

constexpr uint32_t ALL_LANES = 0xffffffff;
static uint32_t lane_id() { return threadIdx.x % 32; }
static double infinity() { return HUGE_VAL; }
enum Status : uint8_t { ACTIVE, HALTED, RETIRED };
enum SenderFilter : uint32_t { SENDERS_NONE, SENDERS_BITMAP, SENDERS_ALL = 3 };
constexpr uint32_t NUM_TASK_COUNTERS = 16;
constexpr bool HAS_RECORD = true;

struct Slots {
  uint64_t words[2];
};
struct Inbox {
  Slots slots;
  uint32_t has;
};
static Inbox empty_inbox() { return {}; }
struct Record { // a message is its sender's record
  SIGPS_KEY key;
  SIGPS_SUM sum;
};
struct Counter {
  uint32_t value;
};
struct Control {
  Counter next_block_row, next_task[NUM_TASK_COUNTERS];
};
struct RowOfEdges {
  uint64_t first;
  uint32_t step, degree;
};
constexpr RowOfEdges EMPTY_ROW = {0, 0, 0};
struct Edges {
  const uint64_t *offsets, *slices;
  const uint32_t *ends, *degrees;
  uint32_t num_csr_rows, num_rows;
};
static RowOfEdges row_of(const Edges &edges, uint32_t v) {
  if (v < edges.num_csr_rows)
    return {edges.offsets[v], 1, edges.degrees[v]};
  return {edges.slices[(v - edges.num_csr_rows) / 32] + v % 32, 32,
          edges.degrees[v]};
}
struct Arguments {};
static uint32_t kept; // the last fault
struct Occasion {
  const Arguments &arguments;
  int64_t superstep;
  uint32_t vertex;
  void keep(uint32_t fault) const { kept = fault != 0 ? fault : kept; }
  bool passes(uint32_t brought, uint32_t) const { return brought & 1; }
};
static bool overflows_add(int64_t a, int64_t b, int64_t result) {
  return ((a ^ result) & (b ^ result)) < 0;
}
struct Lease {
  Arguments in;
  Edges in_edges;
  uint32_t num_owned, num_team_rows, num_key_rows;
  uint8_t *status;
  uint32_t *sent[2];
  Record *records[2];
  void *key_words, *key_sums;
  Control *control;
  Inbox *found; // what vertices would compute with
};
struct NextSuperstep {
  int64_t superstep;
  SenderFilter sender_filter;
};
struct ThreadCounters {};
static bool is_set(const uint32_t *bits, uint32_t v) {
  return bits[v / 32] >> (v % 32) & 1;
}
static bool run_vertex(const Lease &lease, const NextSuperstep &, uint32_t v,
                       uint8_t, const Inbox &inbox, ThreadCounters &) {
  lease.found[v] = inbox;
  lease.found[v].has |= 2; // it ran
  return v % 3 == 0;
}
static uint32_t threads_of_grid() { return SIGPS_THREADS; }
static uint32_t spread_warp() { return threadIdx.x / 32; }
static uint32_t take(uint32_t *numbers) {
  uint32_t number = lane_id() == 0 ? atomicAdd(numbers, 1u) : 0;
  return __shfl_sync(ALL_LANES, number, 0);
}
static void compute_active(const Lease &, const NextSuperstep &,
                           ThreadCounters &) {}
static uint4 shared_cache[SIGPS_THREADS / 32 * SIGPS_WARP_TABLE_BYTES / 16 + 1];

} // namespace sigps

static uint32_t sigps_merge(void *, uint32_t, const void *) { return 7; }

static uint32_t sigps_deliver(const sigps::Arguments *, int64_t,
                              const sigps::Record *record, uint32_t source,
                              uint32_t target, uint64_t, void *value) {
  char *row = static_cast<char *>(value);
  memcpy(row + SIGPS_KEY_OFFSET, &record->key, sizeof record->key);
  memcpy(row + SIGPS_SUM_OFFSET, &record->sum, sizeof record->sum);
  return source % 7 != target % 7; // a filter of the user's
}
