"""Maximum flow against SciPy and NetworkX: its value, what it is made of, and the minimum cut."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pytest
from app_judges import QUICK_RUNS, RANDOM, RUNS, as_networkx, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow as flow_of_scipy
from ways import Way, results_of

from sigps import ConfigError, Graph, GraphError, Result
from sigps.apps import maximum_flow


def check(sample: Sample, source: Any, target: Any, ways: list[Way], tolerance: float = 0.0) -> None:
    """Compare value and cut with NetworkX, which takes the cut with the fewest vertices on the target's side, too."""
    merged = nx.DiGraph() if sample.directed else nx.Graph()
    merged.add_nodes_from(vertices_of(sample))
    for u, v, capacity in as_networkx(sample).edges(data="weight"):
        before = merged[u][v]["capacity"] if merged.has_edge(u, v) else 0
        merged.add_edge(u, v, capacity=before + capacity)
    value, (before_cut, _) = nx.minimum_cut(merged, source, target)
    for way, result in results_of(partial(maximum_flow, source=source, target=target), sample, ways):
        assert result.reason == "converged", way
        assert result.aggregators["flow"] == pytest.approx(value, abs=tolerance), way
        assert set(result.ids[result["is_source_side"]].tolist()) == before_cut, way
        check_edges(result, sample, source, target, tolerance)


def check_edges(result: Result, sample: Sample, source: Any, target: Any, tolerance: float) -> None:
    """Check that edges carry what they may, that vertices keep nothing, and that the cut is as large as the flow."""
    balance = dict.fromkeys(vertices_of(sample), 0)
    edges = result.edges.sources.tolist(), result.edges.targets.tolist(), result.edges["flow"].tolist()
    side = dict(zip(result.ids.tolist(), result["is_source_side"].tolist(), strict=True))
    rows = as_networkx(sample).edges(data="weight")
    wanted = sorted((u, v) if sample.directed or u <= v else (v, u) for u, v, _ in rows)
    assert list(zip(*edges[:2], strict=True)) == wanted
    room: dict[Any, list[float]] = {}
    for u, v, capacity in rows:
        room.setdefault((u, v) if sample.directed or u <= v else (v, u), []).append(capacity)
    carried: dict[Any, list[float]] = {}
    crossing = 0
    for u, v, flow in zip(*edges, strict=True):
        carried.setdefault((u, v), []).append(flow)
        balance[u] -= flow
        balance[v] += flow
        crossing += flow * (side[u] - side[v])
    for ends, flows in carried.items():
        for flow, capacity in zip(sorted(map(abs, flows)), sorted(room[ends]), strict=True):
            assert flow <= capacity + tolerance, ends
        assert sample.directed is False or min(flows) >= 0, ends
    value = result.aggregators["flow"]
    assert crossing == pytest.approx(value, abs=tolerance)
    expected = dict.fromkeys(balance, 0) | {source: -value, target: value}
    assert balance == pytest.approx(expected, abs=tolerance)


def whole(sample: Sample) -> Sample:
    weights = sample.weights and [round(8 * abs(weight)) for weight in sample.weights]
    return Sample(sample.sources, sample.targets, weights, sample.directed, vertices_of(sample))


@pytest.mark.parametrize("name", [name for name in NAMES if len(vertices_of(BATTERY[name])) > 1])
def test_flows_of_the_battery(name: str) -> None:
    sample = whole(BATTERY[name])
    ids = vertices_of(sample)
    ways = {"grid": RUNS, "skewed": [Way(), Way(3, partitioner="hash")]}.get(name, QUICK_RUNS)
    check(sample, ids[0], ids[-1], ways)


@RANDOM
@given(samples(), st.data())
def test_flows_of_random_graphs(sample: Sample, data: st.DataObject) -> None:
    ids = vertices_of(sample)
    if len(ids) > 1:
        source, target = data.draw(st.permutations(ids))[:2]
        check(whole(sample), source, target, QUICK_RUNS)


