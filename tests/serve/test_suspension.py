"""Jobs with a name: suspended to state logs, they go on in the same pool, a later one, and after a server's end."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import sigps
from sigps import ConfigError, StateLogError
from sigps.apps import BFS, WCC, PageRank
from sigps.cli import main as cli
from sigps.serve.job import Job
from sigps.serve.wire import connected

GRAPH = sigps.generate("rmat", scale=7, seed=1)
LONG = PageRank(iterations=4000, tolerance=0.0)


def until(job: Job, state: str) -> None:
    while job.state != state:
        assert not job.is_done()
        time.sleep(0.005)


def run_until(job: Job, supersteps: int) -> None:
    while job.supersteps < supersteps:
        assert not job.is_done()
        time.sleep(0.005)


def test_a_suspended_job_gives_its_memory_back_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    with sigps.pool("cpu", quantum=1e-3, snapshots=tmp_path / "states") as pool:
        pool.graph("rmat", GRAPH)
        job = pool.submit(LONG, "rmat", name="ranks", tenant="a/b", deterministic=True)
        for supersteps in (1, 500):
            run_until(job, supersteps)
            assert pool.suspend(job)
            until(job, "suspended")
            assert pool.overview().devices[0].own_bytes == 0
            assert not pool.suspend(job)
            assert (tmp_path / "states" / "tenant-a%2Fb" / "ranks").is_dir()
            assert pool.submit(WCC(), "rmat").result(60).reason == "converged"
            assert pool.resume(job)
            assert not pool.resume(job)
        found = job.result(120)
        threads = pool._devices[0].threads
    alone = sigps.run(LONG, GRAPH, device="cpu", threads=threads, deterministic=True)
    assert (found.reason, found.supersteps) == (alone.reason, alone.supersteps)
    assert found["rank"].tobytes() == alone["rank"].tobytes()
    assert list((tmp_path / "states").iterdir()) == []


def test_one_that_is_to_go_on_before_it_was_saved_waits_for_its_lease(tmp_path: Path) -> None:
    with sigps.pool("cpu", snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        device, tenant = pool._devices[0], {"tenant": "x", "lease_seconds": 0.0, "attained": 0.0}
        held: Any = Mock(jobs=(SimpleNamespace(**tenant, attained_at=0),), ends_soon=False)
        device._holders[held] = time.perf_counter()
        job = pool.submit(LONG, "rmat", name="ranks")
        while not device._waiting:
            time.sleep(0.001)
        with pool._lock:
            assert pool.suspend(job)
            assert pool.resume(job)
            assert not device._waiting
        while not device._waiting:
            time.sleep(0.001)
        assert job.supersteps == 0  # another one holds the device
        device.give_back(held)
        run_until(job, 1)
        job.cancel()  # it may have ended by now


def test_a_later_pool_goes_on_by_the_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def pool() -> sigps.Pool:
        made = sigps.pool("python", quantum=1e-3, snapshots=tmp_path)
        made.graph("rmat", GRAPH)
        return made

    program = PageRank(iterations=40, tolerance=0.0)
    first = pool()
    job = first.submit(program, "rmat", name="ranks")
    run_until(job, 2)
    first.stop()
    first.close()
    with pytest.raises(CancelledError):
        job.result(10)
    with pool() as second:
        with pytest.raises(StateLogError, match="WCC"):
            second.submit(WCC(), "rmat", name="ranks").result(60)
        with caplog.at_level(logging.INFO):
            again = second.submit(program, "rmat", name="ranks")
            found = again.result(60)
    assert "the run goes on from" in caplog.text
    alone = sigps.run(program, GRAPH, device="python")
    assert (found.supersteps, found["rank"].tobytes()) == (alone.supersteps, alone["rank"].tobytes())


def test_cancelling_removes_the_state(tmp_path: Path) -> None:
    with sigps.pool("python", snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        job = pool.submit(LONG, "rmat", name="ranks")
        run_until(job, 1)
        pool.suspend(job)
        until(job, "suspended")
        assert job.cancel()
        with pytest.raises(CancelledError):
            job.result(10)
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_cannot_be_saved_lets_the_job_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from sigps.system.checkpoint import files

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "begin_log", fail)
    with sigps.pool("python", snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        job = pool.submit(PageRank(iterations=60, tolerance=0.0), "rmat", name="ranks")
        run_until(job, 1)
        assert pool.suspend(job)
        assert job.result(60).supersteps == 61
    assert "its state could not be saved" in caplog.text


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with sigps.pool("python") as pool:
        pool.graph("rmat", GRAPH)
        with pytest.raises(ConfigError, match="give the pool a folder, snapshots="):
            pool.submit(WCC(), "rmat", name="a")
        job = pool.submit(WCC(), "rmat")
        with pytest.raises(ConfigError, match="has no name to go on by"):
            pool.suspend(job)
    with sigps.pool("python", snapshots=tmp_path) as pool:
        pool.graph("rmat", GRAPH)
        for name in ("../up", "", ".", "a/b", "x" * 101):
            with pytest.raises(ConfigError, match="must be 1 to 100 letters"):
                pool.submit(WCC(), "rmat", name=name)
        job = pool.submit(LONG, "rmat", name="a")
        with pytest.raises(ConfigError, match="a job named 'a' already"):
            pool.submit(BFS(source=0), "rmat", name="a")
        other = pool.submit(LONG, "rmat", name="a", tenant="other")
        for each in (job, other):
            each.cancel()


POOL = """
socket: s
devices: python
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 7, seed: 1}}}}
snapshots: states
"""


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sigps", "serve", str(folder / "pool.yaml")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert "serving rmat" in server.stdout.readline()
    return server


def test_jobs_of_a_server_go_on_after_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pool.yaml").write_text(POOL)
    done = 0
    for how in (signal.SIGTERM, signal.SIGKILL, None):
        server = start(tmp_path)
        client = sigps.connect(tmp_path / "s")
        job = client.submit(PageRank(iterations=10**6, tolerance=0.0), "rmat", name="ranks", tenant="t")
        while not (first := client.jobs()[0].supersteps):
            time.sleep(0.002)
        assert first >= done  # it does not begin anew
        if how is signal.SIGKILL:
            at = ["--socket", str(tmp_path / "s"), str(job.number)]
            assert cli.execute(["suspend", *at]) == 0
            while client.jobs()[0].state != "suspended":
                time.sleep(0.01)
            assert cli.execute(["resume", *at]) == 0
            assert "goes on" in capsys.readouterr().out
            assert job.suspend()
            while client.jobs()[0].state != "suspended":
                time.sleep(0.01)
        elif how is None:
            job.cancel()
            how = signal.SIGTERM
        done = client.jobs()[0].supersteps
        server.send_signal(how)
        server.communicate(timeout=240)
    assert list((tmp_path / "states").iterdir()) == []
    with pytest.raises(ConfigError, match="no server"):
        connected(str(tmp_path / "s"))


def test_a_notebook_shows_the_table_while_jobs_run() -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    cell = (
        "import sigps\nfrom sigps.apps import PageRank\n"
        "with sigps.pool('python') as pool:\n"
        "    pool.graph('rmat', sigps.generate('rmat', scale=6, seed=1))\n"
        "    job = pool.submit(PageRank(iterations=50, tolerance=0.0), 'rmat', tenant='ada')\n"
        "    pool.watch()\n"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (shown,) = [o for o in notebook.cells[0].outputs if o.output_type == "display_data"]
    assert "ada" in shown.data["text/html"]
    assert "<td>done</td>" in shown.data["text/html"]
