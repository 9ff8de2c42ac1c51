"""Values on edges of a part whose rows stay packed: committed by kernels, and what changed brought to other ranks.

Kernels (`kernels/cuda/crossing_values.cu`) look at rows that wrote alone, wherever their values lie. An edge that leads
to a row of another rank is named by its number among those (`CrossingEdges`), so who has the copy need not look for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.device.cuda import Gpu, check_fits
from sigps.device.transfers import bring_small, send_small
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.crossing_plan import Entry, bytes_to_cross, entries_at_a_time, entry_of
from sigps.engine.gpu.edge_states import swap_for
from sigps.engine.gpu.packed_edges import PackedGraph
from sigps.engine.gpu.placed_edges import layout_kernel
from sigps.engine.gpu.run_memory import RunMemory

__all__ = ["CrossingValues"]

_DOES_NOT_CROSS = (1 << 64) - 1
_NO_CHUNK = (1 << 64) - 1
_CHUNK_EDGES = 1024  # of a warp

_FIELDS = (
    *("columns", "num_columns", "offsets", "num_rows", "wrote", "before"),
    *("num_ranks", "capacity", "entry_bytes", "entries", "counts", "left"),
)
_VALUES = np.dtype([(name, np.uint64) for name in _FIELDS])
"""`Values` of the kernels."""


class CrossingValues:
    """The values on edges of a run on one of several ranks.

    Args:
        program: The program.
        graph: The part.
        memory: The run's.
        exchange: The way to the other ranks.
        gpu: The GPU.
    """

    def __init__(
        self, program: VertexProgram, graph: PackedGraph, memory: RunMemory, exchange: Exchange, gpu: Gpu
    ) -> None:
        import cupy

        self._exchange, self._gpu = exchange, gpu
        self._crossing, size = graph.walked.crossing, exchange.size
        self._num_edges, self._num_rows = graph.walked.num_edges, graph.num_owned
        entry, most = entry_of(program), 0 if self._crossing is None else self._crossing.most
        self._capacity, self._entry_bytes = entries_at_a_time(most, size), entry.num_bytes
        check_fits({"values that cross": bytes_to_cross(program, most, self._num_rows, size)})
        self._entries = cupy.empty(max(1, size * self._capacity * entry.num_bytes), dtype=cupy.uint8)
        self._counts = cupy.empty(size + 1, dtype=cupy.uint64)
        self._columns = cupy.asarray(_columns_of(program, entry, memory.lease))
        self._before = graph.edges_before() if self._crossing is not None else None
        self._offsets, self._wrote = graph.row_offsets(), memory.array("wrote", np.uint32)
        values: Any = np.zeros((), dtype=_VALUES)
        for name in ("columns", "offsets", "wrote", "before", "entries", "counts"):
            array = getattr(self, f"_{name}")
            values[name] = 0 if array is None else array.data.ptr
        values["num_columns"], values["num_rows"] = len(program.edge_states), self._num_rows
        values["num_ranks"] = 0 if self._crossing is None else size
        values["capacity"], values["entry_bytes"] = self._capacity, entry.num_bytes
        values["left"] = self._counts.data.ptr + 8 * size
        self._values = values

    def note_all(self) -> None:
        """Let the next `commit` look at all edges."""
        self._wrote.data.memset_async(0xFF, self._wrote.nbytes)

    def commit(self) -> int:
        """Commit what vertices wrote since the last time; return the bytes that left this rank. Collective."""
        if self._crossing is None:
            self._list_from(0)
            self._forget()
            return 0
        first, num_bytes, is_done = 0, 0, False
        while not is_done:
            counts, left = self._listed_from(first)
            gathered = self._exchange.gather(np.array([counts.sum(), left < _NO_CHUNK], dtype=np.int64))
            if gathered[:, 0].any():
                num_bytes += self._swap(counts.tolist())
            is_done = not gathered[:, 1].any()
            first = left
        self._forget()
        return num_bytes

    def _listed_from(self, first: int) -> tuple[Any, int]:
        """List what changed from a chunk of edges on; return how many there are for each rank, and where more is."""
        if first * _CHUNK_EDGES >= self._num_edges:
            return np.zeros(self._exchange.size, dtype=np.int64), _NO_CHUNK
        self._list_from(first)
        found = bring_small(self._counts.data.ptr, self._counts.nbytes).view(np.uint64)
        return np.minimum(found[:-1], self._capacity).astype(np.int64), int(found[-1])

    def _list_from(self, first: int) -> None:
        begin = np.zeros(self._exchange.size + 1, dtype=np.uint64)
        begin[-1] = _NO_CHUNK
        send_small(self._counts, begin.tobytes())
        num_chunks = -(-self._num_edges // _CHUNK_EDGES) - first
        given = self._values, np.uint32(self._exchange.rank), np.uint64(first)
        self._launch("commit_values_warp_mapped", 32 * num_chunks, given)

    def _swap(self, counts: Sequence[int]) -> int:
        """Bring entries to the ranks that they are for, and those that arrive to their copies."""
        import cupy

        crossing, size = self._crossing, self._entry_bytes
        assert crossing is not None
        begins = [rank * self._capacity * size for rank in range(len(counts))]
        parts = [self._entries[at : at + n * size] for at, n in zip(begins, counts, strict=True)]
        arrived = swap_for(cupy, self._exchange)(parts)
        for part, first in zip(arrived, crossing.first_copies.tolist(), strict=True):
            count = part.size // size
            given = self._values, part, np.uint64(count), np.uint64(self._num_edges + first)
            self._launch("take_values_thread_mapped", count, given)
        return sum(counts) * size

    def _forget(self) -> None:
        self._wrote.data.memset_async(0, self._wrote.nbytes)

    def _launch(self, name: str, num_threads: int, given: Any) -> None:
        if num_threads > 0:
            blocks = max(1, min(self._gpu.num_sms * 8, -(-num_threads // 256)))
            layout_kernel(name, self._gpu, "crossing_values").launch(blocks, 256, given)


def _columns_of(program: VertexProgram, entry: Entry, lease: Any) -> NDArray[np.uint64]:
    """Return `Column` of the kernels for each edge state."""
    found = []
    for i, (dtype, place) in enumerate(zip(program.edge_state_dtypes, entry.places, strict=True)):
        where = (int(lease["in"][kind][i]) for kind in ("pending", "committed"))
        found.append([*where, dtype.itemsize, _DOES_NOT_CROSS if place is None else place])
    return np.array(found, dtype=np.uint64)
