"""Time PageRank declared as a contraction: by supersteps, without barriers, and as `asynchronous="auto"` decides.

    python scripts/bench/contractions.py cnr-2000.txt.xz:directed:5e-5 dblp-2010.mtx.xz:undirected:1e-6 rmat-16::1e-5

A graph is a file, `rmat-SCALE` or `grid-ROWS`, with its tolerance. The ways take turns in one process; each is timed at
that tolerance, and without barriers at a tenth of it too, where errors are about those of supersteps. A row has the
least time and the least processor time of `--repeats` runs, of which the first turn is not counted; the largest error,
against supersteps to 1e-10; and sweeps: in-edges of computed vertices, or of blocks that were taken, over all edges.
Prints a row at a time, and writes a JSON file to `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from measuring import Table

import sigps
from sigps import GAS, Graph, Param, Result, State

WAYS: dict[str, tuple[Any, float]] = {
    "supersteps": (False, 1.0),
    "without barriers": (True, 1.0),
    "to a tenth": (True, 0.1),
    "auto": ("auto", 1.0),
}


class Rank(GAS, asynchronous=0.85):
    """PageRank from 1, until no rank changes by more than `tolerance`."""

    tolerance: Param[float]
    rank: State[float] = 1.0

    def gather(self, edge):
        """What a source gives to each of its targets."""
        return edge.source.rank / edge.source.out_degree

    def apply(self, total):
        """Take them."""
        old = self.rank
        self.rank = 0.15 + 0.85 * total
        return abs(self.rank - old) > self.tolerance


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("graphs", nargs="+", help="as in cnr-2000.txt.xz:directed:5e-5 or rmat-16::1e-5")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--output", type=Path, default=RESULTS / "contractions-cpu.json")
    given = options.parse_args()
    table = Table(given.output, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    for described in given.graphs:
        name, kind, tolerance = described.rsplit(":", 2)
        measure(graph_of(name, kind), Path(name).name, float(tolerance), given, table)


def graph_of(name: str, kind: str) -> Graph:
    """Load or generate a graph."""
    if name.startswith("rmat-"):
        return sigps.generate("rmat", scale=int(name[5:]), directed=False)
    if name.startswith("grid-"):
        return sigps.generate("grid", rows=int(name[5:]), columns=int(name[5:]))
    return sigps.load(name, directed=kind == "directed")


def measure(graph: Graph, name: str, tolerance: float, given: argparse.Namespace, table: Table) -> None:
    """Add a row for each way."""
    exact = ran(graph, 1e-10, False, given)["rank"]
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    results: dict[str, Result] = {}
    for _ in range(given.repeats + 1):
        for way, (asynchronous, share) in WAYS.items():
            wall, processor = time.perf_counter(), time.process_time()
            results[way] = ran(graph, tolerance * share, asynchronous, given)
            times[way].append((time.perf_counter() - wall, time.process_time() - processor))
    for way, result in results.items():
        wall, processor = (min(column) * 1e3 for column in zip(*times[way][1:], strict=True))
        error = float(np.abs(result["rank"] - exact).max())
        read = sum(entry.messages for entry in result.stats) / graph.num_edges
        loaded = sum(entry.block_edges for entry in result.stats) / graph.num_edges
        found = {"work": way, "graph": name, "tolerance": tolerance, "ms": wall, "processor_ms": processor}
        text = (
            f"{wall:>8.1f} ms, {processor:>8.1f} of processors  error {error:.1e}  {read:>5.1f} sweeps read"
        )
        text += f", {loaded:.1f} loaded, {len(result.stats)} entries"
        table.add(
            found | {"error": error, "read": read, "loaded": loaded, "entries": len(result.stats)}, text
        )


def ran(graph: Graph, tolerance: float, asynchronous: Any, given: argparse.Namespace) -> Result:
    """Run it once."""
    program = Rank(tolerance=tolerance)
    return sigps.run(program, graph, device="cpu", threads=given.threads, asynchronous=asynchronous)


if __name__ == "__main__":
    main()
