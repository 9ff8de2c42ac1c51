"""`lease.cuh` as Python sees it: the structures that the host fills, and what it reads back."""

from __future__ import annotations

import numpy as np

from sigps.kernels.cpu.arguments import (
    ACTIVE,
    HALTED,
    RETIRED,
    SENDERS_ALL,
    SENDERS_BITMAP,
    SENDERS_NONE,
    SENDERS_TEST_EACH,
)
from sigps.kernels.cuda.abi import ARGUMENTS
from sigps.kernels.direction import FORCED, PULL, PUSH

__all__ = [
    "ACTIVE",
    "CONTROL",
    "EDGES",
    "FINISHED",
    "FORCED",
    "FRONTIER_BITS",
    "FRONTIER_DELIVERED",
    "FRONTIER_LISTS",
    "HALTED",
    "HUB_DEGREE",
    "LEASE",
    "NO_CAPACITY",
    "NO_VERTEX",
    "OVERFLOWED",
    "PEER",
    "PEER_LOST",
    "PUBLISHING",
    "PULL",
    "PUSH",
    "RETIRED",
    "RUNNING",
    "SENDERS_ALL",
    "SENDERS_BITMAP",
    "SENDERS_NONE",
    "SENDERS_TEST_EACH",
    "SMALL_BEFORE_SWITCH",
    "STATS",
    "UNKNOWN_TARGET",
    "WHOLE",
    "report_bytes",
]

FRONTIER_BITS, FRONTIER_LISTS, FRONTIER_DELIVERED = 0, 1, 2
WHOLE, OVERFLOWED, PUBLISHING = 0, 1, 2
RUNNING, FINISHED, NO_CAPACITY, UNKNOWN_TARGET, PEER_LOST = 0, 1, 2, 3, 4
NO_VERTEX = 0xFFFFFFFF
HUB_DEGREE = 2048
SMALL_BEFORE_SWITCH = 8
_POINTER, _COUNT, _WORD = np.uint64, np.uint64, np.uint32


def _structure(*fields: tuple[object, ...]) -> np.dtype[np.void]:
    return np.dtype(list(fields), align=True)


EDGES = _structure(
    ("offsets", _POINTER),
    ("slices", _POINTER),
    ("ends", _POINTER),
    ("degrees", _POINTER),
    ("num_csr_rows", _WORD),
    ("num_rows", _WORD),
)

_NEXT_SUPERSTEP = _structure(
    ("superstep", np.int64),
    ("retired_edges", _COUNT),
    ("direction", _WORD),
    ("sender_filter", _WORD),
    ("frontier", _WORD),
    ("remaining", _WORD),
    ("full_scan", _WORD),
    ("any_retired", _WORD),
    ("ending", _WORD),
    ("num_listed", _WORD),
    ("num_hubs", _WORD),
    ("mean_degree", _WORD),
    ("inbox_at", _WORD),
    ("num_small", _WORD),
)

_COUNTERS = _structure(
    ("ran", _COUNT),
    ("active", _COUNT),
    ("senders", _COUNT),
    ("sent_edges", _COUNT),
    ("retired_edges", _COUNT),
)

NUM_TASK_COUNTERS = 16
_LINE = 128


