"""Generated graphs: the same seed gives the same graph for every rank count and chunking.

Every rank draws its share of the edges, by index, and the graph is built from the shares; no rank holds all
edges. Vertices are 0 .. n - 1. Each function is collective; `group=None` means all ranks.

`weights="random"` gives each edge a whole number in 1 .. 255 (float32), a hash of its two ends and the seed.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sigps.errors import ConfigError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.generators import edge_streams
from sigps.graph.generators.edge_streams import Duplicates, EdgeStream, Weights
from sigps.graph.graph import Graph, build_graph
from sigps.graph.report import LoadReport
from sigps.group import Group, own_range, world

__all__ = [
    "GENERATORS",
    "complete",
    "edge_stream",
    "erdos_renyi",
    "generate",
    "grid",
    "path",
    "rmat",
    "star",
    "watts_strogatz",
]

GENERATORS: dict[str, Callable[..., EdgeStream]] = {
    "rmat": edge_streams.rmat,
    "erdos_renyi": edge_streams.erdos_renyi,
    "watts_strogatz": edge_streams.watts_strogatz,
    "grid": edge_streams.grid,
    "path": edge_streams.path,
    "star": edge_streams.star,
    "complete": edge_streams.complete,
}


def generate(generator: str, /, *, group: Group | None = None, **options: Any) -> Graph:
    """Generate a graph by the generator's name, as in a job file.

    Args:
        generator: A name in `GENERATORS`.
        group: The ranks that share the graph; all of them by default.
        options: The generator's own arguments.

    Returns:
        The graph: on several ranks this rank's rows.

    Raises:
        ConfigError: If the generator or an option is unknown, missing or out of range. Raised before edges are drawn.

    Example:
        >>> generate("grid", rows=2, columns=3).num_edges
        14
    """
    return _build(edge_stream(generator, **options), generator, group)


def edge_stream(generator: str, /, **options: Any) -> EdgeStream:
    """Return a generator's edge stream, from which any range of edges can be drawn. Draws none.

    Raises:
        ConfigError: As `generate`.

    Example:
        >>> edge_stream("rmat", scale=20).num_edges
        16777216
    """
    if generator not in GENERATORS:
        raise ConfigError(
            f"there is no generator {generator!r}{_nearest(generator, GENERATORS)} "
            f"The generators are {', '.join(GENERATORS)}."
        )
    make = GENERATORS[generator]
    known = inspect.signature(make).parameters
    for option in options:
        if option not in known:
            raise ConfigError(
                f"generator {generator!r} has no option {option!r}{_nearest(option, known)} "
                f"Its options are {', '.join(known)}."
            )
    missing = [
        name for name, option in known.items() if option.default is option.empty and name not in options
    ]
    if missing:
        raise ConfigError(f"generator {generator!r} needs {' and '.join(missing)}, which have no default.")
    return make(**options)


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    permute: bool = True,
    directed: bool = False,
    duplicates: Duplicates = "drop",
    self_loops: Duplicates = "drop",
    weights: Weights = None,
    group: Group | None = None,
) -> Graph:
    """Generate a recursive-matrix (Kronecker) graph: skewed degrees, small diameter.

    Each edge chooses, on each of `scale` levels, one quadrant of a 2 x 2 matrix with the probabilities a, b, c and
    1 - a - b - c. Many vertices are isolated. O(edges * scale).

    Args:
        scale: The graph has 2**scale vertices, up to 40.
        edge_factor: Edges drawn a vertex.
        seed: The seed of the edges.
        a: Share of edges from the first half of the ids to the first half.
        b: Share from the first half to the second.
        c: Share from the second half to the first.
        permute: Whether to permute the ids at random; otherwise small ids have high degrees.
        directed: Whether edges have a direction.
        duplicates: "drop" keeps one of parallel edges, "keep" all.
        self_loops: "drop" or "keep".
        weights: None, or "random" for whole numbers in 1 .. 255.
        group: The ranks that share the graph.

    Raises:
        ConfigError: If an argument is out of range.

    Example:
        >>> rmat(8).num_vertices
        256

    Paper: Chakrabarti, Zhan, Faloutsos: R-MAT: A Recursive Model for Graph Mining. SDM 2004.
    """
    stream = edge_streams.rmat(
        scale, edge_factor, seed, a, b, c, permute, directed, duplicates, self_loops, weights
    )
    return _build(stream, "rmat", group)


def erdos_renyi(
    n: int,
    m: int | None = None,
    p: float | None = None,
    seed: int = 1,
    directed: bool = False,
    weights: Weights = None,
    group: Group | None = None,
) -> Graph:
    """Generate a uniformly random simple graph, by its number of edges or by their probability.

    O(edges). There are no self-loops and no parallel edges.

    Args:
        n: Vertices.
        m: Edges; all sets of m pairs are equally likely, up to the quality of the permutation.
        p: Probability of each pair, instead of m.
        seed: The seed of the edges.
        directed: Whether edges have a direction.
        weights: None, or "random" for whole numbers in 1 .. 255.
        group: The ranks that share the graph.

    Raises:
        ConfigError: If m is more than the number of pairs, both or neither of m and p are given, or an
            argument is out of range.

    Example:
        >>> erdos_renyi(10, m=20).num_edges
        40
    """
    return _build(edge_streams.erdos_renyi(n, m, p, seed, directed, weights), "erdos_renyi", group)


def watts_strogatz(
    n: int, k: int, p: float, seed: int = 1, weights: Weights = None, group: Group | None = None
) -> Graph:
    """Generate a small world: a ring whose edges are moved to far ends with probability p.

    The graph has exactly n * k / 2 undirected edges and no parallel ones: a moved edge keeps one end, and its other
    end becomes a vertex that is no neighbour on the ring, a different one for each moved edge of a vertex. If a
    vertex has fewer such vertices ahead than edges (k about n / 2 and above), some edges are not moved.

    Args:
        n: Vertices.
        k: Neighbours of each vertex on the ring, even.
        p: Probability that an edge moves.
        seed: The seed of the edges.
        weights: None, or "random" for whole numbers in 1 .. 255.
        group: The ranks that share the graph.

    Raises:
        ConfigError: If k is odd or not below n, or an argument is out of range.

    Example:
        >>> watts_strogatz(100, 4, 0.1).num_edges
        400

    Paper: Watts, Strogatz: Collective dynamics of "small-world" networks. Nature 393, 1998.
    """
    return _build(edge_streams.watts_strogatz(n, k, p, seed, weights), "watts_strogatz", group)


def grid(
    rows: int,
    columns: int,
    weights: Weights = None,
    diagonals: bool = False,
    seed: int = 1,
    group: Group | None = None,
) -> Graph:
    """Generate a grid; with random weights it resembles a road network: small degrees, large diameter.

    Args:
        rows: Rows of vertices.
        columns: Vertices a row; vertex (i, j) has the id i * columns + j.
        weights: None, or "random" for whole numbers in 1 .. 255.
        diagonals: Whether to join diagonal neighbours too: 8 neighbours instead of 4.
        seed: The seed of the weights.
        group: The ranks that share the graph.

    Raises:
        ConfigError: If an argument is out of range.

    Example:
        >>> grid(2, 2, diagonals=True).num_edges
        12
    """
    return _build(edge_streams.grid(rows, columns, weights, diagonals, seed), "grid", group)


def path(n: int, weights: Weights = None, seed: int = 1, group: Group | None = None) -> Graph:
    """Generate the undirected path 0 - 1 - ... - (n - 1)."""
    return _build(edge_streams.path(n, weights, seed), "path", group)


def star(n: int, weights: Weights = None, seed: int = 1, group: Group | None = None) -> Graph:
    """Generate an undirected star of n vertices: 0 joined to each of 1 .. n - 1."""
    return _build(edge_streams.star(n, weights, seed), "star", group)


def complete(n: int, weights: Weights = None, seed: int = 1, group: Group | None = None) -> Graph:
    """Generate the undirected graph that joins all pairs of n vertices."""
    return _build(edge_streams.complete(n, weights, seed), "complete", group)


def _build(stream: EdgeStream, generator: str, group: Group | None) -> Graph:
    """Draw this rank's share of the edges and build the graph with the other ranks."""
    group = world() if group is None else group
    own = own_range(stream.num_edges, group)
    return build_graph(
        _chunks(stream, own, threads=max(len(os.sched_getaffinity(0)) // group.size, 1)),
        directed=stream.directed,
        group=group,
        duplicates=stream.duplicates,
        self_loops=stream.self_loops,
        ids="identity",
        num_vertices=stream.num_vertices,
        report=LoadReport(format="generated", source=generator, directed=stream.directed),
    )


def _chunks(stream: EdgeStream, own: range, threads: int) -> Iterator[EdgeChunk]:
    for sources, targets, columns in stream.chunks(own.start, own.stop, threads=threads):
        yield EdgeChunk(sources, targets, columns)


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."
