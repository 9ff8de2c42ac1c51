"""`run` as a user meets it: options, odd graphs and ids, how a run ends, and runs that follow each other."""

from __future__ import annotations

import logging
import platform
import warnings
from typing import Any

import equality_programs as programs
import numpy as np
import pytest
from battery import BATTERY
from cells import program_of
from thread_group import ThreadGroup, run_ranks

import sigps
from sigps import (
    Aggregator,
    CompileError,
    ConfigError,
    DeviceError,
    ExchangeError,
    Graph,
    GraphError,
    Param,
    PartitionError,
    State,
    Vertex,
    VertexId,
    run,
)
from sigps.apps import BFS, SSSP, WCC, OutDegree, PageRank
from sigps.device.cuda import what_is_missing
from sigps.job.preparing import check_program

DEVICES = ["python", "cpu"]
HOST = platform.node()
PATH = Graph.from_edges([0, 1], [1, 2], weights=[1.5, 2.5])


class Counter(Vertex):
    """Never halts."""

    count: State[int] = 0

    def compute(self, messages):
        self.count += 1


class Thirds(Vertex, precision="single"):
    """Floats of 32 bits, where a run does not say."""

    third: State[float] = 0.0

    def compute(self, messages):
        self.third = 1.0 / 3.0
        self.vote_to_halt()


class InheritedThirds(Thirds):
    """As its base declares."""


class WideThirds(Thirds, precision="double"):
    """As it declares itself."""


class Filtered(Vertex, message=int):
    """Sends along no edge, though it looks as if it would."""

    received: State[int] = 0
    ran = Aggregator.sum(int)

    def compute(self, messages):
        self.received += len(messages)
        self.ran += 1
        for edge in self.out_edges:
            if edge.target > 100:
                self.send(edge, 1)
        self.vote_to_halt()


class SpeakAndRetire(Vertex, message=int):
    """All messages are for vertices that have retired."""

    received: State[int] = 0
    ran = Aggregator.sum(int)

    def compute(self, messages):
        self.received += len(messages)
        self.ran += 1
        self.send_to_neighbors(1)
        self.retire()


class Lost(Vertex, message=int):
    """Sends to a vertex that is not there."""

    received: State[int] = 0

    def compute(self, messages):
        if self.superstep == 1 and self.out_degree == 0:
            self.send_to(self.num_vertices + 1000, 1)
        if self.superstep == 2:
            self.vote_to_halt()


class Costs(Vertex, message=float):
    """Reads an edge column of its own."""

    total: State[float] = 0.0

    def compute(self, messages):
        self.total += sum(messages)
        if self.superstep == 0:
            for edge in self.out_edges:
                self.send(edge, edge.cost)
        self.vote_to_halt()


class Raises(Vertex):
    """Fails at vertex 1 in superstep 2."""

    seen: State[int] = 0

    def compute(self, messages):
        self.seen = self.superstep
        if self.superstep == 2 and self.id == 1:
            raise ValueError("no ones here")


class SmallTypes(Vertex, message=np.int8):
    """Aggregators and states of every width."""

    unsigned: State[np.uint64] = 0
    low = Aggregator.min(np.uint64)
    high = Aggregator.max(np.uint64)
    total = Aggregator.sum(np.float32)
    byte = Aggregator.max(np.int8)
    flag = Aggregator.all()

    def compute(self, messages):
        self.unsigned = np.uint64(2**63) + np.uint64(self.id)
        self.low += np.uint64(2**63) + np.uint64(self.id)
        self.high += np.uint64(2**63) + np.uint64(self.id)
        self.total += np.float32(0.25)
        self.byte += self.id
        self.flag += self.id < 2
        self.vote_to_halt()


WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"direction": "up"}, r"direction='up' is not one of auto, push, pull"),
    ({"schedule": "edges"}, r"schedule='edges' is not one of vertex, edge"),
    (
        {"schedule": "edge", "direction": "push"},
        r"direction='push' is of schedule='vertex'; edges are neither",
    ),
    ({"schedule": "edge", "device": "python"}, r"device='python' goes from vertex to vertex"),
    ({"precision": "half"}, r"precision='half' is not one of auto, single, double"),
    ({"max_supersteps": 0}, r"max_supersteps=0 must be a whole number, at least 1"),
    ({"max_supersteps": 2.0}, r"max_supersteps=2\.0"),
    ({"max_supersteps": True}, r"max_supersteps=True"),
    ({"threads": 0}, r"threads=0"),
    ({"threads": "2"}, r"threads='2'"),
    ({"device": "gpu"}, r"no device 'gpu'; choose auto, python, cpu or cuda"),
    ({"device": None}, r"no device None"),
    ({"trace": 0, "device": "python"}, r"trace=0 must be a list"),
    ({"trace": "ab", "device": "python"}, r"trace='ab' must be a list"),
    ({"trace": [0], "device": "cpu"}, r"trace= works on device='python'"),
    ({"deterministic": "no"}, r"deterministic='no' must be True or False"),
    ({"gather": 1}, r"gather=1 must be True or False"),
    ({"progress": 5}, r"progress=5 must be True, False, or a function"),
]


@pytest.mark.parametrize(("options", "complaint"), WRONG_OPTIONS)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        run(OutDegree(), PATH, **options)


def test_a_device_that_cannot_run_says_so() -> None:
    if not what_is_missing():
        pytest.skip("a GPU is here: test_gpu_engine.py runs on it")
    with pytest.raises(DeviceError, match=r"device='cuda' cannot be used: .*device='cpu' runs everywhere"):
        run(OutDegree(), PATH, device="cuda")


@pytest.mark.parametrize("program", [BFS, "BFS", None, 5])
def test_what_is_no_program_is_refused(program: Any) -> None:
    with pytest.raises(ConfigError, match="takes an instance of a Vertex subclass"):
        run(program, PATH)


