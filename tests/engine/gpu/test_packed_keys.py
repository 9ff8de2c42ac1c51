"""Messages that are grouped by key, over packed edges."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from keyed_programs import KEYED
from packed_runs import on_ranks
from turns import in_turn

import sigps
from sigps.apps import CDLP, WeightedLabels
from sigps.engine.gpu import packed_places, placement
from sigps.errors import ConfigError, DeviceError
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.table import chains

PROGRAMS: dict[str, sigps.Vertex] = {
    "CDLP": CDLP(),
    "WeightedLabels": WeightedLabels(),
    "votes": KEYED["votes"],
    "pulls": KEYED["pulls"],
}


def weighted(graph: sigps.Graph, *, directed: bool = False) -> sigps.Graph:
    """Return a simple graph with whole weights, whose sums have no order."""
    made = graph if directed else graph.undirected(simple=True)
    rows = made.in_edges()
    targets = np.repeat(np.arange(made.num_vertices), np.diff(rows.offsets).astype(np.int64))
    low, high = np.minimum(rows.sources, targets), np.maximum(rows.sources, targets)
    is_kept = np.ones(low.size, bool) if directed else rows.sources <= targets
    weights = ((low * 7 + high * 3) % 9 + 1).astype(np.float64)[is_kept]
    ends = rows.sources[is_kept], targets[is_kept]
    return sigps.Graph.from_edges(*ends, weights=weights, directed=directed)


@pytest.mark.parametrize(
    ("name", "way"),
    in_turn(
        PROGRAMS,
        [
            ("given", [(1, {}), (2, {})]),
            ("degree", [(1, {"transfer": "bulk"}), (3, {})]),
            ("given", [(1, {"host_memory": "3KB"}), (3, {})]),
            ("degree", [(1, {}), (2, {})]),
        ],
    ),
)
def test_messages_by_key_are_those_of_the_interpreter(
    name: str,
    way: tuple[Any, list[tuple[int, dict[str, Any]]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order, several = way
    made = weighted(BATTERY["skewed"].build())
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(PROGRAMS[name], sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    for ranks, more in several:
        options: dict[str, Any] = {"stream": "always"} | more
        found = on_ranks(ranks, PROGRAMS[name], tmp_path / "store", **options)
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            np.testing.assert_array_equal(found[field], expected[field], err_msg=f"{field} {ranks} {more}")


def test_tables_that_do_not_fit_the_gpu_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(weighted(BATTERY["skewed"].build()), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(placement, "key_tables", lambda *given: packed_places.KeyTables(1, 1 << 40))
    with pytest.raises(DeviceError, match="for this run, which needs"):
        sigps.run(CDLP(), sigps.load(tmp_path / "store"), device="cuda", stream="always")


def test_grouped_messages_are_not_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(weighted(BATTERY["skewed"].build()), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    run = functools.partial(sigps.run, device="cuda", stream="always", transfer="bulk", direction="push")
    with pytest.raises(ConfigError, match="are listed or grouped by key, read more than two values"):
        run(CDLP(), sigps.load(tmp_path / "store"))


def test_tables_are_bounded_whatever_rows_span_pages() -> None:
    """One at least; else no more than blocks, rows, and a quarter of a gibibyte."""
    tables = functools.partial(packed_places.key_tables, an_entry=8)
    assert tables(10, 3, 264) == packed_places.KeyTables(3, 21)
    assert tables(10, 300, 264).count == 264
    assert tables(1 << 22, 300, 264).num_bytes(8) <= 1 << 28
    assert tables(1 << 22, 300, 264).count > 1
    assert tables(1 << 30, 300, 264).count == 1


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("order", "page_arcs"), [("given", 64), ("degree", 1 << 10), ("given", 1 << 15), ("degree", 1 << 18)]
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_messages_by_key_are_those_of_cpu_cores(
    name: str, directed: bool, order: Any, page_arcs: int, tmp_path: Path
) -> None:
    """With rows that span pages, and others with more keys than tables have places."""
    program = PROGRAMS[name]
    if directed and not program.declaration.directed:
        pytest.skip(f"{name} takes edges in both directions")
    made = sigps.generate("rmat", scale=15 if page_arcs > 64 else 11, seed=3)
    rows, hubs = made.in_edges(), np.arange(60_000) % made.num_vertices
    ends = np.repeat(np.arange(made.num_vertices), np.diff(rows.offsets).astype(np.int64))
    sources, targets = np.append(rows.sources, hubs), np.append(ends, np.where(np.arange(60_000) % 3, 77, 5))
    made = weighted(sigps.Graph.from_edges(sources, targets, directed=directed), directed=directed)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    assert graph.packed is not None
    num_blocks = graph.packed.rows.table.num_pages
    assert (num_blocks >= 8) == (page_arcs < 1 << 18)
    if page_arcs <= 1 << 10:
        assert max(len(chain) for chain in chains(graph.packed.rows.table)) >= 3
    expected = sigps.run(program, graph, device="cpu")
    several: list[dict[str, Any]] = [
        {"transfer": "bulk"},
        {"host_memory": "1GB"},
        {"transfer": "bulk", "device_memory": "3GB"},
    ]
    if page_arcs < 1 << 18:  # of which the ring between disk and GPU, of four pages, has more than there are
        several.append(
            {"host_memory": graph.packed.rows.num_bytes // 2 if page_arcs < 1 << 15 else 2_000_000}
        )
    for more in several:
        stored = sigps.load(tmp_path / "store")
        found = sigps.run(program, stored, device="cuda", stream="always", **more)
        assert not stored.is_laid_out
        assert sum(s.bytes_read for s in found.stats) > 0 or "device_memory" in more
        for field in expected.fields:
            np.testing.assert_array_equal(found[field], expected[field], err_msg=f"{field} {more}")
