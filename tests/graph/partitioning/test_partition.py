import doctest

import numpy as np
import pytest
from battery import BATTERY
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps.errors import PartitionError
from sigps.graph.generators.generate import generate
from sigps.graph.graph import Graph
from sigps.graph.partitioning import partition as partition_module
from sigps.graph.partitioning.partition import METHODS, partition, work_of_rows
from sigps.group import Alone

EVERY_METHOD = [*METHODS, "a function"]


def method_of(name, num_partitions):
    """Return the method: for "a function" one that divides by the last letter of an id."""
    if name in METHODS:
        return name
    return lambda oids: np.array([ord(str(oid)[-1]) % num_partitions for oid in oids])


def owners_of(assignment):
    return assignment.owner_of(np.arange(assignment.num_vertices)).tolist()


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("num_partitions", [1, 3, 40])
def test_every_vertex_has_one_owner(name, method, num_partitions):
    graph = BATTERY[name].build()
    assignment = partition(graph, num_partitions, method_of(method, num_partitions))
    assert (assignment.num_vertices, assignment.num_partitions) == (graph.num_vertices, num_partitions)
    owned = [assignment.owned(part) for part in range(num_partitions)]
    assert sorted(np.concatenate(owned).tolist()) == list(range(graph.num_vertices))
    for part in range(num_partitions):
        assert np.all(np.diff(owned[part]) > 0)
        assert np.all(assignment.owner_of(owned[part]) == part)


@pytest.mark.parametrize("name", ["empty", "grid", "skewed", "string_ids", "sparse_ids", "isolated"])
@pytest.mark.parametrize("method", EVERY_METHOD)
@pytest.mark.parametrize("num_ranks", [2, 3, 4])
def test_ranks_agree_with_one_process(run_ranks, name, method, num_ranks):
    def divide(group):
        return owners_of(partition(BATTERY[name].build(group=group), 3, method_of(method, 3)))

    expected = divide(Alone())
    owners = run_ranks(num_ranks, divide)
    assert owners == [expected] * num_ranks


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_parts(method):
    owners = [
        owners_of(partition(generate("rmat", scale=7, edge_factor=4), 4, method, seed=3)) for _ in range(2)
    ]
    assert owners[0] == owners[1]


@pytest.mark.parametrize(("method", "differs"), [("hash", True), ("edges", False), ("vertices", False)])
def test_only_random_methods_look_at_the_seed(method, differs):
    owners = [
        owners_of(partition(generate("rmat", scale=7, edge_factor=4), 4, method, seed=seed))
        for seed in (1, 2)
    ]
    assert (owners[0] != owners[1]) == differs


@given(st.integers(0, 60), st.integers(1, 70))
def test_vertices_are_counted_out_evenly(n, num_partitions):
    assignment = partition(generate("path", n=n), num_partitions, "vertices")
    sizes = [assignment.owned(part).size for part in range(num_partitions)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == n
    assert owners_of(assignment) == sorted(owners_of(assignment))


def test_vertices_are_counted_out_by_capacities():
    assignment = partition(generate("path", n=100), 4, "vertices", capacities=[1, 2, 3, 4])
    assert [assignment.owned(part).size for part in range(4)] == [10, 20, 30, 40]


def test_edges_is_the_default_and_balances_work():
    # Work is degree + 1: 2, 3, 3, 3, 3, 3, 3, 2. Half of 22 lies nearest behind the fourth vertex.
    assert owners_of(partition(generate("path", n=8), 2)) == [0, 0, 0, 0, 1, 1, 1, 1]
    # In-edges count as out-edges do: the hub 0 works 9 + 1, each leaf 1 + 1; 28 in all.
    star = Graph.from_edges([0] * 9, range(1, 10))
    assert owners_of(partition(star, 2)) == [0, 0, 0] + [1] * 7


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 99))
def test_no_part_works_more_than_its_share_and_one_vertex(capacities, seed):
    graph = generate("rmat", scale=7, edge_factor=4, seed=seed)
    work = graph.out_degrees() + 1
    owners = owners_of(partition(graph, len(capacities), capacities=capacities))
    done = np.bincount(owners, weights=work, minlength=len(capacities))
    fair = work.sum() * np.array(capacities) / sum(capacities)
    assert np.all(done <= fair + work.max())


