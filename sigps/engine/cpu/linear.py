"""A linear program that is solved within a tolerance, and goes on when edges are inserted and deleted, on one core.

The program stands for x = a + K x, with a > 0 and K not negative (`compiler/proofs/linear.py`). What the right side has
more than the left one is a vertex's residual: pushing it adds it to the vertex, and what follows from that to the
residuals of its out-neighbours (R. Andersen, F. Chung, K. Lang, "Local graph partitioning using PageRank vectors", FOCS
2006). If in the end no residual is more than t of a(v), then x is within t of the solution, in each vertex relative to
its value: the error is (I - K)^-1 of the residuals, and the solution that of a. Nothing has to be known of K but that
this ends.

After an update residuals of in-neighbours' sums that changed are made anew from their in-edges, and pushed.

Where an aggregator adds a multiple of a (PageRank's lost ranks), x = z / (1 - d l.z) with z the solution without it: so
z is kept, within as much less as this multiplies its error.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.cpu.native import NativeProgram
from sigps.compiler.program import HALT, SENT
from sigps.compiler.proofs.linear import Linear
from sigps.device.cpu import Threads
from sigps.engine.aggregates import Aggregates
from sigps.engine.compute_errors import error_in_loop
from sigps.engine.cpu.following import Arrays, EdgeChanges, LiveRows
from sigps.engine.cpu.spending import Spending
from sigps.engine.cpu.work import edges_of
from sigps.engine.partition.edge_list import EdgeList
from sigps.engine.partition.subgraph import Subgraph
from sigps.engine.stats import StatsLog, SuperstepStats
from sigps.graph.versions.row_changes import distinct
from sigps.kernels.cpu.arguments import LoopArguments, OwnedVertices
from sigps.kernels.cpu.rounds import list_targets
from sigps.native.kernel import LoopFaultError

__all__ = ["LinearEngine"]

_HALVING_SWEEPS = 5000
"""A program is said not to come to rest where in so many sweeps what changes did not fall to a half."""
_PUSHED = 2
"""Times all edges that are pushed along before sweeps take over, which read an edge in a quarter of the time."""
_LOOKED_AT = 2
"""The superstep whose compute() gives the coefficients."""


class LinearEngine:
    """An engine of a linear program whose values and residuals stay, and whose edges follow the versions of a graph.

    Args:
        native: The program, compiled for the CPU.
        params: The values of its parameters, in its order.
        subgraph: The partition, of all vertices.
        threads: Not used but by others of its kind.
        claim: What the compiler proved.
        tolerance: How much values may differ from the solution, as a share of each.
    """

    gives_up = False
    grows = False
    refused = ""
    full_cost = 0

    def __init__(
        self,
        native: NativeProgram,
        params: tuple[Any, ...],
        subgraph: Subgraph,
        threads: Threads,
        claim: Linear,
        tolerance: float,
    ) -> None:
        self._native, self._params, self._subgraph = native, params, subgraph
        self._claim, self._tolerance = claim, tolerance
        self.aggregates = Aggregates(())
        self.obstacle = ""
        n = self._num = subgraph.num_owned
        self._degrees = subgraph.out_degrees.copy()
        assert subgraph.outgoing is not None
        self._take_edges(subgraph.outgoing, subgraph.incoming)
        zeros = (np.zeros(n) for _ in range(6))
        self._own, self._factor, self._record, self._lost, self._values, self._residuals = zeros
        self._scale, self._all_add = 1.0, 0.0
        self._waiting, self._marks = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
        self._last: NDArray[np.float64] | None = None
        self._find_coefficients(np.arange(n, dtype=np.uint32))

    def begin(self, name: str, values: NDArray[Any]) -> None:
        """Take no values to begin with: the solution does not depend on them."""

    def state(self, name: str) -> NDArray[Any]:
        """Return the values of the one state, [num_owned] by local id."""
        return self._values * self._scale

    def run(self) -> StatsLog:
        """Solve it anew, from nothing."""
        self._values.fill(0.0)
        self._residuals[:] = self._own
        self._scale = 1.0
        stats = self._solve(np.arange(self._num, dtype=np.uint32), 0)
        if self._last is None:
            self._last = self.state("")
        return stats

    def take(self, states: Arrays) -> bool:
        """Take nothing: what another engine found has no residuals."""
        return False

    def grow(self, num_owned: int, ids: NDArray[np.int64]) -> None:
        """Is not called: new vertices may change the constants of all."""
        raise NotImplementedError

    def note(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        """Take note of nothing: what a batch does is seen afterwards."""

    def widen(self, inserts: EdgeChanges) -> None:
        """Take new edges: no bound depends on them."""

    def follow(self, rows: LiveRows) -> None:
        """Take the edges of another version."""
        outward = rows.outward
        assert outward.stops is not None
        self._degrees[rows.touched] = outward.stops[rows.touched] - outward.offsets[rows.touched]
        self._take_edges(outward, rows.inward)

    def go_on(self, inserts: EdgeChanges, deletes: EdgeChanges, spending: Spending) -> StatsLog | None:
        """Make the residuals anew that a batch changes, and push; never None."""
        parts = (inserts.sources, inserts.targets, deletes.sources, deletes.targets)
        ends = distinct(np.concatenate(parts).astype(np.uint32))
        self._find_coefficients(ends)
        if self.obstacle:
            return StatsLog()
        edges, marks = self._push, self._marks
        most = int((edges.stops[ends] - edges.offsets[ends]).sum())
        found = np.empty(min(self._num, ends.size + most), dtype=np.uint32)
        found[: ends.size] = ends
        marks[ends] = 1
        count = list_targets(ends, edges.offsets, edges.stops, edges.ends, marks, found, ends.size)
        found = found[:count].copy()
        marks[found] = 0
        read = self._native.loop("find_residuals", True)(found, *self._given(self._pull), *self._numbers)
        return self._solve(found, int(read))

    def changed(self) -> NDArray[np.int64]:
        """Return the local ids of vertices whose values differ from those of the result before, once. O(vertices)."""
        now = self.state("")
        assert self._last is not None
        changed = np.flatnonzero(now.view(np.uint64) != self._last.view(np.uint64))
        self._last = now
        return changed

    @property
    def _numbers(self) -> Arrays:
        return self._own, self._factor, self._record, self._values, self._residuals

    def _given(self, edges: Any) -> tuple[Any, ...]:
        arguments = LoopArguments(_LOOKED_AT, self._num, 0, self._params, ())
        return arguments, edges, self._owned

    def _take_edges(self, outward: EdgeList, inward: EdgeList) -> None:
        program = self._native.program
        self._pull, self._push = edges_of(inward, program), edges_of(outward, program)
        self._owned = OwnedVertices(self._subgraph.ids, self._pull.offsets, self._degrees, ())
        begins, stops = self._pull.offsets[: self._num], self._pull.stops[: self._num]
        self._num_edges = int((stops - begins).sum())

    def _solve(self, vertices: NDArray[np.uint32], read: int) -> StatsLog:
        """Push what is too large among the residuals of these vertices, and what follows from that."""
        began, pushed, sweeps = time.perf_counter(), 0, 0
        queue, waiting = np.empty(self._num, dtype=np.uint32), self._waiting
        share, most = self._tolerance / (2 * self._scale), _PUSHED * (self._num_edges + self._num)
        while True:
            queue[: vertices.size] = vertices
            waiting[vertices] = 1
            done, edges = self._native.loop("push_residuals", True)(
                queue, vertices.size, waiting, *self._given(self._push), *self._numbers, share, most
            )
            pushed, read = pushed + int(done), read + int(edges)
            if edges > most:
                waiting.fill(0)
                sweeps += self._sweep(share)
                read += sweeps * self._num_edges
                if self.obstacle:
                    break
            self._scale = self._find_scale()
            if edges <= most and share <= self._tolerance / self._scale:
                break
            share = min(share, self._tolerance / (2 * self._scale))
            vertices = np.flatnonzero(np.abs(self._residuals) > share * self._own).astype(np.uint32)
        seconds = time.perf_counter() - began
        return StatsLog([SuperstepStats(0, "pull" if sweeps else "push", pushed, read, 0, seconds, 1.0)])

    def _sweep(self, share: float) -> int:
        """Let all vertices take their right sides until that changes little; return how often."""
        given, numbers = self._given(self._pull), self._numbers
        before = np.inf
        for sweep in itertools.count(1):
            change = float(self._native.loop("sweep_values", True)(self._num, *given, *numbers[:-1]))
            if change <= share:
                everyone = np.arange(self._num, dtype=np.uint32)
                self._native.loop("find_residuals", True)(everyone, *given, *numbers)
                return sweep
            if not np.isfinite(change):
                break
            if sweep % _HALVING_SWEEPS == 0:
                if change > before / 2:
                    break
                before = change
        self.obstacle = "the program does not come to rest"
        return 0

    def _find_scale(self) -> float:
        if self._claim.lost is None:
            return 1.0
        left = 1.0 - self._all_add * float(self._lost @ self._values)
        if left > 0:
            return 1.0 / left
        self.obstacle = "what all vertices add to each other has no bound"
        return 1.0

    def _find_coefficients(self, vertices: NDArray[np.uint32]) -> None:
        """Find a, b, f, l and d of some vertices, by what compute() makes of two sums and of what was lost."""
        lost = self._claim.lost
        own, sent, flags, given = self._outcome(vertices, 0.0, 0.0)
        with_sum, more_sent, _, more_given = self._outcome(vertices, 1.0, 0.0)
        factor = with_sum - own
        if (flags & HALT).any():
            self.obstacle = f"compute() halts in superstep {_LOOKED_AT}: let it have more iterations"
            return
        sends, with_change = (flags & SENT) != 0, np.where(factor > 0, factor, 1.0)
        record = np.where(sends, np.where(factor > 0, (more_sent - sent) / with_change, sent / own), 0.0)
        share = np.where(factor > 0, (more_given - given) / with_change, given / own)
        is_linear = _are_near(record * own, np.where(sends, sent, 0.0)) and _are_near(share * own, given)
        if not is_linear or not (own > 0).all() or min(a.min(initial=0) for a in (factor, record, share)) < 0:
            self.obstacle = "constants are not all above 0, or multiples below it"
            return
        if lost is not None and own.size:
            ratios = (self._outcome(vertices, 0.0, 1.0)[0] - own) / own
            self._all_add = float(ratios[0])
            if self._all_add < 0 or not _are_near(ratios, np.full(ratios.size, self._all_add)):
                self.obstacle = "what an aggregator adds is not the same multiple of all constants"
                return
        self._own[vertices], self._factor[vertices] = own, factor
        self._record[vertices], self._lost[vertices] = record, share

    def _outcome(self, vertices: NDArray[np.uint32], total: float, lost: float) -> tuple[NDArray[Any], ...]:
        """Return what compute() makes of a sum: states, what is sent, flags, and what is given to what was lost."""
        native, n = self._native, self._num
        after, sent, flags = np.empty(n), np.empty(n), np.empty(n, dtype=np.uint8)
        dtypes = [a.field.dtype() for a in native.program.aggregators]
        given = tuple(np.empty(n, dtype=d) for d in dtypes)
        read = tuple(_of_no_end(a.kind, d) for a, d in zip(native.program.aggregators, dtypes, strict=True))
        if self._claim.lost is not None:
            at = self._claim.lost
            read = *read[:at], dtypes[at].type(lost), *read[at + 1 :]
        states, slots = (self._values,), (np.float64(total),)
        try:
            native.loop("find_coefficients", True)(
                vertices, *self._given(self._pull), states, slots, read, after, sent, flags, given
            )
        except LoopFaultError as fault:
            raise error_in_loop(fault, self._subgraph, _LOOKED_AT, native.program.aggregators) from None
        lost_of = np.zeros(vertices.size) if self._claim.lost is None else given[self._claim.lost][vertices]
        return after[vertices], sent[vertices], flags[vertices], lost_of


def _are_near(values: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    return bool(np.allclose(values, others, rtol=1e-9, atol=0.0))


def _of_no_end(kind: str, dtype: np.dtype[Any]) -> Any:
    """Return the value of an aggregator of changes while much changes: the run then goes on."""
    if dtype.kind == "f":
        return dtype.type(np.inf)
    return dtype.type(kind == "any") if dtype.kind == "b" else dtype.type(np.iinfo(dtype).max)
