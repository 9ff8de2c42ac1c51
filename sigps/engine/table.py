"""The engines: one line each. `contract.py` says what a line stands for."""

from __future__ import annotations

from importlib import import_module

from sigps.engine.contract import EngineSpec
from sigps.errors import ConfigError, nearest

__all__ = ["ENGINES", "device_names", "engine_here", "engine_of", "tracing_devices"]

ENGINES: tuple[EngineSpec, ...] = tuple(
    import_module(f"sigps.engine.{folder}.spec").SPEC
    for folder in (
        "gpu",
        "cpu",
        "interpreter",
    )
)
"""In the order in which `device="auto"` considers them."""


def device_names() -> tuple[str, ...]:
    """Return what `device=` may be: `"auto"` and every engine's name."""
    return ("auto", *reversed([spec.device for spec in ENGINES]))


def engine_of(device: str) -> EngineSpec:
    """Return the engine of that name.

    Raises:
        ConfigError: If there is none; it lists the names.
    """
    for spec in ENGINES:
        if spec.device == device:
            return spec
    *names, last = device_names()
    near = nearest(device, [*names, last]).rstrip(".")
    raise ConfigError(f"there is no device {device!r}; choose {', '.join(names)} or {last}{near}")


def tracing_devices() -> tuple[str, ...]:
    """Return the names of the engines that record vertices (`trace=`)."""
    return tuple(spec.device for spec in ENGINES if spec.traces)


def engine_here(num_edges: int) -> EngineSpec:
    """Return what `device="auto"` comes to on this machine for so many stored edges a rank, whatever the program."""
    return next(spec for spec in ENGINES if num_edges >= spec.pays_from_edges and not spec.missing())
