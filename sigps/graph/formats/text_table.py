"""Tables in text: blocks of lines to arrays of numbers, by Arrow's CSV reader on several threads.

Arrow takes exactly one delimiter between fields and no comments. Most files are like that, so a block is first
parsed as it is. If that fails, it is cleaned (runs of blanks, blanks at line ends, comments) and parsed again; if
that fails too, a loop over the lines finds the first wrong one and the reason. Where the first field of each row is
a number, parsing fails if the block needs cleaning, because comments and empty fields are none.

Where a mark separates fields, blanks around a field are no part of it, and a field may be quoted: it begins and ends
with `"` and holds a quote as `""`. Any other quote is an error, since Arrow would read on into the next lines.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk, TextChunk
from sigps.graph.building.texts import Texts
from sigps.graph.formats.arrow_columns import numbers_of, one_array, strings_of
from sigps.graph.formats.blocks import BYTE_ORDER_MARK, Block, TextFile, import_optional
from sigps.graph.formats.edge_input import EdgeInput
from sigps.graph.formats.numerals import is_float, is_rounded, whole_number
from sigps.group import Group

__all__ = [
    "MARKS",
    "WHITESPACE",
    "Column",
    "Layout",
    "clean",
    "in_order",
    "read_edges",
    "read_rows",
    "split_line",
    "split_rows",
]

WHITESPACE = "whitespace"
"""The delimiter of fields separated by any run of spaces and tabs."""

MARKS = ",;|"
"""The delimiters that readers find in a first line by themselves; an earlier one goes before a later one."""


@dataclass(frozen=True)
class Column:
    """A column to read.

    Attributes:
        index: Its position, from 0.
        type: `"int64"`, `"int32"`, `"float64"`, `"float32"` or `"string"`.
        what: Its name in errors, such as `"source id"`.
        bounds: The least and the greatest value allowed.
        literal: The text that this field must be in every row.
        hint: Advice in errors about a field.
        rounding: The error of a whole number that float64 rounds; None to round it.
    """

    index: int
    type: str
    what: str
    bounds: tuple[int, int] | None = None
    literal: str | None = None
    hint: str = ""
    rounding: Callable[[str], GraphError] | None = None


@dataclass(frozen=True)
class Layout:
    """How lines are parsed as rows.

    Attributes:
        columns: The columns to read, by name.
        num_fields: Fields of every row.
        delimiter: One character, or `WHITESPACE`.
        comments: The beginnings of comment lines.
        hint: Advice in errors about a row.
    """

    columns: dict[str, Column]
    num_fields: int
    delimiter: str = WHITESPACE
    comments: tuple[str, ...] = ()
    hint: str = ""


@dataclass
class ParsedRows:
    """A block's rows.

    Attributes:
        columns: [num_rows] each, by the names of the layout; `Texts` where the type is `"string"`.
        num_skipped: Comments and blank lines.
    """

    columns: dict[str, NDArray[Any] | Texts]
    num_rows: int
    num_skipped: int


def read_rows(source: TextFile, layout: Layout, group: Group, *, start: int = 0) -> Iterator[ParsedRows]:
    """Yield this rank's rows, block by block in the file's order; parses on several threads.

    The first row begins at byte `start` of the decompressed file.

    Raises:
        GraphError: If the file is damaged or a row is wrong; names the line.
    """
    import_optional("pyarrow", f"{source.path}: reading text files")
    parser = _Parser(source, layout)
    return in_order(parser.parse, source.blocks(group, start=start), group)


def read_edges(
    source: TextFile, layout: Layout, group: Group, start: int, result: EdgeInput
) -> Iterator[Any]:
    """Yield this rank's edges of a text table with the columns `source` and `target`; count in `result`.

    The chunks are `TextChunk` if these columns are strings, else `EdgeChunk`.
    """
    for rows in read_rows(source, layout, group, start=start):
        result.rows_skipped += rows.num_skipped
        result.num_read += rows.num_rows
        columns: dict[str, Any] = rows.columns
        sources, targets = columns.pop("source"), columns.pop("target")
        yield (TextChunk if isinstance(sources, Texts) else EdgeChunk)(sources, targets, columns)


def in_order(work: Any, blocks: Iterator[Block], group: Group) -> Iterator[Any]:
    """Yield `work(block)` for each block in order; several threads work ahead on up to 8 blocks."""
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS
    num_cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    num_threads = max(1, min(8, num_cores // group.size))
    waiting: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(num_threads, thread_name_prefix="sigps-parse")
    try:
        for block in blocks:
            waiting.append(pool.submit(work, block))
            if len(waiting) > num_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # Without waiting: garbage collection may end this in a thread that begins, on which all others wait.
        pool.shutdown(wait=False, cancel_futures=True)


def read_csv(text: bytes, names: list[str], parse_options: Any, convert_options: Any) -> Any:
    """Return a block as an Arrow table of one chunk; raises pyarrow.ArrowInvalid if Arrow cannot parse it."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    if text.startswith(BYTE_ORDER_MARK):
        text = BYTE_ORDER_MARK + text  # Arrow drops one, in the midst of a file too
    return arrow_csv.read_csv(
        pyarrow.BufferReader(text),
        read_options=arrow_csv.ReadOptions(use_threads=False, column_names=names, block_size=len(text) + 1),
        parse_options=parse_options,
        convert_options=convert_options,
        memory_pool=pyarrow.system_memory_pool(),  # other pools keep freed memory
    )


