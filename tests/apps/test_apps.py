"""The apps against independent referees: NetworkX, SciPy, and loops of plain Python."""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import pkgutil
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import DEVICES, as_networkx, by_id, first_id
from battery import BATTERY, NAMES
from places import REPOSITORY
from scipy.sparse import csgraph

import sigps
from sigps import ConfigError, Graph, GraphError, Vertex, run
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_bfs_finds_the_levels_and_the_smallest_parents(name: str, device: Any) -> None:
    sample = BATTERY[name]
    source = first_id(sample)
    result = run(BFS(source=source), sample.build(), device=device)
    graph = as_networkx(sample)
    levels = nx.single_source_shortest_path_length(graph, source)
    assert by_id(result, "level") == {v: levels.get(v, -1) for v in graph}
    before = graph.predecessors if sample.directed else graph.neighbors
    parents = dict.fromkeys(graph) | {source: source}
    for v, level in levels.items():
        if level > 0:
            parents[v] = min(u for u in before(v) if levels.get(u, -1) == level - 1)
    assert by_id(result, "parent") == parents


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_sssp_finds_the_distances_and_the_smallest_parents(name: str, device: Any) -> None:
    sample = BATTERY[name]
    source = first_id(sample)
    result = run(SSSP(source=source), sample.build(), device=device)
    graph = as_networkx(sample)
    lengths = nx.single_source_dijkstra_path_length(graph, source)
    assert by_id(result, "distance") == {v: lengths.get(v, math.inf) for v in graph}  # whole weights: exact
    assert by_id(result, "parent") == dict.fromkeys(graph) | parents_of(graph, source, lengths)


def parents_of(graph: Any, source: Any, lengths: dict[Any, float]) -> dict[Any, Any]:
    """Return for each vertex the smallest last stop among the shortest paths with the fewest edges."""
    edges = [(u, v, w) for u, v, w in graph.edges(data="weight") if u in lengths and v in lengths]
    if not graph.is_directed():
        edges += [(v, u, w) for u, v, w in edges]
    tight = nx.DiGraph([(u, v) for u, v, w in edges if lengths[u] + w == lengths[v]])
    tight.add_node(source)
    hops = nx.single_source_shortest_path_length(tight, source)
    parents = {source: source}
    for v, count in hops.items():
        if count > 0:
            parents[v] = min(u for u in tight.predecessors(v) if hops[u] == count - 1)
    return parents


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_wcc_finds_the_smallest_id_of_each_weak_component(name: str, device: Any) -> None:
    sample = BATTERY[name]
    result = run(WCC(), sample.build(), device=device)
    components = nx.connected_components(nx.Graph(as_networkx(sample)))
    assert by_id(result, "component") == {v: min(c) for c in components for v in c}


@pytest.mark.parametrize(
    ("name", "device"), [(n, d) for n in NAMES for d in DEVICES if (n, d) != ("skewed", "python")]
)
def test_pagerank_is_that_of_networkx(name: str, device: Any) -> None:
    sample = BATTERY[name]
    result = run(PageRank(iterations=200), sample.build(), device=device)
    expected = nx.pagerank(as_networkx(sample), alpha=0.85, tol=1e-13, max_iter=500, weight=None)
    assert by_id(result, "rank") == pytest.approx(expected, rel=1e-9)
    assert result["rank"].sum() == pytest.approx(1.0, abs=1e-12)
    assert (result.supersteps, result.reason) == (201, "converged")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_out_degree_counts_the_edges(name: str, device: Any) -> None:
    sample = BATTERY[name]
    result = run(OutDegree(), sample.build(), device=device)
    expected = dict.fromkeys(as_networkx(sample), 0)
    for s, t in zip(sample.sources, sample.targets, strict=True):
        expected[s] += 1
        if not sample.directed and s != t:
            expected[t] += 1
    assert by_id(result, "degree") == expected


