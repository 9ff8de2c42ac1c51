"""Edge betweenness: how many shortest paths lead along each edge.

    level(v) = edges of a shortest path from s to v,   after(v) = { w : (v, w) an edge, level(w) = level(v) + 1 }
    paths(s) = 1,   paths(w) = sum { paths(v) : w in after(v) }
    share(v, w) = paths(v) / paths(w) * (1 + dependency(w)),   dependency(v) = sum { share(v, w) : w in after(v) }
    centrality(v, w) = scale * sum { share(v, w) in the search from s : s a source },   w in after(v)

Searches from many sources go side by side (`KHop` in `sigps.run_many`); NumPy adds up what they found, level after
level, on one core. scale is 1 / (n (n - 1)); if not `normalised` 1, and 1/2 in undirected graphs, where an edge has the
shares of both directions. With `samples` = k, sources are k random vertices, and scale is n / k times that.

The graph is taken as it is, directed or undirected, without weights. Parallel edges count once and each has the
centrality of all; loops have 0. On several ranks each holds all edges.

M. Girvan, M. E. J. Newman, "Community structure in social and biological networks", PNAS 99, 2002; U. Brandes, "On
variants of shortest-path betweenness centrality and their generic computation", Social Networks 30, 2008.

>>> import sigps
>>> graph = sigps.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], directed=False)
>>> result = edge_betweenness(graph, normalised=False)
>>> result.edges["centrality"].tolist(), result["most"].tolist()
([4.0, 6.0, 6.0, 4.0], [4.0, 6.0, 6.0, 6.0, 4.0])
"""

import numpy as np

from sigps.apps.arcs import all_arcs
from sigps.apps.driving import Runs
from sigps.apps.khop import KHop
from sigps.apps.sources import sources_of


def edge_betweenness(graph, samples=0, seed=0, normalised=True, sources=None, **options):
    """Return a result with `centrality` on edges, in the graph's order, and the `most` on any edge of each vertex.

    Of paths from all vertices, from `samples`, or from `sources`. `options` are those of `sigps.run_many`.
    """
    n = graph.num_vertices
    sources = sources_of(graph, samples, seed) if sources is None else list(sources)
    tails, heads = all_arcs(graph)
    keys = tails * n + heads
    is_first = np.diff(keys, prepend=-1) > 0
    begins, ends = tails[is_first], heads[is_first]
    shares, runs = np.zeros(len(begins)), Runs(options)
    for _ in runs.each(KHop, graph, sources, hops=n):
        level = runs.field("hop", graph)
        at, steps = by_level(level, begins, ends)
        shares[at] += dependencies(level == 0, begins[at], ends[at], steps)[1]
    if not graph.directed:
        shares += shares[np.searchsorted(keys[is_first], ends * n + begins)]
    pairs = max(1, n - 1) if normalised else (1 if graph.directed else 2) / n
    centrality = shares[np.cumsum(is_first) - 1] / (len(sources) * pairs)
    most = np.zeros(n)
    for side in (tails, heads):
        np.maximum.at(most, side, centrality)
    kept = slice(None) if graph.directed else tails <= heads
    edges = tails[kept], heads[kept], {"centrality": centrality[kept]}
    return runs.as_one(graph, {"most": most}, {}, edges=edges)


def by_level(level, tails, heads):
    """Return the positions of the edges from each level to the next, level after level, and where each level ends."""
    level = np.where(level < 0, -2, level)
    at = np.flatnonzero(level[heads] - level[tails] == 1)
    begins = level[tails[at]]
    counts = np.bincount(begins)
    return at[np.argsort(begins.astype(np.min_scalar_type(counts.size)), kind="stable")], np.cumsum(counts)


def dependencies(is_source, tails, heads, ends):
    """Return dependencies of vertices, [vertices], and shares of edges, [edges].

    Args:
        is_source: [vertices], of that from which the paths lead.
        tails: [edges], of those on shortest paths, step after step: none leads to a tail of its step or of one before.
        heads: [edges]
        ends: [steps], behind the edges of each step.
    """
    steps = list(map(slice, [0, *ends], ends))
    paths, of_vertices = is_source.astype(float), np.zeros(len(is_source))
    for step in steps:
        np.add.at(paths, heads[step], paths[tails[step]])
    shares = paths[tails] / paths[heads]
    for step in reversed(steps):
        shares[step] *= 1.0 + of_vertices[heads[step]]
        np.add.at(of_vertices, tails[step], shares[step])
    return of_vertices, shares
