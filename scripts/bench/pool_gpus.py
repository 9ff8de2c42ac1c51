"""What a second GPU brings to jobs of one GPU each: 64 mixed jobs by one pool, and by two, each a process on its own.

python scripts/bench/pool_gpus.py --scale 22

A pool is of one GPU, so this is two of them, and who submits divides the jobs: each process takes the next one as soon
as fewer than eight of its own are under way. All are warm, and none are joined. Answers are read on the host.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import time
from collections import deque
from typing import Any


def serve(gpu: int, scale: int, jobs: Any, begin: Any, done: Any) -> None:
    """Do jobs from a queue on one GPU, a round at a time."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    import numpy as np
    from pool import jobs_of

    import sigps

    graph = sigps.generate("rmat", scale=scale, weights="random", device="cuda")
    found = np.flatnonzero(np.asarray(graph.out_degrees()))
    sources = np.asarray(graph.ids)[np.random.default_rng(1).choice(found, 64, False)].tolist()
    programs = jobs_of(sources)
    with sigps.pool("cuda", quantum=0.002, lanes="never") as pool:
        pool.graph("g", graph)
        for program in programs:
            pool.submit(program, "g").result()
        done.put(0)
        while begin.get():
            under_way: deque[Any] = deque()
            count = 0
            while True:
                try:
                    number = jobs.get_nowait()
                except queue.Empty:
                    break
                under_way.append(pool.submit(programs[number], "g"))
                count += 1
                if len(under_way) == 8:
                    read(under_way.popleft())
            while under_way:
                read(under_way.popleft())
            done.put(count)


def read(job: Any) -> None:
    """Bring a job's answer to the host."""
    result = job.result()
    result[result.fields[0]]


def main() -> None:
    """Measure one GPU, then two."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=int, default=22)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    spawned = multiprocessing.get_context("spawn")
    jobs, done = spawned.Queue(), spawned.Queue()
    begins = [spawned.SimpleQueue() for _ in range(2)]
    processes = [
        spawned.Process(target=serve, args=(gpu, given.scale, jobs, begins[gpu], done)) for gpu in range(2)
    ]
    for process in processes:
        process.start()
    for _ in processes:
        done.get()
    least: dict[int, float] = {}
    for _ in range(given.rounds):
        for gpus in (1, 2):
            for number in range(64):
                jobs.put(number)
            time.sleep(0.5)  # all are in the pipe
            began = time.perf_counter()
            for begin in begins[:gpus]:
                begin.put(True)
            counts = [done.get() for _ in range(gpus)]
            seconds = time.perf_counter() - began
            assert sum(counts) == 64
            least[gpus] = min(seconds, least.get(gpus, seconds))
    for begin in begins:
        begin.put(False)
    for process in processes:
        process.join()
    print(
        f"64 jobs: {least[1] * 1e3:.1f} ms on one GPU, {least[2] * 1e3:.1f} on two: {least[1] / least[2]:.2f} times"
    )


if __name__ == "__main__":
    main()
