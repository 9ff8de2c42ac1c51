from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import COMPRESSORS, arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]

# Triangle 1 2 3 with the weights 12, 13, 23, and vertex 4 alone.
EDGES = [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
WEIGHTED = [(u, v, 10 * min(u, v) + max(u, v)) for u, v in EDGES]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 3\n2 3\n1 3\n1 2\n\n", EDGES),
        ("% c\n4 3 0\n 2 3\n% c\n1 3 \n1\t2\n\n", EDGES),
        ("4 3 000\r\n2 3\r\n1 3\r\n1 2\r\n\r\n", EDGES),
        ("4 3 1\n2 12 3 13\n1 12 3 23\n1 13 2 23\n\n", WEIGHTED),
        ("4 3 001\n2 12 3 13\n1 12 3 23\n1 13 2 23\n\n", WEIGHTED),
        ("4 3 10\n7 2 3\n7 1 3\n7 1 2\n7\n", EDGES),
        ("4 3 11\n7 2 12 3 13\n7 1 12 3 23\n7 1 13 2 23\n7\n", WEIGHTED),
        ("4 3 011 2\n7 8 2 12 3 13\n7 8 1 12 3 23\n7 8 1 13 2 23\n7 8\n", WEIGHTED),
        ("4 3 100\n9 2 3\n9 1 3\n9 1 2\n9\n", EDGES),
        ("4 3 101\n9 2 12 3 13\n9 1 12 3 23\n9 1 13 2 23\n9\n", WEIGHTED),
        ("4 3 110 2\n9 7 8 2 3\n9 7 8 1 3\n9 7 8 1 2\n9 7 8\n", EDGES),
        ("4 3 111 1\n9 7 2 12 3 13\n9 7 1 12 3 23\n9 7 1 13 2 23\n9 7\n", WEIGHTED),
        ("4 3\n2 3\n1 3\n1 2\n\n\n  \n", EDGES),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 5, 1 << 20])
def test_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: list[Any], block_bytes: int
) -> None:
    monkeypatch.setattr(
        "sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": block_bytes}
    )
    graph = load(write(tmp_path / "g.graph", text))
    assert arcs(graph) == expected
    assert vertices(graph) == [1, 2, 3, 4]
    assert not graph.directed
    assert (graph.report.format, graph.report.edges_given, graph.report.isolated) == ("metis", 3, 1)
    assert graph.report.rows_skipped == 1 + text.count("%")


def test_weights_can_be_left(tmp_path: Path) -> None:
    path = write(tmp_path / "g.graph", "2 1 1\n2 5\n1 5\n")
    assert arcs(load(path, weights=False)) == [(1, 2), (2, 1)]
    assert load(path).columns["weight"].dtype == np.int64
    with pytest.raises(GraphError, match="a METIS file of format 000 has no weights"):
        load(write(tmp_path / "h.graph", "2 1\n2\n1\n"), weights=True)


