"""Path lengths: a strategy that finds shortest paths at once, where a program is proved to end with them.

`PathLengths.run` stands in the place of all supersteps after the first. The proof is `compiler/proofs/path_lengths.py`,
the loops are `kernels/cpu/path_lengths.py`. It is for meshes with whole weights on one rank: supersteps there pass each
edge dozens of times, since lengths fall again and again.

Gain (2 cores, milliseconds a run, at once and by supersteps; weights 1 to 255): SSSP on grid-500 47 and 453, on
grid-1000 156 and 3,216, on USA-road-NE 246 and 10,038 (`scripts/bench/at_once.py`).
"""

from __future__ import annotations

import time

import numpy as np

from sigps.compiler.program import PathLengths as Claim
from sigps.device.cpu import Threads
from sigps.engine.cpu.run_state import RunState
from sigps.engine.cpu.work import even_ranges, num_parts_worth
from sigps.engine.fixed_points import Labels, Weights, bucket_width, choose_labels, exact_labels, real_width
from sigps.engine.partition.subgraph import Subgraph, columns_of
from sigps.engine.stats import AT_ONCE, SuperstepStats
from sigps.engine.superstep import Done, Fused
from sigps.kernels.cpu import path_lengths as kernels

__all__ = ["Parents", "PathLengths", "path_lengths"]

_MOST_WORK = 1 << 22
"""Edges after which a loop returns, in some ten milliseconds, so that a run can be interrupted."""


def path_lengths(state: RunState, claim: Claim, otherwise: Fused | None) -> Fused | None:
    """Return the strategy for a run on a mesh before superstep 0; `otherwise` where it does not pay."""
    subgraph = state.subgraph
    name = state.program.edge_columns[claim.column]
    weights = subgraph.derived(f"weights {name}", lambda: _measure(subgraph, name, state.threads))
    labels = choose_labels(weights, subgraph.num_vertices, state.program.state_dtypes[claim.length])
    if labels is not None:
        return PathLengths(state, claim, WholeLabels(weights, labels), otherwise)
    keys = state.program.message_dtypes[0], state.program.state_dtypes[claim.length]
    width = None
    if claim.parent is None:
        width = real_width(weights, keys, is_gpu=False, num_edges=subgraph.num_edges)
    return PathLengths(state, claim, RealLabels(width), otherwise) if width is not None else otherwise


class PathLengths:
    """Runs all supersteps after the first at once.

    Args:
        state: What the run keeps.
        claim: Where lengths and parents are.
        labels: How labels are made.
        otherwise: What runs where superstep 0 left something else than lengths of senders.
    """

    def __init__(
        self, state: RunState, claim: Claim, labels: WholeLabels | RealLabels, otherwise: Fused | None
    ) -> None:
        self._state, self._claim, self._otherwise, self._labels = state, claim, otherwise, labels

    def run(self, most_supersteps: int) -> Done | None:
        """Run to the end; what `otherwise` does where that is not possible."""
        if self._state.superstep == 1:
            began = time.perf_counter()
            found = self._find()
            if found is not None:
                changed, passed = found
                self._state.end_at_once()
                seconds = time.perf_counter() - began
                return Done((SuperstepStats(1, AT_ONCE, changed, passed, 0, seconds, 1.0),), 0, 0)
        return self._otherwise.run(most_supersteps) if self._otherwise else None

    def _find(self) -> tuple[int, int] | None:
        """Return how many vertices got a length, and how many edges were passed; None where lengths are not exact."""
        state, labels = self._state, self._labels
        n = state.subgraph.num_owned
        values = np.empty(n, dtype=labels.width.dtype)
        near, far, at = (
            np.empty(n + 1, dtype=np.uint32),
            np.empty(n, dtype=np.uint32),
            np.zeros(4, dtype=np.int64),
        )
        piles = kernels.Piles(near, far, np.zeros(n, dtype=np.uint8), at, np.zeros(1, dtype=values.dtype))
        if not labels.begin(state, self._claim, values, piles):
            return None
        edges, column = state.push_edges, self._claim.column
        along = edges.offsets, edges.ends, edges.columns[column]
        limits = labels.unit, labels.width, labels.most, labels.unreached
        left = 1
        while left > 0:
            left = labels.relax(*along, *limits, _MOST_WORK, values, piles)
        return None if left < 0 else (labels.store(state, self._claim, values), int(at[3]))


