"""What a pool is doing, as plain numbers: its devices, tenants, graphs and jobs, and how leases were shared of late."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sigps.serve.job import JobRow

__all__ = [
    "DeviceRow",
    "GraphRow",
    "Overview",
    "TenantRow",
    "Window",
    "jain",
    "overview_of",
    "window_between",
]


@dataclass(frozen=True)
class DeviceRow:
    """A device of a pool, at one moment.

    Attributes:
        jobs: Those that were admitted to it and have not ended.
        leases: How many have ended.
        lease_seconds: What they took, with the one that goes on.
        num_bytes: All that the pool may take there.
        graph_bytes: Of these, what graphs keep.
        own_bytes: Of these, what jobs take by themselves.
    """

    name: str
    jobs: int
    leases: int
    lease_seconds: float
    num_bytes: int
    graph_bytes: int
    own_bytes: int


@dataclass(frozen=True)
class TenantRow:
    """A tenant of a pool, at one moment.

    Attributes:
        lease_seconds: What its leases took, with those that go on.
        active: Its jobs that have not ended and are not suspended.
        done: Its jobs that ended with a result; `failed` and `cancelled` are the others.
    """

    name: str
    weight: float
    lease_seconds: float
    active: int
    done: int
    failed: int
    cancelled: int


@dataclass(frozen=True)
class GraphRow:
    """A graph that a pool keeps."""

    name: str
    vertices: int
    edges: int


@dataclass(frozen=True)
class Window:
    """What passed between two moments.

    Attributes:
        end: In seconds since 1970.
        seconds: Its length.
        busy: The share of it in which each device had a lease.
        taken: The seconds of leases of each tenant that had some.
        fairness: Jain's index of these by weight, among tenants that had jobs at both ends; None of fewer than two.
    """

    end: float
    seconds: float
    busy: Mapping[str, float]
    taken: Mapping[str, float]
    fairness: float | None


@dataclass(frozen=True)
class Overview:
    """A pool, at one moment.

    Attributes:
        began: When the pool began, in seconds since 1970.
        at: The moment.
        jobs: Those that have not ended and the last hundred others, newest first.
        windows: The last minutes, oldest first; only a server keeps them.
    """

    began: float
    at: float
    devices: Sequence[DeviceRow]
    tenants: Sequence[TenantRow]
    graphs: Sequence[GraphRow]
    jobs: Sequence[JobRow]
    windows: Sequence[Window] = ()

    def num_jobs(self, *states: str) -> int:
        """Return how many jobs of the table are in one of these states."""
        return sum(job.state in states for job in self.jobs)


def jain(service: Iterable[float]) -> float | None:
    """Return Jain's index of fairness: 1 where all have the same, 1 / n where one has all; None of fewer than two.

    Jain, Chiu, Hawe: A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984.

    >>> jain([2.0, 2.0]), jain([4.0, 0.0]), jain([1.0])
    (1.0, 0.5, None)
    """
    values = list(service)
    if len(values) < 2 or not any(values):
        return None
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def window_between(before: Overview, now: Overview) -> Window:
    """Return what passed between two moments of one pool. Pure."""
    seconds = max(now.at - before.at, 1e-9)
    device_seconds = {row.name: row.lease_seconds for row in before.devices}
    tenants = {row.name: row for row in before.tenants}
    taken, shares = {}, []
    for row in now.tenants:
        earlier = tenants.get(row.name)
        taken[row.name] = row.lease_seconds - (earlier.lease_seconds if earlier else 0.0)
        if earlier and earlier.active and row.active:
            shares.append(taken[row.name] / row.weight)
    return Window(
        end=now.at,
        seconds=seconds,
        busy={
            row.name: min(1.0, (row.lease_seconds - device_seconds.get(row.name, 0.0)) / seconds)
            for row in now.devices
        },
        taken={name: value for name, value in taken.items() if value > 0},
        fairness=jain(shares),
    )


def overview_of(plain: Mapping[str, Any]) -> Overview:
    """Return the overview whose `dataclasses.asdict` crossed a socket."""
    rows = {"devices": DeviceRow, "tenants": TenantRow, "graphs": GraphRow, "jobs": JobRow, "windows": Window}
    return Overview(
        began=plain["began"],
        at=plain["at"],
        **{name: [row(**each) for each in plain[name]] for name, row in rows.items()},
    )
