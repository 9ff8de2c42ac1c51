"""Generated graphs: the same seed gives the same graph for every rank count and chunking.

Every rank draws its share of the edges, by index, and the graph is built from the shares; no rank holds all
edges. Vertices are 0 .. n - 1. Their options are the arguments of the functions of `edge_streams`.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.account import drawing, spent_on
from sigps.errors import ConfigError, nearest
from sigps.graph.building.build import build_on_gpu
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.place import MIN_EDGES_COLD, BuildDevice, building_on, gpu_for, gpu_of_rank
from sigps.graph.formats.store_folders import StorePath
from sigps.graph.generators import edge_streams
from sigps.graph.generators.edge_streams import EdgeStream
from sigps.graph.graph import Graph, build_graph
from sigps.graph.memory import require_memory
from sigps.graph.report import LoadReport
from sigps.group import Group, own_range, world
from sigps.host_memory import bytes_of

__all__ = ["edge_stream", "generate", "write_by_degree"]

GENERATORS: dict[str, Callable[..., EdgeStream]] = {
    "rmat": edge_streams.rmat,
    "erdos_renyi": edge_streams.erdos_renyi,
    "watts_strogatz": edge_streams.watts_strogatz,
    "grid": edge_streams.grid,
    "path": edge_streams.path,
    "star": edge_streams.star,
    "complete": edge_streams.complete,
}


def generate(
    generator: str,
    /,
    *,
    device: BuildDevice | None = None,
    memory: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    group: Group | None = None,
    **options: Any,
) -> Graph:
    """Generate a graph by the generator's name, as in a job file. Collective.

    The generators and their options:

    * rmat(scale, edge_factor=16, seed=1, a=0.57, b=0.19, c=0.19, permute=True, directed=False, duplicates='drop',
      self_loops='drop', weights=None): 2**scale vertices with skewed degrees, as in Graph500.
    * erdos_renyi(n, m=None, p=None, seed=1, directed=False, weights=None): m edges, or each with probability p.
    * watts_strogatz(n, k, p, seed=1, weights=None): a ring of k neighbours, whose edges move with probability p.
    * grid(rows, columns, weights=None, diagonals=False, seed=1): small degrees and a large diameter, as of roads.
    * path(n, weights=None, seed=1), star(n, weights=None, seed=1), complete(n, weights=None, seed=1).

    `weights="random"` draws whole numbers in 1 .. 255. What each option means stands at the functions of
    `sigps.graph.generators.edge_streams`.

    Args:
        generator: A name of this list.
        device: What builds the graph, as in `Graph.from_edges`; a GPU also draws the edges of "rmat", and on several
            ranks the GPU of each those of its rows.
        memory: What building may take, as in `sigps.load`: the graph is then drawn and built on CPU cores, in pieces.
        scratch: As in `sigps.load`.
        group: The ranks that share the graph; all of them by default.
        options: The generator's own options.

    Returns:
        The graph: on several ranks this rank's rows.

    Raises:
        ConfigError: If the generator or an option is unknown, missing or out of range. Raised before edges are drawn.
        GraphError: If the graph is larger than the machine's memory. Raised before edges are drawn.

    Example:
        >>> generate("grid", rows=2, columns=3).num_edges
        14
    """
    with building_on(device):
        limit = None if memory is None else bytes_of(memory, "memory")
        return _build(edge_stream(generator, **options), generator, group, limit, scratch)


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
            f"there is no generator {generator!r}{nearest(generator, GENERATORS)} "
            f"The generators are {', '.join(GENERATORS)}."
        )
    make = GENERATORS[generator]
    known = inspect.signature(make).parameters
    for option in options:
        if option not in known:
            raise ConfigError(
                f"generator {generator!r} has no option {option!r}{nearest(option, known)} "
                f"Its options are {', '.join(known)}."
            )
    missing = [
        name for name, option in known.items() if option.default is option.empty and name not in options
    ]
    if missing:
        raise ConfigError(f"generator {generator!r} needs {' and '.join(missing)}: no default stands for it")
    return make(**options)


def write_by_degree(generator: str, path: StorePath, /, **options: Any) -> LoadReport | None:
    """Draw a graph on a GPU, piece by piece, into a packed store whose rows are by degree, where one is here.

    Of recursive matrices as by default, undirected and without self-loops, however large: what is in memory at once
    does not grow with the edges.

    Args:
        generator: The generator's name.
        path: The folder, or several, among which pages are dealt out.
        options: The generator's own options.

    Returns:
        The report; None where nothing was written: there is no GPU, there are several ranks, or the graph is another
        one, or small.

    Raises:
        ConfigError: As `generate`.
        GraphError: If the path cannot be written.
        DeviceError: If the GPU has too little memory for a piece.
    """
    from sigps.graph.generators import drawn_store

    stream = edge_stream(generator, **options)
    if world().size > 1 or drawn_store.obstacle_to_pieces(stream) or stream.num_edges < MIN_EDGES_COLD:
        return None
    from sigps.device import cuda

    return None if cuda.what_is_missing() else drawn_store.write_drawn(stream, path, cuda.find_gpu())


def _build(
    stream: EdgeStream,
    generator: str,
    group: Group | None,
    memory: int | None,
    scratch: str | os.PathLike[str] | None,
) -> Graph:
    """Draw this rank's share of the edges and build the graph with the other ranks."""
    group = world() if group is None else group
    what = f"generator {generator!r}: {stream.num_vertices:,} vertices and {stream.num_edges:,} edges"
    if memory is None:
        require_memory(8 * (stream.num_vertices + stream.num_edges), what, group)
    report = LoadReport(format="generated", source=generator, directed=stream.directed)
    if memory is None and (graph := _built_on_gpu(stream, group, report)) is not None:
        return graph
    own = own_range(stream.num_edges, group)
    threads = max(len(os.sched_getaffinity(0)) // group.size, 1)
    return build_graph(
        itertools.starmap(EdgeChunk, drawing("load", stream.chunks(own.start, own.stop, threads=threads))),
        directed=stream.directed,
        group=group,
        duplicates=stream.duplicates,
        self_loops=stream.self_loops,
        ids="identity",
        num_vertices=stream.num_vertices,
        report=report,
        memory=memory,
        scratch=scratch,
    )


@spent_on("build")
def _built_on_gpu(stream: EdgeStream, group: Group, report: LoadReport) -> Graph | None:
    """Draw and build a recursive matrix on a GPU, or on one of each rank, where that pays. Collective."""
    if stream.matrix is None or stream.num_vertices >= 2**32 - 1:
        return None
    if group.size > 1:
        return _built_on_gpus(stream, group, report)
    columns = {} if stream.weights is None else {"weight": np.empty(0, np.float32)}
    gpu = gpu_for(stream.num_edges, columns, group, symmetric=not stream.directed)
    if gpu is None:
        return None
    from sigps.graph.generators.on_gpu import draw_on_gpu

    with spent_on("load"):
        edges = draw_on_gpu(stream, gpu)
    return Graph.of(
        build_on_gpu(
            edges,
            gpu,
            directed=stream.directed,
            group=group,
            duplicates=stream.duplicates,
            self_loops=stream.self_loops,
            report=report,
        )
    )


def _built_on_gpus(stream: EdgeStream, group: Group, report: LoadReport) -> Graph | None:
    """Let each rank draw its own rows. Collective."""
    with group.status.during("building the graph"):
        found = gpu_of_rank(stream.num_edges, group)
        if found is None:
            return None
        from sigps.graph.generators.on_gpus import draw_own_rows

        arrays = draw_own_rows(stream, *found, group, report)
    return None if arrays is None else Graph.of(arrays)
