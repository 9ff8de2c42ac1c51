"""Leases of programs that keep values on edges beside a packed store, by the text of the kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from packed_runs import on_ranks
from turns import in_turn
from value_programs import VALUES

import sigps
from sigps import Checkpoint, Result, run
from sigps.engine.gpu import crossing_plan, placement
from sigps.engine.gpu.crossing_values import CrossingValues
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.table import chains

STAYS = [[True, True], [False, True], [False, False]]
"""Whether values, and where those of other ends lie, are on the device."""


def store(folder: Path, page_arcs: int) -> Path:
    """Write a graph of which rows span pages, some edges are parallel or loops, and some vertices have none."""
    made = sigps.generate("rmat", scale=7, seed=2, weights="random").undirected()
    save_packed(made, folder / "store", order="given", page_arcs=page_arcs)
    return folder / "store"


def assert_equal(found: Result, expected: Result, what: Any) -> None:
    """Compare fields, values on edges and supersteps."""
    for mine, theirs in ((found, expected), (found.edges, expected.edges)):
        for name in theirs.fields if isinstance(theirs, Result) else theirs:
            one, other = np.asarray(mine[name]), np.asarray(theirs[name])
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=f"{name} {what}")
            else:
                assert one.tolist() == other.tolist(), (name, what)
    assert found.supersteps == expected.supersteps


@pytest.mark.parametrize(
    ("name", "page_arcs", "several"), in_turn(VALUES, [24, 1 << 12], [STAYS[::2], STAYS[1:2]])
)
def test_values_lie_on_the_device_or_the_host(
    name: str, page_arcs: int, several: list[list[bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, stored = VALUES[name], sigps.load(store(tmp_path, page_arcs))
    assert stored.packed is not None
    lengths = [len(chain) for chain in chains(stored.packed.rows.table)]
    assert page_arcs > 24 or (len(lengths) >= 8 and max(lengths) >= 3)
    expected = run(program, stored, device="python", max_supersteps=30)
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=3 if page_arcs == 24 else 1)
    for stays in several:
        monkeypatch.setattr(placement, "_stays", lambda wanted, room, stays=stays: stays)
        launched.clear()
        stored = sigps.load(tmp_path / "store")
        found = run(program, stored, device="cuda", stream="always", max_supersteps=30)
        assert launched
        assert not stored.is_laid_out
        assert_equal(found, expected, stays)
        assert found.stats[0].bytes_read > 0


def test_one_graph_has_them_here_and_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, stored = VALUES["returns"], sigps.load(store(tmp_path, 24))
    expected = run(program, stored, device="python")
    use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    stored = sigps.load(tmp_path / "store")
    for stays in (*STAYS, *STAYS):
        monkeypatch.setattr(placement, "_stays", lambda wanted, room, stays=stays: stays)
        assert_equal(run(program, stored, device="cuda", stream="always"), expected, stays)


@pytest.mark.parametrize(("stays", "way"), in_turn(STAYS[::2], [("cuda", "forest"), ("cpu", "forest")]))
def test_state_logs_go_on(
    way: tuple[str, str], stays: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, name), stored = way, sigps.load(store(tmp_path, 24))
    expected = run(VALUES[name], stored, device="python")
    use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: stays)
    log = Checkpoint(str(tmp_path / name), every=2)
    other = "cpu" if first == "cuda" else "cuda"
    for stop, device in ((5, first), (9, other), (None, first)):
        options: dict[str, Any] = {"max_supersteps": stop, "checkpoint": log, "resume": True}
        found = run(VALUES[name], stored, device=device, stream="always", **options)
    assert_equal(found, expected, name)


@pytest.mark.parametrize(
    ("name", "room", "way"),
    in_turn(
        VALUES,
        [60, crossing_plan._LEAST_ENTRIES],
        [(2, False, STAYS[0]), (3, True, STAYS[1]), (2, True, STAYS[2])],
    ),
)
def test_ranks_keep_values_on_edges_of_their_own_pages(
    name: str, room: int, way: tuple[int, bool, list[bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, folder, (ranks, has_nccl, stays) = VALUES[name], store(tmp_path, 24), way
    expected = run(program, sigps.load(folder), device="python", max_supersteps=30)
    use_host_as_gpu(monkeypatch, has_nccl=has_nccl)
    launched = run_leases_by_their_text(monkeypatch, blocks=2)
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: stays)
    list_pieces, pieces = CrossingValues._listed_from, list[int]()

    def counted(self: CrossingValues, first: int) -> tuple[Any, int]:
        pieces.append(first)
        return list_pieces(self, first)

    monkeypatch.setattr(CrossingValues, "_listed_from", counted)
    monkeypatch.setattr(crossing_plan, "_LEAST_ENTRIES", room)
    found = on_ranks(ranks, program, folder, stream="always", max_supersteps=30)
    assert len(launched) >= ranks
    assert_equal(found, expected, (way, room))
    assert found.stats[0].bytes_read > 0
    if pieces and room == 60:  # of a superstep's values some in later pieces
        assert len(pieces) > ranks * len(found.stats)


@pytest.mark.parametrize(("name", "stays"), [("forest", stays) for stays in STAYS[::2]])
def test_logs_of_ranks_go_on(
    name: str, stays: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On as many ranks, on others, and on CPU cores."""
    folder = store(tmp_path, 24)
    expected = run(VALUES[name], sigps.load(folder), device="python")
    use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    monkeypatch.setattr(placement, "_stays", lambda wanted, room: stays)
    log = Checkpoint(str(tmp_path / name), every=2)
    for stop, ranks in ((5, 2), (7, 2), (9, 0), (None, 3)):
        options: dict[str, Any] = {
            "max_supersteps": stop,
            "checkpoint": log,
            "resume": True,
            "stream": "always",
        }
        if ranks:
            found = on_ranks(ranks, VALUES[name], folder, **options)
        else:
            run(VALUES[name], sigps.load(folder), device="cpu", **options)
    assert_equal(found, expected, name)


@pytest.mark.parametrize("graph", ["one_vertex", "only_isolated", "star_in", "parallel_edges_undirected"])
def test_ranks_some_of_which_have_no_edge(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BATTERY[graph].build().undirected()
    save_packed(made, tmp_path / "store", order="given", page_arcs=8)
    program = VALUES["returns"]
    expected = run(program, sigps.load(tmp_path / "store"), device="python")
    use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    assert_equal(on_ranks(4, program, tmp_path / "store", stream="always"), expected, graph)
