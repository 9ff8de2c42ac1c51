"""The arrays of a graph: what building and the native store return, and what writers take.

`sigps.graph.graph.Graph` adds the methods of users to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigps.graph.ids import Ids
from sigps.graph.report import LoadReport
from sigps.group import Group

__all__ = ["GraphArrays", "InEdges"]


@dataclass(frozen=True)
class InEdges:
    """The edges by target (CSC).

    Attributes:
        offsets: [num_vertices + 1], uint64.
        sources: [num_edges], gids, ascending inside a row.
        columns: [num_edges] each, in the order of `sources`.
    """

    offsets: NDArray[np.uint64]
    sources: NDArray[Any]
    columns: dict[str, NDArray[Any]]


@dataclass(kw_only=True, eq=False, repr=False)
class GraphArrays:
    """Rows of out-edges (CSR), edge columns and ids; on several ranks, of this rank's rows.

    Vertices are numbered 0..n-1 (gids) in the order of the user's ids (oids); `ids` maps both ways.
    Rank r holds the out-edges of gids `row_bounds[r] : row_bounds[r + 1]`. An undirected graph stores
    each edge in both its ends' rows, a self-loop once.

    Attributes:
        offsets: [num_rows + 1], uint64: where each row begins in `targets`.
        targets: [local edges], uint32 (uint64 above 2**32 - 1 vertices), ascending inside a row.
        columns: Edge columns in the order of `targets`; `"weight"` is the weight.
        vertex_columns: Values of this rank's rows, [num_rows] or [num_rows, k] each, by name.
        num_edges: Directed edges of the whole graph as stored.
        row_bounds: [group.size + 1], int64.
        group: The ranks that hold the graph together.
        is_packed: Whether they are a `PackedArrays`, of a packed store.
        by_target: The in-edges, in one process once they are made; None until then.
    """

    is_packed: ClassVar[bool] = False
    offsets: NDArray[np.uint64]
    targets: NDArray[Any]
    columns: dict[str, NDArray[Any]]
    num_edges: int
    directed: bool
    ids: Ids
    row_bounds: NDArray[np.int64]
    group: Group
    report: LoadReport
    by_target: InEdges | None = None
    vertex_columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def num_vertices(self) -> int:
        """Vertices of the whole graph."""
        return int(self.row_bounds[-1])

    @property
    def first_row(self) -> int:
        """The gid of this rank's first row."""
        return int(self.row_bounds[self.group.rank])

    @property
    def num_rows(self) -> int:
        return int(self.row_bounds[self.group.rank + 1]) - self.first_row

    @property
    def has_weights(self) -> bool:
        return "weight" in self.columns

    @property
    def nbytes(self) -> int:
        """Bytes that this rank's arrays take, in-edges included once they exist."""
        arrays = [self.offsets, self.targets, *self.columns.values(), *self.vertex_columns.values()]
        if self.by_target is not None and self.directed:
            arrays += [self.by_target.offsets, self.by_target.sources, *self.by_target.columns.values()]
        return sum(array.nbytes for array in arrays) + self.ids.nbytes