def drawn(seed: int, n: int, num_edges: int, directed: bool) -> Sample:
    draw = np.random.default_rng(seed)
    ends = draw.integers(0, n, (2, num_edges)).tolist()
    return Sample(*ends, draw.integers(0, 9, num_edges).tolist(), directed, list(range(n)))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_flows_that_must_be_found_by_several_searches(seed: int, directed: bool) -> None:
    check(drawn(seed, 30, 100 + 20 * seed, directed), 0, 29, [Way(), Way(2, partitioner="hash")])


@pytest.mark.parametrize("way", [Way(), Way(3, device="python", partitioner="hash")])
def test_capacities_that_are_no_whole_numbers(way: Way) -> None:
    """Sums of thirds round; the cut is the same where no other one is as small."""
    sample = drawn(7, 20, 90, directed=True)
    assert sample.weights is not None
    sample.weights[:] = [weight / 3 + 0.1 * i for i, weight in enumerate(sample.weights)]
    check(sample, 0, 19, [way], tolerance=1e-12)
    sample.weights[:] = [weight * 1e-300 for weight in sample.weights]
    check(sample, 0, 19, [way], tolerance=1e-312)
    check(Sample([0, 1, 2], [1, 2, 1], [0.5, 0.25, 0.0], True), 2, 0, [way])


def test_the_value_is_that_of_scipy_on_a_larger_graph() -> None:
    draw = np.random.default_rng(5)
    ends, capacity = draw.integers(0, 2000, (2, 12000)), draw.integers(1, 1000, 12000)
    matrix = csr_array((capacity.astype(np.int32), tuple(ends)), (2000, 2000))
    matrix.setdiag(0)
    result = maximum_flow(Graph.from_edges(*ends, weights=capacity), 3, 4, device="cpu")
    assert result.aggregators["flow"] == flow_of_scipy(matrix, 3, 4).flow_value


def test_whole_capacities_are_exact_up_to_2_to_the_62() -> None:
    least = 2**60 + 1
    sources, targets, weights = [0, 0, 1, 2, 0], [1, 2, 3, 3, 3], [least, 2**61, 2**63 - 1, 3, 5]
    result = maximum_flow(Graph.from_edges(sources, targets, weights), 0, 3, device="python")
    assert result.aggregators["flow"] == least + 8
    assert result.edges["flow"].tolist() == [least, 3, 5, least, 3]
    with pytest.raises(GraphError, match=r"2\*\*62.*floats"):
        maximum_flow(Graph.from_edges([0, 0], [1, 1], [2**61, 2**61]), 0, 1, device="python")
    as_floats = Graph.from_edges([0, 0], [1, 1], [2.0**61, 2.0**61])
    assert maximum_flow(as_floats, 0, 1, device="python").aggregators["flow"] == 2.0**62


def test_capacities_may_be_any_column_and_vertices_have_names() -> None:
    graph = Graph.from_edges(["a", "a", "b"], ["c", "b", "c"], columns={"pipes": [3, 1, 2]})
    result = maximum_flow(graph, "a", "c", capacity="pipes", device="python")
    assert (result.aggregators["flow"], result.ids[result["is_source_side"]].tolist()) == (4, ["a"])
    edges = result.edges.sources.tolist(), result.edges.targets.tolist(), result.edges["flow"].tolist()
    assert edges == (["a", "a", "b"], ["b", "c", "c"], [1, 3, 1])
    for capacity in ("weight", None):
        assert maximum_flow(graph, "a", "c", capacity, device="python").aggregators["flow"] == 2


def test_what_cannot_be_is_named() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], weights=[1.0, -2.5])
    with pytest.raises(GraphError, match=r"maximum_flow\(target=\).*no vertex 9"):
        maximum_flow(graph, 0, 9, None)
    with pytest.raises(GraphError, match=r"'weight' must be at least 0, but an edge has -2\.5"):
        maximum_flow(graph, 0, 2)
    with pytest.raises(ConfigError, match=r"no edge column 'pipes'; its columns are: weight"):
        maximum_flow(graph, 0, 2, capacity="pipes")
    with pytest.raises(ConfigError, match="source=2 and target=2 must be different vertices"):
        maximum_flow(graph, 2, 2, None)
    with pytest.raises(ConfigError, match="max_supersteps"):
        maximum_flow(graph, 0, 2, None, device="python", max_supersteps=3)
