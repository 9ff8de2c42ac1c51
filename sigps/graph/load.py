"""Load graph files: find the format, read, build, report; and open native stores."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, get_args

import numpy as np
from numpy.typing import NDArray

from sigps.account import drawing, spent_on
from sigps.errors import ConfigError, GraphError
from sigps.graph.building.edges import EdgeChunk, TextChunk
from sigps.graph.building.rows import Duplicates, SelfLoops
from sigps.graph.building.vertex_columns import columns_by_id
from sigps.graph.formats.edge_input import ColumnRef, EdgeInput, LoadOptions, RoundedWeightError
from sigps.graph.formats.store import read_store
from sigps.graph.formats.store_files import Verify
from sigps.graph.formats.store_folders import StorePath, given_folders, paths_text
from sigps.graph.formats.store_header import first_folder
from sigps.graph.formats.table import ALIASES, FORMATS, detect_format
from sigps.graph.formats.vertex_table import VertexRows, read_vertices
from sigps.graph.graph import Graph, build_read
from sigps.graph.report import LoadReport
from sigps.graph.versions.stored import stored_batches
from sigps.group import Group, raise_together, together, world
from sigps.host_memory import bytes_of

__all__ = ["load", "open_store"]

P = ParamSpec("P")


def _as_phase(read: Callable[P, Graph]) -> Callable[P, Graph]:
    """Let those that watch this rank know that it loads a graph."""

    @wraps(read)
    def recorded(*args: P.args, **options: P.kwargs) -> Graph:
        group = options.get("group") or world()
        with group.status.during("loading the graph"), spent_on("load"):  # type: ignore[attr-defined]
            return read(*args, **options)

    return recorded


@_as_phase
def load(
    path: StorePath,
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
    vertices: str | os.PathLike[str] | None = None,
    vertex_id: int | str | None = None,
    vertex_columns: Mapping[str, ColumnRef] | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    verify: Verify | None = None,
    memory: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    group: Group | None = None,
) -> Graph:
    r"""Read a graph file, compressed (.gz, .xz, .zst, .bz2) or not. Collective: each rank keeps its share.

    Text is read in blocks that several threads parse, never as a whole. The graph's `report` counts what was kept,
    dropped and skipped.

    Args:
        path: The file; for `ldbc` one of its files or the common beginning of their names, for `store` its folder. Of a
            packed store whose pages lie in several folders, all of them as a list, in any order.
        format: `"auto"` infers it from the suffix and the first lines. Otherwise a name in
            `sigps.graph.formats.table`: `"snap"` (or `"edges"`), `"csv"`, `"tsv"`, `"mtx"`, `"metis"`,
            `"dimacs"`, `"ldbc"`, `"adjacency"`, `"gml"`, `"parquet"`, `"arrow"` or `"store"`.
        directed: Whether edges have a direction. None: as the file declares, True if its format declares nothing.
        weights: None reads the weights that the format declares (mtx, metis, dimacs, ldbc), and of edge
            lists none. True requires weights; in edge lists it is the column named `weight`, else the
            third. A column's name, its number from 0, or either with a type, as in `(3, "int64")`, chooses
            one. False reads none. Those of edge lists are float64 unless a type is given; int64 where one is a
            whole number that float64 would round, and then all must be whole.
        columns: Further edge columns, by name: `{"time": 2}` or `{"time": (2, "int64")}`.
        source: The column of source ids: a name or a number from 0.
        target: The column of target ids.
        delimiter: The separator of fields, one character or `"whitespace"`. None infers it from the first rows.
        comment: The beginning of comment lines. None means `#`, `%` and `//`.
        header: Whether the first row names the columns. None infers it from the first rows.
        ids: `"int"` (the default for text) or `"string"`, any text.
        vertices: A file with a row for every vertex, `.parquet`, `.arrow` or text: its id, and the values of its
            vertex columns (see `Graph.with_vertex_columns`). Beside any format, a native store too. `"1..1000"` are
            ids without a file. So vertices without an edge are kept; an edge that names another vertex is an error.
        vertex_id: That file's column of ids, by name or number from 0; None for one named "id", else the first.
        vertex_columns: The vertex columns, by name: `{"age": "years"}`, a column of that file; None takes all that
            hold numbers, by their names; {} none.
        duplicates: `"keep"` parallel edges, `"drop"` all but the first, or reduce their weights by
            `"sum"`, `"min"` or `"max"`.
        self_loops: `"keep"` or `"drop"`.
        verify: What of a native store is checked, as in `open_store`; None for `"auto"`.
        memory: What building may take, as bytes or a text such as `"4GB"`: edges wait on disk, are sorted in pieces,
            and stay there, mapped. So a graph that is larger than memory gets a packed store
            (`load(..., memory="4GB").save(..., packed=True)`). None builds in memory. In one process.
        scratch: The folder where they wait, in files without a name; None for the system's (`TMPDIR`).
        group: The ranks of the graph; None for those that the launcher started.

    Raises:
        GraphError: If the file is missing, damaged or wrong; names the file and, if known, the line. If the memory is
            too little for the vertices, or the disk for the edges.
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
    folders = given_folders(path)
    file = folders[0]
    reduces = (duplicates, self_loops) != ("keep", "keep")
    limit = None if memory is None else bytes_of(memory, "memory")
    if vertices is None and (vertex_id, vertex_columns) != (None, None):
        raise ConfigError(
            "vertex_id= and vertex_columns= are columns of a file of vertices: give it as vertices="
        )
    form = "store" if len(folders) > 1 and format == "auto" else format
    read = together(lambda: _reader(file, form, options, reduces=reduces), group)
    if len(folders) > 1 and read is not None:
        raise ConfigError(
            f"format={format!r} is read from one file, and {len(folders)} paths are given: name one"
        )
    if verify is not None and read is not None:
        raise ConfigError(
            f"verify={verify!r} is for native stores, and {paths_text(path)} is none: leave it out"
        )
    if limit is not None and read is None:
        raise ConfigError(
            f"memory={memory!r} is for graphs that are built, and {paths_text(path)} is a native store"
        )
    rows = None
    if vertices is not None:
        table = partial(read_vertices, os.fspath(vertices), vertex_id, vertex_columns, options, group)
        rows = together(table, group)
    if read is None:
        return _with_rows(open_store(path, group, verify or "auto"), rows, vertices)

    def built(options: LoadOptions) -> Graph:
        found = together(partial(read, file, options, group), group)
        if rows is not None and found.num_vertices is None:
            _add_vertices(found, rows[0])
        report = LoadReport(format=found.format, source=paths_text(path), directed=found.directed)
        report.seconds = time.perf_counter() - started
        checked = replace(found, chunks=_read(found, group))
        graph = build_read(checked, duplicates, self_loops, group, report, limit, scratch)
        report.rows_skipped = int(group.all_reduce(np.array([found.rows_skipped]), "sum")[0])
        report.notes = found.notes
        return graph

    try:
        graph = built(options)
    except RoundedWeightError as rounded:
        reason = str(rounded)
    else:
        return _with_rows(graph, rows, vertices)
    graph = built(replace(options, whole_weights=reason))
    graph.report.notes.append(f"weights are int64, which took reading the file twice: {reason}")
    return _with_rows(graph, rows, vertices)


