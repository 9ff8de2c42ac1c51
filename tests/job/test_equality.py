"""The same results for every number of ranks, partitioner, direction, device and number of threads.

The interpreter on one rank is the judge. Integers, ids and the course of the run must be the same bit for
bit, floats up to the order of their sums, and floats of deterministic runs bit for bit too.
"""

from __future__ import annotations

import equality_programs as programs
import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from equality_programs import PROGRAMS, program_for
from graphs import busy_graph, samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks
from turns import half_of, some_of
from ways import WAYS, Way, assert_all_equal, assert_same, results_of

from sigps import Result, Vertex, run
from sigps.apps import BFS, SSSP, PageRank
from sigps.compiler.frontend.analysis import analyse


def ways_for(program: str, graph: str) -> list[Way]:
    """An eighth of the ways, another for the next program and the next graph; a quarter on the richest graph."""
    turn = list(PROGRAMS).index(program) + NAMES.index(graph)
    if graph == "skewed":
        at = turn % len(WAYS)
        return some_of([*WAYS[at:], *WAYS[:at]], SLOW_TO_JUDGE.get(program, 6))
    return WAYS[turn % 8 :: 8]


SLOW_TO_JUDGE = {"largest_of_each": 4, "census": 3, "pagerank_tolerance": 4}
"""Of programs that take the interpreter seconds: so many ways on the richest graph."""

CELLS = some_of(half_of([*PROGRAMS], [name for name in NAMES if name != "skewed"]), 84)


@pytest.mark.parametrize(("program", "graph"), [*CELLS, *((program, "skewed") for program in PROGRAMS)])
def test_all_ways_agree(program: str, graph: str) -> None:
    assert_all_equal(program_for(program, graph), BATTERY[graph], ways_for(program, graph))


@given(samples(), st.sampled_from(list(PROGRAMS)), st.integers(0, 4))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_all_ways_agree_on_random_graphs(sample: Sample, name: str, turn: int) -> None:
    made = PROGRAMS[name]
    assert_all_equal(made(sample.vertices[-1]) if callable(made) else made, sample, WAYS[turn::5])


@pytest.mark.parametrize(
    ("turn", "name"), [*enumerate(["wcc", "spread", "two_letters", "extremes", "totals"])]
)
@pytest.mark.usefixtures("_little_is_divided")
def test_threads_divide_the_work_and_change_nothing(turn: int, name: str) -> None:
    program = PROGRAMS[name]
    only_better = analyse(program).monotone is not None
    judges = {d: run(program, busy_graph(), device="python", deterministic=d) for d in (False, True)}
    ways = [
        Way(threads=3, direction="push"),
        Way(threads=3, deterministic=True),
        Way(threads=1),
        Way(threads=2, direction="push", deterministic=True),
        Way(threads=2, direction="pull"),
    ]
    for way in some_of([*ways[turn:], *ways[:turn]], 3):
        result = run(program, busy_graph(), **way.options())
        assert_same(result, judges[way.deterministic], exact=way.deterministic, only_better=only_better)
    results = run_ranks(
        2, lambda group: run(program, busy_graph(group), **Way(threads=2, direction="push").options())
    )
    assert_same(results[0], judges[False], exact=False, only_better=only_better)


def test_what_the_programs_compute_is_more_than_their_initial_values() -> None:
    """A program that did nothing would agree with itself on every way."""
    for name, made in PROGRAMS.items():
        program = made(0) if callable(made) else made
        result = run(program, BATTERY["skewed"].build(), device="cpu")  # which equals the judge, above
        for field in program.declaration.states:
            assert (result[field.name] != np.asarray(field.default)).any(), (name, field.name)


@pytest.mark.parametrize("name", ["bfs", "spread", "jump"])
def test_parts_of_ranks_are_the_whole_result(name: str) -> None:
    made = PROGRAMS[name]
    sample = BATTERY["skewed"]
    program = made(0) if callable(made) else made
    whole = run(program, sample.build(), deterministic=True)

    def run_part(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), partitioner="hash", gather=False, deterministic=True)

    parts = run_ranks(3, run_part)
    assert [(p.writers.rank, p.writers.size) for p in parts] == [(0, 3), (1, 3), (2, 3)]
    assert all(np.array_equal(p.ids, np.sort(p.ids)) for p in parts)
    order = np.argsort(np.concatenate([p.ids for p in parts]))
    for field in whole.fields:
        together = np.concatenate([p[field] for p in parts])[order]
        np.testing.assert_array_equal(together, whole[field], strict=True)


@pytest.mark.parametrize("program", [SSSP(source=0), PageRank(iterations=4), programs.Spread()])
def test_single_precision_agrees_within_its_rounding(program: Vertex) -> None:
    graph = BATTERY["skewed"].build()
    judge = run(program, graph, device="python", precision="double")
    for options in ({"device": "python"}, {"direction": "push"}, {"direction": "pull"}):
        result = run(program, graph, precision="single", **options)
        name = result.fields[0]
        assert result[name].dtype == np.float32
        np.testing.assert_allclose(result[name], judge[name], rtol=2e-5)


def test_string_ids_come_back_as_names_in_every_way() -> None:
    sample = BATTERY["string_ids"]
    for way, result in results_of(BFS(source="bob"), sample, WAYS):
        assert result.ids.tolist() == ["ann", "bob", "dan", "eve", "zoë"], way
        assert result["parent"].tolist() == ["bob", "bob", None, "ann", "eve"], way
        assert result["level"].tolist() == [1, 0, -1, 2, 3], way
