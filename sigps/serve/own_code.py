"""A job that runs in a process of its own, or several, which the server can end at any time: of a tenant's own code.

A process shares nothing with the server but the graph, which it can read only. It takes turns as other jobs do, and
asks for them over a socket; a lease that takes too long ends it. A server passes its result on, and never reads it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Protocol

from sigps.errors import ConfigError, ServerError
from sigps.graph.graph import Graph
from sigps.job.result import Result
from sigps.model.vertex import Vertex
from sigps.serve.devices import SharedDevice
from sigps.serve.job import Estimate, Job
from sigps.serve.own_ranks import OwnProcesses, check_launcher, check_ranks
from sigps.serve.shared_graph import SharedGraph
from sigps.serve.wire import FrameError, error_of, read_frame, read_tables, result_of, send_frame, send_tables

__all__ = ["KeptTables", "OwnCode", "OwnJob", "check_own_code"]

_END_SECONDS = 1.0
"""From a rank's death until the system says that it has ended: it gives its memory back first."""


@dataclass(frozen=True)
class OwnCode:
    """A program that a process of its own imports, and the limits of that process.

    Attributes:
        program: `path/to/file.py:Class` or `package.module:Class`.
        params: Its parameters, plain values.
        folder: Where the process works, and a relative path starts.
        num_bytes: Of its private memory; None for no limit.
        lease_seconds: The most that a lease may take; None for no limit.
        cpu_seconds: The most that all its threads may compute; None for no limit.
        gpu_bytes: Of the GPU on which it runs, its own copy of the graph there among them; 0: it runs on CPU cores.
        num_ranks: On how many devices it runs, a process on each.
    """

    program: str
    params: Mapping[str, Any]
    folder: str
    num_bytes: int | None
    lease_seconds: float | None
    cpu_seconds: int | None
    gpu_bytes: int = 0
    num_ranks: int = 1

    def runs_on(self, engine: str) -> bool:
        """Tell whether it runs on such a device."""
        return (engine == "cuda") == (self.gpu_bytes > 0)

    def task(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return what its processes are told of it, plain values, and what they are given as bytes; none where empty.

        Args:
            options: Of the run.
        """
        limit = {"device_memory": self.gpu_bytes} if self.gpu_bytes else {}
        return {"params": dict(self.params), "options": {**options, **limit}}, b""


class OwnTurns(Protocol):
    """What is asked before each lease: `devices.RunTurns`, or `gang.GangTurns`."""

    lease_seconds: float

    def wait(self, save: Callable[[], bool] | None) -> None:
        """Wait until the next lease may run. What it raises ends the run."""

    def end(self) -> None:
        """Give back what the last lease had."""


class KeptTables:
    """Descriptors of a result's tables, such as another process wrote; they are closed when nobody keeps them.

    Attributes:
        descriptors: Of the table of vertices, and where values are kept on edges of theirs.
        num_bytes: Of all.
    """

    def __init__(self, descriptors: Sequence[int]) -> None:
        self.descriptors = list(descriptors)
        self.num_bytes = sum(os.fstat(descriptor).st_size for descriptor in descriptors)
        weakref.finalize(self, _close, self.descriptors)

    def duplicates(self) -> list[int]:
        """Return descriptors that the caller closes."""
        return [os.dup(descriptor) for descriptor in self.descriptors]

    def read(self) -> Result:
        """Return the result; only where the code that made it is trusted."""
        return result_of(self.descriptors)


class OwnJob(Job):
    """A job in processes of its own, whose code may be its tenant's. `cancel` ends them at once."""

    def __init__(
        self,
        number: int,
        code: OwnCode,
        graph_name: str,
        graph: Graph,
        tenant: str,
        priority: int,
        estimate: Estimate,
        options: Mapping[str, Any],
        cancel: Callable[[Job], bool],
        program: Vertex | None = None,
    ) -> None:
        self.code = code
        super().__init__(number, program, graph_name, graph, tenant, priority, estimate, options, cancel)
        self.num_devices = code.num_ranks
        self.kind = self.kind, code.num_ranks
        self._processes: OwnProcesses | None = None
        self._ending = threading.Lock()

    @property
    def program_name(self) -> str:
        return self.code.program.rpartition(":")[2]

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, and read it; raises what the run raised.

        Raises:
            CancelledError: If it was cancelled (`concurrent.futures.CancelledError`).
            ServerError: If its process died, or was ended because of its limits.
            TimeoutError: If it has not ended after so many seconds.
        """
        kept: Any = self.future.result(timeout)
        found: Result = kept.read()
        return found

    def __await__(self) -> Generator[Any, None, Result]:
        import asyncio

        return asyncio.to_thread(self.result).__await__()

    def stop(self) -> None:
        """End its processes and what they started, if they run."""
        with self._ending:
            if self._processes is not None:
                self._processes.kill()

    def run_on(
        self, devices: Sequence[SharedDevice], turns: OwnTurns, shared: Callable[[], SharedGraph]
    ) -> KeptTables:
        """Run it, a process on each device, in the thread of this job; return when the processes are gone.

        Raises:
            CancelledError: If it was cancelled.
            ServerError: If a process died, or broke a limit or the protocol.
            SigpsError: What the run raised.
        """
        self.state = "preparing"
        graph = shared()
        gpus = [device.ordinal for device in devices if device.ordinal is not None]
        with self._ending:
            if self.is_cancelled:
                raise CancelledError
            self._processes = OwnProcesses(len(devices), only_gpus(gpus) if gpus else dict(os.environ))
        try:
            self._processes.connect(self._ending)
            return self._converse(devices[0], turns, graph)
        except (OSError, FrameError) as error:
            if self.is_cancelled:
                raise CancelledError from None
            raise ServerError(f"{self._what()} {self._how_it_ended(error)}") from None
        finally:
            self.stop()
            with self._ending:
                self._processes.wait()

    def _converse(self, device: SharedDevice, turns: OwnTurns, graph: SharedGraph) -> KeptTables:
        """Give the processes their task, grant their turns, take what comes of it."""
        assert self._processes is not None
        code, connections = self.code, self._processes.connections
        self._tell(device, turns.lease_seconds, graph)
        save = None if self.folder is None else self._save
        most: float | None = None  # until they have the device they keep nobody waiting
        asked = 0
        while True:
            connection, message = self._hear(most)
            if message.get("do") == "turn":
                asked += 1
                if asked < len(connections):
                    continue
                asked, self.state = 0, "running"
                turns.wait(save)
                most = code.lease_seconds
                for waiting in connections:
                    send_frame(waiting, {"do": "go"})
            elif message.get("do") == "end":
                turns.end()
            elif message.get("do") == "done" and message.get("tables") in (1, 2):
                return _sealed(read_tables(connection, message["tables"]))
            elif message.get("do") == "done" and len(connections) > 1:
                pass  # rank 0 has the result
            else:
                raise FrameError("a message that is no answer")

    def _tell(self, device: SharedDevice, lease_seconds: float, graph: SharedGraph) -> None:
        """Give the processes their task."""
        assert self._processes is not None
        about, given = self.code.task(self.options)
        task = {
            "program": self.code.program,
            "folder": self.code.folder,
            "memory": self.code.num_bytes,
            "cpu_seconds": self.code.cpu_seconds,
            "lease_seconds": lease_seconds,
            "device": device.engine,
            "threads": device.threads,
            "graph": graph.about,
            "states": None if self.folder is None else str(self.folder),
            "num_given": len(given),
            **about,
        }
        with in_memory(given) as descriptor:
            for connection in self._processes.connections:
                send_frame(connection, task)
                send_tables(connection, [graph.descriptor, *([descriptor] if given else [])])

    def _hear(self, seconds: float | None) -> tuple[socket.socket, dict[str, Any]]:
        """Wait until a process says something; return its connection, and what it says.

        Raises:
            SigpsError: What the run raised there.
            OSError: If one has ended, or none has said anything for so long.
        """
        connection = self._next_to_speak(seconds)
        message = read_frame(connection)
        if message is None:
            raise ConnectionResetError
        if isinstance(supersteps := message.get("supersteps"), int):
            self.supersteps = max(self.supersteps, supersteps)  # of several ranks only the first counts them
        if message.get("do") == "failed" and isinstance(message.get("error"), str):
            error = error_of(message)
            if self._another_died(error):
                raise ConnectionResetError
            raise error
        return connection, message

    def _another_died(self, error: BaseException) -> bool:
        """Tell whether a rank has died: another may fail for that first, by an error of MPI or of the system.

        These are no errors of `sigps`; only with them it is worth waiting for the system to say that one has ended.
        """
        assert self._processes is not None
        if self.num_devices == 1:
            return False
        return bool(self._processes.ended_ranks(_END_SECONDS if isinstance(error, ServerError) else 0.0))

    def _save(self) -> bool:
        """Let the processes, which all wait for their turn, save the run's state; return whether they have."""
        assert self._processes is not None
        connections = self._processes.connections
        for connection in connections:
            send_frame(connection, {"do": "save"})
        answers = [self._hear(None)[1] for _ in connections]
        if any(answer.get("do") != "turn" for answer in answers):
            raise FrameError("a message that is no answer")
        return all(answer.get("saved") is True for answer in answers)

    def _next_to_speak(self, seconds: float | None) -> socket.socket:
        """Wait until a process says something; return its connection.

        Raises:
            ConnectionResetError: If one has ended, and none has said anything.
            TimeoutError: If none has said anything for so long.
        """
        assert self._processes is not None
        connections = {found.fileno(): found for found in self._processes.connections}
        ready = self._processes.ready(seconds, *connections)
        if not ready:
            raise TimeoutError
        said = [connections[descriptor] for descriptor in ready if descriptor in connections]
        if not said:
            raise ConnectionResetError
        return said[0]

    def _what(self) -> str:
        return f"the process of job {self.number} ({self.code.program})"

    def _how_it_ended(self, error: Exception) -> str:
        """Say why a process is not heard of any more; end it if it still runs."""
        assert self._processes is not None
        if isinstance(error, TimeoutError):
            if len(self._processes.connections) < self.num_devices:
                return "was ended: its ranks did not start"
            return (
                f"was ended: a lease took more than {self.code.lease_seconds:g} s (own_code: lease_seconds). "
                "An endless loop, or supersteps that are too long"
            )
        if isinstance(error, FrameError):
            return f"was ended: it sent {error}"
        if not self._processes.ready(1.0):
            return "was ended: it closed its socket"
        found = self._processes.end_of_first()
        limit = f"may take {self.code.num_bytes:,} bytes (own_code: memory)" if self.code.num_bytes else ""
        if found is None or self.num_devices > 1:
            died = self._processes.ended_ranks()
            which = f"rank {died[0]}" if len(died) == 1 else "one"
            return (
                f"ended before it had a result: {which} of its {self.num_devices} ranks died"
                f"{limit and '; each '}{limit}"
            )
        if found.si_code == os.CLD_EXITED:
            return f"ended with status {found.si_status} before it had a result"
        if found.si_status == signal.SIGXCPU:
            return f"was ended: it computed for more than {self.code.cpu_seconds:,} s (own_code: cpu_seconds)"
        return f"died by {signal.Signals(found.si_status).name}{limit and '; it '}{limit}"


def only_gpus(ordinals: Sequence[int]) -> dict[str, str]:
    """Return the environment of processes that are to see some GPUs of this one, in this order, as their only ones."""
    from sigps.device.cuda import uuid_of

    return {**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(map(uuid_of, ordinals))}


@contextlib.contextmanager
def in_memory(given: bytes) -> Iterator[int]:
    """Yield the descriptor of memory that holds some bytes."""
    with os.fdopen(os.memfd_create("sigps-given", os.MFD_CLOEXEC), "wb") as file:
        file.write(given)
        file.flush()
        yield file.fileno()


def _sealed(descriptors: list[int]) -> KeptTables:
    """Return tables that their writer can no longer change."""
    kept = KeptTables(descriptors)
    needed = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK
    for descriptor in descriptors:
        try:
            seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        except OSError:
            raise FrameError("a result that is no sealed memory") from None
        if seals & needed != needed:
            raise FrameError("a result that is not sealed")
    return kept


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def check_own_code(
    program: Any, params: Any, folder: Any, lease_seconds: Any, cpu_seconds: Any, ranks: Any
) -> None:
    """Check what is to run in a process of its own.

    Raises:
        ConfigError: If it is nothing that can be run.
    """
    if not isinstance(program, str) or ":" not in program:
        raise ConfigError(f"own code is named path/to/file.py:Class or package.module:Class, not {program!r}")
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise ConfigError("the parameters must be a mapping of names to values")
    if not os.path.isdir(folder):
        raise ConfigError(f"folder={folder!r} must be a folder, where a relative path of the program starts")
    if isinstance(lease_seconds, bool) or not isinstance(lease_seconds, (int, float)) or lease_seconds <= 0:
        raise ConfigError(f"lease_seconds={lease_seconds!r} must be seconds above 0")
    if isinstance(cpu_seconds, bool) or not isinstance(cpu_seconds, int) or cpu_seconds < 1:
        raise ConfigError(f"cpu_seconds={cpu_seconds!r} must be whole seconds, at least 1")
    check_ranks(ranks)
    if ranks > 1:
        check_launcher()
