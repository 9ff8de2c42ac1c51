"""The files that `sigps run` writes about a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sigps.cli.main import execute

JOB = """
program: sigps.apps:BFS
params: {source: 0}
graph: {generator: {rmat: {scale: 6, seed: 1}}}
engine: {device: cpu}
output: {top: 3}
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def data_of(page: Path) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_report_is_written(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "job.yaml", "--report", "run.html"]) == 0
    assert "wrote run.html" in capsys.readouterr().out
    assert sum(c["vertices"] for c in data_of(job / "run.html")["degrees"]["degree"]) == 64


@pytest.mark.mpi
def test_two_ranks_write_one_file_of_each_kind_about_all(job: Path) -> None:
    mpirun = Path(sys.executable).with_name("mpirun")
    command = [mpirun, "-n", "2", sys.executable, "-c", "from sigps.cli.main import main; main()"]
    files = ["--report", "run.html", "--timeline", "run.json", "--metrics", "run.prom"]
    subprocess.run([*command, "run", "job.yaml", *files], check=True, timeout=120, capture_output=True)
    data = data_of(job / "run.html")
    assert sum(c["vertices"] for c in data["degrees"]["degree"]) == 64
    assert sum(data["supersteps"]["bytes_moved"]) > 0
    assert "mpirun -n 2 sigps run job.yaml" in (job / "run.html").read_text()
    trace = json.loads((job / "run.json").read_text())["traceEvents"]
    assert {e["pid"] for e in trace if e["name"] == "supersteps" and e["ph"] == "X"} == {0, 1}
    assert sum(e["name"].startswith("superstep ") for e in trace) == len(data["supersteps"]["active"])
    assert 'sigps_peak_bytes{program="BFS",rank="1"}' in (job / "run.prom").read_text()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--report", "none/run.html"], "there is no folder none"),
        (["--report", "run.pdf"], "the page is HTML"),
        (["--set", "params={}", "--set", "many.source=[1, 2]", "--report", "run.html"], "is about one run"),
        (
            ["--set", "program=sigps.apps:betweenness", "--set", "params={}", "--timeline", "t.json"],
            "is a function",
        ),
    ],
)
def test_what_cannot_be_written_is_said_before_the_run(
    job: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    assert execute(["run", "job.yaml", *options]) == 2
    printed = capsys.readouterr()
    assert problem in printed.err
    assert printed.out == ""
