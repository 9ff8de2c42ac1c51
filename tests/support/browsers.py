"""A headless Chromium for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Opened", "chromium"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the PATH (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Opened:
    """A page in a browser, with what it logged and asked the network for."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.logged: list[str] = []
        self.requested: list[str] = []
        self.page = browser.new_page(**context)
        self.page.on("console", lambda message: self.logged.append(message.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url.split(":")[0]))
        self.page.goto(path.as_uri())

    def values(self, cells: str) -> list[str]:
        """Return the exact values of some cells."""
        found: list[str] = self.page.eval_on_selector_all(cells, "cells => cells.map(c => c.dataset.value)")
        return found