def test_directed_takes_each_listing(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.graph", "3 1\n2 3\n\n\n"), directed=True)
    assert (graph.directed, arcs(graph)) == (True, [(1, 2), (1, 3)])
    graph = load(write(tmp_path / "h.graph", "3 3\n2 3\n\n1\n"), directed=True)  # the header counts arcs
    assert (graph.directed, arcs(graph)) == (True, [(1, 2), (1, 3), (3, 1)])


def test_a_self_loop_is_one_edge(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.graph", "2 2\n1 2\n1\n"))
    assert arcs(graph) == [(1, 1), (1, 2), (2, 1)]


def test_parallel_edges_count(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.graph", "2 2\n2 2\n1 1\n"))
    assert (graph.report.edges_given, graph.report.duplicates) == (2, 1)


def test_lines_missing_at_the_end_are_isolated_vertices_if_all_edges_are_there(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.graph", "5 1\n2\n1\n"))
    assert vertices(graph) == [1, 2, 3, 4, 5]
    assert graph.report.notes == ["no lines for the last 3 vertices: taken as isolated"]


@pytest.mark.parametrize("text", ["0 0\n", "3 0", "3 0\n\n\n\n"])
def test_graphs_without_edges(tmp_path: Path, text: str) -> None:
    graph = load(write(tmp_path / "g.graph", text))
    assert (graph.num_vertices, graph.num_edges) == (int(text[0]), 0)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("suffix", list(COMPRESSORS))
def test_ranks_together_load_what_one_loads(
    tmp_path: Path, run_ranks: Ranks, monkeypatch: pytest.MonkeyPatch, size: int, suffix: str
) -> None:
    monkeypatch.setattr("sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": 64})
    draw = np.random.default_rng(2)
    upper = np.triu(draw.integers(1, 9, (70, 70)) * (draw.random((70, 70)) < 0.1), 1)
    matrix = upper + upper.T
    lines = ["".join(f" {v + 1} {row[v]}" for v in np.flatnonzero(row)) + "\n%\n" for row in matrix]
    head = f"70 {np.count_nonzero(upper)} 1\n"
    path = write(tmp_path / f"g.graph{suffix}", head + "".join(lines))
    one = load(path)
    assert arcs(one) == [(u + 1, v + 1, w) for (u, v), w in np.ndenumerate(matrix) if w]
    assert load_in_ranks(run_ranks, size, path) == [arcs(one), vertices(one), 71]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("% only\n", r"g\.graph: the file has no header 'n m \[fmt \[ncon\]\]'"),
        ("%\n3\n", r"g\.graph:2: the header must be 'n m \[fmt \[ncon\]\]'.*not '3'"),
        ("3 x\n", r"g\.graph:1: the header must be"),
        ("3 1 2\n", r"the header must be .* digits 0 and 1"),
        ("3 1 0001\n", r"the header must be"),
        ("3 1 011 1 1\n", r"the header must be"),
        ("2 1\n3\n1\n", r"g\.graph:2: the neighbour 3 is outside 1\.\.2, in '3'"),
        ("2 1\n2\n0\n", r"g\.graph:3: the neighbour 0 is outside 1\.\.2"),
        ("2 1\n2\n%\nx1\n", r"g\.graph:4: 'x1' is not an integer within int64, in 'x1'"),
        ("2 1\n2\n1.0\n", r"g\.graph:3: '1\.0' is not an integer"),
        ("2 1\n2\n1\n1\n", r"g\.graph:4: the header promises 2 vertices, but this line is one more"),
        (
            "2 1 1\n2 5\n1\n",
            r"g\.graph:3: format 001 needs 0 fields before .* a weight after each, .* has 1 field",
        ),
        ("2 1 10\n1 2\n\n", r"g\.graph:3: format 010 needs 1 fields before the neighbours, .* has 0 fields"),
        (
            "3 2\n2 3\n1\n\n",
            r"2 edges are listed by their smaller end and 1 by their larger.*Correct the file",
        ),
        (
            "3 2\n2\n3\n\n",
            r"2 edges are listed by their smaller end and 0 by their larger.*directed=True takes",
        ),
        (f"{10**12} 1\n2\n1\n", r"g\.graph:1: 1,000,000,000,000 vertices need at least 32,000 GB"),
        (f"2 {10**20}\n2\n1\n", r"g\.graph:1: the header must be .* counts below 2\*\*63"),
        (f"2 1 010 {10**23}\n2\n1\n", r"g\.graph:1: the header must be .* counts below 2\*\*63"),
        (f"2 1 010 {10**12}\n2\n1\n", r"g\.graph:2: format 010 needs"),
        ("2 ²\n2\n1\n", r"g\.graph:1: the header must be"),
        ("3 2\n2\n1\n2\n", r"1 edges are listed by their smaller end and 2 by their larger"),
        ("4 2\n2\n1 3\n\n1\n", r"some edges are listed by one end only, or with different weights"),
        ("2 1 1\n2 5\n1 6\n", r"some edges are listed by one end only, or with different weights"),
        (
            "2 2\n2\n1\n",
            r"promises 2 edges, or 4 neighbours, but 2 of 2 vertices .* name 2; correct the header",
        ),
        (
            "4 9\n2\n1\n",
            r"promises 9 edges, or 18 neighbours, but 2 of 4 vertices .* name 2; the file is cut off",
        ),
    ],
)
@pytest.mark.parametrize("block_bytes", [3, 1 << 20])
def test_what_is_wrong_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, wrong: str, block_bytes: int
) -> None:
    monkeypatch.setattr(
        "sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": block_bytes}
    )
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.graph", text))


def test_a_wrong_line_is_an_error_on_every_rank(tmp_path: Path, run_ranks: Ranks) -> None:
    path = write(tmp_path / "g.graph", "3 1\n2\n1\nx\n")

    def problem(group: Any) -> str:
        with pytest.raises(GraphError) as caught:
            load(path, group=group)
        return str(caught.value)

    problems = run_ranks(3, problem)
    assert all("g.graph:4: 'x' is not an integer" in text for text in problems)
    assert sum(text.startswith("rank ") for text in problems) == 2


def test_a_real_graph(data_dir: Path) -> None:
    graph = load(data_dir / "wave.graph.xz")
    assert (graph.num_vertices, graph.report.edges_given, graph.directed) == (156317, 1059331, False)
    assert graph.num_edges == 2 * 1059331
    assert (graph.report.isolated, graph.report.duplicates, graph.report.self_loops) == (0, 0, 0)
