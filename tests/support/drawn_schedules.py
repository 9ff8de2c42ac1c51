"""Derived programs without barriers, on drawn graphs in drawn orders of blocks, against the interpreter's supersteps.

    PYTHONPATH=tests/support python -m drawn_schedules 0 1000 100 --ranks 1
    PYTHONPATH=tests/support python -m drawn_schedules 0 1000 100 --ranks 3 --streamed

Of graphs 0 to 999, each with one of the programs, in 100 orders. Any result that is another bit for bit is an error.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from gas_programs import GatheredSSSP, GatheredWCC
from relax_programs import MORE, relax
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Result, Vertex, run
from sigps.apps import SSSP, WCC
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.engine import Engine
from sigps.engine.cpu.streamed import StreamingEngine
from sigps.graph.formats.packed_store import save_packed
from sigps.job.preparing import turned

FROM_ONE = "(0.0 if self.id == self.source else inf)"
SOURCE = "source: Param[int] = 0"
REAL, WHOLE = [0.1, 0.7, 1.3, 1e-17], [0, 1, 2, 3, 250]
PROGRAMS: list[tuple[Any, list[float]]] = [
    (relax(FROM_ONE, param=SOURCE), REAL),
    (relax(FROM_ONE, MORE, param=SOURCE), [1.0]),
    (relax("(self.id + 0.5)"), [0.1, 0.3]),
    (relax("(self.id + 0.0)", worst="-inf", fold="max", better=">"), [-0.3, -2.0, -7.7]),
    (GatheredWCC, [1.0]),
    (WCC, [1.0]),
    (GatheredSSSP, REAL),
    (SSSP, WHOLE),
]


def drawn_graph(seed: int, weights: list[float], group: Any = None) -> Graph:
    """Return a graph of 2 to 80 vertices."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 80))
    ends = draw.integers(0, n, (2, int(draw.integers(1, 5)) * n)) * 3 + 5
    weights = draw.choice(weights, ends.shape[1])
    return Graph.from_edges(*ends, weights=weights, directed=seed % 3 > 0, group=group)


def program_of(seed: int, *, streamed: bool) -> tuple[Vertex, list[float]]:
    """Return the program of a graph, from its first vertex where it has a source, and the weights of edges."""
    made = [given for given in PROGRAMS if not (streamed and given[0] is SSSP)]  # parents are refused there
    make, weights = made[seed % len(made)]
    has_source = any(field.name == "source" for field in make.declaration.params)
    first = int(drawn_graph(seed, weights).ids.to_oids(np.arange(1))[0])
    return (make(source=first) if has_source else make()), weights


def check_graph(seed: int, num_schedules: int, ranks: int, *, streamed: bool) -> None:
    """Run the program of one graph in so many orders.

    Raises:
        AssertionError: If a result differs.
    """
    program, weights = program_of(seed, streamed=streamed)
    expected = run(program, drawn_graph(seed, weights), device="python")
    draw = np.random.default_rng(seed + 1)
    engine: Any = StreamingEngine if streamed else Engine
    plain = engine._without_barriers
    with tempfile.TemporaryDirectory() as folder:
        if streamed:
            graph = turned(drawn_graph(seed, weights), program)
            order: Any = ("given", "degree")[seed % 2]
            save_packed(graph, Path(folder) / "graph", order=order, page_arcs=64)
        for number in range(num_schedules):
            schedule = drawn_schedule(draw, number + 1, streamed=streamed)

            def chosen(self: Any, _: Schedule, saves: bool, taken: Schedule = schedule) -> Any:
                return plain(self, taken, saves)

            options: dict[str, Any] = {"threads": int(draw.integers(1, 4))}
            if not streamed:
                options["partitioner"] = ("edges", "hash")[number % 2]

            def run_rank(group: ThreadGroup, options: dict[str, Any] = options) -> Result:
                if streamed:
                    stored = sigps.load(Path(folder) / "graph", group=group)
                    return run(program, stored, device="cpu", stream="always", asynchronous=True, **options)
                graph = drawn_graph(seed, weights, group)
                return run(program, graph, device="cpu", asynchronous=True, **options)

            engine._without_barriers = chosen
            try:
                found = run_ranks(ranks, run_rank)[0]
            finally:
                engine._without_barriers = plain
            for name in expected.fields:
                same = found[name].tolist() == expected[name].tolist()
                assert same, f"graph {seed}, {schedule}, {options}, {ranks} ranks: {name} differs"


def drawn_schedule(draw: Any, seed: int, *, streamed: bool) -> Schedule:
    """Return an order of blocks."""
    turns = [1, 2, 3, 5, 99] if streamed else [1, 2, 3, 7, 1000]
    most_edges = None if draw.integers(0, 3) == 0 else int(draw.integers(1, 200))
    return Schedule(int(draw.integers(0, 7)), int(draw.choice(turns)), seed, most_edges)


def main() -> None:
    """Check so many graphs, and say how many were equal."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("first", type=int, help="the first graph's number")
    options.add_argument("graphs", type=int, help="how many graphs")
    options.add_argument("schedules", type=int, help="orders of blocks of each")
    options.add_argument("--ranks", type=int, default=1)
    options.add_argument("--streamed", action="store_true", help="with edges in a packed store")
    given = options.parse_args()
    began = time.perf_counter()
    for number, seed in enumerate(range(given.first, given.first + given.graphs), 1):
        check_graph(seed, given.schedules, given.ranks, streamed=given.streamed)
        if number % 20 == 0 or number == given.graphs:
            seconds = time.perf_counter() - began
            print(f"{number} graphs in {given.schedules} orders each: equal, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
