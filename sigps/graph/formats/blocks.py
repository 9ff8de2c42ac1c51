"""Text files as blocks of whole lines: opened, decompressed, divided among the ranks.

A plain file is divided into byte ranges that end at line ends. A compressed file is decompressed by every rank
from its start; a block then belongs to the rank in whose share of the *compressed* bytes the reader's position is.
Both ways rank r's lines precede rank r + 1's, so the order of the edges does not depend on the number of ranks.

A line ends at a line feed, a carriage return, or both; blocks hold line feeds alone. A line is limited, and with it the
memory that a file takes which unfolds into one endless line.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import itertools
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sigps.errors import GraphError
from sigps.group import Group

__all__ = [
    "BYTE_ORDER_MARK",
    "COMMENTS",
    "Block",
    "FirstRows",
    "TextFile",
    "first_rows",
    "import_optional",
    "inner_suffix",
    "require_file",
    "sample",
]

COMMENTS = ("#", "%", "//")
"""The beginnings of comment lines, by default."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""With what some programs begin a text; of UTF-8."""


@dataclass(frozen=True)
class Block:
    """Whole lines of a file.

    Attributes:
        text: The lines, each ended by a newline and no carriage return.
        offset: The position of the first line in the decompressed file, in bytes.
        is_own: Whether the block belongs to this rank.
    """

    text: bytes
    offset: int
    is_own: bool = True


