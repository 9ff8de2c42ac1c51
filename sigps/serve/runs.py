"""A run of a pool: what one thread does for a job, or for several that were joined."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from sigps.engine.stats import SuperstepStats
from sigps.errors import ConfigError
from sigps.graph.graph import Graph
from sigps.job.many import run_lanes
from sigps.job.result import Result
from sigps.job.run import run as run_alone
from sigps.serve.job import Job, JobState
from sigps.serve.joining import Times, are_equal, differing, is_joinable, lanes_of, most_lanes, why_apart
from sigps.serve.states import SAVE_SECONDS
from sigps.system.checkpoint.state_log import Checkpoint
from sigps.system.turns import awaited_word, taking_turns

__all__ = ["Joined", "LanesBroken", "Merged", "Run", "copies_of", "results_of"]


class Joined(Exception):  # noqa: N818  (no error: it goes on in lanes)
    """A run has its first lease, and jobs beside the one that it was made ready for."""


class Merged(Exception):  # noqa: N818
    """All jobs of a run have joined another one."""


class LanesBroken(Exception):  # noqa: N818
    """A run of several lanes ended with an error of one of them; each job runs by itself."""


class Run:
    """A job, or several, in one thread of a pool. The pool's lock is held where jobs come or go.

    Attributes:
        number: That of its first job, whose later runs have it, too.
        jobs: Those that it is for: who is cancelled before the others leaves it. None where another run took them over.
        started: The job whose program it was made ready for.
        graph: On which it runs.
        is_open: Whether it still takes jobs: until its first lease.
        granted: Released when it has the device.
        awaited: [1], not 0 where its lease is to end early.
        admitted: All jobs that it took, whose bytes it keeps to its end.
        num_lanes: How many it went in; 1 before that, and alone.
        ends_soon: Whether it is expected to end with the lease that it has or waits for.
        has_several_devices: Whether it has several for each lease.
    """

    def __init__(self, job: Job, *, is_open: bool, engine: str) -> None:
        self.number, self.started = job.number, job
        self.jobs: tuple[Job, ...] = (job,)  # replaced, not changed: other threads look through it
        self.admitted = [job]
        assert job.graph is not None
        self.graph: Graph = job.graph
        self.is_open = is_open and is_joinable(job)
        self.granted, self.awaited = threading.Semaphore(0), awaited_word(job.number)
        self.num_lanes, self.ends_soon = 1, False
        self.has_several_devices = job.num_devices > 1
        self._engine = engine
        self._is_settled = not self.is_open

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for it."""
        return all(job.is_cancelled for job in self.jobs)

    @property
    def is_suspending(self) -> bool:
        """Whether its job, which then is its only one, is to save its state."""
        return self.jobs[0].is_suspending

    @is_suspending.setter
    def is_suspending(self, value: bool) -> None:
        self.jobs[0].is_suspending = value

    def takes(self, job: Job, times: Times, quantum: float) -> bool:
        """Tell whether a job may join it: the same as one of its jobs, or one lane more that pays."""
        first = self.jobs[0]
        if not self.is_open or self.is_cancelled or not is_joinable(job) or not are_equal(first, job):
            return False
        lanes = lanes_of(self.jobs)
        if any(not differing(lane[0], job) for lane in lanes):
            return True
        if len(lanes) >= most_lanes(times, quantum):
            return False
        varied = [name for name in differing(first, job) if name != "seed"]
        return not why_apart(_derived(first, self._engine), first.options, varied)

    def join(self, job: Job) -> None:
        """Take a job, which then stands where the others stand."""
        job.state = self.jobs[0].state
        self.jobs = (*self.jobs, job)
        self.admitted.append(job)

    def drop(self, job: Job) -> None:
        """Go on without a job."""
        self.jobs = tuple(other for other in self.jobs if other is not job)

    def take_over(self, job: Job, other: Run) -> None:
        """Take a job of a run that waits for its first lease, too; that may have none afterwards."""
        other.drop(job)
        other.admitted.remove(job)
        self.join(job)

    def set_state(self, state: JobState) -> None:
        """Say of all its jobs where they stand."""
        for job in self.jobs:
            job.state = state

    def settle(self) -> None:
        """Have the first lease: after it no job joins.

        Raises:
            Joined: If it is not ready for what it is to do: for one lane, that of `started`.
        """
        if self._is_settled:
            return
        self._is_settled = True
        jobs = self.jobs
        for job in jobs:
            job.joined = len(jobs) - 1
        lanes = lanes_of(jobs)
        if len(lanes) > 1 or differing(lanes[0][0], self.started):
            raise Joined

    def record(self, stats: Sequence[SuperstepStats]) -> None:
        """Take the statistics of its supersteps so far."""
        for job in self.jobs:
            job.record(stats)


