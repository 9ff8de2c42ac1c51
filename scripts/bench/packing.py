"""Measure packed stores: bytes an arc, rates of packing and unpacking, and what whole stores take.

    python scripts/bench/packing.py --scale 18 22 --file cnr-2000.txt.xz USA-road-NE.gr.xz

Rates are those of one thread over the pages of a graph, in seconds of processor time, so that a busy machine does not
change them. Memory is what a process of its own takes beyond files that are mapped. Writes a JSON file to
`scripts/bench/results/` and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts


def main() -> None:
    """Run the benchmark that the arguments describe, or one measurement of it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scale", nargs="*", type=int, default=[18], help="of recursive-matrix graphs")
    options.add_argument(
        "--file", nargs="*", default=[], type=Path, metavar="PATH", help="pack these as well"
    )
    options.add_argument("--measure", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure[0], Path(given.measure[1]))))
        return
    import sigps

    rows = []
    for what in [*given.scale, *given.file]:
        with tempfile.TemporaryDirectory() as folder:
            graph = sigps.load(what) if isinstance(what, Path) else sigps.generate("rmat", scale=what, seed=1)
            graph.save(Path(folder, "raw"))
            row = {"graph": what.name.split(".")[0] if isinstance(what, Path) else f"kron-{what}"}
            row |= {"arcs": graph.num_edges}
            del graph
            for measured in ("pack", "open", "rates"):
                row |= alone(measured, folder)
            rows.append(row)
            print(row, flush=True)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / "packing.json"
    target.write_text(json.dumps(machine_facts() | {"rows": rows}, indent=2) + "\n")
    print(f"written to {target}")


def alone(what: str, folder: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, folder]
    row: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return row


def measure(what: str, folder: Path) -> dict[str, Any]:
    """Do one thing, kernels having been compiled, and return what it took."""
    import sigps
    from sigps.graph.formats.store_header import describe_edges

    sigps.generate("rmat", scale=8).save(folder / "small", packed=True)
    sigps.load(folder / "small")
    if what == "rates":
        return rates(folder / "packed")
    if what == "open":
        opened, found = watched(lambda: sigps.load(folder / "packed", verify="bounds"))
        return {"open": found | {"bytes_kept": opened.nbytes}}
    _, found = watched(lambda: sigps.load(folder / "raw", verify="none").save(folder / "packed", packed=True))
    return {"on_disk": describe_edges(folder / "packed"), "pack": found}


def watched(work: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """Return what some work returns, its processor time, and the most memory that it took, looked at all the time."""
    before, most, ended = own_memory(), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            most[0] = max(most[0], own_memory())

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.process_time()
    found = work()
    seconds = time.process_time() - began
    ended.set()
    watching.join()
    return found, {"processor_seconds": round(seconds, 2), "peak_bytes": max(0, most[0] - before)}


def own_memory() -> int:
    """Return how many bytes of memory this process has, without mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


def rates(folder: Path) -> dict[str, Any]:
    """Return how many million arcs one thread unpacks and packs in a second of processor time."""
    from sigps.graph.formats.packed_store import packed_rows
    from sigps.graph.formats.store_files import OpenStore
    from sigps.graph.packing.pages import PAGE_ARCS, most_page_words, pack_rows

    packed, _ = packed_rows(OpenStore(folder))
    words = np.empty(most_page_words(PAGE_ARCS, PAGE_ARCS), dtype=np.uint32)
    firsts, gaps, ends, degrees = (np.empty(PAGE_ARCS, dtype=np.uint32) for _ in range(4))
    unpacking = packing = 0.0
    arcs = 0
    for repeat in range(2):  # once to have the store in memory
        for page in range(min(packed.table.num_pages, 100)):
            rows, own = packed.table.rows(page), packed.table.arcs_of(page)
            size = own.stop - own.start
            began = time.thread_time()
            packed.unpack_page(page, degrees[: len(rows)], ends[:size])
            between = time.thread_time()
            pack_rows(degrees[: len(rows)], ends[:size], np.uint64(rows.start), firsts, gaps, words)
            ended = time.thread_time()
            if repeat:
                unpacking, packing, arcs = unpacking + between - began, packing + ended - between, arcs + size
    return {
        "unpacked_million_arcs_a_second": round(arcs / unpacking / 1e6, 1),
        "packed_million_arcs_a_second": round(arcs / packing / 1e6, 1),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    main()
