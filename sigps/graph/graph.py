"""The graph that programs run on: rows of out-edges (CSR) and the user's ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.building.edges import edge_chunks, own_share
from sigps.graph.building.rows import Duplicates, Rows, transpose
from sigps.graph.ids import Ids, as_ids
from sigps.graph.report import LoadReport
from sigps.group import Group, world

if TYPE_CHECKING:
    import os

    import networkx
    import scipy.sparse

__all__ = ["Graph", "InEdges"]


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


class Graph:
    """A directed or undirected graph with edge columns; immutable. On several ranks, this rank's rows.

    Vertices are numbered 0..n-1 (gids) in the order of the user's ids (oids); `ids` maps both ways.
    Rank r holds the out-edges of gids `row_bounds[r] : row_bounds[r + 1]`. An undirected graph stores
    each edge in both its ends' rows, a self-loop once.

    Attributes:
        num_vertices: Vertices of the whole graph.
        num_edges: Directed edges of the whole graph as stored.
        directed: Whether edges have a direction.
        ids: The map between oids and gids.
        group: The ranks that hold the graph together.
        row_bounds: [group.size + 1], int64.
        offsets: [num_rows + 1], uint64: where each row begins in `targets`.
        targets: [local edges], uint32 (uint64 above 2**32 - 1 vertices), ascending inside a row.
        columns: Edge columns in the order of `targets`; `"weight"` is the weight.
        report: What loading found.
    """

    def __init__(
        self,
        *,
        offsets: NDArray[np.uint64],
        targets: NDArray[Any],
        columns: dict[str, NDArray[Any]],
        num_edges: int,
        directed: bool,
        ids: Ids,
        row_bounds: NDArray[np.int64],
        group: Group,
        report: LoadReport,
        in_edges: InEdges | None = None,
    ) -> None:
        """Hold finished arrays; `from_edges`, a loader or a generator makes them."""
        self.num_vertices = int(row_bounds[-1])
        self.num_edges = num_edges
        self.directed = directed
        self.ids = ids
        self.group = group
        self.row_bounds = row_bounds
        self.offsets = offsets
        self.targets = targets
        self.columns = columns
        self.report = report
        self._in_edges = in_edges
        self._undirected: Graph | None = None
        self._both_ways: Graph | None = None

    @staticmethod
    def from_edges(
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        directed: bool = True,
        vertices: ArrayLike | None = None,
        columns: dict[str, ArrayLike] | None = None,
        duplicates: Duplicates = "keep",
        self_loops: Literal["keep", "drop"] = "keep",
        local: bool = False,
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from arrays of edge ends. Collective; O(edges log degree).

        An array may live on a GPU (CuPy, Numba, PyTorch, whatever has `__cuda_array_interface__` or DLPack); it is
        copied to the host, where the graph is built, and that needs CuPy.

        Args:
            sources: [edges], whole numbers within int64 or strings.
            targets: [edges], of the same kind.
            weights: [edges], numbers without NaN; kept as int64, float32 or float64.
            directed: Whether edges have a direction.
            vertices: Ids that are vertices even without an edge.
            columns: Further named edge columns, [edges] each.
            duplicates: What becomes of parallel edges: `"keep"`, `"drop"` (the first stays), or one edge
                whose weight is the `"sum"`, `"min"` or `"max"`.
            self_loops: `"keep"` or `"drop"`.
            local: On several ranks, whether every rank brings a different share of the edges; otherwise all
                bring the same and each keeps its share.
            group: The ranks that build together; None for those that the launcher started.

        Raises:
            GraphError: If ids, weights, lengths or options are wrong, or CuPy is missing for an array on a GPU.

        >>> graph = Graph.from_edges([10, 10, 30], [20, 30, 10])
        >>> graph.num_vertices, graph.offsets.tolist(), graph.targets.tolist()
        (3, [0, 2, 2, 3], [1, 2, 0])
        """
        from sigps.graph.building.build import build_graph

        group = world() if group is None else group
        given: dict[str, Any] = dict(columns or {})
        if weights is not None:
            if "weight" in given:
                raise GraphError("the weight is given twice, as weights= and in columns=; give it once")
            given = {"weight": weights, **given}
        return build_graph(
            edge_chunks(sources, targets, given, group, local),
            directed=directed,
            group=group,
            vertices=vertices
            if vertices is None or local
            else own_share(as_ids(vertices, "vertices"), group),
            duplicates=duplicates,
            self_loops=self_loops,
        )

    @staticmethod
    def from_scipy(
        matrix: Any,
        *,
        directed: bool = True,
        weights: bool = True,
        duplicates: Duplicates = "keep",
        self_loops: Literal["keep", "drop"] = "keep",
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from a sparse adjacency matrix: entry (i, j) is an edge from i to j. Collective.

        Every row is a vertex. Stored zeros are edges.

        Args:
            matrix: Any SciPy sparse matrix or array, square; the same on all ranks.
            directed: Whether edges have a direction; if not, the matrix is symmetric or a triangle.
            weights: Whether values are weights; those of a boolean matrix never are.
            duplicates: As in `from_edges`, for entries that a COO matrix has twice.
            self_loops: `"keep"` or `"drop"` the diagonal.
            group: As in `from_edges`.

        Raises:
            GraphError: If the matrix is not square, not real, or not symmetric where it must be.
        """
        from sigps.graph.formats.structures import from_scipy

        return from_scipy(
            matrix,
            directed=directed,
            weights=weights,
            duplicates=duplicates,
            self_loops=self_loops,
            group=group,
        )

    @staticmethod
    def from_networkx(
        source: networkx.Graph[Any],
        *,
        weight: str | None = "weight",
        columns: Mapping[str, str] | None = None,
        duplicates: Duplicates = "keep",
        self_loops: Literal["keep", "drop"] = "keep",
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from a NetworkX graph, directed if that is; nodes are ints or strings. Collective.

        Args:
            source: The graph; the same on all ranks.
            weight: The attribute that is the weight; an edge without it weighs 1 if any has it. None: none.
            columns: Further edge columns: name to attribute. Every edge needs it.
            duplicates: As in `from_edges`, for multigraphs.
            self_loops: `"keep"` or `"drop"`.
            group: As in `from_edges`.

        Raises:
            GraphError: If nodes are no ids or an attribute is missing or no number.
        """
        from sigps.graph.formats.structures import from_networkx

        return from_networkx(
            source,
            weight=weight,
            columns=columns,
            duplicates=duplicates,
            self_loops=self_loops,
            group=group,
        )

    @staticmethod
    def from_arrow(
        data: Any,
        source: int | str = 0,
        target: int | str = 1,
        weight: int | str | None = None,
        *,
        directed: bool = True,
        vertices: ArrayLike | None = None,
        columns: Mapping[str, int | str] | None = None,
        duplicates: Duplicates = "keep",
        self_loops: Literal["keep", "drop"] = "keep",
        local: bool = False,
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from a table: of pyarrow, pandas, polars, or any Arrow stream. Collective.

        A stream is read batch by batch, except on several ranks without `local`.

        Args:
            data: The table, or an object with `__arrow_c_stream__`.
            source: The column of source ids, by position or name.
            target: The column of target ids.
            weight: The column of weights, None for none.
            columns: Further edge columns: name to column.
            directed: As in `from_edges`, like all below.
            vertices: Ids that are vertices even without an edge.
            duplicates: What becomes of parallel edges.
            self_loops: `"keep"` or `"drop"`.
            local: Whether every rank brings a different share.
            group: The ranks that build together.

        Raises:
            GraphError: If a column is missing, has missing values, or holds neither ids nor numbers.
        """
        from sigps.graph.formats.structures import from_arrow

        return from_arrow(
            data,
            source,
            target,
            weight,
            directed=directed,
            vertices=vertices,
            columns=columns,
            duplicates=duplicates,
            self_loops=self_loops,
            local=local,
            group=group,
        )

    def to_scipy(self) -> scipy.sparse.csr_array[Any]:
        """Return the adjacency matrix; on several ranks this rank's rows of it, [num_rows, num_vertices].

        Entries are weights, 1.0 without. Parallel edges are entries of their own, which SciPy adds up.
        """
        from sigps.graph.formats.structures import to_scipy

        return to_scipy(self)

    def save(self, path: str | os.PathLike[str], *, in_edges: bool = False) -> None:
        """Write the graph to a native store; see `sigps.graph.formats.store.save`. Collective."""
        from sigps.graph.formats.store import save

        save(self, path, in_edges=in_edges)

    @property
    def has_weights(self) -> bool:
        """Whether the edges have a weight."""
        return "weight" in self.columns

    @property
    def first_row(self) -> int:
        """The gid of this rank's first row."""
        return int(self.row_bounds[self.group.rank])

    @property
    def num_rows(self) -> int:
        """How many rows this rank holds."""
        return int(self.row_bounds[self.group.rank + 1]) - self.first_row

    @property
    def nbytes(self) -> int:
        """Bytes that this rank's arrays take, in-edges included once they exist."""
        arrays = [self.offsets, self.targets, *self.columns.values()]
        if self._in_edges is not None and self.directed:
            arrays += [self._in_edges.offsets, self._in_edges.sources, *self._in_edges.columns.values()]
        return sum(array.nbytes for array in arrays) + self.ids.nbytes

    def in_edges(self) -> InEdges:
        """Return the edges by target; made once. O(edges) the first time, one process only.

        For an undirected graph they are the very arrays of the rows.

        Raises:
            GraphError: On several ranks, where no rank has all edges.
        """
        if self.group.size > 1:
            raise GraphError(
                f"in_edges() needs all rows in one process, but {self.group.size} ranks share this graph; "
                "partition it instead"
            )
        if self._in_edges is None:
            if self.directed:
                rows = transpose(Rows(self.offsets, self.targets, dict(self.columns)))
                self._in_edges = InEdges(rows.offsets, rows.targets, rows.columns)
            else:
                self._in_edges = InEdges(self.offsets, self.targets, self.columns)
        return self._in_edges

    def undirected(self) -> Graph:
        """Return the graph with every edge in both directions; made once. Collective; O(edges log degree).

        An undirected graph is its own. An edge that has its reverse already becomes parallel to it.

        >>> Graph.from_edges([0, 1], [1, 2]).undirected().targets.tolist()
        [1, 0, 2, 1]
        """
        from sigps.graph.formats.structures import undirected

        if not self.directed:
            return self
        if self._undirected is None:
            self._undirected = undirected(self)
        return self._undirected

    def both_ways(self) -> Graph:
        """Return the graph with every edge in both its ends' rows; made once. Collective; O(edges log degree).

        Two columns tell an edge's direction: `leads_out` is true in the row of its source, `leads_in` in that of its
        target. A loop is there once and leads both ways, as do all edges of an undirected graph.

        Raises:
            GraphError: If there are columns of these names already.

        >>> both = Graph.from_edges([0, 1], [1, 2]).both_ways()
        >>> both.targets.tolist(), both.columns["leads_out"].tolist()
        ([1, 0, 2, 1], [True, False, True, False])
        """
        from sigps.graph.formats.structures import both_ways

        if self._both_ways is None:
            self._both_ways = both_ways(self)
        return self._both_ways

    def out_degrees(self) -> NDArray[np.int64]:
        """Return the out-degrees of this rank's rows, [num_rows]."""
        return _differences(self.offsets)

    def in_degrees(self) -> NDArray[np.int64]:
        """Return the in-degrees of this rank's rows, [num_rows]. Collective for directed graphs."""
        if not self.directed:
            return self.out_degrees()
        if self._in_edges is not None:
            return _differences(self._in_edges.offsets)
        degrees = np.zeros(self.num_vertices, dtype=np.int64)
        for start in range(0, self.targets.size, _CHUNK_EDGES * 8):
            block = self.targets[start : start + _CHUNK_EDGES * 8]
            degrees += np.bincount(block.astype(np.int64), minlength=self.num_vertices)
        if self.group.size == 1:
            return degrees
        slices = [degrees[self.row_bounds[r] : self.row_bounds[r + 1]] for r in range(self.group.size)]
        total: NDArray[np.int64] = np.sum(self.group.all_to_all(slices), axis=0, dtype=np.int64)
        return total

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"<Graph: {kind}, {self.num_vertices:,} vertices, {self.num_edges:,} stored edges{columns}>"


_CHUNK_EDGES = 1 << 20


_CHUNK_ROWS = 1 << 16


def _differences(offsets: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (offsets[1:] - offsets[:-1]).view(np.int64)
