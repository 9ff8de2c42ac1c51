"""Time batches of updates on CPU cores: `graph.apply`, and results that follow, against full runs on the same version.

    python scripts/bench/updates.py --scale 18 --threads 2

Batches are inserts of random edges, deletes of random edges, and both. Each batch is applied by a stream; then the
fastest full run on that version, whose arrays are laid out, takes its turn. Times are medians of `--repeats` batches,
of which the first is not counted. Triangles are counted once a version, so of these the first full run counts. Prints
a row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check

import sigps
from sigps.apps import BFS, CDLP, SSSP, WCC, Triangles


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=int, default=18)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--batches", type=int, nargs="*", default=[1, 1000])
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--output", type=Path, default=RESULTS / "updates-cpu.json", help="the JSON file")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    graph = sigps.generate("rmat", scale=given.scale, weights="random")
    source = int(np.asarray(graph.ids)[np.argmax(graph.out_degrees())])
    programs = (
        (SSSP(source=source), "distance"),
        (WCC(), "component"),
        (BFS(source=source), "level"),
        (CDLP(), "label"),
        (Triangles(), "triangles"),
    )
    for program, key in programs:
        for size in given.batches:
            for kind in ("inserts", "deletes", "both"):
                measure(program, key, graph, size, kind, given, table)


def measure(
    program: sigps.Vertex,
    key: str,
    graph: sigps.Graph,
    size: int,
    kind: str,
    given: argparse.Namespace,
    table: Table,
) -> None:
    """Time batches of one kind."""
    draw = np.random.default_rng(1)
    times: dict[str, list[float]] = {"apply": [], "stream": [], "full": []}
    paths: list[str] = []
    alone = graph
    with sigps.stream(program, graph, device="cpu", threads=given.threads) as live:
        for _ in range(given.repeats + 1):
            inserts, deletes = batch(graph, size, kind, draw)
            began = time.perf_counter()
            result = live.apply(inserts=inserts, deletes=deletes)
            times["stream"].append(time.perf_counter() - began)
            paths.append(result.path)
            began = time.perf_counter()
            alone = alone.apply(inserts, deletes)
            times["apply"].append(time.perf_counter() - began)
            version = live.graph
            version.in_edges()
            turns: list[float] = []
            if not isinstance(program, Triangles):
                sigps.run(program, version, device="cpu", threads=given.threads)
            for _ in range(1 if isinstance(program, Triangles) else 2):
                began = time.perf_counter()
                full = sigps.run(program, version, device="cpu", threads=given.threads)
                turns.append(time.perf_counter() - began)
            times["full"].append(min(turns))
            check(np.array_equal(full[key], result[key]), "the result is not that of a full run")
            del full, result, version
    ms = {name: round(statistics.median(found[1:]) * 1e3, 2) for name, found in times.items()}
    text = f"apply {ms['apply']:>8.2f} ms  and run {ms['stream']:>8.2f} ms  full run {ms['full']:>8.2f} ms"
    table.add(
        {
            "work": type(program).__name__,
            "graph": f"kron-{given.scale}",
            "batch": size,
            "kind": kind,
            "apply_ms": ms["apply"],
            "apply_and_run_ms": ms["stream"],
            "full_run_ms": ms["full"],
            "times_faster": round(ms["full"] / ms["stream"], 1),
            "incremental": paths[1:].count("incremental"),
        },
        text,
    )


def batch(graph: sigps.Graph, size: int, kind: str, draw: np.random.Generator) -> tuple[Any, Any]:
    """Return random edges to insert, and random edges of the first graph to delete."""
    ids = np.asarray(graph.ids)
    ends = ids[draw.integers(0, ids.size, (2, size))]
    inserts = ends[0], ends[1], draw.integers(1, 256, size)
    at = draw.integers(0, graph.num_edges, size)
    deletes = ids[np.searchsorted(graph.offsets, at, side="right") - 1], ids[graph.targets[at]]
    return (None if kind == "deletes" else inserts), (None if kind == "inserts" else deletes)


if __name__ == "__main__":
    main()
