// Lengths of shortest paths along edges that stay packed (packed_rows.cuh), of
// no program's functions (engine/gpu/packed_lengths.py). Rows are in-edges and
// out-edges alike.
//
// A vertex whose label fell waits, as a bit. A sweep takes the pages in their
// order and sends along those rows that wait: labels fall at once, so what a
// page changed the pages behind it send in the same sweep, and one barrier ends
// a sweep. Pages in which nothing waits stay where they are; of one with few
// rows that wait these are read where they lie. The end is a sweep that finds
// nothing.
//
// A label is a length, the edges of the path, and the vertex before its end,
// from the highest bits on: the least is the shortest path, of such ones that
// of fewest edges, and of these the last vertex with the smallest id. Labels
// only fall, by atomics, so no order of threads changes what they come to. Who
// makes a label fall sets the bit afterwards, and who takes a bit reads the
// label afterwards: so the last label is sent.
//
// Schedule of `send_pages`: a cooperative launch; a block takes a chain of
// pages after the other. In an open page rows of over 4096 edges are shared by
// the block, of others warps draw 1 to 32 at a time: a thread each, from 33
// edges on the warp.
//
// Macros: SIGPS_LENGTH (float or double), SIGPS_ID, SIGPS_PARENT (types in
// memory), SIGPS_COLUMN_TYPES (one),
// SIGPS_THREADS, SIGPS_BLOCKS of a multiprocessor.

#include "grid.cuh"
#include "packed_rows.cuh"

using namespace sigps;

namespace {

using Label = unsigned long long;

constexpr Label UNREACHED = 0x7fffffffffffffffull;
constexpr uint32_t ALL = 0xffffffff;
constexpr double MOST_WHOLE = 9007199254740992.0;  // 2**53
constexpr double LARGEST = 1.7976931348623157e308; // but infinity
constexpr uint32_t SHORT_ROW = 32, LONG_ROW = 4096;
constexpr uint32_t MOST_LONG_ROWS = (1 << 18) / LONG_ROW; // of a page
constexpr int AT_ONCE = 4;

// Counters that many warps increment lie in cache lines of their own.
struct PageCount {
  alignas(128) uint32_t value;
};

// What the kernels leave, and work with. Three of a kind: of this sweep, of the
// one before, and being emptied for the next.
struct PageAccount {
  unsigned long long sent; // edges
  unsigned long long
      reached; // vertices that a path of an edge or more leads to
  uint32_t num_sweeps;
  uint32_t is_refused; // before the first sweep: what cannot be done exactly
  PageCount next_chain[3];
  PageCount num_taken[3]; // chains in which something waited
  PageCount refused[3];   // not 0: something in this sweep
  Barrier barrier;
};

// n: vertices, those without a row last.
struct PagePaths {
  PackedRows rows;
  const uint32_t *degrees;    // [n]
  const uint32_t *sent;       // [n] bits: of superstep 0
  const SIGPS_ID *ids;        // [n]
  SIGPS_LENGTH *lengths;      // [n]
  SIGPS_PARENT *parents;      // [n], or null
  unsigned long long *labels; // [n]
  uint32_t *waits;            // [n] bits
  PageAccount *account;
  uint64_t longest; // length that is exact, and fits a label
  uint32_t num_vertices;
  uint32_t id_bits, edge_bits;
};

__device__ inline uint64_t length_of(const PagePaths &paths, Label label) {
  return label >> (paths.id_bits + paths.edge_bits);
}

// What of a label is sent: all but the last vertex.
__device__ inline Label path_of(const PagePaths &paths, Label label) {
  return label >> paths.id_bits;
}

__device__ inline Label edges_of(const PagePaths &paths, Label label) {
  return path_of(paths, label) & ((1ull << paths.edge_bits) - 1);
}

// What a thread does in a sweep.
struct Sweep {
  const PagePaths &paths;
  uint32_t *refused;
  unsigned long long sent;
};

// Lets a vertex's neighbours have the ways through it.
struct Sender {
  const PagePaths &paths;
  uint32_t *refused;
  Label label, id;

