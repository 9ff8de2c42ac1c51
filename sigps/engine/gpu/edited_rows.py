"""Rows of edges in the memory of a GPU that change where they lie (`kernels/cuda/editing_rows.cuh`).

Each row lies in one piece with some room behind it, in any order, or in that of ids. A batch takes out the edges that
it deletes, puts those that it inserts behind a row's last, or to their places, and moves a row that outgrows its room
behind all others: a launch, by counters and lists on the device, which finds the edges itself where deletes are given
by their ends. When rows have used what was left behind them, all are copied to larger arrays.

A batch crosses in one copy from pinned memory, with the counters that it begins with.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import Gpu, Kernel, check_fits
from sigps.device.shared_copies import copying, in_parts
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.gpu.placed_edges import PlacedEdges
from sigps.kernels.cuda.abi import structure

__all__ = ["PART", "THREADS", "BatchMemory", "EditedRows", "RowEdges", "num_blocks"]

_ROW_SLACK = 16
"""A row gets room for one part in so many more edges when rows are copied."""
_SLACK, _LEAST_ROOM = 8, 1 << 12
"""Arrays have room for one part in so many more edges behind all rows, and for so many at least."""
THREADS = 256
_BLOCKS_OF_SM = 4
_ALIGNMENT = 16
PART = 512
"""Edges of a long row that a warp takes."""

_IDS = np.dtype(np.uint32)
_BATCH, _COUNTS = structure("Batch").dtype, structure("LiveCounts").dtype


@dataclass(frozen=True, eq=False)
class RowEdges:
    """Edges by local ids on the device.

    Attributes:
        rows: [edges], uint32: whose row an edge is in.
        ends: [edges], uint32: its other end.
        weights: [edges], of the type of the column; None where rows have none.
    """

    rows: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    weights: NDArray[Any] | None


def num_blocks(gpu: Gpu, work_items: int, threads_of_item: int = 1) -> int:
    """Return how many blocks to launch; so many are resident at once."""
    return max(1, min(gpu.num_sms * _BLOCKS_OF_SM, -(-work_items * threads_of_item // THREADS)))


class EditedRows:
    """Rows that change.

    Args:
        placed: Where they lie at first; its arrays are changed, and replaced where they become too small.
        column: The name of the number that edges have; None where they have none.
        kernels: Those of `live.cu`.
        gpu: The GPU.

    Attributes:
        used: Places that are taken.
    """

    def __init__(
        self, placed: PlacedEdges, column: str | None, kernels: Mapping[str, Kernel], gpu: Gpu
    ) -> None:
        import cupy

        self.placed, self._column, self._kernels, self._gpu = placed, column, kernels, gpu
        num_rows = placed.degrees_on_host.size
        self._pending, self._taken = cupy.zeros(num_rows, np.uint32), cupy.empty(num_rows, np.uint32)
        self.copy_rows(0)

    @property
    def _weights(self) -> Any:
        return self.placed.ends if self._column is None else self.placed.column(self._column)

    @property
    def weight_type(self) -> np.dtype[Any]:
        """The type of the number that edges have."""
        found: np.dtype[Any] = np.dtype(self._weights.dtype.name)
        return found

    def fill(self, rows: Any) -> None:
        """Write where rows lie to a `ChangingRows`."""
        placed = self.placed
        arrays = {
            "begins": placed.rows.offsets,
            "degrees": placed.rows.degrees,
            "ends": placed.ends,
            "weights": self._weights,
            "room": self._room,
            "pending": self._pending,
            "taken": self._taken,
        }
        for name, array in arrays.items():
            rows[name] = array.data.ptr
        rows["size"] = self._size

    def copy_rows(self, more: int) -> None:
        """Copy all rows to arrays with room behind each, and for so many more edges behind all. Waits."""
        import cupy

        rows, num_rows = self.placed.rows, self.placed.degrees_on_host.size
        placed, self._room = cupy.empty(rows.num_csr_rows + 1, np.uint64), cupy.empty(num_rows, np.uint32)
        taken = cupy.zeros(1, dtype=cupy.uint64)
        self._kernels["make_room_thread_mapped"].launch(
            num_blocks(self._gpu, placed.size),
            THREADS,
            (
                np.uint32(num_rows), np.uint32(placed.size), rows.degrees, np.uint32(_ROW_SLACK), placed, self._room,
                taken,
            ),
        )  # fmt: skip
        self.used = used = int(cupy.asnumpy(taken)[0])
        self._size = used + max(used // _SLACK, _LEAST_ROOM) + more
        weights = self._weights
        weight_bytes = 0 if self._column is None else weights.itemsize
        check_fits({"rows with room behind them": (4 + weight_bytes) * self._size})
        ends = cupy.empty(self._size, dtype=cupy.uint32)
        moved = ends if self._column is None else cupy.empty(self._size, dtype=weights.dtype)
        self._kernels["copy_rows_warp_mapped"].launch(
            num_blocks(self._gpu, num_rows, 32),
            THREADS,
            (
                np.uint32(num_rows), rows.offsets, rows.degrees, self.placed.ends, weights, placed, ends, moved,
            ),
        )  # fmt: skip
        self.placed.replace(
            replace(rows, offsets=placed, num_positions=self._size),
            ends,
            {} if self._column is None else {self._column: moved},
        )


class BatchMemory:
    """Where a batch lies, on the host and on the device.

    Args:
        sides: The out-edges, and the in-edges where they are others.
        hub_degree: Vertices with more out-edges are hubs.
        order: [num_owned], uint32, on the host: by what in-edges of a row ascend (of measures out-edges, too); None
            where they have no order.

    Attributes:
        sides: As they were given.
        batch: A `Batch` of `changing_rows.cuh`.
    """

    def __init__(
        self, sides: tuple[EditedRows, ...], hub_degree: int, order: NDArray[np.uint32] | None
    ) -> None:
        import cupy

        self.sides = sides
        self._again: Any = None
        self._pinned: Any = None
        self._num_pinned = 0
        self._on_device: Any = None
        self._placed_for: tuple[int, ...] = ()
        self.batch = np.zeros((), dtype=_BATCH)
        self.batch["num_sides"], self.batch["hub_degree"] = len(sides), hub_degree
        if order is not None:
            self._order = cupy.asarray(order)
            self.batch["order"] = self._order.data.ptr
        self.point()

    def point(self) -> None:
        """Take note of where rows lie."""
        for side, rows in enumerate(self.sides):
            rows.fill(self.batch["sides"][side])

    def send(self, inserts: RowEdges, deletes: RowEdges) -> None:
        """Let the next launches read these edges, by their sources. Does not wait for the device.

        They have read the batch before: the host has read the counters since.
        """
        batch, parts = self.batch, list[Any]()
        self._again = None  # there is room for all
        batch["by_ends"] = 0
        batch["num_deletes"], batch["num_inserts"] = deletes.rows.size, inserts.rows.size
        outward, inward = batch["sides"][0], batch["sides"][1]
        for kind, edges in (("deleted", deletes), ("new", inserts)):
            parts.append(((outward, f"{kind}_rows"), (inward, f"{kind}_ends"), edges.rows, _IDS))
            parts.append(((outward, f"{kind}_ends"), (inward, f"{kind}_rows"), edges.ends, _IDS))
            if edges.weights is not None:
                parts.append(((batch, f"{kind}_weights"), None, edges.weights, edges.weights.dtype))
        self._place(parts, most_removed=deletes.rows.size)

    def staged(self, num_inserts: int, num_deletes: int) -> tuple[Any, Any, NDArray[Any]]:
        """Return arrays of pinned memory; `send_ends` does not copy them, where it is given all of them.

        Returns:
            Sources and targets to insert; those to delete; weights.
        """
        sizes = [num_deletes, num_deletes, num_inserts, num_inserts, num_inserts]
        *ends, (_, weights) = self._in_pinned(
            zip(sizes, [*4 * [_IDS], self.sides[0].weight_type], strict=True)
        )
        arrays = [array for _, array in ends]
        return arrays[2:], arrays[:2], weights

    def _in_pinned(self, wanted: Iterable[tuple[int, np.dtype[Any]]]) -> list[tuple[int, NDArray[Any]]]:
        """Return arrays of pinned memory of so many numbers, and where they begin, one behind the other."""
        import cupy

        begins, size = [], _COUNTS.itemsize
        for count, kind in (given := list(wanted)):
            begins.append(size)
            size += _padded(count * kind.itemsize)
        if self._num_pinned < size:
            self._num_pinned = max(size + size // 2, 1 << 16)
            self._pinned = cupy.cuda.alloc_pinned_memory(self._num_pinned)
        return [
            (begin, np.frombuffer(self._pinned, kind, count, begin))
            for begin, (count, kind) in zip(begins, given, strict=True)
        ]

    def send_ends(
        self,
        inserts: EdgeChanges,
        deletes: EdgeChanges,
        weights: NDArray[Any] | None,
        *,
        lids: Any,
        mirrors: bool,
        drops_loops: bool,
        drops_repeats: bool,
        beside: Sequence[tuple[tuple[Any, str], NDArray[Any]]] = (),
        removed: int = 0,
    ) -> None:
        """Let the next launches read edges as they are given. Does not wait for the device; see `send`.

        Args:
            inserts: Edges to insert, by gid.
            deletes: Ends between which all edges are deleted before, by gid.
            weights: [inserts], of any type that fits that of the column; None where edges have none.
            lids: [num_owned], uint32, on the device: the local id of each gid; None where local ids are given.
            mirrors: Whether an edge is in the rows of both its ends.
            drops_loops: Whether no edge is inserted from a vertex to itself.
            drops_repeats: Whether no edge is inserted that is there already, or a second time.
            beside: Where to note the places of arrays that cross as well, and these.
            removed: As many edges are taken out, at least.
        """
        batch, sides, kind = self.batch, 1 + mirrors, self.sides[0].weight_type
        options = {"mirrors": mirrors, "drops_loops": drops_loops, "drops_repeats": drops_repeats}
        self._again = functools.partial(
            self.send_ends, inserts, deletes, weights, lids=lids, beside=beside, **options
        )
        batch["by_ends"], batch["lids"] = 1, 0 if lids is None else lids.data.ptr
        for name, value in options.items():
            batch[name] = value
        num_deletes, num_inserts = sides * deletes.sources.size, sides * inserts.sources.size
        batch["num_deletes"], batch["num_inserts"] = num_deletes, num_inserts
        parts: list[Any] = [
            ((batch, f"{what}_{name}"), None, getattr(edges, name), _IDS)
            for what, edges in (("deleted", deletes), ("new", inserts))
            for name in ("sources", "targets")
        ]
        if weights is not None:
            parts.append(((batch, "given_weights"), None, weights, kind))
        parts += [(note, None, values, values.dtype) for note, values in beside]
        parallel = 0 if drops_repeats or not num_deletes else num_deletes + _LEAST_ROOM
        self._place(parts, most_removed=max(num_deletes + parallel, removed))

    def _place(self, parts: list[Any], *, most_removed: int) -> None:
        """Find places for what a batch brings, and for what it comes to, and send it.

        Args:
            parts: Where to note the place of an array, where else, the array, and the type in which it crosses.
            most_removed: Room for edges that are taken out.
        """
        import cupy

        batch = self.batch
        self._counts = np.zeros((), dtype=_COUNTS)
        batch["most_removed"] = most_removed
        parts = [part for part in parts if part[-2].size]
        self._there = [part for part in parts if isinstance(part[-2], cupy.ndarray)]  # until they are read
        parts = [part for part in parts if not isinstance(part[-2], cupy.ndarray)]
        pinned = self._in_pinned([(values.size, kind) for *_, values, kind in parts])
        num_sent, placed, unsent = _COUNTS.itemsize, [], []
        for (at, place), (*notes, values, kind) in zip(pinned, parts, strict=True):
            placed.append((notes, at))
            num_sent = at + _padded(values.size * kind.itemsize)
            if not np.may_share_memory(place, values):  # else it was staged
                unsent.append(copying(place, values))
        in_parts(*unsent)
        self._place_scratch(num_sent)
        first = self._on_device.data.ptr
        for notes, at in placed:
            _note(notes, first + at)
        for *notes, values, _ in self._there:
            _note(notes, values.data.ptr)
        self._copy(num_sent)

    def _place_scratch(self, begin: int) -> None:
        """Find places on the device for what a batch comes to, behind what it brings; as those before, if it is alike.

        To write some thirty of them down takes 40 us.
        """
        import cupy

        batch, sides = self.batch, self.batch["sides"][: len(self.sides)]
        names = "num_deletes", "num_inserts", "most_removed", "by_ends"
        alike = begin, *(int(batch[name]) for name in names), *(int(side["size"]) for side in sides)
        if alike == self._placed_for:
            return
        _, num_deletes, num_inserts, most_removed, by_ends, *_ = alike
        most = max(num_deletes, num_inserts)  # touched rows; and of tables, where repeats are dropped
        kind = self.sides[0].weight_type
        scratch: list[Any] = [([(batch, "hole_weights")], kind.itemsize * most_removed)]
        if by_ends:
            outward, inward = batch["sides"][0], batch["sides"][1]
            scratch += [
                ([(outward, f"{name}_{this}"), (inward, f"{name}_{other}")], 4 * count)
                for name, count in (("deleted", num_deletes), ("new", num_inserts))
                for this, other in (("rows", "ends"), ("ends", "rows"))
            ]
            scratch += [([(batch, "new_weights")], kind.itemsize * num_inserts)]
            scratch += [([(batch, "left_out")], 4 * num_inserts)]
        for side in sides:
            scratch += [([(side, name)], 4 * most_removed) for name in ("holes", "hole_rows", "hole_ends")]
            most_parts = 2 * (int(side["size"]) + num_inserts) // PART
            scratch += [([(side, name)], 4 * most) for name in ("touched", "counts")]
            scratch += [([(side, "places")], 8 * most), ([(side, "parts")], 8 * most_parts)]
            scratch += [([(side, "slots")], 16 * most), ([(side, "wanted")], 4 * num_deletes)]
        size, placed = begin, []
        for notes, num_bytes in scratch:
            if num_bytes:
                placed.append((notes, size))
                size += _padded(num_bytes)
        if self._on_device is None or self._on_device.size < size:
            self._on_device = cupy.empty(max(size + size // 2, 1 << 16), dtype=cupy.uint8)
        first = self._on_device.data.ptr
        for notes, at in placed:
            _note(notes, first + at)
        batch["counts"] = first
        self._placed_for = alike

    def begin_anew(self, found: Any) -> None:
        """Let the batch go on, for which there is room now, from what it came to: a `LiveCounts`."""
        most = int(found["num_removed"].max())
        if most > int(self.batch["most_removed"]):
            self._again(removed=2 * most)
            return
        for name in ("num_removed", "fewer_hubs"):
            self._counts[name] = found[name]
        self._counts["are_deleted"] = 1
        self._copy(_COUNTS.itemsize)

    def _copy(self, num_bytes: int) -> None:
        import cupy

        for side, rows in enumerate(self.sides):
            self._counts["num_used"][side] = rows.used
        counts = np.frombuffer(self._pinned, np.uint8, _COUNTS.itemsize)
        counts[:] = np.frombuffer(self._counts.tobytes(), np.uint8)
        runtime, stream = cupy.cuda.runtime, cupy.cuda.get_current_stream().ptr
        runtime.memcpyAsync(
            self._on_device.data.ptr, self._pinned.ptr, num_bytes, runtime.memcpyHostToDevice, stream
        )

    def read(self) -> Any:
        """Wait for the device, and return the counters, a `LiveCounts`."""
        import cupy

        return cupy.asnumpy(self._on_device[: _COUNTS.itemsize]).view(_COUNTS)[0]


def _note(notes: Iterable[Any], address: int) -> None:
    """Write an address to fields of structures."""
    for of, name in filter(None, notes):
        of[name] = address


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
