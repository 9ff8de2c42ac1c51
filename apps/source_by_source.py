"""Searches from one source after another: what measures share that look from all vertices, or from a sample of them.

Every vertex has a turn, a hash of its id and `seed`; no two have the same. Between searches `depth` is -1 and all wake:
vertices still to come say their turns, and the lowest is the next source. In a search `depth` counts the levels, up
while new ones are found, and down to 1 where a program has a way back.

>>> import sigps
>>> hashed(3, seed=0) < hashed(2, seed=0), hashed(3, seed=1) < hashed(2, seed=1)
(False, True)
"""

from sigps import Aggregator, Param, Shared, Vertex, at_least
from sigps.apps.hashing import hashed


class SourceBySource(Vertex, directed=False):
    """A base: its programs call `line_up` where `depth` is -1, and say where a search `spreads`."""

    has_way_back = False
    samples: Param[int] = at_least(0, default=0)
    seed: Param[int] = 0
    num_searches: Shared[int] = 0
    source: Shared[int] = 0
    depth: Shared[int] = -1
    goes_back: Shared[bool] = False
    lowest = Aggregator.min(int)
    spreads = Aggregator.any()

    def line_up(self):
        if self.num_searches == 0 or hashed(self.id, self.seed) > self.source:
            self.lowest += hashed(self.id, self.seed)

    def is_source(self):
        return self.depth == 0 and hashed(self.id, self.seed) == self.source

    def num_sources(self):
        return self.samples if 0 < self.samples < self.num_vertices else self.num_vertices

    def master(self):
        """Begin a search, or go on with it; after the last one no vertex wakes, and the run ends."""
        if self.depth < 0:
            self.num_searches, self.source, self.depth = self.num_searches + 1, self.lowest, 0
        elif self.spreads:
            self.depth += 1
        elif self.has_way_back and self.depth > 1:
            self.depth, self.goes_back = self.depth - 1, True
        elif self.num_searches < self.num_sources():
            self.depth, self.goes_back = -1, False
            self.wake_all()


def sources_of(graph, samples=0, seed=0):
    """Return the ids of the vertices whose turns come first, as many as `samples`, or of all in ascending order."""
    ids = graph.ids.to_oids(range(graph.num_vertices)).tolist()
    if not 0 < samples < len(ids):
        return ids
    numbers = range(len(ids)) if isinstance(ids[0], str) else ids  # as compute() sees them
    return sorted(ids, key=dict(zip(ids, (hashed(v, seed) for v in numbers), strict=True)).get)[:samples]
