"""Time apps on one GPU as users wait for them, beside what cuGraph took, on six graphs.

    pip install -e '.[cu13]'
    python scripts/bench/beside_cugraph.py --data FOLDER
    python scripts/bench/beside_cugraph.py --data FOLDER --graphs kron-22,web-NotreDame --only BFS,WCC --seconds 140

The folder has the public files `USA-road-NE.gr.xz`, `web-NotreDame.txt.xz` and `cnr-2000.txt.xz`; the others are
generated. Real graphs are made symmetric and simple. Weights are whole numbers from 1 to 255, equal in both directions.
Searches begin at a vertex of highest degree, in grids at the corner, and on kron at 8 random vertices with an edge, of
which the mean is reported.

"whole" is `sigps.run` with the device synchronised before and after, its answer on the device; "host" has the answer as
NumPy, too; "device" sums the supersteps. Graphs are resident, code is compiled, single precision; medians. Each answer
is first compared with that of the CPU engine, in double precision where it has floats (`tests/` compares that one with
NetworkX and SciPy). Triangles are counted anew each time.

What cuGraph took, `PEER`, is not measured here: version 26.10 with RMM's pool on one NVIDIA H200 (driver 580.159,
CUDA 13.0), 2026-11-22, on graphs drawn and made by the same rules, medians of 3 to 7, float32, renumbered and resident.
A ratio is cuGraph's time over that of sigps, of the same kind. Rows that are in the output file already, of the same
kind of GPU, stay where they are not measured anew.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS
from gpu import facts, forget_counts, gpu_name
from measuring import Table, check, run, timed

import sigps
from sigps.apps import (
    BFS,
    HITS,
    SSSP,
    WCC,
    EgoNet,
    EigenvectorCentrality,
    Katz,
    KCore,
    PageRank,
    PersonalisedPageRank,
    Triangles,
    betweenness,
)
from sigps.graph.generators.edge_streams import weigh

GRAPHS = ("web-NotreDame", "cnr-2000", "USA-road-NE", "kron-22", "grid-4000", "kron-24")

PEER: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "PageRank, 30 rounds": {
        "kron-22": (30.7, 31.9), "kron-24": (109, 128), "USA-road-NE": (3.0, 3.9), "web-NotreDame": (3.3, 3.5),
        "cnr-2000": (4.1, 4.4), "grid-4000": (12.0, 45),
    },
    "BFS": {
        "kron-22": (2.5, 3.8), "kron-24": (4.1, 25.4), "USA-road-NE": (502, 503), "web-NotreDame": (5.9, 6.2),
        "cnr-2000": (8.2, 8.5), "grid-4000": (2186, 2216),
    },
    "SSSP": {
        "kron-22": (63, 65), "kron-24": (101, 126), "USA-road-NE": (1316, 1318), "web-NotreDame": (45, 45),
        "cnr-2000": (98, 99), "grid-4000": (5070, 5103),
    },
    "WCC": {
        "kron-22": (22, 23), "kron-24": (44, 66), "USA-road-NE": (33, 34), "web-NotreDame": (18, 18),
        "cnr-2000": (20, 21), "grid-4000": (51, 85),
    },
    "core numbers": {
        "kron-22": (293, 294), "kron-24": (422, 427), "USA-road-NE": (39, 40), "web-NotreDame": (202, 202),
        "cnr-2000": (375, 376), "grid-4000": (1301, 1341),
    },
    "triangles": {
        "kron-22": (673, 674), "kron-24": (4269, 4274), "USA-road-NE": (15, 16), "web-NotreDame": (10, 10),
        "cnr-2000": (8.8, 9.1), "grid-4000": (41, 75),
    },
    "betweenness, 32 sources": {"kron-22": (1004, 1005), "web-NotreDame": (68, 68), "cnr-2000": (82, 82)},
    "Katz to 1e-6": {"kron-22": (6.2, 7.5), "web-NotreDame": (0.48, 0.74), "cnr-2000": (0.74, 1.0)},
    "personalised PageRank, 50 rounds": {
        "kron-22": (49, 50), "web-NotreDame": (5.6, 5.9), "cnr-2000": (6.8, 7.1),
    },
    "eigenvector, 60 rounds": {"kron-22": (57.6, None), "web-NotreDame": (6.7, None), "cnr-2000": (7.5, None)},
    "HITS, 30 rounds": {"web-NotreDame": (5.7, None), "cnr-2000": (6.2, None)},
    "ego net of the hub": {"kron-22": (26, 139), "web-NotreDame": (1.6, 2.0), "cnr-2000": (1.6, 2.0)},
}  # fmt: skip
"""cuGraph's milliseconds, by work and graph: whole, and with the answer on the host; None where it is not known."""


