"""A job of a pool: what it will take, how far it is, and its result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sigps.engine.stats import SuperstepStats
from sigps.graph.graph import Graph
from sigps.job.result import Result
from sigps.model.vertex import Vertex

__all__ = ["Estimate", "Job", "JobRow", "JobState"]

JobState = Literal["waiting for memory", "preparing", "running", "suspended", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Estimate:
    """What a job will take, of each of its devices.

    Attributes:
        bytes_by_purpose: As `sigps plan` prints them; those of the graph are shared with other jobs on it.
        own_bytes: Those that the job takes by itself.
        graph_bytes: Those that jobs on the same graph, with its edges in the same directions, share.
        seconds: Of its leases, on all its devices: the mean of jobs with the same program on the same graph, on as many
            devices, that have ended; None before.
    """

    bytes_by_purpose: Mapping[str, int]
    own_bytes: int
    graph_bytes: int
    seconds: float | None


@dataclass(frozen=True)
class JobRow:
    """A job in the pool's table, at one moment.

    Attributes:
        number: In order of submission, from 0.
        graph: The name of its graph.
        supersteps: How many have run.
        lease_seconds: What its leases took so far.
        device: Where it runs, by names; None before it is admitted.
        num_bytes: What it takes by itself.
        joined: With how many other jobs it ran as one.
        why: The first line of the error by which it failed; empty if it did not.
    """

    number: int
    program: str
    graph: str
    tenant: str
    priority: int
    state: JobState
    supersteps: int
    lease_seconds: float
    device: str | None
    num_bytes: int
    joined: int = 0
    why: str = ""


class Job:
    """A run that a pool does among others; `Pool.submit` makes one. `await job` gives its result too.

    Attributes:
        number: In order of submission, from 0.
        program: The program with its parameters; None of own code, which only its process imports.
        tenant: Whose it is.
        priority: Among the tenant's jobs.
        estimate: What it will take.
        state: Where it stands.
        supersteps: How many have run.
        lease_seconds: What its leases took so far; of a run that was joined its share.
        joined: With how many other jobs it runs as one: known from its first lease on.
        folder: Where its state logs lie; None where it has no name to go on by.
        devices: The names of those where it runs; empty before it is admitted.
        num_devices: How many it has for each lease.
        kind: Equal for jobs of a tenant and priority that should take about as long as each other.
        why: The first line of the error by which it failed; empty if it did not.
    """

    def __init__(
        self,
        number: int,
        program: Vertex | None,
        graph_name: str,
        graph: Graph,
        tenant: str,
        priority: int,
        estimate: Estimate,
        options: Mapping[str, Any],
        cancel: Callable[[Job], bool],
    ) -> None:
        self.number, self.graph_name = number, graph_name
        self.program: Any = program
        self.tenant, self.priority, self.estimate = tenant, priority, estimate
        self.state: JobState = "waiting for memory"
        self.supersteps, self.lease_seconds, self.attained = 0, 0.0, 0.0
        self.attained_at = 0  # after how many leases of its device
        self.graph: Graph | None = graph
        self.options = options
        self.devices: tuple[str, ...] = ()
        self.num_devices = 1
        self.kind: Hashable = tenant, priority, self.program_name, id(graph)
        self.is_cancelled, self.is_suspending, self.joined = False, False, 0
        self.why = ""
        self.folder: Path | None = None
        self.future: Future[Result] = Future()
        self.future.set_running_or_notify_cancel()  # from here on `cancel` alone ends it
        self._cancel = cancel

    @property
    def program_name(self) -> str:
        """The name of its program's class."""
        return type(self.program).__name__

    def stop(self) -> None:
        """Do what `cancel` can do besides asking it to end before its next lease: nothing."""

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, which is that of `sigps.run`; raises what the run raised.

        Raises:
            CancelledError: If it was cancelled (`concurrent.futures.CancelledError`).
            TimeoutError: If it has not ended after so many seconds.
        """
        return self.future.result(timeout)

    def cancel(self) -> bool:
        """Let it end before its next lease; return whether it had not ended before."""
        return self._cancel(self)

    def is_done(self) -> bool:
        """Tell whether it has ended: with a result, an error, or because it was cancelled."""
        return self.future.done()

    def __await__(self) -> Generator[Any, None, Result]:
        import asyncio

        # Shielded: a task that gives up waiting does not cancel the job.
        return asyncio.shield(asyncio.wrap_future(self.future)).__await__()

    def record(self, stats: Sequence[SuperstepStats]) -> None:
        """Take the statistics of its supersteps so far."""
        self.supersteps = len(stats)

    def row(self) -> JobRow:
        """Return what the table says of it now."""
        return JobRow(
            self.number,
            self.program_name,
            self.graph_name,
            self.tenant,
            self.priority,
            self.state,
            self.supersteps,
            self.lease_seconds,
            ", ".join(self.devices) or None,
            self.estimate.own_bytes,
            self.joined,
            self.why,
        )

    def __repr__(self) -> str:
        return f"Job({self.number}, {self.program or self.program_name!r}, {self.graph_name!r}, {self.state})"
