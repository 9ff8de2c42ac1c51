"""Messages that are there already: made what a vertex reads, combined or listed by target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu import NativeProgram, rows

__all__ = ["combine_into", "list_by_target"]

Arrays = tuple[NDArray[Any], ...]


def list_by_target(
    targets: NDArray[np.int64], messages: Arrays, num_owned: int
) -> tuple[NDArray[np.int64], Arrays]:
    """Return where each vertex's messages begin, [num_owned + 1], and the messages, those of one in their order."""
    order = np.argsort(targets, kind="stable")
    offsets = np.zeros(num_owned + 1, dtype=np.int64)
    np.cumsum(np.bincount(targets, minlength=num_owned), out=offsets[1:])
    return offsets, tuple(m[order] for m in messages)


def combine_into(
    inbox: tuple[NDArray[np.uint8], Arrays],
    native: NativeProgram,
    targets: NDArray[np.int64],
    messages: Arrays,
    job: tuple[Any, ...],
) -> NDArray[np.uint32]:
    """Combine messages in their order into an empty inbox; return the vertices that are listed."""
    order = np.argsort(targets, kind="stable")
    found = np.empty(order.size, dtype=np.int64)
    slots = rows(native.slots, order.size)
    combine = native.loop("combine_mail", True)
    count = combine(order, targets, messages, job, native.empty, found, slots)
    touched = np.empty(count + 1, dtype=np.uint32)
    apply = native.loop("apply_bins", True)
    listed = apply(np.uint64(0), np.uint64(count), found[:count].astype(np.uint32), slots, inbox, touched)
    return touched[:listed]
