"""The distinct ids of edges and vertices, and the gid of each: the g-th smallest id is gid g.

Integer ids within a range not much larger than the number of edges are marked in a bitmap, which costs
no sort. Other integers and strings are sorted: each chunk is turned into codes of its own distinct ids,
and only those are merged, spread over the ranks and looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.ids import Ids, split_by_rank
from sigps.graph.rows import EdgeChunk
from sigps.group import Group

__all__ = ["Numbering", "number_dense", "number_given", "number_sorted"]

Bounds = NDArray[np.int64]


@dataclass
class Numbering:
    """Which gid each id gets.

    Attributes:
        num_vertices: Distinct ids over all ranks.
        gids_of: Returns the i-th chunk's ends as gids; the chunk must be unchanged until then.
        ids_for: Returns the finished map for given row bounds. Collective.
    """

    num_vertices: int
    gids_of: Callable[[int, EdgeChunk], tuple[NDArray[Any], NDArray[Any]]]
    ids_for: Callable[[Bounds], Ids]


def number_given(num_vertices: int, base: int = 0) -> Numbering:
    """Number consecutive ids that begin at `base`: nothing is looked up."""

    def gids_of(_: int, chunk: EdgeChunk) -> tuple[NDArray[Any], NDArray[Any]]:
        if base == 0:
            return chunk.sources, chunk.targets
        return chunk.sources - chunk.sources.dtype.type(base), chunk.targets - chunk.targets.dtype.type(base)

    return Numbering(num_vertices, gids_of, lambda _: Ids.range(base, num_vertices))


def number_dense(
    chunks: list[EdgeChunk], vertices: NDArray[Any] | None, low: int, high: int, group: Group
) -> Numbering:
    """Number integer ids within low..high by a bitmap of that range, on every rank. Collective."""
    present = np.zeros(high - low + 1, dtype=np.bool_)
    for ends in [vertices, *(ends for chunk in chunks for ends in (chunk.sources, chunk.targets))]:
        if ends is not None and ends.size:
            present[ends - ends.dtype.type(low) if low else ends] = True
    present = _union(present, group)
    num_vertices = int(np.count_nonzero(present))
    if num_vertices == present.size:
        return number_given(num_vertices, low)
    lookup: NDArray[Any] = np.cumsum(present, dtype=np.uint32 if num_vertices < 2**32 else np.int64)
    np.subtract(lookup, 1, out=lookup)
    table = np.flatnonzero(present) + low
    del present

    def gids_of(_: int, chunk: EdgeChunk) -> tuple[NDArray[Any], NDArray[Any]]:
        ends = (chunk.sources, chunk.targets)
        sources, targets = (lookup[end - end.dtype.type(low) if low else end] for end in ends)
        return sources, targets

    def ids_for(bounds: Bounds) -> Ids:
        mine = table if group.size == 1 else table[bounds[group.rank] : bounds[group.rank + 1]].copy()
        return Ids.of(mine, group=group, row_bounds=bounds)

    return Numbering(num_vertices, gids_of, ids_for)


def number_sorted(chunks: list[EdgeChunk], vertices: NDArray[Any] | None, group: Group) -> Numbering:
    """Number any ids by a sort over all ranks. Replaces the chunks' ends by codes. Collective."""
    tables = [_encode(chunk) for chunk in chunks]
    everything = tables if vertices is None else [*tables, vertices]
    local = np.unique(np.concatenate(everything)) if everything else np.empty(0, dtype=np.int64)
    table = _distributed_sort(local, group)
    counts = group.all_gather(int(table.size))
    bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    num_vertices = int(bounds[-1])
    gids = Ids.of(table, group=group, row_bounds=bounds).to_gids(local)
    gids = gids.astype(np.uint32) if num_vertices < 2**32 else gids

    def gids_of(index: int, chunk: EdgeChunk) -> tuple[NDArray[Any], NDArray[Any]]:
        own = gids[np.searchsorted(local, tables[index])]
        return own[chunk.sources], own[chunk.targets]

    def ids_for(row_bounds: Bounds) -> Ids:
        return Ids.of(_respread(table, bounds, row_bounds, group), group=group, row_bounds=row_bounds)

    return Numbering(num_vertices, gids_of, ids_for)


def _encode(chunk: EdgeChunk) -> NDArray[Any]:
    """Replace a chunk's ends by positions in its distinct ids; return those, sorted."""
    table, codes = np.unique(np.concatenate([chunk.sources, chunk.targets]), return_inverse=True)
    codes = codes.astype(np.uint32)
    size = chunk.sources.size
    chunk.sources, chunk.targets = codes[:size].copy(), codes[size:].copy()
    return table


def _union(present: NDArray[np.bool_], group: Group) -> NDArray[np.bool_]:
    """Return which ids any rank has: each rank unites one slice, as packed bits."""
    if group.size == 1:
        return present
    bits = np.packbits(present)
    slices = np.array_split(bits, group.size)
    arrived = group.all_to_all(slices)
    united = np.bitwise_or.reduce(np.stack(arrived), axis=0)
    bits = np.concatenate(group.all_gather_array(united))
    return np.unpackbits(bits, count=present.size).view(np.bool_)


def _distributed_sort(local: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return this rank's range of all ranks' distinct values. `local` is sorted and distinct. Collective."""
    if group.size == 1:
        return local
    sample = local[np.linspace(0, local.size - 1, num=min(local.size, 64), dtype=np.int64)]
    samples = np.sort(np.concatenate(group.all_gather_array(sample)))
    splitters = samples[np.arange(1, group.size) * samples.size // group.size] if samples.size else samples
    cuts = [0, *np.searchsorted(local, splitters).tolist(), local.size]
    cuts += [local.size] * (group.size + 1 - len(cuts))
    parts = [local[cuts[rank] : cuts[rank + 1]] for rank in range(group.size)]
    return np.unique(np.concatenate(group.all_to_all(parts)))


def _respread(table: NDArray[Any], old: Bounds, new: Bounds, group: Group) -> NDArray[Any]:
    """Move slices of the sorted table from ranks that hold `old` ranges to ranks that hold `new` ones."""
    if group.size == 1:
        return table
    gids = np.arange(old[group.rank], old[group.rank + 1])
    _, parts = split_by_rank(np.searchsorted(new, gids, side="right") - 1, group.size)
    return np.concatenate(group.all_to_all([table[part] for part in parts]))
