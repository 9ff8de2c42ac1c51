"""What a pool shows of itself: figures of windows as tables, the metrics as Prometheus's parser reads them."""

from __future__ import annotations

import stat
import time
from dataclasses import asdict, replace
from pathlib import Path

import msgpack
import pytest
from prometheus_client.parser import text_string_to_metric_families

import sigps
from sigps import ConfigError, OutputError
from sigps.apps import BFS, WCC, PageRank
from sigps.serve import recorder as module
from sigps.serve.metrics import write_metrics
from sigps.serve.overview import DeviceRow, Overview, TenantRow, jain, overview_of, window_between
from sigps.serve.pool_file import read_pool_file
from sigps.serve.recorder import Recorder

GRAPH = sigps.generate("rmat", scale=6, seed=1)


def at(seconds: float, busy: float, **tenants: tuple[float, float, int]) -> Overview:
    """Return a pool of one device; tenants are weight, seconds of leases, jobs."""
    rows = [TenantRow(name, w, s, active, 0, 0, 0) for name, (w, s, active) in tenants.items()]
    return Overview(0.0, seconds, [DeviceRow("cpu 0", 0, 0, busy, 10, 0, 0)], rows, [], [])


def test_jain_by_hand() -> None:
    assert jain([]) is None
    assert jain([0, 0]) is None
    assert jain([1, 1, 1, 0]) == 0.75
    assert jain([3, 3, 3]) == 1.0


@pytest.mark.parametrize(
    ("before", "now", "fairness"),
    [
        ({"a": (1, 0, 1), "b": (3, 0, 1)}, {"a": (1, 1, 1), "b": (3, 3, 1)}, 1.0),
        ({"a": (1, 0, 1), "b": (1, 0, 1)}, {"a": (1, 2, 1), "b": (1, 0, 1)}, 0.5),
        ({"a": (1, 0, 1)}, {"a": (1, 2, 1)}, None),
        ({"a": (1, 0, 1), "b": (1, 0, 1)}, {"a": (1, 1, 1), "b": (1, 1, 0)}, None),  # b's jobs ended
        ({"a": (1, 0, 1)}, {"a": (1, 1, 1), "b": (1, 1, 1)}, None),  # b came
    ],
)
def test_fairness_is_of_tenants_with_jobs_at_both_ends(
    before: dict[str, tuple[float, float, int]],
    now: dict[str, tuple[float, float, int]],
    fairness: float | None,
) -> None:
    window = window_between(at(10, 1.0, **before), at(14, 3.0, **now))
    assert window.fairness == fairness
    assert (window.seconds, window.busy) == (4.0, {"cpu 0": 0.5})
    assert window.taken["a"] == now["a"][1]


def test_a_pool_counts_what_its_jobs_took() -> None:
    with sigps.pool("python", quantum=1e-4, lanes="never") as pool:
        pool.graph("rmat", GRAPH)
        jobs = [pool.submit(PageRank(iterations=5), "rmat", tenant=t, weight=2) for t in ("a", "b", "a")]
        for job in jobs:
            job.result(60)
        cancelled = pool.submit(PageRank(iterations=10**7), "rmat", tenant="b")
        failed = pool.submit(BFS(source=-3), "rmat", tenant="a")
        assert isinstance(failed.future.exception(60), sigps.GraphError)
        assert next(t for t in pool.overview().tenants if t.name == "b").active == 1
        cancelled.cancel()
        cancelled.future.exception(60)
        found = pool.overview()
        rows = pool.jobs()
    assert found.jobs == rows
    assert [(t.name, t.weight, t.active, t.done, t.failed, t.cancelled) for t in found.tenants] == [
        ("a", 2.0, 0, 2, 1, 0),
        ("b", 2.0, 0, 1, 0, 1),
    ]
    for tenant in found.tenants:
        mine = [row.lease_seconds for row in rows if row.tenant == tenant.name]
        assert tenant.lease_seconds == pytest.approx(sum(mine))
    (device,) = found.devices
    assert device.lease_seconds == pytest.approx(sum(row.lease_seconds for row in rows))
    assert device.leases >= 15
    assert (device.jobs, device.own_bytes) == (0, 0)
    assert device.graph_bytes > 0
    assert [(g.vertices, g.edges) for g in found.graphs] == [(GRAPH.num_vertices, GRAPH.num_edges)]
    crossed = overview_of(msgpack.unpackb(msgpack.packb(asdict(found))))
    assert crossed == replace(found, windows=[])


def test_metrics_are_the_overview(tmp_path: Path) -> None:
    with sigps.pool("python") as pool:
        pool.graph("rmat", GRAPH)
        pool.submit(WCC(), "rmat", tenant='we"ird\n').result(60)
        found = pool.overview()
    window = window_between(at(0, 0, a=(1, 0, 1), b=(1, 0, 1)), at(1, 1, a=(1, 1, 1), b=(1, 1, 1)))
    write_metrics(replace(found, windows=[window]), tmp_path / "pool.prom")
    text = (tmp_path / "pool.prom").read_text()
    samples = {
        (s.name.removeprefix("sigps_pool_"), *(value for _, value in sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }
    (tenant,) = found.tenants
    assert samples["lease_seconds_total", 'we"ird\n'] == tenant.lease_seconds
    assert samples["ended_jobs_total", "done", 'we"ird\n'] == 1
    assert samples["device_busy_seconds_total", "python 0"] == found.devices[0].lease_seconds
    uses = [samples["device_bytes", "python 0", use] for use in ("graphs", "jobs", "free")]
    assert sum(uses) == found.devices[0].num_bytes
    assert (samples["graph_vertices", "rmat"], samples["fairness",]) == (GRAPH.num_vertices, 1.0)
    assert stat.S_ISREG((tmp_path / "pool.prom").stat().st_mode)


def test_files_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    look = lambda: at(1, 0)  # noqa: E731
    with (
        pytest.raises(OutputError, match=r"none/p\.html cannot be written"),
        Recorder(look, str(tmp_path / "none" / "p.html"), None, 5.0),
    ):
        pass
    folder = tmp_path / "later"
    folder.mkdir()
    with Recorder(look, str(folder / "p.html"), str(folder / "p.prom"), 5.0):
        assert sorted(p.name for p in folder.iterdir()) == ["p.html", "p.prom"]
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    assert caplog.text.count("cannot be written") == 1


def test_files_are_written_while_the_server_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WINDOW_SECONDS", 0.01)
    looks = iter(range(1, 10**9))
    path = tmp_path / "p.html"
    with Recorder(lambda: at(next(looks), 0), str(path), None, 0.02) as recorder:
        first = path.stat().st_mtime_ns
        while path.stat().st_mtime_ns == first or len(recorder.overview().windows) < 2:
            time.sleep(0.01)
    assert len(recorder.overview().windows) >= 2


def test_a_wrong_interval(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("graphs: {}\nevery: 0\n")
    with pytest.raises(ConfigError, match="every"):
        read_pool_file(tmp_path / "pool.yaml")
