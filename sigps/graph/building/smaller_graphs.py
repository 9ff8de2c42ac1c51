"""Smaller graphs from a graph: some vertices or edges of it, and the graph whose vertices are groups of vertices."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.build import build, each_once, finished
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.rows import Rows, rows_as_chunks
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport
from sigps.graph.user_arrays import as_ids
from sigps.group import Group, together

__all__ = ["contract", "edge_subgraph", "subgraph"]


def subgraph(graph: GraphArrays, ids: ArrayLike) -> GraphArrays:
    """See `Graph.subgraph`."""
    started = time.perf_counter()
    is_kept = _named_by_any_rank(graph, ids)
    own = is_kept[graph.first_row : graph.first_row + graph.num_rows]
    return _part(graph, is_kept, np.repeat(own, _degrees(graph)) & is_kept[graph.targets], started)


def edge_subgraph(graph: GraphArrays, sources: ArrayLike, targets: ArrayLike) -> GraphArrays:
    """See `Graph.edge_subgraph`."""
    started, n = time.perf_counter(), graph.num_vertices
    named = _pairs_of_all_ranks(graph, sources, targets)
    keys = np.unique(named[0] * n + named[1])
    if not graph.directed:
        keys = np.union1d(keys, named[1] * n + named[0])
    rows = np.repeat(np.arange(graph.first_row, graph.first_row + graph.num_rows), _degrees(graph))
    own = rows * n + graph.targets.astype(np.int64)
    at = np.minimum(np.searchsorted(keys, own), max(keys.size - 1, 0))
    is_inside = keys[at] == own if keys.size else np.zeros(own.size, dtype=np.bool_)

    found = np.zeros(keys.size, dtype=np.uint8)
    found[at[is_inside]] = 1
    found = graph.group.all_reduce(found, "max")
    if not found.all():  # the same on all ranks
        missing = graph.ids.to_oids(np.array(divmod(int(keys[np.argmin(found)]), n))).tolist()
        raise GraphError(f"the graph has no edge from {missing[0]!r} to {missing[1]!r}")
    is_kept = np.zeros(n, dtype=np.bool_)
    is_kept[named.ravel()] = True
    return _part(graph, is_kept, is_inside, started)


def _degrees(graph: GraphArrays) -> NDArray[np.int64]:
    found: NDArray[np.int64] = (graph.offsets[1:] - graph.offsets[:-1]).view(np.int64)
    return found


def _part(
    graph: GraphArrays, is_kept: NDArray[np.bool_], is_inside: NDArray[np.bool_], started: float
) -> GraphArrays:
    """Return the graph of some vertices of all, and of some of this rank's edges, which are among them. Collective."""
    group = graph.group
    numbers = np.cumsum(is_kept) - 1
    own = slice(graph.first_row, graph.first_row + graph.num_rows)
    bounds = np.concatenate([[0], numbers + 1])[graph.row_bounds]

    kept_rows = np.flatnonzero(is_kept[own])
    before = np.concatenate([[0], np.cumsum(is_inside)])
    in_row = before[graph.offsets[1:].view(np.int64)] - before[graph.offsets[:-1].view(np.int64)]
    offsets = np.concatenate([[0], np.cumsum(in_row[kept_rows])]).astype(np.uint64)
    targets = numbers[graph.targets[is_inside]]
    targets = targets.astype(np.uint32 if bounds[-1] < 2**32 else np.uint64)
    columns = {name: column[is_inside] for name, column in graph.columns.items()}

    oids = graph.ids.to_oids(kept_rows + graph.first_row)
    sources = np.repeat(np.arange(bounds[group.rank], bounds[group.rank + 1]), in_row[kept_rows])
    repeats = (sources[1:] == sources[:-1]) & (targets[1:] == targets[:-1])
    is_loop = sources == targets
    num_loops, num_loop_repeats = np.count_nonzero(is_loop), np.count_nonzero(repeats & is_loop[1:])
    rows = Rows(offsets, targets, columns, int(np.count_nonzero(repeats)), int(num_loop_repeats))
    given = targets.size if graph.directed else int(np.count_nonzero(sources <= targets))
    counted = given, int(num_loops), started
    made = finished(rows, _ids_of(oids, bounds, group), bounds, graph.directed, group, LoadReport(), counted)
    made.vertex_columns = {name: column[kept_rows] for name, column in graph.vertex_columns.items()}
    return made


