"""What loops may call besides Python's own functions: plain Python here, a few instructions where they are compiled."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigps.model.fields import NO_VERTEX
from sigps.native.types import NONE, Type

__all__ = [
    "VALUE_FUNCTIONS",
    "External",
    "ProgramFunction",
    "count_bits",
    "edge_at",
    "exchange",
    "float_bits",
    "float_of_bits",
    "has_fault",
    "id_or_none",
    "is_none",
    "keep_fault",
    "known",
    "load_row",
    "lost_in_max",
    "lost_in_min",
    "lowest_bit",
    "max_by",
    "min_by",
    "pick",
    "prefetch",
    "scratch",
    "scratch_rows",
    "sender",
    "store_row",
    "table_at",
    "table_size",
]


@dataclass(frozen=True)
class ProgramFunction:
    """A function of a program, as a loop calls it: it returns its result, and its fault (0 where there is none).

    Attributes:
        name: Its name in the generated module.
        reorders: Whether its sums of floats may be done in any order.
        has_nan: Whether a message may be NaN; where none is, min() and max() need not look.
    """

    name: str
    reorders: bool = False
    has_nan: bool = True


@dataclass(frozen=True)
class External:
    """A function of the engine, in the place of one of the program's: another language's.

    Attributes:
        name: As it is called there.
        arguments: Types of its arguments.
        result: The type of what it returns; None: that of its last argument, a number of any, or each of a tuple.
        can_overflow: Whether it also tells whether a whole number did not fit.
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type | None = NONE
    can_overflow: bool = False


def load_row(arrays: Sequence[Any], at: int) -> tuple[Any, ...]:
    """Return one element of each array; a tuple among them, which is a table, as it is."""
    return tuple(array if isinstance(array, tuple) else array[at] for array in arrays)


def store_row(arrays: Sequence[Any], at: int, values: Sequence[Any]) -> None:
    """Write one element of each array."""
    for array, value in zip(arrays, values, strict=True):
        array[at] = value


def prefetch(array: Any, at: int) -> None:
    """Load the cache line of an element, without waiting for it; the element need not exist."""


def exchange(array: Any, at: int, value: Any) -> Any:
    """Write an element of an array of whole numbers and return what it was, in one step.

    Threads see these in one order, and what a thread wrote before one as written (sequential consistency).
    """
    before = array[at]
    array[at] = value
    return before


def lowest_bit(mask: Any) -> int:
    """Return the position of the lowest bit that is set in a `np.uint64`; one must be."""
    return (int(mask) & -int(mask)).bit_length() - 1


def count_bits(mask: Any) -> int:
    """Return how many bits are set in a `np.uint64`."""
    return int(mask).bit_count()


def scratch(size: int) -> NDArray[np.uint64]:
    """Return an array of a constant size, [size], whose content is undefined; it ends with the function."""
    return np.empty(size, dtype=np.uint64)


def scratch_rows(arrays: Sequence[Any], size: int) -> tuple[Any, ...]:
    """Return an array like each of some arrays, of a constant size, whose content is undefined; see `scratch`."""
    return tuple(np.empty(size, dtype=array.dtype) for array in arrays)


def pick(flags: Sequence[bool], ones: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    """Return, for each of some constant flags, the item of `ones` where it is set and of `others` where it is not."""
    return tuple(a if flag else b for flag, a, b in zip(flags, ones, others, strict=True))


def edge_at(begin: int, end: int, at: int) -> int:
    """Return the position of an out-edge among begin..end; from the end where `at` is negative.

    Where there is none, the function that asks ends with a fault.
    """
    count = int(end) - int(begin)
    return int(begin) + (at + count if at < 0 else at)


def lost_in_min(value: Any) -> Any:
    """Return inf for a NaN, which loses against every number in a min(); anything else as it is."""
    return math.inf if isinstance(value, float) and value != value else value


def lost_in_max(value: Any) -> Any:
    """Return -inf for a NaN, which loses against every number in a max(); anything else as it is."""
    return -math.inf if isinstance(value, float) and value != value else value


def min_by(keys: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the first value whose key is the smallest."""
    return values[min(range(len(keys)), key=keys.__getitem__)]


def max_by(keys: Sequence[Any], values: Sequence[Any]) -> Any:
    """Return the first value whose key is the largest."""
    return values[max(range(len(keys)), key=keys.__getitem__)]


def float_bits(value: float) -> int:
    """Return the 64 bits of a float, as a signed number."""
    found: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return found


def float_of_bits(bits: int) -> float:
    """Return the float of 64 bits that are given as a signed number."""
    found: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return found


def is_none(value: Any) -> bool:
    """Return whether a vertex id is None, as compute() or memory has it."""
    return value is None or (isinstance(value, (int, np.int64)) and value == NO_VERTEX)


def id_or_none(value: Any) -> Any:
    """Return what is kept of a `VertexId | None`."""
    return NO_VERTEX if value is None else value


def known(value: Any) -> Any:
    """Return a value that must not be None: that is a fault."""
    return value


def table_at(table: Any, at: Any) -> Any:
    """Return the number at a position of a table, which is its array and its length; from the end where negative."""
    if not isinstance(table, tuple):  # while claims are proven
        return table
    values, size = table
    if not -size <= at < size:
        raise IndexError("the table has no such position")
    return values[at]


def table_size(table: Any) -> Any:
    """Return how many numbers a table has."""
    return table[1] if isinstance(table, tuple) else table


VALUE_FUNCTIONS = {
    "__is_none": is_none,
    "__id_or_none": id_or_none,
    "__known": known,
    "__table_at": table_at,
    "__table_size": table_size,
}
"""As generated functions call them."""


def keep_fault(at: int, fault: int) -> None:
    """Let the loop end with a fault, unless one happened before; nothing where it is 0.

    `at` is the vertex, -1 for none, or `sender(s)`.
    """


def sender(s: Any) -> Any:
    """Return what stands in `keep_fault` for the sender of a message, which sent it a superstep before; and back."""
    return -2 - np.int64(s)


def has_fault() -> bool:
    """Tell whether this loop has a fault so far."""
    return False
