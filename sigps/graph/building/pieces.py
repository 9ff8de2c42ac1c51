"""Graphs built in pieces: edges wait on disk, and as many rows are sorted at a time as a limit of memory lets.

    spill   the chunks of a loader, as they come; their ids are noted
    number  ids to gids, edges counted by row
    deal    edges to files of rows that follow each other, each of about the same size
    sort    a file after the other into rows, by the code that sorts whole graphs (`rows.py`)

In memory stay the ids, some numbers a vertex, and the edges of one file. The result is the graph that `build` makes of
the same chunks, bit for bit; its rows are mapped from disk. All files are without a name, so that nothing is left
behind however the process ends.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.building.edges import EdgeBuffer, EdgeChunk, KeyForm, TextChunk, mirror
from sigps.graph.building.rows import Duplicates, Rows, SelfLoops, rows_as_chunks, sort_edges
from sigps.graph.building.texts import TextTable
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport, bytes_text
from sigps.graph.user_arrays import as_column, as_ids
from sigps.group import Alone

__all__ = ["arranged_in_pieces", "build_in_pieces"]

_BLOCK_EDGES = 1 << 18
_VERTEX_BYTES = 40
"""Counts, offsets and ids of a vertex while rows are sorted."""
_EDGE_BYTES = 32
"""Of an edge whose row is being sorted, without columns: its ends as they are read, its key, and a copy of that."""
_FIXED_BYTES = 64 << 20
"""Blocks of edges on their way, and compiled code."""
_MOST_FILES = 512
_BUFFER_BYTES = 1 << 16


def build_in_pieces(
    chunks: Iterable[EdgeChunk | TextChunk],
    *,
    memory: int,
    scratch: str | os.PathLike[str] | None,
    directed: bool,
    vertices: ArrayLike | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    num_vertices: int | None = None,
    report: LoadReport | None = None,
) -> GraphArrays:
    """Return the arrays of the graph of these edges, its rows on disk; in one process.

    Args:
        chunks: The edges, iterated once.
        memory: Bytes that building may take.
        scratch: The folder of the files; None for the system's.
        directed: Whether edges have a direction; then rows by target are made too.
        vertices: Whole numbers that are ids of vertices, with or without an edge.
        duplicates: As of `build`.
        self_loops: As of `build`.
        num_vertices: The vertices are 0..num_vertices - 1; None if they are the ids that occur.
        report: As of `build`.

    Raises:
        GraphError: If ids or columns are wrong, the limit is too low, or the disk is full.
    """
    started, report = time.perf_counter(), LoadReport() if report is None else report
    folder = Path(tempfile.gettempdir() if scratch is None else scratch)
    given = _Spilled(folder, num_vertices)
    if vertices is not None:
        given.name(vertices)
    if num_vertices is None:
        for chunk in chunks:
            given.edges.append(given.checked(chunk))
        ids = given.ids()
        numbered = given.numbered(ids)
    else:  # ids are gids, so nothing need wait for their end
        ids = Ids.identity(num_vertices)
        numbered = map(given.checked, chunks)
    sorter, drops = _Sorter(folder, memory, ids.num_vertices), self_loops == "drop"
    edges, degrees, num_given, num_loops = _counted(numbered, ids, folder, directed=directed, drops=drops)
    sorter.columns = dict(zip(given.names, edges.dtypes[2:], strict=True))
    del given, numbered  # and the files of ids
    rows = sorter.rows(edges.blocks(), degrees, mirrored=not directed, duplicates=duplicates)
    del edges
    graph = GraphArrays(
        offsets=rows.offsets,
        targets=rows.targets,
        columns=rows.columns,
        num_edges=rows.targets.size,
        directed=directed,
        ids=ids,
        row_bounds=np.array([0, ids.num_vertices]),
        group=Alone(),
        report=report,
    )
    is_isolated = rows.offsets[1:] == rows.offsets[:-1]
    if directed:
        by_target = _in_edges(graph, sorter)
        graph = replace(graph, by_target=by_target)
        is_isolated &= by_target.offsets[1:] == by_target.offsets[:-1]
    report.duplicates_policy, report.self_loops_policy = duplicates, self_loops
    loop_repeats, repeats = rows.num_loop_repeats, rows.num_repeats
    report.directed, report.num_vertices = directed, graph.num_vertices
    report.edges_given, report.edges_stored = num_given, graph.num_edges
    report.duplicates = repeats if directed else loop_repeats + (repeats - loop_repeats) // 2
    report.self_loops, report.isolated = num_loops, int(np.count_nonzero(is_isolated))
    has_base = bool(graph.num_vertices) and ids.kind != "strings"
    report.base = int(ids.to_oids(np.zeros(1, dtype=np.int64))[0]) if has_base else None
    report.id_map, report.num_bytes = ids.kind, graph.nbytes
    report.seconds += time.perf_counter() - started
    return graph


def arranged_in_pieces(
    edges: InEdges, order: NDArray[np.int64], *, memory: int, scratch: str | os.PathLike[str]
) -> InEdges:
    """Return rows in another order, their ends by its numbers and ascending; mapped from disk.

    Reads and writes are in the order of files, so that rows may be larger than memory: it takes two passes.

    Args:
        edges: The rows.
        order: The rows in their new order, at least all that have an edge or are an end.
        memory: As of `build_in_pieces`, as is the next.
        scratch: See there.

    Raises:
        GraphError: If the limit is too low, or the disk is full.
    """
    numbers = np.zeros(edges.offsets.size - 1, dtype=np.uint32)
    numbers[order] = np.arange(order.size, dtype=np.uint32)
    degrees = (edges.offsets[order + 1] - edges.offsets[order]).astype(np.uint32)
    sorter = _Sorter(Path(scratch), memory, order.size)
    sorter.columns = {name: column.dtype for name, column in edges.columns.items()}

    def blocks() -> Iterator[list[NDArray[Any]]]:
        for start in range(0, edges.sources.size, _BLOCK_EDGES):
            own = slice(start, min(start + _BLOCK_EDGES, edges.sources.size))
            first, last = (
                np.searchsorted(edges.offsets, np.array([own.start, own.stop - 1]), side="right") - 1
            )
            ends = np.clip(edges.offsets[first : last + 2].astype(np.int64), own.start, own.stop)
            rows = np.repeat(numbers[first : last + 1], np.diff(ends))
            yield [rows, numbers[edges.sources[own]], *(column[own] for column in edges.columns.values())]

    rows = sorter.rows(blocks(), degrees, mirrored=False, duplicates="keep")
    return InEdges(rows.offsets, rows.targets, rows.columns)


class _Files:
    """Arrays of edges on disk, one behind the other: their ends, and columns.

    An array takes the common type of all that were appended.

    Raises:
        GraphError: By all methods, where the folder takes no more.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[IO[bytes]] = []
        self._runs: list[tuple[int, list[np.dtype[Any]]]] = []
        self.size = 0

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The types of the arrays; none before the first were appended."""
        return [np.result_type(*kinds) for kinds in zip(*(kinds for _, kinds in self._runs), strict=True)]

    def append(self, arrays: Sequence[NDArray[Any]]) -> None:
        kinds, size = [array.dtype for array in arrays], int(arrays[0].size)
        if not self.size:  # edges, not the lack of them, say which arrays there are
            self._files, self._runs = [], []
        with _writing(self.folder):
            if not self._files:
                new: Callable[[], Any] = partial(
                    tempfile.TemporaryFile, "w+b", _BUFFER_BYTES, dir=self.folder
                )
                self._files = [new() for _ in arrays]
                for file in self._files:
                    weakref.finalize(self, file.close)
            for file, array in zip(self._files, arrays, strict=True):
                file.write(np.ascontiguousarray(array).view(np.uint8).data)
        if self._runs and self._runs[-1][1] == kinds:
            self._runs[-1] = self._runs[-1][0] + size, kinds
        else:
            self._runs.append((size, kinds))
        self.size += size

    def blocks(self) -> Iterator[list[NDArray[Any]]]:
        """Yield all edges, in their order, some at a time; one block where there are none."""
        with _writing(self.folder):
            for file in self._files:
                file.seek(0)
        for size, kinds in self._runs:
            for start in range(0, max(size, 1), _BLOCK_EDGES):  # a block without edges has their types
                count = min(_BLOCK_EDGES, size - start)
                parts = [_read(file, kind, count) for file, kind in zip(self._files, kinds, strict=True)]
                yield [part.astype(kind, copy=False) for part, kind in zip(parts, self.dtypes, strict=True)]

    def mapped(self) -> list[NDArray[Any]]:
        """Return the arrays, mapped: changes to them stay in memory. Those of a type that changed are copied."""
        found: list[NDArray[Any]] = []
        for at, (file, kind) in enumerate(zip(self._files, self.dtypes, strict=True)):
            with _writing(self.folder):
                file.flush()
            if len(self._runs) > 1 and any(kinds[at] != kind for _, kinds in self._runs):
                found.append(np.concatenate([block[at] for block in self.blocks()]))
            else:
                is_empty = not self.size
                found.append(
                    np.empty(0, kind) if is_empty else np.memmap(file, kind, "c", shape=(self.size,))
                )
        return found


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GraphError(
            f"edges cannot wait in {folder}: {error.strerror}. Free some room there, or name another folder: "
            "scratch=, or the environment variable TMPDIR"
        ) from None


def _read(file: IO[bytes], kind: np.dtype[Any], count: int) -> NDArray[Any]:
    raw = file.read(count * kind.itemsize)
    return np.frombuffer(bytearray(raw), dtype=kind)


class _Spilled:
    """Edges as a loader gives them, and the ids that occur.

    Attributes:
        edges: Their ends, ids or numbers of texts, and their columns.
        names: The names of these.
    """

    def __init__(self, folder: Path, num_vertices: int | None) -> None:
        self.edges = _Files(folder)
        self.names: list[str] = []
        self._num_vertices = num_vertices
        self._num_given = 0
        self._texts: TextTable | None = None
        self._positions: NDArray[np.uint32] | None = None
        self._known = np.empty(0, dtype=np.int64)
        self._waiting: list[NDArray[np.int64]] = []

    def name(self, vertices: ArrayLike) -> None:
        """Note ids of vertices."""
        self._note(_whole(as_ids(vertices, "vertices").ravel()))

    def checked(self, chunk: EdgeChunk | TextChunk) -> list[NDArray[Any]]:
        """Return the arrays of a chunk, having noted its ids."""
        columns = {name: as_column(column, name) for name, column in chunk.columns.items()}
        if not self._num_given:
            self.names = list(columns)
        elif columns.keys() != set(self.names):
            raise GraphError(
                f"some edges have the columns {sorted(self.names)}, others {sorted(columns)}: "
                "every edge needs the same"
            )
        ends: list[NDArray[Any]]
        if isinstance(chunk, TextChunk) and not chunk.sources.size:
            ends = [np.empty(0, dtype=np.uint32)] * 2
        elif isinstance(chunk, TextChunk):
            if self._texts is None:
                if self._num_vertices is not None:
                    raise GraphError("ids='identity' needs integer ids, but the edges have strings")
                if self._num_given or self._known.size or self._waiting:
                    raise GraphError(_MIXED)
                self._texts = TextTable()
            ends = [self._texts.codes(chunk.sources), self._texts.codes(chunk.targets)]
        else:
            ends = [_whole(as_ids(chunk.sources, "sources")), _whole(as_ids(chunk.targets, "targets"))]
            if self._texts is not None and ends[0].size:
                raise GraphError(_MIXED)
            self._note(*ends)
        for name, array in [("targets", ends[1]), *columns.items()]:
            if array.shape != ends[0].shape:
                raise GraphError(
                    f"{name} has shape {array.shape}, sources {ends[0].shape}; all need the same"
                )
        self._num_given += int(ends[0].size)
        return [*map(_narrow, ends), *(columns[name] for name in self.names)]

    def ids(self) -> Ids:
        """Return the map of ids, after the last edge."""
        if self._texts is not None:
            texts = np.asarray(self._texts.distinct())
            order = np.argsort(texts)
            self._positions = np.empty(order.size, dtype=np.uint32)
            self._positions[order] = np.arange(order.size, dtype=np.uint32)
            return Ids.of(texts[order])
        self._merge()
        known = self._known
        if not known.size or int(known[-1]) - int(known[0]) == known.size - 1:
            return Ids.range(int(known[0]) if known.size else 0, known.size)
        return Ids.of(known)

    def numbered(self, ids: Ids) -> Iterator[list[NDArray[Any]]]:
        """Yield the edges, their ends as gids."""
        for sources, targets, *columns in self.edges.blocks():
            if self._positions is not None:
                yield [self._positions[sources], self._positions[targets], *columns]
            else:
                yield [*(ids.to_gids(end).astype(np.uint32) for end in (sources, targets)), *columns]

    def _note(self, *ends: NDArray[np.int64]) -> None:
        ids = np.concatenate(ends)
        if not ids.size:
            return
        if self._num_vertices is None:
            self._waiting.append(np.unique(ids))
            if sum(part.size for part in self._waiting) > max(self._known.size, 1 << 20):
                self._merge()
        elif int(ids.min()) < 0 or int(ids.max()) >= self._num_vertices:
            raise GraphError(
                f"ids {int(ids.min())}..{int(ids.max())} lie outside 0..{self._num_vertices - 1}, as "
                "ids='identity' needs"
            )

    def _merge(self) -> None:
        if self._waiting:
            self._known = np.unique(np.concatenate([self._known, *self._waiting]))
            self._waiting = []


_MIXED = "some ids are strings and some are integers; give all of them as strings"


def _whole(ids: NDArray[Any]) -> NDArray[np.int64]:
    if ids.dtype.kind == "U":
        raise GraphError(
            "ids that are strings of NumPy or Arrow are not built in pieces: leave the limit of memory out, or "
            "read them from a text file"
        )
    return ids.astype(np.int64, copy=False)


def _narrow(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids in 32 bits, where they fit."""
    fits = ids.size and ids.dtype != np.uint32 and int(ids.min()) >= 0 and int(ids.max()) < 1 << 32
    return ids.astype(np.uint32) if fits else ids


