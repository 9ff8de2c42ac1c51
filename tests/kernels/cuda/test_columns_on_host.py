"""Leases of programs that read several columns of packed edges, by the text of the kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from column_programs import COLUMNS, SEARCHES, WEIGHTED, assert_near, with_columns
from host_gpu import use_host_as_gpu
from host_lease import run_leases_by_their_text
from host_peers import use_host_as_peers
from packed_runs import on_ranks
from turns import in_turn, some_of

import sigps
from sigps import run
from sigps.compiler.frontend.analysis import analyse
from sigps.graph.formats.packed_store import save_packed

SMALL: list[tuple[int, dict[str, Any]]] = [
    (24, more) for more in ({}, {"host_memory": "10KB"}, {"transfer": "bulk"}, {"device_memory": "80MB"})
]
LARGE: list[tuple[int, dict[str, Any]]] = [(1 << 12, {"device_memory": "80MB"}), (1 << 12, {})]
WAYS = [SMALL[0], LARGE[0], SMALL[1], LARGE[1], *SMALL[2:]]

CASES = [(*case, False) for case in in_turn(COLUMNS, WAYS)]
CASES += [(*case, True) for case in in_turn(some_of(WEIGHTED, 2), WAYS[::-1])]


@pytest.mark.parametrize(("name", "way", "weighted"), CASES)
def test_columns_are_unpacked_with_edges(
    name: str,
    way: tuple[int, dict[str, Any]],
    weighted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page_arcs, more = way
    save_packed(with_columns(7, weighted=weighted), tmp_path / "store", order="given", page_arcs=page_arcs)
    stored, program = sigps.load(tmp_path / "store"), COLUMNS[name]
    assert stored.packed is not None
    expected = run(program, stored, device="python")
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=3 if page_arcs == 24 else 1)
    rows = stored.packed.rows
    read = [rows.columns[c] for c in analyse(program).columns_of_edges if c in rows.columns]
    stored = sigps.load(tmp_path / "store")
    found = run(program, stored, device="cuda", **{"stream": "always", **more})
    assert launched
    assert not stored.is_laid_out
    assert_near(found, expected, 1e-12, more)
    if "device_memory" in more:
        assert found.stats[1].bytes_read == 0
    elif name not in SEARCHES:
        assert found.stats[1].bytes_read == rows.num_bytes + sum(column.num_bytes for column in read)


@pytest.mark.parametrize(("name", "direction"), in_turn(SEARCHES, ["push", "pull"]))
def test_searches_go_both_ways(
    name: str, direction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(with_columns(7, weighted=False), tmp_path / "store", order="degree", page_arcs=1 << 11)
    expected = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="python")
    use_host_as_gpu(monkeypatch)
    launched = run_leases_by_their_text(monkeypatch, blocks=2)
    options: dict[str, Any] = {"stream": "always", "direction": direction}
    found = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="cuda", **options)
    assert launched
    assert any(s.direction == "push" for s in found.stats) == (direction == "push")
    assert_near(found, expected, 1e-12, direction)


RANKS: list[tuple[str, int, str, dict[str, Any]]] = [
    ("tolls", 2, "hosts", {}),
    ("walked", 2, "peers", {}),
    ("every", 3, "nccl", {"host_memory": "10KB"}),
    ("silent", 2, "nccl", {}),
    ("heard", 3, "peers", {}),
    ("weighed", 2, "nccl", {"direction": "push"}),
    ("every", 2, "peers", {}),
    ("narrow", 2, "peers", {"direction": "push"}),
    ("weighed", 3, "peers", {"direction": "push"}),
    ("walked", 2, "hosts", {"transfer": "bulk"}),
]


@pytest.mark.parametrize(("name", "ranks", "way", "options"), some_of(RANKS, 5))
def test_ranks_read_their_own(
    name: str, ranks: int, way: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(with_columns(7, weighted=False), tmp_path / "store", order="given", page_arcs=24)
    expected = run(COLUMNS[name], sigps.load(tmp_path / "store"), device="python")
    if way == "peers":
        use_host_as_peers(monkeypatch, ranks)
    else:
        use_host_as_gpu(monkeypatch, has_nccl=way == "nccl")
    launched = run_leases_by_their_text(monkeypatch, blocks=2)
    found = on_ranks(ranks, COLUMNS[name], tmp_path / "store", stream="always", **options)
    assert launched
    assert_near(found, expected, 1e-12, name)
    assert any(s.direction == "push" for s in found.stats) == (options.get("direction") == "push")
