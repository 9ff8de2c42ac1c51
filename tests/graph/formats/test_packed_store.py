"""The packed store: what is saved comes back, in either order, on any number of ranks, and damage is found."""

from __future__ import annotations

import os

import numpy as np
import pytest
from crafted_stores import change_array, change_header

from sigps import run
from sigps.apps import SSSP, PageRank
from sigps.errors import ConfigError, GraphError
from sigps.graph import Graph
from sigps.graph.fingerprint import fingerprint
from sigps.graph.formats import packed_store
from sigps.graph.generators.generate import generate
from sigps.graph.load import load, open_store
from sigps.graph.packing.packer import in_order
from sigps.graph.packing.pages import PAGE_ARCS


@pytest.fixture(params=["given", "degree"])
def order(request, monkeypatch):
    """Pack in one order, whichever is better."""

    def rows(_, *arrays):
        return in_order(request.param, *arrays)

    monkeypatch.setattr(packed_store, "in_order", rows)
    return request.param


def assert_same(opened: Graph, graph: Graph) -> None:
    assert (opened.num_vertices, opened.num_edges) == (graph.num_vertices, graph.num_edges)
    assert (opened.directed, opened.ids.kind) == (graph.directed, graph.ids.kind)
    was_laid_out = opened.is_laid_out
    assert opened.in_degrees().tolist() == graph.in_degrees().tolist()
    if not graph.directed:
        assert opened.out_degrees().tolist() == graph.out_degrees().tolist()
    assert opened.is_laid_out == was_laid_out  # degrees need no edges
    gids = np.arange(graph.num_vertices)
    assert opened.ids.to_oids(gids).tolist() == graph.ids.to_oids(gids).tolist()
    pairs = [(opened.offsets, graph.offsets), (opened.targets, graph.targets)]
    found, made = opened.in_edges(), graph.in_edges()
    pairs += [(found.offsets, made.offsets), (found.sources, made.sources)]
    assert list(opened.columns) == list(graph.columns)
    pairs += [(opened.columns[name], column) for name, column in graph.columns.items()]
    pairs += [(found.columns[name], column) for name, column in made.columns.items()]
    pairs += [(opened.vertex_columns[name], column) for name, column in graph.vertex_columns.items()]
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


class TestRoundTrip:
    @pytest.mark.parametrize("with_columns", [False, True])
    def test_battery(self, sample, tmp_path, order, with_columns):
        columns = {"tag": np.arange(len(sample.sources)), "share": np.arange(len(sample.sources)) / 3}
        graph = sample.build(columns=columns if with_columns else None)
        graph.save(tmp_path / "g.sigps", packed=True)
        assert_same(open_store(tmp_path / "g.sigps", verify="full"), graph)
        assert_same(open_store(tmp_path / "g.sigps", verify="none"), graph)

    @pytest.mark.parametrize("directed", [False, True])
    def test_rows_of_several_pages(self, tmp_path, order, directed):
        """A hub whose row takes three pages, between others, with parallel edges and values in their order."""
        draw = np.random.default_rng(2)
        size = 2 * PAGE_ARCS + 5000
        others = draw.integers(0, 300_000, size)
        ends = [others, np.full(size, 1000)]
        graph = Graph.from_edges(
            np.append(ends[0], np.arange(30)),
            np.append(ends[1], np.arange(30) + 2000),
            np.append(draw.integers(1, 256, size), np.ones(30)).astype(float),
            directed=directed,
        )
        graph.save(tmp_path / "g.sigps", packed=True)
        opened = open_store(tmp_path / "g.sigps")
        assert_same(opened, graph)

    def test_several_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr(packed_store, "_BLOCK_BYTES", 2000)
        graph = generate("rmat", scale=15, seed=3, weights="random")
        graph.save(tmp_path / "g.sigps", packed=True)
        assert_same(open_store(tmp_path / "g.sigps", verify="full"), graph)
        header = packed_store.OpenStore(tmp_path / "g.sigps").header
        assert len(header.arrays["pages"].pieces) > 2

    @pytest.mark.parametrize("readers", [2, 3])
    def test_any_number_of_ranks_reads(self, run_ranks, battery, tmp_path, order, readers):
        for name in (
            "skewed",
            "string_ids",
            "sparse_ids",
            "only_isolated",
            "empty",
            "grid",
            "parallel_edges",
        ):
            alone = battery[name].build()
            alone = alone.with_vertex_columns({"at": np.arange(2 * alone.num_vertices).reshape(-1, 2)})
            alone.save(tmp_path / name, packed=True)

            def read(group, path=tmp_path / name):
                graph = open_store(path, group)
                return graph, graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()

            parts = run_ranks(readers, read)
            graphs = [graph for graph, _ in parts]
            assert {(graph.num_edges, graph.directed) for graph in graphs} == {
                (alone.num_edges, alone.directed)
            }
            assert (
                np.concatenate([graph.out_degrees() for graph in graphs]).tolist()
                == alone.out_degrees().tolist()
            )
            assert np.concatenate([graph.targets for graph in graphs]).tolist() == alone.targets.tolist()
            for column, values in alone.columns.items():
                together = np.concatenate([graph.columns[column] for graph in graphs])
                assert together.tobytes() == values.tobytes()
            at = np.concatenate([graph.vertex_columns["at"] for graph in graphs])
            assert at.tolist() == alone.vertex_columns["at"].tolist()
            for _, oids in parts:
                assert oids == alone.ids.to_oids(np.arange(alone.num_vertices)).tolist()

    def test_programs_give_the_same_bits(self, tmp_path, order):
        graph = generate("rmat", scale=10, seed=1, weights="random")
        graph.save(tmp_path / "g.sigps", packed=True)
        opened = load(tmp_path / "g.sigps")
        for program, name in ((PageRank(iterations=5), "rank"), (SSSP(source=0), "distance")):
            results = [run(program, g, device="cpu", threads=2)[name] for g in (graph, opened)]
            assert results[0].tobytes() == results[1].tobytes()


