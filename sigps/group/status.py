"""What one rank is doing, in memory that its watchdog process reads: no Python lock and no system call between them.

Imports Python's own modules alone, as the watchdog process does.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["SILENT_SECONDS", "Status", "Unwatched"]

SILENT_SECONDS = 20.0
_PHASE_BYTES = 64
_LOG_BYTES = 4096
_SIGNAL_BYTES = 8  # the last of the file: more is written behind it


class Status(ctypes.Structure):
    """The status of a rank; the rank alone writes it. Times are those of `time.monotonic()`, one clock a host.

    Attributes:
        since: When the rank began to wait, or to compute.
        failed_at: When an exception left a phase; 0 where none did since a phase began.
        ended_at: When the process began to end by itself, so that its end is no death; 0 before.
        silent_seconds, superstep_seconds: The limits, as in `sigps.Faults`.
        superstep: The superstep that it is in; -1 outside of supersteps.
        is_waiting: Whether it waits for other ranks, in a collective.
        signal_text: What `faulthandler` writes when SIGTERM ends the process, whatever code runs; empty before.
        phase_text, log_text: The phase, and the log to go on from, in UTF-8.
        waiting: `with status.waiting` records that the rank waits for others in a block.
        notify: Makes the watchdog read the status now.
        read_superstep: Returns the superstep of the engine that runs; None outside of supersteps. In the rank alone.
    """

    _fields_ = [
        ("since", ctypes.c_double),
        ("failed_at", ctypes.c_double),
        ("ended_at", ctypes.c_double),
        ("silent_seconds", ctypes.c_double),
        ("superstep_seconds", ctypes.c_double),
        ("superstep", ctypes.c_int64),
        ("is_waiting", ctypes.c_bool),
        ("phase_text", ctypes.c_char * _PHASE_BYTES),
        ("log_text", ctypes.c_char * _LOG_BYTES),
        ("signal_text", ctypes.c_char * _SIGNAL_BYTES),
    ]
    since: float
    failed_at: float
    ended_at: float
    silent_seconds: float
    superstep_seconds: float
    superstep: int
    is_waiting: bool
    phase_text: bytes
    log_text: bytes
    signal_text: bytes
    waiting: Waiting
    notify: Callable[[], object] = staticmethod(lambda: None)
    read_superstep: Callable[[], int] | None = None

    @classmethod
    def create(cls, memory: Any = None) -> Status:
        """Return the status of a rank that begins, in memory of its own or in this."""
        made = cls.from_buffer(bytearray(ctypes.sizeof(cls)) if memory is None else memory)
        made.superstep, made.since = -1, time.monotonic()
        made.silent_seconds, made.superstep_seconds = SILENT_SECONDS, math.inf
        made.waiting = Waiting(made)
        return made

    @property
    def phase(self) -> str:
        return self.phase_text.decode(errors="replace")

    @property
    def last_log(self) -> str | None:
        return self.log_text.decode(errors="replace") or None

    def during(self, phase: str) -> AbstractContextManager[None]:
        """Record what the rank does in this block, such as "loading the graph"."""
        return Phase(self, phase)

    def in_supersteps(self, read_superstep: Callable[[], int]) -> AbstractContextManager[None]:
        """Record that the rank computes supersteps in this block, which `superstep_seconds` limits."""
        return Supersteps(self, read_superstep)

    def limits(self, silent_seconds: float, superstep_seconds: float) -> AbstractContextManager[None]:
        """Watch by these limits in this block; where it fails they stay, for the others that wait for this rank."""
        return Limits(self, silent_seconds, superstep_seconds)

    def record_log(self, last_log: object) -> None:
        """Record that the run can go on from this log; None: from none."""
        text = "" if last_log is None else str(last_log)
        self.log_text = text.encode(errors="replace")[: _LOG_BYTES - 1]

    def record_end(self, *, has_failed: bool = False) -> None:
        """Record that the process ends by itself from here on, after a failure that it has reported where one is."""
        self.ended_at = time.monotonic()
        self.failed_at = self.ended_at if has_failed else 0.0
        self.notify()

    def begin(self, *, is_waiting: bool) -> None:
        """Record that the rank waits, or computes, from now on."""
        if self.read_superstep is not None:
            self.superstep = self.read_superstep()
        self.is_waiting = is_waiting
        self.since = time.monotonic()


class Unwatched(Status):
    """The status of a process that nobody watches: blocks record nothing."""

    def during(self, phase: str) -> AbstractContextManager[None]:
        """Record nothing."""
        return _NOTHING

    def in_supersteps(self, read_superstep: Callable[[], int]) -> AbstractContextManager[None]:
        """Record nothing."""
        return _NOTHING

    def limits(self, silent_seconds: float, superstep_seconds: float) -> AbstractContextManager[None]:
        """Record nothing."""
        return _NOTHING


_NOTHING = contextlib.nullcontext()


class Limits:
    """A block in which a rank is watched by limits: `with status.limits(...)`."""

    __slots__ = ("_before", "_limits", "_status")

    def __init__(self, status: Status, *limits: float) -> None:
        self._status, self._limits = status, limits

    def __enter__(self) -> None:
        status = self._status
        self._before = status.silent_seconds, status.superstep_seconds
        status.silent_seconds, status.superstep_seconds = self._limits

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None:
            self._status.silent_seconds, self._status.superstep_seconds = self._before


class Phase:
    """A block that records what the rank does: `with status.during(phase)`. After a failure the phase stays."""

    __slots__ = ("_before", "_phase", "_status")

    def __init__(self, status: Status, phase: str) -> None:
        self._status, self._phase = status, phase.encode()[:_PHASE_BYTES]

    def __enter__(self) -> None:
        status = self._status
        self._before = status.phase_text
        status.failed_at, status.phase_text = 0.0, self._phase
        status.read_superstep, status.superstep = None, -1

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None:
            self._status.phase_text = self._before
        else:
            self._status.failed_at = time.monotonic()


class Supersteps:
    """A block in which the rank computes supersteps: `with status.in_supersteps(read_superstep)`."""

    __slots__ = ("_read_superstep", "_status")

    def __init__(self, status: Status, read_superstep: Callable[[], int]) -> None:
        self._status, self._read_superstep = status, read_superstep

    def __enter__(self) -> None:
        self._status.failed_at, self._status.read_superstep = 0.0, self._read_superstep
        self._status.begin(is_waiting=False)

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None:
            self._status.read_superstep, self._status.superstep = None, -1
        else:
            self._status.failed_at = time.monotonic()


class Waiting:
    """A block in which a rank waits for others: `with status.waiting`."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def __enter__(self) -> None:
        self._status.begin(is_waiting=True)

    def __exit__(self, *_: object) -> None:
        self._status.begin(is_waiting=False)