class WholeLabels:
    """Labels of lengths and numbers of edges, int64: `length * unit + edges`.

    Args:
        weights: What is known of the weights.
        labels: How labels are made.

    Attributes:
        unit: What stands between lengths.
        relax: The loop that passes them on.
        width: Of a bucket.
        most: The greatest label.
        unreached: The label of a vertex without a path.
    """

    def __init__(self, weights: Weights, labels: Labels) -> None:
        self._longest = np.int64(labels.longest)
        self.unit, self.most, self.relax = np.int64(labels.unit), np.int64(labels.most), kernels.relax_whole
        self.width, self.unreached = np.int64(bucket_width(weights, labels, is_gpu=False)), kernels.UNREACHED

    def begin(self, state: RunState, claim: Claim, values: np.ndarray, piles: kernels.Piles) -> bool:
        """Give each vertex its first label, and put those that have one near; return whether that is right."""
        lengths, degrees = state.fields.states[claim.length], state.subgraph.out_degrees
        given = lengths, state.read.sent, degrees, self._longest, self.unit, values, piles
        return bool(kernels.begin_labels(*given))

    def store(self, state: RunState, claim: Claim, values: np.ndarray) -> int:
        """Write what labels tell; return how many vertices got a length."""
        return store_lengths(state, claim, values, self.unit)


class RealLabels:
    """Labels that are lengths, float64, as supersteps add them up; without parents. Attributes as `WholeLabels`'.

    Args:
        width: Of a bucket.
    """

    def __init__(self, width: float) -> None:
        self.unit, self.width, self.relax = np.int64(1), np.float64(width), kernels.relax_real
        self.most, self.unreached = np.float64(np.finfo(np.float64).max), np.float64(np.inf)

    def begin(self, state: RunState, claim: Claim, values: np.ndarray, piles: kernels.Piles) -> bool:
        """Give each vertex its first label, and put those that have one near; return whether that is right."""
        values[:] = state.fields.states[claim.length]
        near = np.flatnonzero(values != np.inf)
        has_sent = (state.read.sent[near] != 0) | (state.subgraph.out_degrees[near] == 0)
        piles.near[: near.size], piles.where[near], piles.at[1] = near, 1, near.size
        is_length = (values[near] >= 0) & ~np.signbit(values[near])
        return bool(has_sent.all() and is_length.all())

    def store(self, state: RunState, claim: Claim, values: np.ndarray) -> int:
        """Write what labels tell; return how many vertices got a length."""
        lengths = state.fields.states[claim.length]
        is_shorter = values < lengths
        lengths[is_shorter] = values[is_shorter]
        return int(np.count_nonzero(is_shorter))


def store_lengths(state: RunState, claim: Claim, labels: np.ndarray, unit: np.int64) -> int:
    """Write the lengths and parents that labels tell; return how many vertices got some."""
    edges, states = state.pull_edges, state.fields.states
    parents = np.empty(0, dtype=np.int64) if claim.parent is None else states[claim.parent]
    store = kernels.store_lengths.over(
        edges.offsets, edges.ends, edges.columns[claim.column], state.subgraph.ids, labels, unit,
        np.int64(int(unit).bit_length() - 1), states[claim.length], parents,
    )  # fmt: skip
    n = state.subgraph.num_owned
    ranges = even_ranges(n, num_parts_worth(n, state.threads.count))
    return sum(state.threads.map(lambda span: store(*span), ranges))


