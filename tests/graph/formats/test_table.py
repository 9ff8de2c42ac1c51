"""The table of formats: detection, and that a line of it is all that a new format needs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from graph_files import write

from sigps.errors import GraphError
from sigps.graph.arrays import GraphArrays
from sigps.graph.building.edges import EdgeChunk
from sigps.graph.formats.edge_input import EdgeInput, LoadOptions
from sigps.graph.formats.table import FORMATS, Format, detect_format, format_of
from sigps.graph.load import load
from sigps.group import Group


@pytest.mark.parametrize(
    ("suffix", "lines", "expected"),
    [
        (".txt", [b"1 2"], "snap"),
        (".edges", [b"1 2"], "snap"),
        (".el", [b"1 2"], "snap"),
        (".csv", [b"1,2"], "csv"),
        (".tsv", [b"1\t2"], "tsv"),
        (".mtx", [b"1 2"], "mtx"),
        (".graph", [b"1 2"], "metis"),
        (".metis", [b"1 2"], "metis"),
        (".gr", [b"1 2"], "dimacs"),
        (".dimacs", [b"1 2"], "dimacs"),
        (".col", [b"1 2"], "dimacs"),
        (".adj", [b"1 2"], "adjacency"),
        (".adjlist", [b"1 2"], "adjacency"),
        (".gml", [b"graph ["], "gml"),
        ("", [b"graph", b"["], "gml"),
        ("", [b"graph 1 2"], "snap"),
        ("", [b"1 2", b"2 3"], "snap"),
        (".unknown", [b"1 2", b"2 3"], "snap"),
        (".txt", [b"%%MatrixMarket matrix coordinate real general"], "mtx"),
        (".txt", [b"p tw 3 4", b"1 2"], "snap"),
        ("", [b"# c", b"p tw 3 4", b"1 2"], "dimacs"),
        ("", [b"c comment", b"p sp 3 4", b"a 1 2 3"], "dimacs"),
        ("", [b"a 1 2 3"], "dimacs"),
        ("", [b"1 2 3", b"2 1", b"3"], "adjacency"),
        ("", [b"# x y z", b"1 2", b"2 1"], "snap"),
        ("", [b"1 2 3", b"1 4"], "snap"),
        (".txt", [b"1 2 3", b"2 1", b"3"], "snap"),
        ("", [], "snap"),
    ],
)
def test_the_format_of_a_text(suffix: str, lines: list[bytes], expected: str) -> None:
    assert format_of(suffix, lines) == expected


def read_circle(path: Path, options: LoadOptions, group: Group) -> EdgeInput:
    """Read a file that holds one number n: the directed circle 0, 1, ..., n - 1, 0."""
    ids = np.arange(int(path.read_text().split()[1]))
    own = ids[group.rank :: group.size]
    return EdgeInput("circle", True, iter([EdgeChunk(own, (own + 1) % ids.size)]))


def write_circle(graph: GraphArrays, path: object) -> None:
    Path(str(path)).write_text(f"circle {graph.num_vertices}\n")


def test_a_new_format_is_one_line_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    circle = Format(read_circle, (".circle",), begins=re.compile(rb"circle \d"), write=write_circle)
    monkeypatch.setitem(FORMATS, "circle", circle)
    for name in ("a.circle", "b.txt", "c"):
        (tmp_path / name).write_text("circle 4\n")
        assert detect_format(tmp_path / name) == "circle"
        graph = load(tmp_path / name)
        assert (graph.report.format, graph.offsets.tolist(), graph.targets.tolist()) == (
            "circle",
            [0, 1, 2, 3, 4],
            [1, 2, 3, 0],
        )
    assert load(tmp_path / "a.circle", format="circle").num_edges == 4


def test_no_suffix_names_two_formats() -> None:
    suffixes = [suffix for format in FORMATS.values() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "g.rsa",
            "Rutherford-Boeing files are not read: .* Matrix Market .*from_scipy takes what scipy.io.hb_read",
        ),
        ("g.rb.gz", "Rutherford-Boeing files are not read"),
        ("g.graphml", "GraphML files are not read: .*from_networkx takes what networkx.read_graphml reads"),
        ("g.mat", "MATLAB files are not read"),
    ],
)
def test_formats_that_are_not_read_are_named(tmp_path: Path, name: str, said: str) -> None:
    path = write(tmp_path / name, "1 2\n")
    with pytest.raises(GraphError, match=rf"{name}: {said}"):
        load(path)
    assert load(path, format="snap").num_edges == 1
