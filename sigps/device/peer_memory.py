"""Buffers of a GPU that other processes of the host can map and write to (CUDA IPC).

Each is a separate allocation, because an IPC handle names a whole allocation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Opened", "allocate", "handle_of"]

_GRANULE = 1 << 21


def allocate(num_bytes: int) -> Any:
    """Allocate a buffer, [at least num_bytes] uint8, that `handle_of` accepts.

    Raises:
        MemoryError: If the GPU has too little free memory.
    """
    import cupy

    size = -(-max(1, num_bytes) // _GRANULE) * _GRANULE
    cupy.get_default_memory_pool().free_all_blocks()
    try:
        memory = cupy.cuda.MemoryPointer(cupy.cuda.memory.Memory(size), 0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise MemoryError(f"{size:,} bytes cannot be allocated in one piece ({error})") from error
    return cupy.ndarray((size,), dtype=cupy.uint8, memptr=memory)


def handle_of(buffer: Any) -> NDArray[np.int64]:
    """Return the IPC handle, [8], with which another process maps a buffer."""
    import cupy

    return np.frombuffer(cupy.cuda.runtime.ipcGetMemHandle(buffer.data.ptr), dtype=np.int64)


class Opened:
    """A buffer of another process, mapped into this one.

    Args:
        handle: What `handle_of` returned in the process that owns it.

    Attributes:
        address: The address of its first byte in this process.
    """

    def __init__(self, handle: NDArray[np.int64]) -> None:
        import cupy

        self._close = cupy.cuda.runtime.ipcCloseMemHandle
        self.address = int(cupy.cuda.runtime.ipcOpenMemHandle(handle.tobytes()))

    def close(self) -> None:
        """Unmap the buffer. Its owner must free it only after that."""
        self._close(self.address)
