"""Edges that stay in a packed store, as loops read them: unpacked by the thread that uses them, into its own cache."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import missing_column
from sigps.kernels.cpu.arguments import Edges

__all__ = ["Blocks"]


class Blocks:
    """In-edges by target in blocks of rows, each of one page, or of the pages that a long row spans.

    What one thread was given holds until it asks for the next block.

    Args:
        edges: The edges.
        program: The program, which reads some columns; a missing weight is 1.0 everywhere.
        ids: The ids that compute() sees; empty where they are local ids.

    Attributes:
        spans: The vertices of each block.
        packed_bytes: What each block takes in the store.
        counting: For those that count blocks in several threads.
    """

    def __init__(self, edges: StreamedEdges, program: VertexProgram, ids: NDArray[np.int64]) -> None:
        self._rows, self._program, self._ids = edges.rows, program, ids
        types = {name: column.dtype for name, column in edges.rows.packed.columns.items()}
        names = {*program.edge_columns, *program.read_columns}
        self._types = {name: types[name] for name in names if name in types}
        self._absent = {
            name: missing_column(name, edges.num_edges, types) for name in names if name not in types
        }
        self._stops = edges.offsets[1:]
        bounds = edges.rows.first_rows.astype(np.uint64)
        self.spans = list(itertools.pairwise(bounds))
        held = tuple(self._types)
        self.packed_bytes = [4 * edges.rows.words_of(number, held) for number in range(len(self.spans))]
        self._of_thread = threading.local()
        self.counting = threading.Lock()

    def __len__(self) -> int:
        return len(self.spans)

    def nothing(self) -> Edges:
        """Return the edges of no block: for loops that read none."""
        return self._edges(
            np.empty(0, dtype=np.uint32), {n: np.empty(0, d) for n, d in self._types.items()}, 0
        )

    def block(self, number: int) -> Edges:
        """Unpack a block, and return its edges at the positions that they have among all.

        Raises:
            GraphError: If the store is damaged.
        """
        ends, columns = self._scratch()
        first, stop = (int(self._rows.offsets[int(row)]) for row in self.spans[number])
        own = {name: column[: stop - first] for name, column in columns.items()}
        self._rows.unpack(number, ends[: stop - first], own)
        return self._edges(ends[: stop - first], own, first)

    def _edges(self, ends: NDArray[np.uint32], columns: dict[str, NDArray[Any]], first: int) -> Edges:
        found = {name: _moved(values, first) for name, values in columns.items()} | self._absent
        messages = tuple(found[name] for name in self._program.edge_columns)
        block = Edges(self._rows.offsets, _moved(ends, first), messages, self._stops)
        walked: tuple[Any, ...] = ()
        if self._program.reads_edges:
            ids = _moved(self._ids[ends], first) if self._ids.size else block.ends
            walked = block.offsets, block.ends, ids, tuple(found[name] for name in self._program.read_columns)
        self._of_thread.walked = walked
        return block

    @property
    def walked(self) -> tuple[Any, ...]:
        """The out-edges of this thread's last block as compute() walks them (`engine.cpu.work.walked_edges`)."""
        found: tuple[Any, ...] = self._of_thread.walked
        return found

    def _scratch(self) -> tuple[NDArray[np.uint32], dict[str, NDArray[Any]]]:
        """Return this thread's room for the longest block."""
        if not hasattr(self._of_thread, "scratch"):
            most = self._rows.most_arcs
            columns = {name: np.empty(most, dtype) for name, dtype in self._types.items()}
            self._of_thread.scratch = np.empty(most, dtype=np.uint32), columns
        found: tuple[NDArray[np.uint32], dict[str, NDArray[Any]]] = self._of_thread.scratch
        return found


class _At:
    """An array by its address, as NumPy takes it."""

    def __init__(self, values: NDArray[Any], address: int, size: int) -> None:
        self._values = values  # lives as long as what NumPy makes of this
        self.__array_interface__ = {
            "version": 3,
            "typestr": values.dtype.str,
            "shape": (size,),
            "data": (address, False),
        }


def _moved(values: NDArray[Any], first: int) -> NDArray[Any]:
    """Return an array whose elements from `first` on are these values; those before are not there.

    So loops find edges at their positions among all, which `Edges.offsets` has, with a part of them in memory. Only
    elements that are there may be read.
    """
    address = (values.ctypes.data - first * values.itemsize) % 2**64
    return np.asarray(_At(values, address, first + values.size))
