"""The jobs of a pool from submission to end: which wait, when they are admitted, and the threads that run them."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from sigps.errors import ConfigError, StateLogError
from sigps.graph.graph import Graph
from sigps.host_memory import available_memory
from sigps.serve.admission import Budget
from sigps.serve.devices import RunTurns, SharedDevice, Suspended, Tenant
from sigps.serve.gang import GangTurns
from sigps.serve.job import Job, JobRow, JobState
from sigps.serve.joining import Joining, Times, first_lease, is_short
from sigps.serve.own_code import OwnJob
from sigps.serve.placing import GpuLoad, PlacingPolicy, choose_gpu
from sigps.serve.runs import LanesBroken, Merged, Run, results_of
from sigps.serve.shared_graph import SharedGraph
from sigps.serve.states import forget_state
from sigps.serve.turns import Ready, joined

__all__ = ["Dispatcher"]

_SHOWN = 100  # ended jobs in the table
_WHY_CHARACTERS = 240  # of an error there

_MOST_THREADS = 10_000
"""Runs at a time: each has a thread, and memory is what bounds them."""

_FULL = GpuLoad(-1)


class Dispatcher:
    """Jobs, and the devices on which they run. All that waits for something does so without the lock.

    Args:
        names: The engine of each device; GPUs are numbered in this order.
        threads: Of a run on CPU cores.
        memory: Bytes that graphs and jobs on a device may take; None for what is available.
        quantum: Seconds of a lease.
        placing: Which device a job gets.
        lanes: Whether jobs are joined.
        shared: Returns the copy of a graph for other processes.

    Attributes:
        lock: Held where jobs, tenants and budgets change.
        preparing: Held by a run that is being prepared, where none of its kind was before.
    """

    def __init__(
        self,
        names: Sequence[str],
        threads: int,
        memory: int | None,
        quantum: float,
        placing: PlacingPolicy,
        lanes: Joining,
        shared: Callable[[Graph], SharedGraph],
    ) -> None:
        self.lock, self.preparing = threading.RLock(), threading.Lock()
        self.tenants: dict[str, Tenant] = defaultdict(Tenant)
        gpus = itertools.count()
        ordinals = [next(gpus) if name == "cuda" else None for name in names]
        self.devices = [
            SharedDevice(f"{name} {i}", name, threads, quantum, self.tenants, self.lock, ordinal)
            for i, (name, ordinal) in enumerate(zip(names, ordinals, strict=True))
        ]
        for device in self.devices:
            device.on_first_lease = functools.partial(self._gather, device)
        on_cores = ordinals.count(None)
        self.budgets = [Budget(memory or _free_bytes(ordinal, on_cores)) for ordinal in ordinals]
        self._quantum, self._placing, self._lanes, self._shared = quantum, placing, lanes, shared
        self.waiting: deque[Job] = deque()
        self.running: dict[int, Job] = {}
        self.suspended: dict[int, Job] = {}
        self._runs: dict[int, Run] = {}  # of running jobs, by these
        self.on_lost_gpu: Callable[[BaseException], None] | None = None
        # Kept: a new thread's arrays are new memory of the system, which takes half of a short job.
        # Those of a GPU have no other one.
        self._threads = [ThreadPoolExecutor(_MOST_THREADS, f"sigps {device.name}") for device in self.devices]
        self._working: dict[Run, Future[None]] = {}
        self._ended: deque[JobRow] = deque(maxlen=_SHOWN)
        self._history: dict[tuple[str, str, int], tuple[int, float]] = {}
        self._times: dict[tuple[str, str, str], Times] = defaultdict(Times)
        self._graph_of_times: dict[tuple[str, str, str], weakref.ref[Graph]] = {}
        self.next_number, self._last = 0, -1

    def take(self, make: Callable[[int], Job], weight: float | None) -> Job:
        """Take a job that `make` makes of its number.

        Raises:
            ConfigError: If it would fit on no device with no other job there.
        """
        with self.lock:
            job = make(self.next_number)
            self._check(job)
            self.next_number += 1
            mine = self.tenants[job.tenant]
            mine.weight = mine.weight if weight is None else float(weight)
            self.enter(job)
        return job

    def enter(self, job: Job) -> None:
        """Let a job wait for memory; its tenant has no credit for the time without jobs. The lock is held."""
        competing = self.competing()
        if all(other.tenant != job.tenant for other in competing):
            mine, others = self.tenants[job.tenant], {other.tenant for other in competing}
            tenants = [(name, self.tenants[name]) for name in others]
            mine.charged = joined(
                mine.charged, mine.weight, [Ready(0, name, t.weight, t.charged) for name, t in tenants]
            )
        job.state = "waiting for memory"
        self.waiting.append(job)
        self.admit()

    def admit(self) -> None:
        """Start the jobs that fit, in order; one that can be joined to a run goes with that. The lock is held."""
        while self.waiting:
            job = self.waiting[0]
            chosen = self._place(job)
            if not chosen:
                return
            self.waiting.popleft()
            device = self.devices[chosen[0]]
            self._last, job.attained_at = chosen[-1], device.leases
            job.devices = tuple(self.devices[number].name for number in chosen)
            for number in chosen:
                self.budgets[number].take(_layout(job), job.estimate)
            self.running[job.number] = job
            times = self._times_of(job.graph, job, device)
            here = (run for run in self._open_runs() if run.jobs[0].devices == job.devices)
            run = next((run for run in here if run.takes(job, times, self._quantum)), None)
            if run is None:
                self._start(job, chosen, may_join=self._lanes == "auto")
            else:
                run.join(job)
                self._runs[job.number] = run

    def _check(self, job: Job) -> None:
        """Check that a job would fit, with no other job there, on as many devices of a kind as it needs.

        Raises:
            ConfigError: If it would not.
        """
        refusal, fitting = None, Counter[str]()
        for device, budget in zip(self.devices, self.budgets, strict=True):
            if _may_run(job, device):
                try:
                    budget.check(_layout(job), job.estimate)
                    fitting[device.engine] += 1
                except ConfigError as error:
                    refusal = error
        if max(fitting.values(), default=0) < job.num_devices:
            raise refusal or ConfigError(
                f"the job needs {job.num_devices} devices of a kind, and this pool has fewer: "
                f"{', '.join(device.name for device in self.devices)}"
            )

    def _place(self, job: Job) -> tuple[int, ...]:
        """Return the devices where a job is to run, ascending; none while it does not fit. The lock is held."""
        loads = [self._load(number, _layout(job), job) for number in range(len(self.devices))]
        is_one = job.num_devices == 1
        for kind in dict.fromkeys("" if is_one else device.engine for device in self.devices):
            left = [
                load if is_one or device.engine == kind else _FULL
                for device, load in zip(self.devices, loads, strict=True)
            ]
            chosen: list[int] = []
            while len(chosen) < job.num_devices:
                found = choose_gpu(
                    self._placing,
                    left,
                    program=job.program_name,
                    num_bytes=0,
                    seconds=job.estimate.seconds or 1.0,
                    last=self._last,
                )
                if found is None:
                    break
                chosen.append(found)
                left[found] = _FULL
            else:
                return tuple(sorted(chosen))
        return ()

    def cancel(self, job: Job) -> bool:
        """End a job before its next lease; return whether it had not ended before."""
        with self.lock:
            if job in self.waiting:
                self.waiting.remove(job)
                forget_state(job)
                self._end(job, "cancelled")
                job.future.set_exception(CancelledError())
                self.admit()
                return True
            if self.suspended.get(job.number) is job:
                forget_state(job)
                self.leave(job)
                return True
            if job.number not in self.running:
                return False
            run = self._runs[job.number]
            if len(run.jobs) > 1:  # the others go on without it; its bytes are the run's to its end
                run.drop(job)
                self._left(job, "cancelled")
                job.future.set_exception(CancelledError())
                return True
            job.is_cancelled = True
            self.wake(job)
        job.stop()
        return True

    def wake(self, job: Job) -> None:
        """Let a running job that is to end or to leave do so at once: where it waits, or after its superstep.

        The lock is held.
        """
        self._runs[job.number].awaited[0] = 1
        for device in self.devices:
            device.wake(self._runs[job.number])

    def leave(self, job: Job) -> None:
        """End a suspended job."""
        with self.lock:
            del self.suspended[job.number]
            self._end(job, "cancelled")
        job.future.set_exception(CancelledError())

    def join_threads(self) -> None:
        """Wait until no job runs or waits for memory; afterwards none is taken."""
        while True:
            with self.lock:
                working = list(self._working.values())
            if not working:
                for threads in self._threads:
                    threads.shutdown(wait=False)  # one of them may be who calls this
                return
            for each in working:
                each.result()

    def competing(self) -> list[Job]:
        """Return the jobs that have not ended and are not suspended."""
        with self.lock:
            return [*self.waiting, *self.running.values()]

    def active(self) -> list[Job]:
        """Return the jobs that have not ended."""
        with self.lock:
            return [*self.waiting, *self.running.values(), *self.suspended.values()]

    def rows(self) -> list[JobRow]:
        """Return those that have not ended and the last hundred others, newest first."""
        with self.lock:
            rows = [*self._ended, *(job.row() for job in self.active())]
        return sorted(rows, key=lambda row: -row.number)

    def num_active(self) -> Counter[str]:
        """Return how many jobs of each tenant have not ended and are not suspended."""
        return Counter(job.tenant for job in self.competing())

    def mean_seconds(self, program: str, graph: str, num_devices: int = 1) -> float | None:
        """Return the mean seconds of leases of jobs with a program on a graph that ended; None before the first."""
        count, total = self._history.get((program, graph, num_devices), (0, 0.0))
        return total / count if count else None

    def _gather(self, device: SharedDevice, run: Run) -> None:
        """Let jobs of runs that wait, too, join one that gets its first lease: what pays is known better by now.

        The lock is held.
        """
        times = self._times_of(run.graph, run.jobs[0], device)
        for other in device.open_runs():
            for job in other.jobs:
                if run.takes(job, times, self._quantum):
                    run.take_over(job, other)
                    self._runs[job.number] = run
            if not other.jobs:
                device.wake(other)

    def _open_runs(self) -> list[Run]:
        return [run for run in dict.fromkeys(self._runs.values()) if run.is_open]

    def _load(self, number: int, key: tuple[int, str], job: Job) -> GpuLoad:
        """Return a device as `choose_gpu` sees it: bytes left once the job is there, negative where it does not fit."""
        budget, device = self.budgets[number], self.devices[number]
        missing = budget.missing_bytes(key, job.estimate)
        if not _may_run(job, device):
            missing = budget.num_bytes
        here = [other for other in self.running.values() if device.name in other.devices]
        return GpuLoad(
            -missing if missing else budget.free_bytes,
            seconds=sum((other.estimate.seconds or 1.0) / other.num_devices for other in here),
            programs=tuple(other.program_name for other in here),
        )

    def _start(self, job: Job, numbers: Sequence[int], *, may_join: bool) -> None:
        """Give an admitted job a run and a thread, an idle one where there is one. The lock is held."""
        run = Run(job, is_open=may_join, engine=self.devices[numbers[0]].engine)
        self._runs[job.number] = run
        self._working[run] = self._threads[numbers[0]].submit(self._work, run, numbers)

    def _work(self, run: Run, numbers: Sequence[int]) -> None:
        """Run one run, in a thread that has no other meanwhile."""
        devices, error, first = [self.devices[number] for number in numbers], None, run.jobs[0]
        device = devices[0]
        results: dict[int, Any] = {}  # of own code tables
        with self.lock:
            times = self._times_of(run.graph, first, device)
        alone = RunTurns(
            run,
            device,
            self._quantum,
            self.preparing,
            lambda: (first_lease(times, self._quantum), is_short(times, self._quantum)),
        )
        turns = GangTurns(run, devices, self._quantum) if run.has_several_devices else alone
        try:
            if isinstance(first, OwnJob):
                results = {first.number: first.run_on(devices, turns, lambda: self._shared(run.graph))}
            else:
                with device.streams.taken():
                    results = results_of(run, alone, device)
        except BaseException as failure:  # the jobs' callers get it
            error = failure
            if device.engine == "cuda" and self.on_lost_gpu is not None and is_lost():
                self.on_lost_gpu(failure)
        turns.leave()
        with self.lock:
            run.is_open = False
            if isinstance(error, Merged):
                self._finish(run, numbers)
                return
            if error is not None and self._goes_on(run, numbers, error):
                return
            self._finish(run, numbers)
            ended = [self._ended_as(job, results.get(job.number), error) for job in run.jobs]
            if results and not run.has_several_devices:
                self._learn(run, device)
            self.admit()
        for future, result, failed in ended:
            if failed is None:
                future.set_result(result)
            else:
                future.set_exception(failed)

    def _goes_on(self, run: Run, numbers: Sequence[int], error: BaseException) -> bool:
        """Tell whether jobs of a run that ended with an error go on otherwise, and let them. The lock is held."""
        if isinstance(error, Suspended) and not run.is_cancelled:
            self._finish(run, numbers)
            (job,) = run.jobs
            del self._runs[job.number], self.running[job.number]
            job.devices, wanted, job.is_suspending = (), job.is_suspending, False
            if wanted:
                job.state = "suspended"
                self.suspended[job.number] = job
                self.admit()
            else:  # `resume` came while it was saving
                self.enter(job)
            return True
        if len(run.jobs) == 1 and not isinstance(error, LanesBroken):
            return False
        # Each job by itself meets its own error, and no other's.
        if isinstance(error, LanesBroken) and str(error):
            self._times_of(run.graph, run.jobs[0], self.devices[numbers[0]]).obstacle = str(error)
        self._finish(run, numbers, kept=run.jobs)
        for job in run.jobs:
            job.joined = 0
            self._start(job, numbers, may_join=False)
        return True

    def _finish(self, run: Run, numbers: Sequence[int], kept: Sequence[Job] = ()) -> None:
        """Forget a run's thread, and give back the bytes of its jobs but for those that are kept. The lock is held."""
        del self._working[run]
        for job in run.admitted:
            for number in numbers if job not in kept else ():
                self.budgets[number].give_back(job.estimate)

    def _ended_as(self, job: Job, result: Any, error: BaseException | None) -> tuple[Any, Any, Any]:
        """End a running job; return its future, and what that is to have. The lock is held."""
        if isinstance(error, Suspended):
            error = CancelledError()
        if result is None and error is None:
            error = CancelledError()
        if not isinstance(error, StateLogError):  # of another job of that name
            forget_state(job)
        if result is not None:
            key = job.program_name, job.graph_name, job.num_devices
            count, total = self._history.get(key, (0, 0.0))
            self._history[key] = count + 1, total + job.lease_seconds
        is_cancelled = isinstance(error, CancelledError)
        if error is not None and not is_cancelled:
            job.why = (f"{error}".partition("\n")[0] or type(error).__name__)[:_WHY_CHARACTERS]
        self._left(job, "done" if error is None else "cancelled" if is_cancelled else "failed")
        return job.future, result, error

    def _learn(self, run: Run, device: SharedDevice) -> None:
        """Note what a run took, for the next ones. The lock is held."""
        times = self._times_of(run.graph, run.jobs[0], device)
        seconds = sum(job.lease_seconds for job in run.jobs)
        if run.num_lanes > 1:
            times.record_lanes(run.num_lanes, seconds)
        else:
            times.record_alone(seconds, max(job.supersteps for job in run.jobs))

    def _times_of(self, graph: Graph | None, job: Job, device: SharedDevice) -> Times:
        """Return what such runs took; nothing is known where the name was another graph's. The lock is held."""
        kind, of = _kind(job, device), self._graph_of_times
        if graph is not None and (kind not in of or of[kind]() is not graph):
            if kind in of:
                self._times[kind] = Times()
            of[kind] = weakref.ref(graph)
        return self._times[kind]

    def _left(self, job: Job, state: JobState) -> None:
        del self._runs[job.number], self.running[job.number]
        self._end(job, state)

    def _end(self, job: Job, state: JobState) -> None:
        job.state, job.graph = state, None
        self.tenants[job.tenant].ended[state] += 1
        self._ended.append(job.row())


def _layout(job: Job) -> tuple[int, str]:
    """Return what jobs share that take the same bytes of a graph."""
    if isinstance(job, OwnJob):
        return id(job.graph), "copy"
    declared = job.program.declaration
    way = "both" if declared.both_ways else "directed" if declared.directed else "undirected"
    return id(job.graph), way


def _may_run(job: Job, device: SharedDevice) -> bool:
    return not isinstance(job, OwnJob) or job.code.runs_on(device.engine)


def _kind(job: Job, device: SharedDevice) -> tuple[str, str, str]:
    return job.program_name, job.graph_name, device.engine


def is_lost() -> bool:
    """Tell whether an error ended all that this process can do on its GPU."""
    from sigps.device.cuda import has_sticky_error

    return has_sticky_error()


def _free_bytes(ordinal: int | None, num_on_cores: int) -> int:
    if ordinal is None:
        return available_memory() // num_on_cores
    from sigps.device.cuda import counting_from, free_bytes

    with counting_from(ordinal):
        return free_bytes()
