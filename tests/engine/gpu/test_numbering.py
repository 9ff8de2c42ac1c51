"""Local ids on a GPU: the order of degrees on any number of ranks, and the ways between local ids, gids and ids."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps.engine.gpu import numbering as numbering_module
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.partition.subgraph import build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.kernels.cpu.layout import number_by_degree
from sigps.kernels.cuda.lease import NO_VERTEX

NAMES = ["skewed", "grid", "star_in", "isolated", "only_isolated", "empty"]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("name", NAMES)
def test_local_ids_descend_by_degree_and_then_ascend_by_gid(name: str, size: int) -> None:
    degrees = np.diff(BATTERY[name].build().in_edges().offsets).astype(np.int64)

    def check(group: ThreadGroup) -> list[int]:
        graph = BATTERY[name].build(group=group)
        part = build_subgraph(graph, partition(graph, size, "hash"), with_outgoing=False)
        numbering = Numbering(np, part)
        gids = numbering.gids().tolist()
        assert gids == sorted(gids, key=lambda gid: (-degrees[gid], gid))
        assert numbering.in_degrees.tolist() == degrees[gids].tolist()
        assert numbering.is_hosts == (size > 1)
        assert numbering.num_lids >= numbering.num_owned == len(gids)
        return gids

    assert sorted(itertools.chain(*run_ranks(size, check))) == list(range(degrees.size))


@pytest.mark.parametrize("is_renamed", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_local_ids_gids_and_ids_lead_to_each_other(
    name: str, size: int, is_renamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbering_module, "check_fits", lambda needed: None)  # there is no GPU
    to_ids = BATTERY[name].build().ids.to_oids

    def check(group: ThreadGroup) -> None:
        graph = BATTERY[name].build(group=group)
        part = build_subgraph(graph, partition(graph, size, "hash"), with_outgoing=False)
        numbering = Numbering(np, part)
        if is_renamed:
            order = np.random.default_rng(3).permutation(part.num_owned).astype(np.uint32)
            renamed = np.concatenate([order, np.arange(part.num_owned, numbering.num_lids, dtype=np.uint32)])
            degrees = np.empty_like(numbering.in_degrees)
            degrees[order] = numbering.in_degrees
            ghosts = numbering.lids[part.num_owned :]
            numbering.rename(renamed[numbering.lids], degrees)
            np.testing.assert_array_equal(numbering.lids[part.num_owned :], ghosts)
        gids = numbering.gids()
        of_host = np.arange(part.num_vertices) if part.gids is None else part.gids
        ids = numbering.ids(narrow=False)
        assert ids.size == numbering.num_lids
        np.testing.assert_array_equal(ids[numbering.lids], to_ids(of_host))
        np.testing.assert_array_equal(ids[: gids.size], to_ids(gids))
        np.testing.assert_array_equal(numbering.ids(narrow=True), ids)
        np.testing.assert_array_equal(gids[numbering.host_order], part.owned_gids)
        np.testing.assert_array_equal(part.owned_gids[numbering.host_lids()], gids)
        assert all(numbering.host_lid(lid) == host for lid, host in enumerate(numbering.host_lids().tolist()))
        passed = [gids[lids].tolist() for lids in numbering.halo()]
        assert passed == [part.owned_gids[lids].tolist() for lids in part.halo]
        np.testing.assert_array_equal(gids[numbering.by_gid], np.sort(gids))
        np.testing.assert_array_equal(numbering.find(gids), np.arange(gids.size))
        everywhere = numbering.of_all_gids
        np.testing.assert_array_equal(everywhere[gids], np.arange(gids.size))
        assert np.count_nonzero(everywhere != NO_VERTEX) == gids.size
        known = numbering.sorted_ids()
        if known is not None:
            np.testing.assert_array_equal(known[0], np.sort(to_ids(gids)))
            np.testing.assert_array_equal(ids[known[1]], known[0])

    run_ranks(size, check)


@pytest.mark.parametrize(
    "degrees", [[], [0], [5], [0, 3, 0, 3, 1, 1, 7], [2**31, 1, 2**32 - 1, 1], list(range(100)), [4] * 9]
)
def test_vertices_are_numbered_by_degree(degrees: list[int]) -> None:
    order = sorted(range(len(degrees)), key=lambda v: (-degrees[v], v))
    lids, descending = number_by_degree(np.array(degrees, dtype=np.uint32))
    assert [lids[v] for v in order] == list(range(len(degrees)))
    assert descending.tolist() == [degrees[v] for v in order]
