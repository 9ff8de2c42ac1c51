import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.errors import ConfigError
from sigps.graph import random_bits as rb
from sigps.graph.generators import edge_streams as es

STREAMS = {
    "rmat": es.rmat(6, 4, weights="random"),
    "rmat_in_place": es.rmat(5, 4, permute=False),
    "rmat_one_vertex": es.rmat(0, 3),
    "erdos_renyi": es.erdos_renyi(40, m=90),
    "erdos_renyi_directed": es.erdos_renyi(40, p=0.05, directed=True, weights="random"),
    "watts_strogatz": es.watts_strogatz(50, 6, 0.3),
    "grid": es.grid(5, 7),
    "grid_with_diagonals": es.grid(4, 6, diagonals=True, weights="random"),
    "path": es.path(30),
    "star": es.star(30),
    "complete": es.complete(12),
    "empty": es.path(0),
}


def pairs_of(stream, *, ordered=False):
    """Return the drawn edges as a list of tuples; an undirected one as (smaller, larger) unless `ordered`."""
    sources, targets, _ = stream.edges(0, stream.num_edges)
    drawn = list(zip(sources.tolist(), targets.tolist(), strict=True))
    return drawn if ordered or stream.directed else [tuple(sorted(pair)) for pair in drawn]


def simple_edges(graph):
    return sorted(tuple(sorted(edge)) for edge in graph.edges)


@pytest.mark.parametrize("name", STREAMS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_any_chunking_draws_the_same_edges(name, data):
    stream = STREAMS[name]
    whole = stream.edges(0, stream.num_edges)
    begin = data.draw(st.integers(0, stream.num_edges))
    end = data.draw(st.integers(begin, stream.num_edges))
    chunk_edges = data.draw(st.integers(1, 40))
    threads = data.draw(st.integers(1, 3))
    chunks = list(stream.chunks(begin, end, chunk_edges=chunk_edges, threads=threads))
    assert all(0 < sources.size <= chunk_edges for sources, _, _ in chunks)
    for of_whole, part in ((whole[0], 0), (whole[1], 1)):
        drawn = np.concatenate([of_whole[:0], *(chunk[part] for chunk in chunks)])
        assert drawn.tolist() == of_whole[begin:end].tolist()
    for column in whole[2]:
        drawn = np.concatenate([whole[2][column][:0], *(chunk[2][column] for chunk in chunks)])
        assert drawn.tolist() == whole[2][column][begin:end].tolist()


@pytest.mark.parametrize("name", STREAMS)
def test_ends_are_vertices(name):
    stream = STREAMS[name]
    sources, targets, _ = stream.edges(0, stream.num_edges)
    assert sources.dtype == targets.dtype == np.int64
    assert sources.size == targets.size == stream.num_edges
    ends = np.concatenate([sources, targets])
    assert np.all((ends >= 0) & (ends < stream.num_vertices))


def test_an_error_while_drawing_ahead_reaches_the_caller():
    def draw(begin, end):
        if begin >= 20:
            raise MemoryError(f"no room for {begin}")
        return np.arange(begin, end), np.arange(begin, end)

    chunks = es.EdgeStream(100, 100, draw).chunks(0, 100, chunk_edges=10, threads=3)
    assert next(chunks)[0].tolist() == list(range(10))
    with pytest.raises(MemoryError, match="no room for 20"):
        list(chunks)


# --- recursive matrix ---


def rmat_in_plain_python(scale, num_edges, seed):
    """Return the edges by the definition, one uniform after another."""
    edges = []
    for edge in range(num_edges):
        source = target = 0
        for level in range(scale):
            word = rb.splitmix64_int(edge * 64 + level + (seed + 1) * 0x9E3779B97F4A7C15)
            u = (word >> 11) / 2**53
            quadrant = 0 if u < 0.57 else 1 if u < 0.76 else 2 if u < 0.95 else 3
            source, target = 2 * source + quadrant // 2, 2 * target + quadrant % 2
        edges.append((source, target))
    return edges


@pytest.mark.parametrize(("scale", "seed"), [(0, 1), (1, 1), (5, 1), (8, 1), (8, 77)])
def test_rmat_is_its_definition(scale, seed):
    stream = es.rmat(scale, 4, seed, permute=False)
    assert pairs_of(stream, ordered=True) == rmat_in_plain_python(scale, 4 << scale, seed)


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 8, 13])
@pytest.mark.parametrize("id_key", [None, 12345])
def test_rmat_compiled_draws_the_same_edges(scale, id_key):
    thresholds = np.array([rb.threshold(share) for share in (0.57, 0.76, 0.95)], dtype=np.uint64)
    with_numpy = es.draw_rmat(7, 2000, scale, thresholds, 3, id_key)
    compiled = es._draw_rmat_compiled(7, 2000, scale, thresholds, 3, id_key)
    assert np.array_equal(with_numpy, compiled)


