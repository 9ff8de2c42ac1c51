"""Where ranks meet within launches: who timed out once meets nobody ever after. Kernels' text, run on the host."""

from __future__ import annotations

import numpy as np
import pytest
from host_kernels import host_kernels

from sigps.engine.gpu.following import live_macros
from sigps.kernels.cuda.abi import structure

LIVE, MEETINGS, ORDERS = (structure(name).dtype for name in ("Live", "Meetings", "Orders"))
HALVES = structure("RankFacts").dtype.itemsize // 4


class Rank:
    """Rank 0 of two, and the memory in which both tell it."""

    def __init__(self, seconds: float) -> None:
        self.told = np.zeros((2, 2, HALVES), np.uint64)  # by turns
        self._elsewhere = np.zeros((2, 2, HALVES), np.uint64)
        self.meetings, self._orders = np.zeros(1, MEETINGS), np.zeros(1, ORDERS)
        self.meetings["there"][0, :2] = self.told.ctypes.data, self._elsewhere.ctypes.data
        self.meetings["timeout"] = int(seconds * 1e9)
        self._live = np.zeros((), LIVE)
        self._live["num_ranks"] = 2
        self._live["meetings"], self._live["orders"] = self.meetings.ctypes.data, self._orders.ctypes.data
        macros = live_macros("int64", "uint8", True, False, False, 0)
        self._kernel = host_kernels("live_ranks", macros, meet=True)["number_among_ranks"]

    def number(self) -> tuple[int, int]:
        """Give numbers to no vertices; return how many meetings there were so far, and who was lost in the last."""
        self._kernel.launch(1, 256, (self._live,), cooperative=True)
        return int(self.meetings["number"][0]), int(self.meetings["everywhere"]["lost"][0])

    def let_the_other_come_to(self, *meetings: int) -> None:
        """Let rank 1 tell what it tells in these meetings: that it has nothing."""
        for meeting in meetings:
            self.told[meeting & 1, 1] = np.uint64(meeting + 1 << 32)


@pytest.mark.parametrize("late", [(0,), (0, 1), (1,)])
def test_who_comes_late_does_not_take_another_meeting_for_the_next(late: tuple[int, ...]) -> None:
    rank = Rank(seconds=0.05)
    assert rank.number() == (1, 2)
    rank.let_the_other_come_to(*late)
    for _ in range(2):
        assert rank.number() == (1, 2)
    assert not (rank.told[:, 0] >> np.uint64(32) == 2).any()  # nor has it told anything more
