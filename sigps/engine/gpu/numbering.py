"""Local ids of vertices in the memory of a GPU: their order, and the gids and users' ids that they stand for."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cuda import check_fits
from sigps.device.transfers import bring
from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cpu.layout import number_by_degree
from sigps.kernels.cuda.lease import NO_VERTEX

__all__ = ["GhostLids", "Numbering", "num_lids_of", "number_ghosts", "sorted_by_degree"]


class Numbering:
    """The local ids of a partition in the memory of a GPU.

    Owned vertices come first, in descending order of their in-degree, equal degrees by gid; then ghosts (`GhostLids`).
    A part of a graph has its owned vertices in this order on the host too, until they are renamed here. One process's
    whole graph stands by gid there, and its rows are brought into this order while they are copied. Numbers are found
    on the host, which has all that they depend on: CuPy would compile a kernel for each step, and a first answer would
    wait for that.

    Args:
        xp: NumPy or CuPy.
        subgraph: The partition on the host, which must outlive this.
        number: Numbers the vertices of a whole graph on the device, as `number_by_degree` does, given its offsets; then
            nothing is found on the host.
        spare: [ranks]: how many local ids there are for further ghosts of each rank; empty for none.

    Attributes:
        num_owned: Owned vertices.
        num_lids: Local ids: owned vertices and, where there are other partitions, ghosts and the unused between them.
        is_hosts: Whether owned vertices have the same local ids on the host.
        spare: As it was given.
        ghosts: The local ids of ghosts, the spare ones among them; None where there are no other partitions.
        lids: [num_owned + num_ghosts], uint32: the local id of each vertex, in the order that they have on the host.
    """

    def __init__(
        self,
        xp: Any,
        subgraph: Subgraph,
        number: Callable[[Any], Any] | None = None,
        *,
        spare: Sequence[int] = (),
    ) -> None:
        self._xp, self._subgraph, self.spare = xp, weakref.ref(subgraph), spare
        self.num_owned = self.num_lids = subgraph.num_owned
        self.is_hosts = subgraph.gids is not None
        self.ghosts: GhostLids | None = None
        self._in_degrees: Any = None
        self._lids_on_host: NDArray[np.uint32] | None = None
        if number is not None and not self.is_hosts:
            self.lids = number(subgraph.incoming.offsets)
            return
        degrees = np.diff(subgraph.incoming.offsets).astype(np.uint32)
        lids = np.arange(self.num_owned, dtype=np.uint32)
        if not self.is_hosts:
            lids, degrees = number_by_degree(degrees)
        if subgraph.ghost_bounds is not None:
            bounds = subgraph.ghost_bounds
            if spare:
                bounds = bounds + np.cumsum([0, *spare])
            self.ghosts = number_ghosts(self.num_owned, bounds)
            self.num_lids = int(self.ghosts.cold[-1])
            lids = np.concatenate([lids, self.ghosts.lids(subgraph.ghost_bounds)])
        self._lids_on_host, self._in_degrees = lids, degrees
        self.lids = xp.asarray(lids)

    @property
    def in_degrees(self) -> Any:
        """[num_owned], uint32, by local id; NumPy's, unless vertices were renamed."""
        if self._in_degrees is None:
            self._in_degrees = np.empty(self.num_owned, np.uint32)
            self._in_degrees[self.owned_on_host] = np.diff(self.subgraph.incoming.offsets)
        return self._in_degrees

    @property
    def lids_on_host(self) -> NDArray[np.uint32]:
        """The same as `lids`, NumPy's."""
        if self._lids_on_host is None:
            self._lids_on_host = bring(self.lids, np.dtype(np.uint32))
        return self._lids_on_host

    def rename(self, lids: Any, in_degrees: Any) -> None:
        """Give owned vertices other local ids; before anything else was asked.

        Args:
            lids: What `lids` is to be: ghosts keep theirs, by which other ranks write to them.
            in_degrees: What `in_degrees` is to be; an array of the module.
        """
        self.lids, self._in_degrees, self.is_hosts = lids, in_degrees, False
        self._lids_on_host = lids if self._xp is np else None

    @property
    def subgraph(self) -> Subgraph:
        """The partition on the host."""
        subgraph = self._subgraph()
        assert subgraph is not None
        return subgraph

    @property
    def host_order(self) -> Any:
        """The index that brings values by local id into the host's order of owned vertices: a slice, or an array."""
        return slice(0, self.num_owned) if self.is_hosts else self.lids[: self.num_owned]

    @property
    def owned_on_host(self) -> NDArray[np.uint32]:
        """The local id of each owned vertex, [num_owned], in the order that they have on the host."""
        return self.lids_on_host[: self.num_owned]

    def host_lids(self) -> Any:
        """Return the local id that each owned vertex has on the host, [num_owned], int64; made each time."""
        found = np.empty(self.num_owned, dtype=np.int64)
        found[self.owned_on_host] = np.arange(self.num_owned)
        return self._xp.asarray(found)

    def host_lid(self, lid: int) -> int:
        """Return the local id that a vertex has on the host. O(num_owned + num_ghosts)."""
        if self.is_hosts and lid < self.num_owned:
            return lid
        return int(np.flatnonzero(self.lids_on_host == lid)[0])

    def gids(self) -> Any:
        """Return the gid of each owned vertex, [num_owned], int64; made each time."""
        if self.is_hosts:
            return self._xp.asarray(self.subgraph.owned_gids)
        gids = np.empty(self.num_owned, dtype=np.int64)
        gids[self.owned_on_host] = self.subgraph.owned_gids
        return self._xp.asarray(gids)

    @cached_property
    def by_gid(self) -> Any:
        """The local ids of owned vertices in ascending order of their gids, [num_owned], uint32."""
        if self.subgraph.gids is None:
            return self.lids
        return self._xp.asarray(self.owned_on_host[self.subgraph.by_gid])

    @cached_property
    def of_all_gids(self) -> Any:
        """The local id of each vertex of the graph, [num_vertices], uint32; NO_VERTEX for those of other ranks."""
        num_vertices = self.subgraph.num_vertices
        check_fits({"where vertices are": 4 * num_vertices})
        if self.subgraph.gids is None:
            return self.lids
        lids = np.full(num_vertices, NO_VERTEX, dtype=np.uint32)
        lids[self.subgraph.owned_gids] = self.owned_on_host
        return self._xp.asarray(lids)

    def find(self, gids: NDArray[np.int64]) -> Any:
        """Return the local ids of owned vertices by gid. In a part of a graph O(log owned) each, on the host."""
        host_lids = self.subgraph.local_ids(gids)
        return self._xp.asarray(host_lids if self.is_hosts else self.lids_on_host[host_lids])

    def halo(self) -> tuple[NDArray[np.int64], ...]:
        """Return for each rank the local ids of owned vertices that it has as ghosts, in their order there.

        Spare ghosts come last, and are NO_VERTEX.
        """
        lids = self.subgraph.halo
        if not self.is_hosts:
            lids = tuple(self.lids_on_host[of].astype(np.int64) for of in lids)
        if not self.spare:
            return lids
        return tuple(
            np.append(of, np.full(more, NO_VERTEX, dtype=np.int64))
            for of, more in zip(lids, self.spare, strict=True)
        )

    def ids(self, *, narrow: bool) -> Any:
        """Return the ids that compute() sees, [num_lids], as int32 or int64."""
        return self._narrow_ids if narrow else self._wide_ids

    def sorted_ids(self) -> tuple[Any, Any] | None:
        """Return the ids that compute() sees of owned vertices, ascending, and their local ids; None: ids are gids."""
        return self._sorted_ids if self.subgraph.ids.size else None

    @property
    def has_sorted_ids(self) -> bool:
        """Whether `sorted_ids` were asked for: they stay."""
        return "_sorted_ids" in self.__dict__

    @cached_property
    def _narrow_ids(self) -> Any:
        return self._ids(np.int32)

    @cached_property
    def _wide_ids(self) -> Any:
        return self._ids(np.int64)

    def _ids(self, dtype: Any) -> Any:
        given, lids = self.subgraph.ids, self.lids_on_host
        ids = np.zeros(self.num_lids, dtype=dtype)
        ids[lids] = given if given.size else np.arange(lids.size)
        return self._xp.asarray(ids)

    @cached_property
    def _sorted_ids(self) -> tuple[Any, Any]:
        ids = self.subgraph.ids[: self.num_owned]
        order = np.argsort(ids)
        lids = self.lids_on_host[order]
        return self._xp.asarray(ids[order].astype(np.int64)), self._xp.asarray(lids)


