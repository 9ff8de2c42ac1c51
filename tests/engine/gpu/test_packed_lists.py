"""Messages that are read one by one, over packed edges."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import equality_programs
import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from keyed_programs import KEYED
from packed_runs import on_ranks
from turns import in_turn

import sigps
from sigps.apps import LabelPropagation, LeidenRound
from sigps.errors import DeviceError
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.paged import PagedRows

LISTED = ["coreness", "pigeonholes", "letters", "labels"]


def listed_program(name: str, graph: sigps.Graph) -> sigps.Vertex:
    """Return a program that reads messages one by one, and gives the same in whatever order."""
    if name == "labels":
        return LabelPropagation(seed=3)
    if name == "rounds":  # of lists that are sorted
        return LeidenRound(whole=float(graph.num_edges))
    if name == "tables":  # likewise
        return KEYED["tables"]
    given = equality_programs.PROGRAMS[name]
    return given if isinstance(given, sigps.Vertex) else given(int(np.asarray(graph.ids)[0]))


@pytest.mark.parametrize(
    ("name", "way"),
    in_turn(
        LISTED,
        [
            ("given", [(1, {}), (2, {})]),
            ("degree", [(1, {"transfer": "bulk"}), (2, {})]),
            ("given", [(1, {"host_memory": "2KB"}), (2, {})]),
            ("degree", [(1, {}), (1, {"host_memory": "2KB"})]),
        ],
    ),
)
def test_listed_messages_are_those_of_the_interpreter(
    name: str,
    way: tuple[Any, list[tuple[int, dict[str, Any]]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order, several = way
    made = BATTERY["skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    program = listed_program(name, made)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python", max_supersteps=6)
    host_gpu.use_host_as_gpu(monkeypatch)
    for ranks, more in several:
        options: dict[str, Any] = {"stream": "always", "max_supersteps": 6} | more
        found = on_ranks(ranks, program, tmp_path / "store", **options)
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{field} {ranks} {more}")


def test_lists_that_do_not_fit_the_gpu_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build().undirected(simple=True), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(PagedRows, "most_arcs", 1 << 31)
    run, stored = functools.partial(sigps.run, device="cuda", stream="always"), sigps.load(tmp_path / "store")
    with pytest.raises(DeviceError, match="for this run, which needs"):
        run(LabelPropagation(), stored)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("order", "page_arcs"), [("given", 64), ("degree", 1 << 10), ("given", 1 << 15), ("degree", 1 << 18)]
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["coreness", "letters", "labels", "rounds", "tables"])
def test_listed_messages_are_those_of_cpu_cores(
    name: str, directed: bool, order: Any, page_arcs: int, tmp_path: Path
) -> None:
    """With rows that span pages, and one that is a block's in its page."""
    made = sigps.generate("rmat", scale=15 if page_arcs > 64 else 11, seed=3)
    rows, hub = made.in_edges(), np.arange(40_000) % made.num_vertices
    ends = np.repeat(np.arange(made.num_vertices), np.diff(rows.offsets).astype(np.int64))
    sources, targets = np.append(rows.sources, hub), np.append(ends, np.full(hub.size, 77))
    weights = ((sources * 7 + targets * 3) % 9 + 1) * 0.5
    made = sigps.Graph.from_edges(sources, targets, weights=weights, directed=directed)
    program = listed_program(name, made)
    if directed and not program.declaration.directed:
        pytest.skip(f"{name} takes edges in both directions")
    made = made if directed else made.undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu", max_supersteps=6)
    several: list[dict[str, Any]] = [
        {"transfer": "bulk"},
        {"host_memory": "1GB"},
        {"transfer": "bulk", "device_memory": "4GB"},
    ]
    if page_arcs < 1 << 18:  # of which the ring between disk and GPU, of four pages, has more than there are
        room = graph.packed.rows.num_bytes // 2 if page_arcs < 1 << 15 else 2_000_000  # type: ignore[union-attr]
        several.append({"host_memory": room})
    for more in several:
        stored = sigps.load(tmp_path / "store")
        found = sigps.run(program, stored, device="cuda", stream="always", max_supersteps=6, **more)
        assert not stored.is_laid_out
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=f"{field} {more}")
