"""The functions of `kernels/cuda/abi.cuh`, written in CUDA C++ around a program's functions.

An adapter has C linkage and sees memory: it loads rows, calls the program's functions, and stores what they return.
What a field is in memory may be narrower than what the functions compute with. It returns the fault of what it called.

Where compute() looks through rows of neighbours, all lanes of a warp run an adapter together, for one vertex. They run
the same instructions on the same values, so each stores what all others store; what one lane reads must not be stored
by a lane ahead of it, so the warp synchronises before every store to what compute() also reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sigps.compiler.cpu.inference import argument_types
from sigps.compiler.cuda.teams import divides
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.kernels.cuda.abi import FAULT_OF_EDGE, FAULT_SHIFT, OVERFLOW, SENT, WROTE
from sigps.native.builder import Functions, Instance
from sigps.native.cpp import CppFunctions, cpp_type
from sigps.native.primitives import External
from sigps.native.types import BOOL, INT, UINT, Array, Number, Tuple, Type, flat, scalar_of

__all__ = [
    "EXTERNALS",
    "HEAD",
    "Layout",
    "Row",
    "call_of",
    "definition",
    "direct_type",
    "emit_type",
    "env_at",
    "load_cells",
    "load_params",
    "num_cells",
    "store_cells",
    "write_source",
]

Dtypes = tuple[np.dtype[Any], ...]

_GIDS, _POSITIONS = Array(Number.of(np.uint32)), (UINT,)
EXTERNALS = {
    "__mark_row": External("sigps::forget_found", (_GIDS, _GIDS, UINT, UINT)),
    "__next_common": External("sigps::find_by_warp", (_GIDS, _GIDS, *[UINT] * 6), Tuple((UINT, UINT))),
    "__lanes_next": External("sigps::find_for_lanes", (_GIDS, _GIDS, *[UINT] * 6), Tuple((UINT, UINT))),
    "__lanes_count": External("sigps::count_lanes", (BOOL,), INT),
    "__lanes_step": External("sigps::step_of_lanes", (INT,), None),
    "__team_meet": External("sigps::meet_team", (_GIDS,)),
    "__team_leads": External("sigps::leads_team", (_GIDS,), BOOL),
    "__team_edge_turns": External("sigps::turns_of_team", (_GIDS, UINT, UINT), INT),
    "__team_edge": External("sigps::turn_of_team", (_GIDS, INT, UINT), UINT),
    "__team_turns": External("sigps::turns_of_team", (_GIDS, INT, INT), INT),
    "__team_turn": External("sigps::turn_of_team", (_GIDS, INT, INT), INT),
    "__team_steps": External("sigps::steps_of_team", (_GIDS,), INT),
    "__team_step": External("sigps::step_of_team", (_GIDS, INT), None),
    "__team_sum": External("sigps::join_sum", (_GIDS,), None, can_overflow=True),
}
"""What stands in the place of `kernels/cpu/neighbors.py`, and what divided loops call (`teams.py`, `lanewise.py`)."""


def num_cells(dtypes: Dtypes) -> int:
    """Return how many cells of 8 bytes values take: a number one, a vector one a number."""
    return sum(math.prod(dtype.shape) for dtype in dtypes)


@dataclass(frozen=True)
class Row:
    """Fields side by side.

    Attributes:
        dtypes: What the functions compute with.
        stored: What lies in memory, aligned as in C; vectors whose size allows it at 16 bytes.
    """

    dtypes: Dtypes
    stored: Dtypes

    @property
    def structure(self) -> np.dtype[Any]:
        offsets, end, most = [], 0, 1
        for dtype in self.stored:
            alignment = 16 if dtype.shape and dtype.itemsize % 16 == 0 else dtype.base.itemsize
            most = max(most, alignment)
            offsets.append(-(-end // alignment) * alignment)
            end = offsets[-1] + dtype.itemsize
        names = [f"f{i}" for i in range(len(self.stored))]
        size = -(-end // most) * most
        return np.dtype({"names": names, "formats": list(self.stored), "offsets": offsets, "itemsize": size})

    @property
    def offsets(self) -> tuple[int, ...]:
        fields = self.structure.fields
        return tuple(fields[f"f{i}"][1] for i in range(len(self.stored))) if fields else ()

    @property
    def cells(self) -> tuple[int, ...]:
        """Where each field begins, if every number has a cell."""
        return tuple(num_cells(self.dtypes[:i]) for i in range(len(self.dtypes)))


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


def direct_type() -> Tuple:
    """Return the type of what compute() hands to emit(): the arguments, the sender, and whether there was no room."""
    return Tuple((Array(Number.of(np.uint8)), INT, _GIDS))


def emit_type(message: Row) -> External:
    """Return what stands in the place of the program's emit()."""
    fields = Tuple(tuple(scalar_of(d) for d in message.dtypes))
    return External("emit", (direct_type(), INT, INT, fields))