def _counted(
    numbered: Iterable[list[NDArray[Any]]], ids: Ids, folder: Path, *, directed: bool, drops: bool
) -> tuple[_Files, NDArray[np.uint32], int, int]:
    """Return the edges by gid, how many each row gets, how many were given, and how many of them were self-loops."""
    from sigps.kernels.cpu.layout import count_uses

    edges, num_given, num_loops = _Files(folder), 0, 0
    degrees = np.zeros(ids.num_vertices, dtype=np.uint32)
    for arrays in numbered:
        num_given += int(arrays[0].size)
        is_edge = arrays[0] != arrays[1]
        loops = is_edge.size - int(np.count_nonzero(is_edge))
        num_loops += loops
        if loops and drops:
            arrays = [array[is_edge] for array in arrays]
        count_uses(arrays[0], degrees)
        if not directed:
            count_uses(arrays[1][is_edge] if loops and not drops else arrays[1], degrees)
        edges.append(arrays)
    return edges, degrees, num_given, num_loops


class _Sorter:
    """Sorts edges into rows, within a limit of memory.

    Args:
        folder: Where edges wait.
        memory: The limit, in bytes.
        num_vertices: Of the graph.

    Attributes:
        columns: The types of the columns, by name.

    Raises:
        GraphError: If the limit is too low, or there are too many vertices.
    """

    def __init__(self, folder: Path, memory: int, num_vertices: int) -> None:
        if num_vertices >= 1 << 32:
            raise GraphError(f"graphs built in pieces have fewer than 2**32 vertices, not {num_vertices:,}")
        least = _VERTEX_BYTES * num_vertices + _FIXED_BYTES
        if memory < 2 * least:
            raise GraphError(
                f"a memory of {bytes_text(memory)} is too little to build a graph of {num_vertices:,} vertices: give "
                f"at least {bytes_text(2 * least)}"
            )
        self.columns: dict[str, np.dtype[Any]] = {}
        self._folder, self._num_vertices = folder, num_vertices
        self._left = memory - least
        self._threads = len(os.sched_getaffinity(0))

    def rows(
        self,
        blocks: Iterable[list[NDArray[Any]]],
        degrees: NDArray[np.uint32],
        *,
        mirrored: bool,
        duplicates: Duplicates,
    ) -> Rows:
        """Return rows, mapped from disk.

        Args:
            blocks: The edges: rows, ends, columns.
            degrees: [num_vertices]: how many edges each row gets.
            mirrored: Whether an edge is stored in the row of its other end too.
            duplicates: What to do with equal edges.
        """
        bounds = self._bounds(degrees)
        waiting = [_Files(self._folder) for _ in bounds[1:]]
        for block in blocks:
            self._deal(_mirrored(block) if mirrored else block, bounds, waiting)
        found, sizes = _Files(self._folder), np.zeros(self._num_vertices, dtype=np.uint32)
        found.append([np.empty(0, np.uint32), *(np.empty(0, kind) for kind in self.columns.values())])
        repeats = loop_repeats = 0
        for first, stop in pairwise(bounds.tolist()):
            files = waiting.pop(0)
            if files.size:
                rows = self._sorted(files, (first, stop), duplicates)
                sizes[first:stop] = np.diff(rows.offsets)
                found.append([rows.targets, *(rows.columns[name] for name in self.columns)])
                repeats, loop_repeats = repeats + rows.num_repeats, loop_repeats + rows.num_loop_repeats
        offsets = np.zeros(self._num_vertices + 1, dtype=np.uint64)
        np.cumsum(sizes, out=offsets[1:])
        targets, *columns = found.mapped()
        return Rows(offsets, targets, dict(zip(self.columns, columns, strict=True)), repeats, loop_repeats)

    def _bounds(self, degrees: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return where the rows of each file begin, [files + 1]: their edges can be sorted at a time."""
        upto = np.cumsum(degrees, dtype=np.int64)
        total = int(upto[-1]) if upto.size else 0
        an_edge = _EDGE_BYTES + 3 * sum(kind.itemsize for kind in self.columns.values())
        num_files = max(1, -(-total * an_edge // self._left))
        if num_files > _MOST_FILES:
            more = total * an_edge // _MOST_FILES - self._left
            raise GraphError(
                f"{total:,} edges would wait in {num_files:,} files, and {_MOST_FILES} may be open: give "
                f"{bytes_text(more)} more memory"
            )
        goals = total * np.arange(1, num_files, dtype=np.int64) // num_files
        return np.unique(np.concatenate([[0], np.searchsorted(upto, goals, side="right"), [degrees.size]]))

    def _deal(self, edges: list[NDArray[Any]], bounds: NDArray[np.int64], waiting: list[_Files]) -> None:
        """Append edges to the files of their rows, in their order."""
        if len(waiting) < 2 or not edges[0].size:
            for file in waiting:
                file.append(edges)
            return
        files = (np.searchsorted(bounds, edges[0], side="right") - 1).astype(np.uint16)
        order = np.argsort(files, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(len(waiting) + 1))
        moved = [array[order] for array in edges]
        for file, (first, stop) in zip(waiting, pairwise(cuts.tolist()), strict=True):
            if first < stop:
                file.append([array[first:stop] for array in moved])

    def _sorted(self, files: _Files, span: tuple[int, int], duplicates: Duplicates) -> Rows:
        form, buffer, at = KeyForm.of(self._num_vertices, span), EdgeBuffer(), 0
        buffer.keys = np.empty(files.size, dtype=np.uint64)
        buffer.columns = {name: np.empty(files.size, dtype=kind) for name, kind in self.columns.items()}
        for rows, ends, *columns in files.blocks():
            own = slice(at, at + rows.size)
            buffer.keys[own] = form.pack(rows, ends)
            for name, column in zip(self.columns, columns, strict=True):
                buffer.columns[name][own] = column
            at = own.stop
        return sort_edges([buffer], form, symmetric=False, duplicates=duplicates, num_threads=self._threads)


def _mirrored(edges: list[NDArray[Any]]) -> list[NDArray[Any]]:
    both = mirror(EdgeChunk(edges[0], edges[1], {str(i): column for i, column in enumerate(edges[2:])}))
    return [both.sources, both.targets, *both.columns.values()]


def _in_edges(graph: GraphArrays, sorter: _Sorter) -> InEdges:
    """Return the edges of a directed graph by target."""
    from sigps.kernels.cpu.layout import count_uses

    degrees = np.zeros(graph.num_vertices, dtype=np.uint32)
    for chunk in rows_as_chunks(graph):
        count_uses(chunk.targets, degrees)
    edges = ([c.targets, c.sources, *c.columns.values()] for c in rows_as_chunks(graph) if c.sources.size)
    rows = sorter.rows(edges, degrees, mirrored=False, duplicates="keep")
    return InEdges(rows.offsets, rows.targets, rows.columns)
