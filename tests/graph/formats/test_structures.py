"""Graphs from and to SciPy, NetworkX and Arrow tables."""

from __future__ import annotations

import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse

import sigps.graph.building.rows
from sigps.errors import GraphError
from sigps.graph import Graph
from sigps.graph.load import open_store


def edges_of(graph: Graph) -> list[tuple]:
    """Return all stored edges as (source oid, target oid, *columns)."""
    oids = graph.ids.to_oids(np.arange(graph.num_vertices))
    sources = np.repeat(oids, graph.out_degrees())
    arrays = [sources, oids[graph.targets], *graph.columns.values()]
    return list(zip(*(array.tolist() for array in arrays), strict=True))


class TestScipy:
    @pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
    @pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
    def test_every_form_and_every_row_a_vertex(self, form, kind):
        matrix = kind(([2.5, 3.5], ([0, 2], [2, 0])), shape=(4, 4)).asformat(form)
        graph = Graph.from_scipy(matrix)
        assert graph.num_vertices == 4
        assert graph.ids.is_identity
        if form != "dia":  # stores zeros of its diagonals
            assert edges_of(graph) == [(0, 2, 2.5), (2, 0, 3.5)]
        assert (graph.to_scipy() != scipy.sparse.csr_array(matrix)).nnz == 0
        assert (graph.report.format, graph.report.isolated) == ("scipy", 2)

    def test_stored_zeros_and_parallel_entries_are_edges(self):
        matrix = scipy.sparse.coo_array(([0.0, 2.0, 3.0], ([0, 1, 1], [1, 0, 0])), shape=(2, 2))
        assert edges_of(Graph.from_scipy(matrix)) == [(0, 1, 0.0), (1, 0, 2.0), (1, 0, 3.0)]
        assert edges_of(Graph.from_scipy(matrix, duplicates="sum")) == [(0, 1, 0.0), (1, 0, 5.0)]

    @pytest.mark.parametrize("part", ["whole", "upper", "lower"])
    def test_undirected_takes_each_edge_once(self, part):
        whole = np.array([[7, 1, 0], [1, 0, 2], [0, 2, 0]])
        matrix = {"whole": whole, "upper": np.triu(whole), "lower": np.tril(whole)}[part]
        graph = Graph.from_scipy(scipy.sparse.csr_array(matrix), directed=False)
        assert edges_of(graph) == [(0, 0, 7), (0, 1, 1), (1, 0, 1), (1, 2, 2), (2, 1, 2)]
        assert graph.report.edges_given == 3

    @pytest.mark.parametrize(
        "entries",
        [
            ([1, 2], ([0, 1], [1, 0])),
            ([1, 1], ([0, 2], [1, 1])),
            ([0, 1], ([0, 2], [1, 1])),
            ([1, 1, 2], ([0, 0, 1], [1, 1, 0])),
        ],
    )
    def test_undirected_refuses_what_is_not_symmetric(self, entries):
        with pytest.raises(GraphError, match="needs a symmetric or a triangular matrix"):
            Graph.from_scipy(scipy.sparse.coo_array(entries, shape=(3, 3)), directed=False)

    def test_values_are_weights_unless_boolean_or_unwanted(self):
        matrix = scipy.sparse.csr_array(np.array([[0, 1], [0, 0]], dtype=np.float32))
        assert Graph.from_scipy(matrix).columns["weight"].dtype == np.float32
        assert not Graph.from_scipy(matrix, weights=False).has_weights
        assert not Graph.from_scipy(matrix.astype(bool)).has_weights

    @pytest.mark.parametrize(
        ("matrix", "problem"),
        [
            (np.eye(2), "takes a SciPy sparse matrix or array, not ndarray"),
            (scipy.sparse.csr_array((2, 3)), r"square, but this one has shape \(2, 3\)"),
            (scipy.sparse.coo_array(np.ones(3)), r"square, but this one has shape \(3,\)"),
            (scipy.sparse.csr_array(np.eye(2) * 1j), "complex128, but weights are real"),
            (scipy.sparse.csr_array(np.array([[0, np.nan], [0, 0]])), r"weight\[0\] is NaN"),
        ],
    )
    def test_bad_input(self, matrix, problem):
        with pytest.raises(GraphError, match=problem):
            Graph.from_scipy(matrix)

    def test_no_rows(self):
        graph = Graph.from_scipy(scipy.sparse.csr_array((0, 0)))
        assert graph.num_vertices == 0
        assert graph.to_scipy().shape == (0, 0)

    def test_to_scipy_agrees_with_networkx(self, sample):
        graph = sample.build()
        matrix = graph.to_scipy()
        referee = (networkx.MultiDiGraph if sample.directed else networkx.MultiGraph)()
        referee.add_nodes_from(graph.ids.to_oids(np.arange(graph.num_vertices)).tolist())
        weights = sample.weights or [1.0] * len(sample.sources)
        referee.add_weighted_edges_from(zip(sample.sources, sample.targets, weights, strict=True))
        if graph.num_vertices:  # NetworkX refuses none
            assert np.array_equal(matrix.toarray(), networkx.to_numpy_array(referee))

    def test_on_several_ranks_each_gets_its_rows(self, run_ranks, battery):
        whole = battery["skewed"].build().to_scipy().toarray()

        def rows(group):
            matrix = scipy.sparse.csr_array(whole)
            return Graph.from_scipy(matrix, group=group).to_scipy().toarray()

        assert np.array_equal(np.concatenate(run_ranks(3, rows)), whole)


