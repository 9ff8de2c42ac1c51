"""The judge of the CUDA adapters: programs run through them, by any superstep function, and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
from battery import BATTERY
from cuda_twin import run_plainly
from edge_programs import Closeness, EdgeTriangles, Loudest, Marks, Mirrors, Returns, Waves
from engines import interpreted
from keyed_programs import KEYED
from worked_cases import CASES, kite

from sigps import Vertex, run
from sigps.apps import BFS, SSSP, BiTriDN, EgoNet, PageRank, TriDN

PROGRAMS: dict[str, Any] = {
    "BFS": lambda: BFS(source=0),
    "PageRank": lambda: PageRank(iterations=5, tolerance=1e-3),
    "SSSP": lambda: SSSP(source=0),
    **{name: lambda name=name: KEYED[name] for name in ("votes", "pulls", "answers")},
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
        expected = np.ma.filled(judge[name], -(2**63))
        np.testing.assert_allclose(values, expected, rtol=0 if exact else tolerance, err_msg=name)


ON_EDGES: dict[str, Vertex] = {
    **{made.__name__: made() for made in (EdgeTriangles, Marks, Mirrors, Returns, Waves, Closeness, Loudest)},
    "BiTriDN": BiTriDN(),
    "TriDN": TriDN(),
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
