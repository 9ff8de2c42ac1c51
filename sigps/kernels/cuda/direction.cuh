// Push or pull: which is cheaper for the next superstep. kernels/direction.py
// has the same rule, and both pass the same table of cases. Needs no GPU: a C++
// compiler for the host takes it as well.

#pragma once

#include "integers.cuh"

namespace sigps {

enum Direction : uint32_t { PULL = 0, PUSH = 1 };

// Which direction the user wants for every superstep.
enum Forced : uint32_t { FORCED_NONE = 0, FORCED_PULL = 1, FORCED_PUSH = 2 };

// sender_edges: out-edges of the senders, each a message of a push, and what it
//   takes to read their rows, in messages.
// retired_edges: out-edges of retired vertices, one at least for each. A pull
//   passes no in-edges of these, of which there are about as many.
// pull_cost: in-edges and vertices, which a pull passes before any has retired.
// pull_gain: in-edges that a pull passes during one message of a push.
// can_push: whether messages can be combined in memory.
//
// The counts are of all partitions together, so that all GPUs choose alike.
#if defined(__CUDACC__)
__host__ __device__
#endif
    inline Direction choose_direction(uint64_t sender_edges,
                                      uint64_t retired_edges,
                                      uint64_t pull_cost, uint32_t pull_gain,
                                      uint32_t forced, bool can_push) {
  if (!can_push || forced == FORCED_PULL)
    return PULL;
  if (forced == FORCED_PUSH)
    return PUSH;
  pull_cost -= retired_edges;
  return sender_edges * pull_gain < pull_cost ? PUSH : PULL;
}

} // namespace sigps
