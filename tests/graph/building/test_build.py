"""Building graphs from chunks, judged by a slow twin that keeps edges in Python lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thread_group import run_ranks as run_on_threads

import sigps.graph.building.numbering
import sigps.graph.building.rows
from sigps.errors import GraphError
from sigps.graph import EdgeChunk, Graph, LoadReport, build_graph
from sigps.graph.building import pieces
from sigps.graph.building.edges import TextChunk
from sigps.graph.building.texts import Texts
from sigps.group import Alone

REDUCERS = {"sum": sum, "min": min, "max": max}


def expected_rows(
    sources, targets, weights, *, directed, vertices=(), duplicates="keep", self_loops="keep", tags=None
) -> tuple[list[Any], dict[Any, list[tuple[Any, Any, Any]]]]:
    """Return the sorted ids and each id's row of (target, weight, tag): the slow twin of `build_graph`."""
    ids = sorted({*sources, *targets, *vertices})
    rows: dict[Any, list[tuple[Any, Any, Any]]] = {oid: [] for oid in ids}
    tags = range(len(sources)) if tags is None else tags
    for source, target, weight, tag in zip(sources, targets, weights, tags, strict=True):
        if source == target and self_loops == "drop":
            continue
        rows[source].append((target, weight, tag))
        if not directed and source != target:
            rows[target].append((source, weight, tag))
    for oid, row in rows.items():
        row.sort(key=lambda edge: edge[0])
        if duplicates != "keep":
            runs: dict[Any, list[tuple[Any, Any, Any]]] = {}
            for edge in row:
                runs.setdefault(edge[0], []).append(edge)
            reducer = REDUCERS.get(duplicates, lambda weights: next(iter(weights)))
            rows[oid] = [
                (target, reducer([edge[1] for edge in run]), run[0][2]) for target, run in runs.items()
            ]
    return ids, rows


def rows_of(graph: Graph) -> dict[Any, list[tuple[Any, ...]]]:
    """Return the rows by oid, edges as (target oid, *columns), through the public attributes only."""
    oids = graph.ids.to_oids(np.arange(graph.num_vertices)).tolist()
    ends = graph.ids.to_oids(graph.targets.astype(np.int64)).tolist()
    edges = list(zip(ends, *(column.tolist() for column in graph.columns.values()), strict=True))
    bounds = graph.offsets.tolist()
    return {oid: edges[bounds[row] : bounds[row + 1]] for row, oid in enumerate(oids)}


def in_chunks(sources, targets, columns, cuts) -> list[EdgeChunk]:
    parts = [np.split(np.asarray(array), cuts) for array in (sources, targets, *columns.values())]
    return [
        EdgeChunk(part[0], part[1], dict(zip(columns, part[2:], strict=True)))
        for part in zip(*parts, strict=True)
    ]


KINDS = {
    "small": st.integers(0, 12),
    "negative": st.integers(-4, 4),
    "offset": st.integers(10**12, 10**12 + 9),
    "wide": st.sampled_from([-(2**63), -1, 0, 5, 2**32 - 1, 2**32, 2**63 - 1]),
    "sparse": st.sampled_from([0, 3, 2**31, 2**32 - 1]),
    "strings": st.sampled_from(["", "a", "b", "aa", "é", "long name"]),
}


@st.composite
def edge_lists(draw):
    vertex = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    edges = draw(st.lists(st.tuples(vertex, vertex, st.integers(-5, 5)), max_size=30))
    options = {
        "directed": draw(st.booleans()),
        "vertices": draw(st.lists(vertex, max_size=4)),
        "duplicates": draw(st.sampled_from(["keep", "drop", "sum", "min", "max"])),
        "self_loops": draw(st.sampled_from(["keep", "drop"])),
    }
    cuts = sorted(draw(st.lists(st.integers(0, len(edges)), max_size=3)))
    sources, targets, weights = ([edge[i] for edge in edges] for i in range(3))
    if any(isinstance(oid, str) for oid in [*sources, *options["vertices"]]):
        sources, targets = (np.array(ends, dtype=np.str_) for ends in (sources, targets))
        options["vertices"] = np.array(options["vertices"], dtype=np.str_)
    else:
        sources, targets = (np.array(ends, dtype=np.int64) for ends in (sources, targets))
        options["vertices"] = np.array(options["vertices"], dtype=np.int64)
    return sources, targets, np.array(weights, dtype=np.int64), options, cuts


