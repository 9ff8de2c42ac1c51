"""`lease.cuh` as Python sees it: the structures that the host fills, and what it reads back."""

from __future__ import annotations

import numpy as np

from sigps.kernels.cuda.abi import JOB

__all__ = [
    "ACTIVE",
    "ASK_NOBODY",
    "ASK_SOME",
    "CONTROL",
    "EDGES",
    "FEW_IN_A_ROW",
    "HALTED",
    "HUB_DEGREE",
    "LEASE",
    "NOBODY_THERE",
    "NOTHING_LEFT",
    "NOT_YET",
    "NO_ROOM",
    "NO_VERTEX",
    "PEER",
    "PEER_LOST",
    "PULL",
    "PUSH",
    "RETIRED",
    "STATS",
    "report_bytes",
]

PULL, PUSH = 0, 1
ACTIVE, HALTED, RETIRED = 0, 1, 2
ASK_NOBODY, ASK_SOME = 0, 1
NOT_YET, NOTHING_LEFT, NO_ROOM, NOBODY_THERE, PEER_LOST = 0, 1, 2, 3, 4
NO_VERTEX = 0xFFFFFFFF
HUB_DEGREE = 2048
FEW_IN_A_ROW = 8
_POINTER, _COUNT, _WORD = np.uint64, np.uint64, np.uint32


def _structure(*fields: tuple[object, ...]) -> np.dtype[np.void]:
    return np.dtype(list(fields), align=True)


EDGES = _structure(
    ("offsets", _POINTER),
    ("slices", _POINTER),
    ("ends", _POINTER),
    ("degrees", _POINTER),
    ("num_heavy", _WORD),
    ("num_rows", _WORD),
)

_PLAN = _structure(
    ("superstep", np.int64),
    ("retired_edges", _COUNT),
    ("direction", _WORD),
    ("asking", _WORD),
    ("has_bits", _WORD),
    ("has_lists", _WORD),
    ("any_retired", _WORD),
    ("ended", _WORD),
    ("resumes", _WORD),
    ("num_listed", _WORD),
    ("num_hubs", _WORD),
    ("mean_degree", _WORD),
    ("inbox_at", _WORD),
    ("delivered", _WORD),
    ("sweeps", _WORD),
    ("few", _WORD),
    ("publishes", _WORD),
)

_COUNTERS = _structure(
    ("ran", _COUNT),
    ("active", _COUNT),
    ("senders", _COUNT),
    ("sent_edges", _COUNT),
    ("retired_edges", _COUNT),
)

NUM_COUNTERS = 16
_LINE = 128


def _control() -> np.dtype[np.void]:
    """Return the control structure: what many write lies in lines of its own."""
    lines = {"arrived": 0, "generation": 1, "plan": 2, "counters": 3, "num_senders": 4, "num_hubs": 5}
    lines |= {"num_targets": 6, "num_new": 7, "num_new_hubs": 8, "next_block_row": 9, "next_task": 10}
    formats: dict[str, object] = dict.fromkeys(lines, _WORD)
    formats |= {"plan": _PLAN, "counters": _COUNTERS, "next_task": (_WORD, (NUM_COUNTERS * _LINE // 4,))}
    offsets = {name: line * _LINE for name, line in lines.items()}
    after = offsets["counters"] + _COUNTERS.itemsize
    formats |= {"last_time": _COUNT, "num_stats": _COUNT, "is_lost": _COUNT, "lost_id": np.int64}
    offsets |= {"last_time": after, "num_stats": after + 8, "is_lost": after + 16, "lost_id": after + 24}
    return np.dtype(
        {
            "names": list(formats),
            "formats": list(formats.values()),
            "offsets": [offsets[name] for name in formats],
            "itemsize": (10 + NUM_COUNTERS) * _LINE,
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
    ("mail_kinds", _POINTER),
    ("mail_targets", _POINTER),
    ("mail_messages", _POINTER),
    ("num_mails", _POINTER),
    ("records", _POINTER, (2,)),
    ("sent", _POINTER, (2,)),
    ("listed", _POINTER, (2,)),
    ("board", _POINTER, (2,)),
    ("num_hot", _WORD),
    ("first_hot", _WORD),
    ("first_cold", _WORD),
)

_HALO = _structure(
    ("peers", _POINTER),
    ("bounds", _POINTER),
    ("places", _POINTER),
    ("copy_offsets", _POINTER),
    ("copies", _POINTER),
    ("list_begins", _POINTER),
    ("listed", _POINTER, (2,)),
    ("board", _POINTER, (2,)),
    ("num_published", _POINTER),
    ("num_meetings", _POINTER),
    ("patience", _COUNT),
    ("rank", _WORD),
    ("num_ranks", _WORD),
)


def report_bytes(num_aggregates: int) -> int:
    """Return the size of `RankReportInHalves`, what a rank tells another at the end of a superstep.

    >>> report_bytes(0), report_bytes(9)
    (256, 384)
    """
    words = _COUNTERS.itemsize // 8 + 3 + max(1, num_aggregates)
    return -(-2 * 8 * words // _LINE) * _LINE


_MAIL = _structure(
    ("places", _POINTER),
    ("ids", _POINTER),
    ("places_of", _POINTER),
    ("messages", _POINTER),
    ("counts", _POINTER),
    ("of_block", _POINTER),
    ("again", _POINTER),
)

LEASE = _structure(
    ("in_job", JOB),
    ("out_job", JOB),
    ("in_edges", EDGES),
    ("out_edges", EDGES),
    ("num_owned", _WORD),
    ("num_places", _WORD),
    ("num_block_rows", _WORD),
    ("could_send", _WORD),
    ("num_hubs", _WORD),
    ("forced", _WORD),
    ("few_messages", _WORD),
    ("push_gain", _WORD),
    ("persistent", _WORD),
    ("counts_idle", _WORD),
    ("num_near_records", _WORD),
    ("num_near_bits", _WORD),
    ("num_near_ghosts", _WORD),
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
    ("mail", _MAIL),
    ("halo", _HALO),
    ("totals", _POINTER),
    ("carried", _POINTER),
    ("aggregates", _POINTER),
    ("stats", _POINTER),
    ("control", _POINTER),
)
