"""Leases by the kernels' own text on the host: states and supersteps are the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from numpy.typing import NDArray

import sigps
from sigps import Graph, Vertex
from sigps.apps import BFS, SSSP, Katz, KCore, MaximalIndependentSet
from sigps.kernels.cuda.lease import HUB_DEGREE


def star() -> Graph:
    """Return a hub whose edges blocks share, and a path behind its last leaf."""
    leaves = np.arange(1, HUB_DEGREE + 3)
    path = leaves[-1] + np.arange(12)
    ends = np.append(np.zeros_like(leaves), path[:-1]), np.append(leaves, path[1:])
    return Graph.from_edges(*ends, np.ones(ends[0].size), directed=False)


def tail() -> Graph:
    """Return a path that ends in a clique: cores of one go one by one, and then none is left within reach."""
    inside = np.triu_indices(9, 1)
    path = np.arange(8, 40)
    ends = np.append(inside[0], path[:-1]), np.append(inside[1], path[1:])
    return Graph.from_edges(*ends, np.ones(ends[0].size), directed=False)


GRAPHS = {
    "grid": lambda: sigps.generate("grid", rows=20, columns=15, weights="random"),
    "rmat": lambda: sigps.generate("rmat", scale=7, weights="random"),
    "star": star,
    "tail": tail,
    "few": lambda: sigps.generate("rmat", scale=5, edge_factor=4),
    "clique": lambda: Graph.from_edges(*np.triu_indices(45, 1), directed=False),
}

PROGRAMS = {
    "BFS": lambda: BFS(source=0),
    "KCore": KCore,
    "Katz": lambda: Katz(attenuation=1e-4, tolerance=1e-9),
    "MaximalIndependentSet": MaximalIndependentSet,
    "SSSP": lambda: SSSP(source=0),
}


CASES = [(program, graph, "auto") for program in PROGRAMS for graph in ("grid", "rmat")]
CASES += [
    ("BFS", "grid", "push"),
    ("KCore", "grid", "push"),
    ("KCore", "tail", "push"),
    ("KCore", "star", "auto"),
    ("BFS", "star", "push"),
]
CASES += [("Katz", "clique", "pull"), ("KCore", "few", "pull")]  # few tasks for each warp


def outcome(
    program: Vertex, graph: Graph, device: str, direction: Any = "auto"
) -> tuple[dict[str, NDArray], list[tuple[int, int]]]:
    result = sigps.run(program, graph, device=device, direction=direction)
    return {name: result[name] for name in result.fields}, [(s.active, s.messages) for s in result.stats]


@pytest.mark.parametrize(("program", "graph", "direction"), CASES)
def test_a_lease_is_the_interpreters(
    program: str, graph: str, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, on = PROGRAMS[program], GRAPHS[graph]()
    expected, supersteps = outcome(made(), on, "python")
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch)
    found, taken = outcome(made(), on, "cuda", direction)
    assert launched
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)
    assert taken == supersteps


@pytest.mark.parametrize(("program", "graph", "most"), [("BFS", "grid", None), ("KCore", "tail", 3)])
def test_small_frontiers_have_their_kernel(
    program: str, graph: str, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch)
    sigps.run(PROGRAMS[program](), GRAPHS[graph](), device="cuda", direction="push")
    assert "run_small_frontier" in launched
    assert most is None or len(launched) <= most
