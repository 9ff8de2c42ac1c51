"""Windows against a list of all edges, gone through at every batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigps import Graph, Updates
from sigps.job import window as windows
from sigps.job.window import Window, WindowState

Edge = tuple[Any, Any, float, int]


def edges_of(state: WindowState) -> list[Edge]:
    edges = state.edges
    weights = edges.columns["weight"] if edges.size else []
    return list(
        zip(edges.sources.tolist(), edges.targets.tolist(), list(weights), state.times.tolist(), strict=True)
    )


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([0, 2, 1 << 12]))
def test_what_expires_is_what_is_too_old(data: Any, directed: bool, strings: bool, least_gone: int) -> None:
    def oid(number: int) -> Any:
        return "v" * number if strings else number

    edge = st.tuples(*[st.integers(1, 4)] * 2, st.integers(1, 3), st.integers(0, 30))
    batches = data.draw(
        st.lists(st.tuples(st.lists(edge, max_size=6), st.lists(edge, max_size=2)), max_size=12)
    )
    graph = Graph.from_edges([oid(1)], [oid(2)], [1.0], directed=directed)
    kept: list[Edge] = []
    latest, length = -(10**9), 10
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_LEAST_GONE", least_gone)
        window = Window(length)
        for inserts, deletes in batches:
            new = [(oid(s), oid(t), float(w), at) for s, t, w, at in inserts]
            gone = [(oid(s), oid(t)) for s, t, _, _ in deletes]

            def pair(s: Any, t: Any) -> Any:
                return (s, t) if directed else frozenset((s, t))

            pairs = {pair(*ends) for ends in gone}
            kept = [e for e in kept if pair(*e[:2]) not in pairs]
            latest = max([latest, *[at for *_, at in new]])
            late = [e for e in kept if e[3] <= latest - length]
            kept = [e for e in kept if e[3] > latest - length]
            again = [e for e in kept if pair(*e[:2]) in {pair(*e[:2]) for e in late}]
            kept = kept + new

            columns = [[e[i] for e in new] for i in range(4)]
            batch = Updates(
                tuple(columns[:3]) if new else None, tuple(zip(*gone, strict=True)) if gone else None
            )
            batch = Updates(batch.inserts, batch.deletes, times=columns[3] if new else None)
            widened, step = window.widened(batch, graph)
            window.widened(batch, graph)  # nothing is taken yet
            window.take(step)
            assert edges_of(window.state) == kept
            sources, targets, weights = widened.inserts
            weights = weights["weight"].tolist() if len(sources) else []
            found = list(
                zip(np.asarray(sources).tolist(), np.asarray(targets).tolist(), weights, strict=True)
            )
            assert found == [e[:3] for e in again + new]
            sources, targets, _ = widened.deletes
            assert list(
                zip(np.asarray(sources).tolist(), np.asarray(targets).tolist(), strict=True)
            ) == gone + [e[:2] for e in late]
            restored = Window(length)
            restored.state = WindowState.of(window.state.arrays())
            assert edges_of(restored.state) == kept
            window = restored if data.draw(st.booleans()) else window


def test_a_batch_costs_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edges that are sorted and searched, counted."""
    sorted_keys: list[int] = []
    argsort = np.argsort

    def counted(values: Any, **options: Any) -> Any:
        sorted_keys.append(values.size)
        return argsort(values, **options)

    monkeypatch.setattr(windows.np, "argsort", counted)
    draw = np.random.default_rng(5)
    graph, window = Graph.from_edges([0], [1], [1.0]), Window(1000)
    for at in range(1500):
        ends = draw.integers(0, 5000, (2, 20))
        batch = Updates((*ends, np.ones(20)), times=np.full(20, at))
        window.take(window.widened(batch, graph)[1])
    assert window.state.edges.size == 1000 * 20
    assert sum(sorted_keys) < 1500 * 20 * 20
