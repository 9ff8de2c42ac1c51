"""Ranks that stream their own packed edges to their GPUs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from host_lease import run_leases_by_their_text
from packed_runs import on_ranks
from thread_group import run_ranks
from turns import in_turn

import sigps
from sigps.apps import BFS, SSSP, WCC, KCore, PageRank
from sigps.errors import ConfigError, DeviceError
from sigps.graph.formats.packed_store import save_packed

ON_RANKS = [PageRank(iterations=4), BFS(source=0), WCC(), KCore(), SSSP(source=0)]


@pytest.mark.parametrize(
    ("program", "way"),
    in_turn(ON_RANKS, [(2, "given", False), (3, "degree", False), (2, "degree", True), (3, "given", True)]),
    ids=lambda value: type(value).__name__,
)
def test_ranks_stream_their_own_pages(
    program: sigps.Vertex, way: tuple[int, Any, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks, order, has_nccl = way
    made = BATTERY["weight_ties" if isinstance(program, SSSP) else "skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch, has_nccl=has_nccl)
    more_of_all: dict[str, Any] = {}
    if has_nccl:  # where ranks push
        run_leases_by_their_text(monkeypatch)
        if isinstance(program, SSSP):  # by rows of 8 bytes, which are swapped here too
            more_of_all["precision"] = "single"
    packed = sigps.load(tmp_path / "store").packed
    assert packed is not None
    rows = packed.rows
    several: tuple[dict[str, Any], ...] = ({}, {"transfer": "bulk"}, {"device_memory": "1GB"})
    for more in [several[order == "given"]] if has_nccl else several:
        found = on_ranks(ranks, program, tmp_path / "store", stream="always", **more, **more_of_all)
        read = [s.bytes_read for s in found.stats]
        if "device_memory" in more:  # all pages are on the device
            assert not any(read)
        elif isinstance(program, PageRank):
            assert read[1] == rows.words.nbytes
        for field in expected.fields:
            np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-12)


@pytest.mark.parametrize("graph", ["directed_cycle", "one_vertex", "only_isolated", "string_ids"])
def test_ranks_some_of_which_have_no_page(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY[graph].build(), tmp_path / "store", page_arcs=8)
    expected = sigps.run(PageRank(iterations=4), sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    found = on_ranks(3, PageRank(iterations=4), tmp_path / "store", stream="always")
    np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)


def test_what_ranks_cannot_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    made = BATTERY["skewed"].build()
    save_packed(made, tmp_path / "store", page_arcs=8)
    plain = "edges that cross to GPUs packed"

    def refused(match: str, program: sigps.Vertex, **options: Any) -> None:
        with pytest.raises(ConfigError, match=match):
            on_ranks(2, program, tmp_path / "store", **options)

    always: dict[str, Any] = {"stream": "always"}
    refused("packed edges of a directed graph, with transfer=", PageRank(), direction="push", **always)
    refused(f"{plain}, and transfer= says", PageRank(), transfer="rows", **always)
    limited: dict[str, Any] = {
        "device": "cuda",
        "stream": "never",
        "device_memory": "1GB",
    }  # a limit and no more
    found = run_ranks(2, lambda g: sigps.run(PageRank(), sigps.load(tmp_path / "store", group=g), **limited))[
        0
    ]
    np.testing.assert_allclose(
        found["rank"], sigps.run(PageRank(), made, device="python")["rank"], rtol=1e-12
    )
    with pytest.raises(ConfigError, match="needs device='cuda'; this run has 'auto'"):
        run_ranks(
            2, lambda g: sigps.run(PageRank(), sigps.load(tmp_path / "store", group=g), device_memory="1GB")
        )


def test_ranks_stream_by_themselves_where_edges_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(sigps.generate("rmat", scale=11, seed=1), tmp_path / "store", page_arcs=512)
    host_gpu.use_host_as_gpu(monkeypatch)
    program = PageRank(iterations=2)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    fits = run_ranks(
        2, lambda group: sigps.run(program, sigps.load(tmp_path / "store", group=group), device="cuda")
    )[0]
    assert fits.stats[1].bytes_read == 0
    limit, streamed = 700_000, None
    while streamed is None:  # until each rank has said what it needs
        try:
            streamed = on_ranks(2, program, tmp_path / "store", device_memory=limit)
        except DeviceError as error:
            said = re.search(r"needs ([\d,]+) even with its edges packed", str(error))
            assert said is not None
            assert limit < int(said[1].replace(",", ""))
            limit = int(said[1].replace(",", "")) + 20_000
    assert limit > 700_000
    assert streamed.stats[1].bytes_read > 0
    for found in (fits, streamed):
        np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)