@dataclass
class Subject:
    """A graph to measure on, made at its first use.

    Attributes:
        name: One of `GRAPHS`, or with another number: `kron-10`, `grid-30`.
        data: The folder of files.
    """

    name: str
    data: Path

    @cached_property
    def graph(self) -> sigps.Graph:
        """The graph, symmetric and simple, with weights."""
        kind, _, size = self.name.partition("-")
        if kind == "kron":
            return sigps.generate("rmat", scale=int(size), weights="random")
        if kind == "grid":
            return sigps.generate("grid", rows=int(size), columns=int(size), weights="random")
        read = self._read(directed=False)
        sources = np.repeat(np.arange(read.num_vertices), np.diff(read.offsets).astype(np.int64))
        targets = read.targets.astype(np.int64)
        once = sources < targets  # an undirected edge stands in both rows
        ends = sources[once], targets[once]
        vertices = np.arange(read.num_vertices)
        return sigps.Graph.from_edges(*ends, weigh(*ends, 1), directed=False, vertices=vertices)

    @cached_property
    def directed(self) -> sigps.Graph:
        """The graph as the file has it, each edge once and without loops."""
        return self._read(directed=True)

    def _read(self, *, directed: bool) -> sigps.Graph:
        (file,) = self.data.glob(f"{self.name}.*")
        return sigps.load(file, directed=directed, weights=False, duplicates="drop", self_loops="drop")

    @cached_property
    def dense(self) -> sigps.Graph:
        """The graph without isolated vertices, on which cuGraph's figures of some works on kron are."""
        connected = np.flatnonzero(np.diff(self.graph.offsets) > 0)
        return self.graph if connected.size == self.graph.num_vertices else self.graph.subgraph(connected)

    @cached_property
    def sources(self) -> list[int]:
        """Where searches begin."""
        if self.name.startswith("grid"):
            return [0]
        degrees = np.diff(self.graph.offsets)
        if not self.name.startswith("kron"):
            return [int(np.argmax(degrees))]
        found: list[int] = np.random.default_rng(1).choice(np.flatnonzero(degrees > 0), 8).tolist()
        return found

    def hub(self, graph: sigps.Graph) -> int:
        """Return the id of a vertex of highest degree."""
        return int(np.asarray(graph.ids)[np.argmax(np.diff(graph.offsets))])


@dataclass(frozen=True)
class Work:
    """What is measured: programs on a graph, of which the mean is reported.

    Attributes:
        programs: Returns them and their graph.
        fields: What the answer has.
        rtol: How far floats may be from the CPU's; 0: equal.
        before: Called before each run.
    """

    programs: Callable[[Subject], tuple[list[sigps.Vertex], sigps.Graph]]
    fields: tuple[str, ...]
    rtol: float = 0.0
    before: Callable[[sigps.Graph], None] = lambda graph: None


def katz(subject: Subject) -> tuple[list[sigps.Vertex], sigps.Graph]:
    """Return Katz centrality with an attenuation that the highest degree allows on every graph."""
    attenuation = 1 / (1 + float(np.diff(subject.dense.offsets).max()))
    return [Katz(attenuation=attenuation, tolerance=1e-6)], subject.dense


WORKS = {
    "BFS": Work(lambda s: ([BFS(source=v) for v in s.sources], s.graph), ("level",)),
    "WCC": Work(lambda s: ([WCC()], s.graph), ("component",)),
    "SSSP": Work(lambda s: ([SSSP(source=v) for v in s.sources], s.graph), ("distance",)),
    "PageRank, 30 rounds": Work(lambda s: ([PageRank(iterations=30)], s.graph), ("rank",), rtol=1e-3),
    "core numbers": Work(lambda s: ([KCore()], s.graph), ("core",)),
    "triangles": Work(lambda s: ([Triangles()], s.graph), ("triangles",), before=forget_counts),
    "Katz to 1e-6": Work(katz, ("score",), rtol=1e-4),
    "personalised PageRank, 50 rounds": Work(
        lambda s: ([PersonalisedPageRank(source=s.hub(s.dense), iterations=50)], s.dense),
        ("rank",),
        rtol=1e-3,
    ),
    "eigenvector, 60 rounds": Work(
        lambda s: ([EigenvectorCentrality(iterations=60, tolerance=0)], s.dense), ("score",), rtol=1e-3
    ),
    "HITS, 30 rounds": Work(lambda s: ([HITS(iterations=30)], s.directed), ("hub", "authority"), rtol=1e-3),
    "ego net of the hub": Work(lambda s: ([EgoNet(source=s.hub(s.dense))], s.dense), ("hop",)),
}


_MOST_SECONDS = 4.0
"""That repeating one program may take: what takes seconds is repeated less."""


