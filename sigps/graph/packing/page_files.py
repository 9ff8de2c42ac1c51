"""Files of packed pages: read into a thread's own room, so that one that was cut short or changed is an error.

Reading what is mapped behind the end of its file would end the process by a signal. The copy takes 0.25 ns an arc of
kron-20, 1.77 bytes each.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError

__all__ = ["PageFile", "PageFiles"]


class PageFile:
    """A file of words, as it was when this was made; it stays open.

    Args:
        path: The file.
        num_bytes: What it must have.

    Raises:
        GraphError: If it cannot be opened, or has become shorter.
    """

    num_files = 1

    def __init__(self, path: Path, num_bytes: int) -> None:
        self._path, self._num_bytes = path, num_bytes
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise GraphError(f"{path} cannot be opened: {error.strerror}") from None
        weakref.finalize(self, os.close, self._file)
        self._changed_at = os.fstat(self._file).st_mtime_ns
        self.require()

    def require(self) -> None:
        """Check that the file is still what it was, by its length and its time.

        Raises:
            GraphError: If it is not.
        """
        self._require_length("")
        if os.fstat(self._file).st_mtime_ns != self._changed_at:
            raise GraphError(f"{self._path} was changed after it was opened. {_REMEDY}")

    def read(self, first: int, stop: int, page: int) -> NDArray[np.uint32]:
        """Return words of a page, in room of this thread: until it reads the next.

        Args:
            first: The first word.
            stop: The word behind the last.
            page: The page's number, for errors.

        Raises:
            GraphError: If they are no longer there, or the disk does not give them.
        """
        words = _room_of_thread(stop - first)
        self.read_into(words, first, page)
        return words

    def read_into(self, words: NDArray[np.uint32], first: int, page: int) -> None:
        """Bring words of a page, from a first one on, to where they are wanted; as `read` does."""
        raw, done = words.view(np.uint8).data, 0
        try:
            while done < raw.nbytes:
                count = os.preadv(self._file, [raw[done:]], 4 * first + done)
                if count == 0:
                    self._require_length(f" and ends within page {page:,}")
                    raise GraphError(f"{self._path} was changed while page {page:,} was read. {_REMEDY}")
                done += count
        except OSError as error:
            raise GraphError(f"{self._path}: page {page:,} cannot be read: {error.strerror}") from None

    def forget(self) -> None:
        """Let the system's cache of files drop what was read of it."""
        os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)

    def folder_of(self, page: int) -> Path:
        """Return the folder that has a page."""
        return self._path.parent

    def _require_length(self, where: str) -> None:
        found = os.fstat(self._file).st_size
        if found < self._num_bytes:
            raise GraphError(
                f"{self._path} has {found:,} of its {self._num_bytes:,} bytes{where}: it was changed after it was "
                f"opened. {_REMEDY}"
            )


class PageFiles:
    """Files among which pages are dealt out: page p is in the file p modulo their number. As one file of all pages.

    Args:
        files: The files.
        begins: [pages + 1], where each page begins among the words of all.

    Attributes:
        num_files: Files.
        words_of_files: [files], the words of each one's pages.
    """

    def __init__(self, files: Sequence[PageFile], begins: NDArray[np.uint64]) -> None:
        self._files, self.num_files = list(files), len(files)
        sizes = np.diff(begins.astype(np.int64))
        self._before = np.empty(sizes.size, dtype=np.int64)  # words of other files' pages before each page
        self.words_of_files = []
        for number in range(len(files)):
            own = slice(number, None, len(files))
            ends = np.cumsum(sizes[own])
            self._before[own] = begins[:-1].astype(np.int64)[own] - (ends - sizes[own])
            self.words_of_files.append(int(ends[-1]) if ends.size else 0)

    def require(self) -> None:
        """Check that all files are still what they were; as `PageFile.require` does."""
        for file in self._files:
            file.require()

    def read(self, first: int, stop: int, page: int) -> NDArray[np.uint32]:
        """Return words of a page, by their places among those of all; as `PageFile.read` does."""
        before = int(self._before[page])
        return self._file_of(page).read(first - before, stop - before, page)

    def read_into(self, words: NDArray[np.uint32], first: int, page: int) -> None:
        """Bring words of a page to where they are wanted; as `PageFile.read_into` does."""
        self._file_of(page).read_into(words, first - int(self._before[page]), page)

    def forget(self) -> None:
        """Let the system's cache of files drop what was read of them."""
        for file in self._files:
            file.forget()

    def folder_of(self, page: int) -> Path:
        """Return the folder that has a page."""
        return self._file_of(page).folder_of(page)

    def _file_of(self, page: int) -> PageFile:
        return self._files[page % len(self._files)]


_REMEDY = "Copy or write the store again"
_of_thread = threading.local()


def _room_of_thread(num_words: int) -> NDArray[np.uint32]:
    room: NDArray[np.uint32] | None = getattr(_of_thread, "room", None)
    if room is None or room.size < num_words:
        room = _of_thread.room = np.empty(num_words, dtype=np.uint32)
    return room[:num_words]
