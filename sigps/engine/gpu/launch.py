"""The execution configuration of the GPU engine: how many threads and blocks, as a pure function of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = [
    "CLUSTER_DEGREE",
    "GROUPED",
    "MEDIUM",
    "NARROW",
    "NO_CLUSTER",
    "ROOMY",
    "WIDE",
    "Cluster",
    "Shape",
    "SharedCache",
    "choose_cluster",
    "choose_shape",
    "choose_shared_cache",
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
        """Return what `kernels/cuda/lease.cu` is compiled with."""
        return {"SIGPS_THREADS": str(self.threads), "SIGPS_BLOCKS": str(self.blocks_per_sm)}


NARROW = Shape(256, 6)
"""Many small blocks: a search that stops at the first hit waits more than it computes."""

MEDIUM = Shape(256, 4)
"""Fewer, with more registers: for an edge column beside each record, or loops of `compute()` over edges."""

WIDE = Shape(1024, 1)
"""One block has all the shared memory, which caches the records that are read most often, or is a team."""

MOST_IN_FEW_REGISTERS = 32
"""Bytes of a record up to which a thread needs few registers to combine."""

ROOMY = Shape(256, 1)
"""Few threads with all registers: for a vector that a thread combines. Sixteen floats a message take 0.65 ms a
superstep on kron-20, and 1.67 by 1024 threads, which keep them in memory (NVIDIA H200)."""

GROUPED = Shape(512, 2)
"""Tables of keys in shared memory, one a warp; the more threads a block has, the sooner a row of many edges is done."""


def choose_shape(
    *,
    record_bytes: int,
    stops_early: bool,
    reads_columns: bool,
    walks: bool = False,
    has_teams: bool = False,
) -> Shape:
    """Choose the shape for a program.

    A program that gathers nothing but records is limited by how many of these come from L2 and beyond, and takes the
    shape with a shared-memory cache of records. That is not so where a pull stops at the first hit, or reads as much
    of each edge as of its source.

    Args:
        record_bytes: The size of an outbox record; 0: none.
        stops_early: Whether a pull may stop before it has seen all.
        reads_columns: Whether messages need edge columns, or compute() edge states and rows of neighbours.
        walks: Whether compute() walks its out-edges, other than to send.
        has_teams: Whether a block shares a vertex with many edges or messages; the larger it is, the better.

    >>> choose_shape(record_bytes=4, stops_early=False, reads_columns=False) == WIDE
    True
    """
    if has_teams:
        return WIDE
    if record_bytes > MOST_IN_FEW_REGISTERS:
        return ROOMY
    if reads_columns:
        return MEDIUM
    if not stops_early and record_bytes > 0:
        return WIDE
    return NARROW if stops_early and not walks else MEDIUM


@dataclass(frozen=True)
class Cluster:
    """A cluster of thread blocks, which runs small supersteps in the small-frontier kernel.

    Attributes:
        blocks: How many they are.
        threads: Threads of each; 0: there is none.
        most_messages: The messages of the largest superstep that it runs; 16 bits count its vertices.
        places: Of each block's list of targets. A block finds about its share of them; one that finds more ends the
            kernel.
    """

    blocks: int
    threads: int
    most_messages: int
    places: int

    def macros(self) -> dict[str, str]:
        """Return what `kernels/cuda/lease.cu` is compiled with."""
        return {"SIGPS_CLUSTER_THREADS": str(self.threads)}

    @property
    def shared_bytes(self) -> int:
        """The bytes of a block's lists: targets of two supersteps."""
        return 2 * 4 * self.places


CLUSTER_DEGREE = 64
"""The most out-edges that a vertex may have where a cluster works: it pushes as soon as it has computed.

That pays in meshes and road networks, which take thousands of supersteps.
"""

NO_CLUSTER = Cluster(0, 0, 0, 0)
"""This GPU has no clusters of blocks."""


def choose_cluster(arch: str) -> Cluster:
    """Choose the cluster of the small-frontier kernel: the largest that there is.

    >>> choose_cluster("sm_80") == NO_CLUSTER
    True
    """
    return Cluster(16, 1024, 1 << 14, 1 << 14) if int(arch.removeprefix("sm_")) >= 90 else NO_CLUSTER


def fit_cluster(cluster: Cluster, shared_bytes: int) -> Cluster:
    """Halve the places of a cluster's lists until they fit the shared memory of a block.

    >>> [fit_cluster(Cluster(16, 1024, 1 << 14, 1 << 14), num_bytes).places for num_bytes in (200_000, 100_000)]
    [16384, 8192]
    """
    while cluster.shared_bytes > shared_bytes:
        cluster = replace(cluster, places=cluster.places // 2)
    return cluster


_CACHE_SHARE = 0.8
"""The share of a block's shared memory that is used: the rest is left to the L1 cache."""

_CACHED_BITS = 1 << 18
"""The most vertices whose bits are copied: those of others are hardly read, and copying takes time."""

_GHOST_SHARE = 0.9
"""The share of the cache that ghosts may take."""

_EDGES_PER_COPY = 8
"""Edges that a block must read for each vertex that it copies, so that the copy pays."""


@dataclass(frozen=True)
class SharedCache:
    """The shared-memory cache of each block in a pull: records and sender bits of the first vertices.

    Attributes:
        num_records: Records of owned vertices; a multiple of 32.
        num_bits: Bits of the sender bitmap; a multiple of 32.
        num_bytes: Its size.
        num_ghosts: Records of the hot ghosts; of all, or none.
    """

    num_records: int
    num_bits: int
    num_bytes: int
    num_ghosts: int = 0


def choose_shared_cache(
    *,
    shared_bytes: int,
    record_bytes: int,
    num_vertices: int,
    num_edges: int,
    num_blocks: int,
    num_hot_ghosts: int = 0,
) -> SharedCache:
    """Choose how many vertices' records and sender bits every block caches.

    Args:
        shared_bytes: Dynamic shared memory that a block can have.
        record_bytes: The size of a record; 0: none. Records that are no whole words are not cached.
        num_vertices: Vertices of the partition.
        num_edges: Its in-edges.
        num_blocks: Blocks of a lease.
        num_hot_ghosts: Local ids of hot ghosts.

    >>> choose_shared_cache(shared_bytes=200_000, record_bytes=4, num_vertices=10**6, num_edges=10**8, num_blocks=132)
    SharedCache(num_records=37024, num_bits=94688, num_bytes=159932, num_ghosts=0)
    """
    worth = min(num_vertices, num_edges // num_blocks // _EDGES_PER_COPY)
    most_bytes = int(shared_bytes * _CACHE_SHARE)
    num_bits = min(worth, _CACHED_BITS, most_bytes * 8) // 32 * 32
    left = most_bytes - num_bits // 8
    if record_bytes == 0 or record_bytes % 4:
        return SharedCache(0, num_bits, num_bits // 8)
    pays = num_hot_ghosts <= worth and num_hot_ghosts * record_bytes <= left * _GHOST_SHARE
    num_ghosts = num_hot_ghosts if pays else 0
    left -= num_ghosts * record_bytes
    num_records = min(worth, left // record_bytes) // 32 * 32
    return SharedCache(
        num_records, num_bits, (num_records + num_ghosts) * record_bytes + num_bits // 8, num_ghosts
    )


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
