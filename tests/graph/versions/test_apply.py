"""Versions of graphs against graphs built anew from the edges that are left."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from histories import History, drawn, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Graph, GraphError
from sigps.apps import SSSP, WCC, PageRank, Triangles
from sigps.device.cpu import Threads
from sigps.graph.fingerprint import fingerprint
from sigps.graph.versions import apply, editing
from sigps.graph.versions import rows as version_rows
from sigps.graph.versions.editing import write_edits
from sigps.graph.versions.rows import RowContents, VersionRows


def assert_equal_rows(found: Any, expected: Any, ends: str = "targets") -> None:
    assert found.offsets.tolist() == expected.offsets.tolist()
    assert getattr(found, ends).tolist() == getattr(expected, ends).tolist()
    assert getattr(found, ends).dtype == getattr(expected, ends).dtype
    assert {n: (c.dtype, c.tolist()) for n, c in found.columns.items()} == {
        n: (c.dtype, c.tolist()) for n, c in expected.columns.items()
    }


def assert_equal(found: Graph, expected: Graph) -> None:
    assert_equal_rows(found, expected)
    assert found.num_vertices == expected.num_vertices
    assert found.num_edges == expected.num_edges
    assert np.asarray(found.ids).tolist() == np.asarray(expected.ids).tolist()
    assert found.ids.kind == expected.ids.kind
    assert found.out_degrees().tolist() == expected.out_degrees().tolist()
    assert found.in_degrees().tolist() == expected.in_degrees().tolist()


_THREE = Threads(3)
"""Share rows in tests."""


@settings(max_examples=drawn(250), deadline=None)
@given(
    histories(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(1, 1, 1 << 12), (4, 4, 1 << 12), (16, 16, 1 << 12), (16, 1, 1)]),
)
def test_rows_are_those_of_a_graph_built_anew(
    history: History, edits: bool, shares: bool, slack: tuple[int, int, int]
) -> None:
    of_rows, of_moved, least = (
        slack  # with the last ones rows are laid out anew often, and have less room then
    )
    graph = history.first()
    if edits:
        graph.in_edges()
    before = graph.offsets.tolist(), graph.targets.tolist(), graph.columns["weight"].tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "WORTH_COMPILING", 0 if edits else 1 << 60)
        if shares:
            patch.setattr(editing, "_WORTH_SHARING", 0)
            for module in (editing, version_rows):
                patch.setattr(module, "shared_threads", lambda: _THREE)
        patch.setattr(version_rows, "_ROW_SLACK", of_rows)
        patch.setattr(version_rows, "_MOVED_SLACK", of_moved)
        patch.setattr(version_rows, "_LEAST_ROOM", least)
        patch.setattr(version_rows, "write_edits", write_edits.__wrapped__)  # type: ignore[attr-defined]  # checks bounds
        versions, judges = history.newer(graph), history.judges()
    for newer, judge in zip(
        reversed(versions), reversed(judges), strict=True
    ):  # older ones are read from newer ones
        assert_equal(newer, judge)
    assert [newer.update.missing for newer in versions] == history.missing()
    assert (graph.offsets.tolist(), graph.targets.tolist(), graph.columns["weight"].tolist()) == before


@settings(max_examples=drawn(100), deadline=None)
@given(histories(), st.data(), st.integers(1, 3))
def test_vertices_are_deleted_with_their_edges(history: History, data: st.DataObject, ranks: int) -> None:
    ids = st.sampled_from(history.vertices)
    history.gone = [data.draw(st.lists(ids, max_size=3)) for _ in history.batches]
    judges = [judge for judge in history.judges() if judge.num_vertices]

    def of(group: ThreadGroup | None) -> list[Any]:
        graph = history.first(**({"group": group} if group else {}))
        graph.in_edges() if group is None else None
        return [parts_of(newer) for newer in history.newer(graph) if newer.num_vertices]

    found = run_ranks(ranks, of) if ranks > 1 else [of(None)]
    for number, judge in enumerate(judges):
        parts = [of_rank[number] for of_rank in found]
        assert [v for part in parts for v in part["vertices"]] == np.asarray(judge.ids).tolist()
        assert [e for part in parts for e in part["edges"]] == parts_of(judge)["edges"]
        assert {part["sizes"] for part in parts} == {(judge.num_vertices, judge.num_edges)}


def parts_of(graph: Graph) -> dict[str, Any]:
    """What this rank has of a graph."""
    ids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
    first, rows = graph.first_row, np.repeat(np.arange(graph.num_rows), np.diff(graph.offsets).astype(int))
    edges = zip(rows.tolist(), graph.targets.tolist(), graph.columns["weight"].tolist(), strict=True)
    return {
        "vertices": ids[first : first + graph.num_rows],
        "edges": [(ids[first + s], ids[t], w) for s, t, w in edges],
        "sizes": (graph.num_vertices, graph.num_edges),
    }


class TestDeletedVertices:
    graph = Graph.from_edges([1, 1, 3, 5], [3, 5, 1, 5], [1.0, 2.0, 3.0, 4.0])

    def test_take_what_a_batch_says_of_them_first(self) -> None:
        newer = self.graph.apply(([3], [5], [9.0]), ([1, 3], [5, 1]), delete_vertices=[3, 3, 4])
        assert newer.to_arrow().to_pydict() == {"source": [3, 5], "target": [5, 5], "weight": [9.0, 4.0]}
        assert np.asarray(newer.ids).tolist() == [1, 3, 5]
        update = newer.update
        assert (update.deleted_vertices, update.new_vertices, update.deleted, update.missing) == (1, 1, 3, 2)
        assert np.asarray(self.graph.ids).tolist() == [1, 3, 5]
        assert self.graph.num_edges == 4

    def test_lose_their_columns(self) -> None:
        graph = self.graph.with_vertex_columns({"age": [10, 30, 50]})
        assert graph.apply(vertices=[3], delete_vertices=[1, 3]).vertex_columns["age"].tolist() == [0, 50]

    def test_that_are_none_are_refused(self) -> None:
        with pytest.raises(GraphError, match="2 of the 3 ids to delete are no vertices"):
            self.graph.apply(delete_vertices=[1, 2, 4], missing="error")

    def test_are_kept_beside_a_store(self, tmp_path: Any) -> None:
        self.graph.save(tmp_path / "g")
        newer = self.graph.apply(([7], [1], [1.0]), delete_vertices=[3])
        newer.save_update(tmp_path / "g")
        assert_equal(sigps.load(tmp_path / "g"), newer)

    def test_fingerprints_follow(self) -> None:
        fingerprint(self.graph)
        newer = self.graph.apply(delete_vertices=[1])
        assert fingerprint(newer) == fingerprint(Graph.from_edges([5], [5], [4.0], vertices=[3]))


@settings(max_examples=drawn(100), deadline=None)
@given(histories(), st.booleans())
def test_what_is_derived_follows(history: History, edits: bool) -> None:
    graph = history.first()
    graph.in_edges(), graph.undirected(), graph.undirected(simple=True), graph.both_ways(), fingerprint(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "WORTH_COMPILING", 0 if edits else 1 << 60)
        versions = history.newer(graph)
    for newer, judge in zip(versions, history.judges(), strict=True):
        assert_equal_rows(newer.in_edges(), judge.in_edges(), "sources")
        assert_equal_rows(newer.undirected(), judge.undirected())
        assert_equal_rows(newer.undirected(simple=True), judge.undirected(simple=True))
        assert_equal_rows(newer.both_ways(), judge.both_ways())
        assert fingerprint(newer) == fingerprint(judge)


@settings(max_examples=drawn(25), deadline=None)
@given(histories())
def test_ranks_hold_the_same_edges(history: History) -> None:
    def of(group: ThreadGroup) -> tuple[list[str], list[int]]:
        graph = history.first(group=group)
        fingerprint(graph)
        versions = history.newer(graph)
        return [fingerprint(version) for version in versions], [
            version.update.missing for version in versions
        ]

    assert run_ranks(2, of) == [([fingerprint(judge) for judge in history.judges()], history.missing())] * 2


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_programs_run_on_a_version_as_on_a_graph_built_anew(device: str) -> None:
    draw = np.random.default_rng(3)
    edges = [(int(s), int(t), int(w)) for s, t, w in draw.integers(0, 60, (300, 3))]
    history = History(
        edges, list(range(60)), [(edges[:9], [edge[:2] for edge in edges[20:60]]), ([(70, 3, 1)], [])]
    )
    programs = [PageRank(iterations=4), SSSP(source=3), WCC(), Triangles()]
    for newer, judge in zip(history.newer(history.first()), history.judges(), strict=True):
        for program in programs:
            found, expected = (sigps.run(program, graph, device=device) for graph in (newer, judge))
            for name in expected.fields:
                np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("name", BATTERY)
def test_an_edge_that_is_inserted_and_deleted_leaves_the_graph(name: str) -> None:
    graph = BATTERY[name].build()
    if not graph.num_vertices:
        assert graph.apply(([3], [4])).to_arrow().to_pydict() == {"source": [3], "target": [4]}
        return
    last = graph.ids.to_oids([graph.num_vertices - 1])
    values = {column: np.ones(1, dtype) for column, dtype in graph.column_types().items()}
    there = int(np.count_nonzero((graph.targets == graph.num_vertices - 1)[int(graph.offsets[-2]) :]))
    newer = graph.apply((last, last, values))
    assert newer.num_edges == graph.num_edges + 1
    gone = newer.apply(deletes=(last, last))
    assert gone.num_edges == graph.num_edges - there
    assert gone.update.deleted == there + 1


def test_versions_share_an_arena_and_go_when_nothing_holds_them() -> None:
    draw = np.random.default_rng(5)
    graph = Graph.from_edges(draw.integers(0, 500, 20_000), draw.integers(0, 500, 20_000))
    first = graph.apply(([1], [2]))
    second = first.apply(([2], [3]))
    assert first._version is not None
    assert second._version is not None
    assert first._version.rows._arena is second._version.rows._arena
    assert second.versions == (0, 1, 2)
    assert second.at(1) is first
    del first
    gc.collect()  # compiling a loop, at its first call, leaves frames in circles
    assert second.versions == (0, 2)
    with pytest.raises(GraphError, match="there is no version 1"):
        second.at(1)


def test_a_full_arena_is_laid_out_anew_and_older_versions_stay() -> None:
    draw = np.random.default_rng(6)
    graph = Graph.from_edges([], [], [], vertices=np.arange(100))
    versions, lists = [graph], [[]]
    for _ in range(60):
        batch = [(int(s), int(t), 1.0) for s, t in draw.integers(0, 100, (300, 2))]
        lists.append(lists[-1] + batch)
        versions.append(versions[-1].apply(tuple(zip(*batch, strict=True))))
    arenas = {id(v._version.rows._arena) for v in versions[1:] if v._version}
    assert len(arenas) > 2
    for at in (60, 31, 7):
        edges = sorted((s, t) for s, t, _ in lists[at])
        sources = np.repeat(np.arange(100), versions[at].out_degrees())
        assert list(zip(sources.tolist(), versions[at].targets.tolist(), strict=True)) == edges


@pytest.mark.parametrize("directed", [True, False])
def test_rows_that_grow_as_they_move_to_another_arena_have_room_there(
    directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_rows, "write_edits", write_edits.__wrapped__)  # type: ignore[attr-defined]
    sources, targets = np.divmod(np.arange(100 * 400), 400)
    graph = Graph.from_edges(sources, 100 + targets, directed=directed)
    half = targets < 200
    thin = graph.apply(deletes=(sources[half], 100 + targets[half]))  # leaves much room behind each row
    more = np.repeat(np.arange(100), 60), np.tile(np.arange(500, 560), 100)
    found = thin.apply(more)
    assert thin._version is not None
    assert found._version is not None
    arena = found._version.rows._arena
    assert arena is not thin._version.rows._arena
    assert arena.used <= arena.ends.size
    edges = np.concatenate([sources[~half], more[0]]), np.concatenate([100 + targets[~half], more[1]])
    assert_equal(found, Graph.from_edges(*edges, vertices=np.asarray(found.ids), directed=directed))


@pytest.mark.parametrize("size", [10, 2000])
def test_the_rows_of_a_long_stream_take_little_more_than_plain_ones(size: int) -> None:
    draw = np.random.default_rng(7)
    ends = (3000 * draw.random((2, 400_000)) ** 2).astype(np.int64)  # some rows are hubs
    graph = Graph.from_edges(*ends, ends[0], duplicates="drop").apply()
    for _ in range(100):
        some = draw.integers(0, graph.num_edges, size)
        gone = np.searchsorted(graph.offsets, some, side="right") - 1, graph.targets[some]
        more = (3000 * draw.random((2, size)) ** 2).astype(np.int64)
        graph = graph.apply((*more, more[0]), gone)
        assert graph._version is not None
        plain = graph.offsets.nbytes + graph.targets.nbytes + graph.columns["weight"].nbytes
        assert graph._version.rows.nbytes < 1.25 * plain + 150_000  # room that a graph of any size has


def test_two_batches_on_one_version_make_two_graphs() -> None:
    graph = Graph.from_edges([0, 1], [1, 2]).apply(([2], [0]))
    one, other = graph.apply(([0], [0])), graph.apply(deletes=([0], [1]))
    assert one.to_arrow().to_pydict() == {"source": [0, 0, 1, 2], "target": [0, 1, 2, 0]}
    assert other.to_arrow().to_pydict() == {"source": [1, 2], "target": [2, 0]}
    assert (one.version, other.version, other.versions) == (2, 3, (1, 2, 3))


def test_rows_in_many_pieces_are_read_in_order() -> None:
    size = 3 * (1 << 12)
    rows = VersionRows.of(np.arange(size + 1, dtype=np.uint64), np.arange(size, dtype=np.uint32), {})
    other = np.arange(0, size, 2)
    new = RowContents(other, np.arange(other.size + 1), other.astype(np.uint32) + 7, {})
    offsets, ends, _ = rows.replaced(new, size).plain()
    expected = np.arange(size)
    expected[::2] += 7
    assert ends.tolist() == expected.tolist()
    assert offsets.tolist() == list(range(size + 1))


class TestDeletes:
    def test_named_columns_choose_among_parallel_edges(self) -> None:
        graph = Graph.from_edges([0, 0, 0], [1, 1, 1], [1.0, 2.0, 1.0])
        newer = graph.apply(deletes=([0], [1], [1.0]))
        assert newer.columns["weight"].tolist() == [2.0]
        assert (newer.update.deleted, newer.update.missing) == (2, 0)
        assert graph.apply(deletes=([0], [1], {"weight": [9.0]})).update.missing == 1

    def test_what_is_missing_is_an_error_on_request(self) -> None:
        graph = Graph.from_edges([0], [1])
        with pytest.raises(GraphError, match="2 of the 3 edges to delete match no edge"):
            graph.apply(deletes=([0, 1, 8], [1, 0, 8]), missing="error")


class TestRefused:
    @pytest.mark.parametrize("at", [0, 100_000, 199_999])
    def test_one_number_of_many_that_does_not_fit(self, at: int):
        graph = sigps.Graph.from_edges([0], [1], [1])
        weights = np.ones(200_000)
        weights[at] = 0.5
        ends = np.zeros(200_000, int), np.ones(200_000, int)
        with pytest.raises(GraphError, match=rf"weight\[{at}\] is 0.5, which the graph's int64 cannot hold"):
            graph.apply((*ends, weights))
        weights[at] = np.nan
        with pytest.raises(GraphError, match=rf"weight\[{at}\] is NaN"):
            graph.apply((*ends, weights))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"inserts": ([0], [1])}, "have a column 'weight', so every new one needs it"),
            ({"inserts": ([0], [1], {"time": [3], "weight": [1]})}, "no edge column 'time'"),
            ({"inserts": (["a"], ["b"], [1.0])}, "whole numbers, so new ones must be too"),
            ({"inserts": ([0], [1, 2], [1.0])}, r"targets has shape \(2,\)"),
            ({"inserts": ([0], [1], [1.5])}, "which the graph's int64 cannot hold"),
            ({"inserts": ([0], [1], ["x"])}, "inserts: column 'weight' holds <U1"),
            ({"deletes": ([0],)}, "has 1 parts"),
            ({"missing": "ignore"}, "missing='ignore' is not known"),
        ],
    )
    def test_with_the_reason(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(GraphError, match=message):
            Graph.from_edges([0, 1], [1, 2], [1, 2]).apply(**given)


def test_tables_are_batches() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    graph = Graph.from_edges([0], [1], [1.0])
    newer = graph.apply(
        pyarrow.table({"weight": [2.0], "source": [1], "target": [0]}), {"src": [0], "dst": [1]}
    )
    assert newer.to_arrow().to_pydict() == {"source": [1], "target": [0], "weight": [2.0]}


def test_vertex_columns_are_zero_for_new_vertices() -> None:
    graph = Graph.from_edges([1], [3]).with_vertex_columns({"age": [10, 30]})
    assert graph.apply(([2], [4])).vertex_columns["age"].tolist() == [10, 0, 30, 0]
    assert graph.apply(vertices=[9]).vertex_columns["age"].tolist() == [10, 30, 0]


def test_degrees_are_those_of_a_version_where_one_after_it_was_read() -> None:
    first = Graph.from_edges([0, 1], [1, 2]).apply()
    second = first.apply()
    third = second.apply(([0, 0], [0, 1]), ([1], [2]))
    assert second.targets.tolist() == [1, 2]
    assert first.out_degrees().tolist() == [1, 1, 0]
    assert third.out_degrees().tolist() == [3, 0, 0]
