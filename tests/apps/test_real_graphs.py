"""The apps on real graphs: known facts of the graphs, and SciPy."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csgraph
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Result, Vertex
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank

OPTIONS: dict[str, dict[str, Any]] = {
    "wiki-Vote.txt.xz": {},
    "email-Eu-core.txt.xz": {},
    "p2p-Gnutella31.txt.xz": {},
    "soc-Epinions1.txt.xz": {},
    "rome99.gr.xz": {},
    "south_seattle_car.gr.xz": {},
    "luxembourg_osm.txt.xz": {"directed": False},
    "facebook_combined.txt.xz": {"directed": False},
    "email-Enron.txt.xz": {"directed": False},
    "USPowerGrid.txt.xz": {"directed": False},
    "as-caida20071105.txt.xz": {"directed": False},
    "dblp-2010.mtx.xz": {},
    "ca-CondMat.csv.xz": {},
    "delaunay_n16.txt.xz": {"directed": False},
    "cnr-2000.txt.xz": {},
    "USA-road-NY.gr.xz": {"directed": False},
    "wave.graph.xz": {},
    "web-NotreDame.txt.xz": {},
}


@functools.cache
def alone(folder: Path, name: str) -> Graph:
    return load(folder, name, None)


def load(folder: Path, name: str, group: ThreadGroup | None) -> Graph:
    return sigps.load(folder / name, group=group, **OPTIONS[name])


def results(folder: Path, name: str, program: Vertex, ranks: int, **options: Any) -> Result:
    if ranks == 1:
        return sigps.run(program, alone(folder, name), **options)
    return run_ranks(ranks, lambda g: sigps.run(program, load(folder, name, g), threads=1, **options))[0]


@pytest.mark.parametrize(
    ("name", "num_vertices", "num_components", "ranks"),
    [
        ("wiki-Vote.txt.xz", 7115, 24, 1),
        ("p2p-Gnutella31.txt.xz", 62586, 12, 3),
        ("soc-Epinions1.txt.xz", 75879, 2, 1),
        ("south_seattle_car.gr.xz", 26261, 3, 3),
        ("email-Enron.txt.xz", 36692, 1065, 1),
        ("facebook_combined.txt.xz", 4039, 1, 3),
        ("USPowerGrid.txt.xz", 4941, 1, 1),
        ("as-caida20071105.txt.xz", 26475, 1, 3),
        ("dblp-2010.mtx.xz", 326186, 22954 + 25539, 3),
        ("ca-CondMat.csv.xz", 23133, 567, 3),
        ("delaunay_n16.txt.xz", 65536, 1, 3),
        ("cnr-2000.txt.xz", 325557, 1, 1),
        ("USA-road-NY.gr.xz", 264346, 1, 1),
    ],
)
def test_components_are_as_many_as_known(
    name: str, num_vertices: int, num_components: int, ranks: int, data_dir: Path
) -> None:
    result = results(data_dir, name, WCC(), ranks)
    assert result.num_vertices == num_vertices
    firsts, members = np.unique(result["component"], return_inverse=True)
    assert firsts.size == num_components
    smallest = np.full(firsts.size, np.iinfo(np.int64).max)
    np.minimum.at(smallest, members, result.ids)
    assert np.array_equal(smallest, firsts)  # a component is named by its smallest id


def levels(graph: Graph, source: int) -> NDArray[np.float64]:
    gid = int(graph.ids.to_gids(np.array([source]))[0])
    found: NDArray[np.float64] = csgraph.dijkstra(graph.to_scipy(), indices=gid, unweighted=True)
    return found


@pytest.mark.parametrize(
    ("name", "source", "ranks"),
    [("soc-Epinions1.txt.xz", 0, 3), ("web-NotreDame.txt.xz", 0, 1), ("wave.graph.xz", 1, 3)],
)
def test_levels_are_those_of_scipy(name: str, source: int, ranks: int, data_dir: Path) -> None:
    graph = alone(data_dir, name)
    expected = levels(graph, source)
    result = results(data_dir, name, BFS(source=source), ranks)
    assert np.array_equal(np.where(result["level"] < 0, np.inf, result["level"]), expected)
    reached = np.isfinite(expected)
    assert reached.sum() > 1000
    parents = graph.ids.to_gids(result["parent"][reached])
    is_source = result.ids[reached] == source
    assert (expected[parents[~is_source]] == expected[reached][~is_source] - 1).all()


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_road_network_is_as_deep_as_known(ranks: int, data_dir: Path) -> None:
    """Sweeping twice from any vertex bounds the diameter from below; 1337 is known to be reached."""
    name = "luxembourg_osm.txt.xz"
    first = results(data_dir, name, BFS(source=1), 1)
    assert first["level"].min() == 0
    far = int(first.ids[first["level"].argmax()])
    second = results(data_dir, name, BFS(source=far), ranks)
    expected = levels(alone(data_dir, name), far)
    assert np.array_equal(second["level"], expected)
    assert second["level"].max() >= 1000
    assert second.supersteps >= second["level"].max()


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(("name", "source"), [("rome99.gr.xz", 1), ("south_seattle_car.gr.xz", 0)])
def test_distances_are_those_of_scipy(name: str, source: int, ranks: int, data_dir: Path) -> None:
    graph = alone(data_dir, name)
    gid = int(graph.ids.to_gids(np.array([source]))[0])
    expected = csgraph.dijkstra(lightest(graph), indices=gid)
    result = results(data_dir, name, SSSP(source=source), ranks)
    assert np.array_equal(result["distance"], expected)  # whole numbers: exact
    assert np.isfinite(expected).sum() > 3000


def lightest(graph: Graph) -> Any:
    """Return the matrix of the lightest of parallel edges (SciPy would add them up); no edge weighs 0."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(graph.num_vertices), graph.out_degrees())
    weights = graph.columns["weight"].astype(float)
    assert weights.min() > 0
    order = np.lexsort((weights, graph.targets, rows))
    rows, targets, weights = rows[order], graph.targets[order].astype(np.int64), weights[order]
    is_first = np.ones(rows.size, dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (targets[1:] != targets[:-1])
    shape = (graph.num_vertices, graph.num_vertices)
    return csr_array((weights[is_first], (rows[is_first], targets[is_first])), shape=shape)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("email-Eu-core.txt.xz", 1),
        ("soc-Epinions1.txt.xz", 3),
        ("facebook_combined.txt.xz", 3),
        ("web-NotreDame.txt.xz", 1),
    ],
)
def test_ranks_are_those_of_the_power_iteration(name: str, ranks: int, data_dir: Path) -> None:
    graph = alone(data_dir, name)
    matrix = graph.to_scipy().astype(float)
    matrix.data[:] = 1.0
    degree = np.asarray(matrix.sum(axis=1)).ravel()
    assert degree.sum() == graph.num_edges
    expected = np.full(graph.num_vertices, 1.0 / graph.num_vertices)
    for _ in range(10):
        share = np.divide(expected, degree, out=np.zeros_like(expected), where=degree > 0)
        lost = expected[degree == 0].sum()
        expected = 0.15 / expected.size + 0.85 * (matrix.T @ share + lost / expected.size)
    result = results(data_dir, name, PageRank(iterations=10), ranks)
    np.testing.assert_allclose(result["rank"], expected, rtol=1e-9)
    assert result["rank"].sum() == pytest.approx(1.0, abs=1e-9)


def test_deterministic_ranks_are_the_same_bit_for_bit(data_dir: Path) -> None:
    name = "soc-Epinions1.txt.xz"
    options = {"deterministic": True}
    first = results(data_dir, name, PageRank(iterations=5), 1, threads=2, **options)["rank"]
    second = results(data_dir, name, PageRank(iterations=5), 3, partitioner="hash", **options)["rank"]
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("ranks", [1, 3])
def test_degrees_add_up_to_the_edges(ranks: int, data_dir: Path) -> None:
    result = results(data_dir, "soc-Epinions1.txt.xz", OutDegree(), ranks)
    assert result["degree"].sum() == 508837
