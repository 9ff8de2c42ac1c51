"""What values on edges take where rows stream: pure functions of the program and of counts."""

from __future__ import annotations

from typing import NamedTuple

from sigps.compiler.edge_reads import states_read_of_reverse
from sigps.compiler.program import VertexProgram
from sigps.engine.cpu.change_log import SEGMENTS_IN_ROOM, entry_bytes

__all__ = [
    "LogRooms",
    "change_bytes",
    "least_room",
    "log_rooms",
    "most_room",
    "thread_bytes",
    "value_bytes",
    "waiting_bytes",
]

_LEAST_LOG = 1 << 18
"""Bytes of changed values that wait in memory at least: less would only make segments of a few blocks."""

_MOST_SEGMENTS = 128
"""Segments of a superstep in which all values change, at most: each block looks into all of them when it is read."""


def value_bytes(program: VertexProgram) -> int:
    """Return the bytes of an edge: the values that its vertex keeps, and copies of those read of the other end."""
    return _kept(program) + _read(program)


def change_bytes(program: VertexProgram) -> int:
    """Return the bytes of an edge whose changed values wait for the other end."""
    if not program.reads_reverse:
        return 0
    return entry_bytes([program.edge_state_dtypes[i] for i in states_read_of_reverse(program)])


def waiting_bytes(program: VertexProgram, num_ranks: int) -> int:
    """Return the bytes of an edge if every value changes in every superstep.

    It waits twice, and is grouped; on several ranks it waits once more, to cross.
    """
    return (4 + 2 * (num_ranks > 1)) * change_bytes(program)


def least_room(program: VertexProgram, num_edges: int, num_ranks: int) -> int:
    """Return the bytes of memory that values on so many edges take where all of them are in files.

    On several ranks half as much again is for those that cross.
    """
    if not program.reads_reverse:
        return 0
    here = max(_LEAST_LOG, SEGMENTS_IN_ROOM * change_bytes(program) * num_edges // _MOST_SEGMENTS)
    return here + here // 2 * (num_ranks > 1)


def most_room(program: VertexProgram, num_edges: int, num_ranks: int) -> int:
    """Return the bytes with which no value is in a file."""
    waiting = waiting_bytes(program, num_ranks) * num_edges
    return value_bytes(program) * num_edges + max(least_room(program, num_edges, num_ranks), waiting)


class LogRooms(NamedTuple):
    """Bytes of memory for values that wait, by what they wait for; None for no limit.

    Attributes:
        here: For blocks of this rank.
        crossing: To cross to other ranks, in one superstep.
    """

    here: int | None
    crossing: int | None

    @property
    def both(self) -> int:
        return (self.here or 0) + (self.crossing or 0)


def log_rooms(program: VertexProgram, num_edges: int, room: int | None, num_ranks: int) -> LogRooms:
    """Return the parts of the room for values that wait."""
    if room is None:
        return LogRooms(None, None)
    if not program.reads_reverse:
        return LogRooms(0, 0)
    beside_all = room - value_bytes(program) * num_edges
    most = min(waiting_bytes(program, num_ranks) * num_edges, max(room // 4, beside_all))
    waiting = max(least_room(program, num_edges, num_ranks), most)
    crossing = waiting // 3 if num_ranks > 1 else 0
    return LogRooms(waiting - crossing, crossing)


def thread_bytes(program: VertexProgram, longest: int) -> int:
    """Return what a thread takes for the longest block, of so many edges.

    Its values, as they are and as they were; marks and a list of what changed; and as many changes as arrive at once.
    """
    kept, read = _kept(program), _read(program)
    return longest * (2 * kept + read + 1 + (12 + read) + (16 + read if program.reads_reverse else 0))


def _kept(program: VertexProgram) -> int:
    return sum(dtype.itemsize for dtype in program.edge_state_dtypes)


def _read(program: VertexProgram) -> int:
    return sum(program.edge_state_dtypes[i].itemsize for i in states_read_of_reverse(program))