class Parents:
    """Finds parents where lengths were found without supersteps: of shortest paths those with the fewest edges count.

    Making one is collective, as are all its methods but `begin`.

    Args:
        state: What the run keeps, of a program of shortest paths.
    """

    def __init__(self, state: RunState) -> None:
        claim, subgraph = state.program.path_lengths, state.subgraph
        assert claim is not None
        self._state, self._claim, self._name = state, claim, state.program.edge_columns[claim.column]
        own = subgraph.derived(
            f"whole {self._name}", lambda: _measure_all(subgraph, self._name, state.threads)
        )
        found = state.exchange.gather(np.array([own.are_whole, own.least, own.greatest], dtype=np.int64))
        weights = Weights(bool(found[:, 0].all()), int(found[:, 1].min()), int(found[:, 2].max()))
        dtype = state.program.state_dtypes[claim.length]
        self._labels = exact_labels(weights, subgraph.num_vertices, dtype)
        self._began = self._lengths

    def find_obstacle(self) -> str | None:
        """Return why parents cannot be found; None where they can. After the run, whether its lengths were exact."""
        if self._labels is None:
            return f"the {self._name}s are no whole numbers from 0 on"
        found = self._lengths[np.isfinite(self._lengths)]
        is_exact = not found.size or (
            found.max() <= self._labels.longest and (found == np.trunc(found)).all()
        )
        if not self._state.exchange.gather(np.array([is_exact])).all():
            return f"paths are longer than {self._labels.longest:,}, and their lengths are rounded"
        return None

    @property
    def _lengths(self) -> np.ndarray:
        lengths: np.ndarray = self._state.fields.states[self._claim.length]
        return lengths

    def begin(self) -> None:
        """Remember what lengths superstep 0 left, and who sent them."""
        self._began = self._lengths.copy()
        self._sent = self._state.last_senders().copy()

    def find(self) -> None:
        """Store parents beside lengths that are final. O(edges), and a crossing for each border on a shortest path."""
        state, lengths, labels = self._state, self._lengths, self._labels
        assert labels is not None
        n, size = lengths.size, lengths.size + state.subgraph.num_ghosts
        unit, values = np.int64(labels.unit), np.full(size, kernels.UNREACHED)
        is_kept = (lengths == self._began) & np.isfinite(lengths)
        values[:n][is_kept] = lengths[is_kept].astype(np.int64) * unit
        queue = np.empty(size, dtype=np.uint32)
        waits, changed = np.zeros((2, size), dtype=np.uint8)
        edges, column = state.push_edges, self._claim.column
        along = edges.offsets, edges.ends, edges.columns[column], lengths, unit, values, waits, changed, queue
        wait = self._sent[is_kept[self._sent]]
        changed[wait] = 1
        is_over = False
        while not is_over:
            first, count = 0, wait.size
            queue[:count] = wait
            waits[wait] = 1
            while count > 0:
                first, count, _ = kernels.label_by_edges(*along, first, count, _MOST_WORK)
            state.exchange.publish(changed, (values,))
            wait, _ = state.exchange.collect(changed, (values,))
            changed.fill(0)
            is_over = not state.exchange.gather(np.array([wait.size])).any()
        store_lengths(state, self._claim, values, unit)


def _measure(subgraph: Subgraph, name: str, threads: Threads) -> Weights:
    (column,) = columns_of(subgraph.incoming, (name,))
    if column.strides == (0,):
        return Weights(False, 0, 0)  # all are equal
    measure = kernels.measure_weights.over(column)
    ranges = even_ranges(column.size, num_parts_worth(column.size, threads.count))
    parts = threads.map(lambda span: measure(*span), ranges)
    if not all(part[0] for part in parts):
        ends = [(column[int(i) : int(j)].min(), column[int(i) : int(j)].max()) for i, j in ranges if j > i]
        least, greatest = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
        return Weights(False, 0, 0, (least, greatest) if least >= 0 else None)
    return Weights(True, int(min(p[1] for p in parts)), int(max(p[2] for p in parts)))


def _measure_all(subgraph: Subgraph, name: str, threads: Threads) -> Weights:
    """Return what is known of weights, also where all are equal."""
    (column,) = columns_of(subgraph.incoming, (name,))
    if column.size == 0:
        return Weights(True, 0, 0)
    if column.strides != (0,):
        return _measure(subgraph, name, threads)
    is_whole, least, greatest = kernels.measure_weights(0, 1, column[:1].copy())
    return Weights(bool(is_whole), int(least), int(greatest)) if is_whole else Weights(False, 0, 0)
