"""A pool of jobs in one process: results, turns, admission, cancelling, and what the table says."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import sigps
from sigps import ConfigError, DeviceError, Graph, GraphError
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank, Triangles
from sigps.serve.admission import Budget
from sigps.serve.job import Estimate

GRAPH = sigps.generate("rmat", scale=8, seed=1, weights="random")


class Gate:
    """A partitioner that waits: a job that prepares stands still until it is opened."""

    def __init__(self) -> None:
        self.is_reached, self.is_open = threading.Event(), threading.Event()

    def __call__(self, ids: Any) -> Any:
        self.is_reached.set()
        assert self.is_open.wait(60)
        return np.zeros(len(ids), np.int64)


def test_results_are_those_of_runs_alone_bit_for_bit() -> None:
    programs = [PageRank(iterations=30), BFS(source=3), SSSP(source=5), WCC(), PageRank(iterations=7)]
    with sigps.pool("cpu", quantum=1e-6) as pool:
        pool.graph("rmat", GRAPH)
        about = {"deterministic": True}  # else sums depend on whether small supersteps are fused yet
        jobs = [pool.submit(p, "rmat", tenant=f"t{i % 2}", **about) for i, p in enumerate(programs * 3)]
        found = [job.result(120) for job in jobs]
    threads = pool._devices[0].threads
    for program, result in zip(programs * 3, found, strict=True):
        alone = sigps.run(program, GRAPH, device="cpu", threads=threads, deterministic=True)
        assert (result.reason, result.supersteps) == (alone.reason, alone.supersteps)
        for field in alone.fields:
            assert result[field].tobytes() == alone[field].tobytes()


def test_a_short_job_does_not_wait_for_the_end_of_a_long_one() -> None:
    with sigps.pool("python", quantum=1e-6) as pool:
        pool.graph("path", Graph.from_edges([0, 1], [1, 2]))
        long = pool.submit(PageRank(iterations=1_000_000), "path")
        assert pool.submit(BFS(source=0), "path").result(60)["level"].tolist() == [0, 1, 2]
        assert not long.is_done()
        assert long.cancel()
        with pytest.raises(CancelledError):
            long.result(60)
        assert not long.cancel()
        assert [row.state for row in pool.jobs()] == ["done", "cancelled"]


def test_leases_follow_weights() -> None:
    with sigps.pool("python", quantum=0.002, lanes="never") as pool:
        pool.graph("path", Graph.from_edges([0, 1], [1, 2]))
        jobs = [
            pool.submit(PageRank(iterations=10_000_000), "path", tenant=name, weight=weight)
            for name, weight in (("one", 1.0), ("three", 3.0))
        ]
        while jobs[1].lease_seconds < 3 * max(0.2, jobs[0].lease_seconds):  # the first one was there before
            assert not any(job.is_done() for job in jobs)
            assert jobs[0].lease_seconds < 20
        charged = pool.charged()
        for job in jobs:
            job.cancel()
    assert charged["three"] / charged["one"] == pytest.approx(3.0, rel=0.25)


def test_a_job_that_does_not_fit_waits_and_one_that_never_fits_is_refused_with_the_bytes() -> None:
    gate = Gate()
    with sigps.pool("python") as measuring:
        measuring.graph("rmat", GRAPH)
        needed = measuring.submit(WCC(), "rmat").estimate
    one_job = needed.graph_bytes + needed.own_bytes * 3 // 2
    with sigps.pool("python", memory=one_job) as pool:
        pool.graph("rmat", GRAPH)
        held = pool.submit(WCC(), "rmat", partitioner=gate)
        assert gate.is_reached.wait(60)
        second = pool.submit(WCC(), "rmat")
        assert second.state == "waiting for memory"
        gate.is_open.set()
        assert second.result(60)["component"].tolist() == held.result(60)["component"].tolist()
    with sigps.pool("python", memory=f"{needed.graph_bytes}B") as small:
        small.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match=f"needs {needed.own_bytes:,} bytes by itself"):
            small.submit(WCC(), "rmat")


def test_a_budget_takes_a_graph_once() -> None:
    budget, needed = Budget(100), Estimate({}, own_bytes=30, graph_bytes=40, seconds=None)
    assert budget.missing_bytes("g", needed) == 0
    budget.take("g", needed)
    assert (budget.free_bytes, budget.missing_bytes("g", needed), budget.missing_bytes("h", needed)) == (
        30,
        0,
        40,
    )
    budget.give_back(needed)
    assert budget.free_bytes == 60
    budget.forget("g")
    assert budget.free_bytes == 100


def test_errors_go_to_their_job_and_no_other() -> None:
    with sigps.pool(["cpu", "cpu"]) as pool:
        pool.graph("rmat", GRAPH)
        bad, good = pool.submit(BFS(source=-7), "rmat"), pool.submit(BFS(source=0), "rmat")
        with pytest.raises(sigps.GraphError, match="there is no vertex -7"):
            bad.result(60)
        assert good.result(60).reason == "converged"
        assert {(row.state, "no vertex -7" in row.why, row.why.count("\n")) for row in pool.jobs()} == {
            ("failed", True, 0),
            ("done", False, 0),
        }
        assert pool.submit(BFS(source=1), "rmat").estimate.seconds == good.lease_seconds


def test_a_job_is_awaited_and_the_table_is_shown() -> None:
    async def both(pool: sigps.Pool) -> list[int]:
        jobs = [pool.submit(BFS(source=s), "rmat", tenant="<b>") for s in (0, 1)]
        return [(await job).supersteps for job in jobs]

    with sigps.pool("python") as pool:
        pool.graph("rmat", GRAPH)
        found = asyncio.run(both(pool))
        assert found == [sigps.run(BFS(source=s), GRAPH, device="python").supersteps for s in (0, 1)]
        shown = pool._repr_html_()
    assert "BFS" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_priority_orders_the_jobs_of_one_tenant() -> None:
    with sigps.pool("python", quantum=1e-6) as pool:
        pool.graph("path", Graph.from_edges([0, 1], [1, 2]))
        low = pool.submit(PageRank(iterations=1_000_000), "path")
        high = pool.submit(PageRank(iterations=300), "path", priority=1)
        assert high.result(60).supersteps >= 300
        before = low.supersteps
        assert pool.submit(BFS(source=0), "path", priority=1).result(60).reason == "converged"
        assert low.supersteps >= before
        low.cancel()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "rmta"}, "did you mean 'rmat'"),
        ({"tenant": 3}, "tenant=3"),
        ({"weight": 0}, "weight=0"),
        ({"priority": 0.5}, r"priority=0\.5"),
        ({"device": "cpu"}, "device= is not for jobs of a pool"),
        ({"speed": 9}, "no option 'speed'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with sigps.pool("python") as pool:
        pool.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match=message):
            pool.submit(WCC(), **{"graph": "rmat", **options})


@pytest.mark.parametrize(
    "options",
    [
        {"devices": []},
        {"quantum": 0},
        {"memory": 0.5},
        {"threads": 0},
        {"turns": "x"},
        {"turns": "phase"},
        {"placing": "x"},
        {"placing": "feedback"},
        {"devices": "tpu"},
    ],
)
def test_a_wrong_pool_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        sigps.pool(**options)


def test_a_closed_pool_takes_no_job() -> None:
    with sigps.pool("python") as pool:
        pool.graph("rmat", GRAPH)
    with pytest.raises(ConfigError, match="this pool is closed"):
        pool.submit(WCC(), "rmat")


def test_a_pool_may_be_closed_by_what_a_job_calls_at_its_end() -> None:
    pool, closed = sigps.pool("python"), threading.Event()
    pool.graph("path", Graph.from_edges([0, 1], [1, 2]))

    def close(_: Any) -> None:
        pool.close()
        closed.set()

    pool.submit(BFS(source=0), "path").future.add_done_callback(close)
    assert closed.wait(60)
    assert not pool.graphs()


@pytest.mark.gpu
def test_jobs_share_a_gpu() -> None:
    with sigps.pool("cuda", quantum=0.002) as pool:
        pool.graph("rmat", GRAPH)
        jobs = [pool.submit(PageRank(iterations=50), "rmat"), pool.submit(BFS(source=3), "rmat")]
        found = [job.result(120) for job in jobs]
    for job, result in zip(jobs, found, strict=True):
        alone = sigps.run(job.program, GRAPH, device="cuda")
        for field in alone.fields:
            assert result[field].tobytes() == alone[field].tobytes()


def skip_without_two_gpus() -> None:
    from sigps.device.cuda import num_gpus

    if num_gpus() < 2:
        pytest.skip("needs two GPUs")


@pytest.mark.gpu
def test_jobs_of_two_gpus_have_the_results_of_runs_alone() -> None:
    skip_without_two_gpus()
    programs = [PageRank(iterations=30), SSSP(source=3), WCC(), BFS(source=3), KCore(), Triangles()]
    about: Any = {"quantum": 1e-4, "placing": "round_robin", "lanes": "never"}
    larger = sigps.generate(
        "rmat", scale=16, seed=2, weights="random", device="cuda"
    )  # its answers cross in pieces
    with sigps.pool(["cuda", "cuda"], **about) as pool:
        for name, graph in ("rmat", GRAPH), ("larger", larger):
            pool.graph(name, graph)
        names = "rmat", "larger"
        jobs = [pool.submit(p, n, deterministic=True) for _ in range(3) for p in programs for n in names]
        found = [job.result(300) for job in jobs]
        used = {row.device for row in pool.jobs()}
    assert used == {"cuda 0", "cuda 1"}
    graphs = {"rmat": GRAPH, "larger": larger}
    alone = {
        (p, n): sigps.run(p, g, device="cuda", deterministic=True)
        for p in programs
        for n, g in graphs.items()
    }
    for job, result in zip(jobs, found, strict=True):
        expected = alone[job.program, job.graph_name]
        for field in expected.fields:
            assert result[field].tobytes() == expected[field].tobytes()
            assert np.array_equal(result.to_cupy(field).get(), expected.to_cupy(field).get())


@pytest.mark.gpu
def test_more_gpus_than_there_are_is_an_error() -> None:
    from sigps.device.cuda import num_gpus

    count = num_gpus() + 1
    with pytest.raises(DeviceError, match=f"names {count} GPUs, and this process sees {count - 1}"):
        sigps.pool(["cuda"] * count)


@pytest.mark.gpu
def test_an_error_on_one_gpu_of_two_is_of_that_job() -> None:
    skip_without_two_gpus()
    with sigps.pool(["cuda", "cuda"], placing="round_robin") as pool:
        pool.graph("rmat", GRAPH)
        wrong = [pool.submit(BFS(source=10**9), "rmat") for _ in range(2)]
        right = [pool.submit(BFS(source=3), "rmat") for _ in range(4)]
        for job in wrong:
            with pytest.raises(GraphError, match="no vertex 1000000000"):
                job.result(60)
        expected = sigps.run(BFS(source=3), GRAPH, device="cpu")["level"]
        for job in right:
            assert np.array_equal(job.result(60)["level"], expected)


@pytest.mark.gpu
@pytest.mark.parametrize("quantum", [1e-6, 0.002])
def test_a_gpu_ends_leases_by_its_clock(quantum: float) -> None:
    with sigps.pool("cuda", quantum=quantum, lanes="never") as pool:
        pool.graph("rmat", GRAPH)
        programs = [PageRank(iterations=30), SSSP(source=3), WCC(), BFS(source=3), KCore()]
        jobs = [pool.submit(p, "rmat", tenant=str(i)) for i, p in enumerate(programs * 2)]
        found = [job.result(120) for job in jobs]
    for job, result in zip(jobs, found, strict=True):
        alone = sigps.run(job.program, GRAPH, device="cuda")
        assert result.supersteps == alone.supersteps
        assert result.reason == alone.reason
        for field in alone.fields:
            assert result[field].tobytes() == alone[field].tobytes()
    if quantum < 1e-3:
        assert len(found[0].record.leases) > 20


@pytest.mark.gpu
def test_equal_jobs_of_a_gpu_share_no_arrays() -> None:
    with sigps.pool("cuda") as pool:
        pool.graph("rmat", GRAPH)
        jobs = [pool.submit(WCC(), "rmat") for _ in range(20)]
        found = [job.result(120) for job in jobs]
    expected = sigps.run(WCC(), GRAPH, device="cuda")["component"].copy()
    for result in found:
        assert np.array_equal(result["component"], expected)
        result["component"][:] = -1


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_short_job_does_not_wait_for_a_long_lease(device: str) -> None:
    """The lease that goes on would take minutes; it ends after its superstep, and the run goes on afterwards."""
    with sigps.pool(device, quantum=600.0) as pool:
        pool.graph("rmat", GRAPH)
        for source in (3, 5):
            pool.submit(BFS(source=source), "rmat", weight=1000.0).result(120)  # so it is known to end soon
        endless = pool.submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", tenant="other")
        while not pool._devices[0]._holders:
            time.sleep(0.001)
        for source in (1, 2):
            assert pool.submit(BFS(source=source), "rmat").result(120)["level"][source] == 0
        assert not endless.is_done()
        assert endless.cancel()  # which ends its last lease, too
        with pytest.raises(CancelledError):
            endless.result(120)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_leases_end_by_the_clock(device: str) -> None:
    program = PageRank(iterations=100, tolerance=0.0)
    with sigps.pool(device, quantum=1e-6) as pool:
        pool.graph("rmat", GRAPH)
        many = pool.submit(program, "rmat").result(120)
    with sigps.pool(device, quantum=600.0) as pool:
        pool.graph("rmat", GRAPH)
        whole = pool.submit(program, "rmat").result(120)
    assert many.supersteps == whole.supersteps == 101
    assert len(whole.record.leases) == 1  # not one superstep, then two, then four
    counts = [count for _, count in many.record.leases]
    assert sum(counts) == 101
    assert max(counts) <= (
        64 if device == "cpu" else 1
    )  # small ones are fused, whose time is known afterwards
