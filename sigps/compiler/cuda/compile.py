"""From a vertex program to a cubin: its functions as CUDA C++, compiled with engine kernels by NVRTC, and linked.

Nothing here needs a GPU, and what was compiled before needs no compiler: it comes from the cache on disk.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sigps.compiler.cuda.adapters import Dtypes, Layout, Row
from sigps.compiler.cuda.master import find_master_site, master_source
from sigps.compiler.cuda.teams import divides
from sigps.compiler.program import (
    Consumption,
    Delivery,
    EarlyExit,
    VertexProgram,
    empty_value,
    identity_of,
)
from sigps.device.linking import link_kernel, toolchain_versions
from sigps.errors import CompileError
from sigps.kernels.cuda.abi import capacity_of
from sigps.kernels.cuda.lease import warp_table_bytes
from sigps.model.fields import Field
from sigps.native import cache
from sigps.native.builder import Site
from sigps.native.trees import walk

if TYPE_CHECKING:
    from sigps.compiler.cuda.functions import Functions

__all__ = [
    "CudaProgram",
    "c_type",
    "compile_for_cuda",
    "find_atomics_obstacle",
    "key_bytes",
    "link",
    "macros_of",
]

_OPS = {
    "sum": 0,
    "min": 1,
    "max": 2,
    "any": 3,
    "all": 4,
    "user": 5,
    "key": 5,
    "prod": 6,
    "or": 7,
    "and": 8,
    "xor": 9,
}


@dataclass(frozen=True, eq=False)
class CudaProgram:
    """A vertex program compiled for one architecture, one graph's column types, and one width of ids.

    Attributes:
        states: Types of the states in memory, as of the following: ids may be narrower than in compute().
        slots: Types of the inbox fields.
        record: Types of the outbox record's fields.
        message: Types of the message's fields.
        record_types: What compute() makes of the record's: those of the CPU.
        neutral: The slots that change no others, as a row's bytes; None where there are no such.
        functions: The functions of `abi.cuh`, as modules of LTO-IR.
        defines: The macros that `abi.cuh` needs.
        columns: The types of the edge columns that it was compiled for.
        has_open_loops: Whether compute() has a `while`, which may never end.
    """

    program: VertexProgram
    states: Dtypes
    slots: Dtypes
    record: Dtypes
    message: Dtypes
    record_types: Dtypes
    neutral: bytes | None
    functions: tuple[bytes, ...]
    defines: Mapping[str, str]
    columns: tuple[Dtypes, Dtypes]
    has_open_loops: bool

    def find_site(self, program: VertexProgram, fault: int) -> Site:
        """Return the place of a fault in a program that is equal to this one: it may stand in another file."""
        functions, layout = _described(program, *self.columns, self.defines["SIGPS_ID"] == "int32_t")
        functions.source(layout, _empty(program, layout.slots))
        return functions.sites[fault - 1]

    def find_master_site(self, program: VertexProgram, fault: int) -> Site:
        """Return the same of a fault of `sigps_master`."""
        layout = _described(program, *self.columns, self.defines["SIGPS_ID"] == "int32_t")[1]
        return find_master_site(program, layout, fault)


def compile_for_cuda(
    program: VertexProgram, columns: Mapping[str, np.dtype[Any]], *, narrow_ids: bool, arch: str
) -> CudaProgram:
    """Compile a program's functions for a GPU; what was compiled before comes from the cache on disk.

    Args:
        program: The vertex program.
        columns: The types of the graph's edge columns.
        narrow_ids: Whether all ids of the graph fit 32 bits, so that they are kept in so many.
        arch: As in `sm_90`.

    Raises:
        CompileError: If the types in compute() do not fit together, or CUDA lacks something that it calls; with
            file, line and source text.
    """
    used = tuple(columns.get(c, np.dtype(np.float64)) for c in program.edge_columns)
    read = tuple(columns.get(c, np.dtype(np.float64)) for c in program.read_columns)
    return _compile(program, used, read, narrow_ids, arch)


def macros_of(
    program: VertexProgram, columns: Mapping[str, np.dtype[Any]], *, narrow_ids: bool
) -> Mapping[str, str]:
    """Return the macros of a program without compiling it; arguments and errors are those of `compile_for_cuda`."""
    used, read = (
        tuple(columns.get(c, np.dtype(np.float64)) for c in names)
        for names in (program.edge_columns, program.read_columns)
    )
    return _macros_of(program, used, read, narrow_ids)


@functools.lru_cache(maxsize=256)
def _macros_of(program: VertexProgram, used: Dtypes, read: Dtypes, narrow_ids: bool) -> Mapping[str, str]:
    _check_room(program)
    functions, layout = _described(program, used, read, narrow_ids)
    _, can_fault = functions.source(layout, _empty(program, layout.slots))
    return _defines(program, layout, _neutral(program, layout.slots), can_fault)


def find_atomics_obstacle(compiled: CudaProgram, arch: str) -> str | None:
    """Return why messages cannot be combined in memory by atomics; None where they can.

    The rule of `HAS_PUSH` in `kernels/combine.cuh`.
    """
    if not compiled.slots:
        return None
    if not compiled.neutral:
        return "a combiner that is a function, for which there is no atomic"
    size = len(compiled.neutral)
    fields = zip(_ops(compiled.program), compiled.slots, strict=True)
    if all(_is_native(_native_op(op, d.base), d.base) for op, d in fields):
        return None
    most = 16 if int(arch.removeprefix("sm_")) >= 90 else 8
    if size in (4, 8, 16) and size <= most:
        return None
    return f"{size} bytes that combine as a whole, for which there is no atomic"


def _is_native(op: str, dtype: np.dtype[Any]) -> bool:
    if op in ("any", "all"):
        return dtype.kind == "b"
    return op not in ("user", "prod") and dtype.itemsize >= 4


def link(program: CudaProgram, kernel: str, arch: str, defines: Mapping[str, str] | None = None) -> bytes:
    """Link a program's functions into an engine kernel; what was linked before comes from the cache on disk.

    Args:
        program: The compiled program.
        kernel: The name of a file in `sigps/kernels`, as in `superstep`.
        arch: What to link for: what the functions were compiled for, or a later architecture.
        defines: More macros for the kernel.

    Returns:
        A cubin.

    Raises:
        DeviceError: If the kernel cannot be compiled or linked.
    """
    return link_kernel(kernel, arch, {**program.defines, **(defines or {})}, program.functions)


@functools.lru_cache(maxsize=256)
def _compile(program: VertexProgram, used: Dtypes, read: Dtypes, narrow_ids: bool, arch: str) -> CudaProgram:
    key = f"cuda {program.key} {used} {read} {narrow_ids} {arch} {toolchain_versions()}"
    kept = cache.read(key)
    if kept is None:
        kept = _compiled(program, used, read, narrow_ids, arch)
        cache.write(key, kept)
    plain: dict[str, Any] = {**kept, "functions": tuple(kept["functions"]), "columns": (used, read)}
    for name in _ROWS:
        plain[name] = tuple(np.dtype((base, tuple(shape))) for base, shape in kept[name])
    return CudaProgram(program, **plain)


_ROWS = ("states", "slots", "record", "message", "record_types")


def _compiled(
    program: VertexProgram, used: Dtypes, read: Dtypes, narrow_ids: bool, arch: str
) -> dict[str, Any]:
    """Return what is kept on disk: the attributes of a `CudaProgram` as plain data, rows as base types and shapes."""
    _check_room(program)
    functions, layout = _described(program, used, read, narrow_ids)
    neutral = _neutral(program, layout.slots)
    source, can_fault = functions.source(layout, _empty(program, layout.slots))
    defines = _defines(program, layout, neutral, can_fault)
    rows = (
        layout.states.stored,
        layout.slots.stored,
        layout.record.stored,
        layout.message.stored,
        layout.record.dtypes,
    )
    modules = [functions.compile(source, defines, arch)]
    if program.master is not None:  # its products are rounded in every run
        modules.append(
            functions.compile(master_source(program, layout), {**defines, "SIGPS_FUSES": "0"}, arch)
        )
    return {
        **{name: [(d.base.str, d.shape) for d in row] for name, row in zip(_ROWS, rows, strict=True)},
        "neutral": neutral,
        "functions": modules,
        "defines": defines,
        "has_open_loops": functions.has_open_loops,
    }


def _described(
    program: VertexProgram, used: Dtypes, read: Dtypes, narrow_ids: bool
) -> tuple[Functions, Layout]:
    """Return a program's functions, their types found, and where its data lie."""
    from sigps.compiler.cuda.functions import Functions

    columns = dict(zip((*program.edge_columns, *program.read_columns), (*used, *read), strict=True))
    functions = Functions(program, columns)
    slots, record = functions.infer()
    if program.consumption is Consumption.LISTED:
        slots = ()
    return functions, _layout(program, slots, record, used, read, narrow_ids)