def measure(work: str, subject: Subject, table: Table, repeats: int) -> None:
    """Check an answer, and time it on the device and with NumPy's arrays."""
    rule = WORKS[work]
    programs, graph = rule.programs(subject)
    judge = sigps.run(programs[-1], graph, device="cpu", precision="double" if rule.rtol else "single")
    answer = run(programs[-1], graph)
    for field in rule.fields:
        largest = float(np.abs(judge[field]).max()) if rule.rtol else 0.0
        check(np.allclose(answer[field], judge[field], rtol=rule.rtol, atol=1e-7 * largest))

    began = time.perf_counter()
    run(programs[-1], graph)[rule.fields[0]]
    repeats = max(1, min(repeats, int(_MOST_SECONDS / (time.perf_counter() - began))))

    def on_device(program: sigps.Vertex) -> sigps.Result:
        rule.before(graph)
        return run(program, graph)

    def on_host(program: sigps.Vertex) -> sigps.Result:
        result = on_device(program)
        for field in rule.fields:
            result[field]  # crosses when it is first read
        return result

    times = [timed(lambda p=p: on_device(p), repeats) for p in programs]  # type: ignore[misc]
    host = statistics.mean(timed(lambda p=p: on_host(p), repeats)[0] for p in programs)  # type: ignore[misc]
    whole, device = (statistics.mean(t[i] for t in times) for i in (0, 1))
    add(work, subject, table, device=device, whole=whole, host=host, supersteps=times[-1][2].supersteps)


def measure_betweenness(work: str, subject: Subject, table: Table, repeats: int) -> None:
    """Time betweenness from 32 vertices, whose answer is on the host."""
    graph, options = subject.dense, {"samples": 32, "seed": 1, "precision": "single"}
    judge = betweenness(graph, **options | {"precision": "double"}, device="cpu")["centrality"]
    found = betweenness(graph, **options, device="cuda")["centrality"]
    check(np.allclose(found, judge, rtol=1e-2, atol=1e-5 * float(judge.max())))
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        betweenness(graph, **options, device="cuda")
        seconds.append(time.perf_counter() - began)
    add(work, subject, table, host=statistics.median(seconds))


MEASURES = {**dict.fromkeys(WORKS, measure), "betweenness, 32 sources": measure_betweenness}


def add(
    work: str, subject: Subject, table: Table, *, supersteps: int | None = None, **seconds: float
) -> None:
    """Add a row, beside cuGraph's."""
    times = {f"{kind}_ms": round(value * 1e3, 3) for kind, value in seconds.items()}
    row: dict[str, Any] = {"work": work, "graph": subject.name, **times}
    peer = dict(zip(("whole", "host"), PEER[work].get(subject.name, (None, None)), strict=True))
    for kind, ms in peer.items():
        if ms is not None and kind in seconds:
            row |= {f"cugraph_{kind}_ms": ms, f"{kind}_times_faster": round(ms / times[f"{kind}_ms"], 2)}
    if supersteps is not None:
        row["supersteps"] = supersteps
    table.add(
        row, "  ".join(f"{name} {value}" for name, value in row.items() if name not in ("work", "graph"))
    )


def add_means(rows: list[dict[str, Any]], table: Table) -> None:
    """Add the geometric means of the ratios of each work, and the least of them."""
    for work in dict.fromkeys(row["work"] for row in rows):
        for kind in ("whole", "host"):
            name = f"{kind}_times_faster"
            ratios = [row[name] for row in rows if row["work"] == work and name in row]
            if len(ratios) > 1:
                mean = math.exp(statistics.mean(map(math.log, ratios)))
                summary = {"graphs": len(ratios), "least": min(ratios), "geometric_mean": round(mean, 2)}
                row = {"work": work, "graph": "all", "kind": kind, **summary}
                table.add(row, f"{kind}: {summary}")


def kept_rows(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the rows of an earlier run on such a GPU that this one does not measure anew."""
    if not given.output.exists():
        return []
    earlier = json.loads(given.output.read_text())
    if earlier["gpu"] != gpu_name():
        return []
    anew = {(work, graph) for work in given.only for graph in given.graphs}
    return [r for r in earlier["rows"] if r["graph"] != "all" and (r["work"], r["graph"]) not in anew]


def main() -> None:
    """Run the benchmark that the arguments describe; exit with 1 where a measure failed."""
    given, began = arguments(), time.monotonic()
    table, failed = Table(given.output, facts(given)), []
    table.rows += kept_rows(given)
    for name in given.graphs:
        subject = Subject(name, given.data)
        for work in given.only:
            if name not in PEER[work] and name in GRAPHS:
                continue
            if time.monotonic() - began > given.seconds:
                failed.append(f"no time for {work} on {name}")
                continue
            try:
                MEASURES[work](work, subject, table, given.repeats)
            except Exception:
                traceback.print_exc()
                failed.append(f"{work} on {name}")
        print(f"{name}: {time.monotonic() - began:.0f} s since the beginning", flush=True)
    add_means(table.rows, table)
    print(f"written to {given.output}")
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=Path("data"), help="the folder of the files")
    options.add_argument("--graphs", type=lambda text: text.split(","), default=list(GRAPHS))
    options.add_argument(
        "--only", type=lambda text: text.split(";"), default=list(MEASURES), help=f"of {';'.join(MEASURES)}"
    )
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after so many")
    options.add_argument("--output", type=Path, help="the JSON file")
    options.add_argument("--commit", help="where this is no checkout")
    given = options.parse_args()
    given.output = given.output or RESULTS / f"beside-cugraph-{gpu_name().lower().replace(' ', '-')}.json"
    return given


if __name__ == "__main__":
    main()
