"""Arithmetic that has no result ends a run, at the user's line, on every device that can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import program_of
from fault_cases import CASES, assert_faults
from thread_group import ThreadGroup, run_ranks

from sigps import CompileError, ComputeError, Graph, Vertex, run

RING = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
"""Every vertex has one in-edge and one out-edge."""

FIELDS = "n: State[int] = 3\nu: State[np.uint8] = 200\nw: State[np.uint64] = 5"


def fault(body: str, device: str, line: str, **options) -> ComputeError:
    """Run a program and return the error that it ends with."""
    program = program_of(body, FIELDS, message="message=int")
    with pytest.raises(ComputeError) as caught:
        run(program, RING, device=device, **options)
    assert caught.value.source == line
    return caught.value


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.n = 7 // (self.id - 2)", "zero"),
        ("self.n = 7 % (self.id - 2)", "zero"),
        ("self.n = (self.id - 6) ** 40", "fit"),
        ("self.n = 1 << (self.id + 62)", "fit"),
        ("self.n = 4611686018427387904 * self.id", "fit"),
        ("self.u += self.id * 50", "fit"),
        ("self.n = int(self.id * 1e300)", ""),
    ],
)
def test_arithmetic_without_a_result(line: str, says: str, device: str) -> None:
    error = fault(f"{line}\nself.vote_to_halt()", device, line)
    assert says in str(error)
    assert error.superstep == 0
    assert ", in vertex" in str(error)


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_every_case(name: str, device: str) -> None:
    assert_faults(name, device=device)


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_a_sum_of_messages_beyond_64_bits(direction: str) -> None:
    """Each vertex hears from two others, and their messages are each at most 2**62."""
    graph = Graph.from_edges([0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 2, 3, 0, 1])
    body = "self.n = sum(messages)\nif self.superstep == 0:\n    self.send_to_neighbors(2**62)\nself.vote_to_halt()"
    program = program_of(body, FIELDS, message="message=int")
    with pytest.raises(ComputeError, match="fit 64 bits") as caught:
        run(program, graph, device="cpu", direction=direction, threads=1)
    assert caught.value.superstep == 1
    half = program_of(body.replace("2**62", "2**61"), FIELDS, message="message=int")
    assert run(half, graph, device="cpu", direction=direction)["n"].tolist() == [2**62] * 4


@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("device", ["python", "cpu"])
def test_what_an_edge_does_not_bring_has_no_fault(device: str, direction: str) -> None:
    body = (
        "self.n = sum(10 // m for m in messages)\nif self.superstep == 0:\n    for edge in self.out_edges:\n"
        "        if edge.target != 2:\n            self.send(edge, self.id + 1)\nself.vote_to_halt()"
    )
    program = program_of(body, FIELDS, message="message=int")
    assert run(program, RING, device=device, direction=direction)["n"].tolist() == [2, 10, 0, 3]


def test_the_vertex_is_named_by_its_id() -> None:
    graph = Graph.from_edges([10, 20, 30], [20, 30, 10])
    program = program_of("self.n = 1 // (self.id - 30)\nself.vote_to_halt()", FIELDS)
    for device in ("python", "cpu"):
        with pytest.raises(ComputeError, match="in vertex 30, superstep 0"):
            run(program, graph, device=device)


FULL = Graph.from_edges([0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 2, 3, 0, 1])
"""Every vertex has two in-edges."""

NOTHING_LEFT = """
def nothing_left(a, b):
    return 7 // (a - a)
