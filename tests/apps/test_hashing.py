"""The hash that apps share: what it leaves of numbers, against chance, and on every device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigps import Graph, Param, State, Vertex, run
from sigps.apps.hashing import hashed

WHOLE = st.integers(-(2**63), 2**63 - 1)
BITS = np.arange(64)


class Hashes(Vertex):
    """The hash of each vertex, and of that in turn."""

    seed: Param[int]
    one: State[int] = 0
    two: State[int] = 0

    def compute(self, messages):
        self.one = hashed(self.id, self.seed)
        self.two = hashed(self.superstep, self.one)
        self.vote_to_halt()


def bits_of(numbers: list[int]) -> np.ndarray:
    """Return the bits of numbers, [numbers, 64]."""
    return (np.array(numbers)[:, None] >> BITS) & 1


@given(st.lists(WHOLE, unique=True), WHOLE)
def test_no_two_numbers_have_one_hash(numbers: list[int], seed: int) -> None:
    found = {hashed(n, seed) for n in numbers}
    assert len(found) == len(numbers)
    assert all(-(2**63) <= n < 2**63 for n in found)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_devices_agree_at_the_ends_of_what_fits(device: str) -> None:
    ids = [-(2**63), -(2**62), -1, 0, 1, 2**62, 2**63 - 1]
    graph = Graph.from_edges(ids, ids)
    for seed in (0, -1, 2**63 - 1, -(2**63)):
        result = run(Hashes(seed=seed), graph, device=device)
        assert result["one"].tolist() == [hashed(v, seed) for v in ids]
        assert result["two"].tolist() == [hashed(0, hashed(v, seed)) for v in ids]


@pytest.mark.parametrize("base", [0, -4096, 2**40, -(2**62)])
def test_successive_numbers_and_seeds_look_random(base: int) -> None:
    """Each bit is one in half of the numbers, whatever the others are, and changes with each bit of the number."""
    by_number = bits_of([hashed(base + i, 7) for i in range(4096)])
    by_seed = bits_of([hashed(base, i) for i in range(4096)])
    for bits in (by_number, by_seed):
        assert np.all(np.abs(bits.mean(axis=0) - 0.5) < 0.05)  # 6 standard deviations
        together = np.corrcoef(bits.T) - np.eye(64)
        assert np.abs(together).max() < 0.1
    flipped = [bits_of([hashed((base + i) ^ (1 << bit), 7) for i in range(256)]) for bit in range(0, 62, 3)]
    changes = np.array([(f != by_number[:256]).mean() for f in flipped])
    assert np.all(np.abs(changes - 0.5) < 0.05)
