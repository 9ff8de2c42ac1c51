// Values on edges of a part whose rows stay packed: what vertices wrote is
// committed, and what changed on edges to rows of other ranks is listed for
// these, which have copies of it.
//
// Rows ascend by their ends, and each rank has rows that follow each other: so
// the edges of a row that lead to a rank lie together.

#include "integers.cuh"

namespace {

constexpr uint32_t ALL_LANES = 0xffffffffu, CHUNK = 1024;
constexpr uint64_t DOES_NOT_CROSS = ~uint64_t(0);

// An edge state.
struct Column {
  uint8_t *pending, *committed;
  uint64_t bytes; // of a value
  uint64_t place; // where an entry has it, or DOES_NOT_CROSS
};

// As engine/gpu/crossing_values.py fills it in. An entry is an edge's number
// among those that lead to a rank, 8 bytes, and its values.
struct Values {
  const Column *columns; // [num_columns]
  uint64_t num_columns;
  const uint64_t *offsets; // [num_rows + 1] where rows begin among edges
  uint64_t num_rows;
  const uint32_t *wrote;  // [num_rows / 32 rounded up] bits
  const uint64_t *before; // [num_rows + 1, num_ranks] edges of earlier rows
                          // that lead to each rank; null where nothing crosses
  uint64_t num_ranks;
  uint64_t capacity; // entries for a rank
  uint64_t entry_bytes;
  uint8_t *entries;           // [num_ranks, capacity]
  unsigned long long *counts; // [num_ranks] zero before; may exceed capacity
  unsigned long long *left;   // the first chunk with an edge that found no room
};

template <class T>
__device__ bool differ(const uint8_t *a, const uint8_t *b, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof(T); i++)
    if (reinterpret_cast<const T *>(a)[i] != reinterpret_cast<const T *>(b)[i])
      return true;
  return false;
}

template <class T>
__device__ void copy(const uint8_t *from, uint8_t *to, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof(T); i++)
    reinterpret_cast<T *>(to)[i] = reinterpret_cast<const T *>(from)[i];
}

// As bits: -0.0 differs from 0.0, and a NaN equals itself.
__device__ bool values_differ(const uint8_t *a, const uint8_t *b,
                              uint64_t bytes) {
  if (bytes % 8 == 0)
    return differ<uint64_t>(a, b, bytes);
  return bytes % 4 == 0 ? differ<uint32_t>(a, b, bytes)
                        : differ<uint8_t>(a, b, bytes);
}

__device__ void copy_value(const uint8_t *from, uint8_t *to, uint64_t bytes) {
  if (bytes % 8 == 0)
    copy<uint64_t>(from, to, bytes);
  else if (bytes % 4 == 0)
    copy<uint32_t>(from, to, bytes);
  else
    copy<uint8_t>(from, to, bytes);
}

// Whether a value that crosses changed on edge e.
__device__ bool has_changed(const Values &values, uint64_t e) {
  for (uint32_t k = 0; k < values.num_columns; k++) {
    const Column &column = values.columns[k];
    if (column.place != DOES_NOT_CROSS &&
        values_differ(column.pending + e * column.bytes,
                      column.committed + e * column.bytes, column.bytes))
      return true;
  }
  return false;
}

// Commits edge e, and fills in its entry, if it has one.
__device__ void commit_edge(const Values &values, uint64_t e, uint8_t *entry) {
  for (uint32_t k = 0; k < values.num_columns; k++) {
    const Column &column = values.columns[k];
    const uint8_t *pending = column.pending + e * column.bytes;
    uint8_t *committed = column.committed + e * column.bytes;
    if (entry != nullptr && column.place != DOES_NOT_CROSS)
      copy_value(pending, entry + column.place, column.bytes);
    if (values_differ(pending, committed, column.bytes))
      copy_value(pending, committed, column.bytes);
  }
}

// Returns to which rank edge i of a row leads, and its number among those.
__device__ uint32_t rank_of_edge(const Values &values, uint64_t row, uint64_t i,
                                 uint64_t &number) {
  const uint64_t *here = values.before + row * values.num_ranks;
  const uint64_t *next = here + values.num_ranks;
  uint32_t rank = 0;
  for (; i >= next[rank] - here[rank]; rank++)
    i -= next[rank] - here[rank];
  number = here[rank] + i;
  return rank;
}

