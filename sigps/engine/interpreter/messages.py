"""The messages of one vertex, as compute() reads them when it is interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sigps.engine.interpreter import arithmetic

__all__ = ["Messages"]

_NOT_GIVEN = object()


class Messages(list[Any]):
    """A list that can be read by key; `zero` is a message whose numbers are all 0, where it has vectors, else None."""

    def __init__(self, messages: Iterable[Any] = (), zero: Any = None) -> None:
        super().__init__(messages)
        self.zero = zero

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


def _total(weights: list[Any]) -> Any:
    total = weights[0]
    for weight in weights[1:]:
        total = arithmetic.OPERATORS["+"](total, weight)
    return int(total) if isinstance(total, (bool, np.bool_)) else total
