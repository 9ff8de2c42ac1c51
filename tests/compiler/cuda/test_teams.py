"""Which loops the warps or threads of a block share, and how what they fold is joined."""

from __future__ import annotations

import ast
import re

import pytest
from cells import program_of
from edge_programs import Closeness, EdgeTriangles, Loudest, Waves
from team_programs import ALONE, SHARED, listed_program

from sigps import Vertex
from sigps.apps import LCC, BiTriDN, EgoNet, PageRank, TriDN
from sigps.compiler.cuda.teams import divided, divides
from sigps.compiler.frontend.analysis import analyse


def joins(
    body: str, fields: str = "kept: EdgeState[int] = 0\ncount: State[np.int32] = 0"
) -> list[str] | None:
    """Return what joins the accumulators of a program's divided loops; None where they are not divided."""
    program = program_of(
        body + "\nself.vote_to_halt()",
        fields,
        message="directed=False",
        before="import numpy as np\nfrom sigps import EdgeState",
    )
    module = divided(analyse(program).module, by_warp=True)
    if module is None:
        return None
    lines = ast.unparse(module).splitlines()
    return [line.strip() for line in lines if re.search(r"__team_(sum|step\()|if __other", line)]


def joined(name: str, compared: str) -> list[str]:
    """Return how an extreme is joined: what another has is taken as a whole, where it is better."""
    return [f"__other_{name} = __team_step(__team, __step, {name})", f"if __other_{name} {compared} {name}:"]


@pytest.mark.parametrize("made", [BiTriDN(), TriDN(), EdgeTriangles(), Closeness(), EgoNet(source=0)])
def test_programs_that_teams_run(made: Vertex) -> None:
    assert divides(analyse(made))


@pytest.mark.parametrize("made", [Waves(), Loudest(), PageRank(), LCC()])
def test_programs_that_they_do_not(made: Vertex) -> None:
    """An edge reads what another brought, messages are listed by vertices of warps, or no edge is gone through."""
    assert not divides(analyse(made))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.count += LOOK", ["__s_count = __before___s_count + __team_sum(__team, __s_count)"]),
        ("self.count = max(self.count, LOOK)", joined("__s_count", ">")),
        (
            "x = LOOK\n    if x < self.count:\n        self.count = x",
            joined("__s_count", "<"),
        ),
        ("edge.kept = LOOK", []),
        ("if LOOK > 3:\n        continue\n    edge.kept += 1", []),
    ],
)
def test_what_is_joined(body: str, expected: list[str]) -> None:
    look = "sum(1 for a, b in self.common_neighbors(edge))"
    assert joins(f"for edge in self.out_edges:\n    {body.replace('LOOK', look)}") == expected


@pytest.mark.parametrize(
    "body",
    [
        "self.count = self.count * 2 + LOOK",
        "self.count += LOOK\n    edge.kept = self.count",
        "self.count = LOOK",
        "edge.kept = LOOK\n    if edge.kept > 3:\n        break",
        "if LOOK > self.count:\n        self.count += 1",
        "self.count += LOOK\n    self.count = max(self.count, 3)",
    ],
)
def test_what_depends_on_other_edges_is_not_divided(body: str) -> None:
    look = "sum(1 for a, b in self.common_neighbors(edge))"
    assert joins(f"for edge in self.out_edges:\n    {body.replace('LOOK', look)}") is None


def test_all_that_is_written_to_edges_is_in_divided_loops() -> None:
    look = "for edge in self.out_edges:\n    self.count += sum(1 for a, b in self.common_neighbors(edge))\n"
    assert joins(look + "for e in self.out_edges:\n    e.kept += 1") is not None
    assert joins(look + "n = 0\nfor e in self.out_edges:\n    n = n * 2 + 1\n    e.kept = n") is None


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("name", SHARED)
def test_threads_share_what_does_not_depend_on_other_messages(name: str, sends: bool) -> None:
    assert divides(analyse(listed_program(SHARED[name], sends=sends, sums=False)))


@pytest.mark.parametrize("name", ALONE)
def test_threads_do_not_share_what_does(name: str) -> None:
    assert not divides(analyse(listed_program(ALONE[name], sums=False)))


def test_one_thread_sends_what_is_sent_outside_of_loops() -> None:
    module = divided(analyse(listed_program(ALONE["in order"], sends=True)).module, by_warp=False)
    assert module is not None
    text = ast.unparse(module)
    assert text.count("emit(") - 1 == 3  # its definition, the edges' loop, the answers', and one's own
    assert text.count("if __team_leads(__team):\n") == 1
