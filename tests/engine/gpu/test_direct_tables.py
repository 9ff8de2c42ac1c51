"""The tables in which targets of direct messages are found count where a run on packed edges is planned and refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import host_gpu
import host_peers
import numpy as np
import pytest
from send_programs import Flood
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import DeviceError, Graph, State, Vertex
from sigps.apps import BFS
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.table import engine_of


class Pokes(Vertex, message=int):
    """Walks its edges, and sends to the least of its neighbours."""

    got: State[int] = 0

    def compute(self, messages):
        for m in messages:
            self.got += m
        if self.superstep < 2:
            least = self.id
            for edge in self.out_edges:
                least = min(least, edge.target)
            self.send_to(least, 1)
        self.vote_to_halt()


def saved(path: Path, first: int) -> Path:
    """Save a path of 500 vertices whose ids begin with this one."""
    ids = np.arange(first, first + 500)
    Graph.from_edges(ids[:-1], ids[1:], directed=False).save(path, packed=True, order="given")
    return path


def needed(program: Vertex, store: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return what a GPU without memory refuses a run for."""
    with monkeypatch.context() as less:
        less.setattr(host_gpu, "FREE_BYTES", 1)
        with pytest.raises(DeviceError) as refused:
            sigps.run(program, sigps.load(store), device="cuda", stream="always")
    found = re.search(r"which needs ([0-9,]+) even with its edges packed", str(refused.value))
    assert found is not None
    return int(found[1].replace(",", ""))


def test_programs_without_direct_messages_have_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, program = saved(tmp_path / "store", 7), BFS(source=300)
    expected = sigps.run(program, sigps.load(store), device="cpu")["level"].tolist()
    made: list[str] = []

    def of_all_gids(self: Numbering) -> None:
        made.append("a table of all gids")

    monkeypatch.setattr(Numbering, "of_all_gids", property(of_all_gids))
    host_gpu.use_host_as_gpu(monkeypatch)
    found = sigps.run(program, sigps.load(store), device="cuda", stream="always")
    assert found["level"].tolist() == expected
    host_peers.use_host_as_peers(monkeypatch, 2)

    def of(group: ThreadGroup) -> Any:
        return sigps.run(program, sigps.load(store, group=group), device="cuda", transport="peer")["level"]

    assert run_ranks(2, of)[0].tolist() == expected
    assert made == []


@pytest.mark.parametrize("program", [Flood(copies=2), Pokes()])
def test_tables_of_ids_count(program: Vertex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = {first: saved(tmp_path / str(first), first) for first in (0, 7)}
    host_gpu.use_host_as_gpu(monkeypatch)
    made: dict[int, Numbering] = {}
    sorted_ids = Numbering.sorted_ids
    monkeypatch.setattr(
        Numbering, "sorted_ids", lambda self: made.setdefault(id(self), self) and sorted_ids(self)
    )
    taken, planned = {}, {}
    for first, store in stores.items():
        made.clear()
        graph = sigps.load(store)
        sigps.run(program, graph, device="cuda", stream="always")
        (numbering,) = made.values()
        tables = [numbering.of_all_gids, *(sorted_ids(numbering) or ())]
        taken[first] = sum(table.nbytes for table in tables)
        spec = engine_of("cuda").streaming
        assert spec is not None
        assert graph.packed is not None
        options = RunOptions(stream="always")
        planned[first] = spec.bytes_beside_edges(analyse(program), graph, options, graph.packed.rows)["ids"]
    assert taken == {0: 4 * 500, 7: 16 * 500}
    assert planned == taken
    least = {first: needed(program, store, monkeypatch) for first, store in stores.items()}
    assert least[7] - least[0] == 12 * 500
    assert least[0] >= 25 * 500 + taken[0]
