"""Every app on a GPU gives what it gives on CPU cores, whose results have referees of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from app_judges import first_id
from battery import BATTERY

import sigps.apps
from sigps import run

pytestmark = pytest.mark.gpu

REQUIRED: dict[str, dict[str, Any]] = {
    "BFS": {"source": None},
    "EgoNet": {"source": None, "hops": 2},
    "HarmonicLabels": {"one": None, "zero": 7},
    "HeatDiffusion": {"source": None, "rate": 0.001},
    "KHop": {"source": None},
    "Katz": {"attenuation": 0.001},
    "NeuralNetwork": {"source": None},
    "PersonalisedPageRank": {"source": None},
    "SSSP": {"source": None},
}
"""What must be given; None: the sample's first vertex."""


@pytest.mark.parametrize("graph", ["skewed", "grid", "sparse_ids", "weight_ties"])
@pytest.mark.parametrize("name", sigps.apps.__all__)
def test_as_on_the_cpu(name: str, graph: str) -> None:
    sample = BATTERY[graph]
    given = {k: first_id(sample) if v is None else v for k, v in REQUIRED.get(name, {}).items()}
    if name == "HarmonicLabels":
        given["zero"] = sample.targets[-1]
    program = getattr(sigps.apps, name)(**given)
    expected, found = (run(program, sample.build(), device=device) for device in ("cpu", "cuda"))
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
