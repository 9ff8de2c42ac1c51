"""In-edges laid out in tiles and pulled over them by the kernels' text, by threads of one block that take turns."""

from __future__ import annotations

import ctypes
import functools
import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from host_gpu import GPU, use_host_as_gpu
from host_kernels import library_of, text_of
from host_tile_layout import LAYOUT, LAYOUT_ENTRIES, launch_on_host, lay_tiles_out_on_host
from numpy.typing import NDArray
from thread_group import ThreadGroup, run_ranks

from sigps import Graph
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.gpu.tile_sizes import measure_tiles
from sigps.engine.gpu.tiles import Sources, TiledEdges, tiled_edges
from sigps.engine.gpu.tiling import Tiling, count_on_host
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.kernels.cuda.lease import EDGES, TILES

SUPPORT = Path(__file__).parents[2] / "support"
Own = Literal["together", "before", "all sent"]
ALL_BRING, SOME_SENT = 3, 1
"""Which records are read: `SenderFilter`."""

RUN = """
extern "C" void pull(void *edges, void *tiles, uint32_t num_owned, uint32_t num_lids, uint32_t num_block_rows,
                     uint32_t filter, uint32_t num_senders, uint32_t *column, uint8_t *status, uint32_t *sent,
                     uint32_t *next_sent,
                     void *records, void *partials, uint32_t *partial_bits, void *found, void *bounds,
                     void *vertices, void *num_published, void *their_records, void *their_sent) {
  using namespace sigps;
  Control control = {};
  Peer peers[3] = {};
  for (int rank = 0; rank < 3; rank++)
    peers[rank] = {{(Record *)their_records + rank * 4096, nullptr}, {(uint32_t *)their_sent + rank * 128, nullptr},
                   {}, 32, 64, 128};
  Lease lease = {{column}, *(Edges *)edges, *(Tiles *)tiles, num_owned, num_lids, num_block_rows, 0, 0, 0, 0, 0, status,
                 {sent, next_sent}, {(Record *)records, nullptr}, (Slots *)partials, partial_bits, &control,
                 (Inbox *)found, {peers, (uint32_t *)bounds, (uint32_t *)vertices, nullptr, nullptr,
                 (uint32_t *)num_published, 1000, 1, 3}, 5};
  NextSuperstep before = {3}, now = {4, SenderFilter(filter)};
  control.counters.senders = num_senders;
  run_block([&] {
    ThreadCounters counted;
    bool early = goes_early(lease, before);
    if (threadIdx.x == 0)
      num_combined() = early ? lease.tiles.num_early : 0;
    if (early)
      publish_and_combine(lease, before);
    else
      publish_bits(lease, before);
    __syncthreads();
    if (filter == SENDERS_ALL) {
      combine_tiles<SENDERS_ALL>(lease, now);
      uint32_t number = gather_free<SENDERS_ALL>(lease, now, counted);
      __syncthreads();
      gather<SENDERS_ALL>(lease, now, counted, true, number);
    } else {
      combine_tiles<SENDERS_BITMAP>(lease, now);
      uint32_t number = gather_free<SENDERS_BITMAP>(lease, now, counted);
      __syncthreads();
      gather<SENDERS_BITMAP>(lease, now, counted, true, number);
    }
  });
}
"""


@functools.cache
def library(num_words: int, all_pass: bool, has_columns: bool = False) -> ctypes.CDLL:
    parts = [(SUPPORT / "host_threads.hpp").read_text(), *LAYOUT]
    parts += [(SUPPORT / "host_tiles.hpp").read_text(), text_of("gather.cuh"), text_of("publish.cuh")]
    parts += [text_of("tiles.cuh"), RUN]
    macros = {"SIGPS_THREADS": 1024, "SIGPS_WORDS": num_words, "SIGPS_ALL_PASS": int(all_pass)}
    macros["SIGPS_TILE_COLUMNS"] = int(has_columns)
    return library_of([*parts, LAYOUT_ENTRIES], macros)


def laid_out(
    rows: list[NDArray[np.int64]],
    tiling: Tiling,
    kernels: ctypes.CDLL,
    num_sources: int | None = None,
    columns: dict[str, NDArray[Any]] | None = None,
) -> TiledEdges:
    """Lay rows out, whose degrees descend; sources behind the rows are ghosts."""
    import cupy

    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    degrees = np.diff(offsets).astype(np.uint32)
    launch = functools.partial(launch_on_host, kernels)
    edges = EdgeList(offsets, np.concatenate(rows).astype(np.uint32), columns or {})
    sources = Sources(num_sources or degrees.size)
    lids = cupy.asarray(np.arange(sources.count, dtype=np.uint32))
    found = tiled_edges(edges, lids, launch, tiling, sources)
    assert found is not None
    return found


