from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from graph_files import COMPRESSORS, arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]


@pytest.mark.parametrize(
    ("text", "options", "expected", "all_vertices"),
    [
        ("1 2 30\n2 1\n7\n", {}, [(1, 2), (1, 30), (2, 1)], [1, 2, 7, 30]),
        ("# c\n1: 2, 30\n\n2:1\n7:\n", {}, [(1, 2), (1, 30), (2, 1)], [1, 2, 7, 30]),
        ("1\t30;2\r\n7\r\n2\t1", {"delimiter": ";"}, [(1, 2), (1, 30), (2, 1)], [1, 2, 7, 30]),
        ("1 2\n1 30\n2 1\n7\n", {}, [(1, 2), (1, 30), (2, 1)], [1, 2, 7, 30]),
        ("1/2/30\n2/1\n7\n", {"delimiter": "/"}, [(1, 2), (1, 30), (2, 1)], [1, 2, 7, 30]),
        (
            "1 2 30\n2 1\n3 30\n30 3 1\n7\n",
            {"directed": False},
            [(1, 2), (1, 30), (2, 1), (3, 30), (30, 1), (30, 3)],
            [1, 2, 3, 7, 30],
        ),
        ("1 1 2\n2 1\n", {"directed": False}, [(1, 1), (1, 2), (2, 1)], [1, 2]),
        (
            "1 2 .5 30 7\n2 1 .5\n8\n",
            {"weights": True},
            [(1, 2, 0.5), (1, 30, 7.0), (2, 1, 0.5)],
            [1, 2, 8, 30],
        ),
        ("1 2 .5\n2 1 .5\n", {"weights": True, "directed": False}, [(1, 2, 0.5), (2, 1, 0.5)], [1, 2]),
        (
            "ann bob\nbob ann eve\ndan\n",
            {"ids": "string"},
            [("ann", "bob"), ("bob", "ann"), ("bob", "eve")],
            ["ann", "bob", "dan", "eve"],
        ),
        ("b a\na b\n", {"ids": "string", "directed": False}, [("a", "b"), ("b", "a")], ["a", "b"]),
        ("1 2,5 3,7\n", {"weights": True}, [(1, 2, 5.0), (1, 3, 7.0)], [1, 2, 3]),
        ("1 2,5 3,7\n", {"delimiter": ","}, [(1, 2), (1, 3), (1, 5), (1, 7)], [1, 2, 3, 5, 7]),
        ("\ufeff1 : 2,3\n", {}, [(1, 2), (1, 3)], [1, 2, 3]),
        ("with whim\n", {"ids": "string", "delimiter": "whitespace"}, [("with", "whim")], ["whim", "with"]),
        ("-5 9000000000\n", {}, [(-5, 9000000000)], [-5, 9000000000]),
        ("4\n2\n", {}, [], [2, 4]),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 9, 1 << 20])
def test_adjacency_lists(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: dict[str, Any],
    expected: list[Any],
    all_vertices: list[Any],
    block_bytes: int,
) -> None:
    monkeypatch.setattr(
        "sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": block_bytes}
    )
    graph = load(write(tmp_path / "g.adj", text), **options)
    assert (arcs(graph), vertices(graph)) == (expected, all_vertices)
    assert graph.directed == options.get("directed", True)
    assert graph.report.format == "adjacency"
    assert graph.report.rows_skipped == sum(not line or line[0] == "#" for line in text.splitlines())


def test_what_networkx_writes(tmp_path: Path) -> None:
    referee = networkx.gnm_random_graph(60, 150, seed=4, directed=True)
    networkx.write_adjlist(referee, tmp_path / "g.adjlist")
    graph = load(tmp_path / "g.adjlist")
    assert arcs(graph) == sorted(referee.edges)
    assert vertices(graph) == sorted(referee.nodes)


