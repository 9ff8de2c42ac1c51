"""Streams of first arrivals on a GPU, whose kernels run on the host, against full runs on graphs built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories, shapes
from host_streams import use_host_for_streams
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns import in_turn

import sigps
from sigps import Graph, Param, State, Vertex, VertexId
from sigps.apps import BFS
from sigps.compiler.cuda.compile import compile_for_cuda, link
from sigps.compiler.frontend.analysis import analyse
from sigps.device.linking import link_kernel
from sigps.engine.gpu import arrivals
from sigps.job import guard
from sigps.job.live_run import live_run


@pytest.fixture
def host_is_gpu(monkeypatch: Any) -> None:
    use_host_for_streams(monkeypatch)


class Widest(Vertex, message=float):
    """The level of each vertex, and the widest edge by which it was found first, from two sources."""

    source: Param[VertexId]
    other: Param[VertexId]
    width: State[float] = 0.0
    level: State[int] = -1

    def compute(self, messages):
        if self.superstep == 0 and (self.id == self.source or self.id == self.other):
            self.level = 0
        elif messages:
            self.width = max(messages) + self.superstep
            self.level = self.superstep
        if self.level >= 0:
            for edge in self.out_edges:
                self.send(edge, edge.weight)
            self.retire()
        self.vote_to_halt()


class Deep(Vertex, message=int):
    """Levels, where those that nothing reaches keep the least number there is."""

    level: State[int] = -(2**63)

    def compute(self, messages):
        if (self.superstep == 0 and self.id == 0) or messages:
            self.level = self.superstep
            self.send_to_neighbors(self.superstep)
            self.retire()
        self.vote_to_halt()


class Choosy(Vertex, message=int):
    """Levels of vertices that only some messages reach."""

    level: State[int] = -1

    def compute(self, messages):
        if (self.superstep == 0 and self.id == 0) or max(messages, default=-1) > 2:
            self.level = self.superstep
            self.send_to_neighbors(self.id)
            self.retire()
        self.vote_to_halt()


FIELDS = {BFS: ("level", "parent"), Widest: ("width", "level")}


def programs(first: Any, last: Any) -> list[Vertex]:
    return [BFS(source=first), Widest(source=first, other=last)]


quick = settings(
    max_examples=drawn(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories(), st.sampled_from([0, 1]))
def test_states_are_those_of_a_full_run(history: History, which: int) -> None:
    ids = [v if isinstance(v, str) else int(v) for v in np.asarray(history.first().ids)[[0, -1]].tolist()]
    program = programs(*ids)[which]
    is_reduced = history.options["duplicates"] in ("sum", "min", "max")
    with sigps.stream(program, history.first(), device="cuda", guard="incremental") as stream:
        before = stream.result
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            known = np.asarray(stream.graph.ids).tolist()
            result = stream.apply(batch)
            expected = sigps.run(program, judge, device="python")
            update = stream.graph.update
            may_go_on = not (is_reduced or update.is_renumbered or update.new_vertices)
            assert (result.path == "incremental") == may_go_on
            now = [result[name].tolist() for name in FIELDS[type(program)]]
            assert now == [expected[name].tolist() for name in FIELDS[type(program)]]
            if may_go_on:
                was = [before[name].tolist() for name in FIELDS[type(program)]]
                moved = [v for v, a, b in zip(known, zip(*was), zip(*now), strict=True) if a != b]  # noqa: B905
                assert result.changed_ids.tolist() == moved
            before = result


@pytest.mark.usefixtures("host_is_gpu")
def test_any_number_below_zero_is_no_level() -> None:
    graph = Graph.from_edges([0, 2, 3], [1, 3, 4], vertices=range(6), directed=True)
    with sigps.stream(Deep(), graph, device="cuda", guard="incremental") as stream:
        assert stream.result.path == "full"
        for inserts, deletes in ((([5], [4]), ([0], [1])), (([1, 0], [2, 1]), None), (None, ([1], [2]))):
            result = stream.apply(inserts=inserts, deletes=deletes)
            assert result.path == "incremental"
            assert (
                result["level"].tolist() == sigps.run(Deep(), stream.graph, device="python")["level"].tolist()
            )


def batches_go_on(name: str, size: int, sizes: list[int], which: int, weights: int) -> None:
    """Compare a stream with full runs, batch by batch: near edges, far ones, and those of hubs."""
    ends, directed = shapes(size)[name]
    draw = np.random.default_rng(3)
    edges: Any = [*ends, draw.integers(1, weights, ends.shape[1])]
    n = int(ends.max()) + 1
    program = programs(0, n // 2)[which]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    with sigps.stream(program, graph, device="cuda", guard="incremental") as stream:
        for i, count in enumerate(sizes):
            new = draw.integers(0, n, (2, count))
            if i % 3 == 1:
                new[1] = np.minimum(new[0] + draw.integers(1, 4, count), n - 1)
            if i % 3 == 2:
                new[i % 2, : count // 2] = 0
            if i % 4 == 3:
                new = new[:, :0]
            gone = draw.integers(0, edges[0].size, count if i % 4 else 0)
            inserts = (*new, draw.integers(1, weights, new.shape[1]))
            result = stream.apply(inserts=inserts, deletes=(edges[0][gone], edges[1][gone]))
            assert result.path == "incremental"
            stored = stream.graph.to_arrow().to_pydict()
            edges = [np.array(stored[end]) for end in ("source", "target", "weight")]
            judge = Graph.from_edges(*edges, vertices=range(n), directed=directed)
            expected = sigps.run(program, judge, device="cpu")
            for field in FIELDS[type(program)]:
                assert result[field].tolist() == expected[field].tolist()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(("name", "which"), in_turn(shapes(100), [0, 1]))
def test_batches_go_on(name: str, which: int) -> None:
    size = 3600 if "hubs" in name else 400
    batches_go_on(name, size, [1, 2, 30, 5, 1, 90, 3, 40, 250, 1], which, 9)


@pytest.mark.gpu
@pytest.mark.parametrize("which", [0, 1], ids=["parents", "widths"])
@pytest.mark.parametrize("name", shapes(100))
def test_batches_go_on_on_a_gpu(name: str, which: int) -> None:
    batches_go_on(name, 90_000, [1, 20, 300, 50, 1, 9000, 3, 400, 25_000, 1, 1, 5000], which, 9)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("share", [1 << 60, 4])
def test_what_costs_too_much_is_given_up(share: int, monkeypatch: Any) -> None:
    for name, cost in (("_BEGIN", 0), ("_SUPERSTEP", 1), ("ROUND", 2), ("_OF_SEARCH", 1)):
        monkeypatch.setattr(arrivals, name, cost)
    monkeypatch.setattr(guard, "_LEAST", 0)
    graph = sigps.generate("grid", rows=14, columns=14)
    draw, paths = np.random.default_rng(4), []
    with sigps.stream(BFS(source=0), graph, device="cuda") as stream:
        run: Any = stream._live
        run._share = share
        for _ in range(8):
            ends, gone = draw.integers(0, 196, (2, 1)), draw.integers(0, 195, 4)
            most = run._full_messages // share
            result = stream.apply(inserts=tuple(ends), deletes=(gone, gone + 1))
            expected = sigps.run(BFS(source=0), stream.graph, device="python")
            for field in ("level", "parent"):
                assert result[field].tolist() == expected[field].tolist()
            assert run._spending.spent <= most
            paths.append(result.path)
            assert (result.path == "full") == ("needed more than" in result.why)
    assert "full" in paths
    assert ("incremental" in paths) == (share < 10)


@pytest.mark.usefixtures("host_is_gpu")
def test_what_no_edge_changes_computes_nothing() -> None:
    graph = Graph.from_edges([0, 0, 1, 2, 8], [1, 2, 3, 3, 9], vertices=range(12))
    with sigps.stream(BFS(source=0), graph, device="cuda", guard="incremental") as stream:
        for batch in (
            {"inserts": ([3, 8, 9], [0, 8, 8])},
            {"deletes": ([8, 3], [9, 0])},
            {"deletes": ([7], [7])},
        ):
            result = stream.apply(**batch)
            assert (result.path, result.supersteps, result.changed_ids.size) == ("incremental", 0, 0)
        result = stream.apply(deletes=([1], [3]))
        assert (result["parent"].tolist()[3], result["level"].tolist()[3]) == (2, 2)
        assert [entry.active for entry in result.stats] == [1]


@pytest.mark.usefixtures("host_is_gpu")
def test_whoever_refuses_messages_runs_in_full() -> None:
    graph = Graph.from_edges([0, 0, 3], [3, 4, 5])
    live, why = live_run(Choosy(), graph, {"device": "cuda"}, None)
    assert live is not None
    assert "acts once" in why
    live.close()
    with sigps.stream(Choosy(), graph, device="cuda", guard="incremental") as stream:
        result = stream.apply(inserts=([4], [5]))
        assert (result.path, result["level"].tolist()) == ("full", [0, -1, -1, -1])
        assert "act when any message comes" in result.why


@pytest.mark.parametrize(("column", "ascends"), in_turn(["uint8", "float64"], [True, False]))
def test_levels_link(column: str, ascends: bool) -> None:
    macros = arrivals.arrival_macros(column, column != "uint8", ascends)
    assert b"settle_arrivals" in link_kernel("arrivals", "sm_90", macros)


@pytest.mark.parametrize("which", [0, 1])
def test_programs_link(which: int) -> None:
    program = analyse(programs(0, 1)[which])
    compiled = compile_for_cuda(program, {"weight": np.dtype(np.float64)}, narrow_ids=True, arch="sm_90")
    assert compiled.defines["SIGPS_FAULTS"] == "0"
    assert b"compute_again" in link(compiled, "recompute", "sm_90")
