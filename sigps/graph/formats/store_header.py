"""The header of a native store: what the graph is, and the type, size and checksums of each of its arrays."""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from sigps.errors import GraphError
from sigps.graph.formats.store_folders import (
    StorePath,
    arrange_folders,
    file_in,
    given_folders,
    identity,
    in_folder,
    part_of,
    paths_text,
)
from sigps.graph.report import LoadReport, bytes_text

__all__ = [
    "PACKED_VERSION",
    "RAW_VERSION",
    "SPREAD_VERSION",
    "Packing",
    "StoreHeader",
    "StoredArray",
    "describe_edges",
    "first_folder",
    "is_store",
    "page_arrays",
    "read_header",
    "write_header",
]

RAW_VERSION, PACKED_VERSION, SPREAD_VERSION = 2, 3, 4
"""The formats: raw arrays, packed pages of rows, and these in several folders."""


@dataclass(frozen=True)
class StoredArray:
    """One array of a store.

    Attributes:
        dtype: As NumPy writes it, such as `<u4`.
        count: Elements.
        pieces: Of each piece the first byte, the bytes, and the two sums of `store_checks.checksum`.
    """

    dtype: str
    count: int
    pieces: list[list[int]]

    @property
    def num_bytes(self) -> int:
        return self.count * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Packing:
    """How the edges of a packed store are kept.

    Attributes:
        order: Of the rows: `"given"`, that of the vertices, or `"degree"`, and then `order.bin` has the vertex of each.
        num_left_out: Vertices that have no row: some of those without an edge.
        column_types: As NumPy writes them, of the edge columns.
        num_folders: Among which the pages are dealt out (`store_folders.py`).
    """

    order: str
    num_left_out: int
    column_types: Sequence[str]
    num_folders: int = 1


@dataclass(frozen=True)
class StoreHeader:
    """What a store says of its graph.

    Attributes:
        id_kind: As in `Ids.kind`.
        id_base: The smallest id, where they are consecutive.
        columns: The names of the edge columns, in the order of their files.
        vertex_columns: Those of the vertex columns, each with the shape of one vertex's value: none, or a length.
        report: What loading found.
        arrays: By the names of their files.
        packing: How edges are packed; None where they are raw arrays.
    """

    directed: bool
    num_vertices: int
    num_edges: int
    id_kind: str
    id_base: int
    columns: Sequence[str]
    vertex_columns: Sequence[tuple[str, Sequence[int]]]
    report: LoadReport
    arrays: dict[str, StoredArray]
    packing: Packing | None = None

    def column_types(self) -> list[np.dtype[Any]]:
        """Return the types of the edge columns."""
        if self.packing is not None:
            return [np.dtype(name) for name in self.packing.column_types]
        return [np.dtype(self.arrays[f"column-{index}"].dtype) for index in range(len(self.columns))]

    def vertex_column_types(self) -> list[np.dtype[Any]]:
        """Return the types of the vertex columns."""
        names = (f"vertex-column-{index}" for index in range(len(self.vertex_columns)))
        return [np.dtype(self.arrays[name].dtype) for name in names]


def is_store(path: Path) -> bool:
    """Return whether a folder is a native store."""
    return (path / _FILE).is_file()


def page_arrays(header: StoreHeader) -> list[list[str]]:
    """Return the names of a packed store's arrays of pages in each of its folders, those of rows first."""
    num_folders = 1 if header.packing is None else header.packing.num_folders
    names = ["pages", *(f"column-{index}" for index in range(len(header.columns)))]
    return [[in_folder(name, number) for name in names] for number in range(num_folders)]


def describe_edges(path: StorePath) -> str:
    """Return how a store keeps its edges, and the bytes that they take without columns, in words.

    Of several folders, a line more for each: its share of the pages, with columns.
    """
    header, folders = read_header(path)
    names = {"offsets", "targets", "in-offsets", "in-sources", "order"}
    names |= {name for name in header.arrays if name.startswith("page-")}
    names |= {own[0] for own in page_arrays(header)}
    num_bytes = sum(array.num_bytes for name, array in header.arrays.items() if name in names)
    form = "raw arrays"
    if header.packing is not None:
        order = {"given": "in the order of ids", "degree": "by degree"}[header.packing.order]
        form = f"{header.arrays['page-first-rows'].count:,} packed pages of rows {order}"
    text = f"{form}, {bytes_text(num_bytes)}, {num_bytes / max(header.num_edges, 1):.2f} bytes an edge"
    if len(folders) == 1:
        return text
    num_pages = header.arrays["page-first-rows"].count
    for number, (folder, own) in enumerate(zip(folders, page_arrays(header), strict=True)):
        count = len(range(number, num_pages, len(folders)))
        num_bytes = sum(header.arrays[name].num_bytes for name in own)
        text += f"\n  {folder}: {count:,} of the pages, {bytes_text(num_bytes)}"
    return text