def _check_room(program: VertexProgram) -> None:
    listed = program.message if program.consumption is Consumption.LISTED else ()
    given: dict[str, tuple[Sized, str]] = {
        "states": (program.states, "states"),
        "columns": (program.edge_columns, "edge columns in messages"),
        "out_columns": (program.read_columns, "edge columns in compute()"),
        "pending": (program.edge_states, "values kept on each edge"),
        "lists": (listed, "message fields"),
    }
    for name, (kept, what) in given.items():
        if len(kept) > capacity_of(name):
            raise CompileError(
                f"{program.name} has {len(kept)} {what}; a GPU takes {capacity_of(name)}: "
                "use fewer, or run it with device='cpu'",
                file=program.file,
                line=program.line,
            )


def _layout(
    program: VertexProgram, slots: Dtypes, record: Dtypes, used: Dtypes, read: Dtypes, narrow_ids: bool
) -> Layout:
    def row(dtypes: Dtypes, are_ids: Sequence[bool] = ()) -> Row:
        narrow = np.dtype(np.int32)
        are_narrow = (narrow_ids and is_id for is_id in are_ids or [False] * len(dtypes))
        parts = zip(dtypes, are_narrow, strict=True)
        return Row(dtypes, tuple(narrow if n and d == np.int64 else d for d, n in parts))

    return Layout(
        params=row(_params_in_cells(program)),
        aggregates=row(program.aggregate_dtypes),
        states=row(program.state_dtypes, [f.is_vertex_id for f in program.states]),
        slots=row(slots, _slots_that_are_ids(program, len(slots))),
        record=row(record, _records_that_are_ids(program)),
        message=row(program.message_dtypes),
        columns=used,
        read_columns=read,
        edge_states=program.edge_state_dtypes,
        narrow_ids=narrow_ids,
    )