  __device__ Sender(const Sweep &sweep, uint32_t v)
      : paths(sweep.paths), refused(sweep.refused),
        label(__ldcg(&paths.labels[v])), id(Label(paths.ids[v])) {}

  __device__ void improve(uint32_t v, Label current,
                          SIGPS_COLUMN_TYPES column) const {
    double weight = double(column);
    bool is_whole = weight >= 0 && weight <= MOST_WHOLE &&
                    double(uint64_t(weight)) == weight;
    uint64_t length = length_of(paths, label) + uint64_t(is_whole ? weight : 0);
    Label edges = edges_of(paths, label) + 1;
    if (!is_whole || length > paths.longest || edges >> paths.edge_bits) {
      // A way that is longer than the one at hand is not needed.
      if (!is_whole || current == UNREACHED ||
          length < length_of(paths, current))
        *refused = 1; // others write the same
      return;
    }
    Label through = ((length << paths.edge_bits | edges) << paths.id_bits) | id;
    if (through >= current)
      return;
    Label before = atomicMin(&paths.labels[v], through);
    if (path_of(paths, through) >= path_of(paths, before))
      return;
    __threadfence(); // the label is there before the bit
    atomicOr(&paths.waits[v / 32], 1u << v % 32);
  }

  // All labels are loaded before the first is used.
  __device__ void operator()(const packed::Targets<AT_ONCE> &found) const {
    Label current[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
      current[k] = found.is_there[k] ? __ldcg(&paths.labels[found.targets[k]])
                                     : Label(0);
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++)
      if (found.is_there[k])
        improve(found.targets[k], current[k], found.values[k].first);
  }
};

__device__ inline packed::Part part_of(const PagePaths &paths, uint32_t v) {
  return {v, paths.rows.parts[v], paths.rows.first_gaps[v], paths.degrees[v]};
}

__device__ inline bool waits(const PagePaths &paths, uint32_t v) {
  return __ldcg(&paths.waits[v / 32]) >> v % 32 & 1;
}

// Takes a vertex's bit; its label is read after that.
__device__ inline bool take_bit(const PagePaths &paths, uint32_t v) {
  uint32_t bit = 1u << v % 32;
  bool is_mine = atomicAnd(&paths.waits[v / 32], ~bit) & bit;
  __threadfence();
  return is_mine;
}

// The 128-byte lines that reading a row where it lies takes, about.
__device__ inline uint32_t lines_of(uint32_t degree) { return 4 + degree / 32; }

struct InPage {
  uint32_t lines, first_waits; // of the rows that wait; of these, the first
  uint32_t num_long, next_task;
  uint32_t long_rows[MOST_LONG_ROWS];
};

// Sends along the rows of a page where they lie. By a block, a row a warp.
__device__ inline void send_in_place(Sweep &sweep, uint32_t page,
                                     uint32_t first, uint32_t end) {
  __shared__ uint2 groups[SIGPS_THREADS / 32][packed::GROUPS_IN_PLACE];
  const PagePaths &paths = sweep.paths;
  uint32_t num_read = 0;
  for (uint32_t word = first / 32 + threadIdx.x / 32; word * 32 < end;
       word += blockDim.x / 32) {
    uint32_t v = word * 32 + packed::lane();
    bool is_mine =
        v >= first && v < end && waits(paths, v) && take_bit(paths, v);
    uint32_t those = __ballot_sync(ALL, is_mine);
    for (; those != 0; those &= those - 1) {
      uint32_t row = word * 32 + __ffs(those) - 1;
      num_read += packed::for_part_in_place<AT_ONCE>(
          paths.rows, page, part_of(paths, row), 0, 1, groups[threadIdx.x / 32],
          Sender(sweep, row));
      sweep.sent += packed::lane() == 0 ? paths.degrees[row] : 0;
    }
  }
  if (packed::lane() == 0 && num_read != 0)
    atomicAdd(paths.rows.num_read, static_cast<unsigned long long>(num_read));
}

// Sends along those rows of an open page that wait. By a block.
__device__ inline void send_page(Sweep &sweep, const packed::Page &open,
                                 uint32_t first, uint32_t end,
                                 InPage &in_page) {
  const PagePaths &paths = sweep.paths;
  uint32_t of_task = 32;
  while (of_task > 1 && (end - first) / of_task < blockDim.x / 8)
    of_task /= 2;
  if (threadIdx.x == 0)
    in_page.num_long = in_page.next_task = 0;
  __syncthreads();
  for (;;) {
    uint32_t task = packed::lane() == 0 ? atomicAdd(&in_page.next_task, 1u) : 0;
    uint32_t begin = first + __shfl_sync(ALL, task, 0) * of_task;
    if (begin >= end)
      break;
    uint32_t v = begin + packed::lane();
    bool is_mine = packed::lane() < of_task && v < end && waits(paths, v) &&
                   take_bit(paths, v);
    uint32_t degree = is_mine ? paths.degrees[v] : 0;
    sweep.sent += degree;
    if (degree > LONG_ROW)
      in_page.long_rows[atomicAdd(&in_page.num_long, 1u)] = v;
    uint32_t medium =
        __ballot_sync(ALL, degree > SHORT_ROW && degree <= LONG_ROW);
    for (; medium != 0; medium &= medium - 1) {
      uint32_t row = begin + __ffs(medium) - 1;
      packed::for_targets_by_warp<AT_ONCE>(
          paths.rows, open, part_of(paths, row), Sender(sweep, row));
    }
    if (degree > 0 && degree <= SHORT_ROW)
      packed::for_targets<AT_ONCE>(paths.rows, open, part_of(paths, v),
                                   Sender(sweep, v));
  }
  __syncthreads();
  for (uint32_t i = 0; i < in_page.num_long; i++) {
    uint32_t row = in_page.long_rows[i];
    packed::for_targets_by_block<AT_ONCE>(paths.rows, open, part_of(paths, row),
                                          Sender(sweep, row));
  }
}

// Sends along the rows of a chain that wait. Returns whether there were any. By
// a block.
__device__ inline bool send_chain(Sweep &sweep, uint32_t chain) {
  __shared__ InPage in_page;
  const PagePaths &paths = sweep.paths;
  const PackedRows &rows = paths.rows;
  uint32_t page = rows.chains[chain], end_page = rows.chains[chain + 1];
  uint32_t first = rows.first_rows[page], end = rows.first_rows[end_page];
  bool spans = end_page - page > 1;
  if (threadIdx.x == 0)
    in_page.lines = in_page.first_waits = 0;
  __syncthreads();
  if (threadIdx.x == 0 && spans && waits(paths, first))
    in_page.first_waits = take_bit(paths, first);
  uint32_t lines = 0;
  for (uint32_t word = first / 32 + threadIdx.x; word * 32 < end;
       word += blockDim.x)
    for (uint32_t bits = __ldcg(&paths.waits[word]); bits; bits &= bits - 1) {
      uint32_t v = word * 32 + __ffs(bits) - 1;
      if (v >= first + spans && v < end)
        lines += lines_of(paths.degrees[v]);
    }
  if (lines != 0)
    atomicAdd(&in_page.lines, lines);
  __syncthreads();
  bool first_waits = in_page.first_waits;
  if (in_page.lines == 0 && !first_waits)
    return false;
  uint32_t last = end_page - 1;
  uint64_t words = rows.first_words[end_page] - rows.first_words[last];
  if (!first_waits && uint64_t(in_page.lines) * 2 < words / 32) {
    send_in_place(sweep, last, first + spans, end);
    return true;
  }
  uint32_t left = paths.degrees[first];
  if (first_waits && threadIdx.x == 0)
    sweep.sent += left;
  for (page = first_waits ? page : last; page < end_page; page++) {
    packed::Page open = packed::open_page(rows, page);
    if (first_waits) {
      uint32_t arcs = min(left, open.num_arcs);
      left -= arcs;
      packed::for_targets_by_block<AT_ONCE>(rows, open, {first, 0, 0, arcs},
                                            Sender(sweep, first));
    }
    if (page == last)
      send_page(sweep, open, first + spans, end, in_page);
  }
  return true;
}

} // namespace

