"""The order of edges that change rows."""

from __future__ import annotations

import numpy as np
import pytest

from sigps.graph.versions.row_changes import row_order


@pytest.mark.parametrize("bits", [(3, 4), (26, 27), (30, 30), (4, 50), (60, 3)], ids=str)
@pytest.mark.parametrize("size", [0, 1, 63, 1000])
def test_rows_then_ends_then_as_they_are(bits: tuple[int, int], size: int) -> None:
    """One sort holds the first of these, two the second and the third, none the last."""
    draw = np.random.default_rng(1)
    rows, ends = (draw.choice(draw.integers(0, 1 << b, 40), size) for b in bits)
    expected = sorted(range(size), key=lambda i: (rows[i], ends[i], i))
    assert row_order(rows, ends).tolist() == expected
