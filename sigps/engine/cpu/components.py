"""Components: a strategy that finds the best value of each at once, where a program is proved to end with it.

A program that has a priority-order form (`compiler/proofs/priority.py`) ends with the best value from which a path
leads to each vertex. Along edges that go both ways that is the best of its component, which union and find give in one
pass (`kernels/cpu/components.py`). It is for meshes on one rank; where some vertices have many edges, the best value
reaches most of them in a few supersteps (`priority.py`). Each thread joins a range of vertices; the edges between
ranges follow.

Gain (2 cores, milliseconds a run, at once and by supersteps): WCC on grid-500 11.9 and 21.8, on grid-1000 22.5 and
157, on USA-road-NE 84 and 206 (`scripts/bench/at_once.py`).
"""

from __future__ import annotations

import time

import numpy as np

from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import even_ranges
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.engine.superstep import Done, Fused
from sigps.kernels.cpu import components as kernels

__all__ = ["Components"]


class Components:
    """Runs all supersteps after the first at once.

    Args:
        state: What the run keeps, of a program that has a priority-order form.
        otherwise: What runs where not all vertices sent in superstep 0.
    """

    def __init__(self, state: RunState, otherwise: Fused | None) -> None:
        self._state, self._otherwise = state, otherwise

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end; what `otherwise` does where that is not possible."""
        state = self._state
        if state.superstep != 1 or state.last.senders < np.count_nonzero(state.subgraph.out_degrees):
            return self._otherwise.run(most_supersteps) if self._otherwise else None
        began = time.perf_counter()
        changed = self._find()
        state.end_at_once()
        seconds = time.perf_counter() - began
        stats = SuperstepStats(1, AT_ONCE, changed, state.subgraph.num_edges, 0, seconds, 1.0)
        return Done((stats,), 0, 0)

    def _find(self) -> int:
        """Return how many vertices got another value."""
        state, (values, *_) = self._state, self._state.fields.states
        edges, n, threads = state.pull_edges, state.subgraph.num_owned, state.threads
        takes_min = state.program.slots[0].op == "min"
        parents, crossing = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint32)
        join = kernels.join_within.over(edges.offsets, edges.ends, values, takes_min, parents, crossing)
        ranges = even_ranges(n, threads.count)
        counts = threads.map(lambda span: join(*span), ranges)
        for (begin, _), count in zip(ranges, counts, strict=True):
            listed = crossing[int(begin) : int(begin) + count]
            if count:
                kernels.join_across(listed, edges.offsets, edges.ends, values, takes_min, parents)
        take = kernels.take_roots.over(parents, values)
        return sum(threads.map(lambda span: take(*span), ranges))
