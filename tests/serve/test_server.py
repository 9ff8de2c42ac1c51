"""A server of jobs: results, refusals, limits, what strangers send, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import msgpack
import pytest

import sigps
from sigps import CompileError, ConfigError, ServerError
from sigps.apps import BFS, SSSP, WCC, MaximalMatching, PageRank
from sigps.cli import main as cli
from sigps.serve import server as module
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server
from sigps.serve.supervisor import keep_serving
from sigps.serve.wire import LARGEST_FRAME, read_frame

EDGES = "10 20 1.5\n20 30 2\n10 30 9\n30 40 1\n"
DISTANCES = {10: 0.0, 20: 1.5, 30: 3.5, 40: 4.5}  # by hand

POOL = """
socket: {socket}
devices: {device}
quantum: 0.001
graphs:
  roads: {{path: edges.txt, weights: 2}}
  rmat: {{generator: {{rmat: {{scale: 6, seed: 1}}}}}}
programs: ["sigps.apps:*", "own.py:Uncompiled"]
tenants:
  ada: {{weight: 2, jobs: 1}}
  bob: {{memory: 10}}
"""

OWN = """
from sigps import State, Vertex

class Uncompiled(Vertex, message=int):
    seen: State[int] = 0
    def compute(self, messages):
        self.seen = open("x")
"""


def make(folder: Path, device: str = "cpu") -> Path:
    (folder / "edges.txt").write_text(EDGES)
    (folder / "own.py").write_text(OWN)
    (folder / "pool.yaml").write_text(POOL.format(socket="s", device=device))
    return folder / "pool.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a server behind the socket `s`, all tests of this module ask the same one."""
    folder = tmp_path_factory.mktemp("server")
    with Server(read_pool_file(make(folder, "python"))) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield folder
        server.stop()
        thread.join(60)
    assert not (folder / "s").exists()


@pytest.fixture
def client(folder: Path) -> sigps.Client:
    return sigps.connect(folder / "s")


def long_job(client: sigps.Client, **about: str) -> sigps.serve.client.RemoteJob:
    return client.submit(PageRank(iterations=10**7), "roads", **about)


def test_results_are_those_of_runs(client: sigps.Client, folder: Path) -> None:
    assert client.graphs()["roads"] == (4, 4)
    roads, rmat = sigps.load(folder / "edges.txt", weights=2), sigps.generate("rmat", scale=6, seed=1)
    cases = [(SSSP(source=10), "roads", roads), (BFS(source=3), "rmat", rmat), (WCC(), "rmat", rmat)]
    cases += [(PageRank(iterations=5), "rmat", rmat), (MaximalMatching(), "rmat", rmat)]
    jobs = [client.submit(program, name, tenant="t") for program, name, _ in cases]
    for job, (program, _, graph) in zip(jobs, cases, strict=True):
        found, alone = job.result(60), sigps.run(program, graph, device="python")
        assert (found.reason, found.supersteps, found.fields) == (
            alone.reason,
            alone.supersteps,
            alone.fields,
        )
        assert found.ids.tolist() == alone.ids.tolist()
        assert found.aggregators == alone.aggregators
        for field in alone.fields:
            assert found[field].dtype == alone[field].dtype
            assert found[field].tolist() == alone[field].tolist()
    distances = jobs[0].result()
    assert dict(zip(distances.ids.tolist(), distances["distance"].tolist(), strict=True)) == DISTANCES
    assert jobs[0].is_done()
    assert not jobs[0].cancel()


def test_what_is_wrong_is_said(client: sigps.Client) -> None:
    with pytest.raises(ConfigError, match="does not run 'os:system'"):
        client.submit("os:system", "roads")
    with pytest.raises(ConfigError, match=r"no graph 'road'; did you mean 'roads'\?"):
        client.submit(BFS(source=10), "road")
    with pytest.raises(ConfigError, match="no parameter 'sauce'; did you mean 'source'"):
        client.submit("sigps.apps:BFS", "roads", params={"sauce": 1})
    with pytest.raises(ConfigError, match="takes no option 'checkpoint'"):
        client.submit(BFS(source=10), "roads", checkpoint="log")
    with pytest.raises(ConfigError, match="of the same file and options"):
        client.submit(BFS(source=10), {"path": "/elsewhere"})
    with pytest.raises(ConfigError, match="there is no job 99999"):
        client.job(99999)
    with pytest.raises(sigps.SigpsError, match="999"):
        client.submit(BFS(source=999), "roads").result(60)
    with pytest.raises(ConfigError, match="no server of jobs at /nowhere"):
        sigps.connect("/nowhere")


