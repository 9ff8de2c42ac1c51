"""The notebooks in `docs/notebooks` run from top to bottom, and show what their text says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from places import REPOSITORY

NOTEBOOKS = REPOSITORY / "docs" / "notebooks"


@pytest.fixture(autouse=True)
def _packages_of_this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


def shown_by(name: str, folder: Path) -> list[dict[str, Any]]:
    """Run a notebook, and return what its cells show, each by media type."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs before it is committed"
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [dict(output.data) for output in outputs if output.output_type == "execute_result"]


def test_these_are_all() -> None:
    assert {path.name for path in NOTEBOOKS.iterdir()} == {
        "communities.ipynb",
        "own-program.ipynb",
        "ranking.ipynb",
    }


def test_ranking(tmp_path: Path) -> None:
    _, graph, result, ranks, page = shown_by("ranking.ipynb", tmp_path)
    assert "508 stored, undirected" in graph["text/html"]
    assert "converged" in result["text/html"]
    assert ranks["text/plain"].splitlines()[2].split() == ["Valjean", "0.0754", "0.5700"]
    assert page["text/html"].startswith("<iframe")


def test_own_program(tmp_path: Path) -> None:
    result, is_same, chart = shown_by("own-program.ipynb", tmp_path)
    assert "Rumour(source=0, chance=0.7)" in result["text/html"]
    assert is_same["text/plain"] == "True"
    assert chart["image/svg+xml"].startswith("<svg")


def test_communities(tmp_path: Path) -> None:
    graph, groups, drawing = shown_by("communities.ipynb", tmp_path)
    assert "77" in graph["text/html"]
    assert len(groups["text/plain"].splitlines()) == 7
    assert drawing["image/svg+xml"].count('aria-roledescription="circle"') == 77
