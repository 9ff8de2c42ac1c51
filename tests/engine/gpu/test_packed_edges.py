"""Edges that cross packed: kernels unpack what CPU cores do, and runs on them equal others."""

from __future__ import annotations

import errno
import functools
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import equality_programs
import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from host_kernels import host_kernels
from plain_pages import read_rows
from team_programs import walking_program
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import inf
from sigps.apps import BFS, CDLP, SSSP, WCC, KCore, LabelPropagation, LeidenRound, LongestPath, PageRank
from sigps.apps.sssp import Path as Way
from sigps.compiler.cuda.compile import c_type, compile_for_cuda, link
from sigps.compiler.explain import example_of
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.engine.gpu import packed_edges, spec
from sigps.engine.gpu.launch import WIDE
from sigps.engine.gpu.packed_edges import NO_PAGE
from sigps.engine.gpu.packed_places import (
    NUM_HEADS,
    first_words,
    front_words,
    order_of_chains,
    places_in_pages,
)
from sigps.engine.gpu.page_feed import PageFeed
from sigps.engine.gpu.variant import FED, PEERS, Packing
from sigps.errors import CompileError, ConfigError, DeviceError, GraphError
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.packer import PackableRows
from sigps.graph.packing.page_files import PageFile
from sigps.graph.packing.paged import PagedRows
from sigps.graph.packing.unpacker import PackedColumn, PackedRows
from sigps.job import streaming
from sigps.kernels.cuda.lease import PACKED_ROWS

NUM_VERTICES = 60_000


def packed_rows(
    degrees: np.ndarray, spread: float, page_arcs: int, seed: int, column: np.ndarray | None = None
) -> PagedRows:
    draw = np.random.default_rng(seed)
    targets = draw.geometric(1 / spread, degrees.sum()) - 1
    offsets = np.zeros(degrees.size + 1, np.uint64)
    np.cumsum(degrees, out=offsets[1:])
    rows = np.repeat(np.arange(degrees.size), degrees)
    targets = (targets + rows * (seed % 2)) % NUM_VERTICES
    targets = targets[np.lexsort((targets, rows))].astype(np.uint32)
    packable = PackableRows(offsets, targets, [] if column is None else [column], None, page_arcs)
    parts = list(packable.pages(1))
    pages = [page.words for page in parts]
    table = packable.table
    table.words[1:] = np.cumsum([page.size for page in pages])
    columns = {}
    if column is not None:
        own = [page.columns[0] for page in parts]
        begins = np.append(0, np.cumsum([words.size for words in own])).astype(np.uint64)
        columns["weight"] = PackedColumn(column.dtype, begins, np.concatenate(own))
    return PagedRows(PackedRows(NUM_VERTICES, table, np.concatenate(pages), columns, "a store"), 1)