def open_store(path: StorePath, group: Group | None = None, verify: Verify = "auto") -> Graph:
    """Open a stored graph. Collective. Its arrays are mapped: changes to them stay in memory and never reach the files.

    Batches of updates beside it (`Graph.save_update`) are applied.

    Args:
        path: The folder, or the folders of a packed store, in any order.
        group: The ranks that share the graph, each its rows; None for those that the launcher started.
        verify: What is checked. `"auto"`: as `"full"` when the user opens the store for the first time, as `"bounds"`
            while its files stay unchanged, by their sizes, inodes and times. `"full"`: every byte against its
            checksums, and what `"bounds"` checks; one pass over the store, shared among ranks and threads, at the
            speed of memory. `"bounds"`: that offsets, ends of edges and ids are such that programs stay within
            bounds; other changes give wrong results. `"none"`: only the header and the sizes of files; reads nothing
            else, and a damaged store may crash the process.

    Raises:
        ConfigError: If there is no such `verify`.
        GraphError: If the store is missing, incomplete, damaged or of an unknown version, or one of its folders is
            missing or another store's.
    """
    if verify not in get_args(Verify):
        raise ConfigError(f"verify={verify!r} must be one of {', '.join(map(repr, get_args(Verify)))}")
    group = world() if group is None else group
    with group.status.during("loading the graph"), spent_on("load"):
        graph = Graph.of(read_store(path, group, verify=verify))
        sizes = graph.num_vertices, graph.num_edges
        for batch in together(lambda: stored_batches(first_folder(path), sizes), group):
            parts = [(c.sources, c.targets, c.columns) for c in (batch.inserts, batch.deletes)]
            named: dict[str, Any] = {"vertices": batch.vertices, "delete_vertices": batch.deleted_vertices}
            graph = graph.apply(*parts, **{name: ids for name, ids in named.items() if ids.size})
        return graph