def write_header(folder: Path, header: StoreHeader) -> None:
    """Write the header, and wait until it is on the disk."""
    values = asdict(header)
    version = SPREAD_VERSION
    if header.packing is None:
        version = RAW_VERSION
        del values["packing"]  # which format 2 does not know
    elif header.packing.num_folders == 1:
        version = PACKED_VERSION
        del values["packing"]["num_folders"]  # likewise format 3
    body = msgpack.packb(values)
    with open(folder / _FILE, "wb") as file:
        file.write(_MAGIC + msgpack.packb([version, zlib.crc32(body), body]))
        file.flush()
        os.fsync(file.fileno())


def read_header(path: StorePath) -> tuple[StoreHeader, list[Path]]:
    """Read the header of a store; what it says of its arrays fits together, and fits the sizes of their files.

    Args:
        path: Its folder, or its folders in any order.

    Returns:
        The header, and the folders in the order of their numbers.

    Raises:
        GraphError: If there is none, it is damaged, a folder is missing or another store's, or a file does not have
            the size that the header states.
    """
    first = first_folder(path)
    header = _read(first)
    num_folders = 1 if header.packing is None else header.packing.num_folders
    pieces = (
        [(name, header.arrays[name].pieces) for own in page_arrays(header) for name in own]
        if num_folders > 1
        else []
    )
    folders = arrange_folders(first, given_folders(path), num_folders, identity(pieces))
    for name, array in header.arrays.items():
        file = file_in(folders, name)
        try:
            found = os.path.getsize(file)
        except OSError as error:
            raise GraphError(
                f"{file.parent}: {file.name} is missing ({error}); write the store again"
            ) from error
        if found != array.num_bytes:
            raise GraphError(
                f"{file.parent}: {file.name} has {found:,} bytes, but the header says {array.num_bytes:,}: "
                "it was cut off or changed. Copy or write the store again"
            )
    return header, folders


def first_folder(path: StorePath) -> Path:
    """Return the folder of a store that has its header, or the path that was given.

    Raises:
        GraphError: Of several, if none has one, or two have.
    """
    folders = given_folders(path)
    part = part_of(folders[0])
    if len(folders) == 1 and part is None:
        return folders[0]
    for folder in folders:
        if not folder.is_dir():
            raise GraphError(
                f"{folder} is a file, and several paths are the folders of one store: name one graph"
                if folder.exists()
                else f"there is no folder {folder}, given as one of a store. Mount its disk, or name it anew"
            )
    found = [folder for folder in folders if is_store(folder)]
    if len(found) > 1:
        raise GraphError(
            f"{found[0]} and {found[1]} are two stores: give one, with the other folders that its pages lie in"
        )
    if not found:
        what = f"none of {paths_text(folders)} is the first folder of a store, which has {_FILE}"
        if part is not None and len(folders) == 1:
            what = f"{folders[0]} is folder {part.number + 1} of {part.of} of a store"
        raise GraphError(f"{what}: give all of its folders: sigps.load([..]), or graph: {{path: [..]}}")
    return found[0]


_FILE = "header.msgpack"
_MAGIC = b"sigps graph store\n"
_DTYPE = re.compile(r"[<|]([biufU])([1-9]\d{0,8})")


def _read(folder: Path) -> StoreHeader:
    path = folder / _FILE
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise GraphError(f"{folder} is no graph store: {error}. sigps.load reads other formats") from error
    if not raw.startswith(_MAGIC):
        raise GraphError(f"{path} is no header of a graph store: it begins with {raw[:18]!r}")
    try:
        version, crc, body = msgpack.unpackb(raw[len(_MAGIC) :])
    except (TypeError, ValueError, msgpack.UnpackException) as error:
        raise GraphError(f"{path} is damaged ({error}). Copy or write the store again") from error
    if version not in (RAW_VERSION, PACKED_VERSION, SPREAD_VERSION):
        raise GraphError(
            f"{folder} has format version {version}, but this sigps reads versions {RAW_VERSION} to {SPREAD_VERSION}. "
            "Open it with the sigps that wrote it, or write the store again"
        )
    if not isinstance(body, bytes) or zlib.crc32(body) != crc:
        raise GraphError(f"{path} does not match its checksum. Copy or write the store again")
    try:
        values = msgpack.unpackb(body)
        values["report"] = LoadReport(**values["report"])
        values["arrays"] = {name: StoredArray(**array) for name, array in values["arrays"].items()}
        if version != RAW_VERSION:
            values["packing"] = packing = Packing(**values["packing"])
            is_count = _is_count(packing.num_folders) and packing.num_folders <= len(values["arrays"])
            if not is_count or (packing.num_folders > 1) != (version == SPREAD_VERSION):
                raise ValueError(f"format {version} has not {packing.num_folders!r} folders")
        elif "packing" in values:
            raise ValueError(f"format {RAW_VERSION} packs nothing")
        header = StoreHeader(**values)
        _check(header)
    except (AttributeError, KeyError, TypeError, ValueError, msgpack.UnpackException) as error:
        raise GraphError(f"{path} is not as sigps writes it: {error}. Write the store again") from error
    return header


