// The functions of abi.cuh for two apps, as a CUDA programmer writes them: what
// the schedule of lease.cu takes without Python. Linked in the place of those
// that Numba compiled from apps/pagerank.py and apps/bfs.py, under the same
// macros; by_hand.py adds
//
//   BY_HAND_PageRank, BY_HAND_BFS     which of the two; 1 or undefined
//   PLACE_OF_<field>, TYPE_OF_<field> where a state, a parameter or an
//                                     aggregator stands, and its C++ type
//
// A row is read and written as the words that it has in abi.cuh, so that the
// compiler sees that the kernel uses the same memory.

#include "abi.cuh"

using namespace sigps;

#define STATE(field)                                                           \
  static_cast<TYPE_OF_##field *>(arguments->states[PLACE_OF_##field])
#define PARAM(field)                                                           \
  (*reinterpret_cast<const TYPE_OF_##field *>(                                 \
      static_cast<const uint64_t *>(arguments->params) + PLACE_OF_##field))

extern "C" {

#if BY_HAND_PageRank
// rank(v) = (1 - d) / n + d * (sum { rank(u) / out_degree(u) } + lost / n)
//
// Slots and records are one float. Of the two aggregators `change` stays 0.

static_assert(sizeof(Slots) == 4 && sizeof(Record) == 4, "one float each");
static_assert(SIGPS_NUM_AGGREGATES == 2, "lost and change");

__device__ uint32_t sigps_compute(const Arguments *arguments, int64_t superstep,
                                  uint32_t vertex, const void *inbox,
                                  uint32_t has, uint32_t, void *record,
                                  void *given) {
  float n = float(arguments->num_vertices);
  float rank = 1.0f / n;
  if (superstep > 0) {
    float damping = PARAM(damping);
    uint64_t lost = static_cast<const Totals *>(arguments->aggregates)
                        ->cells[PLACE_OF_lost];
    float share = float(__longlong_as_double(lost)) / n;
    if (has)
      share += __uint_as_float(static_cast<const Slots *>(inbox)->words[0]);
    rank = (1.0f - damping) / n + damping * share;
  }
  STATE(rank)[vertex] = rank;
  Totals *contribution = static_cast<Totals *>(given);
  *contribution = identity_totals();
  if (superstep >= PARAM(iterations))
    return HALT;
  uint32_t degree = __ldg(&arguments->out_degrees[vertex]);
  if (degree == 0) {
    contribution->cells[PLACE_OF_lost] = __double_as_longlong(double(rank));
    return 0;
  }
  static_cast<Record *>(record)->words[0] =
      __float_as_uint(rank / float(degree));
  return SENT;
}

__device__ uint32_t sigps_deliver(const Arguments *, int64_t,
                                  const void *record, uint32_t, uint32_t,
                                  uint64_t, void *value) {
  static_cast<Slots *>(value)->words[0] =
      static_cast<const Record *>(record)->words[0];
  return 1;
}

__device__ uint32_t sigps_lift(const Arguments *, int64_t, const void *message,
                               void *value) {
  static_cast<Slots *>(value)->words[0] =
      static_cast<const Message *>(message)->words[0];
  return 0;
}

__device__ uint32_t sigps_merge(void *into, uint32_t has, const void *value) {
  Slots *sum = static_cast<Slots *>(into);
  float more = __uint_as_float(static_cast<const Slots *>(value)->words[0]);
  float before = has ? __uint_as_float(sum->words[0]) : 0.0f;
  sum->words[0] = __float_as_uint(before + more);
  return 0;
}

__device__ uint32_t sigps_fold(void *total, const void *given) {
  uint64_t *lost = &static_cast<Totals *>(total)->cells[PLACE_OF_lost];
  uint64_t more = static_cast<const Totals *>(given)->cells[PLACE_OF_lost];
  *lost = __double_as_longlong(__longlong_as_double(*lost) +
                               __longlong_as_double(more));
  return 0;
}

#elif BY_HAND_BFS
// level(source) = 0, level(v) = 1 + min { level(u) }: the superstep is the
// level, so only a vertex that is found writes.
//
// Slots are the smallest parent's id; the record is empty.

static_assert(sizeof(Slots) == sizeof(Id), "a parent");
static_assert(!HAS_RECORD && !HAS_AGGREGATES, "the sender's id says it all");

__device__ uint32_t sigps_compute(const Arguments *arguments, int64_t superstep,
                                  uint32_t vertex, const void *inbox,
                                  uint32_t has, uint32_t, void *, void *) {
  Id parent;
  if (superstep == 0) {
    parent = __ldg(&static_cast<const Id *>(arguments->ids)[vertex]);
    if (parent != PARAM(source))
      return HALT;
  } else {
    if (!has)
      return HALT;
    parent = Id(static_cast<const Slots *>(inbox)->words[0]);
  }
  STATE(level)[vertex] = TYPE_OF_level(superstep);
  STATE(parent)[vertex] = TYPE_OF_parent(parent);
  return HALT | RETIRE | SENT;
}

__device__ uint32_t sigps_deliver(const Arguments *arguments, int64_t,
                                  const void *, uint32_t source, uint32_t,
                                  uint64_t, void *value) {
  static_cast<Slots *>(value)->words[0] =
      Slots::Word(__ldg(&static_cast<const Id *>(arguments->ids)[source]));
  return 1;
}

__device__ uint32_t sigps_lift(const Arguments *, int64_t, const void *message,
                               void *value) {
  static_cast<Slots *>(value)->words[0] =
      Slots::Word(static_cast<const Message *>(message)->words[0]);
  return 0;
}

__device__ uint32_t sigps_merge(void *into, uint32_t has, const void *value) {
  Slots *least = static_cast<Slots *>(into);
  Id other = Id(static_cast<const Slots *>(value)->words[0]);
  if (!has || other < Id(least->words[0]))
    least->words[0] = Slots::Word(other);
  return 0;
}

__device__ uint32_t sigps_fold(void *, const void *) { return 0; }

#else
#error "by_hand.cu has PageRank and BFS"
#endif
}
