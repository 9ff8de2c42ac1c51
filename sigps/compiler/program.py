"""The vertex program: what the front end derives from a class, and the one record that engines and back ends read.

It holds a few functions over scalars and tuples of scalars, as the syntax tree of one Python module, and claims about
them. No engine reads the user's source; no function here depends on threads, devices or the order of vertices.

The functions (without side effects, but for direct messages and edge states; so a back end may inline each anywhere):

    compute(env, params, aggregates, vertex, state, inbox, has, edges, direct)
        -> (state, flags, record, contributions)      one vertex in one superstep
    edge(env, params, record, source, target, columns)
        -> (passes, message)                          one edge: the sender's outbox record to a message, if one passes
    lift(env, params, message) -> inbox               one message to one value of every slot
    merge(inbox, has, value) -> inbox                 the combiner: one more value, or the first where has is False
    key(env, params, message) -> key                  the whole number that a list of messages is sorted by
    fold(total, given) -> total                       add one vertex's contributions to the totals
    emit(direct, kind, target, message)               append one direct message

A module of its own (`MasterFunction`) has what runs between two supersteps, where it is no plain Python:

    master(env, params, aggregates) -> (shared, flags)    master() or next_phase()

`edge` is there unless `delivery` is DIRECT, `emit` only if it is; `lift` and `merge` unless `consumption` is LISTED;
`key` where `sorts_by` is not empty. Names of all other functions of the module begin with two underscores; these call
them.

Their arguments and results; a tuple has one scalar for each element of what it belongs to, in that order:

    env       (superstep, num_vertices, num_edges), int64. In edge() the superstep in which the record was written; in
              lift() and compute() the one in which the message is read, the next.
    params, aggregates, state, message    types: each param's, `aggregate_dtypes`, `state_dtypes`, `message_dtypes`
    vertex    (id, out_degree, in_degree), int64. The id is the one that compute() reads: the user's, if it is a number.
    inbox     messages in slots, or the key and the total that are found of them: one scalar for each name of each of
              `slots`; the back end infers their types from lift() (integers add up in 64 bits). Where has is False the
              scalars mean nothing.
              messages in lists: (begin, end, array, ...), int64 positions and an array for each field of a message; the
              vertex's messages are begin..end, ascending by key() where `sorts_by` is not empty, in the order in which
              they came where keys are equal
    has       bool: whether the vertex has a message
    flags     uint8: HALT, it voted to halt; RETIRE, it halts for good; SENT, `record` is what it sends along its edges.
              Of master(): STOP, the run ends; WAKE, all vertices become active that have not retired
    record    one scalar for each of `record`; the back end infers their types from compute(). Unspecified without SENT.
    contributions, total, given    `aggregate_dtypes`; an aggregator's identity where a vertex gave nothing
    source, target    int64 ids of the edge's ends; see `needs_end_ids`
    columns   one scalar for each of `edge_columns`
    passes    bool: False where a filter of the user leaves this edge out; the message then means nothing
    edges     () unless `reads_edges`; else (begin, end, gids, ids, columns): the vertex's out-edges are begin..end,
              uint64 (int64 on a GPU); gids [num_edges] uint32 and ids [num_edges] int64 of their targets; an array
              [num_edges] for each of `read_columns`; and, where `reads_edge_links`, a sixth element:
              (row_of, offsets, targets, marks, reverse, (pending, ...), (committed, ...)), where
                row_of     [num_edges] uint32: the row in offsets of each edge's target
                offsets    [rows + 1] uint64 and targets [entries] uint32: gids, ascending in each row. The first rows
                           and entries are those of owned vertices, so an edge's position is an entry's, too.
                marks      [num_vertices + 1] uint32 or uint64: scratch of one thread (kernels/cpu/neighbors.py);
                           on a GPU a few bytes of one lane (kernels/cuda/warp_neighbors.cuh)
                reverse    [num_edges] int64: the entry of each edge in the row of its target
                pending    [num_edges] for each of `edge_states`: compute() reads and writes those of its own edges
                committed  [entries] for each of `edge_states`: as they were when the superstep began; read only
    shared    one scalar for each aggregator that is shared: what the next superstep reads
    direct    () unless `delivery` is DIRECT; else (count, kinds, targets, senders, array, ...): the count [1] int64 of
              messages, and arrays [capacity]: kinds uint8, TO_GID or TO_ID: whether a target is a gid or the id that
              compute() computed; targets int64; senders uint32, written by the caller; one for each field of a message.
              Where count exceeds the capacity the vertex must run again from its old state. On a GPU the back end
              replaces emit() and this tuple by its own.
"""

from __future__ import annotations

import ast
import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from sigps.kernels.cpu.arguments import HALT, RETIRE, SENT
from sigps.model.aggregator import Aggregator
from sigps.model.fields import Field, extreme
from sigps.native.trees import walk