def _check(header: StoreHeader) -> None:
    """Raise ValueError where a header contradicts itself, or KeyError where it lacks an array."""
    n, m = header.num_vertices, header.num_edges
    wholes = [n, m, *(k for _, shape in header.vertex_columns for k in shape)]
    if not all(_is_count(value) for value in wholes) or not isinstance(header.directed, bool):
        raise ValueError(f"{wholes} are not all counts, or {header.directed!r} is no direction")
    for name, default in asdict(LoadReport()).items():
        value = getattr(header.report, name)
        if type(value) is not type(default) and not (name == "base" and type(value) is int):
            raise ValueError(f"its report says {name} is {value!r}")
    base = header.id_base
    if type(base) is not int or not -(2**63) <= base <= base + n <= 2**63:
        raise ValueError(f"ids from {base!r} to {n:,} above it do not fit 64 bits")
    if header.id_kind not in ("identity", "range", "table", "strings"):
        raise ValueError(f"there are no ids of the kind {header.id_kind!r}")
    expected = _raw_edges(header) if header.packing is None else _packed_edges(header, header.packing)
    for i, (_, shape) in enumerate(header.vertex_columns):
        expected[f"vertex-column-{i}"] = (_NUMBERS, n * math.prod(shape))
    if header.id_kind in ("table", "strings"):
        expected["ids"] = (("i8",) if header.id_kind == "table" else ("U",), n)
    if header.arrays.keys() != expected.keys():
        raise ValueError(f"it has the arrays {', '.join(header.arrays)}, not {', '.join(expected)}")
    for name, (types, count) in expected.items():
        _check_array(name, header.arrays[name], types, count)


_Expected = dict[str, tuple[tuple[str, ...], int | None]]
"""Of each array the types that it may have, and its elements; None if they may be any number."""


def _raw_edges(header: StoreHeader) -> _Expected:
    n, m = header.num_vertices, header.num_edges
    expected: _Expected = {"offsets": (("u8",), n + 1), "targets": (_GIDS, m)}
    expected |= {f"column-{i}": (_NUMBERS, m) for i in range(len(header.columns))}
    if "in-offsets" in header.arrays:
        expected |= {"in-offsets": (("u8",), n + 1), "in-sources": (_GIDS, m)}
        expected |= {f"in-column-{i}": (_NUMBERS, m) for i in range(len(header.columns))}
    return expected


def _packed_edges(header: StoreHeader, packing: Packing) -> _Expected:
    num_pages = header.arrays["page-first-rows"].count
    if not _is_count(num_pages) or packing.order not in ("given", "degree"):
        raise ValueError(f"it has {num_pages!r} pages of rows in the order {packing.order!r}")
    num_rows = header.arrays["order"].count if packing.order == "degree" else header.num_vertices
    if header.num_vertices >= 1 << 32 or num_rows + packing.num_left_out != header.num_vertices:
        raise ValueError(
            f"{num_rows:,} rows and {packing.num_left_out!r} vertices without one are not all vertices"
        )
    types = [_DTYPE.fullmatch(dtype) and np.dtype(dtype).kind for dtype in packing.column_types]
    if len(types) != len(header.columns) or not {*types} <= {*_NUMBERS}:
        raise ValueError(f"{packing.column_types} are not the types of {header.columns}")
    expected: _Expected = {name: (("u8",), num_pages) for name in ("page-first-rows", "page-end-rows")}
    expected |= {name: (("u8",), num_pages + 1) for name in ("page-arcs", "page-words")}
    expected |= {name: (("u4",), None) for own in page_arrays(header) for name in own}
    if packing.order == "degree":
        expected["order"] = (("u4",), None)
    expected |= {f"column-{i}-words": (("u8",), num_pages + 1) for i in range(len(header.columns))}
    return expected


_GIDS = ("u4", "u8")
_NUMBERS = ("b", "i", "u", "f")


def _check_array(name: str, array: StoredArray, types: tuple[str, ...], expected: int | None) -> None:
    found = _DTYPE.fullmatch(array.dtype)
    if found is None or not {found[1], found[1] + found[2]} & set(types):
        raise ValueError(f"{name}.bin holds {array.dtype}, which no graph has there")
    count = array.count
    if not _is_count(count) or expected not in (None, count):
        raise ValueError(f"{name}.bin has {count!r} elements, and {expected!r} are expected")
    itemsize, end = np.dtype(array.dtype).itemsize, 0
    for first, num_bytes, _, _ in sorted(array.pieces):
        if first != end or not _is_count(num_bytes) or num_bytes % itemsize:
            raise ValueError(f"the checksums of {name}.bin do not cover it piece by piece")
        end += num_bytes
    if end != count * itemsize:
        raise ValueError(f"the checksums of {name}.bin cover {end:,} of {count * itemsize:,} bytes")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
