// The contract between engine kernels (CUDA C++) and a program's functions
// (CUDA C++ that compiler/cuda writes). Both become LTO-IR and are linked into
// one module, in which the calls below are inlined.
//
// What of a program a kernel can be specialised for arrives as macros, written
// by sigps/compiler/cuda/compile.py:
//
//   SIGPS_ID                    type of user ids in memory: int32_t or int64_t
//   SIGPS_<ROW>_BYTES, _ALIGN   RECORD, SLOTS and MESSAGE rows; 0 bytes: none
//   SIGPS_NUM_SLOTS             fields of the slots row; of each its value of
//   SIGPS_EACH_SLOT(F)          Op, C++ type, byte, and whether it is a sum
//   that
//                               may leave its type: F(op, type, offset, 0) ...
//   SIGPS_NEUTRAL               1: neutral_slots() changes no value but NaN
//   SIGPS_NEUTRAL_WORDS         the words of that row
//   SIGPS_NUM_AGGREGATES        one 8-byte cell each
//   SIGPS_IDENTITY_WORDS        the cells of aggregators without contributions
//   SIGPS_PERSISTENT            of each cell, 1 where its aggregator carries on
//   SIGPS_NUM_EDGE_STATES       values kept on each out-edge, and their types:
//   SIGPS_EACH_EDGE_STATE(F)    F(0, type) F(1, type) ...
//   SIGPS_WALKS                 1: compute() walks its vertex's out-edges
//   SIGPS_BY_WARP               1: all lanes of a warp run compute() together
//   SIGPS_BY_TEAM               1: the warps of a block may, or without
//                               SIGPS_BY_WARP its threads (team.cuh)
//   SIGPS_LISTED                1: compute() reads a list, nothing combines
//   SIGPS_SORTED                1: a list in ascending order of sigps_key()
//   SIGPS_GROUPED               1: messages are added up by key, and the slots
//                               are those of the key of most weight; then the
//                               macros of key_table.cuh are there, too
//   SIGPS_DIRECT                1: compute() sends direct messages, no record
//   SIGPS_EARLY_EXIT            1: the first message that passes, in the order
//                               of in-edges, decides all slots
//   SIGPS_ALL_PASS              1: sigps_deliver always returns PASSES
//   SIGPS_FAULTS                1: a function below may return a fault
//   SIGPS_MASTER                1: there is sigps_master, which is master() and
//                               runs after every superstep; 2: it is
//                               next_phase(), and runs where nothing is left
//
// A row is what a tuple looks like in memory: nothing, one scalar, or fields
// aligned as in C. An array of rows begins at a multiple of 16 bytes. A cell is
// 8 bytes with a scalar in its low bytes.

#pragma once

#include "integers.cuh"

