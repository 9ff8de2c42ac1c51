"""What is assigned to a field takes its type at once, interpreted and compiled."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import Graph, run

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.n = 2.75\nself.x = self.n * 2", 4.0),
        ("self.n = -2.75\nself.x = self.n", -2.0),
        ("self.n, self.x = 1.5, 2.5\nself.x += self.n", 3.5),
        ("self.n = self.x = 7.9\nself.x -= self.n", 0.9),
        ("self.n += 1.75\nself.x = self.n", 4.0),
        ("self.n: int = 5.5\nself.x = self.n", 5.0),
        ("self.b = 5\nself.x = self.b + 1", 2.0),
        ("self.b = self.n > 2\nself.x = self.b * 10", 10.0),
        ("self.f = 0.1\nself.x = (self.f - 0.1) * 1e9", 1.4901161193847656),
        ("y = self.n\ny += 0.5\nself.x = y", 3.5),
        ("self.set(4.75)\nself.x = self.n", 4.0),
    ],
)
def test_an_assigned_state_has_its_type(body: str, expected: float) -> None:
    fields = "n: State[int] = 3\nb: State[bool] = False\nf: State[np.float32] = 0.0\n"
    fields += "def set(self, value):\n    self.n = value"
    program = program_of(f"{body}\nself.vote_to_halt()", fields)
    for device in ("python", "cpu"):
        assert run(program, GRAPH, device=device)["x"].tolist() == pytest.approx([expected] * 3, rel=1e-6)
