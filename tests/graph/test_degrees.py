"""The order of vertices by their degrees."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sigps.graph.degrees import degree_order

# Of 16 bits two digits are sorted, one after the other: degrees that agree in one of them, and in none.
DEGREES = st.integers(0, 5) | st.sampled_from([65_535, 65_536, 65_541, 131_072, 131_077])


@given(st.lists(DEGREES, max_size=30), st.sampled_from([np.int64, np.int32, np.uint32, np.uint64]))
def test_degree_order_is_descending_and_stable(degrees, dtype):
    expected = sorted(range(len(degrees)), key=lambda vertex: -degrees[vertex])
    order = degree_order(np.array(degrees, dtype=dtype))
    assert order.dtype == np.int64
    assert order.tolist() == expected


def test_degree_order_takes_large_degrees():
    assert degree_order(np.array([0, 2**32 - 1, 5, 2**32 - 1])).tolist() == [1, 3, 2, 0]
