"""Values on edges beside rows that stay packed: a block of them for each block of rows, in memory or in a file.

A block has the values that its vertices keep (pending), and copies of those that the other ends of its edges keep, of
the states that compute() reads there (`edge.reverse`), as of the superstep's begin. So a block is computed from its own
values alone. What its vertices changed waits for the blocks of the other ends (`change_log.py`), which take it when
they are read next: both go to where they lie only where they changed. On several ranks each has the blocks of its rows,
and what changed on edges to rows of others crosses when the superstep ends (`crossing_changes.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.edge_reads import states_read_of_reverse
from sigps.compiler.program import VertexProgram
from sigps.device.cpu import Threads
from sigps.engine.cpu.blocks import Blocks
from sigps.engine.cpu.change_log import ChangeLog, Changes
from sigps.engine.cpu.crossing_changes import CrossingChanges
from sigps.engine.cpu.spill import SpillFile, require_disk
from sigps.engine.cpu.value_sizes import change_bytes, log_rooms, value_bytes
from sigps.engine.exchange import Exchange
from sigps.engine.partition.edge_list import moved, require_symmetry
from sigps.engine.partition.edge_states import check_names
from sigps.engine.partition.streamed import StreamedEdges
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cpu.edge_values import find_places, list_changes, mark_changes, place_values
from sigps.model.vertex import Field

__all__ = ["KeptOnEdges", "ValueBlocks"]

Arrays = tuple[NDArray[Any], ...]


class _Block(NamedTuple):
    """A block that a thread computes: `ends` are rows of all ranks, `before` its pending values as they were."""

    number: int
    ends: NDArray[np.uint32]
    pending: Arrays
    of_reverse: Arrays
    before: Arrays


class ValueBlocks:
    """The edge states of a partition whose rows stream, of an undirected graph in the given order.

    All ranks make theirs together.

    Args:
        program: The program.
        edges: The rows.
        blocks: What unpacks them.
        threads: The crew.
        exchange: The way to the other partitions.
        room: Bytes of memory for values and those that wait; the others are in files. None for no limit.

    Attributes:
        wrote: [rows], 1 where a vertex wrote to its edges in this superstep.

    Raises:
        GraphError: If an edge column has the name of an edge state.
        DeviceError: If neither memory nor disk has room.
    """

    is_mirrored = False

    def __init__(
        self,
        program: VertexProgram,
        edges: StreamedEdges,
        blocks: Blocks,
        threads: Threads,
        exchange: Exchange,
        room: int | None,
    ) -> None:
        check_names(program.edge_states, edges.rows.packed.columns)
        self._fields, self._blocks, self._threads = program.edge_states, blocks, threads
        self._names_reverse = program.reads_reverse
        self._dtypes = program.edge_state_dtypes
        self._read = states_read_of_reverse(program)
        self._offsets, self.first_rows = edges.offsets, edges.rows.first_rows
        self.wrote = np.zeros(edges.offsets.size - 1, dtype=np.uint8)
        begins = edges.offsets[edges.rows.first_rows].astype(np.int64)
        self._arcs, self._begins = np.diff(begins), begins
        an_edge = value_bytes(program)
        self._bytes_an_edge, self._num_edges = an_edge, edges.num_edges
        rooms = log_rooms(program, edges.num_edges, room, exchange.size)
        dtypes = [self._dtypes[i] for i in self._read]
        self._log = ChangeLog(edges.rows.first_rows, dtypes, rooms.here, exchange.rank)
        self._crossing: CrossingChanges | None = None
        self._first_row = np.uint64(0)
        if exchange.size > 1 and dtypes:
            bounds = np.cumsum([0, *exchange.gather(np.array([self.wrote.size]))[:, 0]])
            self._first_row = np.uint64(bounds[exchange.rank])
            longest = int(self._arcs.max(initial=0))
            self._crossing = CrossingChanges(exchange, bounds, dtypes, rooms.crossing, longest)
        kept = an_edge * edges.num_edges if room is None else max(0, room - rooms.both)
        num_kept = int(np.searchsorted(begins[1:] * an_edge, kept, side="right"))
        self._kept = [self._room(int(arcs)) for arcs in self._arcs[:num_kept]]
        self._file: SpillFile | None = None
        in_files = 0
        if num_kept < self._arcs.size:
            in_files = (self._num_edges - int(begins[num_kept])) * an_edge
            num_waits = 2 + (exchange.size > 1)  # of two supersteps, and of those that cross between them
            in_files += num_waits * change_bytes(program) * self._num_edges
        require_disk(in_files, exchange)  # collective: also where nothing is in files
        if in_files:
            self._file = SpillFile(exchange.rank)
        self._is_stored = np.zeros((2, self._arcs.size), dtype=np.bool_)  # pending; of the other ends
        self._of_thread, self._counting, self._moved_bytes = threading.local(), threading.Lock(), 0
        self._numbers = np.arange(self._arcs.max(initial=0) if self._names_reverse else 0, dtype=np.int64)

    def nothing(self) -> tuple[Any, ...]:
        """Return what compute() walks beside the edges of no block."""
        empty = tuple(np.empty(0, dtype=dtype) for dtype in self._dtypes)
        return self._walked(empty, tuple(empty[i] for i in self._read), 0)

    def open(self, number: int) -> tuple[Any, ...]:
        """Bring the values of the block that this thread unpacked last; return what compute() walks beside edges."""
        pending, before = self._pending(number)
        ends = self._blocks.walked[1]
        of_reverse = self._of_reverse(number, ends)
        self._of_thread.block = _Block(number, ends, pending, of_reverse, before)
        return self._walked(pending, of_reverse, int(self._begins[number]))

    def close(self) -> None:
        """Note what vertices of this thread's block changed, and store it."""
        block: _Block = self._of_thread.block
        first, end = self._rows_of(block.number)
        if not self.wrote[first:end].any():
            return
        changed = np.zeros(self._arcs[block.number], dtype=np.uint8)
        columns = list(zip(block.pending, block.before, strict=True))
        rows = np.uint64(first), np.uint64(end), self._offsets, self.wrote
        marked = sum(self._mark(rows, *columns[i], changed) for i in self._read)
        if marked:
            self._put(rows, block, changed, int(np.count_nonzero(changed)))
        others = (columns[i] for i in range(len(columns)) if i not in self._read)
        if marked or any([self._mark(rows, *pair, changed) for pair in others]):
            self._store(block.number, block.pending, of_reverse=False)
        self.wrote[first:end] = 0

    def undo(self, vertex: int) -> None:
        """Drop what was written in this superstep on a vertex's edges: it computes once more."""
        block: _Block = self._of_thread.block
        first = int(self._begins[block.number])
        own = slice(int(self._offsets[vertex]) - first, int(self._offsets[vertex + 1]) - first)
        for new, old in zip(block.pending, block.before, strict=True):
            new[own] = old[own]

    def __call__(self) -> int:
        """Let blocks take what changed in this superstep; return the bytes that left this rank. Collective."""
        num_bytes = 0 if self._crossing is None else self._crossing.cross(self._log)
        self._log.commit()
        self._threads.map(self._take_now, self._log.crowded(self._arcs).tolist())
        return num_bytes

    def take_moved_bytes(self) -> int:
        """Return the bytes of values that were read from files, or written there, since the last call."""
        with self._counting:
            found, self._moved_bytes = self._moved_bytes, 0
        spilled = 0 if self._crossing is None else self._crossing.take_spilled()
        return found + spilled + self._log.take_spilled()

    def kept(self, index: int) -> KeptOnEdges:
        """Return the values of an edge state, [edges], as an array made when it is asked for."""
        return KeptOnEdges(lambda: self._all_of(index))

    def save(self, subgraph: Subgraph) -> tuple[NDArray[np.int64], Arrays]:
        """Return copies for a snapshot: the gid of each edge's owner, and the pending values."""
        return subgraph.sources_of_edges(), tuple(self._all_of(i) for i in range(len(self._fields)))

    def restore(self, subgraph: Subgraph, sources: NDArray[np.int64], values: Arrays) -> None:
        """Take saved values, whatever the order of the vertices, and commit them; before superstep 0. Collective.

        Raises:
            ValueError: If there is not one of each for each edge.
        """
        order = np.argsort(subgraph.local_ids(sources), kind="stable")
        if not np.array_equal(sources[order], subgraph.sources_of_edges()):
            raise ValueError("it does not hold a value for each edge")

        def set_all(number: int) -> None:
            self._blocks.block(number)
            self.open(number)
            own = order[self._begins[number] : self._begins[number + 1]]
            for pending, saved in zip(self._of_thread.block.pending, values, strict=True):
                pending[...] = saved[own]
            first, end = self._rows_of(number)
            self.wrote[first:end] = 1
            self.close()

        self._threads.map(set_all, range(self._arcs.size))
        self()

    def _walked(self, pending: Arrays, of_reverse: Arrays, first: int) -> tuple[Any, ...]:
        """Return `edges[5]` of `compiler/program.py`: the value of the other end lies where the edge's own does."""
        nothing, no_rows = np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.uint64)
        committed = [np.empty((0, *values.shape[1:]), dtype=values.dtype) for values in pending]
        for i, values in zip(self._read, of_reverse, strict=True):
            committed[i] = values
        reverse = moved(self._numbers, first) if self._names_reverse else self._numbers
        states = tuple(moved(values, first) for values in pending), tuple(committed)
        return nothing, no_rows, nothing, nothing, reverse, *states

    def _pending(self, number: int) -> tuple[Arrays, Arrays]:
        """Return a block's pending values, and copies of them."""
        before, room, _ = self._rooms(number)
        if number < len(self._kept):
            room = self._kept[number][0]
        else:
            self._load(number, room, of_reverse=False)
        for old, new in zip(before, room, strict=True):
            old[...] = new
        return room, before

    def _of_reverse(self, number: int, ends: NDArray[np.uint32]) -> Arrays:
        """Return the values of the other ends of a block's edges, up to date."""
        _, _, room = self._rooms(number)
        if number < len(self._kept):
            room = self._kept[number][1]
        else:
            self._load(number, room, of_reverse=True)
        self._take_changes(number, ends, room)
        return room

    def _rooms(self, number: int) -> tuple[Arrays, Arrays, Arrays]:
        """Return this thread's room for a block: pending values as they were, as they are, and of the other ends."""
        size, of_thread = int(self._arcs[number]), self._of_thread
        if not hasattr(of_thread, "rooms"):
            longest = int(self._arcs.max())
            rooms = self._room(longest) if self._file is not None else ((), ())
            of_thread.rooms = self._room(longest)[0], *rooms
        before, pending, of_reverse = (tuple(values[:size] for values in room) for room in of_thread.rooms)
        return before, pending, of_reverse

    def _room(self, num_arcs: int) -> tuple[Arrays, Arrays]:
        """Return values of so many edges, as they are at first: those kept, and those of the other ends."""
        kept = tuple(np.full(num_arcs, f.default, dtype=d) for f, d in self._pairs())
        return kept, tuple(kept[i].copy() for i in self._read)

    def _pairs(self) -> list[tuple[Field, np.dtype[Any]]]:
        return list(zip(self._fields, self._dtypes, strict=True))

    def _rows_of(self, number: int) -> tuple[int, int]:
        first, end = self.first_rows[number : number + 2].tolist()
        return first, end

    def _load(self, number: int, values: Arrays, *, of_reverse: bool) -> None:
        if not self._is_stored[int(of_reverse), number]:
            fields = [self._fields[i] for i in self._read] if of_reverse else self._fields
            for column, field in zip(values, fields, strict=True):
                column[...] = field.default
            return
        assert self._file is not None
        at = self._place_of(number, of_reverse=of_reverse)
        for column in values:
            at = self._file.read(at, column)
        self._count(values)

    def _store(self, number: int, values: Arrays, *, of_reverse: bool) -> None:
        if number < len(self._kept):
            return
        assert self._file is not None
        at = self._place_of(number, of_reverse=of_reverse)
        for column in values:
            at = self._file.write(at, column)
        self._is_stored[int(of_reverse), number] = True
        self._count(values)

    def _count(self, values: Arrays) -> None:
        with self._counting:
            self._moved_bytes += sum(column.nbytes for column in values)

    def _place_of(self, number: int, *, of_reverse: bool) -> int:
        kept = sum(dtype.itemsize for dtype in self._dtypes) * int(self._arcs[number])
        return int(self._begins[number]) * self._bytes_an_edge + (kept if of_reverse else 0)

    def _mark(
        self, rows: tuple[Any, ...], new: NDArray[Any], old: NDArray[Any], changed: NDArray[np.uint8]
    ) -> int:
        found: int = mark_changes(*rows, np.uint64(new[:1].size), _as_bits(new), _as_bits(old), changed)
        return found

    def _put(self, rows: tuple[Any, ...], block: _Block, changed: NDArray[np.uint8], count: int) -> None:
        """Let changed values wait for the blocks of the other ends."""
        targets, sources, places = (np.empty(count, dtype=np.uint32) for _ in range(3))
        here, others = list_changes(*rows, block.ends, changed, self._first_row, targets, sources, places)

        def listed(own: slice) -> Changes:
            columns = tuple(block.pending[i][places[own]] for i in self._read)
            return Changes(
                targets[own].copy(), sources[own].copy(), columns
            )  # views would keep all that is listed

        self._log.put(listed(slice(int(here))))
        if self._crossing is not None:
            self._crossing.put(listed(slice(int(others), None)))

    def _take_changes(self, number: int, ends: NDArray[np.uint32], of_reverse: Arrays) -> None:
        """Bring values of the other ends up to date."""
        first, came = np.uint64(self._begins[number]), False
        for targets, sources, columns in self._log.take(number):
            came = True
            places = np.empty(targets.size, dtype=np.uint64)
            require_symmetry(find_places(targets, sources, self._offsets, ends, places))
            given = targets, sources, places, self._offsets, ends, first
            for values, kept in zip(columns, of_reverse, strict=True):
                place_values(*given, np.uint64(kept[:1].size), _as_bits(values), _as_bits(kept))
        if came:
            self._store(number, of_reverse, of_reverse=True)

    def _take_now(self, number: int) -> None:
        self._blocks.block(number)
        self._of_reverse(number, self._blocks.walked[1])

    def _all_of(self, index: int) -> NDArray[Any]:
        """Return a copy of the pending values of an edge state, [edges]."""
        field, dtype = self._pairs()[index]
        found = np.full(self._num_edges, field.default, dtype=dtype)
        before = sum(dtype.itemsize for dtype in self._dtypes[:index])
        for number, arcs in enumerate(self._arcs.tolist()):
            own = found[self._begins[number] : self._begins[number + 1]]
            if number < len(self._kept):
                own[...] = self._kept[number][0][index]
            elif self._is_stored[0, number]:
                assert self._file is not None
                self._file.read(self._place_of(number, of_reverse=False) + before * arcs, own)
        return found


class KeptOnEdges:
    """Values on edges that are brought together when they are read as an array."""

    def __init__(self, make: Callable[[], NDArray[Any]]) -> None:
        self._make = make

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self._make(), dtype=dtype)


def _as_bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(-1).view(f"u{values.dtype.itemsize}")
