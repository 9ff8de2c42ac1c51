"""In-edges in tiles: who may have them, how work is shared out, and what a GPU combines from them."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_gpu import use_host_as_gpu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_compiling import assert_compiles
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import Aggregator, State, Vector, Vertex
from sigps.apps import (
    BFS,
    CDLP,
    HITS,
    WCC,
    EigenvectorCentrality,
    HeatDiffusion,
    Katz,
    KCore,
    PageRank,
    PersonalisedPageRank,
)
from sigps.cli import main as cli
from sigps.compiler.cuda.compile import compile_for_cuda, link, macros_of
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.gpu import placement
from sigps.engine.gpu.graph import graph_on_gpu
from sigps.engine.gpu.launch import WIDE
from sigps.engine.gpu.layout import lay_out
from sigps.engine.gpu.tiling import (
    MANY_EDGES,
    Cost,
    Tiles,
    Tiling,
    TilingCounts,
    choose_tiling,
    count_on_host,
    find_reason_against,
    find_tiling_obstacle,
    record_bytes_of,
    share_out,
)
from sigps.engine.gpu.variant import PEERS, TILE_COLUMNS, TILES
from sigps.errors import ConfigError


class Weighted(Vertex, message=float):
    """Sends along each edge what its weight says."""

    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep < 5:
            for edge in self.out_edges:
                self.send(edge, edge.weight * self.value)
        else:
            self.vote_to_halt()


DENSE: list[tuple[Vertex, str]] = [
    (PageRank(iterations=6), "rank"),
    (PageRank(tolerance=1e-6), "rank"),
    (PersonalisedPageRank(source=1), "rank"),
    (Katz(attenuation=1e-4), "score"),
    (EigenvectorCentrality(iterations=8), "score"),
    (HITS(iterations=4), "authority"),
    (Weighted(), "value"),
]


class Halts(Vertex, message=float):
    """Sends and halts, so that a vertex without messages does not run again."""

    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep < 5:
            self.send_to_neighbors(self.value)
        self.vote_to_halt()


class SomeSend(Vertex, message=float):
    value: State[float] = 1.0

    def compute(self, messages):
        self.value += sum(messages)
        if self.superstep == 5:
            self.vote_to_halt()
        elif self.id % 2 == 0:
            self.send_to_neighbors(self.value)


class Returns(Vertex, message=float):
    """Ends compute() early at some vertices."""

    value: State[float] = 1.0
    total = Aggregator.sum(float)

    def compute(self, messages):
        if self.superstep == 5:
            self.vote_to_halt()
            return
        if self.value > 100.0:
            return
        self.value += sum(messages)
        self.send_to_neighbors(self.value)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        *((program, True) for program, _ in DENSE),
        (HeatDiffusion(source=0, rate=0.1), True),
        (BFS(source=0), False),
        (WCC(), False),
        (KCore(), False),
        (Halts(), False),
        (SomeSend(), False),
        (Returns(), False),
    ],
)
def test_programs_whose_vertices_send_together(program: Vertex, expected: bool) -> None:
    assert analyse(program).sends_together is expected


@pytest.mark.parametrize("precision", ["single", "double"])
def test_kernels_over_tiles_link(precision: Any) -> None:
    """Of several GPUs one links; the others compile."""
    for program, _ in DENSE:
        compiled = compile_for_cuda(analyse(program, precision), {}, narrow_ids=True, arch="sm_90")
        assert not find_tiling_obstacle(compiled.program, compiled.defines)
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | TILES
        for peers in ({}, PEERS):
            assert_compiles(compiled, "lease", "sm_90", macros | peers)
    if precision == "double":
        assert link(compiled, "lease", "sm_90", macros | PEERS)[:4] == b"\x7fELF"


def test_kernels_over_tiles_with_columns_compile() -> None:
    columns = {name: np.dtype(np.bool_) for name in ("leads_out", "leads_in")}
    columns["weight"] = np.dtype(np.float32)
    for program in (HITS(), HeatDiffusion(source=0, rate=0.1)):
        compiled = compile_for_cuda(analyse(program, "single"), columns, narrow_ids=True, arch="sm_90")
        macros = WIDE.macros() | {"SIGPS_CLUSTER_THREADS": "0"} | TILES | TILE_COLUMNS
        assert_compiles(compiled, "lease", "sm_90", macros)


def test_tiles_pay_on_large_skewed_graphs() -> None:
    """Counts of kron-22, and of a graph whose pairs have about one edge each."""
    assert not TilingCounts(128_000_000, 55_000_000, 11_500_000).reason_against
    one_edge_each = TilingCounts(128_000_000, 127_000_000, 120_000_000)
    assert one_edge_each.reason_against == "there may be 63,500,000 pairs at most"
    assert TilingCounts(1_000_000, 500_000, 1_000).reason_against == "it has fewer than 8,000,000 edges"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the first example compiles
@given(
    st.lists(st.lists(st.integers(0, 19), max_size=9), min_size=20, max_size=20),
    st.permutations(range(20)),
    st.integers(1, 8),
    st.integers(0, 20),
)
def test_pairs_are_counted_on_the_host(rows: list[list[int]], lids: list[int], size: int, near: int) -> None:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    sources = np.array([source for row in rows for source in row], np.uint32)
    counts = count_on_host(offsets, sources, np.array(lids, np.uint32), size, near)
    assert counts.num_edges == sum(map(len, rows))
    assert counts.num_far == sum(lids[source] >= near for row in rows for source in row)
    assert counts.num_pairs == sum(len({lids[source] // size for source in row}) for row in rows)


@pytest.mark.parametrize(
    ("program", "obstacle"),
    [
        (PageRank(), ""),
        (HITS(), ""),
        (BFS(source=0), "a pull ends where its result is known"),
        (SomeSend(), "its vertices do not all send in the same supersteps, as far as the compiler can prove"),
        (CDLP(iterations=3), "its messages are not combined"),
    ],
)
def test_the_key_forces_and_forbids_tiles(program: Vertex, obstacle: str) -> None:
    columns = {name: np.dtype(np.bool_) for name in ("leads_out", "leads_in")}
    columns["weight"] = np.dtype(np.float64)
    compiled = compile_for_cuda(analyse(program, "double"), columns, narrow_ids=True, arch="sm_90")
    assert find_tiling_obstacle(compiled.program, compiled.defines) == obstacle
    assert macros_of(compiled.program, columns, narrow_ids=True) == compiled.defines

    def choose(tiles: Tiles) -> Tiling | None:
        return choose_tiling(compiled, shared_bytes=232_448, num_blocks=132, varying={"weight"}, tiles=tiles)

    assert choose("never") is None
    if obstacle:
        assert choose("auto") is None
        with pytest.raises(
            ConfigError, match=rf"cannot run with tiles='always': {obstacle}\. Use tiles='auto'"
        ):
            choose("always")
    else:
        assert choose("auto") == Tiling(24064, 132, 8)
        assert choose("always") == Tiling(24064, 132, 8, always=True)


@pytest.mark.parametrize(
    ("program", "varying", "reason"),
    [
        (Weighted(), {"weight"}, "it reads values of edges, which vary, and they are few"),
        (Weighted(), set(), ""),
        (HITS(), {"leads_in"}, "it reads values of edges, which vary, and they are few"),
        (HITS(), {"weight"}, ""),
        (HeatDiffusion(source=0, rate=0.1), set(), "compute() goes through edges, and they are few"),
        (
            HeatDiffusion(source=0, rate=0.1),
            {"weight"},
            "it reads values of edges, which vary, and they are few",
        ),
        (BFS(source=0), set(), "a pull ends where its result is known"),
    ],
)
def test_programs_that_read_edges_go_over_tiles_where_that_is_asked_for(
    program: Vertex, varying: set[str], reason: str
) -> None:
    columns = {name: np.dtype(np.bool_) for name in ("leads_out", "leads_in")}
    columns["weight"] = np.dtype(np.float64)
    compiled = compile_for_cuda(analyse(program, "double"), columns, narrow_ids=True, arch="sm_90")
    assert find_reason_against(compiled.program, compiled.defines, varying, MANY_EDGES - 1) == reason
    is_possible = not find_tiling_obstacle(compiled.program, compiled.defines)
    assert (find_reason_against(compiled.program, compiled.defines, varying, MANY_EDGES) == "") == is_possible
    given: dict[str, Any] = {"shared_bytes": 232_448, "num_blocks": 132, "varying": varying}
    assert (choose_tiling(compiled, **given, tiles="auto") is None) == bool(reason)
    if not isinstance(program, BFS):
        assert choose_tiling(compiled, **given, tiles="always") == Tiling(24064, 132, 8, always=True)


@pytest.mark.parametrize("tiles", ["auto", "always", "never"])
def test_a_run_asks_for_tiles_by_its_key(
    tiles: Tiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laid out in rows all the same, which is all that this host can run."""
    use_host_as_gpu(monkeypatch)
    asked: list[Tiling | None] = []

    def in_rows(*given: Any, tiling: Tiling | None, **options: Any) -> Any:
        asked.append(tiling)
        return graph_on_gpu(*given, **options)

    monkeypatch.setattr(placement, "graph_on_gpu", in_rows)
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "job.yaml").write_text(
        f"program: sigps.apps:PageRank\ngraph: {{path: graph.txt}}\nengine: {{device: cuda, tiles: {tiles}}}\n"
    )
    assert cli.execute(["run", str(tmp_path / "job.yaml")]) == 0
    expected = {"auto": Tiling(3072, 1, 8), "always": Tiling(3072, 1, 8, always=True), "never": None}
    assert asked == [expected[tiles]]


