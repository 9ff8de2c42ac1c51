"""What a superstep did, and what a lease came to."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AT_ONCE",
    "ROWS",
    "WITHOUT_BARRIERS",
    "FusedStats",
    "Outcome",
    "SaveStats",
    "StatsLog",
    "SuperstepStats",
    "added_up",
]


AT_ONCE = "at once"
"""The direction of what stands for many supersteps."""

WITHOUT_BARRIERS = "async"
"""The direction of what stands for supersteps that were not run: blocks were computed without barriers."""

ROWS = np.dtype(
    [(name, np.int64) for name in ("superstep", "direction", "ran", "messages", "nanoseconds", "num_bytes")]
    + [("imbalance", np.float64)]
)
"""What `StatsLog.append_rows` takes."""

_DIRECTIONS = ("pull", "push", "mailbox", "edge", AT_ONCE, WITHOUT_BARRIERS)


@dataclass(frozen=True)
class SuperstepStats:
    """One superstep of the whole graph.

    Attributes:
        superstep: Counted from 0.
        direction: `"push"`, `"pull"`, or `"mailbox"`; rank 0's, since partitions decide for themselves. `"edge"`
            by the edge schedule. `"at once"`: it stands for all supersteps after the first, whose fixed point was
            found in another order (`engine/fixed_points.py`). `"async"`: the same, without barriers.
        active: Vertices that ran; at once, that changed. Compiled for CPU cores, a monotone program (`sigps explain`
            tells) leaves out those whose messages were no better than what they knew; they would have changed and
            sent nothing.
        messages: Out-edges of the vertices that sent (a filter in compute() may let fewer pass), or direct messages;
            at once, edges that were passed; without barriers, edges that were read, inwards or outwards.
        bytes_moved: Bytes that crossed between ranks.
        seconds: Wall clock on rank 0. fused supersteps on CPU cores share what they took together, by the
            vertices and messages of each.
        imbalance: The slowest rank's computing time over the mean.
        blocks: Without barriers, blocks of vertices that were computed; 0 else.
        block_edges: In-edges of these blocks: over the graph's edges, how many sweeps that were.
        bytes_read: Packed bytes of edges that were unpacked, where a run streams; on a GPU those that crossed to it. On
            CPU cores also the bytes of values on edges that were read from files, or written there.
        blocks_skipped: Blocks of edges that were not, since nothing in them was to run or to send.
    """

    superstep: int
    direction: str
    active: int
    messages: int
    bytes_moved: int
    seconds: float
    imbalance: float
    blocks: int = 0
    block_edges: int = 0
    bytes_read: int = 0
    blocks_skipped: int = 0


@dataclass(frozen=True)
class SaveStats:
    """One state log of a run.

    Attributes:
        superstep: The superstep that came next.
        seconds: How long supersteps waited for it, on the slowest rank. Most of the writing goes on beside them.
        num_bytes: What all ranks wrote.
    """

    superstep: int
    seconds: float
    num_bytes: int


_NO_RECORDS: tuple[SuperstepStats, ...] = ()


class StatsLog(Sequence[SuperstepStats]):
    """The supersteps of a run so far, in order; equal to a list of the same.

    What an engine hands over as records is kept. What a device or a compiled loop counted is kept as the array that
    it came in, and a row of it becomes a `SuperstepStats` each time somebody looks: thousands of supersteps cost
    nothing until then. A slice is a list.

    Args:
        records: What it begins with.

    >>> log = StatsLog([SuperstepStats(0, "pull", 3, 4, 0, 0.5, 1.0)])
    >>> len(log), log[-1].messages, [s.superstep for s in log]
    (1, 4, [0])
    """

    def __init__(self, records: Iterable[SuperstepStats] = _NO_RECORDS) -> None:
        self._parts: list[list[SuperstepStats] | _Rows | FusedStats] = []
        self._ends: list[int] = []  # [parts]: how many supersteps there are up to the end of each part
        if records is not _NO_RECORDS:
            self.extend(records)

    def append(self, record: SuperstepStats) -> None:
        """Add one superstep."""
        self.extend((record,))

    def extend(self, records: Iterable[SuperstepStats]) -> None:
        """Add supersteps; the rows of another log stay rows, and are shared."""
        parts: Sequence[list[SuperstepStats] | _Rows | FusedStats]
        if isinstance(records, StatsLog):
            if not self._parts:  # as for each run's log, and its result's
                self._parts = [list(part) if isinstance(part, list) else part for part in records._parts]
                self._ends = records._ends.copy()
                return
            parts = tuple(records._parts)
        else:
            parts = (records if isinstance(records, FusedStats) else list(records),)
        for part in parts:
            last = self._parts[-1] if self._parts else None
            if isinstance(part, list) and isinstance(last, list):
                last += part
                self._ends[-1] += len(part)
            elif part:
                self._add(list(part) if isinstance(part, list) else part)

    def append_rows(self, rows: NDArray[Any], directions: Mapping[int, str]) -> None:
        """Add what a device counted on one rank. O(1): the array is kept, so leave it as it is.

        Args:
            rows: [supersteps] of `ROWS`, or of `kernels.lease.STATS`.
            directions: What its numbers for directions are called.
        """
        if rows.size:
            self._add(_Rows(rows, directions))

    @property
    def num_messages(self) -> int:
        """How many all supersteps sent; no record is made."""
        return sum(
            sum(record.messages for record in part) if isinstance(part, list) else part.num_messages
            for part in self._parts
        )

    def as_rows(self) -> NDArray[Any]:
        """Return supersteps as an array of `ROWS`, to cross between ranks; what runs without barriers is left out."""
        parts = [part.as_rows() if isinstance(part, _Rows) else _rows_of(part) for part in self._parts]
        return np.concatenate([np.empty(0, dtype=ROWS), *parts])

    @classmethod
    def of_rows(cls, rows: NDArray[Any]) -> StatsLog:
        """Return the log of an array of `ROWS`."""
        log = cls()
        log.append_rows(rows, dict(enumerate(_DIRECTIONS)))
        return log

    def _add(self, part: list[SuperstepStats] | _Rows | FusedStats) -> None:
        self._ends.append(len(self) + len(part))
        self._parts.append(part)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> SuperstepStats: ...
    @overload
    def __getitem__(self, index: slice) -> list[SuperstepStats]: ...
    def __getitem__(self, index: int | slice) -> SuperstepStats | list[SuperstepStats]:
        wanted = range(len(self))[index]  # says what a list says where there is no such superstep
        if isinstance(wanted, range):
            return [self[i] for i in wanted]
        where = bisect.bisect_right(self._ends, wanted)
        return self._parts[where][wanted - self._ends[where]]  # counted from the part's end, below 0

    def __iter__(self) -> Iterator[SuperstepStats]:
        for part in self._parts:
            yield from part

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (StatsLog, list)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<StatsLog: {len(self):,} superstep{'s' * (len(self) != 1)}>"


@dataclass(frozen=True, eq=False)
class _Rows(Sequence[SuperstepStats]):
    """Supersteps as a device counted them."""

    rows: NDArray[Any]
    directions: Mapping[int, str]

    @property
    def num_messages(self) -> int:
        return int(self.rows["messages"].sum())

    def __len__(self) -> int:
        return int(self.rows.size)

    def __getitem__(self, index: Any) -> Any:
        return self._made(*self.rows[index].tolist())

    def as_rows(self) -> NDArray[Any]:
        """Return them with the numbers of `_DIRECTIONS`."""
        found = self.rows[list(ROWS.names or ())].astype(ROWS)
        for number, name in self.directions.items():
            found["direction"][self.rows["direction"] == number] = _DIRECTIONS.index(name)
        return found

    def __iter__(self) -> Iterator[SuperstepStats]:
        return (self._made(*row) for row in self.rows.tolist())

    def _made(
        self,
        superstep: int,
        direction: int,
        ran: int,
        messages: int,
        nanoseconds: int,
        num_bytes: int,
        imbalance: float,
        num_skipped: int = 0,
        num_read: int = 0,
    ) -> SuperstepStats:
        given = superstep, self.directions[direction], ran, messages, num_bytes, nanoseconds * 1e-9
        return SuperstepStats(*given, imbalance, bytes_read=num_read, blocks_skipped=num_skipped)


def _rows_of(records: Iterable[SuperstepStats]) -> NDArray[Any]:
    cells = [
        (
            s.superstep,
            _DIRECTIONS.index(s.direction),
            s.active,
            s.messages,
            round(s.seconds * 1e9),
            s.bytes_moved,
            s.imbalance,
        )
        for s in records
    ]
    return np.array(cells, dtype=ROWS)


class FusedStats(Sequence[SuperstepStats]):
    """Fused supersteps on CPU cores, on one rank; each becomes a record when somebody looks at it.

    Their common time is shared out by the work of each and a little for being one.

    Args:
        first: The first of them.
        counts: [3, supersteps]: vertices that ran, messages, work.
        seconds: What they took together.

    >>> [s.seconds for s in FusedStats(0, np.array([[5, 7], [80, 170], [84, 184]]), 3.0)]
    [1.0, 2.0]
    """

    def __init__(self, first: int, counts: NDArray[np.int64], seconds: float) -> None:
        self._first, self._counts = first, counts
        self._len = int(counts.shape[1])
        self._second = seconds / max(1, int(counts[2].sum()) + self._len * _WORK_OF_A_SUPERSTEP)

    @property
    def num_messages(self) -> int:
        """How many all of them sent; no record is made."""
        return int(self._counts[1].sum())

    def __len__(self) -> int:
        return self._len

    def __getitem__(self, index: Any) -> Any:
        wanted = range(self._len)[index]
        if isinstance(wanted, range):
            return [self[i] for i in wanted]
        return self._made(wanted, *self._counts[:, wanted].tolist())

    def __iter__(self) -> Iterator[SuperstepStats]:
        return (self._made(i, *counted) for i, counted in enumerate(self._counts.T.tolist()))

    def _made(self, index: int, ran: int, messages: int, work: int) -> SuperstepStats:
        superstep = self._first + index
        seconds = (work + _WORK_OF_A_SUPERSTEP) * self._second
        # No message arrives in superstep 0, which reads as it does where the loop begins after it.
        return SuperstepStats(superstep, "push" if superstep else "pull", ran, messages, 0, seconds, 1.0)


_WORK_OF_A_SUPERSTEP = 16


@dataclass
class Outcome:
    """What a lease came to.

    Attributes:
        ended: Whether nothing is active and nothing is in flight.
        stats: One entry a superstep.
        stopped: Whether the program's `master()` or `next_phase()` ended it.
    """

    ended: bool
    stats: StatsLog = field(default_factory=StatsLog)
    stopped: bool = False


def added_up(stats: StatsLog, gather: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> StatsLog:
    """Return what all ranks did, which ran the same supersteps. Collective.

    Args:
        stats: What this rank did.
        gather: Returns what each rank gives, 1-D, as [ranks, numbers].
    """
    own = np.array([(entry.active, entry.messages, entry.bytes_moved) for entry in stats], dtype=np.int64)
    counts = gather(own.ravel()).sum(axis=0).reshape(-1, 3).tolist()
    return StatsLog(
        replace(entry, active=active, messages=messages, bytes_moved=num_bytes)
        for entry, (active, messages, num_bytes) in zip(stats, counts, strict=True)
    )
