"""`lease.cuh` as Python sees it: the structures that the host fills, and what it reads back."""

from __future__ import annotations

import numpy as np

from sigps.kernels.abi import JOB

__all__ = ["ASK_NOBODY", "ASK_SOME", "CONTROL", "EDGES", "HUB_DEGREE", "LEASE", "PULL", "PUSH", "STATS"]

PULL, PUSH = 0, 1
ASK_NOBODY, ASK_SOME = 0, 1
HUB_DEGREE = 2048
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
    ("direction", _WORD),
    ("asking", _WORD),
    ("has_bits", _WORD),
    ("has_lists", _WORD),
    ("any_retired", _WORD),
    ("ended", _WORD),
)

_COUNTERS = _structure(
    ("ran", _COUNT), ("active", _COUNT), ("senders", _COUNT), ("sent_edges", _COUNT), ("retired", _COUNT)
)

CONTROL = _structure(
    ("barrier", _WORD, (2,)),
    ("plan", _PLAN),
    ("counters", _COUNTERS),
    ("last_time", _COUNT),
    ("num_stats", _COUNT),
    ("num_senders", _WORD),
    ("num_hubs", _WORD),
    ("num_touched", _WORD),
    ("num_new_senders", _WORD),
    ("num_new_hubs", _WORD),
    ("next_block_row", _WORD),
    ("next_task", _WORD),
    ("last", _COUNTERS),
)

STATS = _structure(
    ("superstep", np.int64),
    ("direction", _COUNT),
    ("ran", _COUNT),
    ("messages", _COUNT),
    ("nanoseconds", _COUNT),
)

LEASE = _structure(
    ("in_job", JOB),
    ("out_job", JOB),
    ("in_edges", EDGES),
    ("out_edges", EDGES),
    ("num_owned", _WORD),
    ("num_block_rows", _WORD),
    ("could_send", _WORD),
    ("forced", _WORD),
    ("push_gain", _WORD),
    ("persistent", _WORD),
    ("end", np.int64),
    ("num_in_edges", _COUNT),
    ("status", _POINTER),
    ("sent", _POINTER, (2,)),
    ("records", _POINTER, (2,)),
    ("inboxes", _POINTER),
    ("touched_in", _POINTER),
    ("touched", _POINTER),
    ("senders", _POINTER, (2,)),
    ("hubs", _POINTER, (2,)),
    ("totals", _POINTER),
    ("aggregates", _POINTER),
    ("stats", _POINTER),
    ("control", _POINTER),
)
