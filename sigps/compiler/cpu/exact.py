"""A program for deterministic runs: its sums of floats are made of words that add up in any order (`native/sums.py`).

A slot that adds up floats becomes four slots of whole numbers, and so does an aggregator; no engine knows of it:

    lift       sum of m               ->  __spread(m)
    merge      inbox[0] + value[0]    ->  __added(inbox[0], ..., value[0], ...)
    compute    __g0                   ->  __rounded(__g0_0, __g0_1, __g0_2, __g0_3)
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sigps.compiler.cpu.inference import infer_types
from sigps.compiler.program import Consumption, Slot, VertexProgram
from sigps.model.aggregator import cells_of
from sigps.native.builder import Functions
from sigps.native.sums import (
    WORDS,
    added,
    added_each,
    rounded,
    rounded_each,
    rounded_each_single,
    spread,
    spread_each,
)
from sigps.native.trees import copied, parse, parse_expression, walk

__all__ = ["with_exact_sums"]

_FUNCTIONS = {
    "__spread": spread, "__added": added, "__rounded": rounded,
    "__spread_each": spread_each, "__added_each": added_each, "__rounded_each": rounded_each,
    "__rounded_each_single": rounded_each_single,
}  # fmt: skip

_OF_NUMBERS, _OF_VECTORS = "__{}", "__{}_each"

Sums = Sequence[str]
"""Of some values how the functions of their sums are named; empty of a value that is no sum."""


def with_exact_sums(program: VertexProgram, columns: Mapping[str, np.dtype[Any]]) -> VertexProgram:
    """Return a program whose sums of floats do not depend on the order of messages and vertices. Memoized.

    Messages in lists, and those that a function of the user combines, stay as they are.

    Args:
        program: The vertex program.
        columns: The types of the graph's edge columns.
    """
    return _with_exact_sums(program, tuple(sorted(columns.items())), (program.file, program.line))


@functools.lru_cache(maxsize=256)
def _with_exact_sums(
    program: VertexProgram, columns: tuple[tuple[str, np.dtype[Any]], ...], place: tuple[str, int]
) -> VertexProgram:
    # Programs with one key are equal, but errors name their own places.
    sums = _float_sums(program, dict(columns))
    totals = [
        "" if len(cells_of(a)) == 1 else _OF_VECTORS if d.shape else _OF_NUMBERS
        for a, d in zip(program.aggregators, program.aggregate_dtypes, strict=True)
    ]
    program = replace(program, is_deterministic=True, key=f"{program.key} deterministic {sums}")
    if not any(sums) and not any(totals):
        return program
    module = copied(program.module)
    functions = {f.name: f for f in module.body if isinstance(f, ast.FunctionDef)}
    for function in functions.values():
        function.body = _unpacked(function.body, "__inbox", sums, [np.dtype(np.float64)] * len(sums))
        function.body = _unpacked(function.body, "__aggregates", totals, program.aggregate_dtypes)
    if any(sums):
        _Spread(sums).visit(functions["lift"])
        _add(functions["merge"], sums)
    if any(totals):
        _Spread(totals, item=3).visit(functions["compute"])
        _add(functions["fold"], totals)
    ast.fix_missing_locations(module)
    master = program.master
    if master is not None and any(totals):
        master = replace(
            master,
            module=_of_words(master.module, totals, program.aggregate_dtypes),
            namespace={**master.namespace, **_FUNCTIONS},
        )
    return replace(
        program,
        master=master,
        module=module,
        namespace={**program.namespace, **_FUNCTIONS},
        slots=tuple(_slots(program, sums)),
        aggregators=tuple(cell for a in program.aggregators for cell in cells_of(a)),
    )


def _of_words(module: ast.Module, totals: Sums, dtypes: Sequence[np.dtype[Any]]) -> ast.Module:
    """Return the module of `master` reading the aggregators' words; what it calls gets its values."""
    made = copied(module)
    for function in made.body:
        if isinstance(function, ast.FunctionDef) and function.name == "master":
            function.body = _unpacked(function.body, "__aggregates", totals, dtypes)
    return ast.fix_missing_locations(made)


