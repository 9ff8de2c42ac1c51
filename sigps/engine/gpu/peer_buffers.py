"""Peer-mapped buffers: one of each rank's GPU, which the kernels of all ranks read and write.

What was opened stays open for every later run of the same processes, and all are freed together, when one rank needs
more: memory must not be freed while another process has it open.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sigps.device import peer_memory
from sigps.device.cuda import check_fits
from sigps.engine.exchange import Exchange

__all__ = ["PeerBuffers", "peer_buffers"]


@dataclass(eq=False)
class PeerBuffers:
    """The buffers of all ranks, this one's among them.

    Attributes:
        own: This rank's, [bytes]; None before there is any.
        addresses: Where each rank's begins in this process.
    """

    own: Any = None
    addresses: list[int] = field(default_factory=list)
    _opened: list[peer_memory.Opened] = field(default_factory=list)

    def make(self, num_bytes: int, exchange: Exchange) -> None:
        """Give every rank at least so many bytes of its own. Collective; does nothing where all have them.

        Raises:
            DeviceError: If the GPU has no memory for them.
        """
        has_enough = self.own is not None and self.own.nbytes >= num_bytes
        if not exchange.gather(np.array([not has_enough], dtype=np.int64)).any():
            return
        for buffer in self._opened:
            buffer.close()
        self._opened, self.addresses = [], []
        exchange.gather(np.zeros(1, dtype=np.int64))  # all have closed what is to be freed
        self.own = None
        gc.collect()  # a run that failed may still hold it
        check_fits({"messages and work": num_bytes})
        self.own = peer_memory.allocate(num_bytes)
        handles = exchange.gather(peer_memory.handle_of(self.own))
        for rank in range(exchange.size):
            if rank == exchange.rank:
                self.addresses.append(int(self.own.data.ptr))
                continue
            self._opened.append(peer_memory.Opened(handles[rank]))
            self.addresses.append(self._opened[-1].address)


_known: dict[Any, PeerBuffers] = {}


def peer_buffers(exchange: Exchange, purpose: Literal["run", "direct messages"] = "run") -> PeerBuffers:
    """Return the buffers of these processes: for what a run takes, or direct messages that outgrew it. Collective."""
    processes = exchange.gather(np.array([os.getpid()], dtype=np.int64))[:, 0]
    return _known.setdefault((purpose, *processes.tolist()), PeerBuffers())
