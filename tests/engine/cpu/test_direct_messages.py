from __future__ import annotations

from typing import Any

import equality_programs as programs
import numpy as np
import pytest
from engines import compiled, interpreted, values
from thread_group import ThreadGroup

from sigps import Aggregator, ExchangeError, Graph, State, Vertex, run


class Flood(Vertex, message=float):
    """Vertex 0 sends to all vertices several times at once; each answers once."""

    total: State[float] = 0.0
    count: State[int] = 0
    runs: State[int] = 0
    ran = Aggregator.sum(int)
    weighed = Aggregator.sum(float)

    def compute(self, messages):
        self.runs += 1
        self.ran += 1
        self.weighed += 0.1
        self.total += sum(messages)
        self.count += len(messages)
        if self.superstep == 0 and self.id == 0:
            for edge in self.out_edges:
                self.send(edge, 1.5)
                self.send(edge, 0.1)
                self.send_to(edge.target, 0.2)
        if self.superstep == 1 and self.id != 0:
            self.send_to(0, 2.0)
        self.vote_to_halt()


class Letters(Vertex, message=int):
    """The same with message lists: an alternating sum shows their order."""

    code: State[int] = 0
    count: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.code = (self.code * 31 + m) % 1000003
        self.count += len(messages)
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, self.id % 100)
                self.send_to(edge.target, 7)
        self.vote_to_halt()


def hub(size: int) -> Graph:
    rim = np.arange(1, size + 1)
    return Graph.from_edges(np.concatenate([rim * 0, rim]), np.concatenate([rim, rim * 0]))


@pytest.mark.parametrize("size", [5, 1365, 1366, 30000])  # 3 * 1365 messages just fit the first capacity
@pytest.mark.parametrize("options", [{}, {"threads": 3}, {"deterministic": True}])
def test_a_vertex_that_exceeds_the_capacity_runs_once(size: int, options: dict[str, Any]) -> None:
    engine = compiled(Flood(), hub(size), **options)
    stats = [engine.lease(1).stats[0]]
    assert engine.aggregates.by_name()["ran"] == size + 1
    assert engine.aggregates.by_name()["weighed"] == pytest.approx(0.1 * (size + 1), rel=1e-9)
    stats += engine.lease(100).stats
    assert [s.messages for s in stats] == [3 * size, size, 0]
    assert [s.active for s in stats] == [size + 1, size, 1]
    assert values(engine, "runs") == [2] + [2] * size
    assert values(engine, "count") == [size] + [3] * size
    assert values(engine, "total") == pytest.approx([2.0 * size] + [1.8] * size, rel=1e-12)


def test_many_vertices_that_fill_the_queue_together() -> None:
    graph = Graph.from_edges(np.repeat(np.arange(3000), 4), np.arange(12000) % 3000)
    judge, engine = interpreted(Letters(), graph), compiled(Letters(), graph, deterministic=True)
    for one in (judge, engine):
        assert [s.messages for s in one.lease(100).stats] == [24000, 0]
    assert values(engine, "count") == values(judge, "count") == [8] * 3000


@pytest.mark.parametrize("threads", [1, 3])
def test_deterministic_lists_come_in_the_order_of_their_senders(threads: int) -> None:
    draw = np.random.default_rng(6)
    graph = Graph.from_edges(*draw.integers(0, 1500, (2, 9000)))
    judge = interpreted(Letters(), graph)
    engine = compiled(Letters(), graph, threads, deterministic=True)
    for one in (judge, engine):
        one.lease(100)
    assert values(engine, "code") == values(judge, "code")
    assert len(set(values(engine, "code"))) > 1000


@pytest.mark.parametrize("deterministic", [False, True])
def test_combined_messages_are_what_the_interpreter_reads(deterministic: bool) -> None:
    draw = np.random.default_rng(7)
    graph = Graph.from_edges(*draw.integers(0, 300, (2, 3000)), draw.random(3000))
    program = programs.TwoLetters()
    judge, engine = (
        interpreted(program, graph, deterministic=deterministic),
        compiled(program, graph, deterministic=deterministic),
    )
    for one in (judge, engine):
        one.lease(100)
    if deterministic:
        assert values(engine, "got") == values(judge, "got")
    assert values(engine, "got") == pytest.approx(values(judge, "got"), rel=1e-12)
    assert values(engine, "best") == values(judge, "best")


@pytest.mark.parametrize("program", [Flood, Letters])
def test_a_rank_without_vertices_has_no_messages(program: type[Vertex], run_ranks: Any) -> None:
    def work(group: ThreadGroup) -> list[int]:
        graph = Graph.from_edges([0, 1], [1, 0], group=group)
        return list(run(program(), graph, device="cpu", threads=2)["count"])

    assert run_ranks(4, work)[0] == ([1, 3] if program is Flood else [2, 2])


def test_messages_that_do_not_fit_are_refused_before_they_are_written(monkeypatch):
    monkeypatch.setattr("sigps.engine.cpu.direct_messages.available_memory", lambda: 1 << 20)
    with pytest.raises(
        ExchangeError,
        match=r"rank 0, superstep 0: the messages of this superstep need .* bytes and 1,048,576 are free",
    ):
        run(Flood(), hub(30000), device="cpu", threads=1)
