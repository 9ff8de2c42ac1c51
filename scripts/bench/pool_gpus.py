"""What a second GPU brings to jobs of one GPU each: 64 mixed jobs, on one GPU and on two; one JSON file.

python scripts/bench/pool_gpus.py --scale 22

By one pool of both GPUs, with answers brought to the host and left on the GPUs; and by two processes with a pool of one
GPU each, of which each takes the next job as soon as fewer than eight of its own are under way. All are warm, and none
are joined.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table, WrongAnswer
from pool import EXACT, jobs_of

import sigps
from sigps.model.vertex import Vertex
from sigps.serve.job import Job

QUANTUM, READERS = 0.002, 4


def main() -> None:
    """Measure, in turn."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=int, default=22, help="of the R-MAT graph, with random weights")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--output", type=Path, help="the JSON file")
    given = options.parse_args()
    sys.setswitchinterval(0.0005)
    from sigps.device.cuda import find_gpu

    gpu = find_gpu().name
    facts = machine_facts() | {"gpu": gpu, "driver": driver_version(), "rounds": given.rounds}
    target = given.output or RESULTS / f"pool-gpus-{gpu.lower().replace(' ', '-')}.json"
    table, name = Table(target, facts | {"switch_interval": 0.0005}), f"kron-{given.scale}"
    leases: dict[str, list[float]] = {}
    ways = in_one_process(given.scale, given.rounds, leases) | in_processes(given.scale, given.rounds)
    for way, seconds in ways.items():
        gpus = 1 + ("two" in way)
        one = ways[way.replace("two GPUs", "one GPU").replace("two processes", "a process")]
        row = {
            "work": "64 jobs",
            "graph": name,
            "way": way,
            "gpus": gpus,
            "ms": round(min(seconds) * 1e3, 1),
            "times_faster": round(min(one) / min(seconds), 2),
        }
        if way in leases:
            row["leases_ms"] = round(min(leases[way]) * 1e3, 1)
        table.add(row, f"{way:<44} {row['ms']} ms  {row['times_faster']} times  {row.get('leases_ms')}")


def graph_and_jobs(scale: int) -> tuple[sigps.Graph, list[Vertex]]:
    """Return the graph and the programs, the same in each process."""
    graph = sigps.generate("rmat", scale=scale, weights="random", device="cuda")
    found = np.flatnonzero(np.asarray(graph.out_degrees()))
    sources = np.asarray(graph.ids)[np.random.default_rng(1).choice(found, 64, False)].tolist()
    return graph, jobs_of(sources)


def in_one_process(scale: int, rounds: int, leases: dict[str, list[float]]) -> dict[str, list[float]]:
    """Time rounds of a pool of one GPU and of one of two; answers are compared in the rounds that warm up.

    `leases` gets the seconds of leases of the GPU that had the most, by way and round.
    """
    graph, programs = graph_and_jobs(scale)
    alone = {p: answer_of(sigps.run(p, graph, device="cuda")) for p in programs if isinstance(p, EXACT)}
    times: dict[str, list[float]] = {}

    def once(pool: sigps.Pool, *, reads: bool = True, compares: bool = False) -> None:
        jobs = [pool.submit(p, "g") for p in programs]

        def read(job: Job) -> None:
            result = job.result()
            if not reads:
                return
            answer = answer_of(result)
            if compares and job.program in alone and not np.array_equal(answer, alone[job.program]):
                raise WrongAnswer(f"{job} is not that of a run alone")

        with ThreadPoolExecutor(READERS) as readers:
            list(readers.map(read, jobs))

    about: dict[str, Any] = {"quantum": QUANTUM, "lanes": "never", "placing": "weighted_times"}
    with sigps.pool(["cuda"], **about) as one, sigps.pool(["cuda"] * 2, **about) as two:
        pools = {"one GPU, a pool": one, "two GPUs, a pool": two}
        for pool in pools.values():
            pool.graph("g", graph)
            for _ in range(2):
                once(pool, compares=True)
        for _ in range(rounds):
            for way, pool in pools.items():
                for more, reads in ("", True), (", answers left there", False):
                    before = leases_of(pool)
                    began = time.perf_counter()
                    once(pool, reads=reads)
                    times.setdefault(way + more, []).append(time.perf_counter() - began)
                    leases.setdefault(way + more, []).append(float((leases_of(pool) - before).max()))
    return times


def leases_of(pool: sigps.Pool) -> np.ndarray[Any, Any]:
    """Return the seconds of leases that each GPU had."""
    return np.array([device.lease_seconds for device in pool.overview().devices])


def answer_of(result: sigps.Result) -> np.ndarray[Any, Any]:
    """Return a result's first field, on the host."""
    return result[result.fields[0]]


def in_processes(scale: int, rounds: int) -> dict[str, list[float]]:
    """Time rounds of one process with a pool of one GPU, and of two."""
    spawned = multiprocessing.get_context("spawn")
    next_job, done = spawned.Value("i", 0), spawned.Queue()
    begins = [spawned.SimpleQueue() for _ in range(2)]
    processes = [
        spawned.Process(target=serve, args=(gpu, scale, next_job, begins[gpu], done)) for gpu in range(2)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        done.get()
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for gpus, way in (1, "one GPU, a process"), (2, "two GPUs, two processes"):
            next_job.value = 0
            began = time.perf_counter()
            for begin in begins[:gpus]:
                begin.put(True)
            counts = [done.get() for _ in range(gpus)]
            times.setdefault(way, []).append(time.perf_counter() - began)
            assert sum(counts) == 64
    for begin in begins:
        begin.put(False)
    for process in processes:
        process.join()
    return times


def serve(gpu: int, scale: int, next_job: Any, begin: Any, done: Any) -> None:
    """Do jobs on one GPU, a round at a time: each time the first that no process has taken."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    sys.setswitchinterval(0.0005)
    graph, programs = graph_and_jobs(scale)
    with sigps.pool("cuda", quantum=QUANTUM, lanes="never") as pool:
        pool.graph("g", graph)
        for program in programs:
            answer_of(pool.submit(program, "g").result())
        done.put(0)
        while begin.get():
            under_way: deque[Job] = deque()
            count = 0
            while True:
                with next_job.get_lock():
                    number = next_job.value
                    next_job.value += 1
                if number >= len(programs):
                    break
                under_way.append(pool.submit(programs[number], "g"))
                count += 1
                if len(under_way) == 8:
                    answer_of(under_way.popleft().result())
            while under_way:
                answer_of(under_way.popleft().result())
            done.put(count)


if __name__ == "__main__":
    main()
