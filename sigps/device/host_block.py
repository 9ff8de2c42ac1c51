"""Memory of the host that is pinned after it was written, which threads do side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["HostBlock"]

_PAGE_BYTES = 4096
_FLAGS = 3
"""CUDA's: pinned for all GPUs, and kernels read it, at the address that it has here."""


class HostBlock:
    """Whole pages of memory, which no other block has a part of.

    Args:
        num_bytes: What is asked for.

    Attributes:
        raw: The pages, uint8.
    """

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes = num_bytes
        self._unregister: Callable[[int], None] | None = None
        size = max(1, -(-num_bytes // _PAGE_BYTES)) * _PAGE_BYTES
        held = np.empty(size + _PAGE_BYTES - 1, np.uint8)
        first = -held.ctypes.data % _PAGE_BYTES
        self.raw: NDArray[np.uint8] = held[first : first + size]

    @property
    def is_pinned(self) -> bool:
        """Whether the pages are pinned."""
        return self._unregister is not None

    def pin(self) -> bool:
        """Pin the pages; return whether the driver did."""
        import cupy

        runtime = cupy.cuda.runtime
        try:
            runtime.hostRegister(self.raw.ctypes.data, self.raw.nbytes, _FLAGS)
        except runtime.CUDARuntimeError:
            return False
        self._unregister = runtime.hostUnregister
        return True

    def unpin(self) -> None:
        """Give the pages back to the system's care; nothing copies from them or to them, and no kernel reads them."""
        assert self._unregister is not None
        self._unregister(self.raw.ctypes.data)
        self._unregister = None
