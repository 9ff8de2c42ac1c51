"""The files of a native store that is open: mapped arrays, and what they are checked for."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import GraphError
from sigps.graph.formats.known_stores import FileStates, states_of
from sigps.graph.formats.store_checks import checksum, rule_of
from sigps.graph.formats.store_folders import StorePath, file_in, in_folder
from sigps.graph.formats.store_header import read_header
from sigps.graph.ids import Ids
from sigps.graph.packing.page_files import PageFile, PageFiles
from sigps.group import Group, own_range

__all__ = ["OpenStore", "Verify"]

Verify = Literal["auto", "full", "bounds", "none"]


class OpenStore:
    """An open store: its folders, the first of them, and its header.

    Arrays are mapped copy-on-write when they are first used.
    """

    def __init__(self, path: StorePath) -> None:
        self.header, self.folders = read_header(path)
        self.folder = self.folders[0]
        self._mapped: dict[str, NDArray[Any]] = {}

    def file_states(self) -> FileStates:
        return states_of(file_in(self.folders, name) for name in self.header.arrays)

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
        if len(self.folders) > 1:  # so that all disks work at once
            shares.sort(key=lambda share: share[1][0])
        num_threads = max(len(os.sched_getaffinity(0)) // group.size, len(self.folders))
        with ThreadPoolExecutor(num_threads) as pool:
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
        file = file_in(self.folders, name)
        return GraphError(
            f"{file.parent}: {file.name} {problem} within bytes {first:,} to {first + num_bytes:,}. "
            "Copy or write the store again"
        )

    def array(self, name: str, first: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return an array, or its elements first..stop-1."""
        if name not in self._mapped:
            array = self.header.arrays[name]
            path, dtype = file_in(self.folders, name), np.dtype(array.dtype)
            # A file without bytes cannot be mapped.
            mapped = np.memmap(path, dtype, "c", shape=(array.count,)) if array.count else np.empty(0, dtype)
            self._mapped[name] = np.asarray(mapped)
        return self._mapped[name][first:stop]

    def page_file(self, name: str, begins: NDArray[np.uint64]) -> PageFile | PageFiles:
        """Return the file of an array of pages, open, to be read page by page; those of all folders as one.

        Args:
            name: Of the array.
            begins: [pages + 1], where each page begins among the words of all.

        Raises:
            GraphError: If folders have not the words of their pages, or a file cannot be opened.
        """
        names = [in_folder(name, number) for number in range(len(self.folders))]
        counts = [self.header.arrays[own].count for own in names]
        files = [
            PageFile(file_in(self.folders, own), 4 * count) for own, count in zip(names, counts, strict=True)
        ]
        if len(files) == 1:
            return files[0]
        found = PageFiles(files, begins)
        for file, own, expected in zip(names, counts, found.words_of_files, strict=True):
            if own != expected:
                where = file_in(self.folders, file)
                raise GraphError(
                    f"{where.parent}: {where.name} has {own:,} words, and its pages {expected:,}. Copy or write the "
                    "store again"
                )
        return found

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