def _params_in_cells(program: VertexProgram) -> Dtypes:
    """Return the types of the parameters' cells: of a table an address and a length."""
    table = np.dtype(np.uint64), np.dtype(np.int64)
    cells = (table if f.is_table else (f.dtype(program.precision),) for f in program.params)  # type: ignore[arg-type]
    return tuple(dtype for cell in cells for dtype in cell)


def _is_id(field: Field) -> bool:
    """Return whether a field holds ids alone, which may fit 32 bits as they are; what stands for None does not."""
    return field.is_vertex_id and not field.may_be_none


def _slots_that_are_ids(program: VertexProgram, count: int) -> list[bool]:
    """Return whether each slot holds one message's `VertexId` field as it is; sums do not."""
    lift = program.function("lift")
    if lift is None or not count:
        return []
    fields = {f.name: _is_id(f) for f in program.message}
    lifted = lift.body[-1]
    assert isinstance(lifted, ast.Return)
    assert isinstance(lifted.value, ast.Tuple)
    found = []
    for op, part in zip(program.slot_ops, lifted.value.elts, strict=True):
        is_id = False
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "__m":
            is_id = fields[part.attr]
        elif isinstance(part, ast.Name) and part.id == "__m":
            is_id = _is_id(program.message[0])
        elif isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            position = part.slice.value
            is_id = isinstance(position, int) and op != "exact" and _is_id(program.message[position])
        found.append(is_id and op in ("min", "max", "user", "key"))
    return found


