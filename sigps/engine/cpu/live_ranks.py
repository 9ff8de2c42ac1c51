"""A monotone program that goes on from its last states on several ranks of CPU cores.

Rows of a partition are changed in place (`live_rows.py`), and vertices become ghosts in spare slots. Where there are
too few, or new vertices, the version's partition is laid out, and its engine is made anew; states and last records are
carried over, to other owners too, and ghosts get their records from these. Then targets of new edges pull, and the
ordinary supersteps follow.

After deletes vertices are trimmed in rounds. In each a rank trims as `kernels/cpu/live.py` does, with the records of
ghosts as they were; then ranks tell which vertices they trimmed, and whoever one of these held up is looked at.

Numbers cost no round and no edge. Where edges add to keys, these are the keys. Where keys are whole numbers, messages
are what their senders' keys are, but for a constant, and numbers are the supersteps in which vertices took their keys,
counted over all batches: whoever takes a key sends it, and whoever reads it takes it later. A sender that takes a
better key afterwards sends a better message, so that nobody who read the one before is left with its key: what holds up
a vertex took its key before. Ghosts' numbers cross before vertices are trimmed, where they are others than before. For
other programs `can_trim` says that vertices cannot be trimmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigps.engine.counters import Counters
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.live import LiveEngine
from sigps.engine.cpu.spending import Spending
from sigps.engine.cpu.trimming import ascending
from sigps.engine.exchange import Exchange
from sigps.engine.stats import StatsLog
from sigps.engine.superstep import Done, run_supersteps
from sigps.graph.versions.row_changes import distinct
from sigps.kernels.cpu.arguments import HALTED
from sigps.kernels.cpu.live import UNORDERED

__all__ = ["Carried", "EngineOnRanks", "RankedLiveEngine", "SharedSpending"]


@dataclass(frozen=True, eq=False)
class Carried:
    """What goes on of a partition's vertices.

    Attributes:
        gids: [vertices].
        arrays: [vertices] each: states, then the fields of last records, then when keys were taken.
        clock: Supersteps so far; -1 where times are not known.
    """

    gids: NDArray[np.int64]
    arrays: Arrays
    clock: int = 0


class SharedSpending:
    """`Spending` of all ranks together: every verb is collective, and has one answer.

    Args:
        exchange: The ranks.
        spending: The same on all.
    """

    def __init__(self, exchange: Exchange, spending: Spending) -> None:
        self._exchange, self._spending = exchange, spending

    @property
    def left_edges(self) -> int:
        """How many edges each rank may read before it asks again."""
        return self._spending.left_edges

    def take(self, messages: int = 0, *, edges: int = 0) -> bool:
        """Count what this rank wants to spend, with what others do; return whether that was left."""
        counts = self._exchange.gather(np.array([messages, edges])).sum(axis=0).tolist()
        return self._spending.take(counts[0], edges=counts[1])


class _LimitedSupersteps:
    """Lets the loop run supersteps that are paid for, and end before one that is not."""

    def __init__(self, engine: RankedLiveEngine, spending: SharedSpending) -> None:
        self._engine, self._spending = engine, spending
        self.is_spent = False

    def run(self, most_supersteps: int) -> Done | None:
        """Return None where the next superstep is paid for. Collective."""
        last = self._engine.last
        self.is_spent = not self._spending.take(last.sent_edges + last.active)
        return Done((), 0, 0) if self.is_spent else None


class EngineOnRanks(LiveEngine):
    """An engine that goes on on one of several ranks, as long as its partition lasts. Verbs are collective."""

    takes_found: ClassVar[bool] = False
    """Whether it takes a fixed point that another engine found."""

    def take_found(self, found: Carried) -> bool:
        """Take a fixed point that another engine found; False where `run` is to be called.

        Args:
            found: States of this rank's vertices.
        """
        return False

    @property
    def exchange(self) -> Exchange:
        """The way to the other ranks."""
        return self._exchange

    @property
    def last(self) -> Counters:
        """What the last superstep did here."""
        return self._state.last

    def _renew_fused(self) -> None:
        """Let pushes have the edges that the state has now; supersteps of several ranks are not fused."""
        self._records.__dict__.pop("_scatter", None)

    def follow(self, rows: LiveRows) -> None:
        """Take the edges of another version, with the same vertices and ghosts."""
        super().follow(rows)
        self._state.subgraph.__dict__["pushed"] = rows.outward

    def num_in_edges(self, lids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many in-edges some owned vertices have."""
        edges = self._state.pull_edges
        return (edges.stops[lids] - edges.offsets[lids]).astype(np.int64)


