"""Runs without barriers: states are those of the interpreter's supersteps, in whatever order blocks are computed."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import run_cell
from engines import compiled
from gas_programs import GatheredPaths, GatheredSSSP, GatheredWCC

from sigps import (
    GAS,
    Aggregator,
    ComputeError,
    ConfigError,
    DeviceError,
    Graph,
    Param,
    State,
    Vertex,
    generate,
    run,
)
from sigps.apps import SSSP, WCC
from sigps.engine import fixed_points
from sigps.engine.cpu import asynchronous
from sigps.engine.cpu.asynchronous import Schedule
from sigps.job.preparing import turned
from sigps.model.fields import NO_VERTEX

RELAX = """
class Relax(Vertex, message={type}):
    step: Param[{type}] = 1
    best: State[{type}] = {worst}

    def compute(self, messages):
        received = {first} if self.superstep == 0 else {fold}(messages, default={worst})
        if received {better} self.best:
            self.best = received
            {loop}
        self.vote_to_halt()
"""


ALONG = "for edge in self.out_edges: self.send(edge, self.best + edge.weight)"
MORE = "self.send_to_neighbors(self.best + 1)"


def relax(first: str = "(0.0 if self.id == 5 else inf)", loop: str = ALONG, **others: str) -> Any:
    given = {"type": "float", "worst": "inf", "fold": "min", "better": "<"} | others
    return run_cell(RELAX.format(first=first, loop=loop, **given))["Relax"]


LENGTHS, HOPS, LOWEST = relax(), relax(loop=MORE), relax("(self.id + 0.5)")
WIDEST = relax("(self.id + 0.0)", worst="-inf", fold="max", better=">")


def drawn(seed: int, weights: Any) -> Graph:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 60))
    ends = draw.integers(0, n, (2, 3 * n)) * 3 + 5
    return Graph.from_edges(*ends, weights=draw.choice(weights, 3 * n), directed=seed % 3 > 0)


def left_by(program: Vertex, graph: Graph, schedule: Schedule, threads: int) -> dict[str, Any]:
    engine = compiled(program, graph, threads, blocks=schedule)
    outcome = engine.lease(1 << 62)
    assert outcome.ended
    assert [s.direction for s in outcome.stats][1:] == ["async"]
    return {name: values.tolist() for name, values in engine.fields().items()}


SCHEDULES = [
    Schedule(),
    *(Schedule(b, m, s) for b, m, s in [(1, 1, 1), (2, 3, 2), (3, 1000, 3), (0, 2, 4), (6, 1, 5)]),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("make", "weights"),
    [
        (LENGTHS, [0.1, 0.7, 1.3, 1e-17]),
        (HOPS, [1.0]),
        (LOWEST, [0.1, 0.3]),
        (WIDEST, [-0.3, -2.0, -7.7]),
        (GatheredWCC, [1.0]),
        (WCC, [1.0]),
        (GatheredSSSP, [0.1, 3.3]),
        (SSSP, [1, 2, 3, 250]),
        (SSSP, [0.0, 0.0, 5.0]),
        (GatheredPaths, [1.0]),
    ],
)
def test_any_order(make: Any, weights: Any, seed: int, threads: int) -> None:
    graph = drawn(seed, weights)
    has_source = any(field.name == "source" for field in make.declaration.params)
    program = make(source=int(graph.ids.to_oids(np.arange(1))[0])) if has_source else make()
    graph = turned(graph, program)
    expected = run(program, graph, device="python")
    for schedule in SCHEDULES:
        found = left_by(program, graph, schedule, threads)
        for name, values in found.items():
            assert [-1 if v is None else v for v in expected[name].tolist()] == [
                -1 if v == NO_VERTEX else v for v in values
            ], (name, schedule)


@pytest.mark.parametrize("name", [name for name in BATTERY if name != "empty"])
def test_battery(name: str) -> None:
    graph = BATTERY[name].build()
    programs: list[Vertex] = [WCC()]
    if "weight" not in graph.columns or (graph.columns["weight"] % 1 == 0).all():
        programs.append(SSSP(source=graph.ids.to_oids(np.arange(1)).tolist()[0]))
    for program in programs:
        found = run(program, graph, device="cpu", asynchronous=True, threads=2)
        expected = run(program, graph, device="python")
        for field in expected.fields:
            assert found[field].tolist() == expected[field].tolist()
        assert found.reason == expected.reason == "converged"


def test_single_precision_rounds_alike() -> None:
    graph = drawn(5, [0.1, 0.7, 1e-9])
    found = run(LENGTHS(), graph, device="cpu", asynchronous=True, precision="single")
    assert (
        found["best"].tolist() == run(LENGTHS(), graph, device="python", precision="single")["best"].tolist()
    )


def test_statistics_count_the_blocks_that_were_computed() -> None:
    graph = generate("grid", rows=40, columns=40, weights="random")
    program = SSSP(source=0)
    engine = compiled(program, graph, 1, blocks=Schedule(bits=20))
    (last,) = list(engine.lease(1 << 62).stats)[1:]
    assert (last.blocks, last.block_edges) == (1, graph.num_edges)
    assert last.active >= 1599  # each vertex but the source, at least once
    assert last.messages >= 2 * (graph.num_edges - 4)


@pytest.mark.parametrize(
    ("program", "options", "error", "said"),
    [
        (SSSP(source=5), {"device": "python"}, ConfigError, "compiled code"),
        (SSSP(source=5), {"max_supersteps": 4}, ConfigError, "max_supersteps= is of supersteps"),
        (SSSP(source=5), {"direction": "pull"}, ConfigError, "direction= is of supersteps"),
        (SSSP(source=5), {"schedule": "edge"}, ConfigError, "schedule= is of supersteps"),
        (SSSP(source=5), {"device": "cpu"}, ConfigError, "no whole numbers from 0 on, so that parents"),
        (LENGTHS(step=float("nan")), {"device": "cpu"}, ConfigError, "a parameter is no number"),
        (SSSP(source=5), {"device": "cuda"}, DeviceError, "cuda"),
        (SSSP(source=5), {"asynchronous": "maybe"}, ConfigError, "must be True, False or 'auto'"),
    ],
)
def test_refused(program: Vertex, options: dict[str, Any], error: type[Exception], said: str) -> None:
    graph = Graph.from_edges([5, 6], [6, 7], weights=[0.5, 1.0])
    with pytest.raises(error, match=said):
        run(program, graph, **{"asynchronous": True, **options})


def test_long_paths_are_refused_when_they_are_found() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], weights=[2.0**53, 2.0])
    with pytest.raises(ConfigError, match="lengths are rounded"):
        run(SSSP(source=0), graph, asynchronous=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_faults_name_the_vertex(threads: int) -> None:
    graph = Graph.from_edges([5, 12, 13], [6, 13, 14])
    levels = {"type": "int", "worst": "-1", "fold": "max", "better": ">"}
    make = relax("(2**63 - 2 if self.id == 12 else -1)", MORE, **levels)
    told = []
    for is_free in (False, True):
        with pytest.raises(ComputeError) as raised:
            run(make(), graph, device="cpu", asynchronous=is_free, threads=threads)
        told.append(str(raised.value))
    assert "13" in told[1]
    assert told[0].split("superstep")[0] == told[1].split("superstep")[0]


def test_it_can_be_interrupted() -> None:
    n = 3000
    ends = np.arange(n)
    graph = Graph.from_edges(ends, (ends + 1) % n, weights=np.full(n, -1.0))  # never ends
    run(LENGTHS(), drawn(1, [1.0]), device="cpu", asynchronous=True)  # compiled
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(LENGTHS(), graph, device="cpu", asynchronous=True, threads=2)
    timer.join()


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize(
    ("weights", "make", "runs"),
    [
        ([0.1, 0.7], LENGTHS, ["async"]),
        ([2.0], LENGTHS, []),
        ([1, 2, 9], SSSP, ["at once"]),
        ([0.5, 2.0], SSSP, []),
    ],
)
def test_auto(monkeypatch: Any, weights: list[Any], make: Any, runs: list[str], first: int) -> None:
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)
    monkeypatch.setattr(asynchronous, "FIRST_SUPERSTEPS", first)
    graph = drawn(4, weights)
    program = make() if make is LENGTHS else make(source=5)
    found, expected = run(program, graph, device="cpu"), run(program, graph, device="python")
    assert {s.direction for s in found.stats} - {"push", "pull"} == set(runs)
    for name in expected.fields:
        assert found[name].tolist() == expected[name].tolist()


class Rank(GAS, asynchronous=0.85):
    """PageRank from 1."""

    tolerance: Param[float] = 1e-9
    rank: State[float] = 1.0

    def gather(self, edge):
        return edge.source.rank / edge.source.out_degree

    def apply(self, total):
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        return abs(self.rank - old) > self.tolerance


class Halves(Vertex, message=float, asynchronous=0.5):
    """Half the mean of the neighbours' values and 1, by supersteps of the user's own."""

    value: State[float] = 0.0
    moved = Aggregator.any()

    def compute(self, messages):
        """Send until nobody moved."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0 and self.in_degree > 0:
            value = 0.5 * sum(messages) / self.in_degree + 1.0
            self.moved += abs(value - self.value) > 1e-10
            self.value = value
        self.send_to_neighbors(self.value)


