"""Apps, and programs on random graphs, with edges in a packed store: as in memory, and as interpreted."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from battery import BATTERY, Sample
from equality_programs import PROGRAMS
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from ways import assert_same

import sigps
import sigps.apps
from sigps import ConfigError, Result, Vertex, run
from sigps.compiler.frontend.analysis import analyse
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.packer import Order

STORES: list[tuple[Order, int]] = [("given", 1), ("given", 3), ("degree", 1), ("degree", 3)]
"""The order of rows, and how many ranks."""


def streamed(program: Vertex, path: Path, ranks: int, **options: Any) -> Result | None:
    """Return a run that streams; None where it is refused by name."""

    def work(group: ThreadGroup) -> Result:
        return run(program, sigps.load(path, group=group), stream="always", threads=2, **options)

    try:
        return run_ranks(ranks, work)[0]
    except ConfigError as error:
        if "the run cannot stream: " not in str(error):
            raise
        return None


@pytest.mark.parametrize(
    ("program", "stores"),
    in_turn(
        [sigps.apps.Node2vecWalks(), sigps.apps.HyperBall(), sigps.apps.MaximalMatching()],
        [STORES[::3], STORES[1:3]],
    ),
    ids=str,
)
def test_apps(program: Vertex, stores: list[tuple[Order, int]], tmp_path: Path) -> None:
    options: dict[str, Any] = {"deterministic": True, "max_supersteps": 12}
    graph = BATTERY["skewed"].build(directed=False)
    expected = run(program, graph, device="cpu", threads=2, asynchronous=False, **options)
    walks = analyse(program).reads_edges
    for order, ranks in stores:
        path = tmp_path / f"{order}-{ranks}"
        save_packed(graph, path, order=order, page_arcs=32)
        found = streamed(program, path, ranks, **options)
        assert (found is None) == (walks and order == "degree")
        if found is not None:
            assert_same(found, expected, exact=True, in_order=analyse(program).monotone is None)


@given(samples(), st.sampled_from(list(PROGRAMS)), st.integers(0, 3))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_graphs(sample: Sample, name: str, turn: int) -> None:
    made = PROGRAMS[name]
    program = made(sample.vertices[-1]) if callable(made) else made
    options: dict[str, Any] = {"deterministic": True, "max_supersteps": 20}
    graph = sample.build()
    order, ranks = STORES[turn]
    with TemporaryDirectory() as folder:
        save_packed(graph, Path(folder, "graph"), order=order, page_arcs=32)
        found = streamed(program, Path(folder, "graph"), ranks, **options)
    if found is not None:
        judge = run(program, graph, device="python", **options)
        assert_same(found, judge, exact=True, in_order=analyse(program).monotone is None)
