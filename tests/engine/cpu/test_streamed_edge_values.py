"""Values on edges beside rows that stay packed, in memory and in files: as with edges in memory, and as interpreted."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, Sample
from edge_programs import Marks, Mirrors, Returns
from gas_programs import BeliefPropagation
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import in_turn
from value_programs import Late, Often, Pairs, Parallel
from value_runs import OPTIONS, SHARES, assert_equal, both_in_memory, limit_for, packed, skewed, streaming_of

from sigps import (
    Checkpoint,
    ConfigError,
    DeviceError,
    Graph,
    GraphError,
    Vertex,
    run,
)
from sigps.apps import MinimumSpanningForest, StreamDN
from sigps.engine.cpu import change_log, direct_messages, value_sizes
from sigps.engine.cpu.spill import SpillFile
from sigps.graph.packing.paged import PagedRows

PROGRAMS = [
    Returns(),
    Marks(),
    Parallel(),
    Often(),
    StreamDN(scans=5),
    MinimumSpanningForest(),
    BeliefPropagation(),
    Late(writer=0),
]


class Moved:
    """Counts the bytes that go to files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.num_bytes, write = 0, SpillFile.write

        def counted(file: SpillFile, at: int, values: Any) -> int:
            self.num_bytes += values.nbytes
            return write(file, at, values)

        monkeypatch.setattr(SpillFile, "write", counted)


