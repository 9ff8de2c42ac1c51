"""NCCL: arrays in device memory between the GPUs of a group, on one host or several."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from sigps.errors import DeviceError
from sigps.group import Group

__all__ = ["Nccl", "connect", "why_not"]


@functools.cache
def why_not() -> str:
    """Return why NCCL cannot be used in this process; an empty string if it can."""
    try:
        from cupy.cuda import nccl

        nccl.get_version()
    except Exception as error:  # which exception a library raises that cannot be loaded is not specified
        return f"CuPy finds no NCCL ({error or type(error).__name__}); pip install nvidia-nccl-cu13, or -cu12"
    return ""


class Nccl:
    """An NCCL communicator over the ranks of a group, each with its current GPU; no two ranks may share one.

    Construction is collective and takes about a second.

    Args:
        group: The ranks.

    Raises:
        DeviceError: If NCCL cannot connect the GPUs; holds NCCL's message.
    """

    def __init__(self, group: Group) -> None:
        from cupy.cuda import nccl

        own = nccl.get_unique_id() if group.rank == 0 else b""
        name = group.broadcast(own)
        self._group, self._nccl = weakref.proxy(group), nccl
        name = name if isinstance(name, bytes) else tuple(name)
        try:
            self._communicator = nccl.NcclCommunicator(group.size, name, group.rank)
        except nccl.NcclError as error:
            raise DeviceError(
                f"NCCL cannot connect the GPUs: {error}. exchange.transport=mpi does without it",
                rank=group.rank,
            ) from error

    def all_to_all(self, parts: Sequence[Any]) -> list[Any]:
        """Send `parts[r]` (CuPy arrays, one dtype and shape of rows on all ranks) to rank r; return what each sent.

        Collective. The host exchanges the lengths and waits for them. The arrays are moved on the current stream, for
        which the host does not wait.
        """
        import cupy

        group, parts = self._group, [cupy.ascontiguousarray(part) for part in parts]
        sizes = group.all_to_all([np.array([len(part)]) for part in parts])
        rows = parts[0].shape[1:]
        arrived = [cupy.empty((int(size[0]), *rows), dtype=parts[0].dtype) for size in sizes]
        arrived[group.rank] = parts[group.rank]
        self.move(parts, arrived)
        return arrived

    def move(self, parts: Sequence[Any], arrived: Sequence[Any]) -> None:
        """Send `parts[r]` to each other rank r, and write what it sends to `arrived[r]`, of the same size there.

        Collective. The arrays are moved on the current stream; the host waits for nothing.
        """
        import cupy

        group, stream = self._group, cupy.cuda.get_current_stream().ptr
        self._nccl.groupStart()
        for peer in range(group.size):
            if peer == group.rank:
                continue
            for move, array in (
                (self._communicator.send, parts[peer]),
                (self._communicator.recv, arrived[peer]),
            ):
                if array.size:
                    move(array.data.ptr, array.nbytes, self._nccl.NCCL_UINT8, peer, stream)
        self._nccl.groupEnd()


_connected: weakref.WeakKeyDictionary[Group, Nccl] = weakref.WeakKeyDictionary()


def connect(group: Group) -> Nccl:
    """Return the communicator of a group, constructed once. Collective."""
    if group not in _connected:
        _connected[group] = Nccl(group)
    return _connected[group]
