"""Served functions return what NetworkX returns: values, types, and the order of dictionaries, lists and iterators."""

import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction

import networkx as nx
import pytest

import sigps.networkx.backend  # noqa: F401  it registers what is served
from sigps.networkx.serving import CALLS, SERVED


def undirected() -> nx.Graph:
    """Several components, isolated nodes, ties of weights, nodes that are no numbers, in no order."""
    rng = random.Random(3)
    graph = nx.Graph()
    nodes = [f"n{i}" if i % 3 else (i, "t") for i in range(40)]
    rng.shuffle(nodes)
    graph.add_nodes_from(nodes, colour="red")
    for _ in range(75):
        a, b = rng.sample(nodes[:35], 2)
        graph.add_edge(a, b, weight=rng.randint(1, 4), length=rng.randint(1, 8) / 4)
    return graph


def connected() -> nx.Graph:
    graph = undirected()
    return graph.subgraph(max(nx.connected_components(graph), key=len)).copy()


def directed() -> nx.DiGraph:
    rng = random.Random(5)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    while graph.number_of_edges() < 80:
        a, b = rng.randrange(28), rng.randrange(28)
        graph.add_edge(a, b, weight=rng.randint(1, 4), length=rng.randint(1, 8) / 4)
    return graph


def strong() -> nx.DiGraph:
    graph = directed()
    return graph.subgraph(max(nx.strongly_connected_components(graph), key=len)).copy()


def acyclic() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(reversed(range(30)))
    graph.add_edges_from((a, b, d) for a, b, d in directed().edges(data=True) if a < b)
    return graph


def tree() -> nx.Graph:
    return nx.random_labeled_tree(25, seed=4)


def simple() -> nx.Graph:
    return nx.gnp_random_graph(30, 0.25, seed=7)


def pipes() -> nx.DiGraph:
    """Some edges carry any amount, but no path of these leads from 0 to 29; some carry less than nothing."""
    graph = directed()
    for n, (_, _, data) in enumerate(graph.edges(data=True)):
        data["room"] = (math.inf, -1, 5, 2, 7, 1, 3, 4)[n % 8]
    graph.add_edge(27, 29)
    graph.add_edges_from([(7, 29), (8, 29)], room=9)
    return graph


U, C, D, S, A, T, P = undirected(), connected(), directed(), strong(), acyclic(), tree(), simple()
u0, c0, d0, s0 = (next(iter(graph)) for graph in (U, C, D, S))
d1 = next(iter(D[d0]))
c1 = list(C)[-1]
a0, *_, a1 = nx.dag_longest_path(A)
R = pipes()
FLOWS = [
    (C, c0, c1, "weight"),
    (U, u0, "n37", "length"),
    (D, d0, 20, "length"),
    (D, 29, 3),
    (R, 0, 29, "room"),
]

