"""What a program asks a server of jobs: `sigps.connect().submit(SSSP(source=5), "kron")`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Mapping
from typing import Any

from sigps.errors import ConfigError, ServerError
from sigps.job.importing import name_of
from sigps.job.result import Result
from sigps.model.vertex import Vertex
from sigps.serve.job import JobRow
from sigps.serve.overview import Overview, overview_of
from sigps.serve.wire import (
    FrameError,
    NoServerError,
    connected,
    default_socket,
    error_of,
    read_frame,
    read_tables,
    result_of,
    send_frame,
)

__all__ = ["Client", "RemoteJob", "connect"]

_WORKERS = 4  # of a server that may die during one question
_WAIT_SECONDS = 5.0  # of one question; a longer wait asks again


def connect(path: str | os.PathLike[str] | None = None) -> Client:
    """Return a client of the server of jobs that `sigps serve` started. Nothing stays open between its questions.

    Args:
        path: The server's socket; None for where a server of this user listens by default.

    Raises:
        ConfigError: If none listens there.
        ServerError: If what listens there does not answer as a server of jobs.
    """
    client = Client(default_socket() if path is None else os.path.abspath(path))
    client.graphs()
    return client


class Client:
    """A server of jobs, from outside; `connect` makes one. Threads may share it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def submit(
        self,
        program: Vertex | str,
        graph: str | Mapping[str, Any],
        *,
        params: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        tenant: str = "",
        priority: int = 0,
        name: str | None = None,
        ranks: int | None = None,
        **options: Any,
    ) -> RemoteJob:
        """Hand in a job, as `Pool.submit` does. No code crosses: the server runs its own class of that name.

        Where the tenant may run own code, a program that the server's file does not name runs in a process of its own,
        as `Pool.submit_own` says, which imports it from its file or module.

        Args:
            program: A program with its parameters, or the name of its class: `"sigps.apps:SSSP"`.
            graph: The name of one of the server's graphs, or the section `graph` of a job file with an absolute path,
                which one of them has.
            params: With a name, the parameters.
            folder: Where the relative path of a file in the name starts, and own code works; None for the current one.
            tenant: Whose job it is.
            priority: Among the tenant's jobs.
            name: With it the state is saved, as `Pool.submit` says; where the server ends, it is suspended.
            ranks: On how many of the server's devices it runs together, as `Pool.submit` says; None for one, and for
                own code for as many as the server's file says.
            options: Of `sigps.run`, as `Pool.submit` takes them.

        Raises:
            ConfigError: If the server does not run such a program, has no such graph, an option or parameter is wrong,
                a limit of the tenant is reached, or the job could never fit.
            CompileError: If compute() cannot be compiled.
        """
        if isinstance(program, Vertex):
            if params is not None:
                raise ConfigError("params= goes with the name of a program; an instance has its own")
            params = _params(program)
            code = name_of(type(program))
            program = f"{type(program).__module__}:{type(program).__qualname__}"
        else:
            code = program
        where = os.path.abspath(folder or os.getcwd())
        asked = {
            "program": program,
            "params": dict(params or {}),
            "graph": graph,
            "code": code,
            "folder": where,
        }
        about = {"tenant": tenant, "priority": priority, "name": name, "ranks": ranks}
        reply = self.ask("submit", **asked, **about, options=options)
        return RemoteJob(self, reply["job"], reply["server"])

    def jobs(self) -> list[JobRow]:
        """Return the server's table of jobs, newest first."""
        return [JobRow(**row) for row in self.ask("jobs")["rows"]]

    def overview(self) -> Overview:
        """Return the server's devices, tenants, graphs, jobs and last minutes, as plain numbers."""
        return overview_of(self.ask("overview")["overview"])

    def graphs(self) -> dict[str, tuple[int, int]]:
        """Return the vertices and edges of the server's graphs, by name."""
        return {name: (vertices, edges) for name, vertices, edges in self.ask("graphs")["graphs"]}

    def job(self, number: int) -> RemoteJob:
        """Return a job by its number.

        Raises:
            ConfigError: If there is none, or it ended too long ago.
        """
        return RemoteJob(self, number, self.ask("wait", job=number, seconds=0.0)["server"])

    def ask(self, what: str, **about: Any) -> dict[str, Any]:
        """Return the server's reply to one question, with `result` where it passed one."""
        with connected(self.path) as connection:
            try:
                send_frame(connection, {"version": 1, "do": what, **about})
                reply = read_frame(connection, first_byte_seconds=None)
                if reply is None:
                    raise _GoneError(f"the server at {self.path} ended before it replied")
                if "error" in reply:
                    raise error_of(reply)
                if count := reply.get("tables"):
                    descriptors = read_tables(connection, count)
                    try:
                        reply["result"] = result_of(descriptors)
                    finally:
                        for descriptor in descriptors:
                            os.close(descriptor)
                return reply
            except FrameError as error:
                raise ServerError(f"{self.path}: {error}") from None
            except OSError as error:
                raise _GoneError(
                    f"the server at {self.path} is gone ({error.strerror or error}): is it still running?"
                ) from None

    def __repr__(self) -> str:
        return f"Client({self.path!r})"


