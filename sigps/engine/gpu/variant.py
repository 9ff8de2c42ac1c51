"""A vertex program linked into `kernels/cuda/lease.cu` and loaded, and the shape of its launches."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from sigps.compiler.cuda.compile import CudaProgram, c_type, compile_for_cuda, find_atomics_obstacle, link
from sigps.compiler.program import Consumption, Delivery, EarlyExit, VertexProgram
from sigps.device.cuda import Gpu, Kernel, Module
from sigps.device.linking import link_ahead
from sigps.engine.direction import GPU_PULL_GAIN, GPU_PULL_GAIN_EARLY
from sigps.engine.gpu.launch import (
    GROUPED,
    MEDIUM,
    NO_CLUSTER,
    WIDE,
    Cluster,
    Shape,
    SharedCache,
    choose_cluster,
    choose_shared_cache,
    fit_cluster,
)
from sigps.engine.gpu.memory_plan import can_cluster, shape_of, shape_over_packed, table_bytes
from sigps.engine.gpu.open_loops import connect
from sigps.engine.gpu.tiling import record_bytes_of, segment_size, shared_bytes_of
from sigps.errors import DeviceError

__all__ = [
    "BY_EDGE",
    "FED",
    "PEERS",
    "LeaseForm",
    "Packing",
    "Variant",
    "find_edge_obstacle",
    "link_variant_ahead",
    "load_variant",
]

PEERS = {"SIGPS_PEERS": "1"}
"""Macros of `kernels/cuda/lease.cu` where GPUs write into each other's memory."""

FED = {"SIGPS_FED": "1"}
"""Macros where some packed pages stay on disk."""

BY_EDGE = {"SIGPS_BY_EDGE": "1"}
"""Macros of the edge schedule."""

TURNS = {"SIGPS_TURNS": "1"}
"""Macros where leases end by the clock. In all kernels it cost a search 4 % (kron-22, 0.344 ms for 0.332)."""

TILES = {"SIGPS_TILES": "1"}
"""Macros where in-edges lie in tiles and rows."""

IN_PIECES = {"SIGPS_IN_PIECES": "1"}
"""Macros where every row of in-edges lies in one piece."""

TILE_COLUMNS = {"SIGPS_TILE_COLUMNS": "1"}
"""Macros where edges have columns there whose values differ."""


class Packing(Enum):
    """How a run goes over in-edges that stay packed; the value is SIGPS_PACKED."""

    NONE = 0
    """They do not."""
    ABSENT = -1
    """They do, and are not read: nothing goes along edges."""
    PULLED = 1
    """Pulls read all pages."""
    PUSHED = 2
    """They are the out-edges, too, and rows may be read where they lie."""
    PART = 3
    """They are those of one of several ranks; pulls read all pages."""
    PUSHED_PART = 4
    """Both: a sender's row has its edges to all ranks, and messages to their vertices cross (`crossing.cuh`)."""

    @property
    def is_part(self) -> bool:
        """Whether they are those of one of several ranks."""
        return self in (Packing.PART, Packing.PUSHED_PART)

    @property
    def reads_pages(self) -> bool:
        """Whether kernels read packed pages."""
        return self not in (Packing.NONE, Packing.ABSENT)

    @property
    def pulls_alone(self) -> bool:
        """Whether nothing is pushed, of edges that stay packed."""
        return self in (Packing.ABSENT, Packing.PULLED, Packing.PART)

    def macros(self, compiled: CudaProgram, *, has_heads: bool) -> dict[str, str]:
        """Return what `kernels/cuda/lease.cu` is compiled with: what is read of a row is all of it."""
        if not self.reads_pages:
            return {}
        stops_early = has_heads and compiled.program.early_exit is not EarlyExit.NEVER
        heads = {"SIGPS_HEADS": "1"} if stops_early else {}
        program = compiled.program
        types = dict(
            zip(
                (*program.edge_columns, *program.read_columns),
                itertools.chain(*compiled.columns),
                strict=True,
            )
        )
        columns = {"SIGPS_COLUMN_TYPES": ",".join(map(c_type, types.values()))} if types else {}
        if program.read_columns:
            walked = [program.read_columns.index(c) if c in program.read_columns else -1 for c in types]
            columns["SIGPS_WALKED_COLUMNS"] = ",".join(map(str, walked))
        goes_by_rows = program.delivery is not Delivery.DIRECT
        has_one = goes_by_rows and (program.reads_all_at_once or program.reads_edges)
        one_computes = {"SIGPS_BY_TEAM": "0"} if has_one else {}
        return {"SIGPS_PACKED": str(self.value), "SIGPS_EARLY_EXIT": "0"} | heads | columns | one_computes