SAME = {
    "all_pairs_bellman_ford_path_length": [(U,), (D, "length")],
    "all_pairs_dijkstra_path_length": [(U,), (D, 3, "length")],
    "all_pairs_shortest_path": [(U,), (D, 2)],
    "all_pairs_shortest_path_length": [(U,), (D, 2)],
    "ancestors": [(D, 20), (U, u0)],
    "attracting_components": [(D,), (S,), (A,)],
    "average_clustering": [(P,), (P, [1, 2, 5]), (P, None, None, False)],
    "average_shortest_path_length": [(C,), (C, "length"), (S,), (S, "weight", "bellman-ford")],
    "bellman_ford_path_length": [(C, c0, c1), (D, d0, d1, "length"), (D, d0, d0)],
    "betweenness_centrality": [
        (U,),
        (D,),
        (U, None, False),
        (D, None, True, "length"),
        (U, None, False, "weight", True),
        (U, 10, True, None, False, 42),
        (D, 10, False, None, False, 42),
        (D, 7, False, "weight", True, 1),
    ],
    "bfs_edges": [(U, u0), (D, 3, True), (D, 3, False, 2)],
    "bfs_layers": [(U, u0), (D, 3)],
    "bfs_predecessors": [(U, u0), (D, 3, 2)],
    "bfs_successors": [(U, u0), (D, 3), (U, "n37", 3)],
    "bfs_tree": [(U, u0), (D, 3, True), (D, 3, False, 1)],
    "bridges": [(U,), (U, "n37"), (C,), (nx.Graph([(1, 1), (1, 2)]),), (nx.Graph(),)],
    "center": [(C,), (C, None, False, "length"), (S,)],
    "closeness_centrality": [(U,), (D,), (U, u0), (D, 3, "length"), (D, None, "weight", False)],
    "clustering": [(P,), (P, 3), (P, [3, 4]), (U,)],
    "connected_components": [(U,), (C,)],
    "core_number": [(P,), (U,)],
    "dag_longest_path_length": [(A,), (A, "length"), (A, "none")],
    "degree_centrality": [(U,), (D,), (nx.Graph([(1, 1), (1, 2)]),), (nx.MultiGraph([(1, 2), (1, 2)]),)],
    "descendants": [(D, 3), (U, u0)],
    "descendants_at_distance": [(D, 3, 2), (D, 3, 0), (D, 3, 90)],
    "diameter": [(C,), (C, None, False, "length"), (S,)],
    "dijkstra_path_length": [(C, c0, c1), (D, d0, d1, "length"), (D, d0, d0)],
    "eccentricity": [(C,), (C, c0), (C, [c0, c1], None, "weight"), (S, None, None, "length")],
    "edge_betweenness_centrality": [
        (U,),
        (D,),
        (D, None, False, "length"),
        (U, 9, True, None, 3),
        (C, 9, False, None, 3),
    ],
    "ego_graph": [(U, u0), (D, 3, 1.5), (D, 3, 2, False), (U, u0, 3, True, True, "weight")],
    "eigenvector_centrality": [(P,), (P, 500, 1e-9), (S, 1000), (C, 1000, 1e-6, None, "weight")],
    "global_efficiency": [(U,), (C,)],
    "greedy_color": [(U,), (P, "largest_first")],
    "harmonic_centrality": [(U,), (D,), (D, [3, 4], "length"), (U, None, None, [u0])],
    "has_bridges": [(U,), (nx.cycle_graph(4),), (U, "n37")],
    "has_path": [(U, u0, c1), (D, 3, 29)],
    "hits": [(directed(),)],
    "in_degree_centrality": [(D,)],
    "is_bipartite": [(P,), (T,), (nx.Graph([(1, 1)]),), (nx.Graph(),)],
    "is_connected": [(U,), (C,)],
    "is_directed_acyclic_graph": [(A,), (D,), (U,)],
    "is_forest": [(T,), (U,), (D,)],
    "is_strongly_connected": [(S,), (D,)],
    "is_tree": [(T,), (U,), (nx.path_graph(4, nx.DiGraph),)],
    "is_weakly_connected": [(S,), (D,)],
    "isolates": [(U,), (D,)],
    "k_core": [(P,), (U, 2)],
    "k_corona": [(P, 3), (U, 2)],
    "k_crust": [(P,), (U, 1)],
    "k_shell": [(P,), (U, 1)],
    "k_truss": [(P, 4), (P, 3), (P, 0), (U, 3)],
    "katz_centrality": [
        (P, 0.05),
        (D, 0.1, 2.0),
        (D, 0.05, {i: i for i in range(30)}, 1000, 1e-6, None, False, "weight"),
    ],
    "maximal_matching": [(U,), (P,), (nx.Graph([(1, 1), (1, 2)]),)],
    "maximum_flow_value": FLOWS,
    "maximum_spanning_edges": [(U,), (P,), (U, "kruskal", "length", True, False)],
    "maximum_spanning_tree": [(U,), (P,)],
    "minimum_cut": FLOWS,
    "minimum_cut_value": FLOWS,
    "minimum_spanning_edges": [(U,), (P,), (U, "kruskal", "length", True, False)],
    "minimum_spanning_tree": [(U,), (P,)],
    "multi_source_dijkstra_path_length": [(U, {u0, c1}), (D, [3, 4], 2, "length")],
    "node_connected_component": [(U, u0)],
    "number_attracting_components": [(D,), (S,)],
    "number_connected_components": [(U,)],
    "number_of_isolates": [(U,)],
    "number_strongly_connected_components": [(D,)],
    "number_weakly_connected_components": [(D,)],
    "out_degree_centrality": [(D,)],
    "pagerank": [
        (U,),
        (D, 0.6, {3: 1, 4: 2}, 200, 1e-9, {i: i + 1 for i in range(30)}, "length", {7: 1}),
        (nx.MultiDiGraph([(1, 2), (1, 2), (1, 3), (3, 1)]),),
    ],
    "periphery": [(C,), (C, None, False, "length"), (S,)],
    "predecessor": [(U, u0), (D, 3, None, 2), (D, 3, None, None, True)],
    "radius": [(C,), (C, None, False, "length"), (S,)],
    "shortest_path_length": [
        (U, u0),
        (D, None, 20),
        (D, d0, d1),
        (C, c0, c1, "length"),
        (D, None, 20, "weight"),
        (D,),
    ],
    "single_source_bellman_ford_path_length": [(U, u0), (D, 3, "length")],
    "single_source_dijkstra_path_length": [(U, u0), (D, 3, 3, "length")],
    "single_source_shortest_path": [(U, u0), (D, 3, 2)],
    "single_source_shortest_path_length": [(U, u0), (D, 3, 2), (D, 3, 1.5), (D, 3, -1)],
    "single_target_shortest_path": [(U, u0), (D, 20, 2), (D, 20, 0.5)],
    "single_target_shortest_path_length": [(U, u0), (D, 20, 2)],
    "strongly_connected_components": [(D,), (S,)],
    "topological_generations": [(A,)],
    "topological_sort": [(A,)],
    "transitivity": [(P,), (nx.Graph([(1, 2)]),)],
    "triangles": [(P,), (P, 3), (P, [1, 2])],
    "weakly_connected_components": [(D,)],
    "wiener_index": [(C,), (U,), (S, "length")],
}
"""Calls whose results are the same."""