def test_limits_of_a_tenant(client: sigps.Client) -> None:
    job = long_job(client, tenant="ada")
    with pytest.raises(ConfigError, match="'ada' has 1 jobs that have not ended, and may have 1"):
        client.submit(BFS(source=10), "roads", tenant="ada")
    assert client.submit(BFS(source=10), "roads", tenant="eve").result(60)["level"].tolist() == [0, 1, 1, 2]
    with pytest.raises(ConfigError, match="'bob' would take"):
        client.submit(BFS(source=10), "roads", tenant="bob")
    assert not job.is_done()
    assert job.cancel()
    with pytest.raises(CancelledError):
        job.result(60)
    assert client.submit(BFS(source=10), "roads", tenant="ada").result(60).reason == "converged"


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "too large": struct.pack(">I", LARGEST_FRAME + 1),
    "not MessagePack": struct.pack(">I", 1) + b"\xc1",
    "deep": struct.pack(">I", 100_000) + b"\x91" * 100_000,
    "no mapping": struct.pack(">I", 1) + msgpack.packb(7),
    "half a length": b"\0\0",
    "half a frame": struct.pack(">I", 10) + b"12345",
    "nothing": b"",
    "no question": struct.pack(">I", 1) + msgpack.packb({}),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_harmless(folder: Path, client: sigps.Client, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(folder / "s"))
        stranger.sendall(GARBAGE[name])
        stranger.shutdown(socket.SHUT_WR)
        reply = read_frame(stranger, 30)
        assert reply is None or reply["error"] == "ConfigError"
        assert read_frame(stranger, 30) is None
    assert client.submit(BFS(source=10), "roads").result(60)["level"].tolist() == [0, 1, 1, 2]


