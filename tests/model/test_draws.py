"""Random numbers of vertices: the bits of Philox, alike on every device and for every number of ranks, and random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import program_of
from scipy import stats
from thread_group import ThreadGroup, run_ranks

from sigps import CompileError, ComputeError, ConfigError, Graph, generate, run
from sigps.model import draws
from sigps.native.kernel import Kernel

RING = Graph.from_edges([0, 1, 2], [1, 2, 0])

KNOWN = [
    ((0, 0, 0, 0), (0x6627E8D5, 0xE169C58D)),
    ((-1, -1, 0xFFFFFFFF, 0xFFFFFFFF), (0x408F276D, 0x41C83B0E)),
    ((0x299F31D0A4093822, 0x85A308D3243F6A88, 0x13198A2E, 0x03707344), (0xD16CFE09, 0x94FDCCEB)),
]
"""Philox 4x32-10 as its authors publish it (Random123, kat_vectors): seed, vertex, superstep, number; two words."""


@pytest.mark.parametrize(("given", "words"), KNOWN)
def test_the_bits_are_those_of_philox(given: tuple[int, ...], words: tuple[int, int]) -> None:
    signed = [n - 2**64 if n >= 2**63 else n for n in given]
    assert draws.philox(*signed) == words
    assert Kernel(draws.philox, "philox")(*signed) == words


def fill(seed, first, superstep, number, by_superstep, out):
    for i in range(len(out)):
        if by_superstep:
            out[i] = draws.random(seed, first, superstep + i, number)
        else:
            out[i] = draws.random(seed, first + i, superstep, number)


def drawn(*given: Any) -> Any:
    out = np.zeros(200_000)
    Kernel(fill, "fill")(*given, out)
    return out


def assert_uniform(values: Any) -> None:
    assert 0.0 <= values.min() <= values.max() < 1.0
    counts = np.bincount((values * 1000).astype(int), minlength=1000)
    assert 1e-4 < stats.chisquare(counts).pvalue < 1 - 1e-4
    pairs = np.bincount((values[:-1] * 32).astype(int) * 32 + (values[1:] * 32).astype(int), minlength=1024)
    assert 1e-4 < stats.chisquare(pairs).pvalue < 1 - 1e-4


def test_numbers_are_uniform_and_do_not_correlate() -> None:
    """Neighbouring seeds, ids, supersteps and numbers are the hard case of a hash."""
    found = [
        drawn(0, 0, 0, 0, False), drawn(1, 0, 0, 0, False), drawn(0, 10**12, 0, 0, False), drawn(0, 0, 1, 0, False),
        drawn(0, 0, 0, 1, False), drawn(0, 0, 0, 0, True), drawn(0, 1, 0, 0, True), drawn(0, 0, 0, 1, True),
    ]  # fmt: skip
    for values in found:
        assert_uniform(values)
    table = np.corrcoef(found)
    table[5, 0] = table[0, 5] = 0  # both begin with vertex 0 in superstep 0
    np.fill_diagonal(table, 0)
    assert np.abs(table).max() < 5 / np.sqrt(found[0].size)


BODY = """
self.x += self.random() - self.random() / 2
self.i = self.random_int(10 + self.id)
self.n += self.choose((1.0, 0.0, 3))
if self.random() < 0.3:
    self.x = self.drawn(2)
for m in messages:
    if m > 0.5:
        self.i += 1
for edge in self.out_edges:
    if self.random() < 0.5:
        self.send(edge, self.random())
"""
FIELDS = """
i: State[int] = 0
n: State[int] = 0
def drawn(self, a):
    self.n += 1
    return a * self.random()
"""


def states(**options: Any) -> dict[str, list[Any]]:
    program, group = program_of(BODY, FIELDS, message="message=float"), options.pop("group", None)
    graph = generate("rmat", scale=5, seed=3, group=group) if group else generate("rmat", scale=5, seed=3)
    result = run(program, graph, max_supersteps=4, **options)
    return {name: result[name].tolist() for name in ("x", "i", "n")}


def test_all_devices_and_numbers_of_ranks_draw_the_same() -> None:
    judge = states(device="python", seed=5)
    assert judge != states(device="python", seed=6)
    assert states(device="cpu", seed=5) == states(device="cpu", seed=5, threads=3) == judge

    def on_rank(group: ThreadGroup) -> Any:
        return states(device="cpu", seed=5, partitioner="hash", group=group)

    assert run_ranks(3, on_rank)[0] == judge


CHOICES = """
self.i = self.random_int(6)
self.n = self.choose((1, 0.0, 3))
self.x = self.random_int(1)
self.big = self.random_int(2**62)
self.vote_to_halt()
"""


@pytest.mark.parametrize(("device", "size"), [("python", 600), ("cpu", 6000)])
def test_whole_numbers_and_choices_are_where_they_should_be(device: str, size: int) -> None:
    graph = Graph.from_edges(np.arange(size), np.roll(np.arange(size), 1))
    result = run(
        program_of(CHOICES, "i: State[int] = 0\nn: State[int] = 0\nbig: State[int] = 0"), graph, device=device
    )
    n = graph.num_vertices
    assert stats.chisquare(np.bincount(result["i"], minlength=6)).pvalue > 1e-4
    assert stats.chisquare(np.bincount(result["n"], minlength=3)[[0, 2]], [n / 4, 3 * n / 4]).pvalue > 1e-4
    assert set(result["n"].tolist()) == {0, 2}
    assert result["x"].tolist() == [0.0] * n
    assert 0.4 < (result["big"] / 2**62).mean() < 0.6


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_no_number_is_below_zero(device: str) -> None:
    with pytest.raises(ComputeError) as caught:
        run(program_of("self.x = self.random_int(self.id)"), RING, device=device)
    assert caught.value.source == "self.x = self.random_int(self.id)"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("self.x = sum(self.random() for m in messages)", "write a loop, and draw inside it"),
        ("self.x = self.random(3)", "takes 0 arguments"),
        ("self.x = self.random_int()", r"takes 1 argument: k = self.random_int\(n\)"),
        ("self.x = self.random", r"is called: x = self.random\(\)"),
        ("self.x = random.random()", r"x = self.random\(\)"),
        ("self.x = np.random.rand()", r"x = self.random\(\)"),
    ],
)
def test_where_no_number_is_drawn(body: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        run(program_of(body, message="message=float"), RING, device="cpu")


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "1"])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ConfigError, match="seed="):
        run(program_of("self.x = self.random()"), RING, seed=seed)
