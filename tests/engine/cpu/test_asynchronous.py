"""Runs without barriers: states are those of the interpreter's supersteps, in whatever order blocks are computed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from engines import compiled
from gas_programs import GatheredPaths, GatheredSSSP, GatheredWCC, Rank
from processes import end_of
from relax_programs import MORE, relax
from thread_group import ThreadGroup, run_ranks
from turns import half_of

from sigps import (
    Aggregator,
    Checkpoint,
    ComputeError,
    ConfigError,
    DeviceError,
    Graph,
    Result,
    State,
    Vertex,
    generate,
    run,
)
from sigps.apps import SSSP, WCC
from sigps.engine import fixed_points
from sigps.engine.cpu import asynchronous, engine, spec
from sigps.engine.cpu.crew import Schedule, share_of_leaving
from sigps.engine.cpu.engine import Engine
from sigps.job.preparing import turned
from sigps.kernels.cpu.arguments import Edges
from sigps.model.fields import NO_VERTEX
from sigps.system.checkpoint import files

MPIRUN = Path(sys.executable).with_name("mpirun")

LENGTHS, HOPS, LOWEST = relax(), relax(loop=MORE), relax("(self.id + 0.5)")
WIDEST = relax("(self.id + 0.0)", worst="-inf", fold="max", better=">")


def drawn(seed: int, weights: Any, group: Any = None) -> Graph:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 60))
    ends = draw.integers(0, n, (2, 3 * n)) * 3 + 5
    weights = draw.choice(weights, 3 * n)
    return Graph.from_edges(*ends, weights=weights, directed=seed % 3 > 0, group=group)


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


PROGRAMS = [
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
]


def begun(make: Any, graph: Graph) -> Vertex:
    """Return the program, from the graph's first vertex where it has a source."""
    has_source = any(field.name == "source" for field in make.declaration.params)
    program: Vertex = make(source=int(graph.ids.to_oids(np.arange(1))[0])) if has_source else make()
    return program


def run_on(ranks: int, program: Vertex, build: Any, **options: Any) -> Result:
    def run_rank(group: ThreadGroup) -> Result:
        return run(program, build(group), **{"device": "cpu", "asynchronous": True, "threads": 1, **options})

    return run_ranks(ranks, run_rank)[0]


@pytest.fixture
def scheduled(monkeypatch: Any) -> Any:
    """Let runs take a schedule that no option has."""

    def let(schedule: Schedule) -> None:
        def chosen(self: Engine, _: Schedule, saves: bool) -> Any:
            return without_barriers(self, schedule, saves)

        without_barriers = Engine._without_barriers
        monkeypatch.setattr(Engine, "_without_barriers", chosen)

    return let


@pytest.mark.parametrize(("case", "seed"), half_of(PROGRAMS, range(8)))
def test_any_order(case: tuple[Any, Any], seed: int) -> None:
    make, weights = case
    graph, threads = drawn(seed, weights), (1, 3)[seed // 2 % 2]
    program = begun(make, graph)
    graph = turned(graph, program)
    expected = run(program, graph, device="python")
    for schedule in SCHEDULES:
        found = left_by(program, graph, schedule, threads)
        for name, values in found.items():
            assert [-1 if v is None else v for v in expected[name].tolist()] == [
                -1 if v == NO_VERTEX else v for v in values
            ], (name, schedule)


ROUNDS = [
    Schedule(),
    Schedule(2, 3, 2, most_edges=7),
    Schedule(1, 1, 3, most_edges=1),
    Schedule(3, most_edges=40),
]


@pytest.mark.parametrize(("seed", "ranks"), [(0, 2), (1, 3), (2, 2), (0, 3)])
@pytest.mark.parametrize(("make", "weights"), PROGRAMS)
def test_ranks(make: Any, weights: Any, seed: int, ranks: int, scheduled: Any) -> None:
    program = begun(make, drawn(seed, weights))
    expected = run(program, drawn(seed, weights), device="python")
    scheduled(ROUNDS[(seed + ranks) % 4])
    options = {"threads": 1 + seed % 2, "partitioner": ("edges", "hash")[seed % 2]}
    found = run_on(ranks, program, lambda group: drawn(seed, weights, group), **options)
    assert found.reason == expected.reason
    assert {entry.direction for entry in found.stats[1:]} <= {"async"}
    for name in expected.fields:
        assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("name", [name for name in BATTERY if name != "empty"])
def test_battery(name: str) -> None:
    graph = BATTERY[name].build()
    programs: list[Vertex] = [WCC()]
    if "weight" not in graph.columns or (graph.columns["weight"] % 1 == 0).all():
        programs.append(SSSP(source=graph.ids.to_oids(np.arange(1)).tolist()[0]))
    for program in programs:
        expected = run(program, graph, device="python")
        for ranks in (1, 3):
            found = run_on(ranks, program, lambda group: BATTERY[name].build(group=group), threads=2)
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


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("weights", "program", "said"),
    [
        ([2.0**53, 2.0], SSSP(source=0), "lengths are rounded"),
        ([2.0, 0.5], SSSP(source=0), "no whole numbers from 0 on"),
        ([2.0, 1.0], LENGTHS(step=float("nan")), "a parameter is no number"),
    ],
)
def test_all_ranks_refuse_what_one_finds(weights: Any, program: Vertex, said: str, ranks: int) -> None:
    def refused(group: ThreadGroup) -> str:
        graph = Graph.from_edges([0, 1], [1, 2], weights=weights, group=group)
        with pytest.raises(ConfigError) as raised:
            run(program, graph, device="cpu", asynchronous=True)
        return str(raised.value)

    assert all(said in text for text in run_ranks(ranks, refused))


