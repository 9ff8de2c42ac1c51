"""Time the apps on as many GPUs as there are ranks; run it with one rank, then with more, and compare.

    mpirun -n 1 python scripts/bench/multi_gpu.py --scales 24 --output one.json
    mpirun -n 2 python scripts/bench/multi_gpu.py --scales 24 --against one.json --output two.json
    mpirun -n 2 python scripts/bench/multi_gpu.py --scales 25 --weak one.json

With `--weak` a Kronecker graph stands beside one that is smaller as often as ranks are fewer: `weak_efficiency` is the
time there over the time here. The first run of all on a graph, which partitions and lays it out, has a row of its own,
with the slowest rank's account; what is compiled by then is in the cache of code. `--device cpu` tries the script where
there is no GPU.
Graphs are resident and code is compiled. A run is timed from a barrier to a barrier of all ranks; a
superstep of PageRank, and of a path, in which one vertex runs and all GPUs pass the inter-GPU barrier, is timed
by the device. Times are medians of `--repeats`. Levels of the path and the grid are compared with what they must be,
and PageRank must add up to 1; searches and components of Kronecker graphs are compared by the tests, not here.
Rank 0 prints, and writes the JSON file anew with each row.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from crossing import time_crossing
from facts import driver_version, machine_facts
from measuring import kept_or_made

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.group import world

GROUP = world()
PATH_LENGTH = 3000


class Table:
    """Rows, printed and written by rank 0."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._output: Path | None = given.output
        self._before, _ = milliseconds_in(given.against)
        self._smaller, self._fewer = milliseconds_in(given.weak)
        found = {"gpu": device_name(), "driver": driver_version(), "ranks": GROUP.size}
        found["transport"] = given.transport
        facts = machine_facts("cuda-core") | found
        self._content = facts | {"commit": given.commit or facts["commit"], "rows": []}

    def add(self, work: str, graph: str, seconds: float, **more: Any) -> None:
        """Add a row."""
        if GROUP.rank != 0:
            return
        row = {"work": work, "graph": graph, "milliseconds": round(seconds * 1e3, 4), **more}
        if before := self._before.get((work, graph)):
            row["times_faster"] = round(before / row["milliseconds"], 3)
        self._content["rows"].append(row)
        if smaller := self._smaller.get((work, smaller_graph(graph, GROUP.size / self._fewer))):
            row["weak_efficiency"] = round(smaller / row["milliseconds"], 3)
        rest = "  ".join(f"{name} {value}" for name, value in row.items() if name not in ("work", "graph"))
        print(f"{graph:10} {work:24} {GROUP.size} ranks  {rest}", flush=True)
        if self._output is not None:
            self._output.write_text(json.dumps(self._content, indent=2) + "\n")


def milliseconds_in(file: Path | None) -> tuple[dict[tuple[str, str], float], int]:
    """Return the milliseconds of an earlier run's rows, by work and graph, and how many ranks it had."""
    if file is None:
        return {}, 1
    content = json.loads(file.read_text())
    return {(row["work"], row["graph"]): row["milliseconds"] for row in content["rows"]}, content["ranks"]


def smaller_graph(name: str, times: float) -> str:
    """Return the name of the Kronecker graph that is so many times smaller, a power of two; "" where there is none.

    >>> smaller_graph("kron-26", 4.0), smaller_graph("kron-26", 3.0), smaller_graph("path", 2.0)
    ('kron-24', '', '')
    """
    kind, _, scale = name.partition("-")
    step = math.log2(times)
    return f"{kind}-{int(scale) - int(step)}" if kind == "kron" and step.is_integer() else ""


def device_name() -> str:
    """Return what this rank's GPU is called."""
    if OPTIONS["device"] == "cpu":
        return "none: CPU cores"
    from sigps.device.cuda import find_gpu

    return find_gpu().name


OPTIONS: dict[str, Any] = {"device": "cuda", "precision": "single", "gather": False}


def run(program: sigps.Vertex, graph: sigps.Graph) -> sigps.Result:
    """Run in single precision; every rank keeps its part on its GPU."""
    return sigps.run(program, graph, **OPTIONS)


def timed(call: Callable[[], sigps.Result], repeats: int) -> tuple[float, sigps.Result]:
    """Return the median seconds of a call that all ranks make, after one that is not counted."""
    result, seconds = call(), []
    for _ in range(repeats):
        GROUP.barrier()
        began = time.perf_counter()
        result = call()
        GROUP.barrier()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), result


def check(is_right: bool, what: str) -> None:
    """Stop where any rank's part of an answer is wrong: no time of it is reported."""
    if not all(GROUP.all_gather(bool(is_right))):
        raise SystemExit(f"wrong answer: {what}")


def kronecker(scale: int, folder: Path | None) -> sigps.Graph:
    """Return a Kronecker graph, from a folder if it was kept there."""
    began = time.perf_counter()
    kept = folder and folder / f"kron-{scale}"
    graph = kept_or_made(kept, lambda: sigps.generate("rmat", scale=scale))
    if GROUP.rank == 0:
        seconds = time.perf_counter() - began
        print(f"kron-{scale}: {graph.num_edges:,} edges, there in {seconds:.0f} s", flush=True)
    return graph


