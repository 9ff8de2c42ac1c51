"""Values on edges beside packed rows on several ranks: as interpreted, and only what changed crosses."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from crafted_stores import change_header
from edge_programs import Returns
from thread_group import ThreadGroup, run_ranks
from value_programs import Counts, Often, Pairs, Parallel
from value_runs import assert_equal, limit_for, packed, skewed

import sigps
from sigps import Checkpoint, DeviceError, EdgeState, Graph, GraphError, Param, Result, State, Vertex, run
from sigps.engine.cpu import value_sizes
from sigps.engine.cpu.change_log import ChangeLog, Changes
from sigps.engine.cpu.crossing_changes import CrossingChanges
from sigps.engine.cpu.spill import SpillFile, require_disk, spill_folder
from sigps.graph.packing.table import rows_of_ranks


class Once(Vertex, directed=False):
    """One vertex writes to its edges, and all look at them once."""

    writer: Param[int]
    said: EdgeState[int] = 0
    heard: State[int] = 0

    def compute(self, messages: Any) -> None:
        if self.superstep == 0 and self.id == self.writer:
            for edge in self.out_edges:
                edge.said = edge.target + 1
        if self.superstep == 1:
            self.heard = sum(edge.reverse.said for edge in self.out_edges)
            self.vote_to_halt()


PROGRAMS: tuple[Vertex, ...] = (Parallel(), Often(), Pairs())
"""Parallel edges; direct messages, for which vertices compute once more; vectors."""


@pytest.fixture(autouse=True)
def small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let changed values wait in files, and cross in several pieces, where a limit leaves no room."""
    monkeypatch.setattr(value_sizes, "_LEAST_LOG", 2000)


def on_ranks(size: int, program: Vertex, folder: Path, **options: Any) -> list[Result]:
    """Return the results of a run that streams on so many ranks; no rank has edges in memory."""

    def work(group: ThreadGroup) -> tuple[Result, bool]:
        stored = sigps.load(folder / "graph.sigps", group=group)
        return run(program, stored, stream="always", **options), stored.is_laid_out

    found = run_ranks(size, work)
    assert not any(is_laid_out for _, is_laid_out in found)
    return [result for result, _ in found]


@functools.cache
def interpreted(program: Vertex) -> Result:
    """Return a run with edges in memory."""
    return run(program, skewed(), device="python")


@pytest.mark.parametrize(("ranks", "share"), [(2, 0.0), (2, None), (3, 0.4)])
def test_as_interpreted(ranks: int, share: float | None, tmp_path: Path) -> None:
    stored = packed(skewed(), tmp_path)
    for program in PROGRAMS:
        limit = limit_for(program, stored, 2, share, ranks=ranks)
        found = on_ranks(ranks, program, tmp_path, threads=2, host_memory=limit)[0]
        assert_equal(found, interpreted(program))


@pytest.mark.parametrize("name", ["only_isolated", "self_loop", "string_ids"])
def test_ranks_without_a_page_take_part(name: str, tmp_path: Path) -> None:
    graph = BATTERY[name].build(directed=False)
    packed(graph, tmp_path)
    for program in (Returns(), Often()):
        assert_equal(on_ranks(3, program, tmp_path)[0], run(program, graph, device="python"))


def test_state_logs_of_one_rank_go_on_on_three_and_two(tmp_path: Path) -> None:
    stored = packed(skewed(), tmp_path)
    for program in PROGRAMS[:2]:
        log = Checkpoint(str(tmp_path / type(program).__name__), every=1)
        for ranks, stop in ((1, 1), (3, 3), (2, None)):
            limit = limit_for(program, stored, 1, 0.0, ranks=ranks, saves=True)
            options: dict[str, Any] = {"max_supersteps": stop, "host_memory": limit, "threads": 1}
            found = on_ranks(ranks, program, tmp_path, checkpoint=log, resume=True, **options)[0]
        assert_equal(found, interpreted(program))


def test_only_what_changed_crosses_and_what_nobody_else_reads_does_not(tmp_path: Path) -> None:
    graph, writer = skewed(), 299
    stored = packed(graph, tmp_path)
    first_of_second = rows_of_ranks(stored.packed.rows.table, [1, 1])[1]  # type: ignore[union-attr]
    rows = graph.in_edges()
    ends = np.unique(rows.sources[int(rows.offsets[writer]) : int(rows.offsets[writer + 1])])
    num_elsewhere = np.count_nonzero(ends < first_of_second)
    assert 0 < num_elsewhere < ends.size
    found = on_ranks(2, Once(writer=writer), tmp_path)[0]
    assert [s.bytes_moved for s in found.stats] == [0, (4 + 4 + 8) * num_elsewhere]
    assert_equal(found, run(Once(writer=writer), graph, device="python"))
    own = on_ranks(2, Counts(), tmp_path)[0]
    assert {s.bytes_moved for s in own.stats} == {0}
    assert_equal(own, run(Counts(), graph, device="python"))


def test_each_rank_has_the_values_of_its_rows(tmp_path: Path) -> None:
    graph = skewed()
    packed(graph, tmp_path)
    parts = [result.edges for result in on_ranks(3, Returns(), tmp_path, gather=False)]
    expected = run(Returns(), graph, device="python").edges
    assert all(0 < part["sum"].size < expected["sum"].size for part in parts)
    for name in ("said", "sum"):
        assert np.concatenate([part[name] for part in parts]).tolist() == expected[name].tolist()


