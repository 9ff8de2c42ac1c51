"""Batches of updates beside native stores."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import given, settings
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, GraphError
from sigps.graph.fingerprint import fingerprint


@settings(max_examples=drawn(25), deadline=None)
@given(histories())
def test_a_store_with_its_batches_is_the_newest_version(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    path = tmp_path_factory.mktemp("store") / "graph.sigps"
    graph = history.first()
    graph.save(path)
    for newer, judge in zip(history.newer(graph), history.judges(), strict=True):
        newer.save_update(path)
        assert fingerprint(sigps.load(path)) == fingerprint(judge)
    newer.save(path)
    assert list(path.glob("update-*")) == []
    assert fingerprint(sigps.load(path)) == fingerprint(judge)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "graph.sigps"
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    graph.save(path)
    for edge in (([2], [3], [3.0]), ([3], [4], [4.0])):
        graph = graph.apply(edge)
        graph.save_update(path)
    return path


def test_ranks_open_it_together(store: Path) -> None:
    def of(group: ThreadGroup) -> str:
        return fingerprint(sigps.load(store, group=group))

    assert run_ranks(2, of) == [fingerprint(sigps.load(store))] * 2


def test_damage_is_found(store: Path) -> None:
    whole = (store / "update-000002.bin").read_bytes()
    draw = np.random.default_rng(2)
    for at in [0, 20, *draw.integers(0, len(whole), 40).tolist()]:
        wrong = bytearray(whole)
        wrong[at] ^= 1 << int(draw.integers(0, 8))
        (store / "update-000002.bin").write_bytes(wrong)
        with pytest.raises(GraphError, match=r"update-000002.bin|comes to"):
            sigps.load(store)
    (store / "update-000002.bin").write_bytes(whole[:-1])
    with pytest.raises(GraphError, match="do not have its checksum"):
        sigps.load(store)


def test_a_missing_batch_is_found(store: Path) -> None:
    (store / "update-000001.bin").unlink()
    with pytest.raises(GraphError, match="does not follow"):
        sigps.load(store)


def test_batches_of_another_store_are_found(store: Path, tmp_path: Path) -> None:
    Graph.from_edges([0, 1], [1, 2], [1.0, 7.0]).save(tmp_path / "other")
    shutil.copy(store / "update-000001.bin", tmp_path / "other")
    with pytest.raises(GraphError, match="another store's"):
        sigps.load(tmp_path / "other")


def test_only_the_next_version_is_written(store: Path, tmp_path: Path) -> None:
    graph = sigps.load(store)
    later = graph.apply(([4], [5], [5.0])).apply(([5], [6], [6.0]))
    with pytest.raises(GraphError, match="it is another version"):
        later.save_update(store)
    with pytest.raises(GraphError, match="is no native store"):
        later.save_update(tmp_path / "nothing")
    with pytest.raises(GraphError, match="no batch made this graph"):
        Graph.from_edges([0], [1]).save_update(store)
