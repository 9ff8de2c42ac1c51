"""States that are NamedTuples: what results hold, and what is refused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from vector_programs import Cluster, Gathers, Spot

import sigps
from sigps import CompileError, State, Vector, Vertex, run

GRAPH = sigps.Graph.from_edges([0, 1, 2, 0], [1, 2, 3, 2])


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_result_has_the_parts_and_the_whole(device: str) -> None:
    result = run(Gathers(), GRAPH, device=device, max_supersteps=1)
    assert result["cluster.size"].tolist() == [1] * 4
    assert result["cluster.spot.centre"].tolist() == [[0.5, 1.5]] * 4
    assert result["cluster.spot.level"].tolist() == [0] * 4
    assert result["empty.level"].tolist() == [0] * 4
    assert result["seen"].tolist() == [3] * 4
    whole = result["cluster"]
    assert whole.dtype.names == ("size", "spot.centre", "spot.level", "is_closed")
    assert whole["spot.centre"].shape == (4, 2)
    assert result["cluster.spot"]["level"].tolist() == [0] * 4


def test_parts_begin_with_arrays() -> None:
    sizes = np.array([5, 6, 7, 8])
    result = run(Gathers(), GRAPH, device="cpu", max_supersteps=1, initial={"cluster.size": sizes})
    assert result["cluster.size"].tolist() == sizes.tolist()


@pytest.mark.parametrize("device", ["python", "cpu"])
@pytest.mark.parametrize("begins", ["tuple", "plus"])
def test_a_record_is_assigned_whole(device: str, begins: str) -> None:
    class Wrong(Vertex):
        spot: State[Spot]

        def compute(self, messages):
            if self.superstep == 0:
                self.spot = (1.0, 2, 3)
            self.vote_to_halt()

    class Adds(Vertex):
        spot: State[Spot]

        def compute(self, messages):
            self.spot += 1
            self.vote_to_halt()

    with pytest.raises((CompileError, TypeError)):
        run({"tuple": Wrong, "plus": Adds}[begins](), GRAPH, device=device)


class Unfit(NamedTuple):
    name: str
    at: Vector[float, 2]


def test_parts_have_types_of_states() -> None:
    with pytest.raises(CompileError, match=r"Unfit\.name is a <class 'str'>"):

        class P(Vertex):
            unfit: State[Unfit]


def test_a_default_that_does_not_fit_is_refused() -> None:
    with pytest.raises(CompileError, match=r"centre cannot begin as \(1.0,\)"):

        class P(Vertex):
            spot: State[Spot] = Spot((1.0,), 2)

    with pytest.raises(CompileError, match="write a Cluster"):

        class Q(Vertex):
            cluster: State[Cluster] = 7
