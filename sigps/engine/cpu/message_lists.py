"""Messages sorted by their targets, which vertices then read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.device.cpu import Threads
from sigps.engine.cpu.work import even_ranges
from sigps.kernels.cpu.arguments import MessageLists
from sigps.kernels.cpu.layout import count_groups, order_by_row, order_group, place_in_groups

__all__ = ["joined", "list_by_target"]

_THREADS_FOR_GROUPS = 3
"""By groups a message takes 9 ns of all threads together, and at once 5: so fewer threads gain nothing."""
_WORTH_SHARING = 1 << 16
"""With fewer messages than this, one thread is done before the others have begun."""
_GROUPS_OF_THREAD = 8
"""Groups of targets a thread: some get more messages than others."""


def joined(parts: Sequence[NDArray[Any]], threads: Threads) -> NDArray[Any]:
    """Return arrays as one, of which a single one that is not empty is itself."""
    parts = [part for part in parts if part.size] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.shape[0] for part in parts])
    if ends[-1] < _WORTH_SHARING:
        return np.concatenate(parts)
    whole = np.empty((int(ends[-1]), *parts[0].shape[1:]), dtype=parts[0].dtype)

    def copy(i: int) -> None:
        whole[ends[i] - parts[i].shape[0] : ends[i]] = parts[i]

    threads.map(copy, range(len(parts)))
    return whole


def list_by_target(
    targets: NDArray[np.int64],
    messages: tuple[NDArray[Any], ...],
    num_owned: int,
    threads: Threads,
    *,
    twice: bool,
) -> MessageLists:
    """Return messages by target, those of one target in their order. O(messages + num_owned).

    Args:
        targets: The local id of each message's target, [messages].
        messages: [messages] each.
        num_owned: How many targets there are.
        threads: The crew.
        twice: Whether there are as many places again.
    """
    rows = targets.astype(np.uint32)
    is_shared = rows.size >= _WORTH_SHARING and threads.count > 1
    if is_shared and threads.count >= _THREADS_FOR_GROUPS:
        offsets, order = _by_groups(rows, num_owned, threads)
    else:
        offsets, order = order_by_row(rows, num_owned)
    places = np.concatenate([order, order]) if twice else order
    lists = tuple(np.empty((places.size, *m.shape[1:]), dtype=m.dtype) for m in messages)

    def take(span: tuple[np.uint64, np.uint64]) -> None:
        own = slice(*map(int, span))
        for message, moved in zip(messages, lists, strict=True):
            np.take(message, places[own], axis=0, out=moved[own], mode="clip")  # "raise" would copy twice

    threads.map(take, even_ranges(places.size, threads.count if is_shared else 1))
    return MessageLists(offsets.view(np.int64), lists)


def _by_groups(
    rows: NDArray[np.uint32], num_rows: int, threads: Threads
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Do what `order_by_row` does: threads write elements into groups of rows, each of which one thread orders."""
    shift = max(0, num_rows.bit_length() - (threads.count * _GROUPS_OF_THREAD).bit_length())
    num_groups = (num_rows - 1 >> shift) + 1
    parts = [rows[int(begin) : int(end)] for begin, end in even_ranges(rows.size, threads.count)]
    firsts = np.cumsum([0, *(part.size for part in parts)])
    counts = np.zeros((len(parts), num_groups), dtype=np.uint64)
    threads.map(lambda i: count_groups(parts[i], np.uint32(shift), counts[i]), range(len(parts)))

    upto = np.cumsum(counts.T.ravel(), dtype=np.uint64).reshape(num_groups, len(parts))
    at = np.ascontiguousarray((upto - counts.T).T)  # a group's elements by part: in their order
    begins = np.append(upto[:, -1] - counts.sum(axis=0, dtype=np.uint64), upto[-1, -1])
    grouped, numbers = np.empty_like(rows), np.empty(rows.size, dtype=np.int64)
    threads.map(
        lambda i: place_in_groups(parts[i], int(firsts[i]), np.uint32(shift), at[i], grouped, numbers),
        range(len(parts)),
    )

    offsets = np.empty(num_rows + 1, dtype=np.uint64)
    offsets[-1] = rows.size
    order = np.empty(rows.size, dtype=np.int64)

    def order_one(g: int) -> None:
        first, end = g << shift, min(num_rows, g + 1 << shift)
        own = slice(int(begins[g]), int(begins[g + 1]))
        places = np.zeros(end - first, dtype=np.uint64)
        order_group(
            grouped[own], numbers[own], np.uint32(first), begins[g], offsets[first:end], places, order[own]
        )

    threads.map(order_one, range(num_groups))
    return offsets, order
