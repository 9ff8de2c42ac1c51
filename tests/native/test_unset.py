"""Locals that some path leaves unset are refused at the line that reads them; others are not."""

from __future__ import annotations

import pytest

from sigps import CompileError, Graph, State, Vertex, run
from sigps.compiler.frontend.analysis import analyse


def outside(a):
    if a > 3:
        best = a
    return best  # here


class CallsAFunction(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        self.x = outside(self.id)
        self.vote_to_halt()


def test_a_function_outside_the_class_is_checked() -> None:
    with pytest.raises(CompileError, match="'best' may be read before it is set") as caught:
        run(CallsAFunction(), Graph.from_edges([0], [1]), device="cpu")
    assert caught.value.source == "return best  # here"


class OnOnePath(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        if self.superstep > 0:
            best = 3
        self.x = best  # here


class InALoop(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        for m in messages:
            last = m
        self.x = last  # here


class AddedTo(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        while self.x < 3:
            if self.x > 1:
                total = 0
            total += 1  # here
            self.x = total


class SkippedByContinue(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        for i in range(3):
            if i > self.x:
                continue
            y = i
        self.x = y  # here


class InAMethod(Vertex, message=int):
    x: State[int] = 0

    def best(self):
        if self.x > 0:
            y = 1
        return y  # here

    def compute(self, messages):
        self.x = self.best()


class Fine(Vertex, message=int):
    x: State[int] = 0

    def compute(self, messages):
        if self.superstep > 0:
            best = sum(m for m in messages)
        elif self.x:
            return
        else:
            best = 1
        while True:
            y = best + 1
            if y > 0:
                break
        for i in range(2):
            z = i
        for k in (1, 2):
            z += k
        self.x = y + z


@pytest.mark.parametrize("program", [OnOnePath, InALoop, AddedTo, SkippedByContinue, InAMethod])
def test_a_local_that_a_path_leaves_unset(program):
    with pytest.raises(CompileError, match="may be read before it is set") as caught:
        analyse(program())
    assert caught.value.source.endswith("# here")


def test_locals_that_every_path_sets():
    assert analyse(Fine()).name == "Fine"
