"""What `device="auto"` is: the whole table, what it asks before it decides, and a run of either kind."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from cells import program_of
from edge_programs import Marks, Mirrors
from equality_programs import Jump, TwoLetters
from thread_group import ThreadGroup, run_ranks

from sigps import DeviceError, Graph, Vertex, generate, run
from sigps.apps import BFS, BiTriDN, OutDegree, PageRank, Triangles
from sigps.compiler.frontend.analysis import analyse
from sigps.device import cuda
from sigps.device.cuda import Gpu, what_is_missing
from sigps.engine.contract import RunFacts
from sigps.engine.gpu.choice import GPU_PAYS_FROM_EDGES, reason_against_gpu, reason_not_to_resume
from sigps.engine.gpu.memory_plan import bytes_while_laid_out
from sigps.job.device_choice import choose_engine

ENOUGH = GPU_PAYS_FROM_EDGES


@pytest.mark.parametrize(
    ("num_edges", "obstacle", "missing", "reason"),
    [
        (ENOUGH, None, "", ""),
        (ENOUGH * 1000, None, "", ""),
        (ENOUGH - 1, None, "", "a GPU pays from 10,000,000 edges"),
        (0, None, "", "a GPU pays from 10,000,000 edges"),
        (ENOUGH, "compute() that sings", "", "the GPU engine is not built for compute() that sings yet"),
        (ENOUGH, None, "no GPU is found", "no GPU can be used: no GPU is found"),
        # Of several reasons, the one that holds on any machine is said.
        (5, "sums", "no GPU is found", "a GPU pays from 10,000,000 edges"),
        (ENOUGH, "sums", "no GPU is found", "the GPU engine is not built for sums yet"),
    ],
)
def test_the_table(num_edges: int, obstacle: str | None, missing: str, reason: str) -> None:
    found = reason_against_gpu(num_edges=num_edges, obstacle=obstacle, missing=missing)
    assert found == reason


@pytest.mark.parametrize(("needed", "free", "fits"), [(10, 10, True), (11, 10, False), (0, 0, True)])
def test_a_graph_that_does_not_fit_stays(needed: int, free: int, fits: bool) -> None:
    found = reason_against_gpu(num_edges=ENOUGH, obstacle=None, needed_bytes=needed, free_bytes=free)
    assert found == ("" if fits else "the GPU has 10 bytes free of 11")


# --- what is asked, and said ------------------------------------------------


class Asked:
    """A machine that has what `missing` does not name, and counts who asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, missing: str = "") -> None:
        self.times = 0
        self._missing = missing
        monkeypatch.setattr(cuda, "what_is_missing", self._answer)
        monkeypatch.setattr("sigps.device.cuda.free_bytes", lambda: 1 << 40)
        gpu = Gpu(0, "any", "sm_90", 100, 1 << 17)
        monkeypatch.setattr(cuda, "find_gpu", lambda ordinal=0: gpu)
        monkeypatch.setattr("sigps.engine.gpu.choice.reachable", lambda gpu: [])
        monkeypatch.setattr("sigps.job.device_choice._logged", set())

    def _answer(self) -> str:
        self.times += 1
        return self._missing


def chosen(program: Vertex, graph: Graph, **options: Any) -> str:
    facts = RunFacts(graph.num_vertices, graph.num_edges, graph.group.size, **options)
    return choose_engine("auto", analyse(program), graph, facts).spec.device


@pytest.fixture
def any_size_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigps.engine.gpu.choice.GPU_PAYS_FROM_EDGES", 1)


def test_a_small_graph_asks_for_no_gpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Asked(monkeypatch)
    with caplog.at_level(logging.INFO, logger="sigps"):
        for _ in range(2):
            assert run(BFS(source=0), BATTERY["grid"].build()).device == "cpu"
    assert machine.times == 0
    assert [r.getMessage() for r in caplog.records] == ["device: cpu (a GPU pays from 10,000,000 edges)"]


