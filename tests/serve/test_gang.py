"""Jobs on several devices: which leases they get, shares of a shared graph, and ranks that a pool starts and ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from processes import is_running, wait_until_gone
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import ConfigError, Graph, GraphError, ServerError
from sigps.apps import BFS, SSSP, PageRank
from sigps.serve.devices import SharedDevice, Tenant
from sigps.serve.gang import GangTurns
from sigps.serve.own_code import OwnJob
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server
from sigps.serve.shared_graph import SharedGraph, opened_graph

GRAPH = sigps.generate("rmat", scale=7, seed=1, weights="random")

CODE = '''
import os, signal, time
from pathlib import Path

from sigps import Param, State, Vertex


class Bad(Vertex, message=int):
    """Does what its parameter says where vertex 0 is."""

    what: Param[str]
    level: State[int] = 0

    def compute(self, messages):
        if self.id == 0:
            act(self.what)
        self.vote_to_halt()


class Inward(Vertex, message=int, combiner=sum):
    count: State[int] = 0

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(1)
        else:
            self.count = sum(messages)
        self.vote_to_halt()


class Outlives(Vertex, message=int):
    """The rank of vertex 0 fails when the other, which has the last vertex, has died."""

    seen: State[int] = 0

    def compute(self, messages):
        outlive(self.id)
        self.vote_to_halt()


def outlive(number):
    dying = Path("dying")
    if number == 127:
        Path("dying.part").write_text(str(os.getpid()))
        os.replace("dying.part", dying)
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 0:
        while not dying.exists():
            time.sleep(0.001)
        status = Path("/proc", dying.read_text(), "stat")
        while status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
            time.sleep(0.0001)
        raise OSError("the other rank is gone")


def act(what):
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    Path("asleep.part").write_text(str(os.getpid()))
    os.replace("asleep.part", "asleep")
    time.sleep(1000)
'''


def run_of(number: int, tenant: str, *, gang: bool = False) -> Any:
    """Return a run of one job whose requests wait."""
    job = Mock(number=number, tenant=tenant, priority=0, attained=0.0, attained_at=0, lease_seconds=0.0)
    job.kind = number
    return Mock(
        jobs=(job,),
        is_open=False,
        is_cancelled=False,
        is_suspending=False,
        ends_soon=False,
        awaited=np.zeros(1, np.uint32),
        granted=threading.Semaphore(0),
        has_several_devices=gang,
    )


def devices_of(engine: str, count: int) -> list[SharedDevice]:
    tenants, lock = {"a": Tenant(), "b": Tenant()}, threading.RLock()
    return [SharedDevice(f"{engine} {i}", engine, 1, 1.0, tenants, lock) for i in range(count)]


def started(call: Any) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_job_on_several_gpus_waits_for_all_of_each_and_nobody_runs_beside_it() -> None:
    first, second = devices_of("cuda", 2)
    one, other, gang = run_of(0, "a"), run_of(1, "b"), run_of(2, "b", gang=True)
    assert first.request(one)
    assert second.request(other)
    turns = GangTurns(gang, [first, second], 1.0)
    thread = started(lambda: turns.wait(None))
    while gang not in first._waiting:
        time.sleep(0.001)
    first.leave(one)  # now it has the first, and waits for the second
    while gang not in second._waiting:
        time.sleep(0.001)
    assert list(first._holders) == [gang]
    assert list(second._holders) == [other]
    late = started(lambda: first.request(one))
    while one not in first._waiting:
        time.sleep(0.001)
    assert list(first._holders) == [gang]
    second.leave(other)
    thread.join(60)
    assert list(second._holders) == [gang]
    turns.end()
    late.join(60)
    assert list(first._holders) == [one]
    assert not second._holders
    first.leave(one)
    turns.leave()
    assert not first._holders


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_jobs_on_several_devices_never_wait_for_each_other(engine: str) -> None:
    devices, holding = devices_of(engine, 3), threading.Lock()
    leases = []

    def work(number: int, mine: list[SharedDevice]) -> None:
        run = run_of(number, "ab"[number % 2], gang=len(mine) > 1)
        turns = GangTurns(run, mine, 1.0)
        for _ in range(30):
            turns.wait(None)
            with holding:
                assert all(list(device._holders) == [run] for device in mine if len(mine) > 1)
                leases.append(number)
        turns.leave()

    groups = [devices, devices[:2], devices[1:], devices[::2], devices[:1], devices[2:]]
    threads = [started(lambda n=n, mine=mine: work(n, mine)) for n, mine in enumerate(groups)]  # type: ignore[misc]
    for thread in threads:
        thread.join(60)
    assert sorted(leases) == sorted(list(range(6)) * 30)
    assert not any(device._holders or device._waiting for device in devices)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(
    "graph",
    [
        GRAPH,
        Graph.from_edges(["a", "b"], ["b", "ç"], weights=[1.5, 2.0]).with_vertex_columns({"age": [1, 2, 3]}),
        Graph.from_edges([5, 9], [7, 7], directed=False),
        Graph.from_edges([], [], vertices=[3, 4]),
    ],
    ids=["rmat", "strings", "undirected", "no edge"],
)
def test_ranks_share_a_shared_graph(graph: Graph, size: int) -> None:
    shared = SharedGraph(graph)

    def share(group: ThreadGroup) -> tuple[Any, ...]:
        found = opened_graph(shared.descriptor, shared.about, group)
        assert (found.num_vertices, found.num_edges) == (graph.num_vertices, graph.num_edges)
        assert found.directed == graph.directed
        ages = found.vertex_columns.get("age", np.empty(0)).tolist()
        weights = found.columns["weight"].tolist() if "weight" in found.columns else []
        oids = found.ids.to_oids(np.arange(found.first_row, found.first_row + found.num_rows)).tolist()
        return np.diff(found.offsets).tolist(), found.targets.tolist(), weights, ages, oids

    degrees, targets, weights, ages, oids = (
        [value for part in parts for value in part] for parts in zip(*run_ranks(size, share), strict=True)
    )
    assert degrees == np.diff(graph.offsets).tolist()
    assert targets == graph.targets.tolist()
    assert weights == (graph.columns["weight"].tolist() if "weight" in graph.columns else [])
    assert ages == graph.vertex_columns.get("age", np.empty(0)).tolist()
    assert oids == np.asarray(graph.ids).tolist()


@pytest.mark.usefixtures("mpirun")
def test_results_are_those_of_runs_alone() -> None:
    with sigps.pool(["cpu", "cpu"], threads=1, quantum=0.001) as pool:
        pool.graph("rmat", GRAPH)
        beside = [pool.submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", tenant=t) for t in "ab"]
        job = pool.submit_own("sigps.apps:SSSP", "rmat", params={"source": 3}, ranks=2, tenant="c")
        found = job.result(120)
        row = next(row for row in pool.jobs() if row.number == job.number)
        before = [other.supersteps for other in beside]
        for other, supersteps in zip(beside, before, strict=True):
            while other.supersteps <= supersteps:
                assert not other.is_done()
                time.sleep(0.001)
            other.cancel()
    alone = sigps.run(SSSP(source=3), GRAPH, device="python")
    assert found["distance"].tolist() == alone["distance"].tolist()
    assert np.array_equal(found.ids, alone.ids)
    assert (row.device, row.state) == ("cpu 0, cpu 1", "done")
    assert row.lease_seconds > 0


@pytest.mark.usefixtures("mpirun")
def test_what_goes_wrong_on_a_rank_ends_all_of_them_and_no_other_job(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CODE)
    with sigps.pool(["python", "python"], quantum=0.001) as pool:
        pool.graph("rmat", GRAPH)
        other = pool.submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", tenant="other")

        def bad(what: str) -> OwnJob:
            job = pool.submit_own("own.py:Bad", "rmat", params={"what": what}, folder=tmp_path, ranks=2)
            assert isinstance(job, OwnJob)
            return job

        with pytest.raises(ServerError, match=r"(rank 0|one) of its 2 ranks died"):
            bad("die").result(120)
        with pytest.raises(ServerError, match=r"(rank 1|one) of its 2 ranks died"):
            pool.submit_own("own.py:Outlives", "rmat", folder=tmp_path, ranks=2).result(120)
        with pytest.raises(GraphError, match="there is no vertex -7"):
            pool.submit_own("sigps.apps:BFS", "rmat", params={"source": -7}, ranks=2).result(120)
        job = bad("sleep")
        while not (tmp_path / "asleep").exists():
            assert not job.is_done()
            time.sleep(0.01)
        assert job._processes is not None
        first = job._processes.first.pid
        assert job.cancel()
        with pytest.raises(CancelledError):
            job.result(60)
        wait_until_gone([first, int((tmp_path / "asleep").read_text())])
        before = other.supersteps
        while other.supersteps <= before:
            assert not other.is_done()
            time.sleep(0.01)
        other.cancel()
    assert all(not device._holders for device in pool._devices)
    assert all(budget.own_bytes == 0 for budget in pool._dispatcher.budgets)


POOL = """
import sys
import sigps
if __name__ == "__main__":
    with sigps.pool(["python", "python"]) as pool:
        pool.graph("path", sigps.Graph.from_edges([0, 1], [1, 2]))
        about = {"params": {"what": "sleep"}, "folder": sys.argv[1], "ranks": 2}
        pool.submit_own("own.py:Bad", "path", **about).result()
