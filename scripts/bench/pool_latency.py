"""Where the time of slow searches in a pool goes: each phase of each search beside long jobs, by the clock.

python scripts/bench/pool_latency.py --scale 14                         # CPU cores
python scripts/bench/pool_latency.py --scale 22 --device cuda --over 4  # a GPU

A search is BFS of one tenant, one at a time, beside long jobs of another that follow each other. For each search above
`--over` milliseconds it prints the phases, with what the thread itself computed in them: the rest it waited, for the
device (whose leases that were is said), for locks, or for Python's lock. Behind each phase stands what other jobs began
in it. A table then has each phase of all searches, of the slow ones, and what the slow ones had more.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import sigps
from sigps.apps import BFS, KCore, PageRank
from sigps.model.vertex import Vertex
from sigps.serve import devices, dispatcher, runs

Mark = tuple[str, float, float]  # the phase that begins, the clock, and what this thread had computed
Search = tuple[int, float, float, float, dict[str, float]]  # its job, three moments, and its account


class Trace:
    """What was seen of the jobs of a pool: marks by job, leases, and collections of garbage."""

    def __init__(self) -> None:
        self.marks: dict[int, list[Mark]] = defaultdict(list)
        self.leases: list[tuple[int, float, float]] = []
        self.collections: list[tuple[int, float, float]] = []
        self._granted: dict[int, float] = {}
        self._began = 0.0

    def mark(self, number: int, phase: str) -> None:
        """Note that a phase of a job begins, in its thread."""
        self.marks[number].append((phase, time.perf_counter(), time.thread_time()))

    def install(self) -> None:
        """Look at what a pool calls."""
        gc.callbacks.append(self._collect)
        work = dispatcher.Dispatcher._work

        def _work(own: Any, run: Any, numbers: Any) -> None:
            self.mark(run.number, "to begin to prepare")
            work(own, run, numbers)

        dispatcher.Dispatcher._work = _work  # type: ignore[method-assign]
        turns = devices.RunTurns
        self._around(turns, "prepare", "waits to prepare", "prepares")
        self._around(turns, "wait", "asks for the device", "lease")
        self._around(turns, "end", "gives the device back", "makes the result")
        self._around(turns, "leave", "gives all back", "tells its end")
        end, grant = devices.SharedDevice._end_lease, devices.SharedDevice._grant

        def _end(own: Any, run: Any) -> None:
            if run in own._holders:
                self.leases.append((run.number, self._granted.pop(run.number, 0.0), time.perf_counter()))
            end(own, run)

        def _grant(own: Any) -> None:
            before = set(own._holders)
            grant(own)
            for run in own._holders:
                if run not in before:
                    self._granted[run.number] = time.perf_counter()

        devices.SharedDevice._end_lease = _end  # type: ignore[method-assign]
        devices.SharedDevice._grant = _grant  # type: ignore[method-assign]
        alone = runs.run_alone

        def _run(*given: Any, **options: Any) -> Any:
            found = alone(*given, **options)
            number = options["progress"].__self__.number
            self.mark(number, "waits for its stream")
            return found

        runs.run_alone = _run

    def _around(self, kind: type, name: str, first: str, then: str) -> None:
        method: Callable[..., Any] = getattr(kind, name)

        def traced(own: Any, *given: Any) -> Any:
            self.mark(own._run.number, first)
            found = method(own, *given)
            self.mark(own._run.number, then)
            return found

        setattr(kind, name, traced)

    def _collect(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.collections.append((info["generation"], self._began, time.perf_counter()))

    def beside(self, number: int, start: float, stop: float, *, leases: bool) -> list[str]:
        """Return what other jobs did in a time, in milliseconds from its start, and the leases that reached into it."""
        found = [
            f"job {job} lease {1e3 * (a - start):+.2f} to {1e3 * (b - start):+.2f}"
            for job, a, b in list(self.leases)
            if leases and job != number and a < stop and b > start
        ]
        for job in range(number - 40, number + 40):  # of those around it
            for phase, at, _ in self.marks.get(job, ()) if job != number else ():
                if start <= at < stop and phase != "lease" and stop - start > 2e-4:
                    found.append(f"job {job} {phase} {1e3 * (at - start):+.2f}")
        return found

    def phases(self, number: int, until: float) -> list[tuple[str, float, float, float]]:
        """Return a job's phases: name, when it began, milliseconds, and those that its thread computed."""
        marks, found = self.marks[number], []
        for (phase, began, spent), (_, ended, later) in zip(
            marks, [*marks[1:], ("", until, -1.0)], strict=True
        ):
            is_same_thread = phase != "submits" and later >= 0
            found.append(
                (phase, began, 1e3 * (ended - began), 1e3 * (later - spent) if is_same_thread else -1.0)
            )
        return found


