"""METIS graph files: line i lists the neighbours of vertex i.

    % comment
    n m [fmt [ncon]]
    [size] [ncon vertex weights] neighbour [weight] neighbour [weight] ...

A file in which each of m edges is listed by its source alone is read with `directed=True`.

Of the three digits of `fmt` the last stands for edge weights, the middle for vertex weights, the first for vertex
sizes; vertex weights and sizes are skipped. Ids are 1..n, a blank line is an isolated vertex, and each of the m
edges is listed at both its ends.
Format: Karypis, "METIS: A Software Package for Partitioning Unstructured Graphs", manual 5.1, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.rows import rows_as_chunks
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, own_ids, wants_weights
from sigps.graph.formats.numerals import header_counts
from sigps.graph.formats.ragged import ListedTwice, RaggedLines, RaggedParser
from sigps.graph.formats.text_output import PathLike, count_given, format_fields, write_text
from sigps.graph.formats.text_table import WHITESPACE, in_order, split_line
from sigps.group import Group, together

__all__ = ["read_metis", "write_metis"]


def read_metis(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read the header of a METIS file; iterating over `chunks` reads the edges.

    Every rank reads all bytes, because a line's number is its vertex, and parses its share.

    Raises:
        GraphError: If the header is wrong.
    """
    source = TextFile(path)
    head = _Header.of(source)
    weighted = wants_weights(options, head.has_weights, f"{path}: a METIS file of format {head.code}")
    directed = False if options.directed is None else options.directed
    result = EdgeInput(
        "metis", directed, vertices=own_ids(head.num_vertices, group, f"{path}:{head.num_lines}")
    )
    result.rows_skipped = head.num_lines if group.rank == 0 else 0
    reader = _Reader(RaggedParser(source, ("%",)), head, weighted, result)
    result.chunks = reader.chunks(source, group)
    result.check = reader.check
    return result


def write_metis(graph: GraphArrays, path: PathLike) -> None:
    """Write METIS adjacency: a line a vertex, vertices numbered from 1 in the order of their ids. Collective.

    Raises:
        GraphError: If the graph is directed, has self-loops or parallel edges, or weights that are not
            positive whole numbers, which the format cannot hold; or if the file cannot be written.
    """
    if graph.directed:
        raise GraphError("METIS files hold undirected graphs; graph.undirected() makes one")
    together(lambda: _check_metis(graph), graph.group)
    num_edges = count_given(graph)
    head = f"{graph.num_vertices} {num_edges}{' 001' if graph.has_weights else ''}\n"
    write_text(path, graph.group, head, _neighbour_lines(graph))


@dataclass(frozen=True)
class _Header:
    """The header; a line has `num_skipped_fields` before its neighbours; lines begin at the offset `start`."""

    num_vertices: int
    num_edges: int
    code: str
    num_skipped_fields: int
    num_lines: int
    start: int | None

    @property
    def has_weights(self) -> bool:
        return self.code[-1] == "1"

    @classmethod
    def of(cls, source: TextFile) -> _Header:
        found = source.header(b"%")
        if found is None:
            raise GraphError(f"{source.path}: the file has no header 'n m [fmt [ncon]]', only comments")
        number, line, start = found
        text = line.decode("utf-8", errors="replace")
        words = split_line(line, WHITESPACE)
        code = words[2].zfill(3) if len(words) > 2 else "000"
        rule = "the header must be 'n m [fmt [ncon]]' with fmt of digits 0 and 1, such as '4 5 011'"
        if not 2 <= len(words) <= 4 or len(code) != 3 or set(code) - {"0", "1"}:
            raise GraphError(f"{source.path}:{number}: {rule}, not {text[:80]!r}")
        given = [*words[:2], *(words[3:] or ["1"])]
        num_vertices, num_edges, num_weights = header_counts(given, rule, text, f"{source.path}:{number}")
        num_skipped = int(code[0]) + (num_weights if code[1] == "1" else 0)
        return cls(num_vertices, num_edges, code, min(num_skipped, 2**31), number, start)


