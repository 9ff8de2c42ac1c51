"""Whether a run's fixed point is found at once instead of by supersteps, and how: pure functions of counts.

Some programs end with a known function of the graph, whatever the order of messages: path lengths
(`compiler/proofs/path_lengths.py`), or the best value of each component (`compiler/proofs/priority.py`, along edges
that go both ways). On graphs of small degrees supersteps of these are thousands, and engines have loops for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = [
    "FIRST_SUPERSTEPS",
    "LEAST_EDGES",
    "LEAST_EDGES_OF_LENGTHS",
    "LEAST_PASSES",
    "LEAST_REAL_ON_GPU",
    "MESH_DEGREE",
    "NEAR_IDS",
    "Labels",
    "PageLabels",
    "Weights",
    "bucket_width",
    "choose_labels",
    "choose_page_labels",
    "contracts_without_barriers",
    "exact_labels",
    "falls_again",
    "is_mesh",
    "may_reorder",
    "pays_without_barriers",
    "real_width",
]

MESH_DEGREE = 64
"""The most edges of a vertex of a mesh, in one direction. Where some have more, supersteps are few."""

MEAN_DEGREE = 16
"""The most out-edges that its vertices may have on average."""

LEAST_EDGES = 1 << 14
"""Smaller graphs gain nothing, and keep the supersteps as they are written."""

LEAST_EDGES_OF_LENGTHS = 1 << 13
"""The same of lengths on a CPU core.

