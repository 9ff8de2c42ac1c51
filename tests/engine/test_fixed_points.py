"""When fixed points are found at once, and how labels hold lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigps.engine.fixed_points import (
    LEAST_EDGES,
    LEAST_EDGES_OF_LENGTHS,
    Labels,
    Weights,
    bucket_width,
    choose_labels,
    is_mesh,
)

SOME = Weights(True, 1, 255)


@pytest.mark.parametrize(
    ("vertices", "edges", "degree", "expected"),
    [
        (10**5, LEAST_EDGES - 1, 4, False),
        (10**5, LEAST_EDGES, 4, True),
        (10**9, 10**9, 64, True),
        (10**9, 10**9, 65, False),
        (10**6, 16 * 10**6, 20, True),
        (10**6, 16 * 10**6 + 1, 20, False),
        (0, 0, 0, False),
    ],
)
def test_meshes(vertices: int, edges: int, degree: int, expected: bool) -> None:
    assert is_mesh(num_vertices=vertices, num_edges=edges, largest_degree=degree) is expected


def test_meshes_of_lengths_may_be_smaller() -> None:
    given = {"num_vertices": 10**5, "largest_degree": 4, "of_lengths": True}
    found = [is_mesh(**given, num_edges=n) for n in (LEAST_EDGES_OF_LENGTHS - 1, LEAST_EDGES_OF_LENGTHS)]
    assert found == [False, True]
    assert LEAST_EDGES_OF_LENGTHS < LEAST_EDGES


@pytest.mark.parametrize(
    ("weights", "vertices", "length", "expected"),
    [
        (SOME, 1023, np.float32, Labels(1 << 10, 1 << 24)),
        (SOME, 1024, np.float64, Labels(1 << 11, (1 << 49) - 1)),
        (SOME, 2**24, np.float32, Labels(1 << 25, 1 << 24)),
        (SOME, 2**31, np.float64, Labels(1 << 32, (1 << 28) - 1)),
        (Weights(True, 0, 1 << 24), 9, np.float32, Labels(16, 1 << 24)),
        (Weights(True, 0, (1 << 24) + 1), 9, np.float32, None),
        (Weights(True, 3, 3), 9, np.float64, None),
        (Weights(False, 0, 255), 9, np.float64, None),
    ],
)
def test_labels(weights: Weights, vertices: int, length: Any, expected: Labels | None) -> None:
    assert choose_labels(weights, vertices, np.dtype(length)) == expected


@pytest.mark.parametrize("vertices", [1, 1000, 2**20, 2**31, 2**40])
def test_no_sum_of_labels_leaves_64_bits(vertices: int) -> None:
    """The greatest label, with the greatest edge or bucket beyond it, still fits; so does the most edges of a path."""
    labels = choose_labels(Weights(True, 0, 1), vertices, np.dtype(np.float64))
    assert labels is not None
    assert labels.unit > vertices
    widest = Weights(True, 0, labels.longest)
    assert labels.most + labels.longest * labels.unit + 1 < 2**63
    assert labels.most + bucket_width(widest, labels, is_gpu=False) < 2**63
    assert labels.most + bucket_width(widest, labels, is_gpu=True) < 2**63