def as_lists(sources, targets, weights, options):
    lists = {**options, "vertices": options["vertices"].tolist()}
    return (sources.tolist(), targets.tolist(), weights.tolist()), lists


class TestAgainstTheSlowTwin:
    @given(edge_lists())
    @settings(deadline=None)
    def test_with_columns(self, drawn):
        sources, targets, weights, options, cuts = drawn
        tags = np.arange(sources.size)
        chunks = in_chunks(sources, targets, {"weight": weights, "tag": tags}, cuts)
        graph = build_graph(chunks, group=Alone(), **options)
        lists, plain = as_lists(sources, targets, weights, options)
        ids, rows = expected_rows(*lists, **plain)
        assert rows_of(graph) == rows
        assert graph.num_vertices == len(ids)
        assert graph.num_edges == sum(map(len, rows.values())) == graph.report.edges_stored
        assert graph.report.edges_given == sources.size
        assert graph.report.self_loops == sum(s == t for s, t in zip(*lists[:2], strict=True))

    @given(edge_lists())
    @settings(deadline=None)
    def test_without_columns(self, drawn):
        sources, targets, weights, options, cuts = drawn
        graph = build_graph(in_chunks(sources, targets, {}, cuts), group=Alone(), **options)
        lists, plain = as_lists(sources, targets, weights, options)
        _, rows = expected_rows(*lists, **plain)
        assert rows_of(graph) == {oid: [edge[:1] for edge in row] for oid, row in rows.items()}
        kept = [
            pair
            for pair in zip(*lists[:2], strict=True)
            if options["self_loops"] == "keep" or pair[0] != pair[1]
        ]
        distinct = set(kept) if options["directed"] else {tuple(sorted(pair)) for pair in kept}
        assert graph.report.duplicates == len(kept) - len(distinct)
        touched = {oid for pair in kept for oid in pair}
        assert graph.report.isolated == graph.num_vertices - len(touched)

    @given(edge_lists(), st.integers(2, 4))
    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
    def test_ranks_together_hold_the_graph_of_one(self, drawn, size):
        sources, targets, weights, options, cuts = drawn
        columns = {"weight": weights, "tag": np.arange(sources.size)}
        alone = build_graph(in_chunks(sources, targets, columns, cuts), group=Alone(), **options)

        def build_share(group):
            cut = slice(sources.size * group.rank // size, sources.size * (group.rank + 1) // size)
            share = [EdgeChunk(sources[cut], targets[cut], {name: c[cut] for name, c in columns.items()})]
            graph = build_graph(share, group=group, **options)
            return graph, graph.ids.to_oids(np.arange(graph.num_vertices) if group.rank == 0 else [])

        parts = run_on_threads(size, build_share)
        assert_same_graph([graph for graph, _ in parts], alone)
        assert parts[0][1].tolist() == alone.ids.to_oids(np.arange(alone.num_vertices)).tolist()

    @given(edge_lists())
    @settings(deadline=None)
    def test_pieces_make_the_graph_of_memory(self, drawn):
        sources, targets, weights, options, cuts = drawn
        columns = {"weight": weights, "tag": np.arange(sources.size)}
        is_text = sources.dtype.kind == "U"
        if is_text:
            del options["vertices"]
        chunks: Any = in_chunks(sources, targets, columns, cuts)
        alone = build_graph(chunks, group=Alone(), **options)
        if is_text:
            chunks = [TextChunk(texts_of(c.sources), texts_of(c.targets), c.columns) for c in chunks]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pieces, "_FIXED_BYTES", 200)
            patch.setattr(pieces, "_BLOCK_EDGES", 7)
            least = 2 * (pieces._VERTEX_BYTES * alone.num_vertices + pieces._FIXED_BYTES)
            graph = build_graph(chunks, group=Alone(), memory=least, **options)
        assert_same_graph([graph], alone)
        assert np.asarray(graph.ids).tolist() == np.asarray(alone.ids).tolist()
        found, expected = graph.in_edges(), alone.in_edges()
        assert found.offsets.tolist() == expected.offsets.tolist()
        assert found.sources.tolist() == expected.sources.tolist()
        assert found.columns["tag"].tolist() == expected.columns["tag"].tolist()


