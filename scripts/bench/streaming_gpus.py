"""Time runs whose edges stream from the host to as many GPUs as there are ranks, each over a link of its own.

    mpirun -n 1 python scripts/bench/streaming_gpus.py --scales 25,29 --graphs /tmp/packed --output one.json
    mpirun -n 4 python scripts/bench/streaming_gpus.py --scales 25,29 --graphs /tmp/packed --against one.json

A Kronecker graph is drawn and packed on rank 0's GPU and kept in the folder for the next run. No page stays on a
device (`stream: always`). PageRank reads all pages in each superstep, in single precision: its row is the median
superstep, and its ranks must add up to 1. A row of BFS or WCC is all supersteps of a run, the median of some; what it
finds is compared by the tests, here only its sum with that of `--against`. `--device cpu` tries the script where there
is no GPU. Rank 0 prints, and writes the JSON file anew with each row.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from multi_gpu import GROUP, OPTIONS, Table, check

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.group.ranks import Alone

SUPERSTEPS = 12


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", type=lambda text: [int(t) for t in text.split(",") if t], default=[25])
    options.add_argument("--programs", nargs="+", default=["PageRank", "BFS", "WCC"], choices=PROGRAMS)
    options.add_argument("--repeats", type=int, default=3, help="of searches")
    options.add_argument("--transport", default="auto", choices=["auto", "peer", "nccl", "mpi"])
    options.add_argument("--graphs", type=Path, required=True, help="a folder to keep packed graphs in")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--against", type=Path, help="the JSON file of a run with another number of ranks")
    options.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    given.weak = None
    OPTIONS.update(transport=given.transport, device=given.device)
    table, sums = Table(given), sums_in(given.against)
    for scale in given.scales:
        name = f"kron-{scale}"
        graph = opened(given.graphs / name, scale)
        for work in given.programs:
            measure(work, graph, name, table, sums.get((work, name)), given.repeats)


def sums_in(file: Path | None) -> dict[tuple[str, str], float]:
    """Return the sums of what an earlier run found, by work and graph."""
    rows = json.loads(file.read_text())["rows"] if file else []
    return {(row["work"], row["graph"]): row["sum"] for row in rows}


def opened(store: Path, scale: int) -> sigps.Graph:
    """Draw and pack a graph, unless it was kept, and let every rank open it."""
    if GROUP.rank == 0 and not store.exists():
        began = time.perf_counter()
        store.parent.mkdir(parents=True, exist_ok=True)
        if OPTIONS["device"] == "cuda":
            from sigps.device.cuda import find_gpu
            from sigps.graph.generators.drawn_store import write_drawn
            from sigps.graph.generators.generate import edge_stream

            write_drawn(edge_stream("rmat", scale=scale, seed=1), store, find_gpu())
        else:
            sigps.generate("rmat", scale=scale, seed=1, group=Alone()).save(store, packed=True)
        print(f"{store.name} drawn and packed in {time.perf_counter() - began:.0f} s", flush=True)
    GROUP.barrier()
    return sigps.load(store, verify="none", group=GROUP)


PROGRAMS = {
    "PageRank": lambda graph: PageRank(iterations=SUPERSTEPS),
    "BFS": lambda graph: BFS(source=GROUP.broadcast(int(np.flatnonzero(graph.out_degrees())[0]))),
    "WCC": lambda graph: WCC(),
}
"""A search begins at the first vertex that has edges, which is rank 0's."""
FIELDS = {"PageRank": "rank", "BFS": "level", "WCC": "component"}


def measure(
    work: str, graph: sigps.Graph, name: str, table: Table, expected: float | None, repeats: int
) -> None:
    """Run a program, compare what it found, and add a row."""
    program, is_sums = PROGRAMS[work](graph), work == "PageRank"
    asked = OPTIONS | {"stream": "always", "precision": "single" if is_sums else "double"}
    if is_sums and OPTIONS["device"] == "cuda":
        asked["transfer"] = "bulk"
    seconds, first = list[float](), 0.0
    for turn in range(1 if is_sums else 1 + repeats):
        GROUP.barrier()
        began = time.perf_counter()
        found = sigps.run(program, graph, **asked)
        GROUP.barrier()
        if turn == 0:
            first = time.perf_counter() - began
        steps = found.stats[2 : SUPERSTEPS - 1] if is_sums else found.stats
        times = [s.seconds for s in steps]
        seconds.append(statistics.median(times) if is_sums else sum(times))
        bytes_read = steps[0].bytes_read if is_sums else sum(s.bytes_read for s in steps)
        moved = steps[0].bytes_moved if is_sums else sum(s.bytes_moved for s in steps)
        imbalance = steps[0].imbalance
        values = np.asarray(found[FIELDS[work]])
        part = float(values.sum(dtype=np.float64)) if is_sums else int(values.sum(dtype=np.int64))
        del found, values
        total = sum(GROUP.all_gather(part))
        wanted = 1.0 if is_sums else expected
        check(wanted is None or abs(total - wanted) <= 1e-3 * is_sums, f"{work} on {name}: sum {total}")
    if not is_sums:
        seconds = seconds[1:]
    taken = statistics.median(seconds)
    more = {"megabytes_read": round(bytes_read / 1e6, 1), "gb_s": round(bytes_read / taken / 1e9, 1)}
    more |= {"bytes_moved": moved, "first_run_seconds": round(first, 2), "sum": total}
    if is_sums:
        more["imbalance"] = round(imbalance, 3)
    table.add(work, name, taken, **more)


if __name__ == "__main__":
    main()
