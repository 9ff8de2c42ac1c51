"""The predictions that `sigps plan` prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from edge_programs import Marks

from sigps.apps import BFS, SSSP, WCC, BiTriDN, MinimumSpanningForest, OutDegree, PageRank
from sigps.cli import main as cli
from sigps.cli.plan.forecast import (
    Forecast,
    advise,
    cores_line,
    is_search,
    kind_of,
    obstacle,
    rank_counts,
    steps_of_generator,
    table,
    transport_of,
)
from sigps.compiler.frontend.analysis import analyse
from sigps.costs.sizes import PartitionSize, Size
from sigps.costs.work import Work, work_of
from sigps.device.cuda import what_is_missing
from sigps.job.config import JobConfig, load_job
from sigps.job.streaming import Streaming


def job_of(
    folder: Path, *settings: str, graph: str = "{generator: {grid: {rows: 4000, columns: 4000}}}"
) -> JobConfig:
    path = folder / "job.yaml"
    path.write_text(f"program: sigps.apps:BFS\nparams: {{source: 0}}\ngraph: {graph}\n")
    return load_job(path, settings)


def lines_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli.execute(["plan", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def row(
    num_ranks: int, dense: float, latency: float, search: float | None = None, missing: float = 0.0
) -> Forecast:
    return Forecast(num_ranks, PartitionSize(10, 100), dense, latency, search, missing)


# --- decisions, as tables -----------------------------------------------------


@pytest.mark.parametrize(
    ("num_ranks", "counts"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])]
)
def test_smaller_numbers_of_ranks_are_compared(num_ranks: int, counts: list[int]) -> None:
    assert rank_counts(num_ranks) == counts


@pytest.mark.parametrize(
    ("program", "searches"),
    [(PageRank(), False), (BFS(source=0), True), (SSSP(source=0), True), (WCC(), True)],
)
def test_searches_are_programs_that_spread(program: object, searches: bool) -> None:
    assert is_search(analyse(program)) is searches


def test_some_programs_are_not_predicted() -> None:
    assert obstacle(analyse(PageRank())) == ""
    assert "sends nothing" in obstacle(analyse(OutDegree()))
    assert "edges of neighbours" in obstacle(analyse(BiTriDN()))
    assert "written out" in obstacle(analyse(MinimumSpanningForest()))
    assert "interpreter" in obstacle(None)
    assert "of the vertex schedule" in obstacle(analyse(PageRank()), "edge")


@pytest.mark.parametrize(
    ("generator", "supersteps"),
    [
        ("grid: {rows: 4000, columns: 4000}", 7999),
        ("grid: {rows: 30, columns: 50, diagonals: true}", 50),
        ("path: {n: 12}", 12),
        ("path: {n: 0}", None),
        ("star: {n: 12}", 3),
        ("complete: {n: 12}", 2),
        ("rmat: {scale: 5}", None),
    ],
)
def test_formulas_give_the_longest_search(tmp_path: Path, generator: str, supersteps: int | None) -> None:
    assert steps_of_generator(job_of(tmp_path, graph=f"{{generator: {{{generator}}}}}")) == supersteps


def test_no_formula_is_for_a_file(tmp_path: Path) -> None:
    assert steps_of_generator(job_of(tmp_path, graph="{path: a.txt}")) is None


@pytest.mark.parametrize(("device", "kind"), [("cuda", "h200"), ("cpu", "cpu"), ("python", None)])
def test_the_jobs_device_decides_what_is_predicted_for(tmp_path: Path, device: str, kind: str | None) -> None:
    assert kind_of(job_of(tmp_path, f"engine.device={device}"), 10**9, 2) == kind


def test_auto_is_what_this_machine_would_choose(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    assert kind_of(job, 10_000, 1) == "cpu"
    assert kind_of(job, 10**9, 2) == ("cpu" if what_is_missing() else "h200")


@pytest.mark.parametrize(
    ("streamed", "cores", "expected"),
    [
        (0, 16, ""),
        (
            13_714_200_000,
            1,
            "1 core of its host pull.* 1.00 times as fast at best, less than it costs to share",
        ),
        (
            13_714_200_000,
            16,
            "16 cores of its host pull.* 1.06 times as fast at best, less than it costs to share",
        ),
        (
            13_714_200_000,
            32,
            "32 cores of its host pull.* 1.12 times as fast at best, but sharing pages is not built",
        ),
    ],
)
def test_what_is_said_of_cores_beside_a_gpu(streamed: int, cores: int, expected: str) -> None:
    streaming = Streaming({}, 0, streamed, 8_472_301_056, 1 << 28, 0, "", "")
    found = cores_line(streaming, 4, cores)
    assert re.match(expected, found) if expected else found == ""


def test_a_record_is_half_as_wide_in_single_precision() -> None:
    size = Size(1000, 8000, False, 4, "")
    assert work_of(analyse(PageRank(), "single"), size, 4) == Work(4, 4 + 4, 4 + 4 + 5)
    assert work_of(analyse(SSSP(source=0)), size, 16) == Work(8, 4 + 8 + 4, 16 + 8 + 5)


@pytest.mark.parametrize(
    ("rows", "search", "supersteps", "expected"),
    [
        ([row(1, 9.0, 1.0, 5.0), row(2, 5.0, 2.0, 9.0)], True, 4, "use 1 rank: fewer are faster than 2"),
        ([row(1, 9.0, 1.0, 9.0), row(2, 5.0, 2.0, 5.0)], True, 4, "use 2 ranks"),
        ([row(1, 5.0, 1.0), row(2, 9.0, 2.0)], False, None, "use 1 rank: fewer are faster than 2"),
        ([row(1, 5.0, 1.0), row(2, 9.0, 2.0)], True, None, "use 1 rank: fewer are faster than 2"),
        (
            [row(1, 9.0, 1.0), row(2, 5.0, 2.0)],  # 8 of work against 3, and 1 more a superstep
            True,
            None,
            "a search that takes more than about 5 supersteps is faster on 1 rank",
        ),
        (
            [row(1, 9.0, 1.0), row(2, 5.0, 2.0)],
            False,
            None,
            "supersteps in which fewer than about 200 edges pass are faster on 1 rank",
        ),
        (
            [row(1, 9.0, 1.0), row(2, 4.0, 2.0), row(4, 5.0, 2.0)],
            False,
            None,
            "while supersteps are dense: use 2 ranks: fewer are faster than 4",
        ),
        (
            [row(1, 9.0, 1.0, missing=7.0), row(2, 5.0, 2.0)],
            False,
            None,
            "fewer ranks have too little memory",
        ),
        ([row(1, 9.0, 1.0, missing=7.0)], False, None, "1 rank has too little memory: plan with more"),
        (
            [row(1, 9.0, 1.0, missing=7.0), row(2, 9.0, 1.0, missing=2.0)],
            False,
            None,
            "2 ranks have too little memory: plan with more",
        ),
        ([row(1, 9.0, 1.0)], False, None, ""),
    ],
)
def test_advice(rows: list[Forecast], search: bool, supersteps: int | None, expected: str) -> None:
    assert expected in advise(rows, 1000, supersteps, is_search=search).replace("\n", " ")


def test_the_table_says_what_does_not_fit() -> None:
    lines = table([row(1, 9e-3, 1e-6, missing=2 << 30), row(2, 5e-3, 2e-6)])
    assert lines[1].split() == ["1", "0.0%", "0", "does", "not", "fit", "2.0", "GiB", "short"]
    assert lines[2].split() == ["2", "0.0%", "0", "5.00", "ms", "2.00", "us"]
    assert len({len(line) for line in lines}) == 1


# --- the command --------------------------------------------------------------


def test_a_search_through_a_large_grid_wants_one_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job_of(tmp_path)
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "-n", "2", "--device-kind", "h200")
    assert (
        "predicted for NVIDIA H200, each rank one of them, by times measured on one, two and four:" in lines
    )
    assert any(line.startswith("a search through this graph takes up to about 7,999 super") for line in lines)
    assert "use 1 rank: fewer are faster than 2" in lines
    assert lines[-1].endswith("--load counts them")


def test_dense_supersteps_of_a_large_graph_want_all_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job_of(tmp_path, graph="{generator: {rmat: {scale: 24}}}")
    arguments = ["--set", "program=sigps.apps:PageRank", "--set", "params={}", "--set", "engine.device=cuda"]
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "-n", "8", *arguments)
    assert [line.split()[0] for line in lines if line.startswith("  ")][-5:] == ["ranks", "1", "2", "4", "8"]
    assert "while supersteps are dense: use 8 ranks" in lines


def test_a_loaded_graph_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A grid of 10 x 20, cut between rows 4 and 5: 20 of 370 edges are cut, with as many ghosts."""
    job_of(tmp_path, graph="{generator: {grid: {rows: 10, columns: 20}}}")
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "-n", "2", "--load", "--set", "engine.device=cpu")
    assert "200 vertices, 740 stored edges, undirected, by counting it" in lines[0]
    assert lines[1] == "a rank of 2, the largest by 'edges':"
    (two,) = (line.split() for line in lines if line.startswith("      2 "))
    assert two[1:3] == ["5.4%", "20"]  # 20 of 370
    assert any("about 29 supersteps" in line for line in lines)
    assert "chance" not in lines[-1]


