"""What a run keeps in the memory of a GPU: refused where its plan (`gpu_plan.py`) does not fit, taken in one piece.

All that the engine's kernels work on lies in one block, and the states, which outlive the run, in another. What
the kernels are told of it (`kernels/lease.cuh`) is the same for every run of a program on a graph, but for where
the two blocks begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.engine.gpu.edges import fill_walked
from sigps.engine.gpu.memory_plan import RunPlan, Sizes, bytes_to_show, mail_arrays, plan_run
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import DeviceError
from sigps.kernels.cuda.abi import ARGUMENTS
from sigps.kernels.cuda.lease import (
    ACTIVE,
    CONTROL,
    FRONTIER_BITS,
    HALTED,
    LEASE,
    OVERFLOWED,
    PULL,
    PUSH,
    RETIRED,
    RUNNING,
    SENDERS_BITMAP,
    SENDERS_NONE,
    STATS,
)

if TYPE_CHECKING:
    from sigps.compiler.cuda.compile import CudaProgram
    from sigps.engine.gpu.graph import GpuGraph

__all__ = ["RunMemory", "check_fits", "free_bytes"]

_READ_AT_ONCE = 256
"""Statistics that come back with the counters, in one copy."""


def check_fits(needed: Mapping[str, int]) -> None:
    """Refuse what the GPU has no memory for, before any of it is taken.

    Args:
        needed: Bytes by what they are for.

    Raises:
        DeviceError: If they are more than what is free; it names them, and the ways out.
    """
    import cupy

    total = sum(needed.values())
    if total <= cupy.get_default_memory_pool().free_bytes():
        return
    free = free_bytes()
    if total > free:
        parts = ", ".join(f"{size:,} for {what}" for what, size in needed.items())
        raise DeviceError(
            f"the GPU has {free:,} bytes free and this run needs {total:,} ({parts}). "
            "precision='single' and fewer edge columns take less; device='cpu' uses the host's memory",
            rank=0,
        )


def free_bytes() -> int:
    """Return what the current GPU has free, CuPy's reserve among it."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes())


@dataclass(frozen=True, eq=False)
class _Template:
    """A lease for any run of a program on a graph: to be moved to where its two blocks begin."""

    plan: RunPlan
    lease: NDArray[np.uint64]
    in_run: NDArray[np.intp]
    in_states: NDArray[np.intp]


_FAR = 1 << 40

_SINGLE = (
    *("status", "wrote", "targets", "senders", "hubs", "offsets"),
    *("totals", "carried", "aggregates", "control", "stats"),
)


def _template(
    compiled: CudaProgram,
    graph: GpuGraph,
    subgraph: Subgraph,
    has_cluster: bool,
    num_peers: int,
    goes_by_edge: bool,
) -> _Template:
    known: dict[Any, _Template] = graph.kept
    program = compiled.program
    key = compiled, has_cluster, num_peers, goes_by_edge
    if key not in known:
        sizes = Sizes(
            graph.places.size,
            subgraph.incoming.ends.size,
            graph.num_hubs,
            num_places=graph.num_places,
            num_peers=num_peers,
            num_out_edges=graph.walked.num_edges if program.reads_edges else 0,
            num_copies=graph.walked.num_copies if program.reads_edges else 0,
            num_everywhere=subgraph.num_vertices,
        )
        plan = plan_run(compiled, sizes, has_cluster=has_cluster, goes_by_edge=goes_by_edge)
        here, run, states = (
            _lease(compiled, graph, subgraph, plan, *bases, goes_by_edge, num_peers)
            .reshape(1)
            .view(np.uint64)
            for bases in ((0, 0), (_FAR, 0), (0, _FAR))
        )
        known[key] = _Template(plan, here, np.flatnonzero(run != here), np.flatnonzero(states != here))
    return known[key]