def write_source(
    program: VertexProgram, layout: Layout, functions: Functions, empty: Sequence[str], reports_changes: bool
) -> tuple[str, bool]:
    """Return the program's functions and every adapter that it needs, and whether one of them may return a fault.

    Args:
        program: The program.
        layout: Where its data lie.
        functions: The program's functions, with `EXTERNALS` and its `emit_type` in the place of some.
        empty: The slots of a vertex without messages, as expressions.
        reports_changes: Whether compute() also returns which state fields it assigned (`stores.py`).
    """
    source = _Source(program, layout, functions, empty, reports_changes)
    text = "\n".join(source.lines())
    return text, source.can_fault


HEAD = """\
#include "abi.cuh"
#include "arithmetic.cuh"
#include "rows.cuh"
"""
"""What the source of a program's functions begins with."""


_INTERRUPTED = """\
#if defined(__CUDACC_RTC__)
extern "C" {
__device__ const volatile unsigned char *sigps_interrupted = nullptr;
}
#endif
"""


class _Source:
    """Writes the source of one program."""

    def __init__(
        self,
        program: VertexProgram,
        layout: Layout,
        functions: Functions,
        empty: Sequence[str],
        reports_changes: bool,
    ) -> None:
        self._program, self._layout, self._empty = program, layout, empty
        self._reports_changes = reports_changes
        self.can_fault = False
        self._functions, self._cpp = functions, CppFunctions(functions)
        self._is_listed = program.consumption is Consumption.LISTED
        self._is_direct = program.delivery is Delivery.DIRECT
        slots = layout.message if self._is_listed else layout.slots
        self._has_teams = divides(program)
        self._types = argument_types(
            program, slots.dtypes, layout.record.dtypes, layout.columns, layout.read_columns, direct_type(),
            is_by_warp=program.reads_neighbors, has_team=self._has_teams,
        )  # fmt: skip

    def lines(self) -> Iterator[str]:
        adapters = [self._deliver(), self._fold(), self._compute()]
        adapters += [self._list()] if self._is_listed else [self._lift(), self._merge()]
        adapters += [self._key(), self._copy_listed()] if self._program.sorts_by else []
        yield HEAD
        if self._program.reads_neighbors:
            yield '#include "warp_neighbors.cuh"\n'
        if self._has_teams:
            yield '#include "team.cuh"\n'
        if self._functions.has_open_loops:
            yield _INTERRUPTED
        if self._is_direct:
            yield from self._emit()
        yield self._cpp.text
        for adapter in adapters:
            yield from adapter

    def _called(self, name: str, arguments: Sequence[str], prefix: str) -> tuple[list[str], Instance]:
        """Write a call of a function of the program, whose results are `prefix`0, ..., and its fault `prefix`_fault."""
        instance = self._functions.instance(name, self._types[name])
        self.can_fault = self.can_fault or instance.can_fault
        return call_of(self._cpp, instance, arguments, prefix), instance

    def _compute(self) -> list[str]:
        layout, program = self._layout, self._program
        name = "sigps_compute_listed" if self._is_listed else "sigps_compute"
        takes = "int64_t begin, int64_t end" if self._is_listed else "const void *inbox, uint32_t has"
        takes += ", uint32_t members"
        body = []
        if self._is_listed:
            inbox = ["begin", "end", *_arrays("lists", layout.message.stored)]
        else:
            inbox = _slots_or(layout.slots, self._empty)
        if program.reads_neighbors:
            body.append("sigps::Found found;")
        if self._has_teams:
            body.append("sigps::Team team = sigps::team_of(members);")
        if self._is_direct:
            body.append("uint32_t overflow = 0;")
        given = [
            *env_at("superstep"), *load_params(self._program, layout.params),
            *load_cells("arguments->aggregates", layout.aggregates), *_vertex(),
            *self._state(), *inbox, "end > begin" if self._is_listed else "has != 0",
            *self._edges(),
            *(["(uint8_t *)arguments", "int64_t(vertex)", "&overflow"] if self._is_direct else []),
            *(["(uint32_t *)&team"] if self._has_teams else []),
        ]  # fmt: skip
        lines, instance = self._called("compute", given, "r")
        body += lines
        parts = _numbered(instance.result, "r")
        if self._has_teams:
            body.append("sigps::sync_team(team);")
        elif program.reads_neighbors:
            body.append("sigps::sync_warp();")
        if self._is_direct:
            body += ["overflow = sigps::any_of_team(team, overflow);"] if self._has_teams else []
            body += self._refusal()
        *changed, wrote = parts[4] if self._reports_changes else ["" for _ in parts[0]] + ["true"]
        for i, (value, flag, dtype) in enumerate(zip(parts[0], changed, layout.states.stored, strict=True)):
            kept = f"sigps::narrowed_id({value})" if self._is_narrowed(i) else _as(dtype, value)
            store = f"(({_c(dtype)} *)arguments->states[{i}])[vertex] = {kept};"
            body.append(f"if ({flag}) {store}" if flag else store)
        flags = parts[1][0]
        body += [f"if ({flags} & {SENT}) {{", *_stores("record", layout.record, parts[2]), "}"]
        body += store_cells("given", layout.aggregates, parts[3])
        wrote = f" | ({wrote} ? {WROTE}u : 0u)" if program.edge_states else ""
        body.append(f"return uint32_t({flags}){wrote} | r_fault << {FAULT_SHIFT};")
        head = (
            f"uint32_t {name}(const sigps::Arguments *arguments, int64_t superstep, uint32_t vertex, {takes}, "
            "void *record, void *given)"
        )
        return definition(head, body)

    def _state(self) -> list[str]:
        states = self._layout.states
        kept = [f"((const {_c(s)} *)arguments->states[{i}])[vertex]" for i, s in enumerate(states.stored)]
        return [
            f"sigps::widened_id({value})" if self._is_narrowed(i) else _as(d, value)
            for i, (d, value) in enumerate(zip(states.dtypes, kept, strict=True))
        ]

    def _is_narrowed(self, i: int) -> bool:
        """Tell whether a state is an id or None, in 32 bits."""
        return self._program.states[i].may_be_none and self._layout.states.stored[i] == np.int32

    def _refusal(self) -> list[str]:
        """Write the return of a vertex that found no room for its messages, with its edge states restored."""
        undo = [
            f"(({_c(d)} *)arguments->pending[{i}])[at] = ((const {_c(d)} *)arguments->committed[{i}])[at];"
            for i, d in enumerate(self._layout.edge_states)
        ]
        if undo:
            span = (
                "uint64_t at = arguments->out_offsets[vertex]; at < arguments->out_offsets[vertex + 1]; ++at"
            )
            undo = [f"for ({span}) {{", *undo, "}"]
        return ["if (overflow != 0) {", *undo, f"return {OVERFLOW}u | r_fault << {FAULT_SHIFT};", "}"]

    def _edges(self) -> list[str]:
        if not self._program.reads_edges:
            return []
        offsets = "arguments->out_offsets"
        parts = [
            f"{offsets}[vertex]", f"{offsets}[vertex + 1]", "(uint32_t *)arguments->out_gids",
            "(int64_t *)arguments->out_ids", *_arrays("out_columns", self._layout.read_columns),
        ]  # fmt: skip
        if self._program.reads_edge_links:
            kept = self._layout.edge_states
            cells = "(uint32_t *)&found" if self._program.reads_neighbors else "(uint32_t *)nullptr"
            parts += [
                "(uint32_t *)arguments->out_rows", f"(uint64_t *){offsets}", "(uint32_t *)arguments->out_gids",
                cells, "(int64_t *)arguments->reverse", *_arrays("pending", kept), *_arrays("committed", kept),
            ]  # fmt: skip
        return parts

    def _deliver(self) -> list[str]:
        layout, program = self._layout, self._program
        head = (
            "uint32_t sigps_deliver(const sigps::Arguments *arguments, int64_t superstep, const void *record, "
            "uint32_t source, uint32_t target, uint64_t edge, void *value)"
        )
        if program.delivery is not Delivery.RECORD:
            return definition(head, ["return 0;"])
        columns = [f"((const {_c(d)} *)arguments->columns[{i}])[edge]" for i, d in enumerate(layout.columns)]
        ends = [_id(end) if program.needs_end_ids else f"int64_t({end})" for end in ("source", "target")]
        params = load_params(self._program, layout.params)
        given = [*env_at("superstep"), *params, *_loads("record", layout.record), *ends, *columns]
        body, instance = self._called("edge", given, "r")
        passes, message = _numbered(instance.result, "r")
        row, fault = layout.message, "r_fault"
        of_edge = f"(r_fault != 0 ? {FAULT_OF_EDGE}u : 0u)"
        if not self._is_listed:
            lines, lifted = self._called(
                "lift", [*env_at("superstep + 1"), *params, *self._message(message)], "s"
            )
            body += lines
            row, message = layout.slots, _all(lifted, "s")
            fault = f"(r_fault != 0 || !{passes[0]} ? r_fault : s_fault)"
        result = f"return ({passes[0]} ? 1u : 0u) | {of_edge} | {fault} << {FAULT_SHIFT};"
        return definition(head, [*body, *_stores("value", row, message), result])

    def _message(self, values: Sequence[str]) -> list[str]:
        """Write a message as lift() takes it."""
        return [_as(d, v) for v, d in zip(values, self._layout.message.dtypes, strict=True)]

    def _lift(self) -> list[str]:
        layout = self._layout
        given = [
            *env_at("superstep"),
            *load_params(self._program, layout.params),
            *_loads("message", layout.message),
        ]
        body, instance = self._called("lift", given, "r")
        head = (
            "uint32_t sigps_lift(const sigps::Arguments *arguments, int64_t superstep, const void *message, "
            "void *value)"
        )
        return definition(
            head, [*body, *_stores("value", layout.slots, _all(instance, "r")), "return r_fault;"]
        )

    def _merge(self) -> list[str]:
        slots = self._layout.slots
        given = [*_loads("into", slots), "has != 0", *_loads("value", slots)]
        body, instance = self._called("merge", given, "r")
        head = "uint32_t sigps_merge(void *into, uint32_t has, const void *value)"
        return definition(head, [*body, *_stores("into", slots, _all(instance, "r")), "return r_fault;"])

    def _fold(self) -> list[str]:
        totals = self._layout.aggregates
        body, instance = self._called(
            "fold", [*load_cells("total", totals), *load_cells("given", totals)], "r"
        )
        head = "uint32_t sigps_fold(void *total, const void *given)"
        return definition(
            head, [*body, *store_cells("total", totals, _all(instance, "r")), "return r_fault;"]
        )

    def _list(self) -> list[str]:
        row = self._layout.message
        values = zip(row.stored, _loads("message", row), strict=True)
        stores = [
            f"(({_c(d)} *)arguments->lists[{i}])[position] = {_as(d, v)};" for i, (d, v) in enumerate(values)
        ]
        return definition(
            "void sigps_list(const sigps::Arguments *arguments, int64_t position, const void *message)",
            stores,
        )

    def _key(self) -> list[str]:
        given = [
            *env_at("superstep"),
            *load_params(self._program, self._layout.params),
            *self._message([f"{array}[position]" for array in self._lists()]),
        ]
        body, instance = self._called("key", given, "r")
        is_signed = instance.result != UINT
        key = "uint64_t(r0) ^ (uint64_t(1) << 63)" if is_signed else "r0"
        head = (
            "uint32_t sigps_key(const sigps::Arguments *arguments, int64_t superstep, int64_t position, "
            "uint64_t *key)"
        )
        return definition(head, [*body, f"*key = {key};", "return r_fault;"])

    def _copy_listed(self) -> list[str]:
        return definition(
            "void sigps_copy_listed(const sigps::Arguments *arguments, int64_t from, int64_t to)",
            [f"{array}[to] = {array}[from];" for array in self._lists()],
        )

    def _lists(self) -> list[str]:
        return [f"({array})" for array in _arrays("lists", self._layout.message.stored)]

    def _emit(self) -> list[str]:
        """Write what sends a direct message: positions are taken atomically, by one lane for its warp."""
        row = self._layout.message
        fields = "".join(f", {_c(d)} m{i}" for i, d in enumerate(row.dtypes))
        take = "sigps::next_for_warp" if self._program.reads_neighbors else "sigps::next_of"
        size = row.structure.itemsize
        return [
            "static __device__ __forceinline__ int64_t emit(uint8_t *given, int64_t sender, uint32_t *overflow, "
            f"int64_t kind, int64_t target{fields}) {{",
            "  const sigps::Arguments *arguments = (const sigps::Arguments *)given;",
            f"  const uint64_t position = {take}(arguments->num_direct);",
            "  if (position >= arguments->direct_capacity) {",
            "    *overflow = 1;",
            "    return 0;",
            "  }",
            "  arguments->direct_kinds[position] = uint8_t(kind);",
            "  arguments->direct_targets[position] = target;",
            "  arguments->direct_senders[position] = uint32_t(sender);",
            f"  void *message = (char *)arguments->direct_messages + position * {size};",
            *_stores("message", row, [f"m{i}" for i in range(len(row.dtypes))]),
            "  return 0;",
            "}",
        ]


