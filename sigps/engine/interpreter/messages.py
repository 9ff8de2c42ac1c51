"""The messages of one vertex, as compute() reads them when it is interpreted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sigps.engine.interpreter import arithmetic
from sigps.model.vector import Vector
from sigps.native import sums
from sigps.native.sums import rounded

__all__ = ["Messages", "exact_total", "folds", "sum_of"]

_NOT_GIVEN = object()


class Messages(list[Any]):
    """A list that can be read by key.

    Attributes:
        zero: A message whose numbers are all 0, where it has vectors, else None.
        adds_exactly: Whether sums of floats do not depend on the order of messages: compiled code combines them, in a
            deterministic run.
    """

    def __init__(self, messages: Iterable[Any] = (), zero: Any = None, *, adds_exactly: bool = False) -> None:
        super().__init__(messages)
        self.zero, self.adds_exactly = zero, adds_exactly

    def grouped(self, key: Callable[[Any], Any] | None = None) -> Iterator[tuple[Any, Messages]]:
        """Yield each key and its messages, in ascending order of keys. Without a function a message is its own key."""
        groups = self._by_key(key)
        return ((value, groups[value]) for value in sorted(groups))

    def most_common(
        self,
        key: Callable[[Any], Any] | None = None,
        weight: Callable[[Any], Any] | None = None,
        *,
        default: Any = _NOT_GIVEN,
    ) -> Any:
        """Return the key whose messages weigh most together, 1 each without a function; the smallest such key.

        Raises:
            ValueError: If there is no message, and no default.
        """
        if not self and default is _NOT_GIVEN:
            raise ValueError("most_common() of no messages needs default=...")
        found, most = default, None
        for value, group in self.grouped(key):
            total = len(group) if weight is None else _total([weight(message) for message in group])
            if total != total:
                total = -np.inf
            if most is None or total > most:
                found, most = value, total
        return found

    def _by_key(self, key: Callable[[Any], Any] | None) -> dict[Any, Messages]:
        groups: dict[Any, Messages] = {}
        for message in self:
            value = message if key is None else key(message)
            if not isinstance(value, (int, np.integer, np.bool_)):
                raise TypeError(f"a key is a whole number, and {value!r} is a {type(value).__name__}")
            groups.setdefault(value, Messages(zero=self.zero)).append(message)
        return groups


class Folds:
    """What each statement of a loop over messages adds up, where sums are exact."""

    def __init__(self) -> None:
        self._terms: dict[int, list[Any]] = {}

    def add(self, statement: int, term: Any) -> None:
        self._terms.setdefault(statement, []).append(term)

    def __contains__(self, statement: int) -> bool:
        return statement in self._terms

    def total(self, statement: int) -> Any:
        return exact_total(self._terms[statement])


def folds(source: Any) -> Folds | None:
    """Return where a loop over `source` keeps what it adds up; None where it adds one after another."""
    return Folds() if isinstance(source, Messages) and source.adds_exactly else None


def sum_of(
    source: Any, function: Callable[..., Any], values: Iterable[Any], *start: Any, **named: Any
) -> Any:
    """Return sum() of values that were made of `source`."""
    is_exact = isinstance(source, Messages) and source.adds_exactly
    if not is_exact or function is not arithmetic.standing_for(sum):
        return function(values, *start, **named)
    return arithmetic.OPERATORS["+"]((*start, *named.values(), 0)[0], exact_total(values))


def exact_total(terms: Iterable[Any]) -> Any:
    """Return a sum; one of floats by the rule of `native/sums.py`."""
    kept = list(terms)
    if any(isinstance(term, Vector) for term in kept):
        first = next(i for i, term in enumerate(kept) if isinstance(term, Vector))
        return kept.pop(first).each(lambda *numbers: exact_total(numbers), *kept)
    if any(isinstance(term, (float, np.floating)) for term in kept):
        return rounded(*sums.total(map(float, kept)))
    return functools.reduce(arithmetic.OPERATORS["+"], kept, 0)


def _total(weights: list[Any]) -> Any:
    total = weights[0]
    for weight in weights[1:]:
        total = arithmetic.OPERATORS["+"](total, weight)
    return int(total) if isinstance(total, (bool, np.bool_)) else total
