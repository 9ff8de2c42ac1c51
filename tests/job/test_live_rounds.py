"""Streams of programs of fixed rounds and local measures on several ranks, against graphs built anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from round_programs import Denser, Mixture
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, Param, State, Updates, Vertex, neighbor_links
from sigps.apps import CDLP, HeatDiffusion, PageRank, WeightedLabels
from sigps.compiler.explain import explain
from sigps.engine.cpu import rank_rows, rounds

Told = tuple[dict[str, Any], list[Any], str, str, list[Any]]


def streamed(
    program: Vertex, first: Callable[..., Graph], batches: list[Updates], ranks: int, **options: Any
) -> list[Told]:
    """Return at first and after each batch the fields, the ids, the path, why, and the ids that changed, of rank 0."""

    def of(group: ThreadGroup) -> list[Told]:
        found = []
        with sigps.stream(program, first(group=group), device="cpu", **{"threads": 1} | options) as live:
            for batch in [None, *batches]:
                result = live.result if batch is None else live.apply(batch)
                fields = {name: result[name] for name in result.fields}
                changed = result.changed_ids.tolist()
                found.append((fields, result.ids.tolist(), result.path, result.why, changed))
        return found

    found = run_ranks(ranks, of)
    for of_rank in found[1:]:
        assert [entry[2:4] for entry in of_rank] == [entry[2:4] for entry in found[0]]
    return found[0]


def assert_equal(told: Told, expected: sigps.Result, before: Told | None) -> None:
    """The same bits, and the very vertices changed that have others than before."""
    fields, ids, _, why, changed = told
    assert ids == expected.ids.tolist()
    assert why
    for name in expected.fields:
        other = np.ma.getdata(expected[name])
        is_same = fields[name].tolist() == expected[name].tolist()
        assert (
            is_same if other.dtype.kind in "OUT" else np.ma.getdata(fields[name]).tobytes() == other.tobytes()
        )
    if before is not None:
        assert sorted(changed) == sorted(moved(before, told))


def moved(before: Told, after: Told) -> list[Any]:
    was, now = (
        {v: [values[i] for values in entry[0].values()] for i, v in enumerate(entry[1])}
        for entry in (before, after)
    )
    return [v for v in now if v not in was or was[v] != now[v]]


NAMES = ["labels", "weighted", "heat", "ranks", "mixture", "denser"]


@settings(max_examples=drawn(80), deadline=None)
@given(
    histories(),
    st.sampled_from(NAMES),
    st.integers(2, 4),
    st.sampled_from([0, 2, 3]),
    st.booleans(),
    st.data(),
)
def test_rounds_are_those_of_a_graph_built_anew(
    history: History, name: str, ranks: int, turn: int, lays_out: bool, data: st.DataObject
) -> None:
    graph = history.first()
    first = np.asarray(graph.ids)[0]
    source = first if isinstance(first, str) else int(first)
    programs: dict[str, Callable[[], Vertex]] = {
        "labels": lambda: CDLP(iterations=4),
        "weighted": lambda: WeightedLabels(iterations=3),
        "heat": lambda: HeatDiffusion(source=source, rate=0.1, steps=5),
        "ranks": lambda: PageRank(iterations=4, dangling="leak"),
        "mixture": Mixture,
        "denser": Denser,
    }
    program = programs[name]()
    seed = {"seed": 3} if name == "mixture" else {}
    guard = data.draw(st.sampled_from(["incremental", "auto", "full"]))
    with pytest.MonkeyPatch.context() as patch:
        # What all ranks agree on tells here and there that all vertices run.
        patch.setattr(
            rounds, "is_large", lambda listed, edges, n, m: turn > 0 and (listed + edges) % turn == 1
        )
        patch.setattr(rank_rows, "_LEAST", 0 if lays_out else 1 << 12)
        found = streamed(program, history.first, history.updates(), ranks, guard=guard, **seed)
    judge = history.first()
    assert_equal(found[0], sigps.run(program, judge, device="python", **seed), None)
    for before, told, judge, version in zip(
        found, found[1:], history.judges(), history.newer(history.first()), strict=False
    ):
        assert_equal(told, sigps.run(program, judge, device="python", **seed), before)
        update = version.update
        anew = update.is_renumbered or (name == "ranks" and update.new_vertices > 0) or guard == "full"
        is_given_up = name == "denser" and guard == "auto"
        assert told[2] == ("full" if anew else "incremental") or is_given_up
