"""The slots in which a partition's vertices are passed to others, in the order of the receivers' ghosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.partition.subgraph import Subgraph
from sigps.kernels.cuda.lease import NO_VERTEX

__all__ = ["HaloLayout", "lay_out_halo", "num_slots_of", "slot_bounds"]


@dataclass(frozen=True, eq=False)
class HaloLayout:
    """The slots of a partition's vertices; all arrays are uint32.

    Attributes:
        bounds: [ranks + 1]: the slots of each receiver, from a multiple of 32 on.
        lids: [slots]: the vertex that is passed there, or NO_VERTEX.
        copy_offsets: [num_owned + 1]: where a vertex's slots begin in `copies`.
        copies: The slots of each vertex; or a place for each other rank, NO_VERTEX where that does not have it.
    """

    bounds: Any
    lids: Any
    copy_offsets: Any
    copies: Any

    def on_device(self, asarray: Callable[[Any], Any]) -> HaloLayout:
        """Return the same with arrays as this makes them."""
        return HaloLayout(*(asarray(a) for a in (self.bounds, self.lids, self.copy_offsets, self.copies)))


def slot_bounds(halo: tuple[NDArray[np.int64], ...]) -> NDArray[np.uint32]:
    """Return where the slots of each receiver begin, [ranks + 1].

    Args:
        halo: For each rank, the local ids that it has as ghosts.
    """
    widths = [-(-lids.size // 32) * 32 for lids in halo]
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.uint32)


def num_slots_of(subgraph: Subgraph) -> int:
    """Return how many slots a partition's vertices have."""
    return int(slot_bounds(subgraph.halo)[-1])


def lay_out_halo(
    halo: tuple[NDArray[np.int64], ...], num_owned: int, places_beside: int | None = None
) -> HaloLayout:
    """Lay slots out, on the host: CuPy would compile a kernel for each step, and a first answer would wait for that.

    Args:
        halo: For each rank, the local ids that it has as ghosts, in their order there; NO_VERTEX for spare ones.
        num_owned: Vertices of the partition.
        places_beside: This rank, where each vertex gets a place for each other one.

    >>> found = lay_out_halo((np.array([1, 2]), np.array([], int), np.array([1])), 3)
    >>> found.bounds.tolist(), found.lids[[0, 1, 32]].tolist(), found.copies.tolist()
    ([0, 32, 32, 64], [1, 2, 1], [0, 32, 1])
    """
    from sigps.kernels.cpu.layout import order_by_row

    bounds = slot_bounds(halo)
    passed = np.full(int(bounds[-1]), NO_VERTEX, dtype=np.uint32)
    for first, sent in zip(bounds.tolist(), halo, strict=False):
        passed[first : first + sent.size] = sent
    if places_beside is not None:
        others = len(halo) - 1
        copies = np.full((num_owned, others), NO_VERTEX, dtype=np.uint32)
        for rank, (first, sent) in enumerate(zip(bounds.tolist(), halo, strict=False)):
            if rank != places_beside:
                at = np.flatnonzero(sent != NO_VERTEX)
                copies[sent[at], rank - (rank > places_beside)] = first + at
        return HaloLayout(bounds, passed, others * np.arange(num_owned + 1, dtype=np.uint32), copies.ravel())
    slots = np.flatnonzero(passed != NO_VERTEX)
    offsets, order = order_by_row(passed[slots], num_owned)
    return HaloLayout(bounds, passed, offsets.astype(np.uint32), slots[order].astype(np.uint32))
