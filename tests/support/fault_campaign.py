"""Faults planted in jobs of three ranks: each ends, is named, leaves nothing, and the job goes on to the right result.

    python tests/support/fault_campaign.py --faults 200 --seed 1 --jobs 2
    python tests/support/fault_campaign.py --faults 60 --gather     # a script in which rank 0 gathers the whole result

Each fault is one event of one rank (`planted_rank`), drawn so that all phases and ways come in turn. An older result
lies where the job writes. Where the job ended, a run with `--resume` follows, on as many ranks or on fewer. Faults are
counted that

    not planted the event did not come: ranks differ a little from run to run
    hang        the job did not end within LIMIT_SECONDS
    nameless    no line says which rank, on which host, in which phase; of an exception, which rank raised what; of a
                launcher that was killed, and has the ranks' stderr, that it was
    left        a process, shared memory, a temporary file or an unfinished log remains
    wrong       what is read from the output, before or after the resumed run, is not a whole result
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from processes import is_running

from sigps import read_result
from sigps.errors import OutputError

LIMIT_SECONDS = 120.0
RANKS = 3
FILE_EVENTS = ("fsync", "replace")
WAYS = ("SIGKILL", "SIGSTOP", "exit", "raise", "SIGSEGV", "launcher")

JOB = """
program: program.py:Echo
params: {shift: 1}
graph: {path: edges.txt, directed: false}
engine: {device: python}
checkpoint: {every: 3, dir: log}
faults: {silent_seconds: 4}
output: {path: out.csv, top: 0}
"""

PROGRAM = """
from sigps import Aggregator, Param, State, Vertex


class Echo(Vertex, message=int):
    '''Sums its messages, modulo a prime.'''

    shift: Param[int] = 1
    seen: State[int] = 0
    total = Aggregator.sum(int)

    def compute(self, messages):
        self.seen = (self.seen + sum(messages) + self.shift) % 10007
        self.total += self.seen
        if self.superstep < 8:
            self.send_to_neighbors(self.seen + self.total % 97)
        self.vote_to_halt()
"""

SCRIPT = """
import argparse

from program import Echo

from sigps import Checkpoint, Faults, load, run