OF_SEVERAL = {
    "all_pairs_bellman_ford_path": [(U,)],
    "all_pairs_dijkstra": [(U,), (D, 3, "length")],
    "all_pairs_dijkstra_path": [(U,)],
    "bellman_ford_path": [(C, c0, c1, "length")],
    "bidirectional_dijkstra": [(C, c0, c1)],
    "bidirectional_shortest_path": [(C, c0, c1), (D, d0, d1)],
    "dijkstra_path": [(C, c0, c1), (D, d0, d1, "length")],
    "multi_source_dijkstra": [(U, {u0, c1}), (D, [3, 4], None, 2, "length"), (C, {c0}, c1)],
    "multi_source_dijkstra_path": [(U, {u0, c1})],
    "shortest_path": [
        (U, u0),
        (C, c0, c1),
        (D, None, 20, "length"),
        (D,),
        (D, 3, None, "weight", "bellman-ford"),
    ],
    "single_source_bellman_ford": [(U, u0), (C, c0, c1, "length")],
    "single_source_bellman_ford_path": [(U, u0)],
    "single_source_dijkstra": [(U, u0), (D, 3, None, 3, "length"), (C, c0, c1)],
    "single_source_dijkstra_path": [(U, u0), (D, 3, 3, "length")],
    "maximal_independent_set": [(U,), (P, None, 5)],
    "maximum_flow": FLOWS,
    "shortest_simple_paths": [
        (C, c0, c1),
        (C, c0, c1, "length"),
        (D, d0, d1, "weight"),
        (nx.cycle_graph(7), 0, 3),
        (A, a0, a1),
        (U, u0, u0),
    ],
}
"""Calls of which NetworkX may return one of several answers."""

UNORDERED = {"attracting_components", "strongly_connected_components", "hits"}
"""What comes in an order that NetworkX does not promise."""

BY_DISTANCE = "_length"
"""Dictionaries of distances: the nearest first; of the equally near NetworkX has those first that it found first."""


@pytest.fixture(autouse=True)
def no_note_of_the_cache(monkeypatch) -> None:
    monkeypatch.setattr(nx.config, "warnings_to_ignore", {"cache"})