def unpacked(paged: PagedRows, way: int, num_resident: int, words: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return all targets as kernels unpack them, the damaged page, and the words that were copied."""
    given, damaged, num_read = reader(paged, num_resident, words)
    targets = np.full(int(paged.offsets[-1]), NO_PAGE, np.uint32)
    kernel = host_kernels("packed_reference", {})["unpack_rows_block_mapped"]
    kernel.launch(1, 64, (given["rows"], paged.offsets, np.uint32(way), targets, np.zeros(1)))
    return targets, int(damaged[0]), int(num_read[0])


def reader(
    paged: PagedRows, num_resident: int, words: np.ndarray, column: str | None = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return what kernels read pages by, the first of which are elsewhere; the damaged page, and words that crossed."""
    table, places = paged.packed.table, places_in_pages(paged)
    firsts = first_words(paged.packed, column)
    longest, damaged, num_read = (
        int(np.diff(firsts).max()),
        np.array([NO_PAGE], np.uint32),
        np.zeros(2, np.uint64),
    )
    sizes, own = front_words(table, places, column), front_words(table, places)
    column_places = np.diff(table.words).astype(np.uint32)
    fronts = np.concatenate(
        [
            words[at : at + size]
            for first, place, mine, all_of in zip(firsts, column_places, own, sizes, strict=False)
            for at, size in ((first, mine), (first + place, all_of - mine))
        ]
    )
    scratch = np.zeros(longest + 64 * 800, np.uint32)
    begin = int(firsts[num_resident])
    on_device, on_host = words[:begin].copy(), np.concatenate([words[begin:], np.zeros(1, np.uint32)])
    arrays: dict[str, Any] = {
        "resident": on_device,
        "first_words": firsts.astype(np.uint64),
        "scratch": scratch,
        "order": order_of_chains(paged, num_resident),
        "damaged": damaged,
        "num_read": num_read,
        "fronts": fronts,
        "first_fronts": np.append(0, np.cumsum(sizes))[:-1].astype(np.uint32),
    }
    if column is not None:
        arrays["column_places"] = column_places
    names = "first_rows", "chains", "first_gaps", "parts", "chains_of"
    arrays |= {name: getattr(places, name) for name in names}
    given = np.zeros((), PACKED_ROWS)
    for name, array in arrays.items():
        given[name] = array.ctypes.data
    given["words"] = on_host.ctypes.data - 4 * begin
    given["num_resident"], given["scratch_words"], given["page_words"] = begin, scratch.size, longest
    given["group_words"] = 64 * 800
    given["num_chains"], given["num_rows"] = len(paged.chains), paged.offsets.size - 1
    given["num_targets"] = NUM_VERTICES
    return {"rows": given, "arrays": arrays, "host": on_host}, damaged, num_read


def expected(paged: PagedRows) -> list[int]:
    """Return the targets page by page, as the layout of pages is written down."""
    table, found = paged.packed.table, list[int]()
    for page in range(table.num_pages):
        own = paged.packed.words[table.words_of(page)].tolist()
        found += [target for row in read_rows(own, int(table.first_rows[page])) for target in row]
    return found


SOME = np.random.default_rng(7)
DEGREES = {
    "short": SOME.integers(0, 4, 4000),
    "long": np.array([2500, 0, 1, 1, 3000, 1, 0, 33, 1024, 1025, 1]),
    "ones": np.ones(3000, np.int64),
    "spanning": np.array([3, 5000, 2, 0, 1500, 1, 40]),
    "skewed": np.sort(SOME.zipf(1.5, 600).clip(0, 3000))[::-1],
}


@pytest.mark.parametrize("spread", [1.0, 40.0, 20_000.0])
@pytest.mark.parametrize("name", DEGREES)
def test_rows_are_unpacked_by_threads_warps_and_blocks(name: str, spread: float) -> None:
    paged = packed_rows(DEGREES[name], spread, 1200 if name == "spanning" else 1 << 18, len(name))
    words, table = paged.packed.words.copy(), paged.packed.table
    resident = table.num_pages // 2
    for way in (0, 1, 2):
        targets, damaged, num_read = unpacked(paged, way, resident, words)
        assert damaged == NO_PAGE
        assert num_read == int(table.words[-1] - table.words[resident])
        np.testing.assert_array_equal(targets, expected(paged))
    targets, damaged, num_read = unpacked(paged, 3, resident, words)
    assert damaged == NO_PAGE
    np.testing.assert_array_equal(targets, expected(paged))
    assert unpacked(paged, 3, table.num_pages, words)[2] == 0  # all are on the device
    assert num_read > 0


VALUES = {
    "whole": lambda draw, size: draw.integers(-50, 200, size).astype(np.float64),
    "fractions": lambda draw, size: draw.random(size),
    "constant": lambda draw, size: np.full(size, 7, np.uint8),
    "long": lambda draw, size: np.where(draw.random(size) < 0.01, 1 << 30, 3),
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", ["long", "spanning", "skewed"])
def test_columns_are_unpacked_with_rows(name: str, values: str) -> None:
    size = int(DEGREES[name].sum())
    column = VALUES[values](np.random.default_rng(3), size)
    paged = packed_rows(DEGREES[name], 40.0, 1200 if name == "spanning" else 1 << 18, len(name), column)
    places, packed = places_in_pages(paged), paged.packed
    begins = [packed.table.words.astype(int), packed.columns["weight"].begins.astype(int)]
    sources = [packed.words, packed.columns["weight"].words]
    words = np.concatenate(
        [
            own[begin[page] : begin[page + 1]]
            for page in range(packed.table.num_pages)
            for own, begin in zip(sources, begins, strict=True)
        ]
    )
    given, damaged, _ = reader(paged, 0, words, "weight")
    assert sum(first_words(packed, "weight")) == sum(sum(begins))
    assert places.num_parts.size
    kernel = host_kernels("packed_reference", {"SIGPS_COLUMN": c_type(column.dtype)})[
        "unpack_rows_block_mapped"
    ]
    for way in (0, 1, 2, 3):
        targets, found = np.full(size, NO_PAGE, np.uint32), np.full(size, -1.0)
        kernel.launch(1, 64, (given["rows"], paged.offsets, np.uint32(way), targets, found))
        assert damaged[0] == NO_PAGE
        np.testing.assert_array_equal(targets, expected(paged))
        np.testing.assert_array_equal(found, column)


@pytest.mark.parametrize("name", DEGREES)
def test_heads_are_the_targets_with_the_smallest_gids(name: str) -> None:
    paged = packed_rows(DEGREES[name], 40.0, 1200 if name == "spanning" else 1 << 18, len(name))
    given, damaged, _ = reader(paged, 0, paged.packed.words.copy())
    degrees = np.diff(paged.offsets).astype(np.uint32)
    gids = np.random.default_rng(5).permutation(NUM_VERTICES).astype(np.uint32)
    heads = np.zeros((degrees.size, NUM_HEADS), np.uint32)
    kernel = host_kernels("heads", {})["find_heads_block_mapped"]
    kernel.launch(1, 64, (given["rows"], degrees, gids, np.zeros(1, np.uint32), heads))
    assert damaged[0] == NO_PAGE
    targets = np.split(np.array(expected(paged), np.int64), paged.offsets[1:-1].astype(int))
    for row, own in enumerate(targets):
        smallest = sorted(gids[own].tolist())
        found = [gids[head] for head in heads[row].tolist() if head != NO_PAGE]
        assert found == sorted(found)
        distinct = sorted(set(smallest))
        assert set(found) == set(distinct[: len(set(found))])
        assert len(found) == NUM_HEADS or set(found) == set(distinct)


def test_pages_on_the_device_are_taken_between_others() -> None:
    paged = packed_rows(np.full(600, 100), 40.0, 1000, 1)
    order = order_of_chains(paged, 20).tolist()
    assert sorted(order) == list(range(60))
    assert [sum(chain < 20 for chain in order[i : i + 6]) for i in range(0, 60, 6)] == [2] * 10


def test_what_is_no_page_is_told() -> None:
    paged = packed_rows(DEGREES["spanning"], 40.0, 1200, 1)
    begin = int(paged.packed.table.words[2])
    gaps = int(paged.packed.words[begin + 6])
    for at, value in ((5, 1 << 31), (6, 1 << 31), (gaps, 1 << 30), (gaps + 3, 1 << 30)):
        words = paged.packed.words.copy()
        words[begin + at] = value
        _, damaged, _ = unpacked(paged, 2, 0, words)
        assert damaged == 2, at


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("name", ["skewed", "isolated", "parallel_edges_undirected", "string_ids"])
def test_runs_on_packed_edges_equal_the_interpreter(
    name: str, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY[name].build(), tmp_path / "store", order=order, page_arcs=8)
    program = PageRank(iterations=4)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    for _ in range(2):
        found = sigps.run(program, graph, device="cuda", stream="always")
        assert found.stats[1].bytes_read > 0
        np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("transfer", ["auto", "bulk"])
@pytest.mark.parametrize(
    "program", [BFS(source=0), WCC(), KCore(), SSSP(source=0)], ids=lambda program: type(program).__name__
)
def test_searches_on_packed_edges_equal_the_interpreter(
    program: sigps.Vertex, transfer: Any, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BATTERY["weight_ties" if isinstance(program, SSSP) else "skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    for _ in range(2):
        found = sigps.run(
            program, graph, device="cuda", stream="always", transfer=transfer, asynchronous=False
        )
        for field in expected.fields:
            np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


ON_RANKS = [PageRank(iterations=4), BFS(source=0), WCC(), KCore(), SSSP(source=0)]


@pytest.fixture(autouse=True)
def ranks_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "GPUS_STREAM_TOGETHER", True)


def on_ranks(size: int, program: sigps.Vertex, folder: Path | list[Path], **options: Any) -> sigps.Result:
    """Return rank 0's result of a run on packed edges on so many ranks, none of which has edges in memory."""

    def work(group: ThreadGroup) -> tuple[sigps.Result, bool]:
        stored = sigps.load(folder, group=group)
        return sigps.run(program, stored, device="cuda", **options), stored.is_laid_out

    found = run_ranks(size, work)
    assert not any(is_laid_out for _, is_laid_out in found)
    return found[0][0]


@pytest.mark.parametrize("has_nccl", [False, True])
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", ON_RANKS, ids=lambda program: type(program).__name__)
def test_ranks_stream_their_own_pages(
    program: sigps.Vertex,
    ranks: int,
    order: Any,
    has_nccl: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = BATTERY["weight_ties" if isinstance(program, SSSP) else "skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch, has_nccl=has_nccl)
    packed = sigps.load(tmp_path / "store").packed
    assert packed is not None
    rows = packed.rows
    for more in ({}, {"transfer": "bulk"}, {"device_memory": "1GB"}):
        found = on_ranks(ranks, program, tmp_path / "store", stream="always", **more)
        read = [s.bytes_read for s in found.stats]
        if "device_memory" in more:  # all pages are on the device
            assert not any(read)
        elif isinstance(program, PageRank):
            assert read[1] == rows.words.nbytes
        for field in expected.fields:
            np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)


@pytest.mark.parametrize("graph", ["directed_cycle", "one_vertex", "only_isolated", "string_ids"])
def test_ranks_some_of_which_have_no_page(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY[graph].build(), tmp_path / "store", page_arcs=8)
    expected = sigps.run(PageRank(iterations=4), sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    found = on_ranks(3, PageRank(iterations=4), tmp_path / "store", stream="always")
    np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    "program",
    [PageRank(iterations=4), BFS(source=0), SSSP(source=0)],
    ids=lambda program: type(program).__name__,
)
def test_pages_that_the_host_may_not_hold_come_from_disk(
    program: sigps.Vertex, ranks: int, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sigps.generate("rmat", scale=6, seed=1, weights="random").undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    stored = sigps.load(tmp_path / "store")
    assert stored.packed is not None
    reads = list[int]()
    bring = PackedRows.bring_page
    monkeypatch.setattr(PackedRows, "bring_page", lambda *given: (reads.append(given[1]), bring(*given))[1])
    limit = 4 * 2 * int(np.diff(stored.packed.rows.table.words.astype(int)).max()) * 6
    for more in ({}, {"transfer": "bulk"}):
        reads.clear()
        found = on_ranks(ranks, program, tmp_path / "store", stream="always", host_memory=limit, **more)
        assert len(reads) > 2 * len(set(reads)) > 0  # again in each superstep
        for field in expected.fields:
            np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)


def directed_graph(scale: int) -> sigps.Graph:
    """Return a graph with a path behind it, so that many supersteps have one sender."""
    made = sigps.generate("rmat", scale=scale, seed=1, directed=True)
    rows, first = made.in_edges(), made.num_vertices
    ends = np.repeat(np.arange(first), np.diff(rows.offsets).astype(np.int64))
    sources = np.concatenate([rows.sources, [0], np.arange(first, first + 20)])
    targets = np.concatenate([ends, np.arange(first, first + 21)])
    return sigps.Graph.from_edges(sources, targets, weights=((sources * 7 + targets * 3) % 9 + 1) * 0.5)


DIRECTED = [BFS(source=0), SSSP(source=0), LongestPath()]


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("program", DIRECTED[:2], ids=lambda program: type(program).__name__)
def test_searches_of_directed_graphs_stay_packed(
    program: sigps.Vertex, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    save_packed(directed_graph(6), folders, order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(folders), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    for ranks, more in (
        (1, {"host_memory": "1GB"}),
        (1, {"host_memory": "4KB"}),
        (1, {"transfer": "bulk"}),
        (2, {}),
    ):
        found = on_ranks(ranks, program, folders, stream="always", **more)
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]), str(more))


def test_searches_of_directed_graphs_stay_packed_where_the_host_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(directed_graph(6), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(BFS(source=0), graph, device="python")
    for room, stays in ((20_000, True), (1 << 40, False)):
        monkeypatch.setattr(streaming, "available_memory", lambda room=room: room)
        stored = sigps.load(tmp_path / "store")
        if stays:
            found = sigps.run(BFS(source=0), stored, device="cuda", stream="always")
            assert not stored.is_laid_out
            np.testing.assert_array_equal(found["level"], expected["level"])
        else:
            given = BFS(source=0), analyse(BFS(source=0), "double"), stored, RunOptions(stream="always"), 1
            assert "searches a directed graph" in streaming._obstacle_to_packed(*given)


def test_pages_come_from_the_disks_of_several_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    made = sigps.generate("rmat", scale=7, seed=1, weights="random").undirected(simple=True)
    save_packed(made, folders, page_arcs=8)
    expected = sigps.run(SSSP(source=0), sigps.load(folders), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    read_from, feeds = set[str](), list[PageFeed]()
    read_into, running = PageFile.read_into, PageFeed.running

    def noted(file: PageFile, *given: Any) -> None:
        read_from.add(str(file.folder_of(given[-1])))
        read_into(file, *given)

    monkeypatch.setattr(
        PageFeed, "running", lambda feed, *given: (feeds.append(feed), running(feed, *given))[1]
    )

    monkeypatch.setattr(PageFile, "read_into", noted)
    monkeypatch.setattr(packed_edges, "available_cores", lambda: 1)
    found = on_ranks(1, SSSP(source=0), folders, stream="always", host_memory="8KB")
    assert read_from == {str(folder) for folder in folders}
    assert {feed._num_threads for feed in feeds} == {6}  # two readers for each folder
    for field in expected.fields:
        np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)
    os.truncate(folders[1] / "pages@1.bin", 128)
    with pytest.raises(GraphError, match=rf"{folders[1]}"):
        on_ranks(1, SSSP(source=0), folders, stream="always", host_memory="8KB")


def test_what_the_disk_does_not_give_in_the_middle_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    bring, reads = PackedRows.bring_page, list[int]()

    def fail(rows: PackedRows, page: int, *given: Any) -> None:
        reads.append(page)
        if len(reads) > 100:
            raise GraphError(f"page {page:,} cannot be read")
        bring(rows, page, *given)

    monkeypatch.setattr(PackedRows, "bring_page", fail)
    graph = sigps.load(tmp_path / "store")
    with pytest.raises(GraphError, match="cannot be read"):
        sigps.run(PageRank(iterations=30), graph, device="cuda", stream="always", host_memory="2KB")
    with pytest.raises(DeviceError, match="through 1,024 bytes of this host's memory at least"):
        sigps.run(PageRank(iterations=30), graph, device="cuda", stream="always", host_memory=1000)
    with pytest.raises(ConfigError, match=r"host_memory is of packed pages.*transfer= says"):
        sigps.run(PageRank(), graph, device="cuda", transfer="rows", host_memory="2KB")


def test_what_ranks_cannot_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    made = BATTERY["skewed"].build()
    save_packed(made, tmp_path / "store", page_arcs=8)
    plain = "edges that cross to GPUs packed"

    def refused(match: str, program: sigps.Vertex, **options: Any) -> None:
        with pytest.raises(ConfigError, match=match):
            on_ranks(2, program, tmp_path / "store", **options)

    always: dict[str, Any] = {"stream": "always"}
    refused(
        "on several ranks, and where messages are listed are pulled", PageRank(), direction="push", **always
    )
    refused(f"{plain}, and transfer= says", PageRank(), transfer="rows", **always)
    limited: dict[str, Any] = {
        "device": "cuda",
        "stream": "never",
        "device_memory": "1GB",
    }  # a limit and no more
    found = run_ranks(2, lambda g: sigps.run(PageRank(), sigps.load(tmp_path / "store", group=g), **limited))[
        0
    ]
    np.testing.assert_allclose(
        found["rank"], sigps.run(PageRank(), made, device="python")["rank"], rtol=1e-12
    )
    with pytest.raises(ConfigError, match="needs device='cuda'; this run has 'auto'"):
        run_ranks(
            2, lambda g: sigps.run(PageRank(), sigps.load(tmp_path / "store", group=g), device_memory="1GB")
        )


def test_ranks_stream_by_themselves_where_edges_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(sigps.generate("rmat", scale=11, seed=1), tmp_path / "store", page_arcs=512)
    host_gpu.use_host_as_gpu(monkeypatch)
    program = PageRank(iterations=2)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    fits = run_ranks(
        2, lambda group: sigps.run(program, sigps.load(tmp_path / "store", group=group), device="cuda")
    )[0]
    assert fits.stats[1].bytes_read == 0
    limit, streamed = 700_000, None
    while streamed is None:  # until each rank has said what it needs
        try:
            streamed = on_ranks(2, program, tmp_path / "store", device_memory=limit)
        except DeviceError as error:
            said = re.search(r"needs ([\d,]+) even with its edges packed", str(error))
            assert said is not None
            assert limit < int(said[1].replace(",", ""))
            limit = int(said[1].replace(",", "")) + 20_000
    assert limit > 700_000
    assert streamed.stats[1].bytes_read > 0
    for found in (fits, streamed):
        np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)


def test_what_cannot_cross_packed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = BATTERY["skewed"].build().undirected()
    bulk: dict[str, Any] = {"stream": "always", "transfer": "bulk", "device": "cuda"}
    with pytest.raises(ConfigError, match="not opened from a packed store"):
        sigps.run(PageRank(), graph, **bulk)
    graph.save(tmp_path / "store", packed=True)
    graph = sigps.load(tmp_path / "store")
    with pytest.raises(ConfigError, match="compute\\(\\) walks them"):
        sigps.run(
            walking_program("for edge in self.out_edges:\n    self.n += edge.target % 2"), graph, **bulk
        )
    with pytest.raises(ConfigError, match="aggregators of Census have more than 256 bytes"):
        sigps.run(equality_programs.PROGRAMS["census"], graph, **bulk)
    with pytest.raises(ConfigError, match="are pulled"):
        sigps.run(BFS(source=0), graph, direction="push", **bulk)
    with pytest.raises(ConfigError, match="edges that stream to a GPU"):
        sigps.run(PageRank(), graph, **bulk | {"device": "cpu"})


def test_what_the_disk_does_not_give_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    graph, reads, preadv = sigps.load(tmp_path / "store"), list[int](), os.preadv
    assert graph.packed is not None
    num_pages = graph.packed.rows.table.num_pages

    def fail(*given: Any) -> int:
        reads.append(given[-1])
        if len(reads) > num_pages:  # degrees have been read
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(*given)

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(GraphError, match=r"pages.bin: page [\d,]+ cannot be read: Input/output error"):
        sigps.run(PageRank(), graph, device="cuda", stream="always")


class Counted(SSSP):
    """With aggregators of as many bytes as packed edges take, messages of 16 and a column: all of shared memory."""

    wide = sigps.Aggregator.sum(sigps.Vector[int, 32])

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.wide[self.id % 32] += 1
        best = min(messages, default=Way(inf, self.id))
        if best.length < self.distance:
            self.distance = best.length
            for edge in self.out_edges:
                self.send(edge, Way(best.length + edge.weight, self.id))


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
def test_kernels_over_packed_edges_link() -> None:
    made = PageRank(), WCC(), SSSP(source=0), Counted(source=0), LabelPropagation()
    programs = [analyse(program, "double") for program in made]
    form = programs[1].priority_form
    assert form is not None
    for program in (*programs, form):
        compiled = compile_for_cuda(program, {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90")
        packing = Packing.PULLED if program in (programs[0], programs[-1]) else Packing.PUSHED
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | packing.macros(compiled, has_heads=True)
        assert b"run_lease" in link(compiled, "lease", "sm_90", macros)


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda.core is not installed")
@pytest.mark.parametrize("program", [BFS(source=0), Counted(source=0)], ids=["BFS", "Counted"])
def test_kernels_over_packed_edges_of_peers_link(program: sigps.Vertex) -> None:
    compiled = compile_for_cuda(
        analyse(program, "double"), {"weight": np.dtype(np.uint8)}, narrow_ids=True, arch="sm_90"
    )
    macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | Packing.PART.macros(compiled, has_heads=True)
    assert b"run_lease" in link(compiled, "lease", "sm_90", macros | PEERS | FED)


SEARCHES = [BFS(source=1), WCC(), KCore(), SSSP(source=1)]


@pytest.mark.gpu
@pytest.mark.parametrize("program", SEARCHES, ids=lambda program: type(program).__name__)
@pytest.mark.parametrize(
    ("order", "page_arcs", "unit"),
    [
        ("given", 64, None),
        ("degree", 64, 0.3),
        ("given", 1 << 13, 1.0),
        ("degree", 1 << 13, None),
        ("degree", 1 << 18, 1.0),
        ("given", 1 << 18, 0.3),
    ],
)
def test_searches_read_rows_and_pages(
    order: Any, page_arcs: int, unit: float | None, program: sigps.Vertex, tmp_path: Path
) -> None:
    """With rows that span pages, small components, and a number of vertices that is no multiple of 32."""
    drawn = sigps.generate("rmat", scale=15 if page_arcs > 64 else 11, seed=3)
    rows = drawn.in_edges()
    targets = np.repeat(np.arange(drawn.num_vertices), np.diff(rows.offsets).astype(np.int64))
    first = drawn.num_vertices
    path = np.arange(first, first + 501)
    sources = np.concatenate([rows.sources, path[:-1], np.arange(20_000) % first])
    targets = np.concatenate([targets, path[1:], np.full(20_000, 77)])
    numbers = np.minimum(sources, targets) * 7 + np.maximum(sources, targets) * 13
    weights = None if unit is None else (numbers % 200 + 1) * unit
    made = sigps.Graph.from_edges(sources, targets, weights=weights).undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu")
    limit = {"device_memory": "40MB" if page_arcs < 1 << 18 else "600MB"}
    options: list[dict[str, Any]] = [
        {},
        {"asynchronous": False, "direction": "push"},
        {"direction": "pull"},
        {"transfer": "bulk"},
        limit,
    ]
    for more in options:
        found = sigps.run(program, graph, device="cuda", stream="always", **more)
        for field in expected.fields:
            np.testing.assert_array_equal(
                np.asarray(found[field]), np.asarray(expected[field]), f"{program} {more}"
            )
        assert sum(s.bytes_read for s in found.stats) > 0 or more is limit, (program, more)
        assert sum(s.blocks_skipped for s in found.stats) > 0


@pytest.mark.gpu
@pytest.mark.parametrize(("order", "scale", "page_arcs"), [("given", 12, 64), ("degree", 16, 1 << 13)])
@pytest.mark.parametrize(
    "program", [PageRank(iterations=5), *SEARCHES], ids=lambda program: type(program).__name__
)
def test_pages_come_from_disk(
    program: sigps.Vertex, order: Any, scale: int, page_arcs: int, tmp_path: Path
) -> None:
    made = sigps.generate("rmat", scale=scale, seed=3, weights="random").undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    assert graph.packed is not None
    expected = sigps.run(program, graph, device="cpu")
    longest = int(np.diff(graph.packed.rows.table.words.astype(int)).max())
    for limit in (graph.packed.rows.words.nbytes // 2, 4 * 2 * longest * 5):
        for more in ({}, {"transfer": "bulk"}):
            stored = sigps.load(tmp_path / "store")
            found = sigps.run(program, stored, device="cuda", stream="always", host_memory=limit, **more)
            assert sum(s.bytes_read for s in found.stats) > 0
            for field in expected.fields:
                mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=f"{field} {limit} {more}")


@pytest.mark.gpu
@pytest.mark.parametrize(("order", "scale", "page_arcs"), [("given", 12, 64), ("degree", 16, 1 << 13)])
@pytest.mark.parametrize("program", DIRECTED, ids=lambda program: type(program).__name__)
def test_searches_of_directed_graphs_stay_packed_on_a_gpu(
    program: sigps.Vertex, order: Any, scale: int, page_arcs: int, tmp_path: Path
) -> None:
    made = directed_graph(scale)
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    if isinstance(program, LongestPath):  # which wants no circles
        kept = np.asarray(made.in_edges().sources)
        ends = np.repeat(np.arange(made.num_vertices), np.diff(made.in_edges().offsets).astype(np.int64))
        made = sigps.Graph.from_edges(kept[kept < ends], ends[kept < ends])
    save_packed(made, folders, order=order, page_arcs=page_arcs)
    graph = sigps.load(folders)
    assert graph.packed is not None
    expected = sigps.run(program, graph, device="cpu")
    longest = int(np.diff(graph.packed.rows.table.words.astype(int)).max())
    for more in (
        {"host_memory": "1GB"},
        {"host_memory": "1GB", "device_memory": "40MB" if page_arcs == 64 else "600MB"},
        {"host_memory": 4 * 2 * longest * 5},
        {"transfer": "bulk"},
    ):
        stored = sigps.load(folders)
        found = sigps.run(program, stored, device="cuda", stream="always", **more)
        assert not stored.is_laid_out
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_array_equal(mine, theirs, f"{field} {more}")


LISTED = ["coreness", "pigeonholes", "letters", "labels"]


def listed_program(name: str, graph: sigps.Graph) -> sigps.Vertex:
    """Return a program that reads messages one by one, and gives the same in whatever order."""
    if name == "labels":
        return LabelPropagation(seed=3)
    given = equality_programs.PROGRAMS[name]
    return given if isinstance(given, sigps.Vertex) else given(int(np.asarray(graph.ids)[0]))


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("name", LISTED)
def test_listed_messages_are_those_of_the_interpreter(
    name: str, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BATTERY["skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    program = listed_program(name, made)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python", max_supersteps=6)
    host_gpu.use_host_as_gpu(monkeypatch)
    for ranks, more in ((1, {}), (1, {"transfer": "bulk"}), (1, {"host_memory": "2KB"}), (2, {})):
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


def test_sorted_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build().undirected(), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    options: dict[str, Any] = {"device": "cuda", "stream": "always", "transfer": "bulk"}
    sorts = analyse(example_of(LeidenRound, {}), "double")
    assert sorts.sorts_by
    why = spec._STREAMING.streaming_obstacle(sorts, graph, RunOptions())
    assert "are sorted, for which all lists are in memory at once" in why
    with pytest.raises(ConfigError, match="grouped by key, not read, or do not go along edges"):
        sigps.run(CDLP(), graph, **options)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("order", "page_arcs"), [("given", 64), ("degree", 1 << 10), ("given", 1 << 15), ("degree", 1 << 18)]
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["coreness", "letters", "labels"])
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
        {"host_memory": graph.packed.rows.num_bytes // 2},  # type: ignore[union-attr]
        {"transfer": "bulk", "device_memory": "1GB"},
    ]
    for more in several:
        stored = sigps.load(tmp_path / "store")
        found = sigps.run(program, stored, device="cuda", stream="always", max_supersteps=6, **more)
        assert not stored.is_laid_out
        for field in expected.fields:
            mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, err_msg=f"{field} {more}")


TAKEN = ["wcc", "bfs", "reach", "floods", "gathers", "sssp", "product", "climb"]


def compare_programs(graph: str, order: Any, folder: Path, run: Any, names: list[str]) -> set[str]:
    """Run those programs that packed edges take, compare them with the interpreter's results, and return which."""
    made = BATTERY[graph].build()
    made = made.undirected() if made.directed else made
    save_packed(made, folder / "store", order=order, page_arcs=8)
    stored, ran = sigps.load(folder / "store"), []
    for name in names:
        given = equality_programs.PROGRAMS[name]
        program = given if isinstance(given, sigps.Vertex) else given(int(np.asarray(made.ids)[0]))
        try:
            found = run(program, stored, device="cuda", stream="always", deterministic=True)
        except (ConfigError, CompileError, GraphError):
            continue
        except DeviceError as error:
            if "is not built for" not in str(error):
                raise
            continue
        if sum(s.bytes_read for s in found.stats):
            ran.append(name)
        elif name not in TAKEN:
            continue
        expected = sigps.run(program, stored, device="python", deterministic=True)
        for field in expected.fields:
            np.testing.assert_allclose(
                np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-9, err_msg=name
            )
    return set(ran)


@pytest.mark.parametrize("order", ["given", "degree"])
def test_programs_on_packed_edges_equal_the_interpreter(
    order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    run, names = functools.partial(sigps.run, asynchronous=False), list(equality_programs.PROGRAMS)
    listed = {"coreness"} if order == "given" else set()  # whose order is that of edges
    assert compare_programs("skewed", order, tmp_path, run, names) == set(TAKEN) | listed


@pytest.mark.gpu
@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize(
    "graph", ["skewed", "isolated", "grid", "star_out", "parallel_edges_undirected", "two_components"]
)
def test_programs_on_packed_edges_equal_the_interpreter_on_a_gpu(
    graph: str, order: Any, name: str, tmp_path: Path
) -> None:
    ran = compare_programs(graph, order, tmp_path, sigps.run, [name])
    assert ran == {name} or graph != "skewed"  # heads of short rows may be enough


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize(
    ("program", "directed"),
    [(PageRank(iterations=5), True), (PageRank(iterations=5), False), (WCC(), False), (KCore(), False)],
    ids=lambda value: type(value).__name__,
)
def test_runs_on_packed_edges_equal_cpu_cores(
    order: Any, directed: bool, program: sigps.Vertex, tmp_path: Path
) -> None:
    """With a row that spans pages, pages on the device and not, and vertices that retire and halt."""
    graph = sigps.generate("rmat", scale=17, seed=3)
    rows = graph.in_edges()
    targets = np.repeat(np.arange(graph.num_vertices), np.diff(rows.offsets).astype(np.int64))
    hub = np.arange(600_000)
    sources = np.concatenate([rows.sources, hub])
    made = sigps.Graph.from_edges(
        sources, np.concatenate([targets, np.full(hub.size, 77)]), directed=directed
    )
    made = made if directed else made.undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=1 << 16)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu")
    for limit in (None, "150MB"):
        found = sigps.run(
            program, graph, device="cuda", stream="always", transfer="bulk", device_memory=limit
        )
        assert sum(s.bytes_read for s in found.stats) > 0
        assert limit is not None or max(s.bytes_read for s in found.stats) > 2_000_000
        for field in expected.fields:
            np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-9)


def test_runs_on_packed_edges_go_on_from_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    given: dict[str, Any] = {"device": "cuda", "stream": "always"}
    log = sigps.Checkpoint(str(tmp_path / "log"), every=2)
    expected = sigps.run(PageRank(iterations=6), sigps.load(tmp_path / "store"), **given)
    sigps.run(
        PageRank(iterations=6), sigps.load(tmp_path / "store"), **given, checkpoint=log, max_supersteps=3
    )
    found = sigps.run(
        PageRank(iterations=6), sigps.load(tmp_path / "store"), **given, checkpoint=log, resume=True
    )
    np.testing.assert_array_equal(found["rank"], expected["rank"])
