"""Semi-clusters: small groups that may overlap, with much weight between members and little to others.

    score(c) = (inside(c) - PENALTY * boundary(c)) / (n (n - 1) / 2)   of n > 1 members;   1 of one

inside(c) is the weight of the edges between members, boundary(c) that of those to others. A vertex passes on to its
neighbours the best KEEP of the groups that came, as they came and with itself as one more where they have room, and
remembers the best that it is in; `iterations` + 1 supersteps. Of equal scores smaller members go first; unused places
hold NOBODY, which no vertex may have as id. Weights are best whole: where sums round, one group may come as two.

The graph is taken as undirected; loops do not count, parallel edges do. G. Malewicz et al., "Pregel", SIGMOD 2010.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> sigps.run(SemiClustering(), graph)["best.members"][0, 4:8].tolist()
[1, 2, 3, -1]
"""

from typing import NamedTuple

from sigps import Param, State, Vector, Vertex, at_least, inf

KEEP, SIZE, PENALTY, NOBODY = 6, 4, 0.125, -1
Numbers, Members = Vector[float, KEEP], Vector[int, KEEP * SIZE]


class Groups(NamedTuple):
    """KEEP groups, best first: scores, weights of edges inside and to others; SIZE members each, ascending."""

    score: Numbers
    inside: Numbers
    boundary: Numbers
    members: Members


def with_group(best, score, inside, boundary, group):
    """Return the best of some groups and one more."""
    scores, insides, boundaries, members = best.score, best.inside, best.boundary, best.members
    for k in range(KEEP):
        order = (scores[k] < score) - (scores[k] > score)
        for i in range(SIZE):
            if order == 0:
                order = (members[k * SIZE + i] > group[i]) - (members[k * SIZE + i] < group[i])
        if order == 0:
            break  # it is there already, or both are nobody
        if order > 0:
            scores[k], score = score, scores[k]
            insides[k], inside = inside, insides[k]
            boundaries[k], boundary = boundary, boundaries[k]
            for i in range(SIZE):
                members[k * SIZE + i], group[i] = group[i], members[k * SIZE + i]
    return Groups(scores, insides, boundaries, members)


class SemiClustering(Vertex, message=Groups, directed=False):
    """The best groups that each vertex is in."""

    iterations: Param[int] = at_least(0, default=5)
    best: State[Groups] = Groups(-inf, 0.0, 0.0, NOBODY)

    def compute(self, messages):
        """Extend the groups that came, and pass the best on."""
        total = sum(edge.weight for edge in self.out_edges if edge.target != self.id)
        passed = Groups(Numbers(-inf), Numbers(0.0), Numbers(0.0), Members(NOBODY))
        if self.superstep == 0:
            alone = Vector[int, SIZE](NOBODY)
            alone[0] = self.id
            passed = with_group(passed, 1.0, 0.0, total, alone)
            self.best = passed
        for m in messages:
            for k in range(KEEP):
                group, is_in, n = Vector[int, SIZE](NOBODY), False, 0
                for i in range(SIZE):
                    group[i] = m.members[k * SIZE + i]
                    is_in = is_in or group[i] == self.id
                    n += group[i] != NOBODY
                inside, boundary, score = m.inside[k], m.boundary[k], m.score[k]
                if n > 0:
                    passed = with_group(passed, score, inside, boundary, group)
                if 0 < n < SIZE and not is_in:
                    own = sum(
                        edge.weight
                        for edge in self.out_edges
                        if edge.target != self.id and edge.target in group
                    )
                    inside, boundary = inside + own, boundary + total - 2.0 * own
                    score = (inside - PENALTY * boundary) / (n * (n + 1) / 2)
                    while n > 0 and group[n - 1] > self.id:
                        group[n] = group[n - 1]
                        n -= 1
                    group[n] = self.id
                    passed = with_group(passed, score, inside, boundary, group)
                    is_in = True
                if is_in:
                    self.best = with_group(self.best, score, inside, boundary, group)
        if self.superstep < self.iterations:
            for edge in self.out_edges:
                if edge.target != self.id:
                    self.send(edge, passed)
        self.vote_to_halt()
