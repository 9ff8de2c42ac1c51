"""Stores that were whole before are not read whole again, unless anything happened to them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigps.graph.formats.known_stores as known_stores
import sigps.graph.formats.store_files as store_module
from sigps.errors import GraphError
from sigps.graph import Graph
from sigps.graph.load import load, open_store


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, old enough to be remembered, and a cache that remembers nothing yet."""
    monkeypatch.setenv("SIGPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(known_stores, "_COARSEST_NS", -1)
    Graph.from_edges([1, 2, 3], [2, 3, 1], [0.5, 1.5, 2.5]).save(tmp_path / "g.sigps")
    return tmp_path / "g.sigps"


@pytest.fixture
def summed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return how many checksums were computed since the last call."""
    calls: list[int] = []
    checksum = store_module.checksum
    monkeypatch.setattr(store_module, "checksum", lambda raw: calls.append(raw.size) or checksum(raw))

    def count() -> int:
        found = len(calls)
        calls.clear()
        return found

    return count


@pytest.mark.parametrize("size", [1, 2])
def test_a_store_is_read_whole_once(run_ranks: Any, path: Path, summed: Callable[[], int], size: int) -> None:
    num_files = len(list(path.glob("*.bin")))
    for expected in (num_files, 0, 0):
        run_ranks(size, lambda group: open_store(path, group))
        assert summed() == expected
    run_ranks(size, lambda group: open_store(path, group, verify="full"))
    assert summed() == num_files


def test_load_does_so_too(path: Path, summed: Callable[[], int]) -> None:
    load(path)
    assert summed() > 0
    load(path)
    assert summed() == 0


def flip(path: Path) -> None:
    """Change a bit of a weight; the size and the time of the last change of content are what they were."""
    file = path / "column-0.bin"
    before = os.stat(file)
    weights = np.memmap(file, np.uint8, "r+")
    weights[3] ^= 1
    weights.flush()
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_changed_store_is_read_whole(path: Path, summed: Callable[[], int]) -> None:
    open_store(path)
    flip(path)
    with pytest.raises(GraphError, match=r"column-0\.bin does not match its checksum"):
        open_store(path)
    with pytest.raises(GraphError, match=r"column-0\.bin does not match its checksum"):
        open_store(path)


def test_a_copy_is_read_whole(path: Path, tmp_path: Path, summed: Callable[[], int]) -> None:
    open_store(path)
    shutil.copytree(path, tmp_path / "h.sigps")
    summed()
    open_store(tmp_path / "h.sigps")
    assert summed() > 0


def test_a_new_store_is_not_remembered(
    path: Path, summed: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_stores, "_COARSEST_NS", 10**12)
    for _ in range(2):
        open_store(path)
        assert summed() > 0


def test_ranks_with_different_files_know_none(
    run_ranks: Any, path: Path, tmp_path: Path, summed: Callable[[], int]
) -> None:
    copy = tmp_path / "h.sigps"
    shutil.copytree(path, copy)
    open_store(path)
    open_store(copy)
    summed()
    run_ranks(2, lambda group: open_store((path, copy)[group.rank], group))
    assert summed() > 0
