"""Aggregators between supersteps: totals of threads and ranks become the values that the next superstep reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exact_sum import LIMBS, from_limbs, to_limbs
from sigps.model.fields import as_computed
from sigps.model.vertex import Aggregator

__all__ = ["Aggregates"]


class Aggregates:
    """The values of a program's aggregators.

    In a deterministic run, sums of floats are made exactly: vertices keep their contributions apart in `given`,
    and what crosses ranks is an exact sum, rounded once at the end.

    Attributes:
        values: What compute() reads in this superstep.
        identity: What a superstep's totals begin with.
        given: One array an aggregator in a deterministic run, else empty.
    """

    def __init__(self, aggregators: Sequence[Aggregator[Any]], deterministic: bool, num_owned: int) -> None:
        self._aggregators = tuple(aggregators)
        self._dtypes = tuple(a.field.dtype() for a in aggregators)
        self.identity = tuple(
            d.type(a.identity) for a, d in zip(self._aggregators, self._dtypes, strict=True)
        )
        self.values = tuple(d.type(a.start) for a, d in zip(self._aggregators, self._dtypes, strict=True))
        has_floats = any(d.kind == "f" for d in self._dtypes)
        self.given: tuple[NDArray[Any], ...] = ()
        if deterministic and has_floats:
            self.given = tuple(np.full(num_owned, i) for i in self.identity)

    def pack(self, totals: list[tuple[Any, ...]]) -> NDArray[np.int64]:
        """Return this rank's totals as 8-byte words, for the exchange."""
        words: list[NDArray[np.int64]] = []
        for i, (aggregator, dtype) in enumerate(zip(self._aggregators, self._dtypes, strict=True)):
            if self._is_exact(i):
                words.append(to_limbs(self.given[i]))
                continue
            value = self.identity[i]
            for total in totals:
                value = aggregator.combine(value, total[i])
            wide = np.float64 if dtype.kind == "f" else np.int64
            words.append(np.array([value], dtype=dtype).astype(wide, copy=False).view(np.int64))
        for array, identity in zip(self.given, self.identity, strict=False):
            array.fill(identity)
        return np.concatenate(words) if words else np.empty(0, dtype=np.int64)

    def advance(self, words: NDArray[np.int64]) -> None:
        """Take all ranks' packed totals, [ranks, words]; `values` become what the next superstep reads."""
        values = []
        at = 0
        for i, (aggregator, dtype) in enumerate(zip(self._aggregators, self._dtypes, strict=True)):
            if self._is_exact(i):
                value: Any = from_limbs(words[:, at : at + LIMBS].sum(axis=0))
                at += LIMBS
            else:
                column = np.ascontiguousarray(words[:, at])
                numbers = column.view(np.float64) if dtype.kind == "f" else column
                value = self.identity[i]
                for number in numbers.astype(dtype):
                    value = aggregator.combine(value, number)
                at += 1
            if aggregator.persistent:
                value = aggregator.combine(self.values[i], value)
            values.append(dtype.type(value))
        self.values = tuple(values)

    def share(self, values: dict[str, Any]) -> None:
        """Read these shared values from now on."""
        now = dict(zip([a.name for a in self._aggregators], self.values, strict=True)) | values
        self.restore(tuple(now.values()))

    def restore(self, values: tuple[Any, ...]) -> None:
        """Read these in the next superstep."""
        self.values = tuple(d.type(v) for d, v in zip(self._dtypes, values, strict=True))

    def read(self, name: str) -> Any:
        """Return one value as compute() sees it."""
        at = next(i for i, a in enumerate(self._aggregators) if a.name == name)
        return as_computed(self.values[at], self._dtypes[at])

    def by_name(self) -> dict[str, Any]:
        """Return the values as Python numbers."""
        return {a.name: v.item() for a, v in zip(self._aggregators, self.values, strict=True)}

    def _is_exact(self, i: int) -> bool:
        return bool(self.given) and self._aggregators[i].kind == "sum" and self._dtypes[i].kind == "f"
