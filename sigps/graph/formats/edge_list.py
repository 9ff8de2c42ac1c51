"""Edge lists: one edge a line, its two ends in two columns, with or without further columns.

SNAP text, csv, tsv and similar. The delimiter, the header and the number of fields are inferred from the first
rows, which every rank reads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.rows import rows_as_chunks
from sigps.graph.formats.blocks import COMMENTS, FirstRows, TextFile, first_rows
from sigps.graph.formats.columns import END_NAMES, end_column, is_number, value_columns
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.formats.text_output import (
    PathLike,
    count_given,
    once,
    require_readable_ids,
    text_lines,
    write_text,
    write_vertices,
)
from sigps.graph.formats.text_table import MARKS, WHITESPACE, Column, Layout, read_edges, split_rows
from sigps.group import Group

__all__ = ["find_delimiter", "read_edge_list", "write_edge_list"]


def read_edge_list(path: Path, options: LoadOptions, group: Group, *, format: str = "snap") -> EdgeInput:
    """Read the first rows of an edge list; iterating over `chunks` reads the edges.

    `format` is `"snap"`, `"csv"` or `"tsv"`, for the report; a tsv may have blanks inside fields.

    Raises:
        GraphError: If there are no rows, or the rows lack a requested column.
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
    result = EdgeInput(format, directed, notes=_notes(table, columns, options))
    result.rows_skipped = table.num_skipped if group.rank == 0 else 0
    result.chunks = read_edges(source, layout, group, table.start, result)
    return result


def write_edge_list(
    graph: GraphArrays,
    path: PathLike,
    *,
    delimiter: str | None = None,
    vertices_path: PathLike | None = None,
) -> None:
    """Write one edge a line: source, target, and the edge columns. Collective.

    An undirected edge is written once. The file begins with comments that give direction, counts and
    columns; a csv file with a row of names. A suffix .gz, .bz2, .xz or .zst compresses.

    Args:
        graph: The graph.
        path: The file.
        delimiter: One character; None for a comma in .csv files and a tab in others.
        vertices_path: A file for all ids, because an edge list cannot hold isolated vertices, and for the vertex
            columns (`write_vertices`).

    Raises:
        GraphError: If the file cannot be written, or a string id would not be read as the same id.
    """
    name = Path(path).name.lower()
    is_csv = ".csv" in name if delimiter is None else delimiter == ","
    delimiter = ("," if is_csv else "\t") if delimiter is None else delimiter
    if len(delimiter) != 1 or ord(delimiter) > 127 or delimiter.isalnum() or delimiter in "\r\n.-+#\"'":
        raise GraphError(
            f"delimiter={delimiter!r}: one character is needed that is no part of a number or a line"
        )
    require_readable_ids(graph, delimiter, blanks=is_csv or ".tsv" in name)
    if graph.report.isolated and vertices_path is None:
        logging.getLogger(__name__).warning(
            "%s: %d isolated vertices have no line in an edge list: vertices_path=, or convert --vertices",
            path,
            graph.report.isolated,
        )
    fields = ["source", "target", *graph.columns]
    num_edges = count_given(graph)
    kind = "directed" if graph.directed else "undirected"
    head = f"# {kind}, {graph.num_vertices} vertices, {num_edges} edges\n# {delimiter.join(fields)}\n"
    head = delimiter.join(fields) + "\n" if is_csv else head
    write_text(path, graph.group, head, _edge_lines(graph, delimiter))
    if vertices_path is not None:
        write_vertices(graph, vertices_path)


