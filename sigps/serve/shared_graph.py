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
from sigps.group import Alone

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


def opened_graph(descriptor: int, about: Mapping[str, Any]) -> Graph:
    """Return the graph of a shared file; nothing is copied, and its arrays cannot be written."""
    memory = mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    arrays = {
        name: np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)
        if np.prod(shape)
        else np.empty(shape, dtype)
        for name, (dtype, shape, offset) in about["arrays"].items()
    }

    def columns(kind: str) -> dict[str, NDArray[Any]]:
        return {name.removeprefix(kind): array for name, array in arrays.items() if name.startswith(kind)}

    n = about["num_vertices"]
    table = arrays.get("ids")
    return Graph.of(
        GraphArrays(
            offsets=arrays["offsets"],
            targets=arrays["targets"],
            columns=columns("column "),
            num_edges=about["num_edges"],
            directed=about["directed"],
            ids=Ids.range(about["base"], n) if table is None else Ids.of(table),
            row_bounds=np.array([0, n]),
            group=Alone(),
            report=LoadReport(),
            vertex_columns=columns("vertex column "),
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
