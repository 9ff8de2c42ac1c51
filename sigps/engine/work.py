"""How a partition's work is cut for threads on CPU cores, and what of it a program lets be done: pure functions."""

from __future__ import annotations

import bisect
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.engine.subgraph import Subgraph, columns_of

__all__ = ["can_push", "cut_vertices", "split_list", "walked_edges"]

_WORTH_SPLITTING = 4096


def can_push(native: NativeProgram, deterministic: bool) -> bool:
    """Tell whether messages may be combined in the order in which senders push them."""
    program = native.program
    if program.delivery is not Delivery.RECORD or program.consumption is Consumption.LISTED:
        return False
    in_order = deterministic and any(s.op in ("sum", "user") for s in program.slots)
    return not (in_order and any(d.kind == "f" for d in native.slots))


def walked_edges(program: VertexProgram, subgraph: Subgraph) -> tuple[Any, ...]:
    """Return the out-edges as loops take them; nothing for a program that does not walk them."""
    if not program.reads_edges:
        return ()
    edges = subgraph.outgoing
    assert edges is not None
    return edges.offsets, edges.ends, subgraph.outgoing_ids(), columns_of(edges, program.read_columns)


def cut_vertices(offsets: NDArray[np.uint64], parts: int) -> list[tuple[np.uint64, np.uint64]]:
    """Cut vertices into ranges of about equal work: edges plus vertices."""
    n = offsets.size - 1
    goals = np.linspace(0, int(offsets[-1]) + n, parts + 1)[1:-1]
    cuts = [bisect.bisect_left(range(n + 1), goal, key=lambda v: int(offsets[v]) + v) for goal in goals]
    return [(np.uint64(a), np.uint64(b)) for a, b in itertools.pairwise([0, *cuts, n]) if a < b]


def split_list(vertices: NDArray[np.uint32], threads: int) -> list[NDArray[np.uint32]]:
    """Split a list of vertices among threads where that pays."""
    if vertices.size == 0:
        return []
    return np.array_split(vertices, threads) if vertices.size > _WORTH_SPLITTING else [vertices]
