"""Packed pages read as sigps/graph/packing/DESIGN.md says, number by number: the judge of what packs and unpacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_stream(words: Sequence[int], table: int, stride: int, count: int) -> list[int]:
    """Return the numbers of a stream."""
    found: list[int] = []
    while len(found) < count:
        chunk = len(found) // 1024
        at = int(words[table + stride * chunk])
        size = min(count - len(found), 1024)
        codes = [int(words[at + g // 4]) >> 8 * (g % 4) & 255 for g in range(-(-size // 32))]
        widths = [32 if code & 31 == 31 else code & 31 for code in codes]
        payload, halves = at + 8, 2 * (at + 8 + sum(widths))
        for code, width in zip(codes, widths, strict=True):
            bits = sum(int(words[payload + i]) << 32 * i for i in range(width))
            numbers = [bits >> width * i & (1 << width) - 1 for i in range(32)]
            for _ in range(code >> 5):
                half = int(words[halves // 2]) >> 16 * (halves % 2) & 0xFFFF
                numbers[half & 31] |= half >> 5 << width
                halves += 1
            found += numbers[: min(32, size)]
            size -= 32
            payload += width
    return found


def read_rows(words: Sequence[int], first_row: int) -> list[list[int]]:
    """Return the targets of each row of a page."""
    num_rows, num_firsts, num_arcs, flags, degrees_at, firsts_at, gaps_at, _ = map(int, words[:8])
    firsts = iter(read_stream(words, firsts_at, 1, num_firsts))
    gaps = iter(read_stream(words, gaps_at, 2, num_arcs - num_firsts))
    rows = []
    for r, degree in enumerate(read_stream(words, degrees_at, 1, num_rows)):
        row: list[int] = []
        for i in range(degree):
            if i:
                row.append(row[-1] + next(gaps) + (flags & 1))
            else:
                first = next(firsts)
                distance = -(first + 1) // 2 if first % 2 else first // 2
                row.append(first_row + r + distance if flags & 2 else first)
        rows.append(row)
    return rows


def read_numbers(words: Sequence[int], dtype: Any) -> NDArray[Any]:
    """Return the numbers of a page of a column."""
    kind, count, low, high = map(int, words[:4])
    if kind == 0:
        raw = np.array(words[4:], dtype="<u4").tobytes()
        return np.frombuffer(raw[: count * np.dtype(dtype).itemsize], dtype=dtype)
    base = low | high << 32
    if np.dtype(dtype).kind != "u" and base >> 63:
        base -= 1 << 64
    return np.array([base + distance for distance in read_stream(words, 4, 1, count)]).astype(dtype)
