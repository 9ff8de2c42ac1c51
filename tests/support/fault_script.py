"""A script of ranks that watch each other, some of which fail: `mpirun -n 3 fault_script.py WAY RANK...`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from sigps.group import world

FAULTY_SUPERSTEP = 5


SUPERSTEPS = 10


def fail(way: str) -> None:
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif way == "hold the lock":
        ctypes.PyDLL(None).usleep(4_000_000)  # longer than it may be silent, as in a call of a library
    elif way == "lose the launcher":
        os.kill(os.getppid(), signal.SIGKILL)
    elif way == "lose the watchdog":
        os.kill(watchdog(), signal.SIGKILL)
    elif way == "leave":
        sys.exit(0)
    elif way == "hang":
        time.sleep(3600)
    elif way == "raise":
        raise ValueError("five is unwanted")
    elif way == "all wait":
        (Path.cwd() / "reached").touch()
        time.sleep(1.0)
    else:
        assert way == "nothing", way


def watchdog() -> int:
    """Return the process id of this rank's watchdog, the only process that it has started."""
    (pid,) = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return int(pid)


def run(way: str, victims: list[int]) -> None:
    """Run supersteps without vertices: 20 ms of work, and a barrier."""
    group = world()
    status, superstep = group.status, 0
    (Path.cwd() / f"rank-{group.rank}-{os.getpid()}").touch()
    with status.limits(2.0, 5.0), status.in_supersteps(lambda: superstep):
        for superstep in range(SUPERSTEPS):
            status.begin(is_waiting=False)
            time.sleep(0.02)
            if superstep == FAULTY_SUPERSTEP and group.rank in victims:
                fail(way)
            group.barrier()
            status.record_log(f"log/{superstep}")


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
