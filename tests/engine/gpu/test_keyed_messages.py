"""Messages that are grouped by key, on a GPU: by lanes, warps and blocks, with few keys and many."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_ways import assert_as_judged, assert_same_in_leases, rows_of_every_kind
from keyed_programs import KEYED

from sigps import Graph, Param, State, Vertex, run
from sigps.apps import CDLP, WeightedLabels
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.choice import find_gpu_obstacle


class Distinct(Vertex, message=int):
    """Keys of which each vertex has about so many, among them the one whose bits look empty in tables."""

    keys: Param[int]
    best: State[int] = 0

    def compute(self, messages):
        if self.superstep > 0:
            self.best = messages.most_common(weight=lambda m: m % 5 + 1, default=-1)
        if self.superstep < 2:
            key = (self.id * 7919 + self.superstep) % self.keys - 3
            self.send_to_neighbors(key if key != 0 else -(2**62) * 2)
        self.vote_to_halt()


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["votes", "pulls", "answers"])
def test_rows_of_every_kind(name: str, directed: bool) -> None:
    assert_as_judged(KEYED[name], rows_of_every_kind(directed))


@pytest.mark.gpu
@pytest.mark.parametrize("keys", [1, 20, 700, 100_003])
def test_few_keys_and_more_than_a_table_has_places(keys: int) -> None:
    assert_as_judged(Distinct(keys=keys), rows_of_every_kind(directed=True))
    hub = Graph.from_edges(np.arange(1, 60_001), np.zeros(60_000, dtype=int))
    assert_as_judged(Distinct(keys=keys), hub)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["single", "double"])
def test_labels(precision: str) -> None:
    graph = rows_of_every_kind(directed=False)
    for program in (CDLP(), WeightedLabels()):
        expected = run(program, graph, device="cpu", precision=precision)["label"]
        found = run(program, graph, device="cuda", precision=precision)["label"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
def test_in_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_in_leases(KEYED["votes"], rows_of_every_kind(directed=True), 2, monkeypatch)


def test_what_is_not_built_is_named() -> None:
    assert [find_gpu_obstacle(analyse(KEYED[name]), False) for name in ("votes", "answers")] == [None, None]
    for name in ("tables", "orders"):
        assert "sorted by key" in (find_gpu_obstacle(analyse(KEYED[name]), False) or "")
