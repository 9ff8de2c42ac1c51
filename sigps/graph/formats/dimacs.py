"""DIMACS and PACE graph files: ids from 1 to the header's n.

    c comment
    p sp n m          # shortest paths: directed, lines 'a u v weight'
    p edge n m        # or col: undirected, lines 'e u v'
    p tw n m          # PACE: undirected, lines 'u v'

The vertices of a file without a `p` line are the ids that occur, from any base.
Formats: 9th DIMACS Implementation Challenge (shortest paths), 2nd (colouring), PACE 2017 (treewidth).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.columns import is_whole
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, own_ids, promise_edges, wants_weights
from sigps.graph.formats.numerals import header_counts
from sigps.graph.formats.text_table import WHITESPACE, Column, Layout, read_edges, split_line
from sigps.group import Group

__all__ = ["read_dimacs", "resembles_dimacs"]


def read_dimacs(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read the header of a DIMACS or PACE file; iterating over `chunks` reads the edges.

    Raises:
        GraphError: If the `p` line is wrong or not of a graph, or there is neither a `p` line nor an edge.
    """
    source = TextFile(path)
    head = _Header.of(source)
    directed = head.is_directed if options.directed is None else options.directed
    result = EdgeInput("dimacs", directed)
    result.rows_skipped = head.num_lines if group.rank == 0 else 0
    if head.size is not None:
        num_vertices, num_edges = head.size
        result.vertices = own_ids(num_vertices, group, str(path))
        promise_edges(result, path, num_edges, "edges")
    layout = _layout(path, head, options)
    if layout is not None:
        result.chunks = read_edges(source, layout, group, head.start, result)
    return result


def resembles_dimacs(suffix: str, rows: list[list[bytes]]) -> bool:
    """Return whether there is a `p` line, or the first line is a comment or an arc of DIMACS."""
    has_problem = any(row[0] == b"p" and len(row) == 4 for row in rows)
    return has_problem or (bool(rows) and rows[0][0] in (b"a", b"c"))


@dataclass(frozen=True)
class _Header:
    """The lines before the edges, and the first edge's fields, empty if there is none."""

    kind: str
    size: tuple[int, int] | None
    num_lines: int
    start: int
    first: list[str]

    @property
    def tag(self) -> str:
        """The letter that begins an edge's line, empty if there is none."""
        return self.first[0] if self.first and self.first[0] in ("a", "e") else ""

    @property
    def is_directed(self) -> bool:
        return _IS_DIRECTED[self.kind] if self.kind else self.tag != "e"

    @classmethod
    def of(cls, source: TextFile) -> _Header:
        kind, size, num_lines = "", None, 0
        for offset, line in source.lines():
            fields = split_line(line, WHITESPACE)
            if fields and fields[0] == "p" and size is None:
                kind, size = _problem(source.path, num_lines + 1, fields)
            elif fields and not line.lstrip().startswith(_COMMENT_BYTES):
                return cls(kind, size, num_lines, offset, fields)
            num_lines += 1
        if size is None:
            raise GraphError(f"{source.path}: the file has neither a p line nor an edge, only comments")
        return cls(kind, size, num_lines, 0, [])


_IS_DIRECTED = {"sp": True, "edge": False, "col": False, "tw": False}
_COMMENTS = ("c", "#", "%")
_COMMENT_BYTES = tuple(prefix.encode() for prefix in _COMMENTS)


def _problem(path: Path, number: int, fields: list[str]) -> tuple[str, tuple[int, int]]:
    line, rule = " ".join(fields), "the problem line must be 'p <kind> <vertices> <edges>'"
    if len(fields) != 4:
        raise GraphError(f"{path}:{number}: {rule}, not {line[:80]!r}")
    if fields[1] not in _IS_DIRECTED:
        raise GraphError(
            f"{path}:{number}: the problem {fields[1]!r} is not known; "
            f"graphs are of the kinds {', '.join(_IS_DIRECTED)}"
        )
    num_vertices, num_edges = header_counts(fields[2:], rule, line, f"{path}:{number}")
    return fields[1], (num_vertices, num_edges)


def _layout(path: Path, head: _Header, options: LoadOptions) -> Layout | None:
    """Return the layout of the edges' lines, inferred from the first."""
    place = len(head.tag)
    has_weights = len(head.first) > place + 2
    weighted = wants_weights(options, has_weights, f"{path}: a DIMACS file whose lines have no weight")
    if not head.first:
        return None
    bounds = None if head.size is None else (1, head.size[0])
    columns = {
        "source": Column(place, "int64", "source id", bounds),
        "target": Column(place + 1, "int64", "target id", bounds),
    }
    if weighted:
        whole = is_whole(head.first[place + 2])
        hint = f'format="snap", source={place}, target={place + 1}, weights={place + 2} reads fractions'
        rounding = None if whole else GraphError
        columns["weight"] = Column(
            place + 2, "int64" if whole else "float64", "weight", hint=hint, rounding=rounding
        )
    if head.tag:
        columns["tag"] = Column(0, "string", "line's first letter", literal=head.tag)
    line = f"{head.tag} u v".strip() + (" weight" if has_weights else "")
    return Layout(columns, place + 2 + has_weights, comments=_COMMENTS, hint=f"Edges read {line!r} here")
