"""The packed native store, format 3: edges in pages of bit-packed rows (`sigps/graph/packing`).

    graph.sigps/
      header.msgpack      as of a raw store, and the order of rows and the types of edge columns
      pages.bin           uint32 words: the pages, one behind the other, cut into blocks with a checksum each
      page-first-rows.bin, page-end-rows.bin     [pages] uint64: which rows each page has
      page-arcs.bin, page-words.bin     [pages + 1] uint64: how many arcs and words are before each page
      column-<n>.bin, column-<n>-words.bin     the same for each edge column: pages, and where they begin
      order.bin           [rows] uint32, the vertex of each row; absent if rows are vertices
      vertex-column-<n>.bin, ids.bin     as of a raw store

Pages may be dealt out among several folders, on several disks: format 4 (`store_folders.py`).

The rows of a directed graph are its in-edges; those of an undirected graph serve both directions. Whatever the pages
hold, unpacking stays within the arrays, and finds what is no page: `verify="bounds"` leaves that to it.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.building.pieces import arranged_in_pieces
from sigps.graph.building.rows import Rows, transpose
from sigps.graph.formats.store_checks import checksum
from sigps.graph.formats.store_files import OpenStore
from sigps.graph.formats.store_folders import (
    StorePath,
    file_in,
    given_folders,
    identity,
    in_folder,
    paths_text,
    write_parts,
)
from sigps.graph.formats.store_header import Packing, StoredArray, StoreHeader, page_arrays
from sigps.graph.formats.store_writing import Pieces, Slice, header_of, vertex_slices, write_store
from sigps.graph.packing.packer import Order, Page, in_order
from sigps.graph.packing.pages import PAGE_ARCS
from sigps.graph.packing.table import PageTable, problem_of, rows_of_ranks
from sigps.graph.packing.unpacker import PackedColumn, PackedRows, row_degrees, unpacked
from sigps.group import Group, together
from sigps.host_memory import available_memory
from sigps.kernels.cpu.layout import order_by_row

__all__ = ["PackedArrays", "packed_graph", "packed_rows", "save_packed", "write_packed"]


def save_packed(
    graph: GraphArrays,
    path: StorePath,
    *,
    order: Order = "better",
    page_arcs: int = PAGE_ARCS,
) -> None:
    """Write a graph to a folder, with its edges in pages.

    Args:
        graph: The graph.
        path: The folder; or several, among which the pages are dealt out.
        order: Of the rows. Runs that stream and walk out-edges need the given one.
        page_arcs: Arcs, and rows, of a page at most: no more than `PAGE_ARCS`.

    Raises:
        GraphError: If several ranks hold the graph, it has 2**32 vertices or more, or the path cannot be written.
    """
    if graph.group.size > 1:
        raise GraphError(
            f"a packed store is written by one process, but {graph.group.size} ranks share this graph: "
            "write a raw store, or pack with one process"
        )
    if graph.num_vertices >= 1 << 32:
        raise GraphError(
            f"a packed store has fewer than 2**32 vertices, not {graph.num_vertices:,}: write a raw one"
        )
    in_edges = _in_edges_of(graph)
    degrees = np.diff(in_edges.offsets).view(np.int64)
    if graph.directed:
        degrees = degrees + np.diff(graph.offsets).view(np.int64)
    columns = [in_edges.columns[name] for name in graph.columns]
    rows = in_order(order, in_edges.offsets, in_edges.sources, columns, degrees, page_arcs)
    if rows.order is not None and _is_larger_than_memory(in_edges):
        folder = given_folders(path)[0].resolve().parent
        moved = arranged_in_pieces(in_edges, rows.order, memory=available_memory() // 2, scratch=folder)
        rows.arranged(moved.offsets, moved.sources, [moved.columns[name] for name in graph.columns])
    packing = Packing(
        order="given" if rows.order is None else "degree",
        num_left_out=0 if rows.order is None else graph.num_vertices - rows.order.size,
        column_types=[column.dtype.str for column in columns],
    )
    header = functools.partial(header_of, graph, packing=packing)
    write_packed(path, graph.group, rows, len(columns), vertex_slices(graph), header)


class HasPages(Protocol):
    """Rows in an order, as pages: `PackableRows`, and what is drawn piece by piece."""

    table: PageTable
    order: NDArray[np.int64] | None

    def pages(self, num_threads: int, /) -> Iterator[Page]:
        """Yield the pages in their order."""
        ...


def write_packed(
    path: StorePath,
    group: Group,
    rows: HasPages,
    num_columns: int,
    slices: list[Slice],
    header: Callable[[dict[str, StoredArray]], StoreHeader],
) -> None:
    """Write a packed store.

    Args:
        path: The folder, or several.
        group: One rank.
        rows: The edges.
        num_columns: Edge columns, which pages have, too.
        slices: Other arrays.
        header: Returns the header for the arrays that were written.

    Raises:
        GraphError: If the path cannot be written.
    """
    if rows.order is not None:
        slices.append(Slice("order", rows.order.astype(np.uint32), 0, rows.order.size))
    for name, values in (
        ("page-first-rows", rows.table.first_rows),
        ("page-end-rows", rows.table.end_rows),
        ("page-arcs", rows.table.arcs),
    ):
        slices.append(Slice(name, values, 0, values.size))
    first, *others = given_folders(path)

    def write(folder: Path) -> Mapping[str, StoredArray]:
        return write_parts(folder, others, lambda asides: _write_pages(asides, rows, num_columns), _identity)

    def spread_header(arrays: dict[str, StoredArray]) -> StoreHeader:
        found = header(arrays)
        assert found.packing is not None
        return replace(found, packing=replace(found.packing, num_folders=1 + len(others)))

    write_store(first, group, slices, spread_header, write)


class PackedArrays(GraphArrays):
    """The graph of a packed store, whose rows stay packed until `unpacked` is called.

    Args:
        store: The store.
        rows: As the attribute.
        order: As the attribute.
        group: The ranks.

    Attributes:
        rows: All rows, mapped: of an undirected graph those of both directions, else in-edges.
        own: This rank's share of them: those of its vertices, unless rows are by degree.
        order: The vertex of each row; None if rows are vertices.
    """

    is_packed = True

    def __init__(
        self, store: OpenStore, rows: PackedRows, order: NDArray[np.uint32] | None, group: Group
    ) -> None:
        header = store.header
        self.rows, self.order, self.group = rows, order, group
        self.num_edges, self.directed, self.report = header.num_edges, header.directed, header.report
        shares = rows_of_ranks(rows.table, [1] * group.size)
        self.own = rows.part(range(int(shares[group.rank]), int(shares[group.rank + 1])))
        self.row_bounds = shares
        if order is not None:
            self.row_bounds = np.linspace(0, header.num_vertices, group.size + 1).astype(np.int64)
        first, stop = self.row_bounds[group.rank : group.rank + 2].tolist()
        self.ids = store.ids(self.row_bounds, group)
        self.vertex_columns = store.vertex_columns(first, stop)

    @property
    def nbytes(self) -> int:
        """Bytes of what is mapped of this rank's rows."""
        packed = self.own.num_bytes + sum(column.num_bytes for column in self.own.columns.values())
        return packed + sum(array.nbytes for array in self.vertex_columns.values()) + self.ids.nbytes

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the edges of this rank's packed rows, page by page.

        Raises:
            GraphError: If a page is damaged.
        """
        for page in range(self.own.table.num_pages):
            yield _edges_of_page(self.own, self.order, page, directed=self.directed)

    def is_simple(self) -> bool:
        """Tell whether there are neither loops nor parallel edges; one pass over the pages. Collective."""
        is_own = together(self._is_own_part_simple, self.group)
        return bool(self.group.all_reduce(np.array([int(is_own)]), "min")[0])

    def _is_own_part_simple(self) -> bool:
        last = -1, -1
        for edges in self.chunks():
            rows, ends = (edges.targets, edges.sources) if self.directed else (edges.sources, edges.targets)
            again = (rows[1:] == rows[:-1]) & (ends[1:] == ends[:-1])
            if again.any() or (rows == ends).any() or (rows.size and last == (rows[0], ends[0])):
                return False
            last = (rows[-1], ends[-1]) if rows.size else last
        return True

    def row_degrees(self) -> NDArray[np.int64]:
        """Return the packed arcs of each of this rank's vertices, [num_rows], without unpacking them. Not collective.

        They are out- and in-degrees of an undirected graph. Where rows are by degree, each rank reads where all begin.

        Raises:
            GraphError: If a page is damaged.
        """
        num_threads = self._num_threads()
        if self.order is None:
            return row_degrees(self.own, num_threads)
        degrees = np.zeros(self.rows.num_vertices, dtype=np.int64)
        degrees[self.order] = row_degrees(self.rows, num_threads)
        first, stop = self.row_bounds[self.group.rank : self.group.rank + 2].tolist()
        return degrees[first:stop]

    def _num_threads(self) -> int:
        return max(1, len(os.sched_getaffinity(0)) // self.group.size)

    def unpacked(self) -> GraphArrays:
        """Return the graph with this rank's rows in memory. Not collective.

        On several ranks each goes through all pages where they hold in-edges, or are by degree.

        Raises:
            GraphError: If a page is damaged.
        """
        num_threads, by_target = self._num_threads(), None
        if self.group.size > 1 and (self.directed or self.order is not None):
            own = range(self.first_row, self.first_row + self.num_rows)
            rows = _out_edges(self.rows, self.order, own, num_threads, directed=self.directed)
            offsets, ends, columns = rows.offsets, rows.targets, rows.columns
        else:
            offsets, ends, columns = unpacked(self.own, self.order, num_threads)
        if self.group.size == 1:
            by_target = InEdges(offsets, ends, columns)
            if self.directed:
                rows = transpose(Rows(offsets, ends, columns))
                offsets, ends, columns = rows.offsets, rows.targets, rows.columns
        return GraphArrays(
            offsets=offsets,
            targets=ends,
            columns=columns,
            num_edges=self.num_edges,
            directed=self.directed,
            ids=self.ids,
            row_bounds=self.row_bounds,
            group=self.group,
            report=self.report,
            by_target=by_target,
            vertex_columns=self.vertex_columns,
        )


def packed_graph(store: OpenStore, group: Group) -> GraphArrays:
    """Return the graph of a packed store. Collective.

    Raises:
        GraphError: If the store is damaged.
    """
    packed, order = together(lambda: packed_rows(store), group)
    return PackedArrays(store, packed, order, group)


def packed_rows(store: OpenStore) -> tuple[PackedRows, NDArray[np.uint32] | None]:
    """Return the rows of a packed store, mapped, and the vertex of each row, None if rows are vertices.

    Raises:
        GraphError: If the tables of pages or the order are damaged.
    """
    header = store.header
    assert header.packing is not None
    table = PageTable(*(store.array(f"page-{name}") for name in ("first-rows", "end-rows", "arcs", "words")))
    order = store.array("order") if header.packing.order == "degree" else None
    num_rows = header.num_vertices if order is None else order.size
    num_words = {name: 0 for name in page_arrays(header)[0]}
    for own in page_arrays(header):
        for name, of_folder in zip(num_words, own, strict=True):
            num_words[name] += header.arrays[of_folder].count
    problem = problem_of(table, num_rows, header.num_edges, num_words["pages"])
    if order is not None and not problem:
        problem = _problem_of_order(order, header.num_vertices)
    columns = {}
    begins_of = {}
    for index, name in enumerate(header.columns):
        begins_of[name] = begins = store.array(f"column-{index}-words")
        expected = num_words[f"column-{index}"]
        if (int(begins[0]), int(begins[-1])) != (0, expected) or (begins[1:] < begins[:-1]).any():
            problem = problem or f"the pages of column {name!r} have not all {expected:,} words"
    if problem:
        raise GraphError(f"{store.folder} is damaged ({problem}). Copy or write the store again")
    is_spread = len(store.folders) > 1
    none = np.empty(0, dtype=np.uint32)
    for index, (name, dtype) in enumerate(zip(header.columns, header.column_types(), strict=True)):
        words = none if is_spread else store.array(f"column-{index}")
        file = store.page_file(f"column-{index}", begins_of[name])
        columns[name] = PackedColumn(dtype, begins_of[name], words, file)
    pages, file = none if is_spread else store.array("pages"), store.page_file("pages", table.words)
    where = paths_text(store.folders)
    return PackedRows(header.num_vertices, table, pages, columns, where, file), order


_BLOCK_BYTES = 1 << 25  # one checksum covers whole pages of at most so many bytes


def _in_edges_of(graph: GraphArrays) -> InEdges:
    if graph.by_target is not None:
        return graph.by_target
    if not graph.directed:
        return InEdges(graph.offsets, graph.targets, graph.columns)
    rows = transpose(Rows(graph.offsets, graph.targets, dict(graph.columns)))
    return InEdges(rows.offsets, rows.targets, rows.columns)


def _is_larger_than_memory(edges: InEdges) -> bool:
    """Tell whether rows that are read in another order would come from disk each time."""
    arrays = [edges.sources, *edges.columns.values()]
    return (
        any(isinstance(a, np.memmap) for a in arrays)
        and sum(a.nbytes for a in arrays) > available_memory() // 2
    )


def _write_pages(folders: list[Path], rows: HasPages, num_columns: int) -> dict[str, StoredArray]:
    """Write the pages to the files of all folders in turn, and where they begin to the first one."""
    names = ["pages", *(f"column-{i}" for i in range(num_columns))]
    begins = [[0] for _ in names]
    with contextlib.ExitStack() as stack:

        def open_file(name: str) -> _Words:
            return _Words(stack.enter_context(open(file_in(folders, name), "wb")))

        files = [{name: open_file(in_folder(name, i)) for name in names} for i in range(len(folders))]
        for number, page in enumerate(rows.pages(len(os.sched_getaffinity(0)))):
            own = files[number % len(folders)].values()
            for file, ends, words in zip(own, begins, [page.words, *page.columns], strict=True):
                file.append(words)
                ends.append(ends[-1] + words.size)
        arrays = {in_folder(name, i): of[name].finish() for i, of in enumerate(files) for name in names}
    for name, ends in zip(["page", *names[1:]], begins, strict=True):
        found = Slice(f"{name}-words", np.array(ends, dtype=np.uint64), 0, len(ends))
        found.reserve(folders[0])
        arrays[found.name] = StoredArray(found.values.dtype.str, found.count, found.write(folders[0]))
    return arrays


def _identity(arrays: Mapping[str, StoredArray]) -> str:
    """Return what a store is known by whose pages were written."""
    return identity((name, array.pieces) for name, array in arrays.items() if not name.endswith("-words"))


class _Words:
    """A file of words that is written page by page, and gets a checksum for each block of pages."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._num_words = file, 0
        self._pieces: Pieces = []

    def append(self, page: NDArray[np.uint32]) -> None:
        raw = page.view(np.uint8)
        self._file.write(raw.data)
        _, (plain, by_place) = checksum(raw)
        if not self._pieces or self._pieces[-1][1] + raw.size > _BLOCK_BYTES:
            self._pieces.append([4 * self._num_words, 0, 0, 0])
        self._num_words += page.size
        piece = self._pieces[-1]
        by_place += plain * (piece[1] // 4)  # words count from the block's first
        piece[1:] = piece[1] + raw.size, (piece[2] + plain) % 2**64, (piece[3] + by_place) % 2**64

    def finish(self) -> StoredArray:
        self._file.flush()
        os.fsync(self._file.fileno())
        return StoredArray("<u4", self._num_words, self._pieces)


def _problem_of_order(order: NDArray[np.uint32], num_vertices: int) -> str:
    if int(order.max(initial=0)) >= max(num_vertices, 1):
        return f"a row is that of vertex {int(order.max()):,} of {num_vertices:,}"
    seen = np.zeros(num_vertices, dtype=bool)
    seen[order] = True
    return "" if np.count_nonzero(seen) == order.size else "two rows are of one vertex"


def _out_edges(
    packed: PackedRows, order: NDArray[np.uint32] | None, own: range, num_threads: int, *, directed: bool
) -> Rows:
    """Return the rows of out-edges of some vertices, from the pages of all edges."""

    def of_page(page: int) -> EdgeChunk:
        edges = _edges_of_page(packed, order, page, directed=directed)
        kept = np.flatnonzero((edges.sources >= own.start) & (edges.sources < own.stop))
        columns = {name: values[kept] for name, values in edges.columns.items()}
        return EdgeChunk(edges.sources[kept], edges.targets[kept], columns)

    none = np.empty(0, dtype=np.uint32)
    parts = [EdgeChunk(none, none, {name: np.empty(0, c.dtype) for name, c in packed.columns.items()})]
    with ThreadPoolExecutor(num_threads) as pool:
        parts += pool.map(of_page, range(packed.table.num_pages))
    sources = np.concatenate([part.sources for part in parts]) - np.uint32(own.start)
    targets = np.concatenate([part.targets for part in parts])
    if (
        order is not None and not packed.columns
    ):  # equal edges cannot be told apart: a sort need not be stable
        offsets = np.zeros(len(own) + 1, dtype=np.uint64)
        np.cumsum(np.bincount(sources, minlength=len(own)), out=offsets[1:])
        keys = sources.astype(np.uint64) << np.uint64(32) | targets
        keys.sort()
        return Rows(offsets, keys.astype(np.uint32), {})
    by_target = np.arange(targets.size) if order is None else np.argsort(targets, kind="stable")
    offsets, by_row = order_by_row(sources[by_target], len(own))
    places = by_target[by_row]
    columns = {
        name: np.concatenate([part.columns[name] for part in parts])[places] for name in packed.columns
    }
    return Rows(offsets, targets[places], columns)


def _edges_of_page(
    packed: PackedRows, order: NDArray[np.uint32] | None, page: int, *, directed: bool
) -> EdgeChunk:
    rows, arcs = packed.table.rows(page), packed.table.arcs_of(page)
    size = arcs.stop - arcs.start
    degrees, ends = np.empty(len(rows), dtype=np.uint32), np.empty(size, dtype=np.uint32)
    packed.unpack_page(page, degrees, ends)
    columns: dict[str, NDArray[Any]] = {
        name: np.empty(size, column.dtype) for name, column in packed.columns.items()
    }
    for name, values in columns.items():
        packed.unpack_column(name, page, values)
    first = packed.first_row + rows.start
    starts = np.repeat(np.arange(first, first + len(rows), dtype=np.uint32), degrees)
    if order is not None:
        starts, ends = order[starts], order[ends]
    return EdgeChunk(ends, starts, columns) if directed else EdgeChunk(starts, ends, columns)
