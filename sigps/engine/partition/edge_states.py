"""What vertices keep on their out-edges: written by their owners, read by neighbours one superstep later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.engine.partition.neighbor_rows import NeighborRows
from sigps.engine.partition.subgraph import Subgraph
from sigps.errors import GraphError
from sigps.model.vertex import Field

__all__ = ["EdgeStates", "check_names", "show"]

Arrays = tuple[NDArray[Any], ...]


def check_names(fields: Sequence[Field], columns: Iterable[str]) -> None:
    """Refuse a graph that has a column of the name of something that a program keeps on edges.

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
        fields: What is kept.
        dtypes: Their array types.
        num_edges: Out-edges of owned vertices.
        rows: The edges of neighbours, where the program looks through them; else None.
        exchange: The way to the other partitions.

    Attributes:
        own: [num_edges] each, in the order of `Subgraph.outgoing`: what owners read and write.
        seen: [entries] each, in the order of `NeighborRows`, or [num_edges]: as it was when the superstep began.
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
        self.own: Arrays = tuple(np.full(num_edges, f.default, dtype=d) for f, d in pairs)
        self.seen: Arrays = tuple(np.full(entries, f.default, dtype=d) for f, d in pairs)

    def save(self, subgraph: Subgraph) -> tuple[NDArray[np.int64], Arrays]:
        """Return copies for a snapshot: the gids of the vertices that keep them, and what is kept."""
        return subgraph.sources_of_edges(), tuple(own.copy() for own in self.own)

    def restore(self, subgraph: Subgraph, sources: NDArray[np.int64], values: Arrays) -> None:
        """Go on with what was saved, whatever the order of the vertices. Collective."""
        order = np.argsort(subgraph.local_ids(sources), kind="stable")
        for own, saved in zip(self.own, values, strict=True):
            own[:] = saved[order]
        self.turn()

    def undo(self, begin: int, end: int) -> None:
        """Forget what was written in this superstep on the edges begin..end: their owner computes once more."""
        for own, seen in zip(self.own, self.seen, strict=True):
            own[begin:end] = seen[begin:end]

    def turn(self) -> int:
        """Let neighbours see what was written; returns the bytes that left this rank. Collective."""
        rows = self._rows
        if rows is None:
            return show(np, self.own, self.seen, (), None, self._exchange.swap)
        return show(np, self.own, self.seen, rows.asked, rows.bounds, self._exchange.swap)


def show(
    xp: Any,
    own: Sequence[Any],
    seen: Sequence[Any],
    asked: Sequence[Any],
    bounds: NDArray[np.int64] | None,
    swap: Callable[[Sequence[Any]], list[Any]],
) -> int:
    """Let all see what was written, here and on the ranks that have copies; return the bytes that left. Collective.

    Only entries that changed cross, with their places among those that the other rank has copies of.

    Args:
        xp: NumPy or CuPy, whose arrays the others are.
        own: [num_edges] each: what owners read and write.
        seen: [num_edges, and copies of others' entries] each: as the superstep began.
        asked: For each rank, the entries of `own` that it has copies of, in its order.
        bounds: [size + 1]: in `seen`, the copies of rank r's entries are bounds[r] : bounds[r + 1]. None where there
            are no others, or nobody has copies.
        swap: Sends each rank its part, and returns what each rank sent here.
    """
    if not own:
        return 0
    num_edges = own[0].size
    changed = xp.zeros(num_edges if bounds is not None else 0, dtype=bool)
    for kept, shown in zip(own, seen, strict=True):
        if bounds is not None:
            bits = f"u{kept.itemsize}"  # not values: -0.0 is another than 0.0, and NaN is the same as itself
            changed |= kept.view(bits) != shown[:num_edges].view(bits)
        shown[:num_edges] = kept
    if bounds is None:
        return 0
    places = [xp.flatnonzero(changed[entries]) for entries in asked]
    arrived = swap(places)
    num_bytes: int = sum(part.nbytes for part in places)
    for kept, shown in zip(own, seen, strict=True):
        parts = [kept[entries[place]] for entries, place in zip(asked, places, strict=True)]
        num_bytes += sum(part.nbytes for part in parts)
        for first, at, values in zip(bounds[:-1].tolist(), arrived, swap(parts), strict=True):
            shown[first + at] = values
    return num_bytes
