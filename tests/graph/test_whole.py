"""The whole graph on every rank: the graph of one rank, array by array."""

from __future__ import annotations

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps import Graph
from sigps.graph.whole import whole_graph


@pytest.mark.parametrize("name", ["one_vertex", "string_ids", "sparse_ids", "parallel_edges", "skewed"])
def test_every_rank_has_all_rows(name: str) -> None:
    def on_rank(group: ThreadGroup) -> tuple[Graph, bool]:
        graph = BATTERY[name].build(group=group)
        ages = {"age": 2.0 * np.arange(graph.num_vertices)}
        graph = graph.with_vertex_columns(ages)
        whole = whole_graph(graph)
        return whole, whole_graph(graph) is whole

    alone = BATTERY[name].build()
    assert whole_graph(alone) is alone
    for whole, is_kept in run_ranks(3, on_rank):
        assert is_kept
        assert (whole.num_vertices, whole.num_edges, whole.directed) == (
            alone.num_vertices,
            alone.num_edges,
            alone.directed,
        )
        np.testing.assert_array_equal(whole.offsets, alone.offsets, strict=True)
        np.testing.assert_array_equal(whole.targets, alone.targets, strict=True)
        assert whole.columns.keys() == alone.columns.keys()
        for column, values in alone.columns.items():
            np.testing.assert_array_equal(whole.columns[column], values, strict=True)
        assert whole.vertex_columns["age"].tolist() == [2.0 * v for v in range(alone.num_vertices)]
        assert np.asarray(whole.ids).tolist() == np.asarray(alone.ids).tolist()
        assert whole.ids.to_gids(np.asarray(alone.ids)).tolist() == list(range(alone.num_vertices))
