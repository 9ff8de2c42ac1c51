"""Which job has a device for the next lease: a pure function of what each tenant and job has had."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal, NamedTuple, get_args

from sigps.errors import ConfigError, nearest

__all__ = ["Phase", "Ready", "TurnPolicy", "aged", "choose_job", "joined"]

TurnPolicy = Literal["round_robin", "fair_share", "least_attained", "phase"]

Phase = Literal["compute", "copy", "other"]


class Ready(NamedTuple):
    """A job that could have the next lease.

    Attributes:
        number: Of the job, in order of submission.
        tenant: Whose it is.
        weight: The tenant's share, above 0.
        charged: Seconds that the tenant's leases took, in whole: what a lease ran beyond its quantum is charged too.
        attained: Recent seconds of the job itself: see `aged`.
        phase: What its next lease does.
        priority: Among the tenant's own jobs: only those of the highest have leases.
    """

    number: int
    tenant: str
    weight: float = 1.0
    charged: float = 0.0
    attained: float = 0.0
    phase: Phase = "compute"
    priority: int = 0


def choose_job(
    policy: TurnPolicy, ready: Sequence[Ready], *, last: int = -1, running: Container[Phase] = ()
) -> int | None:
    """Return the number of the job for the next lease; None where none is ready. Pure.

    `round_robin` is the next number after `last`; `fair_share` a job of the tenant with the fewest charged seconds
    for its weight, and of its jobs the next after `last`; `least_attained` the job with the fewest recent seconds;
    `phase` one whose phase no other job is in (computing before copying), else as `least_attained`.

    Args:
        policy: The policy; another may be given at each call.
        ready: The jobs, in any order.
        last: The job that had the lease before; -1 for none.
        running: Phases of jobs that run on the device at this moment.

    Raises:
        ConfigError: If there is no such policy.
    """
    if policy not in get_args(TurnPolicy):
        known = get_args(TurnPolicy)
        raise ConfigError(f"policy={policy!r} is not one of {', '.join(known)}{nearest(str(policy), known)}")
    if not ready:
        return None
    highest: dict[str, int] = {}
    for job in ready:
        highest[job.tenant] = max(job.priority, highest.get(job.tenant, job.priority))
    ready = [job for job in ready if job.priority == highest[job.tenant]]
    if policy == "round_robin":
        chosen = min(ready, key=lambda job: _after(job, last))
    elif policy == "fair_share":
        chosen = min(ready, key=lambda job: (job.charged / job.weight, job.tenant, _after(job, last)))
    elif policy == "least_attained":
        chosen = min(ready, key=lambda job: (job.attained, job.number))
    else:
        order = ("compute", "copy", "other")
        chosen = min(ready, key=lambda j: (j.phase in running, order.index(j.phase), j.attained, j.number))
    return chosen.number


def _after(job: Ready, last: int) -> tuple[bool, int]:
    return job.number <= last, job.number


def aged(attained: float, seconds: float, intervals: int = 1) -> float:
    """Return a job's recent seconds after intervals of which it had `seconds` in the last: a fifth of the past stays.

    >>> round(aged(1.0, 2.0), 3), round(aged(1.0, 0.0, intervals=2), 3)
    (1.8, 0.04)
    """
    return 0.8 * seconds + 0.2**intervals * attained


def joined(charged: float, weight: float, others: Sequence[Ready]) -> float:
    """Return what a tenant without jobs is charged with when it comes back: no credit for the time it was away.

    Args:
        charged: What it had been charged with.
        weight: Its share.
        others: Jobs that are ready, of other tenants.

    >>> joined(1.0, 2.0, [Ready(0, "a", weight=1.0, charged=6.0)])
    12.0
    """
    return max(charged, weight * min((job.charged / job.weight for job in others), default=0.0))
