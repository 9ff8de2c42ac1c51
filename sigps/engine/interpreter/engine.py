"""Supersteps of one partition in plain Python: the class runs unmodified, one vertex after another.

`print` and `breakpoint()` work in compute(). It is the slow twin that judges every compiled engine, so it shares
none of their code: it knows messages and vertices, no records, no slots and no direction.
"""

from __future__ import annotations

import copy
import functools
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from sigps.engine.aggregates import Aggregates
from sigps.engine.contract import by_gid
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.exchange import Exchange
from sigps.engine.interpreter.expansion import messages_of
from sigps.engine.master_compute import MasterCompute
from sigps.engine.partition.edge_states import EdgeStates, check_names
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.engine.superstep import run_supersteps
from sigps.errors import ComputeError, DeviceError
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, RETIRED
from sigps.model.vertex import Edge, Field, Vertex

__all__ = ["InterpretedEngine"]

log = logging.getLogger(__name__)

_PACKAGE = str(Path(__file__).parents[2])


def _counts_messages(program: Vertex) -> bool:
    """Tell whether compiled engines know how many messages there are; of what they cannot run, that does not matter."""
    from sigps.compiler.frontend.analysis import analyse
    from sigps.errors import CompileError

    try:
        return analyse(program).sends_along_all_edges
    except CompileError:
        return True


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
        n = subgraph.num_owned
        declared = program.declaration
        self.superstep = 0
        self._program, self._subgraph, self._exchange = program, subgraph, exchange
        self._master = None
        if declared.has_master:
            counts = _counts_messages(program)
            self._master = MasterCompute(
                program, subgraph.num_vertices, subgraph.num_edges, counts_messages=counts
            )
        self._precision = precision
        self._trace = frozenset(trace)
        self.traced: list[dict[str, Any]] | None = []
        self.aggregates = Aggregates(declared.aggregators, deterministic, n)
        self._states = {f.name: np.full(n, f.default, dtype=f.dtype(precision)) for f in declared.states}
        self._edge_states: EdgeStates | None = None
        self._halted = np.zeros(n, dtype=bool)
        self._retired = np.zeros(n, dtype=bool)
        self._inbox: dict[int, list[Any]] = {}
        edges = subgraph.outgoing
        assert edges is not None
        names = tuple(edges.columns) if "weight" in edges.columns else ("weight", *edges.columns)
        self._columns = dict(zip(names, columns_of(edges, names), strict=True))
        self._edge_bytes = 0
        if declared.edge_states:
            check_names(declared.edge_states, edges.columns)
            dtypes = [f.dtype(precision) for f in declared.edge_states]
            rows, num_edges = subgraph.neighbor_rows, edges.ends.size
            self._edge_states = EdgeStates(declared.edge_states, dtypes, num_edges, rows, exchange)
        self._first_edges: dict[int, dict[int, int]] = {}  # of rows that common_neighbors() asked for
        self._own = self._kept(as_seen=False)
        self._seen = self._kept(as_seen=True)

    def _kept(self, *, as_seen: bool) -> _EdgeValues | None:
        if self._edge_states is None:
            return None
        fields = self._program.declaration.edge_states
        arrays = self._edge_states.committed if as_seen else self._edge_states.pending
        return _EdgeValues({f.name: (f, a) for f, a in zip(fields, arrays, strict=True)}, as_seen, self)

    def _edge_back(self, index: int) -> Edge:
        edges, rows = self._subgraph.outgoing, self._subgraph.neighbor_rows
        assert edges is not None
        assert rows is not None
        source = int(np.searchsorted(edges.offsets, index, side="right")) - 1
        gid, row = int(self._subgraph.owned_gids[source]), int(rows.row_of[index])
        entries = range(int(rows.offsets[row]), int(rows.offsets[row + 1]))
        at = next(entry for entry in entries if rows.targets[entry] == gid)
        return Edge(at, int(self._subgraph.ids[source]) if self._subgraph.ids.size else gid, None, self._seen)

    def edge_state(self, name: str) -> NDArray[Any]:
        """Return what is kept on out-edges, in the order of `Subgraph.outgoing`; the engine's own array."""
        assert self._edge_states is not None
        names = [f.name for f in self._program.declaration.edge_states]
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
        return by_gid(self._subgraph, self._states)

    def save(self) -> Snapshot:
        """Return what this partition needs to go on; between leases."""
        owned = self._subgraph.owned_gids
        status = np.where(self._retired, RETIRED, np.where(self._halted, HALTED, ACTIVE)).astype(np.uint8)
        boxes = self._inbox
        ends = np.repeat(list(boxes), [len(box) for box in boxes.values()]).astype(np.int64)
        messages = [_as_row(self._program, message) for box in boxes.values() for message in box]
        return Snapshot(
            self.superstep,
            owned.copy(),
            status,
            tuple(values.copy() for values in self._states.values()),
            "messages",
            owned[ends],
            self._as_arrays(messages),
            self.aggregates.values,
            *(self._edge_states.save(self._subgraph) if self._edge_states is not None else ()),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from there: this partition's part of a snapshot of all. Collective.

        Raises:
            DeviceError: If messages by name were combined already: plain Python would read them one by one.
        """
        if self._master is not None:
            self._master.restore(snapshot.ends.size, self._exchange)
        lids = self._subgraph.local_ids(snapshot.gids)
        self._halted[lids] = snapshot.status == HALTED
        self._retired[lids] = snapshot.status == RETIRED
        for state, values in zip(self._states.values(), snapshot.states, strict=True):
            state[lids] = values
        if self._edge_states is not None:
            self._edge_states.restore(self._subgraph, snapshot.sources, snapshot.edges)
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
            ends = self._subgraph.local_ids(snapshot.ends)
            self._put(ends, snapshot.values)

    def _expanded(self, snapshot: Snapshot) -> _Outgoing:
        from sigps.compiler.frontend.analysis import analyse

        program = analyse(self._program, self._precision)
        params = tuple(f.dtype(self._precision).type(getattr(self._program, f.name)) for f in program.params)
        outgoing = _Outgoing()
        for gid, sender, message in messages_of(program, params, snapshot, self._subgraph, self._columns):
            outgoing.add(gid, sender, message)
        return outgoing

    def lease(self, num_supersteps: int) -> Outcome:
        """Run until the end, or for so many supersteps. Collective among the partitions."""
        return run_supersteps(self, num_supersteps, self._exchange, master=self._master)

    def receive(self) -> int:
        """Nothing: messages crossed when they were sent."""
        return 0

    def compute(self) -> tuple[str, Counters, int]:
        """Run every active vertex, and bring what they sent to its targets. Collective."""
        outgoing = _Outgoing()
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

    def _compute_all(self, outgoing: _Outgoing) -> tuple[tuple[Any, ...], int]:
        inbox, self._inbox = self._inbox, {}
        totals = list(self.aggregates.identity)
        ran = 0
        for lid in self._in_id_order():
            messages = inbox.get(lid, [])
            if self._retired[lid] or (self._halted[lid] and not messages):
                continue
            ran += 1
            view = _View(self, lid, outgoing)
            self._compute_one(lid, view, self._combine(messages))
            for i, aggregator in enumerate(self._program.declaration.aggregators):
                given = view.contributions.get(aggregator.name, aggregator.identity)
                totals[i] = aggregator.combine(totals[i], given)
                if self.aggregates.given:
                    self.aggregates.given[i][lid] = given
        return tuple(totals), ran

    def _in_id_order(self) -> Iterator[int]:
        return iter(np.argsort(self._subgraph.owned_gids, kind="stable").tolist())

    def _compute_one(self, lid: int, view: _View, messages: list[Any]) -> None:
        vertex = copy.copy(self._program)
        vertex.view = view
        before = {}
        for name, values in self._states.items():
            before[name] = values[lid].item()
            object.__setattr__(vertex, name, before[name])
        try:
            vertex.compute(messages)
            for name, values in self._states.items():
                values[lid] = getattr(vertex, name)
        except ArithmeticError as error:
            raise _compute_error(error, view.id, self.superstep) from error
        except Exception as error:
            error.add_note(f"while computing vertex {view.id} in superstep {self.superstep}")
            raise
        self._halted[lid] = view.has_halted
        self._retired[lid] = view.has_retired
        if view.id in self._trace:
            self._record(view, messages, before, vertex)

    def _record(self, view: _View, messages: list[Any], before: dict[str, Any], vertex: Vertex) -> None:
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
        combiner: Callable[[Any, Any], Any] | None = self._program.declaration.combiner
        if combiner is None or len(messages) < 2:
            return messages
        if combiner is sum:
            return [functools.reduce(lambda a, b: a + b, messages)]
        return [_as_message(self._program, functools.reduce(combiner, messages))]

    def _deliver(self, outgoing: _Outgoing) -> int:
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
        plain = [[_Float(x) for x in a.tolist()] if a.dtype.kind == "f" else a.tolist() for a in arrived]
        for lid, *values in zip(lids.tolist(), *plain, strict=True):
            self._inbox.setdefault(lid, []).append(_as_message(self._program, values))

    def _as_arrays(self, messages: Sequence[Sequence[Any]]) -> tuple[NDArray[Any], ...]:
        fields = self._program.declaration.message
        parts = list(zip(*messages, strict=True)) if messages else [()] * len(fields)
        return tuple(np.array(p, f.dtype(self._precision)) for p, f in zip(parts, fields, strict=True))


class _Float(float):
    """A float that sum() adds one after another: newer Pythons add exact floats with compensation."""


def _compute_error(error: ArithmeticError, vertex_id: int, superstep: int) -> ComputeError:
    """Return what compiled code raises where arithmetic has no result, at the user's line."""
    frames = traceback.extract_tb(error.__traceback__)
    users = [f for f in frames if not f.filename.startswith(_PACKAGE)] or frames
    line = users[-1].lineno or 0
    return ComputeError(
        str(error), who=f"vertex {vertex_id}", superstep=superstep, file=users[-1].filename, line=line
    )


def _as_message(program: Vertex, values: Any) -> Any:
    kind = program.declaration.message_type
    if kind is not None:
        return kind(*values)
    return values[0] if isinstance(values, list) else values


def _as_row(program: Vertex, message: Any) -> Sequence[Any]:
    return (message,) if program.declaration.message_type is None else tuple(message)


class _Outgoing:
    """Messages sent in a superstep: targets (gids, or ids where `by_id`), senders' gids, and fields."""

    def __init__(self) -> None:
        self.gids: list[int] = []
        self.by_id: list[bool] = []
        self.senders: list[int] = []
        self.messages: list[Sequence[Any]] = []

    def add(self, target: int, sender: int, message: Sequence[Any], by_id: bool = False) -> None:
        self.gids.append(target)
        self.by_id.append(by_id)
        self.senders.append(sender)
        self.messages.append(message)


class _EdgeValues:
    """What is kept on edges, by name and index: `EdgeValues` of `vertex.py`."""

    def __init__(
        self, values: dict[str, tuple[Field, NDArray[Any]]], as_seen: bool, engine: InterpretedEngine
    ) -> None:
        self._values, self._is_seen, self._engine = values, as_seen, engine

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def read(self, name: str, index: int) -> Any:
        return self._values[name][1][index].item()

    def write(self, name: str, index: int, value: Any) -> None:
        if self._is_seen:
            raise AttributeError(
                f"edge.{name} cannot be assigned here: what common_neighbors() gives is as it was when the "
                "superstep began. Assign to an edge of self.out_edges"
            )
        field, array = self._values[name]
        array[index] = field.assigned(value)

    def reverse(self, index: int) -> Edge:
        """Return the edge back, found by looking through the target's row."""
        if self._is_seen or self._engine._program.declaration.directed:
            raise AttributeError(
                "edge.reverse is there for edges of self.out_edges in undirected graphs: "
                "class ...(Vertex, directed=False)"
            )
        return self._engine._edge_back(index)


class _View:
    """One vertex's view of the run."""

    def __init__(self, engine: InterpretedEngine, lid: int, outgoing: _Outgoing) -> None:
        subgraph = engine._subgraph
        self._engine, self._lid, self._outgoing = engine, lid, outgoing
        self._gid = lid if subgraph.gids is None else int(subgraph.gids[lid])
        self.id = int(subgraph.ids[lid]) if subgraph.ids.size else lid
        self.superstep = engine.superstep
        self.num_vertices = subgraph.num_vertices
        self.num_edges = subgraph.num_edges
        self.out_degree = int(subgraph.out_degrees[lid])
        self.in_degree = int(subgraph.incoming.offsets[lid + 1] - subgraph.incoming.offsets[lid])
        self.has_halted = False
        self.has_retired = False
        self.contributions: dict[str, Any] = {}
        self.sent: list[Any] = []

    def out_edges(self) -> Iterator[Edge]:
        subgraph, columns = self._engine._subgraph, self._engine._columns
        edges = subgraph.outgoing
        assert edges is not None
        ids = subgraph.outgoing_ids()
        for index in range(int(edges.offsets[self._lid]), int(edges.offsets[self._lid + 1])):
            values = {name: column[index].item() for name, column in columns.items()}
            yield Edge(index, int(ids[index]), values, self._engine._own)

    def common_neighbors(self, edge: Edge) -> Iterator[tuple[Edge, Edge]]:
        rows = self._engine._subgraph.neighbor_rows
        if rows is None:
            raise AttributeError(
                "common_neighbors() is called by a function outside the class, so the rows of remote neighbours "
                "were not brought here: call it in a method of the class"
            )
        if edge._columns is None:
            raise AttributeError("common_neighbors() takes an edge of self.out_edges")
        mine = self._first_edges(self._lid)
        theirs = self._first_edges(int(rows.row_of[edge.index]))
        ends = {self._gid, int(rows.targets[edge.index])}
        for gid in sorted(mine.keys() & theirs.keys() - ends):
            target = int(self._engine._subgraph.outgoing_ids()[mine[gid]])
            pair = [Edge(at[gid], target, None, self._engine._seen) for at in (mine, theirs)]
            yield pair[0], pair[1]

    def _first_edges(self, row: int) -> dict[int, int]:
        """Return the first edge to each target of a row, by the target's gid."""
        known = self._engine._first_edges
        if row not in known:
            known[row] = self._find_first_edges(row)
        return known[row]

    def _find_first_edges(self, row: int) -> dict[int, int]:
        rows = self._engine._subgraph.neighbor_rows
        assert rows is not None
        first: dict[int, int] = {}
        for index in range(int(rows.offsets[row]), int(rows.offsets[row + 1])):
            first.setdefault(int(rows.targets[index]), index)
        return first

    def send(self, edge: Edge, message: Any) -> None:
        if edge._columns is None:
            raise AttributeError(
                "send() takes an edge of self.out_edges; send_to() reaches any vertex by its id"
            )
        edges = self._engine._subgraph.outgoing
        assert edges is not None
        self._post(int(edges.ends[edge.index]), False, message)

    def send_to(self, vertex_id: int, message: Any) -> None:
        self._post(int(vertex_id), True, message)

    def halt(self) -> None:
        self.has_halted = True

    def retire(self) -> None:
        self.has_retired = True

    def aggregate(self, name: str) -> Any:
        return self._engine.aggregates.by_name()[name]

    def contribute(self, name: str, value: Any) -> None:
        aggregator = next(a for a in self._engine._program.declaration.aggregators if a.name == name)
        value = aggregator.field.assigned(value)
        so_far = self.contributions.get(name, aggregator.identity)
        self.contributions[name] = aggregator.combine(so_far, value)

    def share(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"self.{name} is a shared value: compute() reads it; master() or next_phase() sets it"
        )

    def stop(self) -> NoReturn:
        raise AttributeError(
            "stop() is for master() and next_phase(): compute() of one vertex cannot end the run"
        )

    def wake_all(self) -> NoReturn:
        raise AttributeError(
            "wake_all() is for master() and next_phase(): compute() of one vertex cannot wake the others"
        )

    def _post(self, target: int, by_id: bool, message: Any) -> None:
        row, fields = _as_row(self._engine._program, message), self._engine._program.declaration.message
        for field, value in zip(fields, row, strict=True):
            field.assigned(value)
        self._outgoing.add(target, self._gid, row, by_id)
        if self.id in self._engine._trace:
            self.sent.append(message)