def measure_kronecker(graph: sigps.Graph, name: str, table: Table, repeats: int, only: list[str]) -> None:
    """Time PageRank's superstep, searches and components."""
    if "PageRank" in only:
        measure_pagerank(graph, name, table, repeats)
    if "BFS" in only:
        measure_searches(graph, name, table, repeats)
    if "WCC" in only:
        whole, result = timed(lambda: run(WCC(), graph), repeats)
        device = sum(s.seconds for s in result.stats)
        table.add("WCC", name, whole, device_ms=round(device * 1e3, 3), supersteps=result.supersteps)
    crosses = "PageRank" in only and GROUP.size > 1
    if crosses and OPTIONS["transport"] != "nccl" and OPTIONS["device"] == "cuda":
        measure_crossing(graph, name, table)


def measure_pagerank(graph: sigps.Graph, name: str, table: Table, repeats: int) -> None:
    """Time the first run of all, and PageRank's superstep."""
    GROUP.barrier()
    began = time.perf_counter()
    first = run(PageRank(iterations=2), graph)
    accounts = GROUP.all_gather((time.perf_counter() - began, dict(first.account)))
    slowest, account = max(accounts, key=lambda found: found[0])
    table.add(
        "the first run",
        name,
        slowest,
        account={line: round(s, 3) for line, s in account.items() if s > 0.001},
    )
    results = [run(PageRank(iterations=30), graph) for _ in range(repeats)]
    steps = [s for result in results for s in list(result.stats)[2:-1]]
    seconds = statistics.median(s.seconds for s in steps)
    moved = {"bytes_moved": steps[0].bytes_moved, "imbalance": round(steps[0].imbalance, 3)}
    total = sum(GROUP.all_gather(float(results[-1]["rank"].sum(dtype=np.float64))))
    check(abs(total - 1) < 1e-3, f"ranks of PageRank add up to {total}")
    table.add("PageRank, a superstep", name, seconds, **moved)


def measure_searches(graph: sigps.Graph, name: str, table: Table, repeats: int) -> None:
    """Time breadth-first searches from four vertices: the mean of their medians."""
    degrees = np.diff(graph.offsets)
    candidates = graph.first_row + np.flatnonzero(degrees > 0)
    sources = GROUP.broadcast(np.random.default_rng(1).choice(candidates, 4).tolist())
    found = [timed(lambda s=s: run(BFS(source=s), graph), repeats) for s in sources]  # type: ignore[misc]
    device = statistics.mean(sum(s.seconds for s in result.stats) for _, result in found)
    table.add("BFS", name, statistics.mean(f[0] for f in found), device_ms=round(device * 1e3, 3))


def measure_crossing(graph: sigps.Graph, name: str, table: Table) -> None:
    """Time what GPUs do between supersteps: the inter-GPU barrier, and the records of a dense superstep."""
    found = time_crossing(PageRank(iterations=4), graph, GROUP)
    table.add("inter-GPU barrier, with counters", name, found["barrier"])
    speeds = {f"{way}_gb_s": round(found[way] / 1e9, 1) for way in ("published", "copied")}
    share = round(found["published"] / found["copied"], 3)
    table.add("halo of PageRank", name, found["crossing"], **speeds, share=share)


def measure_grid(size: int, table: Table, repeats: int) -> None:
    """Time a breadth-first search through a grid from its corner."""
    graph = sigps.generate("grid", rows=size, columns=size)
    whole, result = timed(lambda: run(BFS(source=0), graph), repeats)
    check(np.array_equal(result["level"], result.ids // size + result.ids % size), "levels of the grid")
    table.add("BFS", f"grid-{size}", whole, supersteps=result.supersteps)


def measure_path(table: Table) -> None:
    """Time a superstep in which one vertex runs, along a path whose vertices are on all GPUs in turn."""
    ids = np.arange(PATH_LENGTH)
    graph = sigps.Graph.from_edges(ids[:-1], ids[1:], group=GROUP)
    call = lambda: sigps.run(BFS(source=0), graph, **OPTIONS, partitioner="hash")  # noqa: E731
    call()
    result = call()
    check(np.array_equal(result["level"], result.ids), "levels of the path")
    seconds = statistics.median(s.seconds for s in list(result.stats)[10:])
    table.add("BFS, a superstep", "path", seconds)


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--scales", type=lambda text: [int(t) for t in text.split(",") if t], default=[22, 24]
    )
    options.add_argument("--grid", type=int, default=4000, help="rows and columns; 0 for none")
    works = ["path", "PageRank", "BFS", "WCC"]
    options.add_argument("--only", nargs="+", default=works, choices=works)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--transport", default="auto", choices=["auto", "peer", "nccl", "mpi"])
    options.add_argument("--graphs", type=Path, help="a folder to keep generated graphs in, for the next run")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--against", type=Path, help="the JSON file of a run with another number of ranks")
    options.add_argument("--weak", type=Path, help="that of a run with fewer ranks on smaller graphs")
    options.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    OPTIONS["transport"], OPTIONS["device"] = given.transport, given.device
    table = Table(given)
    if "path" in given.only:
        measure_path(table)
    if given.grid and "BFS" in given.only:
        measure_grid(given.grid, table, given.repeats)
    for scale in given.scales:
        measure_kronecker(kronecker(scale, given.graphs), f"kron-{scale}", table, given.repeats, given.only)


if __name__ == "__main__":
    main()
