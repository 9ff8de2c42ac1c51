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
// between. Pairs are dealt out to warps, which read those of all lanes at once.
// The edges of short ones a warp divides evenly among its lanes, as if they
// were one pair's; of longer ones a warp takes a part. Measures are written by
// atomics.
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
  uint64_t *parts;                    // [most_parts] of long pairs: the slot,
                                      // and the edge that each begins with
  uint32_t *heads;                    // [rows] 1 more than twice the slot of a
                                      // pair that went, and than its end
  uint32_t *num_hung;                 // [rows] the entries of a list
  uint32_t *touched;                  // [rows / 32] ends of changed pairs
  unsigned long long *num_neighbors;  // [rows]
  unsigned long long *neighbor_links; // [rows]
  uint32_t num_slots, num_rows;       // slots: a power of two
  uint32_t most_parts;
  unsigned long long *work; // [1] what all edges would take
};

namespace {

constexpr unsigned long long NO_KEY = ~0ull;

// The most edges of a short pair's end, and entries of its list, along which a
// lane goes alone.
constexpr uint32_t FEW = 256, FEW_HUNG = 8;

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

// The other ends of a vertex's edges of one direction.
struct Row {
  const uint32_t *ends;
  uint32_t degree;
};

__device__ inline Row row_of(const ChangingRows &rows, uint32_t v) {
  return {rows.ends + rows.begins[v], rows.degrees[v]};
}

// How many of a row's ends are below one.
__device__ inline uint32_t num_below(const Row &row, unsigned long long end) {
  uint32_t first = 0, last = row.degree;
  while (first < last) {
    uint32_t middle = first + (last - first) / 2;
    if (row.ends[middle] < end)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

__device__ inline bool has_end(const Row &row, uint32_t end) {
  uint32_t at = num_below(row, end);
  return at < row.degree && row.ends[at] == end;
}

// A vertex's edges: where rows of both ends have an edge, `in` is empty.
struct Sides {
  Row in, out;
};

__device__ inline Sides sides_of(const ChangedLinks &links, uint32_t v) {
  Sides sides = {};
  if (SIGPS_DIRECTED)
    sides.in = row_of(incoming_of(links), v);
  sides.out = row_of(outgoing_of(links), v);
  return sides;
}

__device__ inline uint32_t num_edges(const Sides &sides) {
  return sides.in.degree + sides.out.degree;
}

// The arcs between a vertex and w after the batch, as the vertex sees them.
__device__ inline uint32_t arcs_to(const Sides &of_vertex, uint32_t w) {
  bool is_out = has_end(of_vertex.out, w);
  if (!SIGPS_DIRECTED)
    return is_out ? BOTH_WAYS : NO_ARC;
  return (is_out ? TO : NO_ARC) | (has_end(of_vertex.in, w) ? FROM : NO_ARC);
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
      Row row = row_of(outgoing_of(links), s);
      uint32_t count = num_below(row, t + 1ull) - num_below(row, t);
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

// Whether a warp takes pairs with this end of lower degree among others.
__device__ inline bool is_short(const ChangedLinks &links, uint32_t few) {
  return degree_of(links, few) <= FEW && links.num_hung[few] <= FEW_HUNG;
}

// Divides long pairs into parts of so many edges, and adds what going along the
// lists takes: an entry keeps a warp, as 32 edges do.
__device__ void divide_pairs(const ChangedLinks &links) {
  LiveCounts *counts = links.batch.counts;
  unsigned long long edges = 0;
  for (uint64_t base = first_thread() - lane(); base < counts->num_begun;
       base += num_threads()) {
    uint32_t k = uint32_t(base) + lane(), slot = 0, num_parts = 0;
    if (k < counts->num_begun) {
      slot = links.pairs[k];
      uint32_t few = ends_of(links, slot).few, degree = degree_of(links, few);
      edges += 32ull * links.num_hung[few];
      if (!is_short(links, few))
        num_parts = degree / PART + (degree % PART != 0 || degree == 0);
    }
    uint32_t at = take_places(&counts->num_again, num_parts);
    for (uint32_t p = 0; p < num_parts && at + p < links.most_parts; p++)
      links.parts[at + p] = uint64_t(slot) << 32 | p * PART;
  }
  add_work(links, edges);
}

// The arcs between v and w while the pair of `slot` is looked at, as v sees
// them; `after`: after the batch.
__device__ inline uint32_t arcs_between(const ChangedLinks &links, uint32_t v,
                                        uint32_t w, uint32_t slot,
                                        uint32_t after) {
  uint32_t other = is_touched(links, w) ? look_up(links, v, w) : NOT_FOUND;
  if (other == NOT_FOUND || other < slot)
    return after;
  uint32_t before = before_of(links, other);
  return v < w ? before : turned(before);
}

__device__ inline void add(unsigned long long *at, uint32_t v,
                           long long change) {
  if (change != 0)
    atomicAdd(&at[v], static_cast<unsigned long long>(change));
}

// A changed pair, and the edges of its end of lower degree.
struct Pair {
  uint32_t slot, few, many;
  Sides edges;
};

__device__ inline Pair pair_of(const ChangedLinks &links, uint32_t slot) {
  Ends ends = ends_of(links, slot);
  return {slot, ends.few, ends.many, sides_of(links, ends.few)};
}

// The row, and the pair, that a lane has. By a whole warp.
__device__ inline Row row_of_lane(const Row &row, uint32_t lane) {
  uint64_t ends = reinterpret_cast<uint64_t>(row.ends);
  ends = __shfl_sync(ALL_LANES, ends, lane);
  return {reinterpret_cast<const uint32_t *>(ends),
          __shfl_sync(ALL_LANES, row.degree, lane)};
}
__device__ inline Pair pair_of_lane(const Pair &mine, uint32_t lane) {
  Pair pair = {__shfl_sync(ALL_LANES, mine.slot, lane),
               __shfl_sync(ALL_LANES, mine.few, lane),
               __shfl_sync(ALL_LANES, mine.many, lane)};
  if (SIGPS_DIRECTED)
    pair.edges.in = row_of_lane(mine.edges.in, lane);
  pair.edges.out = row_of_lane(mine.edges.out, lane);
  return pair;
}

// 1 where the ends of a pair become neighbours, -1 where they cease to be.
__device__ inline long long sign_of(const ChangedLinks &links, uint32_t slot) {
  return (after_of(links, slot) != NO_ARC) - (before_of(links, slot) != NO_ARC);
}

// Arcs between an end of a pair and what both ends have in common.
struct Common {
  unsigned long long of_few, of_many;
};

__device__ inline void add_common(const ChangedLinks &links, const Pair &pair,
                                  const Common &common) {
  if (common.of_few == 0)
    return;
  long long sign = sign_of(links, pair.slot);
  add(links.neighbor_links, pair.many, sign * common.of_few);
  add(links.neighbor_links, pair.few, sign * common.of_many);
}

// Looks at a vertex to which pair.few has arcs_of() arcs: adds to it, if it is
// a neighbour of the other end, too, which most are not. of_many: those edges
// of the other end that may be to it.
template <class ArcsOf>
__device__ inline void look_at(const ChangedLinks &links, const Pair &pair,
                               const Sides &of_many, uint32_t w, ArcsOf arcs_of,
                               Common &common) {
  uint32_t others =
      arcs_between(links, pair.many, w, pair.slot, arcs_to(of_many, w));
  uint32_t arcs = others != NO_ARC ? arcs_of() : NO_ARC;
  if (arcs == NO_ARC)
    return;
  add(links.neighbor_links, w,
      static_cast<long long>(__popc(after_of(links, pair.slot))) -
          __popc(before_of(links, pair.slot)));
  common.of_few += __popc(arcs);
  common.of_many += __popc(others);
}

// Looks at the other end of edge i of pair.few, of in-edges first: at each end
// once, and not at the pair's own two.
__device__ inline void look_at_edge(const ChangedLinks &links, const Pair &pair,
                                    const Sides &of_many, uint32_t i,
                                    Common &common) {
  const Sides &edges = pair.edges;
  bool is_in = SIGPS_DIRECTED && i < edges.in.degree;
  Row row = is_in ? edges.in : edges.out;
  uint32_t at = is_in ? i : i - edges.in.degree, w = row.ends[at];
  bool is_again = at > 0 && row.ends[at - 1] == w;
  if (is_again || w == pair.few || w == pair.many)
    return;
  auto arcs_of = [&] {
    uint32_t arcs = BOTH_WAYS;
    if (SIGPS_DIRECTED) {
      bool is_both = has_end(is_in ? edges.out : edges.in, w);
      if (!is_in && is_both)
        return uint32_t(NO_ARC); // it was looked at
      arcs = !is_in ? TO : is_both ? BOTH_WAYS : FROM;
    }
    return arcs_between(links, pair.few, w, pair.slot, arcs);
  };
  look_at(links, pair, of_many, w, arcs_of, common);
}

// Looks at every step-th entry from `first` of the list of pair.few.
__device__ inline void look_at_list(const ChangedLinks &links, const Pair &pair,
                                    const Sides &of_many, uint32_t first,
                                    uint32_t step, Common &common) {
  uint32_t number = 0;
  for (uint32_t entry = links.heads[pair.few]; entry != 0; number++) {
    uint32_t other = (entry - 1) / 2;
    if (number % step == first && other > pair.slot) { // it is still there
      uint32_t low = uint32_t(links.keys[other] >> 32);
      uint32_t high = uint32_t(links.keys[other]);
      uint32_t before = before_of(links, other);
      uint32_t arcs = low == pair.few ? before : turned(before);
      look_at(
          links, pair, of_many, low == pair.few ? high : low,
          [&] { return arcs; }, common);
    }
    entry = links.nexts[entry - 1];
  }
}

// Looks at the pairs of those lanes that have a short one, all of them at once.
__device__ inline void look_at_short(const ChangedLinks &links,
                                     const Pair &mine, bool is_short) {
  uint32_t length = is_short ? num_edges(mine.edges) : 0;
  uint32_t stop = sum_up_to(length);
  uint32_t total = __shfl_sync(ALL_LANES, stop, 31);
  for (uint32_t first = 0; first < total; first += 32) {
    uint32_t e = first + lane(), owner = 0; // the first that stops behind e
#pragma unroll
    for (uint32_t step = 16; step > 0; step /= 2)
      if (__shfl_sync(ALL_LANES, stop, owner + step - 1) <= e)
        owner += step;
    Pair pair = pair_of_lane(mine, owner);
    uint32_t begin = __shfl_sync(ALL_LANES, stop - length, owner);
    Common common = {0, 0};
    if (e < total)
      look_at_edge(links, pair, sides_of(links, pair.many), e - begin, common);
    add_common(links, pair, common);
  }
  if (is_short) {
    Common common = {0, 0};
    look_at_list(links, mine, sides_of(links, mine.many), 0, 1, common);
    add_common(links, mine, common);
  }
}

// Looks at the edges of a part of a long pair; at its list with the first part.
__device__ inline void look_at_part(const ChangedLinks &links, uint64_t part) {
  Pair pair = pair_of(links, uint32_t(part >> 32));
  Sides of_many = sides_of(links, pair.many);
  Common common = {0, 0};
  uint32_t begin = uint32_t(part);
  uint32_t stop = min(num_edges(pair.edges), begin + PART);
  for (uint32_t i = begin + lane(); i < stop; i += 32)
    look_at_edge(links, pair, of_many, i, common);
  if (begin == 0)
    look_at_list(links, pair, of_many, lane(), 32, common);
  common = {sum_of_warp(common.of_few), sum_of_warp(common.of_many)};
  if (lane() == 0)
    add_common(links, pair, common);
}

// Each warp takes every num_warps()-th part of long pairs, and every
// num_warps()-th pair: as many of these at once as there are lanes.
__device__ void look_at_pairs(const ChangedLinks &links) {
  const LiveCounts *counts = links.batch.counts;
  for (uint32_t p = first_warp(); p < counts->num_again; p += num_warps())
    look_at_part(links, links.parts[p]);
  for (uint64_t base = first_warp(); base < counts->num_begun;
       base += 32ull * num_warps()) {
    uint64_t k = base + uint64_t(lane()) * num_warps();
    Pair mine{};
    bool is_one = k < counts->num_begun;
    if (is_one) {
      mine = pair_of(links, links.pairs[k]);
      long long sign = sign_of(links, mine.slot);
      add(links.num_neighbors, mine.few, sign);
      add(links.num_neighbors, mine.many, sign);
    }
    look_at_short(links, mine, is_one && is_short(links, mine.few));
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
  divide_pairs(links);
  wait_for_all(&counts->barrier, generation);
  bool is_spent = counts->num_read > links.most_cost ||
                  counts->num_again > links.most_parts;
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
