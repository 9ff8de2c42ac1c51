"""Which sends fit an outbox record, which need direct messages, and why."""

from __future__ import annotations

import pytest
from cells import program_of

from sigps import Graph, run
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Delivery

OFFER = "class Offer(NamedTuple):\n    price: float\n    seller: VertexId"


@pytest.mark.parametrize(
    ("body", "record", "columns"),
    [
        ("self.send_to_neighbors(1.0)", 0, ()),
        ("self.send_to_neighbors(self.superstep * self.p)", 0, ()),
        ("self.send_to_neighbors(self.id)", 0, ()),
        ("self.send_to_neighbors(self.x / self.out_degree)", 1, ()),
        (
            "for edge in self.out_edges:\n    self.send(edge, self.x / self.out_degree + edge.weight)",
            1,
            ("weight",),
        ),
        (
            "for edge in self.out_edges:\n    self.send(edge, self.x * edge.a - self.x / edge.b)",
            1,
            ("a", "b"),
        ),
        (
            "for edge in self.out_edges:\n    y = edge.a\n    if y > self.x:\n        self.send(edge, y)",
            1,
            ("a",),
        ),
        (
            "for edge in self.out_edges:\n    if edge.target > 3:\n        continue\n    self.send(edge, 1)",
            0,
            (),
        ),
        (
            "if self.x > 1:\n    self.send_to_neighbors(self.x)\nelse:\n    self.send_to_neighbors(-self.x)",
            1,
            (),
        ),
        ("if self.x > 1:\n    self.send_to_neighbors(self.x)\nelse:\n    self.send_to_neighbors(1.0)", 2, ()),
        (
            "if self.x > 1:\n    self.send_to_neighbors(1.0)\n    return\nself.send_to_neighbors(self.x)",
            2,
            (),
        ),
    ],
)
def test_a_record(body: str, record: int, columns: tuple[str, ...]) -> None:
    derived = analyse(program_of(body, "p: Param[int] = 2"))
    assert derived.delivery is Delivery.RECORD
    assert (len(derived.record), derived.edge_columns, derived.obstacles) == (record, columns, ())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("self.send_to(3, 1.0)", "line 6: send_to() can reach any vertex"),
        ("self.send_to_neighbors(1.0)\nself.send_to_neighbors(2.0)", "may send twice along an edge"),
        ("while self.x > 1:\n    self.send_to_neighbors(1.0)", "may send twice along an edge"),
        ("for m in messages:\n    self.send_to_neighbors(m)", "may send twice along an edge"),
        (
            "for edge in self.out_edges:\n    self.send(edge, 1.0)\n    self.send(edge, 2.0)",
            "does more than one send",
        ),
        ("for edge in self.out_edges:\n    self.x += 1\n    self.send(edge, self.x)", "changes self.x"),
        (
            "for edge in self.out_edges:\n    self.send(edge, 1.0)\n    break",
            "holds another loop, a break or a return",
        ),
        (
            "y = 0\nfor edge in self.out_edges:\n    y += 1\n    self.send(edge, y)",
            "changes 'y', which is used outside",
        ),
        (
            "y = 0.0\nfor edge in self.out_edges:\n    if edge.weight > 1:\n        y = 1.0\n    self.send(edge, y)",
            "y",
        ),
        (
            "for edge in self.out_edges:\n    self.send(edge, self.f(edge.weight))",
            "reads both the vertex and the edge",
        ),
        (
            "for edge in self.out_edges:\n    self.send(edge, 1.0)\n    self.send_to(1, 1.0)",
            "more than one send",
        ),
        (
            "max = 1\nfor edge in self.out_edges:\n    max += 1\n    self.send(edge, max)",
            "changes 'max', which",
        ),
    ],
)
def test_direct_messages(body: str, why: str) -> None:
    derived = analyse(program_of(body, "def f(self, y):\n    return y * self.x"))
    assert derived.delivery is Delivery.DIRECT
    assert why in derived.obstacles[-1]
    assert derived.obstacles[-1].startswith(("line ", "one run of compute()"))


