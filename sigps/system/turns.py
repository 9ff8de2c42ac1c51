"""Leases in turns: how a run among others on one device waits before each of its leases."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Turns", "awaited_word", "current_turns", "taking_turns"]

_words = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.uint32)


def awaited_word(number: int) -> NDArray[np.uint32]:
    """Return a word for `Turns.awaited`, [1], that GPUs may read, too: it lies in a page of such words.

    Runs whose numbers are a thousand apart share one: a lease of one may then end sooner than it must.
    """
    return _words[number % _words.size :][:1]


class Turns(Protocol):
    """Who says when a run may go on. A boundary: `sigps.serve` implements it.

    Attributes:
        lease_seconds: How long a lease should be.
        awaited: [1], not 0 where the lease is to end after its superstep, since one waits that has little to do.
    """

    lease_seconds: float
    awaited: NDArray[np.uint32]

    def first_lease(self) -> int:
        """Return how many supersteps a run's first lease may have, where its engine does not end leases by time."""

    def wait(self, save: Callable[[], bool] | None) -> None:
        """Wait until the next lease may run. What it raises ends the run.

        Args:
            save: Saves the run's state, so that it can go on from there later, and tells whether that is done; None
                of a run without state logs.
        """

    def end(self) -> None:
        """Take notice that the run has had its last lease: what is left to do needs no turn."""


_current: ContextVar[Turns | None] = ContextVar("turns", default=None)


@contextlib.contextmanager
def taking_turns(turns: Turns) -> Iterator[None]:
    """Let runs that this thread starts in the block wait before each lease."""
    before = _current.set(turns)
    try:
        yield
    finally:
        _current.reset(before)


def current_turns() -> Turns | None:
    """Return what this thread's runs wait for; None where they have their device alone."""
    return _current.get()
