"""Every format of graph files but the native store, one line each.

A new format is a module in this folder and a line here. It provides:

    read        its reader, from a path to edges: the contract is `EdgeInput` in edge_input.py; not collective
    suffixes    the ends of its file names, in lower case, before those of compression; `sigps convert` writes the first
    options     the fields of `LoadOptions` that its reader takes besides `directed`
    is_text     whether its files are text, compressed or not
    begins      detection, before suffixes: matches the first line that is not blank, or the first bytes if not text
    resembles   detection, after suffixes: whether the fields of the first lines that are no comments look like it
    is_at       detection by the path alone, which may not exist: for a format of several files
    write       its writer, from a graph to a path; collective, text_output.py helps

Only `read` and `suffixes` are needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.formats.adjacency import read_adjacency, resembles_adjacency
from sigps.graph.formats.arrow import read_arrow, read_parquet
from sigps.graph.formats.blocks import TextFile, require_file, sample
from sigps.graph.formats.dimacs import read_dimacs, resembles_dimacs
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.formats.edge_list import read_edge_list, write_edge_list
from sigps.graph.formats.gml import read_gml
from sigps.graph.formats.ldbc import is_ldbc, read_ldbc
from sigps.graph.formats.matrix_market import read_matrix_market, write_matrix_market
from sigps.graph.formats.metis import read_metis, write_metis
from sigps.graph.formats.store_folders import part_of
from sigps.graph.formats.store_header import is_store
from sigps.group import Group

__all__ = ["ALIASES", "FORMATS", "Format", "detect_format", "format_of"]


@dataclass(frozen=True)
class Format:
    """What a format provides; the top of this page says what each field is."""

    read: Callable[[Path, LoadOptions, Group], EdgeInput]
    suffixes: tuple[str, ...]
    options: frozenset[str] = frozenset()
    is_text: bool = True
    begins: re.Pattern[bytes] | None = None
    resembles: Callable[[str, list[list[bytes]]], bool] | None = None
    is_at: Callable[[Path], bool] | None = None
    write: Callable[[GraphArrays, str | os.PathLike[str]], None] | None = None


_WEIGHTS = frozenset({"weights"})
_LISTS = frozenset({"weights", "delimiter", "comment", "ids"})
_COLUMNS = frozenset({"weights", "columns", "source", "target", "ids"})
_TABLE = frozenset(field.name for field in fields(LoadOptions)) - {"directed"}
_BANNER = re.compile(rb"%%matrixmarket", re.IGNORECASE)
_GML = re.compile(rb"graph\s*(\[|$)|Creator\s+\"", re.IGNORECASE)
_CSV, _TSV = partial(read_edge_list, format="csv"), partial(read_edge_list, format="tsv")

FORMATS = {
    "snap": Format(read_edge_list, (".txt", ".edges", ".el"), _TABLE, write=write_edge_list),
    "csv": Format(_CSV, (".csv",), _TABLE, write=write_edge_list),
    "tsv": Format(_TSV, (".tsv",), _TABLE, write=write_edge_list),
    "mtx": Format(read_matrix_market, (".mtx",), _WEIGHTS, begins=_BANNER, write=write_matrix_market),
    "metis": Format(read_metis, (".graph", ".metis"), _WEIGHTS, write=write_metis),
    "dimacs": Format(read_dimacs, (".gr", ".dimacs", ".col"), _WEIGHTS, resembles=resembles_dimacs),
    "ldbc": Format(read_ldbc, (".v", ".e", ".properties"), _COLUMNS - {"source", "target"}, is_at=is_ldbc),
    "adjacency": Format(read_adjacency, (".adj", ".adjlist"), _LISTS, resembles=resembles_adjacency),
    "gml": Format(read_gml, (".gml",), frozenset({"weights", "columns", "ids"}), begins=_GML),
    "parquet": Format(read_parquet, (".parquet",), _COLUMNS, False, re.compile(b"PAR1")),
    "arrow": Format(read_arrow, (".arrow", ".feather"), _COLUMNS, False, re.compile(b"ARROW1")),
}
"""The formats by name."""

ALIASES = {
    "edges": "snap",
    "txt": "snap",
    "graphalytics": "ldbc",
    "matrix-market": "mtx",
    "feather": "arrow",
}
"""Other names of formats."""


_NETWORKX, _SCIPY = "sigps.Graph.from_networkx takes", "sigps.Graph.from_scipy takes"
OTHERS = {
    "Rutherford-Boeing": (
        (".rb", ".hb", ".rsa", ".rua", ".psa", ".pua", ".isa", ".iua", ".rra", ".pra"),
        f"collections offer the same matrix in Matrix Market format; {_SCIPY} what scipy.io.hb_read reads",
    ),
    "GraphML": ((".graphml",), f"{_NETWORKX} what networkx.read_graphml reads"),
    "GEXF": ((".gexf",), f"{_NETWORKX} what networkx.read_gexf reads"),
    "Pajek": ((".net", ".pajek"), f"{_NETWORKX} what networkx.read_pajek reads"),
    "MATLAB": ((".mat",), f"{_SCIPY} what scipy.io.loadmat reads"),
    "NumPy": ((".npz", ".npy"), f"{_SCIPY} what scipy.sparse.load_npz reads, sigps.Graph.from_edges arrays"),
}
"""Formats that are not read: the ends of their file names, and what to do."""


def detect_format(path: Path) -> str:
    """Return the format of a file by its suffix and, where that does not decide, its first lines.

    Raises:
        GraphError: If the file is missing, empty, of a format that is not read, or binary of no known kind.
    """
    if path.is_dir():
        if is_store(path) or part_of(path) is not None:
            return "store"
        raise GraphError(f"{path}: is a directory without a graph store; name a graph file")
    for name, format in FORMATS.items():
        if format.is_at is not None and format.is_at(path):
            return name
    require_file(path)
    with open(path, "rb") as file:
        begin = file.read(6)
    by_suffix = _by_suffix(path.suffix.lower())
    found = _by_begin(begin, is_text=False) or by_suffix
    if found is not None and not FORMATS[found].is_text:
        return found
    text = TextFile(path)
    for kind, (suffixes, advice) in OTHERS.items():
        if text.inner_suffix in suffixes:
            raise GraphError(
                f"{path}: {kind} files are not read: {advice}. format= reads the file as another format"
            )
    lines = sample((offset, line) for offset, line in text.lines() if line.strip())
    return format_of(text.inner_suffix, [line for _, line in lines])


def format_of(suffix: str, lines: list[bytes]) -> str:
    """Return the format of a text by its suffix, as `.txt`, and its first lines that are not blank."""
    found = (_by_begin(lines[0], is_text=True) if lines else None) or _by_suffix(suffix)
    if found is not None:
        return found
    rows = [line.split() for line in lines if not line.lstrip().startswith((b"#", b"%", b"//"))]
    alike = (name for name, format in FORMATS.items() if format.resembles and format.resembles(suffix, rows))
    return next(alike, "snap")


def _by_suffix(suffix: str) -> str | None:
    return next((name for name, format in FORMATS.items() if suffix in format.suffixes), None)


def _by_begin(begin: bytes, *, is_text: bool) -> str | None:
    candidates = ((name, format) for name, format in FORMATS.items() if format.is_text is is_text)
    return next((name for name, format in candidates if format.begins and format.begins.match(begin)), None)
