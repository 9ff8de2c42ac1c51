"""The message center: what crosses ranks, and the encoding in which it crosses.

It works on the arrays that it is given: NumPy arrays, which cross through MPI, or CuPy arrays, which NCCL moves.

What crosses is the outbox records of vertices that sent, once for each rank that holds a ghost of them. Halos are
fixed when the graph is partitioned, and the sender writes records in the order of the receiver's ghosts, so a record
needs no address. For each pair of ranks and each superstep the smallest encoding is chosen:

    nothing    no vertex of the halo sent
    whole      all sent: records alone
    positions  some sent: their number and their positions in the halo, 4 bytes each, then records
    bitmap     many sent: one bit for each vertex of the halo, then records

A byte before these says which it is; between two ranks that have no halo not even that crosses.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.device.nccl import Nccl
from sigps.engine.partition.subgraph import Subgraph
from sigps.group import Group
from sigps.system.data_locator import DataLocator

__all__ = ["GrowingMessageCenter", "HaloEncoding", "MessageCenter", "choose_encoding"]

Arrays = tuple[NDArray[Any], ...]
HaloEncoding = Literal["nothing", "whole", "positions", "bitmap"]
_ENCODINGS: tuple[HaloEncoding, ...] = ("nothing", "whole", "positions", "bitmap")


def choose_encoding(num_sent: int, halo_size: int) -> HaloEncoding:
    """Return the encoding with the fewest bytes, where `num_sent` of the `halo_size` vertices of a halo sent.

    >>> [choose_encoding(n, 1000) for n in (0, 3, 500, 1000)]
    ['nothing', 'positions', 'bitmap', 'whole']
    """
    if num_sent == 0:
        return "nothing"
    if num_sent == halo_size:
        return "whole"
    return "positions" if 4 * num_sent <= (halo_size + 7) // 8 else "bitmap"


class MessageCenter:
    """An `Exchange` over the ranks of a group: MPI between processes, threads in tests, NCCL between GPUs.

    With NCCL the sizes of arrays go through the host, which waits for them, and for the device to count what was
    sent; the arrays themselves are moved on the current stream, for which no verb waits.

    Args:
        group: The ranks.
        subgraph: This rank's partition.
        locator: Finds vertices; a `DeviceLocator` where arrays are on GPUs.
        nccl: What moves records and direct messages that are on GPUs; None where they are on the host.
    """

    def __init__(
        self, group: Group, subgraph: Subgraph, locator: DataLocator, nccl: Nccl | None = None
    ) -> None:
        self.rank, self.size, self.on_device = group.rank, group.size, nccl is not None
        self._group, self._locator = group, locator
        self._nccl = nccl
        self._all_to_all: Callable[[Sequence[Any]], list[Any]] = (nccl or group).all_to_all
        self._numpy: Any = np if nccl is None else importlib.import_module("cupy")
        self._halo = [self._numpy.asarray(lids) for lids in subgraph.halo]
        bounds, n = subgraph.ghost_bounds, subgraph.num_owned
        cuts = [] if bounds is None else (bounds + n).tolist()
        self._ghosts: list[range | NDArray[np.int64]] = [
            range(*span) for span in pairwise(cuts)
        ]  # of each rank
        self._encoded: list[Any] = []

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        """Encode the records that each rank's ghosts need. Waits for no rank."""
        nothing = self._numpy.empty(0, dtype=np.uint8)
        self._encoded = [
            _encode(self._numpy, sent[lids], [r[lids] for r in records]) if lids.size else nothing
            for lids in self._halo
        ]

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        """Exchange the encoded halos, and decode what arrives into the ghosts' elements. Waits for all ranks."""
        arrived = self._all_to_all(self._encoded)
        num_bytes = sum(p.nbytes for rank, p in enumerate(self._encoded) if rank != self.rank)
        self._encoded = []
        changed = [self._numpy.empty(0, dtype=np.int64)]
        for encoded, ghosts in zip(arrived, self._ghosts, strict=True):
            changed.append(_decode(self._numpy, encoded, ghosts, records))
        ghosts = self._numpy.concatenate(changed)
        sent[ghosts] = 1
        return ghosts, num_bytes

    def route(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        """Send messages to their targets' owners; one all-to-all for each array. Waits for all ranks."""
        numpy, ranks = self._numpy, self._locator.ranks(gids)
        order = numpy.argsort(ranks, kind="stable")
        bounds = numpy.searchsorted(ranks[order], numpy.arange(self.size + 1, dtype=ranks.dtype)).tolist()
        num_bytes = 0

        def moved(values: Any) -> Any:
            nonlocal num_bytes
            parts = [values[order[bounds[r] : bounds[r + 1]]] for r in range(self.size)]
            num_bytes += sum(p.nbytes for r, p in enumerate(parts) if r != self.rank)
            return numpy.concatenate(self._all_to_all(parts))

        lids = self._locator.local_ids(moved(gids))
        arrived = tuple(moved(m) for m in messages)
        if senders is not None:
            by_sender = numpy.argsort(moved(senders), kind="stable")
            lids, arrived = lids[by_sender], tuple(a[by_sender] for a in arrived)
        return lids, arrived, num_bytes

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        return self._locator.gids(ids, superstep)

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.stack(self._group.all_gather_array(values))

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return self._all_to_all(parts)

    def swap_whole(self, parts: Sequence[Any], arrived: Sequence[Any]) -> None:
        assert self._nccl is not None
        self._nccl.move(parts, arrived)


class GrowingMessageCenter(MessageCenter):
    """The same between ranks of CPU cores whose partitions get further ghosts, in spare slots behind all others.

    Args:
        group: The ranks.
        subgraph: This rank's partition, without the spare slots.
        locator: Finds vertices.
        spare: How many slots there are for vertices of each rank.
    """

    def __init__(self, group: Group, subgraph: Subgraph, locator: DataLocator, spare: int) -> None:
        super().__init__(group, subgraph, locator)
        self._spare, self._first = spare, subgraph.num_owned + subgraph.num_ghosts
        self._num_more = np.zeros(group.size, dtype=np.int64)

    @property
    def num_spare(self) -> int:
        """How many slots there are in all."""
        return self._spare * self.size

    def add_ghosts(self, gids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Take further ghosts, of which any rank may name some. Collective.

        Args:
            gids: Distinct vertices of other ranks.

        Returns:
            The ghosts' local ids, and those of owned vertices that others took; None where some rank has too few slots.
        """
        owners = self._locator.ranks(gids)
        after = self._num_more + np.bincount(owners, minlength=self.size)
        if self._group.all_reduce(np.array([after.max(initial=0)]), "max")[0] > self._spare:
            return None
        lids = np.empty(gids.size, dtype=np.int64)
        parts = []
        for rank in range(self.size):
            at = np.flatnonzero(owners == rank)
            lids[at] = self._first + rank * self._spare + self._num_more[rank] + np.arange(at.size)
            parts.append(gids[at])
            if at.size:
                self._ghosts[rank] = np.append(np.asarray(self._ghosts[rank], dtype=np.int64), lids[at])
        wanted = [self._locator.local_ids(part) for part in self._group.all_to_all(parts)]
        self._halo = [np.concatenate(pair) for pair in zip(self._halo, wanted, strict=True)]
        self._num_more = after
        return lids, np.concatenate(wanted)


def _encode(numpy: Any, sent: Any, records: list[Any]) -> Any:
    """Return a halo as bytes.

    Args:
        numpy: NumPy, or CuPy on a GPU.
        sent: Whether each vertex of the halo sent, [halo_size].
        records: The fields of their records, [halo_size] each.
    """
    positions = numpy.flatnonzero(sent)
    encoding = choose_encoding(positions.size, sent.size)
    parts = [numpy.array([_ENCODINGS.index(encoding)], dtype=np.uint8)]
    if encoding == "positions":
        count = numpy.array([positions.size], dtype=np.uint32)
        parts += [count.view(np.uint8), positions.astype(np.uint32).view(np.uint8)]
    elif encoding == "bitmap":
        parts.append(numpy.packbits(sent))
    if encoding != "nothing":
        parts += [numpy.ascontiguousarray(r[positions]).view(np.uint8).reshape(-1) for r in records]
    return numpy.concatenate(parts)


def _decode(numpy: Any, encoded: Any, ghosts: range | NDArray[np.int64], records: Arrays) -> Any:
    """Write the records of one rank's vertices into the elements of their ghosts; return the local ids written.

    Args:
        numpy: NumPy, or CuPy on a GPU.
        encoded: What that rank sent, uint8.
        ghosts: The local ids of those that it owns, in the order of its halo.
        records: The fields of the records, [num_owned + num_ghosts] each.
    """
    if encoded.size == 0 or _ENCODINGS[int(encoded[0])] == "nothing":
        return numpy.empty(0, dtype=np.int64)
    encoding, at = _ENCODINGS[int(encoded[0])], 1
    if encoding == "positions":
        count = int(encoded[at : at + 4].copy().view(np.uint32)[0])
        positions = encoded[at + 4 : at + 4 + 4 * count].copy().view(np.uint32).astype(np.int64)
        at += 4 + 4 * count
    elif encoding == "bitmap":
        width = (len(ghosts) + 7) // 8
        positions = numpy.flatnonzero(numpy.unpackbits(encoded[at : at + width])[: len(ghosts)])
        at += width
    else:
        positions = numpy.arange(len(ghosts))
    lids = positions + ghosts.start if isinstance(ghosts, range) else ghosts[positions]
    for record in records:
        row = record.shape[1:]
        num_bytes = record.itemsize * lids.size * math.prod(row)
        arrived = encoded[at : at + num_bytes].copy().view(record.dtype)  # a copy is aligned
        record[lids] = arrived.reshape(lids.size, *row)
        at += num_bytes
    return lids
