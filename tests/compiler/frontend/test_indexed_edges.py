"""One edge by its position, a drawn edge, and whether there is an edge: as the interpreter has it, on any ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import program_of
from thread_group import ThreadGroup, run_ranks

from sigps import CompileError, ComputeError, Graph, Vertex, run

FIELDS = """
t: State[int] = 0
h: State[int] = 0
n: State[int] = 0
def first(self):
    return self.out_edges[0].target
"""
BODY = """
if self.superstep == 0:
    if self.out_degree > 0:
        edge = self.random_edge()
        self.send(edge, self.id)
        last = self.out_edges[-1]
        self.send(last, 1000)
        k = self.out_degree // 2
        middle = self.out_edges[k]
        self.t = last.target % 100 + 100 * (self.out_edges[0].target % 100) + 10000 * (middle.target % 100)
        self.x = last.weight + 2 * self.out_edges[k].weight
        self.n = self.first()
    self.h = self.has_edge(self.id) + 2 * self.has_edge(self.id + 1) + 4 * self.has_edge(10**12)
else:
    self.n += 31 * (sum(messages) % 1000003)
    self.vote_to_halt()
"""


def program() -> Vertex:
    return program_of(BODY, FIELDS, message="message=int")


@pytest.mark.parametrize(
    "name", ["complete_5", "grid", "skewed", "sparse_ids", "weight_ties", "isolated", "star_out"]
)
def test_edges_are_those_of_the_interpreter(name: str) -> None:
    judge = run(program(), BATTERY[name].build(), device="python", seed=2)
    graph = BATTERY[name].build()
    ends = {(int(s), int(t)) for s, t in _pairs(graph)}
    ids = judge.ids.tolist()
    assert judge["h"].tolist() == [((v, v) in ends) + 2 * ((v, v + 1) in ends) for v in ids]

    def on_ranks(group: ThreadGroup) -> Any:
        found = run(program(), BATTERY[name].build(group=group), device="cpu", seed=2, partitioner="hash")
        return {field: found[field].tolist() for field in found.fields}

    for num_ranks in (1, 2):
        found = run_ranks(num_ranks, on_ranks)[0]
        assert found == {field: judge[field].tolist() for field in judge.fields}


def _pairs(graph: Graph) -> Any:
    sources = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    return zip(graph.ids.to_oids(sources), graph.ids.to_oids(graph.targets.astype(np.int64)), strict=True)


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("at", ["self.out_degree", "-1 - self.out_degree", "10**15", "self.id"])
def test_there_is_no_such_edge(at: str, device: str) -> None:
    line = f"self.x = self.out_edges[{at}].weight"
    with pytest.raises(ComputeError, match="no such out-edge") as caught:
        run(program_of(line), Graph.from_edges([0, 1, 2], [1, 2, 0]), device=device)
    assert caught.value.source == line


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("edge = other = self.out_edges[0]\nself.x = edge.weight", "a name of its own"),
        ("for e in self.out_edges[1:]:\n    self.x = e.weight", "a loop runs over"),
        ("self.x = self.out_edges[0]", "a name of its own"),
        ("edge = self.out_edges[0]\nself.x = edge", "an edge can only be used"),
        ("self.x = self.has_edge()", "takes one id"),
        ("edge = self.out_edges[0:2]\nself.x = 1.0", "is one edge"),
    ],
)
def test_refused(body: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        run(program_of(body), Graph.from_edges([0, 1], [1, 0]), device="cpu")