namespace sigps {

// Bits that compute returns. OVERFLOW: the buffer of direct messages was full.
// The vertex kept its state and its edge states; its messages must be dropped
// and the vertex run again. WROTE: it wrote to some of its edges.
enum Flag : uint32_t {
  HALT = 1,
  RETIRE = 2,
  SENT = 4,
  OVERFLOW = 8,
  WROTE = 16
};

// Bits that master returns: the run ends; all vertices become active that have
// not retired.
enum MasterFlag : uint32_t { STOP = 1, WAKE = 2 };

// Bits that deliver returns: the edge brings something; the fault is the edge
// function's, and so the sender's.
constexpr uint32_t PASSES = 1;
constexpr uint32_t FAULT_OF_EDGE = 2;

// Above the bits that compute and deliver return stands the fault. A fault is
// 0, or where and how arithmetic had no result: a position in the sites of the
// program's functions, counted from 1. Kernels keep it (faults.cuh).
constexpr uint32_t FAULT_SHIFT = 8;

// How a field of the slots row combines. USER: with its row as a whole, which
// only sigps_merge can do.
enum Op {
  SUM = 0,
  MIN = 1,
  MAX = 2,
  ANY = 3,
  ALL = 4,
  USER = 5,
  PROD = 6,
  OR = 7, // of bits, as AND and XOR
  AND = 8,
  XOR = 9
};

// What does not change while a kernel runs, but for the values it points to.
// n: owned vertices; g: ghosts, which follow them. Edge columns have the order
// of the edges they belong to.
struct Arguments {
  int64_t num_vertices; // of the whole graph, as are its edges
  int64_t num_edges;
  const void *params;          // a cell each
  const void *aggregates;      // a cell each: what last superstep gave
  unsigned long long *faults;  // [2] what ends the run: one of a superstep, by
                               // its parity (faults.cuh); 0: none
  const void *ids;             // [n + g] SIGPS_ID
  const uint32_t *out_degrees; // [n]
  const uint32_t *in_degrees;  // [n]
  const void *columns[8];      // [in-edges] each, that messages need
  void *states[32];            // [n] each
  const uint64_t *out_offsets; // [n + 1], where compute() walks out-edges;
                               // then of copied rows of remote neighbours
  const uint32_t *out_gids;    // [out-edges, copied edges] global ids
  const int64_t *out_ids;      // [out-edges] user ids
  const void *out_columns[8];  // [out-edges] each, that compute() reads
  const uint32_t *out_rows;    // [out-edges] the target's row: a local id,
                               // or n and more for a copied one
  const int64_t *reverse;      // [out-edges] the first edge back, in that row
  void *pending[16];   // [out-edges] each: edge states, of this superstep
  void *committed[16]; // [out-edges, copied edges] the same, as of the
                       // superstep's begin
  void *lists[16];     // [messages] each: a field of all messages
  unsigned long long *num_direct; // may exceed direct_capacity
  uint64_t direct_capacity;
  uint8_t
      *direct_kinds; // [direct_capacity] 0: the target is a global id, 1: user
  int64_t *direct_targets;  // [direct_capacity]
  uint32_t *direct_senders; // [direct_capacity] local ids
  void *direct_messages;    // [direct_capacity] Message
};

template <int ALIGN> struct WordOf {
  using type = uint64_t;
};
template <> struct WordOf<4> {
  using type = uint32_t;
};
template <> struct WordOf<2> {
  using type = uint16_t;
};
template <> struct WordOf<1> {
  using type = uint8_t;
};

// Whether rows hold long vectors.
#define SIGPS_LONG_ROWS                                                        \
  (SIGPS_NUM_SLOTS > 16 || SIGPS_SLOTS_BYTES > 128 || SIGPS_RECORD_BYTES > 128)

// A row of opaque words. Its alignment is the largest power of two, up to 16,
// that divides its size, so that it moves in as few accesses as possible.
template <int BYTES, int ALIGN> struct alignas(ALIGN) Row {
  using Word = typename WordOf<ALIGN>::type;
  static constexpr int NUM_WORDS = BYTES / sizeof(Word);
  Word words[NUM_WORDS];
};

// The same by its size alone: a vector in an array.
template <int BYTES>
using Bytes = Row<BYTES, (BYTES & -BYTES) < 16 ? (BYTES & -BYTES) : 16>;

// An empty row takes one byte, since no type of C++ is empty.
template <int ALIGN> struct Row<0, ALIGN> : Row<1, 1> {};

constexpr bool HAS_RECORD = SIGPS_RECORD_BYTES > 0;
constexpr bool HAS_SLOTS = SIGPS_SLOTS_BYTES > 0;
constexpr bool HAS_AGGREGATES = SIGPS_NUM_AGGREGATES > 0;

using Id = SIGPS_ID;
using Record = Row<SIGPS_RECORD_BYTES, SIGPS_RECORD_ALIGN>;
using Slots = Row<SIGPS_SLOTS_BYTES, SIGPS_SLOTS_ALIGN>;
using Message = Row<SIGPS_MESSAGE_BYTES, SIGPS_MESSAGE_ALIGN>;

struct Totals {
  uint64_t cells[HAS_AGGREGATES ? SIGPS_NUM_AGGREGATES : 1];
};

#if SIGPS_NEUTRAL
__device__ inline Slots neutral_slots() { return Slots{{SIGPS_NEUTRAL_WORDS}}; }
#endif

__device__ inline Totals identity_totals() {
  return Totals{{SIGPS_IDENTITY_WORDS}};
}

} // namespace sigps

