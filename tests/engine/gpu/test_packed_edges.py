"""Edges that cross packed: runs on one GPU equal others, and what cannot cross is refused."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import equality_programs
import host_gpu
import numpy as np
import pytest
from battery import BATTERY
from packed_runs import SEARCHES
from turns import in_turn

import sigps
from sigps.apps import BFS, SSSP, WCC, GreedyColouring, KCore, LongestPath, PageRank
from sigps.errors import CompileError, ConfigError, DeviceError, GraphError
from sigps.graph.formats.packed_store import save_packed


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("name", ["skewed", "isolated", "parallel_edges_undirected", "string_ids"])
def test_runs_on_packed_edges_equal_the_interpreter(
    name: str, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_packed(BATTERY[name].build(), tmp_path / "store", order=order, page_arcs=8)
    program = PageRank(iterations=4)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    for _ in range(2):
        found = sigps.run(program, graph, device="cuda", stream="always")
        assert found.stats[1].bytes_read > 0
        np.testing.assert_allclose(found["rank"], expected["rank"], rtol=1e-12)


@pytest.mark.parametrize(
    ("program", "order", "transfer"),
    in_turn(
        [BFS(source=0), WCC(), KCore(), SSSP(source=0), SSSP(source=0)], ["given", "degree"], ["auto", "bulk"]
    ),
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_searches_on_packed_edges_equal_the_interpreter(
    program: sigps.Vertex, transfer: Any, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BATTERY["weight_ties" if isinstance(program, SSSP) else "skewed"].build().undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=8)
    expected = sigps.run(program, sigps.load(tmp_path / "store"), device="python")
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = sigps.load(tmp_path / "store")
    for _ in range(2):
        found = sigps.run(
            program, graph, device="cuda", stream="always", transfer=transfer, asynchronous=False
        )
        for field in expected.fields:
            np.testing.assert_array_equal(np.asarray(found[field]), np.asarray(expected[field]))


def test_what_cannot_cross_packed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    graph = BATTERY["skewed"].build().undirected()
    bulk: dict[str, Any] = {"stream": "always", "transfer": "bulk", "device": "cuda"}
    with pytest.raises(ConfigError, match="not opened from a packed store"):
        sigps.run(PageRank(), graph, **bulk)
    graph.save(tmp_path / "store", packed=True)
    graph = sigps.load(tmp_path / "store")
    with pytest.raises(ConfigError, match=r"aggregators of Census have [0-9]+ bytes, more than the 256"):
        sigps.run(equality_programs.PROGRAMS["census"], graph, **bulk)
    with pytest.raises(ConfigError, match="are pulled"):
        sigps.run(BFS(source=0), graph, direction="push", **bulk)
    with pytest.raises(ConfigError, match="edges that stream to a GPU"):
        sigps.run(PageRank(), graph, **bulk | {"device": "cpu"})


@pytest.mark.gpu
@pytest.mark.parametrize("program", SEARCHES, ids=lambda program: type(program).__name__)
@pytest.mark.parametrize(
    ("order", "page_arcs", "unit"),
    [
        ("given", 64, None),
        ("degree", 64, 0.3),
        ("given", 1 << 13, 1.0),
        ("degree", 1 << 13, None),
        ("degree", 1 << 18, 1.0),
        ("given", 1 << 18, 0.3),
    ],
)
def test_searches_read_rows_and_pages(
    order: Any, page_arcs: int, unit: float | None, program: sigps.Vertex, tmp_path: Path
) -> None:
    """With rows that span pages, small components, and a number of vertices that is no multiple of 32."""
    drawn = sigps.generate("rmat", scale=15 if page_arcs > 64 else 11, seed=3)
    rows = drawn.in_edges()
    targets = np.repeat(np.arange(drawn.num_vertices), np.diff(rows.offsets).astype(np.int64))
    first = drawn.num_vertices
    path = np.arange(first, first + 501)
    sources = np.concatenate([rows.sources, path[:-1], np.arange(20_000) % first])
    targets = np.concatenate([targets, path[1:], np.full(20_000, 77)])
    numbers = np.minimum(sources, targets) * 7 + np.maximum(sources, targets) * 13
    weights = None if unit is None else (numbers % 200 + 1) * unit
    made = sigps.Graph.from_edges(sources, targets, weights=weights).undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu")
    limit = {"device_memory": "40MB" if page_arcs < 1 << 18 else "600MB"}
    options: list[dict[str, Any]] = [
        {},
        {"asynchronous": False, "direction": "push"},
        {"direction": "pull"},
        {"transfer": "bulk"},
        limit,
    ]
    for more in options:
        found = sigps.run(program, graph, device="cuda", stream="always", **more)
        for field in expected.fields:
            np.testing.assert_array_equal(
                np.asarray(found[field]), np.asarray(expected[field]), f"{program} {more}"
            )
        assert sum(s.bytes_read for s in found.stats) > 0 or more is limit, (program, more)
        assert sum(s.blocks_skipped for s in found.stats) > 0


TAKEN = [
    *(
        "wcc",
        "bfs",
        "reach",
        "floods",
        "gathers",
        "sssp",
        "product",
        "climb",
        "pagerank",
        "pagerank_tolerance",
    ),
    *("spread", "answers", "votes", "extremes", "largest_of_each", "market"),
]


def compare_programs(graph: str, order: Any, folder: Path, run: Any, names: list[str]) -> set[str]:
    """Run those programs that packed edges take, compare them with the interpreter's results, and return which."""
    made = BATTERY[graph].build()
    made = made.undirected() if made.directed else made
    save_packed(made, folder / "store", order=order, page_arcs=8)
    stored, ran = sigps.load(folder / "store"), []
    for name in names:
        given = equality_programs.PROGRAMS[name]
        program = given if isinstance(given, sigps.Vertex) else given(int(np.asarray(made.ids)[0]))
        try:
            found = run(program, stored, device="cuda", stream="always", deterministic=True)
        except (ConfigError, CompileError, GraphError):
            continue
        except DeviceError as error:
            if "is not built for" not in str(error):
                raise
            continue
        if sum(s.bytes_read for s in found.stats):
            ran.append(name)
        elif name not in TAKEN:
            continue
        expected = sigps.run(program, stored, device="python", deterministic=True)
        for field in expected.fields:
            np.testing.assert_allclose(
                np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-9, err_msg=name
            )
    return set(ran)