class TestUndirected:
    @pytest.mark.parametrize("size", [1, 3])
    def test_every_edge_gets_its_reverse(self, run_ranks, sample, size, monkeypatch):
        monkeypatch.setattr(sigps.graph.building.rows, "_CHUNK_EDGES", 7)
        tags = list(range(len(sample.sources)))

        def turn(group):
            graph = sample.build(group=group, columns={"tag": tags})
            both = graph.undirected()
            assert both is graph.undirected()
            assert both is graph or graph.directed
            assert both.group is group
            oids = both.ids.to_oids(np.arange(both.num_vertices))
            rows = np.repeat(oids[both.first_row :][: both.num_rows], both.out_degrees())
            ends = oids[both.targets]
            return both.num_edges, list(
                zip(rows.tolist(), ends.tolist(), both.columns["tag"].tolist(), strict=True)
            )

        parts = run_ranks(size, turn)
        edges = [edge for _, part in parts for edge in part]
        given = list(zip(sample.sources, sample.targets, tags, strict=True))
        expected = given + [(target, source, tag) for source, target, tag in given if source != target]
        assert sorted(edges) == sorted(expected)
        assert {num_edges for num_edges, _ in parts} == {len(expected)}

    @pytest.mark.parametrize("size", [1, 3])
    def test_a_simple_one_has_each_edge_once_and_no_loops(self, run_ranks, sample, size, monkeypatch):
        monkeypatch.setattr(sigps.graph.building.rows, "_CHUNK_EDGES", 3)
        ends = zip(sample.sources, sample.targets, strict=True)
        expected = {pair for s, t in ends if s != t for pair in ((s, t), (t, s))}

        def turn(group):
            graph = sample.build(group=group)
            simple = graph.undirected(simple=True)
            assert simple is simple.undirected(simple=True) is graph.undirected(simple=True)
            assert (simple is graph) == (not graph.directed and graph.num_edges == len(expected))
            oids = simple.ids.to_oids(np.arange(simple.num_vertices))
            rows = np.repeat(oids[simple.first_row :][: simple.num_rows], simple.out_degrees())
            return list(zip(rows.tolist(), oids[simple.targets].tolist(), strict=True))

        assert sorted(edge for part in run_ranks(size, turn) for edge in part) == sorted(expected)

    def test_a_store_of_it_keeps_the_ids(self, run_ranks, battery, tmp_path):
        def save_undirected(group):
            battery["string_ids"].build(group=group).undirected().save(tmp_path / "g.sigps")

        run_ranks(2, save_undirected)
        assert edges_of(open_store(tmp_path / "g.sigps")) == edges_of(
            battery["string_ids"].build().undirected()
        )


