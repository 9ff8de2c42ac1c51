"""What the builder refuses, at the line where it stands."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import CompileError, Graph, run

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("def f(self, a):\n    if a > 1:\n        return 2", "on one path and None on another"),
        ("def f(self, a):\n    for i in range(a):\n        return i", "on one path and None on another"),
        ("def f(self, a):\n    return self.f(a - 1) if a else 0", "calls itself"),
        ("def f(self, a):\n    return (1, 2)[5]", "has no part 5"),
        ("def f(self, a):\n    return 1.5 & 2", "whole numbers"),
        ("def f(self, a):\n    return 9223372036854775808", "np.uint64"),
    ],
)
def test_refused(method: str, says: str) -> None:
    program = program_of("self.x = self.f(self.id)\nself.vote_to_halt()", method)
    with pytest.raises(CompileError, match=says):
        run(program, GRAPH, device="cpu")


def test_all_paths_return() -> None:
    method = "def f(self, a):\n    while True:\n        if a > 1:\n            return a\n        a += 1"
    program = program_of("self.x = self.f(self.id)\nself.vote_to_halt()", method)
    for device in ("python", "cpu"):
        assert run(program, GRAPH, device=device)["x"].tolist() == [2.0] * 3
