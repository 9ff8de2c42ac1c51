"""A pool of GPUs under a fake clock: what policies make of jobs that come at random."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sigps.serve.placing import Demand, GpuLoad, PlacingPolicy, choose_gpu, slowdown
from sigps.serve.turns import Phase, Ready, TurnPolicy, aged, choose_job, joined

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
    *,
    measured: Callable[[Demand], Demand] = lambda demand: demand,
) -> list[float]:
    """Return each job's speedup against alone on a GPU of speed 1 (its seconds alone / from arrival to end).

    Jobs on one GPU run side by side and slow each other down where a resource is full. A program's demand is known
    to the policy from when a job of it has ended, as `measured` has it. One that fits nowhere waits, first come first
    served.
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
                    history[job.program] = measured(demand)
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


@dataclass
class Phased:
    """A job that copies its input, computes, and copies its result.

    Attributes:
        came: When.
        left: Seconds of each phase that are left, in order.
    """

    came: float
    left: list[tuple[Phase, float]]
    attained: float = 0.0


def share_engines(
    policy: TurnPolicy, coming: Sequence[tuple[float, str]], *, copying: float, quantum: float = 0.05
) -> list[float]:
    """Return each job's speedup against alone on a device that computes and copies at once, two jobs at a time.

    For a quantum the policy wakes two jobs, one after the other. In different phases both go on at full speed; in one
    and the same, each at half of it.

    Args:
        policy: The policy.
        coming: When, and which program, in order.
        copying: Seconds of copying a second of computing; two thirds of them before it.
        quantum: Seconds.
    """
    now, following, last = 0.0, 0, -1
    ready: dict[int, Phased] = {}
    speedups: list[float] = []
    while len(speedups) < len(coming):
        while following < len(coming) and coming[following][0] <= now:
            came, program = coming[following]
            seconds = PROFILES[program][0]
            copies = copying * seconds
            ready[following] = Phased(
                came, [("copy", copies * 2 / 3), ("compute", seconds), ("copy", copies / 3)]
            )
            following += 1
        if not ready:
            now = coming[following][0]
            continue
        woken: list[int] = []
        for _ in range(min(2, len(ready))):
            running = [ready[n].left[0][0] for n in woken]
            asked = [
                Ready(n, "", attained=j.attained, phase=j.left[0][0])
                for n, j in ready.items()
                if n not in woken
            ]
            chosen = choose_job(policy, asked, last=last, running=running)
            assert chosen is not None
            woken.append(chosen)
            last = chosen
        phases = [ready[n].left[0][0] for n in woken]
        rate = 0.5 if len(phases) == 2 and phases[0] == phases[1] else 1.0
        step = min([quantum, *(ready[n].left[0][1] / rate for n in woken)])
        now += step
        for number, job in list(ready.items()):
            had = step * rate if number in woken else 0.0
            job.attained = aged(job.attained, had)
            phase, left = job.left[0]
            job.left[0] = phase, left - had
            if left - had <= 1e-9 and number in woken:
                del job.left[0]
            if not job.left:
                alone = PROFILES[coming[number][1]][0] * (1 + copying)
                speedups.append(alone / (now - job.came))
                del ready[number]
    return speedups


def jain(shares: Sequence[float]) -> float:
    """Jain's index: 1 where all are the same, 1/n where one has all."""
    values = np.asarray(shares)
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))
