"""Contractions along packed edges without barriers inside a sweep: the host's part with a stand-in, and on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from gas_programs import Rank

import sigps
from sigps import Graph
from sigps.apps import SSSP, PageRank
from sigps.errors import ConfigError
from sigps.graph.formats.packed_store import save_packed

TOLERANCE = 1e-5


def exact_ranks(graph: Graph) -> Any:
    """Return the fixed point by a loop of its own."""
    rows = graph.in_edges()
    offsets, sources = np.asarray(rows.offsets).astype(int), np.asarray(rows.sources)
    degrees, ranks = np.maximum(np.asarray(graph.out_degrees()), 1), np.ones(graph.num_vertices)
    targets = np.repeat(np.arange(graph.num_vertices), np.diff(offsets))
    for _ in range(300):
        shares = np.bincount(targets, (ranks / degrees)[sources], graph.num_vertices)
        ranks = 0.15 + 0.85 * shares
    return ranks


def drawn(*, directed: bool, num_vertices: int = 200) -> Graph:
    draw = np.random.default_rng(3)
    near = np.arange(5 * num_vertices) % num_vertices
    return Graph.from_edges(near, (near + draw.integers(1, 9, near.size)) % num_vertices, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_ranks_are_near_the_fixed_point(directed: bool, tmp_path: Path, monkeypatch: Any) -> None:
    graph = drawn(directed=directed)
    save_packed(graph, tmp_path / "store", page_arcs=64)
    host_gpu.use_host_as_gpu(monkeypatch)
    options: dict[str, Any] = {"device": "cuda", "stream": "always"}
    stored = sigps.load(tmp_path / "store")
    found = sigps.run(Rank(tolerance=TOLERANCE), stored, asynchronous=True, **options)
    assert {s.direction for s in found.stats} == {"async"}
    assert sum(s.bytes_read for s in found.stats) > 0
    np.testing.assert_allclose(found["rank"], exact_ranks(graph), rtol=0, atol=20 * TOLERANCE)
    again = sigps.run(Rank(tolerance=TOLERANCE), stored, **options)
    assert {s.direction for s in again.stats} == {"pull"}


def test_what_is_not_built_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    save_packed(drawn(directed=False), tmp_path / "store", page_arcs=64)
    host_gpu.use_host_as_gpu(monkeypatch)
    stored = sigps.load(tmp_path / "store")
    options: dict[str, Any] = {"device": "cuda", "stream": "always", "asynchronous": True}
    with pytest.raises(ConfigError, match="a column of whole weights"):
        sigps.run(SSSP(source=0), stored, **options)
    with pytest.raises(ConfigError, match="transfer= does not go with"):
        sigps.run(SSSP(source=0), stored, transfer="bulk", **options)
    save_packed(drawn(directed=True), tmp_path / "directed", page_arcs=64)
    with pytest.raises(ConfigError, match="for shortest paths in undirected graphs"):
        sigps.run(SSSP(source=0), sigps.load(tmp_path / "directed"), host_memory="1GB", **options)
    with pytest.raises(ConfigError, match=r"PageRank .* cannot run with asynchronous=True"):
        sigps.run(PageRank(), stored, **options)
    with pytest.raises(ConfigError, match="deterministic= does not go with"):
        sigps.run(Rank(tolerance=1e-3), stored, deterministic=True, **options)
    with pytest.raises(ConfigError, match="checkpoint= does not go with"):
        sigps.run(
            Rank(tolerance=1e-3), stored, checkpoint=sigps.Checkpoint(tmp_path / "logs", every=2), **options
        )


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(("page_arcs", "host_memory"), [(1 << 10, None), (1 << 18, None), (1 << 10, "200KB")])
def test_on_a_gpu(page_arcs: int, host_memory: Any, precision: Any, tmp_path: Path) -> None:
    graph = drawn(directed=True, num_vertices=100_000)
    save_packed(graph, tmp_path / "store", page_arcs=page_arcs)
    tolerance = 1e-5 if precision == "single" else 1e-8
    expected = exact_ranks(graph)
    counts = {}
    for asynchronous in (False, True):
        stored = sigps.load(tmp_path / "store")
        more = {} if host_memory is None else {"host_memory": host_memory}
        options: dict[str, Any] = {"device": "cuda", "stream": "always", "precision": precision} | more
        found = sigps.run(Rank(tolerance=tolerance), stored, asynchronous=asynchronous, **options)
        np.testing.assert_allclose(np.asarray(found["rank"]), expected, rtol=0, atol=20 * tolerance)
        counts[asynchronous] = sum(s.bytes_read for s in found.stats)
    assert 0 < counts[True] < counts[False]