def test_capacities_are_relative():
    halves = [
        owners_of(partition(generate("grid", rows=5, columns=5), 2, capacities=scale))
        for scale in ([1, 3], [0.5, 1.5])
    ]
    assert halves[0] == halves[1]


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_a_function_sees_the_users_ids(run_ranks, num_ranks):
    def divide(group):
        graph = Graph.from_edges([100, 300, 500], [200, 400, 100], group=group)
        return owners_of(partition(graph, 2, lambda oids: (oids >= 300).astype(np.int8)))

    assert run_ranks(num_ranks, divide) == [[0, 0, 1, 1, 1]] * num_ranks


def fail(oids):
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda oids: oids[:-1] * 0, "shape \\(\\d+,\\) for \\d+ ids"),
        (lambda oids: 0, "shape \\(\\)"),
        (lambda oids: None, "shape \\(\\)"),
        (lambda oids: np.zeros((oids.size, 1), dtype=int), "shape \\(\\d+, 1\\)"),
        (lambda oids: oids * 0.5, "type float64"),
        (lambda oids: oids < 3, "type bool"),
        (lambda oids: oids * 0 - 1, "the vertex \\d the partition -1.*from 0 to 1"),
        (lambda oids: (oids == 5) * 2, "the vertex 5 the partition 2"),
        (fail, "ZeroDivisionError: by nothing"),
    ],
)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_a_wrong_answer_of_a_function_is_told_on_all_ranks(run_ranks, function, words, num_ranks):
    def divide(group):
        with pytest.raises(PartitionError, match=words):
            partition(generate("path", n=6, group=group), 2, function)
        return True

    assert run_ranks(num_ranks, divide) == [True] * num_ranks


def test_a_function_is_not_called_without_vertices():
    assert partition(generate("path", n=0), 2, fail).num_vertices == 0


@pytest.mark.parametrize(
    ("num_partitions", "options", "words"),
    [
        (0, {}, "num_partitions is 0; give a whole number"),
        (-2, {}, "num_partitions is -2"),
        (2.0, {}, "num_partitions is 2.0"),
        (True, {}, "num_partitions is True"),
        (2, {"method": "edge"}, "no method 'edge'; did you mean 'edges'\\?"),
        (
            2,
            {"method": "xyz"},
            "no method 'xyz'\\. Give one of vertices, hash, edges, bfs, metis, or a function",
        ),
        (2, {"method": ["edges"]}, "no method \\['edges'\\]"),
        (2, {"capacities": [1]}, "shape \\(1,\\); give one positive number for each of 2"),
        (2, {"capacities": [1, 0]}, "capacities\\[1\\] is 0.0"),
        (2, {"capacities": [-1, 1]}, "capacities\\[0\\] is -1"),
        (2, {"capacities": [1, float("nan")]}, "capacities\\[1\\] is nan"),
        (2, {"capacities": [1, float("inf")]}, "capacities\\[1\\] is inf"),
        (2, {"capacities": "ab"}, "capacities are 'ab'"),
    ],
)
def test_wrong_arguments_are_named(num_partitions, options, words):
    with pytest.raises(PartitionError, match=words):
        partition(generate("path", n=4), num_partitions, **options)


def test_examples_hold():
    assert doctest.testmod(partition_module).attempted > 0
    assert doctest.testmod(partition_module).failed == 0


@pytest.mark.parametrize("name", BATTERY)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_work_counts_the_edges_of_both_directions(run_ranks, name, num_ranks):
    graph = BATTERY[name].build()
    work = [1] * graph.num_vertices
    for source in range(graph.num_vertices):
        for target in graph.targets[int(graph.offsets[source]) : int(graph.offsets[source + 1])].tolist():
            work[source] += 1
            if graph.directed:
                work[target] += 1
    parts = run_ranks(num_ranks, lambda group: work_of_rows(BATTERY[name].build(group=group)))
    assert np.concatenate(parts).tolist() == work
