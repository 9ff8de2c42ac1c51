"""Writers: what they write reads back equal, by sigps and by other readers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os

import networkx
import numpy as np
import pandas
import pyarrow
import pytest
import scipy.io

import sigps.graph.building.rows
import sigps.graph.formats.text_output
from sigps.errors import GraphError
from sigps.graph import Graph
from sigps.graph.formats.edge_list import write_edge_list
from sigps.graph.formats.matrix_market import write_matrix_market
from sigps.graph.formats.metis import write_metis
from sigps.graph.formats.text_output import format_fields, write_vertices
from sigps.graph.load import load


def edges_of(graph: Graph) -> list[tuple]:
    oids = graph.ids.to_oids(np.arange(graph.num_vertices))
    sources = np.repeat(oids, graph.out_degrees())
    arrays = [sources, oids[graph.targets], *graph.columns.values()]
    return list(zip(*(array.tolist() for array in arrays), strict=True))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make every file take several blocks."""
    monkeypatch.setattr(sigps.graph.building.rows, "_CHUNK_EDGES", 7)
    monkeypatch.setattr(sigps.graph.formats.text_output, "_BLOCK_LINES", 3)


class TestEdgeList:
    def test_the_text(self, tmp_path):
        graph = Graph.from_edges([10, 30, 10], [30, 10, -20], [1.5, 2.0, 1e30])
        write_edge_list(graph, tmp_path / "g.txt")
        assert (tmp_path / "g.txt").read_text() == (
            "# directed, 3 vertices, 3 edges\n# source\ttarget\tweight\n"
            "10\t-20\t1e+30\n10\t30\t1.5\n30\t10\t2.0\n"
        )
        assert os.listdir(tmp_path) == ["g.txt"]

    def test_csv_has_a_row_of_names(self, tmp_path):
        graph = Graph.from_edges(["ann"], ["zoë"], columns={"time": [7]})
        write_edge_list(graph, tmp_path / "g.csv")
        assert (tmp_path / "g.csv").read_text(encoding="utf-8") == "source,target,time\nann,zoë,7\n"

    def test_an_undirected_edge_is_written_once(self, tmp_path):
        graph = Graph.from_edges([2, 1, 1], [1, 1, 2], directed=False)
        write_edge_list(graph, tmp_path / "g.txt", delimiter=" ")
        lines = (tmp_path / "g.txt").read_text().splitlines()
        assert lines == ["# undirected, 2 vertices, 3 edges", "# source target", "1 1", "1 2", "1 2"]

    @pytest.mark.parametrize("size", [1, 2, 3])
    @pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.tsv"])
    def test_reads_back_equal(self, run_ranks, sample, tmp_path, size, name, caplog):
        path = tmp_path / name
        run_ranks(size, lambda group: write_edge_list(sample.build(group=group), path))
        assert os.listdir(tmp_path) == [name]
        graph = sample.build()
        if not graph.num_edges:
            return
        options = {"ids": "string" if graph.ids.kind == "strings" else None, "weights": graph.has_weights}
        back = load(path, directed=graph.directed, **options)
        assert edges_of(back) == edges_of(graph)
        assert ("isolated vertices have no line" in caplog.text) == (graph.report.isolated > 0)

    def test_networkx_and_pandas_read_it(self, battery, tmp_path):
        graph = battery["skewed"].build()
        write_edge_list(graph, tmp_path / "g.txt")
        kind = networkx.MultiDiGraph
        read = networkx.read_weighted_edgelist(tmp_path / "g.txt", nodetype=int, create_using=kind)
        assert sorted(read.edges(data="weight")) == sorted(edges_of(graph))
        write_edge_list(graph, tmp_path / "g.csv")
        table = pandas.read_csv(tmp_path / "g.csv")
        assert table.columns.tolist() == ["source", "target", "weight"]
        assert list(table.itertuples(index=False, name=None)) == edges_of(graph)

    @pytest.mark.parametrize("size", [1, 3])
    def test_all_ids_go_to_a_file_of_their_own(self, run_ranks, battery, tmp_path, size, caplog):
        for name in ("isolated", "string_ids", "only_isolated", "empty"):
            paths = tmp_path / f"{name}.e", tmp_path / f"{name}.v"

            def write(group, sample=battery[name], paths=paths):
                write_edge_list(sample.build(group=group), paths[0], vertices_path=paths[1])

            run_ranks(size, write)
            graph = battery[name].build()
            oids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
            head = ["id"] if name == "string_ids" else []
            assert paths[1].read_text(encoding="utf-8").splitlines() == head + [str(oid) for oid in oids]
        assert not caplog.text

    @pytest.mark.parametrize("size", [1, 3])
    def test_vertex_columns_go_there_too(self, run_ranks, battery, tmp_path, size):
        sample = battery["isolated"]
        path, edges = tmp_path / "people.csv", tmp_path / "g.txt"

        def write(group):
            graph = sample.build(group=group)
            ids = graph.ids.to_oids(np.arange(graph.num_vertices))
            columns = {"age": ids * 7, "height": ids / 8, "spot": np.stack([ids, -ids], axis=1)}
            write_edge_list(graph.with_vertex_columns(columns, ids), edges, vertices_path=path)
            return ids

        ids = run_ranks(size, write)[0]
        table = pandas.read_csv(path)
        assert table.columns.tolist() == ["id", "age", "height", "spot.0", "spot.1"]
        assert table["id"].tolist() == ids.tolist()
        assert table["spot.1"].tolist() == (-ids).tolist()
        read = load(edges, directed=sample.directed, vertices=path)
        assert read.num_vertices == len(ids)
        assert read.vertex_columns["age"].tolist() == (ids * 7).tolist()
        assert read.vertex_columns["height"].tolist() == (ids / 8).tolist()

    @pytest.mark.parametrize(
        ("suffix", "opener"),
        [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open), (".zst", None)],
    )
    @pytest.mark.parametrize("size", [1, 2])
    def test_compressed(self, run_ranks, battery, tmp_path, suffix, opener, size):
        plain, packed = tmp_path / "g.txt", tmp_path / f"g.txt{suffix}"
        write_edge_list(battery["grid"].build(), plain)
        run_ranks(size, lambda group: write_edge_list(battery["grid"].build(group=group), packed))
        unpack = opener or (lambda path: pyarrow.input_stream(str(path), compression="zstd"))
        text = unpack(packed).read()
        assert text == plain.read_bytes()
        assert edges_of(load(packed, directed=False, weights=True)) == edges_of(battery["grid"].build())

    @pytest.mark.parametrize(
        ("oid", "path", "options"),
        [
            ("a\tb", "g.tsv", {}),
            ("a b", "g.txt", {}),
            ("a,b", "g.csv", {}),
            ('a"b', "g.csv", {}),
            ("a\nb", "g.csv", {}),
            ("#a", "g.csv", {}),
            ("//a", "g.txt", {}),
            ("", "g.csv", {}),
            ("a;b", "g.txt", {"delimiter": ";"}),
            ("a,b", "g.txt", {"delimiter": ";"}),
            ("a|b", "g.txt", {"delimiter": " "}),
            ("a\0b", "g.csv", {}),
            (" a", "g.csv", {}),
            ("a\t", "g.csv", {}),
        ],
    )
    @pytest.mark.parametrize("size", [1, 2])
    def test_an_id_that_would_read_as_something_else(self, run_ranks, tmp_path, oid, path, options, size):
        def write(group):
            write_edge_list(Graph.from_edges(["x", oid], ["y", "z"], group=group), tmp_path / path, **options)

        with pytest.raises(GraphError, match="cannot be written as text"):
            run_ranks(size, write)
        assert os.listdir(tmp_path) == []

    def test_blanks_are_fine_where_they_do_not_separate(self, tmp_path):
        graph = Graph.from_edges(["New York"], ["San José"])
        write_edge_list(graph, tmp_path / "g.csv")
        assert edges_of(load(tmp_path / "g.csv", ids="string")) == [("New York", "San José")]

    @pytest.mark.parametrize("delimiter", ["", "::", "1", "-", "\n", "é", "e"])
    def test_wrong_delimiters(self, tmp_path, delimiter):
        with pytest.raises(GraphError, match="one character is needed"):
            write_edge_list(Graph.from_edges([0], [1]), tmp_path / "g.txt", delimiter=delimiter)


