"""Time supersteps over in-edges in rows and in tiles on one GPU, and what tiles take.

    pip install -e '.[cu13]'
    python scripts/bench/tiles.py --data FOLDER
    python scripts/bench/tiles.py --data FOLDER --graphs kron-22 --only 'PageRank;HITS'

The folder has the public files `web-NotreDame.txt.xz`, `cnr-2000.txt.xz` and `dblp-2010.mtx.xz`, which are made
symmetric and simple; the others are generated: `kron-S`, `uniform-S` (16 * 2**S pairs, all equally likely) and `web-S`
(12 * 2**S links, three quarters of them to near vertices, the others to vertices of skewed popularity).

A time is the median of supersteps on the device, without the first two and the last, runs with `tiles="never"`,
`"always"` and `"auto"` taking turns; of `SSSP` and `WCC` it is that of all supersteps of a run. Answers over tiles are
compared with those over rows in the same precision, and on graphs of fewer than 40 million edges these with the CPU
engine's in double precision. A layout is timed from edges in the host's memory to the end of the device's work, when
kernels are loaded and memory was taken before. Prints a row as soon as it is measured, and writes the JSON file anew
with it, by default in `scripts/bench/results/`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from beside_cugraph import Subject
from facts import RESULTS
from gpu import facts, gpu_name
from measuring import Table, check, synchronise

import sigps
from sigps import State, Vector, Vertex
from sigps.apps import (
    HITS,
    SSSP,
    WCC,
    EigenvectorCentrality,
    HeatDiffusion,
    Katz,
    PageRank,
    PersonalisedPageRank,
)
from sigps.device.cuda import find_gpu
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import placement
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.engine.gpu.resident import forget_on_gpu
from sigps.errors import ConfigError

GRAPHS = (
    *("kron-20", "kron-22", "kron-24", "uniform-22", "web-22"),
    *("web-NotreDame", "cnr-2000", "dblp-2010"),
)
WAYS = ("never", "always", "auto")
ROUNDS = 12
MOST_EDGES_ON_CPU = 40_000_000

Four = Vector[float, 4]


class Spreading(Vertex, message=Four):
    """Four numbers a vertex: the mean of the neighbours', and a share of its own."""

    scores: State[Four] = 0.0

    def compute(self, messages):
        """Take the mean, and pass it on."""
        if self.superstep == 0:
            self.scores[self.id % 4] = 1.0
        elif self.out_degree > 0:
            self.scores = 0.1 * self.scores + 0.9 * sum(messages) / self.out_degree
        if self.superstep < ROUNDS:
            self.send_to_neighbors(self.scores)
        else:
            self.vote_to_halt()


class Generated(Subject):
    """A graph of the kinds that only this script has."""

    @cached_property
    def graph(self) -> sigps.Graph:
        """The graph, symmetric and simple, with weights."""
        kind, _, scale = self.name.partition("-")
        n = 1 << int(scale)
        if kind == "uniform":
            return sigps.generate("erdos_renyi", n=n, m=16 * n, weights="random")
        rng = np.random.default_rng(3)
        sources = np.repeat(np.arange(n, dtype=np.int64), 12)
        near = np.minimum(np.exp(8 * rng.random(sources.size)), 3000).astype(np.int64)
        targets = (sources + np.where(rng.random(sources.size) < 0.5, near, -near)) % n
        is_far = rng.random(sources.size) < 0.25
        popular = (n * rng.random(int(is_far.sum())) ** 4).astype(np.int64)
        targets[is_far] = rng.permutation(n)[popular]
        options: Any = {"directed": False, "duplicates": "drop", "self_loops": "drop"}
        return sigps.Graph.from_edges(sources, targets, np.ones(sources.size, np.float32), **options)


def highest_degree(subject: Subject) -> float:
    """Return the most edges of a vertex."""
    return float(np.diff(subject.graph.offsets).max())


