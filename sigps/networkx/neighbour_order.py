"""In which order NetworkX goes through neighbours: rows of a graph are sorted, dictionaries keep what came first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sigps.networkx.converted import ConvertedGraph

__all__ = ["edges_in_order", "finders", "neighbours"]

Positions = NDArray[np.int64]


def neighbours(G: ConvertedGraph, *, reverse: bool = False) -> tuple[Positions, Positions]:
    """Return each node once for each of its neighbours, and these, both in NetworkX's order; parallel edges are one."""

    def walked() -> tuple[Positions, Positions]:
        rows = G.source._pred if reverse and G.is_directed() else G.source._adj
        degrees = np.fromiter(map(len, rows.values()), np.int64, len(rows))
        total = int(degrees.sum())
        if len(rows) != len(G) or (total != len(G.targets) and not G.is_multigraph()):
            raise RuntimeError("the graph has changed since it was converted")
        found = np.fromiter(map(G.position, chain.from_iterable(rows.values())), np.int64, total)
        return np.repeat(np.arange(len(rows)), degrees), found

    return G.graph.derived(("networkx, neighbours in order", reverse and G.is_directed()), walked)


def edges_in_order(G: ConvertedGraph) -> tuple[Positions, Positions]:
    """Return the ends of each edge in the order of `G.edges`; parallel edges are one."""
    nodes, others = neighbours(G)
    kept = slice(None) if G.is_directed() else nodes <= others
    return nodes[kept], others[kept]


def finders(
    G: ConvertedGraph, levels: Positions, first: Positions, *, reverse: bool = False, last: bool = False
) -> Iterator[tuple[Positions, Positions]]:
    """Yield for each level but the first who found its nodes, and these, in the order in which a queue finds them.

    A node of a level is found by its first neighbour in the order of the level before; with `last` by the last one, as
    when nodes are ready once all before them are done.

    Args:
        G: The graph.
        levels: [nodes], -1 for nodes that are not found.
        first: The nodes of level 0 in their order.
        reverse: Whether edges are followed against their directions.
        last: See above.
    """
    nodes, others = neighbours(G, reverse=reverse)
    steps = (levels[nodes] >= 0) & (levels[others] == levels[nodes] + 1)
    nodes, others = nodes[steps], others[steps]
    by_level = np.argsort(levels[nodes], kind="stable")
    nodes, others = nodes[by_level], others[by_level]
    ends = np.searchsorted(levels[nodes], np.arange(levels.max(initial=0) + 1), side="right")
    rank = np.zeros(len(levels), np.int64)
    rank[first] = np.arange(len(first))
    begin = 0
    for end in ends.tolist():
        if begin == end:
            return
        a, b = nodes[begin:end], others[begin:end]
        in_order = np.argsort(rank[a], kind="stable")  # neighbours of one node are in order already
        if last:
            in_order = in_order[::-1]
        a, b = a[in_order], b[in_order]
        at = np.sort(np.unique(b, return_index=True)[1])
        if last:
            at = at[::-1]
        rank[b[at]] = np.arange(len(at))
        yield a[at], b[at]
        begin = end
