"""Small graph files to write, and graphs read back as plain tuples."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from sigps.graph import Graph
from sigps.graph.load import load

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def write(path: Path, text: str | bytes) -> Path:
    """Write a file, compressed as its suffix says, and return its path."""
    data = text.encode() if isinstance(text, str) else text
    suffix = path.suffix if path.suffix in COMPRESSORS else ""
    path.write_bytes(COMPRESSORS[suffix](data))
    return path


def arcs(graph: Graph) -> list[tuple[Any, ...]]:
    """Return this rank's stored edges: (source id, target id, column values...), in the order of rows."""
    rows = np.repeat(np.arange(graph.num_rows) + graph.first_row, graph.out_degrees())
    ends = [graph.ids.to_oids(gids).tolist() for gids in (rows, graph.targets)]
    return list(zip(*ends, *(column.tolist() for column in graph.columns.values()), strict=True))


def vertices(graph: Graph) -> list[Any]:
    """Return this rank's vertex ids."""
    ids: list[Any] = graph.ids.to_oids(np.arange(graph.num_rows) + graph.first_row).tolist()
    return ids


def load_in_ranks(run_ranks: Callable[..., list[Any]], size: int, path: Path, **options: Any) -> list[Any]:
    """Return [arcs, vertices, skipped rows] of the whole graph as `size` ranks together loaded it."""

    def load_one(group: Any) -> tuple[list[Any], list[Any], int]:
        graph = load(path, group=group, **options)
        return arcs(graph), vertices(graph), graph.report.rows_skipped

    parts = run_ranks(size, load_one)
    assert len({part[2] for part in parts}) == 1
    return [[arc for part in parts for arc in part[0]], [v for part in parts for v in part[1]], parts[0][2]]
