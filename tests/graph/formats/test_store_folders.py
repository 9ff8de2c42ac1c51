"""Packed stores in several folders: what is saved comes back, and a folder that is missing or foreign is named."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest
from crafted_stores import change_array, change_header
from turns import in_turn

from sigps import run
from sigps.apps import SSSP, WCC, PageRank
from sigps.errors import ConfigError, GraphError
from sigps.graph import Graph
from sigps.graph.fingerprint import fingerprint
from sigps.graph.formats import packed_store
from sigps.graph.formats.store_files import OpenStore
from sigps.graph.formats.store_header import describe_edges
from sigps.graph.generators.generate import generate
from sigps.graph.load import load, open_store

PAGE_ARCS = 64


@pytest.fixture
def folders(tmp_path):
    for disk in "abc":
        (tmp_path / disk).mkdir()
    return [tmp_path / disk / "g.sigps" for disk in "abc"]


@pytest.fixture
def graph():
    return generate("rmat", scale=9, seed=4, weights="random")


@pytest.fixture(params=["given", "degree"])
def store(request, graph, folders):
    """A store of a hundred small pages in three folders."""
    packed_store.save_packed(graph, folders, order=request.param, page_arcs=PAGE_ARCS)
    return folders


def edges_of(graph: Graph) -> list[tuple[int, int, float]]:
    table = graph.to_arrow().to_pydict()
    return sorted(zip(table["source"], table["target"], table["weight"], strict=True))


class TestRoundTrip:
    @pytest.mark.parametrize("verify", ["full", "bounds", "none", "auto"])
    def test_in_any_order(self, store, graph, verify):
        for given in (store, store[::-1], [store[1], store[0], store[2]]):
            opened = open_store(given, verify=verify)
            assert edges_of(opened) == edges_of(graph)

    def test_pages_are_dealt_out(self, store):
        """Each folder has every third page: its file is as long as those together."""
        opened = OpenStore(store)
        sizes = np.diff(opened.array("page-words").astype(np.int64))
        assert sizes.size > 60
        for number, (folder, name) in enumerate(zip(store, ("pages", "pages@1", "pages@2"), strict=True)):
            assert os.path.getsize(folder / f"{name}.bin") == 4 * sizes[number::3].sum()

    def test_what_lies_where(self, store):
        rows = describe_edges(store).splitlines()
        assert [row.split(":")[0].strip() for row in rows[1:]] == [str(folder) for folder in store]
        counts = [int(re.search(r": ([\d,]+) of the pages", row)[1]) for row in rows[1:]]
        assert sum(counts) == int(re.match(r"[\d,]+", rows[0])[0])
        assert max(counts) - min(counts) <= 1

    def test_more_folders_than_pages(self, folders, graph):
        graph.save(folders, packed=True)
        assert edges_of(open_store(folders, verify="full")) == edges_of(graph)

    def test_a_graph_without_edges(self, folders):
        Graph.from_edges([], [], vertices=[5, 7]).save(folders, packed=True)
        assert open_store(folders, verify="full").num_vertices == 2

    def test_one_folder_is_a_plain_store(self, folders, graph):
        graph.save(folders[0], packed=True)
        graph.save(folders[1:2], packed=True)
        for file in sorted(os.listdir(folders[0])):
            assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes()

    @pytest.mark.parametrize("size", [2, 3])
    def test_on_several_ranks(self, run_ranks, store, graph, size):
        parts = run_ranks(size, lambda group: open_store(store, group, verify="full"))
        assert np.concatenate([part.targets for part in parts]).tolist() == graph.targets.tolist()
        weights = np.concatenate([part.columns["weight"] for part in parts])
        assert weights.tobytes() == graph.columns["weight"].tobytes()

    def test_what_a_folder_had_is_replaced(self, store, folders):
        other = generate("grid", rows=9, columns=9, weights="random")
        packed_store.save_packed(other, folders, page_arcs=PAGE_ARCS)
        assert edges_of(open_store(folders, verify="full")) == edges_of(other)
        assert [os.listdir(folder.parent) for folder in folders] == [["g.sigps"]] * 3

    def test_updates_are_beside_the_first(self, store, graph):
        newer = open_store(store).apply(([0], [1], {"weight": [3.0]}))
        newer.save_update(store[::-1])
        assert any(name.startswith("update-") for name in os.listdir(store[0]))
        assert edges_of(load(store)) == edges_of(newer)


class TestRuns:
    @pytest.mark.parametrize(
        ("program", "size"), in_turn([PageRank(iterations=5), SSSP(source=0), WCC()], [1, 2]), ids=str
    )
    def test_streamed_runs_are_those_of_one_folder(self, run_ranks, store, graph, tmp_path, program, size):
        one = tmp_path / "one.sigps"
        order = OpenStore(store).header.packing.order
        packed_store.save_packed(graph, one, order=order, page_arcs=PAGE_ARCS)

        def fields(group, path):
            result = run(program, load(path, group=group), device="cpu", threads=2, stream="always")
            return {name: result[name].tobytes() for name in result.fields}, sum(
                s.bytes_read for s in result.stats
            )

        for found, expected in zip(
            run_ranks(size, lambda group: fields(group, store)),
            run_ranks(size, lambda group: fields(group, one)),
            strict=True,
        ):
            assert found == expected
            assert found[1] > 0

    def test_a_file_that_is_cut_short_in_a_run(self, store):
        opened = load(store)
        os.truncate(store[1] / "pages@1.bin", 128)
        with pytest.raises(GraphError, match=r"pages@1\.bin has 128 of its"):
            run(PageRank(iterations=3), opened, device="cpu", stream="always")

    def test_a_damaged_page_is_named_with_its_folder(self, store):
        change_array_of_part(store, "pages@2", lambda words: words.__setitem__(0, 3))
        with pytest.raises(GraphError, match=rf"{store[2]}: pages is damaged in page 2"):
            run(PageRank(iterations=3), open_store(store, verify="none"), device="cpu", stream="always")

    def test_fingerprint(self, store, graph):
        assert fingerprint(load(store)) == fingerprint(graph)


def change_array_of_part(folders, name, change):
    """Change the words of an array in a further folder, and leave its checksum."""
    path = folders[int(name.partition("@")[2])] / f"{name}.bin"
    words = np.fromfile(path, dtype="<u4")
    change(words)
    words.tofile(path)


class TestRefusals:
    def test_a_folder_that_is_not_given(self, store):
        with pytest.raises(GraphError, match=r"lies in 3 folders, and .* are given: folder 3 is missing"):
            load(store[:2])
        with pytest.raises(GraphError, match=r"lies in 3 folders, and .* is given: folder 2, 3 is missing"):
            load(store[0])

    def test_further_folders_alone(self, store):
        with pytest.raises(GraphError, match=rf"{store[1]} is folder 2 of 3 of a store: give all"):
            load(store[1])
        with pytest.raises(GraphError, match=r"none of .* is the first folder of a store"):
            load(store[1:])

    def test_a_folder_that_is_gone(self, store):
        shutil.rmtree(store[1])
        with pytest.raises(GraphError, match=rf"there is no folder {store[1]}, given as one"):
            load(store)

    def test_a_folder_of_another_store(self, store, tmp_path):
        others = [tmp_path / name for name in ("x", "y", "z")]
        other = generate("rmat", scale=9, seed=5, weights="random")
        packed_store.save_packed(other, others, page_arcs=PAGE_ARCS)
        with pytest.raises(
            GraphError, match=rf"{others[2]} is folder 3 of 3 of another store than {store[0]}"
        ):
            load([*store[:2], others[2]])
        with pytest.raises(GraphError, match=rf"{store[0]} and {others[0]} are two stores"):
            load([*store, others[0]])

    def test_something_else(self, store, tmp_path):
        (tmp_path / "notes").mkdir()
        with pytest.raises(GraphError, match="notes is none of the folders of the store"):
            load([*store[:2], tmp_path / "notes"])
        (tmp_path / "notes.txt").write_text("0 1\n")
        with pytest.raises(GraphError, match=r"notes\.txt is a file, and several paths are the folders"):
            load([*store[:2], tmp_path / "notes.txt"])
        with pytest.raises(ConfigError, match=r"format='csv' is read from one file, and 3 paths"):
            load(store, format="csv")

    def test_a_folder_twice(self, store, tmp_path):
        with pytest.raises(GraphError, match="are not two folders beside each other"):
            load([*store, store[1]])
        shutil.copytree(store[1], tmp_path / "copy")
        with pytest.raises(GraphError, match=rf"{store[1]} and {tmp_path / 'copy'} are both folder 2"):
            load([*store, tmp_path / "copy"])

    def test_no_path(self):
        with pytest.raises(GraphError, match="there is no path"):
            load([])

    def test_a_folder_that_says_nothing_readable(self, store):
        path = store[2] / "part.msgpack"
        raw = path.read_bytes()
        for damaged in (raw[:-1], raw[:8] + bytes([raw[8] ^ 1]) + raw[9:], b""):
            path.write_bytes(damaged)
            with pytest.raises(GraphError, match=rf"{path} is damaged"):
                load(store)

    def test_verify_finds_one_changed_bit(self, run_ranks, store):
        for file in sorted(path for folder in store for path in folder.glob("*.bin")):
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 2] ^= 1
            file.write_bytes(raw)
            with pytest.raises(GraphError, match=rf"{file.parent}: {file.name} does not match its checksum"):
                open_store(store, verify="full")
            raw[len(raw) // 2] ^= 1
            file.write_bytes(raw)

    def test_a_truncated_or_missing_file(self, store):
        for file in sorted(path for folder in store[1:] for path in folder.glob("*.bin")):
            raw = file.read_bytes()
            file.write_bytes(raw[:-1])
            with pytest.raises(GraphError, match=rf"{file.name} has [\d,]+ bytes, but the header says"):
                load(store)
            file.unlink()
            with pytest.raises(GraphError, match=rf"{file.parent}: {file.name} is missing"):
                load(store)
            file.write_bytes(raw)

    def test_pages_that_moved_between_folders(self, store):
        """A table with right checksums by which the pages of two folders have other sizes than their files."""
        change_array(store[0], "page-words", lambda begins: begins.__setitem__(1, begins[1] + 32))
        with pytest.raises(GraphError, match=r"pages\.bin has [\d,]+ words, and its pages"):
            open_store(store)

    @pytest.mark.parametrize("count", [0, 1, 2, 4, -1, "3", True, 10**9])
    def test_a_header_with_another_number(self, store, count):
        change_header(store[0], lambda header: header["packing"].update(num_folders=count))
        with pytest.raises(GraphError, match=r"header\.msgpack is not as sigps writes it"):
            open_store(store)

    def test_only_packed_stores_are_spread(self, graph, folders):
        with pytest.raises(ConfigError, match="a store in 3 folders is a packed one"):
            graph.save(folders)

    def test_folders_within_each_other(self, graph, tmp_path):
        with pytest.raises(GraphError, match="are not two folders beside each other"):
            graph.save([tmp_path / "a", tmp_path / "a" / "b"], packed=True)
        assert not os.listdir(tmp_path)

    def test_something_else_is_not_replaced(self, graph, folders):
        folders[1].mkdir()
        (folders[1] / "precious.txt").write_text("data")
        with pytest.raises(
            GraphError, match=rf"{folders[1]} exists and is no further folder of a graph store"
        ):
            graph.save(folders, packed=True)
        assert [os.listdir(folder.parent) for folder in folders] == [[], ["g.sigps"], []]

    def test_a_full_disk_leaves_the_old_store(self, store, graph, monkeypatch):
        def append(self, page):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(packed_store._Words, "append", append)
        with pytest.raises(GraphError, match="No space left on device"):
            generate("grid", rows=5, columns=5).save(store, packed=True)
        assert edges_of(open_store(store, verify="full")) == edges_of(graph)
        assert [os.listdir(folder.parent) for folder in store] == [["g.sigps"]] * 3
