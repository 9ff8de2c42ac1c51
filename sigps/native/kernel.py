"""Python functions of numbers and arrays, compiled to machine code at their first call for the types of that call.

They hold no lock while they run, so threads run them side by side. Their arithmetic is the machine's: whole numbers
have 64 bits and wrap around, positions are not checked, and arrays are views of the caller's.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sigps.account import spent_on
from sigps.native import cache
from sigps.native.builder import Functions, Site
from sigps.native.marshal import Cell, Form, describe
from sigps.native.types import Type, from_plain, plain

__all__ = ["Kernel", "LoopFaultError", "compiled"]

log = logging.getLogger(__name__)

_compiling = threading.RLock()


class LoopFaultError(Exception):
    """Arithmetic of a program had no result, in a loop.

    Attributes:
        site: Where it stands, and its kind.
        at: The local id of the vertex, or -1.
        result: What the loop returned.
    """

    def __init__(self, site: Site, at: int, result: Any) -> None:
        super().__init__(site)
        self.site, self.at, self.result = site, at, result


class _Kept(NamedTuple):
    """What is kept on disk of a function for some types of arguments."""

    code: bytes
    result: Type
    sites: list[Site]


class Kernel:
    """A compiled function.

    Args:
        function: The Python function. What it calls is compiled with it.
        key: What its code depends on besides the engine's own sources and types: a name in the cache on disk.
        functions: The functions of the program that it calls (`primitives.ProgramFunction`).

    Attributes:
        py_func: The Python function.
    """

    def __init__(self, function: Callable[..., Any], key: str, functions: Functions | None = None) -> None:
        self.py_func = function
        self._key, self._functions = key, functions
        self._forms: list[tuple[Form, _Kept]] = []
        self._codes: dict[tuple[Type, ...], tuple[_Kept, Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Run it.

        Raises:
            LoopFaultError: If arithmetic of the program had no result.
            TypeError: If an argument is nothing that compiled code takes.
        """
        form, kept = self._form_of(arguments)
        return self._ended(form.run(form.pack(arguments)), kept)

    @property
    def has_code(self) -> bool:
        """Whether it was compiled, or read from the cache, for some types of arguments."""
        return bool(self._forms)

    def over(self, *others: Any) -> Callable[[Any, Any], Any]:
        """Return a function that runs it over a range: it takes the first two arguments, which are uint64.

        The others are given here, once for all ranges: a call then takes 1 us, and not 10.
        """
        arguments = np.uint64(0), np.uint64(0), *others
        form, kept = self._form_of(arguments)
        tail = form.pack(arguments)[16:]

        def run(begin: Any, end: Any) -> Any:
            _ = arguments  # live as long as their cells are used
            return self._ended(form.run(_RANGE(begin, end) + tail), kept)

        return run

    def _ended(self, outcome: tuple[Any, int], kept: _Kept) -> Any:
        result, fault = outcome
        if fault != 0:
            number = (fault & 0xFFFFFF) - 1
            # What was kept may be of a program with the same code in another file.
            own = self._functions.sites if self._functions is not None else []
            raise LoopFaultError((own if number < len(own) else kept.sites)[number], fault >> 24, result)
        return result

    def _form_of(self, arguments: tuple[Any, ...]) -> tuple[Form, _Kept]:
        for form, kept in self._forms:
            if form.takes(arguments):
                return form, kept
        return self._opened(arguments)

    def _opened(self, arguments: tuple[Any, ...]) -> tuple[Form, _Kept]:
        """Return the form for some arguments, compiled or read from the cache."""
        from sigps.native.machine import MachineCode

        with spent_on("compile"), _compiling:
            for form, kept in self._forms:
                if form.takes(arguments):
                    return form, kept
            described = [describe(argument) for argument in arguments]
            kinds = tuple(kind for kind, _ in described)
            cells = [cell for _, found in described for cell in found]
            if kinds not in self._codes:
                kept = self._kept(kinds, cells)
                self._codes[kinds] = kept, MachineCode(kept.code)
            kept, code = self._codes[kinds]
            form = Form(arguments, cells, kept.result, code)
            self._forms.append((form, kept))
            return form, kept

    def _kept(self, kinds: tuple[Type, ...], cells: list[Cell]) -> _Kept:
        key = f"{self._key} {kinds!r}"
        if found := cache.read(key):
            code, result, sites = found
            return _Kept(code, from_plain(result), list(map(tuple, sites)))
        made = self._compiled(kinds, cells)
        cache.write(key, [made.code, plain(made.result), made.sites])
        return made

    def _compiled(self, kinds: tuple[Type, ...], cells: list[Cell]) -> _Kept:
        from sigps.native.llvm import LlvmModule
        from sigps.native.machine import assemble

        functions = self._functions or Functions()
        instance = functions.instance(self.py_func, kinds, is_checked=False)
        module = LlvmModule(functions)
        module.add_entry(instance, cells)
        code = assemble(str(module.module))
        assert instance.result is not None
        return _Kept(code, instance.result, list(functions.sites))


_RANGE = struct.Struct("QQ").pack


def compiled(function: Callable[..., Any]) -> Kernel:
    """Compile a function of a module at its first call; its code is kept on disk."""
    kernel = Kernel(
        function, f"{function.__module__} {function.__qualname__} {_source_key(function.__module__)}"
    )
    functools.update_wrapper(kernel, function)
    return kernel


def _source_key(module: str) -> str:
    """Hash the Python files beside a module: functions that are compiled with its own come from these too."""
    file = sys.modules[module].__file__
    return _hash_of(Path(file).parent) if file else ""


@functools.cache
def _hash_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
