"""A function, a global or a class as text: where the text differs, the program does."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

from sigps.model.declaration import Declaration
from sigps.model.vertex import Vertex
from sigps.native.source import global_names

__all__ = ["COMPILED_ELSEWHERE", "class_fingerprint", "fingerprint"]

COMPILED_ELSEWHERE = ("numpy", "math", "builtins", "operator", "cmath")
"""Packages whose functions the back ends compile themselves: their names stay, and their code is not described."""


def fingerprint(value: Any, seen: set[int]) -> str:
    """Describe the value of a global, so that a program that reads another value has another key."""
    value = getattr(value, "py_func", value)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, types.FunctionType):
        if id(value) in seen:
            return value.__name__
        seen.add(id(value))
        return (
            f"def {_code(value.__code__)} {value.__defaults__} {value.__kwdefaults__} {_inner(value, seen)}"
        )
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value.__name__}{value._fields}{inspect.get_annotations(value)}"
    if isinstance(value, Declaration):
        return value.text
    return repr(value)


def class_fingerprint(cls: type) -> str:
    """Describe the attributes of a class and of its bases below `Vertex`."""
    seen: set[int] = set()
    described = []
    for base in cls.__mro__:
        if base is Vertex or base is object:
            continue
        for name, value in vars(base).items():
            if isinstance(value, property):
                described += [
                    f"{name}={fingerprint(f, seen)}" for f in (value.fget, value.fset) if f is not None
                ]
            elif not name.startswith("__"):
                described.append(f"{name}={fingerprint(getattr(value, '__func__', value), seen)}")
    return "\n".join(described)


@functools.lru_cache(maxsize=4096)
def _code(code: types.CodeType) -> str:
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _inner(function: types.FunctionType, seen: set[int]) -> list[str]:
    """Describe what a function reads: its globals, and the attributes it reads of modules among them."""
    names = global_names(function) if function.__closure__ else function.__globals__
    read = _names_in(function.__code__)
    described = []
    for name in read:
        if name not in names:
            continue
        described.append(f"{name}={fingerprint(names[name], seen)}")
        module = names[name]
        if (
            isinstance(module, types.ModuleType)
            and module.__name__.partition(".")[0] not in COMPILED_ELSEWHERE
        ):
            held = {n: vars(module)[n] for n in read if n in vars(module)}
            described += [f"{name}.{n}={fingerprint(v, seen)}" for n, v in held.items()]
    return described


@functools.lru_cache(maxsize=4096)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that a function reads, also in the generators inside it; in order."""
    inner = [_names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return tuple(sorted({*code.co_names, *code.co_freevars}.union(*inner)))
