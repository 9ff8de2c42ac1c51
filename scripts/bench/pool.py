"""What a pool comes to on CPU cores: fairness, the latency of a short job beside a long one, and 64 mixed jobs.

python scripts/bench/pool.py [scale]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.serve.job import Job
from sigps.serve.pool import Pool

LONG = PageRank(iterations=10_000_000, tolerance=0.0)


def fairness(graph: sigps.Graph, seconds: int = 8) -> tuple[float, float]:
    """Return Jain's index of service by weight over windows of 1 s, weights 1:2:4: the least and the mean."""
    weights = {"a": 1.0, "b": 2.0, "c": 4.0}
    with sigps.pool("cpu") as pool:
        pool.graph("g", graph)
        jobs = [pool.submit(LONG, "g", tenant=t, weight=w) for t, w in weights.items()]
        while min(job.supersteps for job in jobs) == 0:
            time.sleep(0.01)
        before, found = pool.charged(), []
        for _ in range(seconds):
            time.sleep(1)
            now = pool.charged()
            x = np.array([(now[t] - before[t]) / w for t, w in weights.items()])
            found.append(float(x.sum() ** 2 / (x.size * (x**2).sum())))
            before = now
        cancel(jobs)
    return min(found), sum(found) / len(found)


def latencies(graph: sigps.Graph, quantum: float, count: int) -> list[float]:
    """Return the seconds from submission to result of searches, one at a time, beside a PageRank."""
    with sigps.pool("cpu", quantum=quantum) as pool:
        pool.graph("g", graph)
        jobs = [pool.submit(LONG, "g", tenant="long")]
        while jobs[0].supersteps == 0:
            time.sleep(0.01)
        found = [timed(pool, source) for source in range(count)]
        cancel(jobs)
    return found


def timed(pool: Pool, source: int) -> float:
    """Return the seconds of one search, from submission to result."""
    began = time.perf_counter()
    pool.submit(BFS(source=source), "g", tenant="short").result()
    return time.perf_counter() - began


def cancel(jobs: list[Job]) -> None:
    """Cancel jobs."""
    for job in jobs:
        job.cancel()


def mixed(graph: sigps.Graph, rounds: int = 3) -> tuple[float, float]:
    """Return the seconds of 64 jobs one after another, and in a pool; the least of alternating rounds."""
    programs = [*(BFS(source=s) for s in range(24)), *(SSSP(source=s) for s in range(16))]
    programs += [program for _ in range(8) for program in (WCC(), PageRank(iterations=20), KCore())]
    alone, pooled = [], []
    for _ in range(rounds):
        began = time.perf_counter()
        for program in programs:
            sigps.run(program, graph, device="cpu")
        alone.append(time.perf_counter() - began)
        began = time.perf_counter()
        with sigps.pool("cpu") as pool:
            pool.graph("g", graph)
            for job in [pool.submit(program, "g") for program in programs]:
                job.result()
        pooled.append(time.perf_counter() - began)
    return min(alone), min(pooled)


def main(scale: int) -> None:
    """Measure all three, and print it."""
    graph = sigps.generate("rmat", scale=scale, seed=1, weights="random")
    for program in (BFS(source=0), SSSP(source=0), WCC(), PageRank(iterations=2), KCore()):
        sigps.run(program, graph, device="cpu")
    print("Jain's index, 1 s windows, weights 1:2:4: least {:.4f}, mean {:.4f}".format(*fairness(graph)))
    for _ in range(2):
        for quantum in (0.01, 0.25):
            found = np.array(latencies(graph, quantum, 50)) * 1e3
            print(f"BFS beside PageRank, leases of {quantum} s: median {np.median(found):.1f} ms", end=", ")
            print(f"longest of 50 {found.max():.1f} ms")
    print("64 jobs: one after another {:.2f} s, in a pool {:.2f} s".format(*mixed(graph)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16)
