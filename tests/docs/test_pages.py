"""The README and the pages in `docs/`: their programs print what stands below them; jobs, commands and links are right.

The programs of a page run one after another, in one place, as cells of a notebook do. Blocks marked `py` are the code
of other systems.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from places import REPOSITORY

import sigps
from sigps.cli.main import sigps as command
from sigps.job.config import load_job

README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
OWN_PROGRAM = DOCS / "how-to" / "own-program.md"
JOBS = DOCS / "how-to" / "jobs.md"
PAGES = [
    README,
    REPOSITORY / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
]
NEEDS = {DOCS / "how-to" / "pyg.md": "torch_geometric"}
"""Packages that the test environment lacks, by the page that asks for them."""

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path, kind: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text()) if name == kind]


WITH_PROGRAMS = [page for page in PAGES if blocks_of(page, "python")]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def test_pages_have_programs() -> None:
    assert {README, OWN_PROGRAM, DOCS / "tutorial.md", DOCS / "program-model.md"} <= set(WITH_PROGRAMS)
    assert sum(len(blocks_of(page, "python")) for page in WITH_PROGRAMS) >= 20


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_programs_print_what_stands_below_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path
) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"needs {NEEDS[page]}")
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = [(*block.groups(), line_of(block, text)) for block in BLOCK.finditer(text)]
    blocks = [block for block in blocks if block[0] in ("python", "text")]
    for (kind, code, line), below in zip(blocks, [*blocks[1:], ("", "", 0)], strict=True):
        if kind == "python":
            assert run_block(page, line, code, names) == (below[1] if below[0] == "text" else "")


def line_of(block: re.Match[str], text: str) -> int:
    return text.count("\n", 0, block.start()) + 1


def run_block(page: Path, line: int, code: str, names: dict[str, Any]) -> str:
    """Run a block as a cell of a notebook, and return what it prints."""
    file = f"<ipython-input-{line}-{page.stem}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, file, "exec", dont_inherit=True), names)
    return printed.getvalue()


@pytest.mark.mpi
def test_the_first_program_prints_the_same_as_a_script_and_under_mpirun(tmp_path: Path) -> None:
    mpirun = Path(sys.executable).with_name("mpirun")
    if not mpirun.exists():
        pytest.skip("no mpirun beside this Python: pip install 'sigps[mpi]'")
    assert blocks_of(README, "python")[0] == blocks_of(OWN_PROGRAM, "python")[0]
    path = tmp_path / "shortest_paths.py"
    path.write_text(blocks_of(README, "python")[0])
    for launcher in ([], [str(mpirun), "-n", "2"]):
        ended = subprocess.run(
            [*launcher, sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout == blocks_of(README, "text")[0]


JOBS_OF_PAGES = [
    pytest.param(text, id=f"{name_of(page)}-{n}")
    for page in PAGES
    for n, text in enumerate(blocks_of(page, "yaml"))
    if text.startswith("program:")
]


@pytest.mark.parametrize("text", JOBS_OF_PAGES)
def test_jobs_are_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    load_job(tmp_path / "job.yaml")


def test_the_job_of_the_tutorial_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sigps.cli import main as cli

    tutorial = DOCS / "tutorial.md"
    monkeypatch.chdir(tmp_path)
    run_block(tutorial, 1, blocks_of(tutorial, "python")[0], {"__name__": "__main__"})
    Path("ranks.yaml").write_text(blocks_of(tutorial, "yaml")[0])
    assert cli.execute(["run", "ranks.yaml"]) == 0
    assert "Valjean" in capsys.readouterr().out
    assert sigps.read_result("ranks.parquet").num_rows == 77


def test_the_job_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sigps.cli import main as cli

    path = tmp_path / "job.yaml"
    path.write_text(blocks_of(JOBS, "yaml")[0])
    assert cli.execute(["run", str(path), "--set", "engine.device=cpu"]) == 0
    assert "converged" in capsys.readouterr().out
    assert (tmp_path / "ranks.parquet").is_file()


COMMANDS = [
    pytest.param(line, id=line.split("#")[0].strip())
    for page in PAGES
    for block in blocks_of(page, "bash")
    for line in block.splitlines()
    if re.search(r"(^|\s)sigps ", line.split("#")[0])
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_have_these_options(line: str) -> None:
    words = shlex.split(line, comments=True)
    name, *rest = words[words.index("sigps") + 1 :]
    called: click.Command = command
    while isinstance(called, click.Group):
        called = called.commands[name]
    known = {option for parameter in called.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= known


def test_the_reference_has_every_public_name() -> None:
    reference = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"^\.\. auto\w+:: (?:sigps\.)?(\w+)$", reference, re.MULTILINE))
    assert set(sigps.__all__) <= listed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_paths_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
    paths = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|cu|cuh|yaml|md)|(?:sigps|tests|scripts)/[\w./-]*)`", text)
    roots = (REPOSITORY, REPOSITORY / "sigps")
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_tables_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "scripts" / "bench")
    import pages

    text = pages.PAGE.read_text()
    assert len(pages.MARK.findall(text)) > 5
    assert pages.with_tables(text) == text
