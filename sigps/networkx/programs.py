"""Programs for what NetworkX's functions ask beyond the algorithms of `sigps.apps`."""

from __future__ import annotations

import math
from typing import NamedTuple

from sigps import Aggregator, Param, State, Vertex, VertexId, at_least, inf
from sigps.apps import Distances, DistanceSums

__all__ = [
    "DampedSums",
    "HopSums",
    "Hops",
    "HubsAndAuthorities",
    "Levels",
    "Nearest",
    "NormedSums",
    "OrderedColours",
    "OrderedMatching",
]


class Hops(Distances, directed=True):
    """How many edges each vertex is from `source` along their directions, -1 where no path leads; for many runs."""


class HopSums(DistanceSums, directed=True):
    """How far 64 sources are from each vertex that they reach along edges."""


class Levels(Vertex, message=bool):
    """How many edges each vertex is from the nearest source, -1 where no path leads."""

    is_source: State[bool] = False
    level: State[int] = -1

    def compute(self, messages):
        """Be found once, and send to the neighbours."""
        if messages or (self.superstep == 0 and self.is_source):
            self.level = self.superstep
            self.send_to_neighbors(True)
            self.retire()
        self.vote_to_halt()


class Path(NamedTuple):
    """A way to a vertex: how long it is, and the vertex before the end."""

    length: float
    last: VertexId


class Nearest(Vertex, message=Path):
    """The distance of each vertex from the nearest source, and the vertex before it on the way."""

    is_source: State[bool] = False
    distance: State[float] = inf
    parent: State[VertexId | None] = None

    def compute(self, messages):
        """Take the shortest way offered, and offer the ways through here if it is a shorter one."""
        best = min(messages, default=Path(inf, self.id))
        if self.superstep == 0 and self.is_source:
            best = Path(0.0, self.id)
        if best.length < self.distance:
            self.distance = best.length
            self.parent = best.last
            for edge in self.out_edges:
                self.send(edge, Path(best.length + edge.weight, self.id))
        self.vote_to_halt()


class DampedSums(Vertex, message=float):
    """Power iteration of x = damping * (sums of in-neighbours' shares + lost * dangling) + base.

    A vertex shares x out by the weights of its out-edges, divided by `total`; where that is 0 it shares nothing, and
    its x is lost. After a round that changed x by less than `tolerance` in sum the next superstep changes nothing.
    """

    damping: Param[float]
    iterations: Param[int] = at_least(1)
    tolerance: Param[float] = 0.0
    x: State[float] = 0.0
    base: State[float] = 0.0
    dangling: State[float] = 0.0
    total: State[float] = 1.0
    lost = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Gather shares, and share the new x out."""
        if self.superstep > 1 and self.change < self.tolerance:
            self.vote_to_halt()
            return
        if self.superstep > 0:
            x = self.damping * (sum(messages) + self.lost * self.dangling) + self.base
            self.change += abs(x - self.x)
            self.x = x
        if self.superstep >= self.iterations:
            self.vote_to_halt()
        elif self.total == 0.0:
            self.lost += self.x
        else:
            share = self.x / self.total
            for edge in self.out_edges:
                self.send(edge, share * edge.weight)


class NormedSums(Vertex, message=float):
    """Power iteration of x = (x + weighted sums of in-neighbours' x), of Euclidean norm 1 after each round.

    The norm of a round is known in the next superstep, and what the round changed in the one after.
    """

    iterations: Param[int] = at_least(1)
    tolerance: Param[float] = 0.0
    x: State[float] = 0.0
    unscaled: State[float] = 0.0
    squares = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Scale what the last round gave, and gather for the next one."""
        if self.superstep > 2 and self.change < self.tolerance:
            self.vote_to_halt()
            return
        if self.superstep == 0:
            self.unscaled = self.x
        else:
            norm = 1.0
            if self.superstep > 1 and self.squares > 0.0:
                norm = math.sqrt(self.squares)
            x = self.unscaled / norm
            self.change += abs(x - self.x)
            self.x = x
            self.unscaled = x + sum(messages) / norm
            self.squares += self.unscaled * self.unscaled
        if self.superstep > self.iterations:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                self.send(edge, self.unscaled * edge.weight)


class HubsAndAuthorities(Vertex, message=float, both_ways=True):
    """Hubs and authorities along weighted edges, which add up to 1 each, until hubs change by less than `tolerance`.

    In odd supersteps authorities add up hubs, in even ones hubs add up what came back; unscaled values travel.
    """

    rounds: Param[int] = at_least(1)
    tolerance: Param[float] = 0.0
    hub: State[float] = 1.0
    scaled: State[float] = 0.0
    authority: State[float] = 0.0
    hubs = Aggregator.sum(float)
    authorities = Aggregator.sum(float)
    change = Aggregator.sum(float)

    def compute(self, messages):
        """Scale what the last phase gave, and add up what came from the other side."""
        received = sum(messages)
        is_even = self.superstep % 2 == 0
        if is_even:
            if self.superstep > 0:
                self.authority /= self.authorities
                if self.change < self.tolerance or self.superstep >= 2 * self.rounds:
                    self.vote_to_halt()
                    return
                self.hub = received / self.authorities
            self.hubs += self.hub
        else:
            hub = self.hub / self.hubs
            self.change += abs(hub - self.scaled)
            self.scaled = hub
            self.authority = received / self.hubs
            self.authorities += self.authority
        score = self.hub if is_even else self.authority
        for edge in self.out_edges:
            if edge.leads_out if self.superstep % 2 == 0 else edge.leads_in:
                self.send(edge, score * edge.weight)


class Claim(NamedTuple):
    """Who gets which colour: the lower goes first."""

    colour: int
    place: int


class OrderedColours(Vertex, message=Claim, directed=False):
    """The smallest colour that no neighbour before has, by the order of `place`; as in `sigps.apps.GreedyColouring`."""

    place: State[int] = 0
    colour: State[int] = 0

    def compute(self, messages):
        """Take the colour if it is this vertex's turn, and the next one if it is gone."""
        is_turn = self.superstep % 2 == 1
        if not is_turn and max((m.colour for m in messages), default=-1) == self.colour:
            self.colour += 1
        mine = Claim(self.colour, self.place)
        if not is_turn or mine <= min(messages, default=mine):
            self.send_to_neighbors(mine)
            if is_turn:
                self.retire()


class Offer(NamedTuple):
    """The place of an edge in the order, and which end offers it: the lower goes first."""

    place: float
    vertex: VertexId


class OrderedMatching(Vertex, message=Offer, directed=False):
    """The matching of going through the edges by weight; as in `sigps.apps.MaximalMatching`. No loops."""

    mate: State[VertexId | None] = None

    def compute(self, messages):
        """Be matched with a neighbour that picked this vertex too, or offer to all and pick again."""
        first = min(messages, default=Offer(0.0, self.id))
        picks = self.superstep % 2 == 1
        if picks and messages:
            self.mate = first.vertex
        elif picks or (messages and first.vertex == self.mate):
            self.retire()
            return
        else:
            self.mate = None
        for edge in self.out_edges:
            if edge.target != self.id and (edge.target == self.mate or not picks):
                self.send(edge, Offer(edge.weight, self.id))