@pytest.mark.parametrize(
    ("program", "options", "complaint"),
    [
        (PageRank(), {"device": "cpu"}, "tiles='always' is of GPUs; this run is on device 'cpu': "),
        (PageRank(), {"direction": "push"}, "tiles='always' is of pulls, and direction='push' has none"),
        (PageRank(), {"schedule": "edge"}, "tiles='always' is of pulls, and schedule='edge' has none"),
        (PageRank(), {"stream": "always"}, "tiles='always' needs all edges on the GPU, and they do not fit"),
        (BFS(source=0), {}, "BFS cannot run with tiles='always': a pull ends where its result is known"),
        (PageRank(), {"tiles": "often"}, "tiles='often' is not one of auto, always, never"),
    ],
)
def test_tiles_that_cannot_be_are_refused(
    program: Vertex, options: dict[str, Any], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_host_as_gpu(monkeypatch)
    graph = sigps.Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(ConfigError, match=complaint):
        sigps.run(program, graph, **{"device": "cuda", "tiles": "always", **options})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.integers(0, 2)), min_size=1, max_size=200),
    st.integers(1, 9),
    st.integers(0, 5),
)
def test_every_slice_has_one_warp(slices: list[tuple[int, bool, int]], num_shares: int, num_own: int) -> None:
    widths, are_pieces = (np.array([s[i] for s in slices]) for i in range(2))
    segments = np.cumsum([s[2] == 0 for s in slices])
    shares = share_out(widths, are_pieces, segments, num_shares, num_own, Cost(segment=50.0))
    assert shares.first_tasks.size == num_shares * (2 if num_own else 1) + 1
    assert shares.num_early == (num_shares if num_own else 0)
    early = shares.segments[: shares.first_tasks[shares.num_early]]
    assert (early < num_own).all()
    assert (shares.segments[early.size :] >= num_own).all()
    assert shares.first_tasks[0] == 0
    assert shares.first_tasks[-1] == shares.segments.size == len(shares.runs)
    assert (np.diff(shares.first_tasks.astype(int)) >= 0).all()
    found = []
    for segment, run in zip(shares.segments, shares.runs.astype(int), strict=True):
        for begin, end in itertools.pairwise(run):
            assert (segments[begin:end] == segment).all()
            found += range(begin, end)
    assert found == list(range(len(slices)))