@pytest.mark.parametrize("order", ["given", "degree"])
def test_programs_on_packed_edges_equal_the_interpreter(
    order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host_gpu.use_host_as_gpu(monkeypatch)
    run, names = functools.partial(sigps.run, asynchronous=False), list(equality_programs.PROGRAMS)
    walked = {"jump", "neighbourhood", "throws", "two_letters"}
    listed = {"coreness", *walked} if order == "given" else set()  # whose order is that of edges
    elsewhere = {"pagerank", "wcc", "bfs", "sssp", "votes"}  # above, and in test_packed_keys.py
    names = [name for i, name in enumerate(names) if i % 2 == (order == "degree") or name in listed]
    names = [name for name in names if name not in elsewhere]
    taken = {*TAKEN, *listed, "votes", "answers"}
    assert compare_programs("skewed", order, tmp_path, run, names) == taken.intersection(names)


@pytest.mark.gpu
@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize(
    "graph", ["skewed", "isolated", "grid", "star_out", "parallel_edges_undirected", "two_components"]
)
def test_programs_on_packed_edges_equal_the_interpreter_on_a_gpu(
    graph: str, order: Any, name: str, tmp_path: Path
) -> None:
    ran = compare_programs(graph, order, tmp_path, sigps.run, [name])
    assert ran == {name} or graph != "skewed"  # heads of short rows may be enough


@pytest.mark.gpu
@pytest.mark.parametrize(("order", "page_arcs"), [("given", 1 << 10), ("degree", 1 << 18)])
@pytest.mark.parametrize(("program", "directed"), [(GreedyColouring(), False), (LongestPath(), True)])
def test_long_messages_combine_as_on_cpu_cores(
    program: sigps.Vertex, directed: bool, order: Any, page_arcs: int, tmp_path: Path
) -> None:
    """Of 24 and 32 bytes; rows that span pages, and rows of chunks that warps share."""
    made = sigps.generate("rmat", scale=15, seed=3)
    rows, hub = made.in_edges(), np.arange(30_000)
    targets = np.repeat(np.arange(made.num_vertices), np.diff(rows.offsets).astype(np.int64))
    sources, targets = np.append(rows.sources, hub), np.append(targets, np.full(hub.size, 77))
    weights = (sources * 7 + targets * 3) % 9 + 1.0
    made = sigps.Graph.from_edges(sources, targets, weights=weights, directed=directed)
    made = made if directed else made.undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=page_arcs)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu", max_supersteps=6)
    for more in ({"transfer": "bulk"}, {"host_memory": "1GB"}, *([] if directed else [{}])):
        stored = sigps.load(tmp_path / "store")
        options: dict[str, Any] = {"stream": "always", "max_supersteps": 6} | more
        found = sigps.run(program, stored, device="cuda", **options)
        assert not stored.is_laid_out
        assert sum(s.bytes_read for s in found.stats) > 0
        for field in expected.fields:
            np.testing.assert_array_equal(found[field], expected[field], err_msg=f"{field} {more}")


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize(
    ("program", "directed"),
    [(PageRank(iterations=5), True), (PageRank(iterations=5), False), (WCC(), False), (KCore(), False)],
    ids=lambda value: type(value).__name__,
)
def test_runs_on_packed_edges_equal_cpu_cores(
    order: Any, directed: bool, program: sigps.Vertex, tmp_path: Path
) -> None:
    """With a row that spans pages, pages on the device and not, and vertices that retire and halt."""
    graph = sigps.generate("rmat", scale=17, seed=3)
    rows = graph.in_edges()
    targets = np.repeat(np.arange(graph.num_vertices), np.diff(rows.offsets).astype(np.int64))
    hub = np.arange(600_000)
    sources = np.concatenate([rows.sources, hub])
    made = sigps.Graph.from_edges(
        sources, np.concatenate([targets, np.full(hub.size, 77)]), directed=directed
    )
    made = made if directed else made.undirected(simple=True)
    save_packed(made, tmp_path / "store", order=order, page_arcs=1 << 16)
    graph = sigps.load(tmp_path / "store")
    expected = sigps.run(program, graph, device="cpu")
    for limit in (None, "150MB"):
        found = sigps.run(
            program, graph, device="cuda", stream="always", transfer="bulk", device_memory=limit
        )
        assert sum(s.bytes_read for s in found.stats) > 0
        assert limit is not None or max(s.bytes_read for s in found.stats) > 2_000_000
        for field in expected.fields:
            np.testing.assert_allclose(np.asarray(found[field]), np.asarray(expected[field]), rtol=1e-9)


def test_runs_on_packed_edges_go_on_from_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_packed(BATTERY["skewed"].build(), tmp_path / "store", page_arcs=8)
    host_gpu.use_host_as_gpu(monkeypatch)
    given: dict[str, Any] = {"device": "cuda", "stream": "always"}
    log = sigps.Checkpoint(str(tmp_path / "log"), every=2)
    expected = sigps.run(PageRank(iterations=6), sigps.load(tmp_path / "store"), **given)
    sigps.run(
        PageRank(iterations=6), sigps.load(tmp_path / "store"), **given, checkpoint=log, max_supersteps=3
    )
    found = sigps.run(
        PageRank(iterations=6), sigps.load(tmp_path / "store"), **given, checkpoint=log, resume=True
    )
    np.testing.assert_array_equal(found["rank"], expected["rank"])