def split_line(line: bytes, delimiter: str) -> list[str]:
    r"""Return a line's fields; the slow reference of the parser.

    Raises:
        ValueError: If a quote stands where none may.

    >>> split_line(b" 1  2\t3 ", WHITESPACE)
    ['1', '2', '3']
    >>> split_line(b'a, b ,"c,d"', ",")
    ['a', 'b', 'c,d']
    """
    text = line.decode("utf-8", errors="replace").rstrip("\r\n")
    if delimiter == WHITESPACE:
        return [field for field in _BLANKS.split(text) if field]
    fields, more, at = [], bool(text), 0
    while more:
        found = _field(delimiter).match(text, at)
        if found is None:
            has_pairs = text.count('"') % 2 == 0
            wrong = "a quote stands inside a field" if has_pairs else "a quote has no partner in its line"
            raise ValueError(
                f"{wrong}; a field that holds quotes begins and ends with one, and doubles its own"
            )
        quoted, plain, more = found[1], found[2], bool(found[3])
        fields.append((plain if quoted is None else quoted.replace('""', '"')).strip(" \t\v\f"))
        at = found.end()
    return fields


def split_rows(source: TextFile, lines: Iterable[tuple[int, bytes]], delimiter: str) -> list[list[str]]:
    """Return the fields of lines that are given with their offsets.

    Raises:
        GraphError: If a quote stands where none may; names the line.
    """
    rows = []
    for offset, line in lines:
        try:
            rows.append(split_line(line, delimiter))
        except ValueError as error:
            number = source.line_number(offset)
            raise GraphError(f"{source.path}:{number}: {error}, in {_shown(line)}") from None
    return rows


def clean(text: bytes, layout: Layout) -> bytes:
    """Return the block with one blank between fields, none at line ends, and no comments."""
    values = np.frombuffer(text, dtype=np.uint8)
    if layout.delimiter == WHITESPACE:
        values = _without_blank_runs(values)
    return _without_comments(values, layout.comments).tobytes()


_INTEGER = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]+")  # Arrow takes hexadecimal too
_WHOLE_FLOAT = re.compile(r"[-+]?[0-9]+\.0*")
_NEWLINE, _BLANK, _QUOTE = np.uint8(10), np.uint8(32), np.uint8(34)
_BLANKS = re.compile(r"[ \t\v\f]+")


@functools.cache
def _field(delimiter: str) -> re.Pattern[str]:
    """Return what matches a field, quoted or plain, and the delimiter after it, or none at the end."""
    mark = re.escape(delimiter)
    return re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^"{mark}]*))({mark}|$)')


