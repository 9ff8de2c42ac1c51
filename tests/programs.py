"""Vertex programs written only for tests: every way to send, to read messages, to call and to name things.

`CASES` names each with what to run it on. Their graph has a parallel edge, a self-loop, an isolated vertex:

    0 -> 1 (1.0), 0 -> 1 (2.5), 0 -> 2 (4.0), 1 -> 3 (2.0), 2 -> 3 (0.5), 3 -> 0 (3.0), 3 -> 3 (1.5), and 9
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import other_programs
from other_programs import Base, merge

from sigps import Aggregator, Graph, Param, State, Vertex, VertexId, inf

SCALE = 2.5
WEIGHTS = (1, 10, 100)
state = 3


def kite(weight: Any = np.float64, ids: Any = (0, 1, 2, 3, 9)) -> Graph:
    """Return the common graph; `capacity` is a second edge column."""
    name = dict(zip((0, 1, 2, 3, 9), ids, strict=True))
    return Graph.from_edges(
        [name[v] for v in (0, 0, 1, 2, 3, 3, 0)],
        [name[v] for v in (1, 2, 3, 3, 0, 3, 1)],
        weights=np.array([1.0, 4.0, 2.0, 0.5, 3.0, 1.5, 2.5], dtype=weight),
        vertices=[name[9]],
        columns={"capacity": np.array([5, 7, 1, 2, 9, 4, 6], dtype=np.int32)},
    )


# How messages are read.


class Narrow(Vertex, message=np.int8):
    """100 + 100 does not fit the message's type, but its sum is a number of its own."""

    total: State[int] = -1
    halves: State[np.float32] = 0.25
    small: State[np.int16] = 7
    odd: State[bool] = False

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(100)
        else:
            self.total = sum(messages)
            self.halves = self.total / 2
            self.small = self.small - 8
            self.odd = self.total % 200 != 0
        self.vote_to_halt()


class Truths(Vertex, message=bool):
    """Booleans as messages and states; a sum of them counts."""

    any_true: State[bool] = False
    all_true: State[bool] = False
    count: State[int] = 0
    number: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, edge.weight > 1.0)
        else:
            self.any_true = any(messages)
            self.all_true = all(messages)
            self.count = sum(messages)
            self.number = len(messages)
        self.vote_to_halt()


class Offer(NamedTuple):
    """A price, how many, and whether it is final."""

    price: float
    amount: int
    final: bool
    seller: VertexId


class Market(Vertex, message=Offer):
    """Folds of parts of a NamedTuple, with filters."""

    cheapest: State[float] = inf
    dearest_final: State[float] = -1.0
    amount: State[int] = 0
    cost: State[float] = 0.0
    sellers: State[int] = 0
    is_final: State[bool] = False
    seller: State[VertexId] = -1

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(
                    edge, Offer(edge.weight, amount=edge.capacity, seller=self.id, final=edge.weight > 2.0)
                )
        else:
            self.cheapest = min((m.price for m in messages), default=inf)
            self.dearest_final = max((m.price for m in messages if m.final), default=-5.0)
            self.amount = sum(m.amount for m in messages if m.price > 1.0 if m.amount > 1)
            self.cost = sum(m.price * m.amount for m in messages)
            self.sellers = len(messages)
            self.is_final = all(m.final for m in messages) and any(m.amount > 4 for m in messages)
            if messages:
                self.seller = min(messages).seller
        self.vote_to_halt()


class TwoFolds(Vertex, message=int):
    """The smallest and the largest id within `rounds` steps: two folds of one stream."""

    rounds: Param[int] = 3
    low: State[int] = 0
    high: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.low = self.high = self.id
        low = min(messages, default=self.low)
        high = max(messages, default=self.high)
        self.low = min(self.low, low)
        self.high = max(self.high, high)
        if self.superstep < self.rounds:
            self.send_to_neighbors(self.low if self.superstep % 2 else self.high)
        self.vote_to_halt()


