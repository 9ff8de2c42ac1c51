"""The types of a program's slots and outbox record, which lift() and compute() have once theirs are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from sigps.compiler.cpu.rows import Dtypes
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.model.fields import Field
from sigps.native.builder import Functions
from sigps.native.source import reject
from sigps.native.types import BOOL, INT, NONE, UINT, Array, Number, Tuple, Type, flat, scalar_of

__all__ = ["argument_types", "infer_types", "master_types"]

Precision = Literal["single", "double"]


def infer_types(
    program: VertexProgram,
    functions: Functions,
    used: Sequence[np.dtype[Any]],
    read: Sequence[np.dtype[Any]],
    direct: Tuple | None = None,
    *,
    has_team: bool = False,
) -> tuple[Dtypes, Dtypes]:
    """Return the types of the slots and of the outbox record, having found those of all functions.

    Args:
        program: The program.
        functions: Its functions.
        used: Types of the edge columns that messages read.
        read: Types of the edge columns that compute() reads.
        direct: What compute() hands to emit(), where it is not what the CPU's takes.
        has_team: Whether compute() also takes its team.

    Raises:
        CompileError: If the types do not fit together; with file and line.
    """
    slots = program.message_dtypes
    if program.consumption is not Consumption.LISTED:
        lifted = functions.instance("lift", argument_types(program, slots, (), used, read)["lift"]).result
        slots = tuple(summable(d, op) for d, op in zip(_dtypes(lifted), program.slot_ops, strict=True))
    if program.consumption is Consumption.GROUPED:
        _check_key(functions, "lift", lifted.items[0])  # type: ignore[union-attr]
    arguments = argument_types(program, slots, (), used, read, direct, has_team=has_team)
    result = functions.instance("compute", arguments["compute"]).result
    assert isinstance(result, Tuple)
    record = _dtypes(result.items[2])
    if program.precision == "single":
        record = tuple(np.dtype((np.float32, d.shape)) if d.base == np.float64 else d for d in record)
    arguments = argument_types(program, slots, record, used, read)
    for name in ("edge", "merge", "key", "fold"):
        if name in functions:
            functions.instance(name, arguments[name])
    if program.sorts_by:
        _check_key(functions, "key", functions.instance("key", arguments["key"]).result)
    return slots, record


def _check_key(functions: Functions, name: str, kind: Type | None) -> None:
    """Refuse a key that is no whole number, at the place of the function that makes it."""
    if not isinstance(kind, Number) or kind.is_float:
        reject(functions.tree(name).body[-1], f"a key of messages is a whole number, and this is {kind}")


def argument_types(
    program: VertexProgram,
    slots: Sequence[np.dtype[Any]],
    record: Sequence[np.dtype[Any]],
    used: Sequence[np.dtype[Any]],
    read: Sequence[np.dtype[Any]],
    direct: Tuple | None = None,
    *,
    is_by_warp: bool = False,
    has_team: bool = False,
) -> dict[str, tuple[Type, ...]]:
    """Return the types of the arguments of each function (`compiler/program.py`), for types of slots and record.

    Args:
        program: The program.
        slots: Types of the slots; where messages are listed, of a message's fields.
        record: Types of the record's fields.
        used: Types of the edge columns that messages read.
        read: Types of the edge columns that compute() reads.
        direct: What compute() hands to emit(), where it is not what the CPU's takes.
        is_by_warp: Whether all lanes of a warp run compute() of a vertex together.
        has_team: Whether compute() also takes its team.
    """
    env = _tuple((np.int64,) * 3)
    params = Tuple(tuple(_parameter(field.dtype(program.precision), field) for field in program.params))  # type: ignore[arg-type]
    inbox = _tuple(slots)
    if program.consumption is Consumption.LISTED:
        inbox = Tuple((INT, INT, *_arrays(slots).items))
    edges = Tuple(())
    if program.reads_edges:
        parts = (UINT, UINT, *_arrays((np.uint32, np.int64)).items, _arrays(read))
        if program.reads_edge_links:
            states = _arrays(program.edge_state_dtypes)
            pending = _arrays(program.edge_state_dtypes, is_shared=is_by_warp)
            rows = _arrays((np.uint32, np.uint64, np.uint32, np.uint32, np.int64))
            parts += (Tuple((*rows.items, pending, states)),)
        edges = Tuple(parts)
    if direct is None or program.delivery is not Delivery.DIRECT:
        fields = (np.int64, np.uint8, np.int64, np.uint32, *program.message_dtypes)
        direct = _arrays(fields) if program.delivery is Delivery.DIRECT else Tuple(())
    totals = _tuple(program.aggregate_dtypes)
    read_only = env, params, totals, env  # the second: (id, out_degree, in_degree)
    team = (Array(Number.of(np.uint32)),) if has_team else ()
    return {
        "compute": (*read_only, _tuple(program.state_dtypes), inbox, BOOL, edges, direct, *team),
        "edge": (env, params, _tuple(record), INT, INT, _tuple(used)),
        "lift": (env, params, _tuple(program.message_dtypes)),
        "merge": (inbox, BOOL, inbox),
        "key": (env, params, _tuple(program.message_dtypes)),
        "fold": (totals, totals),
    }


def master_types(
    params: Sequence[Field], aggregates: Sequence[np.dtype[Any]], precision: Precision
) -> tuple[Type, ...]:
    """Return the types of the arguments of `master`, for types of the aggregators."""
    given = Tuple(tuple(_parameter(field.dtype(precision), field) for field in params))
    return _tuple((np.int64,) * 3), given, _tuple(aggregates)


def summable(dtype: np.dtype[Any], op: str) -> np.dtype[Any]:
    """Return the type of a slot: whole numbers add up and multiply in 64 bits, as they do in Python."""
    if op not in ("sum", "prod") or dtype.base.kind not in "iu":
        return dtype
    return np.dtype((np.uint64 if dtype.base.kind == "u" else np.int64, dtype.shape))


def _parameter(dtype: np.dtype[Any], field: Field) -> Type:
    number = Number.of(dtype)
    return Tuple((Array(number), INT)) if field.is_table else number


def _tuple(dtypes: Iterable[Any]) -> Tuple:
    return Tuple(tuple(scalar_of(d) for d in dtypes))


def _arrays(dtypes: Iterable[Any], *, is_shared: bool = False) -> Tuple:
    return Tuple(tuple(Array(scalar_of(d), is_shared=is_shared) for d in dtypes))


def _dtypes(kind: Any) -> Dtypes:
    return tuple(part.dtype for part in flat(kind or NONE) if not isinstance(part, Array))
