"""Leases by the kernels' own text on the host: states and supersteps are the interpreter's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equality_programs
import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from keyed_programs import KEYED
from numpy.typing import NDArray
from turns import in_turn

import sigps
from sigps import Graph, Vertex
from sigps.apps import (
    BFS,
    CDLP,
    SSSP,
    GreedyColouring,
    Katz,
    KCore,
    LabelPropagation,
    LeidenRound,
    LongestPath,
    MaximalIndependentSet,
    PageRank,
    WeightedLabels,
)
from sigps.engine.gpu import packed_edges
from sigps.engine.gpu.packed_places import KeyTables
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.table import chains
from sigps.kernels.cuda.lease import HUB_DEGREE


def star() -> Graph:
    """Return a hub whose edges warps share, and a path behind its last leaf."""
    leaves = np.arange(1, HUB_DEGREE + 3)
    path = leaves[-1] + np.arange(12)
    ends = np.append(np.zeros_like(leaves), path[:-1]), np.append(leaves, path[1:])
    return Graph.from_edges(*ends, np.ones(ends[0].size), directed=False)


def stars() -> Graph:
    """Return more hubs than a warp has lanes, around a vertex, one of which has many times the others' leaves."""
    sizes = np.full(33, HUB_DEGREE + 1)
    sizes[20] = 9000
    hubs = np.repeat(np.arange(1, 34), sizes)
    leaves = 34 + np.arange(hubs.size)
    ends = np.append(np.zeros(33, np.int64), hubs), np.append(np.arange(1, 34), leaves)
    return Graph.from_edges(*ends, directed=False)


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
    "stars": stars,
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


CASES = in_turn(PROGRAMS, ["grid", "rmat"], ["auto"])
CASES += [
    ("BFS", "grid", "push"),
    ("KCore", "grid", "push"),
    ("KCore", "tail", "push"),
    ("KCore", "star", "auto"),
    ("BFS", "star", "push"),
    ("BFS", "stars", "push"),
]
CASES += [("Katz", "clique", "pull"), ("KCore", "few", "pull")]  # few tasks for each warp


def outcome(
    program: Vertex, graph: Graph, device: str, direction: Any = "auto"
) -> tuple[dict[str, NDArray], list[tuple[int, int]]]:
    result = sigps.run(program, graph, device=device, direction=direction)
    return {name: result[name] for name in result.fields}, [(s.active, s.messages) for s in result.stats]


@pytest.mark.parametrize(("number", "program", "graph", "direction"), [(i, *c) for i, c in enumerate(CASES)])
def test_a_lease_is_the_interpreters(
    number: int, program: str, graph: str, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one block, or by three at once."""
    made, on = PROGRAMS[program], GRAPHS[graph]()
    expected, supersteps = outcome(made(), on, "python")
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=1 + 2 * (number % 2))
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


PACKED: dict[str, Vertex] = {
    "labels": LabelPropagation(seed=1),
    "CDLP": CDLP(),
    "LeidenRound": LeidenRound(),
    "LongestPath": LongestPath(),
    "GreedyColouring": GreedyColouring(),
    "WeightedLabels": WeightedLabels(),
    "PageRank": PageRank(iterations=3),
    "BFS": BFS(source=0),
    **{name: KEYED[name] for name in ("votes", "pulls", "tables")},
    **{name: equality_programs.PROGRAMS[name] for name in ("coreness", "letters")},
}
"""Messages that are combined, of up to 64 bytes, listed, sorted, and grouped by key."""


@pytest.mark.parametrize(
    ("name", "fed", "order", "page_arcs"),
    in_turn(PACKED, [False, True], ["given", "degree"], [64, 1 << 12]),
)
def test_a_lease_over_packed_edges_is_the_interpreters(
    name: str, fed: bool, order: Any, page_arcs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rows that span pages, read where they lie and through rings, which copies and threads fill."""
    directed = name in ("BFS", "LongestPath")
    made = sigps.generate("rmat", scale=7, seed=2, weights="random", directed=directed)
    made = made if directed else made.undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    program, stored = PACKED[name], sigps.load(tmp_path / "store")
    expected = sigps.run(program, stored, device="python", max_supersteps=5)
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=1 if page_arcs == 64 else 2)
    for more in (
        *([{}] if name == "GreedyColouring" else []),  # which is pushed, too
        {"transfer": "bulk"} | ({"host_memory": "3KB" if page_arcs == 64 else "64KB"} if fed else {}),
    ):
        launched.clear()
        options: dict[str, Any] = {"stream": "always", "max_supersteps": 5, "asynchronous": False} | more
        found = sigps.run(program, stored, device="cuda", **options)
        assert launched
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=f"{field} {more}")


@pytest.mark.parametrize("num_tables", [1, 2])
def test_rows_that_span_pages_take_turns_at_few_tables(
    num_tables: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three blocks, some of which wait; vertices retire, so that some of these rows are not read."""
    made = sigps.generate("rmat", scale=7, seed=2).undirected(simple=True)
    save_packed(made, tmp_path / "store", order="degree", page_arcs=16)
    stored, program = sigps.load(tmp_path / "store"), KEYED["votes"]
    expected = sigps.run(program, stored, device="python")
    monkeypatch.setattr(
        packed_edges, "key_tables", lambda arcs, rows, blocks, entry: KeyTables(num_tables, 2 * arcs + 1)
    )
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=3)
    found = sigps.run(program, stored, device="cuda", stream="always", transfer="bulk")
    assert launched
    assert stored.packed is not None
    assert sum(len(chain) > 2 for chain in chains(stored.packed.rows.table)) > 2 * num_tables
    for field in expected.fields:
        np.testing.assert_array_equal(found[field], expected[field], err_msg=field)
