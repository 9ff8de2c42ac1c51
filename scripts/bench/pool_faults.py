"""Kills tenants' processes, ranks, clients, workers and servers at random, and looks whether anybody else notices.

python scripts/bench/pool_faults.py [kills] [seed]

Beside each kill jobs of another tenant run, some of which are joined; their results are compared with those of runs
alone. Beside a rank one of them has two devices, too; beside a worker, too, and there they have names, and go on in the
next one. After a killed server the next one is started: how long until it answers is measured, with bytecode kept as
that of an installed package is, and the same jobs are submitted to it. At the end no process, no state, no socket and
no memory of MPI may be left.
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
devices: [cpu, cpu]
threads: 1
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 10, seed: 1}}}}
snapshots: states
tenants: {lab: {own_code: {memory: 1GB}}, wide: {own_code: {memory: 1GB, ranks: 2}}}
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

Path(f"pid-{os.getpid()}-{os.environ.get('PMI_RANK', 0)}").touch()
time.sleep(1000)
"""

WATCHED = [
    (PageRank(iterations=300, tolerance=0.0), "rank"),
    *[(WCC(), "component")] * 2,
    *[(BFS(source=source), "level") for source in (0, 3, 9, 3)],
]


WIDE = PageRank(iterations=200, tolerance=0.0), "rank"

ENDLESS = PageRank(iterations=10**7, tolerance=0.0)

MEMORY = Path("/dev/shm")


