"""The memory of a GPU that a run takes, and a graph while it is brought there: pure functions of counts and types.

`device.cuda.check_fits` compares such numbers of bytes with what is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sigps.compiler.cuda.adapters import num_cells
from sigps.compiler.cuda.compile import CudaProgram, key_bytes
from sigps.compiler.program import Consumption, Delivery, VertexProgram
from sigps.engine.gpu.launch import GROUPED, WIDE, Shape, choose_shape
from sigps.kernels.cuda.lease import CONTROL, PEER, STATS, report_bytes

__all__ = [
    "MOST_SUPERSTEPS",
    "ORDERING",
    "SORTING",
    "MemoryPlan",
    "Sizes",
    "bytes_kept",
    "bytes_of_mirrors",
    "bytes_of_reverse",
    "bytes_of_values",
    "bytes_to_commit",
    "bytes_to_find",
    "bytes_to_walk",
    "bytes_while_laid_out",
    "can_cluster",
    "can_push",
    "direct_arrays",
    "direct_bytes",
    "edges_at_a_time",
    "plan_run",
    "shape_of",
    "shape_over_packed",
    "table_bytes",
]

MOST_SUPERSTEPS = 1 << 16
"""Supersteps of one launch: the capacity for statistics."""

_MOST_BLOCKS = 1 << 14
"""More than any GPU holds at once."""

_FIRST_DIRECT = 1 << 12
"""Capacity for direct messages beside two a vertex, until a superstep needs more."""

_ALIGNED = 256

_MOST_CELLS_OF_CLUSTER = 160

SORTING = 20
"""Temporary bytes an edge to sort rows: keys, as many again to sort them, and the edges in the host's order."""

ORDERING = 48
"""The same where the order is kept, to bring a column along."""


_LEAST_AT_A_TIME = 1 << 20


