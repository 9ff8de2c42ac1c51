"""A declared contraction that is linear: what its vertices still have to change is passed on, and no sum made again.

A vertex that changes passes the change of its message on to the sums of its out-neighbours (R. Andersen, F. Chung,
K. Lang, "Local graph partitioning using PageRank vectors", FOCS 2006), and nobody pulls. A scan goes over all vertices
in order, and lets those go on that have more than a share of the mean to change: where most is left, so that edges are
passed where that counts. What `Contraction` does afterwards, all vertices by compute() from sums made anew, until
none changes, is the judge; this only brings them near.

Where messages go both ways along each edge, and what comes of them is the same but for a scale of each vertex,
I - K is similar to a symmetric matrix whose eigenvalues are above 0. There a vertex may take more than its residual,
up to twice where no edge passes a negative number, in any order of single vertices, and the distance falls in the norm
of that matrix (D. Young, "Iterative methods for solving partial difference equations of elliptic type", 1954, and
A. Ostrowski, "On the linear iteration procedures for symmetric matrices", 1954); `relaxation_of` takes what is best
where K's eigenvalues lie between both signs of the factor. What grows all the same is put back, and taken plainly.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.compiler.program import VertexProgram
from sigps.compiler.proofs.linear import Linear, linear
from sigps.engine.cpu.crew import most_cores
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import even_ranges
from sigps.native.kernel import LoopFaultError

__all__ = ["Residuals", "find_claim", "may_relax", "relaxation_of", "residual_bytes"]

_SHARE_OF_MEAN, _SHARE_OF_MOST = 0.3, 1e-4
"""How much a vertex must not have taken, of what all had in the scan before, on average and at most, to take it."""

_MOST_SCANS = 64
"""So many times 1 / (1 - factor) scans, at most: what is then not near belongs to no contraction."""

_MOST_GROWTH = 8.0
"""So many times the least that was ever left may be left: what grows further is no contraction as vertices take it.
They take their residuals alone then, and at last nothing: loops that pass negative numbers, vertices of two cores that
always take theirs at once, factors that are not true."""

MOST_CORES = 4
"""Each has a part of what is not taken, and reads all parts. More cores pull, and share the work of that."""


def relaxation_of(factor: float, *, is_symmetric: bool) -> float:
    """Return how many times its residual a vertex takes.

    >>> [round(relaxation_of(0.85, is_symmetric=both_ways), 2) for both_ways in (True, False)]
    [1.31, 1.0]
    """
    return 2.0 / (1.0 + (1.0 - factor * factor) ** 0.5) if is_symmetric else 1.0


def find_claim(state: RunState) -> Linear | None:
    """Return what was proved of a program whose residuals can be passed on; None of others."""
    native, double = state.native, np.dtype(np.float64)
    if state.threads.count > MOST_CORES:
        return None
    if (*native.slots, *native.record, *state.program.state_dtypes) != (double,) * 3:
        return None
    found = _claim_of(state.program)
    return found if isinstance(found, Linear) and found.lost is None else None


def residual_bytes(program: VertexProgram, num_vertices: int, num_edges: int, num_threads: int) -> int:
    """Return what `Residuals` of a program take at most, on one rank; 0 where residuals are not passed on. Pure."""
    if program.asynchronous is None or program.asynchronous.factor is None or num_threads > MOST_CORES:
        return 0
    found = _claim_of(program)
    if not isinstance(found, Linear) or found.lost is not None:
        return 0
    numbers = (
        3 + min(num_threads, most_cores(num_edges)) + 2
    )  # terms, what each core has, states and records put back
    return 8 * numbers * num_vertices


def may_relax(state: RunState) -> bool:
    """Tell whether vertices may take more than their residuals, as far as program and graph tell."""
    claim = find_claim(state) if state.subgraph.goes_both_ways else None
    return claim is not None and not claim.reads_ends


class Residuals:
    """Brings the states of a linear contraction near its fixed point, on one rank.

    Args:
        state: What the run keeps, of a program that has a claim, after a superstep in which all vertices sent.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state
        n = state.subgraph.num_owned
        self._cores = min(state.threads.count, most_cores(state.pull_edges.ends.size))
        self._own, self._factor, self._share = np.empty((3, n))
        self._untaken = np.zeros(self._cores * n)
        self._even = [(begin, end) for begin, end in even_ranges(n, self._cores)]

    def compile(self, arguments: Any) -> None:
        """Compile the loops, or read them from the cache, over no vertices."""
        zero = np.uint64(0)
        none = [(zero, zero)]
        self._run("find_terms", none, *self._looked_at(arguments))
        self._run("add_up", none, *self._pulled(arguments))
        self._run("pass_on", [(zero, zero, 0)], *self._passed(arguments, 0.0, 1.0))
        self._run("find_changed", none, *self._compared(arguments))

    def settle(self, arguments: Any) -> tuple[int, int]:
        """Pass residuals on until compute() would change no vertex, or for so many scans.

        Args:
            arguments: What compute() reads of the run.

        Returns:
            How many residuals were passed on, and how many edges were read.

        Raises:
            ComputeError: If arithmetic of compute() had no result.
        """
        try:
            return self._settle(arguments)
        except LoopFaultError as fault:
            raise self._state.error_of(fault, self._state.superstep) from None

    def _settle(self, arguments: Any) -> tuple[int, int]:
        state, n = self._state, self._state.subgraph.num_owned
        claim = state.program.asynchronous
        assert claim is not None
        assert claim.factor is not None
        self._run("find_terms", self._even, *self._looked_at(arguments))
        if n == 0 or not np.isfinite(self._own).all() or not self._factor.all():
            return 0, 0
        is_symmetric = may_relax(state) and min(self._factor.min(), self._share.min()) >= 0
        relaxation = relaxation_of(claim.factor, is_symmetric=is_symmetric)
        found = self._run("add_up", self._even, *self._pulled(arguments))
        left, most, taken, changed = sum(row[0] for row in found), 0.0, 0, 0
        edges = sum(row[1] for row in found)
        spans = [(*span, core) for core, span in enumerate(self._ranges_of_edges())]
        begun, least_left = self._kept(), left
        for _ in range(int(_MOST_SCANS / (1.0 - claim.factor))):
            if not left <= _MOST_GROWTH * least_left:  # also where it is no number
                self._put_back(begun)
                if relaxation == 1.0 or not np.isfinite(least_left):
                    break
                found = self._run("add_up", self._even, *self._pulled(arguments))
                relaxation, most, left = 1.0, 0.0, sum(row[0] for row in found)
                least_left = left
            changed = self._find_changed(changed, arguments)
            if changed < 0:
                break
            least_left = min(least_left, left)
            least = max(_SHARE_OF_MEAN * left / n, _SHARE_OF_MOST * most)
            found = self._run("pass_on", spans, *self._passed(arguments, least, relaxation))
            left, most = sum(row[0] for row in found), max(row[1] for row in found)
            taken, edges = taken + sum(row[2] for row in found), edges + sum(row[3] for row in found)
        else:
            if not left <= _MOST_GROWTH * least_left:
                self._put_back(begun)
        return taken, edges

    def _kept(self) -> list[NDArray[Any]]:
        return [values[0].copy() for values in (self._state.fields.states, self._state.read.records)]

    def _put_back(self, kept: list[NDArray[Any]]) -> None:
        """Let states and records be what they were when nothing had been passed on."""
        for values, before in zip((self._state.fields.states, self._state.read.records), kept, strict=True):
            values[0][:] = before
        self._untaken[:] = 0.0

    def _find_changed(self, begin: int, arguments: Any) -> int:
        """Return a vertex that compute() would change, the next from this one on; -1 where there is none."""
        for span in ((begin, self._own.size), (0, begin)):
            first, last = (np.uint64(v) for v in span)
            (found,) = self._run("find_changed", [(first, last)], *self._compared(arguments))
            if found < last:
                return int(found)
        return -1

    def _looked_at(self, arguments: Any) -> tuple[Any, ...]:
        state = self._state
        terms = self._own, self._factor, self._share
        return arguments, state.owned, state.fields, state.read.records, *terms

    def _pulled(self, arguments: Any) -> tuple[Any, ...]:
        state = self._state
        values = state.fields.states, state.read.records
        return arguments, state.pull_edges, state.owned, *values, self._own, self._factor, self._untaken

    def _passed(self, arguments: Any, least: float, relaxation: float) -> tuple[Any, ...]:
        state = self._state
        values = state.fields.states, state.read.records, self._factor, self._share, self._untaken
        return self._cores, least, relaxation, arguments, state.push_edges, state.owned, *values

    def _compared(self, arguments: Any) -> tuple[Any, ...]:
        state = self._state
        return self._cores, arguments, state.owned, state.fields, self._own, self._factor, self._untaken

    def _ranges_of_edges(self) -> list[tuple[np.uint64, np.uint64]]:
        """Return a range of vertices for each core, of as many out-edges."""
        offsets, n = self._state.push_edges.offsets, self._state.subgraph.num_owned
        ends = np.arange(1, self._cores) * int(offsets[n]) // self._cores
        cuts = [0, *np.searchsorted(offsets[: n + 1], ends.astype(offsets.dtype)).tolist(), n]
        return [(np.uint64(begin), np.uint64(end)) for begin, end in itertools.pairwise(cuts)]

    def _run(self, name: str, spans: list[Any], *given: Any) -> list[Any]:
        loop = self._state.loop(name)
        return self._state.threads.map(lambda span: loop(*span, *given), spans)


@functools.lru_cache(maxsize=64)
def _claim_of(program: VertexProgram) -> Linear | str:
    return linear(program)
