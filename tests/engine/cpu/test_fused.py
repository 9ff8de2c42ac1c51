"""Fused supersteps on one core: their results are those of one superstep at a time."""

from __future__ import annotations

import itertools
from typing import Any

import equality_programs as programs
import numpy as np
import pytest
from battery import BATTERY
from engines import compiled, interpreted, values
from send_programs import Rounds
from turns import half_of

from sigps import Graph, Vertex, run
from sigps.apps import BFS, SSSP, WCC, KCore, KHop
from sigps.engine.cpu import engine as in_memory
from sigps.engine.cpu import fused
from sigps.engine.stats import FusedStats, SuperstepStats

SMALL = ["skewed", "grid", "path_undirected", "star_out", "two_components", "self_loop"]
LONG = Graph.from_edges(range(3000), range(1, 3001), directed=False)


PROGRAMS = [
    KCore(),
    KHop(source=0, hops=9),
    WCC(),
    SSSP(source=0),
    BFS(source=0),
    programs.Spread(),
    Rounds(),
]


def history(engine: Any, program: Vertex, *leases: int) -> list[Any]:
    stats = [s for size in leases for s in engine.lease(size).stats]
    counts = [(s.superstep, s.active, s.messages) for s in stats]
    states = {f.name: values(engine, f.name) for f in program.declaration.states}
    return [counts, states, engine.aggregates.by_name()]


def one_by_one(program: Vertex, graph: Graph, monkeypatch: Any, **options: Any) -> Any:
    """Return an engine that returns to the interpreter after every superstep."""
    monkeypatch.setattr(in_memory, "most_work_alone", lambda num_threads: -1)
    return compiled(program, graph, **options)


@pytest.mark.parametrize(
    ("program", "how"), half_of(PROGRAMS, [*itertools.product([1, 3], [*SMALL, "long"])]), ids=str
)
def test_fused_supersteps_are_those_of_one_by_one(
    program: Vertex, how: tuple[int, str], monkeypatch: Any
) -> None:
    threads, graph = how
    built = LONG if graph == "long" else BATTERY[graph].build()
    for options in ({}, {"forced": "push"}, {"asynchronous": True}):
        found = history(compiled(program, built, threads=threads, **options), program, 10_000)
        pieces = history(compiled(program, built, threads=threads, **options), program, 2, 1, 3, 10_000)
        with monkeypatch.context() as patch:
            expected = history(one_by_one(program, built, patch, threads=threads, **options), program, 10_000)
        assert found == pieces
        assert found[0] == expected[0]
        for name, state in expected[1].items():
            assert np.allclose(found[1][name], state, rtol=1e-12)
        assert found[2] == expected[2]


@pytest.mark.parametrize("graph", SMALL)
def test_persistent_totals_are_those_of_the_interpreter(graph: str) -> None:
    built = BATTERY[graph].build()
    assert history(compiled(Rounds(), built, forced="push"), Rounds(), 10_000) == history(
        interpreted(Rounds(), built), Rounds(), 10_000
    )


def test_as_many_are_fused_as_may_be(monkeypatch: Any) -> None:
    results = []
    run = fused.FusedLoop.run

    def noted(self: Any, *given: Any, **limits: Any) -> Any:
        results.append(run(self, *given, **limits))
        return results[-1]

    monkeypatch.setattr(fused.FusedLoop, "run", noted)
    outcome = compiled(BFS(source=0), LONG).lease(10_000)
    assert outcome.ended
    assert len(outcome.stats) > 3000
    assert sum(len(result.stats) for result in results) == len(outcome.stats) - 1  # all but superstep 0
    assert len(results) < 10
    engine = compiled(BFS(source=0), LONG)
    assert [len(engine.lease(size).stats) for size in (1, 5, 700)] == [1, 5, 700]


PUSHED = [
    "pagerank",
    "pagerank_tolerance",
    "wcc",
    "extremes",
    "spread",
    "bfs",
    "sssp",
    "mixture",
]


@pytest.mark.parametrize("graph", ["skewed", "two_components", "self_loop"])
@pytest.mark.parametrize("name", PUSHED)
def test_a_tiny_graph_is_fused_from_its_second_run_on(name: str, graph: str, monkeypatch: Any) -> None:
    """Or from the third, where the second lays it out by degree. Supersteps and results are those of the first."""
    program, built = programs.program_for(name, graph), BATTERY[graph].build()
    judge = run(program, built, device="python")
    results = [run(program, built, device="cpu", asynchronous=False) for _ in range(2)]
    with monkeypatch.context() as patch:  # not one superstep is left to the interpreter
        patch.setattr(in_memory.Engine, "compute", None)
        results.append(run(program, built, device="cpu", asynchronous=False))
    assert [s.direction for s in results[-1].stats] == ["pull", *["push"] * (len(results[-1].stats) - 1)]
    for result in results:
        assert [(s.superstep, s.messages) for s in result.stats] == [
            (s.superstep, s.messages) for s in judge.stats
        ]
        for field in program.declaration.states:
            assert np.allclose(result[field.name], judge[field.name], rtol=1e-9, equal_nan=True)
        assert result.aggregators == pytest.approx(judge.aggregators)


def test_a_run_that_must_pull_is_not_fused() -> None:
    built = BATTERY["skewed"].build()
    for _ in range(3):
        result = run(programs.program_for("pagerank", "skewed"), built, device="cpu", direction="pull")
        assert {s.direction for s in result.stats} == {"pull"}


def test_a_large_superstep_is_left_to_all_threads(monkeypatch: Any) -> None:
    monkeypatch.setattr(fused, "_WORK_BEFORE_OTHERS", 40)
    graph = BATTERY["skewed"].build()
    program = KCore()
    found = history(compiled(program, graph, threads=5, forced="push"), program, 10_000)
    with monkeypatch.context() as patch:
        assert found == history(one_by_one(program, graph, patch, threads=5, forced="push"), program, 10_000)


def test_the_time_of_fused_supersteps_is_divided_by_their_work() -> None:
    shares = [s.seconds for s in FusedStats(0, np.array([[1, 1, 1], [0, 0, 0], [0, 1000, 0]]), 2.0)]
    assert sum(shares) == pytest.approx(2.0)
    assert shares[0] == shares[2] < shares[1]
    assert list(FusedStats(0, np.empty((3, 0), dtype=np.int64), 1.0)) == []


def test_fused_supersteps_become_records_only_where_somebody_looks(monkeypatch: Any) -> None:
    made: list[int] = []

    def counted(superstep: int, *rest: Any) -> SuperstepStats:
        made.append(superstep)
        return SuperstepStats(superstep, *rest)

    program, path = BFS(source=0), Graph.from_edges(range(99), range(1, 100))
    run(program, path, device="cpu")  # modules that it imports keep the class
    monkeypatch.setattr("sigps.engine.stats.SuperstepStats", counted)
    result = run(program, path, device="cpu")
    assert len(result.stats) == 100
    assert len(made) < 10
    made.clear()
    assert [s.superstep for s in result.stats] == made == list(range(100))
