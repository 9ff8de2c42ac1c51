"""Kills tenants' processes, clients, workers and servers at random moments, and looks whether anybody else notices.

python scripts/bench/pool_faults.py [kills] [seed]

Beside each kill jobs of another tenant run, some of which are joined; their results are compared with those of runs
alone. Beside a worker they have names, and go on in the next one. After a killed server
the next one is started: how long until it answers is measured, with bytecode kept as that of an installed package is,
and the same jobs are submitted to it. At the end no process, no state and no socket may be left.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.serve.client import Client, RemoteJob

POOL = """
socket: s
devices: cpu
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 10, seed: 1}}}}
snapshots: states
tenants: {lab: {own_code: {memory: 1GB}}}
"""

OWN = """
import os, time
from pathlib import Path
from sigps import Param, State, Vertex

class Asleep(Vertex, message=int):
    mark: Param[str]
    level: State[int] = 0
    def compute(self, messages):
        self.vote_to_halt()

Path(f"pid-{os.getpid()}").touch()
time.sleep(1000)
"""

WATCHED = [
    (PageRank(iterations=300, tolerance=0.0), "rank"),
    *[(WCC(), "component")] * 2,
    *[(BFS(source=source), "level") for source in (0, 3, 9, 3)],
]


class Faults:
    """A server in a folder, and what was seen."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        (folder / "pool.yaml").write_text(POOL)
        (folder / "own.py").write_text(OWN)
        self.counts: Counter[str] = Counter()
        self.starts: list[float] = []
        self.restarts: list[float] = []
        graph = sigps.generate("rmat", scale=10, seed=1)
        self.expected = [
            sigps.run(program, graph, device="cpu", deterministic=True)[field].tobytes()
            for program, field in WATCHED
        ]
        self.server = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a server, and wait until it answers."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "sigps", "serve", str(self.folder / "pool.yaml")]
        around = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        server = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            env=around | {"PYTHONPYCACHEPREFIX": str(self.folder / "bytecode")},
        )
        while True:
            try:
                self.client()
                break
            except sigps.SigpsError:
                assert server.poll() is None, "the server ended"
                time.sleep(0.01)
        self.starts.append(time.perf_counter() - began)
        return server

    def client(self) -> Client:
        """Return a client of the server."""
        return sigps.connect(self.folder / "s")

    def watched(self, *, named: bool = False) -> list[RemoteJob]:
        """Submit the jobs that must not notice anything."""
        client, about = self.client(), {"tenant": "other", "deterministic": True}
        names = [f"job-{number}" if named else None for number in range(len(WATCHED))]
        return [client.submit(p, "rmat", name=n, **about) for n, (p, _) in zip(names, WATCHED, strict=True)]

    def check(self, jobs: list[RemoteJob]) -> None:
        """Compare their results."""
        for job, (_, field), expected in zip(jobs, WATCHED, self.expected, strict=True):
            self.counts["other jobs"] += 1
            if job.result(120)[field].tobytes() != expected:
                self.counts["other jobs wrong"] += 1
        numbers = {job.number for job in jobs}
        self.counts["other jobs joined"] += sum(
            row.joined > 0 for row in self.client().jobs() if row.number in numbers
        )

    def pause(self) -> None:
        """Let a random moment pass."""
        time.sleep(self.random.random() * 0.1)

    def kill_tenant(self) -> None:
        """Kill a process of own code."""
        job = self.client().submit(
            "own.py:Asleep", "rmat", params={"mark": ""}, folder=self.folder, tenant="lab"
        )
        while not (marks := list(self.folder.glob("pid-*"))):
            time.sleep(0.005)
        others = self.watched()
        self.pause()
        os.kill(int(marks[0].name.removeprefix("pid-")), signal.SIGKILL)
        marks[0].unlink()
        try:
            job.result(60)
            self.counts["tenants not named"] += 1
        except sigps.ServerError as error:
            self.counts["tenants not named"] += "SIGKILL" not in str(error)
        self.check(others)

    def kill_client(self) -> None:
        """Kill a process that waits for a job, or submits one, or fetches its result."""
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    self.client().submit(WCC(), "rmat", tenant="gone").result(60)
            finally:
                os._exit(0)
        others = self.watched()
        self.pause()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.check(others)

    def kill_worker(self) -> None:
        """Kill the server's worker while jobs with names run, and one without."""
        lost = self.client().submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", tenant="lost")
        others = self.watched(named=True)
        self.pause()
        pid = self.server.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        began = time.perf_counter()
        os.kill(int(children.split()[0]), signal.SIGKILL)
        self.client().jobs()
        self.restarts.append(time.perf_counter() - began)
        self.check(others)
        try:
            lost.result(10)
            self.counts["lost jobs not named"] += 1
        except sigps.SigpsError as error:
            self.counts["lost jobs not named"] += "SIGKILL" not in str(error)

    def kill_server(self) -> None:
        """Kill the server while jobs run, one with a name and one of own code among them."""
        client = self.client()
        client.submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", name="long")
        client.submit("own.py:Asleep", "rmat", params={"mark": ""}, folder=self.folder, tenant="lab")
        others = self.watched()
        self.pause()
        self.server.kill()
        self.server.wait()
        self.server = self.start()
        try:
            others[0].result(10)
            self.counts["lost jobs not named"] += 1
        except sigps.SigpsError:
            pass
        self.check(self.watched())
        named = self.client().submit(PageRank(iterations=10**7, tolerance=0.0), "rmat", name="long")
        assert named.cancel()
        with contextlib.suppress(CancelledError):
            named.result(60)
        for mark in self.folder.glob("pid-*"):
            mark.unlink()

    def left(self) -> list[str]:
        """End the server, and return what is left: processes, files."""
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(60)
        time.sleep(0.5)
        files = {path.name for path in self.folder.iterdir()} - {
            "pool.yaml",
            "own.py",
            "states",
            "__pycache__",
            "bytecode",
        }
        files |= {path.name for path in (self.folder / "states").glob("*")}
        processes = [
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/cwd")
            if path.is_symlink() and _is_in(path, self.folder)
        ]
        return [*files, *processes]


def _is_in(link: Path, folder: Path) -> bool:
    try:
        return os.readlink(link) == str(folder)
    except OSError:
        return False


def main(kills: int, seed: int) -> None:
    """Kill so often, and print what was seen."""
    with tempfile.TemporaryDirectory() as name:
        faults = Faults(Path(name).resolve(), seed)
        kinds = [faults.kill_tenant, faults.kill_client, faults.kill_worker, faults.kill_server]
        for _ in range(kills):
            kind = faults.random.choices(kinds, [2, 2, 2, 1])[0]
            kind()
            faults.counts[kind.__name__] += 1
        left = faults.left()
    print(f"{kills} kills, seed {seed}: {dict(sorted(faults.counts.items()))}")
    for what, seconds in (("starts", sorted(faults.starts)), ("new workers", sorted(faults.restarts))):
        if seconds:
            middle, longest = seconds[len(seconds) // 2], seconds[-1]
            print(f"{len(seconds)} {what}: median {middle:.2f} s, longest {longest:.2f} s")
    print(f"left behind: {left or 'nothing'}")


if __name__ == "__main__":
    main(*(int(text) for text in (sys.argv[1:] + ["200", "1"][len(sys.argv) - 1 :])))
