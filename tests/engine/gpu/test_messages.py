"""Messages that do not combine along edges, on a GPU: lists, direct messages, and edges that compute() walks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from battery import BATTERY
from equality_programs import PROGRAMS
from gpu_ways import assert_as_judged, assert_same_in_leases, rows_of_every_kind
from loop_programs import FOLDS, loop_program
from send_programs import Flood, FloodSum

from sigps import Graph, Param, State, Vertex, run
from sigps.errors import ExchangeError

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("direction", ["pull", "push"])
@pytest.mark.parametrize("name", FOLDS)
def test_loops_that_fold(name: str, direction: str) -> None:
    graph = BATTERY["grid" if name == "product" else "skewed"].build()  # a product of many does not fit
    judge = run(loop_program(name), graph, device="python")
    result = run(loop_program(name), graph, device="cuda", direction=direction)
    for field in judge.fields:
        np.testing.assert_allclose(result[field], judge[field], rtol=1e-9, err_msg=field)


class Parcel(NamedTuple):
    """What is posted, and by whom."""

    sender: int
    count: int
    weight: float


class InOrder(Vertex, message=int):
    """What is kept tells the order of the messages, which is that of the in-edges."""

    code: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.code = (self.code * 31 + m + 7) % 1000003
            self.heard += 1
        if self.superstep < 3 and (self.id + self.superstep) % 3 != 0:
            self.send_to_neighbors(self.id % 1000003 * 5 + self.superstep)
        if self.superstep >= 2:
            self.vote_to_halt()


class Weighed(Vertex, message=float):
    """A list of what edges make of a value, and some edges bring nothing."""

    total: State[float] = 0.0
    most: State[int] = 0

    def compute(self, messages):
        count = 0
        for m in messages:
            self.total = self.total / 2 + m
            count += 1
        self.most = max(self.most, count)
        if self.superstep < 2:
            for edge in self.out_edges:
                if edge.weight > 2.0:
                    self.send(edge, edge.weight * (self.superstep + 1))
        else:
            self.vote_to_halt()


class Lost(Vertex, message=int):
    """Writes to a vertex that is not there, in superstep 1."""

    target: Param[int] = 0
    total: State[int] = 0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep == 1 and self.id == 0:
            self.send_to(self.target, 1)
        if self.superstep > 3:
            self.vote_to_halt()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("program", [InOrder(), Weighed(), PROGRAMS["two_letters"], PROGRAMS["jump"]])
def test_rows_of_every_kind(program: Vertex, directed: bool) -> None:
    assert_as_judged(program, rows_of_every_kind(directed), judge="cpu")


def test_compute_walks_rows_of_every_kind() -> None:
    assert_as_judged(PROGRAMS["neighbourhood"], rows_of_every_kind(True), judge="cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize("graph", ["skewed", "grid", "parallel_edges", "self_loops", "sparse_ids"])
def test_lists_keep_the_order_of_in_edges(graph: str) -> None:
    if graph not in BATTERY:
        pytest.skip(f"the battery has no {graph}")
    built = BATTERY[graph].build()
    expected = run(InOrder(), built, device="cpu")
    for _ in range(3):
        result = run(InOrder(), built, device="cuda")
        np.testing.assert_array_equal(result["code"], expected["code"])
        np.testing.assert_array_equal(result["heard"], expected["heard"])


@pytest.mark.parametrize("size", [3, 40, 700])
@pytest.mark.parametrize("copies", [1, 50, 3000])
def test_more_mail_than_there_is_room_for(size: int, copies: int) -> None:
    """What each vertex hears is counted here by hand."""
    if size * copies > 200_000:
        pytest.skip("as much as the others, and slow")
    ring = np.arange(size)
    graph = Graph.from_edges(ring, np.roll(ring, -1))
    heard, sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for superstep in range(3):
        writers, numbers = np.meshgrid(ring, np.arange(copies), indexing="ij")
        targets = (writers * 7 + numbers * 13 + superstep) % size
        np.add.at(heard, targets, 1)
        np.add.at(sums, targets, writers + numbers)
    flood = run(Flood(copies=copies), graph, device="cuda")
    np.testing.assert_array_equal(flood["letters"], heard)
    np.testing.assert_array_equal(flood["total"], sums)
    np.testing.assert_array_equal(run(FloodSum(copies=copies), graph, device="cuda")["total"], sums)
    assert [s.messages for s in flood.stats] == [size * copies] * 3 + [0]
    assert [s.active for s in flood.stats] == [size] * 4
    assert {s.direction for s in flood.stats} == {"mailbox"}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("program", [Flood(copies=300), PROGRAMS["two_letters"], PROGRAMS["jump"], InOrder()])
def test_mail_in_several_leases(program: Vertex, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_in_leases(program, BATTERY["grid"].build(), size, monkeypatch)


@pytest.mark.parametrize("target", [-1, 10**12, 5])
def test_mail_to_nobody_is_an_error_as_on_the_cpu(target: int) -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3])
    said = []
    for device in ("cpu", "cuda"):
        with pytest.raises(ExchangeError) as caught:
            run(Lost(target=target), graph, device=device)  # type: ignore[arg-type]
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert f"send_to({target})" in said[0]


def test_mail_finds_any_ids() -> None:
    graph = Graph.from_edges([10**10, -5, 77, 0], [-5, 77, 0, 10**10])
    assert_as_judged(Lost(target=77), graph, judge="python")
    assert run(Lost(target=77), graph, device="cuda")["total"].tolist().count(1) == 1


class Posts(Vertex, message=Parcel):
    """Direct messages that combine: so many to a few vertices that a warp or a block combines them."""

    total: State[int] = 0
    least: State[int] = 0
    heaviest: State[float] = 0.0

    def compute(self, messages):
        self.total = sum(m.count for m in messages)
        self.least = min((m.sender for m in messages), default=-1)
        self.heaviest = max((m.weight for m in messages), default=0.0)
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send_to(edge.target, Parcel(self.id, 1 + self.superstep, self.id * 0.5))
        if self.superstep > 3:
            self.vote_to_halt()


@pytest.mark.parametrize("many", [31, 33, 4096, 4097, 60_000])
def test_mail_to_hubs_combines(many: int) -> None:
    targets = np.concatenate([np.zeros(many, dtype=int), np.full(many // 2, 1), np.arange(2, 900)])
    graph = Graph.from_edges(np.arange(1000, 1000 + targets.size), targets)
    expected, found = (run(Posts(), graph, device=device) for device in ("cpu", "cuda"))
    for field in expected.fields:
        np.testing.assert_array_equal(found[field], expected[field], err_msg=field)
