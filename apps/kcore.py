"""Core numbers: how dense a part of the graph each vertex belongs to.

The k-core is the largest part of the graph in which every vertex has at least k neighbours; a vertex's core number
is the largest k whose core it is in. Round by round, those vertices go that have too few neighbours left for more
than the core at hand, and when none went, the core at hand becomes the lowest number of neighbours left to a vertex.
One with many more left sleeps, until neighbours go or the core at hand comes within reach.

    left(v) = |{ (u, v) an edge : u has not gone }|,   core(v) = max { min { left(u) : u } in a round until v goes }

The graph is taken as undirected and simple: parallel edges count once, and loops do not. A superstep for each round and
each core that is not empty, at most twice the number of vertices and some hundreds on skewed graphs, and one or two
each time that all are woken: no more often than the highest degree has bits. Edges are crossed once.

A core number is known when its vertex goes; a run that is cut off leaves 0 to vertices that have not gone.

V. Batagelj, M. Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 0, 1, 2, 3], [1, 2, 2, 3, 4], directed=False)
>>> sigps.run(KCore(), graph)["core"].tolist()
[2, 2, 2, 1, 1]
"""

import numpy as np

from sigps import Aggregator, Shared, State, Vertex


class KCore(Vertex, message=int, directed=False, simple=True):
    """Core numbers, and how many neighbours each vertex had left when it went."""

    core: State[np.int32] = 0
    left: State[np.int32] = 0
    reach: Shared[int] = 0
    lowest = Aggregator.min(int)

    def compute(self, messages):
        """Count the neighbours that are left, and go if there are too few."""
        if self.superstep == 0:
            self.left = self.out_degree
            self.lowest += self.left
        else:
            self.left -= sum(messages)
            # One that goes contributes too, until all have received; one that sleeps at most what is within reach.
            self.lowest += max(min(self.left, self.reach), self.lowest)
            if self.left <= self.lowest:
                self.core = self.lowest
                self.send_to_neighbors(1)
                self.retire()
            elif self.left > self.reach:
                self.vote_to_halt()

    def next_phase(self):
        """Reach further: no vertex within reach is left, so those left have more neighbours than that."""
        self.reach = 2 * self.lowest + 4
        self.wake_all()
