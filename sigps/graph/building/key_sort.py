"""Keys of edges to CSR rows, by all cores: into buckets of rows, then each bucket sorted and unpacked by itself.

Keys are taken from the end of their array, which shrinks, and a bucket is about as large as a core's second cache. The
reference is `rows._sort_in_place`, which sorts all at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.building.edges import EdgeBuffer, KeyForm
from sigps.native.kernel import compiled

__all__ = ["drop_loops", "pack_ids", "rows_by_buckets"]

_KEYS_OF_BUCKET = 1 << 15
_MOST_BUCKETS = 1 << 11  # a thread writes to all of them in turn: more would not stay in its tables of pages
_KEYS_AT_ONCE = 1 << 20  # of a thread, between two shrinkings
_BUCKETS_AT_ONCE = 16


def rows_by_buckets(
    edges: EdgeBuffer, form: KeyForm, *, symmetric: bool, drops: bool, num_threads: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], int, int]:
    """Sort edges without columns into rows. Frees the buffer; O(edges log(edges of a row)), 8 bytes a stored edge.

    Args:
        edges: Keys of `form`, whose targets have 32 bits.
        form: The encoding of the keys.
        symmetric: Store each edge in both its ends' rows, a self-loop once.
        drops: Whether to keep one of equal edges.
        num_threads: Threads that work.

    Returns:
        Offsets, targets, how many edges are equal to the one before them, and how many of those are self-loops.
    """
    row_bits = max(form.num_rows - 1, 1).bit_length()
    wanted = min(_MOST_BUCKETS, max(1, edges.size * (1 + symmetric) // _KEYS_OF_BUCKET))
    bucket_shift = max(0, row_bits - wanted.bit_length() + 1)  # of a row
    num_buckets = ((form.num_rows - 1) >> bucket_shift) + 1
    with ThreadPoolExecutor(num_threads) as pool:
        keys, begins = _in_buckets(edges, symmetric, bucket_shift, num_buckets, pool, num_threads)
        degrees = np.zeros(form.num_rows + 1, dtype=np.int64)
        counts = np.zeros((num_buckets, 3), dtype=np.int64)

        def finish(first: int) -> None:
            for bucket in range(first, min(first + _BUCKETS_AT_ONCE, num_buckets)):
                begin, end = int(begins[bucket]), int(begins[bucket + 1])
                if begin < end:
                    own = keys[begin:end]
                    own.sort()
                    front = own.view(np.uint32)
                    _unpack_keys(own, np.uint64(form.first_row), drops, degrees, front, counts[bucket])

        list(pool.map(finish, range(0, num_buckets, _BUCKETS_AT_ONCE)))
    packed, size = keys.view(np.uint32), 0
    for begin, kept in zip((2 * begins[:-1]).tolist(), counts[:, 0].tolist(), strict=True):
        packed[size : size + kept] = packed[begin : begin + kept]
        size += kept
    del packed
    keys.resize(-(-size // 2), refcheck=False)  # shrinks in place
    offsets = np.cumsum(degrees, out=degrees).view(np.uint64)
    repeats, loop_repeats = counts[:, 1:].sum(axis=0).tolist()
    return offsets, keys.view(np.uint32)[:size], repeats, loop_repeats


def _in_buckets(
    edges: EdgeBuffer,
    symmetric: bool,
    bucket_shift: int,
    num_buckets: int,
    pool: ThreadPoolExecutor,
    num_threads: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the keys by bucket, each once or twice, and where buckets begin, [buckets + 1]; empties the buffer."""
    shift = np.uint64(32 + bucket_shift)

    def count(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        found = np.zeros(num_buckets, dtype=np.int64)
        _count_buckets(keys, shift, symmetric, found)
        return found

    begins = np.zeros(num_buckets + 1, dtype=np.int64)
    np.cumsum(np.sum(list(pool.map(count, np.array_split(edges.keys, num_threads))), axis=0), out=begins[1:])
    moved = np.empty(int(begins[-1]), dtype=np.uint64)
    at = begins[:-1].copy()
    while edges.size:
        start = max(0, edges.size - _KEYS_AT_ONCE * num_threads)
        pieces = np.array_split(edges.keys[start:], num_threads)
        sizes = np.array(list(pool.map(count, pieces)))
        places = list(at + np.cumsum(sizes, axis=0) - sizes)  # of each thread in each bucket
        at += sizes.sum(axis=0)
        list(pool.map(lambda keys, own: _move_to_buckets(keys, shift, symmetric, own, moved), pieces, places))
        del pieces
        edges.shrink(start)
    return moved, begins


@compiled
def _count_buckets(
    keys: NDArray[np.uint64], shift: np.uint64, symmetric: bool, counts: NDArray[np.int64]
) -> None:
    """Add to counts, [buckets], the keys that go to each: those of sources, if symmetric also of targets."""
    of_target = shift - np.uint64(32)
    for key in keys:
        counts[key >> shift] += 1
        target = key & np.uint64(0xFFFFFFFF)
        if symmetric and key >> np.uint64(32) != target:
            counts[target >> of_target] += 1


@compiled
def _move_to_buckets(
    keys: NDArray[np.uint64],
    shift: np.uint64,
    symmetric: bool,
    places: NDArray[np.int64],
    moved: NDArray[np.uint64],
) -> None:
    """Write each key, if symmetric its reverse too, to its bucket's next place; `places`, [buckets], go on."""
    of_target = shift - np.uint64(32)
    for key in keys:
        bucket = key >> shift
        place = np.uint64(places[bucket])
        moved[place] = key
        places[bucket] = place + np.uint64(1)
        source, target = key >> np.uint64(32), key & np.uint64(0xFFFFFFFF)
        if symmetric and source != target:
            bucket = target >> of_target
            place = np.uint64(places[bucket])
            moved[place] = (target << np.uint64(32)) | source
            places[bucket] = place + np.uint64(1)


@compiled
def _unpack_keys(
    keys: NDArray[np.uint64],
    first_row: np.uint64,
    drops: bool,
    degrees: NDArray[np.int64],
    targets: NDArray[np.uint32],
    counts: NDArray[np.int64],
) -> None:
    """Write the targets of ascending keys, and count.

    Args:
        keys: [edges], not empty.
        first_row: The gid of row 0.
        drops: Whether to leave out a key that is equal to the one before it.
        degrees: [num_rows + 1]: row r's edges are added to degrees[r + 1].
        targets: Written from its beginning; may be the memory of `keys`, as no target is written after its key.
        counts: [3], written: targets, keys equal to the one before, and self-loops among these.
    """
    size, repeats, loops = np.uint64(0), 0, 0
    last = ~keys[0]
    for key in keys:
        row, target = key >> np.uint64(32), key & np.uint64(0xFFFFFFFF)
        is_repeat = key == last
        if is_repeat:
            repeats += 1
            if target == row + first_row:
                loops += 1
        if not (drops and is_repeat):
            targets[size] = np.uint32(target)
            degrees[row + np.uint64(1)] += 1
            size += np.uint64(1)
        last = key
    counts[0], counts[1], counts[2] = np.int64(size), repeats, loops


@compiled
def pack_ids(sources: NDArray[Any], targets: NDArray[Any], keys: NDArray[np.uint64]) -> bool:
    """Write keys `source << 32 | target`; return whether all ids are 0 .. 2**32 - 1, else keys mean nothing."""
    seen = np.uint64(0)
    for i in range(np.uint64(sources.size)):
        source, target = np.uint64(sources[i]), np.uint64(targets[i])
        seen |= source | target
        keys[i] = (source << np.uint64(32)) | target
    return bool(seen < np.uint64(1 << 32))


@compiled
def drop_loops(keys: NDArray[np.uint64]) -> int:
    """Move the keys that are no self-loops to the front; return how many they are."""
    size = np.uint64(0)
    for key in keys:
        keys[size] = key
        if key >> np.uint64(32) != key & np.uint64(0xFFFFFFFF):
            size += np.uint64(1)
    return int(np.int64(size))
