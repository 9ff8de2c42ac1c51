"""What a pool and its jobs may be asked for, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sigps.errors import ConfigError, DeviceError, nearest
from sigps.job.preparing import check_device
from sigps.job.run import run_options

__all__ = ["check_choice", "check_job", "check_numbers", "check_placing", "check_turns", "checked_devices"]

_OF_POOL = (
    "device",
    "threads",
    "checkpoint",
    "resume",
    "faults",
    "transport",
    "progress",
    "host_memory",
    "device_memory",
)


def checked_devices(devices: Sequence[str] | str) -> list[str]:
    """Return the engines of a pool's devices.

    Raises:
        ConfigError: If there is none, or no such engine.
        DeviceError: If a device is not there.
    """
    from sigps.engine.table import engine_of

    names = [devices] if isinstance(devices, str) else list(devices)
    if not names:
        raise ConfigError("devices=[] must name at least one device")
    here = [("cpu" if engine_of("cuda").missing() else "cuda") if n == "auto" else n for n in names]
    for name in here:
        check_device(name)
    if (wanted := here.count("cuda")) > 1:
        from sigps.device.cuda import num_gpus

        if wanted > (there := num_gpus()):
            raise DeviceError(f"devices={names!r} names {wanted} GPUs, and this process sees {there}", rank=0)
    return here


def check_numbers(quantum: Any, threads: Any) -> None:
    """Check the seconds of a lease, and the threads of a run.

    Raises:
        ConfigError: If they are none.
    """
    if isinstance(quantum, bool) or not isinstance(quantum, (int, float)) or not 0 < quantum < math.inf:
        raise ConfigError(f"quantum={quantum!r} must be seconds above 0")
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads={threads!r} must be a whole number, at least 1, or None")


def check_choice(option: str, policy: str, known: tuple[str, ...]) -> None:
    """Check that an option is one of some words.

    Raises:
        ConfigError: If it is not.
    """
    if policy not in known:
        raise ConfigError(
            f"{option}={policy!r} is not one of {', '.join(known)}{nearest(str(policy), known)}"
        )


def check_placing(policy: str) -> None:
    """Check that a policy of placement is one that a pool has.

    Raises:
        ConfigError: If it is not.
    """
    if policy == "feedback":
        raise ConfigError(
            "placing='feedback' is for jobs that run side by side on a device, and slow each other down; those of a "
            "pool take turns. Use 'weighted_times', which goes by what jobs of the same program on the same graph took"
        )
    check_choice("placing", policy, ("round_robin", "least_memory", "weighted_times"))


def check_turns(policy: str) -> None:
    """Check that a policy of turns is one that a pool has.

    Raises:
        ConfigError: If it is not.
    """
    if policy == "phase":
        raise ConfigError(
            "turns='phase' is for devices whose leases copy, too; those of a pool only compute, and what is copied "
            "passes beside them. Use 'least_attained', which is the same then"
        )
    check_choice("turns", policy, ("fair_share", "round_robin", "least_attained"))


def check_job(tenant: Any, weight: Any, priority: Any, options: Mapping[str, Any]) -> None:
    """Check what is said about a job.

    Raises:
        ConfigError: If something of it is wrong, or is not for jobs of a pool.
    """
    if not isinstance(tenant, str):
        raise ConfigError(f"tenant={tenant!r} must be a string")
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if weight is not None and not (is_number and 0 < weight < math.inf):
        raise ConfigError(f"weight={weight!r} must be a number above 0")
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise ConfigError(f"priority={priority!r} must be a whole number")
    run_options(options)
    for name in _OF_POOL:
        if name in options:
            raise ConfigError(
                f"{name}= is not for jobs of a pool, which has devices, threads and progress of its own"
            )
