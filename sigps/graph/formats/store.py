"""The native store: a folder of raw arrays that are memory-mapped, so opening a graph reads little of it.

    graph.sigps/
      header.msgpack      counts, dtypes and checksums; with a checksum of its own
      offsets.bin         [num_vertices + 1] uint64
      targets.bin         [num_edges] uint32 or uint64
      column-<n>.bin      [num_edges], one for each edge column
      vertex-column-<n>.bin     [num_vertices] or [num_vertices * k], one for each vertex column
      ids.bin             [num_vertices] int64 or UTF-32 text of fixed width; absent if ids are consecutive
      in-offsets.bin, in-sources.bin, in-column-<n>.bin     the edges by target, optional

Arrays are little-endian. A store is written to a temporary folder beside its path, which is then renamed, so that
a store at a path is complete. On several ranks each writes and reads its own rows.
"""

from __future__ import annotations

import bisect
import os
import shutil
import time
import uuid
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport
from sigps.group import Group, together

__all__ = ["FORMAT_VERSION", "is_store", "read_store", "save"]

FORMAT_VERSION = 1

T = TypeVar("T")


def save(graph: GraphArrays, path: str | os.PathLike[str], *, in_edges: InEdges | None = None) -> None:
    """Write a graph, and its in-edges if they are given, to a folder: see `Graph.save`. Collective."""
    group, folder = graph.group, Path(path)
    scratch = folder.with_name(f".{folder.name}.{group.broadcast(uuid.uuid4().hex)}")
    try:
        parts = _slices(graph, in_edges)
        _write(lambda: _prepare(folder, scratch, parts) if group.rank == 0 else None, group)
        pieces = _write(lambda: {part.name: part.write(scratch) for part in parts}, group)
        everywhere: list[dict[str, Any]] = group.all_gather(pieces)
        header = _header(graph, parts, everywhere)
        _write(lambda: _finish(folder, scratch, header) if group.rank == 0 else None, group)
    finally:
        if group.rank == 0:
            shutil.rmtree(scratch, ignore_errors=True)


def read_store(path: str | os.PathLike[str], group: Group, *, verify: bool = False) -> GraphArrays:
    """Open a stored graph: see `sigps.graph.load.open_store`. Collective."""
    started = time.perf_counter()
    store = together(lambda: _Store.open(Path(path)), group)
    if verify:
        together(lambda: store.verify(group.rank, group.size), group)
    graph = store.graph(group)
    stored = {name: value for name, value in store.header["report"].items() if hasattr(graph.report, name)}
    graph.report = replace(
        LoadReport(**stored),
        format="store",
        source=str(path),
        num_bytes=int(group.all_reduce(np.array([graph.nbytes]), "sum")[0]),
        seconds=time.perf_counter() - started,
    )
    return graph


def is_store(path: Path) -> bool:
    """Return whether a folder is a native store."""
    return (path / _HEADER_FILE).is_file()


_HEADER_FILE = "header.msgpack"
_MAGIC = b"sigps graph store\n"
_PIECE_BYTES = 1 << 26  # one checksum covers at most so many bytes


@dataclass
class _Slice:
    """A rank's slice of one array: elements first .. first + values.size - 1 of `count`."""

    name: str
    values: NDArray[Any]
    first: int
    count: int

    def write(self, folder: Path) -> list[list[int]]:
        """Write the slice into the file and return a checksum for each piece: first byte, bytes, CRC."""
        raw = np.ascontiguousarray(self.values).view(np.uint8).data if self.values.size else b""
        first = self.first * self.values.dtype.itemsize
        pieces = []
        with open(folder / f"{self.name}.bin", "r+b") as file:
            file.seek(first)
            for start in range(0, len(raw), _PIECE_BYTES):
                piece = raw[start : start + _PIECE_BYTES]
                file.write(piece)
                pieces.append([first + start, len(piece), zlib.crc32(piece)])
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


def _prepare(folder: Path, scratch: Path, parts: list[_Slice]) -> None:
    if folder.exists() and not is_store(folder):
        raise GraphError(f"{folder} exists and is no graph store, so it is not replaced; choose another path")
    scratch.mkdir()
    for part in parts:
        with open(scratch / f"{part.name}.bin", "wb") as file:
            file.truncate(part.count * part.values.dtype.itemsize)


def _header(graph: GraphArrays, parts: list[_Slice], pieces: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "directed": graph.directed,
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "id_kind": graph.ids.kind,
        "id_base": graph.ids.base,
        "columns": list(graph.columns),
        "vertex_columns": [[name, column.shape[1:]] for name, column in graph.vertex_columns.items()],
        "report": asdict(graph.report),
        "arrays": {
            part.name: {
                "dtype": part.values.dtype.str,
                "count": part.count,
                "pieces": [piece for of_rank in pieces for piece in of_rank[part.name]],
            }
            for part in parts
        },
    }


def _finish(folder: Path, scratch: Path, header: dict[str, Any]) -> None:
    """Write the header and rename the temporary folder to the store's path."""
    body = msgpack.packb(header)
    with open(scratch / _HEADER_FILE, "wb") as file:
        file.write(_MAGIC + msgpack.packb([FORMAT_VERSION, zlib.crc32(body), body]))
        file.flush()
        os.fsync(file.fileno())
    old = scratch.with_name(scratch.name + ".old")
    if folder.exists():
        os.rename(folder, old)
    os.rename(scratch, folder)
    shutil.rmtree(old, ignore_errors=True)