def test_what_rounds_would_change_is_refused(tmp_path: Path) -> None:
    logs = Checkpoint(tmp_path, every=1)
    graph = drawn(1, [1.0])
    with pytest.raises(ConfigError, match="SSSP cannot write state logs"):
        run(SSSP(source=5), graph, device="cpu", asynchronous=True, checkpoint=logs)
    with pytest.raises(ConfigError, match="deterministic=True with state logs"):
        run(Rank(), graph, device="cpu", asynchronous=True, checkpoint=logs, deterministic=True)
    with pytest.raises(ConfigError, match="deterministic=True on 2 ranks"):
        run_on(2, Rank(), lambda group: drawn(1, [1.0], group), deterministic=True)


def logged(
    folder: Path, program: Vertex, build: Any, every: int = 1, ranks: int = 1, **options: Any
) -> list[Path]:
    """Return the logs that a run writes after each of so many rounds."""
    run_on(ranks, program, build, checkpoint=Checkpoint(folder, every=every, keep=1000), **options)
    return sorted(files.find_logs(folder))


def resumed(log: Path, folder: Path, program: Vertex, build: Any, ranks: int = 1, **options: Any) -> Result:
    """Go on from one log."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(log, folder / log.name)
    checkpoint = Checkpoint(folder, every=1000)
    return run_on(ranks, program, build, checkpoint=checkpoint, resume=True, **options)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    ("make", "weights"), [(LENGTHS, [0.1, 0.7, 1.3]), (WCC, [1.0]), (GatheredWCC, [1.0])]
)
def test_a_run_goes_on_from_any_round(
    make: Any, weights: Any, ranks: int, tmp_path: Path, scheduled: Any
) -> None:
    def build(group: Any = None) -> Graph:
        return drawn(8, weights, group)

    expected = run(make(), build(), device="python")
    scheduled(Schedule(2, 3, most_edges=60))
    logs = logged(tmp_path / "logs", make(), build, ranks=ranks)
    assert len(logs) > 3
    ways: list[dict[str, Any]] = [{"ranks": 1}, {"ranks": 3}, {"ranks": 2, "asynchronous": False}]
    ways += [{"device": "python", "asynchronous": False}]
    for i, log in enumerate([*logs[:3], logs[len(logs) // 2], logs[-1]]):
        found = resumed(log, tmp_path / "again", make(), build, **ways[(i + ranks) % 4])
        for name in expected.fields:
            assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("make", [LENGTHS, GatheredWCC])
def test_a_run_goes_on_from_a_log_of_supersteps(make: Any, tmp_path: Path) -> None:
    def build(group: Any = None) -> Graph:
        return drawn(8, [0.1, 0.7, 1.3], group)

    expected = run(make(), build(), device="python")
    for device in ("python", "cpu"):
        logs = logged(tmp_path / device, make(), build, device=device, asynchronous=False)
        for log in logs[:3]:
            found = resumed(log, tmp_path / "again", make(), build, ranks=2)
            assert found.stats[-1].direction == "async"
            for name in expected.fields:
                assert found[name].tolist() == expected[name].tolist()


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
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell lets background jobs ignore it
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(LENGTHS(), graph, device="cpu", asynchronous=True, threads=2)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


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
    monkeypatch.setattr(asynchronous, "falls_again", lambda **_: True)
    graph = drawn(4, weights)
    program = make() if make is LENGTHS else make(source=5)
    found, expected = (run(program, graph, device=device, precision="single") for device in ("cpu", "python"))
    assert {s.direction for s in found.stats} - {"push", "pull"} == set(runs)
    for name in expected.fields:
        assert found[name].tolist() == expected[name].tolist()


@pytest.mark.parametrize(
    ("steps", "runs"), [([1], set()), ([1, 2], {"async"}), ([1, 2, 3, 5, 8, 13], set())], ids=str
)
def test_auto_goes_on_where_keys_fall_again(monkeypatch: Any, steps: list[int], runs: set[str]) -> None:
    """Along a path each edge is passed once; where many light edges are shorter than few, again and again.

    In double precision such lengths are found at once. The last one nears its end: fewer and fewer vertices send.
    """
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)
    seen: dict[str, Any] = {}

    def noted(**given: Any) -> bool:
        seen.update(given)
        return fixed_points.falls_again(**given)

    monkeypatch.setattr(asynchronous, "falls_again", noted)
    n = 200 if len(steps) > 2 else 300
    ends = np.concatenate([[np.arange(n - by), np.arange(by, n)] for by in steps], axis=1)
    weights = np.concatenate([by**1.5 + 0.1 + np.arange(n - by) % 2 / 8 for by in steps])
    graph = Graph.from_edges(*ends + 5, weights=weights)
    expected = run(LENGTHS(), graph, device="python", precision="single")
    early = run(LENGTHS(), graph, device="python", precision="single", max_supersteps=128)
    reached = np.isfinite(early["best"])
    messages = sum(s.messages for s in expected.stats[:128])
    for fused in (True, False):
        if not fused:
            monkeypatch.setattr(engine.FusedSupersteps, "run", lambda *_: None)
        seen.clear()
        found = run(LENGTHS(), graph, device="cpu", precision="single")
        assert {s.direction for s in found.stats} - {"push", "pull"} == runs
        assert found["best"].tolist() == expected["best"].tolist()
        assert seen["passes"] == messages / np.bincount(ends[0], minlength=n)[reached].sum()


@pytest.mark.parametrize("blocks", [1, 2, 3, 4], ids=str)
def test_edges_that_leave_blocks_are_counted(blocks: int) -> None:
    """A path of 2048 vertices: of its edges as many leave blocks as there are borders, each way."""
    graph = Graph.from_edges(np.arange(2047), np.arange(1, 2048), directed=False)
    bits = 5 + blocks
    edges = Edges(graph.offsets, graph.targets.astype(np.uint32), (), stops=graph.offsets[1:])
    leaving = (2048 >> bits) - 1
    assert share_of_leaving(edges, bits) == pytest.approx(leaving / 2047, abs=0.01)


@pytest.mark.parametrize(
    ("make", "step", "bits"), [(LENGTHS, 7919, 9), (HOPS, 7919, 12), (LENGTHS, 1, 12)], ids=str
)
def test_blocks_are_small_where_edges_add_numbers(make: Any, step: int, bits: int) -> None:
    """Where edges lead far, they leave a block of any size; in a ring, eight times as many leave the small ones."""
    n = 64_000
    ends = np.arange(n)
    graph = Graph.from_edges(ends, (ends + step) % n, weights=ends % 7 + 0.5, directed=False)
    engine = compiled(make(), graph, 1, blocks=Schedule())
    assert engine._fused._rounds.crew.bits == bits  # type: ignore[union-attr]


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


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("make", [Rank, Halves])
@pytest.mark.parametrize("seed", range(4))
def test_contractions_on_ranks(make: Any, seed: int, ranks: int, scheduled: Any) -> None:
    (name,) = [field.name for field in make.declaration.states]
    scheduled(
        [Schedule(), Schedule(3, 2, most_edges=400), Schedule(2, 3, 2, most_edges=300)][(seed + ranks) % 3]
    )
    found = run_on(ranks, make(), lambda group: drawn(seed, [1.0], group), threads=1 + seed % 2)
    np.testing.assert_allclose(found[name], fixed_point(drawn(seed, [1.0]), make()), rtol=0, atol=1e-6)
    assert found.reason == "converged"


@pytest.mark.parametrize("make", [Rank, Halves])
def test_contractions_go_on_from_any_round(make: Any, tmp_path: Path, scheduled: Any) -> None:
    def build(group: Any = None) -> Graph:
        return drawn(2, [1.0], group)

    (name,) = [field.name for field in make.declaration.states]
    scheduled(Schedule(2, 2, most_edges=400))
    logs = logged(tmp_path / "logs", make(), build, every=4, ranks=2)
    assert len(logs) > 3
    ways: list[dict[str, Any]] = [{"ranks": 1}, {"ranks": 3}, {"ranks": 2, "asynchronous": False}]
    ways += [{"device": "python", "asynchronous": False}]
    for i, log in enumerate([logs[0], logs[1], logs[len(logs) // 2], logs[-1]]):
        found = resumed(log, tmp_path / "again", make(), build, **ways[i % 4])
        np.testing.assert_allclose(found[name], fixed_point(build(), make()), rtol=0, atol=1e-6)


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


class Heard(Vertex, message=float, asynchronous=0.5):
    """As Halves, but every third vertex never sends; a message is never nothing, whatever its sender has."""

    value: State[float] = 0.0
    moved = Aggregator.any()

    def compute(self, messages):
        """Send until nobody moved."""
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        if self.superstep > 0 and self.in_degree > 0:
            value = 0.5 * sum(messages) / self.in_degree
            self.moved += abs(value - self.value) > 1e-10
            self.value = value
        if self.id % 3 > 0:
            for edge in self.out_edges:
                self.send(edge, self.value + edge.weight)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_contractions_read_only_what_was_sent(seed: int, ranks: int) -> None:
    def build(group: Any = None) -> Graph:
        ends = np.random.default_rng(seed).integers(0, 40, (2, 160))
        return Graph.from_edges(*ends, weights=np.full(160, 5.0), group=group)

    expected = run(Heard(), build(), device="python")["value"]
    found = run_on(ranks, Heard(), build, threads=2)["value"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_blocks_are_of_neighbouring_ids(monkeypatch: Any) -> None:
    by_degree: list[bool] = []

    def made(context: Any) -> Engine:
        by_degree.append(context.subgraph.gids is not None)
        return make(context)

    make = spec.SPEC.make
    monkeypatch.setattr(spec, "_gains_by_degree", lambda program, graph: True)
    monkeypatch.setattr(type(spec.SPEC), "make", lambda self, context: made(context))
    graph = drawn(3, [1.0])
    for is_free in (False, True):
        run(Rank(), graph, device="cpu", asynchronous=is_free)
    assert by_degree == [True, False]


def test_contractions_compute_only_what_waits() -> None:
    graph = generate("grid", rows=30, columns=30)
    engine = compiled(Rank(tolerance=1e-4), graph, 1, blocks=Schedule(bits=6, most_inside=1))
    (last,) = list(engine.lease(1 << 62).stats)[1:]
    assert graph.num_edges < last.messages < last.block_edges  # not all of a block each time it was taken


def test_deterministic_contractions_are_the_same_on_any_cores() -> None:
    graph = drawn(3, [1.0])
    found = [
        run(Rank(), graph, device="cpu", asynchronous=True, deterministic=True, threads=threads)[
            "rank"
        ].tolist()
        for threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


RANKED = """
import sigps
from sigps.apps import SSSP, WCC

graph = sigps.generate("grid", rows=40, columns=40, weights="random")
for program in (SSSP(source=7), WCC()):
    free = sigps.run(program, graph, device="cpu", asynchronous=True)
    plain = sigps.run(program, graph, device="cpu", asynchronous=False)
    if graph.group.rank == 0:
        same = [free[name].tolist() == plain[name].tolist() for name in plain.fields]
        print(graph.group.size, all(same), free.stats[-1].direction)
"""


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun beside this Python: pip install 'sigps[mpi]'")
def test_processes(tmp_path: Path) -> None:
    script = tmp_path / "ranked.py"
    script.write_text(RANKED)
    command = [str(MPIRUN), "-n", "3", sys.executable, str(script)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    code, out, err = end_of(process)
    assert (code, out.split()) == (0, ["3", "True", "async"] * 2), err
