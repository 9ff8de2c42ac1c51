"""What explain says of programs that compile and probably mean something else; nothing of the apps."""

from __future__ import annotations

import inspect

import pytest
from cells import program_of

import sigps.apps
from sigps import Vertex
from sigps.compiler.doubts import find_doubts
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse

APPS = [c for c in vars(sigps.apps).values() if inspect.isclass(c) and issubclass(c, Vertex)]
HALTS = "\nself.vote_to_halt()"


def described(cls: type[Vertex]) -> str:
    return explain(cls)


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.__name__)
def test_no_app_is_doubted(app: type[Vertex]) -> None:
    assert "perhaps not what is meant" not in described(app)


@pytest.mark.parametrize(
    ("body", "fields", "says"),
    [
        ("self.x += 1.0", "", "no vertex ever halts"),
        ("self.x = sum(messages)" + HALTS, "", "messages are read, and none is ever sent"),
        (
            "self.x = self.total" + HALTS,
            "total = Aggregator.sum(float)",
            "'total' is read, and gets no contribution",
        ),
        ("self.r = self.id" + HALTS, "r: State[np.float32] = 0.0", "self.id goes into a float32"),
        (
            "self.x = max(messages, default=0.0)\nself.send_to_neighbors(self.id)" + HALTS,
            "",
            "self.id goes into a float",
        ),
        (
            "self.w = self.w - np.uint64(3)" + HALTS,
            "w: State[np.uint64] = 5",
            "self.w - np.uint64(3) is of np.uint64",
        ),
        ("self.b = self.x == 0.1" + HALTS, "b: State[bool] = False", "self.x == 0.1 compares floats"),
        (
            "self.b = self.x * 3.0 != self.x" + HALTS,
            "b: State[bool] = False",
            "self.x * 3.0 != self.x compares floats",
        ),
    ],
)
def test_what_is_doubted(body: str, fields: str, says: str) -> None:
    program = program_of(body, fields)
    (doubt,) = find_doubts(analyse(program))
    assert says in doubt
    assert f"perhaps not what is meant\n  {doubt}" in described(type(program))


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("self.n = self.id" + HALTS, "n: State[VertexId] = -1"),
        ("self.b = self.x == 0.0 or self.x != 0.5 or self.x == inf" + HALTS, "b: State[bool] = False"),
        ("self.n = int(self.w) - 3" + HALTS, "n: State[int] = 0\nw: State[np.uint64] = 5"),
        ("self.retire()", ""),
        ("self.total += 1.0\nself.x = self.total" + HALTS, "total = Aggregator.sum(float)"),
    ],
)
def test_what_is_not_doubted(body: str, fields: str) -> None:
    assert find_doubts(analyse(program_of(body, fields))) == []
