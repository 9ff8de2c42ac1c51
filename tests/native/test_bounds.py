"""Where a result is known to fit nothing is checked; what is checked ends a run at the first number too many."""

from __future__ import annotations

import operator
import random

import numpy as np
import pytest
from cells import program_of

from sigps import ComputeError, Graph, run
from sigps.compiler.frontend.analysis import analyse
from sigps.native.bounds import bounds_of_result, fits_int
from sigps.native.builder import Functions
from sigps.native.types import BOOL, INT, Number, Tuple

OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, ">>": operator.rshift,
}  # fmt: skip
FIELDS = "n: State[int] = 3\nk: State[np.int32] = 3\nu: State[np.uint8] = 200"


@pytest.mark.parametrize("op", OPERATORS)
def test_every_result_lies_between_the_bounds(op: str) -> None:
    draw = random.Random(op)
    num_known = 0
    for _ in range(2000):
        (a, b), (c, d) = (sorted(draw.choices((-9, -8, -4, -1, 0, 1, 3, 7, 8, 100), k=2)) for _ in range(2))
        c, d = (abs(c), abs(d)) if op == ">>" else (c, d)
        bounds = bounds_of_result(op, (a, b), (min(c, d), max(c, d)))
        if bounds is None:
            continue
        num_known += 1
        found = [OPERATORS[op](x, y) for x in range(a, b + 1) for y in range(min(c, d), max(c, d) + 1)]
        assert bounds[0] <= min(found)
        assert max(found) <= bounds[1]
    assert num_known > 200


def test_what_fits() -> None:
    assert fits_int((-(2**63), 2**63 - 1))
    assert not fits_int((0, 2**63))
    assert not fits_int((-(2**63) - 1, 0))
    assert not fits_int(None)


def num_sites(body: str) -> int:
    derived = analyse(program_of(body, FIELDS))
    functions = Functions(derived.module, derived.namespace)
    env, nothing = Tuple((INT,) * 3), Tuple(())
    states = Tuple(tuple(Number.of(d) for d in derived.state_dtypes))
    functions.instance("compute", (env, nothing, nothing, env, states, nothing, BOOL, nothing, nothing))
    return len(functions.sites)


@pytest.mark.parametrize(
    "body",
    [
        "self.n = (self.n & 0xFFFFFFFF) * 0x7FFFFFFF",
        "self.n = self.superstep + self.out_degree * 3 - 1",
        "self.n = self.k * self.k + self.u * self.u",
        "self.n = np.uint8(self.n & 255)",
        "self.n = 5 if self.n > 3 else -7",
        "self.n = (self.n > 3) * 2 - 1",
        "self.n = (self.n >> 1) + 1",
    ],
)
def test_what_always_fits_is_not_checked(body: str) -> None:
    assert num_sites(body) == 0


@pytest.mark.parametrize(
    "body",
    [
        "self.n = (self.n & 0xFFFFFFFF) * 0x80000001",
        "self.n = self.id + 1",
        "self.k = self.k + self.k",
        "self.n = np.uint8(self.n & 256)",
        "self.n = np.uint8(5 if self.n > 3 else -7)",
        "self.n = (self.n >> self.k) + 1",
    ],
)
def test_what_may_not_fit_is_checked(body: str) -> None:
    assert num_sites(body) > 0


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_the_last_number_that_fits(device: str) -> None:
    """2**32 - 1 times 2**31 + 1 is 2**63 + 2**31 - 1: the first factor may be that large, and at 2**32 - 3 it fits."""
    graph = Graph.from_edges([0], [1])
    for factor, fits in ((2**32 - 3, True), (2**32 - 1, False)):
        assert (factor * (2**31 + 1) < 2**63) == fits
        body = f"self.n = (({factor} + self.n - 3) & 0xFFFFFFFF) * {2**31 + 1}\nself.vote_to_halt()"
        if fits:
            assert (
                run(program_of(body, FIELDS), graph, device=device)["n"].tolist()
                == [factor * (2**31 + 1)] * 2
            )
        else:
            with pytest.raises(ComputeError, match="64 bits"):
                run(program_of(body, FIELDS), graph, device=device)


@pytest.mark.parametrize(
    ("message", "sent", "read", "is_checked"),
    [
        ("message=np.int32", "self.k", "sum(messages)", False),
        ("message=int", "self.n", "sum(messages)", True),
        ("message=int", "1", "sum(messages)", False),
        ("message=int", "2**31", "sum(messages)", True),
        ("message=int", "self.n", "sum(1 for m in messages if m > 3)", False),
        ("message=np.int32", "self.k", "sum(m * m for m in messages)", True),
        ("message=bool", "self.n > 3", "sum(messages)", False),
        ("message=np.uint8", "self.u", "sum(messages)", True),
    ],
)
def test_sums_of_small_messages_are_not_checked(message: str, sent: str, read: str, is_checked: bool) -> None:
    """A sum of unsigned numbers is not small either: it wraps around, and has no sites."""
    body = (
        f"self.n = {read}\nif self.superstep == 0:\n    self.send_to_neighbors({sent})\nself.vote_to_halt()"
    )
    program = program_of(body, FIELDS, message=message)
    derived = analyse(program)
    assert [slot.is_small for slot in derived.slots] == [not is_checked]
    graph = Graph.from_edges([0, 1, 0], [1, 0, 1])
    judge = run(program, graph, device="python")["n"]
    assert np.array_equal(run(program, graph, device="cpu")["n"], judge)