def _add_vertices(found: EdgeInput, oids: NDArray[Any]) -> None:
    """Add ids to the vertices of a file that may not list all of them."""
    if found.vertices is None:
        found.vertices = oids
    elif found.takes_more:
        known = np.asarray(found.vertices)
        if {known.dtype.kind, oids.dtype.kind} & {"U"} and known.dtype.kind != oids.dtype.kind:
            raise GraphError("some ids are strings and some are integers; give all of them as strings")
        found.vertices = np.concatenate([known, oids])


def _with_rows(graph: Graph, rows: VertexRows | None, path: object) -> Graph:
    """Return the graph with the vertex columns of a table, of which each rank has read its share. Collective."""
    if rows is None:
        return graph
    found = columns_by_id(graph, rows[0], rows[1], what=str(path))
    return graph.of_columns({**graph.vertex_columns, **found})


def _reader(
    path: Path, format: str, options: LoadOptions, *, reduces: bool
) -> Callable[[Path, LoadOptions, Group], EdgeInput] | None:
    """Return the reader of a file, None for a native store, which needs none.

    Raises:
        GraphError: If the file is missing.
        ConfigError: If the format is unknown or does not take an option.
    """
    name = detect_format(path) if format == "auto" else ALIASES.get(format, format)
    given = {field.name for field in fields(options) if getattr(options, field.name) is not None}
    if name == "store":
        if given or reduces:
            raise ConfigError(
                f"{path}: a native store holds a finished graph, so it takes no options of reading; "
                "give them when the store is written"
            )
        return None
    if name not in FORMATS:
        known = ", ".join(["auto", *FORMATS, "store"])
        raise ConfigError(f"format={name!r} is not known; choose one of {known}")
    unknown = sorted(given - FORMATS[name].options - {"directed"})
    if unknown:
        taken = ", ".join(f"{option}=" for option in ["directed", *sorted(FORMATS[name].options)])
        raise ConfigError(
            f"{path}: {', '.join(f'{option}=' for option in unknown)} means nothing for the format {name!r}, "
            f"which takes {taken}. format= chooses another format"
        )
    return FORMATS[name].read


def _read(found: EdgeInput, group: Group) -> Iterator[EdgeChunk | TextChunk]:
    """Yield this rank's edges, then raise if any rank failed or the file's counts are wrong. Collective.

    Raises:
        RoundedWeightError: On all ranks, if any found one.
    """
    error: Exception | None = None
    try:
        yield from drawing("load", found.chunks)
    except Exception as raised:
        error = raised
    rounded = group.all_gather(str(error) if isinstance(error, RoundedWeightError) else "")
    if any(rounded):
        raise RoundedWeightError(next(filter(None, rounded)))
    raise_together(error, group)
    found.check(group)
