"""The page of a server, read in a browser: its figures are the server's table."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browsers import Opened, chromium

import sigps
from sigps.apps import BFS, WCC, PageRank
from sigps.cli import main as cli
from sigps.serve.overview import Overview
from sigps.serve.page import write_page
from sigps.serve.pool_file import read_pool_file
from sigps.serve.server import Server

POOL = """
socket: s
devices: python
quantum: 0.001
graphs: {rmat: {generator: {rmat: {scale: 6, seed: 1}}}}
tenants: {ada: {weight: 3}}
page: jobs.html
metrics: jobs.prom
every: 60
"""


class Served(NamedTuple):
    """What a server left: a folder with its files, and the pool at its end."""

    folder: Path
    last: Overview


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("served")
    (folder / "pool.yaml").write_text(POOL)
    with Server(read_pool_file(folder / "pool.yaml")) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        client = sigps.connect(folder / "s")
        for tenant in ("ada", "<b>bob"):
            client.submit(PageRank(iterations=10**7), "rmat", tenant=tenant)
        client.submit(BFS(source=1), "rmat").result(60)
        with pytest.raises(sigps.GraphError):
            client.submit(BFS(source=-1), "rmat").result(60)
        client.submit(WCC(), "rmat", tenant="ada").result(60)
        while sum(w.fairness is not None for w in client.overview().windows) < 2:
            time.sleep(0.1)
        assert cli.execute(["jobs", "--socket", str(folder / "s"), "--page", str(folder / "once.html")]) == 0
        server.stop()
        thread.join(60)
    return Served(folder, server._recorder.overview())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_it_is_one_file_that_names_no_other(served: Served) -> None:
    names = sorted(path.name for path in served.folder.iterdir())
    assert names == ["jobs.html", "jobs.prom", "once.html", "pool.yaml"]
    for name in ("jobs.html", "once.html"):
        text = (served.folder / name).read_text(encoding="utf-8")
        assert " src=" not in text
        assert "<b>bob" not in text
    assert 'http-equiv="refresh"' not in (served.folder / "once.html").read_text()
    assert "sigps_pool_ended_jobs_total" in (served.folder / "jobs.prom").read_text()


def test_figures_on_the_page_are_the_servers(browser: Any, served: Served) -> None:
    opened = Opened(browser, served.folder / "jobs.html", color_scheme="dark")
    assert opened.logged == []
    assert set(opened.requested) <= {"file", "data"}
    assert opened.page.evaluate("document.documentElement.dataset.scheme") == "dark"
    last = served.last
    assert len(last.jobs) == 5
    rows = [[j.number, j.supersteps, j.lease_seconds, j.num_bytes, j.joined] for j in last.jobs]
    assert opened.values("#jobs tbody td[data-value]") == [str(value) for row in rows for value in row]
    states = opened.page.eval_on_selector_all("#jobs td:nth-child(6)", "all => all.map(c => c.textContent)")
    assert states == ["done", "failed", "done", "cancelled", "cancelled"]
    tenants = [[t.weight, t.lease_seconds, t.active, t.done, t.failed, t.cancelled] for t in last.tenants]
    assert opened.values("#tenants tbody td[data-value]") == [str(value) for row in tenants for value in row]
    names = opened.page.eval_on_selector_all("#tenants td:first-child", "all => all.map(c => c.textContent)")
    assert names == ["(no name)", "<b>bob", "ada"]
    (d,) = last.devices
    device = [d.jobs, d.leases, d.lease_seconds, d.graph_bytes, d.own_bytes, d.num_bytes]
    assert opened.values("#devices td[data-value]") == [str(value) for value in device]
    assert opened.page.inner_text("#num-done") == "2"
    assert opened.page.inner_text("#num-running") == "0"
    shown = [w.fairness for w in last.windows if w.fairness is not None and w.end > last.at - 60]
    assert float(opened.page.inner_text("#fairness")) == pytest.approx(sum(shown) / len(shown), abs=6e-4)
    assert opened.page.locator(".lines polyline").count() >= 2


def test_a_phone_reads_it(browser: Any, served: Served) -> None:
    opened = Opened(browser, served.folder / "once.html", viewport={"width": 390, "height": 844})
    assert opened.logged == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
    assert opened.page.inner_text("#num-running") == "2"


def test_a_page_that_is_no_longer_written_says_so(browser: Any, served: Served, tmp_path: Path) -> None:
    now = time.time()
    for age, is_old in ((0, False), (1000, True)):
        write_page(replace(served.last, at=now - age), tmp_path / "page.html", every=60.0)
        opened = Opened(browser, tmp_path / "page.html")
        assert opened.page.is_visible("#old") == is_old


def test_an_empty_pool(browser: Any, tmp_path: Path) -> None:
    write_page(Overview(0.0, 1.0, [], [], [], []), tmp_path / "page.html")
    opened = Opened(browser, tmp_path / "page.html")
    assert opened.logged == []
    assert opened.page.inner_text("#fairness") == "\N{EN DASH}"
