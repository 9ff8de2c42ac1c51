"""A variable that is a float on one path is one on all, in the interpreter as in compiled code: results by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import program_of
from turns import some_of

from sigps import CompileError, Graph, inf, run

STAR = Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], directed=False)
"""Out-degrees 3, 2, 1, 1, 1."""

CASES: dict[str, tuple[str, dict[str, Any], list[float]]] = {
    "assigned": ("a = 1\nif self.id > 2:\n    a = 0.5\nself.x = a // 0", {}, [inf] * 5),
    "assigned in a tuple": ("a, b = 1, 7\nif self.id > 2:\n    a, b = 0.5, 7\nself.x = a // 0", {}, [inf] * 5),
    "by another path": (
        "a = self.id * 2**60\nif self.id == 9:\n    a = 0.5\nself.x = a * 8 / 2.0**63",
        {},
        [0, 1, 2, 3, 4],
    ),
    "one of two": ("self.x = (1 if self.id > 2 else 0.5) // 0", {}, [inf] * 5),
    "or": ("self.x = (self.out_degree or 0.5) * 2**60 * 16 / 2.0**64", {}, [3, 2, 1, 1, 1]),
    "the least": ("self.x = min(self.id, 2.5) * 2**62 * 2 / 2.0**63", {}, [0, 1, 2, 2.5, 2.5]),
    "the least by a key": ("self.x = min(1, self.x + 3, key=abs) // 0", {}, [inf] * 5),
    "sorted": ("self.x = sorted((1, self.x))[1] // 0", {}, [inf] * 5),
    "a loop over a tuple": ("for t in (1, 0.5):\n    self.x += t // 0", {}, [inf] * 5),
    "a part of a tuple": ("self.x = (1, self.x + 1)[self.id % 2] // 0", {}, [inf] * 5),
    "a sum of no messages": ("self.x = (sum(messages) + 1) // 0", {}, [inf] * 5),
    "a loop over no messages": ("t = 1\nfor m in messages:\n    t += m\nself.x = t // 0", {}, [inf] * 5),
    "the greatest of no messages": ("t = 1\nfor m in messages:\n    t = max(t, m)\nself.x = t // 0", {}, [inf] * 5),
    "a walrus": ("if (a := 1) > self.id:\n    a = 0.5\nself.x = a // 0", {}, [inf] * 5),
    "np.uint64": ("a = 1\nif self.id > 1:\n    a = np.uint64(3)\nself.x = float(a - 2)", {}, [2.0**64] * 2 + [1] * 3),
    "a vector": ("v = 1\nif self.id > 1:\n    v = Vector[float, 4](3)\nself.x = v[3] // 0", {}, [inf] * 5),
    "a function, for the types of each call": (
        "self.x = f(self.id) * 2**60 / 2.0**60 + f(0.5) * 2**62 / 2.0**62",
        {"before": "def f(a):\n    b = 3\n    if a > 1:\n        b = a\n    return b"},
        [6, 6, 5, 6, 7],
    ),
    "a method, for the types of each call": (
        "self.x = self.of(0.5) * 2.0 + self.of(1)",
        {"fields": "def of(self, a):\n    b = 3\n    if a < 0:\n        b = a\n    return b // (a - 0.5)"},
        [inf] * 5,
    ),
    "a parameter": (
        "self.x = self.of(1)",
        {"fields": "def of(self, a):\n    if self.id > 9:\n        a = 0.5\n    return a // 0"},
        [inf] * 5,
    ),
    "what is returned": (
        "self.x = self.of(1) // 0",
        {"fields": "def of(self, a):\n    if a > 9:\n        return 0.5\n    return 1"},
        [inf] * 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "device"),
    [*((case, "python") for case in CASES), *((case, "cpu") for case in some_of(CASES, 12))],
)
def test_what_is_a_float_on_one_path_is_one_on_all(case: str, device: str) -> None:
    body, others, expected = CASES[case]
    sends = "\nif self.superstep == 1:\n    self.send_to_neighbors(0.25)"
    found = run(program_of(f"{body}{sends}\nself.vote_to_halt()", **others), STAR, device=device)["x"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_variable_of_whole_numbers_stays_one(device: str) -> None:
    program = program_of("a = 2**53\na += 1\nself.k = a\nself.vote_to_halt()", "k: State[int] = 0")
    assert run(program, STAR, device=device)["k"].tolist() == [2**53 + 1] * 5


def test_a_method_put_in_place_twice_has_one_type() -> None:
    fields = "def give(self, a):\n    b = 3\n    if a > 1:\n        b = a\n    self.x += b * 2"
    program = program_of("self.give(self.id)\nself.give(0.5)\nself.vote_to_halt()", fields)
    with pytest.raises(CompileError, match=r"in one call of the method .* float\(\.\.\.\)\n *b = 3"):
        run(program, STAR, device="cpu")
