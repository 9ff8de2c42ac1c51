"""Declared contractions with `asynchronous="auto"`: supersteps first, and none after those where they progress slowly.

What is measured: the change of all states in two supersteps of the first, of which the rate follows by which a
superstep makes it smaller; and how many edges join vertices of near ids, so that blocks have them
(`fixed_points.contracts_without_barriers`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.engine.cpu.asynchronous import Contraction, have_all_sent
from sigps.engine.cpu.crew import Schedule
from sigps.engine.cpu.records import Records
from sigps.engine.cpu.residuals import may_relax
from sigps.engine.cpu.run_state import RunState
from sigps.engine.fixed_points import LEAST_EDGES, NEAR_IDS, contracts_without_barriers
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.superstep import Done, Fused

__all__ = ["SlowContraction", "can_decide", "contraction", "share_of_near_edges"]

log = logging.getLogger(__name__)

_EARLY, _LATE = 11, 15
"""Supersteps whose changes are compared."""

_LEAST_RELAXED = 1 << 13
"""Edges from which on changes are passed on at once. PageRank to 1e-6 by supersteps and so, milliseconds: a grid of 20
rows (1,520 edges) 0.5 and 1.0, of 40 (6,240) 1.2 and 1.3, USPowerGrid (13,188) 6.1 and 3.1, a grid of 70 (19,320) 4.5
and 1.7; R-MAT 8 0.3 and 1.1, 10 1.6 and 1.4.
"""

_SAMPLE = 1 << 14
"""Vertices, and edges, that are looked at at most."""


def contraction(state: RunState, records: Records, supersteps: Fused | None) -> Fused | None:
    """Return what runs a declared contraction by itself; `supersteps` where there is nothing to decide from."""

    def near() -> float:
        return state.subgraph.derived("near edges", lambda: share_of_near_edges(state.subgraph))

    if state.subgraph.incoming.num_edges >= _LEAST_RELAXED and may_relax(state):
        why = "it is linear, and messages go both ways"
        log.info("%s goes on without barriers after superstep 0: %s", state.program.name, why)
        return Contraction(state, records, Schedule())
    if not can_decide(state):
        return supersteps
    return SlowContraction(supersteps, state, lambda: Contraction(state, records, Schedule()), near)


def can_decide(state: RunState) -> bool:
    """Tell whether a declared contraction has floats to look at, and a graph large enough for it."""
    is_large = state.subgraph.incoming.num_edges >= LEAST_EDGES
    return is_large and not state.deterministic and bool(_floats(state))


class SlowContraction:
    """Runs the first supersteps of a declared contraction, and goes on without barriers where that pays; on one rank.

    Args:
        supersteps: What runs several supersteps at once, or None.
        state: What the run keeps.
        make_free: Makes what runs the others without barriers.
        near: Returns the share of edges that join near ids.
    """

    def __init__(
        self,
        supersteps: Fused | None,
        state: RunState,
        make_free: Callable[[], Fused],
        near: Callable[[], float],
    ) -> None:
        self._supersteps, self._state, self._make_free, self._near = supersteps, state, make_free, near
        self._free: Fused | None = None
        self._before: list[NDArray[Any]] = []
        self._changes: dict[int, float] = {}
        self._is_decided = False

    def run(self, most_supersteps: int) -> Done | None:
        """Run at most so many of the first supersteps, or to the end; None where the loop is to run the next one."""
        if not self._is_decided:
            most_supersteps = min(most_supersteps, self._look())
        if self._free is not None:
            return self._free.run(most_supersteps)
        return self._supersteps.run(most_supersteps) if self._supersteps else None

    def _look(self) -> int:
        """Take note of what the next superstep begins with; return how many may run before the next look."""
        superstep = self._state.superstep
        if superstep in (_EARLY + 1, _LATE + 1):
            self._changes[superstep] = _difference(_floats(self._state), self._before)
        if superstep > _LATE:
            self._decide()
            return _LATE
        if superstep in (_EARLY, _LATE):
            self._before = [values.copy() for values in _floats(self._state)]
            return 1
        return (_EARLY if superstep < _EARLY else _LATE) - superstep

    def _decide(self) -> None:
        self._is_decided = True
        state = self._state
        claim = state.program.asynchronous
        assert claim is not None
        assert claim.factor is not None
        early, late = (self._changes.get(superstep, 0.0) for superstep in (_EARLY + 1, _LATE + 1))
        rate = (late / early) ** (1 / (_LATE - _EARLY)) if early > 0 else 0.0
        why, is_free = contracts_without_barriers(factor=claim.factor, rate=rate, near=self._near())
        if is_free and not have_all_sent(state):
            why, is_free = "some vertices sent nothing in the last superstep", False
        goes_on = "without barriers" if is_free else "by supersteps"
        log.info("%s goes on %s after %d supersteps: %s", state.program.name, goes_on, state.superstep, why)
        if is_free:
            self._free = self._make_free()


def share_of_near_edges(subgraph: Subgraph) -> float:
    """Return how many of the edges join vertices of near ids, from 0 to 1; of a sample, by numbers in the graph."""
    offsets, sources = subgraph.incoming.offsets, subgraph.incoming.ends
    edges = np.arange(0, sources.size, max(1, sources.size // _SAMPLE))
    ends = np.searchsorted(offsets, edges, side="right") - 1, sources[edges].astype(np.int64)
    if subgraph.gids is not None:
        ends = subgraph.gids[ends[0]], subgraph.gids[ends[1]]
    return float(np.mean(np.abs(ends[0].astype(np.int64) - ends[1].astype(np.int64)) < NEAR_IDS))


def _floats(state: RunState) -> list[NDArray[Any]]:
    """Return the states that are floating-point numbers, of every so many vertices."""
    step = max(1, state.subgraph.num_owned // _SAMPLE)
    return [values[::step] for values in state.fields.states if values.dtype.kind == "f"]


def _difference(now: list[NDArray[Any]], before: list[NDArray[Any]]) -> float:
    with np.errstate(all="ignore"):  # what is no number decides for supersteps
        return sum(float(np.abs(a - b).sum(dtype=np.float64)) for a, b in zip(now, before, strict=True))
