"""Maximum flow beside SciPy and NetworkX: processor seconds on graphs that are drawn, or read from a file.

`python scripts/bench/maximum_flow.py grid 100`, `random 10000` or `file roads.gr`; `--no-networkx` leaves that out. A
grid has a source joined to one side and a target joined to the other; random graphs have eight edges a vertex;
capacities are whole numbers from 1 to 99. Of a file the two vertices with the largest capacities are the ends.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow as flow_of_scipy

import sigps
from sigps.apps import maximum_flow

Network = tuple[Any, Any, Any, int, int, int]
"""Tails, heads and capacities; the number of vertices, the source and the target."""


def grid(side: int) -> Network:
    """Return a square grid, from side to side."""
    places = np.arange(side * side).reshape(side, side)
    low, high = (
        np.concatenate([a.ravel(), b.ravel()])
        for a, b in ((places[:, :-1], places[:-1]), (places[:, 1:], places[1:]))
    )
    tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
    capacities = np.random.default_rng(1).integers(1, 100, tails.size)
    source, target, much = side * side, side * side + 1, np.full(2 * side, 10**5)
    tails = np.concatenate([tails, np.full(side, source), places[:, -1]])
    heads = np.concatenate([heads, places[:, 0], np.full(side, target)])
    return tails, heads, np.concatenate([capacities, much]), target + 1, source, target


def random(n: int) -> Network:
    """Return a random graph, from its first vertex to the second."""
    draw = np.random.default_rng(3)
    tails, heads = draw.integers(0, n, (2, 8 * n))
    capacities, is_kept = draw.integers(1, 100, 8 * n), tails != heads
    return tails[is_kept], heads[is_kept], capacities[is_kept], n, 0, 1


def file(path: str) -> Network:
    """Return a graph that is read; an undirected edge has a capacity for each direction."""
    graph = sigps.load(path)
    tails = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    heads = graph.targets.astype(np.int64)
    capacities = np.random.default_rng(2).integers(1, 100, tails.size)
    *_, target, source = np.argsort(np.bincount(tails, capacities, graph.num_vertices)).tolist()
    return tails, heads, capacities, graph.num_vertices, source, target


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its processor seconds."""
    begin = time.process_time()
    return call(), time.process_time() - begin


def main() -> None:
    """Print what each takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["grid", "random", "file"])
    parser.add_argument("size", help="the side of a grid, the vertices of a random graph, or a path")
    parser.add_argument("--no-networkx", action="store_true")
    given = parser.parse_args()
    make: dict[str, Callable[[], Network]] = {
        "grid": lambda: grid(int(given.size)),
        "random": lambda: random(int(given.size)),
        "file": lambda: file(given.size),
    }
    tails, heads, capacities, n, source, target = make[given.kind]()
    graph = sigps.Graph.from_edges(tails, heads, weights=capacities, vertices=range(n))
    maximum_flow(graph, source, target, device="cpu")  # compiles
    matrix = csr_array((capacities.astype(np.int32), (tails, heads)), (n, n))
    theirs, seconds = timed(lambda: flow_of_scipy(matrix, source, target).flow_value)
    ours, own_seconds = timed(lambda: maximum_flow(graph, source, target, device="cpu"))
    assert ours.aggregators["flow"] == theirs
    print(f"{n:,} vertices, {len(tails):,} edges, flow {theirs}: SciPy {seconds:.3f} s")
    print(f"sigps {own_seconds:.3f} s, {ours.supersteps:,} supersteps")
    if not given.no_networkx:
        other = sigps.Graph.from_edges(
            tails, heads, weights=capacities, vertices=range(n), duplicates="sum"
        ).to_networkx()
        value, nx_seconds = timed(lambda: nx.maximum_flow_value(other, source, target, "weight"))
        assert value == theirs
        print(f"NetworkX {nx_seconds:.3f} s")


if __name__ == "__main__":
    main()
