"""The tests that `scripts/test --quick` keeps, by a rule that needs no list of tests.

Every test function is kept once: with one combination of its parameters, one row of its table. Tests marked slow and
those that draw examples (hypothesis) are left out; of tests that start mpirun, which take seconds each, one a file is
kept. What tests of all rooms run through (the vertex programs by name,
the graphs of the battery, the ways of running) is kept once in all of them together: functions are taken one after
another, each with the combination that adds the most, and with more combinations only where no function before had
some of its programs, graphs or ways. Tests of the system come first and those of apps last, where all are covered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set

import pytest
from battery import BATTERY
from equality_programs import PROGRAMS
from ways import Way
from worked_cases import CASES

SHARED = frozenset([*BATTERY, *PROGRAMS, *CASES])
"""Names of graphs and programs, which mean the same in all files; a `Way` does, too."""


def covering(tests: Sequence[Set[Hashable]], covered: Set[Hashable] = frozenset()) -> list[int]:
    """Return the indices, ascending, of tests that together have every value that one of them has.

    Each step takes the test with the most values that are not covered yet, the first among equals: O(n) a step.
    The number of tests is at most that of values; the least possible is not promised.

    Args:
        tests: The values of each test.
        covered: Values that need no test.

    Returns:
        At least one index, unless there are no tests; the one in the middle where all is covered, since lists of
        graphs begin with those of one vertex and end with the largest.
    """
    left = set().union(*tests).difference(covered)
    kept = [] if left else [len(tests) // 2] * bool(tests)
    while left:
        best = max(range(len(tests)), key=lambda i: len(tests[i] & left))
        left -= tests[best]
        kept.append(best)
    return sorted(kept)


def quick_items(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the items that `--quick` keeps, in their order; none that are slow or draw their graphs."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        is_random = hasattr(getattr(item, "obj", None), "hypothesis")
        if item.get_closest_marker("slow") is None and not is_random:
            starts_mpirun = item.get_closest_marker("mpi") is not None
            functions.setdefault(item.nodeid.split("::" if starts_mpirun else "[")[0], []).append(item)
    kept: set[pytest.Item] = set()
    covered: set[Hashable] = set()
    for _, function in sorted(functions.items(), reverse=True):
        values = [shared_values(item) for item in function]
        chosen = covering(values, covered)
        kept.update(function[i] for i in chosen)
        covered.update(*(values[i] for i in chosen))
    return [item for item in items if item in kept]


def shared_values(item: pytest.Item) -> frozenset[Hashable]:
    """Return the programs and graphs, by name, and the ways that are parameters of a test."""
    call = getattr(item, "callspec", None)
    values = [] if call is None else call.params.values()
    return frozenset(v for v in values if isinstance(v, Way) or (isinstance(v, str) and v in SHARED))
