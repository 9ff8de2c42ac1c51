"""Graphs to text files: edge lists, Matrix Market, METIS.

Rows stream out block by block, and a block is formatted with array operations: a field is a matrix of
bytes, one row a line, padded with zero bytes that are dropped at the end. Each rank writes its own rows
to a part, the first rank joins the parts, and the file gets its name when it is whole.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import logging
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
from sigps.graph.agreement import raise_together, together
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.blocks import import_optional
from sigps.graph.formats.structures import rows_as_chunks
from sigps.graph.graph import Graph
from sigps.group import Group

__all__ = ["write_edge_list", "write_matrix_market", "write_metis"]

PathLike = str | os.PathLike[str]
Letters = NDArray[np.uint8]
"""[lines, width]: one field of each line; zero bytes are no letters."""


def write_edge_list(
    graph: Graph,
    path: PathLike,
    *,
    delimiter: str | None = None,
    vertices_path: PathLike | None = None,
) -> None:
    """Write one edge a line: source, target, and the edge columns. Collective.

    An undirected edge is written once. The file begins with a comment that tells direction, counts and
    columns; a csv file with a row of names. A suffix .gz, .bz2, .xz or .zst compresses.

    Args:
        graph: The graph.
        path: The file.
        delimiter: One character; None for a comma in .csv files and a tab in others.
        vertices_path: A file for all ids, one a line: an edge list has no place for isolated vertices.

    Raises:
        GraphError: If the file cannot be written, or a string id would read as something else.
    """
    name = Path(path).name.lower()
    is_csv = ".csv" in name if delimiter is None else delimiter == ","
    delimiter = ("," if is_csv else "\t") if delimiter is None else delimiter
    if len(delimiter) != 1 or ord(delimiter) > 127 or delimiter.isalnum() or delimiter in "\r\n.-+#\"'":
        raise GraphError(
            f"delimiter={delimiter!r}: one character is needed that is no part of a number or a line"
        )
    together(lambda: _check_names(graph, delimiter, blanks=is_csv or ".tsv" in name), graph.group)
    if graph.report.isolated and vertices_path is None:
        logging.getLogger(__name__).warning(
            "%s: %d isolated vertices have no line in an edge list; vertices_path= writes all ids",
            path,
            graph.report.isolated,
        )
    fields = ["source", "target", *graph.columns]
    num_edges = _count(graph)
    kind = "directed" if graph.directed else "undirected"
    head = f"# {kind}, {graph.num_vertices} vertices, {num_edges} edges\n# {delimiter.join(fields)}\n"
    head = delimiter.join(fields) + "\n" if is_csv else head
    _write(path, graph.group, head, _edge_lines(graph, delimiter))
    if vertices_path is not None:
        _write(vertices_path, graph.group, "", _id_lines(graph))


def write_matrix_market(graph: Graph, path: PathLike) -> None:
    """Write the adjacency matrix in Matrix Market coordinate format. Collective.

    Vertices are numbered from 1 in the order of their ids. An undirected graph is written as symmetric,
    its lower triangle; without weights as a pattern. Parallel edges are entries of their own. Other
    columns than the weight have no place in the format.

    Raises:
        GraphError: If the file cannot be written.
    """
    weight = graph.columns.get("weight")
    field = "pattern" if weight is None else "integer" if weight.dtype.kind == "i" else "real"
    symmetry = "general" if graph.directed else "symmetric"
    num_entries = _count(graph)
    size = f"{graph.num_vertices} {graph.num_vertices} {num_entries}"
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{size}\n"
    _write(path, graph.group, head, _entry_lines(graph))


def write_metis(graph: Graph, path: PathLike) -> None:
    """Write METIS adjacency: a line a vertex, vertices numbered from 1 in the order of their ids. Collective.

    Raises:
        GraphError: If the graph is directed, has self-loops or parallel edges, or weights that are not
            positive whole numbers, which the format cannot hold; or if the file cannot be written.
    """
    if graph.directed:
        raise GraphError("METIS files hold undirected graphs; graph.undirected() makes one")
    together(lambda: _check_metis(graph), graph.group)
    num_edges = _count(graph)
    head = f"{graph.num_vertices} {num_edges}{' 001' if graph.has_weights else ''}\n"
    _write(path, graph.group, head, _neighbour_lines(graph))


_BLOCK_LINES = 1 << 18
_COMMENTS = ("#", "%", "//")


def _write(path: PathLike, group: Group, head: str, texts: Iterable[bytes]) -> None:
    """Write every rank's texts to one file, in the order of ranks, whole or not at all. Collective."""
    whole = Path(path)
    scratch = f".{whole.name}.{group.broadcast(uuid.uuid4().hex)}."
    parts = [whole.with_name(scratch + str(rank)) for rank in range(group.size)]
    begin = [head.encode()] if group.rank == 0 else []
    try:
        raise_together(_write_part(parts[group.rank], whole.suffix, itertools.chain(begin, texts)), group)
        raise_together(_join(parts, whole) if group.rank == 0 else None, group)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(parts[group.rank])


