"""Compiled code on disk: found again, thrown away when it is broken, and no need."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import SUPPORT
from worked_cases import CASES, kite

from sigps import run
from sigps.compiler.cpu import native
from sigps.native import cache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache folder; what this process compiled before is forgotten."""
    monkeypatch.setenv("SIGPS_CACHE_DIR", str(tmp_path / "cache"))
    native._compile.cache_clear()
    return tmp_path / "cache"


def lowest(threads: int = 1) -> list[int]:
    native._compile.cache_clear()
    return run(CASES["two_folds"].program(), kite(), device="cpu", direction="pull", threads=threads)[
        "low"
    ].tolist()


def test_what_was_compiled_is_read_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lowest() == [0, 0, 0, 0, 9]
    kept = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert len(kept) >= 1  # a loop
    monkeypatch.setattr(cache, "write", lambda key, value: pytest.fail(f"compiled again: {key}"))
    assert lowest() == [0, 0, 0, 0, 9]
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == kept


@pytest.mark.parametrize("junk", [b"", b"junk", b"\x80\x05N."])
def test_broken_files_are_compiled_anew(folder: Path, junk: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert lowest() == [0, 0, 0, 0, 9]
    for file in folder.iterdir():
        file.write_bytes(junk if junk else file.read_bytes()[:-10])
    with caplog.at_level(logging.INFO):
        assert lowest() == [0, 0, 0, 0, 9]


def test_a_folder_that_cannot_be_written_costs_only_time(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("a file where the folder should be")
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert lowest() == [0, 0, 0, 0, 9]
    assert "cannot be kept" in caplog.text


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SIGPS_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_dir() == tmp_path / "sigps"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_dir() == Path.home() / ".cache" / "sigps"


def test_a_second_process_reads_what_the_first_compiled(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(SUPPORT)!r})
from sigps.native import cache
writes = []
kept = cache.write
cache.write = lambda key, value: (writes.append(key), kept(key, value))
import sigps, worked_cases
program = worked_cases.CASES["two_folds"].program()
result = sigps.run(program, worked_cases.kite(), device="cpu", threads=1, direction="pull")
print(result["low"].tolist(), len(writes) > 0)
"""
    environment = {**os.environ, "SIGPS_CACHE_DIR": str(tmp_path)}
    for has_compiled in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == f"[0, 0, 0, 0, 9] {has_compiled}\n"
