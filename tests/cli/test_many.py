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


FUNCTIONS = """
import sigps
from sigps.apps import Distances

def reach(graph, hops, sources=("a",), **options):
    found = sigps.run_many(Distances, graph, source=list(sources), reduce={"distance": "max"}, **options)
    return found.as_one({"is_near": found.reduced["distance"] <= hops}, {"device": found.device})

def names(graph):
    return graph.num_vertices
"""


@pytest.fixture
def function_job(job: Path) -> Path:
    (job.parent / "study.py").write_text(FUNCTIONS)
    job.write_text(
        "program: study.py:reach\nparams: {hops: 1}\noutput: {path: out.csv}\nengine: {device: cpu}\n"
        "graph: {path: edges.txt, ids: string, directed: false}\n"
    )
    return job


def test_a_function_is_called_with_parameters_and_the_options_that_are_given(
    function_job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setting = ["--set", "params.sources=[a, b]", "--set", "engine.threads=1"]
    assert cli.execute(["run", str(function_job), *setting]) == 0
    rows = [["id", "is_near"], ["a", "true"], ["b", "true"], ["c", "false"], ["d", "false"]]
    assert table() == rows
    out = capsys.readouterr().out
    assert "converged" in out
    assert "device cpu" in out
    assert "highest is_near" in out
    assert cli.execute(["run", str(function_job), "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("params={}", "study.py:reach needs params.hops"),
        (
            "params={hops: 1, source: [a]}",
            "study.py:reach has no parameter 'source'; did you mean 'sources'?",
        ),
        ("program=study.py:names", "study.py:names has no parameter 'hops'"),
        ("many={hops: [1, 2]}", "many is of a vertex program, and study.py:reach is a function"),
        ("checkpoint={dir: log, every: 1}", "checkpoint is of a vertex program"),
        ("engine.trace=[a]", "engine.trace is of a vertex program"),
    ],
)
def test_mistakes_in_what_a_function_is_given(
    setting: str, says: str, function_job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = ["--set", "params=null"] if setting.startswith("many") else []
    (function_job.parent / "edges.txt").write_text("no graph")
    assert cli.execute(["run", str(function_job), *params, "--set", setting]) == 2
    assert says in capsys.readouterr().err


def test_what_a_function_finds_of_edges_is_written(
    function_job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edges = ["--set", "output.edges=edges.csv"]
    assert cli.execute(["run", str(function_job), *edges]) == 2
    assert "nothing on edges" in capsys.readouterr().err
    settings = ["--set", "program=sigps.apps:edge_betweenness", "--set", "params={normalised: false}"]
    assert cli.execute(["run", str(function_job), *settings, *edges]) == 0
    assert "wrote " in capsys.readouterr().out
    assert Path("edges.csv").read_text().splitlines()[0] == "source,target,centrality"


def test_what_a_function_must_return_and_what_is_not_for_one(
    function_job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ["--set", "program=study.py:names", "--set", "params=null", "--set", "engine=null"]
    assert cli.execute(["run", str(function_job), *settings]) == 2
    assert "study.py:names returned 4, and a job's function returns a sigps.Result" in capsys.readouterr().err
    assert cli.execute(["plan", str(function_job)]) == 2
    assert "study.py:reach is a function" in capsys.readouterr().err
    assert cli.execute(["explain", "study.py:reach"]) == 2
    assert "which runs programs: name the class of one of them" in capsys.readouterr().err
