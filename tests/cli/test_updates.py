"""`sigps run` of jobs with `updates`: results that follow a graph, and logs from which a killed job goes on."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import sigps
from sigps import Graph
from sigps.apps import SSSP, WeightedLabels
from sigps.cli import main as cli

JOB = """
program: sigps.apps:SSSP
params: {source: 0}
graph: {path: graph.txt, weights: 2}
engine: {device: cpu, threads: 1}
updates: {path: updates.csv, batch: 10, guard: incremental}
output: {path: out.csv, top: 0}
"""
BATCHES = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(7)
    first = np.column_stack([draw.integers(0, 30, (60, 2)), draw.integers(1, 9, 60)])
    (tmp_path / "graph.txt").write_text("\n".join(" ".join(map(str, row)) for row in first.tolist()))
    rows = [
        f"{draw.choice(['+', '+', '-'])},{s},{t},{w},{at}"
        for at, (s, t, w) in enumerate(
            np.column_stack([draw.integers(0, 34, (118, 2)), draw.integers(1, 9, 118)])
        )
    ]
    (tmp_path / "updates.csv").write_text("\n".join(["op,source,target,weight,time", *rows]))
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def run(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(cli.sigps, ["run", str(folder / "job.yaml"), *words])


def distances(path: Path) -> dict[int, float]:
    with path.open() as file:
        return {int(row["id"]): float(row["distance"]) for row in csv.DictReader(file)}


def built_anew(folder: Path, batches: int = BATCHES, window: float | None = None) -> Graph:
    """Build a graph anew from the lines of both files."""
    edges = [(*map(int, line.split()), None) for line in (folder / "graph.txt").read_text().splitlines()]
    vertices = {end for edge in edges for end in edge[:2]}
    with (folder / "updates.csv").open() as file:
        rows = list(csv.DictReader(file))[: 10 * batches]
    for begin in range(0, len(rows), 10):
        for row in rows[begin : begin + 10]:
            ends = int(row["source"]), int(row["target"])
            if row["op"] == "-":
                edges = [edge for edge in edges if edge[:2] != ends]
            else:
                edges.append((*ends, int(row["weight"]), int(row["time"])))
        seen = [int(row["time"]) for row in rows[begin : begin + 10] if row["op"] == "+"]
        vertices |= {end for edge in edges for end in edge[:2]}
        if window is not None:
            late = {edge[:2] for edge in edges if edge[3] is not None and edge[3] <= max(seen) - window}
            edges = [
                edge
                for edge in edges
                if edge[:2] not in late or (edge[3] is not None and edge[3] > max(seen) - window)
            ]
    parts = list(zip(*edges, strict=True))
    return Graph.from_edges(*parts[:3], vertices=sorted(vertices))


def expected(folder: Path, batches: int = BATCHES, window: float | None = None) -> dict[int, float]:
    result = sigps.run(SSSP(source=0), built_anew(folder, batches, window), device="python")
    return dict(zip(result.ids.tolist(), result["distance"].tolist(), strict=True))


def test_the_last_result_is_that_of_the_last_version(folder: Path) -> None:
    ended = run(folder)
    assert ended.exit_code == 0, ended.output
    assert f"batch {BATCHES}: " in ended.output
    assert distances(folder / "out.csv") == expected(folder)


def test_results_are_written_on_the_way(folder: Path) -> None:
    ended = run(folder, "--set", "updates.output_every=5")
    assert ended.exit_code == 0, ended.output
    for number in (5, 10):
        assert distances(folder / f"out-{number:06d}.csv") == expected(folder, number)
    assert not (folder / "out-000011.csv").exists()


def test_edges_expire(folder: Path) -> None:
    ended = run(folder, "--set", "updates.window=35")
    assert ended.exit_code == 0, ended.output
    assert distances(folder / "out.csv") == expected(folder, window=35)


def test_a_killed_job_goes_on_where_it_was(folder: Path) -> None:
    words = ["--set", "checkpoint={dir: logs, every: 1}", "--set", "updates.window=35"]
    command = [sys.executable, "-u", "-m", "sigps", "run", "job.yaml", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            if line.startswith("batch 7:"):
                job.send_signal(signal.SIGKILL)
                break
    assert job.returncode == -signal.SIGKILL
    assert not (folder / "out.csv").exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        ended = run(folder, *words, "--resume")
    assert ended.exit_code == 0, ended.output
    assert "goes on after batch " in ended.output
    assert distances(folder / "out.csv") == expected(folder, window=35)
    assert len(list((folder / "logs").glob("batch-*"))) == 2


MPIRUN = Path(sys.executable).with_name("mpirun")


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun beside this Python: pip install 'sigps[mpi]'")
@pytest.mark.parametrize(
    ("program", "name", "is_set"),
    [
        (SSSP(source=0), "distance", []),
        (WeightedLabels(iterations=4), "label", ["--set", "params={iterations: 4}"]),
    ],
)
def test_ranks_follow_updates_and_go_on_in_another_number(
    program: sigps.Vertex, name: str, is_set: list[str], folder: Path
) -> None:
    is_set = ["--set", f"program=sigps.apps:{type(program).__name__}", *is_set]

    def found(file: str) -> dict[int, float]:
        with (folder / file).open() as table:
            return {int(row["id"]): float(row[name]) for row in csv.DictReader(table)}

    def expected(batches: int = BATCHES) -> dict[int, float]:
        result = sigps.run(program, built_anew(folder, batches, window=35), device="python")
        return dict(zip(result.ids.tolist(), map(float, result[name].tolist()), strict=True))

    def ended(ranks: int, *more: str) -> str:
        words = ["--set", "checkpoint={dir: logs, every: 4}", "--set", "updates.window=35", *is_set, *more]
        sigps_ = [sys.executable, "-m", "sigps", "run", "job.yaml", *words]
        done = subprocess.run(
            [MPIRUN, "-n", str(ranks), *sigps_],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return done.stdout

    first = ended(2, "--set", "updates.output_every=5")
    assert first.count("batch 12: ") == 1
    assert "incremental run, " in first
    assert found("out.csv") == expected()
    assert found("out-000005.csv") == expected(5)
    (folder / "logs" / "batch-000000012").rename(folder / "last")
    (folder / "out.csv").unlink()
    again = ended(3, "--resume")
    assert "goes on after batch 8" in again
    lines = [
        [line.rsplit(",", 1)[0] for line in out.splitlines() if line.startswith("batch ")]
        for out in (first, again)
    ]
    assert lines[1] == lines[0][8:]  # as many changed, too
    assert found("out.csv") == expected()


def test_a_tolerance_is_of_linear_programs(folder: Path) -> None:
    program = [
        "--set",
        "program=sigps.apps:PageRank",
        "--set",
        "params={}",
        "--set",
        "updates.tolerance=1e-9",
    ]
    ended = run(folder, *program)
    assert ended.exit_code == 0, ended.output
    assert "incremental run" in ended.output
    with (folder / "out.csv").open() as file:
        found = {int(row["id"]): float(row["rank"]) for row in csv.DictReader(file)}
    edges = [line.split()[:2] for line in (folder / "graph.txt").read_text().splitlines()]
    assert solution(folder, [(int(s), int(t)) for s, t in edges]) == pytest.approx(found, rel=1e-8)
    refused = run(folder, "--set", "updates.tolerance=1e-9")
    assert refused.exit_code != 0
    assert "is not followed within a tolerance" in f"{refused.output} {refused.exception}"


def solution(folder: Path, edges: list[tuple[int, int]]) -> dict[int, float]:
    """PageRank after all updates, by linear algebra on dense matrices: damping 0.85, what hangs is spread over all."""
    ids = {end for edge in edges for end in edge}
    with (folder / "updates.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        ends = int(row["source"]), int(row["target"])
        if row["op"] == "-":
            edges = [edge for edge in edges if edge != ends]
        else:
            edges.append(ends)
            ids |= set(ends)
    names = sorted(ids)
    place, n = {v: i for i, v in enumerate(names)}, len(names)
    counts = np.zeros((n, n))
    for s, t in edges:
        counts[place[t], place[s]] += 1
    degrees = counts.sum(axis=0)
    spread = np.where(degrees > 0, counts / np.maximum(degrees, 1), 1 / n)
    ranks = np.linalg.solve(np.eye(n) - 0.85 * spread, np.full(n, 0.15 / n))
    return dict(zip(names, ranks.tolist(), strict=True))


def test_logs_of_another_job_are_refused(folder: Path) -> None:
    words = ["--set", f"checkpoint={{dir: '{folder}/logs', every: 5}}"]
    assert run(folder, *words).exit_code == 0
    ended = run(folder, *words, "--resume", "--set", "params.source=1")
    assert ended.exit_code != 0
    assert "is another job's: its params differs" in str(ended.exception or ended.output)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "updates.window=soon"], "a time above 0, such as 3600, 90m or 7d"),
        (["--set", "updates.guard=never"], "auto, incremental, full, or"),
        (["--set", "updates.tolerance=2"], "less than 1"),
        (["--set", "updates.path=[]"], "a path, or a list of paths"),
        (["--set", "many={source: [0, 1]}", "--set", "params={}"], "'updates' is of one"),
        (["--set", "output={top: 1}", "--set", "updates.output_every=2"], "has nowhere to write"),
        (["--report", "run.html"], "runs after each batch of updates"),
        (["--retries", "2"], "start .* again with --resume"),
        (
            ["--set", "program=sigps.apps:betweenness", "--set", "params={}"],
            "updates are of a vertex program",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(folder: Path, words: list[str], message: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        checkpoint = ["--set", "checkpoint={dir: logs, every: 1}"] if "--retries" in words else []
        ended = run(folder, *words, *checkpoint)
    assert ended.exit_code != 0
    import re

    assert re.search(message, f"{ended.output} {ended.exception}")