def num_lids_of(subgraph: Subgraph) -> int:
    """Return how many local ids a partition takes on a GPU."""
    if subgraph.ghost_bounds is None:
        return subgraph.num_owned
    return int(number_ghosts(subgraph.num_owned, subgraph.ghost_bounds).cold[-1])


def sorted_by_degree(xp: Any, degrees: Any) -> Any:
    """Return the vertices by descending degree, [vertices], int64; equal degrees in their given order.

    The order of `graph.partitioning.partition.degree_order`, for NumPy and CuPy.
    """
    largest = int(degrees.max()) if degrees.size else 0
    return xp.argsort(largest - degrees.astype(xp.int64), kind="stable")


MOST_HOT = 36864
"""Records that a block keeps in shared memory are shared out among owned vertices and the ghosts of each rank."""


@dataclass(frozen=True, eq=False)
class GhostLids:
    """The local ids of ghosts: behind the owned vertices, first the hot ghosts of each rank, which are read most often.

    Each rank's hot ghosts, and its others, begin at a multiple of 32, so that a word of bits has ghosts of one rank.

    Attributes:
        num_hot: [ranks]: the hot ghosts of each rank.
        hot: [ranks + 1]: where they begin, and where the last ones end.
        cold: [ranks + 1]: where the other ghosts begin; the last number is that of all local ids.
        listed: [ranks + 1]: where a list of each rank's ghosts begins among such lists.
        sizes: [ranks]: the ghosts of each rank.
    """

    num_hot: NDArray[np.int64]
    hot: NDArray[np.int64]
    cold: NDArray[np.int64]
    listed: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def lids(self, bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the local id of each ghost, [num_ghosts], in the order of the partition on the host."""
        sizes = np.diff(bounds)
        in_group = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        is_hot = in_group < np.repeat(self.num_hot, sizes)
        begins = np.where(
            is_hot, np.repeat(self.hot[:-1], sizes), np.repeat(self.cold[:-1] - self.num_hot, sizes)
        )
        found: NDArray[np.uint32] = (begins + in_group).astype(np.uint32)
        return found


def number_ghosts(num_owned: int, bounds: NDArray[np.int64], most_hot: int = MOST_HOT) -> GhostLids:
    """Give ghosts their local ids.

    Args:
        num_owned: Owned vertices.
        bounds: [ranks + 1]: rank r's are the ghosts bounds[r] : bounds[r + 1], in descending order of their edges.
        most_hot: Records that a block can keep in shared memory, those of owned vertices among them.

    >>> bounds = np.array([0, 34, 34, 36])
    >>> found = number_ghosts(40, bounds, most_hot=96)
    >>> found.num_hot.tolist(), found.hot.tolist(), found.cold.tolist()
    ([32, 0, 2], [64, 96, 96, 128], [128, 160, 160, 160])
    >>> found.lids(bounds)[[0, 31, 32, 33, 34, 35]].tolist()
    [64, 95, 128, 129, 96, 97]
    """
    sizes = np.diff(bounds).astype(np.int64)
    num_hot = np.minimum(sizes, most_hot // sizes.size // 32 * 32)
    hot = np.cumsum([_up_to_warps(num_owned), *map(_up_to_warps, num_hot.tolist())])
    cold = np.cumsum([hot[-1], *map(_up_to_warps, (sizes - num_hot).tolist())])
    listed = np.cumsum([0, *map(_up_to_warps, sizes.tolist())])
    return GhostLids(num_hot, hot, cold, listed, sizes)


def _up_to_warps(count: int) -> int:
    return -(-count // 32) * 32