class Faults:
    """A server in a folder, and what was seen."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        (folder / "pool.yaml").write_text(POOL)
        (folder / "own.py").write_text(OWN)
        self.memory = set(MEMORY.glob("mpich_shm_*"))
        self.counts: Counter[str] = Counter()
        self.starts: list[tuple[float, float]] = []  # seconds, and those that it computed
        self.restarts: list[tuple[float, float]] = []
        graph = sigps.generate("rmat", scale=10, seed=1)
        self.expected = [
            sigps.run(program, graph, device="cpu", deterministic=True)[field].tobytes()
            for program, field in (*WATCHED, WIDE)
        ]
        self.server = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a server, and wait until it answers."""
        began = time.perf_counter()
        command = [sys.executable, "-m", "sigps", "serve", str(self.folder / "pool.yaml")]
        around = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        server = subprocess.Popen(
            command,
            cwd=self.folder,
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
        self.starts.append((time.perf_counter() - began, _computed(server.pid)))
        return server

    def client(self) -> Client:
        """Return a client of the server."""
        return sigps.connect(self.folder / "s")

    def watched(self, *, named: bool = False, wide: bool = False) -> list[RemoteJob]:
        """Submit the jobs that must not notice anything; the last one on both devices, where it is wanted."""
        client, about = self.client(), {"tenant": "other", "deterministic": True}
        names = [f"job-{number}" if named else None for number in range(len(WATCHED) + 1)]
        jobs = [client.submit(p, "rmat", name=n, **about) for n, (p, _) in zip(names, WATCHED, strict=False)]
        return [*jobs, client.submit(WIDE[0], "rmat", ranks=2, name=names[-1], **about)] if wide else jobs

    def check(self, jobs: list[RemoteJob]) -> None:
        """Compare their results."""
        for job, (_, field), expected in zip(jobs, (*WATCHED, WIDE), self.expected, strict=False):
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
        (pid,) = self.marks(1).values()
        others = self.watched()
        self.pause()
        os.kill(pid, signal.SIGKILL)
        try:
            job.result(60)
            self.counts["tenants not named"] += 1
        except sigps.ServerError as error:
            self.counts["tenants not named"] += "SIGKILL" not in str(error)
        self.check(others)

    def marks(self, count: int) -> dict[int, int]:
        """Return the numbers of own code's processes by rank, once so many have come to their code."""
        while len(found := list(self.folder.glob("pid-*"))) < count:
            time.sleep(0.005)
        for mark in found:
            mark.unlink()
        return {int(rank): int(pid) for _, pid, rank in (mark.name.split("-") for mark in found)}

    def kill_own_rank(self) -> None:
        """Kill one of two processes of own code that have both devices together."""
        job = self.client().submit(
            "own.py:Asleep", "rmat", params={"mark": ""}, folder=self.folder, tenant="wide"
        )
        pids = self.marks(2)
        self.kill_one_of(job, pids, self.watched())

    def kill_rank(self) -> None:
        """Kill a rank of a job of a program that the server has, at any moment from its start."""
        job = self.client().submit(ENDLESS, "rmat", ranks=2)
        while len(pids := self.ranks()) < 2:
            time.sleep(0.005)
        others = self.watched(wide=True)
        time.sleep(self.random.random() * 5)
        self.kill_one_of(job, pids, others)

    def kill_one_of(self, job: RemoteJob, pids: dict[int, int], others: list[RemoteJob]) -> None:
        """Kill one rank of a job, and look what its error says."""
        victim = self.random.randrange(2)
        os.kill(pids[victim], signal.SIGKILL)
        try:
            job.result(60)
            self.counts["ranks not named"] += 1
        except sigps.SigpsError as error:
            self.counts["ranks not named"] += "rank" not in str(error)
            self.counts["ranks named by number"] += f"rank {victim}" in str(error)
            if f"rank {1 - victim}" in str(error):
                self.counts["another rank named"] += 1
                print(error, file=sys.stderr)
        self.check(others)

    def ranks(self) -> dict[int, int]:
        """Return the numbers of processes that are ranks of a job, by rank."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, StopIteration):
                words = (path / "cmdline").read_bytes().split(b"\0")
                if b"sigps.serve.own_process" in words and _is_in(path / "cwd", self.folder):
                    around = (path / "environ").read_bytes().split(b"\0")
                    rank = next(word for word in around if word.startswith(b"PMI_RANK="))
                    found[int(rank.partition(b"=")[2])] = int(path.name)
        return found

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
        lost = self.client().submit(ENDLESS, "rmat", tenant="lost")
        others = self.watched(named=True, wide=True)
        self.pause()
        pid = self.server.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        began = time.perf_counter()
        os.kill(int(children.split()[0]), signal.SIGKILL)
        self.client().jobs()
        took = time.perf_counter() - began
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        self.restarts.append((took, _computed(int(children.split()[0]))))
        self.check(others)
        try:
            lost.result(10)
            self.counts["lost jobs not named"] += 1
        except sigps.SigpsError as error:
            self.counts["lost jobs not named"] += "SIGKILL" not in str(error)

    def kill_server(self) -> None:
        """Kill the server while jobs run, one with a name, one on two devices and one of own code among them."""
        client = self.client()
        client.submit(ENDLESS, "rmat", name="long")
        client.submit(ENDLESS, "rmat", ranks=2)
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
        named = self.client().submit(ENDLESS, "rmat", name="long")
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
        files |= {path.name for path in set(MEMORY.glob("mpich_shm_*")) - self.memory if not _is_mapped(path)}
        processes = [
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/cwd")
            if path.is_symlink() and _is_in(path, self.folder)
        ]
        return [*files, *processes]


def _computed(pid: int) -> float:
    """Return the seconds that a process and the children that it has waited for have computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _is_in(link: Path, folder: Path) -> bool:
    try:
        return os.readlink(link) == str(folder)
    except OSError:
        return False


def _is_mapped(file: Path) -> bool:
    """Tell whether a process has a file in its memory: one of another run."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if str(file) in maps.read_text():
                return True
    return False


def main(kills: int, seed: int) -> None:
    """Kill so often, and print what was seen."""
    with tempfile.TemporaryDirectory() as name:
        faults = Faults(Path(name).resolve(), seed)
        weights = {
            faults.kill_tenant: 2,
            faults.kill_own_rank: 2,
            faults.kill_rank: 2,
            faults.kill_client: 2,
            faults.kill_worker: 2,
            faults.kill_server: 1,
        }
        for _ in range(kills):
            kind = faults.random.choices(list(weights), list(weights.values()))[0]
            kind()
            faults.counts[kind.__name__] += 1
            print(f"{faults.counts.total()} {kind.__name__}", file=sys.stderr)
        left = faults.left()
    print(f"{kills} kills, seed {seed}: {dict(sorted(faults.counts.items()))}")
    for what, seconds in (("starts", sorted(faults.starts)), ("new workers", sorted(faults.restarts))):
        if seconds:
            middle, longest = seconds[len(seconds) // 2][0], seconds[-1][0]
            computed = sorted(spent for _, spent in seconds)
            print(
                f"{len(seconds)} {what}: median {middle:.2f} s, longest {longest:.2f} s; of the processor "
                f"{computed[len(computed) // 2]:.2f} and {computed[-1]:.2f} s"
            )
    print(f"left behind: {left or 'nothing'}")


if __name__ == "__main__":
    main(*(int(text) for text in (sys.argv[1:] + ["200", "1"][len(sys.argv) - 1 :])))
