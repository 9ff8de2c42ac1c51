"""The k shortest paths from one vertex to another that visit no vertex twice: their vertices, and how long they are.

`SSSP` (or `BFS`, without lengths) finds the distances from the source, and the tree of shortest paths; the first path
is the tree's. All others leave it somewhere: `detours.py` finds these one after another, in the process that asks.
The equally long are ordered by their number of edges, then by ids as compared from the target back. Of parallel edges
the shortest counts, and paths are the same if they have the same vertices. Lengths are not negative.

Each row is a vertex of a path: the rows of a path are together, from its source on, and the shortest path comes first.

    distance of a row = sum of length(u, v) over the edges (u, v) of its path that come before it

Lengths that are no whole numbers are rounded sums, so that paths whose lengths differ by less than that may change
places. Supersteps are those of one search, for any k.

>>> import sigps
>>> graph = sigps.Graph.from_edges([1, 1, 2, 3, 2], [2, 3, 3, 4, 4], weights=[1, 5, 1, 1, 4])
>>> result = shortest_paths(graph, source=1, target=4, k=2)
>>> result["path"].tolist(), result.ids.tolist(), result["distance"].tolist()
([0, 0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 1, 2, 4], [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 5.0])
>>> result.aggregators["length"].tolist()
[3.0, 5.0]
"""

import numpy as np

import sigps
from sigps.apps.arcs import edges_into, number_of, weighted_by
from sigps.apps.bfs import BFS
from sigps.apps.detours import Tree, simple_paths
from sigps.apps.driving import Runs
from sigps.apps.sssp import SSSP


def shortest_paths(graph, source, target, k=1, weight="weight", **options):
    """Return rows of `path`, a number from 0, and `distance`, and the paths' `length`; none where no path leads.

    `weight` names the column of lengths; None counts edges, as all do where there are no weights. `options` are those
    of `sigps.run`. Collective; every rank has the whole result.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise sigps.ConfigError(
            f"shortest_paths: k={k!r} must be a whole number of at least 1: how many paths to find"
        )
    given = graph if weight is None else weighted_by(graph, weight, "shortest_paths(weight=)", least=0)
    root, end = (
        number_of(graph, v, f"shortest_paths({name}=)")
        for name, v in (("source", source), ("target", target))
    )
    runs = Runs(options)
    if weight is not None and given.has_weights:
        runs.run(SSSP(source=source), given)
        distance = runs.field("distance", graph)
    else:
        runs.run(BFS(source=source), given)
        level = runs.field("level", graph)
        distance = np.where(level < 0, np.inf, level)
    tree = Tree(root, distance, runs.vertices("parent", graph), edges_into(given, weight and "weight"))
    paths = list(simple_paths(tree, end, int(k))) if distance[end] < np.inf else []
    ways = [np.array(way) for way, _ in paths]
    fields = {
        "path": np.repeat(np.arange(len(ways)), [len(way) for way in ways]),
        "distance": np.array([far for _, lengths in paths for far in lengths], dtype=float),
    }
    ids = graph.ids.to_oids(np.concatenate([*ways, np.zeros(0, int)]))
    ends = np.array([lengths[-1] for _, lengths in paths], dtype=float)
    return runs.as_one(graph, fields, {"length": ends}, ids)
