"""Time PageRank declared as a contraction along packed edges of a GPU's host: by supersteps and without barriers.

    python scripts/bench/contractions_gpu.py cnr-2000.txt.xz:directed:6e-5:4096 grid-4000::1e-6:262144

A graph is a file, `rmat-SCALE` or `grid-ROWS`, with its tolerance and the arcs of a page; rows have the given order. No
page stays on the device. The ways take turns; a row has the least time of all supersteps of `--repeats` runs, sweeps
(supersteps that read the edges), the bytes that crossed, and the largest error, against supersteps to 1e-10. Prints a
row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from contractions import Rank, graph_of
from facts import RESULTS, driver_version, machine_facts
from measuring import Table

import sigps
from sigps.device.cuda import find_gpu
from sigps.graph.formats.packed_store import save_packed

WAYS: dict[str, Any] = {"supersteps": False, "without barriers": True}


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("graphs", nargs="+", help="as in cnr-2000.txt.xz:directed:6e-5:4096")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--output", type=Path)
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    name = find_gpu().name
    output = given.output or RESULTS / f"contractions-gpu-{name.lower().replace(' ', '-')}.json"
    facts = machine_facts() | ({"commit": given.commit} if given.commit else {})
    table = Table(output, facts | {"gpu": name, "driver": driver_version()})
    for described in given.graphs:
        graph_name, kind, tolerance, page_arcs = described.rsplit(":", 3)
        with tempfile.TemporaryDirectory() as folder:
            graph = graph_of(graph_name, kind)
            save_packed(graph, Path(folder, "store"), order="given", page_arcs=int(page_arcs))
            exact = np.asarray(sigps.run(Rank(tolerance=1e-10), graph, device="cpu")["rank"])
            stored = sigps.load(Path(folder, "store"))
            described = {"graph": Path(graph_name).name, "page_arcs": int(page_arcs)}
            measure(stored, described, exact, float(tolerance), given.repeats, table)


def measure(
    graph: sigps.Graph,
    described: dict[str, Any],
    exact: Any,
    tolerance: float,
    repeats: int,
    table: Table,
) -> None:
    """Add a row for each way."""
    program = Rank(tolerance=tolerance)
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    facts: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for way, asynchronous in WAYS.items():
            found = sigps.run(program, graph, device="cuda", stream="always", asynchronous=asynchronous)
            times[way].append(1e3 * sum(s.seconds for s in found.stats))
            bytes_read = [s.bytes_read for s in found.stats if s.bytes_read]
            error = float(np.abs(np.asarray(found["rank"]) - exact).max())
            computed = sum(s.active for s in found.stats) / graph.num_vertices
            facts[way] = {
                "sweeps": len(bytes_read),
                "megabytes": round(sum(bytes_read) / 1e6, 1),
                "computed": round(computed, 1),
                "error": error,
            }
            del found
    for way, read in facts.items():
        row = described | {"work": way, "tolerance": tolerance, "ms": round(min(times[way][1:]), 2)} | read
        table.add(row, "  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
