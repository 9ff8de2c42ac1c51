"""`lease.cuh` as Python sees it: the structures that the host fills, and what it reads back."""

from __future__ import annotations

from sigps.kernels.cuda.abi import structure

__all__ = [
    "ARRIVED",
    "CONTROL",
    "EDGES",
    "FAULTED",
    "FAULTS_AT",
    "FAULT_BITS",
    "FINISHED",
    "FRONTIER_BITS",
    "FRONTIER_DELIVERED",
    "FRONTIER_LISTS",
    "HUB_DEGREE",
    "LEASE",
    "MASTER_FAULTED",
    "NO_CAPACITY",
    "NO_LOAD",
    "NO_VERTEX",
    "OF_SENDER",
    "OVERFLOWED",
    "PACKED_ROWS",
    "PEER",
    "PEER_LOST",
    "PUBLISHING",
    "REMAINING_AT",
    "RUNNING",
    "SENDING",
    "SMALL_BEFORE_SWITCH",
    "STATS",
    "STOPPED",
    "SUPERSTEP_AT",
    "TILES",
    "UNKNOWN_TARGET",
    "WHOLE",
    "report_bytes",
    "warp_table_bytes",
]

FRONTIER_BITS, FRONTIER_LISTS, FRONTIER_DELIVERED, FRONTIER_BOTH = range(4)
WHOLE, OVERFLOWED, PUBLISHING, SENDING, ARRIVED = range(5)
RUNNING, FINISHED, NO_CAPACITY, UNKNOWN_TARGET, PEER_LOST, FAULTED, STOPPED, MASTER_FAULTED = range(8)
NO_VERTEX = NO_LOAD = 0xFFFFFFFF
FAULT_BITS, OF_SENDER = 24, 1 << 56
HUB_DEGREE = 2048
SMALL_BEFORE_SWITCH = 8

CONTROL, EDGES, LEASE, PACKED_ROWS, PEER, STATS, TILES = (
    structure(name).dtype for name in ("Control", "Edges", "Lease", "PackedRows", "Peer", "Stats", "Tiles")
)
assert CONTROL.fields is not None
FAULTS_AT = int(CONTROL.fields["faults"][1])
SUPERSTEP_AT = int(CONTROL.fields["next"][1])
assert CONTROL["next"].fields is not None
REMAINING_AT = SUPERSTEP_AT + int(CONTROL["next"].fields["remaining"][1])
"""Where `Control.faults` begins, in bytes, and `Control.next.superstep` and `Control.next.remaining`."""


def warp_table_bytes(key: int, total: int) -> int:
    """Return the size of a warp's table of keys (`grouped.cuh`).

    Args:
        key: Bytes of a key there.
        total: Bytes of what is added up of one.

    >>> warp_table_bytes(4, 4), warp_table_bytes(8, 8)
    (4112, 4128)
    """
    places = 512 if key + total <= 8 else 256
    return (places + 2) * (key + total)


def report_bytes(num_aggregates: int) -> int:
    """Return the size of `RankReportInHalves`, what a rank sends another at the end of a superstep.

    >>> report_bytes(0), report_bytes(9)
    (256, 384)
    """
    words = structure("Counters").dtype.itemsize // 8 + 6 + max(1, num_aggregates)
    return -(-2 * 8 * words // 128) * 128
