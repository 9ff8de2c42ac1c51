"""Matrix Market files: entry (i, j) is the edge from i to j, its value the weight.

    %%MatrixMarket matrix coordinate real|integer|pattern general|symmetric|skew-symmetric
    % comments
    rows columns entries
    i j [value]                 # from 1

    %%MatrixMarket matrix array real|integer general|symmetric|skew-symmetric
    % comments
    rows columns
    value                       # by columns; of a symmetric matrix from the diagonal down, of a skew one from below it

Ids stay the matrix's 1..n; rows without an entry are isolated vertices, and zeros of an array are no entries. A
symmetric matrix is an undirected graph: its file holds each pair once. A skew-symmetric one is directed: its file
holds one edge of each pair, and the other has the opposite weight.
Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk, mirror
from sigps.graph.building.rows import rows_as_chunks
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, own_ids, promise_edges, wants_weights
from sigps.graph.formats.numerals import header_counts
from sigps.graph.formats.text_output import PathLike, count_given, once, text_lines, write_text
from sigps.graph.formats.text_table import WHITESPACE, Column, Layout, read_edges, read_rows, split_line
from sigps.group import Alone, Group, own_range

__all__ = ["read_matrix_market", "write_matrix_market"]


def read_matrix_market(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read the header of a Matrix Market file; iterating over `chunks` reads the edges.

    Raises:
        GraphError: If the matrix is not a square one of real numbers, or its header is wrong.
    """
    source = TextFile(path)
    head = _Header.of(source)
    directed = head.symmetry != "symmetric" if options.directed is None else options.directed
    if head.symmetry == "skew-symmetric" and not directed:
        raise GraphError(
            f"{path}: the two edges of a pair have opposite weights in a skew-symmetric matrix; it cannot be read "
            "with directed=False"
        )
    result = EdgeInput("mtx", directed)
    result.vertices = own_ids(head.num_vertices, group, f"{path}:{head.num_lines}")
    result.rows_skipped = head.num_lines if group.rank == 0 else 0
    is_weighted = wants_weights(options, head.field != "pattern", f"{path}: a {head.field} matrix")
    read = _read_entries if head.form == "coordinate" else _read_array
    result.chunks = read(source, head, is_weighted, result, group)
    if head.symmetry == "skew-symmetric":
        result.chunks = (_with_opposites(chunk, path) for chunk in result.chunks)
    elif head.symmetry == "symmetric" and directed:
        result.chunks = map(mirror, result.chunks)
    return result


def write_matrix_market(graph: GraphArrays, path: PathLike) -> None:
    """Write the adjacency matrix in Matrix Market coordinate format. Collective.

    Vertices are numbered from 1 in the order of their ids. An undirected graph is written as symmetric,
    its lower triangle; without weights as a pattern. Parallel edges are separate entries. The format has no place for
    columns other than the weight.

    Raises:
        GraphError: If the file cannot be written.
    """
    weight = graph.columns.get("weight")
    field = "pattern" if weight is None else "integer" if weight.dtype.kind == "i" else "real"
    symmetry = "general" if graph.directed else "symmetric"
    num_entries = count_given(graph)
    size = f"{graph.num_vertices} {graph.num_vertices} {num_entries}"
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{size}\n"
    write_text(path, graph.group, head, _entry_lines(graph))


@dataclass(frozen=True)
class _Header:
    """The lines before the entries; `start` is the first entry's offset, None if there is none."""

    form: str
    field: str
    symmetry: str
    num_vertices: int
    num_entries: int
    num_lines: int
    start: int | None

    def values(self, index: int) -> Column:
        """Return the column of values, at a position in a line."""
        if self.field == "integer":
            hint = "The header says integer; real allows fractions"
            has_opposite = (1 - 2**63, 2**63 - 1) if self.symmetry == "skew-symmetric" else None
            return Column(index, "int64", "value", has_opposite, hint=hint)
        return Column(index, "float64", "value")

    @classmethod
    def of(cls, source: TextFile) -> _Header:
        form, field, symmetry = _banner(source.path, next(source.lines())[1])
        found = source.header(b"%", first=2)
        if found is None:
            raise GraphError(f"{source.path}: the file ends before its size line; fetch it again")
        number, line, start = found
        num_vertices, num_entries = _size(source.path, number, line, form, symmetry)
        return cls(form, field, symmetry, num_vertices, num_entries, number, start)


def _read_entries(
    source: TextFile, head: _Header, is_weighted: bool, result: EdgeInput, group: Group
) -> Iterator[EdgeChunk]:
    """Return this rank's share of a sparse matrix's entries, as the file holds them."""
    bounds = (1, head.num_vertices)
    columns = {
        "source": Column(0, "int64", "row", bounds),
        "target": Column(1, "int64", "column", bounds),
    }
    if is_weighted:
        columns["weight"] = head.values(2)
    num_fields = 2 if head.field == "pattern" else 3
    hint = f"A {head.field} matrix has {num_fields} fields an entry"
    layout = Layout(columns, num_fields, comments=("%",), hint=hint)
    promise_edges(result, source.path, head.num_entries, "entries")
    return iter(()) if head.start is None else read_edges(source, layout, group, head.start, result)


