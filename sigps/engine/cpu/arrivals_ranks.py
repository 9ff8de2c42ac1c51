"""A first-arrival program that goes on on several ranks of CPU cores.

Levels are settled as on one rank (`arrivals.py`), in the supersteps that any rank has something in. Each rank keeps the
levels of its ghosts too. In a superstep ranks tell which levels they changed; to whoever reads a ghost such a change is
what it is on one rank: the ghost sends in that superstep and did not, or no longer does.

Where rows are changed in place they are not in the order of ids (`live_rows.py`), so full runs read all of them: the
program given must not stop at the first sender.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.arrivals import ArrivalEngine, Calendar
from sigps.engine.cpu.following import EdgeChanges
from sigps.engine.cpu.live_ranks import Carried, EngineOnRanks, SharedSpending
from sigps.engine.stats import StatsLog, added_up

__all__ = ["RankedArrivalEngine"]


class RankedArrivalEngine(EngineOnRanks, ArrivalEngine):
    """An engine of a first-arrival program; verbs are those of `RankedLiveEngine`."""

    def __init__(self, *args: Any, level: int) -> None:
        super().__init__(*args, level=level)
        subgraph = self._state.subgraph
        num_records = subgraph.num_owned + subgraph.num_ghosts
        self._known = np.full(num_records, -1)  # levels, of ghosts too; those of spare slots stay -1
        self._told = np.full(num_records, -1)  # where levels of ghosts arrive
        self._tells = np.zeros(num_records, dtype=np.uint8)  # zeros between exchanges

    def run(self) -> StatsLog:
        stats = super().run()
        self._learn()
        return stats

    def add_ghosts(self, lids: NDArray[np.int64], ids: NDArray[np.int64], told: NDArray[np.int64]) -> None:
        """See `RankedLiveEngine`."""
        self._state.subgraph.ids[lids] = ids
        ghosts, _ = self._exchanged(told)
        self._known[ghosts] = self._told[ghosts]

    def begin_at_superstep_0(self) -> None:
        """See `RankedLiveEngine`."""
        self._stand_before_superstep_0()
        self.lease(1)

    def carried(self) -> Carried:
        """See `RankedLiveEngine`."""
        return Carried(self._state.subgraph.owned_gids, self._state.fields.states)

    def carry_on(self, carried: Carried) -> None:
        """See `RankedLiveEngine`."""
        lids = self._state.subgraph.local_ids(carried.gids)
        for to, values in zip(self._state.fields.states, carried.arrays, strict=True):
            to[lids] = values
        self._learn()

    def can_trim(self) -> bool:
        """See `RankedLiveEngine`: levels are settled anew after deletes as well."""
        return True

    def follow_changes(
        self, inserts: EdgeChanges, deletes: EdgeChanges, spending: SharedSpending
    ) -> StatsLog | None:
        """See `RankedLiveEngine`."""
        if not spending.take(inserts.sources.size + deletes.sources.size):
            return None
        stats = self._settle_all(self._begun(inserts, deletes), spending)
        return None if stats is None else self._everywhere(stats)

    @property
    def _levels(self) -> NDArray[np.int64]:
        return self._known

    def _settle(self, vertices: NDArray[np.int64], superstep: int) -> NDArray[np.uint8]:
        outcomes = super()._settle(vertices, superstep)
        self._known[vertices] = self._state.fields.states[self._level][vertices]
        return outcomes

    def _next_superstep(self, calendar: Calendar) -> int:
        firsts = self._exchange.gather(np.array([calendar.first]))
        firsts = firsts[firsts >= 0]
        return int(firsts.min()) if firsts.size else -1

    def _tell_levels(
        self, changed: NDArray[np.int64], superstep: int, calendar: Calendar
    ) -> tuple[NDArray[np.int64], int]:
        ghosts, num_bytes = self._exchanged(changed)
        before, now = self._known[ghosts], self._told[ghosts]
        self._known[ghosts] = now
        is_earlier = (before >= 0) & (now == superstep)
        calendar.silence(before[is_earlier], ghosts[is_earlier])
        return ghosts, num_bytes

    def _learn(self) -> None:
        """Bring here the levels of all ghosts."""
        n = self._state.subgraph.num_owned
        self._known[:n] = self._state.fields.states[self._level]
        ghosts, _ = self._exchanged(np.arange(n))
        self._known[ghosts] = self._told[ghosts]

    def _exchanged(self, owned: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """Tell the levels of owned vertices; return the ghosts whose levels arrived, and the bytes that left."""
        self._tells[owned] = 1
        self._exchange.publish(self._tells, (self._known,))
        ghosts, num_bytes = self._exchange.collect(self._tells, (self._told,))
        self._tells[owned] = 0
        self._tells[ghosts] = 0
        return ghosts, num_bytes

    def _everywhere(self, stats: StatsLog) -> StatsLog:
        """Return what all ranks did: they ran the same supersteps."""
        return added_up(stats, self._exchange.gather)
