"""What loops on CPU cores take: named groups of arrays and numbers, and what the numbers in them mean.

A partition has n owned vertices and g ghosts. Every index is a local id: owned vertices first, then ghosts. Records,
and slots of inboxes, lie in arrays as `compiler.cpu.rows` lays them out: one array, or one of structures where there
are several fields.

What loops take besides:

    begin, end      the range of owned vertices that a call computes; uint64, as all positions
    empty           the slots of a vertex without messages
    contributions   ([n], ...) or (): aggregator contributions kept by vertex (deterministic runs)
    total           the aggregators' totals to add to; the identity at first
    touched         [targets + 1], filled: the vertices whose inbox got its first message. One entry more than there
                    can be targets, since the next entry is written before it is known whether it counts.

A loop over vertices returns (ran, active, senders, sent_edges) and the aggregators' totals: how many vertices
computed, how many of them stay active, how many sent, and how many out-edges these have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ACTIVE",
    "HALT",
    "HALTED",
    "HAS_MESSAGES",
    "RETIRE",
    "RETIRED",
    "SENDERS_ALL",
    "SENDERS_BITMAP",
    "SENDERS_NONE",
    "SENDERS_TEST_EACH",
    "SENT",
    "UNLISTED",
    "WROTE",
    "Bound",
    "CarriedRows",
    "DirectMessageQueue",
    "Edges",
    "FusedAccount",
    "FusedLimits",
    "FusedLists",
    "Inbox",
    "KeyTable",
    "LaneAccount",
    "LaneCounts",
    "LaneLimits",
    "LaneMasks",
    "LaneMemory",
    "LoopArguments",
    "MessageLists",
    "Outbox",
    "OutboxBitmap",
    "OwnedVertices",
    "VertexFields",
    "VertexSets",
]

ACTIVE, HALTED, RETIRED = 0, 1, 2
"""`VertexFields.status`."""

HALT, RETIRE, SENT = 1, 2, 4
"""The bits of the flags that compute() returns."""
WROTE = 8
"""And one more of CPU cores: it wrote to some of its edges."""

HAS_MESSAGES, UNLISTED = np.uint8(1), np.uint8(2)
"""The bits of `Inbox.state`."""

SENDERS_NONE, SENDERS_BITMAP, SENDERS_TEST_EACH, SENDERS_ALL = 0, 1, 2, 3
"""The sender filter of a pull: which in-neighbours sent, and how that is found.

