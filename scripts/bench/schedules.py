"""Time the apps by the vertex schedule and by the edge schedule, on a Kronecker graph and on a mesh.

    python scripts/bench/schedules.py
    python scripts/bench/schedules.py --device cuda --scales 22 --grid 2000

Three ways: `vertex` is a default run, with all that the compiler derived; `vertex, pulled` takes the
vertices' edges in every superstep, in the order of BSP; `edge` takes all edges in every superstep. Graphs are resident
and code is compiled. A time is the median of `--repeats` whole runs in single precision, the ways in turn; of
PageRank it is that of a superstep. Every answer is compared with that of the first way. Prints a row as soon as it is
measured, and writes the JSON file anew with it, by default in `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, driver_version, machine_facts
from measuring import Table, check

import sigps
from sigps.apps import BFS, SSSP, WCC, PageRank

WAYS: dict[str, dict[str, Any]] = {
    "vertex": {},
    "vertex, pulled": {"direction": "pull", "asynchronous": False},
    "edge": {"schedule": "edge"},
}


def main() -> None:
    """Run the benchmark that the arguments describe."""
    given = arguments()
    options = {"device": given.device, "precision": "single"}
    if given.device == "cpu":
        options["threads"] = given.threads
    table = Table(given.output, facts(given))
    for scale in given.scales:
        graph = sigps.generate("rmat", scale=scale, weights="random")
        compare(graph, f"kron-{scale}", table, options, given.repeats)
    if given.grid:
        graph = sigps.generate("grid", rows=given.grid, columns=given.grid, weights="random")
        compare(graph, f"grid-{given.grid}", table, options, given.repeats)
    print(f"written to {given.output}")


def compare(graph: sigps.Graph, name: str, table: Table, options: dict[str, Any], repeats: int) -> None:
    """Time all apps on a graph in all ways."""
    source = int(np.argmax(np.diff(graph.offsets)))
    cases: list[tuple[str, sigps.Vertex, str, Callable[..., float]]] = [
        ("PageRank, a superstep", PageRank(iterations=12), "rank", superstep),
        ("BFS", BFS(source=source), "level", whole),
        ("WCC", WCC(), "component", whole),
        ("SSSP", SSSP(source=source), "distance", whole),
    ]
    for work, program, field, measure in cases:
        found = medians(program, graph, options, measure, repeats)
        expected = found["vertex"][1][field]
        for way, (seconds, result) in found.items():
            is_same = np.allclose(result[field], expected, rtol=1e-3 if field == "rank" else 0, atol=0)
            check(is_same, f"{work} on {name}, {way}: the answer differs")
            row = {"work": work, "graph": name, "way": way, "ms": round(seconds * 1e3, 3)}
            row["supersteps"] = result.supersteps
            table.add(row, f"{way:<15} {row['ms']:>10.3f} ms  {result.supersteps} supersteps")


def medians(
    program: sigps.Vertex,
    graph: sigps.Graph,
    options: dict[str, Any],
    measure: Callable[..., float],
    repeats: int,
) -> dict[str, tuple[float, sigps.Result]]:
    """Return the median seconds of each way's runs, and its last result.

    The ways take turns, so that what else the machine does is no way's alone; the first turn is not counted.
    """
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    results = {}
    for _ in range(repeats + 1):
        for way, chosen in WAYS.items():
            began = time.perf_counter()
            result = sigps.run(program, graph, **options, **chosen)  # which waits for the device
            seconds[way].append(measure(time.perf_counter() - began, result))
            results[way] = result
    return {way: (statistics.median(found[1:]), results[way]) for way, found in seconds.items()}


def whole(seconds: float, result: sigps.Result) -> float:
    """Return the seconds of a run."""
    return seconds


def superstep(seconds: float, result: sigps.Result) -> float:
    """Return the seconds of a superstep in which every vertex received and sent."""
    return statistics.median(s.seconds for s in list(result.stats)[2:-1])


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options.add_argument("--scales", type=lambda text: [int(n) for n in text.split(",")], default=[18])
    options.add_argument("--grid", type=int, default=500, help="rows and columns; 0 for none")
    options.add_argument("--threads", type=int, default=2, help="on the CPU")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    name = "cpu" if given.device == "cpu" else gpu_name().lower().replace(" ", "-")
    given.output = given.output or RESULTS / f"schedules-{name}.json"
    return given


def facts(given: argparse.Namespace) -> dict[str, Any]:
    """Return what the rows are measured on."""
    found = machine_facts() | {"device": given.device, "repeats": given.repeats}
    found["commit"] = given.commit or found["commit"]
    if given.device == "cpu":
        return found | {"threads": given.threads}
    return found | {"gpu": gpu_name(), "driver": driver_version()}


def gpu_name() -> str:
    """Return what the first GPU is called."""
    from sigps.device.cuda import find_gpu

    return find_gpu().name


if __name__ == "__main__":
    main()
