"""Cases of a test that have each value, and each combination but with the many: one of these a program, say."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

__all__ = ["in_turn"]


def in_turn(many: Iterable[Any], *few: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return each of the many with the combinations of the others in turn.

    >>> in_turn("abc", [1, 2], [True])
    [('a', 1, True), ('b', 2, True), ('c', 1, True)]
    """
    others = itertools.cycle(itertools.product(*few))
    return [(one, *next(others)) for one in many]
