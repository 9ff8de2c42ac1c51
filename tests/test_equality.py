"""The same results for every number of ranks, partitioner, direction, device and number of threads.

The interpreter on one rank is the judge. Integers, ids and the course of the run must be the same bit for
bit, floats up to the order of their sums, and floats of deterministic runs bit for bit too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import rank_programs as programs
from battery import BATTERY, Sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from master_programs import Floods
from thread_group import ThreadGroup, run_ranks
from ways import WAYS, Way, assert_all_equal, assert_same, results_of

from sigps import Graph, Result, Vertex, run
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank
from sigps.compiler.frontend import analyse

NAMES = [name for name in BATTERY if name != "empty"]  # run() refuses the empty graph: test_job.py

PROGRAMS: dict[str, Vertex | Callable[[int | str], Vertex]] = {
    "pagerank": PageRank(iterations=8),
    "pagerank_tolerance": PageRank(iterations=60, tolerance=1e-4, dangling="leak"),
    "wcc": WCC(),
    "out_degree": OutDegree(),
    "coreness": programs.Coreness(),
    "jump": programs.Jump(),
    "totals": programs.Totals(),
    "extremes": programs.Extremes(),
    "two_letters": programs.TwoLetters(),
    "spread": programs.Spread(),
    "product": programs.Product(),
    "climb": programs.Climb(),
    "market": programs.Market(),
    "neighbourhood": programs.Neighbourhood(),
    "floods": Floods(),
    "bfs": lambda source: BFS(source=source),
    "sssp": lambda source: SSSP(source=source),
    "reach": lambda source: programs.Reach(start=source),
}


def ways_for(program: str, graph: str) -> list[Way]:
    """A third of the ways, another for the next program and the next graph; all on the richest graph."""
    turn = list(PROGRAMS).index(program) + NAMES.index(graph)
    return WAYS if graph == "skewed" else WAYS[turn % 3 :: 3]


def program_for(program: str, graph: str) -> Vertex:
    """Return a program; one that begins somewhere begins at the first id that the sample names."""
    made = PROGRAMS[program]
    sample = BATTERY[graph]
    return made((sample.sources or sample.vertices)[0]) if callable(made) else made


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_ways_agree(program: str, graph: str) -> None:
    assert_all_equal(program_for(program, graph), BATTERY[graph], ways_for(program, graph))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Draw any small multigraph, with ids of any kind and weights that tie and round."""
    size = draw(st.integers(1, 9))
    ids = draw(
        st.sampled_from(
            [
                list(range(size)),
                [7 * i - 20 for i in range(size)],
                [(-1) ** i * (10**17 + i) for i in range(size)],
                [f"v{i * i}" for i in range(size)],
            ]
        )
    )
    vertex = st.sampled_from(ids)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=24))
    weights = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0, 3.3])
    return Sample(
        [s for s, _ in edges],
        [t for _, t in edges],
        draw(st.lists(weights, min_size=len(edges), max_size=len(edges))),
        directed=draw(st.booleans()),
        vertices=ids,
    )


@given(samples(), st.sampled_from(list(PROGRAMS)), st.integers(0, 4))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_all_ways_agree_on_random_graphs(sample: Sample, name: str, turn: int) -> None:
    made = PROGRAMS[name]
    assert_all_equal(made(sample.vertices[-1]) if callable(made) else made, sample, WAYS[turn::5])


def busy_graph(group: ThreadGroup | None = None) -> Graph:
    """A hub with 6000 neighbours and a ring through them: enough work for threads to divide."""
    rim = np.arange(1, 6001)
    ring = np.roll(rim, 1)
    weights = np.concatenate([0.1 + rim % 9, 1.0 + rim % 5, 0.3 + rim % 7])
    sources, targets = np.concatenate([rim * 0, rim, rim]), np.concatenate([rim, rim * 0, ring])
    return Graph.from_edges(sources, targets, weights, group=group)


@pytest.mark.parametrize("name", ["wcc", "spread", "two_letters", "extremes", "totals"])
@pytest.mark.usefixtures("_little_is_divided")
def test_threads_divide_the_work_and_change_nothing(name: str) -> None:
    program = PROGRAMS[name]
    only_better = analyse(program).improving is not None
    judges = {d: run(program, busy_graph(), device="python", deterministic=d) for d in (False, True)}
    for way in (
        Way(threads=1),
        Way(threads=3, direction="push"),
        Way(threads=2, direction="pull"),
        Way(threads=3, deterministic=True),
        Way(threads=2, direction="push", deterministic=True),
    ):
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
        result = run(program, BATTERY["skewed"].build(), device="python")
        for field in program.declaration.states:
            values = result[field.name].tolist()
            assert set(values) != {field.default}, (name, field.name)


@pytest.mark.parametrize("name", ["bfs", "spread", "jump"])
def test_parts_of_ranks_are_the_whole_result(name: str) -> None:
    made = PROGRAMS[name]
    sample = BATTERY["skewed"]
    program = made(0) if callable(made) else made
    whole = run(program, sample.build(), deterministic=True)

    def run_part(group: ThreadGroup) -> Result:
        return run(program, sample.build(group=group), partitioner="hash", gather=False, deterministic=True)

    parts = run_ranks(3, run_part)
    assert [(p.group_rank, p.group_size) for p in parts] == [(0, 3), (1, 3), (2, 3)]
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
