"""Streams on a GPU, whose kernels run on the host, against full runs on graphs built anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from histories import History, assert_parents_hold, drawn, histories
from host_kernels import host_kernels
from host_streams import use_host_for_streams
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from monotone_programs import Joined
from turns import in_turn

import sigps
from sigps import Graph, State, Vertex
from sigps.apps import BFS, CDLP, LCC, SSSP, WCC, PageRank
from sigps.device import shared_copies
from sigps.device.cpu import Threads
from sigps.device.linking import link_kernel
from sigps.engine import fixed_points
from sigps.engine.gpu import components, edited_rows, following, live, measures, path_lengths
from sigps.engine.gpu.given_edges import edges_on_gpu
from sigps.errors import DeviceError, GraphError, KernelError
from sigps.graph.later import LaterGraph
from sigps.job import guard
from sigps.job import live_run as live_run_module
from sigps.job.live_run import live_run


@pytest.fixture
def host_is_gpu(monkeypatch: Any) -> None:
    use_host_for_streams(monkeypatch)


@pytest.fixture
def meshes_are_found_at_once(host_is_gpu: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(fixed_points, "LEAST_EDGES", 0)
    for module, macros, file in (
        (path_lengths, path_lengths.path_macros, "path_lengths"),
        (components, components.component_macros, "components"),
    ):
        make: Any = lambda gpu, *of, macros=macros, file=file: host_kernels(file, macros(*of))  # noqa: E731
        monkeypatch.setattr(module, "_kernels", make)


quick = settings(
    max_examples=drawn(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def follow(program: Vertex, history: History, field: str, *more: str) -> None:
    """Compare a stream with full runs, batch by batch; fields besides the first, too."""
    is_reduced = history.options["duplicates"] in ("sum", "min", "max")
    with sigps.stream(
        program, history.first(), device="cuda", guard="incremental", asynchronous=False
    ) as stream:
        before = stream.result
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            known = np.asarray(stream.graph.ids).tolist()
            result = stream.apply(batch)
            expected = sigps.run(program, judge, device="python")
            for name in (field, *more):
                assert result[name].tolist() == expected[name].tolist()
            assert result.device == "cuda"
            update = stream.graph.update
            may_go_on = not (is_reduced or update.is_renumbered or update.new_vertices)
            if isinstance(program, SSSP):
                assert_parents_hold(result, judge)
                assert (result.path == "incremental") == may_go_on
            elif may_go_on:
                assert result.path == "incremental"
            found = dict(zip(np.asarray(judge.ids).tolist(), result[field].tolist(), strict=True))
            moved = set(found) - set(known)
            moved |= {v for v, d in zip(known, before[field].tolist(), strict=True) if found[v] != d}
            assert moved <= set(result.changed_ids.tolist())
            before = result


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_shortest_paths_are_those_of_a_full_run(history: History) -> None:
    source = np.asarray(history.first().ids)[0]
    follow(SSSP(source=source if isinstance(source, str) else int(source)), history, "distance")


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_components_are_those_of_a_full_run(history: History) -> None:
    follow(WCC(), history, "component")


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_searches_are_those_of_a_full_run(history: History) -> None:
    source = np.asarray(history.first().ids)[0]
    follow(BFS(source=source if isinstance(source, str) else int(source)), history, "level", "parent")


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories(), st.sampled_from([(SSSP, "distance"), (WCC, "component"), (BFS, "level")]))
def test_rows_on_the_host_follow_when_they_are_read(history: History, of: Any) -> None:
    kind, field = of
    known = set(np.asarray(history.first().ids).tolist())
    history.batches = [
        ([edge for edge in inserts if set(edge[:2]) <= known], deletes)
        for inserts, deletes in history.batches
    ]
    source = np.asarray(history.first().ids)[0]
    program = WCC() if kind is WCC else kind(source=source if isinstance(source, str) else int(source))
    is_turned = kind is WCC and history.options["directed"]
    waits = history.options["duplicates"] in ("keep", "drop") and not is_turned
    judges = history.judges()
    with sigps.stream(program, history.first(), device="cuda", asynchronous=False) as stream:
        for batch, judge in zip(history.updates(), judges, strict=True):
            result = stream.apply(batch)
            assert (type(stream.graph) is LaterGraph) == waits
            assert result[field].tolist() == sigps.run(program, judge, device="python")[field].tolist()
        assert result.update.missing == history.missing()[-1]
        assert stream.graph.to_arrow().to_pydict() == judges[-1].to_arrow().to_pydict()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("directed", [True, False])
def test_all_parallel_edges_go(directed: bool, monkeypatch: Any) -> None:
    parallel_edges_go(directed, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [True, False])
def test_all_parallel_edges_go_on_a_gpu(directed: bool, monkeypatch: Any) -> None:
    parallel_edges_go(directed, monkeypatch)


def parallel_edges_go(directed: bool, monkeypatch: Any) -> None:
    """Delete more parallel edges than there is room for at first, from short rows and from long ones."""
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 8)
    n = 3000
    ends = np.concatenate(
        [[np.zeros(n), np.arange(n)], [np.ones(70), np.full(70, 2)], [np.zeros(90), np.ones(90)]], 1
    )
    weights = np.concatenate([np.full(n, 5), np.arange(1, 71), np.arange(9, 99)])
    graph = Graph.from_edges(*ends.astype(int), weights, directed=directed)
    batches = [
        (None, ([1, 0, 1], [2, 1, 2])),
        (([0, 1, 1], [1, 2, 2], [7, 8, 3]), ([0, 0], [1, 17])),
        (([0, 1] * 60, [1, 2] * 60, range(3, 123)), ([2, 1, 0], [1, 2, 17])),
        (None, ([0, 1, 5], [1, 2, 0])),
        (None, None),
    ]
    with sigps.stream(SSSP(source=0), graph, device="cuda", guard="incremental") as stream:
        for inserts, deletes in batches:
            result = stream.apply(inserts=inserts, deletes=deletes)
            assert type(stream.graph) is LaterGraph
            graph = graph.apply(inserts, deletes)
            expected = sigps.run(SSSP(source=0), graph, device="cpu")
            assert result["distance"].tolist() == expected["distance"].tolist()
            assert result.path == "incremental"
        assert stream.graph.to_arrow().to_pydict() == graph.to_arrow().to_pydict()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("weights", "directed"), in_turn([[1, 2, 3], [0, 0, 1], [1.0, 1e-20, 0.5], [5, 5]], [True, False])
)
def test_many_batches_move_rows_and_replace_arrays(
    weights: list[float], directed: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 64)
    apply_batches(
        SSSP(source=0), weights, directed=directed, num_vertices=60, sizes=[40, 1, 30, 9, 2, 35, 7, 20]
    )


@pytest.mark.usefixtures("host_is_gpu")
def test_components_part_and_join() -> None:
    parts_and_joins(num_vertices=180, sizes=[1, 2, 5, 40, 1, 80])


@pytest.mark.gpu
def test_components_part_and_join_on_a_gpu() -> None:
    parts_and_joins(num_vertices=100_000, sizes=[1, 1, 3, 500, 2, 20_000, 1, 1, 50])


def parts_and_joins(*, num_vertices: int, sizes: list[int]) -> None:
    """Cut rings and join what is left, with some vertices of thousands of edges and some of none."""
    draw, n = np.random.default_rng(5), num_vertices
    ring = np.arange(2 * n // 3)
    hub = np.unique(draw.integers(n // 3, n // 2, n // 20))
    edges: Any = [np.concatenate([ring, hub]), np.concatenate([np.roll(ring, 1), np.full(hub.size, n // 3)])]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=False)
    with sigps.stream(WCC(), graph, device="cuda", guard="incremental", asynchronous=False) as stream:
        for i, size in enumerate(sizes):
            gone = draw.integers(0, edges[0].size, size)
            new = draw.integers(0, n, (2, size // 2 * (i % 3)))
            result = stream.apply(inserts=tuple(new), deletes=tuple(end[gone] for end in edges))
            graph = graph.apply(tuple(new), tuple(end[gone] for end in edges))
            expected = sigps.run(WCC(), graph, device="cpu")
            assert result["component"].tolist() == expected["component"].tolist()
            assert result.path == "incremental"


@pytest.mark.usefixtures("host_is_gpu")
def test_what_is_held_up_from_elsewhere_goes_on_holding_up() -> None:
    """A vertex that lost an edge, but not its key, holds up the next one, until the edge between them goes."""
    graph = Graph.from_edges([0, 0, 1, 2, 3], [1, 2, 3, 3, 4], directed=False)
    with sigps.stream(Joined(), graph, device="cuda", guard="incremental", asynchronous=False) as stream:
        found = [stream.apply(deletes=edge) for edge in (([1], [3]), ([3], [4]))]
        assert [result.path for result in found] == ["incremental"] * 2
        assert [result["component"].tolist() for result in found] == [[0] * 5, [0, 0, 0, 0, 4]]


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories(), st.sampled_from([(SSSP, "distance"), (BFS, "level")]))
def test_rows_are_taken_in_parts(history: History, of: Any) -> None:
    kind, field = of
    source = np.asarray(history.first().ids)[0]
    program = kind(source=source if isinstance(source, str) else int(source))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edited_rows, "PART", 2)
        follow(program, history, field)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("part", "duplicates", "directed"), in_turn([1, 40, 512], ["keep", "drop"], [True, False], times=2)
)
def test_rows_have_the_edges_of_a_graph_built_anew(
    part: int, duplicates: Any, directed: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(edited_rows, "PART", part)
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 64)
    monkeypatch.setattr(following, "HUB_DEGREE", 12)
    rows_are_those_built_anew(directed, duplicates, num_vertices=60, sizes=[1, 300, 70, 2, 500])


@pytest.mark.gpu
@pytest.mark.parametrize("duplicates", ["keep", "drop"])
@pytest.mark.parametrize("directed", [True, False])
def test_rows_have_the_edges_of_a_graph_built_anew_on_a_gpu(directed: bool, duplicates: Any) -> None:
    rows_are_those_built_anew(directed, duplicates, num_vertices=30_000, sizes=[1, 200_000, 900, 400_000])


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("at", [0, 14, 29])
def test_batches_that_threads_share_are_checked_and_kept(at: int, monkeypatch: Any) -> None:
    threads = Threads(4)
    monkeypatch.setattr(shared_copies, "_LEAST", 3)
    monkeypatch.setattr(shared_copies, "shared_threads", lambda: threads)
    draw, n = np.random.default_rng(19), 40
    graph = Graph.from_edges(*draw.integers(0, n, (2, 90)), np.ones(90, int), vertices=range(n))
    with sigps.stream(SSSP(source=0), graph, device="cuda") as stream:
        for wrong in ("weight", "nothing", "source", "nothing"):
            ends, weights = draw.integers(0, n, (2, 30)), draw.integers(1, 9, 30).astype(float)
            gone = draw.integers(0, n, (2, 30))
            given = ends.copy(), weights.copy(), gone.copy()
            if wrong == "source":
                given[2][0, at] = n + 5  # which is no vertex
            if wrong == "weight":
                given[1][at] = 0.5
                with pytest.raises(GraphError, match=rf"weight\[{at}\] is 0.5"):
                    stream.apply(inserts=(*given[0], given[1]), deletes=tuple(given[2]))
                continue
            kept = tuple(part.copy() for part in given)
            result = stream.apply(inserts=(*given[0], given[1]), deletes=tuple(given[2]))
            for part in given:
                part[:] = 1  # nobody reads them any more
            assert type(stream.graph) is LaterGraph
            graph = graph.apply((*kept[0], kept[1]), tuple(kept[2]))
            expected = sigps.run(SSSP(source=0), graph, device="cpu")
            assert result["distance"].tolist() == expected["distance"].tolist()
        assert stream.graph.to_arrow().to_pydict() == graph.to_arrow().to_pydict()


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(("kind", "weights"), in_turn([SSSP, WCC, BFS], ["int64", "float64", None]))
def test_batches_in_the_memory_of_the_gpu_stay_there(
    kind: Any, weights: str | None, monkeypatch: Any
) -> None:
    batches_stay_on_the_gpu(kind, weights, 60, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["int64", "float64", None])
@pytest.mark.parametrize("kind", [SSSP, WCC, BFS])
def test_batches_in_the_memory_of_a_gpu_stay_there(kind: Any, weights: str | None, monkeypatch: Any) -> None:
    batches_stay_on_the_gpu(kind, weights, 20_000, monkeypatch)


def batches_stay_on_the_gpu(kind: Any, weights: str | None, num_vertices: int, monkeypatch: Any) -> None:
    """Give batches as CuPy arrays: the host reads none, but those that it is to refuse, or to look at."""
    import cupy

    seen: list[Any] = []
    read = live_run_module.as_changes
    monkeypatch.setattr(
        live_run_module, "as_changes", lambda *of, **o: (seen.append(of[1]), read(*of, **o))[1]
    )
    draw, n = np.random.default_rng(23), num_vertices
    program = WCC() if kind is WCC else kind(source=0)
    field = {WCC: "component", SSSP: "distance", BFS: "level"}[kind]

    def drawn_edges(size: int) -> list[Any]:
        numbers = [] if weights is None else [draw.integers(1, 9, size).astype(weights)]
        return [*draw.integers(0, n, (2, size)), *numbers]

    def on_gpu(edges: list[Any], ids: str) -> tuple[Any, ...]:
        return tuple(cupy.asarray(end.astype(ids)) for end in edges[:2]) + tuple(map(cupy.asarray, edges[2:]))

    edges = drawn_edges(2 * n)
    graph = Graph.from_edges(*edges, vertices=range(n), directed=False)
    with sigps.stream(program, graph, device="cuda", guard="incremental", asynchronous=False) as stream:
        for ids in ("int64", "int32", "uint32", "uint64"):
            new, gone = drawn_edges(n // 2), drawn_edges(n // 3)[:2]
            gone = [np.concatenate([end[: n // 3], of]) for end, of in zip(edges, gone, strict=False)]
            edges = new
            which = {"int32": "inserts", "uint32": "deletes"}.get(ids, "both")
            given = None if which == "deletes" else on_gpu(new, ids)
            deleted = None if which == "inserts" else on_gpu(gone, ids)
            result = stream.apply(inserts=given, deletes=deleted)
            assert not seen
            for part in (*(given or ()), *(deleted or ())):
                part[:] = part[0]  # nobody reads them any more
            graph = graph.apply(
                None if which == "deletes" else tuple(new), None if which == "inserts" else tuple(gone)
            )
            expected = sigps.run(program, graph, device="cpu")
            assert result[field].tolist() == expected[field].tolist()
            assert result.path == "incremental"
        assert stream.graph.to_arrow().to_pydict() == graph.to_arrow().to_pydict()
        if weights == "int64":
            new = [*drawn_edges(20)[:2], np.full(20, 0.5)]
            with pytest.raises(GraphError, match=r"weight\[0\] is 0.5"):
                stream.apply(inserts=on_gpu(new, "int64"))
        seen.clear()
        new = drawn_edges(20)
        result = stream.apply(inserts=(cupy.asarray(new[0]), *new[1:]))  # of which some are on the host
        assert seen == ["inserts", "deletes"]
        graph = graph.apply(tuple(new))
        assert result[field].tolist() == sigps.run(program, graph, device="cpu")[field].tolist()
        new[0][7] = -1  # which becomes a vertex
        result, graph = stream.apply(inserts=on_gpu(new, "int64")), graph.apply(tuple(new))
        assert result[field].tolist() == sigps.run(program, graph, device="cpu")[field].tolist()


def rows_are_those_built_anew(
    directed: bool, duplicates: Any, *, num_vertices: int, sizes: list[int]
) -> None:
    """Insert and delete, most of it at a few vertices, and some edges twice; then look at all rows."""
    import cupy

    draw, n = np.random.default_rng(17), num_vertices

    def drawn_ends(size: int) -> Any:
        return (n * draw.random((2, size)) ** 4).astype(int)

    ends, weights = drawn_ends(4 * n), draw.integers(1, 100, 4 * n)
    options: Any = {"vertices": range(n), "directed": directed, "duplicates": duplicates}
    graph = Graph.from_edges(*ends, weights, **options)
    edges = list(zip(*ends.tolist(), weights.tolist(), strict=True))
    with sigps.stream(SSSP(source=0), graph, device="cuda", guard="full") as stream:
        for i, size in enumerate(sizes):
            new, more = drawn_ends(size), draw.integers(1, 100, size)
            gone = [ends[:, draw.integers(0, ends.shape[1], size // 3)], None][i % 4 == 3]
            stream.apply(inserts=(*new, more), deletes=None if gone is None else tuple(gone))
            if gone is not None:
                pairs = set(zip(*gone.tolist(), strict=True))
                pairs |= set() if directed else {(t, s) for s, t in pairs}
                edges = [edge for edge in edges if edge[:2] not in pairs]
            edges += zip(*new.tolist(), more.tolist(), strict=True)
            ends = np.array([[edge[0] for edge in edges], [edge[1] for edge in edges]])
        judge = Graph.from_edges(*ends, [edge[2] for edge in edges], **options)
        engine: Any = getattr(stream._live, "_engine")  # noqa: B009
        outgoing = engine._engine._graph.outgoing
        found = rows_on_the_device(stream, outgoing, "weight")
        degrees = cupy.asnumpy(outgoing.rows.degrees)
        assert engine._num_hubs == np.count_nonzero(degrees > following.HUB_DEGREE)
        assert (degrees <= cupy.asnumpy(engine._batches.sides[0]._room)).all()
    stored = judge.to_arrow().to_pydict()
    expected = list(zip(stored["source"], stored["target"], stored["weight"], strict=True))
    expected += [] if directed else [(t, s, w) for s, t, w in expected if s != t]
    assert sorted(zip(*found, strict=True)) == sorted(expected)


@pytest.mark.gpu
@pytest.mark.parametrize("weights", [[1, 2, 3], [0, 0, 1], [1.0, 1e-20, 0.5], list(range(1, 256))], ids=str)
@pytest.mark.parametrize("directed", [True, False])
def test_batches_on_a_gpu(weights: list[float], directed: bool) -> None:
    apply_batches(
        SSSP(source=0), weights, directed=directed, num_vertices=20_000, sizes=[1, 40, 9000, 3, 30_000]
    )
    apply_batches(WCC(), weights, directed=directed, num_vertices=20_000, sizes=[1, 40, 9000, 3])


_GRAPHS: dict[str, tuple[Any, bool]] = {
    "kronecker": (lambda: sigps.generate("rmat", scale=10, weights="random"), False),
    "grid": (lambda: sigps.generate("grid", rows=40, columns=40, weights="random"), False),
    "small grid": (lambda: sigps.generate("grid", rows=9, columns=200, weights="random"), False),
    "directed": (lambda: drawn_graph(1000, 4000, range(1, 9), directed=True), True),
    "sparse": (lambda: drawn_graph(2000, 1500, range(1, 256), directed=True), True),
    "dense": (lambda: drawn_graph(60, 3000, range(1, 256), directed=True), True),
    "zeros": (lambda: drawn_graph(500, 1500, [0, 0, 1], directed=False), False),
    "fractions": (lambda: drawn_graph(800, 2400, [0.5, 1e-20, 3.0], directed=True), True),
    "equal": (lambda: drawn_graph(700, 2000, [5], directed=False), False),
    "star": (lambda: drawn_graph(3000, 9000, range(1, 5), directed=False, power=8), False),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", _GRAPHS)
def test_fifty_batches_on_a_gpu(name: str) -> None:
    fifty_batches(name, 50)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("name", ["dense", "star"])
def test_a_few_of_fifty_batches(name: str) -> None:
    fifty_batches(name, 3)


def drawn_graph(
    num_vertices: int, num_edges: int, weights: Any, *, directed: bool, power: float = 2
) -> Graph:
    """Return a graph some of whose vertices have many edges."""
    draw = np.random.default_rng(num_vertices)
    ends = (num_vertices * draw.random((2, num_edges)) ** power).astype(int)
    chosen = draw.choice(np.asarray(list(weights)), num_edges)
    return Graph.from_edges(*ends, weights=chosen, vertices=range(num_vertices), directed=directed)


def fifty_batches(name: str, count: int) -> None:
    """Compare streams of three programs on a graph with full runs on graphs built anew, batch by batch."""
    make, directed = _GRAPHS[name]
    graph, draw = make(), np.random.default_rng(7)
    n, weights = graph.num_vertices, graph.columns["weight"]
    names = "distance", "component", "level"
    with (
        sigps.stream(SSSP(source=0), graph, device="cuda") as paths,
        sigps.stream(WCC(), graph, device="cuda", asynchronous=False) as parts,
        sigps.stream(BFS(source=0), graph, device="cuda") as levels,
    ):
        for at in range(count):
            size, gone = draw.integers(0, (3, 40, 400)[at % 3], 2)
            inserts = (*draw.integers(0, n, (2, size)), draw.choice(weights, size))
            rows = paths.graph.to_arrow().to_pydict()
            lost = draw.integers(0, len(rows["source"]), gone)
            deletes = tuple(np.asarray(rows[end], dtype=np.int64)[lost] for end in ("source", "target"))
            given = {"inserts": inserts, "deletes": deletes if at % 4 else None}
            before = [
                stream.result[field].copy()
                for stream, field in zip((paths, parts, levels), names, strict=True)
            ]
            found = [stream.apply(**given) for stream in (paths, parts, levels)]
            for was, now, name in zip(before, found, names, strict=True):
                assert set(np.flatnonzero(was != now[name]).tolist()) <= set(now.changed_ids.tolist())
            rows = paths.graph.to_arrow().to_pydict()
            judge = Graph.from_edges(
                *rows.values(),
                vertices=range(n),
                directed=directed,
                duplicates=graph.report.duplicates_policy,
            )
            for result, program, fields in zip(
                found,
                (SSSP(source=0), WCC(), BFS(source=0)),
                (("distance",), ("component",), ("level", "parent")),
                strict=True,
            ):
                expected = sigps.run(program, judge, device="cpu")
                for field in fields:
                    assert result[field].tolist() == expected[field].tolist()
            assert_parents_hold(found[0], judge)


def apply_batches(
    program: Vertex, weights: list[float], *, directed: bool, num_vertices: int, sizes: list[int]
) -> None:
    """Compare a stream with full runs, on graphs with a few vertices of many edges."""
    draw, n = np.random.default_rng(11), num_vertices
    edges: Any = [*(n * draw.random((2, 3 * n)) ** 3).astype(int), draw.choice(weights, 3 * n)]
    graph = Graph.from_edges(*edges, vertices=range(n), directed=directed)
    is_paths = isinstance(program, SSSP)
    field = "distance" if is_paths else "component"
    with sigps.stream(program, graph, device="cuda", guard="incremental") as stream:
        for size in sizes:
            inserts = [*(n * draw.random((2, size)) ** 3).astype(int), draw.choice(weights, size)]
            gone = draw.integers(0, edges[0].size, size // 2)
            result = stream.apply(inserts=inserts, deletes=(edges[0][gone], edges[1][gone]))
            assert result.path == "incremental"
            stored = stream.graph.to_arrow().to_pydict()
            edges = [np.array(stored[name]) for name in ("source", "target", "weight")]
            judge = Graph.from_edges(*edges, vertices=range(n), directed=directed)
            assert result[field].tolist() == sigps.run(program, judge, device="cpu")[field].tolist()
            if is_paths:
                assert_parents_hold(result, judge)


@pytest.mark.usefixtures("meshes_are_found_at_once")
@pytest.mark.parametrize("heavy", [300.0, 0.25], ids=["whole", "a fraction comes"])
def test_full_runs_on_meshes_find_the_fixed_point_at_once(heavy: float) -> None:
    graph = Graph.from_edges(range(80), range(1, 81), weights=[1.0, 2.0] * 40, directed=False)
    batches = [([0], [40], [9.0]), ([70], [3], [heavy]), ([5], [60], [1.0])]
    for program, field in ((SSSP(source=0), "distance"), (WCC(), "component")):
        ways = []
        with sigps.stream(program, graph, device="cuda", guard="incremental") as stream:
            ways.append([entry.direction for entry in stream.result.stats])
            for inserts in batches:
                result = stream.apply(inserts=inserts)
                expected = sigps.run(program, stream.graph, device="python")
                assert result[field].tolist() == expected[field].tolist()
                assert result.path == "incremental"
            again = stream._live
            assert again is not None
            found = again.full()
            assert found is not None
            assert found[field].tolist() == expected[field].tolist()
            ways.append([entry.direction for entry in found.stats])
        assert ways[0] == ["pull", "at once"]
        assert (ways[1] == ways[0]) == (heavy > 1 or field == "component")


def test_kernels_link() -> None:
    macros = following.live_macros("float64", "int64", True, True, True, 1)
    assert b"begin_again" in link_kernel("live", "sm_90", macros)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("has_room", [True, False])
def test_results_that_are_held_stay_as_they_were(has_room: bool, monkeypatch: Any) -> None:
    check_held_results(has_room, monkeypatch)


@pytest.mark.gpu
def test_results_that_are_held_stay_as_they_were_on_a_gpu(monkeypatch: Any) -> None:
    check_held_results(True, monkeypatch)


def check_held_results(has_room: bool, monkeypatch: Any) -> None:
    """Read fields of results after later batches, and after the stream's end."""
    monkeypatch.setattr(following, "fits", lambda num_bytes: has_room)
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], [5.0, 5.0, 5.0])
    distances = [[0, 5, 10, 15], [0, 5, 1, 6], [0, 5, 1, 2], [0, 5, 10, 15], [0, 4, 9, 14]]
    with sigps.stream(SSSP(source=0), graph, device="cuda", guard="incremental") as stream:
        held = [stream.result, stream.apply(inserts=([0], [2], [1.0]))]
        held.append(stream.apply(inserts=([2], [3], [1.0])))
        assert held[1]["distance"].tolist() == distances[1]
        held.append(stream.apply(deletes=([0, 2], [2, 3])))
        held[3] = stream.apply(inserts=([2], [3], [5.0]))
        assert held[2]["parent"].tolist() == [0, 0, 0, 2]
        held.append(stream.apply(inserts=([0], [1], [4.0])))
        copied = [len(r.__dict__["_fields"]._copies) for r in held]
        assert copied == ([2, 2, 2, 0, 0] if has_room else [2, 2, 2, 2, 0])
    assert [r["distance"].tolist() for r in held] == distances
    assert stream.result is held[-1]
    assert held[0]["parent"].tolist() == [0, 0, 1, 2]
    changed = [[0, 1, 2, 3], [2, 3], [3], [3], [1, 2, 3]]
    assert [r.changed_ids.tolist() for r in held] == changed


