"""The loops of `HashedTexts`: a hash table of texts.

A slot holds a text's hash << 32 | its code + 1, or 0 if it is free. A text is in the first slot at or after its
hash that was free when it was inserted (linear probing). There are at least twice as many slots as texts, and a
power of two of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["hash_texts", "look_up", "refill"]

_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_BATCH = 256
_HALF, _LOW, _ONE = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1)


@compiled
def hash_texts(data: NDArray[np.uint8], offsets: NDArray[np.int64], hashes: NDArray[np.uint64]) -> None:
    """Write the 32-bit hash of each text: the upper half of FNV-1a times a constant."""
    for i in range(hashes.size):
        value = _SEED
        for at in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
            value = (value ^ np.uint64(data[at])) * _PRIME
        hashes[i] = (value * _SPREAD) >> _HALF


@compiled
def refill(old: NDArray[np.uint64], slots: NDArray[np.uint64]) -> None:
    """Insert the entries of a table's slots into a larger array of free slots."""
    mask = np.uint64(slots.size - 1)
    for slot in old:
        if slot:
            at = (slot >> _HALF) & mask
            while slots[at]:
                at = (at + _ONE) & mask
            slots[at] = slot


@compiled
def _fetch(
    hashes: NDArray[np.uint64],
    known_data: NDArray[np.uint8],
    known_ends: NDArray[np.int64],
    slots: NDArray[np.uint64],
    seen: NDArray[np.uint32],
) -> None:
    """Read the memory that `look_up` reads for some texts, so that the cache misses overlap.

    Writing the values to `seen` keeps the compiler from removing the reads.
    """
    mask = np.uint64(slots.size - 1)
    for i in range(seen.size):
        seen[i] = slots[hashes[i] & mask] & _LOW
    for i in range(seen.size):
        if seen[i]:
            seen[i] = known_ends[seen[i] - 1]
    for i in range(seen.size):
        seen[i] = known_data[seen[i]]


@compiled
def _is_at(
    known_data: NDArray[np.uint8], known_ends: NDArray[np.int64], code: np.uint64, text: NDArray[np.uint8]
) -> bool:
    """Return whether the text with this code is `text`."""
    begin = np.uint64(known_ends[code])
    if np.uint64(known_ends[code + _ONE]) - begin != np.uint64(text.size):
        return False
    byte, size = np.uint64(0), np.uint64(text.size)
    while byte < size and known_data[begin + byte] == text[byte]:
        byte += _ONE
    return bool(byte == size)


@compiled
def look_up(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    known_data: NDArray[np.uint8],
    known_ends: NDArray[np.int64],
    slots: NDArray[np.uint64],
    count: int,
    codes: NDArray[np.uint32],
) -> int:
    """Write each text's code, insert the texts that are new, and return the new number of texts.

    Args:
        data: The texts' bytes.
        offsets: [texts + 1], where each begins in `data`.
        hashes: [texts].
        known_data: Bytes of the texts in the table, with capacity for all new ones.
        known_ends: [texts in the table + 1], where each begins and the last ends, with capacity.
        slots: The hash table, with capacity.
        count: Texts in the table.
        codes: [texts], written.
    """
    mask = np.uint64(slots.size - 1)
    known = np.uint64(count)
    for i in range(codes.size):
        if i % _BATCH == 0:
            last = min(i + _BATCH, codes.size)
            _fetch(hashes[i:last], known_data, known_ends, slots, codes[i:last])
        text = data[offsets[i] : offsets[i + 1]]
        at = hashes[i] & mask
        while slots[at]:
            code = (slots[at] & _LOW) - _ONE
            if slots[at] >> _HALF == hashes[i] and _is_at(known_data, known_ends, code, text):
                codes[i] = code
                break
            at = (at + _ONE) & mask
        else:
            slots[at] = hashes[i] << _HALF | (known + _ONE)
            codes[i] = known
            begin = known_ends[known]
            known += _ONE
            known_ends[known] = begin + text.size
            for byte in range(text.size):
                known_data[begin + byte] = text[byte]
    return int(known)
