"""How the ranks of a run are watched: the limits, and an exchange that reports when this rank waits for others."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigps.engine.exchange import Arrays, Exchange
from sigps.errors import ConfigError
from sigps.group import Group
from sigps.system.faults.detector import FaultDetector

__all__ = ["Faults", "WatchedExchange", "watch"]

T = TypeVar("T")


@dataclass(frozen=True)
class Faults:
    """The limits beyond which a rank counts as lost, and the run ends. Without effect on one rank.

    Args:
        silent_seconds: How long a rank may be without a heartbeat; inf: ranks do not watch each other.
        superstep_seconds: How long it may compute at a stretch, the first superstep's compilation included.

    Raises:
        ConfigError: If a number is not above 0.
    """

    silent_seconds: float = 20.0
    superstep_seconds: float = math.inf

    def __post_init__(self) -> None:
        for name in ("silent_seconds", "superstep_seconds"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise ConfigError(f"faults: {name}={value!r} must be a number above 0; inf is no limit")


def watch(
    group: Group, faults: Faults | None, last_log: Callable[[], str | None]
) -> contextlib.AbstractContextManager[FaultDetector | None]:
    """Return this rank's fault detector, or a context of None where ranks are not watched. Collective."""
    if group.size == 1 or faults is None or faults.silent_seconds == math.inf:
        return contextlib.nullcontext()
    detector = FaultDetector(
        group,
        interval=min(1.0, faults.silent_seconds / 4),
        silent_seconds=faults.silent_seconds,
        superstep_seconds=faults.superstep_seconds,
    )
    detector.last_log = last_log
    return detector


class WatchedExchange:
    """An exchange that reports to the fault detector when this rank waits in the exchange that it calls."""

    def __init__(self, inner: Exchange, detector: FaultDetector, superstep: Callable[[], int]) -> None:
        self.rank, self.size, self.on_device = inner.rank, inner.size, inner.on_device
        self._inner, self._detector, self._superstep = inner, detector, superstep

    def publish(self, sent: NDArray[np.uint8], records: Arrays) -> None:
        self._inner.publish(sent, records)

    def collect(self, sent: NDArray[np.uint8], records: Arrays) -> tuple[NDArray[np.int64], int]:
        return self._waiting(lambda: self._inner.collect(sent, records))

    def route(
        self, gids: NDArray[np.int64], senders: NDArray[np.int64] | None, messages: Arrays
    ) -> tuple[NDArray[np.int64], Arrays, int]:
        return self._waiting(lambda: self._inner.route(gids, senders, messages))

    def find(self, ids: NDArray[np.int64], superstep: int) -> NDArray[np.int64]:
        return self._waiting(lambda: self._inner.find(ids, superstep))

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._waiting(lambda: self._inner.gather(values))

    def swap(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return self._waiting(lambda: self._inner.swap(parts))

    def _waiting(self, exchange: Callable[[], T]) -> T:
        self._detector.waiting()
        try:
            return exchange()
        finally:
            self._detector.computing(self._superstep)
