"""Graphs out to other packages, and back."""

from __future__ import annotations

from typing import Any

import narwhals
import networkx as nx
import numpy as np
import polars
import pyarrow
import pytest
from thread_group import run_ranks

from sigps import Graph, GraphError
from sigps.group import Group

DIRECTED = Graph.from_edges([5, 5, 7, 9], [7, 9, 9, 9], [1.0, 8.0, 2.5, 3.0], columns={"lanes": [1, 2, 3, 4]})
UNDIRECTED = Graph.from_edges(["b", "a", "a"], ["a", "a", "c"], directed=False)


def test_a_table_of_edges() -> None:
    expected = {
        "source": [5, 5, 7, 9],
        "target": [7, 9, 9, 9],
        "weight": [1.0, 8.0, 2.5, 3.0],
        "lanes": [1, 2, 3, 4],
    }
    assert DIRECTED.to_arrow().to_pydict() == expected
    assert DIRECTED.to_pandas().to_dict("list") == expected


def test_an_undirected_edge_is_there_once() -> None:
    assert UNDIRECTED.to_arrow().to_pydict() == {"source": ["a", "a", "a"], "target": ["a", "b", "c"]}


@pytest.mark.parametrize(
    "graph", [DIRECTED, UNDIRECTED, Graph.from_edges([0, 0, 1], [1, 1, 0], directed=False)]
)
def test_from_its_own_stream_comes_the_same_graph(graph: Graph) -> None:
    weights = "weight" if graph.has_weights else None
    columns = {name: name for name in graph.columns if name != "weight"}
    again = Graph.from_arrow(graph, weights=weights, columns=columns, directed=graph.directed)
    assert np.array_equal(again.offsets, graph.offsets)
    assert np.array_equal(again.targets, graph.targets)
    assert np.array_equal(np.asarray(again.ids), np.asarray(graph.ids))
    for name, column in graph.columns.items():
        assert np.array_equal(again.columns[name], column)


def test_polars_reads_a_graph_as_it_is() -> None:
    assert polars.DataFrame(DIRECTED).columns == ["source", "target", "weight", "lanes"]


def test_ranks_have_the_edges_of_their_rows() -> None:
    def edges(group: Group) -> list[Any]:
        graph = Graph.from_edges([5, 5, 7, 9], [7, 9, 9, 9], group=group)
        return graph.to_arrow().to_pylist()

    parts = run_ranks(2, edges)
    assert all(parts)
    assert [e for part in parts for e in part] == DIRECTED.to_arrow().select(["source", "target"]).to_pylist()


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (DIRECTED, nx.DiGraph),
        (UNDIRECTED, nx.Graph),
        (Graph.from_edges([0, 0], [1, 1], [1.5, 2.5]), nx.MultiDiGraph),
        (Graph.from_edges([0, 0], [1, 1], [1.5, 2.5], directed=False), nx.MultiGraph),
    ],
)
def test_networkx(graph: Graph, kind: type) -> None:
    made = graph.to_networkx()
    assert type(made) is kind
    assert list(made) == np.asarray(graph.ids).tolist()
    back = Graph.from_networkx(made, columns={n: n for n in graph.columns if n != "weight"})
    assert np.array_equal(back.targets, graph.targets)
    assert back.columns.keys() == graph.columns.keys()
    assert all(
        np.array_equal(np.sort(back.columns[n]), np.sort(column)) for n, column in graph.columns.items()
    )


def test_networkx_has_vertex_columns_and_isolated_vertices() -> None:
    graph = Graph.from_edges([1], [2], vertices=[1, 2, 3], vertex_columns={"age": [10, 20, 30]})
    assert dict(graph.to_networkx().nodes(data="age")) == {1: 10, 2: 20, 3: 30}


def test_networkx_is_of_one_process() -> None:
    def refuse(group: Group) -> None:
        with pytest.raises(GraphError, match="2 ranks share"):
            Graph.from_edges([0, 1], [1, 0], group=group).to_networkx()

    run_ranks(2, refuse)


def test_a_column_with_the_name_of_an_end() -> None:
    with pytest.raises(GraphError, match="'target', which names an end"):
        Graph.from_edges([0], [1], columns={"target": [1.0]}).to_arrow()


TABLE = {"from": [1, 2], "to": [2, 3], "cost": [0.5, 1.5]}


@pytest.mark.parametrize(
    "frame",
    [
        pyarrow.table(TABLE).to_pandas(),
        polars.DataFrame(TABLE),
        polars.LazyFrame(TABLE),
        narwhals.from_native(polars.DataFrame(TABLE)),
    ],
    ids=["pandas", "polars", "lazy", "narwhals"],
)
@pytest.mark.parametrize("read", [Graph.from_pandas, Graph.from_dataframe])
def test_any_data_frame(frame: Any, read: Any) -> None:
    graph = read(frame, "from", "to", weights="cost")
    assert graph.to_arrow().to_pydict() == {"source": [1, 2], "target": [2, 3], "weight": [0.5, 1.5]}


def test_what_is_no_frame() -> None:
    with pytest.raises(GraphError, match="a table of pyarrow, or of a data frame, not of dict"):
        Graph.from_dataframe(TABLE)


def test_ids_are_an_array() -> None:
    assert np.asarray(UNDIRECTED.ids).tolist() == ["a", "b", "c"]
    assert len(DIRECTED.ids) == 3
    assert repr(DIRECTED.ids) == "<Ids: 3, int64; numpy.asarray(ids) has them>"
    assert repr(Graph.from_edges([4], [5]).ids) == "<Ids: 2, 4 to 5; numpy.asarray(ids) has them>"
    own = np.asarray(DIRECTED.ids)
    own[0] = 0
    assert np.asarray(DIRECTED.ids).tolist() == [5, 7, 9]
