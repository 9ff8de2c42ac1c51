"""Compiled code on disk: found again, thrown away when it is broken, and no need."""

from __future__ import annotations

import hmac
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest
from places import SUPPORT
from worked_cases import CASES, kite

from sigps import run
from sigps.compiler.cpu import native
from sigps.native import cache
from sigps.native.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    OPTIONAL,
    UINT,
    Number,
    Tuple,
    Vector,
    from_plain,
    plain,
)


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
    assert len(kept) >= 2  # a loop, and the secret
    monkeypatch.setattr(cache, "write", lambda key, value: pytest.fail(f"compiled again: {key}"))
    assert lowest() == [0, 0, 0, 0, 9]
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == kept


def damage(entries: list[Path], how: str) -> None:
    contents = [file.read_bytes() for file in entries]
    for file, content, other in zip(entries, contents, contents[1:] + contents[:1], strict=True):
        changed = {
            "cut": content[:-10],
            "junk": b"junk",
            "pickle": b"\x80\x05N.",
            "one bit": content[:-1] + bytes([content[-1] ^ 1]),
            "another's": other,
            "by another secret": hmac.digest(b"?" * 32, file.name.encode() + b"\0" + content[32:], "sha256")
            + content[32:],
        }
        file.write_bytes(changed[how])


@pytest.mark.parametrize("how", ["cut", "junk", "pickle", "one bit", "another's", "by another secret"])
def test_what_is_not_what_was_written_is_compiled_anew(
    how: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert lowest() == [0, 0, 0, 0, 9]
    cache.write("another", b"code")
    entries = sorted(folder.glob("*.bin"))
    damage(entries, how)
    with caplog.at_level(logging.INFO):
        assert lowest() == [0, 0, 0, 0, 9]
    assert f"{entries[0].parent}" in caplog.text
    assert "compiling anew" in caplog.text


def test_the_folder_and_the_secret_are_the_users_alone(folder: Path) -> None:
    assert cache.find_obstacle(folder) == ""
    assert [oct(path.stat().st_mode & 0o777) for path in (folder, folder / "secret")] == ["0o700", "0o600"]
    cache.write("key", [1, b"2"])
    assert cache.read("key") == [1, b"2"]
    (entry,) = folder.glob("*.bin")
    assert oct(entry.stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: folder.chmod(0o770), r"cache is open to others \(drwxrwx---\)"),
        (lambda folder: (folder / "secret").chmod(0o640), r"secret is open to others \(-rw-r-----\)"),
        (lambda folder: os.chown(folder, 4711, -1), "cache belongs to the user with the number 4711"),
        (lambda folder: (folder / "secret").rename(folder / "s") and (folder / "secret").symlink_to("s"), "symbolic"),
    ],
)  # fmt: skip
def test_a_folder_of_others_is_not_used(
    change: Callable[[Path], None], says: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache.write("key", b"code")
    try:
        change(folder)
    except PermissionError:
        pytest.skip("only root gives files away")
    cache._usable_secret.cache_clear()
    assert cache.read("key") is None
    (warning,) = caplog.messages
    assert re.search(says, warning)
    assert warning.endswith(
        f"Make {folder} a folder that only you can write, or let SIGPS_CACHE_DIR name one"
    )


def test_what_is_kept_is_plain_data() -> None:
    kinds = [NONE, BOOL, OPTIONAL, Vector(FLOAT, 3), Tuple((INT, Tuple((UINT,)), NONE, Number("f", 32)))]
    for kind in kinds:
        assert from_plain(msgpack.unpackb(msgpack.packb(plain(kind)))) == kind


def test_a_folder_that_cannot_be_written_costs_only_time(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        assert lowest() == [0, 0, 0, 0, 9]
    (warning,) = caplog.messages
    assert warning.startswith(
        f"compiled code is not kept, so every process compiles anew: File exists: {folder}. "
    )


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SIGPS_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_dir() == tmp_path / "sigps"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.cache_dir() == Path.home() / ".cache" / "sigps"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(cache.tempfile, "tempdir", None)
    monkeypatch.setattr(
        Path, "home", lambda: Path("~nobody-here").expanduser()
    )  # raises as for a user without a home
    assert cache.cache_dir() == tmp_path / f"sigps-{os.geteuid()}"


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


def test_bytecode_that_python_writes_makes_no_other_key(tmp_path: Path) -> None:
    """The first run of a program imports modules, whose bytecode is new; the second is to find what it kept."""
    (tmp_path / "part").mkdir()
    for name in ("a.py", "part/b.cu"):
        (tmp_path / name).write_text("1")
    found = cache.sources_in(tmp_path)
    assert found == [tmp_path / "a.py", tmp_path / "part" / "b.cu"]
    (tmp_path / "part" / "__pycache__").mkdir()
    (tmp_path / "part" / "__pycache__" / "c.cpython-311.pyc").write_text("2")
    assert cache.sources_in(tmp_path) == found
