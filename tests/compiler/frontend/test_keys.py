"""min() and max() with key=, of messages, edges and tuples, and sorted() of a tuple: worked cases on every CPU way."""

from __future__ import annotations

from typing import Any

import pytest
from battery import BATTERY
from cells import program_of
from thread_group import ThreadGroup, run_ranks
from turns import in_turn

from sigps import CompileError, ComputeError, Graph, run
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption

WAYS: list[dict[str, Any]] = [
    {"device": "python"},
    {"device": "cpu", "direction": "pull"},
    {"device": "cpu", "direction": "push", "threads": 2},
]
OFFER = """
class Offer(NamedTuple):
    price: float
    seller: int
"""
STAR = Graph.from_edges([1, 2, 3, 4], [0, 0, 0, 0], weights=[3.0, 1.0, 2.0, 1.0])
SEND = """
if self.superstep == 0:
    self.send_to_neighbors(Offer(float(self.id % 2), self.id))
elif messages:
"""


def read(line: str, *, fields: str = "n: State[int] = -1", **options: Any) -> Any:
    """Return a program that reads its offers, (1, 1), (0, 2), (1, 3) and (0, 4), in one line."""
    body = f"{SEND}    {line}\nself.vote_to_halt()"
    return program_of(body, fields, message="message=Offer", before=OFFER, **options)


@pytest.mark.parametrize(("case", "way"), in_turn(
    [
        ("self.n = min(messages, key=lambda m: m.price).seller", 2),
        ("self.n = max(messages, key=lambda m: m.price).seller", 3),
        ("self.n = min(messages, key=lambda m: m.seller).seller", 1),
        ("self.n = max(messages, key=lambda m: -m.seller).seller", 1),
        ("self.n = min(messages, key=lambda m: (m.price, -m.seller)).seller", 4),
        ("self.n = min(messages, key=lambda m: m.seller // 3).seller", 2),
        ("self.n = max(messages, key=lambda m: m.seller // 3).seller", 3),
        ("self.n = max(messages, key=lambda m: m.seller > 2).seller", 3),
        ("self.n = min((m for m in messages if m.seller > 1), key=lambda m: m.seller, default=Offer(0, 9)).seller", 2),
        ("self.n = min((m for m in messages if m.seller > 8), key=lambda m: m.seller, default=Offer(0, 9)).seller", 9),
        ("self.n = max((m.seller for m in messages), key=lambda s: s % 3)", 2),
        ("self.n = min(messages, key=lambda m: m.price / (m.price - m.price) if m.price else 1.0).seller", 2),
    ],
    WAYS[1:],
))  # fmt: skip
def test_the_message_with_the_best_key(case: tuple[str, int], way: dict[str, Any]) -> None:
    line, expected = case
    for options in (WAYS[0], way):
        assert run(read(line), STAR, **options)["n"].tolist() == [expected, -1, -1, -1, -1], options


def test_a_key_of_the_first_fields_needs_no_slot_of_its_own() -> None:
    (slot,) = analyse(read("self.n = min(messages, key=lambda m: m.price).seller")).slots
    assert (slot.op, len(slot.names), slot.text) == ("min", 2, "m")
    (slot,) = analyse(read("self.n = max(messages, key=lambda m: m.seller).seller")).slots
    assert (slot.op, len(slot.names), slot.text) == ("max", 3, "m by m.seller")


def test_a_key_of_the_reader_makes_lists() -> None:
    program = read(
        "self.n = min(messages, key=lambda m: abs(m.seller - self.wish)).seller",
        fields="n: State[int] = -1\nwish: State[int] = 3",
    )
    assert analyse(program).consumption is Consumption.LISTED
    for way in WAYS:
        assert run(program, STAR, **way)["n"][0] == 3


@pytest.mark.parametrize(("line", "num_ranks"), in_turn([
    "self.n = min(messages, key=lambda m: m.seller % 3).seller",
    "self.n = max(messages, key=lambda m: (m.price, m.seller % 2)).seller",
], [2, 3]))  # fmt: skip
def test_ranks_find_the_same(line: str, num_ranks: int) -> None:
    program = read(line)
    judge = run(program, BATTERY["skewed"].build(), device="python")["n"].tolist()

    def on_ranks(group: ThreadGroup) -> Any:
        graph = BATTERY["skewed"].build(group=group)
        return [run(program, graph, device=d, partitioner="hash")["n"].tolist() for d in ("cpu", "python")]

    assert run_ranks(num_ranks, on_ranks)[0] == [judge, judge]


