"""Runs by the edge schedule: the interpreter's results and course, whatever the pieces into which edges are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from app_judges import first_id
from battery import BATTERY, NAMES
from edge_programs import SentAlong
from edge_schedule_programs import BY_EDGE
from equality_programs import PROGRAMS, program_for
from graphs import busy_graph
from send_programs import Paced
from thread_group import run_ranks
from turns import in_turn
from ways import Way, assert_same, results_of

import sigps.apps
from sigps import Checkpoint, Vertex, run
from sigps.apps import BFS, CDLP, SSSP, WCC, LabelPropagation, MinimumSpanningForest, PageRank
from sigps.compiler.explain import explain
from sigps.engine.cpu.work import cut_edges
from sigps.errors import ConfigError

GRAPHS = [*NAMES[::3], "star_in"]

WAYS = [
    Way(schedule="edge"),
    Way(schedule="edge", threads=2),
    Way(2, schedule="edge", partitioner="hash"),
    Way(3, schedule="edge", partitioner="vertices", threads=2),
]


def assert_as_judged(program: Vertex, graph: str, ways: list[Way]) -> None:
    """Check runs against the interpreter; nobody is left out, in monotone programs neither."""
    judge = results_of(program, BATTERY[graph], [Way(device="python")])[0][1]
    for way, result in results_of(program, BATTERY[graph], ways):
        try:
            assert {s.direction for s in result.stats} == {"edge"}
            assert_same(result, judge, exact=False)
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


def test_the_programs_are_all_but_those_that_cannot() -> None:
    cannot = {"coreness", "jump", "two_letters", "pigeonholes", "throws", "votes", "pulls", "answers"}
    cannot |= {"letters", "relays"}
    assert set(PROGRAMS) - set(BY_EDGE) == cannot


@pytest.mark.parametrize(
    ("program", "graph", "ways"),
    [
        *in_turn(BY_EDGE, GRAPHS, [WAYS[::2], WAYS[1::2]]),
        *in_turn(BY_EDGE, ["skewed"], [WAYS[::3], WAYS[1:3]]),
    ],
)
def test_all_ways_agree(program: str, graph: str, ways: list[Way]) -> None:
    assert_as_judged(program_for(program, graph), graph, ways)


@pytest.mark.parametrize("name", ["wcc", "spread", "product", "extremes"])
@pytest.mark.usefixtures("_little_is_divided")
def test_a_row_that_many_pieces_share(name: str) -> None:
    """A third of the edges lead to one vertex."""
    program: Any = PROGRAMS[name]
    judge = run(program, busy_graph(), device="python")
    for threads in (1, 2, 3):
        assert_same(run(program, busy_graph(), schedule="edge", threads=threads), judge, exact=False)
    results = run_ranks(2, lambda group: run(program, busy_graph(group), schedule="edge", threads=2))
    assert_same(results[0], judge, exact=False)


@pytest.mark.parametrize("parts", [1, 2, 5, 100])
def test_pieces_are_equal_and_know_their_first_row(parts: int) -> None:
    degrees = [0, 7, 0, 0, 1, 30, 2, 0]
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint64)
    row_of_edge = np.repeat(np.arange(len(degrees)), degrees)
    pieces = [tuple(map(int, piece)) for piece in cut_edges(offsets, parts)]
    assert [e for begin, end, _ in pieces for e in range(begin, end)] == list(range(40))
    assert [row for *_, row in pieces] == [row_of_edge[begin] for begin, *_ in pieces]
    sizes = [end - begin for begin, end, _ in pieces]
    assert max(sizes) - min(sizes) <= 1
    assert len(pieces) == min(parts, 40)


def test_no_edges_are_no_pieces() -> None:
    assert cut_edges(np.zeros(3, dtype=np.uint64), 4) == []


APPS: dict[str, dict[str, Any]] = {
    "GreedyColouring": {},
    "HITS": {},
    "KCore": {},
    "MaximalMatching": {},
    "KHop": {"source": None},
}
"""With retirement, edges both ways and records of several fields."""


@pytest.mark.parametrize("name", APPS)
def test_apps_give_what_they_give_by_vertices(name: str) -> None:
    sample = BATTERY["skewed"]
    given = {k: first_id(sample) if v is None else v for k, v in APPS[name].items()}
    program = getattr(sigps.apps, name)(**given)
    expected = run(program, sample.build(), device="cpu", asynchronous=False)
    for threads in (1, 2):
        found = run(program, sample.build(), device="cpu", schedule="edge", threads=threads)
        assert {s.direction for s in found.stats} == {"edge"}
        assert_same(found, expected, exact=False)


@pytest.mark.parametrize("program", [SSSP(source=0), WCC(), PROGRAMS["extremes"]])
@pytest.mark.usefixtures("_little_is_divided")
def test_minima_and_whole_numbers_are_equal_bit_for_bit(program: Any) -> None:
    judge = run(program, busy_graph(), device="python", deterministic=True)
    result = run(program, busy_graph(), schedule="edge", deterministic=True, threads=3)
    assert_same(result, judge, exact=True)


@pytest.mark.parametrize("schedules", [("vertex", "edge"), ("edge", "vertex"), ("edge", "edge")])
@pytest.mark.parametrize("program", [PageRank(iterations=6), SSSP(source=0), WCC()])
def test_a_run_goes_on_by_another_schedule(program: Vertex, schedules: Any, tmp_path: Path) -> None:
    graph, log = BATTERY["skewed"].build(), Checkpoint(tmp_path, every=1)
    whole = run(program, graph, device="python")
    run(program, graph, device="cpu", schedule=schedules[0], checkpoint=log, max_supersteps=2)
    result = run(program, graph, device="cpu", schedule=schedules[1], checkpoint=log, resume=True)
    assert_same(result, whole, exact=False, only_better=True)
    assert result.stats[-1].direction == "edge" or schedules[1] == "vertex"


def test_an_interpreters_messages_are_read(tmp_path: Path) -> None:
    """The first superstep after its log is no pass over edges."""
    graph, log = BATTERY["skewed"].build(), Checkpoint(tmp_path, every=1)
    program = SSSP(source=0)
    whole = run(program, graph, device="python")
    run(program, graph, device="python", checkpoint=log, max_supersteps=2)
    result = run(program, graph, device="cpu", schedule="edge", checkpoint=log, resume=True)
    assert_same(result, whole, exact=False)
    assert [s.direction for s in result.stats][-1] == "edge"


@pytest.mark.parametrize("program", [Paced(), SentAlong()])
def test_nobody_sends_and_values_on_edges(program: Vertex) -> None:
    assert_as_judged(program, "skewed", WAYS)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_max_supersteps(most: int) -> None:
    graph = BATTERY["grid"].build()
    for program in (PageRank(iterations=4), BFS(source=0)):
        result = run(program, graph, device="cpu", schedule="edge", max_supersteps=most)
        judge = run(program, graph, device="python", max_supersteps=most)
        assert_same(result, judge, exact=False)


REFUSED: list[tuple[Vertex, dict[str, Any], str]] = [
    (CDLP(), {}, r"CDLP cannot run with schedule='edge': messages are grouped by key"),
    (LabelPropagation(), {}, r"cannot run with schedule='edge': compute\(\) reads its messages one by one"),
    (
        MinimumSpanningForest(),
        {},
        r"schedule='edge': it sends direct messages, which do not follow edges.*Use schedule='vertex'",
    ),
]


@pytest.mark.parametrize(("program", "options", "complaint"), REFUSED)
@pytest.mark.parametrize("ranks", [1, 2])
def test_what_cannot_run_is_refused_by_name(
    program: Vertex, options: dict[str, Any], complaint: str, ranks: int
) -> None:
    sample = BATTERY["path_undirected"]
    with pytest.raises(ConfigError, match=complaint):
        run_ranks(
            ranks,
            lambda group: run(program, sample.build(group=group), schedule="edge", device="cpu", **options),
        )


def test_explain_tells_who_can() -> None:
    assert "directions   pull and push, chosen each superstep; or edge by edge\n" in explain(PageRank)
    assert "directions   pull\n" in explain(CDLP)
