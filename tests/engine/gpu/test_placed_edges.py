"""Edges brought to their positions a piece of the host's rows at a time."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_kernels import entries_of, kernels_of, library_of, text_of

import sigps
from sigps.apps import HITS, SSSP
from sigps.engine.gpu import memory_plan, placed_edges
from sigps.engine.gpu.layout import lay_out
from sigps.engine.gpu.placed_edges import PlacedEdges

COLUMN = {
    "place_piece_column_32_warp_mapped": [
        "Edges",
        "const uint32_t *",
        "const uint64_t *",
        "uint64_t",
        "const int64_t *",
        "const uint32_t *",
        "uint32_t *",
    ]
}


@functools.cache
def library() -> ctypes.CDLL:
    layout = text_of("layout.cu")
    names = ("make_piece_keys_warp_mapped", "place_piece_ends_warp_mapped")
    kernels = {name: types for name, types in kernels_of(layout).items() if name in names}
    threads = (Path(__file__).parents[2] / "support" / "host_threads.hpp").read_text()
    entries = entries_of(kernels | COLUMN)
    return library_of([threads, text_of("edges.cuh"), layout, entries], {"SIGPS_THREADS": 1024})


def launch(name: str, *arguments: Any) -> None:
    given = [
        np.array(a.ctypes.data, np.uint64) if isinstance(a, np.ndarray) and a.ndim else np.array(a)
        for a in arguments
    ]
    getattr(library(), f"run_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in given))


class Structure:
    """Arrays of rows as kernels take them."""

    def __init__(self, array: Any) -> None:
        self.data = type("Pointer", (), {"ptr": array.ctypes.data})
        self.size, self.array = array.size, array


@pytest.mark.parametrize("num_rows", [700, 704])
def test_pieces_go_where_rows_lie(num_rows: int) -> None:
    draw = np.random.default_rng(5)
    degrees = draw.integers(0, 60, num_rows).astype(np.uint32)
    degrees[draw.choice(num_rows, 40, replace=False)] = 250  # in one piece, the others in slices
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint64)
    ends = draw.integers(0, num_rows, int(offsets[-1])).astype(np.uint32)
    weights = draw.integers(0, 1 << 20, ends.size).astype(np.uint32)
    order = np.argsort(-degrees.astype(int), kind="stable")
    lids = np.empty(num_rows, np.uint32)
    lids[order] = np.arange(num_rows)
    rows = lay_out(degrees[order])
    assert 0 < rows.num_csr_rows < num_rows
    structure = rows.on_device(Structure).structure(None)
    placed, moved = (np.zeros(rows.num_positions, np.uint32) for _ in range(2))
    for first, last in ((0, 100), (100, 101), (101, num_rows)):
        begin, end = int(offsets[first]), int(offsets[last])
        within = offsets[first : last + 1] - offsets[first]
        keys = np.empty(end - begin, np.uint64)
        launch(
            "make_piece_keys_warp_mapped", within, np.uint64(last - first), lids, ends[begin:end].copy(), keys
        )
        sorted_by = np.argsort(keys, kind="stable")
        given = structure, lids[first:last].copy(), within, np.uint64(last - first)
        launch("place_piece_ends_warp_mapped", *given, keys[sorted_by], placed)
        column = weights[begin:end].copy()
        launch("place_piece_column_32_warp_mapped", *given, sorted_by, column, moved)
    for row, lid in enumerate(lids.astype(int)):
        own = slice(int(offsets[row]), int(offsets[row + 1]))
        by_lid = np.argsort(lids[ends[own]], kind="stable")
        if lid < rows.num_csr_rows:
            at = int(rows.offsets[lid]) + np.arange(degrees[row])
        else:
            slice_of = (lid - rows.num_csr_rows) // 32
            at = int(rows.slices[slice_of]) + lid % 32 + 32 * np.arange(degrees[row])
        np.testing.assert_array_equal(placed[at], lids[ends[own]][by_lid])
        np.testing.assert_array_equal(moved[at], weights[own][by_lid])


PROGRAMS = {"SSSP": SSSP(source=0), "HITS": HITS(iterations=5)}


def assert_as_interpreted(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_plan, "_LEAST_AT_A_TIME", 50)
    monkeypatch.setattr(placed_edges, "free_bytes", lambda: 0)
    moved, move = [], PlacedEdges._move_piece

    def noted(self: Any, what: str, first: int, last: int, *given: Any) -> None:
        moved.append((what, last))
        move(self, what, first, last, *given)

    monkeypatch.setattr(PlacedEdges, "_move_piece", noted)
    graph = sigps.generate("rmat", scale=6, directed=True, weights="random", seed=4)
    assert graph.num_edges > 400
    expected = sigps.run(PROGRAMS[work], graph, device="python")
    found = sigps.run(PROGRAMS[work], graph, device="cuda", tiles="never")
    for field in expected.fields:
        np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)
    assert sum(what == "place_piece_ends" for what, _ in moved) >= 6


@pytest.mark.parametrize("work", PROGRAMS)
def test_runs_on_many_pieces_without_a_gpu(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_as_gpu(monkeypatch)
    assert_as_interpreted(work, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("work", PROGRAMS)
def test_runs_on_many_pieces(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_as_interpreted(work, monkeypatch)
