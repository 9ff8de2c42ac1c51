"""The native store: a folder of raw arrays that are memory-mapped, so opening a graph copies nothing.

    graph.sigps/
      header.msgpack      counts, dtypes and checksums; with a checksum of its own (`store_header.py`)
      offsets.bin         [num_vertices + 1] uint64
      targets.bin         [num_edges] uint32 or uint64
      column-<n>.bin      [num_edges], one for each edge column
      vertex-column-<n>.bin     [num_vertices] or [num_vertices * k], one for each vertex column
      ids.bin             [num_vertices] int64 or UTF-32 text of fixed width; absent if ids are consecutive
      in-offsets.bin, in-sources.bin, in-column-<n>.bin     the edges by target, optional

Arrays are little-endian. A store is written beside its path and then renamed, so that a store at a path is complete. On
several ranks each writes and reads its own rows. What a store holds is checked when it is opened (`store_checks.py`).
"""

from __future__ import annotations

import bisect
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.formats.known_stores import FileStates, is_known, remember, states_of
from sigps.graph.formats.store_checks import checksum, rule_of
from sigps.graph.formats.store_header import (
    StoredArray,
    StoreHeader,
    is_store,
    read_header,
    write_header,
)
from sigps.graph.ids import Ids
from sigps.group import Group, own_range, together
from sigps.whole_files import write_folder

__all__ = ["Verify", "read_store", "save"]

Verify = Literal["auto", "full", "bounds", "none"]


def save(graph: GraphArrays, path: str | os.PathLike[str], *, in_edges: InEdges | None = None) -> None:
    """Write a graph, and its in-edges if they are given, to a folder: see `Graph.save`. Collective."""
    folder = Path(path)
    parts = _slices(graph, in_edges)

    def prepare(aside: Path) -> None:
        if folder.exists() and not is_store(folder):
            raise GraphError(
                f"{folder} exists and is no graph store, so it is not replaced; choose another path"
            )
        for part in parts:
            with open(aside / f"{part.name}.bin", "wb") as file:
                file.truncate(part.count * part.values.dtype.itemsize)

    write_folder(
        folder,
        graph.group,
        prepare=prepare,
        write=lambda aside: {part.name: part.write(aside) for part in parts},
        finish=lambda aside, pieces: write_header(aside, _header(graph, parts, pieces)),
        problem=lambda error: GraphError(
            f"the store cannot be written: {error}. Check the folder, its rights and the disk"
        ),
    )


def read_store(path: str | os.PathLike[str], group: Group, *, verify: Verify = "auto") -> GraphArrays:
    """Open a stored graph: see `sigps.graph.load.open_store`. Collective."""
    started = time.perf_counter()
    store = together(lambda: _Store(Path(path)), group)
    if verify == "auto":
        states = together(store.file_states, group)
        if is_known(states, group):
            verify = "bounds"
    together(lambda: store.verify("full" if verify == "auto" else verify, group), group)
    if verify == "auto":
        remember(states)
    graph = store.graph(group)
    graph.report = replace(
        store.header.report,
        format="store",
        source=str(path),
        num_bytes=int(group.all_reduce(np.array([graph.nbytes]), "sum")[0]),
        seconds=time.perf_counter() - started,
    )
    return graph


_PIECE_BYTES = 1 << 26  # one checksum covers at most so many bytes


