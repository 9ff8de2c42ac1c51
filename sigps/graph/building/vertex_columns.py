"""Vertex columns: values of vertices, as users or files give them, brought to the ranks that hold the vertices' rows.

A column is an array of one number a vertex, [num_rows], or of one row of numbers, [num_rows, k]. Between ranks a row
of numbers moves as one item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.user_arrays import as_ids, as_numbers, on_host
from sigps.group import Group, own_range, query_owners, split_by_rank, together

__all__ = ["as_vertex_column", "columns_by_id", "moved_to_rows", "user_columns", "values_of"]

Columns = dict[str, NDArray[Any]]


def as_vertex_column(values: Any, name: str) -> NDArray[Any]:
    """Return a vertex column as an array of numbers, [vertices] or [vertices, k].

    Raises:
        GraphError: If it holds no numbers, or has another shape.
    """
    try:
        column = as_numbers(on_host(values, f"vertex column {name!r}"), f"vertex column {name!r}")
        if column.dtype.kind == "O":
            column = np.array(column.tolist())
    except ValueError as error:  # rows of different lengths
        raise GraphError(f"vertex column {name!r} is no array of numbers: {error}") from None
    if column.dtype.kind not in "biuf":
        raise GraphError(f"vertex column {name!r} holds {column.dtype}: a vertex column must be numeric")
    if column.ndim not in (1, 2) or 0 in column.shape[1:]:
        raise GraphError(
            f"vertex column {name!r} has the shape {column.shape}: give one number a vertex, [vertices], or one row of "
            "numbers, [vertices, k]"
        )
    return column


def user_columns(
    graph: GraphArrays, given: Mapping[str, Any], ids: ArrayLike | None, *, local: bool
) -> Columns:
    """Return vertex columns as a user gives them, of this rank's rows: see `Graph.with_vertex_columns`. Collective."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise GraphError(f"vertex columns are given by their names, {{name: values}}, not as {given!r:.60}")
    found: Columns = {}
    for name, values in given.items():
        is_by_id = isinstance(values, Mapping)
        oids, column = together(
            lambda name=name, values=values: _read(graph, name, values, ids, local),  # type: ignore[misc]
            graph.group,
        )
        if oids is None:
            found[name] = column
        else:
            found |= columns_by_id(graph, oids, {name: column}, fills=is_by_id, what="vertex_columns=")
    return found


def columns_by_id(
    graph: GraphArrays, oids: NDArray[Any], columns: Columns, *, fills: bool = False, what: str
) -> Columns:
    """Return columns of this rank's rows from values by ids, of which each rank gives a share. Collective.

    Args:
        graph: The graph whose vertices these are.
        oids: [given], the ids; distinct over all ranks.
        columns: [given] or [given, k] each, in their order.
        fills: Whether vertices that are not named have 0; otherwise every vertex is to be named.
        what: What names the vertices, in errors.

    Raises:
        GraphError: If an id is not in the graph or given twice, or a vertex has no value.
    """
    group = graph.group
    gids = graph.ids.to_gids(oids) if group.size > 1 or oids.size else np.empty(0, np.int64)

    def check_known() -> None:
        if (gids < 0).any():
            raise GraphError(
                f"{what} names {oids[int(np.argmin(gids))].item()!r}, and the graph has no such vertex"
            )

    together(check_known, group)
    owners = np.searchsorted(graph.row_bounds, gids, side="right") - 1
    order, slices = split_by_rank(owners, group.size)
    rows = _routed(gids, order, slices, group) - graph.first_row
    together(lambda: _check_once(graph, rows, what, list(columns), fills=fills), group)
    found = {}
    for name, column in columns.items():
        column = _agreed(column, name, group)
        arrived = _routed(column, order, slices, group)
        found[name] = np.zeros((graph.num_rows, *column.shape[1:]), column.dtype)
        found[name][rows] = arrived
    return found


def moved_to_rows(columns: Columns, old: NDArray[np.int64], new: NDArray[np.int64], group: Group) -> Columns:
    """Return columns of this rank's rows by the bounds `new`, from those of its rows by `old`. Collective."""
    if group.size == 1 or np.array_equal(old, new):
        return columns
    first, stop = int(old[group.rank]), int(old[group.rank + 1])
    cuts = (np.clip(new, first, stop) - first).tolist()
    slices = [slice(cuts[rank], cuts[rank + 1]) for rank in range(group.size)]
    order = np.arange(stop - first)
    return {name: _routed(column, order, slices, group) for name, column in columns.items()}