def fixed_point(graph: Graph, program: Vertex) -> Any:
    """Solve the linear system that either program describes."""
    n = graph.num_vertices
    sources = np.repeat(np.arange(n), np.diff(graph.offsets).astype(int))
    arcs = np.zeros((n, n))
    np.add.at(arcs, (graph.targets.astype(int), sources), 1.0)
    if isinstance(program, Rank):
        arcs /= np.maximum(arcs.sum(axis=0), 1)
        return np.linalg.solve(np.eye(n) - 0.85 * arcs, np.full(n, 0.15))
    degrees = arcs.sum(axis=1)
    arcs /= np.maximum(degrees, 1)[:, None]
    return np.linalg.solve(np.eye(n) - 0.5 * arcs, (degrees > 0) * 1.0)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("make", [Rank, Halves])
@pytest.mark.parametrize("seed", range(4))
def test_contractions_end_near_the_fixed_point(make: Any, seed: int, deterministic: bool) -> None:
    graph = drawn(seed, [1.0])
    expected = fixed_point(graph, make())
    (name,) = [field.name for field in make.declaration.states]
    for schedule, threads in ((Schedule(), 1), (Schedule(2, 1, 7), 2), (Schedule(3, 5, 8), 3)):
        engine = compiled(make(), graph, threads, blocks=schedule, deterministic=deterministic)
        assert engine.lease(1 << 62).ended
        np.testing.assert_allclose(engine.fields()[name], expected, rtol=0, atol=1e-6)


def test_deterministic_contractions_are_the_same_on_any_cores() -> None:
    graph = drawn(3, [1.0])
    found = [
        run(Rank(), graph, device="cpu", asynchronous=True, deterministic=True, threads=threads)[
            "rank"
        ].tolist()
        for threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
