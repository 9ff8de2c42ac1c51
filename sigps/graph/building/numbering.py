"""The distinct ids of edges and vertices, and the gid of each: the g-th smallest id is gid g.

If integer ids are within a range not much larger than the number of edges, they are marked in an array over that
range, without a sort. Other integers, and strings, are sorted: the keys of each segment of edges hold positions in
a table of its distinct ids, and only these tables are merged, distributed over the ranks and looked up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeBuffer
from sigps.graph.building.texts import TextTable
from sigps.graph.ids import Ids
from sigps.group import Group

__all__ = ["Numbering", "Segment", "Share", "encode", "is_dense", "number", "translated"]

Bounds = NDArray[np.int64]
Ends = NDArray[Any]


@dataclass
class Segment:
    """Edges start..stop-1 of a share: their keys hold ids (`table` None) or positions in `table`."""

    start: int
    stop: int
    table: NDArray[Any] | None


@dataclass
class Share:
    """One rank's edges before they are sent to their rows, and ids that are vertices without regard to edges.

    Attributes:
        edges: Keys of ids that fit in uint32, or of positions in a segment's table.
        segments: What the keys hold, in order, without gaps.
        named: Ids of vertices, int64 or str.
        texts: The distinct ids of edges between texts, until `sort_texts`.
        text_segments: The segments whose keys hold numbers of `texts`, until `sort_texts`.
    """

    edges: EdgeBuffer = field(default_factory=EdgeBuffer)
    segments: list[Segment] = field(default_factory=list)
    named: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    texts: TextTable = field(default_factory=TextTable)
    text_segments: list[Segment] = field(default_factory=list)

    def sort_texts(self) -> None:
        """Replace the numbers of texts by positions in one sorted table; called after the last edge."""
        if not self.text_segments:
            return
        strings = np.asarray(self.texts.distinct())
        self.texts = TextTable()
        order = np.argsort(strings)
        table = strings[order]
        positions = np.empty(order.size, dtype=np.uint32)
        positions[order] = np.arange(order.size, dtype=np.uint32)
        for segment in self.text_segments:
            segment.table = table
            for start in range(segment.start, segment.stop, _BLOCK_EDGES):
                pairs = self.edges.pairs[start : min(start + _BLOCK_EDGES, segment.stop)]
                pairs[:] = positions[pairs]


@dataclass
class Numbering:
    """The map from ids to gids, before the rows of the ranks are known.

    Attributes:
        num_vertices: Distinct ids over all ranks.
        to_gids: Returns the gids of ids that occur on this rank; None if each id is its own gid.
        ids_for: Returns the finished map for given row bounds. Collective.
    """

    num_vertices: int
    to_gids: Callable[[NDArray[Any]], NDArray[Any]] | None
    ids_for: Callable[[Bounds], Ids]


def encode(sources: NDArray[Any], targets: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Return keys that hold the ends' positions in a table of their distinct ids, and that table."""
    table, codes = _distinct(np.concatenate([sources, targets]))
    keys: NDArray[np.uint64] = codes[: sources.size].astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= codes[sources.size :].astype(np.uint64)
    return keys, table


def translated(
    share: Share, numbering: Numbering, *, backwards: bool = False
) -> Iterator[tuple[slice, Ends, Ends]]:
    """Yield blocks of edges: the slice of the share, and the gids of sources and targets.

    Between blocks, the caller may shrink the share to the edges that are not yet yielded.
    """
    for segment in reversed(share.segments) if backwards else share.segments:
        table = segment.table
        gids = None if table is None or numbering.to_gids is None else numbering.to_gids(table)
        starts = range(segment.start, segment.stop, _BLOCK_EDGES)
        for start in reversed(starts) if backwards else starts:
            block = slice(start, min(start + _BLOCK_EDGES, segment.stop))
            pairs = share.edges.pairs[block]
            sources, targets = pairs[:, 1].copy(), pairs[:, 0].copy()
            del pairs
            if table is not None:
                values = table if gids is None else gids
                sources, targets = values[sources], values[targets]
            elif numbering.to_gids is not None:
                sources, targets = numbering.to_gids(sources), numbering.to_gids(targets)
            yield block, sources, targets


