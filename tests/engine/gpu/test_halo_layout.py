"""Slots and local ids of ghosts: what a rank writes to is the ghost of the vertex that it reads, for every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps.engine.gpu.halo_layout import HaloLayout, lay_out_halo
from sigps.engine.gpu.numbering import GhostLids, number_ghosts
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.kernels.cuda.lease import NO_VERTEX

Part = tuple[Subgraph, HaloLayout, GhostLids]


def parts_of(name: str, size: int, most_hot: int) -> list[Part]:
    def build(group: ThreadGroup) -> Part:
        graph = BATTERY[name].build(group=group)
        part = build_subgraph(graph, partition(graph, size, "hash"), with_outgoing=False)
        assert part.ghost_bounds is not None
        ghosts = number_ghosts(part.num_owned, part.ghost_bounds, most_hot)
        return part, lay_out_halo(part.halo, part.num_owned), ghosts

    return run_ranks(size, build)


def slot_at(ghosts: GhostLids, rank: int, slot: int) -> int:
    """Return the local id of a rank's slot, as `kernels/halo.cuh` finds it."""
    num_hot = int(ghosts.num_hot[rank])
    if slot < num_hot:
        return int(ghosts.hot[rank]) + slot
    return int(ghosts.cold[rank]) + slot - num_hot


@pytest.mark.parametrize("most_hot", [0, 64, 160, 1 << 15])
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", ["skewed", "grid", "isolated", "star_in"])
def test_slots_are_ghosts_of_the_vertices_they_are_passed_for(name: str, size: int, most_hot: int) -> None:
    parts = parts_of(name, size, most_hot)
    for rank, (mine, layout, _) in enumerate(parts):
        for other, (theirs, _, ghosts) in enumerate(parts):
            assert theirs.ghost_bounds is not None
            assert theirs.gids is not None
            first, end = theirs.ghost_bounds[rank : rank + 2].tolist()
            at = int(layout.bounds[other])
            passed = layout.lids[at : int(layout.bounds[other + 1])]
            assert (passed[end - first :] == NO_VERTEX).all()
            found = ghosts.lids(theirs.ghost_bounds)[first:end].tolist()
            assert found == [slot_at(ghosts, rank, slot) for slot in range(end - first)]
            gids = theirs.gids[theirs.num_owned + first : theirs.num_owned + end].tolist()
            assert mine.owned_gids[passed[: end - first]].tolist() == gids


@pytest.mark.parametrize("size", [2, 5])
def test_each_vertex_knows_its_slots(size: int) -> None:
    for part, layout, _ in parts_of("skewed", size, 64):
        found = [[] for _ in range(part.num_owned)]  # type: list[list[int]]
        for slot, lid in enumerate(layout.lids.tolist()):
            if lid != NO_VERTEX:
                found[lid].append(slot)
        assert np.diff(layout.copy_offsets).tolist() == [len(slots) for slots in found]
        assert layout.copies.tolist() == [slot for slots in found for slot in slots]


@pytest.mark.parametrize("most_hot", [0, 64, 160, 1 << 15])
def test_a_word_of_bits_has_ghosts_of_one_rank(most_hot: int) -> None:
    bounds = np.array([0, 5, 5, 140, 141, 400])
    ghosts = number_ghosts(77, bounds, most_hot)
    owner: dict[int, Any] = {}
    lids = ghosts.lids(bounds).tolist()
    assert len(set(lids)) == 400
    assert min(lids) >= 96
    assert max(lids) < ghosts.cold[-1]
    for rank in range(5):
        for lid in lids[bounds[rank] : bounds[rank + 1]]:
            assert owner.setdefault(lid // 32, rank) == rank
        hot = lids[bounds[rank] : bounds[rank] + int(ghosts.num_hot[rank])]
        assert all(ghosts.hot[0] <= lid < ghosts.hot[-1] for lid in hot)
    room = np.diff(ghosts.listed)
    assert (room >= np.diff(bounds)).all()
