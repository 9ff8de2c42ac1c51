"""What NetworkX's dispatcher asks of the backend: which calls it takes, conversions, and the cache."""

import networkx as nx
import pytest

import sigps
from sigps.networkx.backend import BACKEND
from sigps.networkx.converted import ConvertedGraph
from sigps.networkx.serving import CALLS


@pytest.fixture
def no_note_of_the_cache(monkeypatch) -> None:
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


class Other(nx.Graph):
    """A subclass, which may show other edges than it holds."""


PATH = nx.path_graph(4)


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("pagerank", (PATH.subgraph([1, 2]),), "view"),
        ("pagerank", (nx.DiGraph([(1, 2)]).reverse(copy=False),), "view"),
        ("pagerank", (Other([(1, 2)]),), "no plain class"),
        ("core_number", (nx.MultiGraph([(1, 2)]),), "no multigraph"),
        ("core_number", (nx.DiGraph([(1, 2)]),), "directed"),
        ("dijkstra_path", (PATH, 0, 3, lambda u, v, d: 1), "computed by a function"),
        ("diameter", (PATH, None, True), "usebounds"),
        ("greedy_color", (PATH, "smallest_last"), "smallest_last"),
        ("minimum_spanning_tree", (PATH, "weight", "prim"), "prim"),
        ("hits", (PATH, 100, 1e-8, None, False), "normalized=False"),
        ("pagerank", (), "missing"),
    ],
)
def test_what_is_refused_says_why(name, args, reason) -> None:
    found = BACKEND.can_run(name, args, {})
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize(
    ("name", "args"),
    [("dijkstra_path", (PATH, 0, 3)), ("all_pairs_dijkstra_path_length", (PATH,)), ("pagerank", (PATH,))],
)
def test_negative_weights_and_others_are_left_to_networkx(name, args) -> None:
    negative = nx.path_graph(4)
    nx.set_edge_attributes(negative, -1, "weight")
    texts = nx.path_graph(4)
    nx.set_edge_attributes(texts, "far", "weight")
    for graph in (negative, texts):
        with pytest.raises(NotImplementedError):
            getattr(nx, name)(graph, *args[1:], backend="sigps")


def test_small_graphs_are_not_converted_unasked(monkeypatch, no_note_of_the_cache) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["sigps"])
    graph, before = nx.path_graph(50), CALLS["pagerank"]
    nx.pagerank(graph)
    assert CALLS["pagerank"] == before
    assert "fewer than min_edges = 100000" in BACKEND.should_run("pagerank", (graph,), {})
    nx.pagerank(graph, backend="sigps")
    assert BACKEND.should_run("pagerank", (graph,), {}) is True  # it is converted now
    nx.pagerank(graph)
    assert CALLS["pagerank"] == before + 2
    monkeypatch.setattr(nx.config.backends["sigps"], "min_edges", 10)
    nx.pagerank(nx.path_graph(50))
    assert CALLS["pagerank"] == before + 3


def test_a_graph_is_converted_once(no_note_of_the_cache) -> None:
    graph = nx.gnm_random_graph(20, 40, seed=1)
    nx.set_edge_attributes(graph, 2, "weight")
    nx.number_connected_components(graph, backend="sigps")
    first = BACKEND.convert_from_nx(graph)
    nx.pagerank(graph, backend="sigps")
    nx.core_number(graph, backend="sigps")
    assert BACKEND.convert_from_nx(graph) is first
    graph.add_edge(0, 99)  # which empties the cache
    assert nx.number_of_isolates(graph, backend="sigps") == nx.number_of_isolates(graph)
    assert BACKEND.convert_from_nx(graph) is not first
    assert len(nx.pagerank(graph, backend="sigps")) == 21


def test_without_the_cache_a_graph_is_converted_each_time(monkeypatch) -> None:
    graph = nx.path_graph(4)
    nx.pagerank(graph, backend="sigps")
    first = BACKEND.convert_from_nx(graph)
    monkeypatch.setattr(nx.config, "cache_converted_graphs", False)
    graph.adj[0][1]["weight"] = 7
    assert BACKEND.convert_from_nx(graph) is not first
    assert nx.pagerank(graph, backend="sigps") == pytest.approx(nx.pagerank(graph), abs=1e-9)


def test_the_graph_may_be_given_by_name(monkeypatch, no_note_of_the_cache) -> None:
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["sigps"])
    assert nx.katz_centrality(alpha=0.05, G=PATH) == pytest.approx(
        nx.katz_centrality(PATH, 0.05, backend="networkx")
    )


def test_a_converted_graph_stands_for_its_source() -> None:
    source = nx.DiGraph([("a", "b"), ("b", "b")])
    graph = BACKEND.convert_from_nx(source)
    assert isinstance(graph, ConvertedGraph)
    assert BACKEND.convert_to_nx(graph) is source
    assert nx.pagerank(graph) == pytest.approx(nx.pagerank(source))
    assert list(graph) == ["a", "b"]
    assert "a" in graph
    assert [] not in graph
    assert graph.degrees.tolist() == [1, 3]
    assert graph.num_edges == 2


def test_a_graph_that_changed_is_not_read_half() -> None:
    source = nx.path_graph(5)
    graph = BACKEND.convert_from_nx(source)
    source.add_edge(0, 4)
    with pytest.raises(RuntimeError, match="changed since it was converted"):
        list(nx.bfs_edges(graph, 0))


def test_the_device_is_configured(monkeypatch, no_note_of_the_cache) -> None:
    monkeypatch.setattr(nx.config.backends["sigps"], "device", "python")
    found = nx.pagerank(PATH, backend="sigps")
    assert list(found.values()) == pytest.approx(list(nx.pagerank(PATH).values()))
    monkeypatch.setattr(nx.config.backends["sigps"], "device", "abacus")
    with pytest.raises(sigps.ConfigError, match="abacus"):
        nx.pagerank(PATH, backend="sigps")


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_exceptions_are_networkxs(kind) -> None:
    empty, graph = kind(), kind([(1, 2)])
    with pytest.raises(nx.NodeNotFound):
        nx.shortest_path_length(graph, 9, backend="sigps")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.pagerank(nx.star_graph(5), max_iter=2, tol=1e-12, backend="sigps")
    with pytest.raises(nx.PowerIterationFailedConvergence):
        nx.katz_centrality(nx.star_graph(5), max_iter=2, backend="sigps")
    with pytest.raises(nx.NetworkXPointlessConcept):
        nx.eigenvector_centrality(empty, backend="sigps")
    with pytest.raises(nx.NetworkXNotImplemented):
        next(
            (nx.connected_components if kind is nx.DiGraph else nx.weakly_connected_components)(
                graph, backend="sigps"
            )
        )
    with pytest.raises(nx.NetworkXError):
        nx.eccentricity(nx.empty_graph(3, create_using=kind), backend="sigps")
    assert nx.pagerank(empty, backend="sigps") == {}


def test_ties_of_whole_weights_beyond_floats_are_refused() -> None:
    graph = nx.path_graph(3)
    nx.set_edge_attributes(graph, 2**60, "weight")
    with pytest.raises(NotImplementedError):
        nx.dijkstra_path_length(graph, 0, 2, backend="sigps")


def test_paths_along_edges_of_no_length_are_not_counted(no_note_of_the_cache) -> None:
    graph = nx.Graph([(0, 1, {"weight": 0}), (1, 2, {"weight": 1})])
    for function in (nx.betweenness_centrality, nx.edge_betweenness_centrality):
        with pytest.raises(NotImplementedError):
            function(graph, weight="weight", backend="sigps")