"""


@pytest.mark.usefixtures("mpirun")
def test_ranks_end_with_a_pool_whose_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CODE)
    process = subprocess.Popen([sys.executable, "-c", POOL, str(tmp_path)])
    while not (tmp_path / "asleep").exists():
        assert process.poll() is None
        time.sleep(0.01)
    pid = int((tmp_path / "asleep").read_text())
    assert is_running(pid)
    process.kill()
    process.wait()
    wait_until_gone([pid])


SERVER = """
socket: s
devices: [python, python]
graphs: {rmat: {generator: {rmat: {scale: 6, seed: 1}}}}
tenants: {lab: {own_code: {memory: 1GB, ranks: 2}, memory: 3GB}}
"""


@pytest.mark.usefixtures("mpirun")
def test_a_server_runs_own_code_on_ranks(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(SERVER)
    (tmp_path / "own.py").write_text(CODE)
    with Server(read_pool_file(tmp_path / "pool.yaml")) as server:
        thread = started(server.serve)
        client = sigps.connect(tmp_path / "s")
        about: Any = {"folder": tmp_path, "tenant": "lab"}
        asleep = client.submit("own.py:Bad", "rmat", params={"what": "sleep"}, **about)
        with pytest.raises(ConfigError, match="'lab' would take"):
            client.submit("own.py:Inward", "rmat", **about)
        while not (tmp_path / "asleep").exists():
            time.sleep(0.01)
        assert asleep.cancel()
        with pytest.raises(CancelledError):
            asleep.result(60)
        found = client.submit("own.py:Inward", "rmat", **about).result(120)
        server.stop()
        thread.join(60)
    graph = sigps.generate("rmat", scale=6, seed=1)
    assert found["count"].tolist() == np.bincount(graph.targets, minlength=graph.num_vertices).tolist()


@pytest.mark.usefixtures("mpirun")
def test_ranks_that_no_pool_could_hold_are_refused() -> None:
    with sigps.pool(["cpu", "python", "cpu"]) as pool:
        pool.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match="needs 3 devices of a kind, and this pool has fewer: cpu 0"):
            pool.submit_own("sigps.apps:SSSP", "rmat", params={"source": 3}, ranks=3)
        with pytest.raises(ConfigError, match="ranks=0 must be a whole number"):
            pool.submit_own("sigps.apps:SSSP", "rmat", params={"source": 3}, ranks=0)
        job = pool.submit_own("sigps.apps:BFS", "rmat", params={"source": 3}, ranks=2)
        assert job.devices == ("cpu 0", "cpu 2")
        job.cancel()


@pytest.mark.gpu
@pytest.mark.usefixtures("mpirun")
def test_ranks_on_two_gpus_have_the_results_of_runs_alone() -> None:
    from sigps.device.cuda import num_gpus

    if num_gpus() < 2:
        pytest.skip("needs two GPUs")
    about: Any = {"memory": "16GB", "gpu_memory": "1GB", "ranks": 2}
    with sigps.pool(["cuda", "cuda"], quantum=0.002) as pool:
        pool.graph("rmat", GRAPH)
        beside = [pool.submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", tenant=t) for t in "ab"]
        jobs = [pool.submit_own("sigps.apps:BFS", "rmat", params={"source": s}, **about) for s in (3, 5)]
        for job, source in zip(jobs, (3, 5), strict=True):
            expected = sigps.run(BFS(source=source), GRAPH, device="python")
            assert job.result(120)["level"].tolist() == expected["level"].tolist()
            assert job.devices == ("cuda 0", "cuda 1")
        for other in beside:
            assert not other.is_done()
            other.cancel()
