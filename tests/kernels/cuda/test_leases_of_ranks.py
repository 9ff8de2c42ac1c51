"""Leases of several ranks by the kernels' own text on the host: what they find is the interpreter's.

Kernels of ranks write into each other's memory and wait for each other, or hosts pass what was sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import master_programs
import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from host_peers import use_host_as_peers
from host_tile_layout import lay_tiles_out_on_host
from thread_group import ThreadGroup, run_ranks
from turns import in_turn, some_of

import sigps
from sigps import Aggregator, Graph, State, Vertex
from sigps.apps import BFS, CDLP, SSSP, HeatDiffusion, KCore, LeidenRound, PageRank, WeightedLabels
from sigps.engine.gpu import placement
from sigps.engine.gpu.tiling import Tiling, record_bytes_of
from sigps.graph.formats.packed_store import save_packed


def use_ranks(monkeypatch: pytest.MonkeyPatch, ranks: int, transport: str, blocks: int) -> list[str]:
    """Let `device="cuda"` be this process for so many ranks; returns the kernels that are launched."""
    if transport == "peer":
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch)
    return run_leases_by_their_text(monkeypatch, blocks)


def assert_found(results: list[sigps.Result], judge: sigps.Result, rtol: float, case: Any) -> None:
    for field in judge.fields:
        found, expected = np.asarray(results[0][field]), np.asarray(judge[field])
        np.testing.assert_allclose(found, expected, rtol=rtol, err_msg=f"{field} {case}")
    assert results[0].supersteps == judge.supersteps


def graph_of(kind: str, group: ThreadGroup | None = None) -> Graph:
    if kind == "grid":
        return sigps.generate("grid", rows=20, columns=15, weights="random", group=group)
    return sigps.generate("rmat", scale=7, seed=2, weights="random", group=group)


RUNS = [
    (2, 1, "push", "grid", BFS(source=0)),
    (2, 2, "auto", "grid", SSSP(source=0)),
    (3, 2, "auto", "rmat", BFS(source=0)),
    (3, 1, "pull", "rmat", PageRank(iterations=4)),
    (3, 2, "push", "grid", KCore()),
    (2, 2, "auto", "rmat", KCore()),
    (2, 2, "auto", "rmat", master_programs.Fading()),
]


@pytest.mark.parametrize(("ranks", "blocks", "direction", "kind", "program"), some_of(RUNS, 5))
def test_ranks_find_what_the_interpreter_does(
    ranks: int, blocks: int, direction: Any, kind: str, program: Vertex, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = sigps.run(program, graph_of(kind), device="python", asynchronous=False)
    launched = use_ranks(monkeypatch, ranks, "peer", blocks)
    how: dict[str, Any] = {"transport": "peer", "direction": direction, "asynchronous": False}
    found = run_ranks(ranks, lambda g: sigps.run(program, graph_of(kind, g), device="cuda", **how))
    assert len(launched) >= ranks
    assert_found(found, judge, 1e-12, direction)
    assert [(s.active, s.messages) for s in found[0].stats] == [(s.active, s.messages) for s in judge.stats]


READ = [
    (2, "peer", 2, "degree", PageRank(iterations=3)),
    (3, "peer", 1, "given", BFS(source=1)),
    (2, "peer", 2, "degree", SSSP(source=1)),
    (3, "mpi", 2, "given", BFS(source=1)),
    (2, "peer", 2, "degree", CDLP()),
    (3, "mpi", 1, "given", WeightedLabels()),
    (2, "peer", 2, "given", LeidenRound()),
]


@pytest.mark.parametrize(
    ("run", "more"), in_turn(some_of(READ, 5), [{"transfer": "bulk"}, {"device_memory": "60MB"}, {}])
)
def test_ranks_read_their_own_pages(
    run: tuple[int, Any, int, Any, Vertex],
    more: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that span pages; in memory of the hosts, of which all or what is wanted is read, and on the GPUs."""
    ranks, transport, blocks, order, program = run
    save_packed(graph_of("rmat").undirected(simple=True), tmp_path / "store", order=order, page_arcs=64)
    judge = sigps.run(program, sigps.load(tmp_path / "store"), device="python", asynchronous=False)
    launched = use_ranks(monkeypatch, ranks, transport, blocks)
    how: dict[str, Any] = {"transport": transport, "stream": "always", "asynchronous": False} | more

    def work(group: ThreadGroup) -> sigps.Result:
        stored = sigps.load(tmp_path / "store", group=group)
        found = sigps.run(program, stored, device="cuda", **how)
        assert not stored.is_laid_out
        return found

    found = run_ranks(ranks, work)
    assert len(launched) >= ranks
    assert_found(found, judge, 1e-12, more)
    assert (sum(s.bytes_read for s in found[0].stats) > 0) == ("device_memory" not in more)


class Partly(Vertex, message=float):
    """All send at first, some later and none in the end."""

    value: State[float] = 1.0
    total = Aggregator.sum(float)

    def compute(self, messages):
        self.value = 0.5 * self.value + 0.25 * sum(messages) / max(1, self.in_degree)
        self.total += self.value
        if self.superstep < 4 and (self.superstep < 2 or self.id % 3 > 0):
            self.send_to_neighbors(self.value)
        elif self.superstep == 6:
            self.vote_to_halt()


TILED = [
    (3, "peer", 1, PageRank(iterations=4), "single"),
    (2, "peer", 3, PageRank(iterations=4), "double"),
    (2, "peer", 1, HeatDiffusion(source=0, rate=1e-3), "double"),
    (3, "mpi", 2, Partly(), "single"),
    (2, "peer", 2, Partly(), "double"),
    (1, "mpi", 3, PageRank(iterations=4), "double"),
]


@pytest.mark.parametrize(("ranks", "transport", "blocks", "program", "precision"), some_of(TILED, 4))
def test_ranks_pull_over_tiles(
    ranks: int,
    transport: Any,
    blocks: int,
    program: Vertex,
    precision: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Segments of 32 records: there are many, of owned vertices, of ghosts, and one of both."""
    rng = np.random.default_rng(7)
    sources, targets = ((rng.random(3000) ** power * 200).astype(np.int64) for power in (4, 2))
    weights = rng.random(sources.size, dtype=np.float32)

    def made(group: ThreadGroup | None) -> Graph:
        return Graph.from_edges(sources, targets, weights=weights, directed=False, group=group)

    judge = sigps.run(program, made(None), device="python", precision=precision)
    launched = use_ranks(monkeypatch, ranks, transport, blocks)
    lay_tiles_out_on_host(monkeypatch)
    chosen = []

    def choose(compiled: Any, *, num_blocks: int, **_: Any) -> Tiling:
        chosen.append(Tiling(32, num_blocks, record_bytes_of(compiled), always=True))
        return chosen[-1]

    monkeypatch.setattr(placement, "choose_tiling", choose)
    how: dict[str, Any] = {"transport": transport, "precision": precision, "tiles": "always"}
    found = run_ranks(ranks, lambda group: sigps.run(program, made(group), device="cuda", **how))
    assert len(launched) >= ranks
    assert len(chosen) >= ranks
    assert_found(found, judge, 1e-9 if precision == "double" else 1e-4, program)