parser = argparse.ArgumentParser()
parser.add_argument("--set", default="params.shift=1")
parser.add_argument("--resume", action="store_true")
given = parser.parse_args()
result = run(
    Echo(shift=int(given.set.split("=")[1])),
    load("edges.txt", directed=False),
    device="python",
    gather=True,
    checkpoint=Checkpoint("log", every=3),
    resume=given.resume,
    faults=Faults(silent_seconds=4),
)
result.write("out.csv")
"""


@dataclass(frozen=True)
class Plant:
    """A fault: the `at`-th event of this name in this rank, and `seconds` later."""

    way: str
    rank: int
    event: str
    at: int
    seconds: float = 0.0


class Campaign:
    """Runs jobs in folders of their own, and judges what faults do to them.

    Args:
        folder: An empty folder.
        mpirun: The launcher.
        gathers: Whether the job is a script in which rank 0 gathers and writes the whole result, and not `sigps run`,
            where each rank writes its part.

    """

    def __init__(self, folder: Path, mpirun: str, *, gathers: bool = False) -> None:
        self._folder, self._mpirun = folder, mpirun
        self._command = ["script.py"] if gathers else ["run", "job.yaml"]
        self._rows = {}
        for shift in (1, 2):
            clean = self._job(f"clean-{shift}")
            code, err = self._run(clean, {}, "--set", f"params.shift={shift}")
            assert code == 0, err
            self._rows[shift] = rows(clean)

    @functools.cached_property
    def events(self) -> list[dict[str, int]]:
        """What happens in each rank of a job without a fault: name to count."""
        return self._events_of_clean()

    @functools.cached_property
    def resumed_events(self) -> list[dict[str, int]]:
        """And in one that is resumed."""
        assert self.events
        code, err = self._run(self._folder / "clean-1", {}, "--resume")
        assert code == 0, err
        return self._events_of_clean()

    def _events_of_clean(self) -> list[dict[str, int]]:
        clean = self._folder / "clean-1"
        return [json.loads((clean / f"events-{rank}.json").read_text()) for rank in range(RANKS)]

    @functools.cached_property
    def _halfway(self) -> Path:
        """The folder of a job that was killed when it had written a log."""
        folder = self._job("halfway")
        self._run(folder, asdict(Plant("SIGKILL", 0, "superstep", 60)))
        assert list((folder / "log").glob("*/manifest.msgpack"))
        return folder

    def draw(self, count: int, seed: int) -> Iterator[Plant]:
        """Draw faults: names of events and ways in turn, ranks and moments at random."""
        draw = random.Random(seed)
        names = sorted(set(self.events[0]) | {f"resumed {name}" for name in self.resumed_events[0]})
        for i in range(count):
            name = names[i % len(names)]
            events = self.resumed_events if name.startswith("resumed ") else self.events
            plain = name.removeprefix("resumed ")
            rank = draw.choice([r for r in range(RANKS) if plain in events[r]])
            way = WAYS[(i + i // len(names)) % len(WAYS)]
            seconds = 0.0 if way == "raise" else draw.choice([0.0, 0.0, 0.003])
            yield Plant(way, rank, name, draw.randint(1, events[rank][plain]), seconds)

    def judge(self, number: int, plant: Plant) -> list[str]:
        """Run a job with a fault and one that goes on from it; return what is wrong, nothing where all is well."""
        folder = self._job(f"fault-{number}")
        older = self._folder / "clean-2" / "out.csv"
        (shutil.copytree if older.is_dir() else shutil.copy)(older, folder / "out.csv")
        options = ["--resume"] if plant.event.startswith("resumed ") else []
        if options:
            shutil.copytree(self._halfway / "log", folder / "log")
        found = []
        given = asdict(plant) | {"event": plant.event.removeprefix("resumed ")}
        code, err = self._run(folder, given, *options)
        if not (folder / "planted").exists():
            return ["hang"] if code is None else [f"not planted: ended with {code}: {err}"]
        phase = (folder / "planted").read_text()
        if code is None:
            found.append("hang")
        elif code == 0 and not (
            plant.seconds or plant.event.removeprefix("resumed ") in FILE_EVENTS
        ):  # a log that fails costs a warning
            found.append("wrong: it ended well")
        if code != 0 and not is_named(plant, phase, err):
            found.append(f"nameless: {err[-2000:]}")
        found += [f"left: process {pid}" for pid in remaining(folder)]
        try:
            if rows(folder) not in self._rows.values():
                found.append("wrong: the output is neither the old nor the new result")
        except OutputError as error:
            found.append(f"wrong: no whole output lies there any more: {error}")
        return found + self._goes_on(folder, plant)

    def _goes_on(self, folder: Path, plant: Plant) -> list[str]:
        ranks = RANKS if plant.at % 2 else RANKS - 1
        code, err = self._run(folder, {}, "--resume", ranks=ranks)
        if code != 0:
            return [f"wrong: the resumed run ended with {code}: {err[-2000:]}"]
        found = [] if rows(folder) == self._rows[1] else ["wrong: the resumed result differs"]
        stray = [path for path in folder.rglob("*.tmp")]
        stray += [path for path in (folder / "log").glob("2*") if not (path / "manifest.msgpack").exists()]
        return found + [f"left: {path.relative_to(folder)}" for path in stray]

    def _job(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        draw = random.Random(7)
        lines = [f"{draw.randrange(60)} {draw.randrange(60)}\n" for _ in range(150)]
        (folder / "edges.txt").write_text("".join(lines))
        (folder / "program.py").write_text(PROGRAM)
        (folder / "job.yaml").write_text(JOB)
        (folder / "script.py").write_text(SCRIPT)
        return folder

    def _run(
        self, folder: Path, plant: dict[str, object], *options: str, ranks: int = RANKS
    ) -> tuple[int | None, str]:
        """Run the job; return its exit code, None where it had to be killed, and what it wrote to stderr."""
        for path in folder.glob("rank-*"):
            path.unlink()
        (folder / "plant.json").write_text(json.dumps(plant))
        script = str(Path(__file__).with_name("planted_rank.py"))
        process = subprocess.Popen(
            [
                self._mpirun,
                "-n",
                str(ranks),
                sys.executable,
                script,
                "plant.json",
                *self._command,
                *options,
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            err = process.communicate(timeout=LIMIT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            for pid in pids(folder):
                if is_running(pid):
                    os.kill(pid, signal.SIGKILL)
            process.kill()
            return None, process.communicate()[1]
        return process.returncode, err


def is_named(plant: Plant, phase: str, err: str) -> bool:
    """Return whether a line says which rank was at fault, on which host, and in which phase where that is known."""
    if plant.way == "raise":
        return (f"rank {plant.rank}" in err and "a planted fault" in err) or err.count("a planted fault") == 1
    if plant.way == "launcher":
        return "mpiexec" in err
    where = "in superstep" if phase == "superstep" else f"while {phase}" if phase else "outside of a run"
    if plant.seconds or plant.event.removeprefix("resumed ") in FILE_EVENTS:  # the phase may be over by then
        where = ""
    return (
        re.search(rf"rank {plant.rank} on host \S+ (died|is stopped|lost its launcher|hangs).*{where}", err)
        is not None
    )


def rows(folder: Path) -> list[str]:
    return sorted(map(str, read_result(folder / "out.csv").to_pylist()))


def pids(folder: Path) -> list[int]:
    return [int(path.name.split("-")[1]) for path in folder.glob("rank-*")]


def remaining(folder: Path) -> list[int]:
    """Return the ranks, and other processes in the folder, that are still there some seconds after the end."""
    deadline = time.monotonic() + 60.0
    while found := [pid for pid in {*pids(folder), *processes_in(folder)} if is_running(pid)]:
        if time.monotonic() > deadline:
            return found
        time.sleep(0.05)
    return []


def processes_in(folder: Path) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd") == str(folder):
                yield int(path.name)
        except OSError:
            continue


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gather", action="store_true")
    options = parser.parse_args()
    mpirun = str(Path(sys.executable).with_name("mpirun"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        campaign = Campaign(Path(folder), mpirun, gathers=options.gather)
        plants = list(campaign.draw(options.faults, options.seed))
        counts: collections.Counter[str] = collections.Counter()
        assert campaign._halfway  # before several threads ask for it
        for plant, found in zip(plants, pool.map(campaign.judge, range(len(plants)), plants), strict=True):
            counts.update(["faults", *{text.split(":")[0] for text in found}])
            print(plant, found or "well", flush=True)
        print(", ".join(f"{count} {name}" for name, count in counts.items()))
        return 0 if set(counts) <= {"faults", "not planted"} else 1


if __name__ == "__main__":
    sys.exit(main())
