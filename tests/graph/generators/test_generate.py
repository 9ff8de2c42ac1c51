import doctest
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.errors import ConfigError, GraphError
from sigps.graph.generators import edge_streams
from sigps.graph.generators import generate as gen

CASES = {
    "rmat": {"scale": 6, "edge_factor": 5, "weights": "random"},
    "rmat_with_all_kept": {"scale": 5, "duplicates": "keep", "self_loops": "keep", "weights": "random"},
    "rmat_directed": {"scale": 6, "directed": True, "seed": 5},
    "erdos_renyi": {"n": 40, "m": 90, "weights": "random"},
    "erdos_renyi_directed": {"n": 40, "p": 0.1, "directed": True},
    "watts_strogatz": {"n": 30, "k": 4, "p": 0.4},
    "grid": {"rows": 5, "columns": 7, "weights": "random", "diagonals": True},
    "path": {"n": 9},
    "path_of_nothing": {"n": 0},
    "star": {"n": 12, "weights": "random"},
    "complete": {"n": 9},
}


def name_of(case):
    return next(name for name in gen.GENERATORS if case.startswith(name))


def stored_edges(graphs):
    """Return (source, target, weight) of each stored edge of the ranks' graphs, in their order."""
    edges = []
    for graph in graphs:
        gids = np.arange(graph.first_row, graph.first_row + graph.num_rows)
        sources = np.repeat(gids, np.diff(graph.offsets.astype(np.int64))).tolist()
        weights = graph.columns.get("weight", np.ones(graph.targets.size)).tolist()
        edges += zip(sources, graph.targets.tolist(), weights, strict=True)
    return edges


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 5])
def test_any_number_of_ranks_generates_the_same_graph(run_ranks, case, num_ranks):
    alone = gen.generate(name_of(case), **CASES[case])
    parts = run_ranks(num_ranks, lambda group: gen.generate(name_of(case), group=group, **CASES[case]))
    assert stored_edges(parts) == stored_edges([alone])
    assert {(part.num_vertices, part.num_edges, part.directed) for part in parts} == {
        (alone.num_vertices, alone.num_edges, alone.directed)
    }


@settings(deadline=None, max_examples=25)
@given(
    scale=st.integers(0, 5),
    edge_factor=st.integers(0, 6),
    seed=st.integers(0, 1000),
    directed=st.booleans(),
    num_ranks=st.integers(2, 4),
)
def test_rmat_on_several_ranks_is_rmat(run_ranks, scale, edge_factor, seed, directed, num_ranks):
    options = {"edge_factor": edge_factor, "seed": seed, "directed": directed, "weights": "random"}
    alone = gen.generate("rmat", scale=scale, **options)
    parts = run_ranks(num_ranks, lambda group: gen.generate("rmat", scale=scale, **options, group=group))
    assert stored_edges(parts) == stored_edges([alone])


def test_each_rank_draws_only_its_share(run_ranks, monkeypatch):
    drawn = []
    whole = gen.edge_stream("path", n=101)
    stream = gen.EdgeStream(101, 100, lambda begin, end: drawn.append((begin, end)) or whole.draw(begin, end))
    monkeypatch.setitem(gen.GENERATORS, "path", lambda: stream)
    run_ranks(3, lambda group: gen.generate("path", group=group))
    assert sorted(drawn) == [(0, 33), (33, 66), (66, 100)]


@pytest.mark.parametrize("directed", [False, True])
def test_rmat_drops_duplicates_and_self_loops(directed):
    graph = gen.generate("rmat", scale=6, edge_factor=8, directed=directed)
    sources, targets, _ = gen.edge_stream("rmat", scale=6, edge_factor=8).edges(0, 512)
    drawn = {(u, v) for u, v in zip(sources.tolist(), targets.tolist(), strict=True) if u != v}
    expected = drawn if directed else drawn | {(v, u) for u, v in drawn}
    assert [(u, v) for u, v, _ in stored_edges([graph])] == sorted(expected)
    assert len(drawn) < 512
    assert graph.num_vertices == 64
    assert graph.report.edges_given == 512


