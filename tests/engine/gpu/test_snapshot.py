"""Runs on a GPU that are saved, and go on there or elsewhere; and programs with a master, which runs on the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from engines import compiled, interpreted
from equality_programs import PROGRAMS
from gpu_ways import assert_as_judged, fans
from master_programs import Budget, Fading, Floods, Letters, Sleeper, Unheard, Vanished, Waves
from snapshots import GRAPHS, LAST, MAKERS, assert_near, combines_mail, ending, made, on_gpu, written
from ways import RELATIVE, Way, assert_same

from sigps import Checkpoint, Graph, Vertex, run
from sigps.apps import BFS, SSSP, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu import columns
from sigps.errors import DeviceError
from sigps.kernels.cuda.lease import HUB_DEGREE

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    ("first", "second"),
    [("cuda", "cuda"), ("cuda", "cpu"), ("cuda", "python"), ("cpu", "cuda"), ("python", "cuda")],
)
def test_another_engine_goes_on_where_one_stopped(name: str, first: str, second: str) -> None:
    program = made(name)
    for which in ("skewed", GRAPHS[1 + list(PROGRAMS).index(name) % 4]):
        graph = BATTERY[which].build()
        whole = ending(interpreted(program, graph), program, LAST)
        for stop in range(1, min(len(whole[2]), 4)):
            before, after = MAKERS[first](program, graph), MAKERS[second](program, graph)
            before.lease(stop)
            snapshot = before.save()
            before.lease(1)  # what was saved is no longer the engine's
            snapshot = written(snapshot)
            if (first, second) == ("cpu", "cuda") and combines_mail(program):
                with pytest.raises(DeviceError, match="were combined when this was saved"):
                    after.restore(snapshot)
                return
            after.restore(snapshot)
            fields, aggregators, ran, ended = ending(after, program, LAST - stop)
            note = f"{which}, saved after superstep {stop - 1}"
            for field, values in fields.items():
                assert_near(values, whole[0][field], f"{field}, {note}")
            for aggregator, value in aggregators.items():
                assert value == pytest.approx(whole[1][aggregator], rel=RELATIVE), note
            assert ended == whole[3], note
            if analyse(program).monotone is None or second != "cpu":
                assert ran == whole[2][stop:], note


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_senders_are_known_as_lists_and_as_bits(direction: Any) -> None:
    graph = fans(40, HUB_DEGREE + 1)  # the hubs are on a list of their own
    for program in (BFS(source=0), SSSP(source=0)):
        whole = ending(compiled(program, graph), program, LAST)
        for stop in range(1, len(whole[2])):
            before, after = (on_gpu(program, graph, forced=direction) for _ in range(2))
            before.lease(stop)
            after.restore(written(before.save()))
            fields, *_ = ending(after, program, LAST)
            for field, values in fields.items():
                assert_near(values, whole[0][field], field)


def test_more_mail_is_restored_than_there_is_room_for() -> None:
    program, graph = made("jump"), BATTERY["skewed"].build()
    before, after = interpreted(program, graph), on_gpu(program, graph)
    before.lease(1)
    snapshot = before.save()
    after._memory.lease["in"]["direct_capacity"] = 1
    after.restore(snapshot)
    assert int(after._memory.lease["in"]["direct_capacity"]) == snapshot.ends.size > 1
    whole = ending(interpreted(program, graph), program, LAST)
    for field, values in ending(after, program, LAST - 1)[0].items():
        assert_near(values, whole[0][field], field)


@pytest.mark.parametrize(("first", "second"), [("cuda", "cuda"), ("cuda", "cpu"), ("cpu", "cuda")])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_log_goes_on_on_another_device(first: str, second: str, precision: Any, tmp_path: Path) -> None:
    graph = BATTERY["skewed"].build()
    for program in (PageRank(iterations=9), SSSP(source=BATTERY["skewed"].sources[0])):
        folder = tmp_path / type(program).__name__
        options: dict[str, Any] = {"precision": precision}
        whole = run(program, graph, device="cpu", asynchronous=False, **options)
        log = Checkpoint(folder, every=2)
        begun = run(program, graph, device=first, max_supersteps=3, checkpoint=log, **options)
        assert [save.superstep for save in begun.saves] == [2]
        assert begun.saves[0].num_bytes > graph.num_vertices * 9
        result = run(program, graph, device=second, checkpoint=log, resume=True, **options)
        relative = 1e-5 if precision == "single" else RELATIVE
        assert_same(whole, result, exact=False, only_better=True, relative=relative)
        assert [s.superstep for s in result.stats] == list(range(whole.supersteps))


def test_saved_in_every_superstep_of_a_mesh(tmp_path: Path) -> None:
    """Where a cluster would deliver messages before the superstep is over."""
    graph = BATTERY["grid"].build()
    program = BFS(source=BATTERY["grid"].sources[0])
    result = run(program, graph, device="cuda", checkpoint=Checkpoint(tmp_path, every=1, keep=1000))
    assert_same(result, run(program, graph, device="python"), exact=True)
    assert [save.superstep for save in result.saves] == list(range(1, result.supersteps + 1))


@pytest.mark.parametrize("name", ["sssp", "jump", "two_letters", "totals"])
def test_where_there_is_no_memory_for_copies_they_are_made_on_the_host(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import cupy

    def full(array: Any) -> None:
        raise cupy.cuda.memory.OutOfMemoryError(1, 1, 1)

    program, graph = made(name), BATTERY["skewed"].build()
    before, after = on_gpu(program, graph), on_gpu(program, graph)
    before.lease(2)
    monkeypatch.setattr(columns, "Copied", full)
    snapshot = before.save()
    assert isinstance(snapshot.status, np.ndarray)
    after.restore(snapshot)
    whole = ending(interpreted(program, graph), program, LAST)
    for field, values in ending(after, program, LAST)[0].items():
        assert_near(values, whole[0][field], field)


def test_what_an_interpreter_left_is_saved_again() -> None:
    """The superstep that reads its messages runs on the CPU, and nothing on the device yet."""
    program, graph = made("pagerank"), BATTERY["skewed"].build()
    first, second, third = interpreted(program, graph), on_gpu(program, graph), on_gpu(program, graph)
    first.lease(1)
    second.restore(first.save())
    second.lease(1)
    third.restore(written(second.save()))
    whole = ending(interpreted(program, graph), program, LAST)
    assert_near(ending(third, program, LAST - 2)[0]["rank"], whole[0]["rank"], "rank")


# --- master compute --------------------------------------------------------

CUDA = [Way(device="cuda", direction=direction) for direction in ("auto", "push", "pull")]


@pytest.mark.parametrize("name", ["skewed", "grid", "isolated", "path", "two_components", "self_loop"])
@pytest.mark.parametrize(
    "program", [Waves(), Budget(), Sleeper(), Unheard(), Fading(), Letters(), Vanished()]
)
def test_masters(program: Vertex, name: str) -> None:
    assert_as_judged(program, BATTERY[name].build(), ways=CUDA)


def test_a_master_wakes_all_but_the_retired() -> None:
    result = run(Sleeper(), Graph.from_edges([0, 1], [1, 2]), device="cuda")
    assert [s.active for s in result.stats] == [3, 3, 2]
    assert result["runs"].tolist() == [2, 3, 3]
    assert result.reason == "converged"


@pytest.mark.parametrize(("first", "second"), [("cuda", "cpu"), ("cpu", "cuda"), ("python", "cuda")])
@pytest.mark.parametrize("program", [Waves(), Floods()])
def test_a_log_keeps_shared_values(program: Vertex, first: Any, second: Any, tmp_path: Path) -> None:
    graph = BATTERY["grid"].build()
    whole = run(program, graph, device="python")
    run(program, graph, device=first, checkpoint=Checkpoint(tmp_path, every=3), max_supersteps=7)
    result = run(program, graph, device=second, checkpoint=Checkpoint(tmp_path, every=3), resume=True)
    assert result.aggregators == whole.aggregators
    assert result["reached"].tolist() == whole["reached"].tolist()
    assert [s.active for s in result.stats] == [s.active for s in whole.stats]
