"""The page of a report: one file, complete without packages from elsewhere, read in a browser."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import Opened, chromium

import sigps
from sigps import ConfigError, OutputError
from sigps.apps import BFS, PageRank
from sigps.engine.stats import SuperstepStats
from sigps.report.charts import superstep_charts
from sigps.report.figures import superstep_columns
from sigps.report.page import Report

LARGEST = 1_500_000


@pytest.fixture(scope="module")
def result() -> sigps.Result:
    graph = sigps.generate("rmat", scale=8, seed=1)
    found = sigps.run(PageRank(iterations=4), graph, device="cpu")
    found.graph_of_test = graph  # type: ignore[attr-defined]  # the record keeps none alive
    return found


@pytest.fixture(scope="module")
def long_report() -> Report:
    graph = sigps.generate("path", n=8000)
    return sigps.run(BFS(source=0), graph, device="cpu", direction="push").report()


def test_it_is_one_file_that_names_no_other(result: sigps.Result, tmp_path: Path) -> None:
    result.report().save(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert " src=" not in text.split("<script", 1)[0]
    assert '<link rel="icon" href="data:,">' in text
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_eight_thousand_supersteps_stay_small(long_report: Report) -> None:
    assert long_report.figures["num_supersteps"] == 8000
    assert len(long_report.html.encode()) < LARGEST


def test_text_of_users_is_no_markup() -> None:
    graph = sigps.Graph.from_edges(["</script><b>", "x"], ["x", "y&z"])
    html = sigps.run(BFS(source="</script><b>"), graph, device="cpu").report().html
    assert "</script><b>" not in html
    assert "&lt;/script&gt;&lt;b&gt;" in html


def test_a_notebook_shows_it_in_a_frame(result: sigps.Result) -> None:
    shown = result.report()._repr_html_()
    assert shown.startswith("<iframe")
    assert shown.count("<") == 2  # all of the page is in an attribute


def test_a_missing_package_names_the_extra(result: sigps.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_altair(name: str, *others: Any, **named: Any) -> Any:
        if name == "altair":
            raise ImportError("No module named 'altair'")
        return imported(name, *others, **named)

    monkeypatch.setattr(builtins, "__import__", without_altair)
    with pytest.raises(ConfigError, match=r"needs altair.*pip install 'sigps\[report\]'"):
        result.report()


@pytest.mark.parametrize("top", ["run.html", Path("run.html"), -1, 2.5, True])
def test_a_path_in_the_place_of_a_number_is_told_where_it_belongs(result: sigps.Result, top: Any) -> None:
    with pytest.raises(ConfigError, match=r"report\(top=.*report\(\)\.save\("):
        result.report(top)


def test_a_folder_that_is_not_there(result: sigps.Result, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"none/run\.html cannot be written"):
        result.report().save(tmp_path / "none" / "run.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class OpenedReport(Opened):
    """A report in a browser."""

    def __init__(self, browser: Any, report: Report, folder: Path, **context: Any) -> None:
        report.save(folder / "run.html")
        super().__init__(browser, folder / "run.html", **context)
        self.wait_until_drawn(1)

    def wait_until_drawn(self, times: int) -> None:
        self.page.wait_for_function(
            f"Number(document.documentElement.dataset.drawn) >= {times}", timeout=120_000
        )

    def column(self, name: str) -> list[str]:
        number = 1 + ["superstep", "direction", "seconds", "active", "messages"].index(name)
        return self.values(f"#supersteps tbody td:nth-child({number})")


def test_figures_on_the_page_are_the_statistics(browser: Any, result: sigps.Result, tmp_path: Path) -> None:
    opened = OpenedReport(browser, result.report(), tmp_path)
    assert opened.logged == []
    assert set(opened.requested) <= {"file", "data"}
    assert opened.column("active") == [str(s.active) for s in result.stats]
    assert opened.column("messages") == [str(s.messages) for s in result.stats]
    assert [float(s) for s in opened.column("seconds")] == pytest.approx(
        [s.seconds for s in result.stats], rel=1e-5
    )
    assert opened.page.inner_text("#num-supersteps") == str(len(result.stats))
    assert opened.page.locator("canvas").count() == 5  # time, active, messages, traffic; degrees
    drawn = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 8"
    assert all(opened.page.eval_on_selector_all("canvas", f"all => all.map({drawn})"))


def test_supersteps_are_counted_in_whole_numbers() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    columns = superstep_columns([SuperstepStats(s, "pull", 5, 7, 0, 0.25, 1.0) for s in range(78)])
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for chart in superstep_charts(columns):
        drawn = vl_convert.vegalite_to_svg({**chart["spec"], "data": {"values": rows}})
        assert ">20</text>" in drawn
        assert "e+1" not in drawn


def test_a_press_sorts_the_table(browser: Any, result: sigps.Result, tmp_path: Path) -> None:
    opened = OpenedReport(browser, result.report(), tmp_path)
    opened.page.click("#supersteps th[data-name=seconds] button")
    slowest_first = [s.superstep for s in sorted(result.stats, key=lambda s: -s.seconds)]
    assert [int(s) for s in opened.column("superstep")] == slowest_first
    opened.page.click("#supersteps th[data-name=seconds] button")
    assert [float(s) for s in opened.column("seconds")] == sorted(float(s) for s in opened.column("seconds"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_reads_it_by_day_and_night(
    browser: Any, long_report: Report, tmp_path: Path, scheme: str
) -> None:
    phone = {"width": 390, "height": 844}
    opened = OpenedReport(browser, long_report, tmp_path, viewport=phone, color_scheme=scheme)
    assert opened.logged == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") == 390
    assert opened.page.evaluate("document.documentElement.dataset.scheme") == scheme
    opened.page.click("#log")
    opened.wait_until_drawn(2)
    opened.page.click("#scheme")
    opened.wait_until_drawn(3)
    assert opened.page.evaluate("document.documentElement.dataset.scheme") != scheme
    opened.page.click("#more")
    assert len(opened.column("superstep")) == 100
    assert opened.logged == []
