"""The memory of a run on a GPU: refused where its plan (`memory_plan.py`) does not fit, taken in one piece.

All that kernels work on lies in one block, and the states, which outlive the run, in another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cuda.compile import CudaProgram
from sigps.compiler.program import Consumption, Delivery
from sigps.device.cuda import check_fits, fits
from sigps.device.pinned_block import PinnedBlock
from sigps.device.transfers import bring_small, copy_within, send_small
from sigps.engine.gpu.beginning import cells_of
from sigps.engine.gpu.columns import array_at
from sigps.engine.gpu.direct_messages import DirectMessages
from sigps.engine.gpu.graph import GpuGraph
from sigps.engine.gpu.lease_template import lease_template
from sigps.engine.gpu.memory_plan import MemoryPlan
from sigps.engine.gpu.resident import make_room
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, RETIRED, SENDERS_BITMAP, SENDERS_NONE
from sigps.kernels.cuda.lease import (
    ARRIVED,
    CONTROL,
    FRONTIER_BITS,
    OVERFLOWED,
    REMAINING_AT,
    RUNNING,
    SENDING,
    STATS,
)
from sigps.kernels.direction import PULL, PUSH, choose_direction
from sigps.native.marshal import Packed

__all__ = ["RunMemory"]

_READ_AT_ONCE = 256
"""Statistics that come back with the counters, in one copy."""


class RunMemory:
    """The arrays of a run on the device, and the structure that tells kernels where they are.

    Args:
        compiled: The program.
        graph: The partition, on the device.
        params: The values of the program's parameters.
        has_cluster: Whether a cluster does small supersteps.
        goes_by_edge: Whether a work item is an edge.
        num_peers: GPUs that write into each other's memory, this one too; 0 where none do.
        pulls_alone: Whether nothing is pushed.
        take: Gives at least so many bytes that they can write to, and what its second argument takes beside them, which
            may raise: then all raise; None where there are none.

    Attributes:
        graph: The partition, on the device.
        lease: A `kernels.cuda.lease.LEASE`.
        states: [num_owned] each.
        direct: The direct messages of a program that sends them.
    """

    def __init__(
        self,
        compiled: CudaProgram,
        graph: GpuGraph,
        params: tuple[Any, ...],
        *,
        has_cluster: bool,
        goes_by_edge: bool = False,
        num_peers: int = 0,
        pulls_alone: bool = False,
        take: Callable[[int, Callable[[], tuple[Any, Any]]], tuple[Any, tuple[Any, Any]]] | None = None,
    ) -> None:
        self._compiled, self.graph = compiled, graph
        self._cells: NDArray[np.uint8] = np.empty(0, np.uint8)
        template = lease_template(
            compiled,
            graph,
            has_cluster=has_cluster,
            num_peers=num_peers,
            goes_by_edge=goes_by_edge,
            pulls_alone=pulls_alone,
        )
        self._plan = plan = template.plan
        wanted = plan.nbytes + plan.state_bytes + sum(template.to_commit.values())
        if not fits(wanted):
            make_room(wanted, graph.gpu)  # what this run has is in use, so it stays
        if take is None:
            if not fits(wanted):
                needed = {"messages and work": plan.nbytes, "state fields": plan.state_bytes}
                check_fits({**needed, **template.to_commit})
            self._block, self._state_block = _taken(plan.nbytes, plan.state_bytes)
            self._values = _pinned(plan)
        else:

            def take_own() -> tuple[Any, Any]:
                check_fits({"state fields": plan.state_bytes})
                return *_taken(plan.state_bytes), _pinned(plan)

            buffer, (self._state_block, self._values) = take(plan.nbytes, take_own)
            self._block = buffer.data
        on_host = self._values.pointer.ptr if self._values is not None else 0
        self.lease = template.at(self._block.ptr, self._state_block.ptr, on_host)
        self._tables, placed = _on_device(params)
        self._beginning, self._params = template.beginning, cells_of(placed)
        self.begin()
        self.states = self._states_in(self._state_block)
        if (
            compiled.program.consumption is Consumption.LISTED
            and "list0" in plan.offsets
            and "counts" not in plan.offsets
        ):
            copy_within(self.array("offsets", np.uint64), graph.list_offsets())
        if compiled.program.delivery is Delivery.DIRECT:
            # Not the method: a circle of references would keep the memory until the collector runs.
            array = functools.partial(_array, self._block, plan)
            self.direct = DirectMessages(compiled, self.lease, array, graph.num_owned)

    def begin(self) -> None:
        """Write what a run begins with, before superstep 0. Does not wait for the device."""
        blocks = [self._block, self._state_block]
        blocks += [self._values.pointer] if self._values is not None else []
        self._beginning.write(self.graph.gpu, blocks, self._params)

    def has(self, name: str) -> bool:
        """Tell whether the run has an array of this name."""
        return name in self._plan.offsets

    def offset(self, name: str) -> int:
        """Return where one of the run's arrays begins, in bytes from the beginning of all."""
        return self._plan.offsets[name]

    def array(self, name: str, dtype: Any) -> Any:
        """Return one of the run's arrays, as CuPy sees it."""
        return _array(self._block, self._plan, name, dtype)

    def edge_states(self) -> tuple[list[Any], list[Any]]:
        """Return the pending and the committed edge states, in the order of `WalkedRows`.

        The pending ones are [num_out_edges] each; the committed ones go on with the mirrors of other ranks'. They are
        arrays of the host where they lie there (`has_values_on_host`), which the device may be writing.
        """
        dtypes = self._compiled.program.edge_state_dtypes
        if not dtypes:
            return [], []
        walked = self.graph.walked
        counts = {"pending": walked.num_edges, "committed": walked.num_edges + walked.num_mirrored}
        if self._values is not None:
            values, places = self._values, self._plan.on_host
            pending, committed = (
                [values.array(places[f"{kind}{i}"], count, d) for i, d in enumerate(dtypes)]
                for kind, count in counts.items()
            )
            return pending, committed
        pending, committed = (
            [self.array(f"{kind}{i}", d)[:count] for i, d in enumerate(dtypes)]
            for kind, count in counts.items()
        )
        return pending, committed

    @property
    def has_values_on_host(self) -> bool:
        """Whether the edge states lie in pinned memory of the host."""
        return self._values is not None

    def set_senders(self, parity: int, sent: Any) -> None:
        """Let the supersteps of this parity read that these sent and no others: CuPy bools, [num_owned or num_lids]."""
        import cupy

        bits = self.array(f"sent{parity}", np.uint8)
        packed = cupy.packbits(sent, bitorder="little") if sent.size else bits[:0]
        bits[: packed.size] = packed
        bits[packed.size :] = 0

    def set_next(
        self,
        superstep: int,
        sent_edges: int,
        gain: int,
        *,
        has_retired: bool,
        has_active: bool = False,
        retired_edges: int = 0,
        counts_idle: bool = False,
        pull_cost: int | None = None,
        crosses: bool = False,
    ) -> Any:
        """Write what the next launch begins with: a superstep whose senders are given as bits.

        Args:
            superstep: Its number.
            sent_edges: Out-edges of the senders.
            gain: How many in-edges a pull passes while a push delivers one message.
            has_retired: Whether a push must check which targets have retired.
            has_active: Whether vertices are active: a push then scans all vertices for them.
            retired_edges: What has retired; 0 where nobody asks.
            counts_idle: Whether it counts where no vertex runs.
            pull_cost: In-edges and vertices that a pull passes, on all GPUs; None for those here.
            crosses: Whether a push ends with what crosses to other ranks after the launch (`crossing.py`).

        Returns:
            The control structure that was written.
        """
        can_push = superstep > 0 and self.has("inboxes0")
        forced = int(self.lease["forced"])
        if pull_cost is None:
            pull_cost = int(self.lease["num_in_edges"]) + self.graph.num_owned
        direction = choose_direction(sent_edges, 0, 0, pull_cost, 0, gain, forced, can_push)
        control = np.zeros((), dtype=CONTROL)
        upcoming = control["next"]
        upcoming["superstep"], upcoming["direction"] = superstep, direction
        upcoming["full_scan"] = direction == PUSH and has_active
        may_have_senders = superstep > 0 and self._compiled.program.delivery is not Delivery.NONE
        upcoming["sender_filter"] = SENDERS_BITMAP if may_have_senders else SENDERS_NONE
        upcoming["frontier"], upcoming["any_retired"] = FRONTIER_BITS, has_retired
        upcoming["retired_edges"], upcoming["counts_idle"] = retired_edges, counts_idle
        upcoming["mean_degree"] = min(sent_edges, np.iinfo(np.uint32).max)  # nobody counted the senders
        if crosses and direction == PUSH:
            upcoming["remaining"] = SENDING
        send_small(self.array("control", np.uint8), control.tobytes())
        return control

    def read_back(self) -> tuple[Any, Any]:
        """Wait for the device; return its control structure and the statistics of the last lease."""
        import cupy

        offsets, sizes = self._plan.offsets, self._plan.sizes
        begin, address = offsets["control"], int(self.lease["control"])
        first, aggregates_at = offsets["stats"] - begin, offsets["aggregates"] - begin
        seen = bring_small(address, first + _READ_AT_ONCE * STATS.itemsize)
        control = np.frombuffer(seen, CONTROL, 1)[0]  # not a view: NumPy would look at every field
        self._cells = seen[aggregates_at : aggregates_at + sizes["aggregates"]]
        count = int(control["num_stats"])
        if count > _READ_AT_ONCE:
            return control, cupy.asnumpy(self.array("stats", np.uint8)[: count * STATS.itemsize]).view(STATS)
        return control, np.frombuffer(seen, STATS, count, first)

    def aggregate_values(self, like: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the aggregators' values, as they were set or read back last, each of the type it has in `like`."""
        found, at = [], 0
        for value in like:
            number, count = np.dtype(value.dtype), max(1, value.size)
            cells = np.frombuffer(self._cells, np.uint8, 8 * count, at)
            if value.ndim:
                numbers = cells.reshape(-1, 8)[:, : number.itemsize].copy().view(number)[:, 0]
                found.append(Packed.of(numbers, np.dtype((number, value.shape))))
            else:
                found.append(np.frombuffer(cells, number, 1)[0])
            at += cells.size
        return tuple(found)

    def set_aggregates(self, values: tuple[Any, ...]) -> None:
        """Set the values that compute() reads in the next superstep."""
        self._cells = np.frombuffer(cells_of(values), np.uint8)
        self.array("aggregates", np.uint8)[: self._cells.size].set(self._cells)

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return int((self.array("status", np.uint8) != RETIRED).sum())

    def retired_edges(self) -> int:
        """Return the out-edges of vertices that have retired, each with one at least, as kernels count them."""
        retired = self.array("status", np.uint8)[: self.graph.num_owned] == RETIRED
        return int(self.graph.out_degrees[: self.graph.num_owned][retired].clip(1).sum(dtype=np.uint64))

    def wake_all(self, control: Any) -> None:
        """Make halted vertices active, after a superstep and whether or not it was the last.

        Args:
            control: The device's control structure, as `read_back` returned it.
        """
        import cupy

        status = self.array("status", np.uint8)
        # Not by a mask as an index: its positions would be counted first.
        status[:] = cupy.where(status == HALTED, np.uint8(ACTIVE), status)
        self._go_on(control, direction=PULL, full_scan=0, num_small=0)

    def _go_on(self, control: Any, **changes: int) -> None:
        """Let a lease go on that ended, with some fields of the next superstep changed."""
        resumed = control.copy()
        for name, value in {"ending": RUNNING, **changes}.items():
            resumed["next"][name] = value
        self.array("control", np.uint8).set(np.frombuffer(resumed.tobytes(), np.uint8))

    def go_on_with_arrivals(self) -> None:
        """Let the next launch go on with a push of which other ranks' messages have arrived."""
        remaining = self.array("control", np.uint8)[REMAINING_AT : REMAINING_AT + 4]
        remaining.set(np.array([ARRIVED], dtype=np.uint32).view(np.uint8))

    def resume(self, control: Any) -> None:
        """Let a superstep go on with the vertices that found no capacity for their direct messages."""
        self._go_on(control, remaining=OVERFLOWED)

    def make_answers(self) -> list[Any] | None:
        """Return arrays as those of the states; None where they do not fit."""
        if not self.states or not fits(self._plan.state_bytes):
            return None
        return self._states_in(*_taken(self._plan.state_bytes))

    def _states_in(self, block: Any) -> list[Any]:
        kept, n = zip(self._compiled.states, self._plan.states, strict=True), self.graph.num_owned
        return [array_at(block + at, n, dtype) for dtype, at in kept]


def _taken(*sizes: int) -> list[Any]:
    """Return where memory of the device begins that runs on any stream gave back: they have waited for it by then."""
    import cupy

    with cupy.cuda.Stream.null:
        return [cupy.cuda.alloc(max(1, num_bytes)) for num_bytes in sizes]


def _pinned(plan: MemoryPlan) -> PinnedBlock | None:
    return PinnedBlock(plan.host_bytes, "values on edges") if plan.host_bytes else None


def _array(block: Any, plan: MemoryPlan, name: str, dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    return array_at(block + plan.offsets[name], plan.sizes[name] // dtype.itemsize, dtype)


def _on_device(params: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the tables among parameters on the device, and all values: a table is where it lies, and its length."""
    import cupy

    tables, values = [], list[Any]()
    for value in params:
        if isinstance(value, tuple):
            tables.append(cupy.asarray(value[0]))
            values += [np.uint64(tables[-1].data.ptr), value[1]]
        else:
            values.append(value)
    return tables, values
