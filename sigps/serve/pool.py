"""A pool: graphs that stay in memory, and jobs on them that share devices by leases, in one process."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from types import TracebackType
from typing import Any, get_args
from urllib.parse import quote

from sigps.device.cpu import available_cores
from sigps.errors import ConfigError, StateLogError, nearest
from sigps.graph.card import head_table
from sigps.graph.graph import Graph
from sigps.graph.load import load
from sigps.host_memory import available_memory, bytes_of
from sigps.job.preparing import check_device
from sigps.job.result import Result
from sigps.job.run import run, run_options
from sigps.model.vertex import Vertex
from sigps.report.progress import is_notebook
from sigps.serve.admission import Budget, estimate
from sigps.serve.devices import JobTurns, SharedDevice, Suspended, Tenant
from sigps.serve.job import Estimate, Job, JobRow, JobState
from sigps.serve.overview import DeviceRow, GraphRow, Overview, TenantRow
from sigps.serve.own_code import OwnCode, OwnJob, check_own_code
from sigps.serve.placing import GpuLoad, PlacingPolicy, choose_gpu
from sigps.serve.shared_graph import SharedGraph, bytes_to_share
from sigps.serve.turns import Ready, TurnPolicy, joined
from sigps.system.checkpoint.state_log import Checkpoint
from sigps.system.turns import taking_turns

__all__ = ["Pool", "pool"]

_SHOWN = 100  # ended jobs in the table
_WATCH_SECONDS = 0.25
_SAVE_SECONDS = 60.0  # from one state log of a job with a name to the next
_OF_POOL = (
    "device",
    "threads",
    "checkpoint",
    "resume",
    "faults",
    "transport",
    "progress",
    "host_memory",
    "device_memory",
)


def pool(
    devices: Sequence[str] | str = "auto",
    *,
    memory: int | None = None,
    quantum: float = 0.01,
    turns: TurnPolicy = "fair_share",
    placing: PlacingPolicy = "least_memory",
    snapshots: str | os.PathLike[str] | None = None,
) -> Pool:
    """Return a pool of devices that many jobs share, on graphs that stay in memory. Use it in a `with`.

    A job is `sigps.run` with the same result. Jobs take turns: each runs as many supersteps as fit in the quantum, at
    least one, and then the pool chooses the job of the next lease. What runs as one superstep, or is found at once, is
    not interrupted; its tenant is charged with what it took.

    Args:
        devices: `"cpu"`, `"cuda"`, `"python"`, or `"auto"`: the GPU where there is one, else CPU cores. Several,
            such as `["cpu", "cpu"]`, run jobs at the same time; those on CPU cores have equal shares of them.
        memory: Bytes that graphs and jobs on a device may take; None for what is available now. A job that does not fit
            waits.
        quantum: Seconds of a lease.
        turns: Which job is next: `"fair_share"` by weights of tenants, `"round_robin"`, `"least_attained"`.
        placing: Which device a job gets: `"least_memory"`, `"round_robin"` or `"weighted_times"`.
        snapshots: A folder for the states of jobs with a name, `submit(..., name="nightly")`, which can be suspended.

    Raises:
        ConfigError: If an option is wrong.
        DeviceError: If a device is not there.

    >>> from sigps.apps import BFS
    >>> with pool("cpu") as shared:
    ...     shared.graph("path", Graph.from_edges([0, 1], [1, 2]))
    ...     job = shared.submit(BFS(source=0), "path", tenant="ada")
    ...     print(job.result()["level"].tolist())
    [0, 1, 2]
    """
    return Pool(devices, memory, quantum, turns, placing, snapshots)


class Pool:
    """Graphs, devices, tenants and jobs; `pool` makes one."""

    def __init__(
        self,
        devices: Sequence[str] | str,
        memory: int | None,
        quantum: float,
        turns: TurnPolicy,
        placing: PlacingPolicy,
        snapshots: str | os.PathLike[str] | None = None,
    ) -> None:
        self._snapshots = None if snapshots is None else Path(os.path.abspath(snapshots))
        names = _checked_devices(devices)
        if isinstance(quantum, bool) or not isinstance(quantum, (int, float)) or not 0 < quantum < math.inf:
            raise ConfigError(f"quantum={quantum!r} must be seconds above 0")
        if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1):
            raise ConfigError(f"memory={memory!r} must be a number of bytes, at least 1, or None")
        _check_policy("placing", placing, ("round_robin", "least_memory", "weighted_times"))
        self._lock, self._preparing = threading.RLock(), threading.Lock()
        self._tenants: dict[str, Tenant] = defaultdict(Tenant)
        on_cores = sum(name != "cuda" for name in names)
        threads = max(1, available_cores() // max(1, on_cores))
        self._devices = [
            SharedDevice(f"{name} {i}", name, threads, self._tenants, self._lock)
            for i, name in enumerate(names)
        ]
        self._budgets = [Budget(memory or _free_bytes(name, on_cores)) for name in names]
        self._quantum, self._placing, self._last = float(quantum), placing, -1
        self._graphs: dict[str, Graph] = {}
        self._copies: dict[int, SharedGraph] = {}
        self._waiting: deque[Job] = deque()
        self._running: dict[int, Job] = {}
        self._suspended: dict[int, Job] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._ended: deque[JobRow] = deque(maxlen=_SHOWN)
        self._history: dict[tuple[str, str], tuple[int, float]] = {}
        self._count, self._is_open, self._began = 0, True, time.time()
        self.set_turns(turns)

    def graph(self, name: str, source: Graph | str | os.PathLike[str], **options: Any) -> None:
        """Keep a graph under a name; a graph of that name before stays with its jobs.

        Args:
            name: For `submit`.
            source: A graph of one process, or a file.
            options: Of `sigps.load`, for a file.

        Raises:
            ConfigError: If the graph is spread over several ranks.
            GraphError: If the file cannot be read.
        """
        found = source if isinstance(source, Graph) else load(source, **options)
        if found.group.size > 1:
            raise ConfigError("a pool is of one process; this graph is spread over several ranks")
        with self._lock:
            self._forget(self._graphs.pop(name, None))
            self._graphs[name] = found

    def drop(self, name: str) -> None:
        """Keep a graph no longer; jobs on it go on.

        Raises:
            ConfigError: If there is no such graph.
        """
        with self._lock:
            self._graph(name)
            self._forget(self._graphs.pop(name))
            self._admit()

    def graphs(self) -> dict[str, Graph]:
        """Return the graphs that are kept, by name."""
        with self._lock:
            return dict(self._graphs)

    def submit(
        self,
        program: Vertex,
        graph: str,
        *,
        tenant: str = "",
        weight: float | None = None,
        priority: int = 0,
        name: str | None = None,
        **options: Any,
    ) -> Job:
        """Take a job; it begins when it fits into memory. Jobs that wait for memory begin in order of submission.

        Args:
            program: As in `sigps.run`.
            graph: The name of a graph.
            tenant: Whose job it is: leases are shared among tenants.
            weight: The tenant's share from now on; 1 at first.
            priority: Of the tenant's jobs, those of the highest priority have the tenant's leases.
            name: With it the job's state is saved in the pool's folder `snapshots`, every minute and by `suspend`. A
                job that was suspended when its pool was closed, or whose process was killed, goes on from there when it
                is submitted with the same name again, to this pool or a later one. Nothing is then sent out of turn.
            options: Of `sigps.run`, but for those that the pool decides, such as `device`.

        Raises:
            ConfigError: If an option is wrong, or the job would not fit with no other job there: it says the bytes.
            CompileError: If compute() cannot be compiled.
        """
        _check_job(tenant, weight, priority, options)
        with self._lock:
            found = self._graph(graph)
        if not isinstance(program, Vertex):
            raise ConfigError(f"submit() takes an instance of a Vertex subclass, not {program!r}")
        key = type(program).__name__, graph
        count, total = self._history.get(key, (0, 0.0))
        needed = estimate(program, found, self._devices[0].engine, options, total / count if count else None)
        folder = None if name is None else self._folder(tenant, name)

        def make(number: int) -> Job:
            if folder is not None and any(job.folder == folder for job in self._active()):
                raise ConfigError(f"tenant {tenant!r} has a job named {name!r} already: give another name")
            job = Job(number, program, graph, found, tenant, priority, needed, dict(options), self._cancel)
            job.folder = folder
            return job

        return self._take(make, weight)

    def suspend(self, job: Job) -> bool:
        """Let a job with a name save its state after its lease and give back its memory; return whether it is to.

        It does not, if it has ended, is suspended, or waits for memory. A state that cannot be written lets it go on.

        Raises:
            ConfigError: If the job has no name.
        """
        if job.folder is None:
            raise ConfigError(
                f"job {job.number} has no name to go on by: submit it with name=, where it can be saved"
            )
        with self._lock:
            if job.number not in self._running or job.is_cancelled:
                return False
            job.is_suspending = True
            for device in self._devices:
                device.wake(job)
            return True

    def resume(self, job: Job) -> bool:
        """Let a job go on, when it fits into memory, if it is suspended or was asked to be; return whether it was."""
        with self._lock:
            if job.number in self._running and job.is_suspending:
                job.is_suspending = False
                return True
            if self._suspended.pop(job.number, None) is None:
                return False
            job.state = "waiting for memory"
            self._enter(job)
            return True

    def stop(self) -> None:
        """Take no jobs any more; suspend those with a name, and cancel the others. `close` waits until that is done."""
        with self._lock:
            self._is_open = False
            for job in self._active():
                if job.folder is None:
                    self._cancel(job)
                elif job in self._waiting:  # its state, if it has one, stays
                    self._waiting.remove(job)
                    self._suspended[job.number] = job
                else:
                    self.suspend(job)

    def _folder(self, tenant: str, name: str) -> Path:
        """Return where the state of a job with a name lies."""
        if self._snapshots is None:
            raise ConfigError("name= is of jobs whose state is saved: give the pool a folder, snapshots=")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
            raise ConfigError(f"name={name!r} must be 1 to 100 letters, digits, dots, dashes or underscores")
        return self._snapshots / f"tenant-{quote(tenant, safe='')}" / name

    def submit_own(
        self,
        program: str,
        graph: str,
        *,
        params: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        memory: int | str = "2GB",
        lease_seconds: float = 60.0,
        cpu_seconds: int = 3600,
        tenant: str = "",
        weight: float | None = None,
        priority: int = 0,
        **options: Any,
    ) -> Job:
        """Take a job whose code this process does not import: it runs in a process of its own, on CPU cores.

        That process can read the graph, and nothing else of this one. What it does by accident harms no other job: a
        crash, an endless loop or an array too large ends it, and the job fails with the reason. It runs as this user:
        it is no cage for code that means harm. Its start takes about a second. `job.cancel()` ends it at once.

        Args:
            program: `path/to/file.py:Class` or `package.module:Class`.
            graph: The name of a graph; its first such job makes a copy for all of them, O(bytes).
            params: The program's parameters, plain values.
            folder: Where the process works, and a relative path starts; None for the current one.
            memory: The most bytes of private memory of the process; the job is admitted by them.
            lease_seconds: The most that a lease may take; then the process is ended.
            cpu_seconds: The most that all its threads may compute.
            tenant: Whose job it is.
            weight: The tenant's share from now on; 1 at first.
            priority: Among the tenant's jobs.
            options: As in `submit`.

        Raises:
            ConfigError: If an option is wrong, the pool has no device of CPU cores, or the bytes never fit.
        """
        _check_job(tenant, weight, priority, options)
        where = os.path.abspath(folder or os.getcwd())
        check_own_code(program, params or {}, where, lease_seconds, cpu_seconds)
        if all(device.engine == "cuda" for device in self._devices):
            raise ConfigError(
                "own code runs on CPU cores yet, and this pool has none: devices=['cuda', 'cpu']"
            )
        code = OwnCode(
            program, dict(params or {}), where, bytes_of(memory, "memory"), lease_seconds, cpu_seconds
        )
        with self._lock:
            found = self._graph(graph)
        needed = Estimate({"its process": code.num_bytes}, code.num_bytes, bytes_to_share(found), None)
        return self._take(
            lambda number: OwnJob(
                number, code, graph, found, tenant, priority, needed, dict(options), self._cancel
            ),
            weight,
        )

    def _take(self, make: Callable[[int], Job], weight: float | None) -> Job:
        """Take a job that `make` makes of its number."""
        with self._lock:
            if not self._is_open:
                raise ConfigError("this pool is closed")
            job = make(self._count)
            for number, budget in enumerate(self._budgets):
                try:
                    budget.check(_layout(job), job.estimate)
                    break
                except ConfigError:
                    if number == len(self._budgets) - 1:
                        raise
            self._count += 1
            mine = self._tenants[job.tenant]
            mine.weight = mine.weight if weight is None else float(weight)
            self._enter(job)
        return job

    def _enter(self, job: Job) -> None:
        """Let a job wait for memory; its tenant has no credit for the time without jobs. The lock is held."""
        competing = self._competing()
        if all(other.tenant != job.tenant for other in competing):
            mine, others = self._tenants[job.tenant], {other.tenant for other in competing}
            tenants = [(name, self._tenants[name]) for name in others]
            mine.charged = joined(
                mine.charged, mine.weight, [Ready(0, name, t.weight, t.charged) for name, t in tenants]
            )
        self._waiting.append(job)
        self._admit()

    def set_turns(self, policy: TurnPolicy) -> None:
        """Choose jobs by another policy from now on.

        Raises:
            ConfigError: If there is no such policy.
        """
        _check_policy("turns", policy, get_args(TurnPolicy))
        with self._lock:
            for device in self._devices:
                device.policy = policy

    def jobs(self) -> list[JobRow]:
        """Return the table of jobs: those that have not ended and the last hundred others, newest first."""
        with self._lock:
            rows = [*self._ended, *(job.row() for job in self._active())]
        return sorted(rows, key=lambda row: -row.number)

    def overview(self) -> Overview:
        """Return the pool's devices, tenants, graphs and jobs, as plain numbers."""
        with self._lock:
            active = Counter(job.tenant for job in self._competing())
            running: dict[str, float] = defaultdict(float)
            for device in self._devices:
                holder, seconds = device.running()
                if holder is not None:
                    running[holder] += seconds
            devices = [
                DeviceRow(
                    device.name,
                    sum(job.device_name == device.name for job in self._running.values()),
                    device.leases,
                    device.lease_seconds(),
                    budget.num_bytes,
                    budget.graph_bytes,
                    budget.own_bytes,
                )
                for device, budget in zip(self._devices, self._budgets, strict=True)
            ]
            tenants = [
                TenantRow(
                    name,
                    tenant.weight,
                    tenant.lease_seconds + running[name],
                    active[name],
                    *(tenant.ended[state] for state in ("done", "failed", "cancelled")),
                )
                for name, tenant in sorted(self._tenants.items())
            ]
            graphs = [GraphRow(name, g.num_vertices, g.num_edges) for name, g in self._graphs.items()]
            return Overview(self._began, time.time(), devices, tenants, graphs, self.jobs())

    def charged(self) -> dict[str, float]:
        """Return the seconds of leases that each tenant was charged with; one that was away has no credit."""
        with self._lock:
            return {name: tenant.charged for name, tenant in self._tenants.items()}

    def close(self) -> None:
        """Wait for all jobs that are not suspended; then graphs are no longer kept.

        What waits for a suspended one gets `CancelledError`; its state stays for a later pool.
        """
        with self._lock:
            self._is_open = False
        while True:
            with self._lock:
                threads = list(self._threads.values())
            if not threads:
                break
            for thread in threads:
                thread.join()
        for job in self._active():  # suspended: their states stay
            self._leave(job)
        self._graphs.clear()
        self._copies.clear()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for job in self._active():
                self._cancel(job)
        self.close()

    def watch(self, seconds: float | None = None) -> None:
        """Show the table of jobs in a notebook while they run, until all have ended or are suspended.

        Interrupting the cell ends the watching, and no job. Outside a notebook it only waits.

        Args:
            seconds: End after so many seconds; None for no limit.
        """
        show: Callable[[str], None] = lambda _: None  # noqa: E731
        if is_notebook():
            from IPython.display import HTML, display

            shown = display(HTML(self._repr_html_()), display_id=True)
            show = lambda text: shown.update(HTML(text))  # noqa: E731
        end, before = math.inf if seconds is None else time.monotonic() + seconds, ""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                is_last = not self._competing() or time.monotonic() >= end
                if (text := self._repr_html_()) != before:
                    show(text)
                    before = text
                if is_last:
                    return
                time.sleep(_WATCH_SECONDS)

    def _repr_html_(self) -> str:
        """Show the table of jobs in a notebook."""
        head = ("job", "program", "graph", "tenant", "priority", "state", "supersteps", "seconds", "device")
        rows = [
            (
                *(row.number, row.program, row.graph, row.tenant, row.priority, row.state),
                *(row.supersteps, row.lease_seconds, row.device or ""),
            )
            for row in self.jobs()
        ]
        return head_table(head, rows)

    def _forget(self, graph: Graph | None) -> None:
        for budget in self._budgets:
            for way in ("both", "directed", "undirected", "copy"):
                budget.forget((id(graph), way))
        self._copies.pop(id(graph), None)

    def _graph(self, name: str) -> Graph:
        if name not in self._graphs:
            known = ", ".join(self._graphs) or "none"
            raise ConfigError(f"the pool has no graph {name!r}{nearest(name, self._graphs)} It has: {known}")
        return self._graphs[name]

    def _competing(self) -> list[Job]:
        with self._lock:
            return [*self._waiting, *self._running.values()]

    def _active(self) -> list[Job]:
        with self._lock:
            return [*self._waiting, *self._running.values(), *self._suspended.values()]

    def _admit(self) -> None:
        """Start the jobs that fit, in order. The lock is held."""
        while self._waiting:
            job = self._waiting[0]
            assert job.graph is not None
            key = _layout(job)
            loads = [self._load(i, key, job) for i in range(len(self._devices))]
            chosen = choose_gpu(
                self._placing,
                loads,
                program=job.program_name,
                num_bytes=0,
                seconds=job.estimate.seconds or 1.0,
                last=self._last,
            )
            if chosen is None:
                return
            self._waiting.popleft()
            self._last, job.device_name = chosen, self._devices[chosen].name
            self._budgets[chosen].take(key, job.estimate)
            self._running[job.number] = job
            thread = threading.Thread(target=self._work, args=(job, chosen), name=f"sigps job {job.number}")
            self._threads[job.number] = thread
            thread.start()

    def _load(self, number: int, key: tuple[int, str], job: Job) -> GpuLoad:
        """Return a device as `choose_gpu` sees it: bytes left once the job is there, negative where it does not fit."""
        budget, device = self._budgets[number], self._devices[number]
        missing = budget.missing_bytes(key, job.estimate)
        if isinstance(job, OwnJob) and device.engine == "cuda":
            missing = budget.num_bytes  # a process of its own has no GPU
        here = [other for other in self._running.values() if other.device_name == device.name]
        return GpuLoad(
            -missing if missing else budget.free_bytes,
            seconds=sum(other.estimate.seconds or 1.0 for other in here),
            programs=tuple(other.program_name for other in here),
        )

    def _work(self, job: Job, number: int) -> None:
        """Run one job, in its own thread."""
        device, error = self._devices[number], None
        result: Any = None  # of own code its tables
        turns = JobTurns(job, device, self._quantum, self._preparing)
        graph = job.graph
        assert graph is not None
        try:
            if isinstance(job, OwnJob):
                result = job.run_on(device, turns, lambda: self._shared(graph))
            else:
                result = _run_here(job, graph, device, turns)
        except BaseException as failure:  # the job's caller gets it
            error = failure
        turns.leave()
        is_suspended = isinstance(error, Suspended) and not job.is_cancelled
        if not is_suspended and not isinstance(error, StateLogError):  # of another job of that name
            _forget_state(job)
        with self._lock:
            del self._running[job.number], self._threads[job.number]
            self._budgets[number].give_back(job.estimate)
            if is_suspended and not job.is_cancelled:
                job.device_name, wanted = None, job.is_suspending
                job.is_suspending = False
                if wanted:
                    job.state = "suspended"
                    self._suspended[job.number] = job
                    self._admit()
                else:  # `resume` came while it was saving
                    job.state = "waiting for memory"
                    self._enter(job)
                return
            if isinstance(error, Suspended):
                error = CancelledError()
            if result is not None:
                key = job.program_name, job.graph_name
                count, total = self._history.get(key, (0, 0.0))
                self._history[key] = count + 1, total + job.lease_seconds
            self._end(job, "done" if error is None else _state_of(error))
            self._admit()
        if result is not None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)

    def _end(self, job: Job, state: JobState) -> None:
        job.state, job.graph = state, None
        self._tenants[job.tenant].ended[state] += 1
        self._ended.append(job.row())

    def _cancel(self, job: Job) -> bool:
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                _forget_state(job)
                self._end(job, "cancelled")
                job.future.set_exception(CancelledError())
                self._admit()
                return True
            if self._suspended.get(job.number) is job:
                _forget_state(job)
                self._leave(job)
                return True
            if job.number not in self._running:
                return False
            job.is_cancelled = True
            for device in self._devices:
                device.wake(job)
        job.stop()
        return True

    def _leave(self, job: Job) -> None:
        """End a suspended job."""
        with self._lock:
            del self._suspended[job.number]
            self._end(job, "cancelled")
        job.future.set_exception(CancelledError())

    def _shared(self, graph: Graph) -> SharedGraph:
        """Return the copy of a graph for other processes; the first call makes it."""
        with self._preparing:
            if id(graph) not in self._copies:
                copy = SharedGraph(graph)
                with self._lock:
                    if graph not in self._graphs.values():
                        return copy  # dropped meanwhile: for this job alone
                    self._copies[id(graph)] = copy
            return self._copies[id(graph)]


