"""State logs: written beside the run, and gone on from by any number of ranks, partitioner and device."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equality_programs as programs
import log_mutations
import numpy as np
import pytest
from battery import BATTERY, Sample
from log_mutations import change_manifest, change_part
from snapshots import combines_mail, made
from thread_group import ThreadGroup, run_ranks
from ways import assert_same, by_size

from sigps import (
    Checkpoint,
    ConfigError,
    DeviceError,
    Graph,
    GraphError,
    Param,
    Result,
    State,
    StateLogError,
    Vertex,
    run,
)
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.stats import SuperstepStats
from sigps.group import Alone
from sigps.system.checkpoint import files, lock, writer

SKEWED = BATTERY["skewed"]


def run_on(ranks: int, program: Vertex, sample: Sample, **options: Any) -> Result:
    def run_rank(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), **options)

    return run_ranks(ranks, run_rank)[0]


def names(folder: Path) -> list[str]:
    return sorted(path.name[-8:] for path in files.find_logs(folder))


TWO_RUNS = [
    ((1, "cpu", "edges"), (1, "cpu", "edges")),
    ((3, "cpu", "edges"), (2, "cpu", "hash")),
    ((1, "cpu", "edges"), (4, "cpu", "metis")),
    ((2, "cpu", "hash"), (3, "python", "bfs")),
    ((4, "python", "function"), (1, "cpu", "edges")),
    ((2, "python", "edges"), (3, "python", "vertices")),
]
"""Ranks, device and partitioner of the run that writes a log, and of the run that goes on from it."""


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        (name, *TWO_RUNS[way])
        for i, name in enumerate(programs.PROGRAMS)
        for way in range(i % 2, len(TWO_RUNS), 2)  # every second, the others for the next program
    ],
)
def test_another_run_goes_on_from_a_log(name: str, first: Any, second: Any, tmp_path: Path) -> None:
    program = made(name)

    def options(way: Any) -> dict[str, Any]:
        ranks, device, partitioner = way
        method = by_size(ranks) if partitioner == "function" else partitioner
        return {"device": device, "partitioner": method, "deterministic": True, "threads": 1}

    whole = run_on(1, program, SKEWED, **options((1, "python", "edges")))
    begun = run_on(
        first[0],
        program,
        SKEWED,
        **options(first),
        max_supersteps=3,
        checkpoint=Checkpoint(tmp_path, every=2),
    )
    if len(whole.stats) <= 2:
        assert names(tmp_path) == []
        return
    assert [s.superstep for s in begun.saves] == [2]
    goes_on = {**options(second), "checkpoint": Checkpoint(tmp_path, every=100), "resume": True}
    if (first[1], second[1]) == ("cpu", "python") and combines_mail(program):
        with pytest.raises(DeviceError, match="were combined when this was saved"):
            run_on(second[0], program, SKEWED, **goes_on)
        return
    result = run_on(second[0], program, SKEWED, **goes_on)
    assert_same(result, whole, exact=True, only_better=analyse(program).monotone is not None)
    assert [s.superstep for s in result.stats] == list(range(len(whole.stats)))


@pytest.mark.parametrize("name", [n for n in BATTERY if n != "empty"])
def test_every_graph_goes_on(name: str, tmp_path: Path) -> None:
    sample = BATTERY[name]
    source = (sample.sources or sample.vertices)[0]
    for program in (BFS(source=source), SSSP(source=source), WCC(), programs.Jump(), programs.Coreness()):
        folder = tmp_path / type(program).__name__
        whole = run_on(1, program, sample, device="python")
        run_on(2, program, sample, device="cpu", max_supersteps=2, checkpoint=Checkpoint(folder, every=1))
        result = run_on(3, program, sample, device="cpu", checkpoint=Checkpoint(folder, every=1), resume=True)
        assert_same(result, whole, exact=True, only_better=analyse(program).monotone is not None)


def logged(folder: Path, supersteps: int = 6, every: int = 2, **options: Any) -> Result:
    given = {"device": "cpu", "max_supersteps": supersteps, "checkpoint": Checkpoint(folder, every=every)}
    return run_on(2, PageRank(iterations=8), SKEWED, **(given | options))


def resumed(folder: Path, program: Vertex | None = None, sample: Sample = SKEWED) -> Result:
    options: dict[str, Any] = {"device": "cpu", "checkpoint": Checkpoint(folder, every=50), "resume": True}
    return run_on(2, program or PageRank(iterations=8), sample, **options)


def newest(folder: Path) -> Path:
    return files.find_logs(folder)[0]


def first_new_superstep(result: Result, begun: Result) -> int:
    """Return how many supersteps were taken from a log: their times were measured by the run that wrote it."""
    mine, theirs = [[s.seconds for s in r.stats] for r in (result, begun)]
    return next(i for i, (a, b) in enumerate(zip(mine, [*theirs, -1.0], strict=False)) if a != b)


def flip_a_byte(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


DAMAGES: dict[str, Any] = {
    "a part is cut short": (lambda log: cut(log / "part-00001.npz"), "bytes, and"),
    "a part is changed": (lambda log: flip_a_byte(log / "part-00000.npz", 900), "part-00000.npz"),
    "a part is gone": (lambda log: (log / "part-00000.npz").unlink(), "No such file"),
    "a part is another's": (
        lambda log: (log / "part-00001.npz").write_bytes((log / "part-00000.npz").read_bytes()),
        "part-00001.npz",
    ),
    "the manifest is changed": (lambda log: flip_a_byte(log / "manifest.msgpack", 200), "is damaged"),
    "the manifest is cut short": (lambda log: cut(log / "manifest.msgpack"), "is damaged"),
    "the manifest is junk": (lambda log: (log / "manifest.msgpack").write_bytes(b"PK\3\4"), "is damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_is_named_and_the_one_before_it_used(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun = logged(tmp_path)
    break_it, complaint = DAMAGES[damage]
    broken = newest(tmp_path)
    break_it(broken)
    result = resumed(tmp_path)
    assert f"{broken} is not used" in caplog.text
    assert complaint in caplog.text
    assert first_new_superstep(result, begun) == 4
    assert_same(result, run_on(1, PageRank(iterations=8), SKEWED, device="python"), exact=False)


def test_no_changed_byte_is_believed_or_ends_in_a_traceback(tmp_path: Path) -> None:
    run(
        PageRank(),
        BATTERY["grid"].build(),
        device="cpu",
        max_supersteps=2,
        checkpoint=Checkpoint(tmp_path, every=2),
    )
    (log,) = files.find_logs(tmp_path)
    manifest, part = files.read_manifest(log), log / "part-00000.npz"
    whole = part.read_bytes()
    for at in range(0, len(whole), 3):
        flip_a_byte(part, at)
        try:
            files.verify_part(log, manifest, 0)
        except StateLogError:
            pass
        else:  # a byte that says nothing, such as a time: the arrays are as they were
            names = ["gids", "status", "state.rank"]
            changed = files.read_part(log, manifest, 0, names)
            part.write_bytes(whole)
            for name, values in files.read_part(log, manifest, 0, names).items():
                np.testing.assert_array_equal(changed[name], values)
        part.write_bytes(whole)


def say_slots(log: Path) -> None:
    change_manifest(log, lambda manifest: manifest.update(in_flight="slots"))


def leave(array: str, value: int) -> Callable[[Path], None]:
    """Return what puts a number into an array of a log, with right checksums."""
    return lambda log: change_part(log, lambda arrays: arrays[array].__setitem__(-1, value))


CRAFTED: dict[str, Any] = {
    "a sender beyond all vertices": (leave("records", 10**9), "records has"),
    "a negative sender": (leave("records", -1), "records has -1 to"),
    "a vertex beyond all": (leave("gids", 2**62), "gids has"),
    "no such status": (leave("status", 200), "status has"),
    "other messages in flight": (say_slots, "vertices are not named by numbers"),
    "a type that is none": (
        lambda log: change_manifest(log, lambda m: m["dtypes"].update(status="|O")),
        "there is no type '|O'",
    ),
    "a state less": (
        lambda log: change_manifest(log, lambda m: m["states"].clear()),
        "does not hold the states",
    ),
    "a log of another name": (
        lambda log: change_manifest(log, lambda m: m.update(superstep=5)),
        "was renamed or copied: it is the log",
    ),
}


@pytest.mark.parametrize("way", CRAFTED)
def test_a_crafted_log_is_named_and_the_one_before_it_used(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun = logged(tmp_path)
    craft, complaint = CRAFTED[way]
    craft(newest(tmp_path))
    result = resumed(tmp_path)
    assert complaint in caplog.text
    assert first_new_superstep(result, begun) == 4


def test_vertices_that_a_log_holds_twice_are_found(tmp_path: Path) -> None:
    logged(tmp_path, every=4)
    change_part(newest(tmp_path), lambda arrays: arrays["gids"].fill(arrays["gids"][0]))
    with pytest.raises((StateLogError, GraphError), match="it does not hold each vertex once"):
        resumed(tmp_path)


def test_a_log_that_was_renamed_or_copied_is_not_read_for_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun = logged(tmp_path)
    old, new = reversed(files.find_logs(tmp_path))
    renamed = new.rename(new.with_name(new.name.replace("-00000006", "-00000007")))
    shutil.copytree(old, old.with_name(old.name.replace("-00000004", "-00000008")))
    result = resumed(tmp_path)
    assert f"{renamed} was renamed or copied: it is the log {new.name}" in caplog.text
    assert first_new_superstep(result, begun) == 4


@pytest.mark.parametrize("name", ["99991231T235959Z", "99990101T000000Z", "20261399T000000Z"])
def test_a_log_of_no_time_of_the_past_stops_nothing(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun = logged(tmp_path)
    shutil.copytree(newest(tmp_path), tmp_path / f"{name}-0000-00000002")
    result = resumed(tmp_path)
    assert f"{name}-0000-00000002 has no time of the past in its name: move it away" in caplog.text
    assert first_new_superstep(result, begun) == 6
    logged(tmp_path)
    assert not [
        log for log in files.find_logs(tmp_path) if log.name.startswith("9999") and log.name[17:21] != "0000"
    ]


def test_what_a_link_leads_to_is_not_cleaned_away(tmp_path: Path) -> None:
    """Of a log that is too old, and of one that was begun: links in their places."""
    logs, elsewhere = tmp_path / "log", tmp_path / "elsewhere"
    logged(logs)
    for log in files.find_logs(logs):
        shutil.move(log, elsewhere / log.name)
        log.symlink_to(elsewhere / log.name)
    (elsewhere / newest(logs).name / "manifest.msgpack").unlink()
    before = sorted(elsewhere.rglob("*"))
    logged(logs, checkpoint=Checkpoint(logs, every=1, keep=1))
    assert sorted(elsewhere.rglob("*")) == before


def test_changed_logs_are_not_used_or_right_and_end_no_process() -> None:
    command = [sys.executable, log_mutations.__file__, "3", "60"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_what_a_dead_run_of_the_job_left_goes_when_a_log_is_finished(tmp_path: Path) -> None:
    logged(tmp_path)
    manifest = files.read_manifest(newest(tmp_path))
    left = [
        replace(manifest, run="20010101T000000Z-0000", program_key=key)
        for key in (manifest.program_key, "0" * 16)
    ]
    for dead, superstep in zip(left, (1, 2), strict=True):
        dead = replace(dead, superstep=superstep)
        files.begin_log(tmp_path / dead.name, dead)
    assert len(files.find_unfinished(tmp_path)) == 2
    logged(tmp_path)
    assert [files.superstep_of(path) for path in files.find_unfinished(tmp_path)] == [2]  # another job's


def test_the_mark_that_a_dead_run_left_on_a_finished_log_goes_with_the_next_run(tmp_path: Path) -> None:
    logged(tmp_path)
    finished = newest(tmp_path)
    manifest = files.read_manifest(finished)
    marks = [finished / f".{key}-{manifest.graph_key}.tmp" for key in (manifest.program_key, "0" * 16)]
    for mark in marks:
        mark.touch()
    files.remove_marks(tmp_path, manifest.program_key, manifest.graph_key)
    assert [mark.exists() for mark in marks] == [False, True]  # the other is no mark of this job


def test_a_folder_that_a_job_uses_is_refused_to_another_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_PATIENCE_SECONDS", 0.0)
    with lock.locked(tmp_path, Alone(), "PageRank"):
        who = rf"in use by another job: PageRank, process {os.getpid()} on host {platform.node()}\. Wait"
        with pytest.raises(StateLogError, match=who):
            logged(tmp_path)
    logged(tmp_path)
    with lock.locked(tmp_path, Alone(), "WCC"):
        pass


def test_where_all_logs_are_damaged_nothing_runs(tmp_path: Path) -> None:
    logged(tmp_path)
    for log in files.find_logs(tmp_path):
        cut(log / "part-00000.npz")
    with pytest.raises(StateLogError, match=r"none of the 2 state logs in .* Leave --resume out"):
        resumed(tmp_path)


def test_a_log_without_its_manifest_is_none(tmp_path: Path) -> None:
    begun = logged(tmp_path)
    (newest(tmp_path) / "manifest.msgpack").unlink()
    assert first_new_superstep(resumed(tmp_path), begun) == 4


def test_without_a_log_a_run_that_resumes_begins_at_superstep_0(tmp_path: Path) -> None:
    result = resumed(tmp_path / "absent")
    assert_same(result, run_on(1, PageRank(iterations=8), SKEWED, device="python"), exact=False)


def heavier() -> Sample:
    weights = list(SKEWED.weights)
    weights[0] += 1.0
    return Sample(SKEWED.sources, SKEWED.targets, weights, SKEWED.directed, SKEWED.vertices)


@pytest.mark.parametrize(
    ("program", "sample", "complaint"),
    [
        (PageRank(iterations=9), SKEWED, "another source, parameters or precision"),
        (WCC(), SKEWED, "of the program PageRank"),
        (PageRank(iterations=8), BATTERY["grid"], "of another graph"),
        (PageRank(iterations=8), heavier(), "of another graph"),
    ],
)
def test_a_foreign_log_is_refused(program: Vertex, sample: Sample, complaint: str, tmp_path: Path) -> None:
    logged(tmp_path)
    with pytest.raises(StateLogError, match=complaint):
        resumed(tmp_path, program, sample)


EDITED = """
from sigps import State, Vertex

