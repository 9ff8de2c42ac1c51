"""New vertices: their ids join the map of ids, and other vertices are renumbered where these are not above all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.ids import Ids

__all__ = ["joined_ids", "renumbered"]


def joined_ids(graph: GraphArrays, oids: NDArray[Any]) -> tuple[Ids, NDArray[np.int64], Any]:
    """Return the map with ids that may be new, the row bounds, and the new numbers of the vertices so far. Collective.

    The numbers are None where all vertices keep theirs: new ids are above all others, and the last rank has their rows.

    Args:
        graph: The graph.
        oids: The same on all ranks.

    Raises:
        GraphError: If strings are to join integers, or the other way round; and on several ranks, if vertices would
            have to be renumbered.
    """
    ids, group, n = graph.ids, graph.group, graph.num_vertices
    if oids.size and n and (oids.dtype.kind == "U") != (ids.kind == "strings"):
        kind = "strings" if ids.kind == "strings" else "whole numbers"
        raise GraphError(f"inserts: the graph's ids are {kind}, so new ones must be too, not {oids[0]!r}")
    new = np.unique(oids[ids.to_gids(oids) < 0] if n else oids)
    if not new.size:
        return ids, graph.row_bounds, None
    new = new if new.dtype.kind == "U" else new.astype(np.int64)
    bounds = graph.row_bounds.copy()
    bounds[-1] += new.size
    is_in_a_row = new.dtype.kind != "U" and int(new[-1]) - int(new[0]) == new.size - 1
    if is_in_a_row and (not n or (ids.table is None and new[0] == ids.base + n)):
        return Ids.range(ids.base if n else int(new[0]), n + new.size), bounds, None
    last = graph.ids.to_oids([n - 1])[0] if n else None
    if group.size == 1:
        return _joined_alone(ids, new, bounds, is_above=n == 0 or bool(new[0] > last))
    if n and not new[0] > last:
        raise GraphError(
            f"inserts: the new vertex {new[0]!r} is not above the largest id, {last!r}: other vertices would be "
            "renumbered, which is not built for several ranks; build the graph anew"
        )
    table = np.asarray(ids)
    if ids.table is None:
        table = table[graph.first_row : graph.first_row + graph.num_rows]
    own = np.concatenate([table, new]) if group.rank == group.size - 1 and n else table
    own = new if group.rank == group.size - 1 and not n else own.astype(np.result_type(own, new), copy=False)
    return Ids.of(own, group=group, row_bounds=bounds), bounds, None


def _joined_alone(
    ids: Ids, new: NDArray[Any], bounds: NDArray[np.int64], *, is_above: bool
) -> tuple[Ids, NDArray[np.int64], Any]:
    if not ids.num_vertices:
        return _map_of(new), bounds, None
    old = np.asarray(ids)
    table = np.concatenate([old, new])
    if is_above:
        return _map_of(table), bounds, None
    table.sort()
    return _map_of(table), bounds, np.searchsorted(table, old)


def _map_of(table: NDArray[Any]) -> Ids:
    if table.dtype.kind != "U" and int(table[-1]) - int(table[0]) == table.size - 1:
        return Ids.range(int(table[0]), table.size)
    return Ids.of(table)


def renumbered(graph: GraphArrays, ids: Ids, numbers: NDArray[np.int64]) -> GraphArrays:
    """Return the same edges between vertices of other numbers, which ascend as before; the others have none. O(edges).

    Args:
        graph: The graph, in one process.
        ids: The new map.
        numbers: [num_vertices]: the new number of each vertex.
    """
    n = ids.num_vertices
    offsets = np.zeros(n + 1, dtype=np.uint64)
    offsets[numbers + 1] = graph.offsets[1:] - graph.offsets[:-1]
    np.cumsum(offsets, out=offsets)
    return replace(
        graph,
        offsets=offsets,
        targets=numbers.astype(graph.targets.dtype)[graph.targets] if graph.targets.size else graph.targets,
        ids=ids,
        row_bounds=np.array([0, n]),
        by_target=None,
        vertex_columns={name: _spread(c, numbers, n) for name, c in graph.vertex_columns.items()},
    )


def _spread(column: NDArray[Any], numbers: NDArray[np.int64], n: int) -> NDArray[Any]:
    spread = np.zeros((n, *column.shape[1:]), dtype=column.dtype)
    spread[numbers] = column
    return spread