`SSSP` with whole weights and lengths with real ones, processor milliseconds by supersteps and at once: rome99 (8,870
edges) 0.93 and 0.68, 0.89 and 0.63; grids of 50 rows (9,800) 0.76 and 0.64, 0.57 and 0.52, of 32 (3,968) 0.48 and 0.61,
0.44 and 0.49.
"""


def may_reorder(
    asynchronous: bool | Literal["auto"], *, max_supersteps: int | None, saves: bool, schedule: str
) -> bool | Literal["auto"]:
    """Return whether a run may have fewer barriers, as it was asked for; False where its supersteps are wanted.

    >>> [may_reorder("auto", max_supersteps=most, saves=False, schedule="vertex") for most in (None, 3)]
    ['auto', False]
    """
    wants_supersteps = max_supersteps is not None or saves or schedule != "vertex"
    return asynchronous if asynchronous is True or not wants_supersteps else False


def is_mesh(*, num_vertices: int, num_edges: int, largest_degree: int, of_lengths: bool = False) -> bool:
    """Tell whether a graph is a mesh or a road network, as far as degrees tell.

    Degrees do not tell it from a random graph of the same degrees. There it costs little (2 cores, milliseconds a run,
    at once and by supersteps): SSSP on 200,000 vertices of 8 random neighbours 46 and 69, WCC 12.1 and 10.1; of 32
    neighbours 85 and 68, 13.3 and 6.6.

    Args:
        num_vertices: Of the graph.
        num_edges: Of the graph.
        largest_degree: In one direction.
        of_lengths: Whether lengths are wanted, on a CPU core: they gain on smaller graphs.

    >>> [is_mesh(num_vertices=10**6, num_edges=4 * 10**6, largest_degree=most) for most in (4, 10_000)]
    [True, False]
    """
    is_even = largest_degree <= MESH_DEGREE and num_edges <= MEAN_DEGREE * num_vertices
    least = min(LEAST_EDGES, LEAST_EDGES_OF_LENGTHS) if of_lengths else LEAST_EDGES
    return num_edges >= least and is_even


@dataclass(frozen=True)
class Weights:
    """What is known of all weights.

    Attributes:
        are_whole: Whether they are whole numbers from 0 to 2**53.
        least: The least; 0 where they are not.
        greatest: The greatest.
        real: The least and the greatest of numbers that are not all whole, and from 0 on; None of others.
    """

    are_whole: bool
    least: int
    greatest: int
    real: tuple[float, float] | None = None


@dataclass(frozen=True)
class Labels:
    """How a length and a number of edges make one label: `length * unit + edges` (`kernels/cpu/path_lengths.py`).

    Attributes:
        unit: A power of two beyond any number of edges of a path.
        longest: The greatest length that a label and the program's type hold exactly.
    """

    unit: int
    longest: int

    @property
    def most(self) -> int:
        """The greatest label."""
        return self.longest * self.unit + self.unit - 1


def choose_labels(weights: Weights, num_vertices: int, length: np.dtype[np.floating]) -> Labels | None:
    """Choose labels for path lengths; None where lengths may be rounded, or supersteps are as good.

    Where all weights are equal, every vertex gets its length at once, and supersteps do no more than is needed.

    Args:
        weights: Of the edges.
        num_vertices: Of the graph.
        length: The type of lengths.

    >>> choose_labels(Weights(True, 1, 255), 1000, np.dtype(np.float32))
    Labels(unit=1024, longest=16777216)
    >>> choose_labels(Weights(False, 0, 0), 1000, np.dtype(np.float32)) is None
    True
    """
    return None if weights.least == weights.greatest else exact_labels(weights, num_vertices, length)


def exact_labels(weights: Weights, num_vertices: int, length: np.dtype[np.floating]) -> Labels | None:
    """Return labels for path lengths; None where lengths may be rounded. Arguments are those of `choose_labels`.

    >>> exact_labels(Weights(True, 1, 1), 1000, np.dtype(np.float32))
    Labels(unit=1024, longest=16777216)
    """
    if not weights.are_whole:
        return None
    bits = num_vertices.bit_length()
    longest = min(1 << np.finfo(length).nmant + 1, (1 << 60 - bits) - 1)
    return Labels(1 << bits, longest) if weights.greatest <= longest else None


@dataclass(frozen=True)
class PageLabels:
    """How a length, a number of edges and a last vertex make one label of 63 bits, the length highest.

    Attributes:
        id_bits: Of the last vertex's id.
        edge_bits: Of the edges of a path.
        longest: The greatest length that a label and the program's type hold exactly.
    """

    id_bits: int
    edge_bits: int
    longest: int


def choose_page_labels(num_vertices: int, length: np.dtype[np.floating]) -> PageLabels | None:
    """Choose labels for path lengths along edges that stay packed; None where a label has no room for them.

    Two thirds of what ids leave is the length's, a third that of edges: paths are found in an order that makes them
    few. What does not fit after all is found out on the way.

    Args:
        num_vertices: Of the graph; ids are to be no greater.
        length: The type of lengths.

    >>> choose_page_labels(1 << 28, np.dtype(np.float64))
    PageLabels(id_bits=29, edge_bits=11, longest=8388606)
    >>> choose_page_labels(1 << 50, np.dtype(np.float64)) is None
    True
    """
    id_bits = num_vertices.bit_length()
    edge_bits = (63 - id_bits) // 3
    if edge_bits < _LEAST_EDGE_BITS:
        return None
    longest = (1 << 63 - id_bits - edge_bits) - 2
    return PageLabels(id_bits, edge_bits, min(longest, 1 << np.finfo(length).nmant + 1))


_LEAST_EDGE_BITS = 8

LEAST_REAL_ON_GPU = 1 << 19
"""Smaller graphs take a GPU as long by supersteps (luxembourg_osm, 239,000 edges: 5.0 ms, at once 6.6)."""


def real_width(
    weights: Weights, keys: Iterable[np.dtype[Any]], *, is_gpu: bool, num_edges: int
) -> float | None:
    """Return how wide buckets of lengths are where weights are not whole; None where supersteps find them.

    They are sums in double precision, as supersteps make them, so all keys of the program must be. A bucket is as wide
    as the greatest weight on a CPU core, and sixteen times that on a GPU, which waits for rounds: on USA-road-NE it
    takes 15.7, 11.1 and 8.6 ms at once, 4 and 16 times that. There supersteps are as good on smaller graphs.

    Args:
        weights: Of the edges.
        keys: The types in which the program keeps and sends lengths.
        is_gpu: Whether a GPU finds them.
        num_edges: Of the graph.

    >>> lengths = [np.dtype(np.float64)]
    >>> real_width(Weights(False, 0, 0, (0.1, 0.5)), lengths, is_gpu=True, num_edges=10**6)
    8.0
    >>> real_width(Weights(False, 0, 0, (0.1, 0.5)), [np.dtype(np.float32)], is_gpu=False, num_edges=10**6) is None
    True
    """
    if is_gpu and num_edges < LEAST_REAL_ON_GPU:
        return None
    if weights.real is None or any(dtype != np.float64 for dtype in keys):
        return None
    least, greatest = weights.real
    width = greatest * (16 if is_gpu else 1)
    return width if least < greatest and np.isfinite(width) else None


FIRST_SUPERSTEPS = 128
"""Supersteps that a run without barriers by itself begins with.

Degrees do not tell a mesh from a random graph, and this does: there supersteps are over by then. Without barriers
200,000 vertices of 4, 8 and 16 random neighbours took 58, 120 and 225 ms, by supersteps 42, 67 and 90 (2 cores).
"""

LEAST_PASSES = 3.2
"""How often edges were passed after those supersteps, from which on no barriers pay.

