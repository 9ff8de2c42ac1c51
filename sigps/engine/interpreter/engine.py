"""Supersteps of one partition in plain Python: the class runs unmodified, one vertex after another.

`print` and `breakpoint()` work in compute(). It is the slow twin that judges every compiled engine, so it shares
none of their code: it knows messages and vertices, no records, no slots and no direction.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import linecache
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.joined import NOTHING, joined_types
from sigps.compiler.program import Consumption, VertexProgram
from sigps.engine.aggregates import Aggregates
from sigps.engine.compute_errors import error_at
from sigps.engine.contract import by_gid
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.exchange import Exchange
from sigps.engine.interpreter import arithmetic
from sigps.engine.interpreter.expansion import messages_of
from sigps.engine.interpreter.messages import Messages, exact_total
from sigps.engine.interpreter.rewriting import combine, rewritten, rewritten_program
from sigps.engine.interpreter.view import EdgeValues, Outgoing, VertexView, as_message, as_row
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.edge_states import EdgeStates, check_names
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.engine.superstep import LeaseLimit, run_supersteps
from sigps.errors import CompileError, DeviceError
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, RETIRED
from sigps.model.aggregator import cells_of
from sigps.model.fields import NO_VERTEX, as_computed
from sigps.model.vector import VectorType
from sigps.model.vertex import Edge, Field, Vertex
from sigps.native.sums import EMPTY, added, spread

__all__ = ["InterpretedEngine"]

log = logging.getLogger(__name__)


def _derived(program: Vertex) -> VertexProgram | None:
    """Return what compiled engines would run; None of what they cannot."""
    from sigps.compiler.frontend.analysis import analyse

    try:
        return analyse(program)
    except CompileError:
        return None


def _smallest_first(message: Any) -> Any:
    """Return what messages are sorted by: field by field, a NaN last, None first."""
    if isinstance(message, tuple):
        return tuple(map(_smallest_first, message))
    return (message != message, NO_VERTEX if message is None else message)


class InterpretedEngine:
    """A vertex program on one partition, interpreted. The verbs are those of `engine.contract.Engine`.

    Args:
        program: The user's program with its parameters, vertex ids among them as compute() sees them.
        subgraph: The partition, with its out-edges.
        exchange: The way to the other partitions.
        deterministic: Whether aggregated sums of floats are exact.
        precision: The array type of Python's `float`.
        trace: Ids, as compute() sees them, of vertices to record and log.
    """

    detects_lost_ranks = False

    def __init__(
        self,
        program: Vertex,
        subgraph: Subgraph,
        exchange: Exchange,
        *,
        deterministic: bool = False,
        precision: Literal["single", "double"] = "double",
        trace: Sequence[int] = (),
    ) -> None:
        _check_is_no_generator(program)
        n = subgraph.num_owned
        declared = program.declaration
        self.superstep = 0
        self._limit: LeaseLimit | None = None
        edges = subgraph.outgoing
        assert edges is not None
        derived, joined = _derived(program), NOTHING
        if derived is not None:
            joined = joined_types(derived, {name: c.dtype for name, c in edges.columns.items()})
        self.program, self.subgraph, self._exchange = rewritten_program(program, joined), subgraph, exchange
        self._given = program
        for field in declared.params:
            if field.type is np.uint64:
                object.__setattr__(self.program, field.name, np.uint64(getattr(program, field.name)))
        self._takes_one = derived is not None and derived.takes_one
        self._master = None
        if declared.has_master:
            counts = derived is None or derived.sends_along_all_edges
            follows_rules = derived is not None and derived.master is not None
            self._master = MasterCompute(
                self.program if follows_rules else program,
                subgraph.num_vertices,
                subgraph.num_edges,
                counts_messages=counts,
                follows_rules=follows_rules,
            )
        self._precision = precision
        self.trace = frozenset(trace)
        self.traced: list[dict[str, Any]] | None = []
        cells = [cells_of(a) if deterministic else (a,) for a in declared.aggregators]
        self.aggregates = Aggregates([cell for group in cells for cell in group])
        begins = itertools.accumulate(map(len, cells), initial=0)
        self._totals = [(at, len(group) > 1) for at, group in zip(begins, cells, strict=False)]
        self._is_deterministic = deterministic
        combines = derived is not None and derived.consumption is Consumption.COMBINED
        self._adds_exactly = deterministic and combines
        self._states = {f.name: np.full(n, f.default, dtype=f.dtype(precision)) for f in declared.states}
        self._edge_states: EdgeStates | None = None
        self._halted = np.zeros(n, dtype=bool)
        self._retired = np.zeros(n, dtype=bool)
        self._inbox: dict[int, list[Any]] = {}
        has_vectors = any(isinstance(f.type, VectorType) for f in declared.message)
        self._zero = (
            as_message(program, [f.assigned(False) for f in declared.message]) if has_vectors else None
        )
        names = tuple(edges.columns) if "weight" in edges.columns else ("weight", *edges.columns)
        self.columns = dict(zip(names, columns_of(edges, names), strict=True))
        self._edge_bytes = 0
        if declared.edge_states:
            check_names(declared.edge_states, edges.columns)
            dtypes = [f.dtype(precision) for f in declared.edge_states]
            rows, num_edges = subgraph.neighbor_rows, edges.ends.size
            self._edge_states = EdgeStates(declared.edge_states, dtypes, num_edges, rows, exchange)
        self.first_edges: dict[int, dict[int, int]] = {}  # of rows that common_neighbors() asked for
        self.own_values = self._kept(as_seen=False)
        self.seen_values = self._kept(as_seen=True)

    def _kept(self, *, as_seen: bool) -> EdgeValues | None:
        if self._edge_states is None:
            return None
        fields = self.program.declaration.edge_states
        arrays = self._edge_states.committed if as_seen else self._edge_states.pending
        return EdgeValues({f.name: (f, a) for f, a in zip(fields, arrays, strict=True)}, as_seen, self)

    def edge_back(self, index: int) -> Edge:
        edges, rows = self.subgraph.outgoing, self.subgraph.neighbor_rows
        assert edges is not None
        assert rows is not None
        source = int(np.searchsorted(edges.offsets, index, side="right")) - 1
        gid, row = int(self.subgraph.owned_gids[source]), int(rows.row_of[index])
        entries = range(int(rows.offsets[row]), int(rows.offsets[row + 1]))
        at = next(entry for entry in entries if rows.targets[entry] == gid)
        return Edge(
            at, int(self.subgraph.ids[source]) if self.subgraph.ids.size else gid, None, self.seen_values
        )

    def edge_state(self, name: str) -> NDArray[Any]:
        """Return what is kept on out-edges, in the order of `Subgraph.outgoing`; the engine's own array."""
        assert self._edge_states is not None
        names = [f.name for f in self.program.declaration.edge_states]
        return self._edge_states.pending[names.index(name)]

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned]; the engine's own array."""
        return self._states[name]

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by local id; before superstep 0."""
        self._states[name][:] = values

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        """Leave counting to the caller."""
        return False

    def fields(self) -> dict[str, NDArray[Any]]:
        """Return all state fields, [num_owned] each in ascending order of gids."""
        return by_gid(self.subgraph, self._states)

    def limit_time(self, seconds: float, awaited: NDArray[np.uint32]) -> bool:
        if self._exchange.size == 1:
            self._limit = LeaseLimit(seconds, awaited)
        return self._limit is not None

    def save(self) -> Snapshot:
        """Return what this partition needs to go on; between leases."""
        owned = self.subgraph.owned_gids
        status = np.where(self._retired, RETIRED, np.where(self._halted, HALTED, ACTIVE)).astype(np.uint8)
        boxes = self._inbox
        ends = np.repeat(list(boxes), [len(box) for box in boxes.values()]).astype(np.int64)
        messages = [as_row(self.program, message) for box in boxes.values() for message in box]
        return Snapshot(
            self.superstep,
            owned.copy(),
            status,
            tuple(values.copy() for values in self._states.values()),
            "messages",
            owned[ends],
            self._as_arrays(messages),
            self.aggregates.saved_values(),
            *(self._edge_states.save(self.subgraph) if self._edge_states is not None else ()),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there: this partition's part of a snapshot of all. Collective.

        Raises:
            DeviceError: If messages by name were combined already: plain Python would read them one by one.
        """
        if self._master is not None:
            self._master.restore(snapshot.ends.size, self._exchange)
        lids = self.subgraph.local_ids(snapshot.gids)
        self._halted[lids] = snapshot.status == HALTED
        self._retired[lids] = snapshot.status == RETIRED
        for state, values in zip(self._states.values(), snapshot.states, strict=True):
            state[lids] = values
        if self._edge_states is not None:
            self._edge_states.restore(self.subgraph, snapshot.sources, snapshot.edges)
        self.aggregates.restore(snapshot.aggregates)
        self.superstep = snapshot.superstep
        if snapshot.in_flight == "slots":
            raise DeviceError(
                "device='python' cannot go on from here: the messages of send_to() were combined when this was "
                "saved, and compute() would read them one by one. Use the device that saved it",
                rank=self._exchange.rank,
            )
        if snapshot.in_flight == "records":
            self._deliver(self._expanded(snapshot))
        else:
            ends = self.subgraph.local_ids(snapshot.ends)
            self._put(ends, snapshot.values)

    def _expanded(self, snapshot: Snapshot) -> Outgoing:
        from sigps.compiler.frontend.analysis import analyse

        program = analyse(self._given, self._precision)
        params = tuple(f.argument(getattr(self.program, f.name), self._precision) for f in program.params)
        outgoing = Outgoing()
        for gid, sender, message in messages_of(program, params, snapshot, self.subgraph, self.columns):
            outgoing.add(gid, sender, message)
        return outgoing

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective among the partitions."""
        return run_supersteps(self, num_supersteps, self._exchange, master=self._master, limit=self._limit)

    def receive(self) -> int:
        """Nothing: messages crossed when they were sent."""
        return 0

    def compute(self) -> tuple[str, Counters, int]:
        """Run every active vertex, and bring what they sent to its targets. Collective."""
        outgoing = Outgoing()
        totals, ran = self._compute_all(outgoing)
        num_bytes = self._deliver(outgoing) + self._edge_bytes
        active = int(np.sum(~self._halted & ~self._retired))
        return "push", Counters(ran, active, sent_edges=len(outgoing.gids), totals=[totals]), num_bytes

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        """Let neighbours read what was written to edges. Collective."""
        if self._edge_states is not None:
            self._edge_bytes = self._edge_states.commit()
        self.superstep += 1

    def is_idle_counted(self) -> bool:
        """No: a superstep in which no vertex ran is none."""
        return False

    def num_left(self) -> int:
        """Return how many vertices have not retired."""
        return int(np.sum(~self._retired))

    def wake_all(self) -> None:
        """Make all halted vertices active."""
        self._halted[:] = False

    def _compute_all(self, outgoing: Outgoing) -> tuple[tuple[Any, ...], int]:
        inbox, self._inbox = self._inbox, {}
        totals: list[Any] = [
            [EMPTY] * math.prod(self.aggregates.identity[at].shape)
            if is_exact
            else as_computed(self.aggregates.identity[at], self.aggregates.identity[at].dtype)
            for at, is_exact in self._totals
        ]
        ran = 0
        for lid in self._in_id_order():
            messages = inbox.get(lid, [])
            if self._retired[lid] or (self._halted[lid] and not messages):
                continue
            ran += 1
            view = VertexView(self, lid, outgoing)
            self._compute_one(lid, view, messages, totals)
        exact = zip(totals, (is_exact for _, is_exact in self._totals), strict=True)
        cells = (zip(*total, strict=True) if is_exact else (total,) for total, is_exact in exact)
        return tuple(cell for of_one in cells for cell in of_one), ran

    def _in_id_order(self) -> Iterator[int]:
        return iter(np.argsort(self.subgraph.owned_gids, kind="stable").tolist())

    def _contribute(self, view: VertexView, totals: list[Any]) -> None:
        for i, aggregator in enumerate(self.program.declaration.aggregators):
            given = view.contributions.get(aggregator.name)
            _, is_exact = self._totals[i]
            if is_exact:
                numbers = [0.0] if given is None else np.atleast_1d(given)
                totals[i] = [
                    added(*total, *spread(float(number)))  # type: ignore[call-arg]
                    for total, number in zip(totals[i], itertools.cycle(numbers), strict=False)
                ]
                continue
            if given is None:
                given = aggregator.field.assigned(aggregator.identity)
            try:
                totals[i] = combine(aggregator, totals[i], given)
            except ArithmeticError as error:
                who = f"aggregator {aggregator.name!r}"
                raise error_at(error, who, self.superstep, aggregator.place) from error

    def _compute_one(self, lid: int, view: VertexView, messages: list[Any], totals: list[Any]) -> None:
        vertex = copy.copy(self.program)
        vertex.view = view
        before = {}
        for field, values in self._kept_in():
            before[field.name] = field.seen(values[lid], values.dtype)
            object.__setattr__(vertex, field.name, before[field.name])
        records = self.program.declaration.records
        for record in records:
            object.__setattr__(vertex, record.name, record.build(before))
        try:
            messages = self._combine(messages)
            if self._takes_one:  # where a loop may take any, all engines take the same
                messages = sorted(messages, key=_smallest_first)
            messages = Messages(messages, self._zero, adds_exactly=self._adds_exactly)
            vertex.compute(messages)
            for record in records:
                for name, value in record.values(getattr(vertex, record.name)).items():
                    object.__setattr__(vertex, name, value)
            for field, values in self._kept_in():
                value = getattr(vertex, field.name)
                values[lid] = NO_VERTEX if value is None else value
            self._contribute(view, totals)
        except ArithmeticError as error:
            place = self.program.declaration.place
            raise error_at(error, f"vertex {view.id}", self.superstep, place) from error
        except Exception as error:
            error.add_note(f"while computing vertex {view.id} in superstep {self.superstep}")
            raise
        self._halted[lid] = view.has_halted
        self._retired[lid] = view.has_retired
        if view.id in self.trace:
            self._record(view, messages, before, vertex)

    def _kept_in(self) -> Iterable[tuple[Field, NDArray[Any]]]:
        return zip(self.program.declaration.states, self._states.values(), strict=True)

    def _record(self, view: VertexView, messages: list[Any], before: dict[str, Any], vertex: Vertex) -> None:
        after = {name: getattr(vertex, name) for name in before}
        entry = {
            "superstep": self.superstep,
            "id": view.id,
            "messages": list(messages),
            "before": before,
            "after": after,
            "sent": view.sent,
            "halted": view.has_halted or view.has_retired,
        }
        assert self.traced is not None
        self.traced.append(entry)
        log.info("superstep %d, vertex %s: read %s; %s -> %s; sent %s", *list(entry.values())[:-1])

    def _combine(self, messages: list[Any]) -> list[Any]:
        combiner: Callable[[Any, Any], Any] | None = self.program.declaration.combiner
        if combiner is None or len(messages) < 2:
            return messages
        if combiner is sum and self._is_deterministic:
            return [exact_total(messages)]
        if combiner is sum:
            return [functools.reduce(arithmetic.OPERATORS["+"], messages)]
        by_rule = arithmetic.standing_for(combiner) or rewritten(combiner)

        def combined(a: Any, b: Any) -> Any:
            values = zip(self.program.declaration.message, as_row(self.program, by_rule(a, b)), strict=True)
            return as_message(self.program, [field.assigned(value) for field, value in values])

        return [functools.reduce(combined, messages)]

    def _deliver(self, outgoing: Outgoing) -> int:
        gids = np.array(outgoing.gids, dtype=np.int64)
        by_id = np.array(outgoing.by_id, dtype=bool)
        gids[by_id] = self._exchange.find(gids[by_id], self.superstep)
        arrays = self._as_arrays(outgoing.messages)
        lids, arrived, num_bytes = self._exchange.route(
            gids, np.array(outgoing.senders, dtype=np.int64), arrays
        )
        self._put(lids, arrived)
        return num_bytes

    def _put(self, lids: NDArray[np.int64], arrived: tuple[NDArray[Any], ...]) -> None:
        """Lay messages into their targets' inboxes, in their order."""
        fields = zip(self.program.declaration.message, arrived, strict=True)
        plain = [
            [f.seen(x, a.dtype) for x in (a if a.dtype == np.uint64 or a.ndim > 1 else a.tolist())]
            for f, a in fields
        ]
        for lid, *values in zip(lids.tolist(), *plain, strict=True):
            self._inbox.setdefault(lid, []).append(as_message(self.program, values))

    def _as_arrays(self, messages: Sequence[Sequence[Any]]) -> tuple[NDArray[Any], ...]:
        fields = self.program.declaration.message
        parts = list(zip(*messages, strict=True)) if messages else [()] * len(fields)
        return tuple(_as_array(p, f.dtype(self._precision)) for p, f in zip(parts, fields, strict=True))


def _as_array(values: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return some numbers, ids that may be None, or vectors of a type, as an array of that type."""
    rows: Any = [list(value) for value in values] if dtype.shape else values
    if not dtype.shape and None in values:
        rows = [NO_VERTEX if value is None else value for value in values]
    return np.array(rows, dtype.base).reshape(len(values), *dtype.shape)


def _check_is_no_generator(program: Vertex) -> None:
    """Refuse a compute() with `yield`, which Python would never run."""
    compute = type(program).compute
    if inspect.isgeneratorfunction(compute):
        code = compute.__code__
        source = linecache.getline(code.co_filename, code.co_firstlineno).strip()
        raise CompileError(
            "compute() has a 'yield', so calling it runs nothing: send messages instead",
            file=code.co_filename,
            line=code.co_firstlineno,
            source=source,
        )
