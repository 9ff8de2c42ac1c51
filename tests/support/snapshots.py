"""What several tests share of `test_snapshot`."""

from __future__ import annotations

from typing import Any

import cases
import numpy as np

from sigps import Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery

GRAPHS = ["skewed", "grid", "parallel_edges_undirected", "self_loop_undirected", "weight_ties"]


LAST = 12


def made(name: str) -> Vertex:
    program = cases.PROGRAMS[name]
    return program if isinstance(program, Vertex) else program(0)


def combines_mail(program: Vertex) -> bool:
    derived = analyse(program)
    return derived.delivery is Delivery.DIRECT and derived.consumption is not Consumption.LISTED


def ending(engine: Any, program: Vertex, left: int) -> tuple[dict[str, Any], dict[str, Any], list[int], bool]:
    """Run to the end, or to superstep LAST; return fields, aggregators, who ran by superstep, and whether it ended."""
    outcome = engine.lease(left)
    fields = {f.name: np.array(engine.state(f.name)) for f in program.declaration.states}
    return fields, engine.aggregates.by_name(), [s.active for s in outcome.stats], outcome.ended