EDGES = Graph.from_edges(
    [0, 0, 0, 0, 1, 1], [1, 2, 3, 4, 0, 2], weights=[3.0, 1.0, 2.0, 1.0, 4.0, 5.0], vertices=[7]
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("edge = min(self.out_edges, key=lambda e: e.weight)", [2, 0]),
        ("edge = min(self.out_edges, key=lambda e: math.sqrt(-1.0) if e.target == 0 else e.weight)", [2, 2]),
        ("edge = max(self.out_edges, key=lambda e: e.weight)", [1, 2]),
        ("edge = max(self.out_edges, key=lambda e: -e.weight)", [2, 0]),
        ("edge = max(self.out_edges, key=lambda e: (e.weight, e.target))", [1, 2]),
        ("edge = min((e for e in self.out_edges if e.target != 2), key=lambda e: e.weight)", [4, 0]),
    ],
)
def test_the_edge_with_the_best_key(line: str, expected: list[int]) -> None:
    body = f"if self.out_degree:\n    {line}\n    self.n = edge.target\n    self.send(edge, 2.5)"
    body += "\nself.x += sum(messages)\nif self.superstep:\n    self.vote_to_halt()"
    program = program_of(body, "n: State[int] = -1")
    judge = run(program, EDGES, device="python", max_supersteps=2)
    assert judge["n"].tolist() == [*expected, -1, -1, -1, -1]
    assert judge["x"].sum() == 5.0
    for way in WAYS[1:]:
        found = run(program, EDGES, max_supersteps=2, **way)
        assert [found[f].tolist() for f in found.fields] == [judge[f].tolist() for f in judge.fields]


@pytest.mark.parametrize("way", WAYS)
def test_of_no_edge_there_is_no_best(way: dict[str, Any]) -> None:
    line = "self.x = min(self.out_edges, key=lambda e: e.weight).weight"
    with pytest.raises(ComputeError, match="no such out-edge") as caught:
        run(program_of(line), EDGES, max_supersteps=1, **way)
    assert caught.value.source == line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("self.n = min(3, -5, 4, key=abs)", 3),
        ("self.n = max((3, -5, 5), key=lambda v: v * v)", -5),
        ("self.n = min((1, 9), (2, 3), key=lambda pair: pair[1])[0]", 2),
        ("low, mid, high = sorted((self.id, 3, -2))\n    self.n = low + 10 * mid + 100 * high", 298),
        ("self.n = sorted(((2, 1), (1, 5), (1, 4)))[1][1]", 5),
        (
            "self.n = (-5).bit_length() + 10 * self.id.bit_count() + 100 * divmod(-7, 2)[1] + 1000 * abs(-3)",
            3103,
        ),
        ("self.n = round(2.5) + 10 * round(-3.5)", -38),
    ],
)
def test_tuples_and_numbers(line: str, expected: int) -> None:
    program = program_of(f"if self.id == 0:\n    {line}\nself.vote_to_halt()", "n: State[int] = 0")
    for way in WAYS:
        assert run(program, STAR, **way)["n"][0] == expected, way


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.n = min(messages, key=lambda m: m.seller).seller", "needs default="),
        ("self.n = min(messages, key=lambda m: m.cost, default=Offer(0.0, 1)).seller", "no field 'cost'"),
        ("self.n = min(messages, key=lambda: 1, default=Offer(0.0, 1)).seller", "takes one argument"),
        ("self.n = min(messages, key=3, default=Offer(0.0, 1)).seller", "a lambda or the name"),
        ("x = 3\nself.n = min(x, key=abs)", "a tuple that is written out"),
        ("edge = min(self.out_edges, key=lambda e: e.weight, default=0)", "self.out_degree before it"),
        ("f = lambda m: m\nself.n = 1", "a lambda cannot be compiled"),
        ("self.n = sorted(messages)[0].seller", "keep the best ones in local variables"),
        ("self.n = sorted((1, 2), reverse=True)[0]", "one tuple here"),
        ("self.n = sorted((1, 2, 3, 4, 5, 6, 7, 8, 9))[0]", "at most 8"),
        ("self.x = round(2.345, 2)", "takes 1 argument"),
    ],
)
def test_what_is_refused(line: str, says: str) -> None:
    program = program_of(line, "n: State[int] = 0", message="message=Offer", before=OFFER)
    with pytest.raises(CompileError, match=says):
        run(program, STAR, device="cpu")


@pytest.mark.parametrize("line", [
    "self.n = max(messages, key=lambda m: m.seller % 3).seller",
    "self.n = min(messages, key=lambda m: abs(m.seller - self.n)).seller",
    "low, high = sorted((len(messages), self.n))\n    self.n = min(low, high, key=abs)",
])  # fmt: skip
def test_links_for_a_gpu(line: str) -> None:
    pytest.importorskip("cuda.core")
    program = compile_for_cuda(analyse(read(line)), {}, narrow_ids=True, arch="sm_90")
    assert len(link(program, "gather_reference", "sm_90")) > 1000
