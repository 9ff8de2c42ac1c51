"""What crosses between ranks by NCCL or hosts, and the room that it takes: pure functions of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sigps.compiler.edge_reads import states_read_of_reverse
from sigps.compiler.program import VertexProgram

__all__ = ["Entry", "bytes_to_cross", "bytes_to_stage", "entries_at_a_time", "entry_of"]

_LEAST_ENTRIES, _SHARE = 1 << 20, 16
"""Entries to all other ranks for which there is room, and more where edges that cross are over so many times as many:
their room is then little beside what each edge takes."""

_ROUNDED_UP = 1 << 14
"""More bytes for arrays, of which each takes multiples of 512, and for a few numbers of each rank."""


def bytes_to_stage(
    halo: Sequence[int], ghosts: Sequence[int], num_owned: int, record_bytes: int, message_bytes: int | None
) -> int:
    """Return what a rank takes so that records cross from GPU to GPU between launches, and messages of pushes.

    Args:
        halo: [ranks]: how many of its vertices each other rank has as ghosts.
        ghosts: [ranks]: how many ghosts it has of each other rank.
        num_owned: Its vertices.
        record_bytes: Of a record.
        message_bytes: Of a combined message; None where nothing is pushed.
    """
    sent, read = sum(halo), sum(ghosts)
    found = 4 * sent + (sent + read) * record_bytes + (sent + read) // 8 + 32 * len(halo) + _ROUNDED_UP
    if message_bytes is not None:
        listed, slots = (sum(-(-count // 32) * 32 for count in counts) for counts in (ghosts, halo))
        found += listed * (4 + message_bytes) + 4 * slots + 4 * (num_owned + 1) + 4 * sent
    return found


class Entry(NamedTuple):
    """What crosses of an edge: its number, 8 bytes, and values.

    Attributes:
        places: Where the value of each edge state is; None of those that do not cross.
        num_bytes: Of an entry, a multiple of 8.
    """

    places: tuple[int | None, ...]
    num_bytes: int


def entry_of(program: VertexProgram) -> Entry:
    """Return how entries are made: with the edge states that compute() reads of the other end, widest words first."""
    read = states_read_of_reverse(program) if program.reads_reverse else ()
    sizes = {i: program.edge_state_dtypes[i].itemsize for i in read}
    places: list[int | None] = [None] * len(program.edge_state_dtypes)
    at = 8
    for i in sorted(read, key=lambda i: -(sizes[i] & -sizes[i])):  # as their words are aligned
        places[i] = at
        at += sizes[i]
    return Entry(tuple(places), -(-at // 8) * 8)


def entries_at_a_time(most: int, num_ranks: int) -> int:
    """Return for how many entries there is room, for each other rank.

    Args:
        most: The most edges that lead from a rank to others.
        num_ranks: The ranks.

    >>> entries_at_a_time(100, 3), entries_at_a_time(1 << 22, 3), entries_at_a_time(1 << 26, 3)
    (50, 524288, 2097152)
    """
    return -(-min(most, max(_LEAST_ENTRIES, most // _SHARE)) // max(1, num_ranks - 1))


def bytes_to_cross(program: VertexProgram, most: int, num_rows: int, num_ranks: int) -> int:
    """Return what a rank takes beside values so that they cross: entries, as many that arrive, and where edges lead.

    Args:
        program: The program.
        most: The most edges that lead from a rank to others.
        num_rows: Rows of the rank.
        num_ranks: The ranks.
    """
    if not program.edge_states or num_ranks == 1:
        return 0
    own = 32 * len(program.edge_states) + 8 * (num_ranks + 1)
    if not program.reads_reverse:
        return own
    entries = entries_at_a_time(most, num_ranks) * entry_of(program).num_bytes
    return own + (2 * num_ranks - 1) * entries + 8 * num_ranks * (num_rows + 1)
