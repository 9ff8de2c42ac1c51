"""The edges of generated graphs, by index: any rank draws any range, in any chunks.

An `EdgeStream` has the numbers of vertices and edges of a graph and draws the edges [begin, end).
`sigps.graph.generators.generate` builds a `Graph` from it. Each function here checks its arguments and raises
`ConfigError` before edges are drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError
from sigps.graph import random_bits as rb

__all__ = [
    "EdgeStream",
    "RecursiveMatrix",
    "complete",
    "draw_rmat",
    "erdos_renyi",
    "grid",
    "path",
    "rmat",
    "star",
    "watts_strogatz",
]

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
Draw = Callable[[int, int], Ends]
Duplicates = Literal["keep", "drop"]
Weights = Literal["random"] | None


@dataclass(frozen=True)
class RecursiveMatrix:
    """What `draw_rmat` draws, for those that draw it in another place.

    Attributes:
        scale: Levels.
        thresholds: [3].
        seed: The seed of the edges.
        round_keys: [FEISTEL_ROUNDS] of the permutation of ids; [0] for none.
    """

    scale: int
    thresholds: NDArray[np.uint64]
    seed: int
    round_keys: NDArray[np.uint64]


@dataclass(frozen=True)
class EdgeStream:
    """The edges of one generated graph.

    Attributes:
        num_vertices: Vertices; their ids are 0 .. num_vertices - 1.
        num_edges: Edges drawn, before duplicates or self-loops are dropped; an undirected edge counts once.
        draw: Returns the sources and targets of the edges [begin, end). Pure, and thread-safe.
        duplicates: "drop" if all but one of parallel edges are to be dropped.
        self_loops: "drop" if self-loops are to be dropped.
        weights: "random": each edge weighs a whole number in 1 .. 255, equal in both directions.
        seed: The seed of the weights.
        matrix: What `draw` draws, where that is a recursive matrix.
    """

    num_vertices: int
    num_edges: int
    draw: Draw
    directed: bool = False
    duplicates: Duplicates = "keep"
    self_loops: Duplicates = "keep"
    weights: Weights = None
    seed: int = 1
    matrix: RecursiveMatrix | None = None

    def edges(
        self, begin: int, end: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Return sources, targets and columns of the edges [begin, end)."""
        sources, targets = self.draw(begin, end)
        if self.weights is None:
            return sources, targets, {}
        return sources, targets, {"weight": weigh(sources, targets, self.seed)}

    def chunks(
        self, begin: int, end: int, *, chunk_edges: int = 1 << 20, threads: int = 1
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], dict[str, NDArray[Any]]]]:
        """Yield the edges [begin, end) in order, at most `chunk_edges` at a time.

        Threads draw the next chunks meanwhile; at most `threads` + 1 chunks are in memory at once.
        """
        starts = range(begin, end, chunk_edges)
        if threads <= 1 or len(starts) <= 1:
            for start in starts:
                yield self.edges(start, min(start + chunk_edges, end))
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[Any]] = deque()
            for start in starts:
                if len(waiting) == threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(self.edges, start, min(start + chunk_edges, end)))
            while waiting:
                yield waiting.popleft().result()


