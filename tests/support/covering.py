"""The tests that `scripts/test --quick` keeps, by a rule that needs no list of tests.

A covering set of each test file: every test function once at least, and every value of its parameters. What many
files run through, the vertex programs, the graphs of the battery and the ways of running, is covered once in all
files together: a program x graph x way product of one file leaves a diagonal, and the next file little of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import pytest
from battery import BATTERY
from equality_programs import PROGRAMS
from ways import Way
from worked_cases import CASES

Values = frozenset[Hashable]

SHARED = frozenset([*BATTERY, *PROGRAMS, *CASES])
"""Names that mean the same in all files; a `Way` does, too."""


def covering(tests: Sequence[Values], covered: Iterable[Hashable] = ()) -> list[int]:
    """Return the indices, ascending, of tests that together have every value that one of them has.

    Each step takes the test with the most values that are not covered yet, the first among equals: O(n) a step.
    The number of tests is at most that of values; the least possible is not promised.

    Args:
        tests: The values of each test.
        covered: Values that need no test.
    """
    left = set().union(*tests).difference(covered)
    kept = []
    while left:
        best = max(range(len(tests)), key=lambda i: len(tests[i] & left))
        left -= tests[best]
        kept.append(best)
    return sorted(kept)


def quick_items(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items that `--quick` keeps, in their order: none marked slow, a covering set of each file."""
    files: dict[object, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None:
            files.setdefault(item.path, []).append(item)
    kept: set[pytest.Item] = set()
    covered: set[Hashable] = set()
    for file in files.values():
        values = [values_of(item) for item in file]
        chosen = covering(values, covered)
        kept.update(file[i] for i in chosen)
        covered.update(*(values[i] for i in chosen))
    return [item for item in items if item in kept]


def values_of(item: pytest.Item) -> Values:
    """Return what running an item covers: its test function, and the values of its parameters.

    Names that are parametrised together are the columns of a table, and their values are one row of this file.
    """
    call = getattr(item, "callspec", None)
    function = item.nodeid.split("[")[0]
    if call is None:
        return frozenset([function])
    rows = {column: mark for mark in item.iter_markers("parametrize") for column in columns_of(mark)}
    tables = {columns_of(rows[name]) if name in rows else (name,) for name in call.params}
    return frozenset([function, *(_row(str(item.path), table, call.params) for table in tables)])


def columns_of(mark: pytest.Mark) -> tuple[str, ...]:
    """Return the names that a `parametrize` gives values to."""
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _row(file: str, table: tuple[str, ...], params: dict[str, object]) -> Hashable:
    values = tuple(_same(params[name]) for name in table)
    only = params[table[0]]
    is_shared = len(table) == 1 and (isinstance(only, Way) or (isinstance(only, str) and only in SHARED))
    return values if is_shared else (file, table, values)


def _same(value: object) -> Hashable:
    """Return what is equal for equal values, of those that hash, and differs between any other two objects."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value).__name__, value
