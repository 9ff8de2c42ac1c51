"""An emitter whose numbers are vectors, so that `operators.py` has one text for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigps.native.emitter import Emitter, Handle
from sigps.native.source import UnfitError
from sigps.native.types import BOOL, Number, Scalar, Vector

__all__ = ["Lanes"]


class Lanes:
    """An emitter of vectors for what asks it for numbers: of each operation, one for all numbers of the vectors."""

    def __init__(self, emitter: Emitter, length: int) -> None:
        self._emitter, self._length = emitter, length
        self.emits = emitter.emits

    def _wide(self, kind: Scalar) -> Vector:
        assert isinstance(kind, Number)
        return Vector(kind, self._length)

    def constant(self, kind: Number, value: Any) -> Handle:
        return self._emitter.constant(self._wide(kind), value)

    def cast(self, value: Handle, kind: Number, to: Number) -> Handle:
        return self._emitter.cast(value, self._wide(kind), self._wide(to))

    def binary(self, op: str, kind: Number, a: Handle, b: Handle) -> Handle:
        return self._emitter.binary(op, self._wide(kind), a, b)

    def overflows(self, op: str, kind: Number, a: Handle, b: Handle) -> tuple[Handle, Handle]:
        return self._emitter.overflows(op, self._wide(kind), a, b)

    def compare(self, op: str, kind: Number, a: Handle, b: Handle) -> Handle:
        return self._emitter.compare(op, self._wide(kind), a, b)

    def invert(self, value: Handle) -> Handle:
        return self.binary("^", BOOL, value, self.constant(BOOL, True))

    def select(self, condition: Handle, a: Handle, b: Handle, kind: Number) -> Handle:
        return self._emitter.choose(condition, a, b, self._wide(kind))

    def math(self, name: str, kind: Number, values: Sequence[Handle]) -> Handle:
        return self._emitter.math(name, self._wide(kind), values)

    def __getattr__(self, name: str) -> Any:
        raise UnfitError("this is done for one number at a time: write a loop over the vector's positions")
