"""A run on a GPU between two supersteps: copied for a state log, and a state log put in its place.

Arrays are copied on the device, which takes as long as writing a superstep's, and cross to the host when the thread
that writes the log reads them, while the next supersteps run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import Row
from sigps.compiler.cuda.compile import CudaProgram
from sigps.compiler.program import Delivery
from sigps.engine.gpu.columns import (
    BY_HOST,
    Copier,
    cast,
    copied,
    copies_on_device,
    copy_columns,
    fill_columns,
)
from sigps.engine.gpu.direct_messages import Find
from sigps.engine.gpu.edge_states import restore_edge_states
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.snapshot import Snapshot
from sigps.errors import DeviceError
from sigps.kernels.cpu.arguments import ACTIVE
from sigps.kernels.cuda.lease import FRONTIER_LISTS

__all__ = ["fill_records", "owned_records", "restore", "save", "senders"]


def save(
    memory: RunMemory,
    compiled: CudaProgram,
    control: Any,
    aggregates: tuple[Any, ...],
    gids: NDArray[np.int64],
    find: Find,
) -> Snapshot:
    """Copy what the run has.

    Args:
        memory: The run's.
        compiled: Its program.
        control: The device's control structure after the last superstep.
        aggregates: The aggregators' values.
        gids: [num_owned]: the vertices, in the host's order.
        find: Finds the gids of ids, as compute() names them.

    Returns:
        The snapshot; the ends of direct messages are as kernels name them.
    """
    import cupy

    is_direct = compiled.program.delivery is Delivery.DIRECT
    for copier in (copies_on_device(cross_later=True), BY_HOST):
        try:
            status, states = _vertices(copier, memory, compiled)
            pending, _ = memory.edge_states()
            if memory.has_values_on_host:
                edges = tuple(memory.graph.walked.in_host_order(values, np) for values in pending)
            else:
                edges = tuple(
                    copier.keep(memory.graph.walked.in_host_order(copier.take(values), copier.numpy))
                    for values in pending
                )
            if is_direct:
                ends, values = memory.direct.copy(copier, find)
            else:
                ends, values = _records(copier, memory, compiled, control)
            break
        except cupy.cuda.memory.OutOfMemoryError:
            if copier is BY_HOST:
                raise
            cupy.get_default_memory_pool().free_all_blocks()
    snapshot = Snapshot(
        superstep=int(control["next"]["superstep"]),
        gids=gids,
        status=status,
        states=states,
        in_flight="messages" if is_direct else "records",
        ends=ends,
        values=values,
        aggregates=aggregates,
        edges=edges,
    )
    if is_direct or memory.graph.numbering.subgraph.gids is None:  # by gid already
        return snapshot
    return replace(snapshot, ends=gids[np.asarray(ends)])


def _vertices(copier: Copier, memory: RunMemory, compiled: CudaProgram) -> tuple[Any, tuple[Any, ...]]:
    """Return status and states, in the host's order."""
    order = _host_order(copier, memory.graph)
    states = tuple(
        copier.keep(cast(copied(copier.take(values), order), dtype))
        for values, dtype in zip(memory.states, compiled.program.state_dtypes, strict=True)
    )
    return copier.keep(copied(copier.take(memory.array("status", np.uint8)), order)), states


