"""The figures of a report, against what was asked for and what the statistics say."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sigps
from sigps import Graph, Param, State, Vertex
from sigps.apps import BFS, PageRank
from sigps.compiler.explain import explain
from sigps.costs.memory import memory
from sigps.costs.sizes import PartitionSize, Size
from sigps.costs.work import Work
from sigps.engine.stats import SuperstepStats
from sigps.errors import ConfigError
from sigps.report import figures as module
from sigps.report.figures import degrees_of, figures, superstep_columns
from sigps.system.rank_facts import RankFacts

STAR = Graph.from_edges([0, 0, 0], [1, 2, 3])


class Endless(Vertex, message=int):
    """It `never` ends."""

    size: Param[int] = 2
    seen: State[int] = 0

    def compute(self, messages):  # type: ignore[no-untyped-def]
        self.seen = self.superstep
        self.send_to_neighbors(self.size)


def found(result: sigps.Result, **others: Any) -> dict[str, Any]:
    assert result.record is not None
    return figures(result, result.record, highest={}, **others)


def supersteps(count: int) -> list[SuperstepStats]:
    return [
        SuperstepStats(s, "push" if s % 3 else "pull", s, 2 * s, 7, 0.25, 1 + s / 10) for s in range(count)
    ]


def test_a_run_says_what_it_was_and_why_it_ended() -> None:
    result = sigps.run(Endless(size=3), STAR, device="cpu", max_supersteps=4)
    said = found(result)
    assert (said["program"], said["params"], said["doc"]) == ("Endless", {"size": "3"}, "It never ends.")
    assert (said["reason"], said["num_supersteps"], said["messages"]) == ("max_supersteps", 4, 12)
    assert "more to do" in said["why_ended"]
    assert (said["device"], said["why_device"]) == ("cpu", "It was asked for by name.")
    assert said["repeat"].startswith("sigps.run(Endless(size=3), graph, device='cpu', max_supersteps=4)")
    assert said["graph"]["num_vertices"] == 4
    (rank,) = said["ranks"]
    assert (rank["vertices"], rank["edges"], rank["ghosts"]) == (4, 3, 0)
    assert rank["peak_bytes"] > 2**20
    assert said["derived"] == explain(Endless, size=3)


def test_phases_are_the_account() -> None:
    result = sigps.run(BFS(source=0), STAR, device="cpu")
    phases = {phase["name"]: phase["seconds"] for phase in found(result)["phases"]}
    assert phases == dict(result.account)


def test_the_interpreter_derives_nothing() -> None:
    assert found(sigps.run(BFS(source=0), STAR, device="python"))["derived"] is None


def test_degrees_in_classes_that_double() -> None:
    out, into = degrees_of(STAR)["out-degree"], degrees_of(STAR)["in-degree"]
    assert [(c["from"], c["to"], c["vertices"]) for c in out] == [(0, 0, 3), (1, 1, 0), (2, 3, 1)]
    assert [(c["from"], c["to"], c["vertices"]) for c in into] == [(0, 0, 1), (1, 1, 3)]
    undirected = Graph.from_edges([0, 1], [1, 2], directed=False)
    assert [c["vertices"] for c in degrees_of(undirected)["degree"]] == [0, 2, 1]


def test_few_supersteps_are_a_row_each() -> None:
    columns = superstep_columns(supersteps(3))
    assert columns["superstep"] == columns["last"] == [0, 1, 2]
    assert columns["messages"] == [0, 2, 4]
    assert columns["imbalance"] == [1.0, 1.1, 1.2]


def test_many_supersteps_share_rows_that_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    columns = superstep_columns(supersteps(7))
    assert (columns["superstep"], columns["last"]) == ([0, 3, 6], [2, 5, 6])
    assert columns["active"] == [3, 12, 6]
    assert columns["seconds"] == [0.75, 0.75, 0.25]
    assert columns["direction"] == ["push", "push", "pull"]
    assert columns["imbalance"] == [1.2, 1.5, 1.6]


def test_figures_are_plain_json() -> None:
    result = sigps.run(BFS(source=1), STAR, device="cpu")
    assert result.record is not None
    said = figures(result, result.record, highest={"level": result.top("level")}, degrees=degrees_of(STAR))
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_the_record_keeps_no_graph_alive() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    result = sigps.run(PageRank(iterations=2), graph, device="cpu")
    assert result.record is not None
    assert result.record.graph() is graph
    del graph
    assert result.record.graph() is None


def test_a_result_of_many_runs_has_no_report() -> None:
    results = sigps.run_many(BFS, STAR, source=[0, 1], device="cpu")
    with pytest.raises(ConfigError, match="of one run, not of many"):
        results.as_one({"level": results[0]["level"]}).report()


def test_memory_that_was_planned_is_that_of_the_formulas() -> None:
    result = sigps.run(BFS(source=0), STAR, device="cpu")
    (rank,) = found(result)["ranks"]
    size = Size(4, 3, True, 0, "")
    state_bytes = 16  # level and parent, eight bytes each
    assert result.record is not None
    assert rank["planned_bytes"] == memory(size, result.record.derived, 1, state_bytes, PartitionSize(4, 3))


def test_memory_traffic_is_that_of_messages_and_vertices() -> None:
    steps = [SuperstepStats(0, "pull", 10, 100, 0, 1e-6, 1.0), SuperstepStats(1, "pull", 0, 0, 0, 0.0, 1.0)]
    rates = superstep_columns(steps, Work(record=4, edge=8, vertex=20))["gigabytes_per_second"]
    assert rates == [1.0, 0.0]  # 8 * 100 + 20 * 10 bytes in a microsecond
    assert superstep_columns(steps)["gigabytes_per_second"] == [0.0, 0.0]


def test_the_roof_is_that_of_all_ranks_or_unknown() -> None:
    rank = RankFacts("host", "cuda", 1, 5, 5, 0, 0, 0, 4000.0)
    result = sigps.run(BFS(source=0), STAR, device="cpu")
    assert result.record is not None
    assert found(result)["roof"] is None
    result.record = result.record._replace(ranks=(rank, rank))
    assert found(result)["roof"] == 8000.0
    result.record = result.record._replace(ranks=(rank, rank._replace(gigabytes_per_second=None)))
    assert found(result)["roof"] is None


@pytest.mark.gpu
def test_a_gpu_says_what_it_holds_and_its_roof() -> None:
    graph = sigps.generate("rmat", scale=12, seed=1)
    result = sigps.run(PageRank(iterations=5), graph, device="cuda")
    said = found(result)
    (rank,) = said["ranks"]
    assert rank["device"] == "cuda"
    assert rank["held_bytes"] > 4 * graph.num_edges
    assert rank["planned_bytes"]["graph"] > 0
    assert said["roof"] > 100
    assert max(said["supersteps"]["gigabytes_per_second"]) > 0
