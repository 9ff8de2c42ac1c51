"""Programs that read messages in every way: slots, lists, loops, combiners that the user names."""

from typing import NamedTuple

import numpy as np

from sigps import Aggregator, Param, State, Vertex, VertexId, inf


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
