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

SNAP = "# Directed graph\n# FromNodeId\tToNodeId\n30\t10\n10\t20\n\n30\t10\n20\t20\n"
SNAP_ARCS = [(10, 20), (20, 20), (30, 10), (30, 10)]


@pytest.mark.parametrize("suffix", list(COMPRESSORS))
@pytest.mark.parametrize("name", ["g.txt", "g", "g.edges", "g.csv", "g.tsv", "g.el"])
def test_snap_text_by_any_name_and_compression(tmp_path: Path, name: str, suffix: str) -> None:
    graph = load(write(tmp_path / (name + suffix), SNAP))
    assert arcs(graph) == SNAP_ARCS
    assert vertices(graph) == [10, 20, 30]
    report = graph.report
    assert (report.rows_skipped, report.self_loops, report.duplicates, report.edges_given) == (3, 1, 1, 4)
    assert graph.directed
    assert not graph.has_weights
    assert report.notes == []


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("1 2\n3 4\n", {}),
        ("  1   2 \n 3\t4\n", {}),
        ("1,2\n3,4\n", {}),
        ("1, 2\n3, 4\n", {}),
        ("1;2\r\n3;4\r\n", {}),
        ("1|2\n3|4", {}),
        ("source,target\n1,2\n3,4\n", {}),
        ("FromNodeId ToNodeId\n1 2\n3 4\n", {}),
        ("target,kind,source\n2,x,1\n4,y,3\n", {}),
        ("a,b\n1,2\n3,4\n", {"header": True}),
        ("7,8\n1,2\n3,4\n", {"header": True}),
        ("c note\n1 2\nc x\n3 4\n", {"comment": "c"}),
        ("// note\n1 2\n% x\n3 4\n", {}),
        ("1:2\n3:4\n", {"delimiter": ":"}),
        ("1  2\n3\t4\n", {"delimiter": " "}),
        ("1  2\n3\t4\n", {"delimiter": "whitespace"}),
        ("x 2 1\nx 4 3\n", {"source": 2, "target": 1}),
        ("u,v,w\n2,1,5\n4,3,5\n", {"source": "v", "target": "u"}),
        ("\ufeff1 2\n3 4\n", {}),
        ("1 2\r3 4\r", {}),
        ("# a\r1,2\r\n\n3,4", {}),
    ],
)
def test_shapes_of_edge_lists(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    assert arcs(load(write(tmp_path / "g.txt", text), **options)) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("1 2 5\n3 4 .5\n", {"weights": True}, [(1, 2, 5.0), (3, 4, 0.5)]),
        ("1 2 5\n3 4 6\n", {"weights": 2}, [(1, 2, 5.0), (3, 4, 6.0)]),
        ("1 2 5\n3 4 6\n", {"weights": (2, "int64")}, [(1, 2, 5), (3, 4, 6)]),
        ("1 2 9 5\n3 4 9 6\n", {"weights": 3}, [(1, 2, 5.0), (3, 4, 6.0)]),
        ("1,2,7,5\n3,4,8,6\n", {"weights": 3, "columns": {"time": 2}}, [(1, 2, 5.0, 7), (3, 4, 6.0, 8)]),
        ("a,b,t,weight\n1,2,7,5\n3,4,8,6\n", {"weights": True}, [(1, 2, 5.0), (3, 4, 6.0)]),
        ("a,b,t,cost\n1,2,7,5\n3,4,8,6\n", {"weights": "cost"}, [(1, 2, 5.0), (3, 4, 6.0)]),
        ("1 2 7\n3 4 8.5\n", {"columns": {"t": 2}}, [(1, 2, 7.0), (3, 4, 8.5)]),
        ("1 2 7\n3 4 8\n", {"columns": {"t": (2, "float32")}}, [(1, 2, 7.0), (3, 4, 8.0)]),
        ("1 2 7\n3 4 8\n", {"weights": False}, [(1, 2), (3, 4)]),
    ],
)
def test_weights_and_columns(
    tmp_path: Path, text: str, options: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    graph = load(write(tmp_path / "g.txt", text), **options)
    assert arcs(graph) == expected
    types = [type(value) for value in arcs(graph)[0][2:]]
    assert types == [type(value) for value in expected[0][2:]]
    assert graph.has_weights == bool(options.get("weights"))


def test_columns_have_the_types_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "g.txt", "1 2 7 5 6\n")
    graph = load(path, weights=(2, "float32"), columns={"t": (3, "int32"), "u": 4})
    assert {name: column.dtype for name, column in graph.columns.items()} == {
        "weight": np.float32,
        "t": np.int32,
        "u": np.int64,
    }


