"""The process in which a tenant's own code runs: `python -m sigps.serve.own_process DESCRIPTOR PARENT`, or `@NAME`.

The first has a socket to the server from its start. The second is one of several ranks that a launcher started, and
connects to the server's socket of that name, which is in no folder. It takes its task over the socket, asks there
before each lease, and passes the result's tables back. What it sends is judged by the server; its limits hold for what
it does by accident, as an endless loop or an array too large: it is the server's user, and no cage.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sigps.engine.stats import SuperstepStats
from sigps.group import launched_rank, launched_ranks, world
from sigps.job.importing import import_program
from sigps.job.run import run
from sigps.serve.shared_graph import opened_graph
from sigps.serve.states import SAVE_SECONDS
from sigps.serve.wire import (
    FrameError,
    read_frame,
    read_tables,
    reply_of,
    send_frame,
    send_tables,
    tables_of,
)
from sigps.system.checkpoint.state_log import Checkpoint
from sigps.system.turns import awaited_word, taking_turns

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


class AskedTurns:
    """The turns of a run in this process: each is asked for over a socket (`system.turns.Turns`)."""

    def __init__(self, connection: socket.socket, lease_seconds: float) -> None:
        self.lease_seconds, self.awaited = lease_seconds, awaited_word(0)  # nobody is known to wait
        self.supersteps = 0
        self._connection = connection

    def first_lease(self) -> int:
        """Return 1: nothing is known here of runs before."""
        return 1

    def wait(self, save: Callable[[], bool] | None) -> None:
        saved = False
        while True:
            send_frame(self._connection, {"do": "turn", "supersteps": self.supersteps, "saved": saved})
            reply = read_frame(self._connection)
            if reply is None:
                os._exit(1)  # the server is gone
            if reply["do"] == "go":
                return
            saved = save is not None and save()  # where all ranks have, the server ends them

    def end(self) -> None:
        send_frame(self._connection, {"do": "end"})

    def record(self, stats: Sequence[SuperstepStats]) -> None:
        """Take the statistics of the supersteps so far."""
        self.supersteps = len(stats)


def main() -> None:
    """Run one job, and end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.argv[1].startswith("@"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(f"\0{sys.argv[1][1:]}")
        threading.Thread(target=_end_with_server, args=(connection.fileno(),), daemon=True).start()
        send_frame(connection, {"rank": launched_rank(os.environ)})
    else:
        connection = socket.socket(fileno=int(sys.argv[1]))
        if os.getppid() != int(sys.argv[2]):
            os._exit(1)  # the server ended before it could be tied to it
    task = read_frame(connection)
    if task is None:
        os._exit(1)
    descriptor, *given = read_tables(connection, 2 if task["num_given"] else 1)
    try:
        _add_given(task, given)
        limit(task["memory"], task["cpu_seconds"])
        descriptors, supersteps = _ran(task, descriptor, connection)
        send_frame(connection, {"do": "done", "tables": len(descriptors), "supersteps": supersteps})
        if descriptors:
            send_tables(connection, descriptors)
    except MemoryError as error:
        most = task["memory"]
        limit_text = f"; its process may take {most:,} bytes (own_code: memory)" if most else ""
        _fail(connection, MemoryError(f"{error or 'out of memory'}{limit_text}"))
    except BaseException as error:  # the client gets it
        _fail(connection, error)
    sys.stdout.flush()
    if launched_ranks(os.environ) > 1:
        read_frame(connection)  # a rank that ends ends the others: the server ends all
    os._exit(0)  # threads that the code left do not keep it


def _end_with_server(descriptor: int) -> None:
    """End this rank when the server is gone: its launcher, whose child it is, knows of none."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLRDHUP)
    waiting.poll()
    os._exit(1)


def limit(num_bytes: int | None, cpu_seconds: int | None) -> None:
    """Limit this process: private memory, seconds of all its cores; and let the system end it before others."""
    if num_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (num_bytes, num_bytes))
    if cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Path("/proc/self/oom_score_adj").write_text("1000")


def _add_given(task: dict[str, Any], given: Sequence[int]) -> None:
    """Add to the task what the server gave besides, of a program that it has itself."""
    sys.path += [folder for folder in task.get("path", ()) if folder not in sys.path]
    for descriptor in given:
        with os.fdopen(descriptor, "rb") as file:
            task |= pickle.loads(os.pread(file.fileno(), task["num_given"], 0))


def _ran(task: Mapping[str, Any], descriptor: int, connection: socket.socket) -> tuple[list[int], int]:
    folder = Path(task["folder"])
    os.chdir(folder)
    program = import_program(task["program"], folder)(**task["params"])
    graph = opened_graph(descriptor, task["graph"], world())
    turns, saving = AskedTurns(connection, task["lease_seconds"]), dict[str, Any]()
    if task["states"] is not None:
        saving = {"checkpoint": Checkpoint(task["states"], seconds=SAVE_SECONDS), "resume": True}
    with taking_turns(turns):
        result = run(
            program,
            graph,
            device=task["device"],
            threads=task["threads"],
            progress=turns.record,
            **saving,
            **task["options"],
        )
    return tables_of(result) if graph.group.rank == 0 else [], result.supersteps


def _fail(connection: socket.socket, error: BaseException) -> None:
    try:
        send_frame(connection, {"do": "failed", **reply_of(error)})
    except (OSError, FrameError):
        os._exit(1)


if __name__ == "__main__":
    main()
