"""A device that jobs share by leases: one holds it at a time, and `choose_job` says which is next."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

from sigps.serve.job import Job
from sigps.serve.turns import Ready, TurnPolicy, aged, choose_job

__all__ = ["JobTurns", "SharedDevice", "Suspended", "Tenant"]

log = logging.getLogger(__name__)


@dataclass
class Tenant:
    """A tenant's share, the seconds that it was charged with, those that its leases took, and its jobs that ended."""

    weight: float = 1.0
    charged: float = 0.0
    lease_seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)


class SharedDevice:
    """A device, and the jobs that wait for their next lease on it.

    Between two leases of a job nobody else gets the device until the job asks for the next one, or leaves: so the job
    itself takes part in the choice.

    Args:
        name: In the table of jobs.
        engine: The device's name in `sigps.run`.
        threads: Of each job on CPU cores.
        tenants: By name, of the whole pool.
        lock: Of the whole pool.
    """

    def __init__(
        self, name: str, engine: str, threads: int, tenants: dict[str, Tenant], lock: threading.RLock
    ) -> None:
        self.name, self.engine, self.threads = name, engine, threads
        self.policy: TurnPolicy = "fair_share"
        self._tenants, self._lock = tenants, lock
        self._waiting: dict[int, Job] = {}
        self._holder: Job | None = None
        self._since, self._last = 0.0, -1
        self.leases, self._lease_seconds = 0, 0.0

    def request(self, job: Job) -> None:
        """Give the device back if this job holds it, and wait for the next lease."""
        with self._lock:
            self._end_lease(job)
            self._waiting[job.number] = job
            self._grant()
        job.granted.acquire()
        if job.is_cancelled:
            raise CancelledError

    def leave(self, job: Job) -> None:
        """Give the device back for good."""
        with self._lock:
            self._waiting.pop(job.number, None)
            self._end_lease(job)
            self._grant()

    def give_back(self, job: Job) -> None:
        """Give the device back for now, if this job holds it."""
        with self._lock:
            self._end_lease(job)
            self._grant()

    def wake(self, job: Job) -> None:
        """Let a job that is to end or to leave go on at once where it waits."""
        with self._lock:
            if self._waiting.pop(job.number, None) is not None:
                job.granted.release()

    def running(self) -> tuple[str | None, float]:
        """Return whose lease goes on, and for how many seconds it has; None and 0 where there is none."""
        with self._lock:
            holder = self._holder
            return (None, 0.0) if holder is None else (holder.tenant, time.perf_counter() - self._since)

    def lease_seconds(self) -> float:
        """Return what all leases took, with the one that goes on."""
        with self._lock:
            return self._lease_seconds + self.running()[1]

    def _ready(self) -> list[Ready]:
        """Return what is known of the jobs that wait."""
        return [
            Ready(
                job.number,
                job.tenant,
                self._tenants[job.tenant].weight,
                self._tenants[job.tenant].charged,
                job.attained,
                priority=job.priority,
            )
            for job in self._waiting.values()
        ]

    def _end_lease(self, job: Job) -> None:
        if self._holder is not job:
            return
        seconds = time.perf_counter() - self._since
        self._holder = None
        self._tenants[job.tenant].charged += seconds
        self._tenants[job.tenant].lease_seconds += seconds
        self._lease_seconds += seconds
        self.leases += 1
        job.lease_seconds += seconds
        for other in (job, *self._waiting.values()):
            other.attained = aged(other.attained, seconds if other is job else 0.0)

    def _grant(self) -> None:
        if self._holder is not None:
            return
        chosen = choose_job(self.policy, self._ready(), last=self._last)
        if chosen is not None:
            self._holder, self._last = self._waiting.pop(chosen), chosen
            self._since = time.perf_counter()
            self._holder.granted.release()


class Suspended(Exception):  # noqa: N818  (no error: the run goes on later)
    """A run has saved its state, and ends here."""


class JobTurns:
    """The turns of one job (`system.turns.Turns`).

    Until its first lease a job holds `preparing`: what belongs to a graph is laid out by one job at a time.
    """

    def __init__(
        self, job: Job, device: SharedDevice, lease_seconds: float, preparing: threading.Lock
    ) -> None:
        self.lease_seconds = lease_seconds
        self._job, self._device, self._preparing = job, device, preparing
        self._prepares = False

    def prepare(self) -> None:
        """Wait until this job may prepare its run."""
        self._preparing.acquire()
        self._prepares = True
        if self._job.is_cancelled:
            raise CancelledError
        self._job.state = "preparing"

    def wait(self, save: Callable[[], bool] | None) -> None:
        self._end_preparing()
        while True:
            if not self._job.is_suspending:
                self._device.request(self._job)
            if not self._job.is_suspending:
                return
            self._device.give_back(self._job)
            if not self._job.is_suspending:
                continue
            if save is not None and save():
                raise Suspended
            self._job.is_suspending = False
            log.warning("job %d goes on: its state could not be saved", self._job.number)

    def leave(self) -> None:
        """Give back all that the job holds."""
        self._end_preparing()
        self._device.leave(self._job)

    def _end_preparing(self) -> None:
        if self._prepares:
            self._prepares, self._job.state = False, "running"
            self._preparing.release()