STRANGE_IDS = ["a,b", "a b", "a\tb", 'a"b', "a\nb", "a\rb", "", " a", "a\v", "#a", "//", "a;b", "a|b"]
STRANGE_IDS += ["5", "id", "a\0b"]


class TestVertexList:
    @pytest.mark.parametrize("has_column", [False, True])
    @pytest.mark.parametrize("suffix", [".txt", ".csv", ".tsv", ".csv.gz"])
    @pytest.mark.parametrize("oid", STRANGE_IDS)
    def test_a_string_id_reads_back_or_is_refused(self, tmp_path, oid, suffix, has_column):
        path, edges = tmp_path / f"v{suffix}", tmp_path / "g.csv"
        edges.write_text("source,target\n0,zoë\n")
        oids = ["0", "zoë", oid]
        graph = Graph.from_edges(["0"], ["zoë"], vertices=oids)
        if has_column:
            graph = graph.with_vertex_columns({"age": [3, 4, 5]}, oids)
        refusal = ""
        try:
            write_vertices(graph, path)
        except GraphError as error:
            refusal = str(error)
        if refusal:
            assert "cannot be written as text" in refusal
            assert oid not in ("5", "id")
            assert os.listdir(tmp_path) == ["g.csv"]
            return
        read = load(edges, ids="string", vertices=path)
        assert read.ids.to_oids(np.arange(read.num_vertices)).tolist() == sorted(oids)
        if has_column:
            ages = dict(zip(oids, [3, 4, 5], strict=True))
            assert read.vertex_columns["age"].tolist() == [ages[name] for name in sorted(oids)]

    @pytest.mark.parametrize(("oid", "suffix"), [("a,b", ".csv"), ("a b", ".txt"), ("a\nb", ".tsv")])
    def test_every_rank_refuses(self, run_ranks, tmp_path, oid, suffix):
        def write(group):
            with pytest.raises(GraphError, match="cannot be written as text"):
                write_vertices(Graph.from_edges(["x", oid], ["y", "z"], group=group), tmp_path / f"v{suffix}")

        run_ranks(2, write)
        assert os.listdir(tmp_path) == []