def _read_array(
    source: TextFile, head: _Header, is_weighted: bool, result: EdgeInput, group: Group
) -> Iterator[EdgeChunk]:
    """Yield this rank's share of a dense matrix's entries that are not 0; every rank reads all of them."""
    layout = Layout({"value": head.values(0)}, 1, comments=("%",), hint="An array has one value a line")
    is_skew = head.symmetry == "skew-symmetric"
    first_rows = (
        np.arange(head.num_vertices) + is_skew
        if head.symmetry != "general"
        else np.zeros(head.num_vertices, np.int64)
    )
    starts = np.zeros(head.num_vertices + 1, np.int64)
    np.cumsum(head.num_vertices - first_rows, out=starts[1:])
    own, num_read = own_range(head.num_entries, group), 0
    blocks = read_rows(source, layout, Alone(), start=head.start) if head.start is not None else iter(())
    for block in blocks:
        values = np.asarray(block.columns["value"])
        places = np.arange(num_read, num_read + values.size)
        num_read += values.size
        result.rows_skipped += block.num_skipped if group.rank == 0 else 0
        is_entry = (values != 0) & (places >= own.start) & (places < own.stop)
        places, values = places[is_entry], values[is_entry]
        result.num_read += values.size
        columns = np.searchsorted(starts, places, side="right") - 1
        rows = places - starts[columns] + first_rows[columns]
        yield EdgeChunk(rows + 1, columns + 1, {"weight": values} if is_weighted else {})
    if num_read != head.num_entries:
        raise GraphError(
            f"{source.path}: the header promises {head.num_entries} values, but the file has {num_read}"
        )


def _with_opposites(chunk: EdgeChunk, path: Path) -> EdgeChunk:
    """Return each edge followed by its reverse, which has the opposite weight."""
    if (chunk.sources == chunk.targets).any():
        vertex = chunk.sources[chunk.sources == chunk.targets][0]
        raise GraphError(
            f"{path}: the skew-symmetric matrix has an entry at ({vertex}, {vertex}), which must be 0"
        )
    both = mirror(chunk)
    for column in both.columns.values():
        column[1::2] *= -1
    return both


_FIELDS = {"real": "real", "double": "real", "integer": "integer", "pattern": "pattern"}


def _banner(path: Path, line: bytes) -> tuple[str, str, str]:
    """Return the form, the field and the symmetry."""
    words = line.decode("utf-8", errors="replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket":
        raise GraphError(
            f"{path}:1: {line[:80]!r} is no Matrix Market banner; it must be "
            "'%%MatrixMarket matrix <form> <field> <symmetry>'. format= names another kind of file"
        )
    _, thing, form, field, symmetry = words
    if thing != "matrix" or form not in ("coordinate", "array"):
        raise GraphError(
            f"{path}:1: a {thing} in {form} form is no graph; 'matrix coordinate' and 'matrix array' are read"
        )
    if field not in _FIELDS:
        raise GraphError(
            f"{path}:1: the field {field!r} is no edge weight; it must be real, integer or pattern. "
            "Write the values that you need as real numbers"
        )
    if (form, field) == ("array", "pattern") or (field, symmetry) == ("pattern", "skew-symmetric"):
        raise GraphError(
            f"{path}:1: a {symmetry} {form} of the field pattern has no values; no such matrix is"
        )
    if symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise GraphError(
            f"{path}:1: a {symmetry} matrix is no undirected graph: its two halves differ. "
            "Write it as general, with all entries"
        )
    return form, _FIELDS[field], symmetry


def _size(path: Path, number: int, line: bytes, form: str, symmetry: str) -> tuple[int, int]:
    """Return the counts of vertices and of entries in the file."""
    text = line.decode("utf-8", errors="replace")
    names = ["rows", "columns", "entries"][: 3 if form == "coordinate" else 2]
    rule, words = f"the size line must be '{' '.join(names)}'", split_line(line, WHITESPACE)
    if len(words) != len(names):
        raise GraphError(f"{path}:{number}: {rule}, not {text[:80]!r}")
    num_rows, num_columns, *rest = header_counts(words, rule, text, f"{path}:{number}")
    if num_rows != num_columns:
        raise GraphError(
            f"{path}:{number}: the matrix is {num_rows} x {num_columns}, but a graph's is square. For a "
            "bipartite graph, write the entries as an edge list with separate ids for rows and columns"
        )
    num_values = {"general": num_rows**2, "symmetric": num_rows * (num_rows + 1) // 2}
    return num_rows, rest[0] if rest else num_values.get(symmetry, num_rows * (num_rows - 1) // 2)


def _entry_lines(graph: GraphArrays) -> Iterator[bytes]:
    for chunk in rows_as_chunks(graph):
        chunk = once(graph, chunk, chunk.sources >= chunk.targets)
        weights = [chunk.columns["weight"]] if graph.has_weights else []
        yield text_lines(
            [chunk.sources.astype(np.int64) + 1, chunk.targets.astype(np.int64) + 1, *weights], " "
        )