def test_columns_that_are_not_read_are_told(tmp_path: Path) -> None:
    graph = load(write(tmp_path / "g.csv", "source,target,cost,time\n1,2,3,4\n"), columns={"time": 3})
    assert graph.report.notes == [
        "column 2 (cost) not read (counted from 0; weights= and columns= read further columns)"
    ]
    assert "column 2 (cost) not read" in str(graph.report)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("ann bob\neve ann\n", {}, [("ann", "bob"), ("eve", "ann")]),
        ("New York\tRome\nRome\tBad Ems\n", {}, [("New York", "Rome"), ("Rome", "Bad Ems")]),
        ("ann,bob\rbob , eve \reve,ann", {}, [("ann", "bob"), ("bob", "eve"), ("eve", "ann")]),
        ('"Doe, J",b\nb,"say ""x"""\n', {}, [("Doe, J", "b"), ("b", 'say "x"')]),
        ("source,target\nann,bob\n", {}, [("ann", "bob")]),
        ("who,whom\nann,bob\n", {"header": True}, [("ann", "bob")]),
        ("who,whom,w\nann,bob,2\n", {"weights": "w"}, [("ann", "bob", 2.0)]),
        ("1 b\nb 10\n2 10\n", {}, [("1", "b"), ("2", "10"), ("b", "10")]),
        ("# x\nzoë  ann \nann zoë\n", {}, [("ann", "zoë"), ("zoë", "ann")]),
    ],
)
def test_string_ids(
    tmp_path: Path, text: str, options: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    graph = load(write(tmp_path / "g.txt", text), ids="string", **options)
    assert arcs(graph) == expected
    assert graph.report.id_map == "strings"


@pytest.mark.parametrize(
    ("text", "options", "is_noted"),
    [
        ("payer,payee,sum\nann,bob,3\nbob,eve,4\n", {}, True),
        ("payer,payee,sum\nann,bob,3\nbob,eve,4\n", {"header": False}, False),
        ("payer,payee,sum\nann,bob,3\nbob,eve,-\n", {}, False),
        ("zoe,ann,2\nann,bob,3\n", {}, False),
        ("zoe,ann\n", {}, False),
    ],
)
def test_a_first_row_that_may_be_names_is_noted(
    tmp_path: Path, text: str, options: dict[str, Any], is_noted: bool
) -> None:
    report = load(write(tmp_path / "g.csv", text), ids="string", **options).report
    assert report.edges_given == text.count("\n")
    assert any("header=True if it names columns" in note for note in report.notes) == is_noted


def test_ids_of_any_int64(tmp_path: Path) -> None:
    low, high = -(2**63), 2**63 - 1
    graph = load(write(tmp_path / "g.txt", f"{high} {low}\n-1 5000000000\n"))
    assert arcs(graph) == [(-1, 5000000000), (high, low)]


def test_undirected_duplicates_and_self_loops(tmp_path: Path) -> None:
    path = write(tmp_path / "g.txt", "1 2 5\n2 1 3\n3 3 1\n")
    graph = load(path, directed=False, weights=True, duplicates="min", self_loops="drop")
    assert arcs(graph) == [(1, 2, 3.0), (2, 1, 3.0)]
    assert vertices(graph) == [1, 2, 3]
    assert (graph.report.duplicates, graph.report.self_loops, graph.report.isolated) == (1, 1, 1)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("suffix", list(COMPRESSORS))
@pytest.mark.parametrize("ids", ["int", "string"])
def test_ranks_together_load_what_one_loads(
    tmp_path: Path, run_ranks: Ranks, monkeypatch: pytest.MonkeyPatch, size: int, suffix: str, ids: str
) -> None:
    draw = np.random.default_rng(3)
    rows = draw.integers(0, 60, (2000, 2)) ** 2
    lines = [f"{u}\t{v}\t{i}\n" + ("# c\n" if i % 9 == 0 else "") for i, (u, v) in enumerate(rows.tolist())]
    path = write(tmp_path / f"g.txt{suffix}", "# head\n" + "".join(lines))
    monkeypatch.setattr("sigps.graph.formats.blocks.TextFile.__init__.__kwdefaults__", {"block_bytes": 500})
    options: dict[str, Any] = {"weights": True, "ids": ids}
    one = load(path, **options)
    assert load_in_ranks(run_ranks, size, path, **options) == [
        arcs(one),
        vertices(one),
        one.report.rows_skipped,
    ]
    assert one.report.rows_skipped == 1 + sum("#" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "options", "wrong"),
    [
        ("# only\n\n% comments\n", {}, r"g\.txt: the file has no rows, only 3 blank or comment lines"),
        ("source,target\n", {"header": True}, r"no rows but the header 'source, target'"),
        ("source,target\n", {}, r"no rows but the header 'source, target'"),
        (
            "a,b\n1,2.0\n",
            {},
            r"g\.txt:2: the target id '2\.0' is not an integer: write .* without a decimal point",
        ),
        ("who,whom\nann,bob\n", {}, r"g\.txt:2: the source id 'ann' is not an integer, "),
        ("1\n2\n", {}, r"the first row \['1'\] has one field, but an edge needs two ends. delimiter="),
        ("ann bob\n", {}, r"g\.txt:1: the source id 'ann' is not an integer, .*ids=\"string\""),
        ("1 2\n3 x7\n", {}, r"g\.txt:2: the target id 'x7' is not an integer, in '3 x7'. ids=\"string\""),
        ("1 2\n1.5 2\n", {}, r"g\.txt:2: the source id '1.5' is not an integer"),
        ("1 2\n3\n", {}, r"g\.txt:2: '3' has 1 field, but the rows of this file have 2"),
        ("1 2 3\n4 5\n", {}, r"g\.txt:2: '4 5' has 2 fields, but .* have 3.*delimiter=, comment="),
        ("1 2 nan\n", {"weights": True}, r"g\.txt:1: the weight is nan"),
        ("1 2 1\n3 4 inf\n", {"weights": True}, r"g\.txt:2: the weight is inf"),
        ("1 2 1\n3 4 x\n", {"weights": True}, r"g\.txt:2: the weight 'x' is not a number"),
        (
            "1 2 1\n",
            {"weights": 3},
            r"the column for 'weight' is number 3 \(counted from 0\), but rows have 3",
        ),
        ("1 2\n", {"weights": True}, r"the column for 'weight' is number 2"),
        ("1 2 1\n", {"weights": "cost"}, r"named 'cost', but the file has no header; give its position"),
        (
            "a,b,coast\n1,2,3\n",
            {"weights": "cost"},
            r"named 'cost', but the columns are a, b, coast; try 'coast'",
        ),
        (
            "from,payee,sum\nann,bob,3.5\n",
            {"ids": "string", "weights": "some"},
            r"named 'some', but the columns are from, payee, sum; try 'sum'",
        ),
        (
            "from,payee,sum\nann,bob,3\n",
            {"weights": "sum"},
            r"g\.txt:2: the source id 'ann' .*ids=\"string\"",
        ),
        ("ann,bob\nann,\n", {"ids": "string"}, r"g\.txt:2: the target id is empty, .* remove such rows"),
        ("ann bob\nbob eve\n", {"ids": "string", "weights": "sum"}, "the file has no header"),
        ("1 2 1\n", {"source": 4}, r"the source column is number 4"),
        ("1 2 1\n", {"columns": {"t": (2, "int8")}}, r"column 't' has type 'int8'; choose one of int64"),
        ("1 2 1\n", {"columns": {"weight": 2}, "weights": 2}, r"columns= has 'weight', which another"),
        ("1 2 1\n", {"columns": {"target": 2}}, r"columns= has 'target', which another option"),
        ("1 2 1\n", {"columns": {"a": 2, "b": (2, "float32")}}, r"field 2 .* as int64 and as float32"),
        (
            "1 2\n",
            {"delimiter": "::"},
            r"delimiter='::': give one ASCII character, no quote, or 'whitespace'",
        ),
        (
            "1 2 3\n" * 60 + "1 2 3.5\n",
            {"columns": {"t": 2}},
            r"g\.txt:61: the t '3.5' is .*\(2, \"float64\"\)",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, options: dict[str, Any], wrong: str) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "g.txt", text), **options)


