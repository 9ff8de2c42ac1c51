"""The monitor thread: runs the fault detector of each run of a group, one run after another."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

__all__ = ["MonitorThread"]

log = logging.getLogger(__name__)

Work = Callable[[], None]

_POLL_SECONDS = 0.05


class MonitorThread:
    """A thread that stays from run to run and starts what is offered within `_POLL_SECONDS`.

    What is withdrawn before that never starts, so a run shorter than this costs no switch between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offered: Work | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="fault detector", daemon=True)
        self._thread.start()

    def offer(self, work: Work) -> None:
        """Let the thread call `work` at its next poll. Does not wait."""
        with self._lock:
            self._offered = work

    def withdraw(self) -> bool:
        """Take back what was offered; False where the thread has started it."""
        with self._lock:
            offered, self._offered = self._offered, None
        return offered is not None

    def is_current(self) -> bool:
        return threading.current_thread() is self._thread

    def end(self) -> None:
        """Let the thread end at its next poll. Does not wait."""
        self._is_over = True

    def _run(self) -> None:
        while not self._is_over:
            time.sleep(_POLL_SECONDS)
            with self._lock:
                work, self._offered = self._offered, None
            if work is not None:
                try:
                    work()
                except Exception:  # later runs need this thread
                    log.exception("the fault detector failed; this run is not watched any more")
