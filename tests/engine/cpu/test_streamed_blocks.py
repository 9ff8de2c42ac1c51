"""Without barriers along edges in a packed store: states are those of the interpreter's supersteps in any order."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gas_programs import GatheredPaths, GatheredWCC, Rank
from processes import end_of
from relax_programs import MORE, relax
from thread_group import ThreadGroup, run_ranks
from turns import half_of, in_turn

import sigps
from sigps import Checkpoint, ComputeError, ConfigError, Graph, Vertex, generate, run
from sigps.apps import SSSP, WCC
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.streamed import StreamingEngine
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.packer import Order
from sigps.job.preparing import turned

MPIRUN = Path(sys.executable).with_name("mpirun")

LENGTHS, HOPS = relax(), relax(loop=MORE)
WIDEST = relax("(self.id + 0.0)", worst="-inf", fold="max", better=">")


SCHEDULES = [
    Schedule(),
    Schedule(most_inside=1, seed=1),
    Schedule(most_inside=3, seed=2),
    Schedule(most_inside=99),
]


@pytest.fixture
def scheduled(monkeypatch: Any) -> Any:
    """Let runs take a schedule that no option has."""
    without_barriers = StreamingEngine._without_barriers

    def let(schedule: Schedule) -> None:
        def chosen(self: StreamingEngine, _: Schedule, saves: bool) -> Any:
            return without_barriers(self, schedule, saves)

        monkeypatch.setattr(StreamingEngine, "_without_barriers", chosen)

    return let


def drawn(seed: int, sign: int = 1) -> Graph:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(20, 200))
    ends = draw.integers(0, n, (2, 4 * n)) * 3 + 5
    ends[:, : n // 2] = ends[0, 0] if seed % 4 == 1 else ends[:, : n // 2]
    weights = sign * draw.choice([0.1, 0.7, 1.3, 1e-17], 4 * n)
    return Graph.from_edges(*ends, weights=weights, directed=seed % 3 > 0)


@functools.cache
def exact_ranks(seed: int) -> Any:
    return run(Rank(tolerance=1e-8), drawn(seed), device="python")["rank"]


def packed(graph: Graph, folder: Path, order: Order) -> Graph:
    save_packed(graph, folder / order, order=order, page_arcs=64)
    return sigps.load(folder / order)


def streamed(program: Vertex, stored: Graph, **options: Any) -> Any:
    return run(program, stored, device="cpu", stream="always", asynchronous=True, **options)


@pytest.mark.parametrize(("make", "seed"), half_of([LENGTHS, HOPS, WIDEST, WCC, GatheredWCC], range(6)))
def test_any_order(make: Any, seed: int, tmp_path: Path, scheduled: Any) -> None:
    graph, program = drawn(seed, -1 if make is WIDEST else 1), make()
    graph = turned(graph, program)
    expected = run(program, graph, device="python")
    for order in ("given", "degree"):
        stored = packed(graph, tmp_path, order)
        for schedule in SCHEDULES:
            scheduled(schedule)
            found = streamed(program, stored, threads=1 + seed % 3)
            assert [entry.direction for entry in found.stats][1:] in (["async"], [])
            for name in expected.fields:
                assert found[name].tolist() == expected[name].tolist()
        assert not stored.is_laid_out


@pytest.mark.parametrize("seed", range(4))
def test_contraction(seed: int, tmp_path: Path, scheduled: Any) -> None:
    graph, exact = drawn(seed), exact_ranks(seed)
    for order in ("given", "degree"):
        stored = packed(graph, tmp_path, order)
        for schedule in SCHEDULES[:3]:
            scheduled(schedule)
            found = streamed(Rank(tolerance=1e-4), stored, threads=1 + seed % 3)
            assert np.abs(found["rank"] - exact).sum() <= graph.num_vertices * (1e-4 + 1e-8) / (1 - 0.85)
            entry = found.stats[-1]
            assert entry.direction == "async"
            assert entry.block_edges >= 2 * graph.num_edges  # all blocks again at the end
            assert entry.bytes_read > 0


@pytest.mark.parametrize("order", ["given", "degree"])
def test_a_contraction_goes_on_without_barriers_by_itself(order: Order, tmp_path: Path) -> None:
    graph = generate("grid", rows=100, columns=100)
    save_packed(graph, tmp_path / "graph", order=order, page_arcs=4096)
    stored = sigps.load(tmp_path / "graph")
    exact = run(Rank(tolerance=1e-8), graph, device="cpu", asynchronous=False)["rank"]
    program = Rank(tolerance=1e-6)
    found = run(program, stored, stream="always")
    assert [entry.direction for entry in found.stats] == ["pull"] * 16 + ["async"]
    assert np.abs(found["rank"] - exact).sum() <= graph.num_vertices * (1e-6 + 1e-8) / (1 - 0.85)
    for options in (
        {"deterministic": True},
        {"asynchronous": False},
        {"max_supersteps": 1000},
        {"direction": "pull"},
    ):
        entries = run(program, stored, stream="always", **options).stats  # type: ignore[arg-type]
        assert {entry.direction for entry in entries} == {"pull"}


def test_a_contraction_of_far_edges_stays_with_supersteps(tmp_path: Path) -> None:
    save_packed(generate("rmat", scale=12, directed=False), tmp_path / "graph", order="given", page_arcs=4096)
    found = run(Rank(tolerance=1e-4), sigps.load(tmp_path / "graph"), stream="always")
    assert {entry.direction for entry in found.stats} == {"pull"}


def test_deterministic_contractions_are_the_same_on_any_threads(tmp_path: Path) -> None:
    stored = packed(drawn(1), tmp_path, "given")
    ranks = [
        streamed(Rank(tolerance=1e-4), stored, threads=t, deterministic=True)["rank"].tobytes()
        for t in (1, 3)
    ]
    assert ranks[0] == ranks[1]


def test_a_block_is_computed_until_it_is_quiet(tmp_path: Path, scheduled: Any) -> None:
    """Along a path against the order of vertices, where a turn forwards reaches one more."""
    ends = np.arange(400)
    stored = packed(Graph.from_edges(ends + 1, ends), tmp_path, "given")
    program = relax("(0.0 if self.id == 400 else inf)", MORE)()
    loaded = []
    for turns in (1, 99):
        scheduled(Schedule(most_inside=turns))
        found = streamed(program, stored, threads=1)
        assert found["best"].tolist() == list(range(400, -1, -1))
        loaded.append(found.stats[-1].block_edges)
    assert 20 * loaded[1] < loaded[0]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (SSSP(source=5), "of programs with parents, as SSSP is"),
        (GatheredPaths(source=5), "of programs with parents"),
        (LENGTHS(step=float("nan")), "a parameter is no number"),
    ],
)
def test_refused(program: Vertex, said: str, tmp_path: Path) -> None:
    graph = Graph.from_edges([5, 6], [6, 7], weights=[1.0, 1.0])
    with pytest.raises(ConfigError, match=said):
        streamed(program, packed(graph, tmp_path, "given"))


def test_state_logs_are_refused(tmp_path: Path) -> None:
    stored = packed(drawn(1), tmp_path, "given")
    with pytest.raises(ConfigError, match="with state logs"):
        streamed(HOPS(), stored, checkpoint=Checkpoint(tmp_path / "logs", every=1))


def on_ranks(ranks: int, program: Vertex, folder: Path, **options: Any) -> Any:
    def run_rank(group: ThreadGroup) -> Any:
        return streamed(program, sigps.load(folder, group=group), **options)

    return run_ranks(ranks, run_rank)[0]


@pytest.mark.parametrize(
    ("make", "seed", "ranks"),
    in_turn([LENGTHS, HOPS, WIDEST, WCC, GatheredWCC], range(4), [2, 3, 4], times=4),
)
def test_ranks(make: Any, seed: int, ranks: int, tmp_path: Path, scheduled: Any) -> None:
    graph, program = drawn(seed, -1 if make is WIDEST else 1), make()
    graph = turned(graph, program)
    expected = run(program, graph, device="python")
    order: Order = "given" if (seed + ranks) % 2 else "degree"
    packed(graph, tmp_path, order)
    scheduled(SCHEDULES[seed])
    found = on_ranks(ranks, program, tmp_path / order, threads=1 + seed % 2)
    assert found.reason == expected.reason
    assert {entry.direction for entry in found.stats[1:]} <= {"async"}
    for name in expected.fields:
        assert found[name].tolist() == expected[name].tolist()


def test_records_cross_until_no_rank_has_a_block_that_waits(tmp_path: Path) -> None:
    """Along a path that changes from one rank to the other at every edge."""
    ends = np.stack([np.arange(200), np.arange(200) + 200]).T.ravel()
    packed(Graph.from_edges(ends[:-1], ends[1:]), tmp_path, "given")
    found = on_ranks(2, relax("(0.0 if self.id == 0 else inf)", MORE)(), tmp_path / "given", threads=1)
    assert found["best"][ends].tolist() == list(range(400))
    assert len(found.stats) > 100
    assert sum(entry.bytes_moved for entry in found.stats[1:]) > 0


@pytest.mark.parametrize(("seed", "ranks"), in_turn(range(4), [2, 3, 4]))
def test_contractions_on_ranks(seed: int, ranks: int, tmp_path: Path, scheduled: Any) -> None:
    graph, exact = drawn(seed), exact_ranks(seed)
    order: Order = "given" if (seed + ranks) % 2 else "degree"
    packed(graph, tmp_path, order)
    scheduled(SCHEDULES[seed % 3])
    found = on_ranks(ranks, Rank(tolerance=1e-4), tmp_path / order, threads=1 + seed % 2)
    assert np.abs(found["rank"] - exact).sum() <= graph.num_vertices * (1e-4 + 1e-8) / (1 - 0.85)
    assert found.reason == "converged"


def test_by_themselves_contractions_on_ranks_have_supersteps(tmp_path: Path) -> None:
    save_packed(generate("grid", rows=100, columns=100), tmp_path / "graph", order="given", page_arcs=4096)

    def run_rank(group: ThreadGroup) -> set[str]:
        found = run(
            Rank(tolerance=1e-4), sigps.load(tmp_path / "graph", group=group), device="cpu", stream="always"
        )
        return {entry.direction for entry in found.stats}

    assert run_ranks(2, run_rank) == [{"pull"}] * 2


NEVER_ENDS = """
import sys
from math import inf

