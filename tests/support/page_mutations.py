"""Packed pages of any content, unpacked beside memory that nobody may touch: `python page_mutations.py SEED COUNT`."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import random
import sys
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.packing.numbers import pack_numbers, unpack_numbers
from sigps.graph.packing.pages import most_page_words, pack_rows, unpack_rows

_kept: list[mmap.mmap] = []


def before_the_end(size: int) -> NDArray[np.uint32]:
    """Return an array, [size], behind which memory cannot be read."""
    length = -(-4 * size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, length + mmap.PAGESIZE)
    _kept.append(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + length), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return np.frombuffer(memory, dtype=np.uint32, count=size, offset=length - 4 * size)


def read_whole_to_the_end() -> None:
    """Read a page whose streams leave one word of it, behind a group of no bits."""
    row = np.cumsum([0] + [1 << 26] * 32 + [1] * 32).astype(np.uint32)
    made = np.empty(most_page_words(1, row.size), dtype=np.uint32)
    degrees, scratch = np.array([row.size], dtype=np.uint32), np.empty_like(row)
    size = int(pack_rows(degrees, row, np.uint64(0), np.empty_like(degrees), scratch, made))
    place = int(made[made[6]])
    assert (place + 8 + 26, made[place] & 0xFFFF) == (size - 1, 26)
    words, room, gaps = before_the_end(size), np.empty(32, np.uint32), np.empty(1024, np.uint32)
    words[:] = made[:size]
    numbers = np.uint64(2**32 - 1), np.uint64(0), np.uint64(1)
    assert unpack_rows(words, *numbers, room, np.empty_like(room), gaps, scratch)
    assert (scratch == row).all()


def main(seed: int, count: int) -> None:
    faulthandler.enable()
    draw = np.random.default_rng(seed)
    rng = random.Random(seed)
    degrees = np.repeat(np.array([1, 0, 3, 2500, 40], dtype=np.uint32), [400, 30, 500, 1, 20])
    lists: list[Any] = [np.sort(draw.geometric(0.0005, d) % 50_000) for d in degrees.tolist()]
    targets = np.concatenate(lists).astype(np.uint32)
    made = np.empty(most_page_words(degrees.size, targets.size), dtype=np.uint32)
    size = int(
        pack_rows(degrees, targets, np.uint64(9), np.empty_like(degrees), np.empty_like(targets), made)
    )
    column = pack_numbers(targets)
    room = -(-degrees.size // 32) * 32
    words, own_degrees, firsts = before_the_end(size), before_the_end(room), before_the_end(room)
    gaps, found = before_the_end(1024), before_the_end(targets.size)
    column_words, numbers = before_the_end(column.size), before_the_end(targets.size)
    scratch = before_the_end(-(-targets.size // 32) * 32)
    read_whole_to_the_end()
    outcomes: Counter[str] = Counter()
    for _ in range(count):
        words[:], column_words[:] = made[:size], column
        for page in (words, column_words):
            for _ in range(rng.choice([1, 1, 3])):
                at = rng.choice([rng.randrange(16), rng.randrange(page.size)])
                page[at] = rng.choice(
                    [rng.getrandbits(32), int(page[at]) ^ 1 << rng.randrange(32), 2**32 - 1, 0]
                )
        is_page = unpack_rows(
            words, np.uint64(50_000), np.uint64(9), np.uint64(degrees.size), own_degrees, firsts, gaps, found
        )
        if is_page:
            assert found.max() < 50_000
            assert own_degrees[: degrees.size].sum() == found.size
        outcomes["read" if is_page else "refused"] += 1
        outcomes["read" if unpack_numbers(column_words, numbers, scratch) else "refused"] += 1
    print(*(f"{outcome} {number}" for outcome, number in outcomes.items()), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