Lengths with weights that are no whole numbers, processor time of two cores, without barriers over supersteps:
luxembourg 2.5 passes, 2.7 times as long; grid-200 4.0, 0.6; grid-500 6.0, 0.4; USA-road-NY 13.3, 0.5; USA-road-NE 12.9,
0.2.
"""


def falls_again(*, passes: float, early: int, late: int) -> bool:
    """Tell whether keys fall again and again, in more vertices: then supersteps that are left pass edges over and over.

    Args:
        passes: Messages of the first supersteps, over the out-edges of all vertices that have sent.
        early: Vertices that sent in the superstep in the middle of these.
        late: Vertices that sent in the last one: fewer, where the run nears its end (delaunay_n16: 15,824 and 2,211;
            19.4 passes, and 1.2 times as long without barriers).

    >>> [falls_again(passes=passes, early=347, late=late) for passes, late in ((2.5, 499), (4.0, 499), (4.0, 80))]
    [False, True, False]
    """
    return passes >= LEAST_PASSES and late >= early


def pays_without_barriers(*, is_mesh: bool, adds_column: bool, are_equal: bool) -> str:
    """Say why a program that is proved to need no barriers goes on without them by itself; empty where it does not.

    Where all weights are equal, or none are added, supersteps reach each vertex by a best path first (2 cores, SSSP on
    USA-road-NE without weights: 130 ms by supersteps, 443 without). Where some vertices have many edges supersteps are
    few, and most vertices improve in each.

    Args:
        is_mesh: Whether the graph is one rank's, with the degrees of a mesh.
        adds_column: Whether an edge adds a number of its own to keys.
        are_equal: Whether these numbers are all the same.

    >>> pays_without_barriers(is_mesh=True, adds_column=True, are_equal=False)
    'on a mesh keys with weights fall again and again by supersteps'
    """
    if is_mesh and adds_column and not are_equal:
        return "on a mesh keys with weights fall again and again by supersteps"
    return ""


NEAR_IDS = 1024
"""Ids that differ by less are near: their vertices are mostly in one block of a contraction."""

_LEAST_NEAR = 0.4
_TURNS_OF_A_SWEEP = 1.75


def contracts_without_barriers(*, factor: float, rate: float, near: float) -> tuple[str, bool]:
    """Say how a declared contraction goes on after its first supersteps, and whether that is without barriers.

    Without barriers what is left shrinks by about the square of the factor in a sweep, which takes 1.3 to 1.8 times as
    long as a superstep. So supersteps are better where they shrink it by less than the factor to the power of that: on
    Kronecker and random graphs (0.39 to 0.58 a superstep of PageRank, whose factor is 0.85), delaunay_n16 (0.70) and
    small worlds (0.75); and not on web-NotreDame, dblp-2010, cnr-2000, roads and grids (0.77 to 0.83). And they are
    where edges join ids far from each other, so that blocks lack what they read: soc-Slashdot0902 (0.83).

    Args:
        factor: What the class declares.
        rate: By what a superstep made the change of all states smaller.
        near: Share of edges that join near ids.

    >>> contracts_without_barriers(factor=0.85, rate=0.79, near=0.66)
    ('a superstep leaves 0.79 of what the last one changed, and 66 % of the edges join near ids', True)
    >>> contracts_without_barriers(factor=0.85, rate=0.58, near=0.02)[1]
    False
    """
    why = f"a superstep leaves {rate:.2f} of what the last one changed, and {near:.0%} of the edges join near ids"
    return why.replace("%", " %"), rate >= factor**_TURNS_OF_A_SWEEP and near >= _LEAST_NEAR


def bucket_width(weights: Weights, labels: Labels, *, is_gpu: bool) -> int:
    """Return how wide buckets of labels are: the greatest weight on a CPU core, four times that on a GPU.

    A wide bucket passes more labels on that are not the last; a narrow one has fewer vertices at a time. A core that
    takes one vertex after another passes 1.08 times the edges on grid-500 (weights 1 to 255), 1.41 at four times the
    width. All vertices of a bucket at once pass 1.17 times the edges of grid-1000 in 4,055 rounds, 1.72 in 2,822 at
    four times the width; there a GPU waits for rounds.

    >>> bucket_width(Weights(True, 1, 255), Labels(1024, 1 << 24), is_gpu=False)
    261120
    """
    return weights.greatest * labels.unit * (4 if is_gpu else 1)
