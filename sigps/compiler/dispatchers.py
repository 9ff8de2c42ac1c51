"""The names of a program's generated module, with a compiler's dispatcher in the place of each function."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from sigps.compiler.program import VertexProgram
from sigps.native.source import global_names

__all__ = ["compiled_names", "compiling", "summable"]

compiling = threading.Lock()
"""Held while a program is compiled, so that ranks that are threads compile it once."""


def compiled_names(
    program: VertexProgram,
    jit: Callable[..., Any],
    home: str,
    unwrapped: Callable[[Any], Any] = lambda value: value,
) -> dict[str, Any]:
    """Run the generated module once and put a dispatcher in the place of every function.

    Args:
        program: The program.
        jit: Makes a function a dispatcher.
        home: The module name of all functions, which must be importable when compiled code is read from the cache.
        unwrapped: Returns the Python function of another compiler's dispatcher; other values as they are.
    """
    done: dict[int, Any] = {}

    def usable(value: Any) -> Any:
        """Return a dispatcher of a user's function, and of those that it calls; other values as they are."""
        value = unwrapped(value)
        if not isinstance(value, types.FunctionType):
            return value
        if id(value) not in done:
            names = {**value.__globals__, "__name__": home}
            copied = types.FunctionType(
                value.__code__, names, value.__name__, value.__defaults__, value.__closure__
            )
            done[id(value)] = jit(copied)
            for name, meaning in global_names(value).items():
                is_function = isinstance(unwrapped(meaning), types.FunctionType)
                if name in value.__code__.co_names and is_function:
                    names[name] = usable(meaning)
        return done[id(value)]

    found: dict[str, Any] = {name: usable(value) for name, value in program.namespace.items()}
    found["__name__"] = home
    exec(compile(program.module, program.file, "exec"), found)
    for function in program.module.body:
        name = function.name  # type: ignore[attr-defined]
        found[name] = jit(found[name])
    return found


def summable(dtype: np.dtype[Any], op: str) -> np.dtype[Any]:
    """Return the type of a slot: whole numbers add up in 64 bits, as they do in Python."""
    if op != "sum" or dtype.kind not in "iu":
        return dtype
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