"""


@pytest.mark.parametrize(
    "way", [{"device": "python"}, {"direction": "pull"}, {"direction": "push", "threads": 2}]
)
@pytest.mark.parametrize(
    ("body", "kind", "source"),
    [
        ("self.n = len(messages)\nself.n += sum(messages)", "", "self.n += sum(messages)"),
        ("for m in messages:\n    self.n += m", "", "self.n += m"),
        ("self.n = sum(messages)", ", combiner=sum", "class Program(Vertex, message=int, combiner=sum):"),
        ("self.n = sum(messages)", ", combiner=nothing_left", "return 7 // (a - a)"),
    ],
)
def test_where_messages_cannot_be_combined(body: str, kind: str, source: str, way: dict[str, str]) -> None:
    body += "\nif self.superstep == 0:\n    self.send_to_neighbors(2**62)\nself.vote_to_halt()"
    program = program_of(body, FIELDS, message=f"message=int{kind}", before=NOTHING_LEFT)
    with pytest.raises(ComputeError, match=r"in vertex [0-3], superstep 1") as caught:
        run(program, FULL, **way)
    assert caught.value.source == source


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize(
    ("declared", "given", "superstep"),
    [
        ("Aggregator.sum(int)", "2**62 * (self.superstep == 2)", 2),
        ("Aggregator.sum(np.int8)", "50", 0),
        ("Aggregator.sum(np.uint32, persistent=True)", "2**29", 1),
    ],
)
def test_a_total_of_all_vertices_beyond_its_type(
    declared: str, given: str, superstep: int, device: str, threads: int, ranks: int
) -> None:
    program = program_of(f"self.n = 1\nself.total += {given}", f"{FIELDS}\ntotal = {declared}")

    def one(group: ThreadGroup) -> None:
        run(program, RING if ranks == 1 else _ring(group), device=device, threads=threads, max_supersteps=4)

    with pytest.raises(ComputeError, match=f"in aggregator 'total', superstep {superstep}") as caught:
        run_ranks(ranks, one)
    assert caught.value.source == f"total = {declared}"


def _ring(group: ThreadGroup) -> Graph:
    return Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], group=group)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_total_of_uint64_wraps_around(device: str, ranks: int) -> None:
    program = program_of("self.total += np.uint64(2**62 + 1)", "total = Aggregator.sum(np.uint64)")

    def one(group: ThreadGroup) -> int:
        found = run(program, _ring(group), device=device, threads=2, max_supersteps=2)
        return int(found.aggregators["total"])

    assert run_ranks(ranks, one)[0] == 4


def test_unsigned_numbers_of_64_bits_wrap_around() -> None:
    body = "self.w = self.w * np.uint64(0x9E3779B97F4A7C15) + np.uint64(self.id)\n"
    body += "if self.superstep > 2:\n    self.vote_to_halt()"
    expected = []
    for i in range(4):
        value = 5
        for _ in range(4):
            value = (value * 0x9E3779B97F4A7C15 + i) % 2**64
        expected.append(value)
    assert run(program_of(body, FIELDS), RING, device="cpu")["w"].tolist() == expected


def test_the_opposite_of_an_unsigned_number_is_negative() -> None:
    program = program_of("self.x = -self.u\nself.n = -int(self.w)\nself.vote_to_halt()", FIELDS)
    for device in ("python", "cpu"):
        result = run(program, RING, device=device)
        assert result["x"].tolist() == [-200.0] * 4
        assert result["n"].tolist() == [-5] * 4


def test_a_fault_on_one_rank_ends_all() -> None:
    program = program_of("self.n = 1 // (self.id - 3)\nself.vote_to_halt()", FIELDS)

    def one(group: ThreadGroup) -> None:
        run(program, Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], group=group), device="cpu")

    with pytest.raises(ComputeError, match="in vertex 3, superstep 0"):
        run_ranks(2, one)


NAMED_GRAPH = ([10, 20, 30, 40, 10, 20, 30, 40], [20, 30, 40, 10, 30, 40, 10, 20])


@pytest.mark.parametrize(
    "way",
    [
        {"device": "python"},
        {"direction": "pull", "threads": 2},
        {"direction": "push", "threads": 1},
        {"direction": "push", "threads": 2},
        {"schedule": "edge"},
    ],
    ids=lambda way: "-".join(map(str, way.values())),
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_message_without_a_result_is_its_senders(ranks: int, way: dict[str, Any]) -> None:
    """By its id, in the superstep in which it sends, wherever the message is read: a ghost's, too."""
    sends = (
        "self.send_to_neighbors(1 // (self.id - 30))",
        "for edge in self.out_edges:\n        self.send(edge, 7 % (self.id - edge.target + 10))",
    )
    reads = "self.n = max(messages, default=0)", "for m in messages:\n    self.n = self.n % 5 * 2 + m"
    for line, who in zip(sends, ("vertex 30, superstep 2", r"vertex [123]0, superstep 2"), strict=True):
        for read in reads[: 1 if way.get("schedule") == "edge" else 2]:
            body = f"{read}\nif self.superstep == 2:\n    {line}\nelif self.superstep == 4:\n    self.vote_to_halt()"
            program = program_of(body, FIELDS, message="message=int")

            def one(group: ThreadGroup, program: Vertex = program) -> None:
                run(program, Graph.from_edges(*NAMED_GRAPH, group=group if ranks > 1 else None), **way)

            with pytest.raises(ComputeError, match=f"in {who}") as caught:
                run_ranks(ranks, one)
            assert caught.value.source == line.splitlines()[-1].strip()


def test_what_does_not_overflow_is_exact() -> None:
    program = program_of(
        "self.n = (2**62 - 1) * 2 + 1\nself.x = 7 // -2 + -7 % 3\nself.vote_to_halt()", FIELDS
    )
    result = run(program, RING, device="cpu")
    assert result["n"].tolist() == [np.iinfo(np.int64).max] * 4
    assert result["x"].tolist() == [-4 + 2] * 4


def test_the_place_is_that_of_the_program_that_runs() -> None:
    """Two classes with one text share their compiled code, also on disk; lines may be broken elsewhere."""
    for body in ("self.n = 7 // self.id", "self.n = (\n    7\n    // self.id\n)", "self.n = 7 // self.id"):
        program = program_of(body, FIELDS)
        with pytest.raises(ComputeError) as caught:
            run(program, RING, device="cpu")
        assert caught.value.file == type(program).compute.__code__.co_filename
        assert caught.value.source in body


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_compute_that_yields_is_refused(device: str) -> None:
    with pytest.raises(CompileError, match="'yield'"):
        run(program_of("yield 1\nself.n = 3", FIELDS), RING, device=device)
