from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps import Graph
from sigps.graph.fingerprint import fingerprint


@pytest.mark.parametrize("name", BATTERY)
def test_it_does_not_depend_on_the_ranks(name: str) -> None:
    def of(group: ThreadGroup) -> str:
        return fingerprint(BATTERY[name].build(group=group))

    expected = fingerprint(BATTERY[name].build())
    for size in (2, 3):
        assert run_ranks(size, of) == [expected] * size


def made(**changed: Any) -> Graph:
    given: dict[str, Any] = {
        "sources": ["a", "b", "b", "b"],
        "targets": ["b", "c", "c", "a"],
        "weights": [1.0, 2.0, 3.0, 4.0],
    }
    return Graph.from_edges(**(given | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"targets": ["b", "c", "c", "b"]},
        {"targets": ["b", "c", "c", "aa"]},
        {"weights": [1.0, 2.0, 3.0, np.nextafter(4.0, 5.0)]},
        {"weights": [2.0, 1.0, 3.0, 4.0]},
        {"weights": None},
        {"directed": False},
        {"vertices": ["a", "b", "c", "d"]},
        {"sources": [0, 1, 1, 1], "targets": [1, 2, 2, 0]},
    ],
)
def test_it_changes_with_the_graph(changed: dict[str, Any]) -> None:
    assert fingerprint(made()) == fingerprint(made())
    assert fingerprint(made(**changed)) != fingerprint(made())


def test_ids_count_where_edges_are_the_same() -> None:
    ends = np.array([0, 1]), np.array([1, 2])
    keys = {
        fingerprint(Graph.from_edges(*(scale * end + base for end in ends)))
        for scale, base in [(1, 0), (1, 5), (7, 0), (9, 0)]
    }
    assert len(keys) == 4


def test_a_rank_may_have_no_ids() -> None:
    def of(group: ThreadGroup) -> str:
        return fingerprint(Graph.from_edges(["a"], ["b"], group=group))

    assert run_ranks(4, of) == [fingerprint(Graph.from_edges(["a"], ["b"]))] * 4
