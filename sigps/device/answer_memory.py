"""Memory of the host for answers: that of earlier ones, pinned where the next ones come.

New pages take the longest of all that bringing an answer takes, and pinning them takes as long again. So the memory of
an answer that nobody holds any longer serves the next one of as many bytes, and is pinned then: from there on copy
engines write to it. On one NVIDIA H200 33.6 MB take 10 ms to touch for the first time; an answer of so many takes 5.4
ms through staging, in pages of an earlier one; to pin these takes 3.9 ms, once, and to cross to them 0.62.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.device.host_block import HostBlock

__all__ = ["AnswerMemory", "Page"]

_MOST_KEPT_BYTES = 512 << 20
"""Of answers that nobody holds any longer."""

_MOST_PINNED_BYTES = 1 << 30
"""Of answers, held or kept: pinned memory is not the system's any more, to give to others."""


class Page(NamedTuple):
    """An array for an answer, whose values are undefined.

    Attributes:
        array: It; when no view of it is left, its memory is kept.
        is_pinned: Whether copy engines can write to it.
    """

    array: NDArray[Any]
    is_pinned: bool


class AnswerMemory:
    """What answers are written to, of one process."""

    def __init__(self) -> None:
        self._free: dict[int, list[HostBlock]] = {}  # the size that was given back last is the last
        self._kept = self._pinned = 0
        self._lock = threading.Lock()
        self._returned: deque[HostBlock] = deque()

    def page(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Page:
        """Return an array whose values are undefined."""
        num_bytes = math.prod(shape) * dtype.itemsize
        with self._lock:
            block = self._taken(num_bytes)
            pins = block is not None and not block.is_pinned and self._has_room_for(block)
            if block is not None and pins:
                self._pinned += block.raw.nbytes
        self._keep_returned()
        if block is None:
            block = HostBlock(num_bytes)
        elif pins and not block.pin():
            with self._lock:
                self._pinned -= block.raw.nbytes
        array: NDArray[Any] = np.asarray(_Owner(block, self))[:num_bytes].view(dtype).reshape(shape)
        return Page(array, block.is_pinned)

    def give_back(self, block: HostBlock) -> None:
        """Keep memory for later arrays. Waits for nothing: the collector may call it where this thread has the lock."""
        self._returned.append(block)
        self._keep_returned()

    def _has_room_for(self, block: HostBlock) -> bool:
        return self._pinned + block.raw.nbytes <= _MOST_PINNED_BYTES

    def _keep_returned(self) -> None:
        while self._returned and self._lock.acquire(blocking=False):
            try:
                while self._returned:
                    self._keep(self._returned.popleft())
            finally:
                self._lock.release()

    def _keep(self, block: HostBlock) -> None:
        """Keep memory, instead of that of the sizes that were given back longest ago. The lock is held."""
        size = block.num_bytes
        if size > _MOST_KEPT_BYTES:
            self._drop(block)
            return
        self._free[size] = [*self._free.pop(size, ()), block]
        self._kept += size
        while self._kept > _MOST_KEPT_BYTES:
            oldest = self._taken(next(iter(self._free)))
            assert oldest is not None
            self._drop(oldest)

    def _drop(self, block: HostBlock) -> None:
        if block.is_pinned:
            block.unpin()
            self._pinned -= block.raw.nbytes

    def _taken(self, num_bytes: int) -> HostBlock | None:
        """Return so many bytes that were kept, or None. The lock is held."""
        free = self._free.get(num_bytes)
        if not free:
            return None
        self._kept -= num_bytes
        if len(free) == 1:
            del self._free[num_bytes]
        return free.pop()


class _Owner:
    """What an array and all views of it refer to: when the last of them is gone, its memory is given back."""

    def __init__(self, block: HostBlock, memory: AnswerMemory) -> None:
        self._block, self._memory = block, memory
        self.__array_interface__ = block.raw.__array_interface__

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_ending():  # with the process its memory goes, and CuPy can no longer be called
            self._memory.give_back(self._block)
