"""A run as a timeline in the trace event format, which Perfetto and Chrome's tracing page open.

One process a rank, with the lines of its account; on rank 0 also the supersteps, and how many vertices were active and
messages sent as counters. A superstep's length was measured; where it begins is known of the first of each lease, and
the others follow it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sigps.account import Span
from sigps.engine.stats import SuperstepStats
from sigps.errors import OutputError
from sigps.whole_files import write_whole

__all__ = ["RankSpans", "own_spans", "timeline", "write_timeline"]


class RankSpans(NamedTuple):
    """The spans of one rank.

    Attributes:
        host: The name of its machine.
        epoch: The seconds since 1970 at which its `time.perf_counter()` was 0.
        spans: Lines of its account: name, begin and end by that clock.
    """

    host: str
    epoch: float
    spans: Sequence[Span]


def own_spans(host: str, spans: Sequence[Span]) -> RankSpans:
    """Return this process's spans with its clock."""
    return RankSpans(host, time.time() - time.perf_counter(), spans)


def timeline(
    ranks: Sequence[RankSpans], stats: Sequence[SuperstepStats], leases: Sequence[tuple[float, int]]
) -> dict[str, Any]:
    """Return the timeline as the trace event format has it; times are in microseconds since the first span.

    Args:
        ranks: The spans of each rank, by rank.
        stats: The supersteps.
        leases: When each lease began on rank 0, by its `time.perf_counter()`, and how many supersteps it ran; those of
            a run that went on from a state log are the last ones.
    """
    begins = [rank.epoch + begin for rank in ranks for _, begin, _ in rank.spans]
    begins += [ranks[0].epoch + begin for begin, _ in leases]
    origin = min(begins, default=0.0)
    events: list[dict[str, Any]] = []
    for number, rank in enumerate(ranks):
        events.append(_named("process_name", number, 0, f"rank {number} on {rank.host}"))
        events.append(_named("thread_name", number, 0, "phases"))
        for line, begin, end in rank.spans:
            events.append(_event(line, rank.epoch + begin - origin, end - begin, number, 0, {}))
    events.append(_named("thread_name", 0, 1, "supersteps"))
    events += _supersteps(stats, leases, ranks[0].epoch - origin)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write_timeline(path: str | Path, trace: dict[str, Any]) -> None:
    """Write a timeline to a file; an older one is replaced when it is whole.

    Raises:
        OutputError: If it cannot be written there.
    """
    text = json.dumps(trace, separators=(",", ":"))
    try:
        write_whole(Path(path), lambda file: file.write(text.encode()))
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None


def _supersteps(
    stats: Sequence[SuperstepStats], leases: Sequence[tuple[float, int]], shift: float
) -> Iterator[dict[str, Any]]:
    done = len(stats) - sum(count for _, count in leases)
    for begin, count in leases:
        at = begin + shift
        for s in stats[done : done + count]:
            numbers = {"active": s.active, "messages": s.messages, "bytes moved": s.bytes_moved}
            about = {"direction": s.direction, **numbers, "imbalance": s.imbalance}
            yield _event(f"superstep {s.superstep}", at, s.seconds, 0, 1, about)
            for name in ("active", "messages"):
                yield {"name": name, "ph": "C", "ts": at * 1e6, "pid": 0, "args": {name: numbers[name]}}
            at += s.seconds
        done += count


def _event(name: str, at: float, seconds: float, pid: int, tid: int, about: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "ph": "X",
        "ts": at * 1e6,
        "dur": seconds * 1e6,
        "pid": pid,
        "tid": tid,
        "args": about,
    }


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
