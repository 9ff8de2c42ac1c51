"""Supersteps in priority order: which programs may take them, and that only the supersteps differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cells import run_cell
from thread_group import ThreadGroup, run_ranks

from sigps import Graph, Vertex, generate, run
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.priority import find_obstacle, priority_form

SPREAD = """
class Spread(Vertex, message=VertexId):
    best: State[VertexId] = -1
    {fields}

    def compute(self, messages):
        if self.superstep == 0:
            self.best = self.id
            self.send_to_neighbors(self.best)
        else:
            received = {op}(messages, default=self.best)
            if {test}:
                self.best = received
                self.send_to_neighbors({sent})
        self.vote_to_halt()
        {end}
"""


def spread(
    op: str = "max",
    test: str = "received > self.best",
    sent: str = "received",
    *,
    fields: str = "",
    end: str = "",
) -> Vertex:
    program: Vertex = run_cell(SPREAD.format(op=op, test=test, sent=sent, fields=fields, end=end))["Spread"]()
    return program


@pytest.mark.parametrize(
    "program",
    [
        WCC(),
        spread(),
        spread("min", "received < self.best"),
        spread("min", "not received >= self.best", "self.best"),
        spread("max", "self.best < received and self.best != received"),
    ],
)
def test_programs_that_store_a_better_value_and_send_it_on(program: Any) -> None:
    assert find_obstacle(analyse(program)) is None


MORE = 'compute() does more than "store a better value and send it on"'


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        (spread("max", "received >= self.best"), MORE),
        (spread("max", "received < self.best"), MORE),
        (spread("min", "received > self.best"), MORE),
        (spread("max", "received > self.id"), MORE),
        (spread("max", "received > self.best and self.superstep < 5"), MORE),
        (spread("max", "received > self.best and received > 7"), MORE),
        (spread("max", "received > self.best and self.out_degree > 1"), MORE),
        (spread("max", "received > self.best", "received + 1"), MORE),
        (spread("max", "received > self.best", "self.id"), MORE),
        (spread(end="self.retire()"), MORE),
        (spread(end="self.best = self.id"), MORE),
        (
            spread(fields="rounds = Aggregator.sum(int)", end="self.rounds += 1"),
            "a vertex has more state than its current value",
        ),
        (BFS(source=0), "a vertex has more state than its current value"),
        (SSSP(source=0), "there is not one min or max of one value"),
        (PageRank(), "there is not one min or max of one value"),
    ],
)
def test_programs_that_do_something_else(program: Any, obstacle: str) -> None:
    derived = analyse(program)
    assert find_obstacle(derived) == obstacle
    assert priority_form(derived) is None


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
def test_more_components_than_rounds(ranks: int, direction: Any) -> None:
    """Nine paths, each longer than the one before; an isolated vertex, and one with a self loop."""
    sizes = np.arange(2, 11)
    firsts = np.cumsum(sizes) - sizes
    expected = dict(enumerate(np.repeat(firsts, sizes).tolist())) | {77: 77, 99: 99}
    sources = np.setdiff1d(np.arange(sizes.sum()), firsts + sizes - 1)

    def work(group: ThreadGroup) -> Any:
        graph = Graph.from_edges(
            np.append(sources, 99), np.append(sources + 1, 99), vertices=[77], directed=False, group=group
        )
        return run(WCC(), graph, direction=direction, device="cpu", partitioner="hash")

    result = run_ranks(ranks, work)[0]
    assert dict(zip(result.ids.tolist(), result["component"].tolist(), strict=True)) == expected
    assert [s.superstep for s in result.stats] == list(range(result.supersteps))


def test_the_best_value_is_sent_alone() -> None:
    graph = generate("grid", rows=20, columns=20)
    plain = run(WCC(), graph, device="cpu", asynchronous=False)
    first = run(WCC(), graph, device="cpu")
    assert first["component"].tolist() == plain["component"].tolist() == [0] * 400
    after_the_start = [sum(s.messages for s in r.stats[1:]) for r in (first, plain)]
    assert after_the_start[0] <= graph.num_edges < after_the_start[1]


def test_a_limit_of_supersteps_counts_those_of_the_program() -> None:
    graph = Graph.from_edges([3, 2, 1], [2, 1, 0], directed=False)
    result = run(WCC(), graph, device="cpu", max_supersteps=2)
    assert dict(zip(result.ids.tolist(), result["component"].tolist(), strict=True)) == {
        0: 0,
        1: 0,
        2: 1,
        3: 2,
    }
    assert result.reason == "max_supersteps"