class FoldLoop(Vertex, message=float):
    """Loops that fold: sums, extremes written out, any, all, and a filter."""

    factor: Param[float] = 2.0
    total: State[float] = 0.0
    low: State[float] = 0.0
    high: State[float] = 0.0
    flags: State[int] = 0
    big = Aggregator.sum(float)

    def compute(self, messages):
        total, low, high = 1.0, inf, -inf
        found, every = False, True
        count = 0
        for m in messages:
            total += m * self.factor
            if m < low:
                low = m
            if high <= m:
                high = m
            found = found or m > 3.0
            every = every and m > 0.75
            if m > 1.0:
                count += 1
                self.big += m
        self.total = total
        self.low, self.high = low, high
        self.flags = count + 10 * found + 100 * every
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, edge.weight)
        self.vote_to_halt()


class LastOne(Vertex, message=int):
    """The loop variable lives on after the loop, so the loop is no fold."""

    last: State[int] = -1
    total: State[int] = 0

    def compute(self, messages):
        m = -7
        for m in messages:
            self.total += m
        self.last = m
        if self.superstep == 0:
            self.send_to_neighbors(self.id + 1)
        self.vote_to_halt()


class Listed(Vertex, message=float):
    """What is reduced depends on the vertex: lists."""

    value: State[float] = 2.0
    count: State[int] = 0
    total: State[float] = 0.0
    second: State[float] = 0.0
    code: State[int] = 0

    def compute(self, messages):
        if self.superstep > 0:
            shift = self.value - 1.0
            self.count = sum(1 for m in messages if m > self.value)
            self.total = sum((self.above(m) for m in messages if m > shift), 0.5)
            best, second = inf, inf
            for m in messages:
                if m < best:
                    best, second = m, best
                elif m < second:
                    second = m
            self.second = second
            inside = any(m == self.value for m in messages)
            outside = all(m != self.value for m in messages)
            wide = max((m - shift for m in messages), default=-1.0) > 0.5
            near = min((abs(m - shift) for m in messages if m > 0.0), default=9.0) < 0.6
            few = len(messages) < 2
            self.code = 1 * inside + 2 * outside + 4 * wide + 8 * near + 16 * few + 32 * (not messages)
        if self.superstep < 2:
            for edge in self.out_edges:
                self.send(edge, edge.weight + self.superstep)
        self.vote_to_halt()

    def above(self, m):
        return m - self.value


class ListedOffers(Vertex, message=Offer):
    """Lists of NamedTuples, whole, in parts and taken apart."""

    spent: State[float] = 0.0
    bought: State[int] = 0
    last: State[int] = 0

    def compute(self, messages):
        money = 4.0 + self.superstep
        if self.superstep > 0:
            for price, amount, final, seller in messages:
                if not final or price > money:
                    continue
                self.spent += price * amount + 0 * seller
                self.bought += amount
            self.last = sum(a for p, a, f, s in messages if p < money)
            best = max(messages, default=Offer(money, 0, False, -1))
            self.last += 1000 * best.amount
        else:
            for edge in self.out_edges:
                self.send(edge, Offer(edge.weight, edge.capacity, edge.target > 0, self.id))
        self.vote_to_halt()


class Presence(Vertex, message=float):
    """Only whether there are messages matters."""

    steps: State[int] = 0
    silent: State[int] = 0

    def compute(self, messages):
        if not messages:
            self.silent += 1
        self.steps = self.steps + 1 if messages and self.superstep < 3 else self.steps
        if self.superstep < 2 and (messages or self.id == 0):
            self.send_to_neighbors(0.0)
        self.vote_to_halt()


class Tail(Vertex, message=int):
    """Names of the framework's own as the user's locals, fields, globals and helpers."""

    has: State[int] = 5
    inbox: State[int] = 0
    value: Param[int] = 4

    def compute(self, messages):
        has = state
        env, params, vertex, inbox = 1, 2, 3.5, 4
        edges = mail = 6
        record = target = columns = message = aggregates = 7
        low = min(messages, default=has)
        self.has = low + env + params + edges + mail
        self.inbox = merge(inbox, int(vertex)) + record + target + columns + message + aggregates
        if self.superstep < 2:
            self.send_to_neighbors(self.id * self.value + merge(self.has, 1))
        self.vote_to_halt()


