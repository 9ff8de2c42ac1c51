"""Graphs as lines of text: what writers share.

Rows are written block by block, and a block is formatted with array operations: a field is a matrix of
bytes, one row a line, padded with zero bytes, which are dropped at the end. Each rank writes its rows to a
temporary file, and rank 0 joins these and renames the result to the file's name.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import lzma
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.rows import rows_as_chunks
from sigps.graph.formats.blocks import COMMENTS, import_optional, inner_suffix
from sigps.graph.formats.text_table import MARKS
from sigps.group import Group, raise_together, together

__all__ = [
    "PathLike",
    "count_given",
    "format_fields",
    "once",
    "require_readable_ids",
    "text_lines",
    "write_text",
    "write_vertices",
]

PathLike = str | os.PathLike[str]
Letters = NDArray[np.uint8]
"""[lines, width]: one field of each line, padded with zero bytes."""


def write_text(path: PathLike, group: Group, head: str, texts: Iterable[bytes]) -> None:
    """Write every rank's texts to one file, in the order of ranks. Collective.

    A file that is already there is replaced after all ranks have succeeded.

    Raises:
        GraphError: If the file cannot be written; on all ranks.
    """
    whole = Path(path)
    scratch = f".{whole.name}.{group.broadcast(uuid.uuid4().hex)}."
    parts = [whole.with_name(scratch + str(rank)) for rank in range(group.size)]
    begin = [head.encode()] if group.rank == 0 else []
    try:
        raise_together(_write_part(parts[group.rank], whole, itertools.chain(begin, texts)), group)
        raise_together(_join(parts, whole) if group.rank == 0 else None, group)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(parts[group.rank])


def write_vertices(graph: GraphArrays, path: PathLike) -> None:
    """Write the ids of all vertices, one a line; with vertex columns a CSV table, which `load(vertices=)` reads.

    Collective. A column of rows, `f`, becomes `f.0`, `f.1`, ... Columns, and ids that are strings, have a row of names.

    Raises:
        GraphError: If the file cannot be written, or a string id would not be read as the same id.
    """
    delimiter = "," if graph.vertex_columns else {".csv": ",", ".tsv": "\t"}.get(inner_suffix(Path(path)), "")
    require_readable_ids(graph, delimiter, blanks=delimiter != "")
    columns: dict[str, NDArray[Any]] = {}
    for name, column in graph.vertex_columns.items():
        is_plain = column.ndim == 1
        columns |= {name: column} if is_plain else {f"{name}.{i}": part for i, part in enumerate(column.T)}
    is_named = (
        columns or graph.ids.kind == "strings"
    )  # a first id may be "id" or "node", as a name of the column
    head = ",".join(["id", *columns]) + "\n" if is_named else ""
    write_text(path, graph.group, head, _vertex_lines(graph, list(columns.values())))


def require_readable_ids(graph: GraphArrays, delimiter: str, *, blanks: bool) -> None:
    """Check that each string id, as a field of a line, is read as the same id. Collective.

    Args:
        graph: The graph.
        delimiter: What separates fields; empty if a line is one id.
        blanks: Whether an id may hold blanks, since they separate no fields.

    Raises:
        GraphError: If a reader would split, change or skip an id; names it, on all ranks.
    """
    together(lambda: _require_readable(graph.ids.table, delimiter, blanks), graph.group)


_BLOCK_LINES = 1 << 18


def _require_readable(table: NDArray[Any] | None, delimiter: str, blanks: bool) -> None:
    if table is None or table.dtype.kind != "U" or not table.size:
        return
    letters = table.view(np.uint32).reshape(table.size, -1)
    found_first = "" if delimiter in ("", "\t") else MARKS.partition(delimiter)[0]
    forbidden = {"\n", "\r", '"', *delimiter, *found_first, *("" if blanks else " \t\v\f")}
    wrong = np.isin(letters, [ord(letter) for letter in forbidden]).any(axis=1)
    wrong |= letters[:, 0] == 0
    wrong |= np.char.strip(table, " \t\v\f") != table
    wrong |= ((letters[:, :-1] == 0) & (letters[:, 1:] != 0)).any(axis=1)
    for mark in COMMENTS:
        wrong |= np.char.startswith(table, mark)
    if wrong.any():
        oid = str(table[np.flatnonzero(wrong)[0]])
        fields = f"between fields with the delimiter {delimiter!r}" if delimiter else "as a line"
        raise GraphError(
            f"the id {oid!r} cannot be written as text {fields}: it is empty, holds a delimiter, quote or line end, "
            "begins or ends with a blank, or begins like a comment. The native store holds any id"
        )


def _vertex_lines(graph: GraphArrays, columns: list[NDArray[Any]]) -> Iterator[bytes]:
    """Yield the lines of this rank's vertices. Collective: ids are looked up in as many rounds on every rank."""
    rounds = int(graph.group.all_reduce(np.array([-(-graph.num_rows // _BLOCK_LINES)]), "max")[0])
    for index in range(rounds):
        first = min(index * _BLOCK_LINES, graph.num_rows)
        rows = np.arange(first, min(first + _BLOCK_LINES, graph.num_rows))
        oids = graph.ids.to_oids(rows + graph.first_row)
        yield text_lines([oids, *(column[rows] for column in columns)], ",")


def once(graph: GraphArrays, chunk: EdgeChunk, which: NDArray[np.bool_]) -> EdgeChunk:
    """Return each edge of a chunk once: all if directed, else those that `which` selects."""
    if graph.directed:
        return chunk
    columns = {name: column[which] for name, column in chunk.columns.items()}
    return EdgeChunk(chunk.sources[which], chunk.targets[which], columns)


def count_given(graph: GraphArrays) -> int:
    """Return the number of edges, undirected ones counted once. Collective."""
    if graph.directed:
        return graph.num_edges
    loops = sum(int(np.count_nonzero(chunk.sources == chunk.targets)) for chunk in rows_as_chunks(graph))
    num_loops = int(graph.group.all_reduce(np.array([loops]), "sum")[0])
    return (graph.num_edges + num_loops) // 2


def text_lines(fields: list[NDArray[Any]], delimiter: str) -> bytes:
    """Return lines of the given fields, [lines] each, as UTF-8."""
    num_lines = fields[0].size
    columns: list[Letters] = []
    for field in fields:
        columns += [format_fields(field), np.full((num_lines, 1), ord(delimiter or "\n"), np.uint8)]
    columns[-1] = np.full((num_lines, 1), ord("\n"), np.uint8)
    letters = np.concatenate(columns, axis=1)
    text: bytes = letters[letters != 0].tobytes()
    return text


def format_fields(values: NDArray[Any]) -> Letters:
    """Return values as text: integers, reals (the shortest text that reads back equal) or strings."""
    if values.dtype.kind == "U":
        values = np.char.encode(values, "utf-8")
    elif values.dtype.kind == "f":
        values = values.astype("S32")
    else:
        return _decimals(values)
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.dtype.itemsize)


def _write_part(part: Path, whole: Path, texts: Iterable[bytes]) -> Exception | None:
    """Write texts to a part of a file; return the error, if any.

    Iterates over all texts even then: that may be collective.
    """
    error: OSError | None = None
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_opened(part, whole.suffix))
        except OSError as raised:
            error = raised
        for text in texts:
            try:
                if error is None:
                    file.write(text)
            except OSError as raised:
                error = raised
        try:
            stack.close()
        except OSError as raised:
            error = error or raised
    return None if error is None else _unwritable(whole, error)


def _join(parts: list[Path], whole: Path) -> Exception | None:
    try:
        with open(parts[0], "ab") as joined:
            for part in parts[1:]:
                with open(part, "rb") as more:
                    shutil.copyfileobj(more, joined, 1 << 24)
        os.replace(parts[0], whole)
    except OSError as error:
        return _unwritable(whole, error)
    return None


def _unwritable(path: Path, error: OSError) -> GraphError:
    why = error.strerror or error
    problem = GraphError(
        f"{path}: the file cannot be written: {why}. Check the folder, its rights and the disk"
    )
    problem.__cause__ = error
    return problem


def _opened(path: Path, suffix: str) -> Any:
    """Open a file for writing, compressed as `suffix` says."""
    if suffix == ".zst":
        import_optional("pyarrow", f"{path}: writing .zst files")
        import pyarrow

        return pyarrow.CompressedOutputStream(str(path), "zstd")
    opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(suffix, open)
    return opener(path, "wb")


def _decimals(values: NDArray[Any]) -> Letters:
    """Return integers as text, computed digit by digit from the last."""
    negative = values < 0
    rest = values.astype(np.uint64)
    np.negative(rest, out=rest, where=negative)  # two's complement: right for the least int64 too
    width = len(str(int(rest.max(initial=0))))
    if width < 10:
        rest = rest.astype(np.uint32)
    letters = np.zeros((values.size, width + 1), dtype=np.uint8)
    letters[negative, 0] = ord("-")
    for place in range(width, 0, -1):
        tens = rest // 10
        digit = (rest - tens * 10).astype(np.uint8) + ord("0")
        letters[:, place] = digit if place == width else np.where(rest > 0, digit, 0)
        rest = tens
    return letters
