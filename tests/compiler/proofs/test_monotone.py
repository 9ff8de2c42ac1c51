"""Monotone programs: which they are, and that reading only better keys gives the results of BSP."""

from __future__ import annotations

from typing import Any

import monotone_programs as programs
import numpy as np
import pytest
from battery import BATTERY, Sample
from cells import run_cell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import in_turn
from ways import Way, assert_all_equal

from sigps import Graph, run
from sigps.apps import BFS, SSSP, WCC, MaximalMatching, PageRank
from sigps.compiler.explain import explain
from sigps.compiler.frontend.analysis import analyse
from sigps.compiler.proofs.monotone import find_obstacle

RELAX = """
nan = float("nan")

class Path(NamedTuple):
    length: float
    hops: int

class Relax(Vertex, message={message}):
    start: Param[VertexId] = 0
    step: Param[float] = 1.0
    {state}
    hops: State[int] = 0
    {fields}

    def compute(self, messages):
        if self.superstep == 0:
            received = {first}
        else:
            received = {received}
        if {test}:
            self.best = {taken}
            {more}
            for edge in self.out_edges:
                {when}self.send(edge, {sent})
        self.vote_to_halt()
        {end}
"""

DEFAULTS = {
    "message": "float",
    "state": "best: State[float] = inf",
    "fields": "",
    "first": "0.0 if self.id == self.start else inf",
    "received": "min(messages, default=inf)",
    "test": "received < self.best",
    "taken": "received",
    "more": "pass",
    "when": "",
    "sent": "received + edge.weight",
    "end": "",
}

PATHS = {
    "message": "Path",
    "first": "Path(0.0 if self.id == self.start else inf, 0)",
    "received": "min(messages, default=Path(inf, 0))",
    "test": "received.length < self.best",
    "taken": "received.length",
    "more": "self.hops = received.hops",
    "sent": "Path(received.length + edge.weight, received.hops + 1)",
}


def by_hand(start: str, test: str) -> str:
    """Return what takes the best message, written out as a loop."""
    return f"{start}\n            for m in messages:\n                if {test}:\n                    received = m"


WHOLE = {
    "message": "int",
    "state": "best: State[int] = 1000",
    "first": "self.id",
    "received": "min(messages, default=1000)",
    "sent": "received",
}


def relax(**parts: str) -> Any:
    code = RELAX.format(**{**DEFAULTS, **parts})
    program: Any = run_cell(code)["Relax"]()
    return program


@pytest.mark.parametrize(
    "program",
    [
        SSSP(source=0),
        WCC(),
        programs.Nearest(source=0),
        programs.Loudest(),
        relax(),
        relax(sent="received + 1.0"),
        relax(sent="edge.weight + received"),
        relax(sent="2 + received"),
        relax(sent="received + edge.weight + 1"),
        relax(**{**WHOLE, "first": "self.id + 2"}),
        relax(**{**WHOLE, "sent": "received + 1"}),
        relax(sent="received"),
        relax(first="self.step"),
        relax(test="not received >= self.best"),
        relax(**WHOLE),
        relax(**PATHS),
        relax(**{**PATHS, "received": "Path(min((m.length for m in messages), default=inf), 0)"}),
        relax(more="self.hops = self.id"),
        relax(received=by_hand("inf", "m < received")),
        relax(received=by_hand("self.best", "received > m")),
        relax(**{**WHOLE, "received": by_hand("2**63 - 1", "m < received")}),
        relax(
            state="best: State[float] = -inf",
            first="1.0",
            received="max(messages, default=-inf)",
            test="received > self.best",
        ),
    ],
)
def test_programs_that_only_store_better_keys(program: Any) -> None:
    assert find_obstacle(analyse(program)) is None
    assert analyse(program, "single").monotone is not None


