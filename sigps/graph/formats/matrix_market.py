"""Matrix Market coordinate files: entry (i, j) is the edge from i to j, its value the weight.

    %%MatrixMarket matrix coordinate real|integer|pattern general|symmetric
    % comments
    rows columns entries
    i j [value]                 # from 1

Ids stay the matrix's 1..n; rows without an entry are isolated vertices. A symmetric matrix is an
undirected graph: its file holds each pair once.
Format: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import mirror
from sigps.graph.building.rows import rows_as_chunks
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, own_ids, promise_edges, wants_weights
from sigps.graph.formats.text_output import PathLike, count_given, once, text_lines, write_text
from sigps.graph.formats.text_table import Column, Layout, read_edges
from sigps.group import Group

__all__ = ["read_matrix_market", "write_matrix_market"]


def read_matrix_market(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read the header of a Matrix Market file; iterating over `chunks` reads the edges.

    Raises:
        GraphError: If the matrix is not a square sparse one of real numbers, or its header is wrong.
    """
    source = TextFile(path)
    head = _Header.of(source)
    bounds = (1, head.num_vertices)
    columns = {
        "source": Column(0, "int64", "row", bounds),
        "target": Column(1, "int64", "column", bounds),
    }
    has_values = head.field != "pattern"
    if wants_weights(options, has_values, f"{path}: a {head.field} matrix"):
        hint = "The header says integer; real allows fractions" if head.field == "integer" else ""
        columns["weight"] = Column(2, head.value_type, "value", hint=hint)
    hint = f"A {head.field} matrix has {3 if has_values else 2} fields an entry"
    layout = Layout(columns, 3 if has_values else 2, comments=("%",), hint=hint)
    directed = not head.is_symmetric if options.directed is None else options.directed
    result = EdgeInput("mtx", directed, vertices=own_ids(head.num_vertices, group))
    result.rows_skipped = head.num_lines if group.rank == 0 else 0
    promise_edges(result, path, head.num_entries, "entries")
    if head.start is not None:
        chunks = read_edges(source, layout, group, head.start, result)
        result.chunks = map(mirror, chunks) if head.is_symmetric and directed else chunks
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

    field: str
    is_symmetric: bool
    num_vertices: int
    num_entries: int
    num_lines: int
    start: int | None

    @property
    def value_type(self) -> str:
        return "int64" if self.field == "integer" else "float64"

    @classmethod
    def of(cls, source: TextFile) -> _Header:
        field, is_symmetric = _banner(source.path, next(source.lines())[1])
        found = source.header(b"%", first=2)
        if found is None:
            raise GraphError(f"{source.path}: the file ends before its size line; fetch it again")
        number, line, start = found
        num_vertices, num_entries = _size(source.path, number, line)
        return cls(field, is_symmetric, num_vertices, num_entries, number, start)


_FIELDS = {"real": "real", "double": "real", "integer": "integer", "pattern": "pattern"}


def _banner(path: Path, line: bytes) -> tuple[str, bool]:
    """Return the field and whether the matrix is symmetric."""
    words = line.decode("utf-8", errors="replace").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket":
        raise GraphError(
            f"{path}:1: {line[:80]!r} is no Matrix Market banner; it must be "
            "'%%MatrixMarket matrix coordinate <field> <symmetry>'. format= names another kind of file"
        )
    _, thing, form, field, symmetry = words
    if (thing, form) != ("matrix", "coordinate"):
        raise GraphError(
            f"{path}:1: a {thing} in {form} form is no graph; only 'matrix coordinate' is read. Write the "
            "matrix as sparse, for example with scipy.io.mmwrite of a coo_array"
        )
    if field not in _FIELDS:
        raise GraphError(
            f"{path}:1: the field {field!r} is no edge weight; it must be real, integer or pattern. "
            "Write the values that you need as real numbers"
        )
    if symmetry not in ("general", "symmetric"):
        raise GraphError(
            f"{path}:1: a {symmetry} matrix is no undirected graph: its two halves differ. "
            "Write it as general, with all entries"
        )
    return _FIELDS[field], symmetry == "symmetric"


def _size(path: Path, number: int, line: bytes) -> tuple[int, int]:
    """Return the counts of vertices and entries."""
    words = line.split()
    if len(words) != 3 or not all(word.isdigit() for word in words):
        raise GraphError(f"{path}:{number}: the size line must be 'rows columns entries', not {line[:80]!r}")
    num_rows, num_columns, num_entries = map(int, words)
    if num_rows != num_columns:
        raise GraphError(
            f"{path}:{number}: the matrix is {num_rows} x {num_columns}, but a graph's is square. For a "
            "bipartite graph, write the entries as an edge list with separate ids for rows and columns"
        )
    return num_rows, num_entries


def _entry_lines(graph: GraphArrays) -> Iterator[bytes]:
    for chunk in rows_as_chunks(graph):
        chunk = once(graph, chunk, chunk.sources >= chunk.targets)
        weights = [chunk.columns["weight"]] if graph.has_weights else []
        yield text_lines(
            [chunk.sources.astype(np.int64) + 1, chunk.targets.astype(np.int64) + 1, *weights], " "
        )
