// The messages that some sources of a packed row bring, made at the target.

#pragma once

#include "gather.cuh"
#include "packed_rows.cuh"

#if SIGPS_PACKED
namespace sigps {

constexpr int AT_ONCE = 4; // targets of a thread

// What sigps_deliver reads of the arguments, where edge 0 has packed values.
// The compiler keeps it in registers.
#ifdef SIGPS_COLUMN_TYPES
template <class First, class... Rest>
__device__ inline void point_to(const void **columns,
                                const packed::Values<First, Rest...> &values) {
  columns[0] = &values.first;
  if constexpr (sizeof...(Rest) > 0)
    point_to(columns + 1, values.rest);
}

__device__ inline Arguments
with_values(const Arguments &given,
            const packed::Values<SIGPS_COLUMN_TYPES> &values) {
  Arguments found;
  found.num_vertices = given.num_vertices;
  found.num_edges = given.num_edges;
  found.params = given.params;
  found.aggregates = given.aggregates;
  found.ids = given.ids;
  found.out_degrees = given.out_degrees;
  found.in_degrees = given.in_degrees;
  point_to(found.columns, values);
  return found;
}
#define SIGPS_ARGUMENTS_OF(given, found, k)                                    \
  with_values(given, (found).values[k])
#else
#define SIGPS_ARGUMENTS_OF(given, found, k) given
#endif

#if !SIGPS_LISTED
// Calls use(Slots) with what some sources of v send. All loads are issued
// before the first value is used.
template <SenderFilter FILTER, class Use>
__device__ inline void
for_brought(const Lease &lease, const NextSuperstep &now, const Outbox &outbox,
            uint32_t v, const packed::Targets<AT_ONCE> &sources, Use use) {
  Occasion when{lease.in, now.superstep, v};
  bool sent[AT_ONCE];
  Record records[AT_ONCE];
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++)
    sent[k] = sources.is_there[k] &&
              (FILTER == SENDERS_ALL || has_sent(outbox, sources.targets[k]));
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++)
    if (HAS_RECORD && sent[k])
      records[k] = record_of(outbox, sources.targets[k]);
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++) {
    Slots value;
    const Arguments &given = SIGPS_ARGUMENTS_OF(lease.in, sources, k);
    if (sent[k] &&
        when.passes(sigps_deliver(&given, now.superstep - 1, &records[k],
                                  sources.targets[k], v, 0, &value),
                    sources.targets[k]))
      use(value);
  }
}
#endif

} // namespace sigps
#endif
