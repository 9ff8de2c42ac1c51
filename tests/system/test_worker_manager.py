from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from engines import executable_of
from equality_programs import Jump, TwoLetters
from thread_group import ThreadGroup, run_ranks

from sigps import Graph, Vertex, run
from sigps.apps import WCC, OutDegree, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.errors import ConfigError
from sigps.system.worker_manager import RankResult, WorkerManager, _check_mixture, bound_cores


def part_of(graph: Graph, program: Vertex, device: str = "cpu", threads: int = 1, **given: Any) -> RankResult:
    options = {"method": "edges", "options": RunOptions(), "max_supersteps": None, "on_progress": None}
    manager = WorkerManager(graph, threads)
    return manager.run(program, executable_of(program, graph, device), **{**options, **given})


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("method", ["edges", "hash"])
def test_every_rank_has_its_own_vertices_in_order(size: int, method: str) -> None:
    sample = BATTERY["grid"]
    parts = run_ranks(size, lambda group: part_of(sample.build(group=group), OutDegree(), method=method))
    assert all((np.diff(p.gids) > 0).all() for p in parts)
    gids = np.concatenate([p.gids for p in parts])
    degrees = np.concatenate([p.fields["degree"] for p in parts])
    assert sorted(gids.tolist()) == list(range(20))
    corners, expected = {0, 4, 15, 19}, sample.build().out_degrees()
    assert degrees.tolist() == expected[gids].tolist()
    assert {int(g) for g, d in zip(gids, degrees, strict=True) if d == 2} == corners
    assert {p.reason for p in parts} == {"converged"}


def test_all_ranks_agree_on_the_end_and_the_supersteps() -> None:
    def run_cut(group: ThreadGroup) -> tuple[str, list[tuple[int, int, int, int]]]:
        part = part_of(BATTERY["grid"].build(group=group), PageRank(), max_supersteps=4)
        return part.reason, [(s.superstep, s.active, s.messages, s.bytes_moved) for s in part.stats]

    results = run_ranks(3, run_cut)
    assert results[0][0] == "max_supersteps"
    assert [row[:3] for row in results[0][1]] == [(s, 20, 62) for s in range(4)]
    assert results[1] == results[2] == results[0]


def test_aggregators_are_known_on_every_rank() -> None:
    parts = run_ranks(3, lambda group: part_of(BATTERY["star_in"].build(group=group), PageRank(iterations=0)))
    assert [p.aggregators for p in parts] == [{"lost": 0.0, "change": 0.0}] * 3


def test_only_rank_0_is_told_of_progress() -> None:
    def run_reported(group: ThreadGroup) -> list[int]:
        reported: list[int] = []
        graph = BATTERY["grid"].build(group=group)
        part_of(graph, PageRank(), on_progress=lambda stats: reported.append(len(stats)))
        return reported

    reported = run_ranks(2, run_reported)
    assert reported[0][0] == 1
    assert reported[0][-1] == 21
    assert reported[1] == []


def test_a_graph_is_laid_out_once_for_a_partitioner_and_what_programs_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sigps.engine.laid_out as module

    layouts: list[bool] = []
    build = module.build_subgraph

    def counted(*args: Any, **options: Any) -> Any:
        layouts.append(options["with_outgoing"])
        return build(*args, **options)

    monkeypatch.setattr(module, "build_subgraph", counted)
    graph = BATTERY["grid"].build()
    for _ in range(3):
        part_of(graph, WCC())
        part_of(graph, OutDegree())
    assert layouts == [False]
    part_of(graph, WCC(), "python")  # the interpreter walks out-edges
    part_of(graph, PageRank(), method="hash")
    part_of(graph, PageRank(), method="hash")
    assert layouts == [False, True, False]


def test_a_partition_function_for_every_run_does_not_fill_the_memory() -> None:
    graph = BATTERY["grid"].build()
    for shift in range(10):
        part_of(graph, OutDegree(), method=lambda ids, shift=shift: (ids + shift) * 0)
    assert len(graph.derived("partitions", dict)) == 4


def test_a_rank_that_interprets_does_not_work_with_one_that_does_not() -> None:
    def run_mixed(group: ThreadGroup) -> None:
        device = "python" if group.rank == 1 else "cpu"
        with pytest.raises(ConfigError, match="ranks on cpu and python cannot work together"):
            run(OutDegree(), BATTERY["grid"].build(group=group), device=device)

    run_ranks(3, run_mixed)


@pytest.mark.parametrize(("program", "is_refused"), [(TwoLetters(), True), (Jump(), False), (WCC(), False)])
def test_a_gpu_beside_cpu_cores_gets_no_combined_mail(program: Vertex, is_refused: bool) -> None:
    derived = analyse(program)
    for devices in (["cpu", "cpu"], ["cuda"]):
        _check_mixture(devices, derived, has_fixed_order=True)
    with pytest.raises(ConfigError, match="in a run that is deterministic, goes on from a log"):
        _check_mixture(["cpu", "cuda"], derived, has_fixed_order=True)
    refused = pytest.raises(
        ConfigError, match="ranks on cpu and cuda cannot work together where what send_to"
    )
    with refused if is_refused else contextlib.nullcontext():
        _check_mixture(["cpu", "cuda", "cpu"], derived)


def test_the_capacity_of_a_rank_is_its_share_of_the_threads() -> None:
    def owned(group: ThreadGroup) -> int:
        graph = Graph.from_edges(range(1000), np.roll(np.arange(1000), -1), group=group)
        threads = 3 if group.rank == 0 else 1
        return part_of(graph, OutDegree(), threads=threads, method="vertices").gids.size

    assert run_ranks(2, owned) == [750, 250]


@pytest.mark.parametrize(
    ("cores", "of_host", "num_ranks", "launcher", "is_said"),
    [
        (1, 32, 2, "OMPI_COMM_WORLD_SIZE", True),
        (1, 32, 2, "PMI_SIZE", False),
        (16, 32, 2, "OMPI_COMM_WORLD_SIZE", False),
        (1, 2, 2, "OMPI_COMM_WORLD_SIZE", False),  # it is its share
        (
            1,
            32,
            1,
            "OMPI_COMM_WORLD_SIZE",
            False,
        ),  # `mpirun -n 1`, or one a host: the job may be bound on purpose
    ],
)
def test_ranks_that_are_bound_to_a_core_are_told(
    cores: int, of_host: int, num_ranks: int, launcher: str, is_said: bool
) -> None:
    note = bound_cores(cores, of_host, num_ranks, {launcher: "2"})
    assert bool(note) == is_said
    assert "--bind-to none" in (note or "--bind-to none")