# Combiners that the user names.


def longer(a, b):
    return a if a > b else b


def joined(a, b):
    return Offer(a.price + b.price, max(a.amount, b.amount), a.final or b.final, min(a.seller, b.seller))


class Combiner(Vertex, message=float, combiner=max):
    """The combiner leaves one message, however compute() reads it."""

    best: State[float] = 0.0
    count: State[int] = 0
    above: State[bool] = False
    total: State[float] = 0.0
    flags: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.best = m
            self.count += 1
        self.count += 10 * len(messages)
        self.above = any(m > 2.0 for m in messages)
        self.total = sum((m for m in messages if m > 1.0), 0.25)
        self.flags = 1 * all(m > 2.0 for m in messages) + 2 * (min(messages, default=9.0) > 3.0)
        if self.superstep < 2:
            for edge in self.out_edges:
                self.send(edge, edge.weight * (1 + self.superstep))
        self.vote_to_halt()


class UserCombiner(Vertex, message=np.float32, combiner=longer):
    best: State[np.float32] = -1.0

    def compute(self, messages):
        self.best = max(messages, default=-2.0)
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, edge.weight)
        self.vote_to_halt()


class SumCombiner(Vertex, message=int, combiner=sum):
    total: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.total += m
        if self.superstep < 3:
            self.send_to_neighbors(self.total + self.id)
        self.vote_to_halt()


class JoinedOffers(Vertex, message=Offer, combiner=joined):
    """A combiner of NamedTuples, with messages to any vertex besides."""

    price: State[float] = 0.0
    amount: State[int] = 0
    seller: State[VertexId] = -1

    def compute(self, messages):
        for offer in messages:
            self.price, self.amount, self.seller = offer.price, offer.amount, offer.seller
        if self.superstep == 0:
            self.send_to_neighbors(Offer(1.5, self.id, False, self.id))
            self.send_to(9, Offer(0.5, 2 * self.id, True, self.id))
        self.vote_to_halt()


class LowestOffer(Vertex, message=Offer, combiner=min):
    price: State[float] = inf
    seller: State[VertexId] = -1

    def compute(self, messages):
        for price, _, _, seller in messages:
            self.price, self.seller = price, seller
        if self.superstep == 0:
            self.send_to_neighbors(Offer(float(self.id % 2), 0, False, self.id))
        self.vote_to_halt()


# How messages are sent.


class Filtered(Vertex, message=float):
    """A conditional send with locals and `continue` in the loop."""

    least: Param[float] = 1.0
    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        factor = self.value * 0.5
        if self.superstep < 3:
            for edge in self.out_edges:
                doubled = edge.weight * 2
                if doubled <= self.least * 3 and self.value > 0.0:
                    continue
                part = factor / doubled
                if part > 0.01:
                    part = part + self.superstep
                    self.send(edge, part)
        self.vote_to_halt()


class Alternatives(Vertex, message=float):
    """Exclusive branches: two send_to_neighbors of plain values share a record; two loops are told apart."""

    plain: Param[bool] = True
    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep >= 4:
            self.vote_to_halt()
            return
        if self.plain:
            if self.id % 2:
                self.send_to_neighbors(self.value)
            else:
                self.send_to_neighbors(-self.value / 2)
        elif self.superstep % 2 == self.id % 2:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.value)
        elif self.id < 3:
            for edge in self.out_edges:
                if edge.capacity > 4:
                    self.send(edge, edge.capacity - self.value)
        else:
            self.send_to_neighbors(1.0)


