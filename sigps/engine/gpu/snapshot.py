"""A run on a GPU between two supersteps: copied for a state log, and a state log put in its place.

Arrays are copied where they are, which takes as long as a superstep's writing, and brought to the host by whoever
writes them, while the next supersteps run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import Row
from sigps.compiler.program import Delivery, VertexProgram
from sigps.engine.gpu.edges import by_row, put_on_edges
from sigps.engine.gpu.run_memory import RunMemory
from sigps.engine.snapshot import Snapshot
from sigps.errors import DeviceError
from sigps.kernels.cuda.lease import ACTIVE, FRONTIER_LISTS

if TYPE_CHECKING:
    from sigps.compiler.cuda.compile import CudaProgram
    from sigps.engine.gpu.graph import GpuGraph

__all__ = ["Copied", "fill_records", "put_mail", "records_by_lid", "restore", "save", "senders", "take_mail"]

Find = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class Copied:
    """A copy of a device's array. It crosses to the host when NumPy asks for it, on whatever thread that is.

    Args:
        array: The copy, on the device; nobody else has it.

    Attributes:
        dtype: Its type.
        nbytes: Its size.
    """

    def __init__(self, array: Any) -> None:
        import cupy

        self.dtype, self.nbytes = np.dtype(array.dtype.name), int(array.nbytes)
        self._array, self._host = array, np.empty(0, dtype=self.dtype)
        self._is_made = cupy.cuda.Event(disable_timing=True)
        self._is_made.record()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._array is not None:
            self._bring()
        return np.array(self._host, dtype=dtype, copy=copy)

    def _bring(self) -> None:
        import cupy

        with self._array.device:
            stream = cupy.cuda.Stream(non_blocking=True)  # a lease that runs does not hold it up
            stream.wait_event(self._is_made)
            self._host = cupy.asnumpy(self._array, stream=stream)
            stream.synchronize()
        self._array = None


@dataclass(frozen=True)
class _Copier:
    """How copies are made: on the device, or by bringing arrays to the host, where the device has no memory for them.

    Attributes:
        numpy: The module that works on them, CuPy or NumPy.
        take: Returns a device's array for it.
        keep: Returns what a snapshot has of a copy.
    """

    numpy: Any
    take: Callable[[Any], Any]
    keep: Callable[[Any], Any]


def save(
    memory: RunMemory,
    compiled: CudaProgram,
    graph: GpuGraph,
    control: Any,
    aggregates: tuple[Any, ...],
    gids: NDArray[np.int64],
    find: Find,
) -> Snapshot:
    """Copy what the run has.

    Args:
        memory: The run's.
        compiled: Its program.
        graph: Its graph.
        control: The device's control structure after the last superstep.
        aggregates: The aggregators' values.
        gids: [num_owned]: the vertices, by local id.
        find: Finds the gids of ids, as compute() names them.
    """
    import cupy

    copiers = _Copier(cupy, lambda array: array, Copied), _Copier(np, cupy.asnumpy, lambda array: array)
    for copier in copiers:
        try:
            status, states = _vertices(copier, memory, compiled.program, graph)
            edges = _edges(copier, memory, graph)
            if compiled.program.delivery is Delivery.DIRECT:
                ends, values = _mail(copier, memory, compiled, find)
            else:
                ends, values = _records(copier, memory, compiled, graph, control)
            break
        except cupy.cuda.memory.OutOfMemoryError:
            if copier.numpy is np:
                raise
            cupy.get_default_memory_pool().free_all_blocks()
    return Snapshot(
        superstep=int(control["next"]["superstep"]),
        gids=gids,
        status=status,
        states=states,
        in_flight="messages" if compiled.program.delivery is Delivery.DIRECT else "records",
        ends=ends,
        values=values,
        aggregates=aggregates,
        edges=edges,
    )


def _edges(copier: _Copier, memory: RunMemory, graph: GpuGraph) -> tuple[Any, ...]:
    """Return what is kept on edges, by the partition's rows."""
    own, _ = memory.kept_on_edges()
    if not own:
        return ()
    before = graph.walked.before(copier.numpy)
    return tuple(copier.keep(by_row(copier.take(values), before, copier.numpy)) for values in own)