def number(share: Share, num_vertices: int | None, group: Group) -> Numbering:
    """Number the ids of all ranks, by a method that their kind and range determine. Collective.

    Keys of the share may be changed to positions in tables. The ids are 0..num_vertices - 1; if `num_vertices` is
    None, those that occur.
    """
    tables = [segment.table for segment in share.segments if segment.table is not None]
    tables += [share.named] if share.named.size else []
    has_strings = any(table.dtype.kind == "U" for table in tables)
    has_integers = any(table.dtype.kind != "U" for table in tables) or any(
        segment.table is None and segment.stop > segment.start for segment in share.segments
    )
    kinds = group.all_gather([has_strings, has_integers])
    if any(strings for strings, _ in kinds):
        if any(integers for _, integers in kinds):
            raise GraphError("some ids are strings and some are integers; give all of them as strings")
        if num_vertices is not None:
            raise GraphError("ids='identity' needs integer ids, but the edges have strings")
        width = max((table.dtype.itemsize // 4 for table in tables), default=1)
        width = int(group.all_reduce(np.array([width]), "max")[0])
        return _number_sorted(share, np.dtype(f"<U{width}"), group)
    low, high = _range(share, tables, group)
    num_ends = int(group.all_reduce(np.array([2 * share.edges.size + share.named.size]), "sum")[0])
    if num_vertices is not None:
        if num_ends and not (low >= 0 and high < num_vertices):
            raise GraphError(f"ids {low}..{high} lie outside 0..{num_vertices - 1}, as ids='identity' needs")
        return _number_consecutive(0, num_vertices)
    if not num_ends:
        return _number_consecutive(0, 0)
    if is_dense(high - low + 1, num_ends):
        return _number_dense(share, low, high, group)
    return _number_sorted(share, np.dtype(np.int64), group)


def is_dense(span: int, num_ends: int) -> bool:
    """Return whether integer ids are numbered by an array over their range.

    Args:
        span: The greatest id less the least, plus one.
        num_ends: Ends of edges, and ids that are vertices without regard to edges.
    """
    return span <= max(_ALWAYS_DENSE, num_ends // 2)


_BLOCK_EDGES = 1 << 18
_CODED_EDGES = 1 << 20  # edges of a segment, which share a table of ids
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_ALWAYS_DENSE = 1 << 20  # a range of ids up to which an array over the range is always used, 1 byte an id


def _range(share: Share, tables: list[NDArray[Any]], group: Group) -> tuple[int, int]:
    """Return the least and the greatest id of all ranks."""
    low, high = 2**63 - 1, -(2**63)
    for table in tables:
        low, high = min(low, int(table.min())), max(high, int(table.max()))
    for segment in share.segments:
        for start in range(segment.start, segment.stop, _BLOCK_EDGES) if segment.table is None else ():
            block = share.edges.pairs[start : min(start + _BLOCK_EDGES, segment.stop)]
            low, high = min(low, int(block.min())), max(high, int(block.max()))
    low = int(group.all_reduce(np.array([low]), "min")[0])
    return low, int(group.all_reduce(np.array([high]), "max")[0])


def _number_consecutive(base: int, num_vertices: int) -> Numbering:
    return Numbering(
        num_vertices,
        (lambda oids: _relative_to(base, oids)) if base else None,
        lambda _: Ids.range(base, num_vertices),
    )


def _relative_to(base: int, ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids - base, none of which is negative; uint32 stays uint32 if base is not negative."""
    if base == 0:
        return ids
    signed = ids.dtype != np.uint32 or base < 0
    counted: NDArray[Any] = ids.astype(np.int64) - base if signed else ids - np.uint32(base)
    return counted


def _number_dense(share: Share, low: int, high: int, group: Group) -> Numbering:
    """Number ids within low..high by an array over that range, which every rank holds. Collective."""
    present = np.zeros(high - low + 1, dtype=np.bool_)
    present[_relative_to(low, share.named)] = True
    for segment in share.segments:
        if segment.table is not None:
            present[_relative_to(low, segment.table)] = True
            continue
        for start in range(segment.start, segment.stop, _BLOCK_EDGES):
            block = share.edges.pairs[start : min(start + _BLOCK_EDGES, segment.stop)].ravel()
            present[_relative_to(low, block)] = True
    present = _union(present, group)
    num_vertices = int(np.count_nonzero(present))
    if num_vertices == present.size:
        return _number_consecutive(low, num_vertices)
    lookup: NDArray[Any] = np.cumsum(present, dtype=np.uint32 if num_vertices < 2**32 else np.int64)
    np.subtract(lookup, 1, out=lookup)
    table = np.flatnonzero(present) + low
    del present

    def to_gids(oids: NDArray[Any]) -> NDArray[Any]:
        gids: NDArray[Any] = lookup[_relative_to(low, oids)]
        return gids

    def ids_for(bounds: Bounds) -> Ids:
        mine = table if group.size == 1 else table[bounds[group.rank] : bounds[group.rank + 1]].copy()
        return Ids.of(mine, group=group, row_bounds=bounds)

    return Numbering(num_vertices, to_gids, ids_for)


def _number_sorted(share: Share, dtype: np.dtype[Any], group: Group) -> Numbering:
    """Number any ids by a sort over all ranks. The share's keys become positions in tables. Collective."""
    _encode_all(share)
    tables = (segment.table for segment in share.segments if segment.table is not None)
    local = _merged(itertools.chain(tables, [share.named] if share.named.size else []), dtype)
    table = _distributed_sort(local, group)
    bounds = np.cumsum([0, *group.all_gather(int(table.size))], dtype=np.int64)
    num_vertices = int(bounds[-1])
    gids: NDArray[Any] = (
        np.arange(num_vertices)
        if group.size == 1  # then `local` is the whole table
        else Ids.of(table, group=group, row_bounds=bounds).to_gids(local)
    )
    if num_vertices < 2**32:
        gids = gids.astype(np.uint32)

    def to_gids(oids: NDArray[Any]) -> NDArray[Any]:
        found: NDArray[Any] = gids if oids is local else gids[np.searchsorted(local, oids)]
        return found

    def ids_for(row_bounds: Bounds) -> Ids:
        return Ids.of(_redistribute(table, bounds, row_bounds, group), group=group, row_bounds=row_bounds)

    return Numbering(num_vertices, to_gids, ids_for)


def _encode_all(share: Share) -> None:
    """Give every segment a table; a segment of ids is divided into segments of _CODED_EDGES."""
    segments = []
    for segment in share.segments:
        if segment.table is not None:
            segments.append(segment)
            continue
        for start in range(segment.start, segment.stop, _CODED_EDGES):
            stop = min(start + _CODED_EDGES, segment.stop)
            pairs = share.edges.pairs[start:stop]
            keys, table = encode(pairs[:, 1], pairs[:, 0])
            share.edges.keys[start:stop] = keys
            segments.append(Segment(start, stop, table))
    share.segments = segments


def _merged(tables: Iterable[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the sorted distinct ids of some tables, in merges that each at least double what is merged."""
    merged = np.empty(0, dtype=dtype)
    waiting: list[NDArray[Any]] = []
    for table in tables:
        waiting.append(table.astype(dtype, copy=False))
        if sum(part.size for part in waiting) > max(merged.size, _CODED_EDGES):
            merged, waiting = _sorted_distinct([merged, *waiting]), []
    return _sorted_distinct([merged, *waiting])


def _sorted_distinct(tables: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the sorted distinct ids of some tables, without a copy if there is one that is sorted and distinct."""
    tables = [table for table in tables if table.size] or tables[:1]
    if len(tables) == 1 and bool((tables[0][1:] > tables[0][:-1]).all()):
        return tables[0]
    ids = np.concatenate(tables)
    if ids.dtype.kind == "U":
        return np.sort(_distinct(ids)[0])
    ids.sort()
    return ids[np.concatenate([[True], ids[1:] != ids[:-1]])] if ids.size else ids


def _distinct(ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct ids, in any order, and each id's position in them.

    Strings are compared by a 64-bit hash, which sorts many times faster; if two have the same, they are sorted.
    """
    if ids.dtype.kind != "U":
        return np.unique(ids, return_inverse=True)
    letters = np.ascontiguousarray(ids).view(np.uint32).reshape(-1, ids.dtype.itemsize // 4)
    hashes = np.zeros(ids.size, dtype=np.uint64)
    for column in letters.T:
        hashes ^= column
        hashes *= _HASH_FACTOR
        hashes ^= hashes >> np.uint64(29)
    values, codes = np.unique(hashes, return_inverse=True)
    position = np.empty(values.size, dtype=np.int64)  # of one of the ids with each hash
    position[codes] = np.arange(ids.size)
    table = ids[position]
    if np.array_equal(table[codes], ids):
        return table, codes
    return np.unique(ids, return_inverse=True)


def _union(present: NDArray[np.bool_], group: Group) -> NDArray[np.bool_]:
    """Return which ids any rank has; each rank combines one slice, as packed bits. Collective."""
    if group.size == 1:
        return present
    slices = np.array_split(np.packbits(present), group.size)
    united = np.bitwise_or.reduce(np.stack(group.all_to_all(slices)), axis=0)
    bits = np.concatenate(group.all_gather_array(united))
    return np.unpackbits(bits, count=present.size).view(np.bool_)


def _distributed_sort(local: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return this rank's range of the distinct values of all ranks. Collective; `local` is sorted and distinct."""
    if group.size == 1:
        return local
    sample = local[np.linspace(0, local.size - 1, num=min(local.size, _SAMPLES), dtype=np.int64)]
    samples = np.sort(np.concatenate(group.all_gather_array(sample)))
    splitters = samples[np.arange(1, group.size) * samples.size // group.size] if samples.size else samples
    cuts = [0, *np.searchsorted(local, splitters).tolist(), local.size]
    cuts += [local.size] * (group.size + 1 - len(cuts))
    parts = [local[cuts[rank] : cuts[rank + 1]] for rank in range(group.size)]
    return np.unique(np.concatenate(group.all_to_all(parts)))


_SAMPLES = 256


def _redistribute(table: NDArray[Any], old: Bounds, new: Bounds, group: Group) -> NDArray[Any]:
    """Return this rank's `new` range of a sorted table of which each rank holds its `old` range. Collective."""
    if group.size == 1:
        return table
    first, stop = int(old[group.rank]), int(old[group.rank + 1])
    cuts = (np.clip(new, first, stop) - first).tolist()
    parts = [table[cuts[rank] : cuts[rank + 1]] for rank in range(group.size)]
    return np.concatenate(group.all_to_all(parts))
