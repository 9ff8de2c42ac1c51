"""Peer-mapped buffers: one of each rank's GPU, which the kernels of all ranks read and write.

What was opened stays open for every later run of the same processes, and all are freed together, when one rank needs
more: memory must not be freed while another process has it open.
"""

from __future__ import annotations

import gc
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import numpy as np

from sigps.device import peer_memory
from sigps.device.cuda import check_fits
from sigps.engine.exchange import Exchange
from sigps.errors import DeviceError

__all__ = ["PeerBuffers", "agreed", "give_back", "peer_buffers", "taken_buffers"]

T = TypeVar("T")


@dataclass(eq=False)
class PeerBuffers:
    """The buffers of all ranks, this one's among them.

    Attributes:
        own: This rank's, [bytes]; None before there is any.
        addresses: Where each rank's begins in this process.
        number: The same on all ranks, for those that are taken one after another.
    """

    own: Any = None
    addresses: list[int] = field(default_factory=list)
    number: int = 0
    idle: list[PeerBuffers] = field(default_factory=list, repr=False)
    _opened: list[peer_memory.Opened] = field(default_factory=list)

    def make(self, num_bytes: int, exchange: Exchange, beside: Callable[[], T]) -> T:
        """Give every rank at least so many bytes of its own, and return what it takes beside them. Collective.

        Args:
            num_bytes: The bytes.
            exchange: The way to the other ranks.
            beside: Takes what this rank has for itself, when it has those bytes; not collective.

        Raises:
            DeviceError: On all ranks, if the GPU of one has no memory for all of this.
        """
        has_enough = self.own is not None and self.own.nbytes >= num_bytes
        if not exchange.gather(np.array([not has_enough], dtype=np.int64)).any():
            return agreed(beside, exchange)
        for buffer in self._opened:
            buffer.close()
        self._opened, self.addresses = [], []
        exchange.gather(np.zeros(1, dtype=np.int64))  # all have closed what is to be freed
        self.own = None
        gc.collect()  # a run that failed may still hold it

        def take() -> tuple[Any, T]:
            check_fits({"messages and work": num_bytes})
            return peer_memory.allocate(num_bytes), beside()

        own, taken = agreed(take, exchange)
        handles = exchange.gather(peer_memory.handle_of(own))
        self.own = own
        for rank in range(exchange.size):
            if rank == exchange.rank:
                self.addresses.append(int(self.own.data.ptr))
                continue
            self._opened.append(peer_memory.Opened(handles[rank]))
            self.addresses.append(self._opened[-1].address)
        return taken


def agreed(take: Callable[[], T], exchange: Exchange) -> T:
    """Return what this rank takes. Collective: where one has no memory for it, no other has it.

    Args:
        take: Takes it, or raises; not collective.
        exchange: The way to the other ranks.
    """
    taken = error = None
    try:
        taken = take()
    except Exception as found:
        error = found
    failed = np.flatnonzero(exchange.gather(np.array([error is not None], dtype=np.int64)))
    if failed.size:
        taken = None  # which the traceback would keep
        raise error or DeviceError(
            "its GPU has no memory for its part of this run: use more ranks",
            rank=int(failed[0]),
        )
    return cast(T, taken)


_known: dict[Any, PeerBuffers] = {}


def peer_buffers(exchange: Exchange, purpose: Literal["run", "direct messages"] = "run") -> PeerBuffers:
    """Return the buffers of these processes: for what a run takes, or direct messages that outgrew it. Collective."""
    processes = exchange.gather(np.array([os.getpid()], dtype=np.int64))[:, 0]
    return _known.setdefault((purpose, *processes.tolist()), PeerBuffers())


_idle: dict[Any, list[PeerBuffers]] = {}
_numbers = itertools.count(1)


def taken_buffers(exchange: Exchange) -> PeerBuffers:
    """Return buffers that nothing else has until `give_back`: those that were given back last, or new ones. Collective.

    A rank may have given back others than the rest: then none of them are taken.
    """
    processes = exchange.gather(np.array([os.getpid()], dtype=np.int64))[:, 0]
    idle = _idle.setdefault((exchange.rank, *processes.tolist()), [])
    last, free = idle[-1].number if idle else 0, next(_numbers)
    facts = exchange.gather(np.array([last, free], dtype=np.int64))
    if last and (facts[:, 0] == last).all():
        return idle.pop()
    found = PeerBuffers(number=int(facts[:, 1].max()))
    found.idle = idle
    return found


def give_back(buffers: PeerBuffers) -> None:
    """Leave buffers for others of the same processes. Local."""
    buffers.idle.append(buffers)