def _vertices(
    copier: _Copier, memory: RunMemory, program: VertexProgram, graph: GpuGraph
) -> tuple[Any, tuple[Any, ...]]:
    """Return status and states, by local id."""
    places = copier.take(graph.places)
    states = tuple(
        copier.keep(copier.take(values)[places].astype(dtype, copy=False))
        for values, dtype in zip(memory.states, program.state_dtypes, strict=True)
    )
    return copier.keep(copier.take(memory.array("status", np.uint8))[places]), states


def restore(
    snapshot: Snapshot, memory: RunMemory, compiled: CudaProgram, graph: GpuGraph, push_gain: int
) -> Any:
    """Put a snapshot, but for its aggregates, in the place of what a run begins with; by local id.

    What is kept on edges is not shown to others yet.

    Args:
        snapshot: What to go on from: records along edges, or mail. Its vertices are local ids.
        memory: The run's.
        compiled: Its program.
        graph: Its graph.
        push_gain: How many in-edges a pull passes while a push delivers one message.

    Returns:
        The device's control structure.

    Raises:
        DeviceError: If mail was combined by another device, and cannot be read as messages again.
    """
    import cupy

    program = compiled.program
    at = graph.places[cupy.asarray(snapshot.gids)]
    status = memory.array("status", np.uint8)
    status[at] = cupy.asarray(snapshot.status)
    for values, given in zip(memory.states, snapshot.states, strict=True):
        values[at] = cupy.asarray(given).astype(values.dtype, copy=False)
    rows = np.argsort(snapshot.sources, kind="stable")
    put_on_edges(memory, graph, tuple(np.asarray(values)[rows] for values in snapshot.edges))
    has_active = bool((status == ACTIVE).any())
    sent_edges = 0
    if program.delivery is not Delivery.DIRECT:
        sent_edges = _put_records(snapshot, memory, compiled, graph)
    elif snapshot.in_flight == "slots":
        raise DeviceError(
            "device='cuda' cannot go on from here: the messages of send_to() were combined when this was "
            "saved, and a GPU reads them one by one. Use the device that saved it"
        )
    else:
        put_mail(memory, compiled, snapshot.ends, snapshot.values)
    return memory.plan(snapshot.superstep, sent_edges, push_gain, has_retired=True, has_active=has_active)