class TestMatrixMarket:
    @pytest.mark.parametrize("size", [1, 3])
    def test_scipy_reads_it(self, run_ranks, sample, tmp_path, size):
        path = tmp_path / "g.mtx"
        run_ranks(size, lambda group: write_matrix_market(sample.build(group=group), path))
        graph = sample.build()
        read = scipy.io.mmread(path, spmatrix=False)
        assert read.shape == (graph.num_vertices, graph.num_vertices)
        assert read.nnz == graph.num_edges
        assert np.array_equal(read.toarray(), graph.to_scipy().toarray())
        assert os.listdir(tmp_path) == ["g.mtx"]

    @pytest.mark.parametrize(
        ("weights", "directed", "banner"),
        [
            (None, True, "pattern general"),
            ([3], True, "integer general"),
            ([0.5], False, "real symmetric"),
        ],
    )
    def test_the_text(self, tmp_path, weights, directed, banner):
        write_matrix_market(Graph.from_edges([5], [9], weights, directed=directed), tmp_path / "g.mtx")
        entry = ("1 2" if directed else "2 1") + (f" {weights[0]}" if weights else "")
        text = f"%%MatrixMarket matrix coordinate {banner}\n2 2 1\n{entry}\n"
        assert (tmp_path / "g.mtx").read_text() == text

    def test_reads_back_with_ids_from_one(self, battery, tmp_path):
        graph = battery["grid"].build()
        write_matrix_market(graph, tmp_path / "g.mtx")
        back = load(tmp_path / "g.mtx")
        assert not back.directed
        assert back.targets.tolist() == graph.targets.tolist()
        assert back.columns["weight"].tolist() == graph.columns["weight"].tolist()


SIMPLE = ["empty", "only_isolated", "path_undirected", "two_components", "complete_5", "grid", "isolated"]


class TestMetis:
    @pytest.mark.parametrize("size", [1, 2, 4])
    @pytest.mark.parametrize("name", SIMPLE)
    def test_the_text(self, run_ranks, battery, tmp_path, name, size):
        path, options = tmp_path / "g.graph", {"directed": False}
        run_ranks(size, lambda group: write_metis(battery[name].build(group=group, **options), path))
        graph = battery[name].build(**options)
        fmt = " 001" if graph.has_weights else ""
        expected = [f"{graph.num_vertices} {graph.report.edges_given}{fmt}"]
        for start, stop in zip(graph.offsets[:-1].tolist(), graph.offsets[1:].tolist(), strict=True):
            fields = [graph.targets[start:stop].astype(int) + 1]
            fields += [graph.columns["weight"][start:stop].astype(int)] if graph.has_weights else []
            expected.append(" ".join(map(str, np.stack(fields, axis=1).ravel().tolist())))
        assert (path.read_text()).split("\n") == [*expected, ""]

    def test_rows_without_neighbours_are_empty_lines(self, tmp_path):
        graph = Graph.from_edges([2, 2], [4, 9], [3, 4], directed=False, vertices=[0, 1, 3, 5, 6, 10, 11])
        write_metis(graph, tmp_path / "g.graph")
        text = (tmp_path / "g.graph").read_text()
        assert text == "10 2 001\n\n\n5 3 8 4\n\n3 3\n\n\n3 4\n\n\n"

    def test_reads_back(self, battery, tmp_path):
        graph = battery["grid"].build()
        write_metis(graph, tmp_path / "g.graph")
        back = load(tmp_path / "g.graph")
        assert back.targets.tolist() == graph.targets.tolist()
        assert back.columns["weight"].tolist() == graph.columns["weight"].tolist()

    @pytest.mark.parametrize(
        ("graph", "problem"),
        [
            (([0], [1]), "undirected graphs; graph.undirected"),
            (([0, 1], [1, 1]), "no self-loops"),
            (([0, 0], [1, 1]), "no parallel edges"),
            (([0], [1], [0.5]), "positive whole weights, not 0.5"),
            (([0], [1], [0]), "positive whole weights, not 0"),
            (([0], [1], [-1.0]), "positive whole weights, not -1.0"),
            (([0], [1], [2.0**63]), "positive whole weights, not 9.2"),
        ],
    )
    @pytest.mark.parametrize("size", [1, 2])
    def test_what_metis_cannot_hold(self, run_ranks, tmp_path, graph, problem, size):
        def write(group):
            directed = problem.startswith("undirected")
            write_metis(Graph.from_edges(*graph, directed=directed, group=group), tmp_path / "g.graph")

        with pytest.raises(GraphError, match=problem):
            run_ranks(size, write)
        assert os.listdir(tmp_path) == []

    def test_parallel_edges_at_the_border_of_blocks_are_found(self, monkeypatch, tmp_path):
        monkeypatch.setattr(sigps.graph.building.rows, "_CHUNK_EDGES", 1)
        graph = Graph.from_edges([0, 0], [1, 1], directed=False)
        with pytest.raises(GraphError, match="no parallel edges"):
            write_metis(graph, tmp_path / "g.graph")


