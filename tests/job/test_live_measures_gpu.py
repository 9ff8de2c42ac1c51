"""Streams of measures of the graph on a GPU, whose kernels run on the host, against graphs built anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from histories import History, drawn, histories, shapes
from host_streams import use_host_for_streams
from hypothesis import HealthCheck, given, settings
from neighbor_measures import Around
from turns import in_turn

import sigps
from sigps import Graph, State, Vertex, from_column, num_neighbors
from sigps.apps import LCC, Triangles
from sigps.device.linking import link_kernel
from sigps.engine.gpu import edited_rows, measures
from sigps.errors import DeviceError
from sigps.job import guard


@pytest.fixture
def host_is_gpu(monkeypatch: Any) -> None:
    use_host_for_streams(monkeypatch)


class Spread(Vertex):
    """Reads a degree, which parallel edges and loops change, too."""

    near: State[int] = num_neighbors
    repeats: State[int] = 0

    def compute(self, messages):
        self.repeats = self.out_degree - self.near
        self.vote_to_halt()


class Marked(Vertex):
    """Begins with a column beside a measure."""

    near: State[int] = num_neighbors
    mark: State[int] = from_column("mark")

    def compute(self, messages):
        self.mark += self.near
        self.vote_to_halt()


FIELDS = {
    Triangles: ("triangles",),
    LCC: ("links", "neighbors", "coefficient"),
    Around: ("near", "links", "steps"),
}

quick = settings(
    max_examples=drawn(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def assert_as_full(result: Any, program: Vertex, judge: Graph) -> None:
    expected = sigps.run(program, judge, device="python")
    for name in FIELDS[type(program)]:
        assert result[name].tolist() == expected[name].tolist()
    assert result.aggregators == expected.aggregators
    assert result.device == "cuda"


def follow(program: Vertex, history: History) -> None:
    """Compare a stream with full runs, batch by batch."""
    is_reduced = history.options["duplicates"] in ("sum", "min", "max")
    with sigps.stream(program, history.first(), device="cuda", guard="incremental") as stream:
        before = stream.result
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            result = stream.apply(batch)
            assert_as_full(result, program, judge)
            update = stream.graph.update
            may_go_on = not (is_reduced or update.is_renumbered or update.new_vertices)
            assert (result.path == "incremental") == may_go_on
            if may_go_on:
                was, now = ([r[name].tolist() for name in FIELDS[type(program)]] for r in (before, result))
                ids = np.asarray(judge.ids).tolist()
                moved = [v for v, a, b in zip(ids, zip(*was), zip(*now), strict=True) if a != b]  # noqa: B905
                assert result.changed_ids.tolist() == moved
            before = result


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_triangles_are_those_of_a_full_run(history: History) -> None:
    follow(Triangles(), history)


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_links_among_neighbours_are_those_of_a_full_run(history: History) -> None:
    follow(LCC(), history)


def batches_count(name: str, size: int, sizes: list[int], *, duplicates: Any) -> None:
    """Compare streams with full runs: single edges, whole neighbourhoods that come and go, edges of hubs, repeats."""
    ends, directed = shapes(size)[name]
    draw, n = np.random.default_rng(5), int(ends.max()) + 1
    program = LCC() if directed else Triangles()
    options: Any = {"vertices": range(n), "directed": directed, "duplicates": duplicates}
    graph = Graph.from_edges(*ends, **options)
    with sigps.stream(program, graph, device="cuda", guard="incremental") as stream:
        for i, count in enumerate(sizes):
            few = max(2, int(count**0.5) + 1)
            new = draw.integers(0, (n, few, n)[i % 3], (2, count))
            if i % 3 == 2:
                new[i % 2, : count // 2] = 0
            stored = stream.graph.to_arrow().to_pydict()
            rows = np.array([stored["source"], stored["target"]])
            gone = rows[:, draw.integers(0, rows.shape[1], count // 2 if i % 4 else 0)]
            back = gone[:, : count // 8]  # gone, and there again
            inserts = tuple(np.concatenate([new, back, new[:, : count // 6]], 1))
            result = stream.apply(inserts=inserts, deletes=tuple(gone))
            assert result.path == "incremental"
            stored = stream.graph.to_arrow().to_pydict()
            judge = Graph.from_edges(stored["source"], stored["target"], **options)
            expected = sigps.run(program, judge, device="cpu")
            for field in FIELDS[type(program)]:
                assert result[field].tolist() == expected[field].tolist()
            assert result.aggregators == expected.aggregators


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("name", "duplicates"), in_turn(["grid", "hubs", "directed hubs", "sparse"], ["drop", "keep"])
)
def test_batches_count(name: str, duplicates: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 64)
    size = 3600 if "hubs" in name else 200
    batches_count(name, size, [1, 9, 60, 25, 1, 200, 90, 7], duplicates=duplicates)


@pytest.mark.gpu
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize("name", ["grid", "hubs", "sparse", "directed hubs"])
def test_batches_count_on_a_gpu(name: str, duplicates: str) -> None:
    batches_count(name, 40_000, [1, 90, 600, 2500, 1, 20_000, 900, 7, 1, 6000], duplicates=duplicates)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("name", ["hubs", "directed hubs", "sparse"])
def test_other_programs_count(name: str) -> None:
    programs_count(name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["hubs", "directed hubs", "sparse"])
def test_other_programs_count_on_a_gpu(name: str) -> None:
    programs_count(name)


def programs_count(name: str) -> None:
    """Compare streams of programs that keep all measures with full runs."""
    ends, directed = shapes(60)[name]
    for program in (LCC(), Around()):
        graph, draw = Graph.from_edges(*ends, directed=directed), np.random.default_rng(1)
        ids = np.asarray(graph.ids)
        with sigps.stream(program, graph, device="cuda", guard="incremental") as stream:
            for count in (1, 5, 40):
                new, gone = draw.choice(ids, (2, count)), draw.choice(ids, (2, count))
                result = stream.apply(inserts=tuple(new), deletes=tuple(gone))
                assert result.path == "incremental"
                assert_as_full(result, program, stream.graph)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("directed", [False, True])
def test_pairs_of_all_lengths_count(directed: bool) -> None:
    """Pairs of few edges, of so many that they take a warp, or a block, become neighbours while ends lose others."""
    sizes, draw = [1200, 1200, 400, 400, 40, 40], np.random.default_rng(4)
    leaves = [len(sizes) + draw.permutation(1300)[:size] for size in sizes]
    edges = np.stack([np.repeat(np.arange(len(sizes)), sizes), np.concatenate(leaves)])
    gone = np.concatenate([edges[:, edges[0] == v][:, :12] for v in range(len(sizes))], 1)
    pairs = np.stack(np.triu_indices(len(sizes), 1))
    both_ways = np.concatenate([edges, edges[::-1, ::2]], 1)
    graph = Graph.from_edges(*both_ways, directed=directed, duplicates="keep")
    with sigps.stream(LCC(), graph, device="cuda", guard="incremental") as stream:
        for new, old in ((pairs, gone), (gone[::-1], pairs)):
            result = stream.apply(inserts=tuple(new), deletes=tuple(old))
            expected = sigps.run(LCC(), stream.graph, device="cpu")
            for field in FIELDS[LCC]:
                assert result[field].tolist() == expected[field].tolist()


@pytest.mark.usefixtures("host_is_gpu")
def test_rounds_after_measures_run_again() -> None:
    graph = Graph.from_edges([0, 1, 2, 0], [1, 2, 0, 3], directed=False)
    with sigps.stream(Around(), graph, device="cuda", guard="incremental") as stream:
        result = stream.apply(inserts=([3], [1]), deletes=([0], [2]))
        assert (result["near"].tolist(), result["links"].tolist()) == ([2, 3, 1, 2], [2, 2, 0, 2])
        assert (result["steps"].tolist(), result.path, result.supersteps) == ([6] * 4, "incremental", 3)
        assert stream.apply(inserts=([3, 2], [1, 2])).supersteps == 0


@pytest.mark.usefixtures("host_is_gpu")
def test_degrees_are_read_again_where_no_pair_changes() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], directed=False)
    with sigps.stream(Spread(), graph, device="cuda", guard="incremental") as stream:
        for inserts, repeats in ((([0], [1]), [1, 1, 0]), (([2], [1]), [1, 2, 1])):
            result = stream.apply(inserts=inserts)
            assert (result["repeats"].tolist(), result.path) == (repeats, "incremental")


@pytest.mark.usefixtures("host_is_gpu")
def test_measures_beside_columns_are_those_of_a_full_run() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], directed=False).with_vertex_columns({"mark": [10, 20, 30]})
    with sigps.stream(Marked(), graph, device="cuda") as stream:
        assert stream.result["mark"].tolist() == [11, 22, 31]
        result = stream.apply(inserts=([0], [2]))
        assert (result["mark"].tolist(), result.path) == ([12, 22, 32], "full")


@pytest.mark.usefixtures("host_is_gpu")
def test_edges_that_a_vertex_lost_are_counted_before() -> None:
    """A hub that loses all of its edges goes along their list for each of them."""
    count = 150
    leaves = np.arange(1, count + 1)
    ring = leaves, np.roll(leaves, 1)
    graph = Graph.from_edges(
        *(np.concatenate([a, b]) for a, b in zip(ring, (0 * leaves, leaves), strict=True)), directed=False
    )
    with sigps.stream(Triangles(), graph, device="cuda", guard="incremental") as stream:
        run: Any = stream._live
        result = stream.apply(deletes=(0 * leaves, leaves))
        assert result["triangles"].tolist() == [0] * (count + 1)
        entries = count * count  # each of which takes a warp, as 32 edges do
        assert (
            run._spending.spent == (count + 32 * entries) * measures._SEARCHED // measures._READS_OF_MESSAGE
        )


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("share", [1 << 60, 3, 1])
def test_what_costs_too_much_is_counted_anew(share: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(measures, "_BEGIN", 0)
    monkeypatch.setattr(guard, "_LEAST", 0)
    graph = sigps.generate("rmat", scale=8)
    draw, paths = np.random.default_rng(2), []
    with sigps.stream(Triangles(), graph, device="cuda") as stream:
        run: Any = stream._live
        run._share = share
        for count in (1, 2000, 3, 900, 1):
            result = stream.apply(inserts=tuple(draw.integers(0, graph.num_vertices, (2, count))))
            assert_as_full(result, Triangles(), stream.graph)
            assert run._spending.spent <= run._full_messages // share
            paths.append(result.path)
    assert paths[1] == "full"
    assert ("incremental" in paths) == (share < 100)


@pytest.mark.usefixtures("host_is_gpu")
def test_without_room_to_count_versions_are_laid_out_anew(monkeypatch: Any) -> None:
    graph, count = Graph.from_edges([0, 1, 2], [1, 2, 0], directed=False), measures.count_around
    with sigps.stream(Triangles(), graph, device="cuda", guard="full") as stream:

        def refuse(*_: Any, **__: Any) -> None:
            monkeypatch.setattr(measures, "count_around", count)
            raise DeviceError("the GPU has 0 bytes free", rank=0)

        monkeypatch.setattr(measures, "count_around", refuse)
        assert stream.apply(inserts=([0], [1]))["triangles"].tolist() == [1, 1, 1]
        assert stream._live is None
        assert "no room to count" in stream._why


@pytest.mark.parametrize("directed", [True, False])
def test_counting_links(directed: bool) -> None:
    assert b"follow_links" in link_kernel("changed_links", "sm_90", measures.link_macros(directed))