def _are_blanks(values: NDArray[Any]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (values == _BLANK) | (values == 9) | (values == 11) | (values == 12)
    return found


def _without_blank_runs(values: NDArray[Any]) -> NDArray[Any]:
    values = values.copy()
    values[_are_blanks(values)] = _BLANK
    before_gap = np.empty(values.size, dtype=bool)  # a blank before a blank or a line's end
    before_gap[:-1] = (values[1:] == _BLANK) | (values[1:] == _NEWLINE)
    before_gap[-1:] = True
    values = values[~(before_gap & (values == _BLANK))]
    leading = np.empty(values.size, dtype=bool)
    np.equal(values[:-1], _NEWLINE, out=leading[1:])
    leading[:1] = True
    cleaned: NDArray[Any] = values[~(leading & (values == _BLANK))]
    return cleaned


def _without_comments(values: NDArray[Any], prefixes: tuple[str, ...]) -> NDArray[Any]:
    """Return lines without comments, which may begin with blanks, and without lines of blanks alone."""
    starts = np.concatenate([[0], np.flatnonzero(values == _NEWLINE) + 1])
    ends, starts = starts[1:], starts[:-1]
    firsts = starts  # where each line's first letter stands that is no blank
    is_comment = np.zeros(starts.size, dtype=bool)
    if _are_blanks(values[starts]).any():
        letters = np.flatnonzero(~_are_blanks(values))
        firsts = letters[np.searchsorted(letters, starts)]
        is_comment = (values[firsts] == _NEWLINE) & (firsts > starts)
    for prefix in prefixes:
        found = np.ones(starts.size, dtype=bool)
        for place, byte in enumerate(prefix.encode()):
            found &= values[np.minimum(firsts + place, values.size - 1)] == byte
        is_comment |= found
    if not is_comment.any():
        return values
    step = np.zeros(values.size + 1, dtype=np.int8)
    step[starts[is_comment]] += 1
    step[ends[is_comment]] -= 1
    inside = np.cumsum(step[:-1], dtype=np.int8)
    kept: NDArray[Any] = values[inside == 0]
    return kept


class _Parser:
    """Parses the blocks of one file."""

    def __init__(self, source: TextFile, layout: Layout) -> None:
        import pyarrow
        from pyarrow import csv as arrow_csv

        self._source, self._layout = source, layout
        types: dict[int, str] = {}
        for column in layout.columns.values():
            if types.setdefault(column.index, column.type) != column.type:
                raise GraphError(
                    f"{source.path}: field {column.index} (counted from 0) is asked for as {types[column.index]} and "
                    f"as {column.type}; give both columns one type"
                )
        # Parsing would not fail for a comment that has as many fields as a row.
        is_told = any(
            column.index == 0 and (column.type != "string" or column.literal is not None)
            for column in layout.columns.values()
        )
        self._needs_cleaning = not is_told or any(mark[0] in "-.0123456789" for mark in layout.comments)
        names = [f"f{index}" for index in range(layout.num_fields)]
        delimiter = layout.delimiter
        self._cleaned = arrow_csv.ParseOptions(
            delimiter=" " if delimiter == WHITESPACE else delimiter,
            quote_char=False if delimiter == WHITESPACE else '"',
        )
        self._convert = arrow_csv.ConvertOptions(
            column_types={names[index]: pyarrow.type_for_alias(kind) for index, kind in types.items()},
            include_columns=[names[index] for index in types],
            null_values=[],
        )
        self._names = names

    def parse(self, block: Block) -> ParsedRows:
        """Return the block's rows. Safe to call from several threads."""
        columns, text, options = None, block.text, self._cleaned
        if not self._needs_cleaning:
            options = self._options_for(text)
            columns = self._columns(text, options)
            self._needs_cleaning = columns is None
        if columns is None:
            text, options = clean(text, self._layout), self._cleaned
            columns = self._columns(text, options)
        if columns is None:
            raise self._explained(block)
        for name, column in self._layout.columns.items():
            if column.rounding is not None and self._rounds(column, columns[name], text, options):
                raise self._rounded(block, column, column.rounding)
        num_rows = next(iter(columns.values())).size
        wanted = {name: values for name, values in columns.items() if not self._layout.columns[name].literal}
        return ParsedRows(wanted, num_rows, block.text.count(b"\n") - num_rows)

    def _columns(self, text: bytes, options: Any) -> dict[str, NDArray[Any] | Texts] | None:
        """Return the columns, None if the text does not parse or a value is not allowed."""
        import pyarrow

        columns, delimiter = self._layout.columns, self._layout.delimiter
        if delimiter != WHITESPACE and not _are_quotes_right(text, delimiter):
            return None
        try:
            table = read_csv(text, self._names, options, self._convert) if text else None
        except pyarrow.ArrowInvalid:
            return None
        arrays = {name: self._array(table, column) for name, column in columns.items()}
        if not all(_holds(arrays[name], column) for name, column in columns.items()):
            return None
        integers = [
            values
            for values in arrays.values()
            if isinstance(values, np.ndarray) and values.dtype.kind == "i"
        ]
        is_signed = any(values.min(initial=0) < 0 for values in integers)
        if is_signed and (b"0x" in text or b"0X" in text) and self._fault_in(text) is not None:
            return None  # Arrow takes 0xFFFFFFFFFFFFFFFF for -1
        return arrays

    def _options_for(self, text: bytes) -> Any:
        """Return the options to parse a block as it is: tabs separate if its beginning has one, else blanks."""
        if self._layout.delimiter == WHITESPACE and b"\t" in text[:4096]:
            from pyarrow import csv as arrow_csv

            return arrow_csv.ParseOptions(delimiter="\t", quote_char=False)
        return self._cleaned

    def _array(self, table: Any, column: Column) -> NDArray[Any] | Texts:
        if table is None:
            return Texts.of_bytes([]) if column.type == "string" else np.empty(0, dtype=column.type)
        values = table.column(f"f{column.index}")
        if column.literal is not None:
            return strings_of(one_array(values), str(self._source.path))
        if column.type != "string":
            return numbers_of(one_array(values))
        if self._layout.delimiter != WHITESPACE:
            from pyarrow import compute

            values = compute.ascii_trim_whitespace(values)
        return Texts.of_arrow(one_array(values))

    def _rounds(self, column: Column, values: Any, text: bytes, options: Any) -> bool:
        """Return whether a column of floats, parsed from a text, holds whole numbers that are not those in the text."""
        if not values.size or max(values.max(), -values.min()) < 2**53:
            return False
        import pyarrow
        from pyarrow import csv as arrow_csv

        name = f"f{column.index}"
        as_text = arrow_csv.ConvertOptions(column_types={name: pyarrow.string()}, include_columns=[name])
        large = np.flatnonzero(np.abs(values) >= 2**53)
        fields = read_csv(text, self._names, options, as_text).column(0).take(pyarrow.array(large))
        return any(is_rounded(field.strip()) for field in fields.to_pylist())

    def _rounded(self, block: Block, column: Column, kind: Callable[[str], GraphError]) -> GraphError:
        """Return the error for the first whole number of a block that float64 rounds."""
        rows = (
            (i, split_line(line, self._layout.delimiter)[column.index]) for i, line in self._rows(block.text)
        )
        index, field = next((i, field) for i, field in rows if is_rounded(field))
        number = self._source.line_number(block.offset) + index
        return kind(
            f"{self._source.path}:{number}: the {column.what} {field} is a whole number beyond 2**53, which float64 "
            f"rounds to {float(field):.0f}" + (f". {column.hint}" if column.hint else "")
        )

    def _explained(self, block: Block) -> GraphError:
        """Return the error for the first wrong line of a block that cannot be parsed."""
        number = self._source.line_number(block.offset)
        index, wrong = self._fault_in(block.text) or (0, "a line from here on cannot be parsed")
        return GraphError(f"{self._source.path}:{number + index}: {wrong}")

    def _fault_in(self, text: bytes) -> tuple[int, str] | None:
        """Return the place, from 0, and the fault of the first wrong line of some; None if all are right."""
        faults = ((index, _fault(line, self._layout)) for index, line in self._rows(text))
        return next(((index, wrong) for index, wrong in faults if wrong), None)

    def _rows(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that are rows, each with its place from 0."""
        comments = tuple(prefix.encode() for prefix in self._layout.comments)
        for index, line in enumerate(text.split(b"\n")):
            begin = line.strip()
            if begin and not begin.startswith(comments):
                yield index, line


def _are_quotes_right(text: bytes, delimiter: str) -> bool:
    """Return whether every quote of some lines opens or closes a field, or is one of a pair inside a quoted one."""
    if b'"' not in text:
        return True
    values = np.frombuffer(text, dtype=np.uint8)
    quotes, ends = np.flatnonzero(values == _QUOTE), np.flatnonzero(values == _NEWLINE)
    if (np.searchsorted(quotes, ends) % 2).any():
        return False
    opens, closes = quotes[::2], quotes[1::2]
    in_pair = opens[1:] == closes[:-1] + 1
    before, after = values[opens - 1], values[closes + 1]  # the last byte is a newline, as before the first
    is_open = (before == ord(delimiter)) | (before == _NEWLINE)
    is_close = (after == ord(delimiter)) | (after == _NEWLINE)
    is_open[1:] |= in_pair
    is_close[:-1] |= in_pair
    return bool(is_open.all() and is_close.all())


def _holds(values: NDArray[Any] | Texts, column: Column) -> bool:
    if not values.size:
        return True
    if isinstance(values, Texts):
        return bool((values.offsets[1:] > values.offsets[:-1]).all())
    if column.literal is not None:
        return bool((values == column.literal).all())
    if column.type.startswith("float"):
        return bool(np.isfinite(values).all())
    low, high = column.bounds or (None, None)
    return (low is None or int(values.min()) >= low) and (high is None or int(values.max()) <= high)


def _fault(line: bytes, layout: Layout) -> str | None:
    """Return what is wrong with a row, None if nothing is."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"{_shown(line)} is not UTF-8 text ({error.reason}); convert the file first"
    try:
        fields = split_line(line, layout.delimiter)
    except ValueError as error:
        return f"{error}, in {_shown(line)}"
    if len(fields) != layout.num_fields:
        return (
            f"{_shown(line)} has {len(fields)} field{'s' if len(fields) != 1 else ''}, but the rows of this "
            f"file have {layout.num_fields}, separated by {_named(layout.delimiter)}. {layout.hint}".rstrip()
        )
    for column in layout.columns.values():
        wrong = _field_fault(fields[column.index], column)
        if wrong is not None:
            return f"{wrong}, in {_shown(line)}. {column.hint}".rstrip()
    return None


def _field_fault(field: str, column: Column) -> str | None:
    """Return what is wrong with a field, None if nothing is."""
    if column.literal is not None:
        return None if field == column.literal else f"{field!r} stands where {column.literal!r} must"
    if column.type == "string":
        return None if field else f"the {column.what} is empty"
    if column.type.startswith("float"):
        return _float_fault(field, column)
    if not _INTEGER.fullmatch(field):
        rule = ": write whole numbers without a decimal point" if _WHOLE_FLOAT.fullmatch(field) else ""
        return f"the {column.what} {field!r} is not an integer{rule}"
    bits = int(column.type.removeprefix("int"))
    value = int(field, 16) if field[:2] in ("0x", "0X") else whole_number(field)
    if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        return f"the {column.what} {field} is outside {column.type}"
    if column.bounds is not None and not column.bounds[0] <= value <= column.bounds[1]:
        return f"the {column.what} {field} is outside {column.bounds[0]}..{column.bounds[1]}"
    return None


def _float_fault(field: str, column: Column) -> str | None:
    if not is_float(field):
        return f"the {column.what} {field!r} is not a number"
    if not math.isfinite(float(field)):
        return f"the {column.what} is {field}, but it must be a finite number"
    return None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", errors="replace").strip()
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _named(delimiter: str) -> str:
    return {WHITESPACE: "blanks", "\t": "a tab", ",": "a comma"}.get(delimiter, repr(delimiter))
