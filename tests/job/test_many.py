"""Many runs at once: each is the run by itself, side by side or one after another."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import edge_programs
import equality_programs
import master_programs
import message_programs
import monotone_programs
import numpy as np
import pytest
import send_programs
import vector_programs
from battery import BATTERY, NAMES
from drawn_lanes import assert_lanes_are_runs
from fault_cases import Overflows
from graphs import busy_graph
from thread_group import ThreadGroup, run_ranks
from turns import half_of, in_turn, some_of
from ways import assert_same

from sigps import (
    Aggregator,
    ComputeError,
    ConfigError,
    Graph,
    GraphError,
    Param,
    Result,
    Shared,
    State,
    Table,
    Vector,
    Vertex,
    VertexId,
    num_neighbors,
    run,
    run_many,
)
from sigps.apps import (
    BFS,
    SSSP,
    WCC,
    Distances,
    EgoNet,
    HyperBall,
    LabelGroups,
    Node2vecWalks,
    PersonalisedPageRank,
)
from sigps.engine.cpu import apart, lanes
from sigps.engine.cpu.spec import SPEC as CPU
from sigps.engine.gpu.spec import SPEC as GPU
from sigps.engine.interpreter.spec import SPEC as PYTHON
from sigps.job import many
from sigps.job.many_results import Results
from sigps.job.preparing import prepared
from sigps.job.run import run_options
from sigps.system import shared_out

PATH = Graph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 2.0, 4.0])


class Draws(Vertex, message=int):
    """Random numbers: another seed, another run."""

    sum: State[int] = 0

    def compute(self, messages):
        self.sum += sum(messages) + self.random_int(100)
        if self.superstep < 3:
            self.send_to_neighbors(self.random_int(9))
        else:
            self.vote_to_halt()


class Friends(Vertex, message=int):
    """States that begin with a measure, and out-edges that compute() walks."""

    factor: Param[int]
    friends: State[int] = num_neighbors
    far: State[float] = 0.0

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.friends * self.factor)
        self.far += sum(messages) + sum(edge.weight for edge in self.out_edges)
        self.friends -= 1
        self.vote_to_halt()


class Divides(Vertex, message=int):
    """Messages that are only asked whether they came; along an edge of some weight one has no result."""

    weight: Param[int]
    found: State[np.uint8] = 0

    def compute(self, messages):
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, 100 // (int(edge.weight) - self.weight))
        elif messages:
            self.found = 200
        self.vote_to_halt()


class Wakings(Vertex, message=int):
    """Some halt, some retire; the master wakes the rest every few supersteps, also while messages are under way."""

    rests: Param[int]
    woken: Shared[int] = 0
    ran = Aggregator.sum(int)
    runs: State[int] = 0
    heard: State[int] = 0

    def compute(self, messages):
        self.runs += 1
        self.ran += 1
        self.heard += len(messages)
        if self.id % 5 == self.superstep:
            self.retire()
        elif self.superstep % 3 == self.id % 2:
            self.send_to_neighbors(1)
        self.vote_to_halt()

    def master(self):
        self.woken += self.ran
        if self.superstep == 9:
            self.stop()
        elif self.superstep % (self.rests + 1) == 0:
            self.wake_all()


class PersonalVectors(Vertex, message=Vector[float, 16]):
    """Sixteen walks with restart; a vector and a sum of vectors that vary by the run's parameter."""

    shift: Param[int]
    ranks: State[Vector[float, 16]] = 0.0
    total = Aggregator.sum(Vector[int, 3])
    ones: State[Vector[int, 3]] = (1, 2, 3)

    def compute(self, messages):
        if self.superstep == 0:
            self.ranks[(self.id + self.shift) % 16] = 1.0
        else:
            self.ranks = 0.85 * sum(messages) + 0.01
        self.total += self.ones * self.shift
        if self.superstep < 4 + self.shift % 2:
            self.send_to_neighbors(self.ranks / max(1, self.out_degree))
        else:
            self.vote_to_halt()


class Carried(Vertex, message=float):
    """A float that goes around; where several meet they add up."""

    source: Param[VertexId]
    got: State[float] = 0.0

    def compute(self, messages):
        if self.superstep == 0 and self.id == self.source:
            self.send_to_neighbors(1.5)
        elif messages and self.superstep < 30:
            self.got += sum(messages)
            self.send_to_neighbors(self.got)
        self.vote_to_halt()


