"""Edges on several ranks: the rows of each rank, and sending every edge to the rank of its row."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.graph.building.edges import EdgeBuffer, EdgeChunk, KeyForm, mirror
from sigps.graph.building.numbering import Numbering, Share, translated
from sigps.group import Group, split_by_rank

__all__ = ["balance_rows", "balanced_bounds", "bins_of", "send_to_rows"]


def balance_rows(
    share: Share, numbering: Numbering, directed: bool, group: Group
) -> tuple[int, NDArray[np.int64]]:
    """Return this rank's number of self-loops, and row bounds that give all ranks about the same bytes.

    A row takes 8 bytes, an edge 4. They are counted in at most 2**17 bins of rows. Collective.
    """
    num_vertices = numbering.num_vertices
    shift, num_bins = bins_of(num_vertices)
    ends = np.zeros(num_bins, dtype=np.int64)
    num_loops = 0
    for _, sources, targets in translated(share, numbering):
        num_loops += int(np.count_nonzero(sources == targets))
        for those in (sources,) if directed else (sources, targets):
            ends += np.bincount((those >> those.dtype.type(shift)).astype(np.int64), minlength=num_bins)
    return num_loops, balanced_bounds(group.all_reduce(ends, "sum"), num_vertices, group.size)


def bins_of(num_vertices: int) -> tuple[int, int]:
    """Return the bits by which a row is shifted to its bin, and the number of bins.

    >>> bins_of(1 << 20)
    (4, 65536)
    """
    shift = max(0, max(num_vertices - 1, 0).bit_length() - _MAX_BINS.bit_length() + 1)
    return shift, -(-num_vertices // (1 << shift))


def balanced_bounds(ends: NDArray[np.int64], num_vertices: int, size: int) -> NDArray[np.int64]:
    """Return row bounds that give all ranks about the same bytes; but for the last one, they are bounds of bins.

    Args:
        ends: [bins], edges with a row there, self-loops in both directions where edges are.
        num_vertices: Of the graph.
        size: How many ranks there are.
    """
    shift, num_bins = bins_of(num_vertices)
    until = np.cumsum(ends + 2 * (1 << shift))
    goals = np.arange(1, size) * (int(until[-1]) if num_bins else 0) / size
    inner = np.minimum((np.searchsorted(until, goals) + 1) << shift, num_vertices)
    return np.array([0, *inner.tolist(), num_vertices])


def send_to_rows(
    share: Share,
    numbering: Numbering,
    row_bounds: NDArray[np.int64],
    directed: bool,
    drop_loops: bool,
    group: Group,
) -> list[EdgeBuffer]:
    """Send each edge to the rank of its row, with its reverse if undirected, one block a round. Collective.

    With columns there is one buffer for each sender, so that the buffers, one after the other, keep the given
    order. Without columns the order does not matter, since equal edges are indistinguishable: there is one buffer,
    and the share is sent from its end and shrinks by each block.

    Returns:
        The edges of this rank's rows; keys are relative to its first row.
    """
    ranges = itertools.pairwise(row_bounds.tolist())
    forms = [KeyForm.of(numbering.num_vertices, row_range) for row_range in ranges]
    names = list(share.edges.columns)
    arrived = [EdgeBuffer() for _ in range(group.size if names else 1)]
    blocks = _blocks(share, numbering, directed, drop_loops)
    nothing = np.empty(0, dtype=np.uint32)
    no_columns = {name: column[:0].copy() for name, column in share.edges.columns.items()}
    while True:
        block = next(blocks, None)
        if not group.all_reduce(np.array([int(block is not None)]), "max")[0]:
            break
        block = block or EdgeChunk(nothing, nothing, no_columns)
        owners = np.searchsorted(row_bounds, block.sources.astype(np.int64), side="right") - 1
        order, parts = split_by_rank(owners.astype(np.uint16), group.size)
        keys = [
            form.pack(block.sources[order[part]], block.targets[order[part]])
            for form, part in zip(forms, parts, strict=True)
        ]
        moved = [group.all_to_all(keys)]
        moved += [group.all_to_all([block.columns[name][order[part]] for part in parts]) for name in names]
        for peer, pieces in enumerate(zip(*moved, strict=True)):
            arrived[peer if names else 0].append(pieces[0], dict(zip(names, pieces[1:], strict=True)))
    for buffer in arrived:
        buffer.columns = buffer.columns or {name: column.copy() for name, column in no_columns.items()}
    return arrived


_MAX_BINS = 1 << 16


def _blocks(share: Share, numbering: Numbering, directed: bool, drop_loops: bool) -> Iterator[EdgeChunk]:
    """Yield the share's edges in gids, as they are to be stored."""
    backwards = not share.edges.columns
    for block, sources, targets in translated(share, numbering, backwards=backwards):
        columns: dict[str, NDArray[Any]] = {
            name: column[block] for name, column in share.edges.columns.items()
        }
        if backwards:
            share.edges.shrink(block.start)
        if drop_loops:
            is_kept = sources != targets
            sources, targets = sources[is_kept], targets[is_kept]
            columns = {name: column[is_kept] for name, column in columns.items()}
        chunk = EdgeChunk(sources, targets, columns)
        yield chunk if directed else mirror(chunk)