def draw(
    num_vertices: int, num_edges: int, rng: np.random.Generator, num_sources: int | None = None
) -> list[NDArray[np.int64]]:
    """Return in-neighbours of each vertex, most of the first; some edges are there many times."""
    targets = (rng.random(num_edges) ** 3 * num_vertices).astype(np.int64)
    sources = (rng.random(num_edges) ** 2 * (num_sources or num_vertices)).astype(np.int64)
    rows = [sources[targets == v] for v in range(num_vertices)]
    return sorted(rows, key=len, reverse=True)


def assert_pulls(
    rows: list[NDArray[np.int64]],
    tiling: Tiling,
    num_words: int,
    all_pass: bool,
    sender_filter: int,
    num_sources: int | None = None,
    own: Own = "before",
    has_columns: bool = False,
) -> None:
    """Compare what vertices compute with, who of them sends, and what crosses, with a walk along all edges.

    Tiles of owned vertices go early where there are ghosts, but for `own="together"`; `own="all sent"` says who sent.
    """
    num_vertices, size, kernels = len(rows), tiling.size, library(num_words, all_pass, has_columns)
    num_sources = num_sources or num_vertices
    rng = np.random.default_rng(size)
    weights = rng.integers(0, 1 << 20, sum(map(len, rows)), dtype=np.uint32)
    if not has_columns:
        weights[:] = 5
    columns = {"weight": weights if has_columns else np.broadcast_to(np.uint32(5), weights.size)}
    tiled = laid_out(rows, tiling, kernels, num_sources, columns)
    assert tiled.varies(["weight"]) == has_columns
    column = np.array(tiled.column("weight", by_edge=has_columns))
    numbers = np.array(tiled.renamed.numbers)
    assert sorted(numbers[:num_vertices].tolist()) == list(range(num_vertices))
    assert (numbers // size == np.arange(num_sources) // size).all()
    np.testing.assert_array_equal(numbers[num_vertices:], np.arange(num_vertices, num_sources))

    padded, all_padded = (-(-count // 32) * 32 for count in (num_vertices, num_sources))
    records = rng.integers(0, 1000, (all_padded + size, num_words), dtype=np.uint32)  # by new numbers
    has_sent = rng.random(all_padded) < 0.7
    if own == "all sent" or sender_filter == ALL_BRING:
        has_sent[:num_vertices] = True
    sent = np.packbits(np.append(has_sent, np.zeros(64 * size, bool)), bitorder="little").view(np.uint32)
    status = rng.choice(np.array([0, 1, 1, 2], np.uint8), padded)
    slices = max(1, tiled.num_slices)
    partials = np.full((32 * slices, num_words), 123, np.uint32)
    partial_bits, next_sent = np.full(slices, 0xABCDEF, np.uint32), np.zeros(padded // 32, np.uint32)
    found = np.zeros((padded, num_words + 1), np.uint32)
    structures = np.array(tiled.structure(), EDGES), np.array(tiled.tiles(), TILES)
    assert (structures[1]["num_early"] > 0) == (num_vertices // size > 0 and num_sources > num_vertices)
    passed = [
        rng.integers(0, num_vertices, count).astype(np.uint32) for count in (70, 0, 40)
    ]  # to ranks 0, 1, 2
    bounds = np.array([0, 96, 96, 160], np.uint32)
    vertices = np.full(160, 0xFFFFFFFF, np.uint32)
    vertices[:70], vertices[96:136] = passed[0], passed[2]
    num_published = np.zeros(3, np.uint32)
    their_records, their_sent = np.zeros((3 * 4096, num_words), np.uint32), np.zeros(3 * 128, np.uint32)
    num_senders = {"together": 0, "before": 10, "all sent": 1000}[own]
    counts = num_vertices, num_sources, tiled.rows.num_block_rows, sender_filter, num_senders
    arrays = status, sent, next_sent, records, partials, partial_bits, found, bounds, vertices, num_published
    kernels.pull(
        *(ctypes.c_void_p(s.ctypes.data) for s in structures),
        *map(ctypes.c_uint32, counts),
        *(ctypes.c_void_p(a.ctypes.data) for a in (column, *arrays, their_records, their_sent)),
    )
    for rank, theirs in enumerate(passed):
        slots = np.arange(theirs.size)
        lids = np.where(slots < 32, 64 + slots, 128 + slots - 32)
        bits = np.unpackbits(their_sent[128 * rank :][:128].view(np.uint8), bitorder="little").astype(bool)
        assert np.flatnonzero(bits).tolist() == lids[has_sent[theirs]].tolist()
        expected = np.zeros((4096, num_words), np.uint32)
        expected[np.flatnonzero(bits)] = records[theirs[has_sent[theirs]]]
        np.testing.assert_array_equal(their_records[4096 * rank :][:4096], expected)
    assert num_published.tolist() == [0, sum(int(has_sent[theirs].sum()) for theirs in passed), 0]

    expected = np.zeros_like(found)
    begins = np.cumsum([0, *map(len, rows)])
    for old, row in enumerate(rows):
        v = int(numbers[old])
        weight = weights[begins[old] : begins[old + 1]]
        sources = numbers[row]
        brings = np.ones(sources.size, bool) if sender_filter == ALL_BRING else has_sent[sources]
        brings &= np.array(all_pass | (sources % 5 != v % 5))
        values = records[sources[brings]] + 7 * sources[brings, None] + v + np.arange(num_words)
        values = values + weight[brings, None]
        if status[v] != 2 and (brings.any() or status[v] == 0):
            expected[v, :-1] = values.sum(axis=0)
            expected[v, -1] = 2 + brings.any()
    np.testing.assert_array_equal(found, expected)
    ran = expected[:, -1] > 0
    bits = np.unpackbits(next_sent.view(np.uint8), bitorder="little").astype(bool)
    np.testing.assert_array_equal(bits, ran & (np.arange(padded) % 3 == 0))


@pytest.mark.parametrize("sender_filter", [ALL_BRING, SOME_SENT])
@pytest.mark.parametrize(("num_words", "all_pass"), [(1, True), (1, False), (2, True), (4, False)])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"),
    [(1, 1, 32), (40, 30, 32), (200, 9000, 64), (300, 20_000, 32), (60, 40_000, 32)],
)
def test_a_pull_over_tiles_is_one_over_edges(
    num_vertices: int,
    num_edges: int,
    size: int,
    num_words: int,
    all_pass: bool,
    sender_filter: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Segments so small that there are many; pairs of over 512 and of over 2,048 edges in the largest."""
    use_host_as_gpu(monkeypatch)
    rows = draw(num_vertices, num_edges, np.random.default_rng(num_edges))
    assert_pulls(rows, Tiling(size, 3, 4 * num_words, always=True), num_words, all_pass, sender_filter)


@pytest.mark.parametrize(
    ("sender_filter", "own"),
    [(ALL_BRING, "all sent"), (ALL_BRING, "together"), (SOME_SENT, "before"), (SOME_SENT, "all sent")],
)
@pytest.mark.parametrize(
    ("num_vertices", "num_sources", "size"), [(40, 70, 32), (100, 700, 32), (3, 300, 64)]
)
def test_ghosts_have_segments_behind_those_of_owned_vertices(
    num_vertices: int,
    num_sources: int,
    size: int,
    sender_filter: int,
    own: Own,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One segment has vertices of both kinds; those of owned ones are combined while records cross."""
    use_host_as_gpu(monkeypatch)
    rows = draw(num_vertices, 9000, np.random.default_rng(num_sources), num_sources)
    tiling = Tiling(size, 3, 4, always=True)
    assert_pulls(rows, tiling, 1, True, sender_filter, num_sources, own)


@pytest.mark.parametrize("sender_filter", [ALL_BRING, SOME_SENT])
@pytest.mark.parametrize("num_words", [1, 4])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"), [(1, 1, 32), (40, 30, 32), (200, 9000, 64), (60, 40_000, 32)]
)
def test_edges_in_tiles_have_their_values(
    num_vertices: int,
    num_edges: int,
    size: int,
    num_words: int,
    sender_filter: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Edges that are alone, in lanes and in pieces; parallel ones with other values."""
    use_host_as_gpu(monkeypatch)
    rows = draw(num_vertices, num_edges, np.random.default_rng(num_edges))
    tiling = Tiling(size, 3, 4 * num_words, always=True)
    assert_pulls(rows, tiling, num_words, True, sender_filter, has_columns=True)


@pytest.mark.parametrize("sender_filter", [ALL_BRING, SOME_SENT])
@pytest.mark.parametrize(("num_words", "has_columns"), [(1, False), (4, True)])
@pytest.mark.parametrize("shortest", [3, 5, 40])
def test_short_pairs_stay_in_rows(
    shortest: int, num_words: int, has_columns: bool, sender_filter: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs of one edge and of few more that begin, end and cross the 32 edges that lanes look at together."""
    use_host_as_gpu(monkeypatch)
    rows = draw(200, 9000, np.random.default_rng(shortest))
    tiling = Tiling(64, 3, 4 * num_words, always=True, shortest_pair=shortest)
    assert_pulls(rows, tiling, num_words, True, sender_filter, has_columns=has_columns)


@pytest.mark.parametrize("shortest", [2, 3, 4, 40])
def test_pairs_in_tiles_have_so_many_edges(
    shortest: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All of a row's edges of a segment, or none; and the layout has the bytes that were counted before."""
    use_host_as_gpu(monkeypatch)
    rows = [np.sort(row) for row in draw(300, 9000, np.random.default_rng(shortest))]
    tiling = Tiling(64, 3, 16, always=True, shortest_pair=shortest)
    with caplog.at_level(logging.INFO, "sigps"):
        tiled = laid_out(rows, tiling, library(1, True))
    counts = [np.bincount(row // 64, minlength=5) for row in rows]
    numbers = np.array(tiled.renamed.numbers)
    degrees = np.array(tiled.rows.degrees)
    in_tiles = np.array([np.where(c >= shortest, c, 0).sum() for c in counts])
    ends = np.array([np.where(c >= shortest, 1, c).sum() for c in counts])
    assert max(c.max() for c in counts) < 2048  # a pair is one piece at most
    np.testing.assert_array_equal(degrees[numbers[: len(rows)]], ends)
    words = np.array(tiled._words)
    assert (
        np.count_nonzero(words & 0xFFFF != 0xFFFF) + np.count_nonzero(words >> 16 != 0xFFFF) == in_tiles.sum()
    )
    found = ends_of(tiled)
    for old, row in enumerate(rows):
        assert sorted(found[numbers[old]]) == sorted(numbers[row].tolist())
    given = np.cumsum([0, *map(len, rows)]).astype(np.uint64), np.concatenate(rows).astype(np.uint32)
    lids = np.arange(len(rows), dtype=np.uint32)
    assert f"in-edges in tiles: {count_on_host(*given, lids, 64)}" in caplog.text  # whatever stays in rows
    sizes = measure_tiles(*given, lids, tiling)
    assert (sizes.num_slices, sizes.num_bytes) == (tiled.num_slices, tiled.nbytes)


def test_a_warp_has_more_slices_than_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One share of 32 warps, and pairs of two edges in one segment for 34 slices each."""
    use_host_as_gpu(monkeypatch)
    rows = list(np.random.default_rng(3).integers(0, 64, (32 * 34 * 32, 2)))
    assert_pulls(rows, Tiling(40_960, 1, 4, always=True), 1, True, ALL_BRING)


@pytest.mark.parametrize(("ranks", "size"), [(1, 64), (2, 32), (3, 128)])
def test_parts_lie_in_tiles(ranks: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank's rows and tiles have the in-neighbours of its vertices, which have new numbers; ghosts keep theirs."""
    use_host_as_gpu(monkeypatch)
    lay_tiles_out_on_host(monkeypatch)
    rng = np.random.default_rng(9)
    sources, targets = ((rng.random(9000) ** power * 400).astype(np.int64) for power in (4, 2))

    def on_rank(group: ThreadGroup) -> tuple[dict[int, list[int]], dict[int, int]]:
        graph = Graph.from_edges(sources, targets, directed=True, group=group)
        part = build_subgraph(graph, partition(graph, ranks, "hash"), with_outgoing=False)
        tiling = Tiling(size, 2, 4, always=True)
        made = gpu_graph.GpuGraph(part, GPU, sorts_rows=True, tiling=tiling)
        assert made.tiles is not None
        numbering = made.numbering
        assert not numbering.is_hosts
        gids = np.full(made.num_lids, -1)
        gids[numbering.lids_on_host] = np.arange(part.num_vertices) if part.gids is None else part.gids
        by_degree = np.array(Numbering(np, part).in_degrees)
        for begin in range(0, made.num_owned, size):  # new numbers are within segments
            ones = np.array(made.in_degrees)[begin : begin + size]
            assert sorted(ones) == sorted(by_degree[begin : begin + size])
        assert gids[: made.num_owned].tolist() == np.array(numbering.gids()).tolist()
        ends = ends_of(made.tiles)
        found = {int(gids[v]): sorted(gids[ends[v]].tolist()) for v in range(made.num_owned)}
        early = np.array(made.tiles._shares[1])[: np.array(made.tiles._shares[0])[made.tiles._num_early]]
        assert ((early + 1) * size <= made.num_owned).all()
        assert made.could_send == np.count_nonzero(part.out_degrees)
        ids = graph.ids.to_oids(np.arange(graph.num_vertices))
        named = {int(ids[gid]): [int(ids[s]) for s in row] for gid, row in found.items()}
        sends = np.array(made.out_degrees)[: made.num_owned]
        return named, dict(zip(ids[gids[: made.num_owned]].tolist(), sends.tolist(), strict=True))

    rows: dict[int, list[int]] = {}
    sent: dict[int, int] = {}
    for row, degrees in run_ranks(ranks, on_rank):
        rows |= row
        sent |= degrees
    for v in range(400):
        assert sorted(rows.get(v, [])) == sorted(sources[targets == v].tolist())
        assert sent.get(v, 0) == np.count_nonzero(sources == v)


def ends_of(tiled: TiledEdges) -> list[list[int]]:
    """Return the local ids of the sources of each row, read from rows and tiles."""
    edges, tiles = np.array(tiled.structure(), EDGES), np.array(tiled.tiles(), TILES)
    offsets, slices, degrees, ends = (
        np.array(a) for a in (tiled.rows.offsets, tiled.rows.slices, tiled.rows.degrees, tiled.ends)
    )
    lines, words = np.array(tiled._lines), np.array(tiled._words).reshape(-1, 32)
    segments = np.full(tiled.num_slices, -1)
    for segment, run in zip(*(np.array(a) for a in tiled._shares[1:]), strict=True):
        segments[run[0] : run[32]] = segment
    first_lanes = np.array(tiled._first_lanes)
    found = []
    for v in range(degrees.size):
        csr, sources = int(edges["num_csr_rows"]), []
        for i in range(int(degrees[v])):
            at = int(offsets[v]) + i if v < csr else int(slices[(v - csr) // 32]) + v % 32 + 32 * i
            end = int(ends[at])
            if end < tiles["first_partial"]:
                sources.append(end)
                continue
            slice_, lane = divmod(end - int(tiles["first_partial"]), 32)
            segment = int(segments[slice_])
            is_piece = slice_ < first_lanes[segment]
            of_slice = words[lines[slice_] : lines[slice_ + 1]]
            places = of_slice if is_piece else of_slice[:, lane]
            both = np.concatenate([places & 0xFFFF, places >> 16], axis=None)
            sources += (both[both != 0xFFFF].astype(int) + segment * tiled.segment_size).tolist()
        found.append(sources)
    return found


def turns_of(places: NDArray[np.uint32], num_banks: int) -> int:
    """Return in how many turns lanes have read, [reads, 32]: one for each word of a bank that some read at once."""
    groups = [np.unique(group) for group in places.reshape(-1, num_banks)]
    return sum(int(np.bincount(group % num_banks).max()) for group in groups)


@pytest.mark.parametrize("num_words", [1, 2, 4])
def test_few_lanes_read_from_one_bank_at_once(num_words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of 32 rows of 40 sources each, beside their ascending order."""
    use_host_as_gpu(monkeypatch)
    num_banks, rng = 32 // num_words, np.random.default_rng(7)
    rows = [np.sort(rng.choice(1024, 40, replace=False)) for _ in range(32)] + [np.zeros(0, np.int64)] * 992
    tiled = laid_out(rows, Tiling(1024, 1, 4 * num_words, always=True), library(num_words, True))
    numbers, words = np.array(tiled.renamed.numbers), np.array(tiled._words).reshape(-1, 32)
    places = np.stack([words & 0xFFFF, words >> 16], axis=1).reshape(40, 32)
    ascending = np.sort(places, axis=0)
    assert sorted(ascending.T.tolist()) == sorted(np.sort(numbers[row]).tolist() for row in rows[:32])
    assert turns_of(places, num_banks) < 0.8 * turns_of(ascending, num_banks)
