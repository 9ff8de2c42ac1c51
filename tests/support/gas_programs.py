"""Programs of phases, each beside an app or a judge that gives the same result."""

import math
from typing import NamedTuple

from sigps import GAS, EdgeState, Param, State, VertexId, inf


class GatheredPageRank(GAS):
    """As `apps.PageRank(dangling="leak")`."""

    iterations: Param[int] = 20
    rank: State[float] = 0.0

    def start(self):
        self.rank = 1.0 / self.num_vertices
        return self.iterations > 0

    def gather(self, edge):
        return edge.source.rank / edge.source.out_degree

    def apply(self, total):
        self.rank = 0.15 / self.num_vertices + 0.85 * total
        return self.superstep < self.iterations


class Rank(GAS, asynchronous=0.85):
    """PageRank from 1, until no rank changes by more than `tolerance`: a declared contraction."""

    tolerance: Param[float] = 1e-9
    rank: State[float] = 1.0

    def gather(self, edge):
        return edge.source.rank / edge.source.out_degree

    def apply(self, total):
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        return abs(self.rank - old) > self.tolerance


class UpdatedPageRank(GAS):
    """The same by update(): shares live on edges."""

    iterations: Param[int] = 20
    rank: State[float] = 0.0
    share: EdgeState[float] = 0.0

    def start(self):
        self.rank = 1.0 / self.num_vertices
        return self.iterations > 0

    def update(self):
        total = sum(edge.share for edge in self.in_edges)
        self.rank = 0.15 / self.num_vertices + 0.85 * total
        for edge in self.out_edges:
            edge.share = self.rank / self.out_degree
        return self.superstep < self.iterations


class ConvergedPageRank(GAS):
    """Until no rank changes by more than `tolerance`; scatter() makes what gather() reads."""

    tolerance: Param[float] = 1e-9
    rank: State[float] = 1.0
    share: EdgeState[float] = 0.0

    def gather(self, edge):
        return edge.share

    def apply(self, total):
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        return abs(self.rank - old) > self.tolerance

    def scatter(self, edge):
        edge.share = self.rank / self.out_degree


class HalfDamped(ConvergedPageRank):
    """A subclass with another apply()."""

    def apply(self, total):
        old = self.rank
        self.rank = 0.5 + 0.5 * total
        return abs(self.rank - old) > self.tolerance


class GatheredSSSP(GAS):
    """Distances, as `apps.SSSP`."""

    source: Param[VertexId]
    distance: State[float] = inf
    merge = min

    def start(self):
        if self.id == self.source:
            self.distance = 0.0
        return self.id == self.source

    def gather(self, edge):
        return edge.source.distance + edge.weight

    def apply(self, total):
        if total < self.distance:
            self.distance = total
            return True
        return False


class Path(NamedTuple):
    length: float
    last: VertexId


class GatheredPaths(GAS):
    """Distances and parents: gather() brings a NamedTuple."""

    source: Param[VertexId]
    distance: State[float] = inf
    parent: State[VertexId] = -1
    merge = "min"

    def start(self):
        is_source = self.id == self.source
        if is_source:
            self.distance = 0.0
            self.parent = self.id
        return is_source

    def gather(self, edge) -> Path:
        return Path(edge.source.distance + edge.weight, edge.source.id)

    def apply(self, total):
        is_shorter = total.length < self.distance
        if is_shorter:
            self.distance = total.length
            self.parent = total.last
        return is_shorter


class GatheredWCC(GAS, directed=False):
    """As `apps.WCC`."""

    component: State[VertexId] = -1
    merge = "min"

    def start(self):
        self.component = self.id

    def gather(self, edge) -> VertexId:
        return edge.source.component

    def apply(self, total):
        changed = total < self.component
        if changed:
            self.component = total
        return changed


class GatheredHeat(GAS, directed=False):
    """As `apps.HeatDiffusion`; gather() reads the target's own field, so messages are lists."""

    source: Param[VertexId]
    rate: Param[float] = 0.1
    steps: Param[int] = 5
    heat: State[float] = 0.0

    def start(self):
        self.heat = 1.0 if self.id == self.source else 0.0
        return self.steps > 0

    def gather(self, edge):
        warmer = edge.source.heat - self.heat
        return edge.weight * warmer

    def apply(self, total):
        self.heat += self.rate * total
        return self.superstep < self.steps


class UpdatedLabels(GAS, directed=False):
    """As `apps.CDLP`: the most frequent label of neighbours."""

    iterations: Param[int] = 10
    label: State[VertexId] = -1
    value: EdgeState[VertexId] = -1

    def start(self):
        self.label = self.id
        return self.iterations > 0

    def update(self):
        self.label = self.in_edges.most_common(default=self.label)
        for edge in self.out_edges:
            edge.value = self.label
        return self.superstep < self.iterations


def longest(a, b):
    """Return the value further from 0."""
    return a if a * a > b * b else b


class Loudest(GAS):
    """The value furthest from 0 among those of in-neighbours: a merge of the user's."""

    loud: State[float] = 0.0
    merge = longest
    empty = 0.0

    def gather(self, edge):
        return edge.source.id * 1.0

    def apply(self, total):
        self.loud = total
        return False


class BeliefPropagation(GAS, directed=False):
    """Log-odds of two-valued variables, coupled along edges: exact on trees (J. Pearl, 1982).

    A message from u to v is u's belief without what v told it, through the edge: a true edge value.
    """

    seed: Param[int] = 1
    coupling: Param[float] = 0.5
    rounds: Param[int] = 10
    prior: State[float] = 0.0
    belief: State[float] = 0.0
    told: EdgeState[float] = 0.0

    def start(self):
        self.prior = 0.1 * ((self.id * 7 + self.seed * 3) % 11 - 5)
        self.belief = self.prior
        return self.rounds > 0

    def gather(self, edge):
        return edge.told

    def apply(self, total):
        self.belief = self.prior + total
        return self.superstep < self.rounds

    def scatter(self, edge):
        cavity = self.belief - edge.reverse.told
        edge.told = 2.0 * math.atanh(math.tanh(self.coupling) * math.tanh(0.5 * cavity))


class DampedValues(GAS):
    """Values of edges that move half of the way in every superstep: each reads its old one."""

    rounds: Param[int] = 4
    value: State[float] = 1.0
    flow: EdgeState[float] = 0.0

    def gather(self, edge):
        return edge.flow

    def apply(self, total):
        self.value = 1.0 + 0.25 * total
        return self.superstep < self.rounds

    def scatter(self, edge):
        edge.flow = 0.5 * edge.flow + 0.5 * self.value * edge.weight
