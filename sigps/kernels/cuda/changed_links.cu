// What a batch does to the neighbours of vertices, and to the arcs among these,
// in a graph whose rows changed (`changing_rows.cuh`; engine/gpu/measures.py):
// only pairs whose edges changed are looked at.
//
// A pair of vertices has an arc each way or none; loops and parallel edges do
// not count, and an edge of an undirected graph is both arcs. Pairs are
// numbered by their slots in a table of what the batch names. While one is
// looked at, those of smaller slots are as after the batch, and those of
// greater ones as before, so each triangle counts at the pairs that change it,
// whatever the order in which warps come. Each common neighbour of both ends
// has as many more links as the pair has arcs. Where the ends become
// neighbours, either gets the arcs between the other and their common
// neighbours.
//
// Rows of both directions ascend by local id (SIGPS_ORDERED is 2), and are
// those after the batch. The rows of the end of lower degree are read, and each
// neighbour searched for in the other's; those that the batch took from it hang
// on a list of the vertex.
//
// Schedule: `follow_links` is a cooperative launch, of phases with a barrier
// between. Pairs whose ends both have many edges take a block each, others a
// warp. Measures are written by atomics.
//
// Macros: those of `changing_rows.cuh`; SIGPS_DIRECTED, 0: rows of both ends
// have an edge.

#include "changing_rows.cuh"

using namespace sigps;

// Between launches `heads`, `num_hung` and `touched` are zeros.
struct ChangedLinks {
  Batch batch;
  unsigned long long most_cost;       // in edges that are read
  unsigned long long *keys;           // [num_slots] the smaller end above the
                                      // greater; NO_KEY
  uint32_t *removed;                  // [2 * num_slots] edges that went: from
                                      // the smaller end, to it
  uint32_t *added;                    // [2 * num_slots] edges that came
  uint32_t *became;                   // [num_slots] `Arcs` before, and after
                                      // above these
  uint32_t *pairs;                    // [num_slots] the slots of changed pairs
  uint32_t *nexts;                    // [2 * num_slots] of a list of `heads`
  uint32_t *heads;                    // [rows] 1 more than twice the slot of a
                                      // pair that went, and than its end
  uint32_t *num_hung;                 // [rows] the entries of a list
  uint32_t *touched;                  // [rows / 32] ends of changed pairs
  unsigned long long *num_neighbors;  // [rows]
  unsigned long long *neighbor_links; // [rows]
  uint32_t num_slots, num_rows;       // slots: a power of two
  unsigned long long *work;           // [1] what all edges would take
};

