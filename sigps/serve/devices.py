"""A device that jobs share by leases: `choose_job` says which is next."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field

from sigps.graph.graph import Graph
from sigps.serve.job import Job
from sigps.serve.runs import Merged, Run
from sigps.serve.streams import Streams
from sigps.serve.turns import Ready, TurnPolicy, aged, choose_job

__all__ = ["RunTurns", "SharedDevice", "Suspended", "Tenant"]

log = logging.getLogger(__name__)

_QUANTA_OF_A_KIND = 50.0
"""For how long a job may keep later ones of its tenant, program and graph waiting, in quanta; then it takes turns."""


@dataclass
class Tenant:
    """A tenant's share, the seconds that it was charged with, those that its leases took, and its jobs that ended."""

    weight: float = 1.0
    charged: float = 0.0
    lease_seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)


class SharedDevice:
    """A device, and the jobs that wait for their next lease on it.

    Between two leases of a job nobody else gets its turn until the job asks for the next one, or leaves: so the job
    itself takes part in the choice. On CPU cores one job has a lease at a time. A GPU is given that of a second one
    before the first has ended, and runs it right after, so that it does not wait while threads take turns; but not
    where the first job would be chosen again. A job on several devices has each of them by itself.

    Args:
        name: In the table of jobs.
        engine: The device's name in `sigps.run`.
        threads: Of each job on CPU cores.
        quantum: Seconds of a lease.
        tenants: By name, of the whole pool.
        lock: Of the whole pool.
        ordinal: The GPU's number; None for another device.

    Attributes:
        streams: Of its runs.
        preparing: Held by the run that is being prepared for it.
        prepared: The programs of runs that were prepared for it before, by their graphs.
        on_first_lease: Called with a run that is about to have its first one; others that wait may join it then.
    """

    def __init__(
        self,
        name: str,
        engine: str,
        threads: int,
        quantum: float,
        tenants: dict[str, Tenant],
        lock: threading.RLock,
        ordinal: int | None = None,
    ) -> None:
        self.name, self.engine, self.threads, self.ordinal = name, engine, threads, ordinal
        self.policy: TurnPolicy = "fair_share"
        self.on_first_lease: Callable[[Run], None] = lambda _: None
        self.streams, self.preparing = Streams(ordinal), threading.Lock()
        self.prepared: weakref.WeakKeyDictionary[Graph, set[type]] = weakref.WeakKeyDictionary()
        self._quantum, self._tenants, self._lock = quantum, tenants, lock
        self._waiting: list[Run] = []
        self._holders: dict[Run, float] = {}  # since when, in the order in which the device runs them
        self._most_holders = 2 if engine == "cuda" else 1
        self._ended_at, self._last = 0.0, -1
        self.leases, self._lease_seconds = 0, 0.0

    def request(self, run: Run) -> bool:
        """Give the device back if this run holds it, and wait for the next lease; return whether it came.

        It did not where the run was woken to save its state.
        """
        with self._lock:
            self._end_lease(run)
            self._waiting.append(run)
            self._grant()
            if run.ends_soon:
                self._hurry(run)
        run.granted.acquire()
        if not run.jobs:
            raise Merged
        if run.is_cancelled:
            raise CancelledError
        with self._lock:
            return run in self._holders

    def leave(self, run: Run) -> None:
        """Give the device back for good."""
        with self._lock:
            self._forget(run)
            self._end_lease(run)
            self._grant()

    def give_back(self, run: Run) -> None:
        """Give the device back for now, if this run holds it."""
        with self._lock:
            self._end_lease(run)
            self._grant()

    def wake(self, run: Run) -> None:
        """Let a run that is to end or to leave go on at once where it waits."""
        with self._lock:
            if self._forget(run):
                run.granted.release()

    def open_runs(self) -> list[Run]:
        """Return the runs that wait for their first lease, and may have others' jobs or give theirs to others."""
        return [run for run in self._waiting if run.is_open]

    def running(self) -> dict[str, float]:
        """Return for whom a lease goes on, and the seconds of it that each tenant has."""
        with self._lock:
            if not self._holders:
                return {}
            run, since = next(iter(self._holders.items()))
            share = (time.perf_counter() - max(since, self._ended_at)) / max(1, len(run.jobs))
            shares: dict[str, float] = {}
            for job in run.jobs:
                shares[job.tenant] = shares.get(job.tenant, 0.0) + share
            return shares

    def lease_seconds(self) -> float:
        """Return what all leases took, with the one that goes on."""
        with self._lock:
            return self._lease_seconds + sum(self.running().values())

    def _forget(self, run: Run) -> bool:
        """Let a run wait no more; return whether it did. Others may have its number: a job may run again."""
        if run not in self._waiting:
            return False
        self._waiting.remove(run)
        return True

    def _ready(self) -> dict[int, tuple[Ready, Run]]:
        """Return what is known of the jobs whose runs wait, or will when a lease ends, by their numbers."""
        expected: dict[str, float] = defaultdict(float)
        for run in self._holders:
            for job in run.jobs:
                expected[job.tenant] += self._quantum / len(run.jobs)
        found = {}
        staying = ((job, run) for run in self._holders if not run.ends_soon for job in run.jobs)
        for job, run in (*self._in_question(), *staying):
            tenant = self._tenants[job.tenant]
            attained = aged(job.attained, 0.0, self._leases_since(job))
            attained += expected[job.tenant] if run in self._holders else 0.0
            charged = tenant.charged + expected[job.tenant]
            about = Ready(*(job.number, job.tenant, tenant.weight, charged, attained), priority=job.priority)
            found[job.number] = about, run
        return found

    def _in_question(self) -> Iterable[tuple[Job, Run]]:
        """Return the jobs that wait, of which one may be next: with fair shares of each kind the first.

        In turns those of a kind would all end when the last of them does, and each choice would look at all.
        """
        if self.policy != "fair_share":
            return [(job, run) for run in self._waiting for job in run.jobs]
        firsts: dict[Hashable, tuple[Job, Run]] = {}
        long = _QUANTA_OF_A_KIND * self._quantum
        for run in self._waiting:
            for job in run.jobs:
                kind = job.kind if job.lease_seconds < long else job.number
                other = firsts.get(kind)
                if other is None or job.number < other[0].number:
                    firsts[kind] = job, run
        return firsts.values()

    def _leases_since(self, job: Job) -> int:
        """Return how many leases there were since a job's last one, which may have been on another device."""
        return max(0, self.leases - job.attained_at)

    def _end_lease(self, run: Run) -> None:
        """Charge what a lease took: each of its jobs an equal share."""
        since = self._holders.pop(run, None)
        if since is None:
            return
        now = time.perf_counter()
        seconds, self._ended_at = now - max(since, self._ended_at), now
        self._lease_seconds += seconds
        self.leases += 1
        share = seconds / max(1, len(run.jobs))
        for job in run.jobs:
            self._tenants[job.tenant].charged += share
            self._tenants[job.tenant].lease_seconds += share
            job.lease_seconds += share
            job.attained = aged(job.attained, share, self._leases_since(job))
            job.attained_at = self.leases

    def _hurry(self, run: Run) -> None:
        """End the lease that goes on early, if it is of a longer run, and this one, which ends soon, is next."""
        first, *others = self._holders or [run]
        if first.ends_soon:
            return
        if not others:
            ready = self._ready()
            chosen = choose_job(self.policy, [about for about, _ in ready.values()], last=self._last)
            others = [] if chosen is None else [ready[chosen][1]]
        if others == [run]:
            first.awaited[0] = 1

    def _grant(self) -> None:
        while self._waiting and len(self._holders) < self._most_holders:
            if any(run.has_several_devices for run in self._holders):
                return
            ready = self._ready()
            chosen = choose_job(self.policy, [about for about, _ in ready.values()], last=self._last)
            if chosen is None:  # jobs of those that wait were taken over
                return
            run = ready[chosen][1]
            if run in self._holders or (run.has_several_devices and self._holders):
                return
            self._waiting.remove(run)
            self._last = chosen
            if run.is_open:
                self.on_first_lease(run)
            run.is_open = False
            run.awaited[0] = 0
            self._holders[run] = time.perf_counter()
            run.granted.release()


