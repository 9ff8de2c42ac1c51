"""The functions of `kernels/abi.cuh`, written in Python around a program's functions.

An adapter has C linkage and sees memory: it loads rows into tuples, calls the program's functions, and stores
what they return. What a field is in memory may be narrower than what the functions compute with.

Where compute() looks through rows of neighbours, all lanes of a warp run an adapter together, for one vertex
(`cuda_warps.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.kernels.cuda.abi import OVERFLOW, SENT, offset_of

__all__ = ["Layout", "Row", "code_of", "emit", "write_adapters"]

Dtypes = tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Row:
    """Fields side by side.

    Attributes:
        dtypes: What the functions compute with.
        stored: What lies in memory, laid out as in `cpu.rows`.
    """

    dtypes: Dtypes
    stored: Dtypes

    @property
    def structure(self) -> np.dtype[Any]:
        return np.dtype([(f"f{i}", d) for i, d in enumerate(self.stored)], align=True)

    @property
    def offsets(self) -> tuple[int, ...]:
        fields = self.structure.fields
        return tuple(fields[f"f{i}"][1] for i in range(len(self.stored))) if fields else ()


@dataclass(frozen=True)
class Layout:
    """What a program's data are in memory."""

    params: Row
    aggregates: Row
    states: Row
    slots: Row
    record: Row
    message: Row
    columns: Dtypes
    read_columns: Dtypes
    edge_states: Dtypes
    narrow_ids: bool


def write_adapters(
    program: VertexProgram, layout: Layout, empty: Sequence[str], reports_changes: bool
) -> dict[str, tuple[str, str]]:
    """Write every adapter that a program needs, and what they share.

    Args:
        program: The program.
        layout: Where its data lie.
        empty: The slots of a vertex without messages, as expressions.
        reports_changes: Whether compute() also returns which state fields it assigned (`cuda_stores.py`).

    Returns:
        By name: the types of result and arguments (`u4 p i8` and so on, `v` for nothing), or "" for what only
        the others call; and the text.
    """
    adapters = {
        "id_of": ("", _id_of(layout)),
        "sigps_deliver": ("u4 p i8 p u4 u4 u8 p", _deliver(program, layout)),
        "sigps_fold": ("v p p", _fold(layout)),
    }
    if program.consumption is Consumption.LISTED:
        adapters["sigps_compute_listed"] = (
            "u4 p i8 u4 i8 i8 p p",
            _compute(program, layout, empty, reports_changes),
        )
        adapters["sigps_list"] = ("v p i8 p", _list(layout))
    else:
        adapters["sigps_compute"] = ("u4 p i8 u4 p u4 p p", _compute(program, layout, empty, reports_changes))
        adapters["sigps_lift"] = ("v p i8 p p", _lift(layout))
        adapters["sigps_merge"] = ("v p u4 p", _merge(layout))
    return adapters


def emit(message: Row) -> str:
    """Write the program's `emit`, which sends a direct message: positions are taken atomically."""
    lines = [
        "def emit(direct, kind, target, message):",
        "    arguments, sender, overflow = direct",
        f"    position = next_of(load_pointer(arguments, {offset_of('num_direct')}))",
        f"    if position < load_i8(arguments, {offset_of('direct_capacity')}):",
        f"        store_u1(load_pointer(arguments, {offset_of('direct_kinds')}), position, kind)",
        f"        store_i8(load_pointer(arguments, {offset_of('direct_targets')}), position * 8, target)",
        f"        store_u4(load_pointer(arguments, {offset_of('direct_senders')}), position * 4, sender)",
        f"        row = load_pointer(arguments, {offset_of('direct_messages')})",
        f"        at = position * {message.structure.itemsize}",
        *_indented(_stores("row", message, "message", "at + "), 2),
        "    else:",
        "        store_u4(overflow, 0, 1)",
    ]
    return "\n".join(lines)