def _lease(
    compiled: CudaProgram,
    graph: GpuGraph,
    subgraph: Subgraph,
    plan: RunPlan,
    run: int,
    states: int,
    goes_by_edge: bool,
    num_peers: int,
) -> Any:
    """Fill in what kernels are told, for blocks that begin at `run` and `states`."""
    program = compiled.program
    narrow = compiled.defines["SIGPS_ID"] == "int32_t"
    lease = np.zeros((), dtype=LEASE)

    def at(name: str) -> int:
        return run + plan.offsets[name] if name in plan.offsets else 0

    for name, edges in (("in_arguments", graph.incoming), ("out_arguments", graph.outgoing)):
        arguments = np.zeros((), dtype=ARGUMENTS)
        arguments["num_vertices"], arguments["num_edges"] = subgraph.num_vertices, subgraph.num_edges
        arguments["params"], arguments["aggregates"] = at("params"), at("aggregates")
        arguments["ids"] = graph.ids(narrow).data.ptr
        arguments["out_degrees"] = graph.out_degrees.data.ptr
        arguments["in_degrees"] = graph.incoming.rows.degrees.data.ptr
        for i, column in enumerate(program.edge_columns):
            arguments["columns"][i] = edges.column(column).data.ptr
        for i, offset in enumerate(plan.states):
            arguments["states"][i] = states + offset
        for i in range(len(compiled.message)):
            arguments["lists"][i] = at(f"list{i}")
        for kind in ("num_direct", "direct_kinds", "direct_targets", "direct_senders", "direct_messages"):
            arguments[kind] = at(kind)
        arguments["direct_capacity"] = Sizes(graph.places.size, 0, 0).mail_room
        if program.reads_edges:
            fill_walked(arguments, graph, program, at)
        lease[name] = arguments
    lease["in_edges"], lease["out_edges"] = graph.incoming.structure(), graph.outgoing.structure()
    lease["num_owned"], lease["num_lids"] = graph.places.size, graph.num_places
    lease["num_hubs"] = graph.num_hubs
    rows = graph.incoming.rows
    if program.delivery is not Delivery.DIRECT:  # whose vertices have no bits to set
        by_warp = program.consumption is Consumption.LISTED or program.reads_neighbors
        lease["num_block_rows"] = rows.num_heavy if by_warp else rows.num_block_rows
    lease["could_send"], lease["num_in_edges"] = graph.could_send, subgraph.incoming.ends.size
    lease["pull_cost"] = subgraph.incoming.ends.size + graph.places.size
    if goes_by_edge:
        lease["num_positions"], lease["edge_targets"] = rows.num_positions, graph.incoming.targets.data.ptr
    for i, aggregator in enumerate(program.aggregators):
        lease["persistent"] |= np.uint32(aggregator.persistent << i)
    for i in range(2):
        for name in ("sent", "records", "inboxes", "touched"):
            lease[name][i] = at(f"{name}{i}")
    for name in _SINGLE:
        lease[name] = at(name)
    mail = lease["direct"]
    mail["lids_of_gids"] = (graph.places_of_gids() if num_peers else graph.places).data.ptr
    for name in ("messages", "counts", "block_sums", "overflowed"):
        mail[name] = at(name)
    if program.delivery is Delivery.DIRECT:
        mail["sorted_ids"], mail["lids_of_ids"] = graph.sorted_ids()
    return lease


def _to_show(program: VertexProgram, graph: GpuGraph) -> dict[str, int]:
    """Return what is taken for a while when others are shown what was written on edges, by what it is for."""
    if not program.edge_states or graph.walked.bounds is None:
        return {}
    walked = graph.walked
    return {"what crosses of edges": bytes_to_show(walked.num_edges, walked.num_asked, walked.num_copies)}