def _write(work: Callable[[], T], group: Group) -> T:
    """Return `work()`; where it fails on any rank, raise on all. Collective."""

    def guarded() -> T:
        try:
            return work()
        except OSError as error:
            raise GraphError(
                f"the store cannot be written: {error}. Check the folder, its rights and the disk"
            ) from error

    return together(guarded, group)


@dataclass
class _Store:
    """An open store: its folder and its header."""

    folder: Path
    header: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> _Store:
        """Read the header; raise GraphError if it is damaged or a file does not have the size that it states."""
        store = cls(folder, _read_header(folder))
        for name, array in store.header["arrays"].items():
            if np.dtype(array["dtype"]).kind not in "biufU":
                raise GraphError(f"{folder}: {name}.bin holds {array['dtype']}, which no graph has")
            expected = array["count"] * np.dtype(array["dtype"]).itemsize
            try:
                found = os.path.getsize(folder / f"{name}.bin")
            except OSError as error:
                raise GraphError(
                    f"{folder}: {name}.bin is missing ({error}); write the store again"
                ) from error
            if found != expected:
                raise GraphError(
                    f"{folder}: {name}.bin has {found:,} bytes, but the header says {expected:,}: "
                    "it was cut off or changed. Copy or write the store again"
                )
        return store

    def verify(self, rank: int, size: int) -> None:
        """Compare one rank's share of all pieces with their checksums."""
        pieces = [
            (name, first, num_bytes, crc)
            for name, array in self.header["arrays"].items()
            for first, num_bytes, crc in array["pieces"]
        ]
        for name, first, num_bytes, crc in pieces[rank::size]:
            with open(self.folder / f"{name}.bin", "rb") as file:
                file.seek(first)
                if zlib.crc32(file.read(num_bytes)) != crc:
                    raise GraphError(
                        f"{self.folder}: {name}.bin does not match its checksum within bytes "
                        f"{first:,} to {first + num_bytes:,}. Copy or write the store again"
                    )

    def array(self, name: str, first: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Map an array, or its elements first..stop-1, copy-on-write."""
        array = self.header["arrays"][name]
        dtype = np.dtype(array["dtype"])
        stop = array["count"] if stop is None else stop
        if stop == first:
            return np.empty(0, dtype)
        path = self.folder / f"{name}.bin"
        return np.asarray(np.memmap(path, dtype, "c", first * dtype.itemsize, (stop - first,)))

    def graph(self, group: Group) -> GraphArrays:
        """Return the graph, on several ranks this rank's rows."""
        header = self.header
        offsets = self.array("offsets")
        bounds = _balanced(offsets, group.size)
        ends = [int(offsets[bound]) for bound in bounds]
        if ends != sorted(ends) or (ends[0], ends[-1]) != (0, header["num_edges"]):
            raise GraphError(f"{self.folder}: offsets.bin is damaged. Copy or write the store again")
        first, stop = int(bounds[group.rank]), int(bounds[group.rank + 1])
        edges = (ends[group.rank], ends[group.rank + 1])
        own_offsets = offsets[first : stop + 1]
        columns = {
            name: self.array(f"column-{index}", *edges) for index, name in enumerate(header["columns"])
        }
        vertex_columns = {}
        for index, (name, shape) in enumerate(header.get("vertex_columns", ())):  # older stores have none
            k = int(np.prod(shape, dtype=np.int64))
            values = self.array(f"vertex-column-{index}", first * k, stop * k)
            vertex_columns[name] = values.reshape(stop - first, *shape)
        in_edges = None
        if "in-offsets" in header["arrays"] and group.size == 1:
            in_columns = {
                name: self.array(f"in-column-{index}") for index, name in enumerate(header["columns"])
            }
            in_edges = InEdges(self.array("in-offsets"), self.array("in-sources"), in_columns)
        return GraphArrays(
            offsets=own_offsets - np.uint64(edges[0]) if edges[0] else own_offsets,
            targets=self.array("targets", *edges),
            columns=columns,
            num_edges=header["num_edges"],
            directed=header["directed"],
            ids=self._ids(bounds, group),
            row_bounds=bounds,
            group=group,
            report=LoadReport(),
            by_target=in_edges,
            vertex_columns=vertex_columns,
        )

    def _ids(self, bounds: NDArray[np.int64], group: Group) -> Ids:
        if self.header["id_kind"] in ("identity", "range"):
            return Ids.range(self.header["id_base"], self.header["num_vertices"])
        own = self.array("ids", int(bounds[group.rank]), int(bounds[group.rank + 1]))
        return Ids.of(own, group=group, row_bounds=bounds)


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / _HEADER_FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise GraphError(f"{folder} is no graph store: {error}. sigps.load reads other formats") from error
    if not raw.startswith(_MAGIC):
        raise GraphError(f"{path} is no header of a graph store: it begins with {raw[:18]!r}")
    try:
        version, crc, body = msgpack.unpackb(raw[len(_MAGIC) :])
    except (ValueError, msgpack.UnpackException) as error:
        raise GraphError(f"{path} is damaged ({error}). Copy or write the store again") from error
    if version != FORMAT_VERSION:
        raise GraphError(
            f"{folder} has format version {version}, but this sigps reads version {FORMAT_VERSION}. "
            "Open it with the sigps that wrote it, or write the store again"
        )
    if not isinstance(body, bytes) or zlib.crc32(body) != crc:
        raise GraphError(f"{path} does not match its checksum. Copy or write the store again")
    header: dict[str, Any] = msgpack.unpackb(body)
    return header


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