@dataclass(frozen=True)
class LeaseForm:
    """How leases go over a partition, which their kernels are compiled for.

    Attributes:
        has_peers: Whether GPUs write into each other's memory.
        goes_by_edge: Whether the run goes by the edge schedule.
        has_tiles: Whether in-edges lie in tiles and rows.
        has_tile_columns: Whether edges in tiles have columns whose values differ.
        packing: Whether in-edges stay packed, and how the run goes over them.
        has_heads: Whether their rows have heads on the device.
        is_fed: Whether some packed pages stay on disk.
        in_pieces: Whether every row of in-edges lies in one piece, also those that a thread takes.
        is_mesh: Whether no vertex has more out-edges than a cluster takes.
        has_turns: Whether leases end by the clock, and leave states by gid.
        page_turns: How often a packed page that is open is computed at most; more than once without barriers.
    """

    has_peers: bool = False
    goes_by_edge: bool = False
    has_tiles: bool = False
    has_tile_columns: bool = False
    packing: Packing = Packing.NONE
    has_heads: bool = False
    is_fed: bool = False
    in_pieces: bool = False
    is_mesh: bool = False
    has_turns: bool = False
    page_turns: int = 1

    def shape(self, compiled: CudaProgram) -> Shape:
        """Return the blocks of a lease."""
        if self.goes_by_edge:
            return MEDIUM
        if self.packing.reads_pages:
            return shape_over_packed(compiled.program)
        return WIDE if self.has_tiles else shape_of(compiled)

    def may_cluster(self, compiled: CudaProgram) -> bool:
        """Tell whether a cluster may run small supersteps: meshes have some, and the kernel is a third of a link."""
        is_alone = not (self.has_peers or self.goes_by_edge or self.has_tiles)
        is_plain = is_alone and self.packing is Packing.NONE
        return self.is_mesh and is_plain and can_cluster(compiled)

    def macros(self, compiled: CudaProgram) -> dict[str, str]:
        """Return what `kernels/cuda/lease.cu` is compiled with, beside the shapes of blocks and clusters."""
        macros = PEERS if self.has_peers else {}
        macros = macros | (BY_EDGE if self.goes_by_edge else TILES if self.has_tiles else {})
        macros |= TILE_COLUMNS if self.has_tile_columns else {}
        macros |= self.packing.macros(compiled, has_heads=self.has_heads) | (FED if self.is_fed else {})
        macros |= {"SIGPS_PAGE_TURNS": str(self.page_turns)} if self.page_turns > 1 else {}
        return macros | (IN_PIECES if self.in_pieces else {}) | (TURNS if self.has_turns else {})


@dataclass(frozen=True, eq=False)
class Variant:
    """A compiled program and its kernels, in a loaded module.

    Attributes:
        compiled: The program.
        run_lease: The kernel of a lease.
        shape: Its blocks.
        run_small_frontier: The small-frontier kernel, or None.
        cluster: Its cluster.
        blocks_per_sm: Blocks of a lease that a multiprocessor holds.
        shared_bytes: Dynamic shared memory that a block of a lease may have.
        tile_bytes: What of it a segment takes, where in-edges lie in tiles.
    """

    compiled: CudaProgram
    run_lease: Kernel
    shape: Shape
    run_small_frontier: Kernel | None
    cluster: Cluster
    blocks_per_sm: int
    shared_bytes: int
    tile_bytes: int = 0

    def shared_cache(
        self, *, num_vertices: int, num_edges: int, num_blocks: int, num_hot_ghosts: int
    ) -> SharedCache:
        """Return the shared-memory cache of a pull. Arguments as `choose_shared_cache`'s."""
        program = self.compiled.program
        if self.tile_bytes:
            return SharedCache(0, 0, self.tile_bytes)
        if self.shape == GROUPED:
            return SharedCache(0, 0, self.shared_bytes)
        if self.shape != WIDE or program.consumption is Consumption.LISTED or program.reads_neighbors:
            return SharedCache(0, 0, 0)
        return choose_shared_cache(
            shared_bytes=self.shared_bytes,
            record_bytes=self.record_bytes,
            num_vertices=num_vertices,
            num_edges=num_edges,
            num_blocks=num_blocks,
            num_hot_ghosts=num_hot_ghosts,
        )

    def launch(self, lease: Any, blocks: int, cache: SharedCache) -> None:
        """Launch a lease of so many blocks; does not wait."""
        threads, num_bytes = self.shape.threads, cache.num_bytes
        self.run_lease.launch(blocks, threads, (lease,), shared_bytes=num_bytes, cooperative=True)

    def launch_small_frontier(self, lease: Any) -> None:
        """Launch the small-frontier kernel; does not wait."""
        cluster, kernel = self.cluster, self.run_small_frontier
        assert kernel is not None
        kernel.launch_cluster(cluster.blocks, cluster.threads, (lease,), shared_bytes=cluster.shared_bytes)

    @property
    def record_bytes(self) -> int:
        return int(self.compiled.defines["SIGPS_RECORD_BYTES"])

    @property
    def pull_gain(self) -> int:
        stops_early = self.compiled.defines["SIGPS_EARLY_EXIT"] == "1"
        return GPU_PULL_GAIN_EARLY if stops_early else GPU_PULL_GAIN


