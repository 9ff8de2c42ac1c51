"""The vertex program: what the front end derives from a class, and all that an engine ever sees.

A program is a handful of small functions over scalars and tuples, kept as one Python module's syntax tree,
and claims about them. No engine looks at the user's source; no function here knows a thread.

The functions (every argument is a scalar or a tuple, so each is inlined wherever it is called):

    compute(env, params, aggregates, vertex, state, inbox, has, edges, mail)
        -> (state, flags, record, contributions)     one vertex, one superstep
    edge(env, params, record, source, target, columns)
        -> (passes, message)                          one edge: the sender's outbox record to a message
    lift(env, params, message) -> inbox               one message to one value of every slot
    merge(inbox, has, value) -> inbox                 the combiner (absent where messages are listed)
    fold(total, given) -> total                       add one vertex's contributions to the aggregators
    emit(mail, kind, target, message)                 append to the mailbox (only programs that need one)

    env     = (superstep, num_vertices, num_edges)    the sender's superstep in edge, the reader's elsewhere
    vertex  = (id, out_degree, in_degree)
    inbox   = the slots where messages are combined; (begin, end, array, ...) where they are listed
    edges   = (begin, end, gids, ids, (column, ...))  the vertex's out-edges, where compute() reads them;
              with a sixth where something is kept on them, or rows of neighbours are walked:
              (row_of, offsets, targets, marks, reverse, (own, ...), (seen, ...)), as in engine/;
              on a GPU with cells in the place of marks (kernels/warp_neighbors.py)
    mail    = (count, kinds, targets, senders, array, ...)  where compute() sends what no record can express
    flags   = HALT | RETIRE | SENT
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from sigps.kernels.cpu.arguments import HALT, RETIRE, SENT
from sigps.model.vertex import Aggregator, Field

__all__ = [
    "FUNCTIONS",
    "HALT",
    "RETIRE",
    "SENT",
    "Consumption",
    "Delivery",
    "EarlyExit",
    "Monotone",
    "Slot",
    "VertexProgram",
]

FUNCTIONS = ("compute", "edge", "lift", "merge", "fold", "emit")
TO_GID, TO_ID = 0, 1


class Delivery(Enum):
    """How messages travel."""

    NONE = "nothing is sent"
    RECORD = "one outbox record a vertex; the edge function makes the messages"
    DIRECT = "every message is written out and sorted by its target"


class Consumption(Enum):
    """How compute() gets its messages."""

    NONE = "messages are not read"
    COMBINED = "messages are only reduced: one record a vertex, no lists"
    SINGLE = "the explicit combiner leaves one message"
    LISTED = "compute() reads the messages one by one: one slot an in-edge, contiguous per target"


class EarlyExit(Enum):
    """When a pull may stop before it has seen every in-edge."""

    NEVER = "every in-edge must be seen"
    FIRST = "all messages are equal and the combiner is idempotent: the first one is enough"
    LOWEST = "the message is the sender's id and the combiner is min: the first one in id order is enough"


@dataclass(frozen=True)
class Slot:
    """One reduction of the message stream.

    Attributes:
        op: `sum`, `min`, `max`, `any`, `all`, or `user`.
        names: The message fields it carries; one, except for `min` and `max` of whole NamedTuples.
        text: The reduced expression as the user would write it, for `explain`.
    """

    op: str
    names: tuple[str, ...]
    text: str

    @property
    def is_idempotent(self) -> bool:
        return self.op in ("min", "max", "any", "all")


@dataclass(frozen=True)
class Monotone:
    """A claim: after superstep 0 a vertex only takes better keys, as `monotone.py` explains.

    Attributes:
        known: The state that holds the best key heard, by position.
        record: The field of the outbox record that the key is made of.
        column: Which of `edge_columns` is added to it; None where none is.
    """

    known: int
    record: int
    column: int | None


@dataclass(frozen=True, eq=False)
class VertexProgram:
    """A compiled class, independent of any engine. Immutable.

    Attributes:
        module: The functions above.
        namespace: What the functions' global names mean (modules, constants' types, user functions).
        record: Names of the outbox record's fields; their types follow from compute().
        edge_columns: Edge columns that messages need, in the order the edge function takes them.
        read_columns: Edge columns that compute() itself reads.
        reads_edges: Whether compute() walks its out-edges (other than to send).
        reads_target: Whether a message is made of its target's id.
        needs_end_ids: Whether the edge function is told the ids of an edge's ends. Where it only asks whether they are
            the same vertex, local ids tell that without being looked up.
        edge_states: What vertices keep on their out-edges.
        reads_neighbors: Whether compute() walks the rows of neighbours.
        reads_reverse: Whether compute() reads what the other ends of edges keep.
        priority_form: The form for supersteps in which only the best value is sent; None where there is none.
        has_master: Whether the class's `master()` or `next_phase()` runs between supersteps.
        monotone: Where keys are, in a program that only takes better ones; None in others.
        obstacles: What stopped a faster form, a sentence each.
        key: A hash of everything that the compiled code depends on, but the versions.
    """

    name: str
    file: str
    line: int
    precision: str
    states: tuple[Field, ...]
    params: tuple[Field, ...]
    aggregators: tuple[Aggregator[Any], ...]
    message: tuple[Field, ...]
    message_type: type | None
    delivery: Delivery
    consumption: Consumption
    slots: tuple[Slot, ...]
    record: tuple[str, ...]
    edge_columns: tuple[str, ...]
    read_columns: tuple[str, ...]
    reads_edges: bool
    early_exit: EarlyExit
    module: ast.Module
    namespace: Mapping[str, Any]
    obstacles: tuple[str, ...]
    key: str
    priority_form: VertexProgram | None = None
    monotone: Monotone | None = None
    has_master: bool = False
    reads_target: bool = False
    needs_end_ids: bool = True
    edge_states: tuple[Field, ...] = ()
    reads_neighbors: bool = False
    reads_reverse: bool = False

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VertexProgram) and self.key == other.key

    @property
    def message_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.message)  # type: ignore[arg-type]

    @property
    def state_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.states)  # type: ignore[arg-type]

    @property
    def edge_state_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.edge_states)  # type: ignore[arg-type]

    @property
    def links_edges(self) -> bool:
        """Whether compute() is given what is kept on edges, and the rows of neighbours."""
        return self.reads_neighbors or bool(self.edge_states)

    @property
    def aggregate_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """Aggregators stay in double precision: they add up whole graphs."""
        return tuple(a.field.dtype() for a in self.aggregators)

    @property
    def sends_along_all_edges(self) -> bool:
        """Whether no filter holds a message back: all out-edges of a vertex that sends have one, or mail is counted."""
        edges = (f for f in self.module.body if isinstance(f, ast.FunctionDef) and f.name == "edge")
        found = (node for f in edges for node in ast.walk(f) if isinstance(node, ast.Return))
        return all(ast.unparse(node).startswith("return (True,") for node in found)

    @property
    def edge_obstacle(self) -> str | None:
        """What stops messages from combining an edge at a time (`schedule="edge"`); None where nothing does."""
        if self.delivery is Delivery.DIRECT:
            return "its messages go through the mailbox, not along edges"
        if self.consumption is Consumption.LISTED:
            return "compute() reads its messages one by one, and edges have one slot a vertex to combine into"
        return None

    @property
    def source(self) -> str:
        """The generated functions as Python text."""
        return ast.unparse(self.module)