@pytest.fixture(params=[1 << 18, 2000], ids=["log_in_memory", "log_in_files"], autouse=True)
def least_log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let changed values wait in memory, or in files."""
    monkeypatch.setattr(value_sizes, "_LEAST_LOG", request.param)


@pytest.mark.parametrize(("program", "share", "threads"), in_turn(PROGRAMS, SHARES, [1, 3]), ids=str)
def test_as_in_memory_and_as_interpreted(
    program: Vertex, share: float | None, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = packed(skewed(), tmp_path)
    expected, interpreted = both_in_memory(program)
    limit, moved = limit_for(program, stored, threads, share), Moved(monkeypatch)
    found = run(program, stored, stream="always", threads=threads, host_memory=limit, **OPTIONS)
    assert_equal(found, expected)
    assert_equal(found, interpreted, exact=False)
    assert bool(moved.num_bytes) == (share is not None)
    assert not stored.is_laid_out


def test_vectors(tmp_path: Path) -> None:
    graph = skewed()
    stored = packed(graph, tmp_path)
    expected = run(Pairs(), graph, device="cpu")
    for share in SHARES[1:]:
        limit = limit_for(Pairs(), stored, 2, share)
        assert_equal(run(Pairs(), stored, stream="always", threads=2, host_memory=limit), expected)
    assert_equal(run(Pairs(), graph, device="python"), expected)


@given(samples(), st.sampled_from([Returns(), Parallel(), Marks(), Often()]), st.sampled_from(SHARES))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_random_graphs(sample: Sample, program: Vertex, share: float | None) -> None:
    graph = sample.build(directed=False)
    with TemporaryDirectory() as folder:
        stored = packed(graph, Path(folder), page_arcs=32)
        limit = limit_for(program, stored, 2, share)
        found = run(program, stored, stream="always", threads=2, host_memory=limit)
    assert_equal(found, run(program, graph, device="python"))


@pytest.mark.parametrize("name", ["only_isolated", "one_vertex", "self_loop", "string_ids"])
def test_small_graphs(name: str, tmp_path: Path) -> None:
    graph = BATTERY[name].build(directed=False)
    stored = packed(graph, tmp_path)
    for program in (Returns(), Parallel()):
        assert_equal(run(program, stored, stream="always"), run(program, graph, device="python"))


def test_a_vertex_that_computes_once_more_begins_from_its_old_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_messages, "_FIRST_CAPACITY", 8)
    graph = skewed()
    stored = packed(graph, tmp_path)
    expected = run(Often(), graph, device="python")
    for share in SHARES[::2]:
        found = run(
            Often(), stored, stream="always", host_memory=limit_for(Often(), stored, 2, share), threads=2
        )
        assert_equal(found, expected)


def test_blocks_that_sleep_take_what_waits_before_it_is_more_than_their_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, logs = packed(skewed(), tmp_path), []
    commit = change_log.ChangeLog.commit

    def noted(log: change_log.ChangeLog) -> None:
        logs.append((int(log.waiting.sum()), len(log._segments)))
        commit(log)

    monkeypatch.setattr(change_log.ChangeLog, "commit", noted)
    run(
        Late(writer=0),
        stored,
        stream="always",
        host_memory=limit_for(Late(writer=0), stored, 2, 0.0),
        threads=2,
    )
    assert len(logs) == 46
    assert 0 < max(entries for entries, _ in logs) <= stored.num_edges
    monkeypatch.setattr(change_log, "_MANY_SEGMENTS", 2)
    logs.clear()
    run(Late(writer=299), stored, stream="always", threads=2)
    assert max(segments for _, segments in logs) == 4  # two of earlier supersteps, and those of the last two


@pytest.mark.parametrize(("share", "first"), in_turn(SHARES, [True, False]))
def test_state_logs_go_on_with_edges_in_memory_and_back(
    share: float | None, first: bool, tmp_path: Path
) -> None:
    graph = skewed()
    stored = packed(graph, tmp_path)
    for program in (StreamDN(scans=5), MinimumSpanningForest()):
        expected = run(program, graph, device="cpu", deterministic=True)
        log = Checkpoint(str(tmp_path / type(program).__name__), every=2)
        limit = limit_for(program, stored, 2, share, saves=True)
        streams: dict[str, Any] = {"stream": "always", "host_memory": limit, "threads": 2}
        ways = [(stored, streams), (graph, {"device": "cpu"})]
        for stop, (used, where) in zip(
            [5, 9, None], [ways[not first], ways[first], ways[not first]], strict=True
        ):
            given_now: dict[str, Any] = {**where, "deterministic": True, "max_supersteps": stop}
            result = run(program, used, checkpoint=log, resume=True, **given_now)
        assert_equal(result, expected)


@pytest.mark.parametrize("least_log", [2000], indirect=True)
def test_a_run_of_some_supersteps_has_its_values(tmp_path: Path) -> None:
    graph = skewed()
    stored = packed(graph, tmp_path)
    for stop in range(1, 4):
        found = run(Returns(), stored, stream="always", max_supersteps=stop)
        assert_equal(found, run(Returns(), graph, device="python", max_supersteps=stop))


def test_only_blocks_with_changes_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, writer = skewed(), 299
    stored, moved = packed(graph, tmp_path), Moved(monkeypatch)
    program = Late(writer=writer, rounds=1)
    run(program, stored, stream="always", host_memory=limit_for(program, stored, 1, 0.0), threads=1)
    rows = PagedRows(stored.packed.rows, 1)  # type: ignore[union-attr]
    arcs = np.diff(rows.offsets[rows.first_rows].astype(np.int64))
    edges = graph.in_edges()
    ends = np.unique(edges.sources[int(edges.offsets[writer]) : int(edges.offsets[writer + 1])])
    ends = ends[ends != 0]  # on the edge to 0 it writes what was there
    blocks = np.searchsorted(rows.first_rows, ends, side="right") - 1
    own = int(np.searchsorted(rows.first_rows, writer, side="right")) - 1
    stored_bytes = 8 * int(arcs[own]) + 8 * int(arcs[np.unique(blocks)].sum())
    entries = (8 + 8) * ends.size
    assert ends.size > 1
    least = max(value_sizes._LEAST_LOG, 5 * 16 * edges.sources.size // 128)
    assert moved.num_bytes == stored_bytes + (entries if 2 * entries > least else 0)


@pytest.mark.parametrize("least_log", [2000], indirect=True)
def test_a_superstep_has_few_segments_however_little_room_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments of a superstep in which all values change: a block looks into each of them."""
    stored, found = packed(skewed(), tmp_path, page_arcs=8), [0]
    monkeypatch.setattr(value_sizes, "_LEAST_LOG", 1)
    monkeypatch.setattr(value_sizes, "_MOST_SEGMENTS", 16)
    commit = change_log.ChangeLog.commit

    def counted(log: change_log.ChangeLog) -> None:
        before = len(log._segments)
        commit(log)
        found.append(len(log._segments) - before)

    monkeypatch.setattr(change_log.ChangeLog, "commit", counted)
    program = Returns()
    limit = limit_for(program, stored, 1, 0.0)
    assert limit is not None
    run(program, stored, stream="always", threads=1, host_memory=limit, **OPTIONS)
    assert 8 < max(found) <= 16 + 1
    with pytest.raises(DeviceError, match="even with its edges streamed"):
        run(program, stored, stream="always", threads=1, host_memory=limit - 1, **OPTIONS)


