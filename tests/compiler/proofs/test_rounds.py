"""Which programs run in rounds, and why others do not."""

from __future__ import annotations

import pytest

from sigps import EdgeState, Param, Shared, State, Vertex
from sigps.apps import BFS, CDLP, HeatDiffusion, Katz, LabelPropagation, PageRank, WeightedLabels
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.rounds import Rounds, rounds


class SentBefore(Vertex, message=float):
    """The record is what the state was, and another state is set later on some paths alone."""

    first: State[float] = 1.0
    last: State[float] = 0.0

    def compute(self, messages):
        record = self.first
        self.first = sum(messages)
        if self.superstep == 0:
            self.last = 2.0
        elif self.first > 3.0:
            self.last = 3.0
        if self.superstep < 3:
            self.send_to_neighbors(record)
        else:
            self.vote_to_halt()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (CDLP(), Rounds(frozenset(), 0, False)),
        (WeightedLabels(), Rounds(frozenset(), 0, False)),
        (HeatDiffusion(source=0, rate=0.1), Rounds(frozenset({1}), 0, False)),
        (PageRank(dangling="leak"), Rounds(frozenset(), None, True)),
        (SentBefore(), Rounds(frozenset(), None, False)),
    ],
)
def test_programs_in_rounds(program: Vertex, expected: Rounds) -> None:
    assert rounds(analyse(program)) == expected


class NumEdges(Vertex, message=int):
    value: State[int] = 0

    def compute(self, messages):
        self.value = sum(messages) + self.num_edges
        if self.superstep < 3:
            self.send_to_neighbors(self.value)
        else:
            self.vote_to_halt()


class Targets(Vertex, message=int):
    value: State[int] = 0

    def compute(self, messages):
        self.value = max((edge.target for edge in self.out_edges), default=-1) + sum(messages)
        if self.superstep < 3:
            self.send_to_neighbors(self.value)
        else:
            self.vote_to_halt()


class OneByOne(Vertex, message=int):
    value: State[int] = 0

    def compute(self, messages):
        for message in messages:
            self.value = self.value // 2 + message
        if self.superstep < 3:
            self.send_to_neighbors(self.value)
        else:
            self.vote_to_halt()


class Mastered(Vertex, message=int):
    step: Shared[int] = 0
    value: State[int] = 0

    def compute(self, messages):
        self.value = sum(messages) + self.step
        self.send_to_neighbors(self.value)

    def master(self):
        self.step += 1
        if self.step > 3:
            self.stop()


class OnEdges(Vertex, message=int):
    kept: EdgeState[int] = 0
    rounds: Param[int] = 2

    def compute(self, messages):
        for edge in self.out_edges:
            edge.kept = sum(messages)
        if self.superstep < self.rounds:
            self.send_to_neighbors(1)
        else:
            self.vote_to_halt()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (PageRank(), "reads an aggregator"),
        (Katz(attenuation=0.1), "reads an aggregator"),
        (BFS(source=0), "do not all send together"),
        (LabelPropagation(), "one by one"),
        (OneByOne(), "one by one"),
        (NumEdges(), "the number of edges"),
        (Targets(), "the targets of its edges"),
        (Mastered(), "there is a master"),
        (OnEdges(), "keeps values on edges"),
    ],
)
def test_why_others_are_not(program: Vertex, reason: str) -> None:
    found = rounds(analyse(program))
    assert isinstance(found, str)
    assert reason in found


def test_explain_says_so() -> None:
    assert "incremental (fixed rounds): all vertices run in each superstep" in explain(CDLP)
    assert "no fixed rounds: compute() reads an aggregator" in explain(PageRank)