class LooksUp(Vertex, message=float):
    """A table that all runs share, read in compute() and where messages are made."""

    table: Param[Table[float]]
    first: Param[int]
    sum: State[float] = 0.0

    def compute(self, messages):
        self.sum += sum(messages) + self.table[(self.id + self.first) % len(self.table)]
        if self.superstep < 3:
            for edge in self.out_edges:
                self.send(edge, self.sum * self.table[self.first % len(self.table)])
        self.vote_to_halt()


def sources_of(graph: Graph, count: int) -> list[Any]:
    ids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
    return [ids[(3 * i) % len(ids)] for i in range(count)]


PROGRAMS: dict[str, tuple[type[Vertex] | Vertex, str, Any]] = {
    "bfs": (BFS, "source", sources_of),
    "sssp": (SSSP, "source", sources_of),
    "personalised": (PersonalisedPageRank(source=0, iterations=12), "source", sources_of),
    "distances": (Distances, "source", sources_of),
    "reach": (equality_programs.Reach, "start", sources_of),
    "nearest": (monotone_programs.Nearest, "source", sources_of),
    "hops": (monotone_programs.Hops, "source", sources_of),
    "two_folds": (message_programs.TwoFolds, "rounds", [3, 1, 4]),
    "fold_loop": (message_programs.FoldLoop, "factor", [2.0, 0.5, 1.5]),
    "filtered": (send_programs.Filtered, "least", [1.0, 3.0, 200.0]),
    "paced": (send_programs.Paced, "turns", [3, 1, 5]),
    "rounds": (send_programs.Rounds, "rounds", [3, 9, 1]),
    "floods": (master_programs.Floods, "floods", [3, 1, 2]),
    "fading": (master_programs.Fading, "seed", [1, 2]),
    "draws": (Draws, "seed", [4, 5, 6]),
    "friends": (Friends, "factor", [2, 3]),
    "waves": (master_programs.Waves, "waves", [3, 1, 4]),
    "budget": (master_programs.Budget, "limit", [4.0, 40.0, 1.0, 90.0]),
    "unheard": (master_programs.Unheard, "seed", [1, 2]),
    "held_back": (master_programs.HeldBack, "seed", [1, 2]),
    "sleeper": (master_programs.Sleeper, "seed", [1, 2]),
    "gone": (master_programs.Gone, "seed", [1, 2]),
    "wakings": (Wakings, "rests", [1, 0, 3]),
    "mixture": (vector_programs.Mixture, "seed", [1, 2, 3]),
    "largest": (vector_programs.LargestOfEach, "seed", [1, 2]),
    "census": (vector_programs.Census, "seed", [1, 2]),
    "hyperball": (HyperBall, "seed", [1, 2]),
    "personal_vectors": (PersonalVectors, "shift", [0, 1, 5, 2]),
    "looks_up": (LooksUp(table=[3.0, 1.0, 2.5], first=0), "first", [0, 1, 5, 2]),
}
APART: dict[str, tuple[type[Vertex] | Vertex, str, Any]] = {
    "jump": (equality_programs.Jump, "seed", [5, 2]),
    "walks": (Node2vecWalks(length=3), "seed", [5, 2, 7]),
    "groups": (LabelGroups, "seed", [5, 2, 7]),
    "edge_waves": (edge_programs.Waves, "rounds", [3, 1, 2]),
    "listed": (message_programs.Listed, "seed", [1, 2]),
    "ego_net": (EgoNet, "source", sources_of),
    "components": (WCC, "seed", [1, 2, 3]),
    "tables": (LooksUp(first=1, table=[1.0]), "table", [[3.0, 1.0, 2.5], [1.0, 2.0]]),
}
"""What lanes cannot have: each run has a thread."""


def by_themselves(
    cls: type[Vertex] | Vertex, name: str, values: list[Any], graph: Graph, **options: Any
) -> list[Result]:
    shared, cls = ({}, cls) if isinstance(cls, type) else (cls.params, type(cls))
    if name == "seed":
        return [run(cls(**shared), graph, seed=v, **options) for v in values]
    return [run(cls(**shared | {name: v}), graph, **options) for v in values]


LEAVES_OUT = ("sssp", "nearest", "hops")
"""Monotone programs: vertices whose messages improve nothing do not run."""


FILTERS = ("filtered", "held_back")
"""Programs that send along some edges only: compiled ones count all edges of those who sent."""


