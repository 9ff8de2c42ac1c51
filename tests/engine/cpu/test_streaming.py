"""Runs whose edges stay in a packed store: bit for bit the runs in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from equality_programs import PROGRAMS, program_for
from processes import end_of
from thread_group import ThreadGroup, run_ranks
from turns import half_of
from ways import assert_same

import sigps
from sigps import Checkpoint, ConfigError, DeviceError, Graph, Result, State, Vertex, run
from sigps.apps import BFS, SSSP, WCC, KCore, OutDegree, PageRank
from sigps.compiler.frontend.analysis import analyse
from sigps.engine.contract import RunOptions
from sigps.graph.fingerprint import fingerprint
from sigps.graph.formats.packed_store import save_packed
from sigps.graph.packing.packer import Order
from sigps.graph.packing.table import chains
from sigps.job.streaming import decide_streaming

PAGE = 64
"""Arcs of a page here: the row of a hub spans three, and a graph of thousands of arcs has dozens."""


WALKS = {"jump", "two_letters", "neighbourhood", "throws", "relays"}
"""Of the programs, those whose compute() walks out-edges: not those of a store of in-edges."""


LISTS = {"answers", "coreness", "letters", "pigeonholes", "pulls", "votes"}
"""Those that read messages one by one or by key, or combine them in a way of their own: in order if deterministic."""


def packed(graph: Graph, folder: Path, page_arcs: int = PAGE, order: Order = "given") -> Graph:
    """Return a graph opened from a packed store with pages of so many arcs."""
    save_packed(graph, folder / "graph.sigps", order=order, page_arcs=page_arcs)
    return sigps.load(folder / "graph.sigps")


def skewed(*, directed: bool) -> Graph:
    """A graph of 2,000 edges on few vertices, one of which has 1,000, with weights that are no whole numbers."""
    draw = np.random.default_rng(3)
    hub, others = np.zeros(500, dtype=int), draw.integers(0, 300, 500)
    sources = np.concatenate([hub, others, (300 * draw.random(1000) ** 3).astype(int)])
    targets = np.concatenate([others, hub, draw.integers(0, 300, 1000)])
    weights = draw.random(sources.size)
    return Graph.from_edges(sources, targets, weights, directed=directed, vertices=range(310))


def both(program: Vertex, graph: Graph, stored: Graph, **options: Any) -> Result:
    """Return a streamed run that was bit for bit the one in memory."""
    limit = {"host_memory": options.pop("host_memory")} if "host_memory" in options else {}
    expected = run(program, graph, device="cpu", deterministic=True, asynchronous=False, **options)
    found = run(program, stored, stream="always", deterministic=True, **options, **limit)
    only_better = analyse(program).monotone is not None
    for name in expected.fields:
        mine, theirs = np.asarray(found[name]), np.asarray(expected[name])
        assert (
            mine.tolist() == theirs.tolist() if mine.dtype == object else mine.tobytes() == theirs.tobytes()
        )
    if not only_better:
        assert_same(found, expected, exact=True)
    return found


def test_the_graph_of_these_tests_has_many_blocks_and_a_row_in_three(tmp_path: Path) -> None:
    for directed in (False, True):
        table = packed(skewed(directed=directed), tmp_path).packed.rows.table  # type: ignore[union-attr]
        assert np.count_nonzero(~table.continues) >= 8
        assert np.count_nonzero(table.continues) >= 3


@pytest.mark.parametrize(
    ("program", "how"),
    half_of(
        [PageRank(), BFS(source=3), SSSP(source=3), OutDegree()],
        [(False, 1), (False, 3), (True, 3), (True, 1)],
    ),
    ids=str,
)
def test_apps(program: Vertex, how: tuple[bool, int], tmp_path: Path) -> None:
    directed, threads = how
    graph = skewed(directed=directed)
    stored = packed(graph, tmp_path)
    both(program, graph, stored, threads=threads)
    assert not stored.is_laid_out


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_both_directions_of_an_undirected_graph(direction: Any, tmp_path: Path) -> None:
    graph = skewed(directed=False)
    stored = packed(graph, tmp_path)
    for program in (BFS(source=3), SSSP(source=3), WCC()):
        result = both(program, graph, stored, direction=direction)
        assert {s.direction for s in result.stats[1:]} == {direction}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("graph", "which"),
    [("one_vertex", 0), ("only_isolated", 1), ("self_loop", 2), ("skewed", 0), ("string_ids", 0)],
)
def test_programs(graph: str, which: int, directed: bool, tmp_path: Path) -> None:
    """All programs on the large graph, every third on each of the others."""
    sample = BATTERY[graph].build(directed=directed)
    stored = packed(sample, tmp_path)
    for name in PROGRAMS if graph == "skewed" else list(PROGRAMS)[which::3]:
        program = program_for(name, graph)
        if sample.directed and (name in WALKS or not program.declaration.directed):
            with pytest.raises(ConfigError, match="cannot stream"):
                run(program, stored, stream="always")
        else:
            both(program, sample, stored, max_supersteps=12)
    assert not stored.is_laid_out


def test_a_limit_streams_what_does_not_fit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    draw = np.random.default_rng(1)
    graph = Graph.from_edges(*draw.integers(0, 1000, (2, 600_000)), directed=False)
    stored = packed(graph, tmp_path, page_arcs=1 << 14)
    expected = run(PageRank(), graph, device="cpu", deterministic=True, max_supersteps=3)
    options: dict[str, Any] = {"deterministic": True, "max_supersteps": 3, "threads": 1}
    with caplog.at_level("INFO", logger="sigps.job.preparing"):
        result = run(PageRank(), stored, host_memory="3MB", **options)
    assert result["rank"].tobytes() == expected["rank"].tobytes()
    assert "host_memory is 2.9 MiB" in caplog.text
    assert not stored.is_laid_out
    with pytest.raises(DeviceError, match=r"even with its edges streamed, and host_memory is 97.7 KiB"):
        run(PageRank(), stored, host_memory=100_000, **options)
    with pytest.raises(DeviceError, match=r"host_memory is 2.9 MiB: .*stream='auto'"):
        run(PageRank(), stored, host_memory="3MB", stream="never", **options)
    with pytest.raises(DeviceError, match=r"host_memory is 2.9 MiB, and it cannot stream: the graph was not"):
        run(PageRank(), graph, host_memory="3MB", **options)
    caplog.clear()
    assert run(PageRank(), stored, host_memory="1GB", **options).reason == "max_supersteps"
    assert not caplog.text


def test_blocks_are_skipped_and_counted(tmp_path: Path) -> None:
    line = np.arange(4000)
    graph = Graph.from_edges(line[:-1], line[1:], directed=False)
    stored = packed(graph, tmp_path)
    whole = stored.packed.rows.words.nbytes  # type: ignore[union-attr]
    pushed = both(BFS(source=0), graph, stored, max_supersteps=40, direction="push").stats
    assert pushed[0].bytes_read == 0
    assert all(0 < s.bytes_read < whole / 20 and s.blocks_skipped > 100 for s in pushed[1:])
    pulled = both(PageRank(iterations=5), graph, stored).stats
    assert [s.bytes_read for s in pulled] == [0, *[whole] * 5]
    assert [s.blocks_skipped for s in pulled[1:]] == [0] * 5
    unread = both(OutDegree(), graph, stored).stats
    assert [s.bytes_read for s in unread] == [0]


def test_a_pull_reads_the_blocks_whose_sources_sent(tmp_path: Path) -> None:
    line = np.arange(4000)
    graph = Graph.from_edges(line[:-1], line[1:])
    stats = both(BFS(source=0), graph, packed(graph, tmp_path), max_supersteps=40).stats
    whole = sigps.load(tmp_path / "graph.sigps").packed.rows.words.nbytes  # type: ignore[union-attr]
    assert [s.direction for s in stats] == ["pull"] * 40
    assert stats[1].bytes_read == whole  # what is in a block is known when it was read once
    assert all(0 < s.bytes_read < whole / 10 and s.blocks_skipped > 50 for s in stats[2:])


class LowerHalf(Vertex, message=int):
    """Vertices from 1,000 on retire at once; the others count what comes, three times."""

    seen: State[int] = 0

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.seen += sum(messages)
        self.send_to_neighbors(1)
        if self.id >= 1000:
            self.retire()
        elif self.superstep == 3:
            self.vote_to_halt()


def test_blocks_of_retired_vertices_are_skipped(tmp_path: Path) -> None:
    line = np.arange(2000)
    graph = Graph.from_edges(line[:-1], line[1:], directed=False)
    stats = both(LowerHalf(), graph, packed(graph, tmp_path), direction="pull", max_supersteps=4).stats
    count = len(list(chains(sigps.load(tmp_path / "graph.sigps").packed.rows.table)))  # type: ignore[union-attr]
    assert all(count // 2 - 1 <= s.blocks_skipped <= count // 2 for s in stats[1:])


@pytest.mark.parametrize("first", [True, False])
def test_state_logs_go_on_with_edges_in_memory_and_back(first: bool, tmp_path: Path) -> None:
    graph = skewed(directed=False)
    stored = packed(graph, tmp_path)
    assert fingerprint(stored) == fingerprint(graph)
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    log = Checkpoint(str(tmp_path / "log"), every=2)
    streams, in_memory = (stored, {"stream": "always"}), (graph, {"device": "cpu"})
    for number, (used, where) in enumerate([streams, in_memory] if first else [in_memory, streams]):
        options: dict[str, Any] = {**where, "max_supersteps": None if number else 5, "deterministic": True}
        result = run(PageRank(), used, checkpoint=log, resume=True, **options)
    assert result["rank"].tobytes() == expected["rank"].tobytes()
    assert len(result.stats) == len(expected.stats)
    assert not stored.is_laid_out


def test_a_simple_graph_is_known_by_a_pass(tmp_path: Path) -> None:
    graph = skewed(directed=False).undirected(simple=True)
    stored = packed(graph, tmp_path)
    both(KCore(), graph, stored)
    assert not stored.is_laid_out
    for name, ends in (("loop", [0, 1, 1]), ("repeat", [1, 2, 1])):
        other = Graph.from_edges([0, 0, 0], ends, directed=False)
        other.save(tmp_path / name, packed=True, order="given")
        with pytest.raises(ConfigError, match="takes no loops and repeats, and the store has some"):
            run(KCore(), sigps.load(tmp_path / name), stream="always")


@pytest.mark.parametrize("program", [PageRank(iterations=4), SSSP(source=3), program_for("relays", "skewed")])
def test_blocks_are_kept_in_what_the_limit_leaves(program: Vertex, tmp_path: Path) -> None:
    """Direct messages come first: one may go along every edge."""
    graph = skewed(directed=False)
    stored = packed(graph, tmp_path)
    unpacked = graph.num_edges * (4 + 8 * isinstance(program, SSSP))
    read, least = [], least_memory(program, stored)
    how: dict[str, Any] = {"host_memory": None, "stream": "always", "threads": [1]}
    streaming = decide_streaming(program, analyse(program), stored, "cpu", RunOptions(), **how)
    assert streaming is not None
    assert bool(streaming.direct) == (type(program).__name__ == "Relays")
    least += streaming.direct
    for kept in (0, unpacked // 2, unpacked):
        result = both(program, graph, stored, threads=1, host_memory=least + kept)
        read.append(sum(s.bytes_read for s in result.stats))
    none, half, everything = read
    assert none > half > everything > 0
    assert everything <= stored.packed.nbytes  # type: ignore[union-attr]


def least_memory(program: Vertex, stored: Graph) -> int:
    """Return the least limit with which a run streams on one thread, found by halving."""
    low, high = 1, 1 << 30
    while low < high:
        middle = (low + high) // 2
        try:
            run(program, stored, stream="always", host_memory=middle, threads=1, max_supersteps=1)
        except DeviceError:
            low = middle + 1
        else:
            high = middle
    return low


def test_what_cannot_stream_is_refused_by_name(tmp_path: Path) -> None:
    graph = skewed(directed=True)
    stored = packed(graph, tmp_path)
    with pytest.raises(
        ConfigError, match="WCC takes edges in both directions, and the stored graph is directed"
    ):
        run(WCC(), stored, stream="always")
    with pytest.raises(ConfigError, match="device='python' has all edges in memory"):
        run(PageRank(), stored, stream="always", device="python")
    with pytest.raises(ConfigError, match="not opened from a packed store"):
        run(PageRank(), graph, stream="always")
    with pytest.raises(ConfigError, match="host_memory='8 cows' must be bytes"):
        run(PageRank(), graph, host_memory="8 cows")
    with pytest.raises(ConfigError, match="stream='often' is not one of"):
        run(PageRank(), graph, stream="often")  # type: ignore[arg-type]


def test_many_runs_stream_one_after_another(tmp_path: Path) -> None:
    graph = skewed(directed=False)
    stored = packed(graph, tmp_path)
    expected = sigps.run_many(BFS, graph, source=[3, 4], device="cpu")
    found = sigps.run_many(BFS, stored, source=[3, 4], stream="always")
    assert found.one_by_one == "edges are streamed for one run at a time"
    for mine, theirs in zip(found, expected, strict=True):
        assert mine["level"].tolist() == theirs["level"].tolist()
    assert not stored.is_laid_out


@pytest.mark.parametrize(
    ("graph", "directed"), [("only_isolated", False), ("skewed", True), ("string_ids", False)]
)
def test_programs_on_rows_by_degree(graph: str, directed: bool, tmp_path: Path) -> None:
    sample = BATTERY[graph].build(directed=directed)
    stored = packed(sample, tmp_path, order="degree")
    for name in PROGRAMS:
        program = program_for(name, graph)
        if directed and (name in WALKS or not program.declaration.directed):
            continue
        if name in WALKS | LISTS:
            with pytest.raises(ConfigError, match=r"are by degree\. Write it with order='given'"):
                run(program, stored, stream="always", deterministic=True)
        else:
            both(program, sample, stored, max_supersteps=12)
        if name in LISTS:
            expected = run(program, sample, device="cpu", max_supersteps=12)
            assert_same(run(program, stored, stream="always", max_supersteps=12), expected, exact=False)
    assert not stored.is_laid_out


@pytest.mark.parametrize("direction", ["push", "pull"])
def test_apps_on_rows_by_degree(direction: Any, tmp_path: Path) -> None:
    graph = skewed(directed=False)
    stored = packed(graph, tmp_path, order="degree")
    for program in (PageRank(), BFS(source=3), SSSP(source=3), WCC(), OutDegree()):
        both(program, graph, stored, direction=direction, threads=3)


def test_a_log_goes_on_in_another_order_of_rows(tmp_path: Path) -> None:
    graph = skewed(directed=True)
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    log = Checkpoint(str(tmp_path / "log"), every=2)
    stops: list[tuple[Order, int | None]] = [("degree", 5), ("given", 9), ("degree", None)]
    for order, stop in stops:
        (tmp_path / order).mkdir(exist_ok=True)
        stored = packed(graph, tmp_path / order, order=order)
        options: dict[str, Any] = {"deterministic": True, "max_supersteps": stop}
        result = run(PageRank(), stored, stream="always", checkpoint=log, resume=True, **options)
    assert result["rank"].tobytes() == expected["rank"].tobytes()


def on_ranks(size: int, program: Vertex, folder: Path, **options: Any) -> Result:
    """Return rank 0's result of a run that streams on so many ranks; no rank has edges in memory."""

    def work(group: ThreadGroup) -> tuple[Result, bool]:
        stored = sigps.load(folder / "graph.sigps", group=group)
        return run(program, stored, stream="always", **options), stored.is_laid_out

    found = run_ranks(size, work)
    assert not any(is_laid_out for _, is_laid_out in found)
    return found[0][0]