STEP = {step}


def grown(x):
    return x * {factor}


class Edited(Vertex, message=int):
    LEAST = {least}
    total: State[int] = {begins}

    def compute(self, messages):
        self.total += grown(sum(messages)) + STEP + self.LEAST + {written}
        self.send_to_neighbors(1)
"""


@pytest.mark.parametrize("edit", ["step", "factor", "least", "begins", "written"])
@pytest.mark.parametrize("has_source", [True, False])
def test_a_program_that_was_edited_is_another(edit: str, has_source: bool, tmp_path: Path) -> None:
    def edition(**changed: int) -> Any:
        text = EDITED.format(**({"step": 1, "factor": 1, "least": 1, "begins": 1, "written": 1} | changed))
        path = tmp_path / f"edition_{len(list(tmp_path.glob('*.py')))}.py"
        path.write_text(text)
        found: dict[str, Any] = {"__name__": path.stem}
        exec(compile(text, str(path) if has_source else "<somewhere>", "exec"), found)
        return found["Edited"]()

    options: dict[str, Any] = {"device": "python", "max_supersteps": 3}
    graph, checkpoint = SKEWED.build(), Checkpoint(tmp_path / "log", every=2)
    run(edition(), graph, checkpoint=checkpoint, **options)
    run(edition(), graph, checkpoint=checkpoint, resume=True, **options)
    with pytest.raises(StateLogError, match="another source"):
        run(edition(**{edit: 2}), graph, checkpoint=checkpoint, resume=True, **options)


def test_so_many_logs_are_kept(tmp_path: Path) -> None:
    logged(tmp_path, supersteps=8, every=1)
    assert names(tmp_path) == ["00000007", "00000008"]
    logged(tmp_path, supersteps=5, checkpoint=Checkpoint(tmp_path, every=1, keep=3))
    # A run that begins anew takes nothing from one that was further.
    assert names(tmp_path) == ["00000003", "00000004", "00000005", "00000007", "00000008"]
    logged(tmp_path, supersteps=8, checkpoint=Checkpoint(tmp_path, every=4, keep=1))
    assert names(tmp_path) == ["00000008"]


def test_the_newest_run_is_gone_on_from(tmp_path: Path) -> None:
    logged(tmp_path, supersteps=6)
    begun = logged(tmp_path, supersteps=2)
    assert [log.name[-8:] for log in files.find_logs(tmp_path)] == ["00000002", "00000006", "00000004"]
    assert first_new_superstep(resumed(tmp_path), begun) == 2


def test_a_log_that_cannot_be_written_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written = files.write_part

    def full(path: Path, arrays: Any) -> None:
        if "00000004" in str(path) and "00001" in path.name:
            raise OSError(28, "No space left on device")
        written(path, arrays)

    monkeypatch.setattr(files, "write_part", full)
    result = logged(tmp_path, supersteps=8)
    assert "part-00001.npz cannot be written: No space left on device" in caplog.text
    assert names(tmp_path) == ["00000006", "00000008"]
    assert not list(tmp_path.glob("*-00000004"))
    assert_same(result, logged(tmp_path / "other", supersteps=8), exact=True)


@pytest.mark.parametrize("rank", [0, 1])
def test_whatever_a_writing_thread_raises_ends_nothing(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(path: Path, arrays: Any) -> None:
        if f"{rank:05}" in path.name:
            raise MemoryError
        written(path, arrays)

    written = files.write_part
    monkeypatch.setattr(files, "write_part", fail)
    result = logged(tmp_path)
    assert "cannot be written: MemoryError" in caplog.text
    assert (names(tmp_path), files.find_unfinished(tmp_path), result.saves) == ([], [], ())


def test_a_log_that_vanishes_while_it_is_written_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def vanish(path: Path, arrays: Any) -> None:
        if "00001" not in path.name:
            written(path, arrays)

    written = files.write_part
    monkeypatch.setattr(files, "write_part", vanish)
    monkeypatch.setattr(writer, "_PATIENCE_SECONDS", 0.2)
    logged(tmp_path)
    assert "do all ranks see one folder under this name?" in caplog.text
    assert names(tmp_path) == []


def test_what_is_no_log_is_left_alone(tmp_path: Path) -> None:
    for name in ("10-fold-cv", "2026-01-15", "good-20260101T000000Z-0000-00000002"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.msgpack").write_text("mine")
    begun = tmp_path / "20260101T000000Z-0000-00000005"
    begun.mkdir()
    (begun / "notes.txt").write_text("mine")
    logged(tmp_path)
    assert resumed(tmp_path).reason == "converged"
    assert len(list(tmp_path.glob("*/manifest.msgpack"))) == 3 + 2
    assert (begun / "notes.txt").read_text() == "mine"


def test_another_jobs_logs_stay(tmp_path: Path) -> None:
    logged(tmp_path)
    checkpoint = Checkpoint(tmp_path, every=1, keep=1)
    run_on(2, WCC(), SKEWED, device="cpu", max_supersteps=6, checkpoint=checkpoint)
    assert resumed(tmp_path).reason == "converged"


def test_a_log_beyond_max_supersteps_is_not_used(tmp_path: Path) -> None:
    begun = logged(tmp_path)
    options: dict[str, Any] = {"checkpoint": Checkpoint(tmp_path, every=50), "resume": True}
    result = logged(tmp_path, supersteps=5, **options)
    assert first_new_superstep(result, begun) == 4
    assert result.supersteps == 5
    with pytest.raises(StateLogError, match="it is 6 supersteps far, and max_supersteps is 3"):
        logged(tmp_path, supersteps=3, **options)


def test_more_ranks_than_vertices_with_names(tmp_path: Path) -> None:
    sample = Sample(["a", "b"], ["b", "a"])
    options: dict[str, Any] = {"device": "cpu", "checkpoint": Checkpoint(tmp_path, every=1)}
    run_on(4, PageRank(iterations=5), sample, max_supersteps=3, **options)
    result = run_on(3, PageRank(iterations=5), sample, resume=True, **options)
    assert result["rank"].tolist() == [0.5, 0.5]
    assert len(files.find_logs(tmp_path)) == 2


def test_what_may_not_be_asked_for() -> None:
    graph = SKEWED.build()
    with pytest.raises(ConfigError, match="give every= "):
        Checkpoint("log")
    with pytest.raises(ConfigError, match="keep=0"):
        Checkpoint("log", every=1, keep=0)
    with pytest.raises(ConfigError, match="seconds=-1"):
        Checkpoint("log", seconds=-1)
    with pytest.raises(ConfigError, match="seconds=inf must be a finite number"):
        Checkpoint("log", seconds=np.inf)
    with pytest.raises(ConfigError, match="nothing to go on from"):
        run(WCC(), graph, resume=True)
    with pytest.raises(ConfigError, match=r"must be a sigps\.Checkpoint"):
        run(WCC(), graph, checkpoint="log")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot write in /proc"):
        run(WCC(), graph, checkpoint=Checkpoint("/proc/log", every=1))


def test_a_traced_run_writes_its_history(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    graph = Graph.from_edges(["a", "b", "c"], ["b", "c", "d"])
    program = SSSP(source="a")
    run(program, graph, device="python", trace=["c"], checkpoint=Checkpoint(tmp_path, every=2))
    (path,) = tmp_path.glob("trace-*.parquet")
    rows = pyarrow.read_table(path).to_pylist()
    assert [row["id"] for row in rows] == ["c", "c"]
    assert [row["superstep"] for row in rows] == [0, 2]
    assert [row["before.distance"] for row in rows] == [np.inf, np.inf]
    assert [row["after.distance"] for row in rows] == [np.inf, 2.0]
    assert [message["length"] for message in rows[1]["sent"]] == [3.0]
    assert rows[1]["halted"]


class Breaks(Vertex, message=int):
    """One vertex has enough in superstep 5."""

    vertex: Param[int] = 3
    seen: State[int] = 0

    def compute(self, messages):
        self.seen += sum(messages)
        if self.superstep == 5 and self.id == self.vertex:
            raise ValueError("enough")
        self.send_to_neighbors(1)


def test_a_failure_names_the_log_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="enough") as raised:
        run(Breaks(), BATTERY["grid"].build(), device="python", checkpoint=Checkpoint(tmp_path, every=2))
    assert raised.value.__notes__[-1] == f"The last log is {newest(tmp_path)}: continue with --resume"
    assert newest(tmp_path).name.endswith("-00000004")


def test_every_rank_finds_the_log_to_go_on_from(tmp_path: Path) -> None:
    def run_rank(group: ThreadGroup) -> None:
        graph = BATTERY["grid"].build(group=group)
        checkpoint = Checkpoint(tmp_path, every=2, keep=1)
        run(Breaks(vertex=19), graph, device="python", partitioner="vertices", checkpoint=checkpoint)

    with pytest.raises(ValueError, match="enough") as raised:
        run_ranks(2, run_rank)
    assert "while computing vertex 19 in superstep 5" in raised.value.__notes__
    assert raised.value.__notes__[-1] == f"The last log is {newest(tmp_path)}: continue with --resume"
    assert newest(tmp_path).name.endswith("-00000004")


def test_the_cost_is_told(tmp_path: Path) -> None:
    result = logged(tmp_path)
    assert [s.superstep for s in result.saves] == [2, 4, 6]
    assert all(s.num_bytes > 8 * result.num_vertices for s in result.saves)
    assert "more for 3 state logs" in result.summary()
    assert isinstance(result.stats[0], SuperstepStats)


def test_logs_are_written_where_python_logs_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logged(tmp_path)
    with caplog.at_level(logging.INFO):
        resumed(tmp_path)
    assert f"goes on from {newest(tmp_path)}" in caplog.text
