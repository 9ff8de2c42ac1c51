"""Aggregators between supersteps: totals of threads and ranks become the values that the next superstep reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exact_sum import LIMBS, from_limbs, to_limbs
from sigps.errors import ComputeError
from sigps.model.fields import as_computed
from sigps.model.vertex import Aggregator
from sigps.native.marshal import Packed

__all__ = ["Aggregates", "error_of"]


def error_of(aggregator: Aggregator[Any], error: ArithmeticError, superstep: int) -> ComputeError:
    """Return what a run ends with where contributions to an aggregator have no result."""
    file, line = aggregator.place
    return ComputeError(
        str(error), who=f"aggregator {aggregator.name!r}", superstep=superstep, file=file, line=line
    )


def _by_number(totals: list[tuple[Any, ...]], i: int, count: int) -> Iterable[list[Any]]:
    """Return all totals of an aggregator, number by number of a vector."""
    columns = [np.atleast_1d(total[i]) for total in totals]
    return ([column[k] for column in columns] for k in range(count))


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
            Packed.of(a.identity, d) for a, d in zip(self._aggregators, self._dtypes, strict=True)
        )
        self.values = tuple(
            Packed.of(a.start, d) for a, d in zip(self._aggregators, self._dtypes, strict=True)
        )
        has_floats = any(d.base.kind == "f" for d in self._dtypes)
        self.given: tuple[NDArray[Any], ...] = ()
        if deterministic and has_floats:
            rows = zip(self.identity, self._dtypes, strict=True)
            self.given = tuple(np.full((num_owned, *d.shape), i, dtype=d.base) for i, d in rows)

    def pack(self, totals: list[tuple[Any, ...]], superstep: int = 0) -> NDArray[np.int64]:
        """Return this rank's totals of a superstep as 8-byte words, for the exchange.

        Raises:
            ComputeError: If a total of whole numbers does not fit the aggregator's type.
        """
        words: list[NDArray[np.int64]] = []
        for i, dtype in enumerate(self._dtypes):
            if self._is_exact(i):
                columns = self.given[i].reshape(len(self.given[i]), math.prod(dtype.shape)).T
                words += [to_limbs(np.ascontiguousarray(column)) for column in columns]
                continue
            values = [
                self._combined(i, numbers, superstep)
                for numbers in _by_number(totals, i, math.prod(dtype.shape))
            ]
            wide = np.float64 if dtype.base.kind == "f" else np.int64
            words.append(np.array(values, dtype=dtype.base).astype(wide, copy=False).view(np.int64))
        for array, identity in zip(self.given, self.identity, strict=False):
            array[:] = identity
        return np.concatenate(words) if words else np.empty(0, dtype=np.int64)

    def advance(self, words: NDArray[np.int64], superstep: int = 0) -> None:
        """Take all ranks' packed totals of a superstep, [ranks, words]; `values` become what the next one reads.

        Raises:
            ComputeError: If a total of whole numbers does not fit the aggregator's type.
        """
        values = []
        at = 0
        for i, (aggregator, dtype) in enumerate(zip(self._aggregators, self._dtypes, strict=True)):
            found = []
            for before in np.atleast_1d(self.values[i]):
                if self._is_exact(i):
                    value: Any = from_limbs(words[:, at : at + LIMBS].sum(axis=0))
                    at += LIMBS
                else:
                    column = np.ascontiguousarray(words[:, at])
                    numbers = column.view(np.float64) if dtype.base.kind == "f" else column
                    value = self._combined(i, numbers.astype(dtype.base), superstep)
                    at += 1
                if aggregator.persistent:
                    value = self._combined(i, (before, value), superstep)
                found.append(value)
            values.append(Packed.of(found if dtype.shape else found[0], dtype))
        self.values = tuple(values)

    def _combined(self, i: int, numbers: Iterable[Any], superstep: int) -> Any:
        """Return numbers combined as an aggregator does, from its identity, as plain Python ones."""
        aggregator, dtype = self._aggregators[i], self._dtypes[i].base
        value = np.atleast_1d(self.identity[i])[0].item()
        try:
            for number in numbers:
                value = aggregator.combine(value, number.item() if isinstance(number, np.generic) else number)
            if dtype == np.uint64:
                return value % 2**64  # as it wraps around in compute()
            return aggregator.field.element.assigned(value)
        except ArithmeticError as error:
            raise error_of(aggregator, error, superstep) from error

    def share(self, values: dict[str, Any]) -> None:
        """Read these shared values from now on."""
        now = dict(zip([a.name for a in self._aggregators], self.values, strict=True)) | values
        self.restore(tuple(now.values()))

    def restore(self, values: tuple[Any, ...]) -> None:
        """Read these in the next superstep."""
        self.values = tuple(Packed.of(v, d) for d, v in zip(self._dtypes, values, strict=True))

    def read(self, name: str) -> Any:
        """Return one value as compute() sees it."""
        at = next(i for i, a in enumerate(self._aggregators) if a.name == name)
        return as_computed(self.values[at], self._dtypes[at])

    def by_name(self) -> dict[str, Any]:
        """Return the values as Python numbers, a vector as a list of these."""
        return {a.name: v.tolist() for a, v in zip(self._aggregators, self.values, strict=True)}

    def _is_exact(self, i: int) -> bool:
        return bool(self.given) and self._aggregators[i].kind == "sum" and self._dtypes[i].base.kind == "f"