class OwnId(Vertex, message=float):
    """The sender's id in messages, alone and as an argument of methods that read the vertex."""

    value: State[float] = 2.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep == 0:
            self.send_to_neighbors(self.mixed(self.id) + self.id)
        elif self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.mixed(self.id + 1) * edge.weight - self.id / self.value)
        self.vote_to_halt()

    def mixed(self, number):
        return number * self.value


class TwoSends(Vertex, message=int):
    """Two messages on one edge, and a read of the superstep by what is reduced: the reader's."""

    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(m * self.superstep for m in messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.id)
                if edge.weight > 1.0:
                    self.send(edge, edge.target + 10)
            self.send_to_neighbors(1)
        self.vote_to_halt()


class Postman(Vertex, message=VertexId):
    """Messages to any vertex: everyone writes to 9, who answers each sender."""

    heard: State[int] = 0
    answer: State[VertexId] = -1

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to(9, self.id)
        elif self.id == 9:
            for sender in messages:
                self.heard += 1
                if sender != self.id:
                    self.send_to(sender, self.id)
        else:
            self.answer = max(messages, default=-2)
        self.vote_to_halt()


class Forward(Vertex, message=int):
    """send_to inside a loop over the edges, from lists, with a break."""

    total: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.total += m
            if m > 40 and self.superstep < 4:
                self.send_to(m % 3, self.total)
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.target == 9:
                    break
                self.send_to(edge.target, edge.capacity * 10)
        self.vote_to_halt()


class Carried(Vertex, message=int):
    """A local that an iteration hands to the next: this loop is no edge function."""

    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.weight < 2.0:
                    mark = edge.capacity
                elif edge.target == 2:
                    mark += 1
                if edge.weight > 3.0:
                    self.send(edge, mark)
        self.vote_to_halt()


class Walk(Vertex, message=int):
    """Loops and reductions over the edges that send nothing; a record besides."""

    weight: State[float] = 0.0
    loops: State[int] = 0
    largest: State[int] = -1
    nearest: State[VertexId] = -1
    heavy: State[int] = 0
    code: State[int] = 0
    from_here: State[int] = 0

    def compute(self, messages):
        self.from_here += sum(messages)
        if self.superstep == 0:
            best = inf
            for edge in self.out_edges:
                if edge.target == self.id:
                    self.loops += 1
                    continue
                if edge.weight < best:
                    best = edge.weight
                    self.nearest = edge.target
            self.weight = sum(edge.weight for edge in self.out_edges)
            self.largest = max((e.capacity for e in self.out_edges if e.target != self.id), default=-3)
            self.heavy = sum(1 for edge in self.out_edges if edge.weight > best)
            light = any(edge.weight < 1.0 for edge in self.out_edges)
            wide = all(edge.capacity * self.scale() > 4 for edge in self.out_edges)
            self.code = 1 * light + 2 * wide + 4 * (min((e.target for e in self.out_edges), default=77) > 2)
            self.send_to_neighbors(self.id + 1)
        self.vote_to_halt()

    def scale(self):
        return 1 + self.loops


class WideValues(Vertex, message=np.uint64):
    """Values that no float64 holds travel in records and states."""

    key: State[np.uint64] = 2**63 + 1
    seen: State[np.uint64] = 0
    low: State[int] = 2**62 + 1
    lowest: State[int] = 0

    def compute(self, messages):
        self.seen = max(messages, default=0)
        self.lowest = min(self.low, 2**62 + 3)
        if self.superstep == 0:
            for edge in self.out_edges:
                if edge.weight > 0.75:
                    self.send(edge, self.key)
        self.vote_to_halt()


# What compute() may call and name.


def halved(x):
    return doubled(x) / 4 + other_programs.OFFSET


def doubled(x):
    return 2 * x


