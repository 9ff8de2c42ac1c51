"""Packed pages that come from disk while kernels run."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from packed_runs import SEARCHES, on_ranks
from turns import in_turn

import sigps
from sigps.apps import BFS, SSSP, PageRank
from sigps.engine.gpu import page_reading
from sigps.engine.gpu.page_feed import PageFeed
from sigps.errors import ConfigError, DeviceError, GraphError
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.page_files import PageFile
from sigps.graph.packing.unpacker import PackedRows


@pytest.mark.parametrize(
    ("program", "ranks", "order"),
    in_turn([PageRank(iterations=4), BFS(source=0), SSSP(source=0)], [1, 2], ["given", "degree"], times=2),
    ids=lambda value: str(value) if isinstance(value, (int, str)) else type(value).__name__,
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
    monkeypatch.setattr(page_reading, "available_cores", lambda: 1)
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
