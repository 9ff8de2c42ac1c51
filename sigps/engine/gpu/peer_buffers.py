"""The memory of GPUs that others' kernels use: of each rank's, where it begins as this rank sees it.

What was opened stays open for every later run of the same processes, and is given back only together, when one of
them needs more: memory must not be freed while another process has it open.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sigps.device import peer_memory
from sigps.engine.exchange import Exchange
from sigps.engine.gpu.run_memory import check_fits

__all__ = ["Windows", "windows_of"]


@dataclass(eq=False)
class Windows:
    """The memory of all ranks, this one's among it.

    Attributes:
        own: This rank's, [bytes]; None before there is any.
        addresses: Where each rank's begins here.
    """

    own: Any = None
    addresses: list[int] = field(default_factory=list)
    _opened: list[peer_memory.Opened] = field(default_factory=list)

    def make(self, num_bytes: int, exchange: Exchange) -> None:
        """Let every rank have at least so many bytes of its own. Collective; does nothing where all have them.

        Raises:
            DeviceError: If the GPU has no memory for them.
        """
        has_enough = self.own is not None and self.own.nbytes >= num_bytes
        if not exchange.gather(np.array([not has_enough], dtype=np.int64)).any():
            return
        for window in self._opened:
            window.close()
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


_known: dict[Any, Windows] = {}


def windows_of(exchange: Exchange, purpose: Literal["run", "mail"] = "run") -> Windows:
    """Return the memory of these processes: what a run takes, or mail that outgrew its room there. Collective."""
    processes = exchange.gather(np.array([os.getpid()], dtype=np.int64))[:, 0]
    return _known.setdefault((purpose, *processes.tolist()), Windows())