@pytest.mark.parametrize("order", ["given", "degree"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_several_ranks_stream_their_own_pages(
    directed: bool, ranks: int, order: Order, tmp_path: Path
) -> None:
    graph = skewed(directed=directed)
    packed(graph, tmp_path, order=order)
    programs: list[Vertex] = [PageRank(), SSSP(source=3), OutDegree()]
    if not directed and order == "given":
        programs += [program_for(name, "skewed") for name in ("relays", "jump", "neighbourhood")]
    for program in programs:
        options: dict[str, Any] = {"deterministic": True, "max_supersteps": 12, "threads": 2}
        expected = run(program, graph, device="cpu", asynchronous=False, **options)
        found = on_ranks(ranks, program, tmp_path, **options)
        only_better = analyse(program).monotone is not None
        assert_same(found, expected, exact=True, in_order=not only_better)


@pytest.mark.parametrize(
    ("graph", "which"), [("one_vertex", 0), ("only_isolated", 1), ("string_ids", 0), ("skewed", 1)]
)
def test_programs_on_ranks_some_of_which_may_have_no_page(graph: str, which: int, tmp_path: Path) -> None:
    """Every other program, of two graphs the ones between."""
    sample = BATTERY[graph].build(directed=False)
    packed(sample, tmp_path)
    for name in list(PROGRAMS)[which::2]:
        program = program_for(name, graph)
        options: dict[str, Any] = {"deterministic": True, "max_supersteps": 6, "threads": 1}
        expected = run(program, sample, device="cpu", asynchronous=False, **options)
        only_better = analyse(program).monotone is not None
        found = on_ranks(3, program, tmp_path, **options)
        assert_same(found, expected, exact=True, in_order=not only_better)


def test_ranks_skip_blocks_and_read_each_page_once(tmp_path: Path) -> None:
    line = np.arange(4000)
    graph = Graph.from_edges(line[:-1], line[1:], directed=False)
    whole = packed(graph, tmp_path).packed.rows.words.nbytes  # type: ignore[union-attr]
    pulled = on_ranks(3, PageRank(iterations=3), tmp_path, deterministic=True).stats
    assert [s.bytes_read for s in pulled] == [0, *[whole] * 3]
    search = on_ranks(3, BFS(source=0), tmp_path, max_supersteps=20).stats
    assert {s.direction for s in search} == {"pull"}
    assert all(0 < s.bytes_read < whole / 10 and s.blocks_skipped > 50 for s in search[2:])


def test_state_logs_of_one_and_two_ranks_go_on_on_three(tmp_path: Path) -> None:
    graph = skewed(directed=False)
    packed(graph, tmp_path)
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    log = Checkpoint(str(tmp_path / "log"), every=2)
    for ranks, stop in ((1, 4), (2, 8), (3, None)):
        options: dict[str, Any] = {"max_supersteps": stop, "deterministic": True, "threads": 1}
        result = on_ranks(ranks, PageRank(), tmp_path, checkpoint=log, resume=True, **options)
    assert result["rank"].tobytes() == expected["rank"].tobytes()
    assert len(result.stats) == len(expected.stats)


def test_the_limit_is_that_of_a_rank(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    graph = Graph.from_edges(*draw.integers(0, 1000, (2, 600_000)), directed=False)
    packed(graph, tmp_path, page_arcs=1 << 14)
    expected = run(PageRank(), graph, device="cpu", deterministic=True, max_supersteps=3)

    def limited(group: ThreadGroup, limit: str, **options: Any) -> Result:
        stored = sigps.load(tmp_path / "graph.sigps", group=group)
        given: dict[str, Any] = {"deterministic": True, "max_supersteps": 3, "threads": 1, **options}
        return run(PageRank(), stored, host_memory=limit, **given)

    whole = 4 * graph.num_edges
    read = []
    for limit in ("3MB", "4MB"):  # of some 2.4 MB of edges a rank, unpacked
        result = run_ranks(2, lambda group, limit=limit: limited(group, limit))[0]  # type: ignore[misc]
        assert result["rank"].tobytes() == expected["rank"].tobytes()
        read.append(result.stats[2].bytes_read)
    assert whole > read[0] > read[1] > 0
    with pytest.raises(DeviceError, match="even with its edges streamed"):
        run_ranks(2, lambda group: limited(group, "100KB"))
    for partitioner, name in (("hash", "partitioner='hash'"), (lambda ids: 0 * ids, "a function")):
        with pytest.raises(ConfigError, match=f"{name}.* is not built for a run that streams on 2 ranks"):
            run_ranks(2, lambda group, p=partitioner: limited(group, "3MB", partitioner=p))  # type: ignore[misc]


def test_a_simple_graph_is_known_by_all_ranks(tmp_path: Path) -> None:
    graph = skewed(directed=False).undirected(simple=True)
    packed(graph, tmp_path)
    expected = run(KCore(), graph, device="cpu")
    assert on_ranks(3, KCore(), tmp_path)["core"].tolist() == expected["core"].tolist()
    Graph.from_edges(np.arange(300), np.arange(300) // 299 + np.arange(300), directed=False).save(
        tmp_path / "loops", packed=True, order="given"
    )
    with pytest.raises(ConfigError, match="takes no loops and repeats, and the store has some"):
        run_ranks(2, lambda group: run(KCore(), sigps.load(tmp_path / "loops", group=group), stream="always"))


@pytest.mark.mpi
def test_processes_stream_as_one_does(tmp_path: Path) -> None:
    graph = skewed(directed=True)
    packed(graph, tmp_path)
    expected = run(PageRank(), graph, device="cpu", deterministic=True)
    script = tmp_path / "job.py"
    script.write_text(
        "import sys, sigps\n"
        "from sigps.apps import PageRank\n"
        "graph = sigps.load(sys.argv[1])\n"
        "result = sigps.run(PageRank(), graph, stream='always', deterministic=True, threads=1)\n"
        "assert not graph.is_laid_out\n"
        "if graph.group.rank == 0:\n"
        "    result['rank'].tofile(sys.argv[2])\n"
    )
    out = tmp_path / "rank"
    started = subprocess.Popen(
        ["mpirun", "-n", "3", sys.executable, str(script), str(tmp_path / "graph.sigps"), str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    outcome = end_of(started)
    assert outcome.code == 0, outcome.err
    assert out.read_bytes() == expected["rank"].tobytes()
