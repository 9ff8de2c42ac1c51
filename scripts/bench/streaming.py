"""Time runs on CPU cores whose edges stay in a packed store, beside the same runs in memory.

    python scripts/bench/streaming.py --scale 20 --threads 2

The graph is drawn and packed here, in both orders of rows. A time is that of a superstep of PageRank in which every
edge matters, of runs that take turns: the least, and the least processor time, by the difference of long and short
runs, which a busy machine changes less. "kept" is how many of the edges stay unpacked in memory; the store is in the
file cache. Writes a JSON file to `scripts/bench/results/` and prints a table.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table, check

import sigps
from sigps.apps import PageRank
from sigps.job.streaming import decide_streaming

SUPERSTEPS = 6


def main() -> None:
    """Run the benchmark that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", type=int, default=20, help="of the recursive-matrix graph")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--output", type=Path, default=RESULTS / "streaming-cpu.json", help="the JSON file")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    table.note("load", f"{os.getloadavg()[0]:.1f} processes ran or waited before")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given, table)


def measure(folder: Path, given: argparse.Namespace, table: Table) -> None:
    """Time every way in turns."""
    graph = sigps.generate("rmat", scale=given.scale, seed=1)
    stores = {order: folder / order for order in ("given", "degree")}
    for order, path in stores.items():
        graph.save(path, packed=True, order=order)
    ways: dict[tuple[str, str], Callable[[int], sigps.Result]] = {
        ("memory", "all"): lambda n: run(graph, n, given.threads)
    }
    kept = {"none": 0.0, "half": 0.5, "all": 1.0}
    for order, path in stores.items():
        stored = sigps.load(path)
        for name, share in kept.items():
            limit = least_memory(stored, given.threads) + int(share * 4 * graph.num_edges)
            ways[order, name] = streamed(stored, limit, given.threads)
    judge = run(graph, SUPERSTEPS, given.threads)
    seconds: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    spent: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    for work in ways.values():
        work(1)  # in memory the second run has rows by degree
    for _ in range(given.repeats):
        for way, work in ways.items():
            began = time.process_time()
            work(1)
            between = time.process_time()
            result = work(SUPERSTEPS)
            spent[way].append((time.process_time() - 2 * between + began) / (SUPERSTEPS - 1))
            seconds[way] += [s.seconds for s in result.stats[1:]]
            check(np.allclose(result["rank"], judge["rank"], rtol=1e-9, atol=0))
    in_memory = min(spent["memory", "all"])
    for (order, share), found in seconds.items():
        row: dict[str, Any] = {"work": "PageRank, a superstep", "graph": f"kron-{given.scale}"}
        row |= {"rows": order, "kept": share, "least_ms": round(min(found) * 1e3, 1)}
        row["processor_ms"] = round(min(spent[order, share]) * 1e3, 1)
        row["of_memory"] = round(in_memory / min(spent[order, share]), 2)
        if order in stores:
            packed = sigps.load(stores[order]).packed
            assert packed is not None
            row["bytes_an_arc"] = round(4 * packed.rows.words.size / graph.num_edges, 2)
        text = f"{row['least_ms']:>7} ms, {row['processor_ms']:>7} of processors, {row['of_memory']} of memory's rate"
        table.add(row, f"rows {order:<7} kept {share:<5} {text}")


def run(graph: sigps.Graph, supersteps: int, threads: int, **more: Any) -> sigps.Result:
    """Run on CPU cores in supersteps."""
    return sigps.run(
        PageRank(iterations=supersteps), graph, device="cpu", threads=threads, asynchronous=False, **more
    )


def streamed(stored: sigps.Graph, limit: int, threads: int) -> Callable[[int], sigps.Result]:
    """Return a function of supersteps that runs with edges in the store."""
    return lambda n: run(stored, n, threads, stream="always", host_memory=limit)


def least_memory(stored: sigps.Graph, threads: int) -> int:
    """Return the least limit with which a run streams."""
    from sigps.compiler.frontend.analysis import analyse
    from sigps.engine.contract import RunOptions

    program = PageRank(iterations=SUPERSTEPS)
    what = program, analyse(program), stored, "cpu", RunOptions()
    found = decide_streaming(*what, host_memory=None, stream="always", threads=[threads])
    assert found is not None
    return sum(found.resident.values())


if __name__ == "__main__":
    main()
