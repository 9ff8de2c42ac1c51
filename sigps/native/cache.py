"""Compiled code on disk: one file a loop, named by a hash of all that it depends on.

The name covers the program (its generated functions, constants, types), the engine's own sources, the
versions of Python, LLVM, NumPy and sigps, and the processor. A file that cannot be read is compiled anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["cache_dir", "read", "write"]

log = logging.getLogger(__name__)


def cache_dir() -> Path:
    """Return the folder of compiled code: `SIGPS_CACHE_DIR`, or `sigps` in the user's cache folder."""
    given = os.environ.get("SIGPS_CACHE_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sigps"


@functools.cache
def environment_key() -> str:
    """Hash the versions, the processor and sigps' own compiling code."""
    import llvmlite
    import numpy as np

    from sigps.native.machine import processor

    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("compiler", "kernels", "model", "native"):
        for file in sorted(filter(Path.is_file, (package / folder).rglob("*.*"))):
            digest.update(file.read_bytes())
    digest.update(repr((sys.version, llvmlite.__version__, np.__version__, processor())).encode())
    return digest.hexdigest()


def path_of(key: str) -> Path:
    name = hashlib.sha256(f"{key} {environment_key()}".encode()).hexdigest()[:40]
    return cache_dir() / f"{name}.bin"


def read(key: str) -> Any:
    """Return the object stored under a key, or None."""
    try:
        return pickle.loads(path_of(key).read_bytes())
    except FileNotFoundError:
        return None
    except Exception as error:
        log.info("compiled code in %s cannot be read (%s); compiling anew", path_of(key), error)
        return None


def write(key: str, value: bytes) -> None:
    """Store bytes under a key. Where the folder cannot be written, the next process compiles again."""
    target = path_of(key)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            file.write(value)
        os.replace(file.name, target)
    except OSError as error:
        log.info("compiled code cannot be kept in %s (%s)", target.parent, error)
        with contextlib.suppress(OSError, UnboundLocalError):
            os.unlink(file.name)
