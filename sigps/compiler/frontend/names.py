"""The global names in user code: each distinct value gets one name in the generated module.

A class may inherit from a class of another module whose globals have the same names, and users may call their own
functions and variables `merge` or `sum`: names that clash are replaced where they are read.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import types
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from sigps.compiler.fingerprint import COMPILED_ELSEWHERE
from sigps.compiler.frontend.constants import constant_of
from sigps.compiler.frontend.desugar import BIT_FUNCTIONS, OWN
from sigps.compiler.frontend.keys import KEY_FUNCTIONS
from sigps.compiler.frontend.syntax import VECTOR, assigned_names
from sigps.compiler.program import FUNCTIONS
from sigps.model.fields import VertexId
from sigps.model.vector import Vector, VectorType
from sigps.native.primitives import VALUE_FUNCTIONS
from sigps.native.source import global_names, reject
from sigps.native.trees import walk

__all__ = ["Names"]

_OWN_FUNCTIONS = BIT_FUNCTIONS | KEY_FUNCTIONS | VALUE_FUNCTIONS

_RANDOM = ("random", "numpy.random", "secrets")


class Names:
    """The global names of one generated module, and their values."""

    def __init__(self) -> None:
        self.meanings: dict[str, Any] = {}

    def resolve(
        self, tree: ast.FunctionDef, function: Callable[..., Any], reserved: Collection[str]
    ) -> ast.FunctionDef:
        """Give every global name in a function its name in the module, in place; also clashing locals.

        Args:
            tree: The function.
            function: The function object of that tree, whose globals and closure are read.
            reserved: Arguments that keep their names: `self`, `messages`.

        Raises:
            CompileError: If a name is not defined, or means something that compiled code cannot hold.
        """
        params = {arg.arg for arg in walk(tree.args) if isinstance(arg, ast.arg)}
        local = (params | assigned_names(tree.body)) - set(reserved)
        for node in walk(tree):
            name = getattr(node, "id", getattr(node, "arg", None))
            if isinstance(name, str) and name in local and name.startswith("__") and not name.startswith(OWN):
                reject(
                    node,
                    f"the name {name!r} begins with two underscores, as the compiler's own do: rename it",
                )
        resolved: ast.FunctionDef = _Resolver(self, global_names(function), local, set(reserved)).visit(tree)
        return resolved

    def claim(self, node: ast.expr, name: str, value: Any) -> str:
        """Return the name of a global in the generated module."""
        _check_usable(node, name, value)
        taken = name in FUNCTIONS or hasattr(builtins, name) or name in ("self", "messages")
        alias, number = name, 0
        while taken or self.meanings.get(alias, value) is not value:
            number += 1
            alias, taken = f"__global{number}_{name}", False
        self.meanings[alias] = value
        return alias


class _Resolver(ast.NodeTransformer):
    def __init__(self, names: Names, meanings: dict[str, Any], local: set[str], reserved: set[str]) -> None:
        self._names, self._meanings, self._local, self._reserved = names, meanings, local, reserved

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._local_name(node.arg)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._reserved or node.id.startswith(VECTOR):
            return node
        if node.id in _OWN_FUNCTIONS:
            self._names.meanings[node.id] = _OWN_FUNCTIONS[node.id]
            return node
        if node.id in self._local:
            node.id = self._local_name(node.id)
        elif node.id in self._meanings and self._meanings[node.id] is not getattr(
            builtins, node.id, NotImplemented
        ):
            node.id = self._names.claim(node, node.id, self._meanings[node.id])
        elif not hasattr(builtins, node.id):
            near = difflib.get_close_matches(node.id, [*self._local, *self._meanings], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            reject(node, f"the name {node.id!r} is not defined{hint}")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace `module.x` by its value at compile time; functions of NumPy and math stay as written."""
        module = self._module(node.value)
        if module is None:
            return self.generic_visit(node)
        if not hasattr(module, node.attr):
            near = difflib.get_close_matches(node.attr, vars(module), 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            reject(node, f"the module {module.__name__} has no {node.attr!r}{hint}")
        value = getattr(module, node.attr)
        constant = constant_of(value)
        if constant is not NotImplemented:
            return ast.copy_location(ast.Constant(constant), node)
        if module.__name__.partition(".")[0] in COMPILED_ELSEWHERE:
            _check_not_random(node, ast.unparse(node), value)
            return self.generic_visit(node)
        return ast.copy_location(ast.Name(self._names.claim(node, node.attr, value), node.ctx), node)

    def _module(self, node: ast.expr) -> types.ModuleType | None:
        value: Any = None
        if isinstance(node, ast.Name) and node.id not in self._local:
            value = self._meanings.get(node.id)
        elif isinstance(node, ast.Attribute):
            value = getattr(self._module(node.value), node.attr, None)
        return value if isinstance(value, types.ModuleType) else None

    def _local_name(self, name: str) -> str:
        clashes = hasattr(builtins, name) or name in ("self", "messages")
        return f"__local_{name}" if clashes and name in self._local else name


def _check_usable(node: ast.expr, name: str, value: Any) -> None:
    """Raise a CompileError for what compiled code cannot hold."""
    _check_not_random(node, name, value)
    is_number = isinstance(value, (bool, int, float, np.number, np.bool_))
    is_tuple = type(value) is tuple and constant_of(value) is not NotImplemented
    functions = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, types.ModuleType)
    is_type = isinstance(value, type) and (issubclass(value, np.generic) or hasattr(value, "_fields"))
    is_vector = value is Vector or value is VertexId or isinstance(value, VectorType)
    if (
        is_vector
        or is_number
        or is_tuple
        or is_type
        or isinstance(value, functions)
        or hasattr(value, "py_func")
    ):
        return
    is_numpy = callable(value) and str(getattr(value, "__module__", "")).partition(".")[0] == "numpy"
    if (
        is_numpy
        or any(value is kind for kind in (int, float, bool))
        or getattr(builtins, name, None) is value
    ):
        return
    if isinstance(value, (np.ndarray, list, dict)):
        reject(
            node,
            f"the global {name!r} is a {type(value).__name__}, which compute() cannot read: values of vertices go into "
            "State fields, those of edges into edge columns, and a few numbers into a tuple",
        )
    reject(
        node,
        f"the global {name!r} is a {type(value).__name__}; compiled code can use numbers, tuples of numbers, "
        "functions and modules from outside compute()",
    )


def _check_not_random(node: ast.expr, name: str, value: Any) -> None:
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    owner = type(getattr(value, "__self__", None)).__module__
    if home in _RANDOM or owner in (*_RANDOM, "numpy.random.mtrand"):
        reject(
            node,
            f"{name}: these numbers would differ from run to run and from device to device: draw with "
            "x = self.random(), k = self.random_int(n) or k = self.choose(weights)",
        )
