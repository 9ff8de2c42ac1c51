// Lengths of shortest paths by buckets, of no program's functions
// (engine/gpu/path_lengths.py; kernels/cpu/path_lengths.py explains labels).
//
// Vertices whose labels fell wait in one of two piles: near, of the bucket at
// hand, and far, of all others. A round relaxes the edges of all that are near;
// what it improves is near in the next round, or far. When none is near, the
// next bucket is taken from the far pile (A. Davidson et al., "Work-efficient
// parallel GPU methods for single-source shortest paths", IPDPS 2014). Labels
// only fall, by atomics, and who makes one fall puts its vertex on a pile, so
// no order of threads changes what they come to.
//
// Schedule of `relax_piles`: a cooperative launch of blocks that stay resident,
// and one barrier a round. SIGPS_LANES lanes share a vertex.
//
// With SIGPS_REAL labels are lengths alone, as the bits of a double: those of
// numbers from 0 on have their order. A length is the sum that supersteps
// make of it, one edge after another, and no larger where its beginning is no
// larger; so the least is theirs, bit for bit. There are no parents then.
//
// Macros: SIGPS_LENGTH (float or double), SIGPS_WEIGHT, SIGPS_ID, SIGPS_PARENT
// (types in memory), SIGPS_THREADS of a block, SIGPS_LANES; SIGPS_REAL, 0 or 1.

#include "edges.cuh"
#include "grid.cuh"

using namespace sigps;

