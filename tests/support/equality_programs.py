"""Programs that must give the same result in every way of running them; `PROGRAMS` names each.

Each takes a way through compiler and engines that the apps do not. Every result is unique (no choice among equals
depends on the order of messages). Ids enter sums only modulo something, so that huge ids overflow nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from battery import BATTERY
from keyed_programs import KEYED
from master_programs import Floods
from vector_programs import Census, Gathers, LargestOfEach, Letters, Mixture, Pigeonholes, Relays, Throws

from sigps import Aggregator, Param, State, Vertex, VertexId, inf
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank


class Coreness(Vertex, message=int):
    """Message lists: the h-index of the neighbours' values, until nothing falls."""

    core: State[int] = 0
    rounds: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.core = self.out_degree
            self.send_to_neighbors(self.core)
        else:
            best = 0
            for h in range(1, self.core + 1):
                if sum(1 for m in messages if m >= h) >= h:
                    best = h
            if self.superstep == 1 or best < self.core:
                self.rounds += 1
            if best < self.core:
                self.core = best
            if self.superstep < 6:
                self.send_to_neighbors(self.core)
        self.vote_to_halt()


class Question(NamedTuple):
    """Who asks (answer=False), or what the answer is (answer=True)."""

    vertex: VertexId
    answer: bool


class Jump(Vertex, message=Question):
    """send_to: each vertex follows its smallest neighbour, then that one's, by asking and answering."""

    pointer: State[VertexId] = -1
    asked: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.pointer = self.id
            for edge in self.out_edges:
                if edge.target < self.pointer:
                    self.pointer = edge.target
        for m in messages:
            if m.answer:
                self.pointer = m.vertex
            else:
                self.asked += 1
                self.send_to(m.vertex, Question(self.pointer, True))
        if self.superstep % 2 == 0 and self.superstep < 6:
            self.send_to(self.pointer, Question(self.id, False))
        if self.superstep >= 6:
            self.vote_to_halt()


def gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


def joined_bits(a: int, b: int) -> int:
    return a | b


class Totals(Vertex, message=float):
    """Every kind of aggregator, regular and persistent; vertices drop out one by one."""

    seen: State[int] = 0
    lowest: State[float] = 0.0
    count = Aggregator.sum(int)
    weight = Aggregator.sum(float)
    least = Aggregator.min(float)
    most = Aggregator.max(int)
    some = Aggregator.any()
    every = Aggregator.all()
    divisor = Aggregator.custom(gcd, identity=0, type=int)
    ever = Aggregator.sum(int, persistent=True)
    bits = Aggregator.custom(joined_bits, identity=0, type=int, persistent=True)
    ever_least = Aggregator.min(int, persistent=True)

    def compute(self, messages):
        if self.superstep > 0:
            self.seen += self.count
            self.lowest = self.least
            if self.some and not self.every:
                self.seen += 1000
            self.seen += self.divisor * 3 + self.ever + self.bits * 7
        self.count += 1
        self.weight += 0.1 * (1 + self.id % 7)
        self.least += 1.0 / (1 + self.id % 5 + self.superstep)
        self.most += self.out_degree + self.superstep
        self.some += self.id % 3 == 0
        self.every += self.in_degree > 0
        self.divisor += 6 * (1 + self.id % 4)
        self.ever += self.out_degree
        self.bits += 1 << (self.id % 10)
        self.ever_least += self.superstep - self.id % 10
        if self.superstep >= 1 + self.id % 3:
            self.vote_to_halt()


class Extremes(Vertex, message=int):
    """Two folds of one stream, and a sum and a filtered count beside them."""

    low: State[int] = 0
    high: State[int] = 0
    total: State[int] = 0
    odd: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.low = self.high = self.id % 1009
        else:
            self.low = min(self.low, min(messages, default=self.low))
            self.high = max(self.high, max(messages, default=self.high))
            self.total += sum(messages)
            self.odd += sum(1 for m in messages if m % 2 == 1)
        if self.superstep < 4:
            self.send_to_neighbors(self.low + self.high)
        else:
            self.vote_to_halt()


class TwoLetters(Vertex, message=float):
    """A mailbox whose messages are combined: two sends along one edge, and one to the vertex itself."""

    got: State[float] = 0.0
    best: State[float] = inf

    def compute(self, messages):
        self.got += sum(messages)
        self.best = min(messages, default=self.best)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, 1.0 / (3 + self.id % 11))
                self.send(edge, edge.weight / 7)
            self.send_to(self.id, 0.1 * self.superstep)
        self.vote_to_halt()


class Spread(Vertex, message=float):
    """Sums of floats that round: shares along weighted edges, and an aggregated sum that feeds back."""

    value: State[float] = 0.0
    mean = Aggregator.sum(float)

    def compute(self, messages):
        if self.superstep == 0:
            self.value = 1.0 / (1 + self.id % 13)
        else:
            self.value = 0.3 * self.value + sum(messages) + self.mean / self.num_vertices
        if self.superstep < 5:
            self.mean += self.value * 0.7
            for edge in self.out_edges:
                self.send(edge, self.value * edge.weight / (3 + self.in_degree))
        else:
            self.vote_to_halt()


def product(a: int, b: int) -> int:
    return a * b % 1000003


