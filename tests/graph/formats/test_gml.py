from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest
from graph_files import arcs, load_in_ranks, vertices, write

from sigps.errors import GraphError
from sigps.graph.load import load

Ranks = Callable[..., list[Any]]
TEXT = """Creator "by hand"
graph [
  directed 1
  node [ id 5 label "ann" ]
  node [ id 7 label "bob" ]
  node [ id 9 label "7" ]
  edge [ source 5 target 7 value 2.5 time 3 ]
  edge [ source 7 target 5 value 1 time 4 ]
]
"""


@pytest.mark.parametrize("name", ["g.gml", "g.gml.gz", "g", "g.txt"])
def test_nodes_edges_and_attributes(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, TEXT)
    graph = load(path)
    assert (arcs(graph), vertices(graph), graph.directed) == ([(5, 7), (7, 5)], [5, 7, 9], True)
    assert (graph.report.format, graph.report.isolated) == ("gml", 1)
    assert graph.report.notes == ["edge attributes not read: time, value (weights= and columns= read them)"]
    named = load(path, ids="string", weights=True, columns={"t": "time"})
    assert (arcs(named), vertices(named)) == (
        [("ann", "bob", 2.5, 3), ("bob", "ann", 1.0, 4)],
        ["7", "ann", "bob"],
    )


def test_what_networkx_writes_in_ranks(tmp_path: Path, run_ranks: Ranks) -> None:
    referee = networkx.gnm_random_graph(40, 80, seed=3)
    networkx.set_edge_attributes(referee, {edge: i for i, edge in enumerate(referee.edges)}, "weight")
    networkx.write_gml(referee, tmp_path / "g.gml")
    expected = sorted((u, v, referee[u][v]["weight"]) for u in referee for v in referee[u])
    for size in (1, 3):
        found = load_in_ranks(run_ranks, size, tmp_path / "g.gml", weights=True)
        assert found[:2] == [expected, list(range(40))]


@pytest.mark.parametrize(
    ("text", "options", "wrong"),
    [
        (TEXT.replace("target 7", "target 8"), {}, r"g\.gml: cannot be read as GML .*undefined target 8"),
        (TEXT.replace("id 5", "id"), {}, r"g\.gml: cannot be read as GML"),
        (TEXT[:-3], {}, r"g\.gml: cannot be read as GML"),
        (
            TEXT.replace("value 1 ", ""),
            {"weights": True},
            "the edge from 7 to 5 has no value; every edge needs one",
        ),
        (
            TEXT.replace("value 1 ", 'value "x" '),
            {"weights": "value"},
            "has the value 'x', which is no finite",
        ),
        (TEXT.replace("value 1 ", "value +INF "), {"weights": True}, "has the value inf, which is no finite"),
        (
            TEXT.replace("value 1 ", f"value {10**20} "),
            {"weights": True},
            "has the value 1000.*, which is no finite",
        ),
        (TEXT.replace("id 9", f"id {10**20}"), {}, r"g\.gml: nodes: an id is outside int64"),
        (TEXT, {"weights": 2}, "the column for 'weight' is 2; give the name of an attribute"),
        (TEXT, {"directed": False}, "the file declares a directed graph; leave directed= away"),
        (
            TEXT.replace('"7"', "7").replace('"ann"', '"7"'),
            {"ids": "string"},
            "two labels|cannot be read as GML",
        ),
        (TEXT.encode().replace(b"bob", b"\xff"), {}, r"g\.gml:5: the line is not UTF-8 text"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.gml", text), **options)
