"""The threads that write one state log, while the next supersteps run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sigps.errors import StateLogError
from sigps.system.checkpoint import files
from sigps.system.checkpoint.files import Manifest, part_name

__all__ = ["LogWriter"]

_PATIENCE_SECONDS = 10.0
"""How long another rank's part may be invisible after it was written: file systems of several hosts lag."""


class LogWriter:
    """Writes one rank's part on a thread; on rank 0 another waits for all parts and writes the manifest.

    Args:
        folder: The log's folder, which exists.
        rank: This rank.
        arrays: The arrays of this rank's part, by name; they must not change until `part_written` returns.
        manifest: On rank 0, the manifest without its parts; None elsewhere.
        num_parts: How many ranks write.
        keep: How many logs of this job to keep.
        on_whole: Called on rank 0 with the folder when the log is finished, from a thread.
    """

    def __init__(
        self,
        folder: Path,
        rank: int,
        arrays: Mapping[str, NDArray[Any]],
        manifest: Manifest | None,
        num_parts: int,
        keep: int,
        on_whole: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        self.folder, self._on_whole = folder, on_whole
        self._arrays, self._manifest, self._keep = arrays, manifest, keep
        self._path = folder / part_name(rank)
        self._paths = [folder / part_name(r) for r in range(num_parts)]
        self._part_problem = self._problem = ""
        self._deadline: float | None = None
        self._threads = [self._start(self._write)]
        if manifest is not None:
            self._threads.append(self._start(self._finish))

    def wait(self, seconds: float) -> None:
        """Wait until the log is finished, for at most so many seconds: other ranks' parts may never come."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(seconds)
        while not files.is_finished(self.folder) and time.monotonic() < deadline:
            time.sleep(0.01)

    def part_written(self) -> str:
        """Wait until this rank's part is on the disk; return why it is not, or an empty text."""
        self._threads[0].join()
        return self._part_problem

    def end(self, *, gives_up: bool) -> str:
        """Wait for the manifest, or give it up; return why the log is not finished, or an empty text.

        Args:
            gives_up: Whether a part failed, so that the log cannot be finished.
        """
        self._deadline = time.monotonic() + (0.0 if gives_up else _PATIENCE_SECONDS)
        self._threads[-1].join()
        return self._problem

    @staticmethod
    def _start(work: Any) -> threading.Thread:
        thread = threading.Thread(target=work, name="sigps state log", daemon=True)
        thread.start()
        return thread

    def _write(self) -> None:
        try:
            files.write_part(self._path, self._arrays)
        except Exception as error:
            self._part_problem = f"{self._path} cannot be written: {files.reason_of(error)}"
        self._arrays = {}

    def _finish(self) -> None:
        assert self._manifest is not None
        try:
            self._await_parts()
            parts = [files.described(path) for path in self._paths]
            replace(self._manifest, parts=parts).write(self.folder)
        except Exception as error:
            self._problem = f"{self.folder} cannot be finished: {files.reason_of(error)}"
            files.remove_log(self.folder)
            return
        self._on_whole(self.folder)
        files.remove_old(self.folder, self._manifest, self._keep)

    def _await_parts(self) -> None:
        pause = 0.001
        while missing := [path for path in self._paths if not path.exists()]:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise StateLogError(
                    f"{missing[0].name} is not there: do all ranks see one folder under this name?"
                )
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