def _run_here(job: Job, graph: Graph, device: SharedDevice, turns: JobTurns) -> Result:
    """Run a job in this thread."""
    turns.prepare()
    with taking_turns(turns):
        result = run(
            job.program,
            graph,
            device=device.engine,
            threads=device.threads,
            progress=job.record,
            **_saving(job),
            **job.options,
        )
    job.supersteps = result.supersteps
    return result


def _saving(job: Job) -> dict[str, Any]:
    """Return the options of a run whose state is saved."""
    if job.folder is None:
        return {}
    return {"checkpoint": Checkpoint(job.folder, seconds=_SAVE_SECONDS), "resume": True}


def _forget_state(job: Job) -> None:
    """Remove the state of a job that has ended."""
    if job.folder is not None:
        shutil.rmtree(job.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # others of the tenant are there
            job.folder.parent.rmdir()


def _layout(job: Job) -> tuple[int, str]:
    """Return what jobs share that take the same bytes of a graph."""
    if isinstance(job, OwnJob):
        return id(job.graph), "copy"
    declared = job.program.declaration
    way = "both" if declared.both_ways else "directed" if declared.directed else "undirected"
    return id(job.graph), way


def _state_of(error: BaseException) -> JobState:
    return "cancelled" if isinstance(error, CancelledError) else "failed"


def _free_bytes(device: str, num_on_cores: int) -> int:
    if device != "cuda":
        return available_memory() // num_on_cores
    from sigps.device.cuda import free_bytes

    return free_bytes()


def _checked_devices(devices: Sequence[str] | str) -> list[str]:
    from sigps.engine.table import engine_of

    names = [devices] if isinstance(devices, str) else list(devices)
    if not names:
        raise ConfigError("devices=[] must name at least one device")
    here = [("cpu" if engine_of("cuda").missing() else "cuda") if n == "auto" else n for n in names]
    for name in here:
        check_device(name)
    if here.count("cuda") > 1:
        raise ConfigError("a pool is built for one GPU yet: one process uses one")
    return here


def _check_policy(option: str, policy: str, known: tuple[str, ...]) -> None:
    if policy not in known:
        raise ConfigError(
            f"{option}={policy!r} is not one of {', '.join(known)}{nearest(str(policy), known)}"
        )


def _check_job(tenant: Any, weight: Any, priority: Any, options: dict[str, Any]) -> None:
    if not isinstance(tenant, str):
        raise ConfigError(f"tenant={tenant!r} must be a string")
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if weight is not None and not (is_number and 0 < weight < math.inf):
        raise ConfigError(f"weight={weight!r} must be a number above 0")
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise ConfigError(f"priority={priority!r} must be a whole number")
    run_options(options)
    for name in _OF_POOL:
        if name in options:
            raise ConfigError(
                f"{name}= is not for jobs of a pool, which has devices, threads and progress of its own"
            )
