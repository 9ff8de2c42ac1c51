from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from engines import context_of

from sigps import ExchangeError, Graph, State, Vertex
from sigps.apps import PageRank
from sigps.engine.contract import RunOptions
from sigps.engine.cpu.engine import Engine
from sigps.engine.interpreter.engine import InterpretedEngine
from sigps.system.worker import Worker

GRAPH = Graph.from_edges([0, 1, 2], [1, 2, 0])


class Stray(Vertex, message=int):
    """Sends into the void in superstep 2."""

    seen: State[int] = 0

    def compute(self, messages):
        self.seen = self.superstep
        if self.superstep == 2:
            self.send_to(99, 1)


def worker(program: Vertex, device: str, **options: Any) -> Worker:
    return Worker(context_of(program, GRAPH, device, RunOptions(**options)))


def test_compiled_programs_run_in_memory_and_others_are_interpreted() -> None:
    assert isinstance(worker(PageRank(), "cpu").engine, Engine)
    assert isinstance(worker(PageRank(), "python").engine, InterpretedEngine)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_lease_is_the_engines(device: str) -> None:
    one = worker(PageRank(iterations=4), device)
    first = one.lease(2)
    assert (first.ended, len(first.stats), one.engine.superstep) == (False, 2, 2)
    assert one.lease(100).ended
    assert one.engine.superstep == 5
    assert one.engine.fields()["rank"].tolist() == pytest.approx([1 / 3] * 3, rel=1e-12)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_parameters_and_states_have_the_precision_of_the_run(device: str) -> None:
    one = worker(PageRank(iterations=4), device, precision="single")
    one.lease(100)
    assert one.engine.fields()["rank"].dtype == np.float32


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_a_failure_says_where_it_happened(device: str) -> None:
    one = worker(Stray(), device)
    assert len(one.lease(2).stats) == 2
    with pytest.raises(ExchangeError, match=r"send_to\(99\)") as caught:
        one.lease(5)
    assert caught.value.__notes__ == [f"rank 0 on host {platform.node()}, superstep 2"]


def test_the_interpreter_records_what_is_traced() -> None:
    one = worker(PageRank(iterations=1), "python", trace=(2,))
    one.lease(100)
    assert one.engine.traced is not None
    assert [(t["superstep"], t["id"]) for t in one.engine.traced] == [(0, 2), (1, 2)]
