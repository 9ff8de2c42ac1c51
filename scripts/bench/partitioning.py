"""Compare ways to divide a graph among GPUs: the partitioners, a 2-D layout, and hubs whose in-edges are mirrored.

    python scripts/bench/partitioning.py --scales 20,22,24 --files USA-road-NE.gr.xz --parts 2,4,8

Counted for a superstep in which every vertex sends along every edge: edges of each part, edges that begin at a vertex
of another part, and records that cross. Three rules say where the edge from u to v is:

    1-D             with v's owner; u's record crosses once to each part that has a neighbour of u
    2-D             at (row of u's owner, column of v's owner) in a grid of parts: records cross within rows, sums of
                    what came together within columns
    hubs mirrored   with u's owner if v has many edges, and sums cross; otherwise with v's owner

Where sums cross, ranks exchange twice a superstep. The time is that of PageRank's superstep in single precision,
predicted by `sigps.cli.plan.prediction` for NVIDIA H200, not measured; that sums have to be combined is not in it.
Seconds to partition are measured, once. The 2-D layout and mirrored hubs begin with the parts of `edges`. Writes a
JSON file to `scripts/bench/results/` anew with each row, and prints the rows. Graphs are taken as undirected.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from facts import RESULTS, machine_facts
from numpy.typing import NDArray

import sigps
from sigps.cli.plan.prediction import dense_seconds, h200
from sigps.cli.report import bytes_text
from sigps.costs.sizes import PartitionSize
from sigps.costs.work import Work
from sigps.graph.partitioning.partition import METHODS, partition
from sigps.graph.partitioning.report import measure
from sigps.host_memory import available_memory

PAGERANK = Work(record=4, edge=8, vertex=13)
BYTES_AN_EDGE = {"bfs": 56, "metis": 156}
"""What gathers the graph takes besides it: by its arrays, and as METIS was seen to take at most on kron-20."""

BLOCK_EDGES = 1 << 23

Ints = NDArray[np.integer[Any]]
Rule = Callable[[Ints, Ints, NDArray[np.bool_]], Ints]
"""Owners of sources, owners of targets, whether targets are hubs: the parts of the edges."""


@dataclass
class Counts:
    """What the parts have, and pass on in a dense superstep.

    Attributes:
        vertices: [parts].
        edges: [parts].
        foreign: [parts] edges whose source the part does not own.
        crossing: [parts, parts] records and sums from a part to a part.
    """

    vertices: NDArray[np.int64]
    edges: NDArray[np.int64]
    foreign: NDArray[np.int64]
    crossing: NDArray[np.int64]

    @property
    def most_crossing(self) -> int:
        """What the part sends or receives that has most of either."""
        return int(max(self.crossing.sum(axis=0).max(), self.crossing.sum(axis=1).max()))


def by_target(source: Ints, target: Ints, is_hub: NDArray[np.bool_]) -> Ints:
    """Keep edges with their targets."""
    return target


def by_target_unless_hub(source: Ints, target: Ints, is_hub: NDArray[np.bool_]) -> Ints:
    """Keep edges with their targets, those to hubs with their sources."""
    return np.where(is_hub, source, target)


def by_grid(num_parts: int) -> Rule:
    """Keep edges in a grid of parts that is square, or twice as wide as high."""
    width = 1 << -(-(num_parts.bit_length() - 1) // 2)
    return lambda source, target, is_hub: source // width * width + target % width


def count(graph: sigps.Graph, owners: Ints, num_parts: int, rule: Rule, hubs: NDArray[np.bool_]) -> Counts:
    """Count edge by edge, a block of rows at a time.

    Args:
        graph: Undirected, on one rank: a row holds the out-edges of its vertex, and its in-edges.
        owners: [vertices] the part of each.
        num_parts: Parts.
        rule: Where edges are kept.
        hubs: [vertices] whether a vertex is a hub.
    """
    found = Counts(
        np.bincount(owners, minlength=num_parts),
        *(np.zeros(num_parts, dtype=np.int64) for _ in range(2)),
        np.zeros((num_parts, num_parts), dtype=np.int64),
    )
    degrees = np.diff(graph.offsets).view(np.int64)
    for begin, end in blocks(graph.offsets):
        rows = np.repeat(np.arange(end - begin, dtype=np.uint32), degrees[begin:end])
        targets = graph.targets[int(graph.offsets[begin]) : int(graph.offsets[end])]
        own, near, far = owners[begin:end], owners[begin:end][rows], owners[targets]
        leaving = rule(near, far, hubs[targets])
        found.edges += np.bincount(leaving, minlength=num_parts)
        found.foreign += np.bincount(leaving[leaving != near], minlength=num_parts)
        row, part = distinct(rows, leaving, end - begin, num_parts)
        add_pairs(found.crossing, own[row], part)
        row, part = distinct(rows, rule(far, near, hubs[begin:end][rows]), end - begin, num_parts)
        add_pairs(found.crossing, part, own[row])
    np.fill_diagonal(found.crossing, 0)
    return found


def blocks(offsets: NDArray[np.unsignedinteger[Any]]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with few edges each."""
    begin, num_rows = 0, offsets.size - 1
    while begin < num_rows:
        end = int(np.searchsorted(offsets, offsets[begin] + np.uint64(BLOCK_EDGES), side="right")) - 1
        end = min(max(end, begin + 1), begin + BLOCK_EDGES, num_rows)
        yield begin, end
        begin = end


