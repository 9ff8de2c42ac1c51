"""A program in rounds that goes on when edges are inserted and deleted, on several ranks of CPU cores.

A rank keeps the supersteps of the vertices whose rows it has in the graph, and the records of others that its vertices
read, by gid: memory that nobody writes takes none. It has whole rows, so it finds all targets of a vertex whose record
is another one, those of other ranks too. In each superstep of a batch it tells every other rank

* the records that are others than before, of vertices with an edge to that rank, and those of sources of new edges to
  it, which it may not have;
* which of its vertices these reach: they run again in the next superstep.

Whether all vertices run from a superstep on is decided by what lists and edges come to on all ranks; then the records
of all vertices with an edge to a rank are told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.proofs.rounds import Rounds
from sigps.device.cpu import Threads
from sigps.engine.cpu.following import EdgeChanges, LiveRows
from sigps.engine.cpu.measures_ranks import RankedMeasures
from sigps.engine.cpu.rank_rows import RankRows
from sigps.engine.cpu.rounds import KeptRound, RoundsEngine
from sigps.engine.cpu.spending import Spending
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph, narrow, seen_ids
from sigps.engine.stats import StatsLog, added_up
from sigps.errors import ComputeError
from sigps.graph.graph import Graph
from sigps.graph.versions.row_changes import distinct
from sigps.group import raise_together
from sigps.kernels.cpu.rounds import mark_owners

__all__ = ["RankedRoundsEngine"]

_FAILED = -1
"""Told in the place of how many sent."""


class RankedRoundsEngine(RoundsEngine):
    """An engine of a program in rounds on one of several ranks. Verbs are collective.

    Args:
        native: As of `RoundsEngine`, and so are `params` and `threads`.
        params: See there.
        graph: The graph; a rank has the vertices whose rows it has.
        threads: See there.
        claim: See there.
        rows: The rows of these vertices; None where the program sends nothing, and reads no row.
        follower: The measures of these vertices that states begin with; None where none does.
        ranks_here: How many ranks share this host's memory.
    """

    traced = None

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        graph: Graph,
        threads: Threads,
        claim: Rounds,
        *,
        rows: RankRows | None,
        follower: RankedMeasures | None,
        ranks_here: int = 1,
    ) -> None:
        self._rows, self._follower, self._group, self._ranks_here = rows, follower, graph.group, ranks_here
        self._bounds = graph.row_bounds
        self._first = np.uint32(0 if rows is None else rows.first)
        self._most = graph.num_vertices
        self._told: _Told | None = None
        self._error: ComputeError | None = None
        self._batch: tuple[Graph, NDArray[np.int64], NDArray[np.int64]] | None = None
        self.subgraph = _vertices_of(graph, rows)
        super().__init__(native, params, self.subgraph, threads, claim, measures=follower)

    def fields(self) -> dict[str, NDArray[Any]]:
        """Return copies of all state fields, [num_owned] each in ascending order of gids."""
        return {field.name: self.state(field.name).copy() for field in self._native.program.states}

    def run(self) -> StatsLog:
        """Run from superstep 0 to the end, or once more so; `obstacle` says why it stopped before."""
        if self._rows is not None and self._told is None:
            self._told = _Told(self._group.size, self._num)
            self._told.find(self._push, self._bounds)
        stats = super().run()
        self._fail_together()
        return stats

    def take_version(self, version: Graph, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take a version, which `go_on_with` or `run` then follows.

        Args:
            version: The version after the one taken last.
            sources: [edges]: those that the batch names, by gid, or -1; the same on all ranks.
            targets: [edges].
        """
        self._batch, self._bounds = (version, sources, targets), version.row_bounds
        if self._rows is not None:
            self._rows.take(version)
        if version.num_vertices > self.subgraph.num_vertices:
            self.subgraph = _vertices_of(version, self._rows)
            self.grow(self.subgraph.num_owned, self.subgraph.ids)
        if self._rows is None:
            self._take_edges(self.subgraph.incoming, self.subgraph.incoming)
            return
        self.follow(LiveRows(self._rows.outward, self._rows.inward, self._rows.touched))
        assert self._told is not None
        new = self._rows.inserted
        owners = np.searchsorted(self._bounds, new.ends, side="right") - 1
        self._told.begin(self._num, new.rows - self._rows.first, owners, self._group.rank)

    def go_on_with(self, spending: Spending) -> StatsLog | None:
        """Run again what a batch changes; None where measures cost more than may be spent."""
        none = np.empty(0, dtype=np.int64)
        ends = (none, none) if self._rows is None else (self._rows.touched, self._rows.targets)
        if ends[0] is ends[1]:
            ends = ends[0], none
        stats = self.go_on(EdgeChanges(*ends, {}), EdgeChanges(none, none, {}), spending)
        if self._anywhere(self._error is not None):
            self._fail_together()
        return stats

    def everywhere(self, stats: StatsLog) -> StatsLog:
        """Return what all ranks did."""
        return added_up(stats, self._of_all_ranks)

    def _run(self, lists: list[NDArray[np.uint32]], now: KeptRound, superstep: int) -> tuple[int, bool]:
        try:
            return super()._run(lists, now, superstep)
        except ComputeError as error:  # raised by all ranks, where they meet next
            self._error = error
            return 0, False

    def _fail_together(self) -> None:
        """Raise this rank's error, or name another rank's."""
        error, self._error = self._error, None
        raise_together(error, self._group)

    def _anywhere(self, claim: bool) -> bool:
        return bool(self._group.all_reduce(np.array([claim], dtype=np.int64), "max")[0])

    def _in_all(self, *counts: int) -> tuple[int, ...]:
        return tuple(self._group.all_reduce(np.array(counts, dtype=np.int64), "sum").tolist())

    def _of_all_ranks(self, words: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self._group.all_gather_array(words))

    @property
    def _num_vertices(self) -> int:
        return self.subgraph.num_vertices

    @property
    def _has_room(self) -> bool:
        return super()._has_room and self._num_vertices <= self._most

    @property
    def _record_room(self) -> int:
        return self._room if self._rows is None else max(self._most, int(self._first) + self._room)

    def _widen_arrays(self, old: int) -> None:
        self._most = max(self._most, self._num_vertices + self._num_vertices // 8)
        super()._widen_arrays(old)

    def _bytes_of(self, now: KeptRound) -> int:
        """Return what is kept of a superstep, without records that nobody here reads."""
        if self._told is None:
            return super()._bytes_of(now)
        num_records = self._num + sum(gids.size for gids in self._told.heard)
        of_states = sum(now.states[i].nbytes for i in self._kept)
        return of_states + num_records * sum(a[:1].nbytes for a in now.records)

    def _measured(
        self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending
    ) -> NDArray[np.uint32] | None:
        assert self._batch is not None
        assert self._follower is not None
        return self._follower.follow(*self._batch, spending)

    def _tell_all(self, now: KeptRound, sent: int, may_follow: bool) -> int:
        if self._told is None:
            return super()._tell_all(now, sent, may_follow)
        told = self._told.all() if may_follow else self._told.nobody()
        return self._crossed(now, sent, told, self._told.nobody(), are_all=may_follow)[0]

    def _reached(
        self, now: KeptRound, sent: int, others: NDArray[np.uint32], senders: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], int]:
        if self._told is None:
            return super()._reached(now, sent, others, senders)
        reaching = senders if now.was_sent or sent else senders[:0]
        found = np.sort(self._targets_of(reaching, others + self._first))
        cuts = np.searchsorted(found, self._bounds)
        targets = [found[cuts[r] : cuts[r + 1]] for r in range(self._group.size)]
        sent, arrived = self._crossed(now, sent, self._told.of(senders), targets, are_all=False)
        return distinct(np.concatenate([targets[self._group.rank], *arrived])) - self._first, sent

    def _crossed(
        self,
        now: KeptRound,
        sent: int,
        told: list[NDArray[np.uint32]],
        targets: list[NDArray[np.uint32]],
        *,
        are_all: bool,
    ) -> tuple[int, list[NDArray[np.uint32]]]:
        """Tell ranks records and targets; return how many sent on all ranks, and the targets that arrive, by gid.

        Args:
            now: The superstep whose records these are; those that arrive are written there.
            sent: How many sent here.
            told: For each rank the vertices whose records it gets, by place.
            targets: For each rank those of its vertices that are reached, by gid.
            are_all: Whether a rank gets all that it ever does; these are named where they are others than last time.
        """
        halo, rank = self._told, self._group.rank
        assert halo is not None
        parts = []
        for r in range(self._group.size):
            gids, to = (told[r] + self._first, targets[r]) if r != rank else (told[r][:0], targets[r][:0])
            is_known = are_all and halo.is_known[r]
            head = np.array([_FAILED if self._error else sent, gids.size, to.size, is_known], dtype=np.int64)
            arrays = [head, to, gids[:0] if is_known else gids, *(a[gids] for a in now.records)]
            parts.append(np.concatenate([np.ascontiguousarray(a).view(np.uint8).reshape(-1) for a in arrays]))
            halo.is_known[r] |= are_all
        self._bytes_moved = sum(part.nbytes for r, part in enumerate(parts) if r != rank)
        total, reached, has_failed = 0, [], False
        for r, part in enumerate(self._group.all_to_all(parts)):
            reader = _Reader(part)
            sent_there, num_told, num_reached, is_known = reader.take(np.dtype(np.int64), 4).tolist()
            total, has_failed = total + sent_there, has_failed or sent_there == _FAILED
            reached.append(reader.take(np.dtype(np.uint32), num_reached))
            gids = halo.heard[r] if is_known else reader.take(np.dtype(np.uint32), num_told)
            if are_all:
                halo.heard[r] = gids
            for record in now.records:
                record[gids] = reader.take(record.dtype, gids.size)
        if has_failed:
            self._fail_together()
        return total, reached


