from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from battery import BATTERY, NAMES, Sample
from thread_group import ThreadGroup, run_ranks
from turns import in_turn
from ways import by_size

from sigps import Graph, GraphError, run
from sigps.apps import PageRank
from sigps.engine.partition.edge_list import EdgeList, uses_of
from sigps.engine.partition.subgraph import Subgraph, build_subgraph, columns_of
from sigps.graph.partitioning.partition import Assignment, partition

PARTITIONERS = ["edges", "vertices", "hash", "bfs"]


def parts_of(sample: Sample, size: int, method: Any) -> list[tuple[Graph, Assignment, Subgraph]]:
    def build(group: ThreadGroup) -> tuple[Graph, Assignment, Subgraph]:
        graph = sample.build(group=group)
        assignment = partition(graph, size, method)
        return graph, assignment, build_subgraph(graph, assignment, with_outgoing=True, num_threads=3)

    return run_ranks(size, build)


def edges_of(lists: EdgeList, rows: Any, ends: Any) -> list[tuple[int, int, float]]:
    """Return (row, end, weight) as gids, in the order they stand in."""
    weights = lists.columns.get("weight", np.ones(lists.ends.size))
    counts = np.diff(lists.offsets.astype(np.int64))
    return list(
        zip(np.repeat(rows, counts).tolist(), ends[lists.ends].tolist(), weights.tolist(), strict=True)
    )


def whole_edges(sample: Sample) -> Counter[tuple[int, int, float]]:
    graph = sample.build()
    rows = np.arange(graph.num_vertices)
    lists = EdgeList(graph.offsets, graph.targets, graph.columns)
    return Counter(edges_of(lists, rows, rows))


@pytest.mark.parametrize(("name", "size"), in_turn(NAMES, [2, 4, 3]))
def test_partitions_hold_every_vertex_and_edge_once_and_their_halos_meet(name: str, size: int) -> None:
    sample = BATTERY[name]
    expected = whole_edges(sample)
    num_vertices = sample.build().num_vertices
    for method in [*PARTITIONERS, by_size(size)]:
        parts = parts_of(sample, size, method)
        owned = np.concatenate([s.owned_gids for _, _, s in parts])
        assert sorted(owned.tolist()) == list(range(num_vertices))
        incoming: Counter[Any] = Counter()
        pushed: Counter[Any] = Counter()
        outgoing: Counter[Any] = Counter()
        for rank, (graph, assignment, part) in enumerate(parts):
            gids = part.gids
            assert gids is not None
            np.testing.assert_array_equal(part.by_gid, np.argsort(part.owned_gids))
            assert (assignment.owner_of(part.owned_gids) == rank).all()
            in_edges = edges_of(part.incoming, part.owned_gids, gids)
            incoming.update((u, v, w) for v, u, w in in_edges)
            pushed.update(edges_of(part.pushed, gids, gids))
            assert part.outgoing is not None
            outgoing.update(edges_of(part.outgoing, part.owned_gids, np.arange(num_vertices)))
            assert_ghosts_are_the_remote_sources(part, assignment, rank, in_edges)
            assert in_edges_stand_in_order(part)
            out_degrees = Counter(u for u, _, _ in expected.elements())
            assert part.out_degrees.tolist() == [out_degrees[g] for g in part.owned_gids.tolist()]
            assert (part.num_vertices, part.num_edges) == (graph.num_vertices, graph.num_edges)
        assert incoming == pushed == outgoing == expected
        assert_halos_meet([s for _, _, s in parts])


def assert_ghosts_are_the_remote_sources(
    part: Subgraph, assignment: Assignment, rank: int, in_edges: list[tuple[int, int, float]]
) -> None:
    assert part.gids is not None
    assert part.ghost_bounds is not None
    ghosts = part.gids[part.num_owned :]
    sources = {u for _, u, _ in in_edges}
    assert set(ghosts.tolist()) == {u for u in sources if assignment.owner_of(np.array([u]))[0] != rank}
    assert ghosts.size == part.num_ghosts
    owners = assignment.owner_of(ghosts)
    for owner in range(part.ghost_bounds.size - 1):
        begin, end = part.ghost_bounds[owner : owner + 2]
        assert (owners[begin:end] == owner).all()
        uses = Counter(u for _, u, _ in in_edges)
        ranking = [(-uses[g], g) for g in ghosts[begin:end].tolist()]
        assert ranking == sorted(ranking)


def in_edges_stand_in_order(part: Subgraph) -> bool:
    assert part.gids is not None
    offsets = part.incoming.offsets.astype(np.int64)
    rows = [part.gids[part.incoming.ends[a:b]] for a, b in itertools.pairwise(offsets)]
    return all((np.diff(row) >= 0).all() for row in rows)


