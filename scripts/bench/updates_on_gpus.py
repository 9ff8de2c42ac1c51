"""Time batches of updates on one GPU or several: a stream's `apply`, against full runs.

    python scripts/bench/updates_on_gpus.py --scale 22 --grid 4000
    mpirun -n 2 python scripts/bench/updates_on_gpus.py --scale 22 --grid 4000

Each rank keeps its part of the results. A stream takes batches of random edges, inserted or deleted, on a grid near the
corner that is far from the source, one after another; a batch is over when all ranks have its result. Where it goes
on, on several ranks, `host_ms` is what the graph on the hosts takes, `rows_ms` the change of rows and ghosts (the
device not waited for); `going_on_ms` is all that waits: rows, trimming and supersteps. Batches of one edge get full
runs besides (`full_ms`), and `run_ms` is `sigps.run` on the first graph, laid out already. Medians, the first batch of
a stream not counted. Prints a row at a time, and writes a JSON file.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from facts import machine_facts

import sigps
from sigps.apps import BFS, SSSP, WCC
from sigps.graph.graph import Graph
from sigps.group import world
from sigps.job.live_gpus import GpuRankedRun
from sigps.job.live_run import LiveRun

NEAR = 64
"""Rows and columns of a grid from the far corner in which edges change."""

Batch = tuple[Any, Any]


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--scale", type=int, default=22, help="of a Kronecker graph; 0: none")
    options.add_argument("--grid", type=int, default=4000, help="rows and columns of a grid; 0: none")
    options.add_argument("--programs", nargs="*", default=["SSSP", "WCC", "BFS"])
    options.add_argument("--batches", type=int, nargs="*", default=[1, 1000])
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--commit")
    options.add_argument("--output", type=Path)
    given = options.parse_args()
    facts = machine_facts() | {"repeats": given.repeats, "ranks": world().size}
    facts["commit"] = given.commit or facts["commit"]
    rows: list[dict[str, Any]] = []
    watch()
    if given.scale:
        graph = sigps.generate("rmat", scale=given.scale, weights="random")
        hub = int(np.argmax(np.diff(graph.offsets.astype(np.int64)))) + graph.first_row
        source = world().broadcast(hub)
        draw = random_edges(graph, given.scale)
        measure_all(graph, f"kron-{given.scale}", source, draw, given, facts, rows)
        del graph
    if given.grid:
        graph = sigps.generate("grid", rows=given.grid, columns=given.grid, weights="random")
        measure_all(graph, f"grid-{given.grid}", 0, far_edges(given.grid), given, facts, rows)


Draw = Callable[[int, str, np.random.Generator], Batch]


def random_edges(graph: Graph, scale: int) -> Draw:
    """Return what draws batches of a Kronecker graph; edges of rank 0's rows are deleted."""
    sample = np.random.default_rng(3).integers(0, graph.targets.size, 20_000)
    rows = np.searchsorted(graph.offsets, sample, side="right") - 1 + graph.first_row
    ids, targets = (graph.ids.to_oids(ends) for ends in (rows, graph.targets[sample].astype(np.int64)))
    edges = np.array(world().broadcast([ids.tolist(), targets.tolist()]))

    def draw(size: int, kind: str, numbers: np.random.Generator) -> Batch:
        if kind == "deletes":
            return None, tuple(edges[:, numbers.integers(0, edges.shape[1], size)])
        known = edges.ravel()[numbers.integers(0, edges.size, (2, size))]
        return (*known, numbers.integers(1, 256, size)), None

    return draw


def far_edges(side: int) -> Draw:
    """Return what draws batches near the far corner of a grid."""

    def draw(size: int, kind: str, numbers: np.random.Generator) -> Batch:
        rows, columns = numbers.integers(side - NEAR, side - 1, (2, size))
        at = rows * side + columns
        if kind == "deletes":
            return None, (at, at + np.where(numbers.random(size) < 0.5, 1, side))
        other_rows, other_columns = numbers.integers(side - NEAR, side - 1, (2, size))
        return (at, other_rows * side + other_columns, numbers.integers(1, 256, size)), None

    return draw


spent: dict[str, list[float]] = {}


