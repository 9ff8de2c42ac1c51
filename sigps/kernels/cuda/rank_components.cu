// The best value of each component of a graph of which several GPUs have a
// partition each, of no program's functions (engine/gpu/rank_components.py).
//
// Each rank makes trees (trees.cuh) of its vertices and ghosts, by edges that
// it has, and a parent is the lesser local id. So a root is an owned vertex,
// since every ghost has an edge to one and comes behind it. The first edges of
// each vertex are taken, after which the tree of local id 0, which has most
// edges, holds most vertices of many graphs; then all edges of those outside it
// (M. Sutton, T. Ben-Nun, A. Barak, "Optimizing parallel graph connectivity
// computation via subgraph sampling", IPDPS 2018). An edge is in the rows of
// both its ends: an owned vertex has in-edges, and a ghost out-edges here.
//
// Then roots are vertices of a second forest. A tree has its number among those
// of all ranks: `first_tree` of the rank and its root's local id. A ghost joins
// its tree here with the one that its owner has it in. Each rank joins its own
// ghosts, and leaves the pairs that joined two trees for the others, which join
// them too; so all come to the same components in two exchanges, whatever the
// graph. In its copy of that forest a rank counts from its own trees on, so
// that a component's root is its own, where it has any of it.
//
// Hosts wait for all ranks before one reads what another wrote.
//
// Macros: SIGPS_VALUE, an integer of 32 or 64 bits; SIGPS_TAKES_MIN.

#include "edges.cuh"
#include "trees.cuh"

using namespace sigps;

// What a rank knows of another, or of itself. What `there` is in the name of
// lies in that rank's memory.
//
//   roots_there: [slots of this rank for it] where it takes roots
//   num_pairs_there: [1]
//   ones_there, others_there: [pairs] the trees of each pair, its own first
//   best_there: [its vertices] the best value of each of its trees, by root
struct PartOfRank {
  uint32_t *roots_there;
  const uint32_t *num_pairs_there, *ones_there, *others_there;
  const void *best_there;
  uint32_t first_tree;
  uint32_t first_listed; // where roots of its vertices, ghosts here, begin
  uint32_t num_ghosts;   // and how many these are, and their local ids: the
  uint32_t num_hot;      // first ones', and the others'
  uint32_t first_hot, first_cold;
};