class TestBothWays:
    @pytest.mark.parametrize("size", [1, 3])
    def test_every_edge_is_in_the_rows_of_both_ends(self, run_ranks, sample, size, monkeypatch):
        monkeypatch.setattr(sigps.graph.building.rows, "_CHUNK_EDGES", 7)
        tags = list(range(len(sample.sources)))

        def turn(group):
            graph = sample.build(group=group, columns={"tag": tags})
            both = graph.both_ways()
            assert both is graph.both_ways()
            assert both.directed is graph.directed
            assert set(graph.columns) == set(both.columns) - {"leads_out", "leads_in"}
            oids = both.ids.to_oids(np.arange(both.num_vertices))
            rows = np.repeat(oids[both.first_row :][: both.num_rows], both.out_degrees())
            columns = [both.columns[name].tolist() for name in ("leads_out", "leads_in", "tag")]
            return both.num_edges, list(
                zip(rows.tolist(), oids[both.targets].tolist(), *columns, strict=True)
            )

        parts = run_ranks(size, turn)
        edges = [edge for _, part in parts for edge in part]
        given = list(zip(sample.sources, sample.targets, tags, strict=True))
        expected = [(s, t, True, s == t or not sample.directed, tag) for s, t, tag in given]
        expected += [(t, s, not sample.directed, True, tag) for s, t, tag in given if s != t]
        assert sorted(edges) == sorted(expected)
        assert {num_edges for num_edges, _ in parts} == {len(expected)}

    @pytest.mark.parametrize("size", [2, 3])
    def test_rows_are_the_same_on_any_number_of_ranks(self, run_ranks, battery, size):
        expected = edges_of(battery["skewed"].build().both_ways())

        def rows(group):
            both = battery["skewed"].build(group=group).both_ways()
            oids = both.ids.to_oids(np.arange(both.num_vertices))
            rows = np.repeat(oids[both.first_row :][: both.num_rows], both.out_degrees())
            arrays = [rows, oids[both.targets], *(both.columns[name] for name in both.columns)]
            return list(zip(*(array.tolist() for array in arrays), strict=True))

        assert [edge for part in run_ranks(size, rows) for edge in part] == expected

    def test_the_names_of_its_columns_are_taken(self):
        graph = Graph.from_edges([0], [1], columns={"leads_in": [3]})
        with pytest.raises(GraphError, match="a column 'leads_in' already"):
            graph.both_ways()


