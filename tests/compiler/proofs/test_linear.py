"""Which programs are linear, and why others are not."""

from __future__ import annotations

import pytest
from cells import program_of
from gas_programs import Rank

from sigps import Vertex
from sigps.apps import SSSP, HeatDiffusion, Katz, PageRank
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.linear import Linear, linear

FIELDS = "total = Aggregator.sum(float)\nmost = Aggregator.max(float)\nscale: Param[float] = 0.5"


def rounds_of(step: str, sent: str = "self.x") -> Vertex:
    """Return a program that computes `x` of the sum `g` of its messages in each of 50 rounds."""
    return program_of(
        f"""
        if self.superstep > 0:
            g = sum(messages)
            {step}
        if self.superstep >= 50:
            self.vote_to_halt()
        else:
            self.send_to_neighbors({sent})
        """,
        FIELDS,
    )


def sending_what_was() -> Vertex:
    """Return a program that sends its state of before."""
    return program_of(
        """
        before = self.x
        if self.superstep > 0:
            self.x = 1.0 + 0.5 * sum(messages)
        if self.superstep >= 50:
            self.vote_to_halt()
        else:
            self.send_to_neighbors(before)
        """,
        FIELDS,
    )


def passing(message: str) -> Vertex:
    """Return a program that sends this along each edge in each of 50 rounds."""
    return program_of(
        f"""
        if self.superstep > 0:
            self.x = 1.0 + 0.1 * sum(messages)
        if self.superstep >= 50:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                self.send(edge, {message})
        """,
        FIELDS,
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (PageRank(), Linear(0)),
        (PageRank(tolerance=1e-9), Linear(0)),
        (PageRank(dangling="leak"), Linear(None)),
        (Katz(attenuation=0.1), Linear(None)),
        (rounds_of("self.x = 1.0 - (2.0 - g) * self.scale / self.num_vertices"), Linear(None)),
        (rounds_of("self.x = 1.0 + 0.5 * (g + self.total)"), Linear(0)),
    ],
)
def test_linear_programs(program: Vertex, expected: Linear) -> None:
    assert linear(analyse(program)) == expected


@pytest.mark.parametrize(
    ("message", "reads_ends"),
    [
        ("self.x", False),
        ("0.5 * edge.weight * self.x", False),
        ("self.x / (3.0 + edge.target)", True),
        ("self.x * edge.source", False),  # what the sender sends is that
    ],
)
def test_what_an_edge_passes_may_depend_on_its_ends(message: str, reads_ends: bool) -> None:
    assert linear(analyse(passing(message))) == Linear(None, reads_ends=reads_ends)


def ending(step: str) -> Vertex:
    """Return a program that takes this step in the superstep in which all halt."""
    return program_of(
        f"""
        if self.superstep > 1 and self.most < 0.5:
            {step}
            self.vote_to_halt()
        else:
            if self.superstep > 0:
                self.x = 1.0 + 0.5 * sum(messages)
            self.send_to_neighbors(self.x)
        """,
        FIELDS,
    )


def test_the_end_is_no_step() -> None:
    assert linear(analyse(Rank())) == Linear(None)
    assert linear(analyse(ending("self.x = self.x"))) == Linear(None)
    for step in ("self.x = 0.5 * self.x", "self.x = 7.0"):
        assert "the state is not" in str(linear(analyse(ending(step))))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (SSSP(source=0), "one sum of messages"),
        (HeatDiffusion(source=0, rate=0.1), "one state"),
        (rounds_of("self.x = 1.0 + 0.5 * g + 0.1 * self.x"), "not always the same linear function"),
        (rounds_of("self.x = 1.0 + g * g"), "not linear in messages"),
        (rounds_of("self.x = 1.0 / (1.0 + g)"), "not linear in messages"),
        (rounds_of("self.x = 1.0 + abs(g)"), "not linear in messages"),
        (rounds_of("self.x = 1.0 + 0.5 * (g if g > 0.5 else 0.5)"), "does more than add"),
        (rounds_of("self.x = 1.0 + 0.5 * g + self.most"), "more than one aggregator"),
        (rounds_of("self.x = (1.0 if abs(self.x) > 3.0 else 2.0) + 0.5 * g"), "not always the same"),
        (rounds_of("self.x = 1.0 + 0.5 * g", sent="self.x * self.x"), "what is sent is not linear"),
        (rounds_of("self.x = 1.0 + self.num_edges + 0.1 * g"), "reads the number of edges"),
        (rounds_of("self.x = 1.0 + 0.1 * g", sent="self.x / self.num_edges"), "reads the number of edges"),
        (passing("edge.weight * self.x / (1 + self.superstep)"), "depends on the superstep"),
        (sending_what_was(), "the state of before"),
    ],
)
def test_others(program: Vertex, reason: str) -> None:
    found = linear(analyse(program))
    assert isinstance(found, str)
    assert reason in found


def test_explain_says_so() -> None:
    assert "linear: on one rank stream(..., tolerance=...) follows its solution" in explain(PageRank)
    assert "tolerance=..." not in explain(SSSP)
