"""Where the states of jobs with a name lie."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sigps.errors import ConfigError
from sigps.serve.job import Job

__all__ = ["SAVE_SECONDS", "folder_of", "forget_state"]

SAVE_SECONDS = 60.0
"""From one state log of a job with a name to the next."""


def folder_of(snapshots: Path | None, tenant: str, name: Any) -> Path:
    """Return where the state of a job with a name lies.

    Raises:
        ConfigError: If the pool has no folder for states, or the name is none.
    """
    if snapshots is None:
        raise ConfigError("name= is of jobs whose state is saved: give the pool a folder, snapshots=")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
        raise ConfigError(f"name={name!r} must be 1 to 100 letters, digits, dots, dashes or underscores")
    return snapshots / f"tenant-{quote(tenant, safe='')}" / name


def forget_state(job: Job) -> None:
    """Remove the state of a job that has ended."""
    if job.folder is not None:
        shutil.rmtree(job.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # others of the tenant are there
            job.folder.parent.rmdir()
