import sys

import networkx as nx
import numpy as np
import pytest
from battery import BATTERY

from sigps.errors import PartitionError
from sigps.graph.generators.generate import generate
from sigps.graph.graph import Graph
from sigps.graph.partitioning import bfs_kernel
from sigps.graph.partitioning import gathered_partition as gathered
from sigps.graph.partitioning.partition import partition
from sigps.graph.partitioning.report import measure


def adjacency_of(graph):
    return gathered.symmetric_adjacency(graph.out_degrees(), graph.targets, graph.directed)


def simple_graph_of(graph):
    """Return the simple undirected graph under a graph, by NetworkX."""
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.num_vertices))
    sources = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    simple.add_edges_from(
        (u, v) for u, v in zip(sources.tolist(), graph.targets.tolist(), strict=True) if u != v
    )
    return simple


@pytest.mark.parametrize("name", BATTERY)
def test_symmetric_adjacency_is_the_simple_graph(name):
    graph = BATTERY[name].build()
    offsets, neighbours = adjacency_of(graph)
    simple = simple_graph_of(graph)
    assert offsets[-1] == neighbours.size
    for vertex in range(graph.num_vertices):
        found = neighbours[offsets[vertex] : offsets[vertex + 1]].tolist()
        assert found == sorted(simple[vertex])


@pytest.mark.parametrize("walk", [bfs_kernel.order_by_bfs, bfs_kernel.order_by_bfs.py_func])
@pytest.mark.parametrize("name", ["grid", "isolated", "two_components", "skewed", "empty"])
def test_bfs_order_goes_component_by_component_and_layer_by_layer(name, walk):
    graph = BATTERY[name].build()
    simple = simple_graph_of(graph)
    order = np.empty(graph.num_vertices, dtype=np.int64)
    walk(*adjacency_of(graph), order, np.zeros(order.size, dtype=np.uint8))
    assert sorted(order.tolist()) == list(range(graph.num_vertices))
    place, smallest = 0, -1
    while place < order.size:
        root = int(order[place])
        depths = nx.single_source_shortest_path_length(simple, root)
        component = order[place : place + len(depths)].tolist()
        assert set(component) == set(depths)
        assert [depths[vertex] for vertex in component] == sorted(depths.values())
        # Components come by their smallest vertex, and are walked from a vertex farthest from it.
        assert min(component) > smallest
        smallest = min(component)
        from_smallest = nx.single_source_shortest_path_length(simple, smallest)
        assert from_smallest[root] == max(from_smallest.values())
        place += len(component)


def test_bfs_cuts_a_shuffled_path_once_a_border():
    ids = np.random.default_rng(1).permutation(40)
    graph = Graph.from_edges(ids[:-1], ids[1:], directed=True)
    assert measure(graph, partition(graph, 4, "bfs")).cut_edges.sum() == 3


@pytest.mark.parametrize("method", ["bfs", "metis"])
def test_neighbours_stay_together_on_a_grid(method):
    graph = generate("grid", rows=20, columns=20)
    cut = {name: measure(graph, partition(graph, 4, name)).cut_edges.sum() for name in (method, "hash")}
    # Three straight borders of 20 edges, both directions; hashing cuts three quarters of 1520.
    assert cut[method] <= 2 * 120 < cut["hash"]


@pytest.mark.parametrize("method", ["bfs", "metis"])
def test_parts_get_work_by_their_capacities(method):
    graph = generate("erdos_renyi", n=2000, m=8000)
    owners = partition(graph, 3, method, capacities=[4, 1, 5]).owner_of(np.arange(2000))
    work = np.bincount(owners, weights=graph.out_degrees() + 1, minlength=3)
    assert np.abs(work / work.sum() - [0.4, 0.1, 0.5]).max() < 0.02


def test_metis_gives_more_parts_than_vertices_one_each():
    assignment = partition(generate("path", n=3), 5, "metis", capacities=[1, 3, 1, 2, 9])
    assert assignment.owner_of(np.arange(3)).tolist() == [4, 1, 3]


def test_metis_divides_a_graph_without_edges():
    graph = Graph.from_edges([], [], vertices=range(12))
    owners = partition(graph, 3, "metis").owner_of(np.arange(12))
    assert np.bincount(owners, minlength=3).tolist() == [4, 4, 4]


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_a_missing_pymetis_is_told_on_all_ranks(run_ranks, monkeypatch, num_ranks):
    monkeypatch.setitem(sys.modules, "pymetis", None)

    def problem(group):
        with pytest.raises(
            PartitionError, match=r"needs pymetis.*pip install 'sigps\[io\]'.*'bfs'"
        ) as caught:
            partition(generate("grid", rows=4, columns=4, group=group), 2, "metis")
        return str(caught.value)

    assert len(set(run_ranks(num_ranks, problem))) == 1


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_failure_on_rank_0_is_told_on_all_ranks(run_ranks, monkeypatch, num_ranks):
    def fail(*args):
        raise MemoryError("no room")

    monkeypatch.setattr(bfs_kernel, "order_by_bfs", fail)

    def problem(group):
        with pytest.raises(PartitionError, match="'bfs' failed: MemoryError: no room"):
            partition(generate("grid", rows=4, columns=4, group=group), 2, "bfs")
        return True

    assert run_ranks(num_ranks, problem) == [True] * num_ranks


@pytest.mark.parametrize("method", ["bfs", "metis"])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_too_large_to_gather_is_refused(monkeypatch, method, directed):
    graph = Graph.from_edges(range(10), range(1, 11), directed=directed)
    monkeypatch.setattr(gathered, "MAX_ENTRIES", 20)
    assert partition(graph, 2, method).num_vertices == 11
    monkeypatch.setattr(gathered, "MAX_ENTRIES", 19)
    with pytest.raises(
        PartitionError, match=f"'{method}' gathers.*20 edges.*more than 19.*Use 'edges' or 'hash'"
    ):
        partition(graph, 2, method)


@pytest.mark.parametrize("name", ["grid", "isolated", "two_components", "skewed", "directed_cycle"])
def test_levels_are_the_distances_there_are(name):
    graph = BATTERY[name].build()
    directed = nx.DiGraph()
    directed.add_nodes_from(range(graph.num_vertices))
    sources = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    directed.add_edges_from(zip(sources.tolist(), graph.targets.tolist(), strict=True))
    for source in range(0, graph.num_vertices, 3):
        distances = nx.single_source_shortest_path_length(directed, source)
        assert bfs_kernel.count_levels(graph.offsets, graph.targets, source) == max(distances.values()) + 1
