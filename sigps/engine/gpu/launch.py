"""The execution configuration of the GPU engine: how many threads and blocks, as a pure function of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "CLUSTER_DEGREE",
    "MEDIUM",
    "NARROW",
    "NO_CLUSTER",
    "WIDE",
    "Cluster",
    "Near",
    "Shape",
    "choose_cluster",
    "choose_near",
    "choose_shape",
    "fit_cluster",
    "num_blocks",
]


@dataclass(frozen=True)
class Shape:
    """What a lease's kernel is compiled for.

    Attributes:
        threads: Threads of a block.
        blocks_per_sm: Blocks that a multiprocessor must be able to hold: what the compiler may spend registers for.
    """

    threads: int
    blocks_per_sm: int

    def macros(self) -> dict[str, str]:
        """Return what `kernels/lease.cu` is compiled with."""
        return {"SIGPS_THREADS": str(self.threads), "SIGPS_BLOCKS": str(self.blocks_per_sm)}


NARROW = Shape(256, 6)
"""Many small blocks: a search that stops at the first hit waits more than it computes."""

MEDIUM = Shape(256, 4)
"""Fewer, with more registers: an edge column beside each record, or loops of `compute()` over edges."""

WIDE = Shape(1024, 1)
"""One block has all the shared memory, in which the records are kept that are read most often."""


def choose_shape(*, record_bytes: int, stops_early: bool, reads_columns: bool, walks: bool = False) -> Shape:
    """Choose the shape for a program.

    Whoever gathers nothing but records is limited by how often these come from far away, and takes the shape that
    keeps some of them near. Where a pull stops at the first hit, or reads as much of each edge as of its source,
    that is not so.

    Args:
        record_bytes: The size of an outbox record; 0: none.
        stops_early: Whether a pull may stop before it has seen all.
        reads_columns: Whether messages need edge columns, or compute() what is kept on edges and rows of neighbours.
        walks: Whether compute() walks its out-edges, other than to send.

    >>> choose_shape(record_bytes=4, stops_early=False, reads_columns=False) == WIDE
    True
    """
    if reads_columns:
        return MEDIUM
    if not stops_early and record_bytes > 0:
        return WIDE
    return MEDIUM if walks else NARROW


@dataclass(frozen=True)
class Cluster:
    """A cluster of thread blocks, which does small supersteps by itself.

    Attributes:
        blocks: How many they are.
        threads: Threads of each; 0: there is none.
        most_messages: The messages of the largest superstep that is left to them.
    """

    blocks: int
    threads: int
    most_messages: int

    def macros(self) -> dict[str, str]:
        """Return what `kernels/lease.cu` is compiled with."""
        return {"SIGPS_CLUSTER_THREADS": str(self.threads)}

    @property
    def shared_bytes(self) -> int:
        """What each block lists: targets of two supersteps, all of which it may find."""
        return 2 * 4 * self.most_messages


CLUSTER_DEGREE = 64
"""The most out-edges that a vertex may have where a cluster works: it pushes as soon as it has computed.

That pays in meshes and road networks, which take thousands of supersteps.
"""

NO_CLUSTER = Cluster(0, 0, 0)
"""Blocks of this GPU cannot meet in clusters."""


def choose_cluster(arch: str) -> Cluster:
    """Choose the cluster for small supersteps: the largest that there is.

    >>> choose_cluster("sm_80") == NO_CLUSTER
    True
    """
    return Cluster(16, 1024, 1 << 14) if int(arch.removeprefix("sm_")) >= 90 else NO_CLUSTER


def fit_cluster(cluster: Cluster, shared_bytes: int) -> Cluster:
    """Leave less to a cluster whose lists take more shared memory than a block can have.

    >>> [fit_cluster(Cluster(16, 1024, 1 << 14), room).most_messages for room in (200_000, 100_000)]
    [16384, 8192]
    """
    while cluster.shared_bytes > shared_bytes:
        cluster = replace(cluster, most_messages=cluster.most_messages // 2)
    return cluster


_NEAR_SHARE = 0.8
"""How much of the shared memory that a block can have is used: what is left of it caches what is far."""

_NEAR_BITS = 1 << 18
"""The most vertices whose bits are copied: more are hardly read, and copying takes time."""

_MOST_FOR_GHOSTS = 0.9
"""The share of that which ghosts may take."""

_EDGES_PER_COPY = 8
"""Edges that a block must read for each vertex that it copies, or the copy does not pay."""


@dataclass(frozen=True)
class Near:
    """What of the first vertices each block copies to its shared memory in a pull.

    Attributes:
        num_records: Records; a multiple of 32.
        num_bits: Bits that tell who sent; a multiple of 32.
        num_bytes: The shared memory that this takes.
        num_ghosts: Records of the first ghosts; all of the hot ones, or none.
    """

    num_records: int
    num_bits: int
    num_bytes: int
    num_ghosts: int = 0


def choose_near(
    *,
    shared_bytes: int,
    record_bytes: int,
    num_vertices: int,
    num_edges: int,
    num_blocks: int,
    num_hot_ghosts: int = 0,
) -> Near:
    """Choose how many vertices' records and bits are worth a copy in every block.

    Args:
        shared_bytes: Dynamic shared memory that a block can have.
        record_bytes: The size of a record; 0: none. Records that are no whole words stay far.
        num_vertices: Vertices of the partition.
        num_edges: Its in-edges.
        num_blocks: Blocks of a lease.
        num_hot_ghosts: Places of ghosts that are read often.

    >>> choose_near(shared_bytes=200_000, record_bytes=4, num_vertices=10**6, num_edges=10**8, num_blocks=132)
    Near(num_records=37024, num_bits=94688, num_bytes=159932, num_ghosts=0)
    """
    worth = min(num_vertices, num_edges // num_blocks // _EDGES_PER_COPY)
    room = int(shared_bytes * _NEAR_SHARE)
    num_bits = min(worth, _NEAR_BITS, room * 8) // 32 * 32
    left = room - num_bits // 8
    if record_bytes == 0 or record_bytes % 4:
        return Near(0, num_bits, num_bits // 8)
    pays = num_hot_ghosts <= worth and num_hot_ghosts * record_bytes <= left * _MOST_FOR_GHOSTS
    num_ghosts = num_hot_ghosts if pays else 0
    left -= num_ghosts * record_bytes
    num_records = min(worth, left // record_bytes) // 32 * 32
    return Near(num_records, num_bits, (num_records + num_ghosts) * record_bytes + num_bits // 8, num_ghosts)


def num_blocks(resident: int, num_vertices: int, num_edges: int, threads: int) -> int:
    """Return how many blocks a lease takes: all that fit at once, and fewer where they would only wait.

    Args:
        resident: Blocks that the device holds at once.
        num_vertices: Vertices of the partition, each as often as threads compute it.
        num_edges: Its in-edges.
        threads: Threads of a block.

    >>> num_blocks(396, 100, 1000, 256), num_blocks(396, 4_000_000, 100_000_000, 256)
    (1, 396)
    """
    work = num_vertices + num_edges // 8
    return max(1, min(resident, -(-work // threads)))
