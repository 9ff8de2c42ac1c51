"""From a Python function to its syntax tree, and from a place in it to an error that shows the place."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import os
import re
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from sigps.errors import CompileError
from sigps.native.trees import copied, parse, walk

__all__ = ["UnfitError", "as_written", "global_names", "parse_function", "reject", "targets_of"]

_DECORATORS = ("staticmethod", "property", "compiled", "njit", "jit")
"""Decorators that may stand before a function: the last ones compile it, which changes nothing of what it means."""


class UnfitError(Exception):
    """What is written does not fit the types; the builder knows where it stands."""


def _source_lines(code: types.CodeType) -> tuple[list[str], int]:
    """Return the lines of a function, and the number of the first.

    As `inspect.getsourcelines`, but that looks at every module that is imported, which imports the lazy ones: 0.4 s
    where CUDA's are among them. And it finds the end of a function by tokens, whose patterns are compiled first.
    """
    file, first = code.co_filename, code.co_firstlineno
    if file in linecache.cache or os.path.exists(file):
        linecache.checkcache(file)
        lines = linecache.getlines(file)
        if lines[first - 1 : first] and lines[first - 1].lstrip().startswith(("def ", "@")):
            last = _ends_of_functions("".join(lines)).get(first)
            return (lines[first - 1 : last] if last else inspect.getblock(lines[first - 1 :])), first
    return inspect.getsourcelines(code)


@functools.lru_cache(maxsize=16)
def _ends_of_functions(text: str) -> dict[int, int]:
    """Return the last line of each function in a file by its first, decorators included; {} where it does not parse."""
    try:
        functions = [n for n in walk(parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    except (SyntaxError, ValueError):
        return {}
    return {min([f.lineno, *(d.lineno for d in f.decorator_list)]): f.end_lineno or 0 for f in functions}


def parse_function(function: Callable[..., Any], owner: str) -> ast.FunctionDef:
    """Return the tree of a function, with the line numbers and file of its source.

    Raises:
        CompileError: If the source cannot be read (typed into `python -c`, or built by `exec`), or is no
            longer what the function was made from.
    """
    if hasattr(function, "sigps_tree"):  # made by a front end, of functions that were parsed
        made: ast.FunctionDef = copied(function.sigps_tree)
        return made
    code = function.__code__
    if hasattr(function, "__wrapped__"):
        raise CompileError(
            f"{owner}.{function.__name__} has a decorator, which cannot be compiled: "
            "write what it does in the method"
        )
    try:
        lines, first = _source_lines(code)
    except (OSError, TypeError):
        raise CompileError(
            f"{owner}: the source of {function.__name__}() cannot be read, and the compiler needs it. "
            "Put the class in a file or a notebook cell, or run it with device='python'"
        ) from None
    tree = _parse("".join(lines), first)
    place: dict[str, Any] = {"file": code.co_filename, "line": first, "source": lines[0].strip()}
    if not isinstance(tree, ast.FunctionDef):
        raise CompileError(
            f"{owner}.{function.__name__} must be a plain 'def', not a lambda or async function", **place
        )
    if tree.name != function.__name__ or not _same_names(tree, code):
        raise CompileError(
            f"{owner}: the source of {function.__name__}() has changed since it was loaded: load it again "
            "(importlib.reload, or run the cell), so that what is compiled is what Python runs",
            **place,
        )
    for node in walk(tree):
        node.sigps_file = code.co_filename  # type: ignore[attr-defined]
    for decorator in tree.decorator_list:
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(named, "attr", getattr(named, "id", None)) not in _DECORATORS:
            reject(
                decorator,
                f"a decorator of {tree.name}() cannot be compiled: write what it does in the method",
            )
    return tree


def global_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the values of a function's global and enclosing names."""
    names = dict(function.__globals__)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    return names


def reject(node: ast.AST, problem: str) -> NoReturn:
    """Raise the CompileError that points at a node."""
    file = getattr(node, "sigps_file", None)
    line = getattr(node, "lineno", None)
    source = linecache.getline(file, line).strip() if file and line else ""
    raise CompileError(as_written(problem), file=file, line=line, source=source) from None


def as_written(text: str) -> str:
    """Return a text with names as the user wrote them, without the prefixes of the compiler."""
    return re.sub(r"\b__(?:local|global\d+|in\d+)_", "", text)


def targets_of(node: ast.Assign) -> Iterator[ast.expr]:
    """Yield the targets of an assignment in their order, those of a tuple one by one."""
    left = list(reversed(node.targets))
    while left:
        target = left.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            left += reversed(target.elts)
        else:
            yield target


def _parse(text: str, first: int) -> ast.stmt | None:
    """Parse a function that may be indented, with comments and strings in it that are not."""
    is_indented = text[:1].isspace()
    try:
        statement = parse(f"if True:\n{text}" if is_indented else text).body[0]
    except (SyntaxError, IndexError):
        return None
    if is_indented:
        assert isinstance(statement, ast.If)
        statement = statement.body[0]
    ast.increment_lineno(statement, first - (2 if is_indented else 1))
    return statement


def _same_names(tree: ast.FunctionDef, code: types.CodeType) -> bool:
    """Return whether a tree and a function have the same names and constants.

    Bytecode cannot be compared: a method compiled outside its class or closure differs.
    """
    bare = copy.copy(tree)
    bare.decorator_list = []
    compiled = compile(ast.fix_missing_locations(ast.Module([bare], [])), "", "exec", dont_inherit=True)
    alone = next(c for c in compiled.co_consts if isinstance(c, types.CodeType) and c.co_name == tree.name)
    return _words(alone) == _words(code)


def _words(code: types.CodeType) -> set[str]:
    words = {_plain(n) for n in (*code.co_names, *code.co_freevars, *code.co_varnames, *code.co_cellvars)}
    for constant in code.co_consts:
        words |= _words(constant) if isinstance(constant, types.CodeType) else {repr(constant)}
    return {w for w in words if w != "__class__" and "<locals>" not in w}


def _plain(name: str) -> str:
    """Return a private name as it was written, without the class that Python puts before it."""
    return name[name.index("__") :] if name.startswith("_") and "__" in name[1:] else name
