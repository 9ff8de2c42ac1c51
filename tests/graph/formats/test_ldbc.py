from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_files import arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.formats.ldbc import ldbc_files
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]

PROPERTIES = """\
# a comment = nothing
graph.g.vertex-file = g.v
graph.g.meta.vertices = 4
graph.g.meta.edges = 2
graph.g.directed = false
graph.g.edge-properties.names = weight, time
graph.g.edge-properties.types = real, int
"""


def make(folder: Path, *, suffix: str = "", **files: str) -> Path:
    """Write g.v, g.e and further files; return their common beginning."""
    given = {"v": "1\n3\n5\n9\n", "e": "1 3 .5 70\n5 1 2 80\n", **files}
    for ending, text in given.items():
        write(folder / f"g.{ending}{'' if ending == 'properties' else suffix}", text)
    return folder / "g"


@pytest.mark.parametrize("ending", ["", ".v", ".e", ".properties"])
def test_any_of_the_files_or_their_beginning(tmp_path: Path, ending: str) -> None:
    path = make(tmp_path, properties=PROPERTIES)
    graph = load(f"{path}{ending}")
    assert arcs(graph) == [(1, 3, 0.5), (1, 5, 2.0), (3, 1, 0.5), (5, 1, 2.0)]
    assert vertices(graph) == [1, 3, 5, 9]
    assert (graph.report.format, graph.directed, graph.report.isolated) == ("ldbc", False, 1)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    path = make(tmp_path, suffix=suffix)
    assert arcs(load(f"{path}.e{suffix}", directed=True)) == [(1, 3, 0.5), (5, 1, 2.0)]
    assert arcs(load(f"{path}.v", format="ldbc", directed=True)) == [(1, 3, 0.5), (5, 1, 2.0)]


def test_the_caller_overrides_the_properties(tmp_path: Path) -> None:
    path = make(tmp_path, properties=PROPERTIES)
    graph = load(f"{path}.e", directed=True, weights=False, columns={"t": "time"})
    assert arcs(graph) == [(1, 3, 70), (5, 1, 80)]


def test_string_ids_and_no_weights(tmp_path: Path) -> None:
    path = make(tmp_path, v="ann\nbob\ndan\n", e="bob ann\n")
    graph = load(path, format="graphalytics", directed=True, ids="string")
    assert (arcs(graph), vertices(graph)) == ([("bob", "ann")], ["ann", "bob", "dan"])
    assert not graph.has_weights


def test_a_graph_without_edges(tmp_path: Path) -> None:
    assert vertices(load(make(tmp_path, e=""), directed=True)) == [1, 3, 5, 9]


def test_files_are_found_beside_each_other(tmp_path: Path) -> None:
    path = make(tmp_path, suffix=".gz", properties=PROPERTIES)
    assert ldbc_files(path) == {
        ".v": tmp_path / "g.v.gz",
        ".e": tmp_path / "g.e.gz",
        ".properties": tmp_path / "g.properties",
    }


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ranks_together_load_what_one_loads(tmp_path: Path, run_ranks: Ranks, size: int, suffix: str) -> None:
    edges = "".join(f"{i * i % 97} {i * 7 % 97} {i}\n" for i in range(300))
    path = make(tmp_path, suffix=suffix, v="".join(f"{i}\n" for i in reversed(range(100))), e=edges)
    one = load(path, directed=False)
    assert vertices(one) == list(range(100))
    assert load_in_ranks(run_ranks, size, path, directed=False) == [arcs(one), vertices(one), 0]


