"""The edges of a part by source, grouped on a GPU and by CPU cores."""

from __future__ import annotations

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.partitioning.partition import partition


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["edges", "hash"])
@pytest.mark.parametrize(
    "name", ["skewed", "grid", "parallel_edges_undirected", "two_components", "hub_on_a_partition_border"]
)
def test_a_gpu_groups_edges_as_cpu_cores_do(name: str, method: str) -> None:
    from sigps.device.cuda import find_gpu
    from sigps.engine.gpu.pushed_edges import pushed_edges

    def build(group: ThreadGroup) -> Subgraph:
        graph = BATTERY[name].build(group=group)
        return build_subgraph(graph, partition(graph, group.size, method), with_outgoing=False)

    for part in run_ranks(3, build):
        found, wanted = pushed_edges(part, find_gpu(), min_edges=0), part.pushed
        assert found is not wanted
        np.testing.assert_array_equal(found.offsets, wanted.offsets)
        np.testing.assert_array_equal(found.ends, wanted.ends)
        assert found.ends.dtype == wanted.ends.dtype
        assert set(found.columns) == set(wanted.columns)
        for column in wanted.columns:
            np.testing.assert_array_equal(found.columns[column], wanted.columns[column])
