"""The adapters between kernels and programs, compiled for the host: states and supersteps are the interpreter's."""

from __future__ import annotations

import pytest
from adapter_judge import GRAPHS, ON_EDGES, PROGRAMS, assert_as_interpreted, assert_kept_as_interpreted
from cuda_twin import OnHost, Teamed, run_plainly
from equality_programs import Flows
from loop_programs import FOLDS, loop_program
from team_programs import ALONE, SHARED, WALKED, listed_program, walking_program
from turns import half_of, in_turn, some_of
from worked_cases import kite

from sigps import run
from sigps.compiler.cuda.teams import divides
from sigps.compiler.frontend.analysis import analyse


@pytest.mark.parametrize(("name", "narrow_ids"), in_turn(PROGRAMS, [False, True]))
def test_adapters_are_the_interpreters(name: str, narrow_ids: bool) -> None:
    assert_as_interpreted(PROGRAMS[name](), OnHost, narrow_ids)


@pytest.mark.parametrize("name", some_of(FOLDS, 14))
def test_loops_that_fold_are_the_interpreters(name: str) -> None:
    assert_as_interpreted(loop_program(name), OnHost, narrow_ids=True)


def test_the_directions_of_edges_reach_a_program() -> None:
    states, num_supersteps = run_plainly(Flows(), kite().both_ways(), OnHost, narrow_ids=False)
    judge = run(Flows(), kite(), device="python")
    assert num_supersteps == judge.supersteps
    assert judge["out"].tolist() != judge["into"].tolist()
    for name, values in states.items():
        assert values.tolist() == judge[name].tolist()


@pytest.mark.parametrize(
    ("program", "name"), half_of([name for name in ON_EDGES if divides(analyse(ON_EDGES[name]))], GRAPHS)
)
def test_what_a_team_of_warps_computes_is_the_interpreters(program: str, name: str) -> None:
    assert_kept_as_interpreted(ON_EDGES[program], name, Teamed)


@pytest.mark.parametrize(("program", "name"), half_of([*ON_EDGES], GRAPHS))
def test_what_is_kept_on_edges_is_the_interpreters(program: str, name: str) -> None:
    assert_kept_as_interpreted(ON_EDGES[program], name, OnHost)


@pytest.mark.parametrize(("name", "sends"), in_turn([*SHARED, *ALONE], [False, True]))
def test_what_a_team_of_threads_computes_is_the_interpreters(name: str, sends: bool) -> None:
    program = listed_program({**SHARED, **ALONE}[name], sends=sends)
    assert divides(analyse(program))
    assert_kept_as_interpreted(program, "hub_on_a_partition_border", Teamed)
    assert_kept_as_interpreted(program, "parallel_edges_undirected", Teamed)


@pytest.mark.parametrize(("name", "is_direct"), in_turn(WALKED, [False, True]))
def test_what_a_team_of_threads_finds_on_edges_is_the_interpreters(name: str, is_direct: bool) -> None:
    program = walking_program(WALKED[name], is_direct=is_direct)
    assert divides(analyse(program))
    assert_kept_as_interpreted(program, "parallel_edges_undirected", Teamed)
