"""What compute() of one vertex sees and does when it is interpreted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Protocol

from numpy.typing import NDArray

from sigps.engine.aggregates import Aggregates
from sigps.engine.interpreter import arithmetic
from sigps.engine.interpreter.rewriting import combine
from sigps.engine.partition.subgraph import Subgraph
from sigps.model.fields import NO_VERTEX, as_computed
from sigps.model.vector import Vector
from sigps.model.vertex import Edge, Field, Vertex

__all__ = ["EdgeValues", "Outgoing", "VertexView", "as_message", "as_row"]


class Run(Protocol):
    """What vertices see of the engine."""

    program: Vertex
    subgraph: Subgraph
    superstep: int
    aggregates: Aggregates
    columns: dict[str, NDArray[Any]]
    own_values: EdgeValues | None
    seen_values: EdgeValues | None
    first_edges: dict[int, dict[int, int]]
    trace: frozenset[int]

    def edge_back(self, index: int) -> Edge:
        """Return the edge back of an out-edge, found by looking through the target's row."""
        ...


def as_message(program: Vertex, values: Any) -> Any:
    """Return a message as compute() reads it, made of its fields' values."""
    record = program.declaration.message_record
    if record is not None:
        return record.of(iter(values))
    return values[0] if isinstance(values, list) else values


def as_row(program: Vertex, message: Any) -> Sequence[Any]:
    """Return the values of a message's fields."""
    record = program.declaration.message_record
    return (message,) if record is None else tuple(record.flat(message))


class Outgoing:
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


class EdgeValues:
    """What is kept on edges, by name and index: `EdgeValues` of `vertex.py`."""

    def __init__(self, values: dict[str, tuple[Field, NDArray[Any]]], as_seen: bool, engine: Run) -> None:
        self._values, self._is_seen, self._engine = values, as_seen, engine

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def read(self, name: str, index: int) -> Any:
        field, values = self._values[name]
        return field.seen(values[index], values.dtype)

    def write(self, name: str, index: int, value: Any) -> None:
        if self._is_seen:
            raise AttributeError(
                f"edge.{name} cannot be assigned here: what common_neighbors() gives is as it was when the "
                "superstep began. Assign to an edge of self.out_edges"
            )
        field, array = self._values[name]
        kept = field.assigned(value)
        array[index] = NO_VERTEX if kept is None else kept

    def reverse(self, index: int) -> Edge:
        """Return the edge back, found by looking through the target's row."""
        if self._is_seen or self._engine.program.declaration.directed:
            raise AttributeError(
                "edge.reverse is there for edges of self.out_edges in undirected graphs: "
                "class ...(Vertex, directed=False)"
            )
        return self._engine.edge_back(index)


class VertexView:
    """One vertex's view of the run."""

    def __init__(self, engine: Run, lid: int, outgoing: Outgoing) -> None:
        subgraph = engine.subgraph
        self._engine, self._lid, self._outgoing = engine, lid, outgoing
        self._gid = lid if subgraph.gids is None else int(subgraph.gids[lid])
        self.id = int(subgraph.ids[lid]) if subgraph.ids.size else lid
        self.superstep = engine.superstep
        self.num_vertices = subgraph.num_vertices
        self.num_edges = subgraph.num_edges
        self.out_degree = int(subgraph.out_degrees[lid])
        self.in_degree = int(subgraph.incoming.offsets[lid + 1] - subgraph.incoming.offsets[lid])
        self._num_draws = 0
        self.has_halted = False
        self.has_retired = False
        self.contributions: dict[str, Any] = {}
        self.sent: list[Any] = []

    def out_edges(self) -> Sequence[Edge]:
        return _OutEdges(self._engine, self._lid)

    def common_neighbors(self, edge: Edge) -> Iterator[tuple[Edge, Edge]]:
        rows = self._engine.subgraph.neighbor_rows
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
            target = int(self._engine.subgraph.outgoing_ids()[mine[gid]])
            pair = [Edge(at[gid], target, None, self._engine.seen_values) for at in (mine, theirs)]
            yield pair[0], pair[1]

    def _first_edges(self, row: int) -> dict[int, int]:
        """Return the first edge to each target of a row, by the target's gid."""
        known = self._engine.first_edges
        if row not in known:
            known[row] = self._find_first_edges(row)
        return known[row]

    def _find_first_edges(self, row: int) -> dict[int, int]:
        rows = self._engine.subgraph.neighbor_rows
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
        edges = self._engine.subgraph.outgoing
        assert edges is not None
        self._post(int(edges.ends[edge.index]), False, message)

    def send_to(self, vertex_id: int, message: Any) -> None:
        if vertex_id is None:
            raise arithmetic.NoResultError(arithmetic.NO_ID)
        self._post(int(vertex_id), True, message)

    def next_draw(self) -> int:
        """Return the number of the next random number, counted from 0."""
        self._num_draws += 1
        return self._num_draws - 1

    def halt(self) -> None:
        self.has_halted = True

    def retire(self) -> None:
        self.has_retired = True

    def aggregate(self, name: str) -> Any:
        return self._engine.aggregates.read(name)

    def contribute(self, name: str, value: Any) -> None:
        aggregator = next(a for a in self._engine.program.declaration.aggregators if a.name == name)
        value = aggregator.field.assigned(value)
        so_far = self.contributions.get(name, aggregator.field.assigned(aggregator.identity))
        self.contributions[name] = combine(aggregator, so_far, value)

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
        row, fields = as_row(self._engine.program, message), self._engine.program.declaration.message
        row = [_sent(field, value) for field, value in zip(fields, row, strict=True)]
        self._outgoing.add(target, self._gid, row, by_id)
        if self.id in self._engine.trace:
            self.sent.append(message)


def _sent(field: Field, value: Any) -> Any:
    """Return a field of a message, checked; a vector is copied."""
    held = field.assigned(value)
    return held if isinstance(held, Vector) else value


class _OutEdges(Sequence[Edge]):
    """The out-edges of a vertex, each made when it is asked for."""

    def __init__(self, engine: Run, lid: int) -> None:
        edges = engine.subgraph.outgoing
        assert edges is not None
        self._engine, self._ids = engine, engine.subgraph.outgoing_ids()
        self._begin, self._end = int(edges.offsets[lid]), int(edges.offsets[lid + 1])

    def __len__(self) -> int:
        return self._end - self._begin

    def __getitem__(self, at: Any) -> Any:
        if not -len(self) <= at < len(self):
            raise arithmetic.NoResultError(arithmetic.NO_EDGE)
        return self._edge(self._begin + int(at) + (len(self) if at < 0 else 0))

    def __iter__(self) -> Iterator[Edge]:
        return map(self._edge, range(self._begin, self._end))

    def _edge(self, index: int) -> Edge:
        columns = self._engine.columns.items()
        values = {name: as_computed(column[index], column.dtype) for name, column in columns}
        return Edge(index, int(self._ids[index]), values, self._engine.own_values)