@pytest.mark.parametrize(
    ("files", "options", "wrong"),
    [
        ({}, {}, r"neither a \.properties file nor the caller says whether edges have a direction"),
        (
            {"properties": "graph.g.directed = maybe\n"},
            {},
            r"g\.properties: \.directed is 'maybe', .* true or",
        ),
        ({"properties": "graph.g.meta.edges = x\n"}, {}, r"g\.properties: \.meta\.edges is 'x', .* a count"),
        (
            {"properties": PROPERTIES, "e": "1 3 1 1\n"},
            {},
            r"promises 2 edges .* but the file has 1; it is cut",
        ),
        ({"v": "1\nx\n"}, {"directed": True}, r"g\.v:2: the vertex id 'x' is not an integer"),
        ({"v": ""}, {"directed": True}, r"g\.v: the file is empty"),
        (
            {"v": "1\n1\n3\n"},  # as many as occur
            {"directed": True},
            r"g\.v names the vertex 1 twice",
        ),
        (
            {"v": "1\n3\n"},
            {"directed": True},
            r"g\.v gives no row of the vertex 5: every vertex needs one",
        ),
        ({"e": "1 3\n5\n"}, {"directed": True}, r"g\.e:2: '5' has 1 field.*source target \[weight\]"),
        ({"e": "13\n"}, {"directed": True}, r"g\.e: the first row \['13'\] has one field"),
        ({"e": "1 3 nan\n"}, {"directed": True}, r"g\.e:1: the weight is nan"),
        (
            {"e": "1 3\n"},
            {"directed": True, "weights": True},
            r"column for 'weight' is number 2 .* have 2 fields",
        ),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, files: dict[str, str], options: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(make(tmp_path, **files), **options)


def test_a_missing_half(tmp_path: Path) -> None:
    path = make(tmp_path)
    path.with_suffix(".v").unlink()
    with pytest.raises(GraphError, match=r"g\.v: no such file"):
        load(path.with_suffix(".e"), directed=True)


def test_errors_in_the_vertex_file_reach_every_rank(tmp_path: Path, run_ranks: Ranks) -> None:
    path = make(tmp_path, v="1\n3\n5\n9\nx\n")

    def problem(group: Any) -> str:
        with pytest.raises(GraphError) as caught:
            load(path, group=group, directed=True)
        return str(caught.value)

    assert all("g.v:5: the vertex id 'x'" in text for text in run_ranks(3, problem))


@pytest.mark.parametrize(
    ("name", "directed"),
    [
        ("sssp/dir-input", True),
        ("sssp/undir-input", False),
        ("example/example-directed", True),
        ("example/example-undirected", False),
    ],
)
def test_validation_graphs(conformance_dir: Path, name: str, directed: bool) -> None:
    path = conformance_dir / "ldbc_graphalytics" / "validation-graphs" / name
    rows = [line.split() for line in Path(f"{path}.e").read_text().splitlines()]
    given = [(int(u), int(v), float(w)) for u, v, w in rows]
    graph = load(path, directed=directed)
    assert vertices(graph) == sorted(int(line) for line in Path(f"{path}.v").read_text().split())
    assert arcs(graph) == sorted(given if directed else [*given, *((v, u, w) for u, v, w in given)])


@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_the_example_as_an_adjacency_list_is_the_same_graph(conformance_dir: Path, kind: str) -> None:
    folder = conformance_dir / "ldbc_graphalytics" / "validation-graphs" / "example"
    directed = kind == "directed"
    pair = load(folder / f"example-{kind}", directed=directed, weights=False)
    lists = load(folder / f"example-{kind}-input", directed=directed)
    assert (arcs(pair), vertices(pair)) == (arcs(lists), vertices(lists))


def test_properties_of_vertices(tmp_path: Path, run_ranks: Ranks) -> None:
    more = PROPERTIES + "graph.g.vertex-properties.names = age, name, score\n"
    path = make(tmp_path, properties=more, v="1 40 ann .5\n3 50 bob 1\n5 60 eve 2\n9 70 joe 3.25\n")

    def on_rank(group: Any) -> Any:
        graph = load(path, group=group)
        return {name: column.tolist() for name, column in graph.vertex_columns.items()}, graph.report.notes

    assert on_rank(None)[0] == {"age": [40, 50, 60, 70], "score": [0.5, 1.0, 2.0, 3.25]}
    assert "vertex property 'name' not read: it holds text" in on_rank(None)[1]
    for size in (2, 3):
        parts = [columns for columns, _ in run_ranks(size, on_rank)]
        assert [age for part in parts for age in part["age"]] == [40, 50, 60, 70]


def test_byte_order_marks_line_ends_and_compressed_properties(tmp_path: Path) -> None:
    path = make(tmp_path, v="\ufeff1\r3\r\n5\n9", e="\ufeff1 3 .5 70\r5 1 2 80")
    write(tmp_path / "g.properties.gz", "\ufeffgraph.g.directed = true\rgraph.g.meta.edges = 2\r")
    graph = load(path)
    assert (arcs(graph), vertices(graph)) == ([(1, 3, 0.5), (5, 1, 2.0)], [1, 3, 5, 9])


@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        (b"a=1\ngraph.g.directed = \xff\n", r"g\.properties:2: the line is not UTF-8 text"),
        ("graph.g.meta.edges = ²".encode(), r"\.meta\.edges is '²', but it must be a count"),
        (b"graph.g.meta.edges = " + b"9" * 5000, r"must be a count"),
    ],
)
def test_properties_that_cannot_be_read(tmp_path: Path, properties: bytes, wrong: str) -> None:
    path = make(tmp_path)
    write(tmp_path / "g.properties", properties)
    with pytest.raises(GraphError, match=wrong) as caught:
        load(path)
    assert len(str(caught.value)) < 24 * 80
