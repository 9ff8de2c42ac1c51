"""Arcs: how functions that run programs look up vertices and edges of a graph in between."""

from dataclasses import replace

import numpy as np

import sigps


def number_of(graph, vertex, what):
    """Return the number of the vertex with an id. Collective."""
    (number,) = graph.ids.to_gids([vertex]).tolist()
    if number < 0:
        raise sigps.GraphError(f"{what}: there is no vertex {vertex!r} in the graph")
    return number


def weighted_by(graph, weight, what, least=-np.inf):
    """Return the graph whose weight is that column, whose values are at least `least`. Collective.

    One without weights is returned itself for `"weight"`.

    >>> graph = sigps.Graph.from_edges([0], [1], columns={"toll": [3]})
    >>> weighted_by(graph, "toll", "a function").columns
    {'weight': array([3])}
    """
    columns = graph.column_types()
    if weight not in columns:
        if weight == "weight":
            return graph
        there = f"its columns are: {', '.join(columns)}" if columns else "it has none"
        raise sigps.ConfigError(f"{what}: the graph has no edge column {weight!r}; {there}")
    values = graph.columns[weight]
    smallest = min(graph.group.all_gather(values.min().item() if values.size else least))
    if not smallest >= least:
        raise sigps.GraphError(
            f"{what}: values of {weight!r} must be at least {least}, but an edge has {smallest}"
        )
    if weight == "weight":
        return graph
    changed = {"columns": {"weight": values}, "by_target": None}
    return graph.derived(("weighted by", weight), lambda: replace(graph, **changed))


def all_arcs(graph):
    """Return the numbers of the ends of all stored edges, row by row: an undirected edge is stored in both directions.

    [num_edges] each, on every rank. Collective.

    >>> all_arcs(sigps.Graph.from_edges([5, 7], [7, 9], directed=False))
    (array([0, 1, 1, 2]), array([1, 0, 2, 1]))
    """
    tails = np.repeat(np.arange(graph.first_row, graph.first_row + graph.num_rows), graph.out_degrees())
    both = [tails, graph.targets.astype(np.int64)]
    if graph.group.size == 1:
        return tuple(both)
    return tuple(np.concatenate(graph.group.all_gather_array(values)) for values in both)


def edges_into(graph, weight="weight"):
    """Return a function: of the number of a vertex, those with an edge to it, and the weights of these edges.

    Weights are ones where there are none, or for None. On several ranks each call is collective, and the edges of a
    directed graph are turned around first, once.
    """
    group = graph.group
    if group.size == 1:
        rows = graph.in_edges()
        first, others = 0, rows.sources
    else:
        rows = graph.derived("turned around", lambda: turned(graph)) if graph.directed else graph
        first, others = rows.first_row, rows.targets
    offsets, weights = rows.offsets, rows.columns.get(weight)

    def read(v):
        if not first <= v < first + len(offsets) - 1:
            return None
        begin, end = offsets[v - first : v - first + 2].tolist()
        return others[begin:end], np.ones(end - begin, int) if weights is None else weights[begin:end]

    if group.size == 1:
        return read

    def read_anywhere(v):
        found = read(v)
        lists = found and [part.tolist() for part in found]
        return next(rows for rows in group.all_gather(lists) if rows is not None)

    return read_anywhere


def turned(graph):
    """Return the graph with all edges turned around, vertices and weights as they are. Collective."""
    own = np.arange(graph.first_row, graph.first_row + graph.num_rows)
    starts = graph.ids.to_oids(np.repeat(own, graph.out_degrees()))
    ends, weights = graph.ids.to_oids(graph.targets), graph.columns.get("weight")
    vertices = graph.ids.to_oids(own)
    return sigps.Graph.from_edges(ends, starts, weights, vertices=vertices, local=True, group=graph.group)
