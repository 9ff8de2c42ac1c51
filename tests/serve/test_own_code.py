"""A tenant's own code: results, limits, and what a process that dies, hangs or lies does to other jobs."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import wait_until_gone

import sigps
from sigps import ConfigError, DeviceError, Graph, ServerError
from sigps.apps import BFS, SSSP, PageRank
from sigps.cli import main as cli
from sigps.group import Alone
from sigps.serve.own_code import OwnJob
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server
from sigps.serve.shared_graph import SharedGraph, bytes_to_share, opened_graph

CODE = '''
import ctypes, mmap, os, signal, sys, time
from pathlib import Path

import numpy as np

from sigps import Param, State, Vertex, VertexId


class Hops(Vertex, message=int, combiner=min):
    source: Param[VertexId]
    level: State[int] = -1

    def compute(self, messages):
        if self.superstep == 0 and self.id == self.source:
            self.level = 0
            self.send_to_neighbors(1)
        elif messages and self.level < 0:
            self.level = min(messages)
            self.send_to_neighbors(self.level + 1)
        self.vote_to_halt()


class Bad(Vertex, message=int):
    """Does what its parameter says, in its first superstep."""

    what: Param[str]
    level: State[int] = 0

    def compute(self, messages):
        act(self.what)
        self.vote_to_halt()


def write_pid(name):
    Path(f"{name}.part").write_text(str(os.getpid()))
    os.replace(f"{name}.part", name)


def act(what):
    if what == "loop":
        while True:
            pass
    elif what == "hog":
        np.ones(10**10)
    elif what == "crash":
        ctypes.string_at(0)
    elif what == "sys.exit":
        sys.exit(7)
    elif what == "child":
        if os.fork() == 0:
            write_pid("child")
            time.sleep(1000)
        while not Path("child").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "garbage":
        os.write(int(sys.argv[1]), b"\\xff" * 100)
        time.sleep(1000)
    elif what == "unsealed":
        import socket
        from sigps.serve import wire
        connection = socket.socket(fileno=os.dup(int(sys.argv[1])))
        wire.send_frame(connection, {"do": "done", "tables": 1, "supersteps": 1})
        wire.send_tables(connection, [os.memfd_create("x")])
        time.sleep(1000)
    elif what == "sleep":
        write_pid("asleep")
        time.sleep(1000)
'''

GRAPH = sigps.generate("rmat", scale=6, seed=1, weights="random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(CODE)
    return folder


@pytest.fixture
def pool(folder: Path) -> Iterator[sigps.Pool]:
    """A pool with a long job of another tenant, which must have gone on when the test has ended."""
    with sigps.pool("python", quantum=0.001) as pool:
        pool.graph("rmat", GRAPH)
        other = pool.submit(PageRank(iterations=10**7), "rmat", tenant="other")
        yield pool
        for job in pool._dispatcher.active():
            if job is not other:
                job.cancel()
        before = other.supersteps
        while other.supersteps <= before:
            assert not other.is_done()
            time.sleep(0.01)
        other.cancel()


def bad(pool: sigps.Pool, folder: Path, what: str, **limits: int | float | str) -> OwnJob:
    job = pool.submit_own("own.py:Bad", "rmat", params={"what": what}, folder=folder, **limits)  # type: ignore[arg-type]
    assert isinstance(job, OwnJob)
    return job


def pid_of(job: OwnJob) -> int:
    assert job._processes is not None
    return job._processes.first.pid


@pytest.mark.parametrize(
    "graph",
    [
        GRAPH,
        Graph.from_edges(["a", "b"], ["b", "ç"], weights=[1.5, 2.0]).with_vertex_columns({"age": [1, 2, 3]}),
        Graph.from_edges([5], [7], directed=False),
        Graph.from_edges([], [], vertices=[3, 4]),
    ],
    ids=["rmat", "strings", "undirected", "no edge"],
)
def test_a_shared_graph_is_the_graph_and_cannot_be_written(graph: Graph) -> None:
    shared = SharedGraph(graph)
    assert bytes_to_share(graph) >= os.fstat(shared.descriptor).st_size
    found = opened_graph(shared.descriptor, shared.about, Alone())
    assert found.to_arrow().equals(graph.to_arrow())
    assert {k: v.tolist() for k, v in found.vertex_columns.items()} == {
        k: v.tolist() for k, v in graph.vertex_columns.items()
    }
    assert (found.directed, found.num_vertices) == (graph.directed, graph.num_vertices)
    with pytest.raises(ValueError, match="read-only"):
        found.offsets[0] = 9
    with pytest.raises(PermissionError):
        os.pwrite(shared.descriptor, b"x", 0)
    descriptor = shared.descriptor
    del found, shared
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_results_are_those_of_runs(folder: Path) -> None:
    with sigps.pool(["cpu"]) as pool:
        pool.graph("rmat", GRAPH)
        own = pool.submit_own("sigps.apps:SSSP", "rmat", params={"source": 3}, tenant="t")
        hops = pool.submit_own("own.py:Hops", "rmat", params={"source": 3}, folder=folder, tenant="t")
        distances = own.result(120)
        levels = hops.result(120)
        rows = {row.number: row for row in pool.jobs()}
        threads = pool._devices[0].threads
    alone = sigps.run(SSSP(source=3), GRAPH, device="cpu", threads=threads)
    assert (distances.reason, distances.supersteps) == (alone.reason, alone.supersteps)
    for field in alone.fields:
        assert distances[field].tobytes() == alone[field].tobytes()
    expected = sigps.run(sigps.apps.BFS(source=3), GRAPH, device="python")
    assert levels["level"].tolist() == expected["level"].tolist()
    assert (rows[1].program, rows[1].state, rows[1].supersteps) == ("Hops", "done", levels.supersteps)
    assert rows[1].lease_seconds > 0


ENDS = {
    "loop": ({"lease_seconds": 0.3}, r"own\.py:Bad\) was ended: a lease took more than 0.3 s"),
    "hog": ({"memory": "1GB"}, r"MemoryError.*may take 1,000,000,000 bytes"),
    "crash": ({}, r"own\.py:Bad\) died by SIGSEGV"),
    "sys.exit": ({}, "SystemExit: 7"),
    "child": ({}, "died by SIGKILL"),
    "garbage": ({}, "was ended: it sent a frame of"),
    "unsealed": ({}, "was ended: it sent a result that is no"),
}


def test_what_goes_wrong_is_named_and_harms_no_other_job(pool: sigps.Pool, folder: Path) -> None:
    jobs = {what: bad(pool, folder, what, **limits) for what, (limits, _) in ENDS.items()}
    for what, job in jobs.items():
        with pytest.raises(ServerError, match=ENDS[what][1]):
            job.result(120)
    wait_until_gone([*map(pid_of, jobs.values()), int((folder / "child").read_text())])
    assert {row.state for row in pool.jobs() if row.program == "Bad"} == {"failed"}
    assert pool.overview().devices[0].jobs == 1


def test_a_loop_is_ended_by_its_cpu_seconds_too(pool: sigps.Pool, folder: Path) -> None:
    with pytest.raises(ServerError, match="computed for more than 2 s"):
        bad(pool, folder, "loop", cpu_seconds=2).result(120)


def test_cancelling_ends_the_process_at_once(pool: sigps.Pool, folder: Path) -> None:
    job = bad(pool, folder, "sleep", lease_seconds=1000.0)
    while not (folder / "asleep").exists():
        time.sleep(0.01)
    assert job.cancel()
    with pytest.raises(CancelledError):
        job.result(60)
    wait_until_gone([pid_of(job)])
    preparing = bad(pool, folder, "sleep")
    preparing.cancel()
    with pytest.raises(CancelledError):
        preparing.result(60)


def test_what_is_wrong_is_said(pool: sigps.Pool, folder: Path) -> None:
    with pytest.raises(ConfigError, match="no class 'Hop'; did you mean 'Hops'"):
        pool.submit_own("own.py:Hop", "rmat", folder=folder).result(60)
    with pytest.raises(ConfigError, match="no parameter 'sauce'"):
        pool.submit_own("own.py:Hops", "rmat", folder=folder, params={"sauce": 1}).result(60)
    with pytest.raises(ConfigError, match=r"is named path/to/file\.py:Class"):
        pool.submit_own("own", "rmat")
    with pytest.raises(ConfigError, match="must be a folder"):
        pool.submit_own("own.py:Hops", "rmat", folder=folder / "none")
    with pytest.raises(ConfigError, match="its process 900,000,000,000,000"):
        pool.submit_own("own.py:Hops", "rmat", memory=900_000_000_000_000)


POOL = """
socket: s
devices: python
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 6, seed: 1, weights: random}}}}
tenants:
  lab: {own_code: {lease_seconds: 1000, memory: 1GB}, memory: 2GB}
  plain: {own_code: true}