@pytest.mark.parametrize(("edge_factor", "is_compiled"), [(18, False), (19, True)])
def test_rmat_is_compiled_above_2_to_22_levels(monkeypatch, edge_factor, is_compiled):
    compiled, calls = es._draw_rmat_compiled, []
    monkeypatch.setattr(es, "_draw_rmat_compiled", lambda *args: calls.append(args) or compiled(*args))
    es.rmat(14, edge_factor).edges(0, 10)
    assert bool(calls) == is_compiled


def test_rmat_draws_the_quadrants_by_their_shares():
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    sources, targets, _ = es.rmat(8, 256, a=0.4, b=0.3, c=0.2, permute=False).edges(0, 1 << 16)
    for level in range(8):
        quadrants = 2 * (sources >> level & 1) + (targets >> level & 1)
        counts = np.bincount(quadrants, minlength=4)
        deviations = np.sqrt((1 << 16) * shares * (1 - shares))
        assert np.all(np.abs(counts - (1 << 16) * shares) < 5 * deviations)


def test_rmat_permutes_ids_and_nothing_else():
    plain = pairs_of(es.rmat(7, 8, permute=False), ordered=True)
    permuted = pairs_of(es.rmat(7, 8), ordered=True)
    renamed = {}
    for before, after in zip(itertools.chain(*plain), itertools.chain(*permuted), strict=True):
        assert renamed.setdefault(before, after) == after
    assert len(set(renamed.values())) == len(renamed)
    assert any(before != after for before, after in renamed.items())


def test_seeds_give_different_edges():
    assert len({tuple(pairs_of(es.rmat(4, 4, seed, permute=False))) for seed in range(50)}) == 50


# --- random graphs ---


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_erdos_renyi_draws_each_pair_at_most_once(n, directed):
    join = itertools.permutations if directed else itertools.combinations
    pairs = sorted(join(range(n), 2))
    assert sorted(pairs_of(es.erdos_renyi(n, m=len(pairs), directed=directed))) == pairs
    assert sorted(pairs_of(es.erdos_renyi(n, p=1.0, directed=directed))) == pairs
    some = pairs_of(es.erdos_renyi(n, m=len(pairs) // 2, directed=directed))
    assert len(set(some)) == len(some) == len(pairs) // 2
    assert pairs_of(es.erdos_renyi(n, p=0, directed=directed)) == []


@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi_draws_all_pairs_equally_often(directed):
    num_pairs = 30 if directed else 15
    counts = {}
    for seed in range(600):
        for pair in pairs_of(es.erdos_renyi(6, m=num_pairs // 3, seed=seed, directed=directed)):
            counts[pair] = counts.get(pair, 0) + 1
    # A third of 600 draws, with a standard deviation of 11.5.
    assert len(counts) == num_pairs
    assert max(abs(count - 200) for count in counts.values()) < 5 * 11.5


def test_erdos_renyi_by_probability_has_binomially_many_edges():
    counts = np.array([es.erdos_renyi(100, p=0.1, seed=seed).num_edges for seed in range(400)])
    # 4950 pairs: mean 495, standard deviation 21.1; that of the mean of 400 is 1.06.
    assert abs(counts.mean() - 495) < 5 * 1.06
    assert 0.8 * 21.1 < counts.std() < 1.2 * 21.1


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 20), st.floats(0, 1), st.integers(0, 1000))
def test_watts_strogatz_is_simple_and_keeps_its_degree_sum(n, half, p, seed):
    half = min(half, (n - 1) // 2)
    pairs = pairs_of(es.watts_strogatz(n, 2 * half, p, seed))
    assert all(u != v for u, v in pairs)
    assert len(set(pairs)) == len(pairs) == n * half


@pytest.mark.parametrize(("n", "k"), [(3, 2), (10, 4), (11, 4), (7, 6), (5, 0)])
def test_watts_strogatz_without_moves_is_the_ring(n, k):
    assert sorted(pairs_of(es.watts_strogatz(n, k, 0.0))) == simple_edges(nx.watts_strogatz_graph(n, k, 0.0))


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
def test_watts_strogatz_moves_edges_off_the_ring_with_the_probability(p):
    n, k = 1000, 10
    pairs = np.array(pairs_of(es.watts_strogatz(n, k, p)))
    distances = pairs[:, 1] - pairs[:, 0]
    moved = np.minimum(distances, n - distances) > k // 2
    assert abs(moved.sum() - 5000 * p) <= 5 * np.sqrt(5000 * p * (1 - p))
    # Far ends are spread evenly: the mean of the distances 6 .. 499 is 252.5, their deviation 142.6.
    reached = np.minimum(distances, n - distances)[moved]
    assert abs(reached.mean() - 252.5) < 5 * 142.6 / np.sqrt(moved.sum())


# --- regular graphs ---


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 5), (1, 1), (1, 6), (6, 1), (2, 2), (4, 7)])
def test_grid_joins_neighbours(rows, columns):
    cells = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns), ordering="sorted")
    stream = es.grid(rows, columns)
    assert stream.num_vertices == rows * columns
    assert sorted(pairs_of(stream)) == simple_edges(cells)