def assert_each_same(
    results: Any, judges: list[Result], *, only_better: bool = False, counts_messages: bool = True
) -> None:
    """Check every run against one by itself: bit for bit, where no aggregator adds up floats in an order of its own."""
    assert len(results) == len(judges)
    for result, judge in zip(results, judges, strict=True):
        assert_same(result, judge, exact=False, only_better=only_better)
        if counts_messages:
            assert [s.messages for s in result.stats] == [s.messages for s in judge.stats]
        assert [s.superstep for s in result.stats] == list(range(judge.supersteps))
        exact = not any(np.asarray(value).dtype.kind == "f" for value in judge.aggregators.values())
        for field in judge.fields if exact else ():
            np.testing.assert_array_equal(result[field], judge[field], err_msg=field, strict=True)


@functools.cache
def judge_of(program: str, graph: str, value: Any, max_supersteps: int | None = None) -> Result:
    """Return what the interpreter makes of one run, which takes it up to some seconds."""
    cls, name, _ = PROGRAMS[program]
    options = {"device": "python", "max_supersteps": max_supersteps}
    return by_themselves(cls, name, [value], BATTERY[graph].build(), **options)[0]


def assert_each_judged(
    results: Results, program: str, graph: str, chosen: list[Any], max_supersteps: int | None = None
) -> None:
    """Check runs, on the richest graph those of two values: the others are runs beside them."""
    distinct = list(dict.fromkeys(chosen))
    judged = some_of(distinct, 2) if graph == "skewed" else distinct
    at = [i for i, value in enumerate(chosen) if value in judged]
    assert len(results) == len(chosen)
    assert_each_same(
        [results[i] for i in at],
        [judge_of(program, graph, chosen[i], max_supersteps) for i in at],
        counts_messages=program not in FILTERS,
        only_better=program in LEAVES_OUT,
    )


CELLS = some_of(half_of([*PROGRAMS], [name for name in NAMES if name != "skewed"]), 112)
CELLS += [(program, "skewed") for program in PROGRAMS if program not in ("hyperball", "largest")]
"""On the richest graph without 48 and 256 bytes a message, which the judge goes through one by one."""


@pytest.mark.parametrize(("program", "graph"), CELLS)
def test_each_run_is_the_run_by_itself(program: str, graph: str) -> None:
    cls, name, values = PROGRAMS[program]
    built = BATTERY[graph].build()
    chosen = values(built, 5) if callable(values) else values
    results = run_many(cls, built, **{name: chosen}, device="cpu")
    assert_each_judged(results, program, graph, chosen)
    assert results.one_by_one == ""


@pytest.mark.parametrize(
    ("program", "direction"),
    [
        *in_turn(["bfs", "sssp", "filtered", "floods", "waves", "budget", "looks_up"], ["push", "pull"]),
        *((program, way) for program in ("personalised", "personal_vectors") for way in ("push", "pull")),
    ],
)
def test_directions_and_waves_change_nothing(program: str, direction: str) -> None:
    cls, name, values = PROGRAMS[program]
    built = BATTERY["skewed"].build()
    chosen = values(built, 5) * 8 if callable(values) else values * 13
    results = run_many(cls, built, **{name: chosen}, device="cpu", direction=direction, threads=3)
    assert_each_judged(results, program, "skewed", chosen)


@pytest.mark.parametrize("width", lanes.WIDTHS)
def test_every_width_gives_the_same(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "WIDTHS", (width,))
    graph = busy_graph()
    sources = sources_of(graph, 70)
    for cls, given in ((BFS, {}), (PersonalisedPageRank, {"iterations": 4})):
        results = run_many(cls, graph, source=sources, device="cpu", threads=1, **given)
        assert results.one_by_one == ""
        for number in (0, 69):
            judge = busy_judge_of(cls, source=sources[number], **given)
            assert_each_same([results[number]], [judge], only_better=True)


@functools.cache
def busy_judge_of(cls: type[Vertex], **params: Any) -> Result:
    return run(cls(**params), busy_graph(), device="python")


def test_runs_end_at_max_supersteps_each_for_itself() -> None:
    results = run_many(BFS, PATH, source=[0, 3], device="cpu", max_supersteps=2)
    judges = by_themselves(BFS, "source", [0, 3], PATH, device="python", max_supersteps=2)
    assert_each_same(results, judges)
    assert [r.reason for r in results] == ["max_supersteps", "converged"]
    for most in (1, 3, 4):
        results = run_many(master_programs.Floods, PATH, floods=[1, 3], device="cpu", max_supersteps=most)
        judges = by_themselves(
            master_programs.Floods, "floods", [1, 3], PATH, device="python", max_supersteps=most
        )
        assert_each_same(results, judges)


