"""Several columns of packed edges on a GPU: as on CPU cores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from column_programs import COLUMNS, SEARCHES, WEIGHTED, assert_near, with_columns
from turns import in_turn

import sigps
from sigps import ConfigError, GraphError, State, Vertex, run
from sigps.compiler.cuda.compile import macros_of
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.packed_places import bytes_beside_pages, places_in_pages
from sigps.engine.gpu.packed_plan import bytes_beside_packed
from sigps.engine.partition.streamed import StreamedEdges
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.table import chains
from sigps.graph.packing.unpacker import PackedRows


class Nine(Vertex, message=int):
    """Reads more columns than there may be."""

    sum: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.sum = sum(messages)
        for edge in self.out_edges:
            self.sum += edge.column0 + edge.column1 + edge.column2 + edge.column3 + edge.column4
        for edge in self.out_edges:
            self.send(edge, edge.column5 + edge.column6 + edge.column7 + edge.column8)
        self.vote_to_halt()


def test_what_reads_too_many_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, folder = (np.arange(20), (np.arange(20) + 1) % 20), tmp_path / "store"
    columns = {f"column{i}": np.arange(20) + i for i in range(9)}
    save_packed(sigps.Graph.from_edges(*ends, columns=columns, directed=False), folder, order="given")
    host_gpu.use_host_as_gpu(monkeypatch)
    with pytest.raises(ConfigError, match="Nine reads more than 8 values of an edge"):
        run(Nine(), sigps.load(folder), device="cuda", stream="always", transfer="bulk")


@pytest.mark.parametrize("name", [*SEARCHES, "tolls"])
def test_rows_are_pushed_by_two_columns_at_most(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With three, packed edges are not pushed: unpacked ones are."""
    save_packed(with_columns(5, weighted=True), tmp_path / "store")
    host_gpu.use_host_as_gpu(monkeypatch)
    stored = sigps.load(tmp_path / "store")
    options: dict[str, Any] = {"device": "cuda", "stream": "always", "max_supersteps": 1}
    run(COLUMNS[name], stored, direction="pull", **options)
    assert not stored.is_laid_out
    run(COLUMNS[name], stored, direction="push", **options)
    assert stored.is_laid_out == (name == "tolls")


def test_a_damaged_page_of_a_second_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(with_columns(5, weighted=True), tmp_path / "store", page_arcs=256)
    host_gpu.use_host_as_gpu(monkeypatch)
    bring = PackedRows.bring_page

    def bring_damaged(self: PackedRows, page: int, room: Any, columns: Sequence[str]) -> None:
        bring(self, page, room, columns)
        if page == 1:
            begins = self.table.words, self.columns[columns[0]].begins
            room[sum(int(words[2] - words[1]) for words in begins) + 1] += 1  # how many numbers it has

    monkeypatch.setattr(PackedRows, "bring_page", bring_damaged)
    for program, name in (("cheapest", "time"), ("weighed", "lanes")):
        with pytest.raises(GraphError, match=f"the column '{name}' is damaged in page 1"):
            run(COLUMNS[program], sigps.load(tmp_path / "store"), device="cuda", stream="always")


@pytest.mark.parametrize("name", ["tolls", "walked"])
def test_the_plan_counts_every_column(name: str, tmp_path: Path) -> None:
    """Also those of whole pages that blocks unpack, and of edges that compute() walks."""
    save_packed(with_columns(12, weighted=True), tmp_path / "store", order="given", page_arcs=1 << 12)
    graph, program = sigps.load(tmp_path / "store"), analyse(COLUMNS[name], "double")
    assert graph.packed is not None
    rows, n = graph.packed.rows, graph.num_vertices
    defines = macros_of(program, graph.column_types(), narrow_ids=True)
    planned = bytes_beside_packed(program, defines, rows, n, pushes=False, has_heads=False, num_blocks=132)
    edges = StreamedEdges(PagedRows(rows, 1), n)
    names = {"tolls": ("weight", "time", "cost"), "walked": ("time", "cost", "weight", "ratio", "lanes")}[
        name
    ]
    taken = bytes_beside_pages(edges, places_in_pages(edges.rows), n, 132, names)
    assert planned["graph"] + planned["unpacking"] == pytest.approx(taken, rel=0.05)
    assert taken > 1.3 * bytes_beside_pages(edges, places_in_pages(edges.rows), n, 132, names[:1])
    most_arcs = max(int(rows.table.arcs[c[-1] + 1] - rows.table.arcs[c[0]]) for c in chains(rows.table))
    an_edge = 4 + 8 + 8 + 4 + 8 + 1  # gid, id, weight, ratio, time, lanes
    assert planned.get("walks") == (None if name == "tolls" else 8 * (n + 1) + 132 * most_arcs * an_edge)


CASES = [(*case, False) for case in in_turn(COLUMNS, [256, 1 << 18])]
CASES += [(*case, True) for case in in_turn(WEIGHTED, [1 << 18, 256])]


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "page_arcs", "weighted"), CASES)
def test_as_on_cores(name: str, page_arcs: int, weighted: bool, tmp_path: Path) -> None:
    save_packed(with_columns(12, weighted=weighted), tmp_path / "store", order="given", page_arcs=page_arcs)
    expected = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="cpu", asynchronous=False)
    every: list[dict[str, Any]] = [{}, {"transfer": "bulk"}, {"device_memory": "900MB"}]
    every += [{"host_memory": "1MB"}] if page_arcs == 256 else []
    for more in every:
        stored = sigps.load(tmp_path / "store")
        options = {"device": "cuda", "stream": "always", "asynchronous": False} | more
        found = run(COLUMNS[name], stored, **options)
        assert not stored.is_laid_out
        assert_near(found, expected, 1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_go_both_ways(name: str, direction: str, tmp_path: Path) -> None:
    save_packed(with_columns(12, weighted=False), tmp_path / "store", order="degree", page_arcs=1 << 12)
    expected = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="cpu", asynchronous=False)
    options: dict[str, Any] = {"stream": "always", "direction": direction, "asynchronous": False}
    found = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="cuda", **options)
    assert any(s.direction == "push" for s in found.stats) == (direction == "push")
    assert_near(found, expected, 1e-9)
