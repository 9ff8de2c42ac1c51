"""Every app on a GPU gives what it gives on CPU cores, whose results have referees of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import first_id
from battery import BATTERY, Sample
from thread_group import run_ranks

import sigps.apps
from sigps import Graph, Result, Vertex, run
from sigps.apps import MaximumFlow, maximum_flow
from sigps.engine.gpu import placement
from sigps.engine.gpu.spilling import Spilling, Stream
from sigps.model.fields import Field

pytestmark = pytest.mark.gpu

GIVEN: dict[str, dict[str, Any]] = {
    "ALS": {"iterations": 1, "regularisation": 10.0},
    "EgoNet": {"hops": 2},
    "FastRP": {"dimensions": 24, "normalization_strength": -0.5, "node_self_influence": 0.5},
}
"""Parameters that are other than the default. Without a penalty ALS makes what rounding did a thousand times larger."""


def program_of(name: str, sample: Sample) -> Vertex:
    """Return an app; of parameters without a default vertices are the sample's ends, and numbers 0.001."""
    app = getattr(sigps.apps, name)
    first = first_id(sample)
    ends = iter([first, next(v for v in reversed(sample.targets) if v != first)])
    needed = [f for f in app.declaration.params if f.default is Field.REQUIRED]
    return app(**{f.name: next(ends) if f.is_vertex_id else 0.001 for f in needed}, **GIVEN.get(name, {}))


def ran(program: Vertex, graph: Graph, **options: Any) -> Result:
    """Return the result of an app; of one whose graph must be made for it, that of its function."""
    if isinstance(program, MaximumFlow):
        return maximum_flow(graph, **program.params, **options)
    return run(program, graph, **options)


@pytest.mark.parametrize("stream", ["auto", "always"])
@pytest.mark.parametrize("graph", ["skewed", "grid", "sparse_ids", "weight_ties"])
@pytest.mark.parametrize("name", sorted(sigps.apps.__all__))
def test_as_on_the_cpu(name: str, graph: str, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    if stream == "always":  # in pieces of 32 rows, all of them on the host
        monkeypatch.setattr(placement, "choose_spilling", lambda *_, **__: Spilling(0.0, 1))
    sample = BATTERY[graph]
    program = program_of(name, sample)
    expected = ran(program, sample.build(), device="cpu")
    found = ran(program, sample.build(), device="cuda", stream=stream)
    assert found.device == "cuda"
    kept = [(found, expected)]
    if program.declaration.edge_states:
        kept.append((found.edges, expected.edges))
    for ours, theirs in kept:
        for field in theirs.fields:
            if theirs[field].dtype.kind == "f":
                np.testing.assert_allclose(ours[field], theirs[field], rtol=1e-8, atol=1e-12, err_msg=field)
            else:
                np.testing.assert_array_equal(ours[field], theirs[field], err_msg=field)
    assert found.reason == expected.reason


OF_THE_LITERATURE = [
    "ALS", "BipartiteMatching", "DegreeHistogram", "HyperBall", "LabelSpreading", "LongestPath", "LouvainRound",
    "MultiSourceBFS", "Node2vecWalks", "SemiClustering",
]  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", OF_THE_LITERATURE)
def test_ranks_as_on_the_cpu(name: str, ranks: int) -> None:
    """Ranks are threads that share a GPU."""
    sample = BATTERY["grid" if name == "ALS" else "skewed"]
    program = program_of(name, sample)
    expected = run(program, sample.build(), device="cpu")
    found = run_ranks(ranks, lambda group: run(program, sample.build(group=group), device="cuda"))[0]
    assert found.device == "cuda"
    for field in expected.fields:
        if expected[field].dtype.kind == "f":
            np.testing.assert_allclose(found[field], expected[field], rtol=1e-8, atol=1e-12, err_msg=field)
        else:
            np.testing.assert_array_equal(found[field], expected[field], err_msg=field)
