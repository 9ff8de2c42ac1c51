"""Vertex columns: given in many forms, kept with their vertices on any number of ranks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
from graph_files import arcs, load_in_ranks, write

from sigps import ConfigError, Graph, GraphError, load
from sigps.graph.fingerprint import fingerprint
from sigps.graph.formats.edge_list import write_edge_list
from sigps.graph.load import open_store
from sigps.group import Group

Ranks = Callable[..., list[Any]]

EDGES = ([30, 10, 20, -5, 30], [10, 20, 5, 30, -5])
VERTICES = [5, 10, 20, 30, -5, 99]
AGES = {5: 1, 10: 2, 20: 3, 30: 4, -5: 5, 99: 6}
POINTS = {oid: (2.0 * i, 2.0 * i + 1) for i, oid in enumerate(VERTICES)}


def build(group: Group | None = None, **options: Any) -> Graph:
    columns = {
        "age": np.array(list(AGES.values()), np.int16),
        "point": np.array(list(POINTS.values())),
        "seed": {30: 2.5, -5: 1},
    }
    return Graph.from_edges(*EDGES, vertices=VERTICES, vertex_columns=columns, group=group, **options)


def by_id(graph: Graph, name: str) -> dict[Any, Any]:
    """Return a column's values of this rank's rows by ids."""
    rows = np.arange(graph.first_row, graph.first_row + graph.num_rows)
    values = graph.vertex_columns[name].tolist()
    return dict(zip(graph.ids.to_oids(rows).tolist(), values, strict=True))


def merged(parts: list[dict[Any, Any]]) -> dict[Any, Any]:
    whole: dict[Any, Any] = {}
    for part in parts:
        assert not whole.keys() & part.keys()
        whole |= part
    return whole


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("twin", ["as it is", "undirected", "both_ways"])
def test_values_stay_with_their_vertices(run_ranks: Ranks, size: int, twin: str) -> None:
    def on_rank(group: Group) -> Any:
        graph = build(group)
        graph = graph if twin == "as it is" else getattr(graph, twin)()
        assert graph.vertex_columns["age"].dtype == np.int16
        return [by_id(graph, name) for name in ("age", "point", "seed")]

    ages, points, seeds = zip(*run_ranks(size, on_rank), strict=True)
    assert merged(list(ages)) == AGES
    assert merged(list(points)) == {oid: list(point) for oid, point in POINTS.items()}
    assert merged(list(seeds)) == {oid: {30: 2.5, -5: 1.0}.get(oid, 0.0) for oid in VERTICES}


@pytest.mark.parametrize(("writers", "readers"), [(1, 1), (1, 3), (3, 1), (2, 3)])
def test_a_store_holds_them(run_ranks: Ranks, tmp_path: Path, writers: int, readers: int) -> None:
    path = tmp_path / "g.sigps"
    run_ranks(writers, lambda group: build(group).save(path))

    def read(group: Group) -> Any:
        graph = open_store(path, group, verify="full")
        assert list(graph.vertex_columns) == ["age", "point", "seed"]
        assert [c.dtype for c in graph.vertex_columns.values()] == [np.int16, np.float64, np.float64]
        return by_id(graph, "age"), by_id(graph, "point")

    ages, points = zip(*run_ranks(readers, read), strict=True)
    assert merged(list(ages)) == AGES
    assert merged(list(points)) == {oid: list(point) for oid, point in POINTS.items()}


def test_with_vertex_columns_adds_and_replaces() -> None:
    graph = build()
    derived = graph.derived("anything", lambda: 7)
    other = graph.with_vertex_columns({"age": [0] * 6, "rank": {10: 1.5}})
    assert list(other.vertex_columns) == ["age", "point", "seed", "rank"]
    assert by_id(other, "rank") == {oid: 1.5 if oid == 10 else 0.0 for oid in VERTICES}
    assert by_id(graph, "age") == AGES
    assert other.derived("anything", lambda: 8) == derived
    assert other.targets is graph.targets


def test_twins_are_of_their_own_columns() -> None:
    graph = build()
    graph.undirected()
    assert by_id(graph.with_vertex_columns({"age": [9] * 6}).undirected(), "age") == dict.fromkeys(AGES, 9)


def test_ids_that_are_texts(run_ranks: Ranks) -> None:
    def on_rank(group: Group) -> Any:
        graph = Graph.from_edges(
            ["bob", "eve"], ["ann", "bob"], vertex_columns={"n": {"ann": 1, "eve": 3}}, group=group
        )
        return by_id(graph, "n")

    for size in (1, 2, 3):
        assert merged(run_ranks(size, on_rank)) == {"ann": 1, "bob": 0, "eve": 3}


def test_every_rank_gives_others(run_ranks: Ranks) -> None:
    def on_rank(group: Group) -> Any:
        own = VERTICES[group.rank :: group.size]
        sources, targets = (np.array(ends)[group.rank :: group.size] for ends in EDGES)
        columns = {"age": [AGES[oid] for oid in own]}
        graph = Graph.from_edges(
            sources, targets, vertices=own, vertex_columns=columns, local=True, group=group
        )
        return by_id(graph, "age")

    assert merged(run_ranks(3, on_rank)) == AGES


def test_a_rank_that_gives_nothing_takes_the_type_of_the_others(run_ranks: Ranks) -> None:
    def on_rank(group: Group) -> Any:
        given = {"seed": {30: 7}, "point": {10: (1, 2)}} if group.rank == 1 else {"seed": {}, "point": {}}
        graph = Graph.from_edges(*EDGES, group=group).with_vertex_columns(given, local=True)
        assert graph.vertex_columns["seed"].dtype == np.int64
        return by_id(graph, "seed"), by_id(graph, "point")

    seeds, points = (merged(list(parts)) for parts in zip(*run_ranks(3, on_rank), strict=True))
    assert seeds == {oid: 7 if oid == 30 else 0 for oid in (-5, 5, 10, 20, 30)}
    assert points == {oid: [1, 2] if oid == 10 else [0, 0] for oid in (-5, 5, 10, 20, 30)}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"vertex_columns": {"a": [1, 2]}}, "has 2 values, and the graph 3 vertices"),
    ({"vertex_columns": {"a": {7: 1}}}, "names 7, and the graph has no such vertex"),
    ({"vertex_columns": {"a": ["x", "y", "z"]}}, "'a' holds <U1: a vertex column must be numeric"),
    ({"vertex_columns": [1, 2, 3]}, "given by their names"),
    (
        {"vertices": [1, 2], "vertex_columns": {"a": [1, 2]}},
        "gives no a of the vertex 0: every vertex needs a value",
    ),
    ({"vertices": [0, 1, 2, 2], "vertex_columns": {"a": [1, 2, 3, 4]}}, "names the vertex 2 twice"),
    ({"vertices": [0, 1, 2], "vertex_columns": {"a": [1, 2]}}, "has 2 values, and vertices= has 3 ids"),
    ({"vertex_columns": {"a": [[1], [1, 2], [3]]}}, "'a' is no array of numbers"),
    ({"vertex_columns": {"a": np.zeros((3, 2, 2))}}, r"'a' has the shape \(3, 2, 2\)"),
]


@pytest.mark.parametrize(("options", "says"), WRONG)
@pytest.mark.parametrize("size", [1, 2])
def test_what_is_no_vertex_column(run_ranks: Ranks, options: Any, says: str, size: int) -> None:
    def on_rank(group: Group) -> str:
        with pytest.raises(GraphError) as found:
            Graph.from_edges([0, 1], [1, 2], group=group, **options)
        return str(found.value)

    texts = run_ranks(size, on_rank)
    assert all(re.search(says, text) for text in texts), texts


def table() -> pyarrow.Table:
    return pyarrow.table(
        {
            "name": ["a", "b", "c", "d", "e", "f"],
            "id": VERTICES,
            "age": pyarrow.array(list(AGES.values()), pyarrow.int16()),
            "point": pyarrow.array(list(POINTS.values()), pyarrow.list_(pyarrow.float64(), 2)),
        }
    )


@pytest.mark.parametrize("size", [1, 3])
def test_a_table_of_vertices(run_ranks: Ranks, size: int) -> None:
    edges = pyarrow.table({"source": EDGES[0], "target": EDGES[1]})

    def on_rank(group: Group) -> Any:
        everything = Graph.from_arrow(edges, vertices=table(), group=group)
        assert list(everything.vertex_columns) == ["age", "point"]  # a text is no number
        one = Graph.from_arrow(
            edges, vertices=table().to_pandas(), vertex_id=1, vertex_columns={"years": "age"}, group=group
        )
        return by_id(everything, "age"), by_id(everything, "point"), by_id(one, "years")

    ages, points, years = zip(*run_ranks(size, on_rank), strict=True)
    assert merged(list(ages)) == merged(list(years)) == AGES
    assert merged(list(points)) == {oid: list(point) for oid, point in POINTS.items()}


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "txt"])
@pytest.mark.parametrize("size", [1, 2])
def test_a_file_of_vertices(run_ranks: Ranks, tmp_path: Path, suffix: str, size: int) -> None:
    edges, vertices = tmp_path / "edges.txt", tmp_path / f"people.{suffix}"
    edges.write_text("".join(f"{s} {t}\n" for s, t in zip(*EDGES, strict=True)))
    if suffix == "parquet":
        pyarrow.parquet.write_table(table(), vertices, row_group_size=2)
    elif suffix == "arrow":
        pyarrow.feather.write_feather(table(), str(vertices), chunksize=2)
    else:
        mark = "," if suffix == "csv" else " "
        rows = [f"{mark.join(['id', 'name', 'age'])}\n"]
        rows += [f"{oid}{mark}n{oid}{mark}{age}\n" for oid, age in AGES.items()]
        vertices.write_text("".join(rows))

    def on_rank(group: Group) -> Any:
        graph = load(edges, vertices=vertices, group=group)
        return by_id(graph, "age"), graph.vertex_columns["age"].dtype.kind

    parts = run_ranks(size, on_rank)
    assert merged([part for part, _ in parts]) == AGES
    assert {kind for _, kind in parts} == {"i"}


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("ids.txt", "5\n1\n2\n# c\n\n3\n4\n", {}),
        ("ids.csv", "id\r5\r1\r2\r3\r4\r", {}),
        ("ids.tsv.gz", "1 40\n5 1\n2 1\n3 1\n4 1\n", {"vertex_columns": {}}),
        (None, "1..5", {}),
    ],
)
def test_ids_alone_keep_isolated_vertices(
    run_ranks: Ranks, tmp_path: Path, name: str | None, text: str, options: dict[str, Any], size: int
) -> None:
    edges = write(tmp_path / "edges.txt", "1 2\n4 2\n")
    listed = text if name is None else write(tmp_path / name, text)
    rows = write(tmp_path / "rows.adj", "1 2\n4 2\n3\n")
    for path in (edges, rows):
        found = load_in_ranks(run_ranks, size, path, vertices=listed, **options)
        assert found[:2] == [[(1, 2), (4, 2)], [1, 2, 3, 4, 5]]


def test_texts_alone_keep_isolated_vertices(tmp_path: Path) -> None:
    given = Graph.from_edges(["new york", "ann"], ["ann", "bob"], vertices=["bad ems"])
    write_edge_list(given, tmp_path / "g.csv", vertices_path=tmp_path / "ids.csv")
    graph = load(tmp_path / "g.csv", vertices=tmp_path / "ids.csv", ids="string")
    assert (arcs(graph), graph.report.isolated) == (arcs(given), 1)
    assert graph.ids.to_oids([0, 1, 2, 3]).tolist() == ["ann", "bad ems", "bob", "new york"]


@pytest.mark.parametrize(
    ("listed", "options", "wrong"),
    [
        ("1..2", {}, r"1\.\.2 gives no row of the vertex 3: every vertex needs one"),
        ("5..1", {}, r"vertices='5\.\.1': the last id is before the first"),
        ("1..3", {"vertex_id": 0}, "has no columns: vertex_id= and vertex_columns= are of a file"),
        (f"1..{10**15}", {}, "1,000,000,000,000,000 vertices need at least"),
        ("1..3", {"ids": "string"}, "some ids are strings and some are integers"),
    ],
)
def test_ranges_of_ids_that_do_not_fit(
    tmp_path: Path, listed: str, options: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "edges.txt", "1 2\n2 3\n"), vertices=listed, **options)
    with pytest.raises(GraphError, match=wrong):
        load(write(tmp_path / "edges.adj", "1 2\n2 3\n"), vertices=listed, **options)


def test_files_of_vertices_that_do_not_fit(tmp_path: Path) -> None:
    edges, vertices = tmp_path / "edges.txt", tmp_path / "people.csv"
    edges.write_text("1 2\n2 3\n")
    vertices.write_text("id,age\n1,40\n2,50\n")
    with pytest.raises(GraphError, match=r"people.csv gives no age of the vertex 3"):
        load(edges, vertices=vertices)
    with pytest.raises(GraphError, match="'ag', but the columns are id, age; try 'age'"):
        load(edges, vertices=vertices, vertex_columns={"age": "ag"})
    with pytest.raises(GraphError, match="no such file"):
        load(edges, vertices=tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="give it as vertices="):
        load(edges, vertex_columns={"age": "age"})
    vertices.write_text("1 40\n2 50\n3 60\n")
    with pytest.raises(GraphError, match="name the vertex columns"):
        load(edges, vertices=vertices)
    assert load(edges, vertices=vertices, vertex_columns={"age": 1}).vertex_columns["age"].tolist() == [
        40,
        50,
        60,
    ]


def test_a_store_with_a_file_of_vertices(tmp_path: Path) -> None:
    Graph.from_edges([1, 2], [2, 3]).save(tmp_path / "g.sigps")
    (tmp_path / "people.csv").write_text("id,age\n3,60\n2,50\n1,40\n")
    graph = load(tmp_path / "g.sigps", vertices=tmp_path / "people.csv")
    assert graph.vertex_columns["age"].tolist() == [40, 50, 60]


def test_missing_values_are_refused() -> None:
    edges = pyarrow.table({"source": [1], "target": [2]})
    with pytest.raises(GraphError, match="'age' has 1 missing values"):
        Graph.from_arrow(edges, vertices=pyarrow.table({"id": [1, 2], "age": [1, None]}))


def test_attributes_of_networkx_nodes() -> None:
    source = nx.DiGraph([(3, 1), (1, 2)])
    nx.set_node_attributes(source, {3: 30, 1: 10, 2: 20}, "tens")
    graph = Graph.from_networkx(source, vertex_columns={"t": "tens"})
    assert graph.vertex_columns["t"].tolist() == [10, 20, 30]
    source.add_node(9)
    with pytest.raises(GraphError, match="node 9 has no attribute 'tens'"):
        Graph.from_networkx(source, vertex_columns={"t": "tens"})


def test_fingerprints_cover_the_columns_that_are_named(run_ranks: Ranks) -> None:
    graph = build()
    changed = graph.with_vertex_columns({"age": {5: 2}})
    assert fingerprint(graph) == fingerprint(changed)
    assert fingerprint(graph, ("age",)) != fingerprint(changed, ("age",))
    assert fingerprint(graph, ("point",)) == fingerprint(changed, ("point",))
    spread = run_ranks(3, lambda group: fingerprint(build(group), ("age", "point")))
    assert set(spread) == {fingerprint(graph, ("age", "point"))}