def test_a_search_begins_at_the_jobs_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "job.yaml")
    job_of(tmp_path, graph="{generator: {path: {n: 21}}}")
    lines = lines_of(capsys, path, "--load", "--set", "params.source=10")
    assert any("about 11 supersteps" in line for line in lines)
    assert cli.execute(["plan", path, "--load", "--set", "params.source=21"]) == 1
    assert "there is no vertex 21 in the graph" in capsys.readouterr().err


def test_a_graph_without_vertices_cannot_be_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job_of(tmp_path, graph="{generator: {path: {n: 0}}}")
    lines_of(capsys, str(tmp_path / "job.yaml"), "-n", "2")
    assert cli.execute(["plan", str(tmp_path / "job.yaml"), "--load"]) == 1
    assert "the graph has no vertices" in capsys.readouterr().err


@pytest.mark.parametrize(("program", "kind"), [("WCC", "undirected"), ("SCC", "directed")])
def test_a_program_that_needs_both_directions_is_planned_on_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, kind: str
) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 3\n")
    job_of(tmp_path, graph="{path: edges.txt, directed: true}")
    arguments = ["--load", "--set", f"program=sigps.apps:{program}", "--set", "params={}"]
    assert (
        f"4 vertices, 6 stored edges, {kind}" in lines_of(capsys, str(tmp_path / "job.yaml"), *arguments)[0]
    )


