"""A run that is saved, and continued by another engine, ends as if nothing had happened."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from engines import compiled, interpreted
from equality_programs import PROGRAMS
from snapshots import GRAPHS, LAST, combines_mail, ending, made
from turns import in_turn

from sigps import DeviceError, Graph
from sigps.apps import SSSP
from sigps.compiler.frontend.analysis import analyse

MAKERS = {"python": interpreted, "cpu": compiled}


@functools.cache
def undisturbed(name: str, graph: str) -> tuple[dict[str, Any], dict[str, Any], list[int], bool]:
    program = made(name)
    return ending(interpreted(program, BATTERY[graph].build(), deterministic=True), program, LAST)


ENGINES = [("cpu", "cpu"), ("cpu", "python"), ("python", "cpu")]


@pytest.mark.parametrize(
    ("name", "which", "engines"),
    [
        *in_turn(PROGRAMS, GRAPHS, ENGINES, times=2),
        *in_turn(PROGRAMS, GRAPHS[1:], [("python", "python")]),  # alone, the interpreter is slow
    ],
)
def test_another_engine_goes_on_where_one_stopped(name: str, which: str, engines: tuple[str, str]) -> None:
    program, graph, (first, second) = made(name), BATTERY[which].build(), engines
    whole = undisturbed(name, which)
    for stop in range(1, min(len(whole[2]), 4)):
        before = MAKERS[first](program, graph, deterministic=True)
        before.lease(stop)
        after = MAKERS[second](program, graph, deterministic=True)
        snapshot = before.save()
        before.lease(1)  # what was saved is no longer the engine's
        if (first, second) == ("cpu", "python") and combines_mail(program):
            with pytest.raises(DeviceError, match="send_to"):
                after.restore(snapshot)
            return
        after.restore(snapshot)
        fields, aggregators, ran, ended = ending(after, program, LAST - stop)
        note = f"saved after superstep {stop - 1}"
        for field, values in fields.items():
            np.testing.assert_array_equal(values, whole[0][field], err_msg=f"{field}, {note}")
        assert (aggregators, ended) == (whole[1], whole[3]), note
        if analyse(program).monotone is None:
            assert ran == whole[2][stop:], note


@pytest.mark.parametrize("first", ["cpu", "python"])
def test_keys_without_an_order_go_on_in_plain_supersteps(first: str) -> None:
    graph = BATTERY["weight_ties"].build()
    weights = np.where(np.arange(graph.num_edges) % 3 == 0, np.inf, 1.0)
    weights[1] = -np.inf
    rows = np.repeat(np.arange(graph.num_vertices), np.diff(graph.offsets.astype(np.int64)))
    in_order = Graph.from_edges(rows, graph.targets, np.ones(graph.num_edges))
    np.testing.assert_array_equal(in_order.targets, graph.targets)
    unordered = replace(in_order, columns={"weight": weights})  # which from_edges refuses
    program = SSSP(source=0)
    whole = ending(interpreted(program, unordered), program, LAST)
    for stop in range(1, len(whole[2])):
        before, after = MAKERS[first](program, unordered), compiled(program, unordered)
        before.lease(stop)
        after.restore(before.save())
        fields, _, ran, _ = ending(after, program, LAST - stop)
        np.testing.assert_array_equal(fields["distance"], whole[0]["distance"])
        assert ran == whole[2][stop:], stop