// The program's functions. Every pointer to a row or to cells may point into
// local memory: once inlined, it is registers. None of them synchronises,
// except a warp with SIGPS_BY_WARP. Only compute writes memory that is not its
// caller's: the states of its vertex, the edge states of its out-edges
// (arguments->pending), and direct messages.
extern "C" {

// Runs compute() of one owned vertex and writes its new state. Writes `record`
// only with SENT. Always writes `given`, a cell an aggregator. With
// SIGPS_BY_WARP all lanes of a warp call it, for the same vertex and with the
// same values behind all pointers; all write the same, and get the same. With
// SIGPS_BY_TEAM so many members may call together: warps of a block, or without
// SIGPS_BY_WARP the threads of a block or warp; 0: this one alone.
#if SIGPS_LISTED
// The messages are positions begin..end of arguments->lists.
__device__ uint32_t sigps_compute_listed(const sigps::Arguments *arguments,
                                         int64_t superstep, uint32_t vertex,
                                         int64_t begin, int64_t end,
                                         uint32_t members, void *record,
                                         void *given);

// Puts a message at a position of arguments->lists.
__device__ void sigps_list(const sigps::Arguments *arguments, int64_t position,
                           const void *message);
#if SIGPS_SORTED
// Writes the key of the message at a position, as a number whose order is that
// of keys. Returns its fault.
__device__ uint32_t sigps_key(const sigps::Arguments *arguments,
                              int64_t superstep, int64_t position,
                              uint64_t *key);

// Copies the message at a position to another one.
__device__ void sigps_copy_listed(const sigps::Arguments *arguments,
                                  int64_t from, int64_t to);
#endif
#else
// Reads `inbox`, a row of slots, only where `has` is not 0.
__device__ uint32_t sigps_compute(const sigps::Arguments *arguments,
                                  int64_t superstep, uint32_t vertex,
                                  const void *inbox, uint32_t has,
                                  uint32_t members, void *record, void *given);

// Makes a direct message, sent in superstep - 1, into one value of every slot.
// Returns its fault.
__device__ uint32_t sigps_lift(const sigps::Arguments *arguments,
                               int64_t superstep, const void *message,
                               void *value);

// Combines a value into `into`, which holds something only where `has`. Returns
// its fault.
__device__ uint32_t sigps_merge(void *into, uint32_t has, const void *value);
#endif

// Makes a sender's record into what one edge brings its target: one value of
// every slot, or a message where they are listed. `superstep` is the sender's,
// `edge` a position in arguments->columns; source and target may be ghosts.
// Without PASSES in what it returns the edge brings nothing, and `value` is
// undefined. Without a record (SIGPS_DIRECT) no edge brings anything.
__device__ uint32_t sigps_deliver(const sigps::Arguments *arguments,
                                  int64_t superstep, const void *record,
                                  uint32_t source, uint32_t target,
                                  uint64_t edge, void *value);

// Adds one vertex's contributions, or another sum of them, to totals. Returns
// its fault.
__device__ uint32_t sigps_fold(void *total, const void *given);

#if SIGPS_MASTER
// Runs master() or next_phase() after a superstep, by one thread: reads the
// cells in arguments->aggregates, and writes the shared values among them to
// `aggregates`. With a fault it writes nothing. It is a module of its own, and
// not inlined.
__device__ uint32_t sigps_master(const sigps::Arguments *arguments,
                                 int64_t superstep, void *aggregates);
#endif
}