class Product(Vertex, message=int, combiner=product):
    """An explicit combiner written by the user."""

    value: State[int] = 1

    def compute(self, messages):
        for m in messages:
            self.value = (self.value * m + len(messages)) % 1000003
        if self.superstep < 4:
            self.send_to_neighbors(2 + self.value % 89 + self.id % 5)
        self.vote_to_halt()


class Climb(Vertex, message=VertexId):
    """A filter on edges, a bool, small types, and vertices that retire while messages for them are in flight."""

    highest: State[VertexId] = -1
    heard: State[np.int16] = 0
    is_top: State[bool] = False
    half: State[np.float32] = 0.5

    def compute(self, messages):
        top = max(messages, default=self.id)
        self.is_top = self.superstep == 0
        if self.superstep == 0 or top > self.highest:
            self.highest = top
            self.half = self.half / 2
            for edge in self.out_edges:
                if edge.target <= self.id:
                    self.send(edge, self.highest)
        if messages:
            self.heard += 1
        if self.heard == 3:
            self.retire()
        self.vote_to_halt()


class Offer(NamedTuple):
    """A price and who asks it; compared as Python compares tuples."""

    price: float
    seller: VertexId
    round: np.int32


class Market(Vertex, message=Offer):
    """Two places that send different things; whole NamedTuples compared both ways."""

    least: State[float] = inf
    seller: State[VertexId] = -1
    dearest: State[VertexId] = -1
    when: State[int] = -1

    def compute(self, messages):
        low = min(messages, default=Offer(inf, -1, 0))
        high = max(messages, default=Offer(-inf, -1, 0))
        if low.price < self.least:
            self.least = low.price
            self.seller = low.seller
            self.when = low.round
        if high.seller >= 0:
            self.dearest = high.seller
        if self.superstep < 3:
            if self.id % 2 == 0:
                for edge in self.out_edges:
                    self.send(edge, Offer(edge.weight * (4 - self.superstep), self.id, self.superstep))
            else:
                self.send_to_neighbors(Offer(2.5, self.id, self.superstep + 10))
        else:
            self.vote_to_halt()


class Reach(Vertex, message=bool):
    """Equal messages: the first one is enough. Sleepers wake by messages only."""

    start: Param[VertexId]
    when: State[int] = -1

    def compute(self, messages):
        if (self.superstep == 0 and self.id == self.start) or (self.when < 0 and any(messages)):
            self.when = self.superstep
            self.send_to_neighbors(True)
        self.vote_to_halt()


class Neighbourhood(Vertex, message=float):
    """compute() walks its edges itself, calls methods, a function of the module and `math`."""

    spread: State[float] = 0.0
    largest: State[VertexId] = -1
    angle: State[float] = 0.0
    LIMIT = 3

    def compute(self, messages):
        total = 0.0
        for edge in self.out_edges:
            total += edge.weight
            if self.largest == -1 or edge.target > self.largest:
                self.largest = edge.target
        self.spread = self.shrunk(total) + gcd(12, 18)
        self.angle += math.sqrt(sum(m * m for m in messages))
        if self.superstep < self.LIMIT:
            self.send_to_neighbors(math.cos(self.spread) + self.superstep)
        else:
            self.vote_to_halt()

    def shrunk(self, x):
        return x / (1.0 + self.out_degree)


class Flows(Vertex, message=float, both_ways=True):
    """Sends the weight of each edge to its source in superstep 0, and to its target in superstep 1."""

    out: State[float] = 0.0
    into: State[float] = 0.0
    stored: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1:
            self.out = sum(messages)
            self.stored = self.out_degree
        elif self.superstep == 2:
            self.into = sum(messages)
        if self.superstep < 2:
            for edge in self.out_edges:
                if edge.leads_in if self.superstep == 0 else edge.leads_out:
                    self.send(edge, edge.weight)
        else:
            self.vote_to_halt()


PROGRAMS: dict[str, Vertex | Callable[[int | str], Vertex]] = {
    "pagerank": PageRank(iterations=8),
    "pagerank_tolerance": PageRank(iterations=60, tolerance=1e-4, dangling="leak"),
    "wcc": WCC(),
    "out_degree": OutDegree(),
    "coreness": Coreness(),
    "jump": Jump(),
    "totals": Totals(),
    "extremes": Extremes(),
    "two_letters": TwoLetters(),
    "spread": Spread(),
    "product": Product(),
    "climb": Climb(),
    "market": Market(),
    "neighbourhood": Neighbourhood(),
    "floods": Floods(),
    "largest_of_each": LargestOfEach(),
    "mixture": Mixture(),
    "pigeonholes": Pigeonholes(),
    "throws": Throws(),
    "census": Census(),
    "gathers": Gathers(),
    "letters": Letters(),
    "relays": Relays(),
    **{name: KEYED[name] for name in ("votes", "pulls", "answers")},
    "bfs": lambda source: BFS(source=source),
    "sssp": lambda source: SSSP(source=source),
    "reach": lambda source: Reach(start=source),
}


def program_for(program: str, graph: str) -> Vertex:
    """Return a program; one that begins somewhere begins at the first id that the sample names."""
    made = PROGRAMS[program]
    sample = BATTERY[graph]
    return made((sample.sources or sample.vertices)[0]) if callable(made) else made
