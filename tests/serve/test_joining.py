"""Jobs that are joined: the same run for equal ones, lanes for others; each keeps its result, fault and share."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from fault_cases import Overflows

import sigps
from sigps import Aggregator, ComputeError, GraphError, Param, Pool, State, Vertex
from sigps.apps import BFS, HITS, SSSP, WCC, Distances, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.serve.devices import RunTurns
from sigps.serve.dispatcher import Dispatcher
from sigps.serve.job import Job
from sigps.serve.joining import Times, first_lease, is_short, most_lanes, why_apart

GRAPH = sigps.generate("rmat", scale=8, seed=1, weights="random")


class Fading(Vertex, message=float, asynchronous=0.5):
    """A declared contraction, whose messages are not added up."""

    step: Param[float] = 1.0
    moved = Aggregator.any()
    value: State[float] = 0.0

    def compute(self, messages):
        if self.superstep > 1 and not self.moved:
            self.vote_to_halt()
            return
        value = self.step + 0.5 * max(messages, default=0.0)
        self.moved += abs(value - self.value) > 1e-6
        self.value = value
        self.send_to_neighbors(self.value)


class Counts(Vertex, message=int):
    """A sum over vertices, of whole numbers."""

    step: Param[int]
    total = Aggregator.sum(int)
    value: State[int] = 0

    def compute(self, messages):
        self.total += self.step
        self.value = self.step
        self.vote_to_halt()


def submit_at_once(pool: Pool, programs: list[Vertex], **options: Any) -> list[Job]:
    """Submit jobs of two tenants, of which none has begun when the last one comes."""
    pool.graph("rmat", GRAPH)
    for program in {type(program): program for program in programs}.values():
        pool.submit(program, "rmat", tenant="first", **options).future.exception(60)  # its seconds are known
    with pool._devices[0].preparing:
        return [pool.submit(p, "rmat", tenant="ab"[i % 2], **options) for i, p in enumerate(programs)]


def assert_alone(job: Job, **options: Any) -> None:
    """Check that a result has the bits of a run alone."""
    found, alone = job.result(60), sigps.run(job.program, GRAPH, device="cpu", **options)
    assert (found.reason, found.supersteps, found.aggregators) == (
        alone.reason,
        alone.supersteps,
        alone.aggregators,
    )
    assert [(s.active, s.messages) for s in found.stats] == [(s.active, s.messages) for s in alone.stats]
    for field in alone.fields:
        assert found[field].tobytes() == alone[field].tobytes()
        assert found[field].dtype == alone[field].dtype


@pytest.mark.parametrize(
    ("programs", "options", "joined"),
    [
        ([BFS(source=s) for s in (0, 3, 9, 3)], {}, [3] * 4),
        (
            [BFS(source=0), Distances(source=1), BFS(source=2), WCC(), Distances(source=1)],
            {},
            [1, 1, 1, 0, 1],
        ),
        ([SSSP(source=0), SSSP(source=1)], {}, [0, 0]),  # alone on a mesh it has other supersteps
        ([SSSP(source=0), SSSP(source=1)], {"asynchronous": False}, [1, 1]),
        ([WCC(), WCC(), WCC()], {}, [2] * 3),
        ([Counts(step=n) for n in (2, 3)], {}, [1, 1]),
        ([PageRank(iterations=5), PageRank(iterations=6)], {}, [0, 0]),  # sums of floats
        ([HITS(iterations=3), HITS(iterations=3)], {"deterministic": True}, [1, 1]),
    ],
    ids=["lanes", "classes", "other supersteps", "BSP", "equal", "aggregator", "floats", "equal floats"],
)
def test_jobs_are_joined_where_results_keep_their_bits(
    programs: list[Vertex], options: dict[str, Any], joined: list[int]
) -> None:
    with sigps.pool("cpu", quantum=0.5) as pool:
        jobs = submit_at_once(pool, programs, **options)
        for job in jobs:
            assert_alone(job, **options)
        assert [job.joined for job in jobs] == joined
        assert [row.joined for row in pool.jobs()][: len(jobs)] == joined[::-1]


def test_runs_that_wait_are_joined_when_it_is_known_that_it_pays() -> None:
    with sigps.pool("cpu", quantum=0.01) as pool:
        pool.graph("rmat", GRAPH)
        device, holder = (
            pool._devices[0],
            SimpleNamespace(tenant="x", lease_seconds=0.0, attained=0.0, attained_at=0),
        )
        held: Any = Mock(jobs=(holder,), ends_soon=False)
        device._holders[held] = time.perf_counter()
        jobs = [pool.submit(BFS(source=s), "rmat", tenant="ab"[s % 2]) for s in range(8)]
        other = pool.submit(PageRank(iterations=3), "rmat")
        while len(device._waiting) < 9:  # each is ready by itself
            time.sleep(0.001)
        assert jobs[5].cancel()
        while len(device._waiting) > 8:
            time.sleep(0.001)
        pool._dispatcher._times["BFS", "rmat", "cpu"].record_alone(0.02, 5)
        device.give_back(held)
        assert (other.result(60).supersteps, other.joined) == (4, 0)
        left = [job for number, job in enumerate(jobs) if number != 5]
        for job in left:
            assert_alone(job)
    assert sorted(job.joined for job in left) == [1] * 2 + [4] * 5  # five of 20 ms end within ten quanta
    assert isinstance(jobs[5].future.exception(), CancelledError)
    assert pool.overview().devices[0].own_bytes == 0
    assert not pool._dispatcher._runs


def test_equal_jobs_share_no_array() -> None:
    with sigps.pool("cpu") as pool:
        first, second, third = (job.result(60) for job in submit_at_once(pool, [WCC(), WCC(), WCC()]))
    alone = sigps.run(WCC(), GRAPH, device="cpu")["component"].tolist()
    first["component"][:] = -5
    assert first["component"].tolist() == [-5] * GRAPH.num_vertices
    assert second["component"].tolist() == third["component"].tolist() == alone
    assert first.fields == third.fields == ("component",)
    assert third.to_pandas()["component"].tolist() == alone


def test_a_joined_run_is_charged_by_shares() -> None:
    with sigps.pool("cpu", quantum=0.5) as pool:
        jobs = submit_at_once(pool, [BFS(source=s) for s in range(6)])
        for job in jobs:
            job.result(60)
        charged, overview = pool.charged(), pool.overview()
    assert [job.joined for job in jobs] == [5] * 6
    seconds = [job.lease_seconds for job in jobs]
    assert seconds == pytest.approx([seconds[0]] * 6)
    took = {tenant.name: tenant.lease_seconds for tenant in overview.tenants}
    assert took["a"] == pytest.approx(3 * seconds[0])
    assert took["b"] == pytest.approx(took["a"])
    assert charged["b"] == pytest.approx(charged["a"])
    assert sum(took.values()) == pytest.approx(overview.devices[0].lease_seconds)


@pytest.mark.parametrize("gone", [0, 1])
def test_one_that_is_cancelled_leaves_the_others(gone: int) -> None:
    with sigps.pool("cpu", quantum=0.5) as pool:
        pool.graph("rmat", GRAPH)
        pool.submit(BFS(source=0), "rmat").result(60)
        with pool._devices[0].preparing:
            jobs = [pool.submit(BFS(source=s), "rmat") for s in (1, 2)]
            assert jobs[gone].cancel()
            assert not jobs[gone].cancel()
            with pytest.raises(CancelledError):
                jobs[gone].result(1)
            later = pool.submit(BFS(source=3), "rmat")
        for job in (jobs[1 - gone], later):
            assert_alone(job)
        assert later.joined == 1
        assert [row.state for row in pool.jobs()].count("cancelled") == 1
        with pool._devices[0].preparing:
            jobs = [pool.submit(BFS(source=s), "rmat") for s in (1, 2)]
            assert [job.cancel() for job in jobs] == [True, True]
    assert all(isinstance(job.future.exception(), CancelledError) for job in jobs)
    assert pool.overview().devices[0].own_bytes == 0


def test_a_fault_touches_its_job_alone() -> None:
    with sigps.pool("cpu", quantum=0.5) as pool:
        jobs = submit_at_once(pool, [Overflows(factor=n) for n in (2, 10**9, 3)])
        with pytest.raises(ComputeError):
            jobs[1].result(60)
        for job in (jobs[0], jobs[2]):
            assert_alone(job)
        jobs = submit_at_once(pool, [BFS(source=s) for s in (0, -7, 1)])
        with pytest.raises(GraphError, match="there is no vertex -7"):
            jobs[1].result(60)
        for job in (jobs[0], jobs[2]):
            assert_alone(job)
        assert [job.joined for job in jobs] == [0, 0, 0]
        assert pool.overview().devices[0].own_bytes == 0


def test_a_run_whose_job_has_left_it_may_end_after_that_job_began_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, begin, leave = [], Dispatcher._start, RunTurns.leave
    all_again = threading.Event()

    def counted(self: Dispatcher, job: Job, number: int, *, may_join: bool) -> None:
        begin(self, job, number, may_join=may_join)
        begun.append(job)
        if len(begun) == 6:
            all_again.set()

    def late(self: RunTurns) -> None:
        if not self._run.jobs:
            assert all_again.wait(30)
        leave(self)

    monkeypatch.setattr(Dispatcher, "_start", counted)
    monkeypatch.setattr(RunTurns, "leave", late)
    with sigps.pool("cpu", quantum=0.01) as pool:
        pool.graph("rmat", GRAPH)
        device = pool._devices[0]
        holder = SimpleNamespace(tenant="x", lease_seconds=0.0, attained=0.0, attained_at=0)
        held: Any = Mock(jobs=(holder,), ends_soon=False)
        device._holders[held] = time.perf_counter()
        jobs = [pool.submit(Overflows(factor=n), "rmat") for n in (2, 10**9, 3)]
        while len(device._waiting) < 3:
            time.sleep(0.001)
        pool._dispatcher._times["Overflows", "rmat", "cpu"].record_alone(0.001, 5)
        device.give_back(held)
        with pytest.raises(ComputeError):
            jobs[1].result(60)
        for job in (jobs[0], jobs[2]):
            assert_alone(job)
    assert len(begun) == 6


def test_lanes_never_joins_none() -> None:
    with sigps.pool("cpu", lanes="never") as pool:
        jobs = submit_at_once(pool, [WCC(), WCC(), BFS(source=0), BFS(source=1)])
        assert [job.result(60).reason for job in jobs] == ["converged"] * 4
        assert [job.joined for job in jobs] == [0] * 4
    with pytest.raises(sigps.ConfigError, match="lanes='sometimes' is not one of auto, never"):
        sigps.pool("cpu", lanes="sometimes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("times", "lanes"),
    [
        (Times(), 1),  # nothing is known
        (Times(1, 0.004, 0.004), 25),
        (Times(9, 0.036, 0.008), 12),  # by the longest
        (Times(9, 0.0, 0.0), 64),
        (Times(1, 0.06, 0.06), 1),  # two would have the device for too long
        (Times(9, 0.036, 0.004, lanes=8, lane_seconds=0.016), 25),
        (Times(9, 0.036, 0.004, lanes=8, lane_seconds=0.04), 1),  # slower
        (Times(2, 0.001, 0.005, lanes=8, lane_seconds=0.04), 20),  # too few alone
        (Times(9, 0.036, 0.004, obstacle="edges are streamed"), 1),
    ],
)
def test_the_table_of_lanes(times: Times, lanes: int) -> None:
    assert most_lanes(times, 0.01) == lanes


def test_what_runs_took_is_forgotten_with_the_graph_of_that_name() -> None:
    with sigps.pool("cpu") as pool:
        pool.graph("rmat", sigps.Graph.from_edges([0, 1], [1, 2]))
        for _ in range(3):
            pool.submit(BFS(source=0), "rmat").result(60)
        assert pool._dispatcher._times["BFS", "rmat", "cpu"].runs == 3
        pool.graph("rmat", GRAPH)
        pool.submit(BFS(source=0), "rmat").result(60)
        assert pool._dispatcher._times["BFS", "rmat", "cpu"].runs == 1


def test_what_runs_took_is_noted() -> None:
    times = Times()
    times.record_alone(0.004, 5)
    times.record_alone(0.002, 5)
    assert times == Times(2, 0.006, pytest.approx(0.0036), 5)
    times.record_lanes(4, 0.08)
    assert times == Times(2, 0.006, 0.02, 5, lanes=4, lane_seconds=0.08)
    assert most_lanes(times, 0.01) == 5


def test_a_first_run_that_waited_for_compiled_code_does_not_count_for_ever() -> None:
    times = Times()
    for seconds in (0.5, 0.001, 0.004, 0.003):
        assert first_lease(times, 0.01) == 1
        times.record_alone(seconds, 7)
    assert (times.runs, times.longest) == (4, 0.004)
    assert times.seconds == pytest.approx(0.012)
    assert (first_lease(times, 0.01), most_lanes(times, 0.01)) == (14, 25)
    times.record_alone(0.02, 9)  # a later one does, for some runs
    assert (first_lease(times, 0.01), most_lanes(times, 0.01)) == (1, 5)
    for _ in range(6):
        times.record_alone(0.003, 9)
    assert first_lease(times, 0.01) == 1
    times.record_alone(0.003, 9)
    assert first_lease(times, 0.01) == 18


@pytest.mark.parametrize(
    ("program", "varied", "options", "why"),
    [
        (BFS(source=0), ["source"], {}, ""),
        (SSSP(source=0), ["source"], {}, "supersteps may be other ones"),
        (SSSP(source=0), ["source"], {"asynchronous": False}, ""),
        (Fading(), ["step"], {}, "supersteps may be other ones"),
        (Fading(), ["step"], {"asynchronous": False}, ""),
        (BFS(source=0), ["source"], {"asynchronous": True}, "one run at a time"),
        (BFS(source=0), ["source"], {"schedule": "edge"}, "one run at a time"),
        (PageRank(), ["damping"], {}, "rounded otherwise"),
        (PageRank(), ["damping"], {"deterministic": True}, ""),
        (sigps.apps.CDLP(), ["iterations"], {}, "reads its messages"),
        (BFS(source=0), ["missing"], {}, "missing is a table, or fixed"),
    ],
)
def test_the_table_of_what_keeps_bits(
    program: Vertex, varied: list[str], options: dict[str, Any], why: str
) -> None:
    found = why_apart(analyse(program), options, varied)
    assert why in found
    assert bool(why) == bool(found)


def test_a_value_that_is_equal_but_not_the_same_is_another_lane() -> None:
    class Signs(Vertex, message=float):
        zero: Param[float]
        value: State[float] = 1.0

        def compute(self, messages):
            self.value = self.zero
            self.vote_to_halt()

    with sigps.pool("cpu", quantum=0.5) as pool:
        jobs = submit_at_once(pool, [Signs(zero=0.0), Signs(zero=-0.0)])
        signs = [bool(np.signbit(job.result(60)["value"]).all()) for job in jobs]
    assert signs == [False, True]


@pytest.mark.gpu
def test_jobs_are_joined_on_a_gpu() -> None:
    with sigps.pool("cuda", quantum=0.5) as pool:
        jobs = submit_at_once(pool, [BFS(source=s) for s in (0, 3, 9, 3)] + [WCC(), WCC()])
        for job in jobs:
            found, alone = job.result(60), sigps.run(job.program, GRAPH, device="cuda")
            assert found.supersteps == alone.supersteps
            for field in alone.fields:
                assert found[field].tobytes() == alone[field].tobytes()
        assert [job.joined for job in jobs] == [3, 3, 3, 3, 1, 1]


def test_one_run_that_was_held_up_does_not_make_the_next_ones_long() -> None:
    times = Times()
    assert not is_short(times, 0.01)
    for _ in range(12):
        times.record_alone(0.001, 5)
    for _ in range(4):
        times.record_alone(0.5, 5)
        assert is_short(times, 0.01)
        assert first_lease(times, 0.01) == 1  # where no clock ends a lease
    times.record_alone(0.5, 5)
    assert not is_short(times, 0.01)
