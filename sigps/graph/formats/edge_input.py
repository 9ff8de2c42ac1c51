"""The contract of every file format: the options that a reader takes and the edges that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import EdgeChunk, TextChunk
from sigps.graph.memory import require_memory
from sigps.group import Group, own_range

__all__ = [
    "ColumnRef",
    "EdgeInput",
    "LoadOptions",
    "RoundedWeightError",
    "own_ids",
    "promise_edges",
    "wants_weights",
]

ColumnRef = int | str | tuple[int | str, str]
"""A column by position from 0 or by name; with a type, as in `(2, "int64")`."""


@dataclass(frozen=True)
class LoadOptions:
    """The options of `load`, which explains them; None leaves the choice to the format.

    `whole_weights` is none of them: it says why weights whose type nobody has named are int64, not float64.
    """

    directed: bool | None = None
    weights: bool | ColumnRef | None = None
    columns: Mapping[str, ColumnRef] | None = None
    source: int | str | None = None
    target: int | str | None = None
    delimiter: str | None = None
    comment: str | None = None
    header: bool | None = None
    ids: Literal["int", "string"] | None = None
    whole_weights: str | None = None


class RoundedWeightError(GraphError):
    """A weight of a text file is a whole number that float64 rounds; the file may be read with int64 instead."""


@dataclass
class EdgeInput:
    """One rank's share of the edges of a file, or of a structure in memory.

    Attributes:
        format: The name of the format in the report.
        directed: Whether edges have a direction, as the file or the caller says.
        chunks: The edges in the file's order, which iterating reads; rank r's share precedes rank r + 1's.
        vertices: Ids of vertices, with or without an edge; this rank's share of them.
        takes_more: Whether a file of vertices may name others beside `vertices`.
        vertex_columns: Values of these vertices by name, [vertices] or [vertices, k] each.
        num_vertices: The vertices are 0..num_vertices - 1; None if they are the ids that occur.
        listed_in: The file whose lines `vertices` are, if it lists each vertex once; else None.
        num_read: Edges that this rank has read.
        rows_skipped: Comments, blank lines and headers that this rank has read.
        notes: Remarks for the report.
        check: Compares what all ranks read with the counts in the file; raises GraphError. Collective, called
            after the last chunk.
    """

    format: str
    directed: bool
    chunks: Iterator[EdgeChunk | TextChunk] = field(default_factory=lambda: iter(()))
    vertices: ArrayLike | None = None
    takes_more: bool = False
    vertex_columns: dict[str, NDArray[Any]] = field(default_factory=dict)
    num_vertices: int | None = None
    listed_in: str | None = None
    num_read: int = 0
    rows_skipped: int = 0
    notes: list[str] = field(default_factory=list)
    check: Callable[[Group], None] = lambda _: None


_VERTEX_BYTES = 32  # measured: the peak of loading vertices that a header promises, with next to no edges


def own_ids(num_vertices: int, group: Group, where: str, base: int = 1) -> NDArray[Any]:
    """Return this rank's share of the consecutive ids base..base+n-1, which `where`, in errors, promises.

    Raises:
        GraphError: If the machine has no memory for them.
    """
    require_memory(_VERTEX_BYTES * num_vertices, f"{where}: {num_vertices:,} vertices", group)
    own = own_range(num_vertices, group)
    dtype = np.uint32 if base + own.stop < 2**32 else np.int64
    return np.arange(base + own.start, base + own.stop, dtype=dtype)


def wants_weights(options: LoadOptions, has_weights: bool, what: str) -> bool:
    """Return whether to read the weights of a format whose files declare whether they have weights.

    Raises:
        GraphError: If weights are requested and there are none, or are requested by column.
    """
    if options.weights is None or options.weights is False:
        return has_weights and options.weights is None
    if options.weights is not True:
        raise GraphError(
            f"{what} has one place for weights: weights={options.weights!r} must be True, False or None"
        )
    if not has_weights:
        raise GraphError(f"{what} has no weights; leave weights=True away")
    return True


def promise_edges(result: EdgeInput, path: Path, promised: int, what: str) -> None:
    """Set the `check` of `result`: `num_read` of all ranks together must be what the header promises.

    `what` is the name of edges in the header, such as `"arcs"`.
    """

    def check(group: Group) -> None:
        found = int(group.all_reduce(np.array([result.num_read]), "sum")[0])
        if found != promised:
            raise GraphError(
                f"{path}: the header promises {promised} {what}, but the file has {found}; "
                f"{'it is cut off: fetch it again' if found < promised else 'correct the header'}"
            )

    result.check = check
