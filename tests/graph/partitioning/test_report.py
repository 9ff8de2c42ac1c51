import doctest

import numpy as np
import pytest
from battery import BATTERY

from sigps.errors import PartitionError
from sigps.graph.generators.generate import generate
from sigps.graph.graph import Graph
from sigps.graph.partitioning import report as partition_report
from sigps.graph.partitioning.assignment import Contiguous, Table
from sigps.graph.partitioning.partition import METHODS, partition
from sigps.graph.partitioning.report import measure

FIELDS = ("vertices", "in_edges", "cut_edges", "ghosts", "num_bytes")


def count_by_hand(graph, owners, num_partitions):
    """Count vertices, in-edges, cut edges and ghosts edge by edge, on one rank."""
    vertices, in_edges, cut_edges = ([0] * num_partitions for _ in range(3))
    ghosts = [set() for _ in range(num_partitions)]
    for source in range(graph.num_vertices):
        vertices[owners[source]] += 1
        for target in graph.targets[int(graph.offsets[source]) : int(graph.offsets[source + 1])].tolist():
            part = owners[target]
            in_edges[part] += 1
            if owners[source] != part:
                cut_edges[part] += 1
                ghosts[part].add(source)
    return vertices, in_edges, cut_edges, [len(sources) for sources in ghosts]


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("method", METHODS)
def test_counts_are_those_of_a_plain_loop(name, method):
    graph = BATTERY[name].build()
    assignment = partition(graph, 3, method)
    report = measure(graph, assignment)
    owners = assignment.owner_of(np.arange(graph.num_vertices)).tolist()
    counts = (report.vertices, report.in_edges, report.cut_edges, report.ghosts)
    assert tuple(count.tolist() for count in counts) == count_by_hand(graph, owners, 3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_ranks", [2, 3])
@pytest.mark.parametrize(("block_edges", "block_pairs"), [(1 << 22, 1 << 24), (5, 1 << 24), (1 << 22, 1)])
def test_ranks_and_blocks_change_nothing(
    run_ranks, monkeypatch, directed, num_ranks, block_edges, block_pairs
):
    alone = generate("rmat", scale=6, edge_factor=3, directed=directed)
    expected = measure(alone, partition(alone, 4, "hash"))
    monkeypatch.setattr(partition_report, "_BLOCK_EDGES", block_edges)
    monkeypatch.setattr(partition_report, "_BLOCK_PAIRS", block_pairs)

    def report_on(group):
        graph = generate("rmat", scale=6, edge_factor=3, directed=directed, group=group)
        return measure(graph, partition(graph, 4, "hash"))

    for report in run_ranks(num_ranks, report_on):
        for field in FIELDS:
            assert getattr(report, field).tolist() == getattr(expected, field).tolist()


def test_a_hub_is_a_ghost_once_a_part():
    star = Graph.from_edges([0] * 6, [1, 2, 3, 4, 5, 5])
    report = measure(star, Table(np.array([0, 0, 1, 1, 2, 2]), 4))
    assert report.ghosts.tolist() == [0, 1, 1, 0]
    assert report.cut_edges.tolist() == [0, 2, 3, 0]


def test_bytes_count_both_directions_and_columns():
    halves = Contiguous(np.array([0, 2, 4]))
    edges = [0, 1, 2], [1, 2, 3]
    directed = measure(Graph.from_edges(*edges), halves).num_bytes
    # In-edges 1 and 2, of 4 bytes in both directions; two vertices of 40; one ghost of 16 in the second part.
    assert directed.tolist() == [8 + 80, 16 + 80 + 16]
    undirected = measure(Graph.from_edges(*edges, directed=False), halves).num_bytes
    assert undirected.tolist() == [12 + 80 + 16, 12 + 80 + 16]
    weighted = measure(Graph.from_edges(*edges, weights=[1.0, 2.0, 3.0]), halves).num_bytes
    assert weighted.tolist() == [24 + 80, 48 + 80 + 16]


def test_balance_is_the_largest_over_the_mean():
    report = measure(generate("path", n=5), Contiguous(np.array([0, 1, 5])))
    assert report.vertex_balance == 4 / 2.5
    assert report.balance == 7 / 4
    assert report.cut_share == 2 / 8
    assert report.num_partitions == 2


def test_an_empty_graph_is_in_balance():
    report = measure(generate("path", n=0), partition(generate("path", n=0), 3))
    assert (report.balance, report.vertex_balance, report.cut_share) == (1.0, 1.0, 0.0)
    assert report.vertices.tolist() == [0, 0, 0]


def test_the_table_lines_up():
    text = str(measure(generate("path", n=3000), Contiguous(np.array([0, 1000, 3000]))))
    assert text.splitlines() == [
        "part  vertices  in-edges  cut edges  ghosts    bytes",
        "   0     1,000     1,999          1       1   48,012",
        "   1     2,000     3,999          1       1   96,012",
        " all     3,000     5,998          2       2  144,024",
        "largest over mean: vertices 1.333, in-edges 1.333; 0.0% of the edges are cut",
    ]


def test_an_assignment_of_another_graph_is_refused():
    with pytest.raises(PartitionError, match="of 5 vertices and the graph has 6"):
        measure(generate("path", n=6), partition(generate("path", n=5), 2))


def test_examples_hold():
    assert doctest.testmod(partition_report).attempted > 0
    assert doctest.testmod(partition_report).failed == 0
