"""The message center: everything that crosses ranks, in the form in which it crosses.

It works on the arrays that it is given: NumPy's, which cross through MPI, or those of a GPU, which NCCL moves.

What crosses is the outbox records of vertices that sent, once for each rank that holds a ghost of them. Halo
lists are fixed when the graph is partitioned, so a record needs no address: the sender writes in the order of
the receiver's slots. For each pair of ranks the smallest of three forms is chosen, superstep by superstep:

    nothing    nobody in the halo sent
    whole      everybody did: records alone
    positions  some did: their positions in the halo, 4 bytes each, then records
    bitmap     many did: one bit a slot, then records
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.device.nccl import Nccl
from sigps.engine.partition.subgraph import Subgraph
from sigps.group import Group
from sigps.system.data_locator import DataLocator

__all__ = ["HaloForm", "MessageCenter", "choose_form"]

Arrays = tuple[NDArray[Any], ...]
HaloForm = Literal["nothing", "whole", "positions", "bitmap"]
_FORMS: tuple[HaloForm, ...] = ("nothing", "whole", "positions", "bitmap")


def choose_form(num_sent: int, num_slots: int) -> HaloForm:
    """Choose how a halo of `num_slots` tells which `num_sent` of its records follow: the fewest bytes.

    >>> [choose_form(n, 1000) for n in (0, 3, 500, 1000)]
    ['nothing', 'positions', 'bitmap', 'whole']
    """
    if num_sent == 0:
        return "nothing"
    if num_sent == num_slots:
        return "whole"
    return "positions" if 4 * num_sent <= (num_slots + 7) // 8 else "bitmap"


class MessageCenter:
    """An `Exchange` over the ranks of a group: MPI between processes, threads in tests, NCCL between GPUs.

    Args:
        group: The ranks.
        subgraph: This rank's partition.
        locator: Finds vertices; a `DeviceLocator` where arrays are on GPUs.
        nccl: What moves records and mail that are on GPUs; None where they are on the host.
    """

    def __init__(
        self, group: Group, subgraph: Subgraph, locator: DataLocator, nccl: Nccl | None = None
    ) -> None:
        self.rank, self.size, self.on_device = group.rank, group.size, nccl is not None
        self._group, self._subgraph, self._locator = group, subgraph, locator
        self._all_to_all: Callable[[Sequence[Any]], list[Any]] = (nccl or group).all_to_all
        self._numpy: Any = np if nccl is None else importlib.import_module("cupy")
        self._halo = [self._numpy.asarray(slots) for slots in subgraph.halo]
        self._outgoing: list[Any] = []

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        """Pack what each rank's ghosts need."""
        nothing = self._numpy.empty(0, dtype=np.uint8)
        self._outgoing = [
            _packed(self._numpy, sent[slots], [r[slots] for r in records]) if slots.size else nothing
            for slots in self._halo
        ]

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        """Exchange the packed halos and unpack them into the ghosts' slots."""
        arrived = self._all_to_all(self._outgoing)
        num_bytes = sum(p.nbytes for rank, p in enumerate(self._outgoing) if rank != self.rank)
        self._outgoing = []
        bounds = self._subgraph.ghost_bounds
        assert bounds is not None
        changed = [self._numpy.empty(0, dtype=np.int64)]
        for rank, packed in enumerate(arrived):
            first = self._subgraph.num_owned + int(bounds[rank])
            num_slots = int(bounds[rank + 1] - bounds[rank])
            changed.append(_unpack(self._numpy, packed, num_slots, first, records))
        ghosts = self._numpy.concatenate(changed)
        sent[ghosts] = 1
        return ghosts, num_bytes

    def post(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        """Route messages to their targets' owners."""
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


def _packed(numpy: Any, sent: Any, records: list[Any]) -> Any:
    positions = numpy.flatnonzero(sent)
    form = choose_form(positions.size, sent.size)
    head = numpy.array([_FORMS.index(form)], dtype=np.uint8)
    parts = [head]
    if form == "positions":
        count = numpy.array([positions.size], dtype=np.uint32)
        parts += [count.view(np.uint8), positions.astype(np.uint32).view(np.uint8)]
    elif form == "bitmap":
        parts.append(numpy.packbits(sent))
    if form != "nothing":
        parts += [numpy.ascontiguousarray(r[positions]).view(np.uint8) for r in records]
    return numpy.concatenate(parts)


def _unpack(numpy: Any, packed: Any, num_slots: int, first: int, records: Arrays) -> Any:
    """Write records into the slots from `first` on; return the local ids written."""
    if packed.size == 0 or _FORMS[int(packed[0])] == "nothing":
        return numpy.empty(0, dtype=np.int64)
    form, at = _FORMS[int(packed[0])], 1
    if form == "positions":
        count = int(packed[at : at + 4].copy().view(np.uint32)[0])
        positions = packed[at + 4 : at + 4 + 4 * count].copy().view(np.uint32).astype(np.int64)
        at += 4 + 4 * count
    elif form == "bitmap":
        width = (num_slots + 7) // 8
        positions = numpy.flatnonzero(numpy.unpackbits(packed[at : at + width])[:num_slots])
        at += width
    else:
        positions = numpy.arange(num_slots)
    slots = positions + first
    for record in records:
        num_bytes = record.itemsize * slots.size
        record[slots] = packed[at : at + num_bytes].copy().view(record.dtype)  # where it is aligned
        at += num_bytes
    return slots
