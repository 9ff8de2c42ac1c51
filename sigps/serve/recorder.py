"""What a server keeps of its last minutes, and the files in which it shows itself."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

from sigps.errors import ConfigError, OutputError
from sigps.extras import needs
from sigps.report.metrics import check_metrics_package
from sigps.serve.metrics import write_metrics
from sigps.serve.overview import Overview, Window, window_between
from sigps.serve.page import write_page

__all__ = ["Recorder"]

log = logging.getLogger(__name__)

_WINDOW_SECONDS = 1.0
_WINDOWS = 300  # that are kept: five minutes


class Recorder:
    """Looks at a pool every second; writes its page and its metrics now and then. Use it in a `with`.

    Files that cannot be written later on are logged once, and tried again: the server goes on.

    Args:
        look: Returns the pool as it is.
        page: The path of the page; None for none.
        metrics: The path of the metrics; None for none.
        every: Seconds between files.

    Raises:
        ConfigError: If a package is missing.
        OutputError: On entering, if a file cannot be written.
    """

    def __init__(
        self, look: Callable[[], Overview], page: str | None, metrics: str | None, every: float
    ) -> None:
        if page is not None:
            with needs("Jinja2", "report"):
                import jinja2  # noqa: F401
        if metrics is not None:
            check_metrics_package()
        self._look, self._page, self._metrics, self._every = look, page, metrics, every
        self._windows: deque[Window] = deque(maxlen=_WINDOWS)
        self._before = look()
        self._ending, self._problem = threading.Event(), ""
        self._thread = threading.Thread(target=self._record, name="sigps recorder", daemon=True)

    def overview(self) -> Overview:
        """Return the pool as it is, with its last minutes."""
        return replace(self._look(), windows=tuple(self._windows))

    def write(self) -> None:
        """Write the files.

        Raises:
            OutputError: If one cannot be written.
        """
        overview = self.overview()
        if self._page is not None:
            write_page(overview, self._page, self._every)
        if self._metrics is not None:
            write_metrics(overview, self._metrics)

    def __enter__(self) -> Recorder:
        self.write()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._write_or_log()

    def _record(self) -> None:
        written = time.monotonic()
        while not self._ending.wait(_WINDOW_SECONDS):
            now = self._look()
            self._windows.append(window_between(self._before, now))
            self._before = now
            if time.monotonic() - written >= self._every:
                written = time.monotonic()
                self._write_or_log()

    def _write_or_log(self) -> None:
        problem = ""
        try:
            self.write()
        except (ConfigError, OutputError) as error:
            problem = str(error)
            if problem != self._problem:
                log.warning("%s; it is tried again", problem)
        self._problem = problem