class TestNetworkx:
    @pytest.mark.parametrize(
        "kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]
    )
    def test_every_kind_with_isolated_nodes_and_loops(self, kind):
        source = kind()
        source.add_nodes_from([9, -4])
        source.add_edge(5, 9, weight=2.5)
        source.add_edge(5, 9, weight=1.5)
        source.add_edge(9, 9, weight=3)
        graph = Graph.from_networkx(source)
        weights = [2.5, 1.5] if source.is_multigraph() else [1.5]
        there = [(5, 9, weight) for weight in weights]
        back = [] if source.is_directed() else [(9, 5, weight) for weight in weights]
        assert edges_of(graph) == [*there, *back, (9, 9, 3.0)]
        assert graph.directed == source.is_directed()
        assert graph.num_vertices == 3
        assert graph.report.format == "networkx"

    def test_names(self):
        graph = Graph.from_networkx(networkx.Graph([("b", "a"), ("b", "ç")]))
        assert edges_of(graph) == [("a", "b"), ("b", "a"), ("b", "ç"), ("ç", "b")]

    def test_an_edge_without_weight_weighs_one_if_others_have_some(self):
        source = networkx.DiGraph([(0, 1), (1, 2, {"weight": 4})])
        assert edges_of(Graph.from_networkx(source)) == [(0, 1, 1), (1, 2, 4)]
        assert not Graph.from_networkx(source, weight=None).has_weights
        assert not Graph.from_networkx(source, weight="length").has_weights

    def test_other_attributes(self):
        source = networkx.DiGraph([(0, 1, {"length": 2.0, "lanes": 3}), (1, 0, {"length": 4.0, "lanes": 1})])
        graph = Graph.from_networkx(source, weight="length", columns={"width": "lanes"})
        assert list(graph.columns) == ["weight", "width"]
        assert edges_of(graph) == [(0, 1, 2.0, 3), (1, 0, 4.0, 1)]

    @pytest.mark.parametrize(
        ("source", "options", "problem"),
        [
            (networkx.grid_2d_graph(2, 2), {}, "not tuple; by_position=True"),
            (networkx.Graph([(0, "a")]), {}, "not int, str"),
            (networkx.Graph([(0, 1, {"weight": "far"})]), {}, "must be numeric"),
            (
                networkx.Graph([(0, 1, {"t": 1}), (1, 2)]),
                {"columns": {"t": "t"}},
                r"\(1, 2\) has no attribute 't'",
            ),
        ],
    )
    def test_bad_input(self, source, options, problem):
        with pytest.raises(GraphError, match=problem):
            Graph.from_networkx(source, **options)

    def test_no_nodes(self):
        assert Graph.from_networkx(networkx.Graph()).num_vertices == 0
        assert Graph.from_networkx(networkx.Graph(), by_position=True).num_vertices == 0

    @pytest.mark.parametrize(
        "kind", [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]
    )
    def test_plain_graphs_and_others_agree(self, kind):
        class Other(kind):
            """Not plain: it is read by its methods."""

        source = kind(networkx.gnm_random_graph(30, 90, seed=5, directed=True))
        source.add_edges_from([(3, 3), (-1, 4), (4, -1), (4, -1)], weight=2)
        plain, other = (Graph.from_networkx(graph) for graph in (source, Other(source)))
        assert edges_of(plain) == edges_of(other)
        assert plain.num_vertices == other.num_vertices == 31
        view = source.subgraph([1, 3, -1, 4, 9])
        assert edges_of(Graph.from_networkx(view)) == edges_of(Graph.from_networkx(view.copy()))
        assert Graph.from_networkx(view).num_vertices == 5

    def test_by_position(self):
        source = networkx.DiGraph([((1, 2), "b", {"weight": 5}), ("b", 0, {"weight": 7})])
        networkx.set_node_attributes(source, {(1, 2): 3.0, "b": 4.0, 0: 5.0}, "age")
        graph = Graph.from_networkx(source, by_position=True, vertex_columns={"age": "age"})
        assert edges_of(graph) == [(0, 1, 5), (1, 2, 7)]
        assert graph.vertex_columns["age"].tolist() == [3.0, 4.0, 5.0]

    def test_several_ranks(self, run_ranks):
        source = networkx.karate_club_graph()
        alone = Graph.from_networkx(source)
        parts = run_ranks(3, lambda group: Graph.from_networkx(source, group=group))
        assert np.concatenate([part.targets for part in parts]).tolist() == alone.targets.tolist()
        assert alone.num_edges == 2 * source.number_of_edges()


