"""The bytes that a plan names against those that a run takes: at its most, as the allocator counts them."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import sigps
from sigps import Graph, Param, State, Table, Vertex, from_column, run
from sigps.cli.plan.memory import memory
from sigps.cli.plan.size import size_of, turned_size
from sigps.compiler.frontend.analysis import analyse

NEEDED = {"source": 0, "one": 0, "zero": 5, "rate": 1e-4, "attenuation": 1e-4}
SHORT = {"samples": 2, "iterations": 3, "steps": 3, "length": 3, "scans": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "LouvainMoves": {"max_supersteps": 4},
    "StreamDN": {"max_supersteps": 4},
}
"""Of programs that run long."""


def drawn(*, directed: bool, is_acyclic: bool = False) -> Graph:
    draw = np.random.default_rng(0)
    sources, targets = (1000 * draw.random(10_000) ** 2).astype(int), draw.integers(0, 1000, 10_000)
    if is_acyclic:
        sources, targets = np.sort([sources, targets], axis=0)
    weights = draw.integers(1, 9, 10_000).astype(float)
    return Graph.from_edges(
        sources,
        targets,
        weights,
        directed=directed,
        vertices=range(1000),
        duplicates="drop",
        self_loops="drop",
    )


def planned(program: Vertex, graph: Graph) -> int:
    loaded = size_of(graph)
    state_bytes = sum(field.dtype().itemsize for field in program.declaration.states)
    tables = sum(getattr(program, f.name).values.nbytes for f in program.declaration.params if f.is_table)
    size = turned_size(loaded, program)
    return sum(memory(size, analyse(program), 1, state_bytes, loaded=loaded, table_bytes=tables).values())


def check(program: Vertex, make: Any, **options: Any) -> None:
    run(program, make(), device="cpu", threads=1, **options)  # so that all code is there
    graph = make()
    held = graph.nbytes
    gc.collect()
    tracemalloc.start()
    try:
        run(program, graph, device="cpu", threads=1, **options)
        taken = held + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    plan = planned(program, make())
    assert taken <= 1.05 * plan + 64 * 1024  # of Python's own
    assert plan <= 5 * taken  # programs may send less than a message along each edge


@pytest.mark.parametrize("name", sigps.apps.__all__)
def test_a_run_takes_what_was_planned(name: str) -> None:
    app = getattr(sigps.apps, name)
    fields = {field.name: field for field in app.declaration.params}
    given = {n: v for n, v in NEEDED.items() if n in fields and fields[n].default is fields[n].REQUIRED}
    given |= {n: v for n, v in SHORT.items() if n in fields}
    is_acyclic = name == "LongestPath"
    check(
        app(**given),
        lambda: drawn(directed=app.declaration.directed, is_acyclic=is_acyclic),
        **OPTIONS.get(name, {}),
    )


class Priced(Vertex, message=float):
    """A program with a table, and a state that begins with a column."""

    prices: Param[Table[float]]
    kind: State[int] = from_column("kind")
    price: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.price = self.prices[self.kind]
        self.vote_to_halt()


def test_vertex_columns_and_tables_are_planned() -> None:
    def make() -> Graph:
        rows = {"kind": np.arange(1000), "image": np.zeros((1000, 64))}
        return drawn(directed=False).with_vertex_columns(rows)

    program = Priced(prices=np.arange(50_000.0))
    parts = memory(size_of(make()), analyse(program), 1, 16, table_bytes=400_000)
    assert (parts["columns"], parts["tables"]) == (1000 * (8 + 64 * 8 + 8), 400_000)
    check(program, make)
