"""What programs that keep values on edges, or look at neighbours, are refused, and in which words."""

from __future__ import annotations

import pytest
from battery import BATTERY
from cells import program_of

from sigps import (
    CompileError,
    run,
)
from sigps.compiler.frontend.analysis import analyse


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("for edge in self.out_edges:\n    edge.weight = 1.0", "its columns belong to the graph"),
        ("for one, other in self.common_neighbors(3):\n    pass", "takes the variable of a loop"),
        ("e = 3\nfor one, other in self.common_neighbors(e):\n    pass", "takes the variable of a loop"),
        ("self.x = self.common_neighbors", "takes the variable of a loop"),
        ("for edge in self.out_edges:\n    n = self.common_neighbors(edge)", "is looped over"),
        (
            "for edge in self.out_edges:\n    for one in self.common_neighbors(edge):\n        pass",
            "gives pairs",
        ),
        (
            "for edge in self.out_edges:\n    for one, one in self.common_neighbors(edge):\n        pass",
            "names of their own",
        ),
        (
            "for edge in self.out_edges:\n    for edge, one in self.common_neighbors(edge):\n        pass",
            "names of their own",
        ),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n        a.kept = 1",
            "as it was when the superstep began",
        ),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n        self.x = a.weight",
            "has a target and what is kept on it, no 'weight'",
        ),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n"
            "        for c, d in self.common_neighbors(a):\n            pass",
            "takes the variable of a loop over self.out_edges",
        ),
        (
            "self.x = sum(sum(1 for a, b in self.common_neighbors(edge)) for edge in self.out_edges)",
            "write a loop",
        ),
        (
            "for edge in self.out_edges:\n    self.x = min(a.kept for a, b in self.common_neighbors(edge))",
            "default",
        ),
        ("for edge in self.out_edges:\n    self.x = len(self.common_neighbors(edge))", "cannot take pairs"),
        ("self.x = self.kept", "is kept on edges"),
        ("self.kept = 3", "is kept on edges"),
        ("for edge in self.out_edges:\n    self.x = edge.reverse.kept", "directed=False"),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n        self.send(b, 1.0)",
            "the variable of a loop over self.out_edges",
        ),
        (
            "for e in self.out_edges:\n    for a, b in self.common_neighbors(e):\n"
            "        self.x += sum(a.kept for a in self.out_edges)",
            "choose another name",
        ),
        (
            "for e in self.out_edges:\n    for a, b in self.common_neighbors(e):\n"
            "        for a in self.out_edges:\n            self.x += a.kept",
            "choose another name",
        ),
        (
            "self.x = sum(max((e.weight * f.target for e in self.out_edges), default=0.0) for f in self.out_edges)",
            "cannot hold another",
        ),
    ],
)
def test_refused_by_the_compiler(body: str, says: str) -> None:
    with pytest.raises(CompileError) as error:
        analyse(program_of(body, "kept: EdgeState[int] = 0\n", before="from sigps import EdgeState"))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("for edge in self.out_edges:\n    edge.weight = 1.0", "its columns belong to the graph"),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n        a.kept = 1",
            "as it was when the superstep began",
        ),
        (
            "for edge in self.out_edges:\n    for a, b in self.common_neighbors(edge):\n        self.x = a.weight",
            "has a target and what is kept on it, no 'weight'",
        ),
        ("self.x = self.kept", "is kept on edges"),
        ("self.kept = 3", "is kept on edges"),
    ],
)
def test_refused_by_the_interpreter(body: str, says: str) -> None:
    program = program_of(body, "kept: EdgeState[int] = 0\n", before="from sigps import EdgeState")
    with pytest.raises(AttributeError, match=says):
        run(program, BATTERY["complete_5"].build(), device="python")


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("weight: EdgeState[int] = 0", "every edge has a 'weight' of its own"),
        ("source: EdgeState[int] = 0", "every edge has a 'source' of its own"),
        ("kept: EdgeState[str] = 0", "EdgeState.str. is not supported"),
        ("kept: EdgeState[int] = 0.5", "EdgeState.int. cannot begin as 0.5"),
        ("kept: EdgeState[int] = sigps.neighbor_links", "a measure of vertices"),
    ],
)
def test_refused_declarations(field: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        program_of("pass", field + "\n", before="import sigps\nfrom sigps import EdgeState")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("self.x = edge.reverse", "is read as edge.reverse.<what"),
        ("self.x = edge.reverse.weight", "has what is kept on edges, no 'weight'"),
        ("edge.reverse.kept = 3", "the edge's target keeps it"),
        ("edge.reverse = 3", "is read as edge.reverse.<what"),
        ("self.x = edge.reverse.reverse.kept", "has what is kept on edges, no 'reverse'"),
    ],
)
def test_a_reverse_that_is_refused(line: str, says: str) -> None:
    program = program_of(
        f"for edge in self.out_edges:\n    {line}",
        "kept: EdgeState[int] = 0\n",
        before="from sigps import EdgeState",
        message="directed=False",
    )
    with pytest.raises(CompileError, match=says):
        analyse(program)
    if "reverse.reverse" not in line and line != "self.x = edge.reverse":
        with pytest.raises(AttributeError):
            run(program, BATTERY["complete_5"].build(), device="python")
