"""Time runs on CPU cores with fused supersteps, and with the interpreter between all of them.

    python scripts/bench/fused.py --scale 18 --grid 500 --threads 2

The two ways take turns; a time is the median of `--repeats` whole runs, of which the first turn is not counted. Prints
a row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from unittest import mock

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore
from sigps.engine.cpu import engine as cpu_engine


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=int, default=18)
    options.add_argument("--grid", type=int, default=500, help="rows and columns")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--output", type=Path, default=RESULTS / "fused-cpu.json", help="the JSON file")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    kron = sigps.generate("rmat", scale=given.scale, weights="random")
    grid = sigps.generate("grid", rows=given.grid, columns=given.grid)
    for name, graph in ((f"kron-{given.scale}", kron), (f"grid-{given.grid}", grid)):
        source = int(np.argmax(np.diff(graph.offsets)))
        for program in (BFS(source=source), WCC(), SSSP(source=source), KCore()):
            measure(program, graph, name, given, table)


def measure(
    program: sigps.Vertex, graph: sigps.Graph, name: str, given: argparse.Namespace, table: Table
) -> None:
    """Time a program both ways."""
    fused: list[float] = []
    one_by_one: list[float] = []
    for _ in range(given.repeats + 1):
        began = time.perf_counter()
        result = sigps.run(program, graph, device="cpu", threads=given.threads)
        fused.append(time.perf_counter() - began)
        with mock.patch.object(cpu_engine, "most_work_alone", return_value=-1):
            began = time.perf_counter()
            other = sigps.run(program, graph, device="cpu", threads=given.threads)
            one_by_one.append(time.perf_counter() - began)
    check(all(np.array_equal(result[f], other[f]) for f in result.fields), "the two ways differ")
    ms = [round(statistics.median(times[1:]) * 1e3, 2) for times in (fused, one_by_one)]
    found = {"work": type(program).__name__, "graph": name, "fused_ms": ms[0], "one_by_one_ms": ms[1]}
    text = f"fused {ms[0]:>8.2f} ms  one by one {ms[1]:>8.2f} ms  {result.supersteps} supersteps"
    table.add(found | {"supersteps": result.supersteps}, text)


if __name__ == "__main__":
    main()