def test_what_they_take_is_said_and_kept_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    stored, program = packed(skewed(), tmp_path), Returns()
    edges = stored.num_edges
    all_in_memory = streaming_of(program, stored, 2, None)
    assert all_in_memory.room_on_edges is None
    assert all_in_memory.spilled == 0
    least = max(value_sizes._LEAST_LOG, 5 * (8 + 16) * edges // 128)
    needed = (16 + 16 + 4 * (8 + 16)) * edges  # two states, read of both ends; what waits, and is grouped
    assert all_in_memory.values == max(needed, least) - least
    limit = sum(all_in_memory.resident.values()) + all_in_memory.values // 2
    found = streaming_of(program, stored, 2, limit)
    assert found.values + found.spilled == all_in_memory.values
    assert sum(found.resident.values()) + found.values + found.cached <= limit
    if found.spilled:
        assert "of them in files" in str(found)
    logged = streaming_of(program, stored, 2, None, saves=True)
    assert logged.resident["for a time"] == (8 + 16) * edges
    with pytest.raises(DeviceError, match="even with its edges streamed"):
        streaming_of(program, stored, 2, sum(found.resident.values()) - 1)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, program = packed(skewed(), tmp_path), StreamDN(scans=5)
    options: dict[str, Any] = {
        "stream": "always",
        "threads": 2,
        "host_memory": limit_for(program, stored, 2, 0.0),
    }
    pwrite, calls = os.pwrite, []

    def fails_later(*given: Any) -> int:
        calls.append(given)
        if len(calls) > 20:
            raise OSError(28, "No space left on device")
        return pwrite(*given)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails_later)
        with pytest.raises(DeviceError, match=r"values on edges cannot wait in .*: No space left .*TMPDIR"):
            run(program, stored, **options)
    assert len(calls) > 20
    with monkeypatch.context() as patch:
        full = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
        patch.setattr(os, "statvfs", lambda folder: full)
        with pytest.raises(DeviceError, match=r"values on edges need .* of disk in .* has 0 B free"):
            run(program, stored, **options)
    assert run(program, stored, **options).supersteps > 5


def test_what_cannot_stream_is_refused_by_name(tmp_path: Path) -> None:
    graph = skewed()
    stored = packed(graph, tmp_path)
    with pytest.raises(ConfigError, match="Mirrors looks through rows of neighbours, which are in memory"):
        run(Mirrors(), stored, stream="always")
    (tmp_path / "degree").mkdir()
    with pytest.raises(ConfigError, match=r"compute.. walks out-edges, and the rows of .* are by degree"):
        run(Returns(), packed(graph, tmp_path / "degree", order="degree"), stream="always")
    directed = Graph.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0])
    (tmp_path / "directed").mkdir()
    with pytest.raises(
        ConfigError, match="walks its out-edges, and the store of a directed graph has in-edges"
    ):
        run(Marks(), packed(directed, tmp_path / "directed"), stream="always")
    (tmp_path / "named").mkdir()
    named = packed(
        Graph.from_edges([0, 1], [1, 2], columns={"said": [1, 2]}, directed=False), tmp_path / "named"
    )
    with pytest.raises(GraphError, match="a column 'said', and the program keeps a value of that name"):
        run(Returns(), named, stream="always")