def test_another_user_is_refused(folder: Path, client: sigps.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stat.S_IMODE(os.stat(folder / "s").st_mode) == 0o600
    monkeypatch.setattr(module, "peer_uid", lambda _: os.getuid() + 1)
    with pytest.raises(ConfigError, match="of another user"):
        client.graphs()


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    at = ["--socket", str(folder / "s")]
    job = folder / "job.yaml"
    job.write_text(
        "program: sigps.apps:SSSP\nparams: {source: 10}\ngraph: {path: edges.txt, weights: 2}\noutput: {top: 1}\n"
    )
    assert cli.execute(["submit", str(job), *at, "-o", str(tmp_path / "out.csv")]) == 0
    assert "converged" in capsys.readouterr().out
    rows = {row["id"]: row["distance"] for row in sigps.read_result(tmp_path / "out.csv").to_pylist()}
    assert rows == DISTANCES
    assert cli.execute(["submit", str(job), *at, "--no-wait", "--graph", "roads"]) == 0
    number = capsys.readouterr().out.split()[1]
    assert cli.execute(["result", number, *at, "-o", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()
    assert cli.execute(["cancel", number, *at]) == 0
    assert cli.execute(["jobs", *at]) == 0
    printed = capsys.readouterr().out
    assert f"job {number} had ended before" in printed
    assert "SSSP" in printed
    failing = sigps.connect(folder / "s").submit(SSSP(source=-7), "roads")
    with pytest.raises(sigps.GraphError, match="no vertex -7"):
        failing.result()
    assert cli.execute(["jobs", *at]) == 0
    assert f"job {failing.number} failed: SSSP(source=): there is no vertex -7" in capsys.readouterr().out
    number = long_job(sigps.connect(folder / "s")).number
    threading.Timer(0.5, cli.execute, [["cancel", str(number), *at]]).start()
    assert cli.execute(["result", str(number), *at]) == 1
    assert f"error: job {number} was cancelled" in capsys.readouterr().err
    assert cli.execute(["submit", str(job), *at, "--set", "engine.threads=2"]) == 2
    assert "takes no option 'threads'" in capsys.readouterr().err


def test_results_that_are_too_many_are_forgotten(tmp_path: Path) -> None:
    path = make(tmp_path)
    path.write_text(path.read_text() + "results: 1\ndefault:\n")
    with Server(read_pool_file(path)) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        client = sigps.connect(tmp_path / "s")
        first = client.submit(BFS(source=10), "roads", tenant="ada")
        first.result(60)
        client.submit(BFS(source=10), "roads", tenant="ada").result(60)
        with pytest.raises(ConfigError, match="no longer kept"):
            first.result(60)
        with pytest.raises(CompileError, match=r"own\.py"):
            client.submit("own.py:Uncompiled", "roads", tenant="ada")
        with pytest.raises(ConfigError, match=r"no tenant 'adda'; did you mean 'ada'\?"):
            client.submit(BFS(source=10), "roads", tenant="adda")
        server.stop()
        thread.join(60)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("grafs: {}", "no known key; did you mean 'graphs'"),
        ("tenants: {ada: {weigt: 1}}", "did you mean 'weight'"),
        ("graphs: {a: {path: x, generator: {path: {n: 1}}}}", "both 'path' and 'generator'"),
        ("memory: much", "line 2: memory is 'much', but it must be bytes above 0"),
        ("tenants: {ada: {memory: 0}}", "tenants.ada.memory is 0, but it must be bytes above 0"),
        ("programs: [none_such:A]", "no module 'none_such'"),
    ],
)
def test_a_wrong_file(tmp_path: Path, line: str, problem: str) -> None:
    key = line.partition(":")[0]
    kept = [part for part in ["graphs: {}", line] if part == line or not part.startswith(f"{key}:")]
    (tmp_path / "pool.yaml").write_text("\n".join(kept))
    with pytest.raises(ConfigError, match=problem):
        read_pool_file(tmp_path / "pool.yaml")


def test_a_file_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"a server's file is a YAML mapping .* holds nothing"):
        read_pool_file(tmp_path / "pool.yaml")


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = read_pool_file(make(tmp_path))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"needs pyarrow.*pip install 'sigps\[io\]'"):
        keep_serving(file, lambda server, is_ending: None)


def start(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sigps", "serve", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "serving roads, rmat" in process.stdout.readline()
    return process


def test_it_ends_on_signals_and_takes_the_place_of_one_that_was_killed(tmp_path: Path) -> None:
    path = make(tmp_path, "python")
    killed = start(path)
    job = long_job(sigps.connect(tmp_path / "s"))
    assert cli.execute(["serve", str(path)]) == 2  # a second one
    killed.kill()
    killed.communicate()
    assert (tmp_path / "s").exists()
    with pytest.raises(ConfigError, match="no server of jobs"):
        job.result(10)
    second = start(path)
    with pytest.raises(ConfigError, match="started anew"):
        job.result(10)
    client = sigps.connect(tmp_path / "s")
    waits = long_job(client)
    problems: list[BaseException] = []

    def wait() -> None:
        try:
            waits.result(60)
        except (sigps.SigpsError, CancelledError) as error:
            problems.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while client.jobs()[0].state != "running":
        time.sleep(0.01)
    second.send_signal(signal.SIGTERM)
    assert "ending" in second.communicate(timeout=240)[0]
    thread.join(60)
    assert second.returncode == 0
    assert not (tmp_path / "s").exists()
    assert isinstance(problems[0], (ServerError, ConfigError, CancelledError))


def test_a_file_that_is_no_socket_stays(tmp_path: Path) -> None:
    path = make(tmp_path, "python")
    (tmp_path / "s").write_text("mine")
    with pytest.raises(ConfigError, match="is no socket"), Server(read_pool_file(path)):
        pass
    assert (tmp_path / "s").read_text() == "mine"