def _compute(program: VertexProgram, layout: Layout, empty: Sequence[str], reports_changes: bool) -> str:
    listed = program.consumption is Consumption.LISTED
    messages = "begin, end" if listed else "inbox, has"
    inbox = _tuple(_slots_or(layout.slots, empty))
    if listed:
        boxes = [_elements(code_of(d), "lists", i) for i, d in enumerate(layout.message.stored)]
        inbox = _tuple(["begin", "end", *boxes])
    is_direct = program.delivery is Delivery.DIRECT
    name = "sigps_compute_listed" if listed else "sigps_compute"
    lines = [
        f"def {name}(arguments, superstep, vertex, {messages}, record, given):",
        "    v = __np.int64(vertex)",
        *_indented(_params(layout)),
        f"    cells = load_pointer(arguments, {offset_of('aggregates')})",
        f"    aggregates = {_cells('cells', layout.aggregates)}",
        f"    out_degree = __np.int64(load_u4(load_pointer(arguments, {offset_of('out_degrees')}), v * 4))",
        f"    in_degree = __np.int64(load_u4(load_pointer(arguments, {offset_of('in_degrees')}), v * 4))",
        f"    state = {_state(layout)}",
        f"    messages = {inbox}",
        f"    edges = {_edges(program, layout) if program.reads_edges else '()'}",
        "    overflow = new_cell()" if is_direct else "",
        f"    direct = {'(arguments, vertex, overflow)' if is_direct else '()'}",
        f"    outcome = compute({_env('superstep')}, params, aggregates, (id_of(arguments, v), out_degree, in_degree), "
        f"state, messages, {'end > begin' if listed else 'has != 0'}, edges, direct)",
        *_indented(_refusal(layout) if is_direct else []),
        "    sync_warp()" if program.reads_neighbors else "",
        *_indented(_store_states(layout, reports_changes)),
        f"    if outcome[1] & {SENT}:",
        *_indented(_stores("record", layout.record, "outcome[2]") or ["pass"], 2),
        *_indented(_store_cells("given", layout.aggregates, "outcome[3]")),
        "    return __np.uint32(outcome[1])",
    ]
    return "\n".join(line for line in lines if line)


def _store_states(layout: Layout, reports_changes: bool) -> list[str]:
    lines = []
    for i, d in enumerate(layout.states.stored):
        array, value = f"load_pointer(arguments, {offset_of('states', i)})", _narrowed(f"outcome[0][{i}]", d)
        store = f"store_{code_of(d)}({array}, v * {d.itemsize}, {value})"
        lines += [f"if outcome[4][{i}]:", f"    {store}"] if reports_changes else [store]
    return lines


def _refusal(layout: Layout) -> list[str]:
    """Write the return of a vertex that found the buffer of direct messages full, with its edge states restored."""
    undo = [f"edges[5][5][{i}][at] = edges[5][6][{i}][at]" for i in range(len(layout.edge_states))]
    return [
        "if load_u4(overflow, 0) != 0:",
        *_indented(["for at in range(edges[0], edges[1]):", *_indented(undo)] if undo else []),
        f"    return __np.uint32({OVERFLOW})",
    ]


def _deliver(program: VertexProgram, layout: Layout) -> str:
    head = "def sigps_deliver(arguments, superstep, record, source, target, edge, value):"
    if program.delivery is not Delivery.RECORD:
        return f"{head}\n    return __np.uint32(0)"
    columns = [
        f"load_{code_of(d)}(load_pointer(arguments, {offset_of('columns', i)}), __np.int64(edge) * {d.itemsize})"
        for i, d in enumerate(layout.columns)
    ]
    ends = [f"__np.int64({end})" for end in ("source", "target")]
    if program.needs_end_ids:
        ends = [f"id_of(arguments, {end})" for end in ends]
    row, value = layout.slots, f"lift({_env('superstep + 1')}, params, message)"
    if program.consumption is Consumption.LISTED:
        row, value = layout.message, "message"
    lines = [
        head,
        *_indented(_params(layout)),
        f"    passes, message = edge_function({_env('superstep')}, params, {_loads('record', layout.record)}, "
        f"{', '.join(ends)}, {_tuple(columns)})",
        f"    lifted = {value}",
        *_indented(_stores("value", row, "lifted")),
        "    return __np.uint32(1 if passes else 0)",
    ]
    return "\n".join(lines)


def _lift(layout: Layout) -> str:
    lines = [
        "def sigps_lift(arguments, superstep, message, value):",
        *_indented(_params(layout)),
        f"    lifted = lift({_env('superstep')}, params, {_loads('message', layout.message)})",
        *_indented(_stores("value", layout.slots, "lifted")),
    ]
    return "\n".join(lines)


def _merge(layout: Layout) -> str:
    lines = [
        "def sigps_merge(into, has, value):",
        f"    merged = merge({_loads('into', layout.slots)}, has != 0, {_loads('value', layout.slots)})",
        *_indented(_stores("into", layout.slots, "merged")),
    ]
    return "\n".join(lines)


def _fold(layout: Layout) -> str:
    lines = [
        "def sigps_fold(total, given):",
        f"    folded = fold({_cells('total', layout.aggregates)}, {_cells('given', layout.aggregates)})",
        *_indented(_store_cells("total", layout.aggregates, "folded")),
    ]
    return "\n".join(lines)


def _list(layout: Layout) -> str:
    lines = [
        "def sigps_list(arguments, position, message):",
        f"    row = {_loads('message', layout.message)}",
    ]
    lines += [
        f"    store_{code_of(d)}(load_pointer(arguments, {offset_of('lists', i)}), position * {d.itemsize}, row[{i}])"
        for i, d in enumerate(layout.message.stored)
    ]
    return "\n".join(lines)