"""


def test_a_server_runs_it_for_tenants_that_may(folder: Path) -> None:
    (folder / "pool.yaml").write_text(POOL)
    (folder / "job.yaml").write_text("program: own.py:Hops\nparams: {source: 3}\ngraph: {path: none}\n")
    with Server(read_pool_file(folder / "pool.yaml")) as server:
        thread = threading.Thread(target=server.serve, daemon=True)
        thread.start()
        client = sigps.connect(folder / "s")
        levels = client.submit(
            "own.py:Hops", "rmat", params={"source": 3}, folder=folder, tenant="lab"
        ).result(60)
        expected = sigps.run(sigps.apps.BFS(source=3), GRAPH, device="python")
        assert levels["level"].tolist() == expected["level"].tolist()
        assert np.array_equal(levels.ids, expected.ids)
        about = [str(folder / "job.yaml"), "--graph", "rmat", "--socket", str(folder / "s")]
        assert cli.execute(["submit", *about, "--tenant", "plain"]) == 0
        with pytest.raises(ConfigError, match=r"does not run 'own\.py:Hops'"):
            client.submit("own.py:Hops", "rmat", folder=folder, tenant="stranger")
        (folder / "asleep").unlink(missing_ok=True)
        asked = {"params": {"what": "sleep"}, "folder": folder, "tenant": "lab"}
        asleep = [client.submit("own.py:Bad", "rmat", **asked) for _ in range(2)]  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="'lab' would take 3,000,000,000 bytes"):
            client.submit("own.py:Bad", "rmat", **asked)  # type: ignore[arg-type]
        assert asleep[0].cancel()
        with pytest.raises(CancelledError):
            asleep[0].result(60)
        while not (folder / "asleep").exists():
            time.sleep(0.01)
        pid = int((folder / "asleep").read_text())
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ServerError, match="died by SIGKILL"):
            asleep[1].result(60)
        wait_until_gone([pid])
        server.stop()
        thread.join(60)


def test_it_ends_with_a_server_that_is_killed(folder: Path) -> None:
    (folder / "pool.yaml").write_text(POOL)
    (folder / "asleep").unlink(missing_ok=True)
    command = [sys.executable, "-m", "sigps", "serve", str(folder / "pool.yaml")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert "serving rmat" in server.stdout.readline()
    client = sigps.connect(folder / "s")
    job = client.submit("own.py:Bad", "rmat", params={"what": "sleep"}, folder=folder, tenant="lab")
    while not (folder / "asleep").exists():
        assert not job.is_done()
        time.sleep(0.01)
    server.kill()
    server.communicate()
    wait_until_gone([int((folder / "asleep").read_text())])


def test_own_code_needs_a_device_of_its_kind(folder: Path) -> None:
    with sigps.pool("cpu") as pool:
        pool.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match="gpu_memory= is for a pool with a GPU, and this one has none"):
            pool.submit_own("own.py:Hops", "rmat", folder=folder, params={"source": 3}, gpu_memory="1GB")
        with pytest.raises(ConfigError, match="gpu_memory"):
            pool.submit_own("own.py:Hops", "rmat", folder=folder, params={"source": 3}, gpu_memory="much")


@pytest.mark.gpu
def test_own_code_runs_on_a_gpu(folder: Path) -> None:
    about: Any = {"folder": folder, "memory": "16GB", "gpu_memory": "1GB"}
    with sigps.pool(["cuda", "cpu"], quantum=0.002) as pool:
        pool.graph("rmat", GRAPH)
        jobs = [pool.submit_own("own.py:Hops", "rmat", params={"source": s}, **about) for s in (3, 5)]
        on_cores = pool.submit_own("own.py:Hops", "rmat", folder=folder, params={"source": 3})
        inside = pool.submit(SSSP(source=3), "rmat")
        for job, source in zip(jobs, (3, 5), strict=True):
            expected = sigps.run(BFS(source=source), GRAPH, device="cpu")["level"]
            assert np.array_equal(job.result(120)["level"], expected)
        assert np.array_equal(on_cores.result(60)["level"], jobs[0].result()["level"])
        assert inside.result(60).reason == "converged"
        devices = {row.number: row.device for row in pool.jobs()}
        assert [devices[job.number] for job in (*jobs, on_cores)] == ["cuda 0", "cuda 0", "cpu 1"]
        endless = pool.submit_own(
            "sigps.apps:PageRank", "rmat", params={"iterations": 10**9, "tolerance": 0.0}, **about
        )
        while endless.supersteps == 0:
            assert not endless.is_done()
            time.sleep(0.01)
        assert endless.cancel()
        with pytest.raises(CancelledError):
            endless.result(60)
        again = pool.submit_own("own.py:Hops", "rmat", params={"source": 3}, **about)
        assert np.array_equal(again.result(120)["level"], on_cores.result()["level"])
        too_little = pool.submit_own(
            "own.py:Hops", "rmat", params={"source": 3}, **{**about, "gpu_memory": "1kB"}
        )
        with pytest.raises(DeviceError, match="bytes"):
            too_little.result(120)