def _records(
    copier: _Copier, memory: RunMemory, compiled: CudaProgram, graph: GpuGraph, control: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Return the senders, by local id, and their records."""
    parity = int(control["next"]["superstep"]) & 1
    places = copier.take(graph.places)
    lids = copier.numpy.flatnonzero(_senders(copier, memory, places.size, control)[places])
    rows = copier.take(memory.array(f"records{parity}", np.uint8))
    row = Row(compiled.record_types, compiled.record)
    values = _columns(copier, rows, row, memory.num_places, places[lids])
    return copier.keep(lids.astype(np.int64, copy=False)), values


def senders(memory: RunMemory, graph: GpuGraph, control: Any) -> Any:
    """Return who sent to the superstep that is planned, as a CuPy array of bools, [num_owned] by place."""
    import cupy

    if graph.places.size == 0:
        return cupy.zeros(0, dtype=cupy.bool_)
    return _senders(_Copier(cupy, lambda array: array, Copied), memory, graph.places.size, control)


def _senders(copier: _Copier, memory: RunMemory, num_owned: int, control: Any) -> Any:
    plan = control["next"]
    if plan["frontier"] != FRONTIER_LISTS:
        bits = copier.take(memory.array(f"sent{int(plan['superstep']) & 1}", np.uint8))
        return copier.numpy.unpackbits(bits, bitorder="little")[:num_owned].view(bool)
    sent = copier.numpy.zeros(num_owned, dtype=bool)
    for name, count in (("senders", plan["num_listed"]), ("hubs", plan["num_hubs"])):
        sent[copier.take(memory.array(name, np.uint32)[: int(count)])] = True
    return sent


def _put_records(snapshot: Snapshot, memory: RunMemory, compiled: CudaProgram, graph: GpuGraph) -> int:
    """Return how many messages the records stand for."""
    import cupy

    parity = snapshot.superstep & 1
    at = graph.places[cupy.asarray(snapshot.ends)]
    fill_records(memory, compiled, parity, at, snapshot.values)
    sent = cupy.zeros(graph.places.size, dtype=cupy.bool_)
    sent[at] = True
    memory.set_senders(parity, sent)
    return int(graph.out_degrees[at].sum(dtype=cupy.uint64))


def fill_records(
    memory: RunMemory, compiled: CudaProgram, parity: int, at: Any, columns: tuple[NDArray[Any], ...]
) -> None:
    """Write records, an array a field, to some places: those that a superstep of this parity reads."""
    row = Row(compiled.record, compiled.record)
    raw = memory.array(f"records{parity}", np.uint8)
    _fill(raw, row, memory.num_places, at, columns)


def records_by_lid(
    memory: RunMemory, compiled: CudaProgram, graph: GpuGraph, parity: int, *, on_device: bool
) -> tuple[Any, ...]:
    """Return the records of owned vertices, an array a field, of the types that compute() has."""
    row = Row(compiled.record_types, compiled.record)
    copier = _copier(on_device)
    raw = copier.take(memory.array(f"records{parity}", np.uint8))
    return _columns(copier, raw, row, memory.num_places, copier.take(graph.places))


def _mail(
    copier: _Copier, memory: RunMemory, compiled: CudaProgram, find: Find
) -> tuple[Any, tuple[Any, ...]]:
    """Return the targets of what was posted, and the messages."""
    count = int(memory.mail("num_direct", np.uint64)[0])
    targets = copier.take(memory.mail("direct_targets", np.int64)[:count]).copy()
    by_id = copier.numpy.flatnonzero(copier.take(memory.mail("direct_kinds", np.uint8)[:count]))
    found = find(_on_host(targets[by_id]))  # even for none: others may have some, and all find together
    targets[by_id] = copier.numpy.asarray(found)
    row = Row(compiled.program.message_dtypes, compiled.message)
    rows = copier.take(memory.mail("direct_messages", np.uint8)[: count * row.structure.itemsize])
    return copier.keep(targets), _columns(copier, rows, row, count, slice(None))


def _on_host(array: Any) -> NDArray[Any]:
    import cupy

    found: NDArray[Any] = cupy.asnumpy(array)
    return found


def _copier(on_device: bool) -> _Copier:
    """Return what copies now, to the host or where arrays are."""
    if not on_device:
        return _Copier(np, _on_host, lambda array: array)
    import cupy

    return _Copier(cupy, lambda array: array, lambda array: array)


def take_mail(
    memory: RunMemory, compiled: CudaProgram, find: Find, *, on_device: bool
) -> tuple[Any, tuple[Any, ...]]:
    """Return what was posted: gids of targets, and the messages, an array a field."""
    return _mail(_copier(on_device), memory, compiled, find)


def put_mail(memory: RunMemory, compiled: CudaProgram, lids: Any, values: tuple[Any, ...]) -> None:
    """Let the next superstep read these messages, to owned vertices, and no others."""
    import cupy

    count = lids.size
    memory.make_room_for(count)
    memory.mail("direct_targets", np.int64)[:count] = cupy.asarray(lids)
    memory.mail("direct_kinds", np.uint8)[:count] = 0
    memory.mail("direct_senders", np.uint32)[:count] = 0  # who sent it matters while it is posted, no longer
    row = Row(compiled.message, compiled.message)
    rows = memory.mail("direct_messages", np.uint8)
    _fill(rows, row, count, slice(None), values)
    memory.mail("num_direct", np.uint64)[0] = count


def _columns(copier: _Copier, raw: Any, row: Row, count: int, at: Any) -> tuple[Any, ...]:
    """Return copies of some of the first `count` rows, an array a field, of the types that compute() has."""
    size, columns = row.structure.itemsize, []
    for dtype, stored, offset in zip(row.dtypes, row.stored, row.offsets, strict=True):
        fields = raw[: count * size].reshape(count, size)[at, offset : offset + stored.itemsize]
        column = copier.numpy.ascontiguousarray(fields.copy())  # a slice would only look at it
        columns.append(copier.keep(column.view(stored).ravel().astype(dtype, copy=False)))
    return tuple(columns)


def _fill(raw: Any, row: Row, count: int, at: Any, columns: tuple[NDArray[Any], ...]) -> None:
    """Write columns, as `_columns` returns them, into rows."""
    import cupy

    size = row.structure.itemsize
    for dtype, offset, column in zip(row.stored, row.offsets, columns, strict=True):
        values = cupy.ascontiguousarray(cupy.asarray(column).astype(dtype, copy=False))
        bytes_of = values.view(np.uint8).reshape(values.size, dtype.itemsize)
        raw[: count * size].reshape(count, size)[at, offset : offset + dtype.itemsize] = bytes_of