@pytest.mark.parametrize(
    ("name", "num_vertices", "num_edges", "num_loops", "directed"),
    [
        ("luxembourg_osm.txt", 114599, 119666, 0, False),
        ("cnr-2000.txt", 325557, 3216152, 87442, True),
        ("web-NotreDame.txt", 325729, 1497134, 27455, True),
        ("soc-Slashdot0902.txt", 82168, 948464, 78303, True),
        ("soc-Epinions1.txt", 75879, 508837, 0, True),
        ("facebook_combined.txt", 4039, 88234, 0, False),
        ("wiki-Vote.txt", 7115, 103689, 0, True),
        ("email-Enron.txt", 36692, 183831, 0, False),
        ("email-Eu-core.txt", 1005, 25571, 642, True),
        ("p2p-Gnutella31.txt", 62586, 147892, 0, True),
        ("as-caida20071105.txt", 26475, 53381, 0, False),
        ("USPowerGrid.txt", 4941, 6594, 0, False),
        ("ca-CondMat.csv", 23133, 186936, 58, True),
        ("delaunay_n16.txt", 65536, 196575, 0, False),
        ("sx-mathoverflow.txt", 24818, 506550, 116109, True),
    ],
)
def test_real_graphs(
    data_dir: Path, name: str, num_vertices: int, num_edges: int, num_loops: int, directed: bool
) -> None:
    graph = load(data_dir / f"{name}.xz", directed=directed)
    assert (graph.num_vertices, graph.report.edges_given) == (num_vertices, num_edges)
    assert graph.report.self_loops == num_loops
    assert graph.num_edges == (num_edges if directed else 2 * num_edges - num_loops)
    assert graph.report.isolated == 0


def test_a_temporal_graph_keeps_its_times(data_dir: Path) -> None:
    graph = load(data_dir / "sx-mathoverflow.txt.xz", columns={"time": 2})
    assert graph.columns["time"].dtype == np.int64
    assert int(graph.columns["time"].min()) == 1254192988  # the first line: the file is in order of time
    distinct = load(data_dir / "sx-mathoverflow.txt.xz", duplicates="drop")
    assert distinct.num_edges == 239978


def test_a_real_graph_in_ranks(data_dir: Path, run_ranks: Ranks) -> None:
    path = data_dir / "wiki-Vote.txt.xz"
    one = load(path)
    assert load_in_ranks(run_ranks, 3, path) == [arcs(one), vertices(one), 4]
