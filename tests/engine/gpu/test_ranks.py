"""Partitions on GPUs: the interpreter's results for any number of ranks, which are threads here and share a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from equality_programs import PROGRAMS, program_for
from gpu_ways import assert_ranks_agree
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks
from ways import Way, assert_same, results_of

from sigps import Checkpoint, Graph, Result, run
from sigps.apps import BFS, PageRank
from sigps.compiler.frontend.analysis import analyse

pytestmark = pytest.mark.gpu

WAYS = [
    Way(2, device="cuda"),
    Way(2, device="cuda", direction="push", partitioner="hash"),
    Way(3, device="cuda", direction="pull", partitioner="hash"),
    Way(3, device="cuda", direction="push", partitioner="function"),
    Way(4, device="cuda", partitioner="vertices"),
    Way(8, device="cuda", partitioner="hash"),
]


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_ranks_agree(program: str, graph: str) -> None:
    turn = list(PROGRAMS).index(program) + NAMES.index(graph)
    ways = WAYS if graph == "skewed" else WAYS[turn % 3 :: 3]
    assert_ranks_agree(program_for(program, graph), BATTERY[graph], ways)


@given(samples(), st.sampled_from(list(PROGRAMS)), st.sampled_from(WAYS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_graphs(sample: Sample, name: str, way: Way) -> None:
    made = PROGRAMS[name]
    assert_ranks_agree(made(sample.vertices[-1]) if callable(made) else made, sample, [way])


@pytest.mark.parametrize("name", ["pagerank", "bfs", "wcc", "coreness", "totals", "sssp"])
def test_cpu_cores_beside_a_gpu(name: str) -> None:
    program, sample = program_for(name, "skewed"), BATTERY["skewed"]
    judge = results_of(program, sample, [Way(device="python")])[0][1]
    only_better = analyse(program).monotone is not None

    def mixed(group: ThreadGroup) -> Result:
        device = "cuda" if group.rank else "cpu"
        options = replace(Way(3, partitioner="hash"), device=device).options()
        return run(program, sample.build(group=group), **options)

    assert_same(run_ranks(3, mixed)[0], judge, exact=False, only_better=only_better)


@pytest.mark.parametrize("name", ["pagerank", "bfs", "jump", "coreness", "market"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2, "cuda"), (3, "cuda")),
        ((1, "cuda"), (2, "cuda")),
        ((3, "cuda"), (1, "cuda")),
        ((2, "cpu"), (2, "cuda")),
        ((2, "cuda"), (2, "cpu")),
    ],
)
def test_logs_of_other_ranks_and_devices(
    name: str, first: tuple[int, str], second: tuple[int, str], tmp_path: Path
) -> None:
    program, sample = program_for(name, "skewed"), BATTERY["skewed"]
    if name == "jump" and first[1] != second[1]:
        pytest.skip("direct messages that a CPU combined")
    whole = run(program, sample.build(), device="python")
    log = Checkpoint(tmp_path, every=1)

    def on(ranks: int, device: str, **options: Any) -> Result:
        chosen: dict[str, Any] = {"device": device, "checkpoint": log, **options}
        return run_ranks(ranks, lambda group: run(program, sample.build(group=group), **chosen))[0]

    begun = on(*first, max_supersteps=2)
    assert len(begun.saves) >= 1
    result = on(*second, resume=True)
    assert_same(whole, result, exact=False, only_better=True)


def test_more_ranks_than_vertices() -> None:
    for program in (BFS(source=0), PageRank(iterations=4)):
        sample = Sample([0, 1], [1, 2])
        assert_ranks_agree(program, sample, [Way(8, device="cuda"), Way(5, device="cuda", direction="push")])


def test_each_rank_keeps_its_part() -> None:
    def parts(group: ThreadGroup) -> Any:
        graph = Graph.from_edges(np.arange(99), np.arange(1, 100), group=group)
        result = run(BFS(source=0), graph, device="cuda", gather=False)
        return result.ids.tolist(), result["level"].tolist()

    found = run_ranks(3, parts)
    assert sorted(i for ids, _ in found for i in ids) == list(range(100))
    assert all(ids == levels for ids, levels in found)