WRITERS = [write_edge_list, write_matrix_market, write_metis]


class TestUnwritable:
    @pytest.mark.parametrize("write", WRITERS)
    @pytest.mark.parametrize("size", [1, 2])
    def test_a_missing_folder_fails_on_every_rank(self, run_ranks, battery, tmp_path, write, size):
        def try_to_write(group):
            try:
                write(battery["grid"].build(group=group), tmp_path / "missing" / "g.graph")
            except GraphError as error:
                return str(error)

        for problem in run_ranks(size, try_to_write):
            assert "missing/g.graph: the file cannot be written: No such file or directory. Check" in problem

    @pytest.mark.parametrize("write", WRITERS)
    def test_a_folder_in_the_way(self, battery, tmp_path, write):
        (tmp_path / "g.graph").mkdir()
        with pytest.raises(GraphError, match="the file cannot be written"):
            write(battery["grid"].build(), tmp_path / "g.graph")
        assert os.listdir(tmp_path) == ["g.graph"]

    @pytest.mark.parametrize("size", [1, 3])
    def test_a_full_disk_leaves_the_old_file_and_holds_nobody_up(
        self, run_ranks, battery, tmp_path, monkeypatch, size
    ):
        class FullDisk:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

            def write(self, _):
                raise OSError(28, "No space left on device")

        (tmp_path / "g.txt").write_text("old")
        opened = sigps.graph.formats.text_output._opened
        last = f".{size - 1}"
        monkeypatch.setattr(
            sigps.graph.formats.text_output,
            "_opened",
            lambda path, suffix: FullDisk() if path.suffix == last else opened(path, suffix),
        )
        with pytest.raises(GraphError, match="No space left on device"):
            run_ranks(
                size, lambda group: write_edge_list(battery["skewed"].build(group=group), tmp_path / "g.txt")
            )
        assert os.listdir(tmp_path) == ["g.txt"]
        assert (tmp_path / "g.txt").read_text() == "old"


class TestLetters:
    @pytest.mark.parametrize(
        "values",
        [
            np.array([0, 5, 10, -1, -10, 99, 100, 2**31, 2**32, 10**18, 2**63 - 1, -(2**63)]),
            np.array([0, 9, 10, 4294967295], dtype=np.uint32),
            np.array([0, 2**64 - 1], dtype=np.uint64),
            np.array([-128, 127], dtype=np.int8),
            np.array([0]),
            np.array([True, False]).astype(int),
        ],
    )
    def test_integers_as_python_prints_them(self, values):
        rows = format_fields(values)
        assert [bytes(row[row != 0]).decode() for row in rows] == [str(value) for value in values.tolist()]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_reals_read_back_equal(self, dtype):
        draw = np.random.default_rng(3)
        values = np.concatenate(
            [draw.normal(size=50) * 10.0 ** draw.integers(-30, 30, 50), [0.1, 1 / 3, -0.0, 255]]
        )
        values = values.astype(dtype)
        rows = format_fields(values)
        back = np.array([dtype(bytes(row[row != 0]).decode()) for row in rows])
        assert np.array_equal(back.view(np.uint8), values.view(np.uint8))

    def test_strings_as_utf8(self):
        rows = format_fields(np.array(["a", "zoë", "日本"]))
        assert [bytes(row[row != 0]).decode("utf-8") for row in rows] == ["a", "zoë", "日本"]