def results_of(run: Run, turns: Any, device: Any) -> dict[int, Result]:
    """Run it, in this thread, and return the results by the jobs' numbers.

    Args:
        run: What runs.
        turns: The run's turns (`devices.RunTurns`).
        device: Where it runs (`devices.SharedDevice`).

    Raises:
        LanesBroken: If one of several lanes failed, or they cannot be lanes.
    """
    options: dict[str, Any] = {"device": device.engine, "threads": device.threads}
    while True:
        turns.prepare()
        job = run.started
        try:
            with taking_turns(turns):
                result = run_alone(
                    job.program, run.graph, progress=run.record, **options, **_saving(job), **job.options
                )
        except Joined:
            device.give_back(run)
        else:
            break
        lanes = lanes_of(run.jobs)
        if len(lanes) > 1:
            return _in_lanes(run, lanes, turns, options)
        run.started = lanes[0][0]  # the job that it was made ready for is cancelled
    jobs = run.jobs
    for job in jobs:
        job.supersteps = result.supersteps
    return {job.number: own for job, own in zip(jobs, copies_of(result, len(jobs)), strict=True)}


def _in_lanes(
    run: Run, lanes: Sequence[Sequence[Job]], turns: Any, options: dict[str, Any]
) -> dict[int, Result]:
    found: dict[int, Result] = {}
    run.num_lanes = len(lanes)
    turns.prepare()
    given = {name: value for name, value in lanes[0][0].options.items() if name != "seed"}
    seeds = [lane[0].options.get("seed", 0) for lane in lanes]
    try:
        with taking_turns(turns):
            results = run_lanes([lane[0].program for lane in lanes], run.graph, seeds, **options, **given)
            for lane, result in zip(lanes, results, strict=True):
                for job, own in zip(lane, copies_of(result, len(lane)), strict=True):
                    job.supersteps = result.supersteps
                    found[job.number] = own
    except Exception as error:
        if run.is_cancelled:
            raise
        raise LanesBroken(str(error) if isinstance(error, ConfigError) else "") from error
    return found


def _derived(job: Job, engine: str) -> Any:
    from sigps.job.preparing import check_program

    return check_program(job.program, engine, job.options.get("precision", "auto"))


def copies_of(result: Result, count: int) -> list[Result]:
    """Return so many results that share no array that may be changed; one is the result itself."""
    if count == 1:
        return [result]
    found, lock = [copy.copy(result) for _ in range(count)], threading.Lock()
    again = getattr(result._fields, "again", None)
    for own in found:
        own._fields = again() if again else _CopiedFields(result._fields, lock)
        own.aggregators = copy.deepcopy(result.aggregators)
    return found


class _CopiedFields(Mapping[str, NDArray[Any]]):
    """Fields of a result that several jobs have, each copied when it is first read: by whom reads, not in a lease.

    Args:
        fields: Those that nobody changes.
        lock: Of all their readers.
    """

    def __init__(self, fields: Mapping[str, NDArray[Any]], lock: threading.Lock) -> None:
        self._shared, self._lock = fields, lock
        self._copied: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        with self._lock:
            if name not in self._copied:
                self._copied[name] = self._shared[name].copy()
            return self._copied[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shared)

    def __len__(self) -> int:
        return len(self._shared)


def _saving(job: Job) -> dict[str, Any]:
    """Return the options of a run whose state is saved."""
    if job.folder is None:
        return {}
    return {"checkpoint": Checkpoint(job.folder, seconds=SAVE_SECONDS), "resume": True}
