"""Loops over edges that NumPy cannot do in one pass.

All are stable and take O(1) an edge. `slots` receives the new position of each edge, by which `scatter` moves
columns of any type. Indices are unsigned, because each access by a signed one tests for < 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.native.kernel import compiled

__all__ = ["count_ends", "place_by_source", "place_by_target", "scatter"]


@compiled
def count_ends(keys: NDArray[np.uint64], symmetric: bool, counts: NDArray[np.uint64]) -> None:
    """Add to counts[v + 1] the number of edges with target v; if symmetric, also of those with source v, a loop once.

    Args:
        keys: [edges], source << 32 | target.
        symmetric: Whether each edge is stored in both rows.
        counts: [num_vertices + 1].
    """
    one = np.uint64(1)
    for key in keys:
        source, target = key >> np.uint64(32), key & np.uint64(0xFFFFFFFF)
        counts[target + one] += one
        if symmetric and source != target:
            counts[source + one] += one


@compiled
def place_by_target(
    keys: NDArray[np.uint64],
    symmetric: bool,
    ends: NDArray[np.uint64],
    sources: NDArray[np.uint32],
    slots: NDArray[np.uint64],
    reverses: NDArray[np.uint64],
) -> None:
    """Write each key's source into the row of its target, from the last key and the rows' ends backwards.

    Args:
        keys: [edges], source << 32 | target.
        symmetric: Whether to write the target into the source's row too.
        ends: [num_vertices], the first written slot of each row; decremented.
        sources: [stored edges], written at the slots.
        slots: [edges], written: the edge's slot.
        reverses: [edges], written: its reverse's slot, or the edge's again if there is none.
    """
    one = np.uint64(1)
    for at in range(keys.size):
        i = np.uint64(keys.size - 1 - at)
        source, target = keys[i] >> np.uint64(32), keys[i] & np.uint64(0xFFFFFFFF)
        slot = ends[target] - one
        ends[target] = slot
        sources[slot] = np.uint32(source)
        slots[i] = slot
        reverses[i] = slot
        if symmetric and source != target:
            slot = ends[source] - one
            ends[source] = slot
            sources[slot] = np.uint32(target)
            reverses[i] = slot


@compiled
def place_by_source(
    offsets: NDArray[np.uint64],
    sources: NDArray[Any],
    start: int,
    stop: int,
    row: np.uint64,
    ends: NDArray[np.uint64],
    targets: NDArray[Any],
    slots: NDArray[np.uint64],
) -> None:
    """Write the row of each edge start..stop-1 of one CSR into the row of the edge's end in another.

    Args:
        offsets: [rows + 1] of the CSR that is read.
        sources: [edges], the ends in it.
        start: The first edge to move.
        stop: The edge after the last.
        row: The row of the first edge.
        ends: [rows of the other CSR], the first free slot of each; incremented.
        targets: [edges], written: the row that the edge had.
        slots: [stop - start], written.
    """
    one = np.uint64(1)
    for i in range(np.uint64(start), np.uint64(stop)):
        while offsets[row + one] <= i:
            row += one
        end = np.uint64(sources[i])
        slot = ends[end]
        ends[end] = slot + one
        targets[slot] = row
        slots[i - np.uint64(start)] = slot


@compiled
def scatter(values: NDArray[Any], slots: NDArray[np.uint64], moved: NDArray[Any]) -> None:
    """Write values[i] to moved[slots[i]]."""
    for i in range(np.uint64(values.size)):
        moved[slots[i]] = values[i]