def weigh(sources: NDArray[np.int64], targets: NDArray[np.int64], seed: int) -> NDArray[np.float32]:
    """Return whole numbers in 1 .. 255, a hash of the two ends, the same in both directions."""
    bits = rb.hash_pairs(sources, targets, seed)
    return (rb.below(bits, 255) + 1).astype(np.float32)


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    permute: bool = True,
    directed: bool = False,
    duplicates: Duplicates = "drop",
    self_loops: Duplicates = "drop",
    weights: Weights = None,
) -> EdgeStream:
    """Draw a recursive-matrix (Kronecker) graph: skewed degrees, small diameter.

    Each edge chooses, on each of `scale` levels, one quadrant of a 2 x 2 matrix with the probabilities a, b, c and
    1 - a - b - c. Many vertices are isolated. O(edges * scale).

    Args:
        scale: The graph has 2**scale vertices, up to 40.
        edge_factor: Edges drawn a vertex.
        seed: The seed of the edges.
        a: Share of edges from the first half of the ids to the first half.
        b: Share from the first half to the second.
        c: Share from the second half to the first.
        permute: Whether to permute the ids at random; otherwise small ids have high degrees.
        directed: Whether edges have a direction.
        duplicates: "drop" keeps one of parallel edges, "keep" all.
        self_loops: "drop" or "keep".
        weights: None, or "random" for whole numbers in 1 .. 255.

    Paper: Chakrabarti, Zhan, Faloutsos: R-MAT: A Recursive Model for Graph Mining. SDM 2004.
    """
    check = _Check("rmat")
    scale = check.whole("scale", scale, 0, 40)
    edge_factor = check.whole("edge_factor", edge_factor, 0, 1 << 17)
    seed = check.seed_and_weights(seed, weights)
    for name, share in (("a", a), ("b", b), ("c", c)):
        check.share(name, share)
    if a + b + c > 1 + 1e-12:
        check.fail(f"a + b + c is {a + b + c:g}; they and d = 1 - a - b - c are shares: lower a, b or c")
    for name, claim in (("permute", permute), ("directed", directed)):
        check.claim(name, claim)
    for name, choice in (("duplicates", duplicates), ("self_loops", self_loops)):
        check.one_of(name, choice, ("keep", "drop"))

    thresholds = np.array([rb.threshold(share) for share in (a, a + b, a + b + c)], dtype=np.uint64)
    id_key = rb.subkey(seed, _IDS) if permute else None
    # The kernel's first load takes 0.1 s of a core. With it 2**21.8 levels take 0.10 s and 2**22.9 0.13 s; NumPy takes
    # 0.08 and 0.16 s.
    draw = draw_rmat if scale * edge_factor << scale < 1 << 22 else _draw_rmat_compiled
    return EdgeStream(
        num_vertices=1 << scale,
        num_edges=edge_factor << scale,
        draw=lambda begin, end: draw(begin, end, scale, thresholds, seed, id_key),
        directed=directed,
        duplicates=duplicates,
        self_loops=self_loops,
        weights=weights,
        seed=seed,
        matrix=RecursiveMatrix(scale, thresholds, seed, _round_keys(id_key)),
    )


def draw_rmat(
    begin: int, end: int, scale: int, thresholds: NDArray[np.uint64], seed: int, id_key: int | None
) -> Ends:
    """Draw edges of the recursive matrix, with NumPy; `rmat_kernel` is the compiled form.

    Args:
        begin: The first edge.
        end: The edge after the last.
        scale: Levels; level l of an edge uses lane l of its random bits, the most significant bit first.
        thresholds: [3] a, a + b, a + b + c, in units of 2**-53.
        seed: The seed of the edges.
        id_key: The key of the permutation of ids; None for no permutation.
    """
    edges = np.arange(begin, end, dtype=np.uint64)
    sources = np.zeros(edges.size, dtype=np.int64)
    targets = np.zeros(edges.size, dtype=np.int64)
    for level in range(scale):
        draws = rb.random_bits(edges, level, seed) >> np.uint64(11)
        in_b, in_c, in_d = (draws >= bound for bound in thresholds)
        # Quadrants a, b, c, d are the bits (source, target) = 00, 01, 10, 11.
        sources = (sources << 1) | in_c
        targets = (targets << 1) | (in_b ^ in_c ^ in_d)
    if id_key is None:
        return sources, targets
    return rb.permute(sources, 1 << scale, id_key), rb.permute(targets, 1 << scale, id_key)


def erdos_renyi(
    n: int,
    m: int | None = None,
    p: float | None = None,
    seed: int = 1,
    directed: bool = False,
    weights: Weights = None,
) -> EdgeStream:
    """Draw a uniformly random simple graph, by its number of edges or by their probability.

    O(edges). There are no self-loops and no parallel edges.

    Args:
        n: Vertices.
        m: Edges; all sets of m pairs are equally likely, up to the quality of the permutation.
        p: Probability of each pair, instead of m.
        seed: The seed of the edges.
        directed: Whether edges have a direction.
        weights: None, or "random" for whole numbers in 1 .. 255.
    """
    check = _Check("erdos_renyi")
    n = check.whole("n", n, 0, 1 << 31)
    seed = check.seed_and_weights(seed, weights)
    check.claim("directed", directed)
    num_pairs = n * (n - 1) if directed else n * (n - 1) // 2
    if (m is None) == (p is None):
        check.fail(f"got m={m!r} and p={p!r}; give the number of edges m or the probability p, not both")
    if m is not None:
        num_edges = check.whole("m", m, 0, num_pairs)
    else:
        num_edges = _draw_binomial(num_pairs, check.share("p", p), seed)
    key = rb.subkey(seed, _PAIRS)
    pairs = _directed_pairs if directed else _undirected_pairs

    def draw(begin: int, end: int) -> Ends:
        # The first elements of a permutation of all pairs are a sample without repetition.
        return pairs(rb.permute(np.arange(begin, end), num_pairs, key), n)

    return EdgeStream(n, num_edges, draw, directed=directed, weights=weights, seed=seed)


