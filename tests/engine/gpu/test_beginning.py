"""What a run's memory begins with: compared, array by array, with what is declared."""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

import numpy as np
import pytest

if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.core") is None:
    pytest.skip("cuda-core is not installed: pip install 'sigps[cuda-link]'", allow_module_level=True)

import host_gpu

from sigps import Aggregator, EdgeState, Param, Shared, State, Vector, Vertex
from sigps.apps import BFS
from sigps.compiler.cuda.compile import CudaProgram, compile_for_cuda
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu.beginning import beginning_of, cells_of
from sigps.engine.gpu.memory_plan import Sizes, plan_run

DIRTY = 0xA5
SIZES = Sizes(num_owned=37, num_in_edges=90, num_hubs=0, num_out_edges=90)
LONG = Vector[float, 300]


class Sums(NamedTuple):
    """Their neutral row has no two words alike in a row of three."""

    least: float
    greatest: float
    total: float


class Many(Vertex, message=Sums):
    """States whose rows are no multiple of a word, aggregators of both kinds, and parameters."""

    rounds: Param[int] = 3
    share: Param[float] = 0.5
    small: State[np.int8] = -7
    three: State[Vector[np.float32, 3]] = (1.0, 2.0, 3.0)
    ramp: State[LONG] = tuple(float(i) for i in range(300))
    seen: State[bool] = True
    least = Aggregator.min(int)
    kept = Aggregator.sum(Vector[float, 2], persistent=True)
    phase: Shared[int] = 4

    def compute(self, messages):
        for m in messages:
            self.ramp[0] = min(self.ramp[0], m.least)
        self.least += self.id
        if self.superstep < self.rounds:
            self.send_to_neighbors(Sums(self.share, self.share, self.share))
        self.vote_to_halt()


class OnEdges(Vertex):
    """Edge states."""

    flow: EdgeState[float] = 0.75
    hops: EdgeState[np.int16] = -2

    def compute(self, messages):
        for edge in self.out_edges:
            edge.flow += 1.0
            edge.hops = self.superstep
        self.vote_to_halt()


class Run:
    """The memory of a run, which was full of something else before it began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, program: Vertex, params: list[Any]) -> None:
        host_gpu.use_host_as_gpu(monkeypatch)
        self.code: CudaProgram = compile_for_cuda(analyse(program), {}, narrow_ids=True, arch="sm_90")
        self.plan = plan_run(self.code, SIZES, has_cluster=True)
        sizes = self.plan.nbytes, self.plan.state_bytes
        self.run, self.states = (np.full(size, DIRTY, np.uint8) for size in sizes)
        self.beginning = beginning_of(self.code, self.plan)
        blocks = host_gpu.Pointer(self.run), host_gpu.Pointer(self.states)
        self.beginning.write(host_gpu.GPU, blocks, cells_of(params))

    def array(self, name: str, dtype: Any) -> Any:
        begin = self.plan.offsets[name]
        return self.run[begin : begin + self.plan.sizes[name]].view(dtype)

    def state(self, number: int, dtype: Any, length: int = 1) -> Any:
        begin, count = self.plan.states[number], SIZES.num_owned * length
        return self.states[begin : begin + count * np.dtype(dtype).itemsize].view(dtype).reshape(-1, length)


def test_every_array_begins_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, Many(), [np.int64(11), np.float64(0.125)])
    assert (run.state(0, np.int8) == -7).all()
    assert (run.state(1, np.float32, 3) == [1.0, 2.0, 3.0]).all()
    assert (run.state(2, np.float64, 300) == np.arange(300)).all()
    assert (run.state(3, np.bool_) == 1).all()
    assert not any(run.array(name, np.uint8).any() for name in ("status", "sent0", "sent1", "control"))
    assert run.array("params", np.int64)[0] == 11
    assert run.array("params", np.float64)[1] == 0.125
    for name in ("aggregates", "carried"):
        assert run.array(name, np.int64)[0] == np.iinfo(np.int64).max
        assert run.array(name, np.float64)[1:3].tolist() == [0.0, 0.0]
    assert run.array("aggregates", np.int64)[3] == 4


@pytest.mark.parametrize("inbox", ["inboxes0", "inboxes1"])
def test_inboxes_hold_what_changes_no_message(monkeypatch: pytest.MonkeyPatch, inbox: str) -> None:
    run = Run(monkeypatch, BFS(source=0), [np.int64(0)])
    row = np.frombuffer(run.code.neutral or b"", np.uint8)
    assert row.size > 0
    assert (run.array(inbox, np.uint8).reshape(-1, row.size) == row).all()
    assert not any(run.array(name, np.uint8).any() for name in ("touched0", "touched1"))


def test_edge_states_begin_as_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, OnEdges(), [])
    for kind in ("pending", "committed"):
        assert (run.array(f"{kind}0", np.float64) == 0.75).all()
        assert (run.array(f"{kind}1", np.int16) == -2).all()
    assert not run.array("wrote", np.uint8).any()


def test_nothing_but_the_beginning_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, BFS(source=0), [np.int64(5)])
    for name in ("stats", "totals", "records0", "records1", "targets", "senders"):
        assert (run.array(name, np.uint8) == DIRTY).all(), name


def test_a_pattern_that_is_too_long_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, Many(), [np.int64(1), np.float64(1.0)])
    assert [fill.row for fill in run.beginning.copied] == [np.arange(300.0).tobytes()]
    assert len(run.beginning.launches) == 1
