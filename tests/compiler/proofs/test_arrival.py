"""Programs in which a vertex acts once: which they are, and what the others are told."""

from __future__ import annotations

import re

import pytest
from cells import run_cell

from sigps.apps import BFS, SSSP, EgoNet, KHop, PageRank
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.arrival import FirstArrival, first_arrival
from sigps.compiler.proofs.incremental import incremental

CELL = """
class Found(Vertex, message={message}):
    source: Param[int]
    other: State[float] = 0.5
    at: State[int] = -1

    def compute(self, messages):
        if (self.superstep == 0 and self.id == self.source) or {reached}:
            self.at = {kept}
            {more}
            {send}
            self.retire()
        self.vote_to_halt()
"""
PLAIN = {
    "message": "int",
    "reached": "(self.superstep > 0 and messages)",
    "kept": "self.superstep",
    "more": "pass",
    "send": "self.send_to_neighbors(self.id)",
}


@pytest.mark.parametrize(
    ("changed", "is_nearest"),
    [
        ({}, True),
        ({"more": "self.other = self.superstep * 0.5 + self.id"}, True),
        ({"more": "self.other = min(messages, default=0) + 1.0"}, True),
        ({"reached": "max(messages, default=-1) > 5"}, False),
        ({"message": "float", "send": "for edge in self.out_edges: self.send(edge, edge.weight)"}, True),
        (
            {
                "message": "float",
                "send": "for edge in self.out_edges:\n                if edge.weight > 2: self.send(edge, 1.0)",
            },
            False,
        ),
        ({"message": "bool", "reached": "any(messages)", "send": "self.send_to_neighbors(True)"}, False),
    ],
    ids=str,
)
def test_proved(changed: dict[str, str], is_nearest: bool) -> None:
    program = analyse(run_cell(CELL.format(**PLAIN | changed))["Found"](source=0))
    assert first_arrival(program) == FirstArrival(1, is_nearest)
    assert incremental(program).kind == "first arrival"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"kept": "self.id"}, "does not always keep the superstep"),
        ({"kept": "self.superstep + 1"}, "does not always keep the superstep"),
        ({"send": "pass"}, "messages are not combined"),
        ({"send": "if self.id > 3: self.send_to_neighbors(self.id)"}, "does not always keep .* send"),
        ({"send": "self.send_to_neighbors(min(messages, default=0))"}, "holds what its sender computed"),
        ({"more": "self.other = self.out_degree * 1.0"}, "reads a degree"),
        ({"more": "self.other = self.num_vertices * 1.0"}, "reads a degree"),
        ({"more": "self.other = sum(messages) * 1.0"}, "do not combine by min"),
        ({"reached": "self.superstep == 3"}, "messages are not combined"),
        ({"more": "if self.superstep > 4: return"}, "more than"),
    ],
    ids=str,
)
def test_refused(changed: dict[str, str], reason: str) -> None:
    found = first_arrival(analyse(run_cell(CELL.format(**PLAIN | changed))["Found"](source=0)))
    assert isinstance(found, str)
    assert re.search(reason, found)


def test_apps() -> None:
    assert first_arrival(analyse(BFS(source=0))) == FirstArrival(0, True)
    assert (
        first_arrival(analyse(KHop(source=0))) == "vertices contribute to an aggregator, or there is a master"
    )
    assert isinstance(first_arrival(analyse(EgoNet(source=0))), str)
    assert incremental(analyse(SSSP(source=0))).kind == "monotone"
    assert "incremental (first arrival): a vertex acts once" in explain(BFS)
    assert "no first arrival: vertices contribute to an aggregator" in explain(KHop)
    assert "no first arrival" not in explain(PageRank)
