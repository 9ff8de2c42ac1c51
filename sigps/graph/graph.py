"""The graph that programs run on: its arrays, and the methods of users.

`Graph` imports what makes graphs, because `from_edges` and the like are its methods; versions, stores and the graphs
of other packages where they are used, since they take as long to import as all else. Building, formats and the native
store therefore return and take `GraphArrays`, and do not import `Graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigps.account import spent_on
from sigps.errors import ConfigError, GraphError
from sigps.graph.arrays import GraphArrays, InEdges
from sigps.graph.building.build import both_ways, build, is_simple, undirected
from sigps.graph.building.edges import EdgeChunk, TextChunk, edge_chunks, own_share
from sigps.graph.building.place import BuildDevice, building_on, gpu_for
from sigps.graph.building.rows import Duplicates, Rows, SelfLoops, transpose
from sigps.graph.building.smaller_graphs import contract, edge_subgraph, subgraph
from sigps.graph.building.vertex_columns import columns_by_id, user_columns
from sigps.graph.building.whole_arrays import from_whole_arrays
from sigps.graph.card import card, degree_bars
from sigps.graph.degree_classes import degree_classes
from sigps.graph.formats import edge_table, pyg_data
from sigps.graph.formats.blocks import import_optional
from sigps.graph.formats.edge_input import EdgeInput
from sigps.graph.report import LoadReport, bytes_text
from sigps.graph.user_arrays import as_ids
from sigps.group import Group, together, world

if TYPE_CHECKING:
    import os

    import networkx
    import pandas
    import pyarrow
    import scipy.sparse
    from torch_geometric.data import Data

    from sigps.graph.formats.packed_store import PackedArrays
    from sigps.graph.formats.store_folders import StorePath
    from sigps.graph.packing.packer import Order
    from sigps.graph.versions.apply import Family, Update, Version

__all__ = ["Graph", "build_graph", "build_read"]

T = TypeVar("T")


@dataclass(kw_only=True, eq=False, repr=False)
class Graph(GraphArrays):
    """A directed or undirected graph with edge columns; immutable. On several ranks, this rank's rows.

    `from_edges`, a loader or a generator makes it. The attributes are those of `GraphArrays`: `num_vertices`,
    `num_edges`, `directed`, `ids`, `group`, `row_bounds`, `offsets`, `targets`, `columns`, `vertex_columns`, `report`.
    """

    _derived: dict[Hashable, Any] = field(default_factory=dict, init=False)
    _version: Version | None = field(default=None, init=False)
    _family: Family | None = field(default=None, init=False)
    _packed: PackedArrays | None = field(default=None, init=False)
    version: int = field(default=0, init=False)

    @classmethod
    def of(cls, arrays: GraphArrays) -> Graph:
        """Return the graph of finished arrays, which are not copied."""
        if arrays.is_packed:
            return cls._of_packed(cast("PackedArrays", arrays))
        return cls(**{array.name: getattr(arrays, array.name) for array in fields(GraphArrays)})

    def apply(
        self,
        inserts: Any = None,
        deletes: Any = None,
        *,
        vertices: ArrayLike | None = None,
        delete_vertices: ArrayLike | None = None,
        missing: Literal["count", "error"] = "count",
    ) -> Graph:
        """Return the graph after a batch of updates, a new version; this one stays as it is. Collective.

        First vertices are deleted with all their edges, then edges, then others inserted, behind those that are equal:
        results are those of a graph built anew from the edges left, in their order, and the inserted ones. Parallel
        edges and self-loops are treated as when the graph was built. Rows are changed in place, and older versions undo
        that when they are read (`graph/versions/rows.py`): O(batch log batch), and the edges of the touched rows;
        O(edges) where vertices are renumbered or deleted, for the first version of a graph, and after every so many
        updates. What is derived follows: in-edges, the undirected form, both ways, the fingerprint. Arrays of all rows
        (`offsets`, `targets`, `columns`), which engines read, are laid out when they are first read, in O(edges) time
        and memory.

        Args:
            inserts: Edges by ids: `(sources, targets)`, `(sources, targets, weights)`, `(sources, targets, {column:
                values})`, or a table (Arrow, any data frame) whose columns are `source`, `target` and edge columns.
                Ids that are no vertices become some; vertex columns are 0 there.
            deletes: Edges to delete: all parallel ones, or those in whose named columns the values are equal. In an
                undirected graph either order of the ends.
            vertices: Ids that become vertices with or without an edge.
            delete_vertices: Ids of vertices that go, with all edges from and to them: results have these ids no more.
                One that `inserts` or `vertices` name too is there afterwards as a new vertex.
            missing: What to do where a delete matches no edge, or no vertex: `"count"` it in `update.missing`, or raise
                an error.

        Raises:
            GraphError: If ids, columns or lengths are wrong, or a delete matches nothing.

        >>> graph = Graph.from_edges([0, 1], [1, 2], weights=[1.0, 2.0])
        >>> newer = graph.apply(inserts=([0], [5], [0.5]), deletes=([1, 2], [2, 0]))
        >>> newer.to_arrow().to_pydict(), newer.update.missing
        ({'source': [0, 0], 'target': [1, 5], 'weight': [1.0, 0.5]}, 1)
        >>> newer.apply(delete_vertices=[1]).to_arrow().to_pydict()
        {'source': [0], 'target': [5], 'weight': [0.5]}
        >>> graph.num_edges, newer.version, newer.versions, newer.at(0) is graph
        (2, 1, (0, 1), True)
        """
        newer = self._applied(inserts, deletes, vertices, delete_vertices, missing)
        newer._family = self._in_family()
        newer.version = newer._family.add(newer)
        return newer

    def _applied(
        self,
        inserts: Any,
        deletes: Any,
        vertices: ArrayLike | None = None,
        delete_vertices: ArrayLike | None = None,
        missing: Literal["count", "error"] = "count",
    ) -> Graph:
        """Return the graph after a batch, as `apply` does, without a number."""
        from sigps.graph.versions.apply import apply_batch

        hashed = self._derived.get("edge hash")
        given = inserts, deletes, vertices, delete_vertices, missing, self.column_types(), hashed
        changed, version = apply_batch(self, self._version, *given)
        newer = self._with_rows(version, **changed)
        if version.edge_hash is not None:
            newer._derived["edge hash"] = version.edge_hash
        if self.group.size == 1 and not newer.update.is_renumbered:
            self._carry_on(newer)
        return newer

    def _in_family(self) -> Family:
        """Return the versions of this graph that something holds."""
        if self._family is None:
            from sigps.graph.versions.apply import Family

            self._family = Family()
            self._family.add(self)
        return self._family

    def save_update(self, path: StorePath) -> None:
        """Write the batch that made this version beside a native store of the version before. Collective; O(batch).

        `sigps.load` of the store applies such batches in order, with their checksums compared; so a store and its
        batches are the newest version. `save` writes that as a store without batches, which opens sooner.

        Args:
            path: The store: one that `save` wrote of an earlier version, with the batches since beside it. Of several
                folders the first has the batches.

        Raises:
            GraphError: If no batch made this graph, or the store does not come to the version before.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> graph = Graph.from_edges([0, 1], [1, 2])
        >>> graph.save(folder.name + "/graph.sigps")
        >>> graph.apply(([2], [3])).save_update(folder.name + "/graph.sigps")
        >>> from sigps.graph.load import load
        >>> load(folder.name + "/graph.sigps").to_arrow().to_pydict()
        {'source': [0, 1, 2], 'target': [1, 2, 3]}
        >>> folder.cleanup()
        """
        from sigps.graph.formats.store_header import first_folder
        from sigps.graph.versions.stored import append_batch

        update = self.update
        assert update.given is not None
        batch, after = update.given, (self.num_vertices, self.num_edges)

        def write() -> None:
            if self.group.rank == 0:
                append_batch(first_folder(path), batch, before=update.before, after=after)

        together(write, self.group)

    @property
    def update(self) -> Update:
        """What the batch did that made this version: how much was inserted, deleted, missing.

        Raises:
            GraphError: Of a graph that no batch made.
        """
        if self._version is None or self._version.update is None:
            raise GraphError("no batch made this graph: update is of what graph.apply returns")
        return self._version.update

    @property
    def versions(self) -> tuple[int, ...]:
        """The numbers of the versions that something still holds, this one among them."""
        return (self.version,) if self._family is None else tuple(sorted(self._family.members.keys()))

    def at(self, version: int) -> Graph:
        """Return another version of this graph, as long as something holds it.

        Raises:
            GraphError: If nothing does.
        """
        if version == self.version:
            return self
        found = None if self._family is None else self._family.members.get(version)
        if found is None:
            raise GraphError(
                f"there is no version {version} of this graph; there are {self.versions}: a version goes when nothing "
                "holds it any more"
            )
        return cast("Graph", found)

    def _with_rows(self, version: Version, **changed: Any) -> Graph:
        """Return a graph of other rows, whose plain arrays are laid out when they are first read."""
        graph = _without_rows(self, **changed)
        graph._version = version
        return graph

    @staticmethod
    def _of_packed(arrays: PackedArrays, **changed: Any) -> Graph:
        """Return the graph of a packed store, whose rows are unpacked when one of their arrays is first read."""
        graph = _without_rows(arrays, **changed)
        graph._packed = arrays
        return graph

    @property
    def packed(self) -> PackedArrays | None:
        """The packed store that the graph was opened from, with the same edges; None for any other graph."""
        return self._packed

    def _carry_on(self, newer: Graph) -> None:
        """Bring the forms of this graph with edges at both ends to a newer version."""
        from sigps.graph.versions.apply import twin_rows
        from sigps.graph.versions.rows import VersionRows

        assert newer._version is not None
        for key, twin in list(self._derived.items()):
            if not isinstance(twin, Graph) or (key == "both_ways" and not self.directed):
                continue
            marks, simple = key == "both_ways", key == ("undirected", True)
            rows = (
                twin._version.rows
                if twin._version
                else VersionRows.of(twin.offsets, twin.targets, twin.columns)
            )
            size = newer.num_vertices
            new = twin_rows(rows, newer._version, size, directed=self.directed, marks=marks, simple=simple)
            if new is not None:
                like = {n: getattr(newer, n) for n in ("ids", "row_bounds", "report", "vertex_columns")}
                newer._derived[key] = twin._with_rows(new, **like, num_edges=new.rows.num_edges)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Lay out the rows of a version, or of a packed store, in plain arrays, when one of these is first read."""
            version, packed = self.__dict__.get("_version"), self.__dict__.get("_packed")
            if (version is None and packed is None) or name not in ("offsets", "targets", "columns"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            with spent_on("build"):
                if version is not None:
                    self.offsets, self.targets, self.columns = version.rows.plain()
                else:
                    arrays = packed.unpacked()
                    self.offsets, self.targets, self.columns = arrays.offsets, arrays.targets, arrays.columns
                    self.by_target = arrays.by_target
            return self.__dict__[name]

    @property
    def is_laid_out(self) -> bool:
        """Whether the arrays of its rows are there: those of versions and packed stores are made when they are read."""
        return "offsets" in self.__dict__

    @staticmethod
    def from_edges(
        sources: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        directed: bool = True,
        vertices: ArrayLike | None = None,
        columns: dict[str, ArrayLike] | None = None,
        vertex_columns: Mapping[str, Any] | None = None,
        duplicates: Duplicates = "keep",
        self_loops: SelfLoops = "keep",
        local: bool = False,
        device: BuildDevice | None = None,
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from arrays of edge ends. Collective; O(edges log degree).

        An array may be in GPU memory (of CuPy, Numba, PyTorch, or any with `__cuda_array_interface__` or DLPack); CuPy
        reads it there. The graph is in the host's memory wherever it is built.

        Args:
            sources: [edges], whole numbers within int64 or strings.
            targets: [edges], of the same kind.
            weights: [edges], finite numbers; kept as int64, float32 or float64.
            directed: Whether edges have a direction.
            vertices: Ids of vertices, with or without an edge.
            columns: Further named edge columns, [edges] each.
            vertex_columns: Named values of the vertices, as in `with_vertex_columns`; arrays in the order of `vertices`
                where these are given.
            duplicates: What to do with parallel edges: `"keep"`, `"drop"` all but the first, or replace them by
                one edge whose weight is the `"sum"`, `"min"` or `"max"`.
            self_loops: `"keep"` or `"drop"`.
            local: On several ranks, whether every rank gives different edges; otherwise all ranks give the same
                arrays, and each uses its share.
            device: What builds the graph, with equal results: "cpu"; "cuda", a GPU for a million edges and more, in one
                process; "auto" the same where there is a GPU, and 16 million edges or CuPy is loaded. None: as the job
                chose, or "auto".
            group: The ranks of the graph; None for those that the launcher started.

        Raises:
            GraphError: If ids, weights, lengths or options are wrong, or CuPy is missing for an array in GPU memory.
            DeviceError: If `device="cuda"` and no GPU can be used.

        >>> graph = Graph.from_edges([10, 10, 30], [20, 30, 10])
        >>> graph.num_vertices, graph.offsets.tolist(), graph.targets.tolist()
        (3, [0, 2, 2, 3], [1, 2, 0])
        """
        group = world() if group is None else group
        given: dict[str, Any] = dict(columns or {})
        if weights is not None:
            if "weight" in given:
                raise GraphError("the weight is given twice, as weights= and in columns=; give it once")
            given = {"weight": weights, **given}
        with building_on(device):
            with spent_on("build"):
                built = from_whole_arrays(
                    sources,
                    targets,
                    given,
                    vertices,
                    directed=directed,
                    duplicates=duplicates,
                    self_loops=self_loops,
                    group=group,
                )
            if built is not None:
                graph = Graph.of(built)
            else:
                chunks = edge_chunks(sources, targets, given, group, local)
                found = EdgeInput("memory", directed, chunks, _own_vertices(vertices, local, group))
                graph = build_read(found, duplicates, self_loops, group)
        return (
            graph
            if vertex_columns is None
            else graph.with_vertex_columns(vertex_columns, vertices, local=local)
        )

    @staticmethod
    def from_scipy(
        matrix: Any,
        *,
        directed: bool = True,
        weights: bool = True,
        duplicates: Duplicates = "keep",
        self_loops: SelfLoops = "keep",
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
        group = world() if group is None else group
        from sigps.graph.formats import structures

        found = structures.read_scipy(matrix, directed, weights, group)
        return build_read(found, duplicates, self_loops, group)

    @staticmethod
    def from_networkx(
        source: networkx.Graph[Any],
        *,
        weight: str | None = "weight",
        columns: Mapping[str, str] | None = None,
        vertex_columns: Mapping[str, str] | None = None,
        by_position: bool = False,
        duplicates: Duplicates = "keep",
        self_loops: SelfLoops = "keep",
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from a NetworkX graph, directed or not as that is; its nodes are ints or strings. Collective.

        Views and subclasses are read by their methods, which takes five times as long as plain graphs do.

        Args:
            source: The graph; the same on all ranks.
            weight: The attribute that is the weight, 1 for edges without it; no weights if no edge has it. None reads
                none.
            columns: Further edge columns: name to attribute, which every edge must have.
            vertex_columns: Vertex columns: name to attribute, which every node must have.
            by_position: Whether vertices get the positions of the nodes in `source.nodes`, from 0, as their ids; then
                nodes may be anything.
            duplicates: As in `from_edges`, for multigraphs.
            self_loops: `"keep"` or `"drop"`.
            group: As in `from_edges`.

        Raises:
            GraphError: If a node is neither an int nor a string, or an attribute is missing or no number.
        """
        group = world() if group is None else group
        from sigps.graph.formats.networkx_graphs import read_networkx

        found = read_networkx(source, weight, columns or {}, vertex_columns or {}, group, by_position)
        return build_read(found, duplicates, self_loops, group)

    @staticmethod
    def from_arrow(
        data: Any,
        source: int | str = 0,
        target: int | str = 1,
        weights: int | str | None = None,
        *,
        directed: bool = True,
        vertices: Any = None,
        columns: Mapping[str, int | str] | None = None,
        vertex_id: int | str | None = None,
        vertex_columns: Mapping[str, Any] | None = None,
        duplicates: Duplicates = "keep",
        self_loops: SelfLoops = "keep",
        local: bool = False,
        group: Group | None = None,
    ) -> Graph:
        """Build a graph from a table: of pyarrow, pandas, polars, any Arrow stream, or any data frame. Collective.

        A stream (any object with `__arrow_c_stream__`) is read batch by batch, except on several ranks without `local`.
        Frames without one, such as those of Dask, Modin, PySpark and lazy ones of polars, are brought by Narwhals.
        `source`, `target` and `weights` are columns by position or name, as are the values of `columns`, which gives
        further edge columns by name. `vertices` may be a table too, with a row for every vertex: `vertex_id` is its
        column of ids (one named "id", else the first), and `vertex_columns` gives the vertex columns by name to column;
        None takes all that hold numbers. The other arguments are those of `from_edges`.

        Raises:
            GraphError: If a column is missing, has missing values, or holds neither ids nor numbers.
        """
        group = world() if group is None else group
        ends: dict[str, int | str] = {"source": source, "target": target}
        from sigps.graph.formats import structures, vertex_table

        found = structures.read_arrow_table(data, ends, weights, columns or {}, directed, local, group)
        if not vertex_table.is_table(vertices):
            found.vertices = _own_vertices(vertices, local, group)
            graph = build_read(found, duplicates, self_loops, group)
            return (
                graph
                if vertex_columns is None
                else graph.with_vertex_columns(vertex_columns, vertices, local=local)
            )
        found.vertices, found.vertex_columns = vertex_table.from_arrow(
            vertices, vertex_id, vertex_columns, local, group
        )
        return build_read(found, duplicates, self_loops, group)

    from_dataframe = from_arrow
    from_pandas = from_arrow

    def to_arrow(self) -> pyarrow.Table:
        """Return the edges as a table: `source` and `target`, which are ids, and edge columns. Collective; O(edges).

        On several ranks, of this rank's rows. An undirected edge is there once, and its source is the smaller id.

        Raises:
            GraphError: If an edge column is named like an end.

        >>> Graph.from_edges([5, 7], [7, 9], weights=[1.0, 2.5], directed=False).to_arrow().to_pydict()
        {'source': [5, 7], 'target': [7, 9], 'weight': [1.0, 2.5]}
        """
        return edge_table.to_arrow(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of edges for what reads Arrow streams, such as `polars.DataFrame(graph)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the edges as a data frame, as `to_arrow`."""
        import_optional("pandas", "to_pandas")
        import pandas

        return pandas.DataFrame(edge_table.edge_columns(self))

    def to_networkx(self) -> networkx.Graph[Any]:
        """Return a NetworkX graph, a multigraph where edges are parallel; columns become attributes. One process only.

        Raises:
            GraphError: On several ranks, because no rank holds all edges.
        """
        return edge_table.to_networkx(self, {})

    def to_pyg(self) -> Data:
        """Return the graph as `Data` of PyTorch Geometric (extra `pyg`). One process only; 16 bytes an edge.

        Nodes are numbered 0 to n - 1, in ascending order of ids: `graph.ids.to_oids(numbers)`. `edge_index` is sorted
        by target. Edge columns become `edge_weight`, and `edge_` with their names; vertex columns have their names.
        They share the memory of the graph.
        `sigps.pyg` samples neighbours of a graph that is not copied.

        Raises:
            GraphError: On several ranks, or if PyTorch Geometric is missing.
        """
        return pyg_data.to_pyg(self, self.in_edges())

    def to_scipy(self) -> scipy.sparse.csr_array[Any]:
        """Return the adjacency matrix; on several ranks this rank's rows of it, [num_rows, num_vertices].

        Entries are weights, or 1.0. Parallel edges are separate entries, which SciPy adds up.
        """
        from sigps.graph.formats import structures

        return structures.to_scipy(self)

    def save(
        self,
        path: StorePath,
        *,
        in_edges: bool = False,
        packed: bool = False,
        order: Order = "better",
    ) -> None:
        """Write the graph to a folder that `sigps.load` opens at once. Collective; O(bytes of the graph).

        Args:
            path: The folder; on several ranks all see the same file system. A store that is already there is replaced.
                A packed store may have several, as on several disks: pages are dealt out among them, and `sigps.load`
                takes the same list.
            in_edges: Store the edges by target too (one process, directed): pull then needs no build.
            packed: Store the edges in bit-packed pages (one process): 0.4 to 2.4 bytes each instead of 4, and columns
                of whole numbers narrowed. They are unpacked when they are first read, or by runs that stream them.
            order: Of packed rows: `"given"`, that of the vertices, as some runs that stream need; by descending
                `"degree"`; or which of the two takes fewer bytes, by a sample.

        Raises:
            GraphError: If the path cannot be written or is something else than a store, or several ranks pack.
            ConfigError: If both `in_edges` and `packed` are set, or a store that is not packed gets several folders.
        """
        if packed and in_edges:
            raise ConfigError(
                "in_edges=True is for raw stores: a packed one keeps in-edges alone; give one of the two"
            )
        if packed:
            from sigps.graph.formats.packed_store import save_packed

            save_packed(self, path, order=order)
            return
        from sigps.graph.formats import store
        from sigps.graph.formats.store_folders import given_folders

        folder, *others = given_folders(path)
        if others:
            raise ConfigError(
                f"a store in {1 + len(others)} folders is a packed one: save(.., packed=True), or name one folder"
            )
        store.save(self, folder, in_edges=self.in_edges() if in_edges and self.directed else None)

    def with_vertex_columns(
        self, columns: Mapping[str, Any], ids: ArrayLike | None = None, *, local: bool = False
    ) -> Graph:
        """Return the graph with vertex columns, beside those that it has or in their place. Collective; O(vertices).

        A state begins with one by `from_column`: `age: State[int] = from_column("age")`. `graph.vertex_columns` has the
        arrays, on several ranks those of this rank's rows.

        Args:
            columns: By name: an array of one number a vertex, or of one row of k numbers, [num_vertices, k], in
                ascending order of ids; or values of some vertices by their ids, `{id: value}`, where the others have 0.
            ids: The ids of all vertices, in whose order arrays are given instead.
            local: On several ranks, whether every rank gives other vertices, by their ids.

        Raises:
            GraphError: If a length, an id or a value is wrong, or a vertex has no value.

        >>> graph = Graph.from_edges([10, 10], [20, 30]).with_vertex_columns({"age": [40, 50, 60], "seed": {20: 1.0}})
        >>> {name: column.tolist() for name, column in graph.vertex_columns.items()}
        {'age': [40, 50, 60], 'seed': [0.0, 1.0, 0.0]}
        """
        found = user_columns(self, columns, ids, local=local)
        return self.of_columns({**self.vertex_columns, **found})

    def of_columns(self, vertex_columns: dict[str, NDArray[Any]]) -> Graph:
        """Return the graph with these vertex columns, of this rank's rows, and no others."""
        if self._packed is not None and not self.is_laid_out:
            graph = Graph._of_packed(self._packed, vertex_columns=vertex_columns)
        else:
            graph = replace(self, vertex_columns=vertex_columns)
            graph._packed = self._packed
        for key, made in self._derived.items():
            is_of_columns = isinstance(key, tuple) and key[0] == "vertex columns"
            if not is_of_columns and not isinstance(made, Graph):
                graph._derived[key] = made
        return graph

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of `make`, computed by the first call with this key and kept as long as the graph.

        All caches of what follows from a graph are kept here. The graph is immutable, so they stay valid.

        Args:
            key: Identifies the result and its type.
            make: Computes it. If it raises, nothing is kept. If it is collective, so is this call.

        >>> graph = Graph.from_edges([0, 1], [1, 2])
        >>> graph.derived("degrees", graph.out_degrees) is graph.derived("degrees", graph.out_degrees)
        True
        """
        if key not in self._derived:
            self._derived[key] = make()
        found: T = self._derived[key]
        return found

    def in_edges(self) -> InEdges:
        """Return the edges by target, computed once, O(edges). One process only.

        Those of an undirected graph share the arrays of its rows.

        Raises:
            GraphError: On several ranks, because no rank holds all edges.
        """
        if self.group.size > 1:
            raise GraphError(
                f"in_edges() needs all rows in one process, but {self.group.size} ranks share this graph; "
                "partition it instead"
            )
        if self._packed is not None:
            _ = self.offsets  # unpacks by_target, too
        if self.by_target is None:
            if self._version is not None and self._version.inward is not None:
                self.by_target = InEdges(*self._version.inward.plain())
            elif self.directed:
                rows = _transposed(Rows(self.offsets, self.targets, dict(self.columns)), self.group)
                self.by_target = InEdges(rows.offsets, rows.targets, rows.columns)
            else:
                self.by_target = InEdges(self.offsets, self.targets, self.columns)
        return self.by_target

    def undirected(self, *, simple: bool = False) -> Graph:
        """Return the graph with every edge in both directions, computed once. Collective; O(edges log degree).

        If an edge's reverse is in the graph, the two become parallel edges. Where nothing changes the graph is
        returned itself.

        Args:
            simple: Whether loops and all but the first of parallel edges are left out.

        >>> graph = Graph.from_edges([0, 1, 1], [1, 0, 2])
        >>> graph.undirected().targets.tolist(), graph.undirected(simple=True).targets.tolist()
        ([1, 1, 0, 0, 2, 1], [1, 0, 2, 1])
        """
        if not self.directed and not (simple and not self.derived("is simple", lambda: is_simple(self))):
            return self
        return self.derived(("undirected", simple), lambda: Graph.of(undirected(self, simple=simple)))

    def both_ways(self) -> Graph:
        """Return the graph with every edge in both its ends' rows, computed once. Collective; O(edges log degree).

        Two bool columns give an edge's direction: `leads_out` is true in the row of its source, `leads_in` in that of
        its target. A self-loop is stored once, and both are true for it, as for all edges of an undirected graph.

        Raises:
            GraphError: If the graph has a column of one of these names.

        >>> both = Graph.from_edges([0, 1], [1, 2]).both_ways()
        >>> both.targets.tolist(), both.columns["leads_out"].tolist()
        ([1, 0, 2, 1], [True, False, True, False])
        """
        return self.derived("both_ways", lambda: Graph.of(both_ways(self)))

    def subgraph(self, ids: ArrayLike) -> Graph:
        """Return the graph of some vertices and all edges among them, with their ids and columns. Collective; O(edges).

        Args:
            ids: The vertices, in any order; on several ranks those that any rank names.

        Raises:
            GraphError: If an id is not in the graph.

        >>> graph = Graph.from_edges([5, 5, 7], [7, 9, 9], weights=[1.0, 2.0, 3.0])
        >>> graph.subgraph([9, 5]).to_arrow().to_pydict()
        {'source': [5], 'target': [9], 'weight': [2.0]}
        """
        return Graph.of(subgraph(self, ids))

    def edge_subgraph(self, sources: ArrayLike, targets: ArrayLike) -> Graph:
        """Return the graph of some edges and their ends, with ids and columns. Collective; O(edges log edges).

        Parallel edges between two vertices are all kept. So a k-truss is

            edges = sigps.run(BiTriDN(), graph).edges
            inside = edges["bound"] >= k - 2
            truss = graph.edge_subgraph(edges.sources[inside], edges.targets[inside])

        Args:
            sources: One end of each edge, an id; on several ranks of those that any rank names.
            targets: The other ends. Of an undirected graph in either order.

        Raises:
            GraphError: If an id is not in the graph, or there is no such edge.

        >>> graph = Graph.from_edges([5, 5, 7], [7, 9, 9], weights=[1.0, 2.0, 3.0])
        >>> graph.edge_subgraph([7, 5], [9, 9]).to_arrow().to_pydict()
        {'source': [5, 7], 'target': [9, 9], 'weight': [2.0, 3.0]}
        """
        return Graph.of(edge_subgraph(self, sources, targets))

    def contract(self, labels: ArrayLike) -> Graph:
        """Return the graph with one vertex a label, which is its id. Collective; O(edges log degree).

        An edge between two labels has the sum of the weights of the edges between their vertices, or their number
        without weights; a self-loop that of the edges among the vertices of one label. Other columns are left out.

        Args:
            labels: One a vertex, in ascending order of ids, whole numbers or strings; on several ranks all labels on
                every rank, or each rank those of its rows.

        Raises:
            GraphError: If labels are missing, or are neither whole numbers nor strings.

        >>> graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 2, 3], directed=False)
        >>> graph.contract([0, 0, 0, 8]).to_arrow().to_pydict()
        {'source': [0, 0], 'target': [0, 8], 'weight': [3, 1]}
        """
        return Graph.of(contract(self, labels))

    def column_types(self) -> dict[str, np.dtype[Any]]:
        """Return the types of the edge columns, by name."""
        if self._version is not None:
            return self._version.rows.dtypes
        if self._packed is not None:
            return {name: column.dtype for name, column in self._packed.rows.columns.items()}
        return {name: column.dtype for name, column in self.columns.items()}

    @property
    def has_weights(self) -> bool:
        return "weight" in self.column_types()

    @property
    def nbytes(self) -> int:
        """Bytes that this rank's arrays take, in-edges included once they exist.

        Of a version also the arena that it shares with others, plain arrays once they are laid out.
        """
        version = self._version
        shared = sum(rows.nbytes for rows in (version.rows, version.inward) if rows) if version else 0
        if self.is_laid_out:
            return super().nbytes + shared
        if self._packed is not None:
            return self._packed.nbytes
        return shared + sum(c.nbytes for c in self.vertex_columns.values()) + self.ids.nbytes

    def out_degrees(self) -> NDArray[np.int64]:
        """Return the out-degrees of this rank's rows, [num_rows]."""
        if self._version is not None:
            return self._version.rows.degrees()
        if self._packed is not None and not self.directed and not self.is_laid_out:
            return self._packed.row_degrees()
        return _differences(self.offsets)

    def in_degrees(self) -> NDArray[np.int64]:
        """Return the in-degrees of this rank's rows, [num_rows]. Collective for directed graphs."""
        if not self.directed:
            return self.out_degrees()
        if self._version is not None and self._version.inward is not None:
            return self._version.inward.degrees()
        if self._packed is not None and self.group.size == 1:
            return _differences(self.in_edges().offsets) if self.is_laid_out else self._packed.row_degrees()
        if self.by_target is not None:
            return _differences(self.by_target.offsets)
        degrees = np.zeros(self.num_vertices, dtype=np.int64)
        for start in range(0, self.targets.size, _BLOCK_EDGES):
            block = self.targets[start : start + _BLOCK_EDGES]
            degrees += np.bincount(block.astype(np.int64), minlength=self.num_vertices)
        if self.group.size == 1:
            return degrees
        slices = [degrees[self.row_bounds[r] : self.row_bounds[r + 1]] for r in range(self.group.size)]
        total: NDArray[np.int64] = np.sum(self.group.all_to_all(slices), axis=0, dtype=np.int64)
        return total

    def _repr_html_(self) -> str:
        """Return what a notebook shows; with the degrees where one process has the graph, O(vertices)."""
        ids = "text" if self.ids.kind == "strings" else str(self.ids.dtype)
        rows = {
            "edges": f"{self.num_edges:,} stored, {'directed' if self.directed else 'undirected'}",
            "vertices": f"{self.num_vertices:,}",
            "ids": f"{ids}, 0 to n - 1" if self.ids.is_identity else ids,
            "edge columns": _type_names(self.column_types()),
            "vertex columns": _type_names({n: c.dtype for n, c in self.vertex_columns.items()}),
            "memory": bytes_text(self.nbytes),
        }
        rows = {name: text for name, text in rows.items() if text}
        if self.group.size > 1:
            return card("Graph", rows)
        what = "out-degree" if self.directed else "degree"
        return card("Graph", rows, degree_bars(degree_classes(self.out_degrees(), self.group), what))

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        types = self.column_types()
        columns = f", columns {', '.join(types)}" if types else ""
        columns += f", vertex columns {', '.join(self.vertex_columns)}" if self.vertex_columns else ""
        return f"<Graph: {kind}, {self.num_vertices:,} vertices, {self.num_edges:,} stored edges{columns}>"


def _transposed(rows: Rows, group: Group) -> Rows:
    """Return the in-edges of rows that are a whole graph."""
    is_narrow = rows.targets.dtype == np.uint32
    if is_narrow and (gpu := gpu_for(rows.targets.size, rows.columns, group, symmetric=False, are_rows=True)):
        from sigps.graph.building.on_gpu import transposed_on_gpu

        return transposed_on_gpu(rows, gpu)
    return transpose(rows)


@spent_on("build")
def build_graph(
    chunks: Iterable[EdgeChunk | TextChunk],
    *,
    directed: bool,
    group: Group | None = None,
    vertices: ArrayLike | None = None,
    duplicates: Duplicates = "keep",
    self_loops: SelfLoops = "keep",
    ids: Literal["table", "identity"] = "table",
    num_vertices: int | None = None,
    report: LoadReport | None = None,
    memory: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Graph:
    """Build a graph from this rank's share of its edges. Collective.

    The result depends only on the edges in the order of ranks and chunks, not on where chunks begin.
    An undirected edge is stored in both its ends' rows, a self-loop once.

    Args:
        chunks: This rank's edges, iterated once. Ids are integers within int64 or str, of one kind on all ranks.
        directed: Whether edges have a direction.
        group: The ranks of the graph; None for those that the launcher started.
        vertices: Ids of vertices, with or without an edge; on several ranks, any share of them.
        duplicates: `"keep"` parallel edges, `"drop"` all but the first given, or reduce their weights by
            `"sum"`, `"min"` or `"max"` (other columns keep the first). Undirected, (u, v) repeats (v, u).
        self_loops: `"keep"` or `"drop"`, which keeps the vertex.
        ids: `"table"`: the vertices are the ids that occur. `"identity"`: they are 0..num_vertices - 1.
        num_vertices: Needed with `ids="identity"`.
        report: The report to complete; None for a new one.
        memory: Bytes that building may take: more edges wait on disk, and rows are mapped from there. One process.
        scratch: The folder for them; None for the system's.

    Raises:
        GraphError: If ids, weights, lengths or options are wrong, or there is too little memory or disk.
    """
    group = world() if group is None else group
    with group.status.during("building the graph"):
        if memory is not None:
            from sigps.graph.building.pieces import build_in_pieces

            if group.size > 1:
                raise GraphError(
                    f"memory= is of graphs that one process builds, and {group.size} ranks share this one: write "
                    "a store in one process, which they open"
                )
            return Graph.of(
                build_in_pieces(
                    chunks,
                    memory=memory,
                    scratch=scratch,
                    directed=directed,
                    vertices=vertices,
                    duplicates=duplicates,
                    self_loops=self_loops,
                    num_vertices=num_vertices if ids == "identity" else None,
                    report=report,
                )
            )
        built = build(
            chunks,
            directed=directed,
            group=group,
            vertices=vertices,
            duplicates=duplicates,
            self_loops=self_loops,
            ids=ids,
            num_vertices=num_vertices,
            report=report,
        )
    return Graph.of(built)


_BLOCK_EDGES = 1 << 23


def build_read(
    found: EdgeInput,
    duplicates: Duplicates,
    self_loops: SelfLoops,
    group: Group,
    report: LoadReport | None = None,
    memory: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Graph:
    """Build the graph of edges that were read from a file or a structure in memory. Collective."""
    graph = build_graph(
        found.chunks,
        directed=found.directed,
        group=group,
        vertices=found.vertices,
        duplicates=duplicates,
        self_loops=self_loops,
        ids="table" if found.num_vertices is None else "identity",
        num_vertices=found.num_vertices,
        report=report or LoadReport(format=found.format),
        memory=memory,
        scratch=scratch,
    )
    if not found.vertex_columns and found.listed_in is None:
        return graph
    ids = as_ids(found.vertices, "vertices")  # type: ignore[arg-type]
    what = found.listed_in or "the table of vertices"
    return graph.of_columns(columns_by_id(graph, ids, found.vertex_columns, what=what))


def _own_vertices(vertices: ArrayLike | None, local: bool, group: Group) -> ArrayLike | None:
    """Return this rank's share of the ids, or all of them if every rank gives different ones."""
    return vertices if vertices is None or local else own_share(as_ids(vertices, "vertices"), group)


def _type_names(types: Mapping[str, np.dtype[Any]]) -> str:
    return ", ".join(f"{name} ({dtype})" for name, dtype in types.items())


def _without_rows(like: GraphArrays, **changed: Any) -> Graph:
    """Return a graph with what another has, but for its rows."""
    graph = object.__new__(Graph)
    attributes = ("directed", "group", "ids", "row_bounds", "num_edges", "report", "vertex_columns")
    for name in attributes:
        setattr(graph, name, changed[name] if name in changed else getattr(like, name))
    graph.by_target = None
    graph._derived, graph._version, graph._family, graph._packed, graph.version = {}, None, None, None, 0
    return graph


def _differences(offsets: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (offsets[1:] - offsets[:-1]).view(np.int64)
