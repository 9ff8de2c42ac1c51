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
from sigps.graph.report import LoadReport

__all__ = ["FORMAT_VERSION", "StoreHeader", "StoredArray", "is_store", "read_header", "write_header"]

FORMAT_VERSION = 2


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


def is_store(path: Path) -> bool:
    """Return whether a folder is a native store."""
    return (path / _FILE).is_file()


def write_header(folder: Path, header: StoreHeader) -> None:
    """Write the header, and wait until it is on the disk."""
    body = msgpack.packb(asdict(header))
    with open(folder / _FILE, "wb") as file:
        file.write(_MAGIC + msgpack.packb([FORMAT_VERSION, zlib.crc32(body), body]))
        file.flush()
        os.fsync(file.fileno())


def read_header(folder: Path) -> StoreHeader:
    """Read the header of a store; what it says of its arrays fits together, and fits the sizes of their files.

    Raises:
        GraphError: If there is none, it is damaged, or a file does not have the size that it states.
    """
    header = _read(folder)
    for name, array in header.arrays.items():
        expected = array.count * np.dtype(array.dtype).itemsize
        try:
            found = os.path.getsize(folder / f"{name}.bin")
        except OSError as error:
            raise GraphError(f"{folder}: {name}.bin is missing ({error}); write the store again") from error
        if found != expected:
            raise GraphError(
                f"{folder}: {name}.bin has {found:,} bytes, but the header says {expected:,}: "
                "it was cut off or changed. Copy or write the store again"
            )
    return header


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
    if version != FORMAT_VERSION:
        raise GraphError(
            f"{folder} has format version {version}, but this sigps reads version {FORMAT_VERSION}. "
            "Open it with the sigps that wrote it, or write the store again"
        )
    if not isinstance(body, bytes) or zlib.crc32(body) != crc:
        raise GraphError(f"{path} does not match its checksum. Copy or write the store again")
    try:
        values = msgpack.unpackb(body)
        values["report"] = LoadReport(**values["report"])
        values["arrays"] = {name: StoredArray(**array) for name, array in values["arrays"].items()}
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
    expected: dict[str, tuple[tuple[str, ...], int]] = {"offsets": (("u8",), n + 1), "targets": (_GIDS, m)}
    expected |= {f"column-{i}": (_NUMBERS, m) for i in range(len(header.columns))}
    for i, (_, shape) in enumerate(header.vertex_columns):
        expected[f"vertex-column-{i}"] = (_NUMBERS, n * math.prod(shape))
    if header.id_kind in ("table", "strings"):
        expected["ids"] = (("i8",) if header.id_kind == "table" else ("U",), n)
    if "in-offsets" in header.arrays:
        expected |= {"in-offsets": (("u8",), n + 1), "in-sources": (_GIDS, m)}
        expected |= {f"in-column-{i}": (_NUMBERS, m) for i in range(len(header.columns))}
    if header.arrays.keys() != expected.keys():
        raise ValueError(f"it has the arrays {', '.join(header.arrays)}, not {', '.join(expected)}")
    for name, (types, count) in expected.items():
        _check_array(name, header.arrays[name], types, count)


_GIDS = ("u4", "u8")
_NUMBERS = ("b", "i", "u", "f")


def _check_array(name: str, array: StoredArray, types: tuple[str, ...], count: int) -> None:
    found = _DTYPE.fullmatch(array.dtype)
    if found is None or not {found[1], found[1] + found[2]} & set(types):
        raise ValueError(f"{name}.bin holds {array.dtype}, which no graph has there")
    if array.count != count:
        raise ValueError(f"{name}.bin has {array.count} elements, and {count:,} are expected")
    itemsize, end = np.dtype(array.dtype).itemsize, 0
    for first, num_bytes, _, _ in sorted(array.pieces):
        if first != end or not _is_count(num_bytes) or num_bytes % itemsize:
            raise ValueError(f"the checksums of {name}.bin do not cover it piece by piece")
        end += num_bytes
    if end != count * itemsize:
        raise ValueError(f"the checksums of {name}.bin cover {end:,} of {count * itemsize:,} bytes")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