def test_equal_values_are_captured_once() -> None:
    body = "for e in self.out_edges:\n    self.send(e, Offer(self.x * 2 + e.weight, e.target + self.x * 2))"
    derived = analyse(program_of(body, message="message=Offer", before=OFFER))
    assert len(derived.record) == 1


@pytest.mark.parametrize(
    "message", ["Offer(1.0, 2)", "Offer(seller=2, price=1.0)", "Offer(1.0, seller=2)", "(1.0, 2)"]
)
def test_ways_to_write_a_message(message: str) -> None:
    derived = analyse(program_of(f"self.send_to_neighbors({message})", message="message=Offer", before=OFFER))
    assert "return (True, (__np.float64(1.0), __np.int64(2)))" in derived.source


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("self.send_to_neighbors(1.0)", False),
        (
            "for edge in self.out_edges:\n    if edge.target != self.id:\n        self.send(edge, self.x)",
            False,
        ),
        (
            "for edge in self.out_edges:\n    if self.id == edge.target:\n        self.send(edge, self.x)",
            False,
        ),
        ("for edge in self.out_edges:\n    if edge.target > self.id:\n        self.send(edge, self.x)", True),
        ("for edge in self.out_edges:\n    if edge.target != 3:\n        self.send(edge, self.x)", True),
        (
            "for edge in self.out_edges:\n    if edge.target != self.id:\n        self.send(edge, self.id)",
            True,
        ),
        ("for edge in self.out_edges:\n    if edge.target != self.id + 1:\n        self.send(edge, 1)", True),
        ("for edge in self.out_edges:\n    if 0 < edge.target != self.id:\n        self.send(edge, 1)", True),
    ],
)
def test_edges_whose_ends_are_only_compared_need_no_ids(body: str, needs: bool) -> None:
    assert analyse(program_of(body)).needs_end_ids == needs


@pytest.mark.parametrize(
    "message",
    [
        "self.near(self.s, 0.5 if self.id > 1 else self.x).x",
        "self.near(p, edge.weight).x",
        "self.near(self.s if self.x > 0.4 else q, edge.weight).x + self.near(q, 0.75 * edge.weight).n",
        "self.near(p._replace(n=5), edge.weight).n * self.deep(self.w, edge.weight)",
    ],
)
def test_a_record_that_is_read_with_the_edge(message: str) -> None:
    """Its fields go into the outbox record, one by one; nested ones and vectors too."""
    program = program_of(
        "p = self.s\nq = Spot(self.x + 1.0, 4)\nself.x = max(messages, default=self.x)\n"
        f"if self.superstep < 2:\n    for edge in self.out_edges:\n        self.send(edge, {message})\n"
        "else:\n    self.vote_to_halt()\nself.s = p._replace(x=self.x - 0.25)",
        "s: State[Spot] = Spot(1.5, 2)\nw: State[Whole] = Whole(Spot(0.5, 3), (1.0, -2.0))\n"
        "def near(self, one, b):\n    return one if one.x < b else one._replace(x=b)\n"
        "def deep(self, whole, b):\n    return whole.spot.n * b + whole.at[1] + self.near(whole.spot, b).x",
        before="class Spot(NamedTuple):\n    x: float\n    n: int\n"
        "class Whole(NamedTuple):\n    spot: Spot\n    at: Vector[float, 2]",
    )
    graph = Graph.from_edges([0, 1, 2, 0, 3, 3], [1, 2, 0, 2, 0, 1], weights=[1.0, 2.5, 3.0, 0.5, 1.25, 2.0])
    judge, found = (run(program, graph, device=device)["x"].tolist() for device in ("python", "cpu"))
    assert found == judge
    assert len(set(judge)) > 1 or "self.id" in message