__all__ = [
    "FUNCTIONS",
    "HALT",
    "RETIRE",
    "SENT",
    "STOP",
    "WAKE",
    "Asynchronous",
    "Consumption",
    "Delivery",
    "EarlyExit",
    "Join",
    "MasterFunction",
    "Monotone",
    "PathLengths",
    "Slot",
    "VertexProgram",
    "compiling",
    "empty_value",
    "identity_of",
    "join_of",
]

compiling = threading.Lock()
"""Held while a program is compiled, so that ranks that are threads compile it once."""

FUNCTIONS = ("compute", "edge", "lift", "merge", "key", "fold", "emit")
TO_GID, TO_ID = 0, 1
STOP, WAKE = 1, 2


class Delivery(Enum):
    """How messages reach their targets.

    RECORD lets an engine run edge() at the source (push) or at the target (pull), any number of times, and send
    records instead of messages between ranks. With DIRECT every message must be stored when compute() sends it.
    """

    NONE = "nothing is sent"
    RECORD = "one outbox record a vertex; the edge function makes the messages"
    DIRECT = "every message is written out and sorted by its target"


class Consumption(Enum):
    """How compute() reads its messages.

    COMBINED and SINGLE let an engine combine messages in any order and any grouping, also before they leave a rank;
    only sums of floats then depend on the order, by rounding. GROUPED: the engine combines a vertex's messages by key,
    the first of the two slots, with merge(), and hands over what it has of the key with the largest second slot, the
    smallest such key. It needs all messages of a vertex at once, but keeps none. A total that is NaN is the smallest.
    LISTED needs all messages of a vertex side by side.
    """

    NONE = "messages are not read"
    COMBINED = "messages are only reduced: one record a vertex, no lists"
    SINGLE = "the explicit combiner leaves one message"
    GROUPED = "messages are added up by key, and the key of the largest sum is found: no lists"
    LISTED = "compute() reads the messages one by one: one slot an in-edge, contiguous per target"


class EarlyExit(Enum):
    """When a pull may stop before it has read every in-edge."""

    NEVER = "every in-edge must be seen"
    FIRST = "all messages are equal and the combiner is idempotent: the first one is enough"
    LOWEST = "the message is the sender's id and the combiner is min: the first one in id order is enough"


@dataclass(frozen=True)
class Slot:
    """One reduction of a vertex's messages, and one value or more in its inbox.

    Attributes:
        op: `sum`, `prod`, `min`, `max`, `any`, `all`, `minimum` or `maximum` (NumPy's: NaN wins), `or`, `and`, `xor`
            (of bits), `exact` (a sum in words, `cpu/exact.py`), `user`, or `key`: equal in what is combined.
        names: Names of its inbox values: one, except where NamedTuples or tuples are reduced.
        text: The reduced expression as the user would write it, for `explain`.
        keys: How many first values decide by `op`; where these are equal, the others do by `others`. 0: all.
        is_small: Whether a sum adds up numbers so small that it never leaves 64 bits (`frontend/small_sums.py`).
    """

    op: str
    names: tuple[str, ...]
    text: str
    is_small: bool = False
    keys: int = 0
    others: str = ""

    @property
    def is_idempotent(self) -> bool:
        return self.op in ("min", "max", "any", "all", "or", "and", "minimum", "maximum")

    @property
    def ops(self) -> list[str]:
        """The operation of each of its values."""
        keys = self.keys or len(self.names)
        return [self.op] * keys + [self.others] * (len(self.names) - keys)


def identity_of(op: str, dtype: np.dtype[Any]) -> Any:
    """Return the value that changes no other under an operation of a slot, as a Python number."""
    if op in ("min", "max", "minimum", "maximum"):
        return extreme(op[:3], dtype.base.type)
    if op == "and":
        return {"b": True, "u": extreme("min", dtype.base.type)}.get(dtype.base.kind, -1)
    return {"any": False, "all": True, "prod": 1}.get(op, 0)


def empty_value(op: str, dtype: np.dtype[Any]) -> Any:
    """Return what compute() reads of a slot without messages: what reductions of nothing come to."""
    return 0 if op in ("min", "max", "minimum", "maximum", "user") else identity_of(op, dtype)


@dataclass(frozen=True)
class Join:
    """How two parts of a reduction, each of some of the elements, become one.

    Attributes:
        kept: The variables of a part.
        update: Takes `__x`, what another part kept, into them: as the loop does with an element.
        is_found: Whether `__found` tells if a part had an element.
        is_sum: Whether it adds up, from a value that only one part may begin with.
    """

    kept: tuple[str, ...]
    update: str
    is_found: bool
    is_sum: bool


def join_of(definition: ast.FunctionDef) -> Join | None:
    """Return how parts of a reduction that is a function are joined; None of another function."""
    return getattr(definition, "sigps_join", None)


