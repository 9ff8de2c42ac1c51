"""Programs of shortest paths: which they are."""

from __future__ import annotations

from typing import Any

import monotone_programs as programs
import pytest
from cells import run_cell

from sigps.apps import BFS, SSSP, WCC
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import PathLengths
from sigps.compiler.proofs.path_lengths import find_obstacle

RELAX = """
class Path(NamedTuple):
    length: float
    last: {last}

class Relax(Vertex, message={message}):
    step: Param[float] = 1.0
    best: State[float] = inf
    other: State[{other}] = 7

    def compute(self, messages):
        if self.superstep == 0:
            received = {first}
        else:
            received = min(messages, default={none})
        if {length} < self.best:
            self.best = {length}
            {more}
            for edge in self.out_edges:
                {when}self.send(edge, {sent})
        self.vote_to_halt()
"""

LENGTHS = {
    "message": "float",
    "first": "(0.0 if self.id == 0 else inf)",
    "none": "inf",
    "length": "received",
    "more": "pass",
    "sent": "received + edge.weight",
    "when": "",
    "last": "VertexId",
    "other": "int",
}

PATHS = LENGTHS | {
    "message": "Path",
    "first": "Path(0.0 if self.id == 0 else inf, self.id)",
    "none": "Path(inf, self.id)",
    "length": "received.length",
    "more": "self.other = received.last",
    "sent": "Path(received.length + edge.weight, self.id)",
}


def relax(**parts: str) -> Any:
    return run_cell(RELAX.format(**(LENGTHS | parts)))["Relax"]()


def paths(**parts: str) -> Any:
    return run_cell(RELAX.format(**(PATHS | parts)))["Relax"]()


@pytest.mark.parametrize(
    ("program", "parent"),
    [
        (SSSP(source=0), 1),
        (relax(), None),
        (relax(sent="edge.weight + self.best"), None),
        (relax(first="self.step"), None),
        (relax(first="(self.step if self.id < 9 else inf)"), None),
        (paths(), 1),
        (paths(more="pass"), None),
    ],
)
def test_programs_of_shortest_paths(program: Any, parent: int | None) -> None:
    for precision in ("double", "single"):
        derived = analyse(program, precision)  # type: ignore[arg-type]
        assert find_obstacle(derived) is None
        assert derived.path_lengths == PathLengths(0, parent, 0)
    assert "by buckets" in explain(type(program))


MORE = "compute() keeps more than the key and the id of its sender, or sends something else than its key"
NO_COLUMN = "keys are not floats to which an edge column is added"


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        (BFS(source=0), "it is not monotone"),
        (relax(when="if edge.weight > 1: "), "it is not monotone"),
        (WCC(), NO_COLUMN),
        (relax(sent="received + 1.0"), NO_COLUMN),
        (programs.Nearest(source=0), "there is more than the least key and its sender"),
        (relax(sent="received + edge.weight + 1.0"), MORE),
        (relax(more="self.other += 1"), MORE),
        (relax(more="self.other = self.id"), MORE),
        (relax(more="self.other = self.superstep"), MORE),
        (relax(more="received = 3.0 if self.superstep == 0 else received"), MORE),
        (paths(sent="Path(received.length + edge.weight, edge.target)"), MORE),
        (
            paths(sent="Path(received.length + edge.weight, self.out_degree)"),
            "there is more than the least key and its sender",
        ),
        (paths(more="self.other = received.last + 1"), MORE),
        (paths(other="np.int32", more="self.other = received.last"), MORE),
    ],
)
def test_programs_that_are_none(program: Any, obstacle: str) -> None:
    derived = analyse(program)
    assert derived.path_lengths is None
    assert find_obstacle(derived) == obstacle