def test_a_class_is_refused_with_the_call_to_write() -> None:
    with pytest.raises(ConfigError, match=r"write BFS\(\.\.\.\)"):
        check_program(BFS, "cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize("graph", [([0], [1]), "graph.txt", None])
def test_what_is_no_graph_is_refused(graph: Any) -> None:
    with pytest.raises(ConfigError, match=r"takes a Graph, not .*sigps\.load"):
        run(OutDegree(), graph)


def test_compute_is_checked_before_the_graph() -> None:
    with pytest.raises(CompileError, match="'raise' cannot be compiled"):
        run(Raises(), BATTERY["empty"].build())


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_graph_is_refused(device: Any) -> None:
    with pytest.raises(GraphError, match="has no vertices"):
        run(OutDegree(), BATTERY["empty"].build(), device=device)


@pytest.mark.parametrize("source", [5, -1, "a", 1.5, True, None, [0], 2**70, float("nan")])
def test_a_source_that_is_no_vertex_is_refused(source: Any) -> None:
    with pytest.raises(GraphError, match=r"^BFS\(source=\): "):
        run(BFS(source=source), PATH)


@pytest.mark.parametrize("source", ["zz", 0, "", None])
def test_a_source_that_is_no_string_id_is_refused(source: Any) -> None:
    with pytest.raises(GraphError, match=r"^BFS\(source=\): "):
        run(BFS(source=source), BATTERY["string_ids"].build())


@pytest.mark.parametrize("source", [1, np.int32(1), 1.0, np.uint8(1)])
def test_a_source_may_be_any_whole_number(source: Any) -> None:
    assert run(BFS(source=source), PATH)["level"].tolist() == [-1, 0, 1]


class Optional(Vertex, message=int):
    """Marks a vertex, where one is given."""

    source: Param[VertexId | None] = None
    is_it: State[bool] = False

    def compute(self, messages):
        if self.source is not None and self.id == self.source:
            self.is_it = True
        self.vote_to_halt()


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_vertex_that_may_be_left_out(device: Any) -> None:
    named = Graph.from_edges(["a", "b"], ["b", "c"])
    numbered = Graph.from_edges([70, 5], [5, 9])
    assert run(Optional(source="b"), named, device=device)["is_it"].tolist() == [False, True, False]
    marked = run(Optional(source=70), numbered, device=device)
    assert dict(zip(marked.ids.tolist(), marked["is_it"].tolist(), strict=True)) == {
        5: False,
        9: False,
        70: True,
    }
    assert not run(Optional(), named, device=device)["is_it"].any()
    with pytest.raises(GraphError, match="there is no vertex 6 in the graph"):
        run(Optional(source=6), numbered, device=device)


def test_a_missing_source_is_refused_on_every_rank() -> None:
    def run_lost(group: ThreadGroup) -> None:
        graph = Graph.from_edges([0, 1], [1, 2], group=group)
        with pytest.raises(GraphError, match="no vertex 77"):
            run(BFS(source=77), graph)

    run_ranks(3, run_lost)


def test_a_partitioner_that_is_none_is_refused() -> None:
    with pytest.raises(PartitionError, match="did you mean 'metis'"):
        run(OutDegree(), PATH, partitioner="metsi")
    with pytest.raises(PartitionError, match="gave the vertex 0 the partition 7"):
        run(OutDegree(), PATH, partitioner=lambda ids: ids * 0 + 7)


@pytest.mark.parametrize("device", DEVICES)
def test_a_column_that_the_graph_lacks_is_named(device: Any) -> None:
    with pytest.raises((GraphError, AttributeError), match=r"cost.*have: weight|no column 'cost'.*weight"):
        run(Costs(), PATH, device=device)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(
    "body",
    [
        "for edge in self.out_edges:\n    self.send(edge, wrapping(edge.age * 3))",
        "self.n = sum(wrapping(edge.age * 3) for edge in self.out_edges)",
        "self.n = sum(edge.age >> 1 for edge in self.out_edges)",
    ],
)
def test_a_missing_column_of_whole_numbers_is_named_before_code_is_compiled(body: str, ranks: int) -> None:
    body = f"self.n = max(messages, default=0)\n{body}\nself.vote_to_halt()"
    program = program_of(
        body, "n: State[int] = 0", message="message=int", before="from sigps import wrapping"
    )

    def one(group: ThreadGroup) -> None:
        with pytest.raises(GraphError, match=r"reads edge\.age, but the edges have no such column.*weight"):
            run(program, Graph.from_edges([0, 1], [1, 2], weights=[1.5, 2.5], group=group), device="cpu")

    run_ranks(ranks, one)


@pytest.mark.parametrize("device", DEVICES)
def test_runs_that_need_different_columns_follow_each_other_on_one_graph(device: Any) -> None:
    columns = {"cost": np.array([1, 2, 3, 4], dtype=np.float32)}
    graph = Graph.from_edges([0, 0, 1, 0], [1, 2, 2, 1], weights=[3, 1, 2, 7], columns=columns)
    for _ in range(2):
        assert run(Costs(), graph, device=device)["total"].tolist() == [0.0, 5.0, 5.0]
        assert run(SSSP(source=0), graph, device=device)["distance"].tolist() == [0.0, 3.0, 1.0]
        assert run(OutDegree(), graph, device=device)["degree"].tolist() == [3, 1, 0]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("device", DEVICES)
def test_a_second_run_begins_anew(device: Any, ranks: int) -> None:
    def run_twice(group: ThreadGroup) -> tuple[list[bytes], list[bytes]]:
        graph = BATTERY["skewed"].build(group=group)
        found: tuple[list[bytes], list[bytes]] = ([], [])
        for turn in range(2):
            for program in (PageRank(iterations=3), WCC(), programs.Jump(), programs.Climb(), OutDegree()):
                result = run(program, graph, device=device, deterministic=True)
                for name in result.fields:
                    found[turn].append(result[name].tobytes())
                    result[name].fill(0)  # what a user does to a result must not reach the next run
        return found

    first, second = run_ranks(ranks, run_twice)[0]
    assert first == second


@pytest.mark.parametrize("device", DEVICES)
def test_a_program_that_never_halts_ends_at_max_supersteps(device: Any) -> None:
    result = run(Counter(), PATH, device=device, max_supersteps=7)
    assert result["count"].tolist() == [7, 7, 7]
    assert (result.reason, result.supersteps, len(result.stats)) == ("max_supersteps", 7, 7)
    assert [s.active for s in result.stats] == [3] * 7
    assert [s.superstep for s in result.stats] == list(range(7))


@pytest.mark.parametrize("device", DEVICES)
def test_max_supersteps_beyond_the_end_changes_nothing(device: Any) -> None:
    for limit in (4, 5, 1000):
        result = run(BFS(source=0), PATH, device=device, max_supersteps=limit)
        assert (result.reason, result.supersteps) == ("converged", 3)
    cut = run(BFS(source=0), PATH, device=device, max_supersteps=2)
    assert (cut.reason, cut["level"].tolist()) == ("max_supersteps", [0, 1, -1])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("program", [Filtered(), SpeakAndRetire()])
def test_messages_that_no_vertex_reads_are_no_superstep(program: Vertex, device: Any) -> None:
    result = run(program, PATH, device=device)
    assert (result.reason, result.supersteps) == ("converged", 1)
    assert result["received"].tolist() == [0, 0, 0]
    assert result.aggregators == {"ran": 3}


@pytest.mark.parametrize("device", DEVICES)
def test_a_message_to_a_missing_vertex_ends_the_run(device: Any) -> None:
    with pytest.raises(ExchangeError, match=r"superstep 1: send_to\(1003\)") as caught:
        run(Lost(), PATH, device=device)
    assert (caught.value.rank, caught.value.superstep) == (0, 1)
    with pytest.raises(ExchangeError, match=r"send_to\(1005\)"):
        run(Lost(), BATTERY["string_ids"].build(), device=device)


def test_an_exception_in_compute_names_vertex_superstep_and_rank() -> None:
    with pytest.raises(ValueError, match="no ones here") as caught:
        run(Raises(), PATH, device="python")
    assert caught.value.__notes__ == [
        "while computing vertex 1 in superstep 2",
        f"rank 0 on host {HOST}, superstep 2",
    ]

    def run_raises(group: ThreadGroup) -> None:
        run(Raises(), Graph.from_edges([0, 1], [1, 2], group=group), device="python", partitioner="vertices")

    with pytest.raises(ValueError, match="no ones here") as caught:
        run_ranks(3, run_raises)
    assert caught.value.__notes__[-1] == f"rank 1 on host {HOST}, superstep 2"


@pytest.mark.parametrize("device", DEVICES)
def test_aggregators_of_every_width(device: Any) -> None:
    result = run(SmallTypes(), PATH, device=device)
    assert result["unsigned"].tolist() == [2**63, 2**63 + 1, 2**63 + 2]
    assert result.aggregators == {"low": 2**63, "high": 2**63 + 2, "total": 0.75, "byte": 2, "flag": False}


@pytest.mark.parametrize("device", DEVICES)
def test_progress_is_told_of_every_superstep(device: Any) -> None:
    reported: list[int] = []
    result = run(
        PageRank(iterations=9), PATH, device=device, progress=lambda stats: reported.append(len(stats))
    )
    assert reported[0] == 1
    assert reported == sorted(reported)
    assert reported[-1] == result.supersteps == 10
    with pytest.raises(ZeroDivisionError):
        run(PageRank(), PATH, device=device, progress=lambda stats: print(1 / 0))


def test_progress_is_told_on_rank_0_only() -> None:
    def run_told(group: ThreadGroup) -> int:
        reported: list[int] = []
        run(
            PageRank(), BATTERY["grid"].build(group=group), progress=lambda stats: reported.append(len(stats))
        )
        return len(reported)

    counts = run_ranks(3, run_told)
    assert counts[0] > 0
    assert counts[1:] == [0, 0]


def test_trace_records_what_a_vertex_read_and_did(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="sigps"):
        result = run(SSSP(source=0), PATH, device="python", trace=[1])
    assert result.trace is not None
    assert [(t["superstep"], t["id"]) for t in result.trace] == [(0, 1), (1, 1)]
    last = result.trace[1]
    assert last["messages"] == [(1.5, 0)]
    assert last["before"] == {"distance": float("inf"), "parent": None}
    assert last["after"] == {"distance": 1.5, "parent": 0}
    assert last["sent"] == [(4.0, 1)]
    assert last["halted"]
    assert sum("vertex 1" in record.getMessage() for record in caplog.records) == 2
    assert run(SSSP(source=0), PATH, device="python").trace == []
    assert run(SSSP(source=0), PATH, device="cpu").trace is None


def test_trace_refuses_ids_that_are_no_vertices() -> None:
    for trace in ([99], ["x"], [None]):
        with pytest.raises(GraphError, match="trace="):
            run(SSSP(source=0), PATH, device="python", trace=trace)


def test_trace_has_string_ids() -> None:
    graph = BATTERY["string_ids"].build()
    result = run(BFS(source="bob"), graph, device="python", trace=["ann"])
    assert result.trace is not None
    assert {t["id"] for t in result.trace} == {"ann"}


@pytest.mark.parametrize("device", DEVICES)
def test_more_ranks_than_vertices(device: Any) -> None:
    def run_all(group: ThreadGroup) -> list[Any]:
        graph = Graph.from_edges([5], [5], weights=[2.0], group=group)
        found = []
        for partitioner in ("edges", "vertices", "hash", "bfs", "metis"):
            for program in (BFS(source=5), SSSP(source=5), WCC(), programs.Jump(), programs.TwoLetters()):
                result = run(program, graph, device=device, partitioner=partitioner)
                found.append([result.ids.tolist(), *[result[f].tolist() for f in result.fields]])
        return found

    alone = run_ranks(1, run_all)[0]
    assert len(alone) == 25
    assert run_ranks(4, run_all)[0] == alone


@pytest.mark.parametrize("device", DEVICES)
def test_more_mail_than_the_first_room_holds(device: Any) -> None:
    """One vertex sends 10000 messages, two along each edge: the capacity for direct messages begins with 4096."""
    rim = np.arange(1, 5001)
    sources, targets = np.concatenate([rim * 0, rim]), np.concatenate([rim, rim * 0])
    result = run(programs.TwoLetters(), Graph.from_edges(sources, targets), device=device, max_supersteps=2)
    hub, one, eleven = (result["got"][v] for v in (0, 1, 11))
    assert hub == pytest.approx(sum(1 / (3 + v % 11) + 1 / 7 for v in range(1, 5001)), rel=1e-12)
    assert one == eleven == pytest.approx(1 / 3 + 1 / 7, rel=1e-12)
    assert [s.messages for s in result.stats] == [2 * 10000 + 5001] * 2


def test_statistics_count_what_happened() -> None:
    graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3])
    result = run(BFS(source=0), graph)
    assert [s.active for s in result.stats] == [4, 2, 1]
    assert [s.messages for s in result.stats] == [2, 2, 0]
    assert [s.bytes_moved for s in result.stats] == [0, 0, 0]
    assert all(s.seconds >= 0 and s.imbalance == 1.0 for s in result.stats)

    def run_apart(group: ThreadGroup) -> list[Any]:
        graph = Graph.from_edges([0, 0, 1, 2], [1, 2, 3, 3], group=group)
        return run(PageRank(iterations=2), graph, partitioner=lambda ids: ids % 2).stats

    for stats in run_ranks(2, run_apart):
        assert [s.active for s in stats] == [4, 4, 4]
        assert [s.messages for s in stats] == [4, 4, 0]
        # Rank 0 owns 0 and 2, and rank 1 reads them: two records of 8 bytes, and a byte for their encoding.
        assert [s.bytes_moved for s in stats] == [0, 17, 17]


