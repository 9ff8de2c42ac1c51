"""`abi.cuh` as Python sees it: where the fields of a `Job` lie, and the sizes of its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["HALT", "JOB", "OVERFLOW", "RETIRE", "SENT", "offset_of", "room_of"]

HALT, RETIRE, SENT, OVERFLOW = 1, 2, 4, 8

_POINTER = np.uint64

JOB = np.dtype(
    [
        ("num_vertices", np.int64),
        ("num_edges", np.int64),
        ("params", _POINTER),
        ("aggregates", _POINTER),
        ("ids", _POINTER),
        ("out_degrees", _POINTER),
        ("in_degrees", _POINTER),
        ("columns", _POINTER, (8,)),
        ("states", _POINTER, (32,)),
        ("out_offsets", _POINTER),
        ("out_gids", _POINTER),
        ("out_ids", _POINTER),
        ("out_columns", _POINTER, (8,)),
        ("out_rows", _POINTER),
        ("reverse", _POINTER),
        ("own", _POINTER, (16,)),
        ("seen", _POINTER, (16,)),
        ("lists", _POINTER, (16,)),
        ("num_mails", _POINTER),
        ("mail_room", np.uint64),
        ("mail_kinds", _POINTER),
        ("mail_targets", _POINTER),
        ("mail_senders", _POINTER),
        ("mail_messages", _POINTER),
    ]
)
"""A `sigps::Job`: fill one (`np.zeros((), JOB)`) and pass its bytes as a kernel's parameter."""


def offset_of(name: str, index: int = 0) -> int:
    """Return where a field of a job begins, or an element of it, in bytes."""
    return _field(name)[1] + 8 * index


def room_of(name: str) -> int:
    """Return how many elements a field of a job has."""
    shape = _field(name)[0].shape
    return int(shape[0]) if shape else 1


def _field(name: str) -> tuple[np.dtype[Any], int]:
    assert JOB.fields is not None
    return JOB.fields[name][:2]
