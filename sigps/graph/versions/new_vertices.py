"""Vertices that come and go: the map of ids, and the numbers of others where these are not above all, or some go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.ids import Ids
from sigps.group import Group

__all__ = ["Numbering", "numbering", "renumbered"]


@dataclass(frozen=True, eq=False)
class Numbering:
    """The vertices after a batch.

    Attributes:
        ids: Their map.
        bounds: [size + 1]: each rank's rows.
        num_new: How many were not there before, or were deleted by the batch and named again.
        numbers: [num_vertices before]: the new number of each vertex, -1 of one that is deleted; None where all keep
            theirs: nothing is deleted, new ids are above all others, and the last rank has their rows.
    """

    ids: Ids
    bounds: NDArray[np.int64]
    num_new: int
    numbers: NDArray[np.int64] | None


def numbering(graph: GraphArrays, oids: NDArray[Any], gone: NDArray[np.int64]) -> Numbering:
    """Return the vertices after those of `gone` were deleted and those of `oids`, where they are none, were added.

    Collective. O(new ids, log vertices each), or O(vertices) where others are renumbered.

    Args:
        graph: The graph.
        oids: The same on all ranks.
        gone: Gids, ascending and distinct; the same on all ranks.

    Raises:
        GraphError: If strings are to join integers, or the other way round.
    """
    ids, group, n = graph.ids, graph.group, graph.num_vertices
    if oids.size and n and (oids.dtype.kind == "U") != (ids.kind == "strings"):
        kind = "strings" if ids.kind == "strings" else "whole numbers"
        raise GraphError(f"inserts: the graph's ids are {kind}, so new ones must be too, not {oids[0]!r}")
    known = ids.to_gids(oids) if n and oids.size else np.full(oids.size, -1)
    is_new = known < 0
    if gone.size:
        is_new |= np.isin(known, gone)
    new = np.unique(oids[is_new]) if is_new.any() else oids[:0]
    if not new.size and not gone.size:
        return Numbering(ids, graph.row_bounds, 0, None)
    new = new if new.dtype.kind == "U" else new.astype(np.int64)
    bounds = graph.row_bounds.copy()
    bounds[-1] += new.size
    is_in_a_row = new.size and new.dtype.kind != "U" and int(new[-1]) - int(new[0]) == new.size - 1
    if not gone.size and is_in_a_row and (not n or (ids.table is None and new[0] == ids.base + n)):
        found = Ids.range(ids.base if n else int(new[0]), n + new.size)
        return Numbering(found, bounds, new.size, None)
    last = ids.to_oids([n - 1])[0] if n else None
    table = np.asarray(ids)
    own = table[graph.first_row : graph.first_row + graph.num_rows] if ids.table is None else table
    dtype = np.result_type(own, new) if n and new.size else own.dtype if n else new.dtype
    if not gone.size and (not n or bool(new[0] > last)):
        own = own if n else new[:0]
        own = np.concatenate([own, new]) if group.rank == group.size - 1 else own
        return Numbering(_map_of(own.astype(dtype, copy=False), group, bounds), bounds, new.size, None)
    before = _places(own, new, group)  # how many vertices so far are below each new one
    owners = np.minimum(np.searchsorted(graph.row_bounds, before, side="right") - 1, group.size - 1)
    edges = graph.row_bounds[1:]
    sizes = np.diff(graph.row_bounds) + np.bincount(owners, minlength=group.size)
    sizes -= np.diff(np.searchsorted(gone, edges, side="left"), prepend=0)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    stays = np.ones(own.size, dtype=np.bool_)
    stays[gone[(gone >= graph.first_row) & (gone < graph.first_row + own.size)] - graph.first_row] = False
    own = np.sort(np.concatenate([own[stays], new[owners == group.rank]]).astype(dtype, copy=False))
    numbers = np.arange(n)
    numbers += np.searchsorted(before, numbers, side="right") - np.searchsorted(gone, numbers)
    numbers[gone] = -1
    return Numbering(_map_of(own, group, bounds), bounds, new.size, numbers)


def _places(own: NDArray[Any], new: NDArray[Any], group: Group) -> NDArray[np.int64]:
    if not new.size:
        return np.empty(0, dtype=np.int64)
    places = np.searchsorted(own, new).astype(np.int64)
    return places if group.size == 1 else group.all_reduce(places, "sum")


def _map_of(table: NDArray[Any], group: Group, bounds: NDArray[np.int64]) -> Ids:
    n = int(bounds[-1])
    if n and table.dtype.kind != "U":
        most = np.iinfo(np.int64).max
        ends = np.array([table[0], ~table[-1]] if table.size else [most, most])  # ~x descends as x ascends
        least, greatest = group.all_reduce(ends, "min").tolist()
        if ~greatest - least == n - 1:
            return Ids.range(least, n)
    return Ids.of(table, group=group, row_bounds=bounds)


def renumbered(graph: GraphArrays, found: Numbering) -> tuple[GraphArrays, int]:
    """Return the edges between the vertices that stay, by their new numbers, which ascend as before.

    O(edges). Returns also how many edges of this rank's rows are gone with vertices.

    Args:
        graph: The graph.
        found: Its vertices afterwards, some of which have other numbers.
    """
    numbers = found.numbers
    assert numbers is not None
    first, rank = graph.first_row, graph.group.rank
    num_rows = int(found.bounds[rank + 1] - found.bounds[rank])
    rows = numbers[first : first + graph.num_rows]
    rows = np.where(rows < 0, -1, rows - found.bounds[rank])
    targets = numbers[graph.targets] if graph.targets.size else np.empty(0, dtype=np.int64)
    lengths = np.diff(graph.offsets).astype(np.int64)
    stays = (targets >= 0) & np.repeat(rows >= 0, lengths)
    columns = graph.columns
    if not stays.all():
        ends = np.concatenate([[0], np.cumsum(stays)])
        at = graph.offsets.astype(np.int64)
        lengths = ends[at[1:]] - ends[at[:-1]]
        targets, columns = targets[stays], {name: column[stays] for name, column in columns.items()}
    offsets = np.zeros(num_rows + 1, dtype=np.uint64)
    offsets[1:][rows[rows >= 0]] = lengths[rows >= 0]
    np.cumsum(offsets, out=offsets)
    of_rows = {name: _spread(c, rows, num_rows) for name, c in graph.vertex_columns.items()}
    newer = replace(
        graph,
        offsets=offsets,
        targets=targets.astype(graph.targets.dtype),
        columns=columns,
        ids=found.ids,
        row_bounds=found.bounds,
        by_target=None,
        vertex_columns=of_rows,
    )
    return newer, int(stays.size - targets.size)


def _spread(column: NDArray[Any], rows: NDArray[np.int64], num_rows: int) -> NDArray[Any]:
    spread = np.zeros((num_rows, *column.shape[1:]), dtype=column.dtype)
    spread[rows[rows >= 0]] = column[rows >= 0]
    return spread