@functools.lru_cache(maxsize=64)
def link_variant_ahead(compiled: CudaProgram, gpu: Gpu, form: LeaseForm) -> None:
    """Begin to link what `load_variant` is going to ask for; once a process."""
    *_, macros = _shapes_and_macros(compiled, gpu.arch, form)
    link_ahead("lease", gpu.arch, {**compiled.defines, **macros}, compiled.functions)


def _shapes_and_macros(
    compiled: CudaProgram, arch: str, form: LeaseForm
) -> tuple[Shape, Cluster, dict[str, str]]:
    """Return the shape of a variant's blocks, its cluster, and the macros of its kernels."""
    shape = form.shape(compiled)
    cluster = choose_cluster(arch) if form.may_cluster(compiled) else NO_CLUSTER
    return shape, cluster, shape.macros() | cluster.macros() | form.macros(compiled)


@functools.lru_cache(maxsize=64)
def load_variant(
    program: VertexProgram,
    columns: tuple[tuple[str, np.dtype[Any]], ...],
    narrow: bool,
    gpu: Gpu,
    form: LeaseForm,
) -> Variant:
    """Compile a program, link it into the kernels, and load these.

    Args:
        program: The program.
        columns: Names and types of the graph's columns.
        narrow: Whether ids are kept in 32 bits.
        gpu: The GPU; the current one.
        form: How leases go over the partition.

    Raises:
        DeviceError: If the edge schedule cannot run it, or it cannot be compiled.
    """
    compiled = compile_for_cuda(program, dict(columns), narrow_ids=narrow, arch=gpu.arch)
    obstacle = find_edge_obstacle(compiled, gpu.arch) if form.goes_by_edge else None
    if obstacle is not None:
        raise DeviceError(
            f"{program.name} cannot run with schedule='edge' on device='cuda': it has {obstacle}. "
            "Use schedule='vertex', or device='cpu'"
        )
    shape, cluster, macros = _shapes_and_macros(compiled, gpu.arch, form)
    module = Module(link(compiled, "lease", gpu.arch, macros))
    if compiled.has_open_loops:
        connect(module, gpu)
    kernel = module.kernel("run_lease")
    shared_bytes = gpu.shared_bytes - kernel.static_shared_bytes() if shape == WIDE else table_bytes(compiled)
    kernel.allow_shared_bytes(shared_bytes)
    blocks_per_sm = kernel.blocks_per_sm(shape.threads, shared_bytes)
    few, cluster = _cluster(module, cluster, gpu)
    size = segment_size(record_bytes_of(compiled), gpu.shared_bytes) if form.has_tiles else 0
    tile_bytes = shared_bytes_of(size, record_bytes_of(compiled))
    assert tile_bytes <= max(shared_bytes, 0), "what kernels declare leaves no room for a segment"
    return Variant(compiled, kernel, shape, few, cluster, blocks_per_sm, shared_bytes, tile_bytes)


def _cluster(module: Module, cluster: Cluster, gpu: Gpu) -> tuple[Kernel | None, Cluster]:
    """Return the small-frontier kernel, and the largest cluster that the GPU can launch it with."""
    if cluster == NO_CLUSTER:
        return None, cluster
    kernel = module.kernel("run_small_frontier")
    shared_bytes = gpu.shared_bytes - kernel.static_shared_bytes()
    kernel.allow_shared_bytes(shared_bytes)
    cluster = fit_cluster(cluster, shared_bytes)
    blocks = min(cluster.blocks, kernel.largest_cluster(cluster.threads, cluster.shared_bytes))
    return (kernel, replace(cluster, blocks=blocks)) if blocks > 1 else (None, NO_CLUSTER)


def find_edge_obstacle(compiled: CudaProgram, arch: str) -> str | None:
    """Return what of a program the edge schedule cannot run on a GPU; None where it can run it."""
    if compiled.program.reads_edge_links:
        return "values kept on edges (EdgeState), or common_neighbors()"
    return find_atomics_obstacle(compiled, arch)
