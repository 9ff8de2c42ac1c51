"""Recursive matrices that ranks draw on GPUs, each its own rows: those that CPU cores draw, exchange and sort."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host_gpu
import numpy as np
import pytest
from host_kernels import host_kernels
from places import SUPPORT
from processes import end_of
from thread_group import run_ranks

from sigps import Graph
from sigps.device import cuda
from sigps.errors import DeviceError, SigpsError
from sigps.graph import random_bits as rb
from sigps.graph.building import on_gpu, place
from sigps.graph.building.spread import bins_of
from sigps.graph.fingerprint import fingerprint
from sigps.graph.generators import drawing, on_gpus
from sigps.graph.generators.generate import edge_stream, generate
from sigps.group import Alone, Group

CASES: list[dict[str, Any]] = [
    {"scale": 0, "edge_factor": 3, "self_loops": "keep"},
    {"scale": 1},
    {"scale": 8, "weights": "random"},
    {"scale": 7, "directed": True, "self_loops": "keep", "weights": "random"},
    {"scale": 6, "duplicates": "keep", "self_loops": "keep"},
    {"scale": 6, "directed": True, "duplicates": "keep"},
    {"scale": 8, "permute": False, "self_loops": "keep", "seed": 9},
]


def assert_same(found: Graph, wanted: Graph) -> None:
    """Compare this rank's rows, and all that is counted of a graph. Collective."""
    np.testing.assert_array_equal(found.row_bounds, wanted.row_bounds)
    arrays = [(found.offsets, wanted.offsets), (found.targets, wanted.targets)]
    assert list(found.columns) == list(wanted.columns)
    arrays += [(column, wanted.columns[name]) for name, column in found.columns.items()]
    for a, b in arrays:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert (found.num_vertices, found.num_edges, found.directed, found.ids.kind) == (
        wanted.num_vertices,
        wanted.num_edges,
        wanted.directed,
        wanted.ids.kind,
    )
    assert fingerprint(found) == fingerprint(wanted)
    assert dataclasses.replace(found.report, seconds=0) == dataclasses.replace(wanted.report, seconds=0)


