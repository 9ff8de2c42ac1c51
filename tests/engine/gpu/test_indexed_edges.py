"""One edge by its position, a drawn edge, and whether there is an edge, on GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from battery import BATTERY
from host_gpu import use_host_as_gpu
from indexed_edges import GRAPHS, NO_SUCH, assert_no_such_edge, indexing
from thread_group import ThreadGroup, run_ranks

from sigps import run


def assert_as_interpreted(name: str, num_ranks: int = 1) -> None:
    judge = run(indexing(), BATTERY[name].build(), device="python", seed=2)

    def on_ranks(group: ThreadGroup) -> Any:
        graph = BATTERY[name].build(group=group)
        found = run(indexing(), graph, device="cuda", seed=2, partitioner="hash")
        return {field: found[field].tolist() for field in found.fields}

    assert run_ranks(num_ranks, on_ranks)[0] == {field: judge[field].tolist() for field in judge.fields}


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_edges_without_a_gpu(name: str, num_ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_as_gpu(monkeypatch)
    assert_as_interpreted(name, num_ranks)


@pytest.mark.parametrize("at", NO_SUCH)
def test_there_is_no_such_edge_without_a_gpu(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host_as_gpu(monkeypatch)
    assert_no_such_edge(at, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("name", GRAPHS)
def test_edges(name: str) -> None:
    assert_as_interpreted(name)


@pytest.mark.gpu
@pytest.mark.parametrize("at", NO_SUCH)
def test_there_is_no_such_edge(at: str) -> None:
    assert_no_such_edge(at, "cuda")
