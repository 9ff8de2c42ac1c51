"""What a run takes of a GPU's memory, and a graph while it is brought there: pure functions of counts and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sigps.compiler.program import Consumption, Delivery
from sigps.engine.gpu.launch import Shape, choose_shape
from sigps.kernels.cuda.lease import CONTROL, PEER, STATS, report_bytes

if TYPE_CHECKING:
    from sigps.compiler.cuda.compile import CudaProgram
    from sigps.compiler.program import VertexProgram

__all__ = [
    "MOST_SUPERSTEPS",
    "ORDERING",
    "SEARCHING_BACK",
    "SORTING",
    "RunPlan",
    "Sizes",
    "bytes_kept",
    "bytes_of_copies",
    "bytes_to_show",
    "bytes_to_walk",
    "bytes_while_laid_out",
    "can_cluster",
    "can_push",
    "mail_arrays",
    "plan_run",
    "shape_of",
]

MOST_SUPERSTEPS = 1 << 16
"""Supersteps of one launch: as many as there is room for statistics."""

_MOST_BLOCKS = 1 << 14
"""More than any GPU holds at once."""

_FIRST_MAILS = 1 << 12
"""Room for mail beside two messages a vertex, until a superstep needs more."""

_ALIGNED = 256

SORTING = 20
"""Bytes an edge that sorting rows takes for a while: keys, as many again to sort them, and what came in."""

ORDERING = 48
"""The same where an order is wanted, to bring a column along."""

SEARCHING_BACK = 48
"""Bytes an edge that a search for the edges back takes for a while."""


def bytes_while_laid_out(num_vertices: int, num_edges: int, num_columns: int) -> int:
    """Return about how much memory a graph takes on a GPU while it is brought there, which is when it takes most.

    >>> bytes_while_laid_out(1000, 10_000, 0)
    314000
    """
    kept = bytes_kept(num_vertices, num_edges, num_columns)
    return kept + num_edges * (ORDERING if num_columns else SORTING)


def bytes_kept(num_vertices: int, num_edges: int, num_columns: int) -> int:
    """Return about how much memory a graph takes on a GPU as long as it is there.

    >>> bytes_kept(1000, 10_000, 0)
    114000
    """
    return 5 * num_edges * (1 + num_columns) + 64 * num_vertices


def bytes_to_walk(program: VertexProgram, num_edges: int, num_copies: int = 0) -> int:
    """Return what a program that walks its out-edges takes for them: where they lead, and twice what is kept there.

    Args:
        program: The program.
        num_edges: Out-edges of the partition.
        num_copies: Edges of neighbours on other ranks; so many go to others, too.
    """
    if not program.reads_edges:
        return 0
    kept = sum(dtype.itemsize for dtype in program.edge_state_dtypes)
    an_edge = 4 + 8 + 4 * (program.reads_neighbors or program.reads_reverse) + 2 * kept
    an_edge += (8 + SEARCHING_BACK) * program.reads_reverse
    a_copy = 4 + kept + SEARCHING_BACK * program.reads_reverse
    crossing = bytes_to_show(num_edges, num_copies, num_copies) if kept and num_copies else 0
    return num_edges * an_edge + num_copies * a_copy + bytes_of_copies(0, 0, num_copies) + crossing


def bytes_of_copies(num_rows: int, num_edges: int, num_asked: int) -> int:
    """Return what a partition keeps on a GPU of neighbours on other ranks: where their edges are, and lead to.

    Args:
        num_rows: Rows of those neighbours.
        num_edges: Edges in them.
        num_asked: Edges of its own that others have copies of, once for each rank.

    >>> bytes_of_copies(10, 100, 50)
    680
    """
    return 8 * num_rows + 4 * num_edges + 4 * num_asked


def bytes_to_show(num_edges: int, num_asked: int, num_copies: int) -> int:
    """Return at most how much it takes for a while to bring what was written on edges to other ranks, and theirs here.

    Each edge is compared; of those that others have, its place, and a value at a time; and the same that arrives.

    >>> bytes_to_show(100, 10, 10)
    680
    """
    return 2 * num_edges + 24 * (num_asked + num_copies)


@dataclass(frozen=True)
class Sizes:
    """What the room for a run follows from.

    Attributes:
        num_owned: Vertices of the partition.
        num_in_edges: Their in-edges.
        num_hubs: Vertices with so many out-edges that the whole grid pushes for them.
        num_places: Owned vertices and places of ghosts; 0 where there are none.
        num_peers: GPUs that write into each other's memory; 0 where none do.
        num_out_edges: Out-edges of these vertices, on which something may be kept.
        num_copies: Edges of neighbours on other ranks, of which copies are kept.
        num_everywhere: Vertices of the whole graph, where there are peers.
    """

    num_owned: int
    num_in_edges: int
    num_hubs: int
    num_places: int = 0
    num_peers: int = 0
    num_out_edges: int = 0
    num_copies: int = 0
    num_everywhere: int = 0

    @property
    def mail_room(self) -> int:
        """How much mail may be posted before there has to be more room."""
        return 2 * self.num_owned + _FIRST_MAILS

    @property
    def mail_received(self) -> int:
        """How much may arrive: all that anybody posts."""
        if not self.num_peers:
            return self.mail_room
        return 2 * self.num_everywhere + self.num_peers * _FIRST_MAILS


@dataclass(frozen=True)
class RunPlan:
    """Where a run's arrays lie.

    Attributes:
        offsets: Where each array begins in the run's block, in bytes.
        sizes: The bytes of each.
        num_zeros: The bytes at the front that are zero when the run begins.
        nbytes: The whole block.
        states: Where each state field begins in the block of states.
        state_bytes: That block.
    """

    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    num_zeros: int
    nbytes: int
    states: tuple[int, ...]
    state_bytes: int


def plan_run(
    compiled: CudaProgram, sizes: Sizes, *, has_cluster: bool = False, goes_by_edge: bool = False
) -> RunPlan:
    """Tell what a run of a program takes; exact, and known before any of it is taken.

    Args:
        compiled: The program.
        sizes: The graph's.
        has_cluster: Whether a cluster does small supersteps, which needs inboxes of its own.
        goes_by_edge: Whether a work item is an edge, which needs no lists.
    """
    zeros, others = _arrays(compiled, sizes, 2 if has_cluster else 1, goes_by_edge)
    at, offsets = 0, {}
    for name, size in (*zeros.items(), *others.items()):
        offsets[name] = at
        at += _up(size)
    num_zeros = sum(map(_up, zeros.values()))
    states, end = [], 0
    for dtype in compiled.states:
        states.append(end)
        end += _up(sizes.num_owned * dtype.itemsize)
    return RunPlan(offsets, zeros | others, num_zeros, at, tuple(states), end)


def _arrays(
    compiled: CudaProgram, sizes: Sizes, num_inboxes: int, goes_by_edge: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Name the arrays and their bytes: those that begin as zeros, and the others."""
    program, n = compiled.program, sizes.num_owned
    num_places = max(n, sizes.num_places)
    bits = -(-n // 32) * 4
    cells = 8 * max(1, len(program.aggregators))
    zeros = {"status": n}
    others = {
        "control": CONTROL.itemsize,
        "aggregates": cells,
        "params": 8 * max(1, len(program.params)),
        "carried": cells,
        "stats": STATS.itemsize * MOST_SUPERSTEPS,
        "totals": _MOST_BLOCKS * cells,
    }
    if program.edge_states:
        zeros["wrote"] = bits
    for i, dtype in enumerate(program.edge_state_dtypes):
        others[f"pending{i}"] = dtype.itemsize * max(1, sizes.num_out_edges)
        others[f"committed{i}"] = dtype.itemsize * max(1, sizes.num_out_edges + sizes.num_copies)
    if sizes.num_peers:
        reports = report_bytes(len(program.aggregators)) * sizes.num_peers
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
            **mail_arrays(compiled, sizes.mail_room, sizes.mail_received),
        }
        return zeros, others
    if sizes.num_peers:
        ghosts = 4 * max(1, num_places - n)  # as many as there are, and no fewer than their lists need
        others |= {"listed0": ghosts, "listed1": ghosts}
    sent = -(-num_places // 32) * 4
    zeros |= {"sent0": sent, "sent1": sent}
    records = max(16, num_places * int(compiled.defines["SIGPS_RECORD_BYTES"]))
    others |= {"records0": records, "records1": records}
    if program.consumption is Consumption.LISTED:
        others |= {"offsets": 8 * (n + 1), **_list_arrays(compiled, sizes.num_in_edges)}
    elif goes_by_edge:
        zeros["touched0"] = bits
        others["inboxes0"] = n * max(1, len(compiled.neutral or b""))
    elif can_push(compiled):
        for i in range(num_inboxes):
            zeros |= {f"touched{i}": bits}
            others |= {f"inboxes{i}": n * len(compiled.neutral or b"")}
        others |= {"targets": 4 * n, "senders": 4 * num_places, "hubs": 4 * max(1, sizes.num_hubs)}
    return zeros, others


def can_push(compiled: CudaProgram) -> bool:
    """Tell whether messages can be combined in inboxes, in any order; a GPU must also have the atomics for it."""
    program = compiled.program
    along_edges = program.delivery is not Delivery.DIRECT and program.consumption is not Consumption.LISTED
    return along_edges and bool(compiled.neutral) and not program.reads_neighbors


def can_cluster(compiled: CudaProgram) -> bool:
    """Tell whether a cluster may do small supersteps: it pushes, and shows nobody what was written to edges."""
    return can_push(compiled) and not compiled.program.links_edges


def shape_of(compiled: CudaProgram) -> Shape:
    """Return the execution configuration of a compiled program."""
    return choose_shape(
        record_bytes=int(compiled.defines["SIGPS_RECORD_BYTES"]),
        stops_early=compiled.defines["SIGPS_EARLY_EXIT"] == "1",
        reads_columns=bool(compiled.program.edge_columns) or compiled.program.links_edges,
        walks=compiled.program.reads_edges,
    )


def _list_arrays(compiled: CudaProgram, room: int) -> dict[str, int]:
    return {f"list{i}": max(1, room) * dtype.itemsize for i, dtype in enumerate(compiled.message)}


def mail_arrays(compiled: CudaProgram, posted: int, received: int) -> dict[str, int]:
    """Name what grows with the mail: so much of what is posted, and so much of what has arrived, by target."""
    message = max(1, int(compiled.defines["SIGPS_MESSAGE_BYTES"]))
    arrays = {
        "direct_kinds": posted,
        "direct_targets": 8 * posted,
        "direct_senders": 4 * posted,
        "direct_messages": message * posted,
    }
    if compiled.program.consumption is Consumption.LISTED:
        return arrays | _list_arrays(compiled, received)
    return arrays | {"messages": message * received}


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
