"""The graph that programs run on: rows of out-edges (CSR) and the user's ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.errors import GraphError
from sigps.graph.edges import EdgeChunk
from sigps.graph.ids import Ids, as_ids
from sigps.graph.report import LoadReport
from sigps.graph.rows import Duplicates, Rows, transpose
from sigps.group import Group, world

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

    @classmethod
    def from_edges(
        cls,
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
            GraphError: If ids, weights, lengths or options are wrong.

        >>> graph = Graph.from_edges([10, 10, 30], [20, 30, 10])
        >>> graph.num_vertices, graph.offsets.tolist(), graph.targets.tolist()
        (3, [0, 2, 2, 3], [1, 2, 0])
        """
        from sigps.graph.build import build_graph

        group = world() if group is None else group
        given: dict[str, Any] = dict(columns or {})
        if weights is not None:
            if "weight" in given:
                raise GraphError("the weight is given twice, as weights= and in columns=; give it once")
            given = {"weight": weights, **given}
        return build_graph(
            _in_chunks(sources, targets, given, group, local),
            directed=directed,
            group=group,
            vertices=vertices if vertices is None or local else _share(as_ids(vertices, "vertices"), group),
            duplicates=duplicates,
            self_loops=self_loops,
        )

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
        from sigps.graph.build import build_graph

        if not self.directed:
            return self
        if self._undirected is None:
            built = build_graph(
                self._edge_chunks(),
                directed=False,
                group=self.group,
                ids="identity",
                num_vertices=self.num_vertices,
            )
            self._undirected = Graph(
                offsets=built.offsets,
                targets=built.targets,
                columns=built.columns,
                num_edges=built.num_edges,
                directed=False,
                ids=self.ids,
                row_bounds=built.row_bounds,
                group=self.group,
                report=self.report,
            )
        return self._undirected

    def _edge_chunks(self) -> Iterator[EdgeChunk]:
        """Yield this rank's edges in gids, a block of rows at a time."""
        degrees = self.out_degrees()
        for start in range(0, max(self.num_rows, 1), _CHUNK_EDGES):
            stop = min(start + _CHUNK_EDGES, self.num_rows)
            rows = np.arange(self.first_row + start, self.first_row + stop, dtype=np.int64)
            cut = slice(int(self.offsets[start]), int(self.offsets[stop]))
            columns = {name: np.asarray(column[cut]) for name, column in self.columns.items()}
            yield EdgeChunk(np.repeat(rows, degrees[start:stop]), self.targets[cut].astype(np.int64), columns)

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


def _differences(offsets: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (offsets[1:] - offsets[:-1]).view(np.int64)


def _share(values: NDArray[Any], group: Group) -> NDArray[Any]:
    """Return this rank's slice of what all ranks bring."""
    size = values.size
    return values[size * group.rank // group.size : size * (group.rank + 1) // group.size]


def _in_chunks(
    sources: ArrayLike, targets: ArrayLike, columns: dict[str, Any], group: Group, local: bool
) -> Iterator[EdgeChunk]:
    """Yield this rank's share of arrays in chunks, so that what is derived from them is small at any time."""
    names = ["sources", "targets", *columns]
    arrays = [as_ids(sources, "sources"), as_ids(targets, "targets"), *map(np.asarray, columns.values())]
    shape = arrays[0].shape
    for name, array in zip(names, arrays, strict=True):
        if array.shape != shape or array.ndim != 1:
            raise GraphError(f"{name} has shape {array.shape}, sources {shape}: every edge needs one value")
    shares = arrays if local else [_share(array, group) for array in arrays]
    for start in range(0, max(shares[0].size, 1), _CHUNK_EDGES):
        cut = [share[start : start + _CHUNK_EDGES] for share in shares]
        yield EdgeChunk(cut[0], cut[1], dict(zip(columns, cut[2:], strict=True)))
