"""Louvain's local moving phase: vertices join their neighbours' communities while that raises the modularity.

    modularity = sum { inside(c) / W - (total(c) / W)^2 : c a community },   W = sum { strength(v) : v }
    gain of v in c = weight(v, c without v) - strength(v) * total(c without v) / W

strength(v) is the weight of v's edges, total(c) that of c's members, and inside(c) the weight of edges
inside, from both ends. If all vertices moved at once, modularity could fall, and neighbours swap communities
for ever. Here a move must be the best one, by gain and then by id, of all that its old and its new community
are in: then moves of one round share no community, their gains add up, and the greatest of all is among them.
So modularity rises in every round until no vertex gains.

Rounds have five supersteps: vertices report to their community (the vertex of that id), hear its total, send
it to their neighbours, propose a move, hear whether it is the best. The sum of `share` is the modularity. The
graph is undirected, and weights are positive.

V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre, "Fast unfolding of communities in large networks",
Journal of Statistical Mechanics P10008, 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 4, 4, 5], [2, 3, 3, 4, 5, 6, 6], directed=False)
>>> result = sigps.run(LouvainMoves(), graph)
>>> len(set(result["community"][:3])), len(set(result["community"][3:])), result["share"].sum().round(4).item()
(1, 1, 0.3571)
"""

from typing import NamedTuple

from sigps import Aggregator, State, Vertex, VertexId


class Note(NamedTuple):
    """A community or a vertex; a weight or a gain; the total of the community."""

    who: VertexId
    weight: float = 0.0
    total: float = 0.0


class LouvainMoves(Vertex, message=Note, directed=False):
    """The community of each vertex, and its part of the modularity."""

    community: State[VertexId] = -1
    goal: State[VertexId] = -1
    strength: State[float] = 0.0
    loops: State[float] = 0.0
    total: State[float] = 0.0
    share: State[float] = 0.0
    strengths = Aggregator.sum(float, persistent=True)
    proposals = Aggregator.sum(int)

    def compute(self, messages):
        """Do what is next in the round."""
        step = self.superstep % 5
        if step == 0:
            self.move_and_report(messages)
        elif step == 1:
            total = sum(m.weight for m in messages)
            for m in messages:
                self.send_to(m.who, Note(self.id, 0.0, total))
        elif step == 2:
            self.total = sum(m.total for m in messages)
            for edge in self.out_edges:
                if edge.target != self.id:
                    self.send(edge, Note(self.community, edge.weight, self.total))
        elif step == 3:
            self.propose(messages)
        elif self.proposals == 0:
            self.vote_to_halt()
        elif messages:
            best = min(messages, key=lambda m: (-m.weight, m.who))
            self.send_to(best.who, Note(self.id))

    def move_and_report(self, messages):
        """Move if both communities found the move best; tell the community one's strength."""
        if self.superstep == 0:
            self.community = self.id
            self.loops = 2.0 * sum(edge.weight for edge in self.out_edges if edge.target == self.id)
            self.strength = sum(edge.weight for edge in self.out_edges) + self.loops / 2.0
            self.strengths += self.strength
        if len(messages) == 2:
            self.community = self.goal
        self.send_to(self.community, Note(self.id, self.strength))

    def propose(self, messages):
        """Find the community with the greatest gain, and propose to move there."""
        whole = self.strengths or 1.0  # without edges it is 0
        stay = -self.strength * (self.total - self.strength) / whole
        inside = self.loops
        self.goal = self.community
        for community, group in messages.grouped(lambda m: m.who):
            weight = sum(m.weight for m in group)
            if community == self.community:
                stay += weight
                inside += weight
        most = stay
        for community, group in messages.grouped(lambda m: m.who):
            weight = sum(m.weight for m in group)
            gain = weight - self.strength * min(m.total for m in group) / whole
            if community != self.community and gain > most + 1e-9 * self.strength:
                most = gain
                self.goal = community
        self.share = (inside - self.strength * self.total / whole) / whole
        if self.goal != self.community:
            self.proposals += 1
            self.send_to(self.community, Note(self.id, most - stay))
            self.send_to(self.goal, Note(self.id, most - stay))
