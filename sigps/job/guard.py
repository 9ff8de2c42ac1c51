"""Whether a batch is worth an incremental run: pure functions of what it affects, and of what a full run costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sigps.errors import ConfigError

__all__ = ["Affected", "Guard", "allowance", "check_guard", "is_large", "refusal"]


@dataclass(frozen=True, eq=False)
class Affected:
    """What a batch may change, before anything runs.

    Attributes:
        ids: The ids of the vertices that got or lost an in-edge, distinct.
        fields: Their values in the last result, by field.
        edges: The edges that pulling them reads.
        num_vertices: Of the graph.
        num_edges: Stored edges of the graph.
        last_messages: Messages of the last full run.
    """

    ids: NDArray[Any]
    fields: Mapping[str, NDArray[Any]]
    edges: int
    num_vertices: int
    num_edges: int
    last_messages: int


Guard = Literal["auto", "incremental", "full"] | Mapping[str, Any] | Callable[[Affected], bool]

_SHARE = 10
"""An incremental run may cost one part in so many of the last full run's messages. Incremental runs of kron-16 and
grid-300 that cost more were given up before they had paid, or took as long as a full run."""
_LEAST = 1 << 12
"""Messages that cost less than it takes to begin a run."""

_FOLLOWED = 24
"""On several ranks an edge that rows follow takes as long as so many that are laid out and run along once. Batches of
one in 36 edges of rmat-16 took 0.8 to 1.3 of `graph.apply` and a full run, of one in 10 edges 1.7 to 2."""


def allowance(guard: Guard, last_messages: int, share: int | None = None) -> int | None:
    """Return how many messages an incremental run may cost before it is given up; None for any number.

    Args:
        guard: As users give it.
        last_messages: Those of the last full run.
        share: It may cost one part in so many of these; None: as CPU cores do.

    >>> allowance("auto", 8_000_000), allowance("auto", 10), allowance("incremental", 8_000_000)
    (800000, 4096, None)
    >>> allowance("auto", 8_000_000, 1)
    8000000
    """
    return None if guard == "incremental" else max(last_messages // (share or _SHARE), _LEAST)


def check_guard(guard: Any, fields: tuple[str, ...]) -> None:
    """Check a guard as users give it.

    Raises:
        ConfigError: If it is none, or names no field of the program.
    """
    if isinstance(guard, Mapping):
        if guard.keys() != {"field", "below", "fraction"}:
            raise ConfigError(f"guard={dict(guard)!r} must have field, below and fraction, and nothing else")
        if guard["field"] not in fields:
            raise ConfigError(
                f"guard: the program has no state {guard['field']!r}; it has: {', '.join(fields)}"
            )
        for name in ("below", "fraction"):
            if isinstance(guard[name], bool) or not isinstance(guard[name], (int, float)):
                raise ConfigError(f"guard: {name}={guard[name]!r} must be a number")
        return
    if not callable(guard) and guard not in ("auto", "incremental", "full"):
        raise ConfigError(
            f"guard={guard!r} must be 'auto', 'incremental', 'full', {{field, below, fraction}}, or a function of what "
            "is affected"
        )


def is_large(changed: int, edges: int) -> bool:
    """Tell whether it costs less to lay partitions out, and to run in full, than to let their rows follow a batch.

    Args:
        changed: Edges that the batch names, as they are stored.
        edges: Stored edges of the graph.

    >>> is_large(4000, 10_000), is_large(100_000, 2_000_000), is_large(60_000, 2_000_000)
    (False, True, False)
    """
    return changed > max(edges // _FOLLOWED, _LEAST)


def refusal(guard: Guard, affected: Affected) -> str:
    """Return why a batch gets a full run by its guard before anything runs; empty where it does not.

    >>> few = Affected(np.array([7]), {"level": np.array([1])}, 10, 100, 1000, 900)
    >>> refusal("full", few), refusal({"field": "level", "below": 2, "fraction": 0.3}, few)
    ("guard='full'", 'guard: of 100 % of the affected vertices level is below 2')
    """
    if guard == "full":
        return "guard='full'"
    if isinstance(guard, str) or not affected.ids.size:
        return ""
    if isinstance(guard, Mapping):
        below = np.count_nonzero(affected.fields[guard["field"]] < guard["below"]) / affected.ids.size
        if below <= guard["fraction"]:
            return ""
        return f"guard: of {below:.0%} of the affected vertices {guard['field']} is below {guard['below']}".replace(
            "%", " %"
        )
    if callable(guard):
        return "" if guard(affected) else "the guard's function"
    return ""
