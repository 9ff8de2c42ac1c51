"""The one door for graph files: `load` finds the format, reads, builds and accounts for it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from sigps.errors import ConfigError, GraphError
from sigps.graph.agreement import raise_together, together
from sigps.graph.building.build import build_graph
from sigps.graph.building.edges import EdgeChunk, TextChunk
from sigps.graph.building.rows import Duplicates
from sigps.graph.formats.adjacency import read_adjacency
from sigps.graph.formats.arrow import read_arrow, read_parquet
from sigps.graph.formats.blocks import TextFile, require_file
from sigps.graph.formats.dimacs import read_dimacs
from sigps.graph.formats.edge_input import ColumnRef, EdgeInput, LoadOptions
from sigps.graph.formats.edge_list import read_edge_list
from sigps.graph.formats.ldbc import ldbc_files, read_ldbc
from sigps.graph.formats.matrix_market import read_matrix_market
from sigps.graph.formats.metis import read_metis
from sigps.graph.graph import Graph
from sigps.graph.report import LoadReport
from sigps.group import Group, world

__all__ = ["FORMATS", "detect_format", "load"]


def load(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    directed: bool | None = None,
    weights: bool | ColumnRef | None = None,
    columns: Mapping[str, ColumnRef] | None = None,
    source: int | str | None = None,
    target: int | str | None = None,
    delimiter: str | None = None,
    comment: str | None = None,
    header: bool | None = None,
    ids: Literal["int", "string"] | None = None,
    duplicates: Duplicates = "keep",
    self_loops: Literal["keep", "drop"] = "keep",
    group: Group | None = None,
) -> Graph:
    r"""Read a graph file, compressed (.gz, .xz, .zst, .bz2) or not. Collective: each rank keeps its share.

    Text is read in blocks that several threads parse; the whole text is never in memory. The graph's
    `report` tells what was found, kept, dropped and skipped.

    Args:
        path: The file; for `ldbc` one of its files or their common beginning, for `store` its folder.
        format: `"auto"` goes by the suffix and the first lines. Otherwise `"snap"` (or `"edges"`),
            `"csv"`, `"tsv"`, `"mtx"`, `"metis"`, `"dimacs"`, `"ldbc"`, `"adjacency"`, `"parquet"`,
            `"arrow"` or `"store"`.
        directed: Whether edges have a direction. None takes what the format says, True where it does not.
        weights: None reads the weights that the format declares (mtx, metis, dimacs, ldbc), and of edge
            lists none. True requires weights; in edge lists it is the column named `weight`, else the
            third. A column's name, its number from 0, or either with a type, as in `(3, "int64")`, chooses
            one. False reads none.
        columns: Further edge columns by the name that they get: `{"time": 2}` or `{"time": (2, "int64")}`.
        source: The column of source ids: a name or a number from 0.
        target: The column of target ids.
        delimiter: What separates fields, one character or `"whitespace"`. None goes by the first rows.
        comment: What begins a comment line. None means `#`, `%` and `//`.
        header: Whether the first row names the columns. None goes by the first rows.
        ids: `"int"` (the default for text) or `"string"`, any text.
        duplicates: `"keep"` parallel edges, `"drop"` all but the first, or reduce their weights by
            `"sum"`, `"min"` or `"max"`.
        self_loops: `"keep"` or `"drop"`.
        group: The ranks that load together; None for those that the launcher started.

    Raises:
        GraphError: If the file is missing, damaged or wrong; names the file and, where known, the line.
        ConfigError: If the format does not take an option.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "graph.txt")
    >>> _ = file.write_text("# a comment\n10 20\n20 30\n")
    >>> graph = load(file)
    >>> graph.num_vertices, graph.num_edges, graph.report.rows_skipped
    (3, 2, 1)
    >>> folder.cleanup()
    """
    started = time.perf_counter()
    group = world() if group is None else group
    options = LoadOptions(directed, weights, columns, source, target, delimiter, comment, header, ids)
    file = Path(path)
    reduces = (duplicates, self_loops) != ("keep", "keep")
    reader = together(lambda: _reader(file, format, options, reduces=reduces), group)
    if reader is None:
        from sigps.graph.formats.store import open_store

        return open_store(path, group)
    found = together(lambda: reader.read(file, options, group), group)
    report = LoadReport(format=found.format, source=str(path), directed=found.directed)
    report.seconds = time.perf_counter() - started
    graph = build_graph(
        _read(found, group),
        directed=found.directed,
        group=group,
        vertices=found.vertices,
        duplicates=duplicates,
        self_loops=self_loops,
        report=report,
    )
    if found.num_listed is not None:
        _require_listed(path, found.num_listed, graph)
    report.rows_skipped = int(group.all_reduce(np.array([found.rows_skipped]), "sum")[0])
    report.notes = found.notes
    return graph


def detect_format(path: Path) -> str:
    """Return the format of a file by its suffix and, where that does not decide, its first lines.

    Raises:
        GraphError: If the file is missing, empty or binary of no known kind.
    """
    if path.is_dir():
        if (path / "header.msgpack").is_file():
            return "store"
        raise GraphError(f"{path}: is a directory without a graph store; name a graph file")
    if path.suffix in _LDBC_SUFFIXES:
        return "ldbc"
    if not path.exists():
        with contextlib.suppress(GraphError):
            ldbc_files(path)
            return "ldbc"
        require_file(path)  # its error tells of the file that was asked for
    with open(path, "rb") as file:
        magic = file.read(6)
    by_content = next((name for start, name in _MAGIC.items() if magic.startswith(start)), None)
    by_suffix = _SUFFIXES.get(path.suffix.lower())
    if by_content is not None or by_suffix in _MAGIC.values():
        return by_content or by_suffix or ""
    text = TextFile(path)
    if text.inner_suffix in _LDBC_SUFFIXES:
        return "ldbc"
    first = []
    for _, line in text.lines():
        if line.strip():
            first.append(line)
        if len(first) == _NUM_FIRST_LINES:
            break
    return format_of(text.inner_suffix, first)


def format_of(suffix: str, lines: list[bytes]) -> str:
    """Return the format of a text by its suffix, as `.txt`, and its first lines that are not blank."""
    if lines and lines[0].lower().startswith(b"%%matrixmarket"):
        return "mtx"
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    rows = [line.split() for line in lines if not line.lstrip().startswith((b"#", b"%", b"//"))]
    if any(row[0] == b"p" and len(row) == 4 for row in rows) or (rows and rows[0][0] in (b"a", b"c")):
        return "dimacs"
    # An adjacency list has lines of several lengths, and each vertex has one line.
    lengths = {len(row) for row in rows}
    if suffix == "" and len(lengths) > 1 and len({row[0] for row in rows}) == len(rows):
        return "adjacency"
    return "snap"


@dataclass(frozen=True)
class _Format:
    """How a format is read, and which fields of `LoadOptions` it takes besides `directed`."""

    read: Callable[[Path, LoadOptions, Group], EdgeInput]
    options: frozenset[str]


_TABLE = frozenset(field.name for field in fields(LoadOptions)) - {"directed"}

FORMATS = {
    "snap": _Format(read_edge_list, _TABLE),
    "csv": _Format(partial(read_edge_list, format="csv"), _TABLE),
    "tsv": _Format(partial(read_edge_list, format="tsv"), _TABLE),
    "mtx": _Format(read_matrix_market, frozenset({"weights"})),
    "metis": _Format(read_metis, frozenset({"weights"})),
    "dimacs": _Format(read_dimacs, frozenset({"weights"})),
    "ldbc": _Format(read_ldbc, frozenset({"weights", "columns", "ids"})),
    "adjacency": _Format(read_adjacency, frozenset({"weights", "delimiter", "comment", "ids"})),
    "parquet": _Format(read_parquet, frozenset({"weights", "columns", "source", "target", "ids"})),
    "arrow": _Format(read_arrow, frozenset({"weights", "columns", "source", "target", "ids"})),
}
"""Every format but the native store, by its name."""

_ALIASES = {
    "edges": "snap",
    "txt": "snap",
    "graphalytics": "ldbc",
    "matrix-market": "mtx",
    "feather": "arrow",
}
_LDBC_SUFFIXES = (".v", ".e", ".properties")
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "snap",
    ".edges": "snap",
    ".el": "snap",
    ".mtx": "mtx",
    ".graph": "metis",
    ".metis": "metis",
    ".gr": "dimacs",
    ".dimacs": "dimacs",
    ".col": "dimacs",
    ".adj": "adjacency",
    ".adjlist": "adjacency",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_NUM_FIRST_LINES = 50


def _reader(path: Path, format: str, options: LoadOptions, *, reduces: bool) -> _Format | None:
    """Return what reads the file, None for a native store, which needs no reading.

    Raises:
        GraphError: If the file is missing.
        ConfigError: If the format is unknown or does not take an option.
    """
    format = detect_format(path) if format == "auto" else _ALIASES.get(format, format)
    given = {field.name for field in fields(options) if getattr(options, field.name) is not None}
    if format == "store":
        if given or reduces:
            raise ConfigError(
                f"{path}: a native store holds a finished graph, so it takes no options of reading; "
                "give them when the store is written"
            )
        return None
    if format not in FORMATS:
        known = ", ".join(["auto", *FORMATS, "store"])
        raise ConfigError(f"format={format!r} is not known; choose one of {known}")
    unknown = sorted(given - FORMATS[format].options - {"directed"})
    if unknown:
        taken = ", ".join(f"{name}=" for name in ["directed", *sorted(FORMATS[format].options)])
        raise ConfigError(
            f"{path}: {', '.join(f'{name}=' for name in unknown)} means nothing for the format {format!r}, "
            f"which takes {taken}. format= chooses another format"
        )
    return FORMATS[format]


def _require_listed(path: str | os.PathLike[str], num_listed: int, graph: Graph) -> None:
    """Refuse edges that name vertices which the file does not list, and vertices listed twice. Collective."""
    num_listed = int(graph.group.all_reduce(np.array([num_listed]), "sum")[0])
    if graph.num_vertices != num_listed:
        too_many = graph.num_vertices > num_listed
        raise GraphError(
            f"{path}: {num_listed} vertices are listed, but {graph.num_vertices} different ones occur: "
            + ("an edge names a vertex that is not listed" if too_many else "a vertex is listed twice")
            + "; correct the vertex file"
        )


def _read(found: EdgeInput, group: Group) -> Iterator[EdgeChunk | TextChunk]:
    """Yield this rank's edges, and then agree with the other ranks that all is well. Collective."""
    error: Exception | None = None
    try:
        yield from found.chunks
    except Exception as raised:
        error = raised
    raise_together(error, group)
    found.check(group)
