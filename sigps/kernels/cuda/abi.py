"""`abi.cuh` as Python sees it: where the fields of `Arguments` lie, and the sizes of its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ARGUMENTS", "HALT", "OVERFLOW", "RETIRE", "SENT", "capacity_of", "offset_of"]

HALT, RETIRE, SENT, OVERFLOW = 1, 2, 4, 8

_POINTER = np.uint64

ARGUMENTS = np.dtype(
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
        ("pending", _POINTER, (16,)),
        ("committed", _POINTER, (16,)),
        ("lists", _POINTER, (16,)),
        ("num_direct", _POINTER),
        ("direct_capacity", np.uint64),
        ("direct_kinds", _POINTER),
        ("direct_targets", _POINTER),
        ("direct_senders", _POINTER),
        ("direct_messages", _POINTER),
    ]
)
"""`sigps::Arguments`: fill one (`np.zeros((), ARGUMENTS)`) and pass its bytes as a kernel's parameter."""


def offset_of(name: str, index: int = 0) -> int:
    """Return where a field of the arguments begins, or an element of it, in bytes."""
    return _field(name)[1] + 8 * index


def capacity_of(name: str) -> int:
    """Return how many elements a field of the arguments has."""
    shape = _field(name)[0].shape
    return int(shape[0]) if shape else 1


def _field(name: str) -> tuple[np.dtype[Any], int]:
    assert ARGUMENTS.fields is not None
    return ARGUMENTS.fields[name][:2]
