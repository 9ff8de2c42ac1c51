from __future__ import annotations

import pytest

from sigps.engine.stats import SuperstepStats
from sigps.system.checkpoint.state_log import Checkpoint
from sigps.system.master import UNLIMITED, Master, capacity_of, lease_size


def stats(first: int, count: int, seconds: float = 0.01) -> list[SuperstepStats]:
    return [SuperstepStats(first + i, "pull", 5, 5, 0, seconds, 1.0) for i in range(count)]


@pytest.mark.parametrize(
    ("left", "pause", "last_seconds", "size"),
    [
        (UNLIMITED, None, None, UNLIMITED),
        (7, None, None, 7),
        (7, None, 100.0, 7),
        (UNLIMITED, 0.25, None, 1),  # nothing is known of the speed yet
        (UNLIMITED, 0.25, 0.05, 5),
        (3, 0.25, 0.05, 3),
        (UNLIMITED, 0.25, 10.0, 1),
        (UNLIMITED, 30.0, 10.0, 3),
        (100, 0.25, 0.0, 100),
        (100, 0.0, 0.1, 1),
    ],
)
def test_the_size_of_a_lease(left: int, pause: float | None, last_seconds: float, size: int) -> None:
    assert lease_size(left, pause, last_seconds) == size


def test_a_run_to_its_end_is_one_lease() -> None:
    master = Master(None, None)
    assert master.next_order() == {"verb": "lease", "supersteps": UNLIMITED}
    master.record(True, stats(0, 12))
    assert master.next_order() == {"verb": "stop", "reason": "converged", "supersteps": 12}


def test_a_share_follows_cores_or_the_memory_of_a_gpu() -> None:
    assert capacity_of({"device": "cpu", "cores": 4}) == 4.0
    assert capacity_of({"device": "cuda", "cores": 4, "gigabytes_per_second": 4800.0}) == 480.0


def test_a_run_ends_at_max_supersteps() -> None:
    master = Master(5, None)
    assert master.next_order() == {"verb": "lease", "supersteps": 5}
    master.record(False, stats(0, 5))
    assert master.next_order() == {"verb": "stop", "reason": "max_supersteps", "supersteps": 5}
    assert master.next_order()["verb"] == "stop"


def test_a_run_that_ends_in_its_last_superstep_has_converged() -> None:
    master = Master(5, None)
    master.record(True, stats(0, 5))
    assert master.next_order()["reason"] == "converged"


def test_progress_divides_the_run_into_leases() -> None:
    reported: list[int] = []
    master = Master(10, lambda so_far: reported.append(len(so_far)))
    assert master.next_order() == {"verb": "lease", "supersteps": 1}
    master.record(False, stats(0, 1, seconds=0.05))
    assert master.next_order() == {"verb": "lease", "supersteps": 2}
    master.record(False, stats(1, 2, seconds=0.05))
    assert master.next_order() == {"verb": "lease", "supersteps": 4}
    master.record(False, stats(3, 4, seconds=0.05))
    assert master.next_order() == {"verb": "lease", "supersteps": 3}
    master.record(False, stats(7, 3))
    assert master.next_order()["reason"] == "max_supersteps"
    assert reported == [1, 3, 7, 10]
    assert [s.superstep for s in master.stats] == list(range(10))


class Clock:
    """Seconds that pass when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def orders(master: Master, seconds: float = 0.01, count: int = 12) -> list[str]:
    """Follow a master for a while: `L5` is a lease of five supersteps, S a save."""
    orders = []
    for _ in range(count):
        order = master.next_order()
        orders.append({"lease": f"L{order.get('supersteps')}", "save": "S", "stop": "end"}[order["verb"]])
        if order["verb"] == "stop":
            break
        if order["verb"] == "lease":
            master._clock.now += seconds * order["supersteps"]  # type: ignore[attr-defined]
            master.record(False, stats(len(master.stats), order["supersteps"], seconds))
    return orders


def test_the_state_is_saved_every_so_many_supersteps() -> None:
    master = Master(12, None, Checkpoint("log", every=5), clock=Clock())
    assert orders(master) == ["L5", "S", "L5", "S", "L2", "end"]
    master = Master(5, None, Checkpoint("log", every=5), clock=Clock())
    assert orders(master) == ["L5", "S", "end"]  # so that a run can be made longer


def test_the_state_is_saved_every_so_many_seconds() -> None:
    master = Master(12, None, Checkpoint("log", seconds=4.0), clock=Clock())
    assert orders(master, seconds=1.0) == ["L1", "L2", "L1", "S", "L2", "L2", "S", "L4", "S", "end"]


def test_the_state_is_saved_by_whichever_comes_first() -> None:
    master = Master(7, None, Checkpoint("log", every=5, seconds=3.0), clock=Clock())
    assert orders(master, seconds=1.0) == ["L1", "L2", "S", "L2", "S", "L2", "end"]


def test_a_cheap_superstep_does_not_buy_a_lease_without_end() -> None:
    master = Master(None, None, Checkpoint("log", seconds=300.0), clock=Clock())
    sizes = []
    for seconds in (0.0002, 0.0002, 50.0, 50.0, 50.0):
        order = master.next_order()
        sizes.append(order.get("supersteps", "save"))
        if order["verb"] == "lease":
            master._clock.now += seconds * order["supersteps"]  # type: ignore[attr-defined]
            master.record(False, stats(len(master.stats), order["supersteps"], seconds))
    assert sizes == [1, 2, 4, 2, "save"]


def test_a_run_that_goes_on_counts_from_its_log() -> None:
    master = Master(
        12,
        None,
        Checkpoint("log", every=5),
        stats=stats(0, 5),
        clock=Clock(),
    )
    assert orders(master) == ["L5", "S", "L2", "end"]
    assert len(master.stats) == 12