def texts_of(ends: np.ndarray) -> Texts:
    return Texts.of_bytes([end.encode() for end in ends.tolist()])


def assert_same_graph(parts: list[Graph], alone: Graph) -> None:
    bounds = parts[0].row_bounds
    assert bounds[0] == 0
    assert bounds[-1] == alone.num_vertices
    for rank, part in enumerate(parts):
        assert part.row_bounds.tolist() == bounds.tolist()
        assert part.offsets[0] == 0
        assert (part.first_row, part.num_rows) == (bounds[rank], bounds[rank + 1] - bounds[rank])
        assert part.num_edges == alone.num_edges
        assert part.offsets.dtype == np.uint64
        assert part.targets.dtype == alone.targets.dtype
        assert list(part.columns) == list(alone.columns)
        ours, its = vars(part.report).copy(), vars(alone.report).copy()
        for unequal in ("seconds", "num_bytes"):
            ours.pop(unequal), its.pop(unequal)
        assert ours == its
    assert np.concatenate([part.out_degrees() for part in parts]).tolist() == alone.out_degrees().tolist()
    assert np.concatenate([part.targets for part in parts]).tolist() == alone.targets.tolist()
    for name, column in alone.columns.items():
        together = np.concatenate([part.columns[name] for part in parts])
        assert together.dtype == column.dtype
        assert together.tolist() == column.tolist()