def call_of(emitted: CppFunctions, instance: Instance, arguments: Sequence[str], prefix: str) -> list[str]:
    """Write a call of a function, whose results are `prefix`0, ..., and its fault `prefix`_fault."""
    results = list(flat(instance.result))  # type: ignore[arg-type]
    names = [f"{prefix}{i}" for i in range(len(results))]
    lines = [f"{cpp_type(kind)} {result};" for kind, result in zip(results, names, strict=True)]
    call = f"{emitted.name(instance)}({', '.join([*arguments, *names])})"
    return [*lines, f"const uint32_t {prefix}_fault = uint32_t({call});"]


def definition(head: str, body: Sequence[str], how: str = "SIGPS_INLINE") -> list[str]:
    """Write an adapter; `how` is its attribute."""
    return [f'extern "C" __device__ {how} {head} {{', *(f"  {line}" for line in body), "}"]


def _numbered(kind: Type | None, prefix: str) -> list[list[str]]:
    """Return the names of a tuple's parts, item by item, when its numbers are named one after the other."""
    assert isinstance(kind, Tuple)
    count, found = 0, []
    for item in kind.items:
        size = len(list(flat(item)))
        found.append([f"{prefix}{count + i}" for i in range(size)])
        count += size
    return found


def _all(instance: Instance, prefix: str) -> list[str]:
    return [f"{prefix}{i}" for i in range(instance.num_results)]


