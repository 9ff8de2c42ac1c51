"""The types of a program's slots and outbox record, which lift() and compute() have once theirs are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sigps.compiler.cpu.rows import Dtypes
from sigps.compiler.dispatchers import summable
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.native.builder import Functions
from sigps.native.types import BOOL, INT, NONE, UINT, Array, Number, Tuple, flat

__all__ = ["infer_types"]


def infer_types(
    program: VertexProgram,
    functions: Functions,
    used: Sequence[np.dtype[Any]],
    read: Sequence[np.dtype[Any]],
) -> tuple[Dtypes, Dtypes]:
    """Return the types of the slots and of the outbox record, having found those of all functions.

    Args:
        program: The program.
        functions: Its functions.
        used: Types of the edge columns that messages read.
        read: Types of the edge columns that compute() reads.

    Raises:
        CompileError: If the types do not fit together; with file and line.
    """
    env = _tuple((np.int64,) * 3)
    params = _tuple(field.dtype(program.precision) for field in program.params)  # type: ignore[arg-type]
    slots = program.message_dtypes
    inbox = Tuple((INT, INT, *_arrays(slots).items))
    if program.consumption is not Consumption.LISTED:
        lifted = functions.instance("lift", (env, params, _tuple(slots))).result
        slots = tuple(summable(d, op) for d, op in zip(_dtypes(lifted), program.slot_ops, strict=True))
        inbox = _tuple(slots)
    edges = direct = Tuple(())
    if program.reads_edges:
        parts = (UINT, UINT, *_arrays((np.uint32, np.int64)).items, _arrays(read))
        if program.reads_edge_links:
            states = _arrays(program.edge_state_dtypes)
            rows = _arrays((np.uint32, np.uint64, np.uint32, np.uint32, np.int64))
            parts += (Tuple((*rows.items, states, states)),)
        edges = Tuple(parts)
    if program.delivery is Delivery.DIRECT:
        direct = _arrays((np.int64, np.uint8, np.int64, np.uint32, *program.message_dtypes))
    read_only = env, params, _tuple(program.aggregate_dtypes), env  # the second: (id, out_degree, in_degree)
    given = *read_only, _tuple(program.state_dtypes), inbox, BOOL, edges, direct
    result = functions.instance("compute", given).result
    assert isinstance(result, Tuple)
    record = _dtypes(result.items[2])
    if program.precision == "single":
        record = tuple(np.dtype(np.float32) if d == np.float64 else d for d in record)
    if "edge" in functions:
        functions.instance("edge", (env, params, _tuple(record), INT, INT, _tuple(used)))
    if "merge" in functions:
        functions.instance("merge", (inbox, BOOL, inbox))
    totals = _tuple(program.aggregate_dtypes)
    functions.instance("fold", (totals, totals))
    return slots, record


def _tuple(dtypes: Iterable[Any]) -> Tuple:
    return Tuple(tuple(Number.of(d) for d in dtypes))


def _arrays(dtypes: Iterable[Any]) -> Tuple:
    return Tuple(tuple(Array(Number.of(d)) for d in dtypes))


def _dtypes(kind: Any) -> Dtypes:
    return tuple(part.dtype for part in flat(kind or NONE) if isinstance(part, Number))