def test_each_served_function_is_here() -> None:
    assert sorted(SERVED) == sorted({*SAME, *OF_SEVERAL})


def plain(value):
    """Return a result with iterators as lists and graphs as what they hold."""
    if isinstance(value, nx.Graph):
        return (
            type(value),
            value.graph,
            dict(value.nodes(data=True)),
            {a: dict(b) for a, b in value.adj.items()},
        )
    if isinstance(value, Iterator):
        return [plain(item) for item in value]
    return value


def close(ours, theirs) -> bool:
    """Tell whether values are the same up to the rounding of floats, and of the same types."""
    if isinstance(theirs, dict):
        return (
            isinstance(ours, dict)
            and ours.keys() == theirs.keys()
            and all(close(ours[k], theirs[k]) for k in theirs)
        )
    if isinstance(theirs, list | tuple):
        return (
            type(ours) is type(theirs)
            and len(ours) == len(theirs)
            and all(close(a, b) for a, b in zip(ours, theirs, strict=True))
        )
    if isinstance(theirs, float) or isinstance(ours, float):  # a sum that is 0 may be an int
        return type(ours) in (int, float) and math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-9)
    return type(ours) is type(theirs) and ours == theirs


def ordered(value) -> list:
    return [(k, ordered(v)) for k, v in value.items()] if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("name", "at"), [(name, at) for name, calls in SAME.items() for at in range(len(calls))]
)
def test_same_result(name: str, at: int) -> None:
    args = SAME[name][at]
    function = getattr(nx, name)
    before = CALLS[name]
    theirs = plain(function(*args))
    ours = plain(function(*args, backend="sigps"))
    assert CALLS[name] == before + 1
    if name in UNORDERED and isinstance(theirs, list):
        theirs, ours = sorted(theirs, key=sorted), sorted(ours, key=sorted)
    assert close(ours, theirs)
    if isinstance(theirs, dict) and BY_DISTANCE in name:
        values = list(ours.values())
        assert values == sorted(values)
    elif isinstance(theirs, dict) and name != "harmonic_centrality":  # NetworkX goes through a set
        assert list(ours) == list(theirs)


def length(graph, path, weight) -> float:
    return sum(graph[a][b].get(weight, 1) if weight else 1 for a, b in itertools.pairwise(path))


