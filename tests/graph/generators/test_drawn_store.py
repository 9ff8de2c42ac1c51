"""Graphs that are drawn piece by piece into packed stores: the stores that graphs in memory are saved as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_kernels import host_kernels

import sigps
from sigps.errors import ConfigError
from sigps.graph import random_bits as rb
from sigps.graph.generators.drawn_store import obstacle_to_pieces, write_drawn
from sigps.graph.generators.edge_streams import weigh
from sigps.graph.generators.generate import edge_stream, write_by_degree

STREAM = edge_stream("rmat", scale=8, weights="random", seed=3)
SOURCES, TARGETS = STREAM.draw(0, STREAM.num_edges)
NUMBERS = np.random.default_rng(1).permutation(STREAM.num_vertices).astype(np.uint32)


def drawn() -> tuple[Any, ...]:
    matrix = STREAM.matrix
    assert matrix is not None
    keys = matrix.round_keys
    sizes = np.uint64(STREAM.num_edges), np.uint32(matrix.scale), *matrix.thresholds
    return *sizes, np.uint64(rb.seed_key(matrix.seed)), keys, np.uint32(keys.size)


def both_ways(numbers: np.ndarray) -> np.ndarray:
    """Return what is stored, in rows by number: [arcs, 2]."""
    ends = np.stack([numbers[SOURCES], numbers[TARGETS]], axis=1).astype(np.int64)
    ends = ends[ends[:, 0] != ends[:, 1]]
    return np.concatenate([ends, ends[:, ::-1]])


@pytest.mark.parametrize("is_numbered", [False, True])
def test_what_is_stored_is_counted_by_ranges_of_rows(is_numbered: bool) -> None:
    numbers = NUMBERS if is_numbered else np.arange(STREAM.num_vertices)
    bounds = np.array([0, 3, 50, 200], np.uint32)
    counts, loops = np.zeros(4, np.uint64), np.zeros(1, np.uint64)
    given = NUMBERS if is_numbered else np.uint64(0), bounds, np.uint32(4), counts, loops
    host_kernels("drawing", {})["count_stored_rmat_thread_mapped"].launch(1, 64, (*drawn(), *given))
    found = np.histogram(both_ways(numbers)[:, 0], [*bounds, STREAM.num_vertices])[0]
    np.testing.assert_array_equal(counts, found)
    assert loops[0] == np.count_nonzero(SOURCES == TARGETS)


def test_a_piece_has_the_edges_of_its_rows() -> None:
    expected = both_ways(NUMBERS)
    expected = expected[(expected[:, 0] >= 50) & (expected[:, 0] < 200)]
    keys, count = np.zeros(len(expected) + 5, np.uint64), np.zeros(1, np.uint64)
    flags = np.uint8(True), np.uint8(False)
    given = *flags, NUMBERS, np.uint32(50), np.uint32(200), keys, np.uint64(len(expected) - 1), count
    kernel = host_kernels("drawing", {})["store_rmat_thread_mapped"]
    kernel.launch(1, 64, (*drawn(), *given))
    assert count[0] == len(expected)
    assert np.count_nonzero(keys) <= len(expected) - 1  # what does not fit is left out
    keys[:], count[:] = 0, 0
    kernel.launch(1, 64, (*drawn(), *given[:6], np.uint64(keys.size), count))
    found = keys[: len(expected)]
    wanted = (expected[:, 0] - 50).astype(np.uint64) << np.uint64(32) | expected[:, 1].astype(np.uint64)
    np.testing.assert_array_equal(np.sort(found), np.sort(wanted))


def test_rows_are_weighed_by_their_vertices() -> None:
    order = np.argsort(NUMBERS).astype(np.uint32)
    numbers = np.zeros(order.size, np.uint32)
    kernels = host_kernels("drawing", {})
    kernels["number_thread_mapped"].launch(1, 64, (order, np.uint64(order.size), numbers))
    np.testing.assert_array_equal(numbers, NUMBERS)
    offsets, targets = np.array([0, 40, 40, 43], np.uint64), np.arange(100, 143, dtype=np.uint32)
    weights = np.zeros(43, np.float32)
    given = offsets, targets, np.uint32(3), np.uint32(7), order, np.uint64(rb.seed_key(9)), weights
    kernels["weigh_rows_warp_mapped"].launch(1, 64, given)
    rows = np.repeat(np.arange(7, 10), np.diff(offsets).astype(int))
    np.testing.assert_array_equal(weights, weigh(order[rows].astype(int), order[targets].astype(int), 9))


def test_other_graphs_are_not_drawn_piece_by_piece(tmp_path: Path) -> None:
    for name, options in (
        ("grid", {"rows": 9, "columns": 9}),
        ("rmat", {"scale": 5, "directed": True}),
        ("rmat", {"scale": 5, "self_loops": "keep"}),
        ("rmat", {"scale": 40}),
    ):
        assert obstacle_to_pieces(edge_stream(name, **options))
        assert write_by_degree(name, tmp_path / "store", **options) is None
    with pytest.raises(ConfigError, match="rmat"):
        write_by_degree("rmat", tmp_path / "store")
    assert not list(tmp_path.iterdir())


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("options", "piece_arcs"),
    [
        ({"scale": 16, "weights": "random"}, 1 << 17),
        ({"scale": 17, "edge_factor": 40, "permute": False, "weights": "random"}, 1 << 20),
        ({"scale": 16, "duplicates": "keep"}, 1 << 30),
        ({"scale": 3, "edge_factor": 1}, 4),
    ],
)
def test_stores_are_those_of_graphs_in_memory(
    options: dict[str, Any], piece_arcs: int, tmp_path: Path
) -> None:
    from sigps.device.cuda import find_gpu

    sigps.generate("rmat", device="cpu", **options).save(tmp_path / "whole", packed=True, order="degree")
    report = write_drawn(
        edge_stream("rmat", **options), tmp_path / "drawn", find_gpu(), piece_arcs=piece_arcs
    )
    files = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "drawn").iterdir())
    for name in files:
        if name.endswith(".bin"):
            assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "drawn" / name).read_bytes(), name
    whole, found = (sigps.load(tmp_path / name, verify="full") for name in ("whole", "drawn"))
    for name in (
        "num_vertices",
        "edges_given",
        "edges_stored",
        "duplicates",
        "self_loops",
        "isolated",
        "base",
    ):
        assert getattr(found.report, name) == getattr(whole.report, name) == getattr(report, name), name
    np.testing.assert_array_equal(found.offsets, whole.offsets)
    np.testing.assert_array_equal(found.targets, whole.targets)
    assert list(found.columns) == list(whole.columns)