def test_the_first_lines_tell_an_adjacency_list_without_a_suffix(tmp_path: Path) -> None:
    assert load(write(tmp_path / "dir-input", "1 2 3\n2 1\n3\n")).report.format == "adjacency"
    with pytest.raises(GraphError, match=r"edges:2: '2' has 1 field"):  # 1 has two lines: no adjacency list
        load(write(tmp_path / "edges", "1 2\n2\n1 3\n"))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("suffix", list(COMPRESSORS))
@pytest.mark.parametrize("directed", [True, False])
def test_ranks_together_load_what_one_loads(
    tmp_path: Path, run_ranks: Ranks, monkeypatch: pytest.MonkeyPatch, size: int, suffix: str, directed: bool
) -> None:
    monkeypatch.setattr("sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": 64})
    referee = networkx.gnm_random_graph(80, 120, seed=9, directed=directed)
    lines = [
        " ".join(map(str, [v, *referee.adj[v]])) + "\n" for v in np.random.default_rng(0).permutation(80)
    ]
    path = write(tmp_path / f"g.adj{suffix}", "# c\n" + "".join(lines))
    one = load(path, directed=directed)
    assert load_in_ranks(run_ranks, size, path, directed=directed) == [arcs(one), vertices(one), 1]
    assert arcs(one) == sorted((u, v) for u in referee for v in referee.adj[u])
    assert vertices(one) == list(range(80))


@pytest.mark.parametrize(
    ("text", "options", "wrong"),
    [
        ("# c\n", {}, r"g\.adj: the file has no rows"),
        ("1 2\n3 x\n", {}, r"g\.adj:2: 'x' is not an integer within int64, in '3 x'"),
        ("1 2 .5\n", {}, r"g\.adj:1: '\.5' is not an integer"),
        ("3 4\n1 2,5 3,7\n", {}, r"g\.adj:2: blanks separate .* weights=True; .* delimiter=','"),
        ("3:4\n1: 2,5 3,7\n", {}, r"g\.adj:2: blanks separate fields, and another mark does"),
        ("# c\n1 2,5\n", {}, r"g\.adj:2: blanks separate fields, and another mark does"),
        ("1 0xffffffffffffffff\n", {}, r"g\.adj:1: '0xffffffffffffffff' is not an integer within int64"),
        (f"1 {'9' * 5000}\n", {}, r"9' is not an integer within int64"),
        ("1 2\n", {"delimiter": "é"}, r"delimiter='é': give ASCII marks"),
        (
            "1 2 3\n#\n2 1\n",
            {"directed": False},
            r"2 edges are listed by their smaller end and 1 by .*directed=True",
        ),
        ("1 2\n2 1 .5 3\n", {"weights": True}, r"g\.adj:1: a weight is missing"),
        ("1 2 .5\n2 1.5 1\n", {"weights": True}, r"g\.adj:2: 1\.5 stands where an id must"),
        ("1 2 .5\n\n2 3 nan\n", {"weights": True}, r"g\.adj:3: the weight is nan, but it must be"),
        (
            "1 2 .5\n2 1 .25\n",
            {"weights": True, "directed": False},
            r"with different weights at their two ends",
        ),
        ("1 2 3\n", {"weights": 2}, r"a weight follows each neighbour: weights=2 must be"),
        ("a b 3\n", {"weights": True, "ids": "string"}, r"has weights or string ids, not both"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.adj", text), **options)


@pytest.mark.parametrize("algorithm", ["bfs", "cdlp", "lcc", "pr", "wcc", "ffm"])
@pytest.mark.parametrize("kind", ["dir", "undir"])
def test_validation_graphs(conformance_dir: Path, algorithm: str, kind: str) -> None:
    path = conformance_dir / "ldbc_graphalytics" / "validation-graphs" / algorithm / f"{kind}-input"
    rows = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
    directed = kind == "dir"
    given = {(row[0], target) for row in rows for target in row[1:]}
    graph = load(path, directed=directed)
    assert graph.report.format == "adjacency"
    assert vertices(graph) == sorted({row[0] for row in rows} | {target for _, target in given})
    assert arcs(graph) == sorted(given)
    assert graph.directed == directed
