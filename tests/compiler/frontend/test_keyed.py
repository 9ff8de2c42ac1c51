"""Messages by key: what is derived, and what is refused."""

from __future__ import annotations

import pytest
from cells import program_of
from keyed_programs import KEYED

from sigps import CompileError
from sigps.compiler.cpu.native import compile_for_cpu
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.program import Consumption, VertexProgram

BEFORE = """
class Vote(NamedTuple):
    label: int
    weight: float

def label_of(vote):
    return vote.label

def third(number):
    return number // 3
"""
SENDS = "\nself.send_to_neighbors(Vote(self.id, 2.0))"
VOTE = {"message": "message=Vote", "before": BEFORE}


def derived(body: str, fields: str = "", **options: str) -> VertexProgram:
    return analyse(program_of(body + SENDS, fields, **(VOTE | options)))


@pytest.mark.parametrize(
    ("line", "key", "weight"),
    [
        ("self.x = messages.most_common(lambda m: m.label, default=3)", "m.label", "1"),
        ("self.x = messages.most_common(key=lambda vote: vote.label, default=3)", "m.label", "1"),
        ("self.x = messages.most_common(label_of, default=3)", "label_of(m)", "1"),
        (
            "self.x = messages.most_common(lambda m: third(m.label), weight=lambda n: n.weight, default=3)",
            "third(m.label)",
            "m.weight",
        ),
        ("if messages:\n    self.x = messages.most_common(lambda m: m.label % self.p)", "m.label % self.p", "1"),
        (
            "a = messages.most_common(label_of, default=3)\nb = messages.most_common(label_of, default=4)\n"
            "self.x = a + b",
            "label_of(m)",
            "1",
        ),
    ],
)  # fmt: skip
def test_most_common_alone_leaves_the_search_to_the_engine(line: str, key: str, weight: str) -> None:
    program = derived(line, "p: Param[int] = 3\n")
    assert program.consumption is Consumption.GROUPED
    assert [(slot.op, slot.text) for slot in program.slots] == [("key", key), ("sum", weight)]
    assert program.reads_all_at_once
    assert not program.sorts_by
    assert program.edge_obstacle is not None


@pytest.mark.parametrize(
    "body",
    [
        "for k, group in messages.grouped(label_of):\n    self.x += k * len(group)",
        "self.x = messages.most_common(label_of, default=3) + len(messages)",
        "self.x = messages.most_common(label_of, default=3)\nfor m in messages:\n    self.x += m.weight",
        "self.x = messages.most_common(label_of, default=0)\nself.send_to(7, Vote(1, 2.0))",
        "y = messages.most_common(label_of, default=0)\n"
        "self.x = messages.most_common(label_of, lambda m: m.weight, default=y)",
        "self.x = messages.most_common(label_of, lambda m: m.weight * self.x, default=0)",
    ],
)  # fmt: skip
def test_other_reads_take_a_list_sorted_by_the_key(body: str) -> None:
    program = derived(body)
    assert program.consumption is Consumption.LISTED
    assert program.sorts_by == "label_of(m)"
    assert program.function("key") is not None
    assert program.obstacles


def test_a_group_is_read_as_messages_are() -> None:
    program = derived(
        "for k, group in messages.grouped(label_of):\n"
        "    best = min(group, key=lambda m: m.weight)\n"
        "    self.x += best.weight + max((m.label for m in group), key=third)"
    )
    assert program.sorts_by == "label_of(m)"
    compile_for_cpu(program, {})


def test_a_list_that_nobody_groups_is_not_sorted() -> None:
    program = derived("for m in messages:\n    self.x = self.x * 2 + m.weight")
    assert (program.consumption, program.sorts_by, program.function("key")) == (Consumption.LISTED, "", None)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.x = messages.most_common(label_of)", "most_common() needs default=..., or to stand under 'if messages"),
        ("self.x = messages.most_common(default=1)", "name the key, as in lambda m: m.label"),
        ("self.x = messages.most_common(lambda m: m.size, default=1)", "a message has no field 'size'"),
        ("self.x = messages.most_common(lambda m, n: m.label, default=1)", "a key takes one argument"),
        ("self.x = messages.most_common(label_of, by=1, default=1)", "most_common() takes key=, weight=, default="),
        ("self.x = messages.grouped(label_of)", "grouped() stands in a loop"),
        ("for k in messages.grouped(label_of):\n    pass", "for key, group in messages.grouped"),
        ("for k, g in messages.grouped(label_of, 3):\n    pass", "grouped() takes key="),
        ("for k, g in messages.grouped(label_of):\n    y = g", "not stored, indexed or handed on"),
        (
            "for k, g in messages.grouped(label_of):\n    for j, h in g.grouped(third):\n        pass",
            "a group has one key",
        ),
        ("for k, g in messages.grouped(lambda m: m.label + self.id):\n    pass", "on self.id: engines sort messages"),
        ("y = 2\nfor k, g in messages.grouped(lambda m: m.label + y):\n    pass", "on 'y': engines sort messages"),
        (
            "for k, g in messages.grouped(label_of):\n    pass\n"
            "for k, g in messages.grouped(lambda m: m.label):\n    pass",
            "messages are grouped by label_of(m) elsewhere in compute(), and here by m.label",
        ),
    ],
)  # fmt: skip
def test_refused(line: str, says: str) -> None:
    with pytest.raises(CompileError) as caught:
        derived(line)
    assert says in str(caught.value)
    assert caught.value.line is not None


@pytest.mark.parametrize(
    "line",
    [
        "self.x = messages.most_common(lambda m: m.weight, default=1)",
        "for k, g in messages.grouped(lambda m: m.weight):\n    self.x += k",
        "for k, g in messages.grouped(lambda m: (m.label, 1)):\n    self.x += len(g)",
    ],
)
def test_a_key_is_a_whole_number(line: str) -> None:
    with pytest.raises(CompileError, match="a key of messages is a whole number") as caught:
        compile_for_cpu(derived(line), {})
    assert caught.value.line is not None


def test_a_combiner_leaves_nothing_to_group() -> None:
    with pytest.raises(CompileError, match="one message at most"):
        analyse(program_of("self.x = messages.most_common(default=1)", message="message=int, combiner=min"))


def test_explain_says_how_messages_are_grouped() -> None:
    assert "m.label // 2: a table a vertex adds up m.strength of each" in explain(type(KEYED["pulls"]))
    assert "m: a table a vertex counts the messages of each" in explain(type(KEYED["votes"]))
    assert "m.article: each list is sorted by it" in explain(type(KEYED["orders"]))
