"""Programs run to an end from snapshots: of the interpreter, the CPU engine and the GPU engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from engines import compiled, interpreted, laid_out, master_of
from equality_programs import PROGRAMS
from ways import RELATIVE

from sigps import Graph, Vertex
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery
from sigps.device.cuda import find_gpu
from sigps.engine.gpu.engine import GpuEngine, GpuProgram
from sigps.engine.snapshot import Snapshot

GRAPHS = ["skewed", "grid", "parallel_edges_undirected", "self_loop_undirected", "weight_ties"]


LAST = 12


def made(name: str) -> Vertex:
    program = PROGRAMS[name]
    return program if isinstance(program, Vertex) else program(0)


def combines_mail(program: Vertex) -> bool:
    derived = analyse(program)
    return derived.delivery is Delivery.DIRECT and derived.consumption is not Consumption.LISTED


def ending(engine: Any, program: Vertex, left: int) -> tuple[dict[str, Any], dict[str, Any], list[int], bool]:
    """Run to the end, or to superstep LAST; return fields, aggregators, who ran by superstep, and whether it ended."""
    outcome = engine.lease(left)
    fields = {f.name: np.array(engine.state(f.name)) for f in program.declaration.states}
    return fields, engine.aggregates.by_name(), [s.active for s in outcome.stats], outcome.ended


def on_gpu(program: Vertex, graph: Graph, **options: Any) -> GpuEngine:
    native = GpuProgram(analyse(program), find_gpu())
    params = tuple(f.dtype("double").type(getattr(program, f.name)) for f in native.program.params)
    master = master_of(program, graph)
    return GpuEngine(native, params, *laid_out(graph), master=master, saves=True, **options)


MAKERS = {"cuda": on_gpu, "cpu": compiled, "python": interpreted}


def written(snapshot: Snapshot) -> Snapshot:
    """Return what a log would have of it."""
    on_host = {
        name: tuple(map(np.asarray, value)) if isinstance(value, tuple) else np.asarray(value)
        for name, value in vars(snapshot).items()
        if name in ("status", "states", "ends", "values", "edges")
    }
    return replace(snapshot, **on_host)


def assert_near(found: Any, expected: Any, note: str) -> None:
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=RELATIVE, err_msg=note)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=note)
