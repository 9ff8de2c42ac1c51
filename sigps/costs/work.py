"""What a program moves through memory."""

from __future__ import annotations

from dataclasses import dataclass

from sigps.compiler.program import VertexProgram
from sigps.costs.sizes import Size

__all__ = ["Work", "work_of"]


@dataclass(frozen=True)
class Work:
    """What a program moves through memory, in bytes.

    Attributes:
        record: An outbox record.
        edge: For each edge in a dense superstep: its index, the record of its source, the columns that are read.
        vertex: For each vertex there: its fields and its record written, its degree and status read.
    """

    record: int
    edge: int
    vertex: int


def work_of(program: VertexProgram, size: Size, state_bytes: int) -> Work:
    """Return what a program moves; a value of a record counts 8 bytes, or 4 in single precision."""
    record = len(program.record) * (4 if program.precision == "single" else 8)
    index = 4 if size.num_vertices < 2**32 else 8
    columns = size.column_bytes if program.edge_columns else 0
    return Work(record, index + record + columns, state_bytes + record + 4 + 1)
