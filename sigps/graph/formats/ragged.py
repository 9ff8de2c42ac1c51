"""Lines of any number of fields, as in adjacency files: all fields of a block, and the number in each line.

Fields are counted by array operations over the block's bytes. Arrow parses them, one field a line. Adjacency files
of undirected graphs list each edge twice; `ListedTwice` checks that without keeping the edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.arrow_columns import numbers_of, one_array, strings_of
from sigps.graph.formats.blocks import Block, TextFile, import_optional
from sigps.graph.formats.numerals import is_float, is_rounded, whole_number
from sigps.graph.formats.text_table import Layout, clean, read_csv
from sigps.graph.random_bits import GOLDEN, hash_strings, splitmix64
from sigps.group import Group

__all__ = ["ListedTwice", "RaggedLines", "RaggedParser"]


@dataclass
class RaggedLines:
    """A block's lines.

    Attributes:
        fields: All fields in the file's order, int64 or str; empty if another rank owns the block.
        counts: [num_lines], int64: the number of fields of each line that is no comment, 0 for blank lines; empty
            if another rank owns the block.
        num_lines: Lines that are no comments.
        num_comments: Lines that are comments.
        is_own: Whether the block belongs to this rank.
        block: The block.
    """

    fields: NDArray[Any]
    counts: NDArray[np.int64]
    num_lines: int
    num_comments: int
    is_own: bool
    block: Block

    @property
    def first_fields(self) -> NDArray[np.int64]:
        """The position in `fields` at which each line begins, [num_lines]."""
        return np.cumsum(self.counts) - self.counts


class RaggedParser:
    """Parses blocks of one file. Safe to call from several threads."""

    def __init__(
        self,
        source: TextFile,
        comments: tuple[str, ...],
        *,
        separators: str = "",
        type: str = "int64",
        may_mix: bool = True,
    ) -> None:
        """Prepare to parse the blocks of a file.

        Args:
            source: The file.
            comments: The beginnings of comment lines.
            separators: The characters that separate fields besides blanks.
            type: The type of every field: `"int64"`, `"float64"` or `"string"`.
            may_mix: Whether blanks and separators may both separate fields of a line, but for the first one.
        """
        import_optional("pyarrow", f"{source.path}: reading text files")
        self.source = source
        self._comments = tuple(prefix.encode() for prefix in comments)
        self._layout = Layout({}, 0, comments=comments)
        self._separators = separators.encode()
        self._blanks = bytes.maketrans(self._separators, b" " * len(separators))
        self._may_mix = may_mix
        self._type = type

    def parse(self, block: Block) -> RaggedLines:
        """Return a block's lines; of another rank's block only their number.

        Raises:
            GraphError: If a field is not of the type, or separators are mixed that may not be.
        """
        num_given = block.text.count(b"\n")
        text = block.text.translate(_SPACES)
        if any(prefix in text for prefix in self._comments):
            text = clean(text, self._layout)
        if not self._may_mix and (line := _mixed_line(text, self._separators)) is not None:
            problem = (
                "blanks separate fields, and another mark does: for pairs of neighbour and weight give "
                "weights=True; for neighbours alone name the mark, delimiter=','"
            )
            raise self.fault_at(block, line, problem)
        text = text.translate(self._blanks)
        nothing = np.empty(0, dtype=np.int64)
        lines = RaggedLines(nothing, nothing, num_given, 0, block.is_own, block)
        if block.is_own:
            lines.counts = _fields_a_line(text)
            lines.num_lines = lines.counts.size
            lines.fields = self._values(text, int(lines.counts.sum()), block)
        else:
            lines.num_lines = text.count(b"\n")
        lines.num_comments = num_given - lines.num_lines
        return lines

    def fault_at(self, block: Block, line: int, problem: str) -> GraphError:
        """Return an error about a line of a block, counted from 0 without comments."""
        numbered = [
            (number, text)
            for number, text in enumerate(block.text.split(b"\n"))
            if not text.lstrip().startswith(self._comments)
        ]
        index, text = numbered[line]
        number = self.source.line_number(block.offset) + index
        shown = text.decode("utf-8", errors="replace").strip()
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return GraphError(f"{self.source.path}:{number}: {problem}, in {shown!r}")

    def _values(self, text: bytes, num_fields: int, block: Block) -> NDArray[Any]:
        import pyarrow
        from pyarrow import csv as arrow_csv

        if not num_fields:
            return np.empty(0, dtype="U1" if self._type == "string" else self._type)
        column = text.replace(b" ", b"\n")
        if self._type == "int64" and (
            b"x" in column or b"X" in column
        ):  # Arrow takes 0xFFFFFFFFFFFFFFFF for -1
            raise self._explained(text, block)
        convert = arrow_csv.ConvertOptions(
            column_types={"f": pyarrow.type_for_alias(self._type)}, null_values=[]
        )
        parse = arrow_csv.ParseOptions(delimiter="\x1f", quote_char=False)
        try:
            table = read_csv(column, ["f"], parse, convert)
        except pyarrow.ArrowInvalid:
            raise self._explained(text, block) from None
        if self._type == "string":
            return strings_of(one_array(table.column(0)), str(self.source.path))
        values = numbers_of(one_array(table.column(0)))
        if self._type == "float64" and max(values.max(), -values.min()) >= 2**53:
            self._refuse_rounded(text, block)
        return values

    def _refuse_rounded(self, text: bytes, block: Block) -> None:
        for index, line in enumerate(text.split(b"\n")):
            for word in map(bytes.decode, line.split()):
                if is_rounded(word):
                    problem = (
                        f"{word} is a whole number beyond 2**53, which float64 rounds; an edge list holds it"
                    )
                    raise self.fault_at(block, index, problem)

    def _explained(self, text: bytes, block: Block) -> GraphError:
        for index, line in enumerate(text.split(b"\n")):
            for word in line.split():
                if not _is_value(word, self._type):
                    shown = word.decode("utf-8", errors="replace")
                    rule = {"int64": "an integer within int64", "float64": "a number"}.get(
                        self._type, "UTF-8"
                    )
                    return self.fault_at(block, index, f"{shown!r} is not {rule}")
        number = self.source.line_number(block.offset)
        return GraphError(f"{self.source.path}:{number}: a line from here on cannot be parsed")


@dataclass
class ListedTwice:
    """Checks that every edge between two vertices is listed by both, with equal weight.

    Keeps, instead of the edges, how many were listed by their smaller and by their larger end, and a sum of 64-bit
    hashes of each. The sums are equal if the edges are, and otherwise with probability 2**-64.
    """

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(2, dtype=np.uint64))

    def take(
        self, sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None
    ) -> NDArray[np.bool_]:
        """Add some listed edges; return which of them to keep: one of each pair, and loops."""
        up, loop = sources < targets, sources == targets
        down = ~(up | loop)
        sums = []
        for chosen, low, high in ((up, sources, targets), (down, targets, sources)):
            hashes = _hash(low[chosen], high[chosen], None if weights is None else weights[chosen])
            sums.append(np.sum(hashes, dtype=np.uint64))
        self.hashes += np.array(sums)  # arrays wrap around without a warning
        self.counts += [np.count_nonzero(side) for side in (up, down, loop)]
        is_kept: NDArray[np.bool_] = up | loop
        return is_kept

    def check(self, path: Path, group: Group, advice: str) -> int:
        """Return how many edges all ranks found. Collective.

        Raises:
            GraphError: If an edge is listed by one end only, or with two weights.
        """
        low, high, loops = group.all_reduce(self.counts, "sum").tolist()
        hashes = group.all_reduce(self.hashes, "sum")
        if low != high:
            raise GraphError(
                f"{path}: {low} edges are listed by their smaller end and {high} by their larger one, but an "
                f"undirected graph's file must list each edge at both. {advice}"
            )
        if hashes[0] != hashes[1]:
            raise GraphError(
                f"{path}: some edges are listed by one end only, or with different weights at their "
                f"two ends, but an undirected graph's file must list each edge at both alike. {advice}"
            )
        return int(low + loops)


_SPACES = bytes.maketrans(b"\t\v\f", b"   ")


def _mixed_line(text: bytes, separators: bytes) -> int | None:
    """Return the first line, from 0, with fields separated by blanks alone and others, after the first, by a mark."""
    if not any(mark in text for mark in separators):
        return None
    values = np.frombuffer(text, dtype=np.uint8)
    is_mark, is_end = np.isin(values, np.frombuffer(separators, dtype=np.uint8)), values == 10
    is_field = ~(is_mark | is_end | (values == 32))
    begins = np.flatnonzero(is_field & ~np.concatenate([[False], is_field[:-1]]))
    line, marks_before = np.cumsum(is_end)[begins], np.cumsum(is_mark)[begins]
    is_inside = np.diff(line) == 0  # the gap after each field but the last
    has_mark = np.diff(marks_before) > 0
    is_first = np.diff(line, prepend=-1)[:-1] != 0
    by_blank, by_mark = is_inside & ~has_mark, is_inside & has_mark & ~is_first
    mixed = np.intersect1d(line[:-1][by_blank], line[:-1][by_mark])
    return int(mixed[0]) if mixed.size else None


def _is_value(word: bytes, type: str) -> bool:
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if type == "int64":
        return whole_number(text) is not None
    return type == "string" or (is_float(text) and math.isfinite(float(text)))


def _fields_a_line(text: bytes) -> NDArray[np.int64]:
    values = np.frombuffer(text, dtype=np.uint8)
    is_field = (values != 32) & (values != 10)
    begins = is_field.copy()
    begins[1:] &= ~is_field[:-1]
    ends = np.flatnonzero(values == 10)
    before = np.searchsorted(np.flatnonzero(begins), ends)
    return np.diff(before, prepend=0)


def _hash(low: NDArray[Any], high: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[np.uint64]:
    golden = np.uint64(GOLDEN)
    hashes = splitmix64(splitmix64(_bits(low) + golden) + _bits(high) + golden)
    return hashes if weights is None else splitmix64((hashes ^ weights.view(np.uint64)) + golden)


def _bits(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Return each id as 64 bits; of strings a hash of the characters."""
    if ids.dtype.kind == "U":
        return hash_strings(np.zeros(ids.size, dtype=np.uint64), ids)
    return ids.astype(np.int64).view(np.uint64)