class TestSize:
    def test_rows_are_packed_in_the_order_that_takes_fewer_bytes(self, tmp_path):
        """Skewed graphs by degree, so that most targets are small numbers; graphs with near ids as they are."""
        graphs = {
            "degree": generate("rmat", scale=14, seed=1),
            "given": generate("grid", rows=100, columns=100),
        }
        for order, graph in graphs.items():
            graph.save(tmp_path / order, packed=True)
            assert packed_store.OpenStore(tmp_path / order).header.packing.order == order
            assert fingerprint(open_store(tmp_path / order)) == fingerprint(graph)

    def test_a_graph_without_edges_is_packed(self, tmp_path):
        Graph.from_edges([], [], vertices=[5, 7]).save(tmp_path / "none.sigps", packed=True)
        opened = open_store(tmp_path / "none.sigps")
        assert (opened.num_edges, np.asarray(opened.ids.to_oids(np.arange(2))).tolist()) == (0, [5, 7])

    def test_bytes_an_arc(self, tmp_path):
        graph = generate("rmat", scale=16, seed=1)
        graph.save(tmp_path / "g.sigps", packed=True)
        assert sum(file.stat().st_size for file in (tmp_path / "g.sigps").iterdir()) < 1.3 * graph.num_edges


class TestRefusals:
    def test_several_ranks_do_not_write(self, run_ranks, battery, tmp_path):
        with pytest.raises(GraphError, match="written by one process, but 2 ranks share this graph"):
            run_ranks(2, lambda group: battery["grid"].build(group=group).save(tmp_path / "g", packed=True))
        assert not os.listdir(tmp_path)

    def test_in_edges_are_kept_anyway(self, battery, tmp_path):
        with pytest.raises(ConfigError, match="in_edges=True is for raw stores"):
            battery["skewed"].build().save(tmp_path / "g", packed=True, in_edges=True)

    def test_something_else_is_not_replaced(self, battery, tmp_path):
        (tmp_path / "precious.txt").write_text("data")
        with pytest.raises(GraphError, match="exists and is no graph store"):
            battery["skewed"].build().save(tmp_path, packed=True)
        assert os.listdir(tmp_path) == ["precious.txt"]

    def test_a_full_disk_leaves_the_old_store(self, battery, tmp_path, monkeypatch):
        path, old = tmp_path / "g.sigps", battery["grid"].build()
        old.save(path)

        def append(self, page):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(packed_store._Words, "append", append)
        with pytest.raises(GraphError, match="No space left on device"):
            battery["skewed"].build().save(path, packed=True)
        assert_same(open_store(path, verify="full"), old)
        assert os.listdir(tmp_path) == ["g.sigps"]


