"""`sigps plan` as a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sigps.cli import main as cli


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("program: sigps.apps:PageRank\ngraph: {generator: {grid: {rows: 10, columns: 10}}}\n")
    assert cli.execute(["plan", str(path), "-n", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0]
        == "PageRank on a graph of 100 vertices, 360 stored edges, undirected, by the generator's formula"
    )
    assert [line.split()[0] for line in lines[2:6]] == ["graph", "state", "messages", "all"]
    assert cli.execute(["plan", str(path), "--set", "graph.generator.grid.rows=x"]) == 2


def test_what_this_machine_cannot_hold_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "program: sigps.apps:PageRank\ngraph: {generator: {grid: {rows: 100, columns: 100}}}\nengine: {device: cpu}\n"
    )
    assert cli.execute(["plan", str(path), "-n", "2"]) == 0
    assert "on this machine need" not in capsys.readouterr().out
    monkeypatch.setattr("sigps.host_memory.machine_memory", lambda: 1 << 20)
    assert cli.execute(["plan", str(path), "-n", "2"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"2 ranks on this machine need \d.* and it has 1\.0 MiB: use more machines", text), text
