"""What judges of apps are made of: samples as plain arcs, matrices and NetworkX graphs, and the ways to run an app."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from battery import Sample
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray
from turns import half_of
from ways import Way

from sigps import Result
from sigps.apps.hashing import hashed

DEVICES = ["python", "cpu"]


RUNS = [
    Way(device="python"),
    Way(direction="push"),
    Way(direction="pull", threads=2),
    Way(2, partitioner="hash"),
    Way(3, partitioner="vertices", direction="push"),
]
"""Both devices, one to three ranks, both directions; `test_equality.py` has the interpreter on several ranks."""

LARGE = 1000
"""Edges from which on the interpreter takes seconds, and apps run compiled."""

QUICK_RUNS = [Way(device="python"), Way(2, device="python", partitioner="hash")]
"""What `scripts/test --quick` has in the place of these: compiling an app takes five seconds."""


RANDOM = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def runs_of(sample: Sample) -> list[Way]:
    """Return the ways to run an app on one of many samples: every other of `RUNS`, in turn by the number of edges."""
    num_edges = len(sample.sources)
    ways = [way for turn, way in half_of([0, 1], RUNS) if turn == num_edges % 2]
    compiled = [way for way in ways if way.device == "cpu"]
    return compiled if compiled and num_edges > LARGE else ways


def vertices_of(sample: Sample) -> list[Any]:
    """Return the ids in ascending order, as results have them."""
    return sorted({*(sample.vertices or []), *sample.sources, *sample.targets})


def arcs_of(sample: Sample, directed: bool | None = None) -> list[tuple[Any, Any, float]]:
    """Return source, target and weight of each arc; an undirected edge is two, a loop one."""
    weights = sample.weights or [1.0] * len(sample.sources)
    arcs = list(zip(sample.sources, sample.targets, weights, strict=True))
    if not (sample.directed if directed is None else directed):
        arcs += [(t, s, w) for s, t, w in arcs if s != t]
    return arcs


def as_networkx(sample: Sample) -> Any:
    """Return the same multigraph, every edge with its weight (1 without weights)."""
    graph = nx.MultiDiGraph() if sample.directed else nx.MultiGraph()
    graph.add_nodes_from(vertices_of(sample))
    graph.add_weighted_edges_from(arcs_of(sample, directed=True))
    return graph


def by_id(result: Result, field: str) -> dict[Any, Any]:
    return dict(zip(result.ids.tolist(), result[field].tolist(), strict=True))


def first_id(sample: Sample) -> Any:
    return (sample.sources or sample.vertices)[0]


def adjacency_of(sample: Sample) -> NDArray[np.float64]:
    """Return the number of arcs from each vertex, by rows, to each vertex; ids ascend."""
    index = {v: i for i, v in enumerate(vertices_of(sample))}
    matrix = np.zeros((len(index), len(index)))
    for s, t, _ in arcs_of(sample):
        matrix[index[s], index[t]] += 1.0
    return matrix


def matrix_of(sample: Sample) -> Any:
    """Return the weight from each vertex, by columns, to each vertex, edges taken both ways, as a SciPy matrix."""
    index = {v: i for i, v in enumerate(vertices_of(sample))}
    arcs = [(index[t], index[s], w) for s, t, w in arcs_of(sample, directed=False)]
    rows, columns, weights = zip(*arcs, strict=True) if arcs else ((), (), ())
    return sp.csr_matrix((weights, (rows, columns)), shape=(len(index), len(index)), dtype=float)


def neighbours_of(sample: Sample) -> dict[Any, set[Any]]:
    """Return the neighbours of each vertex, whichever the direction of the edge, without itself."""
    neighbours: dict[Any, set[Any]] = {v: set() for v in vertices_of(sample)}
    for s, t, _ in arcs_of(sample, directed=False):
        if s != t:
            neighbours[t].add(s)
    return neighbours


def splitmix(number: int, seed: int) -> int:
    """Return SplitMix64's output, of 64 bits without a sign, as Steele, Lea and Flood have it."""
    ones = 2**64 - 1
    z = (number + (seed + 1) * 0x9E3779B97F4A7C15) & ones
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & ones
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & ones
    return z ^ z >> 31


def drawn(sample: Sample, k: int, seed: int) -> list[Any]:
    """Return the first k vertices that hashes of 0, 1, ... fall on; all in ascending order, where k is all or more."""
    ids = vertices_of(sample)
    if not 0 < k < len(ids):
        return ids
    return [ids[i] for i in dict.fromkeys(hashed(i, seed) % len(ids) for i in range(10**4))][:k]
