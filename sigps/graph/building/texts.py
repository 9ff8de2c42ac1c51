"""Texts as bytes end to end, in the layout of Arrow, and tables that number the distinct ones.

An array of str takes 4 bytes for each letter of its longest element, and each edge has two ids: string ids in such
arrays would take most of a load's memory. Here a text is replaced by a 32-bit number as soon as it is read.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HashedTexts", "ListedTexts", "TextTable", "Texts"]


@dataclass(frozen=True)
class Texts:
    """Some texts; `np.asarray` returns them as an array of str.

    Attributes:
        data: Their bytes, UTF-8.
        offsets: [size + 1], int64: where each begins in `data`, and where the last one ends.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of_arrow(cls, values: Any) -> Texts:
        """Return the texts of an Arrow string array, none missing; the bytes are not copied."""
        import pyarrow

        _, offsets, data = values.buffers()
        kind = np.int64 if pyarrow.types.is_large_string(values.type) else np.int32
        own = slice(values.offset, values.offset + len(values) + 1)
        starts = np.frombuffer(offsets, kind)[own] if len(values) else np.zeros(1, kind)
        return cls(np.frombuffer(data or b"", np.uint8), starts.astype(np.int64))

    @classmethod
    def of_bytes(cls, texts: list[bytes]) -> Texts:
        ends = itertools.accumulate(map(len, texts), initial=0)
        return cls(np.frombuffer(b"".join(texts), np.uint8), np.fromiter(ends, np.int64, len(texts) + 1))

    @property
    def size(self) -> int:
        return self.offsets.size - 1

    def as_bytes(self) -> list[bytes]:
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        data = self.data[first:last].tobytes()
        return [data[a:b] for a, b in itertools.pairwise((self.offsets - first).tolist())]

    def width(self) -> int:
        """Return the letters of the longest text; 1 if all are empty, as NumPy counts."""
        begins = (self.data[self.offsets[0] : self.offsets[-1]] & 0xC0) != 0x80
        before = np.concatenate([[0], np.cumsum(begins)])[self.offsets - self.offsets[0]]
        return max(1, int(np.diff(before).max(initial=0)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.str_]:
        parts = [
            Texts(self.data, self.offsets[start : start + _BLOCK + 1])
            for start in range(0, self.size, _BLOCK)
        ]
        strings = np.empty(self.size, f"<U{max((part.width() for part in parts), default=1)}")
        for place, part in enumerate(parts):
            decoded = [text.decode() for text in part.as_bytes()]
            strings[place * _BLOCK : place * _BLOCK + part.size] = decoded
        return strings if dtype is None else strings.astype(dtype)


_BLOCK = 1 << 16
_MIN_HASHED_TEXTS = 1 << 17  # below, a dict; set when kernels took 0.5 s to load, 0.03 now


class TextTable:
    """Numbers distinct texts 0, 1, ... in the order of their first occurrence."""

    def __init__(self) -> None:
        self._table: ListedTexts | HashedTexts = ListedTexts()
        self._num_given = 0

    def codes(self, texts: Texts) -> NDArray[np.uint32]:
        """Return the number of each text; new texts get the next numbers."""
        self._num_given += texts.size
        if self._num_given >= _MIN_HASHED_TEXTS and isinstance(self._table, ListedTexts):
            texts_so_far = self._table.distinct()
            self._table = HashedTexts()
            self._table.codes(texts_so_far)  # these get the same numbers 0, 1, ... again
        return self._table.codes(texts)

    def distinct(self) -> Texts:
        """Return the distinct texts, by number, and free the table; `codes` must not be called after that."""
        return self._table.distinct()


class ListedTexts:
    """A dict as table; the reference for tests of `HashedTexts`."""

    def __init__(self) -> None:
        self._codes: dict[bytes, int] = {}

    def codes(self, texts: Texts) -> NDArray[np.uint32]:
        known = self._codes
        found = (known.setdefault(text, len(known)) for text in texts.as_bytes())
        return np.fromiter(found, np.uint32, texts.size)

    def distinct(self) -> Texts:
        return Texts.of_bytes(list(self._codes))


class HashedTexts:
    """A compiled hash table, with the distinct texts' bytes end to end."""

    def __init__(self) -> None:
        self._count = 0
        self._data = np.empty(0, np.uint8)
        self._ends = np.zeros(1, np.int64)
        self._slots = np.zeros(1 << 10, np.uint64)

    def codes(self, texts: Texts) -> NDArray[np.uint32]:
        from sigps.graph.building import text_kernel

        num_bytes = int(texts.offsets[-1] - texts.offsets[0])
        self._make_room(self._count + texts.size, int(self._ends[self._count]) + num_bytes + 1)
        hashes = np.empty(texts.size, np.uint64)
        codes = np.empty(texts.size, np.uint32)
        text_kernel.hash_texts(texts.data, texts.offsets, hashes)
        known = (self._data, self._ends, self._slots, self._count)
        self._count = text_kernel.look_up(texts.data, texts.offsets, hashes, *known, codes)
        return codes

    def distinct(self) -> Texts:
        self._slots = np.zeros(0, np.uint64)
        return Texts(self._data[: self._ends[self._count]], self._ends[: self._count + 1])

    def _make_room(self, count: int, num_bytes: int) -> None:
        from sigps.graph.building.text_kernel import refill

        for array, size in ((self._data, num_bytes), (self._ends, count + 1)):
            if array.size < size:
                array.resize(max(size, array.size + array.size // 4), refcheck=False)
        if self._slots.size < 2 * count:
            old, self._slots = self._slots, np.zeros(1 << (2 * count - 1).bit_length(), np.uint64)
            refill(old, self._slots)
