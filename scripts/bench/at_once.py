"""Time shortest paths and components of meshes, found at once and by supersteps.

    python scripts/bench/at_once.py --device cpu --grids 500,1000 --threads 2
    python scripts/bench/at_once.py --device cuda --grids 1000,4000 --widths 1,2,4,8

Grids have random weights 1 to 255; a graph of a file (`--file USA-road-NE.gr.xz`) gets such weights by its edges' ends.
The two ways take turns in one process, and their answers are compared; a time is the median of `--repeats` whole runs,
of which the first turn is not counted. `--widths` times other widths of buckets, in greatest weights. Rounds are those
of the kernel. Prints a row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check, synchronise

import sigps
from sigps.apps import SSSP, WCC
from sigps.engine import fixed_points
from sigps.engine.cpu import path_lengths as on_cpu
from sigps.engine.gpu import path_lengths as on_gpu


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument(
        "--grids", type=numbers, default=[500, 1000], help="rows and columns, as in 500,1000"
    )
    options.add_argument("--file", type=Path, help="an undirected graph")
    options.add_argument("--widths", type=numbers, default=[], help="other widths of buckets, as in 1,2,4,8")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--precision", default="single", choices=["single", "double"])
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--output", type=Path, help="the JSON file")
    given = options.parse_args()
    given.output = given.output or RESULTS / f"at-once-{given.device}.json"
    table = Table(given.output, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    for size in given.grids:
        graph = sigps.generate("grid", rows=size, columns=size, weights="random")
        measure(graph, f"grid-{size}", given, table)
    if given.file:
        measure(with_weights(sigps.load(given.file, directed=False)), given.file.name, given, table)


def numbers(text: str) -> list[int]:
    """Read whole numbers with commas between them."""
    return [int(part) for part in text.split(",") if part]


def with_weights(graph: sigps.Graph) -> sigps.Graph:
    """Return an undirected graph with a weight 1 to 255 for each edge, from its ends."""
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(np.int64))
    is_kept = sources <= graph.targets
    ends = sources[is_kept], graph.targets[is_kept].astype(np.int64)
    weights = ((ends[0] * 2654435761 + ends[1] * 40503) % 255 + 1).astype(np.float32)
    return sigps.Graph.from_edges(*ends, weights=weights, directed=False)


def measure(graph: sigps.Graph, name: str, given: argparse.Namespace, table: Table) -> None:
    """Time both programs both ways."""
    source = int(np.argmax(np.diff(graph.offsets)))
    for program in (SSSP(source=source), WCC()):
        fast, result, rounds = timed(program, graph, given)
        with by_supersteps():
            slow, other, _ = timed(program, graph, given)
        check(all(np.array_equal(result[f], other[f]) for f in result.fields), "the two ways differ")
        found = {"work": type(program).__name__, "graph": name, "at_once_ms": fast, "supersteps_ms": slow}
        passed = result.stats[-1].messages / graph.num_edges
        text = f"at once {fast:>9.2f} ms  by supersteps {slow:>9.2f} ms, {other.supersteps} of them"
        text += f"  {passed:.3f} of the edges, {rounds} rounds"
        table.add(found | {"supersteps": other.supersteps, "passed": passed, "rounds": rounds}, text)
        for width in given.widths if isinstance(program, SSSP) else []:
            with wide(width):
                ms, result, rounds = timed(program, graph, given)
            check(all(np.array_equal(result[f], other[f]) for f in result.fields), "a width changes results")
            passed = result.stats[-1].messages / graph.num_edges
            found = {"work": f"SSSP, {width} wide", "graph": name, "at_once_ms": ms}
            text = f"at once {ms:>9.2f} ms  {passed:.3f} of the edges, {rounds} rounds"
            table.add(found | {"passed": passed, "rounds": rounds}, text)


def timed(
    program: sigps.Vertex, graph: sigps.Graph, given: argparse.Namespace
) -> tuple[float, sigps.Result, int]:
    """Return the median milliseconds of a run, its result, and how many rounds a kernel took."""
    options: dict[str, Any] = {"threads": given.threads} if given.device == "cpu" else {}
    seconds, accounts = [], [0]
    read = on_gpu._read

    def noted(account: Any) -> Any:
        found = read(account)
        accounts.append(int(found["num_rounds"]))
        return found

    with mock.patch.object(on_gpu, "_read", noted):
        for _ in range(given.repeats + 1):
            began = time.perf_counter()
            result = sigps.run(program, graph, device=given.device, precision=given.precision, **options)
            if given.device == "cuda":
                synchronise()
            seconds.append(time.perf_counter() - began)
    return round(statistics.median(seconds[1:]) * 1e3, 3), result, accounts[-1]


@contextlib.contextmanager
def by_supersteps() -> Iterator[None]:
    """Let no graph be large enough for a fixed point to be found at once."""
    with mock.patch.object(fixed_points, "LEAST_EDGES", 1 << 62):
        yield


@contextlib.contextmanager
def wide(width: int) -> Iterator[None]:
    """Let buckets be so many greatest weights wide."""

    def bucket_width(weights: Any, labels: Any, *, is_gpu: bool) -> int:
        return width * weights.greatest * labels.unit

    with (
        mock.patch.object(on_cpu, "bucket_width", bucket_width),
        mock.patch.object(on_gpu, "bucket_width", bucket_width),
    ):
        yield


if __name__ == "__main__":
    main()