def power_iteration(
    graph: Graph, iterations: int, damping: float = 0.85, leak: bool = False
) -> np.ndarray[Any, Any]:
    """Slow twin: the formula in SciPy, one line a term."""
    matrix = graph.to_scipy().astype(float)
    matrix.data[:] = 1.0
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    rank = np.full(graph.num_vertices, 1.0 / graph.num_vertices)
    for _ in range(iterations):
        share = np.divide(rank, degree, out=np.zeros_like(rank), where=degree > 0)
        lost = 0.0 if leak else rank[degree == 0].sum()
        rank = (1 - damping) / len(rank) + damping * (matrix.T @ share + lost / len(rank))
    return rank


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_pagerank_after_some_rounds(iterations: int, leak: bool, device: Any) -> None:
    draw = np.random.default_rng(5)
    pairs = np.unique(draw.integers(0, 60, (300, 2)), axis=0)
    graph = Graph.from_edges(pairs[:, 0], pairs[:, 1], vertices=range(70))
    dangling = "leak" if leak else "redistribute"
    result = run(PageRank(damping=0.7, iterations=iterations, dangling=dangling), graph, device=device)
    expected = power_iteration(graph, iterations, damping=0.7, leak=leak)
    np.testing.assert_allclose(result["rank"], expected, rtol=1e-12)
    assert (expected.sum() < 0.999) == leak


@pytest.mark.parametrize("device", DEVICES)
def test_pagerank_stops_once_the_ranks_change_by_less_than_the_tolerance(device: Any) -> None:
    graph = BATTERY["grid"].build()
    result = run(PageRank(iterations=500, tolerance=1e-6), graph, device=device)
    rounds = result.supersteps - 1
    changes = [
        np.abs(power_iteration(graph, k) - power_iteration(graph, k - 1)).sum() for k in range(1, rounds + 1)
    ]
    first = next(k for k, change in enumerate(changes, 1) if change < 1e-6)
    assert rounds == first + 1  # the change of one round is known in the next
    np.testing.assert_allclose(result["rank"], power_iteration(graph, rounds), rtol=1e-12)


def test_pagerank_without_rounds_is_uniform() -> None:
    result = run(PageRank(iterations=0), BATTERY["path"].build())
    assert result["rank"].tolist() == [1 / 6] * 6
    assert result.supersteps == 1


@pytest.mark.slow
@pytest.mark.parametrize("directed", [True, False])
def test_paths_on_a_random_graph_are_those_of_scipy(directed: bool) -> None:
    draw = np.random.default_rng(11)
    pairs = np.unique(draw.integers(0, 500, (1500, 2)), axis=0)
    if not directed:
        pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    weights = draw.random(len(pairs)) + 0.01
    graph = Graph.from_edges(pairs[:, 0], pairs[:, 1], weights, directed=directed, vertices=range(500))
    source = int(pairs[0, 0])
    matrix = graph.to_scipy()
    for device in DEVICES:
        distance = run(SSSP(source=source), graph, device=device)["distance"]
        np.testing.assert_allclose(distance, csgraph.dijkstra(matrix, indices=source), rtol=1e-12)
        level = run(BFS(source=source), graph, device=device)["level"]
        expected = csgraph.dijkstra(matrix, indices=source, unweighted=True)
        assert np.where(level < 0, np.inf, level).tolist() == expected.tolist()
        _, labels = csgraph.connected_components(matrix, directed=True, connection="weak")
        component = run(WCC(), graph, device=device)["component"]
        firsts = np.array([np.flatnonzero(labels == label)[0] for label in labels])
        assert component.tolist() == firsts.tolist()


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_without_weights_distances_are_levels(direction: Any) -> None:
    """On more edges than have weights of their own."""
    draw = np.random.default_rng(12)
    graph = Graph.from_edges(*draw.integers(0, 1000, (2, 6000)), vertices=range(1000))
    expected = csgraph.dijkstra(graph.to_scipy(), indices=3, unweighted=True)
    distance = run(SSSP(source=3), graph, device="cpu", direction=direction)["distance"]
    assert np.isfinite(expected).sum() > 900
    assert distance.tolist() == expected.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_negative_edge_off_a_cycle_shortens_a_way(device: Any) -> None:
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5.0, 4.0, -3.0])
    assert run(SSSP(source=0), graph, device=device)["distance"].tolist() == [0.0, 5.0, 2.0]


@pytest.mark.parametrize("device", DEVICES)
def test_the_lightest_of_parallel_edges_counts(device: Any) -> None:
    graph = Graph.from_edges([0, 0, 0], [1, 1, 1], weights=[3, 1, 2])
    result = run(SSSP(source=0), graph, device=device)
    assert result["distance"].tolist() == [0.0, 1.0]


def test_a_source_that_is_no_vertex_is_named() -> None:
    for program in (BFS, SSSP):
        with pytest.raises(GraphError, match=rf"{program.__name__}\(source=\).*no vertex 77.*3"):
            run(program(source=77), Graph.from_edges([0, 1], [1, 2]))
        with pytest.raises(ConfigError, match="source"):
            program()