class _Reader:
    """Turns the lines of one file, in order, into edges."""

    def __init__(self, parser: RaggedParser, head: _Header, weighted: bool, result: EdgeInput) -> None:
        self._parser, self._head, self._weighted, self._result = parser, head, weighted, result
        self._listed = ListedTwice()
        self._num_lines = 0

    def chunks(self, source: TextFile, group: Group) -> Iterator[EdgeChunk]:
        if self._head.start is None:
            return
        blocks = source.blocks(group, start=self._head.start, every=True)
        for lines in in_order(self._parser.parse, blocks, group):
            if lines.is_own:
                self._result.rows_skipped += lines.num_comments
                yield self._edges(lines)
            self._num_lines += lines.num_lines

    def check(self, group: Group) -> None:
        """Compare the number of edges with the header, and the two listings of each edge. Collective."""
        head, path = self._head, self._parser.source.path
        listings = int(group.all_reduce(self._listed.counts, "sum").sum())
        if not self._result.directed:
            is_whole = listings in (head.num_edges, 2 * head.num_edges)
            advice = (
                "directed=True takes each listing as an edge of its own" if is_whole else "Correct the file"
            )
            listings = 2 * self._listed.check(path, group, advice)
        missing = head.num_vertices - self._num_lines
        if listings != 2 * head.num_edges and not (self._result.directed and listings == head.num_edges):
            remedy = "the file is cut off: fetch it again" if missing > 0 else "correct the header"
            raise GraphError(
                f"{path}: the header promises {head.num_edges} edges, or {2 * head.num_edges} neighbours, "
                f"but {head.num_vertices - max(missing, 0)} of {head.num_vertices} vertices have a line, and "
                f"these name {listings}; {remedy}"
            )
        if missing > 0:
            self._result.notes.append(f"no lines for the last {missing} vertices: taken as isolated")

    def _edges(self, lines: RaggedLines) -> EdgeChunk:
        head = self._head
        self._require_lines(lines)
        counts, starts = lines.counts, lines.first_fields
        step = 2 if head.has_weights else 1
        num_listed = np.maximum(counts - head.num_skipped_fields, 0) // step
        place = np.arange(lines.fields.size) - np.repeat(starts + head.num_skipped_fields, counts)
        sources = np.repeat(np.arange(self._num_lines + 1, self._num_lines + 1 + counts.size), num_listed)
        targets = lines.fields[(place >= 0) & (place % step == 0)]
        wrong = np.flatnonzero((targets < 1) | (targets > head.num_vertices))
        if wrong.size:
            problem = f"the neighbour {targets[wrong[0]]} is outside 1..{head.num_vertices}"
            line = int(sources[wrong[0]]) - self._num_lines - 1
            raise self._parser.fault_at(lines.block, line, problem)
        weights = lines.fields[(place >= 0) & (place % 2 == 1)] if head.has_weights else None
        is_kept = self._listed.take(sources, targets, weights)
        if not self._result.directed:
            sources, targets = sources[is_kept], targets[is_kept]
            weights = None if weights is None else weights[is_kept]
        return EdgeChunk(
            sources, targets, {"weight": weights} if self._weighted and weights is not None else {}
        )

    def _require_lines(self, lines: RaggedLines) -> None:
        """Raise GraphError for lines after the last vertex and lines with a wrong number of fields."""
        head = self._head
        beyond = np.flatnonzero(lines.counts[max(head.num_vertices - self._num_lines, 0) :])
        if beyond.size:
            line = max(head.num_vertices - self._num_lines, 0) + int(beyond[0])
            problem = f"the header promises {head.num_vertices} vertices, but this line is one more"
            raise self._parser.fault_at(lines.block, line, problem)
        here = lines.counts[: max(head.num_vertices - self._num_lines, 0)]
        extra = here - head.num_skipped_fields
        wrong = (extra < 0) & ((here > 0) | (head.num_skipped_fields > 0))
        if head.has_weights:
            wrong |= extra % 2 == 1
        if wrong.any():
            problem = (
                f"format {head.code} needs {head.num_skipped_fields} fields before the neighbours"
                f"{' and a weight after each' if head.has_weights else ''}, but the line has "
                f"{int(here[wrong][0])} fields"
            )
            raise self._parser.fault_at(lines.block, int(np.flatnonzero(wrong)[0]), problem)


def _check_metis(graph: GraphArrays) -> None:
    """Raise GraphError for edges that METIS files cannot hold."""
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


def _neighbour_lines(graph: GraphArrays) -> Iterator[bytes]:
    """Yield METIS lines. The line end is written before the next edge of a later row, as often as rows end."""
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
        fields = [lead[:, None], format_fields(chunk.targets.astype(np.int64) + 1)]
        if graph.has_weights:
            fields += [
                np.full((sources.size, 1), ord(" "), np.uint8),
                format_fields(chunk.columns["weight"].astype(int)),
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