class TestRanks:
    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    @pytest.mark.parametrize("duplicates", ["keep", "drop"])
    def test_battery(self, run_ranks, sample, size, duplicates):
        alone = sample.build(group=Alone(), duplicates=duplicates)
        parts = run_ranks(size, lambda group: sample.build(group=group, duplicates=duplicates))
        assert_same_graph(parts, alone)
        degrees = run_ranks(size, lambda group: sample.build(group=group, duplicates=duplicates).in_degrees())
        assert np.concatenate(degrees).tolist() == alone.in_degrees().tolist()

    def test_many_rounds_of_exchange_keep_the_given_order(self, run_ranks, battery, monkeypatch):
        monkeypatch.setattr(sigps.graph.building.numbering, "_BLOCK_EDGES", 7)
        sample = battery["skewed"]
        alone = sample.build(group=Alone(), directed=False)
        assert_same_graph(run_ranks(3, lambda group: sample.build(group=group, directed=False)), alone)

    def test_local_shares_follow_one_another(self, run_ranks):
        def build_local(group):
            return Graph.from_edges(
                [[0, 2], [], [0]][group.rank],
                [[1, 0], [], [1]][group.rank],
                [[1.5, 2.5], [], [3.5]][group.rank],
                vertices=[[9], [4], []][group.rank],
                local=True,
                group=group,
            )

        alone = Graph.from_edges([0, 2, 0], [1, 0, 1], [1.5, 2.5, 3.5], vertices=[9, 4], group=Alone())
        assert_same_graph(run_ranks(3, build_local), alone)

    def test_a_rank_without_edges_learns_the_columns(self, run_ranks):
        def build_local(group):
            chunks = [EdgeChunk(np.array([0]), np.array([1]), {"weight": np.array([1], np.float32)})]
            return build_graph(chunks if group.rank == 1 else [], directed=True, group=group)

        parts = run_ranks(2, build_local)
        assert [part.columns["weight"].dtype for part in parts] == [np.float32, np.float32]

    def test_ranks_with_different_number_types_agree(self, run_ranks):
        def build_local(group):
            weight = np.array([[1], [2.5]][group.rank])
            chunks = [EdgeChunk(np.array([group.rank]), np.array([1]), {"weight": weight})]
            return build_graph(chunks, directed=True, group=group)

        parts = run_ranks(2, build_local)
        assert np.concatenate([part.columns["weight"] for part in parts]).tolist() == [1.0, 2.5]

    def test_ranks_with_different_columns_are_refused(self, run_ranks):
        def build_local(group):
            columns = [{"weight": np.ones(1)}, {}][group.rank]
            return build_graph([EdgeChunk(np.zeros(1), np.ones(1), columns)], directed=True, group=group)

        with pytest.raises(GraphError, match=r"columns \['weight'\], others \[\]"):
            run_ranks(2, build_local)

    def test_one_rank_with_strings_is_refused(self, run_ranks):
        def build_local(group):
            ends = np.array([[1], ["a"]][group.rank])
            return build_graph([EdgeChunk(ends, ends)], directed=True, group=group)

        with pytest.raises(GraphError, match="some ids are strings and some are integers"):
            run_ranks(2, build_local)

    @pytest.mark.parametrize(
        ("wrong", "problem"),
        [
            ({"weights": [float("nan")]}, "weight[0] is NaN"),
            ({"weights": [float("-inf")]}, "weight[0] is -inf: every edge needs a finite number"),
            ({"columns": {"cost": [float("inf")]}}, "cost[0] is inf: every edge needs a finite number"),
            ({"sources": [0.5]}, "sources[0] is 0.5"),
            ({"targets": [1, 2]}, "targets has shape (2,)"),
            ({"vertices": [None]}, "must be all whole numbers or all strings, not NoneType"),
        ],
    )
    def test_what_is_wrong_on_one_rank_fails_on_all(self, run_ranks, wrong, problem):
        def build_local(group):
            given = {"sources": [1], "targets": [2], "weights": [1.0], "vertices": [3]}
            try:
                given |= wrong if group.rank == 1 else {}
                Graph.from_edges(**given, local=True, group=group)
            except GraphError as error:
                return str(error)

        first, second, third = run_ranks(3, build_local)
        assert problem in second
        assert first == third == f"rank 1 failed: GraphError: {second}"

    def test_a_failing_rank_still_meets_the_others_at_the_end_of_the_chunks(self, run_ranks):
        def build(group):
            def chunks():
                yield EdgeChunk(
                    np.array([0]), np.array([1]), {"weight": np.array([[1.0, np.nan][group.rank]])}
                )
                group.barrier()

            try:
                build_graph(chunks(), directed=True, group=group)
            except GraphError as error:
                return str(error)

        problems = run_ranks(2, build)
        assert "NaN" in problems[1]
        assert problems[0] == "rank 1 failed: GraphError: " + problems[1]

    def test_rows_are_shared_out_by_edges(self, run_ranks):
        sources = np.repeat([0, 50], [300, 300])
        targets = np.arange(600) % 100
        parts = run_ranks(2, lambda group: Graph.from_edges(sources, targets, group=group))
        assert [part.targets.size for part in parts] == [300, 300]

    def test_more_ranks_than_vertices(self, run_ranks):
        parts = run_ranks(4, lambda group: Graph.from_edges([5], [6], group=group))
        assert_same_graph(parts, Graph.from_edges([5], [6], group=Alone()))


