"""One round of Louvain's moves against the modularity itself, computed anew for every move that a vertex may make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import QUICK_RUNS, RANDOM, arcs_of, neighbours_of, runs_of, splitmix, vertices_of
from battery import BATTERY, NAMES, Sample
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from ways import Way, results_of

from sigps import Result, run
from sigps.apps import LouvainRound


def matrix_of_ends(sample: Sample) -> NDArray[Any]:
    """Return the weight between each two vertices; a loop counts twice, for it ends at its vertex twice."""
    index = {v: i for i, v in enumerate(vertices_of(sample))}
    matrix = np.zeros((len(index), len(index)))
    for s, t, w in arcs_of(sample, directed=True):
        matrix[index[s], index[t]] += w
        matrix[index[t], index[s]] += w
    return matrix


def moves_of(
    sample: Sample, community: NDArray[Any], resolution: float, turn: int
) -> tuple[list[list[int]], int]:
    """Return where each vertex may be after the round, one place or several as good, and how many wish to move.

    All look at the communities of before. The terms of the modularity are multiplied by the square of all weight, so
    that those of whole weights are exact.
    """
    ids, near = vertices_of(sample), neighbours_of(sample)
    number = {v: i for i, v in enumerate(ids)}
    matrix = matrix_of_ends(sample)
    strength = matrix.sum(axis=1)
    terms = strength.sum() * matrix - resolution * np.outer(strength, strength)
    places, wishes = [], 0
    for i, v in enumerate(ids):
        values = {}
        for goal in sorted({community[i], *(community[number[u]] for u in near[v])}):
            after = community.copy()
            after[i] = goal
            values[int(goal)] = terms[after[:, None] == after].sum()
        stay = values.pop(int(community[i]))
        best = max(values.values(), default=stay)
        wish = best > stay + 1e-9 * np.abs(terms).sum()
        wishes += wish
        key = v if not isinstance(v, str) else i
        best_ones = [goal for goal, value in values.items() if value >= best - 1e-9 * np.abs(terms).sum()]
        same = len(
            {(matrix[i, community == goal].sum(), strength[community == goal].sum()) for goal in best_ones}
        )
        moved = best_ones[:1] if same == 1 else best_ones  # of those that are alike the smallest number
        places.append(moved if wish and splitmix(key, turn) % 2 == 0 else [int(community[i])])
    return places, wishes


def check(sample: Sample, community: NDArray[Any], resolution: float, turn: int, ways: list[Way]) -> None:
    places, wishes = moves_of(sample, community, resolution, turn)
    matrix = matrix_of_ends(sample)
    strength = matrix.sum(axis=1)
    total = np.bincount(community, strength, len(community))[community]
    program = LouvainRound(whole=strength.sum() or 1.0, resolution=resolution, turn=turn)

    def one_round(graph: Any, **options: Any) -> Result:
        return run(program, graph, initial={"community": community, "total": total}, **options)

    for way, result in results_of(one_round, sample, ways):
        found = result["community"].tolist()
        assert all(c in allowed for c, allowed in zip(found, places, strict=True)), (way, found, places)
        assert result.aggregators["wishes"] == wishes, way
        assert result["strength"] == pytest.approx(strength, rel=1e-12), way
        assert result["loops"] == pytest.approx(np.diag(matrix), rel=1e-12), way
        assert result.supersteps == 2, way


@pytest.mark.parametrize("name", [name for name in NAMES if name != "skewed"])
def test_vertices_move_where_modularity_is_highest(name: str) -> None:
    sample = BATTERY[name]
    n = len(vertices_of(sample))
    check(sample, np.arange(n), 1.0, 3, runs_of(sample))
    check(sample, np.random.default_rng(2).integers(0, n, n) // 2, 0.5, 4, QUICK_RUNS)


@RANDOM
@given(samples(), st.data(), st.sampled_from([0.5, 1.0, 1.7]), st.integers(-(2**63), 2**63 - 1))
def test_moves_on_random_graphs(sample: Sample, data: Any, resolution: float, turn: int) -> None:
    n = len(vertices_of(sample))
    community = data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    check(sample, np.array(community), resolution, turn, QUICK_RUNS)


def test_rounds_of_a_graph_with_weights_that_are_not_whole() -> None:
    """Round after round, each from what the one before left: half of those that wish move, and modularity rises."""
    draw = np.random.default_rng(3)
    block = np.repeat(np.arange(4), 10)
    chance = np.where(block[:, None] == block, 0.5, 0.05)
    sources, targets = np.nonzero(np.triu(draw.random(chance.shape) < chance, 1))
    sample = Sample(sources.tolist(), targets.tolist(), draw.random(len(sources)).tolist(), directed=False)
    graph, community, wished = sample.build(), np.arange(40), []
    strength = matrix_of_ends(sample).sum(axis=1)
    for turn in range(8):
        check(sample, community, 1.0, turn, [Way()])
        total = np.bincount(community, strength, 40)[community]
        program = LouvainRound(whole=strength.sum(), turn=turn)
        result = run(program, graph, initial={"community": community, "total": total}, device="cpu")
        moved = int((result["community"] != community).sum())
        wished.append((result.aggregators["wishes"], moved))
        community = result["community"]
    assert 0.3 < sum(moved for _, moved in wished) / sum(wishes for wishes, _ in wished) < 0.7
