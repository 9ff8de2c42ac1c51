"""The load report: what it counts and how it reads."""

from __future__ import annotations

import pytest

from sigps.graph import Graph, LoadReport


def test_reads_as_three_lines_and_the_notes():
    report = LoadReport(
        format="snap",
        source="web.txt",
        directed=False,
        num_vertices=1200,
        edges_given=5000,
        edges_stored=9000,
        duplicates=400,
        duplicates_policy="drop",
        self_loops=7,
        rows_skipped=4,
        isolated=3,
        base=1,
        id_map="table",
        num_bytes=5 * 1024**2,
        seconds=0.25,
        notes=["4 columns not read"],
    )
    assert str(report) == (
        "web.txt (snap): undirected, 1,200 vertices, 5,000 edges given, 9,000 stored\n"
        "  duplicates 400 (dropped; an edge in both directions is one), self-loops 7 (kept), "
        "isolated vertices 3, rows skipped 4\n"
        "  id map table, smallest id 1; 5.0 MiB in 0.25 s\n"
        "  4 columns not read"
    )


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 * 1024**3, "3.0 GiB"), (2**50, "1024.0 TiB")],
)
def test_bytes_are_readable(num_bytes, text):
    assert f"; {text} in " in str(LoadReport(num_bytes=num_bytes))


@pytest.mark.parametrize("policy", ["keep", "drop", "sum", "min", "max"])
def test_every_policy_has_a_word(policy):
    report = Graph.from_edges([0, 0], [1, 1], [2, 3], duplicates=policy).report
    words = {"keep": "kept", "drop": "dropped", "sum": "summed", "min": "least", "max": "greatest"}
    assert f"duplicates 1 ({words[policy]}" in str(report)


def test_counts_by_hand():
    # 0-1 given three times (once turned), loops 2-2 twice, 3 named only
    graph = Graph.from_edges([0, 1, 0, 2, 2], [1, 0, 1, 2, 2], directed=False, vertices=[3])
    report = graph.report
    assert (report.edges_given, report.edges_stored) == (5, 8)
    assert (report.duplicates, report.self_loops, report.isolated) == (3, 2, 1)
    assert (report.num_vertices, report.base, report.id_map) == (4, 0, "identity")
    assert report.num_bytes == graph.nbytes == 5 * 8 + 8 * 4
    assert report.seconds > 0


def test_directed_edges_and_their_reverses_are_no_duplicates():
    report = Graph.from_edges([0, 1, 0], [1, 0, 1]).report
    assert report.duplicates == 1