def distinct(rows: Ints, parts: Ints, num_rows: int, num_parts: int) -> tuple[Ints, Ints]:
    """Return each pair of a row and a part once."""
    seen = np.zeros((num_rows, num_parts), dtype=bool)
    seen[rows, parts] = True
    row, part = np.nonzero(seen)
    return row, part


def add_pairs(matrix: NDArray[np.int64], begins: Ints, ends: Ints) -> None:
    """Add one at each pair of parts."""
    size = matrix.shape[0]
    cells = begins.astype(np.int64) * size + ends
    matrix += np.bincount(cells, minlength=size * size).reshape(size, size)


def predict(found: Counts, num_parts: int, *, exchanges: int = 1) -> float:
    """Predict the seconds of a superstep."""
    most = (int(counts.max()) for counts in (found.vertices, found.edges, found.foreign))
    part = PartitionSize(*most, found.most_crossing)
    device = h200()
    return dense_seconds(part, PAGERANK, device, num_parts) + (exchanges - 1) * device.latency(num_parts)


class Table:
    """Rows, printed and written as they come."""

    def __init__(self, target: Path, facts: dict[str, Any]) -> None:
        self._target, self._content = target, facts | {"graphs": [], "rows": []}

    def begin(self, graph: sigps.Graph, name: str) -> None:
        """Say what the next rows are of."""
        one = dense_seconds(PartitionSize(graph.num_vertices, graph.num_edges), PAGERANK, h200(), 1)
        degree = int(np.diff(graph.offsets).max())
        fact = {"graph": name, "vertices": graph.num_vertices, "edges": graph.num_edges}
        fact |= {"highest_degree": degree, "predicted_ms_on_1": round(one * 1e3, 3)}
        self._content["graphs"].append(fact)
        print("  ".join(f"{key} {value}" for key, value in fact.items()))
        print(
            f"{'':20} {'parts':>5} {'balance':>8} {'foreign':>8} {'crossing':>11} {'of a part':>10} "
            f"{'predicted':>10} {'partitioning':>13}"
        )

    def skip(self, graph: str, layout: str, parts: int, why: str) -> None:
        """Keep that something was not done, and why."""
        self._keep({"graph": graph, "layout": layout, "parts": parts, "not_run": why})
        print(f"{layout:20} {parts:>5} not run: {why}", flush=True)

    def add(
        self, graph: str, layout: str, found: Counts, seconds: float, *, exchanges: int = 1, **more: Any
    ) -> None:
        """Keep one way to divide a graph."""
        num_parts = found.edges.size
        row = {
            "graph": graph,
            "layout": layout,
            "parts": num_parts,
            "edge_balance": round(float(found.edges.max() / found.edges.mean()), 3),
            "foreign_share": round(float(found.foreign.sum() / found.edges.sum()), 4),
            "records_crossing": int(found.crossing.sum()),
            "records_of_largest_part": found.most_crossing,
            "exchanges": exchanges,
            "predicted_ms": round(predict(found, num_parts, exchanges=exchanges) * 1e3, 4),
            "partitioning_seconds": round(seconds, 2),
            **more,
        }
        self._keep(row)
        print(
            f"{layout:20} {num_parts:>5} {row['edge_balance']:>8} {row['foreign_share']:>8.1%} "
            f"{row['records_crossing']:>11,} {row['records_of_largest_part']:>10,} "
            f"{row['predicted_ms']:>7.3f} ms {row['partitioning_seconds']:>11.2f} s",
            flush=True,
        )

    def _keep(self, row: dict[str, Any]) -> None:
        self._content["rows"].append(row)
        self._target.write_text(json.dumps(self._content, indent=2) + "\n")