def _records(
    copier: Copier, memory: RunMemory, compiled: CudaProgram, control: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the senders, by their number in the host's order, and their records."""
    parity = int(control["next"]["superstep"]) & 1
    order = _host_order(copier, memory.graph)
    numbers = copier.numpy.flatnonzero(_senders(copier, memory, control)[order])
    rows = copier.take(memory.array(f"records{parity}", np.uint8))
    at = numbers if isinstance(order, slice) else order[numbers]
    columns = copy_columns(rows, Row(compiled.record_types, compiled.record), at)
    return copier.keep(numbers.astype(np.int64, copy=False)), tuple(map(copier.keep, columns))


def _host_order(copier: Copier, graph: GpuGraph) -> Any:
    """Return `Numbering.host_order`, as an index of the copier's arrays."""
    order = graph.numbering.host_order
    return order if isinstance(order, slice) else copier.take(order)


def restore(
    snapshot: Snapshot,
    memory: RunMemory,
    compiled: CudaProgram,
    pull_gain: int,
    *,
    asks_master: bool = False,
    counts_idle: bool = False,
) -> Any:
    """Put a snapshot, but for its aggregates, in the place of what a run begins with. Edge states are not committed.

    Args:
        snapshot: What to go on from: records along edges, or direct messages, whose targets are as kernels name them.
            `sources` are the host's local ids.
        memory: The run's.
        compiled: Its program.
        pull_gain: How many in-edges a pull passes while a push delivers one message.
        asks_master: Whether the device runs master() or next_phase() itself.
        counts_idle: Whether the next superstep counts where no vertex runs in it.

    Returns:
        The device's control structure.

    Raises:
        DeviceError: If direct messages were combined by another device, and cannot be read one by one again.
    """
    import cupy

    at = memory.graph.numbering.find(snapshot.gids)
    status = memory.array("status", np.uint8)
    status[at] = cupy.asarray(snapshot.status)
    for values, given in zip(memory.states, snapshot.states, strict=True):
        values[at] = cast(cupy.asarray(given), values.dtype)
    rows = np.argsort(snapshot.sources, kind="stable")
    restore_edge_states(memory, tuple(np.asarray(values)[rows] for values in snapshot.edges))
    has_active = bool((status == ACTIVE).any())
    sent_edges = 0
    if compiled.program.delivery is not Delivery.DIRECT:
        sent_edges = _put_records(snapshot, memory, compiled)
    elif snapshot.in_flight == "slots":
        raise DeviceError(
            "device='cuda' cannot go on from here: the messages of send_to() were combined when this was "
            "saved, and a GPU reads them one by one. Use the device that saved it"
        )
    else:
        memory.direct.put(snapshot.ends, snapshot.values)
    return memory.set_next(
        snapshot.superstep,
        sent_edges,
        pull_gain,
        has_retired=True,
        has_active=has_active,
        retired_edges=memory.retired_edges() if asks_master else 0,
        counts_idle=counts_idle,
    )


def _put_records(snapshot: Snapshot, memory: RunMemory, compiled: CudaProgram) -> int:
    """Put the records in place; return the number of messages that they stand for."""
    import cupy

    graph, parity = memory.graph, snapshot.superstep & 1
    at = graph.numbering.find(snapshot.ends)
    fill_records(memory, compiled, parity, at, snapshot.values)
    sent = cupy.zeros(graph.num_owned, dtype=cupy.bool_)
    sent[at] = True
    memory.set_senders(parity, sent)
    return int(graph.out_degrees[at].sum(dtype=cupy.uint64))


def senders(memory: RunMemory, control: Any) -> Any:
    """Return which vertices sent to the superstep that is planned, as a CuPy array of bools, [num_owned]."""
    return _senders(copies_on_device(), memory, control)


def _senders(copier: Copier, memory: RunMemory, control: Any) -> Any:
    upcoming, num_owned = control["next"], memory.graph.num_owned
    if num_owned == 0:
        return copier.numpy.zeros(0, dtype=bool)
    if upcoming["frontier"] != FRONTIER_LISTS:
        bits = copier.take(memory.array(f"sent{int(upcoming['superstep']) & 1}", np.uint8))
        return copier.numpy.unpackbits(bits, bitorder="little")[:num_owned].view(bool)
    sent = copier.numpy.zeros(num_owned, dtype=bool)
    for name, count in (("senders", upcoming["num_listed"]), ("hubs", upcoming["num_hubs"])):
        sent[copier.take(memory.array(name, np.uint32)[: int(count)])] = True
    return sent


def fill_records(
    memory: RunMemory, compiled: CudaProgram, parity: int, at: Any, columns: tuple[Any, ...]
) -> None:
    """Write records, an array a field, of the local ids `at`: those that a superstep of this parity reads."""
    row = Row(compiled.record, compiled.record)
    fill_columns(memory.array(f"records{parity}", np.uint8), row, at, columns)


def owned_records(memory: RunMemory, compiled: CudaProgram, parity: int, copier: Copier) -> tuple[Any, ...]:
    """Return copies of the records of owned vertices in the host's order, of the types that compute() has."""
    raw = copier.take(memory.array(f"records{parity}", np.uint8))
    row = Row(compiled.record_types, compiled.record)
    return copy_columns(raw, row, _host_order(copier, memory.graph))
