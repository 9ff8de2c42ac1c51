"""A program in rounds that goes on when edges are inserted and deleted, on one rank's CPU cores.

On several ranks it does with what `rounds_ranks.py` adds.

All vertices run in each superstep (`compiler/proofs/rounds.py`). States and records of every superstep are kept; after
an update a superstep runs those again

* whose rows the batch touched, in every superstep, or that are new;
* whose state after the superstep before is another one;
* that have an in-neighbour whose record of the superstep before is another one.

All others do what they did. (Memos of iterations that are refined: M. Mariappan, K. Vora, "GraphBolt: Dependency-Driven
Synchronous Processing of Streaming Graphs", EuroSys 2019; here compute() itself runs again, so no operator is written.)
From the superstep on in which these read a large part of the edges all vertices run, as in a full run: so a batch costs
no more than one, whatever it changes.

What is kept takes (states + record) * supersteps bytes a vertex: less where a state is the record, or never changes. A
run that would keep more than a quarter of the memory that is free is not followed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.cpu.rows import rows
from sigps.compiler.program import Consumption
from sigps.compiler.proofs.rounds import Rounds
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.compute_errors import error_in_loop
from sigps.engine.cpu.direct_messages import new_table
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.measures import LiveMeasures, Measures
from sigps.engine.cpu.run_again import differ, is_large
from sigps.engine.cpu.spending import Spending
from sigps.engine.cpu.work import edges_of, split_list
from sigps.engine.direction import PULL_GAIN
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.graph.versions.row_changes import distinct
from sigps.host_memory import available_memory
from sigps.kernels.cpu.arguments import KeyTable, LoopArguments, OwnedVertices
from sigps.kernels.cpu.rounds import list_targets
from sigps.native.kernel import LoopFaultError

if TYPE_CHECKING:
    from sigps.kernels.cpu.arguments import Edges

__all__ = ["KeptRound", "RoundsEngine"]

_SHARE_OF_MEMORY = 4
_MOST_STAMPS = 1 << 31


@dataclass(frozen=True, eq=False)
class KeptRound:
    """What is kept of a superstep: states and records, as long as there is room, and whether records are messages."""

    states: Arrays
    records: Arrays
    was_sent: bool = False


class RoundsEngine:
    """An engine of a program in rounds that keeps all supersteps, and whose edges follow the versions of a graph.

    Args:
        native: The program, compiled for the CPU.
        params: The values of its parameters, in its order.
        subgraph: The partition, of all vertices.
        threads: Threads that run the loops.
        claim: What the compiler proved.
        measures: The measures of the graph that states begin with; None where none does.

    Attributes:
        obstacle: Why it cannot go on; empty where it can.
        all_from: The superstep of the last batch from which on all vertices ran; None where there is none.
    """

    grows = True
    refused = ""
    _first = np.uint32(0)
    """The gid of the first vertex: records, ids and ends of edges go by gid, all else by place behind it."""

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        threads: Threads,
        claim: Rounds,
        *,
        measures: Measures | None = None,
    ) -> None:
        self._measures, self.gives_up = measures, measures is not None
        self._native, self._params, self._threads, self._claim = native, params, threads, claim
        self._subgraph, self._num = subgraph, subgraph.num_owned
        program = native.program
        self.obstacle = ""
        self.aggregates = Aggregates(program.aggregators)
        record = native.record[0] if len(native.record) == 1 else None
        shares = claim.sent is not None and record == program.state_dtypes[claim.sent]
        self._sent = claim.sent if shares else None
        self._kept = [i for i in range(len(program.states)) if i not in claim.constant and i != self._sent]
        self._room = self._num
        self._ids, self._degrees = subgraph.ids, subgraph.out_degrees.copy()
        self._begin = self._full_states()
        self._constant = self._full_states()
        self._given, self._dropped = self._contributions(), self._contributions()
        self._cells = self.aggregates.values  # which compute() does not read
        self._rounds: list[KeptRound] = []
        self._last: Arrays = ()
        self._tables: list[tuple[KeyTable, int]] = []
        self._marks = np.zeros(self._record_room, dtype=np.uint8)
        assert subgraph.outgoing is not None
        self._take_edges(subgraph.outgoing, subgraph.incoming)
        self._maybe: NDArray[np.uint32] | None = None
        self._new = np.empty(0, dtype=np.uint32)
        self.all_from: int | None = None

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Let a state field begin with these values, [num_owned] by local id; before `run`."""
        self._begin[self._position(name)][: self._num] = values

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of a state field, [num_owned] by local id; the engine's own array."""
        return self._rounds[-1].states[self._position(name)][: self._num]

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end, or once more so; `obstacle` says why it stopped before."""
        self._begin_measured(None)
        stats, most = StatsLog(), available_memory() // (_SHARE_OF_MEMORY * self._ranks_here)
        known, self._rounds = self._rounds, []
        num_new, is_active = 0, True
        while self._anywhere(is_active and self._num > 0):
            if known:
                now = known.pop(0)
            else:
                now = self._room_for_round()
                num_new += 1
            num_bytes = num_new * self._bytes_of(now)
            if self._anywhere(num_bytes > most):
                self._rounds = []
                self.obstacle = (
                    f"states and records of {len(stats) + 1} supersteps take {num_bytes:,} bytes, and more follow; a "
                    f"stream keeps at most {most:,}, a quarter of the free memory"
                )
                return stats
            began = time.perf_counter()
            sent, is_active = self._run_all(now)
            sent = self._tell_all(now, sent, is_active)
            self._rounds.append(KeptRound(now.states, now.records, sent > 0))
            stats.extend([self._account(None, sent, began, len(self._rounds) - 1)])
        if len(self._rounds) != 1 and any(a.persistent for a in self._native.program.aggregators):
            self.obstacle = "an aggregator keeps the values of earlier supersteps"
            return stats
        if self._rounds:
            self._conclude()
        self._maybe = None
        if not self._last:
            self._last = tuple(values[: self._num].copy() for values in self._rounds[-1].states)
        return stats

    def take(self, states: Arrays) -> bool:
        """Take nothing: no other engine keeps what is needed."""
        return False

    @property
    def full_cost(self) -> int:
        """What a full run costs besides its messages, in messages: what counting measures anew reads, twice.

        A mark that is read in counting takes a sixth of what a batch's element takes, so a fifth of them still pays:
        100,000 inserts and as many deletes of kron-18 take 0.46 s (0.14 of the marks), and 0.83 with a full run.
        """
        return 0 if self._measures is None else 2 * self._measures.full_cost // PULL_GAIN

    def note(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take note of the edges that a batch names, by local ids (-1: none), before it is applied."""
        if isinstance(self._measures, LiveMeasures):
            self._measures.note(sources, targets, self._push, self._num)

    def widen(self, inserts: EdgeChanges) -> None:
        """Take new edges: no bound depends on them."""

    def follow(self, rows: LiveRows) -> None:
        """Take the edges of another version."""
        outward = rows.outward
        assert outward.stops is not None
        self._degrees[rows.touched] = outward.stops[rows.touched] - outward.offsets[rows.touched]
        self._take_edges(outward, rows.inward)

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """Add vertices without edges, behind all others. O(vertices) where there is no room for them."""
        old, self._num, self._ids = self._num, num_owned, ids
        self._subgraph = replace(self._subgraph, ids=ids)
        if not self._has_room:
            self._room = max(self._room, num_owned + num_owned // 8)
            self._widen_arrays(old)
        self._last = tuple(
            np.concatenate([values, more[old:num_owned]])
            for values, more in zip(self._last, self._begin, strict=True)
        )
        self._new, self._added = np.arange(old, num_owned, dtype=np.uint32), num_owned - old

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Run again what a batch changes, superstep by superstep; None where measures cost more than may be spent."""
        ends = inserts.sources, inserts.targets, deletes.sources, deletes.targets
        measured = self._new[:0]
        if self._measures is not None:
            seen = self._measured(inserts, deletes, spending)
            if seen is None:
                self._new = self._new[:0]
                return None
            measured = seen
            self._begin_measured(seen)
        always = distinct(np.concatenate([*(e.astype(np.uint32) for e in ends), self._new, measured]))
        self._new = self._new[:0]
        return self._run_again(always, spending)

    def _run_again(self, always: NDArray[np.uint32], spending: Spending) -> StatsLog:
        """Run these vertices again in all supersteps, and in each those that see something else there."""
        stats, listed, self.all_from = StatsLog(), always, None
        for superstep, now in enumerate(self._rounds):
            began = time.perf_counter()
            was_sent = superstep > 0 and self._rounds[superstep - 1].was_sent
            is_last = superstep + 1 == len(self._rounds)
            if self.all_from is None:
                edges = self.num_in_edges(listed) if was_sent else 0
                sizes = self._in_all(listed.size, edges, self._num, self._in_edges)
                if is_large(*sizes):
                    self.all_from = superstep
            if self.all_from is not None:
                sent, _ = self._run_all(now, superstep)
                sent = self._tell_all(now, sent, not is_last)
                spending.take(sizes[3] if was_sent else 0)
                stats.extend([self._account(None, sent, began, superstep)])
                self._rounds[superstep] = KeptRound(now.states, now.records, sent > 0)
                continue
            spending.take(sizes[0] + sizes[1])
            sent, others, senders = self._run_listed(listed, now, superstep)
            ran, others = listed, distinct(np.concatenate([always, others]))
            if not is_last:
                listed, sent = self._reached(now, sent, others, senders)
            if sent and not now.was_sent:  # the first edges of all
                self._rounds[superstep] = KeptRound(now.states, now.records, was_sent=True)
            stats.extend([self._account(ran, sent, began, superstep)])
        if self._rounds:
            self._conclude()
        self._maybe = None if self.all_from is not None else listed
        return stats

    def changed(self) -> NDArray[np.int64]:
        """Return the local ids of vertices whose states differ from those of the run before, once."""
        states = tuple(values[: self._num] for values in self._rounds[-1].states) if self._rounds else ()
        maybe, self._maybe = self._maybe, np.empty(0, dtype=np.uint32)
        differs = np.zeros(self._num if maybe is None else maybe.size, dtype=np.bool_)
        at: Any = slice(None) if maybe is None else maybe
        for now, before in zip(states, self._last, strict=True):
            differs |= differ(now[at], before[at])
        if maybe is not None and self._added:
            differs |= maybe >= self._num - self._added
        elif self._added:
            differs[self._num - self._added :] = True
        self._added = 0
        changed = (np.flatnonzero(differs) if maybe is None else maybe[differs]).astype(np.int64)
        changed.sort()
        for now, before in zip(states, self._last, strict=True):
            before[changed] = now[changed]
        return changed

    _added = 0

    def _anywhere(self, claim: bool) -> bool:
        """Tell whether something holds on any rank."""
        return claim

    def _in_all(self, *counts: int) -> tuple[int, ...]:
        """Return what counts come to on all ranks."""
        return counts

    def _of_all_ranks(self, words: NDArray[Any]) -> NDArray[Any]:
        """Return what each rank has, [ranks, words]."""
        return words[None]

    @property
    def _num_vertices(self) -> int:
        """Vertices of the whole graph."""
        return self._num

    @property
    def _has_room(self) -> bool:
        """Whether there is room for all vertices."""
        return self._num <= self._room

    @property
    def _record_room(self) -> int:
        """How many records there is room for."""
        return self._room

    _ranks_here = 1
    """How many ranks share this host's memory."""
    _bytes_moved = 0
    """What the superstep at hand sent to other ranks."""

    def _tell_all(self, now: KeptRound, sent: int, may_follow: bool) -> int:
        """Let other ranks have the records of a superstep of all vertices; return how many sent on all of them.

        Args:
            now: The superstep.
            sent: How many sent here.
            may_follow: Whether another superstep may read them.
        """
        return sent

    def _reached(
        self, now: KeptRound, sent: int, others: NDArray[np.uint32], senders: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], int]:
        """Return who runs again in the next superstep, and how many sent on all ranks.

        Args:
            now: The superstep.
            sent: How many sent here.
            others: Who runs again besides those that are reached, distinct.
            senders: Those whose record is another one.
        """
        return self._targets_of(senders if now.was_sent or sent else senders[:0], others), sent

    def _measured(
        self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending
    ) -> NDArray[np.uint32] | None:
        """Let the measures follow a batch; return whose may differ, or None where that costs too much."""
        assert isinstance(self._measures, LiveMeasures)
        rows = self._push, (self._pull.offsets, self._pull.stops, self._pull.ends)
        return self._measures.follow(inserts, deletes, *rows, self._num, spending)

    def _position(self, name: str) -> int:
        return [f.name for f in self._native.program.states].index(name)

    def _begin_measured(self, vertices: NDArray[np.uint32] | None) -> None:
        """Let states of some vertices begin with their measures; None: of all."""
        if self._measures is None:
            return
        at: Any = slice(self._num) if vertices is None else vertices
        values = self._measures.values()
        for field, begin in zip(self._native.program.states, self._begin, strict=True):
            if field.measure:
                begin[at] = values[repr(field.measure)][at]

    def _full_states(self) -> Arrays:
        program = self._native.program
        fields = zip(program.states, program.state_dtypes, strict=True)
        return tuple(np.full(self._room, f.default, dtype=d) for f, d in fields)

    def _contributions(self) -> Arrays:
        dtypes = [a.field.dtype() for a in self._native.program.aggregators]
        return tuple(np.zeros(self._room, dtype=d) for d in dtypes)

    def _room_for_round(self) -> KeptRound:
        """Return arrays for one more superstep."""
        program = self._native.program
        records = rows(self._native.record, self._record_room)
        states = list(self._constant)
        for i in self._kept:
            states[i] = np.zeros(self._room, dtype=program.state_dtypes[i])
        if self._sent is not None:
            states[self._sent] = records[0][self._first : int(self._first) + self._room]
        return KeptRound(tuple(states), records)

    def _bytes_of(self, now: KeptRound) -> int:
        """Return what is kept of a superstep."""
        return sum(a.nbytes for a in now.records) + sum(now.states[i].nbytes for i in self._kept)

    def _widen_arrays(self, old: int) -> None:
        """Give all arrays room for more vertices."""

        def wider(values: NDArray[Any], fresh: NDArray[Any]) -> NDArray[Any]:
            fresh[:old] = values[:old]
            return fresh

        begin, constant = self._begin, self._constant
        self._begin = tuple(wider(a, b) for a, b in zip(begin, self._full_states(), strict=True))
        self._constant = tuple(wider(a, b) for a, b in zip(constant, self._full_states(), strict=True))
        self._given = tuple(wider(a, b) for a, b in zip(self._given, self._contributions(), strict=True))
        self._dropped = self._contributions()
        degrees = np.zeros(self._room, dtype=self._degrees.dtype)
        self._degrees = wider(self._degrees, degrees)
        self._marks = np.zeros(self._record_room, dtype=np.uint8)
        for at, before in enumerate(self._rounds):
            now = self._room_for_round()
            for i in self._kept:
                wider(before.states[i], now.states[i])
            for one, other in zip(now.records, before.records, strict=True):
                one[: other.size] = other
            self._rounds[at] = KeptRound(now.states, now.records, before.was_sent)

    def _take_edges(self, outward: EdgeList, inward: EdgeList) -> None:
        program = self._native.program
        self._pull: Edges = edges_of(inward, program)
        self._push = _bounds(outward)
        none = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)
        walked: tuple[Any, ...] = ()
        if program.reads_edges:
            walked = *_bounds(outward)[:2], *none, columns_of(outward, program.read_columns)
        self._owned = OwnedVertices(self._ids, self._pull.offsets, self._degrees, walked)
        begins, stops = self._pull.offsets[: self._num], self._pull.stops[: self._num]
        self._in_edges = int((stops - begins).sum())
        self._lists: list[NDArray[np.uint32]] = []

    def num_in_edges(self, vertices: NDArray[Any]) -> int:
        """Return how many in-edges some vertices have together."""
        return int((self._pull.stops[vertices] - self._pull.offsets[vertices]).sum())

    def _arguments(self, superstep: int) -> LoopArguments:
        return LoopArguments(superstep, self._num_vertices, 0, self._params, self._cells)

    def _run_all(self, now: KeptRound, superstep: int | None = None) -> tuple[int, bool]:
        """Run all vertices in a superstep; return how many sent, and whether they stay active."""
        if not self._lists and self._num:
            sizes = self._pull.stops[: self._num] - self._pull.offsets[: self._num] + np.uint64(1)
            parts = min(8 * self._threads.count if self._threads.count > 1 else 1, self._num)
            ends = np.cumsum(sizes)
            cuts = np.searchsorted(ends, np.linspace(0, int(ends[-1]), parts + 1)[1:-1])
            self._lists = np.split(np.arange(self._num, dtype=np.uint32), cuts)
        return self._run(self._lists, now, len(self._rounds) if superstep is None else superstep)

    def _run(self, lists: list[NDArray[np.uint32]], now: KeptRound, superstep: int) -> tuple[int, bool]:
        native, before = self._native, self._rounds[superstep - 1] if superstep else None
        states = self._begin if before is None else before.states
        read = now.records if before is None else before.records
        was_sent = before is not None and before.was_sent
        may_be_last = superstep + 1 >= len(self._rounds)
        contributions = self._given if may_be_last else self._dropped
        given = states, now.states, read, now.records, was_sent, native.empty, contributions
        arguments = self._arguments(superstep)
        is_grouped = native.program.consumption is Consumption.GROUPED
        loop = native.loop("run_again_grouped" if is_grouped else "run_again", True)

        def work(listed: NDArray[np.uint32]) -> Any:
            if not is_grouped:
                return loop(listed, self._first, arguments, self._pull, self._owned, *given)
            table, stamp = self._table(listed)
            done = loop(listed, self._first, arguments, self._pull, self._owned, *given, table, stamp)
            self._tables.append((table, stamp + listed.size))
            return done

        try:
            found = self._threads.map(work, [listed for listed in lists if listed.size])
        except LoopFaultError as fault:
            raise error_in_loop(fault, self._subgraph, superstep, native.program.aggregators) from None
        return sum(int(sent) for sent, _ in found), any(active for _, active in found)

    def _run_listed(
        self, listed: NDArray[np.uint32], now: KeptRound, superstep: int
    ) -> tuple[int, NDArray[np.uint32], NDArray[np.uint32]]:
        """Run some vertices; return how many sent, those with another state, and those with another record."""
        kept, gids = [now.states[i] for i in self._kept], listed + self._first
        old = [*(values[listed] for values in kept), *(values[gids] for values in now.records)]
        sent, _ = self._run(split_list(listed, self._threads.count), now, superstep)
        differs = np.zeros(listed.size, dtype=np.bool_)
        for values, was in zip(kept, old, strict=False):
            differs |= differ(values[listed], was)
        sends = np.zeros(listed.size, dtype=np.bool_)
        for values, was in zip(now.records, old[len(kept) :], strict=True):
            sends |= differ(values[gids], was)
        if self._sent is not None:
            differs |= sends
        return sent, listed[differs], listed[sends]

    def _targets_of(self, senders: NDArray[np.uint32], others: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the targets of some vertices' edges, by gid, behind others, each once.

        Args:
            senders: By place.
            others: By gid, distinct.
        """
        marks, (begins, stops, ends) = self._marks, self._push
        most = int((stops[senders] - begins[senders]).sum())
        found = np.empty(min(self._num_vertices, others.size + most), dtype=np.uint32)
        found[: others.size] = others
        marks[others] = 1
        count = list_targets(senders, begins, stops, ends, marks, found, others.size)
        found = found[:count]
        marks[found] = 0
        return found

    def _table(self, listed: NDArray[np.uint32]) -> tuple[KeyTable, int]:
        """Return a table that no other thread has, for the longest row of these vertices, and its last stamp."""
        longest = int((self._pull.stops[listed] - self._pull.offsets[listed]).max())
        try:
            table, stamp = self._tables.pop()
        except IndexError:
            return new_table(self._native, longest), 0
        if table.used.size < longest or stamp > _MOST_STAMPS:
            return new_table(self._native, max(longest, 2 * table.used.size)), 0
        return table, stamp

    def _conclude(self) -> None:
        """Make the aggregators' values of what vertices contributed in the last superstep."""
        if not self._given:
            return
        self.aggregates = Aggregates(self._native.program.aggregators)
        identity, last = self.aggregates.identity, len(self._rounds) - 1
        total = self._native.loop("fold_contributions", True)(self._num, self._given, identity)
        self.aggregates.advance(self._of_all_ranks(self.aggregates.pack([total], last)), last)

    def _account(
        self, listed: NDArray[np.uint32] | None, sent: int, began: float, superstep: int
    ) -> SuperstepStats:
        """Return the entry of a superstep in which these vertices ran; None: all."""
        ran = self._num if listed is None else listed.size
        messages = self._in_edges if listed is None else int(self._degrees[listed].sum())
        seconds, num_bytes, self._bytes_moved = time.perf_counter() - began, self._bytes_moved, 0
        return SuperstepStats(superstep, "pull", ran, messages if sent else 0, num_bytes, seconds, 1.0)


def _bounds(edges: EdgeList) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any]]:
    stops = edges.offsets[1:] if edges.stops is None else edges.stops
    return edges.offsets, stops, edges.ends
