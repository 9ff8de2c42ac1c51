"""Vertices with thousands of messages or edges: a block's threads run each together, and agree with the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from team_programs import ALONE, SHARED, WALKED, listed_program, walking_program

import sigps
from sigps.apps import MinimumSpanningForest
from sigps.compiler.cuda.teams import divides
from sigps.compiler.frontend.analysis import analyse

pytestmark = pytest.mark.gpu


def hubs() -> sigps.Graph:
    """Return three hubs, each with thousands of neighbours of its own and some of others, and parallel edges."""
    rng = np.random.default_rng(5)
    hub = np.repeat([0, 1, 2], [600, 2_000, 5_000])
    leaf = rng.integers(3, 7_000, hub.size)
    weights = rng.integers(1, 50, hub.size) / 4
    return sigps.Graph.from_edges(hub, leaf, weights=weights, directed=False)


@pytest.mark.parametrize(
    ("name", "sends"),
    [*((name, sends) for name in SHARED for sends in (False, True)), *((name, False) for name in ALONE)],
)
def test_what_a_team_of_threads_computes_is_the_interpreters(name: str, sends: bool) -> None:
    program = listed_program({**SHARED, **ALONE}[name], sends=sends)
    assert divides(analyse(program))
    graph = hubs()
    judge = sigps.run(program, graph, device="python")
    result = sigps.run(program, graph, device="cuda")
    assert result.supersteps == judge.supersteps
    np.testing.assert_array_equal(result["n"], judge["n"])
    np.testing.assert_allclose(result["x"], judge["x"], rtol=1e-12)
    assert result.aggregators == pytest.approx(judge.aggregators, rel=1e-12)


@pytest.mark.parametrize(
    ("direction", "is_direct"), [("auto", False), ("push", False), ("pull", False), ("auto", True)]
)
@pytest.mark.parametrize("name", WALKED)
def test_what_a_team_finds_on_edges_is_the_interpreters(
    name: str, direction: sigps.engine.Direction, is_direct: bool
) -> None:
    program, graph = walking_program(WALKED[name], is_direct=is_direct), hubs()
    assert divides(analyse(program))
    judge = sigps.run(program, graph, device="python")
    result = sigps.run(program, graph, device="cuda", direction=direction)
    assert result.supersteps == judge.supersteps
    np.testing.assert_array_equal(result["n"], judge["n"])
    np.testing.assert_allclose(result["x"], judge["x"], rtol=1e-12)
    assert result.aggregators == pytest.approx(judge.aggregators, rel=1e-12)
    if program.declaration.edge_states:
        np.testing.assert_array_equal(result.edges["mark"], judge.edges["mark"])


def test_a_forest_whose_roots_are_hubs() -> None:
    graph = hubs()
    judge = sigps.run(MinimumSpanningForest(), graph, device="python")
    result = sigps.run(MinimumSpanningForest(), graph, device="cuda")
    for field in ("component", "low", "high", "weight"):
        np.testing.assert_array_equal(result[field], judge[field])
