"""The bytes that a job takes, against sums by hand."""

from __future__ import annotations

from sigps.apps import ALS, BFS, SSSP, BiTriDN, EgoNet, OutDegree, PageRank, Triangles
from sigps.compiler.frontend.analysis import analyse
from sigps.costs.memory import memory
from sigps.costs.sizes import PartitionSize, Size

SYMMETRIC = Size(1000, 8000, False, 0, "")
DIRECTED = Size(1000, 8000, True, 4, "")


def test_one_process_shares_the_graphs_arrays() -> None:
    # 8000 targets of 4 B, 1000 offsets of 8 B and degrees of 4 B; rank 8 B, status 1 B and eight lists of 4 B;
    # two outboxes of a flag and 8 B, one inbox of a flag and 8 B
    expected = {"graph": 32_000 + 12_000, "state": 41_000, "messages": 27_000}
    assert memory(SYMMETRIC, analyse(PageRank()), 1, 8) == expected


def test_a_directed_graph_has_both_directions() -> None:
    assert memory(DIRECTED, analyse(PageRank()), 1, 8)["graph"] == 2 * 8000 * 8 + 2 * 8000 + 4000


def test_a_program_without_messages_needs_none() -> None:
    assert memory(SYMMETRIC, analyse(OutDegree()), 1, 8)["messages"] == 0


def test_parts_have_ghosts_and_copies() -> None:
    parts = memory(SYMMETRIC, analyse(PageRank()), 4, 8)
    # 250 owned, 750 ghosts at most; the graph's rows, the in-edges and the same by source
    assert parts["graph"] == 3 * 2000 * 4 + 8 * (3 * 250 + 750) + 20 * 250 + 16 * 750
    # records of 8 bytes with a flag, old and new; an inbox; and those under way, with their positions
    assert parts["messages"] == 2 * 1000 * 9 + 250 * 9 + 2 * 750 * (4 + 8)


def test_a_counted_part_takes_the_place_of_an_even_one() -> None:
    part = PartitionSize(vertices=300, edges=2100, cut_edges=40, ghosts=30)
    counted = memory(SYMMETRIC, analyse(PageRank()), 4, 8, part)
    assert counted["graph"] == 3 * 2100 * 4 + 8 * (3 * 300 + 30) + 20 * 300 + 16 * 30
    assert counted["messages"] == 2 * 330 * 9 + 300 * 9 + 2 * 30 * (4 + 8)


def test_large_graphs_have_wide_indices() -> None:
    size = Size(2**33, 2**34, False, 0, "")
    assert memory(size, analyse(BFS(source=0)), 1, 16)["graph"] == 8 * 2**34 + 12 * 2**33


def test_without_a_derived_program_every_message_is_written_out() -> None:
    assert memory(SYMMETRIC, None, 1, 8)["messages"] == 8000 * (3 * (8 + 13) + 8)


def test_what_is_kept_on_edges_is_there_twice_and_rows_of_neighbours_are_copied() -> None:
    """BiTriDN keeps 8 bytes an edge; EgoNet a bool, and the index of the edge back."""
    bitridn, ego = analyse(BiTriDN()), analyse(EgoNet(source=0))
    assert "on edges" not in memory(SYMMETRIC, analyse(PageRank()), 1, 8)
    assert memory(SYMMETRIC, bitridn, 1, 8)["on edges"] == 2 * 8 * 8000
    assert memory(SYMMETRIC, ego, 1, 8)["on edges"] == 2 * 8000 + 8 * 8000
    under_way = (8 + 2 * 8) * 6000
    kept = 16 * 2000 + 8 * 6000 + 12 * 6000 + 4 * 2000
    assert memory(SYMMETRIC, bitridn, 4, 8)["on edges"] == kept + under_way


def test_what_is_there_for_a_time_counts_beyond_what_the_run_has() -> None:
    triangles = memory(SYMMETRIC, analyse(Triangles()), 1, 8)
    assert (
        triangles["for a time"] == 10 * 4000 + 72 * 1000 - triangles["state"]
    )  # pairs of arcs, and vertices
    parts = memory(SYMMETRIC, analyse(Triangles()), 4, 8)
    assert parts["for a time"] == 4 * 8000 + 8 * 1000 + 10 * 4000 + 72 * 1000 - parts["state"]
    found = memory(SYMMETRIC, analyse(BiTriDN()), 1, 8)
    assert found["for a time"] == (37 + 2 * 8) * 8000 - found["on edges"] - found["state"] - found["messages"]


def test_a_graph_that_is_turned_stays_as_it_was_loaded() -> None:
    turned = memory(SYMMETRIC, analyse(PageRank()), 1, 8, loaded=Size(1000, 4000, True, 8, ""))
    assert turned["as loaded"] == 4000 * (4 + 8) + 8 * 1000
    assert turned["for a time"] == (8 + 16) * 8000 - turned["state"] - turned["messages"]
    assert "as loaded" not in memory(SYMMETRIC, analyse(PageRank()), 1, 8, loaded=SYMMETRIC)


def test_vectors_take_the_bytes_of_their_numbers() -> None:
    record, inbox = 2 * (1 + 8 * (256 + 16)), 1 + 8 * (256 + 16 + 1)
    assert memory(SYMMETRIC, analyse(ALS()), 1, 264)["messages"] == 1000 * (record + inbox)


def test_messages_with_two_parts_take_more() -> None:
    sssp = memory(SYMMETRIC, analyse(SSSP(source=0)), 1, 16)["messages"]
    assert sssp > memory(SYMMETRIC, analyse(PageRank()), 1, 16)["messages"]
