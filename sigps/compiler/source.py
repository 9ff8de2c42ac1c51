"""From a Python function to its syntax tree, and from a place in it to an error that shows the place."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from sigps.errors import CompileError

__all__ = ["global_names", "parse_function", "reject"]


def parse_function(function: Callable[..., Any], owner: str) -> ast.FunctionDef:
    """Return the tree of a function, with the line numbers and file of its source.

    Raises:
        CompileError: If the source cannot be read (typed into `python -c`, or built by `exec`).
    """
    code = function.__code__
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise CompileError(
            f"{owner}: the source of {function.__name__}() cannot be read, and the compiler needs it. "
            "Put the class in a file or a notebook cell, or run it with device='python'"
        ) from None
    text = textwrap.dedent("".join(lines))
    try:
        tree = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise CompileError(
            f"{owner}.{function.__name__} must be a plain 'def', not a lambda or async function",
            file=code.co_filename,
            line=first,
            source=lines[0].strip(),
        )
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree):
        node.sigps_file = code.co_filename  # type: ignore[attr-defined]
    return tree


def global_names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what the global and enclosing names of a function mean now."""
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
    raise CompileError(problem, file=file, line=line, source=source)