def _control() -> np.dtype[np.void]:
    """Return the control structure: counters that many warps increment lie in cache lines of their own."""
    lines = {"arrived": 0, "generation": 1, "next": 2, "counters": 3, "num_senders": 4, "num_hubs": 5}
    lines |= {"num_targets": 6, "num_new": 7, "num_new_hubs": 8, "next_block_row": 9, "next_task": 10}
    formats: dict[str, object] = dict.fromkeys(lines, _WORD)
    formats |= {
        "next": _NEXT_SUPERSTEP,
        "counters": _COUNTERS,
        "next_task": (_WORD, (NUM_TASK_COUNTERS * _LINE // 4,)),
    }
    offsets = {name: line * _LINE for name, line in lines.items()}
    after = offsets["counters"] + _COUNTERS.itemsize
    formats |= {"last_time": _COUNT, "num_stats": _COUNT, "is_lost": _COUNT, "lost_id": np.int64}
    offsets |= {"last_time": after, "num_stats": after + 8, "is_lost": after + 16, "lost_id": after + 24}
    return np.dtype(
        {
            "names": list(formats),
            "formats": list(formats.values()),
            "offsets": [offsets[name] for name in formats],
            "itemsize": (10 + NUM_TASK_COUNTERS) * _LINE,
        }
    )


CONTROL = _control()

STATS = _structure(
    ("superstep", np.int64),
    ("direction", _COUNT),
    ("ran", _COUNT),
    ("messages", _COUNT),
    ("nanoseconds", _COUNT),
    ("num_bytes", _COUNT),
    ("imbalance", np.float64),
)

PEER = _structure(
    ("direct_kinds", _POINTER),
    ("direct_targets", _POINTER),
    ("direct_messages", _POINTER),
    ("num_direct", _POINTER),
    ("records", _POINTER, (2,)),
    ("sent", _POINTER, (2,)),
    ("listed", _POINTER, (2,)),
    ("reports", _POINTER, (2,)),
    ("num_hot", _WORD),
    ("first_hot", _WORD),
    ("first_cold", _WORD),
)

_HALO = _structure(
    ("peers", _POINTER),
    ("bounds", _POINTER),
    ("vertices", _POINTER),
    ("copy_offsets", _POINTER),
    ("copies", _POINTER),
    ("list_begins", _POINTER),
    ("listed", _POINTER, (2,)),
    ("reports", _POINTER, (2,)),
    ("num_published", _POINTER),
    ("num_barriers", _POINTER),
    ("timeout", _COUNT),
    ("rank", _WORD),
    ("num_ranks", _WORD),
)


def report_bytes(num_aggregates: int) -> int:
    """Return the size of `RankReportInHalves`, what a rank sends another at the end of a superstep.

    >>> report_bytes(0), report_bytes(9)
    (256, 384)
    """
    words = _COUNTERS.itemsize // 8 + 3 + max(1, num_aggregates)
    return -(-2 * 8 * words // _LINE) * _LINE


_DIRECT = _structure(
    ("lids_of_gids", _POINTER),
    ("sorted_ids", _POINTER),
    ("lids_of_ids", _POINTER),
    ("messages", _POINTER),
    ("counts", _POINTER),
    ("block_sums", _POINTER),
    ("overflowed", _POINTER),
)

LEASE = _structure(
    ("in_arguments", ARGUMENTS),
    ("out_arguments", ARGUMENTS),
    ("in_edges", EDGES),
    ("out_edges", EDGES),
    ("num_owned", _WORD),
    ("num_lids", _WORD),
    ("num_block_rows", _WORD),
    ("could_send", _WORD),
    ("num_hubs", _WORD),
    ("forced", _WORD),
    ("small_frontier_messages", _WORD),
    ("push_gain", _WORD),
    ("persistent", _WORD),
    ("counts_idle", _WORD),
    ("num_cached_records", _WORD),
    ("num_cached_bits", _WORD),
    ("num_cached_ghosts", _WORD),
    ("first_hot", _WORD),
    ("num_hot", _WORD),
    ("end", np.int64),
    ("num_in_edges", _COUNT),
    ("pull_cost", _COUNT),
    ("num_positions", _COUNT),
    ("edge_targets", _POINTER),
    ("status", _POINTER),
    ("sent", _POINTER, (2,)),
    ("records", _POINTER, (2,)),
    ("inboxes", _POINTER, (2,)),
    ("touched", _POINTER, (2,)),
    ("wrote", _POINTER),
    ("targets", _POINTER),
    ("senders", _POINTER),
    ("hubs", _POINTER),
    ("offsets", _POINTER),
    ("direct", _DIRECT),
    ("halo", _HALO),
    ("totals", _POINTER),
    ("carried", _POINTER),
    ("aggregates", _POINTER),
    ("stats", _POINTER),
    ("control", _POINTER),
)
