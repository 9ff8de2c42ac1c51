"""The README's programs and job do what it says; what each prints stands below it."""

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
BLOCKS: list[tuple[str, str]] = re.findall(
    r"^```(\w+)\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL
)
PROGRAMS = [
    (code, next(text for kind, text in BLOCKS[n:] if kind == "text"))
    for n, (kind, code) in enumerate(BLOCKS)
    if kind == "python"
]


def test_the_readme_has_programs_and_a_job() -> None:
    assert len(PROGRAMS) == 2
    assert [kind for kind, _ in BLOCKS].count("yaml") == 1


@pytest.mark.parametrize(("code", "output"), PROGRAMS)
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
