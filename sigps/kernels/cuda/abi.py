"""Structures of the kernels as Python sees them: how they lie in memory is read from their text."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ARGUMENTS",
    "FAULT_OF_EDGE",
    "FAULT_SHIFT",
    "HALT",
    "OVERFLOW",
    "RETIRE",
    "SENT",
    "WROTE",
    "capacity_of",
    "copy_into",
    "structure",
]

HALT, RETIRE, SENT, OVERFLOW, WROTE = 1, 2, 4, 8, 16
FAULT_SHIFT, FAULT_OF_EDGE = 8, 2

_FILES = (
    "abi.cuh",
    "edges.cuh",
    "grid.cuh",
    "direction.cuh",
    "lease.cuh",
    "triangles.cu",
    "path_lengths.cu",
    "rank_components.cu",
    "changing_rows.cuh",
    "given_edges.cuh",
    "trimming.cuh",
    "recompute.cu",
    "changed_links.cu",
    "layout.cu",
    "packed_rows.cuh",
    "packed_lengths.cu",
)

_SCALARS = {
    "int64_t": np.int64,
    "uint64_t": np.uint64,
    "unsigned long long": np.uint64,
    "uint32_t": np.uint32,
    "double": np.float64,
}

_MEMBERS = re.compile(r"(?:alignas\( ?(\d+)\) )?(?:const )?(unsigned long long|\w+) (.*)")
_MEMBER = re.compile(r" ?(\*?)(\w+)(?:\[(\w+)\])?")


class Structure(NamedTuple):
    """A structure, and what its address is a multiple of."""

    dtype: np.dtype[Any]
    alignment: int


@functools.cache
def structure(name: str) -> Structure:
    """Return a structure whose members are numbers, pointers, such structures, and arrays of these; laid out as by C++.

    A pointer is a uint64, and an enumeration the integer that it is made of.
    """
    if name in _SCALARS:
        return Structure(np.dtype(_SCALARS[name]), np.dtype(_SCALARS[name]).itemsize)
    kind = re.search(rf"enum {name} : (\w+)", _text())
    if kind is not None:
        return structure(kind[1])
    body = re.search(rf"struct {name} {{(.*?)}};", _text())
    assert body is not None, f"no file has a structure {name}"
    places: dict[str, tuple[Any, int]] = {}
    end, most = 0, 1
    for line in body[1].split(";")[:-1]:
        aligned, kind_of_all, members = _parts(_MEMBERS, line)
        for member in members.split(","):
            star, field, length = _parts(_MEMBER, member)
            found = structure("uint64_t" if star else kind_of_all)
            alignment = max(found.alignment, int(aligned or 1))
            dtype = np.dtype((found.dtype, (_number(length),))) if length else found.dtype
            begin = end + -end % alignment
            places[field] = dtype, begin
            end, most = begin + dtype.itemsize, max(most, alignment)
    formats, offsets = zip(*places.values(), strict=True)
    layout: Any = {"names": [*places], "formats": formats, "offsets": offsets, "itemsize": end + -end % most}
    return Structure(np.dtype(layout), most)


@functools.cache
def _text() -> str:
    """Return the files without comments, on one line."""
    files = (Path(__file__).parent / name for name in _FILES)
    return " ".join(re.sub(r"//.*", "", "\n".join(file.read_text() for file in files)).split())


def _parts(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = pattern.fullmatch(text.strip())
    assert found is not None, f"not a member of a structure that Python reads: {text}"
    return found.groups()


def _number(length: str) -> int:
    found = re.search(rf"constexpr uint32_t {length} = (\d+)", _text())
    return int(found[1] if found is not None else length)


def copy_into(field: str, whole: NDArray[Any], part: NDArray[Any]) -> None:
    """Copy a structure over a field of another. NumPy goes from field to field of it: 20 us for a `Batch`, here 3."""
    assert whole.dtype.fields is not None
    dtype, at = whole.dtype.fields[field][:2]
    assert dtype == part.dtype
    whole.reshape(1).view(np.uint8)[at : at + dtype.itemsize] = part.reshape(1).view(np.uint8)


ARGUMENTS = structure("Arguments").dtype
"""`sigps::Arguments`: fill one (`np.zeros((), ARGUMENTS)`) and pass its bytes as a kernel's parameter."""


def capacity_of(name: str) -> int:
    """Return how many elements a field of the arguments has."""
    shape = ARGUMENTS[name].shape
    return int(shape[0]) if shape else 1