class Suspended(Exception):  # noqa: N818  (no error: the run goes on later)
    """A run has saved its state, and ends here."""


class RunTurns:
    """The turns of one run (`system.turns.Turns`).

    What belongs to a graph is laid out by one run at a time: until its first lease a run holds `preparing` of its
    device, and of the whole pool where no such run was prepared on this device before.
    """

    def __init__(
        self,
        run: Run,
        device: SharedDevice,
        lease_seconds: float,
        preparing: threading.Lock,
        first_lease: Callable[[], tuple[int, bool]] = lambda: (1, False),
    ) -> None:
        self.lease_seconds, self._first_lease, self.awaited = lease_seconds, first_lease, run.awaited
        self._run, self._device, self._preparing = run, device, preparing
        self._prepares: list[threading.Lock] = []
        self._leases = 0

    def first_lease(self) -> int:
        """Return how many supersteps a run's first lease may have."""
        supersteps, self._run.ends_soon = self._first_lease()
        return supersteps

    def prepare(self) -> None:
        """Wait until this run may be prepared."""
        known = self._device.prepared.setdefault(self._run.graph, set())
        kind = type(self._run.started.program)
        for lock in (self._device.preparing,) if kind in known else (self._preparing, self._device.preparing):
            lock.acquire()
            self._prepares.append(lock)
        if self._run.is_cancelled:
            raise CancelledError
        self._device.streams.begin_preparing()
        self._run.set_state("preparing")

    def wait(self, save: Callable[[], bool] | None) -> None:
        if self._prepares:
            self._device.prepared[self._run.graph].add(type(self._run.started.program))
        self._end_preparing()
        while True:
            self._run.ends_soon &= self._leases == 0
            has_device = not self._run.is_suspending and self._device.request(self._run)
            if has_device and not self._run.is_suspending:
                self._run.settle()
                self._leases += 1
                return
            self._device.give_back(self._run)
            if not self._run.is_suspending:
                continue
            if save is not None and save():
                raise Suspended
            self._run.is_suspending = False
            log.warning("job %d goes on: its state could not be saved", self._run.number)

    def end(self) -> None:
        self._device.give_back(self._run)

    def leave(self) -> None:
        """Give back all that the run holds."""
        self._end_preparing()
        self._device.leave(self._run)

    def _end_preparing(self) -> None:
        if self._prepares:
            self._device.streams.end_preparing()
            self._run.set_state("running")
            while self._prepares:
                self._prepares.pop().release()
