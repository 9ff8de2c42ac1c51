"""Engines on one partition, put together by hand as a worker manager does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sigps import Graph, Vertex
from sigps.compiler.cpu.exact import with_exact_sums
from sigps.compiler.cpu.native import compile_for_cpu
from sigps.compiler.frontend.analysis import analyse
from sigps.device.cpu import Threads
from sigps.engine.contract import Executable, RunContext, RunFacts, RunOptions
from sigps.engine.cpu.engine import Engine
from sigps.engine.exchange import NoExchange
from sigps.engine.interpreter.engine import InterpretedEngine
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.neighbor_rows import build_neighbor_rows
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.engine.table import engine_of
from sigps.graph.partitioning.partition import partition
from sigps.system.data_locator import DataLocator


def laid_out(graph: Graph) -> tuple[Subgraph, NoExchange]:
    assignment = partition(graph, 1)
    part = build_subgraph(graph, assignment, with_outgoing=True)
    part = replace(part, neighbor_rows=build_neighbor_rows(part, assignment, graph.group))
    return part, NoExchange(DataLocator(graph, assignment, part).gids)


def executable_of(
    program: Vertex, graph: Graph, device: str = "cpu", precision: Any = "double"
) -> Executable:
    """Return a program as an engine of the table makes it ready."""
    spec = engine_of(device)
    derived = analyse(program, precision) if spec.is_compiled else None
    return spec.compile(derived, graph, RunFacts(graph.num_vertices, graph.num_edges), 0)


def context_of(program: Vertex, graph: Graph, device: str, options: RunOptions) -> RunContext:
    """Return what the engine of a device is made from, on one rank with one thread."""
    executable = executable_of(program, graph, device, options.precision)
    return RunContext(program, executable, *laid_out(graph), Threads(1), options)


def compiled(program: Vertex, graph: Graph, threads: int = 1, **options: Any) -> Engine:
    derived, columns = analyse(program), {n: c.dtype for n, c in graph.columns.items()}
    if options.get("deterministic"):
        derived = with_exact_sums(derived, columns)
    native = compile_for_cpu(derived, columns)
    params = tuple(f.dtype("double").type(getattr(program, f.name)) for f in native.program.params)
    master = master_of(program, graph)
    return Engine(native, params, *laid_out(graph), Threads(threads), master=master, **options)


def master_of(program: Vertex, graph: Graph) -> MasterCompute | None:
    """Return a program's `master()` or `next_phase()`, as engines take it."""
    if not program.declaration.has_master:
        return None
    return MasterCompute(program, graph.num_vertices, graph.num_edges)


def interpreted(program: Vertex, graph: Graph, **options: Any) -> InterpretedEngine:
    return InterpretedEngine(program, *laid_out(graph), **options)


def values(engine: Any, name: str) -> list[Any]:
    found: list[Any] = np.asarray(engine.state(name)).tolist()
    return found
