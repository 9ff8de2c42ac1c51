"""What drawn programs leave that send and read messages: compiled code against the interpreter, bit for bit."""

from __future__ import annotations

import pytest
from drawn_messages import GRAPHS, drawn_exchange
from turns import some_of

from sigps import run


@pytest.mark.parametrize("seed", some_of(range(12), 6))
def test_a_drawn_exchange_means_the_same(seed: int) -> None:
    judge, found = (
        run(drawn_exchange(seed), GRAPHS[seed % 2], device=device, max_supersteps=6, deterministic=True)
        for device in ("python", "cpu")
    )
    assert found.aggregators == judge.aggregators
    for name in judge.fields:
        expected, value = judge[name], found[name]
        assert value.dtype == expected.dtype
        assert value.tobytes() == expected.tobytes(), name
