"""Histories of a graph: batches of inserts and deletes, and in plain Python the list of edges that they leave."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sigps import Graph, Result, Updates

IDS: list[list[Any]] = [
    list(range(9)),
    [7 * i - 20 for i in range(9)],
    [(-1) ** i * (10**17 + i) for i in range(9)],
    [f"v{i * i}" for i in range(9)],
]


def drawn(few: int) -> int:
    """Return how many histories a test draws: so few, or what `SIGPS_HISTORIES` asks for."""
    return int(os.environ.get("SIGPS_HISTORIES", few))


@dataclass
class History:
    """A first list of edges (source, target, weight), and batches: (inserts, deletes), deletes without weights.

    `options` are those of `Graph.from_edges` that do not change; `gone` has the vertices that each batch deletes first.
    """

    edges: list[tuple[Any, Any, int]]
    vertices: list[Any]
    batches: list[tuple[list[tuple[Any, Any, int]], list[tuple[Any, Any]]]]
    options: dict[str, Any] = field(default_factory=dict)
    gone: list[list[Any]] = field(default_factory=list)

    def first(self, **more: Any) -> Graph:
        return built(self.edges, self.vertices, **self.options, **more)

    def newer(self, graph: Graph) -> list[Graph]:
        """Return the versions that the batches make of a graph, in order."""
        versions = []
        for (inserts, deletes), gone in zip(self.batches, self.gone or [[]] * len(self.batches), strict=True):
            graph = graph.apply(
                ([s for s, _, _ in inserts], [t for _, t, _ in inserts], [w for _, _, w in inserts]),
                ([s for s, _ in deletes], [t for _, t in deletes]),
                delete_vertices=gone or None,
            )
            versions.append(graph)
        return versions

    def updates(self) -> list[Updates]:
        """Return the batches as streams take them."""
        return [
            Updates(
                ([s for s, _, _ in inserts], [t for _, t, _ in inserts], [w for _, _, w in inserts]),
                ([s for s, _ in deletes], [t for _, t in deletes]),
            )
            for inserts, deletes in self.batches
        ]

    def judges(self, **more: Any) -> list[Graph]:
        """Return the same graphs, each built anew from the list of its edges."""
        edges, vertices, found = list(self.edges), list(self.vertices), []
        directed = self.options.get("directed", True)
        for (inserts, deletes), went in zip(self.batches, self.gone or [[]] * len(self.batches), strict=True):
            vertices = [vertex for vertex in vertices if vertex not in went]
            edges = [edge for edge in edges if not set(edge[:2]) & set(went)]
            gone = set(deletes) | (set() if directed else {(t, s) for s, t in deletes})
            edges = [edge for edge in edges if edge[:2] not in gone] + inserts
            vertices += [end for edge in inserts for end in edge[:2]]
            found.append(built(edges, vertices, **self.options, **more))
        return found

    def missing(self) -> list[int]:
        """Return how many deletes of each batch match no edge."""
        edges, found = list(self.edges), []
        directed = self.options.get("directed", True)
        for inserts, deletes in self.batches:
            there = {edge[:2] for edge in edges}
            if self.options.get("self_loops") == "drop":
                there = {(s, t) for s, t in there if s != t}
            there |= set() if directed else {(t, s) for s, t in there}
            found.append(sum(pair not in there for pair in deletes))
            gone = set(deletes) | (set() if directed else {(t, s) for s, t in deletes})
            edges = [edge for edge in edges if edge[:2] not in gone] + inserts
        return found


def built(edges: list[tuple[Any, Any, int]], vertices: list[Any], **options: Any) -> Graph:
    weights = np.array([w for _, _, w in edges], dtype=np.int64)
    return Graph.from_edges(
        [s for s, _, _ in edges], [t for _, t, _ in edges], weights, vertices=vertices, **options
    )


@st.composite
def histories(draw: st.DrawFn, *, may_drop: bool = True) -> History:
    """Draw a small history; of ids that appear late some are below those that are there, and some above."""
    ids = draw(st.sampled_from(IDS))
    vertex = st.sampled_from(ids)
    edge = st.tuples(vertex, vertex, st.integers(0, 3))
    first = draw(st.sets(vertex, min_size=1, max_size=6).map(sorted))
    early = st.sampled_from(first)
    edges = draw(st.lists(st.tuples(early, early, st.integers(0, 3)), max_size=16))
    batch = st.tuples(st.lists(edge, max_size=6), st.lists(st.tuples(vertex, vertex), max_size=6))
    options: dict[str, Any] = {"directed": draw(st.booleans())}
    if may_drop:
        options["duplicates"] = draw(st.sampled_from(["keep", "keep", "drop", "sum", "min", "max"]))
        options["self_loops"] = draw(st.sampled_from(["keep", "drop"]))
    return History(edges, list(first), draw(st.lists(batch, min_size=1, max_size=4)), options)


def assert_parents_hold(result: Result, graph: Graph) -> None:
    """Each parent of shortest paths is the last vertex before the end of one."""
    distance, ids = result["distance"], np.asarray(graph.ids).tolist()
    at = {oid: i for i, oid in enumerate(ids)}
    edges = graph.to_arrow().to_pydict()
    pairs = list(zip(edges["source"], edges["target"], edges["weight"], strict=True))
    pairs += [] if graph.directed else [(t, s, w) for s, t, w in pairs]
    steps = {(s, t, distance[at[s]] + w) for s, t, w in pairs}
    for v, (parent, length) in enumerate(zip(result["parent"], distance, strict=True)):
        if parent is np.ma.masked or parent is None:
            assert length == np.inf
        else:
            assert (parent, ids[v], length) in steps or (parent == ids[v] and length == 0)


def shapes(size: int) -> dict[str, Any]:
    """Return graphs as ends, and whether they are directed: meshes, long and short rows, what is not reached."""
    draw = np.random.default_rng(size)
    side = int(size**0.5)
    at = np.arange(side * side).reshape(side, side)
    grid = np.concatenate([[at[:, 1:].ravel(), at[:, :-1].ravel()], [at[1:].ravel(), at[:-1].ravel()]], 1)
    ring = np.stack([np.arange(size), np.roll(np.arange(size), 1)])
    hubs = (size * draw.random((2, 4 * size)) ** 6).astype(int)
    sparse = draw.integers(0, size, (2, size))
    return {
        "grid": (grid, False), "ring": (ring, False), "directed ring": (ring, True),
        "hubs": (hubs, False), "directed hubs": (hubs, True), "sparse": (sparse, True),
    }  # fmt: skip
