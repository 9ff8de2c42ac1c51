"""Runs that stream, when their store is cut short or changed, a disk fails, or somebody ends them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import end_of
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Checkpoint, Graph, GraphError, run
from sigps.apps import SSSP, PageRank
from sigps.engine.cpu.blocks import Blocks
from sigps.graph.formats.packed_store import save_packed
from sigps.kernels.cpu.arguments import Edges


@pytest.fixture
def graph() -> Graph:
    draw = np.random.default_rng(3)
    ends = (300 * draw.random((2, 3000)) ** 2).astype(int)
    return Graph.from_edges(*ends, draw.random(3000), directed=False)


@pytest.fixture
def path(graph: Graph, tmp_path: Path) -> Path:
    """A store of the graph with pages of 64 arcs."""
    save_packed(graph, tmp_path / "graph.sigps", order="given", page_arcs=64)
    return tmp_path / "graph.sigps"


@pytest.fixture
def at_block(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], None]:
    """Let something happen before the n-th block is unpacked."""

    def arrange(count: int, happens: Callable[[], Any]) -> None:
        calls: list[int] = []
        block = Blocks.block

        def counted(blocks: Blocks, number: int) -> Edges:
            calls.append(number)
            if len(calls) == count:
                happens()
            return block(blocks, number)

        monkeypatch.setattr(Blocks, "block", counted)

    return arrange


@pytest.mark.parametrize("name", ["pages", "column-0"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_file_that_is_cut_short_while_its_pages_are_read(
    path: Path, at_block: Any, name: str, ranks: int
) -> None:
    def stream(group: ThreadGroup) -> None:
        stored = sigps.load(path, group=group)
        run(SSSP(source=3), stored, stream="always", threads=2, direction="pull")

    at_block(20, lambda: os.truncate(path / f"{name}.bin", 100))
    with pytest.raises(
        GraphError, match=rf"{name}.bin has 100 of its [\d,]+ bytes( and ends within page \d+)?:"
    ):
        run_ranks(ranks, stream)


def test_a_file_that_is_cut_short_before_its_degrees_are_read(path: Path) -> None:
    stored = sigps.load(path)
    os.truncate(path / "pages.bin", 100)
    with pytest.raises(GraphError, match=r"pages.bin has 100 of its [\d,]+ bytes"):
        run(PageRank(), stored, stream="always")
    with pytest.raises(GraphError, match=r"pages.bin has 100 of its [\d,]+ bytes and ends within page \d+"):
        _ = stored.offsets  # in memory


@pytest.mark.parametrize("name", ["pages", "the column 'weight'"])
def test_pages_that_change_while_they_are_read(path: Path, at_block: Any, name: str) -> None:
    file = path / ("pages.bin" if name == "pages" else "column-0.bin")

    def change() -> None:
        with open(file, "r+b") as opened:
            opened.write(b"\xff" * file.stat().st_size)

    at_block(20, change)
    with pytest.raises(GraphError, match=rf"graph.sigps: {name} is damaged in page \d+"):
        run(SSSP(source=3), sigps.load(path), stream="always", threads=1, direction="pull")


def test_a_change_that_leaves_whole_pages_is_found_by_the_next_superstep(
    graph: Graph, path: Path, tmp_path: Path
) -> None:
    stored = sigps.load(path)

    def replace(stats: Any) -> None:
        with open(path / "pages.bin", "r+b") as file:
            first = file.read(4)
            file.seek(0)
            file.write(first)

    log = Checkpoint(str(tmp_path / "log"), every=1)
    with pytest.raises(GraphError, match=r"pages.bin was changed after it was opened"):
        run(PageRank(), stored, stream="always", progress=replace, checkpoint=log)


def test_a_store_that_takes_the_place_of_another_is_not_read(graph: Graph, path: Path) -> None:
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    stored = sigps.load(path)
    save_packed(Graph.from_edges([0], [1], [1.0]), path)
    found = run(PageRank(), stored, stream="always", deterministic=True)
    assert found["rank"].tobytes() == expected["rank"].tobytes()


def test_a_disk_that_cannot_be_read(path: Path, at_block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    at_block(20, lambda: monkeypatch.setattr(os, "preadv", fail))
    with pytest.raises(GraphError, match=r"pages.bin: page [\d,]+ cannot be read: Input/output error"):
        run(PageRank(), sigps.load(path), stream="always")


def test_ctrl_c_in_a_block_ends_the_run_and_no_other(graph: Graph, path: Path, at_block: Any) -> None:
    stored = sigps.load(path)
    at_block(20, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where tests run in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            run(PageRank(iterations=1000), stored, stream="always", threads=2)
    finally:
        signal.signal(signal.SIGINT, before)
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    found = run(PageRank(), stored, stream="always", deterministic=True)
    assert found["rank"].tobytes() == expected["rank"].tobytes()


KILLED = """
import os, signal, sys
import sigps
from sigps.apps import PageRank
from sigps.engine.cpu.blocks import Blocks

block, calls = Blocks.block, []

def counted(blocks, number):
    calls.append(number)
    if len(calls) == 7 * len(blocks) + 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return block(blocks, number)

Blocks.block = counted
options = {"deterministic": True, "checkpoint": sigps.Checkpoint(sys.argv[2], every=2), "threads": 1}
sigps.run(PageRank(), sigps.load(sys.argv[1]), stream="always", **options)
"""


def test_a_run_goes_on_that_was_killed_between_two_blocks(graph: Graph, path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert end_of(started).code == -signal.SIGKILL
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    stats = []
    found = run(
        PageRank(),
        sigps.load(path),
        stream="always",
        deterministic=True,
        checkpoint=Checkpoint(str(log), every=2),
        resume=True,
        progress=lambda so_far: stats.append(len(so_far)),
    )
    assert stats[0] > 6  # it did not begin anew
    assert found["rank"].tobytes() == expected["rank"].tobytes()
    assert len(found.stats) == len(expected.stats)