@pytest.mark.usefixtures("any_size_pays")
def test_a_machine_without_a_gpu_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Asked(monkeypatch, "no GPU is found")
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert run(BFS(source=0), BATTERY["grid"].build()).device == "cpu"
    assert [r.getMessage() for r in caplog.records] == ["device: cpu (no GPU can be used: no GPU is found)"]


@pytest.mark.usefixtures("any_size_pays")
def test_what_is_counted_before_needs_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two programs that keep the same of a graph, one counts links in it first."""
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    Asked(monkeypatch)
    graph = generate("grid", rows=100, columns=100)
    enough = bytes_while_laid_out(graph.num_vertices, graph.num_edges, 0)
    monkeypatch.setattr("sigps.device.cuda.free_bytes", lambda: enough)
    assert [chosen(program, graph) for program in (OutDegree(), Triangles())] == ["cuda", "cpu"]


@pytest.mark.usefixtures("any_size_pays")
@pytest.mark.parametrize("graph", ["grid", "sparse_ids", "string_ids"])
def test_a_machine_with_a_gpu_uses_it(
    graph: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    machine = Asked(monkeypatch)
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert chosen(OutDegree(), BATTERY[graph].build()) == "cuda"
    assert machine.times == 1
    assert [r.getMessage() for r in caplog.records] == ["device: cuda (the graph is large enough to pay)"]


@pytest.mark.usefixtures("any_size_pays")
def test_what_the_engine_is_not_built_for_asks_for_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Asked(monkeypatch)
    monkeypatch.setattr("sigps.engine.gpu.choice.find_gpu_obstacle", lambda *program, **options: "this")
    assert chosen(PageRank(), BATTERY["grid"].build()) == "cpu"
    assert machine.times == 0


def test_logs_that_only_a_cpu_can_go_on_from_stay_there() -> None:
    """A CPU's log of what send_to() sent may hold it combined."""
    obstacle = "state logs of a CPU that combined what send_to() sent"
    for program, expected in ((TwoLetters(), obstacle), (Jump(), None), (PageRank(), None)):
        assert reason_not_to_resume(analyse(program), True) == expected
        assert reason_not_to_resume(analyse(program), False) is None


def test_an_engine_asked_for_by_name_is_asked_what_it_cannot_do() -> None:
    program, graph = (
        analyse(program_of("for m in messages:\n    self.x = m - self.x")),
        BATTERY["grid"].build(),
    )
    facts = RunFacts(graph.num_vertices, graph.num_edges, deterministic=True)
    with pytest.raises(DeviceError, match="is not built for deterministic runs that read floats one by one"):
        choose_engine("cuda", program, graph, facts)
    chosen = choose_engine("cpu", program, graph, facts)
    assert (chosen.spec.device, chosen.why) == ("cpu", "it was asked for by name")


