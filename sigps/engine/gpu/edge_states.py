"""Values that vertices keep on their out-edges, in the memory of a GPU.

Rows lie as compute() walks them (`WalkedRows`). What crosses to the host, and comes from there, has the order of
`Subgraph.outgoing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.gpu.stored_rows import StoredRows
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.engine.partition.edge_states import commit

__all__ = ["commit_edge_states", "kept_edge_state", "restore_edge_states", "swap_for"]


def edge_state_on_host(values: Any, walked: WalkedRows | StoredRows) -> NDArray[Any]:
    """Return values of out-edges, [num_out_edges], on the host and in the order of `Subgraph.outgoing`."""
    import cupy

    found: NDArray[Any]
    try:
        found = cupy.asnumpy(walked.in_host_order(values, cupy))
    except cupy.cuda.memory.OutOfMemoryError:
        found = walked.in_host_order(cupy.asnumpy(values), np)
    return found


class KeptEdgeState:
    """A copy of values of out-edges, on the device; as an array of the host it has the order of `Subgraph.outgoing`."""

    def __init__(self, values: Any, walked: WalkedRows | StoredRows) -> None:
        self._values, self._walked = values.copy(), walked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(edge_state_on_host(self._values, self._walked), dtype=dtype)


def kept_edge_state(values: Any, walked: WalkedRows | StoredRows) -> Any:
    """Return a copy of values of out-edges that crosses when it is read; of the host where the device has no memory."""
    import cupy

    try:
        return KeptEdgeState(values, walked)
    except cupy.cuda.memory.OutOfMemoryError:
        return edge_state_on_host(values, walked)


def restore_edge_states(memory: RunMemory, values: tuple[NDArray[Any], ...]) -> None:
    """Take saved values as pending ones; they are not committed.

    Args:
        memory: The run's.
        values: [num_out_edges] each, in the order of `Subgraph.outgoing`; nothing where a program has none.
    """
    import cupy

    pending, _ = memory.edge_states()
    if pending and memory.has_values_on_host:
        cupy.cuda.get_current_stream().synchronize()  # what the run begins with is written there first
    for kept, given in zip(pending, values, strict=True):  # those on the host lie as they are saved
        kept[:] = given if memory.has_values_on_host else memory.graph.walked.from_host(given)


def commit_edge_states(memory: RunMemory, exchange: Exchange) -> int:
    """Commit what was written on edges; return the bytes that left this rank. Collective, between supersteps."""
    import cupy

    pending, committed = memory.edge_states()
    if not pending:
        return 0
    walked = memory.graph.walked
    if memory.has_values_on_host:
        return commit(np, pending, committed, (), None, exchange.swap)
    return commit(cupy, pending, committed, walked.send_lists, walked.mirror_bounds, swap_for(cupy, exchange))


def swap_for(xp: Any, exchange: Exchange) -> Callable[[Sequence[Any]], list[Any]]:
    """Return `Exchange.swap` for arrays of a module, NumPy or CuPy, whichever it takes."""
    if xp is np or exchange.on_device:
        return exchange.swap
    return lambda parts: [xp.asarray(part) for part in exchange.swap([xp.asnumpy(p) for p in parts])]