WORKS: dict[str, tuple[Callable[[Subject], Vertex], tuple[str, ...]]] = {
    "PageRank": (lambda s: PageRank(iterations=ROUNDS), ("rank",)),
    "personalised PageRank": (
        lambda s: PersonalisedPageRank(source=s.hub(s.graph), iterations=ROUNDS),
        ("rank",),
    ),
    "Katz": (
        lambda s: Katz(attenuation=0.5 / highest_degree(s), iterations=ROUNDS, tolerance=0),
        ("score",),
    ),
    "eigenvector": (lambda s: EigenvectorCentrality(iterations=ROUNDS, tolerance=0), ("score",)),
    "label spreading, 4 numbers": (lambda s: Spreading(), ("scores",)),
    "HITS": (lambda s: HITS(iterations=ROUNDS // 2), ("hub", "authority")),
    "heat": (
        lambda s: HeatDiffusion(source=s.hub(s.graph), rate=1e-3 / highest_degree(s), steps=ROUNDS),
        ("heat",),
    ),
    "SSSP": (lambda s: SSSP(source=s.hub(s.graph)), ("distance",)),
    "WCC": (lambda s: WCC(), ("component",)),
}
"""What is measured: a program for a graph, and the fields that are compared."""

IN_BOTH = ("PageRank",)
"""What is measured in double precision, too."""

OF_WHOLE_RUNS = ("SSSP", "WCC")


class Layouts:
    """Notes what runs lay out on the GPU, and how long each layout takes."""

    def __init__(self) -> None:
        self.last: gpu_graph.GpuGraph | None = None
        self.seconds: dict[int, float] = {}
        self._make = gpu_graph.graph_on_gpu
        placement.graph_on_gpu = self._noted  # type: ignore[attr-defined]

    def _noted(self, *given: Any, **options: Any) -> gpu_graph.GpuGraph:
        synchronise()
        began = time.perf_counter()
        self.last = self._make(*given, **options)
        synchronise()
        self.seconds.setdefault(id(self.last), time.perf_counter() - began)
        return self.last

    @property
    def way(self) -> str:
        """Where the last run's in-edges lie."""
        assert self.last is not None
        return "rows" if self.last.tiles is None else "tiles"

    @property
    def bytes_an_edge(self) -> float:
        """What the last run's in-edges take, without columns."""
        assert self.last is not None
        edges, in_rows = self.last.incoming, isinstance(self.last.incoming, PlacedEdges)
        num_bytes = int(edges.ends.nbytes) + edges.rows.nbytes if in_rows else edges.nbytes
        return num_bytes / self.last.numbering.subgraph.incoming.num_edges


def run(program: Vertex, graph: sigps.Graph, precision: Any, tiles: Any) -> sigps.Result:
    """Run on the GPU."""
    return sigps.run(program, graph, device="cuda", precision=precision, tiles=tiles)


def device_seconds(work: str, result: sigps.Result) -> list[float]:
    """Return the times that count of a run."""
    seconds = [s.seconds for s in result.stats]
    return [sum(seconds)] if work in OF_WHOLE_RUNS else seconds[2:-1]


def measure(
    work: str, precision: str, subject: Subject, layouts: Layouts, table: Table, repeats: int
) -> None:
    """Check the answers, and time the ways of one program in turn."""
    make, fields = WORKS[work]
    program, graph = make(subject), subject.graph
    row: dict[str, Any] = {"work": work, "graph": subject.name, "precision": precision}
    judge, ways = run(program, graph, precision, "never"), ["never"]
    if graph.num_edges < MOST_EDGES_ON_CPU:
        of_cpu = sigps.run(program, graph, device="cpu", precision="double")
        compare(judge, of_cpu, fields, 1e-3 if precision == "single" else 1e-9)
    for way in WAYS[1:]:
        try:
            found = run(program, graph, precision, way)
        except ConfigError as error:
            row["why_not"] = str(error).split("always': ")[-1].removesuffix(". Use tiles='auto'")
            continue
        compare(found, judge, fields, 1e-4 if precision == "single" else 1e-9)
        if way == "auto":
            row["auto"] = layouts.way
        ways.append(way)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way in ways:
            times[way] += device_seconds(work, run(program, graph, precision, way))
    ms = {way: statistics.median(times[way]) * 1e3 for way in ways}
    row |= {f"{name}_ms": round(ms[way], 4) for way, name in NAMES.items() if way in ms}
    row["times_faster"] = round(ms["never"] / ms["auto"], 2)
    say(row, table)


NAMES = {"never": "rows", "always": "tiles", "auto": "auto"}
"""What the ways of a run are called in results."""


def compare(found: sigps.Result, judge: sigps.Result, fields: tuple[str, ...], rtol: float) -> None:
    """Compare answers: floats up to what rounding in another order may change."""
    for field in fields:
        largest = float(np.abs(judge[field][np.isfinite(judge[field])]).max())
        check(np.allclose(found[field], judge[field], rtol=rtol, atol=rtol * 1e-3 * largest), field)


def forget(subject: Subject) -> None:
    """Drop a graph's edges from the GPU."""
    for _, subgraph in subject.graph.derived("partitions", dict).values():
        forget_on_gpu(subgraph, find_gpu())


def measure_layout(precision: str, subject: Subject, layouts: Layouts, table: Table) -> None:
    """Time both layouts, the second time that each is made, and tell what they take."""
    row: dict[str, Any] = {"work": "layout", "graph": subject.name, "precision": precision}
    for way in ("never", "always"):
        for _ in range(2):
            forget(subject)
            layouts.seconds.clear()
            run(PageRank(iterations=2), subject.graph, precision, way)
        assert layouts.last is not None
        row[f"{NAMES[way]}_layout_ms"] = round(layouts.seconds[id(layouts.last)] * 1e3, 1)
        row[f"{NAMES[way]}_bytes_an_edge"] = round(layouts.bytes_an_edge, 2)
    say(row, table)


def say(row: dict[str, Any], table: Table) -> None:
    """Add a row."""
    told = (f"{name} {value}" for name, value in row.items() if name not in ("work", "graph"))
    table.add(row, "  ".join(told))


def main() -> None:
    """Run the benchmark that the arguments describe; exit with 1 where a measure failed."""
    given, began = arguments(), time.monotonic()
    table, failed, layouts = Table(given.output, facts(given)), [], Layouts()
    for name in given.graphs:
        subject = (Generated if name.startswith("uniform") or name == "web-22" else Subject)(name, given.data)
        of_graph: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = []
        for work in given.only:
            for precision in ("single", "double") if work in IN_BOTH else ("single",):
                of_graph.append((work, measure, (work, precision, subject, layouts, table, given.repeats)))
        for precision in ("single", "double") if given.layouts else ():
            of_graph.append(("layout", measure_layout, (precision, subject, layouts, table)))
        for what, act, arguments_of in of_graph:
            if time.monotonic() - began > given.seconds:
                failed.append(f"no time for {what} on {name}")
                continue
            try:
                act(*arguments_of)
            except Exception:
                traceback.print_exc()
                failed.append(f"{what} on {name}")
        forget(subject)
        print(f"{name}: {time.monotonic() - began:.0f} s since the beginning", flush=True)
    print(f"written to {given.output}")
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=Path("data"), help="the folder of the files")
    options.add_argument("--graphs", type=lambda text: text.split(","), default=list(GRAPHS))
    options.add_argument(
        "--only", type=lambda text: text.split(";"), default=list(WORKS), help=f"of {';'.join(WORKS)}"
    )
    options.add_argument("--layouts", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so many")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    given.output = given.output or RESULTS / f"tiles-{gpu_name().lower().replace(' ', '-')}.json"
    return given


if __name__ == "__main__":
    main()
