"""Graph: construction from arrays, its arrays' promises, in-edges and degrees."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from sigps.errors import GraphError
from sigps.graph import Graph
from sigps.group import Alone


class TestFromEdges:
    def test_rows_are_in_the_order_of_ids_and_targets_ascend(self):
        graph = Graph.from_edges([10, 30, 10], [30, 10, 20], [1.5, 2.5, 3.5])
        assert graph.ids.to_oids([0, 1, 2]).tolist() == [10, 20, 30]
        assert graph.offsets.tolist() == [0, 2, 2, 3]
        assert graph.targets.tolist() == [1, 2, 0]
        assert graph.columns["weight"].tolist() == [3.5, 1.5, 2.5]
        assert (graph.num_vertices, graph.num_edges, graph.directed, graph.has_weights) == (3, 3, True, True)
        assert (graph.first_row, graph.num_rows, graph.row_bounds.tolist()) == (0, 3, [0, 3])

    def test_dtypes_are_as_small_as_the_contract_says(self):
        graph = Graph.from_edges([0], [1], [1])
        assert graph.offsets.dtype == np.uint64
        assert graph.targets.dtype == np.uint32
        assert graph.nbytes == 3 * 8 + 4 + 8

    @pytest.mark.parametrize(
        ("given", "kept"),
        [
            (np.float64, np.float64),
            (np.float32, np.float32),
            (np.float16, np.float32),
            (np.int64, np.int64),
            (np.uint8, np.int64),
            (np.bool_, np.int64),
        ],
    )
    def test_weights_keep_one_of_three_types(self, given, kept):
        graph = Graph.from_edges([0, 1], [1, 0], np.array([1, 0], dtype=given))
        assert graph.columns["weight"].dtype == kept
        assert graph.columns["weight"].tolist() == [1, 0]

    def test_other_columns_keep_their_type(self):
        graph = Graph.from_edges([1, 0], [0, 1], columns={"time": np.array([7, 9], dtype=np.uint16)})
        assert graph.columns["time"].dtype == np.uint16
        assert graph.columns["time"].tolist() == [9, 7]
        assert not graph.has_weights

    def test_an_undirected_edge_is_in_both_rows_and_a_loop_once(self):
        graph = Graph.from_edges([0, 2, 1], [1, 2, 2], [5, 6, 7], directed=False)
        assert graph.offsets.tolist() == [0, 1, 3, 5]
        assert graph.targets.tolist() == [1, 0, 2, 1, 2]
        assert graph.columns["weight"].tolist() == [5, 5, 7, 7, 6]
        assert graph.num_edges == 5

    def test_undirected_parallel_edges_keep_the_given_order_in_both_rows(self):
        graph = Graph.from_edges([0, 1, 0], [1, 0, 1], [1, 2, 3], directed=False)
        assert graph.columns["weight"].tolist() == [1, 2, 3, 1, 2, 3]
        assert graph.report.duplicates == 2

    @pytest.mark.parametrize(
        ("duplicates", "weights"),
        [("keep", [3, 1, 2, 4]), ("drop", [3, 4]), ("sum", [6, 4]), ("min", [1, 4]), ("max", [3, 4])],
    )
    def test_duplicates(self, duplicates, weights):
        graph = Graph.from_edges([0, 0, 0, 1], [1, 1, 1, 0], [3, 1, 2, 4], duplicates=duplicates)
        assert graph.columns["weight"].tolist() == weights
        assert graph.report.duplicates == 2

    def test_a_vertex_of_a_dropped_self_loop_stays(self):
        graph = Graph.from_edges([0, 1], [0, 2], self_loops="drop")
        assert graph.num_vertices == 3
        assert graph.targets.tolist() == [2]
        assert (graph.report.self_loops, graph.report.isolated) == (1, 1)

    def test_ids_between_the_ends_are_no_vertices(self):
        graph = Graph.from_edges([0], [5])
        assert graph.num_vertices == 2
        assert graph.ids.to_gids([0, 3, 5]).tolist() == [0, -1, 1]

    def test_named_vertices_join_in_order(self):
        graph = Graph.from_edges([4], [9], vertices=[6, 4, -1])
        assert graph.ids.to_oids(range(4)).tolist() == [-1, 4, 6, 9]
        assert graph.offsets.tolist() == [0, 0, 1, 1, 1]
        assert graph.report.isolated == 2

    @pytest.mark.parametrize(
        ("sources", "targets", "kind"),
        [([0, 1], [1, 2], "identity"), ([5], [6], "range"), ([5], [7], "table"), (["a"], ["b"], "strings")],
    )
    def test_the_map_of_ids_is_as_small_as_can_be(self, sources, targets, kind):
        graph = Graph.from_edges(sources, targets)
        assert graph.ids.kind == graph.report.id_map == kind

    def test_reports_the_smallest_id(self):
        assert Graph.from_edges([-3], [8]).report.base == -3
        assert Graph.from_edges(["a"], ["b"]).report.base is None
        assert Graph.from_edges([], []).report.base is None

    def test_no_vertices(self):
        graph = Graph.from_edges([], [])
        assert (graph.num_vertices, graph.num_edges, graph.offsets.tolist()) == (0, 0, [0])
        assert graph.in_edges().offsets.tolist() == [0]
        assert graph.out_degrees().size == graph.in_degrees().size == 0

    def test_the_arrays_given_stay_as_they_are(self):
        sources, targets = np.array([3, 1], dtype=np.uint32), np.array([1, 3], dtype=np.uint32)
        weights = np.array([1.0, 2.0])
        graph = Graph.from_edges(sources, targets, weights, duplicates="sum", directed=False)
        assert (sources.tolist(), targets.tolist(), weights.tolist()) == ([3, 1], [1, 3], [1.0, 2.0])
        graph.columns["weight"][:] = 0
        assert weights.tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("arguments", "options", "problem"),
        [
            (([0, 1], [1]), {}, r"targets has shape \(1,\), sources \(2,\)"),
            (([0], [1], [1, 2]), {}, r"weight has shape \(2,\)"),
            (([[0]], [[1]]), {}, r"sources \(1, 1\)"),
            ((0, 1), {}, r"sources \(\)"),
            (([0.5], [1]), {}, r"sources\[0\] is 0\.5"),
            (([0], ["a"]), {}, "one end of the edges has string ids"),
            (([0], [1], [float("nan")]), {}, r"weight\[0\] is NaN"),
            (([0], [1], ["heavy"]), {}, "must be numeric"),
            (([0], [1], [None]), {}, "must be numeric"),
            (([0], [1], [1]), {"columns": {"weight": [1]}}, "given twice"),
            (([0], [1]), {"vertices": ["a"]}, "some ids are strings and some are integers"),
            (([0], [1]), {"vertices": [1.5]}, r"vertices\[0\] is 1\.5"),
            (([0], [1]), {"duplicates": "first"}, "duplicates='first' is not known"),
        ],
    )
    def test_bad_input(self, arguments, options, problem):
        with pytest.raises(GraphError, match=problem):
            Graph.from_edges(*arguments, **options)


class TestInEdges:
    def test_in_edges_are_the_transpose(self, sample):
        graph = sample.build(columns={"tag": np.arange(len(sample.sources))})
        in_edges = graph.in_edges()
        rows = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
        order = np.lexsort([np.arange(rows.size), rows, graph.targets])
        assert in_edges.sources.tolist() == rows[order].tolist()
        assert in_edges.sources.dtype == graph.targets.dtype
        assert in_edges.offsets.dtype == np.uint64
        assert in_edges.offsets[0] == 0
        assert np.diff(in_edges.offsets.astype(int)).tolist() == graph.in_degrees().tolist()
        if graph.directed:
            assert in_edges.columns["tag"].tolist() == graph.columns["tag"][order].tolist()

    def test_undirected_in_edges_are_the_same_arrays(self, battery):
        graph = battery["grid"].build()
        in_edges = graph.in_edges()
        assert in_edges.offsets is graph.offsets
        assert in_edges.sources is graph.targets
        assert in_edges.columns is graph.columns
        alone = graph.nbytes
        assert graph.nbytes == alone

    def test_are_made_once_and_counted(self, battery):
        graph = battery["path"].build()
        before = graph.nbytes
        assert graph.in_edges() is graph.in_edges()
        assert graph.nbytes == before + 7 * 8 + 5 * (4 + 8)

    def test_an_undirected_graph_is_symmetric(self, battery):
        for sample in battery.values():
            graph = sample.build(directed=False)
            rows = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
            weights = graph.columns.get("weight", np.zeros(rows.size))
            forward = sorted(zip(rows.tolist(), graph.targets.tolist(), weights.tolist(), strict=True))
            backward = sorted(zip(graph.targets.tolist(), rows.tolist(), weights.tolist(), strict=True))
            assert forward == backward

    def test_several_ranks_have_none(self, run_ranks):
        def ask(group):
            Graph.from_edges([0], [1], group=group).in_edges()

        with pytest.raises(GraphError, match="2 ranks share this graph; partition it"):
            run_ranks(2, ask)


class TestDegrees:
    def test_agree_with_networkx(self, sample):
        graph = sample.build()
        referee = (networkx.MultiDiGraph if sample.directed else networkx.MultiGraph)()
        referee.add_nodes_from(sample.vertices or [])
        referee.add_edges_from(zip(sample.sources, sample.targets, strict=True))
        oids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
        if sample.directed:
            assert graph.out_degrees().tolist() == [referee.out_degree(oid) for oid in oids]
            assert graph.in_degrees().tolist() == [referee.in_degree(oid) for oid in oids]
            graph.in_edges()
            assert graph.in_degrees().tolist() == [referee.in_degree(oid) for oid in oids]
        else:  # a self-loop counts twice in NetworkX
            loops = [referee.number_of_edges(oid, oid) for oid in oids]
            assert (graph.out_degrees() + loops).tolist() == [referee.degree(oid) for oid in oids]
            assert graph.in_degrees().tolist() == graph.out_degrees().tolist()

    def test_are_int64(self, battery):
        graph = battery["path"].build()
        assert graph.out_degrees().dtype == graph.in_degrees().dtype == np.int64


def test_repr_tells_the_size(battery):
    assert repr(battery["path"].build(group=Alone())) == (
        "<Graph: directed, 6 vertices, 5 stored edges, columns weight>"
    )
