// The best value of each component, by hooking and halving of paths, of no
// program's functions (engine/gpu/components.py).
//
// `parents` makes trees (trees.cuh) of vertices of one component each, which
// come before others by value and then by local id: so a root has the best
// value of its tree. Vertices are hooked where an edge joins two trees (J.
// Jaiganesh, M. Burtscher, "A high-performance connected components
// implementation for GPUs", HPDC 2018).
//
// Schedule: a thread a vertex, in three launches; for graphs whose vertices
// have few edges.
//
// Macros: SIGPS_VALUE, an integer; SIGPS_TAKES_MIN.

#include "edges.cuh"
#include "trees.cuh"

using namespace sigps;

namespace {

using Value = SIGPS_VALUE;

__device__ inline bool comes_before(const Value *values, uint32_t a,
                                    uint32_t b) {
  Value x = values[a], y = values[b];
  return (SIGPS_TAKES_MIN ? x < y : y < x) || (x == y && a < b);
}

} // namespace

// Points each vertex to a neighbour that comes before it, if there is one.
//
//   values:  [num_rows]
//   parents: [num_rows]
extern "C" __global__ void __launch_bounds__(256)
    begin_trees_thread_mapped(const __grid_constant__ Edges edges,
                              const Value *values, uint32_t *parents) {
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x; v < edges.num_rows;
       v += gridDim.x * blockDim.x) {
    RowOfEdges row = row_of(edges, uint32_t(v));
    uint32_t parent = uint32_t(v);
    for (uint32_t j = 0; j < row.degree && parent == v; j++) {
      uint32_t u = end_at(edges, row.first + uint64_t(j) * row.step);
      parent = comes_before(values, u, uint32_t(v)) ? u : parent;
    }
    parents[v] = parent;
  }
}

// Joins the trees at the ends of each edge. An edge is in the rows of both its
// ends, and taken once.
extern "C" __global__ void __launch_bounds__(256)
    join_trees_thread_mapped(const __grid_constant__ Edges edges,
                             const Value *values, uint32_t *parents) {
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x; v < edges.num_rows;
       v += gridDim.x * blockDim.x) {
    RowOfEdges row = row_of(edges, uint32_t(v));
    for (uint32_t j = 0; j < row.degree; j++) {
      uint32_t u = end_at(edges, row.first + uint64_t(j) * row.step);
      if (u < v)
        join_trees(
            parents, find_root(parents, uint32_t(v)), find_root(parents, u),
            [&](uint32_t a, uint32_t b) { return comes_before(values, a, b); });
    }
  }
}

// Gives each vertex the value of its root, whose own stays. Adds to
// `num_changed` how many values are others now.
extern "C" __global__ void __launch_bounds__(256)
    take_roots_thread_mapped(uint32_t num_vertices, const uint32_t *parents,
                             Value *values, unsigned long long *num_changed) {
  uint32_t changed = 0;
  for (uint64_t v = blockIdx.x * blockDim.x + threadIdx.x; v < num_vertices;
       v += gridDim.x * blockDim.x) {
    Value value = values[look_up_root(parents, uint32_t(v))];
    changed += value != values[v];
    values[v] = value;
  }
  changed = __reduce_add_sync(~0u, changed);
  if (threadIdx.x % 32 == 0 && changed != 0)
    atomicAdd(num_changed, static_cast<unsigned long long>(changed));
}
