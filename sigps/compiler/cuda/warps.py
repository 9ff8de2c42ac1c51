"""What the lanes of a warp do together where all of them run compute() of one vertex. Imports numba-cuda.

They run the same instructions on the same values, so each stores what all others store. What one lane reads must not be
stored by a lane ahead of it: the warp synchronises before every store to what compute() also reads.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import cuda

from sigps.compiler.cuda.memory import accessors
from sigps.kernels.cuda.warp_neighbors import WarpFunctions, find_by_warp, forget_found

__all__ = ["jit_device", "warp_names"]

_ALL = 0xFFFFFFFF


def jit_device(function: Any) -> Any:
    """Return a dispatcher of a function for a GPU, inlined wherever it is called."""
    return cuda.jit(device=True, forceinline=True)(function)


@functools.cache
def warp_names() -> dict[str, Any]:
    """Return the functions that stand in the place of those of one thread, by the names in generated code."""
    access = accessors()
    of_lane = WarpFunctions(
        lane=jit_device(lambda: np.uint64(cuda.laneid)),
        ballot=jit_device(lambda holds: np.uint32(cuda.ballot_sync(_ALL, holds))),
        first_of=jit_device(lambda lanes: cuda.ffs(lanes) - 1),
        broadcast=jit_device(lambda value, lane: np.uint64(cuda.shfl_sync(_ALL, np.int64(value), lane))),
        load_position=access["load_u8"],
        load_lanes=access["load_u4"],
        store_position=access["store_u8"],
        store_lanes=access["store_u4"],
    )
    next_of = access["next_of"]

    def next_for_all(pointer):  # type: ignore[no-untyped-def]
        position = np.int64(0)
        if cuda.laneid == 0:
            position = next_of(pointer)
        return cuda.shfl_sync(_ALL, position, 0)

    return {
        "__mark_row": jit_device(forget_found(of_lane)),
        "__next_common": jit_device(find_by_warp(of_lane, jit_device)),
        "next_of": jit_device(next_for_all),
        "sync_warp": jit_device(lambda: cuda.syncwarp()),
    }