class RankedLiveEngine(EngineOnRanks):
    """An engine of a monotone program."""

    takes_found = True
    _clock = 0
    _are_known = True  # times

    def __init__(self, *args: Any, has_witnesses: bool) -> None:
        super().__init__(*args, has_witnesses=has_witnesses)
        state = self._state
        program, n = state.native.program, state.subgraph.num_owned
        claim = program.monotone
        self._keeps_times = (
            claim is not None and claim.column is None and program.message_dtypes[0].kind in "iu"
        )
        size = n + state.subgraph.num_ghosts if self._keeps_times else 0
        self._times = np.zeros(
            size, dtype=np.uint64
        )  # when vertices took their keys; of ghosts as it was told
        self._untold = np.zeros(size, dtype=np.uint8)  # whose time ghosts do not have

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._times.fill(0)
        self._untold[: self._state.subgraph.num_owned] = 1
        self._clock, self._are_known = 0, True

    def _finish(self, counters: Counters) -> None:
        super()._finish(counters)
        if self._keeps_times:
            self._note_time(self._state.last_senders())

    def _note_time(self, vertices: NDArray[Any]) -> None:
        """Let vertices have taken their keys now."""
        self._times[vertices], self._untold[vertices] = self._clock, 1
        self._clock += 1

    def add_ghosts(self, lids: NDArray[np.int64], ids: NDArray[np.int64], told: NDArray[np.int64]) -> None:
        """Take further ghosts with the ids that compute() sees; `told` are owned vertices that others took so."""
        kept = self._records.kept
        assert kept is not None
        self._state.subgraph.ids[lids] = ids
        self._tell(told, kept.records)
        if self._keeps_times:
            self._untold[told] = 1

    def begin_at_superstep_0(self) -> None:
        """Bring all vertices to their states of superstep 0."""
        self._run_superstep_0()

    def carried(self) -> Carried:
        """Return what goes on."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        n = state.subgraph.num_owned
        records = tuple(record[:n] for record in kept.records)
        times = (self._times[:n],) * self._keeps_times
        clock = self._clock if self._are_known else -1
        return Carried(state.subgraph.owned_gids, (*state.fields.states, *records, *times), clock)

    def carry_on(self, carried: Carried) -> None:
        """Go on from a fixed point of another version; after `begin_at_superstep_0`, whose states other vertices keep.

        Args:
            carried: Of vertices that this rank owns.
        """
        state, kept = self._state, self._records.kept
        assert kept is not None
        lids = state.subgraph.local_ids(carried.gids)
        arrays = *state.fields.states, *kept.records, *(self._times,) * self._keeps_times
        self._clock, self._are_known = max(carried.clock, 0), carried.clock >= 0
        for to, values in zip(arrays, carried.arrays, strict=True):
            to[lids] = values
        state.read.sent.fill(0)
        state.write.sent.fill(0)
        state.inbox.state.fill(0)
        state.fields.status.fill(HALTED)
        state.senders = state.active = np.empty(0, dtype=np.uint32)
        state.last, state.superstep = Counters(), 1
        self._tell(np.arange(state.subgraph.num_owned), kept.records)

    def take_found(self, found: Carried) -> bool:
        state = self._state
        lids = state.subgraph.local_ids(found.gids)
        states = tuple(np.empty_like(values) for values in state.fields.states)
        for to, values in zip(states, found.arrays, strict=True):
            to[lids] = values
        if not self._exchange.gather(np.array([self.take(states)])).all():
            return False
        kept = self._records.kept
        assert kept is not None
        self._tell(np.arange(state.subgraph.num_owned), kept.records)
        self._are_known = False
        return True

    def _number_all(self) -> None:
        """Number all vertices, in rounds: those with their keys of superstep 0, and then whom numbered ones hold up.

        A rank numbers on from its own vertices and from ghosts that were numbered in the rounds before. O(edges).
        """
        state, kept, times = self._state, self._records.kept, self._times
        assert kept is not None
        assert self._first is not None
        n, at = state.subgraph.num_owned, self._key_index
        times.fill(UNORDERED)
        listed = np.flatnonzero(state.fields.states[at] == self._first[0][at]).astype(np.uint32)
        queue, tail, number = np.empty(n, dtype=np.uint32), listed.size, 0
        queue[:tail], listed = listed, listed[:0]
        while True:
            was_left = times[:n] == UNORDERED
            reached, _ = state.loop("order_listed")(
                listed, queue, tail, np.uint64(number), state.arguments(), state.pull_edges, state.push_edges,
                state.owned, state.fields, kept.records, times, 1 << 62,
            )  # fmt: skip
            counts = self._exchange.gather(np.array([int(reached)]))
            if (counts == number).all():
                break
            number = int(counts.max())
            self._untold[:n] = was_left & (times[:n] != UNORDERED)
            ghosts = self._tell_times()
            listed, tail = distinct(self._found("find_tight", self._edges_of(ghosts))), 0
            listed = listed[times[listed] == UNORDERED]
        self._clock, self._are_known = number, True

    def _tell_times(self) -> NDArray[np.int64]:
        """Tell ghosts the times that they do not have; return the ghosts that got some."""
        self._exchange.publish(self._untold, (self._times,))
        ghosts, _ = self._exchange.collect(self._untold, (self._times,))
        self._untold.fill(0)
        return ghosts

    def can_trim(self) -> bool:
        """Tell whether vertices can be trimmed after deletes."""
        if self._keeps_times:
            return True
        owned = np.arange(self._state.subgraph.num_owned, dtype=np.uint32)
        return bool(self._exchange.gather(np.array([self._adds_to_keys and self._sent_keys(owned)])).all())

    def follow_changes(
        self, inserts: EdgeChanges, deletes: EdgeChanges, spending: SharedSpending
    ) -> StatsLog | None:
        """Go on to the next fixed point; None where it costs more than may be spent, and `run` is to be called.

        Args:
            inserts: Edges that end in this rank's vertices, by local ids; a source may be -1: no vertex or ghost here.
            deletes: Likewise; none, where it cannot trim.
            spending: What may be spent.
        """
        state = self._state
        inserted, deleted = (distinct(edges.targets.astype(np.uint32)) for edges in (inserts, deletes))
        if not spending.take(inserted.size + deleted.size):
            return None
        trimmed = np.empty(0, dtype=np.uint32)
        if self._exchange.gather(np.array([deleted.size])).any():
            found = self._trim_together(deleted, spending)
            if found is None:
                return None
            trimmed = found
        dirty = distinct(np.concatenate([trimmed, inserted]))
        incoming = state.pull_edges
        if not spending.take(edges=int((incoming.stops[dirty] - incoming.offsets[dirty]).sum())):
            return None
        stats = StatsLog([self._pull(dirty)])
        limited = _LimitedSupersteps(self, spending)
        stats.extend(run_supersteps(self, 1 << 62, self._exchange, fused=limited).stats)
        return None if limited.is_spent else stats

    def _tell(self, owned: NDArray[Any], records: Arrays) -> NDArray[np.int64]:
        """Write the records of these owned vertices to their ghosts' elements; return the ghosts that got some."""
        n, ghosts = self._state.subgraph.num_owned, self._state.subgraph.num_ghosts
        kept = self._records.kept
        assert kept is not None
        sent = np.zeros(n + ghosts, dtype=np.uint8)
        sent[owned] = 1
        self._exchange.publish(sent, kept.records)
        found, _ = self._exchange.collect(sent, records)
        return found

    def _trim_together(self, lost: NDArray[np.uint32], spending: SharedSpending) -> NDArray[np.uint32] | None:
        """Give back the states of superstep 0 to vertices that deleted edges held up, in rounds; return this rank's."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        assert self._first is not None
        n = state.subgraph.num_owned
        order = self._ordered_everywhere()
        found = [np.empty(0, dtype=np.uint32)]
        while self._exchange.gather(np.array([lost.size])).any():
            queue, waiting = np.empty(n + 1, dtype=np.uint32), np.zeros(n, dtype=np.uint8)
            queue[: lost.size], waiting[lost] = lost, 1
            trimmed, renewed = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
            count, _, read = state.loop("trim_unsupported")(
                queue, lost.size, waiting, state.arguments(), state.pull_edges, state.push_edges, state.owned,
                state.fields, kept.records, state.native.empty, *self._first, order, trimmed, renewed,
                self._has_witnesses, spending.left_edges,
            )  # fmt: skip
            if not spending.take(edges=int(read)):
                return None
            found.append(trimmed[:count].copy())
            newer = tuple(record.copy() for record in kept.records)
            ghosts = self._tell(found[-1], newer)
            held = self._edges_of(ghosts)
            if not spending.take(edges=held.sources.size):
                return None
            lost = distinct(self._found("find_tight", held))
            for to, new in zip(kept.records, newer, strict=True):
                to[ghosts] = new[ghosts]
            order[ghosts] = UNORDERED
        trimmed_here = distinct(np.concatenate(found))
        if self._keeps_times:
            self._note_time(trimmed_here)
        return trimmed_here

    def _ordered_everywhere(self) -> NDArray[np.uint64]:
        """Return the numbers of this rank's vertices and ghosts."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        if not self._keeps_times:
            n = state.subgraph.num_owned
            return ascending(np.concatenate([state.fields.states[self._key_index], kept.keys[n:]]))
        if self._are_known:
            self._tell_times()
        else:
            self._number_all()
        return self._times

    def _edges_of(self, ghosts: NDArray[np.int64]) -> EdgeChanges:
        """Return the edges from some ghosts to owned vertices."""
        edges = self._state.push_edges
        begins = edges.offsets[ghosts].astype(np.int64)
        sizes = edges.stops[ghosts].astype(np.int64) - begins
        at = np.repeat(begins - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        names = self._state.program.edge_columns
        columns = {name: column[at] for name, column in zip(names, edges.columns, strict=True)}
        return EdgeChanges(np.repeat(ghosts, sizes), edges.ends[at].astype(np.int64), columns)
