"""Edge states of the vertices that wrote are committed, those and no others: against a mask, and the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from battery import BATTERY
from ways import Way, assert_all_equal

from sigps import EdgeState, State, Vector, Vertex
from sigps.device.cpu import Threads
from sigps.engine.cpu.edge_commit import EdgeCommit
from sigps.engine.exchange import NoExchange
from sigps.engine.partition.edge_states import EdgeStates


class Seldom(Vertex, directed=False):
    """Vertices of one superstep's parity write on the edges to larger vertices, in branches and by a method."""

    told: EdgeState[int] = 7
    at: EdgeState[Vector[float, 3]] = 0
    heard: State[int] = 0
    felt: State[float] = 0.0

    def compute(self, messages: Any) -> None:
        self.heard += sum(edge.reverse.told for edge in self.out_edges)
        self.felt += sum(sum(edge.reverse.at) for edge in self.out_edges)
        if self.superstep == 6:
            self.vote_to_halt()
        elif self.superstep % 3 != 2 and (self.id + self.superstep) % 2 == 0:
            self.write()

    def write(self) -> None:
        for edge in self.out_edges:
            if edge.target > self.id:
                edge.told += self.superstep + 1
            elif self.superstep > 3:
                edge.at = edge.at + float(self.id)


@pytest.mark.parametrize("name", ["grid", "skewed", "parallel_edges_undirected"])
def test_what_some_vertices_write_in_some_supersteps_is_read_by_all(name: str) -> None:
    assert_all_equal(Seldom(), BATTERY[name], [Way(), Way(threads=3), Way(2, partitioner="hash")])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_rows_of_those_that_wrote_are_committed(share: float) -> None:
    draw = np.random.default_rng(0)
    degrees = draw.integers(0, 40, 20_000)
    offsets = np.append(0, degrees.cumsum()).astype(np.uint64)
    fields = Seldom.declaration.edge_states
    dtypes = [np.dtype(np.int64), np.dtype((np.float64, 3))]
    states = EdgeStates(fields, dtypes, int(offsets[-1]), None, NoExchange(lambda ids, superstep: ids))
    before = [values.copy() for values in states.committed]
    with Threads(3) as threads:
        commit = EdgeCommit(states, offsets, threads)
        for values in states.pending:
            values[...] = draw.integers(1, 99, values.shape)
        wrote = draw.random(degrees.size) < share
        commit.wrote[wrote] = 1
        assert commit() == 0
        assert not commit.wrote.any()
    of_edges = np.repeat(wrote, degrees)
    for now, old, new in zip(states.committed, before, states.pending, strict=True):
        assert (now[of_edges] == new[of_edges]).all()
        assert (now[~of_edges] == old[~of_edges]).all()
