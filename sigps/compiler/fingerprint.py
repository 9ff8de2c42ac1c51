"""A function, a global or a class as text: where the text differs, the program does."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sigps.model.aggregator import Aggregator
from sigps.model.declaration import Declaration
from sigps.model.vertex import Vertex
from sigps.native.source import global_names

__all__ = ["COMPILED_ELSEWHERE", "class_fingerprint", "fingerprint"]

COMPILED_ELSEWHERE = ("numpy", "math", "builtins", "operator", "cmath")
"""Packages whose functions the back ends compile themselves: their names stay, and their code is not described."""


def fingerprint(value: Any, seen: set[int], reads: Reads | None = None) -> str:
    """Describe the value of a global, so that a program that reads another value has another key.

    Args:
        value: The value.
        seen: The functions that are described already; this one is added.
        reads: Notes what the description was made of, where that is wanted.
    """
    reads = reads or Reads(type(None))
    if hasattr(value, "py_func"):
        value, reads.are_all = value.py_func, False
    if isinstance(value, types.FunctionType):
        if id(value) in seen:
            return value.__name__
        seen.add(id(value))
        reads.note_function(value)
        return (
            f"def {_code(value.__code__)} {value.__defaults__} {value.__kwdefaults__} "
            f"{_inner(value, seen, reads)}"
        )
    reads.note_value(value)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type) and hasattr(value, "_fields"):
        return f"{value.__name__}{value._fields}{inspect.get_annotations(value)}"
    if isinstance(value, Declaration):
        return value.text
    return repr(value)


def class_fingerprint(cls: type[Vertex]) -> str:
    """Describe the attributes of a class and of its bases below `Vertex`.

    The text is kept with the class, and made again where anything is not what it was made of: 2 us instead of 7.
    """
    kept: Reads | None = cls.declaration.kept.get(cls)
    if kept is not None and kept.still_hold(cls):
        return kept.text
    seen: set[int] = set()
    reads, described = Reads(cls), []
    for base in cls.__mro__:
        if base is Vertex or base is object:
            continue
        reads.note_whole(vars(base))
        for name, value in vars(base).items():
            if isinstance(value, property):
                described += [
                    f"{name}={fingerprint(f, seen, reads)}" for f in (value.fget, value.fset) if f is not None
                ]
            elif not name.startswith("__"):
                described.append(f"{name}={fingerprint(getattr(value, '__func__', value), seen, reads)}")
    reads.text = "\n".join(described)
    if reads.are_all:
        cls.declaration.kept[cls] = reads
    return reads.text


class Reads:
    """What a description was made of, noted by identity.

    Attributes:
        text: The description.
        are_all: Whether all of it is noted. A list may have other items and be the same list.
    """

    text = ""
    are_all = True

    def __init__(self, cls: type) -> None:
        self._mro = cls.__mro__
        self._wholes: list[tuple[Mapping[str, Any], tuple[str, ...], tuple[Any, ...]]] = []
        self._values: list[tuple[Mapping[str, Any], str, Any]] = []
        self._absent: list[tuple[Mapping[str, Any], set[str]]] = []
        self._functions: list[tuple[types.FunctionType, types.CodeType, tuple[Any, ...] | None]] = []
        self._annotations: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def note_whole(self, names: Mapping[str, Any]) -> None:
        """Note all names and their values."""
        self._wholes.append((names, tuple(names), tuple(names.values())))

    def note_some(self, names: Mapping[str, Any], read: Iterable[str]) -> None:
        """Note the values of some names, and which have none."""
        self._values += [(names, name, names[name]) for name in read if name in names]
        self._absent.append((names, {name for name in read if name not in names}))

    def note_function(self, function: types.FunctionType) -> None:
        """Note a function's code and defaults."""
        self._functions.append((function, function.__code__, function.__defaults__))
        if function.__closure__ or function.__kwdefaults__ is not None:
            self.are_all = False
        self.note_value(function.__defaults__)

    def note_value(self, value: Any) -> None:
        """Note what is described of a value besides which it is."""
        if isinstance(value, Aggregator):
            self.note_whole(vars(value))
        elif isinstance(value, type) and hasattr(value, "_fields"):
            annotations = inspect.get_annotations(value)
            self._annotations.append((value.__annotations__, annotations))
        elif not _is_fixed(value):
            self.are_all = False

    def still_hold(self, cls: type) -> bool:
        """Tell whether everything is as it was noted."""
        if cls.__mro__ is not self._mro:
            return False
        for held, names, values in self._wholes:
            if tuple(held) != names or not all(map(operator.is_, held.values(), values)):
                return False
        for held, name, value in self._values:
            if held.get(name, _ABSENT) is not value:
                return False
        for held, absent in self._absent:
            if not held.keys().isdisjoint(absent):
                return False
        for function, code, defaults in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not None:
                return False
        return all(now == before for now, before in self._annotations)


_ABSENT = object()
_FIXED = (
    *(int, float, complex, str, bytes, type(None), np.number, np.bool_, np.ufunc),
    *(type, types.ModuleType, types.BuiltinFunctionType, Declaration),
)


def _is_fixed(value: Any) -> bool:
    """Tell whether a value says the same of itself as long as it is the same object."""
    return isinstance(value, _FIXED) or (type(value) is tuple and all(map(_is_fixed, value)))


@functools.lru_cache(maxsize=4096)
def _code(code: types.CodeType) -> str:
    constants = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _inner(function: types.FunctionType, seen: set[int], reads: Reads) -> list[str]:
    """Describe what a function reads: its globals, and the attributes it reads of modules among them."""
    names = global_names(function) if function.__closure__ else function.__globals__
    read = _names_in(function.__code__)
    described = []
    reads.note_some(names, read)
    for name in read:
        if name not in names:
            continue
        described.append(f"{name}={fingerprint(names[name], seen, reads)}")
        module = names[name]
        if (
            isinstance(module, types.ModuleType)
            and module.__name__.partition(".")[0] not in COMPILED_ELSEWHERE
        ):
            reads.note_some(vars(module), read)
            held = {n: vars(module)[n] for n in read if n in vars(module)}
            described += [f"{name}.{n}={fingerprint(v, seen, reads)}" for n, v in held.items()]
    return described


@functools.lru_cache(maxsize=4096)
def _names_in(code: types.CodeType) -> tuple[str, ...]:
    """Return the names that a function reads, also in the generators inside it; in order."""
    inner = [_names_in(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return tuple(sorted({*code.co_names, *code.co_freevars}.union(*inner)))