def env_at(superstep: str) -> list[str]:
    """Write `env` of `compiler/program.py`."""
    return [superstep, "arguments->num_vertices", "arguments->num_edges"]


def _vertex() -> list[str]:
    degrees = (f"int64_t(arguments->{name}[vertex])" for name in ("out_degrees", "in_degrees"))
    return [_id("vertex"), *degrees]


def _id(local: str) -> str:
    return f"int64_t(((const sigps::Id *)arguments->ids)[{local}])"


def _arrays(name: str, dtypes: Dtypes) -> list[str]:
    return [f"({_c(d)} *)arguments->{name}[{i}]" for i, d in enumerate(dtypes)]


def _slots_or(slots: Row, empty: Sequence[str]) -> list[str]:
    return [f"has != 0 ? {load} : {e}" for load, e in zip(_loads("inbox", slots), empty, strict=True)]


def _loads(pointer: str, row: Row) -> list[str]:
    parts = zip(row.dtypes, row.stored, row.offsets, strict=True)
    return [_as(d, f"sigps::load<{_c(s)}>({pointer}, {offset})") for d, s, offset in parts]


def _stores(pointer: str, row: Row, values: Sequence[str]) -> list[str]:
    parts = zip(row.stored, row.offsets, values, strict=True)
    return [f"sigps::store<{_c(s)}>({pointer}, {offset}, {_as(s, value)});" for s, offset, value in parts]