@pytest.mark.parametrize(("rows", "columns"), [(1, 4), (4, 1), (2, 2), (4, 7)])
def test_grid_with_diagonals_joins_a_kings_moves(rows, columns):
    cells = list(itertools.product(range(rows), range(columns)))
    moves = [
        (i * columns + j, k * columns + m)
        for (i, j), (k, m) in itertools.combinations(cells, 2)
        if max(abs(i - k), abs(j - m)) == 1
    ]
    assert sorted(pairs_of(es.grid(rows, columns, diagonals=True))) == sorted(moves)


def test_grid_of_4000_has_the_edges_of_the_benchmark():
    assert 2 * es.grid(4000, 4000).num_edges == 63_984_000


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_path_star_and_complete(n):
    assert sorted(pairs_of(es.path(n))) == simple_edges(nx.path_graph(n))
    assert sorted(pairs_of(es.star(n))) == [(0, leaf) for leaf in range(1, n)]
    assert sorted(pairs_of(es.complete(n))) == simple_edges(nx.complete_graph(n))
    assert {make(n).num_vertices for make in (es.path, es.star, es.complete)} == {n}


# --- weights ---


def test_weights_are_whole_numbers_from_1_to_255_and_have_no_direction():
    u, v = (ends.ravel() for ends in np.meshgrid(np.arange(100), np.arange(100)))
    weights = es.weigh(u, v, seed=1)
    assert weights.dtype == np.float32
    assert set(weights.tolist()) == {float(weight) for weight in range(1, 256)}
    assert np.array_equal(weights, es.weigh(v, u, seed=1))
    # 5050 pairs: mean 128, standard deviation 73.6.
    assert abs(weights[u <= v].mean() - 128) < 5 * 73.6 / np.sqrt(5050)
    assert np.mean(weights == es.weigh(u, v, seed=2)) < 0.05


# --- arguments ---


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: es.rmat(-1), "rmat.*scale is -1; give a whole number from 0 to 40"),
        (lambda: es.rmat(41), "scale is 41"),
        (lambda: es.rmat("8"), "scale is '8'; give a whole number"),
        (lambda: es.rmat(True), "scale is True"),
        (lambda: es.rmat(8.0), "scale is 8.0"),
        (lambda: es.rmat(8, -2), "edge_factor is -2"),
        (lambda: es.rmat(8, seed=-1), "seed is -1"),
        (lambda: es.rmat(8, a=0.6, b=0.3, c=0.3), "a \\+ b \\+ c is 1.2"),
        (lambda: es.rmat(8, b=-0.1), "b is -0.1; give a number from 0 to 1"),
        (lambda: es.rmat(8, c=float("nan")), "c is nan"),
        (lambda: es.rmat(8, directed="no"), "directed is 'no'; give true or false"),
        (lambda: es.rmat(8, duplicates="sum"), "duplicates is 'sum'; give one of keep, drop"),
        (lambda: es.rmat(8, weights="uniform"), "weights is 'uniform'; give one of None, random"),
        (lambda: es.erdos_renyi(10), "m=None and p=None"),
        (lambda: es.erdos_renyi(10, m=3, p=0.1), "not both"),
        (lambda: es.erdos_renyi(10, m=46), "m is 46; give a whole number from 0 to 45"),
        (lambda: es.erdos_renyi(10, p=1.1), "p is 1.1"),
        (lambda: es.erdos_renyi(2**31 + 1, m=1), "n is 2147483649"),
        (lambda: es.watts_strogatz(10, 3, 0.1), "k is 3;.*even k"),
        (lambda: es.watts_strogatz(10, 10, 0.1), "k is 10"),
        (lambda: es.watts_strogatz(10, 2, "0.1"), "p is '0.1'"),
        (lambda: es.grid(-1, 2), "rows is -1"),
        (lambda: es.grid(2, None), "columns is None"),
        (lambda: es.grid(2**21, 2**21), "more than 2\\*\\*40"),
        (lambda: es.path(-1), "path.*n is -1"),
        (lambda: es.star(1.5), "star.*n is 1.5"),
        (lambda: es.complete(-3), "complete.*n is -3"),
    ],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_numpy_numbers_are_numbers():
    plain = es.erdos_renyi(20, p=0.5, seed=3)
    other = es.erdos_renyi(np.int64(20), p=np.float32(0.5), seed=np.uint8(3))
    assert pairs_of(other) == pairs_of(plain)
    assert pairs_of(es.rmat(np.int32(5), np.int8(3), np.int64(2))) == pairs_of(es.rmat(5, 3, 2))
