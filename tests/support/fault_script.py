"""A script of ranks that watch each other, some of which fail: `mpirun -n 3 fault_script.py WAY RANK...`."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from sigps.group import world
from sigps.system.faults.detector import FaultDetector

FAULTY_SUPERSTEP = 5


SUPERSTEPS = 10


def fail(way: str) -> None:
    if way in ("kill", "kill without report"):
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif way == "hang":
        time.sleep(3600)
    elif way == "raise":
        raise ValueError("five is unwanted")
    elif way == "all wait":
        (Path.cwd() / "reached").touch()
        time.sleep(1.0)
    else:
        assert way == "nothing", way


def run(way: str, victims: list[int]) -> None:
    """Run supersteps without vertices: 20 ms of work, and a barrier."""
    group = world()
    (Path.cwd() / f"rank-{group.rank}-{os.getpid()}").touch()
    if way == "kill without report":  # as where no monitor thread gets a core in time
        FaultDetector._receive = lambda *_: time.sleep(3600)  # type: ignore[assignment]
    with FaultDetector(group, interval=0.2, silent_seconds=2.0, superstep_seconds=5.0) as detector:
        for superstep in range(SUPERSTEPS):
            detector.computing(superstep)
            time.sleep(0.02)
            if superstep == FAULTY_SUPERSTEP and group.rank in victims:
                fail(way)
            detector.waiting()
            group.barrier()
            detector.last_log = functools.partial("log/{}".format, superstep)


def main(way: str, victims: list[int]) -> None:
    if way == "raise and catch":
        # A script may catch what its rank raised: the others wait in the run all the same.
        with contextlib.suppress(ValueError):
            run("raise", victims)
        time.sleep(3600)
    run(way, victims)
    print("after the run", flush=True)


def start(mpirun: str, folder: Path, way: str, *victims: int) -> subprocess.Popen[str]:
    """Start this script on three ranks."""
    return subprocess.Popen(
        [mpirun, "-n", "3", sys.executable, __file__, way, *map(str, victims)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def pids(folder: Path) -> list[int]:
    """Return the process ids of the ranks that started."""
    return [int(file.name.split("-")[2]) for file in folder.glob("rank-*")]


def faults_in(err: str) -> list[str]:
    """Return what the detectors and the watchdog wrote."""
    return re.findall(r"rank \d+ on host .*", err)


if __name__ == "__main__":
    main(sys.argv[1], [int(rank) for rank in sys.argv[2:]])
