"""Breadth-first search from 64 sources at once: what one search finds, the others that come along find with it.

A mask of 64 bits says which searches have found a vertex. Masks of messages combine by `|`, so that all
searches together send one message along an edge, and look at it once.

    distance(v)[k] = min { length of p : p a path from source k to v },   -1 where there is none

The vertex column `search` has k + 1 at the source of search k, and 0 elsewhere (or `initial={"search": {7: 1,
9: 2}}`); without it vertices 0 to 63 are sources. Supersteps are as many as the longest shortest path has
edges, and two.

M. Then, M. Kaufmann, F. Chirigati et al., "The more the merrier: efficient multi-source graph traversal",
PVLDB 8, 2014.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2], [1, 2, 3])
>>> sigps.run(MultiSourceBFS(), graph, initial={"search": {0: 1, 2: 2}})["distance"][:, :2].tolist()
[[0, -1], [1, -1], [2, 0], [3, 1]]
"""

import numpy as np

from sigps import State, Vector, Vertex, from_column


class MultiSourceBFS(Vertex, message=np.uint64):
    """The searches that found each vertex, and how many edges away from each source it is."""

    search: State[int] = from_column("search", default=-1)
    found: State[np.uint64] = 0
    distance: State[Vector[np.int16, 64]] = -1

    def compute(self, messages):
        """Be found by searches that have not found this vertex yet, and pass them on."""
        mask = np.uint64(0)
        if self.superstep == 0:
            k = self.id if self.search < 0 else self.search - 1
            if 0 <= k < 64:
                mask = np.uint64(1) << k
        for m in messages:
            mask |= m
        new = mask & ~self.found
        if new != 0:
            self.found |= new
            for k in range(64):
                if (new >> k) & 1:
                    self.distance[k] = self.superstep
            self.send_to_neighbors(new)
        self.vote_to_halt()
