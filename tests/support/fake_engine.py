"""A page-long engine, written only against `sigps.engine.contract`: what a new engine needs, and no more.

It runs one vertex after another like the interpreter, with messages in plain lists, for programs that send along all
out-edges and use neither aggregators nor edge states. `device="fake"` asks for it once it stands in the table.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps import Vertex
from sigps.compiler.program import VertexProgram
from sigps.engine.aggregates import Aggregates
from sigps.engine.contract import Engine, EngineSpec, Executable, Needs, RunContext, RunFacts, by_gid
from sigps.engine.counters import Counters, Everywhere
from sigps.engine.snapshot import Snapshot
from sigps.engine.stats import Outcome
from sigps.engine.superstep import run_supersteps
from sigps.graph.graph import Graph


class FakeEngine:
    traced: list[dict[str, Any]] | None = None
    detects_lost_ranks = False

    def __init__(self, context: RunContext) -> None:
        self.superstep, self._context, self._part = 0, context, context.subgraph
        self.aggregates = Aggregates(())
        n, declared = self._part.num_owned, context.program.declaration
        self._states = {f.name: np.full(n, f.default, dtype=f.dtype("double")) for f in declared.states}
        self._status = np.zeros(n, dtype=np.uint8)  # 0 active, 1 halted
        self._inbox: list[list[Any]] = [[] for _ in range(n)]

    def begin(self, name: str, values: NDArray[Any]) -> None:
        self._states[name][:] = values

    def begin_measured(self, measures: Mapping[str, str], *, directed: bool) -> bool:
        return False

    def limit_time(self, seconds: float) -> bool:
        return False

    def lease(self, num_supersteps: int) -> Outcome:
        return run_supersteps(self, num_supersteps, self._context.exchange)

    def receive(self) -> int:
        return 0

    def compute(self) -> tuple[str, Counters, int]:
        edges, sent = self._part.outgoing, []
        assert edges is not None
        inbox, self._inbox, ran = self._inbox, [[] for _ in self._inbox], 0
        for v in range(self._part.num_owned):
            if self._status[v] and not inbox[v]:
                continue
            ran += 1
            vertex = copy.copy(self._context.program)
            for name, values in self._states.items():
                object.__setattr__(vertex, name, values[v].item())
            view = _View(int(self._part.ids[v]) if self._part.ids.size else v, self.superstep)
            vertex.view = view  # type: ignore[assignment]
            view.edges = [SimpleNamespace(weight=1.0) for _ in edges.ends[_row(edges.offsets, v)]]
            vertex.compute(inbox[v])
            for name, values in self._states.items():
                values[v] = getattr(vertex, name)
            self._status[v] = view.has_halted
            sent += list(zip(edges.ends[_row(edges.offsets, v)].tolist(), view.sent, strict=False))
        (field,) = self._context.program.declaration.message
        targets = np.array([target for target, _ in sent], dtype=np.int64)
        messages = np.array([message for _, message in sent], dtype=field.dtype("double"))
        arrived = self._context.exchange.route(targets, None, (messages,))
        for lid, message in zip(arrived[0].tolist(), arrived[1][0].tolist(), strict=True):
            self._inbox[lid].append(message)
        active = int((self._status == 0).sum())
        return "push", Counters(ran, active, sent_edges=len(sent), totals=[()]), arrived[2]

    def commit(self, counters: Counters, everywhere: Everywhere) -> None:
        self.superstep += 1

    def is_idle_counted(self) -> bool:
        return False

    def num_left(self) -> int:
        return self._part.num_owned

    def wake_all(self) -> None:
        self._status[:] = 0

    def save(self) -> Snapshot:
        raise NotImplementedError("the fake engine writes no state logs")

    def restore(self, snapshot: Snapshot) -> None:
        raise NotImplementedError("the fake engine reads no state logs")

    def fields(self) -> Mapping[str, NDArray[Any]]:
        return by_gid(self._part, self._states)

    def edge_state(self, name: str) -> NDArray[Any]:
        raise NotImplementedError("the fake engine keeps nothing on edges")


class _View:
    """What `Vertex` reads of `self.view`."""

    def __init__(self, vertex_id: int, superstep: int) -> None:
        self.id, self.superstep = vertex_id, superstep
        self.has_halted, self.sent, self.edges = False, [], []

    def out_edges(self) -> list[Any]:
        return self.edges

    def send(self, edge: Any, message: Any) -> None:
        self.sent.append(message)

    def halt(self) -> None:
        self.has_halted = True


def _row(offsets: NDArray[np.uint64], v: int) -> slice:
    return slice(int(offsets[v]), int(offsets[v + 1]))


class FakeSpec(EngineSpec):
    device = "fake"
    is_compiled = False

    def compile(
        self, program: VertexProgram | None, graph: Graph, facts: RunFacts, rank_on_host: int
    ) -> Executable:
        return Executable(self, None, None)

    def needs(self, executable: Executable, program: Vertex, graph: Graph, num_ranks: int) -> Needs:
        return Needs(out_edges=True)

    def make(self, context: RunContext) -> Engine:
        return FakeEngine(context)
