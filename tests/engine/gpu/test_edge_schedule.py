"""Runs by the edge schedule on a GPU: the interpreter's results and course, on one partition and on several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from edge_programs import SentAlong
from edge_schedule_programs import BY_EDGE_ON_GPUS, NO_ATOMIC
from equality_programs import PROGRAMS, program_for
from gpu_ways import (
    BUSY,
    assert_as_judged,
    assert_ranks_agree,
    assert_same_in_leases,
    fans,
    rows_of_every_kind,
)
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from send_programs import Paced, Simmer
from ways import Way, assert_same

import sigps.apps
from sigps import Checkpoint, Graph, Vertex, run
from sigps.apps import BFS, SSSP, WCC, PageRank
from sigps.errors import DeviceError
from sigps.kernels.cuda.lease import HUB_DEGREE

pytestmark = pytest.mark.gpu

ALONE = [Way(device="cuda", schedule="edge")]
RANKS = [
    Way(2, device="cuda", schedule="edge"),
    Way(3, device="cuda", schedule="edge", partitioner="hash"),
    Way(4, device="cuda", schedule="edge", partitioner="vertices"),
]


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("program", BY_EDGE_ON_GPUS)
def test_all_programs_agree(program: str, graph: str) -> None:
    assert_as_judged(program_for(program, graph), BATTERY[graph].build(), ways=ALONE)


@pytest.mark.parametrize("graph", ["skewed", "grid", "parallel_edges", "hub_on_a_partition_border"])
@pytest.mark.parametrize("program", ["pagerank", "sssp", "totals", "spread", "bfs"])
def test_single_precision(program: str, graph: str) -> None:
    made = program_for(program, graph)
    assert_as_judged(made, BATTERY[graph].build(), judge="cpu", ways=ALONE, precision="single")


@given(samples(), st.sampled_from(BY_EDGE_ON_GPUS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_random_graphs(sample: Sample, name: str) -> None:
    made = PROGRAMS[name]
    program = made(sample.vertices[-1]) if callable(made) else made
    assert_as_judged(program, sample.build(), ways=ALONE)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", [name for name in BUSY if name not in NO_ATOMIC])
def test_rows_of_every_kind(name: str, directed: bool) -> None:
    assert_as_judged(BUSY[name], rows_of_every_kind(directed), judge="cpu", ways=ALONE)


@pytest.mark.parametrize("degree", [HUB_DEGREE, 3 * HUB_DEGREE])
def test_hubs_that_send_at_once(degree: int) -> None:
    for program in (BFS(source=0), SSSP(source=0), WCC()):
        assert_as_judged(program, fans(40, degree), judge="cpu", ways=ALONE)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 63, 64, 65, 255, 256, 257])
def test_numbers_of_vertices_around_words_and_blocks(size: int) -> None:
    ring = np.arange(size)
    graph = Graph.from_edges(ring, np.roll(ring, -1), 1.0 + ring % 3)
    for program in (BFS(source=size - 1), SSSP(source=0), WCC(), PageRank(iterations=3)):
        assert_as_judged(program, graph, judge="cpu", ways=ALONE)


@pytest.mark.parametrize("name", ["KCore", "HITS", "SCC", "MaximalMatching", "LCC", "OutDegree"])
def test_apps(name: str) -> None:
    """With masters, retirement, edges both ways, records of several fields, and nothing to read."""
    program, sample = getattr(sigps.apps, name)(), BATTERY["skewed"]
    expected = run(program, sample.build(), device="cpu", schedule="edge")
    found = run(program, sample.build(), device="cuda", schedule="edge")
    assert {s.direction for s in found.stats} == {"edge"}
    assert_same(found, expected, exact=False, relative=1e-8)


@pytest.mark.parametrize("graph", ["skewed", "grid", "isolated"])
def test_vertices_that_stay_active(graph: str) -> None:
    for program in (Simmer(), Paced()):
        assert_as_judged(program, BATTERY[graph].build(), ways=ALONE)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("program", ["pagerank", "bfs", "sssp", "totals", "climb"])
def test_several_leases(program: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, graph = program_for(program, "skewed"), BATTERY["skewed"].build()
    assert_same_in_leases(made, graph, size, monkeypatch, schedule="edge")


def test_many_supersteps() -> None:
    graph = Graph.from_edges(np.arange(700), np.arange(1, 701))
    result = run(BFS(source=0), graph, device="cuda", schedule="edge")
    np.testing.assert_array_equal(result["level"], np.arange(701))
    assert [s.direction for s in result.stats] == ["edge"] * 701


def test_schedules_on_one_graph_do_not_disturb_each_other() -> None:
    graph = BATTERY["skewed"].build()
    for program in (BFS(source=0), PageRank(iterations=5), SSSP(source=0)):
        judge = run(program, graph, device="python")
        for schedule in ("vertex", "edge", "vertex", "edge"):
            result = run(program, graph, device="cuda", schedule=schedule, asynchronous=False)  # type: ignore[arg-type]
            assert_same(result, judge, exact=False)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("cuda", "edge"), ("cuda", "edge")),
        (("cuda", "vertex"), ("cuda", "edge")),
        (("cuda", "edge"), ("cpu", "vertex")),
        (("cpu", "edge"), ("cuda", "edge")),
    ],
)
@pytest.mark.parametrize("name", ["pagerank", "bfs", "sssp"])
def test_a_run_goes_on_from_a_log(name: str, first: Any, second: Any, tmp_path: Path) -> None:
    program, graph = program_for(name, "skewed"), BATTERY["skewed"].build()
    whole, log = run(program, graph, device="python"), Checkpoint(tmp_path, every=1)
    run(program, graph, device=first[0], schedule=first[1], checkpoint=log, max_supersteps=2)
    result = run(program, graph, device=second[0], schedule=second[1], checkpoint=log, resume=True)
    assert_same(result, whole, exact=False, only_better=True)


@pytest.mark.parametrize("graph", ["skewed", "grid", "star_in", "hub_on_a_partition_border", "one_vertex"])
@pytest.mark.parametrize("program", BY_EDGE_ON_GPUS)
def test_ranks_agree(program: str, graph: str) -> None:
    """Records cross through the host here; `gpu_rank_script.py` has GPUs that write into each other's memory."""
    assert_ranks_agree(program_for(program, graph), BATTERY[graph], RANKS)


@pytest.mark.parametrize("name", NO_ATOMIC)
def test_what_has_no_atomic_is_refused_by_name(name: str) -> None:
    program: Vertex = program_for(name, "skewed")
    with pytest.raises(DeviceError, match=f"schedule='edge' on device='cuda': it has {NO_ATOMIC[name]}"):
        run(program, BATTERY["skewed"].build(), device="cuda", schedule="edge")


def test_values_on_edges_are_refused_by_name() -> None:
    with pytest.raises(DeviceError, match="EdgeState"):
        run(SentAlong(), BATTERY["skewed"].build(), device="cuda", schedule="edge")
