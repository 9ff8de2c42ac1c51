"""Loops compiled by Numba, and kept on disk by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sigps.compiler.cache import KernelCache

__all__ = ["CompiledLoop", "jit"]


class CompiledLoop:
    """A loop of `kernels/cpu`, compiled at its first call for the types of that call, or read from the cache.

    Attributes:
        call: Calls it; of each argument the class is the same in all calls.
    """

    def __init__(self, loop: Callable[..., Any], key: str) -> None:
        self._loop = jit(loop)
        self._loop._cache = KernelCache(key)
        self.call: Callable[..., Any] = self._call_first

    def _call_first(self, *arguments: Any) -> Any:
        self.call = _open(self._loop, [type(a) if hasattr(a, "_fields") else None for a in arguments])
        return self.call(*arguments)


def _open(loop: Any, classes: Sequence[type | None]) -> Callable[..., Any]:
    """Return a function that calls a loop with tuples in the place of NamedTuples of these classes.

    Numba finds the type of a NamedTuple in 0.8 us and of a tuple in 0.2, at every call. So the loop is compiled for
    NamedTuples and called with tuples, which compiled code takes apart in the same way. What is in a NamedTuple is
    passed as it is.
    """
    from numba.core.types.containers import BaseTuple

    compile_plain = type(loop).compile

    def compile_named(given: tuple[Any, ...]) -> Any:
        named = tuple(
            kind if cls is None else BaseTuple.from_types(kind.types, cls)
            for kind, cls in zip(given, classes, strict=True)
        )
        entry = compile_plain(loop, named)
        loop._insert([kind._code for kind in given], entry, False)
        return entry

    loop.compile = compile_named
    taken = [f"a{i}" for i in range(len(classes))]
    passed = [name if cls is None else f"{name} + ()" for name, cls in zip(taken, classes, strict=True)]
    names: dict[str, Any] = {"loop": loop}
    exec(f"def call({', '.join(taken)}):\n    return loop({', '.join(passed)})", names)
    call: Callable[..., Any] = names["call"]
    return call


def jit(function: Callable[..., Any], fastmath: bool | set[str] = False) -> Any:
    """Return a dispatcher, which holds no lock while it runs, allocates nothing, and divides by zero as NumPy does."""
    import numba

    return numba.njit(nogil=True, error_model="numpy", _nrt=False, fastmath=fastmath)(function)