def test_without_slices_no_block_has_a_task() -> None:
    """As on a path, each of whose rows has one edge."""
    shares = share_out(np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, np.int64), 3)
    assert shares.first_tasks.tolist() == [0, 0, 0, 0]
    assert (shares.segments.shape, shares.runs.shape) == ((0,), (0, 33))


@given(st.lists(st.sampled_from([0, 1, 5, 33, 40, 200]), max_size=150))
def test_slices_are_as_wide_as_their_longest_row(degrees: list[int]) -> None:
    rows = lay_out(np.array(degrees, np.uint32), descending=False)
    assert rows.num_csr_rows % 32 == 0
    assert all(degree <= 32 for degree in degrees[rows.num_csr_rows :])
    widths = np.diff(rows.slices.astype(int)) // 32
    firsts = range(rows.num_csr_rows, len(degrees), 32)
    assert widths.tolist() == [max(degrees[first : first + 32]) for first in firsts]


def use_tiles(monkeypatch: pytest.MonkeyPatch, size: int | None, shortest_pair: int = 2) -> list[Tiling]:
    """Lay all dense programs' edges out in tiles of segments of a size, or none's; return what was asked for."""
    asked: list[Tiling] = []

    def choose(
        compiled: Any, *, shared_bytes: int, num_blocks: int, varying: set[str], num_edges: int, tiles: str
    ) -> Tiling | None:
        if size is None or find_tiling_obstacle(compiled.program, compiled.defines):
            return None
        record_bytes = record_bytes_of(compiled)
        asked.append(Tiling(size, num_blocks, record_bytes, always=True, shortest_pair=shortest_pair))
        return asked[-1]

    monkeypatch.setattr(placement, "choose_tiling", choose)
    return asked


