"""Ranks whose program sends nothing: pages of vertices that halted are not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from host_peers import use_host_as_peers
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import State, Vertex
from sigps.graph.formats.packed_store import save_packed


class FirstWalks(Vertex, message=float):
    """All walk their edges once, and one vertex twice more."""

    walked: State[int] = 0

    def compute(self, messages):
        for edge in self.out_edges:
            self.walked += 1 + edge.target
        if self.superstep == 2 or self.id != 0:
            self.vote_to_halt()


@pytest.mark.parametrize("transport", ["mpi", "peer"])
def test_pages_without_an_active_vertex_are_left_out(
    transport: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = sigps.generate("rmat", scale=7, seed=2).undirected(simple=True)
    save_packed(graph, tmp_path / "store", order="given", page_arcs=64)
    judge = sigps.run(FirstWalks(), graph, device="python")
    if transport == "peer":
        use_host_as_peers(monkeypatch, 2)
    else:
        use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, 1)

    def work(group: ThreadGroup) -> sigps.Result:
        stored = sigps.load(tmp_path / "store", group=group)
        return sigps.run(FirstWalks(), stored, device="cuda", stream="always", transport=transport)

    found = run_ranks(2, work)[0]
    assert launched
    assert found["walked"].tolist() == judge["walked"].tolist()
    first, *others = (s.bytes_read for s in found.stats)
    assert len(others) == 2
    assert max(others) < first / 8
