from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_files import arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]


@pytest.mark.parametrize(
    ("text", "expected", "directed", "all_vertices", "num_skipped"),
    [
        ("c x\np sp 4 2\nc 1 2 3\na 1 3 7\nc a\na 3 1 -2\n", [(1, 3, 7), (3, 1, -2)], True, [1, 2, 3, 4], 4),
        ("p tw 4 2\n1 3\n3 2\n", [(1, 3), (2, 3), (3, 1), (3, 2)], False, [1, 2, 3, 4], 1),
        ("c\np edge 3 1\ne 1 3\n", [(1, 3), (3, 1)], False, [1, 2, 3], 2),
        ("p col 3 1\ne 1 3\n", [(1, 3), (3, 1)], False, [1, 2, 3], 1),
        ("a 0 9 3\na 9 0 1\n", [(0, 9, 3), (9, 0, 1)], True, [0, 9], 0),
        ("e 0 9\n", [(0, 9), (9, 0)], False, [0, 9], 0),
        ("0 9\n", [(0, 9)], True, [0, 9], 0),
        ("p sp 3 1\na 1 2\n", [(1, 2)], True, [1, 2, 3], 1),
        ("p sp 3 1\na 1 2 .5\n", [(1, 2, 0.5)], True, [1, 2, 3], 1),
        ("p sp 3 0\n", [], True, [1, 2, 3], 1),
        ("p  sp\t3 1\n a  1\t2  5 \n", [(1, 2, 5)], True, [1, 2, 3], 1),
    ],
)
def test_kinds_of_files(
    tmp_path: Path,
    text: str,
    expected: list[Any],
    directed: bool,
    all_vertices: list[int],
    num_skipped: int,
) -> None:
    graph = load(write(tmp_path / "g.gr", text))
    assert arcs(graph) == expected
    assert (graph.directed, vertices(graph)) == (directed, all_vertices)
    assert (graph.report.format, graph.report.rows_skipped) == ("dimacs", num_skipped)


def test_integer_weights_stay_integers(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.gr.xz", f"p sp 2 1\na 1 2 {2**53 + 1}\n"))
    assert graph.columns["weight"].dtype == np.int64
    assert arcs(graph) == [(1, 2, 2**53 + 1)]


def test_options(tmp_path: Path) -> None:
    path = write(tmp_path / "g.gr", "p sp 2 1\na 1 2 5\n")
    assert arcs(load(path, weights=False)) == [(1, 2)]
    assert arcs(load(path, directed=False)) == [(1, 2, 5), (2, 1, 5)]
    with pytest.raises(GraphError, match="has no weights; leave weights=True away"):
        load(write(tmp_path / "h.gr", "p tw 2 1\n1 2\n"), weights=True)


def test_the_first_lines_tell_dimacs_without_a_suffix(tmp_path: Path) -> None:
    for text in ("p sp 2 1\na 1 2 5\n", "c x\np sp 2 1\na 1 2 5\n", "a 1 2 5\n"):
        assert load(write(tmp_path / "g", text)).report.format == "dimacs"


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ranks_together_load_what_one_loads(tmp_path: Path, run_ranks: Ranks, size: int, suffix: str) -> None:
    draw = np.random.default_rng(6).integers(1, 31, (300, 3)).tolist()
    text = "c\np sp 40 300\n" + "".join(f"a {u} {v} {w}\nc {u}\n" for u, v, w in draw)
    path = write(tmp_path / f"g.gr{suffix}", text)
    one = load(path)
    assert one.report.rows_skipped == 302
    assert load_in_ranks(run_ranks, size, path) == [arcs(one), vertices(one), 302]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("c only\n", r"g\.gr: the file has neither a p line nor an edge"),
        (
            "c\np sp 3\na 1 2 1\n",
            r"g\.gr:2: the problem line must be 'p <kind> <vertices> <edges>', not 'p sp 3'",
        ),
        ("p sp x 1\na 1 2 1\n", r"g\.gr:1: the problem line must be"),
        ("p sp ² 1\na 1 2 1\n", r"g\.gr:1: the problem line must be"),
        (f"p sp {10**20} 1\na 1 2 1\n", r"g\.gr:1: the problem line .* counts below 2\*\*63"),
        (f"p sp {10**12} 1\na 1 2 1\n", r"g\.gr: 1,000,000,000,000 vertices need at least"),
        (
            "p max 3 1\na 1 2 1\n",
            r"g\.gr:1: the problem 'max' is not known; graphs are of the kinds sp, edge",
        ),
        ("p sp 3 2\na 1 2 1\n", r"promises 2 edges, but the file has 1; it is cut off"),
        ("p sp 3 0\na 1 2 1\n", r"promises 0 edges, but the file has 1; correct the header"),
        ("p sp 3 1\na 1 4 1\n", r"g\.gr:2: the target id 4 is outside 1\.\.3"),
        ("p sp 3 1\na 0 1 1\n", r"g\.gr:2: the source id 0 is outside 1\.\.3"),
        ("p sp 3 2\na 1 2 1\nx 1 2 1\n", r"g\.gr:3: 'x' stands where 'a' must"),
        ("p sp 3 2\na 1 2 1\na 1 2\n", r"g\.gr:3: 'a 1 2' has 3 fields.*Edges read 'a u v weight' here"),
        ("p sp 3 1\na 1\n", r"g\.gr:2: 'a 1' has 2 fields"),
        ("p sp 3 1\na 1 y 1\n", r"g\.gr:2: the target id 'y' is not an integer"),
        (
            "p sp 3 2\na 1 2 1\na 1 2 .5\n",
            r"g\.gr:3: the weight '.5' is not an integer.*weights=3 reads fractions",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.gr", text))


def test_fractions_are_read_as_the_error_says(tmp_path: Path) -> None:
    path = write(tmp_path / "g.gr", "a 1 2 1\na 2 3 .5\n")
    with pytest.raises(GraphError, match=r'format="snap", source=1, target=2, weights=3'):
        load(path)
    assert arcs(load(path, format="snap", source=1, target=2, weights=3)) == [(1, 2, 1.0), (2, 3, 0.5)]


@pytest.mark.parametrize(
    ("name", "num_vertices", "num_edges", "directed", "weighted"),
    [
        ("USA-road-NE.gr.xz", 1524453, 1934010, False, False),
        ("USA-road-NY.gr.xz", 264346, 365050, False, False),
        ("rome99.gr.xz", 3353, 8870, True, True),
        ("south_seattle_car.gr.xz", 26261, 49604, True, True),
    ],
)
def test_real_graphs(
    data_dir: Path, name: str, num_vertices: int, num_edges: int, directed: bool, weighted: bool
) -> None:
    graph = load(data_dir / name)
    assert (graph.num_vertices, graph.report.edges_given) == (num_vertices, num_edges)
    assert (graph.directed, graph.has_weights) == (directed, weighted)
    assert graph.report.isolated == 0