def _id_of(layout: Layout) -> str:
    load, size = ("load_i4", 4) if layout.narrow_ids else ("load_i8", 8)
    ids = f"load_pointer(arguments, {offset_of('ids')})"
    return f"def id_of(arguments, local):\n    return __np.int64({load}({ids}, local * {size}))"


def _env(superstep: str) -> str:
    counts = (f"load_i8(arguments, {offset_of(name)})" for name in ("num_vertices", "num_edges"))
    return _tuple([superstep, *counts])


def _params(layout: Layout) -> list[str]:
    return [
        f"cells = load_pointer(arguments, {offset_of('params')})",
        f"params = {_cells('cells', layout.params)}",
    ]


def _state(layout: Layout) -> str:
    return _tuple(
        [
            _widened(f"load_pointer(arguments, {offset_of('states', i)})", f"v * {s.itemsize}", d, s)
            for i, (d, s) in enumerate(zip(layout.states.dtypes, layout.states.stored, strict=True))
        ]
    )


def _edges(program: VertexProgram, layout: Layout) -> str:
    offsets = f"load_pointer(arguments, {offset_of('out_offsets')})"
    parts = [
        f"load_i8({offsets}, v * 8)",
        f"load_i8({offsets}, v * 8 + 8)",
        _elements("u4", "out_gids"),
        _elements("i8", "out_ids"),
        _arrays("out_columns", layout.read_columns),
    ]
    return _tuple([*parts, _links(program, layout)] if program.reads_edge_links else parts)


def _links(program: VertexProgram, layout: Layout) -> str:
    """Write what is kept on edges, and the rows of neighbours, with cells in the place of marks."""
    rows = [_elements("u4", "out_rows"), _elements("u8", "out_offsets"), _elements("u4", "out_gids")]
    cells, written = ("new_cells()", "shared") if program.reads_neighbors else ("()", "elements")
    pending, committed = (
        _arrays("pending", layout.edge_states, written),
        _arrays("committed", layout.edge_states),
    )
    return _tuple([*rows, cells, _elements("i8", "reverse"), pending, committed])


def _arrays(name: str, dtypes: Dtypes, kind: str = "elements") -> str:
    return _tuple([_elements(code_of(d), name, i, kind) for i, d in enumerate(dtypes)])


def _elements(code: str, name: str, index: int = 0, kind: str = "elements") -> str:
    return f"{kind}_{code}(load_pointer(arguments, {offset_of(name, index)}))"


def _slots_or(slots: Row, empty: Sequence[str]) -> list[str]:
    return [
        f"({_widened('inbox', str(o), d, s)} if has != 0 else {e})"
        for d, s, o, e in zip(slots.dtypes, slots.stored, slots.offsets, empty, strict=True)
    ]


def _loads(pointer: str, row: Row) -> str:
    parts = zip(row.dtypes, row.stored, row.offsets, strict=True)
    return _tuple([_widened(pointer, str(o), d, s) for d, s, o in parts])


def _stores(pointer: str, row: Row, values: str, base: str = "") -> list[str]:
    return [
        f"store_{code_of(s)}({pointer}, {base}{o}, {_narrowed(f'{values}[{i}]', s)})"
        for i, (s, o) in enumerate(zip(row.stored, row.offsets, strict=True))
    ]


def _cells(pointer: str, row: Row) -> str:
    return _tuple([f"load_{code_of(d)}({pointer}, {8 * i})" for i, d in enumerate(row.dtypes)])


def _store_cells(pointer: str, row: Row, values: str) -> list[str]:
    # The bytes above a narrow value are zero: a cell may be compared or copied as a word.
    lines = []
    for i, d in enumerate(row.dtypes):
        lines += [f"store_i8({pointer}, {8 * i}, 0)"] if d.itemsize < 8 else []
        lines.append(f"store_{code_of(d)}({pointer}, {8 * i}, {_narrowed(f'{values}[{i}]', d)})")
    return lines


def _widened(pointer: str, offset: str, dtype: np.dtype[Any], stored: np.dtype[Any]) -> str:
    load = f"load_{code_of(stored)}({pointer}, {offset})"
    return load if dtype == stored else f"__np.{dtype.name}({load})"


def _narrowed(value: str, stored: np.dtype[Any]) -> str:
    return f"bool({value})" if stored.kind == "b" else f"__np.{stored.name}({value})"


def code_of(dtype: np.dtype[Any]) -> str:
    """Return the short name of a type in names of accessors: `f8`, `u4`, `b1`."""
    return dtype.str[1:]


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line for line in lines]
