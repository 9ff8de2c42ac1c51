"""What vertices keep on their out-edges: written by their owners, read by neighbours one superstep later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Exchange
from sigps.engine.neighbor_rows import NeighborRows
from sigps.engine.subgraph import Subgraph
from sigps.errors import GraphError
from sigps.vertex import Field

__all__ = ["EdgeStates", "check_names"]

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
        """Let neighbours see what was written; returns the bytes that left this rank. Collective.

        Only entries that changed cross, with their places among those that the other rank has copies of.
        """
        if not self.own:
            return 0
        rows, num_edges = self._rows, self.own[0].size
        changed = np.zeros(num_edges, dtype=bool)
        for own, seen in zip(self.own, self.seen, strict=True):
            bits = f"u{own.itemsize}"  # not values: -0.0 is another than 0.0, and NaN is the same as itself
            changed |= own.view(bits) != seen[:num_edges].view(bits)
            seen[:num_edges] = own
        if rows is None or rows.bounds is None:
            return 0
        places = [np.flatnonzero(changed[entries]) for entries in rows.asked]
        arrived = self._exchange.swap(places)
        at = np.concatenate([first + part for first, part in zip(rows.bounds, arrived, strict=False)])
        num_bytes = sum(part.nbytes for rank, part in enumerate(places) if rank != self._exchange.rank)
        for own, seen in zip(self.own, self.seen, strict=True):
            parts = [own[entries[place]] for entries, place in zip(rows.asked, places, strict=True)]
            num_bytes += sum(part.nbytes for rank, part in enumerate(parts) if rank != self._exchange.rank)
            seen[at] = np.concatenate(self._exchange.swap(parts))
        return num_bytes
