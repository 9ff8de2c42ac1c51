from __future__ import annotations

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps import ExchangeError
from sigps.engine.partition.subgraph import build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.system.data_locator import DataLocator


def located(
    group: ThreadGroup, name: str, method: str = "hash"
) -> tuple[DataLocator, np.ndarray, np.ndarray]:
    graph = BATTERY[name].build(group=group)
    assignment = partition(graph, group.size, method)
    part = build_subgraph(graph, assignment, with_outgoing=False)
    return DataLocator(graph, assignment, part), part.owned_gids, assignment.owner_of(part.owned_gids)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("method", ["hash", "edges"])
def test_a_vertex_is_found_where_it_lives(size: int, method: str) -> None:
    def check(group: ThreadGroup) -> None:
        locator, owned, owners = located(group, "skewed", method)
        assert (locator.ranks(owned) == group.rank).all()
        assert (owners == group.rank).all()
        assert locator.local_ids(owned).tolist() == list(range(owned.size))
        assert locator.local_ids(owned[::-1]).tolist() == list(range(owned.size))[::-1]

    run_ranks(size, check)


@pytest.mark.parametrize("size", [1, 3])
def test_ids_are_found_by_what_compute_sees(size: int) -> None:
    def check(group: ThreadGroup) -> None:
        sparse = located(group, "sparse_ids")[0]
        assert sparse.gids(np.array([10**15, -(2**62), 5, 5]), 0).tolist() == [2, 0, 1, 1]
        assert sparse.gids(np.empty(0, dtype=np.int64), 0).tolist() == []
        strings = located(group, "string_ids")[0]
        assert strings.gids(np.array([4, 0]), 0).tolist() == [4, 0]

    run_ranks(size, check)


def test_an_id_that_is_no_vertex_is_named_with_rank_and_superstep() -> None:
    def check(group: ThreadGroup) -> None:
        locator = located(group, "sparse_ids")[0]
        with pytest.raises(
            ExchangeError, match=rf"rank {group.rank}, superstep 9: send_to\(6\).*2 such"
        ) as caught:
            locator.gids(np.array([5, 6, 7]), 9)
        assert (caught.value.rank, caught.value.superstep) == (group.rank, 9)
        strings = located(group, "string_ids")[0]
        for wrong in (-1, 5):
            with pytest.raises(ExchangeError, match=rf"send_to\({wrong}\)"):
                strings.gids(np.array([wrong]), 0)

    run_ranks(2, check)