def values_of(graph: GraphArrays, column: NDArray[Any], gids: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of any vertices by gids, where each rank holds those of its rows. Collective."""
    if graph.group.size == 1:
        return column[gids]
    owners = np.searchsorted(graph.row_bounds, gids, side="right") - 1
    items = _items(column)
    found = query_owners(graph.group, owners, gids, lambda asked: items[asked - graph.first_row])
    return _unpacked(found, column)


def _read(
    graph: GraphArrays, name: str, values: Any, ids: ArrayLike | None, local: bool
) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """Return this rank's share of a column with its ids; without ids where the values are those of its rows."""
    group = graph.group
    oids: NDArray[Any] | None
    if isinstance(values, Mapping):
        oids, column = as_ids(list(values), "the ids"), as_vertex_column(list(values.values()), name)
    else:
        column = as_vertex_column(values, name)
        oids = None if ids is None else as_ids(ids, "vertices").ravel()
    if oids is None:
        if local:
            raise GraphError(
                "local=True: every rank gives other vertices, so say which, by their ids in vertices= or as {id: value}"
            )
        if len(column) != graph.num_vertices:
            raise GraphError(
                f"vertex column {name!r} has {len(column):,} values, and the graph {graph.num_vertices:,} vertices: "
                "give one value a vertex, in ascending order of ids, or values by ids: {id: value}"
            )
        return None, column[graph.first_row : graph.first_row + graph.num_rows]
    if len(column) != oids.size:
        raise GraphError(
            f"vertex column {name!r} has {len(column):,} values, and vertices= has {oids.size:,} ids: give one value "
            "an id, in their order"
        )
    own = range(oids.size) if local else own_range(oids.size, group)
    return oids[own.start : own.stop], column[own.start : own.stop]


def _agreed(column: NDArray[Any], name: str, group: Group) -> NDArray[Any]:
    """Return a rank's share of a column in the type that holds all shares; one without values says nothing of it."""
    shares = group.all_gather((column.dtype.str, column.shape[1:]) if len(column) else None)
    known = [(dtype, tuple(row)) for dtype, row in filter(None, shares)]  # a message has lists, no tuples
    if not known:
        return column
    if len({row for _, row in known}) > 1:
        raise GraphError(f"vertex column {name!r}: the ranks give rows of different lengths")
    kind = np.result_type(*(dtype for dtype, _ in known))
    return column.astype(kind) if len(column) else np.empty((0, *known[0][1]), kind)


def _check_once(
    graph: GraphArrays, rows: NDArray[np.int64], what: str, names: list[str], *, fills: bool
) -> None:
    times = np.bincount(rows, minlength=graph.num_rows)
    if (times > 1).any():
        raise GraphError(f"{what} names the vertex {_own_oid(graph, int(np.argmax(times)))!r} twice")
    if not fills and (times == 0).any():
        raise GraphError(
            f"{what} gives no {', '.join(names) or 'row'} of the vertex {_own_oid(graph, int(np.argmin(times)))!r}: "
            f"every vertex needs {'a value' if names else 'one'}"
        )


def _own_oid(graph: GraphArrays, row: int) -> Any:
    gid, ids = graph.first_row + row, graph.ids
    if ids.table is None:
        return gid + ids.base
    at = gid - ids.first_row  # another rank may have it, of a graph made from one with other rows
    return ids.table[at].item() if 0 <= at < ids.table.size else f"number {gid}"


def _routed(
    values: NDArray[Any], order: NDArray[np.int64], slices: list[slice], group: Group
) -> NDArray[Any]:
    """Send slices of the values in an order to the ranks, and return what arrives."""
    items = _items(values)
    return _unpacked(np.concatenate(group.all_to_all([items[order[own]] for own in slices])), values)


def _items(values: NDArray[Any]) -> NDArray[Any]:
    """Return [n, k] numbers as [n] items of k numbers; [n] numbers as they are."""
    if values.ndim == 1:
        return values
    packed = np.ascontiguousarray(values)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize)))[:, 0]


def _unpacked(items: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    return items if like.ndim == 1 else items.view(like.dtype).reshape(-1, like.shape[1])
