"""Compare `asynchronous="auto"` with supersteps as they are written, on many graphs.

    python scripts/bench/auto.py --device cpu data/*.xz rmat-16 grid-500

A graph is a file, `rmat-SCALE` or `grid-ROWS`; a file whose first letters are those of a directed graph is read as one
(`DIRECTED`). Each edge gets weights by its ends: whole ones for `SSSP`, and others for `Lengths`. Programs are PageRank
declared as a contraction, shortest paths with and without parents, and components. The two ways take turns in one
process; a row has the least processor time of `--repeats` runs on CPU cores, the least time on a GPU, and their ratio.
The first turn is not counted; short runs take more turns. Prints a row at a time, and writes a JSON file to
`scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import time
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from contractions import Rank
from facts import RESULTS, machine_facts
from measuring import Table, check

import sigps
from sigps import Graph, Param, State, Vertex
from sigps.apps import SSSP, WCC

_MOST_TURNS, _ENOUGH_SECONDS = 60, 0.5

DIRECTED = ("web", "cnr", "soc", "wiki", "p2p", "email-Eu", "rome", "south", "sx")


class Lengths(Vertex, message=float):
    """Lengths of shortest paths, without parents."""

    source: Param[int] = 0
    length: State[float] = inf

    def compute(self, messages):
        """Take the least length, and send it on."""
        received = (
            (0.0 if self.id == self.source else inf) if self.superstep == 0 else min(messages, default=inf)
        )
        if received < self.length:
            self.length = received
            for edge in self.out_edges:
                self.send(edge, self.length + edge.weight)
        self.vote_to_halt()


def main() -> None:
    """Run what the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("graphs", nargs="+", help="files, rmat-SCALE or grid-ROWS")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument(
        "--programs", default="Rank,SSSP,Lengths,WCC", help="those to be run, as in Rank,WCC"
    )
    options.add_argument("--output", type=Path, help="the JSON file")
    given = options.parse_args()
    target = given.output or RESULTS / f"auto-{given.device}.json"
    table = Table(target, machine_facts() | {"threads": given.threads, "repeats": given.repeats})
    for described in given.graphs:
        plain = graph_of(described)
        source = int(plain.ids.to_oids(np.argmax(np.diff(plain.offsets)).reshape(1))[0])
        name = Path(described).name.split(".")[0]
        whole, real = with_weights(plain, whole=True), with_weights(plain, whole=False)
        for program, graph in (
            (Rank(tolerance=1e-6), plain),
            (SSSP(source=source), whole),
            (Lengths(source=source), real),
            (WCC(), plain),
        ):
            if type(program).__name__ not in given.programs.split(","):
                continue
            measure(program, graph, name, given, table)


def graph_of(described: str) -> Graph:
    """Load or generate a graph."""
    if described.startswith("rmat-"):
        return sigps.generate("rmat", scale=int(described[5:]), directed=False)
    if described.startswith("grid-"):
        return sigps.generate("grid", rows=int(described[5:]), columns=int(described[5:]))
    return sigps.load(described, directed=Path(described).name.startswith(DIRECTED))


def with_weights(graph: Graph, *, whole: bool) -> Graph:
    """Return the graph with a weight for each edge, from 1 to 255, that is a whole number or not."""
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(np.int64))
    targets = graph.targets.astype(np.int64)
    low, high = np.minimum(sources, targets), np.maximum(sources, targets)
    weights = ((low * 2654435761 + high * 40503) % 255 + 1).astype(np.float64)
    ends = (graph.ids.to_oids(e) for e in (sources, targets))
    return Graph.from_edges(*ends, weights=weights if whole else weights / 3, directed=True)


def measure(program: Vertex, graph: Graph, name: str, given: argparse.Namespace, table: Table) -> None:
    """Add a row: the two ways in turns."""
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    times: dict[Any, list[float]] = {False: [], "auto": []}
    results = {}
    last, turns = inf, 0
    while turns <= given.repeats or (turns < _MOST_TURNS and turns * last < _ENOUGH_SECONDS):
        turns += 1
        for way, kept in times.items():
            began = clock()
            results[way] = sigps.run(
                program, graph, device=given.device, threads=given.threads, asynchronous=way
            )
            kept.append(last := clock() - began)
    work = type(program).__name__
    if work != "Rank":
        same = (np.array_equal(results[False][f], results["auto"][f]) for f in results[False].fields)
        check(all(same), f"{work} on {name}: the two ways differ")
    ms = {way: round(min(kept[1:]) * 1e3, 2) for way, kept in times.items()}
    ran = "+".join(dict.fromkeys(entry.direction for entry in results["auto"].stats))
    found = {"work": work, "graph": name, "supersteps_ms": ms[False], "auto_ms": ms["auto"], "ran": ran}
    ratio = round(ms["auto"] / ms[False], 3)
    text = f"{ms[False]:>9.2f} ms by supersteps, {ms['auto']:>9.2f} by itself  {ratio:.2f}  {ran}"
    table.add(found | {"ratio": ratio}, text)


if __name__ == "__main__":
    main()