def _write_part(part: Path, suffix: str, texts: Iterable[bytes]) -> Exception | None:
    """Write texts to a file; return what went wrong. Draws all of them: other ranks may draw theirs."""
    error: OSError | None = None
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_opened(part, suffix))
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
    return None if error is None else _unwritable(error)


def _join(parts: list[Path], whole: Path) -> Exception | None:
    try:
        with open(parts[0], "ab") as joined:
            for part in parts[1:]:
                with open(part, "rb") as more:
                    shutil.copyfileobj(more, joined, 1 << 24)
        os.replace(parts[0], whole)
    except OSError as error:
        return _unwritable(error)
    return None


def _unwritable(error: OSError) -> GraphError:
    problem = GraphError(f"the file cannot be written: {error}. Check the folder, its rights and the disk")
    problem.__cause__ = error
    return problem


def _opened(path: Path, suffix: str) -> Any:
    """Open a file that compresses as its suffix says."""
    if suffix == ".zst":
        import_optional("pyarrow", f"{path}: writing .zst files")
        import pyarrow

        return pyarrow.CompressedOutputStream(str(path), "zstd")
    opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(suffix, open)
    return opener(path, "wb")


def _check_names(graph: Graph, delimiter: str, *, blanks: bool) -> None:
    """Refuse string ids that a reader would take apart or skip."""
    table = graph.ids.table
    if table is None or table.dtype.kind != "U" or not table.size:
        return
    letters = table.view(np.uint32).reshape(table.size, -1)
    forbidden = "".join({"\n", "\r", '"', delimiter, *("" if blanks else " \t\v\f")})
    wrong = np.isin(letters, [ord(letter) for letter in forbidden]).any(axis=1)
    wrong |= letters[:, 0] == 0
    wrong |= ((letters[:, :-1] == 0) & (letters[:, 1:] != 0)).any(axis=1)
    for comment in _COMMENTS:
        wrong |= np.char.startswith(table, comment)
    if wrong.any():
        oid = str(table[np.flatnonzero(wrong)[0]])
        raise GraphError(
            f"the id {oid!r} cannot stand in an edge list with the delimiter {delimiter!r}: it is empty, "
            "holds a delimiter, quote or line end, or begins like a comment. The native store holds any id"
        )


def _check_metis(graph: Graph) -> None:
    """Refuse what METIS files cannot hold."""
    last = None
    for chunk in rows_as_chunks(graph):
        sources, targets = chunk.sources, chunk.targets
        if (sources == targets).any():
            raise GraphError("METIS files hold no self-loops; load the graph with self_loops='drop'")
        pairs = np.stack([sources, targets], axis=1)
        if (pairs[1:] == pairs[:-1]).all(axis=1).any() or (
            last is not None and (pairs[:1] == last).all(1).any()
        ):
            raise GraphError(
                "METIS files hold no parallel edges; load the graph with duplicates='drop' or 'sum'"
            )
        last = pairs[-1:]
        weights = chunk.columns.get("weight", np.ones(1))
        wrong = ~((weights >= 1) & (weights == np.floor(weights)) & (weights < 2**63))
        if wrong.any():
            raise GraphError(
                f"METIS files hold positive whole weights, not {weights[wrong][0]}; scale and round them"
            )


def _once(graph: Graph, chunk: EdgeChunk, which: NDArray[np.bool_]) -> EdgeChunk:
    """Return each edge of a chunk once: all if directed, those of the triangle `which` if not."""
    if graph.directed:
        return chunk
    columns = {name: column[which] for name, column in chunk.columns.items()}
    return EdgeChunk(chunk.sources[which], chunk.targets[which], columns)


