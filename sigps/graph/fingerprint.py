"""A hash of a whole graph that does not depend on the number of ranks."""

from __future__ import annotations

import itertools
import zlib

import numpy as np

from sigps.graph.edge_hashes import bits_of, hash_sum, sum_of_words
from sigps.graph.formats.packed_store import PackedArrays
from sigps.graph.graph import Graph
from sigps.graph.random_bits import hash_strings, splitmix64

__all__ = ["fingerprint"]

_PIECE_EDGES = 1 << 20


def fingerprint(graph: Graph, vertex_columns: tuple[str, ...] = ()) -> str:
    """Return a hash of the ids, the edges, their columns, and some vertex columns: 16 hexadecimal digits. Collective.

    Each edge and each id is hashed separately and the hashes are added modulo 2**64, so their order does not matter.
    Computed once a graph, in one pass.
    """
    found = graph.derived("fingerprint", lambda: _fingerprint(graph))
    if not vertex_columns:
        return found
    words = graph.derived(("vertex columns", vertex_columns), lambda: _hash_vertices(graph, vertex_columns))
    return f"{zlib.crc32(f'{found} {words} {vertex_columns}'.encode()):08x}{int(words) & 0xFFFFFFFF:08x}"


def _fingerprint(graph: Graph) -> str:
    edges = graph.derived("edge hash", lambda: _hash_edges(graph))  # which `Graph.apply` carries on
    own = np.array([edges, _hash_ids(graph)], dtype=np.uint64)
    all_edges, ids = graph.group.all_reduce(own, "sum").tolist()
    counts = f"{graph.num_vertices} {graph.num_edges} {graph.directed} {graph.ids.kind} {graph.ids.base}"
    text = f"{all_edges} {ids} {counts} {[(n, t.str) for n, t in graph.column_types().items()]}".encode()
    return f"{zlib.crc32(text):08x}{(all_edges ^ ids) & 0xFFFFFFFF:08x}"


def _hash_vertices(graph: Graph, names: tuple[str, ...]) -> int:
    words = np.arange(graph.first_row, graph.first_row + graph.num_rows, dtype=np.uint64)
    for name in names:
        column = graph.vertex_columns[name]
        for values in column.reshape(graph.num_rows, -1).T:
            words = splitmix64(words) + bits_of(values)
    own = np.array([sum_of_words(np.uint64(0), words)], dtype=np.uint64)
    return int(graph.group.all_reduce(own, "sum")[0])


def _hash_edges(graph: Graph) -> np.uint64:
    if graph.packed is not None and not graph.is_laid_out:
        return _hash_pages(graph.packed)
    total = np.zeros(1, dtype=np.uint64)  # an array's sums wrap around without a warning
    bounds = np.searchsorted(graph.offsets, np.arange(0, graph.targets.size, _PIECE_EDGES, dtype=np.uint64))
    rows = [*np.unique(bounds).tolist(), graph.num_rows]
    for first, last in itertools.pairwise(rows):
        edges = slice(int(graph.offsets[first]), int(graph.offsets[last]))
        degrees = np.diff(graph.offsets[first : last + 1]).view(np.int64)
        sources = np.repeat(np.arange(graph.first_row + first, graph.first_row + last), degrees)
        columns = (column[edges] for column in graph.columns.values())
        total += hash_sum(sources, graph.targets[edges], columns)
    return np.uint64(int(total[0]))


def _hash_pages(packed: PackedArrays) -> np.uint64:
    """Return the same for edges that are still packed, page by page."""
    total = np.zeros(1, dtype=np.uint64)
    for edges in packed.chunks():
        total += hash_sum(edges.sources.astype(np.int64), edges.targets, edges.columns.values())
    return np.uint64(int(total[0]))


def _hash_ids(graph: Graph) -> np.uint64:
    table = graph.ids.table
    if table is None or table.size == 0:
        return np.uint64(0)
    words = np.arange(graph.ids.first_row, graph.ids.first_row + table.size, dtype=np.uint64)
    words = hash_strings(words, table) if table.dtype.kind == "U" else splitmix64(words) + bits_of(table)
    return sum_of_words(np.uint64(0), words)
