"""The native store: a folder of raw arrays that are memory-mapped, so opening a graph copies nothing.

    graph.sigps/
      header.msgpack      counts, dtypes and checksums; with a checksum of its own (`store_header.py`)
      offsets.bin         [num_vertices + 1] uint64
      targets.bin         [num_edges] uint32 or uint64
      column-<n>.bin      [num_edges], one for each edge column
      vertex-column-<n>.bin     [num_vertices] or [num_vertices * k], one for each vertex column
      ids.bin             [num_vertices] int64 or UTF-32 text of fixed width; absent if ids are consecutive
      in-offsets.bin, in-sources.bin, in-column-<n>.bin     the edges by target, optional

That is format 2; `packed_store.py` has formats 3 and 4, whose edges take fewer bytes. Arrays are little-endian. A store
is written beside its path and then renamed, so that a store at a path is complete. On several ranks each writes and
reads its own rows. What a store holds is checked when it is opened (`store_checks.py`).
"""

from __future__ import annotations

import bisect
import os
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.formats.known_stores import is_known, remember
from sigps.graph.formats.packed_store import packed_graph
from sigps.graph.formats.store_files import OpenStore, Verify
from sigps.graph.formats.store_folders import StorePath, paths_text
from sigps.graph.formats.store_writing import Slice, header_of, vertex_slices, write_store
from sigps.group import Group, together

__all__ = ["read_store", "save"]


def save(graph: GraphArrays, path: str | os.PathLike[str], *, in_edges: InEdges | None = None) -> None:
    """Write a graph, and its in-edges if they are given, to a folder: see `Graph.save`. Collective."""
    slices = _slices(graph, in_edges)
    write_store(path, graph.group, slices, lambda arrays: header_of(graph, arrays))


def read_store(path: StorePath, group: Group, *, verify: Verify = "auto") -> GraphArrays:
    """Open a stored graph: see `sigps.graph.load.open_store`. Collective."""
    started = time.perf_counter()
    store = together(lambda: OpenStore(path), group)
    if verify == "auto":
        states = together(store.file_states, group)
        if is_known(states, group):
            verify = "bounds"
    together(lambda: store.verify("full" if verify == "auto" else verify, group), group)
    if verify == "auto":
        remember(states)
    graph = _graph(store, group) if store.header.packing is None else packed_graph(store, group)
    graph.report = replace(
        store.header.report,
        format="store",
        source=paths_text(path),
        num_bytes=int(group.all_reduce(np.array([graph.nbytes]), "sum")[0]),
        seconds=time.perf_counter() - started,
    )
    return graph


def _slices(graph: GraphArrays, in_edges: InEdges | None) -> list[Slice]:
    """Return this rank's slices of all arrays. Collective."""
    group = graph.group
    counts = group.all_gather(int(graph.targets.size))
    first_edge = sum(counts[: group.rank])
    # The last rank writes the offset after the last row; on other ranks it is the next rank's first offset.
    offsets = graph.offsets if group.rank == group.size - 1 else graph.offsets[:-1]
    offsets = offsets + np.uint64(first_edge) if first_edge else offsets
    parts = [
        Slice("offsets", offsets, graph.first_row, graph.num_vertices + 1),
        Slice("targets", graph.targets, first_edge, graph.num_edges),
    ]
    columns = enumerate(graph.columns.values())
    parts += [Slice(f"column-{index}", column, first_edge, graph.num_edges) for index, column in columns]
    parts += vertex_slices(graph)
    if in_edges is not None:
        parts.append(Slice("in-offsets", in_edges.offsets, 0, graph.num_vertices + 1))
        parts.append(Slice("in-sources", in_edges.sources, 0, graph.num_edges))
        columns = enumerate(in_edges.columns.values())
        parts += [Slice(f"in-column-{index}", column, 0, graph.num_edges) for index, column in columns]
    return parts


def _graph(store: OpenStore, group: Group) -> GraphArrays:
    """Return the graph, on several ranks this rank's rows."""
    header = store.header
    offsets = store.array("offsets")
    bounds = _balanced(offsets, group.size)
    ends = [int(offsets[bound]) for bound in bounds]
    if ends != sorted(ends) or (ends[0], ends[-1]) != (0, header.num_edges):
        raise GraphError(f"{store.folder}: offsets.bin is damaged. Copy or write the store again")
    first, stop = int(bounds[group.rank]), int(bounds[group.rank + 1])
    edges = (ends[group.rank], ends[group.rank + 1])
    own_offsets = offsets[first : stop + 1]
    columns = {name: store.array(f"column-{index}", *edges) for index, name in enumerate(header.columns)}
    return GraphArrays(
        offsets=own_offsets - np.uint64(edges[0]) if edges[0] else own_offsets,
        targets=store.array("targets", *edges),
        columns=columns,
        num_edges=header.num_edges,
        directed=header.directed,
        ids=store.ids(bounds, group),
        row_bounds=bounds,
        group=group,
        report=header.report,
        by_target=_in_edges(store) if group.size == 1 else None,
        vertex_columns=store.vertex_columns(first, stop),
    )


def _in_edges(store: OpenStore) -> InEdges | None:
    if "in-offsets" not in store.header.arrays:
        return None
    offsets = store.array("in-offsets")
    if (int(offsets[0]), int(offsets[-1])) != (0, store.header.num_edges):
        raise GraphError(f"{store.folder}: in-offsets.bin is damaged. Copy or write the store again")
    columns = {name: store.array(f"in-column-{index}") for index, name in enumerate(store.header.columns)}
    return InEdges(offsets, store.array("in-sources"), columns)


def _balanced(offsets: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """Return row bounds of about equal cost (8 bytes a row, 4 an edge), found by bisection."""
    num_vertices = offsets.size - 1
    total = int(offsets[-1]) + 2 * num_vertices
    inner = [
        bisect.bisect_left(
            range(num_vertices), total * rank / size, key=lambda row: int(offsets[row]) + 2 * row
        )
        for rank in range(1, size)
    ]
    return np.array([0, *inner, num_vertices])
