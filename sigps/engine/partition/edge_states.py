"""Values that vertices keep on their out-edges: written by their owners, read by neighbours one superstep later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.engine.partition.subgraph import NeighborRows, Subgraph
from sigps.errors import GraphError
from sigps.model.vertex import Field

__all__ = ["EdgeStates", "check_names", "commit"]

Arrays = tuple[NDArray[Any], ...]


def check_names(fields: Sequence[Field], columns: Iterable[str]) -> None:
    """Refuse a graph with an edge column that has the name of an edge state of the program.

    Raises:
        GraphError: If it has one.
    """
    taken = sorted({field.name for field in fields} & set(columns))
    if taken:
        raise GraphError(
            f"the edges have a column {taken[0]!r}, and the program keeps a value of that name on edges: rename one"
        )


class EdgeStates:
    """The edge states of one partition.

    Args:
        fields: The edge states.
        dtypes: Their array types.
        num_edges: Out-edges of owned vertices.
        rows: The out-edges of neighbours, where the program walks them; else None.
        exchange: The way to the other partitions.

    Attributes:
        pending: [num_edges] each, in the order of `Subgraph.outgoing`: what owners read and write.
        committed: [entries] each, in the order of `NeighborRows`, or [num_edges]: as of the superstep's begin.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        dtypes: Sequence[np.dtype[Any]],
        num_edges: int,
        rows: NeighborRows | None,
        exchange: Exchange,
    ) -> None:
        self._rows, self._exchange = rows, exchange
        pairs = list(zip(fields, dtypes, strict=True))
        entries = rows.targets.size if rows is not None else num_edges
        self.pending: Arrays = tuple(np.full(num_edges, f.default, dtype=d) for f, d in pairs)
        self.committed: Arrays = tuple(np.full(entries, f.default, dtype=d) for f, d in pairs)

    def kept(self, index: int) -> NDArray[Any]:
        """Return the pending values of one of them, [num_edges]: the array itself."""
        found: NDArray[Any] = self.pending[index]
        return found

    def save(self, subgraph: Subgraph) -> tuple[NDArray[np.int64], Arrays]:
        """Return copies for a snapshot: the gid of each edge's owner, and the pending values."""
        return subgraph.sources_of_edges(), tuple(values.copy() for values in self.pending)

    def restore(self, subgraph: Subgraph, sources: NDArray[np.int64], values: Arrays) -> None:
        """Take saved values, whatever the order of the vertices, and commit them. Collective.

        Raises:
            ValueError: If there is not one of each for each edge.
        """
        order = np.argsort(subgraph.local_ids(sources), kind="stable")
        if not np.array_equal(sources[order], subgraph.sources_of_edges()):
            raise ValueError("it does not hold a value for each edge")
        for pending, saved in zip(self.pending, values, strict=True):
            pending[:] = saved[order]
        self.commit()

    def undo(self, begin: int, end: int) -> None:
        """Drop what was written in this superstep on the edges begin..end: their owner computes once more."""
        for pending, committed in zip(self.pending, self.committed, strict=True):
            pending[begin:end] = committed[begin:end]

    @property
    def is_mirrored(self) -> bool:
        """Whether other ranks may have mirrors."""
        return self._rows is not None and self._rows.mirror_bounds is not None

    def commit(self) -> int:
        """Commit what was written, here and in mirrors; return the bytes that left this rank. Collective."""
        rows = self._rows
        if rows is None:
            return commit(np, self.pending, self.committed, (), None, self._exchange.swap)
        send_lists, bounds = rows.send_lists, rows.mirror_bounds
        return commit(np, self.pending, self.committed, send_lists, bounds, self._exchange.swap)


def commit(
    xp: Any,
    pending: Sequence[Any],
    committed: Sequence[Any],
    send_lists: Sequence[Any],
    mirror_bounds: NDArray[np.int64] | None,
    swap: Callable[[Sequence[Any]], list[Any]],
) -> int:
    """Copy pending values to the committed ones, here and on ranks that mirror them. Collective.

    Only entries that changed cross, with their positions in the send list.

    Args:
        xp: NumPy or CuPy, whose arrays the others are.
        pending: [num_edges] each, of vectors [num_edges, length]: what owners read and write.
        committed: [num_edges, then mirrors of other ranks' entries] each: as of the superstep's begin.
        send_lists: For each rank, the entries of `pending` that it mirrors, in its order.
        mirror_bounds: [size + 1]: in `committed`, the mirrors of rank r's entries are mirror_bounds[r] :
            mirror_bounds[r + 1]. None where there are no other ranks, or no mirrors.
        swap: Sends each rank its part, and returns what each rank sent here.

    Returns:
        The bytes that left this rank.
    """
    if not pending:
        return 0
    num_edges = len(pending[0])
    changed = xp.zeros(num_edges if mirror_bounds is not None else 0, dtype=bool)
    for new, old in zip(pending, committed, strict=True):
        if mirror_bounds is not None:
            bits = f"u{new.itemsize}"  # not values: -0.0 differs from 0.0, and NaN equals itself
            differs = new.view(bits) != old[:num_edges].view(bits)
            if num_edges:
                changed |= differs.reshape(num_edges, -1).any(axis=1)  # of a vector: in any place
        old[:num_edges] = new
    if mirror_bounds is None:
        return 0
    positions = [xp.flatnonzero(changed[entries]) for entries in send_lists]
    arrived = swap(positions)
    num_bytes: int = sum(part.nbytes for part in positions)
    for new, mirrors in zip(pending, committed, strict=True):
        parts = [new[entries[at]] for entries, at in zip(send_lists, positions, strict=True)]
        num_bytes += sum(part.nbytes for part in parts)
        for first, at, values in zip(mirror_bounds[:-1].tolist(), arrived, swap(parts), strict=True):
            mirrors[first + at] = values
    return num_bytes