// Gives each vertex the label of the length that superstep 0 left; those that
// have one wait. Refused where a length is not whole, or was not sent, or an id
// does not fit.
extern "C" __global__ void __launch_bounds__(256)
    begin_page_labels_thread_mapped(const __grid_constant__ PagePaths paths) {
  uint32_t n = paths.num_vertices, threads = gridDim.x * blockDim.x;
  for (uint64_t at = blockIdx.x * blockDim.x + threadIdx.x;
       at - packed::lane() < n; at += threads) {
    uint32_t v = uint32_t(at);
    bool is_reached = false;
    if (at < n) {
      double length = double(paths.lengths[v]);
      bool is_exact = uint64_t(int64_t(paths.ids[v])) >> paths.id_bits == 0;
      Label label = UNREACHED;
      is_reached = length <= LARGEST || length != length;
      if (is_reached) {
        bool was_sent = paths.sent[v / 32] >> v % 32 & 1;
        is_exact = is_exact && length >= 0 && length <= double(paths.longest) &&
                   double(uint64_t(length)) == length &&
                   (was_sent || paths.degrees[v] == 0);
        if (is_exact)
          label = uint64_t(length) << (paths.id_bits + paths.edge_bits);
      }
      if (!is_exact)
        paths.account->is_refused = 1; // others write the same
      paths.labels[v] = label;
      is_reached = is_reached && paths.degrees[v] > 0;
    }
    uint32_t those = __ballot_sync(ALL, is_reached);
    if (packed::lane() == 0)
      paths.waits[at / 32] = those;
  }
}

