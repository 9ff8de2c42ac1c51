"""Columns of edges in packed pages: whole numbers as a stream, narrowed where nothing is lost; others as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.packing.streams import CHUNK, most_words, pack_stream, unpack_stream
from sigps.native.kernel import compiled

__all__ = ["pack_numbers", "unpack_numbers"]


def pack_numbers(values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the page of some numbers or bools, [at most 2**18]."""
    raw = _raw_page(values)
    narrowed = _narrowed(values)
    if narrowed is None:
        return raw
    base, distances = narrowed
    table = np.uint64(_HEADER_WORDS)
    chunks = -(-values.size // CHUNK)
    words = np.empty(_HEADER_WORDS + chunks + most_words(values.size) + _ALIGNMENT, dtype=np.uint32)
    words[:_HEADER_WORDS] = _WHOLE, values.size, base % 2**32, base % 2**64 >> 32
    size = int(_pack(distances, words, table, np.uint64(_HEADER_WORDS + chunks)))
    return words[:size] if size < raw.size else raw


def unpack_numbers(words: NDArray[np.uint32], out: NDArray[Any], scratch: NDArray[np.uint32]) -> bool:
    """Write the numbers of a page; return whether it is one of as many numbers of this type.

    Whatever it holds, nothing outside of the arrays is read or written.

    Args:
        words: The page.
        out: [numbers], written.
        scratch: [numbers rounded up to 32].
    """
    if words.size < _HEADER_WORDS or int(words[1]) != out.size:
        return False
    if words[0] == _RAW:
        raw = words[_HEADER_WORDS:].view(np.uint8)
        if raw.size < out.nbytes:
            return False
        out.view(np.uint8)[:] = raw[: out.nbytes]
        return out.dtype.kind != "b" or bool(out.view(np.uint8).max(initial=0) < 2)
    if words[0] != _WHOLE or not _unpack(words, np.uint64(_HEADER_WORDS), out.size, scratch):
        return False
    base = int(words[2]) | int(words[3]) << 32
    base -= (base >> 63) << 64 if out.dtype.kind != "u" else 0
    distances = scratch[: out.size]
    ends = _ends_of(out.dtype)
    if out.size and not ends[0] <= base <= base + int(distances.max()) <= ends[1]:
        return False
    if out.dtype.kind == "f":
        np.add(distances, base, out=out, casting="unsafe", dtype=np.float64)  # exact: below 2**53
    elif out.dtype.kind == "b":
        np.add(distances, base, out=out.view(np.uint8), casting="unsafe", dtype=np.int64)
    else:
        wide = distances.astype(np.uint64)
        wide += np.uint64(base % 2**64)
        out[:] = wide.astype(out.dtype)
    return True


_HEADER_WORDS = 4  # the kind, how many numbers, and what is added to each of a stream, in 64 bits
_RAW, _WHOLE = 0, 1
_ALIGNMENT = 32


def _raw_page(values: NDArray[Any]) -> NDArray[np.uint32]:
    words = -(-(_HEADER_WORDS * 4 + values.nbytes) // 4)
    page = np.zeros(-(-words // _ALIGNMENT) * _ALIGNMENT, dtype=np.uint32)
    page[:2] = _RAW, values.size
    page[_HEADER_WORDS:].view(np.uint8)[: values.nbytes] = np.ascontiguousarray(values).view(np.uint8)
    return page


def _narrowed(values: NDArray[Any]) -> tuple[int, NDArray[np.uint32]] | None:
    """Return a whole number, and how far each value lies above it, in 32 bits; None where that would lose something."""
    if not values.size:
        return 0, np.empty(0, dtype=np.uint32)
    whole: NDArray[Any] = values
    if values.dtype.kind == "f":
        least, most = _ends_of(values.dtype)
        if not ((values >= least) & (values <= most)).all():  # NaN is not
            return None
        whole = values.astype(np.int64)
        bits = f"u{values.dtype.itemsize}"
        if not np.array_equal(
            whole.astype(values.dtype).view(bits), values.view(bits)
        ):  # fractions, and -0.0
            return None
    elif values.dtype.kind == "b":
        whole = values.view(np.uint8)
    base = int(whole.min())
    if int(whole.max()) - base >= 1 << 32:
        return None
    return base, (whole.astype(np.uint64) - np.uint64(base % 2**64)).astype(np.uint32)


def _ends_of(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return between what whole numbers a type has every one exactly."""
    if dtype.kind == "f":
        most = 1 << (np.finfo(dtype).nmant + 1)
        return -most, most
    if dtype.kind == "b":
        return 0, 1
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


@compiled
def _pack(
    values: NDArray[np.uint32], words: NDArray[np.uint32], table: np.uint64, at: np.uint64
) -> np.uint64:
    at = pack_stream(values, np.uint64(values.size), words, table, np.uint64(1), at)
    end = (at + np.uint64(_ALIGNMENT)) & ~np.uint64(_ALIGNMENT - 1)
    for i in range(at, end):
        words[i] = np.uint32(0)
    return end


@compiled
def _unpack(words: NDArray[np.uint32], table: np.uint64, count: int, out: NDArray[np.uint32]) -> bool:
    return unpack_stream(words, table, np.uint64(1), np.uint64(count), out)
