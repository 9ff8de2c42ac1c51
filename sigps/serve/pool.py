"""A pool: graphs that stay in memory, and jobs on them that share devices by leases, in one process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, get_args

from sigps.device.cpu import available_cores
from sigps.errors import ConfigError, nearest
from sigps.graph.graph import Graph
from sigps.graph.load import load
from sigps.graph.whole import whole_graph
from sigps.host_memory import bytes_of
from sigps.job.importing import stop_if_imported
from sigps.model.vertex import Vertex
from sigps.serve.admission import estimate
from sigps.serve.dispatcher import Dispatcher
from sigps.serve.job import Estimate, Job, JobRow
from sigps.serve.joining import Joining
from sigps.serve.overview import Overview
from sigps.serve.own_code import OwnCode, OwnJob, check_own_code
from sigps.serve.own_ranks import check_ranks
from sigps.serve.placing import PlacingPolicy
from sigps.serve.pool_options import (
    check_choice,
    check_job,
    check_numbers,
    check_placing,
    check_turns,
    checked_devices,
)
from sigps.serve.pool_views import overview_of_pool, show_until, table_of_jobs
from sigps.serve.shared_graph import SharedGraph, bytes_to_share
from sigps.serve.states import folder_of
from sigps.serve.trusted import engine_of_ranks, trusted_program
from sigps.serve.turns import TurnPolicy

__all__ = ["Pool", "pool"]


def pool(
    devices: Sequence[str] | str = "auto",
    *,
    memory: int | str | None = None,
    quantum: float = 0.01,
    turns: TurnPolicy = "fair_share",
    placing: PlacingPolicy = "least_memory",
    lanes: Joining = "auto",
    threads: int | None = None,
    snapshots: str | os.PathLike[str] | None = None,
) -> Pool:
    """Return a pool of devices that many jobs share, on graphs that stay in memory. Use it in a `with`.

    A job is `sigps.run` with the same result. Jobs take turns: each runs as many supersteps as fit in the quantum, at
    least one, and then the pool chooses the job of the next lease. What runs as one superstep, or is found at once, is
    not interrupted; its tenant is charged with what it took.

    Args:
        devices: `"cpu"`, `"cuda"`, `"python"`, or `"auto"`: the GPU where there is one, else CPU cores. Several run
            jobs at the same time, one job on one of them: `["cuda", "cuda"]` are the first two GPUs, each of which
            gets the graphs of its jobs; of `["cpu", "cpu"]` each has half of the cores.
        memory: Bytes that graphs and jobs on a device may take, or a text such as `"8GB"`; None for what is available
            now. A job that does not fit waits.
        quantum: Seconds of a lease.
        turns: Which job is next: `"fair_share"` by weights of tenants, `"round_robin"`, `"least_attained"`.
        placing: Which device a job gets: `"least_memory"`, `"round_robin"` or `"weighted_times"`.
        lanes: `"auto"`: jobs of one class on one graph with equal options that wait for their first lease become one
            run: those with equal parameters have one, copied for each; those whose parameters differ go in lanes, as
            in `sigps.run_many`, where results have the bits of runs alone and it was faster so far. `"never"`: each
            job is a run.
        threads: Of a run on CPU cores; None for an equal share of this process's cores for each such device.
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
    stop_if_imported()
    return Pool(devices, memory, quantum, turns, placing, lanes, threads, snapshots)


