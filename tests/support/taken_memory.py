"""What runs take of memory on this rank, beside what is planned: `mpirun -n 2 taken_memory.py PageRank BFS ...`.

Prints for each program and rank the bytes taken at the most, as the allocator counts them, and the bytes planned.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import sigps.apps
from sigps import Graph, Vertex, run
from sigps.compiler.frontend.analysis import analyse
from sigps.costs.memory import memory
from sigps.costs.sizes import PartitionSize, size_of, turned_size
from sigps.graph.partitioning.partition import partition
from sigps.graph.partitioning.report import measure
from sigps.group import Alone, Group, world
from sigps.job.preparing import turned

__all__ = ["app_of", "drawn", "planned", "taken"]

NEEDED = {"source": 0, "target": 1, "one": 0, "zero": 5, "rate": 1e-4, "attenuation": 1e-4}
SHORT = {"samples": 2, "at_a_time": 4000, "iterations": 3, "steps": 3, "length": 3, "scans": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "StreamDN": {"max_supersteps": 4},
}
"""Of programs that run long."""


def app_of(name: str) -> tuple[Vertex, dict[str, Any], Callable[..., Graph]]:
    """Return an app with parameters, the options of its run, and what makes its graph for a group."""
    app = getattr(sigps.apps, name)
    fields = {field.name: field for field in app.declaration.params}
    given = {n: v for n, v in NEEDED.items() if n in fields and fields[n].default is fields[n].REQUIRED}
    given |= {n: v for n, v in SHORT.items() if n in fields}

    def make(group: Group | None = None) -> Graph:
        graph = drawn(directed=app.declaration.directed, is_acyclic=name == "LongestPath", group=group)
        if name == "MaximumFlow":
            capacities = graph.columns["weight"].astype(int)
            return replace(graph, columns={"up": capacities, "down": capacities})
        return graph

    return app(**given), OPTIONS.get(name, {}), make


def drawn(
    *, directed: bool, is_acyclic: bool = False, group: Group | None = None, n: int | None = None
) -> Graph:
    """Return a graph of 1,000 vertices and 10,000 edges; among ranks ten times as many: each has bytes of its own."""
    draw, n = np.random.default_rng(0), n or (1000 if group is None else 10_000)
    sources, targets = (n * draw.random(10 * n) ** 2).astype(int), draw.integers(0, n, 10 * n)
    if is_acyclic:
        sources, targets = np.sort([sources, targets], axis=0)
    weights = draw.integers(1, 9, 10 * n).astype(float)
    return Graph.from_edges(
        sources,
        targets,
        weights,
        directed=directed,
        vertices=range(n),
        duplicates="drop",
        self_loops="drop",
        group=group,
    )


def taken(program: Vertex, make: Callable[[], Graph], **options: Any) -> int:
    """Return the most bytes that this process has while a program runs, those of the loaded graph included."""
    run(program, make(), device="cpu", threads=1, **options)  # so that all code is there
    graph = make()
    held = graph.nbytes
    gc.collect()
    tracemalloc.start()
    try:
        run(program, graph, device="cpu", threads=1, **options)
        return held + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def planned(program: Vertex, graph: Graph, num_ranks: int = 1) -> int:
    """Return the bytes that are planned for a rank of some with the largest partition; the graph is whole."""
    loaded = size_of(graph)
    state_bytes = sum(field.dtype().itemsize for field in program.declaration.states)
    tables = sum(getattr(program, f.name).values.nbytes for f in program.declaration.params if f.is_table)
    size, largest = turned_size(loaded, program), None
    if num_ranks > 1:
        whole = turned(graph, program)
        size, report = size_of(whole), measure(whole, partition(whole, num_ranks, "edges"))
        shares = (report.vertices, report.in_edges, report.cut_edges, report.ghosts)
        largest = PartitionSize(*(int(share.max()) for share in shares))
    parts = memory(size, analyse(program), num_ranks, state_bytes, largest, loaded=loaded, table_bytes=tables)
    return sum(parts.values())


def main() -> None:
    group = world()
    for name in sys.argv[1:]:
        program, options, make = app_of(name)
        used = taken(program, lambda make=make: make(group), gather=False, **options)  # type: ignore[misc]
        of_ranks = group.all_gather(used)
        if group.rank == 0:
            print(json.dumps([name, of_ranks, planned(program, make(Alone()), group.size)]), flush=True)


if __name__ == "__main__":
    main()