class TextFile:
    """A text file, compressed or not, that is read in blocks."""

    def __init__(self, path: str | Path, *, block_bytes: int | None = None) -> None:
        """Read the file's first bytes; it is not kept open.

        Args:
            path: The file.
            block_bytes: The approximate size of a block. None chooses it from the size of the file, so that the
                several blocks that are in memory at a time are small compared with the graph.

        Raises:
            GraphError: If the file is missing, a directory, unreadable or empty, or not compressed as its suffix says.
        """
        self.path = Path(path)
        require_file(self.path)
        with _explained(self.path), open(self.path, "rb") as raw:
            magic = raw.read(6)
        if not magic:
            raise GraphError(f"{self.path}: the file is empty; a graph needs at least one line")
        suffix = self.path.suffix.lower()
        self.compression = next((name for name, start in _MAGIC.items() if magic.startswith(start)), "")
        if suffix in _MAGIC and suffix != self.compression:
            raise GraphError(
                f"{self.path}: the name ends in {suffix}, but the content is not {suffix[1:]} data "
                f"(it begins with {magic!r}). Rename the file or fetch it again."
            )
        self.num_bytes = self.path.stat().st_size
        self._block_bytes = block_bytes or min(max(self.num_bytes // 128, 1 << 17), 1 << 20)

    @property
    def inner_suffix(self) -> str:
        """The suffix before that of compression; lower case, empty if there is none."""
        return inner_suffix(self.path)

    def head(self, num_bytes: int, most: int) -> tuple[bytes, int]:
        """Return the text in the first bytes of the file, decompressed to `most` bytes or a little more.

        Returns:
            The text, and how many bytes of the file it is.
        """
        parts: list[bytes] = []
        size = 0
        with self._opened() as (stream, raw), _explained(self.path):
            while size < most and raw.tell() < num_bytes and (part := stream.read(1 << 16)):
                parts.append(part)
                size += len(part)
            return b"".join(parts), raw.tell()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line without its end) from the start. Slow: for headers and first rows."""
        number = 0
        with self._opened() as (stream, _), _explained(self.path):
            for offset, text in self._whole_lines(stream, 0):
                for line in text.splitlines(keepends=True):
                    number += 1
                    if b"\0" in line:
                        raise GraphError(_binary(self.path, number))
                    mark = len(BYTE_ORDER_MARK) if number == 1 and line.startswith(BYTE_ORDER_MARK) else 0
                    yield offset + mark, line[mark:].rstrip(b"\r\n")
                    offset += len(line)

    def header(self, comment: bytes, *, first: int = 1) -> tuple[int, bytes, int | None] | None:
        """Return the first line that is neither blank nor a comment; None if there is none.

        Args:
            comment: The beginning of comment lines.
            first: The number of the first line to consider, from 1.

        Returns:
            The line's number, the line, and the next line's offset (None at the end of the file).
        """
        lines = enumerate(self.lines(), start=1)
        for number, (_, line) in lines:
            if number >= first and line.strip() and not line.lstrip().startswith(comment):
                return number, line, next((offset for _, (offset, _) in lines), None)
        return None

    def blocks(self, group: Group, *, start: int = 0, every: bool = False) -> Iterator[Block]:
        """Yield this rank's blocks of whole lines, in order.

        Args:
            group: The ranks that share the file.
            start: The position of the first line, in bytes of the decompressed file.
            every: Whether to yield the other ranks' blocks too, with `is_own` false.

        Raises:
            GraphError: If the file is truncated, damaged or binary.
        """
        start = start or self._mark_size()
        with self._opened() as (stream, raw), _explained(self.path):
            for block in self._own_blocks(stream, raw, start, group, every):
                if (at := block.text.find(b"\0")) >= 0:
                    lines_before = block.text.count(b"\n", 0, at)
                    raise GraphError(_binary(self.path, self.line_number(block.offset) + lines_before))
                yield block

    def line_number(self, offset: int) -> int:
        """Return the number, from 1, of the line that begins at `offset`. Reads the file up to that position."""
        with self._opened() as (stream, _), _explained(self.path):
            lines = self._whole_lines(stream, 0, offset)
            return 1 + sum(_with_plain_ends(text).count(b"\n") for _, text in lines)

    def _own_blocks(
        self, stream: BinaryIO, raw: BinaryIO, start: int, group: Group, every: bool
    ) -> Iterator[Block]:
        compressed = bool(self.compression)
        end = None
        if not compressed and not every:
            start, end = self._own_range(stream, start, group)
        _skip(stream, start)
        for offset, text in self._whole_lines(stream, start, end):
            is_own = True
            if group.size > 1 and (compressed or every):
                position = raw.tell() if compressed else offset
                is_own = min(position * group.size // (self.num_bytes + 1), group.size - 1) == group.rank
            if is_own or every:
                lines = _with_plain_ends(text)
                yield Block(lines if lines.endswith(b"\n") else lines + b"\n", offset, is_own)

    def _own_range(self, stream: BinaryIO, start: int, group: Group) -> tuple[int, int]:
        """Return the byte range of this rank's lines: those that begin in its equal share of the file."""
        bounds = []
        for rank in (group.rank, group.rank + 1):
            bound = start + (self.num_bytes - start) * rank // group.size
            bounds.append(_next_line(stream, bound) if start < bound < self.num_bytes else bound)
        stream.seek(0)
        return bounds[0], bounds[1]

    def _mark_size(self) -> int:
        """Return how many bytes the byte order mark has at the file's start; 0 without one."""
        with self._opened() as (stream, _), _explained(self.path):
            has_mark = stream.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK
        return len(BYTE_ORDER_MARK) if has_mark else 0

    def _whole_lines(
        self, stream: BinaryIO, offset: int, end: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, about a block of whole lines) from where the stream is, at `offset`, to `end`."""
        pending: list[bytes] = []
        num_pending = 0

        def read() -> bytes:
            left = self._block_bytes if end is None else end - offset - num_pending
            return stream.read(min(self._block_bytes, left))

        while text := read():
            cut = _end_of_lines(text)
            if cut:
                lines = b"".join([*pending, text[:cut]])
                yield offset, lines
                offset += len(lines)
                pending, num_pending, text = [], 0, text[cut:]
            pending.append(text)
            num_pending += len(text)
            if num_pending > _MAX_LINE_BYTES:
                raise GraphError(
                    f"{self.path}:{self.line_number(offset)}: the line is longer than {_MAX_LINE_BYTES >> 20} "
                    "MiB, the most that is read; write one edge a line"
                )
        if num_pending:
            yield offset, b"".join(pending)

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open the decompressed stream and the file that it reads."""
        with _explained(self.path), open(self.path, "rb") as raw:
            if self.compression == ".zst":
                import_optional("pyarrow", f"{self.path}: reading .zst files")
                import pyarrow

                inner = pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
                yield io.BufferedReader(inner), raw
                return
            opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(self.compression)
            if opener is None:
                yield raw, raw
                return
            with opener(raw, "rb") as stream:
                yield stream, raw


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a file, as (offset, line), and the number of lines before the first."""

    lines: list[tuple[int, bytes]]
    num_skipped: int


def first_rows(source: TextFile, comments: tuple[str, ...], count: int = 50) -> FirstRows:
    """Return up to `count` lines that are neither blank nor comments; fewer, at least one, if lines are very long.

    Raises:
        GraphError: If the file has none.
    """
    prefixes = tuple(prefix.encode() for prefix in comments)
    num_skipped = 0

    def candidates() -> Iterator[tuple[int, bytes]]:
        nonlocal num_skipped
        is_before = True
        for offset, line in source.lines():
            stripped = line.strip()
            if stripped and not stripped.startswith(prefixes):
                is_before = False
                yield offset, line
            num_skipped += is_before

    rows = list(sample(candidates(), count))
    if not rows:
        raise GraphError(
            f"{source.path}: the file has no rows, only {num_skipped} blank or comment lines "
            f"(comments begin with {' or '.join(comments)}; comment= names another beginning)"
        )
    return FirstRows(rows, num_skipped)


def sample(lines: Iterable[tuple[int, bytes]], count: int = 50) -> Iterator[tuple[int, bytes]]:
    """Yield up to `count` of (offset, line); after the first, as many as are together a MiB or two."""
    num_bytes = 0
    for offset, line in itertools.islice(lines, count):
        yield offset, line
        num_bytes += len(line)
        if num_bytes > _SAMPLE_BYTES:
            return


def require_file(path: Path) -> None:
    """Raise an error for a path that is no file, with the most similar name in its folder.

    Raises:
        GraphError: If `path` is missing or a directory.
    """
    if path.is_dir():
        raise GraphError(f"{path}: is a directory; name the graph file in it, or a native store")
    if path.exists():
        return
    parent = path.parent
    if not parent.is_dir():
        raise GraphError(f"{path}: no such file, and no directory {parent}; check the path")
    names = sorted(entry.name for entry in parent.iterdir())
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    hint = f"the nearest name there is {near[0]!r}" if near else f"{parent} has no similar name"
    raise GraphError(f"{path}: no such file; {hint}")


def inner_suffix(path: Path) -> str:
    """Return the suffix before that of compression, `.txt` of `graph.txt.xz`; lower case, empty if there is none."""
    return (path.with_suffix("") if path.suffix.lower() in _MAGIC else path).suffix.lower()


def import_optional(module: str, purpose: str) -> None:
    """Import a package of the `io` extra.

    Raises:
        GraphError: If it is not installed; says how to install it.
    """
    try:
        __import__(module)
    except ImportError as error:
        raise GraphError(
            f"{purpose} needs {module}, which cannot be imported ({error}). "
            "Install it with: pip install 'sigps[io]'"
        ) from error


_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh"}
_LINE_END = re.compile(rb"\n|\r\n?")
_MAX_LINE_BYTES = 1 << 28
_PROBE_BYTES = 1 << 12
_SAMPLE_BYTES = 1 << 20


def _skip(stream: BinaryIO, num_bytes: int) -> None:
    while num_bytes > 0 and (text := stream.read(min(num_bytes, 1 << 20))):
        num_bytes -= len(text)


def _next_line(stream: BinaryIO, offset: int) -> int:
    """Return the offset of the first line that begins at or after `offset`, which is not 0; else of the file's end."""
    offset -= 1
    stream.seek(offset)
    while text := stream.read(_PROBE_BYTES):
        if found := _LINE_END.search(text):
            is_halved = found.end() == len(text) and text.endswith(b"\r") and stream.read(1) == b"\n"
            return offset + found.end() + is_halved
        offset += len(text)
    return offset


def _end_of_lines(text: bytes) -> int:
    """Return where the last line ends that certainly ends in a text; 0 if there is none."""
    end = text.rfind(b"\n") + 1
    return end or text.rfind(b"\r", 0, len(text) - 1) + 1  # a last "\r" may be half of "\r\n"


def _with_plain_ends(text: bytes) -> bytes:
    """Return lines with a line feed alone at each end."""
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _binary(path: Path, line: int) -> str:
    return (
        f"{path}:{line}: the file holds zero bytes, so it is no text. "
        "Convert it to UTF-8 text, or name its format with format="
    )


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Replace errors of reading and decompressing by a GraphError that names the file."""
    try:
        yield
    except EOFError as error:
        raise GraphError(f"{path}: the compressed file ends too early ({error}); fetch it again") from error
    except (zlib.error, lzma.LZMAError) as error:
        raise GraphError(f"{path}: the compressed data is damaged ({error}); fetch it again") from error
    except OSError as error:
        if error.errno is None:  # as gzip, bz2 and Arrow report bad data
            raise GraphError(f"{path}: the compressed data is damaged ({error}); fetch it again") from error
        raise GraphError(f"{path}: cannot be read: {error.strerror}") from error