def watts_strogatz(n: int, k: int, p: float, seed: int = 1, weights: Weights = None) -> EdgeStream:
    """Draw a small world: a ring whose edges are moved to far ends with probability p.

    The graph has exactly n * k / 2 undirected edges and no parallel ones: a moved edge keeps one end, and its other
    end becomes a vertex that is no neighbour on the ring, a different one for each moved edge of a vertex. If a
    vertex has fewer such vertices ahead than edges (k about n / 2 and above), some edges are not moved.

    Args:
        n: Vertices.
        k: Neighbours of each vertex on the ring, even.
        p: Probability that an edge moves.
        seed: The seed of the edges.
        weights: None, or "random" for whole numbers in 1 .. 255.

    Paper: Watts, Strogatz: Collective dynamics of "small-world" networks. Nature 393, 1998.
    """
    check = _Check("watts_strogatz")
    n = check.whole("n", n, 0, 1 << 32)
    k = check.whole("k", k, 0, min(max(n - 1, 0), 1 << 24))
    if k % 2:
        check.fail(f"k is {k}; every vertex starts with k/2 neighbours on either side: give an even k")
    p = check.share("p", p)
    seed = check.seed_and_weights(seed, weights)
    half = k // 2
    # Moved edges go forward to distances half + 1 .. half + num_far, so each pair can be drawn by one vertex only.
    num_far = max((n - 1) // 2 - half, 0)

    def draw(begin: int, end: int) -> Ends:
        edges = np.arange(begin, end)
        vertices, slots = np.divmod(edges, half)
        distances = slots + 1
        moves = rb.random_bits(edges, _MOVES, seed) >> np.uint64(11) < np.uint64(rb.threshold(p))
        moving = np.flatnonzero(moves & (slots < num_far))
        # One permutation a vertex, so its moved edges have different ends.
        keys = rb.random_bits(vertices[moving], _FAR, seed)
        distances[moving] = half + 1 + rb.permute(slots[moving], num_far, keys)
        return vertices, (vertices + distances) % n

    return EdgeStream(n, n * half, draw, weights=weights, seed=seed)


def grid(
    rows: int, columns: int, weights: Weights = None, diagonals: bool = False, seed: int = 1
) -> EdgeStream:
    """Draw a grid; with random weights it resembles a road network: small degrees, large diameter.

    Args:
        rows: Rows of vertices.
        columns: Vertices a row; vertex (i, j) has the id i * columns + j.
        weights: None, or "random" for whole numbers in 1 .. 255.
        diagonals: Whether to join diagonal neighbours too: 8 neighbours instead of 4.
        seed: The seed of the weights.
    """
    check = _Check("grid")
    rows = check.whole("rows", rows, 0, 1 << 32)
    columns = check.whole("columns", columns, 0, 1 << 32)
    if rows * columns > 1 << 40:
        check.fail(f"{rows} x {columns} vertices are more than 2**40: give fewer rows or columns")
    check.claim("diagonals", diagonals)
    seed = check.seed_and_weights(seed, weights)
    down, right = max(rows - 1, 0), max(columns - 1, 0)
    # Families of edges of one orientation: rows and columns of them, and the steps from a corner to both ends.
    families = [(rows, right, 0, 1), (down, columns, 0, columns)]
    if diagonals:
        families += [(down, right, 0, columns + 1), (down, right, 1, columns)]

    def draw(begin: int, end: int) -> Ends:
        parts: list[Ends] = []
        first = 0
        for height, width, to_source, to_target in families:
            lo, hi = max(begin - first, 0), min(end - first, height * width)
            if lo < hi:
                row, column = np.divmod(np.arange(lo, hi), width)
                corner = row * columns + column
                parts.append((corner + to_source, corner + to_target))
            first += height * width
        return _join([ends[0] for ends in parts]), _join([ends[1] for ends in parts])

    num_edges = sum(height * width for height, width, _, _ in families)
    return EdgeStream(rows * columns, num_edges, draw, weights=weights, seed=seed)


def path(n: int, weights: Weights = None, seed: int = 1) -> EdgeStream:
    """Draw the undirected path 0 - 1 - ... - (n - 1)."""
    check = _Check("path")
    n = check.whole("n", n, 0, 1 << 40)
    seed = check.seed_and_weights(seed, weights)

    def draw(begin: int, end: int) -> Ends:
        return np.arange(begin, end), np.arange(begin + 1, end + 1)

    return EdgeStream(n, max(n - 1, 0), draw, weights=weights, seed=seed)


def star(n: int, weights: Weights = None, seed: int = 1) -> EdgeStream:
    """Draw an undirected star of n vertices: 0 joined to each of 1 .. n - 1."""
    check = _Check("star")
    n = check.whole("n", n, 0, 1 << 40)
    seed = check.seed_and_weights(seed, weights)

    def draw(begin: int, end: int) -> Ends:
        return np.zeros(end - begin, dtype=np.int64), np.arange(begin + 1, end + 1)

    return EdgeStream(n, max(n - 1, 0), draw, weights=weights, seed=seed)


def complete(n: int, weights: Weights = None, seed: int = 1) -> EdgeStream:
    """Draw the undirected graph that joins all pairs of n vertices."""
    check = _Check("complete")
    n = check.whole("n", n, 0, 1 << 31)
    seed = check.seed_and_weights(seed, weights)
    return EdgeStream(
        n,
        n * (n - 1) // 2,
        lambda begin, end: _undirected_pairs(np.arange(begin, end), n),
        weights=weights,
        seed=seed,
    )


# Lanes of draws that are not levels of the recursive matrix; purposes of keys.
_MOVES, _FAR = 0, 1
_IDS, _PAIRS, _COUNT = 1, 2, 3


def _draw_rmat_compiled(
    begin: int, end: int, scale: int, thresholds: NDArray[np.uint64], seed: int, id_key: int | None
) -> Ends:
    from sigps.graph.generators import rmat_kernel

    sources = np.empty(end - begin, dtype=np.int64)
    targets = np.empty(end - begin, dtype=np.int64)
    key = np.uint64(rb.seed_key(seed))
    rmat_kernel.draw(np.uint64(begin), key, scale, thresholds, _round_keys(id_key), sources, targets)
    return sources, targets


def _round_keys(id_key: int | None) -> NDArray[np.uint64]:
    rounds = range(rb.FEISTEL_ROUNDS) if id_key is not None else range(0)
    return np.array([rb.round_key(id_key or 0, number) for number in rounds], dtype=np.uint64)


def _undirected_pairs(numbers: NDArray[np.int64], n: int) -> Ends:
    """Return the pair {u, v} of each number below n(n-1)/2.

    Pairs are counted round a circle, those at distance 1 first. There is no square root, so it is exact for any n.
    """
    distances, starts = np.divmod(numbers, max(n, 1))
    return starts, (starts + distances + 1) % max(n, 1)


def _directed_pairs(numbers: NDArray[np.int64], n: int) -> Ends:
    """Return the pair (u, v), u != v, of each number below n(n-1)."""
    sources, targets = np.divmod(numbers, max(n - 1, 1))
    return sources, targets + (targets >= sources)


def _draw_binomial(trials: int, probability: float, seed: int) -> int:
    if probability in (0.0, 1.0) or trials == 0:
        return trials if probability == 1.0 else 0
    # RandomState, because NumPy promises that its streams never change.
    state = np.random.RandomState(rb.subkey(seed, _COUNT) & 0xFFFFFFFF)
    return int(state.binomial(trials, probability))


def _join(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


class _Check:
    """Checks the arguments of one generator: `ConfigError` names the argument, its value and the rule."""

    def __init__(self, generator: str) -> None:
        self.generator = generator

    def fail(self, problem: str) -> NoReturn:
        raise ConfigError(f"generator {self.generator!r}: {problem}.")

    def whole(self, name: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            self.fail(f"{name} is {value!r}; give a whole number")
        if not least <= value <= most:
            self.fail(f"{name} is {value}; give a whole number from {least} to {most}")
        return int(value)

    def share(self, name: str, value: Any) -> float:
        is_number = isinstance(value, int | float | np.integer | np.floating)
        if isinstance(value, bool) or not is_number or not 0 <= value <= 1:
            self.fail(f"{name} is {value!r}; give a number from 0 to 1")
        return float(value)

    def claim(self, name: str, value: Any) -> None:
        if not isinstance(value, bool | np.bool_):
            self.fail(f"{name} is {value!r}; give true or false")

    def one_of(self, name: str, value: Any, choices: tuple[Any, ...]) -> None:
        if value not in choices:
            self.fail(f"{name} is {value!r}; give one of {', '.join(map(str, choices))}")

    def seed_and_weights(self, seed: Any, weights: Any) -> int:
        self.one_of("weights", weights, (None, "random"))
        return self.whole("seed", seed, 0, (1 << 63) - 1)