class TestDamage:
    @pytest.fixture
    def path(self, battery, tmp_path, order):
        graph = battery["skewed"].build(columns={"flag": np.ones(len(battery["skewed"].sources), dtype=bool)})
        graph.save(tmp_path / "g.sigps", packed=True)
        return tmp_path / "g.sigps"

    @pytest.mark.parametrize("size", [1, 2])
    def test_verify_finds_one_changed_bit(self, run_ranks, path, size):
        for file in sorted(path.glob("*.bin")):
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 2] ^= 1
            file.write_bytes(raw)
            with pytest.raises(
                GraphError, match=rf"{file.name} does not match its checksum within bytes 0 to"
            ):
                run_ranks(size, lambda group: open_store(path, group, verify="full"))
            raw[len(raw) // 2] ^= 1
            file.write_bytes(raw)

    def test_a_truncated_or_missing_file(self, path):
        for file in sorted(path.glob("*.bin")):
            raw = file.read_bytes()
            file.write_bytes(raw[:-1])
            with pytest.raises(GraphError, match=rf"{file.name} has [\d,]+ bytes, but the header says"):
                open_store(path)
            file.unlink()
            with pytest.raises(GraphError, match=rf"{file.name} is missing"):
                open_store(path)
            file.write_bytes(raw)

    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("verify", ["full", "bounds"])
    @pytest.mark.parametrize(
        ("name", "at", "value", "problem"),
        [
            ("pages", 0, 3, "pages is damaged in page 0"),
            ("pages", 4, 2**32 - 1, "pages is damaged in page 0"),
            ("column-0", 1, 3, "the column 'weight' is damaged in page 0"),
            ("column-1", 2, 2, "the column 'flag' is damaged in page 0"),
            ("page-words", -1, 0, "its pages have not all [0-9,]+ words"),
            ("page-arcs", -1, 2**63, "its pages have not all [0-9,]+ arcs"),
            ("page-end-rows", -1, 2**63, "its pages have not all [0-9,]+ rows"),
            ("page-first-rows", 0, 1, "its pages have not all [0-9,]+ rows"),
            ("column-0-words", 0, 1, "the pages of column 'weight' have not all"),
        ],
    )
    def test_values_out_of_bounds_with_right_checksums(
        self, run_ranks, path, name, at, value, problem, verify, size
    ):
        change_array(path, name, lambda values: values.__setitem__(at, value))
        with pytest.raises(GraphError, match=problem):
            run_ranks(size, lambda group: open_store(path, group, verify=verify).offsets)

    def test_an_order_that_is_none(self, battery, tmp_path):
        graph = generate("rmat", scale=13, seed=1)
        graph.save(tmp_path / "g.sigps", packed=True)
        change_array(tmp_path / "g.sigps", "order", lambda order: order.__setitem__(0, order[1]))
        for verify in ("full", "bounds", "none"):
            with pytest.raises(GraphError, match="two rows are of one vertex"):
                open_store(tmp_path / "g.sigps", verify=verify)
        change_array(tmp_path / "g.sigps", "order", lambda order: order.__setitem__(0, 1 << 13))
        with pytest.raises(GraphError, match=r"order.*vertex 8,192 of 8,192"):
            open_store(tmp_path / "g.sigps", verify="bounds")

    @pytest.mark.parametrize(
        "change",
        [
            lambda h: h.pop("packing"),
            lambda h: h.update(packing=None),
            lambda h: h["packing"].update(order="random"),
            lambda h: h["packing"].update(num_left_out=-1),
            lambda h: h["packing"].update(column_types=["<f8"]),
            lambda h: h["packing"].update(column_types=["<f8", "<u900000000"]),
            lambda h: h["packing"].update(column_types=["<f8", "|O"]),
            lambda h: h["packing"].update(column_types=[1, 2]),
            lambda h: h["arrays"].pop("pages"),
            lambda h: h["arrays"]["pages"].update(dtype="<f4"),
            lambda h: h["arrays"]["pages"].update(pieces=[]),
            lambda h: h["arrays"]["page-first-rows"].update(count="many"),
            lambda h: h.update(num_vertices=2**40),
        ],
    )  # fmt: skip
    def test_a_header_that_cannot_be_with_a_right_checksum(self, path, change):
        change_header(path, change)
        with pytest.raises(
            GraphError, match=r"header\.msgpack is not as sigps writes it|bytes, but the header says"
        ):
            open_store(path)

    def test_a_raw_store_packs_nothing(self, battery, tmp_path):
        battery["skewed"].build().save(tmp_path / "g.sigps")
        change_header(tmp_path / "g.sigps", lambda h: h.update(packing=None))
        with pytest.raises(GraphError, match="format 2 packs nothing"):
            open_store(tmp_path / "g.sigps")
