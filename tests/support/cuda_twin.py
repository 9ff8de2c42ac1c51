"""A GPU's work without one: adapters compiled for the host run on this process's memory, by the plain schedule.

What `gather_reference.cu` does for every vertex stands here a second time, in Python; `run_plainly` is the host
that fills `Arguments` and calls one superstep after another, by any function that runs one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from host_cpp import host_functions
from numpy.typing import NDArray

from sigps import Graph, Vertex
from sigps.compiler.cpu.native import compile_for_cpu
from sigps.compiler.cuda import compile as cuda
from sigps.compiler.cuda.adapters import Layout, num_cells
from sigps.compiler.cuda.functions import Functions
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.kernels.cuda.abi import ARGUMENTS, FAULT_OF_EDGE, FAULT_SHIFT, HALT, OVERFLOW, RETIRE, SENT, WROTE
from sigps.kernels.cuda.lease import FAULT_BITS, NO_VERTEX, OF_SENDER

IDLE, PASSES = 255, 1

NO_NARROW_ID = -(2**31)
"""What None is in memory where ids take 32 bits."""


@dataclass
class Memory:
    """All that a superstep reads and writes, on the host; rows as bytes, [count, size]."""

    layout: Layout
    pointers: dict[str, Any]
    offsets: Any
    sources: Any
    messages: Any
    status: Any
    sent: Any
    records: Any
    next_sent: Any
    next_records: Any
    given: Any
    ran: Any
    num_vertices: int
    num_edges: int
    direct_capacity: int
    fault: int = 0
    keep: list[Any] = field(default_factory=list)

    def keep_fault(self, v: int, fault: int) -> None:
        """Keep a fault as `faults.cuh` does."""
        if fault:
            self.fault = max(self.fault, (~v & NO_VERTEX) << FAULT_BITS | fault)

    def keep_fault_of_edge(self, source: int, target: int, brought: int) -> None:
        """Keep a fault of what `sigps_deliver` returned, as `faults.cuh` does."""
        is_senders = bool(brought & FAULT_OF_EDGE)
        before, self.fault = self.fault, 0
        self.keep_fault(source if is_senders else target, brought >> FAULT_SHIFT)
        self.fault = max(before, self.fault | (OF_SENDER if is_senders else 0))

    def arguments(self, address: Callable[[Any], int], columns: str = "columns") -> Any:
        """Return filled `Arguments`; `address` tells where an array lies.

        Args:
            address: Returns the address of an array.
            columns: The edge columns that messages need: "columns", by in-edge, or "pushed_columns", by out-edge.
        """
        arguments = np.zeros((), ARGUMENTS)
        arguments["num_vertices"], arguments["num_edges"] = self.num_vertices, self.num_edges
        arguments["direct_capacity"] = self.direct_capacity
        pointers = {**self.pointers, "columns": self.pointers.get(columns, [])}
        pointers.pop("pushed_columns", None)
        for name, value in pointers.items():
            if isinstance(value, list):
                for i, array in enumerate(value):
                    arguments[name][i] = address(array)
            else:
                arguments[name] = address(value)
        return arguments


Superstep = Callable[[Memory, int], None]


def layout_of(program: VertexProgram, columns: dict[str, Any], narrow_ids: bool) -> Layout:
    """Return where a program's data lie, with types found for the CPU."""
    native = compile_for_cpu(program, columns)
    used = tuple(columns.get(c, np.dtype(np.float64)) for c in program.edge_columns)
    read = tuple(columns.get(c, np.dtype(np.float64)) for c in program.read_columns)
    slots = () if program.consumption is Consumption.LISTED else native.slots
    return cuda._layout(program, slots, native.record, used, read, narrow_ids)