// Sends until nothing waits, or something is refused.
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, SIGPS_BLOCKS)
    send_pages(const __grid_constant__ PagePaths paths) {
  __shared__ uint32_t drawn;
  PageAccount *account = paths.account;
  if (load_relaxed(&account->is_refused))
    return;
  bool clears = blockIdx.x == 0 && threadIdx.x == 0;
  uint32_t generation = load_acquire(&account->barrier.generation);
  Sweep own{paths, nullptr, 0};
  for (uint32_t sweep = 0;; sweep++) {
    uint32_t now = sweep % 3, next = (sweep + 1) % 3, num_taken = 0;
    if (clears)
      account->next_chain[next].value = account->num_taken[next].value = 0;
    own.refused = &account->refused[now].value;
    for (;;) {
      __syncthreads(); // all are done with `drawn`
      if (threadIdx.x == 0)
        drawn = atomicAdd(&account->next_chain[now].value, 1u);
      __syncthreads();
      if (drawn >= paths.rows.num_chains)
        break;
      num_taken += send_chain(own, drawn);
    }
    if (threadIdx.x == 0 && num_taken != 0)
      atomicAdd(&account->num_taken[now].value, num_taken);
    wait_for_all(&account->barrier, generation);
    // What blocks write in the next sweep is elsewhere: all find the same.
    if (threadIdx.x == 0)
      drawn = load_relaxed(&account->num_taken[now].value) == 0 ||
              load_relaxed(&account->refused[now].value) != 0;
    if (clears)
      account->num_sweeps = sweep + 1;
    __syncthreads();
    if (drawn)
      break;
  }
  if (own.sent != 0)
    atomicAdd(&account->sent, own.sent);
}

// Writes the lengths of vertices that a path of an edge or more leads to, and
// the last vertices before their ends.
extern "C" __global__ void __launch_bounds__(256)
    store_page_lengths_thread_mapped(const __grid_constant__ PagePaths paths) {
  uint32_t reached = 0;
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x;
       v < paths.num_vertices; v += gridDim.x * blockDim.x) {
    Label label = paths.labels[v];
    if (label == UNREACHED || edges_of(paths, label) == 0)
      continue;
    reached++;
    paths.lengths[v] = SIGPS_LENGTH(length_of(paths, label));
    if (paths.parents != nullptr)
      paths.parents[v] = SIGPS_PARENT(label & ((1ull << paths.id_bits) - 1));
  }
  reached = __reduce_add_sync(ALL, reached);
  if (packed::lane() == 0 && reached != 0)
    atomicAdd(&paths.account->reached,
              static_cast<unsigned long long>(reached));
}