@dataclass
class _Slice:
    """A rank's slice of one array: elements first .. first + values.size - 1 of `count`."""

    name: str
    values: NDArray[Any]
    first: int
    count: int

    def write(self, folder: Path) -> list[list[int]]:
        """Write the slice into the file and return its pieces, as in `StoredArray`."""
        values, itemsize = np.ascontiguousarray(self.values), self.values.dtype.itemsize
        length = max(_PIECE_BYTES // itemsize, 1)
        pieces = []
        with open(folder / f"{self.name}.bin", "r+b") as file:
            file.seek(self.first * itemsize)
            for start in range(0, values.size, length):
                raw = values[start : start + length].view(np.uint8)
                file.write(raw.data)
                _, sums = checksum(raw)
                pieces.append([(self.first + start) * itemsize, raw.size, *sums])
            file.flush()
            os.fsync(file.fileno())
        return pieces


def _slices(graph: GraphArrays, in_edges: InEdges | None) -> list[_Slice]:
    """Return this rank's slices of all arrays. Collective."""
    group = graph.group
    counts = group.all_gather(int(graph.targets.size))
    first_edge = sum(counts[: group.rank])
    # The last rank writes the offset after the last row; on other ranks it is the next rank's first offset.
    offsets = graph.offsets if group.rank == group.size - 1 else graph.offsets[:-1]
    offsets = offsets + np.uint64(first_edge) if first_edge else offsets
    parts = [
        _Slice("offsets", offsets, graph.first_row, graph.num_vertices + 1),
        _Slice("targets", graph.targets, first_edge, graph.num_edges),
    ]
    columns = enumerate(graph.columns.values())
    parts += [_Slice(f"column-{index}", column, first_edge, graph.num_edges) for index, column in columns]
    for index, column in enumerate(graph.vertex_columns.values()):
        k, values = _width(column), column.reshape(-1)
        parts.append(_Slice(f"vertex-column-{index}", values, graph.first_row * k, graph.num_vertices * k))
    if graph.ids.table is not None:
        parts.append(_Slice("ids", graph.ids.table, graph.ids.first_row, graph.num_vertices))
    if in_edges is not None:
        parts.append(_Slice("in-offsets", in_edges.offsets, 0, graph.num_vertices + 1))
        parts.append(_Slice("in-sources", in_edges.sources, 0, graph.num_edges))
        columns = enumerate(in_edges.columns.values())
        parts += [_Slice(f"in-column-{index}", column, 0, graph.num_edges) for index, column in columns]
    return parts


def _width(column: NDArray[Any]) -> int:
    return int(column.shape[1]) if column.ndim == 2 else 1


def _header(graph: GraphArrays, parts: list[_Slice], pieces: list[dict[str, list[list[int]]]]) -> StoreHeader:
    return StoreHeader(
        directed=graph.directed,
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        id_kind=graph.ids.kind,
        id_base=graph.ids.base,
        columns=list(graph.columns),
        vertex_columns=[(name, column.shape[1:]) for name, column in graph.vertex_columns.items()],
        report=graph.report,
        arrays={
            part.name: StoredArray(
                part.values.dtype.str,
                part.count,
                [piece for of_rank in pieces for piece in of_rank[part.name]],
            )
            for part in parts
        },
    )


class _Store:
    """An open store: its folder and its header. Arrays are mapped copy-on-write when they are first used."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.header = folder, read_header(folder)
        self._mapped: dict[str, NDArray[Any]] = {}

    def file_states(self) -> FileStates:
        return states_of(self.folder / f"{name}.bin" for name in self.header.arrays)

    def verify(self, level: Verify, group: Group) -> None:
        """Check this rank's share of all pieces; several threads do it.

        Raises:
            GraphError: If a piece does not match its checksum (`"full"`), or breaks the rule of its array.
        """
        if level == "none":
            return
        whole = {name: self.array(name) for name in self.header.arrays}
        shares = [
            (name, array.pieces[i])
            for name, array in self.header.arrays.items()
            if level == "full" or rule_of(name, whole[name].dtype, 0) is not None
            for i in own_range(len(array.pieces), group)
        ]
        with ThreadPoolExecutor(max(len(os.sched_getaffinity(0)) // group.size, 1)) as pool:
            list(pool.map(lambda share: self._check(level, *share), shares))

    def _check(self, level: Verify, name: str, piece: list[int]) -> None:
        first, num_bytes, *sums = piece
        values = self.array(name)
        begin, end = first // values.itemsize, (first + num_bytes) // values.itemsize
        if begin == end:
            return
        highest = None
        if level == "full":
            highest, found = checksum(values[begin:end].view(np.uint8))
            if found != sums:
                raise self._damaged(name, "does not match its checksum", first, num_bytes)
        rule = rule_of(name, values.dtype, self.header.num_vertices)
        problem = rule(values[max(begin - 1, 0) : end], highest) if rule is not None else ""
        if problem:
            raise self._damaged(name, f"is damaged ({problem})", first, num_bytes)

    def _damaged(self, name: str, problem: str, first: int, num_bytes: int) -> GraphError:
        return GraphError(
            f"{self.folder}: {name}.bin {problem} within bytes {first:,} to {first + num_bytes:,}. "
            "Copy or write the store again"
        )

    def array(self, name: str, first: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return an array, or its elements first..stop-1."""
        if name not in self._mapped:
            array = self.header.arrays[name]
            path, dtype = self.folder / f"{name}.bin", np.dtype(array.dtype)
            # A file without bytes cannot be mapped.
            mapped = np.memmap(path, dtype, "c", shape=(array.count,)) if array.count else np.empty(0, dtype)
            self._mapped[name] = np.asarray(mapped)
        return self._mapped[name][first:stop]

    def graph(self, group: Group) -> GraphArrays:
        """Return the graph, on several ranks this rank's rows."""
        header = self.header
        offsets = self.array("offsets")
        bounds = _balanced(offsets, group.size)
        ends = [int(offsets[bound]) for bound in bounds]
        if ends != sorted(ends) or (ends[0], ends[-1]) != (0, header.num_edges):
            raise GraphError(f"{self.folder}: offsets.bin is damaged. Copy or write the store again")
        first, stop = int(bounds[group.rank]), int(bounds[group.rank + 1])
        edges = (ends[group.rank], ends[group.rank + 1])
        own_offsets = offsets[first : stop + 1]
        columns = {name: self.array(f"column-{index}", *edges) for index, name in enumerate(header.columns)}
        vertex_columns = {}
        for index, (name, shape) in enumerate(header.vertex_columns):
            k = math.prod(shape)
            values = self.array(f"vertex-column-{index}", first * k, stop * k)
            vertex_columns[name] = values.reshape(stop - first, *shape)
        return GraphArrays(
            offsets=own_offsets - np.uint64(edges[0]) if edges[0] else own_offsets,
            targets=self.array("targets", *edges),
            columns=columns,
            num_edges=header.num_edges,
            directed=header.directed,
            ids=self._ids(bounds, group),
            row_bounds=bounds,
            group=group,
            report=header.report,
            by_target=self._in_edges() if group.size == 1 else None,
            vertex_columns=vertex_columns,
        )

    def _in_edges(self) -> InEdges | None:
        if "in-offsets" not in self.header.arrays:
            return None
        offsets = self.array("in-offsets")
        if (int(offsets[0]), int(offsets[-1])) != (0, self.header.num_edges):
            raise GraphError(f"{self.folder}: in-offsets.bin is damaged. Copy or write the store again")
        columns = {name: self.array(f"in-column-{index}") for index, name in enumerate(self.header.columns)}
        return InEdges(offsets, self.array("in-sources"), columns)

    def _ids(self, bounds: NDArray[np.int64], group: Group) -> Ids:
        if self.header.id_kind in ("identity", "range"):
            return Ids.range(self.header.id_base, self.header.num_vertices)
        own = self.array("ids", int(bounds[group.rank]), int(bounds[group.rank + 1]))
        return Ids.of(own, group=group, row_bounds=bounds)


def _balanced(offsets: NDArray[np.uint64], size: int) -> NDArray[np.int64]:
    """Return row bounds of about equal cost (8 bytes a row, 4 an edge), found by bisection."""
    num_vertices = offsets.size - 1
    total = int(offsets[-1]) + 2 * num_vertices
    inner = [
        bisect.bisect_left(
            range(num_vertices), total * rank / size, key=lambda row: int(offsets[row]) + 2 * row
        )
        for rank in range(1, size)
    ]
    return np.array([0, *inner, num_vertices])
