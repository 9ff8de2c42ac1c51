"""Edge lists: one edge a line, its two ends in two columns, with or without further columns.

SNAP text, csv, tsv and their kin. The first rows decide the delimiter, whether there is a header, and how
many fields a row has; every rank reads the same first rows and so decides the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.edge_input import ColumnRef, EdgeInput, LoadOptions, edge_chunks
from sigps.graph.formats.text_table import WHITESPACE, Column, Layout, split_line
from sigps.group import Group

__all__ = [
    "COMMENTS",
    "column_index",
    "end_column",
    "first_rows",
    "read_edge_list",
    "value_columns",
    "value_places",
]

COMMENTS = ("#", "%", "//")
"""What begins a comment line where the caller does not say."""


def read_edge_list(path: Path, options: LoadOptions, group: Group, *, format: str = "snap") -> EdgeInput:
    """Begin to read an edge list; the edges come as `chunks` is drawn.

    Args:
        path: The file, compressed or not.
        options: What the caller of `load` asked for.
        group: The ranks that share the file.
        format: `"snap"`, `"csv"` or `"tsv"`: what the report says; a tsv may have blanks inside fields.

    Raises:
        GraphError: If there are no rows, or the rows lack a column that is asked for.
    """
    source = TextFile(path)
    comments = COMMENTS if options.comment is None else (options.comment,)
    sample = first_rows(source, comments)
    table = _Table.of(source, sample, options, strict_tabs=format == "tsv")
    columns = {
        "source": table.id_column("source", options.source, options.ids),
        "target": table.id_column("target", options.target, options.ids),
        **value_columns(options, table.names, table.rows, str(source.path)),
    }
    hint = "delimiter=, comment= and header= say how to read the file"
    layout = Layout(columns, table.num_fields, table.delimiter, comments, hint)
    directed = True if options.directed is None else options.directed
    result = EdgeInput(format, directed, notes=_notes(table, columns))
    result.rows_skipped = table.num_skipped if group.rank == 0 else 0
    result.chunks = edge_chunks(source, layout, group, table.start, result)
    return result


@dataclass(frozen=True)
class FirstRows:
    """The first lines of a file that are rows: (offset, line) each, and the lines before the first."""

    lines: list[tuple[int, bytes]]
    num_skipped: int


def first_rows(source: TextFile, comments: tuple[str, ...], count: int = 50) -> FirstRows:
    """Return up to `count` lines that are neither blank nor comments.

    Raises:
        GraphError: If the file has none.
    """
    prefixes = tuple(prefix.encode() for prefix in comments)
    rows: list[tuple[int, bytes]] = []
    num_skipped = 0
    for offset, line in source.lines():
        stripped = line.strip()
        if stripped and not stripped.startswith(prefixes):
            rows.append((offset, line))
            if len(rows) == count:
                break
        elif not rows:
            num_skipped += 1
    if not rows:
        raise GraphError(
            f"{source.path}: the file has no rows, only {num_skipped} blank or comment lines "
            f"(comments begin with {' or '.join(comments)}; comment= names another beginning)"
        )
    return FirstRows(rows, num_skipped)


def value_columns(
    options: LoadOptions, names: Sequence[str], rows: Sequence[Sequence[str]], where: str
) -> dict[str, Column]:
    """Return the weight and the further columns that the caller asked for.

    Weights are float64 unless a type is given; other columns are int64 where the first rows are whole.

    Args:
        options: What the caller of `load` asked for.
        names: The file's column names, empty strings without a header.
        rows: The first rows' fields.
        where: The file, for errors.

    Raises:
        GraphError: If a column is not there.
    """
    result = {}
    for name, (place, kind) in value_places(options, names, where).items():
        index = column_index(place, names, f"the column for {name!r}", where)
        whole = name != "weight" and all(_is_whole(row[index]) for row in rows if index < len(row))
        kind = kind or ("int64" if whole else "float64")
        if kind not in _TYPES:
            raise GraphError(f"column {name!r} has type {kind!r}; choose one of {', '.join(_TYPES)}")
        hint = f'({place!r}, "float64") for {name!r} reads other numbers' if kind.startswith("int") else ""
        result[name] = Column(index, kind, name, hint=hint)
    return result


def value_places(options: LoadOptions, names: Sequence[str], where: str) -> dict[str, tuple[int | str, str]]:
    """Return where the weight and the further columns are, and the types asked for, empty if none.

    Raises:
        GraphError: If two options name the same column.
    """
    wanted: dict[str, ColumnRef] = {}
    if options.weights is True:
        wanted["weight"] = next((name for name in names if name.lower() in ("weight", "w")), 2)
    elif options.weights is not None and options.weights is not False:
        wanted["weight"] = options.weights
    for name, ref in (options.columns or {}).items():
        if name in ("source", "target") or name in wanted:
            raise GraphError(f"{where}: columns= has {name!r}, which another option already names; rename it")
        wanted[name] = ref
    return {name: ref if isinstance(ref, tuple) else (ref, "") for name, ref in wanted.items()}


def end_column(end: str, place: int | str | None, names: Sequence[str], where: str) -> int:
    """Return the column of source or target ids: the one asked for, one of a usual name, or by position.

    Raises:
        GraphError: If the column that is asked for is not there.
    """
    if place is None:
        usual = _SOURCE_NAMES if end == "source" else _TARGET_NAMES
        lowered = [name.lower() for name in names]
        position = 0 if end == "source" else 1
        place = next((lowered.index(name) for name in usual if name in lowered), position)
    return column_index(place, names, f"the {end} column", where)


def column_index(place: int | str, names: Sequence[str], what: str, where: str) -> int:
    """Return the position of a column that is given by position or name.

    Raises:
        GraphError: If there is no such column; names the nearest.
    """
    if isinstance(place, str):
        if place in names:
            return list(names).index(place)
        known = [name for name in names if name]
        if not known:
            raise GraphError(
                f"{where}: {what} is named {place!r}, but the file has no header; give its position"
            )
        near = difflib.get_close_matches(place, known, n=1, cutoff=0.0)[0]
        raise GraphError(
            f"{where}: {what} is named {place!r}, but the file has {', '.join(known)}; try {near!r}"
        )
    if not 0 <= place < len(names):
        raise GraphError(
            f"{where}: {what} is number {place} (counted from 0), but rows have {len(names)} "
            f"field{'s' if len(names) != 1 else ''}"
        )
    return place


_TYPES = ("int64", "int32", "float64", "float32")
_WHOLE = re.compile(r"-?\d+")
_SOURCE_NAMES = ("source", "src", "from", "fromnodeid")
_TARGET_NAMES = ("target", "dst", "to", "tonodeid", "destination")


@dataclass(frozen=True)
class _Table:
    """What the first rows tell."""

    path: str
    delimiter: str
    names: list[str]
    rows: list[list[str]]
    start: int
    num_skipped: int

    @property
    def num_fields(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, source: TextFile, sample: FirstRows, options: LoadOptions, *, strict_tabs: bool) -> _Table:
        lines = [line for _, line in sample.lines]
        delimiter = _delimiter(lines, options, strict_tabs)
        rows = [split_line(line, delimiter) for line in lines]
        if not _has_header(rows, options):
            names = [""] * len(rows[0])
            return cls(str(source.path), delimiter, names, rows, sample.lines[0][0], sample.num_skipped)
        if len(rows) == 1:
            raise GraphError(f"{source.path}: the file has no rows but the header {lines[0].decode()!r}")
        names = [name.strip() for name in rows[0]]
        return cls(str(source.path), delimiter, names, rows[1:], sample.lines[1][0], sample.num_skipped + 1)

    def id_column(self, end: str, place: int | str | None, ids: str | None) -> Column:
        """Return the column of source or target ids."""
        if self.num_fields < 2:
            raise GraphError(
                f"{self.path}: the first row {self.rows[0]} has one field, but an edge needs two ends. "
                "delimiter= names what separates fields; format= another kind of file"
            )
        index = end_column(end, place, self.names, self.path)
        if ids == "string":
            return Column(index, "string", f"{end} id")
        return Column(index, "int64", f"{end} id", hint='ids="string" takes any text as id')


def _delimiter(lines: list[bytes], options: LoadOptions, strict_tabs: bool) -> str:
    asked = options.delimiter
    if asked in (" ", WHITESPACE):
        return WHITESPACE
    if asked is not None:
        if len(asked) != 1 or asked in "\r\n":
            raise GraphError(
                f"delimiter={asked!r}: give one character, or {WHITESPACE!r} for spaces and tabs"
            )
        return asked
    tabs_everywhere = all(b"\t" in line for line in lines)
    if tabs_everywhere and (strict_tabs or options.ids == "string"):
        return "\t"
    return next((mark for mark in (",", ";", "|") if mark.encode() in lines[0]), WHITESPACE)


def _has_header(rows: list[list[str]], options: LoadOptions) -> bool:
    """Say whether the first row names the columns."""
    if options.header is not None:
        return options.header
    first = [name.strip() for name in rows[0]]
    if options.ids == "string":
        asked = [options.source, options.target, options.weights, *(options.columns or {}).values()]
        asked = [ref[0] if isinstance(ref, tuple) else ref for ref in asked]
        usual = {name.lower() for name in first} & {*_SOURCE_NAMES, *_TARGET_NAMES}
        return len(usual) >= 2 or any(isinstance(ref, str) and ref in first for ref in asked)
    named = not any(_is_number(name) for name in first)
    return named and len(rows) > 1 and sum(_is_whole(field) for field in rows[1]) >= 2


def _is_whole(field: str) -> bool:
    return _WHOLE.fullmatch(field.strip()) is not None


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _notes(table: _Table, columns: dict[str, Column]) -> list[str]:
    read = {column.index for column in columns.values()}
    ignored = [index for index in range(table.num_fields) if index not in read]
    if not ignored:
        return []
    shown = ", ".join(
        f"{index} ({table.names[index]})" if table.names[index] else f"{index}" for index in ignored
    )
    plural = "s" if len(ignored) > 1 else ""
    return [f"column{plural} {shown} not read (counted from 0; weights= and columns= read further columns)"]
