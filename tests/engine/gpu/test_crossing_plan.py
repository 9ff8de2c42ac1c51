"""How values on edges are put into what crosses, and for how many there is room."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from packed_runs import on_ranks
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from value_programs import VALUES

import sigps
from sigps import DeviceError, EdgeState, State, Vector, Vertex
from sigps.apps import BFS, SSSP, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu import crossing, crossing_plan, whole_halo
from sigps.engine.gpu.crossing import StagedCrossing
from sigps.engine.gpu.crossing_plan import Entry, bytes_to_cross, bytes_to_stage, entries_at_a_time, entry_of
from sigps.engine.gpu.whole_halo import WholeHalo
from sigps.graph.formats.packed_store import save_packed


class Several(Vertex, directed=False):
    """Reads narrow and wide values of the other end, and has one that nobody reads there."""

    seen: EdgeState[bool] = False
    own: EdgeState[int] = 0
    at: EdgeState[Vector[np.int32, 3]] = 0
    far: EdgeState[float] = 0.0
    total: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.own = self.superstep
            if edge.reverse.seen:
                self.total += edge.reverse.at[0] + edge.reverse.far
        self.vote_to_halt()


def test_values_lie_as_their_words_are_aligned() -> None:
    assert entry_of(analyse(Several(), "double")) == Entry((28, None, 16, 8), 32)
    assert entry_of(analyse(VALUES["own"], "double")).places == (None,)


def test_room_is_for_all_that_cross_or_a_part() -> None:
    program = analyse(Several(), "double")
    assert [entries_at_a_time(most, 2) for most in (0, 5, 1 << 20, 1 << 25)] == [0, 5, 1 << 20, 1 << 21]
    entries = 50 * 32  # of each of two others; three lists are made, and two arrive
    assert bytes_to_cross(program, 100, 10, 3) == 5 * entries + 3 * 8 * 11 + 4 * 32 + 4 * 8
    assert bytes_to_cross(program, 100, 10, 1) == 0
    assert bytes_to_cross(analyse(VALUES["own"], "double"), 100, 10, 3) == 32 + 4 * 8


@pytest.mark.parametrize(
    ("program", "ranks"),
    in_turn([BFS(source=1), SSSP(source=1), PageRank(iterations=2)], [2, 3]),
    ids=lambda value: value if isinstance(value, int) else type(value).__name__,
)
def test_what_crosses_between_launches_takes_what_is_planned(
    program: sigps.Vertex, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sigps.generate("rmat", scale=11, seed=1, weights="random").undirected(simple=True)
    save_packed(made, tmp_path / "store", order="given", page_arcs=1 << 8)
    use_host_as_gpu(monkeypatch, has_nccl=True)
    monkeypatch.setattr(crossing_plan, "_ROUNDED_UP", 0)
    taken, planned = dict[int, int](), dict[int, int]()
    make_halo, make_crossing = WholeHalo.__init__, StagedCrossing.__init__

    def note(rank: int, arrays: list[Any]) -> None:
        taken[rank] = taken.get(rank, 0) + sum(array.nbytes for array in arrays)

    def of_halo(self: WholeHalo, graph: Any, memory: Any, exchange: Any, *given: Any, **more: Any) -> None:
        make_halo(self, graph, memory, exchange, *given, **more)
        note(exchange.rank, [*self._halo, *self._packed, *self._arrived])
        layout = graph._arrays.get("halo")
        assert graph.halo_bytes == (layout is not None and sum(vars(layout)[n].nbytes for n in vars(layout)))
        of = graph.numbering.subgraph
        counts = [part.size for part in of.halo], np.diff(of.ghost_bounds).tolist()
        message = None if layout is None else len(memory._compiled.neutral)
        planned[exchange.rank] = bytes_to_stage(*counts, graph.num_owned, self._record_bytes, message)

    def of_crossing(self: StagedCrossing, graph: Any, memory: Any, exchange: Any, **more: Any) -> None:
        make_crossing(self, graph, memory, exchange, **more)
        layout = self._layout
        note(exchange.rank, [self._slots, self._messages, layout.lids, layout.copy_offsets, layout.copies])

    monkeypatch.setattr(WholeHalo, "__init__", of_halo)
    monkeypatch.setattr(StagedCrossing, "__init__", of_crossing)
    on_ranks(ranks, program, tmp_path / "store", stream="always", transport="nccl", max_supersteps=2)
    assert taken.keys() == planned.keys() == set(range(ranks))
    for rank, num_bytes in taken.items():
        assert num_bytes <= planned[rank] + 32 * ranks <= 1.1 * num_bytes + 256 * ranks


@pytest.mark.parametrize("module", [crossing, whole_halo], ids=lambda module: module.__name__)
def test_what_one_rank_has_no_memory_for_is_refused_by_all(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(sigps.generate("grid", rows=9, columns=9), tmp_path / "store", order="given", page_arcs=32)
    use_host_as_gpu(monkeypatch, has_nccl=True)
    place = threading.local()

    def check_fits(needed: dict[str, int]) -> None:
        if place.rank == 1:
            raise DeviceError("no room for it", rank=1)

    monkeypatch.setattr(module, "check_fits", check_fits)

    def ask(group: ThreadGroup) -> str:
        place.rank = group.rank
        graph = sigps.load(tmp_path / "store", group=group)
        with pytest.raises(DeviceError) as refused:
            sigps.run(BFS(source=1), graph, device="cuda", stream="always", transport="nccl")
        return str(refused.value)

    first, second = run_ranks(2, ask)
    assert "rank 1: its GPU has no memory" in first
    assert "no room for it" in second
