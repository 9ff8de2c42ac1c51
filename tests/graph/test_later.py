"""Versions whose batches wait, against graphs built anew from the edges that are left."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sigps import Graph
from sigps.graph import later
from sigps.graph.fingerprint import fingerprint
from sigps.graph.later import LaterGraph
from sigps.graph.versions.batch import as_changes


def after(graph: Graph, inserts: Any, deletes: Any) -> Graph:
    types = graph.column_types()
    newer = LaterGraph.after(
        graph, as_changes(inserts, "inserts", types), as_changes(deletes, "deletes", types)
    )
    newer.apply_if_many_wait()
    return newer


def all_of(graph: Graph) -> Any:
    edges = graph.to_arrow().to_pydict()
    return edges, graph.num_edges, graph.report.edges_stored, graph.in_degrees().tolist(), graph.in_edges()


def assert_equal(found: Graph, expected: Graph) -> None:
    *plain, found_in = all_of(found)
    *expected_plain, expected_in = all_of(expected)
    assert plain == expected_plain
    assert found_in.sources.tolist() == expected_in.sources.tolist()
    assert found_in.columns["weight"].tolist() == expected_in.columns["weight"].tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert type(found) is Graph


def known_edges(history: History) -> list[Any]:
    """Return the batches between vertices that are there."""
    known = set(np.asarray(history.first().ids).tolist())
    return [
        ([edge for edge in inserts if set(edge[:2]) <= known], deletes)
        for inserts, deletes in history.batches
    ]


@settings(max_examples=drawn(120), deadline=None)
@given(histories(), st.lists(st.booleans(), min_size=4, max_size=4), st.booleans())
def test_rows_are_those_of_a_graph_built_anew(history: History, holds: list[bool], from_first: bool) -> None:
    assume(history.options["duplicates"] in ("keep", "drop"))
    history.batches = known_edges(history)
    graph = history.first()
    if from_first:
        fingerprint(graph)
        graph.in_edges()
    held: list[tuple[Graph, Graph, int]] = []
    judges = history.judges()
    for batch, judge, missing, is_held in zip(
        history.updates(), judges, history.missing(), [*holds, True], strict=False
    ):
        graph = after(graph, batch.inserts, batch.deletes)
        assert type(graph) is LaterGraph
        if is_held:
            held.append((graph, judge, missing))
    if from_first:
        held.reverse()
    assert_equal(graph, judges[-1])
    assert fingerprint(graph) == fingerprint(judges[-1])
    for version, judge, missing in held:
        assert version.update.missing == missing
        assert_equal(version, judge)


def test_versions_have_numbers_and_go_when_nobody_holds_them() -> None:
    first = Graph.from_edges([0, 1], [1, 2], weights=[1.0, 2.0])
    second = after(first, ([2], [0], [3.0]), None)
    third = after(second, None, ([0], [1]))
    assert (second.version, third.version, third.versions) == (1, 2, (0, 1, 2))
    assert third.at(1) is second
    del second
    assert third.versions == (0, 2)
    assert third.to_arrow().to_pydict() == {"source": [1, 2], "target": [2, 0], "weight": [2.0, 3.0]}
    assert third.update.before == (3, 3)
    fourth = third.apply(([0], [0], [4.0]))
    assert (fourth.version, fourth.num_edges, third.num_edges, first.num_edges) == (3, 3, 2, 2)


def test_many_batches_are_applied_beside_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """From half of what may wait on; who comes to the end of that waits for the thread that applies them."""
    monkeypatch.setattr(later, "_LEAST", 4 * (3 + later._BATCH))
    may_go_on, began = threading.Event(), threading.Event()
    apply_now = LaterGraph._apply_now

    def slowly(graph: LaterGraph) -> None:
        if threading.current_thread() is not threading.main_thread():
            began.set()
            may_go_on.wait(10)
        apply_now(graph)

    monkeypatch.setattr(LaterGraph, "_apply_now", slowly)
    graph, versions = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4]), []
    for _ in range(4):
        graph = after(graph, ([4, 4], [0, 1]), ([4], [0]))
        versions.append(graph)
    assert began.wait(10)  # from the third on
    assert [type(version) for version in versions] == [LaterGraph] * 4  # and none has waited
    threading.Timer(0.05, may_go_on.set).start()
    versions.append(after(graph, ([4, 4], [0, 1]), ([4], [0])))
    assert [type(version) for version in versions] == [Graph] * 3 + [LaterGraph] * 2
    for i in range(40):
        graph = after(versions[-1] if i == 0 else graph, ([4, 4], [0, 1]), ([4], [0]))
    assert graph.to_arrow().to_pydict()["target"] == [1, 2, 3, 4, 0] + 45 * [1]
    assert versions[1].to_arrow().to_pydict()["target"] == [1, 2, 3, 4, 0, 1, 1]


def test_who_reads_meets_what_a_thread_met(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "_LEAST", 200)
    graph = after(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4]), ([4, 4], [0, 1]), None)

    def fail(*of: Any) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "_applied", fail)
        graph = after(graph, ([4, 4], [0, 1]), None)
        with pytest.raises(MemoryError, match="no room"):
            graph.in_edges()
    assert graph.to_arrow().to_pydict()["target"] == [1, 2, 3, 4, 0, 0, 1, 1]


def test_versions_are_read_from_the_first_on() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], [1.0, 2.0, 3.0], vertices=range(5), directed=False)
    versions = [graph]
    for inserts, deletes in ((([0], [4], [5.0]), None), (None, ([4, 2], [0, 3])), (([4], [1], [7.0]), None)):
        versions.append(after(versions[-1], inserts, deletes))
    assert [version.num_edges for version in versions] == [6, 8, 4, 6]
    assert versions[-1].to_arrow().to_pydict()["weight"] == [1.0, 2.0, 7.0]
    assert [type(version) for version in versions] == [Graph] * 4
