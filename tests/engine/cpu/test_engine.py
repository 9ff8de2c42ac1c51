from __future__ import annotations

from typing import Any

import equality_programs as programs
import numpy as np
import pytest
from battery import BATTERY
from engines import compiled, values

from sigps import Graph, GraphError, State, Vertex, generate, run
from sigps.apps import BFS, WCC, PageRank
from sigps.engine.cpu import engine as cpu_engine
from sigps.engine.direction import pays_in_priority_order

CHAIN = Graph.from_edges(range(40), range(1, 41))


class Wakes(Vertex, message=int):
    """Vertex 0 sends in superstep 3; a halted vertex runs only when it has a message."""

    runs: State[int] = 0

    def compute(self, messages):
        self.runs += 1
        if self.id == 0 and self.superstep == 3:
            self.send_to_neighbors(1)
        if self.id != 0 or self.superstep >= 3:
            self.vote_to_halt()


class Short(Vertex, message=int):
    """Half of the vertices retire in superstep 1; later messages to them are dropped unread."""

    runs: State[int] = 0

    def compute(self, messages):
        self.runs += 1
        if self.superstep == 1 and self.id % 2 == 1:
            self.retire()
        if self.superstep < 3:
            self.send_to_neighbors(1)
        self.vote_to_halt()


class NeedsCost(Vertex, message=float):
    got: State[float] = 0.0

    def compute(self, messages):
        self.got = sum(messages)
        for edge in self.out_edges:
            self.send(edge, edge.cost)


def directions(engine: Any) -> list[str]:
    return [s.direction for s in engine.lease(1000).stats]


def test_a_small_frontier_is_pushed_and_a_large_one_pulled() -> None:
    along_a_chain = directions(compiled(BFS(source=0), CHAIN))
    assert along_a_chain[0] == "pull"  # everything is active
    assert set(along_a_chain[1:]) == {"push"}
    assert set(directions(compiled(PageRank(iterations=5), CHAIN))) == {"pull"}


@pytest.mark.slow
def test_a_forced_direction_is_kept_where_there_is_a_form_of_it() -> None:
    assert directions(compiled(BFS(source=0), CHAIN, forced="push"))[1:] == ["push"] * 40
    assert directions(compiled(BFS(source=0), CHAIN, forced="pull")) == ["pull"] * 41
    # Lists are only pulled; direct messages are neither.
    assert set(directions(compiled(programs.Coreness(), CHAIN, forced="push"))) == {"pull"}
    assert "push" in directions(compiled(programs.Spread(), CHAIN, forced="push"))
    assert set(directions(compiled(programs.Jump(), CHAIN, forced="push"))) == {"mailbox"}


@pytest.mark.parametrize("forced", ["push", "pull", None])
def test_halted_vertices_run_only_when_a_message_comes(forced: Any) -> None:
    engine = compiled(Wakes(), Graph.from_edges([0, 0, 1], [1, 2, 3]), forced=forced)
    outcome = engine.lease(100)
    assert outcome.ended
    assert [s.active for s in outcome.stats] == [4, 1, 1, 1, 2]
    assert values(engine, "runs") == [4, 2, 2, 1]


@pytest.mark.parametrize("forced", ["push", "pull", None])
def test_who_retired_never_runs_again(forced: Any) -> None:
    engine = compiled(Short(), Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0]), forced=forced)
    outcome = engine.lease(100)
    assert outcome.ended
    assert [s.active for s in outcome.stats] == [4, 4, 2]
    assert values(engine, "runs") == [3, 2, 3, 2]


@pytest.mark.parametrize("program", [WCC(), programs.Spread(), programs.TwoLetters(), programs.Coreness()])
def test_many_leases_are_one_run(program: Vertex) -> None:
    graph = BATTERY["skewed"].build()
    whole, pieces = compiled(program, graph), compiled(program, graph)
    everything = whole.lease(1000)
    stats = []
    for size in (1, 2, 1, 1000):
        outcome = pieces.lease(size)
        assert len(outcome.stats) <= size
        stats += outcome.stats
    assert everything.ended
    assert outcome.ended
    assert [(s.superstep, s.active, s.messages) for s in stats] == [
        (s.superstep, s.active, s.messages) for s in everything.stats
    ]
    for field in program.declaration.states:
        assert values(pieces, field.name) == values(whole, field.name)


def test_a_finished_engine_does_nothing_more() -> None:
    engine = compiled(BFS(source=0), CHAIN)
    assert engine.lease(1000).ended
    before = values(engine, "level")
    again = engine.lease(5)
    assert (again.ended, again.stats) == (True, [])
    assert values(engine, "level") == before


def test_a_column_that_is_missing_is_named_before_the_first_superstep() -> None:
    with pytest.raises(GraphError, match=r"edge\.cost"):
        compiled(NeedsCost(), CHAIN)


def test_the_graph_is_never_written() -> None:
    graph = BATTERY["skewed"].build()
    for program in (PageRank(iterations=3), WCC(), programs.Jump(), programs.Neighbourhood()):
        arrays = [graph.offsets, graph.targets, *graph.columns.values()]
        copies = [a.copy() for a in arrays]
        compiled(program, graph, threads=2).lease(100)
        assert all(np.array_equal(a, c) for a, c in zip(arrays, copies, strict=True))


class Greatest(Vertex, message=float):
    """The greatest number that neighbours send, superstep after superstep; some send none."""

    greatest: State[float] = -1.0

    def compute(self, messages):
        self.greatest = max(messages, default=-1.0)
        if self.superstep < 4 and (self.id + self.superstep) % 3 != 0:
            self.send_to_neighbors(float((self.id * 37 + self.superstep * 11) % 101))


def test_the_best_of_all_sent_ends_a_search_and_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    ends = rng.integers(0, 60, (2, 3000))  # rows far longer than a piece
    graph = Graph.from_edges(*ends, directed=False)
    for superstep in range(1, 6):
        expected = [-1.0] * graph.num_vertices
        for u, v in zip(*ends.tolist(), strict=True):
            for a, b in ((u, v), (v, u)):
                if superstep - 1 < 4 and (a + superstep - 1) % 3 != 0:
                    expected[b] = max(expected[b], float((a * 37 + (superstep - 1) * 11) % 101))
        for direction in ("pull", "push"):
            for threads in (1, 3):
                engine = compiled(Greatest(), graph, threads, forced=direction)
                engine.lease(superstep + 1)
                assert values(engine, "greatest") == expected


def test_a_tiny_graph_has_supersteps_as_they_are_written(monkeypatch: Any) -> None:
    monkeypatch.setattr(cpu_engine, "pays_in_priority_order", pays_in_priority_order)
    graph = generate("grid", rows=20, columns=20)
    by_itself, written = (run(WCC(), graph, device="cpu", asynchronous=way) for way in ("auto", False))
    assert [s.messages for s in by_itself.stats] == [s.messages for s in written.stats]
    larger = generate("grid", rows=40, columns=40)
    by_itself, written = (run(WCC(), larger, device="cpu", asynchronous=way) for way in ("auto", False))
    assert sum(s.messages for s in by_itself.stats) < sum(s.messages for s in written.stats)
