"""A rank of `sigps run` in which a fault is planted: `mpirun -n 3 planted_rank.py PLANT.json run job.yaml ...`.

Or of a script: `mpirun -n 3 planted_rank.py PLANT.json script.py ...`.

An *event* is a moment of a phase: its beginning, and where a rank begins or ends to wait in a collective; or a call
that makes a file whole (`os.fsync`, `os.replace`). Where nothing is planted each rank writes how many events it had to
`events-RANK.json`.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sigps.cli.main import execute
from sigps.group import launched_rank, world
from sigps.group.status import Status

RANK = launched_rank(os.environ)
PLANT: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text()) if __name__ == "__main__" else {}
COUNTS: collections.Counter[str] = collections.Counter()


def fail() -> None:
    """Do what was planted."""
    way = PLANT["way"]
    Path("planted").write_text(phase_now)
    if way == "raise":
        raise RuntimeError("a planted fault")
    if way == "exit":
        os._exit(3)
    if way == "launcher":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(3600)
    os.kill(os.getpid(), getattr(signal, way))
    time.sleep(3600)  # until the signal arrives


def event(name: str) -> None:
    """Count an event; where it is the one, fail, in this thread or a little later in another."""
    COUNTS[name] += 1
    if PLANT and (PLANT["rank"], PLANT["event"], PLANT["at"]) == (RANK, name, COUNTS[name]):
        if PLANT["seconds"]:
            threading.Timer(PLANT["seconds"], fail).start()
        else:
            fail()


phase_now = ""
begin, during = Status.begin, Status.during
calls: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in ("fsync", "replace")}


def begin_planted(self: Status, *, is_waiting: bool) -> None:
    global phase_now
    begin(self, is_waiting=is_waiting)
    phase_now = "superstep" if self.superstep >= 0 else self.phase
    event(phase_now or "outside")


@contextlib.contextmanager
def during_planted(self: Status, phase: str) -> Iterator[None]:
    global phase_now
    with during(self, phase):
        phase_now = phase
        event(phase)
        yield
    phase_now = self.phase


def called_planted(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        event(name)
        return calls[name](*args, **options)

    return call


if __name__ == "__main__":
    world()  # from here on ranks watch each other
    Status.begin, Status.during = begin_planted, during_planted  # type: ignore[method-assign]
    for name in calls:
        setattr(os, name, called_planted(name))
    Path(f"rank-{os.getpid()}").touch()
    code = 0
    if sys.argv[2].endswith(".py"):
        sys.argv = sys.argv[2:]
        sys.path.insert(0, str(Path(sys.argv[0]).parent.resolve()))
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        code = execute(sys.argv[2:])
    if not PLANT:
        Path(f"events-{RANK}.json").write_text(json.dumps(COUNTS))
    sys.exit(code)