class TestChunks:
    def test_any_cut_gives_the_same_graph(self, battery):
        sample = battery["skewed"]
        whole = sample.build(group=Alone())
        columns = {"weight": np.array(sample.weights)}
        for cuts in ([], [1, 1, 900], list(range(0, 2000, 37))):
            chunks = in_chunks(sample.sources, sample.targets, columns, cuts)
            assert_same_graph([build_graph(chunks, directed=True, group=Alone())], whole)

    def test_chunks_of_several_widths(self):
        chunks = [
            EdgeChunk(np.array([1], np.uint8), np.array([2], np.int16)),
            EdgeChunk(np.array([2**40]), np.array([-3], np.int8)),
            EdgeChunk(np.array([3], np.uint32), np.array([2.0])),
        ]
        graph = build_graph(chunks, directed=True, group=Alone())
        assert rows_of(graph) == {-3: [], 1: [(2,)], 2: [], 3: [(2,)], 2**40: [(-3,)]}

    def test_a_column_widens(self):
        chunks = [
            EdgeChunk(np.array([0]), np.array([1]), {"weight": np.array([3])}),
            EdgeChunk(np.array([1]), np.array([0]), {"weight": np.array([0.5])}),
        ]
        graph = build_graph(chunks, directed=True, group=Alone())
        assert graph.columns["weight"].tolist() == [3.0, 0.5]

    def test_no_chunks(self):
        graph = build_graph([], directed=True, group=Alone())
        assert (graph.num_vertices, graph.num_edges) == (0, 0)
        assert graph.offsets.tolist() == [0]

    def test_an_empty_chunk_before_the_others(self):
        nothing = EdgeChunk(np.empty(0), np.empty(0), {"weight": np.empty(0)})
        chunk = EdgeChunk(np.array([0]), np.array([1]), {"weight": np.array([2])})
        graph = build_graph([nothing, chunk, nothing], directed=True, group=Alone())
        assert graph.columns["weight"].tolist() == [2]

    def test_identity_keeps_vertices_without_edges(self):
        chunks = [EdgeChunk(np.array([3]), np.array([1]))]
        graph = build_graph(chunks, directed=True, group=Alone(), ids="identity", num_vertices=5)
        assert graph.ids.is_identity
        assert graph.offsets.tolist() == [0, 0, 0, 0, 1, 1]
        assert graph.report.isolated == 3

    @pytest.mark.parametrize("size", [1, 3])
    def test_identity_refuses_ids_outside(self, run_ranks, size):
        def build(group):
            chunks = [EdgeChunk(np.array([3]), np.array([5]))] if group.rank == 0 else []
            return build_graph(chunks, directed=True, group=group, ids="identity", num_vertices=5)

        with pytest.raises(GraphError, match=r"ids 3\.\.5 lie outside 0\.\.4"):
            run_ranks(size, build)

    def test_a_report_keeps_what_the_loader_wrote(self):
        report = LoadReport(format="snap", source="g.txt", rows_skipped=3, notes=["two blank lines"])
        graph = build_graph(
            [EdgeChunk(np.array([1]), np.array([1]))], directed=True, group=Alone(), report=report
        )
        assert graph.report is report
        assert str(report).splitlines()[0] == "g.txt (snap): directed, 1 vertices, 1 edges given, 1 stored"
        assert "self-loops 1 (kept)" in str(report)
        assert "rows skipped 3" in str(report)
        assert "id map range, smallest id 1" in str(report)
        assert str(report).splitlines()[-1] == "  two blank lines"


