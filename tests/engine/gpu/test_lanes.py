"""Several runs at a time on one GPU: each is the run by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equality_programs
import master_programs
import numpy as np
import pytest
from battery import BATTERY
from edge_programs import Waves as EdgeWaves
from gpu_ways import rows_of_every_kind
from keyed_programs import KEYED
from vector_programs import Mixture
from ways import assert_same

from sigps import Param, State, Vertex, generate, run, run_many
from sigps.apps import BFS, SSSP, MinimumSpanningForest
from sigps.apps.dependencies import betweenness
from sigps.apps.distances import closeness, eccentricities
from sigps.engine.gpu import lanes
from sigps.errors import ComputeError, DeviceError

pytestmark = pytest.mark.gpu


class Overflows(Vertex, message=int):
    """Fails where a neighbour is told too much."""

    told: Param[int]
    heard: State[int] = 0

    def compute(self, messages):
        self.heard = self.told * 2**61 + sum(messages)
        if self.superstep < 3:
            self.send_to_neighbors(self.told)
        self.vote_to_halt()


MANY: dict[str, tuple[type[Vertex], Mapping[str, Any]]] = {
    "bfs": (BFS, {"source": list(range(0, 200, 9))}),
    "sssp": (SSSP, {"source": [0, 7, 3]}),
    "jump": (equality_programs.Jump, {"seed": [5, 2, 9]}),
    "waves": (master_programs.Waves, {"waves": [3, 1, 2]}),
    "mixture": (Mixture, {"seed": [1, 2]}),
    "tables": (type(KEYED["tables"]), {"ceiling": [1, 3, 9]}),
}


@pytest.mark.parametrize("at_once", [1, 3, 8])
@pytest.mark.parametrize("name", MANY)
def test_each_run_is_the_run_by_itself(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_AT_ONCE", at_once)
    cls, varied = MANY[name]
    graph = BATTERY["skewed"].build()
    results = run_many(cls, graph, device="cuda", **varied)
    assert results.one_by_one == ""
    ((parameter, values),) = varied.items()
    for result, value in zip(results, values, strict=True):
        given, seed = ({}, value) if parameter == "seed" else ({parameter: value}, None)
        options = {} if seed is None else {"seed": seed}
        alone = run(cls(**given), graph, device="cuda", asynchronous=False, **options)
        assert result.device == "cuda"
        assert_same(result, alone, exact=False)
        assert [s.messages for s in result.stats] == [s.messages for s in alone.stats]
        assert (result.reason, result.supersteps) == (alone.reason, alone.supersteps)


def test_many_launches_and_large_frontiers() -> None:
    graph = rows_of_every_kind(directed=True)
    results = run_many(BFS, graph, device="cuda", source=list(range(0, 7060, 353)))
    for source, result in zip(range(0, 7060, 353), results, strict=True):
        np.testing.assert_array_equal(result["level"], run(BFS(source=source), graph, device="cpu")["level"])


def test_masks_of_searches() -> None:
    graph = generate("rmat", scale=9, seed=3)
    found, judge = (closeness(graph, device=device)["closeness"] for device in ("cuda", "cpu"))
    assert found.tolist() == judge.tolist()
    found, judge = (eccentricities(graph, device=device)["eccentricity"] for device in ("cuda", "cpu"))
    assert found.tolist() == judge.tolist()


def test_betweenness() -> None:
    graph = generate("rmat", scale=9, seed=3)
    found, judge = (betweenness(graph, device=device)["centrality"] for device in ("cuda", "cpu"))
    np.testing.assert_allclose(found, judge, rtol=1e-9, atol=1e-15)


def test_each_ends_for_itself_and_begins_as_given() -> None:
    graph = BATTERY["path"].build()
    results = run_many(BFS, graph, device="cuda", source=[0, 4], max_supersteps=2)
    alone = [run(BFS(source=s), graph, device="cpu", max_supersteps=2) for s in (0, 4)]
    assert [r.reason for r in results] == [r.reason for r in alone]
    for result, expected in zip(results, alone, strict=True):
        assert_same(result, expected, exact=False)


def test_a_failure_is_that_of_the_run_by_itself() -> None:
    graph = BATTERY["grid"].build()
    with pytest.raises(ComputeError, match="fit 64 bits") as caught:
        run_many(Overflows, graph, device="cuda", told=[1, 2, 7, 1])
    assert any("in run 2 of 4" in note for note in caught.value.__notes__)


def test_no_more_at_once_than_there_is_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    make, asked = lanes._engine, []

    def engine(*given: Any) -> Any:
        asked.append(given)
        if len(asked) == 4:
            raise DeviceError("there is no memory")
        return make(*given)

    monkeypatch.setattr(lanes, "_engine", engine)
    graph = BATTERY["grid"].build()
    results = run_many(BFS, graph, device="cuda", source=list(range(9)))
    assert len(asked) == 11  # one beside the runs, and one again
    for source, result in enumerate(results):
        assert_same(result, run(BFS(source=source), graph, device="cpu"), exact=False)


@pytest.mark.parametrize("name", ["grid", "hub_on_a_partition_border", "string_ids"])
def test_each_run_keeps_values_on_edges_of_its_own(name: str) -> None:
    graph = BATTERY[name].build()
    for cls, varied, values in (
        (EdgeWaves, "rounds", [1, 2, 4, 3]),
        (MinimumSpanningForest, "seed", [1, 2, 3]),
    ):
        results = run_many(cls, graph, device="cuda", **{varied: values})
        assert results.one_by_one == ""
        judges = run_many(cls, graph, device="python", **{varied: values})
        for result, judge in zip(results, judges, strict=True):
            assert_same(result, judge, exact=False)
            for field in judge.edges.fields:
                np.testing.assert_array_equal(result.edges[field], judge.edges[field])