def _float_sums(program: VertexProgram, columns: Mapping[str, np.dtype[Any]]) -> Sums:
    """Tell of each value of the inbox whether it adds up floats, or vectors of these."""
    if program.consumption not in (Consumption.COMBINED, Consumption.SINGLE):
        return []
    used, read = (
        [columns.get(c, np.dtype(np.float64)) for c in names]
        for names in (program.edge_columns, program.read_columns)
    )
    dtypes, _ = infer_types(program, Functions(program.module, program.namespace), used, read)
    names = [_OF_VECTORS if d.shape else _OF_NUMBERS for d in dtypes]
    are_sums = [op == "sum" and d.base.kind == "f" for op, d in zip(program.slot_ops, dtypes, strict=True)]
    return [name if is_sum else "" for name, is_sum in zip(names, are_sums, strict=True)]


def _slots(program: VertexProgram, sums: Sums) -> Iterator[Slot]:
    """Yield the slots; one that holds a sum of floats becomes a slot for each of its values."""
    flags = iter(sums)
    for slot in program.slots:
        are_sums = [next(flags) for _ in slot.names] if sums else []
        if not any(are_sums):
            yield slot
            continue
        for name, is_sum in zip(slot.names, are_sums, strict=True):
            yield replace(slot, op="exact", names=_words(name)) if is_sum else replace(slot, names=(name,))


def _words(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{k}" for k in range(WORDS))


def _unpacked(
    body: Sequence[ast.stmt], source: str, flags: Sums, dtypes: Sequence[np.dtype[Any]]
) -> list[ast.stmt]:
    """Unpack words where a function unpacks `source`, and round each sum."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        if not isinstance(statement, ast.Assign) or ast.unparse(statement.value) != source or not any(flags):
            continue
        (target,) = statement.targets
        assert isinstance(target, ast.Tuple)
        names = [name.id for name in target.elts]  # type: ignore[attr-defined]
        target.elts = []
        for name, is_sum, dtype in zip(names, flags, dtypes, strict=True):
            words = _words(name) if is_sum else (name,)
            target.elts += [ast.Name(word, ast.Store()) for word in words]
            if is_sum:
                name_of_rounding = is_sum.format("rounded") + "_single" * bool(
                    dtype.shape and dtype.base == np.float32
                )
                total = f"{name_of_rounding}({', '.join(words)})"
                total = total if is_sum == _OF_VECTORS else f"__np.{dtype.name}({total})"
                found += _parsed(f"{name} = {total}", statement)
    return found


class _Spread(ast.NodeTransformer):
    """Writes floats as words in what a function returns: a tuple of values, or item number `item` of it."""

    def __init__(self, flags: Sums, item: int | None = None) -> None:
        self._flags, self._item = flags, item

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        values: Any = node.value if self._item is None else node.value.elts[self._item]  # type: ignore[union-attr]
        before: list[ast.stmt] = []
        parts: list[ast.expr] = []
        for i, (value, is_sum) in enumerate(zip(values.elts, self._flags, strict=True)):
            if not is_sum:
                parts.append(value)
                continue
            before += _parsed(f"__spread{i} = {is_sum.format('spread')}({ast.unparse(value)})", value)
            parts += _items(f"__spread{i}", 0)
        values.elts = parts
        return [*before, node]


def _add(function: ast.FunctionDef, flags: Sums) -> None:
    """Add words where a function of two tuples adds floats."""
    one, other = function.args.args[0].arg, function.args.args[-1].arg
    result = function.body.pop()
    assert isinstance(result, ast.Return)
    assert isinstance(result.value, ast.Tuple)
    moved = [i + (WORDS - 1) * sum(map(bool, flags[:i])) for i in range(len(flags))]
    for node in [n for statement in (*function.body, result) for n in walk(statement)]:
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in (one, other):
            assert isinstance(node.slice, ast.Constant)
            node.slice.value = moved[int(node.slice.value)]  # type: ignore[arg-type]
    parts: list[ast.expr] = []
    for at, value, is_sum in zip(moved, result.value.elts, flags, strict=True):
        if not is_sum:
            parts.append(value)
            continue
        terms = ", ".join(ast.unparse(part) for name in (one, other) for part in _items(name, at))
        function.body += _parsed(f"__added{at} = {is_sum.format('added')}({terms})", value)
        parts += _items(f"__added{at}", 0)
    result.value.elts = parts
    function.body.append(result)


def _items(name: str, first: int) -> list[ast.expr]:
    return [parse_expression(f"{name}[{first + k}]") for k in range(WORDS)]


def _parsed(text: str, place: ast.AST) -> list[ast.stmt]:
    """Return statements at a place."""
    found = parse(text).body
    for node in [n for statement in found for n in walk(statement)]:
        if "lineno" in node._attributes:
            ast.copy_location(node, place)
        node.sigps_file = getattr(place, "sigps_file", "")  # type: ignore[attr-defined]
    return found
