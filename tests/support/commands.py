"""`sigps run` in processes of its own: a program that dies, its job, starting it and waiting for its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SECONDS = 120


PROGRAM = """
import os
import signal
from pathlib import Path

from sigps import Param, State, Vertex


class Echo(Vertex, message=int):
    '''Sums its messages; the process that has vertex 40 is killed in some superstep, a few times.'''

    at: Param[int] = 7
    times: Param[int] = 0
    seen: State[int] = 0

    def compute(self, messages):
        for message in messages:
            self.seen += message
        if self.id == 40:
            self.die()
        if self.superstep < 12:
            self.send_to_neighbors(self.seen % 97 + 1)
        self.vote_to_halt()

    def die(self):
        died = len(list(Path().glob("died-*")))
        if self.superstep == self.at and died < self.times:
            Path(f"died-{died}").touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Forever(Vertex):
    seen: State[int] = 0

    def compute(self, messages):
        self.seen += 1
        if self.superstep == 3:
            Path(f"ready-{os.getpid()}").touch()
"""


JOB = """
program: program.py:Echo
graph: {generator: {grid: {rows: 7, columns: 7}}}
engine: {device: python}
checkpoint: {every: 3, dir: log}
output: {top: 0}
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "random.py").write_text("raise ImportError('not the random of Python')")
    return tmp_path


def start(folder: Path, *arguments: object, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [*under, sys.executable, "-P", "-m", "sigps", "run", "job.yaml", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def end_of(process: subprocess.Popen[str]) -> Outcome:
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # it passes this on
        out, err = process.communicate()
        pytest.fail(f"still running after {SECONDS} s\n{out}\n{err}")
    return Outcome(process.returncode, out, err)
