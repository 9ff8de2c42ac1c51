"""The native store: what is saved comes back, on any number of ranks, and damage is found."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from crafted_stores import change_array, change_header

import sigps.graph.formats.store_writing
from sigps.errors import ConfigError, GraphError
from sigps.graph import Graph
from sigps.graph.formats.store import save
from sigps.graph.load import load, open_store
from sigps.group import Alone


def assert_same(opened: Graph, graph: Graph) -> None:
    assert (opened.num_vertices, opened.num_edges) == (graph.num_vertices, graph.num_edges)
    assert opened.directed == graph.directed
    assert opened.ids.kind == graph.ids.kind
    gids = np.arange(graph.num_vertices)
    assert opened.ids.to_oids(gids).tolist() == graph.ids.to_oids(gids).tolist()
    for name in ("offsets", "targets"):
        assert getattr(opened, name).dtype == getattr(graph, name).dtype
        assert getattr(opened, name).tolist() == getattr(graph, name).tolist()
    assert list(opened.columns) == list(graph.columns)
    for name, column in graph.columns.items():
        assert opened.columns[name].dtype == column.dtype
        assert opened.columns[name].tolist() == column.tolist()


@pytest.fixture
def skewed(battery):
    tags = np.arange(len(battery["skewed"].sources), dtype=np.int16)
    return battery["skewed"].build(columns={"tag": tags}, vertices=[10**6])


class TestRoundTrip:
    def test_battery(self, sample, tmp_path):
        graph = sample.build()
        save(graph, tmp_path / "g.sigps")
        opened = open_store(tmp_path / "g.sigps", verify="full")
        assert_same(opened, graph)
        assert opened.in_degrees().tolist() == graph.in_degrees().tolist()

    @pytest.mark.parametrize("writers", [1, 2, 3])
    @pytest.mark.parametrize("readers", [1, 2, 4])
    def test_any_number_of_ranks(self, run_ranks, battery, tmp_path, writers, readers):
        for name in ("skewed", "string_ids", "sparse_ids", "only_isolated", "empty", "grid"):
            path, sample = tmp_path / f"{name}-{writers}.sigps", battery[name]
            run_ranks(writers, lambda group, sample=sample, path=path: save(sample.build(group=group), path))
            alone = sample.build()
            assert_same(open_store(path, verify="full"), alone)

            def read(group, path=path):
                graph = open_store(path, group, verify="full")
                return graph, graph.ids.to_oids(np.arange(graph.num_vertices))

            parts = run_ranks(readers, read)
            graphs = [graph for graph, _ in parts]
            assert graphs[0].row_bounds.tolist()[:: max(readers, 1)] == [0, alone.num_vertices]
            degrees = np.concatenate([graph.out_degrees() for graph in graphs])
            assert degrees.tolist() == alone.out_degrees().tolist()
            assert np.concatenate([graph.targets for graph in graphs]).tolist() == alone.targets.tolist()
            for column in alone.columns:
                together = np.concatenate([graph.columns[column] for graph in graphs])
                assert together.tolist() == alone.columns[column].tolist()
            for graph, oids in parts:
                assert graph.offsets[0] == 0
                assert graph.num_rows == graph.offsets.size - 1
                assert oids.tolist() == alone.ids.to_oids(np.arange(alone.num_vertices)).tolist()

    def test_in_edges_are_stored_if_asked_for(self, skewed, tmp_path, monkeypatch):
        skewed.save(tmp_path / "g.sigps", in_edges=True)
        opened = open_store(tmp_path / "g.sigps", verify="full")
        monkeypatch.setattr(sigps.graph.graph, "transpose", None)  # so that making them anew fails
        assert opened.in_edges().offsets.tolist() == skewed.in_edges().offsets.tolist()
        assert opened.in_edges().sources.tolist() == skewed.in_edges().sources.tolist()
        assert opened.in_edges().columns["tag"].tolist() == skewed.in_edges().columns["tag"].tolist()

    def test_in_edges_of_an_undirected_graph_take_no_space(self, battery, tmp_path):
        battery["grid"].build().save(tmp_path / "g.sigps", in_edges=True)
        assert not list((tmp_path / "g.sigps").glob("in-*"))
        opened = open_store(tmp_path / "g.sigps")
        assert opened.in_edges().sources is opened.targets

    def test_the_report_tells_what_loading_found_and_where_it_was_opened(self, tmp_path):
        graph = Graph.from_edges([0, 0, 1], [1, 1, 1], vertices=[5])
        graph.report.notes = ["a note"]
        save(graph, tmp_path / "g.sigps")
        report = open_store(tmp_path / "g.sigps").report
        assert (report.format, report.source) == ("store", str(tmp_path / "g.sigps"))
        assert (report.duplicates, report.self_loops, report.isolated) == (1, 1, 1)
        assert report.notes == ["a note"]

    def test_several_pieces(self, skewed, tmp_path, monkeypatch):
        monkeypatch.setattr(sigps.graph.formats.store_writing, "_PIECE_BYTES", 100)
        save(skewed, tmp_path / "g.sigps")
        assert_same(open_store(tmp_path / "g.sigps", verify="full"), skewed)

    def test_writing_to_an_opened_graph_leaves_the_files_alone(self, skewed, tmp_path):
        save(skewed, tmp_path / "g.sigps")
        opened = open_store(tmp_path / "g.sigps")
        opened.targets[:] = 0
        assert_same(open_store(tmp_path / "g.sigps", verify="full"), skewed)

    def test_opening_maps_the_edges_and_does_not_read_them(self, skewed, tmp_path):
        save(skewed, tmp_path / "g.sigps")
        opened = open_store(tmp_path / "g.sigps")
        for array in (opened.offsets, opened.targets, *opened.columns.values()):
            assert type(array) is np.ndarray
            base = array
            while not isinstance(base, np.memmap):
                base = base.base


class TestReplacing:
    def test_a_store_is_replaced(self, battery, tmp_path):
        path = tmp_path / "g.sigps"
        save(battery["skewed"].build(), path)
        save(battery["grid"].build(), path)
        assert_same(open_store(path, verify="full"), battery["grid"].build())
        assert os.listdir(tmp_path) == ["g.sigps"]

    def test_by_a_graph_that_is_read_from_it(self, battery, tmp_path):
        path = tmp_path / "g.sigps"
        save(battery["skewed"].build(), path)
        save(open_store(path), path)
        assert_same(open_store(path, verify="full"), battery["skewed"].build())

    @pytest.mark.parametrize("size", [1, 2])
    def test_something_else_is_not_replaced(self, run_ranks, tmp_path, size):
        (tmp_path / "results").mkdir()
        (tmp_path / "results" / "precious.txt").write_text("data")
        with pytest.raises(GraphError, match="exists and is no graph store"):
            run_ranks(size, lambda group: save(Graph.from_edges([0], [1], group=group), tmp_path / "results"))
        assert (tmp_path / "results" / "precious.txt").read_text() == "data"
        assert os.listdir(tmp_path) == ["results"]

    @pytest.mark.parametrize("size", [1, 3])
    def test_a_folder_that_cannot_be_written(self, run_ranks, tmp_path, size):
        def try_to_save(group):
            try:
                save(Graph.from_edges([0], [1], group=group), tmp_path / "missing" / "g.sigps")
            except GraphError as error:
                return str(error)

        for problem in run_ranks(size, try_to_save):
            assert "missing/g.sigps: the store cannot be written: No such file or directory. Check" in problem

    @pytest.mark.parametrize("failing", [0, 1])
    def test_a_full_disk_leaves_the_old_store(self, run_ranks, battery, tmp_path, monkeypatch, failing):
        path = tmp_path / "g.sigps"
        save(battery["grid"].build(), path)

        def write(self, folder):
            if self.first == 0 or failing == 0:
                raise OSError(28, "No space left on device")
            return []

        monkeypatch.setattr(sigps.graph.formats.store_writing.Slice, "write", write)
        with pytest.raises(GraphError, match="No space left on device"):
            run_ranks(2, lambda group: save(battery["skewed"].build(group=group), path))
        assert_same(open_store(path, verify="full"), battery["grid"].build())
        assert os.listdir(tmp_path) == ["g.sigps"]


class TestDamage:
    @pytest.fixture
    def path(self, skewed, tmp_path):
        save(skewed, tmp_path / "g.sigps")
        return tmp_path / "g.sigps"

    def test_no_store(self, tmp_path):
        with pytest.raises(GraphError, match="is no graph store"):
            open_store(tmp_path)
        with pytest.raises(GraphError, match="is no graph store"):
            open_store(tmp_path / "missing")

    @pytest.mark.parametrize("raw", [b"", b"\x00" * 100, b"PK\x03\x04 something else"])
    def test_wrong_magic(self, path, raw):
        (path / "header.msgpack").write_bytes(raw)
        with pytest.raises(GraphError, match="no header of a graph store"):
            open_store(path)

    def test_every_changed_byte_of_the_header_is_found(self, path):
        raw = bytearray((path / "header.msgpack").read_bytes())
        for at in range(len(raw)):
            raw[at] ^= 0x55
            (path / "header.msgpack").write_bytes(raw)
            with pytest.raises(
                GraphError, match=r"no header of a graph store|damaged|checksum|format version"
            ):
                open_store(path)
            raw[at] ^= 0x55

    def test_every_cut_of_the_header_is_found(self, path):
        raw = (path / "header.msgpack").read_bytes()
        for end in range(0, len(raw), 7):
            (path / "header.msgpack").write_bytes(raw[:end])
            with pytest.raises(GraphError):
                open_store(path)

    def test_another_version(self, path):
        change_header(path, lambda header: None, version=99)
        with pytest.raises(GraphError, match="format version 99, but this sigps reads versions 2 to 4"):
            open_store(path)

    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("name", ["offsets", "targets", "column-0", "column-1", "ids"])
    def test_a_truncated_or_missing_array(self, run_ranks, path, name, size):
        file = path / f"{name}.bin"
        os.truncate(file, file.stat().st_size - 1)
        with pytest.raises(GraphError, match=rf"{name}\.bin has [\d,]+ bytes, but the header says"):
            run_ranks(size, lambda group: open_store(path, group))
        file.unlink()
        with pytest.raises(GraphError, match=rf"{name}\.bin is missing"):
            run_ranks(size, lambda group: open_store(path, group))

    @pytest.mark.parametrize("size", [1, 3])
    @pytest.mark.parametrize("name", ["offsets", "targets", "column-0", "column-1", "ids"])
    @pytest.mark.parametrize("at", [0, -1])
    def test_verify_finds_one_changed_bit(self, run_ranks, path, name, at, size):
        raw = bytearray((path / f"{name}.bin").read_bytes())
        raw[at] ^= 1
        (path / f"{name}.bin").write_bytes(raw)
        with pytest.raises(GraphError, match=rf"{name}\.bin does not match its checksum within bytes 0 to"):
            run_ranks(size, lambda group: open_store(path, group, verify="full"))

    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("verify", ["full", "bounds"])
    @pytest.mark.parametrize(
        ("name", "change", "problem"),
        [
            ("offsets", lambda a: a.__setitem__(-1, 2**60), "offsets.bin is damaged"),
            ("offsets", lambda a: a.__setitem__(0, 1), "offsets.bin is damaged"),
            (
                "offsets",
                lambda a: a.__setitem__(a.size // 2, 0),
                "offsets.bin is damaged (a row ends before it",
            ),
            (
                "targets",
                lambda a: a.__setitem__(-1, 1000),
                "targets.bin is damaged (an edge leads to vertex 1,000 of",
            ),
            ("targets", lambda a: a.__setitem__(0, 2**32 - 1), "an edge leads to vertex 4,294,967,295 of"),
            ("ids", lambda a: a.__setitem__(1, a[0]), "ids.bin is damaged (ids do not ascend)"),
            ("in-offsets", lambda a: a.__setitem__(-1, 0), "in-offsets.bin is damaged"),
            ("in-sources", lambda a: a.__setitem__(3, 1000), "in-sources.bin is damaged (an edge leads to"),
            (
                "column-2",
                lambda a: a.view("u1").__setitem__(5, 255),
                "column-2.bin is damaged (a bool is neither",
            ),
        ],
    )
    def test_values_out_of_bounds_with_right_checksums(
        self, run_ranks, skewed, tmp_path, name, change, problem, verify, size
    ):
        flags = np.arange(skewed.num_edges) % 2 == 0
        replace(skewed, columns={**skewed.columns, "flag": flags}).save(tmp_path / "g.sigps", in_edges=True)
        change_array(tmp_path / "g.sigps", name, change)
        with pytest.raises(GraphError, match=re.escape(problem)):
            run_ranks(size, lambda group: open_store(tmp_path / "g.sigps", group, verify=verify))

    def test_ids_that_are_no_text(self, battery, tmp_path):
        battery["string_ids"].build().save(tmp_path / "g.sigps")
        change_array(tmp_path / "g.sigps", "ids", lambda ids: ids.view("<u4").__setitem__(-1, 0x110000))
        with pytest.raises(GraphError, match=r"ids\.bin is damaged \(an id is no text\)"):
            open_store(tmp_path / "g.sigps", verify="bounds")

    def test_bounds_alone_leave_other_changes_alone(self, path):
        (path / "column-0.bin").write_bytes(bytes((path / "column-0.bin").stat().st_size))
        assert not open_store(path, verify="bounds").columns["weight"].any()
        with pytest.raises(GraphError, match="does not match its checksum"):
            open_store(path)

    def test_verify_is_one_of_four(self, path, tmp_path):
        with pytest.raises(ConfigError, match="verify=True must be one of 'auto', 'full', 'bounds', 'none'"):
            open_store(path, verify=True)
        (tmp_path / "g.txt").write_text("1 2\n")
        with pytest.raises(ConfigError, match="verify='none' is for native stores"):
            load(tmp_path / "g.txt", verify="none")

    @pytest.mark.parametrize(
        "change",
        [
            lambda h: h["arrays"]["targets"].update(dtype="|O"),
            lambda h: h["arrays"]["targets"].update(dtype="<f4"),
            lambda h: h["arrays"]["column-0"].update(dtype="i4,i4"),
            lambda h: h["arrays"]["offsets"].update(count=3),
            lambda h: h["arrays"]["targets"].update(pieces=[]),
            lambda h: h["arrays"]["targets"]["pieces"].append([0, 4, 0, 0]),
            lambda h: h["arrays"]["targets"].update(pieces=[[0, 2.0, 0, 0]]),
            lambda h: h["arrays"].pop("ids"),
            lambda h: h["arrays"].update({"../ids": h["arrays"]["ids"]}),
            lambda h: h.update(num_vertices=-1),
            lambda h: h.update(num_vertices=2**63),
            lambda h: h.update(num_edges="many"),
            lambda h: h.update(id_kind="identity"),
            lambda h: h.update(id_base=2**63),
            lambda h: h.update(columns=["weight"]),
            lambda h: h.update(vertex_columns=[["x", [2]]]),
            lambda h: h.update(directed=None),
            lambda h: h.update(surplus=1),
            lambda h: h.pop("report"),
            lambda h: h.update(report=3),
            lambda h: h.update(report={"isolated": "many"}),
            lambda h: h.clear(),
        ],
    )  # fmt: skip
    def test_a_header_that_cannot_be_with_a_right_checksum(self, path, change):
        change_header(path, change)
        with pytest.raises(GraphError, match=r"header\.msgpack is not as sigps writes it"):
            open_store(path)


def test_rows_are_shared_out_by_their_bytes(run_ranks, tmp_path):
    sources = np.repeat([0, 50], [300, 300])
    graph = Graph.from_edges(sources, np.arange(600) % 100, group=Alone())
    save(graph, tmp_path / "g.sigps")
    parts = run_ranks(2, lambda group: open_store(tmp_path / "g.sigps", group))
    assert [part.targets.size for part in parts] == [300, 300]