def skewed(
    num_vertices: int, num_edges: int, *, directed: bool, is_weighted: bool = False, **options: Any
) -> sigps.Graph:
    rng = np.random.default_rng(num_edges)
    if is_weighted:
        options["weights"] = rng.random(num_edges) + 0.1
    sources = (rng.random(num_edges) ** 4 * num_vertices).astype(np.int64)
    targets = (rng.random(num_edges) ** 2 * num_vertices).astype(np.int64)
    return sigps.Graph.from_edges(sources, targets, directed=directed, **options)


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"), [(40, 100, 32), (3000, 40_000, 1024), (9000, 900_000, 4096)]
)
def test_tiles_give_what_a_cpu_gives(
    num_vertices: int, num_edges: int, size: int, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many segments of small graphs; pairs of over 512 and 2,048 edges in the largest."""
    graph = skewed(num_vertices, num_edges, directed=directed)
    asked = use_tiles(monkeypatch, size)
    for program, field in DENSE:
        found = sigps.run(program, graph, device="cuda")
        expected = sigps.run(program, graph, device="cpu")
        np.testing.assert_allclose(found[field], expected[field], rtol=1e-9)
    assert len(asked) == len(DENSE)


class Spreading(Vertex, message=Vector[float, 4]):
    """Records of 16 bytes in single precision."""

    scores: State[Vector[float, 4]] = 0.0

    def compute(self, messages):
        if self.superstep == 0:
            self.scores[self.id % 4] = 1.0
        elif self.out_degree > 0:
            self.scores = 0.1 * self.scores + 0.9 * sum(messages) / self.out_degree
        if self.superstep < 6:
            self.send_to_neighbors(self.scores)
        else:
            self.vote_to_halt()


@pytest.mark.gpu
@pytest.mark.parametrize("shortest_pair", [2, 3, 8])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"), [(40, 100, 32), (3000, 40_000, 1024), (9000, 900_000, 4096)]
)
def test_vectors_over_tiles_that_leave_short_pairs_in_rows(
    num_vertices: int, num_edges: int, size: int, shortest_pair: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = skewed(num_vertices, num_edges, directed=True)
    asked = use_tiles(monkeypatch, size, shortest_pair)
    for program, field, precision in (
        (Spreading(), "scores", "single"),
        (PageRank(iterations=6), "rank", "single"),
        (PageRank(iterations=6), "rank", "double"),
    ):
        found = sigps.run(program, graph, device="cuda", precision=precision)[field]
        expected = sigps.run(program, graph, device="cpu", precision="double")[field]
        rtol = 1e-4 if precision == "single" else 1e-9
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * 1e-3 * np.abs(expected).max())
    assert [tiling.record_bytes for tiling in asked] == [16, 4, 8]


EDGES_READ: list[tuple[Vertex, str]] = [
    (Weighted(), "value"),
    (HeatDiffusion(source=0, rate=1e-4, steps=6), "heat"),
    (HITS(iterations=4), "hub"),
]


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("num_vertices", "num_edges", "size"), [(40, 100, 32), (3000, 40_000, 1024), (9000, 900_000, 4096)]
)
def test_values_of_edges_over_tiles(
    num_vertices: int, num_edges: int, size: int, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hubs whose edges compute() goes through; as over rows, on a CPU and, where that is soon done, interpreted."""
    graph = skewed(num_vertices, num_edges, directed=directed, is_weighted=True)
    programs = EDGES_READ[::2] if directed else EDGES_READ
    expected = [sigps.run(p, graph, device="cpu")[field] for p, field in programs]
    in_rows = [sigps.run(p, graph, device="cuda", tiles="never")[field] for p, field in programs]
    asked = use_tiles(monkeypatch, size)
    for (program, field), *judges in zip(programs, expected, in_rows, strict=True):
        found = sigps.run(program, graph, device="cuda")[field]
        if num_edges < 1000:
            judges.append(sigps.run(program, graph, device="python")[field])
        for judge in judges:
            np.testing.assert_allclose(found, judge, rtol=1e-9)
    assert len(asked) == len(programs)


@pytest.mark.gpu
@pytest.mark.parametrize("size", [32, 1024])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_pull_over_tiles(ranks: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that are threads, whose records go by the host; one of them has CPU cores."""
    asked = use_tiles(monkeypatch, size)

    def on_rank(group: ThreadGroup) -> list[Any]:
        graph = skewed(3000, 40_000, directed=False, group=group)
        device = "cpu" if group.rank == 2 else "cuda"
        return [sigps.run(p, graph, device=device, partitioner="hash")[field] for p, field in DENSE]

    found = run_ranks(ranks, on_rank)[0]
    graph = skewed(3000, 40_000, directed=False)
    for (program, field), values in zip(DENSE, found, strict=True):
        np.testing.assert_allclose(values, sigps.run(program, graph, device="cpu")[field], rtol=1e-9)
    assert len(asked) == 2 * len(DENSE)


@pytest.mark.gpu
def test_small_graphs_lie_in_tiles_by_the_key(caplog: pytest.LogCaptureFixture) -> None:
    graph = skewed(3000, 40_000, directed=False)
    found = {}
    for tiles in ("always", "never", "auto"):
        caplog.clear()
        with caplog.at_level(logging.INFO, "sigps"):
            found[tiles] = sigps.run(PageRank(), graph, device="cuda", tiles=tiles)["rank"]
        said = [record.getMessage() for record in caplog.records if "in-edges in" in record.getMessage()]
        assert [text.startswith("in-edges in tiles") for text in said] == (
            [True] if tiles == "always" else []
        )
    np.testing.assert_array_equal(found["never"], found["auto"])
    np.testing.assert_allclose(found["always"], found["never"], rtol=1e-9)


@pytest.mark.gpu
def test_runs_over_tiles_repeat_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = skewed(9000, 400_000, directed=False)
    use_tiles(monkeypatch, 2048)
    found = [sigps.run(PageRank(), graph, device="cuda", precision="single")["rank"] for _ in range(3)]
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.gpu
def test_a_log_over_tiles_goes_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first superstep after a resume reads who sent as bits."""
    graph = skewed(3000, 40_000, directed=False)
    use_tiles(monkeypatch, 1024)
    program = PageRank(iterations=9)
    how: dict[str, Any] = {"device": "cuda", "checkpoint": sigps.Checkpoint(tmp_path / "log", every=2)}
    sigps.run(program, graph, max_supersteps=5, **how)
    found = sigps.run(program, graph, resume=True, **how)
    np.testing.assert_allclose(found["rank"], sigps.run(program, graph, device="cpu")["rank"], rtol=1e-9)
