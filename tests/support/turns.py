"""Cases of a test over programs, graphs and ways: each value, and pairs in turn, instead of all combinations.

`SIGPS_ALL_CASES=1` asks for all combinations, by hand: they take hours.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

__all__ = ["half_of", "in_turn", "some_of"]

_ALL = bool(os.environ.get("SIGPS_ALL_CASES"))


def in_turn(many: Iterable[Any], *few: Iterable[Any], times: int = 1) -> list[tuple[Any, ...]]:
    """Return each of the many, so many times, with the combinations of the others in turn.

    >>> in_turn("abc", [1, 2], [True])
    [('a', 1, True), ('b', 2, True), ('c', 1, True)]
    """
    if _ALL:
        return list(itertools.product(many, *few))
    others = itertools.cycle(itertools.product(*few))
    return [(one, *next(others)) for one in list(many) * times]


def half_of(
    programs: Sequence[Any], graphs: Sequence[str], whole: Collection[str] = ()
) -> list[tuple[Any, str]]:
    """Return each program with every other graph, the next one with those between, and with the whole ones.

    >>> half_of(["a", "b"], ["x", "y", "z"], whole=["z"])
    [('a', 'x'), ('a', 'z'), ('b', 'y'), ('b', 'z')]
    """
    return [
        (program, graph)
        for i, program in enumerate(programs)
        for j, graph in enumerate(graphs)
        if _ALL or (i + j) % 2 == 0 or graph in whole
    ]


def some_of(cases: Iterable[Any], most: int) -> list[Any]:
    """Return so many of some cases at most, the first and the last and others at even distances between them.

    >>> some_of("abcdefg", 3)
    ['a', 'd', 'g']
    """
    every = list(cases)
    if _ALL or len(every) <= most:
        return every
    return [every[round(i * (len(every) - 1) / (most - 1))] for i in range(most)]
