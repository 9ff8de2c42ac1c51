"""What a pool comes to: 64 mixed jobs, the latency of searches beside long jobs, and fairness; one JSON file.

python scripts/bench/pool.py --scale 16                  # CPU cores
python scripts/bench/pool.py --scale 22 --device cuda    # a GPU, on which the graph is made, too

All are warm: each program has run before. One after another is `sigps.run`, grouped by program, so that no layout and
no kernel changes more often than it must. Answers are read on the host, and compared with those of runs alone.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table, WrongAnswer

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.model.vertex import Vertex
from sigps.serve.job import Job

LONG = PageRank(iterations=10_000_000, tolerance=0.0)
EXACT = (BFS, SSSP, WCC, KCore)
Timed = tuple[float, float]  # seconds


def main() -> None:
    """Measure, and write what was found as it comes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=int, default=16, help="of the R-MAT graph, with random weights")
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument(
        "--quantum", type=float, help="seconds of a lease; 0.002 on a GPU, 0.01 on CPU cores"
    )
    options.add_argument(
        "--rounds", type=int, default=5, help="of the 64 jobs, in turn with one after another"
    )
    options.add_argument("--searches", type=int, default=200, help="beside each long job")
    options.add_argument("--seconds", type=int, default=8, help="windows of fairness, of one second")
    options.add_argument(
        "--switch-interval", type=float, help="of the interpreter, in seconds; 0.005 by itself"
    )
    options.add_argument("--only", choices=["mixed", "latencies", "fairness"], help="measure this alone")
    options.add_argument("--output", type=Path, help="the JSON file")
    given = options.parse_args()
    given.quantum = given.quantum or (0.002 if given.device == "cuda" else 0.01)
    if given.switch_interval:
        sys.setswitchinterval(given.switch_interval)
    facts, on = machine_facts() | {"quantum": given.quantum, "rounds": given.rounds}, "cpu"
    facts |= {"switch_interval": sys.getswitchinterval()}
    if given.device == "cuda":
        from sigps.device.cuda import find_gpu

        gpu = find_gpu().name
        facts, on = facts | {"gpu": gpu, "driver": driver_version()}, gpu.lower().replace(" ", "-")
    target = given.output or RESULTS / f"pool-{on}.json"
    table, name = Table(target, facts), f"kron-{given.scale}"
    began = time.perf_counter()
    graph = sigps.generate("rmat", scale=given.scale, weights="random", device=given.device)
    degrees = np.asarray(graph.out_degrees())
    sources = np.asarray(graph.ids)[
        np.random.default_rng(1).choice(np.flatnonzero(degrees), 224, False)
    ].tolist()
    print(
        f"{name}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges in {time.perf_counter() - began:.1f} s"
    )
    if given.only in (None, "mixed"):
        mixed(graph, name, sources, given, table)
    if given.only in (None, "latencies"):
        for long in (KCore(), PageRank(iterations=20)):
            latencies(graph, name, sources, long, given, table)
    if given.only in (None, "fairness"):
        fairness(graph, name, given, table)


def jobs_of(sources: list[Any]) -> list[Vertex]:
    """Return 24 BFS, 16 SSSP, and 8 each of WCC, PageRank with 20 iterations and KCore."""
    programs: list[Vertex] = [*(BFS(source=s) for s in sources[:24]), *(SSSP(source=s) for s in sources[:16])]
    return programs + [p for p in (WCC(), PageRank(iterations=20), KCore()) for _ in range(8)]


def mixed(graph: sigps.Graph, name: str, sources: list[Any], given: Any, table: Table) -> None:
    """Time 64 jobs one after another and in pools, in turn.

    Lanes are measured twice: with the jobs as they are, of which those that are equal run once, and with seeds that
    differ, so that no two are equal (these programs draw no random numbers).
    """
    programs = jobs_of(sources)
    alone: dict[int, np.ndarray[Any, Any]] = {}
    times: dict[str, list[tuple[float, float, float]]] = {}

    def one_after_another() -> list[float]:
        ends = []
        for number, program in enumerate(programs):
            result = sigps.run(program, graph, device=given.device)
            ends.append(time.perf_counter())
            answer = result[result.fields[0]]
            if not times and isinstance(program, EXACT):
                alone[number] = answer
        return ends

    def in_pool(pool: sigps.Pool, *, seeds: bool, clients: int = 1) -> list[float]:
        """Run all; so many threads read answers, and compare them in the first round, which is not timed."""
        ends: list[float] = []
        jobs = [pool.submit(p, "g", seed=i if seeds else 0) for i, p in enumerate(programs)]

        def read(number: int) -> None:
            result = jobs[number].result()
            answer = result[result.fields[0]]
            if not times and number in alone and not np.array_equal(answer, alone[number]):
                raise WrongAnswer(f"{jobs[number]} is not that of a run alone")

        for job in jobs:
            job.future.add_done_callback(lambda _: ends.append(time.perf_counter()))
        with ThreadPoolExecutor(clients) as readers:
            list(readers.map(read, range(len(jobs))))
        return ends

    with kept_pools(graph, given) as (never, auto):
        ways: dict[str, Callable[[], list[float]]] = {
            "one after another": one_after_another,
            "pool, lanes=never": lambda: in_pool(never, seeds=False),
            "pool, lanes=never, 4 threads read": lambda: in_pool(never, seeds=False, clients=4),
            "pool, no two jobs equal": lambda: in_pool(auto, seeds=True),
            "pool": lambda: in_pool(auto, seeds=False),
            "pool, 4 threads read": lambda: in_pool(auto, seeds=False, clients=4),
        }
        for number in range(given.rounds + 1):  # the first warms up
            for way, run in ways.items():
                seconds = timed(run)
                if number:
                    times.setdefault(way, []).append(seconds)
    wall, processor = (min(one[i] for one in times["one after another"]) for i in (0, 1))
    for way, found in times.items():
        least = [min(one[i] for one in found) for i in (0, 1, 2)]
        row = {
            "work": "64 jobs",
            "graph": name,
            "way": way,
            "ms": round(least[0] * 1e3, 1),
            "processor_ms": round(least[1] * 1e3, 1),
            "times_the_jobs": round(wall / least[0], 2),
            "by_processor_time": round(processor / least[1], 2),
            "mean_end_ms": round(least[2] * 1e3, 1),
        }
        table.add(
            row, "  ".join(f"{key} {value}" for key, value in row.items() if key not in ("work", "graph"))
        )