def test_results_by_run_and_by_field() -> None:
    results = run_many(SSSP, PATH, source=[0, 2], device="cpu")
    assert results[0]["distance"].tolist() == [0.0, 1.0, 3.0, 7.0]
    assert results["distance"].tolist() == [[0.0, 1.0, 3.0, 7.0], [np.inf, np.inf, 0.0, 4.0]]
    assert results.given == [{"source": 0}, {"source": 2}]
    assert results.supersteps == [results[0].supersteps, results[1].supersteps] == [4, 2]
    assert results.ids.tolist() == [0, 1, 2, 3]
    assert "2 runs of SSSP by source; side by side on device cpu" in repr(results)
    assert results[0].top("distance", 1) == [(3, 7.0)]
    with pytest.raises(ConfigError, match="no field 'distanc'"):
        results["distanc"]


def test_lists_are_runs_and_other_values_are_for_all() -> None:
    results = run_many(PersonalisedPageRank, PATH, source=np.array([0, 1]), damping=[0.5, 0.9], iterations=3)
    for result, source, damping in zip(results, (0, 1), (0.5, 0.9), strict=True):
        judge = run(PersonalisedPageRank(source=source, damping=damping, iterations=3), PATH, device="python")
        assert result["rank"].tolist() == judge["rank"].tolist()
    of_instance = run_many(PersonalisedPageRank(source=1, iterations=3), PATH, damping=[0.5, 0.9])
    assert of_instance["rank"][1].tolist() == results["rank"][1].tolist()


def test_strings_for_ids() -> None:
    graph = BATTERY["string_ids"].build()
    results = run_many(BFS, graph, source=["bob", "eve"], device="cpu")
    assert results.one_by_one == ""
    assert results[0]["parent"].tolist() == run(BFS(source="bob"), graph, device="python")["parent"].tolist()


def test_reduce_brings_runs_together_and_keeps_none() -> None:
    sources = sources_of(PATH, 4)
    whole = run_many(BFS, PATH, source=sources, device="cpu")["level"]
    for how, expected in (("sum", whole.sum(axis=0)), ("min", whole.min(axis=0)), ("max", whole.max(axis=0))):
        results = run_many(BFS, PATH, source=sources, device="cpu", reduce={"level": how})
        assert results.reduced["level"].tolist() == expected.tolist()
        assert results[2].fields == ()
        assert results[2].supersteps == 2
        with pytest.raises(ConfigError, match=r"read results.reduced\['level'\]"):
            results["level"]
    one_by_one = run_many(BFS, PATH, source=sources, device="python", reduce={"level": "sum"})
    assert one_by_one.reduced["level"].tolist() == whole.sum(axis=0).tolist()


def test_one_result_of_all_runs() -> None:
    results = run_many(BFS, PATH, source=[0, 2], device="cpu", max_supersteps=3, reduce={"level": "max"})
    one = results.as_one({"farthest": results.reduced["level"]}, {"runs": 2})
    assert one["farthest"].tolist() == [0, 1, 2, 1]
    assert (one.reason, one.supersteps, one.aggregators) == ("max_supersteps", 3 + 2, {"runs": 2})
    assert [s.active for s in one.stats] == [4, 1, 1, 4, 1]
    assert one.top("farthest", 1) == [(2, 2)]
    with pytest.raises(ConfigError, match="'farthest' has not one value for each of 4 vertices"):
        results.as_one({"farthest": np.arange(3)})


def test_states_begin_as_they_are_given() -> None:
    given = {"friends": np.array([9, 8, 7, 6])}
    results = run_many(Friends, PATH, factor=[1, 2], device="cpu", initial=given)
    judges = by_themselves(Friends, "factor", [1, 2], PATH, device="python", initial=given)
    assert_each_same(results, judges)


def test_a_failure_is_that_of_the_run_by_itself() -> None:
    with pytest.raises(ComputeError) as alone:
        run(Overflows(factor=2**20), PATH, device="cpu")
    with pytest.raises(ComputeError) as many:
        run_many(Overflows, PATH, factor=[1, 2, 2**20, 3], device="cpu")
    assert str(many.value) == str(alone.value)
    assert many.value.__notes__[-1] == "in run 2 of 4: factor=1048576"
    with pytest.raises(ComputeError, match="divided by zero"):
        run_many(Divides, PATH, weight=[0, 3, 4, 5], device="cpu")
    results = run_many(Divides, PATH, weight=[0, 3, 5, 6], device="cpu", reduce={"found": "sum"})
    assert results.reduced["found"].tolist() == [0, 800, 800, 800]  # more than the field's type holds


