"""Aggregators between supersteps: totals of threads and ranks become the values that the next superstep reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ComputeError
from sigps.model.aggregator import Aggregator
from sigps.model.fields import as_computed
from sigps.native.marshal import Packed
from sigps.native.sums import EMPTY, WORDS, added, rounded, spread

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


def _units(aggregators: Sequence[Aggregator[Any]]) -> Iterator[tuple[int, int]]:
    """Yield the first cell of each aggregator as it is declared, and how many it has."""
    i = 0
    while i < len(aggregators):
        width = WORDS if aggregators[i].exact is not None else 1
        yield i, width
        i += width


def _words_by_number(cells: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the words of a sum, or of those of a vector's numbers, each as whole numbers."""
    return list(zip(*(map(int, np.atleast_1d(cell)) for cell in cells), strict=True))


def _added(sums: Iterable[Sequence[Any]]) -> tuple[int, ...]:
    total = EMPTY
    for words in sums:
        total = added(*total, *map(int, words))
    return total


class Aggregates:
    """The values of a program's aggregators.

    In a deterministic run a sum of floats has four cells, whole numbers that add up in any order (`native/sums.py`),
    each a vector where vectors are added up, and is rounded where it is read; any other aggregator has one cell.

    Args:
        aggregators: As the program has them: of each cell one (`model.aggregator.cells_of`).

    Attributes:
        values: The cells that compute() reads in this superstep.
        identity: The cells that a superstep's totals begin with.
    """

    def __init__(self, aggregators: Sequence[Aggregator[Any]]) -> None:
        self._aggregators = tuple(aggregators)
        self._units = list(_units(aggregators))
        self._dtypes = tuple(a.field.dtype() for a in aggregators)
        self.identity = tuple(
            Packed.of(a.identity, d) for a, d in zip(self._aggregators, self._dtypes, strict=True)
        )
        self.values = tuple(
            Packed.of(a.start, d) for a, d in zip(self._aggregators, self._dtypes, strict=True)
        )

    def again(self) -> Aggregates:
        """Return others of the same program that begin with the values of these. O(1)."""
        made = object.__new__(Aggregates)
        vars(made).update(vars(self))
        return made

    def pack(self, totals: list[tuple[Any, ...]], superstep: int = 0) -> NDArray[np.int64]:
        """Return this rank's totals of a superstep as 8-byte words, for the exchange.

        Raises:
            ComputeError: If a total of whole numbers does not fit the aggregator's type.
        """
        words: list[NDArray[np.int64]] = []
        for i, width in self._units:
            dtype = self._dtypes[i]
            if self._aggregators[i].is_shared:  # nobody contributes
                continue
            if width > 1:
                sums = [_words_by_number(total[i : i + width]) for total in totals]
                for k in range(math.prod(dtype.shape)):
                    words.append(np.array(_added(of_one[k] for of_one in sums), dtype=np.int64))
                continue
            values = [
                self._combined(i, numbers, superstep)
                for numbers in _by_number(totals, i, math.prod(dtype.shape))
            ]
            wide = np.float64 if dtype.base.kind == "f" else np.int64
            words.append(np.array(values, dtype=dtype.base).astype(wide, copy=False).view(np.int64))
        return np.concatenate(words) if words else np.empty(0, dtype=np.int64)

    def advance(self, words: NDArray[np.int64], superstep: int = 0) -> None:
        """Take all ranks' packed totals of a superstep, [ranks, words]; `values` become what the next one reads.

        Raises:
            ComputeError: If a total of whole numbers does not fit the aggregator's type.
        """
        values: list[Any] = []
        at = 0
        for i, width in self._units:
            aggregator, dtype = self._aggregators[i], self._dtypes[i]
            found: list[Any] = []
            if aggregator.is_shared:
                values.append(self.values[i])
                continue
            if width > 1:
                sums = []
                for kept in _words_by_number(self.values[i : i + width]):
                    sums.append(
                        _added([*words[:, at : at + width], *([kept] if aggregator.persistent else [])])
                    )
                    at += width
                values += self._as_cells(i, sums)
                continue
            for before in np.atleast_1d(self.values[i]):
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
        now = list(self.values)
        for i, width in self._units:
            name = self._aggregators[i].name
            if name in values:
                now[i : i + width] = self._cells(i, width, values[name])
        self.values = tuple(now)

    def take(self, cells: Sequence[Any]) -> None:
        """Read these cells in the next superstep."""
        self.values = tuple(Packed.of(cell, d) for d, cell in zip(self._dtypes, cells, strict=True))

    def restore(self, values: Sequence[Any]) -> None:
        """Read these in the next superstep: `saved_values`, also of a run that rounds where this one does not."""
        units = zip(self._units, values, strict=True)
        self.values = tuple(cell for (i, width), value in units for cell in self._cells(i, width, value))

    def _cells(self, i: int, width: int, value: Any) -> list[Any]:
        dtype = self._dtypes[i]
        are_words = np.ndim(value) > len(dtype.shape)
        numbers = np.reshape(value, (-1, WORDS)) if are_words else np.atleast_1d(value)
        if width > 1:
            return self._as_cells(i, numbers.tolist() if are_words else [spread(float(n)) for n in numbers])
        found = [rounded(*map(int, words)) for words in numbers] if are_words else numbers
        return [Packed.of(found if dtype.shape else found[0], dtype)]

    def _as_cells(self, i: int, sums: Sequence[Sequence[int]]) -> list[Any]:
        """Return cells from number i on: the words of a sum, or of as many as a vector has numbers."""
        dtype = self._dtypes[i]
        columns = zip(*sums, strict=True)
        return [Packed.of(list(column) if dtype.shape else column[0], dtype) for column in columns]

    def saved_values(self) -> tuple[Any, ...]:
        """Return one value an aggregator, for `restore`; of a sum that goes on its words, not rounded yet."""
        return tuple(
            np.stack(self.values[i : i + width], axis=-1)
            if width > 1 and self._aggregators[i].persistent
            else self._value(i, width)
            for i, width in self._units
        )

    def _value(self, i: int, width: int) -> Any:
        exact = self._aggregators[i].exact
        if exact is None:
            return self.values[i]
        dtype = exact.field.dtype()
        numbers = [rounded(*words) for words in _words_by_number(self.values[i : i + width])]
        return Packed.of(numbers if dtype.shape else numbers[0], dtype)

    def read(self, name: str) -> Any:
        """Return one value as compute() sees it."""
        i, width = next((i, width) for i, width in self._units if self._aggregators[i].name == name)
        declared = self._aggregators[i].exact or self._aggregators[i]
        return as_computed(self._value(i, width), declared.field.dtype())

    def by_name(self) -> dict[str, Any]:
        """Return the values as Python numbers, a vector as a list of these."""
        return {self._aggregators[i].name: self._value(i, width).tolist() for i, width in self._units}
