"""Programs of fixed rounds that read all that such ones may."""

from __future__ import annotations

from sigps import Aggregator, Param, State, Vertex, VertexId, neighbor_links, num_neighbors


class Mixture(Vertex, message=float):
    """Reads all that a vertex in rounds may: row, degrees, a draw, a filter of edges, a superstep without messages."""

    rounds: Param[int] = 4
    total: State[float] = 0.0
    heaviest: State[int] = -1
    number: State[VertexId] = -1
    heard = Aggregator.max(float)

    def compute(self, messages):
        if self.superstep == 0:
            self.heaviest = max((edge.weight for edge in self.out_edges), default=-1)
            self.number = self.id
        self.total = 0.5 * self.total + sum(messages) + self.random() / (1 + self.in_degree)
        self.heard += self.total
        if self.superstep >= self.rounds:
            self.vote_to_halt()
        elif self.superstep != 1:
            for edge in self.out_edges:
                if edge.weight != 2:
                    self.send(edge, self.total * edge.weight + self.heaviest + self.out_degree)


class Denser(Vertex, message=int):
    """How many links more its in-neighbours have at most than a vertex has neighbours."""

    links: State[int] = neighbor_links
    near: State[int] = num_neighbors
    denser: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.links)
        else:
            self.denser = max(messages, default=0) - self.near
            self.vote_to_halt()


class Halves(Vertex, message=int):
    """Divides by what only some graphs make 0."""

    value: State[int] = 0

    def compute(self, messages):
        self.value = 12 // (3 - sum(messages))
        if self.superstep < 1:
            self.send_to_neighbors(1)
        else:
            self.vote_to_halt()
