"""Copies within a GPU's memory, from it and to it, by the copy engines: no kernel is compiled for any of them.

Arrays are CuPy's, in one piece each.
"""

from __future__ import annotations

import functools
import math
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads, available_cores
from sigps.errors import DeviceError

__all__ = ["bring", "bring_small", "copy_within", "fill_with", "page", "send", "send_small"]

_FIRST_BYTES = 1 << 15
"""Of what an array is filled with, written by the host; the rest is copied from there, twice as much each time."""

_SMALL_BYTES = 1 << 16
"""Copies up to this cross without staging."""

STAGED_BYTES = 4 << 20
_MOST_LANES = 8
"""Threads that bring an array, each with so many bytes of pinned memory and a stream: 32 MiB a device, kept."""

_MOST_KEPT_BYTES = 512 << 20
"""Of answers that nobody holds any longer, whose memory is kept for the next ones."""


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
) -> NDArray[Any]:
    """Return an array on the host, when what the current stream of its device was given before is done.

    Numbers cross in the width that they have on the device. Large arrays cross in pieces, through pinned memory: while
    one crosses, threads convert others and write them to the host, into pages of an earlier answer where there are
    some, since to get new ones takes the longest of all.

    Args:
        array: [n] or [n, length].
        dtype: The type of a number on the host.
        write: Writes a piece, its second argument, to another of that type; takes the same piece of those beside.
        beside: Arrays of the host as long as the array, which `write` writes to, too.
    """
    import cupy

    if array.nbytes <= _SMALL_BYTES:
        small = np.empty(array.shape, dtype)
        with array.device:
            write(small, cupy.asnumpy(array), *beside)
        return small
    found = _pages.array(array.shape, dtype)
    on_host, numbers = [a.reshape(-1) for a in (found, *beside)], STAGED_BYTES // array.itemsize

    def bring_piece(lane: _Lane, begin: int, piece: Any) -> None:
        target, *others = (a[begin : begin + piece.size] for a in on_host)
        write(target, lane.bring(piece), *others)

    with array.device:
        _in_pieces(array.reshape(-1), numbers, bring_piece)
    return found


def page(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of the host for what an answer has beside its values; undefined, in pages as `bring` takes."""
    return _pages.array(shape, dtype)


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


class _Pages:
    """Memory for answers: that of an array which nobody holds any longer serves the next one of as many bytes."""

    def __init__(self) -> None:
        self._free: dict[int, list[NDArray[np.uint8]]] = {}  # the size that was given back last is the last
        self._kept = 0
        self._lock = threading.Lock()
        self._returned: deque[NDArray[np.uint8]] = deque()

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array whose values are undefined."""
        num_bytes = math.prod(shape) * dtype.itemsize
        with self._lock:
            raw = self._taken(num_bytes)
        self._keep_returned()
        if raw is None:
            raw = np.empty(num_bytes, np.uint8)
        found: NDArray[Any] = np.asarray(_Owner(raw, self)).view(dtype).reshape(shape)
        return found

    def give_back(self, raw: NDArray[np.uint8]) -> None:
        """Keep memory for later arrays. Waits for nothing: the collector may call it where this thread has the lock."""
        self._returned.append(raw)
        self._keep_returned()

    def _keep_returned(self) -> None:
        while self._returned and self._lock.acquire(blocking=False):
            try:
                while self._returned:
                    self._keep(self._returned.popleft())
            finally:
                self._lock.release()

    def _keep(self, raw: NDArray[np.uint8]) -> None:
        """Keep memory, instead of that of the sizes that were given back longest ago. The lock is held."""
        size = raw.nbytes
        if size > _MOST_KEPT_BYTES:
            return
        self._free[size] = [*self._free.pop(size, ()), raw]
        self._kept += size
        while self._kept > _MOST_KEPT_BYTES:
            self._taken(next(iter(self._free)))

    def _taken(self, num_bytes: int) -> NDArray[np.uint8] | None:
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

    def __init__(self, raw: NDArray[np.uint8], pages: _Pages) -> None:
        self._raw, self._pages = raw, pages
        self.__array_interface__ = raw.__array_interface__

    def __del__(self) -> None:
        self._pages.give_back(self._raw)


_pages = _Pages()


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
