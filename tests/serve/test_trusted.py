"""Jobs of a program that the pool's process has itself, on several devices together: `submit(..., ranks=2)`."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from processes import wait_until_gone
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import ConfigError, Graph, State, Vertex
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.cli import main as cli
from sigps.serve.admission import estimate
from sigps.serve.job import Job
from sigps.serve.own_code import OwnJob
from sigps.serve.own_ranks import forget_memory
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server
from sigps.serve.shared_graph import SharedGraph, opened_graph

GRAPH = sigps.generate("rmat", scale=7, seed=1, weights="random")
LONG = PageRank(iterations=10**7, tolerance=0.0)


class Doubled(Vertex, message=int):
    number: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.number = 2 * self.number
        self.vote_to_halt()


def until(job: Job, *, state: str = "", supersteps: int = 0) -> None:
    while job.state != state if state else job.supersteps < supersteps:
        assert not job.is_done()
        time.sleep(0.005)


ALONE = """
import sigps
from sigps.apps import PageRank
graph = sigps.generate("rmat", scale=7, seed=1, weights="random")
found = sigps.run(PageRank(iterations=30, tolerance=0.0), graph, device="cpu", threads=1)
if graph.group.rank == 0:
    print(found["rank"].tobytes().hex())
"""


def test_results_are_those_of_mpirun_and_its_tenant_is_charged_for_all_devices(mpirun: str) -> None:
    with sigps.pool(["python", "cpu", "cpu"], threads=1, quantum=0.001) as pool:
        pool.graph("rmat", GRAPH)
        beside = pool.submit(LONG, "rmat", tenant="b")
        job = pool.submit(PageRank(iterations=30, tolerance=0.0), "rmat", ranks=2, tenant="c")
        assert job.estimate.graph_bytes >= GRAPH.targets.nbytes
        assert job.estimate.own_bytes > job.estimate.bytes_by_purpose["its process"] > 0
        found = job.result(120)
        numbers = np.arange(200_000)  # more than a frame of the socket holds
        pool.graph("many", Graph.from_edges([0], [1], vertices=numbers))
        doubled = pool.submit(Doubled(), "many", ranks=2, initial={"number": numbers}).result(120)
        search = pool.submit(SSSP(source=3), "rmat", ranks=2, partitioner="hash").result(120)
        before = beside.supersteps
        while beside.supersteps <= before:
            assert not beside.is_done()
            time.sleep(0.001)
        beside.cancel()
        devices = {device.name: device for device in pool._devices}
        assert job.devices == ("cpu 1", "cpu 2")
        assert pool.charged()["c"] == pytest.approx(job.lease_seconds)
        assert 0 < job.lease_seconds <= sum(devices[name].lease_seconds() for name in job.devices)
        assert all(devices[name].leases >= 1 for name in job.devices)
        assert (
            pool.submit(PageRank(), "rmat").estimate.seconds is None
        )  # on one device it takes something else
    launched = subprocess.run(
        [mpirun, "-n", "2", sys.executable, "-c", ALONE],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert found["rank"].tobytes().hex() == launched.stdout.strip()
    assert (found.supersteps, job.supersteps) == (31, 31)
    assert np.array_equal(doubled["number"], 2 * numbers)
    alone = sigps.run(SSSP(source=3), GRAPH, device="python")
    assert search["distance"].tolist() == alone["distance"].tolist()
    assert np.array_equal(search.ids, alone.ids)


@pytest.mark.usefixtures("mpirun")
def test_one_with_a_name_goes_on_from_its_state(tmp_path: Path) -> None:
    program = PageRank(iterations=3000, tolerance=0.0)
    alone = sigps.run(program, GRAPH, device="cpu", threads=1, deterministic=True)
    about: Any = {"name": "ranks", "deterministic": True}
    with sigps.pool(["cpu", "cpu"], threads=1, quantum=0.001, snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        beside = pool.submit(LONG, "rmat", tenant="other")
        job = pool.submit(program, "rmat", ranks=2, **about)
        assert isinstance(job, OwnJob)
        until(job, supersteps=100)
        assert pool.suspend(job)
        until(job, state="suspended")
        assert all(budget.own_bytes <= beside.estimate.own_bytes for budget in pool._dispatcher.budgets)
        assert pool.resume(job)
        done = job.supersteps
        until(job, state="running")
        assert job.supersteps >= done >= 100  # it did not begin anew
        pool.stop()
        until(job, state="suspended")
    with sigps.pool("cpu", snapshots=tmp_path, threads=1) as pool:  # on one device
        pool.graph("rmat", GRAPH)
        job = pool.submit(program, "rmat", **about)
        assert job.result(120)["rank"].tobytes() == alone["rank"].tobytes()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("mpirun")
def test_a_killed_rank_is_named_and_no_other_job_is_lost() -> None:
    with sigps.pool(["python", "python"], quantum=0.001) as pool:
        pool.graph("rmat", GRAPH)
        other = pool.submit(LONG, "rmat", tenant="other")
        for victim in (0, 1):
            job = pool.submit(LONG, "rmat", ranks=2)
            until(job, supersteps=2)
            os.kill(pid_of_rank(job, victim), signal.SIGKILL)
            with pytest.raises(sigps.SigpsError, match=rf"\brank {victim}\b|one of its 2 ranks"):
                job.result(60)
        job = pool.submit(LONG, "rmat", ranks=2)
        until(job, supersteps=2)
        pids = [pid_of_rank(job, rank) for rank in range(2)]
        assert job.cancel()
        with pytest.raises(CancelledError):
            job.result(60)
        wait_until_gone(pids)
        until(other, supersteps=other.supersteps + 1)
        other.cancel()
    assert not any(device._holders or device._waiting for device in pool._devices)
    assert not any(budget.own_bytes for budget in pool._dispatcher.budgets)


def pid_of_rank(job: Job, rank: int) -> int:
    assert isinstance(job, OwnJob)
    assert job._processes is not None
    descriptor = job._processes._pidfds[job._processes._ranks.index(rank)]
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))


def test_what_no_ranks_could_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(Vertex, message=int):
        def compute(self, messages: Any) -> None:
            self.vote_to_halt()

    with sigps.pool(["cpu", "python", "cpu"]) as pool:
        pool.graph("rmat", GRAPH)
        monkeypatch.setattr("sigps.serve.trusted.check_launcher", lambda: None)
        with pytest.raises(ConfigError, match="needs 3 devices of a kind, and this pool has fewer: cpu 0"):
            pool.submit(BFS(source=3), "rmat", ranks=3)
        for wrong in (0, 1.5, True):
            with pytest.raises(ConfigError, match=r"ranks=.* must be a whole number"):
                pool.submit(BFS(source=3), "rmat", ranks=wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"cannot import .*Local, which no file or module has"):
            pool.submit(Local(), "rmat", ranks=2)
        with pytest.raises(ConfigError, match="cannot be sent to other processes"):
            pool.submit(BFS(source=3), "rmat", ranks=2, partitioner=lambda ids: ids % 2)
        with pytest.raises(ConfigError, match="trace= is not for a job on several ranks"):
            pool.submit(BFS(source=3), "rmat", ranks=2, trace=[3])
        with pytest.raises(ConfigError, match="gather= is not for a job on several ranks"):
            pool.submit(BFS(source=3), "rmat", ranks=2, gather=False)
        assert pool.jobs() == []
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with sigps.pool(["python", "python"]) as pool:
        pool.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match=r"pip install 'sigps\[mpi\]'"):
            pool.submit(BFS(source=3), "rmat", ranks=2)


def test_bytes_of_each_device_are_admitted() -> None:
    with sigps.pool(["python", "python"], memory=100_000_000) as pool:
        pool.graph("rmat", GRAPH)
        pool.submit(BFS(source=3), "rmat").result(60)
        with pytest.raises(ConfigError, match="more than the pool has"):
            pool.submit(BFS(source=3), "rmat", ranks=2)  # two processes with Python


def test_seconds_that_devices_have_together_are_shared_among_them() -> None:
    with sigps.pool(["python", "python"], placing="weighted_times") as pool:
        pool.graph("rmat", GRAPH)
        both = SimpleNamespace(
            devices=("python 0", "python 1"),
            num_devices=2,
            program_name="both",
            estimate=SimpleNamespace(seconds=4.0),
        )
        needed = estimate(BFS(source=3), GRAPH, "python", {}, None)
        job: Any = SimpleNamespace(estimate=needed)
        with pool._lock:
            pool._dispatcher.running[7] = both  # type: ignore[assignment]
            loads = [pool._dispatcher._load(number, (0, ""), job) for number in range(2)]
            del pool._dispatcher.running[7]
    assert [load.seconds for load in loads] == [2.0, 2.0]


def test_names_of_memory_that_killed_ranks_left_are_removed() -> None:
    folder, began = Path("/dev/shm"), time.time()
    if not folder.is_dir():
        pytest.skip("this system has no /dev/shm")
    left, mapped, other = (
        folder / f"{kind}_test_{os.getpid()}" for kind in ("mpich_shm_1", "mpich_shm_2", "x")
    )
    try:
        for path in (left, mapped, other):
            path.write_bytes(bytes(4096))
        with mapped.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
            forget_memory(began + 3600)
            assert left.exists()
            forget_memory(began)
            assert [path.exists() for path in (left, mapped, other)] == [False, True, True]
    finally:
        for path in (left, mapped, other):
            path.unlink(missing_ok=True)


SERVER = """
socket: s
devices: [python, python]
graphs: {rmat: {generator: {rmat: {scale: 7, seed: 1}}}}
tenants: {lab: {own_code: {memory: 1GB}}, poor: {memory: 200MB}}
"""

JOB = "program: sigps.apps:WCC\ngraph: {generator: {rmat: {scale: 7, seed: 1}}}\n"


@pytest.mark.usefixtures("mpirun")
def test_a_server_runs_its_programs_on_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pool.yaml").write_text(SERVER)
    (tmp_path / "job.yaml").write_text(JOB)
    with Server(read_pool_file(tmp_path / "pool.yaml")) as server:
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        client = sigps.connect(tmp_path / "s")
        command = ["submit", str(tmp_path / "job.yaml"), "--socket", str(tmp_path / "s"), "--ranks", "2"]
        assert cli.execute([*command, "-o", str(tmp_path / "out.csv")]) == 0
        (row,) = client.jobs()
        with pytest.raises(ConfigError, match="'poor' would take"):
            client.submit(WCC(), "rmat", tenant="poor", ranks=2)
        with pytest.raises(ConfigError, match="runs on 1 ranks, not 2"):
            client.submit("own.py:Mine", "rmat", tenant="lab", ranks=2)
        with pytest.raises(ConfigError, match="ranks='two' must be a whole number"):
            client.submit(WCC(), "rmat", ranks="two")  # type: ignore[arg-type]
        long = client.submit(LONG, "rmat", ranks=2)
        while not next(row for row in client.jobs() if row.number == long.number).supersteps:
            time.sleep(0.01)
        assert long.cancel()
        with pytest.raises(CancelledError):
            long.result(60)
        server.stop()
        thread.join(60)
    assert (row.device, row.state) == ("python 0, python 1", "done")
    graph = sigps.generate("rmat", scale=7, seed=1)
    expected = sigps.run(WCC(), graph, device="python")["component"]
    rows = {row["id"]: row["component"] for row in sigps.read_result(tmp_path / "out.csv").to_pylist()}
    assert rows == dict(zip(np.asarray(graph.ids).tolist(), expected.tolist(), strict=True))
    assert "converged" in capsys.readouterr().out


@pytest.mark.parametrize("size", [2, 3])
def test_a_graph_of_several_ranks_is_whole_in_the_pool_of_each(size: int) -> None:
    shared, expected = SharedGraph(GRAPH), sigps.run(SSSP(source=3), GRAPH, device="python")

    def levels(group: ThreadGroup) -> tuple[list[float], list[int]]:
        part = opened_graph(shared.descriptor, shared.about, group)
        assert part.num_rows < GRAPH.num_rows
        with sigps.pool("python") as pool:
            pool.graph("rmat", part)
            found = pool.submit(SSSP(source=3), "rmat").result(60)
        return found["distance"].tolist(), np.asarray(found.ids).tolist()

    for distances, ids in run_ranks(size, levels):
        assert distances == expected["distance"].tolist()
        assert ids == np.asarray(GRAPH.ids).tolist()


@pytest.mark.gpu
@pytest.mark.usefixtures("mpirun")
def test_two_gpus_together_have_the_results_of_runs_alone(tmp_path: Path) -> None:
    from sigps.device.cuda import num_gpus

    if num_gpus() < 2:
        pytest.skip("needs two GPUs")
    program = PageRank(iterations=3000, tolerance=0.0)
    with sigps.pool(["cuda", "cuda"], quantum=0.002, snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        beside = [pool.submit(LONG, "rmat", tenant=tenant) for tenant in "ab"]
        search = pool.submit(BFS(source=3), "rmat", ranks=2)
        named = pool.submit(program, "rmat", ranks=2, name="ranks", deterministic=True)
        assert search.estimate.graph_bytes == 0  # each GPU has a layout of its own
        expected = sigps.run(BFS(source=3), GRAPH, device="python")
        assert search.result(120)["level"].tolist() == expected["level"].tolist()
        assert search.devices == ("cuda 0", "cuda 1")
        until(named, supersteps=100)
        assert pool.suspend(named)
        until(named, state="suspended")
        assert pool.resume(named)
        alone = sigps.run(program, GRAPH, device="cuda", deterministic=True)
        assert named.result(120)["rank"].tobytes() == alone["rank"].tobytes()
        killed = pool.submit(LONG, "rmat", ranks=2)
        until(killed, supersteps=2)
        os.kill(pid_of_rank(killed, 1), signal.SIGKILL)
        with pytest.raises(sigps.SigpsError, match=r"\brank 1\b|one of its 2 ranks"):
            killed.result(60)
        for other in beside:
            assert not other.is_done()
            other.cancel()
