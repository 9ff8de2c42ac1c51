"""What is assigned to a field takes its type at once, interpreted and compiled."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import CompileError, Graph, run

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 0])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.n = int(2.75)\nself.x = self.n * 2", 4.0),
        ("self.n = int(-2.75)\nself.x = self.n", -2.0),
        ("self.n, self.x = 1, 2.5\nself.x += self.n", 3.5),
        ("self.n = self.x = 7\nself.x -= self.n - 0.9", 0.9),
        ("self.n += int(1.75)\nself.x = self.n", 4.0),
        ("self.n: int = int(5.5)\nself.x = self.n", 5.0),
        ("self.b = 5\nself.x = self.b + 1", 2.0),
        ("self.b = self.n > 2\nself.x = self.b * 10", 10.0),
        ("self.f = 0.1\nself.x = (self.f - 0.1) * 1e9", 1.4901161193847656),
        ("y = self.n\ny += 0.5\nself.x = y", 3.5),
        ("self.set(int(4.75))\nself.x = self.n", 4.0),
    ],
)
def test_an_assigned_state_has_its_type(body: str, expected: float) -> None:
    fields = "n: State[int] = 3\nb: State[bool] = False\nf: State[np.float32] = 0.0\n"
    fields += "def set(self, value):\n    self.n = value"
    program = program_of(f"{body}\nself.vote_to_halt()", fields)
    for device in ("python", "cpu"):
        assert run(program, GRAPH, device=device)["x"].tolist() == pytest.approx([expected] * 3, rel=1e-6)


@pytest.mark.parametrize(
    "line", ["self.n = 2.0", "self.n += 0.5", "self.n, self.x = 1.5, 2", "self.total += 1.5"]
)
def test_a_float_is_not_stored_where_whole_numbers_are(line: str) -> None:
    """Its fraction would be lost: int(...) says that this is meant."""
    program = program_of(f"{line}\nself.vote_to_halt()", "n: State[int] = 3\ntotal = Aggregator.sum(int)")
    with pytest.raises(CompileError, match=r"write int\(\.\.\.\)") as caught:
        run(program, GRAPH, device="cpu")
    assert caught.value.source == line
    with pytest.raises(TypeError, match=r"write int\(\.\.\.\)"):
        run(program, GRAPH, device="python")


@pytest.mark.parametrize("sent", ["self.send_to_neighbors(2.5)", "self.send_to(self.id, self.x / 2)"])
def test_a_float_is_not_sent_as_a_whole_number(sent: str) -> None:
    program = program_of(f"{sent}\nself.vote_to_halt()", message="message=int")
    for device, error in (("cpu", CompileError), ("python", TypeError)):
        with pytest.raises(error, match=r"write int\(\.\.\.\)"):
            run(program, GRAPH, device=device)