class OnHost:
    """The functions of `abi.cuh` compiled for the host; a superstep by the plain schedule."""

    def __init__(self, program: VertexProgram, layout: Layout) -> None:
        self._program = program
        columns = dict(
            zip(
                (*program.edge_columns, *program.read_columns),
                (*layout.columns, *layout.read_columns),
                strict=True,
            )
        )
        functions = Functions(program, columns)
        functions.infer()
        source, can_fault = functions.source(layout, cuda._empty(program, layout.slots))
        defines = cuda._defines(program, layout, cuda._neutral(program, layout.slots), can_fault)
        self._f = host_functions(source, defines)

    def __call__(self, memory: Memory, superstep: int) -> None:
        arguments = memory.arguments(lambda array: array.ctypes.data)
        for v in range(len(memory.status)):
            self._one(memory, int(arguments.ctypes.data), superstep, v)

    def _one(self, m: Memory, arguments: int, superstep: int, v: int) -> None:
        f = self._f
        listed = self._program.consumption is Consumption.LISTED
        posted = self._program.delivery is Delivery.DIRECT
        if not self._begins(m, v):
            return
        first, last = int(m.offsets[v]), int(m.offsets[v + 1])
        inbox, value = _row(m.layout.slots.structure.itemsize), _row(m.layout.slots.structure.itemsize)
        message = _row(m.layout.message.structure.itemsize)
        has, end = 0, first
        by_key: dict[Any, Any] = {}
        for e in range(first, last):
            bring = message if listed else value
            if posted and listed:
                bring = m.messages[e]
            elif posted:
                m.keep_fault(v, f["sigps_lift"](arguments, superstep, _at(m.messages[e]), _at(value)))
            elif not self._delivers(m, arguments, superstep, int(m.sources[e]), v, e, bring):
                continue
            if listed:
                f["sigps_list"](arguments, end, _at(bring))
                end += 1
            elif self._program.consumption is Consumption.GROUPED:
                key = value.view(m.layout.slots.structure)["f0"][0].item()
                is_known = key in by_key
                inbox = by_key.setdefault(key, _row(value.size))
                m.keep_fault(v, f["sigps_merge"](_at(inbox), int(is_known), _at(value)))
            else:
                m.keep_fault(v, f["sigps_merge"](_at(inbox), has, _at(value)))
            has = 1
        if by_key:
            inbox = by_key[min(by_key, key=lambda key: (-self._total(m, by_key[key]), key))]
        messages = (first, end) if listed else (_at(inbox), has)
        self._compute(m, arguments, superstep, v, has, messages)

    def _total(self, m: Memory, slots: Any) -> Any:
        total = slots.view(m.layout.slots.structure)["f1"][0].item()
        return total if total == total else -np.inf

    def _begins(self, m: Memory, v: int) -> bool:
        """Mark a vertex as one that has not run; tell whether it may run."""
        m.next_sent[v] = 0
        m.ran[v] = IDLE
        return bool(m.status[v] != 2)

    def _delivers(
        self, m: Memory, arguments: int, superstep: int, source: int, target: int, edge: int, value: Any
    ) -> bool:
        if not m.sent[source]:
            return False
        record = _at(m.records[source])
        deliver = self._f["sigps_deliver"]
        brought = deliver(arguments, superstep - 1, record, source, target, edge, _at(value))
        m.keep_fault_of_edge(source, target, brought)
        return bool(brought & PASSES)

    def fold(self, totals: Any, given: Any) -> int:
        """Add contributions, a cell each, to totals; return the fault."""
        return int(self._f["sigps_fold"](_at(totals), _at(given)))

    def _compute(
        self, m: Memory, arguments: int, superstep: int, v: int, has: int, messages: tuple[int, int]
    ) -> None:
        if not has and m.status[v] != 0:
            return
        listed = self._program.consumption is Consumption.LISTED
        compute = self._f["sigps_compute_listed" if listed else "sigps_compute"]
        record, given = (
            _row(m.layout.record.structure.itemsize),
            _row(8 * num_cells(m.layout.aggregates.dtypes)),
        )
        result = self._call(compute, arguments, superstep, v, messages, record, given)
        m.keep_fault(v, result >> FAULT_SHIFT)
        flags = result & (1 << FAULT_SHIFT) - 1
        m.ran[v] = flags
        if flags & OVERFLOW:
            return
        m.status[v] = 2 if flags & RETIRE else flags & HALT
        m.given[v, : given.size] = given
        if flags & SENT:
            m.next_sent[v] = 1
            m.next_records[v, : record.size] = record

    def _call(
        self, compute: Any, arguments: int, superstep: int, v: int, messages: Any, record: Any, given: Any
    ) -> int:
        return int(compute(arguments, superstep, v, *messages, 0, _at(record), _at(given)))


