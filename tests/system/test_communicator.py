from __future__ import annotations

from typing import Any

import pytest
from thread_group import ThreadGroup, run_ranks

from sigps.group import Alone
from sigps.system.communicator import Communicator


@pytest.mark.parametrize("size", [1, 3])
def test_the_masters_order_reaches_everyone(size: int) -> None:
    def take(group: ThreadGroup) -> dict[str, Any]:
        communicator = Communicator(group)
        assert communicator.is_master == (group.rank == 0)
        return communicator.order({"verb": "lease", "supersteps": 1 << 62} if group.rank == 0 else None)

    assert run_ranks(size, take) == [{"verb": "lease", "supersteps": 1 << 62}] * size


def test_every_report_reaches_everyone() -> None:
    def give(group: ThreadGroup) -> list[dict[str, Any]]:
        return Communicator(group).report({"cores": group.rank + 1})

    assert run_ranks(3, give) == [[{"cores": 1}, {"cores": 2}, {"cores": 3}]] * 3


def test_one_process_is_its_own_master() -> None:
    communicator = Communicator(Alone())
    assert communicator.is_master
    assert communicator.report({"cores": 1}) == [{"cores": 1}]
