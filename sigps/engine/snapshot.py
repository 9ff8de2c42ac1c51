"""One partition between two supersteps, in a form that any engine can continue from, on any number of ranks.

Vertices are named by gid, so nothing here knows a partition. What is in flight is kept as it is at that moment:

    records    outbox records of those who sent, which the edge function makes messages of (compiled engines)
    slots      messages by name, combined at their targets
    messages   messages one by one, those of a target in the order in which it reads them

A record stands for the messages of all its vertex's edges, so a dense superstep takes a few bytes a vertex.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["InFlight", "Snapshot", "as_columns", "fill_rows"]

Arrays = tuple[NDArray[Any], ...]
InFlight = Literal["records", "slots", "messages"]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What one partition needs to go on. Its arrays are its own: the engine may run on while they are written.

    Attributes:
        superstep: The one that comes next.
        gids: [num_owned], in any order.
        status: [num_owned] uint8: `kernels.cpu.arguments.ACTIVE`, `HALTED` or `RETIRED`.
        states: [num_owned] each, in the program's order.
        in_flight: What `ends` and `values` are.
        ends: Gids of the senders of records, of the targets of slots and messages.
        values: One array a field of these, aligned with `ends`.
        aggregates: What compute() reads of its aggregators in the next superstep.
        sources: Gids of the vertices that keep values on out-edges, one for each of these: a vertex's edges in order.
        edges: [edges] each, aligned with `sources`.
    """

    superstep: int
    gids: NDArray[np.int64]
    status: NDArray[np.uint8]
    states: Arrays
    in_flight: InFlight
    ends: NDArray[np.int64]
    values: Arrays
    aggregates: tuple[Any, ...]
    sources: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    edges: Arrays = ()


def as_columns(rows: Arrays, at: Any) -> Arrays:
    """Return copies of some of the rows that `compiler.cpu.rows.rows` laid out, one array a field."""
    if len(rows) == 1 and rows[0].dtype.names:
        return tuple(rows[0][name][at].copy() for name in rows[0].dtype.names)
    return tuple(array[at].copy() for array in rows)


def fill_rows(rows: Arrays, at: Any, columns: Arrays) -> None:
    """Write columns, as `as_columns` returns them, into rows."""
    if len(rows) == 1 and rows[0].dtype.names:
        rows = tuple(rows[0][name] for name in rows[0].dtype.names)
    for array, column in zip(rows, columns, strict=True):
        array[at] = column