MORE = 'compute() does more than "store a better value, or do nothing"'
KEY = "the first value of a message is not the sender's, nor that and one of the edge added up"


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        (relax(test="received <= self.best"), MORE),
        (relax(test="received > self.best"), MORE),
        (relax(test="received < self.best or self.id == self.start"), MORE),
        (relax(test="received < self.best and self.superstep < 5"), MORE),
        (relax(test="received < self.best and received < 7"), MORE),
        (relax(test="received < self.best and self.out_degree > 1"), MORE),
        (relax(test="received < self.best and self.hops < 3"), MORE),
        (relax(taken="received + 1"), MORE),
        (relax(received=by_hand("7.0", "m < received")), MORE),
        (relax(received=by_hand("-inf", "m < received")), MORE),
        (relax(state="best: State[int] = 1000", test="received < self.best"), MORE),  # the state rounds
        (relax(state="best: State[float] = nan"), MORE),
        (relax(first="nan", test="not received >= self.best"), MORE),
        (relax(first="self.step * 2"), MORE),  # might be NaN
        (relax(more="self.retire()"), MORE),
        (relax(end="self.retire()"), MORE),
        (relax(end="self.hops += 1"), MORE),
        (relax(end="self.hops = 1"), MORE),
        (relax(sent="received * edge.weight"), KEY),
        (
            relax(sent="min(received, edge.weight)"),
            MORE,
        ),  # a widest path would be one, but no edge function is searched
        (relax(sent="received - edge.weight"), KEY),
        (relax(sent="received + edge.weight + edge.toll"), KEY),
        (relax(sent="received + self.step"), MORE),
        (relax(sent="received + inf"), MORE),
        (relax(sent="received * 2"), MORE),
        (relax(sent="edge.weight + inf + received"), KEY),
        (relax(sent="edge.weight"), KEY),
        (relax(sent="received + self.superstep"), MORE),
        (relax(sent="received + edge.weight + self.superstep"), KEY),
        (relax(when="if edge.weight < 3: "), MORE),
        (relax(when="if edge.target != self.id: "), MORE),
        (relax(**{**WHOLE, "sent": "received + edge.weight", "message": "float"}), MORE),  # stored as an int
        (relax(**{**WHOLE, "sent": "received + edge.time"}), KEY),  # might overflow
        (relax(**{**PATHS, "sent": "Path(received.length + received.hops, 0)"}), MORE),
        (relax(**{**PATHS, "test": "received.length < self.best and received.hops < 9"}), MORE),
        (relax(test="received < self.best and len(messages) > 0"), "there is not one min or max of messages"),
        (
            relax(received="min(messages, default=inf) + max(messages, default=0.0)"),
            "there is not one min or max of messages",
        ),
        (
            relax(fields="rounds = Aggregator.sum(int)", end="self.rounds += 1"),
            "vertices contribute to an aggregator",
        ),
        (programs.KeepsTheFirst(), MORE),
        (BFS(source=0), KEY),
        (PageRank(), "there is not one min or max of messages"),
    ],
)
def test_programs_that_do_something_else(program: Any, obstacle: str) -> None:
    derived = analyse(program)
    assert find_obstacle(derived) == obstacle
    assert derived.monotone is None


PROGRAMS: dict[str, Any] = {
    "sssp": lambda source: SSSP(source=source),
    "looped": lambda source: programs.Looped(source=source),
    "nearest": lambda source: programs.Nearest(source=source),
    "highest": lambda source: programs.Highest(),
    "hops": lambda source: programs.Hops(source=source),
    "components": lambda source: WCC(),
}

WAYS = [
    Way(),
    Way(direction="push"),
    Way(direction="pull"),
    Way(threads=2),
    Way(threads=2, direction="pull", deterministic=True),
    Way(2, partitioner="hash"),
    Way(2, partitioner="hash", direction="push", threads=2),
    Way(3, partitioner="hash", direction="pull"),
]


@st.composite
def samples(draw: st.DrawFn, weights: list[float]) -> Sample:
    """Draw a small multigraph with loops, parallel edges and paths of equal length."""
    size = draw(st.integers(1, 8))
    vertex = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex, st.sampled_from(weights)), max_size=24))
    sources, targets, weight = ([e[i] for e in edges] for i in range(3))
    return Sample(sources, targets, weight, directed=draw(st.booleans()), vertices=list(range(size)))


@pytest.mark.slow
@given(samples([0.0, 0.5, 1.0, 1.0, 2.0, 1e300]), st.sampled_from(list(PROGRAMS)), st.integers(0, 7))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_every_way_is_the_interpreters(sample: Sample, name: str, source: int) -> None:
    program = PROGRAMS[name](source % len(sample.vertices))
    assert_all_equal(program, sample, WAYS)


@pytest.mark.slow
@given(samples([-3.0, -0.5, 0.0, -0.0, 0.5, 4.0]))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_weights_of_any_sign_without_cycles(sample: Sample) -> None:
    forward = [(min(e), max(e)) for e in zip(sample.sources, sample.targets, strict=True)]
    kept = [i for i, (s, t) in enumerate(forward) if s < t]
    weights = [sample.weights[i] for i in kept]
    acyclic = Sample(
        [forward[i][0] for i in kept], [forward[i][1] for i in kept], weights, vertices=sample.vertices
    )
    assert_all_equal(SSSP(source=0), acyclic, WAYS)
    assert_all_equal(programs.Loudest(), acyclic, WAYS)


