// Vertices whose compute() walks their out-edges, which are rows that stay
// packed (packed_rows.cuh): a block unpacks those of a chain of pages, and then
// runs their vertices.
//
// A block has room for the edges of one chain, `list_places` positions, where
// arguments.out_gids, out_ids and out_columns point to: a vertex's begin where
// its row does in the chain. SIGPS_WALKED_COLUMNS says of each packed column
// which of out_columns has it, or -1: only messages read it. compute() gets a
// copy of the lease that is the block's, with pointers moved so that the
// offsets of rows among all edges lead there.
//
// Schedule: a row of up to 32 edges by a thread, those of over LONG_WALK and
// those that span pages by a block, others by a warp.

#pragma once

#include "lease.cuh"

#if SIGPS_PACKED && SIGPS_WALKS
namespace sigps {

constexpr int EDGES_AT_ONCE = 4;
constexpr uint32_t SHORT_WALK = 32, LONG_WALK = 4096;
constexpr uint32_t MOST_LONG_WALKS = (1 << 18) / LONG_WALK; // of a page

using WalkedEdges = packed::Targets<EDGES_AT_ONCE>;

__device__ inline Lease &lease_of_block() {
  __shared__ Lease own;
  return own;
}

#ifdef SIGPS_WALKED_COLUMNS
// Puts what an edge has of those from a number on at a place of theirs.
template <uint32_t COLUMN, class First, class... Rest>
__device__ inline void put_values(const void *const *columns, uint64_t at,
                                  const packed::Values<First, Rest...> &given) {
  constexpr int places[] = {SIGPS_WALKED_COLUMNS};
  if constexpr (places[COLUMN] >= 0)
    static_cast<First *>(const_cast<void *>(columns[places[COLUMN]]))[at] =
        given.first;
  if constexpr (sizeof...(Rest) > 0)
    put_values<COLUMN + 1>(columns, at, given.rest);
}
#endif

// Copies the lease; a barrier must stand before it is used. By a block.
__device__ inline void begin_walks(const Lease &lease) {
  const uint64_t *from = reinterpret_cast<const uint64_t *>(&lease);
  uint64_t *to = reinterpret_cast<uint64_t *>(&lease_of_block());
  for (uint32_t i = threadIdx.x; i < sizeof(Lease) / 8; i += blockDim.x)
    to[i] = from[i];
}

// Lets the offsets of a chain's rows lead to the block's room; likewise. By one
// thread.
__device__ inline void begin_chain(const Lease &lease, uint32_t first_row) {
  int64_t moved = int64_t(blockIdx.x * lease.packed.list_places) -
                  int64_t(lease.in.out_offsets[first_row]);
  Arguments &own = lease_of_block().in;
  own.out_gids = lease.in.out_gids + moved;
  own.out_ids = lease.in.out_ids + moved;
#ifdef SIGPS_WALKED_COLUMNS
  constexpr int places[] = {SIGPS_WALKED_COLUMNS};
#pragma unroll
  for (uint32_t c = 0; c < packed::NUM_COLUMNS; c++)
    if (places[c] >= 0)
      own.out_columns[places[c]] =
          static_cast<const char *>(lease.in.out_columns[places[c]]) +
          moved * int64_t(packed::ColumnTypes::size_of(c));
#endif
}

// Puts edges of a part of a row there, whose first one is at `begin`.
__device__ inline void put_edges(uint64_t begin, const WalkedEdges &found) {
  const Lease &own = lease_of_block();
  auto *gids = const_cast<uint32_t *>(own.in.out_gids);
  auto *ids = const_cast<int64_t *>(own.in.out_ids);
#pragma unroll
  for (int k = 0; k < EDGES_AT_ONCE; k++) {
    if (!found.is_there[k])
      continue;
    uint64_t at = begin + found.i + k * found.step;
    uint32_t lid = found.targets[k];
    gids[at] = own.packed.gids == nullptr ? lid : own.packed.gids[lid];
    ids[at] = static_cast<const Id *>(own.in.ids)[lid];
#ifdef SIGPS_WALKED_COLUMNS
    put_values<0>(own.in.out_columns, at, found.values[k]);
#endif
  }
}

// Unpacks what a page has of a row that begins at `begin`. By a block.
__device__ __noinline__ void unpack_part(const Lease &lease,
                                         const packed::Page &page,
                                         const packed::Part &part,
                                         uint64_t begin) {
  packed::for_targets_by_block<EDGES_AT_ONCE>(
      lease.packed, page, part,
      [&](const WalkedEdges &found) { put_edges(begin, found); });
}

// Unpacks rows of an open page, the last one of its chain: those of vertices
// that may run. By a block.
template <class Runs>
__device__ __noinline__ void
unpack_rows(const Lease &lease, const packed::Page &page, uint32_t first,
            uint32_t end, Runs runs) {
  __shared__ uint32_t long_rows[MOST_LONG_WALKS], num_long;
  const PackedRows &rows = lease.packed;
  const uint64_t *offsets = lease.in.out_offsets;
  const uint32_t *degrees = lease.in.in_degrees;
  if (threadIdx.x == 0)
    num_long = 0;
  __syncthreads();
  for (uint32_t v = first + threadIdx.x; v < end; v += blockDim.x)
    if (degrees[v] > LONG_WALK && runs(v))
      long_rows[atomicAdd(&num_long, 1)] = v;
  __syncthreads();
  for (uint32_t i = 0; i < num_long; i++) {
    uint32_t v = long_rows[i];
    unpack_part(lease, page, part_of(rows, v, degrees[v]), offsets[v]);
  }
  for (uint32_t of_warp = first + threadIdx.x / 32 * 32; of_warp < end;
       of_warp += blockDim.x) {
    uint32_t v = of_warp + lane_id();
    uint32_t degree = v < end && runs(v) ? degrees[v] : 0;
    if (degree > 0 && degree <= SHORT_WALK)
      packed::for_targets<EDGES_AT_ONCE>(
          rows, page, part_of(rows, v, degree),
          [&](const WalkedEdges &found) { put_edges(offsets[v], found); });
    uint32_t those =
        __ballot_sync(ALL_LANES, degree > SHORT_WALK && degree <= LONG_WALK);
    for (; those != 0; those &= those - 1) {
      uint32_t lane = __ffs(those) - 1, row = of_warp + lane;
      packed::for_targets_by_warp<EDGES_AT_ONCE>(
          rows, page, part_of(rows, row, __shfl_sync(ALL_LANES, degree, lane)),
          [&](const WalkedEdges &found) { put_edges(offsets[row], found); });
    }
  }
  __syncthreads();
}

// Unpacks a chain, and calls run(first, end, warp, warps) for its vertices. By
// a block.
template <class Runs, class Run>
__device__ inline void walk_chain(const Lease &lease, const NextSuperstep &now,
                                  uint32_t chain, Runs runs, Run run) {
  const PackedRows &rows = lease.packed;
  uint32_t page = rows.chains[chain], end_page = rows.chains[chain + 1];
  uint32_t first = rows.first_rows[page], end = rows.first_rows[end_page];
  bool some = false;
  for (uint32_t v = first + threadIdx.x; v < end; v += blockDim.x)
    some |= runs(v);
  if (!__syncthreads_or(some)) {
    packed::leave_out(rows, page, end_page);
    page = end_page;
  }
  bool spans = end_page - page > 1, walks_span = spans && runs(first);
  if (spans && !walks_span) {
    packed::leave_out(rows, page, end_page - 1);
    page = end_page - 1;
  }
  if (threadIdx.x == 0 && page < end_page) {
    packed::stamp_chain(rows, chain, uint32_t(now.superstep) + 1);
    begin_chain(lease, first);
  }
  uint32_t before = 0;
  for (; page < end_page; page++) {
    packed::Page open = packed::open_page(rows, page);
    if (walks_span) {
      uint32_t arcs = min(lease.in.in_degrees[first] - before, open.num_arcs);
      unpack_part(lease, open, {first, 0, 0, arcs},
                  lease.in.out_offsets[first] + before);
      before += arcs;
    }
    if (page + 1 == end_page)
      unpack_rows(lease, open, first + spans, end, runs);
  }
  run(first, end, threadIdx.x / 32, blockDim.x / 32);
  __syncthreads(); // all are done with the edges
}

// Runs vertices by chains, and those behind the last row. Pages of whose
// vertices none runs stay where they are. All threads of the grid call.
//
//   runs(v):                      whether a vertex runs
//   run(first, end, warp, warps): runs those of first..end that do, with
//                                 lease_of_block(), by so many warps of which
//                                 this is one
template <class Runs, class Run>
__device__ inline void walk_pages(const Lease &lease, const NextSuperstep &now,
                                  Runs runs, Run run) {
  __shared__ uint32_t next_chain;
  begin_walks(lease);
  for (;;) {
    if (threadIdx.x == 0)
      next_chain = atomicAdd(&lease.control->next_block_row.value, 1);
    __syncthreads();
    uint32_t chain = next_chain;
    __syncthreads();
    if (chain >= lease.packed.num_chains)
      break;
    walk_chain(lease, now, lease.packed.order[chain], runs, run);
  }
  run(lease.packed.num_rows, lease.num_owned, spread_warp(),
      threads_of_grid() / 32);
}

// The same as run_vertices, of an open chain or without edges.
__device__ __noinline__ bool run_walkers(const NextSuperstep &now, bool runs,
                                         uint32_t v, uint8_t status,
                                         const Inbox &inbox,
                                         ThreadCounters &counted) {
  return run_vertices(lease_of_block(), now, runs, v, status, inbox, counted);
}

} // namespace sigps
#endif