@dataclass(frozen=True)
class Monotone:
    """A claim: after superstep 0 a message changes a vertex only where its key is better than the vertex's current key.

    The key is a message's first field; better is less or greater, as the one slot is `min` or `max`. An engine may then
    read a vertex's last record again and again, and drop messages whose keys are no better (`proofs/monotone.py`), if
    parameters are not NaN and the edge column is finite.

    Attributes:
        current: Position in `states` of a vertex's current key.
        record: Position in `record` of the field that the key is made of.
        column: Position in `edge_columns` of the number added to it; None where none is.
    """

    current: int
    record: int
    column: int | None


@dataclass(frozen=True)
class PathLengths:
    """A claim: a monotone program ends with the lengths of shortest paths, and perhaps with parents on them.

    That holds from the vertices that send in superstep 0, where no other has a length, all lengths are exact, and no
    weight is negative; of shortest paths those with the fewest edges count, and of their last vertices before the end
    the one with the smallest id (`proofs/path_lengths.py`).

    Attributes:
        length: Position in `states` of a vertex's length.
        parent: Position in `states` of the id of the vertex before it; None where none is kept.
        column: Position in `edge_columns` of the weights.
    """

    length: int
    parent: int | None
    column: int


@dataclass(frozen=True)
class Asynchronous:
    """A claim: a program needs no barriers.

    A vertex may then read the last records of its in-neighbours at any time and in any order, as long as every new one
    is read in the end (`proofs/asynchronous.py`). Where that is proved the result is that of supersteps, bit for bit;
    where it is declared, both are near the same fixed point.

    Attributes:
        has_parents: Whether the state `path_lengths.parent` is to be found last, which needs exact lengths.
        factor: Of a declared contraction, the factor; None where nothing is declared and all is proved.
    """

    has_parents: bool = False
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class MasterFunction:
    """`master()` or `next_phase()`, compiled: it needs nothing but numbers, so a device may run it itself.

    Floats have 64 bits in it, whatever the run's precision.

    Attributes:
        name: The method's.
        module: The function `master` and what it calls.
        namespace: The values of their global names.
    """

    name: str
    module: ast.Module
    namespace: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class VertexProgram:
    """A compiled class, independent of any engine. Immutable; equal where the keys are.

    Attributes:
        name, file, line: The class, and where its compute() is written.
        precision: Whether Python's `float` is float32 (`single`) or float64 in states, params, messages and records.
        states, params, aggregators, message: As declared. A param that is not one number is none: it is in the code.
        message_type: The user's NamedTuple class; None where a message is one scalar, or the program sends nothing.
        delivery: How messages reach their targets.
        consumption: How compute() reads them.
        slots: The reductions of messages, where they are combined; their values, in this order, are the inbox.
        record: Names of the outbox record's fields.
        edge_columns: Edge columns that edge() takes, in that order. An engine needs them beside the edges it pulls or
            pushes along.
        read_columns: Edge columns that compute() reads itself. An engine needs them beside a vertex's out-edges.
        reads_edges: Whether compute() loops over its out-edges, other than to send a message of a record along each. An
            engine must then hold out-edges by source, with ids of targets, even if it only pulls.
        early_exit: When a pull may stop. Not NEVER only where messages are records that combine.
        module: The functions.
        namespace: The values of the functions' global names: modules, NumPy types, the user's functions and constants.
        obstacles: Why messages do not combine, or do not go by records, a sentence each; empty where they do.
        key: A hash of everything that the compiled code depends on, except versions. Cached code is found by it.
        priority_form: The program for supersteps in which only the best value is sent (`proofs/priority.py`). Run after
            superstep 0 of this one, it ends with the same states, in fewer messages but other supersteps. None where
            there is none.
        monotone: Where the keys of a monotone program are; None for other programs.
        path_lengths: Where lengths and parents of a program of shortest paths are; None for other programs.
        asynchronous: What a program that needs no barriers leaves to be found last; None for other programs.
        barrier_reason: Why a program needs barriers, a sentence; empty where it needs none.
        has_master: Whether the class has `master()` or `next_phase()`. An engine must then stop between supersteps, or
            where nothing is left to do, for the host to run it.
        has_phases: Whether it is `next_phase()`.
        master: That method, where it can be compiled. Then an engine may run it without the host.
        master_obstacle: Why it is Python on the host, a sentence; empty where it can be compiled, or is not there.
        reads_target: Whether edge() reads the target's id, so that a message is not the same for all edges of a vertex.
        needs_end_ids: Whether edge() reads ids of an edge's ends. Where False it at most compares the two with each
            other, and an engine may pass local ids, without looking up those that compute() reads.
        takes_one: Whether a loop takes one of several messages that are as good: as if they came in ascending order.
        edge_states: What vertices keep on their out-edges: one value an edge, written by the source.
        reads_neighbors: Whether compute() walks the out-edges of its neighbours (`common_neighbors()`). An engine must
            hold copies of their rows; a vertex's work is then the sum of its neighbours' degrees.
        reads_reverse: Whether compute() reads the edge states of the other ends of its edges (`edge.reverse`). An
            engine must hold copies of them, and `reverse` beside the edges.
        is_deterministic: Whether its sums of floats do not depend on order (`cpu/exact.py`), and code for GPUs rounds
            each product before something is added to it, as CPU cores do.
        sends_together: Whether in every superstep all vertices with out-edges send, or none (`proofs/together.py`).
        sorts_by: What lists of messages are sorted by before compute() reads them, as the user would write it; empty
            where their order is open.
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
    path_lengths: PathLengths | None = None
    asynchronous: Asynchronous | None = None
    barrier_reason: str = ""
    has_master: bool = False
    has_phases: bool = False
    master: MasterFunction | None = None
    master_obstacle: str = ""
    reads_target: bool = False
    needs_end_ids: bool = True
    takes_one: bool = False
    edge_states: tuple[Field, ...] = ()
    reads_neighbors: bool = False
    reads_reverse: bool = False
    is_deterministic: bool = False
    sorts_by: str = ""
    sends_together: bool = False

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VertexProgram) and self.key == other.key

    def function(self, name: str) -> ast.FunctionDef | None:
        """Return the tree of a function of the module, if it is there."""
        return next((f for f in self.module.body if isinstance(f, ast.FunctionDef) and f.name == name), None)

    @property
    def slot_ops(self) -> list[str]:
        """The operation of each value of the inbox; none of messages in lists."""
        return [op for slot in self.slots for op in slot.ops]

    @property
    def reads_all_at_once(self) -> bool:
        """Whether an engine needs all messages of a vertex at once, so that nothing can be combined on their way."""
        return self.consumption in (Consumption.GROUPED, Consumption.LISTED)

    @property
    def goes_along_edges(self) -> bool:
        """Whether an engine reads edges: messages go along them, or compute() walks them."""
        return self.delivery is Delivery.RECORD or self.reads_edges

    @property
    def columns_of_edges(self) -> tuple[str, ...]:
        """Edge columns that messages or compute() read, each once, those of messages first."""
        return tuple(dict.fromkeys((*self.edge_columns, *self.read_columns)))

    @functools.cached_property
    def message_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.message)  # type: ignore[arg-type]

    @functools.cached_property
    def state_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.states)  # type: ignore[arg-type]

    @functools.cached_property
    def edge_state_dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(field.dtype(self.precision) for field in self.edge_states)  # type: ignore[arg-type]

    @property
    def reads_edge_links(self) -> bool:
        """Whether `edges` has a sixth element: edge states, and the rows of neighbours where the program reads them."""
        return self.reads_neighbors or bool(self.edge_states)

    @functools.cached_property
    def aggregate_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """Types of the aggregators; floats have 64 bits whatever `precision` is, since they add up whole graphs."""
        return tuple(a.field.dtype() for a in self.aggregators)

    @property
    def shared(self) -> tuple[int, ...]:
        """Positions of the shared values among the aggregators: what `master` returns, in this order."""
        return tuple(i for i, aggregator in enumerate(self.aggregators) if aggregator.is_shared)

    @functools.cached_property
    def sends_along_all_edges(self) -> bool:
        """Whether edge() passes a message on every edge: their number is then the sum of the senders' out-degrees.

        True, too, for programs with direct messages, which are counted one by one.
        """
        edge = self.function("edge") or ast.Pass()
        found = (node for node in walk(edge) if isinstance(node, ast.Return))
        return all(ast.unparse(node).startswith("return (True,") for node in found)

    @property
    def edge_obstacle(self) -> str | None:
        """Why messages cannot combine one edge at a time (`schedule="edge"`); None where they can."""
        if self.delivery is Delivery.DIRECT:
            return "it sends direct messages, which do not follow edges"
        if self.consumption is Consumption.LISTED:
            return "compute() reads its messages one by one, and edges have one slot a vertex to combine into"
        if self.consumption is Consumption.GROUPED:
            return "messages are grouped by key, and edges have one slot a vertex to combine into"
        return None

    @property
    def lanes_obstacle(self) -> str:
        """Why several runs cannot share lanes (`run_many`), whatever their options; empty where they can."""
        if self.delivery is Delivery.DIRECT:
            return "it sends direct messages, which are kept one by one"
        if self.reads_all_at_once:
            return "compute() reads its messages one by one, or by key"
        if self.reads_edge_links:
            return "it keeps values on edges, or walks the rows of neighbours"
        return ""

    @property
    def source(self) -> str:
        """The generated functions as Python text."""
        return ast.unparse(self.module)