def same_lengths(graph, ours, theirs, weight) -> bool:
    """Tell whether paths, by their ends or alone, lead the same way round and are as long."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            same_lengths(graph, ours[k], theirs[k], weight) for k in theirs
        )
    ends = ours[0] == theirs[0] if theirs else not ours
    return ends and ours[-1] == theirs[-1] and length(graph, ours, weight) == length(graph, theirs, weight)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        (name, at)
        for name, calls in OF_SEVERAL.items()
        if name.endswith(("path", "dijkstra", "ford"))
        for at in range(len(calls))
    ],
)
def test_one_of_the_shortest_paths(name: str, at: int) -> None:
    args = OF_SEVERAL[name][at]
    graph = args[0]
    function = getattr(nx, name)
    weights = [value for value in args if isinstance(value, str) and value in ("weight", "length")]
    unweighted = name in ("shortest_path", "bidirectional_shortest_path")
    weight = weights[0] if weights else None if unweighted else "weight"
    theirs, ours = function(*args), function(*args, backend="sigps")
    if isinstance(theirs, Iterator):
        pairs = zip(ours, theirs, strict=True)
        pairs = [(a, b) for (end, a), (same, b) in pairs if end == same]
        assert len(pairs) == len(graph)
    else:
        pairs = [(ours, theirs)]
    for one, other in pairs:
        if isinstance(other, tuple):
            assert close(one[0], other[0])
            one, other = one[1], other[1]
        if name.startswith("multi_source") and isinstance(other, dict):
            assert {k: length(graph, p, weight) for k, p in one.items()} == {
                k: length(graph, p, weight) for k, p in other.items()
            }
        else:
            assert same_lengths(graph, one, other, weight)


@pytest.mark.parametrize("args", OF_SEVERAL["maximal_independent_set"])
def test_independent_sets_are_maximal(args) -> None:
    graph = args[0]
    found = nx.maximal_independent_set(*args, backend="sigps")
    assert isinstance(found, list)
    assert not any(graph.has_edge(a, b) for a in found for b in found)
    assert all(node in found or set(graph[node]) & set(found) for node in graph)


@pytest.mark.parametrize("args", FLOWS)
def test_flows_are_within_capacities_and_nothing_is_lost(args) -> None:
    graph, source, target, *rest = args
    (theirs, shape), (value, flows) = nx.maximum_flow(*args), nx.maximum_flow(*args, backend="sigps")
    assert close(value, theirs)
    assert ordered({u: [*near] for u, near in flows.items()}) == [(u, [*near]) for u, near in shape.items()]
    balance = dict.fromkeys(graph, 0)
    for u, near in flows.items():
        for v, flow in near.items():
            assert 0 <= flow <= max(0, graph[u][v].get(*rest, math.inf) if rest else math.inf)
            balance[u] -= flow
            balance[v] += flow
    assert close(balance, dict.fromkeys(graph, 0) | {source: -value, target: value})


def test_flows_refuse_as_networkx_does() -> None:
    endless = nx.DiGraph([(1, 2), (2, 3)])
    with_rest = {"residual": endless}
    for args, kwargs in [((R, 0, 99), {}), ((R, 4, 4), {}), ((endless, 1, 3), {}), ((R, 0, 29), with_rest)]:
        with pytest.raises(nx.NetworkXException) as theirs:
            nx.minimum_cut(*args, **kwargs)
        with pytest.raises(type(theirs.value)) as ours:
            nx.minimum_cut(*args, **kwargs, backend="sigps")
        assert type(ours.value) is type(theirs.value)
    for capacity in (Fraction(1, 2), "3", 2**70):
        with pytest.raises(NotImplementedError) as error:
            nx.maximum_flow(nx.DiGraph([(1, 2, {"capacity": capacity})]), 1, 2, backend="sigps")
        assert "sigps cannot take these capacities" in str(error.value.__cause__)
    with pytest.raises(NotImplementedError, match="given arguments"):
        nx.maximum_flow(R, 0, 29, "room", nx.algorithms.flow.dinitz, backend="sigps")


def test_random_sequential_colours_are_drawn_as_by_networkx() -> None:
    random.seed(11)
    theirs = nx.greedy_color(P, "random_sequential")
    random.seed(11)
    assert nx.greedy_color(P, "random_sequential", backend="sigps") == theirs


@pytest.mark.parametrize("at", range(len(OF_SEVERAL["shortest_simple_paths"])))
def test_paths_that_visit_no_node_twice(at: int) -> None:
    """Of the equally long NetworkX may have others where only the first ones are asked for."""
    graph, source, target, *rest = OF_SEVERAL["shortest_simple_paths"][at]
    weight, first = next(iter(rest), None), 60
    theirs, ours = (
        list(itertools.islice(nx.shortest_simple_paths(graph, source, target, weight, **where), first))
        for where in ({}, {"backend": "sigps"})
    )
    lengths = [length(graph, path, weight) for path in ours]
    assert lengths == [length(graph, path, weight) for path in theirs]
    assert all(nx.is_simple_path(graph, path) and (path[0], path[-1]) == (source, target) for path in ours)
    assert len({*map(tuple, ours)}) == len(ours)
    if len(ours) < first:
        assert sorted(ours, key=repr) == sorted(theirs, key=repr)
    keys = [
        (way, len(p), [[*graph].index(v) for v in reversed(p)]) for way, p in zip(lengths, ours, strict=True)
    ]
    assert keys == sorted(keys)


def test_paths_that_visit_no_node_twice_refuse_as_networkx_does() -> None:
    calls = [(U, u0, "absent"), (U, "absent", u0), (D, d0, 29), (nx.MultiGraph([(1, 2)]), 1, 2)]
    for args in calls:
        with pytest.raises((nx.NodeNotFound, nx.NetworkXNoPath, nx.NetworkXNotImplemented)) as theirs:
            list(nx.shortest_simple_paths(*args))
        with pytest.raises(type(theirs.value)):
            list(nx.shortest_simple_paths(*args, backend="sigps"))