def _count(graph: Graph) -> int:
    """Return how many edges were given, an undirected one once. Collective."""
    if graph.directed:
        return graph.num_edges
    loops = sum(int(np.count_nonzero(chunk.sources == chunk.targets)) for chunk in rows_as_chunks(graph))
    num_loops = int(graph.group.all_reduce(np.array([loops]), "sum")[0])
    return (graph.num_edges + num_loops) // 2


def _edge_lines(graph: Graph, delimiter: str) -> Iterator[bytes]:
    """Yield an edge list's lines. Looks ids up together with the other ranks: as many blocks on each."""
    blocks = rows_as_chunks(graph)
    nothing = np.empty(0, dtype=graph.targets.dtype)
    while True:
        chunk = next(blocks, None)
        if not graph.group.all_reduce(np.array([int(chunk is not None)]), "max")[0]:
            return
        chunk = chunk or EdgeChunk(
            nothing, nothing, {name: column[:0] for name, column in graph.columns.items()}
        )
        chunk = _once(graph, chunk, chunk.sources <= chunk.targets)
        ends = [graph.ids.to_oids(end.astype(np.int64)) for end in (chunk.sources, chunk.targets)]
        yield _lines([*ends, *chunk.columns.values()], delimiter)


def _entry_lines(graph: Graph) -> Iterator[bytes]:
    for chunk in rows_as_chunks(graph):
        chunk = _once(graph, chunk, chunk.sources >= chunk.targets)
        weights = [chunk.columns["weight"]] if graph.has_weights else []
        yield _lines([chunk.sources.astype(np.int64) + 1, chunk.targets.astype(np.int64) + 1, *weights], " ")


def _id_lines(graph: Graph) -> Iterator[bytes]:
    """Yield one id a line, of this rank's rows. Looks ids up together with the other ranks."""
    rounds = int(graph.group.all_reduce(np.array([-(-graph.num_rows // _BLOCK_LINES)]), "max")[0])
    for index in range(rounds):
        first = min(index * _BLOCK_LINES, graph.num_rows)
        gids = np.arange(first, min(first + _BLOCK_LINES, graph.num_rows)) + graph.first_row
        yield _lines([graph.ids.to_oids(gids)], "")


def _neighbour_lines(graph: Graph) -> Iterator[bytes]:
    """Yield METIS lines. A line ends when its successor begins, so that empty lines come out right."""
    row = graph.first_row
    at_start = True
    for chunk in rows_as_chunks(graph):
        if not chunk.sources.size:
            continue
        sources = chunk.sources.astype(np.int64)
        ended = np.diff(sources, prepend=row)  # lines that end before each edge
        lead = np.where(ended > 0, ord("\n"), ord(" ")).astype(np.uint8)
        if at_start and not ended[0]:
            lead[0] = 0
        fields = [lead[:, None], _letters(chunk.targets.astype(np.int64) + 1)]
        if graph.has_weights:
            fields += [
                np.full((sources.size, 1), ord(" "), np.uint8),
                _letters(chunk.columns["weight"].astype(int)),
            ]
        letters = np.concatenate(fields, axis=1)
        text = letters[letters != 0]
        begins = np.cumsum(np.count_nonzero(letters, axis=1)) - np.count_nonzero(letters, axis=1)
        more = np.maximum(ended - 1, 0)
        if more.any():
            text = np.insert(text, np.repeat(begins, more), ord("\n"))
        yield text.tobytes()
        row, at_start = int(sources[-1]), False
    yield b"\n" * (graph.first_row + graph.num_rows - row)


def _lines(fields: list[NDArray[Any]], delimiter: str) -> bytes:
    """Return lines of fields."""
    num_lines = fields[0].size
    columns: list[Letters] = []
    for field in fields:
        columns += [_letters(field), np.full((num_lines, 1), ord(delimiter or "\n"), np.uint8)]
    columns[-1] = np.full((num_lines, 1), ord("\n"), np.uint8)
    letters = np.concatenate(columns, axis=1)
    text: bytes = letters[letters != 0].tobytes()
    return text


def _letters(values: NDArray[Any]) -> Letters:
    """Format integers, reals (the shortest text that reads back equal) or strings."""
    if values.dtype.kind == "U":
        values = np.char.encode(values, "utf-8")
    elif values.dtype.kind == "f":
        values = values.astype("S32")
    else:
        return _decimals(values)
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1, values.dtype.itemsize)


def _decimals(values: NDArray[Any]) -> Letters:
    """Format integers, digit by digit from the last."""
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
