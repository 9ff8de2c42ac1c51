"""Louvain: communities of high modularity, by moves of vertices, then of communities as vertices of smaller graphs.

    modularity = sum { inside(c) / W - resolution * (total(c) / W)^2 : c a community }
    gain of v in c = weight(v, c without v) - resolution * strength(v) * total(c without v) / W

strength(v) is the weight of v's edges, a loop's twice; total(c) adds up that of c's members, inside(c) the weight
inside c from both ends, and W all strengths. In a round each vertex finds the community of greatest gain, of equal ones
that of the smallest number. If all moved at once, neighbours would swap for ever: a hash lets half of them move. After
`rounds` rounds, or when nobody gains, communities become the vertices of a smaller graph (`graph.contract`), until
they stay as they are. An iteration begins from the communities of the one before.

The graph is undirected and weights are not negative. Where these are whole numbers the communities are the same on
every device and for every number of ranks. A round takes two supersteps, over all edges.

V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre, "Fast unfolding of communities in large networks",
Journal of Statistical Mechanics P10008, 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = louvain(graph)
>>> result["community"].tolist(), round(result.aggregators["modularity"], 4)
([0, 0, 0, 1, 1, 1], 0.3571)
"""

from typing import NamedTuple

import numpy as np

from sigps import Aggregator, Param, State, Vertex, above, inf
from sigps.apps.driving import Runs, numbered
from sigps.apps.hashing import hashed


class Pull(NamedTuple):
    """The community of a neighbour, the weight of the edge, and the strength of all that community."""

    community: int
    weight: float
    total: float


class LouvainRound(Vertex, message=Pull, directed=False):
    """One round: the community of each vertex after it. `initial` has communities, and the total of each vertex's."""

    whole: Param[float] = above(0, default=1.0)
    resolution: Param[float] = above(0, default=1.0)
    turn: Param[int] = 0
    community: State[int] = 0
    total: State[float] = 0.0
    strength: State[float] = 0.0
    loops: State[float] = 0.0
    wishes = Aggregator.sum(int)

    def compute(self, messages):
        """Tell the neighbours the community; then find the best one."""
        if self.superstep == 0:
            self.loops = 2.0 * sum(edge.weight for edge in self.out_edges if edge.target == self.id)
            self.strength = sum(edge.weight for edge in self.out_edges) + self.loops / 2.0
            for edge in self.out_edges:
                self.send(edge, Pull(self.community, edge.weight, self.total))
        else:
            self.move(messages)
            self.vote_to_halt()

    def move(self, messages):
        """Join the community with the greatest gain, if it is this vertex's turn."""
        share = self.resolution * self.strength / self.whole
        stay = share * (self.strength - self.total) - self.loops / 2.0
        most, goal = -inf, self.community
        for community, group in messages.grouped(lambda m: m.community):
            weight = sum(m.weight for m in group)
            gain = weight - share * min(m.total for m in group)
            if community == self.community:
                stay += weight
            elif gain > most:
                most, goal = gain, community
        if most > stay + 1e-9 * self.strength:
            self.wishes += 1
            if hashed(self.id, self.turn) & 1 == 0:
                self.community = goal


def louvain(graph, resolution=1.0, iterations=2, rounds=16, seed=0, **options):
    """Return a result with `community`, numbered in the order of their smallest members, and the `modularity`.

    `options` are those of `sigps.run`. Collective; every rank has the whole result.
    """
    runs = Runs(options)
    return scored(
        runs, graph, best_communities(runs, graph, None, resolution, iterations, rounds, seed), resolution
    )


def best_communities(runs, graph, split, resolution, iterations, rounds, seed):
    """Move and contract until nothing changes; `split` says which parts of communities become vertices."""
    found = np.arange(graph.num_vertices)
    for iteration in range(iterations):
        level, inner, community = graph, np.arange(graph.num_vertices), found
        while True:
            n = level.num_vertices
            strength = strengths(runs, level)
            whole = strength.sum() or 1.0  # without edges it is 0
            for turn in range(rounds):
                drawn = hashed(turn, hashed(iteration, seed))
                program = LouvainRound(whole=whole, resolution=resolution, turn=drawn)
                total = np.bincount(community, strength, n)[community]
                result = runs.run(program, level, initial={"community": community, "total": total})
                community = runs.field("community", level)
                if result.aggregators["wishes"] == 0:
                    break
            found = community[inner]
            part = split(runs, level, community, strength) if split else community
            kept, numbers = np.unique(part, return_inverse=True)
            if kept.size == n:
                break
            inner, level = numbers[inner], level.contract(numbers)
            community = numbered(community[kept]) if split else np.arange(kept.size)
        found = numbered(found)
    return found


def scored(runs, graph, community, resolution):
    """Return the result, with the modularity: that of a graph which has communities as vertices."""
    ends = graph.contract(community)
    strength = strengths(runs, ends)
    whole = strength.sum() or 1.0
    terms = runs.field("loops", ends) / whole - resolution * (strength / whole) ** 2
    return runs.as_one(graph, {"community": community}, {"modularity": float(terms.sum())})


def strengths(runs, graph):
    """Return the strengths of all vertices."""
    runs.run(LouvainRound(), graph, max_supersteps=1)
    return runs.field("strength", graph)