namespace {

using Value = SIGPS_VALUE;

constexpr uint32_t NO_VERTEX = ~0u;
constexpr uint32_t NUM_FIRST = 2;     // edges of each vertex
constexpr uint32_t WIDE_DEGREE = 32;  // from here on a warp has a row
constexpr uint32_t HUB_DEGREE = 2048; // and from here on all blocks

__device__ inline uint64_t first_thread() {
  return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline uint64_t num_threads() {
  return uint64_t(gridDim.x) * blockDim.x;
}

// Calls visit(edges, v) for all local ids: of owned vertices with the edges
// that they are rows of, then of ghosts. With all lanes of a warp, so that
// edges are the same for all; a lane that has no vertex gets NO_VERTEX.
template <class Visit>
__device__ inline void for_all_rows(const Edges &in, const Edges &out,
                                    uint32_t num_lids, Visit visit) {
  uint64_t first = first_thread();
  for (uint64_t v = first; v - threadIdx.x % 32 < in.num_rows;
       v += num_threads())
    visit(in, v < in.num_rows ? uint32_t(v) : NO_VERTEX);
  for (uint64_t v = in.num_rows + first; v - threadIdx.x % 32 < num_lids;
       v += num_threads())
    visit(out, v < num_lids ? uint32_t(v) : NO_VERTEX);
}

__device__ inline uint32_t end_of(const Edges &edges, const RowOfEdges &row,
                                  uint32_t j) {
  return end_at(edges, row.first + uint64_t(j) * row.step);
}

__device__ inline bool join(uint32_t *parents, uint32_t a, uint32_t b) {
  return join_trees(parents, find_root(parents, a), find_root(parents, b),
                    [](uint32_t x, uint32_t y) { return x < y; });
}

__device__ inline bool is_better(Value a, Value b) {
  return SIGPS_TAKES_MIN ? a < b : b < a;
}

__device__ inline void take_better(Value *at, Value value) {
  if (!is_better(value, *at))
    return;
  if (SIGPS_TAKES_MIN)
    atomicMin(at, value);
  else
    atomicMax(at, value);
}

// A tree's number in a forest that begins with another tree.
struct Turned {
  uint32_t first, num_trees;

  __device__ uint32_t operator()(uint32_t tree) const {
    return tree - first + (tree < first ? num_trees : 0);
  }
};

} // namespace

// Begins trees with the first edge of each vertex, if it leads to a lesser
// local id.
//
//   in:      rows of owned vertices, whose ends may be ghosts
//   out:     rows of all local ids, whose ends are owned; read of ghosts
//   parents: [local ids]
//   values, best: [owned vertices]
extern "C" __global__ void __launch_bounds__(256)
    begin_rank_trees_thread_mapped(const __grid_constant__ Edges in,
                                   const __grid_constant__ Edges out,
                                   uint32_t num_lids, uint32_t *parents,
                                   const Value *values, Value *best) {
  for_all_rows(in, out, num_lids, [&](const Edges &edges, uint32_t v) {
    if (v == NO_VERTEX)
      return;
    RowOfEdges row = row_of(edges, v);
    parents[v] = row.degree > 0 ? min(end_of(edges, row, 0), v) : v;
    if (v < in.num_rows)
      best[v] = values[v];
  });
}

// Joins the trees at the ends of the first edges.
extern "C" __global__ void __launch_bounds__(256)
    join_first_edges_thread_mapped(const __grid_constant__ Edges in,
                                   const __grid_constant__ Edges out,
                                   uint32_t num_lids, uint32_t *parents) {
  for_all_rows(in, out, num_lids, [&](const Edges &edges, uint32_t v) {
    RowOfEdges row = v == NO_VERTEX ? EMPTY_ROW : row_of(edges, v);
    for (uint32_t j = 0; j < min(row.degree, NUM_FIRST); j++) {
      uint32_t u = end_of(edges, row, j);
      if (j > 0 || u > v) // the others have joined
        join(parents, v, u);
    }
  });
}

// Joins the trees at the ends of all edges of vertices outside the tree of
// local id 0; a warp those of a wide row. Hubs are listed, and left out.
//
//   num_hubs, hubs: [1], [hubs] begins as 0; adds by atomics
extern "C" __global__ void __launch_bounds__(256)
    join_other_edges_warp_mapped(const __grid_constant__ Edges in,
                                 const __grid_constant__ Edges out,
                                 uint32_t num_lids, uint32_t *parents,
                                 uint32_t *num_hubs, uint32_t *hubs) {
  uint32_t lane = threadIdx.x % 32;
  for_all_rows(in, out, num_lids, [&](const Edges &edges, uint32_t v) {
    uint32_t degree = v == NO_VERTEX ? 0 : edges.degrees[v];
    bool is_left =
        degree > NUM_FIRST && find_root(parents, v) != find_root(parents, 0);
    if (is_left && degree > HUB_DEGREE) {
      hubs[atomicAdd(num_hubs, 1u)] = v;
      is_left = false;
    }
    for (uint32_t wide = __ballot_sync(~0u, is_left && degree > WIDE_DEGREE);
         wide != 0; wide &= wide - 1) {
      uint32_t w = __shfl_sync(~0u, v, __ffs(wide) - 1);
      RowOfEdges row = row_of(edges, w);
      for (uint32_t j = lane; j < row.degree; j += 32)
        join(parents, w, end_of(edges, row, j));
      __syncwarp();
    }
    if (is_left && degree <= WIDE_DEGREE) {
      RowOfEdges row = row_of(edges, v);
      for (uint32_t j = 0; j < degree; j++)
        join(parents, v, end_of(edges, row, j));
    }
    __syncwarp();
  });
}

// Joins the trees at the ends of all edges of hubs.
extern "C" __global__ void __launch_bounds__(256)
    join_hubs_grid_mapped(const __grid_constant__ Edges in,
                          const __grid_constant__ Edges out, uint32_t *parents,
                          const uint32_t *num_hubs, const uint32_t *hubs) {
  for (uint32_t i = 0; i < *num_hubs; i++) {
    const Edges &edges = hubs[i] < in.num_rows ? in : out;
    RowOfEdges row = row_of(edges, hubs[i]);
    for (uint64_t j = first_thread(); j < row.degree; j += num_threads())
      join(parents, hubs[i], end_of(edges, row, uint32_t(j)));
  }
}

// Points all to their roots, and gives roots the best value of their trees, by
// atomics: of vertices of a warp that have one root, once.
extern "C" __global__ void __launch_bounds__(256)
    settle_rank_trees_thread_mapped(uint32_t num_owned, uint32_t num_lids,
                                    uint32_t *parents, const Value *values,
                                    Value *best) {
  uint64_t rounds = (num_lids + num_threads() - 1) / num_threads();
  for (uint64_t round = 0; round < rounds; round++) {
    uint32_t v = uint32_t(round * num_threads() + first_thread()), root = v;
    if (v < num_lids) {
      root = look_up_root(parents, v);
      parents[v] = root;
    }
    Value value = v < num_owned ? values[v] : Value(0);
    bool has = v < num_owned && root != v && is_better(value, best[root]);
    for (uint32_t left = __ballot_sync(~0u, has); left != 0;) {
      uint32_t first = __ffs(left) - 1;
      uint32_t of = __shfl_sync(~0u, root, first);
      Value given = __shfl_sync(~0u, value, first);
      bool is_of = has && root == of;
      given = is_of ? value : given;
      for (uint32_t lanes = 16; lanes > 0; lanes /= 2) {
        Value other = __shfl_xor_sync(~0u, given, lanes);
        given = is_better(other, given) ? other : given;
      }
      if (threadIdx.x % 32 == first)
        take_better(&best[of], given);
      left &= ~__ballot_sync(~0u, is_of);
    }
  }
}

// Writes the roots of vertices that others have as ghosts into their memory.
//
//   bounds, vertices: as in Halo
extern "C" __global__ void __launch_bounds__(256)
    publish_roots_thread_mapped(const PartOfRank *parts, uint32_t num_ranks,
                                const uint32_t *bounds,
                                const uint32_t *vertices,
                                const uint32_t *parents) {
  for (uint64_t slot = first_thread(); slot < bounds[num_ranks];
       slot += num_threads()) {
    uint32_t v = vertices[slot], rank = 0;
    while (bounds[rank + 1] <= slot)
      rank++;
    if (v != NO_VERTEX)
      parts[rank].roots_there[slot - bounds[rank]] = parents[v];
  }
}

// Begins the forest of all ranks' trees, and this rank's pairs.
//
//   forest: [num_trees]
extern "C" __global__ void __launch_bounds__(256)
    begin_forest_thread_mapped(uint32_t num_trees, uint32_t *forest,
                               uint32_t *num_pairs) {
  for (uint64_t tree = first_thread(); tree < num_trees; tree += num_threads())
    forest[tree] = uint32_t(tree);
  if (first_thread() == 0)
    *num_pairs = 0;
}

// Joins the tree of each ghost here with that at its owner, and adds the pairs
// that joined two to this rank's, by atomics.
//
//   roots: [listed] of ghosts at their owners, as list_begins of Halo has them
extern "C" __global__ void __launch_bounds__(256)
    join_ghosts_thread_mapped(const PartOfRank *parts, uint32_t num_ranks,
                              uint32_t rank, uint32_t num_trees,
                              const uint32_t *parents, const uint32_t *roots,
                              uint32_t *forest, uint32_t *num_pairs,
                              uint32_t *ones, uint32_t *others) {
  uint32_t first = parts[rank].first_tree;
  Turned turned{first, num_trees};
  for (uint32_t owner = 0; owner < num_ranks; owner++) {
    const PartOfRank part = parts[owner];
    for (uint64_t i = first_thread(); i < part.num_ghosts; i += num_threads()) {
      uint32_t ghost = uint32_t(i) < part.num_hot
                           ? part.first_hot + uint32_t(i)
                           : part.first_cold + uint32_t(i) - part.num_hot;
      uint32_t here = parents[ghost];
      uint32_t there = part.first_tree + roots[part.first_listed + i];
      if (join(forest, here, turned(there))) {
        uint32_t at = atomicAdd(num_pairs, 1u);
        ones[at] = first + here;
        others[at] = there;
      }
    }
  }
}

// Joins the trees of the pairs of all other ranks.
extern "C" __global__ void __launch_bounds__(256)
    join_pairs_thread_mapped(const PartOfRank *parts, uint32_t num_ranks,
                             uint32_t rank, uint32_t num_trees,
                             uint32_t *forest) {
  Turned turned{parts[rank].first_tree, num_trees};
  for (uint32_t k = 1; k < num_ranks; k++) {
    const PartOfRank part = parts[(rank + k) % num_ranks];
    uint32_t count = *part.num_pairs_there;
    for (uint64_t i = first_thread(); i < count; i += num_threads())
      join(forest, turned(part.ones_there[i]), turned(part.others_there[i]));
  }
}

// Gives each of this rank's trees that is the root of a component the best
// value of all ranks' trees of it, by atomics. A tree that has ghosts is the
// one of a pair of its own rank; others are components. A value that a rank
// improves meanwhile is one of the same component.
extern "C" __global__ void __launch_bounds__(256)
    take_best_of_pairs_thread_mapped(const PartOfRank *parts,
                                     uint32_t num_ranks, uint32_t rank,
                                     uint32_t num_owned, uint32_t num_trees,
                                     const uint32_t *forest, Value *best) {
  Turned turned{parts[rank].first_tree, num_trees};
  for (uint32_t k = 0; k < num_ranks; k++) {
    const PartOfRank part = parts[(rank + k) % num_ranks];
    uint32_t count = *part.num_pairs_there;
    const Value *best_there = static_cast<const Value *>(part.best_there);
    for (uint64_t i = first_thread(); i < count; i += num_threads()) {
      uint32_t tree = part.ones_there[i];
      uint32_t root = look_up_root(forest, turned(tree));
      if (root < num_owned)
        take_better(&best[root], best_there[tree - part.first_tree]);
    }
  }
}

// Gives each vertex the best value of its component.
//
//   account: [2] begins as 0: how many values are others now, by atomics, and
//            this rank's pairs
extern "C" __global__ void __launch_bounds__(256)
    take_best_thread_mapped(uint32_t num_owned, const uint32_t *parents,
                            const uint32_t *forest, const Value *best,
                            Value *values, const uint32_t *num_pairs,
                            unsigned long long *account) {
  uint32_t changed = 0;
  for (uint64_t v = first_thread(); v < num_owned; v += num_threads()) {
    Value value = best[look_up_root(forest, parents[v])];
    changed += value != values[v];
    values[v] = value;
  }
  changed = __reduce_add_sync(~0u, changed);
  if (threadIdx.x % 32 == 0 && changed != 0)
    atomicAdd(&account[0], static_cast<unsigned long long>(changed));
  if (first_thread() == 0)
    account[1] = *num_pairs;
}