def test_max_supersteps_bounds_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_of(tmp_path)
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "--set", "engine.max_supersteps=12")
    assert any("about 12 supersteps" in line for line in lines)


def test_nothing_is_predicted_for_the_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_of(tmp_path, graph="{generator: {path: {n: 21}}}")
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "--set", "engine.device=python")
    assert lines[-1] == "no times are predicted: the job interprets (engine.device: python)"


def test_records_through_the_host_are_least_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_of(tmp_path)
    arguments = ["--device-kind", "h200", "--set", "exchange.transport=mpi"]
    lines = lines_of(capsys, str(tmp_path / "job.yaml"), "-n", "2", *arguments)
    assert any(line.endswith("several ranks take at least this:") for line in lines)


def test_what_is_kept_on_edges_goes_past_no_kernels() -> None:
    marks, ranks = analyse(Marks()), analyse(PageRank())
    for requested, expected in (("auto", "nccl"), ("peer", "nccl"), ("nccl", "nccl"), ("mpi", "mpi")):
        assert transport_of(requested, marks) == expected
        assert transport_of(requested, ranks) == requested


def test_an_unknown_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_of(tmp_path)
    assert cli.execute(["plan", str(tmp_path / "job.yaml"), "--device-kind", "h100"]) == 2
    assert "'h200', 'cpu'" in capsys.readouterr().err