def main() -> None:
    """Trace, and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--scale", type=int, default=14)
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--quantum", type=float, default=0.002)
    options.add_argument("--searches", type=int, default=200)
    options.add_argument(
        "--over", type=float, default=4.0, help="milliseconds above which a search is printed"
    )
    options.add_argument("--most", type=int, default=12, help="of these, how many are printed at the most")
    options.add_argument("--switch-interval", type=float, default=0.0005)
    options.add_argument("--long-scale", type=int, help="of another graph, on which the long jobs run")
    given = options.parse_args()
    sys.setswitchinterval(given.switch_interval)
    graphs = {"g": sigps.generate("rmat", scale=given.scale, weights="random", device=given.device)}
    if given.long_scale:
        graphs["long"] = sigps.generate("rmat", scale=given.long_scale, device=given.device)
    trace = Trace()
    trace.install()
    for long in (KCore(), PageRank(iterations=20)):
        beside(graphs, long, given, trace)


def beside(graphs: dict[str, sigps.Graph], long: Vertex, given: Any, trace: Trace) -> None:
    """Search beside jobs of one program."""
    graph = graphs["g"]
    degrees = np.flatnonzero(np.asarray(graph.out_degrees()))
    sources = np.asarray(graph.ids)[np.random.default_rng(1).choice(degrees, 64, False)].tolist()
    where, stop = "long" if "long" in graphs else "g", threading.Event()
    found: list[Search] = []
    with sigps.pool(given.device, quantum=given.quantum) as pool:
        for name, kept in graphs.items():
            pool.graph(name, kept)

        def keep_busy() -> None:
            while not stop.is_set():
                pool.submit(long, where, tenant="long").result()

        for _ in range(3):
            pool.submit(long, where, tenant="before").result()
            for source in sources[:10]:
                pool.submit(BFS(source=source), "g", tenant="before").result()
        thread = threading.Thread(target=keep_busy)
        thread.start()
        time.sleep(0.05)
        for i in range(given.searches):
            began = time.perf_counter()
            job = pool.submit(BFS(source=sources[i % 64]), "g", tenant="short")
            submitted = time.perf_counter()
            job.future.add_done_callback(lambda _, number=job.number: trace.mark(number, "is heard of"))
            result = job.result()
            ended = time.perf_counter()
            result["level"]
            found.append((job.number, began, submitted, ended, dict(result.account)))
        stop.set()
        thread.join()
    report(type(long).__name__, found, given, trace)
    trace.marks.clear()
    trace.leases.clear()
    trace.collections.clear()


def report(name: str, found: list[Search], given: Any, trace: Trace) -> None:
    """Print percentiles, slow searches, and the table of phases."""
    took = np.array([1e3 * (ended - began) for _, began, _, ended, _ in found])
    p50, p95, p99 = np.percentile(took, (50, 95, 99))
    print(
        f"\n== BFS beside {name}: {len(found)} searches, p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f} ms",
        flush=True,
    )
    by_phase: dict[str, list[float]] = defaultdict(list)
    of_slow: dict[str, list[float]] = defaultdict(list)
    num_leases = []
    printed = 0
    for at in np.argsort(-took):
        number, began, submitted, ended, account = found[at]
        phases = trace.phases(number, ended)
        total: dict[str, float] = defaultdict(float)
        total["submits"] = 1e3 * (phases[0][1] - began)
        for phase, _, wall, _ in phases:
            total[phase] += wall
        for phase, wall in total.items():
            by_phase[phase].append(wall)
            if took[at] > given.over:
                of_slow[phase].append(wall)
        num_leases.append(sum(phase == "lease" for phase, *_ in phases))
        if took[at] > given.over and printed < given.most:
            printed += 1
            lines = ", ".join(
                f"{line} {1e3 * seconds:.2f}" for line, seconds in account.items() if seconds > 5e-5
            )
            print(f"-- search {at}, {took[at]:.2f} ms; submit() {1e3 * (submitted - began):.2f}; {lines}")
            for phase, start, wall, spent in phases:
                stop = start + wall / 1e3
                collected = sum(max(0.0, min(b, stop) - max(a, start)) for _, a, b in trace.collections)
                computed = f" ({spent:.2f} computed)" if spent >= 0 else ""
                garbage = f", garbage {1e3 * collected:.2f}" if collected else ""
                beside = "; ".join(trace.beside(number, start, stop, leases=phase == "asks for the device"))
                print(f"   {1e3 * (start - began):7.2f} {phase:<21}{wall:7.2f}{computed}{garbage}  {beside}")
    slow = sum(took > given.over)
    print(
        f"leases a search: {np.bincount(num_leases).tolist()} (from 0); slower than {given.over:g} ms: {slow}"
    )
    print(f"{'phase':<24}{'median':>8}{'p99':>8}{'slow, mean':>12}{'more':>8}")
    for phase, walls in by_phase.items():
        middle, mean = float(np.median(walls)), float(np.mean(of_slow[phase])) if of_slow[phase] else 0.0
        more = mean - middle if slow else 0.0
        print(f"{phase:<24}{middle:8.3f}{np.percentile(walls, 99):8.3f}{mean:12.3f}{more:8.3f}")
    for generation in range(3):
        times = [1e3 * (b - a) for g, a, b in trace.collections if g == generation]
        if times:
            print(
                f"garbage of generation {generation}: {len(times)} collections, longest {max(times):.2f} ms"
            )


if __name__ == "__main__":
    main()
