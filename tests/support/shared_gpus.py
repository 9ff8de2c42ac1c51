"""A pool of GPUs under a fake clock: what policies make of jobs that come at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sigps.serve.placing import Demand, GpuLoad, PlacingPolicy, choose_gpu, slowdown
from sigps.serve.turns import Ready, TurnPolicy, aged, choose_job, joined

LONG = {  # assumed, not measured: seconds alone, demands, gigabytes
    "PageRank": (10.0, Demand(0.60, 0.90), 6),
    "KCore": (50.0, Demand(0.30, 0.25), 3),
    "SSSP": (9.0, Demand(0.55, 0.45), 5),
    "CDLP": (40.0, Demand(0.90, 0.70), 8),
    "Triangles": (30.0, Demand(0.95, 0.30), 4),
    "HITS": (15.0, Demand(0.50, 0.95), 7),
}
SHORT = {
    "BFS": (0.8, Demand(0.40, 0.30), 2),
    "WCC": (1.4, Demand(0.50, 0.60), 3),
    "KHop": (0.5, Demand(0.20, 0.15), 2),
    "PersonalisedPageRank": (2.0, Demand(0.55, 0.85), 4),
}
PROFILES = LONG | SHORT
PAIRS = [(long, short) for long in LONG for short in SHORT]


@dataclass
class Running:
    program: str
    began: float
    left: float


def arrivals(
    pair: tuple[str, str], gpus: int, jobs: int, seed: int, load: float = 0.7
) -> list[tuple[float, str]]:
    """Jobs of two programs, as many seconds of one as of the other, that come by exponential intervals."""
    draw = np.random.default_rng(seed)
    long, short = (PROFILES[name][0] for name in pair)
    is_long = draw.random(jobs) < short / (short + long)
    mean = np.where(is_long, long, short).mean() / (load * gpus)
    times = np.cumsum(draw.exponential(mean, jobs))
    return [(float(t), pair[0] if flag else pair[1]) for t, flag in zip(times, is_long, strict=True)]


def place_all(
    policy: PlacingPolicy,
    coming: Sequence[tuple[float, str]],
    speeds: Sequence[float],
    gigabytes: int = 80,
) -> list[float]:
    """Return each job's speedup against alone on a GPU of speed 1 (its seconds alone / from arrival to end).

    Jobs on one GPU run side by side and slow each other down where a resource is full. A program's demand is known
    to the policy from when a job of it has ended. One that fits nowhere waits, first come first served.
    """
    on: list[list[Running]] = [[] for _ in speeds]
    history: dict[str, Demand] = {}
    speedups: list[float] = []
    waiting: list[tuple[float, str]] = []
    now, following, last = 0.0, 0, -1
    while len(speedups) < len(coming):
        rates = [
            speed / slowdown([PROFILES[j.program][1] for j in jobs])
            for speed, jobs in zip(speeds, on, strict=True)
        ]
        ends = [j.left / rate for jobs, rate in zip(on, rates, strict=True) for j in jobs]
        arrives = coming[following][0] if following < len(coming) else np.inf
        until = min(min(ends, default=np.inf), arrives - now)
        now += until
        for jobs, rate in zip(on, rates, strict=True):
            for job in jobs:
                job.left -= until * rate
                if job.left <= 1e-9:
                    alone, demand, _ = PROFILES[job.program]
                    speedups.append(alone / (now - job.began))
                    history[job.program] = demand
            jobs[:] = [job for job in jobs if job.left > 1e-9]
        if following < len(coming) and arrives <= now + 1e-12:
            waiting.append(coming[following])
            following += 1
        while waiting:
            came, program = waiting[0]
            alone, _, size = PROFILES[program]
            loads = [_load(jobs, speed, gigabytes) for jobs, speed in zip(on, speeds, strict=True)]
            chosen = choose_gpu(
                policy, loads, program=program, num_bytes=size, seconds=alone, last=last, history=history
            )
            if chosen is None:
                break
            del waiting[0]
            last = chosen
            on[chosen].append(Running(program, came, alone))
    return speedups


def _load(jobs: Sequence[Running], speed: float, gigabytes: int) -> GpuLoad:
    names = tuple(job.program for job in jobs)
    free = gigabytes - sum(PROFILES[name][2] for name in names)
    return GpuLoad(free, speed, sum(job.left for job in jobs), names)


@dataclass
class Job:
    tenant: str
    came: float
    left: float
    superstep: float
    attained: float = 0.0
    ended: float = np.inf
    longest_wait: float = 0.0
    ready_since: float = field(default=0.0)


def share_one(
    policies: Sequence[tuple[float, TurnPolicy]],
    jobs: Sequence[Job],
    weights: Mapping[str, float],
    *,
    quantum: float,
    until: float,
) -> tuple[list[tuple[float, str, float]], float]:
    """Run jobs on one device by leases; return (when, tenant, seconds) of each lease, and seconds idle.

    A lease is the supersteps that fit in a quantum, at least one, so that it may run over.

    Args:
        policies: From when on which holds.
        jobs: In order of their coming; changed in place.
        weights: Of tenants.
        quantum: Seconds.
        until: When the simulation stops.
    """
    now, idle, last, following = 0.0, 0.0, -1, 0
    ready: dict[int, Job] = {}
    charged = dict.fromkeys(weights, 0.0)
    leases: list[tuple[float, str, float]] = []
    while now < until and (ready or following < len(jobs)):
        while following < len(jobs) and jobs[following].came <= now:
            job = jobs[following]
            if all(job.tenant != other.tenant for other in ready.values()):
                others = [Ready(0, t, weights[t], charged[t]) for t in {j.tenant for j in ready.values()}]
                charged[job.tenant] = joined(charged[job.tenant], weights[job.tenant], others)
            ready[following], job.ready_since = job, now
            following += 1
        if not ready:
            idle += jobs[following].came - now
            now = jobs[following].came
            continue
        policy = [name for since, name in policies if since <= now][-1]
        asked = [
            Ready(n, j.tenant, weights[j.tenant], charged[j.tenant], j.attained) for n, j in ready.items()
        ]
        chosen = choose_job(policy, asked, last=last)
        assert chosen is not None
        last, job = chosen, ready[chosen]
        seconds = min(job.left, job.superstep * max(1, int(quantum / job.superstep)))
        job.longest_wait = max(job.longest_wait, now - job.ready_since)
        leases.append((now, job.tenant, seconds))
        now += seconds
        job.left -= seconds
        job.ready_since = now
        charged[job.tenant] += seconds
        for number, other in ready.items():
            other.attained = aged(other.attained, seconds if number == chosen else 0.0)
        if job.left <= 1e-9:
            job.ended = now
            del ready[chosen]
    return leases, idle


def jain(shares: Sequence[float]) -> float:
    """Jain's index: 1 where all are the same, 1/n where one has all."""
    values = np.asarray(shares)
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
