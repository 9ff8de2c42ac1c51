"""compute() of a class of phases: its three forms, and the function that is made of its tree.

Every superstep after the first is: read the messages, apply, send. The forms differ in who sends:

    EVERY     all vertices, until a superstep changes none: a total is of all in-edges, whoever changed
    CHANGED   those that changed (`keeps_best.py`: older values can change nothing any more)
    TOGETHER  all or none: whether a vertex changed depends on the superstep and on parameters alone
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sigps.errors import CompileError
from sigps.native.trees import parse

__all__ = ["COUNTER", "Form", "Translation", "made_function", "statements", "written"]

COUNTER = "num_changed"


class Form(Enum):
    """Who sends, and when a run ends."""

    EVERY = "all vertices gather and scatter until a superstep changes none"
    CHANGED = "only what changed is gathered: nothing else could be better than what a vertex has"
    TOGETHER = "all vertices stop in the same superstep"


@dataclass
class Translation:
    """What the phases of a class became.

    Attributes:
        start: The statements of superstep 0.
        total: Statements that read the messages.
        apply: Statements that leave whether the vertex changed in `changed`.
        scatter: Statements that send, and assign edge values.
        message: The type of a message; None where nothing is sent.
        combiner: The user's `merge`, where messages combine by it.
        bound: Values of names that the statements use beside those of the user's.
        stored: The edge values that are kept on edges.
        parts: What became of each part, for `explain`: its name and a sentence.
        place: The method whose file and line the function has.
    """

    start: list[ast.stmt]
    total: list[ast.stmt]
    apply: list[ast.stmt]
    scatter: list[ast.stmt]
    message: Any
    place: ast.FunctionDef
    combiner: Callable[[Any, Any], Any] | None = None
    bound: dict[str, Any] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    parts: list[tuple[str, str]] = field(default_factory=list)


_FORMS = {
    Form.EVERY: """
if self.superstep == 0:
    START
else:
    if self.superstep > 1 and self.num_changed == 0:
        self.vote_to_halt()
        return
    TOTAL
    APPLY
    self.num_changed += changed
SCATTER
""",
    Form.CHANGED: """
if self.superstep == 0:
    START
else:
    TOTAL
    APPLY
if changed:
    SCATTER
self.vote_to_halt()
""",
    Form.TOGETHER: """
if self.superstep == 0:
    START
else:
    TOTAL
    APPLY
if changed:
    SCATTER
else:
    self.vote_to_halt()
""",
}


def statements(text: str, place: ast.AST) -> list[ast.stmt]:
    """Return statements that are the compiler's, each at a place of the user's."""
    body = parse(text).body
    for node in (n for s in body for n in ast.walk(s)):
        ast.copy_location(node, place)
    return body


def written(parts: Translation, form: Form) -> ast.FunctionDef:
    """Return compute() in a form."""
    (made,) = statements("def compute(self, messages): pass", parts.place)
    assert isinstance(made, ast.FunctionDef)
    blocks = {"START": parts.start, "TOTAL": parts.total, "APPLY": parts.apply, "SCATTER": parts.scatter}
    made.body = _filled(statements(_FORMS[form], parts.place), blocks)
    return ast.fix_missing_locations(made)


def _filled(body: list[ast.stmt], blocks: Mapping[str, list[ast.stmt]]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            statement.body = _filled(statement.body, blocks) or [ast.copy_location(ast.Pass(), statement)]
            statement.orelse = _filled(statement.orelse, blocks)
        name = statement.value.id if isinstance(getattr(statement, "value", None), ast.Name) else ""  # type: ignore
        found += copy.deepcopy(blocks[name]) if name in blocks else [statement]
    return found


def made_function(tree: ast.FunctionDef, methods: list[Any], bound: Mapping[str, Any], owner: str) -> Any:
    """Return a tree as a function that reads the names of the methods that it was made of.

    Its code has their file and lines, and `parse_function` gives the tree back.

    Raises:
        CompileError: If the methods are of several modules.
    """
    functions = [m for m in methods if m is not None]
    if any(f.__globals__ is not functions[0].__globals__ for f in functions):
        names = ", ".join(f"{f.__name__}()" for f in functions)
        raise CompileError(f"{owner}: {names} are of several modules: write them in one")
    cells = {name: types.CellType(value) for name, value in bound.items()}
    for function in functions:
        cells |= dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells.pop("__class__", None)
    (factory,) = parse(f"def factory({', '.join(cells)}):\n    return compute").body
    assert isinstance(factory, ast.FunctionDef)
    factory.body.insert(0, copy.deepcopy(tree))
    module = ast.fix_missing_locations(ast.Module([factory], []))
    file = functions[0].__code__.co_filename
    code = compile(module, file, "exec", dont_inherit=True)
    outer = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    inner = next(c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == tree.name)
    closure = tuple(cells[name] for name in inner.co_freevars)
    made = types.FunctionType(inner, functions[0].__globals__, tree.name, None, closure)
    made.__module__, made.__qualname__ = functions[0].__module__, f"{owner}.{tree.name}"
    made.__doc__ = "Gather, apply and scatter: written by the front end of `sigps.GAS`."
    for node in ast.walk(tree):
        node.sigps_file = file  # type: ignore[attr-defined]
    made.sigps_tree = tree  # type: ignore[attr-defined]
    return made
