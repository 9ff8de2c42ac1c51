"""On which GPU of a pool a job runs: a pure function of what each GPU has, and of what was measured of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from sigps.errors import ConfigError, nearest

__all__ = ["Demand", "GpuLoad", "PlacingPolicy", "choose_gpu"]

PlacingPolicy = Literal["round_robin", "least_memory", "weighted_times", "feedback"]


@dataclass(frozen=True)
class Demand:
    """What a program asks of a GPU while it runs there alone; measured from runs that have ended.

    Attributes:
        utilisation: Of its multiprocessors' time, 0 to 1.
        bandwidth: Of its memory's bandwidth, 0 to 1.
    """

    utilisation: float
    bandwidth: float


@dataclass(frozen=True)
class GpuLoad:
    """One GPU of a pool.

    Attributes:
        free_bytes: Of its memory.
        speed: Relative to the other GPUs; a job of `seconds` takes `seconds / speed` there alone.
        seconds: Predicted for the jobs on it that have not ended, at speed 1.
        programs: The program of each of these jobs: a key of `history`.
    """

    free_bytes: int
    speed: float = 1.0
    seconds: float = 0.0
    programs: tuple[str, ...] = ()


def choose_gpu(
    policy: PlacingPolicy,
    gpus: Sequence[GpuLoad],
    *,
    program: str,
    num_bytes: int,
    seconds: float,
    last: int = -1,
    history: Mapping[str, Demand] | None = None,
) -> int | None:
    """Return the GPU for a job; None where it fits on none now. Pure.

    `round_robin` is the next after `last`; `least_memory` that with the most bytes free; `weighted_times` that where
    predicted seconds, divided by the GPU's speed, are over first; `feedback` that where this job and those beside it
    lose the least together, by their measured demands.

    Args:
        policy: The policy.
        gpus: The pool, at least one.
        program: What the job runs, as in `history`.
        num_bytes: What the memory plan says that it takes.
        seconds: Predicted for it at speed 1.
        last: The GPU chosen for the job before; -1 for none.
        history: Demands by program; one that is not there counts as taking a whole GPU.

    Raises:
        ConfigError: If there is no such policy.
    """
    fitting = [number for number, gpu in enumerate(gpus) if gpu.free_bytes >= num_bytes]
    if policy not in get_args(PlacingPolicy):
        known = get_args(PlacingPolicy)
        raise ConfigError(f"policy={policy!r} is not one of {', '.join(known)}{nearest(str(policy), known)}")
    if not fitting:
        return None
    if policy == "round_robin":
        return min(fitting, key=lambda number: (number - last - 1) % len(gpus))
    if policy == "least_memory":
        return min(fitting, key=lambda number: -gpus[number].free_bytes)
    if policy == "weighted_times":
        return min(fitting, key=lambda number: (gpus[number].seconds + seconds) / gpus[number].speed)
    known_demands = history or {}
    return min(fitting, key=lambda number: _loss(gpus[number], program, seconds, known_demands))


_WHOLE = Demand(1.0, 1.0)


def _loss(gpu: GpuLoad, program: str, seconds: float, history: Mapping[str, Demand]) -> tuple[float, float]:
    """Return by how much times grow where a job joins a GPU, all jobs added, and the seconds that end a tie.

    Jobs side by side run at their own speed until one resource is full; then all slow down by the same factor.
    """
    beside = [history.get(name, _WHOLE) for name in gpu.programs]
    before = slowdown(beside) / gpu.speed
    after = slowdown([*beside, history.get(program, _WHOLE)]) / gpu.speed
    return after + len(beside) * (after - before), (gpu.seconds + seconds) / gpu.speed


def slowdown(demands: Sequence[Demand]) -> float:
    """Return how many times as long jobs take side by side as each does alone, at least 1.

    >>> slowdown([Demand(0.5, 0.9), Demand(0.25, 0.6)]), slowdown([Demand(0.5, 0.1)])
    (1.5, 1.0)
    """
    return max(1.0, sum(d.utilisation for d in demands), sum(d.bandwidth for d in demands))