def contract(graph: GraphArrays, labels: ArrayLike) -> GraphArrays:
    """See `Graph.contract`."""
    of_all = _labels_of_all(graph, labels)
    names, numbers = np.unique(of_all, return_inverse=True)

    def chunks() -> Any:
        for chunk in rows_as_chunks(graph):
            edges = chunk if graph.directed else each_once(chunk)
            ones = np.ones(edges.targets.size, dtype=np.int64)
            weights = {"weight": edges.columns.get("weight", ones)}
            yield EdgeChunk(names[numbers[edges.sources]], names[numbers[edges.targets]], weights)

    own = of_all[graph.first_row : graph.first_row + graph.num_rows]
    return build(chunks(), directed=graph.directed, group=graph.group, vertices=own, duplicates="sum")


def _named_by_any_rank(graph: GraphArrays, ids: ArrayLike) -> NDArray[np.bool_]:
    """Return of each vertex of the whole graph whether any rank names it. Collective."""
    oids = together(lambda: as_ids(ids, "ids").ravel(), graph.group)
    gids = graph.ids.to_gids(oids) if graph.group.size > 1 or oids.size else np.empty(0, np.int64)

    def marked() -> NDArray[np.uint8]:
        if (gids < 0).any():
            unknown = oids[int(np.argmin(gids))].item()
            raise GraphError(f"ids names {unknown!r}, and the graph has no such vertex")
        marks = np.zeros(graph.num_vertices, dtype=np.uint8)
        marks[gids] = 1
        return marks

    return graph.group.all_reduce(together(marked, graph.group), "max").view(np.bool_)


def _pairs_of_all_ranks(graph: GraphArrays, sources: ArrayLike, targets: ArrayLike) -> NDArray[np.int64]:
    """Return the gids of the pairs that any rank names, [2, pairs]. Collective."""

    def read() -> list[NDArray[Any]]:
        ends = [as_ids(given, name).ravel() for given, name in ((sources, "sources"), (targets, "targets"))]
        if ends[0].size != ends[1].size:
            raise GraphError(
                f"sources has {ends[0].size:,} ids and targets {ends[1].size:,}: give one each an edge"
            )
        return ends

    ends = together(read, graph.group)
    gids = [
        graph.ids.to_gids(oids) if graph.group.size > 1 or oids.size else np.empty(0, np.int64)
        for oids in ends
    ]

    def check() -> None:
        for name, oids, found in zip(("sources", "targets"), ends, gids, strict=True):
            if (found < 0).any():
                unknown = oids[int(np.argmin(found))].item()
                raise GraphError(f"{name} names {unknown!r}, and the graph has no such vertex")

    together(check, graph.group)
    return np.stack([np.concatenate(graph.group.all_gather_array(found.astype(np.int64))) for found in gids])


def _ids_of(oids: NDArray[Any], bounds: NDArray[np.int64], group: Group) -> Ids:
    """Return the map for the ids of this rank's rows, ascending over the ranks. Collective."""
    if oids.dtype.kind == "U":
        return Ids.of(oids, group=group, row_bounds=bounds)
    ends = np.concatenate(group.all_gather_array(oids[[0, -1]] if oids.size else oids))
    if not ends.size:
        return Ids.identity(0)
    if ends[-1] - ends[0] == bounds[-1] - 1:
        return Ids.range(int(ends[0]), int(bounds[-1]))
    return Ids.of(oids, group=group, row_bounds=bounds)


def _labels_of_all(graph: GraphArrays, labels: ArrayLike) -> NDArray[Any]:
    """Return the labels of all vertices, which all ranks give, or each those of its rows. Collective."""
    group = graph.group

    def read() -> NDArray[Any]:
        if np.ma.is_masked(labels):
            raise GraphError("labels: some are missing (masked), and every vertex needs one; fill them first")
        return as_ids(labels, "labels").ravel()

    given = together(read, group)
    if all(group.all_gather(bool(given.size == graph.num_vertices))):
        return given

    def check() -> None:
        if given.size != graph.num_rows:
            raise GraphError(
                f"labels has {given.size:,} values, and the graph {graph.num_vertices:,} vertices: give one label a "
                "vertex, in ascending order of ids"
            )

    together(check, group)
    if group.size == 1:
        return given
    kind = np.result_type(*group.all_gather(given.dtype.str))
    return np.concatenate(group.all_gather_array(given.astype(kind)))