def test_a_field_of_the_wrong_kind_is_named() -> None:
    with pytest.raises(ConfigError, match=r"iterations=1\.5"):
        PageRank(iterations=1.5)
    with pytest.raises(ConfigError, match="did you mean 'damping'"):
        PageRank(dampin=0.5)


ANY = {"seed", "turn"}
"""Parameters of apps that may be any number."""


def test_every_app_says_what_its_parameters_may_be() -> None:
    open_ends = [
        f"{name}.{field.name}"
        for name in sigps.apps.__all__
        for field in getattr(sigps.apps, name).declaration.params
        if not (field.limits or field.is_vertex_id or field.type is bool or field.name in ANY)
    ]
    assert open_ends == []


@pytest.mark.parametrize(
    ("program", "given"),
    [
        ("PageRank", {"dangling": "Redistribute"}),
        ("PageRank", {"damping": math.nan}),
        ("PageRank", {"damping": 1.5}),
        ("PageRank", {"damping": -0.1}),
        ("PageRank", {"tolerance": -1e-9}),
        ("PersonalisedPageRank", {"iterations": 0}),
        ("KHop", {"source": 0, "hops": -1}),
        ("Katz", {"attenuation": math.inf}),
        ("HeatDiffusion", {"source": 0, "rate": -0.5}),
        ("Node2vecWalks", {"p": 0.0}),
        ("StreamDN", {"bits": 33}),
        ("HarmonicLabels", {"one": 1, "zero": 1}),
    ],
)
def test_parameters_out_of_range_are_refused(program: str, given: dict[str, Any]) -> None:
    name, value = list(given.items())[-1]
    with pytest.raises(ConfigError, match=f"^{program}: .*{name}={re.escape(repr(value))}"):
        getattr(sigps.apps, program)(**given)


EACH_COUNTS = {
    "CDLP", "EgoNet", "FastRP", "HarmonicLabels", "HeatDiffusion", "LabelGroups", "LabelPropagation", "LabelSpreading",
    "LouvainRound", "Node2vecWalks", "SemiClustering", "WeightedLabels",
}  # fmt: skip
"""Programs of undirected graphs in which each of parallel edges counts."""


def test_an_edge_and_its_reverse_count_once_but_where_the_readme_says() -> None:
    draw = np.random.default_rng(3)
    lower, upper = np.unique(np.sort(draw.integers(0, 14, (40, 2)), axis=1), axis=0).T
    lower, upper = lower[lower != upper], upper[lower != upper]
    repeated = [*lower, *upper[::2], 3], [*upper, *lower[::2], 3]
    plain, both = (
        Graph.from_edges(
            *ends, columns=dict.fromkeys(("up", "down"), np.ones(len(ends[0]))), directed=directed
        )
        for ends, directed in (((lower, upper), False), (repeated, True))
    )
    needed = {"source": 0, "target": 5, "one": 0, "zero": 5, "rate": 0.05}
    short: dict[str, dict[str, Any]] = {"StreamDN": {"scans": 4}, "SemiClustering": {"iterations": 3}}
    differ = set()
    for name in sigps.apps.__all__:
        app = getattr(sigps.apps, name)
        if not app.declaration.directed:
            given = {f.name: needed[f.name] for f in app.declaration.params if f.default is f.REQUIRED}
            made = app(**given, **short.get(name, {}))
            one, other = (run(made, graph, device="python") for graph in (plain, both))
            if not all(one[f].tolist() == other[f].tolist() for f in one.fields) or name == "EgoNet":
                differ.add(name)
    assert differ == EACH_COUNTS
    text = ALGORITHMS.split("Each counts where")[1].split(". The load")[0]
    assert set(re.findall(r"`(\w+)`", text)) == EACH_COUNTS


def test_whole_weights_that_floats_round_are_named(caplog: pytest.LogCaptureFixture) -> None:
    for weights in ([2**53, 1], [2.0**60, 1], [2**53 + 2, 1]):
        assert not caplog.messages
        run(SSSP(source=0), Graph.from_edges([0, 1], [1, 2], weights=weights), device="cpu")
    (warning,) = caplog.messages
    assert warning.startswith("SSSP computes with floats, which round whole weights beyond 2**53")


