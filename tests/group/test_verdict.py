"""What counts as a fault, as a table of what the watchdogs of three ranks know."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sigps.group.fault import Fault
from sigps.group.verdict import Report, find_fault

HOSTS = ["a", "b", "c"]


def verdict(
    *reports: Report, silences: Any = None, closed: Any = (), silent: float = 10.0, superstep: float = 60.0
) -> str:
    return str(find_fault(dict(enumerate(reports)), silences or {}, closed, HOSTS, silent, superstep) or "")


def at(superstep: int = 5, **values: Any) -> Report:
    return Report(superstep=superstep, **values)


DIED = {"end": "died"}
LEFT = {"end": "ended", "ended": 0.1}
FAILED = {"end": "failed", "failed": 0.1, "ended": 0.1}
WAITED_FOR = ", and the others wait for it"


@pytest.mark.parametrize(
    ("reports", "options", "text"),
    [
        ((at(), at(), at()), {}, ""),
        ((at(waiting=999.0), at(computing=999.0), at(waiting=999.0)), {"superstep": math.inf}, ""),
        # The first whose process ended, once it is known how.
        ((at(**DIED), at(4, **DIED), at(**DIED)), {"closed": [(1, 0.0), (0, 0.0), (2, 0.0)]}, "died {}"),
        ((at(**DIED), at(), at()), {"closed": [(1, 0.1), (0, 0.1)]}, ""),
        ((at(**DIED), at(), at()), {"closed": [(1, 6.0), (0, 6.0)]}, "died {}"),
        ((at(), at(-1, phase="loading it", **DIED), at()), {"closed": [(1, 0.0)]}, "died while loading it"),
        ((at(), at(-1, **DIED), at()), {"closed": [(1, 0.0)]}, "died outside of a run"),
        ((at(), at(end="lost its launcher"), at()), {"closed": [(1, 0.0)]}, "lost its launcher {}"),
        ((at(**LEFT), at(**DIED), at()), {"closed": [(0, 3.0), (1, 0.0)]}, "died {}"),
        ((at(**LEFT), at(**LEFT), at(**LEFT)), {"closed": [(0, 99.0), (1, 99.0), (2, 99.0)]}, ""),
        # After a failure that a rank reported itself the launcher ends the others.
        ((at(**DIED), at(**FAILED), at(**DIED)), {"closed": [(0, 0.0), (1, 0.0), (2, 0.0)]}, ""),
        ((at(**DIED), at(failed=0.1, ended=0.1), at()), {"closed": [(0, 0.0)]}, ""),
        # Stopped, unless all are; silent.
        ((at(), at(stopped=10.1), at(stopped=3.0)), {}, "is stopped {}: for 10.1 s"),
        ((at(), at(stopped=9.9), at()), {}, ""),
        ((at(stopped=99.0), at(stopped=99.0), at(stopped=99.0)), {}, ""),
        ((at(stopped=99.0), at(stopped=99.0), at(**LEFT)), {}, ""),
        ((at(), at(), at()), {"silences": {0: 2.0, 1: 10.5}}, "is silent {}: no heartbeat for 10.5 s"),
        # Gone, where another waits.
        ((at(waiting=10.1), at(failed=12.0), at()), {}, "failed {}: 12.0 s ago" + WAITED_FOR),
        ((at(waiting=9.0), at(failed=12.0), at()), {}, ""),
        ((at(waiting=11.0), at(**LEFT), at()), {"closed": [(1, 10.5)]}, "ended {}: 10.5 s ago" + WAITED_FOR),
        ((at(waiting=11.0), at(ended=11.5), at()), {}, "ended {}: 11.5 s ago" + WAITED_FOR),
        ((at(), at(**LEFT), at()), {"closed": [(1, 99.0)]}, ""),
        # Computing for too long, in supersteps alone.
        ((at(waiting=70.0), at(4, computing=61.0), at()), {"silent": 999.0}, "hangs {}: it has computed for 61.0 s"),
        ((at(), at(-1, phase="loading it", computing=61.0), at()), {}, ""),
    ],
)  # fmt: skip
def test_what_counts_as_a_fault(reports: tuple[Report, ...], options: dict[str, Any], text: str) -> None:
    assert verdict(*reports, **options) == (text and f"rank 1 on host b {text.format('in superstep 5')}")


def test_a_fault_says_from_where_to_go_on() -> None:
    fault = Fault(0, "a", "in superstep 5", "died")
    says = "No log was written yet; `checkpoint: {dir: log, every: 10}` writes one every 10 supersteps."
    assert fault.describe(None) == f"{fault}. {says}"
    assert fault.describe("log/40") == f"{fault}. The last log is log/40: continue with --resume"
