"""States that begin with the user's values: the same on every device and for every number of ranks."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from cells import program_of
from thread_group import ThreadGroup, run_ranks

from sigps import ConfigError, Graph, GraphError, State, Vertex, generate, run


class Personalised(Vertex, message=float):
    """PageRank that jumps to vertices in proportion to `seed`."""

    seed: State[float] = 0.0
    rank: State[float] = 0.0

    def compute(self, messages):
        if self.superstep == 0:
            self.rank = self.seed
        else:
            self.rank = 0.15 * self.seed + 0.85 * sum(messages)
        if self.superstep == 60:
            self.vote_to_halt()
        elif self.out_degree > 0:
            self.send_to_neighbors(self.rank / self.out_degree)


def ring(group: Any = None) -> Graph:
    n = 30
    sources = np.concatenate([np.arange(n), np.arange(n)])
    return Graph.from_edges(
        sources, np.concatenate([(np.arange(n) + 1) % n, (np.arange(n) * 7) % n]), group=group
    )


SEEDS = np.random.default_rng(3).dirichlet(np.ones(30))


def test_personalised_pagerank_is_networkxs() -> None:
    judged = nx.MultiDiGraph()
    judged.add_nodes_from(range(30))
    judged.add_edges_from(
        zip(np.tile(np.arange(30), 2), [*(np.arange(30) + 1) % 30, *(np.arange(30) * 7) % 30], strict=True)
    )
    judge = nx.pagerank(judged, alpha=0.85, personalization=dict(enumerate(SEEDS)), tol=1e-13, max_iter=1000)
    expected = [judge[v] for v in range(30)]
    for device in ("python", "cpu"):
        found = run(Personalised(), ring(), device=device, initial={"seed": SEEDS})
        np.testing.assert_allclose(found["rank"], expected, atol=1e-4)

    def on_rank(group: ThreadGroup) -> Any:
        return run(Personalised(), ring(group), device="cpu", partitioner="hash", initial={"seed": SEEDS})[
            "rank"
        ]

    np.testing.assert_allclose(run_ranks(3, on_rank)[0], found["rank"], rtol=1e-12)


FIELDS = "k: State[int] = 3\nu: State[np.uint8] = 1\nb: State[bool] = False\nv: State[VertexId] = 0"
KEEP = program_of("self.vote_to_halt()", FIELDS)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_values_by_ids_and_by_position(device: str) -> None:
    graph = Graph.from_edges([30, 10], [20, 30])
    given = {
        "k": {30: -5, 10: 2**40},
        "u": [7, 8, 255],
        "b": [True, False, True],
        "v": {20: 10},
        "x": [1, 2, 2.5],
    }
    found = run(KEEP, graph, device=device, initial=given)
    assert found.ids.tolist() == [10, 20, 30]
    assert {n: found[n].tolist() for n in given} == {
        "k": [2**40, 3, -5], "u": [7, 8, 255], "b": [True, False, True], "v": [0, 10, 0], "x": [1.0, 2.0, 2.5],
    }  # fmt: skip


def test_ids_that_are_texts() -> None:
    graph = Graph.from_edges(["c", "a"], ["b", "c"])
    found = run(KEEP, graph, device="cpu", initial={"v": {"b": "c"}, "k": {"a": 9}})
    assert found.ids.tolist() == ["a", "b", "c"]
    assert found["k"].tolist() == [9, 3, 3]
    assert found["v"].tolist()[1] == "c"


def test_a_warm_start_goes_on_from_a_result() -> None:
    graph = generate("rmat", scale=6, seed=1)
    program = program_of("self.k += 1\nif self.superstep == 4:\n    self.vote_to_halt()", FIELDS)
    first = run(program, graph, device="cpu")
    again = run(program, graph, device="cpu", initial=first)
    assert set(first["k"].tolist()) == {8}
    assert set(again["k"].tolist()) == {13}
    assert again["u"].tolist() == first["u"].tolist()


WRONG: list[tuple[Any, type[Exception], str]] = [
    ({"kk": [1, 2, 3]}, ConfigError, "initial='kk': Program has the states x, k, u, b, v; did you mean 'k'?"),
    ({"k": [1, 2]}, ConfigError, r"the shape \(2,\), and the graph has 3 vertices"),
    ({"k": [1, 2, 2.5]}, ConfigError, "2.5 is no whole number that int64 can hold"),
    ({"u": [1, 2, 256]}, ConfigError, "256 is no whole number that uint8 can hold"),
    ({"k": [1.0, 2.0, np.nan]}, ConfigError, "nan is no whole number"),
    ({"b": [0, 1, 1]}, ConfigError, "truth value: give True and False"),
    ({"x": ["a", "b", "c"]}, ConfigError, "give numbers"),
    ({"k": {99: 1}}, GraphError, "there is no vertex 99"),
    ([1, 2, 3], ConfigError, "values by the names of states"),
]


@pytest.mark.parametrize(("given", "error", "says"), WRONG)
def test_what_no_state_begins_with(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        run(KEEP, Graph.from_edges([0, 1], [1, 2]), device="cpu", initial=given)


def test_a_result_of_other_vertices() -> None:
    result = run(KEEP, Graph.from_edges([0, 1], [1, 2]), device="cpu")
    with pytest.raises(ConfigError, match="a result of 3 vertices, and the graph has 2"):
        run(KEEP, Graph.from_edges([0], [1]), device="cpu", initial=result)
