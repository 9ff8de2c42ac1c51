"""The search for the best waiting value of a run in priority order, on CPU cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.kernels.cpu.arguments import RETIRED
from sigps.native.kernel import compiled

__all__ = ["best_waiting"]


@compiled
def best_waiting(
    begin: int,
    end: int,
    waiting: NDArray[np.uint8],
    status: NDArray[np.uint8],
    values: NDArray[Any],
    out_degrees: NDArray[Any],
    takes_min: bool,
) -> tuple[int, np.int64, Any]:
    """Find the best value that waits among vertices begin..end; vertices that retired stop waiting.

    Returns how many vertices wait, how many out-edges these have, and the best value.
    """
    count, num_edges = 0, np.int64(0)
    best = values[0]
    for v in range(begin, end):
        if status[v] == RETIRED:
            waiting[v] = 0
        if waiting[v] != 0:
            value = values[v]
            if count == 0 or (value < best if takes_min else value > best):
                best = value
            count += 1
            num_edges += np.int64(out_degrees[v])
    return count, num_edges, best
