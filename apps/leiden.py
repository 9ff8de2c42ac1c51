"""Leiden: as `louvain`, but vertices of the smaller graph are connected parts of communities, not whole ones.

Louvain's communities may fall apart inside. Here each community is split before the graph is contracted: every vertex
begins as a part of its own, and one that is alone and well connected joins the part inside its community that gains
most, if it gains:

    v is well connected in community C if  weight(v, C without v) >= resolution * strength(v) * total(C without v) / W
    gain of v in part p = weight(v, p) - resolution * strength(v) * total(p) / W

Lone vertices that a hash draws may join, and nobody joins these; so parts grow from one vertex each along edges, and
are connected. Rounds of this are at most `rounds`. The parts are the vertices of the next graph, and begin there in the
communities that they are parts of, so that whole parts can move. In the end what does not hang together in a
community becomes several, which only raises modularity.

Gains, the hash and what is the same on all devices: see `louvain`. Leiden draws parts at random, by their gain; here
the best is taken.

V. A. Traag, L. Waltman, N. J. van Eck, "From Louvain to Leiden: guaranteeing well-connected communities", Scientific
Reports 9, 2019.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = leiden(graph)
>>> result["community"].tolist(), round(result.aggregators["modularity"], 4)
([0, 0, 0, 1, 1, 1], 0.3571)
"""

from typing import NamedTuple

import numpy as np

from sigps import Aggregator, Param, State, Vertex, above, inf
from sigps.apps.driving import Runs, numbered
from sigps.apps.hashing import hashed
from sigps.apps.louvain import best_communities, scored


class Offer(NamedTuple):
    """The part of a neighbour, its community, the weight of the edge, the part's strength, whether it can be joined."""

    part: int
    community: int
    weight: float
    total: float
    is_open: bool


class LeidenRound(Vertex, message=Offer, directed=False):
    """One round: the part of each vertex after it. `initial` has communities, parts and what they come to."""

    whole: Param[float] = above(0, default=1.0)
    resolution: Param[float] = above(0, default=1.0)
    turn: Param[int] = 0
    community: State[int] = 0
    part: State[int] = 0
    strength: State[float] = 0.0
    around: State[float] = 0.0
    total: State[float] = 0.0
    is_alone: State[bool] = True
    wishes = Aggregator.sum(int)

    def compute(self, messages):
        """Offer the part to the neighbours; then join the best, if it is this vertex's turn."""
        may_join = self.is_alone and hashed(self.id, self.turn) & 1 == 0
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.target != self.id:
                    self.send(edge, Offer(self.part, self.community, edge.weight, self.total, not may_join))
        else:
            if self.is_alone:
                self.join(messages, may_join)
            self.vote_to_halt()

    def join(self, messages, may_join):
        """Join the part with the greatest gain inside the community, if this vertex is well connected there."""
        share = self.resolution * self.strength / self.whole
        inside, most, best, goal = 0.0, -inf, -inf, self.part
        for part, group in messages.grouped(lambda m: m.part):
            if min(m.community for m in group) == self.community:
                weight = sum(m.weight for m in group)
                gain = weight - share * min(m.total for m in group)
                inside += weight
                most = max(most, gain)
                if gain > best and any(m.is_open for m in group):
                    best, goal = gain, part
        if most > 0.0 and inside >= share * (self.around - self.strength):
            self.wishes += 1
            if may_join and best > 0.0:
                self.part = goal


class Reach(NamedTuple):
    """A community, and the smallest number that is known to hang together with the sender there."""

    community: int
    piece: int


class ConnectedPieces(Vertex, message=Reach, directed=False):
    """The smallest number that a path inside the community leads to; `initial` has both, pieces all different."""

    community: State[int] = 0
    piece: State[int] = 0

    def compute(self, messages):
        """Take a smaller number from the same community, and send it on."""
        piece = self.piece
        for m in messages:
            if m.community == self.community:
                piece = min(piece, m.piece)
        if self.superstep == 0 or piece < self.piece:
            self.piece = piece
            self.send_to_neighbors(Reach(self.community, piece))
        self.vote_to_halt()


def leiden(graph, resolution=1.0, iterations=2, rounds=16, seed=0, **options):
    """Return a result with `community`, numbered in the order of their smallest members, and the `modularity`.

    `options` are those of `sigps.run`. Collective; every rank has the whole result.
    """

    def split(runs, level, community, strength):
        """Return the part of each vertex, which is named by a vertex in it."""
        n, whole = level.num_vertices, strength.sum() or 1.0
        around = np.bincount(community, strength, n)[community]
        part = np.arange(n)
        for turn in range(rounds):
            program = LeidenRound(whole=whole, resolution=resolution, turn=hashed(turn, hashed(-1, seed)))
            begin = {"community": community, "part": part, "strength": strength, "around": around}
            begin["total"] = np.bincount(part, strength, n)[part]
            begin["is_alone"] = np.bincount(part, minlength=n)[part] == 1
            result = runs.run(program, level, initial=begin)
            part = runs.field("part", level)
            if result.aggregators["wishes"] == 0:
                break
        return part

    runs = Runs(options)
    found = best_communities(runs, graph, split, resolution, iterations, rounds, seed)
    runs.run(ConnectedPieces(), graph, initial={"community": found, "piece": np.arange(found.size)})
    return scored(runs, graph, numbered(runs.field("piece", graph)), resolution)
