"""Direct messages of a run in the memory of a GPU: what was enqueued, and the arrays that grow with it.

They are the only arrays of a run that may become too small while it is under way. Then a superstep stops: vertices
that found no capacity keep their state, the host drops what these enqueued, makes more capacity, and only they run
again. Where edges stay in a packed store, what the GPU has no memory for lies on its host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.adapters import Row
from sigps.compiler.cuda.compile import CudaProgram
from sigps.device.cuda import check_fits, fits, free_bytes
from sigps.device.spilled_memory import Spilled
from sigps.engine.gpu.columns import Copier, copy_columns, fill_columns, typed
from sigps.engine.gpu.memory_plan import direct_arrays
from sigps.errors import DeviceError
from sigps.host_memory import available_memory

__all__ = ["DirectMessages", "Find"]

Find = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class DirectMessages:
    """The direct messages of a run.

    Args:
        compiled: The program.
        lease: The run's `kernels.cuda.lease.LEASE`, which is kept up to date.
        array: Returns one of the run's arrays by its name and type.
        num_owned: Vertices of the partition.

    Attributes:
        host_room: Bytes of the host that may hold what the GPU has no memory for; None: all that it has.
    """

    host_room: int | None = 0

    def __init__(
        self, compiled: CudaProgram, lease: Any, array: Callable[[str, Any], Any], num_owned: int
    ) -> None:
        self._compiled, self._lease, self._num_owned = compiled, lease, num_owned
        self._first = array
        self._grown: dict[str, Any] = {}
        self._on_host = 0  # bytes of these

    def array(self, name: str, dtype: Any) -> Any:
        """Return one of the arrays, whether it has grown or not."""
        return typed(self._grown[name], np.dtype(dtype)) if name in self._grown else self._first(name, dtype)

    @property
    def capacity(self) -> int:
        """How many messages may be enqueued."""
        return int(self._lease["in"]["direct_capacity"])

    @property
    def count(self) -> int:
        """How many have been, of those that found capacity. Waits for the device."""
        return min(self.capacity, self._num_tried)

    @property
    def _num_tried(self) -> int:
        return int(self.array("num_direct", np.uint64)[0])

    def wanted_capacity(self) -> int:
        """Return the capacity to have after a superstep that ran out of it; no less than there is."""
        capacity, wanted = self.capacity, self._num_tried
        return max(2 * capacity, wanted + wanted // 4) if wanted > capacity else capacity

    def grow(self, superstep: int) -> None:
        """Give a superstep that ran out of capacity more of it; messages of those that found none are dropped.

        Raises:
            DeviceError: If there is no memory for so many messages.
        """
        larger, stays, enqueued = (
            self.wanted_capacity(),
            self._stays(),
            self._widths(),
        )  # which take memory first
        taken = self._taken(larger, f"the direct messages of superstep {superstep}")
        for name, new in taken.items():
            at = 0
            for part in self._parts(name, enqueued[name], stays) if name in enqueued else self._arrived(name):
                new[at : at + part.size] = part
                at += part.size
            self._use(name, new)
        self._end_move(larger, int(stays.sum()))

    def copy_enqueued(self) -> dict[str, Any]:
        """Return copies of what was enqueued, but by those that found no capacity, by the names of arrays, as bytes."""
        import cupy

        stays = self._stays()
        none = cupy.zeros(0, dtype=cupy.uint8)
        return {
            name: cupy.concatenate([none, *self._parts(name, width, stays)])
            for name, width in self._widths().items()
        }

    def move(self, capacity: int, enqueued: Mapping[str, Any], taken: Mapping[str, Any]) -> None:
        """Move what was enqueued and what has arrived to other arrays.

        Args:
            capacity: How many messages may be enqueued in these.
            enqueued: What `copy_enqueued` returned.
            taken: The arrays by name, as `direct_arrays` names them, as bytes.
        """
        for name, new in taken.items():
            old = enqueued[name] if name in enqueued else self.array(name, np.uint8)
            new[: old.size] = old
            self._use(name, new)
        self._end_move(capacity, enqueued["direct_kinds"].size)

    def _stays(self) -> Any:
        """Return which of the messages that were enqueued stay, [count], bool: not those of who found no capacity."""
        import cupy

        again = cupy.unpackbits(self._first("overflowed", np.uint8), bitorder="little")
        senders = self.array("direct_senders", np.uint32)[: self.count]
        stays = cupy.empty(senders.size, dtype=cupy.bool_)
        for first in range(0, senders.size, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            stays[some] = ~again[: self._num_owned].view(cupy.bool_)[senders[some]]
        return stays

    def _widths(self) -> dict[str, int]:
        """Return the bytes of a message in each of the arrays of what is enqueued."""
        arrays = direct_arrays(self._compiled, 1, 0)
        return {name: width for name, width in arrays.items() if name.startswith("direct_")}

    def _parts(self, name: str, width: int, stays: Any) -> Iterator[Any]:
        """Yield the bytes of one of these arrays that stay, some at a time: beside them there may be little memory."""
        rows = self.array(name, np.uint8)[: stays.size * width].reshape(stays.size, width)
        for first in range(0, stays.size, _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            yield rows[some][stays[some]].ravel()

    def _arrived(self, name: str) -> Iterator[Any]:
        yield self.array(name, np.uint8)

    def _end_move(self, capacity: int, num_enqueued: int) -> None:
        self.array("num_direct", np.uint64)[0] = num_enqueued
        self._lease["in"]["direct_capacity"] = capacity

    def _taken(self, count: int, what: str) -> dict[str, Any]:
        """Return arrays for so many messages, by name, as bytes; those behind what the GPU has lie on the host.

        Who reads what has arrived goes by target, who reads what was enqueued from the first to the last: so the
        latter crosses in long pieces, and goes first.

        Raises:
            DeviceError: If there is no memory for them.
        """
        import cupy

        arrays = direct_arrays(self._compiled, count, count)
        total = sum(arrays.values())
        if self.host_room == 0 or fits(total):
            check_fits({what: total})
            return {name: cupy.empty(size, dtype=cupy.uint8) for name, size in arrays.items()}
        room = max(0, free_bytes(total) - _BESIDE)
        most = available_memory()  # besides what is there
        if self.host_room is not None:
            most = min(max(0, self.host_room - self._on_host), most)
        if total - room > most:
            raise DeviceError(
                f"{what} take {total:,} bytes; the GPU has {room:,} for them, and its host {most:,}. A smaller graph "
                "on each of several ranks takes less",
                rank=0,
            )
        taken, on_host = dict[str, Any](), 0
        for name in sorted(arrays, key=lambda name: name.startswith("direct_")):
            size = arrays[name]
            if size <= room:
                taken[name] = cupy.empty(size, dtype=cupy.uint8)
            else:
                spilled = Spilled(size, room)
                taken[name], on_host = spilled.bytes[:size], on_host + spilled.on_host
            room = max(0, room - size)
        self._on_host = on_host
        return taken

    def copy(self, copier: Copier, find: Find) -> tuple[Any, tuple[Any, ...]]:
        """Return the targets of enqueued messages, as gids where they were ids, and the messages, an array a field.

        Args:
            copier: What copies.
            find: Finds the gids of ids, as compute() names them. It is called even for none: it may be collective.
        """
        count = self._num_tried
        targets = copier.take(self.array("direct_targets", np.int64)[:count]).copy()
        by_id = copier.numpy.flatnonzero(copier.take(self.array("direct_kinds", np.uint8)[:count]))
        found = find(_on_host(targets[by_id]))
        targets[by_id] = copier.numpy.asarray(found)
        row = Row(self._compiled.program.message_dtypes, self._compiled.message)
        rows = copier.take(self.array("direct_messages", np.uint8)[: count * row.structure.itemsize])
        columns = copy_columns(rows, row, slice(None))
        return copier.keep(targets), tuple(map(copier.keep, columns))

    def put(self, targets: Any, values: tuple[Any, ...]) -> None:
        """Let the next superstep read these messages, to owned vertices, and no others."""
        import cupy

        count = targets.size
        if count > self.capacity:
            for name, array in self._taken(count, "the direct messages that arrived").items():
                self._use(name, array)
            self._lease["in"]["direct_capacity"] = count
        self.array("direct_targets", np.int64)[:count] = cupy.asarray(targets)
        self.array("direct_kinds", np.uint8)[:count] = 0
        self.array("direct_senders", np.uint32)[:count] = 0  # read only in the superstep that enqueues
        row = Row(self._compiled.message, self._compiled.message)
        rows = self.array("direct_messages", np.uint8)[: count * row.structure.itemsize]
        fill_columns(rows, row, slice(None), values)
        self.array("num_direct", np.uint64)[0] = count

    def _use(self, name: str, array: Any) -> None:
        self._grown[name] = array
        arguments = self._lease["in"]
        if name in ("list_keys", "list_order"):
            self._lease[name] = array.data.ptr
            self._lease["num_listed"] = self._grown["list_keys"].size // 8
        elif name.startswith("list"):
            arguments["lists"][int(name.removeprefix("list"))] = array.data.ptr
        elif name == "messages":
            self._lease["direct"]["messages"] = array.data.ptr
        else:
            arguments[name] = array.data.ptr


_AT_ONCE = 1 << 18
"""Messages that are moved at a time."""

_BESIDE = 1 << 25
"""Bytes of the GPU that are left where messages lie on its host: for those that are moved at a time."""


def _on_host(array: Any) -> NDArray[Any]:
    import cupy

    found: NDArray[Any] = cupy.asnumpy(array)
    return found
