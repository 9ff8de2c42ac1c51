"""Rows of out-edges as they lie on a GPU, those of remote neighbours among them, against the graph's own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from graphs import samples
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks

from sigps import Graph
from sigps.engine.gpu.memory_plan import bytes_of_mirrors
from sigps.engine.gpu.numbering import Numbering
from sigps.engine.gpu.walked_rows import WalkedRows
from sigps.engine.partition.edge_states import commit
from sigps.engine.partition.neighbor_rows import build_neighbor_rows
from sigps.engine.partition.subgraph import Subgraph, build_subgraph
from sigps.graph.partitioning.partition import partition


def laid_out(
    graph: Graph, refused: list[Mapping[str, int]] | None = None
) -> tuple[Subgraph, Any, WalkedRows]:
    """Return a rank's partition, its vertices' local ids, and its out-edges in their order."""
    assignment = partition(graph, graph.group.size, "hash")
    part = build_subgraph(graph, assignment, with_outgoing=True)
    part = replace(part, neighbor_rows=build_neighbor_rows(part, assignment, graph.group))
    numbering = Numbering(np, part)
    check = (lambda needed: None) if refused is None else refused.append
    return part, numbering.lids[: part.num_owned], WalkedRows(np, numbering, check)


def rows_of(graph: Graph) -> list[list[int]]:
    cuts = graph.offsets.astype(int).tolist()
    return [graph.targets[a:b].tolist() for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "name", ["skewed", "star_in", "isolated", "parallel_edges", "only_isolated", "empty"]
)
def test_rows_are_the_graphs(name: str, size: int) -> None:
    whole = rows_of(BATTERY[name].build())
    to_ids = BATTERY[name].build().ids.to_oids

    def check(group: ThreadGroup) -> None:
        part, lids, walked = laid_out(BATTERY[name].build(group=group))
        offsets = walked.offsets.astype(int).tolist()
        for lid, gid in enumerate(part.owned_gids.tolist()):
            begin, end = offsets[lids[lid]], offsets[lids[lid] + 1]
            assert walked.gids[begin:end].tolist() == whole[gid]
            assert walked.ids[begin:end].tolist() == to_ids(np.array(whole[gid], dtype=np.int64)).tolist()
            for edge in range(begin, end):
                row = int(walked.rows[edge])
                theirs = walked.gids[offsets[row] : offsets[row + 1]].tolist()
                assert theirs == whole[walked.gids[edge]]
        assert offsets[part.num_owned] == walked.num_edges
        assert offsets[-1] == walked.num_edges + walked.num_mirrored == walked.gids.size
        np.testing.assert_array_equal(walked.in_host_order(walked.ids, np), part.outgoing_ids())
        np.testing.assert_array_equal(walked.from_host(part.outgoing_ids()), walked.ids)

    run_ranks(size, check)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "name", ["skewed", "complete_5", "parallel_edges_undirected", "self_loop_undirected"]
)
def test_the_edge_back_is_the_first_of_its_kind(name: str, size: int) -> None:
    def check(group: ThreadGroup) -> None:
        part, lids, walked = laid_out(BATTERY[name].build(group=group).undirected())
        offsets = walked.offsets.astype(int)
        of_lids = part.owned_gids[np.argsort(lids)]
        sources = np.repeat(of_lids, np.diff(offsets[: part.num_owned + 1])).tolist()
        for edge, (source, back) in enumerate(zip(sources, walked.reverse.tolist(), strict=True)):
            row = int(walked.rows[edge])
            theirs = walked.gids[offsets[row] : offsets[row + 1]].tolist()
            assert back == offsets[row] + theirs.index(source)

    run_ranks(size, check)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(samples(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_changed_is_seen_by_all_who_have_copies(sample: Any, size: int, random: Any) -> None:
    """Each owner writes to some edges, twice; a copied edge then has what its owner wrote, and no other."""
    salt = random.randint(0, 1000)

    def check(group: ThreadGroup) -> dict[str, list[Any]]:
        part, lids, walked = laid_out(sample.build(group=group))
        offsets, num_edges = walked.offsets.astype(int).tolist(), walked.num_edges
        pending = [np.zeros(num_edges), np.zeros(num_edges, dtype=bool)]
        committed = [np.zeros(num_edges + walked.num_mirrored, dtype=kept.dtype) for kept in pending]
        values: dict[str, list[Any]] = {}
        for turn in range(2):
            for lid, gid in enumerate(part.owned_gids.tolist()):
                for i, edge in enumerate(range(offsets[lids[lid]], offsets[lids[lid] + 1])):
                    if (gid * 7 + i + salt + turn) % 3 == 0:
                        pending[0][edge] = -0.0 if i % 5 == 0 else gid * 100 + i + turn / 2
                        pending[1][edge] = not pending[1][edge]
            num_bytes = commit(
                np,
                pending,
                committed,
                walked.send_lists,
                walked.mirror_bounds,
                lambda parts: swapped(group, parts),
            )
            assert num_bytes >= 0
            assert group.size > 1 or num_bytes == 0
            for lid, gid in enumerate(part.owned_gids.tolist()):
                begin, end = offsets[lids[lid]], offsets[lids[lid] + 1]
                values[f"{turn} {gid}"] = [k[begin:end].tobytes() for k in pending]
                assert [s[begin:end].tobytes() for s in committed] == values[f"{turn} {gid}"]
            copied = {}
            for edge in range(num_edges):
                row, gid = int(walked.rows[edge]), int(walked.gids[edge])
                begin, end = offsets[row], offsets[row + 1]
                copied[f"{turn} {gid}"] = [s[begin:end].tobytes() for s in committed]
            of_all = group.all_gather(values)
            for name, found in copied.items():
                (expected,) = [one[name] for one in of_all if name in one]
                assert found == expected
        return values

    run_ranks(size, check)


def swapped(group: ThreadGroup, parts: Any) -> list[Any]:
    return group.all_to_all(parts)


def test_nothing_crosses_where_nothing_changed() -> None:
    def check(group: ThreadGroup) -> tuple[int, int]:
        _, _, walked = laid_out(BATTERY["skewed"].build(group=group))
        pending = [np.zeros(walked.num_edges, dtype=np.int32)]
        committed = [np.zeros(walked.num_edges + walked.num_mirrored, dtype=np.int32)]
        bytes_of: list[int] = []
        for _turn in range(2):
            pending[0][:] = 7
            crossed = commit(
                np,
                pending,
                committed,
                walked.send_lists,
                walked.mirror_bounds,
                lambda parts: swapped(group, parts),
            )
            bytes_of.append(crossed)
        assert bytes_of[0] == walked.num_sent * (8 + 4)
        assert committed[0].tolist() == [7] * committed[0].size
        return bytes_of[0], bytes_of[1]

    assert all(first > 0 and second == 0 for first, second in run_ranks(3, check))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_copies_are_counted_to_the_byte(size: int) -> None:
    def check(group: ThreadGroup) -> None:
        refused: list[Mapping[str, int]] = []
        part, _, walked = laid_out(BATTERY["skewed"].build(group=group), refused)
        assert part.outgoing is not None
        assert [sum(needed.values()) for needed in refused] == [kept_of_others(part, walked)] * (size > 1)

    run_ranks(size, check)


def kept_of_others(part: Subgraph, walked: WalkedRows) -> int:
    """Return the bytes of all arrays beyond those of a partition that looks at nobody else's edges."""
    without = replace(part, neighbor_rows=None)
    alone = WalkedRows(np, Numbering(np, without), lambda _: None)
    kept = walked.offsets.nbytes + walked.gids.nbytes + sum(entries.nbytes for entries in walked.send_lists)
    return kept - alone.offsets.nbytes - alone.gids.nbytes


def test_what_copies_take() -> None:
    assert bytes_of_mirrors(2, 3, 5) == 2 * 8 + 3 * 4 + 5 * 4