class Gathering(ThreadGroup):
    """What an exchange does before a run."""

    def gather(self, values: Any) -> Any:
        return np.stack(self.all_gather_array(values))


@pytest.mark.parametrize("room", [None, 400])
def test_entries_arrive_at_their_rank_in_pieces(room: int | None) -> None:
    bounds, size = np.array([0, 40, 40, 100]), 3
    sizes: list[int] = []

    class Counted(Gathering):
        def swap(self, parts: Any) -> Any:
            sizes.extend(part.size for part in parts if part.dtype == np.int64)
            return self.all_to_all(parts)

    def entries_of(rank: int) -> tuple[Any, Any]:
        """Return rows that a rank writes beside, and rows of other ranks that read there."""
        draw = np.random.default_rng(rank)
        count = [300, 0, 20][rank]
        targets = draw.choice(np.setdiff1d(np.arange(100), np.arange(*bounds[rank : rank + 2])), count)
        return draw.integers(0, 99, count).astype(np.uint32), targets.astype(np.uint32)

    def work(group: ThreadGroup) -> tuple[Any, int]:
        exchange = Counted(group.rank, group._shared)
        crossing = CrossingChanges(exchange, bounds, [np.dtype(np.int64)], room, longest=12)  # type: ignore[arg-type]
        sources, targets = entries_of(group.rank)
        for i in range(0, targets.size, 7):
            own = slice(i, i + 7)
            values = 1000 * np.int64(group.rank) + sources[own].astype(np.int64)
            crossing.put(Changes(targets[own], sources[own], (values,)))
        first, end = bounds[group.rank : group.rank + 2]
        log = ChangeLog(np.array([0, end - first]), [np.dtype(np.int64)], None)
        num_bytes = crossing.cross(log)
        log.commit()
        found = [np.stack([c.targets + first, c.sources, *c.columns]) for c in log.take(0)]
        return np.concatenate([np.empty((3, 0), dtype=np.int64), *found], axis=1), num_bytes

    found = run_ranks(size, work)
    for rank in range(size):
        expected = []
        for sender in range(size):
            sources, targets = entries_of(sender)
            here = (bounds[rank] <= targets) & (targets < bounds[rank + 1])
            expected += zip(
                targets[here], sources[here], 1000 * sender + sources[here].astype(int), strict=True
            )
        assert sorted(map(tuple, found[rank][0].T.tolist())) == sorted(expected)
    assert [num_bytes for _, num_bytes in found] == [16 * 300, 0, 16 * 20]
    assert max(sizes) <= (4 if room else 300)


def test_what_waits_keeps_nothing_else_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed(skewed(), tmp_path)
    put, sizes = ChangeLog.put, list[int]()

    def noted(log: ChangeLog, changes: Changes) -> None:
        parts = changes.targets, changes.sources, *changes.columns
        sizes.extend(part.size for part in parts)
        assert all(part.base is None for part in parts if part.size)
        put(log, changes)

    monkeypatch.setattr(ChangeLog, "put", noted)
    on_ranks(2, Returns(), tmp_path)
    assert sum(sizes) > 0


def test_a_store_that_is_not_symmetric_is_named(tmp_path: Path) -> None:
    ring = np.arange(400)
    directed = Graph.from_edges(ring, (ring + 1) % 400, directed=True)
    packed(directed, tmp_path)
    change_header(tmp_path / "graph.sigps", lambda header: header.update(directed=False))
    with pytest.raises(GraphError, match="edges are stored at one of their ends only"):
        on_ranks(2, Returns(), tmp_path)


def test_a_full_disk_of_one_rank_ends_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, program = packed(skewed(), tmp_path), Returns()
    options: dict[str, Any] = {"threads": 1, "host_memory": limit_for(program, stored, 1, 0.0, ranks=2)}
    write = SpillFile.write

    def fails_on_one(file: SpillFile, at: int, values: Any) -> int:
        if file._rank == 1:
            raise file._failed(OSError(28, "No space left on device"))
        return write(file, at, values)

    with monkeypatch.context() as patch:
        patch.setattr(SpillFile, "write", fails_on_one)
        with pytest.raises(DeviceError, match=r"rank 1: values on edges cannot wait in .*: No space left"):
            on_ranks(2, program, tmp_path, **options)
    waiting = 3 * (8 + 16)  # of two supersteps, and what crosses between them
    needed = (16 + 16 + waiting) * stored.num_edges  # of both ranks: each by itself needs less

    def let_be_free(num_bytes: int) -> None:
        state = os.statvfs_result((1, 1, 0, 0, num_bytes, 0, 0, 0, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda folder: state)

    let_be_free(needed)
    on_ranks(2, program, tmp_path, **options)
    let_be_free(needed - 1)
    with pytest.raises(DeviceError, match=r"values on edges need .* of disk in"):
        on_ranks(2, program, tmp_path, **options)


def test_a_disk_that_has_too_little_for_one_rank_is_named_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    state = os.statvfs_result((1, 1, 0, 0, 5, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda folder: state)

    def work(group: ThreadGroup) -> str:
        with pytest.raises(DeviceError) as error:
            require_disk(3 * group.rank, Gathering(group.rank, group._shared))  # type: ignore[arg-type]
        return str(error.value)

    for rank, text in enumerate(run_ranks(3, work)):
        place = f"in {spill_folder()}" if rank == 1 else "in its folder for temporary files"
        assert text.startswith("rank 1: values on edges need 9 B of disk " + place), text
