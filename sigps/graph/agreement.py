"""All ranks fail together: nobody waits in a collective for a rank that gave up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sigps.errors import GraphError
from sigps.group import Group

__all__ = ["raise_together", "together"]

T = TypeVar("T")


def together(work: Callable[[], T], group: Group) -> T:
    """Return `work()`, which must not be collective; where it fails on any rank, raise on all. Collective."""
    error: Exception | None = None
    try:
        result = work()
    except Exception as raised:
        error = raised
    raise_together(error, group)  # raises unless there is a result
    return result


def raise_together(error: Exception | None, group: Group) -> None:
    """Raise this rank's error, or one that tells of another rank's. Collective.

    Raises:
        Exception: `error` itself on the ranks that have one.
        GraphError: On the others, if any rank has an error.
    """
    if group.size > 1:
        problems = group.all_gather("" if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    if group.size > 1:
        for rank, problem in enumerate(problems):
            if problem:
                raise GraphError(f"rank {rank} failed: {problem}")