@dataclass(frozen=True)
class _Table:
    """The layout of a file, inferred from its first rows."""

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
        delimiter = find_delimiter(lines, options, strict_tabs)
        rows = split_rows(source, sample.lines, delimiter)
        if not _has_header(rows, options):
            names = [""] * len(rows[0])
            return cls(str(source.path), delimiter, names, rows, sample.lines[0][0], sample.num_skipped)
        if len(rows) == 1:
            raise GraphError(f"{source.path}: the file has no rows but the header {', '.join(rows[0])!r}")
        names = [name.strip() for name in rows[0]]
        return cls(str(source.path), delimiter, names, rows[1:], sample.lines[1][0], sample.num_skipped + 1)

    def id_column(self, end: str, place: int | str | None, ids: str | None) -> Column:
        if self.num_fields < 2:
            raise GraphError(
                f"{self.path}: the first row {self.rows[0]} has one field, but an edge needs two ends. "
                "delimiter= names what separates fields; format= another kind of file"
            )
        index = end_column(end, place, self.names, self.path)
        if ids == "string":
            return Column(index, "string", f"{end} id", hint="Fill or remove such rows")
        return Column(index, "int64", f"{end} id", hint='ids="string" takes any text as id')


def find_delimiter(lines: list[bytes], options: LoadOptions, strict_tabs: bool) -> str:
    """Return what separates the fields of some lines."""
    given = options.delimiter
    if given in (" ", WHITESPACE):
        return WHITESPACE
    if given is not None:
        if len(given) != 1 or given in '\r\n\0"' or not given.isascii():
            raise GraphError(
                f"delimiter={given!r}: give one ASCII character, no quote, or {WHITESPACE!r} for spaces and tabs"
            )
        return given
    tabs_everywhere = all(b"\t" in line for line in lines)
    if tabs_everywhere and (strict_tabs or options.ids == "string"):
        return "\t"
    return next((mark for mark in MARKS if mark.encode() in lines[0]), WHITESPACE)


def _has_header(rows: list[list[str]], options: LoadOptions) -> bool:
    """Return whether the first row names the columns."""
    if options.header is not None:
        return options.header
    first = [name.strip() for name in rows[0]]
    places = [options.source, options.target, options.weights, *(options.columns or {}).values()]
    places = [ref[0] if isinstance(ref, tuple) else ref for ref in places]
    asked = {ref for ref in places if isinstance(ref, str)}
    if asked & set(first):
        return True
    named = not any(is_number(name) for name in first)
    if asked and named and any(is_number(field) for row in rows[1:2] for field in row):
        return True  # there are names, and those asked for are misspelt: the error then lists what there is
    usual = {name.lower() for name in first} & {*END_NAMES["source"], *END_NAMES["target"]}
    if len(usual) >= 2:
        return True
    return options.ids != "string" and named and len(rows) > 1  # a row without a number has no whole ids


def _notes(table: _Table, columns: dict[str, Column], options: LoadOptions) -> list[str]:
    first, *below = table.rows
    notes = []
    is_inferred = options.header is None and not any(table.names)
    has_names = not any(is_number(field) for field in first)
    if is_inferred and has_names and any(all(map(is_number, column)) for column in zip(*below, strict=False)):
        notes.append(
            f"the first row, {', '.join(first)}, was read as an edge: header=True if it names columns"
        )
    read = {column.index for column in columns.values()}
    ignored = [index for index in range(table.num_fields) if index not in read]
    if not ignored:
        return notes
    shown = ", ".join(
        f"{index} ({table.names[index]})" if table.names[index] else f"{index}" for index in ignored
    )
    plural = "s" if len(ignored) > 1 else ""
    return [
        *notes,
        f"column{plural} {shown} not read (counted from 0; weights= and columns= read further columns)",
    ]


def _edge_lines(graph: GraphArrays, delimiter: str) -> Iterator[bytes]:
    """Yield an edge list's lines. Collective: ids are looked up in as many rounds on every rank."""
    blocks = rows_as_chunks(graph)
    nothing = np.empty(0, dtype=graph.targets.dtype)
    while True:
        chunk = next(blocks, None)
        if not graph.group.all_reduce(np.array([int(chunk is not None)]), "max")[0]:
            return
        chunk = chunk or EdgeChunk(
            nothing, nothing, {name: column[:0] for name, column in graph.columns.items()}
        )
        chunk = once(graph, chunk, chunk.sources <= chunk.targets)
        ends = [graph.ids.to_oids(end.astype(np.int64)) for end in (chunk.sources, chunk.targets)]
        yield text_lines([*ends, *chunk.columns.values()], delimiter)
