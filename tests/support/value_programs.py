"""Programs that keep values on edges and walk these alone, so that they run beside packed rows on every device."""

from __future__ import annotations

from typing import Any

from edge_programs import Returns
from gas_programs import BeliefPropagation

from sigps import EdgeState, Param, State, Vector, Vertex
from sigps.apps import MinimumSpanningForest, StreamDN


class Pairs(Vertex, directed=False):
    """Keeps vectors and narrow values on edges, and reads a column."""

    at: EdgeState[Vector[float, 2]] = 0.5
    seen: EdgeState[bool] = False
    total: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            near = edge.reverse.at
            edge.seen = near[1] > near[0]
            edge.at = near * 0.5 + edge.weight * (self.superstep + 1)
            self.total += edge.weight
        if self.superstep == 3:
            self.vote_to_halt()


class Counts(Vertex, directed=False):
    """Keeps what nobody else reads; vertices go to sleep one after another."""

    times: EdgeState[int] = 3
    total: State[int] = 0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.times += self.superstep + edge.target
            self.total += edge.times
        if self.superstep >= self.id % 4:
            self.vote_to_halt()


class Often(Vertex, message=int, directed=False):
    """Writes on its edges, and sends more than there is room for: it computes once more, from its old values."""

    times: EdgeState[int] = 0
    total: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.total += sum(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                edge.times += 1 + edge.reverse.times
                for number in range(9):
                    self.send_to(edge.target, edge.times + number)
        else:
            self.vote_to_halt()


class Parallel(Vertex, directed=False):
    """Each of parallel edges has a value of its own; what lies behind them is that of the first."""

    mine: EdgeState[int] = 5
    theirs: EdgeState[int] = -1

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.theirs = edge.reverse.mine
            if (self.id + edge.target + self.superstep) % 3 > 0:
                edge.mine = 1000 * self.superstep + int(500 * edge.weight) + self.id
        if self.superstep == 4:
            self.vote_to_halt()


class Late(Vertex, message=bool, directed=False):
    """One vertex writes while all others sleep; then they look."""

    writer: Param[int]
    rounds: Param[int] = 45
    said: EdgeState[int] = 0
    heard: State[int] = -1

    def compute(self, messages: Any) -> None:
        if self.id == self.writer and self.superstep < self.rounds:
            for edge in self.out_edges:
                edge.said = self.superstep * self.superstep + edge.target
            if self.superstep == self.rounds - 1:
                self.send_to_neighbors(True)
        else:
            self.heard = max((edge.reverse.said for edge in self.out_edges), default=-1)
            self.vote_to_halt()


VALUES: dict[str, Vertex] = {
    "returns": Returns(),
    "vectors": Pairs(),
    "own": Counts(),
    "overflow": Often(),
    "estimates": StreamDN(scans=5),
    "forest": MinimumSpanningForest(),
    "beliefs": BeliefPropagation(rounds=4),
}
