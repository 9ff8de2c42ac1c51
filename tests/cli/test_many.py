"""Jobs of many runs: their tables against walks by hand, and what is wrong with a job before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigps.cli import main as cli

JOB = """
program: sigps.apps:Distances
many: {source: [a, c]}
graph: {path: edges.txt, ids: string, directed: false}
engine: {device: cpu, threads: 1}
output: {path: out.csv, fields: [distance]}
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "edges.txt").write_text("a b\nb c\nc d\n")
    (tmp_path / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.yaml"


def table(path: str = "out.csv") -> list[list[str]]:
    return [line.replace('"', "").split(",") for line in Path(path).read_text().splitlines()]


def test_each_run_has_its_rows(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.execute(["run", str(job)]) == 0
    distances = {"a": "0123", "c": "2101"}
    rows = [[s, v, d] for s in "ac" for v, d in zip("abcd", distances[s], strict=True)]
    assert table() == [["source", "id", "distance"], *rows]
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["a", "4", "converged"] in rows
    assert ["c", "3", "converged"] in rows
    assert "2 runs of Distances by source; side by side on device cpu" in out


def test_all_vertices_brought_together(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "many.source=all", "--set", "output.reduce={distance: sum}"]
    assert cli.execute(["run", str(job), *settings]) == 0
    assert table() == [["id", "distance"], ["a", "6"], ["b", "4"], ["c", "4"], ["d", "6"]]
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    at = lines.index(["highest", "distance"])
    assert lines[at + 2 : at + 6] == [["a", "6"], ["d", "6"], ["b", "4"], ["c", "4"]]
    assert cli.execute(["plan", str(job), *settings]) == 0
    assert "of one run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("many.source=a", "many.source is 'a', but it must be a list of values, one for each run, or all"),
        ("many.seed=[1]", "many gives parameters as many values as there are runs: source has 2, seed has 1"),
        ("many.sorce=[a, b]", "did you mean 'source'?"),
        ("params.source=b", "params.source is given in 'many', too: leave one out"),
        ("checkpoint={dir: log, every: 1}", "checkpoint is for one run, and 'many' asks for several"),
        ("engine.trace=[a]", "engine.trace is for one run"),
        ("output.edges=bounds.csv", "output.edges is for one run"),
        (
            "output.reduce={distance: mean}",
            "output.reduce.distance is 'mean', but it must be sum, min or max",
        ),
        (
            "output.reduce={far: sum}",
            "output.reduce names far, but Distances has the fields distance, reached",
        ),
        ("output.reduce={reached: sum}", "output.fields names distance, which output.reduce leaves out"),
        ("many=null", "Distances"),
    ],
)
def test_mistakes_are_named_before_the_graph_is_read(
    setting: str, says: str, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (job.parent / "edges.txt").write_text("no graph")
    assert cli.execute(["run", str(job), "--set", setting]) == 2
    assert says in capsys.readouterr().err


def test_every_vertex_is_for_a_parameter_that_names_one(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [
        "--set",
        "program=sigps.apps:Katz",
        "--set",
        "many={attenuation: all}",
        "--set",
        "output.fields=[score]",
    ]
    assert cli.execute(["run", str(job), *settings]) == 2
    assert "many.attenuation is 'all', every vertex, and it names none" in capsys.readouterr().err