class Methods(Vertex, message=float):
    """Methods: pure, of the run only, acting, static, of one another; properties and class constants."""

    START = 4
    STEPS = (1, 2, 3)
    mode = "fast"
    base: Param[float] = 1.5
    value: State[float] = 0.0
    rounds: State[int] = 0

    def compute(self, messages):
        """Docstrings, here and there, are no code."""
        if self.mode == "slow":
            self.no_such_method()
        if self.superstep == 0:
            self.value = self.START + self.offset()
        self.take(sum(self.weighed(m) for m in messages))
        gained = self.gain(2.0, self.base)
        self.value += gained
        if self.is_late or self.rounds > 5:
            return self.finish()
        for edge in self.out_edges:
            self.send(edge, self.cost(edge.weight) * self.value)

    @property
    def is_late(self):
        return self.superstep >= self.last()

    def last(self):
        return self.START - 2

    def offset(self):
        """Read the vertex."""
        return self.id * self.square(self.base) + self.STEPS[1]

    def weighed(self, m, by=0.5):
        return m * self.base * by

    def cost(self, weight):
        if weight > 2.0:
            return 2.0
        return weight

    @staticmethod
    def square(x):
        return x * x

    def take(self, total):
        """Act."""
        self.value += total
        self.rounds += 1

    def gain(self, a, b):
        self.rounds += 0
        gained = a + b
        return gained / 2

    def finish(self):
        self.vote_to_halt()


class Reading(Vertex, message=int):
    """A method that is given the messages."""

    total: State[int] = 0
    best: State[int] = 0

    def compute(self, messages):
        best = self.read(messages)
        self.best = best
        if self.superstep < 2:
            self.send_to_neighbors(self.id + self.superstep)
        self.vote_to_halt()

    def read(self, inbox):
        for m in inbox:
            self.total += m
        return max(inbox, default=-1)


class Functions(Vertex):
    """Module constants, helpers of helpers, math, NumPy, control flow, tuples."""

    digits: State[int] = 0
    length: State[float] = 0.0
    angle: State[float] = 0.0
    collatz: State[int] = 0
    swapped: State[int] = 0
    clipped: State[float] = 0.0

    def compute(self, messages):
        self.vote_to_halt()
        for i in range(len(WEIGHTS)):
            self.digits += WEIGHTS[i] * (self.id + i)
        for w in WEIGHTS:
            self.digits -= w
        self.length = math.sqrt(self.id**2 + SCALE) + halved(self.id) + other_programs.tripled(SCALE)
        self.angle = np.arctan2(float(self.id), 2.0) + math.pi * np.cos(0.0)
        n, steps = self.id + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
            if steps > 50:
                break
        self.collatz = steps
        pair = (self.id, self.id + 1)
        a, b = pair
        a, b = b, a
        self.swapped = a * 10 + pair[0] - b
        if self.id > 2 and not 0 < self.id < 5:
            return
        self.clipped = (
            max(1.0, min(float(self.id), 1.5, 3.0)) + abs(-1) + round(2.6) + int(7.9) + (-7) // 2 + (-7) % 3
        )


class Derived(Base, message=float):
    """Fields, methods and constants from a class of another module, whose globals mean other things there."""

    own: State[float] = 0.0

    def compute(self, messages):
        self.own = self.scaled(SCALE) + sum(messages) + self.bonus
        self.note()
        if self.superstep < 2:
            self.send_to_neighbors(self.own)
        self.vote_to_halt()


def closure_program() -> Vertex:
    """Return a program whose class is written inside a function."""
    step, label = 3, "closure"

    def stepped(x):
        return x + step

    class Closure(Vertex, message=int):
        value: State[int] = 0

        def compute(self, messages):
            self.value = stepped(self.value) + sum(messages) * step
            if self.superstep < 2:
                self.send_to_neighbors(step)
            self.vote_to_halt()

    Closure.__doc__ = label
    return Closure()