@contextmanager
def kept_pools(graph: sigps.Graph, given: Any) -> Iterator[list[sigps.Pool]]:
    """Yield a pool that joins no jobs and one that does, with the graph."""
    with (
        sigps.pool(given.device, quantum=given.quantum, lanes="never") as never,
        sigps.pool(given.device, quantum=given.quantum) as auto,
    ):
        for pool in (never, auto):
            pool.graph("g", graph)
        yield [never, auto]


def timed(run: Callable[[], list[float]]) -> tuple[float, float, float]:
    """Return what jobs take: seconds of the wall clock and of the processor, and until a job's end in the mean."""
    began, spent = time.perf_counter(), time.process_time()
    ends = run()
    wall, processor = time.perf_counter() - began, time.process_time() - spent
    return wall, processor, sum(end - began for end in ends) / len(ends)


def latencies(
    graph: sigps.Graph, name: str, sources: list[Any], long: Vertex, given: Any, table: Table
) -> None:
    """Time searches of one tenant, one at a time, beside jobs of another that follow each other."""
    with sigps.pool(given.device, quantum=given.quantum) as pool:
        pool.graph("g", graph)
        for program in (BFS(source=sources[0]), long):
            pool.submit(program, "g", tenant="before").result()
        quiet = [search(pool, source) for source in sources[:50]]
        ending = threading.Event()

        def keep_busy() -> None:
            while not ending.is_set():
                pool.submit(long, "g", tenant="long").result()

        thread = threading.Thread(target=keep_busy)
        thread.start()
        time.sleep(0.05)
        found = [search(pool, sources[i % len(sources)]) for i in range(given.searches)]
        ending.set()
        thread.join()
    for beside, seconds in (("nothing", quiet), (type(long).__name__, found)):
        ended, answered = (np.array(column) * 1e3 for column in zip(*seconds, strict=True))
        row = {"work": "BFS", "graph": name, "beside": beside, "searches": len(seconds)}
        row |= {
            f"{kind}p{p}_ms": round(float(np.percentile(times, p)), 2)
            for kind, times in (("answer_", answered), ("", ended))
            for p in (50, 99)
        }
        table.add(
            row, f"beside {beside}: " + "  ".join(f"{k} {v}" for k, v in row.items() if k.endswith("_ms"))
        )


def search(pool: sigps.Pool, source: Any) -> Timed:
    """Return the seconds from a search's submission to its end, and until the answer is on the host."""
    began = time.perf_counter()
    result = pool.submit(BFS(source=source), "g", tenant="short").result()
    ended = time.perf_counter() - began
    result["level"]
    return ended, time.perf_counter() - began


def fairness(graph: sigps.Graph, name: str, given: Any, table: Table) -> None:
    """Find Jain's index of service by weight over windows of 1 s, where three tenants always have a job."""
    weights = {"a": 1.0, "b": 2.0, "c": 4.0}
    with sigps.pool(given.device, quantum=given.quantum, lanes="never") as pool:
        pool.graph("g", graph)
        jobs: list[Job] = [pool.submit(LONG, "g", tenant=t, weight=w) for t, w in weights.items()]
        while min(job.lease_seconds for job in jobs) == 0:
            time.sleep(0.01)
        time.sleep(1)  # who was ready later has caught up
        before, found = pool.charged(), []
        for _ in range(given.seconds):
            time.sleep(1)
            now = pool.charged()
            service = np.array([(now[t] - before[t]) / w for t, w in weights.items()])
            found.append(float(service.sum() ** 2 / (service.size * (service**2).sum())))
            before = now
        for job in jobs:
            job.cancel()
    least, mean = round(min(found), 3), round(sum(found) / len(found), 3)
    row = {"work": "fairness", "graph": name, "windows": len(found), "mean_jain": mean, "least_jain": least}
    table.add(row, f"Jain's index over windows of 1 s: least {least}, mean {mean}")


if __name__ == "__main__":
    main()
