"""Slots and places of ghosts: what a rank writes to is the ghost of the vertex that it reads, for every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from numpy.typing import NDArray
from thread_group import ThreadGroup, run_ranks

from sigps.engine.gpu.halo_layout import HaloLayout, lay_out_halo
from sigps.engine.gpu.layout import GhostPlaces, place_ghosts
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.kernels.cuda.lease import NO_VERTEX

Part = tuple[Subgraph, NDArray[np.uint32], HaloLayout, GhostPlaces]


def parts_of(name: str, size: int, most_hot: int) -> list[Part]:
    def build(group: ThreadGroup) -> Part:
        graph = BATTERY[name].build(group=group)
        part = build_subgraph(graph, partition(graph, size, "hash"), with_outgoing=False)
        places = np.random.default_rng(group.rank).permutation(part.num_owned).astype(np.uint32)
        assert part.ghost_bounds is not None
        ghosts = place_ghosts(part.num_owned, part.ghost_bounds, most_hot)
        return part, places, lay_out_halo(np, part.halo, places), ghosts

    return run_ranks(size, build)


def slot_at(ghosts: GhostPlaces, rank: int, slot: int) -> int:
    """Return the place of a rank's slot, as `kernels/halo.cuh` finds it."""
    num_hot = int(ghosts.num_hot[rank])
    if slot < num_hot:
        return int(ghosts.hot[rank]) + slot
    return int(ghosts.cold[rank]) + slot - num_hot


@pytest.mark.parametrize("most_hot", [0, 64, 160, 1 << 15])
@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", ["skewed", "grid", "isolated", "star_in"])
def test_slots_are_ghosts_of_the_vertices_they_are_passed_for(name: str, size: int, most_hot: int) -> None:
    parts = parts_of(name, size, most_hot)
    for rank, (mine, places, layout, _) in enumerate(parts):
        lid_at = np.argsort(places)
        for other, (theirs, _, _, ghosts) in enumerate(parts):
            assert theirs.ghost_bounds is not None
            assert theirs.gids is not None
            first, end = theirs.ghost_bounds[rank : rank + 2].tolist()
            at = int(layout.bounds[other])
            passed = layout.places[at : int(layout.bounds[other + 1])]
            assert (passed[end - first :] == NO_VERTEX).all()
            found = ghosts.places(theirs.ghost_bounds)[first:end].tolist()
            assert found == [slot_at(ghosts, rank, slot) for slot in range(end - first)]
            gids = theirs.gids[theirs.num_owned + first : theirs.num_owned + end].tolist()
            assert mine.owned_gids[lid_at[passed[: end - first]]].tolist() == gids


@pytest.mark.parametrize("size", [2, 5])
def test_each_vertex_knows_its_slots(size: int) -> None:
    for part, _, layout, _ in parts_of("skewed", size, 64):
        found = [[] for _ in range(part.num_owned)]  # type: list[list[int]]
        for slot, place in enumerate(layout.places.tolist()):
            if place != NO_VERTEX:
                found[place].append(slot)
        assert np.diff(layout.copy_offsets).tolist() == [len(slots) for slots in found]
        assert layout.copies.tolist() == [slot for slots in found for slot in slots]


@pytest.mark.parametrize("most_hot", [0, 64, 160, 1 << 15])
def test_a_word_of_bits_has_ghosts_of_one_rank(most_hot: int) -> None:
    bounds = np.array([0, 5, 5, 140, 141, 400])
    ghosts = place_ghosts(77, bounds, most_hot)
    owner: dict[int, Any] = {}
    places = ghosts.places(bounds).tolist()
    assert len(set(places)) == 400
    assert min(places) >= 96
    assert max(places) < ghosts.cold[-1]
    for rank in range(5):
        for place in places[bounds[rank] : bounds[rank + 1]]:
            assert owner.setdefault(place // 32, rank) == rank
        hot = places[bounds[rank] : bounds[rank] + int(ghosts.num_hot[rank])]
        assert all(ghosts.hot[0] <= place < ghosts.hot[-1] for place in hot)
    room = np.diff(ghosts.listed)
    assert (room >= np.diff(bounds)).all()
