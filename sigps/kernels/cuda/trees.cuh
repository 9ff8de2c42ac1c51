// Trees of vertices in an array of parents: a vertex points to one that comes
// before it in some order, and a root to itself. So pointers make no circle. A
// pointer that another thread has moved since still leads to the same root:
// what is read may be old.

#pragma once

#include "integers.cuh"

namespace sigps {

// The root of a vertex. Every pointer on the way is moved to the next but one.
__device__ inline uint32_t find_root(uint32_t *parents, uint32_t v) {
  uint32_t at = parents[v];
  if (at == v)
    return v;
  uint32_t before = v;
  for (uint32_t next = parents[at]; next != at; next = parents[at]) {
    parents[before] = next;
    before = at;
    at = next;
  }
  return at;
}

// The same; no pointer is moved.
__device__ inline uint32_t look_up_root(const uint32_t *parents, uint32_t v) {
  uint32_t root = parents[v];
  for (uint32_t next = parents[root]; next != root; next = parents[root])
    root = next;
  return root;
}

// Joins the trees of two vertices, best those of roots. Returns whether this
// call did: pairs of which it did connect what all pairs connect.
//
//   comes_before: the order that pointers go back in
template <class ComesBefore>
__device__ inline bool join_trees(uint32_t *parents, uint32_t a, uint32_t b,
                                  ComesBefore comes_before) {
  while (a != b) {
    if (comes_before(b, a)) {
      uint32_t other = a;
      a = b;
      b = other;
    }
    uint32_t found = atomicCAS(&parents[b], b, a);
    if (found == b)
      return true;
    b = found; // it is a root no more
  }
  return false;
}

} // namespace sigps
