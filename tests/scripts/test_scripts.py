"""The scripts: what they say where something is missing, and that a second call installs nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from places import REPOSITORY

SCRIPTS = [
    *(REPOSITORY / "scripts" / name for name in ("quickstart", "test", "check", "docs")),
    REPOSITORY / ".ci" / "run",
]
TOOLS = ("bash", "cat", "cksum", "dirname", "rm", "mkdir")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the scripts beside a folder `bin` that holds the only commands there are."""
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("bench"))
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path


def write_command(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


def source(clone: Path, command: str) -> subprocess.CompletedProcess[str]:
    script = f"set -euo pipefail; . {clone}/scripts/environment; {command}"
    environment = {"PATH": str(clone / "bin")}
    return subprocess.run(
        [str(shutil.which("bash")), "-c", script],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_executable_bash(script: Path) -> None:
    assert script.stat().st_mode & 0o111
    ended = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "set -euo pipefail" in script.read_text()


def test_without_python_the_message_names_the_package(clone: Path) -> None:
    ended = source(clone, "install_extras io")
    assert ended.returncode == 1
    assert "Python 3.11 or newer" in ended.stderr
    assert "apt-get install python3 python3-venv" in ended.stderr


def test_without_venv_the_message_names_the_package(clone: Path) -> None:
    write_command(clone / "bin" / "python3", '[[ "$*" != *ensurepip* ]]')
    ended = source(clone, "install_extras io")
    assert ended.returncode == 1
    assert ended.stderr.endswith("apt-get install python3-venv\n")
    assert not (clone / ".venv").exists()


def test_a_second_call_installs_nothing(clone: Path) -> None:
    write_command(clone / ".venv" / "bin" / "python", f'echo "$*" >>{clone}/calls')
    for _ in range(2):
        ended = source(clone, "install_extras io,mpi")
        assert ended.returncode == 0, ended.stderr
    installs = [line for line in (clone / "calls").read_text().splitlines() if "install" in line]
    assert installs == ["-m pip install -q -e .[io,mpi]"]
    with (clone / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    source(clone, "install_extras io,mpi")
    assert (clone / "calls").read_text().count("pip install") == 2


def test_a_moved_environment_is_made_anew(clone: Path) -> None:
    write_command(clone / ".venv" / "bin" / "python", "true")
    (clone / ".venv" / "sigps-home").write_text("/elsewhere\n")
    make = f"mkdir -p .venv/bin; cat {clone}/bin/python3 >.venv/bin/python"
    write_command(clone / "bin" / "python3", f'if [[ "$*" == *"-m venv"* ]]; then {make}; fi')
    ended = source(clone, "make_environment")
    assert ended.returncode == 0, ended.stderr
    assert (clone / ".venv" / "sigps-home").read_text() == f"{clone}\n"
