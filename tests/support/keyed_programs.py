"""Programs that read messages by key: `KEYED` names each. Every result is unique, but for sums of floats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sigps import Aggregator, Param, State, Vertex, VertexId, inf


class Votes(Vertex, message=int):
    """The most common of the neighbours' votes, some of whom abstain, and some leave; keys are negative, too."""

    rounds: Param[int] = 5
    vote: State[int] = 0
    won: State[int] = -100

    def compute(self, messages):
        if self.superstep == 0:
            self.vote = self.out_degree % 3 - 1
        elif messages:
            self.won = messages.most_common()
            self.vote = (self.vote + 3 * self.won) % 7 - 3
        if self.superstep < self.rounds and (self.vote + self.superstep) % 3 != 0:
            self.send_to_neighbors(self.vote - 2)
        if self.superstep > 1 and self.out_degree % 5 == 4:
            self.retire()
        if self.superstep > 0:
            self.vote_to_halt()


class Pull(NamedTuple):
    """A label, how hard it pulls, and whether it may win."""

    label: np.int32
    strength: float
    may_win: bool


class Pulls(Vertex, message=Pull):
    """The key of most weight, where keys are computed, weights are floats, and one is NaN: it never wins."""

    label: State[int] = 0
    nothing: State[bool] = True

    def compute(self, messages):
        if self.superstep == 0:
            self.label = self.out_degree % 11 - 3
        else:
            self.nothing = not messages
            found = messages.most_common(key=lambda m: m.label // 2, weight=lambda m: m.strength, default=-77)
            self.label = 2 * found + self.out_degree % 2
        if self.superstep < 4:
            for edge in self.out_edges:
                strength = 0.5 * edge.weight - 0.25 if self.label % 5 != 0 else inf - inf
                self.send(edge, Pull(self.label, strength, edge.weight > 2.0))
        self.vote_to_halt()


class Tables(Vertex, message=Pull):
    """A loop over groups, with reductions and loops of each, of all messages, and `break` and `continue`."""

    ceiling: Param[int] = 9
    groups: State[int] = 0
    largest: State[int] = -1
    strongest: State[float] = -inf
    pulled: State[float] = 0.0
    ordered: State[bool] = True
    winners: State[int] = 0
    share: State[float] = 0.0
    seen = Aggregator.sum(int)

    def compute(self, messages):
        last = -1000
        for label, group in messages.grouped(key=lambda m: min(m.label, self.ceiling)):
            self.ordered = self.ordered and label > last and all(min(m.label, 9) == label for m in group)
            last = label
            self.seen += len(group)
            if not any(m.may_win for m in group):
                continue
            self.groups += 1
            self.pulled += sum(m.strength for m in group)
            self.strongest = max(self.strongest, max(m.strength for m in group))
            if 2 * len(group) > len(messages):
                self.largest = label
            for m in group:
                if m.may_win and m.strength > 1.0:
                    self.winners += 1
            if self.groups > 20:
                break
        if messages:
            self.share = self.pulled / len(messages)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, Pull(edge.target % 6 + self.superstep, 0.1 * edge.weight, edge.weight > 1.5))
        self.vote_to_halt()


class Order(NamedTuple):
    """Who orders, what, and how much."""

    buyer: VertexId
    article: np.uint8
    amount: np.uint64


class Orders(Vertex, message=Order):
    """Direct messages by key: the article that is ordered most, whose buyers are told; and both ways to read."""

    best: State[int] = -1
    amount: State[np.uint64] = 0
    articles: State[int] = 0
    told: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send_to(edge.target, Order(self.id, edge.target % 4, np.uint64(self.out_degree)))
                self.send_to(self.id, Order(self.id, self.out_degree % 3, np.uint64(2)))
        elif self.superstep == 1:
            self.best = messages.most_common(lambda m: m.article, lambda m: m.amount, default=-5)
            for article, group in messages.grouped(lambda m: m.article):
                self.articles += 1
                if article == self.best:
                    self.amount = sum(m.amount for m in group)
                    for m in group:
                        self.send_to(m.buyer, Order(self.id, 0, np.uint64(1)))
        else:
            self.told += len(messages)
        self.vote_to_halt()


class Answers(Vertex, message=bool):
    """Truth values are their own keys; of as many of both, False is smaller."""

    answer: State[bool] = True
    count: State[int] = 0

    def compute(self, messages):
        if self.superstep > 0:
            self.answer = messages.most_common(default=True)
            self.count += 1
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, (edge.target + self.superstep) % 3 == 1)
        self.vote_to_halt()


KEYED: dict[str, Vertex] = {
    "votes": Votes(),
    "pulls": Pulls(),
    "tables": Tables(),
    "orders": Orders(),
    "answers": Answers(),
}