import sigps
from sigps import State, Vertex


class Falls(Vertex, message=float):
    length: State[float] = inf

    def compute(self, messages):
        received = (0.0 if self.id == 0 else inf) if self.superstep == 0 else min(messages, default=inf)
        if received < self.length:
            self.length = received
            for edge in self.out_edges:
                self.send(edge, self.length + edge.weight)
        self.vote_to_halt()


short, ring = (sigps.load(f"{sys.argv[1]}/{name}") for name in ("short", "ring"))
options = {"device": "cpu", "stream": "always", "asynchronous": True, "threads": 1}
print(sigps.run(Falls(), short, **options).reason, flush=True)
sigps.run(Falls(), ring, **options)
"""


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun beside this Python: pip install 'sigps[mpi]'")
def test_ranks_can_be_interrupted(tmp_path: Path) -> None:
    ends = np.arange(3000)
    for name, stop in (("short", -1), ("ring", 3000)):
        ring = ends[:stop] if stop < 0 else ends
        graph = Graph.from_edges(ring, (ring + 1) % 3000, weights=np.full(ring.size, -1.0))
        save_packed(graph, tmp_path / name, order="given", page_arcs=64)
    script = tmp_path / "never_ends.py"
    script.write_text(NEVER_ENDS)
    command = [str(MPIRUN), "-n", "2", sys.executable, str(script), str(tmp_path)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    assert process.stdout is not None
    assert "converged" in process.stdout.readline()
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends Ctrl-C to all in the foreground
    assert end_of(process).code != 0


@pytest.mark.parametrize("threads", [1, 2])
def test_faults_name_the_vertex(threads: int, tmp_path: Path) -> None:
    graph = Graph.from_edges([5, 12, 13], [6, 13, 14])
    levels = {"type": "int", "worst": "-1", "fold": "max", "better": ">"}
    make = relax("(2**63 - 2 if self.id == 12 else -1)", MORE, **levels)
    with pytest.raises(ComputeError) as by_supersteps:
        run(make(), graph, device="python")
    with pytest.raises(ComputeError) as raised:
        streamed(make(), packed(graph, tmp_path, "given"), threads=threads)
    assert "13" in str(raised.value)
    assert str(by_supersteps.value).split("superstep")[0] == str(raised.value).split("superstep")[0]
