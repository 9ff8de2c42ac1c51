"""Compiled code on disk: one file a loop, named by a hash of all that it depends on.

The name covers the program (its generated functions, constants, types), the engine's own sources, the
versions of Python, LLVM, NumPy and sigps, and the processor. Code that is read is run, so the folder must be the
user's alone, and a file begins with a digest of its name and content, keyed by a secret of the folder: one that is
damaged, or was put there under another name, is compiled anew. Files hold plain data (msgpack), never objects.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import logging
import os
import secrets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack

__all__ = ["cache_dir", "find_obstacle", "read", "sources_in", "write"]

log = logging.getLogger(__name__)

_DIGEST_BYTES = 32


def cache_dir() -> Path:
    """Return the folder of compiled code: `SIGPS_CACHE_DIR`, or `sigps` in the user's cache folder."""
    given = os.environ.get("SIGPS_CACHE_DIR")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sigps"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"sigps-{os.geteuid()}"


def find_obstacle(folder: Path) -> str:
    """Return why compiled code is not kept in a folder, which is made where there is none; else an empty text."""
    try:
        _secret(folder)
    except OSError as error:
        return str(error) if error.errno is None else f"{error.strerror}: {error.filename}"
    return ""


def read(key: str) -> Any:
    """Return the plain data stored under a key, or None."""
    secret = _usable_secret(cache_dir())
    if secret is None:
        return None
    path = path_of(key)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            found = file.read()
        digest, value = found[:_DIGEST_BYTES], found[_DIGEST_BYTES:]
        if not hmac.compare_digest(digest, _digest(secret, path.name, value)):
            raise ValueError("it is damaged, or not of this folder")
        return msgpack.unpackb(value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.info("compiled code in %s cannot be read (%s); compiling anew", path, error)
        return None


def write(key: str, value: Any) -> None:
    """Store plain data under a key. Where the folder cannot be used, the next process compiles again."""
    secret = _usable_secret(cache_dir())
    if secret is None:
        return
    path, content = path_of(key), msgpack.packb(value)
    try:
        _write_whole(path, _digest(secret, path.name, content) + content)
    except OSError as error:
        log.info("compiled code cannot be kept in %s (%s)", path.parent, error)


def path_of(key: str) -> Path:
    name = hashlib.sha256(f"{key} {environment_key()}".encode()).hexdigest()[:40]
    return cache_dir() / f"{name}.bin"


def sources_in(folder: Path) -> list[Path]:
    """Return all files of a package's folder but Python's bytecode, which comes when a module is first imported."""
    return sorted(f for f in folder.rglob("*.*") if f.is_file() and f.parent.name != "__pycache__")


@functools.cache
def environment_key() -> str:
    """Hash the versions, the processor and sigps' own compiling code."""
    import sys

    import llvmlite
    import numpy as np

    from sigps.native.machine import processor

    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("compiler", "kernels", "model", "native"):
        for file in sources_in(package / folder):
            digest.update(file.read_bytes())
    digest.update(repr((sys.version, llvmlite.__version__, np.__version__, processor())).encode())
    return digest.hexdigest()


@functools.cache
def _usable_secret(folder: Path) -> bytes | None:
    """Return the secret of a folder; None, with one warning a process, where it cannot be used."""
    if obstacle := find_obstacle(folder):
        text = (
            "compiled code is not kept, so every process compiles anew: %s. Make %s a folder that only you can "
            "write, or let SIGPS_CACHE_DIR name one"
        )
        log.warning(text, obstacle, folder)
        return None
    return _secret(folder)


def _secret(folder: Path) -> bytes:
    """Return what keys the digests in a folder, which is made where there is none.

    Raises:
        OSError: If the folder or the secret cannot be read or made, or is not the user's alone.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_own(folder, os.stat(folder), stat.S_IWGRP | stat.S_IWOTH)
    path = folder / "secret"
    if not path.exists():
        with contextlib.suppress(FileExistsError):  # another process was first
            _write_whole(path, secrets.token_bytes(_DIGEST_BYTES), os.link)
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        _require_own(path, os.fstat(file.fileno()), stat.S_IRWXG | stat.S_IRWXO)
        return file.read()


def _require_own(path: Path, found: os.stat_result, closed: int) -> None:
    """Raise unless a file is the user's, and these permissions are nobody else's."""
    if found.st_uid != os.geteuid():
        raise OSError(f"{path} belongs to the user with the number {found.st_uid}")
    if found.st_mode & closed:
        raise OSError(f"{path} is open to others ({stat.filemode(found.st_mode)})")


def _write_whole(path: Path, content: bytes, name_it: Callable[[str, Path], None] = os.replace) -> None:
    """Write a file that others see whole or not at all, and that is the user's alone."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            name_it(file.name, path)
        finally:  # an ExitStack would keep the error, and with it the frames of all callers, until cycles are collected
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.name)


def _digest(secret: bytes, name: str, content: bytes) -> bytes:
    return hmac.digest(secret, name.encode() + b"\0" + content, "sha256")
