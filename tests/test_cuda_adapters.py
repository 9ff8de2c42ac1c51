"""The adapters between kernels and programs, run as Python: states and supersteps are the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cuda_twin import Interpreted, run_plainly
from edge_programs import Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves
from engines import interpreted
from programs import CASES, kite
from rank_programs import Flows

from sigps import Vertex, run
from sigps.apps import BFS, SSSP, BiTriDN, EgoNet, PageRank

PROGRAMS: dict[str, Any] = {
    "BFS": lambda: BFS(source=0),
    "PageRank": lambda: PageRank(iterations=5, tolerance=1e-3),
    "SSSP": lambda: SSSP(source=0),
    **{name: case.program for name, case in CASES.items()},
}


def assert_as_interpreted(
    program: Vertex, superstep: Any, narrow_ids: bool, tolerance: float = 1e-12
) -> None:
    judge = run(program, kite(), device="python")
    states, num_supersteps = run_plainly(program, kite(), superstep, narrow_ids)
    assert num_supersteps == judge.supersteps
    for name, values in states.items():
        exact = values.dtype.kind != "f"
        np.testing.assert_allclose(values, judge[name], rtol=0 if exact else tolerance, err_msg=name)


@pytest.mark.parametrize("narrow_ids", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_adapters_are_the_interpreters(name: str, narrow_ids: bool) -> None:
    assert_as_interpreted(PROGRAMS[name](), Interpreted, narrow_ids)


def test_the_directions_of_edges_reach_a_program() -> None:
    states, num_supersteps = run_plainly(Flows(), kite().both_ways(), Interpreted, narrow_ids=False)
    judge = run(Flows(), kite(), device="python")
    assert num_supersteps == judge.supersteps
    assert judge["out"].tolist() != judge["into"].tolist()
    for name, values in states.items():
        assert values.tolist() == judge[name].tolist()


ON_EDGES: dict[str, Vertex] = {
    **{made.__name__: made() for made in (EdgeTriangles, Marks, Mirrors, Returns, Waves, Closeness, Loudest)},
    "BiTriDN": BiTriDN(),
    "EgoNet": EgoNet(source=0, hops=2),
}
GRAPHS = [
    *("complete_5", "grid", "parallel_edges_undirected", "self_loop_undirected", "sparse_ids", "star_out"),
    *("weight_ties", "hub_on_a_partition_border"),
]


def assert_kept_as_interpreted(made: Vertex, name: str, superstep: Any) -> None:
    graph = BATTERY[name].build()
    graph = graph if made.declaration.directed else graph.undirected()
    judge = interpreted(made, graph)
    outcome = judge.lease(1000)
    states, num_supersteps = run_plainly(made, graph, superstep, narrow_ids=False)
    assert num_supersteps == len(outcome.stats)
    for field in made.declaration.states:
        np.testing.assert_allclose(states[field.name], judge.state(field.name), rtol=1e-12)
    for field in made.declaration.edge_states:
        np.testing.assert_allclose(states[field.name], judge.edge_state(field.name), rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("program", ON_EDGES)
def test_what_is_kept_on_edges_is_the_interpreters(program: str, name: str) -> None:
    assert_kept_as_interpreted(ON_EDGES[program], name, Interpreted)