class Pool:
    """Graphs, devices, tenants and jobs; `pool` makes one."""

    def __init__(
        self,
        devices: Sequence[str] | str,
        memory: int | str | None,
        quantum: float,
        turns: TurnPolicy,
        placing: PlacingPolicy,
        lanes: Joining = "auto",
        threads: int | None = None,
        snapshots: str | os.PathLike[str] | None = None,
    ) -> None:
        self._snapshots = None if snapshots is None else Path(os.path.abspath(snapshots))
        names = checked_devices(devices)
        check_numbers(quantum, threads)
        num_bytes = None if memory is None else bytes_of(memory, "memory")
        check_placing(placing)
        check_choice("lanes", lanes, get_args(Joining))
        on_cores = max(1, sum(name != "cuda" for name in names))
        threads = threads or max(1, available_cores() // on_cores)
        self._dispatcher = Dispatcher(
            names, threads, num_bytes, float(quantum), placing, lanes, shared=self._shared
        )
        self._devices, self._lock = self._dispatcher.devices, self._dispatcher.lock
        self._graphs: dict[str, Graph] = {}
        self._copies: dict[int, SharedGraph] = {}
        self._is_open, self._began = True, time.time()
        self.set_turns(turns)

    def graph(self, name: str, source: Graph | str | os.PathLike[str], **options: Any) -> None:
        """Keep a graph under a name; a graph of that name before stays with its jobs.

        A graph whose rows are spread over several ranks is brought to each whole, O(edges) there: all of them call
        this, each with a pool of its own. So they do with a file, where `mpirun` started them.

        Args:
            name: For `submit`.
            source: A graph, or a file.
            options: Of `sigps.load`, for a file.

        Raises:
            GraphError: If the file cannot be read.
        """
        found = whole_graph(source if isinstance(source, Graph) else load(source, **options))
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
            self._dispatcher.admit()

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
        ranks: int = 1,
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
            ranks: On how many devices of the pool it runs, a process on each, which `mpirun` starts: each has the edges
                of a share of the vertices. It has all of them for each lease, together, and its tenant is charged for
                all. These processes import the program's class, which a file or a module must have.
            options: Of `sigps.run`, but for those that the pool decides, such as `device`.

        Raises:
            ConfigError: If an option is wrong, or the job would not fit with no other job there: it says the bytes.
            CompileError: If compute() cannot be compiled.
        """
        check_job(tenant, weight, priority, options)
        check_ranks(ranks)
        with self._lock:
            found = self._graph(graph)
        if not isinstance(program, Vertex):
            raise ConfigError(f"submit() takes an instance of a Vertex subclass, not {program!r}")
        seconds = self._dispatcher.mean_seconds(type(program).__name__, graph, ranks)
        engine = engine_of_ranks(self._devices, ranks)
        needed = estimate(program, found, engine, options, seconds, ranks)
        code = trusted_program(program, options, ranks, engine) if ranks > 1 else None
        folder = None if name is None else folder_of(self._snapshots, tenant, name)

        def make(number: int) -> Job:
            if folder is not None and any(job.folder == folder for job in self._dispatcher.active()):
                raise ConfigError(f"tenant {tenant!r} has a job named {name!r} already: give another name")
            about = graph, found, tenant, priority, needed, dict(options), self._dispatcher.cancel
            job = Job(number, program, *about) if code is None else OwnJob(number, code, *about, program)
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
            if job.number not in self._dispatcher.running or job.is_cancelled:
                return False
            job.is_suspending = True
            self._dispatcher.wake(job)
            return True

    def resume(self, job: Job) -> bool:
        """Let a job go on, when it fits into memory, if it is suspended or was asked to be; return whether it was."""
        with self._lock:
            if job.number in self._dispatcher.running and job.is_suspending:
                job.is_suspending = False
                return True
            if self._dispatcher.suspended.pop(job.number, None) is None:
                return False
            self._dispatcher.enter(job)
            return True

    def stop(self) -> None:
        """Take no jobs any more; suspend those with a name, and cancel the others. `close` waits until that is done."""
        jobs = self._dispatcher
        with self._lock:
            self._is_open = False
            for job in jobs.active():
                if job.folder is None:
                    jobs.cancel(job)
                elif job in jobs.waiting:  # its state, if it has one, stays
                    jobs.waiting.remove(job)
                    jobs.suspended[job.number] = job
                else:
                    self.suspend(job)

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
        gpu_memory: int | str | None = None,
        ranks: int = 1,
        tenant: str = "",
        weight: float | None = None,
        priority: int = 0,
        **options: Any,
    ) -> Job:
        """Take a job whose code this process does not import: it runs in a process of its own, or several.

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
            gpu_memory: The most bytes that it takes of a GPU of the pool, beside those of CUDA itself; its copy of the
                graph there is among them. None: it runs on CPU cores.
            ranks: On how many devices of the pool it runs, a process on each, which `mpirun` starts: each has the edges
                of a share of the vertices. It has all of them for each lease, together. Limits are of each.
            tenant: Whose job it is.
            weight: The tenant's share from now on; 1 at first.
            priority: Among the tenant's jobs.
            options: As in `submit`.

        Raises:
            ConfigError: If an option is wrong, the pool has no such device, or the bytes never fit.
        """
        check_job(tenant, weight, priority, options)
        where = os.path.abspath(folder or os.getcwd())
        check_own_code(program, params or {}, where, lease_seconds, cpu_seconds, ranks)
        num_bytes = bytes_of(memory, "memory")
        code = OwnCode(
            program,
            dict(params or {}),
            where,
            num_bytes,
            lease_seconds,
            cpu_seconds,
            0 if gpu_memory is None else bytes_of(gpu_memory, "gpu_memory"),
            ranks,
        )
        if not any(code.runs_on(device.engine) for device in self._devices):
            raise ConfigError(
                "gpu_memory= is for a pool with a GPU, and this one has none"
                if code.gpu_bytes
                else "this pool has no CPU cores: give own code gpu_memory=, or the pool devices=['cuda', 'cpu']"
            )
        with self._lock:
            found = self._graph(graph)
        if code.gpu_bytes:
            needed = Estimate({"its process": code.gpu_bytes}, code.gpu_bytes, 0, None)
        else:
            needed = Estimate({"its process": num_bytes}, num_bytes, bytes_to_share(found), None)
        return self._take(
            lambda number: OwnJob(
                number, code, graph, found, tenant, priority, needed, dict(options), self._dispatcher.cancel
            ),
            weight,
        )

    def _take(self, make: Callable[[int], Job], weight: float | None) -> Job:
        """Take a job that `make` makes of its number."""
        with self._lock:
            if not self._is_open:
                raise ConfigError("this pool is closed")
            return self._dispatcher.take(make, weight)

    def count_jobs_from(self, number: int) -> None:
        """Give the next job this number."""
        with self._lock:
            self._dispatcher.next_number = number

    @property
    def on_lost_gpu(self) -> Callable[[BaseException], None] | None:
        """What is called, in the thread of a job, when an error ended all that this process can do on its GPU."""
        return self._dispatcher.on_lost_gpu

    @on_lost_gpu.setter
    def on_lost_gpu(self, call: Callable[[BaseException], None] | None) -> None:
        self._dispatcher.on_lost_gpu = call

    def set_turns(self, policy: TurnPolicy) -> None:
        """Choose jobs by another policy from now on.

        Raises:
            ConfigError: If there is no such policy.
        """
        check_turns(policy)
        with self._lock:
            for device in self._devices:
                device.policy = policy

    def jobs(self) -> list[JobRow]:
        """Return the table of jobs: those that have not ended and the last hundred others, newest first."""
        return self._dispatcher.rows()

    def overview(self) -> Overview:
        """Return the pool's devices, tenants, graphs and jobs, as plain numbers."""
        with self._lock:
            return overview_of_pool(self._dispatcher, self._graphs, self._began)

    def charged(self) -> dict[str, float]:
        """Return the seconds of leases that each tenant was charged with; one that was away has no credit."""
        with self._lock:
            return {name: tenant.charged for name, tenant in self._dispatcher.tenants.items()}

    def close(self) -> None:
        """Wait for all jobs that are not suspended; then graphs are no longer kept.

        What waits for a suspended one gets `CancelledError`; its state stays for a later pool.
        """
        with self._lock:
            self._is_open = False
        self._dispatcher.join_threads()
        for job in self._dispatcher.active():  # suspended: their states stay
            self._dispatcher.leave(job)
        self._graphs.clear()
        self._copies.clear()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for job in self._dispatcher.active():
                job.cancel()
        self.close()

    def watch(self, seconds: float | None = None) -> None:
        """Show the table of jobs in a notebook while they run, until all have ended or are suspended.

        Interrupting the cell ends the watching, and no job. Outside a notebook it only waits.

        Args:
            seconds: End after so many seconds; None for no limit.
        """
        show_until(self._repr_html_, lambda: not self._dispatcher.competing(), seconds)

    def _repr_html_(self) -> str:
        """Show the table of jobs in a notebook."""
        return table_of_jobs(self.jobs())

    def _forget(self, graph: Graph | None) -> None:
        for budget in self._dispatcher.budgets:
            for way in ("both", "directed", "undirected", "copy"):
                budget.forget((id(graph), way))
        self._copies.pop(id(graph), None)

    def _graph(self, name: str) -> Graph:
        if not self._is_open:
            raise ConfigError("this pool is closed")
        if name not in self._graphs:
            known = ", ".join(self._graphs) or "none"
            raise ConfigError(f"the pool has no graph {name!r}{nearest(name, self._graphs)} It has: {known}")
        return self._graphs[name]

    def _shared(self, graph: Graph) -> SharedGraph:
        """Return the copy of a graph for other processes; the first call makes it."""
        with self._dispatcher.preparing:
            if id(graph) not in self._copies:
                copy = SharedGraph(graph)
                with self._lock:
                    if graph not in self._graphs.values():
                        return copy  # dropped meanwhile: for this job alone
                    self._copies[id(graph)] = copy
            return self._copies[id(graph)]