def test_what_cannot_go_side_by_side_says_why() -> None:
    def reason(cls: type[Vertex], graph: Graph = PATH, **keywords: Any) -> str:
        return run_many(cls, graph, **keywords).one_by_one

    assert reason(BFS, source=[1]) == "there is one run"
    assert "device='python'" in reason(BFS, source=[1, 2], device="python")
    assert "asynchronous=True" in reason(SSSP, source=[1, 2], device="cpu", asynchronous=True)
    assert "tolerance is fixed" in reason(PersonalisedPageRank, source=1, tolerance=[None, 0.1], device="cpu")


@pytest.mark.parametrize(
    ("cls", "options", "why"),
    [
        (BFS, {}, ""),
        (message_programs.Listed, {}, "one by one"),
        (LabelGroups, {}, "by key"),
        (BFS, {"schedule": "edge"}, "schedule='edge'"),
        (WCC, {}, "best value first"),
        (WCC, {"asynchronous": False}, ""),
        (PersonalisedPageRank, {"deterministic": True}, "exactly"),
    ],
)
def test_what_lanes_cannot_have(cls: type[Vertex], options: dict[str, Any], why: str) -> None:
    needed = {"source": 1} if "source" in [field.name for field in cls.declaration.params] else {}
    made = prepared(cls(**needed), PATH, **run_options({"device": "cpu", **options}))
    assert made.executable.program is not None
    found = lanes.lanes_obstacle(made.executable.program, made.options)
    assert (found == "") == (why == "")
    assert why in found


def test_few_runs_of_many_edges_leave_no_core_idle() -> None:
    made = prepared(LabelGroups(), PATH, **run_options({"device": "cpu"}))
    program, few, many_edges = made.executable.program, made.facts, made.facts._replace(num_edges=1 << 20)
    assert program is not None
    assert lanes.find_obstacle(program, few, made.options, 3, 4) == ""
    assert lanes.find_obstacle(program, many_edges, made.options, 4, 4) == ""
    assert "fewer runs than the 4 threads" in lanes.find_obstacle(program, many_edges, made.options, 3, 4)


