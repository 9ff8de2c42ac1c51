"""The tests that `scripts/test --quick` keeps, by a rule that needs no list of tests.

Every test function is kept with at least one combination of its parameters, and every value of a parameter (a
program, a graph, a way of running) with at least one of the functions of a file that take it. Of a product such
as programs x graphs x ways the rule keeps a diagonal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest

Values = frozenset[Hashable]


def covering(tests: Sequence[Values]) -> list[int]:
    """Return the indices, ascending, of tests that together have every value that one of them has.

    Each step takes the test with the most values that are not covered yet, the first among equals: O(n) a step.
    The number of tests is at most that of values; the least possible is not promised.
    """
    left: set[Hashable] = set().union(*tests)
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
    kept = {file[i] for file in files.values() for i in covering([values_of(item) for item in file])}
    return [item for item in items if item in kept]


def values_of(item: pytest.Item) -> Values:
    """Return the test function of an item, and (names, values) of each of its parameters.

    Names that are parametrised together are the columns of a table, and their values are one row.
    """
    values: set[Hashable] = {item.nodeid.split("[")[0]}
    call = getattr(item, "callspec", None)
    if call is not None:
        rows = {column: mark for mark in item.iter_markers("parametrize") for column in columns_of(mark)}
        tables = {columns_of(rows[name]) if name in rows else (name,) for name in call.params}
        values |= {(table, tuple(_same(call.params[name]) for name in table)) for table in tables}
    return frozenset(values)


def columns_of(mark: pytest.Mark) -> tuple[str, ...]:
    """Return the names that a `parametrize` gives values to."""
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _same(value: object) -> Hashable:
    """Return what is equal for equal values, of those that hash, and differs between any other two objects."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value).__name__, value
