"""One edge by its position, a drawn edge, and whether there is an edge: as the interpreter has it, on any ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import program_of
from indexed_edges import GRAPHS, NO_SUCH, assert_no_such_edge, indexing
from thread_group import ThreadGroup, run_ranks

from sigps import CompileError, Graph, run


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_are_those_of_the_interpreter(name: str) -> None:
    judge = run(indexing(), BATTERY[name].build(), device="python", seed=2)
    graph = BATTERY[name].build()
    ends = {(int(s), int(t)) for s, t in _pairs(graph)}
    ids = judge.ids.tolist()
    assert judge["h"].tolist() == [((v, v) in ends) + 2 * ((v, v + 1) in ends) for v in ids]

    def on_ranks(group: ThreadGroup) -> Any:
        found = run(indexing(), BATTERY[name].build(group=group), device="cpu", seed=2, partitioner="hash")
        return {field: found[field].tolist() for field in found.fields}

    for num_ranks in (1, 2):
        found = run_ranks(num_ranks, on_ranks)[0]
        assert found == {field: judge[field].tolist() for field in judge.fields}


def _pairs(graph: Graph) -> Any:
    sources = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    return zip(graph.ids.to_oids(sources), graph.ids.to_oids(graph.targets.astype(np.int64)), strict=True)


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("at", NO_SUCH)
def test_there_is_no_such_edge(at: str, device: str) -> None:
    assert_no_such_edge(at, device)


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
