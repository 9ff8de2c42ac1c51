"""Memory of one GPU that other processes of the host can write to (CUDA IPC).

A window is an allocation of its own: a handle names a whole allocation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Opened", "allocate", "handle_of"]

_GRANULE = 1 << 21


def allocate(num_bytes: int) -> Any:
    """Return device memory, [at least num_bytes] uint8, that a handle can be made of.

    Raises:
        MemoryError: If there is none.
    """
    import cupy

    size = -(-max(1, num_bytes) // _GRANULE) * _GRANULE
    cupy.get_default_memory_pool().free_all_blocks()
    try:
        memory = cupy.cuda.MemoryPointer(cupy.cuda.memory.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MemoryError(f"{size:,} bytes cannot be taken in one piece ({error})") from error
    return cupy.ndarray((size,), dtype=cupy.uint8, memptr=memory)


def handle_of(window: Any) -> NDArray[np.int64]:
    """Return what another process opens it with, [8]."""
    import cupy

    return np.frombuffer(cupy.cuda.runtime.ipcGetMemHandle(window.data.ptr), dtype=np.int64)


class Opened:
    """A window of another process, mapped here.

    Args:
        handle: What `handle_of` returned there.

    Attributes:
        address: Where it begins here.
    """

    def __init__(self, handle: NDArray[np.int64]) -> None:
        import cupy

        self._close = cupy.cuda.runtime.ipcCloseMemHandle
        self.address = int(cupy.cuda.runtime.ipcOpenMemHandle(handle.tobytes()))

    def close(self) -> None:
        """Unmap it; the owner frees it after that."""
        self._close(self.address)