@pytest.mark.parametrize("device", DEVICES)
def test_an_undirected_program_takes_a_directed_graph_both_ways(device: Any) -> None:
    graph = Graph.from_edges([3, 1], [2, 2])
    assert run(WCC(), graph, device=device)["component"].tolist() == [1, 1, 1]
    assert graph.directed
    assert run(OutDegree(), graph, device=device)["degree"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_a_program_that_goes_both_ways_tells_directions(device: Any) -> None:
    ends, weights = ([1, 1, 3, 2, 3], [2, 2, 2, 1, 3]), [1.0, 2.0, 4.0, 8.0, 16.0]
    result = run(programs.Flows(), Graph.from_edges(*ends, weights), device=device)
    assert result["out"].tolist() == [3.0, 8.0, 20.0]
    assert result["into"].tolist() == [8.0, 7.0, 16.0]
    assert result["stored"].tolist() == [3, 4, 2]
    undirected = Graph.from_edges(*ends, weights, directed=False)
    result = run(programs.Flows(), undirected, device=device)
    assert result["out"].tolist() == result["into"].tolist() == [11.0, 15.0, 20.0]
    assert result["stored"].tolist() == [3, 4, 2]
    assert not undirected.columns.keys() - {"weight"}


class NameOfLargest(Vertex, message=VertexId):
    """Keeps the largest in-neighbour's id."""

    largest: State[VertexId] = -1

    def compute(self, messages):
        if self.superstep == 0:
            self.send_to_neighbors(self.id)
        self.largest = max(messages, default=self.largest)
        self.vote_to_halt()


@pytest.mark.parametrize("device", DEVICES)
def test_ids_in_results_are_the_users(device: Any) -> None:
    gaps = run(NameOfLargest(), Graph.from_edges([-7, 40, 10**15], [40, -7, -7]), device=device)
    assert gaps.ids.tolist() == [-7, 40, 10**15]
    assert gaps["largest"].tolist() == [10**15, -7, -1]
    names = run(NameOfLargest(), Graph.from_edges(["b", "c", "é"], ["c", "b", "b"]), device=device)
    assert names.ids.tolist() == ["b", "c", "é"]
    assert names["largest"].tolist() == ["é", "b", None]


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(PageRank(), BATTERY["skewed"].build(), threads=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("program", "asked", "dtype"),
    [
        (Thirds, {}, np.float32),
        (Thirds, {"precision": "auto"}, np.float32),
        (Thirds, {"precision": "double"}, np.float64),
        (Thirds, {"precision": "single"}, np.float32),
        (InheritedThirds, {}, np.float32),
        (WideThirds, {}, np.float64),
        (WideThirds, {"precision": "single"}, np.float32),
    ],
)
def test_a_program_declares_its_precision_and_a_run_may_ask_for_another(
    program: type[Vertex], asked: dict[str, Any], dtype: Any, device: str
) -> None:
    result = run(program(), PATH, device=device, **asked)
    assert result["third"].dtype == dtype
    assert result["third"].tolist() == [float(dtype(1.0 / 3.0))] * 3
    assert result.record is not None
    assert result.record.precision == {np.float32: "single", np.float64: "double"}[dtype]


def test_many_runs_and_streams_have_the_declared_precision() -> None:
    many = sigps.run_many(Thirds, PATH, device="cpu", seed=[1, 2])
    assert [one["third"].dtype for one in many] == [np.float32] * 2
    with sigps.stream(Thirds(), PATH, device="cpu") as live:
        assert live.apply(inserts=([2], [0], [1.0]))["third"].dtype == np.float32


def test_an_unknown_precision_of_a_class_is_refused() -> None:
    with pytest.raises(CompileError, match="Halves: precision='half' must be 'single' or 'double'"):

        class Halves(Vertex, precision="half"):  # type: ignore[arg-type]
            """Refused where it is declared."""
