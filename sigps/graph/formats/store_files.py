"""The files of a native store that is open: mapped arrays, and what they are checked for."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.known_stores import FileStates, states_of
from sigps.graph.formats.store_checks import checksum, rule_of
from sigps.graph.formats.store_header import read_header
from sigps.graph.ids import Ids
from sigps.graph.packing.page_files import PageFile
from sigps.group import Group, own_range

__all__ = ["OpenStore", "Verify"]

Verify = Literal["auto", "full", "bounds", "none"]


class OpenStore:
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

    def page_file(self, name: str) -> PageFile:
        """Return the file of an array of words, open, to be read page by page."""
        return PageFile(self.folder / f"{name}.bin", self.array(name).nbytes)

    def vertex_columns(self, first: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return the columns of vertices first..stop-1, by name."""
        found = {}
        for index, (name, shape) in enumerate(self.header.vertex_columns):
            k = math.prod(shape)
            values = self.array(f"vertex-column-{index}", first * k, stop * k)
            found[name] = values.reshape(stop - first, *shape)
        return found

    def ids(self, bounds: NDArray[np.int64], group: Group) -> Ids:
        """Return the ids; on several ranks, this rank's share of them. Collective."""
        if self.header.id_kind in ("identity", "range"):
            return Ids.range(self.header.id_base, self.header.num_vertices)
        own = self.array("ids", int(bounds[group.rank]), int(bounds[group.rank + 1]))
        return Ids.of(own, group=group, row_bounds=bounds)
