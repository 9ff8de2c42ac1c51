"""A first-arrival program that goes on when edges are inserted and deleted, on one rank's CPU cores.

Each vertex acts in one superstep, its level, and sends in that one alone (`compiler/proofs/arrival.py`). After an
update levels are settled in ascending order. Those that look again in superstep s, and pull from vertices of level
s - 1, are

* targets of inserted edges, and of deleted ones along which a message came, from a source of level s - 1;
* neighbours of a vertex that sends in superstep s - 1 and did not, or does no longer and did;
* vertices that lost their level, where an in-neighbour has level s - 1: the next one is looked for where one fails.

Others have the messages that they had. All states are those of a full run, since compute() runs on the very messages.
"""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.counters import Counters
from sigps.engine.cpu.following import Arrays, EdgeChanges
from sigps.engine.cpu.live import LiveEngine
from sigps.engine.cpu.spending import Spending
from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.graph.versions.row_changes import distinct
from sigps.kernels.cpu.arguments import ACTIVE
from sigps.kernels.cpu.arrivals import ACTS_AGAIN, ACTS_NOW, LOST, WAITS
from sigps.native.kernel import LoopFaultError

if TYPE_CHECKING:
    from sigps.engine.cpu.live_ranks import SharedSpending

__all__ = ["ArrivalEngine", "Calendar"]

_STEP = 3000
"""Messages that take as long as what the interpreter does in a superstep: 0.15 ms."""


class ArrivalEngine(LiveEngine):
    """An engine of a first-arrival program whose states stay, and whose edges follow the versions of a graph.

    Args:
        *args: As `Engine`'s.
        level: Position among the states of the superstep in which a vertex acts.
    """

    def __init__(self, *args: Any, level: int) -> None:
        super().__init__(*args, has_witnesses=False)
        self._level = level

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end, or once more so."""
        self._stand_before_superstep_0()
        stats = StatsLog(self.lease(1 << 62).stats)
        if not self._last:
            self._last = tuple(values.copy() for values in self._state.fields.states)
        return stats

    def _stand_before_superstep_0(self) -> None:
        state = self._state
        if not self._begin:
            self._begin = tuple(values.copy() for values in state.fields.states)
        for values, begin in zip(state.fields.states, self._begin, strict=True):
            values[:] = begin
        state.read.sent.fill(0)
        state.write.sent.fill(0)
        state.inbox.state.fill(0)
        state.fields.status.fill(ACTIVE)
        state.superstep, state.senders, state.active = 0, None, None
        state.last = Counters(active=state.fields.status.size)
        self._pulled, self._went_on = None, False

    def take(self, states: Arrays) -> bool:
        """Take nothing: no other engine finds such a fixed point sooner."""
        return False

    @property
    def obstacle(self) -> str:
        """Nothing: it can always go on."""
        return ""

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """Add vertices without edges, behind all others, with their states of superstep 0. O(vertices)."""
        state = self._state
        old = state.subgraph.num_owned
        begin = self._extend(num_owned, ids)
        state.write, state.read = state.native.outbox(num_owned), state.native.outbox(num_owned)
        self._records.grow(num_owned)
        self._begin = _joined(self._begin, begin)
        self._renew_fused()
        self._run_first(np.arange(old, num_owned, dtype=np.uint32))
        self._last = _joined(self._last, tuple(values[old:] for values in state.fields.states))
        self._new = np.arange(old, num_owned)

    def widen(self, inserts: EdgeChanges) -> None:
        """Take new edges: no bound depends on them."""

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Settle the levels anew; None where that costs more than may be spent, and `run` is to be called."""
        if not spending.take(inserts.sources.size + deletes.sources.size):
            return None
        return self._settle_all(self._begun(inserts, deletes), spending)

    def _begun(self, inserts: EdgeChanges, deletes: EdgeChanges) -> Calendar:
        """Return who looks again because of edges; a source below 0 of a deleted one may have any level."""
        levels, calendar = self._levels, Calendar()
        sent = levels[inserts.sources]
        calendar.add(sent[sent >= 0] + 1, inserts.targets[sent >= 0])
        own = levels[deletes.targets]
        came = (own > 0) & ((deletes.sources < 0) | (levels[deletes.sources] == own - 1))
        calendar.add(own[came], deletes.targets[came])
        return calendar

    def _settle_all(self, calendar: Calendar, spending: Spending | SharedSpending) -> StatsLog | None:
        """Settle levels in ascending order, from who looks again on; None where too little is left."""
        levels, stats = self._levels, StatsLog()
        seen: list[NDArray[np.int64]] = []
        while (now := self._next_superstep(calendar)) >= 0:
            began = time.perf_counter()
            listed, silenced = calendar.take(now)
            before = levels[listed]
            listed = listed[(before < 0) | (before >= now)]
            before = levels[listed]
            if not spending.take(_STEP, edges=self._num_edges(listed)):
                return None
            outcomes = self._settle(listed, now)
            seen.append(listed)
            acts = outcomes == ACTS_NOW
            is_earlier = acts & (before >= 0)
            calendar.silence(before[is_earlier], listed[is_earlier])
            lost = listed[(outcomes == LOST) | (outcomes == WAITS)]
            changed = listed[acts | (outcomes == LOST)]
            ghosts, num_bytes = self._tell_levels(changed, now, calendar)
            changed = np.concatenate([changed, silenced, ghosts])
            num_sent = self._num_out_edges(changed)
            if not spending.take(edges=num_sent + self._num_edges(lost)):
                return None
            receivers = self._receivers(changed, now)
            calendar.add(np.full(receivers.size, now + 1), receivers)
            later = np.empty(lost.size, dtype=np.int64)
            self._state.loop("next_arrivals")(lost, self._state.pull_edges, levels, now, later)
            calendar.add(later[later >= 0] + 1, lost[later >= 0])
            ran = int(np.count_nonzero(acts | (outcomes == ACTS_AGAIN)))
            seconds = time.perf_counter() - began
            stats.extend([SuperstepStats(now, "pull", ran, num_sent, num_bytes, seconds, 1.0)])
        self._pulled = distinct(np.concatenate([np.empty(0, dtype=np.int64), *seen]))
        self._went_on = False
        return stats

    def _next_superstep(self, calendar: Calendar) -> int:
        """Return the first superstep that something is in; -1 where there is none."""
        return calendar.first

    def _tell_levels(
        self, changed: NDArray[np.int64], superstep: int, calendar: Calendar
    ) -> tuple[NDArray[np.int64], int]:
        """Return the ghosts that send in this superstep and did not, or no longer do; and the bytes that it took."""
        return changed[:0], 0

    @property
    def _key_index(self) -> int:
        return self._level

    @property
    def _levels(self) -> NDArray[np.int64]:
        return self._state.fields.states[self._level]

    def _num_edges(self, vertices: NDArray[np.int64]) -> int:
        edges = self._state.pull_edges
        return int((edges.stops[vertices] - edges.offsets[vertices]).sum())

    def _num_out_edges(self, vertices: NDArray[np.int64]) -> int:
        edges = self._state.push_edges
        return int((edges.stops[vertices] - edges.offsets[vertices]).sum())

    def _settle(self, vertices: NDArray[np.int64], superstep: int) -> NDArray[np.uint8]:
        state, outcomes = self._state, np.empty(vertices.size, dtype=np.uint8)
        arguments = state.arguments()._replace(superstep=superstep)
        try:
            state.loop("settle_listed")(
                vertices, arguments, state.pull_edges, state.owned, state.fields, self._begin, state.read.records,
                self._levels, state.native.empty, outcomes,
            )  # fmt: skip
        except LoopFaultError as fault:
            raise state.error_of(fault, superstep) from None
        return outcomes

    def _receivers(self, senders: NDArray[np.int64], now: int) -> NDArray[np.int64]:
        state = self._state
        n = state.subgraph.num_owned
        if self._marks.size != n:
            self._marks = np.zeros(n, dtype=np.uint8)
        found = np.empty(min(n, self._num_out_edges(senders)), dtype=np.int64)
        count = state.loop("list_receivers")(senders, state.push_edges, self._levels, now, self._marks, found)
        found = found[:count]
        self._marks[found] = 0
        return found

    _marks: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)


