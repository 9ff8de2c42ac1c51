"""`sigps plan` as a command."""

from __future__ import annotations

import re
from pathlib import Path

import gas_programs
import numpy as np
import pytest

from sigps import Graph
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


@pytest.mark.parametrize(("limit", "cached"), [(None, "0 B"), ("150MB", "1.9 MiB")])
def test_a_job_that_streams_to_a_gpu(
    limit: str | None, cached: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here is no GPU: an H200 is planned for."""
    store, path = tmp_path / "all.sigps", tmp_path / "job.yaml"
    packed = ["--opt", "scale=16", "--opt", "directed=false", "--packed", "--order", "degree"]
    assert cli.execute(["generate", "rmat", *packed, "-o", str(store)]) == 0
    engine = "device: cuda, stream: always" + (f", device_memory: {limit}" if limit else "")
    path.write_text(
        f"program: sigps.apps:BFS\nparams: {{source: 1}}\ngraph: {{path: {store}}}\nengine: {{{engine}}}\n"
    )
    capsys.readouterr()
    assert cli.execute(["plan", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert {"graph", "state", "messages", "unpacking", "heads", "cached", "all", "streamed"} <= named.keys()
    assert cached in named["cached"]
    assert ("1.9 MiB" if limit is None else "0 B") in named["streamed"]
    assert any(line.startswith("it streams: ") and "it was asked for" in line for line in lines)
    times = lines[lines.index(next(line for line in lines if line.startswith("predicted for"))) + 1 :]
    assert re.match(r"  a superstep that reads all edges takes .*s, .* cross$", times[0])
    assert len(times) == (2 if limit is None else 1)  # cores could take pages only where some cross


def test_a_job_that_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, path = tmp_path / "all.sigps", tmp_path / "job.yaml"
    packed = ["--opt", "n=1500", "--packed", "--order", "given"]
    assert cli.execute(["generate", "complete", *packed, "-o", str(store)]) == 0
    path.write_text(
        f"program: sigps.apps:PageRank\nparams: {{iterations: 2}}\ngraph: {{path: {store}}}\n"
        "engine: {threads: 1, host_memory: 6MB}\n"
    )
    capsys.readouterr()
    assert cli.execute(["plan", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = {line.split()[0]: line for line in lines if line.startswith("  ")}
    assert {"graph", "state", "messages", "unpacking", "cached", "all", "streamed"} <= named.keys()
    assert any(
        re.match(r"streamed, a dense superstep takes .*, of which unpacking .*; from a disk .*/s", line)
        for line in lines
    )
    assert any(line.startswith("it streams: ") and "host_memory is 5.7 MiB" in line for line in lines)
    assert cli.execute(["plan", str(path), "-n", "2"]) == 0
    text = capsys.readouterr().out
    assert "a rank of 2, " in text
    assert "  numbering " in text
    assert "it streams: " in text
    assert cli.execute(["run", str(path)]) == 0
    assert cli.execute(["plan", str(path), "--set", "engine.stream=never"]) == 1
    assert "or let it stream (stream='auto')" in capsys.readouterr().err
    assert cli.execute(["run", str(path), "--set", "engine.host_memory=1MB"]) == 1
    assert "even with its edges streamed" in capsys.readouterr().err
    path.write_text(
        f"program: sigps.apps:Bridges\ngraph: {{path: {store}}}\nengine: {{stream: always, device: cpu}}\n"
    )
    assert cli.execute(["plan", str(path)]) == 0
    assert re.search(
        r"\n  and up to .*B  of direct messages, if one goes along every edge\n", capsys.readouterr().out
    )


@pytest.mark.parametrize("limit", [None, "40MB"])
def test_values_on_edges_are_planned_where_all_change_and_where_none_does(
    limit: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A value of 8 bytes is kept and copied for its other end; as it changes it waits twice, and is grouped."""
    store, path = tmp_path / "all.sigps", tmp_path / "job.yaml"
    graph = Graph.from_edges(*np.triu_indices(600, 1), directed=False)
    graph.save(store, packed=True, order="given")
    engine = "{stream: always, device: cpu, threads: 1" + (f", host_memory: {limit}}}" if limit else "}")
    program = Path(gas_programs.__file__)
    path.write_text(f"program: {program}:BeliefPropagation\ngraph: {{path: {store}}}\nengine: {engine}\n")
    assert cli.execute(["plan", str(path)]) == 0
    text = capsys.readouterr().out
    found = re.search(r"\n  of these +([0-9.]+) MiB  if every value changes in every superstep", text)
    assert found is not None
    most = 4 * (8 + 8) * 600 * 599
    assert float(found[1]) == pytest.approx(most / 2**20, abs=0.06)
    assert (" of values on edges at most, in files" in text) == (limit is not None)
