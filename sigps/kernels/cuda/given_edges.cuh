// Edges of a batch as they were given in the memory of the GPU: brought to the
// types that rows have, and checked.
//
// Schedule: a thread an edge.
//
// Macros: those of `changing_rows.cuh`.

#pragma once

#include "changing_rows.cuh"

namespace sigps {
namespace {

// Types of what is given; given_edges.py has the same order.
enum NumberType : uint32_t {
  INT8,
  INT16,
  INT32,
  INT64,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
  FLOAT32,
  FLOAT64
};

struct GivenEdges {
  const void *ids[4];   // new sources and targets, deleted ones
  uint32_t *gids[4];    // what they become
  uint32_t id_types[4]; // a NumberType each, of whole numbers
  uint32_t id_counts[4];
  const void *numbers;  // of new edges
  Weight *weights;      // what they become
  uint32_t number_type; // a NumberType
  uint32_t num_numbers;
  uint64_t num_vertices; // ids are below it
  uint32_t *wrong;       // 1: the host is to look at the batch; 0 before
};

// Calls visit(i, value) for values of a type, each by a thread.
template <class T, class Visit>
__device__ inline void visit_all(const void *values, uint32_t count,
                                 Visit visit) {
  for (uint32_t i = first_thread(); i < count; i += num_threads())
    visit(i, static_cast<const T *>(values)[i]);
}

template <class Visit>
__device__ void visit_numbers(const void *values, uint32_t type, uint32_t count,
                              Visit visit) {
  switch (type) {
  case INT8:
    return visit_all<int8_t>(values, count, visit);
  case INT16:
    return visit_all<int16_t>(values, count, visit);
  case INT32:
    return visit_all<int32_t>(values, count, visit);
  case INT64:
    return visit_all<int64_t>(values, count, visit);
  case UINT8:
    return visit_all<uint8_t>(values, count, visit);
  case UINT16:
    return visit_all<uint16_t>(values, count, visit);
  case UINT32:
    return visit_all<uint32_t>(values, count, visit);
  case UINT64:
    return visit_all<uint64_t>(values, count, visit);
  case FLOAT32:
    return visit_all<float>(values, count, visit);
  case FLOAT64:
    return visit_all<double>(values, count, visit);
  }
}

// Functions, since NVRTC 13.0 knows no lambdas of any type.
struct TakeId {
  uint32_t *gids;
  uint64_t num_vertices;
  uint32_t *wrong;

  template <class T> __device__ void operator()(uint32_t i, T id) const {
    gids[i] = uint32_t(id);
    *wrong |= uint64_t(id) >= num_vertices;
  }
};

// A number is what was given: of floats if it is finite, of others if nothing
// was lost. Whole numbers are not made of floats. Those below 0 are for the
// host, since keys do not grow by them.
struct TakeNumber {
  Weight *weights;
  uint32_t *wrong;

  template <class T> __device__ void operator()(uint32_t i, T number) const {
    constexpr bool IS_FLOAT = T(0.5) != T(0);
    Weight weight = weights[i] = Weight(number);
    bool keeps_sign = !(weight < Weight(0)) == !(number < T(0));
    bool fits = IS_FLOAT ? weight - weight == Weight(0)
                         : T(weight) == number && keeps_sign;
    *wrong |= !fits || weight < Weight(0);
  }
};

__device__ void take_edges(const GivenEdges &given) {
  uint32_t wrong = 0;
  for (uint32_t part = 0; part < 4; part++)
    visit_numbers(given.ids[part], given.id_types[part], given.id_counts[part],
                  TakeId{given.gids[part], given.num_vertices, &wrong});
  visit_numbers(given.numbers, given.number_type, given.num_numbers,
                TakeNumber{given.weights, &wrong});
  if (wrong != 0)
    *given.wrong = 1;
}

} // namespace
} // namespace sigps