def test_rmat_keeps_duplicates_and_self_loops_if_asked():
    sources, targets, _ = gen.edge_stream("rmat", scale=6, edge_factor=8).edges(0, 512)
    graph = gen.generate("rmat", scale=6, edge_factor=8, directed=True, duplicates="keep", self_loops="keep")
    expected = sorted(zip(sources.tolist(), targets.tolist(), strict=True))
    assert [(u, v) for u, v, _ in stored_edges([graph])] == expected


def test_rmat_has_the_same_degrees_under_any_ids():
    degrees = [
        np.sort(gen.generate("rmat", scale=8, permute=permute).out_degrees()) for permute in (True, False)
    ]
    assert np.array_equal(*degrees)


def test_rmat_without_permutation_favours_small_ids():
    degrees = gen.generate("rmat", scale=10, permute=False).out_degrees()
    assert degrees[:512].sum() > 2 * degrees[512:].sum()
    permuted = gen.generate("rmat", scale=10).out_degrees()
    assert 0.5 < permuted[:512].sum() / permuted[512:].sum() < 2


@pytest.mark.parametrize("case", ["rmat", "erdos_renyi", "grid", "star"])
def test_weights_are_equal_in_both_directions(case):
    edges = stored_edges([gen.generate(name_of(case), **CASES[case])])
    weights = {(u, v): weight for u, v, weight in edges}
    assert all(weights[v, u] == weight for (u, v), weight in weights.items())
    assert all(weight in range(1, 256) for weight in weights.values())
    assert len(set(weights.values())) > 5


def test_weight_columns_are_float32_even_without_edges():
    assert gen.generate("path", n=5, weights="random").columns["weight"].dtype == np.float32
    assert not gen.generate("path", n=5).has_weights


def test_graphs_with_known_edges():
    for graph, referee in (
        (gen.generate("path", n=6), nx.path_graph(6)),
        (gen.generate("star", n=6), nx.star_graph(5)),
        (gen.generate("complete", n=6), nx.complete_graph(6)),
        (gen.generate("watts_strogatz", n=9, k=4, p=0), nx.watts_strogatz_graph(9, 4, 0)),
        (
            gen.generate("grid", rows=3, columns=4),
            nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted"),
        ),
    ):
        edges = sorted(itertools.chain(referee.edges, ((v, u) for u, v in referee.edges)))
        assert [(u, v) for u, v, _ in stored_edges([graph])] == edges
        assert not graph.directed
        assert graph.num_vertices == len(referee)


def test_isolated_vertices_are_vertices():
    graph = gen.generate("erdos_renyi", n=10, m=1)
    assert graph.num_vertices == 10
    assert graph.report.isolated == 8
    assert gen.generate("complete", n=1).num_vertices == 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rmatt", {}, "no generator 'rmatt'; did you mean 'rmat'\\? .*erdos_renyi"),
        ("zzz", {}, "no generator 'zzz'\\. The generators are rmat, "),
        ("erdos-renyi", {}, "did you mean 'erdos_renyi'"),
        ("rmat", {"scale": 4, "sede": 1}, "no option 'sede'; did you mean 'seed'\\? .*edge_factor"),
        ("rmat", {"scale": 4, "group": None, "qqqq": 1}, "no option 'qqqq'\\. Its options are scale"),
        ("rmat", {}, "'rmat' needs scale"),
        ("watts_strogatz", {"n": 5}, "needs k and p"),
        ("rmat", {"scale": "20"}, "scale is '20'"),
    ],
)
def test_wrong_names_are_answered_with_the_nearest(name, options, words):
    with pytest.raises(ConfigError, match=words):
        gen.generate(name, **options)


def test_examples_hold():
    assert doctest.testmod(gen).attempted > 0
    assert doctest.testmod(gen).failed == 0


@pytest.mark.parametrize(("generator", "options"), [("rmat", {"scale": 40}), ("path", {"n": 1 << 40})])
def test_more_than_the_machine_holds_is_refused_before_edges_are_drawn(generator, options, monkeypatch):
    monkeypatch.setattr(edge_streams.EdgeStream, "edges", lambda *_: pytest.fail("drawn"))
    with pytest.raises(
        GraphError, match=rf"generator '{generator}': 1,099,511,627,77\d vertices and .* need at least"
    ):
        gen.generate(generator, **options)