def edges_at_a_time(num_edges: int, room: int | None = None, bytes_an_edge: int = SORTING) -> int:
    """Return how many edges of so many are sorted at a time: where there is room, many, which takes the least time.

    Args:
        num_edges: The edges.
        room: Bytes to sort them in; None: as many as are wanted.
        bytes_an_edge: What sorting one takes.

    >>> edges_at_a_time(10_000), edges_at_a_time(1 << 32), edges_at_a_time(1 << 32, 10**9)
    (10000, 268435456, 50000000)
    """
    wanted = min(num_edges, max(1 << 26, num_edges >> 4))
    if room is None:
        return wanted
    return min(wanted, max(_LEAST_AT_A_TIME, room // bytes_an_edge))


def bytes_while_laid_out(
    num_vertices: int, num_edges: int, num_columns: int, *, run_bytes: int = 0, is_fast: bool = False
) -> int:
    """Return about the bytes that a graph takes on a GPU at its peak: while it is laid out, or beside a run.

    Args:
        num_vertices: Local ids.
        num_edges: Edges, twice where they are laid out by source too.
        num_columns: Edge columns.
        run_bytes: What a run takes afterwards.
        is_fast: Whether as many edges as are wanted are sorted at a time, and not as few as can be.

    >>> bytes_while_laid_out(1000, 10_000, 0), bytes_while_laid_out(1000, 10_000, 0, run_bytes=10**6)
    (314000, 1114000)
    """
    in_order = (
        8 if num_columns else 4
    ) * num_edges  # rows that keep their order: all ends, or a column, at once
    at_a_time = edges_at_a_time(num_edges, None if is_fast else 0)
    work = max(at_a_time * (ORDERING if num_columns else SORTING), in_order, run_bytes)
    return bytes_kept(num_vertices, num_edges, num_columns) + work


def bytes_kept(num_vertices: int, num_edges: int, num_columns: int) -> int:
    """Return about the bytes that a graph takes on a GPU when it is laid out.

    >>> bytes_kept(1000, 10_000, 0)
    114000
    """
    return num_edges * (5 + 9 * num_columns) + 64 * num_vertices


def bytes_of_values(program: VertexProgram, num_edges: int, num_copies: int = 0) -> int:
    """Return the bytes of the values that a program keeps on edges: pending, and committed, with copies of others'."""
    return (2 * num_edges + num_copies) * sum(dtype.itemsize for dtype in program.edge_state_dtypes)


def bytes_of_reverse(program: VertexProgram, num_edges: int) -> int:
    """Return the bytes that it takes to find the values of other ends, of edges that stay packed."""
    return 8 * num_edges if program.reads_reverse else 0


def bytes_to_walk(program: VertexProgram, num_edges: int, num_mirrored: int = 0) -> int:
    """Return the bytes that a program that walks its out-edges takes for them: targets, and edge states twice.

    Args:
        program: The program.
        num_edges: Out-edges of the partition.
        num_mirrored: Edges of neighbours on other ranks; so many go to others, too.
    """
    if not program.reads_edges:
        return 0
    kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    an_edge = 4 + 8 + 4 * (program.reads_neighbors or program.reads_reverse) + 2 * kept
    an_edge += 8 * program.reads_reverse
    a_mirror = 4 + kept
    crossing = bytes_to_commit(num_edges, num_mirrored, num_mirrored) if kept and num_mirrored else 0
    return num_edges * an_edge + num_mirrored * a_mirror + bytes_of_mirrors(0, 0, num_mirrored) + crossing


def bytes_of_mirrors(num_rows: int, num_edges: int, num_sent: int) -> int:
    """Return the bytes that a partition keeps on a GPU for mirrors of the rows of neighbours on other ranks.

    Args:
        num_rows: Rows of those neighbours.
        num_edges: Edges in them.
        num_sent: Edges of its own that others mirror, once for each rank.

    >>> bytes_of_mirrors(10, 100, 50)
    680
    """
    return 8 * num_rows + 4 * num_edges + 4 * num_sent


def bytes_to_commit(num_edges: int, num_sent: int, num_mirrored: int) -> int:
    """Return the most temporary bytes that it takes to commit edge states on all ranks.

    Each edge is compared; of each that others mirror its position and one value at a time; and the same that arrives.

    >>> bytes_to_commit(100, 10, 10)
    680
    """
    return 2 * num_edges + 24 * (num_sent + num_mirrored)


@dataclass(frozen=True)
class Sizes:
    """The counts that the memory of a run follows from.

    Attributes:
        num_owned: Vertices of the partition.
        num_in_edges: Their in-edges.
        num_hubs: Vertices with so many out-edges that the whole grid pushes for them.
        num_lids: Local ids, those of ghosts among them; 0 where there are no ghosts.
        num_peers: GPUs that write into each other's memory; 0 where none do.
        num_out_edges: Out-edges of owned vertices, where compute() walks them.
        num_mirrored: Mirrored edges of neighbours on other ranks.
        num_everywhere: Vertices of the whole graph, where there are peers.
        num_key_places: Places of tables for rows of very many edges, where messages are grouped by key.
        num_slices: Slices of tiles; 0 where in-edges lie in rows.
        pulls_alone: Whether nothing is pushed.
        has_values_on_host: Whether the edge states lie in memory of the host.
        num_slots: Slots of vertices that others have as ghosts (`halo_layout.py`), where a push combines messages to
            ghosts, which cross to their owners; None where it goes to owned vertices alone.
        num_ranks: Ranks, where messages cross so.
    """

    num_owned: int
    num_in_edges: int
    num_hubs: int
    num_lids: int = 0
    num_peers: int = 0
    num_out_edges: int = 0
    num_mirrored: int = 0
    num_everywhere: int = 0
    num_key_places: int = 0
    num_slices: int = 0
    pulls_alone: bool = False
    has_values_on_host: bool = False
    num_slots: int | None = None
    num_ranks: int = 0

    @property
    def direct_capacity(self) -> int:
        """Direct messages that may be enqueued in the first arrays."""
        return 2 * self.num_owned + _FIRST_DIRECT

    @property
    def direct_received(self) -> int:
        """Direct messages that may arrive: all that are enqueued on all GPUs."""
        if not self.num_peers:
            return self.direct_capacity
        return 2 * self.num_everywhere + self.num_peers * _FIRST_DIRECT


@dataclass(frozen=True)
class MemoryPlan:
    """The positions of a run's arrays in its two blocks, and in one of the host.

    Attributes:
        offsets: Where each array begins in the run's block, in bytes; those that begin as zeros lie before `control`.
        sizes: The bytes of each.
        nbytes: The whole block.
        states: Where each state field begins in the block of states.
        state_bytes: That block.
        on_host: Where each array begins in the host's block; those are not in `offsets`.
        host_bytes: That block; 0 where there is none.
    """

    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    nbytes: int
    states: tuple[int, ...]
    state_bytes: int
    on_host: Mapping[str, int] = field(default_factory=dict)
    host_bytes: int = 0


def plan_run(
    compiled: CudaProgram, sizes: Sizes, *, has_cluster: bool = False, goes_by_edge: bool = False
) -> MemoryPlan:
    """Return what a run of a program takes, to the byte.

    Args:
        compiled: The program.
        sizes: The graph's.
        has_cluster: Whether the small-frontier kernel runs, which needs inboxes of its own.
        goes_by_edge: Whether a work item is an edge, which needs no lists.
    """
    zeros, others = _arrays(compiled, sizes, 2 if has_cluster else 1, goes_by_edge)
    at, offsets = 0, {}
    host_bytes, on_host = 0, {}
    for name, size in (*zeros.items(), *others.items()):
        if sizes.has_values_on_host and name.startswith(_VALUES):
            on_host[name] = host_bytes
            host_bytes += _up(size)
        else:
            offsets[name] = at
            at += _up(size)
    states, end = [], 0
    for dtype in compiled.states:
        states.append(end)
        end += _up(sizes.num_owned * dtype.itemsize)
    return MemoryPlan(offsets, zeros | others, at, tuple(states), end, on_host, host_bytes)


_VALUES = "pending", "committed"


def _arrays(
    compiled: CudaProgram, sizes: Sizes, num_inboxes: int, goes_by_edge: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Name the arrays and their bytes: those that begin as zeros, and the others."""
    program, n = compiled.program, sizes.num_owned
    num_lids = max(n, sizes.num_lids)
    bits = -(-n // 32) * 4
    cells = 8 * max(1, num_cells(program.aggregate_dtypes))
    zeros = {"status": n}
    others = {
        "control": CONTROL.itemsize,
        "aggregates": cells,
        "params": 8 * max(1, sum(2 if f.is_table else 1 for f in program.params)),
        "carried": cells,
        "stats": STATS.itemsize * MOST_SUPERSTEPS,
        "totals": _MOST_BLOCKS * cells,
    }
    if program.edge_states:
        zeros["wrote"] = bits
    for i, dtype in enumerate(program.edge_state_dtypes):
        others[f"pending{i}"] = dtype.itemsize * max(1, sizes.num_out_edges)
        others[f"committed{i}"] = dtype.itemsize * max(1, sizes.num_out_edges + sizes.num_mirrored)
    if sizes.num_peers:
        reports = report_bytes(num_cells(program.aggregate_dtypes)) * sizes.num_peers
        zeros |= {
            "reports0": reports,
            "reports1": reports,
            "num_published": 4 * sizes.num_peers,
            "num_barriers": 8,
        }
        others["peers"] = PEER.itemsize * sizes.num_peers
    if program.delivery is Delivery.DIRECT:
        zeros |= {"overflowed": bits, "counts": 4 * n, "offsets": 8 * (n + 1), "num_direct": 8}
        others |= {
            "block_sums": 8 * _MOST_BLOCKS,
            **direct_arrays(compiled, sizes.direct_capacity, sizes.direct_received),
        }
        return zeros, others
    if sizes.num_peers:
        ghosts = 4 * max(1, num_lids - n)  # no fewer than their lists need
        others |= {"listed0": ghosts, "listed1": ghosts}
    sent = -(-num_lids // 32) * 4
    zeros |= {"sent0": sent, "sent1": sent}
    records = max(16, num_lids * int(compiled.defines["SIGPS_RECORD_BYTES"]))
    others |= {"records0": records, "records1": records}
    if program.consumption is Consumption.LISTED and sizes.pulls_alone:
        pass  # each block that reads packed rows has lists of its own (`PackedEdges.reader`)
    elif program.consumption is Consumption.LISTED:
        others |= {"offsets": 8 * (n + 1), **_list_arrays(compiled, sizes.num_in_edges)}
        others |= {"list_ends": 8 * n} if program.sorts_by else {}
    elif program.consumption is Consumption.GROUPED:
        key, total = key_bytes(compiled)
        others |= {"key_words": sizes.num_key_places * key, "key_sums": sizes.num_key_places * total}
    elif goes_by_edge:
        zeros["touched0"] = bits
        others["inboxes0"] = n * max(1, len(compiled.neutral or b""))
    elif sizes.num_slices:
        others["partials"] = 32 * sizes.num_slices * int(compiled.defines["SIGPS_SLOTS_BYTES"])
        others["partial_bits"] = 4 * sizes.num_slices
    elif can_push(compiled) and not sizes.pulls_alone:
        slots, count = len(compiled.neutral or b""), n
        if sizes.num_slots is not None:
            count = num_lids
            zeros |= {"num_arrived": 8 * sizes.num_ranks, "num_crossed": 4 * sizes.num_ranks}
            room = max(1, sizes.num_slots)
            others |= {"arrived_slots": 4 * room, "arrived_messages": slots * room}
        for i in range(num_inboxes):
            zeros |= {f"touched{i}": -(-count // 32) * 4}
            others |= {f"inboxes{i}": count * slots}
        others |= {"targets": 4 * n, "senders": 4 * num_lids, "hubs": 4 * max(1, sizes.num_hubs)}
    return zeros, others


def can_push(compiled: CudaProgram) -> bool:
    """Return whether messages can be combined in inboxes, in any order; a GPU must also have the atomics for it."""
    program = compiled.program
    along_edges = program.delivery is not Delivery.DIRECT and not program.reads_all_at_once
    return along_edges and bool(compiled.neutral) and not program.reads_neighbors


def can_cluster(compiled: CudaProgram) -> bool:
    """Return whether the small-frontier kernel can run a program: it pushes, and commits no edge states.

    Its blocks have totals of 32 warps and four more in shared memory.
    """
    are_few = num_cells(compiled.program.aggregate_dtypes) <= _MOST_CELLS_OF_CLUSTER
    return can_push(compiled) and not compiled.program.reads_edge_links and are_few


def shape_of(compiled: CudaProgram) -> Shape:
    """Return the execution configuration of a compiled program."""
    if compiled.program.consumption is Consumption.GROUPED:
        return GROUPED
    return choose_shape(
        record_bytes=int(compiled.defines["SIGPS_RECORD_BYTES"]),
        stops_early=compiled.defines["SIGPS_EARLY_EXIT"] == "1",
        reads_columns=bool(compiled.program.edge_columns) or compiled.program.reads_edge_links,
        walks=compiled.program.reads_edges,
        has_teams=compiled.defines["SIGPS_BY_TEAM"] == "1"
        and (compiled.program.reads_all_at_once or compiled.program.reads_neighbors),
    )


def shape_over_packed(program: VertexProgram) -> Shape:
    """Return the execution configuration of a program over rows that stay packed."""
    return GROUPED if program.consumption is Consumption.GROUPED else WIDE


def table_bytes(compiled: CudaProgram) -> int:
    """Return the shared memory of a block's tables of keys; 0 where messages are not grouped by key."""
    return int(compiled.defines.get("SIGPS_WARP_TABLE_BYTES", 0)) * (GROUPED.threads // 32)


def _list_arrays(compiled: CudaProgram, count: int) -> dict[str, int]:
    sorts = bool(compiled.program.sorts_by)
    places = max(1, count) * (2 if sorts else 1)
    arrays = {f"list{i}": places * dtype.itemsize for i, dtype in enumerate(compiled.message)}
    return arrays | ({"list_keys": 8 * count, "list_order": 4 * count} if sorts else {})


def direct_arrays(compiled: CudaProgram, enqueued: int, received: int) -> dict[str, int]:
    """Return the bytes of the arrays that grow with direct messages.

    Args:
        compiled: The program.
        enqueued: Messages that may be enqueued.
        received: Messages that may arrive.
    """
    message = max(1, int(compiled.defines["SIGPS_MESSAGE_BYTES"]))
    arrays = {
        "direct_kinds": enqueued,
        "direct_targets": 8 * enqueued,
        "direct_senders": 4 * enqueued,
        "direct_messages": message * enqueued,
    }
    if compiled.program.consumption is Consumption.LISTED:
        return arrays | _list_arrays(compiled, received)
    return arrays | {"messages": message * received}


def direct_bytes(program: VertexProgram, defines: Mapping[str, str], num_owned: int) -> int:
    """Return about the bytes that direct messages take at first, of so many vertices, with where they are sorted to.

    Args:
        program: The program, which sends them.
        defines: The macros that it is compiled with.
        num_owned: The vertices.
    """
    capacity, message = Sizes(num_owned, 0, 0).direct_capacity, max(1, int(defines["SIGPS_MESSAGE_BYTES"]))
    received = message
    if program.consumption is Consumption.LISTED:
        sorts = bool(program.sorts_by)
        received = sum(dtype.itemsize for dtype in program.message_dtypes) * (1 + sorts) + 12 * sorts
    return capacity * (13 + message + received) + 12 * num_owned


def bytes_to_find(num_vertices: int, num_owned: int, *, by_gid: bool, by_id: bool) -> int:
    """Return what tables take in which targets of direct messages are found.

    Args:
        num_vertices: Vertices of the graph.
        num_owned: Those of this partition.
        by_gid: Whether there is a table of all gids.
        by_id: Whether ids are not gids, and are found among those of owned vertices.

    >>> bytes_to_find(100, 40, by_gid=True, by_id=True)
    880
    """
    return 4 * num_vertices * by_gid + (8 + 4) * num_owned * by_id


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