namespace {

using Label = int64_t;

constexpr Label UNREACHED = 0x7fffffffffffffffll;
constexpr uint32_t ALL_LANES = ~0u;
constexpr double MOST_WHOLE = 9007199254740992.0;  // 2**53
constexpr double LARGEST = 1.7976931348623157e308; // but infinity

__device__ inline Label bits_of(double value) {
  Label bits;
  memcpy(&bits, &value, 8);
  return bits;
}

__device__ inline double number_of(Label bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

// Counters that many warps increment lie in cache lines of their own.
struct Count {
  alignas(128) uint32_t value;
};

// What a run of the kernels leaves, and works with. Three of a kind: read,
// written, and being emptied for the one after.
struct Account {
  unsigned long long relaxed;         // edges
  unsigned long long reached;         // vertices that a path leads to
  unsigned long long least, greatest; // bits of weights, where none is below 0
  uint32_t is_refused;                // what cannot be done exactly
  uint32_t is_below;                  // a weight, 0
  uint32_t num_rounds;                // of relax_piles
  Count num_near[3];                  // by round
  Count num_far[3];                   // by bucket
  alignas(
      128) unsigned long long nearest[3]; // label of the far pile, by bucket
  Barrier barrier;
};

// n: vertices. Piles and stamps are [n]; a vertex is at most once in a pile.
struct Paths {
  Edges out_edges, in_edges;
  const SIGPS_WEIGHT *out_weights, *in_weights; // by position
  const uint32_t *sent;                         // [n] bits: of superstep 0
  const SIGPS_ID *ids;                          // [n]
  SIGPS_LENGTH *lengths;                        // [n]
  SIGPS_PARENT *parents;                        // [n], or null
  int64_t *labels;                              // [n]
  uint32_t *stamps; // [n] zeros: on which pile a vertex was put last
  uint32_t *near[2];
  uint32_t *far[2];
  Account *account;
  int64_t unit, longest; // of whole lengths
  int64_t width;         // of a bucket
  int64_t most;          // the greatest label
  uint32_t num_vertices;
};

__device__ inline uint32_t lane_id() { return threadIdx.x % 32; }

// Warps with successive numbers are on different multiprocessors.
__device__ inline uint32_t spread_warp() {
  return threadIdx.x / 32 * gridDim.x + blockIdx.x;
}

__device__ inline uint32_t num_warps() { return gridDim.x * blockDim.x / 32; }

// The label of a path that goes on along an edge.
__device__ inline Label extended(const Paths &paths, Label label,
                                 SIGPS_WEIGHT weight) {
  return SIGPS_REAL ? bits_of(number_of(label) + double(weight))
                    : label + Label(weight) * paths.unit + 1;
}

// The end of the bucket that begins with a label.
__device__ inline Label end_of_bucket(const Paths &paths, Label label) {
  if (!SIGPS_REAL)
    return label + paths.width;
  return max(bits_of(number_of(label) + number_of(paths.width)), label + 1);
}

// Puts the lanes' vertices on a pile. One that two threads improved at once may
// be on it twice; where a pile is full, the run is refused.
__device__ inline void append(const Paths &paths, uint32_t *pile,
                              uint32_t *count, bool appends, uint32_t v) {
  uint32_t those = __ballot_sync(ALL_LANES, appends);
  if (those == 0)
    return;
  uint32_t first = 0;
  if (lane_id() == 0)
    first = atomicAdd(count, uint32_t(__popc(those)));
  first = __shfl_sync(ALL_LANES, first, 0);
  uint32_t at = first + __popc(those & ((1u << lane_id()) - 1));
  if (appends && at < paths.num_vertices)
    pile[at] = v;
  else if (appends)
    paths.account->is_refused = 1;
}

__device__ inline unsigned long long sum_of_warp(unsigned long long value) {
  for (uint32_t step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

// A vertex is on the near pile of a round, or on the far pile of a bucket.
__device__ inline uint32_t near_stamp(uint32_t round) { return 2 * round + 1; }
__device__ inline uint32_t far_stamp(uint32_t bucket) { return 2 * bucket; }

// Relaxes the edges of the vertices that are near in this round.
__device__ inline void relax_near(const Paths &paths, uint32_t count,
                                  uint32_t round, uint32_t bucket, Label bound,
                                  unsigned long long &relaxed) {
  Account *account = paths.account;
  constexpr uint32_t AT_ONCE = 32 / SIGPS_LANES; // vertices of a warp
  const uint32_t *near = paths.near[round & 1];
  uint32_t *next_near = paths.near[(round + 1) & 1];
  uint32_t *num_near = &account->num_near[(round + 1) % 3].value;
  uint32_t *far = paths.far[bucket & 1];
  uint32_t *num_far = &account->num_far[bucket % 3].value;
  for (uint64_t first = uint64_t(spread_warp()) * AT_ONCE; first < count;
       first += uint64_t(num_warps()) * AT_ONCE) {
    uint64_t i = first + lane_id() / SIGPS_LANES;
    RowOfEdges row = EMPTY_ROW;
    Label label = 0;
    if (i < count) {
      uint32_t u = near[i];
      label = __ldcg(&paths.labels[u]);
      row = row_of(paths.out_edges, u);
    }
    relaxed += lane_id() % SIGPS_LANES == 0 ? row.degree : 0;
    uint32_t most = __reduce_max_sync(ALL_LANES, row.degree);
    for (uint32_t base = 0; base < most; base += SIGPS_LANES) {
      uint32_t j = base + lane_id() % SIGPS_LANES, v = 0;
      bool is_near = false, is_far = false;
      if (j < row.degree) {
        uint64_t position = row.first + uint64_t(j) * row.step;
        v = end_at(paths.out_edges, position);
        Label through =
            extended(paths, label, __ldcs(&paths.out_weights[position]));
        if (through > paths.most) {
          if (through < __ldcg(&paths.labels[v]))
            account->is_refused = 1; // others write the same
        } else if (through < atomicMin(&paths.labels[v], through)) {
          uint32_t stamp =
              through < bound ? near_stamp(round + 1) : far_stamp(bucket);
          bool is_new = atomicExch(&paths.stamps[v], stamp) != stamp;
          is_near = is_new && through < bound;
          is_far = is_new && through >= bound;
        }
      }
      append(paths, next_near, num_near, is_near, v);
      append(paths, far, num_far, is_far, v);
    }
  }
}

// What a round begins with. The last three only where nothing is near: no label
// falls in such a round, so all blocks find the same.
struct Found {
  uint32_t num_near, num_far, is_refused;
  Label nearest; // of what was on the far pile when this bucket was taken
};

// By one thread of a block: one address answers about one warp a nanosecond.
__device__ inline Found look(const Paths &paths, uint32_t round,
                             uint32_t bucket) {
  Account *account = paths.account;
  Found found = {load_relaxed(&account->num_near[round % 3].value), 0, 0, 0};
  if (found.num_near == 0) {
    found.num_far = load_relaxed(&account->num_far[bucket % 3].value);
    found.is_refused = load_relaxed(&account->is_refused);
    found.nearest = Label(__ldcg(&account->nearest[bucket % 3]));
  }
  found.num_near = min(found.num_near, paths.num_vertices);
  found.num_far = min(found.num_far, paths.num_vertices);
  return found;
}

// Takes the vertices of the next bucket, before `bound`, from the far pile. Its
// others go to the other one; those below `before` were near since.
__device__ inline void take_bucket(const Paths &paths, uint32_t count,
                                   uint32_t round, uint32_t bucket,
                                   Label before, Label bound) {
  Account *account = paths.account;
  const uint32_t *far = paths.far[bucket & 1];
  Label nearest = UNREACHED;
  uint32_t warps = num_warps();
  for (uint64_t first = uint64_t(spread_warp()) * 32; first < count;
       first += uint64_t(warps) * 32) {
    uint64_t i = first + lane_id();
    uint32_t v = 0;
    Label label = -1;
    if (i < count) {
      v = far[i];
      label = __ldcg(&paths.labels[v]);
    }
    bool stays = label >= bound;
    append(paths, paths.near[(round + 1) & 1],
           &account->num_near[(round + 1) % 3].value, label >= before && !stays,
           v);
    append(paths, paths.far[(bucket + 1) & 1],
           &account->num_far[(bucket + 1) % 3].value, stays, v);
    if (stays) {
      paths.stamps[v] = far_stamp(bucket + 1);
      nearest = min(nearest, label);
    }
  }
  for (uint32_t step = 16; step > 0; step /= 2)
    nearest = min(nearest, __shfl_xor_sync(ALL_LANES, nearest, step));
  if (lane_id() == 0 && nearest != UNREACHED)
    atomicMin(&account->nearest[(bucket + 1) % 3],
              static_cast<unsigned long long>(nearest));
}

} // namespace

// Finds whether all weights are whole numbers up to 2**53, or else from 0 on,
// the least and the greatest. The account begins with zeros, but `least` with
// its greatest.
extern "C" __global__ void __launch_bounds__(256)
    measure_weights_thread_mapped(const __grid_constant__ Edges edges,
                                  const SIGPS_WEIGHT *weights,
                                  Account *account) {
  unsigned long long least = ~0ull, greatest = 0;
  bool is_refused = false, is_below = false;
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x; v < edges.num_rows;
       v += gridDim.x * blockDim.x) {
    RowOfEdges row = row_of(edges, v);
    for (uint32_t j = 0; j < row.degree; j++) {
      double weight = double(weights[row.first + uint64_t(j) * row.step]);
      if (!(weight >= 0 && weight <= MOST_WHOLE &&
            double(Label(weight)) == weight))
        is_refused = true;
      if (weight >= 0 && weight <= LARGEST) {
        auto bits = static_cast<unsigned long long>(bits_of(weight + 0.0));
        least = min(least, bits);
        greatest = max(greatest, bits);
      } else {
        is_below = true;
      }
    }
  }
  for (uint32_t step = 16; step > 0; step /= 2) {
    least = min(least, __shfl_xor_sync(ALL_LANES, least, step));
    greatest = max(greatest, __shfl_xor_sync(ALL_LANES, greatest, step));
  }
  if (is_refused)
    account->is_refused = 1;
  if (is_below)
    account->is_below = 1;
  if (lane_id() == 0) {
    atomicMin(&account->least, least);
    atomicMax(&account->greatest, greatest);
  }
}

// Gives each vertex the label of the length that superstep 0 left, and puts
// those that have one on the near pile of round 0. Refused where a length is
// not whole, or was not sent.
extern "C" __global__ void __launch_bounds__(256)
    begin_labels_thread_mapped(const __grid_constant__ Paths paths) {
  uint32_t n = paths.num_vertices, threads = gridDim.x * blockDim.x;
  for (uint64_t first = blockIdx.x * blockDim.x + threadIdx.x - lane_id();
       first < n; first += threads) {
    uint32_t v = uint32_t(first) + lane_id();
    Label label = UNREACHED;
    if (v < n) {
      double length = double(paths.lengths[v]);
      if (length <= LARGEST || length != length) {
        bool is_exact = SIGPS_REAL
                            ? bits_of(length) >= 0 && length == length
                            : length >= 0 && length <= double(paths.longest) &&
                                  double(Label(length)) == length;
        bool was_sent = paths.sent[v / 32] >> v % 32 & 1;
        if (!is_exact || (!was_sent && paths.out_edges.degrees[v] > 0))
          paths.account->is_refused = 1;
        label = !is_exact    ? UNREACHED
                : SIGPS_REAL ? bits_of(length)
                             : Label(length) * paths.unit;
      }
      paths.labels[v] = label;
    }
    append(paths, paths.near[0], &paths.account->num_near[0].value,
           label != UNREACHED, v);
  }
}

// Relaxes edges until no label falls any more.
extern "C" __global__ void __launch_bounds__(SIGPS_THREADS, 1)
    relax_piles(const __grid_constant__ Paths paths) {
  __shared__ Found found;
  Account *account = paths.account;
  bool clears = blockIdx.x == 0 && threadIdx.x == 0;
  uint32_t generation = load_acquire(&account->barrier.generation);
  uint32_t round = 0, bucket = 1;
  Label bound = paths.width;
  unsigned long long relaxed = 0;
  for (;; round++) {
    if (threadIdx.x == 0)
      found = look(paths, round, bucket);
    __syncthreads();
    if (clears)
      account->num_near[(round + 2) % 3].value = 0;
    if (found.num_near > 0) {
      relax_near(paths, found.num_near, round, bucket, bound, relaxed);
    } else {
      if (found.num_far == 0 || found.is_refused)
        break;
      if (clears) {
        account->num_far[(bucket + 2) % 3].value = 0;
        account->nearest[(bucket + 2) % 3] = UNREACHED;
      }
      Label before = bound;
      bound = found.nearest != UNREACHED ? max(found.nearest, bound) : bound;
      bound = end_of_bucket(paths, bound);
      take_bucket(paths, found.num_far, round, bucket, before, bound);
      bucket++;
    }
    wait_for_all(&account->barrier, generation);
  }
  relaxed = sum_of_warp(relaxed);
  if (lane_id() == 0 && relaxed != 0)
    atomicAdd(&account->relaxed, relaxed);
  if (clears)
    account->num_rounds = round;
}

// Writes the lengths of vertices that a path of an edge or more leads to, and
// as its parent the in-neighbour of the smallest id that makes its label.
extern "C" __global__ void __launch_bounds__(256)
    store_lengths_thread_mapped(const __grid_constant__ Paths paths) {
  unsigned long long reached = 0;
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x;
       v < paths.num_vertices; v += gridDim.x * blockDim.x) {
    Label label = paths.labels[v];
    bool has_path = SIGPS_REAL ? label < bits_of(double(paths.lengths[v]))
                               : (label & (paths.unit - 1)) != 0;
    if (label == UNREACHED || !has_path)
      continue;
    reached++;
    paths.lengths[v] = SIGPS_REAL ? SIGPS_LENGTH(number_of(label))
                                  : SIGPS_LENGTH(label / paths.unit);
    if (paths.parents == nullptr)
      continue;
    Label best = UNREACHED;
    RowOfEdges row = row_of(paths.in_edges, v);
    for (uint32_t j = 0; j < row.degree; j++) {
      uint64_t position = row.first + uint64_t(j) * row.step;
      uint32_t u = end_at(paths.in_edges, position);
      Label weight = Label(__ldcs(&paths.in_weights[position]));
      Label from = paths.labels[u];
      if (from != UNREACHED && from + weight * paths.unit + 1 == label)
        best = min(best, Label(paths.ids[u]));
    }
    paths.parents[v] = SIGPS_PARENT(best);
  }
  reached = sum_of_warp(reached);
  if (lane_id() == 0 && reached != 0)
    atomicAdd(&paths.account->reached, reached);
}
