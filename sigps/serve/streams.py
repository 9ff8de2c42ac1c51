"""The streams of a pool's runs on a GPU: one each, so that what one run is given does not wait for what others run.

Memory that a run gives back may be any other's: a run waits for its own stream before it ends. What runs share of a
graph is made by one at a time, and each begins after what those before it were given to do in that.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

from sigps.device.cuda import counting_from

__all__ = ["Streams"]


class Streams:
    """The streams of one device; none where it is no GPU.

    Args:
        ordinal: The GPU's number; None for another device.
    """

    def __init__(self, ordinal: int | None) -> None:
        self._ordinal = ordinal
        self._free: deque[Any] = deque()  # not a list: threads take and give back without a lock
        self._is_prepared: Any = None

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Give this thread the GPU and a stream of its own in the block, which ends when what it was given is done."""
        if self._ordinal is None:
            yield
            return
        import cupy

        with counting_from(self._ordinal):
            try:
                stream = self._free.pop()
            except IndexError:
                stream = cupy.cuda.Stream(non_blocking=True)
            try:
                with stream:
                    yield
            finally:
                stream.synchronize()
                self._free.append(stream)

    def begin_preparing(self) -> None:
        """Let this thread's stream go on after what others were preparing. One thread at a time."""
        if self._is_prepared is not None:
            import cupy

            cupy.cuda.get_current_stream().wait_event(self._is_prepared)

    def end_preparing(self) -> None:
        """Let those that prepare later begin after what this thread's stream was given so far."""
        if self._ordinal is not None:
            import cupy

            event = cupy.cuda.Event(disable_timing=True)
            event.record()
            self._is_prepared = event