class Widest(Vertex, message=float):
    """The widest way from vertices that begin with a width: the least number of its edges."""

    width: State[float] = 0.0

    def compute(self, messages):
        best = max(messages, default=0.0)
        if self.superstep == 0 or best > self.width:
            self.width = max(best, self.width)
            for edge in self.out_edges:
                self.send(edge, min(self.width, edge.weight))
        self.vote_to_halt()


def in_full(program: Vertex, history: History, fields: tuple[str, ...], **options: Any) -> None:
    """Compare a stream that runs in full, on rows that follow, with full runs on graphs built anew."""
    begin = {name: options.pop(name) for name in ("initial",) if name in options}
    first = history.first()
    with sigps.stream(program, first, device="cuda", **begin, **options) as stream:
        for name in ("guard", "asynchronous"):
            options.pop(name, None)
        for batch, judge in zip(history.updates(), history.judges(), strict=True):
            result = stream.apply(batch)
            expected = sigps.run(program, judge, device="python", **options)
            for name in fields:
                assert result[name].tolist() == expected[name].tolist()
            assert result.path == "full"
            assert (stream._live is None) == (history.options["duplicates"] in ("sum", "min", "max"))


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_rows_follow_searches_that_run_in_full(history: History) -> None:
    source = np.asarray(history.first().ids)[0]
    of: Any = source if isinstance(source, str) else int(source)
    in_full(BFS(source=of), history, ("level", "parent"), guard="full")


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("directed", [True, False])
def test_rows_of_searches_keep_the_order_of_ids(directed: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 64)
    rows_keep_their_order(directed=directed, num_vertices=1300, sizes=[1, 300, 1, 90, 4])


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [True, False])
def test_rows_of_searches_keep_the_order_of_ids_on_a_gpu(directed: bool) -> None:
    rows_keep_their_order(directed=directed, num_vertices=20_000, sizes=[1, 30_000, 1, 900, 4, 9000])