class Calendar:
    """Which vertices look again in which superstep, and which no longer send in it."""

    def __init__(self) -> None:
        self._supersteps: list[int] = []
        self._looking: dict[int, list[NDArray[np.int64]]] = {}
        self._silenced: dict[int, list[NDArray[np.int64]]] = {}

    @property
    def first(self) -> int:
        """The first superstep that something is in; -1 where there is none."""
        return self._supersteps[0] if self._supersteps else -1

    def add(self, supersteps: NDArray[np.int64], vertices: NDArray[np.int64]) -> None:
        """Let vertices look again, each in its superstep."""
        self._enter(self._looking, supersteps, vertices)

    def silence(self, supersteps: NDArray[np.int64], vertices: NDArray[np.int64]) -> None:
        """Note that vertices no longer send, each in its superstep."""
        self._enter(self._silenced, supersteps, vertices)

    def take(self, now: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take out and return who looks again in a superstep, no later than the first, each once; and who is silent."""
        if self.first == now:
            heapq.heappop(self._supersteps)
        none = [np.empty(0, dtype=np.int64)]
        looking, silenced = (np.concatenate(d.pop(now, none)) for d in (self._looking, self._silenced))
        return distinct(looking), silenced

    def _enter(
        self,
        entries: dict[int, list[NDArray[np.int64]]],
        supersteps: NDArray[np.int64],
        vertices: NDArray[np.int64],
    ) -> None:
        for superstep in distinct(supersteps).tolist():
            if superstep not in self._looking and superstep not in self._silenced:
                heapq.heappush(self._supersteps, superstep)
            entries.setdefault(superstep, []).append(vertices[supersteps == superstep])


def _joined(arrays: Arrays, more: Any) -> Arrays:
    return tuple(np.concatenate(pair) for pair in zip(arrays, more, strict=True))