// Returns an entry for `rank` to each lane that asks; null where there is no
// room. By a warp.
__device__ uint8_t *take_entry(const Values &values, bool asks, uint32_t rank) {
  uint8_t *entry = nullptr;
  uint32_t lane = threadIdx.x % 32;
  for (uint32_t to = 0; to < values.num_ranks; to++) {
    uint32_t lanes = __ballot_sync(ALL_LANES, asks && rank == to);
    if (lanes == 0)
      continue;
    uint32_t leader = __ffs(lanes) - 1;
    unsigned long long first = 0;
    if (lane == leader)
      first = atomicAdd(&values.counts[to], (unsigned long long)__popc(lanes));
    first = __shfl_sync(ALL_LANES, first, leader);
    uint64_t slot = first + __popc(lanes & ((1u << lane) - 1));
    if (asks && rank == to && slot < values.capacity)
      entry =
          values.entries + (to * values.capacity + slot) * values.entry_bytes;
  }
  return entry;
}

// Commits edges begin..end of a row, but for those that find no room; returns
// whether this lane had none of these. By a warp.
__device__ bool commit_part(const Values &values, uint32_t own_rank,
                            uint64_t row, uint64_t begin, uint64_t end) {
  bool found_room = true;
  for (uint64_t first = begin; first < end; first += 32) {
    uint64_t e = first + threadIdx.x % 32, number = 0;
    uint32_t rank = own_rank;
    if (values.before != nullptr && e < end && has_changed(values, e))
      rank = rank_of_edge(values, row, e - values.offsets[row], number);
    bool crosses = rank != own_rank;
    uint8_t *entry = take_entry(values, crosses, rank);
    if (crosses && entry == nullptr)
      found_room = false;
    else if (e < end)
      commit_edge(values, e, entry);
    if (entry != nullptr)
      *reinterpret_cast<uint64_t *>(entry) = number;
  }
  return found_room;
}

// The row that has an edge.
__device__ uint64_t row_of(const Values &values, uint64_t edge) {
  uint64_t low = 0, high = values.num_rows;
  while (high - low > 1) {
    uint64_t middle = (low + high) / 2;
    if (values.offsets[middle] <= edge)
      low = middle;
    else
      high = middle;
  }
  return low;
}

} // namespace

// Commits what rows wrote, from a chunk of edges on, until there is no room: an
// edge to another rank that finds none among the entries stays as it is.
//
// Schedule: a warp takes CHUNK edges, and of these the rows that wrote, one
// after another, a lane an edge. Every value and entry has one writer; counts
// and left are atomic.
extern "C" __global__ void commit_values_warp_mapped(Values values,
                                                     uint32_t own_rank,
                                                     uint64_t first_chunk) {
  const uint64_t *offsets = values.offsets;
  uint64_t num_edges = offsets[values.num_rows];
  uint32_t lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
  uint64_t chunk = first_chunk + (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (; chunk * CHUNK < num_edges; chunk += warps) {
    if (__ballot_sync(ALL_LANES, __ldcg(values.left) < chunk) != 0)
      break; // the next launch begins before
    uint64_t begin = chunk * CHUNK, rest = num_edges - begin;
    uint64_t end = begin + (rest < CHUNK ? rest : CHUNK), done = begin;
    bool found_room = true;
    for (uint64_t first = row_of(values, begin); done < end;) {
      uint64_t row = first + lane;
      bool is_here = row < values.num_rows && offsets[row] < end &&
                     offsets[row + 1] > begin &&
                     (values.wrote[row / 32] >> row % 32 & 1);
      uint32_t rows = __ballot_sync(ALL_LANES, is_here);
      for (; rows != 0; rows &= rows - 1) {
        row = first + __ffs(rows) - 1;
        uint64_t from = offsets[row], to = offsets[row + 1];
        found_room &=
            commit_part(values, own_rank, row, from > begin ? from : begin,
                        to < end ? to : end);
      }
      first += 32;
      done = first < values.num_rows ? offsets[first] : num_edges;
      if (done < end && offsets[first + 1] == done) // there may be many empty
        first = row_of(values, done);
    }
    if (__ballot_sync(ALL_LANES, !found_room) != 0 && lane == 0)
      atomicMin(values.left, (unsigned long long)chunk);
  }
}

// Writes entries that another rank sent to the copies of its values, which lie
// behind those of edges here. Schedule: a thread an entry.
extern "C" __global__ void take_values_thread_mapped(Values values,
                                                     const uint8_t *entries,
                                                     uint64_t count,
                                                     uint64_t first_copy) {
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const uint8_t *entry = entries + i * values.entry_bytes;
    uint64_t at = first_copy + *reinterpret_cast<const uint64_t *>(entry);
    for (uint32_t k = 0; k < values.num_columns; k++) {
      const Column &column = values.columns[k];
      if (column.place != DOES_NOT_CROSS)
        copy_value(entry + column.place, column.committed + at * column.bytes,
                   column.bytes);
    }
  }
}
