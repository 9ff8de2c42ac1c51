"""Adjacency lists: a vertex and its neighbours on each line.

    1 2 3         # edges from 1 to 2 and 3
    2 1           # with weights, each neighbour is followed by its weight: 2 1 0.5
    3

Blanks, commas, semicolons and colons separate fields. A line in which blanks and another mark separate neighbours,
`1 2,5 3,7`, could be pairs of neighbour and weight: it is read where `weights=` or `delimiter=` says what it is. A
line with one field is a vertex without out-edges.
The file of an undirected graph lists each edge at both its ends; it is one edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.blocks import COMMENTS, TextFile, first_rows
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.formats.ragged import ListedTwice, RaggedLines, RaggedParser
from sigps.graph.formats.text_table import WHITESPACE, in_order
from sigps.group import Group

__all__ = ["read_adjacency", "resembles_adjacency"]


def read_adjacency(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read an adjacency list. It is read as a whole, because `vertices` is needed before the first chunk.

    Raises:
        GraphError: If a field is wrong, or, with `directed=False`, an edge is listed at one end only.
    """
    if options.weights not in (None, True, False):
        raise GraphError(
            f"{path}: in an adjacency list a weight follows each neighbour: weights={options.weights!r} must "
            "be True, False or None"
        )
    weighted = options.weights is True
    if weighted and options.ids == "string":
        raise GraphError(f"{path}: an adjacency list has weights or string ids, not both; write an edge list")
    source = TextFile(path)
    comments = COMMENTS if options.comment is None else (options.comment,)
    first_rows(source, comments, count=1)
    kind = "string" if options.ids == "string" else "float64" if weighted else "int64"
    separators = _separators(options.delimiter)
    is_said = options.delimiter is not None or options.weights is not None
    parser = RaggedParser(source, comments, separators=separators, type=kind, may_mix=is_said)
    directed = True if options.directed is None else options.directed
    result = EdgeInput("adjacency", directed, takes_more=True)
    twice = None if directed else ListedTwice()
    chunks, vertices = [], []
    for lines in in_order(parser.parse, source.blocks(group), group):
        result.rows_skipped += lines.num_comments + int(np.count_nonzero(lines.counts == 0))
        chunks.append(_edges(parser, lines, weighted, twice))
        vertices.append(_as_ids(lines.fields[lines.first_fields[lines.counts == 1]]))
    result.vertices = np.concatenate(vertices) if vertices else None
    if twice is not None:
        advice = "Load a file that lists edges once, or in one direction, with directed=True"

        def check(group: Group) -> None:
            twice.check(path, group, advice)

        result.check = check
    result.chunks = _released(chunks)
    return result


def resembles_adjacency(suffix: str, rows: list[list[bytes]]) -> bool:
    """Return whether a file without a suffix has lines of several lengths and no vertex with two lines."""
    lengths = {len(row) for row in rows}
    return suffix == "" and len(lengths) > 1 and len({row[0] for row in rows}) == len(rows)


def _separators(delimiter: str | None) -> str:
    """Return the marks that separate fields besides blanks."""
    if delimiter is not None and (delimiter in ("", "\n", "\r", "\0") or not delimiter.isascii()):
        raise GraphError(f"delimiter={delimiter!r}: give ASCII marks, or {WHITESPACE!r} for blanks alone")
    return ",;:" if delimiter is None else "" if delimiter == WHITESPACE else delimiter


def _edges(parser: RaggedParser, lines: RaggedLines, weighted: bool, twice: ListedTwice | None) -> EdgeChunk:
    """Return a block's edges; of undirected ones those that their smaller end lists."""
    counts, starts = lines.counts, lines.first_fields
    if weighted and (wrong := np.flatnonzero((counts > 0) & (counts % 2 == 0))).size:
        problem = "a weight is missing: a vertex and then pairs of neighbour and weight are needed"
        raise parser.fault_at(lines.block, int(wrong[0]), problem)
    has_fields = counts > 0
    is_first = np.zeros(lines.fields.size, dtype=bool)
    is_first[starts[has_fields]] = True
    place = np.arange(lines.fields.size) - np.repeat(starts, counts)
    is_target = place % 2 == 1 if weighted else ~is_first
    step = 2 if weighted else 1
    if weighted:
        _require_ids(parser, lines, is_first | is_target)
    sources = _as_ids(np.repeat(lines.fields[starts[has_fields]], (counts[has_fields] - 1) // step))
    targets = _as_ids(lines.fields[is_target])
    weights = lines.fields[(place % 2 == 0) & ~is_first] if weighted else None
    if twice is not None:
        is_kept = twice.take(sources, targets, weights)
        sources, targets = sources[is_kept], targets[is_kept]
        weights = None if weights is None else weights[is_kept]
    return EdgeChunk(sources, targets, {} if weights is None else {"weight": weights})


def _as_ids(fields: NDArray[Any]) -> NDArray[Any]:
    """Return ids as uint32 if they fit, because all edges of the file are in memory at once."""
    if fields.dtype.kind == "U":
        return fields
    ids = fields.astype(np.int64, copy=False)
    small = not ids.size or (int(ids.min()) >= 0 and int(ids.max()) < 2**32)
    return ids.astype(np.uint32 if small else np.int64)


def _require_ids(parser: RaggedParser, lines: RaggedLines, is_id: NDArray[np.bool_]) -> None:
    """Raise GraphError for an id that is no whole number, or a weight that is not finite."""
    fields = lines.fields
    wrong = np.flatnonzero(is_id & ((fields != np.floor(fields)) | (np.abs(fields) > 2**53)))
    if wrong.size:
        line = int(np.searchsorted(np.cumsum(lines.counts), wrong[0], side="right"))
        raise parser.fault_at(lines.block, line, f"{fields[wrong[0]]} stands where an id must")
    if not np.isfinite(fields).all():
        at = int(np.flatnonzero(~np.isfinite(fields))[0])
        line = int(np.searchsorted(np.cumsum(lines.counts), at, side="right"))
        raise parser.fault_at(
            lines.block, line, f"the weight is {fields[at]}, but it must be a finite number"
        )


def _released(chunks: list[EdgeChunk]) -> Iterator[EdgeChunk]:
    """Yield the chunks in order, and drop each from the list."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()
