"""A server whose worker dies: another takes its place at the same socket, and says what became of the jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest

import sigps
from sigps import ConfigError, Graph, GraphError, ServerError
from sigps.apps import BFS, WCC, PageRank
from sigps.serve.workers import Kept

pytest.importorskip("pyarrow")

POOL = """
socket: s
devices: cpu
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 8, seed: 1}}}}
snapshots: states
"""
ENDLESS = PageRank(iterations=10**7, tolerance=0.0)
GRAPH: Graph = sigps.generate("rmat", scale=8, seed=1)


class Served:
    """A server in a folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "pool.yaml").write_text(POOL)
        self.folder, command = folder, [sys.executable, "-m", "sigps", "serve", str(folder / "pool.yaml")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while True:
            try:
                self.client = sigps.connect(folder / "s")
                return
            except ConfigError:
                assert self.process.poll() is None
                time.sleep(0.02)

    def worker(self) -> int:
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def kill_worker(self) -> None:
        os.kill(self.worker(), signal.SIGKILL)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    yield found
    found.process.kill()
    found.process.communicate()


def test_a_job_with_a_name_goes_on_in_another_worker_and_others_are_named_as_gone(served: Served) -> None:
    program = PageRank(iterations=2000, tolerance=0.0)
    named = served.client.submit(program, "rmat", name="ranks", deterministic=True)
    other = served.client.submit(ENDLESS, "rmat")
    served.kill_worker()
    alone = sigps.run(program, GRAPH, device="cpu", deterministic=True)
    assert named.result(120)["rank"].tobytes() == alone["rank"].tobytes()
    with pytest.raises(ConfigError, match=r"job 1 is gone: the server's worker was killed by SIGKILL"):
        other.result(60)
    later = served.client.submit(BFS(source=3), "rmat")
    assert later.number == 2  # no other job's number
    assert later.result(60)["level"].tolist() == sigps.run(BFS(source=3), GRAPH)["level"].tolist()
    served.process.send_signal(signal.SIGTERM)
    _, said = served.process.communicate(timeout=240)
    assert served.process.returncode == 0
    assert "was killed by SIGKILL; another goes on with 1 jobs that have names" in said
    assert sorted(path.name for path in served.folder.iterdir()) == ["pool.yaml", "states"]


def test_what_came_of_a_job_with_a_name_outlives_the_worker(served: Served) -> None:
    done = served.client.submit(BFS(source=3), "rmat", name="levels")
    failed = served.client.submit(BFS(source=-7), "rmat", name="none")
    unnamed = served.client.submit(BFS(source=3), "rmat")
    while not all(job.is_done() for job in (done, failed, unnamed)):
        time.sleep(0.01)
    served.kill_worker()
    served.client.jobs()
    served.kill_worker()
    expected = sigps.run(BFS(source=3), GRAPH, device="python")
    for _ in range(2):
        assert done.result(60)["level"].tolist() == expected["level"].tolist()
    assert done.result(60).reason == "converged"
    with pytest.raises(GraphError, match="there is no vertex -7"):
        failed.result(60)
    with pytest.raises(ConfigError, match="job 2 is gone"):
        unnamed.result(60)
    assert not done.cancel()


def test_what_outlives_three_workers_is_given_up(served: Served) -> None:
    named = served.client.submit(ENDLESS, "rmat", name="long")
    waits = served.client.submit(ENDLESS, "rmat", name="waits")
    while not waits.suspend():  # it is admitted
        time.sleep(0.01)
    for _ in range(2):
        served.kill_worker()
        rows = {row.number: row.state for row in served.client.jobs()}
        assert rows[0] not in ("failed", "cancelled")
        assert not waits.is_done()
    assert waits.resume()
    served.kill_worker()
    with pytest.raises(ConfigError, match="job 0 is gone"):
        named.result(60)
    assert served.client.submit(WCC(), "rmat").result(60).supersteps > 0


def test_who_waits_for_a_job_that_is_gone_hears_how_its_worker_ended(served: Served) -> None:
    job = served.client.submit(ENDLESS, "rmat")
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(job.result, 60)
        time.sleep(0.5)  # it asks by then
        served.kill_worker()
        with pytest.raises(ConfigError, match="job 0 is gone: the server's worker was killed by SIGKILL"):
            waiting.result()


def test_when_the_supervisor_is_killed_its_worker_ends_too(served: Served) -> None:
    worker, job = served.worker(), served.client.submit(ENDLESS, "rmat")
    served.process.kill()
    with pytest.raises((ServerError, ConfigError, CancelledError)):
        job.result(60)
    ends = time.monotonic() + 120
    while Path(f"/proc/{worker}").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]


def test_a_worker_that_cannot_begin_ends_the_server(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(
        POOL.replace("generator: {rmat: {scale: 8, seed: 1}}", "path: none.txt")
    )
    command = [sys.executable, "-m", "sigps", "serve", str(tmp_path / "pool.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode in (1, 2)
    assert "none.txt" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_that_ended_is_not_kept() -> None:
    kept = Kept("a")
    for number in (0, 1):
        kept.take({"do": "took", "job": number, "question": {"name": str(number)}})
    kept.take({"do": "suspended", "job": 0})
    kept.take({"do": "ended", "job": 1})
    assert (list(kept.named), kept.suspended, kept.first_number) == ([0], {0}, 2)


def test_the_last_results_are_kept_until_the_worker_forgets_them() -> None:
    kept = Kept("a")
    for number in range(300):
        kept.take({"do": "ended", "job": number}, f"result {number}")
    assert list(kept.results) == list(range(44, 300))
    kept.take({"do": "forgot", "job": 44})
    kept.take({"do": "forgot", "job": 3})
    assert next(iter(kept.results.items())) == (45, "result 45")


_ILLEGAL = """
import os
import cupy, numpy as np, sigps
from sigps.apps import BFS
from sigps.device.cuda import has_sticky_error

bad = cupy.RawKernel("extern \\"C\\" __global__ void bad(int *at) { *at = 1; }", "bad")

def partitioner(ids):
    bad((1,), (1,), (np.uint64(8),))
    cupy.cuda.runtime.deviceSynchronize()

graph = sigps.generate("rmat", scale=8, seed=1)
pool = sigps.pool("cuda")
pool.graph("rmat", graph)
pool.submit(BFS(source=3), "rmat").result(120)
assert not has_sticky_error()
pool.on_lost_gpu = lambda error: os._exit(70 if "illegal" in str(error) else 1)
pool.submit(BFS(source=3), "rmat", partitioner=partitioner).result(120)
"""


@pytest.mark.gpu
def test_an_illegal_access_is_told_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", _ILLEGAL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 70, done.stderr