@pytest.mark.parametrize("cls", [PersonalisedPageRank, Carried, BFS])
def test_few_runs_that_do_not_stay_in_cache_have_a_thread_each(
    cls: type[Vertex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bits of lanes."""
    graph = BATTERY["skewed"].build()
    given = {"source": sources_of(graph, 5), "device": "cpu", "threads": 2}
    in_lanes = run_many(cls, graph, **given)
    monkeypatch.setattr(lanes, "_CACHE", 0)
    monkeypatch.setattr(lanes, "Lanes", None)
    for result, other in zip(run_many(cls, graph, **given), in_lanes, strict=True):
        for field in other.fields:
            np.testing.assert_array_equal(result[field], other[field])


def rank_options(graph: str) -> dict[str, Any]:
    """Return how ranks run on a graph of the battery: of each way one has."""
    return {"skewed": {"direction": "push"}, "grid": {"max_supersteps": 3}}.get(graph, {})


SIZES = {"skewed": 2, "grid": 3, "two_components": 2, "string_ids": 3, "one_vertex": 2}
"""Graphs, and on how many ranks they run."""


@pytest.mark.parametrize(("graph", "size"), SIZES.items())
def test_ranks_share_runs_out(graph: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on one rank, whose runs are judged above: floats bit for bit."""
    monkeypatch.setattr(shared_out, "_ROUND_BYTES", 600)  # several rounds
    whole, options = BATTERY[graph].build(), rank_options(graph)
    given: dict[str, tuple[type[Vertex] | Vertex, dict[str, Any]]] = {}
    for name in [program for program, on in in_turn(PROGRAMS, SIZES) if on == graph]:
        cls, varied, values = PROGRAMS[name]
        chosen = values(whole, 7) if callable(values) else list(values)[:2] * 2
        given[name] = cls, {varied: chosen, "device": "cpu", "threads": 1, **options}

    def on_rank(group: ThreadGroup) -> dict[str, Results]:
        built = BATTERY[graph].build(group=group)
        return {name: run_many(cls, built, **keywords) for name, (cls, keywords) in given.items()}

    by_rank = run_ranks(size, on_rank)
    for name, (cls, keywords) in given.items():
        judges = run_many(cls, whole, **keywords)
        for rank, found in enumerate(results[name] for results in by_rank):
            assert found.one_by_one == ""
            at = np.searchsorted(judges.ids, found.ids)  # rank 0 has all, each other one its rows
            assert rank > 0 or len(at) == whole.num_vertices
            for result, judge in zip(found, judges, strict=True):
                assert (result.reason, result.supersteps) == (judge.reason, judge.supersteps)
                assert str(result.aggregators) == str(judge.aggregators)
                counts = [[(s.superstep, s.active, s.messages) for s in r.stats] for r in (result, judge)]
                assert counts[0] == counts[1]
                for field in judge.fields:
                    np.testing.assert_array_equal(result[field], judge[field][at], strict=True)


@pytest.mark.parametrize("graph", ["hub_on_a_partition_border", "string_ids", "parallel_edges"])
def test_each_run_has_a_thread_where_lanes_cannot_have_the_program(graph: str) -> None:
    whole = BATTERY[graph].build()
    given = {
        name: (cls, varied, values(whole, 5) if callable(values) else values)
        for name, (cls, varied, values) in APART.items()
    }

    def on_rank(group: ThreadGroup) -> dict[str, Results]:
        built = BATTERY[graph].build(group=group)
        return {
            name: run_many(cls, built, **{varied: chosen}, device="cpu")
            for name, (cls, varied, chosen) in given.items()
        }

    by_rank = run_ranks(2, on_rank)
    for name, (cls, varied, chosen) in given.items():
        judges = by_themselves(cls, varied, chosen, whole, device="python")
        alone = run_many(cls, whole, **{varied: chosen}, device="cpu", threads=2)
        for found in (alone, by_rank[0][name]):
            assert found.one_by_one == ""
            for result, judge in zip(found, judges, strict=True):
                if name in ("groups", "edge_waves"):
                    assert len(result.edges) == len(judge.edges)  # they are made when they are read
                assert_same(result, judge, exact=False, in_order=name != "components")
        if name not in ("groups", "edge_waves"):
            continue
        parts = [found[name] for found in by_rank]
        for run_of_all, run_of_part in zip(*parts, strict=True):
            edges, part = run_of_all.edges, run_of_part.edges
            at = np.isin(edges.sources, run_of_part.ids)
            for values in edges.fields:
                np.testing.assert_array_equal(edges[values][at], part[values])


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_drawn_programs_leave_the_same_bits_side_by_side(seed: int) -> None:
    assert assert_lanes_are_runs(seed) in ("same", "an error")


def test_ranks_reduce_in_the_order_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_out, "_ROUND_BYTES", 400)
    graph = BATTERY["skewed"].build()
    sources = sources_of(graph, 9)
    given = {"source": sources, "device": "cpu", "reduce": {"rank": "sum"}}
    alone = run_many(PersonalisedPageRank, graph, **given)

    def on_rank(group: ThreadGroup) -> Any:
        built = BATTERY["skewed"].build(group=group)
        return [run_many(PersonalisedPageRank, built, **given, gather=gather) for gather in (True, False)]

    (first, first_part), *others = run_ranks(3, on_rank)
    np.testing.assert_array_equal(first.reduced["rank"], alone.reduced["rank"])
    np.testing.assert_array_equal(first.ids, alone.ids)
    parts = [first_part, *(part for _, part in others)]
    np.testing.assert_array_equal(np.concatenate([p.reduced["rank"] for p in parts]), alone.reduced["rank"])
    np.testing.assert_array_equal(np.concatenate([p.ids for p in parts]), alone.ids)


def test_a_failure_on_ranks_is_that_of_the_run_by_itself() -> None:
    with pytest.raises(ComputeError) as alone:
        run(Overflows(factor=2**20), PATH, device="cpu")
    told: dict[int, str] = {}

    def on_rank(group: ThreadGroup) -> Any:
        graph = Graph.from_edges([0, 1, 2], [1, 2, 3], weights=[1.0, 2.0, 4.0], group=group)
        try:
            run_many(Overflows, graph, factor=[1, 2, 3, 1, 2**20, 3, 1], device="cpu")
        except ComputeError as error:
            told[group.rank] = f"{error} {error.__notes__[-1]}"
            raise

    with pytest.raises(ComputeError):
        run_ranks(2, on_rank)
    assert {text.split(", in vertex")[0] for text in told.values()} == {
        str(alone.value).split(", in vertex")[0]
    }
    assert all(
        "superstep 3" in text and text.endswith("in run 4 of 7: factor=1048576") for text in told.values()
    )


def test_ranks_that_cannot_share_runs_out_say_why() -> None:
    def on_rank(group: ThreadGroup) -> Any:
        graph = BATTERY["grid"].build(group=group)
        return [
            run_many(BFS, graph, source=[0, 7], device="cpu").one_by_one,
            run_many(BFS, graph, source=[0, 7, 3], device="cpu", host_memory="900KB").one_by_one,
            run_many(BFS, graph, source=[0, 7, 3], device="python"),
        ]

    fewer, _, interpreted = run_ranks(3, on_rank)[0]
    assert "fewer runs than the 3 ranks" in fewer
    assert "device='python'" in interpreted.one_by_one
    judges = by_themselves(BFS, "source", [0, 7, 3], BATTERY["grid"].build(), device="python")
    assert_each_same(interpreted, judges)
    fits, too_large = (1 << 20, 1 << 20), (1 << 20, 1 << 19)
    assert many.sharing_obstacle(CPU, 4, 4, {"memory": fits}) == ""
    assert many.sharing_obstacle(GPU, 4, 4, {"memory": fits, "device's memory": fits}) == ""
    assert "1.0 MiB with a run, takes more of a rank's memory" in many.sharing_obstacle(
        CPU, 4, 4, {"memory": too_large}
    )
    assert "more of a rank's device's memory than 512.0 KiB" in many.sharing_obstacle(
        GPU, 4, 4, {"memory": fits, "device's memory": too_large}
    )
    assert "on device='python'" in many.sharing_obstacle(PYTHON, 4, 4, {"memory": fits})


@pytest.mark.parametrize(
    ("keywords", "problem"),
    [
        ({"source": 1}, "varies nothing"),
        ({"source": []}, "source= has 0"),
        ({"source": [1, 2], "seed": [1]}, "source= has 2, seed= has 1"),
        ({"source": [1], "sourc": 2}, "no parameter 'sourc', nor is it an option; did you mean 'source'?"),
        ({"source": [1], "threads": [1]}, "threads= is an option of all runs"),
        ({"source": [1], "checkpoint": "log"}, "checkpoint= is for one run"),
        ({"source": np.zeros((2, 2))}, "2 dimensions"),
        ({"source": [1, 2], "reduce": {"levl": "sum"}}, "did you mean 'level'"),
        ({"source": [1, 2], "reduce": {"level": "mean"}}, "'mean'} is not one of sum, min, max"),
        ({"source": [1, 2], "reduce": {"parent": "sum"}}, "ids of vertices"),
        ({"source": [1, 2], "reduce": "level"}, "must say how"),
        ({"source": [1, 2], "device": "cpus"}, "no device 'cpus'"),
    ],
)
def test_wrong_keywords_are_named(keywords: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        run_many(BFS, PATH, **keywords)
    assert problem in str(error.value)


def test_a_source_that_is_not_there_is_named() -> None:
    for device in ("cpu", "python"):
        with pytest.raises(GraphError, match="no vertex 17"):
            run_many(BFS, PATH, source=[0, 17], device=device)
    with pytest.raises(ConfigError, match="subclass of Vertex"):
        run_many("BFS", PATH, source=[1])  # type: ignore[arg-type]


def test_tables_have_a_row_for_each_run_and_vertex(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    results = run_many(BFS, PATH, source=[0, 2], device="cpu")
    table = results.to_arrow(["level"])
    assert table.column_names == ["source", "id", "level"]
    assert table["source"].to_pylist() == [0] * 4 + [2] * 4
    assert table["id"].to_pylist() == [0, 1, 2, 3] * 2
    assert table["level"].to_pylist() == [0, 1, 2, 3, -1, -1, 0, 1]
    results.write(tmp_path / "levels.csv", ["level"])
    assert (tmp_path / "levels.csv").read_text().splitlines()[:2] == ["source,id,level", "0,0,0"]
    brought = run_many(BFS, PATH, source=[0, 2], device="cpu", reduce={"level": "max"})
    assert brought.to_arrow().to_pydict() == {"id": [0, 1, 2, 3], "level": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("runs", "threads", "vertices", "lane_bytes", "memory", "occupancy", "expected"),
    [
        (5000, 2, 5000, 40, 1 << 30, None, 16),  # what stays in a core's cache
        (5000, 2, 500, 40, 1 << 30, None, 64),
        (5000, 2, 500, 40, 1 << 30, 1.0, 64),  # ... whether vertices run in several lanes at once or not
        (5, 2, 10**6, 40, 1 << 40, None, 8),  # a cache line of records, whatever the graph
        (5, 2, 10**6, 40, 1 << 40, 3.0, 8),
        (5, 2, 10**6, 40, 1 << 40, 1.5, 1),  # but where lanes share nothing
        (2, 2, 10**6, 40, 1 << 40, None, 1),  # no more than there are runs
        (20, 2, 100, 40, 1 << 30, None, 16),
        (5000, 2, 5000, 40, 4 * 10**6, None, 8),  # what fits into memory
        (64, 2, 10**8, 40, 1 << 30, None, 0),
    ],
)
def test_how_many_lanes(
    runs: int,
    threads: int,
    vertices: int,
    lane_bytes: int,
    memory: int,
    occupancy: float | None,
    expected: int,
) -> None:
    assert lanes.choose_lanes(runs, threads, vertices, lane_bytes, memory, occupancy) == expected


def test_one_lane_where_lanes_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_CACHE", 0)
    made = []
    monkeypatch.setattr(lanes.Lanes, "__init__", noting(lanes.Lanes.__init__, made))
    graph = Graph.from_edges(range(40), [*range(1, 40), 0])
    results = run_many(Carried, graph, source=range(20), device="cpu", threads=1)
    assert made == [8, 1]  # on a cycle no two of them are at one vertex at a time
    assert_each_same(results, by_themselves(Carried, "source", list(range(20)), graph, device="python"))
    run_many(BFS, graph, source=range(20), device="cpu", threads=1)
    assert made == [8, 1]  # an engine each


@pytest.mark.parametrize(
    ("program", "graph"),
    in_turn(
        ["bfs", "sssp", "distances", "nearest", "two_folds", "floods", "waves", "draws", "largest"],
        ["grid", "skewed", "two_components", "string_ids"],
    ),
)
def test_an_engine_each_gives_the_same(program: str, graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_CACHE", 0)
    monkeypatch.setattr(lanes, "_SHARED", np.inf)
    monkeypatch.setattr(lanes, "Lanes", None)
    cls, name, values = PROGRAMS[program]
    built = BATTERY[graph].build()
    chosen = (values(built, 5) if callable(values) else values) * 3
    for options in ({"threads": 3}, {"threads": 1, "max_supersteps": 2}):
        results = run_many(cls, built, **{name: chosen}, device="cpu", asynchronous=False, **options)
        assert_each_judged(results, program, graph, chosen, options.get("max_supersteps"))
        assert results.one_by_one == ""


def test_a_failure_of_an_engine_is_that_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_CACHE", 0)
    monkeypatch.setattr(lanes, "_SHARED", np.inf)
    with pytest.raises(ComputeError, match="divided by zero") as many:
        run_many(Divides, PATH, weight=[0, 3, 5, 6, 7, 4], device="cpu", threads=2)
    assert many.value.__notes__[-1] == "in run 5 of 6: weight=4"


@pytest.mark.parametrize(
    ("active", "lanes_of", "expected"),
    [([], 8, 1.0), ([1000], 8, 8.0), ([1] * 500, 8, 1.007), ([500, 500], 8, 4.5), ([900, 100], 2, 1.82)],
)
def test_in_how_many_lanes_vertices_run(active: list[int], lanes_of: int, expected: float) -> None:
    assert apart.expected_occupancy(active, 1000, lanes_of) == pytest.approx(expected)


def noting(function: Any, made: list[int]) -> Any:
    def noted(self: Any, context: Any, native: Any, width: int, *others: Any) -> None:
        made.append(width)
        function(self, context, native, width, *others)

    return noted


class Contributes(Vertex):
    """An aggregator of each run."""

    factor: Param[int]
    total = Aggregator.sum(int, persistent=True)

    def compute(self, messages):
        self.total += self.id * self.factor
        if self.superstep == 2:
            self.vote_to_halt()


def test_aggregators_are_of_each_run() -> None:
    results = run_many(Contributes, PATH, factor=[1, 10], device="cpu")
    assert [r.aggregators["total"] for r in results] == [18, 180]  # 0 + 1 + 2 + 3, three times