def load_cells(pointer: str, row: Row) -> list[str]:
    """Write what lies in cells."""
    parts = zip(row.dtypes, row.cells, strict=True)
    return [f"sigps::Cells<{_c(d)}>::load({pointer}, {first})" for d, first in parts]


def load_params(program: VertexProgram, row: Row) -> list[str]:
    """Write the parameters: of a table the address of its numbers, and its length."""
    cells = iter(load_cells("arguments->params", row))
    found = []
    for field in program.params:
        cell = next(cells)
        if field.is_table:
            dtype: np.dtype[Any] = field.dtype(program.precision)  # type: ignore[arg-type]
            found += [f"({_c(dtype)} *)({cell})", next(cells)]
        else:
            found.append(cell)
    return found


def store_cells(
    pointer: str, row: Row, values: Sequence[str], only: Sequence[int] | None = None
) -> list[str]:
    """Write stores of values into cells: of all fields, or of those at some positions."""
    parts = list(zip(row.dtypes, row.cells, strict=True))
    parts = parts if only is None else [parts[i] for i in only]
    return [
        f"sigps::Cells<{_c(d)}>::store({pointer}, {first}, {_as(d, value)});"
        for (d, first), value in zip(parts, values, strict=True)
    ]


def _c(dtype: np.dtype[Any]) -> str:
    return cpp_type(scalar_of(dtype))


def _as(dtype: np.dtype[Any], value: str) -> str:
    """Write a number or vector in a type."""
    return f"sigps::converted<{_c(dtype.base)}>({value})" if dtype.shape else f"{_c(dtype)}({value})"