def rows_keep_their_order(*, directed: bool, num_vertices: int, sizes: list[int]) -> None:
    """Insert into rows and delete from them, of which one has many edges; then look at all, and at a search."""
    draw, n = np.random.default_rng(12), num_vertices
    ends: Any = np.concatenate(
        [(n * draw.random((2, 3 * n)) ** 3).astype(int), [np.arange(n), np.zeros(n, int)]], 1
    )
    graph = Graph.from_edges(*ends, vertices=range(n), directed=directed)
    with sigps.stream(BFS(source=n // 2), graph, device="cuda") as stream:
        for size in sizes:
            inserts = (n * draw.random((2, size)) ** 3).astype(int)
            inserts[1, : size // 2] = 0  # of the long row
            gone = draw.integers(0, ends.shape[1], size // 2)
            result = stream.apply(inserts=tuple(inserts), deletes=tuple(ends[:, gone]))
            stored = stream.graph.to_arrow().to_pydict()
            ends = np.array([stored["source"], stored["target"]])
            both = ends if directed else np.concatenate([ends, ends[::-1, ends[0] != ends[1]]], 1)
            order = np.lexsort(both)
            assert rows_on_the_device(stream) == (both[1, order].tolist(), both[0, order].tolist())
            judge = Graph.from_edges(*ends, vertices=range(n), directed=directed)
            expected = sigps.run(BFS(source=n // 2), judge, device="cpu")
            for name in ("level", "parent"):
                assert result[name].tolist() == expected[name].tolist()


def rows_on_the_device(stream: Any, edges: Any = None, *columns: str) -> tuple[list[Any], ...]:
    """Return the rows of in-edges, or of others, their ends, by id, and columns, as a stream has them."""
    import cupy

    engine: Any = getattr(stream._live, "_engine")  # noqa: B009
    lids = engine._engine._graph.numbering.lids_on_host
    gids = np.argsort(lids)
    edges = edges or engine._engine._graph.incoming
    begins, degrees, ends, *values = (
        cupy.asnumpy(array)
        for array in (edges.rows.offsets, edges.rows.degrees, edges.ends, *map(edges.column, columns))
    )
    sizes = degrees[lids].astype(int)
    at = np.repeat(begins[lids].astype(int) - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    rows = np.repeat(np.arange(lids.size), sizes)
    return rows.tolist(), gids[ends[at]].tolist(), *(value[at].tolist() for value in values)


@pytest.mark.usefixtures("host_is_gpu")
@quick
@given(histories())
def test_rows_follow_programs_that_run_in_full(history: History) -> None:
    source = np.asarray(history.first().ids)[0]
    of: Any = source if isinstance(source, str) else int(source)
    in_full(SSSP(source=of), history, ("distance",), precision="single")
    in_full(WCC(), history, ("component",), guard="full", asynchronous=False)


@pytest.mark.usefixtures("host_is_gpu")
def test_full_runs_begin_with_given_values() -> None:
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0])
    begin = np.array([9.0, 0, 0, 0, 0])
    with sigps.stream(Widest(), graph, device="cuda", initial={"width": begin}) as stream:
        assert stream.result["width"].tolist() == [9, 5, 4, 3, 2]
        result = stream.apply(inserts=([0], [4], [7.0]), deletes=([1], [2]))
        assert result["width"].tolist() == [9, 5, 0, 0, 7]
        assert result.path == "full"
        assert result.changed_ids.tolist() == [2, 3, 4]
        assert "not monotone" in result.why


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("program", "why"),
    [(PageRank(), "order of edges"), (CDLP(), "do not combine")],
)
def test_what_a_gpu_cannot_follow_is_laid_out_anew(program: Vertex, why: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0])
    live, found = live_run(program, graph, {"device": "cuda"}, None)
    assert live is None
    assert why in found


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("program", [SSSP(source=0), BFS(source=0)])
def test_rows_that_do_not_fit_are_laid_out_anew(program: Vertex, copies: int, monkeypatch: Any) -> None:
    room = iter(range(copies))

    def fits(needed: Any) -> None:
        if next(room, None) is None:
            raise DeviceError("the GPU has 0 bytes free", rank=0)

    monkeypatch.setattr(edited_rows, "check_fits", fits)
    monkeypatch.setattr(edited_rows, "_LEAST_ROOM", 4)
    graph = Graph.from_edges(range(9), range(1, 10), np.ones(9), directed=False)
    field = "distance" if isinstance(program, SSSP) else "level"
    with sigps.stream(program, graph, device="cuda", asynchronous=False) as stream:
        assert (stream._live is None) == (copies == 0)
        ends = np.repeat(np.arange(9), 9), np.tile(np.arange(9), 9)
        result = stream.apply(inserts=(*ends, np.full(81, 0.5)))
        assert result[field].tolist() == sigps.run(program, stream.graph, device="python")[field].tolist()
        assert stream._live is None
        assert "do not fit" in stream._why
        assert stream.apply(deletes=([8], [9]))[field][9] in (-1, np.inf)


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    ("module", "name", "program"),
    [(following, "_kernels", SSSP(source=0)), (measures, "count_around", LCC())],
)
def test_kernels_that_do_not_compile_are_no_lack_of_memory(
    module: Any, name: str, program: Vertex, monkeypatch: Any
) -> None:
    def kernels(*_: Any, **__: Any) -> None:
        raise KernelError("live.cu cannot be compiled")

    monkeypatch.setattr(module, name, kernels)
    graph = Graph.from_edges([0, 1], [1, 2], np.ones(2))
    with pytest.raises(KernelError, match="cannot be compiled"):
        sigps.stream(program, graph, device="cuda")


@pytest.mark.usefixtures("host_is_gpu")
def test_batches_on_another_gpu_are_left_to_the_host() -> None:
    import cupy

    gpu: Any = SimpleNamespace(ordinal=0)
    edges = [cupy.asarray(np.array(ids)) for ids in ([0, 1], [1, 2])]
    assert edges_on_gpu(edges, gpu) is not None
    edges[1].device = SimpleNamespace(id=1)
    assert edges_on_gpu(edges, gpu) is None


@pytest.mark.usefixtures("host_is_gpu")
def test_of_parallel_edges_that_became_one_none_stays() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 2.0], duplicates="min", directed=False)
    with sigps.stream(WCC(), graph, device="cuda", asynchronous=False) as stream:
        stream.apply(inserts=([1], [2], [1.0]))
        assert stream.apply(deletes=([1], [2]))["component"].tolist() == [0, 0, 2]


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize("share", [1 << 60, 3])
def test_a_run_that_costs_too_much_is_given_up(share: int, monkeypatch: Any) -> None:
    """Whatever may be spent, never more is, and the result is that of a full run."""
    for name, cost in (("_BEGIN", 0), ("SUPERSTEP", 1), ("ROUND", 5), ("AT_A_TIME", 2)):
        monkeypatch.setattr(live, name, cost)
    monkeypatch.setattr(guard, "_LEAST", 0)
    graph = sigps.generate("grid", rows=14, columns=14, weights="random")
    n, draw, paths = graph.num_vertices, np.random.default_rng(3), []
    with sigps.stream(SSSP(source=0), graph, device="cuda") as stream:
        run: Any = stream._live
        run._share = share
        for _ in range(6):
            ends, weights = draw.integers(0, n, (2, 4)), draw.integers(1, 256, 4)
            gone = draw.integers(0, n - 1, 15)
            most = run._full_messages // share
            result = stream.apply(inserts=(*ends, weights), deletes=(gone, gone + 1))
            expected = sigps.run(SSSP(source=0), stream.graph, device="python")
            np.testing.assert_array_equal(result["distance"], expected["distance"])
            assert_parents_hold(result, stream.graph)
            assert run._spending.spent <= most
            paths.append(result.path)
            assert (result.path == "full") == ("needed more than" in result.why)
    assert set(paths) == {"full"} | ({"incremental"} if share < 10 else set())


@pytest.mark.usefixtures("host_is_gpu")
@pytest.mark.parametrize(
    "choice", [{"field": "distance", "below": 3, "fraction": 0.3}, lambda found: found.ids.min() > 1]
)
def test_a_guard_of_the_user(choice: Any) -> None:
    graph = Graph.from_edges(range(9), range(1, 10), np.ones(9))
    with sigps.stream(SSSP(source=0), graph, device="cuda", guard=choice) as stream:
        far, near = stream.apply(inserts=([5], [7], [1.0])), stream.apply(inserts=([0], [1], [0.5]))
    assert (far.path, near.path) == ("incremental", "full")
    assert near["distance"].tolist() == [0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 5.5, 6.5, 7.5]
