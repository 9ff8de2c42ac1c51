"""A monotone program that goes on from its last states when edges are inserted and deleted, on one rank's CPU cores.

Its fixed point does not depend on the order of messages, so a new one is found from the old: vertices that a new edge
improves pull again, and so do those that lost what their key came from, after they were given back their states of
superstep 0 (`trimming.py`; K. Vora, R. Gupta, G. Xu, "KickStarter", ASPLOS 2017). Supersteps follow until nothing
changes. So the cost of a batch is that of what it changes, the numbers apart, for which every edge is read once.

What a batch costs is counted as it is spent (`Spending`), and nothing begins for which too little is left: a step's
edges are known before it. So a run that is given up has cost what was allowed, whatever the graph, and the decision
follows from the program, the graph and the batch alone.

Rows are those that versions of a graph share: nothing is laid out.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.counters import Counters
from sigps.engine.cpu.engine import FusedSupersteps
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.spending import LimitedSupersteps, Spending
from sigps.engine.cpu.trimming import Trimming
from sigps.engine.cpu.work import edges_of
from sigps.engine.snapshot import fill_rows
from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.engine.superstep import run_supersteps
from sigps.graph.versions.row_changes import distinct
from sigps.kernels.cpu.arguments import ACTIVE, HALTED, HAS_MESSAGES, Outbox, VertexFields
from sigps.kernels.cpu.live import UNORDERED
from sigps.native.kernel import LoopFaultError

__all__ = ["LiveEngine"]


class LiveEngine(Trimming):
    """An engine of a monotone program whose states stay, and whose edges follow the versions of a graph.

    It is made, with the out-degrees of a partition no less than 1 each, as `Engine` is; `run` brings it to its first
    fixed point.

    Args:
        *args: As `Engine`'s.
        has_witnesses: Whether the program keeps states beside its key that come with it.
    """

    gives_up = grows = True
    refused = ""
    _begins_fused = False  # what superstep 0 leaves is kept
    full_cost = 0
    _begin: Arrays = ()
    _last: Arrays = ()
    _pulled: NDArray[np.int64] | None = None  # those that may have changed; None for all
    _went_on = True
    _new: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def __init__(self, *args: Any, has_witnesses: bool) -> None:
        super().__init__(*args)
        self._has_witnesses = has_witnesses

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end, or once more so."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        stats = self._run_superstep_0()
        stats.extend(self.lease(1 << 62).stats)
        if not self._last:
            self._last = tuple(values.copy() for values in state.fields.states)
        return stats

    def take(self, states: Arrays) -> bool:
        """Take a fixed point that another engine found; False where nothing goes on from it, and `run` is to be called.

        What vertices sent last follows from their keys, in superstep 0 or by a message with that key.

        Args:
            states: [num_owned] each, in the program's order.
        """
        state, kept = self._state, self._records.kept
        claim = state.native.program.monotone
        assert kept is not None
        assert claim is not None
        if self._first is None:
            self._run_superstep_0()
        assert self._first is not None
        first, records = self._first
        self._begin_anew()
        keys = states[claim.current]
        is_listed = _bits(keys) != _bits(first[claim.current])
        listed = np.flatnonzero(is_listed).astype(np.uint32)
        state.superstep, state.active = 1, None
        inbox = state.open_inbox()
        np.multiply(is_listed, HAS_MESSAGES, out=inbox.state, casting="unsafe")
        fill_rows(
            inbox.slots, slice(None), (keys, *(np.zeros(1, dtype=d) for d in state.native.slots[1:]))
        )  # read where there are messages
        scratch = VertexFields(state.fields.status.copy(), tuple(values.copy() for values in first))
        senders, active = np.empty_like(listed), np.empty_like(listed)
        counts, _ = state.loop("compute_listed")(
            listed, state.arguments(), state.owned, scratch, inbox, state.native.empty, state.write,
            (), state.aggregates.identity, senders, active,
        )  # fmt: skip
        inbox.state.fill(0)
        state.write.sent.fill(0)
        if counts[2] != listed.size:
            return False
        for to, written, at_first in zip(kept.records, state.write.records, records, strict=True):
            to[:] = at_first
            np.copyto(to[: keys.size], written[: keys.size], where=is_listed)
        for values, found in zip(state.fields.states, states, strict=True):
            values[:] = found
        state.fields.status.fill(HALTED)
        state.senders = state.active = np.empty(0, dtype=np.uint32)
        state.last = Counters()
        if not self._last:
            self._last = tuple(values.copy() for values in state.fields.states)
        return True

    def _run_superstep_0(self) -> StatsLog:
        state, kept = self._state, self._records.kept
        assert kept is not None
        if not self._begin:
            self._begin = tuple(values.copy() for values in state.fields.states)
            self._note_least(state.pull_edges.columns)
        else:
            for values, begin in zip(state.fields.states, self._begin, strict=True):
                values[:] = begin
        self._begin_anew()
        state.fields.status.fill(ACTIVE)
        state.superstep, state.senders, state.active = 0, None, None
        state.last = Counters(active=state.fields.status.size)
        stats = StatsLog(self.lease(1).stats)
        states = tuple(values.copy() for values in state.fields.states)
        self._first = states, tuple(values.copy() for values in kept.records)
        return stats

    @property
    def obstacle(self) -> str:
        """Why it cannot go on: keys must have an order."""
        return "" if self._records.kept is not None else "a parameter is NaN, so keys have no order"

    def follow(self, rows: LiveRows) -> None:
        """Take the edges of another version, with the same vertices."""
        state = self._state
        degrees = state.subgraph.out_degrees
        size = rows.outward.stops[rows.touched] - rows.outward.offsets[rows.touched]  # type: ignore[index]
        degrees[rows.touched] = np.maximum(size, 1)
        same_arenas = rows.inward.ends is state.pull_edges.ends and rows.outward.ends is state.push_edges.ends
        if same_arenas:  # their bounds are the newest version's
            return
        program = state.program
        state.subgraph = replace(state.subgraph, incoming=rows.inward, outgoing=rows.outward)
        state.owned_by_all = state.owned_by_all._replace(in_offsets=rows.inward.offsets)
        state.pull_edges = edges_of(rows.inward, program)
        same = rows.outward is rows.inward
        state.__dict__["push_edges"] = state.pull_edges if same else edges_of(rows.outward, program)
        self._renew_fused()

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """Add vertices without edges, behind all others, with their states of superstep 0. O(vertices).

        Args:
            num_owned: How many there are then.
            ids: [num_owned]: the id that compute() sees; empty where it is the local id.
        """
        state, kept = self._state, self._records.kept
        assert kept is not None
        assert self._first is not None
        old, more = state.subgraph.num_owned, num_owned - state.subgraph.num_owned
        begin = self._extend(num_owned, ids)
        kept.grow(more)
        state.write = state.native.outbox(num_owned)
        state.read = Outbox(np.zeros(num_owned, dtype=np.uint8), kept.records)
        self._records.grow(num_owned)
        self._renew_fused()
        sent = self._run_first(np.arange(old, num_owned, dtype=np.uint32))
        for to, written in zip(kept.records, state.write.records, strict=True):
            to[sent] = written[sent]
        states, records = (tuple(a[old:] for a in arrays) for arrays in (state.fields.states, kept.records))
        self._begin = _longer(self._begin, begin)
        self._first = _longer(self._first[0], states), _longer(self._first[1], records)
        self._last = _longer(self._last, states)
        if self._numbers is not None:
            self._numbers = np.concatenate([self._numbers, np.full(more, UNORDERED)])
        self._new = np.arange(old, num_owned)

    def _extend(self, num_owned: int, ids: NDArray[np.int64]) -> Arrays:
        """Make room for new vertices; return the states with which they begin."""
        state = self._state
        more = num_owned - state.subgraph.num_owned
        begin = tuple(
            np.full(more, f.default, dtype=d)
            for f, d in zip(state.program.states, state.program.state_dtypes, strict=True)
        )
        state.fields = VertexFields(
            np.concatenate([state.fields.status, np.full(more, ACTIVE, dtype=np.uint8)]),
            _longer(state.fields.states, begin),
        )
        degrees = np.concatenate(
            [state.subgraph.out_degrees, np.ones(more, state.subgraph.out_degrees.dtype)]
        )
        state.subgraph = replace(
            state.subgraph, num_vertices=num_owned, num_owned=num_owned, ids=ids, out_degrees=degrees
        )
        state.owned_by_all = state.owned_by_all._replace(ids=ids, out_degrees=degrees)
        state.__dict__.pop("inbox", None)
        return begin

    def _renew_fused(self) -> None:
        """Let supersteps that are fused or pushed have the edges and vertices that the state has now."""
        self._records.__dict__.pop("_scatter", None)
        self._fused = FusedSupersteps(self._state, self._records, None)

    def _run_first(self, vertices: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Run superstep 0 of new vertices; return those that send."""
        state = self._state
        state.senders, state.active = np.empty(0, dtype=np.uint32), None
        state.last = Counters()
        inbox = state.open_inbox()
        inbox.state.fill(0)
        senders, active = np.empty_like(vertices), np.empty_like(vertices)
        arguments = state.arguments()._replace(superstep=0)
        try:
            counts, _ = state.loop("compute_listed")(
                vertices, arguments, state.owned, state.fields, inbox, state.native.empty, state.write,
                (), state.aggregates.identity, senders, active,
            )  # fmt: skip
        except LoopFaultError as fault:
            raise state.error_of(fault, 0) from None
        sent = senders[: counts[2]]
        state.write.sent[sent] = 0
        state.active = np.empty(0, dtype=np.uint32)
        return sent

    def note(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take note of nothing: what a batch does is seen afterwards."""

    def widen(self, inserts: EdgeChanges) -> None:
        """Let what bounds the keys of pulls hold for new edges too; before anything else runs with them."""
        kept = self._records.kept
        assert kept is not None
        columns = self._columns_of(inserts)
        kept.widen(inserts.targets, columns)
        self._note_least(columns)

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Go on to the next fixed point; None where it costs more than may be spent, and `run` is to be called.

        The rows that were taken last have the changes already.
        """
        if not spending.take(inserts.sources.size + deletes.sources.size):
            return None
        trimmed = lost = np.empty(0, dtype=np.uint32)
        if deletes.sources.size:
            lost = distinct(self._found("find_tight", deletes))
        if lost.size:
            found = self._trim(lost, spending)
            if found is None:
                return None
            trimmed = found
        improved = self._found("find_improved", inserts)
        dirty = distinct(np.concatenate([trimmed, improved]))
        incoming = self._state.pull_edges
        if not spending.take(edges=int((incoming.stops[dirty] - incoming.offsets[dirty]).sum())):
            return None
        stats = StatsLog([self._pull(dirty)])
        self._pulled = distinct(np.concatenate([dirty, lost, self._renewed]))
        self._renewed = lost[:0]
        self._went_on = stats[0].messages > 0
        limited = LimitedSupersteps(self._state, self._fused, spending)
        stats.extend(run_supersteps(self, 1 << 62, self._exchange, fused=limited).stats)
        return None if limited.is_spent else stats

    def changed(self) -> NDArray[np.int64]:
        """Return the local ids of vertices whose states differ from the fixed point before, once.

        States change with the key, but in the vertices that pulled first. O(vertices), but where these sent nothing.
        """
        states = self._state.fields.states
        maybe, self._pulled = self._pulled, np.empty(0, dtype=np.int64)
        pairs = tuple(zip(states, self._last, strict=True))
        if maybe is None:
            changed = np.flatnonzero(np.any([_bits(now) != _bits(before) for now, before in pairs], axis=0))
        else:
            if self._went_on:
                at = self._key_index
                maybe = distinct(
                    np.concatenate([np.flatnonzero(_bits(states[at]) != _bits(self._last[at])), maybe])
                )
            differs = np.zeros(maybe.size, dtype=np.bool_)
            for now, before in pairs:
                differs |= _bits(now[maybe]) != _bits(before[maybe])
            changed = maybe[differs]
        if self._new.size:
            changed, self._new = distinct(np.concatenate([changed, self._new])), self._new[:0]
        if self._numbers is not None:  # a vertex that only has other witnesses still holds up what it held up
            key = self._key_index
            moved = changed[_bits(states[key][changed]) != _bits(self._last[key][changed])]
            self._numbers[moved] = UNORDERED
        for now, before in pairs:
            before[changed] = now[changed]
        return changed

    def _begin_anew(self) -> None:
        """Forget what was sent and numbered: any state may change now."""
        state, kept = self._state, self._records.kept
        assert kept is not None
        state.read.sent.fill(0)
        state.write.sent.fill(0)
        state.inbox.state.fill(0)
        kept.forget()
        self._numbers, self._pulled, self._went_on = None, None, False

    def _pull(self, vertices: NDArray[np.uint32]) -> SuperstepStats:
        """Let vertices read all their in-neighbours' last records, in a superstep of their own."""
        began, state = time.perf_counter(), self._state
        kept, superstep = self._records.kept, state.superstep
        assert kept is not None
        senders = np.empty_like(vertices)
        try:
            counts, total = state.loop("gather_better_listed")(
                vertices, state.arguments(), state.pull_edges, state.owned, state.fields, kept.records, state.write,
                state.native.empty, (), state.aggregates.identity, senders,
            )  # fmt: skip
        except LoopFaultError as fault:
            raise state.error_of(fault, superstep) from None
        counters = Counters()
        counters.add(counts, total)
        state.open_inbox()
        state.senders = senders[: counts[2]]
        self._finish(counters)
        state.active = np.empty(0, dtype=np.uint32)
        ran, messages = int(counts[0]), int(counts[3])
        return SuperstepStats(superstep, "pull", ran, messages, 0, time.perf_counter() - began, 1.0)


def _longer(arrays: Arrays, more: Arrays) -> Arrays:
    return tuple(np.concatenate(pair) for pair in zip(arrays, more, strict=True))


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(f"u{values.dtype.itemsize}")
