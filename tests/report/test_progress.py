"""What is said of a run while it runs."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import sigps
from sigps import ConfigError, Graph
from sigps.apps import PageRank
from sigps.engine.stats import SuperstepStats
from sigps.report.progress import live_progress, live_wait, progress_text

STATS = [SuperstepStats(s, "pull", 7, 1000, 0, 0.1, 1.0) for s in range(5)]
RING = Graph.from_edges([0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize(
    ("num_new", "seconds", "limit", "text"),
    [
        (0, 0.0, None, "superstep 4: 7 active, 1,000 messages"),
        (5, 2.0, None, "superstep 4: 7 active, 1,000 messages; 2.5/s, 2,500 messages/s"),
        (2, 0.5, 9, "superstep 4: 7 active, 1,000 messages; 4/s, 4,000 messages/s; at most 4 left, 1.00 s"),
    ],
)
def test_rates_and_what_is_left(num_new: int, seconds: float, limit: int | None, text: str) -> None:
    assert progress_text(STATS, num_new, seconds, limit) == text


def test_a_terminal_shows_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with live_progress(10) as show:
        assert show is not None
        show(STATS)
    printed = capsys.readouterr().err
    assert "superstep 4: 7 active, 1,000 messages; " in printed
    assert "at most 5 left" in printed
    with live_progress(10, rank=1) as show:
        assert show is None


def test_a_terminal_shows_what_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with live_wait("reading [a].csv"):
        pass
    assert "reading [a].csv" in capsys.readouterr().err
    with live_wait("reading a.csv", rank=1):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_file_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with live_progress() as show, live_wait("reading a.csv"):
        assert show is None
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A notebook's cell: what was shown in it, in order."""
    shown: list[str] = []

    class ZMQInteractiveShell:
        pass

    handle = SimpleNamespace(update=shown.append)

    def display(what: str, display_id: bool) -> Any:
        assert display_id
        shown.append(what)
        return handle

    for name, content in {
        "ipykernel": {},
        "IPython": {"get_ipython": ZMQInteractiveShell},
        "IPython.display": {"HTML": str, "display": display},
    }.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return shown


def test_a_notebook_shows_a_line_that_vanishes(cell: list[str]) -> None:
    sigps.run(PageRank(iterations=3), RING, device="cpu", max_supersteps=3, progress=True)
    assert cell[0] == "superstep 0"
    assert '<progress value="3" max="3">' in cell[-2]
    assert "superstep 2: 3 active, 3 messages" in cell[-2]
    assert cell[-1] == ""


def test_progress_is_a_function_or_a_truth() -> None:
    seen: list[int] = []
    sigps.run(PageRank(iterations=2), RING, device="cpu", progress=lambda stats: seen.append(len(stats)))
    assert seen[-1] == 3
    sigps.run(PageRank(iterations=2), RING, device="cpu", progress=False)
    with pytest.raises(ConfigError, match="progress='yes' must be True, False, or a function"):
        sigps.run(PageRank(), RING, progress="yes")  # type: ignore[arg-type]
