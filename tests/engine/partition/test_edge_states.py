"""Values kept on edges, and the edges of neighbours: every engine, any ranks, against counts made another way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow.csv
import pyarrow.parquet
import pytest
from app_judges import RANDOM, neighbours_of
from battery import BATTERY, NAMES, Sample
from cells import program_of
from edge_programs import (
    Closeness,
    EdgeTriangles,
    Loudest,
    Marks,
    Mirrors,
    Posts,
    Returns,
    Signs,
    Unasked,
    Waves,
)
from graphs import samples
from hypothesis import given
from hypothesis import strategies as st
from thread_group import ThreadGroup
from turns import in_turn
from ways import WAYS, Way, assert_all_equal, assert_same, results_of

from sigps import (
    Checkpoint,
    ConfigError,
    EdgeState,
    Graph,
    GraphError,
    Result,
    State,
    Vector,
    Vertex,
    VertexId,
    run,
)
from sigps.compiler.explain import explain

PROGRAMS = [EdgeTriangles, Waves, Marks, Mirrors, Returns]
SOME_WAYS = [
    Way(),
    Way(threads=3),
    Way(direction="push", deterministic=True),
    Way(2, partitioner="hash"),
    Way(3, device="python", partitioner="bfs"),
    Way(3, partitioner="vertices", direction="push"),
    Way(4, partitioner="function", deterministic=True),
]


@pytest.mark.parametrize(("name", "program"), in_turn([n for n in NAMES if n != "skewed"], PROGRAMS), ids=str)
def test_all_ways_agree(name: str, program: type[Vertex]) -> None:
    assert_all_equal(program(), BATTERY[name], SOME_WAYS)


@pytest.mark.parametrize(
    ("program", "ways"),
    in_turn([EdgeTriangles, Waves, Returns, Closeness, Loudest], [SOME_WAYS[1:4], SOME_WAYS[4:]]),
)
def test_all_ways_agree_where_rows_are_long(program: type[Vertex], ways: list[Way]) -> None:
    assert_all_equal(program(), BATTERY["skewed"], ways)


@RANDOM
@given(samples(), st.sampled_from(PROGRAMS))
def test_all_ways_agree_on_random_graphs(sample: Sample, program: type[Vertex]) -> None:
    assert_all_equal(program(), sample, SOME_WAYS)


@pytest.mark.parametrize("name", ["skewed", "complete_5", "parallel_edges_undirected", "string_ids"])
def test_triangles_of_edges_are_common_neighbours(name: str) -> None:
    sample = BATTERY[name]
    near = neighbours_of(sample)
    triangles = nx.triangles(nx.Graph((v, w) for v in near for w in near[v])) if name == "skewed" else None
    for way, result in results_of(EdgeTriangles(), sample, [Way(), Way(3, partitioner="hash")]):
        ends = zip(result.edges.sources.tolist(), result.edges.targets.tolist(), strict=True)
        expected = [len(near[s] & near[t] - {s, t}) for s, t in ends]
        assert result.edges["support"].tolist() == expected, way
        if triangles is not None:
            assert sum(expected) > 1000
            has_loops = [s == t for s, t in zip(sample.sources, sample.targets, strict=True)]
            assert any(has_loops)


def test_what_neighbours_keep_is_read_one_superstep_late() -> None:
    graph = Graph.from_edges([0, 1, 0], [1, 2, 2], directed=False)
    for device in ("python", "cpu"):
        early = run(Mirrors(), graph, device=device, max_supersteps=1)  # type: ignore[arg-type]
        late = run(Mirrors(), graph, device=device)  # type: ignore[arg-type]
        assert early.edges["seen"].tolist() == [14, 14, 14]
        assert late.edges["seen"].tolist() == [200, 200, 200]
        assert late.edges["mark"].tolist() == [200, 200, 200]


def test_what_the_other_end_keeps_is_read_one_superstep_late() -> None:
    """A path of three: the ends have degree 1, the middle has 2; each says ten times the superstep and its degree."""
    graph = Graph.from_edges([5, 6], [6, 7], directed=False)
    for device in ("python", "cpu"):
        result = run(Returns(), graph, device=device)  # type: ignore[arg-type]
        to_middle = 0 + 2 + 12 + 22
        to_end = 0 + 1 + 11 + 21
        assert result.edges["sum"].tolist() == [to_middle, to_end]  # 5 keeps the first, 6 the second
        assert result["heard"].tolist() == [0 + 1 + 11, 2 + 12, 1 + 11]


def test_edges_are_named_by_the_users_ids(tmp_path: Path) -> None:
    graph = Graph.from_edges(["b", "a", "c"], ["a", "c", "c"], directed=False)
    result = run(Marks(), graph)
    assert result.edges.sources.tolist() == ["a", "a", "c"]
    assert result.edges.targets.tolist() == ["b", "c", "c"]
    assert result.edges["times"].tolist() == [9, 9, 9]
    assert len(result.edges) == 3
    assert list(result.edges) == ["seen", "times"]
    result.edges.write(tmp_path / "edges.parquet")
    result.edges.write(tmp_path / "edges.csv")
    for table in (
        pyarrow.parquet.read_table(tmp_path / "edges.parquet"),
        pyarrow.csv.read_csv(tmp_path / "edges.csv"),
        result.edges.to_arrow(),
    ):
        assert table.column("source").to_pylist() == ["a", "a", "c"]
        assert table.column("times").to_pylist() == [9, 9, 9]
        assert table.column_names == ["source", "target", "seen", "times"]
    assert list(result.edges.to_pandas()["target"]) == ["b", "c", "c"]
    with pytest.raises(ConfigError, match="as 'time'; there is: seen, times"):
        result.edges["time"]
    with pytest.raises(ConfigError, match="ends in"):
        result.edges.write(tmp_path / "edges.txt")


def test_directed_edges_are_there_once_each() -> None:
    result = run(Marks(), Graph.from_edges([4, 2, 2], [2, 4, 9], vertices=[1]))
    assert result.edges.sources.tolist() == [2, 2, 4]
    assert result.edges.targets.tolist() == [4, 9, 2]


def test_a_rank_keeps_its_part(run_ranks: Any) -> None:
    sample = BATTERY["skewed"]

    def own(group: ThreadGroup) -> tuple[list[Any], int]:
        result = run(EdgeTriangles(), sample.build(group=group), partitioner="hash", gather=False)
        edges = result.edges
        triples = zip(edges.sources.tolist(), edges.targets.tolist(), edges["support"].tolist(), strict=True)
        return list(triples), len(result.ids)

    whole = run(EdgeTriangles(), sample.build()).edges
    parts = run_ranks(3, own)
    assert all(part for part, _ in parts)
    expected = zip(whole.sources.tolist(), whole.targets.tolist(), whole["support"].tolist(), strict=True)
    assert sorted(t for part, _ in parts for t in part) == sorted(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_vertex_whose_mail_overflows_writes_its_edges_once(threads: int) -> None:
    leaves = 20_000
    graph = Graph.from_edges([0] * leaves, list(range(1, leaves + 1)), directed=False)
    result = run(Posts(), graph, device="cpu", threads=threads, max_supersteps=2)
    assert (result.edges["kept"] == 2).all()
    assert result["x"].tolist() == [leaves, *[1] * leaves]


def test_a_rank_without_vertices_has_no_mail(run_ranks: Any) -> None:
    def work(group: ThreadGroup) -> Result:
        graph = Graph.from_edges([0], [1], group=group)
        return run(Waves(), graph, device="cpu", threads=2, partitioner="hash")

    expected = run(Waves(), Graph.from_edges([0], [1]), device="python")
    assert_same(run_ranks(4, work)[0], expected, exact=False)


class Triangular:
    """A base that is no vertex, with a method that looks through rows of neighbours."""

    def triangles(self: Any) -> int:
        n = 0
        for edge in self.out_edges:
            n += sum(1 for a, b in self.common_neighbors(edge))
        return n


class Mixed(Triangular, Vertex, directed=False):
    x: State[int] = 0

    def compute(self, messages: Any) -> None:
        n = self.triangles()
        self.x = n
        self.vote_to_halt()


def test_a_method_of_a_base_looks_at_neighbours() -> None:
    assert_all_equal(Mixed(), BATTERY["complete_5"], SOME_WAYS)
    assert run(Mixed(), BATTERY["complete_5"].build(), device="cpu")["x"].tolist() == [12] * 5


def test_what_is_not_asked_for_is_not_brought() -> None:
    assert_all_equal(Unasked(), BATTERY["grid"], SOME_WAYS[::2])
    assert_all_equal(Unasked(mode="triangles"), BATTERY["grid"], SOME_WAYS[1::2])


def test_a_zero_of_another_sign_crosses() -> None:
    assert_all_equal(Signs(), BATTERY["complete_5"], SOME_WAYS)
    assert run(Signs(), BATTERY["complete_5"].build())["x"].tolist() == [-12.0] * 5


def test_bytes_that_cross_are_counted(run_ranks: Any) -> None:
    def moved(group: ThreadGroup) -> list[int]:
        graph = BATTERY["complete_5"].build(group=group)
        return [s.bytes_moved for s in run(Signs(), graph, device="cpu").stats]

    first, second = run_ranks(2, moved)[0]
    assert first == 0
    assert second > 0  # what was written in the first


class Places(Vertex, directed=False):
    """Each end writes one more place of a vector in each superstep."""

    told: EdgeState[Vector[int, 3]] = 0
    total: State[int] = 0

    def compute(self, messages: Any) -> None:
        self.total = sum(sum(edge.reverse.told) for edge in self.out_edges)
        if self.superstep == 3:
            self.vote_to_halt()
        else:
            for edge in self.out_edges:
                told = edge.told
                told[self.superstep] = self.id
                edge.told = told


def test_vectors_on_edges_cross_where_one_place_changed() -> None:
    assert_all_equal(Places(), BATTERY["grid"], SOME_WAYS)
    near = neighbours_of(BATTERY["grid"])
    expected = [3 * sum(near[v]) for v in sorted(near)]
    for way, result in results_of(Places(), BATTERY["grid"], SOME_WAYS):
        assert result["total"].tolist() == expected, way


class Names(Vertex):
    who: EdgeState[VertexId] = -1

    def compute(self, messages: Any) -> None:
        for edge in self.out_edges:
            edge.who = self.id
        self.vote_to_halt()


def test_ids_kept_on_edges_are_the_users() -> None:
    result = run(Names(), Graph.from_edges(["b", "a"], ["a", "c"]))
    assert result.edges["who"].tolist() == ["a", "b"]


def test_a_column_of_the_name_of_what_is_kept_is_refused() -> None:
    graph = Graph.from_edges([0], [1], columns={"who": [3]})
    for device in ("python", "cpu"):
        with pytest.raises(
            GraphError, match="have a column 'who', and the program keeps a value of that name"
        ):
            run(Names(), graph, device=device)  # type: ignore[arg-type]


def test_a_program_that_keeps_nothing_on_edges_has_no_edges() -> None:
    result = run(program_of("self.vote_to_halt()"), Graph.from_edges([0], [1]))
    with pytest.raises(ConfigError, match="declares no EdgeState"):
        _ = result.edges


@pytest.mark.parametrize(
    ("program", "first", "second"),
    [
        (program, first, second)
        for program in (Marks, Returns, Mirrors, Waves)
        for first, second in (("cpu", "python"), ("python", "cpu"), ("cpu", "cpu"))
        if program is not Waves or second == "cpu"  # what send_to() combined cannot go on in plain Python
    ],
)
def test_a_run_goes_on_from_its_log(
    program: type[Vertex], first: str, second: str, tmp_path: Path, run_ranks: Any
) -> None:
    """On other ranks, with other partitions, on another device; parallel edges keep what each of them had."""
    sample = BATTERY["hub_on_a_partition_border"]
    whole = run(program(), sample.build(), device="python", deterministic=True)

    def part(size: int, device: str, **options: Any) -> Result:
        def work(group: ThreadGroup) -> Result:
            return run(
                program(),
                sample.build(group=group),
                device=device,
                deterministic=True,
                partitioner="hash",
                **options,
            )

        found: Result = run_ranks(size, work)[0]
        return found

    assert whole.supersteps > 1
    for stop in range(1, whole.supersteps):
        checkpoint = Checkpoint(tmp_path / f"log{stop}", every=1)
        part(2, first, checkpoint=checkpoint, max_supersteps=stop)
        result = part(3, second, checkpoint=checkpoint, resume=True)
        assert_same(result, whole, exact=True)


def test_without_edge_states_neighbours_are_read_too() -> None:
    looks = program_of(
        "for edge in self.out_edges:\n    self.x += sum(1 for a, b in self.common_neighbors(edge))\n"
        "self.vote_to_halt()",
        message="directed=False",
    )
    assert_all_equal(looks, BATTERY["complete_5"], WAYS[:8])
    assert run(looks, BATTERY["complete_5"].build())["x"].tolist() == [12.0] * 5


def test_another_process_knows_the_class_by_the_same_description() -> None:
    """State logs are of a class; what describes it must not change from process to process."""
    script = (
        "from sigps.apps import BiTriDN, EgoNet, StreamDN\n"
        "from sigps.compiler.fingerprint import class_fingerprint\n"
        "print([class_fingerprint(c) for c in (BiTriDN, EgoNet, StreamDN)])"
    )
    told = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(told) == 1


def test_a_class_that_inherits_keeps_the_same_on_edges() -> None:
    class Longer(Marks):
        more: EdgeState[int] = 1

    declared = Longer.declaration
    assert [f.name for f in declared.edge_states] == ["seen", "times", "more"]


def test_explain_tells_what_is_kept_on_edges() -> None:
    assert "on edges     flow: float, hops: int" in explain(Waves)