class Stream:
    """What any producer of an Arrow stream looks like."""

    def __init__(self, table: pyarrow.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.to_reader(2).__arrow_c_stream__(requested_schema)


TABLE = {"from": [5, 3, 5], "to": [3, 5, 9], "cost": [1.5, 2.5, 0.5], "lanes": [1, 2, 3]}


class TestArrow:
    @pytest.mark.parametrize(
        "make",
        [
            pyarrow.table,
            lambda table: pyarrow.table(table).to_batches()[0],
            lambda table: pyarrow.table(table).to_reader(1),
            lambda table: Stream(pyarrow.table(table)),
            pandas.DataFrame,
            polars.DataFrame,
        ],
    )
    def test_every_table(self, make):
        graph = Graph.from_arrow(make(TABLE), weights="cost", columns={"lanes": 3})
        assert list(graph.columns) == ["weight", "lanes"]
        assert edges_of(graph) == [(3, 5, 2.5, 2), (5, 3, 1.5, 1), (5, 9, 0.5, 3)]
        assert graph.report.format == "arrow"

    @pytest.mark.parametrize("make", [pyarrow.table, pandas.DataFrame, polars.DataFrame])
    def test_text_ids(self, make):
        graph = Graph.from_arrow(make({"b": ["x", "é"], "a": ["é", "y"]}), "a", "b")
        assert edges_of(graph) == [("y", "é"), ("é", "x")]

    @pytest.mark.parametrize(
        "type",
        [pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int8(), pyarrow.string())],
    )
    def test_every_kind_of_text(self, type):
        ends = [pyarrow.array(names).cast(type) for names in (["a", "b", "a"], ["b", "a", "a"])]
        graph = Graph.from_arrow(pyarrow.table(ends, names=["s", "t"]))
        assert edges_of(graph) == [("a", "a"), ("a", "b"), ("b", "a")]

    def test_options_of_from_edges(self):
        options = {"directed": False, "vertices": [7], "duplicates": "sum", "self_loops": "drop"}
        graph = Graph.from_arrow(pyarrow.table(TABLE), weights=2, **options)
        assert edges_of(graph) == [(3, 5, 4.0), (5, 3, 4.0), (5, 9, 0.5), (9, 5, 0.5)]
        assert graph.num_vertices == 4

    def test_a_column_may_serve_twice(self):
        graph = Graph.from_arrow(pyarrow.table(TABLE), weights="lanes", columns={"lanes": "lanes"})
        assert edges_of(graph)[0] == (3, 5, 2, 2)

    def test_columns_of_one_name_are_told_apart_by_position(self):
        table = pyarrow.table([[1, 2], [3, 4], [0.5, 1.5]], names=["v", "v", "v"])
        assert edges_of(Graph.from_arrow(table, weights=2)) == [(1, 3, 0.5), (2, 4, 1.5)]

    def test_an_empty_table(self):
        nothing = pyarrow.table(
            {"s": pyarrow.array([], pyarrow.int64()), "t": pyarrow.array([], pyarrow.int64())}
        )
        assert Graph.from_arrow(nothing).num_vertices == 0

    @pytest.mark.parametrize(
        ("table", "options", "problem"),
        [
            (TABLE, {"source": "form"}, "is named 'form'.*try 'from'"),
            (TABLE, {"target": 7}, "is number 7"),
            (TABLE, {"weights": 2, "columns": {"weight": 3}}, r"columns= has \['weight'\]"),
            ({"s": [1, None], "t": [1, 2]}, {}, "'s' has 1 missing"),
            ({"s": [1.5], "t": [1]}, {}, r"is 1\.5: an id given as float must be whole"),
            ({"s": [True], "t": [1]}, {}, "'s' is bool; ids must be integers or text"),
            (
                {"s": [1], "t": [2], "w": ["x"]},
                {"weights": "w"},
                "'w' is string; an edge column must be numeric",
            ),
            ({"s": [1], "t": ["a"]}, {}, "one end of the edges has string ids"),
        ],
    )
    def test_bad_input(self, table, options, problem):
        with pytest.raises(GraphError, match=problem):
            Graph.from_arrow(pyarrow.table(table), **options)

    def test_what_is_no_table(self):
        with pytest.raises(GraphError, match="a table of pyarrow, or of a data frame, not of list"):
            Graph.from_arrow([[1, 2]])

    def test_a_data_frame_whose_column_mixes_types_is_told_so(self):
        pandas = pytest.importorskip("pandas")
        mixed = pandas.DataFrame({"s": [1, 2], "t": ["a", 3]})
        with pytest.raises(GraphError, match=r"the table: .*column t\b.*one type"):
            Graph.from_pandas(mixed)

    @pytest.mark.parametrize("size", [2, 3])
    def test_several_ranks_share_a_table_or_bring_their_own(self, run_ranks, battery, size):
        sample = battery["skewed"]
        table = pyarrow.table({"s": sample.sources, "t": sample.targets, "w": sample.weights})
        alone = Graph.from_arrow(table, weights=2, vertices=[1000, 2000])

        def bring_own(group):
            first, stop = (table.num_rows * rank // size for rank in (group.rank, group.rank + 1))
            named = [1000, 2000] if group.rank == 1 else []
            own = table.slice(first, stop - first)
            return Graph.from_arrow(own, weights=2, vertices=named, local=True, group=group)

        def share(group):
            return Graph.from_arrow(Stream(table), weights=2, vertices=[1000, 2000], group=group)

        for parts in (run_ranks(size, share), run_ranks(size, bring_own)):
            assert np.concatenate([part.targets for part in parts]).tolist() == alone.targets.tolist()
            weights = np.concatenate([part.columns["weight"] for part in parts])
            assert weights.tolist() == alone.columns["weight"].tolist()
            assert parts[0].num_vertices == alone.num_vertices
