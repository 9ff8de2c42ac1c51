"""The programs and the job of the README and of `docs/` do what is said there; what each prints stands below it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import REPOSITORY

from sigps.cli import main as cli
from sigps.job.config import load_job

README = REPOSITORY / "README.md"
MODEL = REPOSITORY / "docs" / "program-model.md"
NETWORKX = REPOSITORY / "docs" / "networkx.md"
PAGES = [README, REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return (language, text) of each block of code."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def programs_of(page: Path) -> list[tuple[str, str]]:
    """Return each program, and the text that stands below it."""
    blocks = blocks_of(page)
    return [
        (code, next(text for kind, text in blocks[n:] if kind == "text"))
        for n, (kind, code) in enumerate(blocks)
        if kind == "python"
    ]


BLOCKS, PROGRAMS = blocks_of(README), programs_of(README)


def test_the_readme_has_programs_and_a_job() -> None:
    assert len(PROGRAMS) == 4
    assert [kind for kind, _ in BLOCKS].count("yaml") == 1
    assert len(programs_of(MODEL)) == 3
    assert not [page for page in PAGES if page not in (README, MODEL, NETWORKX) and programs_of(page)]


@pytest.mark.parametrize(("code", "output"), [*PROGRAMS, *programs_of(MODEL), *programs_of(NETWORKX)])
def test_a_program_prints_what_stands_below_it(tmp_path: Path, code: str, output: str) -> None:
    assert printed(tmp_path, code) == output


@pytest.mark.mpi
def test_the_first_program_prints_the_same_under_mpirun(tmp_path: Path) -> None:
    mpirun = Path(sys.executable).with_name("mpirun")
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python: pip install 'sigps[mpi]'")
    code, output = PROGRAMS[0]
    assert printed(tmp_path, code, mpirun, "-n", "2") == output


def printed(folder: Path, code: str, *launcher: object) -> str:
    path = folder / "shortest_paths.py"
    path.write_text(code)
    command = [*map(str, launcher), sys.executable, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_job_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(next(text for kind, text in BLOCKS if kind == "yaml"))
    assert cli.execute(["run", str(path), "--set", "engine.device=python"]) == 0
    assert "converged" in capsys.readouterr().out
    assert (tmp_path / "ranks.parquet").is_file()
    assert load_job(path).params == {"damping": 0.85, "iterations": 30}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    paths = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|cu|cuh|yaml|md)|(?:sigps|tests|scripts)/[\w./-]*)`", text)
    roots = (REPOSITORY, REPOSITORY / "sigps")
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []
