"""Sources: from which vertices measures look that look from all of them, or from a sample."""

import numpy as np

import sigps
from sigps.apps.hashing import hashed


def sources_of(graph, samples=0, seed=0):
    """Return the ids of `samples` vertices, drawn without repeats; of all, in ascending order, for 0 or too many.

    O(samples). The same on every device, for every number of ranks, and with every version.

    >>> ring = sigps.Graph.from_edges(range(10), [*range(1, 10), 0])
    >>> sources_of(ring, samples=3), sources_of(ring, samples=3, seed=1)
    ([9, 4, 3], [0, 3, 5])
    """
    n = graph.num_vertices
    if samples < 0:
        raise sigps.ConfigError(f"samples={samples!r} must be a number of vertices, or 0 for all")
    if n == 0:
        raise sigps.GraphError("the graph has no vertices, so there is nothing to look from")
    chosen, draw = range(n), 0
    if 0 < samples < n:
        chosen = {}
        while len(chosen) < samples:
            chosen[hashed(draw, seed) % n] = True
            draw += 1
    return graph.ids.to_oids(list(chosen)).tolist()


def numbered(graph, sources):
    """Return sources without repeats, and what `sigps.run_many` takes for programs that look from 64 of them at once.

    >>> path = sigps.Graph.from_edges([4, 5, 6], [5, 6, 7])
    >>> numbered(path, [7, 4, 7])
    ([7, 4], {'first': [1], 'initial': {'number': {7: 1, 4: 2}}})
    """
    chosen = list(dict.fromkeys(np.asarray(sources).tolist()))
    if not chosen:
        raise sigps.ConfigError(
            "sources=[] names no vertex: name one at least, or leave it out to look from all"
        )
    for source, gid in zip(chosen, graph.ids.to_gids(chosen).tolist(), strict=True):
        if gid < 0:
            raise sigps.GraphError(f"sources: there is no vertex {source!r} in the graph")
    numbers = {source: number for number, source in enumerate(chosen, 1)}
    return chosen, {"first": list(range(1, len(chosen) + 1, 64)), "initial": {"number": numbers}}
