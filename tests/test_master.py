from __future__ import annotations

import pytest

from sigps.engine.stats import SuperstepStats
from sigps.system.master import UNLIMITED, Master, lease_size


def stats(first: int, count: int, seconds: float = 0.01) -> list[SuperstepStats]:
    return [SuperstepStats(first + i, "pull", 5, 5, 0, seconds, 1.0) for i in range(count)]


@pytest.mark.parametrize(
    ("left", "wants_progress", "last_seconds", "size"),
    [
        (None, False, None, UNLIMITED),
        (7, False, None, 7),
        (7, False, 100.0, 7),
        (None, True, None, 1),  # nothing is known of the speed yet
        (None, True, 0.05, 5),
        (3, True, 0.05, 3),
        (None, True, 10.0, 1),
        (100, True, 0.0, 100),
    ],
)
def test_the_size_of_a_lease(left: int | None, wants_progress: bool, last_seconds: float, size: int) -> None:
    assert lease_size(left, wants_progress, last_seconds) == size


def test_a_run_to_its_end_is_one_lease() -> None:
    master = Master([{"cores": 2}, {"cores": 4}], None, None)
    assert master.capacities == [2.0, 4.0]
    assert master.next_order() == {"verb": "lease", "supersteps": UNLIMITED}
    master.hear(True, stats(0, 12))
    assert master.next_order() == {"verb": "stop", "reason": "converged", "supersteps": 12}


def test_a_run_ends_at_max_supersteps() -> None:
    master = Master([{"cores": 1}], 5, None)
    assert master.next_order() == {"verb": "lease", "supersteps": 5}
    master.hear(False, stats(0, 5))
    assert master.next_order() == {"verb": "stop", "reason": "max_supersteps", "supersteps": 5}
    assert master.next_order()["verb"] == "stop"


def test_a_run_that_ends_in_its_last_superstep_has_converged() -> None:
    master = Master([{"cores": 1}], 5, None)
    master.hear(True, stats(0, 5))
    assert master.next_order()["reason"] == "converged"


def test_progress_divides_the_run_into_leases() -> None:
    told: list[int] = []
    master = Master([{"cores": 1}], 10, lambda so_far: told.append(len(so_far)))
    assert master.next_order() == {"verb": "lease", "supersteps": 1}
    master.hear(False, stats(0, 1, seconds=0.05))
    assert master.next_order() == {"verb": "lease", "supersteps": 5}
    master.hear(False, stats(1, 5, seconds=0.05))
    assert master.next_order() == {"verb": "lease", "supersteps": 4}
    master.hear(False, stats(6, 4))
    assert master.next_order()["reason"] == "max_supersteps"
    assert told == [1, 6, 10]
    assert [s.superstep for s in master.stats] == list(range(10))
