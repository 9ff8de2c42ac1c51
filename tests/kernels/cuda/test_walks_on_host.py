"""Leases of programs that send direct messages or walk edges beside a packed store, by the text of the kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import send_programs
from battery import BATTERY
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from host_peers import use_host_as_peers
from packed_runs import on_ranks
from turns import in_turn
from walk_programs import UNREAD, WALKS

import sigps
from sigps.compiler.frontend.analysis import analyse
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.table import chains


def store(folder: Path, page_arcs: int, name: str = "") -> Path:
    """Write a graph of which rows span pages, and some vertices have no edge."""
    scale = 6 if name == "listed records" else 7  # which take the interpreter long
    made = sigps.generate("rmat", scale=scale, seed=2, weights="random").undirected(simple=True)
    save_packed(made, folder / "store", order="given", page_arcs=page_arcs)
    return folder / "store"


def assert_same(found: sigps.Result, expected: sigps.Result, what: Any) -> None:
    for field in expected.fields:
        mine, theirs = np.asarray(found[field]), np.asarray(expected[field])
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{field} {what}")
    assert [s.active for s in found.stats] == [s.active for s in expected.stats]


@pytest.mark.parametrize(
    ("name", "page_arcs", "limited"), in_turn(WALKS, [24, 1 << 12], ["nothing", "host", "device"])
)
def test_edges_that_are_walked_are_unpacked(
    name: str, page_arcs: int, limited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, folder = WALKS[name], store(tmp_path, page_arcs, name)
    stored = sigps.load(folder)
    assert stored.packed is not None
    lengths = [len(chain) for chain in chains(stored.packed.rows.table)]
    assert page_arcs > 24 or (len(lengths) >= 8 and max(lengths) >= 3)
    expected = sigps.run(program, stored, device="python", max_supersteps=30)
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=3 if page_arcs == 24 else 1)
    options: dict[str, Any] = {"stream": "always", "max_supersteps": 30}
    if limited == "host":
        options["host_memory"] = "3KB" if page_arcs == 24 else "64KB"
    elif limited == "device":
        options["device_memory"] = "40MB"
    found = sigps.run(program, stored, device="cuda", **options)
    assert launched
    assert_same(found, expected, limited)
    whole, read = stored.packed.rows.num_bytes, found.stats[0].bytes_read
    if (derived := analyse(program)).edge_columns or derived.read_columns:
        whole += sum(column.num_bytes for column in stored.packed.rows.columns.values())
    if limited == "device":
        assert read == 0
    elif name == "weights":  # and some again, for those who found no room for what they send
        assert whole < read <= 2 * whole
    else:
        assert read == whole


def test_pages_whose_vertices_sleep_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = sigps.load(store(tmp_path, 24))
    use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    for more in ({}, {"host_memory": "3KB"}):
        found = sigps.run(WALKS["lists"], stored, device="cuda", stream="always", **more)
        first, *others = found.stats
        assert first.blocks_skipped == 0
        assert 0 < others[-1].bytes_read < first.bytes_read
        assert others[-1].blocks_skipped > 0


@pytest.mark.parametrize(
    ("name", "ranks", "has_peers", "more"),
    in_turn(
        ["sorted", "folds", "weights", "silent", "listed records", "records", "sorted records"],
        [2, 3],
        [True, False],
        [{}, {"host_memory": "4KB"}],
    ),
)
def test_ranks_walk_their_own_pages(
    ranks: int,
    name: str,
    has_peers: bool,
    more: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, folder = WALKS[name], store(tmp_path, 24, name)
    expected = sigps.run(program, sigps.load(folder), device="python")
    if has_peers:
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=2)
    found = on_ranks(ranks, program, folder, stream="always", **more)
    assert len(launched) >= ranks
    assert_same(found, expected, more)
    assert found.stats[0].bytes_read > 0


@pytest.mark.parametrize(
    ("name", "way"),
    in_turn(
        UNREAD,
        [
            (False, [{}, {"transfer": "bulk"}]),
            (True, [{"transfer": "bulk", "host_memory": "4KB"}]),
            (True, [{}, {"transfer": "bulk"}]),
            (False, [{"transfer": "bulk", "host_memory": "4KB"}]),
        ],
    ),
)
def test_messages_that_nobody_reads_wake(
    name: str, way: tuple[bool, list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_peers, several = way
    program, folder, ranks = UNREAD[name], store(tmp_path, 24), 2 if has_peers else 1
    expected = sigps.run(program, sigps.load(folder), device="python")
    if has_peers:
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch)
    run_leases_by_their_text(monkeypatch, blocks=2)
    for more in several:
        found = on_ranks(ranks, program, folder, stream="always", **more)
        assert_same(found, expected, more)
        assert "transfer" not in more or found.stats[1].bytes_read > 0


@pytest.mark.parametrize(
    ("name", "has_peers"), in_turn(["Flood", "FloodSum", "Postman", "Paced"], [True, False])
)
def test_what_goes_along_no_edges_reads_no_page(
    name: str, has_peers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", order="degree", page_arcs=8)
    program = getattr(send_programs, name)()
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    ranks = 3 if has_peers else 1
    if has_peers:
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=2)
    found = on_ranks(ranks, program, tmp_path / "store", stream="always")
    assert launched
    assert_same(found, expected, ranks)
    assert not any(s.bytes_read for s in found.stats)
