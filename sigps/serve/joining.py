"""Which jobs run as one, and how many: pure functions of what they are, and of what such runs took before.

Jobs of one class on one graph with the same options are one run, where they have the same parameters, or lanes of one
run (`job/many.py`), where their parameters differ in numbers and that was faster so far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from sigps.compiler.program import VertexProgram
from sigps.serve.job import Job

__all__ = [
    "Joining",
    "Times",
    "are_equal",
    "differing",
    "first_lease",
    "is_joinable",
    "is_short",
    "lanes_of",
    "most_lanes",
    "why_apart",
]

Joining = Literal["auto", "never"]

_MOST = 64
"""Lanes of one run at most: a bit of a word each."""

_QUANTA = 10.0
"""How long a run of lanes may have the device, which it has to its end, in quanta."""

_SEVERAL = 4
"""Runs alone, and lanes, from which on their means are compared."""

_REMEMBERED = 0.9
"""Of the longest run, for each one since: one that the machine held up for 50 ms does not count for ever."""

_LATEST = 9
"""Runs by whose median it goes whether the next one should end within a lease: one that was held up counts little."""

_SUMS = ("sum", "prod", "user")
"""How messages combine in an order that lanes have otherwise than a run alone."""


@dataclass
class Times:
    """What runs of one program on one graph took of a device so far.

    Attributes:
        runs, seconds: Of those alone: how many, and what they took.
        longest: The longest of them, or of lanes, of late.
        most_supersteps: Of one alone.
        lanes, lane_seconds: Lanes, and what they took.
        obstacle: Why lanes were refused when they were to run; empty where they were not.
        latest: What the last runs alone took.
    """

    runs: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    most_supersteps: int = 0
    lanes: int = 0
    lane_seconds: float = 0.0
    obstacle: str = ""
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST), compare=False)
    _first: float = field(default=0.0, init=False, repr=False, compare=False)
    _others: float = field(default=0.0, init=False, repr=False, compare=False)

    def record_alone(self, seconds: float, supersteps: int) -> None:
        """Take the seconds and supersteps of one run.

        The first one may have waited for compiled code, too: 320 ms where all others took 0.3. From the fourth on it
        counts as the longest of the others.
        """
        self.most_supersteps = max(self.most_supersteps, supersteps)
        self.latest.append(seconds)
        if self.runs == 0:
            self._first = seconds
        else:
            self._others = max(self._others, seconds)
        self.runs, self.seconds = self.runs + 1, self.seconds + seconds
        self.longest = max(_REMEMBERED * self.longest, seconds)
        if self.runs == _SEVERAL and self._first > self._others:
            self.seconds += self._others - self._first
            self.longest = self._others

    def record_lanes(self, lanes: int, seconds: float) -> None:
        """Take the seconds of a run of several lanes."""
        self.lanes, self.lane_seconds = self.lanes + lanes, self.lane_seconds + seconds
        self.longest = max(self.longest, seconds / lanes)
        self._others = max(self._others, seconds / lanes)


def first_lease(times: Times, quantum: float) -> int:
    """Return how many supersteps a run's first lease may have. Pure.

    One, where nothing is known, or a run takes longer than a quantum: its supersteps may differ a thousandfold. As many
    as twice the longest run had where none took longer: then a run has one lease and not a few, each of which another
    may come before (40 `BFS` of kron-22 on an NVIDIA H200: 84 ms, 139 before).

    >>> first_lease(Times(), 0.01), first_lease(Times(2, 0.01, 0.008, 7), 0.01), first_lease(Times(1, 1.0, 1.0, 9), 0.1)
    (1, 14, 1)
    """
    return max(1, 2 * times.most_supersteps) if times.runs and times.longest <= quantum else 1


def is_short(times: Times, quantum: float) -> bool:
    """Tell whether a run should end within its first lease, so that a longer one's ends early for it. Pure.

    By the median of late, and not by the longest: beside `PageRank` on two busy cores 4 to 10 of 100 searches took
    longer than a quantum, and by the longest one 18 to 54 of 100 were not taken for short; by the median none.

    >>> is_short(Times(), 0.01), is_short(Times(latest=deque([0.001, 0.001, 0.09])), 0.01)
    (False, True)
    """
    return bool(times.latest) and median(times.latest) <= quantum


def most_lanes(times: Times, quantum: float) -> int:
    """Return how many lanes a run may have; 1 where jobs run alone. Pure.

    They do before one has, so that its seconds are known; where lanes took longer, by several of both, since a run
    from a vertex without edges takes nothing; and where fewer than two end within ten quanta, for which nobody else
    would have the device.

    >>> most_lanes(Times(), 0.01), most_lanes(Times(2, 0.01, 0.008), 0.01), most_lanes(Times(1, 0.2, 0.2), 0.01)
    (1, 12, 1)
    >>> most_lanes(Times(4, 0.02, 0.008, lanes=8, lane_seconds=0.08), 0.01)
    1
    """
    if not times.runs or times.obstacle:
        return 1
    is_known = times.runs >= _SEVERAL and times.lanes >= _SEVERAL
    if is_known and times.lane_seconds / times.lanes >= times.seconds / times.runs:
        return 1
    return max(1, min(_MOST, int(_QUANTA * quantum / max(times.longest, 1e-9))))


def why_apart(program: VertexProgram | None, options: Mapping[str, Any], varied: Sequence[str]) -> str:
    """Say why runs that differ in some parameters are no lanes with the bits of runs alone; empty where they are. Pure.

    Args:
        program: What the compiler derived; None for the interpreter.
        options: Of `sigps.run`, those that were given.
        varied: The parameters.
    """
    if program is None:
        return "the interpreter has one run at a time"
    if program.lanes_obstacle:
        return program.lanes_obstacle
    by_run = [field.name for field in program.params if not field.is_table]
    if fixed := [name for name in varied if name not in by_run]:
        return f"{fixed[0]} is a table, or fixed when the program is compiled"
    asynchronous = options.get("asynchronous", "auto")
    if asynchronous is True or options.get("schedule", "vertex") != "vertex":
        return "asynchronous=True and schedule='edge' have one run at a time"
    contracts = program.asynchronous is not None and program.asynchronous.factor is not None
    if asynchronous and (contracts or program.priority_form is not None or program.path_lengths is not None):
        return "alone its supersteps may be other ones; asynchronous=False has those of BSP"
    sums_messages = any(op in _SUMS for op in program.slot_ops)
    sums_floats = any(a.kind == "sum" and a.field.dtype().base.kind == "f" for a in program.aggregators)
    if (sums_messages or sums_floats) and not options.get("deterministic", False):
        return "its sums may be rounded otherwise; deterministic=True rounds them one way"
    return ""


def is_joinable(job: Job) -> bool:
    """Tell whether a job may run as one with others: its class runs here, and its state is not saved."""
    if (
        job.program is None
        or job.num_devices > 1
        or job.folder is not None
        or job.options.get("trace") is not None
    ):
        return False
    return not job.program.declaration.edge_states  # results would share their arrays


def are_equal(one: Job, other: Job) -> bool:
    """Tell whether two jobs are of one class, on one version of a graph, with the same options but for the seed."""
    if type(one.program) is not type(other.program) or one.graph is not other.graph:
        return False
    return not _differing({**one.options, "seed": None}, {**other.options, "seed": None})


def differing(one: Job, other: Job) -> list[str]:
    """Return the parameters in which two jobs of one class differ; `seed`, an option, is one of them."""
    seeds = [job.options.get("seed", 0) for job in (one, other)]
    names = _differing(one.program.params, other.program.params)
    return names if _is_same(*seeds) else [*names, "seed"]


def lanes_of(jobs: Sequence[Job]) -> list[list[Job]]:
    """Return jobs by their lanes: those that differ in nothing have one."""
    lanes: list[list[Job]] = []
    for job in jobs:
        for lane in lanes:
            if not differing(lane[0], job):
                lane.append(job)
                break
        else:
            lanes.append([job])
    return lanes


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    names = [*one, *(name for name in other if name not in one)]
    missing = object()
    return [name for name in names if not _is_same(one.get(name, missing), other.get(name, missing))]


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether values are the same in every bit; arrays and the like where they are one object."""
    if one is other:
        return True
    is_plain = isinstance(one, (bool, int, float, str)) and type(one) is type(other)
    return is_plain and repr(one) == repr(other)