def assert_rows_of(found: Graph, alone: Graph) -> None:
    """Compare this rank's rows with the whole graph, and what is counted but for the bytes of ranks. Collective."""
    first, stop = found.first_row, found.first_row + found.num_rows
    own = slice(int(alone.offsets[first]), int(alone.offsets[stop]))
    np.testing.assert_array_equal(found.offsets, alone.offsets[first : stop + 1] - alone.offsets[first])
    np.testing.assert_array_equal(found.targets, alone.targets[own])
    for name, column in alone.columns.items():
        np.testing.assert_array_equal(found.columns[name], column[own])
    assert fingerprint(found) == fingerprint(alone)
    left_out = {"seconds": 0.0, "num_bytes": 0}
    assert dataclasses.replace(found.report, **left_out) == dataclasses.replace(alone.report, **left_out)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let this process be the GPU of ranks that are threads; return the names of what is launched."""
    names: list[str] = []
    turn = threading.Lock()  # the kernels of the host have one block, whose state is static

    def launcher(file: str) -> Any:
        kernels = host_kernels(file, {}, 256)

        def launch(gpu: Any, name: str, num_items: int, *given: Any) -> None:
            with turn:
                names.append(name)
                kernels[name].launch(1, 256, given)

        return launch

    host_gpu.use_host_as_gpu(monkeypatch)
    monkeypatch.setattr(place, "MIN_EDGES", 1)
    monkeypatch.setattr(on_gpu, "launch", launcher("building"))
    monkeypatch.setattr(drawing, "launch_drawing", launcher("drawing"))
    return names


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("options", CASES, ids=str)
def test_ranks_draw_what_cpu_cores_build(options: dict[str, Any], size: int, launched: list[str]) -> None:
    def compare(group: Group) -> None:
        found = generate("rmat", device="cuda", group=group, **options)
        assert_same(found, generate("rmat", device="cpu", group=group, **options))
        assert_rows_of(found, generate("rmat", device="cpu", group=Alone(), **options))

    run_ranks(size, compare)
    assert launched.count("count_ends_rmat_thread_mapped") == size
    assert launched.count("store_rmat_thread_mapped") >= 1


@pytest.mark.parametrize("options", [CASES[2], CASES[3], CASES[6]], ids=str)
def test_rows_are_drawn_in_pieces(
    options: dict[str, Any], launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_pieces(*given: Any) -> Any:
        return draw(*given, piece_arcs=400)

    draw = on_gpus.draw_own_rows
    monkeypatch.setattr(on_gpus, "draw_own_rows", by_pieces)

    def compare(group: Group) -> None:
        found = generate("rmat", device="cuda", group=group, **options)
        assert_same(found, generate("rmat", device="cpu", group=group, **options))

    run_ranks(2, compare)
    assert launched.count("store_rmat_thread_mapped") >= 6


def test_ends_are_counted_by_bins() -> None:
    for directed in (True, False):
        stream = edge_stream("rmat", scale=18, edge_factor=1, seed=3, directed=directed)
        assert bins_of(stream.num_vertices) == (2, 1 << 16)
        edges = range(1000, 9000)
        matrix, counts, loops = stream.matrix, np.zeros(1 << 16, np.uint64), np.zeros(1, np.uint64)
        assert matrix is not None
        sizes = np.uint64(edges.start), np.uint64(len(edges)), np.uint32(matrix.scale), *matrix.thresholds
        keys = np.uint64(rb.seed_key(matrix.seed)), matrix.round_keys, np.uint32(matrix.round_keys.size)
        given = *sizes, *keys, np.uint8(not directed), np.uint32(2), counts, loops
        host_kernels("drawing", {})["count_ends_rmat_thread_mapped"].launch(1, 64, given)
        sources, targets = stream.draw(edges.start, edges.stop)
        ends = sources if directed else np.concatenate([sources, targets])
        np.testing.assert_array_equal(counts, np.bincount(ends // 4, minlength=1 << 16))
        assert loops[0] == np.count_nonzero(sources == targets)


def test_pieces_fit_the_room_or_there_are_none() -> None:
    ends, own = np.array([5, 0, 7, 2, 1]), [1, 5]
    base = (1 << 26) + 8 * 5

    def pieces(arcs: int, piece_arcs: int = 100) -> Any:
        return on_gpus._pieces(ends, 5, own, base + 28 * arcs, piece_arcs)

    assert pieces(10) == [(1, 5, 10)]
    assert pieces(9) == [(1, 4, 9), (4, 5, 1)]
    assert pieces(50, 7) == [(1, 3, 7), (3, 5, 3)]
    assert pieces(7) == [(1, 3, 7), (3, 5, 3)]
    assert pieces(6) is None  # a bin has more
    assert on_gpus._pieces(ends, 5, [5, 5], base, 100) == []


@pytest.mark.parametrize("what", ["no memory", "memory is taken meanwhile", "no GPU"])
def test_all_ranks_use_cpu_cores_where_one_must(
    what: str, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    of_rank = threading.local()
    if what == "no memory":
        monkeypatch.setattr(cuda, "free_bytes", lambda: 1 << (20 if of_rank.number == 1 else 34))
    elif what == "no GPU":
        monkeypatch.setattr(cuda, "what_is_missing", lambda: "a GPU" if of_rank.number == 1 else "")
    else:
        draw = drawing.Drawing.rows

        def rows(self: Any, *given: Any) -> Any:
            if of_rank.number == 1:
                raise cupy.cuda.memory.OutOfMemoryError()
            return draw(self, *given)

        monkeypatch.setattr(drawing.Drawing, "rows", rows)

    def compare(group: Group) -> None:
        of_rank.number = group.rank
        device = "auto" if what == "no GPU" else "cuda"
        found = generate("rmat", device=device, group=group, scale=7)
        assert_same(found, generate("rmat", device="cpu", group=group, scale=7))

    run_ranks(2, compare)
    assert launched.count("store_rmat_thread_mapped") == (what == "memory is taken meanwhile")


def test_a_gpu_that_is_asked_for_and_fails_ends_all_ranks(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_gpu(ordinal: int) -> Any:
        if ordinal == 1:
            raise DeviceError("the GPU is lost", rank=0)
        return host_gpu.GPU

    monkeypatch.setattr(cuda, "find_gpu", find_gpu)

    def fails(group: Group) -> str:
        with pytest.raises(SigpsError) as raised:
            generate("rmat", device="cuda", group=group, scale=7)
        return str(raised.value)

    first, second = run_ranks(2, fails)
    assert "rank 1 failed: DeviceError" in first
    assert "the GPU is lost" in second


def test_ranks_share_the_memory_of_a_gpu_that_they_share(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = [dataclasses.replace(host_gpu.GPU, ordinal=i, bus_id=f"bus {i}") for i in range(2)]
    monkeypatch.setattr(cuda, "find_gpu", lambda ordinal: gpus[ordinal % 2])
    monkeypatch.setattr(cuda, "free_bytes", lambda: 1000)

    def room(group: Group) -> Any:
        with place.building_on("cuda"):
            return place.gpu_of_rank(1, group)

    assert run_ranks(3, room) == [(gpus[0], 500), (gpus[1], 1000), (gpus[0], 500)]
    hosts = SimpleNamespace(node=lambda: threading.current_thread().name)
    monkeypatch.setattr(place, "platform", hosts)
    assert run_ranks(3, room) == [(gpus[0], 1000)] * 3  # a host each


@pytest.mark.parametrize(
    ("devices", "num_edges", "is_on_gpus"),
    [
        (("cuda", "cuda"), place.MIN_EDGES, True),
        (("cuda", "cuda"), place.MIN_EDGES - 1, False),
        (("cuda", "cpu"), place.MIN_EDGES, False),
        (("auto", "auto"), place.MIN_EDGES, True),
    ],
)
def test_all_ranks_decide_alike(
    devices: Any, num_edges: int, is_on_gpus: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)

    def find(group: Group) -> bool:
        with place.building_on(devices[group.rank]):
            return place.gpu_of_rank(num_edges, group) is not None

    assert run_ranks(2, find) == [is_on_gpus] * 2


def check_drawn(group: Group, folder: Path) -> None:
    """Compare what ranks draw on their GPUs with what they build on CPU cores, in one piece and several. Collective."""
    place.MIN_EDGES = 1
    names: list[str] = []
    launch, draw = drawing.launch_drawing, on_gpus.draw_own_rows

    def counted(gpu: Any, name: str, *given: Any) -> None:
        names.append(name)
        launch(gpu, name, *given)

    drawing.launch_drawing = counted
    large = [{"scale": 16, "weights": "random"}, {"scale": 17, "permute": False, "self_loops": "keep"}]
    for options in (*CASES, *large):
        for piece_arcs in (1 << 30, 100_000):
            on_gpus.draw_own_rows = lambda *given, n=piece_arcs: draw(*given, piece_arcs=n)
            names.clear()
            found = generate("rmat", device="cuda", group=group, **options)
            assert "count_ends_rmat_thread_mapped" in names
            assert options["scale"] < 16 or names.count("store_rmat_thread_mapped") > (piece_arcs < 1 << 30)
            assert_same(found, generate("rmat", device="cpu", group=group, **options))
            assert_rows_of(found, generate("rmat", device="cpu", group=Alone(), **options))
    (folder / str(group.rank)).write_text("equal")


@pytest.mark.gpu
@pytest.mark.mpi
@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_of_mpirun(size: int, mpirun: str, tmp_path: Path) -> None:
    script = (
        f"import sys, pathlib; sys.path[:0] = {[str(SUPPORT), str(Path(__file__).parent)]!r}\n"
        "from test_on_gpus import check_drawn\n"
        "from sigps.group import world\n"
        f"check_drawn(world(), pathlib.Path({str(tmp_path)!r}))\n"
    )
    process = subprocess.Popen(
        [mpirun, "-n", str(size), sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    code, out, err = end_of(process, 300)
    assert code == 0, f"{out}\n{err}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(rank) for rank in range(size)]