class Teamed(OnHost):
    """The same, but every vertex is computed by a team of four: threads that run compute() together."""

    MEMBERS = 4

    def _call(
        self, compute: Any, arguments: int, superstep: int, v: int, messages: Any, record: Any, given: Any
    ) -> int:
        rows = [(record, given), *((record.copy(), given.copy()) for _ in range(self.MEMBERS - 1))]
        flags = [-1] * self.MEMBERS
        self._f["begin_team_of"](self.MEMBERS)

        def run(rank: int) -> None:
            self._f["be_member"](rank)
            flags[rank] = compute(arguments, superstep, v, *messages, self.MEMBERS, *map(_at, rows[rank]))

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(self.MEMBERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({f & ~WROTE for f in flags}) == 1  # all decide the same
        assert all((r == record).all() and (g == given).all() for r, g in rows)
        return flags[0]


class Pushed(OnHost):
    """The same by the plain push of `scatter_reference.cu`, for programs that combine along edges."""

    def __call__(self, memory: Memory, superstep: int) -> None:
        m, merge = memory, self._f["sigps_merge"]
        filled = m.arguments(lambda array: array.ctypes.data, columns="pushed_columns")
        arguments, n = int(filled.ctypes.data), len(m.status)
        size = m.layout.slots.structure.itemsize
        inboxes, has, value = _rows(n, size), [0] * n, _row(size)
        begins, targets = m.pointers["out_offsets"].tolist(), m.pointers["out_rows"].tolist()
        for source in range(n):
            for edge in range(begins[source], begins[source + 1]):
                target = targets[edge]
                is_open = m.status[target] != 2
                if is_open and self._delivers(m, arguments, superstep, source, target, edge, value):
                    m.keep_fault(target, merge(_at(inboxes[target]), has[target], _at(value)))
                    has[target] = 1
        for v in range(n):
            if self._begins(m, v):
                self._compute(m, arguments, superstep, v, has[v], (_at(inboxes[v]), has[v]))


def run_plainly(
    program: Vertex,
    graph: Graph,
    superstep: Callable[[VertexProgram, Layout], Superstep],
    narrow_ids: bool,
    direct_capacity: int = 2,
) -> tuple[dict[str, Any], int]:
    """Run a program to its end; return its states, those of edges too, and how many supersteps it took."""
    columns = dict(graph.columns)
    compiled = analyse(program)
    layout = layout_of(compiled, {name: c.dtype for name, c in columns.items()}, narrow_ids)
    step = superstep(compiled, layout)
    memory = _memory(program, compiled, graph, layout)
    aggregators = compiled.aggregators
    values = [a.identity for a in aggregators]
    messages: tuple[Any, Any] = (np.zeros(graph.num_vertices + 1, np.uint64), memory.messages)
    number = 0
    while True:
        memory.pointers["aggregates"] = _cells(values, [a.field.dtype() for a in aggregators])
        if compiled.delivery is Delivery.DIRECT:
            memory.offsets, memory.messages = messages
            if compiled.consumption is Consumption.LISTED:
                memory.pointers["lists"] = [np.zeros(len(memory.messages), d) for d in layout.message.stored]
            direct_capacity = _until_messages_fit(step, memory, number, direct_capacity)
        else:
            step(memory, number)
        ran = memory.ran != IDLE
        if not ran.any():
            break
        for i, aggregator in enumerate(aggregators):
            dtype = aggregator.field.dtype()
            total = values[i] if aggregator.persistent else aggregator.identity
            for row in memory.given[ran]:
                total = aggregator.combine(total, row[8 * i : 8 * i + dtype.itemsize].view(dtype)[0].item())
            values[i] = total
        number += 1
        for pending, committed in zip(memory.pointers["pending"], memory.pointers["committed"], strict=True):
            committed[:] = pending
        memory.sent, memory.next_sent = memory.next_sent, memory.sent
        memory.records, memory.next_records = memory.next_records, memory.records
        is_quiet = not (memory.sent.astype(bool) & (graph.out_degrees() > 0)).any()
        if compiled.delivery is Delivery.DIRECT:
            messages = _sorted_messages(memory, graph)
            is_quiet = messages[0][-1] == 0
        if is_quiet and (memory.status != 0).all():
            break
    fields = [*compiled.states, *compiled.edge_states]
    states = [*memory.pointers["states"], *memory.pointers["pending"]]
    return {f.name: _wide(s) if f.may_be_none else s for f, s in zip(fields, states, strict=True)}, number


def _wide(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids or None as compute() has them."""
    wide = ids.astype(np.int64)
    wide[ids == np.iinfo(ids.dtype).min] = np.iinfo(np.int64).min
    return wide


def _memory(program: Vertex, compiled: VertexProgram, graph: Graph, layout: Layout) -> Memory:
    n, edges = graph.num_vertices, graph.in_edges()
    ids = np.array(
        [int(v) for v in graph.ids.to_oids(np.arange(n))], np.int32 if layout.narrow_ids else np.int64
    )

    def column(table: dict[str, Any], name: str, dtype: np.dtype[Any]) -> Any:
        return np.ascontiguousarray(table[name], dtype) if name in table else np.ones(graph.num_edges, dtype)

    params = [getattr(program, f.name) for f in compiled.params]
    records = layout.record.structure.itemsize
    by_edge = list(zip(compiled.edge_columns, layout.columns, strict=True))
    by_read = zip(compiled.read_columns, layout.read_columns, strict=True)
    kept = list(zip(compiled.edge_states, layout.edge_states, strict=True))
    pointers = {
        "params": _cells(params, list(layout.params.stored)),
        "ids": ids,
        "out_degrees": graph.out_degrees().astype(np.uint32),
        "in_degrees": graph.in_degrees().astype(np.uint32),
        "columns": [column(edges.columns, name, d) for name, d in by_edge],
        "pushed_columns": [column(graph.columns, name, d) for name, d in by_edge],
        "states": [
            np.full(n, NO_NARROW_ID if f.may_be_none and d == np.int32 else f.default, d)
            for f, d in zip(compiled.states, layout.states.stored, strict=True)
        ],
        "out_offsets": graph.offsets,
        "out_gids": graph.targets.astype(np.uint32),
        "out_ids": ids.astype(np.int64)[graph.targets],
        "out_columns": [column(graph.columns, name, d) for name, d in by_read],
        "out_rows": graph.targets.astype(np.uint32),
        "reverse": _reverse(graph) if compiled.reads_reverse else np.zeros(1, np.int64),
        **{
            kind: [np.full(graph.num_edges, f.default, d) for f, d in kept]
            for kind in ("pending", "committed")
        },
        "lists": [np.zeros(graph.num_edges, d) for d in layout.message.stored],
        "num_direct": np.zeros(1, np.uint64),
    }
    return Memory(
        layout=layout,
        pointers=pointers,
        offsets=edges.offsets,
        sources=edges.sources.astype(np.uint32),
        messages=_rows(1, layout.message.structure.itemsize),
        status=np.zeros(n, np.uint8),
        sent=np.zeros(n, np.uint8),
        records=_rows(n, records),
        next_sent=np.zeros(n, np.uint8),
        next_records=_rows(n, records),
        given=_rows(n, 8 * len(layout.aggregates.stored)),
        ran=np.zeros(n, np.uint8),
        num_vertices=n,
        num_edges=graph.num_edges,
        direct_capacity=0,
    )


def _reverse(graph: Graph) -> Any:
    """Return the first edge back of each edge of an undirected graph."""
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets).astype(int)).tolist()
    first: dict[tuple[int, int], int] = {}
    for edge, ends in enumerate(zip(rows, graph.targets.tolist(), strict=True)):
        first.setdefault(ends, edge)
    back = zip(graph.targets.tolist(), rows, strict=True)
    return np.array([first[ends] for ends in back], np.int64)


def _until_messages_fit(step: Superstep, memory: Memory, number: int, room: int) -> int:
    """Run a superstep, and again from where it began with more room while the mailbox overflows."""
    before = [s.copy() for s in memory.pointers["states"]], memory.status.copy()
    while True:
        memory.direct_capacity = room
        memory.pointers |= {
            "num_direct": np.zeros(1, np.uint64),
            "direct_kinds": np.zeros(room, np.uint8),
            "direct_targets": np.zeros(room, np.int64),
            "direct_senders": np.zeros(room, np.uint32),
            "direct_messages": _rows(room, memory.layout.message.structure.itemsize),
        }
        step(memory, number)
        overflowed = (memory.ran != IDLE) & (memory.ran & OVERFLOW != 0)
        count = int(memory.pointers["num_direct"][0])
        assert overflowed.any() == (count > room)
        if count <= room:
            return room
        for state, old in zip(memory.pointers["states"], before[0], strict=True):
            assert (state[overflowed] == old[overflowed]).all()
            state[:] = old
        of_overflowed = np.repeat(overflowed, np.diff(memory.pointers["out_offsets"]).astype(int))
        for pending, committed in zip(memory.pointers["pending"], memory.pointers["committed"], strict=True):
            assert (pending[of_overflowed] == committed[of_overflowed]).all()
            pending[:] = committed
        memory.status[:] = before[1]
        room = count


def _sorted_messages(memory: Memory, graph: Graph) -> tuple[Any, Any]:
    p = memory.pointers
    count = int(p["num_direct"][0])
    ids = p["ids"].astype(np.int64)
    kinds, targets = p["direct_kinds"][:count], p["direct_targets"][:count]
    lids = np.where(kinds == 0, targets, np.searchsorted(ids, targets))
    order = np.argsort(lids, kind="stable")
    offsets = np.zeros(graph.num_vertices + 1, np.uint64)
    offsets[1:] = np.cumsum(np.bincount(lids, minlength=graph.num_vertices))
    rows = p["direct_messages"][order]
    return offsets, rows if count else _rows(1, rows.shape[1])


def _cells(values: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> Any:
    cells = np.zeros(max(1, len(values)), np.uint64)
    for i, (value, dtype) in enumerate(zip(values, dtypes, strict=True)):
        cells[i : i + 1].view(np.uint8)[: dtype.itemsize] = np.array([value], dtype).view(np.uint8)
    return cells


def _rows(count: int, size: int) -> Any:
    return np.zeros((count, max(1, size)), np.uint8)


def _row(size: int) -> Any:
    return np.zeros(max(1, size), np.uint8)


def _at(row: Any) -> int:
    return int(row.ctypes.data)
