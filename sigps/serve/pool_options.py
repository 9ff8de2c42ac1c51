"""What a pool and its jobs may be asked for, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sigps.errors import ConfigError, nearest
from sigps.job.preparing import check_device
from sigps.job.run import run_options

__all__ = ["check_choice", "check_job", "check_numbers", "checked_devices"]

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
    if here.count("cuda") > 1:
        raise ConfigError("a pool is built for one GPU yet: one process uses one")
    return here


def check_numbers(quantum: Any, memory: Any, threads: Any) -> None:
    """Check the seconds of a lease, the bytes of a device, and the threads of a run.

    Raises:
        ConfigError: If they are none.
    """
    if isinstance(quantum, bool) or not isinstance(quantum, (int, float)) or not 0 < quantum < math.inf:
        raise ConfigError(f"quantum={quantum!r} must be seconds above 0")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, int) or memory < 1):
        raise ConfigError(f"memory={memory!r} must be a number of bytes, at least 1, or None")
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
