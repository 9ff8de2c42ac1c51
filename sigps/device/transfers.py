"""Copies within a GPU's memory, from it and to it, by the copy engines: no kernel is compiled for any of them.

Arrays are CuPy's, in one piece each.
"""

from __future__ import annotations

import functools
import math
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.answer_memory import AnswerMemory, Page
from sigps.device.cpu import Threads, available_cores
from sigps.errors import DeviceError

__all__ = ["bring", "bring_small", "copy_within", "fill_with", "page_for", "send", "send_small"]

_FIRST_BYTES = 1 << 15
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
    if _repeats_word(pattern) and array.data.ptr % 4 == 0:
        _fill_words(array.data.ptr, int.from_bytes(pattern[:4], sys.byteorder), size // 4)
        return
    raw = array.reshape(-1).view(np.uint8)
    first = pattern * min(size // len(pattern), max(1, _FIRST_BYTES // len(pattern)))
    send_small(raw[: len(first)], first)
    done = len(first)
    while done < size:
        more = min(done, size - done)
        copy_within(raw[done : done + more], raw[:more])
        done += more


def _repeats_word(pattern: bytes) -> bool:
    return len(pattern) % 4 == 0 and pattern == pattern[:4] * (len(pattern) // 4)


def _fill_words(address: int, word: int, count: int) -> None:
    """Fill memory with words of 32 bits on the current stream."""
    import cupy
    from cuda.bindings import driver

    (error,) = driver.cuMemsetD32Async(address, word, count, cupy.cuda.get_current_stream().ptr)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the driver could not fill memory: {error.name}")


def copy_within(target: Any, source: Any) -> None:
    """Copy an array over another of as many bytes, on the current stream. Does not wait for the device."""
    import cupy

    assert target.nbytes == source.nbytes
    if source.nbytes:
        stream = cupy.cuda.get_current_stream().ptr
        kind = cupy.cuda.runtime.memcpyDeviceToDevice
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, source.nbytes, kind, stream)


def send_small(array: Any, values: bytes) -> None:
    """Write a few kilobytes over an array, on the current stream. Does not wait for the device."""
    import cupy

    assert array.nbytes == len(values)
    source = np.frombuffer(values, np.uint8)
    stream, kind = cupy.cuda.get_current_stream().ptr, cupy.cuda.runtime.memcpyHostToDevice
    cupy.cuda.runtime.memcpyAsync(array.data.ptr, source.ctypes.data, source.nbytes, kind, stream)


def bring_small(address: int, num_bytes: int) -> NDArray[np.uint8]:
    """Return a few kilobytes of the device, when what the current stream was given before is done.

    They cross through pinned memory: 8 us, where `cupy.asnumpy` takes 18 (NVIDIA H200).
    """
    import cupy

    pinned, runtime = _pinned.take(num_bytes), cupy.cuda.runtime
    stream = cupy.cuda.get_current_stream()
    runtime.memcpyAsync(pinned.ptr, address, num_bytes, runtime.memcpyDeviceToHost, stream.ptr)
    stream.synchronize()
    return np.frombuffer(pinned, np.uint8, num_bytes).copy()


class _Pinned(threading.local):
    """Pinned memory of each thread, for small copies."""

    def __init__(self) -> None:
        self._memory, self._num_bytes = None, 0

    def take(self, num_bytes: int) -> Any:
        """Return at least so many bytes."""
        import cupy

        if num_bytes > self._num_bytes:
            self._num_bytes = max(num_bytes, _SMALL_BYTES)
            self._memory = cupy.cuda.alloc_pinned_memory(self._num_bytes)
        return self._memory


_pinned = _Pinned()


def bring(
    array: Any,
    dtype: np.dtype[Any],
    write: Callable[..., None] = np.copyto,
    beside: Sequence[NDArray[Any]] = (),
    page: Page | None = None,
) -> NDArray[Any]:
    """Return an array on the host, when what the current stream of its device was given before is done.

    Numbers cross in the width that they have on the device. To pinned pages copy engines write, where numbers stay as
    they are. Other large arrays cross in pieces, through pinned memory: while one crosses, threads convert others and
    write them to the host.

    Args:
        array: [n] or [n, length].
        dtype: The type of a number on the host.
        write: Writes a piece, its second argument, to another of that type; takes the same piece of those beside.
        beside: Arrays of the host as long as the array, which `write` writes to, too.
        page: What it is written to; of the array's shape and of that type.
    """
    if page is None:
        page = page_for(array.shape, dtype)
    if array.nbytes == 0:
        return page.array
    if array.nbytes <= _SMALL_BYTES:
        with array.device:
            seen = bring_small(array.data.ptr, array.nbytes)
        write(page.array, seen.view(array.dtype.name).reshape(array.shape), *beside)
        return page.array
    if page.is_pinned and write is np.copyto and array.dtype == dtype:
        with array.device:
            _bring_to_pinned(page.array, array)
        return page.array
    on_host, numbers = [a.reshape(-1) for a in (page.array, *beside)], STAGED_BYTES // array.itemsize

    def bring_piece(lane: _Lane, begin: int, piece: Any) -> None:
        target, *others = (a[begin : begin + piece.size] for a in on_host)
        write(target, lane.bring(piece), *others)

    with array.device:
        _in_pieces(array.reshape(-1), numbers, bring_piece)
    return page.array


def page_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Page:
    """Return an array of the host for what `bring` brings, or for what an answer has beside that; undefined."""
    if math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
        return Page(np.empty(shape, dtype), is_pinned=False)
    return _answer_memory.page(shape, dtype)


def _bring_to_pinned(target: NDArray[Any], array: Any) -> None:
    import cupy

    runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream()
    address, kind = target.ctypes.data, runtime.memcpyDeviceToHost
    runtime.memcpyAsync(address, array.data.ptr, array.nbytes, kind, stream.ptr)
    stream.synchronize()


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


_answer_memory = AnswerMemory()


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
        if not makes:
            return self._free.get()
        try:
            return _Lane()
        except BaseException:
            with self._making:
                self._left += 1
            raise

    def put(self, lane: _Lane) -> None:
        self._free.put(lane)


@functools.cache
def _lanes(device: int) -> _Lanes:
    return _Lanes()