def _records_that_are_ids(program: VertexProgram) -> list[bool]:
    """Return whether each field of the record goes into messages as a `VertexId`, as they are, and nowhere else."""
    edge = program.function("edge")
    if edge is None:
        return [False] * len(program.record)
    as_ids = {name: 0 for name in program.record}
    for node in walk(edge):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
            message = node.value.elts[1]
            assert isinstance(message, ast.Tuple)
            for field, part in zip(program.message, message.elts, strict=True):
                value = part.args[0] if isinstance(part, ast.Call) and len(part.args) == 1 else part
                if _is_id(field) and isinstance(value, ast.Name) and value.id in as_ids:
                    as_ids[value.id] += 1
    uses = [n.id for n in walk(edge) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    return [as_ids[name] > 0 and as_ids[name] == uses.count(name) for name in program.record]


def _ops(program: VertexProgram) -> list[str]:
    """Return how each field of the slots row combines; `user` where it is not by itself."""
    return [slot.op if len(slot.names) == 1 else "user" for slot in program.slots for _ in slot.names]


def _empty(program: VertexProgram, slots: Row) -> list[str]:
    """Return the slots of a vertex without messages as expressions."""
    found = []
    for dtype, op in zip(slots.dtypes, program.slot_ops, strict=True):
        value = f"{c_type(dtype.base)}({int(empty_value(op, dtype))})"
        numbers = ", ".join([value] * math.prod(dtype.shape))
        vector = f"sigps::Vec<{c_type(dtype.base)}, {math.prod(dtype.shape)}>"
        found.append(f"{vector}{{{{{numbers}}}}}" if dtype.shape else value)
    return found


def _neutral(program: VertexProgram, slots: Row) -> bytes | None:
    ops = program.slot_ops
    if program.reads_all_at_once or "user" in ops:
        return None
    row = np.zeros((), dtype=slots.structure)
    for i, (op, dtype) in enumerate(zip(ops, slots.stored, strict=True)):
        row[f"f{i}"] = identity_of(op, dtype)
    return row.tobytes()


def _defines(
    program: VertexProgram, layout: Layout, neutral: bytes | None, can_fault: bool
) -> dict[str, str]:
    rows = {"RECORD": layout.record, "SLOTS": layout.slots, "MESSAGE": layout.message}
    defines = {"SIGPS_ID": "int32_t" if layout.narrow_ids else "int64_t"}
    for name, row in rows.items():
        size = row.structure.itemsize
        defines[f"SIGPS_{name}_BYTES"] = str(size)
        defines[f"SIGPS_{name}_ALIGN"] = str(_alignment(size))
    defines["SIGPS_FAULTS"] = str(int(can_fault))
    slots = _each_slot(program, layout.slots)
    defines["SIGPS_NUM_SLOTS"] = str(len(slots))
    each = " ".join(
        f"F({_OPS[op]}, {c_type(dtype)}, {offset}, {int(leaves)})" for op, dtype, offset, leaves in slots
    )
    kept = " ".join(f"F({i}, {_type_in_memory(dtype)})" for i, dtype in enumerate(layout.edge_states))
    defines |= _key_defines(program, layout.slots)
    identity = [
        (np.array(number, dtype=a.field.element.dtype()).tobytes(), a.persistent)
        for a in program.aggregators
        for number in (a.identity if isinstance(a.identity, tuple) else (a.identity,))
    ]
    return defines | {
        "SIGPS_EACH_SLOT(F)": each,
        "SIGPS_NEUTRAL": str(int(neutral is not None)),
        "SIGPS_NEUTRAL_WORDS": _words(neutral or b"", min(8, _alignment(len(neutral or b"")))),
        "SIGPS_NUM_AGGREGATES": str(len(identity)),
        "SIGPS_IDENTITY_WORDS": _words(b"".join(cell.ljust(8, b"\0") for cell, _ in identity), 8),
        "SIGPS_PERSISTENT": ", ".join(str(int(carries_on)) for _, carries_on in identity) or "0",
        "SIGPS_NUM_EDGE_STATES": str(len(layout.edge_states)),
        "SIGPS_EACH_EDGE_STATE(F)": kept,
        "SIGPS_WALKS": str(int(program.reads_edges)),
        "SIGPS_BY_WARP": str(int(program.reads_neighbors)),
        "SIGPS_BY_TEAM": str(int(divides(program))),
        "SIGPS_LISTED": str(int(program.consumption is Consumption.LISTED)),
        "SIGPS_SORTED": str(int(bool(program.sorts_by))),
        "SIGPS_GROUPED": str(int(program.consumption is Consumption.GROUPED)),
        "SIGPS_DIRECT": str(int(program.delivery is Delivery.DIRECT)),
        "SIGPS_MASTER": str(0 if program.master is None else 1 + program.has_phases),
        "SIGPS_FUSES": str(int(not program.is_deterministic)),
        "SIGPS_ALL_PASS": str(int(program.sends_along_all_edges)),
        "SIGPS_EARLY_EXIT": str(int(program.early_exit in (EarlyExit.FIRST, EarlyExit.LOWEST))),
    }


def _native_op(op: str, dtype: np.dtype[Any]) -> str:
    """Return the operation of the hardware; `user` of floats in which NaN wins, for which there is none."""
    if op in ("minimum", "maximum"):
        return "user" if dtype.kind == "f" else op[:3]
    return op


def _each_slot(program: VertexProgram, slots: Row) -> list[tuple[str, np.dtype[Any], int, bool]]:
    """Return operation, type and byte of each number of the slots row, and whether it may leave its type."""
    found = []
    are_small = [slot.is_small for slot in program.slots for _ in slot.names]
    for op, dtype, offset, is_small in zip(
        _ops(program), slots.stored, slots.offsets, are_small, strict=True
    ):
        size, kind = dtype.base.itemsize, dtype.base.kind
        op = _native_op(op, dtype.base)
        leaves = op == "sum" and kind == "i" and not is_small
        found += [(op, dtype.base, offset + size * i, leaves) for i in range(math.prod(dtype.shape))]
    return found


def _key_defines(program: VertexProgram, slots: Row) -> dict[str, str]:
    """Return the macros of `key_table.cuh`, where messages are grouped by key."""
    if program.consumption is not Consumption.GROUPED:
        return {}
    (key, total), (key_at, total_at) = slots.stored, slots.offsets
    counts = program.slots[1].text == "1"
    return {
        "SIGPS_KEY": c_type(key),
        "SIGPS_KEY_OFFSET": str(key_at),
        "SIGPS_SUM": c_type(total),
        "SIGPS_SUM_OFFSET": str(total_at),
        "SIGPS_COUNTS": str(int(counts)),
        "SIGPS_CHECKS_SUMS": str(int(total.kind == "i" and not program.slots[1].is_small)),
        "SIGPS_WARP_TABLE_BYTES": str(warp_table_bytes(*_kept_bytes(key, total, counts))),
    }


def key_bytes(compiled: CudaProgram) -> tuple[int, int]:
    """Return the bytes of a key and of its sum in tables (`key_table.cuh`), of a program that groups by key."""
    key, total = compiled.slots
    return _kept_bytes(key, total, compiled.defines["SIGPS_COUNTS"] == "1")


def _kept_bytes(key: np.dtype[Any], total: np.dtype[Any], counts: bool) -> tuple[int, int]:
    return max(4, key.itemsize), 4 if counts or total == np.float32 else 8


def _alignment(size: int) -> int:
    """Return the largest power of two, up to 16, that divides a row's size."""
    return min(16, size & -size) if size else 1


def _words(row: bytes, width: int) -> str:
    words = (int.from_bytes(row[i : i + width], "little") for i in range(0, len(row), width))
    return ", ".join(f"{word:#x}{'ull' if width == 8 else 'u'}" for word in words)


def _type_in_memory(dtype: np.dtype[Any]) -> str:
    return f"sigps::Bytes<{dtype.itemsize}>" if dtype.shape else c_type(dtype)


def c_type(dtype: np.dtype[Any]) -> str:
    """Return the name that a number's type has in C++."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind == "f":
        return "float" if dtype.itemsize == 4 else "double"
    return f"{dtype.name}_t"