def watch() -> None:
    """Take the time of what a batch of a stream consists of."""
    for kind, name, what in (
        (Graph, "apply", "host_ms"),
        (GpuRankedRun, "laid_by", "host_ms"),
        (GpuRankedRun, "follow_ends", "rows_ms"),
        (GpuRankedRun, "follow", "rows_ms"),
        (GpuRankedRun, "go_on", "going_on_ms"),
        (LiveRun, "go_on", "going_on_ms"),
    ):
        setattr(kind, name, timed(getattr(kind, name), what))


def timed(work: Any, what: str) -> Any:
    """Return a method that notes what it takes."""

    def run(*given: Any, **more: Any) -> Any:
        began = time.perf_counter()
        try:
            return work(*given, **more)
        finally:
            spent.setdefault(what, []).append((time.perf_counter() - began) * 1e3)

    return run


def measure_all(
    graph: Graph, name: str, source: int, draw: Draw, given: Any, facts: Any, rows: list[dict[str, Any]]
) -> None:
    """Time all programs on a graph."""
    makers: dict[str, Callable[[], sigps.Vertex]] = {
        "SSSP": lambda: SSSP(source=source), "WCC": lambda: WCC(), "BFS": lambda: BFS(source=source),
    }  # fmt: skip
    how: dict[str, Any] = {"device": given.device, "gather": False}
    for work in given.programs:
        program = makers[work]()
        times = []
        for _ in range(4):
            world().barrier()
            began = time.perf_counter()
            sigps.run(program, graph, **how)
            world().barrier()
            times.append((time.perf_counter() - began) * 1e3)
        of_all = {"work": work, "graph": name, "ranks": world().size, "run_ms": round(min(times), 2)}
        began = time.perf_counter()
        with sigps.stream(program, graph, **how) as live:
            why, opened = live._why, time.perf_counter() - began
            goes_on = live._live is not None
            full = full_runs(live, draw, 3 if goes_on else 2)
            for size in given.batches:
                for kind in ("inserts", "deletes"):
                    count = given.repeats if goes_on else 1
                    row = of_all | {"batch": size, "kind": kind} | one_kind(live, draw, size, kind, count)
                    row |= {"full_ms": full, "opened_s": round(opened, 2), "why": row["why"] or why}
                    rows.append(row)
                    if world().rank == 0:
                        print("  ".join(f"{what} {value}" for what, value in row.items()), flush=True)
                        if given.output:
                            import json

                            given.output.write_text(json.dumps({"facts": facts, "rows": rows}, indent=1))


def full_runs(live: sigps.job.stream.Stream, draw: Draw, count: int) -> float:
    """Return what a batch of one edge takes that gets a full run; the median, the first not counted."""
    numbers, found = np.random.default_rng(9), []
    guard, live._guard = live._guard, "full"
    for _ in range(count):
        found.append(batch_ms(live, draw(1, "inserts", numbers))[0])
    live._guard = guard
    return round(statistics.median(found[1:]), 2)


def one_kind(live: Any, draw: Draw, size: int, kind: str, count: int) -> dict[str, Any]:
    """Return medians of batches of a kind."""
    numbers = np.random.default_rng(size + len(kind))
    batches = [draw(size, kind, numbers) for _ in range(count + 1)]
    spent.clear()
    found = [batch_ms(live, batch) for batch in batches][1:]
    paths = [path for _, path, _ in found]
    row: dict[str, Any] = {"batch_ms": round(statistics.median(ms for ms, _, _ in found), 3)}
    for what in ("host_ms", "rows_ms", "going_on_ms"):
        times = spent.get(what, [])[1:]
        row[what] = round(statistics.median(times), 3) if times else None
    whys = [why for _, path, why in found if path == "full"]
    return row | {"incremental": paths.count("incremental"), "of": len(paths), "why": whys[0] if whys else ""}


def batch_ms(live: Any, batch: Batch) -> tuple[float, str, str]:
    """Return what a batch takes until all ranks have its result, its path and why."""
    world().barrier()
    began = time.perf_counter()
    result = live.apply(inserts=batch[0], deletes=batch[1])
    world().barrier()
    return (time.perf_counter() - began) * 1e3, result.path, result.why


if __name__ == "__main__":
    main()