class _Told:
    """Which vertices of this rank others get records of: all with an edge there, and some that had one.

    Args:
        num_ranks: How many ranks there are.
        num_owned: How many vertices this one has.

    Attributes:
        heard: For each rank the vertices whose records come from it, by gid, as it named them last.
        is_known: For each rank whether it was told those of `all` since they changed last.
    """

    def __init__(self, num_ranks: int, num_owned: int) -> None:
        self._marks = np.zeros((num_ranks, num_owned), dtype=np.uint8)
        none = np.empty(0, dtype=np.uint32)
        self.heard, self.is_known = [none] * num_ranks, [False] * num_ranks
        self._always = [none] * num_ranks
        self._all: list[NDArray[np.uint32]] = []  # made of the marks when it is wanted

    def find(self, outward: tuple[NDArray[Any], ...], bounds: NDArray[np.int64]) -> None:
        """Mark the vertices with edges to each rank. O(edges)."""
        mark_owners(self._marks.shape[1], *outward, bounds, self._marks.reshape(-1))

    def begin(self, num_owned: int, sources: NDArray[np.int64], owners: NDArray[np.int64], rank: int) -> None:
        """Begin a batch.

        Args:
            num_owned: How many vertices there are now.
            sources: Of the new edges, by place.
            owners: The rank that each leads to.
            rank: This rank, which is told nothing.
        """
        marks = self._marks
        if num_owned > marks.shape[1]:
            self._marks = np.zeros((len(marks), num_owned), dtype=np.uint8)
            self._marks[:, : marks.shape[1]] = marks
        for r, of_rank in enumerate(self._marks):
            new = sources[owners == r] if r != rank else sources[:0]
            if not of_rank[new].all():
                of_rank[new] = 1
                self.is_known[r], self._all = False, []
            self._always[r] = distinct(new.astype(np.uint32))

    def all(self) -> list[NDArray[np.uint32]]:
        """Return the vertices that each rank is told of, ever."""
        if not self._all:
            self._all = [np.flatnonzero(of_rank).astype(np.uint32) for of_rank in self._marks]
        return self._all

    def of(self, senders: NDArray[np.uint32]) -> list[NDArray[np.uint32]]:
        """Return the vertices that each rank is told of in a superstep of a batch."""
        return [
            distinct(np.concatenate([new, senders[of_rank[senders] != 0]]))
            for of_rank, new in zip(self._marks, self._always, strict=True)
        ]

    def nobody(self) -> list[NDArray[np.uint32]]:
        """Return for each rank that it is told of none."""
        return [np.empty(0, dtype=np.uint32)] * len(self._marks)