def assert_halos_meet(parts: list[Subgraph]) -> None:
    """What a rank sends to another stands in the order of the other's slots."""
    for sender, mine in enumerate(parts):
        for receiver, theirs in enumerate(parts):
            assert mine.gids is not None
            assert theirs.gids is not None
            assert theirs.ghost_bounds is not None
            begin, end = theirs.ghost_bounds[sender : sender + 2] + theirs.num_owned
            if sender != receiver:
                assert mine.gids[mine.halo[receiver]].tolist() == theirs.gids[begin:end].tolist()
            else:
                assert mine.halo[receiver].size == 0


def test_owned_vertices_come_by_descending_in_degree() -> None:
    for _, _, part in parts_of(BATTERY["skewed"], 3, "hash"):
        degrees = np.diff(part.incoming.offsets.astype(np.int64))
        assert (np.diff(degrees) <= 0).all()


def test_parallel_edges_keep_their_given_order() -> None:
    for size in (1, 2, 3):
        parts = parts_of(BATTERY["parallel_edges"], size, "vertices")
        weights = [w for _, _, part in parts for w in part.incoming.columns["weight"].tolist()]
        assert weights == [3.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize("num_ends", [0, 1, 900])
def test_threads_count_each_end_once(num_ends: int, num_threads: int) -> None:
    ends = np.random.default_rng(1).integers(0, 20, num_ends).astype(np.uint32)
    assert uses_of(ends, 21, num_threads).tolist() == np.bincount(ends, minlength=21).tolist()


def test_one_process_copies_no_edge() -> None:
    for name in ("skewed", "grid"):
        graph = BATTERY[name].build()
        part = build_subgraph(graph, partition(graph, 1), with_outgoing=True)
        inward = graph.in_edges()
        assert part.gids is None
        assert part.num_ghosts == 0
        assert part.incoming.ends is inward.sources
        assert part.incoming.offsets is inward.offsets
        assert part.pushed.ends is graph.targets
        assert part.outgoing is part.pushed
        assert part.ids.size == 0  # ids 0..n-1 are the local ids


def test_compute_sees_the_users_ids_or_numbers_for_strings() -> None:
    for name, seen in (("sparse_ids", [-(2**62), 5, 10**15]), ("string_ids", [0, 1, 2, 3, 4])):
        for size in (1, 3):
            found: dict[int, int] = {}
            for _, _, part in parts_of(BATTERY[name], size, "hash"):
                gids = part.owned_gids if part.gids is None else part.gids  # ghosts send too
                ids = part.ids if part.ids.size else gids
                found |= dict(zip(gids.tolist(), ids.tolist(), strict=True))
            assert [found[g] for g in sorted(found)] == seen


def test_targets_are_the_users_ids_too() -> None:
    for size in (1, 2):
        targets = [
            t for _, _, part in parts_of(BATTERY["isolated"], size, "edges") for t in part.outgoing_ids()
        ]
        oids = {0: 0, 1: 1, 2: 3, 3: 5, 4: 9}
        assert sorted(int(t) for t in targets) == sorted([3, 5])
        assert set(oids.values()) >= {int(t) for t in targets}


def test_columns_come_in_the_programs_order() -> None:
    edges = EdgeList(
        np.array([0, 2], dtype=np.uint64),
        np.array([0, 1], dtype=np.uint32),
        {"cost": np.array([5.0, 6.0]), "kind": np.array([1, 0])},
    )
    kind, weight, cost = columns_of(edges, ("kind", "weight", "cost"))
    assert (kind.tolist(), weight.tolist(), cost.tolist()) == ([1, 0], [1.0, 1.0], [5.0, 6.0])
    many = EdgeList(edges.offsets, np.zeros(5000, dtype=np.uint32), {})
    (weight,) = columns_of(many, ("weight",))
    assert weight.strides == (0,)  # ones that take no memory
    assert weight.tolist() == [1.0] * 5000
    with pytest.raises(GraphError, match=r"edge\.price.*they have: cost, kind"):
        columns_of(edges, ("price",))
    with pytest.raises(GraphError, match="they have: none"):
        columns_of(EdgeList(edges.offsets, edges.ends, {}), ("price",))


@pytest.mark.parametrize("direction", ["pull", "auto"])
def test_a_part_that_is_only_pulled_keeps_its_edges_once(direction: Any) -> None:
    def edges_kept(group: ThreadGroup) -> list[bool]:
        graph = BATTERY["skewed"].build(group=group)
        run(PageRank(iterations=3), graph, device="cpu", direction=direction)
        return ["pushed" in part.__dict__ for _, part in graph.derived("partitions", dict).values()]

    assert run_ranks(2, edges_kept) == [[False], [False]]
