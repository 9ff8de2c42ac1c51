"""How long supersteps take on some number of ranks: predicted from what was measured, as pure functions of counts.

A dense superstep, in which every vertex sends along every edge, takes as long as its bytes take to move; a small
one takes as long as ranks take for a barrier. A search is many of the second kind, and passes each edge about once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sigps.costs.sizes import PartitionSize
from sigps.costs.work import Work
from sigps.system.master import GIGABYTES_PER_SECOND_OF_A_CORE

__all__ = [
    "PAYS",
    "Device",
    "core_seconds",
    "cpu_cores",
    "crossing_seconds",
    "dense_seconds",
    "gain_of_cores",
    "h200",
    "most_edges_of_small",
    "most_supersteps",
    "search_seconds",
    "unpacking_seconds",
]


@dataclass(frozen=True)
class Device:
    """What a prediction needs of the device on which a rank computes.

    Attributes:
        name: Its name in the output.
        bytes_per_second: The bandwidth of its memory that a dense superstep reaches.
        ghost_cost: What an edge from a ghost costs, where one from an owned vertex costs 1.
        exchanged_per_second: Bytes of records that it receives from other ranks, while all do.
        latencies: Seconds of a superstep in which one vertex runs, by the number of ranks.
        wave_seconds: Seconds that a frontier of some thousand vertices adds to that: reads that wait for memory.
        memory_bytes: Bytes of its memory; infinite where ranks share a host's.
        tiled_edge_seconds: Seconds of an edge in tiles, of records of 4 bytes that caches hold; None where no edges lie
            in tiles.
    """

    name: str
    bytes_per_second: float
    ghost_cost: float
    exchanged_per_second: float
    latencies: Mapping[int, float]
    wave_seconds: float
    memory_bytes: float = math.inf
    tiled_edge_seconds: float | None = None

    def latency(self, num_ranks: int) -> float:
        """Return the seconds of the smallest superstep: of the nearest number of ranks measured, the larger one."""
        above = [n for n in self.latencies if n >= num_ranks]
        return self.latencies[min(above) if above else max(self.latencies)]


def h200(*, by_peers: bool = True) -> Device:
    """Return an NVIDIA H200, as measured on one, two and four of them.

    Args:
        by_peers: Whether GPUs write into each other's memory; else records go through the host, whose times are
            least times: a launch and an answer, one copy out and one in.
    """
    return Device(
        "NVIDIA H200",
        bytes_per_second=_REACHED_ON_H200 * 4.19e12,
        ghost_cost=1.5,  # fitted to PageRank on two and four GPUs, with half and 3/4 of the edges from ghosts
        exchanged_per_second=360e9 if by_peers else 55e9 / 2,
        # A path. Eight: what their barrier takes beyond that of four.
        latencies={1: 3.1e-6, 2: 10.9e-6, 4: 12.3e-6, 8: 12.4e-6} if by_peers else {1: 3.1e-6, 2: 20e-6},
        wave_seconds=4.3e-6,  # fitted to a search through a grid of 4000 x 4000 on one GPU
        memory_bytes=143e9,
        tiled_edge_seconds=1.75e-12,
    )


_REACHED_ON_H200 = 0.45
"""Of what its memory copies: PageRank reaches 0.51 on kron-22, and 0.39 on kron-24, where caches hold fewer records."""


def cpu_cores(num_cores: int, num_ranks: int) -> Device:
    """Return the cores that a rank has of a host with `num_cores`, which all ranks share."""
    bytes_per_second = _REACHED_ON_CORES * 1e9 * GIGABYTES_PER_SECOND_OF_A_CORE * num_cores / num_ranks
    return Device(
        f"{num_cores} CPU core{'s' * (num_cores > 1)} of one host",
        bytes_per_second=bytes_per_second,
        ghost_cost=1.0,
        exchanged_per_second=bytes_per_second / 2,  # written once and read once
        latencies={1: 22e-6, 2: 130e-6},  # along a path, on two cores that others used too
        wave_seconds=0.0,
    )


_REACHED_ON_CORES = 0.3
"""Of a core's share of memory's bandwidth: PageRank reaches 0.28 on kron-20, and 0.58 on kron-18 with its caches."""


def dense_seconds(
    partition: PartitionSize, work: Work, device: Device, num_ranks: int, *, in_tiles: bool = False
) -> float:
    """Predict a superstep in which every vertex sends along every edge.

    It ends when the slowest rank ends: edges and vertices move through its memory, records of its ghosts arrive, and
    all ranks pass a barrier. Edges in tiles take the longer the more vertices there are: more segments, whose pairs are
    shorter.

    >>> kron_22 = PartitionSize(4_194_304, 128_305_110)
    >>> round(dense_seconds(kron_22, Work(record=4, edge=8, vertex=13), h200(), 1) * 1e3, 2)
    0.58
    """
    edges = partition.edges + (device.ghost_cost - 1) * partition.cut_edges
    if in_tiles and device.tiled_edge_seconds is not None:
        more: float = (
            max(1.0, (partition.vertices + partition.ghosts) / (1 << 24)) ** 0.4 * (work.record / 4) ** 0.6
        )
        computed = edges * device.tiled_edge_seconds * more
    else:
        computed = (edges * work.edge + partition.vertices * work.vertex) / device.bytes_per_second
    exchanged = partition.ghosts * work.record / device.exchanged_per_second
    return computed + exchanged + device.latency(num_ranks)


def unpacking_seconds(arcs: int, rows: int, num_threads: int) -> float:
    """Predict what reading and unpacking edges of a packed store adds to a superstep on CPU cores.

    Measured on a core: 1.75 and 2.2 ns an arc of kron-20 by degree and in the given order, with 0.02 and 0.03 rows an
    arc, 3.2 of a grid, with 0.25.

    >>> round(unpacking_seconds(31_401_118, 1_048_576, 2) * 1e3)
    32
    """
    return (1.9e-9 * arcs + 5e-9 * rows) / num_threads


def crossing_seconds(streamed: int, arcs: int) -> float:
    """Predict a superstep on a GPU that reads all edges packed, of which some cross from its host.

    Measured on an NVIDIA H200 on PCIe 5, PageRank on kron-22, 24 and 26: 4.8, 17.3 and 72 ms with all on the host, 9.2
    and 36.5 on the last two with half of them there, 5.6 on kron-24 with none: then unpacking takes longest.

    Args:
        streamed: Packed bytes that cross.
        arcs: All edges.

    >>> [round(crossing_seconds(*given) * 1e3, 1) for given in ((821_623_424, 520_754_718), (0, 520_754_718))]
    [17.1, 6.1]
    """
    return max(_BEFORE_CROSSING + streamed / 51e9 if streamed else 0.0, arcs / 85e9)


_BEFORE_CROSSING = 1e-3
"""Seconds of a superstep in which nothing crosses yet, or no more."""

PAYS = 1.1
"""How many times faster cores would have to make a GPU that streams, to be worth a queue that both draw pages from."""


def gain_of_cores(streamed: int, arcs: int, record_bytes: int, num_cores: int) -> float:
    """Predict how many times faster a GPU's superstep would be at best, if cores of its host pulled some of the pages.

    At best: what crosses for it, all records there and those of the cores' vertices back, takes no time.

    Args:
        streamed: Packed bytes that cross to the GPU; cores gain nothing where none do.
        arcs: All edges.
        record_bytes: Of the records of all vertices.
        num_cores: Of the GPU's host.

    >>> round(gain_of_cores(13_714_200_000, 8_472_301_056, 4 << 28, 16), 2)
    1.06
    """
    if not streamed or not arcs:
        return 1.0
    seconds = crossing_seconds(streamed, arcs)
    fixed = min(_BEFORE_CROSSING, seconds)
    pulled = arcs / max(seconds - fixed, 1e-9) + num_cores / core_seconds(record_bytes)
    return seconds / (fixed + arcs / pulled)


def core_seconds(record_bytes: int) -> float:
    """Predict what a core takes to pull an arc of packed pages.

    Measured on a core of an AMD EPYC (`scripts/bench/cores_beside_gpu.py`): 2.6, 3.4, 5.4, 5.9, 6.9 and 8.8 ns of
    kron-20, 22, 24, 26, 27 and 28, with records of 4 bytes.

    Args:
        record_bytes: Of the records of all vertices.
    """
    return max(2e-9, 2.5e-9 + 0.7e-9 * math.log2(max(1, record_bytes) / (4 << 20)))


def search_seconds(
    supersteps: int,
    partition: PartitionSize,
    work: Work,
    device: Device,
    num_ranks: int,
    *,
    is_wave: bool = True,
) -> float:
    """Predict a run of many supersteps that together pass each edge about once.

    With `is_wave` thousands of vertices run in a superstep; else one does, as along a path.
    """
    once = dense_seconds(partition, work, device, num_ranks) - device.latency(num_ranks)
    wave = device.wave_seconds if is_wave else 0.0
    return supersteps * (device.latency(num_ranks) + wave) + once


def most_supersteps(dense: tuple[float, float], latency: tuple[float, float]) -> float:
    """Return in how many supersteps a search takes as long on few ranks as on many; in more, few are faster.

    Args:
        dense: Seconds of a dense superstep on the few and on the many.
        latency: Those of a small superstep.

    Returns:
        0 where the few are always faster, infinity where they never are.

    >>> round(most_supersteps((0.5e-3, 0.4e-3), (3e-6, 13e-6)))
    11
    """
    gained = (dense[0] - latency[0]) - (dense[1] - latency[1])
    lost = latency[1] - latency[0]
    if gained <= 0:
        return 0.0 if lost >= 0 else math.inf
    return gained / lost if lost > 0 else math.inf


def most_edges_of_small(num_edges: int, supersteps: float) -> float:
    """Return how many edges pass in a superstep that takes as long on few ranks as on many.

    `supersteps` is what `most_supersteps` returned for the graph.
    """
    return num_edges / supersteps if supersteps > 0 else math.inf
