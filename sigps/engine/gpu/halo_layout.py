"""The slots in which a partition's vertices are passed to others, in the order of the receivers' ghosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cuda.lease import NO_VERTEX

__all__ = ["HaloLayout", "lay_out_halo"]


@dataclass(frozen=True, eq=False)
class HaloLayout:
    """The slots of a partition's vertices; all arrays are uint32.

    Attributes:
        bounds: [ranks + 1]: the slots of each receiver, from a multiple of 32 on.
        lids: [slots]: the vertex that is passed there, or NO_VERTEX.
        copy_offsets: [num_owned + 1]: where a vertex's slots begin in `copies`.
        copies: The slots of each vertex.
    """

    bounds: Any
    lids: Any
    copy_offsets: Any
    copies: Any


def lay_out_halo(xp: Any, halo: tuple[NDArray[np.int64], ...], num_owned: int) -> HaloLayout:
    """Lay slots out.

    Args:
        xp: NumPy or CuPy.
        halo: For each rank, the local ids that it has as ghosts, in their order there.
        num_owned: Vertices of the partition.

    >>> found = lay_out_halo(np, (np.array([1, 2]), np.array([], int), np.array([1])), 3)
    >>> found.bounds.tolist(), found.lids[[0, 1, 32]].tolist(), found.copies.tolist()
    ([0, 32, 32, 64], [1, 2, 1], [0, 32, 1])
    """
    widths = [-(-lids.size // 32) * 32 for lids in halo]
    bounds = np.concatenate([[0], np.cumsum(widths)]).astype(np.uint32)
    passed = xp.full(int(bounds[-1]), NO_VERTEX, dtype=xp.uint32)
    for first, sent in zip(bounds.tolist(), halo, strict=False):
        if sent.size:
            passed[first : first + sent.size] = xp.asarray(sent)
    slots = xp.flatnonzero(passed != NO_VERTEX)
    of_vertex = passed[slots].astype(xp.int64)
    offsets = xp.zeros(num_owned + 1, dtype=xp.uint32)
    if slots.size:
        offsets[1:] = xp.cumsum(xp.bincount(of_vertex, minlength=num_owned))
    copies = slots[xp.argsort(of_vertex, kind="stable")].astype(xp.uint32)
    return HaloLayout(xp.asarray(bounds), passed, offsets, copies)
