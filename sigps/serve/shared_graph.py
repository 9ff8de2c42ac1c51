"""A graph in memory that processes share: one sealed file without a name, whose arrays each maps for reading."""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.arrays import GraphArrays
from sigps.graph.graph import Graph
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport
from sigps.group import Group

__all__ = ["SharedGraph", "bytes_to_share", "opened_graph"]

_PIECE_BYTES = 1 << 24
_ALIGNED = 4096
_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


class SharedGraph:
    """A copy of a graph's arrays that no process can change. The memory goes with the last that has it open.

    Args:
        graph: A graph of one process; O(bytes) to copy.

    Attributes:
        descriptor: Of the file.
        about: What `opened_graph` needs besides, plain values.
    """

    def __init__(self, graph: Graph) -> None:
        self.descriptor = os.memfd_create("sigps-graph", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.descriptor)
        arrays, end = {}, 0
        for name, array in _arrays(graph):
            end = -(-end // _ALIGNED) * _ALIGNED
            arrays[name] = [array.dtype.str, list(array.shape), end]
            _write(self.descriptor, array, end)
            end += array.nbytes
        os.ftruncate(self.descriptor, end)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS)
        self.about: dict[str, Any] = {
            "arrays": arrays,
            "num_vertices": graph.num_vertices,
            "num_edges": graph.num_edges,
            "directed": graph.directed,
            "base": graph.ids.base,
        }


def bytes_to_share(graph: Graph) -> int:
    """Return what a shared copy takes."""
    return sum(-(-array.nbytes // _ALIGNED) * _ALIGNED for _, array in _arrays(graph))


def opened_graph(descriptor: int, about: Mapping[str, Any], group: Group) -> Graph:
    """Return the graph of a shared file; nothing is copied, and its arrays cannot be written.

    Args:
        descriptor: Of the file.
        about: Of the `SharedGraph`.
        group: The ranks that hold it together: each has the rows of a share of the edges.
    """
    memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    arrays = {
        name: np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)
        if np.prod(shape)
        else np.empty(shape, dtype)
        for name, (dtype, shape, offset) in about["arrays"].items()
    }

    n, offsets = about["num_vertices"], arrays["offsets"]
    wanted = np.uint64(offsets[-1]) * np.arange(group.size + 1, dtype=np.uint64) // np.uint64(group.size)
    bounds = np.searchsorted(offsets, wanted).astype(np.int64)
    bounds[0], bounds[-1] = 0, n
    first, stop = bounds[group.rank : group.rank + 2].tolist()
    edges = slice(int(offsets[first]), int(offsets[stop]))

    def columns(kind: str, of: slice) -> dict[str, NDArray[Any]]:
        return {n.removeprefix(kind): array[of] for n, array in arrays.items() if n.startswith(kind)}

    table = arrays.get("ids")
    if table is None:
        ids = Ids.range(about["base"], n)
    elif group.size == 1:
        ids = Ids.of(table)
    else:
        ids = Ids.of(table[first:stop], group=group, row_bounds=bounds)
    return Graph.of(
        GraphArrays(
            offsets=offsets if group.size == 1 else offsets[first : stop + 1] - offsets[first],
            targets=arrays["targets"][edges],
            columns=columns("column ", edges),
            num_edges=about["num_edges"],
            directed=about["directed"],
            ids=ids,
            row_bounds=bounds,
            group=group,
            report=LoadReport(),
            vertex_columns=columns("vertex column ", slice(first, stop)),
        )
    )


def _arrays(graph: Graph) -> Iterator[tuple[str, NDArray[Any]]]:
    yield "offsets", graph.offsets
    yield "targets", graph.targets
    yield from ((f"column {name}", column) for name, column in graph.columns.items())
    yield from ((f"vertex column {name}", column) for name, column in graph.vertex_columns.items())
    if graph.ids.table is not None:
        yield "ids", graph.ids.table


def _write(descriptor: int, array: NDArray[Any], offset: int) -> None:
    """Write an array; not by a mapping, since a file that is mapped for writing cannot be sealed."""
    if not array.size:
        return
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    done = 0
    while done < raw.nbytes:
        done += os.pwrite(descriptor, raw[done : done + _PIECE_BYTES], offset + done)
