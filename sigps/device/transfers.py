"""Copies within a GPU's memory, from it and to it, by the copy engines: no kernel is compiled for any of them.

Arrays are CuPy's, in one piece each.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads, available_cores

__all__ = ["bring", "copy_within", "fill_with", "send"]

_FIRST_BYTES = 1 << 16
"""Of what an array is filled with, written by the host; the rest is copied from there, twice as much each time."""

_SMALL_BYTES = 1 << 16
"""Copies up to this cross without staging."""

STAGED_BYTES = 4 << 20
_MOST_LANES = 8
"""Threads that bring an array, each with so many bytes of pinned memory and a stream: 32 MiB a device, kept."""


def fill_with(array: Any, pattern: bytes) -> None:
    """Fill an array with bytes, over and over. Does not wait for the device.

    Args:
        array: Its size is a multiple of that of `pattern`.
        pattern: At least one byte.
    """
    size = array.nbytes
    if size == 0:
        return
    if len(set(pattern)) == 1:
        array.data.memset_async(pattern[0], size)
        return
    raw = array.reshape(-1).view(np.uint8)
    first = pattern * min(size // len(pattern), max(1, _FIRST_BYTES // len(pattern)))
    raw[: len(first)].set(np.frombuffer(first, np.uint8))
    done = len(first)
    while done < size:
        more = min(done, size - done)
        copy_within(raw[done : done + more], raw[:more])
        done += more


def copy_within(target: Any, source: Any) -> None:
    """Copy an array over another of as many bytes, on the current stream. Does not wait for the device."""
    import cupy

    assert target.nbytes == source.nbytes
    if source.nbytes:
        stream = cupy.cuda.get_current_stream().ptr
        kind = cupy.cuda.runtime.memcpyDeviceToDevice
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, source.nbytes, kind, stream)


def bring(
    array: Any, dtype: np.dtype[Any], convert: Callable[[NDArray[Any], np.dtype[Any]], NDArray[Any]]
) -> NDArray[Any]:
    """Return an array on the host, when what the current stream was given before is done.

    Numbers cross in the width that they have on the device. Large arrays cross in pieces, through pinned memory: while
    one crosses, threads convert others and write them to new pages of the host, which takes the longest of all.

    Args:
        array: [n] or [n, length].
        dtype: The type of a number on the host.
        convert: Returns a piece in that type.
    """
    import cupy

    if array.nbytes <= _SMALL_BYTES:
        return convert(cupy.asnumpy(array), dtype)
    found = np.empty(array.shape, dtype)
    on_host, numbers = found.reshape(-1), STAGED_BYTES // array.itemsize

    def bring_piece(lane: _Lane, begin: int, piece: Any) -> None:
        on_host[begin : begin + piece.size] = convert(lane.bring(piece), dtype)

    _in_pieces(array.reshape(-1), numbers, bring_piece)
    return found


def send(array: NDArray[Any]) -> Any:
    """Return a copy of an array of the host, in one piece, on the current device.

    Large arrays cross in pieces: threads write them to pinned memory.
    """
    import cupy

    if array.nbytes <= _SMALL_BYTES or not array.flags.c_contiguous:
        return cupy.asarray(array)
    sent = cupy.empty(array.shape, array.dtype)
    on_host, numbers = array.reshape(-1), STAGED_BYTES // array.itemsize

    def send_piece(lane: _Lane, begin: int, piece: Any) -> None:
        lane.send(on_host[begin : begin + piece.size], piece)

    _in_pieces(sent.reshape(-1), numbers, send_piece)
    return sent


def _in_pieces(flat: Any, numbers: int, move: Callable[[_Lane, int, Any], None]) -> None:
    """Let threads move pieces of an array of the device, when what the current stream was given before is done.

    Args:
        flat: The array, [numbers].
        numbers: Those of a piece.
        move: Moves a piece by a lane; takes where it begins, too.
    """
    import cupy

    is_made = cupy.cuda.Event(disable_timing=True)
    is_made.record()
    lanes = _lanes(int(cupy.cuda.runtime.getDevice()))

    def move_piece(begin: int) -> None:
        with flat.device:
            lane = lanes.take()
            try:
                lane.wait_for(is_made)
                move(lane, begin, flat[begin : begin + numbers])
            finally:
                lanes.put(lane)

    lanes.threads.map(move_piece, range(0, flat.size, numbers))


class _Lane:
    """Pinned memory, and the stream that fills it."""

    def __init__(self) -> None:
        import cupy

        self._pinned = cupy.cuda.alloc_pinned_memory(STAGED_BYTES)
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def wait_for(self, event: Any) -> None:
        self._stream.wait_event(event)

    def bring(self, piece: Any) -> NDArray[Any]:
        """Return a piece in this lane's memory; waits for it."""
        dtype = np.dtype(piece.dtype.name)
        self._copy(self._pinned.ptr, piece.data.ptr, piece.nbytes, "memcpyDeviceToHost")
        return np.frombuffer(self._pinned, dtype, piece.nbytes // dtype.itemsize)

    def send(self, values: NDArray[Any], piece: Any) -> None:
        """Copy values to a piece, through this lane's memory; waits for it."""
        np.frombuffer(self._pinned, values.dtype, values.size)[:] = values
        self._copy(piece.data.ptr, self._pinned.ptr, piece.nbytes, "memcpyHostToDevice")

    def _copy(self, to: int, source: int, num_bytes: int, kind: str) -> None:
        import cupy

        runtime = cupy.cuda.runtime
        runtime.memcpyAsync(to, source, num_bytes, getattr(runtime, kind), self._stream.ptr)
        self._stream.synchronize()


class _Lanes:
    """The lanes of a device, made as they are needed, and the threads that use them."""

    def __init__(self) -> None:
        self.threads = Threads(min(_MOST_LANES, available_cores()))
        self._free: queue.SimpleQueue[_Lane] = queue.SimpleQueue()
        self._left, self._making = self.threads.count, threading.Lock()

    def take(self) -> _Lane:
        """Return a free lane; waits for one where all are in use."""
        try:
            return self._free.get_nowait()
        except queue.Empty:
            pass
        with self._making:
            makes = self._left > 0
            self._left -= makes
        return _Lane() if makes else self._free.get()

    def put(self, lane: _Lane) -> None:
        self._free.put(lane)


@functools.cache
def _lanes(device: int) -> _Lanes:
    return _Lanes()
