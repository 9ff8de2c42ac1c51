"""Collecting the result of a run: the fields that each rank holds, by the user's ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.account import spent_on
from sigps.graph.graph import Graph
from sigps.group import Alone, Group
from sigps.job.result import EdgeFields, Result
from sigps.model.vertex import Field, Vertex
from sigps.system.worker_manager import RankResult

__all__ = ["all_ids", "as_string_ids", "collect", "on_edges", "optional_fields", "to_rank_0", "writers_of"]


@spent_on("answer")
def collect(part: RankResult, program: Vertex, graph: Graph, device: str, *, gather: bool) -> Result:
    """Return the result of a run by the user's ids. Collective.

    With `gather` rank 0 gets the whole and the other ranks keep their own part; else every rank keeps its own.
    """
    group = graph.group
    fields: Mapping[str, NDArray[Any]] = part.fields
    if group.size == 1:
        ids = all_ids(graph)
    elif gather:
        fields = _gathered(part.gids, fields, graph)
        ids = graph.ids.to_oids(part.gids if group.rank else np.arange(graph.num_vertices))
    else:
        ids = part.oids(graph)
    fields = as_string_ids(fields, program, graph)
    if part.trace is not None and graph.ids.kind == "strings":
        names = graph.ids.to_oids(np.array([entry["id"] for entry in part.trace], dtype=np.int64))
        for entry, name in zip(part.trace, names.tolist(), strict=True):
            entry["id"] = name
    return Result(
        ids=ids,
        fields=fields,
        reason=part.reason,
        supersteps=len(part.stats),
        stats=part.stats,
        aggregators=part.aggregators,
        device=device,
        trace=part.trace,
        saves=part.saves,
        edges=_edges_when_read(part, program, graph, gather=gather) if part.kept_on_edges else None,
        optional=optional_fields(program.declaration.states, graph),
        writers=writers_of(group, gather=gather),
    )


def writers_of(group: Group, *, gather: bool) -> Group | None:
    """Return the ranks that write a result together: rank 0 alone where it has all, and then none on the others."""
    if gather and group.size > 1:
        return Alone() if group.rank == 0 else None
    return group


def optional_fields(fields: Sequence[Field], graph: Graph) -> frozenset[str]:
    """Return the names of the fields in whose arrays a number stands for None; arrays of strings hold None as it is."""
    return frozenset(f.name for f in fields if f.may_be_none and graph.ids.kind != "strings")


def as_string_ids(
    fields: Mapping[str, NDArray[Any]], program: Vertex, graph: Graph
) -> Mapping[str, NDArray[Any]]:
    """Return fields with those that hold ids of vertices as the user's strings, where the graph has such."""
    if graph.ids.kind != "strings":
        return fields
    are_ids = {field.name for field in program.declaration.states if field.is_vertex_id}
    return {n: _string_ids(values, graph) if n in are_ids else values for n, values in fields.items()}


def _edges_when_read(
    part: RankResult, program: Vertex, graph: Graph, *, gather: bool
) -> Callable[[], EdgeFields]:
    """Return what makes the values kept on edges, when they are asked for: at once where ranks bring them together."""

    def make() -> EdgeFields:
        writers = writers_of(graph.group, gather=gather)
        return on_edges(part.edge_ends, part.kept_on_edges, program, graph, writers=writers, gather=gather)

    if graph.group.size > 1 and (gather or graph.ids.table is not None):
        found = make()
        return lambda: found
    return make


def on_edges(
    ends: tuple[NDArray[np.int64], NDArray[np.int64]],
    kept_on_edges: Mapping[str, Any],
    program: Vertex,
    graph: Graph,
    *,
    writers: Group | None,
    gather: bool = False,
) -> EdgeFields:
    """Return the values kept on edges, an undirected edge's once; as for vertices the whole, or this rank's part.

    Args:
        ends: Gids of the ends of this rank's edges, the vertices' own first, in ascending order of the other ends.
        kept_on_edges: What they keep, by name.
        program: The program.
        graph: The graph.
        writers: Who writes them.
        gather: Whether rank 0 gets all.
    """
    group = graph.group
    sources, targets = ends
    kept = slice(None) if graph.directed else sources <= targets
    columns = [
        sources[kept],
        targets[kept],
        *[np.asarray(values)[kept] for values in kept_on_edges.values()],
    ]
    if gather and group.size > 1:
        columns = [to_rank_0(column, graph) for column in columns]
    if np.any(columns[0][1:] < columns[0][:-1]):  # a whole graph's rows are in order
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    sources, targets, *values = columns
    kept_by_name = dict(zip(kept_on_edges, values, strict=True))
    optional = optional_fields(program.declaration.edge_states, graph)
    if graph.ids.kind == "strings":
        are_ids = [field.name for field in program.declaration.edge_states if field.is_vertex_id]
        kept_by_name |= {name: _string_ids(kept_by_name[name], graph) for name in are_ids}
    return EdgeFields(
        graph.ids.to_oids(sources),
        graph.ids.to_oids(targets),
        kept_by_name,
        optional=optional,
        writers=writers,
    )


def to_rank_0(values: NDArray[Any], graph: Graph) -> NDArray[Any]:
    """Return all ranks' values on rank 0, and on the others their own."""
    group = graph.group
    everything = np.concatenate(
        group.all_to_all([values if r == 0 else values[:0] for r in range(group.size)])
    )
    return everything if group.rank == 0 else values


def all_ids(graph: Graph) -> NDArray[Any]:
    """Return the ids of a graph in one process, read-only; made once a graph."""

    def made() -> NDArray[Any]:
        oids = graph.ids.to_oids(np.arange(graph.num_vertices))
        oids.flags.writeable = False
        return oids

    return graph.derived("oids", made)


def _gathered(
    gids: NDArray[np.int64], fields: Mapping[str, NDArray[Any]], graph: Graph
) -> Mapping[str, NDArray[Any]]:
    """Return all ranks' fields in gid order on rank 0, and on the others their own."""
    places = to_rank_0(gids, graph)  # of each vertex one

    def gathered(values: NDArray[Any]) -> NDArray[Any]:
        arrived = to_rank_0(values, graph)
        if graph.group.rank != 0:
            return values
        in_order = np.empty_like(arrived)
        in_order[places] = arrived
        return in_order

    return {name: gathered(values) for name, values in fields.items()}


def _string_ids(gids: NDArray[np.int64], graph: Graph) -> NDArray[Any]:
    """Return string ids; None where a gid is negative: no vertex."""
    known = gids >= 0
    names = np.full(gids.shape, None, dtype=object)
    names[known] = graph.ids.to_oids(gids[known])
    return names
