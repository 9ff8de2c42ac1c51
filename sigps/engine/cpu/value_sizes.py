"""What values on edges take where rows stream: pure functions of the program and of counts."""

from __future__ import annotations

from sigps.compiler.edge_reads import states_read_of_reverse
from sigps.compiler.program import VertexProgram

__all__ = ["change_bytes", "least_room", "log_room", "most_room", "thread_bytes", "value_bytes"]

_LEAST_LOG = 1 << 18
"""Bytes of changed values that wait in memory at least."""

_MOST_SEGMENTS = 128
"""Segments of a superstep in which all values change, at most: each block looks into all of them when it is read."""


def value_bytes(program: VertexProgram) -> int:
    """Return the bytes of an edge: the values that its vertex keeps, and copies of those read of the other end."""
    return _kept(program) + _read(program)


def change_bytes(program: VertexProgram) -> int:
    """Return the bytes of an edge whose changed values wait for the other end: both ends' numbers, and the values."""
    return 8 + _read(program) if program.reads_reverse else 0


def least_room(program: VertexProgram, num_edges: int) -> int:
    """Return the bytes of memory that values on so many edges take where all of them are in files.

    A fifth of them is a segment (`change_log.py`).
    """
    if not program.reads_reverse:
        return 0
    return max(_LEAST_LOG, 5 * change_bytes(program) * num_edges // _MOST_SEGMENTS)


def most_room(program: VertexProgram, num_edges: int) -> int:
    """Return the bytes with which no value is in a file: twice as many may wait as there are edges, and be grouped."""
    return max(least_room(program, num_edges), (value_bytes(program) + 4 * change_bytes(program)) * num_edges)


def log_room(program: VertexProgram, num_edges: int, room: int | None) -> int | None:
    """Return the part of the room for values that wait; None where that has no limit."""
    if room is None or not program.reads_reverse:
        return room and 0
    beside_all = room - value_bytes(program) * num_edges
    return max(
        least_room(program, num_edges), min(4 * change_bytes(program) * num_edges, max(room // 4, beside_all))
    )


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
