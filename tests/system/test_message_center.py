from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from thread_group import ThreadGroup, run_ranks

from sigps import Graph
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.partitioning.partition import partition
from sigps.system.data_locator import DataLocator
from sigps.system.message_center import GrowingMessageCenter, MessageCenter, choose_encoding


def center(group: ThreadGroup, name: str = "skewed", method: str = "hash") -> tuple[MessageCenter, Subgraph]:
    graph = BATTERY[name].build(group=group)
    assignment = partition(graph, group.size, method)
    part = build_subgraph(graph, assignment, with_outgoing=False)
    return MessageCenter(group, part, DataLocator(graph, assignment, part)), part


@pytest.mark.parametrize(
    ("num_sent", "halo_size", "encoding"),
    [
        (0, 0, "nothing"),
        (0, 5, "nothing"),
        (1, 1, "whole"),
        (1, 2, "bitmap"),  # 1 byte against 4
        (1, 32, "positions"),
        (1, 24, "bitmap"),
        (2, 64, "positions"),
        (3, 64, "bitmap"),
        (63, 64, "bitmap"),
        (64, 64, "whole"),
    ],
)
def test_the_encoding_with_the_fewest_bytes_is_chosen(num_sent: int, halo_size: int, encoding: str) -> None:
    assert choose_encoding(num_sent, halo_size) == encoding


def records_of(gids: np.ndarray[Any, Any], dtypes: list[Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return records that differ from vertex to vertex."""
    columns = []
    for dtype in dtypes:
        column = np.zeros(gids.size, dtype=dtype)
        for name in column.dtype.names or [None]:
            (column if name is None else column[name])[...] = (
                gids % 2 if column.dtype.kind == "b" else gids * 3 + 1
            )
        columns.append(column)
    return tuple(columns)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize(
    "dtypes",
    [[], [np.float64], [bool], [np.dtype([("f0", np.int8), ("f1", np.float64)], align=True)]],
    ids=["nothing", "one", "bool", "structure"],
)
def test_ghosts_get_the_records_of_vertices_that_sent(size: int, share: float, dtypes: list[Any]) -> None:
    chosen = np.random.default_rng(2).random(256) < share

    def check(group: ThreadGroup) -> int:
        messages, part = center(group)
        assert part.gids is not None
        n = part.num_owned
        sent = np.zeros(part.gids.size, dtype=np.uint8)
        sent[:n] = chosen[part.gids[:n]]
        expected = records_of(part.gids, dtypes)
        records = tuple(np.zeros_like(e) for e in expected)
        for record, right in zip(records, expected, strict=True):
            record[:n] = right[:n]
        messages.publish(sent, records)
        changed, num_bytes = messages.collect(sent, records)
        ghosts = part.gids[n:]
        assert sorted(changed.tolist()) == (n + np.flatnonzero(chosen[ghosts])).tolist()
        assert sent[n:].tolist() == chosen[ghosts].astype(int).tolist()
        for record, right in zip(records, expected, strict=True):
            assert np.array_equal(record[changed], right[changed])
            silent = n + np.flatnonzero(~chosen[ghosts])
            assert np.array_equal(record[silent], np.zeros_like(record[silent]))  # not overwritten
        if share == 0.0:
            assert num_bytes <= group.size - 1
        return num_bytes

    sizes = run_ranks(size, check)
    if share == 1.0 and dtypes == [np.float64]:
        halos = run_ranks(size, lambda group: sum(h.size for h in center(group)[1].halo))
        assert sizes == [8 * halo + size - 1 for halo in halos]


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("ordered", [True, False])
def test_routed_messages_reach_the_owners_of_their_targets(size: int, ordered: bool) -> None:
    def check(group: ThreadGroup) -> tuple[Any, ...]:
        messages, part = center(group)
        draw = np.random.default_rng(group.rank)
        targets = draw.integers(0, part.num_vertices, 50)
        senders = np.sort(draw.integers(0, part.num_vertices, 50))
        values = (targets * 1000.0 + senders, senders.astype(np.int16))
        lids, arrived, num_bytes = messages.route(targets, senders if ordered else None, values)
        gids = part.owned_gids[lids]
        assert (arrived[0] // 1000 == gids).all()
        assert (arrived[0] % 1000 == arrived[1]).all()
        if ordered:
            assert (np.diff(arrived[1]) >= 0).all()
        if size == 1:
            assert num_bytes == 0
        return targets.tolist(), gids.tolist()

    results = run_ranks(size, check)
    assert sorted(t for sent, _ in results for t in sent) == sorted(g for _, got in results for g in got)


def test_no_messages_at_all() -> None:
    def check(group: ThreadGroup) -> None:
        messages, _ = center(group, "only_isolated")
        nothing = np.empty(0, dtype=np.int64)
        lids, arrived, num_bytes = messages.route(nothing, nothing, (np.empty(0),))
        assert (lids.size, arrived[0].size, num_bytes) == (0, 0, 0)
        assert messages.find(nothing, 0).size == 0

    run_ranks(3, check)


def test_values_are_gathered_by_rank() -> None:
    def check(group: ThreadGroup) -> list[list[int]]:
        rows: list[list[int]] = center(group)[0].gather(np.array([group.rank, 7])).tolist()
        return rows

    assert run_ranks(3, check) == [[[0, 7], [1, 7], [2, 7]]] * 3


@pytest.mark.parametrize("sent", [[], [1], [0, 1, 2, 3]])
def test_further_ghosts_get_records_in_the_same_exchange(sent: list[int]) -> None:
    def of(group: ThreadGroup) -> tuple[dict[int, float], list[int], int]:
        graph = Graph.from_edges([0, 1, 2, 4, 5, 6, 3], [1, 2, 3, 5, 6, 7, 4], vertices=range(8), group=group)
        assignment = partition(graph, 2, lambda ids: ids // 4)
        part = build_subgraph(graph, assignment, with_outgoing=False)
        growing = GrowingMessageCenter(group, part, DataLocator(graph, assignment, part), 2)
        wanted = np.array([1, 0]) if group.rank else np.array([6])
        added = growing.add_ghosts(wanted)
        assert added is not None
        lids, told = added
        first = part.num_owned + part.num_ghosts
        assert min(lids) >= first
        assert part.owned_gids[told].tolist() == ([6] if group.rank else [1, 0])
        flags = np.zeros(first + growing.num_spare, dtype=np.uint8)
        records = np.full(flags.size, -1.0)
        records[: part.num_owned] = part.owned_gids
        flags[part.local_ids(np.array(sent, dtype=np.int64) + 4 * group.rank)] = 1
        calls, exchange = [], group.all_to_all
        growing._all_to_all = lambda parts: (calls.append(1), exchange(parts))[1]
        growing.publish(flags, (records,))
        ghosts, _ = growing.collect(flags, (records,))
        assert part.gids is not None
        names = dict(zip(lids.tolist(), wanted.tolist(), strict=True))
        names |= {lid: int(part.gids[lid]) for lid in range(part.num_owned, first)}
        return {names[g]: records[g] for g in ghosts.tolist()}, sorted(names.values()), len(calls)

    for rank, (found, known, calls) in enumerate(run_ranks(2, of)):
        other = {v + 4 * (1 - rank) for v in sent}
        assert found == {v: v for v in known if v in other}
        assert known == ([0, 1, 3] if rank else [6])
        assert calls == 1
