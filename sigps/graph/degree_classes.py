"""How many vertices have which degree, in classes that double."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from sigps.group import Group

__all__ = ["DegreeClass", "degree_classes"]

DegreeClass = TypedDict("DegreeClass", {"from": int, "to": int, "vertices": int})


def degree_classes(degrees: NDArray[np.int64], group: Group) -> list[DegreeClass]:
    """Count the vertices of all ranks by degree: 0, 1, 2 to 3, 4 to 7, and so on. Collective; O(vertices).

    >>> from sigps.group import Alone
    >>> [tuple(c.values()) for c in degree_classes(np.array([0, 3, 1, 2]), Alone())]
    [(0, 0, 1), (1, 1, 1), (2, 3, 2)]
    """
    number = np.frexp(degrees.astype(np.float64))[1]  # of class k: 2**(k - 1) <= degree < 2**k
    counts = group.all_reduce(np.bincount(number, minlength=64), "sum")
    highest = int(np.flatnonzero(counts).max(initial=0))
    return [
        {"from": (1 << k) >> 1, "to": max(0, (1 << k) - 1), "vertices": int(counts[k])}
        for k in range(highest + 1)
    ]
