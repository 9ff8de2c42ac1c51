"""A block of pinned memory of the host that kernels read and write where it lies (zero-copy)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import waiter_for_device
from sigps.errors import DeviceError
from sigps.host_memory import available_memory

__all__ = ["PinnedBlock"]


class PinnedBlock:
    """Pinned memory. Kernels and the host see the same bytes; who reads on the host waits for kernels first.

    Args:
        num_bytes: Its size.
        what: What it is for, in an error.

    Attributes:
        pointer: Where it begins, as CuPy takes memory of the device. It keeps the memory, until the device has nothing
            left to do.

    Raises:
        DeviceError: If the host has less.
    """

    def __init__(self, num_bytes: int, what: str) -> None:
        import cupy

        size = max(8, num_bytes)
        if size > available_memory():
            raise DeviceError(
                f"{what} take {size:,} bytes of this host's memory, since they do not fit the GPU, and "
                f"{available_memory():,} are free",
                rank=0,
            )
        # Not of CuPy's pool, which takes powers of two, and keeps them.
        held = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(size), 0)
        device = int(cupy.cuda.runtime.getDevice())
        memory = cupy.cuda.UnownedMemory(held.ptr, size, _Owner(held, device), device)
        self.pointer = cupy.cuda.MemoryPointer(memory, 0)
        self._bytes = np.frombuffer(held, np.uint8, size)

    def array(self, at: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return values that begin at a byte, as the host sees them; vectors as rows."""
        found: NDArray[Any] = self._bytes[at : at + count * dtype.itemsize].view(dtype.base)
        return found.reshape(count, *dtype.shape)


class _Owner:
    """What an address of the device refers to: the memory goes when no kernel can still use it.

    A run that ends by itself has waited for its kernels; one that is given up has not.
    """

    def __init__(self, held: Any, device: int) -> None:
        self._held, self._wait = held, waiter_for_device(device)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # with the process its memory goes, and CuPy can no longer be called
            self._wait()
