"""Programs with vectors in states and messages, each another way through engines. Ids enter only modulo something."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sigps import Aggregator, State, Vector, Vertex, VertexId

Registers = Vector[np.uint8, 48]


class LargestOfEach(Vertex, message=Registers):
    """A fold by np.maximum: of 48 registers, each the largest within three steps."""

    registers: State[Registers] = 0
    total: State[int] = 0

    def compute(self, messages):
        before = self.registers
        if self.superstep == 0:
            self.registers[self.id % 48] = 1 + self.id % 200
        for m in messages:
            self.registers = np.maximum(self.registers, m)
        self.total = sum(self.registers)
        if self.superstep < 3 and any(self.registers != before):
            self.send_to_neighbors(self.registers)
        self.vote_to_halt()


class Parcel(NamedTuple):
    """A weight, and a vector beside it."""

    weight: float
    values: Vector[float, 3]


class Mixture(Vertex, message=Parcel):
    """Sums of a vector and of a number in one message, along weighted edges; items, parts and functions of vectors."""

    values: State[Vector[float, 3]] = (1.0, 2.0, 3.0)
    counts: State[Vector[int, 5]] = 7
    where: State[int] = 0
    is_large: State[bool] = False

    def compute(self, messages):
        mine = self.values
        mine[0] = float(self.id % 11)
        self.counts[self.id % 5] += self.superstep
        self.counts[-1] = int(mine[0]) % 3
        got = sum(m.values for m in messages)
        weight = sum(m.weight for m in messages)
        self.values = mine * 0.5 + got / (weight + 1.0)
        self.where = np.argmax(self.values) + 10 * len(self.counts) + 100 * max(self.counts)
        self.is_large = all(self.values > 0.2) and 7 in self.counts
        first, second, _ = self.values
        if first > second:
            rest = self.values[1:3]
            self.values = (rest[0], rest[1], mine @ mine / (1.0 + mine @ self.values))
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, Parcel(edge.weight, self.values * edge.weight))
        self.vote_to_halt()


class Pigeonholes(Vertex, message=Parcel):
    """Messages with vectors read one by one: each is counted in a pigeonhole that it names."""

    counts: State[Vector[np.int32, 8]] = 0
    best: State[Vector[float, 3]] = -1.0

    def compute(self, messages):
        for m in messages:
            self.counts[int(m.weight) % 8] += 1
            if m.values[1] > self.best[1] or (m.values[1] == self.best[1] and m.values[2] > self.best[2]):
                self.best = m.values
        if self.superstep < 2:
            number = float(self.id % 7)
            self.send_to_neighbors(Parcel(number, np.where(self.best < 0.0, number, self.best + 1.0)))
        self.vote_to_halt()


class Census(Vertex, message=int):
    """Aggregators of vectors: a histogram, least and greatest of each class, a sum of vectors that is kept."""

    histogram = Aggregator.sum(Vector[int, 8])
    least = Aggregator.min(Vector[int, 3])
    mean = Aggregator.sum(Vector[float, 40], persistent=True)
    seen: State[int] = 0
    share: State[float] = 0.0

    def compute(self, messages):
        self.seen = sum(messages) + max(self.histogram) + min(self.least) % 7
        self.share = sum(self.mean) + self.mean[3]
        self.histogram[min(self.out_degree, 7)] += 1
        self.least[self.id % 3] += self.id % 1000
        weights = Vector[float, 40](0.25)
        weights[self.superstep % 40] = 1.0 / (1 + self.id % 5)
        self.mean += weights
        if self.superstep < 3:
            self.send_to_neighbors(1)
        self.vote_to_halt()


class Spot(NamedTuple):
    """A point and a level."""

    centre: Vector[float, 2]
    level: int


class Cluster(NamedTuple):
    """A NamedTuple in a NamedTuple."""

    size: int
    spot: Spot
    is_closed: bool


class Gathers(Vertex, message=int):
    """A state that is a NamedTuple, read and assigned whole, by its parts, and by a method."""

    cluster: State[Cluster] = Cluster(1, Spot((0.5, 1.5), -2), False)
    empty: State[Spot]
    seen: State[int] = 0

    def weight(self):
        return self.cluster.size * 3 + self.cluster.spot.level

    def compute(self, messages):
        got = sum(messages)
        mine = self.cluster
        centre = mine.spot.centre
        centre[0] += got
        self.cluster = Cluster(mine.size + got, Spot(centre, self.superstep), got % 2 == 1)
        if self.cluster.is_closed:
            self.cluster = self.cluster._replace(size=self.cluster.size + 100)
        self.empty = self.cluster.spot
        self.seen = self.weight() + self.empty.level
        if self.superstep < 3:
            self.send_to_neighbors(1 + self.cluster.size % 5)
        self.vote_to_halt()


class Throws(Vertex, message=Vector[np.int32, 4]):
    """Vectors by name: those with the least id of their neighbours are sent to it."""

    caught: State[Vector[int, 4]] = 0

    def compute(self, messages):
        for m in messages:
            self.caught += m
        if self.superstep < 2:
            least = min((edge.target for edge in self.out_edges), default=self.id)
            self.send_to(least, (1, self.id % 13, self.superstep, -1))
        self.vote_to_halt()


class Stamp(NamedTuple):
    """Of a letter: who stamped it, and where."""

    owner: VertexId
    spot: Spot


class Letter(NamedTuple):
    """A message with a NamedTuple in it, in which there is another."""

    weight: float
    stamp: Stamp
    copies: int = 2


class Letters(Vertex, message=Letter):
    """Sums, extrema and the lightest of messages that have NamedTuples in them; a part of one becomes a state."""

    stamp: State[Stamp] = Stamp(-1, Spot((0.5, 1.5), -2))
    lightest: State[Spot]
    levels: State[float] = 0.0
    centres: State[Vector[float, 2]] = 0.0
    most: State[int] = -1

    def compute(self, messages):
        self.levels = sum(m.stamp.spot.level * m.weight for m in messages)
        self.centres = sum(m.stamp.spot.centre for m in messages)
        self.most = max((m.stamp.owner % 7 for m in messages), default=-1)
        least = 99.0
        for m in messages:
            if m.weight < least:
                least = m.weight
                self.lightest = Spot(self.centres, m.stamp.spot.level + m.copies)
        self.stamp = Stamp(self.id % 5, Spot((self.id % 11, self.superstep), self.superstep - 1))
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, Letter(edge.weight, self.stamp))
        self.vote_to_halt()


class Relays(Vertex, message=Letter):
    """The same messages one by one, sent by name; and vectors of ids."""

    path: State[Vector[VertexId, 4]] = -1
    total: State[float] = 0.0
    level: State[int] = 0

    def compute(self, messages):
        for weight, stamp, copies in messages:
            self.total += weight * copies + stamp.spot.centre[1]
            self.level = max(self.level, stamp.spot.level, stamp.owner % 13)
            if self.superstep < 4 and stamp.owner >= 0:
                self.path[self.superstep] = max(self.path[self.superstep], stamp.owner)
        if self.superstep < 3:
            least = min((edge.target for edge in self.out_edges), default=self.id)
            letter = Letter(
                self.id % 3, Stamp(self.id, Spot((1.0, self.superstep), self.superstep)), copies=3
            )
            self.send_to(least, letter)
        self.vote_to_halt()