NONE        none
BITMAP      the in-edges of those that sent are gathered first by their bits, without a branch
TEST_EACH   the bit of each in-neighbour is tested when its edge is reached
ALL         all that have an out-edge: no bit is read
"""

Arrays = tuple[NDArray[Any], ...]


class LoopArguments(NamedTuple):
    """What compute() reads of the run in a superstep."""

    superstep: int
    num_vertices: int
    num_edges: int
    params: tuple[Any, ...]
    aggregates: tuple[Any, ...]


class Edges(NamedTuple):
    """Edges whose targets are owned, by target (a pull: `ends` are sources) or by source (a push: targets).

    offsets: [n + 1] by target, [n + g + 1] by source: where each row begins. ends: [edges] uint32. columns: [edges]
    each, those that messages read. stops: [n] or [n + g]: where each row stops, which is where the next begins, but for
    rows that versions of a graph share. In-edges of a target ascend by the gid of their source.
    """

    offsets: NDArray[np.uint64]
    ends: NDArray[np.uint32]
    columns: Arrays
    stops: NDArray[np.uint64]


class OwnedVertices(NamedTuple):
    """What does not change of owned vertices.

    ids: [n + g], or [0] where ids are local ids. in_offsets: [n + 1]. out_degrees: [n]. walked: the out-edges that
    compute() reads, as `engine.cpu.work.walked_edges` returns them, or (). wrote: [n] 0 or 1: who wrote to edges
    in this superstep; [0] where nothing is kept there.
    """

    ids: NDArray[Any]
    in_offsets: NDArray[np.uint64]
    out_degrees: NDArray[Any]
    walked: tuple[Any, ...]
    wrote: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)


class VertexFields(NamedTuple):
    """What owned vertices keep. status: [n] ACTIVE, HALTED or RETIRED. states: [n] each."""

    status: NDArray[np.uint8]
    states: Arrays


class Outbox(NamedTuple):
    """What vertices send: one is read, one is written. sent: [n + g] 0 or 1. records: rows, [n + g]."""

    sent: NDArray[np.uint8]
    records: Arrays


class OutboxBitmap(NamedTuple):
    """An outbox as a pull reads it. sent: [(n + g) / 8], a bit a vertex: it stays in cache. records: rows, [n + g]."""

    sent: NDArray[np.uint8]
    records: Arrays


class Inbox(NamedTuple):
    """Messages combined at their targets. state: [n] of the bits below. slots: rows, [n].

    A push visits `state` at random, once a message, so it holds all that a push reads of a target: HAS_MESSAGES, and
    UNLISTED where a first message need not list the target, since it is active and runs anyway or has retired and does
    not. Messages to vertices that retired are combined, and never read: to test for it would cost more.
    """

    state: NDArray[np.uint8]
    slots: Arrays


class MessageLists(NamedTuple):
    """Messages sorted by target. offsets: [n + 1], where each vertex's begin. messages: [messages] each.

    Twice as many places where each list is sorted by key, too.
    """

    offsets: NDArray[np.int64]
    messages: Arrays


class KeyTable(NamedTuple):
    """The keys of one vertex. stamps: [places] uint32, all 0. rows: slots, [places]. used: [messages] the places taken.

    `places` is a power of two, at least 4 and twice the messages; a stamp is counted from 1.
    """

    stamps: NDArray[np.uint32]
    rows: Arrays
    used: NDArray[np.uint32]


class DirectMessageQueue(NamedTuple):
    """Messages that compute() writes out one by one. size: [1]. The others: [capacity]; kinds are TO_GID or TO_ID."""

    size: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    targets: NDArray[np.int64]
    senders: NDArray[np.uint32]
    messages: Arrays


class Bound(NamedTuple):
    """What bounds the keys of a monotone program in a superstep.

    records: rows, [1]: the best record of the last superstep. columns: ([n], ...): of the column that goes into keys,
    the best value among each vertex's in-edges.
    """

    records: Arrays
    columns: Arrays


class CarriedRows(NamedTuple):
    """What pieces of edges have for a row of an earlier piece. rows: [pieces] uint32. slots: rows, [pieces]."""

    rows: NDArray[np.uint32]
    slots: Arrays


class FusedLimits(NamedTuple):
    """When fused supersteps end: before superstep `end`, or by work, in messages and active vertices."""

    end: int
    most_work: int
    most_work_of_all: int
    num_edges: int
    pull_gain: int
    forced: int


class FusedAccount(NamedTuple):
    """What is counted of fused supersteps, [supersteps] each: vertices that ran, messages sent, and the work."""

    ran: NDArray[np.int64]
    messages: NDArray[np.int64]
    work: NDArray[np.int64]


class FusedLists(NamedTuple):
    """Lists of vertices, uint32. senders, active: [capacity]; touched: [capacity + 1]. sizes: [2], of the first two."""

    senders: NDArray[np.uint32]
    active: NDArray[np.uint32]
    touched: NDArray[np.uint32]
    sizes: NDArray[np.int64]


class LaneMasks(NamedTuple):
    """A bit a lane of each vertex, [n] uint64 each: active, retired, sent in the last superstep, has a message."""

    active: NDArray[np.uint64]
    retired: NDArray[np.uint64]
    sent: NDArray[np.uint64]
    has: NDArray[np.uint64]


class VertexSets(NamedTuple):
    """A bit a vertex, [n / 64] uint64 each: those that sent in some lane, and those that are to run in some."""

    senders: NDArray[np.uint64]
    running: NDArray[np.uint64]


class LaneMemory(NamedTuple):
    """What vertices keep in each of k lanes, [n * k]: lane l of vertex v at v * k + l. records and slots are rows."""

    states: Arrays
    records: Arrays
    slots: Arrays


class LaneCounts(NamedTuple):
    """What is counted of each lane, [k] int64: its next superstep; of the last vertices that ran, active, messages."""

    superstep: NDArray[np.int64]
    ran: NDArray[np.int64]
    active: NDArray[np.int64]
    messages: NDArray[np.int64]


class LaneLimits(NamedTuple):
    """When a call ends: all lanes before superstep `end`, or after `most_work`; how the direction is chosen.

    counts_idle: A bit a lane whose superstep counts where no vertex ran.
    """

    counts_idle: np.uint64
    end: int
    most_work: int
    pull_gain: int
    forced: int


class LaneAccount(NamedTuple):
    """What lanes did in each superstep of a call, zeroed, [supersteps * k]: whether it counts, who ran, messages.

    direction: [supersteps].
    """

    counted: NDArray[np.int64]
    ran: NDArray[np.int64]
    messages: NDArray[np.int64]
    direction: NDArray[np.int64]
