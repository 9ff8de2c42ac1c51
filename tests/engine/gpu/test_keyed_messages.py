"""Messages that are grouped by key, on a GPU: by lanes, warps and blocks, with few keys and many."""

from __future__ import annotations

import numpy as np
import pytest
from battery import BATTERY
from gpu_ways import assert_as_judged, assert_ranks_agree, assert_same_in_leases, rows_of_every_kind
from keyed_programs import KEYED
from ways import Way

from sigps import Graph, Param, State, Vertex, run
from sigps.apps import CDLP, WeightedLabels


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
@pytest.mark.parametrize("name", ["votes", "pulls", "answers", "tables", "orders"])
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


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["tables", "orders"])
@pytest.mark.parametrize("graph", ["skewed", "parallel_edges", "isolated"])
def test_sorted_lists_on_ranks(name: str, graph: str) -> None:
    ways = [Way(2, device="cuda"), Way(3, device="cuda", partitioner="hash")]
    assert_ranks_agree(KEYED[name], BATTERY[graph], ways)


class Shares(Vertex, message=int):
    """What a vertex got of each sender's rest, in the order of rests, and of senders where they are equal."""

    by: Param[int]
    seen: State[int] = 0

    def compute(self, messages):
        for rest, group in messages.grouped(lambda m: m % self.by - 2):
            for m in group:
                self.seen = (self.seen * 31 + m + rest) % 1_000_003
        if self.superstep < 2:
            self.send_to_neighbors(self.id)
        self.vote_to_halt()


@pytest.mark.gpu
@pytest.mark.parametrize("by", [1, 7, 100_003])
def test_lists_of_any_length_are_sorted_and_equal_keys_stay_in_order(by: int) -> None:
    lengths = [*range(1, 70), 127, 128, 129, 2047, 2048, 2049, 4096, 5000, 40_000]
    targets = np.repeat(np.arange(len(lengths)), lengths)
    sources = np.concatenate([np.random.default_rng(n).permutation(50_000)[:n] + 100 for n in lengths])
    assert_as_judged(Shares(by=by), Graph.from_edges(sources, targets), judge="cpu")


class Floods(Vertex, message=int):
    """Many direct messages to few vertices, by key; more with each superstep."""

    most: State[int] = 0
    keys: State[int] = 0

    def compute(self, messages):
        for key, group in messages.grouped(lambda m: m // 10):
            self.keys += 1
            self.most = max(self.most, len(group) * 100_000 + key)
        if self.superstep < 3:
            for edge in self.out_edges:
                for i in range(4 + 6 * self.superstep):
                    self.send_to(edge.target, self.id % 977 + i)
                self.send_to(self.id, self.superstep)
        self.vote_to_halt()


@pytest.mark.gpu
def test_sorted_direct_messages_that_need_more_room() -> None:
    graph = Graph.from_edges(np.arange(1, 30_001), np.arange(30_000) // 10_000)
    assert_as_judged(Floods(), graph, judge="cpu")