class _Reader:
    """Takes arrays off some bytes, one after the other."""

    def __init__(self, part: NDArray[np.uint8]) -> None:
        self._part, self._at = part, 0

    def take(self, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
        """Return the next array."""
        begin, self._at = self._at, self._at + size * dtype.itemsize
        return self._part[begin : self._at].copy().view(dtype)  # a copy is aligned


def _vertices_of(graph: Graph, rows: RankRows | None) -> Subgraph:
    """Return the vertices whose rows this rank has. Collective.

    The ids that compute() sees go by gid where rows are given, of all vertices of the graph.
    """
    num_owned = graph.num_rows
    gids = np.arange(graph.first_row, graph.first_row + num_owned)
    if rows is None:
        none = EdgeList(np.zeros(num_owned + 1, dtype=np.uint64), np.empty(0, dtype=np.uint32), {})
        degrees = np.zeros(num_owned, dtype=np.uint32)
        return Subgraph(graph.num_vertices, 0, num_owned, 0, gids, seen_ids(graph, gids), none, none, degrees)
    outward = rows.outward
    stops = outward.offsets[1:] if outward.stops is None else outward.stops
    degrees = narrow(stops[:num_owned] - outward.offsets[:num_owned])
    ids = seen_ids(graph, None)
    return Subgraph(graph.num_vertices, 0, num_owned, 0, gids, ids, rows.inward, outward, degrees)
