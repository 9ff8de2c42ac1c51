"""Label spreading against the same recurrence in SciPy, and against the solution of its linear equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import matrix_of, runs_of, vertices_of
from battery import BATTERY, Sample
from numpy.typing import NDArray
from thread_group import run_ranks
from turns import in_turn

from sigps import run
from sigps.apps import LabelSpreading

NAMES = [
    "only_isolated",
    "self_loop_undirected",
    "isolated",
    "path",
    "grid",
    "parallel_edges",
    "string_ids",
    "skewed",
]


def swept(sample: Sample, examples: NDArray[Any], rounds: int) -> NDArray[Any]:
    matrix, scores = matrix_of(sample), examples.copy()
    strength = np.asarray(matrix.sum(axis=1)).ravel()
    moves = (strength > 0) & ~examples.any(axis=1)
    for _ in range(rounds):
        sums = matrix @ scores
        scores[moves] = sums[moves] / strength[moves, None]
    return scores


def drawn(sample: Sample, seed: int) -> NDArray[Any]:
    """Return rows for some vertices, of two classes each."""
    draw = np.random.default_rng(seed)
    rows = np.zeros((len(vertices_of(sample)), 64))
    for v in range(0, len(rows), 3):
        one, other = draw.choice(64, 2, replace=False)
        rows[v, one], rows[v, other] = 0.75, 0.25
    return rows


@pytest.mark.parametrize(("name", "rounds"), in_turn(NAMES, [0, 5, 1]))
def test_scores_after_some_rounds(name: str, rounds: int) -> None:
    sample = BATTERY[name]
    examples = drawn(sample, rounds)
    expected = swept(sample, examples, rounds)
    labels = np.where(expected.any(axis=1), expected.argmax(axis=1), -1)
    program = LabelSpreading(iterations=rounds, tolerance=0.0)
    for way in runs_of(sample):  # the interpreter goes through 64 numbers a message

        def found(group: Any, way: Any = way) -> Any:
            graph = sample.build(group=group)
            return run(program, graph, initial={"scores": examples}, **way.options())

        result = run_ranks(way.ranks, found)[0]
        np.testing.assert_allclose(result["scores"], expected, rtol=1e-12, atol=1e-15, err_msg=str(way))
        best = np.sort(expected, axis=1)[:, -2:]
        is_clear = (best[:, 1] - best[:, 0] > 1e-9) | (best[:, 1] == 0.0)
        assert result["label"][is_clear].tolist() == labels[is_clear].tolist(), way
        assert result.supersteps <= rounds + 1


def test_scores_solve_the_equations() -> None:
    """From a vertex column, on one rank: Kirchhoff's law between the examples."""
    sample = BATTERY["grid"]
    examples = np.zeros((20, 64))
    examples[0, 3] = examples[11, 60] = examples[19, 0] = 1.0
    matrix = matrix_of(sample).toarray()
    laplacian = np.diag(matrix.sum(axis=1)) - matrix
    kept = examples.any(axis=1)
    laplacian[kept] = np.eye(20)[kept]
    graph = sample.build().with_vertex_columns({"examples": examples})
    result = run(LabelSpreading(tolerance=1e-13), graph, device="cpu")
    np.testing.assert_allclose(result["scores"], np.linalg.solve(laplacian, examples), atol=1e-10)
    assert result.supersteps < 1001
    assert set(result["label"].tolist()) == {0, 3, 60}


def test_without_a_column_the_first_vertices_are_examples() -> None:
    sample = Sample([0, 1, 80, 90], [80, 80, 90, 1], [1.0, 3.0, 1.0, 2.0])
    scores = run(LabelSpreading(iterations=1), sample.build(), device="cpu")["scores"]
    expected = np.zeros((4, 64))
    expected[0, 0] = expected[1, 1] = 1.0
    expected[2, :2] = [0.2, 0.6]
    expected[3, 1] = 2 / 3
    np.testing.assert_allclose(scores, expected, rtol=1e-15)
