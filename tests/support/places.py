"""Where things lie in the repository, for tests that start processes or read files of it."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
"""Modules that tests share: on the path of a process that imports them."""

REPOSITORY = SUPPORT.parent.parent
