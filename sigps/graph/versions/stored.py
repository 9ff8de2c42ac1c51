"""Batches of updates beside a native store: `update-<number>.bin` in its folder, applied in order when it is opened.

A file is a line and the batch's arrays (NumPy's .npz). The line has a checksum of all that follows it, and in JSON what
the batch belongs to: `base` is the checksum of the store's header, `previous` that of the batch before. So a batch that
is missing, damaged or another store's is found before anything is applied. A file is there when it is whole. Writing
the store again, which replaces the folder, takes the batches in.
"""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.store_header import is_store
from sigps.graph.versions.batch import Changes
from sigps.whole_files import write_whole

__all__ = ["Batch", "append_batch", "stored_batches"]

_MAGIC = b"sigps-update 1 "
_PREFIX, _SUFFIX = "update-", ".bin"


@dataclass(frozen=True, eq=False)
class Batch:
    """What `Graph.apply` was given, by ids: vertices to delete, edges to delete, then to insert, and vertices."""

    inserts: Changes
    deletes: Changes
    vertices: NDArray[Any]
    deleted_vertices: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


def append_batch(store: Path, batch: Batch, *, before: tuple[int, int], after: tuple[int, int]) -> Path:
    """Write a batch behind those that a store has; return the file. Waits until it is on the disk.

    Args:
        store: The store's folder.
        batch: The batch.
        before: Vertices and edges of the graph before it, which the store comes to so far.
        after: The same afterwards.

    Raises:
        GraphError: If there is no store, it comes to another graph, or the file cannot be written.
    """
    if not is_store(store):
        raise GraphError(f"{store} is no native store: write one with graph.save()")
    base, files = _base(store), _paths(store)
    number, previous = 1, 0
    if files:
        head, _ = _read(files[-1])
        number, previous = head["number"] + 1, head["checksum"]
        if tuple(head["after"]) != before:
            raise GraphError(_other(store, tuple(head["after"]), before))
    arrays: dict[str, NDArray[Any]] = {"vertices": batch.vertices}
    if batch.deleted_vertices.size:
        arrays["deleted vertices"] = batch.deleted_vertices
    for name, changes in (("insert", batch.inserts), ("delete", batch.deletes)):
        arrays |= {f"{name} source": changes.sources, f"{name} target": changes.targets}
        arrays |= {f"{name} column {column}": values for column, values in changes.columns.items()}
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    body = packed.getvalue()
    head = {
        "number": number,
        "base": base,
        "previous": previous,
        "before": before,
        "after": after,
    }
    rest = json.dumps(head).encode() + b"\n" + body
    path = store / f"{_PREFIX}{number:06d}{_SUFFIX}"
    try:
        write_whole(path, lambda file: file.write(b"%s%08x %s" % (_MAGIC, zlib.crc32(rest), rest)))
    except OSError as error:
        raise GraphError(f"cannot write {path}: {error.strerror}") from None
    return path


def stored_batches(store: Path, sizes: tuple[int, int]) -> list[Batch]:
    """Return the batches beside a store, in order; `sizes` are the vertices and edges of the graph in it.

    Raises:
        GraphError: If one is missing, damaged, or another store's.
    """
    found: list[Batch] = []
    base, previous = None, 0
    for number, path in enumerate(_paths(store), 1):
        head, body = _read(path)
        base = _base(store) if base is None else base
        if (head["number"], head["base"], head["previous"]) != (number, base, previous):
            raise GraphError(
                f"{path} does not follow: update {number} of this store is missing, or the file is another store's. "
                "Write the store again from its source"
            )
        if tuple(head["before"]) != sizes:
            raise GraphError(_other(store, sizes, tuple(head["before"])))
        sizes, previous = tuple(head["after"]), head["checksum"]
        try:
            found.append(_batch(body))
        except (ValueError, KeyError, OSError) as error:
            raise GraphError(f"{path} is damaged: {error}") from None
    return found


def _batch(body: bytes) -> Batch:
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        gone = [arrays["deleted vertices"]] if "deleted vertices" in arrays else []
        return Batch(_changes(arrays, "insert"), _changes(arrays, "delete"), arrays["vertices"], *gone)


def _changes(arrays: Any, name: str) -> Changes:
    lead = f"{name} column "
    columns = {key[len(lead) :]: arrays[key] for key in arrays if key.startswith(lead)}
    return Changes(arrays[f"{name} source"], arrays[f"{name} target"], columns)


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise GraphError(f"cannot read {path}: {error.strerror}") from None
    try:
        if not raw.startswith(_MAGIC):
            raise ValueError("it does not begin as an update does")
        start = len(_MAGIC)
        checksum, rest = int(raw[start : start + 8], 16), raw[start + 9 :]
        if zlib.crc32(rest) != checksum:
            raise ValueError("its bytes do not have its checksum")
        line, _, body = rest.partition(b"\n")
        head = json.loads(line) | {"checksum": checksum}
    except ValueError as error:
        raise GraphError(f"{path} is damaged: {error}") from None
    return head, body


def _paths(store: Path) -> list[Path]:
    found = [
        p for p in store.glob(f"{_PREFIX}*{_SUFFIX}") if p.name[len(_PREFIX) : -len(_SUFFIX)].isdecimal()
    ]
    return sorted(found, key=lambda p: int(p.name[len(_PREFIX) : -len(_SUFFIX)]))


def _base(store: Path) -> int:
    return zlib.crc32((store / "header.msgpack").read_bytes())


def _other(store: Path, there: tuple[int, ...], given: tuple[int, ...]) -> str:
    return (
        f"the store {store} comes to {there[0]:,} vertices and {there[1]:,} edges, and the update is of a graph with "
        f"{given[0]:,} and {given[1]:,}: it is another version, or another graph's"
    )