@pytest.mark.parametrize("seed", [-(2**63), -1, 2**63 - 1])
def test_a_seed_may_be_any_whole_number(seed: int) -> None:
    graph = Graph.from_edges([0, 1, 2, 3, -(2**62)], [1, 2, 0, 4, 2])
    for name in sigps.apps.__all__:
        app = getattr(sigps.apps, name)
        if any(field.name == "seed" for field in app.declaration.params):
            run(app(seed=seed), graph, device="python")


ROOMY = {
    "edge_betweenness": 95,
    "motifs": 150,
    "most_similar": 100,
    "dependencies": 85,
    "distances": 118,
    "personalised_pagerank": 67,
    "minimum_spanning_forest": 132,
    "dn_graphs": 78,
    "scc": 80,
    "semi_clustering": 99,
    "maximal_independent_set": 64,
    "streamdn": 87,
    "louvain": 140,
    "maximum_flow": 170,
    "capacities": 100,
    "leiden": 145,
    "hyperball": 90,
    "bridges": 95,
    "biconnected": 135,
    "shortest_paths": 70,
    "detours": 190,
    "arcs": 100,
    "driving": 90,
    "similarity": 70,
    "als": 100,
    "label_spreading": 63,
}
"""Lines of programs that need more: phases, equations, long explanations, or two ways to begin."""


ALGORITHMS = (REPOSITORY / "docs" / "algorithms.md").read_text().split("## Costs")[0]
LISTED = {
    name: (parameters, fields)
    for first, parameters, fields in re.findall(
        r"^\| (`[A-Z]\w+`[^|]*)\|([^|]*)\|([^|]*)\|$", ALGORITHMS, re.MULTILINE
    )
    for name in re.findall(r"`(\w+)`", first.split("(")[0])
}
"""The table of apps: parameters and fields."""

MODULES = [name for _, name, _ in pkgutil.iter_modules(sigps.apps.__path__)]
IMPORTED_BY_OTHERS = {"arcs", "capacities", "detours", "driving", "hashing", "sources"}
"""Modules that hold what several apps share, and no app."""

BETWEEN = {name: {"source": 0, "target": 19} for name in ("maximum_flow", "shortest_paths")}
"""What functions cannot do without, on the grid of the battery."""


@pytest.mark.parametrize("name", MODULES)
def test_every_app_has_a_screenful_a_doctest_and_public_imports_only(name: str) -> None:
    module = importlib.import_module(f"sigps.apps.{name}")
    source = inspect.getsource(module)
    assert source.count("\n") <= ROOMY.get(name, 62)
    ran = doctest.testmod(module)
    assert ran.attempted >= 2
    assert ran.failed == 0
    imports = [line for line in source.splitlines() if line.startswith(("from sigps.", "import sigps."))]
    assert not [line for line in imports if not line.startswith("from sigps.apps.")]


def test_every_app_is_listed_in_the_package_and_on_the_page_and_has_a_job() -> None:
    apps = {name: importlib.import_module(f"sigps.apps.{name}") for name in {*MODULES} - IMPORTED_BY_OTHERS}
    classes = {
        value.__name__
        for module in apps.values()
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Vertex) and value.__module__ == module.__name__
    }
    assert sorted(classes) == sigps.apps.__all__
    assert sorted(LISTED) == sigps.apps.__all__
    jobs = {path.stem for path in (REPOSITORY / "configs").glob("*.yaml")}
    functions = {name for name, value in vars(sigps.apps).items() if inspect.isfunction(value)}
    assert jobs == apps.keys() | functions
    for name in functions:
        names = [p.name for p in inspect.signature(getattr(sigps.apps, name)).parameters.values()]
        ((parameters, fields),) = re.findall(
            rf"^\| `{name}\(graph\)`[^|]*\|([^|]*)\|([^|]*)\|$", ALGORITHMS, re.MULTILINE
        )
        assert ["graph", *re.findall(r"`(\w+)", parameters), "options"] == names
        result = getattr(sigps.apps, name)(BATTERY["grid"].build(), **BETWEEN.get(name, {}), device="python")
        assert re.findall(r"`(\w+)`", fields) == [*result.fields, *result.aggregators]


@pytest.mark.parametrize("name", LISTED)
def test_the_page_names_the_parameters_and_fields(name: str) -> None:
    parameters, fields = LISTED[name]
    declared = getattr(sigps.apps, name).declaration
    assert re.findall(r"`(\w+)", parameters.split(" or ")[0]) == [f.name for f in declared.params]
    assert set(re.findall(r"`([\w.]+)", fields)) <= {
        f.name for f in (*declared.states, *declared.edge_states)
    }