class Options(Vertex):
    """Parameters that are no numbers are fixed when the program is compiled."""

    mode: Param[str] = "sum"
    limit: Param[float | None] = None
    flag: Param[bool] = True
    verbose: Param[bool | None] = None
    size: Param[np.int32] = 3
    value: State[float] = 0.0

    def compute(self, messages):
        if self.mode in ("sum", "total"):
            self.value = self.id + self.size
        elif self.mode == "product":
            self.value = self.id * self.size
        else:
            for edge in self.out_edges:
                if self.verbose:
                    self.value = edge.weight
        if self.limit is not None and self.value > self.limit:
            self.value = self.limit
        if not self.flag:
            self.value = -self.value
        self.value += 1 if self.verbose is None else 100 * bool(self.verbose)
        count = self.id and 1
        self.value += count * 1000
        self.vote_to_halt()


# Aggregators, and the end of a run.


def farther(a, b):
    return a if abs(a) >= abs(b) else b


class Census(Vertex):
    """Every kind of aggregator, read one superstep later."""

    total = Aggregator.sum(int)
    mean = Aggregator.sum(np.float32)
    narrow = Aggregator.sum(np.int32)
    low = Aggregator.min(float)
    high = Aggregator.max(int)
    some = Aggregator.any()
    every = Aggregator.all()
    far = Aggregator.custom(farther, identity=0.0)
    kept = Aggregator.sum(int, persistent=True)
    ever = Aggregator.max(float, persistent=True)
    seen: State[float] = 0.0
    flags: State[int] = 0
    kept_seen: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1:
            self.seen = self.total + self.mean + self.narrow + self.low + self.high + self.far
            self.flags = 1 * self.some + 2 * self.every
        self.kept_seen = self.kept * 100 + self.superstep
        so_far = self.kept
        so_far += 1
        self.kept += 1
        self.kept += so_far - self.kept
        self.ever += -1.0 * self.superstep
        if self.superstep == 0 and self.out_degree > 0:
            self.total += self.id
            self.mean += 0.5
            self.narrow += self.id > 0
            self.low += self.id - 1
            self.high += self.id
            self.some += self.id == 2
            self.every += self.id < 3
            self.far += self.id - 2.0
        if self.superstep == 2:
            self.vote_to_halt()


class Retiring(Vertex, message=int):
    """Some halt for good, some wake again, and what is assigned keeps its field's type."""

    seen: State[int] = 0
    whole: State[int] = 0

    def compute(self, messages):
        self.seen += 1
        self.whole = self.id / 2 + 0.5
        if self.whole * 2 == self.id + 1:
            self.seen += 10
        if self.superstep < 4:
            self.send_to_neighbors(1)
        if self.id == 3 and self.superstep == 1:
            self.retire()
        self.vote_to_halt()


@dataclass(frozen=True)
class Case:
    """A program, its graph, and states worked out by hand (vertices 0, 1, 2, 3, 9), where they are."""

    program: Callable[[], Vertex]
    expected: dict[str, list[Any]] = field(default_factory=dict)
    graph: Callable[[], Graph] = kite
    max_supersteps: int | None = None