class RunMemory:
    """What a run keeps on the device, and the structure that tells kernels where it is.

    Args:
        compiled: The program.
        graph: The partition, on the device.
        params: The values of the program's parameters.
        subgraph: The partition.
        has_cluster: Whether a cluster does small supersteps.
        goes_by_edge: Whether a work item is an edge.
        num_peers: GPUs that write into each other's memory, this one too; 0 where none do.
        take: Gives at least so many bytes that they can write to; None where there are none.

    Attributes:
        lease: A `kernels.lease.LEASE`.
        states: [num_owned] each, by place.
        num_places: Places of records: of owned vertices, and of ghosts.
    """

    def __init__(
        self,
        compiled: CudaProgram,
        graph: GpuGraph,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        *,
        has_cluster: bool,
        goes_by_edge: bool = False,
        num_peers: int = 0,
        take: Callable[[int], Any] | None = None,
    ) -> None:
        import cupy

        self._compiled, self._graph = compiled, graph
        self.num_places = graph.num_places
        template = _template(compiled, graph, subgraph, has_cluster, num_peers, goes_by_edge)
        self._plan = plan = template.plan
        if take is None:
            needed = {"messages and work": plan.nbytes, "state fields": plan.state_bytes}
            check_fits(needed | _to_show(compiled.program, graph))
            self._block = cupy.empty(max(1, plan.nbytes), dtype=cupy.uint8)
        else:
            self._block = take(plan.nbytes)
            check_fits({"state fields": plan.state_bytes})
        self._state_block = cupy.empty(max(1, plan.state_bytes), dtype=cupy.uint8)
        words = template.lease.copy()
        words[template.in_run] += np.uint64(self._block.data.ptr)
        words[template.in_states] += np.uint64(self._state_block.data.ptr)
        self.lease = words.view(LEASE).reshape(())
        self._more: list[Any] = []
        self._block.data.memset_async(0, plan.num_zeros)
        self.states = self._filled_states()
        for kept, seen, field in zip(*self.kept_on_edges(), compiled.program.edge_states, strict=True):
            kept.fill(field.default)
            seen.fill(field.default)
        identities = [a.field.dtype().type(a.identity) for a in compiled.program.aggregators]
        starts = [a.field.dtype().type(a.start) for a in compiled.program.aggregators]
        self._begin(_cells(starts), _cells(identities), _cells(params))
        for name in ("inboxes0", "inboxes1"):
            if name in plan.offsets and compiled.neutral:
                self._empty(name, compiled.neutral)
        if compiled.program.consumption is Consumption.LISTED and "counts" not in plan.offsets:
            self.array("offsets", np.uint64)[:] = graph.list_offsets()

    def offset(self, name: str) -> int:
        """Return where one of the run's arrays begins, in bytes from the beginning of all."""
        return self._plan.offsets[name]

    def array(self, name: str, dtype: Any) -> Any:
        """Return one of the run's arrays, as CuPy sees it."""
        offset = self._plan.offsets[name]
        size = self._plan.sizes[name]
        return self._block[offset : offset + size].view(dtype)

    def kept_on_edges(self) -> tuple[list[Any], list[Any]]:
        """Return what vertices keep on edges, and what others see of it, as compute() walks.

        The first are [num_out_edges] each; the second go on with what neighbours on other ranks keep.
        """
        dtypes = self._compiled.program.edge_state_dtypes
        if not dtypes:
            return [], []
        walked = self._graph.walked
        counts = {"pending": walked.num_edges, "committed": walked.num_edges + walked.num_copies}
        own, seen = (
            [self.array(f"{kind}{i}", d)[:count] for i, d in enumerate(dtypes)]
            for kind, count in counts.items()
        )
        return own, seen

    def set_senders(self, parity: int, sent: Any) -> None:
        """Let the supersteps of this parity read that these sent, a CuPy array of bools by place, and no others."""
        import cupy

        bits = self.array(f"sent{parity}", np.uint8)
        packed = cupy.packbits(sent, bitorder="little") if sent.size else bits[:0]
        bits[: packed.size] = packed
        bits[packed.size :] = 0

    def plan(
        self, superstep: int, sent_edges: int, gain: int, *, has_retired: bool, has_active: bool = False
    ) -> Any:
        """Write the plan of a superstep whose senders are known as bits; return the control structure.

        Args:
            superstep: Its number.
            sent_edges: Out-edges of the senders.
            gain: How many in-edges a pull passes while a push delivers one message.
            has_retired: Whether a push has to ask who has retired.
            has_active: Whether vertices are active, which this superstep then finds by a pull.
        """
        forced, edges = int(self.lease["forced"]), int(self.lease["num_in_edges"])
        is_cheap = sent_edges * gain < edges + self._graph.places.size
        can_push = superstep > 0 and not has_active and "inboxes0" in self._plan.offsets
        pushes = can_push and (is_cheap or forced == 2) and forced != 1
        control = np.zeros((), dtype=CONTROL)
        plan = control["next"]
        plan["superstep"], plan["direction"] = superstep, PUSH if pushes else PULL
        plan["sender_filter"] = SENDERS_BITMAP if superstep else SENDERS_NONE
        plan["frontier"], plan["any_retired"] = FRONTIER_BITS, has_retired
        self.array("control", np.uint8).set(np.frombuffer(control.tobytes(), np.uint8))
        return control

    def read_back(self) -> tuple[Any, Any]:
        """Wait for the device; return its control structure and the statistics of the last lease."""
        import cupy

        begin, stats_at = self._plan.offsets["control"], self._plan.offsets["stats"]
        seen = cupy.asnumpy(self._block[begin : stats_at + _READ_AT_ONCE * STATS.itemsize])
        control = seen[: CONTROL.itemsize].view(CONTROL)[0]
        count = int(control["num_stats"])
        if count > _READ_AT_ONCE:
            return control, cupy.asnumpy(self.array("stats", np.uint8)[: count * STATS.itemsize]).view(STATS)
        first = stats_at - begin
        return control, seen[first : first + count * STATS.itemsize].view(STATS)

    def aggregate_values(self, like: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the aggregators' values, each of the type it has in `like`."""
        import cupy

        cells = cupy.asnumpy(self.array("aggregates", np.uint64))
        return tuple(cells[i : i + 1].view(value.dtype)[0] for i, value in enumerate(like))

    def set_aggregates(self, values: tuple[Any, ...]) -> None:
        """Let compute() read these in the next superstep."""
        cells = np.frombuffer(_cells(values), np.uint8)
        self.array("aggregates", np.uint8)[: cells.size].set(cells)

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return int((self.array("status", np.uint8) != RETIRED).sum())

    def wake_all(self, control: Any) -> None:
        """Make halted vertices active, after a superstep and whether or not it was the last.

        Args:
            control: The device's control structure, as `read_back` returned it.
        """
        import cupy

        status = self.array("status", np.uint8)
        # Not by a mask as an index, whose places would be counted first.
        status[:] = cupy.where(status == HALTED, np.uint8(ACTIVE), status)
        self._go_on(control, direction=PULL, full_scan=0, num_small=0)

    def _go_on(self, control: Any, **changes: int) -> None:
        """Let a lease go on that ended, with a plan that says something else."""
        resumed = control.copy()
        for name, value in {"ending": RUNNING, **changes}.items():
            resumed["next"][name] = value
        self.array("control", np.uint8).set(np.frombuffer(resumed.tobytes(), np.uint8))

    def make_mail_room(self, control: Any) -> None:
        """Give a superstep that ran out of room for mail more of it, and let it go on.

        Whoever found no room runs again: what it posted before is dropped.

        Raises:
            DeviceError: If there is no memory for so much mail.
        """
        import cupy

        larger = self.wanted_mail_room()
        arrays = mail_arrays(self._compiled, larger, larger)
        check_fits({f"the mail of superstep {int(control['next']['superstep'])}": sum(arrays.values())})
        self.move_mail(larger, lambda: {name: cupy.empty(n, dtype=cupy.uint8) for name, n in arrays.items()})
        self.resume(control)

    @property
    def mail_room(self) -> int:
        """How much mail may be posted."""
        return int(self.lease["in_arguments"]["direct_capacity"])

    def wanted_mail_room(self) -> int:
        """Return how much room for mail there should be after a superstep that ran out of it; no less than there is."""
        room, wanted = self.mail_room, int(self.mail("num_direct", np.uint64)[0])
        return max(2 * room, wanted + wanted // 4) if wanted > room else room

    def move_mail(self, room: int, take: Callable[[], Mapping[str, Any]]) -> None:
        """Move what was posted, but by those who found no room, and what has arrived to other arrays.

        Args:
            room: How much may be posted in these.
            take: Gives them by name, as `mail_arrays` names them, as bytes; after what was posted has been copied.
        """
        import cupy

        n = self._graph.places.size
        count = min(self.mail_room, int(self.mail("num_direct", np.uint64)[0]))
        again = cupy.unpackbits(self.array("overflowed", np.uint8), bitorder="little")[:n].view(cupy.bool_)
        stays = ~again[self.mail("direct_senders", np.uint32)[:count]]
        kept = int(stays.sum())
        posted = {}
        for name, width in mail_arrays(self._compiled, 1, 0).items():
            if name.startswith("direct_"):
                rows = self.mail(name, np.uint8)[: count * width].reshape(count, width)
                posted[name] = rows[stays].ravel()
        for name, new in take().items():
            old = posted[name] if name in posted else self.mail(name, np.uint8)
            new[: old.size] = old
            self._use(name, new)
        self.mail("num_direct", np.uint64)[0] = kept
        self.lease["in_arguments"]["direct_capacity"] = room

    def resume(self, control: Any) -> None:
        """Let a superstep go on with those who found no room for their mail."""
        self._go_on(control, remaining=OVERFLOWED)

    def make_room_for(self, num_mails: int) -> None:
        """Give the mailbox room for so much mail, before there is any."""
        import cupy

        if num_mails <= self.mail_room:
            return
        arrays = mail_arrays(self._compiled, num_mails, num_mails)
        check_fits({"mail": sum(arrays.values())})
        for name, size in arrays.items():
            self._use(name, cupy.empty(size, dtype=cupy.uint8))
        self.lease["in_arguments"]["direct_capacity"] = num_mails

    def mail(self, name: str, dtype: Any) -> Any:
        """Return one of the arrays that grow with the mail."""
        grown = [array for known, array in self._more if known == name]
        return grown[-1].view(dtype) if grown else self.array(name, dtype)

    def _use(self, name: str, array: Any) -> None:
        self._more = [(known, kept) for known, kept in self._more if known != name] + [(name, array)]
        arguments = self.lease["in_arguments"]
        if name.startswith("list"):
            arguments["lists"][int(name.removeprefix("list"))] = array.data.ptr
        elif name == "messages":
            self.lease["direct"]["messages"] = array.data.ptr
        else:
            arguments[name] = array.data.ptr

    def _filled_states(self) -> list[Any]:
        states, n = [], self._graph.places.size
        fields = zip(self._compiled.program.states, self._compiled.states, self._plan.states, strict=True)
        for field, dtype, offset in fields:
            values = self._state_block[offset : offset + n * dtype.itemsize].view(dtype)
            values.fill(field.default)
            states.append(values)
        return states

    def _begin(self, starts: bytes, identities: bytes, params: bytes) -> None:
        """Write what a run begins with: the first plan, and small values; they lie together."""
        offsets = self._plan.offsets
        first = offsets["control"]
        head = np.zeros(offsets["stats"] - first, dtype=np.uint8)
        control = np.zeros((), dtype=CONTROL)
        control["next"]["frontier"] = FRONTIER_BITS
        named = {
            "control": control.tobytes(),
            "aggregates": starts,
            "params": params,
            "carried": identities,
        }
        for name, values in named.items():
            at = offsets[name] - first
            head[at : at + len(values)] = np.frombuffer(values, np.uint8)
        self._block[first : offsets["stats"]].set(head)

    def _empty(self, name: str, neutral: bytes) -> None:
        width = max(w for w in (8, 4, 2, 1) if len(neutral) % w == 0)
        words = np.frombuffer(neutral, dtype=f"u{width}")
        rows = self.array(name, words.dtype).reshape(-1, words.size)
        for i, word in enumerate(words):
            rows[:, i] = word


def _cells(values: Sequence[Any]) -> bytes:
    """Return 8-byte cells, a scalar in the low bytes of each; at least one."""
    return b"".join(value.tobytes().ljust(8, b"\0") for value in values) or bytes(8)
