"""The limits beyond which a rank counts as lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sigps.errors import ConfigError
from sigps.group.status import SILENT_SECONDS

__all__ = ["DEFAULT_FAULTS", "Faults"]


@dataclass(frozen=True)
class Faults:
    """The limits beyond which a rank counts as lost, and the run ends. Without effect on one rank.

    Args:
        silent_seconds: How long a rank may be stopped, its host out of reach, or others wait for it after it failed;
            inf for ever. Before a run begins it is 20.
        superstep_seconds: How long it may compute at a stretch, the first superstep's compilation included.

    Raises:
        ConfigError: If a number is not above 0.
    """

    silent_seconds: float = SILENT_SECONDS
    superstep_seconds: float = math.inf

    def __post_init__(self) -> None:
        for name in ("silent_seconds", "superstep_seconds"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
                raise ConfigError(f"faults: {name}={value!r} must be a number above 0; inf is no limit")


DEFAULT_FAULTS = Faults()