@pytest.mark.parametrize(
    ("name", "how"),
    in_turn(
        PROGRAMS,
        [
            ("skewed", "single"),
            ("parallel_edges", "double"),
            ("weight_ties", "single"),
            ("skewed", "double"),
            ("hub_on_a_partition_border", "single"),
        ],
        times=2,
    ),
)
def test_single_and_double_precision(name: str, how: tuple[str, Any]) -> None:
    graph, precision = how
    sample = BATTERY[graph]
    program = PROGRAMS[name]((sample.sources or sample.vertices)[0])
    judge = run(program, sample.build(), device="python", precision=precision)
    for direction in ("push", "pull", "auto"):
        result = run(
            program, sample.build(), direction=direction, threads=2, precision=precision, asynchronous=False
        )
        for field in result.fields:
            np.testing.assert_array_equal(result[field], judge[field], strict=True)
        assert [s.messages for s in result.stats] == [s.messages for s in judge.stats]


def test_a_pull_after_pushes_reads_records_of_earlier_supersteps() -> None:
    """A chain wakes a hub late; then its neighbours read its record once more, and others' for the first time."""
    chain = [(i, i + 1, 1.0) for i in range(6)]
    spokes = [(6, t, 1.0) for t in range(7, 60)] + [(t, t + 100, 0.5) for t in range(7, 60)]
    back = [(t + 100, t, 3.0) for t in range(7, 60)] + [(0, 155, 50.0)]
    sources, targets, weights = zip(*chain, *spokes, *back, strict=True)
    sample = Sample(list(sources), list(targets), list(weights))
    assert_all_equal(SSSP(source=0), sample, WAYS)


def ran(program: Any, graph: Graph, device: str) -> list[int]:
    return [s.active for s in run(program, graph, device=device).stats]


@pytest.mark.parametrize("weight", [np.inf, -np.inf])
def test_weights_that_are_not_finite_take_the_plain_loops(weight: float) -> None:
    """Infinities of both signs add up to NaN, which has no order."""
    graph, other = (
        Sample([0, 0, 0, 1, 2], [1, 2, 3, 3, 3], [1.0, 2.0, 1.0, 5.0, 7.0]).build() for _ in range(2)
    )
    assert sum(ran(SSSP(source=0), graph, "cpu")) < sum(ran(SSSP(source=0), graph, "python"))
    other.columns["weight"][1] = weight  # as in a store that was written elsewhere
    assert ran(SSSP(source=0), other, "cpu") == ran(SSSP(source=0), other, "python")
    results = [run(SSSP(source=0), other, device=device)["distance"].tolist() for device in ("python", "cpu")]
    assert results[0] == results[1]


@pytest.mark.slow
def test_a_parameter_that_is_nan_takes_the_plain_loops() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0], weights=[1.0, 1.0, 1.0])
    start = "self.step if self.id == self.start else inf"
    program = type(relax(first=start, test="received < self.best"))
    assert sum(ran(program(step=2.0), graph, "cpu")) < sum(ran(program(step=2.0), graph, "python"))
    program = type(relax(first=start, test="not received >= self.best"))
    nan = float("nan")
    for options in (
        {"device": "cpu"},
        {"device": "python"},
    ):  # min() of a NaN alone is inf, which is not below inf
        result = run(program(step=nan), graph, max_supersteps=5, **options)
        assert [s.active for s in result.stats] == [3, 1]


def test_the_last_superstep_counts_though_no_vertex_received_a_better_key() -> None:
    graph = Graph.from_edges([0, 1], [1, 0], weights=[1.0, 1.0])
    result = run(SSSP(source=0), graph)
    assert [(s.active, s.messages) for s in result.stats] == [(2, 1), (1, 1), (0, 0)]


def test_explain_tells_which_programs_they_are() -> None:
    assert "monotone     a message that is not better than its target's current value is dropped" in explain(
        SSSP
    )
    assert "monotone     no: there is not one min or max of messages" in explain(PageRank)


def test_explain_says_what_an_edge_adds_to_a_message() -> None:
    assert "edge reads   weight\n" in explain(SSSP)
    assert "edge reads   the target's id\n" in explain(MaximalMatching)
    assert "edge reads   nothing: the message is the sender's alone\n" in explain(PageRank)
