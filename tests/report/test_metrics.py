"""The metrics of a run, as prometheus-client's own parser reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import sigps
from sigps import OutputError
from sigps.apps import BFS
from sigps.engine.stats import SuperstepStats
from sigps.report import metrics as module
from sigps.report.metrics import Metrics

STATS = [SuperstepStats(s, "push", 10 + s, 20, 5, 0.5, 1.25) for s in range(3)]


def samples(path: Path) -> dict[str, float]:
    def read() -> Iterator[tuple[str, float]]:
        for family in text_string_to_metric_families(path.read_text()):
            for sample in family.samples:
                others = [v for k, v in sorted(sample.labels.items()) if k != "program"]
                yield ".".join([sample.name, *others]), sample.value

    return dict(read())


def test_a_finished_run(tmp_path: Path) -> None:
    result = sigps.run(BFS(source=0), sigps.generate("path", n=5), device="cpu")
    assert result.record is not None
    Metrics(tmp_path / "run.prom", "BFS").finish(result, result.record)
    found = samples(tmp_path / "run.prom")
    assert found["sigps_supersteps"] == len(result.stats)
    assert found["sigps_messages"] == sum(s.messages for s in result.stats)
    assert found["sigps_superstep_seconds"] == pytest.approx(sum(s.seconds for s in result.stats))
    assert found["sigps_ended.cpu.converged"] == 1
    assert found["sigps_running"] == 0
    assert (found["sigps_graph_vertices"], found["sigps_graph_edges"]) == (5, 8)
    assert found["sigps_phase_seconds.supersteps"] == pytest.approx(result.account["supersteps"])


def test_while_it_runs_the_file_is_written_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    metrics = Metrics(tmp_path / "run.prom", "BFS")
    metrics.observe(STATS[:1])
    assert samples(tmp_path / "run.prom")["sigps_messages"] == 20
    now = 104.0
    metrics.observe(STATS[:2])
    assert samples(tmp_path / "run.prom")["sigps_messages"] == 20
    now = 105.5
    metrics.observe(STATS)
    found = samples(tmp_path / "run.prom")
    assert (found["sigps_messages"], found["sigps_moved_bytes"], found["sigps_running"]) == (60, 15, 1)
    assert found["sigps_active_vertices"] == 12


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"run\.prom cannot be written"):
        Metrics(tmp_path / "none" / "run.prom", "BFS").observe(STATS)