class TestManyEdges:
    """Paths that only large graphs take, forced on small ones."""

    @pytest.mark.parametrize("directed", [True, False])
    @pytest.mark.parametrize("duplicates", ["keep", "drop", "sum"])
    def test_counting_into_rows_agrees_with_sorting(self, battery, monkeypatch, directed, duplicates):
        options = {"directed": directed, "duplicates": duplicates, "group": Alone()}
        for name, sample in battery.items():
            if sample.weights is None:
                continue
            sorted_graph = sample.build(
                columns={"tag": np.arange(len(sample.sources), dtype=np.int16)}, **options
            )
            with monkeypatch.context() as patch:
                patch.setattr(sigps.graph.building.rows, "MIN_COUNTED_EDGES", 1)
                patch.setattr(sigps.graph.building.rows, "_BLOCK_EDGES", 5)
                counted = sample.build(
                    columns={"tag": np.arange(len(sample.sources), dtype=np.int16)}, **options
                )
                counted_in_edges = counted.in_edges()
            assert_same_graph([counted], sorted_graph), name
            in_edges = sorted_graph.in_edges()
            assert counted_in_edges.offsets.tolist() == in_edges.offsets.tolist()
            assert counted_in_edges.sources.tolist() == in_edges.sources.tolist()
            assert counted_in_edges.columns["tag"].tolist() == in_edges.columns["tag"].tolist()

    @pytest.mark.parametrize("size", [1, 3])
    def test_sparse_ids_in_blocks(self, run_ranks, battery, monkeypatch, size):
        monkeypatch.setattr(sigps.graph.building.numbering, "_ALWAYS_DENSE", 0)
        monkeypatch.setattr(sigps.graph.building.numbering, "_CODED_EDGES", 11)
        sample = battery["skewed"]
        spread = [2**24 * source for source in sample.sources], [2**24 * target for target in sample.targets]
        plain = sample.build(group=Alone())
        parts = run_ranks(size, lambda group: Graph.from_edges(*spread, sample.weights, group=group))
        assert parts[0].ids.kind == "table"
        assert np.concatenate([part.targets for part in parts]).tolist() == plain.targets.tolist()

    def test_strings_that_share_a_hash_are_told_apart(self, monkeypatch):
        monkeypatch.setattr(sigps.graph.building.numbering, "_HASH_FACTOR", np.uint64(0))
        table, codes = sigps.graph.building.numbering._distinct(np.array(["b", "a", "b"]))
        assert table[codes].tolist() == ["b", "a", "b"]
        assert table.tolist() == ["a", "b"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (
                {"duplicates": "merge"},
                "duplicates='merge' is not known; choose one of keep, drop, sum, min, max",
            ),
            ({"self_loops": "no"}, "self_loops='no' is not known"),
            ({"ids": "hash"}, "ids='hash' is not known"),
            ({"ids": "identity"}, "needs num_vertices, a count, not None"),
            ({"ids": "identity", "num_vertices": -1}, "a count, not -1"),
        ],
    )
    def test_unknown_options(self, options, problem):
        with pytest.raises(GraphError, match=problem):
            build_graph([], directed=True, group=Alone(), **options)

    @pytest.mark.parametrize(
        ("chunk", "problem"),
        [
            (EdgeChunk(np.zeros(2), np.zeros(3)), r"targets has shape \(3,\), sources \(2,\)"),
            (EdgeChunk(np.zeros(2), np.zeros(2), {"weight": np.zeros(1)}), r"weight has shape \(1,\)"),
            (EdgeChunk(np.zeros((2, 2)), np.zeros((2, 2))), r"sources has shape \(2, 2\)"),
            (EdgeChunk(np.array([1]), np.array(["a"])), "one end of the edges has string ids"),
            (EdgeChunk(np.array([1]), np.array([0.5])), r"targets\[0\] is 0\.5"),
            (EdgeChunk(np.zeros(2), np.zeros(2), {"weight": np.array([1, np.nan])}), r"weight\[1\] is NaN"),
            (EdgeChunk(np.zeros(1), np.zeros(1), {"weight": np.array(["x"])}), "must be numeric"),
            (EdgeChunk(np.zeros(1), np.zeros(1), {"weight": np.array([1j])}), "must be numeric"),
            (
                EdgeChunk(np.zeros(1), np.zeros(1), {"weight": np.array([2**63], np.uint64)}),
                "above the largest",
            ),
        ],
    )
    def test_wrong_chunks(self, chunk, problem):
        with pytest.raises(GraphError, match=problem):
            build_graph([chunk], directed=True, group=Alone())

    def test_chunks_of_different_columns(self):
        chunks = [
            EdgeChunk(np.zeros(1), np.zeros(1), {"weight": np.zeros(1)}),
            EdgeChunk(np.zeros(1), np.zeros(1), {"time": np.zeros(1)}),
        ]
        with pytest.raises(GraphError, match=r"columns \['weight'\], others \['time'\]"):
            build_graph(chunks, directed=True, group=Alone())

    def test_strings_and_integers_in_different_chunks(self):
        chunks = [EdgeChunk(np.array([1]), np.array([2])), EdgeChunk(np.array(["a"]), np.array(["b"]))]
        with pytest.raises(GraphError, match="some ids are strings and some are integers"):
            build_graph(chunks, directed=True, group=Alone())

    def test_identity_refuses_strings(self):
        chunks = [EdgeChunk(np.array(["a"]), np.array(["b"]))]
        with pytest.raises(GraphError, match="needs integer ids"):
            build_graph(chunks, directed=True, group=Alone(), ids="identity", num_vertices=2)


TOO_LARGE = [(np.int64, [2**62, 2**62]), (np.int64, [-(2**63), -(2**62)])]


@pytest.mark.parametrize(("dtype", "weights"), TOO_LARGE)
def test_a_sum_of_weights_that_does_not_fit(dtype: Any, weights: list[int]) -> None:
    with pytest.raises(GraphError, match="duplicates='sum' makes a weight"):
        Graph.from_edges([0, 0], [1, 1], np.array(weights, dtype), duplicates="sum")
    fitting = np.array([weights[0], 1], dtype)
    graph = Graph.from_edges([0, 0], [1, 1], fitting, duplicates="sum")
    assert graph.columns["weight"].tolist() == [weights[0] + 1]