CASES: dict[str, Case] = {
    "narrow": Case(
        Narrow,
        {
            "total": [100, 200, 100, 300, -1],
            "halves": [50.0, 100.0, 50.0, 150.0, 0.25],
            "small": [-1, -1, -1, -1, 7],
            "odd": [True, False, True, True, False],
        },
    ),
    "truths": Case(
        Truths,
        {
            "any_true": [True, True, True, True, False],
            "all_true": [True, False, True, False, False],
            "count": [1, 1, 1, 2, 0],
            "number": [1, 2, 1, 3, 0],
        },
    ),
    "market": Case(
        Market,
        {
            "cheapest": [3.0, 1.0, 4.0, 0.5, inf],
            "dearest_final": [3.0, 2.5, 4.0, -5.0, -1.0],
            "amount": [9, 6, 7, 4, 0],
            "cost": [27.0, 20.0, 28.0, 9.0, 0.0],
            "is_final": [True, False, True, False, False],
            "seller": [3, 0, 0, 2, -1],
        },
    ),
    "two_folds": Case(TwoFolds, {"low": [0, 0, 0, 0, 9], "high": [3, 3, 3, 3, 9]}),
    "fold_loop": Case(
        FoldLoop,
        {
            "total": [7.0, 8.0, 9.0, 9.0, 1.0],
            "low": [3.0, 1.0, 4.0, 0.5, inf],
            "high": [3.0, 2.5, 4.0, 2.0, -inf],
            "flags": [101, 101, 111, 2, 100],
        },
    ),
    "last_one": Case(LastOne, {"total": [4, 2, 1, 9, 0]}),
    "listed": Case(
        Listed,
        {
            "count": [1, 1, 1, 2, 0],
            "total": [2.5, 2.0, 3.5, 1.5, 0.0],
            "second": [inf, 3.5, inf, 2.5, 0.0],
            "code": [22, 5, 22, 14, 0],
        },
    ),
    "listed_offers": Case(ListedOffers),
    "presence": Case(Presence),
    "tail": Case(Tail),
    "combiner": Case(
        Combiner,
        {
            "best": [6.0, 5.0, 8.0, 4.0, 0.0],
            "count": [22, 22, 22, 22, 0],
            "total": [6.25, 5.25, 8.25, 4.25, 0.25],
            "flags": [3, 3, 3, 3, 3],
        },
    ),
    "user_combiner": Case(UserCombiner, {"best": [3.0, 2.5, 4.0, 2.0, -2.0]}),
    "sum_combiner": Case(SumCombiner),
    "joined_offers": Case(JoinedOffers),
    "lowest_offer": Case(LowestOffer, {"price": [1.0, 0.0, 0.0, 0.0, inf], "seller": [3, 0, 0, 2, -1]}),
    "filtered": Case(Filtered),
    "alternatives_plain": Case(Alternatives),
    "alternatives": Case(lambda: Alternatives(plain=False)),
    "own_id": Case(OwnId),
    "two_sends": Case(TwoSends, {"total": [84, 78, 78, 210, 0]}),
    "postman": Case(Postman, {"heard": [0, 0, 0, 0, 5], "answer": [9, 9, 9, 9, -1]}),
    "forward": Case(Forward),
    "carried": Case(Carried, {"total": [0, 0, 6, 0, 0]}),
    "walk": Case(
        Walk,
        {
            "weight": [7.5, 2.0, 0.5, 4.5, 0.0],
            "loops": [0, 0, 0, 1, 0],
            "largest": [7, 1, 2, 9, -3],
            "nearest": [1, 3, 3, 0, -1],
            "heavy": [2, 0, 0, 0, 0],
            "code": [2, 4, 5, 2, 6],
            "from_here": [4, 2, 1, 9, 0],
        },
    ),
    "wide_values": Case(WideValues, {"seen": [2**63 + 1] * 4 + [0], "lowest": [2**62 + 1] * 5}),
    "methods": Case(Methods),
    "reading": Case(Reading),
    "functions": Case(
        Functions,
        {
            "digits": [99, 210, 321, 432, 1098],
            "collatz": [0, 1, 7, 2, 6],
            "swapped": [10, 20, 30, 40, 100],
            "clipped": [10.0, 10.0, 10.5, 10.5, 0.0],
        },
    ),
    "derived": Case(Derived, {"noted": [300, 300, 300, 300, 100]}),
    "closure": Case(closure_program, {"value": [27, 45, 27, 63, 3]}),
    "options": Case(Options, {"value": [4.0, 1005.0, 1006.0, 1007.0, 1013.0]}),
    "options_product": Case(
        lambda: Options(mode="product", limit=5.0, flag=False, verbose=True),
        {"value": [100.0, 1097.0, 1095.0, 1095.0, 1095.0]},
    ),
    "census": Case(
        Census,
        {
            "seen": [11.0, 11.0, 11.0, 11.0, 11.0],
            "flags": [1, 1, 1, 1, 1],
            "kept_seen": [2002, 2002, 2002, 2002, 2002],
        },
    ),
    "retiring": Case(Retiring, {"seen": [3, 44, 4, 22, 11], "whole": [0, 1, 1, 2, 5]}),
}