def compare(graph: sigps.Graph, name: str, num_parts: int, table: Table, given: argparse.Namespace) -> None:
    """Divide one graph in every way."""
    none = np.zeros(graph.num_vertices, dtype=bool)
    base, base_seconds = np.empty(0, dtype=np.uint8), 0.0
    for method in METHODS:
        needed, room = BYTES_AN_EDGE.get(method, 0) * graph.num_edges, given.share * available_memory()
        if needed > room:
            why = f"it would take {bytes_text(needed)}, and {bytes_text(room)} were to be had"
            table.skip(name, method, num_parts, why)
            continue
        began = time.perf_counter()
        assignment = partition(graph, num_parts, method)
        seconds = time.perf_counter() - began
        owners = assignment.owner_of(np.arange(graph.num_vertices)).astype(np.uint8)
        found = count(graph, owners, num_parts, by_target, none)
        if num_parts == given.parts[0] and not np.array_equal(
            found.crossing.sum(axis=0), measure(graph, assignment).ghosts
        ):
            raise SystemExit(f"{name}, {method}: records that cross are not the ghosts of the parts")
        table.add(name, method, found, seconds)
        if method == "edges":
            base, base_seconds = owners, seconds
    if num_parts > 2:  # two parts are one row, which is 1-D
        grid = count(graph, base, num_parts, by_grid(num_parts), none)
        table.add(name, "2-D", grid, base_seconds, exchanges=2)
    for degree in given.hubs:
        hubs = np.diff(graph.offsets) > np.uint64(degree)
        if hubs.any():
            found = count(graph, base, num_parts, by_target_unless_hub, hubs)
            layout = f"hubs over {degree}"
            table.add(name, layout, found, base_seconds, exchanges=2, hubs=int(hubs.sum()))


def graphs(given: argparse.Namespace) -> Iterator[tuple[str, sigps.Graph]]:
    """Yield the graphs that the arguments name."""
    for path in given.files:
        yield path.name.split(".")[0], sigps.load(path, directed=False)
    if given.grid:
        yield f"grid-{given.grid}", sigps.generate("grid", rows=given.grid, columns=given.grid)
    for scale in given.scales:
        yield f"kron-{scale}", sigps.generate("rmat", scale=scale)


def numbers(text: str) -> list[int]:
    """Read whole numbers between commas."""
    return [int(part) for part in text.split(",") if part]


def main() -> None:
    """Run the comparison that the arguments describe."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--scales", type=numbers, default=[20], help="of Kronecker graphs")
    options.add_argument(
        "--files", nargs="*", default=[], type=Path, metavar="PATH", help="undirected graphs"
    )
    options.add_argument("--grid", type=int, default=0, help="rows and columns; 0 for none")
    options.add_argument("--parts", type=numbers, default=[2, 4, 8], help="powers of two")
    options.add_argument(
        "--hubs", type=numbers, default=[1000, 10_000], help="hubs have more edges than this"
    )
    options.add_argument(
        "--share", type=float, default=0.6, help="of free memory: what would take more is left out"
    )
    given = options.parse_args()
    if any(parts < 2 or parts & (parts - 1) for parts in given.parts):
        options.error("--parts takes powers of two from 2 on: a grid of parts is made of them")
    facts = machine_facts("pymetis") | {"predicted_for": h200().name}
    RESULTS.mkdir(exist_ok=True)
    table = Table(RESULTS / "partitioning.json", facts)
    for name, graph in graphs(given):
        table.begin(graph, name)
        for num_parts in given.parts:
            compare(graph, name, num_parts, table, given)


if __name__ == "__main__":
    main()