@pytest.mark.usefixtures("any_size_pays")
@pytest.mark.parametrize(
    ("program", "why"),
    [
        (OutDegree(), "ranks are threads of one process"),
        (Jump(), "ranks are threads of one process"),
    ],
)
def test_several_ranks_need_gpus_that_reach_each_other(
    program: Vertex, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    Asked(monkeypatch)

    def run_shared(group: ThreadGroup) -> str:
        return run(program, BATTERY["grid"].build(group=group)).device

    with caplog.at_level(logging.INFO, logger="sigps"):
        assert run_ranks(2, run_shared) == ["cpu", "cpu"]
    assert f"device: cpu ({why})" in [r.getMessage() for r in caplog.records]


@pytest.mark.usefixtures("any_size_pays")
def test_values_on_edges_go_to_gpus_among_which_nccl_moves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    Asked(monkeypatch)
    assert chosen(Marks(), BATTERY["grid"].build()) == "cuda"

    def choose(group: ThreadGroup) -> str:
        return chosen(Marks(), BATTERY["grid"].build(group=group))

    monkeypatch.setattr("sigps.engine.gpu.choice.gpu_facts", facts_of_each(without_nccl=""))
    assert run_ranks(2, choose) == ["cuda", "cuda"]
    monkeypatch.setattr("sigps.engine.gpu.choice.gpu_facts", facts_of_each(without_nccl="no NCCL"))
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert run_ranks(2, choose) == ["cpu", "cpu"]
    assert "device: cpu (no NCCL)" in [r.getMessage() for r in caplog.records]


@pytest.mark.usefixtures("any_size_pays")
def test_common_neighbours_stay_on_the_cpu_where_lanes_do_not_share_what_is_done_with_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Asked(monkeypatch)
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert chosen(Mirrors(), BATTERY["grid"].build()) == "cpu"
    assert "a GPU takes longer for common_neighbors()" in caplog.text
    assert machine.times == 0
    assert chosen(BiTriDN(), BATTERY["grid"].build()) == "cuda"


def facts_of_each(without_nccl: str = "") -> Callable[[Gpu], dict[str, Any]]:
    """Return a `gpu_facts` that names a process and a GPU of its own to each who asks, of two."""
    numbers = itertools.count()

    def facts(gpu: Gpu, *, alone: bool = False) -> dict[str, Any]:
        me = str(next(numbers) % 2)
        reaches = ["0", "1"]
        told = {"process": me, "gpu": me, "reaches": reaches, "without_nccl": without_nccl}
        return {"device": "cuda", "host": "a", **told}

    return facts


@pytest.mark.usefixtures("any_size_pays")
def test_several_ranks_with_gpus_of_their_own_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    Asked(monkeypatch)
    monkeypatch.setattr("sigps.engine.gpu.choice.gpu_facts", facts_of_each())

    def choose(group: ThreadGroup) -> str:
        return chosen(OutDegree(), BATTERY["grid"].build(group=group))

    assert run_ranks(2, choose) == ["cuda", "cuda"]


_STATES = "\n".join(f"s{i}: State[int] = 0" for i in range(33))
MANY_STATES = program_of("self.s0 = self.id\nself.vote_to_halt()", _STATES)
"""More than a GPU takes."""


@pytest.mark.usefixtures("any_size_pays")
def test_a_program_that_cuda_cannot_compile_runs_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("cuda.core", reason="needs cuda-core: pip install 'sigps[cuda-link]'")
    Asked(monkeypatch)
    with caplog.at_level(logging.INFO, logger="sigps"):
        assert run(MANY_STATES, BATTERY["grid"].build()).device == "cpu"
    (said,) = [r.getMessage() for r in caplog.records]
    assert said.startswith("device: cpu (")
    assert "states; a GPU takes 32" in said


def test_a_run_on_the_cpu_loads_nothing_of_cuda() -> None:
    code = (
        "import sys, sigps, sigps.job.run, sigps.engine.gpu.choice as choice; from sigps.apps import OutDegree; "
        "choice.GPU_PAYS_FROM_EDGES = {}; sigps.run(OutDegree(), sigps.Graph.from_edges([0], [1])); "
        "sys.exit(', '.join({{'cupy', 'cuda'}} & set(sys.modules)) or 0)"
    )
    without_a_gpu = [10, 1] if cuda.what_is_missing() else [10]
    for pays_from in without_a_gpu:
        ended = subprocess.run(
            [sys.executable, "-c", code.format(pays_from)], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, ""), pays_from


# --- on a GPU ----------------------------------------------------------------


@pytest.mark.gpu
def test_large_graphs_go_to_the_gpu_and_small_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    if what_is_missing():
        pytest.skip("no GPU, or no CuPy and cuda.core")
    graph = BATTERY["skewed"].build()
    small = run(BFS(source=0), graph)
    monkeypatch.setattr("sigps.engine.gpu.choice.GPU_PAYS_FROM_EDGES", graph.num_edges)
    large = run(BFS(source=0), graph)
    assert (small.device, large.device) == ("cpu", "cuda")
    np.testing.assert_array_equal(small["level"], large["level"])
    assert run(MANY_STATES, graph).device == "cpu"
