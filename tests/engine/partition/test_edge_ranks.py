"""Values kept on edges, and the edges of neighbours, on ranks with GPUs; this process's memory is the GPUs' here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from turns import in_turn

pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")

import host_gpu
from battery import BATTERY, NAMES, Sample
from edge_logs import LOGS, assert_goes_on
from edge_programs import (
    Closeness,
    EdgeTriangles,
    Loudest,
    Marks,
    Mirrors,
    Posts,
    Returns,
    Signs,
    Unasked,
    Waves,
)
from graphs import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks
from ways import Way, assert_same, results_of

from sigps import DeviceError, Graph, Result, Vertex, run
from sigps.apps import BiTriDN, DNGraphs, EgoNet, StreamDN, TriDN
from sigps.engine.gpu import graph as gpu_graph
from sigps.engine.gpu import memory_plan as gpu_plan
from sigps.engine.gpu import run_memory as gpu_memory

PROGRAMS = [EdgeTriangles, Waves, Marks, Mirrors, Returns, Closeness, Loudest, Signs]
WAYS = [
    Way(device="cuda"),
    Way(2, device="cuda", partitioner="hash"),
    Way(3, device="cuda", partitioner="vertices"),
    Way(4, device="cuda", partitioner="function"),
]


@pytest.fixture(autouse=True)
def _on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)


def assert_ranks_agree(program: Vertex, sample: Sample, ways: list[Way]) -> None:
    judge = run(program, sample.build(), device="python")
    for way, result in results_of(program, sample, ways):
        try:
            assert result.device == "cuda"
            assert_same(result, judge, exact=False)
        except AssertionError as error:
            error.add_note(f"{type(program).__name__} {program.params} on {way}")
            raise


@pytest.mark.parametrize(
    ("graph", "program", "way"),
    in_turn([name for name in NAMES if name != "skewed"], PROGRAMS, WAYS, times=2),
    ids=str,
)
def test_ranks_agree(graph: str, program: type[Vertex], way: Way) -> None:
    assert_ranks_agree(program(), BATTERY[graph], [way])


@pytest.mark.slow
@given(samples(), st.sampled_from(PROGRAMS), st.sampled_from(WAYS))
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)
def test_random_graphs(sample: Sample, program: type[Vertex], way: Way) -> None:
    assert_ranks_agree(program(), sample, [way])


@pytest.mark.parametrize(
    ("program", "way"),
    in_turn([TriDN(), BiTriDN(), StreamDN(scans=3), DNGraphs(), EgoNet(source=7, hops=2)], WAYS[1:3]),
    ids=str,
)
def test_dense_neighbourhoods(program: Vertex, way: Way) -> None:
    assert_ranks_agree(program, BATTERY["grid"], [way])


def test_without_edge_states_neighbours_are_read_too() -> None:
    assert_ranks_agree(Unasked(mode="triangles"), BATTERY["complete_5"], WAYS[1:3])
    assert_ranks_agree(Unasked(), BATTERY["complete_5"], WAYS[3:])


@pytest.mark.parametrize(
    ("program", "name", "way"),
    in_turn(
        [EdgeTriangles, Waves, Mirrors, Returns],
        ["complete_5", "hub_on_a_partition_border"],
        WAYS[1:],
        times=2,
    ),
    ids=str,
)
def test_from_device_to_device(
    program: type[Vertex], name: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NCCL moves what crosses, no host has it."""
    host_gpu.use_host_as_gpu(monkeypatch, has_nccl=True)
    assert_ranks_agree(program(), BATTERY[name], [way])


@pytest.mark.parametrize("program", [EdgeTriangles, Marks, Mirrors, Returns])
def test_cpu_cores_beside_a_gpu(program: type[Vertex]) -> None:
    judge = run(program(), BATTERY["complete_5"].build(), device="python")

    def mixed(group: ThreadGroup) -> Result:
        device: Any = "cuda" if group.rank else "cpu"
        return run(program(), BATTERY["complete_5"].build(group=group), device=device, partitioner="hash")

    assert_same(run_ranks(3, mixed)[0], judge, exact=False)


def test_bytes_that_cross_are_those_of_cpu_cores() -> None:
    def moved(group: ThreadGroup, device: Any) -> list[int]:
        graph = BATTERY["complete_5"].build(group=group)
        return [s.bytes_moved for s in run(Mirrors(), graph, device=device).stats]

    on_cpu, on_gpu = (run_ranks(2, lambda g, d=device: moved(g, d))[0] for device in ("cpu", "cuda"))
    assert on_gpu == on_cpu
    assert on_gpu[1] > 0


def test_a_vertex_whose_mail_overflows_writes_its_edges_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the vertices find no room, and run again before anybody sees what the others wrote."""
    monkeypatch.setattr(gpu_plan, "_FIRST_DIRECT", 1)
    size = 16
    sources, targets = np.triu_indices(size, 1)
    assert size * (size - 1) // 2 > 2 * size + 1

    def work(group: ThreadGroup) -> Result:
        graph = Graph.from_edges(sources, targets, directed=False, group=group)
        return run(Posts(), graph, device="cuda", max_supersteps=2, partitioner="hash")

    result = run_ranks(2, work)[0]
    assert (result.edges["kept"] == 2).all()
    assert result["x"].tolist() == [size - 1] * size


# --- state logs ------------------------------------------------------------


@pytest.mark.parametrize(("log", "program"), in_turn(LOGS, [Marks, Returns, Mirrors]))
def test_a_run_goes_on_from_its_log(
    log: tuple[tuple[int, str], tuple[int, str]], program: type[Vertex], tmp_path: Path
) -> None:
    assert_goes_on(program, BATTERY["hub_on_a_partition_border"], *log, tmp_path)


# --- memory ----------------------------------------------------------------


def test_copies_and_what_crosses_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """K5 on two ranks, of 3 and 2 vertices: each looks at all rows of the other's, of 4 edges each."""
    asked: list[dict[str, int]] = []
    monkeypatch.setattr(gpu_graph, "check_fits", asked.append)
    monkeypatch.setattr(gpu_memory, "fits", lambda num_bytes: False)
    monkeypatch.setattr(gpu_memory, "check_fits", asked.append)
    run_ranks(2, lambda group: run(EdgeTriangles(), BATTERY["complete_5"].build(group=group), device="cuda"))
    for purpose, expected in (
        ("the edges of neighbours on other ranks", [8 * 2 + 4 * 8 + 4 * 12, 8 * 3 + 4 * 12 + 4 * 8]),
        ("what crosses of edges", [2 * 12 + 24 * 20, 2 * 8 + 24 * 20]),
    ):
        assert sorted(n[purpose] for n in asked if purpose in n) == sorted(expected)


def test_what_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(group: ThreadGroup) -> str:
        with pytest.raises(DeviceError) as error:
            run(EdgeTriangles(), BATTERY["complete_5"].build(group=group), device="cuda")
        return str(error.value)

    monkeypatch.setattr(host_gpu, "FREE_BYTES", 2000)  # the graph fits
    assert all("for what crosses of edges" in text for text in run_ranks(2, attempt))
