"""How a native store is written: the slices of arrays that each rank has, checksums piece by piece, and the header."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.formats.store_checks import checksum
from sigps.graph.formats.store_header import Packing, StoredArray, StoreHeader, is_store, write_header
from sigps.group import Group
from sigps.whole_files import write_folder

__all__ = ["Pieces", "Slice", "header_of", "vertex_slices", "write_store"]

Pieces = list[list[int]]
"""The pieces of an array, as in `StoredArray`."""

_PIECE_BYTES = 1 << 26  # one checksum covers at most so many bytes


@dataclass
class Slice:
    """A rank's slice of one array: elements first .. first + values.size - 1 of `count`."""

    name: str
    values: NDArray[Any]
    first: int
    count: int

    def reserve(self, folder: Path) -> None:
        """Make the file, as long as the whole array."""
        with open(folder / f"{self.name}.bin", "wb") as file:
            file.truncate(self.count * self.values.dtype.itemsize)

    def write(self, folder: Path) -> Pieces:
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


def vertex_slices(graph: GraphArrays) -> list[Slice]:
    """Return this rank's slices of the vertex columns and of the ids."""
    parts = []
    for index, column in enumerate(graph.vertex_columns.values()):
        k, values = int(column.shape[1]) if column.ndim == 2 else 1, column.reshape(-1)
        parts.append(Slice(f"vertex-column-{index}", values, graph.first_row * k, graph.num_vertices * k))
    if graph.ids.table is not None:
        parts.append(Slice("ids", graph.ids.table, graph.ids.first_row, graph.num_vertices))
    return parts


def write_store(
    path: str | os.PathLike[str],
    group: Group,
    slices: list[Slice],
    header: Callable[[dict[str, StoredArray]], StoreHeader],
    write_others: Callable[[Path], Mapping[str, StoredArray]] = lambda folder: {},
) -> None:
    """Write a store, in the place of one that is there. Collective.

    Args:
        path: The folder.
        group: The ranks.
        slices: Of this rank.
        header: Returns the header for the arrays that were written.
        write_others: Writes arrays that are no slices to a folder, and says what they are; called on every rank.

    Raises:
        GraphError: If the folder cannot be written, or is something else than a store.
    """
    folder = Path(path)

    def prepare(aside: Path) -> None:
        if folder.exists() and not is_store(folder):
            raise GraphError(
                f"{folder} exists and is no graph store, so it is not replaced; choose another path"
            )
        for part in slices:
            part.reserve(aside)

    def write(aside: Path) -> tuple[dict[str, Pieces], Mapping[str, StoredArray]]:
        return {part.name: part.write(aside) for part in slices}, write_others(aside)

    def finish(aside: Path, found: list[tuple[dict[str, Pieces], Mapping[str, StoredArray]]]) -> None:
        arrays = {
            part.name: StoredArray(
                part.values.dtype.str,
                part.count,
                [piece for of_rank, _ in found for piece in of_rank[part.name]],
            )
            for part in slices
        }
        for _, others in found:
            arrays |= others
        write_header(aside, header(arrays))

    write_folder(
        folder,
        group,
        prepare=prepare,
        write=write,
        finish=finish,
        problem=lambda error: GraphError(
            f"{folder}: the store cannot be written: {error.strerror or error}. "
            "Check the folder, its rights and the disk"
        ),
    )


def header_of(
    graph: GraphArrays, arrays: dict[str, StoredArray], packing: Packing | None = None
) -> StoreHeader:
    """Return the header of a graph's store."""
    return StoreHeader(
        directed=graph.directed,
        num_vertices=graph.num_vertices,
        num_edges=graph.num_edges,
        id_kind=graph.ids.kind,
        id_base=graph.ids.base,
        columns=list(graph.columns),
        vertex_columns=[(name, column.shape[1:]) for name, column in graph.vertex_columns.items()],
        report=graph.report,
        arrays=arrays,
        packing=packing,
    )