namespace {

constexpr unsigned long long NO_KEY = ~0ull;

// The arcs between two vertices, as one of them sees them.
enum Arcs : uint32_t { NO_ARC = 0, TO = 1, FROM = 2, BOTH_WAYS = 3 };

__device__ inline uint32_t turned(uint32_t arcs) {
  return arcs >> 1 | (arcs & 1) << 1;
}

__device__ inline uint32_t before_of(const ChangedLinks &links, uint32_t slot) {
  return links.became[slot] & BOTH_WAYS;
}
__device__ inline uint32_t after_of(const ChangedLinks &links, uint32_t slot) {
  return links.became[slot] >> 2;
}

__device__ inline const ChangingRows &outgoing_of(const ChangedLinks &links) {
  return links.batch.sides[0];
}
__device__ inline const ChangingRows &incoming_of(const ChangedLinks &links) {
  return links.batch.sides[SIGPS_DIRECTED ? 1 : 0];
}

// Edges of a vertex, in rows of both directions.
__device__ inline uint32_t degree_of(const ChangedLinks &links, uint32_t v) {
  uint32_t degree = outgoing_of(links).degrees[v];
  return SIGPS_DIRECTED ? degree + incoming_of(links).degrees[v] : degree;
}

__device__ inline unsigned long long key_of(uint32_t a, uint32_t b) {
  return static_cast<unsigned long long>(min(a, b)) << 32 | max(a, b);
}

__device__ inline uint32_t slot_of(const ChangedLinks &links,
                                   unsigned long long key) {
  return uint32_t(key * 0x9E3779B97F4A7C15ull >> 32) & (links.num_slots - 1);
}

// The slot of a pair; one that has none gets one.
__device__ inline uint32_t enter(const ChangedLinks &links, uint32_t a,
                                 uint32_t b) {
  unsigned long long key = key_of(a, b);
  for (uint32_t at = slot_of(links, key);;
       at = (at + 1) & (links.num_slots - 1)) {
    unsigned long long there = atomicCAS(&links.keys[at], NO_KEY, key);
    if (there == NO_KEY || there == key)
      return at;
  }
}

// The slot of a pair, or NOT_FOUND.
__device__ inline uint32_t look_up(const ChangedLinks &links, uint32_t a,
                                   uint32_t b) {
  unsigned long long key = key_of(a, b);
  for (uint32_t at = slot_of(links, key);;
       at = (at + 1) & (links.num_slots - 1)) {
    if (links.keys[at] == key)
      return at;
    if (links.keys[at] == NO_KEY)
      return NOT_FOUND;
  }
}

__device__ inline bool is_touched(const ChangedLinks &links, uint32_t v) {
  return links.touched[v / 32] >> v % 32 & 1;
}

// How many of a row's ends are below one.
__device__ inline uint32_t num_below(const ChangingRows &rows, uint32_t row,
                                     unsigned long long end) {
  const uint32_t *ends = rows.ends + rows.begins[row];
  uint32_t first = 0, last = rows.degrees[row];
  while (first < last) {
    uint32_t middle = first + (last - first) / 2;
    if (ends[middle] < end)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

__device__ inline bool has_end(const ChangingRows &rows, uint32_t row,
                               uint32_t end) {
  uint32_t at = num_below(rows, row, end);
  return at < rows.degrees[row] && rows.ends[rows.begins[row] + at] == end;
}

// The arcs between v and w after the batch, as v sees them.
__device__ inline uint32_t arcs_in_rows(const ChangedLinks &links, uint32_t v,
                                        uint32_t w) {
  if (!SIGPS_DIRECTED)
    return has_end(outgoing_of(links), v, w) ? BOTH_WAYS : NO_ARC;
  return (has_end(outgoing_of(links), v, w) ? TO : NO_ARC) |
         (has_end(incoming_of(links), v, w) ? FROM : NO_ARC);
}

// A pair's end of lower degree, and the other one.
struct Ends {
  uint32_t few, many;
};

__device__ inline Ends ends_of(const ChangedLinks &links, uint32_t slot) {
  uint32_t a = uint32_t(links.keys[slot] >> 32), b = uint32_t(links.keys[slot]);
  if (degree_of(links, a) <= degree_of(links, b))
    return {a, b};
  return {b, a};
}

__device__ void clear_table(const ChangedLinks &links) {
  for (uint32_t k = first_thread(); k < links.num_slots; k += num_threads()) {
    links.keys[k] = NO_KEY;
    links.removed[2 * k] = links.removed[2 * k + 1] = 0;
    links.added[2 * k] = links.added[2 * k + 1] = 0;
  }
}

// Enters what went and what came; of an undirected graph one arc of each.
__device__ void enter_changes(const ChangedLinks &links) {
  const Batch &batch = links.batch;
  const ChangingRows &rows = batch.sides[0];
  uint32_t num_removed = batch.num_deletes ? batch.counts->num_removed[0] : 0;
  auto count = [&](uint32_t *counts, uint32_t s, uint32_t t) {
    if (s < t || (SIGPS_DIRECTED && s > t))
      atomicAdd(&counts[2 * enter(links, s, t) + (s > t)], 1u);
  };
  for (uint32_t k = first_thread(); k < num_removed; k += num_threads())
    count(links.removed, rows.hole_rows[k], rows.hole_ends[k]);
  for (uint32_t i = first_thread(); i < batch.num_inserts; i += num_threads())
    if (!is_left_out(batch, i))
      count(links.added, rows.new_rows[i], rows.new_ends[i]);
}

// Puts a pair that went on the list of one of its ends.
__device__ inline void hang(const ChangedLinks &links, uint32_t slot,
                            uint32_t which, uint32_t v) {
  uint32_t entry = 2 * slot + which;
  links.nexts[entry] = atomicExch(&links.heads[v], entry + 1);
  atomicAdd(&links.num_hung[v], 1u);
}

__device__ inline void add_work(const ChangedLinks &links,
                                unsigned long long edges) {
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(&links.batch.counts->num_read, edges);
}

// Finds the pairs that have other arcs than before, and adds up what looking at
// them takes.
__device__ void find_changed(const ChangedLinks &links) {
  LiveCounts *counts = links.batch.counts;
  unsigned long long edges = 0;
  for (uint32_t slot = first_thread(); slot < links.num_slots;
       slot += num_threads()) {
    if (links.keys[slot] == NO_KEY)
      continue;
    uint32_t low = uint32_t(links.keys[slot] >> 32);
    uint32_t high = uint32_t(links.keys[slot]);
    uint32_t before = NO_ARC, after = NO_ARC;
    auto find = [&](uint32_t s, uint32_t t, uint32_t which, uint32_t arcs) {
      const ChangingRows &rows = outgoing_of(links);
      uint32_t count = num_below(rows, s, t + 1ull) - num_below(rows, s, t);
      after |= count > 0 ? arcs : NO_ARC;
      before |= links.removed[2 * slot + which] > 0 ||
                        count > links.added[2 * slot + which]
                    ? arcs
                    : NO_ARC;
    };
    if (SIGPS_DIRECTED) {
      find(low, high, 0, TO);
      find(high, low, 1, FROM);
    } else {
      find(low, high, 0, BOTH_WAYS);
    }
    links.became[slot] = before | after << 2;
    if (before == after)
      continue;
    links.pairs[atomicAdd(&counts->num_begun, 1u)] = slot;
    atomicOr(&links.touched[low / 32], 1u << low % 32);
    atomicOr(&links.touched[high / 32], 1u << high % 32);
    if (after == NO_ARC) {
      hang(links, slot, 0, low);
      hang(links, slot, 1, high);
    }
    edges += min(degree_of(links, low), degree_of(links, high)) + 1;
  }
  add_work(links, edges);
}

// Adds what going along the lists takes: a warp takes an entry at a time.
__device__ void add_lists(const ChangedLinks &links) {
  uint32_t count = links.batch.counts->num_begun;
  unsigned long long edges = 0;
  for (uint32_t k = first_thread(); k < count; k += num_threads())
    edges += 32ull * links.num_hung[ends_of(links, links.pairs[k]).few];
  add_work(links, edges);
}

// The arcs between v and w while the pair of `slot` is looked at, as v sees
// them; `after()`: after the batch.
template <class After>
__device__ inline uint32_t arcs_between(const ChangedLinks &links, uint32_t v,
                                        uint32_t w, uint32_t slot,
                                        After after) {
  uint32_t other = is_touched(links, w) ? look_up(links, v, w) : NOT_FOUND;
  if (other == NOT_FOUND || other < slot)
    return after();
  uint32_t before = before_of(links, other);
  return v < w ? before : turned(before);
}

__device__ inline void add(unsigned long long *at, uint32_t v,
                           long long change) {
  if (change != 0)
    atomicAdd(&at[v], static_cast<unsigned long long>(change));
}

// Arcs between an end of a pair and what both ends have in common.
struct Common {
  unsigned long long of_few, of_many;
};

// Every step-th end from `first` of the row of pair.few, each once, but for the
// pair's own two.
template <class Look>
__device__ void each_other(const ChangingRows &rows, const Ends &pair,
                           uint32_t first, uint32_t step, Look look) {
  const uint32_t *ends = rows.ends + rows.begins[pair.few];
  for (uint32_t i = first; i < rows.degrees[pair.few]; i += step) {
    uint32_t w = ends[i];
    bool is_again = i > 0 && ends[i - 1] == w;
    if (!is_again && w != pair.few && w != pair.many)
      look(w);
  }
}

// Looks at some neighbours of a pair's end of lower degree, and adds to those
// that are neighbours of the other one, too.
__device__ inline Common look_at_common(const ChangedLinks &links,
                                        uint32_t slot, const Ends &pair,
                                        long long change, uint32_t first,
                                        uint32_t step) {
  Common common = {0, 0};
  auto look_at = [&](uint32_t w, uint32_t arcs) {
    if (arcs == NO_ARC)
      return;
    uint32_t others = arcs_between(links, pair.many, w, slot, [&] {
      return arcs_in_rows(links, pair.many, w);
    });
    if (others == NO_ARC)
      return;
    add(links.neighbor_links, w, change);
    common.of_few += __popc(arcs);
    common.of_many += __popc(others);
  };
  const ChangingRows &outgoing = outgoing_of(links);
  const ChangingRows &incoming = incoming_of(links);
  if (!SIGPS_DIRECTED) {
    each_other(outgoing, pair, first, step, [&](uint32_t w) {
      look_at(w, arcs_between(links, pair.few, w, slot,
                              [] { return uint32_t(BOTH_WAYS); }));
    });
  } else {
    each_other(incoming, pair, first, step, [&](uint32_t w) {
      look_at(w, arcs_between(links, pair.few, w, slot, [&] {
                return uint32_t(FROM |
                                (has_end(outgoing, pair.few, w) ? TO : NO_ARC));
              }));
    });
    each_other(outgoing, pair, first, step, [&](uint32_t w) {
      if (!has_end(incoming, pair.few, w)) // otherwise it was looked at
        look_at(w, arcs_between(links, pair.few, w, slot,
                                [] { return uint32_t(TO); }));
    });
  }
  uint32_t number = 0;
  for (uint32_t entry = links.heads[pair.few]; entry != 0; number++) {
    uint32_t other = (entry - 1) / 2;
    if (number % step == first && other > slot) { // it is still there
      uint32_t low = uint32_t(links.keys[other] >> 32);
      uint32_t high = uint32_t(links.keys[other]);
      uint32_t before = before_of(links, other);
      look_at(low == pair.few ? high : low,
              low == pair.few ? before : turned(before));
    }
    entry = links.nexts[entry - 1];
  }
  return common;
}

__device__ void look_at_pairs(const ChangedLinks &links) {
  uint32_t count = links.batch.counts->num_begun;
  auto look = [&](uint32_t slot, const Ends &pair, uint32_t first,
                  uint32_t step) {
    uint32_t before = before_of(links, slot), after = after_of(links, slot);
    long long sign = (after != NO_ARC) - (before != NO_ARC);
    long long change = static_cast<long long>(__popc(after)) - __popc(before);
    Common common = look_at_common(links, slot, pair, change, first, step);
    long long of_few = sum_of_warp(common.of_few);
    long long of_many = sum_of_warp(common.of_many);
    if (lane() == 0) {
      add(links.neighbor_links, pair.many, sign * of_few);
      add(links.neighbor_links, pair.few, sign * of_many);
    }
    if (first == 0) {
      add(links.num_neighbors, pair.few, sign);
      add(links.num_neighbors, pair.many, sign);
    }
  };
  for (uint32_t k = first_warp(); k < count; k += num_warps()) {
    Ends pair = ends_of(links, links.pairs[k]);
    if (degree_of(links, pair.few) <= MANY)
      look(links.pairs[k], pair, lane(), 32);
  }
  for (uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    Ends pair = ends_of(links, links.pairs[k]);
    if (degree_of(links, pair.few) > MANY)
      look(links.pairs[k], pair, threadIdx.x, blockDim.x);
  }
}

__device__ void forget_pairs(const ChangedLinks &links) {
  uint32_t count = links.batch.counts->num_begun;
  for (uint32_t k = first_thread(); k < count; k += num_threads()) {
    Ends pair = ends_of(links, links.pairs[k]);
    links.heads[pair.few] = links.heads[pair.many] = 0;
    links.num_hung[pair.few] = links.num_hung[pair.many] = 0;
    links.touched[pair.few / 32] = links.touched[pair.many / 32] = 0;
  }
}

} // namespace

// Lets measures follow a batch: once, after `edit_rows`.
extern "C" __global__ void __launch_bounds__(256, 4)
    follow_links(const __grid_constant__ ChangedLinks links) {
  LiveCounts *counts = links.batch.counts;
  if (counts->missing || counts->is_full)
    return;
  uint32_t generation = load_acquire(&counts->barrier.generation);
  clear_table(links);
  wait_for_all(&counts->barrier, generation);
  enter_changes(links);
  wait_for_all(&counts->barrier, generation);
  find_changed(links);
  wait_for_all(&counts->barrier, generation);
  if (links.batch.num_deletes) {
    add_lists(links);
    wait_for_all(&counts->barrier, generation);
  }
  bool is_spent = counts->num_read > links.most_cost;
  if (!is_spent)
    look_at_pairs(links);
  else if (first_thread() == 0)
    counts->is_given_up = 1;
  wait_for_all(&counts->barrier, generation);
  forget_pairs(links);
}

// Adds up what looking at all edges would take, as `find_changed` does.
extern "C" __global__ void __launch_bounds__(256)
    add_up_work_warp_mapped(const __grid_constant__ ChangedLinks links) {
  const ChangingRows &rows = outgoing_of(links);
  unsigned long long edges = 0;
  for (uint32_t v = first_warp(); v < links.num_rows; v += num_warps()) {
    for (uint32_t i = lane(); i < rows.degrees[v]; i += 32) {
      uint32_t w = rows.ends[rows.begins[v] + i];
      if (SIGPS_DIRECTED ? w != v : w < v)
        edges += min(degree_of(links, v), degree_of(links, w)) + 1;
    }
  }
  edges = sum_of_warp(edges);
  if (lane() == 0 && edges != 0)
    atomicAdd(links.work, edges);
}
