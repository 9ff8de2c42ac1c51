"""Out-edges as compute() walks them on a GPU, and what vertices keep there.

Rows lie in the order of places, each in the order in which the partition has it. What is kept crosses to the host, and
comes from there, in the order of the partition's rows (`Subgraph.outgoing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_states import show

if TYPE_CHECKING:
    from sigps.engine.gpu.graph import GpuGraph
    from sigps.engine.gpu.run_memory import RunMemory

__all__ = ["brought", "by_row", "fill_walked", "put_on_edges", "show_edges", "swapping"]


def fill_walked(arguments: Any, graph: GpuGraph, program: VertexProgram, at: Callable[[str], int]) -> None:
    """Tell a program's functions where edges lie, and what is kept there.

    Args:
        arguments: An `abi.ARGUMENTS`.
        graph: The partition, on the device.
        program: What walks its out-edges.
        at: Tells where one of the run's arrays begins.
    """
    walked = graph.walked
    arguments["out_offsets"] = walked.offsets.data.ptr
    arguments["out_gids"] = walked.gids.data.ptr
    arguments["out_ids"] = walked.ids.data.ptr
    for i, column in enumerate(program.read_columns):
        arguments["out_columns"][i] = walked.column(column).data.ptr
    if program.reads_neighbors:
        arguments["out_rows"] = walked.rows.data.ptr
    if program.reads_reverse:
        arguments["reverse"] = walked.back.data.ptr
    for kind in ("pending", "committed"):
        for i in range(len(program.edge_states)):
            arguments[kind][i] = at(f"{kind}{i}")


def by_row(values: Any, before: Any, xp: Any) -> Any:
    """Return a copy of values as compute() walks them, in the order of the partition's rows.

    Args:
        values: [num_out_edges].
        before: What `WalkedRows.before` returned.
        xp: NumPy or CuPy, whose arrays both are.
    """
    found = xp.empty_like(values)
    found[before] = values
    return found


def brought(values: Any, graph: GpuGraph) -> NDArray[Any]:
    """Return values as compute() walks them, [num_out_edges], on the host and in the order of the partition's rows."""
    import cupy

    found: NDArray[Any]
    try:
        found = cupy.asnumpy(by_row(values, graph.walked.before(cupy), cupy))
    except cupy.cuda.memory.OutOfMemoryError:
        found = by_row(cupy.asnumpy(values), graph.walked.before(np), np)
    return found


def put_on_edges(memory: RunMemory, graph: GpuGraph, values: tuple[NDArray[Any], ...]) -> None:
    """Let vertices keep these values on edges. Nobody else sees them yet.

    Args:
        memory: The run's.
        graph: Its graph.
        values: [num_out_edges] each, by the partition's rows.
    """
    import cupy

    own, _ = memory.kept_on_edges()
    if own:
        before = graph.walked.before(cupy)
        for kept, given in zip(own, values, strict=True):
            kept[:] = cupy.asarray(given)[before]


def show_edges(memory: RunMemory, graph: GpuGraph, exchange: Exchange) -> int:
    """Let all see what is kept on edges; return the bytes that left this rank. Collective, between supersteps."""
    import cupy

    own, seen = memory.kept_on_edges()
    if not own:
        return 0
    walked = graph.walked
    return show(cupy, own, seen, walked.asked, walked.bounds, swapping(cupy, exchange))


def swapping(xp: Any, exchange: Exchange) -> Callable[[Sequence[Any]], list[Any]]:
    """Return `Exchange.swap` for arrays of a module, NumPy or CuPy, whichever it takes."""
    if xp is np or exchange.on_device:
        return exchange.swap
    return lambda parts: [xp.asarray(part) for part in exchange.swap([xp.asnumpy(p) for p in parts])]
