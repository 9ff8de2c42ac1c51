"""LDBC Graphalytics graphs: a vertex file `.v`, an edge file `.e`, and usually a `.properties` file.

    graph.v: id [properties], one a line; a vertex needs no edge
    graph.e: source target [weight]; an undirected edge is listed once
    graph.properties: graph.<name>.directed, .meta.edges, .edge-properties.names, .vertex-properties.names

Format: "The LDBC Graphalytics Benchmark", arXiv:2011.15028, section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile, first_rows, require_file
from sigps.graph.formats.columns import is_number, is_whole, value_columns
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions, promise_edges
from sigps.graph.formats.numerals import whole_number
from sigps.graph.formats.text_table import Column, Layout, read_edges, read_rows, split_line
from sigps.group import Group

__all__ = ["is_ldbc", "ldbc_files", "read_ldbc"]


def read_ldbc(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read the vertex file of a Graphalytics graph; iterating over `chunks` reads the edges.

    `path` is the `.v`, `.e` or `.properties` file, or the common beginning of their names.

    Raises:
        GraphError: If a file is missing or wrong, or neither it nor the caller says whether edges have a direction.
    """
    files = ldbc_files(path)
    known = _Properties.of(files.get(".properties"))
    directed = known.directed if options.directed is None else options.directed
    if directed is None:
        raise GraphError(
            f"{path}: neither a .properties file nor the caller says whether edges have a direction; "
            "give directed=True or directed=False"
        )
    kind = "string" if options.ids == "string" else "int64"
    result = EdgeInput("ldbc", directed)
    result.vertices = _vertices(TextFile(files[".v"]), kind, known, group, result)
    result.listed_in = str(files[".v"])
    if known.num_edges is not None:
        promise_edges(result, files[".e"], known.num_edges, "edges (in .properties)")
    if files[".e"].stat().st_size:
        source = TextFile(files[".e"])
        layout = _edge_layout(source, options, known, kind)
        result.chunks = read_edges(source, layout, group, 0, result)
    return result


def ldbc_files(path: Path) -> dict[str, Path]:
    """Return the files of a graph by suffix: `.v`, `.e` and, if there is one, `.properties`.

    Raises:
        GraphError: If the vertex or the edge file is missing.
    """
    name = path.name
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    for ending in _SUFFIXES:
        name = name.removesuffix(ending)
    found = {}
    for ending in _SUFFIXES:
        candidates = [path.parent / f"{name}{ending}{compressed}" for compressed in ("", *_COMPRESSED)]
        given = [path] if path in candidates else []
        there = next((candidate for candidate in [*given, *candidates] if candidate.is_file()), None)
        if there is not None:
            found[ending] = there
        elif ending != ".properties":
            require_file(candidates[0])
    return found


def is_ldbc(path: Path) -> bool:
    """Return whether a path is one of a graph's files, or the common beginning of their names."""
    if path.suffix in _SUFFIXES or path.exists():
        return path.suffix in _SUFFIXES
    try:
        ldbc_files(path)
    except GraphError:
        return False
    return True


_SUFFIXES = (".v", ".e", ".properties")
_COMPRESSED = (".gz", ".xz", ".zst", ".bz2")


@dataclass(frozen=True)
class _Properties:
    """The entries of the `.properties` file; None for those that it does not have."""

    directed: bool | None = None
    num_edges: int | None = None
    columns: list[str] = field(default_factory=list)
    vertex_columns: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path | None) -> _Properties:
        if path is None or not path.stat().st_size:
            return cls()
        values = {}
        for number, (_, line) in enumerate(TextFile(path).lines(), start=1):
            try:
                key, is_pair, value = line.decode("utf-8").partition("=")
            except UnicodeDecodeError as error:
                raise GraphError(
                    f"{path}:{number}: the line is not UTF-8 text ({error.reason}); convert the file first"
                ) from None
            if is_pair and not key.strip().startswith("#"):
                values[key.strip()] = value.strip()
        found: dict[str, Any] = {}
        for name, ending in _KEYS.items():
            text = next((value for key, value in values.items() if key.endswith(ending)), None)
            if text is not None:
                found[name] = _property(path, name, text)
        return cls(**found)


_KEYS = {
    "directed": ".directed",
    "num_edges": ".meta.edges",
    "columns": ".edge-properties.names",
    "vertex_columns": ".vertex-properties.names",
}


def _property(path: Path, name: str, text: str) -> Any:
    if name in ("columns", "vertex_columns"):
        return [column.strip() for column in text.split(",") if column.strip()]
    if name == "directed" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    count = whole_number(text)
    if name != "directed" and count is not None and count >= 0:
        return count
    raise GraphError(f"{path}: {_KEYS[name]} is {text!r}, but it must be {_RULES[name]}")


_RULES = {"directed": "true or false", "num_edges": "a count"}


def _vertices(
    source: TextFile, kind: str, known: _Properties, group: Group, result: EdgeInput
) -> NDArray[Any]:
    """Return this rank's share of the vertex file's ids; set the vertex columns, the properties that are numbers."""
    first = [split_line(line, "whitespace") for _, line in first_rows(source, ("#",)).lines]
    num_fields = len(first[0])
    columns = {"": Column(0, kind, "vertex id")}
    for index, name in enumerate(known.vertex_columns[: num_fields - 1], start=1):
        fields = [row[index] for row in first if index < len(row)]
        if not all(map(is_number, fields)):
            result.notes.append(f"vertex property {name!r} not read: it holds text")
            continue
        whole = all(map(is_whole, fields))
        rounding = None if whole else GraphError
        columns[name] = Column(index, "int64" if whole else "float64", name, rounding=rounding)
    blocks = []
    for rows in read_rows(source, Layout(columns, num_fields, comments=("#",)), group):
        result.rows_skipped += rows.num_skipped
        blocks.append(rows.columns)
    found = {}
    for name, column in columns.items():
        nothing = np.empty(0, dtype=np.str_ if column.type == "string" else column.type)
        found[name] = np.concatenate([nothing, *(np.asarray(block[name]) for block in blocks)])
    ids = found.pop("")
    result.vertex_columns = found
    return ids


def _edge_layout(source: TextFile, options: LoadOptions, known: _Properties, kind: str) -> Layout:
    rows = [split_line(line, "whitespace") for _, line in first_rows(source, ("#",)).lines]
    num_fields = len(rows[0])
    if num_fields < 2:
        raise GraphError(f"{source.path}: the first row {rows[0]} has one field, but an edge needs two ends")
    names = ["", "", *known.columns][:num_fields]
    names += [""] * (num_fields - len(names))
    if options.weights is None and num_fields > 2:
        options = replace(options, weights=2)
    columns = {
        "source": Column(0, kind, "source id"),
        "target": Column(1, kind, "target id"),
        **value_columns(options, names, rows, str(source.path)),
    }
    return Layout(columns, num_fields, comments=("#",), hint="Edges read 'source target [weight]'")