class _GoneError(ServerError):
    """A server, or its worker, ended while it was asked."""


class RemoteJob:
    """A job of a server. `await job` gives its result too.

    Attributes:
        number: In the server's table.
    """

    def __init__(self, client: Client, number: int, server: str) -> None:
        self.number = number
        self._client, self._server = client, server

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, with the values of `sigps.run`; raises what the run raised.

        Raises:
            CancelledError: If it was cancelled (`concurrent.futures.CancelledError`).
            ConfigError: If the server keeps its result no longer.
            ServerError: If the server ended, which ends its jobs.
            TimeoutError: If it has not ended after so many seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WAIT_SECONDS if end is None else max(0.0, end - time.monotonic())
            if self._ask("wait", seconds=min(left, _WAIT_SECONDS))["ended"]:
                found: Result = self._ask("result")["result"]
                return found
            if end is not None and time.monotonic() >= end:
                raise TimeoutError

    def cancel(self) -> bool:
        """Let it end before its next lease; return whether it had not ended before."""
        return bool(self._ask("cancel")["cancelled"])

    def suspend(self) -> bool:
        """Let it save its state and give back its memory; return whether it is to: see `Pool.suspend`."""
        return bool(self._ask("suspend")["suspended"])

    def resume(self) -> bool:
        """Let it go on; return whether it was suspended."""
        return bool(self._ask("resume")["resumed"])

    def is_done(self) -> bool:
        """Tell whether it has ended: with a result, an error, or because it was cancelled."""
        return bool(self._ask("wait", seconds=0.0)["ended"])

    def __await__(self) -> Generator[Any, None, Result]:
        return asyncio.to_thread(self.result).__await__()

    def _ask(self, what: str, **about: Any) -> dict[str, Any]:
        """Ask of this job; once more where the server's worker dies meanwhile, since another takes its place."""
        gone: _GoneError | None = None
        for _ in range(_WORKERS):
            try:
                return self._client.ask(what, job=self.number, server=self._server, **about)
            except _GoneError as error:
                gone = error
            except NoServerError as error:
                raise gone or error from None
        assert gone is not None
        raise gone

    def __repr__(self) -> str:
        return f"RemoteJob({self.number}, {self._client.path!r})"


def _params(program: Vertex) -> dict[str, Any]:
    """Return the parameters that differ from their defaults."""
    values = {
        field.name: (getattr(program, field.name), field.default) for field in program.declaration.params
    }
    given = {name: value for name, (value, default) in values.items() if value is not default}
    for name, value in given.items():
        if not isinstance(value, (bool, int, float, str, list, tuple, dict, type(None))):
            raise ConfigError(
                f"{type(program).__name__}: {name} is {type(value).__name__}; a server takes plain values only"
            )
    return given
