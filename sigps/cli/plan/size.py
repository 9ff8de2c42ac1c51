"""How large a job's graph is, without reading its edges.

Exact from a native store's header, a generator's formula, and files that state their counts at the top;
an estimate from the first bytes of any other file. `Size.basis` says which.
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sigps.costs.sizes import Size
from sigps.errors import GraphError
from sigps.graph.formats.blocks import TextFile
from sigps.graph.formats.numerals import whole_number

if TYPE_CHECKING:
    from sigps.job.config import JobConfig

__all__ = ["measure"]

_HEAD_BYTES = 1 << 18  # of the file
_MOST_HEAD_BYTES = 1 << 21  # of what these unfold into
_EDGES_A_VERTEX = 8  # where the number of vertices is unknown


def measure(job: JobConfig) -> Size:
    """Return how large a job's graph is. Reads at most a few hundred KiB.

    Raises:
        SigpsError: If the store, the generator's options or the head of the file are wrong.
    """
    if job.graph.generator is not None:
        return _of_generator(job)
    path, *others = map(Path, job.graph.paths)
    if others or path.is_dir():
        return _of_store(job.graph.paths)
    if path.suffix == ".parquet":
        return _of_parquet(job, path)
    return _of_text(job, path)


def _of_generator(job: JobConfig) -> Size:
    from sigps.graph.generators.generate import edge_stream

    name, options = job.graph.generator_call
    edges = edge_stream(name, **options)
    stored = edges.num_edges * (1 if edges.directed else 2)
    drops = "drop" in (edges.duplicates, edges.self_loops)
    basis = f"the generator's formula{', before duplicates and self-loops are dropped' if drops else ''}"
    return Size(edges.num_vertices, stored, edges.directed, 4 if edges.weights else 0, basis)


def _of_store(folders: list[str]) -> Size:
    from sigps.graph.formats.store_header import read_header

    header, _ = read_header(folders)
    columns = sum(dtype.itemsize for dtype in header.column_types())
    shapes = (math.prod(shape) for _, shape in header.vertex_columns)
    of_vertices = sum(t.itemsize * k for t, k in zip(header.vertex_column_types(), shapes, strict=True))
    basis = "the store's header"
    return Size(header.num_vertices, header.num_edges, header.directed, columns, basis, of_vertices)


def _of_parquet(job: JobConfig, path: Path) -> Size:
    from pyarrow import ArrowInvalid, parquet

    try:
        rows = int(parquet.read_metadata(path).num_rows)
    except (OSError, ArrowInvalid) as error:
        raise GraphError(f"{path}: cannot be read as Parquet: {error}") from None
    return _sized(job, None, rows, True, "the file's metadata")


def _of_text(job: JobConfig, path: Path) -> Size:
    head, num_bytes = _head(path)
    lines = head.decode("utf-8", errors="replace").splitlines()
    stated = _stated(lines, path, job.graph.format)
    if stated is not None:
        return _sized(job, *stated, "the file's header")
    rows = [line for line in lines[:-1] or lines if line.strip() and line.lstrip()[0] not in "#%/cp"]
    if not rows:
        return _sized(job, None, 0, True, "the file's first lines, which hold no edge")
    numbers = sum(len(re.split(r"[\s,;|]+", row.strip())) for row in rows)
    a_row = numbers / len(rows) - 1 if job.graph.format in ("adjacency", "ldbc") else 1
    edges = int(num_bytes / (sum(len(row) + 1 for row in rows) / len(rows)) * a_row)
    return _sized(job, None, edges, True, f"an estimate by the first {len(rows):,} rows of {path.name}")


def _sized(job: JobConfig, num_vertices: int | None, edges: int, directed: bool, basis: str) -> Size:
    from sigps.graph.formats.vertex_table import id_range

    graph = job.graph
    directed = directed if graph.directed is None else graph.directed
    listed = id_range(graph.vertices) if graph.vertices is not None else None
    if listed is not None:
        num_vertices = len(listed)
    elif num_vertices is None:
        num_vertices = edges // _EDGES_A_VERTEX
        basis += f"; vertices are guessed, one for {_EDGES_A_VERTEX} edges"
    num_columns = len(graph.columns or ()) + (graph.weights not in (None, False))
    if graph.vertices is not None and graph.vertex_columns is None:
        basis += "; columns of vertices, which vertex_columns does not name, are not counted"
    stored, of_vertex = edges * (1 if directed else 2), 8 * len(graph.vertex_columns or ())
    return Size(num_vertices, stored, directed, 8 * num_columns, basis, of_vertex)


def _stated(lines: list[str], path: Path, format: str) -> tuple[int, int, bool] | None:
    """Return vertices, edges and direction where the first lines state them."""
    if lines and lines[0].lower().startswith("%%matrixmarket"):
        counts = _counts(lines)
        if len(counts) >= 3:
            return max(counts[:2]), counts[2], lines[0].lower().split()[-1] != "symmetric"
    if format == "metis" or ".graph" in path.suffixes:
        counts = _counts(lines)
        if len(counts) >= 2:
            return counts[0], counts[1], False
    for line in lines[:200]:
        dimacs = re.match(r"p\s+(\w+)\s+([0-9]{1,18})\s+([0-9]{1,18})\s*$", line)
        if dimacs:
            return int(dimacs[2]), int(dimacs[3]), dimacs[1] == "sp"
        snap = re.match(r"#\s*Nodes:\s*([0-9]{1,18})\s+Edges:\s*([0-9]{1,18})\s*$", line)
        if snap:
            return int(snap[1]), int(snap[2]), True
    return None


def _counts(lines: list[str]) -> list[int]:
    """Return the whole numbers that the first line begins with which is no comment."""
    first = next((line.split() for line in lines if not line.startswith("%")), [])
    found = [whole_number(word) for word in first]
    return [
        count for count in itertools.takewhile(lambda count: count is not None, found) if count is not None
    ]


def _head(path: Path) -> tuple[bytes, int]:
    """Return the first bytes of a file, decompressed, and about how many the whole has."""
    source = TextFile(path)
    head, num_read = source.head(_HEAD_BYTES, _MOST_HEAD_BYTES)
    return head, int(source.num_bytes * len(head) / max(num_read, 1))
